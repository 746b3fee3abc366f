//! `kfdrun`: runs AMDGPU program images.

mod args;
mod device;
mod devices;
mod doctor;
mod exit;
mod explain;
mod fidelity;
mod inspect;
mod json;
mod launch;
mod output;
mod run;
mod style;

use args::Args;
use clap::Parser;
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    let mut args = Args::parse();
    // Naps of tens of microseconds between looks at a kernel's calls are not to become 50 longer, which is the default. A
    // kernel that cannot do this costs no more than that.
    let _ = nix::sys::prctl::set_timerslack(1);
    args.met = args.fidelity.then(Arc::default);
    match run::run(&args) {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            output::say(&failure.text);
            ExitCode::from(failure.status)
        }
    }
}

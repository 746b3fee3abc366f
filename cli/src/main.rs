//! `kfdrun`: runs AMDGPU program images.

mod args;
mod device;
mod devices;
mod doctor;
mod exit;
mod explain;
mod fidelity;
mod input;
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
    args.met = args.fidelity.then(Arc::default);
    let status = run::run(&args).unwrap_or_else(|failure| {
        if !failure.text.is_empty() {
            output::say(&failure.text);
        }
        failure.status
    });
    if loader::rpc::waits_still() {
        // SAFETY: the process ends, and nothing is left that should be written: a command's output is written at once.
        unsafe { libc::_exit(status.into()) };
    }
    ExitCode::from(status)
}

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
    args.met = args.fidelity.then(Arc::default);
    match run::run(&args) {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            if !failure.text.is_empty() {
                output::say(&failure.text);
            }
            ExitCode::from(failure.status)
        }
    }
}

//! `kfdrun launch` on the emulated machine, and images of other makes.

mod arguments;
mod forms;
#[path = "../limit.rs"]
mod limit;
mod script;
mod services;
#[path = "../settled.rs"]
mod settled;

use settled::settled;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const TARGETS: [&str; 7] = ["gfx900", "gfx906", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201"];

fn image(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/programs/images").join(name)
}

fn kfdrun(arguments: &[&str]) -> Output {
    limit::output(
        Command::new(env!("CARGO_BIN_EXE_kfdrun")).args(["--device", "emu", "--timeout", "120"]).args(arguments),
    )
}

/// Launches a kernel of a test program.
fn launch(name: &str, kernel: &str, options: &[&str]) -> Output {
    let image = image(name);
    kfdrun(&[&["launch", image.to_str().expect("a path of text"), kernel], options].concat())
}

/// Asserts a status; what was printed on stdout and stderr.
#[track_caller]
fn said(output: &Output, status: i32) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "stdout: {stdout}\nstderr: {stderr}");
    (stdout, stderr)
}

const ONE: [&str; 4] = ["--groups", "1", "--group-size", "64"];

fn with(options: &[&'static str]) -> Vec<&'static str> {
    [&ONE, options].concat()
}

/// One work-item.
fn single(options: &[&'static str]) -> Vec<&'static str> {
    [&["--groups", "1", "--group-size", "1"], options].concat()
}

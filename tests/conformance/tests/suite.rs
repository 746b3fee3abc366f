//! The whole suite on the emulated machine, and a few fuzzed sequences.

#[path = "../../limit.rs"]
mod limit;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_kfdrun-conformance");
    limit::output(Command::new(program).args(arguments))
}

#[track_caller]
fn succeeds(arguments: &[&str]) -> String {
    let output = run(arguments);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

#[test]
fn a_machine_without_gpus() {
    succeeds(&[]);
    succeeds(&["--no-svm"]);
}

#[test]
fn machines_with_gpus() {
    for device in ["emu:gfx90a", "emu:gfx942", "emu:gfx1030", "emu:gfx1100", "emu:gfx1201,gfx1201"] {
        let said = succeeds(&["--device", device]);
        assert!(!said.contains("no GPU\n"), "{device}: {said}");
    }
}

#[test]
fn two_runs_agree_and_a_change_is_seen() {
    let file = |name: &str, text: &str| {
        let path = std::env::temp_dir().join(format!("kfdrun-conformance-{}-{name}", std::process::id()));
        std::fs::write(&path, text).expect("a file is written");
        path
    };
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let records = succeeds(&["--group", "KFDEventTest", "--json"]);
    let left: PathBuf = file("left", &records);
    let right: PathBuf = file("right", &records.replacen("EINVAL", "EPERM", 1));
    let same = run(&["compare", &text(&left), &text(&left), "--at-least", "10"]);
    let changed = run(&["compare", &text(&left), &text(&right)]);
    let few = run(&["compare", &text(&left), &text(&left), "--at-least", "1000"]);
    let _ = (std::fs::remove_file(left), std::fs::remove_file(right));
    assert_eq!((same.status.code(), changed.status.code(), few.status.code()), (Some(0), Some(1), Some(1)));
    let said = String::from_utf8_lossy(&changed.stdout).into_owned();
    assert!(said.contains("differs: KFDEventTest/"), "{said}");
}

#[test]
fn fuzzed_sequences() {
    for seed in 0..40 {
        let count = conformance::fuzz::sequence(seed, 150).expect("a machine");
        assert!(count.requests > 0 && count.sequences == 1, "{count}");
    }
}

#[test]
fn every_refusal_is_a_rule_of_the_tables() {
    for seed in 1000..1040 {
        let unexplained = conformance::fuzz::unexplained(seed, 200).expect("a machine");
        assert!(unexplained.is_empty(), "seed {seed}: {unexplained:#?}");
    }
}

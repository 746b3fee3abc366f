//! `kfdrun explain` as a command: streams, exit status, JSON. What it says is tested beside its tables.

#[path = "limit.rs"]
mod limit;

use std::process::{Command, Output};

fn explain(words: &[&str]) -> Output {
    limit::output(Command::new(env!("CARGO_BIN_EXE_kfdrun")).arg("explain").args(words))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn an_answer_goes_to_stdout_without_colours() {
    let output = explain(&["0x1009"]);
    assert_eq!(output.status.code(), Some(0));
    let said = text(&output.stdout);
    assert!(said.starts_with("HSA_STATUS_ERROR_INVALID_PACKET_FORMAT (0x1009)"), "{said}");
    assert!(!said.contains('\x1b'), "a pipe is no terminal");
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn options_and_negative_numbers_are_told_apart() {
    let output = explain(&["-22"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).starts_with("EINVAL (22)"));
    assert_eq!(explain(&["--unknown"]).status.code(), Some(2));
    assert_eq!(explain(&[]).status.code(), Some(2));
}

#[test]
fn what_is_not_known_says_what_is() {
    let output = explain(&["HELLO"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.starts_with("kfdrun: 'HELLO' is not known here\nThis can be explained"), "{said}");
    assert_eq!(text(&output.stdout), "");
}

#[test]
fn json_is_json_when_nothing_is_known_too() {
    for (word, readings) in [("0xc0604b02", "\"kind\": \"ioctl\""), ("HELLO", "\"readings\": []")] {
        let said = text(&explain(&["--json", word]).stdout);
        assert!(said.starts_with("{\n  \"schema\": \"kfdrun-explain\",\n  \"schema_version\": 1,\n"), "{said}");
        assert!(said.contains(readings) && said.ends_with("}\n"), "{said}");
    }
}

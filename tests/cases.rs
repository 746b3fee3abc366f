//! Images from other compilers, with right answers, when a folder of them is at hand (`KFDRUN_CASES`, or `../shared/cases`
//! beside the repository). Without it every test here prints that it skips.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn cases() -> Option<PathBuf> {
    let folder = std::env::var_os("KFDRUN_CASES")
        .map(PathBuf::from)
        .unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/cases"));
    if folder.join("images").is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: no folder of cases ({}); set KFDRUN_CASES", folder.display());
    None
}

fn run(options: &[&str], image: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kfdrun"))
        .args(["--device", "emu", "--timeout", "300"])
        .args(options)
        .arg(image)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("kfdrun starts")
}

#[track_caller]
fn expect(image: &Path, arguments: &[&str], status: i32) {
    let output = run(&[], image, arguments);
    assert_eq!(
        output.status.code(),
        Some(status),
        "{} {arguments:?}\n{}",
        image.display(),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The image for `name` on each target the folder has it for.
fn variants(folder: &Path, name: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder lists")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            file.strip_prefix(name).is_some_and(|rest| rest.starts_with(['.', '-']) && rest.contains(".gfx"))
        })
        .collect();
    found.sort();
    assert!(!found.is_empty(), "no {name} in {}", folder.display());
    found
}

#[test]
fn freestanding_programs() {
    let Some(cases) = cases() else { return };
    let free = cases.join("images/free");
    for image in variants(&free, "free42") {
        expect(&image, &[], 42);
    }
    for image in variants(&free, "freeargs") {
        expect(&image, &["abc", "kfdrun"], "abckfdrun".bytes().map(i32::from).sum::<i32>() % 251);
    }
    for name in ["freelds", "freedata"] {
        for image in variants(&free, name) {
            expect(&image, &[], 0);
        }
    }
}

/// The one-line refusal of a damaged image names what is wrong.
#[test]
fn damaged_images_are_refused_in_one_line() {
    let Some(cases) = cases() else { return };
    let list = std::fs::read_to_string(cases.join("bad/README.txt")).expect("the list reads");
    for line in list.lines().filter(|line| !line.trim().is_empty()) {
        let name = line.split_whitespace().next().unwrap_or_default();
        let output = run(&[], &cases.join(format!("bad/{name}.co")), &[]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(126), "{name}: {said}");
        assert_eq!(said.lines().count(), 1, "{name}: {said}");
        assert!(said.starts_with("kfdrun: "), "{name}: {said}");
    }
}

#[test]
fn libc_programs_that_print() {
    let Some(cases) = cases() else { return };
    let folder = cases.join("images/llvm22");
    for image in variants(&folder, "llvm22-hello") {
        let output = run(&[], &image, &["a", "b"]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(0), "{}\n{}", image.display(), String::from_utf8_lossy(&output.stderr));
        assert!(text.starts_with("Hello, world! argc=3\n"), "{text}");
    }
    for image in variants(&folder, "llvm22-return42") {
        expect(&image, &[], 42);
    }
    for image in variants(&folder, "llvm22-exit7") {
        let output = run(&[], &image, &[]);
        assert_eq!(output.status.code(), Some(7));
        assert!(String::from_utf8_lossy(&output.stderr).contains("before exit"));
    }
}

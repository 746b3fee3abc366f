//! Kernels linked with ROCm's device library: its malloc on the device heap, its printf over hostcall, its part of the
//! address sanitizer. Needs clang-22, llvm-link-22 and the library's bitcode (Debian's `rocm-device-libs`, or a folder named by
//! `KFDRUN_DEVICE_LIBS`); without them every test here prints that it skips.

#[path = "limit.rs"]
mod limit;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Targets and the library's number for each.
const TARGETS: [(&str, &str); 4] = [("gfx900", "900"), ("gfx906", "906"), ("gfx90a", "90a"), ("gfx1030", "1030")];

fn library() -> Option<PathBuf> {
    let debians = || "/usr/lib/x86_64-linux-gnu/amdgcn/bitcode".into();
    let folder = std::env::var_os("KFDRUN_DEVICE_LIBS").map_or_else(debians, PathBuf::from);
    let has = |tool: &str| limit::try_output(Command::new(tool).arg("--version")).is_ok();
    if folder.join("ockl.bc").exists() && has("clang-22") && has("llvm-link-22") {
        return Some(folder);
    }
    eprintln!(
        "skipped: no clang-22, no llvm-link-22 or no ROCm device library ({}); set KFDRUN_DEVICE_LIBS",
        folder.display()
    );
    None
}

/// Compiles library.c with more flags, and links it with the library.
fn image(library: &Path, target: &str, number: &str, name: &str, flags: &[&str]) -> String {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/programs");
    let at = |end: &str| std::env::temp_dir().join(format!("kfdrun-{name}-{}-{target}{end}", std::process::id()));
    let (own, linked, output) = (at(".own.bc"), at(".bc"), at(""));
    let run = |command: &mut Command| {
        let run = limit::output(command);
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    };
    let clang = |flags: &[&str]| {
        // Releases as old as Debian's know code objects up to V5.
        let mut command = Command::new("clang-22");
        command.args(["--target=amdgcn-amd-amdhsa", &format!("-mcpu={target}"), "-mcode-object-version=5"]);
        command.args(["-nogpulib", "-nostdlib", "-ffreestanding", "-O2", "-g", "-w", "-fuse-ld=lld-22"]).args(flags);
        command
    };
    run(clang(flags).args(["-c", "-emit-llvm"]).arg(programs.join("library.c")).arg("-o").arg(&own));
    let wave64 = if number.starts_with("10") { "off" } else { "on" };
    let parts = [
        "asanrtl",
        "ockl",
        &format!("oclc_isa_version_{number}"),
        &format!("oclc_wavefrontsize64_{wave64}"),
        "oclc_abi_version_500",
        "oclc_unsafe_math_off",
        "oclc_finite_only_off",
        "oclc_daz_opt_off",
        "oclc_correctly_rounded_sqrt_on",
    ];
    let parts = parts.map(|part| library.join(format!("{part}.bc")));
    run(Command::new("llvm-link-22").arg(&own).args(parts).arg("-o").arg(&linked));
    run(clang(&[]).arg(&linked).arg("-o").arg(&output));
    for file in [own, linked] {
        std::fs::remove_file(file).expect("the file goes");
    }
    output.to_str().expect("a path of text").to_owned()
}

fn launch(image: &str, kernel: &str, options: &[&str]) -> Output {
    limit::output(
        Command::new(env!("CARGO_BIN_EXE_kfdrun"))
            .args(["--device", "emu", "--timeout", "120", "launch", image, kernel])
            .args(options),
    )
}

/// Standard output and standard error.
#[track_caller]
fn said(output: &Output, status: i32) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{stdout}{stderr}");
    (stdout, stderr)
}

#[test]
fn malloc_and_printf() {
    let Some(library) = library() else { return };
    for (target, number) in TARGETS {
        let image = image(&library, target, number, "library", &[]);
        // Blocks of slabs, and what is too large for those.
        for size in ["16", "3000", "8000"] {
            let options = ["--groups", "4", "--group-size", "64", "--arg", "out:u32[256]", "--arg", size];
            let (stdout, _) = said(&launch(&image, "heap", &options), 0);
            assert_eq!(stdout, format!("0:{}\n", " 0".repeat(256)), "{target} {size}");
        }
        let options = ["--groups", "1", "--group-size", "100", "--arg", "out:u32[100]"];
        let (stdout, _) = said(&launch(&image, "say", &options), 0);
        let mut lines: Vec<String> = stdout.lines().map(str::to_owned).collect();
        lines.sort();
        let line = |i: u32| format!("work-item {i} of a text that is longer than one packet holds, by far:  3.12");
        let printed = (0..100).map(|i| (line(i).len() + 1).to_string()).collect::<Vec<_>>().join(" ");
        let mut expected: Vec<String> = (0..100).map(line).chain([format!("0: {printed}")]).collect();
        expected.sort();
        assert_eq!(lines, expected, "{target}");
        std::fs::remove_file(image).expect("the file goes");
    }
}

#[test]
fn address_sanitizer() {
    let Some(library) = library() else { return };
    let target = "gfx90a:xnack+";
    let flags = ["-DSANITIZED", "-Xclang", "-fsanitize=address"];
    let image = image(&library, target, "90a", "sanitized", &flags);
    let run = |kernel: &str, n: &str, status| {
        let options = ["--groups", "1", "--group-size", "64", "--arg", "out:u32[66]", "--arg", n];
        said(&launch(&image, kernel, &options), status)
    };
    assert_eq!(run("store", "2", 0).0, format!("0: 0 0{}\n", " 1".repeat(64)), "{target}");
    assert_eq!(run("variable", "0", 0).0, format!("0:{} 0 0\n", " 5".repeat(64)), "{target}");
    let (stdout, stderr) = run("store", "3", 134);
    let words = ["write of 4 bytes", "by work-item 63 of", "0 bytes behind the end of buffer", "library.c:9:"];
    assert!(stdout.is_empty() && words.iter().all(|words| stderr.contains(words)), "{target}: {stderr}");
    let (_, stderr) = run("variable", "1", 134);
    let words = ["read of 4 bytes", "by 6 work-items, the first 9", "0xf9: beside a variable", "library.c:10:"];
    assert!(words.iter().all(|words| stderr.contains(words)), "{target}: {stderr}");
    std::fs::remove_file(image).expect("the file goes");
}

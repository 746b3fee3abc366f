//! Images from other compilers, with right answers, when a folder of them is at hand (`KFDRUN_CASES`, or `../shared/cases`
//! beside the repository). Without it every test here prints that it skips.

use std::io::{Read, Write};
#[path = "limit.rs"]
mod limit;

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
    limit::output(
        Command::new(env!("CARGO_BIN_EXE_kfdrun"))
            .args(["--device", "emu", "--timeout", "300"])
            .args(options)
            .arg(image)
            .args(arguments),
    )
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

/// Runs `name` on each target that it was built for; checks status and standard output.
#[track_caller]
fn each(folder: &Path, name: &str, options: &[&str], arguments: &[&str], status: i32, stdout: impl Fn(&str) -> bool) {
    for image in variants(folder, name) {
        let output = run(options, &image, arguments);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let about = format!("{}\n{said}\n{}", image.display(), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(status), "{about}");
        assert!(stdout(&said), "{about}");
    }
}

#[test]
fn libc_programs() {
    let Some(cases) = cases() else { return };
    let folder = cases.join("images/llvm22");
    let each = |name: &str, arguments: &[&str], status, expected: &str| {
        each(&folder, &format!("llvm22-{name}"), &[], arguments, status, |stdout| stdout == expected);
    };
    each("return42", &[], 42, "");
    each("malloc", &[], 0, "n=1000 min=5 max=32748\n");
    each("math", &[], 0, "1.4142135623730951 0.90929742682568171 7.3890560989306504 0.909297407 1.41421354\n");
    each("ctors", &[], 5, "ctor 1\nctor 2\nmain\natexit\ndtor 2\ndtor 1\n");
    each("divmod", &[], 0, "-124999912 -925985 571428571 3\n");
    each("recurse", &[], 27, "fib=987\n");
    each("system", &["exit 3"], 3, "");
    each("abort", &[], 134, "");
    let letters: String = (0..1998u32).map(|i| char::from(b'a' + (i % 26) as u8)).collect();
    let line =
        |i: u32| format!("line {i} a string argument longer than fifty-six bytes so that it needs two packets\n");
    let lines: String = (0..300).map(line).collect();
    each("bigprint", &[], 0, &format!("{letters}\n{lines}"));
    for image in variants(&folder, "llvm22-hello") {
        let output = run(&[], &image, &["a", "b"]);
        let expected = format!("Hello, world! argc=3\nargv[0]={}\nargv[1]=a\nargv[2]=b\n", image.display());
        assert_eq!((String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code()), (expected, Some(0)));
    }
    for (name, status, stderr) in [("exit7", 7, "before exit\n"), ("fmt", 0, "to stderr one two\n")] {
        for image in variants(&folder, &format!("llvm22-{name}")) {
            let output = run(&[], &image, &[]);
            assert_eq!((output.status.code(), &*String::from_utf8_lossy(&output.stderr)), (Some(status), stderr));
        }
    }
    let fmt = "-1 4000000000 -5 123456789012345 beef 0000BEEF 10 z|   ab|ab   |abc|    42|0x1234|%|3.250000|3.250000e+00|3.25|\
               0x1.ap+1\nputs line\nx";
    self::each(&folder, "llvm22-fmt", &[], &[], 0, |stdout| stdout.trim_end() == fmt);
    let file = std::env::temp_dir().join(format!("kfdrun-case-{}", std::process::id()));
    let path = file.to_str().expect("a path of text");
    self::each(&folder, "llvm22-file", &[], &[path], 0, |stdout| stdout.starts_with("lines=10 ") && !file.exists());
    self::each(&folder, "llvm22-clockp", &[], &[], 0, |stdout| stdout == "clock_ok=1 r=0\n");
}

#[test]
fn libc_programs_on_many_work_items() {
    let Some(cases) = cases() else { return };
    let options = ["--threads", "3", "--blocks", "2"];
    each(&cases.join("images/llvm22"), "llvm22-threads", &options, &[], 3, |stdout| {
        let mut lines: Vec<&str> = stdout.lines().collect();
        lines.sort();
        let expected = |i: usize| format!("block {}/2 thread {}/3", i / 3, i % 3);
        lines == (0..6).map(expected).collect::<Vec<_>>()
    });
}

#[test]
fn environments() {
    let Some(cases) = cases() else { return };
    for image in variants(&cases.join("images/llvm22"), "llvm22-env") {
        for (options, name, said, status) in [
            (&["--env", "KFDRUN_CASE=of the option"][..], "KFDRUN_CASE", "of the option\n", 0),
            (&[], "KFDRUN_CASE", "of the host\n", 0),
            (&["--clean-env"], "KFDRUN_CASE", "(unset)\n", 1),
            (&["--clean-env", "--env", "KFDRUN_CASE"], "KFDRUN_CASE", "of the host\n", 0),
            (&["--clean-env", "--env", "A=1", "--env", "A=2"], "A", "2\n", 0),
            (&["--env", "KFDRUN_NONE"], "KFDRUN_NONE", "(unset)\n", 1),
        ] {
            let output = limit::output(
                Command::new(env!("CARGO_BIN_EXE_kfdrun"))
                    .env("KFDRUN_CASE", "of the host")
                    .args(["--device", "emu", "--timeout", "300"])
                    .args(options)
                    .arg(&image)
                    .arg(name),
            );
            let about = format!("{} {options:?}", image.display());
            assert_eq!(
                (&*String::from_utf8_lossy(&output.stdout), output.status.code()),
                (said, Some(status)),
                "{about}"
            );
        }
    }
}

#[test]
fn standard_input_arrives_while_the_program_runs() {
    let Some(cases) = cases() else { return };
    for image in variants(&cases.join("images/llvm22"), "llvm22-stdin") {
        let mut run = Command::new(env!("CARGO_BIN_EXE_kfdrun"))
            .args(["--device", "emu", "--timeout", "300"])
            .arg(&image)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("kfdrun starts");
        let (mut stdin, mut stdout) = (run.stdin.take().expect("a pipe"), run.stdout.take().expect("a pipe"));
        for (line, answer) in [("one\n", "1:one\n"), ("two words\n", "2:two words\n")] {
            stdin.write_all(line.as_bytes()).expect("written");
            let mut got = vec![0; answer.len()];
            stdout.read_exact(&mut got).expect("the answer comes before the next line is sent");
            assert_eq!(String::from_utf8_lossy(&got), answer);
        }
        drop(stdin);
        assert_eq!(limit::finish(run).status.code(), Some(2), "{}", image.display());

        // A read that is never answered ends with the time.
        let mut run = Command::new(env!("CARGO_BIN_EXE_kfdrun"))
            .args(["--device", "emu", "--timeout", "0.3"])
            .arg(&image)
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("kfdrun starts");
        let stdin = run.stdin.take();
        assert_eq!(limit::finish(run).status.code(), Some(124), "{}", image.display());
        drop(stdin);
    }
}

#[test]
fn programs_that_go_wrong() {
    let Some(cases) = cases() else { return };
    let folder = cases.join("images/llvm22");
    for (name, timeout, status, words) in [
        ("fault", "300", 139, "memory fault: kernel _start: write at 0x2000"),
        ("trap", "300", 133, "s_trap 2"),
        ("hang", "0.3", 124, "did not complete within the limit of 0.3 s"),
    ] {
        for image in variants(&folder, &format!("llvm22-{name}")) {
            let output = limit::output(
                Command::new(env!("CARGO_BIN_EXE_kfdrun")).args(["--device", "emu", "--timeout", timeout]).arg(&image),
            );
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(status), "{}\n{said}", image.display());
            assert!(said.contains(words), "{}\n{said}", image.display());
        }
    }
}

/// LLVM libc's own tests. A unit test ends with a line of how many failed.
#[test]
fn tests_of_llvm_libc() {
    let Some(cases) = cases() else { return };
    let folder = cases.join("images/libc-tests");
    let files = std::fs::read_dir(&folder).expect("the folder lists").flatten().map(|entry| entry.path());
    let (mut units, mut integrations) = (0, 0);
    for image in files {
        let name = image.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(integration) = name.strip_prefix("integration.") else {
            let output = run(&[], &image, &[]);
            let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
            assert!(output.status.success() && said.contains("FAIL: 0"), "{name}: {said}");
            units += 1;
            continue;
        };
        integrations += 1;
        let options = match integration.rsplit_once('.').unwrap_or_default().0 {
            "src.__support.GPU.scan_reduce_test" | "src.__support.GPU.shuffle_test" => "--threads 64",
            "src.stdlib.gpu.malloc" => "--threads 256 --blocks 1024",
            "startup.gpu.startup_rpc_test" => {
                "--blocks-x 2 --blocks-y 2 --blocks-z 2 --threads-x 4 --threads-y 4 --threads-z 4"
            }
            "startup.gpu.startup_args_test" => "--env FRANCE=Paris --env GERMANY=Berlin",
            "startup.gpu.init_fini_array_test" => "",
            other => panic!("{other} is not known here"),
        };
        let options: Vec<&str> = options.split(' ').filter(|part| !part.is_empty()).collect();
        let output = run(&options, &image, &["1", "2", "3"]);
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    }
    assert!(units > 0 && integrations > 0, "no tests in {}", folder.display());
}

const TARGETS: [&str; 7] = ["gfx900", "gfx906", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201"];

/// Compiles a source of the cases for each target and hands the images over. Without clang-22 nothing is tested.
fn compiled(cases: &Path, source: &str, targets: &[&str], flags: &[&str], check: impl Fn(&str, &str)) {
    for target in targets {
        let stem = source.replace(['.', '/'], "-");
        let output = std::env::temp_dir().join(format!("kfdrun-{stem}-{}-{target}", std::process::id()));
        let run = limit::try_output(
            Command::new("clang-22")
                .args(["--target=amdgcn-amd-amdhsa", &format!("-mcpu={target}"), "-nogpulib", "-nostdlib", "-O2", "-w"])
                .arg("-fuse-ld=lld")
                .args(flags)
                .arg("-o")
                .arg(&output)
                .arg(cases.join("src").join(source)),
        );
        let Ok(run) = run else { return eprintln!("skipped: no clang-22") };
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        check(target, output.to_str().expect("a path of text"));
        std::fs::remove_file(&output).expect("the file goes");
    }
}

/// Launches on a device; the arguments are words apart. Standard output, standard error, status.
fn launched(device: &str, image: &str, kernel: &str, words: &str) -> (String, String, Option<i32>) {
    let output = limit::output(
        Command::new(env!("CARGO_BIN_EXE_kfdrun"))
            .args(["--device", device, "--timeout", "300", "launch", image, kernel])
            .args(words.split_whitespace()),
    );
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr), output.status.code())
}

/// Launches, and asserts status and standard output.
#[track_caller]
fn launch(image: &str, kernel: &str, words: &str, status: i32, expected: &str) -> String {
    let (stdout, stderr, code) = launched("emu", image, kernel, words);
    assert_eq!((stdout.as_str(), code), (expected, Some(status)), "{image} {kernel}: {stderr}");
    stderr
}

const FREESTANDING: [&str; 1] = ["-ffreestanding"];

fn line(name: &str, values: impl Iterator<Item = u64>) -> String {
    let values: Vec<String> = values.map(|value| value.to_string()).collect();
    format!("{name}: {}\n", values.join(" "))
}

#[test]
fn kernels_over_buffers() {
    let Some(cases) = cases() else { return };
    compiled(&cases, "vecadd.c", &TARGETS, &FREESTANDING, |_, image| {
        let words =
            "--items 500 --group-size 128 --arg f32[500]=iota --arg f32[500]=fill:2 --arg out:f32[500] --arg 500";
        launch(image, "vecadd", words, 0, &line("2", 2..502));
    });
    compiled(&cases, "reduce.c", &TARGETS, &FREESTANDING, |_, image| {
        let words = "--groups 4 --group-size 256 --arg u32[1024]=iota --arg out:u32[4] --arg 1024";
        launch(image, "reduce", words, 0, "1: 32640 98176 163712 229248\n");
    });
    compiled(&cases, "lds_dyn.c", &TARGETS, &FREESTANDING, |_, image| {
        let words = "--groups 1 --group-size 64 --dynamic-lds 256";
        let sums = (0..64).map(|l| 63 - l + 1000 + 2 * (63 - l)).chain([256, 256]);
        launch(image, "k_lds", &format!("{words} --arg out:u32[66]"), 0, &line("0", sums));
        let squares = (0..64).map(|l| (63 - l) * (63 - l));
        launch(image, "k_lds2", &format!("{words} --arg out:u32[64]"), 0, &line("0", squares));
    });
    for version in ["3", "4", "5", "6"] {
        // Releases since 19 make no V3; its layout is V4's but for the note.
        let flags = ["-ffreestanding", &format!("-mcode-object-version={}", version.replace('3', "4"))];
        compiled(&cases, "three.c", &TARGETS, &flags, |_, image| {
            let grid = "--items 100 --group-size 64";
            launch(
                image,
                "k_fill",
                &format!("{grid} --arg out:u32[100] --arg 7 --arg 99"),
                0,
                &line("0", (0..100).map(|t| if t < 99 { 7 } else { 0 })),
            );
            launch(image, "k_iota", &format!("{grid} --arg out:u32[100] --arg 100"), 0, &line("0", 0..100));
            let words = format!("{grid} --arg out:u32[100]=iota --arg 3 --arg 1000 --arg 0x500000000 --arg 100");
            launch(image, "k_scale", &words, 0, &line("0", (0..100).map(|t| t * 3 + 1005)));
        });
    }
    compiled(
        &cases,
        "preload.c",
        &["gfx90a", "gfx942"],
        &["-ffreestanding", "-mllvm", "-amdgpu-kernarg-preload-count=14"],
        |_, image| {
            let words = "--groups 2 --group-size 64 --arg out:u32[128] --arg 5 --arg 7 --arg 0x100000009";
            launch(image, "k_preload", words, 0, &line("0", (0..128).map(|_| 5 + 21 + 9)));
        },
    );
}

#[test]
fn kernels_with_variables_and_traps() {
    let Some(cases) = cases() else { return };
    let one = "--groups 1 --group-size 1";
    compiled(&cases, "globals.c", &TARGETS, &FREESTANDING, |_, image| {
        let words = format!("{one} --arg u32[6]=0,0,0,0,0,2 --dump 0=-");
        launch(image, "k_globals", &words, 0, "0: 7 0 100 6 8 2\n");
        launch(image, "k_globals", &format!("{words} --repeat 3"), 0, "0: 9 0 100 6 8 2\n");
    });
    compiled(&cases, "extern.c", &TARGETS, &["-ffreestanding", "-Wl,-z,undefs"], |_, image| {
        let words = format!("{one} --arg out:u32[1] --define host_symbol=u32[1]=fill:5 --dump host_symbol=-");
        launch(image, "k_extern", &words, 0, "0: 5\nhost_symbol: 119\n");
        let said = launch(image, "k_extern", &format!("{one} --arg out:u32[1]"), 126, "");
        assert!(said.contains("'host_symbol'"), "{said}");
    });
    compiled(&cases, "trap.c", &TARGETS, &FREESTANDING, |_, image| {
        let words = "--groups 1 --group-size 64";
        launch(image, "k_trap", &format!("{words} --arg u32[101] --expect 0=@/dev/null"), 2, "");
        let twos = line("0", (0..101).map(|t| if t < 64 { 2 } else { 0 }));
        launch(image, "k_trap", &format!("{words} --arg out:u32[101]"), 0, &twos);
        let said = launch(image, "k_trap", &format!("{words} --arg out:u32[101]=fill:42"), 133, "");
        assert!(said.contains("s_trap 2"), "{said}");
        launch(image, "k_debugtrap", &format!("{words} --arg out:u32[1]"), 0, "0: 3\n");
    });
}

#[test]
fn kernels_in_opencl() {
    let Some(cases) = cases() else { return };
    let opencl = ["-cl-std=CL2.0", "-Xclang", "-finclude-default-header"];
    compiled(&cases, "vecadd.cl", &TARGETS, &opencl, |target, image| {
        let words =
            "--groups 4 --group-size 128 --arg f32[500]=iota --arg f32[500]=fill:2 --arg out:f32[500] --arg 500";
        launch(image, "vecadd_cl", words, 0, &line("2", 2..502));
        let words = "--groups 1 --arg out:u32[64] --arg local:256 --arg local:1024";
        launch(image, "lds_cl", words, 0, &line("0", (0..64).map(|l| 3 * (63 - l) + (63 - l) + 3)));
        // Images and samplers are refused by name before anything runs.
        if target == "gfx90a" {
            let words = "--groups 1 --group-size 1 --arg 1 --arg 2 --arg i32x3:1,2,3 --arg f32x4:1,2,3,4 --arg f64:1 --arg i32[1] --arg i32[1] --arg null --arg null";
            let said = launch(image, "args_cl", words, 2, "");
            assert!(said.contains("image"), "{said}");
        }
    });
    compiled(&cases, "printf.cl", &TARGETS, &opencl, |target, image| {
        let words = "--groups 1 --group-size 1 --arg out:i32[1] --arg 7 --arg 1.5";
        let expected = "i=0 n=7\nf=1.500000 g=3 e=1.500000e+00\ns=hello: world c=A pct=%\n\
                        v4=1.500000,2.500000,3.500000,4.500000 v2=1,-2\nl=-5 x=0x123456789abcdef p=";
        let (stdout, ..) = launched("emu", image, "k_printf", words);
        assert!(stdout.starts_with(expected), "{target}: {stdout}");
        assert!(stdout.contains(" h=-7\nplain\n| 1.50|7   |"), "{target}: {stdout}");
        assert!(stdout.ends_with("0: 0\n"), "{target}: {stdout}");
        let words = "--groups 1 --group-size 64 --arg out:i32[64] --arg 7 --arg 1.5 --printf-buffer 128";
        let (stdout, stderr, _) = launched("emu", image, "k_printf", words);
        assert!(stdout.contains(" -1") && stderr.contains("--printf-buffer"), "{target}: {stdout}{stderr}");
    });
}

#[test]
fn programs_from_their_sources() {
    let Some(cases) = cases() else { return };
    compiled(&cases, "argv_ret.c", &TARGETS, &FREESTANDING, |_, image| {
        let bytes = image.len() + "ab".len() + "c".len();
        expect(Path::new(image), &["ab", "c"], ((30 + bytes) & 255) as i32);
    });
}

/// A stack whose depth the compiler does not know.
#[test]
fn recursion_in_a_freestanding_program() {
    let Some(cases) = cases() else { return };
    let start = cases.join("images/free/start.c");
    let flags = ["-ffreestanding", "-flto", start.to_str().expect("a path of text")];
    compiled(&cases, "../images/free/freestack.c", &TARGETS, &flags, |_, image| expect(Path::new(image), &[], 9));
}

#[test]
fn a_library_of_two_thousand_kernels() {
    let Some(cases) = cases() else { return };
    // What is tested is not the compiler, so it need not take its time.
    compiled(&cases, "big.c", &["gfx1100"], &["-ffreestanding", "-O0"], |_, image| {
        let inspect = limit::try_output(Command::new(env!("CARGO_BIN_EXE_kfdrun")).args(["inspect", image]));
        let text = String::from_utf8_lossy(&inspect.expect("kfdrun starts").stdout).into_owned();
        assert_eq!(text.lines().filter(|line| line.starts_with("  kernel kern_")).count(), 2000);
        let words = "--items 100 --group-size 64 --arg f32[100]=iota --arg out:f32[100] --arg 100 --arg f32:2";
        launch(image, "kern_1999", words, 0, &line("1", (0..100).map(|t| 2 * t + 1999)));
    });
}

#[test]
fn cases_of_gcc() {
    let Some(cases) = cases() else { return };
    let folder = cases.join("images/gcc12");
    for image in variants(&folder, "gcn-hello") {
        let expected = format!("Hello, world! argc=3\nargv[0]={}\nargv[1]=a\nargv[2]=b\n", image.display());
        let output = run(&[], &image, &["a", "b"]);
        assert_eq!((String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code()), (expected, Some(0)));
    }
    each(&folder, "gcn-return42", &[], &[], 42, |stdout| stdout.is_empty());
    each(&folder, "gcn-exit7", &[], &[], 7, |stdout| stdout == "before exit\n");
    each(&folder, "gcn-bigprint", &[], &[], 0, |stdout| {
        let lines: Vec<&str> = stdout.lines().collect();
        (lines.len(), lines[0].len(), lines[3000]) == (3001, 1998, "line 2999")
    });
}

fn case(cases: &Path, name: &str) -> String {
    cases.join("images").join(name).to_str().expect("a path of text").to_owned()
}

#[test]
fn cases_of_printf() {
    let Some(cases) = cases() else { return };
    let fixed = "--groups 1 --group-size 2 --arg out:i32[4] --arg 7 --arg f64:1.5 --arg";
    let image = case(&cases, "printf/hprintf_hostcall_v5_gfx90a.co");
    let expected = "i=0 n=7 d=1.500000\ni=1 n=7 d=1.500000\nstr=hi lit=literal     0 %\nstr=hi lit=literal     1 %\n0: 19 27 19 27\n";
    launch(&image, "k_hprintf", &format!("{fixed} u8[]=104,105,0"), 0, expected);
    let image = case(&cases, "printf/bprintf_gfx1100.co");
    let words = format!("{fixed} u8[]=104,105,32,37,100,10,0");
    let (stdout, stderr, status) = launched("emu", &image, "k_bprintf", &words);
    assert_eq!(status, Some(0), "{stderr}");
    for part in ["i=0 n=7 d=1.500000\n", "lit=literal     1 %\n", "hi 0\nhi 1\n", "0: 0 0 0 0\n"] {
        assert!(stdout.contains(part), "'{part}' is missing in: {stdout}");
    }
}

#[test]
fn cases_of_containers() {
    let Some(cases) = cases() else { return };
    for (name, target) in [
        ("vecadd.hipfb", "gfx90a"),
        ("vecadd.hipfb", "gfx1201"),
        ("vecadd.offbin", "gfx90a"),
        ("vecadd.offbin", "gfx1100"),
        ("vecadd_ccob.hipfb", "gfx942"),
        ("vecadd_ccob_v1_zlib.hipfb", "gfx906"),
        ("vecadd_ccob_v2.hipfb", "gfx1030"),
    ] {
        let (image, device) = (case(&cases, &format!("bundles/{name}")), format!("emu:{target}"));
        let words =
            "--items 500 --group-size 128 --arg f32[500]=iota --arg f32[500]=fill:2 --arg out:f32[500] --arg 500";
        let (stdout, stderr, status) = launched(&device, &image, "vecadd", words);
        assert_eq!((stdout, status), (line("2", 2..502), Some(0)), "{name} on {target}: {stderr}");
    }
    for name in ["hip_basic_compress.hipfb", "host_old.exe"] {
        let image = case(&cases, &format!("bundles/{name}"));
        for device in ["emu:gfx90a", "emu:gfx1100"] {
            let words = "--groups 1 --group-size 64 --dump 1=- --dump 2=- \
                         --arg f32:2 --arg f32[4]=iota --arg f32[4]=fill:1 --arg 4";
            let (stdout, stderr, status) = launched(device, &image, "h_saxpy", words);
            assert_eq!(status, Some(0), "{name} on {device}: {stderr}");
            assert!(stdout.contains("1 3 5 7"), "2 x + 1 in one of the buffers: {stdout}");
        }
    }
}

#[test]
fn cases_of_constructors() {
    let Some(cases) = cases() else { return };
    compiled(&cases, "ctors.cpp", &TARGETS, &FREESTANDING, |_, image| {
        launch(image, "k_ctor", "--groups 1 --group-size 1 --arg out:i32[5]", 0, "0: 21 101 102 2 0\n");
    });
}

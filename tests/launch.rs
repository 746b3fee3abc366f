//! `kfdrun launch`, `kfdrun inspect` and programs of other makes on the emulated machine.

#[path = "limit.rs"]
mod limit;
#[path = "settled.rs"]
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

#[test]
fn scalars_of_every_width() {
    let given =
        ["-5", "200", "-300", "60000", "-70000", "4000000000", "-5000000000", "0x100000000", "0.5", "1.5", "0.1"];
    let mut options = with(&["--arg", "out:f64[11]"]);
    for value in given {
        options.extend(["--arg", value]);
    }
    for target in TARGETS {
        let (stdout, stderr) = said(&launch(&format!("arguments.{target}"), "scalars", &options), 0);
        assert_eq!(stdout, "0: -5 200 -300 60000 -70000 4000000000 -5000000000 4294967296 0.5 1.5 0.1\n", "{target}");
        assert_eq!(stderr, "", "{target}");
    }
}

#[test]
fn vectors_and_structures() {
    let options = with(&[
        "--arg",
        "out:f32[10]",
        "--arg",
        "f32x4:1,2,3,4",
        "--arg",
        "i32x3:-5,-6,-7",
        "--arg",
        "hex:08000000_09_000000_0a00000000000000",
    ]);
    for target in TARGETS {
        let (stdout, _) = said(&launch(&format!("arguments.{target}"), "vectors", &options), 0);
        assert_eq!(stdout, "0: 1 2 3 4 -5 -6 -7 8 9 10\n", "{target}");
    }
}

#[test]
fn lds_arguments_lie_behind_each_other() {
    let options = with(&["--arg", "out:u32[64]", "--arg", "local:260", "--arg", "local:1024", "--dump-kernarg"]);
    let expected: Vec<String> = (0..64).map(|item| ((63 - item) * 3).to_string()).collect();
    for target in TARGETS {
        let (stdout, stderr) = said(&launch(&format!("arguments.{target}"), "reverse", &options), 0);
        assert_eq!(stdout, format!("0: {}\n", expected.join(" ")), "{target}");
        // 260 bytes, up to the next multiple of 16, and 1024.
        assert!(stderr.contains("LDS of a work-group: 1296 bytes") && stderr.contains("10 01 00 00"), "{stderr}");
    }
}

#[test]
fn grids_in_groups_and_in_items() {
    let arguments = ["--arg", "in:f32[300]=iota", "--arg", "out:f32[3]=fill:9", "--arg", "f32:2", "--arg", "3"];
    for (grid, text) in [
        (["--groups", "5"], "5 x 1 x 1 work-groups of 64 x 1 x 1 work-items; the grid has 320 x 1 x 1 work-items"),
        (["--items", "320"], "5 x 1 x 1 work-groups of 64 x 1 x 1 work-items; the grid has 320 x 1 x 1 work-items"),
    ] {
        let options = [&grid[..], &["--group-size", "64", "-v"], &arguments].concat();
        let (stdout, stderr) = said(&launch("arguments.gfx1100", "scale", &options), 0);
        assert_eq!(stdout, "1: 0 2 4\n");
        assert!(stderr.contains(text), "{stderr}");
    }
    // The only size the kernel has needs not be said, and no other may be.
    let (stdout, _) = said(&launch("arguments.gfx90a", "shaped", &["--groups", "2", "--arg", "out:u32[64]"]), 0);
    assert_eq!(stdout, format!("0:{}{}\n", " 0".repeat(32), " 1".repeat(32)));
    let (_, stderr) =
        said(&launch("arguments.gfx90a", "shaped", &["--groups", "1", "--group-size", "32", "--arg", "u32[64]"]), 126);
    assert!(stderr.contains("[16, 2, 1]"), "{stderr}");
}

#[test]
fn buffers_go_to_files_and_are_compared() {
    let folder = std::env::temp_dir().join(format!("kfdrun-launch-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let at = |name: &str| folder.join(name).to_str().expect("a path of text").to_owned();
    let run = |extra: &[&str]| {
        let fixed = ["--items", "100", "--group-size", "64", "--arg", "f32[100]=rand:7", "--arg"];
        launch("arguments.gfx942", "scale", &[&fixed, extra].concat())
    };
    let tail = ["--arg", "f32:3", "--arg", "100"];
    let dumps = [format!("1={}", at("a.npy")), format!("1={}", at("a.bin")), format!("0={}", at("in.npy"))];
    let dump = ["--dump", &dumps[0], "--dump", &dumps[1], "--dump", &dumps[2]];
    said(&run(&[&["f32[100]"], &tail[..], &dump].concat()), 0);
    let (npy, raw) = (std::fs::read(at("a.npy")).expect("a.npy"), std::fs::read(at("a.bin")).expect("a.bin"));
    assert!(npy.starts_with(b"\x93NUMPY") && npy.ends_with(&raw) && raw.len() == 400);

    for (file, status) in [("a.npy", 0), ("a.bin", 0), ("in.npy", 1)] {
        let expect = format!("1={}", at(file));
        let (_, stderr) = said(&run(&[&["f32[100]"], &tail[..], &["--expect", &expect]].concat()), status);
        assert_eq!(stderr.contains("elements differ"), status == 1, "{stderr}");
    }
    // Three times as much is within 200 % of what was expected.
    let expect = format!("1={}", at("in.npy"));
    said(&run(&[&["f32[100]"], &tail[..], &["--expect", &expect, "--tolerance", "2.001"]].concat()), 0);
    // A file as input, by its name in the metadata as well.
    let input = format!("f32[]=@{}", at("in.npy"));
    let options = [
        "--items",
        "100",
        "--group-size",
        "64",
        "--arg",
        &input,
        "--arg",
        "f32[100]",
        "--arg",
        "f32:3",
        "--arg",
        "100",
    ];
    let expect = format!("1=@{}", at("a.npy"));
    said(&launch("arguments.gfx942", "scale", &[&options[..], &["--expect", &expect]].concat()), 0);
    std::fs::remove_dir_all(&folder).expect("the folder goes");
}

#[test]
fn what_the_kernel_must_not_change_is_watched() {
    // The kernel writes to its second argument.
    let options = with(&["--arg", "f32[4]=iota", "--arg", "in:f32[4]=fill:1", "--arg", "f32:1", "--arg", "4"]);
    let (_, stderr) = said(&launch("arguments.gfx1201", "scale", &options), 1);
    assert!(stderr.contains("buffer 1: 3 of 4 elements differ"), "{stderr}");
}

#[test]
fn bad_arguments_are_refused_in_the_metadatas_words() {
    let buffers = ["--arg", "f32[4]", "--arg", "f32[4]"];
    for (tail, words) in [
        (&["--arg", "u32:1", "--arg", "4"][..], "argument 2, 'u32:1': the metadata says by_value, 4 bytes, float"),
        (&["--arg", "1", "--arg", "-1"], "argument 3, '-1': the metadata says by_value, 4 bytes, uint"),
        (&["--arg", "1"], "the number of arguments is 3, it takes 4"),
        (&["--arg", "1", "--arg", "local:4"], "write a number"),
        (&["--arg", "1", "--arg", "4", "--dump", "7=-"], "no such buffer; buffers are 0, 1"),
        (&["--arg", "1", "--arg", "4", "--expect", "0=/none"], "/none"),
        (&["--arg", "1", "--arg", "4294967296"], "argument 3, '4294967296': the metadata says by_value, 4 bytes, uint"),
        (&["--arg", "1", "--arg", "4", "--define", "a=5"], "does not need such a symbol"),
        (&["--arg", "1", "--arg", "4", "--define", "scale=5"], "the image defines it"),
        (&["--arg", "1", "--arg", "4", "--tolerance", "inf"], "'inf' is not a number of 0 or more"),
        (&["--arg", "1", "--arg", "4", "--repeat", "0"], "--repeat"),
        (&["--arg", "1", "--arg", "4", "--dynamic-lds", "x"], "--dynamic-lds"),
    ] {
        let (stdout, stderr) = said(&launch("arguments.gfx90a", "scale", &[&ONE, &buffers[..], tail].concat()), 2);
        assert!(stderr.contains(words), "'{words}' is missing in: {stderr}");
        assert_eq!(stdout, "");
    }
    for (first, words) in [
        ("u32[4]", "argument 0, 'u32[4]': the metadata says global_buffer, float*; its elements are float, not u32"),
        ("ptr:0x1002", "0x1002 is not a multiple of 4"),
        ("5", "write a buffer"),
    ] {
        let options = ["--arg", first, "--arg", "f32[4]", "--arg", "1", "--arg", "4"];
        let (_, stderr) = said(&launch("arguments.gfx90a", "scale", &[&ONE, &options[..]].concat()), 2);
        assert!(stderr.contains(words), "'{words}' is missing in: {stderr}");
    }
    for bad in [
        &["--groups", "1", "--items", "2"][..],
        &[],
        &["--groups", "0"],
        &["--groups", "NaN"],
        &["--items", "inf"],
        &["--groups", "1", "--arg", "q"],
    ] {
        said(&launch("arguments.gfx90a", "scale", bad), 2);
    }
    let (_, stderr) = said(&launch("arguments.gfx90a", "scale", &["--groups", "1"]), 2);
    assert!(stderr.contains("--group-size"), "{stderr}");
    let (_, stderr) = said(&launch("arguments.gfx90a", "scael.kd", &ONE), 126);
    assert!(stderr.contains("no kernel 'scael'; its kernels are scale"), "{stderr}");
    let options =
        ["--groups", "1", "--group-size", "64", "--arg", "u32[64]", "--arg", "local:65536", "--arg", "local:1024"];
    let (_, stderr) = said(&launch("arguments.gfx90a", "reverse", &options), 126);
    assert!(stderr.contains("65536") && stderr.contains("LDS"), "{stderr}");
}

#[test]
fn a_stray_address_is_traced_to_its_argument() {
    for target in ["gfx90a", "gfx1100"] {
        let image = format!("kernels.{target}");
        let shape = ["--groups", "64", "--group-size", "256"];
        let launch = |c: &'static str| {
            let arguments = ["--arg", "f32[16]=iota", "--arg", "f32[16]=iota", "--arg", c, "--arg", "16384"];
            said(&launch(&image, "vecadd", &[&shape[..], &arguments].concat()), 139).1
        };
        let text = launch("null");
        assert!(text.contains("argument 2") && text.contains("is null"), "{text}");
        let text = launch("f32[16384]");
        assert!(text.contains("read at 0x") && text.contains("nearest memory: buffer of argument"), "{text}");
        assert!(text.contains("bytes past its start"), "{text}");
    }
}

#[test]
fn variables_and_symbols() {
    for target in ["gfx90a", "gfx1100"] {
        let name = format!("variables.{target}");
        let (_, stderr) = said(&launch(&name, "count", &single(&["--arg", "out:u32[3]"])), 126);
        assert!(stderr.contains("'elsewhere'"), "{stderr}");
        let options = single(&[
            "--arg",
            "out:u32[3]",
            "--define",
            "elsewhere=u32[2]=fill:6",
            "--set-global",
            "counter=41",
            "--set-global",
            "weights=f32[]=1.5,0,0,2",
            "--repeat",
            "2",
            "--dump",
            "elsewhere=-",
            "--dump-global",
            "counter:u32",
            "--dump-global",
            "weights",
        ]);
        let (stdout, stderr) = said(&launch(&name, "count", &options), 0);
        let expected =
            "0: 42 3 6\nelsewhere: 6 77\ncounter: 43\nweights: 00 00 c0 3f 00 00 00 00 00 00 00 00 00 00 00 40\n";
        assert_eq!(stdout, expected, "{target}: the second launch finds what the first left");
        assert!(stderr.contains("count: 2 launches, from start to end by the GPU's clock (ticks of "), "{stderr}");
        let (_, stderr) =
            said(&launch(&name, "count", &single(&["--arg", "u32[3]", "--set-global", "nothing=1"])), 126);
        assert!(stderr.contains("counter"), "{stderr}");
        let options = single(&["--arg", "u32[3]", "--set-global", "counter=u64:1"]);
        assert!(said(&launch(&name, "count", &options), 2).1.contains("the variable has 4"));
    }
}

const PRINTED: &str = "i=0 n=    7|
1.500000 3 1.500000e+00 1.50
1.500000,2.500000,3.500000,4.500000 1,-2 1,2,3
-5 0x123456789abcdef -7 A 4000000000 %
abc|abcd||seven: 7|7
fourA
plain
";

#[test]
fn opencl_printf() {
    let options = ["--groups", "1", "--group-size", "1", "--arg", "out:i32[1]", "--arg", "7", "--arg", "1.5"];
    let images = TARGETS.map(|target| format!("prints.{target}")).into_iter();
    let others = ["prints-v4.gfx1030", "prints-libclc.gfx90a", "prints-libclc.gfx1100"].map(str::to_owned);
    for name in images.chain(others) {
        let (stdout, stderr) = said(&launch(&name, "say", &options), 0);
        assert_eq!((stdout, stderr.as_str()), (format!("{PRINTED}0: 0\n"), ""), "{name}");
    }
}

#[test]
fn a_full_printf_buffer_is_reported() {
    for name in ["prints.gfx90a", "prints-libclc.gfx90a"] {
        let options = ["--groups", "1", "--group-size", "64", "--arg", "out:i32[64]", "--printf-buffer", "128"];
        let (stdout, stderr) = said(&launch(name, "flood", &options), 0);
        let printed = stdout.lines().filter(|line| line.starts_with("line ")).count();
        let lost = stdout.lines().last().map_or(0, |line| line.matches("-1").count());
        assert!((13..=15).contains(&printed) && printed + lost == 64, "{printed} printed, {lost} lost");
        assert!(stderr.contains("--printf-buffer"), "{stderr}");
        let options = ["--groups", "1", "--group-size", "64", "--arg", "i32[64]", "--repeat", "3"];
        let (stdout, stderr) = said(&launch(name, "flood", &options), 0);
        assert_eq!(stdout.lines().count(), 3 * 64, "the buffer is emptied after each launch");
        assert!(!stderr.contains("--printf-buffer"), "{stderr}");
    }
}

#[test]
fn hip_buffered_printf() {
    let options = [
        "--groups",
        "1",
        "--group-size",
        "2",
        "--arg",
        "out:i32[4]",
        "--arg",
        "7",
        "--arg",
        "f64:1.5",
        "--arg",
        "u8[]=104,105,32,37,100,10,0",
    ];
    for target in ["gfx90a", "gfx1100"] {
        let (stdout, stderr) = said(&launch(&format!("buffered.{target}"), "say", &options), 0);
        let mut lines: Vec<&str> = stdout.lines().collect();
        lines.sort();
        let expected = [
            "0: 0 0 0 0",
            "hi %d",
            "hi %d",
            "hi 0",
            "hi 1",
            "i=0 n=7 d=1.500000",
            "i=1 n=7 d=1.500000",
            "|literal|    0|-3 1099511627776",
            "|literal|    1|-3 1099511627776",
        ];
        assert_eq!(
            lines,
            {
                let mut e = expected;
                e.sort();
                e
            },
            "{target}: {stderr}"
        );
    }
}

#[test]
fn hostcall_printf_while_the_kernel_runs() {
    let images = TARGETS.map(|target| format!("hostcall.{target}")).into_iter();
    let others = ["hostcall-v4.gfx90a", "hostcall-phases.gfx90a", "hostcall-phases.gfx1100"].map(str::to_owned);
    for name in images.chain(others) {
        let form = if name.contains("phases") { "phases" } else { "stacks" };
        let options =
            ["--hostcall", form, "--groups", "40", "--group-size", "64", "--arg", "out:u64[40]", "--arg", "100"];
        let (stdout, stderr) = said(&launch(&name, "say", &options), 0);
        let mut numbers: Vec<u32> = stdout
            .lines()
            .filter_map(|line| line.strip_prefix("n=")?.strip_suffix(" from the device")?.parse().ok())
            .collect();
        numbers.sort();
        assert_eq!(numbers, (100..140).collect::<Vec<_>>(), "{name}: {stderr}");
        assert!(
            stdout.ends_with(&format!("0:{}\n", " 22".repeat(40))),
            "{name}: the bytes printed are the answer: {stdout}"
        );
    }
}

#[test]
fn the_wrong_form_of_hostcall_is_suspected() {
    for (name, form, other) in [("hostcall-phases", "stacks", "phases"), ("hostcall", "phases", "stacks")] {
        let options = ["--hostcall", form, "--groups", "1", "--group-size", "64", "--arg", "out:u64[1]", "--arg", "1"];
        let (_, stderr) = said(&launch(&format!("{name}.gfx90a"), "say", &options), 139);
        assert!(stderr.contains(&format!("try --hostcall {other}")), "{stderr}");
    }
}

#[test]
fn hostcalls_other_services() {
    let images = TARGETS.map(|target| (format!("hostcall.{target}"), "stacks"));
    for (target, form) in images.into_iter().chain([("hostcall-phases.gfx1100".to_owned(), "phases")]) {
        let options = with(&["--arg", "out:u64[7]", "--hostcall", form]);
        let (stdout, stderr) = said(&launch(&target, "others", &options), 0);
        assert_eq!(stdout, "0: 20 511 0 0 0 0 18446744073709551615\n", "{target}");
        for words in [
            "n=7 from the device",
            "address sanitizer: write of 8 bytes at 0x1234\n  by work-item 4 of work-group (1, 2, 3), pc 0x5678",
            "call of a host function by its address, which is never made",
            "service 99",
            "message 77, which has not begun",
        ] {
            assert!(stderr.contains(words), "{target}: '{words}' is missing in: {stderr}");
        }
    }
}

#[test]
fn what_the_address_sanitizer_instrumented() {
    let values =
        |values: &mut dyn Iterator<Item = u32>| values.map(|value| value.to_string()).collect::<Vec<_>>().join(" ");
    let sound = [
        ("store", values(&mut (0..66).map(|i| u32::from(i < 64)))),
        ("lds", values(&mut (0..66).map(|i| if i < 64 { 1001 * (63 - i) } else { 0 }))),
        ("variable", values(&mut (0..66).map(|i| if i < 64 { 5 } else { 0 }))),
    ];
    for target in ["gfx90a", "gfx1100"] {
        let asan = |kernel: &str, n: &str, status: i32| {
            let lds = if kernel == "lds" { "256" } else { "0" };
            let options =
                ["--groups", "1", "--group-size", "64", "--dynamic-lds", lds, "--arg", "out:u32[66]", "--arg", n];
            said(&launch(&format!("asan.{target}"), kernel, &options), status)
        };
        for (kernel, expected) in &sound {
            assert_eq!(asan(kernel, "0", 0).0, format!("0: {expected}\n"), "{target}");
        }
        for (kernel, n) in [("store", "3"), ("lds", "3"), ("variable", "1")] {
            let (stdout, stderr) = asan(kernel, n, 134);
            let report = stderr.split("kfdrun: ").nth(1).unwrap_or_default();
            assert!(stdout.is_empty() && report.starts_with("address sanitizer: "), "{target} {kernel}: {stderr}");
            if target == "gfx90a" {
                insta::assert_snapshot!(format!("asan_{kernel}"), settled(report));
            }
        }
        // So far away that not even the shadow is there.
        let (_, stderr) = asan("store", "100000000", 139);
        assert!(stderr.contains("sanitizer's shadow of") && stderr.contains("source: store at ./asan.c:7"), "{stderr}");
    }
    let (stdout, stderr) =
        said(&launch("asan-unlinked.gfx90a", "store", &with(&["--arg", "out:u32[1]", "--arg", "0"])), 126);
    assert!(stderr.contains("calls '__asan_") && stderr.contains("-fsanitize=address"), "{stderr}");
    assert_eq!(stdout, "");
}

#[test]
fn what_is_no_code_object_is_told_apart() {
    let file = std::env::temp_dir().join(format!("kfdrun-other-{}", std::process::id()));
    let path = file.to_str().expect("a path of text");
    let mut object = std::fs::read(image("arguments.gfx90a")).expect("an image");
    object[16] = 1; // e_type of a relocatable object
    let host = std::fs::read(env!("CARGO_BIN_EXE_kfdrun")).expect("a host program");
    for (bytes, words) in [
        (&b"BC\xc0\xde\x35\x14\0\0"[..], "LLVM bitcode"),
        (b"\x03\x02\x23\x07\0\0\x01\0\0\0\0\0", "SPIR-V"),
        (b"//\n.version 7.8\n.target sm_70\n", "PTX"),
        (b"!<arch>\n", "archive"),
        (&object, "not linked"),
        (&host, "no section .hip_fatbin"),
    ] {
        std::fs::write(&file, bytes).expect("a file");
        for arguments in [&["launch", path, "k", "--groups", "1"][..], &[path]] {
            let (_, stderr) = said(&kfdrun(arguments), 126);
            assert!(stderr.contains(words) && stderr.lines().count() == 1, "'{words}' is missing in: {stderr}");
        }
    }
    std::fs::remove_file(&file).expect("the file goes");
}

/// A file in a folder of its own, and what `kfdrun launch --script` makes of it.
fn script(name: &str, text: &str, options: &[&str]) -> (Output, PathBuf) {
    let folder = std::env::temp_dir().join(format!("kfdrun-script-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let images = image("").to_str().expect("a path of text").to_owned();
    let file = folder.join("run.toml");
    std::fs::write(&file, text.replace("IMAGES/", &images)).expect("a file");
    let path = file.to_str().expect("a path of text");
    (kfdrun(&[&["launch", "--script", path], options].concat()), folder)
}

const PIPELINE: &str = r#"
version = 1
image = "IMAGES/arguments.gfx90a"
tolerance = "1e-6"

[buffers]
first = "f32[100]=iota"
second = "f32[100]"
third = "f32[100]"
words = "u32[3]"

[define]
elsewhere = "shared"

[[launch]]
kernel = "scale"
items = 100
group-size = 64
args = ["first", "second", 2.0, 100]

[[launch]]
image = "IMAGES/variables.gfx90a"
kernel = "count.kd"
groups = 1
group-size = [1]
args = ["words"]
set-global = { counter = 41, weights = "f32[]=1,2,3,4" }
dump-global = ["counter:u32"]
repeat = 2

[[launch]]
kernel = "scale"
groups = [2, 1]
group-size = [64, 1, 1]
args = ["second", "third", "f32:5", 100]

[dump]
words = "-"
third = "third.npy"

[expect]
third = "third.bin"
"#;

#[test]
fn launches_that_share_buffers() {
    let text = PIPELINE.replace("words = \"u32[3]\"", "words = \"u32[3]\"\nshared = \"u32[2]=fill:6\"");
    let folder = std::env::temp_dir().join(format!("kfdrun-script-pipeline-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let expected: Vec<u8> = (0..100).flat_map(|i| (10.0 * i as f32).to_le_bytes()).collect();
    std::fs::write(folder.join("third.bin"), &expected).expect("a file");
    let (output, folder) = script("pipeline", &text, &["-v"]);
    let (stdout, stderr) = said(&output, 0);
    assert_eq!(stdout, "counter: 43\nwords: 42 5 6\n");
    for words in ["scale: 2 x 1 x 1 work-groups", "count: 2 launches"] {
        assert!(stderr.contains(words), "'{words}' is missing in: {stderr}");
    }
    assert!(std::fs::read(folder.join("third.npy")).expect("a file beside the script").ends_with(&expected));
    std::fs::write(folder.join("third.bin"), vec![0; 400]).expect("a file");
    let (_, stderr) = said(&script("pipeline", &text, &[]).0, 1);
    assert!(stderr.contains("buffer third: 99 of 100 elements differ"), "{stderr}");
    std::fs::remove_dir_all(&folder).expect("the folder goes");
}

#[test]
fn mistakes_in_a_script_are_found_before_anything_runs() {
    let whole = PIPELINE
        .replace("words = \"u32[3]\"", "words = \"u32[3]\"\nshared = \"u32[2]\"")
        .replace("[expect]\nthird = \"third.bin\"\n", "");
    for (from, to, status, words) in [
        ("version = 1", "version = 2", 2, "version 2 of the form is not known"),
        ("repeat = 2", "again = 2", 2, "unknown field `again`"),
        ("repeat = 2", "repeat = 0", 2, "launch 1: repeat is 0"),
        (
            "\"f32:5\", 100",
            "\"u32:5\", 100",
            2,
            "launch 2: argument 2, 'u32:5': the metadata says by_value, 4 bytes, float",
        ),
        ("\"f32:5\", 100", "\"f32:5\"", 2, "launch 2: kernel scale: the number of arguments is 3, it takes 4"),
        ("[\"words\"]", "[\"u32[3]\"]", 2, "launch 1: argument 0, 'u32[3]': give it a name under [buffers]"),
        ("[\"words\"]", "[\"wards\"]", 2, "or the name of a buffer"),
        (
            "groups = [2, 1]",
            "groups = [2, 1]\nitems = 4",
            2,
            "launch 2: it needs a grid: groups or items, and not both",
        ),
        ("groups = [2, 1]", "groups = nan", 2, "groups"),
        ("groups = [2, 1]", "groups = 0", 2, "launch 2: groups: [0] is not a size"),
        ("group-size = [64, 1, 1]", "group-size = 2048", 126, "2048"),
        ("group-size = [64, 1, 1]", "group-size = 64\ndynamic-lds = 1000000", 126, "LDS"),
        ("count.kd", "cuont", 126, "launch 1: "),
        ("[dump]\nwords", "[dump]\nwards", 2, "wards: no such buffer"),
        ("shared = \"u32[2]\"", "5 = \"u32[2]\"", 2, "that name reads as an argument"),
        ("elsewhere = \"shared\"", "counter = \"shared\"", 2, "the image defines it"),
        ("elsewhere = \"shared\"", "nowhere = \"shared\"", 2, "does not need such a symbol"),
        ("tolerance = \"1e-6\"", "tolerance = \"much\"", 2, "'much' is not a number"),
        ("IMAGES/variables.gfx90a", "IMAGES/variables.gfx1100", 126, "gfx1100"),
        ("IMAGES/variables.gfx90a", "IMAGES/nothing", 127, "no such file"),
    ] {
        assert!(whole.contains(from), "{from}");
        let (output, folder) = script("mistakes", &whole.replace(from, to), &[]);
        let (stdout, stderr) = said(&output, status);
        assert!(stderr.contains(words), "'{words}' is missing in: {stderr}");
        assert_eq!(stdout, "", "{to}");
        std::fs::remove_dir_all(&folder).expect("the folder goes");
    }
    said(&kfdrun(&["launch", "--script", "x.toml", "--groups", "1"]), 2);
    said(&kfdrun(&["launch", "x.co"]), 2);
}

/// Runs a program in GCC's form.
fn gcn(target: &str, options: &[&str], arguments: &[&str]) -> Output {
    limit::output(
        Command::new(env!("CARGO_BIN_EXE_kfdrun"))
            .args(["--device", "emu"])
            .args(options)
            .arg(image(&format!("gcn.{target}")))
            .args(arguments),
    )
}

#[test]
fn programs_of_gccs_form() {
    for target in ["gfx900", "gfx906", "gfx90a", "gfx1100"] {
        let body = "heap 10485760\nhalf 0.500000\nno newline\n";
        let (stdout, stderr) = said(&gcn(target, &[], &["one", "two words"]), 3);
        let expected = format!("lanes 64\nargument one\nargument two words\n{body}fini\n");
        assert_eq!((stdout, stderr.as_str()), (expected, ""), "{target}");
        for (what, status, fini, words) in
            [("e", 7, "", ""), ("a", 134, "", ""), ("u", 255, "fini\n", "exit value was never set")]
        {
            let (stdout, stderr) = said(&gcn(target, &[], &[what]), status);
            assert_eq!(stdout, format!("lanes 64\nargument {what}\n{body}{fini}"), "{target}");
            assert!(stderr.contains(words), "{target}: {stderr}");
        }
        let (stdout, _) = said(&gcn(target, &[], &["w"]), 2);
        let numbers: Vec<u32> = stdout.lines().filter_map(|line| line.parse().ok()).collect();
        assert_eq!(numbers, (0..2500).collect::<Vec<_>>(), "{target}: the ring goes round twice");
        let (stdout, stderr) = said(&gcn(target, &["--timeout", "0.4"], &["h"]), 124);
        assert!(stdout.ends_with(body) && stderr.contains("main"), "{target}: what it printed is not lost: {stderr}");
        let (stdout, _) = said(&gcn(target, &["--heap", "65536"], &["one"]), 2);
        assert!(stdout.contains("heap 65536\n"), "{target}: {stdout}");
        let (_, stderr) = said(&gcn(target, &["--threads", "2"], &[]), 126);
        assert!(stderr.contains("1 x 64 x 1"), "{stderr}");
    }
}

/// GCC 13 passes a stack, whose size is gcn-run's variable.
#[test]
fn programs_of_gcc_13() {
    for target in ["gfx90a", "gfx1100"] {
        let run = |size: Option<&str>| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_kfdrun"));
            command.args(["--device", "emu"]).arg(image(&format!("gcn13.{target}"))).env_remove("GCN_STACK_SIZE");
            limit::output(command.envs(size.map(|size| ("GCN_STACK_SIZE", size))))
        };
        for (size, bytes) in [(None, "1048576"), (Some("65536"), "65536")] {
            let (stdout, _) = said(&run(size), 1);
            let expected =
                format!("lanes 64\nheap 10485760\nstack {bytes}\narena 0\nhalf 0.500000\nno newline\nfini\n");
            assert_eq!(stdout, expected, "{target}");
        }
        for size in ["", "0", "many", "4294967296"] {
            let (_, stderr) = said(&run(Some(size)), 2);
            assert!(stderr.contains("GCN_STACK_SIZE"), "{target}: {stderr}");
        }
    }
}

/// An offload bundle (Clang documentation, "Bundled Binary File Layout") of images of a program.
fn bundle(name: &str, targets: &[&str]) -> Vec<u8> {
    let ids = targets.iter().map(|target| format!("hipv4-amdgcn-amd-amdhsa--{target}"));
    let images = targets.iter().map(|target| std::fs::read(image(&format!("{name}.{target}"))).expect("an image"));
    let entries: Vec<(String, Vec<u8>)> = ids.zip(images).collect();
    let mut header = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    header.extend((entries.len() as u64).to_le_bytes());
    let mut at = header.len() + entries.iter().map(|(id, _)| 24 + id.len()).sum::<usize>();
    for (id, image) in &entries {
        for word in [at as u64, image.len() as u64, id.len() as u64] {
            header.extend(word.to_le_bytes());
        }
        header.extend(id.bytes());
        at += image.len();
    }
    header.extend(entries.into_iter().flat_map(|(_, image)| image));
    header
}

#[test]
fn bundles_run_on_the_device_there_is() {
    let file = std::env::temp_dir().join(format!("kfdrun-bundle-{}.hipfb", std::process::id()));
    std::fs::write(&file, bundle("sum", &["gfx900", "gfx90a", "gfx1100"])).expect("a file");
    let path = file.to_str().expect("a path of text");
    for (device, entry, target) in [
        ("emu:gfx90a", None, "gfx90a"),
        ("emu:gfx1100", None, "gfx1100"),
        ("emu", Some("2"), "gfx1100"),
        ("emu", Some("gfx90a"), "gfx90a"),
    ] {
        let mut options = vec!["-v", "--device", device];
        options.extend(entry.iter().flat_map(|entry| ["--entry", entry]));
        let output =
            limit::try_output(Command::new(env!("CARGO_BIN_EXE_kfdrun")).args(&options).args([path, "20", "22"]));
        let (_, stderr) = said(&output.expect("kfdrun starts"), 42);
        assert!(stderr.contains(&format!("for {target},")), "{stderr}");
    }
    let output = limit::try_output(Command::new(env!("CARGO_BIN_EXE_kfdrun")).args(["--device", "emu:gfx1030", path]));
    let (_, stderr) = said(&output.expect("kfdrun starts"), 126);
    assert!(stderr.contains("gfx1030") && stderr.contains("gfx1100"), "{stderr}");
    let (_, stderr) = said(&kfdrun(&["--entry", "gfx942", path]), 126);
    assert!(stderr.contains("no entry is 'gfx942'"), "{stderr}");

    let (text, _) = said(&kfdrun(&["inspect", path]), 0);
    assert!(
        text.contains("2: hipv4-amdgcn-amd-amdhsa--gfx1100: code object") && text.contains("kernel _start"),
        "{text}"
    );
    let (json, _) = said(&kfdrun(&["--entry", "1", "inspect", "--json", path]), 0);
    for part in
        ["\"schema_version\": 1", "\"arch\": \"gfx90a\"", "\"value_kind\": \"global_buffer\"", "\"lds_bytes\": 0"]
    {
        assert!(json.contains(part), "{part} is missing in: {json}");
    }
    assert!(!json.contains("gfx1100"), "only the entry that is named");
    std::fs::remove_file(&file).expect("the file goes");
}

#[test]
fn kernels_by_their_names_in_the_source() {
    for (name, argument, expected) in [
        ("_Z5twicePj", "out:u32[3]=1,2,3", "0: 2 4 6\n"),
        ("_Z5twicePj.kd", "out:u32[3]=1,2,3", "0: 2 4 6\n"),
        ("twice(float*)", "out:f32[3]=1,2,3", "0: 2 4 6\n"),
        ("twice( unsigned int * )", "out:u32[3]=1,2,3", "0: 2 4 6\n"),
    ] {
        let options = ["--groups", "1", "--group-size", "3", "--arg", argument];
        assert_eq!(said(&launch("names.gfx1100", name, &options), 0).0, expected, "{name}");
    }
    for name in ["shapes::scale<float>", "shapes::scale<float>(float*, float)"] {
        let options = ["--groups", "1", "--group-size", "3", "--arg", "out:f32[3]=1,2,3", "--arg", "3"];
        assert_eq!(said(&launch("names.gfx90a", name, &options), 0).0, "0: 3 6 9\n", "{name}");
    }
    // The name has the types that the metadata has not.
    for (second, words) in
        [("u32:3", "the metadata says by_value, 4 bytes, float; u32 is not float"), ("1e999", "1e999")]
    {
        let options = ["--groups", "1", "--group-size", "3", "--arg", "f32[3]", "--arg", second];
        let (_, stderr) = said(&launch("names.gfx90a", "shapes::scale<float>", &options), 2);
        assert!(stderr.contains(words), "{stderr}");
    }
    let refused = |name: &str| said(&launch("names.gfx1100", name, &["--groups", "1", "--group-size", "3"]), 126).1;
    let text = [refused("twice"), refused("shapes::scale"), refused("twicf(float*)")].concat();
    insta::assert_snapshot!(text.replace(image("").to_str().expect("a path of text"), ""));
    let (text, _) = said(&kfdrun(&["inspect", image("names.gfx1100").to_str().expect("a path of text")]), 0);
    assert!(text.contains("kernel _Z5twicePj\n    twice(unsigned int*)\n"), "{text}");
}

#[test]
fn a_kernel_library_is_not_a_program() {
    let path = image("arguments.gfx90a");
    let (_, stderr) = said(&kfdrun(&[path.to_str().expect("a path of text")]), 126);
    assert!(stderr.contains("_start") && stderr.contains("kfdrun launch"), "{stderr}");
}

#[test]
fn hidden_arguments() {
    for target in ["gfx90a", "gfx1100"] {
        let options = ["--items", "300,5", "--group-size", "64,2", "--arg", "out:u32[64]", "--arg", "64"];
        let (stdout, _) = said(&launch(&format!("hidden.{target}"), "hidden", &options), 0);
        let words: Vec<u32> =
            stdout.trim().trim_start_matches("0: ").split(' ').map(|word| word.parse().expect("a number")).collect();
        assert_eq!(words[..3], [4, 2, 1], "{target}: whole work-groups");
        assert_eq!(words[3..6], [64 | 2 << 16, 1 | 44 << 16, 1], "{target}: sizes x y, then z and the remainders");
        assert_eq!(words[16] & 0xffff, 2, "{target}: dimensions");
        assert!(words[10..16].iter().all(|word| *word == 0), "{target}: global offsets");
        assert!(words[22..24].iter().chain(&words[26..30]).all(|word| *word == 0), "{target}: what is null");
        assert!(words[20..22].iter().any(|word| *word != 0), "{target}: the hostcall buffer");
        assert!(words[24..26].iter().any(|word| *word != 0), "{target}: the device heap");
    }
}

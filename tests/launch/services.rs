//! What a kernel asks of its host: hidden arguments, printf, hostcall, the address sanitizer.

use super::*;

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
fn opencl_strings_in_front_of_what_looks_like_text() {
    let expected = "[dbab]<4407873>[ bbdY Z]
[bbbb] [Yc0Za0YYXb  d][cbYXcda]
<65>[cXcb][c]<65>[ XXZbZXZ0Zdbc]
[Zaa0ZXad] [ca0d0daddXa]{2}
[0 daX0ac]Azz[Z0  ba]
";
    for name in ["prints.gfx90a", "prints.gfx1201", "prints-v4.gfx1030", "prints-libclc.gfx1100"] {
        let output = launch(name, "texts", &single(&[]));
        assert_eq!(said(&output, 0), (expected.to_owned(), String::new()), "{name}");
    }
}

#[test]
fn opencl_arguments_that_the_compiler_mistakes() {
    for name in ["prints.gfx90a", "prints.gfx1100"] {
        let (stdout, stderr) = said(&launch(name, "mistaken", &single(&[])), 0);
        assert_eq!(stdout, "   42|%s|%d\nabcd|   42|%s\n1.500000|abcd|efgh|7\n", "{name}");
        assert!(stderr.contains("printf: 3 conversions without an argument"), "{name}: {stderr}");
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
fn a_record_that_found_no_room_is_suspected() {
    // What was printed, and whether it was told that more may be missing.
    let lost = |name: &str, kernel: &str, options: &[&'static str]| {
        let (stdout, stderr) = said(&launch(name, kernel, &single(options)), 0);
        let line = stderr.strip_suffix('\n').unwrap_or(&stderr);
        let is_told =
            line.starts_with("kfdrun: printf buffer: ") && line.ends_with("--printf-buffer BYTES makes it larger");
        assert!(line.is_empty() || (is_told && line.lines().count() == 1), "{name}: {stderr}");
        (stdout, is_told)
    };
    // A record of 84 bytes; 24 of the buffer are never used.
    let line = "[a text of more than sixty letters, which is longer than the small buffers are]\n";
    for (size, expected, is_told) in [("104", "", true), ("108", line, true), ("188", line, true), ("192", line, false)]
    {
        for name in ["prints.gfx90a", "prints.gfx1100"] {
            let found = lost(name, "long_text", &["--printf-buffer", size]);
            assert_eq!(found, (expected.to_owned(), is_told), "{name} with {size}");
        }
    }
    let text: &'static str = format!("u8[]={}0", "65,".repeat(1000)).leak();
    let line = format!("{}\n", "A".repeat(1000));
    for target in ["gfx90a", "gfx1100"] {
        let name = format!("buffered.{target}");
        let print = |count, room| lost(&name, "lines", &["--arg", text, "--arg", count, "--printf-buffer", room]);
        assert_eq!(print("1", "1024"), (String::new(), true));
        assert_eq!(print("3", "2600"), (line.repeat(2), true));
        assert_eq!(print("3", "4194304"), (line.repeat(3), false));
        assert_eq!(print("0", "4194304"), (String::new(), false), "nothing was printed");
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
fn a_format_of_two_calls() {
    for target in ["gfx90a", "gfx1100"] {
        let output = launch(&format!("buffered.{target}"), "again", &single(&["--arg", "5"]));
        assert_eq!(said(&output, 0), ("n=5\nn=4\n".to_owned(), String::new()), "{target}");
    }
}

#[test]
fn null_strings_of_hip() {
    let text = "u8[]=116,101,120,116,0";
    for target in ["gfx90a", "gfx1100"] {
        let name = format!("buffered.{target}");
        let (stdout, stderr) = said(&launch(&name, "strings", &single(&["--arg", "null"])), 0);
        let expected = "(null)\n[(null)] 5\n[(null)]   7 literal (nil) 1.500000 (null)\n";
        assert_eq!((stdout.as_str(), stderr.as_str()), (expected, ""), "{target}");
        let (stdout, stderr) = said(&launch(&name, "strings", &single(&["--arg", text])), 0);
        assert!(stdout.starts_with("text\n[text] 5\n[text]   7 literal 0x"), "{target}: {stdout}");
        assert!(stdout.ends_with(" 1.500000 text\n") && stderr.is_empty(), "{target}: {stdout}{stderr}");
        let (stdout, stderr) = said(&launch(&name, "two", &single(&["--arg", "null", "--arg", "null"])), 0);
        assert_eq!((stdout.as_str(), stderr.as_str()), ("[(null)] [(null)] 5\n", ""), "{target}");
        let (stdout, stderr) = said(&launch(&name, "two", &single(&["--arg", text, "--arg", "null"])), 0);
        assert_eq!(stdout, "[text] [(null)] 5\n", "{target}");
        assert!(stderr.contains("1 record can be read in more than one way"), "{target}: {stderr}");
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

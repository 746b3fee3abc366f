//! Arguments, buffers, variables and names from the command line.

use super::*;

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
        said(&launch("arguments.gfx90a", "shaped", &["--groups", "1", "--group-size", "32", "--arg", "u32[64]"]), 2);
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
        (
            &["--arg", "u32:1", "--arg", "4"][..],
            "argument 2, 'u32:1': the metadata says by_value, 4 bytes at offset 16, float",
        ),
        (&["--arg", "1", "--arg", "-1"], "argument 3, '-1': the metadata says by_value, 4 bytes at offset 20, uint"),
        (&["--arg", "1"], "the number of arguments is 3, it takes 4"),
        (&["--arg", "1", "--arg", "local:4"], "write a number"),
        (&["--arg", "1", "--arg", "4", "--dump", "7=-"], "no such buffer; buffers are 0, 1"),
        (&["--arg", "1", "--arg", "4", "--expect", "0=/none"], "/none"),
        (
            &["--arg", "1", "--arg", "4294967296"],
            "argument 3, '4294967296': the metadata says by_value, 4 bytes at offset 20, uint",
        ),
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
        (
            "u32[4]",
            "argument 0, 'u32[4]': the metadata says global_buffer, 8 bytes at offset 0, float*; its elements are float, not u32",
        ),
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
        &["--items", "4294967295,4294967295,4294967295", "--group-size", "1"],
    ] {
        said(&launch("arguments.gfx90a", "scale", bad), 2);
    }
    let (_, stderr) = said(&launch("arguments.gfx90a", "scale", &["--groups", "1"]), 2);
    assert!(stderr.contains("--group-size"), "{stderr}");
    let (_, stderr) = said(&launch("arguments.gfx90a", "scael.kd", &ONE), 126);
    assert!(stderr.contains("no kernel 'scael'; its kernels are scale"), "{stderr}");
    let options =
        ["--groups", "1", "--group-size", "64", "--arg", "u32[64]", "--arg", "local:65536", "--arg", "local:1024"];
    let (_, stderr) = said(&launch("arguments.gfx90a", "reverse", &options), 2);
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
        let (_, stderr) = said(&launch(&name, "count", &single(&["--arg", "u32[3]", "--set-global", "nothing=1"])), 2);
        assert!(stderr.contains("counter"), "{stderr}");
        let options = single(&["--arg", "u32[3]", "--set-global", "counter=u64:1"]);
        assert!(said(&launch(&name, "count", &options), 2).1.contains("the variable has 4"));
    }
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
        [("u32:3", "the metadata says by_value, 4 bytes at offset 8, float; u32 is not float"), ("1e999", "1e999")]
    {
        let options = ["--groups", "1", "--group-size", "3", "--arg", "f32[3]", "--arg", second];
        let (_, stderr) = said(&launch("names.gfx90a", "shapes::scale<float>", &options), 2);
        assert!(stderr.contains(words), "{stderr}");
    }
    // As c++filt prints a template, with what it returns.
    let options = ["--groups", "1", "--group-size", "1", "--arg", "out:u32[1]=4", "--arg", "2"];
    let name = "void shapes::scale<unsigned int>(unsigned int*, unsigned int)";
    assert_eq!(said(&launch("names.gfx1100", name, &options), 0).0, "0: 8\n");
    let (_, stderr) =
        said(&launch("names.gfx1100", "few", &["--groups", "3", "--group-size", "1", "--arg", "i32[1]"]), 2);
    assert!(stderr.contains("its .max_num_workgroups_x is 2"), "{stderr}");
    let refused = |name: &str| said(&launch("names.gfx1100", name, &["--groups", "1", "--group-size", "3"]), 126).1;
    let text = [refused("twice"), refused("shapes::scale"), refused("twicf(float*)")].concat();
    insta::assert_snapshot!(text.replace(image("").to_str().expect("a path of text"), ""));
    let (text, _) = said(&kfdrun(&["inspect", image("names.gfx1100").to_str().expect("a path of text")]), 0);
    assert!(text.contains("kernel _Z5twicePj\n    twice(unsigned int*)\n"), "{text}");
}

/// A command whose time is set by the test.
fn kfdrun_for(seconds: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kfdrun"));
    limit::output(command.args(["--device", "emu", "--timeout", seconds]).args(arguments))
}

#[test]
fn reading_ends_with_the_time_or_at_a_bound() {
    let fifo = std::env::temp_dir().join(format!("kfdrun-fifo-{}", std::process::id()));
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).expect("a fifo");
    let (pipe, path) = (fifo.to_str().expect("a path of text"), image("arguments.gfx90a"));
    let path = path.to_str().expect("a path of text");
    let (contents, expected) = (format!("f32[]=@{pipe}"), format!("0={pipe}"));
    let scale = |first: &str, more: &[&str], seconds: &str| {
        let fixed = ["launch", path, "scale", "--groups", "1", "--group-size", "64", "--arg", first];
        kfdrun_for(seconds, &[&fixed, &["--arg", "f32[4]", "--arg", "2", "--arg", "4"][..], more].concat())
    };
    // Nobody writes to it.
    for output in [
        scale(&contents, &[], "0.05"),
        scale("f32[4]", &["--expect", &expected], "0.05"),
        kfdrun_for("0.05", &["launch", "--script", pipe]),
        kfdrun_for("0.05", &["launch", pipe, "scale", "--groups", "1"]),
        kfdrun_for("0.05", &[pipe]),
        kfdrun_for("0.05", &["inspect", pipe]),
    ] {
        let (_, stderr) = said(&output, 124);
        assert!(
            stderr.contains(pipe) && stderr.contains("--timeout 0.05 s are over: 0 bytes have been read"),
            "{stderr}"
        );
    }
    let (_, stderr) = said(&scale("f32[1000000]", &[], "0.000001"), 124);
    assert!(stderr.contains("buffer 0 is being filled: 0 of 4000000 bytes are"), "{stderr}");
    // Somebody does.
    let writer = std::thread::spawn({
        let fifo = fifo.clone();
        move || std::fs::write(fifo, [1f32, 2.0, 3.0, 4.0].map(f32::to_le_bytes).concat())
    });
    let (stdout, _) = said(&scale(&contents, &["--dump", "1=-"], "120"), 0);
    assert_eq!(stdout, "1: 2 4 6 8\n");
    writer.join().expect("a thread").expect("it was read");
    // No end, but a known count.
    said(&scale("f32[4]=@/dev/zero", &["--expect", "1=/dev/zero"], "120"), 0);
    let (_, stderr) = said(&scale("f32[]=@/dev/zero", &[], "120"), 2);
    assert!(stderr.contains("it goes on after 1024 MiB"), "{stderr}");
    // What comes through a pipe is all meant.
    let writer = std::thread::spawn({
        let fifo = fifo.clone();
        move || std::fs::write(fifo, vec![0; 20])
    });
    let (_, stderr) = said(&scale(&format!("f32[4]=@{pipe}"), &[], "120"), 2);
    assert!(stderr.contains("it has 20 bytes or more; 4 elements of f32 have 16"), "{stderr}");
    writer.join().expect("a thread").expect("it was read");
    std::fs::remove_file(&fifo).expect("the fifo goes");
}

#[test]
fn types_are_checked_before_contents() {
    let options = with(&["--arg", "f64[4]=@/none", "--arg", "f32[4]", "--arg", "1", "--arg", "4"]);
    let (_, stderr) = said(&launch("arguments.gfx90a", "scale", &options), 2);
    assert!(stderr.contains("argument 0") && stderr.contains("its elements are float, not f64"), "{stderr}");
}

#[test]
fn variables_are_data_of_a_known_size() {
    for (option, words) in [
        (["--dump-global", "counter:u64"], "the variable has 4 bytes, which are no whole u64 of 8"),
        (["--dump-global", "counter:u99"], "'u99' is not a type: types are i8"),
        (["--dump-global", "count"], "it is code, not a variable"),
        (["--dump-global", "count.kd"], "it is a kernel's descriptor, not a variable"),
        (["--set-global", "count=hex:00"], "it is code, not a variable"),
        (["--set-global", "count.kd=hex:00"], "it is a kernel's descriptor, not a variable"),
        (["--set-global", "elsewhere=1"], "the image does not define it: --define gives it an address"),
        (["--set-global", "nope=1"], "the image has no such variable; its 2 are "),
        (["--set-global", "weights=f32[]=1,2,3"], "f32[]=1,2,3 has 12 bytes, the variable has 16"),
    ] {
        let fixed = single(&["--arg", "u32[3]", "--define", "elsewhere=u32[2]"]);
        let (stdout, stderr) = said(&launch("variables.gfx90a", "count", &[&fixed, &option[..]].concat()), 2);
        assert!(stderr.contains(words) && stdout.is_empty(), "'{words}' is missing in: {stderr}");
        assert!(stderr.contains(option[0]), "{stderr}");
    }
}

#[test]
fn nothing_is_given_twice() {
    let folder = std::env::temp_dir().join(format!("kfdrun-twice-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (direct, around) = (folder.join("a.bin"), folder.join(".").join("a.bin"));
    let dumps = [&direct, &around].map(|path| path.to_str().expect("a path of text").to_owned());
    let (first, second) = (format!("0={}", dumps[0]), format!("elsewhere={}", dumps[1]));
    for (options, words) in [
        (["--define", "elsewhere=u32[2]", "--define", "elsewhere=0x1000"], "--define elsewhere: it is given twice"),
        (["--define", "elsewhere=0x1000", "--define", "elsewhere=u32[2]"], "--define elsewhere: it is given twice"),
        (["--set-global", "counter=1", "--set-global", "counter=2"], "--set-global counter: it is given twice"),
        (["--dump-global", "counter", "--dump-global", "counter"], "--dump-global counter: it is given twice"),
        (["--expect", "0=fill:1", "--expect", "0=fill:2"], "--expect 0: it is given twice"),
        (["--dump", "0=-", "--dump", "0=-"], "--dump 0=-: it is given twice"),
        (["--dump", &first, "--dump", &second], "a.bin: another dump goes to that file already"),
    ] {
        let defined: &[&str] = if options[0] == "--define" { &[] } else { &["--define", "elsewhere=u32[2]"] };
        let arguments = [&single(&["--arg", "u32[3]"])[..], defined, &options].concat();
        let (stdout, stderr) = said(&launch("variables.gfx90a", "count", &arguments), 2);
        assert!(stderr.contains(words) && stdout.is_empty(), "'{words}' is missing in: {stderr}");
    }
    assert!(!direct.exists(), "nothing was launched and nothing is left");
    std::fs::remove_dir_all(&folder).expect("the folder goes");
}

#[test]
fn expectations_say_which_forms_they_have() {
    for what in ["1=4.5", "1=u32[1]=5", "1=nothing.npy", "1=fill:x"] {
        let options = with(&["--arg", "out:u32[64]", "--arg", "local:256", "--arg", "local:4", "--expect"]);
        let what = what.replace("1=", "0=");
        let (_, stderr) = said(&launch("arguments.gfx90a", "reverse", &[&options, &[what.as_str()][..]].concat()), 2);
        assert!(stderr.contains(&format!("--expect {what}: there is no file")), "{stderr}");
        assert!(stderr.contains("zeros, iota, fill:VALUE") || stderr.contains("'x' is not"), "{stderr}");
    }
}

/// What is there stays, and a device is read as far as it is needed.
#[test]
fn devices_and_standard_output_by_their_names() {
    let options = with(&["--arg", "u8[64]=@/dev/zero", "--arg", "u8[64]", "--arg", "1", "--arg", "4"]);
    let path = std::env::temp_dir().join(format!("kfdrun-stdout-{}", std::process::id()));
    std::fs::write(&path, "before\n").expect("a file");
    let file = std::fs::File::options().append(true).open(&path).expect("the file");
    let image = image("arguments.gfx90a");
    let child = Command::new(env!("CARGO_BIN_EXE_kfdrun"))
        .args(["--device", "emu", "--timeout", "120", "launch"])
        .args([image.to_str().expect("a path of text"), "scale"])
        .args(options)
        .args(["--dump", "1=/dev/stdout", "--dump", "1=-"])
        .stdin(std::process::Stdio::null())
        .stdout(file)
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("it starts");
    said(&limit::finish(child), 0);
    let text = std::fs::read(&path).expect("the file");
    std::fs::remove_file(&path).expect("the file goes");
    assert_eq!(text, [b"before\n", &[0; 64][..], format!("1:{}\n", " 0".repeat(64)).as_bytes()].concat());
}

#[test]
fn a_dump_waits_for_a_reader_no_longer_than_the_run_may() {
    let fifo = std::env::temp_dir().join(format!("kfdrun-dump-{}", std::process::id()));
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).expect("a fifo");
    let (dump, path) = (format!("1={}", fifo.display()), image("arguments.gfx90a"));
    let fixed = ["launch", path.to_str().expect("a path of text"), "scale", "--groups", "1", "--group-size", "64"];
    let arguments = ["--arg", "f32[4]=iota", "--arg", "f32[4]", "--arg", "2", "--arg", "4", "--dump", &dump];
    let all = [&fixed[..], &arguments].concat();
    let (_, stderr) = said(&kfdrun_for("0.5", &all), 124);
    assert!(stderr.contains(fifo.to_str().expect("a path of text")) && stderr.contains("nobody read it"), "{stderr}");
    let reader = std::thread::spawn({
        let fifo = fifo.clone();
        move || std::fs::read(fifo)
    });
    said(&kfdrun_for("120", &all), 0);
    let bytes = reader.join().expect("a thread").expect("it was written");
    assert_eq!(bytes, [0f32, 2.0, 4.0, 6.0].map(f32::to_le_bytes).concat());
    std::fs::remove_file(&fifo).expect("the fifo goes");
}

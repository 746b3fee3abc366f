//! Files that are no kernels to launch: containers, other things, programs of other makes.

use super::*;

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

#[test]
fn a_kernel_library_is_not_a_program() {
    let path = image("arguments.gfx90a");
    let (_, stderr) = said(&kfdrun(&[path.to_str().expect("a path of text")]), 126);
    assert!(stderr.contains("_start") && stderr.contains("kfdrun launch"), "{stderr}");
}

/// An offload bundle (Clang documentation, "Bundled Binary File Layout") of images by the targets they are for.
fn bundle(images: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let id = |target: &str| format!("hipv4-amdgcn-amd-amdhsa--{target}");
    let entries: Vec<(String, &[u8])> = images.iter().map(|(target, image)| (id(target), image.as_slice())).collect();
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

/// Where the process' XNACK mode can be switched, code that takes it as it is still goes first.
#[test]
fn code_for_the_xnack_mode_there_is_goes_first() {
    let [on, off] = ["kernels-xnack", "kernels-noxnack"]
        .map(|name| std::fs::read(image(&format!("{name}.gfx90a"))).expect("an image"));
    let file = std::env::temp_dir().join(format!("kfdrun-xnack-{}.hipfb", std::process::id()));
    for order in [[0, 1], [1, 0]] {
        let entries = [("gfx90a:xnack+", on.clone()), ("gfx90a:xnack-", off.clone())];
        std::fs::write(&file, bundle(&order.map(|index| entries[index].clone()))).expect("a file");
        let path = file.to_str().expect("a path of text");
        let options = ["-v", "launch", path, "persist", "--groups", "1", "--group-size", "1", "--arg", "u32[1]"];
        let (_, stderr) = said(&kfdrun(&options), 0);
        assert!(stderr.contains("for gfx90a:xnack-,"), "{stderr}");
    }
    std::fs::remove_file(&file).expect("the file goes");
}

#[test]
fn bundles_run_on_the_device_there_is() {
    let file = std::env::temp_dir().join(format!("kfdrun-bundle-{}.hipfb", std::process::id()));
    let images = ["gfx900", "gfx90a", "gfx1100"]
        .map(|target| (target, std::fs::read(image(&format!("sum.{target}"))).expect("an image")));
    std::fs::write(&file, bundle(&images)).expect("a file");
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
        let (_, stderr) = said(&gcn(target, &["--threads", "2"], &[]), 2);
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

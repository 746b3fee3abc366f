//! Whole runs of the `kfdrun` command on the emulated machine: the program's output, the exit status and our words.

#[path = "limit.rs"]
mod limit;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const TARGETS: [&str; 7] = ["gfx900", "gfx906", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201"];

fn image(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/programs/images").join(name)
}

/// Runs `kfdrun` with `options`, an image and its arguments.
fn kfdrun(options: &[&str], image: &Path, arguments: &[&str]) -> Output {
    limit::output(Command::new(env!("CARGO_BIN_EXE_kfdrun")).args(options).arg(image).args(arguments))
}

fn emulated(options: &[&str], image: &Path, arguments: &[&str]) -> Output {
    kfdrun(&[&["--device", "emu", "--timeout", "120"], options].concat(), image, arguments)
}

/// A run that the test watches: nothing to read for it, and both its outputs in pipes.
fn started(options: &[&str], name: &str) -> std::process::Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kfdrun"));
    command.args(["--device", "emu"]).args(options).arg(image(name));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("kfdrun starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Asserts an exit status and shows what was said otherwise.
#[track_caller]
fn status(output: &Output, expected: i32) -> String {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(expected), "stdout: {}\nstderr: {said}", text(&output.stdout));
    said
}

#[test]
fn the_value_of_main_becomes_the_exit_status() {
    for target in TARGETS {
        let sum = image(&format!("sum.{target}"));
        let output = emulated(&[], &sum, &["20", "22"]);
        let said = status(&output, 42);
        assert_eq!(
            (text(&output.stdout), said),
            (String::new(), String::new()),
            "{target}: nothing is said of a good run"
        );
        status(&emulated(&[], &sum, &[]), 0);
    }
}

/// How fast is for the benchmark to say; that calls after a pause are answered at all is for the test.
#[test]
fn calls_after_a_pause_are_answered() {
    for name in ["latency.gfx90a", "latency.gfx1100", "latency-rpc23.gfx90a", "latency-rpc23.gfx1100"] {
        let output = emulated(&[], &image(name), &["short"]);
        assert_eq!(status(&output, 0), "");
        let lines = text(&output.stdout);
        assert_eq!(lines.lines().next(), Some("clock of 100000 kHz"), "the host tells the program the GPU's clock");
        let pauses: Vec<&str> =
            lines.lines().skip(1).filter_map(|line| line.split(" us before a call: median ").next()).collect();
        assert_eq!(pauses, ["0", "200"], "{name}: {lines}");
    }
}

/// The later protocol has a doorbell: between calls the host sleeps in WAIT_EVENTS and the device's interrupt wakes it. When
/// that is lost, it looks by itself soon after.
#[test]
fn a_call_rings_the_hosts_doorbell() {
    for target in ["gfx90a", "gfx1100"] {
        for inject in [&[][..], &["--inject", "lost-interrupt:7"]] {
            let output =
                emulated(&[&["--trace"], inject].concat(), &image(&format!("latency-rpc23.{target}")), &["short"]);
            let trace = text(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{trace}");
            // The completion signal, the two kinds of faults, the doorbell.
            let sleeps = trace.lines().filter(|line| line.contains("WAIT_EVENTS") && line.contains("num_events=4"));
            let woken = sleeps.filter(|line| line.ends_with("wait_result=0} = 0")).count();
            // One of them by the kernel's end, at most.
            assert!(woken > 1, "{target} {inject:?}: {woken} sleeps ended by an event: {trace}");
            let lost = trace.contains("the interrupt of event 2 is lost, as injected");
            assert_eq!(lost, !inject.is_empty(), "{target}: {trace}");
        }
    }
}

#[test]
fn hello_prints_its_arguments() {
    for target in TARGETS {
        let output = emulated(&[], &image(&format!("hello.{target}")), &["one", "two words", "--threads"]);
        status(&output, 0);
        let expected = "Hello from the GPU! argc=4\nargv[1] = one\nargv[2] = two words\nargv[3] = --threads\n";
        assert_eq!(text(&output.stdout), expected, "{target}");
    }
}

/// The layouts of LLVM 19, whose client is found through a pointer, and of the later releases with a doorbell.
#[test]
fn remote_calls_of_other_releases() {
    for name in ["hello-rpc19.gfx90a", "hello-rpc19.gfx1100", "hello-rpc23.gfx90a", "hello-rpc23.gfx1100"] {
        let output = emulated(&["--threads", "3"], &image(name), &["one"]);
        status(&output, 0);
        let said = text(&output.stdout);
        assert_eq!(said.matches("Hello from the GPU! argc=").count(), 3, "{name}: each lane greets: {said}");
    }
}

#[test]
fn calls_that_nobody_serves_are_named() {
    let said = status(&emulated(&[], &image("prices.gfx90a"), &[]), 10);
    assert!(said.contains("unknown remote call (opcode 0x6b000001, lanes 0x1)"), "{said}");
}

#[test]
fn the_programs_environment() {
    for (options, said) in [
        (&["--clean-env"][..], ""),
        (&["--clean-env", "--env", "KFDRUN_A", "--env", "B=2=3", "--env", "C="], "KFDRUN_A=host\nB=2=3\nC=\n"),
        (&["--clean-env", "--env", "B=1", "--env", "KFDRUN_A=ours", "--env", "B=2"], "KFDRUN_A=ours\nB=2\n"),
        (&["--clean-env", "--env", "KFDRUN_NONE"], ""),
    ] {
        let output = limit::output(
            Command::new(env!("CARGO_BIN_EXE_kfdrun"))
                .args(["--device", "emu", "--timeout", "120"])
                .args(options)
                .arg(image("env.gfx90a"))
                .env("KFDRUN_A", "host"),
        );
        status(&output, 0);
        assert_eq!(text(&output.stdout), said, "{options:?}");
    }
    let output = limit::output(
        Command::new(env!("CARGO_BIN_EXE_kfdrun"))
            .args(["--device", "emu", "--timeout", "120", "--env", "KFDRUN_A=ours"])
            .arg(image("env.gfx1100"))
            .envs([("KFDRUN_A", "host"), ("KFDRUN_B", "host")]),
    );
    status(&output, 0);
    let said = text(&output.stdout);
    assert!(said.contains("KFDRUN_B=host\n") && said.contains("KFDRUN_A=ours\n"), "{said}");
    assert_eq!(said.matches("KFDRUN_A=").count(), 1, "{said}");
}

#[test]
fn needs_of_kernels_on_request() {
    let said = status(&emulated(&["--print-resource-usage", "--threads", "256"], &image("groups.gfx90a"), &[]), 0);
    let line = said.lines().find(|line| line.starts_with("kfdrun: _start: ")).unwrap_or_default();
    for part in ["VGPRs ", "AGPRs 0", "SGPRs ", "LDS ", "scratch ", " of 8 waves a SIMD"] {
        assert!(line.contains(part), "'{part}' is missing in: {said}");
    }
    let said = status(&emulated(&["--print-resource-usage", "--stack-size", "4096"], &image("stack.gfx1100"), &[]), 9);
    assert!(said.contains("scratch 4096 bytes a work-item"), "{said}");
}

#[test]
fn options_of_programs_are_only_theirs() {
    for option in
        [&["--heap", "4096"][..], &["--env", "A=1"], &["--clean-env"], &["--threads", "2"], &["--blocks-z", "2"]]
    {
        let output = limit::try_output(
            Command::new(env!("CARGO_BIN_EXE_kfdrun")).args(option).arg("inspect").arg(image("sum.gfx90a")),
        );
        let said = status(&output.unwrap(), 2);
        assert!(said.contains("is for programs"), "{said}");
    }
    let said = status(&emulated(&["--heap", "4096"], &image("sum.gfx90a"), &[]), 2);
    assert!(said.contains("4096 bytes") && said.contains("gcn-run"), "{said}");
    for bad in [["--env", "=1"], ["--env", ""], ["--heap", "0"], ["--heap", "x"]] {
        status(&kfdrun(&bad, &image("sum.gfx90a"), &[]), 2);
    }
}

#[test]
fn data_relocations_and_environment_are_in_place() {
    for target in TARGETS {
        status(&emulated(&[], &image(&format!("data.{target}")), &[]), 0);
    }
}

#[test]
fn recursion_has_a_stack() {
    for target in TARGETS {
        let stack = image(&format!("stack.{target}"));
        status(&emulated(&[], &stack, &[]), 9);
        status(&emulated(&["--stack-size", "65536"], &stack, &["x", "y"]), 13);
    }
}

#[test]
fn work_groups_of_many_shapes() {
    for target in TARGETS {
        for (threads, blocks) in [("1", "1"), ("64", "4"), ("100", "7"), ("1024", "2")] {
            let output =
                emulated(&["--threads", threads, "--blocks", blocks], &image(&format!("groups.{target}")), &[]);
            status(&output, 0);
        }
    }
    status(&emulated(&["--threads", "200", "--blocks", "3"], &image("groups-wave64.gfx1100"), &[]), 0);
}

#[test]
fn a_store_through_null_is_a_memory_fault_that_says_where() {
    for target in TARGETS {
        let said = status(&emulated(&[], &image(&format!("fault.{target}")), &[]), 139);
        let source = "source: main at ./fault.c:3";
        for part in ["memory fault", "0x0", "write", "_start", "pc 0x", source, "inlined in _start at ./start.c:"] {
            assert!(said.contains(part), "{target}: '{part}' is missing in: {said}");
        }
    }
}

#[test]
fn traps_and_illegal_instructions_have_their_own_status() {
    for target in ["gfx90a", "gfx1100"] {
        let said = status(&emulated(&[], &image(&format!("trap.{target}")), &[]), 133);
        assert!(said.contains("s_trap 2") && said.contains("_start") && said.contains("main at ./trap.c:3"), "{said}");
        let said = status(&emulated(&[], &image(&format!("illegal.{target}")), &[]), 132);
        assert!(
            said.contains("ad de 9f bf") && said.contains("_start") && said.contains("main at ./illegal.c:4"),
            "{said}"
        );
    }
}

#[test]
fn a_timeout_says_what_it_waited_for() {
    for target in ["gfx90a", "gfx1100"] {
        let output = kfdrun(&["--device", "emu", "--timeout", "0.3"], &image(&format!("spin.{target}")), &[]);
        let said = status(&output, 124);
        assert!(said.contains("_start") && said.contains("0.3"), "{said}");
        for part in HANG {
            assert!(said.contains(part), "{target}: '{part}' is missing in: {said}");
        }
    }
}

/// Parts of the report on a kernel that spins.
const HANG: [&str; 9] = [
    // The interrupt of _begin may come before the doorbell of _start or after it.
    "completion event's age moved: no, it is ",
    "so the packet was taken and its kernel has not ended: look at the waves",
    "queue 0: read_dispatch_id 1, write_dispatch_id 2, doorbell rung with 1",
    "oldest packet 1: header 0x1502 (kernel dispatch, barrier, acquire system, release system)",
    "work-group (1, 1, 1), grid (1, 1, 1)",
    "is 1\n",
    "waves resident: 1\n",
    "work-group (0, 0, 0) wave 0: ",
    "in _start+0x",
];

#[test]
fn sigquit_has_the_wait_tell_and_goes_on() {
    use nix::sys::signal::{Signal, kill};
    use std::io::{BufRead, BufReader, Read};
    // The run's own limit bounds all that is waited for here.
    let mut child = started(&["--timeout", "60"], "spin.gfx1100");
    let pid = nix::unistd::Pid::from_raw(child.id() as i32);
    // The handler is set before the machine starts; until then SIGQUIT would end the process, so wait for the waves.
    let tasks = format!("/proc/{pid}/task");
    while std::fs::read_dir(&tasks).expect("it runs").count() < 2 {
        assert!(child.try_wait().expect("a child").is_none(), "it ended early");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
    let mut said = String::new();
    // A signal before the kernel runs finds no wave; one after finds it.
    while !said.contains("touched") {
        kill(pid, Signal::SIGQUIT).expect("it runs");
        said.clear();
        while !said.contains("waves resident") && !said.contains("no waves are resident") {
            assert_ne!(stderr.read_line(&mut said).expect("text"), 0, "{said}");
        }
        if said.contains("resident: 1") {
            while !said.contains("touched") {
                assert_ne!(stderr.read_line(&mut said).expect("text"), 0, "{said}");
            }
        }
    }
    for part in ["SIGQUIT", "goes on"].iter().chain(&HANG) {
        assert!(said.contains(part), "'{part}' is missing in: {said}");
    }
    kill(pid, Signal::SIGINT).expect("it still runs");
    stderr.read_to_string(&mut said).expect("text");
    assert_eq!(limit::finish(child).status.code(), Some(130));
    assert!(said.contains("interrupted: kernel _start had not completed"), "{said}");
}

/// As with a program of the host, which SIGPIPE ends.
#[test]
fn a_program_whose_reader_has_gone_ends() {
    use std::io::Read;
    let mut child = started(&["--timeout", "300", "--blocks", "4096", "--threads", "64"], "hello.gfx90a");
    let mut word = [0; 5];
    child.stdout.take().expect("piped").read_exact(&mut word).expect("it prints");
    assert_eq!(&word, b"Hello");
    assert_eq!(status(&limit::finish(child), 141), "");
}

/// A pipe that is full and not read holds up no limit, and no Ctrl-C.
#[test]
fn output_that_is_not_read_holds_up_no_limit() {
    use nix::sys::signal::{Signal, kill};
    use std::os::fd::AsRawFd;
    for (limit, signal, expected) in [("1", None, 124), ("300", Some(Signal::SIGINT), 130)] {
        let mut child = started(&["--timeout", limit, "--blocks", "4096", "--threads", "64"], "hello.gfx90a");
        let unread = child.stdout.take();
        if let Some(signal) = signal {
            let pid = nix::unistd::Pid::from_raw(child.id() as i32);
            // It is full when it grows no more for a while.
            let (mut bytes, mut before, mut same) = (0, 0, 0);
            while bytes == 0 || same < 50 {
                same = if bytes == before { same + 1 } else { 0 };
                before = bytes;
                let pipe = unread.as_ref().expect("piped").as_raw_fd();
                // SAFETY: an open descriptor, and a place for the number.
                assert_eq!(unsafe { libc::ioctl(pipe, libc::FIONREAD, &mut bytes) }, 0);
                assert!(child.try_wait().expect("a child").is_none(), "it ended early");
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            kill(pid, signal).expect("it runs");
        }
        let said = status(&limit::finish(child), expected);
        drop(unread);
        assert!(said.contains("standard output was not read"), "{said}");
    }
}

/// Standard output or standard error on a device that is full: every command ends with its own status, and none panics.
#[test]
fn a_full_disk_is_told() {
    let full = || File::options().write(true).open("/dev/full").expect("it is there");
    let (hello, kernels) = (image("hello.gfx90a"), image("kernels.gfx90a"));
    let (hello, kernels) = (hello.to_str().expect("text"), kernels.to_str().expect("text"));
    let prints = image("prints.gfx90a");
    let prints = prints.to_str().expect("text");
    let program = &["--device", "emu", hello][..];
    let missing = &["--device", "emu", "launch", kernels, "no_such_kernel", "--groups", "1"][..];
    let launch = ["launch", prints, "say", "--groups", "1", "--group-size", "1", "--arg", "i32[1]", "--arg", "1"];
    let launch = [&["--device", "emu"], &launch[..], &["--arg", "2.5"]].concat();
    for (command, told) in [
        (program, 0),
        (&launch[..], 125),
        (&["inspect", kernels], 125),
        (&["inspect", "--json", kernels], 125),
        (&["devices", "--device", "emu"], 125),
        (&["explain", "ENOMEM"], 125),
        (&["doctor"], 125),
    ] {
        let finish = |command: &mut Command| limit::finish(command.stdin(Stdio::null()).spawn().expect("it starts"));
        let kfdrun = || {
            let mut kfdrun = Command::new(env!("CARGO_BIN_EXE_kfdrun"));
            kfdrun.args(command);
            kfdrun
        };
        let said = status(&finish(kfdrun().stdout(full()).stderr(Stdio::piped())), told);
        assert!(said.contains("kfdrun: standard output: ENOSPC (28)"), "{command:?}: {said}");
        let silent = finish(kfdrun().stdout(Stdio::piped()).stderr(full()));
        let usual = finish(kfdrun().stdout(Stdio::piped()).stderr(Stdio::piped()));
        assert_eq!((silent.status, silent.stdout), (usual.status, usual.stdout), "{command:?}");
    }
    let silent = limit::finish(
        Command::new(env!("CARGO_BIN_EXE_kfdrun"))
            .args(missing)
            .stdin(Stdio::null())
            .stderr(full())
            .spawn()
            .expect("it"),
    );
    assert_eq!(silent.status.code(), Some(126));
}

/// More seconds than the clock has.
#[test]
fn a_limit_of_ages() {
    for (name, arguments, value) in [("sum.gfx90a", &["20", "22"][..], 42), ("gcn.gfx90a", &[], 1)] {
        status(&kfdrun(&["--device", "emu", "--timeout", "1.8e19"], &image(name), arguments), value);
    }
    let image = image("kernels.gfx90a");
    let launch = ["launch", image.to_str().expect("text"), "persist", "--groups", "1", "--group-size", "1"];
    let output = limit::output(
        Command::new(env!("CARGO_BIN_EXE_kfdrun")).args(["--device", "emu", "--timeout", "1.8e19"]).args(launch),
    );
    assert_ne!(output.status.code(), Some(101));
}

#[test]
fn a_stack_that_is_too_small_is_a_memory_fault() {
    for target in ["gfx90a", "gfx1100"] {
        let said = status(&emulated(&["--stack-size", "256"], &image(&format!("stack.{target}")), &["1", "2"]), 139);
        assert!(said.contains("256 bytes of stack") && said.contains("--stack-size"), "{target}: {said}");
    }
}

#[test]
fn bits_lost_in_the_exit_status_are_noted() {
    let said = status(&emulated(&[], &image("big_return.gfx90a"), &[]), 7);
    assert!(said.contains("0x12307"), "{said}");
}

#[test]
fn usage_errors_are_two() {
    status(&kfdrun(&["--no-such-option"], &image("sum.gfx90a"), &[]), 2);
    status(&kfdrun(&["--threads", "0"], &image("sum.gfx90a"), &[]), 2);
    status(&kfdrun(&["--device", "emu:gfx803"], &image("sum.gfx90a"), &[]), 2);
    assert_eq!(limit::output(&mut Command::new(env!("CARGO_BIN_EXE_kfdrun"))).status.code(), Some(2));
}

#[test]
fn what_is_not_an_image_is_named() {
    let folder = std::env::temp_dir().join(format!("kfdrun-run-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let said = status(&emulated(&[], &folder.join("missing"), &[]), 127);
    assert!(said.contains("missing"), "{said}");
    let said = status(&emulated(&[], &file("text", b"#!/bin/sh\necho no\n"), &[]), 126);
    assert!(said.contains("text"), "{said}");
    let said = status(&emulated(&[], &file("empty", b""), &[]), 126);
    assert!(said.contains("empty"), "{said}");
    let said = status(&emulated(&[], &folder, &[]), 126);
    assert!(said.contains("directory"), "{said}");
    let own = std::fs::read(env!("CARGO_BIN_EXE_kfdrun")).unwrap();
    let said = status(&emulated(&[], &file("host", &own), &[]), 126);
    assert!(said.contains("x86"), "{said}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_wrong_target_names_both() {
    let said = status(&kfdrun(&["--device", "emu:gfx90a"], &image("sum.gfx1100"), &[]), 126);
    assert!(said.contains("gfx1100") && said.contains("gfx90a"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn without_a_gpu_the_message_says_which_and_what_to_do() {
    if Path::new("/dev/kfd").exists() {
        eprintln!("skipped: this machine has a /dev/kfd");
        return;
    }
    let said = status(&kfdrun(&["--device", "kfd"], &image("sum.gfx90a"), &[]), 125);
    assert!(said.contains("/dev/kfd") && said.contains("no AMDKFD device node") && said.contains("do: "), "{said}");
    let output = kfdrun(&["--timeout", "120"], &image("sum.gfx90a"), &["5"]);
    let said = status(&output, 5);
    assert!(said.contains("emulated gfx90a") && said.lines().count() == 1, "{said}");
}

#[test]
fn a_trace_shows_the_path_in_order() {
    let said = status(&emulated(&["--trace"], &image("sum.gfx90a"), &["1"]), 1);
    let mut rest = said.as_str();
    for step in [
        "/dev/kfd",
        "GET_VERSION",
        "ACQUIRE_VM",
        "ALLOC_MEMORY_OF_GPU",
        "MAP_MEMORY_TO_GPU",
        "CREATE_QUEUE",
        "publish",
        "doorbell",
        "fetch",
        "dispatch",
        "signal",
        "DESTROY_QUEUE",
    ] {
        let at = rest.find(step).unwrap_or_else(|| panic!("'{step}' is missing, or out of order, in:\n{said}"));
        rest = &rest[at + step.len()..];
    }
    let before = said.split("publish").next().unwrap_or_default();
    let ioctls = before.lines().filter(|line| line.contains(" ioctl ")).count();
    assert!(ioctls <= 25, "{ioctls} ioctls before the first dispatch:\n{before}");
}

#[test]
fn kernel_profiles_are_the_emulated_machines() {
    let sum = image("sum.gfx1100");
    for (profile, version) in
        [("6.1", "KFD 1.11"), ("6.12", "KFD 1.17"), ("6.12-late", "KFD 1.17"), ("current", "KFD 1.18")]
    {
        let options = ["--verbose", "--timeout", "120", "--kernel-profile", profile];
        let said = status(&kfdrun(&options, &sum, &["20", "22"]), 42);
        assert!(said.contains(version), "{profile}: {said}");
    }
    let said = status(&kfdrun(&["--device", "kfd", "--kernel-profile", "6.1"], &sum, &[]), 2);
    assert!(said.contains("--kernel-profile is for the emulated machine") && said.contains("--device emu"), "{said}");
    let said = status(&kfdrun(&["--kernel-profile", "6.2"], &sum, &[]), 2);
    assert!(said.contains("expected one of 6.1, 6.12, 6.12-late, current"), "{said}");
}

#[test]
fn fidelity_tells_what_the_run_met_that_is_not_exact() {
    let sum = image("sum.gfx90a");
    let said = status(&emulated(&["--fidelity"], &sum, &["20", "22"]), 42);
    let mut lines = said.lines();
    assert!(lines.next().is_some_and(|line| line.starts_with("kfdrun: fidelity: ")), "{said}");
    let waits = lines.find(|line| line.contains("s_waitcnt "));
    assert!(waits.is_some_and(|line| line.contains(" executed ") && line.contains(" place")), "{said}");
    // A fault in between keeps nothing back.
    let said = status(&emulated(&["--fidelity"], &image("illegal.gfx90a"), &[]), 132);
    assert!(said.contains("kfdrun: fidelity: "), "{said}");
}

#[test]
fn fidelity_is_of_the_emulated_machine() {
    let sum = image("sum.gfx90a");
    let said = status(&kfdrun(&["--fidelity", "--device", "kfd"], &sum, &[]), 2);
    assert!(said.contains("--fidelity is for the emulated machine"), "{said}");
    let said = status(&kfdrun(&["--fidelity"], Path::new("devices"), &[]), 2);
    assert!(said.contains("--fidelity is for runs"), "{said}");
}

#[test]
fn our_own_host_side_passes_lint_and_the_worst_moments() {
    for target in TARGETS {
        for options in [&["--lint"][..], &["--lint", "--adversary"], &["--adversary=7"]] {
            let output = emulated(options, &image(&format!("hello.{target}")), &["one"]);
            assert_eq!(
                (status(&output, 0), text(&output.stdout).lines().count()),
                (String::new(), 2),
                "{target} {options:?}"
            );
        }
    }
}

#[test]
fn injected_faults_end_the_run_or_do_not_matter() {
    let hello = image("hello.gfx1100");
    let injected = |fault: &str| emulated(&["--inject", fault], &hello, &["one"]);
    let said = status(&injected("CREATE_QUEUE:1=ENOMEM"), 125);
    assert!(said.contains("CREATE_QUEUE") && said.contains("ENOMEM"), "{said}");
    // The value of the signal is enough.
    assert_eq!(status(&injected("lost-interrupt:1"), 0), "");
    assert_eq!(status(&injected("slow:2000"), 0), "");
    let said = status(&injected("reset:2"), 125);
    assert!(said.contains("hardware exception") && said.contains("memory_lost=1"), "{said}");
    let said = status(&injected("removal:1"), 125);
    assert!(said.contains("hardware exception") && said.contains("memory_lost=1"), "{said}");
    // The image is among the first buffers; without its pages nothing runs.
    let faults: Vec<i32> =
        (1..=8).map(|buffer| injected(&format!("vm-fault:#{buffer}")).status.code().unwrap_or(-1)).collect();
    assert!(faults.contains(&139), "{faults:?}");
    let said = status(&emulated(&["--inject", "reset:0"], &hello, &[]), 2);
    assert!(said.contains("'0' must be a number, 1 at least"), "{said}");
    let said = status(&kfdrun(&["--device", "kfd", "--lint"], &hello, &[]), 2);
    assert!(said.contains("--lint is for the emulated machine"), "{said}");
}

#[test]
fn files_larger_than_memory_are_no_trouble() {
    let folder = std::env::temp_dir().join(format!("kfdrun-huge-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let huge = |name: &str, start: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, start).expect("a file");
        let file = std::fs::File::options().write(true).open(&path).expect("a file");
        file.set_len(64 << 30).expect("a file with a hole");
        path
    };
    let said = status(&emulated(&[], &huge("zeros", &[0; 64]), &[]), 126);
    assert!(said.contains("must start with [7f, 45, 4c, 46]"), "{said}");
    let hello = std::fs::read(image("hello.gfx1100")).expect("an image");
    let output = emulated(&[], &huge("hello", &hello), &["one"]);
    status(&output, 0);
    assert!(text(&output.stdout).contains("argv[1] = one"));
    std::fs::remove_dir_all(&folder).expect("ours");
}

#[test]
fn the_report_on_a_grid_of_short_work_groups_has_waves() {
    let options = ["--device", "emu", "--timeout", "0.5", "--blocks", "4000000000"];
    let said = status(&kfdrun(&options, &image("sum.gfx1100"), &["1"]), 124);
    assert!(said.contains("waves resident: "), "{said}");
}

//! What a run costs from `execve` to its exit: `cargo bench -p kfdrun`.
//!
//! Programs on the emulated machine, each run many times: wall time of one run, and its CPU time by the process's own
//! account (`wait4`), all threads together. The kernel may count the CPU time of short threads in ticks, so only the mean
//! of many runs means something. Then how long the host takes to answer a remote call, and what ports of remote calls cost
//! in memory.
//!
//! Programs linked with LLVM's libc are measured where a folder of them is at hand (`KFDRUN_CASES`, or `../shared/cases`
//! beside the repository), the repository's own always.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Runs of each program.
const RUNS: u32 = 300;

/// One run: wall time, CPU time, the most memory it had at once in KiB.
struct Cost {
    wall: Duration,
    cpu: Duration,
    peak: i64,
}

fn run(options: &[&str], image: &Path, arguments: &[&str]) -> Option<Cost> {
    let start = Instant::now();
    let child = Command::new(env!("CARGO_BIN_EXE_kfdrun"))
        .args(["--device", "emu"])
        .args(options)
        .arg(image)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .ok()?;
    let mut status = 0;
    // SAFETY: all zeros is a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: our child, which nothing else waits for, and two places to write to.
    let waited = unsafe { libc::wait4(child.id() as i32, &mut status, 0, &mut usage) };
    let wall = start.elapsed();
    let time = |time: libc::timeval| Duration::new(time.tv_sec as u64, 1000 * time.tv_usec as u32);
    (waited > 0 && libc::WIFEXITED(status)).then(|| Cost {
        wall,
        cpu: time(usage.ru_utime) + time(usage.ru_stime),
        peak: usage.ru_maxrss,
    })
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn report(name: &str, image: &Path, arguments: &[&str]) {
    let mut costs: Vec<Cost> = (0..RUNS).filter_map(|_| run(&[], image, arguments)).collect();
    if costs.is_empty() {
        return println!("| {name} | did not run |");
    }
    costs.sort_by_key(|cost| cost.wall);
    let cpu = costs.iter().map(|cost| cost.cpu).sum::<Duration>() / costs.len() as u32;
    let (least, median) = (costs[0].wall, costs[costs.len() / 2].wall);
    println!("| {name} | {:.1} | {:.1} | {:.1} |", millis(least), millis(median), millis(cpu));
}

fn main() {
    let own = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/programs/images").join(name);
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/cases");
    let cases = std::env::var_os("KFDRUN_CASES").map_or_else(beside, PathBuf::from).join("images/llvm22");
    println!("{RUNS} runs each, from execve to exit, on the emulated machine\n");
    println!("| program | wall, least, ms | wall, median, ms | CPU, mean, ms |\n|---|---|---|---|");
    for target in ["gfx90a", "gfx1100"] {
        for (name, arguments) in [("llvm22-return42", &[][..]), ("llvm22-hello", &["a", "b"])] {
            let image = cases.join(format!("{name}.{target}"));
            if image.exists() {
                report(&format!("{name}.{target}"), &image, arguments);
            }
        }
        report(&format!("sum.{target}"), &own(&format!("sum.{target}")), &["20", "22"]);
        report(&format!("hello.{target}"), &own(&format!("hello.{target}")), &["a", "b"]);
    }
    println!("\nA remote call, by the GPU's clock (tests/programs/latency.c), without and with a doorbell (rpc23):\n");
    for target in ["gfx90a", "gfx1100", "rpc23.gfx90a", "rpc23.gfx1100"] {
        let output = Command::new(env!("CARGO_BIN_EXE_kfdrun"))
            .args(["--device", "emu"])
            .arg(own(&match target.starts_with("rpc") {
                true => format!("latency-{target}"),
                false => format!("latency.{target}"),
            }))
            .stderr(Stdio::inherit())
            .output();
        let text = output.map_or_else(|error| error.to_string(), |o| String::from_utf8_lossy(&o.stdout).into_owned());
        text.lines().for_each(|line| println!("{target}: {line}"));
    }
    println!("\n| hello.gfx90a | area of the ports, KiB | peak memory of the process, KiB |\n|---|---|---|");
    for groups in ["64", "4096"] {
        let ports: u64 = groups.parse().unwrap_or(0);
        let area = (24 * ports + 64 * 64 * ports) / 1024;
        let peaks = (0..5).filter_map(|_| run(&["--blocks", groups], &own("hello.gfx90a"), &[])).map(|cost| cost.peak);
        let peak = peaks.min().map_or("did not run".to_owned(), |peak| peak.to_string());
        println!("| {ports} waves, {ports} ports | {area} | {peak} |");
    }
}

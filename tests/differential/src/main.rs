//! Compiles random C functions for this host and for AMDGPU targets, runs both, the latter on the emulated machine, and
//! compares every bit. Needs clang-22 and ld.lld-22.

mod device;
mod generate;

use clap::Parser;
use generate::{PRELUDE, Random};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Work-items each function runs for: two waves of 64.
const LANES: u32 = 128;

/// Compare random C programs between this host and emulated GPUs.
#[derive(Parser)]
struct Args {
    /// Functions to generate
    #[arg(long, default_value_t = 400)]
    programs: u64,
    /// Functions in a file
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u64).range(1..))]
    batch: u64,
    /// First seed; default: from the clock
    #[arg(long)]
    seed: Option<u64>,
    /// Targets
    #[arg(long, value_delimiter = ',', default_value = "gfx90a,gfx1100")]
    targets: Vec<String>,
    /// Optimisation levels
    #[arg(long, value_delimiter = ',', default_value = "O0,O1,O2,Os")]
    levels: Vec<String>,
    /// More flags for the device compiler
    #[arg(long, value_delimiter = ' ', allow_hyphen_values = true)]
    device_flags: Vec<String>,
    /// Integers only
    #[arg(long)]
    integers: bool,
    /// Keep the files of failing batches here
    #[arg(long, default_value = "target/differential")]
    keep: PathBuf,
    /// Run this file, a kept one, instead of new ones; needs its --seed and --batch
    #[arg(long, requires = "seed")]
    file: Option<PathBuf>,
    /// Batches at a time
    #[arg(long, default_value_t = 2)]
    jobs: usize,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_secs());
    let seed = args.seed.unwrap_or(clock);
    let batches = if args.file.is_some() { 1 } else { args.programs.div_ceil(args.batch) };
    println!(
        "{} functions from seed {seed}, targets {}, levels {}",
        batches * args.batch,
        args.targets.join(" "),
        args.levels.join(" ")
    );
    let next = AtomicU64::new(0);
    let failures = Mutex::new(Vec::new());
    let runs = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..args.jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let batch = next.fetch_add(1, Ordering::Relaxed);
                    if batch >= batches {
                        break;
                    }
                    match run_batch(&args, seed + batch) {
                        Ok(count) => {
                            runs.fetch_add(count, Ordering::Relaxed);
                        }
                        Err(mut lines) => {
                            if let Ok(mut failures) = failures.lock() {
                                failures.append(&mut lines);
                            }
                        }
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap_or_default();
    for line in &failures {
        println!("{line}");
    }
    println!("{} runs agree, {} disagree; repeat with --seed {seed}", runs.into_inner(), failures.len());
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn source(args: &Args, seed: u64) -> String {
    let mut random = Random(seed.wrapping_mul(0x5851_f42d_4c95_7f2d));
    let mut text = String::from(PRELUDE);
    for index in 0..args.batch {
        generate::function(&mut random, &format!("test_{index}"), !args.integers, &mut text);
    }
    text.push_str("#ifdef __AMDGCN__\n");
    for index in 0..args.batch {
        let _ = writeln!(
            text,
            "__attribute__((amdgpu_kernel, visibility(\"protected\"))) void kernel_{index}(const u32 *in, u64 *out) {{ \
             u32 i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x(); out[i] = test_{index}(in, i); }}"
        );
    }
    text.push_str("#else\nint printf(const char *, ...);\nint main(void) {\n  u32 in[16] = {");
    for word in inputs(seed) {
        let _ = write!(text, "{word}u,");
    }
    text.push_str("};\n");
    let _ = writeln!(text, "  for (u32 i = 0; i < {LANES}; i++) {{");
    for index in 0..args.batch {
        let _ = writeln!(text, "    printf(\"%lx\\n\", test_{index}(in, i));");
    }
    text.push_str("  }\n}\n#endif\n");
    text
}

fn inputs(seed: u64) -> [u32; 16] {
    let mut random = Random(seed ^ 0x1234_5678);
    std::array::from_fn(|index| match index % 4 {
        0 => random.next() as u32,
        1 => random.below(100) as u32,
        2 => [0, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX][random.below(5) as usize],
        _ => (random.next() as u32) >> 16,
    })
}

/// Runs one file on everything. Returns the number of function runs, or what disagreed.
fn run_batch(args: &Args, seed: u64) -> Result<u64, Vec<String>> {
    let folder = args.keep.join(format!("seed-{seed}"));
    let fail = |text: String| vec![format!("seed {seed}: {text}")];
    std::fs::create_dir_all(&folder).map_err(|error| fail(format!("{}: {error}", folder.display())))?;
    let file = folder.join("test.c");
    let text = match &args.file {
        Some(file) => std::fs::read_to_string(file).map_err(|error| fail(format!("{}: {error}", file.display())))?,
        None => source(args, seed),
    };
    std::fs::write(&file, text).map_err(|error| fail(error.to_string()))?;
    let host = folder.join("host");
    let common = ["-w", "-fwrapv", "-ffp-contract=off", "-fno-strict-aliasing"];
    compile(
        &[&common[..], &["-O1", "-Xclang", "-ffloat16-excess-precision=none", "-o"]].concat(),
        &host,
        &file,
        &["-lm"],
    )
    .map_err(&fail)?;
    let output = Command::new(&host).output().map_err(|error| fail(error.to_string()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let expected: Vec<u64> = text.lines().filter_map(|line| u64::from_str_radix(line, 16).ok()).collect();
    if !output.status.success() || expected.len() as u64 != args.batch * u64::from(LANES) {
        return Err(fail(format!("the host program failed: {:?}", output.status)));
    }
    let mut wrong = Vec::new();
    let mut runs = 0;
    for target in &args.targets {
        for level in &args.levels {
            let image = folder.join(format!("{target}.{level}"));
            let cpu = format!("-mcpu={target}");
            let level_flag = format!("-{level}");
            let device = [
                "--target=amdgcn-amd-amdhsa",
                &cpu,
                "-nogpulib",
                "-nostdlib",
                "-ffreestanding",
                &level_flag,
                "-fuse-ld=lld-22",
            ];
            let extra: Vec<&str> = args.device_flags.iter().map(String::as_str).collect();
            compile(&[&common[..], &device, &extra, &["-o"]].concat(), &image, &file, &[]).map_err(&fail)?;
            match device::run(&image, target, args.batch, &inputs(seed), LANES) {
                Err(error) => wrong.push(format!("seed {seed} {target} -{level}: {error}")),
                Ok(results) => {
                    for (index, got) in results.iter().enumerate() {
                        let want = |lane: usize| expected[lane * args.batch as usize + index];
                        match (0..LANES as usize).find(|lane| got[*lane] != want(*lane)) {
                            None => runs += 1,
                            Some(lane) => wrong.push(format!(
                                "seed {seed} {target} -{level}: test_{index} work-item {lane} gives {:#x}, the host {:#x} ({})",
                                got[lane],
                                want(lane),
                                file.display()
                            )),
                        }
                    }
                }
            }
        }
    }
    if wrong.is_empty() {
        let _ = std::fs::remove_dir_all(&folder);
        Ok(runs)
    } else {
        Err(wrong)
    }
}

fn compile(flags: &[&str], output: &Path, file: &Path, after: &[&str]) -> Result<(), String> {
    let result = Command::new("clang-22").args(flags).arg(output).arg(file).args(after).output();
    match result {
        Err(error) => Err(format!("clang-22: {error}")),
        Ok(result) if !result.status.success() => {
            let text = String::from_utf8_lossy(&result.stderr);
            Err(format!("clang-22: {}", text.lines().next().unwrap_or_default()))
        }
        Ok(_) => Ok(()),
    }
}

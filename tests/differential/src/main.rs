//! Compiles random C functions for this host and for AMDGPU targets, runs both, the latter on the emulated machine, and
//! compares every bit. Needs clang-22 and ld.lld-22; other compilers on demand. See `docs/differential.md`.

mod compile;
mod device;
mod generate;
mod plan;

use clap::Parser;
use compile::{Compiler, Failure};
use generate::{Dialect, PRELUDE, Random};
use plan::Variant;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Work-items of a program for GCC's `gcn-run`, which runs one: a loop over the functions' lanes.
const PROGRAM_LANES: u32 = 8;

/// Compare random C programs between this host and emulated GPUs.
#[derive(Parser)]
struct Args {
    /// Functions to generate
    #[arg(long, default_value_t = 400)]
    programs: u64,
    /// Functions in a file
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    batch: u64,
    /// Go on with more functions for so many seconds
    #[arg(long, default_value_t = 0)]
    seconds: u64,
    /// First seed; default: from the clock
    #[arg(long)]
    seed: Option<u64>,
    /// Targets, with features if any: gfx90a:xnack+
    #[arg(long, value_delimiter = ',')]
    targets: Vec<String>,
    /// Optimisation levels
    #[arg(long, value_delimiter = ',', default_value = "O0,O1,O2,O3,Os")]
    levels: Vec<String>,
    /// Combinations of target, level and wave size for each file, drawn from its seed; 0: all
    #[arg(long, default_value_t = 6)]
    variants: usize,
    /// Compiler for the GPU
    #[arg(long, value_enum, default_value_t = Compiler::Clang22)]
    compiler: Compiler,
    /// More flags for the compiler for the GPU
    #[arg(long, value_delimiter = ' ', allow_hyphen_values = true)]
    device_flags: Vec<String>,
    /// Integers only
    #[arg(long)]
    integers: bool,
    /// Keep the files of failing batches here
    #[arg(long, default_value = "target/differential")]
    keep: PathBuf,
    /// Run this file, a kept one, instead of new ones; needs its --seed
    #[arg(long, requires = "seed")]
    file: Option<PathBuf>,
    /// Files at a time; 0: one a processor
    #[arg(long, default_value_t = 0)]
    jobs: usize,
}

/// What all batches came to.
#[derive(Default)]
struct Totals {
    functions: AtomicU64,
    agree: AtomicU64,
    work_items: AtomicU64,
    /// Images that the compiler failed to make by an error in itself.
    crashes: AtomicU64,
    /// Milliseconds of wall time in each phase, summed over jobs.
    host: AtomicU64,
    compiling: AtomicU64,
    running: AtomicU64,
    failures: Mutex<Vec<String>>,
}

fn add(counter: &AtomicU64, value: u64) {
    counter.fetch_add(value, Ordering::Relaxed);
}

fn main() -> ExitCode {
    let mut args = Args::parse();
    if args.targets.is_empty() {
        let all = match args.compiler {
            Compiler::Gcc12 => "gfx900,gfx906",
            _ => "gfx900,gfx906,gfx90a,gfx90a:xnack+,gfx942,gfx1030,gfx1100,gfx1201",
        };
        args.targets = all.split(',').map(str::to_owned).collect();
    }
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_secs());
    let seed = args.seed.unwrap_or(clock);
    let batches = if args.file.is_some() { 1 } else { args.programs.div_ceil(args.batch) };
    println!("seed {seed}, targets {}, levels {}", args.targets.join(" "), args.levels.join(" "));
    let started = Instant::now();
    let limit = Duration::from_secs(args.seconds);
    let next = AtomicU64::new(0);
    let totals = Totals::default();
    let jobs = match args.jobs {
        0 => std::thread::available_parallelism().map_or(1, |n| n.get()),
        jobs => jobs,
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    let batch = next.fetch_add(1, Ordering::Relaxed);
                    if batch >= batches && (args.file.is_some() || started.elapsed() >= limit) {
                        break;
                    }
                    if let Err(line) = run_batch(&args, seed.wrapping_add(batch), &totals) {
                        note(&totals, format!("seed {}: {line}", seed.wrapping_add(batch)));
                    }
                }
            });
        }
    });
    let failures = totals.failures.into_inner().unwrap_or_default();
    let seconds = |counter: AtomicU64| counter.into_inner() / 1000;
    println!(
        "{} functions, {} results agree ({} work-items), {} disagree, {} compiler crashes, in {} s: {} s for the host, \
         {} s compiling, {} s running on {jobs} threads; repeat with --seed {seed}",
        totals.functions.into_inner(),
        totals.agree.into_inner(),
        totals.work_items.into_inner(),
        failures.len(),
        totals.crashes.into_inner(),
        started.elapsed().as_secs(),
        seconds(totals.host),
        seconds(totals.compiling),
        seconds(totals.running),
    );
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints a failure at once, and counts it.
fn note(totals: &Totals, line: String) {
    println!("{line}");
    if let Ok(mut failures) = totals.failures.lock() {
        failures.push(line);
    }
}

/// The file of a seed.
fn source(args: &Args, seed: u64) -> String {
    let gcc = args.compiler == Compiler::Gcc12;
    let mut random = Random(seed.wrapping_mul(0x5851_f42d_4c95_7f2d));
    let dialect = Dialect { floats: !args.integers, clang: !gcc };
    let mut text = String::new();
    if gcc {
        text.push_str("#pragma omp declare target\n");
    }
    text.push_str(PRELUDE);
    for index in 0..args.batch {
        generate::function(&mut random, &format!("test_{index}"), dialect, &mut text);
    }
    let words: Vec<String> = inputs(seed).iter().map(|word| format!("{word}u")).collect();
    if !gcc {
        text.push_str("#ifdef __AMDGCN__\n");
        for index in 0..args.batch {
            let _ = writeln!(
                text,
                "__attribute__((amdgpu_kernel, visibility(\"protected\"))) void kernel_{index}(const u32 *in, u64 *out) {{ \
                 u32 i = __builtin_amdgcn_workgroup_id_x() * GROUP + __builtin_amdgcn_workitem_id_x(); \
                 out[i] = test_{index}(in, i); }}"
            );
        }
        text.push_str("#else\n");
    }
    let _ =
        writeln!(text, "int printf(const char *, ...);\nint main(void) {{\n  u32 in[16] = {{{}}};", words.join(","));
    for index in 0..args.batch {
        let _ = writeln!(text, "  for (u32 i = 0; i < LANES; i++) printf(\"%lx\\n\", test_{index}(in, i));");
    }
    text.push_str("  return 0;\n}\n");
    text.push_str(if gcc { "#pragma omp end declare target\n" } else { "#endif\n" });
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

/// Runs one file on everything. The error is one that stops the batch.
fn run_batch(args: &Args, seed: u64, totals: &Totals) -> Result<(), String> {
    let folder = args.keep.join(format!("seed-{seed}"));
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let file = folder.join("test.c");
    let text = match &args.file {
        Some(file) => std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?,
        None => source(args, seed),
    };
    let count = text.lines().filter(|line| line.starts_with("static u64 test_")).count() as u64;
    std::fs::write(&file, text).map_err(|error| error.to_string())?;
    let geometry = match args.compiler {
        Compiler::Gcc12 => (64, PROGRAM_LANES),
        _ => plan::geometry(seed),
    };
    let defines = [format!("-DGROUP={}", geometry.0), format!("-DLANES={}", geometry.1)];
    let started = Instant::now();
    let host = folder.join("host");
    compile::host(&file, &host, &defines).map_err(|(Failure::Crash(line) | Failure::Other(line))| line)?;
    let output = Command::new(&host).output().map_err(|error| error.to_string())?;
    let expected = numbers(&String::from_utf8_lossy(&output.stdout));
    if !output.status.success() || expected.len() as u64 != count * u64::from(geometry.1) {
        return Err(format!("the host program failed: {}", output.status));
    }
    add(&totals.host, started.elapsed().as_millis() as u64);
    add(&totals.functions, count);
    let expected: Vec<&[u64]> = expected.chunks(geometry.1 as usize).collect();
    let mut clean = true;
    for variant in plan::variants(seed, &args.targets, &args.levels, args.variants) {
        let image =
            folder.join(format!("{}.{}{}", variant.target, variant.level, if variant.wave64 { ".64" } else { "" }));
        let result = run_variant(args, &variant, &file, &image, &defines, seed, (count, geometry), totals);
        let wrong = match result {
            Ok(results) => compare(&expected, &results, totals),
            Err(Failure::Crash(line)) => {
                println!("seed {seed} {variant}: {line}");
                add(&totals.crashes, 1);
                continue;
            }
            Err(Failure::Other(line)) => vec![line],
        };
        clean &= wrong.is_empty();
        for line in wrong {
            note(totals, format!("seed {seed} {variant}: {line} ({})", file.display()));
        }
    }
    if clean {
        let _ = std::fs::remove_dir_all(&folder);
    }
    Ok(())
}

fn numbers(text: &str) -> Vec<u64> {
    text.lines().filter_map(|line| u64::from_str_radix(line, 16).ok()).collect()
}

/// Compiles and runs one variant; the results of each function.
#[expect(clippy::too_many_arguments)]
fn run_variant(
    args: &Args,
    variant: &Variant,
    file: &Path,
    image: &Path,
    defines: &[String],
    seed: u64,
    (count, geometry): (u64, (u32, u32)),
    totals: &Totals,
) -> Result<Vec<Vec<u64>>, Failure> {
    let started = Instant::now();
    compile::device(args.compiler, variant, file, image, defines, &args.device_flags)?;
    add(&totals.compiling, started.elapsed().as_millis() as u64);
    let started = Instant::now();
    let results = match args.compiler {
        Compiler::Gcc12 => device::program(image, variant)
            .map(|text| numbers(&text).chunks(geometry.1 as usize).map(<[u64]>::to_vec).collect()),
        _ => device::kernels(image, variant, count, &inputs(seed), geometry),
    };
    add(&totals.running, started.elapsed().as_millis() as u64);
    results.map_err(Failure::Other)
}

/// The functions whose results differ, each with its first work-item.
fn compare(expected: &[&[u64]], results: &[Vec<u64>], totals: &Totals) -> Vec<String> {
    if results.len() != expected.len() {
        return vec![format!("{} functions gave results, not {}", results.len(), expected.len())];
    }
    let mut wrong = Vec::new();
    for (index, (got, want)) in results.iter().zip(expected).enumerate() {
        match got.iter().zip(*want).position(|(got, want)| got != want) {
            None if got.len() == want.len() => {
                add(&totals.agree, 1);
                add(&totals.work_items, got.len() as u64);
            }
            None => wrong.push(format!("test_{index} gives {} results, not {}", got.len(), want.len())),
            Some(lane) => {
                wrong.push(format!("test_{index} work-item {lane} gives {:#x}, the host {:#x}", got[lane], want[lane]))
            }
        }
    }
    wrong
}

//! `kfdrun-conformance`: the kernel's rules as cases, on the emulated machine or on the kernel.

use clap::{Parser, Subcommand};
use conformance::case::{Case, Needs};
use conformance::device::Device;
use conformance::fuzz::Count;
use conformance::record::{self, Record};
use conformance::run::{Config, apart};
use conformance::{cases, fuzz, table};
use emu::Options;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

#[derive(Parser)]
#[command(about = "Checks a driver against the kernel's rules, case by case")]
#[command(after_help = "Exit status: 0 when every case passed or was skipped, 1 when one failed, 2 for bad usage")]
#[command(args_conflicts_with_subcommands = true)]
struct Args {
    /// `emu` (a machine without GPU), `emu:gfxNNNN[,gfxNNNN...]` or `kfd`, this machine's own
    #[arg(long, default_value = "emu")]
    device: Device,
    /// Only the cases of this group
    #[arg(long)]
    group: Option<String>,
    /// Only the case `group/name`
    #[arg(long)]
    case: Option<String>,
    /// Also cases that are not safe on a GPU that others use; on the emulated machine they always run
    #[arg(long)]
    all_cases: bool,
    /// Emulated machine: a kernel built without HSA_AMD_SVM, as Debian's are
    #[arg(long)]
    no_svm: bool,
    /// Say what the cases check, and run none
    #[arg(long)]
    list: bool,
    /// One line of JSON a case
    #[arg(long, conflicts_with = "list")]
    json: bool,
    /// Print every answer, not only those that are not as they should be
    #[arg(long)]
    steps: bool,
    /// End a case that takes longer
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    limit: u64,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Random requests, mappings and packets against the emulated machine; status 1 when something panicked or hung
    Fuzz {
        /// How long
        #[arg(long, default_value_t = 10)]
        seconds: u64,
        /// Seed of the first sequence; the next ones follow by one
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Calls of a sequence
        #[arg(long, default_value_t = 300)]
        calls: usize,
    },
    /// Print docs/kfd-rules.md from the emulated kernel's tables
    Rules,
    /// Put two runs side by side; status 1 when a case that ran on both gave different answers
    Compare {
        /// What `--json` printed, also in between a console's other lines
        left: PathBuf,
        /// The other run
        right: PathBuf,
        /// Fail when fewer cases ran on both
        #[arg(long, default_value_t = 1)]
        at_least: usize,
    },
}

fn main() -> ExitCode {
    let args = Args::parse();
    match &args.command {
        Some(Command::Fuzz { seconds, seed, calls }) => fuzz(*seconds, *seed, *calls),
        Some(Command::Rules) => {
            print!("{}", emu::kernel::rule::document());
            ExitCode::SUCCESS
        }
        Some(Command::Compare { left, right, at_least }) => compare(left, right, *at_least),
        None => run(&args),
    }
}

fn fuzz(seconds: u64, first: u64, calls: usize) -> ExitCode {
    let start = Instant::now();
    let mut told = Instant::now();
    let mut count = Count::default();
    let mut seed = first;
    while start.elapsed() < Duration::from_secs(seconds) {
        match fuzz::batch(seed, calls) {
            Ok(more) => count.add(more),
            Err(problem) => {
                println!("{} s from seed {first}: {count}; then {problem}", start.elapsed().as_secs());
                return ExitCode::from(1);
            }
        }
        seed += fuzz::BATCH;
        if told.elapsed() > Duration::from_secs(60) {
            println!("{} s, next seed {seed}: {count}", start.elapsed().as_secs());
            told = Instant::now();
        }
    }
    println!("{} s from seed {first}: {count}; no panic, no hang", start.elapsed().as_secs());
    let unreached = count.unreached();
    if !unreached.is_empty() {
        println!("never successful: {}", unreached.join(", "));
    }
    // In so much time each request finds what it needs: else the sequences are not what they should be.
    if seconds >= 30 && !unreached.is_empty() {
        return ExitCode::from(1);
    }
    ExitCode::SUCCESS
}

fn chosen(args: &Args) -> Vec<&'static Case> {
    let group = |case: &&Case| args.group.as_ref().is_none_or(|group| group == case.group);
    let name = |case: &&Case| args.case.as_ref().is_none_or(|id| *id == case.id());
    cases::all().into_iter().filter(|case| group(case) && name(case)).collect()
}

fn run(args: &Args) -> ExitCode {
    let cases = chosen(args);
    if cases.is_empty() {
        eprintln!("kfdrun-conformance: no such group or case; --list has them");
        return ExitCode::from(2);
    }
    if args.list {
        for case in cases {
            let needs = match case.needs {
                Needs::Kfd => "any machine",
                Needs::NoGpu => "no GPU",
                Needs::Gpu => "GPU",
            };
            println!("{}\n    {}\n    {needs}, {}", case.id(), case.rule, if case.safe { "safe" } else { "not safe" });
        }
        return ExitCode::SUCCESS;
    }
    let config = Config {
        device: args.device.clone(),
        options: Options { workers: 2, svm: !args.no_svm, ..Options::default() },
        limit: Duration::from_secs(args.limit),
        all: args.all_cases || args.device != Device::Linux,
    };
    let mut records = Vec::new();
    for case in cases {
        let record = apart(&config, case);
        if args.json {
            println!("{}", record.to_line());
        }
        records.push(record);
    }
    if !args.json {
        print!("{}", table::one(&records, args.steps));
    }
    ExitCode::from(u8::from(records.iter().any(|record| record.outcome.is_bad())))
}

fn compare(left: &PathBuf, right: &PathBuf, at_least: usize) -> ExitCode {
    let read = |path: &PathBuf| -> Result<Vec<Record>, String> {
        let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(record::read(&String::from_utf8_lossy(&bytes)))
    };
    let (left, right) = match (read(left), read(right)) {
        (Ok(left), Ok(right)) => (left, right),
        (Err(error), _) | (_, Err(error)) => {
            eprintln!("kfdrun-conformance: {error}");
            return ExitCode::from(2);
        }
    };
    let comparison = table::two(&left, "emulated", &right, "Linux");
    print!("{}", comparison.text);
    if comparison.compared < at_least {
        println!("expected at least {at_least} cases that ran on both");
        return ExitCode::from(1);
    }
    ExitCode::from(u8::from(!comparison.different.is_empty()))
}

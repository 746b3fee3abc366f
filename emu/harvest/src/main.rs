//! Development tool: harvests the decode tables from LLVM and compares disassembly with it.

mod agree;
mod coverage;
mod fills;
mod harvest;
mod mc;
mod names;
mod operands;
mod probes;
mod samples;
mod table;
mod text;

use emu::isa::Target;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
kfdrun-harvest harvest [--check] [--target TARGET]...   write (or compare) the decode tables, with llvm-mc
kfdrun-harvest agree [--target TARGET]... [--show N] FILE|FOLDER...   compare disassembly with llvm-objdump
kfdrun-harvest coverage [--check]   write (or compare) docs/isa-coverage.md, without LLVM
kfdrun-harvest agree --samples N [--target TARGET]...   compare N encodings of each table row with llvm-mc";

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("{0}\n{USAGE}")]
    Usage(String),
    #[error(transparent)]
    Mc(#[from] mc::McError),
    #[error("{path}: {source}")]
    File { path: PathBuf, source: std::io::Error },
    #[error("{0} tables differ from what llvm-mc says")]
    Stale(usize),
    #[error("{} is not what the code says: run `kfdrun-harvest coverage`", path.display())]
    StaleDocument { path: PathBuf },
    #[error("{0} instructions are not printed as LLVM prints them")]
    Different(u64),
}

/// What the command line asks for.
#[derive(Default)]
struct Args {
    targets: Vec<Target>,
    check: bool,
    show: usize,
    samples: u32,
    paths: Vec<PathBuf>,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Error> {
    let mut words = std::env::args().skip(1);
    let command = words.next().unwrap_or_default();
    let mut args = Args { show: 10, ..Args::default() };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| Error::Usage(format!("{word} needs a value")));
        match word.as_str() {
            "--check" => args.check = true,
            "--target" => {
                let name = value()?;
                let target = Target::from_name(&name).ok_or_else(|| Error::Usage(format!("no target {name}")))?;
                args.targets.push(target);
            }
            "--samples" => {
                let number = value()?;
                args.samples = number.parse().map_err(|_| Error::Usage(format!("{number} is no number")))?;
            }
            "--show" => {
                let number = value()?;
                args.show = number.parse().map_err(|_| Error::Usage(format!("{number} is no number")))?;
            }
            _ if word.starts_with("--") => return Err(Error::Usage(format!("no option {word}"))),
            _ => args.paths.push(PathBuf::from(word)),
        }
    }
    if args.targets.is_empty() {
        args.targets = Target::ALL.to_vec();
    }
    match command.as_str() {
        "harvest" => harvest_all(&args),
        "agree" => agree_all(&args),
        "coverage" => write_coverage(&args),
        _ => Err(Error::Usage(format!("no command {command:?}"))),
    }
}

fn table_path(target: Target) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../src/isa/tables/{target}.tsv"))
}

fn harvest_all(args: &Args) -> Result<(), Error> {
    let version = mc::version()?;
    let mut stale = 0;
    for target in &args.targets {
        let harvest = harvest::harvest(*target)?;
        for note in &harvest.notes {
            println!("  {note}");
        }
        println!("{target}: {}", table::counts(&harvest));
        let text = table::write(*target, &version, &harvest);
        let path = table_path(*target);
        if args.check {
            let old = std::fs::read_to_string(&path).map_err(|source| Error::File { path, source })?;
            if old != text {
                println!("{target}: the table is not what llvm-mc {version} says");
                stale += 1;
            }
        } else {
            std::fs::write(&path, text).map_err(|source| Error::File { path, source })?;
        }
    }
    if stale == 0 { Ok(()) } else { Err(Error::Stale(stale)) }
}

fn coverage_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/isa-coverage.md")
}

fn write_coverage(args: &Args) -> Result<(), Error> {
    let text = coverage::Coverage::of(&Target::ALL).document();
    let path = coverage_path();
    if args.check {
        let old = std::fs::read_to_string(&path).map_err(|source| Error::File { path: path.clone(), source })?;
        return if old == text { Ok(()) } else { Err(Error::StaleDocument { path }) };
    }
    std::fs::write(&path, text).map_err(|source| Error::File { path, source })
}

fn agree_all(args: &Args) -> Result<(), Error> {
    let mut files = Vec::new();
    for path in &args.paths {
        collect(path, &mut files)?;
    }
    files.sort();
    let mut all: BTreeMap<Target, agree::Agreement> = BTreeMap::new();
    for path in files {
        let bytes = std::fs::read(&path).map_err(|source| Error::File { path: path.clone(), source })?;
        let Some(target) = agree::target_of(&bytes) else { continue };
        if args.targets.contains(&target) {
            all.entry(target).or_default().add(agree::file(target, &path)?);
        }
    }
    if args.samples > 0 {
        for target in &args.targets {
            all.entry(*target).or_default().add(agree::samples(*target, args.samples)?);
        }
    }
    let mut different = 0;
    for (target, agreement) in &all {
        agreement.print(*target, args.show);
        different += agreement.total - agreement.equal;
    }
    if different == 0 { Ok(()) } else { Err(Error::Different(different)) }
}

/// Files below a path.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), Error> {
    let error = |source| Error::File { path: path.to_owned(), source };
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in std::fs::read_dir(path).map_err(error)? {
        collect(&entry.map_err(error)?.path(), files)?;
    }
    Ok(())
}

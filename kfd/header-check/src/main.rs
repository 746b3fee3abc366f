//! Compares `kfd::uapi` with a kernel's `kfd_ioctl.h`, `kfd_sysfs.h` and, of `amdgpu_drm.h`, what is used of it.
//!
//! Generates a C program that prints every size, offset, request number and constant, compiles it with `cc` (or `$CC`)
//! against the headers, and compares. Exit status: 0 all equal, 1 mismatches, 2 could not check.

mod check;
mod header;

use check::{Kind, Plan};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const USAGE: &str = "usage: kfdrun-header-check [--include DIR]

DIR holds kfd_ioctl.h and kfd_sysfs.h, with ../drm/amdgpu_drm.h, or a folder linux/ with them. Without it, the newest
/usr/src/linux-headers-*/include/uapi is taken (Debian: package linux-headers-*-common).";

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("{0}\n{USAGE}")]
    Usage(String),
    #[error(
        "no /usr/src/linux-headers-*/include/uapi/linux/kfd_ioctl.h: install linux-headers-*-common or pass --include DIR"
    )]
    NoHeader,
    #[error("{0}: {1}")]
    Io(PathBuf, std::io::Error),
    #[error("{0} does not define KFD_IOCTL_MINOR_VERSION as a number")]
    NoVersion(PathBuf),
    #[error("{command} failed; the program is {source}\n{stderr}", source = .program.display())]
    Command { command: String, program: PathBuf, stderr: String },
}

fn main() -> ExitCode {
    match run() {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(error) => {
            eprintln!("kfdrun-header-check: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<usize, Error> {
    let folder = match std::env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [] => newest().ok_or(Error::NoHeader)?,
        [flag, folder] if flag == "--include" => PathBuf::from(folder),
        [flag] if flag == "--help" || flag == "-h" => {
            println!("{USAGE}");
            return Ok(0);
        }
        _ => return Err(Error::Usage("unknown arguments".to_string())),
    };
    let folder = if folder.join("linux/kfd_ioctl.h").exists() { folder.join("linux") } else { folder };
    let paths = [folder.join("kfd_ioctl.h"), folder.join("kfd_sysfs.h")];
    let mut text = String::new();
    for path in &paths {
        text += &std::fs::read_to_string(path).map_err(|error| Error::Io(path.clone(), error))?;
    }
    let minor = minor_version(&text).ok_or_else(|| Error::NoVersion(paths[0].clone()))?;
    let mut plan = Plan::new(&header::parse(&text), minor);
    plan.drm();
    // kfd_ioctl.h includes a file beside this one, so it is there.
    let drm = folder.join("../drm/amdgpu_drm.h");
    let output = compile_and_run(&plan, &[&paths[..], &[drm]].concat())?;
    let mismatches = plan.mismatches(&output);

    println!("{}: interface 1.{minor}", paths[0].display());
    for line in &mismatches {
        println!("mismatch: {line}");
    }
    for (name, since) in &plan.newer {
        println!("not in this header: {name} (1.{since})");
    }
    for name in &plan.unknown {
        println!("not in uapi: {name}");
    }
    // A newer header may bring names; one whose version is written down here may not.
    let unknown = if minor <= kfd::uapi::MINOR_VERSION { plan.unknown.len() } else { 0 };
    let counts = plan.counts();
    let count = |kind| counts.get(&kind).copied().unwrap_or(0);
    println!(
        "compared {} structures, {} members, {} requests, {} constants: {} mismatches",
        count(Kind::Structure),
        count(Kind::Field),
        count(Kind::Request),
        count(Kind::Constant),
        mismatches.len() + unknown
    );
    Ok(mismatches.len() + unknown)
}

/// The headers with the greatest version below /usr/src.
fn newest() -> Option<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/usr/src").ok()?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(version) = name.strip_prefix("linux-headers-") else { continue };
        let folder = entry.path().join("include/uapi/linux");
        if folder.join("kfd_ioctl.h").exists() {
            found.push((numbers(version), folder));
        }
    }
    found.sort();
    found.pop().map(|(_, folder)| folder)
}

/// The numbers in a version text, so that 6.12.117 comes after 6.12.99.
fn numbers(version: &str) -> Vec<u64> {
    version.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}

fn minor_version(text: &str) -> Option<u32> {
    let line = text.lines().find(|line| line.contains("#define KFD_IOCTL_MINOR_VERSION"))?;
    line.split_whitespace().nth(2)?.parse().ok()
}

fn compile_and_run(plan: &Plan, paths: &[PathBuf]) -> Result<String, Error> {
    let folder = std::env::temp_dir().join(format!("kfdrun-header-check-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| Error::Io(folder.clone(), error))?;
    let source = folder.join("check.c");
    let program = folder.join("check");
    let absolute: Vec<PathBuf> =
        paths.iter().map(|path| std::fs::canonicalize(path).unwrap_or_else(|_| path.clone())).collect();
    let includes: Vec<&str> = absolute.iter().filter_map(|path| path.to_str()).collect();
    std::fs::write(&source, plan.program(&includes)).map_err(|error| Error::Io(source.clone(), error))?;
    let cc = std::env::var("CC").unwrap_or_else(|_| "cc".to_string());
    // kfd_ioctl.h includes <drm/drm.h>, which lies beside it; the system's own headers come first. `__user` is what the
    // kernel's header installation strips.
    let tree = absolute.first().and_then(|path| path.ancestors().nth(2)).unwrap_or(Path::new("."));
    execute(
        Command::new(&cc).args(["-D__user=", "-idirafter"]).arg(tree).arg("-o").arg(&program).arg(&source),
        &source,
    )?;
    let output = execute(&mut Command::new(&program), &source)?;
    // Kept on failure, for a look at the program; gone on success.
    let _ = std::fs::remove_dir_all(&folder);
    Ok(output)
}

fn execute(command: &mut Command, source: &Path) -> Result<String, Error> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| Error::Io(PathBuf::from(&name), error))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Error::Command { command: name, program: source.to_path_buf(), stderr });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_sort_by_number() {
        assert!(numbers("6.12.117+deb12-common") > numbers("6.12.99+deb12-common"));
        assert!(numbers("6.12.1-common") > numbers("6.1.0-57-common"));
    }

    #[test]
    fn version_of_a_header() {
        assert_eq!(minor_version("#define KFD_IOCTL_MAJOR_VERSION 1\n#define KFD_IOCTL_MINOR_VERSION 17\n"), Some(17));
        assert_eq!(minor_version("#define KFD_IOCTL_MINOR_VERSION x\n"), None);
    }
}

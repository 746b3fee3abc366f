//! The compilers.

use crate::plan::Variant;
use clap::ValueEnum;
use std::path::Path;
use std::process::Command;

/// Compiler of the code for the GPU. The host's is always clang-22.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Compiler {
    /// clang 22
    #[value(name = "clang-22")]
    Clang22,
    /// clang 19
    #[value(name = "clang-19")]
    Clang19,
    /// GCC 12, as Debian's gcc-12-offload-amdgcn has it
    #[value(name = "gcc-12")]
    Gcc12,
}

/// Why there is no image.
#[derive(Debug)]
pub enum Failure {
    /// The compiler broke off with an error in itself.
    Crash(String),
    /// Anything else.
    Other(String),
}

/// Flags that give C one meaning.
const MEANING: [&str; 3] = ["-fwrapv", "-ffp-contract=off", "-fno-strict-aliasing"];

/// GCC 12's driver for the accelerator: it has the back end, not the C front end.
const ACCELERATOR: &str = "x86_64-linux-gnu-accel-amdgcn-amdhsa-gcc-12";

/// Compiles the program for this host.
pub fn host(file: &Path, output: &Path, defines: &[String]) -> Result<(), Failure> {
    let mut command = Command::new("clang-22");
    command.arg("-w").args(MEANING).args(["-O1", "-Xclang", "-ffloat16-excess-precision=none"]).args(defines);
    run(command.arg("-o").arg(output).arg(file).arg("-lm"))
}

/// Compiles the program for a GPU.
pub fn device(
    compiler: Compiler,
    variant: &Variant,
    file: &Path,
    output: &Path,
    defines: &[String],
    more: &[String],
) -> Result<(), Failure> {
    let level = format!("-{}", variant.level);
    let (clang, lld) = match compiler {
        Compiler::Clang22 => ("clang-22", "-fuse-ld=lld-22"),
        Compiler::Clang19 => ("clang-19", "-fuse-ld=lld-19"),
        Compiler::Gcc12 => return gcc(variant, file, output, defines, more),
    };
    let mut command = Command::new(clang);
    command.arg("-w").args(MEANING).args(defines);
    command.args(["--target=amdgcn-amd-amdhsa", "-nogpulib", "-nostdlib", "-ffreestanding", &level, lld]);
    command.arg(format!("-mcpu={}", variant.target));
    if variant.wave64 {
        command.arg("-mwavefrontsize64");
    }
    if compiler == Compiler::Clang22 {
        // Vectors taken apart at joins meet an error in LLVM 22's StructurizeCFG (docs/differential.md).
        command.args(["-mllvm", "-amdgpu-codegenprepare-break-large-phis=0"]);
    }
    run(command.args(more).arg("-o").arg(output).arg(file))
}

/// The host compiler reads the file for offloading, the accelerator's finishes it: a program for `gcn-run`.
fn gcc(variant: &Variant, file: &Path, output: &Path, defines: &[String], more: &[String]) -> Result<(), Failure> {
    let (object, assembly) = (output.with_extension("o"), output.with_extension("s"));
    let (level, march) = (format!("-{}", variant.level), format!("-march={}", variant.processor()));
    let mut front = Command::new("gcc-12");
    front.args(["-w", "-fopenmp", "-foffload=amdgcn-amdhsa", &level]).args(MEANING).args(defines);
    run(front.arg("-c").arg(file).arg("-o").arg(&object))?;
    let mut back = Command::new(ACCELERATOR);
    back.args(["-xlto", "-S", &level, &march]).args(MEANING).args(more);
    run(back.arg(&object).arg("-o").arg(&assembly))?;
    run(Command::new(ACCELERATOR).arg(&march).arg(&assembly).arg("-o").arg(output).arg("-lm"))
}

fn run(command: &mut Command) -> Result<(), Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.output() {
        Err(error) => Err(Failure::Other(format!("{name}: {error}"))),
        Ok(result) if !result.status.success() => {
            let text = String::from_utf8_lossy(&result.stderr);
            let line = text.lines().find(|line| line.contains("error")).or(text.lines().next());
            let line = format!("{name}: {}", line.unwrap_or_default());
            let own = ["error in backend", "internal compiler error", "PLEASE submit a bug report"];
            Err(if own.iter().any(|words| text.contains(words)) { Failure::Crash(line) } else { Failure::Other(line) })
        }
        Ok(_) => Ok(()),
    }
}

//! What can go wrong, one variant a cause.

use crate::kernarg;
use crate::stop::Stop;
use kfd::GpuVa;

/// An error of the loader.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The driver's interface.
    #[error(transparent)]
    Kfd(#[from] kfd::Error),
    /// A kernel's arguments.
    #[error(transparent)]
    Kernarg(#[from] kernarg::Error),
    /// Symbols nobody defines.
    #[error(
        "the image needs {}, which nothing defines; give each an address (`kfdrun launch --define SYMBOL=ADDR|BUFFER`, \
         [define] in a script), or link what defines it",
        named(.symbols)
    )]
    UndefinedSymbols {
        /// Names, and the image address of the first relocation of each.
        symbols: Vec<(String, u64)>,
    },
    /// Code of the address sanitizer without its runtime.
    #[error(
        "the image is instrumented by the address sanitizer and calls '{symbol}', which nothing in it defines: link it with \
         the device's side of the sanitizer (ROCm's device library asanrtl; clang does so for HIP with -fgpu-sanitize), or \
         build it without -fsanitize=address"
    )]
    AddressSanitizer {
        /// A function of the runtime.
        symbol: String,
    },
    /// Shadow memory could not be made.
    #[error("the address sanitizer's shadow memory, {bytes} bytes at {va}: {error}")]
    Shadow {
        /// Address.
        va: GpuVa,
        /// Bytes.
        bytes: u64,
        /// Why.
        error: kfd::Error,
    },
    /// A 32-bit relocation whose value does not fit.
    #[error(
        "relocation at {vaddr:#x}: {value:#x} does not fit the 32 bits of R_AMDGPU_{kind}: compile the code that refers to it with -fPIC"
    )]
    RelocationRange {
        /// Image address.
        vaddr: u64,
        /// Value.
        value: u64,
        /// Relocation.
        kind: &'static str,
    },
    /// The image has no such kernel.
    #[error("the image has no kernel '{name}'{}", listed(.kernels))]
    NoKernel {
        /// Name asked for.
        name: String,
        /// Names there are, the nearest first.
        kernels: Vec<String>,
    },
    /// Several kernels have that name in the source.
    #[error("'{name}' is the name of several kernels in the source: {}", .kernels.join(", "))]
    AmbiguousKernel {
        /// Name asked for.
        name: String,
        /// Their names.
        kernels: Vec<String>,
    },
    /// A launch that the kernel or the device does not allow.
    #[error("kernel {kernel}: {what} is {value}, {rule}")]
    Launch {
        /// Kernel.
        kernel: String,
        /// Which number.
        what: &'static str,
        /// Its value.
        value: String,
        /// The rule it broke.
        rule: String,
    },
    /// No memory for the private segments of even as few waves as the GPU can run.
    #[error(
        "scratch: {bytes_per_lane} bytes a lane x {lanes} lanes x {waves} waves x {num_xcc} XCCs = {needed} bytes; {}: \
         {cause}; give the kernel less private memory (large arrays, spills, --stack-size), or end other GPU processes",
        available.map_or("how much is available is not known".to_owned(), |bytes| format!("{bytes} are available"))
    )]
    Scratch {
        /// Bytes a lane.
        bytes_per_lane: u64,
        /// Lanes of a wave.
        lanes: u32,
        /// Waves of one XCC.
        waves: u32,
        /// XCCs.
        num_xcc: u32,
        /// Bytes.
        needed: u64,
        /// Bytes of device memory that can be allocated (AVAILABLE_MEMORY).
        available: Option<u64>,
        /// What the kernel answered.
        cause: kfd::Error,
    },
    /// `amdhsa.printf`.
    #[error(transparent)]
    Formats(#[from] crate::printf::FormatsError),
    /// The kernel uses the printf buffer, and the caller gave none ([`crate::Services`]).
    #[error(
        "kernel {kernel} prints through the OpenCL or HIP printf buffer (amdhsa.printf), and there is none for it: give the launch a Services"
    )]
    Printf {
        /// Kernel.
        kernel: String,
    },
    /// Not a program.
    #[error("the image has no kernel '_start': it is not a program{}", listed(.kernels))]
    NotAProgram {
        /// Kernels there are.
        kernels: Vec<String>,
    },
    /// A kernel did not complete.
    #[error("{0}")]
    Stopped(Box<Stop>),
}

impl From<Stop> for Error {
    fn from(stop: Stop) -> Error {
        Error::Stopped(Box::new(stop))
    }
}

fn named(symbols: &[(String, u64)]) -> String {
    let list: Vec<String> =
        symbols.iter().map(|(name, vaddr)| format!("'{name}' (relocation at {vaddr:#x})")).collect();
    format!("the symbol{} {}", if list.len() == 1 { "" } else { "s" }, list.join(", "))
}

fn listed(kernels: &[String]) -> String {
    match kernels {
        [] => "; it has no kernels".to_owned(),
        _ => format!("; its kernels are {}", kernels.iter().take(8).cloned().collect::<Vec<_>>().join(", ")),
    }
}

//! What can go wrong, one variant a cause.

use crate::kernarg;
use kfd::GpuVa;
use std::time::Duration;

/// An error of the loader.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The driver's interface.
    #[error(transparent)]
    Kfd(#[from] kfd::Error),
    /// A kernel's arguments.
    #[error(transparent)]
    Kernarg(#[from] kernarg::Error),
    /// A symbol nobody defines.
    #[error(
        "the image needs the symbol '{name}' (relocation at {vaddr:#x}), which nothing defines; bind it to a device address \
         or link what defines it"
    )]
    UndefinedSymbol {
        /// Name.
        name: String,
        /// Image address of the relocation.
        vaddr: u64,
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
    #[error("relocation at {vaddr:#x}: {value:#x} does not fit the 32 bits of R_AMDGPU_{kind}")]
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
    /// `amdhsa.printf`.
    #[error(transparent)]
    Formats(#[from] crate::printf::FormatsError),
    /// The kernel uses the printf buffer, and the caller gave none ([`crate::Services`]).
    #[error("kernel {kernel} prints through the OpenCL or HIP printf buffer (amdhsa.printf), and there is none for it")]
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

fn listed(kernels: &[String]) -> String {
    match kernels {
        [] => "; it has no kernels".to_owned(),
        _ => format!("; its kernels are {}", kernels.iter().take(8).cloned().collect::<Vec<_>>().join(", ")),
    }
}

/// Why a kernel did not complete.
#[derive(Clone, Debug, PartialEq)]
pub enum Stop {
    /// A memory fault, as the driver reports it.
    MemoryFault {
        /// Kernel.
        kernel: String,
        /// The driver's report.
        fault: kfd::MemoryFault,
        /// What the emulated machine knows besides.
        detail: Option<Box<trace::Fault>>,
        /// More lines: the function of the pc, the nearest memory.
        notes: Vec<String>,
    },
    /// The GPU was reset or broke.
    HwException {
        /// Kernel.
        kernel: String,
        /// The driver's report.
        exception: kfd::HwException,
    },
    /// The packet processor stopped the queue.
    Queue {
        /// Kernel.
        kernel: String,
        /// `queue_inactive_signal`.
        inactive: u64,
        /// Exceptions that the kernel driver reported.
        exceptions: u64,
        /// What the emulated machine knows besides.
        detail: Option<Box<trace::Fault>>,
        /// More lines: the function of the pc.
        notes: Vec<String>,
    },
    /// The address sanitizer found something, and the kernel was left at that.
    Sanitizer {
        /// Kernel.
        kernel: String,
        /// What it found.
        reports: Vec<String>,
    },
    /// The time was over.
    Timeout {
        /// Kernel.
        kernel: String,
        /// Limit.
        limit: Duration,
        /// Address of the completion signal.
        signal: GpuVa,
        /// Its value, which should have become 0.
        value: i64,
        /// What the queue and the waves are at: [`Gpu::report`](crate::Gpu::report).
        report: Vec<String>,
    },
    /// The caller asked to stop.
    Interrupted {
        /// Kernel.
        kernel: String,
        /// Address of the completion signal.
        signal: GpuVa,
        /// Its value.
        value: i64,
        /// What the queue and the waves are at: [`Gpu::report`](crate::Gpu::report).
        report: Vec<String>,
    },
}

impl Stop {
    /// Adds a line to the report.
    pub(crate) fn add_note(&mut self, note: String) {
        match self {
            Stop::MemoryFault { notes: lines, .. }
            | Stop::Queue { notes: lines, .. }
            | Stop::Sanitizer { reports: lines, .. }
            | Stop::Timeout { report: lines, .. }
            | Stop::Interrupted { report: lines, .. } => lines.push(note),
            Stop::HwException { .. } => {}
        }
    }

    /// `s_trap`, from either report.
    pub fn is_trap(&self) -> bool {
        let Stop::Queue { inactive, exceptions, detail, .. } = self else { return false };
        match detail.as_deref().map(|fault| &fault.kind) {
            Some(kind) => matches!(kind, trace::FaultKind::Trap(_)),
            None => inactive & 0x8000_0000 != 0 || exceptions & 0b11 != 0,
        }
    }

    /// An illegal instruction, from either report.
    pub fn is_illegal_instruction(&self) -> bool {
        let Stop::Queue { inactive, exceptions, detail, .. } = self else { return false };
        match detail.as_deref().map(|fault| &fault.kind) {
            Some(kind) => matches!(kind, trace::FaultKind::IllegalInstruction),
            None => inactive & 0x4000_0000 != 0 || exceptions & 0b1000 != 0,
        }
    }
}

/// The part of a report that only the emulated machine can give.
fn place(detail: &Option<Box<trace::Fault>>) -> String {
    let Some(fault) = detail else { return String::new() };
    let mut text = String::new();
    if let (Some(pc), Some(instruction)) = (fault.pc, &fault.instruction) {
        text.push_str(&format!("\n  at pc {pc:#x}: {instruction}"));
    } else if let Some(pc) = fault.pc {
        text.push_str(&format!("\n  at pc {pc:#x}"));
    }
    if !fault.bytes.is_empty() {
        let bytes: Vec<String> = fault.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        text.push_str(&format!(" [{}]", bytes.join(" ")));
    }
    if let (Some([x, y, z]), Some(wave)) = (fault.workgroup, fault.wave) {
        text.push_str(&format!("\n  in work-group ({x}, {y}, {z}) wave {wave}"));
        if let Some(lanes) = fault.lanes {
            text.push_str(&format!(" lanes {lanes:#x}"));
        }
    }
    if !fault.detail.is_empty() {
        text.push_str(&format!("\n  {}", fault.detail));
    }
    text
}

fn inactive_names(inactive: u64, exceptions: u64) -> String {
    let (bits, rest) = aql::status::inactive_bits(inactive);
    let mut names: Vec<String> = bits.iter().map(|bit| bit.name.to_owned()).collect();
    if rest != 0 {
        names.push(format!("unknown bits {rest:#x}"));
    }
    let (codes, rest) = aql::status::exceptions(exceptions);
    names.extend(codes.iter().map(|code| format!("exception {} ({})", code.code, code.name)));
    if rest != 0 {
        names.push(format!("unknown exceptions {rest:#x}"));
    }
    if names.is_empty() { "no reason given".to_owned() } else { names.join(", ") }
}

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Stop::MemoryFault { kernel, fault, detail, notes } => {
                let exact = detail.as_ref().and_then(|detail| detail.va).unwrap_or(fault.va.0);
                let access = detail.as_ref().and_then(|detail| detail.access).map(|access| access.name());
                write!(f, "memory fault: kernel {kernel}: {} at {exact:#x}: ", access.unwrap_or("access"))?;
                write!(f, "{}", fault.reasons().join(", "))?;
                let raw = fault.raw;
                write!(
                    f,
                    "\n  gpu_id {} NotPresent={} ReadOnly={} NoExecute={} imprecise={} ErrorType={}",
                    fault.gpu, raw.not_present, raw.read_only, raw.no_execute, raw.imprecise, fault.error_type
                )?;
                f.write_str(&place(detail))?;
                notes.iter().try_for_each(|note| write!(f, "\n  {note}"))
            }
            Stop::HwException { kernel, exception } => write!(
                f,
                "hardware exception: kernel {kernel}: gpu_id {} reset_type={} reset_cause={} memory_lost={}; queues of this \
                 process on that GPU never run again",
                exception.gpu, exception.reset_type, exception.reset_cause, exception.memory_lost
            ),
            Stop::Queue { kernel, inactive, exceptions, detail, notes } => {
                let what = match detail.as_deref().map(|fault| &fault.kind) {
                    Some(trace::FaultKind::IllegalInstruction) => "illegal instruction".to_owned(),
                    Some(trace::FaultKind::Trap(id)) => format!("trap (s_trap {id})"),
                    _ if self.is_illegal_instruction() => "illegal instruction".to_owned(),
                    _ if self.is_trap() => "trap".to_owned(),
                    _ => "queue stopped".to_owned(),
                };
                write!(f, "{what}: kernel {kernel}: {}", inactive_names(*inactive, *exceptions))?;
                // The two ways a GPU tells, as far as they have arrived.
                for (name, value) in [("queue_inactive_signal", *inactive), ("exceptions", *exceptions)] {
                    if value != 0 {
                        write!(f, "; {name} {value:#x}")?;
                    }
                }
                f.write_str(&place(detail))?;
                notes.iter().try_for_each(|note| write!(f, "\n  {note}"))
            }
            Stop::Sanitizer { kernel, reports } => {
                reports.iter().try_for_each(|report| writeln!(f, "{report}"))?;
                write!(f, "  kernel {kernel} was stopped")
            }
            Stop::Timeout { kernel, limit, signal, value, report } => {
                write!(
                    f,
                    "timeout: kernel {kernel} did not complete within the limit of {} s: signal {signal} is {value}, 0 was expected",
                    limit.as_secs_f64()
                )?;
                report.iter().try_for_each(|line| write!(f, "\n  {line}"))
            }
            Stop::Interrupted { kernel, signal, value, report } => {
                write!(
                    f,
                    "interrupted: kernel {kernel} had not completed: signal {signal} is {value}, 0 was expected"
                )?;
                report.iter().try_for_each(|line| write!(f, "\n  {line}"))
            }
        }
    }
}

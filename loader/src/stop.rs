//! Why a kernel did not complete, in words: the raw numbers first, then their names, what ROCR calls them, what is known
//! of the place, and what to do.

use kfd::GpuVa;
use kfd::uapi::{EC_QUEUE_WAVE_APERTURE_VIOLATION, ec_mask};
use std::fmt;
use std::time::Duration;

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
        /// More lines: the function of the pc, the nearest memory, the packet.
        notes: Vec<String>,
    },
    /// The GPU was reset or broke.
    HwException {
        /// Kernel.
        kernel: String,
        /// The driver's report.
        exception: kfd::HwException,
        /// More lines: the packet.
        notes: Vec<String>,
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
        /// More lines: the function of the pc, the packet.
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
    /// The program has ended; what it wrote to a pipe was not read before the time was over, or before the caller asked to
    /// stop.
    Unread {
        /// Limit, when that was it.
        limit: Option<Duration>,
    },
}

impl Stop {
    /// Adds a line to the report.
    pub(crate) fn add_note(&mut self, note: String) {
        match self {
            Stop::MemoryFault { notes: lines, .. }
            | Stop::HwException { notes: lines, .. }
            | Stop::Queue { notes: lines, .. }
            | Stop::Sanitizer { reports: lines, .. }
            | Stop::Timeout { report: lines, .. }
            | Stop::Interrupted { report: lines, .. } => lines.push(note),
            Stop::Unread { .. } => {}
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

    /// An address that no memory has: an address outside every aperture, a work-item's stack that was too small.
    pub fn is_bad_address(&self) -> bool {
        let Stop::Queue { inactive, exceptions, detail, .. } = self else { return false };
        match detail.as_deref().map(|fault| &fault.kind) {
            Some(kind) => matches!(kind, trace::FaultKind::Aperture),
            None => inactive & 0x2000_0000 != 0 || exceptions & ec_mask(EC_QUEUE_WAVE_APERTURE_VIOLATION) != 0,
        }
    }

    /// What stopped the queue, in a few words.
    fn what(&self, detail: Option<&trace::Fault>) -> String {
        match detail.map(|fault| &fault.kind) {
            Some(trace::FaultKind::IllegalInstruction) => "illegal instruction".to_owned(),
            Some(trace::FaultKind::Trap(id)) => format!("trap (s_trap {id})"),
            _ if self.is_illegal_instruction() => "illegal instruction".to_owned(),
            _ if self.is_trap() => "trap".to_owned(),
            _ => "queue stopped".to_owned(),
        }
    }
}

/// Who knows more than a GPU.
const EMULATE: &str = "the same launch on an emulated GPU (--device emu) names instruction, lanes and source line";

/// What is said of a stop below its first line.
#[derive(Default)]
struct Lines {
    lines: Vec<String>,
    /// What to do, each advice once.
    advice: Vec<&'static str>,
}

impl Lines {
    fn push(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    fn advise(&mut self, advice: &'static str) {
        if !self.advice.contains(&advice) {
            self.advice.push(advice);
        }
    }

    /// Where it happened, which only the emulated machine can tell.
    fn place(&mut self, detail: Option<&trace::Fault>) {
        let Some(fault) = detail else {
            self.push("the driver does not tell the pc, the instruction or the lanes");
            return;
        };
        if let Some(pc) = fault.pc {
            let instruction = fault.instruction.as_ref().map_or(String::new(), |text| format!(": {text}"));
            let bytes: Vec<String> = fault.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let bytes = if bytes.is_empty() { String::new() } else { format!(" [{}]", bytes.join(" ")) };
            self.push(format!("at pc {pc:#x}{instruction}{bytes}"));
        }
        if let (Some([x, y, z]), Some(wave)) = (fault.workgroup, fault.wave) {
            let lanes = fault.lanes.map_or(String::new(), |lanes| format!(", {}", lanes_text(lanes)));
            self.push(format!("in work-group ({x}, {y}, {z}) wave {wave}{lanes}"));
        }
        if !fault.detail.is_empty() {
            self.push(fault.detail.clone());
        }
    }

    fn write(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|line| write!(f, "\n  {line}"))?;
        self.advice.iter().try_for_each(|advice| write!(f, "\n  do: {advice}"))
    }
}

/// A mask of lanes: how many, and which as ranges.
fn lanes_text(lanes: u64) -> String {
    /// Ranges that are written out.
    const RANGES: usize = 6;
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for lane in (0..64).filter(|lane| lanes >> lane & 1 != 0) {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == lane => *last = lane,
            _ => ranges.push((lane, lane)),
        }
    }
    let texts: Vec<String> = ranges
        .iter()
        .take(RANGES)
        .map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") })
        .collect();
    let more = if ranges.len() > RANGES { ", ..." } else { "" };
    match lanes.count_ones() {
        0 => format!("lanes {lanes:#x} (it concerns the wave, not a lane)"),
        1 => format!("lanes {lanes:#x} (lane {})", texts.join(", ")),
        count => format!("lanes {lanes:#x} ({count} lanes: {}{more})", texts.join(", ")),
    }
}

/// Every bit and exception in a line of its own: raw, name, meaning, ROCR's name.
fn reasons(inactive: u64, exceptions: u64, lines: &mut Lines) {
    const NEWER: &str = "the firmware or the kernel is newer than the tables here: please report the bits";
    let called = |rocr: Option<&aql::HsaStatus>| rocr.map_or(String::new(), |status| format!("; ROCR: {status}"));
    let (bits, rest) = aql::status::inactive_bits(inactive);
    for bit in bits {
        let rocr = match bit.recoverable {
            true => bit.rocr().map_or(String::new(), |status| format!("; ROCR: gives it, or {status} if it cannot")),
            false => called(bit.rocr()),
        };
        lines.push(format!("inactive {:#x} ({}): {}{rocr}", bit.bit, bit.name, bit.meaning));
        lines.advise(bit.advice);
    }
    if rest != 0 {
        lines.push(format!("inactive {rest:#x}: bits that are not known"));
        lines.advise(NEWER);
    }
    let (codes, rest) = aql::status::exceptions(exceptions);
    for code in codes {
        lines.push(format!("exception {} (EC_{}): {}{}", code.code, code.name, code.meaning, called(code.rocr())));
        lines.advise(code.advice);
    }
    if rest != 0 {
        lines.push(format!("exceptions {rest:#x}: bits that are not known"));
        lines.advise(NEWER);
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = Lines::default();
        match self {
            Stop::MemoryFault { kernel, fault, detail, notes } => {
                let detail = detail.as_deref();
                let exact = detail.and_then(|detail| detail.va).unwrap_or(fault.va.0);
                let access = detail.and_then(|detail| detail.access).map_or("access", |access| access.name());
                write!(f, "memory fault: kernel {kernel}: {access} at {exact:#x}: {}", fault.raw_text())?;
                lines.push(format!("{} (gpu_id {})", fault.reasons().join("; "), fault.gpu));
                if let Some(caveat) = fault.caveat() {
                    lines.push(caveat);
                }
                let status = aql::hsa_status(43).map_or(String::new(), aql::HsaStatus::to_string);
                lines.push(format!("ROCR: {status}, \"{}\"", fault.rocr_reason()));
                lines.place(detail);
                lines.lines.extend(notes.iter().cloned());
                lines.advise(fault.advice());
                if detail.is_none() && fault.error_type == kfd::uapi::MEM_ERR_NO_RAS {
                    lines.advise(EMULATE);
                }
            }
            Stop::HwException { kernel, exception, notes } => {
                write!(f, "hardware exception: kernel {kernel}: {}", exception.raw_text())?;
                lines.push(format!("{} (gpu_id {})", exception.meaning(), exception.gpu));
                lines.push(format!("ROCR: \"HW Exception by GPU node-N ... reason :{}\"", exception.rocr_reason()));
                lines.lines.extend(notes.iter().cloned());
                lines.advise(exception.advice());
            }
            Stop::Queue { kernel, inactive, exceptions, detail, notes } => {
                let detail = detail.as_deref();
                write!(f, "{}: kernel {kernel}: ", self.what(detail))?;
                // The two ways a GPU tells, as far as they have arrived.
                let told = [("queue_inactive_signal", *inactive), ("exceptions", *exceptions)];
                let told: Vec<String> = told
                    .iter()
                    .filter(|(_, value)| *value != 0)
                    .map(|(name, value)| format!("{name} {value:#x}"))
                    .collect();
                f.write_str(&if told.is_empty() { "no reason was told".to_owned() } else { told.join(", ") })?;
                reasons(*inactive, *exceptions, &mut lines);
                // What the packet processor refuses has no pc.
                if detail.is_some() || self.is_trap() || self.is_illegal_instruction() {
                    lines.place(detail);
                    if detail.is_none() {
                        lines.advise(EMULATE);
                    }
                }
                lines.lines.extend(notes.iter().cloned());
            }
            Stop::Sanitizer { kernel, reports } => {
                reports.iter().try_for_each(|report| writeln!(f, "{report}"))?;
                write!(f, "  kernel {kernel} was stopped")?;
            }
            Stop::Timeout { kernel, limit, signal, value, report } => {
                write!(
                    f,
                    "timeout: kernel {kernel} did not complete within the limit of {} s: signal {signal}: want 0, have \
                     {value}",
                    limit.as_secs_f64()
                )?;
                lines.lines.extend(report.iter().cloned());
            }
            Stop::Interrupted { kernel, signal, value, report } => {
                write!(f, "interrupted: kernel {kernel} had not completed: signal {signal}: want 0, have {value}")?;
                lines.lines.extend(report.iter().cloned());
            }
            Stop::Unread { limit } => {
                match limit {
                    Some(limit) => write!(f, "timeout: within the limit of {} s ", limit.as_secs_f64())?,
                    None => f.write_str("interrupted: ")?,
                }
                f.write_str("the program ended, and a pipe that it wrote to was not read: the rest is lost")?;
            }
        }
        lines.write(f)
    }
}
#[cfg(test)]
mod tests;

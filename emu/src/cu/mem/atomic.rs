//! Atomic read-modify-writes: what they compute, and how they are done on memory shared with the host.
//!
//! Float operations keep denormals whatever MODE says.

use super::super::inst::Inst;
use super::super::valu::convert::bf16_from_f32;
use super::super::valu::f16::F16;
use super::super::wave::Wave;
use super::access::{read32, write32};
use super::lanes::Lanes;
use super::pattern::ones;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

/// A read-modify-write. `data` is the operand, `cmp` the value compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Rmw {
    /// `data`.
    Swap,
    /// `data` where memory equals `cmp`.
    CmpSwap,
    /// The same, compared as floats: -0 equals +0, a NaN equals nothing.
    FCmpSwap,
    /// Memory + `data`.
    Add,
    /// Memory - `data`.
    Sub,
    /// `data` - memory.
    RSub,
    /// Memory - `data`, 0 where that would be negative.
    SubClamp,
    /// Memory - `data`, unchanged where that would be negative.
    CondSub,
    /// Signed minimum.
    SMin,
    /// Signed maximum.
    SMax,
    /// Unsigned minimum.
    UMin,
    /// Unsigned maximum.
    UMax,
    /// And.
    And,
    /// Or.
    Or,
    /// Exclusive or.
    Xor,
    /// Memory + 1, 0 where memory is `data` or more.
    Inc,
    /// Memory - 1, `data` where memory is 0 or more than `data`.
    Dec,
    /// (Memory and not `data`) or `cmp`: the mask-or of LDS, whose operands are mask and value.
    MaskOr,
    /// Memory - `data` where memory is `data` or more, else memory + `cmp`.
    Wrap,
    /// Each dword of `data` whose top bit is set replaces memory's, without that bit (64-bit only).
    CondExchange32,
    /// Float addition.
    FAdd,
    /// Float minimum: a number wins over a NaN, -0 is less than +0.
    FMin,
    /// Float maximum.
    FMax,
    /// Two f16 additions.
    PkAddF16,
    /// Two bf16 additions.
    PkAddBf16,
}

impl Rmw {
    const ALL: [Rmw; 25] = [
        Rmw::Swap,
        Rmw::CmpSwap,
        Rmw::FCmpSwap,
        Rmw::Add,
        Rmw::Sub,
        Rmw::RSub,
        Rmw::SubClamp,
        Rmw::CondSub,
        Rmw::SMin,
        Rmw::SMax,
        Rmw::UMin,
        Rmw::UMax,
        Rmw::And,
        Rmw::Or,
        Rmw::Xor,
        Rmw::Inc,
        Rmw::Dec,
        Rmw::MaskOr,
        Rmw::Wrap,
        Rmw::CondExchange32,
        Rmw::FAdd,
        Rmw::FMin,
        Rmw::FMax,
        Rmw::PkAddF16,
        Rmw::PkAddBf16,
    ];

    /// The operation with this number; lowering put it into an instruction.
    #[inline(always)]
    pub fn from_number(number: u16) -> Rmw {
        Rmw::ALL[usize::from(number) % Rmw::ALL.len()]
    }

    /// Takes a second operand.
    pub fn compares(self) -> bool {
        matches!(self, Rmw::CmpSwap | Rmw::FCmpSwap | Rmw::MaskOr | Rmw::Wrap)
    }
}

macro_rules! integer {
    ($op:expr, $old:expr, $data:expr, $cmp:expr, $signed:ty) => {{
        let (old, data, cmp) = ($old, $data, $cmp);
        match $op {
            Rmw::Swap => data,
            Rmw::CmpSwap => {
                if old == cmp {
                    data
                } else {
                    old
                }
            }
            Rmw::Add => old.wrapping_add(data),
            Rmw::Sub => old.wrapping_sub(data),
            Rmw::RSub => data.wrapping_sub(old),
            Rmw::SubClamp => old.saturating_sub(data),
            Rmw::CondSub => old.checked_sub(data).unwrap_or(old),
            Rmw::SMin => (old as $signed).min(data as $signed) as _,
            Rmw::SMax => (old as $signed).max(data as $signed) as _,
            Rmw::UMin => old.min(data),
            Rmw::UMax => old.max(data),
            Rmw::And => old & data,
            Rmw::Or => old | data,
            Rmw::Xor => old ^ data,
            Rmw::Inc => {
                if old >= data {
                    0
                } else {
                    old + 1
                }
            }
            Rmw::Dec => {
                if old == 0 || old > data {
                    data
                } else {
                    old - 1
                }
            }
            Rmw::MaskOr => old & !data | cmp,
            Rmw::Wrap => {
                if old >= data {
                    old - data
                } else {
                    old.wrapping_add(cmp)
                }
            }
            // The callers treat floats themselves.
            Rmw::FCmpSwap
            | Rmw::CondExchange32
            | Rmw::FAdd
            | Rmw::FMin
            | Rmw::FMax
            | Rmw::PkAddF16
            | Rmw::PkAddBf16 => old,
        }
    }};
}

macro_rules! minimum {
    ($a:expr, $b:expr, $less:expr) => {{
        let (a, b) = ($a, $b);
        if a.is_nan() {
            b
        } else if b.is_nan() {
            a
        } else if a == b {
            // Only zeros differ in sign and are equal.
            if a.is_sign_negative() == $less { a } else { b }
        } else if (a < b) == $less {
            a
        } else {
            b
        }
    }};
}

/// What memory holds after a 32-bit operation.
pub fn apply32(op: Rmw, old: u32, data: u32, cmp: u32) -> u32 {
    let (a, b) = (f32::from_bits(old), f32::from_bits(data));
    match op {
        Rmw::FCmpSwap if a == f32::from_bits(cmp) => data,
        Rmw::FCmpSwap => old,
        Rmw::FAdd => (a + b).to_bits(),
        Rmw::FMin => minimum!(a, b, true).to_bits(),
        Rmw::FMax => minimum!(a, b, false).to_bits(),
        Rmw::PkAddF16 => {
            halves(old, data, |a, b| F16::from_f32(F16(a as u32).to_f32() + F16(b as u32).to_f32()).0 as u16)
        }
        Rmw::PkAddBf16 => halves(old, data, |a, b| bf16_from_f32(bf16_to_f32(a) + bf16_to_f32(b)) as u16),
        _ => integer!(op, old, data, cmp, i32),
    }
}

/// What memory holds after a 64-bit operation.
pub fn apply64(op: Rmw, old: u64, data: u64, cmp: u64) -> u64 {
    let (a, b) = (f64::from_bits(old), f64::from_bits(data));
    match op {
        Rmw::FCmpSwap if a == f64::from_bits(cmp) => data,
        Rmw::FCmpSwap => old,
        Rmw::FAdd => (a + b).to_bits(),
        Rmw::FMin => minimum!(a, b, true).to_bits(),
        Rmw::FMax => minimum!(a, b, false).to_bits(),
        Rmw::CondExchange32 => {
            let word = |old: u32, data: u32| if data >> 31 != 0 { data & 0x7fff_ffff } else { old };
            word(old as u32, data as u32) as u64 | (word((old >> 32) as u32, (data >> 32) as u32) as u64) << 32
        }
        Rmw::PkAddF16 | Rmw::PkAddBf16 => old,
        _ => integer!(op, old, data, cmp, i64),
    }
}

/// Two halves on their own. A sum of halves in f32 rounds to f16 or bf16 as the exact sum would: 24 bits of precision
/// are at least twice 11 plus 2.
fn halves(a: u32, b: u32, f: impl Fn(u16, u16) -> u16) -> u32 {
    f(a as u16, b as u16) as u32 | (f((a >> 16) as u16, (b >> 16) as u16) as u32) << 16
}

fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits((bits as u32) << 16)
}

/// Does a 32-bit operation on memory the host shares and returns the value before.
///
/// # Safety
/// `at` must be valid and a multiple of 4.
#[inline(always)]
pub unsafe fn host32(op: Rmw, at: *mut u8, data: u32, cmp: u32) -> u32 {
    // SAFETY: the caller's promise.
    let cell = unsafe { AtomicU32::from_ptr(at.cast()) };
    match op {
        Rmw::Swap => cell.swap(data, SeqCst),
        Rmw::CmpSwap => cell.compare_exchange(cmp, data, SeqCst, SeqCst).unwrap_or_else(|old| old),
        Rmw::Add => cell.fetch_add(data, SeqCst),
        Rmw::Sub => cell.fetch_sub(data, SeqCst),
        _ => {
            let mut old = cell.load(Relaxed);
            loop {
                match cell.compare_exchange_weak(old, apply32(op, old, data, cmp), SeqCst, Relaxed) {
                    Ok(old) => return old,
                    Err(now) => old = now,
                }
            }
        }
    }
}

/// Does a 64-bit operation on memory the host shares and returns the value before.
///
/// # Safety
/// `at` must be valid and a multiple of 8.
#[inline(always)]
pub unsafe fn host64(op: Rmw, at: *mut u8, data: u64, cmp: u64) -> u64 {
    // SAFETY: the caller's promise.
    let cell = unsafe { AtomicU64::from_ptr(at.cast()) };
    match op {
        Rmw::Swap => cell.swap(data, SeqCst),
        Rmw::CmpSwap => cell.compare_exchange(cmp, data, SeqCst, SeqCst).unwrap_or_else(|old| old),
        Rmw::Add => cell.fetch_add(data, SeqCst),
        Rmw::Sub => cell.fetch_sub(data, SeqCst),
        _ => {
            let mut old = cell.load(Relaxed);
            loop {
                match cell.compare_exchange_weak(old, apply64(op, old, data, cmp), SeqCst, Relaxed) {
                    Ok(old) => return old,
                    Err(now) => old = now,
                }
            }
        }
    }
}

/// Number, width and destination of an atomic instruction, as lowering packs them: `Inst::aux` holds the
/// operation, `Inst::flags` the rest.
pub mod flag {
    /// Elements of 64 bits.
    pub const WIDE: u8 = 1;
    /// The value before goes to the destination.
    pub const RETURNS: u8 = 2;
}

/// Registers of a vector atomic.
#[derive(Clone, Copy)]
pub struct Registers {
    /// Operation.
    pub op: Rmw,
    /// Elements of 64 bits.
    pub wide: bool,
    /// Byte offset of the row of `data`; `cmp` follows.
    pub data: u32,
    /// Byte offset of the destination's row, when there is one.
    pub dst: Option<u32>,
}

impl Registers {
    /// Those of an instruction whose data lies at this row.
    pub fn of(inst: &Inst, data: u32) -> Registers {
        Registers {
            op: Rmw::from_number(inst.aux),
            wide: inst.flags & flag::WIDE != 0,
            data,
            dst: (inst.flags & flag::RETURNS != 0).then_some(inst.dst),
        }
    }
}

/// Does an atomic whose active lanes all have one address of memory, as one indivisible step in which the lanes follow
/// one another, lane 0 upward: one of the orders they may have.
///
/// # Safety
/// The registers must have been lowered for this wave; `at` must be valid and a multiple of the element's bytes.
pub unsafe fn run_same<const L: usize>(wave: &mut Wave, registers: Registers, at: *mut u8) {
    let Registers { op, wide, data, dst } = registers;
    let exec = wave.exec;
    // SAFETY: lowering checked the rows. What the lanes get is kept aside until the step succeeded, as the destination
    // may be an operand.
    unsafe {
        let rows = wave.rows.byte_add(data as usize);
        let word = |lane: usize, index: usize| *rows.add(lane + index * L);
        let pair = |lane: usize, index: usize| word(lane, index) as u64 | (word(lane, index + 1) as u64) << 32;
        let mut before = [0u64; L];
        if wide {
            let cell = AtomicU64::from_ptr(at.cast());
            let mut old = cell.load(Relaxed);
            loop {
                let mut value = old;
                ones(exec, |lane| {
                    before[lane] = value;
                    value = apply64(op, value, pair(lane, 0), if op.compares() { pair(lane, 2) } else { 0 });
                });
                match cell.compare_exchange(old, value, SeqCst, Relaxed) {
                    Ok(_) => break,
                    Err(now) => old = now,
                }
            }
        } else {
            let cell = AtomicU32::from_ptr(at.cast());
            let mut old = cell.load(Relaxed);
            loop {
                let mut value = old;
                ones(exec, |lane| {
                    before[lane] = value as u64;
                    value = apply32(op, value, word(lane, 0), if op.compares() { word(lane, 1) } else { 0 });
                });
                match cell.compare_exchange(old, value, SeqCst, Relaxed) {
                    Ok(_) => break,
                    Err(now) => old = now,
                }
            }
        }
        if let Some(dst) = dst {
            let to = wave.rows.byte_add(dst as usize);
            ones(exec, |lane| {
                *to.add(lane) = before[lane] as u32;
                if wide {
                    *to.add(lane + L) = (before[lane] >> 32) as u32;
                }
            });
        }
    }
}

/// Does an atomic on the lanes in `mask`, lane 0 upward. `at` gives a lane's host address, None where it reads 0 and
/// writes nothing; `stride` is the distance of its dwords.
///
/// # Safety
/// The registers must have been lowered for this wave; the addresses must be valid for reading and writing, and
/// multiples of the element's bytes unless `stride` is not 4.
#[inline(always)]
pub unsafe fn run_at<const L: usize>(
    wave: &mut Wave,
    registers: Registers,
    mask: u64,
    stride: usize,
    at: impl Fn(usize) -> Option<*mut u8>,
) {
    let Registers { op, wide, data, dst } = registers;
    // SAFETY: lowering checked the rows.
    let (data, dst) = unsafe {
        (wave.rows.byte_add(data as usize), dst.map_or(std::ptr::null_mut(), |dst| wave.rows.byte_add(dst as usize)))
    };
    ones(mask, |lane| {
        let at = at(lane);
        // SAFETY: rows as above; the memory by the caller's promise. A lane's operands are read before its
        // destination, which may be the same register, is written.
        unsafe {
            if wide {
                let operand = |index: usize| {
                    *data.add(lane + index * L) as u64 | (*data.add(lane + (index + 1) * L) as u64) << 32
                };
                let value = operand(0);
                let cmp = if op.compares() { operand(2) } else { 0 };
                let old = match at {
                    None => 0,
                    Some(at) if stride == 4 => host64(op, at, value, cmp),
                    Some(at) => {
                        // Scratch: the halves lie apart, and no other lane or thread knows them.
                        let old = read32(at) as u64 | (read32(at.add(stride)) as u64) << 32;
                        let new = apply64(op, old, value, cmp);
                        write32(at, new as u32);
                        write32(at.add(stride), (new >> 32) as u32);
                        old
                    }
                };
                if !dst.is_null() {
                    *dst.add(lane) = old as u32;
                    *dst.add(lane + L) = (old >> 32) as u32;
                }
            } else {
                let value = *data.add(lane);
                let cmp = if op.compares() { *data.add(lane + L) } else { 0 };
                let old = at.map_or(0, |at| host32(op, at, value, cmp));
                if !dst.is_null() {
                    *dst.add(lane) = old;
                }
            }
        }
    });
}

/// Does an atomic on resolved lanes.
///
/// # Safety
/// The registers must have been lowered for this wave, and the lanes resolved whole and for writing in this instruction.
pub unsafe fn run<const L: usize>(wave: &mut Wave, registers: Registers, lanes: &Lanes<L>) {
    // SAFETY: the caller's promise.
    unsafe { run_at::<L>(wave, registers, lanes.mask(), lanes.stride(), |lane| lanes.at(lane)) };
}

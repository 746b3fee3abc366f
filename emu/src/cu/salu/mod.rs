//! Scalar operations: SOP1, SOP2, SOPK, SOPC, SOPP.
//!
//! `alu` holds the integer operations as a table from mnemonics to functions of their operands, `float` those on
//! floating point (GFX12), `exec` those that rewrite EXEC, `branch` branches that divide EXEC, `control` other branches, barriers, messages and waits, and
//! `hwreg` the hardware registers. Names of all generations stand side by side.

mod alu;
mod branch;
mod control;
mod exec;
mod float;
mod hwreg;
#[cfg(test)]
mod tests;

pub use control::{INDEX_ENABLE, VSKIP};

use super::fidelity::Fidelity;
use super::inst::{Handler, Inst, Src};
use super::level::HostLevel;
use super::lower::{Lowering, Unsupported, Width};
use super::wave::{Wave, scalar};
use crate::isa::{Decoded, Format, Operand, Special};

/// Lowers an instruction of one of the scalar formats.
///
/// # Errors
/// [`Unsupported`] when the operation or one of its operands is not executed here.
pub fn lower(decoded: &Decoded, lowering: &mut Lowering) -> Result<Inst, Unsupported> {
    if decoded.format == Format::Sopp {
        return control::sopp(decoded, lowering);
    }
    if let Some(entry) = alu::find(decoded.mnemonic).or_else(|| float::find(decoded.mnemonic)) {
        return entry.lower(decoded, lowering);
    }
    if let Some(inst) = float::lower_fused(decoded, lowering)? {
        return Ok(inst);
    }
    if let Some(inst) = exec::lower(decoded, lowering)? {
        return Ok(inst);
    }
    if let Some(inst) = hwreg::lower(decoded, lowering)? {
        return Ok(inst);
    }
    if let Some(inst) = branch::lower(decoded, lowering)? {
        return Ok(inst);
    }
    control::other(decoded, lowering)
}

/// A value of scalar registers: none, one or two of them.
trait Word: Copy {
    /// Registers.
    const DWORDS: u32;

    /// Reads a source; `C`: a constant.
    ///
    /// # Safety
    /// `src` comes from [`source`] with the same `C`, for this wave.
    unsafe fn get<const C: bool>(wave: &Wave, src: Src) -> Self;

    /// Writes registers from `dst` on.
    ///
    /// # Safety
    /// `dst` comes from [`destination`].
    unsafe fn put(wave: &mut Wave, dst: u32, value: Self);
}

impl Word for () {
    const DWORDS: u32 = 0;

    #[inline(always)]
    unsafe fn get<const C: bool>(_: &Wave, _: Src) {}

    #[inline(always)]
    unsafe fn put(_: &mut Wave, _: u32, (): ()) {}
}

impl Word for u32 {
    const DWORDS: u32 = 1;

    #[inline(always)]
    unsafe fn get<const C: bool>(wave: &Wave, src: Src) -> u32 {
        if C {
            src.0
        } else {
            // SAFETY: lowering made it a register number.
            unsafe { *wave.scalar.get_unchecked(src.0 as usize) }
        }
    }

    #[inline(always)]
    unsafe fn put(wave: &mut Wave, dst: u32, value: u32) {
        // SAFETY: lowering made it a register number.
        unsafe { *wave.scalar.get_unchecked_mut(dst as usize) = value }
    }
}

impl Word for u64 {
    const DWORDS: u32 = 2;

    #[inline(always)]
    unsafe fn get<const C: bool>(wave: &Wave, src: Src) -> u64 {
        // SAFETY: lowering made it an offset into the constant pool, whose rows are 64 words, or the first of two registers.
        unsafe {
            let (low, high) = if C {
                let row = wave.constants.byte_add(src.0 as usize);
                (*row, *row.add(64))
            } else {
                let register = src.0 as usize;
                (*wave.scalar.get_unchecked(register), *wave.scalar.get_unchecked(register + 1))
            };
            low as u64 | (high as u64) << 32
        }
    }

    #[inline(always)]
    unsafe fn put(wave: &mut Wave, dst: u32, value: u64) {
        // SAFETY: lowering made it the first of two register numbers.
        unsafe {
            *wave.scalar.get_unchecked_mut(dst as usize) = value as u32;
            *wave.scalar.get_unchecked_mut(dst as usize + 1) = (value >> 32) as u32;
        }
    }
}

/// Semantics of one operation: `apply(old destination, source 0, source 1, SCC)`.
trait Op {
    type D: Word;
    type A: Word;
    type B: Word;
    fn apply(mode: u32, old: Self::D, a: Self::A, b: Self::B, scc: &mut bool) -> Self::D;
}

/// Runs an operation. `A`, `B`: the source is a constant. `E`: the destination is EXEC or a half of it.
unsafe fn run<O: Op, const A: bool, const B: bool, const E: bool>(wave: &mut Wave, inst: &Inst) {
    // SAFETY: the entry lowered these operands for this instance.
    unsafe {
        let a = O::A::get::<A>(wave, inst.src[0]);
        let b = O::B::get::<B>(wave, inst.src[1]);
        let old = O::D::get::<false>(wave, Src(inst.dst));
        let mut scc = wave.scc;
        let value = O::apply(wave.mode, old, a, b, &mut scc);
        wave.scc = scc;
        O::D::put(wave, inst.dst, value);
    }
    if E {
        set_exec(wave, inst, wave.scalar64(scalar::EXEC));
    }
}

/// [`Inst::flags`] for [`set_exec`]: the vector width to use.
fn exec_flags(lowering: &Lowering) -> u8 {
    lowering.level as u8
}

/// [`Wave::set_exec`] with the host's vector width. Scalar handlers themselves are compiled for the baseline.
#[inline(always)]
fn set_exec(wave: &mut Wave, inst: &Inst, mask: u64) {
    const AVX2: u8 = HostLevel::Avx2 as u8;
    const AVX512: u8 = HostLevel::Avx512 as u8;
    match inst.flags {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: lowering stored a level that the host has.
        AVX512 => unsafe { set_exec_avx512(wave, mask) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        AVX2 => unsafe { set_exec_avx2(wave, mask) },
        _ => wave.set_exec(mask),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn set_exec_avx512(wave: &mut Wave, mask: u64) {
    wave.set_exec(mask);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn set_exec_avx2(wave: &mut Wave, mask: u64) {
    wave.set_exec(mask);
}

fn pick<O: Op>(a: bool, b: bool, exec: bool) -> Handler {
    match (a, b, exec) {
        (false, false, false) => run::<O, false, false, false>,
        (false, true, false) => run::<O, false, true, false>,
        (true, false, false) => run::<O, true, false, false>,
        (true, true, false) => run::<O, true, true, false>,
        (false, false, true) => run::<O, false, false, true>,
        (false, true, true) => run::<O, false, true, true>,
        (true, false, true) => run::<O, true, false, true>,
        (true, true, true) => run::<O, true, true, true>,
    }
}

/// An operation of a table.
#[derive(Clone, Copy)]
struct Entry {
    pick: fn(bool, bool, bool) -> Handler,
    /// Registers of the destination and the sources.
    dwords: [u32; 3],
    /// How a constant source becomes bits, by its registers.
    narrow: Width,
}

impl Entry {
    fn of<O: Op>(narrow: Width) -> Entry {
        Entry { pick: pick::<O>, dwords: [O::D::DWORDS, O::A::DWORDS, O::B::DWORDS], narrow }
    }

    fn lower(&self, decoded: &Decoded, lowering: &mut Lowering) -> Result<Inst, Unsupported> {
        let signed = decoded.mnemonic.ends_with("i64");
        let operands = sources(decoded);
        let mut found = [(Src(0), false); 2];
        for ((slot, operand), dwords) in found.iter_mut().zip(operands).zip(&self.dwords[1..]) {
            let width = match dwords {
                0 => continue,
                1 => self.narrow,
                _ if signed => Width::I64,
                _ => Width::B64,
            };
            *slot = source(operand, width, lowering)?;
        }
        let dst = if self.dwords[0] == 0 { 0 } else { destination(decoded.dst, self.dwords[0], lowering)? };
        let exec = (scalar::EXEC as u32..scalar::EXEC as u32 + 2).contains(&dst);
        let mut inst = Inst::new((self.pick)(found[0].1, found[1].1, exec), decoded, Fidelity::Exact);
        inst.flags = exec_flags(lowering);
        inst.src = [found[0].0, found[1].0, Src(0)];
        inst.dst = dst;
        Ok(inst)
    }
}

/// The two sources. SOPK reads its destination (`s_cmpk`, `s_addk`) and its immediate; `s_fmaak` and `s_fmamk` are not
/// tabled.
fn sources(decoded: &Decoded) -> [Operand; 2] {
    match decoded.format {
        Format::Sopk if matches!(decoded.src[0], Operand::Imm(_)) => [decoded.dst, decoded.src[0]],
        _ => [decoded.src[0], decoded.src[1]],
    }
}

/// Lowers a scalar source: a register number, a 32-bit constant itself, or the pool offset of a 64-bit one. True: constant.
fn source(operand: Operand, width: Width, lowering: &mut Lowering) -> Result<(Src, bool), Unsupported> {
    let operand = match operand {
        // A pair that begins at NULL is 0 too, and not NULL and EXEC.
        Operand::Special { reg: Special::Null, .. } => Operand::Int(0),
        other => other,
    };
    match Lowering::constant(operand, width) {
        Some(value) if width.dwords() == 1 => Ok((Src(value as u32), true)),
        Some(_) => Ok((Src(lowering.src(operand, width)?.value()), true)),
        None => Ok((Src(lowering.scalar(operand)? as u32), false)),
    }
}

/// Lowers a scalar destination of so many registers.
fn destination(operand: Operand, dwords: u32, lowering: &Lowering) -> Result<u32, Unsupported> {
    let register = lowering.scalar(operand)?;
    match register {
        scalar::NULL => Ok(scalar::SINK as u32),
        scalar::SHARED_BASE..=135 | scalar::VCCZ..=scalar::SCC => {
            Err(Unsupported::Operand("this register cannot be written"))
        }
        // An odd pair would run from VCC_HI into the trap registers, from M0 into NULL or from EXEC beyond it.
        scalar::M0 | 107 | 127 if dwords == 2 => Err(Unsupported::Operand("a pair of registers is needed here")),
        _ => Ok(register as u32),
    }
}

/// [`destination`] for operations that do not keep EXEC's lane row in step.
fn plain_destination(operand: Operand, dwords: u32, lowering: &Lowering) -> Result<u32, Unsupported> {
    let register = destination(operand, dwords, lowering)?;
    if (scalar::EXEC as u32..scalar::EXEC as u32 + 2).contains(&register) {
        return Err(Unsupported::Operand("EXEC is no destination of this operation"));
    }
    Ok(register)
}

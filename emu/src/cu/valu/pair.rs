//! Two operations in one instruction: VOPD, and the packed f32 forms of gfx90a and gfx942.
//!
//! Both read their sources before either writes. When one order of execution gives that result it is chosen at lowering;
//! otherwise the first result is put aside while the second operation runs.

use super::lower::regular;
use super::table::{self, Entry};
use crate::cu::inst::{Inst, Src};
use crate::cu::lower::{Lowering, Unsupported};
use crate::cu::wave::{Row, Wave};
use crate::isa::{Decoded, Format, Mods, Operand, Special};

/// The halves in the order in which they run.
struct Pair {
    first: Inst,
    second: Inst,
}

/// Whether an operation that writes `dwords` rows at `dst` changes a source of another one.
fn clobbers(dst: u32, dwords: u32, other: &Inst, entry: &Entry, lanes: u32) -> bool {
    let row = 4 * lanes;
    (0..3).any(|index| {
        let (src, kind): (Src, _) = (other.src[index], entry.src[index]);
        let (start, end) = (src.value(), src.value() + kind.dwords() * row);
        src.is_row() && kind.dwords() != 0 && dst < end && start < dst + dwords * row
    })
}

fn combine(
    decoded: &Decoded,
    lowering: &mut Lowering,
    (x, x_entry): (Inst, &Entry),
    (y, y_entry): (Inst, &Entry),
) -> Inst {
    let lanes = lowering.lanes;
    let x_first = !clobbers(x.dst, x_entry.dst.dwords(), &y, y_entry, lanes);
    let y_first = !clobbers(y.dst, y_entry.dst.dwords(), &x, x_entry, lanes);
    let (first, second, apart) = match (x_first, y_first) {
        (true, _) => (x, y, false),
        (false, true) => (y, x, false),
        (false, false) => (x, y, true),
    };
    let run = match (apart, lanes) {
        (false, _) => both,
        (true, 64) => both_apart::<64>,
        (true, _) => both_apart::<32>,
    };
    let mut inst = Inst::new(run, decoded, x_entry.fidelity.max(y_entry.fidelity));
    if let Some(extra) = &mut inst.extra {
        extra.data = Some(Box::new(Pair { first, second }));
    }
    inst
}

/// What lowering prepared.
#[inline(always)]
fn pair(inst: &Inst) -> Option<&Pair> {
    inst.extra.as_ref()?.data.as_ref()?.downcast_ref()
}

/// # Safety
/// As for [`crate::cu::inst::Handler`].
#[inline(always)]
unsafe fn step(wave: &mut Wave, inst: &Inst) {
    if let Some(run) = inst.run {
        // SAFETY: the halves were lowered for this wave.
        unsafe { run(wave, inst) }
    }
}

/// # Safety
/// As for [`crate::cu::inst::Handler`].
unsafe fn both(wave: &mut Wave, inst: &Inst) {
    if let Some(pair) = pair(inst) {
        // SAFETY: as above.
        unsafe {
            step(wave, &pair.first);
            step(wave, &pair.second);
        }
    }
}

/// # Safety
/// As for [`crate::cu::inst::Handler`]; the first half writes one row.
unsafe fn both_apart<const L: usize>(wave: &mut Wave, inst: &Inst) {
    let Some(pair) = pair(inst) else { return };
    // SAFETY: the destination is a row of the wave that lowering checked.
    unsafe {
        let dst: *mut [u32; L] = wave.rows.byte_add(pair.first.dst as usize).cast();
        let old = *dst;
        step(wave, &pair.first);
        let mut new = Row([0; 64]);
        new.0[..L].copy_from_slice(&*dst);
        *dst = old;
        step(wave, &pair.second);
        (*dst).copy_from_slice(&new.0[..L]);
    }
}

/// A VOPD instruction.
pub fn lower_dual(decoded: &Decoded, lowering: &mut Lowering) -> Result<Inst, Unsupported> {
    let second = decoded.second.as_ref().ok_or(Unsupported::Operand("the second half is missing"))?;
    let x_entry = table::find(decoded.mnemonic).ok_or(Unsupported::Operation)?;
    let y_entry = table::find(second.mnemonic).ok_or(Unsupported::Operation)?;
    let x = regular(x_entry, decoded, lowering)?;
    let y = regular(y_entry, second, lowering)?;
    Ok(combine(decoded, lowering, (x, x_entry), (y, y_entry)))
}

/// One dword of a 64-bit operand. Constants are the same in both.
fn dword(operand: Operand, high: bool) -> Operand {
    match operand {
        Operand::Vgpr { reg, .. } => Operand::Vgpr { reg: reg + high as u16, dwords: 1, hi: false },
        Operand::Agpr { reg, .. } => Operand::Agpr { reg: reg + high as u16, dwords: 1 },
        Operand::Sgpr { reg, .. } => Operand::Sgpr { reg: reg + high as u8, dwords: 1 },
        Operand::Ttmp { reg, .. } => Operand::Ttmp { reg: reg + high as u8, dwords: 1 },
        Operand::Special { reg, .. } if high => {
            let reg = match reg {
                Special::VccLo => Special::VccHi,
                Special::ExecLo => Special::ExecHi,
                Special::FlatScratchLo => Special::FlatScratchHi,
                Special::XnackMaskLo => Special::XnackMaskHi,
                other => other,
            };
            Operand::Special { reg, dwords: 1 }
        }
        Operand::Special { reg, .. } => Operand::Special { reg, dwords: 1 },
        other => other,
    }
}

/// `v_pk_fma_f32` and its like; None when the instruction is another.
pub fn lower_packed(decoded: &Decoded, lowering: &mut Lowering) -> Option<Result<Inst, Unsupported>> {
    let (mnemonic, sources) = match decoded.mnemonic {
        "v_pk_fma_f32" => ("v_fma_f32", 3),
        "v_pk_mul_f32" => ("v_mul_f32", 2),
        "v_pk_add_f32" => ("v_add_f32", 2),
        "v_pk_mov_b32" => ("v_mov_b32", 1),
        _ => return None,
    };
    let mods = &decoded.mods;
    let half = |high: bool| {
        let (select, neg) = if high { (mods.op_sel_hi, mods.neg_hi) } else { (mods.op_sel, mods.neg) };
        let mut src = [Operand::None; 4];
        for index in 0..sources {
            src[index] = dword(decoded.src[index], select >> index & 1 != 0);
        }
        if mnemonic == "v_mov_b32" {
            // The low half of the result comes from source 0, the high half from source 1.
            let index = high as usize;
            src[0] = dword(decoded.src[index], mods.op_sel >> index & 1 != 0);
        }
        Decoded {
            mnemonic,
            format: Format::Vop3,
            dst: dword(decoded.dst, high),
            dst2: Operand::None,
            src,
            mods: Mods { neg, clamp: mods.clamp, ..Mods::default() },
            second: None,
            ..decoded.clone()
        }
    };
    let entry = table::find(mnemonic)?;
    let lowered = regular(entry, &half(false), lowering).and_then(|x| {
        let y = regular(entry, &half(true), lowering)?;
        Ok(combine(decoded, lowering, (x, entry), (y, entry)))
    });
    Some(lowered)
}

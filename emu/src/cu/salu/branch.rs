//! Branches that divide EXEC: GFX9's forks and joins, the subvector loops of GFX10 and GFX11.

use super::{Word, plain_destination, source};
use crate::cu::fidelity::Fidelity;
use crate::cu::inst::{Inst, Src};
use crate::cu::lower::{Lowering, Unsupported, Width};
use crate::cu::wave::Wave;
use crate::isa::{Decoded, Operand};

/// MODE.CSP, the branch stack's pointer, is MODE 31:29. The stack lies in SGPRs from 0 on, four an entry.
const CSP: u32 = 29;

/// Source 0, 1 is a constant: bits of an instruction's flags.
const CONSTANT: u8 = 1;

/// Lowers an operation of this family; None for others.
pub fn lower(decoded: &Decoded, lowering: &mut Lowering) -> Result<Option<Inst>, Unsupported> {
    let offset = || match decoded.src[0] {
        Operand::Imm(offset) => Ok(offset.wrapping_mul(4)),
        _ => Err(Unsupported::Operand("a branch offset is needed here")),
    };
    let mut inst = match decoded.mnemonic {
        "s_cbranch_g_fork" => {
            let mut inst = Inst::new(fork::<false>, decoded, Fidelity::Exact);
            let sources = [decoded.src[0], decoded.src[1]];
            for (index, operand) in sources.into_iter().enumerate() {
                let (src, constant) = source(operand, Width::B64, lowering)?;
                inst.src[index] = src;
                inst.flags |= (constant as u8 * CONSTANT) << index;
            }
            return Ok(Some(inst));
        }
        "s_cbranch_i_fork" => {
            let mut inst = Inst::new(fork::<true>, decoded, Fidelity::Exact);
            let (src, constant) = source(decoded.dst, Width::B64, lowering)?;
            inst.src[0] = src;
            inst.flags = constant as u8 * CONSTANT;
            inst.imm = offset()?;
            return Ok(Some(inst));
        }
        "s_cbranch_join" => {
            let mut inst = Inst::new(join, decoded, Fidelity::Exact);
            let (src, constant) = source(decoded.src[0], Width::B32, lowering)?;
            inst.src[0] = src;
            inst.flags = constant as u8 * CONSTANT;
            return Ok(Some(inst));
        }
        "s_subvector_loop_begin" => Inst::new(subvector_begin, decoded, Fidelity::Exact),
        "s_subvector_loop_end" => Inst::new(subvector_end, decoded, Fidelity::Exact),
        _ => return Ok(None),
    };
    inst.dst = plain_destination(decoded.dst, 1, lowering)?;
    inst.imm = offset()?;
    Ok(Some(inst))
}

/// Source `index` as it was lowered.
unsafe fn value<W: Word>(wave: &Wave, inst: &Inst, index: usize) -> W {
    let src: Src = inst.src[index];
    // SAFETY: the flag says which of the two it was lowered to.
    unsafe { if inst.flags & CONSTANT << index != 0 { W::get::<true>(wave, src) } else { W::get::<false>(wave, src) } }
}

/// The lanes of the mask go to the target, the others on. Where there are both, the path of fewer lanes runs first, and
/// the other one is put on the stack: EXEC, then the address.
unsafe fn fork<const IMMEDIATE: bool>(wave: &mut Wave, inst: &Inst) {
    let next = wave.pc;
    // SAFETY: lowered for this instance.
    let (mask, target) = unsafe {
        let target =
            if IMMEDIATE { next.wrapping_add_signed(inst.imm as i64) } else { value::<u64>(wave, inst, 1) & !3 };
        (value::<u64>(wave, inst, 0), target)
    };
    let (pass, fail) = (mask & wave.exec, !mask & wave.exec);
    if fail == 0 {
        wave.pc = target;
        return;
    }
    if pass == 0 {
        return;
    }
    let (now, exec, later, saved) =
        if fail.count_ones() < pass.count_ones() { (next, fail, target, pass) } else { (target, pass, next, fail) };
    let pointer = wave.mode >> CSP;
    for (index, word) in [saved, saved >> 32, later, later >> 32].into_iter().enumerate() {
        wave.scalar[4 * pointer as usize + index] = word as u32;
    }
    wave.mode = wave.mode & !(7 << CSP) | ((pointer + 1) & 7) << CSP;
    wave.set_exec(exec);
    wave.pc = now;
}

/// The end of a path: takes the other one from the stack, until the pointer is what it was before the fork.
unsafe fn join(wave: &mut Wave, inst: &Inst) {
    let pointer = wave.mode >> CSP;
    // SAFETY: lowered for this instance.
    if pointer == unsafe { value::<u32>(wave, inst, 0) } {
        return;
    }
    let pointer = pointer.wrapping_sub(1) & 7;
    wave.mode = wave.mode & !(7 << CSP) | pointer << CSP;
    let exec = wave.scalar64(4 * pointer as u8);
    wave.pc = wave.scalar64(4 * pointer as u8 + 2) & !3;
    wave.set_exec(exec);
}

/// The lower half of EXEC runs first, the upper one waits in the destination. With one half only there is one pass, with
/// none the loop is skipped.
unsafe fn subvector_begin(wave: &mut Wave, inst: &Inst) {
    let exec = wave.exec;
    if exec == 0 {
        wave.pc = wave.pc.wrapping_add_signed(inst.imm as i64);
        return;
    }
    let low = exec as u32;
    // SAFETY: lowered as one register.
    unsafe { u32::put(wave, inst.dst, if low == 0 { 0 } else { (exec >> 32) as u32 }) };
    wave.set_exec(if low == 0 { exec } else { low.into() });
}

/// After the first of two passes the second begins; after the last EXEC is whole again.
unsafe fn subvector_end(wave: &mut Wave, inst: &Inst) {
    // SAFETY: lowered as one register.
    let saved = unsafe { u32::get::<false>(wave, Src(inst.dst)) };
    if wave.exec >> 32 != 0 {
        wave.set_exec(wave.exec >> 32 << 32 | saved as u64);
    } else if saved != 0 {
        let low = wave.exec as u32;
        wave.set_exec((saved as u64) << 32);
        // SAFETY: as above.
        unsafe { u32::put(wave, inst.dst, low) };
        wave.pc = wave.pc.wrapping_add_signed(inst.imm as i64);
    }
}

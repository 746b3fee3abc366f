//! Operations that move values across lanes or between scalar and vector registers, and others whose operands follow no
//! rule.

use super::int32::masked_sad;
use super::lane::{CHUNK, fetch, second, store};
use super::lower::scalar_dst;
use super::table;
use crate::cu::fidelity::{Fidelity, HINT, OBSERVER};
use crate::cu::inst::{Handler, Inst};
use crate::cu::level::Base;
use crate::cu::lower::{Lowering, Unsupported, Width};
use crate::cu::wave::{Row, Wave, scalar};
use crate::isa::{Decoded, Operand};

/// Lowers one of them; None when the operation is another.
pub fn lower(decoded: &Decoded, lowering: &mut Lowering) -> Option<Result<Inst, Unsupported>> {
    let pick = |handlers: [Handler; 2]| handlers[(lowering.lanes == 64) as usize];
    Some(match decoded.mnemonic {
        "v_nop" | "v_pipeflush" => Ok(Inst::new(nop, decoded, HINT)),
        "v_clrexcp" => Ok(Inst::new(nop, decoded, OBSERVER)),
        "v_readfirstlane_b32" => to_scalar(decoded, lowering, readfirstlane, 1),
        "v_readlane_b32" => to_scalar(decoded, lowering, readlane, 2),
        "v_writelane_b32" => vector(decoded, lowering, writelane, 2),
        "v_permlane16_b32" | "v_permlanex16_b32" => {
            let run = pick([permlane16::<32>, permlane16::<64>]);
            vector(decoded, lowering, run, 3).map(|mut inst| {
                inst.imm = (decoded.mnemonic == "v_permlanex16_b32") as i32 * 16;
                inst.flags = decoded.mods.op_sel & 3;
                inst
            })
        }
        "v_permlane16_var_b32" | "v_permlanex16_var_b32" => {
            let run = pick([permlane16_var::<32>, permlane16_var::<64>]);
            vector(decoded, lowering, run, 2).map(|mut inst| {
                inst.imm = (decoded.mnemonic == "v_permlanex16_var_b32") as i32 * 16;
                inst.flags = decoded.mods.op_sel & 3;
                inst
            })
        }
        "v_permlane64_b32" => vector(decoded, lowering, pick([nop, permlane64]), 1),
        "v_swap_b32" => exchange(decoded, lowering, pick([swap::<32>, swap::<64>])),
        "v_swap_b16" => exchange(decoded, lowering, pick([swap16::<32>, swap16::<64>])).map(|mut inst| {
            let high = |operand| matches!(operand, Operand::Vgpr { hi: true, .. });
            inst.flags = high(decoded.src[0]) as u8 | (high(decoded.dst) as u8) << 1;
            inst
        }),
        "v_movrels_b32" => relative(decoded, lowering, MOVRELS),
        "v_movreld_b32" => relative(decoded, lowering, MOVRELD),
        "v_movrelsd_b32" => relative(decoded, lowering, MOVRELS | MOVRELD),
        "v_movrelsd_2_b32" => relative(decoded, lowering, MOVRELS | MOVRELD | TWO_OFFSETS),
        "v_swaprel_b32" => relative(decoded, lowering, MOVRELS | MOVRELD | TWO_OFFSETS | SWAP),
        "v_mqsad_u32_u8" => mqsad(decoded, lowering),
        mnemonic if mnemonic.starts_with("v_s_") => scalar_float(decoded, lowering),
        _ => return None,
    })
}

/// An operation with a vector destination and this many 32-bit sources.
fn vector(decoded: &Decoded, lowering: &mut Lowering, run: Handler, sources: usize) -> Result<Inst, Unsupported> {
    let mut inst = Inst::new(run, decoded, Fidelity::Exact);
    inst.dst = lowering.row(decoded.dst)?;
    for index in 0..sources {
        inst.src[index] = lowering.src(decoded.src[index], Width::B32)?;
    }
    Ok(inst)
}

/// An operation that writes its source too: that is a vector register.
fn exchange(decoded: &Decoded, lowering: &mut Lowering, run: Handler) -> Result<Inst, Unsupported> {
    let inst = vector(decoded, lowering, run, 1)?;
    if !inst.src[0].is_row() {
        return Err(Unsupported::Operand("both operands of a swap are VGPRs"));
    }
    Ok(inst)
}

/// An operation with a scalar destination.
fn to_scalar(decoded: &Decoded, lowering: &mut Lowering, run: Handler, sources: usize) -> Result<Inst, Unsupported> {
    let mut inst = Inst::new(run, decoded, Fidelity::Exact);
    inst.dst = scalar_dst(decoded.dst, lowering)?;
    for index in 0..sources {
        inst.src[index] = lowering.src(decoded.src[index], Width::B32)?;
    }
    Ok(inst)
}

unsafe fn nop(_: &mut Wave, _: &Inst) {}

/// Writes a scalar register, EXEC with its row.
fn set_scalar(wave: &mut Wave, register: u32, value: u32) {
    if let Some(word) = wave.scalar.get_mut(register as usize) {
        *word = value;
    }
    if register as u8 & !1 == scalar::EXEC {
        wave.set_exec(wave.scalar64(scalar::EXEC));
    }
}

/// The words of source `index`, `wave.lanes` of them.
///
/// # Safety
/// The instruction was lowered for this wave.
#[inline(always)]
unsafe fn source(wave: &mut Wave, inst: &Inst, index: usize) -> *const u32 {
    // SAFETY: the caller vouches for the instruction; the base level needs nothing of the host.
    unsafe { fetch::<Base>(wave, inst.src[index], index) }
}

/// A copy of a source.
///
/// # Safety
/// The instruction was lowered for this wave.
#[inline(always)]
unsafe fn copy<const L: usize>(wave: &mut Wave, inst: &Inst, index: usize) -> [u32; L] {
    // SAFETY: a source has `wave.lanes` words.
    unsafe { *source(wave, inst, index).cast() }
}

/// Writes the active lanes of the destination.
///
/// # Safety
/// The instruction was lowered for this wave.
#[inline(always)]
unsafe fn commit<const L: usize>(wave: &mut Wave, offset: u32, values: &[u32; L]) {
    let full = wave.exec == wave.full_mask();
    for start in (0..L).step_by(CHUNK) {
        // SAFETY: lowering checked the row; `values` has whole chunks.
        unsafe {
            let dst = wave.rows.byte_add(offset as usize);
            store::<Base>(&*values.as_ptr().add(start).cast(), wave, dst, start, full);
        }
    }
}

/// The value of the lowest active lane, or of lane 0 when none is.
///
/// # Safety
/// As for [`Handler`].
unsafe fn readfirstlane(wave: &mut Wave, inst: &Inst) {
    let lane = if wave.exec == 0 { 0 } else { wave.exec.trailing_zeros() as usize };
    // SAFETY: the lane is one of the wave's.
    let value = unsafe { *source(wave, inst, 0).add(lane) };
    set_scalar(wave, inst.dst, value);
}

/// # Safety
/// As for [`Handler`].
unsafe fn readlane(wave: &mut Wave, inst: &Inst) {
    // SAFETY: the lane is taken modulo the wave's lanes.
    let value = unsafe {
        let lane = *source(wave, inst, 1) & (wave.lanes - 1);
        *source(wave, inst, 0).add(lane as usize)
    };
    set_scalar(wave, inst.dst, value);
}

/// # Safety
/// As for [`Handler`].
unsafe fn writelane(wave: &mut Wave, inst: &Inst) {
    // SAFETY: the lane is taken modulo the wave's lanes.
    unsafe {
        let lane = *source(wave, inst, 1) & (wave.lanes - 1);
        let value = *source(wave, inst, 0);
        *wave.rows.byte_add(inst.dst as usize).add(lane as usize) = value;
    }
}

/// What a lane of a permutation gets that reads lane `from`: op_sel bit 0 fetches from inactive lanes, bit 1 gives 0
/// instead of keeping the old value.
#[inline(always)]
fn permuted(flags: u8, exec: u64, values: &[u32], from: usize, old: u32) -> u32 {
    if flags & 1 != 0 || exec >> from & 1 != 0 {
        values[from]
    } else if flags & 2 != 0 {
        0
    } else {
        old
    }
}

/// Any permutation within rows of 16 lanes, or (`imm` 16) across two neighbouring rows; sources 1 and 2 hold the lane
/// numbers, four bits each.
///
/// # Safety
/// As for [`Handler`].
unsafe fn permlane16<const L: usize>(wave: &mut Wave, inst: &Inst) {
    // SAFETY: the caller vouches for the instruction.
    unsafe {
        let select = *source(wave, inst, 1) as u64 | (*source(wave, inst, 2) as u64) << 32;
        let values: [u32; L] = copy(wave, inst, 0);
        let mut result: [u32; L] = *wave.rows.byte_add(inst.dst as usize).cast();
        for (lane, word) in result.iter_mut().enumerate() {
            let from = (lane & !15 ^ inst.imm as usize) | (select >> (4 * (lane & 15)) & 15) as usize;
            *word = permuted(inst.flags, wave.exec, &values, from, *word);
        }
        commit(wave, inst.dst, &result);
    }
}

/// As `permlane16`, each lane's source from its own source 1.
///
/// # Safety
/// As for [`Handler`].
unsafe fn permlane16_var<const L: usize>(wave: &mut Wave, inst: &Inst) {
    // SAFETY: the caller vouches for the instruction.
    unsafe {
        let values: [u32; L] = copy(wave, inst, 0);
        let select: [u32; L] = copy(wave, inst, 1);
        let mut result: [u32; L] = *wave.rows.byte_add(inst.dst as usize).cast();
        for (lane, word) in result.iter_mut().enumerate() {
            let from = (lane & !15 ^ inst.imm as usize) | (select[lane] & 15) as usize;
            *word = permuted(inst.flags, wave.exec, &values, from, *word);
        }
        commit(wave, inst.dst, &result);
    }
}

/// Swaps the halves of a wave64.
///
/// # Safety
/// As for [`Handler`].
unsafe fn permlane64(wave: &mut Wave, inst: &Inst) {
    // SAFETY: the caller vouches for the instruction.
    unsafe {
        let mut values: [u32; 64] = copy(wave, inst, 0);
        values.rotate_left(32);
        commit(wave, inst.dst, &values);
    }
}

/// Swaps two registers.
///
/// # Safety
/// As for [`Handler`]; the source is a register row.
unsafe fn swap<const L: usize>(wave: &mut Wave, inst: &Inst) {
    let src = inst.src[0].value();
    // SAFETY: lowering checked both rows.
    unsafe {
        let a: [u32; L] = *wave.rows.byte_add(inst.dst as usize).cast();
        let b: [u32; L] = *wave.rows.byte_add(src as usize).cast();
        commit(wave, inst.dst, &b);
        commit(wave, src, &a);
    }
}

/// Swaps two halves of registers; flags say which are high: bit 0 the source, bit 1 the destination.
///
/// # Safety
/// As for [`Handler`]; the source is a register row.
unsafe fn swap16<const L: usize>(wave: &mut Wave, inst: &Inst) {
    let (shift_b, shift_a) = ((inst.flags & 1) as u32 * 16, (inst.flags >> 1 & 1) as u32 * 16);
    // SAFETY: lowering checked both rows.
    unsafe {
        let a = wave.rows.byte_add(inst.dst as usize);
        let b = wave.rows.byte_add(inst.src[0].value() as usize);
        for lane in 0..L {
            if wave.exec >> lane & 1 == 0 {
                continue;
            }
            let (x, y) = (*a.add(lane) >> shift_a & 0xffff, *b.add(lane) >> shift_b & 0xffff);
            *a.add(lane) = *a.add(lane) & !(0xffff << shift_a) | y << shift_a;
            *b.add(lane) = *b.add(lane) & !(0xffff << shift_b) | x << shift_b;
        }
    }
}

/// The source register is relative to M0.
const MOVRELS: u8 = 1;
/// The destination register is relative to M0.
const MOVRELD: u8 = 2;
/// Source offset in M0 9:0, destination offset in 25:16.
const TWO_OFFSETS: u8 = 4;
/// Swaps the two.
const SWAP: u8 = 8;

fn relative(decoded: &Decoded, lowering: &mut Lowering, flags: u8) -> Result<Inst, Unsupported> {
    let run: Handler = if lowering.lanes == 64 { move_relative::<64> } else { move_relative::<32> };
    let mut inst = vector(decoded, lowering, run, 1)?;
    if flags & MOVRELS != 0 && !inst.src[0].is_row() {
        return Err(Unsupported::Operand("a relative source is a VGPR"));
    }
    inst.flags = flags;
    inst.imm = lowering.vgprs as i32;
    Ok(inst)
}

/// Moves between registers chosen at run time. A source beyond the allocation reads v0, a destination beyond it is not
/// written.
///
/// # Safety
/// As for [`Handler`].
unsafe fn move_relative<const L: usize>(wave: &mut Wave, inst: &Inst) {
    let m0 = wave.scalar[scalar::M0 as usize];
    let (source_offset, dst_offset) =
        if inst.flags & TWO_OFFSETS != 0 { (m0 & 0x3ff, m0 >> 16 & 0x3ff) } else { (m0, m0) };
    let row = 4 * L as u32;
    let moved = |base: u32, relative: bool, offset: u32| {
        let register = if relative { (base / row).wrapping_add(offset) } else { base / row };
        (!relative || register < inst.imm as u32).then(|| register.wrapping_mul(row))
    };
    let dst = moved(inst.dst, inst.flags & MOVRELD != 0, dst_offset);
    // SAFETY: relative registers were compared with the allocation, the others checked by lowering.
    unsafe {
        let values: [u32; L] = if inst.flags & MOVRELS != 0 {
            let src = moved(inst.src[0].value(), true, source_offset);
            let values = *wave.rows.byte_add(src.unwrap_or(0) as usize).cast();
            if let (Some(src), Some(dst), true) = (src, dst, inst.flags & SWAP != 0) {
                let old: [u32; L] = *wave.rows.byte_add(dst as usize).cast();
                commit(wave, src, &old);
            }
            values
        } else {
            copy(wave, inst, 0)
        };
        if let Some(dst) = dst {
            commit(wave, dst, &values);
        }
    }
}

/// `v_mqsad_u32_u8`: four masked sums of absolute differences of overlapping windows.
fn mqsad(decoded: &Decoded, lowering: &mut Lowering) -> Result<Inst, Unsupported> {
    let run: Handler = if lowering.lanes == 64 { mqsad_u32::<64> } else { mqsad_u32::<32> };
    let mut inst = Inst::new(run, decoded, Fidelity::Exact);
    inst.dst = lowering.row(decoded.dst)?;
    inst.src[0] = lowering.src(decoded.src[0], Width::B64)?;
    inst.src[1] = lowering.src(decoded.src[1], Width::B32)?;
    inst.src[2] = lowering.src(decoded.src[2], Width::B32)?;
    if !inst.src[2].is_row() {
        return Err(Unsupported::Operand("the sums of v_mqsad_u32_u8 are four VGPRs"));
    }
    Ok(inst)
}

/// # Safety
/// As for [`Handler`]; source 2 is four register rows.
unsafe fn mqsad_u32<const L: usize>(wave: &mut Wave, inst: &Inst) {
    // SAFETY: lowering checked the rows.
    unsafe {
        let low: [u32; L] = copy(wave, inst, 0);
        let high: [u32; L] = *fetch::<Base>(wave, second(inst.src[0], L as u32), 3).cast();
        let reference: [u32; L] = copy(wave, inst, 1);
        let sums: [[u32; L]; 4] = *wave.rows.byte_add(inst.src[2].value() as usize).cast();
        for (part, sum) in sums.iter().enumerate() {
            let mut result = [0; L];
            for lane in 0..L {
                let bytes = low[lane] as u64 | (high[lane] as u64) << 32;
                result[lane] = masked_sad((bytes >> (8 * part)) as u32, reference[lane], sum[lane]);
            }
            commit(wave, inst.dst + (part * L * 4) as u32, &result);
        }
    }
}

/// The handler of the vector operation behind a scalar one.
struct ScalarFloat {
    inner: Inst,
}

/// `v_s_exp_f32` and its like (GFX12): one scalar in, one scalar out. The vector operation runs on lane 0 of broadcast
/// rows.
fn scalar_float(decoded: &Decoded, lowering: &mut Lowering) -> Result<Inst, Unsupported> {
    let name = format!("v_{}", decoded.mnemonic.trim_start_matches("v_s_"));
    let entry = table::find(&name).ok_or(Unsupported::Operation)?;
    let dst = scalar_dst(decoded.dst, lowering)?;
    let as_vector = Decoded { dst: Operand::Vgpr { reg: 0, dwords: 1, hi: false }, ..decoded.clone() };
    let inner = super::lower::regular(entry, &as_vector, lowering)?;
    if inner.src.iter().zip(&decoded.src).any(|(src, operand)| *operand != Operand::None && src.is_row()) {
        return Err(Unsupported::Operand("the source is a scalar register or a constant"));
    }
    let mut inst = Inst::new(run_scalar_float, decoded, entry.fidelity);
    inst.dst = dst;
    if let Some(extra) = &mut inst.extra {
        extra.data = Some(Box::new(ScalarFloat { inner }));
    }
    Ok(inst)
}

/// # Safety
/// As for [`Handler`].
unsafe fn run_scalar_float(wave: &mut Wave, inst: &Inst) {
    let data = inst.extra.as_ref().and_then(|extra| extra.data.as_ref()?.downcast_ref::<ScalarFloat>());
    let Some(ScalarFloat { inner }) = data else { return };
    let Some(run) = inner.run else { return };
    let mut result = Row([0; 64]);
    let (rows, exec) = (wave.rows, wave.exec);
    wave.rows = result.0.as_mut_ptr();
    wave.set_exec(u64::MAX);
    // SAFETY: the sources are scalars or constants; the destination is row 0, which `result` stands for.
    unsafe { run(wave, inner) };
    wave.rows = rows;
    wave.set_exec(exec);
    set_scalar(wave, inst.dst, result.0[0]);
}

//! SMEM: loads into scalar registers, GFX9's stores and atomics, the clocks, the scalar cache's controls.
//!
//! Lowered: `src[0]` base (a pair, or a buffer resource of four), `src[1]` offset register when [`OFFSET`] is set,
//! `src[2]` data, `imm` offset, `aux` signed bytes of a part or an [`Rmw`], `dst` first register.

use super::super::fidelity::{CACHE, CLOCK, Fidelity, HINT};
use super::super::inst::{Inst, Src};
use super::super::lower::{Lowering, Unsupported};
use super::super::wave::{Wave, scalar};
use super::access::{read8, read16, read32, write32};
use super::atomic::{Rmw, host32, host64};
use super::names::{self, Vmem};
use super::port::{Denied, fault};
use super::{blank, fence, nop};
use crate::isa::{Decoded, Operand};
use trace::{Access, FaultKind};

/// There is an offset register.
const OFFSET: u8 = 1;
/// The base is a buffer resource.
const BUFFER: u8 = 2;
/// The offset register counts 64 bytes.
const SCALED: u8 = 16;
/// An atomic of 64 bits.
const WIDE: u8 = 4;
/// An atomic that returns the value before.
const RETURNS: u8 = 8;

/// Bytes of a load by the mnemonic behind `s_load_` or `s_buffer_load_`, negative when sign-extended.
const LOADS: &[(&str, i8)] = &[
    ("dword", 4),
    ("b32", 4),
    ("dwordx2", 8),
    ("b64", 8),
    ("b96", 12),
    ("dwordx4", 16),
    ("b128", 16),
    ("dwordx8", 32),
    ("b256", 32),
    ("dwordx16", 64),
    ("b512", 64),
    ("u8", 1),
    ("i8", -1),
    ("u16", 2),
    ("i16", -2),
];

/// Lowers a SMEM instruction.
pub fn lower(decoded: &Decoded, lowering: &mut Lowering) -> Result<Inst, Unsupported> {
    let name = decoded.mnemonic;
    let load = name.strip_prefix("s_buffer_load_").map(|rest| (rest, BUFFER));
    let load = load.or_else(|| name.strip_prefix("s_load_").map(|rest| (rest, 0)));
    // Scalar scratch is memory like any other, but for the unit of its offset register (GFX9).
    let load = load.or_else(|| name.strip_prefix("s_scratch_load_").map(|rest| (rest, SCALED)));
    if let Some((rest, flags)) = load {
        let bytes = LOADS.iter().find(|(known, _)| *known == rest).ok_or(Unsupported::Operation)?.1;
        return lower_load(decoded, lowering, bytes, flags);
    }
    let buffer = name.strip_prefix("s_buffer_store_").map(|rest| (rest, BUFFER));
    let scratch = name.strip_prefix("s_scratch_store_").map(|rest| (rest, SCALED));
    let plain = name.strip_prefix("s_store_").map(|rest| (rest, 0));
    if let Some((rest, flags)) = buffer.or(plain).or(scratch) {
        let run = match rest {
            "dword" => store::<1>,
            "dwordx2" => store::<2>,
            "dwordx4" => store::<4>,
            _ => return Err(Unsupported::Operation),
        };
        let mut inst = blank(decoded, run, Fidelity::Exact);
        inst.flags = flags;
        inst.src[2] = Src::scalar(lowering.scalar(decoded.src[2])?);
        lower_address(decoded, lowering, &mut inst)?;
        return Ok(inst);
    }
    let plain = name.strip_prefix("s_").filter(|rest| rest.starts_with("atomic_"));
    let buffer = name.strip_prefix("s_buffer_").filter(|rest| rest.starts_with("atomic_")).map(|rest| (rest, BUFFER));
    if let Some((rest, flags)) = buffer.or_else(|| plain.map(|rest| (rest, 0))) {
        let (op, wide) = match names::vmem(rest) {
            Some(Vmem::Atomic32(op)) => (op, 0),
            Some(Vmem::Atomic64(op)) => (op, WIDE),
            _ => return Err(Unsupported::Operation),
        };
        let mut inst = blank(decoded, atomic, Fidelity::Exact);
        inst.aux = op as u16;
        inst.flags = flags | wide;
        inst.src[2] = Src::scalar(lowering.scalar(decoded.src[2])?);
        if decoded.mods.returns {
            inst.flags |= RETURNS;
            inst.dst = destination(decoded, lowering, if wide != 0 { 2 } else { 1 })?;
        }
        lower_address(decoded, lowering, &mut inst)?;
        return Ok(inst);
    }
    match name {
        // Caches do not exist here: prefetches have nothing to do, write-backs and invalidations order accesses.
        "s_prefetch_inst"
        | "s_prefetch_inst_pc_rel"
        | "s_prefetch_data"
        | "s_prefetch_data_pc_rel"
        | "s_buffer_prefetch_data"
        | "s_dcache_discard"
        | "s_dcache_discard_x2"
        | "s_atc_probe"
        | "s_atc_probe_buffer" => Ok(blank(decoded, nop, HINT)),
        "s_dcache_inv" | "s_dcache_inv_vol" | "s_dcache_wb" | "s_dcache_wb_vol" | "s_gl1_inv" => {
            Ok(blank(decoded, fence, CACHE))
        }
        "s_memtime" | "s_memrealtime" => {
            let mut inst = blank(decoded, if name == "s_memtime" { memtime } else { memrealtime }, CLOCK);
            inst.dst = destination(decoded, lowering, 2)?;
            Ok(inst)
        }
        _ => Err(Unsupported::Operation),
    }
}

/// First register of a destination of `dwords`.
fn destination(decoded: &Decoded, lowering: &Lowering, dwords: u32) -> Result<u32, Unsupported> {
    let first = lowering.scalar(decoded.dst)? as u32;
    // SHARED_BASE and what follows cannot be written.
    let limit = scalar::SHARED_BASE as u32;
    if first != scalar::NULL as u32 && first + dwords > limit {
        return Err(Unsupported::Operand("the destination reaches beyond the scalar registers"));
    }
    Ok(first)
}

fn lower_load(decoded: &Decoded, lowering: &mut Lowering, bytes: i8, flags: u8) -> Result<Inst, Unsupported> {
    let dwords = (bytes.unsigned_abs() as u32).div_ceil(4);
    let run = match (flags & BUFFER != 0, bytes) {
        (false, 4) => load::<1>,
        (false, 8) => load::<2>,
        (false, 12) => load::<3>,
        (false, 16) => load::<4>,
        (false, 32) => load::<8>,
        (false, 64) => load::<16>,
        (true, 4) => buffer_load::<1>,
        (true, 8) => buffer_load::<2>,
        (true, 12) => buffer_load::<3>,
        (true, 16) => buffer_load::<4>,
        (true, 32) => buffer_load::<8>,
        (true, 64) => buffer_load::<16>,
        _ => load_part,
    };
    let mut inst = blank(decoded, run, Fidelity::Exact);
    inst.aux = bytes as i16 as u16;
    inst.flags = flags;
    inst.dst = destination(decoded, lowering, dwords)?;
    lower_address(decoded, lowering, &mut inst)?;
    Ok(inst)
}

fn lower_address(decoded: &Decoded, lowering: &Lowering, inst: &mut Inst) -> Result<(), Unsupported> {
    inst.src[0] = Src::scalar(lowering.scalar(decoded.src[0])?);
    inst.imm = decoded.mods.offset;
    match decoded.src[1] {
        Operand::None | Operand::Off => {}
        Operand::Literal(value) => inst.imm = inst.imm.wrapping_add(value as i32),
        Operand::Imm(value) => inst.imm = inst.imm.wrapping_add(value),
        register => {
            inst.src[1] = Src::scalar(lowering.scalar(register)?);
            inst.flags |= OFFSET;
        }
    }
    Ok(())
}

/// Immediate plus offset register.
#[inline(always)]
fn offset(wave: &Wave, inst: &Inst) -> u64 {
    let register = if inst.flags & OFFSET != 0 { wave.scalar[inst.src[1].value() as usize] } else { 0 };
    let unit = if inst.flags & SCALED != 0 { 64 } else { 1 };
    (register as u64 * unit).wrapping_add(inst.imm as i64 as u64)
}

/// Writes scalar registers; EXEC's lane row follows.
fn write(wave: &mut Wave, first: u32, values: &[u32]) {
    if first == scalar::NULL as u32 {
        return;
    }
    let first = first as usize;
    wave.scalar[first..first + values.len()].copy_from_slice(values);
    if first + values.len() > scalar::EXEC as usize {
        let exec = wave.scalar64(scalar::EXEC);
        wave.set_exec(exec);
    }
}

/// Reads dwords, wherever their mappings lie.
#[inline(always)]
fn read<const N: usize>(wave: &mut Wave, inst: &Inst, va: u64) -> Option<[u32; N]> {
    let mut values = [0; N];
    if let Some(host) = wave.port.host(va, 4 * N as u64, false) {
        for (index, value) in values.iter_mut().enumerate() {
            // SAFETY: the window holds N dwords.
            *value = unsafe { read32(host.add(4 * index)) };
        }
        return Some(values);
    }
    if let Some((va, kind)) = wave.port.denied(va, 4 * N as u64, false) {
        fault(wave, inst, Access::Read, Denied { kind, va, lanes: 0, detail: None });
        return None;
    }
    for (index, value) in values.iter_mut().enumerate() {
        // Mappings are made of pages, so an aligned dword has one.
        if let Some(host) = wave.port.host(va + 4 * index as u64, 4, false) {
            // SAFETY: the window holds the dword.
            *value = unsafe { read32(host) };
        }
    }
    Some(values)
}

unsafe fn load<const N: usize>(wave: &mut Wave, inst: &Inst) {
    wave.port.begin();
    let base = wave.scalar64(inst.src[0].value() as u8);
    let va = base.wrapping_add(offset(wave, inst)) & !3;
    if let Some(values) = read::<N>(wave, inst, va) {
        write(wave, inst.dst, &values);
    }
}

/// A scalar buffer resource: base, and bytes that may be read.
fn resource(wave: &Wave, first: usize) -> (u64, u64) {
    let word = |index: usize| wave.scalar[first + index];
    let base = word(0) as u64 | (word(1) as u64 & 0xffff) << 32;
    let stride = word(1) >> 16 & 0x3fff;
    (base, word(2) as u64 * if stride == 0 { 1 } else { stride as u64 })
}

unsafe fn buffer_load<const N: usize>(wave: &mut Wave, inst: &Inst) {
    wave.port.begin();
    let (base, size) = resource(wave, inst.src[0].value() as usize);
    let offset = offset(wave, inst) & !3;
    let mut values = [0; N];
    // Dwords out of range read 0.
    let inside = (size.saturating_sub(offset) / 4).min(N as u64) as usize;
    let start = base.wrapping_add(offset);
    if inside == N {
        match read::<N>(wave, inst, start) {
            Some(read) => values = read,
            None => return,
        }
    } else {
        for (index, value) in values.iter_mut().enumerate().take(inside) {
            match read::<1>(wave, inst, start.wrapping_add(4 * index as u64)) {
                Some([read]) => *value = read,
                None => return,
            }
        }
    }
    write(wave, inst.dst, &values);
}

/// Address of `bytes` bytes, None when the buffer does not hold them.
fn address(wave: &Wave, inst: &Inst, bytes: u64) -> Option<u64> {
    let first = inst.src[0].value() as usize;
    let offset = offset(wave, inst) & !3;
    if inst.flags & BUFFER == 0 {
        return Some(wave.scalar64(first as u8).wrapping_add(offset) & !3);
    }
    let (base, size) = resource(wave, first);
    (size.saturating_sub(offset) >= bytes).then(|| base.wrapping_add(offset))
}

/// Stores dwords; those beyond the buffer's end are dropped (GFX9).
unsafe fn store<const N: usize>(wave: &mut Wave, inst: &Inst) {
    wave.port.begin();
    let inside = (0..=N).rev().find(|count| address(wave, inst, 4 * *count as u64).is_some()).unwrap_or(0);
    let Some(va) = address(wave, inst, 4 * inside as u64).filter(|_| inside != 0) else { return };
    if let Some((va, kind)) = wave.port.denied(va, 4 * inside as u64, true) {
        return fault(wave, inst, Access::Write, Denied { kind, va, lanes: 0, detail: None });
    }
    for index in 0..inside {
        let value = wave.scalar[inst.src[2].value() as usize + index];
        // Mappings are made of pages, so an aligned dword has one.
        if let Some(host) = wave.port.host(va + 4 * index as u64, 4, true) {
            // SAFETY: the window holds the dword.
            unsafe { write32(host, value) };
        }
    }
}

/// One atomic for the wave, its operands and result in scalar registers (GFX9).
unsafe fn atomic(wave: &mut Wave, inst: &Inst) {
    wave.port.begin();
    let op = Rmw::from_number(inst.aux);
    let wide = inst.flags & WIDE != 0;
    let bytes = if wide { 8 } else { 4 };
    let Some(va) = address(wave, inst, bytes) else {
        if inst.flags & RETURNS != 0 {
            write(wave, inst.dst, &[0, 0][..bytes as usize / 4]);
        }
        return;
    };
    if va % bytes != 0 {
        let detail = Some(format!("an atomic of {bytes} bytes needs an address that is a multiple of {bytes}"));
        let denied = Denied { kind: FaultKind::Aperture, va, lanes: 0, detail };
        return fault(wave, inst, Access::Atomic, denied);
    }
    let Some(host) = wave.port.host(va, bytes, true) else {
        // An aligned element never lies in two pages, so the access was denied.
        if let Some((va, kind)) = wave.port.denied(va, bytes, true) {
            fault(wave, inst, Access::Atomic, Denied { kind, va, lanes: 0, detail: None });
        }
        return;
    };
    let data = inst.src[2].value() as u8;
    // SAFETY: the window holds the element, whose address is aligned: spans lie at page boundaries on both sides.
    let old = unsafe {
        if wide {
            let cmp = if op.compares() { wave.scalar64(data + 2) } else { 0 };
            host64(op, host, wave.scalar64(data), cmp)
        } else {
            let word = |index: usize| wave.scalar[data as usize + index];
            host32(op, host, word(0), if op.compares() { word(1) } else { 0 }) as u64
        }
    };
    if inst.flags & RETURNS != 0 {
        write(wave, inst.dst, &[old as u32, (old >> 32) as u32][..bytes as usize / 4]);
    }
}

/// Bytes and 16-bit words, which need no alignment to a dword (GFX12).
unsafe fn load_part(wave: &mut Wave, inst: &Inst) {
    wave.port.begin();
    let kind = inst.aux as i16;
    let bytes = kind.unsigned_abs() as u64;
    let offset = offset(wave, inst);
    let first = inst.src[0].value() as usize;
    let (base, size) =
        if inst.flags & BUFFER != 0 { resource(wave, first) } else { (wave.scalar64(first as u8), u64::MAX) };
    let va = base.wrapping_add(offset) & !(bytes - 1);
    let value = if size.saturating_sub(offset) < bytes {
        0
    } else if let Some(host) = wave.port.host(va, bytes, false) {
        // SAFETY: the window holds them.
        unsafe {
            match kind {
                1 => read8(host) as u32,
                -1 => read8(host) as i8 as u32,
                2 => read16(host) as u32,
                _ => read16(host) as i16 as u32,
            }
        }
    } else {
        // An aligned word never lies in two pages, so the access was denied.
        if let Some((va, kind)) = wave.port.denied(va, bytes, false) {
            fault(wave, inst, Access::Read, Denied { kind, va, lanes: 0, detail: None });
        }
        return;
    };
    write(wave, inst.dst, &[value]);
}

unsafe fn memtime(wave: &mut Wave, inst: &Inst) {
    let now = Wave::cycles();
    write(wave, inst.dst, &[now as u32, (now >> 32) as u32]);
}

unsafe fn memrealtime(wave: &mut Wave, inst: &Inst) {
    let now = Wave::realtime();
    write(wave, inst.dst, &[now as u32, (now >> 32) as u32]);
}

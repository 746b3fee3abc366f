//! SCRATCH: offsets into the lane's private segment, from a VGPR, a scalar register, both or neither.
//!
//! Lowered as [`super::flat`] does, with `flags` bits [`VADDR`] and [`SADDR`].

use super::super::fidelity::Fidelity;
use super::super::inst::{Handler, Inst, Src};
use super::super::lower::{Lowering, Unsupported};
use super::super::wave::{Wave, scalar};
use super::element::{Kind, load_lanes, load_step, store_lanes, store_step};
use super::lanes::{Lanes, Layout};
use super::names::{self, Vmem};
use super::pattern::{Pattern, pattern32};
use super::port::{Denied, fault};
use super::{blank, block, block_registers, by_lanes, flat, leveled, nop};
use crate::isa::{Decoded, Family, Operand, Target};
use trace::Access;

/// There is an address row.
const VADDR: u8 = 1;
/// There is a scalar base.
const SADDR: u8 = 2;

/// The wave's scratch is where the machine put it; no register tells.
const ARCHITECTED: u32 = u32::MAX;

/// Where a target's scratch base comes from: [`ARCHITECTED`], or the number of the scalar register pair FLAT_SCRATCH,
/// which the kernel's prologue sets.
pub fn base_source(target: Target) -> u32 {
    match (target, target.family()) {
        (Target::Gfx942, _) => ARCHITECTED,
        (_, Family::Gfx9) => 102,
        (_, Family::Gfx10) => scalar::FLAT_SCRATCH as u32,
        _ => ARCHITECTED,
    }
}

/// GPU address of the wave's scratch.
#[inline(always)]
pub fn base(wave: &Wave, source: u32) -> u64 {
    if source == ARCHITECTED { wave.port.scratch_base } else { wave.scalar64(source as u8) }
}

/// Lowers a SCRATCH instruction.
pub fn lower(decoded: &Decoded, lowering: &mut Lowering) -> Result<Inst, Unsupported> {
    let name = decoded.mnemonic.strip_prefix("scratch_").unwrap_or(decoded.mnemonic);
    let operation = names::vmem(name).ok_or(Unsupported::Operation)?;
    let mut inst = blank(decoded, nop, Fidelity::Exact);
    inst.imm = decoded.mods.offset;
    inst.dst2 = base_source(lowering.target);
    if !matches!(decoded.src[0], Operand::Off | Operand::None) {
        inst.flags |= VADDR;
        inst.src[0] = Src::row(lowering.row(decoded.src[0])?);
    }
    if !matches!(decoded.src[2], Operand::Off | Operand::None) {
        inst.flags |= SADDR;
        inst.src[2] = Src::scalar(lowering.scalar(decoded.src[2])?);
    }
    let run: Handler = match operation {
        Vmem::Load(kind) => {
            inst.aux = kind as u16;
            inst.dst = lowering.row(decoded.dst)?;
            pick_load(lowering)
        }
        Vmem::Store(kind) => {
            inst.aux = kind as u16;
            inst.src[1] = Src::row(lowering.row(decoded.src[1])?);
            pick_store(lowering)
        }
        Vmem::LoadBlock => {
            (inst.dst, inst.aux) = block_registers(decoded.dst, lowering)?;
            by_lanes!(lowering, block, false)
        }
        Vmem::StoreBlock => {
            (inst.dst, inst.aux) = block_registers(decoded.src[1], lowering)?;
            by_lanes!(lowering, block, true)
        }
        Vmem::LoadLds(kind) => {
            inst.aux = kind as u16;
            by_lanes!(lowering, load_lds)
        }
        _ => return Err(Unsupported::Operation),
    };
    inst.run = Some(run);
    Ok(inst)
}

/// The part of the offset that all lanes share.
#[inline(always)]
fn common(wave: &Wave, inst: &Inst) -> u32 {
    let scalar = if inst.flags & SADDR != 0 { wave.scalar[inst.src[2].value() as usize] } else { 0 };
    scalar.wrapping_add(inst.imm as u32)
}

/// The offset when all active lanes have the same.
#[inline(always)]
unsafe fn uniform<const L: usize>(wave: &Wave, inst: &Inst) -> Option<u32> {
    let common = common(wave, inst);
    if inst.flags & VADDR == 0 {
        return Some(common);
    }
    // SAFETY: lowering checked the row.
    unsafe {
        let row = wave.rows.byte_add(inst.src[0].value() as usize);
        match pattern32::<L>(row, wave.exec, &wave.exec_row, 4) {
            Pattern::Same(offset) => Some(offset.wrapping_add(common)),
            _ => None,
        }
    }
}

/// Host address of lane 0's first dword when all lanes access the same dwords of their private segments, which then lie
/// side by side. Does not look at the bounds of the wave's scratch.
#[inline(always)]
pub fn rows_at<const L: usize>(wave: &mut Wave, base: u64, offset: u32, kind: Kind, write: bool) -> Option<*mut u8> {
    let inside = offset % 4;
    if if kind.bytes() >= 4 { inside != 0 } else { inside + kind.bytes() > 4 } {
        return None;
    }
    let va = base.wrapping_add((offset / 4) as u64 * 4 * L as u64);
    let length = kind.dwords() as u64 * 4 * L as u64;
    wave.port.host(va, length, write)
}

/// [`rows_at`], when that is in the wave's scratch.
#[inline(always)]
pub fn rows_in_bounds<const L: usize>(
    wave: &mut Wave,
    base: u64,
    offset: u32,
    kind: Kind,
    write: bool,
) -> Option<*mut u8> {
    let va = base.wrapping_add((offset / 4) as u64 * 4 * L as u64);
    let length = kind.dwords() as u64 * 4 * L as u64;
    let from_start = va.wrapping_sub(wave.port.scratch_base);
    if from_start >= wave.port.scratch_size || length > wave.port.scratch_size - from_start {
        return None;
    }
    rows_at::<L>(wave, base, offset, kind, write)
}

/// Host address of the scratch at `base` when every active lane's element lies in one piece of it, in one mapping.
/// `in_bounds`: of the wave's own scratch.
#[inline(always)]
pub fn all_at<const L: usize>(
    wave: &mut Wave,
    base: u64,
    kind: Kind,
    write: bool,
    in_bounds: bool,
    offset: impl Fn(usize) -> u32,
) -> Option<*mut u8> {
    // Elements of dwords are aligned to them, smaller ones do not cross one.
    let bytes = kind.bytes();
    let (unaligned, crossing) = if bytes >= 4 { (3, 0) } else { (0, bytes - 1) };
    let mut highest = 0;
    let mut wrong = 0;
    for lane in 0..L {
        let offset = offset(lane) & wave.exec_row.0[lane];
        highest = highest.max(offset);
        wrong |= offset & unaligned | (offset % 4 + crossing) & 4;
    }
    let length = ((highest / 4) as u64 + kind.dwords() as u64) * 4 * L as u64;
    if wrong != 0 {
        return None;
    }
    if in_bounds {
        let from_start = base.wrapping_sub(wave.port.scratch_base);
        if from_start >= wave.port.scratch_size || length > wave.port.scratch_size - from_start {
            return None;
        }
    }
    wave.port.host(base, length, write)
}

/// Where a lane's element lies in what [`all_at`] found.
#[inline(always)]
pub fn place<const L: usize>(host: *mut u8, lane: usize, offset: u32) -> *mut u8 {
    host.wrapping_add((offset / 4) as usize * 4 * L + lane * 4 + (offset % 4) as usize)
}

/// Loads all active lanes from one offset. `host` is lane 0's first dword.
///
/// # Safety
/// `host` must come from [`rows_at`] in this instruction, `rows` be valid for the kind's registers.
#[inline(always)]
pub unsafe fn load_rows<const L: usize>(kind: Kind, mask: u64, rows: *mut u32, host: *const u8, offset: u32) {
    // SAFETY: the caller's promise.
    unsafe {
        if kind.bytes() >= 4 {
            for index in 0..kind.dwords() as usize {
                load_step::<L>(Kind::B32, mask, rows.add(index * L), host.add(index * 4 * L));
            }
        } else {
            let inside = (offset % 4) as usize;
            load_lanes::<L>(kind, mask, rows, 4, |lane| host.wrapping_add(lane * 4 + inside));
        }
    }
}

/// Stores all active lanes to one offset.
///
/// # Safety
/// As [`load_rows`].
#[inline(always)]
pub unsafe fn store_rows<const L: usize>(kind: Kind, mask: u64, rows: *const u32, host: *mut u8, offset: u32) {
    // SAFETY: the caller's promise.
    unsafe {
        if kind.bytes() >= 4 {
            for index in 0..kind.dwords() as usize {
                store_step::<L>(Kind::B32, mask, rows.add(index * L), host.add(index * 4 * L));
            }
        } else {
            let inside = (offset % 4) as usize;
            store_lanes::<L>(kind, mask, rows, 4, |lane| host.wrapping_add(lane * 4 + inside));
        }
    }
}

#[inline(always)]
unsafe fn load<const L: usize>(wave: &mut Wave, inst: &Inst) {
    if wave.exec == 0 {
        return;
    }
    wave.port.begin();
    let kind = Kind::from_number(inst.aux);
    let base = base(wave, inst.dst2);
    // SAFETY: lowered for this wave; checked in this instruction.
    unsafe {
        if let Some(offset) = uniform::<L>(wave, inst)
            && let Some(host) = rows_in_bounds::<L>(wave, base, offset, kind, false)
        {
            load_rows::<L>(kind, wave.exec, wave.rows.byte_add(inst.dst as usize), host, offset);
        } else {
            load_each::<L>(wave, inst);
        }
    }
}
leveled!(pick_load, load);

#[inline(always)]
unsafe fn store<const L: usize>(wave: &mut Wave, inst: &Inst) {
    if wave.exec == 0 {
        return;
    }
    wave.port.begin();
    let kind = Kind::from_number(inst.aux);
    let base = base(wave, inst.dst2);
    // SAFETY: lowered for this wave; checked in this instruction.
    unsafe {
        if let Some(offset) = uniform::<L>(wave, inst)
            && let Some(host) = rows_in_bounds::<L>(wave, base, offset, kind, true)
        {
            store_rows::<L>(kind, wave.exec, wave.rows.byte_add(inst.src[1].value() as usize), host, offset);
        } else {
            store_each::<L>(wave, inst);
        }
    }
}
leveled!(pick_store, store);

/// Each lane's offset.
#[inline(always)]
unsafe fn offset<const L: usize>(wave: &Wave, inst: &Inst) -> impl Fn(usize) -> u32 + use<L> {
    let common = common(wave, inst);
    // SAFETY: lowering checked the row, when there is one.
    let row = unsafe { wave.rows.byte_add(inst.src[0].value() as usize) };
    let with_row = inst.flags & VADDR != 0;
    move |lane| {
        // SAFETY: as above; lanes are below L.
        let offset = if with_row { unsafe { *row.add(lane) } } else { 0 };
        offset.wrapping_add(common)
    }
}

/// Checks each lane's access.
unsafe fn resolve<const L: usize>(
    wave: &mut Wave,
    inst: &Inst,
    kind: Kind,
    access: Access,
) -> Result<Lanes<L>, Denied> {
    let base = base(wave, inst.dst2);
    // SAFETY: lowered for this wave.
    let offset = unsafe { offset::<L>(wave, inst) };
    let address = |lane| offset(lane) as u64;
    let layout = Layout::Scratch { base, bounded: true };
    Lanes::resolve(&mut wave.port, layout, wave.exec, 0, kind.bytes(), access, address)
}

#[inline(never)]
unsafe fn load_each<const L: usize>(wave: &mut Wave, inst: &Inst) {
    let kind = Kind::from_number(inst.aux);
    // SAFETY: lowered for this wave; checked in this instruction. A lane's offset is read before its destination is
    // written.
    unsafe {
        let offset = offset::<L>(wave, inst);
        let rows = wave.rows.byte_add(inst.dst as usize);
        if let Some(host) = all_at::<L>(wave, base(wave, inst.dst2), kind, false, true, &offset) {
            load_lanes::<L>(kind, wave.exec, rows, 4 * L, |lane| place::<L>(host, lane, offset(lane)));
            return;
        }
        match resolve::<L>(wave, inst, kind, Access::Read) {
            Ok(lanes) => lanes.load(&mut wave.port, kind, rows),
            Err(denied) => fault(wave, inst, Access::Read, denied),
        }
    }
}

#[inline(never)]
unsafe fn store_each<const L: usize>(wave: &mut Wave, inst: &Inst) {
    let kind = Kind::from_number(inst.aux);
    // SAFETY: lowered for this wave; checked in this instruction.
    unsafe {
        let offset = offset::<L>(wave, inst);
        let rows = wave.rows.byte_add(inst.src[1].value() as usize);
        if let Some(host) = all_at::<L>(wave, base(wave, inst.dst2), kind, true, true, &offset) {
            store_lanes::<L>(kind, wave.exec, rows, 4 * L, |lane| place::<L>(host, lane, offset(lane)));
            return;
        }
        match resolve::<L>(wave, inst, kind, Access::Write) {
            Ok(lanes) => lanes.store(&mut wave.port, kind, rows),
            Err(denied) => fault(wave, inst, Access::Write, denied),
        }
    }
}

unsafe fn block<const L: usize, const STORE: bool>(wave: &mut Wave, inst: &Inst) {
    wave.port.begin();
    let layout = Layout::Scratch { base: base(wave, inst.dst2), bounded: true };
    // SAFETY: lowered for this wave.
    unsafe {
        let offset = offset::<L>(wave, inst);
        let access = if STORE { Access::Write } else { Access::Read };
        block::transfer::<L>(wave, inst, layout, inst.dst, access, |lane| offset(lane) as u64);
    }
}

unsafe fn load_lds<const L: usize>(wave: &mut Wave, inst: &Inst) {
    if wave.exec == 0 {
        return;
    }
    wave.port.begin();
    let kind = Kind::from_number(inst.aux);
    // SAFETY: lowered for this wave; resolved in this instruction.
    unsafe {
        match resolve::<L>(wave, inst, kind, Access::Read) {
            Ok(lanes) => flat::to_lds(wave, kind, &lanes, inst.imm),
            Err(denied) => fault(wave, inst, Access::Read, denied),
        }
    }
}

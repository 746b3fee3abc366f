//! MUBUF and MTBUF: addresses from a buffer resource, with an index and an offset from VGPRs.
//!
//! Loads out of range give 0, stores and atomics there do nothing; each dword is checked on its own.
//!
//! Lowered: `src[0]` address rows (index, then offset), `src[1]` data row, `src[2]` first scalar register of the
//! resource, `dst2` the scalar offset as a [`Src`], `imm` offset, `aux` a [`Kind`], an [`Rmw`](super::atomic::Rmw) or a
//! format number.

use super::super::fidelity::{CACHE, Fidelity};
use super::super::inst::{Handler, Inst, Src};
use super::super::lower::{Lowering, Unsupported, Width};
use super::super::wave::Wave;
use super::atomic::{self, Registers, flag};
use super::element::{Kind, load_lanes, store_lanes};
use super::lanes::{Lanes, Layout, load_pattern, store_pattern};
use super::names::{self, Vmem};
use super::pattern::{Pattern, ones, pattern32, widen};
use super::port::{Denied, fault};
use super::resource::Resource;
use super::{blank, by_lanes, fence, flat, format, leveled, scratch};
use crate::isa::{Decoded, Family, Format, Operand};
use trace::Access;

/// An offset comes from a VGPR. Bits 0 and 1 are those of [`flag`].
const OFFEN: u8 = 4;
/// An index comes from a VGPR.
const IDXEN: u8 = 8;
/// The encoding family from this bit on.
const FAMILY: u8 = 4;

/// Lowers a MUBUF or MTBUF instruction.
pub fn lower(decoded: &Decoded, lowering: &mut Lowering) -> Result<Inst, Unsupported> {
    let prefix = if decoded.format == Format::Mtbuf { "tbuffer_" } else { "buffer_" };
    let name = decoded.mnemonic.strip_prefix(prefix).unwrap_or(decoded.mnemonic);
    let operation = names::vmem(name).ok_or(Unsupported::Operation)?;
    if operation == Vmem::Fence {
        return Ok(blank(decoded, fence, CACHE));
    }
    let mods = &decoded.mods;
    if mods.tfe {
        return Err(Unsupported::Operand("partially resident textures (tfe) are not emulated"));
    }
    let mut inst = blank(decoded, fence, Fidelity::Exact);
    inst.imm = mods.offset;
    inst.flags = (if mods.offen { OFFEN } else { 0 }) | (if mods.idxen { IDXEN } else { 0 });
    inst.flags |= (lowering.target.family() as u8) << FAMILY;
    if mods.offen || mods.idxen {
        inst.src[0] = Src::row(lowering.row(decoded.src[0])?);
    }
    let resource = lowering.scalar(decoded.src[2])?;
    if resource > 120 {
        return Err(Unsupported::Operand("the buffer resource must lie in four SGPRs or trap temporaries"));
    }
    inst.src[2] = Src::scalar(resource);
    inst.dst2 = match decoded.src[3] {
        Operand::None | Operand::Off => lowering.src(Operand::Int(0), Width::B32)?,
        operand => lowering.src(operand, Width::B32)?,
    }
    .0;
    let data = |lowering: &Lowering| lowering.row(decoded.src[1]).map(Src::row);
    let run: Handler = match operation {
        Vmem::Load(kind) if !mods.lds => {
            inst.aux = kind as u16;
            inst.dst = lowering.row(decoded.dst)?;
            pick_load(lowering)
        }
        Vmem::Load(kind) | Vmem::LoadLds(kind) => {
            inst.aux = kind as u16;
            by_lanes!(lowering, load_lds)
        }
        Vmem::StoreLds => by_lanes!(lowering, store_lds),
        Vmem::Store(kind) => {
            inst.aux = kind as u16;
            inst.src[1] = data(lowering)?;
            pick_store(lowering)
        }
        Vmem::Atomic32(op) | Vmem::Atomic64(op) => {
            inst.aux = op as u16;
            inst.src[1] = data(lowering)?;
            if matches!(operation, Vmem::Atomic64(_)) {
                inst.flags |= flag::WIDE;
            }
            if mods.returns {
                inst.flags |= flag::RETURNS;
                inst.dst = lowering.row(decoded.dst)?;
            }
            by_lanes!(lowering, atomic)
        }
        Vmem::LoadFormat { count, d16, high } => {
            let to_lds = mods.lds;
            if to_lds {
                return Err(Unsupported::Operand("formatted loads to LDS are not emulated"));
            }
            inst.dst = lowering.row(decoded.dst)?;
            format::lower(decoded, lowering, &mut inst, true, format::Shape { count, d16, high })?
        }
        Vmem::StoreFormat { count, d16, high } => {
            inst.src[1] = data(lowering)?;
            format::lower(decoded, lowering, &mut inst, false, format::Shape { count, d16, high })?
        }
        Vmem::LoadAddtid | Vmem::StoreAddtid | Vmem::LoadBlock | Vmem::StoreBlock | Vmem::Fence => {
            return Err(Unsupported::Operation);
        }
    };
    inst.run = Some(run);
    Ok(inst)
}

/// The encoding family that lowering put into an instruction.
pub fn family(inst: &Inst) -> Family {
    [Family::Gfx9, Family::Gfx10, Family::Gfx11, Family::Gfx12][usize::from(inst.flags >> FAMILY) % 4]
}

/// The resource of an instruction.
#[inline(always)]
pub unsafe fn resource(wave: &Wave, inst: &Inst) -> Resource {
    let src = Src(inst.dst2);
    let soffset = if src.is_scalar() {
        wave.scalar[src.value() as usize]
    } else {
        // SAFETY: lowering made the row in the code's pool.
        unsafe { *wave.constants.byte_add(src.value() as usize) }
    };
    Resource::read(wave, family(inst), inst.src[2].value() as usize, soffset, inst.flags & IDXEN != 0)
}

/// Index and offset of a lane.
#[inline(always)]
unsafe fn place<const L: usize>(
    wave: &Wave,
    inst: &Inst,
    resource: &Resource,
) -> impl Fn(usize) -> (u32, u32) + use<L> {
    let flags = inst.flags;
    let add_tid = resource.add_tid;
    let imm = inst.imm as u32;
    // SAFETY: lowering checked the rows, where there are any.
    let rows = unsafe { wave.rows.byte_add(inst.src[0].value() as usize) };
    move |lane| {
        // SAFETY: as above; lanes are below L.
        unsafe {
            let index = if flags & IDXEN != 0 { *rows.add(lane) } else { 0 };
            let offset = match flags & (IDXEN | OFFEN) {
                OFFEN => *rows.add(lane),
                0 | IDXEN => 0,
                _ => *rows.add(lane + L),
            };
            (index.wrapping_add(if add_tid { lane as u32 } else { 0 }), offset.wrapping_add(imm))
        }
    }
}

/// Checks `bytes` bytes of each lane, `extra` bytes behind its place.
///
/// # Safety
/// `inst` must have been lowered for this wave.
pub unsafe fn resolve<const L: usize>(
    wave: &mut Wave,
    inst: &Inst,
    resource: &Resource,
    extra: u32,
    bytes: u32,
    access: Access,
) -> Result<Lanes<L>, Denied> {
    // SAFETY: the caller's promise.
    let place = unsafe { place::<L>(wave, inst, resource) };
    let mut outside = 0;
    ones(wave.exec, |lane| {
        let (index, offset) = place(lane);
        outside |= (!resource.holds(index, offset.wrapping_add(extra), bytes) as u64) << lane;
    });
    if resource.is_scratch(L) && inst.flags & IDXEN == 0 {
        let layout = Layout::Scratch { base: resource.base, bounded: false };
        let address = |lane| place(lane).1.wrapping_add(extra) as u64;
        return Lanes::resolve(&mut wave.port, layout, wave.exec, outside, bytes, access, address);
    }
    let address = |lane| {
        let (index, offset) = place(lane);
        resource.address(index, offset.wrapping_add(extra))
    };
    Lanes::resolve(&mut wave.port, Layout::Linear, wave.exec, outside, bytes, access, address)
}

/// How the active lanes' addresses relate, when they are linear, in range, and tell by one row or none.
#[inline(always)]
unsafe fn pattern<const L: usize>(wave: &Wave, inst: &Inst, resource: &Resource, kind: Kind) -> Pattern<u64> {
    let exec = wave.exec;
    let bytes = kind.bytes();
    let imm = inst.imm as u32;
    if resource.element.is_some() || resource.add_tid || !resource.by_offset() {
        return Pattern::Each;
    }
    match inst.flags & (IDXEN | OFFEN) {
        0 => {
            if resource.holds(0, imm, bytes) {
                Pattern::Same(resource.base.wrapping_add(imm as u64))
            } else {
                Pattern::Each
            }
        }
        OFFEN => {
            // SAFETY: lowering checked the row.
            let found = unsafe {
                let row = wave.rows.byte_add(inst.src[0].value() as usize);
                widen(pattern32::<L>(row, exec, &wave.exec_row, bytes), 0, exec, bytes)
            };
            let last = (63 - exec.leading_zeros()) as u64;
            let (start, highest) = match found {
                Pattern::Step(start) => (start, start.wrapping_add(last * bytes as u64)),
                Pattern::Same(offset) => (offset, offset),
                Pattern::Each => return Pattern::Each,
            };
            let highest = highest.wrapping_add(imm as u64);
            if highest > u32::MAX as u64 || !resource.holds(0, highest as u32, bytes) {
                return Pattern::Each;
            }
            let base = resource.base.wrapping_add(imm as u64).wrapping_add(start);
            if matches!(found, Pattern::Step(_)) { Pattern::Step(base) } else { Pattern::Same(base) }
        }
        _ => Pattern::Each,
    }
}

/// The offset all active lanes have into a scratch-like buffer, when it is in range.
#[inline(always)]
unsafe fn scratch_offset<const L: usize>(wave: &Wave, inst: &Inst, resource: &Resource, kind: Kind) -> Option<u32> {
    if !resource.is_scratch(L) || !resource.by_offset() || inst.flags & IDXEN != 0 {
        return None;
    }
    let mut offset = inst.imm as u32;
    if inst.flags & OFFEN != 0 {
        // SAFETY: lowering checked the row.
        let found = unsafe {
            let row = wave.rows.byte_add(inst.src[0].value() as usize);
            pattern32::<L>(row, wave.exec, &wave.exec_row, 4)
        };
        let Pattern::Same(same) = found else { return None };
        offset = offset.wrapping_add(same);
    }
    resource.holds(0, offset, kind.bytes()).then_some(offset)
}

#[inline(always)]
unsafe fn load<const L: usize>(wave: &mut Wave, inst: &Inst) {
    if wave.exec == 0 {
        return;
    }
    wave.port.begin();
    let kind = Kind::from_number(inst.aux);
    // SAFETY: lowered for this wave; checked in this instruction.
    unsafe {
        let resource = resource(wave, inst);
        if let Some(offset) = scratch_offset::<L>(wave, inst, &resource, kind) {
            if let Some(host) = scratch::rows_at::<L>(wave, resource.base, offset, kind, false) {
                scratch::load_rows::<L>(kind, wave.exec, wave.rows.byte_add(inst.dst as usize), host, offset);
                return;
            }
        } else {
            let pattern = pattern::<L>(wave, inst, &resource, kind);
            if load_pattern::<L>(wave, kind, inst.dst, &pattern) {
                return;
            }
        }
        load_each::<L>(wave, inst, &resource);
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
    // SAFETY: lowered for this wave; checked in this instruction.
    unsafe {
        let resource = resource(wave, inst);
        if let Some(offset) = scratch_offset::<L>(wave, inst, &resource, kind) {
            if let Some(host) = scratch::rows_at::<L>(wave, resource.base, offset, kind, true) {
                let rows = wave.rows.byte_add(inst.src[1].value() as usize);
                scratch::store_rows::<L>(kind, wave.exec, rows, host, offset);
                return;
            }
        } else {
            let pattern = pattern::<L>(wave, inst, &resource, kind);
            if store_pattern::<L>(wave, kind, inst.src[1].value(), &pattern) {
                return;
            }
        }
        store_each::<L>(wave, inst, &resource);
    }
}
leveled!(pick_store, store);

/// Host address of a scratch-like buffer when every active lane's element is in range and in one piece, as
/// [`scratch::all_at`].
unsafe fn scratch_all<const L: usize>(
    wave: &mut Wave,
    resource: &Resource,
    kind: Kind,
    write: bool,
    place: impl Fn(usize) -> (u32, u32),
) -> Option<*mut u8> {
    if !resource.is_scratch(L) || !resource.by_offset() {
        return None;
    }
    let mut inside = true;
    ones(wave.exec, |lane| {
        let (index, offset) = place(lane);
        // With an index the lane's number is not the whole of it.
        inside &= index == lane as u32 && resource.holds(index, offset, kind.bytes());
    });
    if !inside {
        return None;
    }
    scratch::all_at::<L>(wave, resource.base, kind, write, false, |lane| place(lane).1)
}

/// The pieces that are checked on their own: the element, or its dwords.
fn pieces(kind: Kind) -> (Kind, u32) {
    if kind.bytes() > 4 { (Kind::B32, kind.dwords()) } else { (kind, 1) }
}

#[inline(never)]
unsafe fn load_each<const L: usize>(wave: &mut Wave, inst: &Inst, resource: &Resource) {
    let kind = Kind::from_number(inst.aux);
    let (piece, count) = pieces(kind);
    let mut resolved = [const { None }; 4];
    // SAFETY: lowered for this wave; checked in this instruction. A lane's place is read before its destination is
    // written.
    unsafe {
        let place = place::<L>(wave, inst, resource);
        if let Some(host) = scratch_all::<L>(wave, resource, kind, false, &place) {
            let rows = wave.rows.byte_add(inst.dst as usize);
            load_lanes::<L>(kind, wave.exec, rows, 4 * L, |lane| scratch::place::<L>(host, lane, place(lane).1));
            return;
        }
        for (index, slot) in resolved.iter_mut().enumerate().take(count as usize) {
            match resolve::<L>(wave, inst, resource, 4 * index as u32, piece.bytes(), Access::Read) {
                Ok(lanes) => *slot = Some(lanes),
                Err(denied) => return fault(wave, inst, Access::Read, denied),
            }
        }
        let rows = wave.rows.byte_add(inst.dst as usize);
        for (index, lanes) in resolved.iter().flatten().enumerate() {
            lanes.load(&mut wave.port, piece, rows.add(index * L));
        }
    }
}

#[inline(never)]
unsafe fn store_each<const L: usize>(wave: &mut Wave, inst: &Inst, resource: &Resource) {
    let kind = Kind::from_number(inst.aux);
    let (piece, count) = pieces(kind);
    let mut resolved = [const { None }; 4];
    // SAFETY: lowered for this wave; checked in this instruction.
    unsafe {
        let place = place::<L>(wave, inst, resource);
        if let Some(host) = scratch_all::<L>(wave, resource, kind, true, &place) {
            let rows = wave.rows.byte_add(inst.src[1].value() as usize);
            store_lanes::<L>(kind, wave.exec, rows, 4 * L, |lane| scratch::place::<L>(host, lane, place(lane).1));
            return;
        }
        for (index, slot) in resolved.iter_mut().enumerate().take(count as usize) {
            match resolve::<L>(wave, inst, resource, 4 * index as u32, piece.bytes(), Access::Write) {
                Ok(lanes) => *slot = Some(lanes),
                Err(denied) => return fault(wave, inst, Access::Write, denied),
            }
        }
        let rows = wave.rows.byte_add(inst.src[1].value() as usize);
        for (index, lanes) in resolved.iter().flatten().enumerate() {
            lanes.store(&mut wave.port, piece, rows.add(index * L));
        }
    }
}

unsafe fn atomic<const L: usize>(wave: &mut Wave, inst: &Inst) {
    if wave.exec == 0 {
        return;
    }
    wave.port.begin();
    let registers = Registers::of(inst, inst.src[1].value());
    // SAFETY: lowered for this wave; resolved in this instruction.
    unsafe {
        let resource = resource(wave, inst);
        match resolve::<L>(wave, inst, &resource, 0, if registers.wide { 8 } else { 4 }, Access::Atomic) {
            Ok(lanes) => atomic::run(wave, registers, &lanes),
            Err(denied) => fault(wave, inst, Access::Atomic, denied),
        }
    }
}

/// Memory to LDS, as [`flat::to_lds`].
unsafe fn load_lds<const L: usize>(wave: &mut Wave, inst: &Inst) {
    if wave.exec == 0 {
        return;
    }
    wave.port.begin();
    let kind = Kind::from_number(inst.aux);
    // SAFETY: lowered for this wave; resolved in this instruction.
    unsafe {
        let resource = resource(wave, inst);
        match resolve::<L>(wave, inst, &resource, 0, kind.bytes(), Access::Read) {
            Ok(lanes) => flat::to_lds(wave, kind, &lanes, inst.imm),
            Err(denied) => fault(wave, inst, Access::Read, denied),
        }
    }
}

/// A dword of each lane from LDS, from where [`flat::to_lds`] puts it, to memory.
unsafe fn store_lds<const L: usize>(wave: &mut Wave, inst: &Inst) {
    if wave.exec == 0 {
        return;
    }
    wave.port.begin();
    // SAFETY: lowered for this wave; resolved in this instruction; `temp` has room for a row.
    unsafe {
        let resource = resource(wave, inst);
        match resolve::<L>(wave, inst, &resource, 0, 4, Access::Write) {
            Ok(lanes) => {
                flat::from_lds::<L>(wave, inst.imm);
                let rows = wave.temp.as_ptr().cast::<u32>();
                lanes.store(&mut wave.port, Kind::B32, rows);
            }
            Err(denied) => fault(wave, inst, Access::Write, denied),
        }
    }
}

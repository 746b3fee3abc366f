//! FLAT and GLOBAL: 64-bit addresses in VGPR pairs, or a scalar base with 32-bit offsets in a VGPR.
//!
//! A flat address whose high half is that of the shared or private aperture means LDS or scratch; the instruction's
//! offset is added first.
//!
//! Lowered: `src[0]` address row, `src[1]` data row, `src[2]` scalar base, `imm` offset, `aux` a [`Kind`] or an
//! [`Rmw`](super::atomic::Rmw), `dst2` where the scratch base comes from ([`scratch::base`]).

use super::super::fidelity::{CACHE, Fidelity};
use super::super::inst::{Handler, Inst, Src};
use super::super::lower::{Lowering, Unsupported};
use super::super::wave::{Wave, scalar};
use super::atomic::{self, Registers, flag};
use super::element::{Kind, load_lanes, load_same, load_step, store_lanes, store_step};
use super::lanes::{Lanes, Layout, load_pattern, one_window, store_pattern};
use super::names::{self, Vmem};
use super::pattern::{Pattern, ones, pattern32, pattern64, widen};
use super::port::{Denied, fault};
use super::{blank, block, block_registers, by_lanes, fence, leveled, scratch};
use crate::isa::{Decoded, Format, Operand};
use trace::Access;

/// There is no scalar base. Bits 0 and 1 are those of [`flag`].
const NO_BASE: u8 = 4;

/// Lowers a FLAT or GLOBAL instruction.
pub fn lower(decoded: &Decoded, lowering: &mut Lowering) -> Result<Inst, Unsupported> {
    let flat = decoded.format == Format::Flat;
    let name = decoded.mnemonic.strip_prefix(if flat { "flat_" } else { "global_" }).unwrap_or(decoded.mnemonic);
    let operation = names::vmem(name).ok_or(Unsupported::Operation)?;
    if operation == Vmem::Fence {
        return Ok(blank(decoded, fence, CACHE));
    }
    let with_base = !matches!(decoded.src[2], Operand::Off | Operand::None);
    let mut inst = blank(decoded, fence, Fidelity::Exact);
    inst.imm = decoded.mods.offset;
    inst.dst2 = scratch::base_source(lowering.target);
    if with_base {
        if flat {
            return Err(Unsupported::Operand("flat addresses have no scalar base on this target"));
        }
        inst.src[2] = Src::scalar(lowering.scalar(decoded.src[2])?);
    } else {
        inst.flags |= NO_BASE;
    }
    if !matches!(operation, Vmem::LoadAddtid | Vmem::StoreAddtid) {
        inst.src[0] = Src::row(lowering.row(decoded.src[0])?);
    }
    let data = || lowering.row(decoded.src[1]).map(Src::row);
    let run: Handler = match operation {
        Vmem::Load(kind) => {
            inst.aux = kind as u16;
            inst.dst = lowering.row(decoded.dst)?;
            match (flat, with_base) {
                (true, _) => pick_load::<true, false>(lowering),
                (_, true) => pick_load::<false, true>(lowering),
                (_, false) => pick_load::<false, false>(lowering),
            }
        }
        Vmem::Store(kind) => {
            inst.aux = kind as u16;
            inst.src[1] = data()?;
            match (flat, with_base) {
                (true, _) => pick_store::<true, false>(lowering),
                (_, true) => pick_store::<false, true>(lowering),
                (_, false) => pick_store::<false, false>(lowering),
            }
        }
        Vmem::Atomic32(op) | Vmem::Atomic64(op) => {
            inst.aux = op as u16;
            inst.src[1] = data()?;
            if matches!(operation, Vmem::Atomic64(_)) {
                inst.flags |= flag::WIDE;
            }
            if decoded.mods.returns {
                inst.flags |= flag::RETURNS;
                inst.dst = lowering.row(decoded.dst)?;
            }
            match (flat, with_base) {
                (true, _) => by_lanes!(lowering, atomic, true, false),
                (_, true) => by_lanes!(lowering, atomic, false, true),
                (_, false) => by_lanes!(lowering, atomic, false, false),
            }
        }
        Vmem::LoadLds(kind) if !flat => {
            inst.aux = kind as u16;
            if with_base { by_lanes!(lowering, load_lds, true) } else { by_lanes!(lowering, load_lds, false) }
        }
        Vmem::LoadBlock if !flat => {
            (inst.dst, inst.aux) = block_registers(decoded.dst, lowering)?;
            if with_base { by_lanes!(lowering, block, true, false) } else { by_lanes!(lowering, block, false, false) }
        }
        Vmem::StoreBlock if !flat => {
            (inst.dst, inst.aux) = block_registers(decoded.src[1], lowering)?;
            if with_base { by_lanes!(lowering, block, true, true) } else { by_lanes!(lowering, block, false, true) }
        }
        Vmem::LoadAddtid if !flat => {
            inst.dst = lowering.row(decoded.dst)?;
            by_lanes!(lowering, load_addtid)
        }
        Vmem::StoreAddtid if !flat => {
            inst.src[1] = data()?;
            by_lanes!(lowering, store_addtid)
        }
        _ => return Err(Unsupported::Operation),
    };
    inst.run = Some(run);
    Ok(inst)
}

/// How the active lanes' addresses relate; EXEC is not zero.
#[inline(always)]
unsafe fn pattern<const L: usize, const SADDR: bool>(wave: &Wave, inst: &Inst, step: u32) -> Pattern<u64> {
    let exec = wave.exec;
    // SAFETY: lowering checked the rows.
    let (found, base) = unsafe {
        let row = wave.rows.byte_add(inst.src[0].value() as usize);
        if SADDR {
            let found = widen(pattern32::<L>(row, exec, &wave.exec_row, step), 0, exec, step);
            (found, wave.scalar64(inst.src[2].value() as u8))
        } else {
            (pattern64::<L>(row, row.add(L), exec, &wave.exec_row, step), 0)
        }
    };
    let offset = base.wrapping_add(inst.imm as i64 as u64);
    match found {
        Pattern::Step(va) => Pattern::Step(va.wrapping_add(offset)),
        Pattern::Same(va) => Pattern::Same(va.wrapping_add(offset)),
        Pattern::Each => Pattern::Each,
    }
}

/// Each lane's address.
#[inline(always)]
unsafe fn address<const L: usize, const SADDR: bool>(
    wave: &Wave,
    inst: &Inst,
) -> impl Fn(usize) -> u64 + use<L, SADDR> {
    // SAFETY: lowering checked the rows.
    let row = unsafe { wave.rows.byte_add(inst.src[0].value() as usize) };
    let base = if SADDR { wave.scalar64(inst.src[2].value() as u8) } else { 0 };
    let offset = base.wrapping_add(inst.imm as i64 as u64);
    move |lane| {
        // SAFETY: lowering checked the rows, and lanes are below L.
        let va = unsafe {
            if SADDR { *row.add(lane) as u64 } else { *row.add(lane) as u64 | (*row.add(lane + L) as u64) << 32 }
        };
        va.wrapping_add(offset)
    }
}

#[inline(always)]
unsafe fn load<const L: usize, const FLAT: bool, const SADDR: bool>(wave: &mut Wave, inst: &Inst) {
    if wave.exec == 0 {
        return;
    }
    wave.port.begin();
    let kind = Kind::from_number(inst.aux);
    // SAFETY: lowered for this wave.
    unsafe {
        let pattern = pattern::<L, SADDR>(wave, inst, kind.bytes());
        if FLAT && let Some(host) = in_lds(wave, kind, &pattern) {
            let rows = wave.rows.byte_add(inst.dst as usize);
            match pattern {
                Pattern::Step(_) => load_step::<L>(kind, wave.exec, rows, host),
                _ => load_same::<L>(kind, wave.exec, &wave.exec_row, rows, host),
            }
        } else if FLAT && let Some((offset, host)) = in_scratch::<L>(wave, inst, kind, &pattern, false) {
            scratch::load_rows::<L>(kind, wave.exec, wave.rows.byte_add(inst.dst as usize), host, offset);
        } else if !load_pattern::<L>(wave, kind, inst.dst, &pattern) {
            load_each::<L, FLAT, SADDR>(wave, inst);
        }
    }
}
leveled!(pick_load, load, FLAT: bool, SADDR: bool);

#[inline(always)]
unsafe fn store<const L: usize, const FLAT: bool, const SADDR: bool>(wave: &mut Wave, inst: &Inst) {
    if wave.exec == 0 {
        return;
    }
    wave.port.begin();
    let kind = Kind::from_number(inst.aux);
    // SAFETY: lowered for this wave.
    unsafe {
        let pattern = pattern::<L, SADDR>(wave, inst, kind.bytes());
        if FLAT && let Some(host) = in_lds(wave, kind, &pattern) {
            let rows = wave.rows.byte_add(inst.src[1].value() as usize);
            match pattern {
                Pattern::Step(_) => store_step::<L>(kind, wave.exec, rows, host),
                _ => store_lanes::<L>(kind, 1 << (63 - wave.exec.leading_zeros()), rows, 4, |_| host),
            }
        } else if FLAT && let Some((offset, host)) = in_scratch::<L>(wave, inst, kind, &pattern, true) {
            let rows = wave.rows.byte_add(inst.src[1].value() as usize);
            scratch::store_rows::<L>(kind, wave.exec, rows, host, offset);
        } else if !store_pattern::<L>(wave, kind, inst.src[1].value(), &pattern) {
            store_each::<L, FLAT, SADDR>(wave, inst);
        }
    }
}
leveled!(pick_store, store, FLAT: bool, SADDR: bool);

/// Host address of a pattern's lane 0 (or of its one element) when all of it lies in LDS.
#[inline(always)]
fn in_lds(wave: &Wave, kind: Kind, pattern: &Pattern<u64>) -> Option<*mut u8> {
    let bytes = kind.bytes() as u64;
    let (va, length, before) = match *pattern {
        Pattern::Step(start) => {
            let first = wave.exec.trailing_zeros() as u64;
            let last = 63 - wave.exec.leading_zeros() as u64;
            (start.wrapping_add(first * bytes), (last - first + 1) * bytes, first * bytes)
        }
        Pattern::Same(va) => (va, bytes, 0),
        Pattern::Each => return None,
    };
    let offset = va & 0xffff_ffff;
    if (va >> 32) as u32 != wave.port.shared_aperture || offset + length > wave.port.lds_size as u64 {
        return None;
    }
    Some(wave.port.lds.wrapping_add(offset as usize).wrapping_sub(before as usize))
}

/// Offset and host address of lane 0's first dword when all lanes have the same private address.
#[inline(always)]
fn in_scratch<const L: usize>(
    wave: &mut Wave,
    inst: &Inst,
    kind: Kind,
    pattern: &Pattern<u64>,
    write: bool,
) -> Option<(u32, *mut u8)> {
    let Pattern::Same(va) = *pattern else { return None };
    if (va >> 32) as u32 != wave.port.private_aperture {
        return None;
    }
    let base = scratch::base(wave, inst.dst2);
    let host = scratch::rows_in_bounds::<L>(wave, base, va as u32, kind, write)?;
    Some((va as u32, host))
}

/// Are all active lanes' addresses private?
fn all_private<const L: usize>(wave: &Wave, address: impl Fn(usize) -> u64) -> bool {
    let mut other = 0;
    ones(wave.exec, |lane| other |= (address(lane) >> 32) as u32 ^ wave.port.private_aperture);
    other == 0
}

/// Active lanes by the aperture their addresses lie in.
struct Parts<const L: usize> {
    global: Option<Lanes<L>>,
    lds: Option<Lanes<L>>,
    scratch: Option<Lanes<L>>,
}

impl<const L: usize> Parts<L> {
    /// Checks all of them, before anything is changed.
    unsafe fn resolve<const FLAT: bool, const SADDR: bool>(
        wave: &mut Wave,
        inst: &Inst,
        bytes: u32,
        access: Access,
    ) -> Result<Parts<L>, Denied> {
        // SAFETY: lowered for this wave.
        let address = unsafe { address::<L, SADDR>(wave, inst) };
        let scratch_base = scratch::base(wave, inst.dst2);
        let port = &mut wave.port;
        let mut lds = 0;
        let mut private = 0;
        if FLAT {
            ones(wave.exec, |lane| {
                let top = (address(lane) >> 32) as u32;
                lds |= ((top == port.shared_aperture) as u64) << lane;
                private |= ((top == port.private_aperture) as u64) << lane;
            });
        }
        let mut part = |layout, mask: u64| {
            if mask == 0 {
                return Ok(None);
            }
            let low = |lane| if layout == Layout::Linear { address(lane) } else { address(lane) & 0xffff_ffff };
            Lanes::resolve(port, layout, mask, 0, bytes, access, low).map(Some)
        };
        Ok(Parts {
            global: part(Layout::Linear, wave.exec & !lds & !private)?,
            lds: part(Layout::Lds, lds)?,
            scratch: part(Layout::Scratch { base: scratch_base, bounded: true }, private)?,
        })
    }

    fn iter(&self) -> impl Iterator<Item = &Lanes<L>> {
        [&self.global, &self.lds, &self.scratch].into_iter().flatten()
    }
}

#[inline(never)]
unsafe fn load_each<const L: usize, const FLAT: bool, const SADDR: bool>(wave: &mut Wave, inst: &Inst) {
    let kind = Kind::from_number(inst.aux);
    // SAFETY: lowered for this wave; resolved in this instruction. A lane's address is read before its destination is
    // written, and lanes do not read each other's.
    unsafe {
        let rows = wave.rows.byte_add(inst.dst as usize);
        let address = address::<L, SADDR>(wave, inst);
        let window = one_window::<L>(&mut wave.port, wave.exec, &wave.exec_row, kind.bytes(), false, &address);
        if let Some(window) = window {
            load_lanes::<L>(kind, wave.exec, rows, 4, |lane| window.host_of(address(lane)));
            return;
        }
        if FLAT && all_private::<L>(wave, &address) {
            let base = scratch::base(wave, inst.dst2);
            if let Some(host) = scratch::all_at::<L>(wave, base, kind, false, true, |lane| address(lane) as u32) {
                let at = |lane| scratch::place::<L>(host, lane, address(lane) as u32);
                load_lanes::<L>(kind, wave.exec, rows, 4 * L, |lane| at(lane));
                return;
            }
        }
        match Parts::<L>::resolve::<FLAT, SADDR>(wave, inst, kind.bytes(), Access::Read) {
            Ok(parts) => {
                for lanes in parts.iter() {
                    lanes.load(&mut wave.port, kind, rows);
                }
            }
            Err(denied) => fault(wave, inst, Access::Read, denied),
        }
    }
}

#[inline(never)]
unsafe fn store_each<const L: usize, const FLAT: bool, const SADDR: bool>(wave: &mut Wave, inst: &Inst) {
    let kind = Kind::from_number(inst.aux);
    // SAFETY: lowered for this wave; resolved in this instruction.
    unsafe {
        let rows = wave.rows.byte_add(inst.src[1].value() as usize);
        let address = address::<L, SADDR>(wave, inst);
        let window = one_window::<L>(&mut wave.port, wave.exec, &wave.exec_row, kind.bytes(), true, &address);
        if let Some(window) = window {
            store_lanes::<L>(kind, wave.exec, rows, 4, |lane| window.host_of(address(lane)));
            return;
        }
        if FLAT && all_private::<L>(wave, &address) {
            let base = scratch::base(wave, inst.dst2);
            if let Some(host) = scratch::all_at::<L>(wave, base, kind, true, true, |lane| address(lane) as u32) {
                let at = |lane| scratch::place::<L>(host, lane, address(lane) as u32);
                store_lanes::<L>(kind, wave.exec, rows, 4 * L, at);
                return;
            }
        }
        match Parts::<L>::resolve::<FLAT, SADDR>(wave, inst, kind.bytes(), Access::Write) {
            Ok(parts) => {
                for lanes in parts.iter() {
                    lanes.store(&mut wave.port, kind, rows);
                }
            }
            Err(denied) => fault(wave, inst, Access::Write, denied),
        }
    }
}

unsafe fn atomic<const L: usize, const FLAT: bool, const SADDR: bool>(wave: &mut Wave, inst: &Inst) {
    if wave.exec == 0 {
        return;
    }
    wave.port.begin();
    let registers = Registers::of(inst, inst.src[1].value());
    let bytes = if registers.wide { 8 } else { 4 };
    // SAFETY: lowered for this wave; checked or resolved in this instruction.
    unsafe {
        if let Pattern::Same(va) = pattern::<L, SADDR>(wave, inst, bytes)
            && va % bytes as u64 == 0
            && let Some(host) = wave.port.host(va, bytes as u64, true)
        {
            atomic::run_same::<L>(wave, registers, host);
            return;
        }
        let address = address::<L, SADDR>(wave, inst);
        let mut low = 0;
        ones(wave.exec, |lane| low |= address(lane));
        if low % bytes as u64 == 0
            && let Some(window) = one_window::<L>(&mut wave.port, wave.exec, &wave.exec_row, bytes, true, &address)
        {
            atomic::run_at::<L>(wave, registers, wave.exec, 4, |lane| Some(window.host_of(address(lane))));
            return;
        }
        match Parts::<L>::resolve::<FLAT, SADDR>(wave, inst, bytes, Access::Atomic) {
            Ok(parts) => {
                for lanes in parts.iter() {
                    atomic::run(wave, registers, lanes);
                }
            }
            Err(denied) => fault(wave, inst, Access::Atomic, denied),
        }
    }
}

unsafe fn block<const L: usize, const SADDR: bool, const STORE: bool>(wave: &mut Wave, inst: &Inst) {
    wave.port.begin();
    // SAFETY: lowered for this wave.
    unsafe {
        let address = address::<L, SADDR>(wave, inst);
        let access = if STORE { Access::Write } else { Access::Read };
        block::transfer::<L>(wave, inst, Layout::Linear, inst.dst, access, address);
    }
}

/// Memory to LDS: dword (or three, or four) of lane `l` to M0's low half plus the instruction's offset plus `l` times
/// its bytes.
unsafe fn load_lds<const L: usize, const SADDR: bool>(wave: &mut Wave, inst: &Inst) {
    if wave.exec == 0 {
        return;
    }
    wave.port.begin();
    let kind = Kind::from_number(inst.aux);
    // SAFETY: lowered for this wave; resolved in this instruction.
    unsafe {
        match Parts::<L>::resolve::<false, SADDR>(wave, inst, kind.bytes(), Access::Read) {
            Ok(parts) => {
                for lanes in parts.iter() {
                    to_lds(wave, kind, lanes, inst.imm);
                }
            }
            Err(denied) => fault(wave, inst, Access::Read, denied),
        }
    }
}

/// Moves resolved lanes to LDS. Out of range of LDS nothing is written.
///
/// # Safety
/// The lanes must have been resolved for reading in this instruction.
pub unsafe fn to_lds<const L: usize>(wave: &mut Wave, kind: Kind, from: &Lanes<L>, offset: i32) {
    let start = (wave.scalar[scalar::M0 as usize] & 0xffff).wrapping_add(offset as u32);
    let wide = [Kind::B32, Kind::B64, Kind::B96, Kind::B128][kind.dwords() as usize - 1];
    let rows = wave.temp.as_mut_ptr().cast::<u32>();
    let address = |lane: usize| start.wrapping_add(lane as u32 * wide.bytes()) as u64;
    // SAFETY: `temp` has room for four rows; LDS was checked by `resolve`.
    unsafe {
        from.load(&mut wave.port, kind, rows);
        if let Ok(to) =
            Lanes::<L>::resolve(&mut wave.port, Layout::Lds, wave.exec, 0, wide.bytes(), Access::Write, address)
        {
            to.store(&mut wave.port, wide, rows);
        }
    }
}

/// A dword of each active lane from LDS, as [`to_lds`] places it, into the first row of `temp`.
///
/// # Safety
/// None beyond a whole wave.
pub unsafe fn from_lds<const L: usize>(wave: &mut Wave, offset: i32) {
    let start = (wave.scalar[scalar::M0 as usize] & 0xffff).wrapping_add(offset as u32);
    let address = |lane: usize| start.wrapping_add(lane as u32 * 4) as u64;
    let rows = wave.temp.as_mut_ptr().cast::<u32>();
    if let Ok(from) = Lanes::<L>::resolve(&mut wave.port, Layout::Lds, wave.exec, 0, 4, Access::Read, address) {
        // SAFETY: `temp` has room for a row; LDS was checked by `resolve`.
        unsafe { from.load(&mut wave.port, Kind::B32, rows) };
    }
}

/// Address of lane 0 of the add-thread-id forms.
fn addtid_base(wave: &Wave, inst: &Inst) -> u64 {
    let base = if inst.flags & NO_BASE != 0 { 0 } else { wave.scalar64(inst.src[2].value() as u8) };
    base.wrapping_add(inst.imm as i64 as u64)
}

unsafe fn load_addtid<const L: usize>(wave: &mut Wave, inst: &Inst) {
    if wave.exec == 0 {
        return;
    }
    wave.port.begin();
    let base = addtid_base(wave, inst);
    // SAFETY: lowered for this wave; resolved in this instruction.
    unsafe {
        if load_pattern::<L>(wave, Kind::B32, inst.dst, &Pattern::Step(base)) {
            return;
        }
        let address = |lane: usize| base.wrapping_add(4 * lane as u64);
        match Lanes::<L>::resolve(&mut wave.port, Layout::Linear, wave.exec, 0, 4, Access::Read, address) {
            Ok(lanes) => lanes.load(&mut wave.port, Kind::B32, wave.rows.byte_add(inst.dst as usize)),
            Err(denied) => fault(wave, inst, Access::Read, denied),
        }
    }
}

unsafe fn store_addtid<const L: usize>(wave: &mut Wave, inst: &Inst) {
    if wave.exec == 0 {
        return;
    }
    wave.port.begin();
    let base = addtid_base(wave, inst);
    // SAFETY: lowered for this wave; resolved in this instruction.
    unsafe {
        if store_pattern::<L>(wave, Kind::B32, inst.src[1].value(), &Pattern::Step(base)) {
            return;
        }
        let address = |lane: usize| base.wrapping_add(4 * lane as u64);
        match Lanes::<L>::resolve(&mut wave.port, Layout::Linear, wave.exec, 0, 4, Access::Write, address) {
            Ok(lanes) => lanes.store(&mut wave.port, Kind::B32, wave.rows.byte_add(inst.src[1].value() as usize)),
            Err(denied) => fault(wave, inst, Access::Write, denied),
        }
    }
}

//! DS: the local data share.
//!
//! An access with any byte beyond the work-group's allocation reads 0 and writes nothing. The allocation is touched only
//! by the thread that runs the work-group, so an atomic is a read and a write.
//!
//! Lowered: `src[0]` address row, `src[1]` and `src[2]` data rows, `imm` byte offset, `dst2` the second byte offset of
//! two-address forms, `aux` a [`Kind`] or an [`Rmw`].

use super::super::fidelity::{Fidelity, HINT};
use super::super::inst::{Handler, Inst, Src};
use super::super::lower::{Lowering, Unsupported};
use super::super::wave::{Row, Wave, scalar};
use super::access::{read32, read64, write32, write64};
use super::atomic::{Rmw, apply32, apply64, flag};
use super::element::{Kind, load_lanes, load_same, load_step, store_lanes, store_step};
use super::pattern::{Pattern, ones, pattern32};
use super::{blank, by_lanes, ds_lane, leveled, nop};
use crate::isa::{Decoded, Operand};

/// What a DS instruction does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ds {
    Load(Kind),
    Store(Kind),
    /// Two elements of a kind, offsets scaled by this many bytes.
    Load2(Kind, u32),
    Store2(Kind, u32),
    Exchange2(Kind, u32),
    Atomic32(Rmw),
    Atomic64(Rmw),
    LoadAddtid,
    StoreAddtid,
    Append,
    Consume,
    Swizzle,
    Permute,
    Bpermute,
    BpermuteFi,
    Nop,
}

use Ds::{Atomic32, Atomic64, Exchange2, Load, Load2, Store, Store2};

/// Operations by the mnemonic without `ds_` and `_rtn`.
const NAMES: &[(&str, Ds)] = &[
    ("read_u8", Load(Kind::U8)),
    ("load_u8", Load(Kind::U8)),
    ("read_i8", Load(Kind::I8)),
    ("load_i8", Load(Kind::I8)),
    ("read_u16", Load(Kind::U16)),
    ("load_u16", Load(Kind::U16)),
    ("read_i16", Load(Kind::I16)),
    ("load_i16", Load(Kind::I16)),
    ("read_u8_d16", Load(Kind::U8Lo)),
    ("load_u8_d16", Load(Kind::U8Lo)),
    ("read_u8_d16_hi", Load(Kind::U8Hi)),
    ("load_u8_d16_hi", Load(Kind::U8Hi)),
    ("read_i8_d16", Load(Kind::I8Lo)),
    ("load_i8_d16", Load(Kind::I8Lo)),
    ("read_i8_d16_hi", Load(Kind::I8Hi)),
    ("load_i8_d16_hi", Load(Kind::I8Hi)),
    ("read_u16_d16", Load(Kind::B16Lo)),
    ("load_u16_d16", Load(Kind::B16Lo)),
    ("read_u16_d16_hi", Load(Kind::B16Hi)),
    ("load_u16_d16_hi", Load(Kind::B16Hi)),
    ("read_b32", Load(Kind::B32)),
    ("load_b32", Load(Kind::B32)),
    ("read_b64", Load(Kind::B64)),
    ("load_b64", Load(Kind::B64)),
    ("read_b96", Load(Kind::B96)),
    ("load_b96", Load(Kind::B96)),
    ("read_b128", Load(Kind::B128)),
    ("load_b128", Load(Kind::B128)),
    ("write_b8", Store(Kind::U8)),
    ("store_b8", Store(Kind::U8)),
    ("write_b16", Store(Kind::U16)),
    ("store_b16", Store(Kind::U16)),
    ("write_b8_d16_hi", Store(Kind::U8Hi)),
    ("store_b8_d16_hi", Store(Kind::U8Hi)),
    ("write_b16_d16_hi", Store(Kind::B16Hi)),
    ("store_b16_d16_hi", Store(Kind::B16Hi)),
    ("write_b32", Store(Kind::B32)),
    ("store_b32", Store(Kind::B32)),
    ("write_b64", Store(Kind::B64)),
    ("store_b64", Store(Kind::B64)),
    ("write_b96", Store(Kind::B96)),
    ("store_b96", Store(Kind::B96)),
    ("write_b128", Store(Kind::B128)),
    ("store_b128", Store(Kind::B128)),
    ("read2_b32", Load2(Kind::B32, 4)),
    ("load_2addr_b32", Load2(Kind::B32, 4)),
    ("read2st64_b32", Load2(Kind::B32, 256)),
    ("load_2addr_stride64_b32", Load2(Kind::B32, 256)),
    ("read2_b64", Load2(Kind::B64, 8)),
    ("load_2addr_b64", Load2(Kind::B64, 8)),
    ("read2st64_b64", Load2(Kind::B64, 512)),
    ("load_2addr_stride64_b64", Load2(Kind::B64, 512)),
    ("write2_b32", Store2(Kind::B32, 4)),
    ("store_2addr_b32", Store2(Kind::B32, 4)),
    ("write2st64_b32", Store2(Kind::B32, 256)),
    ("store_2addr_stride64_b32", Store2(Kind::B32, 256)),
    ("write2_b64", Store2(Kind::B64, 8)),
    ("store_2addr_b64", Store2(Kind::B64, 8)),
    ("write2st64_b64", Store2(Kind::B64, 512)),
    ("store_2addr_stride64_b64", Store2(Kind::B64, 512)),
    ("wrxchg2_b32", Exchange2(Kind::B32, 4)),
    ("storexchg_2addr_b32", Exchange2(Kind::B32, 4)),
    ("wrxchg2st64_b32", Exchange2(Kind::B32, 256)),
    ("storexchg_2addr_stride64_b32", Exchange2(Kind::B32, 256)),
    ("wrxchg2_b64", Exchange2(Kind::B64, 8)),
    ("storexchg_2addr_b64", Exchange2(Kind::B64, 8)),
    ("wrxchg2st64_b64", Exchange2(Kind::B64, 512)),
    ("storexchg_2addr_stride64_b64", Exchange2(Kind::B64, 512)),
    ("wrxchg_b32", Atomic32(Rmw::Swap)),
    ("storexchg_b32", Atomic32(Rmw::Swap)),
    ("cmpst_b32", Atomic32(Rmw::CmpSwap)),
    ("cmpstore_b32", Atomic32(Rmw::CmpSwap)),
    ("cmpst_f32", Atomic32(Rmw::FCmpSwap)),
    ("cmpstore_f32", Atomic32(Rmw::FCmpSwap)),
    ("add_u32", Atomic32(Rmw::Add)),
    ("sub_u32", Atomic32(Rmw::Sub)),
    ("rsub_u32", Atomic32(Rmw::RSub)),
    ("sub_clamp_u32", Atomic32(Rmw::SubClamp)),
    ("cond_sub_u32", Atomic32(Rmw::CondSub)),
    ("min_i32", Atomic32(Rmw::SMin)),
    ("max_i32", Atomic32(Rmw::SMax)),
    ("min_u32", Atomic32(Rmw::UMin)),
    ("max_u32", Atomic32(Rmw::UMax)),
    ("and_b32", Atomic32(Rmw::And)),
    ("or_b32", Atomic32(Rmw::Or)),
    ("xor_b32", Atomic32(Rmw::Xor)),
    ("inc_u32", Atomic32(Rmw::Inc)),
    ("dec_u32", Atomic32(Rmw::Dec)),
    ("mskor_b32", Atomic32(Rmw::MaskOr)),
    ("wrap_b32", Atomic32(Rmw::Wrap)),
    ("add_f32", Atomic32(Rmw::FAdd)),
    ("min_f32", Atomic32(Rmw::FMin)),
    ("min_num_f32", Atomic32(Rmw::FMin)),
    ("max_f32", Atomic32(Rmw::FMax)),
    ("max_num_f32", Atomic32(Rmw::FMax)),
    ("pk_add_f16", Atomic32(Rmw::PkAddF16)),
    ("pk_add_bf16", Atomic32(Rmw::PkAddBf16)),
    ("wrxchg_b64", Atomic64(Rmw::Swap)),
    ("storexchg_b64", Atomic64(Rmw::Swap)),
    ("cmpst_b64", Atomic64(Rmw::CmpSwap)),
    ("cmpstore_b64", Atomic64(Rmw::CmpSwap)),
    ("cmpst_f64", Atomic64(Rmw::FCmpSwap)),
    ("cmpstore_f64", Atomic64(Rmw::FCmpSwap)),
    ("add_u64", Atomic64(Rmw::Add)),
    ("sub_u64", Atomic64(Rmw::Sub)),
    ("rsub_u64", Atomic64(Rmw::RSub)),
    ("min_i64", Atomic64(Rmw::SMin)),
    ("max_i64", Atomic64(Rmw::SMax)),
    ("min_u64", Atomic64(Rmw::UMin)),
    ("max_u64", Atomic64(Rmw::UMax)),
    ("and_b64", Atomic64(Rmw::And)),
    ("or_b64", Atomic64(Rmw::Or)),
    ("xor_b64", Atomic64(Rmw::Xor)),
    ("inc_u64", Atomic64(Rmw::Inc)),
    ("dec_u64", Atomic64(Rmw::Dec)),
    ("mskor_b64", Atomic64(Rmw::MaskOr)),
    ("condxchg32_b64", Atomic64(Rmw::CondExchange32)),
    ("add_f64", Atomic64(Rmw::FAdd)),
    ("min_f64", Atomic64(Rmw::FMin)),
    ("min_num_f64", Atomic64(Rmw::FMin)),
    ("max_f64", Atomic64(Rmw::FMax)),
    ("max_num_f64", Atomic64(Rmw::FMax)),
    ("read_addtid_b32", Ds::LoadAddtid),
    ("load_addtid_b32", Ds::LoadAddtid),
    ("write_addtid_b32", Ds::StoreAddtid),
    ("store_addtid_b32", Ds::StoreAddtid),
    ("append", Ds::Append),
    ("consume", Ds::Consume),
    ("swizzle_b32", Ds::Swizzle),
    ("permute_b32", Ds::Permute),
    ("bpermute_b32", Ds::Bpermute),
    ("bpermute_fi_b32", Ds::BpermuteFi),
    ("nop", Ds::Nop),
];

/// Lowers a DS instruction.
pub fn lower(decoded: &Decoded, lowering: &mut Lowering) -> Result<Inst, Unsupported> {
    let full = decoded.mnemonic.strip_prefix("ds_").unwrap_or(decoded.mnemonic);
    if decoded.mods.gds && !full.starts_with("gws_") && full != "ordered_count" {
        return Err(Unsupported::Operand("the global data share is not emulated"));
    }
    let name = full.replacen("_rtn", "", 1);
    let returns = name.len() != full.len();
    let of_lds = name.replacen("_src2", "", 1);
    let operation = NAMES.iter().find(|(known, _)| *known == of_lds).ok_or(Unsupported::Operation)?.1;
    if of_lds.len() != name.len() {
        return lower_src2(decoded, lowering, operation);
    }

    let fidelity = if operation == Ds::Nop { HINT } else { Fidelity::Exact };
    let mut inst = blank(decoded, nop, fidelity);
    inst.imm = decoded.mods.offset;
    let [addr, data0, data1, _] = decoded.src;
    let row = |operand| lowering.row(operand).map(Src::row);
    let used = |operand| !matches!(operand, Operand::None | Operand::Off);
    let two_addresses = |inst: &mut Inst, kind: Kind, scale: u32| {
        inst.aux = kind as u16;
        inst.imm = (decoded.mods.offset as u32 & 0xff).wrapping_mul(scale) as i32;
        inst.dst2 = decoded.mods.offset1 as u32 * scale;
        inst.src[0] = row(addr)?;
        Ok::<(), Unsupported>(())
    };
    let run: Handler = match operation {
        Ds::Nop => nop,
        Ds::Load(kind) => {
            inst.aux = kind as u16;
            inst.src[0] = row(addr)?;
            inst.dst = lowering.row(decoded.dst)?;
            pick_load(lowering)
        }
        Ds::Store(kind) => {
            inst.aux = kind as u16;
            inst.src[0] = row(addr)?;
            inst.src[1] = row(data0)?;
            pick_store(lowering)
        }
        Ds::Load2(kind, scale) => {
            two_addresses(&mut inst, kind, scale)?;
            inst.dst = lowering.row(decoded.dst)?;
            by_lanes!(lowering, load2)
        }
        Ds::Store2(kind, scale) => {
            two_addresses(&mut inst, kind, scale)?;
            (inst.src[1], inst.src[2]) = (row(data0)?, row(data1)?);
            by_lanes!(lowering, store2)
        }
        Ds::Exchange2(kind, scale) => {
            two_addresses(&mut inst, kind, scale)?;
            (inst.src[1], inst.src[2]) = (row(data0)?, row(data1)?);
            inst.dst = lowering.row(decoded.dst)?;
            by_lanes!(lowering, exchange2)
        }
        Ds::Atomic32(op) | Ds::Atomic64(op) => {
            inst.aux = op as u16;
            inst.src[0] = row(addr)?;
            inst.src[1] = row(data0)?;
            if op.compares() {
                inst.src[2] = row(data1)?;
                // Before GFX11 the value compared with comes first.
                if full.starts_with("cmpst_") {
                    inst.src.swap(1, 2);
                }
            }
            if matches!(operation, Ds::Atomic64(_)) {
                inst.flags |= flag::WIDE;
            }
            if returns {
                inst.flags |= flag::RETURNS;
                inst.dst = lowering.row(decoded.dst)?;
            }
            by_lanes!(lowering, atomic)
        }
        Ds::LoadAddtid => {
            inst.dst = lowering.row(decoded.dst)?;
            by_lanes!(lowering, load_addtid)
        }
        Ds::StoreAddtid => {
            inst.src[1] = row(if used(data0) { data0 } else { addr })?;
            by_lanes!(lowering, store_addtid)
        }
        Ds::Append | Ds::Consume => {
            inst.dst = lowering.row(decoded.dst)?;
            if operation == Ds::Append { by_lanes!(lowering, count, true) } else { by_lanes!(lowering, count, false) }
        }
        Ds::Swizzle => {
            inst.src[0] = row(addr)?;
            inst.dst = lowering.row(decoded.dst)?;
            ds_lane::swizzle(lowering)
        }
        Ds::Permute | Ds::Bpermute | Ds::BpermuteFi => {
            inst.src[0] = row(addr)?;
            inst.src[1] = row(data0)?;
            inst.dst = lowering.row(decoded.dst)?;
            match operation {
                Ds::Permute => ds_lane::permute(lowering, &mut inst),
                _ => ds_lane::bpermute(lowering, &mut inst, operation == Ds::BpermuteFi),
            }
        }
    };
    inst.run = Some(run);
    Ok(inst)
}

/// `ds_*_src2_*`: an operation whose data lie in LDS as well, at a distance from its address (gfx900, gfx906).
fn lower_src2(decoded: &Decoded, lowering: &mut Lowering, operation: Ds) -> Result<Inst, Unsupported> {
    let (op, wide) = match operation {
        Atomic32(op) => (op, false),
        Atomic64(op) => (op, true),
        Store(Kind::B32) => (Rmw::Swap, false),
        Store(Kind::B64) => (Rmw::Swap, true),
        _ => return Err(Unsupported::Operation),
    };
    let mut inst = blank(decoded, by_lanes!(lowering, atomic_src2), Fidelity::Exact);
    inst.imm = decoded.mods.offset;
    inst.src[0] = Src::row(lowering.row(decoded.src[0])?);
    inst.aux = op as u16;
    inst.flags = if wide { flag::WIDE } else { 0 };
    Ok(inst)
}

/// Address A is that of the lane; the data are at A + 4 * distance. The distance is offset 14:0, or address 31:17 when
/// offset 15 is set, which leaves 17 bits of address; both are signed.
unsafe fn atomic_src2<const L: usize>(wave: &mut Wave, inst: &Inst) {
    let lds = Lds::of(wave);
    let (op, wide) = (Rmw::from_number(inst.aux), inst.flags & flag::WIDE != 0);
    let offset = inst.imm as u32;
    // SAFETY: lowering checked the row; LDS is checked at each access.
    unsafe {
        let row = wave.rows.byte_add(inst.src[0].value() as usize);
        ones(wave.exec, |lane| {
            let address = *row.add(lane);
            let (address, distance) = if offset >> 15 & 1 != 0 {
                (address & 0x1_ffff, address as i32 >> 17)
            } else {
                (address, (offset << 17) as i32 >> 17)
            };
            let data = read(lds, address.wrapping_add_signed(distance.wrapping_mul(4)), wide);
            let old = read(lds, address, wide);
            let new = if wide { apply64(op, old, data, 0) } else { apply32(op, old as u32, data as u32, 0) as u64 };
            write(lds, address, wide, new);
        });
    }
}

/// The work-group's allocation.
#[derive(Clone, Copy)]
struct Lds {
    start: *mut u8,
    size: u32,
}

impl Lds {
    #[inline(always)]
    fn of(wave: &Wave) -> Lds {
        Lds { start: wave.port.lds, size: wave.port.lds_size }
    }

    /// Host address of an element, or `outside`.
    #[inline(always)]
    fn at(self, address: u32, bytes: u32, outside: *mut u8) -> *mut u8 {
        if address as u64 + bytes as u64 <= self.size as u64 {
            self.start.wrapping_add(address as usize)
        } else {
            outside
        }
    }
}

/// Host address of lane 0 of lanes side by side (or of the one element) when all are in range.
#[inline(always)]
fn in_range(lds: Lds, kind: Kind, exec: u64, pattern: &Pattern<u32>, offset: i32) -> Option<*mut u8> {
    let bytes = kind.bytes();
    let first = exec.trailing_zeros() * bytes;
    let (address, length, before) = match *pattern {
        Pattern::Step(start) => (start.wrapping_add(first), (64 - exec.leading_zeros()) * bytes - first, first),
        Pattern::Same(address) => (address, bytes, 0),
        Pattern::Each => return None,
    };
    let address = address.wrapping_add(offset as u32);
    if address as u64 + length as u64 > lds.size as u64 {
        return None;
    }
    Some(lds.start.wrapping_add(address as usize).wrapping_sub(before as usize))
}

#[inline(always)]
unsafe fn load<const L: usize>(wave: &mut Wave, inst: &Inst) {
    let exec = wave.exec;
    if exec == 0 {
        return;
    }
    let kind = Kind::from_number(inst.aux);
    let lds = Lds::of(wave);
    // SAFETY: lowering checked the rows; LDS is checked here.
    unsafe {
        let row = wave.rows.byte_add(inst.src[0].value() as usize);
        let dst = wave.rows.byte_add(inst.dst as usize);
        let pattern = pattern32::<L>(row, exec, &wave.exec_row, kind.bytes());
        match (in_range(lds, kind, exec, &pattern, inst.imm), pattern) {
            (Some(host), Pattern::Step(_)) => load_step::<L>(kind, exec, dst, host),
            (Some(host), _) => load_same::<L>(kind, exec, &wave.exec_row, dst, host),
            (None, _) => load_each::<L>(wave, inst),
        }
    }
}
leveled!(pick_load, load);

/// Lane by lane; each reads its address before it writes its registers, so they may be the same.
#[inline(never)]
unsafe fn load_each<const L: usize>(wave: &mut Wave, inst: &Inst) {
    let kind = Kind::from_number(inst.aux);
    let lds = Lds::of(wave);
    let mut zeros = [0u32; 4];
    let outside = zeros.as_mut_ptr().cast::<u8>();
    // SAFETY: lowering checked the rows; LDS is checked here.
    unsafe {
        let row = wave.rows.byte_add(inst.src[0].value() as usize);
        let dst = wave.rows.byte_add(inst.dst as usize);
        load_lanes::<L>(kind, wave.exec, dst, 4, |lane| {
            lds.at((*row.add(lane)).wrapping_add(inst.imm as u32), kind.bytes(), outside)
        });
    }
}

#[inline(always)]
unsafe fn store<const L: usize>(wave: &mut Wave, inst: &Inst) {
    let exec = wave.exec;
    if exec == 0 {
        return;
    }
    let kind = Kind::from_number(inst.aux);
    let lds = Lds::of(wave);
    // SAFETY: lowering checked the rows; LDS is checked here.
    unsafe {
        let row = wave.rows.byte_add(inst.src[0].value() as usize);
        let data = wave.rows.byte_add(inst.src[1].value() as usize);
        let pattern = pattern32::<L>(row, exec, &wave.exec_row, kind.bytes());
        match (in_range(lds, kind, exec, &pattern, inst.imm), pattern) {
            (Some(host), Pattern::Step(_)) => store_step::<L>(kind, exec, data, host),
            _ => store_each::<L>(wave, inst),
        }
    }
}
leveled!(pick_store, store);

#[inline(never)]
unsafe fn store_each<const L: usize>(wave: &mut Wave, inst: &Inst) {
    let kind = Kind::from_number(inst.aux);
    let lds = Lds::of(wave);
    let mut dropped = [0u32; 4];
    let outside = dropped.as_mut_ptr().cast::<u8>();
    // SAFETY: lowering checked the rows; LDS is checked here.
    unsafe {
        let row = wave.rows.byte_add(inst.src[0].value() as usize);
        let data = wave.rows.byte_add(inst.src[1].value() as usize);
        store_lanes::<L>(kind, wave.exec, data, 4, |lane| {
            lds.at((*row.add(lane)).wrapping_add(inst.imm as u32), kind.bytes(), outside)
        });
    }
}

/// Reads an element of 32 or 64 bits; 0 out of range.
#[inline(always)]
unsafe fn read(lds: Lds, address: u32, wide: bool) -> u64 {
    let mut zeros = 0u64;
    let at = lds.at(address, if wide { 8 } else { 4 }, (&raw mut zeros).cast());
    // SAFETY: in range of LDS, or the local.
    unsafe { if wide { read64(at) } else { read32(at) as u64 } }
}

/// Writes an element of 32 or 64 bits; nothing out of range.
#[inline(always)]
unsafe fn write(lds: Lds, address: u32, wide: bool, value: u64) {
    let mut dropped = 0u64;
    let at = lds.at(address, if wide { 8 } else { 4 }, (&raw mut dropped).cast());
    // SAFETY: in range of LDS, or the local.
    unsafe { if wide { write64(at, value) } else { write32(at, value as u32) } }
}

/// An operand of 32 or 64 bits.
#[inline(always)]
unsafe fn operand<const L: usize>(rows: *const u32, lane: usize, wide: bool) -> u64 {
    // SAFETY: lowering checked the rows.
    unsafe { *rows.add(lane) as u64 | if wide { (*rows.add(lane + L) as u64) << 32 } else { 0 } }
}

/// A result of 32 or 64 bits.
#[inline(always)]
unsafe fn result<const L: usize>(rows: *mut u32, lane: usize, wide: bool, value: u64) {
    // SAFETY: lowering checked the rows.
    unsafe {
        *rows.add(lane) = value as u32;
        if wide {
            *rows.add(lane + L) = (value >> 32) as u32;
        }
    }
}

unsafe fn load2<const L: usize>(wave: &mut Wave, inst: &Inst) {
    let wide = Kind::from_number(inst.aux) == Kind::B64;
    let lds = Lds::of(wave);
    // SAFETY: lowering checked the rows.
    ones(wave.exec, |lane| unsafe {
        let address = *wave.rows.byte_add(inst.src[0].value() as usize).add(lane);
        let first = read(lds, address.wrapping_add(inst.imm as u32), wide);
        let second = read(lds, address.wrapping_add(inst.dst2), wide);
        let dst = wave.rows.byte_add(inst.dst as usize);
        result::<L>(dst, lane, wide, first);
        result::<L>(dst.add(if wide { 2 * L } else { L }), lane, wide, second);
    });
}

unsafe fn store2<const L: usize>(wave: &mut Wave, inst: &Inst) {
    let wide = Kind::from_number(inst.aux) == Kind::B64;
    let lds = Lds::of(wave);
    // SAFETY: lowering checked the rows.
    ones(wave.exec, |lane| unsafe {
        let row = |src: Src| wave.rows.byte_add(src.value() as usize);
        let address = *row(inst.src[0]).add(lane);
        write(lds, address.wrapping_add(inst.imm as u32), wide, operand::<L>(row(inst.src[1]), lane, wide));
        write(lds, address.wrapping_add(inst.dst2), wide, operand::<L>(row(inst.src[2]), lane, wide));
    });
}

unsafe fn exchange2<const L: usize>(wave: &mut Wave, inst: &Inst) {
    let wide = Kind::from_number(inst.aux) == Kind::B64;
    let lds = Lds::of(wave);
    // SAFETY: lowering checked the rows.
    ones(wave.exec, |lane| unsafe {
        let row = |src: Src| wave.rows.byte_add(src.value() as usize);
        let address = *row(inst.src[0]).add(lane);
        let (one, two) = (address.wrapping_add(inst.imm as u32), address.wrapping_add(inst.dst2));
        let (first, second) = (read(lds, one, wide), read(lds, two, wide));
        write(lds, one, wide, operand::<L>(row(inst.src[1]), lane, wide));
        write(lds, two, wide, operand::<L>(row(inst.src[2]), lane, wide));
        let dst = wave.rows.byte_add(inst.dst as usize);
        result::<L>(dst, lane, wide, first);
        result::<L>(dst.add(if wide { 2 * L } else { L }), lane, wide, second);
    });
}

/// Lane 0 upward.
unsafe fn atomic<const L: usize>(wave: &mut Wave, inst: &Inst) {
    let op = Rmw::from_number(inst.aux);
    let wide = inst.flags & flag::WIDE != 0;
    let lds = Lds::of(wave);
    // SAFETY: lowering checked the rows.
    ones(wave.exec, |lane| unsafe {
        let row = |src: Src| wave.rows.byte_add(src.value() as usize);
        let address = (*row(inst.src[0]).add(lane)).wrapping_add(inst.imm as u32);
        let data = operand::<L>(row(inst.src[1]), lane, wide);
        let cmp = if op.compares() { operand::<L>(row(inst.src[2]), lane, wide) } else { 0 };
        let old = read(lds, address, wide);
        let new =
            if wide { apply64(op, old, data, cmp) } else { apply32(op, old as u32, data as u32, cmp as u32) as u64 };
        write(lds, address, wide, new);
        if inst.flags & flag::RETURNS != 0 {
            result::<L>(wave.rows.byte_add(inst.dst as usize), lane, wide, old);
        }
    });
}

/// Address of lane 0 of what M0's low half and the offset point at.
fn m0_address(wave: &Wave, inst: &Inst) -> u32 {
    (wave.scalar[scalar::M0 as usize] & 0xffff).wrapping_add(inst.imm as u32)
}

unsafe fn load_addtid<const L: usize>(wave: &mut Wave, inst: &Inst) {
    let lds = Lds::of(wave);
    let start = m0_address(wave, inst);
    // SAFETY: lowering checked the row.
    ones(wave.exec, |lane| unsafe {
        *wave.rows.byte_add(inst.dst as usize).add(lane) = read(lds, start.wrapping_add(4 * lane as u32), false) as u32;
    });
}

unsafe fn store_addtid<const L: usize>(wave: &mut Wave, inst: &Inst) {
    let lds = Lds::of(wave);
    let start = m0_address(wave, inst);
    // SAFETY: lowering checked the row.
    ones(wave.exec, |lane| unsafe {
        let value = *wave.rows.byte_add(inst.src[1].value() as usize).add(lane);
        write(lds, start.wrapping_add(4 * lane as u32), false, value as u64);
    });
}

/// `ds_append` and `ds_consume`: a counter moves by the number of active lanes, which all get the value before.
unsafe fn count<const L: usize, const UP: bool>(wave: &mut Wave, inst: &Inst) {
    let lds = Lds::of(wave);
    let address = m0_address(wave, inst);
    let lanes = wave.exec.count_ones();
    // SAFETY: lowering checked the row.
    unsafe {
        let old = read(lds, address, false) as u32;
        let new = if UP { old.wrapping_add(lanes) } else { old.wrapping_sub(lanes) };
        if lanes != 0 {
            write(lds, address, false, new as u64);
        }
        ones(wave.exec, |lane| *wave.rows.byte_add(inst.dst as usize).add(lane) = old);
    }
}

/// Copies a row, for handlers that read other lanes' values while they write.
///
/// # Safety
/// The row must have been lowered for this wave.
pub unsafe fn copy_row<const L: usize>(wave: &Wave, offset: u32) -> Row {
    let mut row = Row([0; 64]);
    // SAFETY: lowering checked the row.
    unsafe { std::ptr::copy_nonoverlapping(wave.rows.byte_add(offset as usize), row.0.as_mut_ptr(), L) };
    row
}

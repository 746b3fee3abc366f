//! GLOBAL and FLAT.

use super::super::super::wave::scalar;
use super::super::element::Kind;
use super::*;
use crate::isa::Special;

const BASE: u64 = 0x7000_0000_0000;
const TARGETS: [Target; 3] = [Target::Gfx90a, Target::Gfx1100, Target::Gfx1201];

/// Mnemonic before and from GFX11, and what a lane at an address loads over `old`.
type LoadRule = (&'static str, &'static str, u32, fn(u64, u32) -> Vec<u32>);

const LOADS: [LoadRule; 14] = [
    ("ubyte", "u8", 1, |va, _| vec![pattern(va) as u32]),
    ("sbyte", "i8", 1, |va, _| vec![pattern(va) as i8 as u32]),
    ("ushort", "u16", 2, |va, _| vec![pattern16(va) as u32]),
    ("sshort", "i16", 2, |va, _| vec![pattern16(va) as i16 as u32]),
    ("ubyte_d16", "d16_u8", 1, |va, old| vec![old & 0xffff_0000 | pattern(va) as u32]),
    ("ubyte_d16_hi", "d16_hi_u8", 1, |va, old| vec![old & 0xffff | (pattern(va) as u32) << 16]),
    ("sbyte_d16", "d16_i8", 1, |va, old| vec![old & 0xffff_0000 | pattern(va) as i8 as u16 as u32]),
    ("sbyte_d16_hi", "d16_hi_i8", 1, |va, old| vec![old & 0xffff | (pattern(va) as i8 as u16 as u32) << 16]),
    ("short_d16", "d16_b16", 2, |va, old| vec![old & 0xffff_0000 | pattern16(va) as u32]),
    ("short_d16_hi", "d16_hi_b16", 2, |va, old| vec![old & 0xffff | (pattern16(va) as u32) << 16]),
    ("dword", "b32", 4, |va, _| vec![pattern32(va)]),
    ("dwordx2", "b64", 8, |va, _| vec![pattern32(va), pattern32(va + 4)]),
    ("dwordx3", "b96", 12, |va, _| vec![pattern32(va), pattern32(va + 4), pattern32(va + 8)]),
    ("dwordx4", "b128", 16, |va, _| (0..4).map(|index| pattern32(va + 4 * index)).collect()),
];

fn leak(text: String) -> &'static str {
    text.leak()
}

/// A name and each lane's address.
type AddressRule = (&'static str, Box<dyn Fn(u64) -> u64>);

/// Addresses by lane: side by side, the same, side by side backwards, scattered, unaligned, across pages.
fn layouts(bytes: u32) -> Vec<AddressRule> {
    let step = bytes as u64;
    vec![
        ("side by side", Box::new(move |lane| BASE + 256 + step * lane)),
        ("side by side, unaligned", Box::new(move |lane| BASE + 257 + step * lane)),
        ("side by side across a page", Box::new(move |lane| BASE + PAGE - 20 * step + step * lane)),
        ("side by side across spans", Box::new(move |lane| BASE + 2 * PAGE - 9 * step - 1 + step * lane)),
        ("the same", Box::new(|_| BASE + 64)),
        ("the same, unaligned", Box::new(|_| BASE + 67)),
        ("backwards", Box::new(move |lane| BASE + 2048 - step * lane)),
        ("scattered", Box::new(|lane| BASE + (lane * 2654435761 % 10000))),
        ("two addresses", Box::new(|lane| BASE + 100 + lane % 2 * 8)),
    ]
}

/// Four pages in two mappings.
fn map_both(rig: &Rig) {
    rig.map(BASE, 2, true);
    rig.map(BASE + 2 * PAGE, 2, true);
}

#[test]
fn every_load_at_every_layout_and_mask() {
    for mut rig in Rig::all(&TARGETS) {
        map_both(&rig);
        let old_names = rig.target == Target::Gfx90a;
        for (before, after, bytes, expected) in LOADS {
            let name = leak(format!("global_load_{}", if old_names { before } else { after }));
            let flat = leak(format!("flat_load_{}", if old_names { before } else { after }));
            let dwords = bytes.div_ceil(4);
            for (label, address) in layouts(bytes) {
                for mask in masks(rig.lanes()) {
                    for (format, name) in [(Format::Global, name), (Format::Flat, flat)] {
                        rig.wave.set_exec(mask);
                        rig.row64(2, |lane| address(lane).wrapping_sub(16));
                        for row in 0..dwords {
                            rig.row(8 + row, |lane| 0xdead_0000 + lane + row);
                        }
                        let load = inst(format, name, v(8, dwords as u8), [v(2, 2), Operand::None, Operand::Off]);
                        rig.ok(&with(load, |mods| mods.offset = 16));
                        for lane in 0..rig.lanes() {
                            for row in 0..dwords {
                                let old = 0xdead_0000 + lane + row;
                                let value = expected(address(lane as u64), old)[row as usize];
                                let value = if mask >> lane & 1 != 0 { value } else { old };
                                let got = rig.v(8 + row, lane);
                                assert_eq!(got, value, "{name} {label} mask {mask:#x} lane {lane} row {row}");
                            }
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn every_store_at_every_layout_and_mask() {
    let stores = [
        ("byte", "b8", 1, 0u32),
        ("short", "b16", 2, 0),
        ("byte_d16_hi", "d16_hi_b8", 1, 16),
        ("short_d16_hi", "d16_hi_b16", 2, 16),
        ("dword", "b32", 4, 0),
        ("dwordx2", "b64", 8, 0),
        ("dwordx3", "b96", 12, 0),
        ("dwordx4", "b128", 16, 0),
    ];
    for mut rig in Rig::all(&TARGETS) {
        map_both(&rig);
        let clean = [rig.bytes(BASE, 2 * PAGE as usize), rig.bytes(BASE + 2 * PAGE, 2 * PAGE as usize)].concat();
        for (before, after, bytes, shift) in stores {
            let name = if rig.target == Target::Gfx90a { before } else { after };
            let name = leak(format!("global_store_{name}"));
            let dwords = (bytes as u32).div_ceil(4);
            for (label, address) in layouts(bytes as u32) {
                for mask in masks(rig.lanes()) {
                    rig.wave.set_exec(mask);
                    rig.row64(2, &address);
                    let data =
                        |lane: u32, row: u32| 0x9e37_79b9u32.wrapping_mul(lane + 1) ^ row.wrapping_mul(0x0101_1013);
                    for row in 0..dwords {
                        rig.row(8 + row, |lane| data(lane, row));
                    }
                    let store = inst(Format::Global, name, Operand::None, [v(2, 2), v(8, dwords as u8), Operand::Off]);
                    rig.ok(&store);
                    let mut expected = clean.clone();
                    for lane in (0..rig.lanes()).filter(|lane| mask >> lane & 1 != 0) {
                        let at = (address(lane as u64) - BASE) as usize;
                        for index in 0..bytes {
                            let word = data(lane, index as u32 / 4) >> shift;
                            expected[at + index] = (word >> (index % 4 * 8)) as u8;
                        }
                    }
                    for (page, expected) in expected.chunks(PAGE as usize).enumerate() {
                        let got = rig.bytes(BASE + page as u64 * PAGE, PAGE as usize);
                        assert!(got == expected, "{name} {label} mask {mask:#x} page {page}");
                    }
                    for (page, clean) in clean.chunks(PAGE as usize).enumerate() {
                        rig.set_bytes(BASE + page as u64 * PAGE, clean);
                    }
                }
            }
        }
    }
}

#[test]
fn scalar_base_plus_unsigned_offset_plus_signed_immediate() {
    for mut rig in Rig::all(&TARGETS) {
        // An offset of 2^31 and more is not negative.
        let high = BASE + 0xf000_0000;
        rig.map(high, 1, true);
        rig.s64(4, BASE - 0x1000);
        rig.row(2, |lane| 0xf000_1000 + 4 * lane + 8);
        let name = if rig.target == Target::Gfx90a { "global_load_dword" } else { "global_load_b32" };
        let load = inst(Format::Global, name, v(8, 1), [v(2, 1), Operand::None, s(4, 2)]);
        rig.ok(&with(load, |mods| mods.offset = -8));
        for lane in 0..rig.lanes() {
            assert_eq!(rig.v(8, lane), pattern32(high + 4 * lane as u64));
        }
        // Offsets that wrap over 2^32 between lanes do not carry into the base.
        rig.map(BASE, 1, true);
        rig.s64(4, BASE);
        rig.row(2, |lane| (4 * lane).wrapping_sub(16));
        let load = inst(Format::Global, name, v(8, 1), [v(2, 1), Operand::None, s(4, 2)]);
        rig.wave.set_exec(u64::MAX << 4);
        rig.ok(&load);
        assert_eq!(rig.v(8, 4), pattern32(BASE));
        rig.wave.set_exec(u64::MAX);
        let fault = rig.fault(&load);
        assert_eq!(kind(&fault), (FaultKind::NotPresent, BASE + 0xffff_fff0, Some(Access::Read), 0xf));
        // Nor where both sides of the wrap are mapped.
        rig.map(BASE + 0xffff_f000, 2, true);
        rig.ok(&load);
        for lane in 0..rig.lanes() {
            let offset = (4 * lane).wrapping_sub(16);
            assert_eq!(rig.v(8, lane), pattern32(BASE + offset as u64));
        }
    }
}

#[test]
fn stores_with_a_scalar_base() {
    for mut rig in Rig::all(&TARGETS) {
        rig.map(BASE, 1, true);
        rig.s64(6, BASE + 8);
        rig.row(2, |lane| 4 * lane);
        rig.row(3, |lane| 100 + lane);
        let name = if rig.target == Target::Gfx90a { "global_store_dword" } else { "global_store_b32" };
        rig.ok(&inst(Format::Global, name, Operand::None, [v(2, 1), v(3, 1), s(6, 2)]));
        for lane in 0..rig.lanes() {
            assert_eq!(rig.peek(BASE + 8 + 4 * lane as u64), 100 + lane);
        }
        let vcc = Operand::Special { reg: Special::VccLo, dwords: 2 };
        rig.s64(106, BASE);
        rig.row(2, |_| 0);
        rig.ok(&inst(Format::Global, name, Operand::None, [v(2, 1), v(3, 1), vcc]));
        assert_eq!(rig.peek(BASE), 100 + rig.lanes() - 1, "the highest lane wins");
    }
}

#[test]
fn the_destination_may_be_the_address() {
    for mut rig in Rig::all(&TARGETS) {
        rig.map(BASE, 1, true);
        for address in [|lane: u64| BASE + 8 * lane, |_| BASE + 40, |lane| BASE + 8 * (lane ^ 5)] {
            rig.row64(2, address);
            let name = if rig.target == Target::Gfx90a { "global_load_dwordx2" } else { "global_load_b64" };
            rig.ok(&inst(Format::Global, name, v(2, 2), [v(2, 2), Operand::None, Operand::Off]));
            for lane in 0..rig.lanes() {
                let va = address(lane as u64);
                assert_eq!((rig.v(2, lane), rig.v(3, lane)), (pattern32(va), pattern32(va + 4)));
            }
        }
    }
}

#[test]
fn a_fault_tells_lanes_and_changes_nothing() {
    for mut rig in Rig::all(&TARGETS) {
        rig.map(BASE, 1, true);
        rig.map(BASE + 2 * PAGE, 1, false);
        let old = rig.target == Target::Gfx90a;
        let load = inst(
            Format::Global,
            if old { "global_load_dword" } else { "global_load_b32" },
            v(8, 1),
            [v(2, 2), Operand::None, Operand::Off],
        );
        let store = inst(
            Format::Global,
            if old { "global_store_dword" } else { "global_store_b32" },
            Operand::None,
            [v(2, 2), v(8, 1), Operand::Off],
        );
        rig.row(8, |lane| lane);

        // Side by side: lanes 10 and up leave the mapping.
        rig.row64(2, |lane| BASE + PAGE - 40 + 4 * lane);
        let beyond = if rig.lanes() == 64 { u64::MAX << 10 } else { 0xffff_fc00 };
        let fault = rig.fault(&load);
        assert_eq!(kind(&fault), (FaultKind::NotPresent, BASE + PAGE, Some(Access::Read), beyond));
        assert!(fault.detail.contains("0x0 bytes past the end of 0x700000000000..0x700000001000"), "{}", fault.detail);
        assert_eq!(kind(&rig.fault(&store)), (FaultKind::NotPresent, BASE + PAGE, Some(Access::Write), beyond));
        for lane in 0..rig.lanes() {
            assert_eq!(rig.v(8, lane), lane);
        }
        assert_eq!(rig.peek(BASE + PAGE - 4), pattern32(BASE + PAGE - 4), "no lane may store");

        // An element that begins inside: the address is that of the first byte outside.
        rig.row64(2, |lane| BASE + PAGE - 2 + 8 * PAGE * (lane % 2));
        rig.wave.set_exec(1);
        assert_eq!(kind(&rig.fault(&load)), (FaultKind::NotPresent, BASE + PAGE, Some(Access::Read), 1));

        // Inactive lanes may point anywhere.
        rig.row64(2, |lane| if lane == 3 { BASE } else { 0x1234 * lane });
        rig.wave.set_exec(8);
        rig.ok(&load);
        assert_eq!(rig.v(8, 3), pattern32(BASE));
        rig.wave.set_exec(0);
        rig.ok(&load);
        rig.ok(&store);

        // Read-only pages can be loaded from, not stored to.
        rig.wave.set_exec(u64::MAX);
        rig.row64(2, |lane| BASE + 2 * PAGE + 4 * lane);
        rig.ok(&load);
        let full = rig.wave.full_mask();
        let fault = rig.fault(&store);
        assert_eq!(kind(&fault), (FaultKind::ReadOnly, BASE + 2 * PAGE, Some(Access::Write), full));
        // One lane of many.
        rig.row64(2, |lane| if lane == 5 { BASE + 2 * PAGE + 12 } else { BASE + 4 * lane });
        let fault = rig.fault(&store);
        assert_eq!(kind(&fault), (FaultKind::ReadOnly, BASE + 2 * PAGE + 12, Some(Access::Write), 1 << 5));
    }
}

#[test]
fn a_mapping_that_goes_away_is_not_used_any_more() {
    let mut rig = Rig::new(Target::Gfx1100, 32);
    rig.map(BASE, 1, true);
    rig.row64(2, |lane| BASE + 4 * lane);
    let load = inst(Format::Global, "global_load_b32", v(8, 1), [v(2, 2), Operand::None, Operand::Off]);
    rig.ok(&load);
    assert!(rig.space.unmap(BASE).is_some());
    assert_eq!(rig.fault(&load).kind, FaultKind::NotPresent);
    rig.map(BASE, 1, false);
    rig.ok(&load);
}

#[test]
fn more_mappings_in_one_instruction_than_the_cache_holds() {
    let mut rig = Rig::new(Target::Gfx90a, 64);
    for page in 0..64 {
        rig.map(BASE + 2 * page * PAGE, 1, true);
    }
    rig.row64(2, |lane| BASE + 2 * lane * PAGE + 4 * lane);
    rig.ok(&inst(Format::Global, "global_load_dword", v(8, 1), [v(2, 2), Operand::None, Operand::Off]));
    for lane in 0..64 {
        assert_eq!(rig.v(8, lane), pattern32(BASE + 2 * lane as u64 * PAGE + 4 * lane as u64));
    }
}

#[test]
fn addresses_do_not_wrap_around_the_top() {
    let mut rig = Rig::new(Target::Gfx1100, 32);
    rig.map(0, 1, true);
    rig.row64(2, |_| u64::MAX - 1);
    let load = inst(Format::Global, "global_load_b32", v(8, 1), [v(2, 2), Operand::None, Operand::Off]);
    assert_eq!(rig.fault(&load).kind, FaultKind::NotPresent);
}

#[test]
fn flat_addresses_reach_lds_scratch_and_memory_in_one_instruction() {
    for mut rig in Rig::all(&[Target::Gfx90a, Target::Gfx1030, Target::Gfx1100]) {
        rig.map(BASE, 1, true);
        rig.scratch(0x10_0000, 64);
        for register in [102, super::super::super::wave::scalar::FLAT_SCRATCH] {
            rig.s64(register, 0x10_0000);
        }
        let shared = (SHARED as u64) << 32;
        let private = (PRIVATE as u64) << 32;
        for offset in (0..1024).step_by(4) {
            rig.set_lds(offset, 0x1d50_0000 + offset);
        }
        let address = move |lane: u64| match lane % 3 {
            0 => BASE + 4 * lane,
            1 => shared + 4 * lane,
            _ => private + 4 * (lane % 16),
        };
        rig.row64(2, address);
        let old = rig.target != Target::Gfx1100;
        let (load, store) =
            if old { ("flat_load_dword", "flat_store_dword") } else { ("flat_load_b32", "flat_store_b32") };
        rig.ok(&inst(Format::Flat, load, v(8, 1), [v(2, 2), Operand::None, Operand::Off]));
        let lanes = rig.lanes() as u64;
        let swizzled = |lane: u64| 0x10_0000 + lane % 16 * 4 * lanes + 4 * lane;
        for lane in 0..lanes {
            let expected = match lane % 3 {
                0 => pattern32(BASE + 4 * lane),
                1 => 0x1d50_0000 + 4 * lane as u32,
                _ => pattern32(swizzled(lane)),
            };
            assert_eq!(rig.v(8, lane as u32), expected, "lane {lane}");
        }
        rig.row(8, |lane| 7000 + lane);
        rig.ok(&inst(Format::Flat, store, Operand::None, [v(2, 2), v(8, 1), Operand::Off]));
        for lane in 0..lanes {
            let got = match lane % 3 {
                0 => rig.peek(BASE + 4 * lane),
                1 => rig.lds(4 * lane as u32),
                _ => rig.peek(swizzled(lane)),
            };
            assert_eq!(got, 7000 + lane as u32);
        }

        // A fault in one aperture leaves the others untouched.
        rig.row64(2, move |lane| if lane == 2 { private + 64 } else { address(lane) });
        rig.row(8, |_| 1);
        let fault = rig.fault(&inst(Format::Flat, store, Operand::None, [v(2, 2), v(8, 1), Operand::Off]));
        assert_eq!(kind(&fault), (FaultKind::Aperture, private + 64, Some(Access::Write), 4));
        assert!(fault.detail.contains("outside the 64 bytes of scratch a lane has"), "{}", fault.detail);
        assert_eq!(rig.peek(BASE), 7000);
        assert_eq!(rig.lds(4), 7001);
    }
}

#[test]
fn private_addresses_alone() {
    for mut rig in Rig::all(&[Target::Gfx90a, Target::Gfx1030, Target::Gfx1100, Target::Gfx1201]) {
        let lanes = rig.lanes();
        rig.scratch(0x10_0000, 64);
        for register in [102, super::super::super::wave::scalar::FLAT_SCRATCH] {
            rig.s64(register, 0x10_0000);
        }
        let old = rig.target.family() < crate::isa::Family::Gfx11;
        let load = if old { "flat_load_dwordx2" } else { "flat_load_b64" };
        let store = if old { "flat_store_dwordx2" } else { "flat_store_b64" };
        let byte = if old { "flat_load_ubyte" } else { "flat_load_u8" };
        let load = inst(Format::Flat, load, v(8, 2), [v(2, 2), Operand::None, Operand::Off]);
        let store = inst(Format::Flat, store, Operand::None, [v(2, 2), v(4, 2), Operand::Off]);
        let byte = inst(Format::Flat, byte, v(8, 1), [v(2, 2), Operand::None, Operand::Off]);
        let at = |offset: u64, lane: u32| 0x10_0000 + offset / 4 * 4 * lanes as u64 + 4 * lane as u64 + offset % 4;
        // One offset, offsets by lane, offsets that cross a dword.
        for offset in [|_: u64| 24, |lane: u64| lane * 12 % 56, |lane| lane % 50 + 1] {
            rig.row64(2, move |lane| (PRIVATE as u64) << 32 | offset(lane));
            rig.row64(4, |lane| 0x0807_0605_0403_0201u64.wrapping_mul(lane + 1));
            for mask in masks(lanes) {
                for word in 0..16 * lanes as u64 {
                    rig.poke(0x10_0000 + 4 * word, 0xeeee_eeee);
                }
                rig.wave.set_exec(mask);
                rig.row64(8, |_| 7);
                rig.ok(&store);
                rig.ok(&load);
                for lane in 0..lanes {
                    let active = mask >> lane & 1 != 0;
                    let expected = if active { 0x0807_0605_0403_0201u64.wrapping_mul(lane as u64 + 1) } else { 7 };
                    assert_eq!(rig.v(8, lane) as u64 | (rig.v(9, lane) as u64) << 32, expected);
                    for index in 0..8 {
                        let got = rig.bytes(at(offset(lane as u64) + index, lane), 1)[0];
                        assert_eq!(got, if active { (expected >> (8 * index)) as u8 } else { 0xee });
                    }
                }
                rig.ok(&byte);
                let first = mask.trailing_zeros();
                assert_eq!(rig.v(8, first), rig.bytes(at(offset(first as u64), first), 1)[0] as u32);
            }
        }
    }
}

#[test]
fn scattered_lanes_end_where_the_mapping_ends() {
    for mut rig in Rig::all(&TARGETS) {
        rig.map(BASE, 1, true);
        let load = if rig.target == Target::Gfx90a { "global_load_dwordx2" } else { "global_load_b64" };
        let load = inst(Format::Global, load, v(8, 2), [v(2, 2), Operand::None, Operand::Off]);
        for beyond in 0..2 {
            rig.row64(2, |lane| match lane {
                1 => BASE,
                6 => BASE + PAGE - 8 + beyond,
                _ => BASE + lane * 24 % 2048,
            });
            if beyond == 0 {
                rig.ok(&load);
                assert_eq!((rig.v(8, 6), rig.v(9, 6)), (pattern32(BASE + PAGE - 8), pattern32(BASE + PAGE - 4)));
            } else {
                let fault = rig.fault(&load);
                assert_eq!(kind(&fault), (FaultKind::NotPresent, BASE + PAGE, Some(Access::Read), 1 << 6));
            }
        }
    }
}

#[test]
fn flat_lds_patterns_and_bounds() {
    for mut rig in Rig::all(&TARGETS) {
        let shared = (SHARED as u64) << 32;
        let old = rig.target == Target::Gfx90a;
        let (load, store) =
            if old { ("flat_load_dword", "flat_store_dword") } else { ("flat_load_b32", "flat_store_b32") };
        let load = inst(Format::Flat, load, v(8, 1), [v(2, 2), Operand::None, Operand::Off]);
        let store = inst(Format::Flat, store, Operand::None, [v(2, 2), v(4, 1), Operand::Off]);
        for address in [|lane: u64| 4 * lane + 16, |_| 60, |lane| 1020 + 4 * (lane % 2)] {
            for offset in (0..1024).step_by(4) {
                rig.set_lds(offset, 0);
            }
            rig.row64(2, move |lane| shared + address(lane));
            rig.row(4, |lane| lane + 1);
            rig.row(8, |_| u32::MAX);
            rig.ok(&store);
            rig.ok(&load);
            for lane in 0..rig.lanes() {
                let at = address(lane as u64) as u32;
                let expected = if at + 4 <= 1024 { rig.lds(at) } else { 0 };
                assert_eq!(rig.v(8, lane), expected);
                assert!(at >= 1024 || expected != 0);
            }
        }
    }
}

#[test]
fn null_is_no_address() {
    let mut rig = Rig::new(Target::Gfx1100, 32);
    rig.row64(2, |_| 0);
    let fault = rig.fault(&inst(Format::Flat, "flat_load_b32", v(8, 1), [v(2, 2), Operand::None, Operand::Off]));
    assert_eq!(kind(&fault), (FaultKind::NotPresent, 0, Some(Access::Read), 0xffff_ffff));
    assert_eq!(fault.detail, "a null pointer, or one with a small offset");
}

#[test]
fn loads_to_lds_place_lanes_side_by_side() {
    let mut rig = Rig::new(Target::Gfx942, 64);
    rig.map(BASE, 1, true);
    rig.wave.scalar[124] = 0x40;
    rig.row64(2, |lane| BASE + 12 * lane);
    rig.wave.set_exec(0xff0f);
    let load = |name| {
        let load = inst(Format::Global, name, Operand::None, [v(2, 2), Operand::None, Operand::Off]);
        with(load, |mods| mods.offset = 8)
    };
    rig.ok(&load("global_load_lds_dword"));
    for lane in 0..16u32 {
        let expected = if 0xff0f >> lane & 1 != 0 { pattern32(BASE + 8 + 12 * lane as u64) } else { 0 };
        assert_eq!(rig.lds(0x48 + 4 * lane), expected);
    }
    rig.ok(&load("global_load_lds_sbyte"));
    assert_eq!(rig.lds(0x48 + 12), pattern(BASE + 8 + 36) as i8 as u32);
    // Out of range of LDS nothing is written.
    rig.wave.scalar[124] = 1020;
    rig.ok(&load("global_load_lds_dword"));
    assert_eq!(rig.lds(1020), 0);
}

#[test]
fn add_thread_id_forms() {
    for lanes in [32, 64] {
        let mut rig = Rig::new(Target::Gfx1030, lanes);
        rig.map(BASE, 1, true);
        rig.s64(4, BASE);
        let load = inst(Format::Global, "global_load_dword_addtid", v(8, 1), [Operand::Off, Operand::None, s(4, 2)]);
        rig.ok(&with(load, |mods| mods.offset = 4));
        for lane in 0..lanes {
            assert_eq!(rig.v(8, lane), pattern32(BASE + 4 + 4 * lane as u64));
        }
        // Without a base the offset alone counts, which reaches nothing here.
        let bare =
            inst(Format::Global, "global_load_dword_addtid", v(8, 1), [Operand::Off, Operand::None, Operand::Off]);
        assert_eq!(rig.fault(&with(bare, |mods| mods.offset = 8)).va, Some(8));
        rig.row(8, |lane| lane);
        let store = inst(Format::Global, "global_store_dword_addtid", Operand::None, [Operand::Off, v(8, 1), s(4, 2)]);
        rig.ok(&store);
        assert_eq!((rig.peek(BASE), rig.peek(BASE + 4 * 31)), (0, 31));
    }
}

#[test]
fn spellings_lead_to_one_operation() {
    use super::super::names::{Vmem, vmem};
    assert_eq!(vmem("load_dwordx3"), Some(Vmem::Load(Kind::B96)));
    assert_eq!(vmem("load_b96"), Some(Vmem::Load(Kind::B96)));
    let d16 = Some(Vmem::LoadFormat { count: 2, d16: true, high: false });
    assert_eq!(vmem("load_format_d16_xy"), d16);
    assert_eq!(vmem("load_d16_format_xy"), d16);
    let high = Some(Vmem::StoreFormat { count: 1, d16: true, high: true });
    assert_eq!(vmem("store_format_d16_hi_x"), high);
    assert_eq!(vmem("store_d16_hi_format_x"), high);
    assert_eq!(vmem("load_format_xyzw"), Some(Vmem::LoadFormat { count: 4, d16: false, high: false }));
    assert_eq!(vmem("load_format_zw"), None);
    assert_eq!(vmem("frobnicate"), None);
}

#[test]
fn what_is_not_known_is_refused() {
    let mut rig = Rig::new(Target::Gfx1201, 32);
    let load = inst(Format::Global, "global_load_tr_b128_w32", v(8, 4), [v(2, 2), Operand::None, Operand::Off]);
    assert!(matches!(rig.lower(&load), Err(Unsupported::Refused(_))));
    let load = inst(Format::Global, "global_load_b32", v(40, 1), [v(2, 2), Operand::None, Operand::Off]);
    assert!(matches!(rig.lower(&load), Err(Unsupported::Register { register: 40, .. })));
}

#[test]
fn blocks_move_the_registers_that_m0_names() {
    for lanes in [32, 64] {
        let mut rig = Rig::new(Target::Gfx1201, lanes);
        rig.map(BASE, 8, true);
        rig.s64(4, BASE);
        let exec = 0x8000_0005;
        rig.wave.set_exec(exec);
        // The registers with the address are among those loaded.
        let at = |lane: u64| 8 + 132 * lane;
        rig.row64(10, |lane| BASE + at(lane));
        for row in [8, 9, 12, 13] {
            rig.row(row, |_| 0xbad);
        }
        rig.wave.scalar[scalar::M0 as usize] = 0b10_1101;
        let load = inst(Format::Global, "global_load_block", v(8, 32), [v(10, 2), Operand::None, Operand::Off]);
        rig.ok(&with(load, |mods| mods.offset = 4));
        for lane in 0..lanes {
            let active = exec >> lane & 1 != 0;
            let va = BASE + at(lane as u64) + 4;
            let row = |index: u64, old: u32| if active { pattern32(va + 4 * index) } else { old };
            let address = BASE + at(lane as u64);
            let wanted =
                [row(0, 0xbad), 0xbad, row(2, address as u32), row(3, (address >> 32) as u32), 0xbad, row(5, 0xbad)];
            let got: Vec<u32> = (8..14).map(|register| rig.v(register, lane)).collect();
            assert_eq!(got, wanted, "lane {lane}");
        }
        // A store skips the dwords of registers that are off.
        rig.row64(10, at);
        rig.row(12, |lane| 0x1000 + lane);
        rig.row(14, |lane| 0x2000 + lane);
        rig.wave.scalar[scalar::M0 as usize] = 0b101;
        rig.ok(&inst(Format::Global, "global_store_block", Operand::None, [v(10, 1), v(12, 32), s(4, 2)]));
        let va = BASE + at(2);
        assert_eq!([0, 4, 8].map(|byte| rig.peek(va + byte)), [0x1002, pattern32(va + 4), 0x2002]);
        assert_eq!(rig.peek(BASE + at(1)), pattern32(BASE + at(1)), "lane 1 is off");
        // A register that the wave does not have.
        rig.wave.scalar[scalar::M0 as usize] = 1 << 20;
        rig.run(&inst(Format::Global, "global_store_block", Operand::None, [v(10, 1), v(12, 32), s(4, 2)]));
        assert_eq!(rig.wave.fault.take().unwrap().kind, FaultKind::IllegalInstruction);
    }
}

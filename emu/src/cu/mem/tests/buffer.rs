//! MUBUF and MTBUF.

use super::*;
use crate::isa::{Family, Special};

const BASE: u64 = 0x7100_0000_0000;
const TARGETS: [Target; 4] = [Target::Gfx90a, Target::Gfx1030, Target::Gfx1100, Target::Gfx1201];

/// Fields of a resource, placed by each family's layout.
#[derive(Clone, Copy)]
struct V {
    base: u64,
    stride: u32,
    records: u32,
    swizzle: bool,
    add_tid: bool,
    /// 0 to 3: 8, 16, 32, 64.
    index_stride: u32,
    /// GFX10 on: 0 index and offset, 1 index, 2 only when empty, 3 raw.
    oob: u32,
    format: u32,
}

const RAW: V =
    V { base: BASE, stride: 0, records: 4096, swizzle: false, add_tid: false, index_stride: 0, oob: 3, format: 0 };

fn set(rig: &mut Rig, at: usize, v: V) {
    let family = rig.target.family();
    let swizzle = match (v.swizzle, family) {
        (false, _) => 0,
        (true, Family::Gfx9 | Family::Gfx10) => 1 << 31,
        (true, _) => 1 << 30,
    };
    let format = match family {
        Family::Gfx9 => (v.format & 15) << 15 | (v.format >> 4) << 12,
        _ => v.format << 12,
    };
    let oob = if family == Family::Gfx9 { 0 } else { v.oob << 28 };
    rig.wave.scalar[at] = v.base as u32;
    rig.wave.scalar[at + 1] = (v.base >> 32) as u32 | v.stride << 16 | swizzle;
    rig.wave.scalar[at + 2] = v.records;
    rig.wave.scalar[at + 3] = 0xfac | format | v.index_stride << 21 | (v.add_tid as u32) << 23 | oob;
}

fn name(rig: &Rig, before: &'static str, after: &'static str) -> &'static str {
    if rig.target.family() < Family::Gfx11 { before } else { after }
}

fn dword(rig: &Rig) -> &'static str {
    name(rig, "buffer_load_dword", "buffer_load_b32")
}

fn load(name: &'static str, words: u8, vaddr: Operand, soffset: Operand) -> Decoded {
    inst(Format::Mubuf, name, v(8, words), [vaddr, Operand::None, s(4, 4), soffset])
}

#[test]
fn offsets_from_vgpr_scalar_and_instruction_add_up() {
    for mut rig in Rig::all(&TARGETS) {
        rig.map(BASE, 1, true);
        set(&mut rig, 4, RAW);
        rig.wave.scalar[20] = 32;
        rig.row(2, |lane| 8 * lane);
        let name = dword(&rig);
        for (soffset, add) in
            [(s(20, 1), 32), (Operand::Int(64), 64), (Operand::Special { reg: Special::Null, dwords: 1 }, 0)]
        {
            let decoded = with(load(name, 1, v(2, 1), soffset), |mods| (mods.offen, mods.offset) = (true, 12));
            rig.ok(&decoded);
            for lane in 0..rig.lanes() {
                assert_eq!(rig.v(8, lane), pattern32(BASE + 8 * lane as u64 + 12 + add));
            }
        }
        // Without an offset: one address. Side by side: a copy.
        rig.ok(&with(load(name, 1, Operand::Off, Operand::Int(0)), |mods| mods.offset = 40));
        assert_eq!(rig.v(8, 3), pattern32(BASE + 40));
        rig.row(2, |lane| 4 * lane);
        for mask in masks(rig.lanes()) {
            rig.wave.set_exec(mask);
            rig.row(8, |_| 1);
            rig.ok(&with(load(name, 1, v(2, 1), Operand::Int(0)), |mods| mods.offen = true));
            for lane in 0..rig.lanes() {
                let expected = if mask >> lane & 1 != 0 { pattern32(BASE + 4 * lane as u64) } else { 1 };
                assert_eq!(rig.v(8, lane), expected);
            }
        }
    }
}

#[test]
fn raw_bounds_are_bytes_dword_by_dword() {
    for mut rig in Rig::all(&TARGETS) {
        rig.map(BASE, 1, true);
        set(&mut rig, 4, V { records: 100, ..RAW });
        let lanes = rig.lanes();
        rig.row(2, |lane| 4 * lane);
        // Lanes 25 on are outside.
        rig.ok(&with(load(dword(&rig), 1, v(2, 1), Operand::Int(0)), |mods| mods.offen = true));
        for lane in 0..lanes {
            assert_eq!(rig.v(8, lane), if lane < 25 { pattern32(BASE + 4 * lane as u64) } else { 0 });
        }
        // The scalar offset counts.
        rig.ok(&with(load(dword(&rig), 1, v(2, 1), Operand::Int(40)), |mods| mods.offen = true));
        for lane in 0..lanes {
            assert_eq!(rig.v(8, lane), if lane < 15 { pattern32(BASE + 40 + 4 * lane as u64) } else { 0 });
        }
        // Part of an element.
        let wide = name(&rig, "buffer_load_dwordx4", "buffer_load_b128");
        rig.ok(&with(load(wide, 4, Operand::Off, Operand::Int(0)), |mods| mods.offset = 92));
        let got: Vec<u32> = (8..12).map(|row| rig.v(row, 0)).collect();
        assert_eq!(got, [pattern32(BASE + 92), pattern32(BASE + 96), 0, 0]);
        // Stores outside vanish, also from a half of the wave; atomics outside do nothing and give 0.
        rig.row(8, |lane| 7000 + lane);
        let store = name(&rig, "buffer_store_dword", "buffer_store_b32");
        let store = inst(Format::Mubuf, store, Operand::None, [v(2, 1), v(8, 1), s(4, 4), Operand::Int(0)]);
        rig.ok(&with(store, |mods| mods.offen = true));
        assert_eq!((rig.peek(BASE + 96), rig.peek(BASE + 100)), (7024, pattern32(BASE + 100)));
        let add = name(&rig, "buffer_atomic_add", "buffer_atomic_add_u32");
        let add = inst(Format::Mubuf, add, v(8, 1), [v(2, 1), v(8, 1), s(4, 4), Operand::Int(0)]);
        rig.ok(&with(add, |mods| (mods.offen, mods.returns) = (true, true)));
        assert_eq!((rig.v(8, 24), rig.v(8, 25)), (7024, 0));
        assert_eq!((rig.peek(BASE + 96), rig.peek(BASE + 100)), (14048, pattern32(BASE + 100)));
        // Nothing is touched outside, mapped or not.
        set(&mut rig, 4, V { base: 0x1000, records: 0, ..RAW });
        rig.ok(&load(dword(&rig), 1, Operand::Off, Operand::Int(0)));
        assert_eq!(rig.v(8, 0), 0);
        // Inside the bounds but not mapped: a fault.
        set(&mut rig, 4, V { base: 0x1000, ..RAW });
        let mask = rig.wave.full_mask();
        let fault = rig.fault(&load(dword(&rig), 1, Operand::Off, Operand::Int(0)));
        assert_eq!(kind(&fault), (FaultKind::NotPresent, 0x1000, Some(Access::Read), mask));
    }
}

#[test]
fn structured_bounds_are_records() {
    for mut rig in Rig::all(&TARGETS) {
        rig.map(BASE, 1, true);
        for oob in [0, 1] {
            set(&mut rig, 4, V { stride: 12, records: 10, oob, ..RAW });
            rig.row(2, |lane| lane);
            rig.row(3, |_| 4);
            let both = with(load(dword(&rig), 1, v(2, 2), Operand::Int(0)), |mods| {
                (mods.idxen, mods.offen, mods.offset) = (true, true, 4);
            });
            rig.ok(&both);
            for lane in 0..rig.lanes() {
                let expected = if lane < 10 { pattern32(BASE + 12 * lane as u64 + 8) } else { 0 };
                assert_eq!(rig.v(8, lane), expected);
            }
            // An offset beyond the stride is out of range only where the resource says so (GFX10 on).
            let beyond = with(both, |mods| mods.offset = 8);
            rig.ok(&beyond);
            let checked = oob == 0 && rig.target.family() != Family::Gfx9;
            assert_eq!(rig.v(8, 1), if checked { 0 } else { pattern32(BASE + 24) });
        }
        if rig.target.family() != Family::Gfx9 {
            set(&mut rig, 4, V { records: 1, oob: 2, ..RAW });
            rig.ok(&with(load(dword(&rig), 1, Operand::Off, Operand::Int(0)), |mods| mods.offset = 64));
            assert_eq!(rig.v(8, 0), pattern32(BASE + 64));
        } else {
            // GFX9: without an index the records are bytes even with a stride.
            set(&mut rig, 4, V { stride: 12, records: 10, ..RAW });
            rig.ok(&with(load(dword(&rig), 1, Operand::Off, Operand::Int(0)), |mods| mods.offset = 8));
            assert_eq!(rig.v(8, 0), 0);
        }
    }
}

#[test]
fn swizzled_buffers() {
    for mut rig in Rig::all(&TARGETS) {
        rig.map(BASE, 2, true);
        set(&mut rig, 4, V { stride: 16, records: 256, swizzle: true, index_stride: 1, oob: 1, ..RAW });
        rig.row(2, |lane| lane);
        let decoded =
            with(load(name(&rig, "buffer_load_dwordx2", "buffer_load_b64"), 2, v(2, 1), Operand::Int(0)), |mods| {
                (mods.idxen, mods.offset) = (true, 4);
            });
        rig.ok(&decoded);
        for lane in 0..rig.lanes() as u64 {
            // Records in groups of 16: dword 0 of all, dword 1 of all, ...
            let at = |dword: u64| BASE + lane / 16 * 16 * 16 + dword * 4 * 16 + lane % 16 * 4;
            assert_eq!((rig.v(8, lane as u32), rig.v(9, lane as u32)), (pattern32(at(1)), pattern32(at(2))));
        }
    }
}

#[test]
fn the_thread_id_is_an_index() {
    let mut rig = Rig::new(Target::Gfx1100, 32);
    rig.map(BASE, 1, true);
    set(&mut rig, 4, V { stride: 8, add_tid: true, ..RAW });
    rig.ok(&with(load("buffer_load_b32", 1, Operand::Off, Operand::Int(0)), |mods| mods.offset = 4));
    for lane in 0..32 {
        assert_eq!(rig.v(8, lane), pattern32(BASE + 8 * lane as u64 + 4));
    }
}

/// The private segment buffer as ROCR writes it and the packet processor completes it.
#[test]
fn private_segment_buffer_has_the_layout_of_scratch() {
    for mut rig in Rig::all(&[Target::Gfx900, Target::Gfx90a, Target::Gfx1030]) {
        let lanes = rig.lanes();
        rig.map(BASE, 8, true);
        let wave_base = BASE + 0x100;
        rig.wave.scalar[4] = wave_base as u32;
        rig.wave.scalar[5] = (wave_base >> 32) as u32 | 0x8000_0000;
        rig.wave.scalar[6] = 0x7f00;
        rig.wave.scalar[7] = match rig.target.family() {
            Family::Gfx9 => 0x00ea_4fac,
            _ => 0x2181_4fac | if lanes == 64 { 3 } else { 2 } << 21,
        };
        // s32 is the stack pointer: unswizzled, so in units of all lanes.
        let frame = 16 * lanes;
        rig.wave.scalar[32] = frame;
        let at =
            |byte: u64, lane: u32| wave_base + frame as u64 + byte / 4 * 4 * lanes as u64 + 4 * lane as u64 + byte % 4;
        rig.row(8, |lane| 100 + lane);
        rig.row(9, |lane| 200 + lane);
        for mask in masks(lanes) {
            rig.wave.set_exec(mask);
            let store =
                inst(Format::Mubuf, "buffer_store_dwordx2", Operand::None, [Operand::Off, v(8, 2), s(4, 4), s(32, 1)]);
            rig.ok(&with(store, |mods| mods.offset = 8));
            rig.row(12, |_| 5);
            let load = inst(Format::Mubuf, "buffer_load_dword", v(12, 1), [v(2, 1), Operand::None, s(4, 4), s(32, 1)]);
            // A negative base and an offset: private memory is not checked for a negative part.
            rig.row(2, |_| -4i32 as u32);
            rig.ok(&with(load, |mods| (mods.offen, mods.offset) = (true, 16)));
            for lane in 0..lanes {
                if mask >> lane & 1 != 0 {
                    assert_eq!((rig.peek(at(8, lane)), rig.peek(at(12, lane))), (100 + lane, 200 + lane));
                    assert_eq!(rig.v(12, lane), 200 + lane);
                } else {
                    assert_eq!(rig.v(12, lane), 5);
                }
            }
        }
        rig.wave.set_exec(u64::MAX);
        // Bytes, and an offset that differs by lane.
        rig.row(2, |lane| lane % 9);
        let load = inst(Format::Mubuf, "buffer_load_ubyte", v(12, 1), [v(2, 1), Operand::None, s(4, 4), s(32, 1)]);
        rig.ok(&with(load, |mods| mods.offen = true));
        for lane in 0..lanes {
            assert_eq!(rig.v(12, lane), rig.bytes(at((lane % 9) as u64, lane), 1)[0] as u32);
        }
        let load =
            inst(Format::Mubuf, "buffer_load_ushort", v(12, 1), [Operand::Off, Operand::None, s(4, 4), s(32, 1)]);
        rig.ok(&with(load, |mods| mods.offset = 2));
        for lane in 0..lanes {
            assert_eq!(rig.v(12, lane), u16::from_le_bytes(rig.bytes(at(2, lane), 2).try_into().expect("two")) as u32);
        }
    }
}

#[test]
fn half_register_loads_keep_the_other_half() {
    for mut rig in Rig::all(&TARGETS) {
        rig.map(BASE, 1, true);
        set(&mut rig, 4, V { records: 8, ..RAW });
        rig.row(2, |lane| 2 * lane);
        let hi = name(&rig, "buffer_load_short_d16_hi", "buffer_load_d16_hi_b16");
        rig.row(8, |_| 0x1234_5678);
        rig.ok(&with(load(hi, 1, v(2, 1), Operand::Int(0)), |mods| mods.offen = true));
        assert_eq!(rig.v(8, 1), (pattern16(BASE + 2) as u32) << 16 | 0x5678);
        assert_eq!(rig.v(8, 4), 0x5678, "out of range");
        let same = with(load(hi, 1, Operand::Off, Operand::Int(0)), |mods| mods.offset = 4);
        rig.ok(&same);
        assert_eq!(rig.v(8, 9), (pattern16(BASE + 4) as u32) << 16 | 0x5678);
    }
}

#[test]
fn to_and_from_lds() {
    let mut rig = Rig::new(Target::Gfx90a, 64);
    rig.map(BASE, 1, true);
    set(&mut rig, 4, RAW);
    rig.wave.scalar[124] = 16;
    rig.row(2, |lane| 8 * lane);
    let decoded = with(load("buffer_load_dword", 1, v(2, 1), Operand::Int(0)), |mods| {
        (mods.offen, mods.lds, mods.offset) = (true, true, 4);
    });
    rig.ok(&decoded);
    for lane in 0..64 {
        assert_eq!(rig.lds(20 + 4 * lane), pattern32(BASE + 4 + 8 * lane as u64));
    }
    let mut rig = Rig::new(Target::Gfx900, 64);
    rig.map(BASE, 1, true);
    set(&mut rig, 4, RAW);
    for lane in 0..64 {
        rig.set_lds(4 * lane, 900 + lane);
    }
    rig.row(2, |lane| 4 * lane);
    let store = inst(
        Format::Mubuf,
        "buffer_store_lds_dword",
        Operand::None,
        [v(2, 1), Operand::None, s(4, 4), Operand::Int(0)],
    );
    rig.ok(&with(store, |mods| mods.offen = true));
    assert_eq!((rig.peek(BASE), rig.peek(BASE + 252)), (900, 963));
}

#[test]
fn formats_of_the_resource() {
    for mut rig in Rig::all(&TARGETS) {
        rig.map(BASE, 1, true);
        // 8_8_8_8 UNORM.
        let format = match rig.target.family() {
            Family::Gfx9 => 10,
            Family::Gfx10 => 56,
            _ => 42,
        };
        set(&mut rig, 4, V { stride: 4, records: 4, oob: 0, format, ..RAW });
        rig.poke(BASE, 0xff00_3380);
        rig.row(2, |lane| lane % 5);
        let decoded = load("buffer_load_format_xyzw", 4, v(2, 1), Operand::Int(0));
        rig.ok(&with(decoded, |mods| mods.idxen = true));
        let got: Vec<f32> = (8..12).map(|row| f32::from_bits(rig.v(row, 0))).collect();
        assert_eq!(got, [128.0 / 255.0, 0.2, 0.0, 1.0]);
        assert_eq!((rig.v(8, 4), rig.v(11, 4)), (0, 0), "out of range");
        let name16 = name(&rig, "buffer_load_format_d16_xyz", "buffer_load_d16_format_xyz");
        rig.row(9, |_| 0xabcd_0000);
        rig.ok(&with(load(name16, 2, v(2, 1), Operand::Int(0)), |mods| mods.idxen = true));
        assert_eq!((rig.v(8, 0), rig.v(9, 0)), (0x3266_3804, 0xabcd_0000));
        // Components swapped by the selections: z, y, x, 1.
        rig.wave.scalar[7] = rig.wave.scalar[7] & !0xfff | 1 << 9 | 4 << 6 | 5 << 3 | 6;
        rig.ok(&with(load("buffer_load_format_xyzw", 4, v(2, 1), Operand::Int(0)), |mods| mods.idxen = true));
        let got: Vec<f32> = (8..12).map(|row| f32::from_bits(rig.v(row, 0))).collect();
        assert_eq!(got, [0.0, 0.2, 128.0 / 255.0, 1.0]);
    }
}

#[test]
fn typed_buffers() {
    for mut rig in Rig::all(&TARGETS) {
        rig.map(BASE, 1, true);
        set(&mut rig, 4, RAW);
        // 16_16 FLOAT.
        let format = match rig.target.family() {
            Family::Gfx9 => 5 | 7 << 4,
            _ => 29,
        };
        rig.row(2, |lane| 4 * lane);
        rig.row(8, |lane| (lane as f32).to_bits());
        rig.row(9, |_| 0.5f32.to_bits());
        let sources = [v(2, 1), v(8, 2), s(4, 4), Operand::Int(0)];
        let store = inst(Format::Mtbuf, "tbuffer_store_format_xy", Operand::None, sources);
        rig.ok(&with(store, |mods| (mods.offen, mods.format) = (true, format)));
        assert_eq!(rig.peek(BASE + 4 * 3), 0x3800_4200);
        let load = inst(Format::Mtbuf, "tbuffer_load_format_xyzw", v(10, 4), sources);
        rig.ok(&with(load, |mods| (mods.offen, mods.format) = (true, format)));
        let got: Vec<f32> = (10..14).map(|row| f32::from_bits(rig.v(row, 7))).collect();
        assert_eq!(got, [7.0, 0.5, 0.0, 1.0]);
        // Halves: two a register, or the high one alone.
        rig.row(8, |_| 0x4200_3c00);
        let typed = name(&rig, "tbuffer_store_format_d16_xy", "tbuffer_store_d16_format_xy");
        let store = inst(Format::Mtbuf, typed, Operand::None, sources);
        rig.ok(&with(store, |mods| (mods.offen, mods.format) = (true, format)));
        assert_eq!(rig.peek(BASE + 4 * 5), 0x4200_3c00);
        let high = name(&rig, "buffer_store_format_d16_hi_x", "buffer_store_d16_hi_format_x");
        let data = match rig.target.family() {
            Family::Gfx9 => 2 | 7 << 4,
            _ => 13,
        };
        set(&mut rig, 4, V { format: data, ..RAW });
        let store = inst(Format::Mubuf, high, Operand::None, sources);
        rig.ok(&with(store, |mods| mods.offen = true));
        assert_eq!(rig.peek(BASE + 4 * 6), 0x4200_4200);
        set(&mut rig, 4, RAW);
        let bad = inst(Format::Mtbuf, "tbuffer_load_format_x", v(10, 1), sources);
        assert!(matches!(rig.lower(&with(bad, |mods| mods.format = 0)), Err(Unsupported::Operand(_))));
    }
}

#[test]
fn what_is_not_emulated_is_refused() {
    let mut rig = Rig::new(Target::Gfx1100, 32);
    let decoded = with(load("buffer_load_b32", 2, Operand::Off, Operand::Int(0)), |mods| mods.tfe = true);
    assert!(matches!(rig.lower(&decoded), Err(Unsupported::Operand(_))));
}

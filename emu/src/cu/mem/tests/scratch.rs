//! SCRATCH.

use super::super::super::wave::scalar;
use super::*;

const BASE: u64 = 0x40_0000;
const EACH: u64 = 256;

/// Where byte `at` of a lane's private segment lies.
fn swizzled(lanes: u32, at: u64, lane: u32) -> u64 {
    BASE + at / 4 * 4 * lanes as u64 + 4 * lane as u64 + at % 4
}

fn rigs() -> Vec<Rig> {
    let mut rigs = Rig::all(&[Target::Gfx90a, Target::Gfx942, Target::Gfx1030, Target::Gfx1100, Target::Gfx1201]);
    for rig in &mut rigs {
        rig.scratch(BASE, EACH);
        // Only these targets look at the register.
        let bogus = 0xdead_0000;
        rig.s64(102, if rig.target == Target::Gfx90a { BASE } else { bogus });
        rig.s64(scalar::FLAT_SCRATCH, if rig.target == Target::Gfx1030 { BASE } else { bogus });
    }
    rigs
}

fn name(rig: &Rig, before: &'static str, after: &'static str) -> &'static str {
    if rig.target.family() < crate::isa::Family::Gfx11 { before } else { after }
}

#[test]
fn dwords_of_lanes_alternate() {
    for mut rig in rigs() {
        let lanes = rig.lanes();
        let store = name(&rig, "scratch_store_dwordx3", "scratch_store_b96");
        let load = name(&rig, "scratch_load_dwordx3", "scratch_load_b96");
        for row in 0..3 {
            rig.row(4 + row, |lane| 1000 * row + lane);
        }
        rig.wave.scalar[9] = 16;
        // Offset from a scalar, a VGPR, both, neither.
        for (vaddr, saddr, imm, at) in [
            (Operand::Off, s(9, 1), 4, [20, 20]),
            (v(2, 1), Operand::Off, 8, [48, 48]),
            (v(2, 1), s(9, 1), -8, [48, 48]),
            (Operand::Off, Operand::Off, 64, [64, 64]),
            (v(3, 1), Operand::Off, 0, [0, 4]),
        ] {
            rig.row(2, |_| 40);
            rig.row(3, |lane| lane % 2 * 4);
            let instruction = inst(Format::Scratch, store, Operand::None, [vaddr, v(4, 3), saddr]);
            rig.ok(&with(instruction, |mods| mods.offset = imm));
            for lane in 0..lanes {
                for row in 0..3 {
                    let at = at[lane as usize % 2] + 4 * row as u64;
                    assert_eq!(rig.peek(swizzled(lanes, at, lane)), 1000 * row + lane, "{vaddr:?} {saddr:?}");
                }
            }
            let instruction = inst(Format::Scratch, load, v(12, 3), [vaddr, Operand::None, saddr]);
            for mask in masks(lanes) {
                rig.wave.set_exec(mask);
                for row in 0..3 {
                    rig.row(12 + row, |_| u32::MAX);
                }
                rig.ok(&with(instruction.clone(), |mods| mods.offset = imm));
                for (lane, row) in (0..lanes).flat_map(|lane| (0..3).map(move |row| (lane, row))) {
                    let expected = if mask >> lane & 1 != 0 { 1000 * row + lane } else { u32::MAX };
                    assert_eq!(rig.v(12 + row, lane), expected);
                }
            }
            rig.wave.set_exec(u64::MAX);
        }
    }
}

#[test]
fn bytes_and_unaligned_words() {
    for mut rig in rigs() {
        let lanes = rig.lanes();
        let byte = name(&rig, "scratch_load_ubyte", "scratch_load_u8");
        let half = name(&rig, "scratch_load_sshort", "scratch_load_i16");
        let dword = name(&rig, "scratch_load_dword", "scratch_load_b32");
        let store = name(&rig, "scratch_store_dword", "scratch_store_b32");
        let at = |imm: i32, name| {
            with(inst(Format::Scratch, name, v(8, 1), [Operand::Off, v(4, 1), Operand::Off]), |mods| mods.offset = imm)
        };
        let value = |at: u64, lane: u32, count: u64| {
            (0..count).map(|byte| (pattern(swizzled(lanes, at + byte, lane)) as u32) << (8 * byte)).sum::<u32>()
        };
        for offset in 0..5 {
            rig.ok(&at(offset, byte));
            for lane in 0..lanes {
                assert_eq!(rig.v(8, lane), value(offset as u64, lane, 1));
            }
            rig.ok(&at(offset, half));
            for lane in 0..lanes {
                assert_eq!(rig.v(8, lane), value(offset as u64, lane, 2) as i16 as u32);
            }
            rig.ok(&at(offset, dword));
            for lane in 0..lanes {
                assert_eq!(rig.v(8, lane), value(offset as u64, lane, 4));
            }
        }
        rig.row(4, |lane| 0x4433_2211 + lane);
        rig.ok(&at(6, store));
        for lane in 0..lanes {
            for byte in 0..4u64 {
                let got = rig.bytes(swizzled(lanes, 6 + byte, lane), 1)[0];
                assert_eq!(got, ((0x4433_2211 + lane) >> (8 * byte)) as u8);
            }
        }
    }
}

#[test]
fn the_lane_has_so_many_bytes() {
    for mut rig in rigs() {
        let load = name(&rig, "scratch_load_dword", "scratch_load_b32");
        let last = with(inst(Format::Scratch, load, v(8, 1), [Operand::Off, Operand::None, Operand::Off]), |mods| {
            mods.offset = EACH as i32 - 4;
        });
        rig.ok(&last);
        let full = rig.wave.full_mask();
        for offset in [EACH as i32, -4, i32::MAX & !3] {
            let beyond = with(last.clone(), |mods| mods.offset = offset);
            let fault = rig.fault(&beyond);
            let va = (PRIVATE as u64) << 32 | offset as u32 as u64;
            assert_eq!(kind(&fault), (FaultKind::Aperture, va, Some(Access::Read), full));
        }
        // Only the lanes that are outside.
        rig.row(2, |lane| if lane == 7 { EACH as u32 } else { 0 });
        rig.row(8, |_| 5);
        let indexed = inst(Format::Scratch, load, v(8, 1), [v(2, 1), Operand::None, Operand::Off]);
        assert_eq!(rig.fault(&indexed).lanes, Some(1 << 7));
        assert_eq!(rig.v(8, 0), 5);
        // No scratch at all.
        rig.wave.port.scratch_size = 0;
        let fault = rig.fault(&last);
        assert_eq!(fault.kind, FaultKind::Aperture);
        assert!(fault.detail.contains("the dispatch has no scratch"), "{}", fault.detail);
    }
}

#[test]
fn loads_to_lds() {
    let mut rig = Rig::new(Target::Gfx942, 64);
    rig.scratch(BASE, EACH);
    rig.wave.scalar[124] = 0;
    rig.ok(&with(
        inst(Format::Scratch, "scratch_load_lds_dword", Operand::None, [Operand::Off, Operand::None, Operand::Off]),
        |mods| mods.offset = 8,
    ));
    for lane in 0..64 {
        assert_eq!(rig.lds(8 + 4 * lane), pattern32(swizzled(64, 8, lane)));
    }
}

#[test]
fn blocks_lie_in_the_private_segment() {
    let mut rig = Rig::new(Target::Gfx1201, 32);
    rig.scratch(BASE, EACH);
    rig.row(2, |lane| 4 * lane);
    rig.row(8, |lane| 100 + lane);
    rig.row(10, |lane| 200 + lane);
    rig.wave.scalar[scalar::M0 as usize] = 0b101;
    let store = inst(Format::Scratch, "scratch_store_block", Operand::None, [v(2, 1), v(8, 32), Operand::Off]);
    rig.ok(&with(store, |mods| mods.offset = 16));
    for lane in 0..32 {
        let at = 16 + 4 * lane as u64;
        let word = |byte: u64| rig.peek(swizzled(32, at + byte, lane));
        assert_eq!([word(0), word(8)], [100 + lane, 200 + lane]);
        assert_eq!(word(4), pattern32(swizzled(32, at + 4, lane)));
    }
    let load = inst(Format::Scratch, "scratch_load_block", v(12, 32), [v(2, 1), Operand::None, Operand::Off]);
    rig.ok(&with(load, |mods| mods.offset = 16));
    assert_eq!((rig.v(12, 7), rig.v(14, 7)), (107, 207));
    // Beyond the lane's segment nothing is written.
    rig.row(2, |_| EACH as u32 - 24);
    rig.row(12, |_| 0xbad);
    let load = inst(Format::Scratch, "scratch_load_block", v(12, 32), [v(2, 1), Operand::None, Operand::Off]);
    rig.fault(&with(load, |mods| mods.offset = 16));
    assert_eq!(rig.v(12, 0), 0xbad);
}

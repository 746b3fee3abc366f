//! Matrix instructions against sums written out, and places of elements against the published layouts.

use super::shape::{Element, Layout, Shape};
use crate::cu::level::HostLevel;
use crate::cu::valu::f16::F16;
use crate::cu::valu::tests::{Random, Rig, levels, op};
use crate::isa::{Decoded, Family, Format, Operand, Target};

/// The integer or number that a small code stands for in each type, all exact in all of them.
fn bits(element: Element, value: i32) -> u64 {
    match element {
        Element::F64 => (value as f64).to_bits(),
        Element::F32 | Element::Xf32 => (value as f32).to_bits() as u64,
        Element::F16 => F16::from_f32(value as f32).0 as u64,
        Element::Bf16 => ((value as f32).to_bits() >> 16) as u64,
        Element::I32 => value as u32 as u64,
        Element::I8 | Element::Iu8 => value as u8 as u64,
        Element::Iu4 => (value & 15) as u64,
        Element::Fp8 | Element::Bf8 => unreachable!("no exact table here"),
    }
}

fn put(rig: &mut Rig, first: u32, place: (usize, usize, usize), element: Element, value: i32) {
    let (register, lane, bit) = place;
    let (register, lane) = (first + register as u32, lane as u32);
    let value = bits(element, value);
    if element.bits() == 64 {
        rig.set64(register, lane, value);
    } else {
        let mask = (((1u64 << element.bits()) - 1) as u32) << bit;
        let old = rig.get(register, lane);
        rig.set(register, lane, old & !mask | (value as u32) << bit);
    }
}

fn instruction(name: &'static str, registers: [u8; 3]) -> Decoded {
    let vgpr = |reg, dwords| Operand::Vgpr { reg, dwords, hi: false };
    let [a, b, d] = registers;
    let mut decoded = op(name, vgpr(64, d), &[vgpr(0, a), vgpr(16, b), vgpr(32, d)]);
    decoded.format = Format::Vop3p;
    decoded.mods.neg = if name.ends_with("iu8") || name.ends_with("iu4") { 3 } else { 0 };
    decoded
}

/// Fills A, B and C with small numbers, runs the instruction and compares D with the sums.
fn check(target: Target, lanes: u32, level: HostLevel, name: &'static str, registers: [u8; 3]) {
    let shape = Shape::parse(name, target.family(), lanes as usize, registers[0] as usize).unwrap();
    let mut rig = Rig::new(target, lanes, level);
    let mut random = Random(7);
    let range = if shape.a == Element::Iu4 { 8 } else { 16 };
    let mut small =
        |count: usize| -> Vec<i32> { (0..count).map(|_| (random.bits() % range) as i32 - range as i32 / 2).collect() };
    let (m, n, k) = (shape.m, shape.n, shape.k);
    let (a, b, c) = (small(shape.blocks * m * k), small(shape.blocks * k * n), small(shape.blocks * m * n));
    // GFX11 holds A and B once for each group of 16 lanes, and every group is the same.
    let copies = if shape.layout == Layout::Wmma11 { lanes as usize / 16 } else { 1 };
    for block in 0..shape.blocks {
        for copy in 0..copies {
            let copied = |(register, lane, bit)| (register, lane + 16 * copy, bit);
            for i in 0..m {
                for x in 0..k {
                    let place = copied(shape.input(shape.a, m, block, i, x));
                    put(&mut rig, 0, place, shape.a, a[(block * m + i) * k + x]);
                }
            }
            for j in 0..n {
                for x in 0..k {
                    let place = copied(shape.input(shape.b, n, block, j, x));
                    put(&mut rig, 16, place, shape.b, b[(block * k + x) * n + j]);
                }
            }
        }
        for i in 0..m {
            for j in 0..n {
                put(&mut rig, 32, shape.output(block, i, j), shape.d, c[(block * m + i) * n + j]);
            }
        }
    }
    // MFMA does not look at EXEC.
    if shape.layout == Layout::Mfma {
        rig.wave.set_exec(1);
    }
    rig.run(&instruction(name, registers));
    for block in 0..shape.blocks {
        for i in 0..m {
            for j in 0..n {
                let products = (0..k).map(|x| a[(block * m + i) * k + x] * b[(block * k + x) * n + j]);
                let sum = c[(block * m + i) * n + j] + products.sum::<i32>();
                let (register, lane, bit) = shape.output(block, i, j);
                let (register, lane) = (64 + register as u32, lane as u32);
                let got = if shape.d.bits() == 64 {
                    rig.get64(register, lane)
                } else {
                    rig.get(register, lane) as u64 >> bit & ((1 << shape.d.bits()) - 1)
                };
                assert_eq!(got, bits(shape.d, sum), "{name} {level:?}: block {block} row {i} column {j}");
            }
        }
    }
}

#[test]
fn mfma_sums_of_products() {
    // Registers of A, B and D as the decoder gives them.
    let old: &[(&str, [u8; 3])] = &[
        ("v_mfma_f32_32x32x1f32", [1, 1, 32]),
        ("v_mfma_f32_16x16x1f32", [1, 1, 16]),
        ("v_mfma_f32_4x4x1f32", [1, 1, 4]),
        ("v_mfma_f32_32x32x2f32", [1, 1, 16]),
        ("v_mfma_f32_16x16x4f32", [1, 1, 4]),
        ("v_mfma_f32_32x32x4f16", [2, 2, 32]),
        ("v_mfma_f32_16x16x4f16", [2, 2, 16]),
        ("v_mfma_f32_4x4x4f16", [2, 2, 4]),
        ("v_mfma_f32_32x32x8f16", [2, 2, 16]),
        ("v_mfma_f32_16x16x16f16", [2, 2, 4]),
        ("v_mfma_i32_32x32x4i8", [1, 1, 32]),
        ("v_mfma_i32_16x16x4i8", [1, 1, 16]),
        ("v_mfma_i32_4x4x4i8", [1, 1, 4]),
        ("v_mfma_i32_32x32x8i8", [1, 1, 16]),
        ("v_mfma_i32_16x16x16i8", [1, 1, 4]),
        ("v_mfma_f32_32x32x2bf16", [1, 1, 32]),
        ("v_mfma_f32_16x16x8bf16", [1, 1, 4]),
        ("v_mfma_f32_16x16x16bf16_1k", [2, 2, 4]),
        ("v_mfma_f32_32x32x4bf16_1k", [2, 2, 32]),
        ("v_mfma_f64_16x16x4f64", [2, 2, 8]),
        ("v_mfma_f64_4x4x4f64", [2, 2, 2]),
    ];
    let new: &[(&str, [u8; 3])] = &[
        ("v_mfma_f32_32x32x1_2b_f32", [1, 1, 32]),
        ("v_mfma_f32_16x16x4_4b_f16", [2, 2, 16]),
        ("v_mfma_f32_4x4x4_16b_bf16", [2, 2, 4]),
        ("v_mfma_f32_32x32x8_bf16", [2, 2, 16]),
        ("v_mfma_i32_32x32x16_i8", [2, 2, 16]),
        ("v_mfma_i32_16x16x32_i8", [2, 2, 4]),
        ("v_mfma_f32_16x16x8_xf32", [2, 2, 4]),
        ("v_mfma_f64_4x4x4_4b_f64", [2, 2, 2]),
    ];
    for level in levels() {
        for (name, registers) in old {
            check(Target::Gfx90a, 64, level, name, *registers);
        }
        for (name, registers) in new {
            check(Target::Gfx942, 64, level, name, *registers);
        }
    }
}

#[test]
fn wmma_sums_of_products() {
    for level in levels() {
        for (name, wave32, wave64) in [
            ("v_wmma_f32_16x16x16_f16", [8, 8, 8], [8, 8, 4]),
            ("v_wmma_f32_16x16x16_bf16", [8, 8, 8], [8, 8, 4]),
            ("v_wmma_f16_16x16x16_f16", [8, 8, 8], [8, 8, 4]),
            ("v_wmma_i32_16x16x16_iu8", [4, 4, 8], [4, 4, 4]),
            ("v_wmma_i32_16x16x16_iu4", [2, 2, 8], [2, 2, 4]),
        ] {
            check(Target::Gfx1100, 32, level, name, wave32);
            check(Target::Gfx1100, 64, level, name, wave64);
        }
        for (name, wave32, wave64) in [
            ("v_wmma_f32_16x16x16_f16", [4, 4, 8], [2, 2, 4]),
            ("v_wmma_f16_16x16x16_f16", [4, 4, 4], [2, 2, 2]),
            ("v_wmma_i32_16x16x16_iu8", [2, 2, 8], [1, 1, 4]),
            ("v_wmma_i32_16x16x16_iu4", [1, 1, 8], [1, 1, 4]),
            ("v_wmma_i32_16x16x32_iu4", [2, 2, 8], [1, 1, 4]),
        ] {
            check(Target::Gfx1201, 32, level, name, wave32);
            check(Target::Gfx1201, 64, level, name, wave64);
        }
    }
}

/// Some places as AMD's calculator prints them.
#[test]
fn places_as_published() {
    let shape = |name, family, lanes, registers| Shape::parse(name, family, lanes, registers).unwrap();
    let wide = shape("v_mfma_f32_32x32x8f16", Family::Gfx9, 64, 2);
    assert_eq!((wide.m, wide.n, wide.k, wide.blocks), (32, 32, 8, 1));
    assert_eq!(wide.input(wide.a, 32, 0, 0, 5), (0, 32, 16));
    assert_eq!(wide.output(0, 4, 0), (0, 32, 0));
    assert_eq!(wide.output(0, 8, 3), (4, 3, 0));
    let blocks = shape("v_mfma_f32_16x16x1f32", Family::Gfx9, 64, 1);
    assert_eq!(blocks.blocks, 4);
    assert_eq!(blocks.input(blocks.a, 16, 1, 0, 0), (0, 16, 0));
    assert_eq!(blocks.output(1, 5, 2), (5, 18, 0));
    let double = shape("v_mfma_f64_4x4x4f64", Family::Gfx9, 64, 2);
    assert_eq!(double.input(double.a, 4, 0, 3, 2), (0, 35, 0));
    assert_eq!(double.output(1, 2, 0), (0, 36, 0));
    let old = shape("v_wmma_f32_16x16x16_f16", Family::Gfx11, 32, 8);
    assert_eq!(old.input(old.a, 16, 0, 3, 5), (2, 3, 16));
    assert_eq!(old.output(0, 3, 2), (1, 18, 0));
    let new = shape("v_wmma_f32_16x16x16_f16", Family::Gfx12, 64, 2);
    assert_eq!([new.output(0, 4, 0), new.output(0, 8, 0), new.output(0, 15, 1)], [(0, 32, 0), (0, 16, 0), (3, 49, 0)]);
}

#[test]
fn mfma_broadcasts_blocks_of_a_and_lanes_of_b() {
    for level in levels() {
        let mut rig = Rig::new(Target::Gfx90a, 64, level);
        for lane in 0..64 {
            rig.set(0, lane, (lane as f32).to_bits());
            rig.set(16, lane, (lane as f32 * 100.0).to_bits());
        }
        let mut decoded = instruction("v_mfma_f32_16x16x1f32", [1, 1, 16]);
        // Blocks 0 and 1 take A of block 1, blocks 2 and 3 that of block 3; all take B of lanes 32..48.
        decoded.mods.cbsz = 1;
        decoded.mods.abid = 1;
        decoded.mods.blgp = 6;
        rig.run(&decoded);
        for block in 0..4 {
            let a = 16 * (block | 1) as u32;
            // Row 2, column 5 of each block.
            let got = f32::from_bits(rig.get(64 + 4 * block + 2, 5));
            assert_eq!(got, (a + 2) as f32 * (32 + 5) as f32 * 100.0, "block {block}");
        }
    }
}

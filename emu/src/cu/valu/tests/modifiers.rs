//! Absolute value, negation, output modifiers, clamp, half selection, SDWA and DPP.

use super::*;
use crate::isa::{Dpp, Sdwa};

fn rig(target: Target, lanes: u32) -> Vec<Rig> {
    levels().into_iter().map(|level| Rig::new(target, lanes, level)).collect()
}

/// Runs on lane values `a`, `b`, `c` in v1 to v3 and returns v4 of lane 0.
fn run3(rig: &mut Rig, mut decoded: Decoded, values: [u32; 3], change: impl Fn(&mut Mods)) -> u32 {
    for (register, value) in values.into_iter().enumerate() {
        rig.fill(1 + register as u32, value);
    }
    change(&mut decoded.mods);
    rig.run(&decoded);
    rig.get(4, 0)
}

fn f(value: f32) -> u32 {
    value.to_bits()
}

#[test]
fn absolute_value_comes_before_negation() {
    for mut rig in Rig::all() {
        let add = || op("v_add_f32", v(4), &[v(1), v(2)]);
        let both = |mods: &mut Mods| (mods.abs, mods.neg) = (1, 1);
        assert_eq!(run3(&mut rig, add(), [f(-3.0), f(1.0), 0], both), f(-2.0));
        assert_eq!(run3(&mut rig, add(), [f(3.0), f(1.0), 0], both), f(-2.0));
        // Each source has its own.
        let second = |mods: &mut Mods| (mods.abs, mods.neg) = (1, 2);
        assert_eq!(run3(&mut rig, add(), [f(-3.0), f(1.0), 0], second), f(2.0));
        let fma = || op("v_fma_f32", v(4), &[v(1), v(2), v(3)]);
        let third = |mods: &mut Mods| mods.neg = 4;
        assert_eq!(run3(&mut rig, fma(), [f(2.0), f(5.0), f(1.0)], third), f(9.0));
    }
}

#[test]
fn negation_is_a_sign_bit_of_moves_too() {
    for mut rig in Rig::all() {
        rig.set_vcc(0);
        let select = op("v_cndmask_b32", v(4), &[v(1), v(2), VCC]);
        let both = |mods: &mut Mods| (mods.abs, mods.neg) = (1, 1);
        assert_eq!(run3(&mut rig, select, [0xffc1_2345, 0, 0], both), 0xffc1_2345);
        let plain = op("v_cndmask_b32", v(4), &[v(1), v(2), VCC]);
        assert_eq!(run3(&mut rig, plain, [5, 0, 0], |mods| mods.neg = 1), 0x8000_0005);
        let double = op("v_add_f64", v2(4), &[v2(1), v2(1)]);
        for lane in 0..rig.lanes() {
            rig.set64(1, lane, 1.5f64.to_bits());
        }
        let mut decoded = double;
        decoded.mods.neg = 3;
        rig.run(&decoded);
        assert_eq!(rig.get64(4, 0), (-3.0f64).to_bits());
    }
}

#[test]
fn output_modifiers_need_flushed_denormals_and_no_ieee() {
    for mut rig in Rig::all() {
        let double = |mods: &mut Mods| mods.omod = 1;
        let add = || op("v_add_f32", v(4), &[v(1), v(2)]);
        let values = [f(1.5), f(1.0), 0];
        // Denormals on, or IEEE on: nothing.
        for mode in [0x3f0, 0x0f0, 0x3c0] {
            rig.wave.mode = mode;
            assert_eq!(run3(&mut rig, add(), values, double), f(2.5), "mode {mode:#x}");
        }
        rig.wave.mode = 0x0c0;
        for (omod, result) in [(1, 5.0), (2, 10.0), (3, 1.25)] {
            assert_eq!(run3(&mut rig, add(), values, |mods| mods.omod = omod), f(result));
        }
        // -0 becomes +0.
        let mul = op("v_mul_f32", v(4), &[v(1), v(2)]);
        assert_eq!(run3(&mut rig, mul, [f(-1.0), f(0.0), 0], double), 0);
    }
}

#[test]
fn clamp_of_numbers_and_nans() {
    for mut rig in Rig::all() {
        let clamp = |mods: &mut Mods| mods.clamp = true;
        let add = || op("v_add_f32", v(4), &[v(1), v(2)]);
        assert_eq!(run3(&mut rig, add(), [f(0.75), f(0.5), 0], clamp), f(1.0));
        assert_eq!(run3(&mut rig, add(), [f(0.25), f(0.5), 0], clamp), f(0.75));
        assert_eq!(run3(&mut rig, add(), [f(-0.75), f(0.5), 0], clamp), 0);
        assert_eq!(run3(&mut rig, add(), [f(-0.0), f(-0.0), 0], clamp), 0);
        let nan = [0x7fc0_0001, f(0.5), 0];
        assert_eq!(run3(&mut rig, add(), nan, clamp), 0, "DX10_CLAMP makes 0 of a NaN");
        rig.wave.mode = MODE & !0x100;
        assert_eq!(run3(&mut rig, add(), nan, clamp), 0x7fc0_0001, "without it the NaN stays");
    }
    // GFX12 has no such bit: always 0.
    for mut rig in rig(Target::Gfx1201, 32) {
        rig.wave.mode = 0xf0;
        let add = op("v_add_f32", v(4), &[v(1), v(2)]);
        assert_eq!(run3(&mut rig, add, [0x7fc0_0001, f(0.5), 0], |mods| mods.clamp = true), 0);
    }
}

#[test]
fn clamp_saturates_integers() {
    for mut rig in Rig::all() {
        let cases: [(&str, [u32; 3], u32); 8] = [
            ("v_add_u32", [0xffff_fff0, 0x20, 0], u32::MAX),
            ("v_sub_u32", [5, 6, 0], 0),
            ("v_add_i32", [0x7fff_fff0, 0x20, 0], 0x7fff_ffff),
            ("v_sub_i32", [0x8000_0000, 1, 0], 0x8000_0000),
            ("v_mad_u32_u24", [0xff_ffff, 0xff_ffff, 0], u32::MAX),
            ("v_mad_i32_i24", [0x7f_ffff, 0x80_0000, 0], 0x8000_0000),
            ("v_dot4_i32_iu8", [0xffff_ffff, 0xffff_ffff, 0x7fff_ffff], 0x7fff_ffff),
            ("v_mad_u32_u16", [0xffff, 0xffff, 0xffff_ffff], u32::MAX),
        ];
        for (name, values, wanted) in cases {
            let mut decoded = op(name, v(4), &[v(1), v(2), v(3)]);
            if name.starts_with("v_dot") {
                decoded.format = Format::Vop3p;
            }
            assert_eq!(run3(&mut rig, decoded, values, |mods| mods.clamp = true), wanted, "{name}");
        }
    }
}

#[test]
fn clamp_is_per_half_in_packed_operations() {
    for mut rig in Rig::all() {
        let packed = |name| {
            let mut decoded = op(name, v(4), &[v(1), v(2)]);
            decoded.format = Format::Vop3p;
            decoded
        };
        let clamp = |mods: &mut Mods| (mods.clamp, mods.op_sel_hi) = (true, 3);
        // 0.5 + 0.75 and -0.5 + 0.25.
        let sum = run3(&mut rig, packed("v_pk_add_f16"), [0xb800_3800, 0x3400_3a00, 0], clamp);
        assert_eq!(sum, 0x0000_3c00);
        let sum = run3(&mut rig, packed("v_pk_add_u16"), [0x0001_fff0, 0x0002_0020, 0], clamp);
        assert_eq!(sum, 0x0003_ffff);
        let sum = run3(&mut rig, packed("v_pk_sub_i16"), [0x8000_0003, 0x0001_0001, 0], clamp);
        assert_eq!(sum, 0x8000_0002);
    }
}

#[test]
fn mixed_precision_is_fused_and_takes_signs_and_clamp() {
    for mut rig in Rig::all() {
        let mix = |name| {
            let mut decoded = op(name, v(4), &[v(1), v(2), v(3)]);
            decoded.format = Format::Vop3p;
            decoded
        };
        // Source 0 is the high half of v1, source 1 the low half of v2, source 2 an f32.
        let halves = |mods: &mut Mods| (mods.op_sel_hi, mods.op_sel) = (3, 1);
        let result = run3(&mut rig, mix("v_fma_mix_f32"), [0x4000_0000, 0x4200, f(0.5)], halves);
        assert_eq!(result, f(6.5));
        // neg_hi is the absolute value, neg the negation behind it.
        let signs = |mods: &mut Mods| (mods.op_sel_hi, mods.op_sel, mods.neg, mods.neg_hi) = (3, 1, 1, 1);
        let result = run3(&mut rig, mix("v_fma_mix_f32"), [0xc000_0000, 0x4200, f(0.5)], signs);
        assert_eq!(result, f(-5.5));
        // One rounding: (1 + 2^-12)^2 - (1 + 2^-11) = 2^-24.
        let exact = [f(1.0 + 2f32.powi(-12)), f(1.0 + 2f32.powi(-12)), f(-1.0 - 2f32.powi(-11))];
        assert_eq!(run3(&mut rig, mix("v_fma_mix_f32"), exact, |_| {}), f(2f32.powi(-24)));
        let clamp = |mods: &mut Mods| mods.clamp = true;
        assert_eq!(run3(&mut rig, mix("v_fma_mix_f32"), [f(2.0), f(2.0), f(0.0)], clamp), f(1.0));
        // The low and high results keep the other half.
        rig.fill(4, 0xdead_beef);
        assert_eq!(run3(&mut rig, mix("v_fma_mixlo_f16"), [f(1.0), f(2.0), f(0.0)], |_| {}), 0xdead_4000);
        assert_eq!(run3(&mut rig, mix("v_fma_mixhi_f16"), [f(1.0), f(3.0), f(0.0)], |_| {}), 0x4200_4000);
    }
}

#[test]
fn op_sel_chooses_halves_and_keeps_the_other() {
    for mut rig in Rig::all() {
        rig.fill(4, 0x1234_5678);
        let mad = || op("v_mad_u16", v(4), &[v(1), v(2), v(3)]);
        let values = [0x0007_0003, 0x000b_0005, 0x0100_0001];
        assert_eq!(run3(&mut rig, mad(), values, |_| {}), 0x1234_0010, "low halves");
        assert_eq!(run3(&mut rig, mad(), values, |mods| mods.op_sel = 0b0011), 0x1234_004e, "high sources");
        assert_eq!(run3(&mut rig, mad(), values, |mods| mods.op_sel = 0b1100), 0x010f_004e, "high addend and result");
        // The shift of these is a half too.
        let shift = [0x1122_3344, 0x5566_7788, 0x0002_0008];
        for (name, low, high) in
            [("v_alignbit_b32", 0x4455_6677, 0x1559_9de2), ("v_alignbyte_b32", 0x5566_7788, 0x3344_5566)]
        {
            let align = || op(name, v(4), &[v(1), v(2), v(3)]);
            assert_eq!(run3(&mut rig, align(), shift, |_| {}), low, "{name}");
            assert_eq!(run3(&mut rig, align(), shift, |mods| mods.op_sel = 0b0100), high, "{name}");
        }
        // A sign belongs to the half that was chosen.
        let fma = op("v_fma_f16", v(4), &[v(1), v(2), v(3)]);
        let negated = |mods: &mut Mods| (mods.op_sel, mods.neg) = (0b0001, 1);
        assert_eq!(run3(&mut rig, fma, [0x4000_0000, 0x3c00, 0x3c00], negated) & 0xffff, 0xbc00);
    }
}

#[test]
fn gfx9_zeroes_the_high_half_of_two_operand_results_later_targets_keep_it() {
    for (target, lanes, wanted) in [(Target::Gfx90a, 64, 0x0000_4200), (Target::Gfx1030, 32, 0x1234_4200)] {
        for mut rig in rig(target, lanes) {
            rig.fill(4, 0x1234_5678);
            let add = op("v_add_f16", v(4), &[v(1), v(2)]);
            assert_eq!(run3(&mut rig, add, [0x3c00, 0x4000, 0], |_| {}), wanted, "{target}");
        }
    }
}

#[test]
fn true16_operands_are_halves() {
    for mut rig in rig(Target::Gfx1100, 32) {
        rig.fill(1, 0x4000_3c00);
        rig.fill(4, 0x1111_2222);
        rig.run(&op("v_add_f16", vh(4), &[vh(1), v(1)]));
        assert_eq!(rig.get(4, 0), 0x4200_2222);
        rig.run(&op("v_mov_b16", v(4), &[vh(1)]));
        assert_eq!(rig.get(4, 0), 0x4200_4000);
        rig.run(&op("v_swap_b16", v(4), &[vh(4)]));
        assert_eq!(rig.get(4, 0), 0x4000_4200);
    }
}

#[test]
fn packed_selectors_and_signs() {
    for mut rig in Rig::all() {
        let add = || {
            let mut decoded = op("v_pk_add_f16", v(4), &[v(1), v(2)]);
            decoded.format = Format::Vop3p;
            decoded
        };
        // v1 = (2, 1), v2 = (8, 4), high half first.
        let values = [0x4000_3c00, 0x4800_4400, 0];
        assert_eq!(run3(&mut rig, add(), values, |mods| mods.op_sel_hi = 3), 0x4900_4500);
        assert_eq!(run3(&mut rig, add(), values, |_| {}), 0x4500_4500, "op_sel_hi 0: low halves twice");
        let crossed = |mods: &mut Mods| (mods.op_sel, mods.op_sel_hi) = (1, 2);
        assert_eq!(run3(&mut rig, add(), values, crossed), 0x4880_4600, "2 + 4 and 1 + 8");
        let signs = |mods: &mut Mods| (mods.op_sel_hi, mods.neg, mods.neg_hi) = (3, 1, 2);
        assert_eq!(run3(&mut rig, add(), values, signs), 0xc600_4200, "-1 + 4 and 2 - 8");
        // Constants: a float is in the low half only, an integer in both.
        let mut constant = op("v_pk_add_f16", v(4), &[v(1), Operand::Float(242)]);
        constant.format = Format::Vop3p;
        assert_eq!(run3(&mut rig, constant, values, |mods| mods.op_sel_hi = 1), 0x4200_4000);
        let mut constant = op("v_pk_add_u16", v(4), &[v(1), Operand::Int(-1)]);
        constant.format = Format::Vop3p;
        assert_eq!(run3(&mut rig, constant, [0x0005_0003, 0, 0], |mods| mods.op_sel_hi = 3), 0x0004_0002);
    }
}

#[test]
fn packed_f32_selectors_choose_registers() {
    for mut rig in rig(Target::Gfx90a, 64) {
        let set = |rig: &mut Rig| {
            for (register, value) in [(2, 1.0f32), (3, 2.0), (4, 10.0), (5, 20.0)] {
                rig.fill(register, value.to_bits());
            }
        };
        let add = |dst: u16, op_sel: u8, op_sel_hi: u8| {
            let mut decoded = op("v_pk_add_f32", v2(dst), &[v2(2), v2(4)]);
            decoded.format = Format::Vop3p;
            (decoded.mods.op_sel, decoded.mods.op_sel_hi) = (op_sel, op_sel_hi);
            decoded
        };
        set(&mut rig);
        rig.run(&add(6, 0, 3));
        assert_eq!([rig.get(6, 0), rig.get(7, 0)], [f(11.0), f(22.0)]);
        rig.run(&add(6, 1, 0));
        assert_eq!([rig.get(6, 0), rig.get(7, 0)], [f(12.0), f(11.0)]);
        // The destination is a source of the other half both ways.
        rig.run(&add(2, 1, 2));
        assert_eq!([rig.get(2, 0), rig.get(3, 0)], [f(12.0), f(21.0)]);
        set(&mut rig);
        let mut moved = op("v_pk_mov_b32", v2(2), &[v2(2), v2(2)]);
        moved.format = Format::Vop3p;
        moved.mods.op_sel = 1;
        rig.run(&moved);
        assert_eq!([rig.get(2, 0), rig.get(3, 0)], [f(2.0), f(1.0)], "a swap");
    }
}

fn sdwa(dst_sel: u8, dst_unused: u8, src0_sel: u8, src1_sel: u8, sext: u8) -> Option<Sdwa> {
    Some(Sdwa { dst_sel, dst_unused, src0_sel, src1_sel, sext })
}

#[test]
fn sdwa_selects_extends_and_places() {
    for mut rig in rig(Target::Gfx90a, 64) {
        let add = || op("v_add_u32", v(4), &[v(1), v(2)]);
        let values = [0x80ff_7f01, 0x0000_0100, 0];
        let mut with = |sdwa, old: u32| {
            rig.fill(4, old);
            run3(&mut rig, add(), values, |mods| mods.sdwa = sdwa)
        };
        assert_eq!(with(sdwa(6, 0, 3, 6, 0), 0), 0x180, "byte 3, zero-extended");
        assert_eq!(with(sdwa(6, 0, 3, 6, 1), 0), 0x80, "byte 3, sign-extended: -128 + 256");
        assert_eq!(with(sdwa(6, 0, 5, 6, 1), 0), 0xffff_81ff, "word 1, sign-extended");
        assert_eq!(with(sdwa(1, 0, 0, 6, 0), 0xdddd_dddd), 0x0000_0100, "low byte of the sum in byte 1, padded");
        assert_eq!(with(sdwa(1, 2, 0, 6, 0), 0xdddd_dddd), 0xdddd_01dd, "the rest preserved");
        assert_eq!(with(sdwa(4, 1, 5, 6, 0), 0), 0xffff_81ff, "word 0, sign-extended");
        assert_eq!(with(sdwa(5, 2, 1, 6, 0), 0xdddd_dddd), 0x017f_dddd, "word 1, preserved");
        // Inactive lanes stay.
        rig.wave.set_exec(1);
        rig.fill(4, 7);
        run3(&mut rig, add(), values, |mods| mods.sdwa = sdwa(6, 0, 0, 0, 0));
        assert_eq!([rig.get(4, 0), rig.get(4, 1)], [1, 7]);
    }
}

#[test]
fn sdwa_signs_follow_the_selection() {
    for mut rig in rig(Target::Gfx90a, 64) {
        let add = op("v_add_f16", v(4), &[v(1), v(2)]);
        let result = run3(&mut rig, add, [0x4000_0000, 0x3c00, 0], |mods| {
            (mods.sdwa, mods.neg) = (sdwa(6, 0, 5, 4, 0), 1);
        });
        assert_eq!(result, 0xbc00, "-2 + 1");
    }
}

#[test]
fn sdwa_compares_have_their_own_destination() {
    for mut rig in rig(Target::Gfx90a, 64) {
        for lane in 0..64 {
            rig.set(1, lane, lane << 8);
        }
        let mut compare = op("v_cmp_lt_u32", s2(12), &[v(1), Operand::Int(10)]);
        compare.format = Format::Vopc;
        compare.mods.sdwa = sdwa(6, 0, 1, 6, 0);
        rig.set_vcc(77);
        rig.run(&compare);
        assert_eq!((rig.wave.scalar64(12), rig.vcc()), ((1 << 10) - 1, 77));
    }
}

fn dpp16(ctrl: u16, row_mask: u8, bank_mask: u8, bound_ctrl: bool, fi: bool) -> Option<Dpp> {
    Some(Dpp::Dpp16 { ctrl, row_mask, bank_mask, bound_ctrl, fi })
}

/// v1 is the lane number plus 1000; returns v4 of a move, 7 where nothing was written.
fn moved(rig: &mut Rig, dpp: Option<Dpp>) -> Vec<u32> {
    for lane in 0..rig.lanes() {
        rig.set(1, lane, 1000 + lane);
    }
    rig.fill(4, 7);
    let mut decoded = op("v_mov_b32", v(4), &[v(1)]);
    decoded.mods.dpp = dpp;
    rig.run(&decoded);
    rig.row(4)
}

#[test]
fn dpp16_controls() {
    let all: [(u16, fn(u32) -> Option<u32>); 8] = [
        (0b00_01_10_11, |lane| Some(lane & !3 | 3 - (lane & 3))),
        (0x101, |lane| (lane & 15 < 15).then(|| lane + 1)),
        (0x10f, |lane| (lane & 15 == 0).then(|| lane + 15)),
        (0x112, |lane| (lane & 15 >= 2).then(|| lane - 2)),
        (0x121, |lane| Some(lane & !15 | (lane + 15) & 15)),
        (0x140, |lane| Some(lane ^ 15)),
        (0x141, |lane| Some(lane ^ 7)),
        (0x12f, |lane| Some(lane & !15 | (lane + 1) & 15)),
    ];
    let gfx9: [(u16, fn(u32) -> Option<u32>); 7] = [
        (0x130, |lane| (lane < 63).then(|| lane + 1)),
        (0x134, |lane| Some((lane + 1) % 64)),
        (0x138, |lane| (lane > 0).then(|| lane - 1)),
        (0x13c, |lane| Some((lane + 63) % 64)),
        (0x142, |lane| (lane >= 16).then(|| (lane & !15) - 1)),
        (0x143, |lane| (lane >= 32).then_some(31)),
        (0x153, |lane| Some(lane & !15 | 3)),
    ];
    let later: [(u16, fn(u32) -> Option<u32>); 2] =
        [(0x153, |lane| Some(lane & !15 | 3)), (0x165, |lane| Some(lane ^ 5))];
    for mut rig in Rig::all() {
        let own: &[(u16, fn(u32) -> Option<u32>)] = if rig.target == Target::Gfx90a { &gfx9 } else { &later };
        for (ctrl, source) in all.iter().chain(own) {
            for bound_ctrl in [false, true] {
                let row = moved(&mut rig, dpp16(*ctrl, 15, 15, bound_ctrl, false));
                for (lane, got) in row.into_iter().enumerate() {
                    let missing = if bound_ctrl { 0 } else { 7 };
                    let wanted = source(lane as u32).map_or(missing, |from| 1000 + from);
                    assert_eq!(got, wanted, "control {ctrl:#x}, lane {lane}, bound_ctrl {bound_ctrl}");
                }
            }
        }
    }
}

#[test]
fn dpp16_controls_of_other_generations_are_refused() {
    let mut decoded = op("v_mov_b32", v(4), &[v(1)]);
    for (target, lanes, ctrl) in
        [(Target::Gfx1100, 32, 0x142), (Target::Gfx900, 64, 0x150), (Target::Gfx90a, 64, 0x161)]
    {
        decoded.mods.dpp = dpp16(ctrl, 15, 15, false, false);
        assert!(Rig::new(target, lanes, HostLevel::Base).lower(&decoded).is_err(), "{target} {ctrl:#x}");
    }
}

#[test]
fn dpp16_row_and_bank_masks_disable_writes() {
    for mut rig in Rig::all() {
        let row = moved(&mut rig, dpp16(0xe4, 0b0010, 0b0101, true, false));
        for (lane, got) in row.into_iter().enumerate() {
            let writes = lane >> 4 == 1 && matches!(lane >> 2 & 3, 0 | 2);
            assert_eq!(got, if writes { 1000 + lane as u32 } else { 7 }, "lane {lane}");
        }
    }
}

#[test]
fn dpp_reads_of_inactive_lanes_are_invalid_without_fi() {
    for mut rig in Rig::all() {
        rig.wave.set_exec(!0b10);
        // Lane 0 reads lane 1, which is off.
        let lane0 = |rig: &mut Rig, bound_ctrl, fi| moved(rig, dpp16(0x101, 15, 15, bound_ctrl, fi))[0];
        assert_eq!(lane0(&mut rig, false, false), 7, "no write");
        assert_eq!(lane0(&mut rig, true, false), 0, "zero");
        assert_eq!(lane0(&mut rig, false, true), 1001, "fetched");
        assert_eq!(rig.wave.exec & 3, 1, "EXEC is as before");
        let swapped = |fi| Some(Dpp::Dpp8 { sel: [1, 0, 3, 2, 5, 4, 7, 6], fi });
        assert_eq!(moved(&mut rig, swapped(false))[..4], [0, 7, 1003, 1002]);
        assert_eq!(moved(&mut rig, swapped(true))[..4], [1001, 7, 1003, 1002]);
    }
}

#[test]
fn dpp_comes_before_signs_and_takes_accumulators() {
    for mut rig in Rig::all() {
        for lane in 0..rig.lanes() {
            rig.set(1, lane, f(lane as f32));
        }
        rig.fill(2, f(10.0));
        rig.fill(4, f(100.0));
        let mut decoded = op("v_fmac_f32", v(4), &[v(1), v(2), v(4)]);
        decoded.mods.dpp = dpp16(0x141, 15, 15, true, false);
        decoded.mods.neg = 1;
        rig.run(&decoded);
        assert_eq!(f32::from_bits(rig.get(4, 0)), 100.0 - 70.0);
        assert_eq!(f32::from_bits(rig.get(4, 9)), 100.0 - 140.0);
    }
}

#[test]
fn dpp_compares_give_0_for_lanes_that_do_not_write() {
    for mut rig in Rig::all() {
        for lane in 0..rig.lanes() {
            rig.set(1, lane, lane);
        }
        let mut compare = op("v_cmp_ge_u32", VCC, &[v(1), Operand::Int(0)]);
        compare.mods.dpp = dpp16(0x101, 15, 15, false, false);
        rig.set_vcc(u64::MAX);
        rig.run(&compare);
        assert_eq!(rig.vcc(), 0x7fff_7fff_7fff_7fff & rig.wave.full_mask());
    }
}

#[test]
fn dpp_of_64_bits_on_gfx90a() {
    for mut rig in rig(Target::Gfx90a, 64) {
        for lane in 0..64 {
            rig.set64(2, lane, (lane as f64).to_bits());
        }
        let mut decoded = op("v_ceil_f64", v2(4), &[v2(2)]);
        decoded.mods.dpp = dpp16(0x155, 15, 15, true, false);
        rig.run(&decoded);
        assert_eq!([rig.get64(4, 0), rig.get64(4, 40)], [5f64.to_bits(), 37f64.to_bits()]);
    }
}

/// Sums, products and differences that clamp saturates; minima and counts it leaves as they are.
#[test]
fn clamp_of_integers_saturates_or_changes_nothing() {
    let max = u32::MAX;
    let all = 0xffff_ffff;
    type Case = (&'static str, [u32; 3], u32);
    let cases: [Case; 12] = [
        ("v_sad_u8", [all, 0, max - 1100], max - 80),
        ("v_sad_u8", [all, 0, max - 1019], max),
        ("v_sad_hi_u8", [all, 0, max - 5], max),
        ("v_sad_u16", [all, 0, max - 10], max),
        ("v_sad_u32", [5, 10, max - 4], max),
        ("v_msad_u8", [0x0000_ffff, 0x0101, max - 507], max),
        ("v_mul_i32_i24", [0x7f_ffff, 0x7f_ffff, 0], i32::MAX as u32),
        ("v_mul_i32_i24", [0x80_0000, 0x7f_ffff, 0], i32::MIN as u32),
        ("v_mul_u32_u24", [0xff_ffff, 0x10_0000, 0], max),
        ("v_mul_u32_u24", [0xffff, 3, 0], 0x2_fffd),
        ("v_min_i32", [-3i32 as u32, 4, 0], -3i32 as u32),
        ("v_ffbh_u32", [0, 0, 0], max),
    ];
    for mut rig in Rig::all() {
        for (name, values, wanted) in cases {
            let count = match name {
                "v_ffbh_u32" => 1,
                name if name.contains("sad") => 3,
                _ => 2,
            };
            let decoded = op(name, v(4), &[v(1), v(2), v(3)][..count]);
            assert_eq!(run3(&mut rig, decoded, values, |mods| mods.clamp = true), wanted, "{name} {values:x?}");
        }
        let bits = op("v_and_b32", v(8), &[v(16), v(17)]);
        let clamped = Decoded { mods: Mods { clamp: true, ..bits.mods }, ..bits };
        assert!(rig.lower(&clamped).is_err(), "no number, no range");
    }
}

#[test]
fn clamped_quad_sums_saturate_each_part() {
    for mut rig in Rig::all() {
        for lane in 0..rig.lanes() {
            rig.set64(16, lane, 0xffff_ffff_ffff_ffff);
            rig.set64(20, lane, 0xfff0_0010_ff00_fc04);
        }
        rig.fill(18, 0);
        for (clamp, wanted) in [(true, 0xffff_040c_ffff_ffff_u64), (false, 0x03ec_040c_02fc_0000)] {
            let decoded = op("v_qsad_pk_u16_u8", v2(8), &[v2(16), v(18), v2(20)]);
            let decoded = Decoded { mods: Mods { clamp, ..decoded.mods }, ..decoded };
            rig.run(&decoded);
            assert_eq!(rig.get64(8, 3), wanted, "clamp {clamp}");
        }
    }
}

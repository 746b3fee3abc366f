//! Floating point: MODE, fusion, division, conversions.

use super::*;

#[test]
fn mode_rounds_and_flushes_by_width_and_setreg_changes_it_in_the_middle() {
    let gfx9 = "
        .gfx90a
        0a080501  v_mul_f32_e32 v4, v1, v2
        ba000901 00000000  s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0
        0a0a0501  v_mul_f32_e32 v5, v1, v2
        d2800008 00020d06  v_add_f64 v[8:9], v[6:7], v[6:7]
        3e140703  v_add_f16_e32 v10, v3, v3
        ba000981 00000000  s_setreg_imm32_b32 hwreg(HW_REG_MODE, 6, 2), 0
        d280000c 00020d06  v_add_f64 v[12:13], v[6:7], v[6:7]
        3e1c0703  v_add_f16_e32 v14, v3, v3
        ba001801 0000000d  s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 13
        021e2b14  v_add_f32_e32 v15, v20, v21
        7e201516  v_cvt_f16_f32_e32 v16, v22
        d1cc0012 046a3118  v_fma_f64 v[18:19], v[24:25], v[24:25], v[26:27]
        b9043801  s_setreg_b32 hwreg(HW_REG_MODE, 0, 8), s4
        0a220501  v_mul_f32_e32 v17, v1, v2
    ";
    let gfx10 = "
        .gfx1030
        10080501  v_mul_f32_e32 v4, v1, v2
        bfa5000c  s_denorm_mode 12
        100a0501  v_mul_f32_e32 v5, v1, v2
        d5640008 00020d06  v_add_f64 v[8:9], v[6:7], v[6:7]
        64140703  v_add_f16_e32 v10, v3, v3
        bfa50000  s_denorm_mode 0
        d564000c 00020d06  v_add_f64 v[12:13], v[6:7], v[6:7]
        641c0703  v_add_f16_e32 v14, v3, v3
        bfa4000d  s_round_mode 0xd
        061e2b14  v_add_f32_e32 v15, v20, v21
        7e201516  v_cvt_f16_f32_e32 v16, v22
        d54c0012 046a3118  v_fma_f64 v[18:19], v[24:25], v[24:25], v[26:27]
        b9843801  s_setreg_b32 hwreg(HW_REG_MODE, 0, 8), s4
        10220501  v_mul_f32_e32 v17, v1, v2
    ";
    let gfx11 = "
        .gfx1100
        10080501  v_mul_f32_e32 v4, v1, v2
        bf92000c  s_denorm_mode 12
        100a0501  v_mul_f32_e32 v5, v1, v2
        d7270008 00020d06  v_add_f64 v[8:9], v[6:7], v[6:7]
        64140703  v_add_f16_e32 v10.l, v3.l, v3.l
        bf920000  s_denorm_mode 0
        d727000c 00020d06  v_add_f64 v[12:13], v[6:7], v[6:7]
        641c0703  v_add_f16_e32 v14.l, v3.l, v3.l
        bf91000d  s_round_mode 0xd
        061e2b14  v_add_f32_e32 v15, v20, v21
        7e201516  v_cvt_f16_f32_e32 v16.l, v22
        d6140012 046a3118  v_fma_f64 v[18:19], v[24:25], v[24:25], v[26:27]
        b9043801  s_setreg_b32 hwreg(HW_REG_MODE, 0, 8), s4
        10220501  v_mul_f32_e32 v17, v1, v2
    ";
    each(&[gfx9, gfx10, gfx11], |gpu| {
        (gpu.fill(1, 0x0000_0100), gpu.fill_f(2, 1.0), gpu.fill(3, 1), gpu.fill64(6, 1));
        [10, 14, 16].iter().for_each(|register| gpu.fill(*register, 0));
        // 1 + 2^-30, upwards; 1 + 2^-20 as an f16 and 1 + 2^-60 as an f64, towards zero.
        (gpu.fill_f(20, 1.0), gpu.fill_f(21, 2f32.powi(-30)), gpu.fill_f(22, 1.0 + 2f32.powi(-11) * 1.5));
        gpu.fill64(24, 1f64.to_bits());
        gpu.fill64(26, (-2f64.powi(-60)).to_bits());
        gpu.set_s(4, 0xf0);
        gpu.ok();
        assert_eq!([gpu.v(4, 0), gpu.v(5, 0)], [0x100, 0], "{}: f32 denormals on, off", gpu.target);
        assert_eq!((gpu.v64(8, 0), gpu.v(10, 0)), (2, 2), "f64 and f16 have bits of their own");
        assert_eq!((gpu.v64(12, 0), gpu.v(14, 0)), (0, 0), "which are off now");
        assert_eq!((gpu.v(15, 0), gpu.v(16, 0)), (0x3f80_0001, 0x3c00), "f32 upwards, f16 to zero");
        assert_eq!((gpu.v64(18, 0), gpu.v(17, 0)), (0x3fef_ffff_ffff_ffff, 0x100), "f64 to zero; all as it was");
    });
}

#[test]
fn mad_and_mac_round_twice_and_flush_whatever_mode_says_and_fma_rounds_once() {
    let gfx9 = "
        .gfx900
        d1c10004 040a0301  v_mad_f32 v4, v1, v1, v2
        d1cb0005 040a0301  v_fma_f32 v5, v1, v1, v2
        2c0c0301  v_mac_f32_e32 v6, v1, v1
        d1c10007 0201e503  v_mad_f32 v7, v3, 1.0, 0
        d1cb0008 0201e503  v_fma_f32 v8, v3, 1.0, 0
        30120301 bf801000  v_madak_f32 v9, v1, v1, 0xbf801000
    ";
    let gfx90a = "
        .gfx90a
        760c0301  v_fmac_f32_e32 v6, v1, v1
        d1cb0005 040a0301  v_fma_f32 v5, v1, v1, v2
        d1cb0008 0201e503  v_fma_f32 v8, v3, 1.0, 0
        d1cc0014 04622d16  v_fma_f64 v[20:21], v[22:23], v[22:23], v[24:25]
    ";
    let gfx11 = "
        .gfx1100
        560c0301  v_fmac_f32_e32 v6, v1, v1
        d6130005 040a0301  v_fma_f32 v5, v1, v1, v2
        d6130008 0201e503  v_fma_f32 v8, v3, 1.0, 0
        d6140014 04622d16  v_fma_f64 v[20:21], v[22:23], v[22:23], v[24:25]
    ";
    each(&[gfx9, gfx90a, gfx11], |gpu| {
        // The square of 1 + 2^-12 is 1 + 2^-11 + 2^-24, whose last bit is lost when rounded.
        gpu.fill_f(1, 1.0 + 2f32.powi(-12));
        gpu.fill_f(2, -1.0 - 2f32.powi(-11));
        gpu.fill_f(6, -1.0 - 2f32.powi(-11));
        gpu.fill(3, 0x0000_0100);
        gpu.fill64(22, (1.0 + 2f64.powi(-27)).to_bits());
        gpu.fill64(24, (-1.0 - 2f64.powi(-26)).to_bits());
        gpu.ok();
        assert_eq!((gpu.f(5, 0), gpu.v(8, 0)), (2f32.powi(-24), 0x100));
        if gpu.target == Target::Gfx900 {
            assert_eq!([gpu.f(4, 0), gpu.f(6, 0), gpu.f(9, 0)], [0.0; 3]);
            assert_eq!(gpu.v(7, 0), 0, "MODE keeps denormals, v_mad does not");
        } else {
            assert_eq!((gpu.f(6, 0), gpu.d(20, 0)), (2f32.powi(-24), 2f64.powi(-54)));
        }
    });
}

#[test]
fn a_legacy_product_with_zero_is_plus_zero() {
    let gfx9 = "
        .gfx90a
        d2a10004 00020501  v_mul_legacy_f32 v4, v1, v2
        d2a10005 00020303  v_mul_legacy_f32 v5, v3, v1
        d2a10006 00021107  v_mul_legacy_f32 v6, v7, v8
    ";
    let gfx11 = "
        .gfx1100
        0e080501  v_mul_dx9_zero_f32_e32 v4, v1, v2
        0e0a0303  v_mul_dx9_zero_f32_e32 v5, v3, v1
        0e0c1107  v_mul_dx9_zero_f32_e32 v6, v7, v8
        d6090009 041e0501  v_fma_dx9_zero_f32 v9, v1, v2, v7
        0c140501  v_fmac_dx9_zero_f32_e32 v10, v1, v2
    ";
    each(&[gfx9, gfx11], |gpu| {
        (gpu.fill_f(1, -0.0), gpu.fill(2, 0x7fc0_0000), gpu.fill(3, 0x7f80_0000));
        (gpu.fill_f(7, 3.0), gpu.fill_f(8, -2.0), gpu.fill_f(10, 4.0));
        gpu.ok();
        assert_eq!([gpu.v(4, 0), gpu.v(5, 0)], [0, 0], "also with NaN and infinity");
        assert_eq!(gpu.f(6, 0), -6.0);
        if !gpu.gfx9() {
            assert_eq!([gpu.f(9, 0), gpu.f(10, 0)], [3.0, 4.0]);
        }
    });
}

#[test]
fn the_division_sequence_is_correctly_rounded_and_heeds_the_mode_it_sets() {
    // What LLVM makes of v4 = v1 / v2, in kernels that keep f32 denormals and in those that flush them.
    let keeps = "
        .gfx90a
        d1e00405 04060502  v_div_scale_f32 v5, s[4:5], v2, v2, v1
        d1e06a06 04060501  v_div_scale_f32 v6, vcc, v1, v2, v1
        7e0e4505  v_rcp_f32_e32 v7, v5
        d1cb0008 23ca0f05  v_fma_f32 v8, -v5, v7, 1.0
        760e0f08  v_fmac_f32_e32 v7, v8, v7
        0a100f06  v_mul_f32_e32 v8, v6, v7
        d1cb0009 241a1105  v_fma_f32 v9, -v5, v8, v6
        76100f09  v_fmac_f32_e32 v8, v9, v7
        d1cb0005 241a1105  v_fma_f32 v5, -v5, v8, v6
        d1e20005 04220f05  v_div_fmas_f32 v5, v5, v7, v8
        d1de0004 04060505  v_div_fixup_f32 v4, v5, v2, v1
    ";
    let flushes = "
        .gfx1100
        d6fc7c05 04060502  v_div_scale_f32 v5, null, v2, v2, v1
        d6fc6a06 04060501  v_div_scale_f32 v6, vcc_lo, v1, v2, v1
        7e0e5505  v_rcp_f32_e32 v7, v5
        bf92000f  s_denorm_mode 15
        d6130008 23ca0f05  v_fma_f32 v8, -v5, v7, 1.0
        560e0f08  v_fmac_f32_e32 v7, v8, v7
        10100f06  v_mul_f32_e32 v8, v6, v7
        d6130009 241a1105  v_fma_f32 v9, -v5, v8, v6
        56100f09  v_fmac_f32_e32 v8, v9, v7
        d6130005 241a1105  v_fma_f32 v5, -v5, v8, v6
        bf92000c  s_denorm_mode 12
        d6370005 04220f05  v_div_fmas_f32 v5, v5, v7, v8
        d6270004 04060505  v_div_fixup_f32 v4, v5, v2, v1
    ";
    let mut values = vec![
        0.0f32,
        -0.0,
        1.0,
        -1.0,
        3.0,
        7.0,
        1e10,
        1.0000001,
        0.9999999,
        1e38,
        3e38,
        f32::MAX,
        f32::MIN_POSITIVE,
        1.5e-38,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        1e-45,
        1e-40,
        -3e-39,
    ];
    values.extend([-126, -110, -100, -63, 63, 100, 126].map(|power| 1.3333333 * 2f32.powi(power)));
    let denormal = |x: f32| x != 0.0 && x.abs() < f32::MIN_POSITIVE;
    each(&[keeps, flushes], |gpu| {
        let keeps = gpu.gfx9();
        for a in &values {
            gpu.wave.mode = if keeps { 0x3f0 } else { 0x3c0 };
            gpu.fill_f(1, *a);
            gpu.set(2, |lane| values[lane as usize % values.len()].to_bits());
            gpu.ok();
            for (lane, b) in (0..gpu.lanes()).zip(&values) {
                let (got, wanted) = (gpu.f(4, lane), a / b);
                if keeps || ![*a, *b, wanted].into_iter().any(denormal) {
                    let same = got.to_bits() == wanted.to_bits() || got.is_nan() && wanted.is_nan();
                    assert!(same, "{} {a:e} / {b:e} = {got:e}, not {wanted:e}", gpu.target);
                }
            }
        }
    });
}

#[test]
fn division_helpers_as_hardware_tested_code_has_them() {
    let gfx9 = "
        .gfx90a
        d1e0040a 04060501  v_div_scale_f32 v10, s[4:5], v1, v2, v1
        d1e0060b 04060502  v_div_scale_f32 v11, s[6:7], v2, v2, v1
        d1e2000c 04120703  v_div_fmas_f32 v12, v3, v3, v4
        d1de000d 04060505  v_div_fixup_f32 v13, v5, v2, v1
    ";
    let gfx11 = "
        .gfx1100
        d6fc040a 04060501  v_div_scale_f32 v10, s4, v1, v2, v1
        d6fc060b 04060502  v_div_scale_f32 v11, s6, v2, v2, v1
        d637000c 04120703  v_div_fmas_f32 v12, v3, v3, v4
        d627000d 04060505  v_div_fixup_f32 v13, v5, v2, v1
    ";
    each(&[gfx9, gfx11], |gpu| {
        // Lane 0: plain; 1: a denormal denominator; 2: a tiny numerator; 3: a quotient that would be denormal.
        let numerator = [1.0f32, 1.0, 2f32.powi(-120), 2f32.powi(-60)];
        let denominator = [3.0f32, 2f32.powi(-140), 1.5, 2f32.powi(70)];
        gpu.set(1, |lane| numerator[lane as usize % 4].to_bits());
        gpu.set(2, |lane| denominator[lane as usize % 4].to_bits());
        // v_div_fmas: 1 * 1 + addend, scaled by 2^64 or 2^-64 where VCC says, by the addend's exponent.
        gpu.fill_f(3, 1.0);
        gpu.set(4, |lane| if lane % 2 == 0 { 2f32.powi(10) } else { 2f32.powi(-10) }.to_bits());
        gpu.set(5, |lane| if lane == 0 { f32::NAN } else { 0.5 }.to_bits());
        gpu.set_s64(number::VCC, 0b1100);
        gpu.ok();
        assert_eq!([gpu.f(10, 0), gpu.f(11, 0)], [1.0, 3.0], "{}: without scaling source 0 comes out", gpu.target);
        assert_eq!(gpu.f(11, 1), 2f32.powi(-140 + 64), "the denormal denominator is scaled up");
        assert_eq!(gpu.f(10, 2), 2f32.powi(-120 + 64), "a tiny numerator too");
        let flagged = gpu.s64(4) & 0xf;
        assert_eq!(flagged & 1, 0, "and the mask tells which quotients need a scale behind");
        assert_eq!([gpu.f(12, 0), gpu.f(12, 1)], [1025.0, 1.0 + 2f32.powi(-10)], "VCC 0: a plain fma");
        let scaled = [gpu.f(12, 2), gpu.f(12, 3)];
        assert_eq!(scaled, [1025.0 * 2f32.powi(64), (1.0 + 2f32.powi(-10)) * 2f32.powi(-64)], "VCC 1: scaled");
        assert_eq!(gpu.f(13, 1), 0.5, "the quotient, with the sign of the operands");
    });
}

#[test]
fn sine_and_cosine_take_turns() {
    let gfx9 = "
        .gfx90a
        7e085301  v_sin_f32_e32 v4, v1
        7e0a5501  v_cos_f32_e32 v5, v1
    ";
    let gfx11 = "
        .gfx1100
        7e086b01  v_sin_f32_e32 v4, v1
        7e0a6d01  v_cos_f32_e32 v5, v1
    ";
    let cases = [
        (0.25f32, 1.0, 0.0),
        (0.5, 0.0, -1.0),
        (-0.25, -1.0, 0.0),
        (1.0, 0.0, 1.0),
        (100.25, 1.0, 0.0),
        (300.0, 0.0, 1.0),
        (1e10, 0.0, 1.0),
    ];
    each(&[gfx9, gfx11], |gpu| {
        gpu.set(1, |lane| cases[lane as usize % cases.len()].0.to_bits());
        gpu.ok();
        for (lane, (turns, sine, cosine)) in (0..).zip(cases) {
            let close = (gpu.f(4, lane) - sine).abs() < 1e-5 && (gpu.f(5, lane) - cosine).abs() < 1e-5;
            assert!(close, "{} {turns} turns: {} {}", gpu.target, gpu.f(4, lane), gpu.f(5, lane));
        }
    });
}

#[test]
fn reciprocals_and_exponentials_of_f32_take_and_give_no_denormals() {
    let gfx9 = "
        .gfx90a
        7e084501  v_rcp_f32_e32 v4, v1
        7e0a4901  v_rsq_f32_e32 v5, v1
        7e0c4301  v_log_f32_e32 v6, v1
        7e0e4102  v_exp_f32_e32 v7, v2
        7e104503  v_rcp_f32_e32 v8, v3
        7e12470a  v_rcp_iflag_f32_e32 v9, v10
        7e184b0e  v_rcp_f64_e32 v[12:13], v[14:15]
    ";
    let gfx11 = "
        .gfx1100
        7e085501  v_rcp_f32_e32 v4, v1
        7e0a5d01  v_rsq_f32_e32 v5, v1
        7e0c4f01  v_log_f32_e32 v6, v1
        7e0e4b02  v_exp_f32_e32 v7, v2
        7e105503  v_rcp_f32_e32 v8, v3
        7e12570a  v_rcp_iflag_f32_e32 v9, v10
        7e185f0e  v_rcp_f64_e32 v[12:13], v[14:15]
    ";
    each(&[gfx9, gfx11], |gpu| {
        (gpu.fill(1, 0x100), gpu.fill_f(2, -140.0), gpu.fill_f(3, 2f32.powi(127)), gpu.fill_f(10, 3.0));
        gpu.fill64(14, 3f64.to_bits());
        gpu.ok();
        assert_eq!([gpu.f(4, 0), gpu.f(5, 0), gpu.f(6, 0)], [f32::INFINITY, f32::INFINITY, f32::NEG_INFINITY]);
        assert_eq!([gpu.v(7, 0), gpu.v(8, 0)], [0, 0]);
        assert!((gpu.f(9, 0) - 1.0 / 3.0).abs() < 1e-7 && (gpu.d(12, 0) - 1.0 / 3.0).abs() < 1e-7);
    });
}

#[test]
fn conversions_saturate_and_take_nan_for_0_and_to_floats_round_to_even() {
    let gfx9 = "
        .gfx90a
        7e080f01  v_cvt_u32_f32_e32 v4, v1
        7e0a1101  v_cvt_i32_f32_e32 v5, v1
        7e0c0d02  v_cvt_f32_u32_e32 v6, v2
        7e0e070a  v_cvt_i32_f64_e32 v7, v[10:11]
        7e107703  v_cvt_u16_f16_e32 v8, v3
        d2960009 0002190c  v_cvt_pkrtz_f16_f32 v9, v12, v12
        7e1a7903  v_cvt_i16_f16_e32 v13, v3
    ";
    let gfx11 = "
        .gfx1100
        7e080f01  v_cvt_u32_f32_e32 v4, v1
        7e0a1101  v_cvt_i32_f32_e32 v5, v1
        7e0c0d02  v_cvt_f32_u32_e32 v6, v2
        7e0e070a  v_cvt_i32_f64_e32 v7, v[10:11]
        7e10a503  v_cvt_u16_f16_e32 v8.l, v3.l
        5e12190c  v_cvt_pk_rtz_f16_f32_e32 v9, v12, v12
        7e1aa703  v_cvt_i16_f16_e32 v13.l, v3.l
    ";
    let floats = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 3e9, -3e9, -0.9, 7.9];
    let unsigned = [0, u32::MAX, 0, 3_000_000_000, 0, 0, 7];
    let signed = [0, 0x7fff_ffff, 0x8000_0000, 0x7fff_ffff, 0x8000_0000, 0, 7];
    each(&[gfx9, gfx11], |gpu| {
        gpu.set(1, |lane| floats[lane as usize % 7].to_bits());
        gpu.set64(10, |lane| (floats[lane as usize % 7] as f64).to_bits());
        // Halfway between two floats, the lower of them even, then the upper.
        gpu.set(2, |lane| if lane % 2 == 0 { 0x0100_0001 } else { 0x0100_0003 });
        (gpu.fill(3, 0xfc00), gpu.fill(8, 0), gpu.fill(13, 0), gpu.fill_f(12, 65535.0));
        gpu.ok();
        for lane in 0..7 {
            let at = lane as usize;
            assert_eq!(
                [gpu.v(4, lane), gpu.v(5, lane), gpu.v(7, lane)],
                [unsigned[at], signed[at], signed[at]],
                "{}",
                floats[at]
            );
        }
        assert_eq!([gpu.f(6, 0), gpu.f(6, 1)], [16_777_216.0, 16_777_220.0]);
        assert_eq!([gpu.v(8, 0), gpu.v(13, 0), gpu.v(9, 0)], [0, 0x8000, 0x7bff_7bff], "towards zero: no infinity");
    });
}

#[test]
fn frexp_ldexp_fract_and_class_have_their_edges() {
    let gfx9 = "
        .gfx90a
        7e086701  v_frexp_exp_i32_f32_e32 v4, v1
        7e0a6901  v_frexp_mant_f32_e32 v5, v1
        7e0c3702  v_fract_f32_e32 v6, v2
        d2880007 00021503  v_ldexp_f32 v7, v3, v10
        7c201701  v_cmp_class_f32_e32 vcc, v1, v11
        7e18650e  v_fract_f64_e32 v[12:13], v[14:15]
        d2840010 00021512  v_ldexp_f64 v[16:17], v[18:19], v10
    ";
    let gfx11 = "
        .gfx1100
        7e087f01  v_frexp_exp_i32_f32_e32 v4, v1
        7e0a8101  v_frexp_mant_f32_e32 v5, v1
        7e0c4102  v_fract_f32_e32 v6, v2
        d71c0007 00021503  v_ldexp_f32 v7, v3, v10
        7cfc1701  v_cmp_class_f32_e32 vcc_lo, v1, v11
        7e187d0e  v_fract_f64_e32 v[12:13], v[14:15]
        d72b0010 00021512  v_ldexp_f64 v[16:17], v[18:19], v10
    ";
    // Signalling NaN, quiet NaN, -inf, -normal, -denormal, -0, +0, +denormal, +normal, +inf: bits 0 to 9.
    let classes = [
        0x7f80_0001u32,
        0x7fc0_0000,
        0xff80_0000,
        0xbf80_0000,
        0x8000_0001,
        0x8000_0000,
        0,
        0x0040_0000,
        0x4040_0000,
        0x7f80_0000,
    ];
    each(&[gfx9, gfx11], |gpu| {
        gpu.set(1, |lane| classes[lane as usize % 10]);
        gpu.set(11, |lane| 1 << (lane % 10));
        (
            gpu.fill(2, 0xb380_0000),
            gpu.fill_f(3, 1.5),
            gpu.set(10, |lane| if lane == 0 { 200 } else { -149i32 as u32 }),
        );
        gpu.fill64(14, (-2f64.powi(-60)).to_bits());
        gpu.fill64(18, 1f64.to_bits());
        gpu.ok();
        assert_eq!(gpu.vcc(), gpu.wave.full_mask(), "{}: each value is of its class", gpu.target);
        let exponents = [4, 7, 8].map(|lane| gpu.v(4, lane) as i32);
        assert_eq!(exponents, [-148, -126, 2], "denormals have an exponent of their own");
        assert_eq!([1, 2, 5, 6, 9].map(|lane| gpu.v(4, lane)), [0; 5], "NaN, infinities and zeros have none");
        assert_eq!([gpu.f(5, 4), gpu.f(5, 7), gpu.f(5, 8)], [-0.5, 0.5, 0.75]);
        assert_eq!([gpu.v(5, 2), gpu.v(5, 5), gpu.v(5, 9)], [0xff80_0000, 0x8000_0000, 0x7f80_0000]);
        // The fraction of -2^-24 would round to 1.
        assert!(gpu.f(6, 0) < 1.0 && gpu.d(12, 0) < 1.0);
        assert_eq!(
            (gpu.f(7, 0), gpu.v(7, 1), gpu.d(16, 0)),
            (f32::INFINITY, 2, 2f64.powi(200)),
            "1.5 * 2^-149 rounds to even"
        );
    });
}

#[test]
fn scalar_floats_exist_on_gfx12_alone() {
    let gfx12 = "
        .gfx1201
        a0040302  s_add_f32 s4, s2, s3
        a3850302  s_fmac_f32 s5, s2, s3
        bf410302  s_cmp_lt_f32 s2, s3
        be866603  s_cvt_i32_f32 s6, s3
    ";
    each(&[gfx12], |gpu| {
        (gpu.set_s(2, 1.5f32.to_bits()), gpu.set_s(3, 2.25f32.to_bits()), gpu.set_s(5, 1f32.to_bits()));
        gpu.ok();
        assert_eq!([gpu.s(4), gpu.s(5)].map(f32::from_bits), [3.75, 4.375]);
        assert_eq!((gpu.s(6), gpu.wave.scc), (2, true));
    });
    // The encoding of s_add_f32 is no instruction of GFX11.
    let line = gfx12.lines().nth(2).unwrap();
    let foreign = format!(".gfx1100\n{:08x} .long\n", words(line)[0]);
    each(&[&foreign], |gpu| assert_eq!(gpu.fault().kind, trace::FaultKind::IllegalInstruction));
}

#[test]
fn bf16_conversions_round_to_even_and_quiet_nans() {
    let gfx11 = "
        .gfx1100
        cc1a4004 1c0e0501  v_dot2_f32_bf16 v4, v1, v2, v3
        d6670005 041a0501  v_dot2_bf16_bf16 v5.l, v1, v2, v6.l
    ";
    each(&[gfx11], |gpu| {
        // (2, 1) and (8, 4), high half first.
        (gpu.fill(1, 0x4000_3f80), gpu.fill(2, 0x4100_4080), gpu.fill_f(3, 0.5));
        (gpu.fill(5, 0xaaaa_0000), gpu.set(6, |lane| if lane == 1 { 0x7f81 } else { 0x3e40 }));
        gpu.ok();
        assert_eq!(gpu.f(4, 0), 20.5);
        // 20.1875 lies halfway between two bf16: the even one is the upper.
        assert_eq!(gpu.v(5, 0), 0xaaaa_41a2);
        assert_eq!(gpu.v(5, 1) & 0x7fc0, 0x7fc0, "a signalling NaN is quieted");
    });
}

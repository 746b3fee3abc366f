//! Operand modifiers: signs, output modifiers, clamp, halves, SDWA.

use super::*;

#[test]
fn absolute_value_comes_before_negation_and_both_touch_the_sign_bit_alone() {
    let gfx9 = "
        .gfx90a
        d1010104 20020501  v_add_f32_e64 v4, -|v1|, v2
        d1000205 202a0703  v_cndmask_b32_e64 v5, -v3, |v3|, s[10:11]
        d1000106 202a0703  v_cndmask_b32_e64 v6, -|v3|, v3, s[10:11]
        d1cc0108 2432190c  v_fma_f64 v[8:9], -|v[12:13]|, v[12:13], v[12:13]
        d10b0007 60021d0e  v_max_f32_e64 v7, -v14, -v14
    ";
    let gfx11 = "
        .gfx1100
        d5030104 20020501  v_add_f32_e64 v4, -|v1|, v2
        d5010205 202a0703  v_cndmask_b32_e64 v5, -v3, |v3|, s10
        d5010106 202a0703  v_cndmask_b32_e64 v6, -|v3|, v3, s10
        d6140108 2432190c  v_fma_f64 v[8:9], -|v[12:13]|, v[12:13], v[12:13]
        d5100007 60021d0e  v_max_f32_e64 v7, -v14, -v14
    ";
    each(&[gfx9, gfx11], |gpu| {
        gpu.set(1, |lane| if lane % 2 == 0 { 3f32 } else { -3.0 }.to_bits());
        gpu.fill_f(2, 1.0);
        // A signalling NaN: moves keep what is not the sign.
        gpu.fill(3, 0x7f81_2345);
        gpu.fill_f(14, 2.0);
        gpu.fill64(12, (-2.0f64).to_bits());
        gpu.set_s64(10, 0b10);
        gpu.ok();
        assert_eq!([gpu.f(4, 0), gpu.f(4, 1)], [-2.0, -2.0]);
        assert_eq!([gpu.v(5, 0), gpu.v(5, 1), gpu.v(6, 0)], [0xff81_2345, 0x7f81_2345, 0xff81_2345]);
        assert_eq!((gpu.d(8, 0), gpu.f(7, 0)), (2.0, -2.0));
    });
}

#[test]
fn output_modifiers_count_without_denormals_and_ieee_alone_and_make_plus_zero() {
    let gfx9 = "
        .gfx90a
        d1010004 08020501  v_add_f32_e64 v4, v1, v2 mul:2
        d1010005 10020501  v_add_f32_e64 v5, v1, v2 mul:4
        d1010006 18020501  v_add_f32_e64 v6, v1, v2 div:2
        d1050007 08020701  v_mul_f32_e64 v7, v1, v3 mul:2
        d1018008 08020501  v_add_f32_e64 v8, v1, v2 clamp mul:2
    ";
    let gfx11 = "
        .gfx1100
        d5030004 08020501  v_add_f32_e64 v4, v1, v2 mul:2
        d5030005 10020501  v_add_f32_e64 v5, v1, v2 mul:4
        d5030006 18020501  v_add_f32_e64 v6, v1, v2 div:2
        d5080007 08020701  v_mul_f32_e64 v7, v1, v3 mul:2
        d5038008 08020501  v_add_f32_e64 v8, v1, v2 clamp mul:2
    ";
    each(&[gfx9, gfx11], |gpu| {
        gpu.fill_f(1, 0.25);
        gpu.fill_f(2, 0.5);
        gpu.fill_f(3, -0.0);
        // Rounding and denormals in 7:0, DX10_CLAMP 8, IEEE 9.
        for (mode, counts) in [(0x0c0, true), (0x1c0, true), (0x2c0, false), (0x0f0, false), (0x3f0, false)] {
            gpu.wave.mode = mode;
            gpu.ok();
            let got = [gpu.f(4, 0), gpu.f(5, 0), gpu.f(6, 0), gpu.f(8, 0)];
            let wanted = if counts { [1.5, 3.0, 0.375, 1.0] } else { [0.75, 0.75, 0.75, 0.75] };
            assert_eq!(got, wanted, "{} MODE {mode:#x}", gpu.target);
            assert_eq!(gpu.v(7, 0), if counts { 0 } else { 0x8000_0000 }, "MODE {mode:#x}");
        }
    });
}

#[test]
fn clamp_limits_floats_saturates_integers_and_takes_halves_and_mixed_results() {
    let gfx9 = "
        .gfx90a
        d101800a 00020501  v_add_f32_e64 v10, v1, v2 clamp
        d105800b 00020701  v_mul_f32_e64 v11, v1, v3 clamp
        d134800c 00020904  v_add_u32_e64 v12, v4, v4 clamp
        d135800d 00020885  v_sub_u32_e64 v13, 5, v4 clamp
        d29c800e 00020b05  v_add_i32 v14, v5, v5 clamp
        d38fc00f 18020f06  v_pk_add_f16 v15, v6, v7 clamp
        d38ac010 18021108  v_pk_add_u16 v16, v8, v8 clamp
        d3a08011 040a0501  v_fma_mix_f32 v17, v1, v2, v2 clamp
        d1c38012 04120904  v_mad_u32_u24 v18, v4, v4, v4 clamp
        d2808014 00022d16  v_add_f64 v[20:21], v[22:23], v[22:23] clamp
        d1268013 00020904  v_add_u16_e64 v19, v4, v4 clamp
    ";
    let gfx11 = "
        .gfx1100
        d503800a 00020501  v_add_f32_e64 v10, v1, v2 clamp
        d508800b 00020701  v_mul_f32_e64 v11, v1, v3 clamp
        d525800c 00020904  v_add_nc_u32_e64 v12, v4, v4 clamp
        d526800d 00020885  v_sub_nc_u32_e64 v13, 5, v4 clamp
        d726800e 00020b05  v_add_nc_i32 v14, v5, v5 clamp
        cc0fc00f 18020f06  v_pk_add_f16 v15, v6, v7 clamp
        cc0ac010 18021108  v_pk_add_u16 v16, v8, v8 clamp
        cc208011 040a0501  v_fma_mix_f32 v17, v1, v2, v2 clamp
        d60b8012 04120904  v_mad_u32_u24 v18, v4, v4, v4 clamp
        d7278014 00022d16  v_add_f64 v[20:21], v[22:23], v[22:23] clamp
        d7038013 00020904  v_add_nc_u16 v19.l, v4.l, v4.l clamp
    ";
    each(&[gfx9, gfx11], |gpu| {
        (gpu.fill_f(1, 3.0), gpu.fill_f(2, 0.5), gpu.fill_f(3, -2.0));
        (gpu.fill(4, 0x8fff_ffff), gpu.fill(5, 0x8000_0001));
        (gpu.fill(6, 0xc000_3800), gpu.fill(7, 0x3c00_3c00));
        (gpu.fill(8, 0x8001_0002), gpu.fill(19, 0));
        gpu.fill64(22, (-1.0f64).to_bits());
        gpu.ok();
        assert_eq!([gpu.f(10, 0), gpu.f(11, 0)], [1.0, 0.0]);
        assert_eq!([gpu.v(12, 0), gpu.v(13, 0), gpu.v(14, 0)], [u32::MAX, 0, 0x8000_0000]);
        // 0.5 + 1 and -2 + 1, each half by itself.
        assert_eq!([gpu.v(15, 0), gpu.v(16, 0)], [0x0000_3c00, 0xffff_0004]);
        assert_eq!((gpu.f(17, 0), gpu.v(18, 0), gpu.d(20, 0)), (1.0, u32::MAX, 0.0));
        assert_eq!(gpu.v(19, 0), 0xffff);
    });
}

#[test]
fn dx10_clamp_and_ieee_are_bits_of_mode_until_gfx11_and_fixed_on_gfx12() {
    let gfx9 = "
        .gfx90a
        d1058004 00020301  v_mul_f32_e64 v4, v1, v1 clamp
        140a0702  v_min_f32_e32 v5, v2, v3
    ";
    let gfx11 = "
        .gfx1100
        d5088004 00020301  v_mul_f32_e64 v4, v1, v1 clamp
        1e0a0702  v_min_f32_e32 v5, v2, v3
    ";
    let gfx12 = "
        .gfx1201
        d5088004 00020301  v_mul_f32_e64 v4, v1, v1 clamp
        2a0a0702  v_min_num_f32_e32 v5, v2, v3
        d7650006 00020702  v_minimum_f32 v6, v2, v3
        d7660007 00020503  v_maximum_f32 v7, v3, v2
        d7650008 00021303  v_minimum_f32 v8, v3, v9
    ";
    each(&[gfx9, gfx11, gfx12], |gpu| {
        gpu.fill(1, 0x7fc0_0001);
        gpu.fill(2, 0x7f80_0001);
        gpu.fill_f(3, 3.0);
        gpu.fill_f(9, -1.0);
        if gpu.target == Target::Gfx1201 {
            // What a kernel descriptor gives there, whatever its bits say.
            gpu.ok();
            assert_eq!((gpu.v(4, 0), gpu.f(5, 0)), (0, 3.0), "NaN is clamped to 0, a number beats it");
            let nans = [gpu.v(6, 0), gpu.v(7, 0)];
            assert_eq!((nans, gpu.f(8, 0)), ([0x7fc0_0001; 2], -1.0), "minimum and maximum propagate");
            return;
        }
        for (mode, clamped, least) in [
            (0x3f0, 0, 0x7fc0_0001),
            (0x2f0, 0x7fc0_0001, 0x7fc0_0001),
            (0x1f0, 0, 3f32.to_bits()),
            (0x0f0, 0x7fc0_0001, 3f32.to_bits()),
        ] {
            gpu.wave.mode = mode;
            gpu.ok();
            assert_eq!([gpu.v(4, 0), gpu.v(5, 0)], [clamped, least], "{} MODE {mode:#x}", gpu.target);
        }
    });
}

#[test]
fn a_quiet_nan_loses_in_minima_and_minus_zero_is_below_zero() {
    let gfx9 = "
        .gfx90a
        14140501  v_min_f32_e32 v10, v1, v2
        16160302  v_max_f32_e32 v11, v2, v1
        14180903  v_min_f32_e32 v12, v3, v4
        161a0704  v_max_f32_e32 v13, v4, v3
        d282000e 00021106  v_min_f64 v[14:15], v[6:7], v[8:9]
        5a202b14  v_max_f16_e32 v16, v20, v21
        d1d00011 04120501  v_min3_f32 v17, v1, v2, v4
        d1d60012 04120501  v_med3_f32 v18, v1, v2, v4
        d3914013 18022b14  v_pk_min_f16 v19, v20, v21
    ";
    let gfx11 = "
        .gfx1100
        1e140501  v_min_f32_e32 v10, v1, v2
        20160302  v_max_f32_e32 v11, v2, v1
        1e180903  v_min_f32_e32 v12, v3, v4
        201a0704  v_max_f32_e32 v13, v4, v3
        d729000e 00021106  v_min_f64 v[14:15], v[6:7], v[8:9]
        72202b14  v_max_f16_e32 v16.l, v20.l, v21.l
        d6190011 04120501  v_min3_f32 v17, v1, v2, v4
        d61f0012 04120501  v_med3_f32 v18, v1, v2, v4
        cc114013 18022b14  v_pk_min_f16 v19, v20, v21
    ";
    each(&[gfx9, gfx11], |gpu| {
        (gpu.fill(1, 0x7fc0_0000), gpu.fill_f(2, 5.0), gpu.fill_f(3, 0.0), gpu.fill_f(4, -0.0));
        gpu.fill64(6, f64::NAN.to_bits());
        gpu.fill64(8, (-0.0f64).to_bits());
        (gpu.fill(20, 0x7e00_8000), gpu.fill(21, 0x3c00_0000), gpu.fill(16, 0));
        gpu.ok();
        assert_eq!([gpu.f(10, 0), gpu.f(11, 0)], [5.0, 5.0]);
        assert_eq!([gpu.v(12, 0), gpu.v(13, 0)], [0x8000_0000, 0]);
        assert_eq!((gpu.v64(14, 0), gpu.v(16, 0)), (1 << 63, 0));
        // Minimum of three: the NaN does not count. Median with a NaN: the minimum.
        assert_eq!([gpu.v(17, 0), gpu.v(18, 0)], [0x8000_0000; 2]);
        assert_eq!(gpu.v(19, 0), 0x3c00_8000);
    });
}

#[test]
fn op_sel_chooses_halves_and_the_other_half_of_the_result_stays() {
    let gfx9 = "
        .gfx90a
        d2040004 040e0501  v_mad_u16 v4, v1, v2, v3
        d2041805 040e0501  v_mad_u16 v5, v1, v2, v3 op_sel:[1,1,0,0]
        d2047006 040e0501  v_mad_u16 v6, v1, v2, v3 op_sel:[0,1,1,1]
        d2064807 045a2b14  v_fma_f16 v7, v20, v21, v22 op_sel:[1,0,0,1]
        d29e4808 00020501  v_add_i16 v8, v1, v2 op_sel:[1,0,1]
    ";
    let gfx10 = "
        .gfx1030
        d7400004 040e0501  v_mad_u16 v4, v1, v2, v3
        d7401805 040e0501  v_mad_u16 v5, v1, v2, v3 op_sel:[1,1,0,0]
        d7407006 040e0501  v_mad_u16 v6, v1, v2, v3 op_sel:[0,1,1,1]
        d74b4807 045a2b14  v_fma_f16 v7, v20, v21, v22 op_sel:[1,0,0,1]
        d70d4808 00020501  v_add_nc_i16 v8, v1, v2 op_sel:[1,0,1]
    ";
    let gfx11 = "
        .gfx1100
        d6410004 040e0501  v_mad_u16 v4.l, v1.l, v2.l, v3.l
        d6411805 040e0501  v_mad_u16 v5.l, v1.h, v2.h, v3.l op_sel:[1,1,0,0]
        d6417006 040e0501  v_mad_u16 v6.h, v1.l, v2.h, v3.h op_sel:[0,1,1,1]
        d6484807 045a2b14  v_fma_f16 v7.h, v20.h, v21.l, v22.l op_sel:[1,0,0,1]
        d70d4808 00020501  v_add_nc_i16 v8.h, v1.h, v2.l op_sel:[1,0,1]
    ";
    each(&[gfx9, gfx10, gfx11], |gpu| {
        (gpu.fill(1, 0x0007_0003), gpu.fill(2, 0x000b_0005), gpu.fill(3, 0x0100_0001));
        (gpu.fill(20, 0x4000_0000), gpu.fill(21, 0x4200), gpu.fill(22, 0x3c00));
        (4..9).for_each(|register| gpu.fill(register, 0xaaaa_bbbb));
        gpu.ok();
        assert_eq!([gpu.v(4, 1), gpu.v(5, 1), gpu.v(6, 1)], [0xaaaa_0010, 0xaaaa_004e, 0x0121_bbbb], "{}", gpu.target);
        assert_eq!([gpu.v(7, 1), gpu.v(8, 1)], [0x4700_bbbb, 0x000c_bbbb]);
    });
}

#[test]
fn two_operand_halves_clear_the_upper_half_on_gfx9_and_keep_it_later() {
    let gfx9 = "
        .gfx900
        3e080501  v_add_f16_e32 v4, v1, v2
        7e0a1503  v_cvt_f16_f32_e32 v5, v3
        4c0c0501  v_add_u16_e32 v6, v1, v2
        7e0e7b02  v_rcp_f16_e32 v7, v2
        54100281  v_lshlrev_b16_e32 v8, 1, v1
        d2060009 040a0501  v_fma_f16 v9, v1, v2, v2
        d204000a 040a0501  v_mad_u16 v10, v1, v2, v2
    ";
    let gfx10 = "
        .gfx1030
        64080501  v_add_f16_e32 v4, v1, v2
        7e0a1503  v_cvt_f16_f32_e32 v5, v3
        d7030006 00020501  v_add_nc_u16 v6, v1, v2
        7e0ea902  v_rcp_f16_e32 v7, v2
        d7140008 00020281  v_lshlrev_b16 v8, 1, v1
        d74b0009 040a0501  v_fma_f16 v9, v1, v2, v2
        d740000a 040a0501  v_mad_u16 v10, v1, v2, v2
    ";
    each(&[gfx9, gfx10], |gpu| {
        (gpu.fill(1, 0x4000), gpu.fill(2, 0x3c00), gpu.fill_f(3, 3.0));
        (4..11).for_each(|register| gpu.fill(register, 0xaaaa_bbbb));
        gpu.ok();
        let low = [0x4200, 0x4200, 0x7c00, 0x3c00, 0x8000];
        let kept = if gpu.gfx9() { 0 } else { 0xaaaa_0000 };
        assert_eq!([4, 5, 6, 7, 8].map(|register| gpu.v(register, 0)), low.map(|half| kept | half), "{}", gpu.target);
        // Three operands keep it on GFX9 already.
        let product = (0x4000u32 * 0x3c00 + 0x3c00) & 0xffff;
        assert_eq!([gpu.v(9, 0), gpu.v(10, 0)], [0xaaaa_4200, 0xaaaa_0000 | product], "{}", gpu.target);
    });
}

#[test]
fn bit_7_of_a_true16_register_number_is_the_high_half() {
    let gfx11 = "
        .gfx1100
        65080581  v_add_f16_e32 v4.h, v1.h, v2.l
        7e0a3981  v_mov_b16_e32 v5.l, v1.h
        d6482806 04060501  v_fma_f16 v6.l, v1.h, v2.l, v1.h op_sel:[1,0,1,0]
        6d0e0581  v_fmac_f16_e32 v7.h, v1.h, v2.l
        7c040581  v_cmp_eq_f16_e32 vcc_lo, v1.h, v2.l
        6e110781 00004000  v_fmamk_f16 v8.l, v1.h, 0x4000, v3.h
        7e121781  v_cvt_f32_f16_e32 v9, v1.h
    ";
    let gfx12 = "
        .gfx1201
        65080581  v_add_f16_e32 v4.h, v1.h, v2.l
        7e0a3981  v_mov_b16_e32 v5.l, v1.h
        d6482806 04060501  v_fma_f16 v6.l, v1.h, v2.l, v1.h op_sel:[1,0,1,0]
        6d0e0581  v_fmac_f16_e32 v7.h, v1.h, v2.l
        7c040581  v_cmp_eq_f16_e32 vcc_lo, v1.h, v2.l
        6e110781 00004000  v_fmamk_f16 v8.l, v1.h, 0x4000, v3.h
        7e121781  v_cvt_f32_f16_e32 v9, v1.h
    ";
    each(&[gfx11, gfx12], |gpu| {
        // v1 = (3, 100), v2 = (64, 1), v3 = (5, 0), high half first.
        (gpu.fill(1, 0x4200_5640), gpu.fill(2, 0x5400_3c00), gpu.fill(3, 0x4500_0000));
        (4..9).for_each(|register| gpu.fill(register, 0x3c00_bbbb));
        gpu.ok();
        assert_eq!([gpu.v(4, 0), gpu.v(5, 0), gpu.v(6, 0)], [0x4400_bbbb, 0x3c00_4200, 0x3c00_4600], "{}", gpu.target);
        // 1 + 3 * 1, and 3 * 2 + 5.
        assert_eq!([gpu.v(7, 0), gpu.v(8, 0)], [0x4400_bbbb, 0x3c00_4980]);
        assert_eq!((gpu.f(9, 0), gpu.vcc()), (3.0, 0));
    });
}

#[test]
fn packed_selectors_choose_halves_and_of_packed_f32_registers() {
    let gfx9 = "
        .gfx90a
        d38f400a 18020501  v_pk_add_f16 v10, v1, v2
        d38f400b 00020501  v_pk_add_f16 v11, v1, v2 op_sel_hi:[0,0]
        d38f480c 10020501  v_pk_add_f16 v12, v1, v2 op_sel:[1,0] op_sel_hi:[0,1]
        d38f420d 38020501  v_pk_add_f16 v13, v1, v2 neg_lo:[1,0] neg_hi:[0,1]
        d3b2400e 18020d04  v_pk_add_f32 v[14:15], v[4:5], v[6:7]
        d3b14810 10020d04  v_pk_mul_f32 v[16:17], v[4:5], v[6:7] op_sel:[1,0] op_sel_hi:[0,1]
        d3b04012 24120d04  v_pk_fma_f32 v[18:19], v[4:5], v[6:7], v[4:5] op_sel_hi:[0,0,1] neg_lo:[1,0,0]
        d3b34814 18020d04  v_pk_mov_b32 v[20:21], v[4:5], v[6:7] op_sel:[1,0]
        d3b24016 10020c0a  v_pk_add_f32 v[22:23], s[10:11], v[6:7] op_sel_hi:[0,1]
    ";
    each(&[gfx9], |gpu| {
        // v1 = (2, 1), v2 = (8, 4), high half first.
        (gpu.fill(1, 0x4000_3c00), gpu.fill(2, 0x4800_4400));
        (gpu.fill_f(4, 1.0), gpu.fill_f(5, 2.0), gpu.fill_f(6, 10.0), gpu.fill_f(7, 20.0));
        (gpu.set_s(10, 3f32.to_bits()), gpu.set_s(11, 4f32.to_bits()));
        gpu.ok();
        let packed = [10, 11, 12, 13].map(|register| gpu.v(register, 3));
        assert_eq!(packed, [0x4900_4500, 0x4500_4500, 0x4880_4600, 0xc600_4200]);
        let pair = |register| [gpu.f(register, 3), gpu.f(register + 1, 3)];
        assert_eq!([pair(14), pair(16), pair(18)], [[11.0, 22.0], [20.0, 20.0], [-9.0, 12.0]]);
        assert_eq!([pair(20), pair(22)], [[2.0, 10.0], [13.0, 23.0]]);
    });
}

#[test]
fn mixed_operations_are_fused_and_read_op_sel_hi_as_f16_and_neg_hi_as_absolute() {
    let gfx9 = "
        .gfx90a
        d3a00804 1c0e0501  v_fma_mix_f32 v4, v1, v2, v3 op_sel:[1,0,0] op_sel_hi:[1,1,0]
        d3a00905 3c0e0501  v_fma_mix_f32 v5, -|v1|, v2, v3 op_sel:[1,0,0] op_sel_hi:[1,1,0]
        d3a00006 042e150a  v_fma_mix_f32 v6, v10, v10, v11
        d3a10007 040e0703  v_fma_mixlo_f16 v7, v3, v3, v3
        d3a20407 04320703  v_fma_mixhi_f16 v7, v3, v3, |v12|
    ";
    let gfx11 = "
        .gfx1100
        cc200804 1c0e0501  v_fma_mix_f32 v4, v1, v2, v3 op_sel:[1,0,0] op_sel_hi:[1,1,0]
        cc200905 3c0e0501  v_fma_mix_f32 v5, -|v1|, v2, v3 op_sel:[1,0,0] op_sel_hi:[1,1,0]
        cc200006 042e150a  v_fma_mix_f32 v6, v10, v10, v11
        cc210007 040e0703  v_fma_mixlo_f16 v7, v3, v3, v3
        cc220407 04320703  v_fma_mixhi_f16 v7, v3, v3, |v12|
    ";
    each(&[gfx9, gfx11], |gpu| {
        // The high half of v1 is -2, the low half of v2 3; v3 is 0.5.
        (gpu.fill(1, 0xc000_7e00), gpu.fill(2, 0x7e00_4200), gpu.fill_f(3, 0.5), gpu.fill_f(12, -0.75));
        (gpu.fill_f(10, 1.0 + 2f32.powi(-12)), gpu.fill_f(11, -1.0 - 2f32.powi(-11)));
        gpu.ok();
        assert_eq!([gpu.f(4, 0), gpu.f(5, 0), gpu.f(6, 0)], [-5.5, -5.5, 2f32.powi(-24)]);
        assert_eq!(gpu.v(7, 0), 0x3c00_3a00, "0.25 + 0.5 below, 0.25 + 0.75 above");
    });
}

#[test]
fn sdwa_selects_parts_of_sources_and_destination() {
    let gfx9 = "
        .gfx900
        680804f9 05010601  v_add_u32_sdwa v4, v1, v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_1 src1_sel:WORD_1
        680a04f9 04090601  v_add_u32_sdwa v5, sext(v1), v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_1 src1_sel:WORD_0
        7e0c02f9 00000201  v_mov_b32_sdwa v6, v1 dst_sel:BYTE_2 dst_unused:UNUSED_PAD src0_sel:BYTE_0
        7e0e02f9 00010d01  v_mov_b32_sdwa v7, v1 dst_sel:WORD_1 dst_unused:UNUSED_SEXT src0_sel:BYTE_1
        7e1002f9 00031101  v_mov_b32_sdwa v8, v1 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_3
        7e1202f9 00010901  v_mov_b32_sdwa v9, v1 dst_sel:BYTE_1 dst_unused:UNUSED_SEXT src0_sel:BYTE_1
        7d9406f9 06018a01  v_cmp_eq_u32_sdwa s[10:11], v1, v3 src0_sel:BYTE_1 src1_sel:DWORD
        3e181af9 0415150d  v_add_f16_sdwa v12, -v13, v13 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_1 src1_sel:WORD_0
    ";
    let gfx10 = "
        .gfx1030
        4a0804f9 05010601  v_add_nc_u32_sdwa v4, v1, v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_1 src1_sel:WORD_1
        4a0a04f9 04090601  v_add_nc_u32_sdwa v5, sext(v1), v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_1 src1_sel:WORD_0
        7e0c02f9 00000201  v_mov_b32_sdwa v6, v1 dst_sel:BYTE_2 dst_unused:UNUSED_PAD src0_sel:BYTE_0
        7e0e02f9 00010d01  v_mov_b32_sdwa v7, v1 dst_sel:WORD_1 dst_unused:UNUSED_SEXT src0_sel:BYTE_1
        7e1002f9 00031101  v_mov_b32_sdwa v8, v1 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_3
        7e1202f9 00010901  v_mov_b32_sdwa v9, v1 dst_sel:BYTE_1 dst_unused:UNUSED_SEXT src0_sel:BYTE_1
        7d8406f9 06018a01  v_cmp_eq_u32_sdwa s10, v1, v3 src0_sel:BYTE_1 src1_sel:DWORD
        64181af9 0415150d  v_add_f16_sdwa v12, -v13, v13 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_1 src1_sel:WORD_0
    ";
    each(&[gfx9, gfx10], |gpu| {
        gpu.exec(0xff);
        (gpu.fill(1, 0x7f00_f012), gpu.fill(2, 0x0003_0100), gpu.fill(3, 0xf0));
        (4..10).for_each(|register| gpu.fill(register, 0x1122_3344));
        gpu.set_s64(10, u64::MAX);
        (gpu.fill(12, 0x1122_3344), gpu.fill(13, 0x4000_3c00));
        gpu.ok();
        assert_eq!([gpu.v(4, 0), gpu.v(5, 0)], [0xf3, 0xf0], "a byte, and a sign-extended one");
        assert_eq!([gpu.v(6, 0), gpu.v(7, 0)], [0x0012_0000, 0x00f0_0000], "zeros, and the sign above");
        assert_eq!([gpu.v(8, 0), gpu.v(9, 0)], [0x1122_7f44, 0xffff_f000], "the old bytes, and the sign above");
        assert_eq!((gpu.mask(gpu.s64(10)), gpu.vcc()), (0xff, 0), "a compare has a destination of its own");
        assert_eq!([gpu.v(12, 0), gpu.v(12, 9)], [0xbc00_3344, 0x1122_3344]);
    });
}

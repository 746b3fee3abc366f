//! Data crossing lanes.

use super::*;

#[test]
fn dpp16_controls_belong_to_generations() {
    let gfx9 = "
        .gfx90a
        7e1402fa ff001b01  v_mov_b32_dpp v10, v1 quad_perm:[3,2,1,0] row_mask:0xf bank_mask:0xf
        7e1602fa ff010101  v_mov_b32_dpp v11, v1 row_shl:1 row_mask:0xf bank_mask:0xf
        7e1802fa ff091201  v_mov_b32_dpp v12, v1 row_shr:2 row_mask:0xf bank_mask:0xf bound_ctrl:1
        7e1a02fa ff012101  v_mov_b32_dpp v13, v1 row_ror:1 row_mask:0xf bank_mask:0xf
        7e1c02fa ff014001  v_mov_b32_dpp v14, v1 row_mirror row_mask:0xf bank_mask:0xf
        7e1e02fa ff014101  v_mov_b32_dpp v15, v1 row_half_mirror row_mask:0xf bank_mask:0xf
        7e2002fa af014201  v_mov_b32_dpp v16, v1 row_bcast:15 row_mask:0xa bank_mask:0xf
        7e2202fa cf014301  v_mov_b32_dpp v17, v1 row_bcast:31 row_mask:0xc bank_mask:0xf
        7e2402fa ff013001  v_mov_b32_dpp v18, v1 wave_shl:1 row_mask:0xf bank_mask:0xf
        7e2602fa ff013c01  v_mov_b32_dpp v19, v1 wave_ror:1 row_mask:0xf bank_mask:0xf
        7e2802fa ff015301  v_mov_b32_dpp v20, v1 row_newbcast:3 row_mask:0xf bank_mask:0xf
    ";
    let gfx11 = "
        .gfx1100
        7e1402fa ff001b01  v_mov_b32_dpp v10, v1 quad_perm:[3,2,1,0] row_mask:0xf bank_mask:0xf
        7e1602fa ff010101  v_mov_b32_dpp v11, v1 row_shl:1 row_mask:0xf bank_mask:0xf
        7e1802fa ff091201  v_mov_b32_dpp v12, v1 row_shr:2 row_mask:0xf bank_mask:0xf bound_ctrl:1
        7e1a02fa ff012101  v_mov_b32_dpp v13, v1 row_ror:1 row_mask:0xf bank_mask:0xf
        7e1c02fa ff014001  v_mov_b32_dpp v14, v1 row_mirror row_mask:0xf bank_mask:0xf
        7e1e02fa ff014101  v_mov_b32_dpp v15, v1 row_half_mirror row_mask:0xf bank_mask:0xf
        7e2002fa ff015301  v_mov_b32_dpp v16, v1 row_share:3 row_mask:0xf bank_mask:0xf
        7e2202fa ff016501  v_mov_b32_dpp v17, v1 row_xmask:5 row_mask:0xf bank_mask:0xf
    ";
    type From = fn(u32) -> Option<u32>;
    let common: [From; 6] = [
        |lane| Some(lane ^ 3),
        |lane| (lane & 15 < 15).then(|| lane + 1),
        |lane| (lane & 15 >= 2).then(|| lane - 2),
        |lane| Some(lane & !15 | (lane + 15) & 15),
        |lane| Some(lane ^ 15),
        |lane| Some(lane ^ 7),
    ];
    let gfx9_alone: [From; 5] = [
        |lane| (lane & 16 != 0).then(|| (lane & !15) - 1),
        |lane| (lane >= 32).then_some(31),
        |lane| (lane < 63).then(|| lane + 1),
        |lane| Some((lane + 63) % 64),
        |lane| Some(lane & !15 | 3),
    ];
    let later: [From; 2] = [|lane| Some(lane & !15 | 3), |lane| Some(lane ^ 5)];
    each(&[gfx9, gfx11], |gpu| {
        gpu.set(1, |lane| 1000 + lane);
        (10..21).for_each(|register| gpu.fill(register, 7));
        gpu.ok();
        let own: &[From] = if gpu.gfx9() { &gfx9_alone } else { &later };
        for (register, from) in (10..).zip(common.iter().chain(own)) {
            for lane in 0..gpu.lanes() {
                // bound_ctrl gives 0 where the others keep the old value.
                let missing = if register == 12 { 0 } else { 7 };
                let wanted = from(lane).map_or(missing, |from| 1000 + from);
                assert_eq!(gpu.v(register, lane), wanted, "{} v{register} lane {lane}", gpu.target);
            }
        }
    });
    // row_bcast:15 on GFX11, row_newbcast on GFX900 and row_xmask on GFX90a are no controls.
    let foreign = [
        "
        .gfx1100
        7e1402fa  .long 0x7e1402fa
        ff014201  .long 0xff014201
    ",
        "
        .gfx900
        7e1402fa  .long 0x7e1402fa
        ff015301  .long 0xff015301
    ",
        "
        .gfx90a
        7e1402fa  .long 0x7e1402fa
        ff016501  .long 0xff016501
    ",
    ];
    each(&foreign, |gpu| assert_eq!(gpu.fault().kind, trace::FaultKind::IllegalInstruction, "{}", gpu.target));
}

#[test]
fn dpp_leaves_unwritten_what_its_masks_exclude_or_what_has_no_source() {
    let gfx9 = "
        .gfx90a
        7e1402fa 2500e401  v_mov_b32_dpp v10, v1 quad_perm:[0,1,2,3] row_mask:0x2 bank_mask:0x5
        7e1602fa ff010101  v_mov_b32_dpp v11, v1 row_shl:1 row_mask:0xf bank_mask:0xf
        7e1802fa ff090101  v_mov_b32_dpp v12, v1 row_shl:1 row_mask:0xf bank_mask:0xf bound_ctrl:1
        681a02fa ff011101  v_add_u32_dpp v13, v1, v1 row_shr:1 row_mask:0xf bank_mask:0xf
        7d9a0280  v_cmp_ne_u32_e32 vcc, 0, v1
    ";
    let gfx11 = "
        .gfx1100
        7e1402fa 2500e401  v_mov_b32_dpp v10, v1 quad_perm:[0,1,2,3] row_mask:0x2 bank_mask:0x5
        7e1602fa ff010101  v_mov_b32_dpp v11, v1 row_shl:1 row_mask:0xf bank_mask:0xf
        7e1802fa ff090101  v_mov_b32_dpp v12, v1 row_shl:1 row_mask:0xf bank_mask:0xf bound_ctrl:1
        4a1a02fa ff011101  v_add_nc_u32_dpp v13, v1, v1 row_shr:1 row_mask:0xf bank_mask:0xf
        7c9a0280  v_cmp_ne_u32_e32 vcc_lo, 0, v1
        7e1c02fa ff050101  v_mov_b32_dpp v14, v1 row_shl:1 row_mask:0xf bank_mask:0xf fi:1
        7e1e02e9 de54c101  v_mov_b32_dpp v15, v1 dpp8:[1,0,3,2,5,4,7,6]
        7e2002ea de54c101  v_mov_b32_dpp v16, v1 dpp8:[1,0,3,2,5,4,7,6] fi:1
    ";
    each(&[gfx9, gfx11], |gpu| {
        gpu.set(1, |lane| 1000 + lane);
        (10..17).for_each(|register| gpu.fill(register, 7));
        // Lane 5 is off: lane 4 has no source with row_shl:1, lane 6 none with row_shr:1.
        gpu.exec(!(1 << 5));
        gpu.ok();
        for lane in (0..gpu.lanes()).filter(|lane| *lane != 5) {
            let writes = lane >> 4 == 1 && lane >> 2 & 1 == 0;
            assert_eq!(gpu.v(10, lane), if writes { 1000 + lane } else { 7 }, "lane {lane}");
            let up = lane & 15 != 15 && lane != 4;
            assert_eq!(gpu.v(11, lane), if up { 1001 + lane } else { 7 }, "lane {lane}");
            assert_eq!(gpu.v(12, lane), if up { 1001 + lane } else { 0 }, "lane {lane}");
            let down = lane & 15 != 0 && lane != 6;
            assert_eq!(gpu.v(13, lane), if down { 1999 + 2 * lane } else { 7 }, "lane {lane}");
            if !gpu.gfx9() {
                let fetched = lane & 15 != 15;
                assert_eq!(gpu.v(14, lane), if fetched { 1001 + lane } else { 7 }, "FI reads lane 5 too");
                assert_eq!(gpu.v(15, lane), if lane == 4 { 0 } else { 1000 + (lane ^ 1) });
                assert_eq!(gpu.v(16, lane), 1000 + (lane ^ 1));
            }
        }
        assert!((10..17).all(|register| gpu.v(register, 5) == 7), "the inactive lane");
    });
}

#[test]
fn dpp_moves_lanes_before_signs_apply_and_works_in_vop3_and_compares() {
    let gfx9 = "
        .gfx90a
        020804fa ff10b101  v_add_f32_dpp v4, -v1, v2 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
        020a04fa ff291103  v_add_f32_dpp v5, |v3|, v2 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1
        760c04fa ff014101  v_fmac_f32_dpp v6, v1, v2 row_half_mirror row_mask:0xf bank_mask:0xf
    ";
    let gfx11 = "
        .gfx1100
        060804fa ff10b101  v_add_f32_dpp v4, -v1, v2 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
        060a04fa ff291103  v_add_f32_dpp v5, |v3|, v2 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1
        560c04fa ff014101  v_fmac_f32_dpp v6, v1, v2 row_half_mirror row_mask:0xf bank_mask:0xf
        d6130007 240e04fa ff00b101  v_fma_f32_e64_dpp v7, -v1, v2, v3 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
        d411000a 200204fa ff010101  v_cmp_lt_f32_e64_dpp s10, -v1, v2 row_shl:1 row_mask:0xf bank_mask:0xf
        d6550008 042612e9 05397709  v_add3_u32_e64_dpp v8, v9, v9, v9 dpp8:[7,6,5,4,3,2,1,0]
        7c9412fa ff00b109  v_cmp_eq_u32 vcc_lo, v9, v9 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
    ";
    each(&[gfx9, gfx11], |gpu| {
        gpu.set(1, |lane| (lane as f32).to_bits());
        gpu.fill_f(2, 100.0);
        gpu.set(3, |lane| (-(lane as f32)).to_bits());
        gpu.fill_f(6, 1.0);
        gpu.set(9, |lane| lane);
        gpu.set_s64(10, u64::MAX);
        gpu.ok();
        for lane in [0, 1, 9, 16, 31] {
            let float = |from: u32| from as f32;
            assert_eq!(gpu.f(4, lane), 100.0 - float(lane ^ 1));
            assert_eq!(gpu.f(5, lane), if lane % 16 == 0 { 100.0 } else { 100.0 + float(lane - 1) });
            assert_eq!(gpu.f(6, lane), 1.0 + 100.0 * float(lane ^ 7));
            if !gpu.gfx9() {
                assert_eq!(gpu.f(7, lane), -float(lane ^ 1) * 100.0 - float(lane));
                assert_eq!(gpu.v(8, lane), (lane ^ 7) + 2 * lane);
            }
        }
        if !gpu.gfx9() {
            // Every -x is below 100; lanes without a source give 0.
            assert_eq!((gpu.s(10), gpu.vcc()), (0x7fff_7fff, 0));
        }
    });
}

#[test]
fn permlane16_takes_fi_and_bound_ctrl_from_op_sel() {
    let listing = "
        .gfx1030
        d777000a 000c0501  v_permlane16_b32 v10, v1, s2, s3
        d777080b 000c0501  v_permlane16_b32 v11, v1, s2, s3 op_sel:[1,0]
        d777100c 000c0501  v_permlane16_b32 v12, v1, s2, s3 op_sel:[0,1]
        d778000d 000c0501  v_permlanex16_b32 v13, v1, s2, s3
    ";
    let gfx11 = "
        .gfx1100
        d65b000a 000c0501  v_permlane16_b32 v10, v1, s2, s3
        d65b080b 000c0501  v_permlane16_b32 v11, v1, s2, s3 op_sel:[1,0]
        d65b100c 000c0501  v_permlane16_b32 v12, v1, s2, s3 op_sel:[0,1]
        d65c000d 000c0501  v_permlanex16_b32 v13, v1, s2, s3
    ";
    let gfx12 = "
        .gfx1201
        d65b000a 000c0501  v_permlane16_b32 v10, v1, s2, s3
        d65b080b 000c0501  v_permlane16_b32 v11, v1, s2, s3 op_sel:[1,0]
        d65b100c 000c0501  v_permlane16_b32 v12, v1, s2, s3 op_sel:[0,1]
        d65c000d 000c0501  v_permlanex16_b32 v13, v1, s2, s3
        d70f000e 00020501  v_permlane16_var_b32 v14, v1, v2
        d710000f 00020501  v_permlanex16_var_b32 v15, v1, v2
    ";
    each(&[listing, gfx11, gfx12], |gpu| {
        gpu.set(1, |lane| 1000 + lane);
        // Lane n reads lane 15 - n of its row, lane 0 thus lane 15, which is off.
        (gpu.set_s(2, 0x89ab_cdef), gpu.set_s(3, 0x0123_4567));
        gpu.set(2, |lane| (lane + 3) & 15);
        (10..16).for_each(|register| gpu.fill(register, 7));
        gpu.exec(!(1 << 15));
        gpu.ok();
        assert_eq!([gpu.v(10, 0), gpu.v(11, 0), gpu.v(12, 0)], [7, 1015, 0], "{}", gpu.target);
        assert_eq!([gpu.v(10, 3), gpu.v(10, 20), gpu.v(10, 15)], [1012, 1027, 7]);
        assert_eq!([gpu.v(13, 3), gpu.v(13, 20)], [1028, 1011], "the other row");
        if gpu.target == Target::Gfx1201 {
            assert_eq!([gpu.v(14, 3), gpu.v(15, 3), gpu.v(14, 30)], [1006, 1022, 1017]);
        }
    });
}

#[test]
fn permlane64_swaps_the_halves_of_a_wave64() {
    let wave64 = "
        .gfx1100 wave64
        7e08cf01  v_permlane64_b32 v4, v1
    ";
    let wave32 = "
        .gfx1100
        7e08cf01  v_permlane64_b32 v4, v1
    ";
    each(&[wave64, wave32], |gpu| {
        gpu.set(1, |lane| lane);
        gpu.fill(4, 99);
        gpu.ok();
        let wanted = if gpu.lanes() == 64 { [32, 63, 0] } else { [99; 3] };
        assert_eq!([gpu.v(4, 0), gpu.v(4, 31), gpu.v(4, gpu.lanes() - 32)][..2], wanted[..2]);
        assert_eq!(gpu.lanes() == 64, gpu.v(4, gpu.lanes() - 1) == 31);
    });
}

#[test]
fn bpermute_and_permute_take_byte_addresses_modulo_the_lanes() {
    let gfx9 = "
        .gfx90a
        d87e0000 04000102  ds_bpermute_b32 v4, v2, v1
        d87e0008 05000102  ds_bpermute_b32 v5, v2, v1 offset:8
        d87c0000 06000103  ds_permute_b32 v6, v3, v1
    ";
    let wave32 = "
        .gfx1100
        dacc0000 04000102  ds_bpermute_b32 v4, v2, v1
        dacc0008 05000102  ds_bpermute_b32 v5, v2, v1 offset:8
        dac80000 06000103  ds_permute_b32 v6, v3, v1
    ";
    let wave64 = "
        .gfx1100 wave64
        dacc0000 04000102  ds_bpermute_b32 v4, v2, v1
        dacc0008 05000102  ds_bpermute_b32 v5, v2, v1 offset:8
        dac80000 06000103  ds_permute_b32 v6, v3, v1
    ";
    each(&[gfx9, wave32, wave64], |gpu| {
        let lanes = gpu.lanes();
        gpu.set(1, |lane| 1000 + lane);
        // A large address, and one beyond all LDS: neither is a memory access.
        gpu.set(2, |lane| 4 * (lane + 3 + 64 * 1000) + 1);
        // All of lanes 0 to 3 send to lane 9; lane 4 sends to lane 0.
        gpu.set(3, |lane| {
            if lane < 4 {
                4 * 9
            } else if lane == 4 {
                0
            } else {
                4 * 20
            }
        });
        gpu.exec(!(1 << 7));
        gpu.ok();
        let within = if gpu.gfx9() { 64 } else { 32 };
        for lane in (0..lanes).filter(|lane| *lane != 7) {
            let from = |by: u32| lane & !(within - 1) | (lane + by) & (within - 1);
            let value = |from: u32| if from == 7 { 0 } else { 1000 + from };
            assert_eq!(gpu.v(4, lane), value(from(3)), "{} wave{lanes} lane {lane}", gpu.target);
            assert_eq!(gpu.v(5, lane), value(from(5)), "lane {lane}");
        }
        assert_eq!([gpu.v(6, 9), gpu.v(6, 0), gpu.v(6, 1)], [1003, 1004, 0], "the last sender wins, none gives 0");
    });
}

#[test]
fn swizzle_stays_within_32_lanes() {
    let gfx9 = "
        .gfx90a
        d87a801b 04000001  ds_swizzle_b32 v4, v1 offset:swizzle(QUAD_PERM,3,2,1,0)
        d87a401f 05000001  ds_swizzle_b32 v5, v1 offset:swizzle(SWAP,16)
        d87a00a0 06000001  ds_swizzle_b32 v6, v1 offset:swizzle(BROADCAST,32,5)
        d87a1c1f 07000001  ds_swizzle_b32 v7, v1 offset:swizzle(REVERSE,8)
    ";
    let gfx11 = "
        .gfx1100
        d8d4801b 04000001  ds_swizzle_b32 v4, v1 offset:swizzle(QUAD_PERM,3,2,1,0)
        d8d4401f 05000001  ds_swizzle_b32 v5, v1 offset:swizzle(SWAP,16)
        d8d400a0 06000001  ds_swizzle_b32 v6, v1 offset:swizzle(BROADCAST,32,5)
        d8d41c1f 07000001  ds_swizzle_b32 v7, v1 offset:swizzle(REVERSE,8)
    ";
    each(&[gfx9, gfx11], |gpu| {
        gpu.set(1, |lane| 1000 + lane);
        gpu.exec(!(1 << 33 | 1 << 2));
        gpu.ok();
        for lane in (0..gpu.lanes()).filter(|lane| ![2, 33].contains(lane)) {
            let value = |from: u32| if [2, 33].contains(&from) { 0 } else { 1000 + from };
            let half = lane & 32;
            let wanted = [lane ^ 3, lane ^ 16, half | 5, lane ^ 7].map(value);
            assert_eq!([4, 5, 6, 7].map(|register| gpu.v(register, lane)), wanted, "{} lane {lane}", gpu.target);
        }
    });
}

#[test]
fn mbcnt_counts_the_lanes_below_and_hi_adds_nothing_in_wave32() {
    let gfx9 = "
        .gfx90a
        d28c0001 00011404  v_mbcnt_lo_u32_b32 v1, s4, 10
        d28d0002 00020205  v_mbcnt_hi_u32_b32 v2, s5, v1
    ";
    let wave32 = "
        .gfx1100
        d71f0001 00011404  v_mbcnt_lo_u32_b32 v1, s4, 10
        d7200002 00020205  v_mbcnt_hi_u32_b32 v2, s5, v1
    ";
    each(&[gfx9, wave32], |gpu| {
        let mask = 0xf00f_0005_8000_00ffu64;
        gpu.set_s64(4, mask);
        gpu.ok();
        for lane in 0..gpu.lanes() {
            let below = (1u64 << lane) - 1;
            let low = 10 + (mask & below & 0xffff_ffff).count_ones();
            let all = 10 + (mask & below).count_ones();
            assert_eq!([gpu.v(1, lane), gpu.v(2, lane)], [low, all], "{} lane {lane}", gpu.target);
        }
    });
}

#[test]
fn both_halves_of_a_dual_instruction_read_before_either_writes() {
    let gfx11 = "
        .gfx1100
        ca100101 00000100  v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v1, v0
        c8120702 04040903  v_dual_fmac_f32 v4, v2, v3 :: v_dual_cndmask_b32 v5, v3, v4
        c90606ff 06060cff 40400000  v_dual_add_f32 v6, 0x40400000, v3 :: v_dual_mul_f32 v7, 0x40400000, v6
        c8600702 08081508 41200000  v_dual_fmaak_f32 v8, v2, v3, 0x41200000 :: v_dual_add_nc_u32 v9, v8, v10
    ";
    let gfx12 = "
        .gfx1201
        ca100101 00000100  v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v1, v0
        c8120702 04040903  v_dual_fmac_f32 v4, v2, v3 :: v_dual_cndmask_b32 v5, v3, v4
        c90606ff 06060cff 40400000  v_dual_add_f32 v6, 0x40400000, v3 :: v_dual_mul_f32 v7, 0x40400000, v6
        c8600702 08081508 41200000  v_dual_fmaak_f32 v8, v2, v3, 0x41200000 :: v_dual_add_nc_u32 v9, v8, v10
    ";
    each(&[gfx11, gfx12], |gpu| {
        (gpu.fill(0, 10), gpu.fill(1, 11));
        (gpu.fill_f(2, 2.0), gpu.fill_f(3, 5.0), gpu.fill_f(4, 1.0), gpu.fill_f(6, 7.0));
        (gpu.fill(8, 100), gpu.fill(10, 1));
        gpu.set_s(number::VCC, 0b10);
        gpu.ok();
        assert_eq!([gpu.v(0, 0), gpu.v(1, 0)], [11, 10], "a swap");
        assert_eq!((gpu.f(4, 0), gpu.f(5, 0), gpu.f(5, 1)), (11.0, 5.0, 1.0), "VCC chooses the old v4");
        assert_eq!([gpu.f(6, 0), gpu.f(7, 0)], [8.0, 21.0], "both have the literal");
        assert_eq!((gpu.f(8, 0), gpu.v(9, 0)), (20.0, 101));
    });
}

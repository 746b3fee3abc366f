//! SCC, the program counter and calls.

use super::*;

/// Runs one instruction on s2 and s3 (pairs from s4 and s6 on) and returns s8, or the pair, and SCC.
fn one(gpu: &mut Gpu, index: u64, scc: bool) -> (u64, bool) {
    gpu.wave.scc = scc;
    gpu.set_s64(8, 0);
    // Each instruction under test is followed by s_endpgm.
    assert_eq!(gpu.run_from(8 * index), State::Ended);
    (gpu.s64(8), gpu.wave.scc)
}

#[test]
fn scc_is_written_by_each_operation_in_its_own_way() {
    let gfx9 = "
        .gfx90a
        80080302  s_add_u32 s8, s2, s3
        bf810000  s_endpgm
        81080302  s_add_i32 s8, s2, s3
        bf810000  s_endpgm
        80880302  s_sub_u32 s8, s2, s3
        bf810000  s_endpgm
        81880302  s_sub_i32 s8, s2, s3
        bf810000  s_endpgm
        82080302  s_addc_u32 s8, s2, s3
        bf810000  s_endpgm
        82880302  s_subb_u32 s8, s2, s3
        bf810000  s_endpgm
        86080302  s_and_b32 s8, s2, s3
        bf810000  s_endpgm
        8e080302  s_lshl_b32 s8, s2, s3
        bf810000  s_endpgm
        92880302  s_bfe_u32 s8, s2, s3
        bf810000  s_endpgm
        be883002  s_abs_i32 s8, s2
        bf810000  s_endpgm
        83080302  s_min_i32 s8, s2, s3
        bf810000  s_endpgm
        84880302  s_max_u32 s8, s2, s3
        bf810000  s_endpgm
        92080302  s_mul_i32 s8, s2, s3
        bf810000  s_endpgm
        be880002  s_mov_b32 s8, s2
        bf810000  s_endpgm
        be881002  s_ff1_i32_b32 s8, s2
        bf810000  s_endpgm
        be880802  s_brev_b32 s8, s2
        bf810000  s_endpgm
        be880402  s_not_b32 s8, s2
        bf810000  s_endpgm
        be880c02  s_bcnt1_i32_b32 s8, s2
        bf810000  s_endpgm
        85080302  s_cselect_b32 s8, s2, s3
        bf810000  s_endpgm
        97880302  s_lshl2_add_u32 s8, s2, s3
        bf810000  s_endpgm
        95080302  s_absdiff_i32 s8, s2, s3
        bf810000  s_endpgm
        91080302  s_bfm_b32 s8, s2, s3
        bf810000  s_endpgm
        96080302  s_mul_hi_u32 s8, s2, s3
        bf810000  s_endpgm
        be881202  s_flbit_i32_b32 s8, s2
        bf810000  s_endpgm
        b7020001  s_addk_i32 s2, 0x1
        bf810000  s_endpgm
        b7820003  s_mulk_i32 s2, 0x3
        bf810000  s_endpgm
        b0820003  s_cmovk_i32 s2, 0x3
        bf810000  s_endpgm
        99080302  s_pack_ll_b32_b16 s8, s2, s3
        bf810000  s_endpgm
        be881602  s_sext_i32_i8 s8, s2
        bf810000  s_endpgm
        be881a02  s_bitset1_b32 s8, s2
        bf810000  s_endpgm
    ";
    let gfx11 = "
        .gfx1100
        80080302  s_add_u32 s8, s2, s3
        bfb00000  s_endpgm
        81080302  s_add_i32 s8, s2, s3
        bfb00000  s_endpgm
        80880302  s_sub_u32 s8, s2, s3
        bfb00000  s_endpgm
        81880302  s_sub_i32 s8, s2, s3
        bfb00000  s_endpgm
        82080302  s_addc_u32 s8, s2, s3
        bfb00000  s_endpgm
        82880302  s_subb_u32 s8, s2, s3
        bfb00000  s_endpgm
        8b080302  s_and_b32 s8, s2, s3
        bfb00000  s_endpgm
        84080302  s_lshl_b32 s8, s2, s3
        bfb00000  s_endpgm
        93080302  s_bfe_u32 s8, s2, s3
        bfb00000  s_endpgm
        be881502  s_abs_i32 s8, s2
        bfb00000  s_endpgm
        89080302  s_min_i32 s8, s2, s3
        bfb00000  s_endpgm
        8a880302  s_max_u32 s8, s2, s3
        bfb00000  s_endpgm
        96080302  s_mul_i32 s8, s2, s3
        bfb00000  s_endpgm
        be880002  s_mov_b32 s8, s2
        bfb00000  s_endpgm
        be880802  s_ctz_i32_b32 s8, s2
        bfb00000  s_endpgm
        be880402  s_brev_b32 s8, s2
        bfb00000  s_endpgm
        be881e02  s_not_b32 s8, s2
        bfb00000  s_endpgm
        be881802  s_bcnt1_i32_b32 s8, s2
        bfb00000  s_endpgm
        98080302  s_cselect_b32 s8, s2, s3
        bfb00000  s_endpgm
        87880302  s_lshl2_add_u32 s8, s2, s3
        bfb00000  s_endpgm
        83080302  s_absdiff_i32 s8, s2, s3
        bfb00000  s_endpgm
        95080302  s_bfm_b32 s8, s2, s3
        bfb00000  s_endpgm
        96880302  s_mul_hi_u32 s8, s2, s3
        bfb00000  s_endpgm
        be880a02  s_clz_i32_u32 s8, s2
        bfb00000  s_endpgm
        b7820001  s_addk_i32 s2, 0x1
        bfb00000  s_endpgm
        b8020003  s_mulk_i32 s2, 0x3
        bfb00000  s_endpgm
        b1020003  s_cmovk_i32 s2, 0x3
        bfb00000  s_endpgm
        99080302  s_pack_ll_b32_b16 s8, s2, s3
        bfb00000  s_endpgm
        be880e02  s_sext_i32_i8 s8, s2
        bfb00000  s_endpgm
        be881202  s_bitset1_b32 s8, s2
        bfb00000  s_endpgm
    ";
    // Number in the listings, sources, result, SCC (None: as before).
    let cases: [(u64, u32, u32, u32, Option<bool>); 50] = [
        (0, 0xffff_ffff, 1, 0, Some(true)),
        (0, 0x7fff_ffff, 1, 0x8000_0000, Some(false)),
        (1, 0x7fff_ffff, 1, 0x8000_0000, Some(true)),
        (1, 0xffff_ffff, 1, 0, Some(false)),
        (2, 0, 1, 0xffff_ffff, Some(true)),
        (2, 0x8000_0000, 1, 0x7fff_ffff, Some(false)),
        (3, 0x8000_0000, 1, 0x7fff_ffff, Some(true)),
        (3, 0, 1, 0xffff_ffff, Some(false)),
        (6, 0xf0, 0x0f, 0, Some(false)),
        (6, 0xff, 0x0f, 0x0f, Some(true)),
        (7, 0x8000_0000, 1, 0, Some(false)),
        (7, 1, 33, 2, Some(true)),
        (8, 0xff00, 8 << 16 | 8, 0xff, Some(true)),
        (8, 0xff00, 8 << 16, 0, Some(false)),
        (9, 0xffff_fffe, 0, 2, Some(true)),
        (9, 0, 0, 0, Some(false)),
        (9, 0x8000_0000, 0, 0x8000_0000, Some(true)),
        (10, 0xffff_ffff, 1, 0xffff_ffff, Some(true)),
        (10, 1, 0xffff_ffff, 0xffff_ffff, Some(false)),
        (10, 4, 4, 4, Some(false)),
        (11, 0xffff_ffff, 1, 0xffff_ffff, Some(true)),
        (11, 1, 2, 2, Some(false)),
        (11, 4, 4, 4, Some(false)),
        (12, 3, 5, 15, None),
        (12, 0, 5, 0, None),
        (13, 0, 0, 0, None),
        (13, 7, 0, 7, None),
        (14, 0x10, 0, 4, None),
        (14, 0, 0, 0xffff_ffff, None),
        (15, 1, 0, 0x8000_0000, None),
        (15, 0, 0, 0, None),
        (16, 0xffff_ffff, 0, 0, Some(false)),
        (16, 0, 0, 0xffff_ffff, Some(true)),
        (17, 0, 0, 0, Some(false)),
        (17, 0xf1, 0, 5, Some(true)),
        (19, 0x4000_0000, 5, 5, Some(true)),
        (19, 1, 5, 9, Some(false)),
        (20, 3, 5, 2, Some(true)),
        (20, 5, 5, 0, Some(false)),
        (21, 4, 8, 0xf00, None),
        (22, 0x8000_0000, 4, 2, None),
        (23, 0x0100_0000, 0, 7, None),
        (23, 0, 0, 0xffff_ffff, None),
        (27, 0x1_0002, 0x3_0004, 0x4_0002, None),
        (28, 0x80, 0, 0xffff_ff80, None),
        (28, 0, 0, 0, None),
        (29, 5, 0, 32, None),
        (7, 0, 0, 0, Some(false)),
        (0, 0, 0, 0, Some(false)),
        (2, 5, 5, 0, Some(false)),
    ];
    each(&[gfx9, gfx11], |gpu| {
        for (index, a, b, wanted, flag) in cases {
            for before in [false, true] {
                (gpu.set_s(2, a), gpu.set_s(3, b));
                let (value, scc) = one(gpu, index, before);
                assert_eq!(value as u32, wanted, "{} {index}: {a:#x} {b:#x}", gpu.target);
                assert_eq!(scc, flag.unwrap_or(before), "{} {index}: {a:#x} {b:#x}: SCC", gpu.target);
            }
        }
        // Carry in, carry out.
        for (index, a, b, carry, wanted, out) in [
            (4, u32::MAX, 0, true, 0, true),
            (4, 1, 2, true, 4, false),
            (5, 0, 0, true, u32::MAX, true),
            (5, 3, 1, true, 1, false),
        ] {
            (gpu.set_s(2, a), gpu.set_s(3, b));
            assert_eq!(one(gpu, index, carry), (wanted as u64, out), "{} {index}", gpu.target);
        }
        (gpu.set_s(2, 1), gpu.set_s(3, 2));
        assert_eq!([one(gpu, 18, true).0, one(gpu, 18, false).0], [1, 2]);
        // s_addk overflows, s_mulk and s_cmovk write no SCC.
        gpu.set_s(2, 0x7fff_ffff);
        assert!(one(gpu, 24, false).1 && gpu.s(2) == 0x8000_0000);
        assert!(!one(gpu, 25, false).1 && gpu.s(2) == 0x8000_0000u32.wrapping_mul(3));
        assert!(!one(gpu, 26, false).1 && gpu.s(2) == 0x8000_0000);
        assert!(one(gpu, 26, true).1 && gpu.s(2) == 3);
    });
}

#[test]
fn saveexec_tells_whether_a_lane_is_left() {
    let wave64 = "
        .gfx90a
        be882004  s_and_saveexec_b64 s[8:9], s[4:5]
    ";
    let wave32 = "
        .gfx1100
        be882004  s_and_saveexec_b32 s8, s4
    ";
    each(&[wave64, wave32], |gpu| {
        for (exec, mask) in [(0xff, 0xf0), (0xff, 0xf00)] {
            gpu.exec(exec);
            gpu.wave.scc = exec & mask == 0;
            gpu.set_s64(4, mask);
            gpu.set_s64(8, 0);
            gpu.ok();
            assert_eq!((gpu.wave.exec, gpu.s64(8), gpu.wave.scc), (exec & mask, exec, exec & mask != 0));
        }
    });
}

#[test]
fn getpc_and_branches_count_from_the_next_instruction_also_behind_a_literal() {
    let gfx9 = "
        .gfx90a
        be841c00  s_getpc_b64 s[4:5]
        be8600ff 12345678  s_mov_b32 s6, 0x12345678
        bf06ff06 12345678  s_cmp_eq_u32 s6, 0x12345678
        bf850002  s_cbranch_scc1 2
        be8700ff 11111111  s_mov_b32 s7, 0x11111111
        be8800ff 22222222  s_mov_b32 s8, 0x22222222
        bf820001  s_branch 1
        be890081  s_mov_b32 s9, 1
        bf070606  s_cmp_lg_u32 s6, s6
        bf85ffff  s_cbranch_scc1 65535
        be8a1c00  s_getpc_b64 s[10:11]
    ";
    let gfx11 = "
        .gfx1100
        be844700  s_getpc_b64 s[4:5]
        be8600ff 12345678  s_mov_b32 s6, 0x12345678
        bf06ff06 12345678  s_cmp_eq_u32 s6, 0x12345678
        bfa20002  s_cbranch_scc1 2
        be8700ff 11111111  s_mov_b32 s7, 0x11111111
        be8800ff 22222222  s_mov_b32 s8, 0x22222222
        bfa00001  s_branch 1
        be890081  s_mov_b32 s9, 1
        bf070606  s_cmp_lg_u32 s6, s6
        bfa2ffff  s_cbranch_scc1 65535
        be8a4700  s_getpc_b64 s[10:11]
    ";
    each(&[gfx9, gfx11], |gpu| {
        gpu.ok();
        assert_eq!(gpu.s64(4), CODE + 4);
        assert_eq!([gpu.s(6), gpu.s(7), gpu.s(8), gpu.s(9)], [0x1234_5678, 0, 0x2222_2222, 0]);
        assert_eq!(gpu.s64(10), gpu.end);
    });
}

#[test]
fn calls_return_behind_themselves_and_jumps_drop_the_low_bits() {
    let gfx9 = "
        .gfx90a
        be940080  s_mov_b32 s20, 0
        ba9e0006  s_call_b64 s[30:31], 6
        8014ff14 00000100  s_add_u32 s20, s20, 0x100
        be9e1e04  s_swappc_b64 s[30:31], s[4:5]
        be801d06  s_setpc_b64 s[6:7]
        ffffffff  .long 0xffffffff
        ffffffff  .long 0xffffffff
        80148114  s_add_u32 s20, s20, 1
        be88011e  s_mov_b64 s[8:9], s[30:31]
        be801d1e  s_setpc_b64 s[30:31]
        ffffffff  .long 0xffffffff
        bf800000  s_nop 0
    ";
    let gfx11 = "
        .gfx1100
        be940080  s_mov_b32 s20, 0
        ba1e0006  s_call_b64 s[30:31], 6
        8014ff14 00000100  s_add_u32 s20, s20, 0x100
        be9e4904  s_swappc_b64 s[30:31], s[4:5]
        be804806  s_setpc_b64 s[6:7]
        ffffffff  .long 0xffffffff
        ffffffff  .long 0xffffffff
        80148114  s_add_u32 s20, s20, 1
        be88011e  s_mov_b64 s[8:9], s[30:31]
        be80481e  s_setpc_b64 s[30:31]
        ffffffff  .long 0xffffffff
        bf800000  s_nop 0
    ";
    each(&[gfx9, gfx11], |gpu| {
        // The function, with bits that a code address has not; the last instruction likewise.
        gpu.set_s64(4, CODE + 32 + 3);
        gpu.set_s64(6, CODE + 48 + 2);
        gpu.ok();
        assert_eq!(gpu.s(20), 0x102, "{}: two calls", gpu.target);
        assert_eq!(gpu.s64(8), CODE + 20, "the return address of the second");
    });
}

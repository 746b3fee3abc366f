//! Integer operations, moves, selects and compares.

use super::*;

#[test]
fn sums_set_carry_borrow_or_overflow() {
    let mut b = gfx9();
    assert_eq!(b.two("s_add_u32", u32::MAX, 1, false), (0, true));
    assert_eq!(b.two("s_add_u32", 1, 2, true), (3, false));
    assert_eq!(b.two("s_addc_u32", u32::MAX, 0, true), (0, true));
    assert_eq!(b.two("s_addc_u32", 1, 1, true), (3, false));
    assert_eq!(b.two("s_add_i32", 0x7fff_ffff, 1, false), (0x8000_0000, true));
    assert_eq!(b.two("s_add_i32", u32::MAX, 1, true), (0, false));
    assert_eq!(b.two("s_sub_u32", 1, 2, false), (u32::MAX, true));
    assert_eq!(b.two("s_sub_u32", 2, 2, true), (0, false));
    assert_eq!(b.two("s_subb_u32", 2, 2, true), (u32::MAX, true));
    assert_eq!(b.two("s_subb_u32", 3, 2, true), (0, false));
    // The carry of b + borrow itself must not get lost.
    assert_eq!(b.two("s_subb_u32", 0, u32::MAX, true), (0, true));
    assert_eq!(b.two("s_sub_i32", 0x8000_0000, 1, false), (0x7fff_ffff, true));
    assert_eq!(b.two("s_lshl3_add_u32", 0x2000_0000, 5, false), (5, true));
    assert_eq!(b.two("s_absdiff_i32", 3, 10, false), (7, true));
    assert_eq!(b.two("s_absdiff_i32", 10, 10, true), (0, false));
    assert_eq!(b.two("s_absdiff_i32", 0x8000_0000, 0, false), (0x8000_0000, true));
}

#[test]
fn products_leave_scc() {
    let mut b = gfx9();
    for scc in [false, true] {
        assert_eq!(b.two("s_mul_i32", 0x10000, 0x10001, scc), (0x10000, scc));
        assert_eq!(b.two("s_mul_hi_u32", u32::MAX, u32::MAX, scc), (u32::MAX - 1, scc));
        assert_eq!(b.two("s_mul_hi_i32", u32::MAX, 5, scc), (u32::MAX, scc));
        assert_eq!(b.two("s_bfm_b32", 8, 4, scc), (0xff0, scc));
        assert_eq!(b.two("s_pack_lh_b32_b16", 0x1111_2222, 0x3333_4444, scc), (0x3333_2222, scc));
        assert_eq!(b.two("s_pack_ll_b32_b16", 0x1111_2222, 0x3333_4444, scc), (0x4444_2222, scc));
        assert_eq!(b.two("s_pack_hh_b32_b16", 0x1111_2222, 0x3333_4444, scc), (0x3333_1111, scc));
    }
}

#[test]
fn min_and_max_tell_whether_source_0_was_chosen() {
    let mut b = gfx9();
    assert_eq!(b.two("s_min_i32", u32::MAX, 1, false), (u32::MAX, true));
    assert_eq!(b.two("s_min_u32", u32::MAX, 1, true), (1, false));
    assert_eq!(b.two("s_min_u32", 1, 1, true), (1, false));
    assert_eq!(b.two("s_max_i32", u32::MAX, 1, true), (1, false));
    assert_eq!(b.two("s_max_u32", u32::MAX, 1, false), (u32::MAX, true));
    assert_eq!(b.two("s_max_u32", 7, 7, true), (7, false));
}

#[test]
fn shifts_take_the_low_bits_of_the_count() {
    let mut b = gfx9();
    assert_eq!(b.two("s_lshl_b32", 1, 33, false), (2, true));
    assert_eq!(b.two("s_lshr_b32", 1, 1, true), (0, false));
    assert_eq!(b.two("s_ashr_i32", 0x8000_0000, 31, false), (u32::MAX, true));
    b.set64(2, 1);
    b.set(6, 65);
    b.step("s_lshl_b64", Format::Sop2, pair(4), &[pair(2), s(6)]);
    assert_eq!((b.get64(4), b.wave.scc), (2, true));
    b.set64(2, 1 << 63);
    b.set(6, 63);
    b.step("s_ashr_i64", Format::Sop2, pair(4), &[pair(2), s(6)]);
    assert_eq!(b.get64(4), u64::MAX);
}

#[test]
fn bit_fields() {
    let mut b = gfx9();
    let field = |offset: u32, width: u32| offset | width << 16;
    assert_eq!(b.two("s_bfe_u32", 0x1234_5678, field(8, 8), false), (0x56, true));
    assert_eq!(b.two("s_bfe_u32", 0x1234_5678, field(8, 0), true), (0, false));
    assert_eq!(b.two("s_bfe_u32", 0x1234_5678, field(0, 32), false), (0x1234_5678, true));
    assert_eq!(b.two("s_bfe_u32", 0x8000_0000, field(28, 8), false), (8, true));
    assert_eq!(b.two("s_bfe_i32", 0x0000_8000, field(8, 8), false), (0xffff_ff80, true));
    assert_eq!(b.two("s_bfe_i32", 0x8000_0000, field(28, 8), false), (0xffff_fff8, true));
    b.set64(2, 0xff00_0000_0000);
    b.set(6, field(40, 8));
    b.step("s_bfe_i64", Format::Sop2, pair(4), &[pair(2), s(6)]);
    assert_eq!(b.get64(4), u64::MAX);
    b.step("s_bfe_u64", Format::Sop2, pair(4), &[pair(2), s(6)]);
    assert_eq!(b.get64(4), 0xff);
}

#[test]
fn counting_and_finding_bits() {
    let mut b = gfx9();
    assert_eq!(b.one("s_bcnt1_i32_b32", 0xf0), (4, true));
    assert_eq!(b.one("s_bcnt0_i32_b32", u32::MAX), (0, false));
    assert_eq!(b.one("s_ff1_i32_b32", 0x10).0, 4);
    assert_eq!(b.one("s_ff1_i32_b32", 0).0, u32::MAX);
    assert_eq!(b.one("s_ff0_i32_b32", 0x7).0, 3);
    assert_eq!(b.one("s_ff0_i32_b32", u32::MAX).0, u32::MAX);
    assert_eq!(b.one("s_flbit_i32_b32", 1).0, 31);
    assert_eq!(b.one("s_flbit_i32_b32", 0).0, u32::MAX);
    assert_eq!(b.one("s_flbit_i32", 0x4000_0000).0, 1);
    assert_eq!(b.one("s_flbit_i32", 0xffff_0000).0, 16);
    assert_eq!(b.one("s_flbit_i32", u32::MAX).0, u32::MAX);
    assert_eq!(b.one("s_brev_b32", 1).0, 0x8000_0000);
    assert_eq!(b.one("s_quadmask_b32", 0x0010_0001), (0x21, true));
    assert_eq!(b.one("s_wqm_b32", 0x0010_0001), (0x00f0_000f, true));
    assert_eq!(b.one("s_wqm_b32", 0), (0, false));
    assert_eq!(b.one("s_sext_i32_i8", 0x80).0, 0xffff_ff80);
    assert_eq!(b.one("s_abs_i32", 0xffff_fffb), (5, true));
    assert_eq!(b.one("s_not_b32", u32::MAX), (0, false));
    b.set(2, 0b101);
    b.step("s_bitreplicate_b64_b32", Format::Sop1, pair(4), &[s(2)]);
    assert_eq!(b.get64(4), 0b110011);
    b.set(4, 0xff);
    b.set(2, 33);
    b.step("s_bitset0_b32", Format::Sop1, s(4), &[s(2)]);
    assert_eq!(b.get(4), 0xfd);
    b.step("s_bitset1_b64", Format::Sop1, pair(4), &[s(2)]);
    assert_eq!(b.get(5) & 2, 2);
}

#[test]
fn names_of_later_generations_mean_the_same() {
    let mut b = Bench::new(Target::Gfx1201, 32);
    assert_eq!(b.two("s_add_co_u32", u32::MAX, 1, false), (0, true));
    assert_eq!(b.two("s_and_not1_b32", 0xff, 0x0f, false), (0xf0, true));
    assert_eq!(b.two("s_or_not1_b32", 0, u32::MAX, true), (0, false));
    assert_eq!(b.one("s_ctz_i32_b32", 8).0, 3);
    assert_eq!(b.one("s_clz_i32_u32", 1).0, 31);
    assert_eq!(b.one("s_cls_i32", u32::MAX).0, u32::MAX);
    b.set64(2, u64::MAX);
    b.set64(6, 2);
    b.wave.scc = true;
    b.step("s_add_nc_u64", Format::Sop2, pair(4), &[pair(2), pair(6)]);
    assert_eq!((b.get64(4), b.wave.scc), (1, true));
    b.step("s_mul_u64", Format::Sop2, pair(4), &[pair(2), pair(6)]);
    assert_eq!(b.get64(4), u64::MAX - 1);
}

#[test]
fn constants_widen_by_the_operation() {
    let mut b = gfx9();
    b.step("s_mov_b64", Format::Sop1, pair(4), &[int(-1)]);
    assert_eq!(b.get64(4), u64::MAX);
    b.step("s_mov_b64", Format::Sop1, pair(4), &[Operand::Literal(0x8000_0000)]);
    assert_eq!(b.get64(4), 0x8000_0000);
    b.step("s_ashr_i64", Format::Sop2, pair(4), &[Operand::Literal(0x8000_0000), int(4)]);
    assert_eq!(b.get64(4), 0xffff_ffff_f800_0000);
    b.step("s_mov_b32", Format::Sop1, s(4), &[Operand::Float(242)]);
    assert_eq!(b.get(4), 0x3f80_0000);
    b.step("s_mov_b64", Format::Sop1, pair(4), &[Operand::Float(242)]);
    assert_eq!(b.get64(4), 0x3ff0_0000_0000_0000);
    b.step("s_and_b64", Format::Sop2, pair(4), &[int(12), int(10)]);
    assert_eq!(b.get64(4), 8);
}

#[test]
fn moves_and_selects_under_scc() {
    let mut b = gfx9();
    assert_eq!(b.two("s_cselect_b32", 1, 2, true), (1, true));
    assert_eq!(b.two("s_cselect_b32", 1, 2, false), (2, false));
    b.set(4, 9);
    b.set(2, 5);
    b.step("s_cmov_b32", Format::Sop1, s(4), &[s(2)]);
    assert_eq!(b.get(4), 9);
    b.wave.scc = true;
    b.step("s_cmov_b32", Format::Sop1, s(4), &[s(2)]);
    assert_eq!(b.get(4), 5);
    b.step("s_cmovk_i32", Format::Sopk, s(4), &[Operand::Imm(-3)]);
    assert_eq!(b.get(4) as i32, -3);
    b.step("s_movk_i32", Format::Sopk, s(4), &[Operand::Imm(-2)]);
    assert_eq!(b.get(4) as i32, -2);
    b.step("s_addk_i32", Format::Sopk, s(4), &[Operand::Imm(-2)]);
    assert_eq!((b.get(4) as i32, b.wave.scc), (-4, false));
    b.step("s_mulk_i32", Format::Sopk, s(4), &[Operand::Imm(-2)]);
    assert_eq!(b.get(4), 8);
}

#[test]
fn compares() {
    let mut b = gfx9();
    assert!(b.compare("s_cmp_lt_i32", u32::MAX, 0));
    assert!(!b.compare("s_cmp_lt_u32", u32::MAX, 0));
    assert!(b.compare("s_cmp_ge_u32", 3, 3));
    assert!(b.compare("s_cmp_lg_u32", 3, 4));
    assert!(b.compare("s_bitcmp1_b32", 4, 34));
    assert!(!b.compare("s_bitcmp0_b32", 4, 34));
    // The unsigned compare with an immediate does not extend its sign.
    b.set(4, 0xffff);
    b.step("s_cmpk_eq_u32", Format::Sopk, s(4), &[Operand::Imm(-1)]);
    assert!(b.wave.scc);
    b.step("s_cmpk_eq_i32", Format::Sopk, s(4), &[Operand::Imm(-1)]);
    assert!(!b.wave.scc);
    b.set64(2, 1 << 40);
    b.set64(6, 1 << 41);
    b.step("s_cmp_lg_u64", Format::Sopc, NONE, &[pair(2), pair(6)]);
    assert!(b.wave.scc);
}

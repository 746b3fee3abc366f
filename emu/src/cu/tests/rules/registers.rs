//! Register files, selectors and constants.

use super::super::{Descriptor, Machine};
use super::*;

#[test]
fn sgpr_102_is_flat_scratch_on_gfx9_and_an_sgpr_later() {
    let gfx9 = "
        .gfx90a
        bee60085  s_mov_b32 flat_scratch_lo, 5
        bee70086  s_mov_b32 flat_scratch_hi, 6
        be840166  s_mov_b64 s[4:5], flat_scratch
    ";
    let gfx10 = "
        .gfx1030
        bee60385  s_mov_b32 s102, 5
        bee70386  s_mov_b32 s103, 6
        be840466  s_mov_b64 s[4:5], s[102:103]
        bee90387  s_mov_b32 s105, 7
    ";
    let gfx11 = "
        .gfx1100
        bee60085  s_mov_b32 s102, 5
        bee70086  s_mov_b32 s103, 6
        be840166  s_mov_b64 s[4:5], s[102:103]
        bee90087  s_mov_b32 s105, 7
    ";
    let gfx12 = "
        .gfx1201
        bee60085  s_mov_b32 s102, 5
        bee70086  s_mov_b32 s103, 6
        be840166  s_mov_b64 s[4:5], s[102:103]
        bee90087  s_mov_b32 s105, 7
    ";
    each(&[gfx9, gfx10, gfx11, gfx12], |gpu| {
        gpu.set_s64(number::FLAT_SCRATCH, 0x1234_5678_9abc_def0);
        gpu.ok();
        assert_eq!((gpu.s64(102), gpu.s64(4)), (0x6_0000_0005, 0x6_0000_0005), "{}", gpu.target);
        let apart = gpu.s64(number::FLAT_SCRATCH);
        assert_eq!(apart, 0x1234_5678_9abc_def0, "{}: the hardware's register is another", gpu.target);
    });
}

#[test]
fn flat_scratch_base_is_selector_230_on_gfx12_and_230_as_a_literal_is_a_number() {
    // The first two are s_mov_b64 s[4:5] and s_mov_b32 s6, which LLVM disassembles and does not assemble.
    let gfx12 = "
        .gfx1201
        be8401e6  .long 0xbe8401e6
        be8600e7  .long 0xbe8600e7
        be8700ff 000000e6  s_mov_b32 s7, 0xe6
        b00800e6  s_movk_i32 s8, 0xe6
        7e0402ff 000000e7  v_mov_b32_e32 v2, 0xe7
        b88af814  s_getreg_b32 s10, hwreg(HW_REG_WAVE_SCRATCH_BASE_LO)
        b88bf815  s_getreg_b32 s11, hwreg(HW_REG_WAVE_SCRATCH_BASE_HI)
    ";
    each(&[gfx12], |gpu| {
        gpu.set_s64(number::FLAT_SCRATCH, 0x1234_5678_9abc_def0);
        gpu.ok();
        assert_eq!([gpu.s(7), gpu.s(8), gpu.v(2, 3)], [230, 230, 231]);
        assert_eq!([gpu.s64(4), gpu.s64(10)], [0x1234_5678_9abc_def0; 2]);
        assert_eq!(gpu.s(6), 0x1234_5678);
    });
}

#[test]
fn m0_and_null_swap_their_selectors_between_gfx10_and_gfx11() {
    // s_mov_b32 with destination 124 and 125, and sources 124 and 125.
    let gfx9 = "
        .gfx90a
        befc0089  s_mov_b32 m0, 9
        be85007c  s_mov_b32 s5, m0
    ";
    let gfx10 = "
        .gfx1030
        befd0388  s_mov_b32 null, 8
        befc0389  s_mov_b32 m0, 9
        be84037d  s_mov_b32 s4, null
        be85037c  s_mov_b32 s5, m0
        be86047d  s_mov_b64 s[6:7], null
    ";
    let gfx11 = "
        .gfx1100
        befc0088  s_mov_b32 null, 8
        befd0089  s_mov_b32 m0, 9
        be84007c  s_mov_b32 s4, null
        be85007d  s_mov_b32 s5, m0
        be86017c  s_mov_b64 s[6:7], null
    ";
    assert_eq!((words(gfx10.lines().nth(3).unwrap())[0] >> 16 & 0x7f), 124, "GFX10 has M0 at 124");
    assert_eq!((words(gfx11.lines().nth(2).unwrap())[0] >> 16 & 0x7f), 124, "GFX11 has NULL at 124");
    each(&[gfx9, gfx10, gfx11], |gpu| {
        gpu.set_s64(6, u64::MAX);
        gpu.ok();
        assert_eq!([gpu.s(number::M0), gpu.s(4), gpu.s(5)], [9, 0, 9], "{}", gpu.target);
        assert_eq!(gpu.s64(6), if gpu.gfx9() { u64::MAX } else { 0 });
    });
}

#[test]
fn selectors_of_apertures_and_of_dwords_that_follow() {
    let gfx9 = "
        .gfx90a
        be8401eb  s_mov_b64 s[4:5], src_shared_base
        be8601ed  s_mov_b64 s[6:7], src_private_base
        be8801ec  s_mov_b64 s[8:9], src_shared_limit
        be8a01ee  s_mov_b64 s[10:11], src_private_limit
        7e0402ff 12345678  v_mov_b32_e32 v2, 0x12345678
        7e0602f9 00050601  v_mov_b32_sdwa v3, v1 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1
        7e0802fa ff00b101  v_mov_b32_dpp v4, v1 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
    ";
    let gfx10 = "
        .gfx1030
        be8404eb  s_mov_b64 s[4:5], src_shared_base
        be8604ed  s_mov_b64 s[6:7], src_private_base
        be8804ec  s_mov_b64 s[8:9], src_shared_limit
        be8a04ee  s_mov_b64 s[10:11], src_private_limit
        7e0402ff 12345678  v_mov_b32_e32 v2, 0x12345678
        7e0602f9 00050601  v_mov_b32_sdwa v3, v1 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1
        7e0802fa ff00b101  v_mov_b32_dpp v4, v1 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
        7e0a02e9 de54c101  v_mov_b32_dpp v5, v1 dpp8:[1,0,3,2,5,4,7,6]
        7e0c02ea de54c101  v_mov_b32_dpp v6, v1 dpp8:[1,0,3,2,5,4,7,6] fi:1
    ";
    let gfx11 = "
        .gfx1100
        be8401eb  s_mov_b64 s[4:5], src_shared_base
        be8601ed  s_mov_b64 s[6:7], src_private_base
        be8801ec  s_mov_b64 s[8:9], src_shared_limit
        be8a01ee  s_mov_b64 s[10:11], src_private_limit
        7e0402ff 12345678  v_mov_b32_e32 v2, 0x12345678
        32060290  v_lshrrev_b32_e32 v3, 16, v1
        7e0802fa ff00b101  v_mov_b32_dpp v4, v1 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
        7e0a02e9 de54c101  v_mov_b32_dpp v5, v1 dpp8:[1,0,3,2,5,4,7,6]
        7e0c02ea de54c101  v_mov_b32_dpp v6, v1 dpp8:[1,0,3,2,5,4,7,6] fi:1
    ";
    let first = |line: &str| words(line)[0] & 0x1ff;
    let lines: Vec<&str> = gfx10.lines().skip(6).collect();
    assert_eq!([0, 1, 2, 3, 4].map(|line| first(lines[line])), [255, 249, 250, 233, 234]);
    each(&[gfx9, gfx10, gfx11], |gpu| {
        gpu.set(1, |lane| (lane + 100) << 16 | lane);
        gpu.ok();
        assert_eq!([gpu.s64(4), gpu.s64(6)], [1 << 48, 2 << 48]);
        assert_eq!([gpu.s64(8), gpu.s64(10)], [0x1_0000_ffff_ffff, 0x2_0000_ffff_ffff]);
        assert_eq!([gpu.v(2, 5), gpu.v(3, 5), gpu.v(4, 5)], [0x1234_5678, 105, 104 << 16 | 4]);
        if !gpu.gfx9() {
            assert_eq!([gpu.v(5, 5), gpu.v(6, 6)], [104 << 16 | 4, 107 << 16 | 7]);
        }
    });
}

#[test]
fn a_literal_widens_by_the_sign_of_its_operand_and_is_the_high_half_of_f64() {
    let gfx9 = "
        .gfx90a
        908484ff 80000000  s_ashr_i64 s[4:5], 0x80000000, 4
        8f8684ff 80000000  s_lshr_b64 s[6:7], 0x80000000, 4
        8788ff14 80000000  s_or_b64 s[8:9], s[20:21], 0x80000000
        be8a01ff 80000000  s_mov_b64 s[10:11], 0x80000000
        940c16ff 80000000  s_bfe_i64 s[12:13], 0x80000000, s22
        938e16ff 80000000  s_bfe_u64 s[14:15], 0x80000000, s22
        7e041eff c0090000  v_cvt_f32_f64_e32 v2, 0xc0090000
        7cc408ff 40090000  v_cmp_eq_f64_e32 vcc, 0x40090000, v[4:5]
        7e0c34ff 40090000  v_floor_f64_e32 v[6:7], 0x40090000
    ";
    let gfx11 = "
        .gfx1100
        868484ff 80000000  s_ashr_i64 s[4:5], 0x80000000, 4
        858684ff 80000000  s_lshr_b64 s[6:7], 0x80000000, 4
        8c88ff14 80000000  s_or_b64 s[8:9], s[20:21], 0x80000000
        be8a01ff 80000000  s_mov_b64 s[10:11], 0x80000000
        948c16ff 80000000  s_bfe_i64 s[12:13], 0x80000000, s22
        940e16ff 80000000  s_bfe_u64 s[14:15], 0x80000000, s22
        7e041eff c0090000  v_cvt_f32_f64_e32 v2, 0xc0090000
        7c4408ff 40090000  v_cmp_eq_f64_e32 vcc_lo, 0x40090000, v[4:5]
        7e0c34ff 40090000  v_floor_f64_e32 v[6:7], 0x40090000
        d73e0008 0001fe84 80000000  v_ashrrev_i64 v[8:9], 4, 0x80000000
        d73d000a 0001fe84 80000000  v_lshrrev_b64 v[10:11], 4, 0x80000000
        d727000c 0001ff04 40090000  v_add_f64 v[12:13], v[4:5], 0x40090000
        7ca81cff 80000000  v_cmp_gt_i64_e32 vcc_lo, 0x80000000, v[14:15]
    ";
    each(&[gfx9, gfx11], |gpu| {
        gpu.set_s(22, 64 << 16);
        gpu.fill64(4, 3.125f64.to_bits());
        gpu.fill64(14, 5);
        gpu.ok();
        let (signed, plain) = (0xffff_ffff_8000_0000u64, 0x8000_0000);
        assert_eq!([gpu.s64(4), gpu.s64(6)], [(signed as i64 >> 4) as u64, plain >> 4]);
        assert_eq!([gpu.s64(8), gpu.s64(10)], [plain, plain]);
        assert_eq!([gpu.s64(12), gpu.s64(14)], [signed, plain]);
        assert_eq!((gpu.f(2, 1), gpu.d(6, 1)), (-3.125, 3.0));
        if gpu.gfx9() {
            assert_eq!(gpu.vcc(), u64::MAX);
        } else {
            assert_eq!([gpu.v64(8, 1), gpu.v64(10, 1)], [(signed as i64 >> 4) as u64, plain >> 4]);
            assert_eq!((gpu.d(12, 1), gpu.vcc()), (6.25, 0), "a negative number is not above 5");
        }
    });
}

#[test]
fn inline_constants_have_the_width_of_their_operand() {
    let gfx9 = "
        .gfx90a
        3e0402f0  v_add_f16_e32 v2, 0.5, v1
        020602f0  v_add_f32_e32 v3, 0.5, v1
        d2800004 000214f0  v_add_f64 v[4:5], 0.5, v[10:11]
        d2900006 0001e080  v_lshrrev_b64 v[6:7], 0, 0.5
        2a1002f0  v_xor_b32_e32 v8, 0.5, v1
        d38f4009 0801e101  v_pk_add_f16 v9, v1, 0.5 op_sel_hi:[1,0]
        d38f400c 1801e101  v_pk_add_f16 v12, v1, 0.5
        d38a400d 1801e101  v_pk_add_u16 v13, v1, 0.5
        d38a400e 18018301  v_pk_add_u16 v14, v1, -1
        d383400f 08018501  v_pk_sub_i16 v15, v1, -2 op_sel_hi:[1,0]
        4c2002f0  .long 0x4c2002f0
    ";
    let gfx11 = "
        .gfx1100
        640402f0  v_add_f16_e32 v2.l, 0.5, v1.l
        060602f0  v_add_f32_e32 v3, 0.5, v1
        d7270004 000214f0  v_add_f64 v[4:5], 0.5, v[10:11]
        d73d0006 0001e080  v_lshrrev_b64 v[6:7], 0, 0.5
        3a1002f0  v_xor_b32_e32 v8, 0.5, v1
        cc0f4009 0801e101  v_pk_add_f16 v9, v1, 0.5 op_sel_hi:[1,0]
        cc0f400c 1801e101  v_pk_add_f16 v12, v1, 0.5
        cc0a400d 1801e101  v_pk_add_u16 v13, v1, 0.5
        cc0a400e 18018301  v_pk_add_u16 v14, v1, -1
        cc03400f 08018501  v_pk_sub_i16 v15, v1, -2 op_sel_hi:[1,0]
        d7030010  .long 0xd7030010
        000202f0  .long 0x000202f0
    ";
    each(&[gfx9, gfx11], |gpu| {
        gpu.fill(1, 0);
        gpu.fill64(10, 0);
        gpu.fill(16, 0);
        gpu.fill(2, 0);
        gpu.ok();
        assert_eq!([gpu.v(2, 0), gpu.v(3, 0), gpu.v(8, 0)], [0x3800, 0x3f00_0000, 0x3f00_0000]);
        assert_eq!((gpu.d(4, 0), gpu.d(6, 0)), (0.5, 0.5));
        // A float constant lies in the low half; op_sel_hi 0 takes it twice.
        assert_eq!([gpu.v(9, 0), gpu.v(12, 0)], [0x3800_3800, 0x3800]);
        // Packed integer operations see the bits of the f32.
        assert_eq!(gpu.v(13, 0), 0x3f00_0000);
        // v_add_u16 v16, 0.5, v1: an f32 on GFX9, whose low half is 0, and an f16 later.
        assert_eq!(gpu.v(16, 0), if gpu.gfx9() { 0 } else { 0x3800 }, "{}", gpu.target);
        // Integers are sign-extended to 32 bits.
        assert_eq!([gpu.v(14, 0), gpu.v(15, 0)], [u32::MAX, 0x0002_0002]);
    });
}

#[test]
fn registers_beyond_the_allocation_are_named_in_a_fault() {
    let source = "
        .gfx1100
        7e020340  v_mov_b32_e32 v1, v64
    ";
    let destination = "
        .gfx90a
        d2800040 00020100  v_add_f64 v[64:65], v[0:1], v[0:1]
    ";
    let memory = "
        .gfx1100
        dc5e0000 3e040000  global_load_b128 v[62:65], v0, s[4:5]
    ";
    each(&[source, destination, memory], |gpu| {
        let fault = gpu.fault();
        assert_eq!((&fault.kind, fault.pc), (&trace::FaultKind::IllegalInstruction, Some(CODE)));
        assert!(fault.detail.contains("beyond the 64 allocated registers"), "{}", fault.detail);
    });
}

#[test]
fn relative_vector_moves_add_m0_to_a_register_number() {
    let gfx10 = "
        .gfx1030
        7e02870a  v_movrels_b32_e32 v1, v10
        7e28850b  v_movreld_b32_e32 v20, v11
        7e3c890c  v_movrelsd_b32_e32 v30, v12
    ";
    let gfx11 = "
        .gfx1100
        7e02870a  v_movrels_b32_e32 v1, v10
        7e28850b  v_movreld_b32_e32 v20, v11
        7e3c890c  v_movrelsd_b32_e32 v30, v12
    ";
    let gfx12 = "
        .gfx1201
        7e02870a  v_movrels_b32_e32 v1, v10
        7e28850b  v_movreld_b32_e32 v20, v11
        7e3c890c  v_movrelsd_b32_e32 v30, v12
    ";
    each(&[gfx10, gfx11, gfx12], |gpu| {
        (0..ROWS).for_each(|register| gpu.fill(register, 100 + register));
        gpu.set_s(number::M0, 3);
        gpu.exec(1);
        gpu.ok();
        assert_eq!([gpu.v(1, 0), gpu.v(23, 0), gpu.v(33, 0)], [113, 111, 115], "{}", gpu.target);
        assert_eq!([gpu.v(1, 1), gpu.v(20, 0), gpu.v(30, 0)], [101, 120, 130], "and no other");
    });
}

#[test]
fn relative_scalar_moves_add_m0_to_a_register_number() {
    let gfx9 = "
        .gfx90a
        be842a0a  s_movrels_b32 s4, s10
        be942c0b  s_movreld_b32 s20, s11
        be862b0c  s_movrels_b64 s[6:7], s[12:13]
        be9e2d0e  s_movreld_b64 s[30:31], s[14:15]
    ";
    let gfx11 = "
        .gfx1100
        be84400a  s_movrels_b32 s4, s10
        be94420b  s_movreld_b32 s20, s11
        be86410c  s_movrels_b64 s[6:7], s[12:13]
        be9e430e  s_movreld_b64 s[30:31], s[14:15]
        bea84432  s_movrelsd_2_b32 s40, s50
    ";
    each(&[gfx9, gfx11], |gpu| {
        (0..100).for_each(|register| gpu.set_s(register, 1000 + register as u32));
        gpu.set_s(number::M0, 1 << 16 | 2);
        gpu.set_s(number::M0, 2);
        gpu.ok();
        assert_eq!(
            [gpu.s(4), gpu.s(22), gpu.s(6), gpu.s(7), gpu.s(32), gpu.s(33)],
            [1012, 1011, 1014, 1015, 1014, 1015]
        );
        if !gpu.gfx9() {
            assert_eq!(gpu.s(40), 1052);
        }
    });
}

#[test]
fn gfx9_index_mode_moves_the_registers_of_every_vector_operation() {
    let listing = "
        .gfx900
        bf110104  s_set_gpr_idx_on s4, gpr_idx(SRC0)
        7e02030a  v_mov_b32_e32 v1, v10
        6804170a  v_add_u32_e32 v2, v10, v11
        bf9d0002  s_set_gpr_idx_mode gpr_idx(SRC1)
        d1ff0003 0432170a  v_add3_u32 v3, v10, v11, v12
        bf9d0004  s_set_gpr_idx_mode gpr_idx(SRC2)
        d1ff0004 0432170a  v_add3_u32 v4, v10, v11, v12
        bf9d0008  s_set_gpr_idx_mode gpr_idx(DST)
        7e28030a  v_mov_b32_e32 v20, v10
        d1ff001e 0432170a  v_add3_u32 v30, v10, v11, v12
        be803205  s_set_gpr_idx_idx s5
        7e50030a  v_mov_b32_e32 v40, v10
        bf9d000f  s_set_gpr_idx_mode gpr_idx(SRC0,SRC1,SRC2,DST)
        d1ff0032 0432170a  v_add3_u32 v50, v10, v11, v12
        7d94170a  v_cmp_eq_u32_e32 vcc, v10, v11
        bf9c0000  s_set_gpr_idx_off
        7e0a030a  v_mov_b32_e32 v5, v10
    ";
    each(&[listing, &listing.replace("gfx900", "gfx90a")], |gpu| {
        (0..ROWS).for_each(|register| gpu.fill(register, 1000 * register));
        (gpu.set_s(4, 3), gpu.set_s(5, 7));
        gpu.set_s64(number::VCC, u64::MAX);
        gpu.ok();
        let thousands =
            |registers: &[u32]| registers.iter().map(|register| gpu.v(*register, 9) / 1000).collect::<Vec<_>>();
        assert_eq!(thousands(&[1, 2, 3, 4]), [13, 24, 36, 36], "one source at a time");
        assert_eq!(thousands(&[20, 23, 30, 33]), [20, 10, 30, 33], "the destination");
        assert_eq!(thousands(&[40, 47, 50, 57]), [40, 10, 50, 54], "another index; all operands");
        assert_eq!((gpu.vcc(), gpu.v(5, 9)), (0, 10_000), "compares too; nothing once it is off");
    });
}

#[test]
fn accumulation_registers_follow_the_vector_registers_in_one_file() {
    let gfx90a = "
        .gfx90a
        d3d94000 18000101  v_accvgpr_write_b32 a0, v1
        da6c0000 01000002  ds_read_b32 a1, v2
        dc508000 02840002  global_load_dword a2, v2, s[4:5]
        e0501000 80820302  buffer_load_dword a3, v2, s[8:11], 0 offen
        dc500000 0480000a  flat_load_dword a4, v[10:11]
        da1a0100 00000002  ds_write_b32 v2, a0 offset:256
        dc708400 00840002  global_store_dword v2, a0, s[4:5] offset:1024
        d3d84003 18000101  v_accvgpr_read_b32 v3, a1
        7e0ca500  v_accvgpr_mov_b32 a6, a0
        daec0000 08000004  ds_read_b64 a[8:9], v4
        bf800000  s_nop 0
    ";
    let gfx942 = gfx90a.replace("gfx90a", "gfx942");
    each(&[gfx90a, &gfx942], |gpu| {
        gpu.set(1, |lane| 7000 + lane);
        gpu.set(2, |lane| 4 * (lane & 31));
        gpu.set(4, |_| 8);
        gpu.set64(10, |lane| DATA + 4 * lane as u64);
        gpu.set_s64(4, DATA);
        gpu.set_s64(8, DATA);
        (gpu.set_s(10, u32::MAX), gpu.set_s(11, 0x2_0000));
        (0..64).for_each(|word| gpu.set_lds(word, 600 + word as u32));
        gpu.ok();
        for lane in [0, 17, 31] {
            let row = |acc: u32| gpu.v(ROWS + acc, lane);
            assert_eq!([row(0), row(1), row(2), row(3), row(4)], [7000 + lane, 600 + lane, lane, lane, lane]);
            assert_eq!([row(6), row(8), row(9), gpu.v(3, lane)], [7000 + lane, 602, 603, 600 + lane]);
        }
        assert_eq!([gpu.lds(64 + 32 - 1), gpu.word(256 + 31)], [7063, 7063], "the highest lane is last");
    });
}

#[test]
fn the_first_accumulation_register_is_at_accum_offset() {
    // out[lane] = a0, which is row 8 of 16.
    let listing = "
        .gfx90a
        c0060100 00000000  s_load_dwordx2 s[4:5], s[0:1], 0x0
        24020082  v_lshlrev_b32_e32 v1, 2, v0
        d3d94003 18000100  v_accvgpr_write_b32 a3, v0
        d3d84002 18000103  v_accvgpr_read_b32 v2, a3
        dc708000 00040201  global_store_dword v1, v2, s[4:5]
        7e0e0281  v_mov_b32_e32 v7, 1
        bf810000  s_endpgm
    ";
    let code: Vec<u32> = listing.lines().flat_map(words).collect();
    let beyond: Vec<u32> = "d3d9400b 18000100  v_accvgpr_write_b32 a11, v0".lines().flat_map(words).collect();
    for target in [Target::Gfx90a, Target::Gfx942] {
        let machine = Machine::new(target);
        // 16 registers in all, AccVGPRs from 8 on.
        let descriptor = Descriptor { rsrc1: 1 | 0xaf << 16, rsrc3: 1, ..Descriptor::new(target) };
        machine.load(Descriptor { rsrc2: 2 << 1, ..descriptor }, &code);
        machine.run(&machine.dispatch([64, 1, 1], [64, 1, 1])).unwrap();
        assert!((0..64).all(|lane| machine.word(lane) == lane as u32));
        machine.load(descriptor, &beyond);
        let fault = machine.run(&machine.dispatch([64, 1, 1], [64, 1, 1])).unwrap_err();
        assert!(fault.detail.contains("v19 is beyond the 16 allocated"), "{}", fault.detail);
    }
}

#[test]
fn gfx90a_refuses_odd_register_pairs_and_f64_dpp_but_row_newbcast() {
    let odd = [
        "
        .gfx90a
        d2800001  .long 0xd2800001
        00020502  .long 0x00020502
    ",
        "
        .gfx90a
        d2800002  .long 0xd2800002
        00020501  .long 0x00020501
    ",
    ];
    each(&odd, |gpu| assert_eq!(gpu.fault().kind, trace::FaultKind::IllegalInstruction));
    // The same registers are fine on GFX900.
    let even = "
        .gfx900
        d2800001 00020502  v_add_f64 v[1:2], v[2:3], v[2:3]
    ";
    let newbcast = "
        .gfx90a
        7e0830fa ff015302  v_ceil_f64_dpp v[4:5], v[2:3] row_newbcast:3 row_mask:0xf bank_mask:0xf
    ";
    each(&[even, newbcast], |gpu| {
        gpu.set64(2, |lane| (1.5 + lane as f64).to_bits());
        gpu.ok();
        if gpu.target == Target::Gfx900 {
            assert_eq!(gpu.d(1, 5), 13.0);
        } else {
            assert_eq!([gpu.d(4, 5), gpu.d(4, 40)], [5.0, 37.0]);
        }
    });
    let quad = "
        .gfx90a
        7e0830fa  .long 0x7e0830fa
        ff00b102  .long 0xff00b102
    ";
    each(&[quad], |gpu| assert_eq!(gpu.fault().kind, trace::FaultKind::IllegalInstruction));
}

//! Kernels as `llvm-mc` assembles them, with its disassembly beside.

/// out[64 * group + item] = group << 16 | item
pub const IDS_GFX1100: &[u32] = &[
    0xf404_0100, 0xf800_0000, // s_load_b64 s[4:5], s[0:1], null
    0x7e04_02c0, // v_mov_b32_e32 v2, 64
    0xd60b_0001, 0x0402_0402, // v_mad_u32_u24 v1, s2, v2, v0
    0x3006_0282, // v_lshlrev_b32_e32 v3, 2, v1
    0xd656_0004, 0x0401_2002, // v_lshl_or_b32 v4, s2, 16, v0
    0xbf89_fc07, // s_waitcnt lgkmcnt(0)
    0xdc6a_0000, 0x0004_0403, // global_store_b32 v3, v4, s[4:5]
    0xbfb0_0000, // s_endpgm
];

/// out[64 * group + item] = group << 16 | item
pub const IDS_GFX90A: &[u32] = &[
    0xc006_0100, 0x0000_0000, // s_load_dwordx2 s[4:5], s[0:1], 0x0
    0x7e04_02c0, // v_mov_b32_e32 v2, 64
    0xd1c3_0001, 0x0402_0402, // v_mad_u32_u24 v1, s2, v2, v0
    0x2406_0282, // v_lshlrev_b32_e32 v3, 2, v1
    0xd200_0004, 0x0401_2002, // v_lshl_or_b32 v4, s2, 16, v0
    0xbf8c_c07f, // s_waitcnt lgkmcnt(0)
    0xdc70_8000, 0x0004_0403, // global_store_dword v3, v4, s[4:5]
    0xbf81_0000, // s_endpgm
];

pub const IDS_GFX1030: &[u32] = &[
    0xf404_0100, 0xfa00_0000, // s_load_dwordx2 s[4:5], s[0:1], null
    0x7e04_02c0, // v_mov_b32_e32 v2, 64
    0xd543_0001, 0x0402_0402, // v_mad_u32_u24 v1, s2, v2, v0
    0x3406_0282, // v_lshlrev_b32_e32 v3, 2, v1
    0xd76f_0004, 0x0401_2002, // v_lshl_or_b32 v4, s2, 16, v0
    0xbf8c_c07f, // s_waitcnt lgkmcnt(0)
    0xdc70_8000, 0x0004_0403, // global_store_dword v3, v4, s[4:5]
    0xbf81_0000, // s_endpgm
];

pub const IDS_GFX1201: &[u32] = &[
    0xf400_2100, 0xf800_0000, // s_load_b64 s[4:5], s[0:1], 0x0
    0x7e04_02c0, // v_mov_b32_e32 v2, 64
    0xd60b_0001, 0x0402_0475, // v_mad_u32_u24 v1, ttmp9, v2, v0
    0x3006_0282, // v_lshlrev_b32_e32 v3, 2, v1
    0xd656_0004, 0x0401_2075, // v_lshl_or_b32 v4, ttmp9, 16, v0
    0xbfc7_0000, // s_wait_kmcnt 0x0
    0xee06_8004, 0x0200_0000, 0x0000_0003, // global_store_b32 v3, v4, s[4:5]
    0xbfb0_0000, // s_endpgm
];

/// out[0] += x + 10 y + 100 z + 1000 X + 10000 Y + 100000 Z for item and group ids; out[1] += 1
pub const SUM_GFX1100: &[u32] = &[
    0xf404_0200, 0xf800_0000, // s_load_b64 s[8:9], s[0:1], null
    0x3602_00ff, 0x0000_03ff, // v_and_b32_e32 v1, 0x3ff, v0
    0xd610_0002, 0x0229_1500, // v_bfe_u32 v2, v0, 10, 10
    0xd610_0003, 0x0229_2900, // v_bfe_u32 v3, v0, 20, 10
    0x1604_048a, // v_mul_u32_u24_e32 v2, 10, v2
    0x1606_06ff, 0x0000_0064, // v_mul_u32_u24_e32 v3, 0x64, v3
    0xd655_0001, 0x040e_0501, // v_add3_u32 v1, v1, v2, v3
    0x9605_ff02, 0x0000_03e8, // s_mul_i32 s5, s2, 0x3e8
    0x9606_ff03, 0x0000_2710, // s_mul_i32 s6, s3, 0x2710
    0x9607_ff04, 0x0001_86a0, // s_mul_i32 s7, s4, 0x186a0
    0x8005_0605, // s_add_u32 s5, s5, s6
    0x8005_0705, // s_add_u32 s5, s5, s7
    0x4a02_0205, // v_add_nc_u32_e32 v1, s5, v1
    0x7e08_0280, // v_mov_b32_e32 v4, 0
    0x7e0a_0281, // v_mov_b32_e32 v5, 1
    0xbf89_fc07, // s_waitcnt lgkmcnt(0)
    0xdcd6_0000, 0x0008_0104, // global_atomic_add_u32 v4, v1, s[8:9]
    0xdcd6_0004, 0x0008_0504, // global_atomic_add_u32 v4, v5, s[8:9] offset:4
    0xbfb0_0000, // s_endpgm
];

pub const SUM_GFX1030: &[u32] = &[
    0xf404_0200, 0xfa00_0000, // s_load_dwordx2 s[8:9], s[0:1], null
    0x1606_028a, // v_mul_u32_u24_e32 v3, 10, v1
    0x1608_04ff, 0x0000_0064, // v_mul_u32_u24_e32 v4, 0x64, v2
    0xd76d_0001, 0x0412_0700, // v_add3_u32 v1, v0, v3, v4
    0x9305_ff02, 0x0000_03e8, // s_mul_i32 s5, s2, 0x3e8
    0x9306_ff03, 0x0000_2710, // s_mul_i32 s6, s3, 0x2710
    0x9307_ff04, 0x0001_86a0, // s_mul_i32 s7, s4, 0x186a0
    0x8005_0605, // s_add_u32 s5, s5, s6
    0x8005_0705, // s_add_u32 s5, s5, s7
    0x4a02_0205, // v_add_nc_u32_e32 v1, s5, v1
    0x7e08_0280, // v_mov_b32_e32 v4, 0
    0x7e0a_0281, // v_mov_b32_e32 v5, 1
    0xbf8c_c07f, // s_waitcnt lgkmcnt(0)
    0xdcc8_8000, 0x0008_0104, // global_atomic_add v4, v1, s[8:9]
    0xdcc8_8004, 0x0008_0504, // global_atomic_add v4, v5, s[8:9] offset:4
    0xbf81_0000, // s_endpgm
];

pub const SUM_GFX1201: &[u32] = &[
    0xf400_2200, 0xf800_0000, // s_load_b64 s[8:9], s[0:1], 0x0
    0x3602_00ff, 0x0000_03ff, // v_and_b32_e32 v1, 0x3ff, v0
    0xd610_0002, 0x0229_1500, // v_bfe_u32 v2, v0, 10, 10
    0xd610_0003, 0x0229_2900, // v_bfe_u32 v3, v0, 20, 10
    0x1604_048a, // v_mul_u32_u24_e32 v2, 10, v2
    0x1606_06ff, 0x0000_0064, // v_mul_u32_u24_e32 v3, 0x64, v3
    0xd655_0001, 0x040e_0501, // v_add3_u32 v1, v1, v2, v3
    0x8b03_ff73, 0x0000_ffff, // s_and_b32 s3, ttmp7, 0xffff
    0x8504_9073, // s_lshr_b32 s4, ttmp7, 16
    0x9605_ff75, 0x0000_03e8, // s_mul_i32 s5, ttmp9, 0x3e8
    0x9606_ff03, 0x0000_2710, // s_mul_i32 s6, s3, 0x2710
    0x9607_ff04, 0x0001_86a0, // s_mul_i32 s7, s4, 0x186a0
    0x8005_0605, // s_add_co_u32 s5, s5, s6
    0x8005_0705, // s_add_co_u32 s5, s5, s7
    0x4a02_0205, // v_add_nc_u32_e32 v1, s5, v1
    0x7e08_0280, // v_mov_b32_e32 v4, 0
    0x7e0a_0281, // v_mov_b32_e32 v5, 1
    0xbfc7_0000, // s_wait_kmcnt 0x0
    0xee0d_4008, 0x0080_0000, 0x0000_0004, // global_atomic_add_u32 v4, v1, s[8:9]
    0xee0d_4008, 0x0280_0000, 0x0000_0404, // global_atomic_add_u32 v4, v5, s[8:9] offset:4
    0xbfb0_0000, // s_endpgm
];

/// out[item] = 3 * (255 - item), through LDS, for a group of 256
pub const REVERSE_GFX1100: &[u32] = &[
    0xf404_0100, 0xf800_0000, // s_load_b64 s[4:5], s[0:1], null
    0x3002_0082, // v_lshlrev_b32_e32 v1, 2, v0
    0x1604_0083, // v_mul_u32_u24_e32 v2, 3, v0
    0xd834_0000, 0x0000_0201, // ds_store_b32 v1, v2
    0xbf89_fc07, // s_waitcnt lgkmcnt(0)
    0xbfbd_0000, // s_barrier
    0x4c06_02ff, 0x0000_03fc, // v_sub_nc_u32_e32 v3, 0x3fc, v1
    0xd8d8_0000, 0x0400_0003, // ds_load_b32 v4, v3
    0xbf89_fc07, // s_waitcnt lgkmcnt(0)
    0xdc6a_0000, 0x0004_0401, // global_store_b32 v1, v4, s[4:5]
    0xbfb0_0000, // s_endpgm
];

pub const REVERSE_GFX90A: &[u32] = &[
    0xc006_0100, 0x0000_0000, // s_load_dwordx2 s[4:5], s[0:1], 0x0
    0x2402_0082, // v_lshlrev_b32_e32 v1, 2, v0
    0x1004_0083, // v_mul_u32_u24_e32 v2, 3, v0
    0xd81a_0000, 0x0000_0201, // ds_write_b32 v1, v2
    0xbf8c_c07f, // s_waitcnt lgkmcnt(0)
    0xbf8a_0000, // s_barrier
    0x6a06_02ff, 0x0000_03fc, // v_sub_u32_e32 v3, 0x3fc, v1
    0xd86c_0000, 0x0400_0003, // ds_read_b32 v4, v3
    0xbf8c_c07f, // s_waitcnt lgkmcnt(0)
    0xdc70_8000, 0x0004_0401, // global_store_dword v1, v4, s[4:5]
    0xbf81_0000, // s_endpgm
];

pub const REVERSE_GFX1201: &[u32] = &[
    0xf400_2100, 0xf800_0000, // s_load_b64 s[4:5], s[0:1], 0x0
    0x3002_0082, // v_lshlrev_b32_e32 v1, 2, v0
    0x1604_0083, // v_mul_u32_u24_e32 v2, 3, v0
    0xd834_0000, 0x0000_0201, // ds_store_b32 v1, v2
    0xbfc6_0000, // s_wait_dscnt 0x0
    0xbe80_4ec1, // s_barrier_signal -1
    0xbf94_ffff, // s_barrier_wait 0xffff
    0x4c06_02ff, 0x0000_03fc, // v_sub_nc_u32_e32 v3, 0x3fc, v1
    0xd8d8_0000, 0x0400_0003, // ds_load_b32 v4, v3
    0xbfc6_0000, // s_wait_dscnt 0x0
    0xbfc7_0000, // s_wait_kmcnt 0x0
    0xee06_8004, 0x0200_0000, 0x0000_0001, // global_store_b32 v1, v4, s[4:5]
    0xbfb0_0000, // s_endpgm
];

/// the same through scratch, giving up the turn in between
pub const SCRATCH_GFX1100: &[u32] = &[
    0xf404_0100, 0xf800_0000, // s_load_b64 s[4:5], s[0:1], null
    0xd656_0001, 0x0401_2002, // v_lshl_or_b32 v1, s2, 16, v0
    0xdc69_000c, 0x007c_0100, // scratch_store_b32 off, v1, off offset:12
    0xbf83_0001, // s_sleep 1
    0xdc51_000c, 0x027c_0000, // scratch_load_b32 v2, off, off offset:12
    0x7e06_02c0, // v_mov_b32_e32 v3, 64
    0xd60b_0004, 0x0402_0602, // v_mad_u32_u24 v4, s2, v3, v0
    0x3008_0882, // v_lshlrev_b32_e32 v4, 2, v4
    0xbf89_0007, // s_waitcnt vmcnt(0) lgkmcnt(0)
    0xdc6a_0000, 0x0004_0204, // global_store_b32 v4, v2, s[4:5]
    0xbfb0_0000, // s_endpgm
];

/// group 0 waits for group 1, which waits for group 0
pub const SPIN_GFX1100: &[u32] = &[
    0xf404_0100, 0xf800_0000, // s_load_b64 s[4:5], s[0:1], null
    0x7e02_0280, // v_mov_b32_e32 v1, 0
    0x7e04_0281, // v_mov_b32_e32 v2, 1
    0xbf07_8002, // s_cmp_lg_u32 s2, 0
    0xbf89_fc07, // s_waitcnt lgkmcnt(0)
    0xbfa2_0008, // s_cbranch_scc1 second
    0xdc52_4000, 0x0304_0001, // global_load_b32 v3, v1, s[4:5] glc
    0xbf89_03f7, // s_waitcnt vmcnt(0)
    0x7c9a_0680, // v_cmp_ne_u32_e32 vcc_lo, 0, v3
    0xbfa3_fffb, // s_cbranch_vccz first
    0xdc6a_0004, 0x0004_0201, // global_store_b32 v1, v2, s[4:5] offset:4
    0xbfb0_0000, // s_endpgm
    0xdc6a_0000, 0x0004_0201, // global_store_b32 v1, v2, s[4:5]
    0xdc52_4004, 0x0304_0001, // global_load_b32 v3, v1, s[4:5] offset:4 glc
    0xbf89_03f7, // s_waitcnt vmcnt(0)
    0x7c9a_0680, // v_cmp_ne_u32_e32 vcc_lo, 0, v3
    0xbfa3_fffb, // s_cbranch_vccz wait
    0xbfb0_0000, // s_endpgm
];

/// 200002 ... counts down from 100000
pub const LOOP_GFX1100: &[u32] = &[
    0xbe84_00ff, 0x0001_86a0, // s_mov_b32 s4, 0x186a0
    0x8084_8104, // s_sub_u32 s4, s4, 1
    0xbf07_8004, // s_cmp_lg_u32 s4, 0
    0xbfa2_fffd, // s_cbranch_scc1 again
    0xbfb0_0000, // s_endpgm
];

/// waits for the host to store, then interrupts it with 42
pub const WAIT_HOST_GFX1100: &[u32] = &[
    0xf404_0100, 0xf800_0000, // s_load_b64 s[4:5], s[0:1], null
    0xbf83_0001, // s_sleep 1
    0xf400_4182, 0xf800_0000, // s_load_b32 s6, s[4:5], null glc
    0xbf89_fc07, // s_waitcnt lgkmcnt(0)
    0xbf06_8006, // s_cmp_eq_u32 s6, 0
    0xbfa2_fffa, // s_cbranch_scc1 again
    0xbefd_00aa, // s_mov_b32 m0, 42
    0xbfb6_0001, // s_sendmsg sendmsg(MSG_INTERRUPT)
    0xbfb0_0000, // s_endpgm
];

pub const CODE_END_GFX1100: &[u32] = &[
    0xbf80_0000, // s_nop 0
    0xbf9f_0000, // s_code_end
];

pub const TRAP_GFX1100: &[u32] = &[
    0xbf90_0003, // s_trap 3
    0xbf90_0002, // s_trap 2
];

pub const NULL_STORE_GFX1100: &[u32] = &[
    0x7e00_0280, // v_mov_b32_e32 v0, 0
    0x7e02_0280, // v_mov_b32_e32 v1, 0
    0xdc6a_0000, 0x007c_0000, // global_store_b32 v[0:1], v0, off
    0xbfb0_0000, // s_endpgm
];

/// jumps to the first argument
pub const JUMP_GFX1100: &[u32] = &[
    0xf404_0100, 0xf800_0000, // s_load_b64 s[4:5], s[0:1], null
    0xbf89_fc07, // s_waitcnt lgkmcnt(0)
    0xbe80_4804, // s_setpc_b64 s[4:5]
];

/// out[0] = 0x11111111, word 3 of the code
pub const LITERAL_GFX1100: &[u32] = &[
    0xf404_0100, 0xf800_0000, // s_load_b64 s[4:5], s[0:1], null
    0x7e00_0280, // v_mov_b32_e32 v0, 0
    0x7e02_02ff, 0x1111_1111, // v_mov_b32_e32 v1, 0x11111111
    0xbf89_fc07, // s_waitcnt lgkmcnt(0)
    0xdc6a_0000, 0x0004_0100, // global_store_b32 v0, v1, s[4:5]
    0xbfb0_0000, // s_endpgm
];

/// out = v[4 + 2], v[7 + 2] written through the index, v4
pub const INDEX_GFX900: &[u32] = &[
    0xc006_0100, 0x0000_0000, // s_load_dwordx2 s[4:5], s[0:1], 0x0
    0x7e02_0280, // v_mov_b32_e32 v1, 0
    0x7e08_02ff, 0x0000_0044, // v_mov_b32_e32 v4, 0x44
    0x7e0a_02ff, 0x0000_0055, // v_mov_b32_e32 v5, 0x55
    0x7e0c_02ff, 0x0000_0066, // v_mov_b32_e32 v6, 0x66
    0xbe86_0082, // s_mov_b32 s6, 2
    0xbf11_0106, // s_set_gpr_idx_on s6, gpr_idx(SRC0)
    0x7e04_0304, // v_mov_b32_e32 v2, v4
    0xbf9d_0008, // s_set_gpr_idx_mode gpr_idx(DST)
    0x7e0e_0305, // v_mov_b32_e32 v7, v5
    0xbf9c_0000, // s_set_gpr_idx_off
    0x7e06_0304, // v_mov_b32_e32 v3, v4
    0xbf8c_c07f, // s_waitcnt lgkmcnt(0)
    0xdc70_8000, 0x0004_0201, // global_store_dword v1, v2, s[4:5]
    0xdc70_8004, 0x0004_0901, // global_store_dword v1, v9, s[4:5] offset:4
    0xdc70_8008, 0x0004_0301, // global_store_dword v1, v3, s[4:5] offset:8
    0xbf81_0000, // s_endpgm
];

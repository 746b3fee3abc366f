//! Which slot each operand goes to, by format.

use super::super::{Decoded, Dpp, Operand, Sdwa, Special, Target, decode};
use super::bytes;

fn decoded(target: Target, words: &[u32]) -> Decoded {
    decode(target, &bytes(words)).unwrap()
}

fn v(reg: u16, dwords: u8) -> Operand {
    Operand::Vgpr { reg, dwords, hi: false }
}

fn s(reg: u8, dwords: u8) -> Operand {
    Operand::Sgpr { reg, dwords }
}

fn a(reg: u16, dwords: u8) -> Operand {
    Operand::Agpr { reg, dwords }
}

fn special(reg: Special, dwords: u8) -> Operand {
    Operand::Special { reg, dwords }
}

const NONE: Operand = Operand::None;

#[test]
fn scalar() {
    // s_add_u32 s4, s4, 0x431c
    let add = decoded(Target::Gfx90a, &[0x8004_ff04, 0x0000_431c]);
    assert_eq!((add.dst, add.src), (s(4, 1), [s(4, 1), Operand::Literal(0x431c), NONE, NONE]));
    // s_movk_i32 s5, 0xfffe
    let movk = decoded(Target::Gfx90a, &[0xb005_fffe]);
    assert_eq!((movk.dst, movk.src[0]), (s(5, 1), Operand::Imm(-2)));
    // s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 4), 15
    let setreg = decoded(Target::Gfx90a, &[0xba00_1901, 0xf]);
    assert_eq!((setreg.dst, setreg.src[0], setreg.src[1]), (NONE, Operand::Imm(0x1901), Operand::Literal(0xf)));
    // s_cmp_eq_u64 s[2:3], 0
    let compare = decoded(Target::Gfx90a, &[0xbf12_8002]);
    assert_eq!((compare.dst, compare.src), (NONE, [s(2, 2), Operand::Int(0), NONE, NONE]));
    // s_fmaak_f32 s1, s2, s3, 0x42280000
    let fmaak = decoded(Target::Gfx1201, &[0xa281_0302, 0x4228_0000]);
    assert_eq!(fmaak.src, [s(2, 1), s(3, 1), Operand::Literal(0x4228_0000), NONE]);
}

#[test]
fn scalar_memory() {
    // s_load_dwordx4 s[8:11], s[6:7], 0x10
    let load = decoded(Target::Gfx90a, &[0xc00a_0203, 0x10]);
    assert_eq!((load.dst, load.src, load.mods.offset), (s(8, 4), [s(6, 2), NONE, NONE, NONE], 0x10));
    // s_load_dword s8, s[6:7], s20
    let register = decoded(Target::Gfx90a, &[0xc000_0203, 0x14]);
    assert_eq!((register.src[1], register.mods.offset), (s(20, 1), 0));
    // s_store_dword s8, s[6:7], 0x4 glc
    let store = decoded(Target::Gfx90a, &[0xc043_0203, 4]);
    assert_eq!((store.dst, store.src[2], store.mods.cpol), (NONE, s(8, 1), 1));
    // s_load_dwordx2 s[4:5], s[6:7], null
    let null = decoded(Target::Gfx1030, &[0xf404_0103, 0xfa00_0000]);
    assert_eq!((null.src[1], null.mods.offset), (NONE, 0));
    // s_load_b96 s[4:6], s[8:9], s10 offset:0x10
    let both = decoded(Target::Gfx1201, &[0xf400_a104, 0x1400_0010]);
    assert_eq!((both.dst, both.src[1], both.mods.offset), (s(4, 3), s(10, 1), 0x10));
    // s_atomic_add s5, s[2:3], 0x10 glc
    let atomic = decoded(Target::Gfx906, &[0xc20b_0141, 0x10]);
    assert_eq!((atomic.dst, atomic.src[2], atomic.mods.returns), (s(5, 1), s(5, 1), true));
}

#[test]
fn implied_operands() {
    let vcc = special(Special::VccLo, 2);
    // v_addc_co_u32_e32 v5, vcc, 0, v1, vcc
    let addc = decoded(Target::Gfx90a, &[0x380a_0280]);
    assert_eq!((addc.dst, addc.dst2, addc.src), (v(5, 1), vcc, [Operand::Int(0), v(1, 1), vcc, NONE]));
    // v_fmac_f32_e32 v1, v2, v3
    let fmac = decoded(Target::Gfx90a, &[0x7602_0702]);
    assert_eq!((fmac.dst, fmac.src), (v(1, 1), [v(2, 1), v(3, 1), v(1, 1), NONE]));
    // v_div_fmas_f32 v1, v2, v3, v4
    let fmas = decoded(Target::Gfx90a, &[0xd1e2_0001, 0x0412_0702]);
    assert_eq!(fmas.src, [v(2, 1), v(3, 1), v(4, 1), vcc]);
    // v_div_scale_f64 v[2:3], vcc, v[4:5], v[6:7], v[4:5]
    let scale = decoded(Target::Gfx90a, &[0xd1e1_6a02, 0x0412_0d04]);
    assert_eq!((scale.dst, scale.dst2, scale.src), (v(2, 2), vcc, [v(4, 2), v(6, 2), v(4, 2), NONE]));
    // v_cmp_lt_i32_e32 vcc, 0, v1
    let compare = decoded(Target::Gfx90a, &[0x7d82_0280]);
    assert_eq!((compare.dst, compare.src[0]), (vcc, Operand::Int(0)));
    // v_cmpx_gt_u32_e32 v1, v2
    let cmpx = decoded(Target::Gfx1030, &[0x7da8_0501]);
    assert_eq!((cmpx.dst, cmpx.src[0]), (special(Special::ExecLo, 1), v(1, 1)));
    // v_madak_f32 v1, v2, v3, 0x42280000
    let madak = decoded(Target::Gfx90a, &[0x3002_0702, 0x4228_0000]);
    assert_eq!(madak.src, [v(2, 1), v(3, 1), Operand::Literal(0x4228_0000), NONE]);
}

#[test]
fn vector_modifiers() {
    // v_fma_f64 v[2:3], -v[4:5], |v[6:7]|, 1.0 clamp mul:2
    let fma = decoded(Target::Gfx90a, &[0xd1cc_8202, 0x2bca_0d04]);
    assert_eq!((fma.mods.neg, fma.mods.abs, fma.mods.omod, fma.mods.clamp), (1, 2, 1, true));
    assert_eq!(fma.src[2], Operand::Float(242));
    // v_readlane_b32 s4, v40, 18
    let readlane = decoded(Target::Gfx90a, &[0xd289_0004, 0x0001_2528]);
    assert_eq!((readlane.dst, readlane.src), (s(4, 1), [v(40, 1), Operand::Int(18), NONE, NONE]));
    // v_pk_fma_f32 v[2:3], v[4:5], s[6:7], v[8:9] op_sel_hi:[1,0,1] neg_lo:[1,0,0]
    let packed = decoded(Target::Gfx90a, &[0xd3b0_4002, 0x2c20_0d04]);
    assert_eq!((packed.mods.op_sel, packed.mods.op_sel_hi, packed.mods.neg, packed.mods.neg_hi), (0, 0b101, 1, 0));
    // v_fma_f16 v1.h, v2.l, v3.h, 1.0 op_sel:[0,1,0,1]
    let half = decoded(Target::Gfx1100, &[0xd648_5001, 0x03ca_0702]);
    assert_eq!(half.dst, Operand::Vgpr { reg: 1, dwords: 1, hi: true });
    assert_eq!(half.src[1], Operand::Vgpr { reg: 3, dwords: 1, hi: true });
    assert_eq!((half.src[0], half.mods.op_sel), (v(2, 1), 0b1010));
    // v_add_f16_e32 v1.l, v2.h, v3.l, on GFX12 too, where LLVM shows v130
    for target in [Target::Gfx1100, Target::Gfx1201] {
        let add = decoded(target, &[0x6402_0782]);
        assert_eq!(add.src[0], Operand::Vgpr { reg: 2, dwords: 1, hi: true });
    }
}

#[test]
fn control_dwords() {
    // v_add_f32_sdwa v1, -v2, |v3| dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_0 src1_sel:WORD_1
    let sdwa = decoded(Target::Gfx90a, &[0x0202_06f9, 0x2510_1502]);
    assert_eq!(sdwa.mods.sdwa, Some(Sdwa { dst_sel: 5, dst_unused: 2, src0_sel: 0, src1_sel: 5, sext: 0 }));
    assert_eq!((sdwa.src[0], sdwa.mods.neg, sdwa.mods.abs, sdwa.len), (v(2, 1), 1, 2, 8));
    // v_cmp_eq_u32_sdwa s[4:5], v1, v2 src0_sel:BYTE_1 src1_sel:DWORD
    let compare = decoded(Target::Gfx90a, &[0x7d94_04f9, 0x0601_8401]);
    assert_eq!(compare.dst, s(4, 2));
    // v_add_u32_dpp v1, v2, v3 row_shr:1 row_mask:0xa bank_mask:0xf bound_ctrl:1
    let dpp = decoded(Target::Gfx90a, &[0x6802_06fa, 0xaf09_1102]);
    let expected = Dpp::Dpp16 { ctrl: 0x111, row_mask: 0xa, bank_mask: 0xf, bound_ctrl: true, fi: false };
    assert_eq!((dpp.mods.dpp, dpp.src[0]), (Some(expected), v(2, 1)));
    // v_add_nc_u32_dpp v1, v2, v3 dpp8:[7,6,5,4,3,2,1,0] fi:1
    let dpp8 = decoded(Target::Gfx1030, &[0x4a02_06ea, 0x0539_7702]);
    assert_eq!(dpp8.mods.dpp, Some(Dpp::Dpp8 { sel: [7, 6, 5, 4, 3, 2, 1, 0], fi: true }));
}

#[test]
fn paired() {
    // v_dual_mul_f32 v1, s2, v3 :: v_dual_fmac_f32 v4, 0x3fc00000, v6
    let x = decoded(Target::Gfx1100, &[0xc8c0_0602, 0x0104_0cff, 0x3fc0_0000]);
    let y = x.second.as_ref().unwrap();
    assert_eq!((x.len, x.dst, x.src), (12, v(1, 1), [s(2, 1), v(3, 1), NONE, NONE]));
    assert_eq!((y.dst, y.src), (v(4, 1), [Operand::Literal(0x3fc0_0000), v(6, 1), v(4, 1), NONE]));
    // v_dual_cndmask_b32 v0, v1, v2 :: v_dual_mov_b32 v3, v4
    let cndmask = decoded(Target::Gfx1100, &[0xca50_0501, 0x0002_0104]);
    assert_eq!(cndmask.src[2], special(Special::VccLo, 1));
}

#[test]
fn matrix() {
    // v_mfma_f32_32x32x1f32 a[0:31], v1, a2, a[0:31] cbsz:1 abid:2 blgp:3
    let mfma = decoded(Target::Gfx90a, &[0xd3c0_9100, 0x7402_0501]);
    assert_eq!((mfma.dst, mfma.src), (a(0, 32), [v(1, 1), a(2, 1), a(0, 32), NONE]));
    assert_eq!((mfma.mods.cbsz, mfma.mods.abid, mfma.mods.blgp), (1, 2, 3));
    // v_accvgpr_write_b32 a3, v4
    let write = decoded(Target::Gfx90a, &[0xd3d9_4003, 0x1800_0104]);
    assert_eq!((write.dst, write.src[0]), (a(3, 1), v(4, 1)));
}

#[test]
fn vector_memory() {
    // ds_read2_b32 v[2:3], v4 offset0:1 offset1:2
    let read2 = decoded(Target::Gfx90a, &[0xd86e_0201, 0x0200_0004]);
    assert_eq!((read2.dst, read2.src[0], read2.mods.offset, read2.mods.offset1), (v(2, 2), v(4, 1), 1, 2));
    // ds_write_b64 v4, a[6:7] offset:65528
    let write = decoded(Target::Gfx90a, &[0xda9a_fff8, 0x0000_0604]);
    assert_eq!((write.src[1], write.mods.offset), (a(6, 2), 65528));
    // global_store_dword v2, v3, s[4:5] offset:-8
    let store = decoded(Target::Gfx90a, &[0xdc70_9ff8, 0x0004_0302]);
    assert_eq!((store.dst, store.src, store.mods.offset), (NONE, [v(2, 1), v(3, 1), s(4, 2), NONE], -8));
    // global_atomic_cmpswap_x2 v[8:9], v[0:1], v[2:5], off offset:24 glc
    let swap = decoded(Target::Gfx90a, &[0xdd85_8018, 0x087f_0200]);
    assert_eq!((swap.dst, swap.src, swap.mods.returns), (v(8, 2), [v(0, 2), v(2, 4), Operand::Off, NONE], true));
    // global_atomic_add v2, v3, s[4:5]
    let add = decoded(Target::Gfx90a, &[0xdd08_8000, 0x0004_0302]);
    assert_eq!((add.dst, add.mods.returns), (NONE, false));
    // scratch_load_dword v1, off, s4 offset:4
    let scratch = decoded(Target::Gfx90a, &[0xdc50_4004, 0x0104_0000]);
    assert_eq!((scratch.dst, scratch.src), (v(1, 1), [Operand::Off, NONE, s(4, 1), NONE]));
    // scratch_store_b32 v1, v2, s3 offset:4
    let both = decoded(Target::Gfx1100, &[0xdc69_0004, 0x0083_0201]);
    assert_eq!(both.src, [v(1, 1), v(2, 1), s(3, 1), NONE]);
    // global_load_b32 v1, v2, s[4:5] offset:-8 th:TH_LOAD_NT scope:SCOPE_SYS
    let load = decoded(Target::Gfx1201, &[0xee05_0004, 0x001c_0001, 0xffff_f802]);
    assert_eq!((load.len, load.mods.offset, load.mods.cpol), (12, -8, 1 | 3 << 3));
}

#[test]
fn buffers() {
    // buffer_load_dword v1, v[2:3], s[4:7], s8 idxen offen offset:12 slc
    let load = decoded(Target::Gfx90a, &[0xe052_300c, 0x0801_0102]);
    assert_eq!((load.dst, load.src), (v(1, 1), [v(2, 2), NONE, s(4, 4), s(8, 1)]));
    assert!(load.mods.idxen && load.mods.offen && load.mods.cpol == 2);
    // buffer_load_dword v1, s[4:7], 0 offen lds
    let lds = decoded(Target::Gfx90a, &[0xe051_1000, 0x8001_0001]);
    assert_eq!((lds.dst, lds.src[0], lds.src[3], lds.mods.lds), (NONE, v(1, 1), Operand::Int(0), true));
    // buffer_atomic_cmpswap v[2:3], off, s[4:7], s8 glc
    let swap = decoded(Target::Gfx90a, &[0xe104_4000, 0x0801_0200]);
    assert_eq!((swap.dst, swap.src[0], swap.src[1]), (v(2, 1), Operand::Off, v(2, 2)));
    // buffer_load_dword v[1:2], v3, s[4:7], 0 offen tfe
    let tfe = decoded(Target::Gfx900, &[0xe050_1000, 0x8081_0103]);
    assert_eq!((tfe.dst, tfe.mods.tfe), (v(1, 2), true));
    // tbuffer_load_format_x v1, v2, s[4:7], s8 format:[BUF_FMT_32_FLOAT] idxen
    let typed = decoded(Target::Gfx1030, &[0xe8b0_2000, 0x0801_0102]);
    assert_eq!(typed.mods.format, 22);
    // buffer_store_b128 v[4:7], v8, s[12:15], s3 offen offset:1024
    let store = decoded(Target::Gfx1201, &[0xc407_4003, 0x4080_1804, 0x0004_0008]);
    assert_eq!((store.dst, store.src), (NONE, [v(8, 1), v(4, 4), s(12, 4), s(3, 1)]));
}

/// Encodings as `llvm-mc` shows them.
#[test]
fn formats_of_graphics_are_named() {
    use super::super::{DecodeError, Format};
    for (target, words, format) in [
        // exp mrt0 v0, v0, v0, v0
        (Target::Gfx900, [0xc400_000f, 0], Format::Exp),
        // image_load v[0:3], v[4:5], s[8:15] dmask:0xf unorm
        (Target::Gfx900, [0xf000_1f00, 0x0002_0004], Format::Mimg),
        // v_interp_p1_f32 v1, v0, attr0.x
        (Target::Gfx900, [0xd404_0000, 0], Format::Vintrp),
        // exp mrt0 v0, v0, v0, v0
        (Target::Gfx1100, [0xf800_000f, 0], Format::Exp),
        // image_load v[0:3], v[4:5], s[8:15] dmask:0xf dim:SQ_RSRC_IMG_2D
        (Target::Gfx1100, [0xf000_0f04, 0x0002_0004], Format::Mimg),
        // v_interp_p10_f32 v0, v1, v2, v3
        (Target::Gfx1100, [0xcd00_0000, 0x040e_0501], Format::Vintrp),
        // lds_direct_load v1
        (Target::Gfx1100, [0xce10_0001, 0], Format::Ldsdir),
        // image_load v[0:3], [v4, v5], s[8:15] dmask:0xf dim:SQ_RSRC_IMG_2D
        (Target::Gfx1201, [0xd3c0_0001, 0x0000_1000], Format::Mimg),
        // image_sample v[0:3], [v4, v5], s[8:15], s[16:19] dmask:0xf dim:SQ_RSRC_IMG_2D
        (Target::Gfx1201, [0xe7c6_c001, 0x0800_1000], Format::Mimg),
    ] {
        match decode(target, &bytes(&words)) {
            Err(DecodeError::Excluded { format: found, .. }) => assert_eq!(found, format, "{target} {words:x?}"),
            other => panic!("{target} {words:x?}: {other:?}"),
        }
    }
    let error = decode(Target::Gfx1100, &bytes(&[0xf000_0f04, 0])).unwrap_err();
    assert_eq!(error.to_string(), "0xf0000f04 begins a MIMG instruction of gfx1100: it needs an image unit");
}

//! Scalar and vector ALU encodings.

use super::super::{Family, Format};
use super::{Extension, Fields, Form, Layout, build, fields};

const DPP16: Fields = fields![
    Src0 0 8, DppCtrl 8 9, Fi 18 1, BoundCtrl 19 1, Src0Neg 20 1, Src0Abs 21 1, Src1Neg 22 1, Src1Abs 23 1,
    BankMask 24 4, RowMask 28 4,
];
const DPP8: Fields = fields![Src0 0 8, Dpp8Sel 8 24];
const SDWA_SOURCES: Fields = fields![
    Src0 0 8, Src0Sel 16 3, Src0Sext 19 1, Src0Neg 20 1, Src0Abs 21 1, S0 23 1,
    Src1Sel 24 3, Src1Sext 27 1, Src1Neg 28 1, Src1Abs 29 1, S1 31 1,
];
const SDWA_DST: Fields = fields![DstSel 8 3, DstUnused 11 2, Clamp 13 1, Omod 14 2];
const SDWA_MASK: Fields = fields![Sdst 8 7, Sd 15 1];
const VOP3: Fields = fields![
    Vdst 0 8, Sdst 8 7, Abs 8 3, OpSel 11 4, Clamp 15 1, Src0 32 9, Src1 41 9, Src2 50 9, Omod 59 2, Neg 61 3,
];
const VOP3P: Fields = fields![
    Vdst 0 8, NegHi 8 3, OpSel 11 3, OpSelHi2 14 1, Clamp 15 1, Src0 32 9, Src1 41 9, Src2 50 9, OpSelHi 59 2, Neg 61 3,
];
/// What matrix instructions have in place of VOP3P's modifiers.
const MAI: Fields = fields![Cbsz 8 3, Abid 11 4, AccCd 15 1, Acc 59 2, Blgp 61 3];

/// Layout of a form that is not a memory instruction.
pub(super) fn layout(family: Family, form: Form) -> Option<Layout> {
    let (extension, control): (u32, Fields) = match form.extension() {
        Extension::None => (0, &[]),
        Extension::Dpp16 => (250, DPP16),
        Extension::Dpp8 if family >= Family::Gfx10 => (233, DPP8),
        Extension::Sdwa if family <= Family::Gfx10 => (249, SDWA_SOURCES),
        Extension::Dpp8 | Extension::Sdwa => return None,
    };
    // VOP3 and compares have DPP since GFX11.
    let late = matches!(form.format(), Format::Vop3 | Format::Vop3p | Format::Vopc);
    let dpp = matches!(form.extension(), Extension::Dpp16 | Extension::Dpp8);
    if dpp && late && family < Family::Gfx11 {
        return None;
    }
    let rest: Fields = match form {
        Form::Vop1Sdwa | Form::Vop2Sdwa => SDWA_DST,
        Form::VopcSdwa => SDWA_MASK,
        _ => &[],
    };
    let len = if form.extension() == Extension::None { 4 } else { 8 };
    let short = |base: u32, op, own: Fields| build(base | extension, op, len, &[(0, own), (32, control), (32, rest)]);
    let gfx9 = family == Family::Gfx9;
    let vop3 = if gfx9 { 0xd000_0000 } else { 0xd400_0000 };
    let vop3p = if gfx9 { 0xd380_0000 } else { 0xcc00_0000 };
    let mai = if gfx9 { MAI } else { &[] };
    Some(match form.base() {
        Form::Sop2 => short(0x8000_0000, (23, 7), fields![Sdst 16 7, Src1 8 8, Src0 0 8, K 32 32]),
        Form::Sopk => short(0xb000_0000, (23, 5), fields![Sdst 16 7, Simm16 0 16, K 32 32]),
        Form::Sop1 => short(0xbe80_0000, (8, 8), fields![Sdst 16 7, Src0 0 8]),
        Form::Sopc => short(0xbf00_0000, (16, 7), fields![Src1 8 8, Src0 0 8]),
        Form::Sopp => short(0xbf80_0000, (16, 7), fields![Simm16 0 16]),
        Form::Vop1 => short(0x7e00_0000, (9, 8), fields![Vdst 17 8, Src0 0 9]),
        Form::Vop2 => short(0, (25, 6), fields![Vdst 17 8, Src1 9 8, Src0 0 9, K 32 32]),
        Form::Vopc => short(0x7c00_0000, (17, 8), fields![Src1 9 8, Src0 0 9]),
        Form::Vop3 => build(vop3, (16, 10), if dpp { 12 } else { 8 }, &[(0, VOP3), (64, control)]),
        Form::Vop3p => build(vop3p, (16, 7), if dpp { 12 } else { 8 }, &[(0, VOP3P), (0, mai), (64, control)]),
        Form::VopdX if family >= Family::Gfx11 => {
            build(0xc800_0000, (22, 4), 8, &[(0, fields![Vdst 56 8, Src0 0 9, Src1 9 8, K 64 32])])
        }
        Form::VopdY if family >= Family::Gfx11 => {
            build(0xc800_0000, (17, 5), 8, &[(0, fields![Vdst 49 7, Src0 32 9, Src1 41 8, K 64 32])])
        }
        _ => return None,
    })
}

//! Where the fields of an encoding are.
//!
//! A [`Form`] is a format with one of its extensions (a DPP or SDWA control dword). Positions are bit numbers counted from
//! the first byte of the instruction, low bit first, so a field of the second dword begins at 32 or later. They are the
//! same for all targets of a family except where a target is named below. The tables of opcodes are harvested with these
//! positions: an operand that is not where a layout says it is does not get into a table.

use super::{Decoded, Dpp, Family, Format, Target};

/// A format with its control dword.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Form {
    Sop1,
    Sop2,
    Sopk,
    Sopc,
    Sopp,
    Smem,
    Vop1,
    Vop1Dpp,
    Vop1Dpp8,
    Vop1Sdwa,
    Vop2,
    Vop2Dpp,
    Vop2Dpp8,
    Vop2Sdwa,
    Vopc,
    VopcDpp,
    VopcDpp8,
    VopcSdwa,
    Vop3,
    Vop3Dpp,
    Vop3Dpp8,
    Vop3p,
    Vop3pDpp,
    Vop3pDpp8,
    VopdX,
    VopdY,
    Ds,
    Flat,
    Global,
    Scratch,
    Mubuf,
    Mtbuf,
}

impl Form {
    /// All of them, in the order of their numbers.
    pub const ALL: [Form; 32] = [
        Form::Sop1,
        Form::Sop2,
        Form::Sopk,
        Form::Sopc,
        Form::Sopp,
        Form::Smem,
        Form::Vop1,
        Form::Vop1Dpp,
        Form::Vop1Dpp8,
        Form::Vop1Sdwa,
        Form::Vop2,
        Form::Vop2Dpp,
        Form::Vop2Dpp8,
        Form::Vop2Sdwa,
        Form::Vopc,
        Form::VopcDpp,
        Form::VopcDpp8,
        Form::VopcSdwa,
        Form::Vop3,
        Form::Vop3Dpp,
        Form::Vop3Dpp8,
        Form::Vop3p,
        Form::Vop3pDpp,
        Form::Vop3pDpp8,
        Form::VopdX,
        Form::VopdY,
        Form::Ds,
        Form::Flat,
        Form::Global,
        Form::Scratch,
        Form::Mubuf,
        Form::Mtbuf,
    ];

    /// Name in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Form::Sop1 => "sop1",
            Form::Sop2 => "sop2",
            Form::Sopk => "sopk",
            Form::Sopc => "sopc",
            Form::Sopp => "sopp",
            Form::Smem => "smem",
            Form::Vop1 => "vop1",
            Form::Vop1Dpp => "vop1.dpp",
            Form::Vop1Dpp8 => "vop1.dpp8",
            Form::Vop1Sdwa => "vop1.sdwa",
            Form::Vop2 => "vop2",
            Form::Vop2Dpp => "vop2.dpp",
            Form::Vop2Dpp8 => "vop2.dpp8",
            Form::Vop2Sdwa => "vop2.sdwa",
            Form::Vopc => "vopc",
            Form::VopcDpp => "vopc.dpp",
            Form::VopcDpp8 => "vopc.dpp8",
            Form::VopcSdwa => "vopc.sdwa",
            Form::Vop3 => "vop3",
            Form::Vop3Dpp => "vop3.dpp",
            Form::Vop3Dpp8 => "vop3.dpp8",
            Form::Vop3p => "vop3p",
            Form::Vop3pDpp => "vop3p.dpp",
            Form::Vop3pDpp8 => "vop3p.dpp8",
            Form::VopdX => "vopd.x",
            Form::VopdY => "vopd.y",
            Form::Ds => "ds",
            Form::Flat => "flat",
            Form::Global => "global",
            Form::Scratch => "scratch",
            Form::Mubuf => "mubuf",
            Form::Mtbuf => "mtbuf",
        }
    }

    /// The form with this name.
    pub fn from_name(name: &str) -> Option<Form> {
        Form::ALL.into_iter().find(|form| form.name() == name)
    }

    /// The format it belongs to.
    pub fn format(self) -> Format {
        match self {
            Form::Sop1 => Format::Sop1,
            Form::Sop2 => Format::Sop2,
            Form::Sopk => Format::Sopk,
            Form::Sopc => Format::Sopc,
            Form::Sopp => Format::Sopp,
            Form::Smem => Format::Smem,
            Form::Vop1 | Form::Vop1Dpp | Form::Vop1Dpp8 | Form::Vop1Sdwa => Format::Vop1,
            Form::Vop2 | Form::Vop2Dpp | Form::Vop2Dpp8 | Form::Vop2Sdwa => Format::Vop2,
            Form::Vopc | Form::VopcDpp | Form::VopcDpp8 | Form::VopcSdwa => Format::Vopc,
            Form::Vop3 | Form::Vop3Dpp | Form::Vop3Dpp8 => Format::Vop3,
            Form::Vop3p | Form::Vop3pDpp | Form::Vop3pDpp8 => Format::Vop3p,
            Form::VopdX | Form::VopdY => Format::Vopd,
            Form::Ds => Format::Ds,
            Form::Flat => Format::Flat,
            Form::Global => Format::Global,
            Form::Scratch => Format::Scratch,
            Form::Mubuf => Format::Mubuf,
            Form::Mtbuf => Format::Mtbuf,
        }
    }

    /// The form of a decoded instruction; `second` says that it is the Y half of a VOPD.
    pub fn of(decoded: &Decoded, second: bool) -> Option<Form> {
        let dpp = |plain, dpp, dpp8| match decoded.mods.dpp {
            None => plain,
            Some(Dpp::Dpp16 { .. }) => dpp,
            Some(Dpp::Dpp8 { .. }) => dpp8,
        };
        let sdwa = decoded.mods.sdwa.is_some();
        Some(match decoded.format {
            Format::Sop1 => Form::Sop1,
            Format::Sop2 => Form::Sop2,
            Format::Sopk => Form::Sopk,
            Format::Sopc => Form::Sopc,
            Format::Sopp => Form::Sopp,
            Format::Smem => Form::Smem,
            Format::Vop1 if sdwa => Form::Vop1Sdwa,
            Format::Vop1 => dpp(Form::Vop1, Form::Vop1Dpp, Form::Vop1Dpp8),
            Format::Vop2 if sdwa => Form::Vop2Sdwa,
            Format::Vop2 => dpp(Form::Vop2, Form::Vop2Dpp, Form::Vop2Dpp8),
            Format::Vopc if sdwa => Form::VopcSdwa,
            Format::Vopc => dpp(Form::Vopc, Form::VopcDpp, Form::VopcDpp8),
            Format::Vop3 => dpp(Form::Vop3, Form::Vop3Dpp, Form::Vop3Dpp8),
            Format::Vop3p => dpp(Form::Vop3p, Form::Vop3pDpp, Form::Vop3pDpp8),
            Format::Vopd if second => Form::VopdY,
            Format::Vopd => Form::VopdX,
            Format::Ds => Form::Ds,
            Format::Flat => Form::Flat,
            Format::Global => Form::Global,
            Format::Scratch => Form::Scratch,
            Format::Mubuf => Form::Mubuf,
            Format::Mtbuf => Form::Mtbuf,
            Format::Mimg | Format::Exp | Format::Vintrp | Format::Ldsdir => return None,
        })
    }

    /// The form without its control dword.
    pub fn base(self) -> Form {
        match self.format() {
            Format::Vop1 => Form::Vop1,
            Format::Vop2 => Form::Vop2,
            Format::Vopc => Form::Vopc,
            Format::Vop3 => Form::Vop3,
            Format::Vop3p => Form::Vop3p,
            _ => self,
        }
    }

    /// The control dword that makes this form of its base.
    pub fn extension(self) -> Extension {
        match self {
            Form::Vop1Dpp | Form::Vop2Dpp | Form::VopcDpp | Form::Vop3Dpp | Form::Vop3pDpp => Extension::Dpp16,
            Form::Vop1Dpp8 | Form::Vop2Dpp8 | Form::VopcDpp8 | Form::Vop3Dpp8 | Form::Vop3pDpp8 => Extension::Dpp8,
            Form::Vop1Sdwa | Form::Vop2Sdwa | Form::VopcSdwa => Extension::Sdwa,
            _ => Extension::None,
        }
    }
}

/// What stands in place of source 0 and adds a control dword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Extension {
    None,
    Dpp16,
    Dpp8,
    Sdwa,
}

/// A field of an encoding: operands first, then modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Field {
    Vdst,
    Sdst,
    Src0,
    Src1,
    Src2,
    Simm16,
    Sbase,
    Sdata,
    Soffset,
    Addr,
    Data0,
    Data1,
    Vaddr,
    Vdata,
    Saddr,
    Srsrc,
    /// The 32-bit constant of `v_madmk`, `v_fmaak`, `s_setreg_imm32` and the like.
    K,
    Abs,
    Neg,
    NegHi,
    OpSel,
    OpSelHi,
    /// `op_sel_hi` of source 2, which is apart from the others.
    OpSelHi2,
    Omod,
    Clamp,
    /// Accumulation register bits of MFMA's sources A and B.
    Acc,
    /// Accumulation register bit of MFMA's C and D, of a memory instruction's data.
    AccCd,
    Cbsz,
    Abid,
    Blgp,
    Offset,
    Offset1,
    Glc,
    Slc,
    Dlc,
    Scc,
    Th,
    Scope,
    Gds,
    Lds,
    Offen,
    Idxen,
    Tfe,
    BufFormat,
    /// SMEM: the offset field is an immediate.
    Imm,
    /// SMEM: there is a register offset beside the immediate.
    SoffsetEn,
    /// SCRATCH: there is a VGPR address.
    Sve,
    DppCtrl,
    Fi,
    BoundCtrl,
    BankMask,
    RowMask,
    /// `src0_neg` of a control dword; abs and source 1 follow.
    Src0Neg,
    Src0Abs,
    Src1Neg,
    Src1Abs,
    Dpp8Sel,
    DstSel,
    DstUnused,
    Src0Sel,
    Src0Sext,
    Src1Sel,
    Src1Sext,
    /// SDWA: source 0 is scalar.
    S0,
    S1,
    /// SDWA VOPC: `sdst` is used.
    Sd,
}

impl Field {
    /// How many there are.
    pub const COUNT: usize = Field::Sd as usize + 1;

    /// All of them, in the order of their numbers.
    pub const ALL: [Field; Field::COUNT] = [
        Field::Vdst,
        Field::Sdst,
        Field::Src0,
        Field::Src1,
        Field::Src2,
        Field::Simm16,
        Field::Sbase,
        Field::Sdata,
        Field::Soffset,
        Field::Addr,
        Field::Data0,
        Field::Data1,
        Field::Vaddr,
        Field::Vdata,
        Field::Saddr,
        Field::Srsrc,
        Field::K,
        Field::Abs,
        Field::Neg,
        Field::NegHi,
        Field::OpSel,
        Field::OpSelHi,
        Field::OpSelHi2,
        Field::Omod,
        Field::Clamp,
        Field::Acc,
        Field::AccCd,
        Field::Cbsz,
        Field::Abid,
        Field::Blgp,
        Field::Offset,
        Field::Offset1,
        Field::Glc,
        Field::Slc,
        Field::Dlc,
        Field::Scc,
        Field::Th,
        Field::Scope,
        Field::Gds,
        Field::Lds,
        Field::Offen,
        Field::Idxen,
        Field::Tfe,
        Field::BufFormat,
        Field::Imm,
        Field::SoffsetEn,
        Field::Sve,
        Field::DppCtrl,
        Field::Fi,
        Field::BoundCtrl,
        Field::BankMask,
        Field::RowMask,
        Field::Src0Neg,
        Field::Src0Abs,
        Field::Src1Neg,
        Field::Src1Abs,
        Field::Dpp8Sel,
        Field::DstSel,
        Field::DstUnused,
        Field::Src0Sel,
        Field::Src0Sext,
        Field::Src1Sel,
        Field::Src1Sext,
        Field::S0,
        Field::S1,
        Field::Sd,
    ];

    /// The field with this name.
    pub fn from_name(name: &str) -> Option<Field> {
        Field::ALL.into_iter().find(|field| field.name() == name)
    }

    /// Name in the tables, for an operand field or a modifier that some operations of a form lack.
    pub fn name(self) -> &'static str {
        match self {
            Field::Vdst => "vdst",
            Field::Sdst => "sdst",
            Field::Src0 => "src0",
            Field::Src1 => "src1",
            Field::Src2 => "src2",
            Field::Simm16 => "simm16",
            Field::Sbase => "sbase",
            Field::Sdata => "sdata",
            Field::Soffset => "soffset",
            Field::Addr => "addr",
            Field::Data0 => "data0",
            Field::Data1 => "data1",
            Field::Vaddr => "vaddr",
            Field::Vdata => "vdata",
            Field::Saddr => "saddr",
            Field::Srsrc => "srsrc",
            Field::K => "k",
            Field::Abs => "abs",
            Field::Neg => "neg",
            Field::NegHi => "neg_hi",
            Field::OpSel => "op_sel",
            Field::OpSelHi => "op_sel_hi",
            Field::OpSelHi2 => "op_sel_hi2",
            Field::Omod => "omod",
            Field::Clamp => "clamp",
            Field::Acc => "acc",
            Field::AccCd => "acc_cd",
            Field::Cbsz => "cbsz",
            Field::Abid => "abid",
            Field::Blgp => "blgp",
            Field::Offset => "offset",
            Field::Offset1 => "offset1",
            Field::Glc => "glc",
            Field::Slc => "slc",
            Field::Dlc => "dlc",
            Field::Scc => "scc",
            Field::Th => "th",
            Field::Scope => "scope",
            Field::Gds => "gds",
            Field::Lds => "lds",
            Field::Offen => "offen",
            Field::Idxen => "idxen",
            Field::Tfe => "tfe",
            Field::BufFormat => "format",
            Field::Imm => "imm",
            Field::SoffsetEn => "soffset_en",
            Field::Sve => "sve",
            Field::DppCtrl => "dpp_ctrl",
            Field::Fi => "fi",
            Field::BoundCtrl => "bound_ctrl",
            Field::BankMask => "bank_mask",
            Field::RowMask => "row_mask",
            Field::Src0Neg => "src0_neg",
            Field::Src0Abs => "src0_abs",
            Field::Src1Neg => "src1_neg",
            Field::Src1Abs => "src1_abs",
            Field::Dpp8Sel => "dpp8_sel",
            Field::DstSel => "dst_sel",
            Field::DstUnused => "dst_unused",
            Field::Src0Sel => "src0_sel",
            Field::Src0Sext => "src0_sext",
            Field::Src1Sel => "src1_sel",
            Field::Src1Sext => "src1_sext",
            Field::S0 => "s0",
            Field::S1 => "s1",
            Field::Sd => "sd",
        }
    }
}

/// Position of a field; `width` 0 where the form has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pos {
    /// First bit.
    pub lo: u8,
    /// Bits.
    pub width: u8,
}

impl Pos {
    /// The field's value.
    #[inline(always)]
    pub fn get(self, bits: u128) -> u32 {
        ((bits >> self.lo) as u64 & ((1u64 << self.width) - 1)) as u32
    }

    /// `bits` with the field set; bits of `value` beyond the field are dropped.
    pub fn set(self, bits: u128, value: u32) -> u128 {
        let mask = ((1u128 << self.width) - 1) << self.lo;
        bits & !mask | (u128::from(value) << self.lo) & mask
    }
}

/// Layout of a form on a target.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Fixed bits of the first dword that tell the form from others.
    pub base: u32,
    /// The opcode.
    pub op: Pos,
    /// A higher bit of the opcode elsewhere (MTBUF on GFX10).
    pub op_hi: Pos,
    /// Bytes without literal.
    pub len: u8,
    /// Fields by number.
    pub fields: [Pos; Field::COUNT],
}

impl Layout {
    /// Value of a field, 0 where there is none.
    #[inline(always)]
    pub fn get(&self, field: Field, bits: u128) -> u32 {
        self.fields[field as usize].get(bits)
    }

    /// Does the form have the field?
    #[inline(always)]
    pub fn has(&self, field: Field) -> bool {
        self.fields[field as usize].width != 0
    }

    /// The opcode.
    #[inline(always)]
    pub fn opcode(&self, bits: u128) -> u32 {
        self.op.get(bits) | self.op_hi.get(bits) << self.op.width
    }

    /// Layout of a form, None where the target has no such form.
    pub fn of(target: Target, form: Form) -> Option<Layout> {
        Builder { target, family: target.family() }.build(form)
    }
}

type Fields = &'static [(Field, u8, u8)];

const DPP16: Fields = &[
    (Field::Src0, 0, 8),
    (Field::DppCtrl, 8, 9),
    (Field::Fi, 18, 1),
    (Field::BoundCtrl, 19, 1),
    (Field::Src0Neg, 20, 1),
    (Field::Src0Abs, 21, 1),
    (Field::Src1Neg, 22, 1),
    (Field::Src1Abs, 23, 1),
    (Field::BankMask, 24, 4),
    (Field::RowMask, 28, 4),
];
const DPP8: Fields = &[(Field::Src0, 0, 8), (Field::Dpp8Sel, 8, 24)];
const SDWA: Fields = &[
    (Field::Src0, 0, 8),
    (Field::DstSel, 8, 3),
    (Field::DstUnused, 11, 2),
    (Field::Clamp, 13, 1),
    (Field::Omod, 14, 2),
    (Field::Src0Sel, 16, 3),
    (Field::Src0Sext, 19, 1),
    (Field::Src0Neg, 20, 1),
    (Field::Src0Abs, 21, 1),
    (Field::S0, 23, 1),
    (Field::Src1Sel, 24, 3),
    (Field::Src1Sext, 27, 1),
    (Field::Src1Neg, 28, 1),
    (Field::Src1Abs, 29, 1),
    (Field::S1, 31, 1),
];
const SDWA_VOPC: Fields = &[
    (Field::Src0, 0, 8),
    (Field::Sdst, 8, 7),
    (Field::Sd, 15, 1),
    (Field::Src0Sel, 16, 3),
    (Field::Src0Sext, 19, 1),
    (Field::Src0Neg, 20, 1),
    (Field::Src0Abs, 21, 1),
    (Field::S0, 23, 1),
    (Field::Src1Sel, 24, 3),
    (Field::Src1Sext, 27, 1),
    (Field::Src1Neg, 28, 1),
    (Field::Src1Abs, 29, 1),
    (Field::S1, 31, 1),
];
const VOP3: Fields = &[
    (Field::Vdst, 0, 8),
    (Field::Sdst, 8, 7),
    (Field::Abs, 8, 3),
    (Field::OpSel, 11, 4),
    (Field::Clamp, 15, 1),
    (Field::Src0, 32, 9),
    (Field::Src1, 41, 9),
    (Field::Src2, 50, 9),
    (Field::Omod, 59, 2),
    (Field::Neg, 61, 3),
];
const VOP3P: Fields = &[
    (Field::Vdst, 0, 8),
    (Field::NegHi, 8, 3),
    (Field::OpSel, 11, 3),
    (Field::OpSelHi2, 14, 1),
    (Field::Clamp, 15, 1),
    (Field::Src0, 32, 9),
    (Field::Src1, 41, 9),
    (Field::Src2, 50, 9),
    (Field::OpSelHi, 59, 2),
    (Field::Neg, 61, 3),
];
const MAI: Fields =
    &[(Field::Cbsz, 8, 3), (Field::Abid, 11, 4), (Field::AccCd, 15, 1), (Field::Acc, 59, 2), (Field::Blgp, 61, 3)];

struct Builder {
    target: Target,
    family: Family,
}

fn layout(base: u32, op: (u8, u8), len: u8, groups: &[(u8, Fields)]) -> Layout {
    let mut fields = [Pos::default(); Field::COUNT];
    for (shift, group) in groups {
        for (field, lo, width) in *group {
            fields[*field as usize] = Pos { lo: lo + shift, width: *width };
        }
    }
    Layout { base, op: Pos { lo: op.0, width: op.1 }, op_hi: Pos::default(), len, fields }
}

impl Builder {
    fn build(&self, form: Form) -> Option<Layout> {
        let family = self.family;
        let has_sdwa = family <= Family::Gfx10;
        let has_dpp8 = family >= Family::Gfx10;
        let has_vop3_dpp = family >= Family::Gfx11;
        let vop_base = |extension: Extension| match extension {
            Extension::None => 0,
            Extension::Dpp16 => 250,
            Extension::Dpp8 => 233,
            Extension::Sdwa => 249,
        };
        match form.extension() {
            Extension::Sdwa if !has_sdwa => return None,
            Extension::Dpp8 if !has_dpp8 => return None,
            Extension::Dpp16 | Extension::Dpp8
                if !has_vop3_dpp && matches!(form.format(), Format::Vop3 | Format::Vop3p | Format::Vopc) =>
            {
                return None;
            }
            _ => {}
        }
        let extension = vop_base(form.extension());
        let control: (u8, Fields) = match form.extension() {
            Extension::None => (0, &[]),
            Extension::Dpp16 => (32, DPP16),
            Extension::Dpp8 => (32, DPP8),
            Extension::Sdwa if form == Form::VopcSdwa => (32, SDWA_VOPC),
            Extension::Sdwa => (32, SDWA),
        };
        let len = if form.extension() == Extension::None { 4 } else { 8 };
        let vop3_base = if family == Family::Gfx9 { 0xd000_0000 } else { 0xd400_0000 };
        let vop3p_base = if family == Family::Gfx9 { 0xd380_0000 } else { 0xcc00_0000 };
        Some(match form {
            Form::Sop2 => layout(
                0x8000_0000,
                (23, 7),
                4,
                &[(0, &[(Field::Sdst, 16, 7), (Field::Src1, 8, 8), (Field::Src0, 0, 8), (Field::K, 32, 32)])],
            ),
            Form::Sopk => layout(
                0xb000_0000,
                (23, 5),
                4,
                &[(0, &[(Field::Sdst, 16, 7), (Field::Simm16, 0, 16), (Field::K, 32, 32)])],
            ),
            Form::Sop1 => layout(0xbe80_0000, (8, 8), 4, &[(0, &[(Field::Sdst, 16, 7), (Field::Src0, 0, 8)])]),
            Form::Sopc => layout(0xbf00_0000, (16, 7), 4, &[(0, &[(Field::Src1, 8, 8), (Field::Src0, 0, 8)])]),
            Form::Sopp => layout(0xbf80_0000, (16, 7), 4, &[(0, &[(Field::Simm16, 0, 16)])]),
            Form::Vop1 | Form::Vop1Dpp | Form::Vop1Dpp8 | Form::Vop1Sdwa => layout(
                0x7e00_0000 | extension,
                (9, 8),
                len,
                &[(0, &[(Field::Vdst, 17, 8), (Field::Src0, 0, 9)]), control],
            ),
            Form::Vop2 | Form::Vop2Dpp | Form::Vop2Dpp8 | Form::Vop2Sdwa => layout(
                extension,
                (25, 6),
                len,
                &[(0, &[(Field::Vdst, 17, 8), (Field::Src1, 9, 8), (Field::Src0, 0, 9), (Field::K, 32, 32)]), control],
            ),
            Form::Vopc | Form::VopcDpp | Form::VopcDpp8 | Form::VopcSdwa => layout(
                0x7c00_0000 | extension,
                (17, 8),
                len,
                &[(0, &[(Field::Src1, 9, 8), (Field::Src0, 0, 9)]), control],
            ),
            Form::Vop3 => layout(vop3_base, (16, 10), 8, &[(0, VOP3)]),
            Form::Vop3Dpp => layout(vop3_base, (16, 10), 12, &[(0, VOP3), (64, DPP16)]),
            Form::Vop3Dpp8 => layout(vop3_base, (16, 10), 12, &[(0, VOP3), (64, DPP8)]),
            Form::Vop3p if family == Family::Gfx9 => layout(vop3p_base, (16, 7), 8, &[(0, VOP3P), (0, MAI)]),
            Form::Vop3p => layout(vop3p_base, (16, 7), 8, &[(0, VOP3P)]),
            Form::Vop3pDpp => layout(vop3p_base, (16, 7), 12, &[(0, VOP3P), (64, DPP16)]),
            Form::Vop3pDpp8 => layout(vop3p_base, (16, 7), 12, &[(0, VOP3P), (64, DPP8)]),
            Form::VopdX | Form::VopdY if family < Family::Gfx11 => return None,
            Form::VopdX => layout(
                0xc800_0000,
                (22, 4),
                8,
                &[(0, &[(Field::Vdst, 56, 8), (Field::Src0, 0, 9), (Field::Src1, 9, 8), (Field::K, 64, 32)])],
            ),
            Form::VopdY => layout(
                0xc800_0000,
                (17, 5),
                8,
                &[(0, &[(Field::Vdst, 49, 7), (Field::Src0, 32, 9), (Field::Src1, 41, 8), (Field::K, 64, 32)])],
            ),
            Form::Smem => self.smem(),
            Form::Ds => self.ds(),
            Form::Flat | Form::Global | Form::Scratch => self.flat(form),
            Form::Mubuf => self.mubuf(),
            Form::Mtbuf => self.mtbuf()?,
        })
    }

    fn smem(&self) -> Layout {
        let common: Fields = &[(Field::Sbase, 0, 6), (Field::Sdata, 6, 7)];
        let (base, op, rest): (u32, _, Fields) = match self.family {
            Family::Gfx9 => (
                0xc000_0000,
                (18, 8),
                &[
                    (Field::SoffsetEn, 14, 1),
                    (Field::Glc, 16, 1),
                    (Field::Imm, 17, 1),
                    (Field::Offset, 32, 21),
                    (Field::Soffset, 57, 7),
                ],
            ),
            Family::Gfx10 => (
                0xf400_0000,
                (18, 8),
                &[(Field::Dlc, 14, 1), (Field::Glc, 16, 1), (Field::Offset, 32, 21), (Field::Soffset, 57, 7)],
            ),
            Family::Gfx11 => (
                0xf400_0000,
                (18, 8),
                &[(Field::Dlc, 13, 1), (Field::Glc, 14, 1), (Field::Offset, 32, 21), (Field::Soffset, 57, 7)],
            ),
            Family::Gfx12 => (
                0xf400_0000,
                (13, 6),
                &[(Field::Scope, 21, 2), (Field::Th, 23, 2), (Field::Offset, 32, 24), (Field::Soffset, 57, 7)],
            ),
        };
        layout(base, op, 8, &[(0, common), (0, rest)])
    }

    fn ds(&self) -> Layout {
        let common: Fields = &[
            (Field::Offset, 0, 8),
            (Field::Offset1, 8, 8),
            (Field::Addr, 32, 8),
            (Field::Data0, 40, 8),
            (Field::Data1, 48, 8),
            (Field::Vdst, 56, 8),
        ];
        let (op, rest): (_, Fields) = match self.family {
            Family::Gfx9 if self.target.unified_agprs() => ((17, 8), &[(Field::Gds, 16, 1), (Field::AccCd, 25, 1)]),
            Family::Gfx9 => ((17, 8), &[(Field::Gds, 16, 1)]),
            Family::Gfx10 | Family::Gfx11 => ((18, 8), &[(Field::Gds, 17, 1)]),
            Family::Gfx12 => ((18, 8), &[]),
        };
        layout(0xd800_0000, op, 8, &[(0, common), (0, rest)])
    }

    fn flat(&self, form: Form) -> Layout {
        let segment = match form {
            Form::Scratch => 1u32,
            Form::Global => 2,
            _ => 0,
        };
        if self.family == Family::Gfx12 {
            return layout(
                0xec00_0000 | segment << 24,
                (14, 7),
                12,
                &[(
                    0,
                    &[
                        (Field::Saddr, 0, 7),
                        (Field::Vdst, 32, 8),
                        (Field::Sve, 49, 1),
                        (Field::Scope, 50, 2),
                        (Field::Th, 52, 3),
                        (Field::Vdata, 55, 8),
                        (Field::Vaddr, 64, 8),
                        (Field::Offset, 72, 24),
                    ],
                )],
            );
        }
        let common: Fields =
            &[(Field::Vaddr, 32, 8), (Field::Vdata, 40, 8), (Field::Saddr, 48, 7), (Field::Vdst, 56, 8)];
        let (shift, rest): (u32, Fields) = match (self.family, self.target) {
            (_, Target::Gfx942) => (
                14,
                &[
                    (Field::Offset, 0, 13),
                    (Field::Sve, 13, 1),
                    (Field::Glc, 16, 1),
                    (Field::Slc, 17, 1),
                    (Field::Scc, 25, 1),
                    (Field::AccCd, 55, 1),
                ],
            ),
            (_, Target::Gfx90a) => (
                14,
                &[
                    (Field::Offset, 0, 13),
                    (Field::Lds, 13, 1),
                    (Field::Glc, 16, 1),
                    (Field::Slc, 17, 1),
                    (Field::Scc, 25, 1),
                    (Field::AccCd, 55, 1),
                ],
            ),
            (Family::Gfx9, _) => {
                (14, &[(Field::Offset, 0, 13), (Field::Lds, 13, 1), (Field::Glc, 16, 1), (Field::Slc, 17, 1)])
            }
            (Family::Gfx10, _) => (
                14,
                &[
                    (Field::Offset, 0, 12),
                    (Field::Dlc, 12, 1),
                    (Field::Lds, 13, 1),
                    (Field::Glc, 16, 1),
                    (Field::Slc, 17, 1),
                ],
            ),
            _ => (
                16,
                &[
                    (Field::Offset, 0, 13),
                    (Field::Dlc, 13, 1),
                    (Field::Glc, 14, 1),
                    (Field::Slc, 15, 1),
                    (Field::Sve, 55, 1),
                ],
            ),
        };
        layout(0xdc00_0000 | segment << shift, (18, 7), 8, &[(0, common), (0, rest)])
    }

    fn mubuf(&self) -> Layout {
        if self.family == Family::Gfx12 {
            return self.vbuffer((14, 8), 0);
        }
        let common: Fields = &[
            (Field::Offset, 0, 12),
            (Field::Vaddr, 32, 8),
            (Field::Vdata, 40, 8),
            (Field::Srsrc, 48, 5),
            (Field::Soffset, 56, 8),
        ];
        let (op, rest): (_, Fields) = match (self.family, self.target.unified_agprs()) {
            (Family::Gfx9, true) => (
                (18, 7),
                &[
                    (Field::Offen, 12, 1),
                    (Field::Idxen, 13, 1),
                    (Field::Glc, 14, 1),
                    (Field::Scc, 15, 1),
                    (Field::Lds, 16, 1),
                    (Field::Slc, 17, 1),
                    (Field::AccCd, 55, 1),
                ],
            ),
            (Family::Gfx9, false) => (
                (18, 7),
                &[
                    (Field::Offen, 12, 1),
                    (Field::Idxen, 13, 1),
                    (Field::Glc, 14, 1),
                    (Field::Lds, 16, 1),
                    (Field::Slc, 17, 1),
                    (Field::Tfe, 55, 1),
                ],
            ),
            (Family::Gfx10, _) => (
                (18, 8),
                &[
                    (Field::Offen, 12, 1),
                    (Field::Idxen, 13, 1),
                    (Field::Glc, 14, 1),
                    (Field::Dlc, 15, 1),
                    (Field::Lds, 16, 1),
                    (Field::Slc, 54, 1),
                    (Field::Tfe, 55, 1),
                ],
            ),
            _ => (
                (18, 8),
                &[
                    (Field::Slc, 12, 1),
                    (Field::Dlc, 13, 1),
                    (Field::Glc, 14, 1),
                    (Field::Tfe, 53, 1),
                    (Field::Offen, 54, 1),
                    (Field::Idxen, 55, 1),
                ],
            ),
        };
        layout(0xe000_0000, op, 8, &[(0, common), (0, rest)])
    }

    fn vbuffer(&self, op: (u8, u8), typed: u32) -> Layout {
        layout(
            0xc400_0000 | typed,
            op,
            12,
            &[(
                0,
                &[
                    (Field::Soffset, 0, 7),
                    (Field::Tfe, 22, 1),
                    (Field::Vdata, 32, 8),
                    (Field::Srsrc, 41, 9),
                    (Field::Scope, 50, 2),
                    (Field::Th, 52, 3),
                    (Field::BufFormat, 55, 7),
                    (Field::Offen, 62, 1),
                    (Field::Idxen, 63, 1),
                    (Field::Vaddr, 64, 8),
                    (Field::Offset, 72, 24),
                ],
            )],
        )
    }

    /// On GFX12 the typed instructions are opcodes 128 and up of the same encoding.
    fn mtbuf(&self) -> Option<Layout> {
        if self.family == Family::Gfx12 {
            return Some(self.vbuffer((14, 7), 1 << 21));
        }
        let common: Fields = &[
            (Field::Offset, 0, 12),
            (Field::Vaddr, 32, 8),
            (Field::Vdata, 40, 8),
            (Field::Srsrc, 48, 5),
            (Field::BufFormat, 19, 7),
            (Field::Soffset, 56, 8),
        ];
        let (op, rest): (_, Fields) = match (self.family, self.target.unified_agprs()) {
            (Family::Gfx9, true) => (
                (15, 4),
                &[
                    (Field::Offen, 12, 1),
                    (Field::Idxen, 13, 1),
                    (Field::Glc, 14, 1),
                    (Field::Scc, 53, 1),
                    (Field::Slc, 54, 1),
                    (Field::AccCd, 55, 1),
                ],
            ),
            (Family::Gfx9, false) => (
                (15, 4),
                &[
                    (Field::Offen, 12, 1),
                    (Field::Idxen, 13, 1),
                    (Field::Glc, 14, 1),
                    (Field::Slc, 54, 1),
                    (Field::Tfe, 55, 1),
                ],
            ),
            (Family::Gfx10, _) => (
                (16, 3),
                &[
                    (Field::Offen, 12, 1),
                    (Field::Idxen, 13, 1),
                    (Field::Glc, 14, 1),
                    (Field::Dlc, 15, 1),
                    (Field::Slc, 54, 1),
                    (Field::Tfe, 55, 1),
                ],
            ),
            _ => (
                (15, 4),
                &[
                    (Field::Slc, 12, 1),
                    (Field::Dlc, 13, 1),
                    (Field::Glc, 14, 1),
                    (Field::Tfe, 53, 1),
                    (Field::Offen, 54, 1),
                    (Field::Idxen, 55, 1),
                ],
            ),
        };
        let mut layout = layout(0xe800_0000, op, 8, &[(0, common), (0, rest)]);
        if self.family == Family::Gfx10 {
            layout.op_hi = Pos { lo: 53, width: 1 };
        }
        Some(layout)
    }
}

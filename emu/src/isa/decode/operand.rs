//! Registers and constants from selectors.

use super::super::layout::{Extension, Field, Form};
use super::super::table::{Kind, OperandRow};
use super::super::{Family, Format, Operand, Special, Target};
use super::{DecodeError, Raw};

/// A selector that stands for the literal.
const LITERAL: u32 = 255;

impl Raw<'_> {
    /// An operand that is a register or may be one.
    pub(super) fn register(&self, row: &OperandRow, value: u32, len: &mut u8) -> Result<Operand, DecodeError> {
        let dwords = row.dwords;
        let vgpr = |reg: u32, hi| Operand::Vgpr { reg: reg as u16, dwords, hi };
        let agpr = |reg: u32| Operand::Agpr { reg: reg as u16, dwords };
        let acc_c = self.layout.get(Field::AccCd, self.bits) != 0;
        match row.kind {
            // A VOPD's Y destination has the parity that X's has not.
            Kind::Vgpr if self.form == Form::VopdY && row.field == Field::Vdst => {
                let x_odd = (self.bits >> 56) as u32 & 1;
                Ok(vgpr(value << 1 | (x_odd ^ 1), false))
            }
            Kind::Vgpr if self.scalar_by_sdwa(row.field) => self.scalar(value, row, len),
            Kind::Vgpr => Ok(vgpr(value, false)),
            Kind::Vgpr16 => Ok(self.half(row, value, dwords)),
            Kind::Agpr => Ok(agpr(value)),
            Kind::VgprOrAcc if acc_c => Ok(agpr(value)),
            Kind::VgprOrAcc => Ok(vgpr(value, false)),
            Kind::Src | Kind::Src16 | Kind::SrcAgpr | Kind::SrcAcc | Kind::SrcAccC if value >= 256 => {
                let reg = value - 256;
                let acc = match row.kind {
                    Kind::SrcAgpr => true,
                    Kind::SrcAcc => {
                        self.layout.get(Field::Acc, self.bits) >> (row.field == Field::Src1) as u32 & 1 != 0
                    }
                    Kind::SrcAccC => acc_c,
                    _ => false,
                };
                match row.kind {
                    Kind::Src16 => Ok(self.half(row, reg, dwords)),
                    _ if acc => Ok(agpr(reg)),
                    _ => Ok(vgpr(reg, false)),
                }
            }
            _ if row.field == Field::Sbase => self.scalar(value * 2, row, len),
            _ if row.field == Field::Srsrc && self.family != Family::Gfx12 => self.scalar(value * 4, row, len),
            _ => self.scalar(value, row, len),
        }
    }

    /// SDWA has a bit that makes a source scalar.
    fn scalar_by_sdwa(&self, field: Field) -> bool {
        self.form.extension() == Extension::Sdwa
            && match field {
                Field::Src0 => self.layout.get(Field::S0, self.bits) != 0,
                Field::Src1 => self.layout.get(Field::S1, self.bits) != 0,
                _ => false,
            }
    }

    /// A VGPR half. The 32-bit encodings have seven bits of number and the half above, VOP3 has `op_sel`.
    fn half(&self, row: &OperandRow, value: u32, dwords: u8) -> Operand {
        if matches!(self.form.format(), Format::Vop3 | Format::Vop3p) {
            let bit = match row.field {
                Field::Src0 => 0,
                Field::Src1 => 1,
                Field::Src2 => 2,
                _ => 3,
            };
            let selected = self.layout.get(Field::OpSel, self.bits) >> bit & 1 != 0;
            let hi = selected && self.form.format() == Format::Vop3;
            return Operand::Vgpr { reg: value as u16, dwords, hi };
        }
        Operand::Vgpr { reg: (value & 0x7f) as u16, dwords, hi: value & 0x80 != 0 }
    }

    /// A scalar register, a constant or the literal.
    pub(super) fn scalar(&self, value: u32, row: &OperandRow, len: &mut u8) -> Result<Operand, DecodeError> {
        if value == LITERAL && self.takes_literal() {
            return self.literal(len);
        }
        selector(self.target, value, row.dwords).ok_or(DecodeError::Selector {
            word: self.bits as u32,
            target: self.target,
            mnemonic: self.row.mnemonic,
            selector: value,
        })
    }

    fn takes_literal(&self) -> bool {
        let long = matches!(self.form.format(), Format::Vop3 | Format::Vop3p);
        self.form.extension() == Extension::None && (!long || self.family >= Family::Gfx10)
    }
}

/// What a scalar selector (or the scalar half of a 9-bit one) names. Pairs begin at even registers, wider operands at
/// multiples of four: lower bits of the number are ignored.
pub(super) fn selector(target: Target, value: u32, dwords: u8) -> Option<Operand> {
    let family = target.family();
    let special = |reg| Some(Operand::Special { reg, dwords });
    let aligned = |reg: u32| match dwords {
        0 | 1 => reg as u8,
        2 => reg as u8 & !1,
        _ => reg as u8 & !3,
    };
    let sgprs = if family == Family::Gfx9 { 102 } else { 106 };
    match value {
        _ if value < sgprs => Some(Operand::Sgpr { reg: aligned(value), dwords }),
        102 => special(Special::FlatScratchLo),
        103 => special(Special::FlatScratchHi),
        104 => special(Special::XnackMaskLo),
        105 => special(Special::XnackMaskHi),
        106 => special(Special::VccLo),
        107 => special(Special::VccHi),
        108..124 => Some(Operand::Ttmp { reg: aligned(value - 108), dwords }),
        // M0 and NULL changed places between GFX10 and GFX11.
        124 if family >= Family::Gfx11 => special(Special::Null),
        124 => special(Special::M0),
        125 if family >= Family::Gfx11 => special(Special::M0),
        125 if family == Family::Gfx10 => special(Special::Null),
        126 => special(Special::ExecLo),
        127 => special(Special::ExecHi),
        128..=192 => Some(Operand::Int((value - 128) as i8)),
        193..=208 => Some(Operand::Int(-((value - 192) as i8))),
        230 if family == Family::Gfx12 => special(Special::FlatScratchLo),
        231 if family == Family::Gfx12 => special(Special::FlatScratchHi),
        235 => special(Special::SharedBase),
        236 => special(Special::SharedLimit),
        237 => special(Special::PrivateBase),
        238 => special(Special::PrivateLimit),
        239 => special(Special::PopsExitingWaveId),
        240..=248 => Some(Operand::Float(value as u8)),
        251 => special(Special::Vccz),
        252 => special(Special::Execz),
        253 => special(Special::Scc),
        254 => special(Special::LdsDirect),
        _ => None,
    }
}

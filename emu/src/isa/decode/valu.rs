//! Modifiers of vector instructions.

use super::super::layout::{Extension, Field};
use super::super::{Decoded, Dpp, Format, Operand, Sdwa};
use super::Raw;

impl Raw<'_> {
    fn bit(&self, field: Field) -> bool {
        self.layout.get(field, self.bits) != 0
    }

    fn byte(&self, field: Field) -> u8 {
        self.layout.get(field, self.bits) as u8
    }

    /// VOP1, VOP2, VOPC, VOP3, VOP3P.
    pub(super) fn valu(&self, decoded: &mut Decoded) {
        let masks = &self.row.masks;
        let mods = &mut decoded.mods;
        match self.form.format() {
            Format::Vop3 => {
                mods.abs = self.byte(Field::Abs) & masks.abs;
                mods.neg = self.byte(Field::Neg) & masks.neg;
                mods.op_sel = self.byte(Field::OpSel) & masks.op_sel;
                mods.omod = self.byte(Field::Omod) & masks.omod;
                mods.clamp = self.byte(Field::Clamp) & masks.clamp != 0;
            }
            Format::Vop3p => {
                mods.neg = self.byte(Field::Neg) & masks.neg;
                mods.neg_hi = self.byte(Field::NegHi) & masks.neg_hi;
                mods.op_sel = self.byte(Field::OpSel) & masks.op_sel;
                let op_sel_hi = self.byte(Field::OpSelHi) | self.byte(Field::OpSelHi2) << 2;
                mods.op_sel_hi = op_sel_hi & masks.op_sel_hi;
                mods.clamp = self.byte(Field::Clamp) & masks.clamp != 0;
                mods.cbsz = self.byte(Field::Cbsz) & masks.cbsz;
                mods.abid = self.byte(Field::Abid) & masks.abid;
                mods.blgp = self.byte(Field::Blgp) & masks.blgp;
            }
            _ => {}
        }
        match self.form.extension() {
            Extension::None => {}
            Extension::Dpp16 => {
                decoded.mods.dpp = Some(Dpp::Dpp16 {
                    ctrl: self.layout.get(Field::DppCtrl, self.bits) as u16,
                    row_mask: self.byte(Field::RowMask),
                    bank_mask: self.byte(Field::BankMask),
                    bound_ctrl: self.bit(Field::BoundCtrl),
                    fi: self.bit(Field::Fi) && self.row.takes(Field::Fi),
                });
                self.control_signs(decoded);
            }
            Extension::Dpp8 => {
                let lanes = self.layout.get(Field::Dpp8Sel, self.bits);
                let mut sel = [0; 8];
                for (lane, sel) in sel.iter_mut().enumerate() {
                    *sel = (lanes >> (3 * lane)) as u8 & 7;
                }
                // Selector 234 rather than 233 in place of source 0.
                let at = if matches!(self.form.format(), Format::Vop3 | Format::Vop3p) { 32 } else { 0 };
                let fi = (self.bits >> at) as u32 & 0x1ff == 234;
                decoded.mods.dpp = Some(Dpp::Dpp8 { sel, fi });
            }
            Extension::Sdwa => self.sdwa(decoded),
        }
    }

    /// `abs` and `neg` of a DPP or SDWA dword, which VOP3 forms have in their own place.
    fn control_signs(&self, decoded: &mut Decoded) {
        if matches!(self.form.format(), Format::Vop3 | Format::Vop3p) {
            return;
        }
        let masks = &self.row.masks;
        decoded.mods.abs = (self.byte(Field::Src0Abs) | self.byte(Field::Src1Abs) << 1) & masks.dpp_abs;
        decoded.mods.neg = (self.byte(Field::Src0Neg) | self.byte(Field::Src1Neg) << 1) & masks.dpp_neg;
    }

    fn sdwa(&self, decoded: &mut Decoded) {
        let masks = &self.row.masks;
        self.control_signs(decoded);
        decoded.mods.omod = self.byte(Field::Omod) & masks.omod;
        decoded.mods.clamp = self.byte(Field::Clamp) & masks.clamp != 0;
        let sext = self.byte(Field::Src0Sext) | self.byte(Field::Src1Sext) << 1;
        let compare = self.form.format() == Format::Vopc;
        decoded.mods.sdwa = Some(Sdwa {
            dst_sel: if compare { 6 } else { self.byte(Field::DstSel) },
            dst_unused: if compare { 0 } else { self.byte(Field::DstUnused) },
            src0_sel: self.byte(Field::Src0Sel),
            src1_sel: if masks.sel & 2 != 0 { self.byte(Field::Src1Sel) } else { 6 },
            sext: sext & masks.sext,
        });
        // A compare's mask goes to VCC unless `sdst` is on.
        if compare && self.bit(Field::Sd) {
            let selector = self.layout.get(Field::Sdst, self.bits);
            let dwords = match decoded.dst {
                Operand::Special { dwords, .. } => dwords,
                _ => 2,
            };
            if let Some(operand) = super::operand::selector(self.target, selector, dwords) {
                decoded.dst = operand;
            }
        }
    }
}

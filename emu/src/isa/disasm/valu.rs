//! Vector instructions: operand signs and what follows the operands.

use super::super::layout::Extension;
use super::super::table::{BYTE_SEL, Kind, OperandRow, Slot};
use super::super::{Dpp, Family, Format, Operand, Target};
use super::Printer;

impl Printer<'_> {
    pub(super) fn valu(&mut self) {
        let packed = self.decoded.format == Format::Vop3p;
        let mut first = true;
        for row in self.row.operands.iter().filter(|row| !row.hidden) {
            let operand = self.slot(row);
            let implied = row.slot == Slot::Src(2) && matches!(row.kind, Kind::Fixed(_));
            if implied && self.family == Family::Gfx12 && self.text.ends_with('|') {
                // LLVM prints the implied selector of `v_cndmask` with source 1, here inside its bars.
                self.text.pop();
                self.text.push_str(", ");
                self.operand(operand, row);
                self.text.push('|');
                continue;
            }
            self.separator(&mut first);
            match row.slot {
                Slot::Src(index) if !packed || self.is_mix() => self.signed(operand, row, index),
                _ => self.operand(operand, row),
            }
        }
        match self.decoded.format {
            Format::Vop3p => self.packed(),
            _ => self.scalar_modifiers(),
        }
        self.control();
    }

    /// `v_fma_mix` and the like: `neg_hi` is the absolute value, `op_sel_hi` says that a source is 16 bits wide.
    fn is_mix(&self) -> bool {
        self.row.mnemonic.starts_with("v_fma_mix") || self.row.mnemonic.starts_with("v_mad_mix")
    }

    /// A source with its sign modifiers. `neg()` where a minus would be part of a constant.
    fn signed(&mut self, operand: Operand, row: &OperandRow, index: u8) {
        let mods = &self.decoded.mods;
        let bit = |mask: u8| mask >> index & 1 != 0;
        let neg = bit(mods.neg);
        let abs = if self.is_mix() { bit(mods.neg_hi) } else { bit(mods.abs) };
        let sext = mods.sdwa.is_some_and(|sdwa| bit(sdwa.sext));
        let constant = match operand {
            Operand::Int(_) | Operand::Float(_) => true,
            // Already in brackets: `-lit(…)`.
            Operand::Literal(value) => !self.is_wrapped(value, row.ty),
            _ => false,
        };
        let (open, close) = match (neg, constant && !abs) {
            (true, true) => ("neg(", ")"),
            (true, false) => ("-", ""),
            _ => ("", ""),
        };
        self.text.push_str(open);
        if sext {
            self.text.push_str("sext(");
        }
        if abs {
            self.text.push('|');
        }
        self.operand(operand, row);
        if abs {
            self.text.push('|');
        }
        if sext {
            self.text.push(')');
        }
        self.text.push_str(close);
    }

    /// Sources that are printed.
    fn sources(&self) -> usize {
        self.row.operands.iter().filter(|row| !row.hidden && matches!(row.slot, Slot::Src(_))).count()
    }

    /// ` name:[bits]`, one bit a source.
    fn bits(&mut self, name: &str, mask: u8, count: usize) {
        let bits: Vec<&str> = (0..count).map(|bit| if mask >> bit & 1 != 0 { "1" } else { "0" }).collect();
        self.push(format_args!(" {name}:[{}]", bits.join(",")));
    }

    fn scalar_modifiers(&mut self) {
        let mods = &self.decoded.mods;
        let (op_sel, clamp, omod) = (mods.op_sel, mods.clamp, mods.omod);
        if op_sel != 0 {
            self.op_sel(op_sel);
        }
        if clamp {
            self.text.push_str(" clamp");
        }
        match omod {
            1 => self.text.push_str(" mul:2"),
            2 => self.text.push_str(" mul:4"),
            3 => self.text.push_str(" div:2"),
            _ => {}
        }
    }

    /// `op_sel` of VOP3: sources, then the destination where the operation has that bit.
    fn op_sel(&mut self, op_sel: u8) {
        let masks = self.row.masks;
        match masks.op_sel_count {
            0 => {}
            BYTE_SEL => {
                let low = masks.op_sel & 3 != 0;
                let byte = if low { (op_sel & 1) << 1 | op_sel >> 1 & 1 } else { op_sel >> 2 };
                if byte != 0 {
                    self.push(format_args!(" byte_sel:{byte}"));
                }
            }
            count => {
                let sources = count.min(4) - u8::from(masks.op_sel & 8 != 0);
                let mask = op_sel & ((1 << sources) - 1) | (op_sel >> 3 & 1) << sources;
                self.bits("op_sel", mask, count.into());
            }
        }
    }

    fn packed(&mut self) {
        let mods = self.decoded.mods;
        let masks = self.row.masks;
        let sources = self.sources();
        let all = (1u8 << sources) - 1;
        if mods.op_sel & all != 0 && self.row.mnemonic.starts_with("v_swmmac") {
            // Which part of the index register holds the indices.
            self.push(format_args!(" index_key:{}", mods.op_sel));
        } else if mods.op_sel & all != 0 {
            self.bits("op_sel", mods.op_sel, sources);
        }
        let op_sel_hi = masks.op_sel_hi & all;
        let default = if self.is_mix() { 0 } else { op_sel_hi };
        if mods.op_sel_hi & op_sel_hi != default {
            self.bits("op_sel_hi", mods.op_sel_hi, sources);
        }
        if !self.is_mix() {
            if mods.neg != 0 {
                self.bits("neg_lo", mods.neg, sources);
            }
            if mods.neg_hi != 0 {
                self.bits("neg_hi", mods.neg_hi, sources);
            }
        }
        if mods.clamp {
            self.text.push_str(" clamp");
        }
        if mods.cbsz != 0 {
            self.push(format_args!(" cbsz:{}", mods.cbsz));
        }
        if mods.abid != 0 {
            self.push(format_args!(" abid:{}", mods.abid));
        }
        if mods.blgp != 0 {
            // Double-precision matrix instructions negate with it; LLVM says so for the newer target only.
            let f64 = self.row.mnemonic.starts_with("v_mfma_f64");
            if f64 && self.target == Target::Gfx942 {
                self.bits("neg", mods.blgp, 3);
            } else {
                self.push(format_args!(" blgp:{}", mods.blgp));
            }
        }
    }

    /// DPP and SDWA.
    fn control(&mut self) {
        match self.decoded.mods.dpp {
            Some(Dpp::Dpp16 { ctrl, row_mask, bank_mask, bound_ctrl, fi }) => {
                self.dpp_ctrl(ctrl.into());
                self.push(format_args!(" row_mask:{row_mask:#x} bank_mask:{bank_mask:#x}"));
                if bound_ctrl {
                    self.text.push_str(" bound_ctrl:1");
                }
                if fi {
                    self.text.push_str(" fi:1");
                }
            }
            Some(Dpp::Dpp8 { sel, fi }) => {
                let lanes: Vec<String> = sel.iter().map(u8::to_string).collect();
                self.push(format_args!(" dpp8:[{}]", lanes.join(",")));
                if fi {
                    self.text.push_str(" fi:1");
                }
            }
            None => {}
        }
        if self.form.extension() == Extension::Sdwa {
            self.sdwa();
        }
    }

    fn dpp_ctrl(&mut self, ctrl: u32) {
        let before_gfx10 = self.family == Family::Gfx9;
        let n = ctrl & 15;
        let wide = self.row.operands.iter().any(|operand| operand.dwords > 1);
        match ctrl {
            0..0x150 | 0x160.. if wide && self.target.unified_agprs() => {
                self.text.push_str(" /* DP ALU dpp only supports row_newbcast */");
            }
            0..=0xff => self.push(format_args!(
                " quad_perm:[{},{},{},{}]",
                ctrl & 3,
                ctrl >> 2 & 3,
                ctrl >> 4 & 3,
                ctrl >> 6 & 3
            )),
            0x101..=0x10f => self.push(format_args!(" row_shl:{n}")),
            0x111..=0x11f => self.push(format_args!(" row_shr:{n}")),
            0x121..=0x12f => self.push(format_args!(" row_ror:{n}")),
            0x130 | 0x134 | 0x138 | 0x13c => {
                let name = ["wave_shl", "wave_rol", "wave_shr", "wave_ror"][n as usize / 4];
                if before_gfx10 {
                    self.push(format_args!(" {name}:1"));
                } else {
                    self.push(format_args!(" /* {name} is not supported starting from GFX10 */"));
                }
            }
            0x140 => self.text.push_str(" row_mirror"),
            0x141 => self.text.push_str(" row_half_mirror"),
            0x142 | 0x143 if before_gfx10 => {
                self.push(format_args!(" row_bcast:{}", if ctrl == 0x142 { 15 } else { 31 }));
            }
            0x142 | 0x143 => self.text.push_str(" /* row_bcast is not supported starting from GFX10 */"),
            0x150..=0x15f if self.target.unified_agprs() => self.push(format_args!(" row_newbcast:{n}")),
            0x150..=0x15f if !before_gfx10 => self.push(format_args!(" row_share:{n}")),
            0x150..=0x15f => {
                self.text.push_str(" /* row_newbcast/row_share is not supported on ASICs earlier than GFX90A/GFX10 */");
            }
            0x160..=0x16f if !before_gfx10 => self.push(format_args!(" row_xmask:{n}")),
            0x160..=0x16f => self.text.push_str(" /* row_xmask is not supported on ASICs earlier than GFX10 */"),
            _ => self.text.push_str(" /* Invalid dpp_ctrl value */"),
        }
    }

    fn sdwa(&mut self) {
        const SEL: [&str; 7] = ["BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD"];
        const UNUSED: [&str; 4] = ["UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE", "UNUSED_PAD"];
        let Some(sdwa) = self.decoded.mods.sdwa else { return };
        let sel = |value: u8| SEL.get(usize::from(value)).copied().unwrap_or("INVALID");
        let masks = self.row.masks;
        if masks.dst_sel != 0 {
            let unused = UNUSED.get(usize::from(sdwa.dst_unused)).copied().unwrap_or("INVALID");
            self.push(format_args!(" dst_sel:{} dst_unused:{unused}", sel(sdwa.dst_sel)));
        }
        if masks.sel & 1 != 0 {
            self.push(format_args!(" src0_sel:{}", sel(sdwa.src0_sel)));
        }
        if masks.sel & 2 != 0 {
            self.push(format_args!(" src1_sel:{}", sel(sdwa.src1_sel)));
        }
    }
}

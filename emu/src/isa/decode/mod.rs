//! From bytes to [`Decoded`].
//!
//! The format is told by the high bits of the first dword, the form by what stands in place of source 0; the table's row
//! then says which operands the operation has, the layout where they are.

mod memory;
mod operand;
mod valu;

use super::layout::{Form, Layout};
use super::table::{FormTable, Kind, OperandRow, Row, Slot, Table};
use super::{Decoded, Family, Format, Mods, Operand, Target};

/// Why bytes are not an instruction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Fewer bytes than the instruction has.
    #[error("an instruction of {needed} bytes is cut off after {available}")]
    Truncated {
        /// Bytes there are.
        available: usize,
        /// Bytes it takes, as far as known.
        needed: usize,
    },
    /// The high bits are no format of this target.
    #[error("{word:#010x} begins no {target} instruction")]
    Format {
        /// First dword.
        word: u32,
        /// Target.
        target: Target,
    },
    /// A format that is not in the tables.
    #[error("{word:#010x} begins a {format} instruction of {target}: {reason}")]
    Excluded {
        /// First dword.
        word: u32,
        /// Target.
        target: Target,
        /// The format.
        format: Format,
        /// Why it is not there.
        reason: &'static str,
    },
    /// The target has no such opcode.
    #[error("{target} has no {format} opcode {opcode:#x} ({word:#010x})")]
    Opcode {
        /// First dword.
        word: u32,
        /// Target.
        target: Target,
        /// Format.
        format: Format,
        /// Opcode.
        opcode: u16,
    },
    /// A selector that names no register or constant.
    #[error("{target} {mnemonic}: {selector} selects no operand ({word:#010x})")]
    Selector {
        /// First dword.
        word: u32,
        /// Target.
        target: Target,
        /// Operation.
        mnemonic: &'static str,
        /// The field's value.
        selector: u32,
    },
}

/// The encoding at hand.
pub(super) struct Raw<'a> {
    pub target: Target,
    pub family: Family,
    pub form: Form,
    pub layout: &'a Layout,
    pub row: &'a Row,
    pub bits: u128,
    /// Bytes there are.
    pub available: usize,
}

/// Decodes the instruction at the start of `bytes` (16 of them, or fewer at the end of the code).
pub fn decode(target: Target, bytes: &[u8]) -> Result<Decoded, DecodeError> {
    let available = bytes.len().min(16);
    if available < 4 {
        return Err(DecodeError::Truncated { available, needed: 4 });
    }
    let mut padded = [0; 16];
    padded[..available].copy_from_slice(&bytes[..available]);
    let bits = u128::from_le_bytes(padded);
    let word = bits as u32;
    let table = Table::of(target);
    let family = target.family();
    let form = form(target, bits).ok_or_else(|| match excluded(family, word) {
        Some((format, reason)) => DecodeError::Excluded { word, target, format, reason },
        None => DecodeError::Format { word, target },
    })?;
    let (form_table, row, opcode) = find(table, form, bits)?;
    let layout = &form_table.layout;
    if available < usize::from(layout.len) {
        return Err(DecodeError::Truncated { available, needed: layout.len.into() });
    }
    let raw = Raw { target, family, form, layout, row, bits, available };
    let mut decoded = raw.operands(opcode)?;
    raw.modifiers(&mut decoded);
    if form == Form::VopdX {
        let (y_table, y_row, y_opcode) = find(table, Form::VopdY, bits)?;
        let y = Raw { form: Form::VopdY, layout: &y_table.layout, row: y_row, ..raw };
        let mut second = y.operands(y_opcode)?;
        y.modifiers(&mut second);
        decoded.len = decoded.len.max(second.len);
        second.len = decoded.len;
        second.bytes = decoded.bytes;
        decoded.second = Some(Box::new(second));
    }
    // Bytes after the instruction are not part of it.
    decoded.bytes[usize::from(decoded.len)..].fill(0);
    if let Some(second) = &mut decoded.second {
        second.bytes = decoded.bytes;
    }
    Ok(decoded)
}

/// Formats that are not in the tables, and why.
pub const EXCLUDED: [(Format, &str); 4] = [
    (Format::Mimg, "it needs an image unit"),
    (Format::Exp, "exports are of graphics"),
    (Format::Vintrp, "attribute interpolation is of graphics"),
    (Format::Ldsdir, "attributes in LDS are of graphics"),
];

/// One of those formats.
fn excluded(family: Family, word: u32) -> Option<(Format, &'static str)> {
    let format = match (word >> 26, family) {
        (0b111100, Family::Gfx9 | Family::Gfx10 | Family::Gfx11) => Format::Mimg,
        // VIMAGE and VSAMPLE.
        (0b110100 | 0b111001, Family::Gfx12) => Format::Mimg,
        (0b110001, Family::Gfx9) | (0b111110, Family::Gfx10 | Family::Gfx11 | Family::Gfx12) => Format::Exp,
        (0b110101, Family::Gfx9) | (0b110010, Family::Gfx10) => Format::Vintrp,
        (0b110011, Family::Gfx11 | Family::Gfx12) if word >> 24 & 3 == 1 => Format::Vintrp,
        (0b110011, Family::Gfx11 | Family::Gfx12) if word >> 24 & 3 == 2 => Format::Ldsdir,
        _ => return None,
    };
    EXCLUDED.into_iter().find(|(known, _)| *known == format)
}

/// The row of a form for the opcode in `bits`.
pub(super) fn find(table: &Table, form: Form, bits: u128) -> Result<(&FormTable, &Row, u16), DecodeError> {
    let target = table.target;
    let word = bits as u32;
    let form_table = table.form(form).ok_or(DecodeError::Format { word, target })?;
    let opcode = form_table.layout.opcode(bits);
    let unknown = DecodeError::Opcode { word, target, format: form.format(), opcode: opcode as u16 };
    let row = form_table.row(opcode).ok_or(unknown.clone())?;
    // The all-zero dword is `v_illegal` where it exists; with operands it is not. Nor is a program control instruction
    // that takes no immediate one when it has one: those are data.
    let unexpected = match form {
        Form::Vop2 => row.mnemonic == "v_illegal" && word != 0,
        Form::Sopp => row.operands.is_empty() && word & 0xffff != 0,
        _ => false,
    };
    if unexpected {
        return Err(unknown);
    }
    Ok((form_table, row, opcode as u16))
}

/// The form of an encoding.
fn form(target: Target, bits: u128) -> Option<Form> {
    let family = target.family();
    let word = bits as u32;
    if word >> 31 == 0 {
        let (plain, dpp, dpp8, sdwa) = match word >> 25 {
            0x3f => (Form::Vop1, Form::Vop1Dpp, Form::Vop1Dpp8, Form::Vop1Sdwa),
            0x3e => (Form::Vopc, Form::VopcDpp, Form::VopcDpp8, Form::VopcSdwa),
            _ => (Form::Vop2, Form::Vop2Dpp, Form::Vop2Dpp8, Form::Vop2Sdwa),
        };
        return Some(match word & 0x1ff {
            249 if family <= Family::Gfx10 => sdwa,
            250 => dpp,
            233 | 234 if family >= Family::Gfx10 => dpp8,
            _ => plain,
        });
    }
    if word >> 30 == 0b10 {
        return Some(match word >> 23 & 0x7f {
            0x7d => Form::Sop1,
            0x7e => Form::Sopc,
            0x7f => Form::Sopp,
            op if op >= 0x60 => Form::Sopk,
            _ => Form::Sop2,
        });
    }
    let vop3 = |plain, dpp, dpp8| match (bits >> 32) as u32 & 0x1ff {
        250 if family >= Family::Gfx11 => dpp,
        233 | 234 if family >= Family::Gfx11 => dpp8,
        _ => plain,
    };
    let vop3 = |packed: bool| {
        if packed {
            vop3(Form::Vop3p, Form::Vop3pDpp, Form::Vop3pDpp8)
        } else {
            vop3(Form::Vop3, Form::Vop3Dpp, Form::Vop3Dpp8)
        }
    };
    let segment = |value: u32| match value & 3 {
        0 => Some(Form::Flat),
        1 => Some(Form::Scratch),
        2 => Some(Form::Global),
        _ => None,
    };
    Some(match (word >> 26, family) {
        (0b110000, Family::Gfx9) => Form::Smem,
        (0b110100, Family::Gfx9) => vop3(word >> 23 & 7 == 7),
        (0b110110, _) => Form::Ds,
        (0b110111, Family::Gfx9 | Family::Gfx10) => segment(word >> 14)?,
        (0b110111, Family::Gfx11) => segment(word >> 16)?,
        (0b111000, Family::Gfx9 | Family::Gfx10 | Family::Gfx11) => Form::Mubuf,
        (0b111010, Family::Gfx9 | Family::Gfx10 | Family::Gfx11) => Form::Mtbuf,
        (0b111101, Family::Gfx10 | Family::Gfx11 | Family::Gfx12) => Form::Smem,
        (0b110101, Family::Gfx10 | Family::Gfx11 | Family::Gfx12) => vop3(false),
        (0b110011, Family::Gfx10 | Family::Gfx11 | Family::Gfx12) if word >> 24 & 3 == 0 => vop3(true),
        (0b110010, Family::Gfx11 | Family::Gfx12) => Form::VopdX,
        (0b111011, Family::Gfx12) => segment(word >> 24)?,
        (0b110001, Family::Gfx12) if word >> 21 & 1 == 1 => Form::Mtbuf,
        (0b110001, Family::Gfx12) => Form::Mubuf,
        _ => return None,
    })
}

impl Raw<'_> {
    /// Fills the operand slots.
    fn operands(&self, opcode: u16) -> Result<Decoded, DecodeError> {
        let mut decoded = Decoded {
            mnemonic: self.row.mnemonic,
            format: self.form.format(),
            opcode,
            len: self.layout.len,
            bytes: self.bits.to_le_bytes(),
            dst: Operand::None,
            dst2: Operand::None,
            src: [Operand::None; 4],
            mods: Mods::default(),
            second: None,
        };
        for row in &self.row.operands {
            let operand = self.operand(row, &mut decoded.len)?;
            match row.slot {
                Slot::Dst => decoded.dst = operand,
                Slot::Dst2 => decoded.dst2 = operand,
                Slot::Src(index) => decoded.src[usize::from(index)] = operand,
                Slot::Other => {}
            }
        }
        Ok(decoded)
    }

    fn operand(&self, row: &OperandRow, len: &mut u8) -> Result<Operand, DecodeError> {
        let value = self.layout.get(row.field, self.bits);
        match row.kind {
            Kind::Imm => Ok(self.immediate(row, value)),
            Kind::Msg => Ok(Operand::Imm(value as i32)),
            Kind::Constant => self.literal(len),
            Kind::Offset => Ok(Operand::None),
            Kind::Fixed(reg) => Ok(Operand::Special { reg, dwords: row.dwords }),
            _ => self.register(row, value, len),
        }
    }

    fn immediate(&self, row: &OperandRow, value: u32) -> Operand {
        Operand::Imm(match row.field {
            super::layout::Field::Simm16 => i32::from(value as u16 as i16),
            _ => value as i32,
        })
    }

    /// The dword behind the encoding.
    fn literal(&self, len: &mut u8) -> Result<Operand, DecodeError> {
        let end = usize::from(self.layout.len) + 4;
        if self.available < end {
            return Err(DecodeError::Truncated { available: self.available, needed: end });
        }
        *len = end as u8;
        Ok(Operand::Literal((self.bits >> (u32::from(self.layout.len) * 8)) as u32))
    }

    fn modifiers(&self, decoded: &mut Decoded) {
        match self.form.format() {
            Format::Vop1 | Format::Vop2 | Format::Vopc | Format::Vop3 | Format::Vop3p => self.valu(decoded),
            Format::Smem => self.smem(decoded),
            Format::Ds => self.ds(decoded),
            Format::Flat | Format::Global | Format::Scratch => self.flat(decoded),
            Format::Mubuf | Format::Mtbuf => self.buffer(decoded),
            _ => {}
        }
    }
}

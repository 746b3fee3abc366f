//! Addresses and modifiers of memory instructions.

use super::super::layout::{Field, Form};
use super::super::{Decoded, Family, Operand, Special};
use super::Raw;

/// Sign-extends the low `width` bits.
fn signed(value: u32, width: u8) -> i32 {
    let shift = 32 - u32::from(width);
    (value << shift) as i32 >> shift
}

impl Raw<'_> {
    fn flag(&self, field: Field) -> bool {
        self.layout.get(field, self.bits) != 0
    }

    /// Cache policy as [`super::super::Mods::cpol`] has it.
    fn cache_policy(&self) -> u8 {
        // Where an operation does not take the bit it is part of its encoding, or ignored.
        let takes = |field| self.row.atomic || self.row.takes(field);
        let get = |field| if takes(field) { self.layout.get(field, self.bits) as u8 } else { 0 };
        if self.family == Family::Gfx12 {
            return get(Field::Th) | get(Field::Scope) << 3;
        }
        get(Field::Glc) | get(Field::Slc) << 1 | get(Field::Dlc) << 2 | get(Field::Scc) << 4
    }

    /// An atomic's result is its destination only where the encoding asks for it.
    fn returns(&self) -> bool {
        let asked = if self.family == Family::Gfx12 { Field::Th } else { Field::Glc };
        self.row.atomic && self.layout.get(asked, self.bits) & 1 != 0
    }

    pub(super) fn smem(&self, decoded: &mut Decoded) {
        let width = self.layout.fields[Field::Offset as usize].width;
        let offset = self.layout.get(Field::Offset, self.bits);
        decoded.mods.cpol = self.cache_policy();
        let soffset = self.layout.get(Field::Soffset, self.bits);
        let has_offset = self.row.operands.iter().any(|row| row.field == Field::Offset || row.field == Field::Soffset);
        if !has_offset {
            return;
        }
        if self.family == Family::Gfx9 {
            // Either an immediate, or a register in its place, or both.
            let register = |value| super::operand::selector(self.target, value, 1).unwrap_or(Operand::None);
            let imm = self.flag(Field::Imm);
            if self.flag(Field::SoffsetEn) {
                decoded.src[1] = register(soffset);
            } else if !imm {
                decoded.src[1] = register(offset & 0x7f);
            }
            if imm {
                decoded.mods.offset = signed(offset, width);
            }
        } else {
            decoded.mods.offset = signed(offset, width);
            decoded.src[1] = match super::operand::selector(self.target, soffset, 1) {
                None | Some(Operand::Special { reg: Special::Null, .. }) => Operand::None,
                Some(register) => register,
            };
        }
        if self.row.atomic {
            decoded.mods.returns = self.returns();
            if decoded.mods.returns {
                decoded.dst = self.returned(decoded.src[2]);
            }
        }
    }

    /// The register that receives what an atomic with this data operand returns.
    fn returned(&self, data: Operand) -> Operand {
        let half = |dwords: u8| if self.row.compare_swap { dwords / 2 } else { dwords };
        match data {
            Operand::Vgpr { reg, dwords, hi } => Operand::Vgpr { reg, dwords: half(dwords), hi },
            Operand::Agpr { reg, dwords } => Operand::Agpr { reg, dwords: half(dwords) },
            Operand::Sgpr { reg, dwords } => Operand::Sgpr { reg, dwords: half(dwords) },
            Operand::Ttmp { reg, dwords } => Operand::Ttmp { reg, dwords: half(dwords) },
            Operand::Special { reg, dwords } => Operand::Special { reg, dwords: half(dwords) },
            other => other,
        }
    }

    pub(super) fn ds(&self, decoded: &mut Decoded) {
        let low = self.layout.get(Field::Offset, self.bits);
        let high = self.layout.get(Field::Offset1, self.bits);
        if self.row.two_offsets {
            decoded.mods.offset = low as i32;
            decoded.mods.offset1 = high as u8;
        } else {
            decoded.mods.offset = (low | high << 8) as i32;
        }
        decoded.mods.gds = self.flag(Field::Gds);
        decoded.mods.returns = decoded.mnemonic.contains("_rtn");
    }

    pub(super) fn flat(&self, decoded: &mut Decoded) {
        let width = self.layout.fields[Field::Offset as usize].width;
        let offset = self.layout.get(Field::Offset, self.bits);
        let is_signed = self.form != Form::Flat || self.family == Family::Gfx12;
        decoded.mods.offset = if is_signed { signed(offset, width) } else { offset as i32 };
        decoded.mods.cpol = self.cache_policy();
        decoded.mods.lds = self.flag(Field::Lds) || decoded.mnemonic.contains("_lds_");
        if decoded.mods.lds {
            decoded.dst = Operand::None;
        }
        self.addresses(decoded);
        if self.row.atomic {
            decoded.mods.returns = self.returns();
            if !decoded.mods.returns {
                decoded.dst = Operand::None;
            }
        }
    }

    /// Which of the address registers there are, and how wide the vector one is.
    fn addresses(&self, decoded: &mut Decoded) {
        let has = |field| self.row.operands.iter().any(|row| row.field == field);
        let saddr = self.layout.get(Field::Saddr, self.bits);
        let off = match self.family {
            Family::Gfx9 => saddr == 0x7f,
            Family::Gfx10 => saddr == 0x7d || saddr == 0x7f,
            _ => saddr == 0x7c,
        };
        let mut width = 1;
        match self.form {
            Form::Flat => {
                decoded.src[2] = Operand::Off;
                width = 2;
            }
            Form::Global if off => {
                decoded.src[2] = Operand::Off;
                width = 2;
            }
            Form::Scratch if off => decoded.src[2] = Operand::Off,
            _ => {}
        }
        if let Operand::Vgpr { dwords, .. } = &mut decoded.src[0] {
            *dwords = width;
        }
        let vector = match (self.form, self.layout.has(Field::Sve), self.family) {
            (Form::Scratch, true, _) => self.flag(Field::Sve),
            // On GFX10 `null` leaves the vector address, 0x7f takes it away as well.
            (Form::Scratch, false, Family::Gfx10) => saddr == 0x7d,
            (Form::Scratch, false, _) => off,
            _ => has(Field::Vaddr),
        };
        if !vector {
            decoded.src[0] = Operand::Off;
        }
    }

    pub(super) fn buffer(&self, decoded: &mut Decoded) {
        let mods = &mut decoded.mods;
        let width = self.layout.fields[Field::Offset as usize].width;
        let offset = self.layout.get(Field::Offset, self.bits);
        mods.offset = if self.family == Family::Gfx12 { signed(offset, width) } else { offset as i32 };
        mods.cpol = self.cache_policy();
        mods.offen = self.flag(Field::Offen);
        mods.idxen = self.flag(Field::Idxen);
        mods.tfe = self.flag(Field::Tfe);
        mods.lds = self.flag(Field::Lds) || decoded.mnemonic.contains("_lds");
        mods.format = if self.form == Form::Mtbuf { self.layout.get(Field::BufFormat, self.bits) as u8 } else { 0 };
        let address_registers = u8::from(mods.offen) + u8::from(mods.idxen);
        match &mut decoded.src[0] {
            Operand::Vgpr { dwords, .. } if address_registers != 0 => *dwords = address_registers,
            Operand::Vgpr { .. } => decoded.src[0] = Operand::Off,
            _ => {}
        }
        if self.row.atomic {
            decoded.mods.returns = self.returns();
            decoded.dst = if decoded.mods.returns { self.returned(decoded.src[1]) } else { Operand::None };
        }
        if decoded.mods.lds {
            decoded.dst = Operand::None;
        } else if decoded.mods.tfe {
            // One more register, for the status.
            for operand in [&mut decoded.dst, &mut decoded.src[1]] {
                if let Operand::Vgpr { dwords, .. } = operand {
                    *dwords += 1;
                }
            }
        }
    }
}

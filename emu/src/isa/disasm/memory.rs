//! Memory instructions.

use super::super::layout::{Field, Form, Layout};
use super::super::table::{Kind, Names, OperandRow};
use super::super::{Family, Operand, Special, Target};
use super::Printer;

impl Printer<'_> {
    /// A field of the encoding.
    fn raw(&self, field: Field) -> u32 {
        Layout::of(self.target, self.form)
            .map_or(0, |layout| layout.get(field, u128::from_le_bytes(self.decoded.bytes)))
    }

    pub(super) fn smem(&mut self) {
        let mut first = true;
        let mut offset_done = false;
        let register = self.decoded.src[1];
        let offset = self.decoded.mods.offset;
        for row in self.row.operands.iter().filter(|row| !row.hidden) {
            let is_offset = row.kind == Kind::Offset || row.field == Field::Soffset;
            if is_offset && self.row.mnemonic.contains("prefetch") {
                self.separator(&mut first);
                match row.kind {
                    Kind::Offset => self.hex(offset),
                    _ => {
                        let null = Operand::Special { reg: Special::Null, dwords: 1 };
                        self.operand(if register == Operand::None { null } else { register }, row);
                    }
                }
                continue;
            }
            if is_offset && std::mem::replace(&mut offset_done, true) {
                continue;
            }
            self.separator(&mut first);
            if is_offset {
                self.scalar_offset(register, offset, row);
            } else {
                self.operand(self.slot(row), row);
            }
        }
        self.cache_policy();
    }

    fn hex(&mut self, value: i32) {
        let sign = if value < 0 { "-" } else { "" };
        self.push(format_args!("{sign}{:#x}", value.unsigned_abs()));
    }

    /// Register, immediate, or both.
    fn scalar_offset(&mut self, register: Operand, offset: i32, row: &OperandRow) {
        let both = match self.family {
            Family::Gfx9 => self.raw(Field::Imm) != 0,
            Family::Gfx12 => true,
            _ => offset != 0,
        };
        match register {
            // With no immediate either, LLVM takes the form with a register, which is `null`.
            Operand::None if offset == 0 && matches!(self.family, Family::Gfx10 | Family::Gfx11) => {
                self.text.push_str("null");
            }
            Operand::None => self.hex(offset),
            register => {
                self.operand(register, row);
                if both {
                    self.text.push_str(" offset:");
                    self.hex(offset);
                }
            }
        }
    }

    pub(super) fn ds(&mut self) {
        self.plain();
        let mods = self.decoded.mods;
        if self.row.two_offsets {
            if mods.offset != 0 {
                self.push(format_args!(" offset0:{}", mods.offset));
            }
            if mods.offset1 != 0 {
                self.push(format_args!(" offset1:{}", mods.offset1));
            }
        } else if mods.offset != 0 && (self.row.takes(Field::Offset) || self.row.takes(Field::Offset1)) {
            self.ds_offset(mods.offset as u32);
        }
        if mods.gds {
            self.text.push_str(" gds");
        }
    }

    fn ds_offset(&mut self, offset: u32) {
        if self.row.mnemonic == "ds_swizzle_b32" {
            return self.swizzle(offset);
        }
        self.push(format_args!(" offset:{offset}"));
    }

    /// `ds_swizzle` packs a pattern in its offset (LLVM AMDGPU operand syntax, "swizzle").
    fn swizzle(&mut self, offset: u32) {
        let five = |lo: u32| offset >> lo & 31;
        if offset >= 0xe000 {
            return self.push(format_args!(" offset:swizzle(FFT,{})", five(0)));
        }
        if offset >= 0xc000 {
            return self.push(format_args!(" offset:swizzle(ROTATE,{},{})", offset >> 10 & 1, five(5)));
        }
        if offset & 0xff00 == 0x8000 {
            let lanes = [offset & 3, offset >> 2 & 3, offset >> 4 & 3, offset >> 6 & 3];
            let [a, b, c, d] = lanes;
            return self.push(format_args!(" offset:swizzle(QUAD_PERM,{a},{b},{c},{d})"));
        }
        if offset & 0x8000 != 0 {
            return self.push(format_args!(" offset:{offset}"));
        }
        let (and, or, xor) = (five(0), five(5), five(10));
        if and == 31 && or == 0 && xor.count_ones() == 1 {
            return self.push(format_args!(" offset:swizzle(SWAP,{xor})"));
        }
        if and == 31 && or == 0 && xor > 0 && (xor + 1).is_power_of_two() {
            return self.push(format_args!(" offset:swizzle(REVERSE,{})", xor + 1));
        }
        let group = 32 - and;
        if group > 1 && group.is_power_of_two() && or < group && xor == 0 {
            return self.push(format_args!(" offset:swizzle(BROADCAST,{group},{or})"));
        }
        let pattern: String = (0..5)
            .rev()
            .map(|bit| {
                let probe = |lane: u32| ((lane & and | or) ^ xor) >> bit & 1;
                match (probe(0), probe(1 << bit)) {
                    (0, 0) => '0',
                    (1, 1) => '1',
                    (0, _) => 'p',
                    _ => 'i',
                }
            })
            .collect();
        self.push(format_args!(" offset:swizzle(BITMASK_PERM,\"{pattern}\")"));
    }

    pub(super) fn flat(&mut self) {
        let mut first = true;
        let mods = self.decoded.mods;
        for row in self.row.operands.iter().filter(|row| !row.hidden) {
            let absent = match row.field {
                Field::Vdst => self.row.atomic && !mods.returns || mods.lds,
                // FLAT has no scalar address, GLOBAL no `off` in place of the vector one.
                Field::Saddr => self.form == Form::Flat,
                Field::Vaddr => self.form == Form::Global && self.decoded.src[0] == Operand::Off,
                _ => false,
            };
            if absent {
                continue;
            }
            self.separator(&mut first);
            self.operand(self.slot(row), row);
        }
        if mods.offset != 0 {
            self.push(format_args!(" offset:{}", mods.offset));
        }
        self.cache_policy();
        if mods.lds && !self.row.mnemonic.contains("_lds_") {
            self.text.push_str(" lds");
        }
    }

    pub(super) fn buffer(&mut self) {
        let mut first = true;
        let mods = self.decoded.mods;
        for row in self.row.operands.iter().filter(|row| !row.hidden) {
            if row.field == Field::Vdata && mods.lds {
                continue;
            }
            self.separator(&mut first);
            self.operand(self.slot(row), row);
        }
        if self.form == Form::Mtbuf {
            // The default format has no text.
            if let Some(name) = self.table.name(Names::Format, mods.format.into()) {
                self.push(format_args!(" {name}"));
            }
        }
        if mods.idxen {
            self.text.push_str(" idxen");
        }
        if mods.offen {
            self.text.push_str(" offen");
        }
        if mods.offset != 0 {
            self.push(format_args!(" offset:{}", mods.offset));
        }
        let store = self.row.mnemonic == "buffer_store_lds_dword";
        if store {
            self.text.push_str(" lds");
        }
        self.cache_policy();
        if mods.lds && !store && !self.row.mnemonic.contains("_lds_") {
            self.text.push_str(" lds");
        }
        if mods.tfe {
            self.text.push_str(" tfe");
        }
    }

    fn cache_policy(&mut self) {
        let cpol = self.decoded.mods.cpol;
        if self.family == Family::Gfx12 {
            let group = match self.form {
                Form::Smem => Names::ThScalar,
                _ if self.row.atomic => Names::ThAtomic,
                _ if self.row.mnemonic.contains("store") => Names::ThStore,
                _ => Names::ThLoad,
            };
            if let Some(text) = self.table.name(group, cpol.into()) {
                self.push(format_args!(" {text}"));
            }
            return;
        }
        let gfx942 = self.target == Target::Gfx942 && self.form != Form::Smem;
        if cpol & 1 != 0 {
            self.text.push_str(if gfx942 { " sc0" } else { " glc" });
        }
        if cpol & 2 != 0 {
            self.text.push_str(if gfx942 { " nt" } else { " slc" });
        }
        if cpol & 4 != 0 {
            self.text.push_str(" dlc");
        }
        if cpol & 16 != 0 {
            self.text.push_str(if gfx942 { " sc1" } else { " scc" });
        }
    }
}

//! Encodings made from the tables with arbitrary, mostly legal field values, for comparison with LLVM.

use emu::isa::layout::{Extension, Field, Form, Layout};
use emu::isa::table::{Kind, OperandRow, Row, Slot, Table, Type};
use emu::isa::{Family, Target};

/// A small generator: the comparison must be the same each time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32
    }

    fn below(&mut self, limit: u32) -> u32 {
        self.next() % limit.max(1)
    }

    fn one_in(&mut self, n: u32) -> bool {
        self.below(n) == 0
    }

    fn pick(&mut self, choices: &[u32]) -> u32 {
        choices[self.below(choices.len() as u32) as usize]
    }
}

struct Maker<'a> {
    target: Target,
    family: Family,
    form: Form,
    layout: &'a Layout,
    row: &'a Row,
    random: &'a mut Random,
    bits: u128,
    /// Ordinary operands only.
    plain: bool,
}

/// A row of a target's table, with encodings of it.
pub struct Sampled {
    /// Form of the row.
    pub form: Form,
    /// The row.
    pub row: &'static Row,
    /// Encodings with ordinary operands: registers, and immediates that mean something, without modifiers.
    pub plain: Vec<Vec<u8>>,
    /// Encodings with arbitrary operands and modifiers.
    pub any: Vec<Vec<u8>>,
}

/// `plain` and `any` encodings of each row of the target's table.
pub fn by_row(target: Target, plain: u32, any: u32) -> Vec<Sampled> {
    let table = Table::of(target);
    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ target as u64);
    let mut all = Vec::new();
    for form in Form::ALL.iter().copied() {
        let Some(form_table) = table.form(form) else { continue };
        let layout = &form_table.layout;
        for (opcode, row) in form_table.rows() {
            let mut make = |plain: bool| {
                let bits = layout.op_hi.set(layout.op.set(u128::from(layout.base), opcode), opcode >> layout.op.width);
                let random = &mut random;
                let mut maker = Maker { target, family: target.family(), form, layout, row, random, bits, plain };
                maker.fill();
                let len = usize::from(layout.len) + 4;
                maker.bits.to_le_bytes()[..len.min(16)].to_vec()
            };
            let plain = (0..plain).map(|_| make(true)).collect();
            let any = (0..any).map(|_| make(false)).collect();
            all.push(Sampled { form, row, plain, any });
        }
    }
    all
}

/// `count` encodings of each row of the target's table.
pub fn samples(target: Target, count: u32) -> Vec<Vec<u8>> {
    by_row(target, 0, count).into_iter().flat_map(|sampled| sampled.any).collect()
}

impl Maker<'_> {
    fn set(&mut self, field: Field, value: u32) {
        self.bits = self.layout.fields[field as usize].set(self.bits, value);
    }

    fn get(&self, field: Field) -> u32 {
        self.layout.get(field, self.bits)
    }

    /// A bit or mask of a modifier that the row takes, sometimes.
    fn modifier(&mut self, field: Field, value: u32) {
        if self.row.takes(field) && self.random.one_in(3) && !self.plain {
            self.set(field, value);
        }
    }

    fn fill(&mut self) {
        match self.form.format() {
            emu::isa::Format::Vopd => self.vopd(),
            _ => {
                for operand in self.row.operands.iter().filter(|operand| !operand.hidden) {
                    self.operand(operand);
                }
            }
        }
        match self.form.base() {
            Form::Vop3 => self.vop3(),
            Form::Vop3p => self.vop3p(),
            Form::Smem => self.smem(),
            Form::Ds => {
                let (low, high) = (self.random.below(256), self.random.below(256));
                self.modifier(Field::Offset, low);
                self.modifier(Field::Offset1, high);
                self.modifier(Field::AccCd, 1);
            }
            Form::Flat | Form::Global | Form::Scratch => self.flat(),
            Form::Mubuf | Form::Mtbuf => self.buffer(),
            _ => {}
        }
        self.control();
        let literal = self.random.pick(&[
            0,
            1,
            64,
            65,
            0xffff_fff0,
            0xffff_ffff,
            0x3f00_0000,
            0x3800,
            0x3fe0_0000,
            0x1234_5678,
            0xfedc_ba98,
            0x3e22_f983,
        ]);
        let at = u32::from(self.layout.len) * 8;
        if at < 128 && self.layout.len < 12 {
            self.bits = self.bits & !(0xffff_ffffu128 << at) | u128::from(literal) << at;
        }
    }

    /// A register number that is legal for the width.
    fn aligned(&mut self, limit: u32, dwords: u8) -> u32 {
        let align = match dwords {
            0 | 1 => 1,
            2 => 2,
            _ => 4,
        };
        let room = limit.saturating_sub(u32::from(dwords));
        self.random.below(room + 1) / align * align
    }

    fn operand(&mut self, operand: &OperandRow) {
        let dwords = operand.dwords;
        let width = self.layout.fields[operand.field as usize].width;
        let value = match operand.kind {
            Kind::Vgpr | Kind::Agpr | Kind::VgprOrAcc => self.aligned(256, dwords),
            Kind::Vgpr16 => self.random.below(256),
            // A 9-bit field, but for scalar registers.
            Kind::Src if operand.field == Field::Srsrc => self.aligned(100, dwords),
            Kind::Src | Kind::Src16 | Kind::SrcAgpr | Kind::SrcAcc | Kind::SrcAccC => self.source(operand),
            Kind::Scalar if operand.field == Field::Sbase => self.aligned(100, 4) / 2,
            Kind::Scalar if operand.field == Field::Srsrc && width < 7 => self.aligned(100, 4) / 4,
            Kind::Scalar if operand.field == Field::Srsrc => self.aligned(100, 4),
            Kind::Scalar if operand.field == Field::Saddr || width == 7 => self.aligned(100, dwords),
            Kind::Scalar => self.scalar(operand),
            // MODE; the interrupt message; a wait, a barrier, an offset.
            Kind::Imm if self.plain && operand.ty == Type::Hwreg => 0xf801,
            Kind::Imm if self.plain => 1,
            Kind::Msg if self.plain => 131,
            Kind::Imm if operand.ty == Type::Sendmsg => self.random.pick(&[1, 2, 3, 9, 10, 0x50]),
            Kind::Imm if operand.ty == Type::Depctr => self.random.below(0x10000) & 0xff9f,
            Kind::Imm => self.random.below(0x10000),
            Kind::Msg => self.random.pick(&[128, 129, 130, 131, 132, 133, 134, 3]),
            Kind::Fixed(_) | Kind::Constant | Kind::Offset => return,
        };
        self.set(operand.field, value);
    }

    fn scalar(&mut self, operand: &OperandRow) -> u32 {
        if self.plain {
            // The work-group's barrier.
            let barrier = self.row.mnemonic.contains("_barrier_") && operand.slot == Slot::Src(0);
            return if barrier { 193 } else { self.aligned(100, operand.dwords) };
        }
        match self.random.below(6) {
            _ if operand.ty == Type::Reg => self.aligned(100, operand.dwords),
            0 => 128 + self.random.below(65),
            1 => 193 + self.random.below(16),
            2 => 240 + self.random.below(9),
            3 if !self.row.mnemonic.contains("barrier") => 255,
            4 => self.random.pick(&[106, 108, 112, 126, 235, 236, 237, 238, 253]),
            _ => self.aligned(100, operand.dwords),
        }
    }

    fn source(&mut self, operand: &OperandRow) -> u32 {
        let vector = 256 + self.aligned(256, operand.dwords);
        let width = self.layout.fields[operand.field as usize].width;
        if width < 9 {
            return vector & 0xff;
        }
        if self.plain && self.row.mnemonic.starts_with("v_s_") {
            return self.aligned(100, operand.dwords);
        }
        let matrix = ["mfma", "smfmac", "wmma", "swmmac"].iter().any(|name| self.row.mnemonic.contains(name));
        let plain = matrix || self.row.mnemonic.contains("accvgpr");
        match self.random.below(8) {
            _ if plain || self.plain => vector,
            0 if operand.ty != Type::Reg => 128 + self.random.below(81),
            1 if operand.ty != Type::Reg => 240 + self.random.below(9),
            // LLVM dies of literals in GFX9's VOP3, and reads past the end in DPP forms.
            2 if operand.ty != Type::Reg && self.form.extension() == Extension::None => {
                let long = matches!(self.form, Form::Vop3 | Form::Vop3p);
                if long && self.family == Family::Gfx9 { vector } else { 255 }
            }
            3 => self.random.pick(&[106, 108, 112, 126, 235, 236, 237, 238]),
            4 => self.aligned(100, operand.dwords),
            _ => vector,
        }
    }

    fn vop3(&mut self) {
        let masks = self.row.masks;
        let has_sdst = self.row.operands.iter().any(|operand| operand.field == Field::Sdst);
        if !has_sdst {
            let (abs, op_sel) = (self.random.below(8), self.random.below(16));
            self.modifier(Field::Abs, abs & u32::from(masks.abs));
            self.modifier(Field::OpSel, op_sel & u32::from(masks.op_sel));
        }
        let (neg, omod) = (self.random.below(8), self.random.below(4));
        self.modifier(Field::Neg, neg & u32::from(masks.neg));
        self.modifier(Field::Omod, omod & u32::from(masks.omod));
        self.modifier(Field::Clamp, 1);
    }

    fn vop3p(&mut self) {
        let masks = self.row.masks;
        if self.row.takes(Field::Cbsz) || self.row.takes(Field::Blgp) || self.row.takes(Field::Acc) {
            for (field, mask) in [(Field::Cbsz, masks.cbsz), (Field::Abid, masks.abid), (Field::Blgp, masks.blgp)] {
                let value = self.random.next() & u32::from(mask);
                self.modifier(field, value);
            }
            let acc = self.random.below(4);
            self.modifier(Field::Acc, acc);
            self.modifier(Field::AccCd, 1);
            return;
        }
        if !self.row.mnemonic.contains("mix") {
            self.set(Field::OpSelHi, 3);
            self.set(Field::OpSelHi2, 1);
        }
        let random: Vec<u32> = (0..4).map(|_| self.random.below(8)).collect();
        self.modifier(Field::Neg, random[0] & u32::from(masks.neg));
        self.modifier(Field::NegHi, random[1] & u32::from(masks.neg_hi));
        self.modifier(Field::OpSel, random[2] & u32::from(masks.op_sel));
        if masks.op_sel_hi != 0 {
            self.modifier(Field::OpSelHi, random[3] & 3);
        }
        self.modifier(Field::OpSelHi2, 0);
        self.modifier(Field::Clamp, 1);
    }

    fn control(&mut self) {
        let dpp_controls: &[u32] = match self.family {
            Family::Gfx9 => {
                &[0, 0x1b, 0xe4, 0x101, 0x112, 0x123, 0x130, 0x134, 0x138, 0x13c, 0x140, 0x141, 0x142, 0x143]
            }
            _ => &[0, 0x1b, 0xe4, 0x101, 0x112, 0x123, 0x140, 0x141, 0x150, 0x15f, 0x160, 0x16f],
        };
        match self.form.extension() {
            Extension::None => return,
            Extension::Dpp16 => {
                let wide = self.row.operands.iter().any(|operand| operand.dwords > 1);
                let control = match (wide, self.target.unified_agprs()) {
                    (true, true) => 0x150 + self.random.below(16),
                    _ => self.random.pick(dpp_controls),
                };
                self.set(Field::DppCtrl, control);
                let (rows, banks) = (self.random.below(16), self.random.below(16));
                self.set(Field::RowMask, rows);
                self.set(Field::BankMask, banks);
                self.modifier(Field::BoundCtrl, 1);
                self.modifier(Field::Fi, 1);
            }
            Extension::Dpp8 => {
                let lanes = self.random.next();
                self.set(Field::Dpp8Sel, lanes & 0xff_ffff);
            }
            Extension::Sdwa => {
                let sel: Vec<u32> = (0..4).map(|_| self.random.below(7)).collect();
                self.set(Field::DstSel, sel[0]);
                self.set(Field::Src0Sel, sel[1]);
                if self.row.masks.sel & 2 != 0 {
                    self.set(Field::Src1Sel, sel[2]);
                }
                self.set(Field::DstUnused, sel[3] % 3);
                if !self.layout.has(Field::DstSel) && self.random.one_in(2) && self.family == Family::Gfx9 {
                    self.set(Field::Sd, 1);
                    self.set(Field::Sdst, 2 * sel[3]);
                }
                self.modifier(Field::Clamp, 1);
                let omod = self.random.below(4) & u32::from(self.row.masks.omod);
                self.modifier(Field::Omod, omod);
                self.modifier(Field::Src0Sext, 1);
                self.modifier(Field::Src1Sext, 1);
            }
        }
        for field in [Field::Src0Neg, Field::Src0Abs, Field::Src1Neg, Field::Src1Abs] {
            self.modifier(field, 1);
        }
        // Source 0 of a VOP3 announces the control dword.
        if matches!(self.form.base(), Form::Vop3 | Form::Vop3p) {
            let selector = match self.form.extension() {
                Extension::Dpp16 => 250,
                _ => 233 + self.random.below(2),
            };
            self.bits = self.bits & !(0x1ff << 32) | u128::from(selector) << 32;
        } else if self.form.extension() == Extension::Dpp8 && self.random.one_in(2) {
            self.bits += 1;
        }
    }

    fn cache(&mut self) {
        for field in [Field::Glc, Field::Slc, Field::Dlc, Field::Scc] {
            if !(self.row.atomic && field == Field::Glc) {
                self.modifier(field, 1);
            }
        }
        let (th, scope) = (self.random.below(8), self.random.below(4));
        if !self.row.atomic {
            self.modifier(Field::Th, th);
        }
        self.modifier(Field::Scope, scope);
        self.modifier(Field::AccCd, 1);
        if self.row.atomic && self.random.one_in(2) {
            self.set(Field::Glc, 1);
            self.set(Field::Th, 1);
        } else if self.row.atomic {
            self.set(Field::Vdst, 0);
        }
    }

    fn smem(&mut self) {
        if !self.row.operands.iter().any(|operand| operand.field == Field::Offset || operand.field == Field::Soffset) {
            return;
        }
        let null = if self.family == Family::Gfx10 { 0x7d } else { 0x7c };
        let offset = self.random.next() & if self.random.one_in(2) { 0xf_ffff } else { 0x1f_ffff };
        let register = self.random.below(100);
        if self.family == Family::Gfx9 {
            match self.random.below(3) {
                0 => {
                    self.set(Field::Imm, 1);
                    self.set(Field::Offset, offset);
                }
                1 => {
                    self.set(Field::SoffsetEn, 1);
                    self.set(Field::Soffset, register);
                }
                _ => {
                    self.set(Field::Imm, 1);
                    self.set(Field::SoffsetEn, 1);
                    self.set(Field::Offset, offset);
                    self.set(Field::Soffset, register);
                }
            }
        } else {
            let soffset = if self.random.one_in(2) { null } else { register };
            self.set(Field::Soffset, soffset);
            if !self.random.one_in(3) {
                self.set(Field::Offset, offset);
            }
        }
        self.cache();
    }

    fn flat(&mut self) {
        let has = |field| self.row.operands.iter().any(|operand| operand.field == field);
        let (has_saddr, has_vaddr) = (has(Field::Saddr), has(Field::Vaddr));
        let off = match self.family {
            Family::Gfx9 => 0x7f,
            Family::Gfx10 => 0x7d,
            _ => 0x7c,
        };
        let offset = self.random.next();
        self.modifier(Field::Offset, offset & 0xfff);
        if self.form != Form::Flat {
            self.modifier(Field::Offset, offset);
        }
        self.cache();
        if !has_saddr || self.form == Form::Flat || self.random.one_in(2) {
            self.set(Field::Saddr, off);
        }
        if self.form == Form::Scratch && self.layout.has(Field::Sve) && has_vaddr {
            let used = self.random.below(2);
            self.set(Field::Sve, used);
            if used == 0 {
                self.set(Field::Vaddr, 0);
            }
        } else if self.form == Form::Scratch && self.get(Field::Saddr) != off {
            self.set(Field::Vaddr, 0);
        } else if self.get(Field::Vaddr) % 2 == 1 {
            let even = self.get(Field::Vaddr) & !1;
            self.set(Field::Vaddr, even);
        }
        if self.row.mnemonic.contains("_lds_") && self.layout.has(Field::Lds) {
            self.set(Field::Lds, 1);
        }
    }

    fn buffer(&mut self) {
        let has = |field| self.row.operands.iter().any(|operand| operand.field == field);
        if !has(Field::Srsrc) {
            return self.cache();
        }
        let offset = self.random.next();
        self.modifier(Field::Offset, offset & 0xfff);
        if has(Field::Vaddr) {
            let (offen, idxen) = (self.random.below(2), self.random.below(2));
            self.set(Field::Offen, offen);
            self.set(Field::Idxen, idxen);
            let vaddr = if offen + idxen == 0 { 0 } else { self.get(Field::Vaddr) & !1 };
            self.set(Field::Vaddr, vaddr);
        }
        if self.layout.fields[Field::Soffset as usize].width == 8 && self.random.one_in(3) {
            self.set(Field::Soffset, 128);
        }
        self.cache();
        self.modifier(Field::Tfe, 1);
        let format = match self.form {
            Form::Mubuf => 1,
            // Two 16-bit numbers, or 8 bits.
            _ if self.plain => 5,
            _ => self.random.below(128),
        };
        self.set(Field::BufFormat, format);
        if self.row.mnemonic.contains("_lds_") {
            self.set(Field::Lds, 1);
        }
    }

    /// The other half is `v_dual_mov_b32 v, v3`.
    fn vopd(&mut self) {
        for operand in self.row.operands.iter().filter(|operand| !operand.hidden) {
            let value = match (operand.slot, operand.kind) {
                (Slot::Dst, _) if self.form == Form::VopdY => self.random.below(128),
                (_, Kind::Constant) => continue,
                (_, Kind::Src) => self.source(operand),
                _ => self.random.below(256),
            };
            self.set(operand.field, value);
        }
        self.bits |= match self.form {
            Form::VopdX => 8 << 17 | u128::from(256u32 + 3) << 32 | u128::from(self.random.below(128)) << 49,
            _ => 8 << 22 | u128::from(256u32 + 3) | u128::from(self.random.below(256)) << 56,
        };
    }
}

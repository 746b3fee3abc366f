//! From [`Decoded`] to LLVM's assembly text.
//!
//! Operands are printed in the order of the table's row; the row also says how their constants look. What follows them
//! differs by format.

mod imm;
mod memory;
mod valu;

use super::layout::Form;
use super::table::{Kind, OperandRow, Row, Slot, Table, Type};
use super::{Decoded, Family, Format, Operand, Special, Target};
use std::fmt::Write;

/// What printing an instruction needs.
pub(super) struct Printer<'a> {
    pub target: Target,
    pub family: Family,
    pub table: &'static Table,
    pub form: Form,
    pub row: &'static Row,
    pub decoded: &'a Decoded,
    pub text: String,
}

/// The text that `llvm-objdump -d` of LLVM 22 prints for the instruction, with single spaces. Branches show their
/// displacement in dwords as LLVM does; `pc` does not enter the text yet.
pub fn disassemble(target: Target, decoded: &Decoded, _pc: u64) -> String {
    let mut text = half(target, decoded, false);
    if let Some(second) = &decoded.second {
        text.push_str(" :: ");
        text.push_str(&half(target, second, true));
    }
    text
}

fn half(target: Target, decoded: &Decoded, second: bool) -> String {
    let table = Table::of(target);
    let row = Form::of(decoded, second).and_then(|form| Some((form, table.form(form)?.row(decoded.opcode.into())?)));
    // Only a `Decoded` of another target has no row here.
    let Some((form, row)) = row else { return decoded.mnemonic.to_owned() };
    let text = format!("{}{}", row.mnemonic, row.suffix);
    let mut printer = Printer { target, family: target.family(), table, form, row, decoded, text };
    match decoded.format {
        Format::Smem => printer.smem(),
        Format::Ds => printer.ds(),
        Format::Flat | Format::Global | Format::Scratch => printer.flat(),
        Format::Mubuf | Format::Mtbuf => printer.buffer(),
        Format::Vop1 | Format::Vop2 | Format::Vopc | Format::Vop3 | Format::Vop3p => printer.valu(),
        _ => printer.plain(),
    }
    printer.text
}

impl Printer<'_> {
    /// Operands of the row and nothing else.
    fn plain(&mut self) {
        let mut first = true;
        for row in self.row.operands.iter().filter(|row| !row.hidden) {
            let operand = self.slot(row);
            if row.ty == Type::End && operand == Operand::Imm(0) {
                continue;
            }
            self.separator(&mut first);
            self.operand(operand, row);
        }
    }

    /// The operand that a row's slot holds.
    fn slot(&self, row: &OperandRow) -> Operand {
        match row.slot {
            Slot::Dst => self.decoded.dst,
            Slot::Dst2 => self.decoded.dst2,
            Slot::Src(index) => self.decoded.src[usize::from(index & 3)],
            Slot::Other => Operand::None,
        }
    }

    fn separator(&mut self, first: &mut bool) {
        self.text.push_str(if *first { " " } else { ", " });
        *first = false;
    }

    fn push(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.text.write_fmt(text);
    }

    /// One operand.
    fn operand(&mut self, operand: Operand, row: &OperandRow) {
        match operand {
            Operand::None => {}
            Operand::Vgpr { reg, hi, .. } if matches!(row.kind, Kind::Vgpr16 | Kind::Src16) => self.half(reg, hi),
            Operand::Vgpr { reg, dwords, .. } => self.registers('v', reg, dwords),
            Operand::Agpr { reg, dwords } => self.registers('a', reg, dwords),
            Operand::Sgpr { reg, dwords } => self.registers('s', reg.into(), dwords),
            Operand::Ttmp { reg, dwords } if dwords > 1 => {
                self.push(format_args!("ttmp[{}:{}]", reg, u32::from(reg) + u32::from(dwords) - 1));
            }
            Operand::Ttmp { reg, .. } => self.push(format_args!("ttmp{reg}")),
            Operand::Special { reg, dwords } => {
                let name = special(reg, dwords, self.family);
                self.text.push_str(name);
            }
            Operand::Int(value) => self.push(format_args!("{value}")),
            Operand::Float(selector) => self.float(selector, row.ty),
            Operand::Literal(value) if self.form == Form::Sopk => self.plain_constant(value),
            Operand::Literal(value) => self.literal(value, row.ty),
            Operand::Imm(value) => self.immediate(value, row),
            Operand::Off => self.text.push_str("off"),
        }
    }

    /// Half of a register. On GFX12 LLVM 22 shows none: high halves look like registers 128 up in the 32-bit encodings,
    /// and in VOP3 only `op_sel` tells. Two operations exist for it with halves only.
    fn half(&mut self, reg: u16, hi: bool) {
        let mnemonic = self.row.mnemonic;
        if self.family == Family::Gfx12 && mnemonic != "v_mov_b16" && mnemonic != "v_swap_b16" {
            let short = !matches!(self.decoded.format, Format::Vop3 | Format::Vop3p);
            let shown = if hi && short { reg + 128 } else { reg };
            return self.push(format_args!("v{shown}"));
        }
        self.push(format_args!("v{reg}{}", if hi { ".h" } else { ".l" }));
    }

    fn registers(&mut self, class: char, reg: u16, dwords: u8) {
        match dwords {
            0 | 1 => self.push(format_args!("{class}{reg}")),
            _ => self.push(format_args!("{class}[{reg}:{}]", u32::from(reg) + u32::from(dwords) - 1)),
        }
    }

    fn float(&mut self, selector: u8, ty: Type) {
        const TEXT: [&str; 8] = ["0.5", "-0.5", "1.0", "-1.0", "2.0", "-2.0", "4.0", "-4.0"];
        const BITS16: [u16; 9] = [0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000, 0xc000, 0x4400, 0xc400, 0x3118];
        let index = usize::from(selector.saturating_sub(240)).min(8);
        match (ty, TEXT.get(index)) {
            (Type::B16, _) => self.push(format_args!("{:#x}", BITS16[index])),
            (_, Some(text)) => self.text.push_str(text),
            (Type::F64 | Type::B64, None) => self.text.push_str("0.15915494309189532"),
            (_, None) => self.text.push_str("0.15915494"),
        }
    }

    /// The constant of `s_setreg_imm32`: printed like an inline one where there is such.
    fn plain_constant(&mut self, value: u32) {
        match (value as i32, F32.iter().position(|bits| *bits == value)) {
            (small @ -16..=64, _) => self.push(format_args!("{small}")),
            (_, Some(index)) => self.float(240 + index as u8, Type::B32),
            _ => self.push(format_args!("{value:#x}")),
        }
    }

    /// A literal; LLVM wraps one that has an inline form in `lit()`, so that reading it back gives the same bytes.
    fn literal(&mut self, value: u32, ty: Type) {
        if let (Type::F64, Some(text)) = (ty, f64_constant(value)) {
            return self.text.push_str(text);
        }
        // LLVM cuts the literals of some 16-bit types.
        let shown = match ty {
            Type::B16 | Type::F16 if !self.is_wrapped(value, ty) => value & 0xffff,
            _ => value,
        };
        if self.is_wrapped(value, ty) {
            self.push(format_args!("lit({shown:#x})"));
        } else {
            self.push(format_args!("{shown:#x}"));
        }
    }

    /// Has the literal an inline form for the type?
    fn is_wrapped(&self, value: u32, ty: Type) -> bool {
        let small = |value: i64| (-16..=64).contains(&value);
        let low = value as u16;
        let int32 = small(i64::from(value as i32));
        let int16 = small(i64::from(low as i16));
        match ty {
            // Printed as the double they are the high half of, see `f64_constant`.
            Type::F64 => false,
            Type::B64 => value <= 64,
            Type::F16 => int16 || F16.contains(&low),
            Type::Bf16 => int16 || BF16.contains(&low),
            Type::V2f16 => int32 || value >> 16 == 0 && F16.contains(&low),
            Type::V2bf16 => int32 || value >> 16 == 0 && BF16.contains(&low),
            Type::V2b16 => int32,
            // Integers of 16 bits are told from inline constants by all 32 bits.
            Type::B32 | Type::B16 => int32 || F32.contains(&value),
            _ => false,
        }
    }
}

const F16: [u16; 9] = [0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000, 0xc000, 0x4400, 0xc400, 0x3118];
const BF16: [u16; 9] = [0x3f00, 0xbf00, 0x3f80, 0xbf80, 0x4000, 0xc000, 0x4080, 0xc080, 0x3e22];
const F32: [u32; 9] = [
    0x3f00_0000,
    0xbf00_0000,
    0x3f80_0000,
    0xbf80_0000,
    0x4000_0000,
    0xc000_0000,
    0x4080_0000,
    0xc080_0000,
    0x3e22_f983,
];

/// A literal that, as the high half of a double, is one of the inline constants.
fn f64_constant(high: u32) -> Option<&'static str> {
    Some(match high {
        0 => "0",
        0x3fe0_0000 => "0.5",
        0xbfe0_0000 => "-0.5",
        0x3ff0_0000 => "1.0",
        0xbff0_0000 => "-1.0",
        0x4000_0000 => "2.0",
        0xc000_0000 => "-2.0",
        0x4010_0000 => "4.0",
        0xc010_0000 => "-4.0",
        _ => return None,
    })
}

/// Name of a special register, or of the pair that begins there.
fn special(reg: Special, dwords: u8, family: Family) -> &'static str {
    let pair = dwords > 1;
    match reg {
        Special::FlatScratchLo if family == Family::Gfx12 => "src_flat_scratch_base_lo",
        Special::FlatScratchHi if family == Family::Gfx12 => "src_flat_scratch_base_hi",
        Special::FlatScratchLo if pair => "flat_scratch",
        Special::FlatScratchLo => "flat_scratch_lo",
        Special::FlatScratchHi => "flat_scratch_hi",
        Special::XnackMaskLo if pair => "xnack_mask",
        Special::XnackMaskLo => "xnack_mask_lo",
        Special::XnackMaskHi => "xnack_mask_hi",
        Special::VccLo if pair => "vcc",
        Special::VccLo => "vcc_lo",
        Special::VccHi => "vcc_hi",
        Special::M0 => "m0",
        Special::Null => "null",
        Special::ExecLo if pair => "exec",
        Special::ExecLo => "exec_lo",
        Special::ExecHi => "exec_hi",
        Special::SharedBase => "src_shared_base",
        Special::SharedLimit => "src_shared_limit",
        Special::PrivateBase => "src_private_base",
        Special::PrivateLimit => "src_private_limit",
        Special::PopsExitingWaveId => "src_pops_exiting_wave_id",
        Special::Vccz => "src_vccz",
        Special::Execz => "src_execz",
        Special::Scc => "src_scc",
        Special::LdsDirect => "src_lds_direct",
    }
}

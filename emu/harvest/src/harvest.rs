//! Makes a table: finds the opcodes of each form, what their operands are and which modifiers they take.

use crate::fills::{Fill, fills};
use crate::mc::{Line, McError, disassemble};
use crate::names::{Name, names};
use crate::operands::row;
use crate::probes::{immediates, modifiers, types};
use crate::text::{Instruction, Token};
use emu::isa::layout::{Field, Form, Layout};
use emu::isa::{Family, Target};

/// A printed operand and where it comes from.
#[derive(Clone, Debug)]
pub struct Slot {
    /// Slot of `Decoded`: `d`, `d2`, `s0`..`s3`.
    pub slot: &'static str,
    /// Field, or a fixed register such as `vcc`.
    pub field: String,
    /// Class of the operand.
    pub kind: String,
    /// Registers.
    pub dwords: u8,
    /// How constants of it are printed.
    pub ty: String,
    /// Not printed.
    pub hidden: bool,
}

/// A row of a table.
#[derive(Clone, Debug)]
pub struct Row {
    /// Form.
    pub form: Form,
    /// Opcode.
    pub opcode: u32,
    /// Mnemonic without suffix.
    pub mnemonic: String,
    /// `_e32` and the like.
    pub suffix: &'static str,
    /// Operands in printed order.
    pub slots: Vec<Slot>,
    /// Modifier fields and the bits of them that LLVM prints.
    pub mods: Vec<(Field, u32)>,
    /// Bits in the printed `op_sel` list, or `byte`.
    pub op_sel: Option<String>,
    /// The accepted fill.
    pub fill: Fill,
    /// What LLVM printed for it.
    pub line: Line,
}

/// The rows of a target and what was odd on the way.
pub struct Harvest {
    /// Rows in order of form and opcode.
    pub rows: Vec<Row>,
    /// Names of numbers.
    pub names: Vec<Name>,
    /// Lines for a person to read.
    pub notes: Vec<String>,
}

/// Harvests a target.
pub fn harvest(target: Target) -> Result<Harvest, McError> {
    let mut rows = Vec::new();
    let mut notes = Vec::new();
    for form in Form::ALL.iter().copied() {
        let Some(layout) = Layout::of(target, form) else { continue };
        let found = accepted(target, form, &layout)?;
        let mut form_rows = Vec::with_capacity(found.len());
        for (opcode, fill, line) in found {
            match row(target, form, &layout, opcode, fill, line) {
                Ok(row) => form_rows.push(row),
                Err(note) => notes.push(note),
            }
        }
        modifiers(target, &layout, &mut form_rows)?;
        types(target, &layout, &mut form_rows)?;
        immediates(target, &layout, &mut form_rows)?;
        rows.extend(form_rows);
    }
    let names = names(target, &rows)?;
    Ok(Harvest { rows, names, notes })
}

/// Opcodes that are not another format's.
fn opcodes(target: Target, form: Form, layout: &Layout) -> std::ops::Range<u32> {
    let gfx9 = target.family() == Family::Gfx9;
    match form.base() {
        Form::Sop2 => 0..0x60,
        Form::Sopk => 0..0x1d,
        Form::Vop2 => 0..62,
        Form::Vop3 if gfx9 => 0..0x380,
        Form::Mubuf if target.family() == Family::Gfx12 => 0..0x80,
        _ => 0..1 << (layout.op.width + layout.op_hi.width),
    }
}

/// Matrix instructions, which have modifiers of their own.
pub fn is_mai(mnemonic: &str) -> bool {
    ["v_mfma", "v_smfmac", "v_accvgpr"].iter().any(|prefix| mnemonic.starts_with(prefix))
}

/// For each opcode the first fill that LLVM takes.
fn accepted(target: Target, form: Form, layout: &Layout) -> Result<Vec<(u32, Fill, Line)>, McError> {
    let mut pending: Vec<(u32, std::vec::IntoIter<Fill>)> =
        opcodes(target, form, layout).map(|opcode| (opcode, fills(target, form, layout, opcode).into_iter())).collect();
    let mut found: Vec<(u32, Fill, Line)> = Vec::new();
    while !pending.is_empty() {
        let mut round = Vec::new();
        let mut rest = Vec::new();
        for (opcode, mut fills) in pending {
            if let Some(fill) = fills.next() {
                round.push((opcode, fill));
                rest.push((opcode, fills));
            }
        }
        let bytes: Vec<Vec<u8>> = round.iter().map(|(_, fill)| fill.bytes()).collect();
        let lines = disassemble(target, &bytes)?;
        pending = Vec::new();
        for (((opcode, fill), line), fills) in round.into_iter().zip(lines).zip(rest) {
            match line.filter(|line| plausible(target, form, layout, &fill, line)) {
                Some(line) => found.push((opcode, fill, line)),
                None => pending.push(fills),
            }
        }
    }
    found.sort_by_key(|(opcode, ..)| *opcode);
    Ok(found)
}

/// Is the line of this form, and with the fill it is best shown with?
fn plausible(target: Target, form: Form, layout: &Layout, fill: &Fill, line: &Line) -> bool {
    let has_literal = line.len == usize::from(layout.len) + 4;
    if line.len != usize::from(layout.len) && !has_literal {
        return false;
    }
    let instruction = Instruction::parse(&line.text);
    // Packed fills set the bits that are accumulation bits in a matrix instruction.
    if target.family() == Family::Gfx9
        && form == Form::Vop3p
        && (instruction.mnemonic.starts_with("v_mfma") || instruction.mnemonic.starts_with("v_smfmac"))
        && layout.get(Field::OpSelHi, fill.bits) != 0
    {
        return false;
    }
    // A cache bit in the fill is there for atomics.
    let cache = layout.get(Field::Glc, fill.bits) | layout.get(Field::Th, fill.bits);
    let memory = matches!(form, Form::Flat | Form::Global | Form::Scratch | Form::Mubuf | Form::Mtbuf | Form::Smem);
    if memory && cache != 0 && !instruction.mnemonic.contains("atomic") {
        return false;
    }
    // Attribute interpolation is not for compute.
    if instruction.mnemonic.starts_with("v_interp") {
        return false;
    }
    !instruction.operands.iter().any(|token| matches!(token, Token::Other(text) if text.contains("nvalid")))
}

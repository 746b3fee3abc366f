//! Names of numbers: hardware registers, messages, formats, cache policies.

use crate::fills::Fill;
use crate::harvest::Row;
use crate::mc::{McError, disassemble};
use crate::text::Instruction;
use emu::isa::layout::{Field, Form, Layout};
use emu::isa::{Family, Target};

/// A value with a name.
#[derive(Clone, Debug)]
pub struct Name {
    /// `hwreg`, `sendmsg`, `sendmsg_rtn`.
    pub group: &'static str,
    /// Number.
    pub value: u32,
    /// Name, or the whole text for messages.
    pub text: String,
}

/// Names of hardware registers and messages.
pub fn names(target: Target, rows: &[Row]) -> Result<Vec<Name>, McError> {
    let row = |mnemonic: &str| rows.iter().find(|row| row.mnemonic == mnemonic);
    let mut names = Vec::new();
    let mut add = |group: &'static str, mnemonic: &str, values: &[(u32, u32)]| -> Result<(), McError> {
        let Some(row) = row(mnemonic) else { return Ok(()) };
        // simm16 and ssrc0 both begin at bit 0.
        let mask = if row.form == Form::Sop1 { 0xffu128 } else { 0xffff };
        let bytes: Vec<Vec<u8>> = values
            .iter()
            .map(|(_, field)| Fill { bits: row.fill.bits & !mask | u128::from(*field), ..row.fill.clone() }.bytes())
            .collect();
        for ((value, _), line) in values.iter().zip(disassemble(target, &bytes)?) {
            let Some(line) = line else { continue };
            let Some((start, end)) = line.text.find('(').zip(line.text.rfind(')')) else { continue };
            let text = &line.text[start + 1..end];
            if text.starts_with(|char: char| char.is_ascii_alphabetic()) {
                names.push(Name { group, value: *value, text: text.replace(", ", ",") });
            }
        }
        Ok(())
    };
    let hwregs: Vec<(u32, u32)> = (0..64).map(|id| (id, id | 31 << 11)).collect();
    add("hwreg", "s_getreg_b32", &hwregs)?;
    let limit = if target.family() <= Family::Gfx10 { 1024 } else { 256 };
    // Bit 7 lies between operation and stream.
    let has_gap = target.family() <= Family::Gfx10;
    let messages: Vec<(u32, u32)> = (0..limit).filter(|id| !has_gap || id & 0x80 == 0).map(|id| (id, id)).collect();
    add("sendmsg", "s_sendmsg", &messages)?;
    let messages: Vec<(u32, u32)> = (0..256).map(|id| (id, id)).collect();
    add("sendmsg_rtn", "s_sendmsg_rtn_b32", &messages)?;
    names.extend(printed(target, rows, "format", Form::Mtbuf, "tbuffer_load_format_x", &[Field::BufFormat])?);
    if target.family() == Family::Gfx12 {
        let policy = [Field::Th, Field::Scope];
        names.extend(printed(target, rows, "th_load", Form::Global, "global_load_b32", &policy)?);
        names.extend(printed(target, rows, "th_store", Form::Global, "global_store_b32", &policy)?);
        names.extend(printed(target, rows, "th_atomic", Form::Global, "global_atomic_add_u32", &policy)?);
        names.extend(printed(target, rows, "th_scalar", Form::Smem, "s_load_b32", &policy)?);
    }
    Ok(names)
}

/// The modifiers that LLVM prints for each value of a field, or of several (the first in the low bits; the second from
/// bit 3 whatever the first's width).
fn printed(
    target: Target,
    rows: &[Row],
    group: &'static str,
    form: Form,
    mnemonic: &str,
    fields: &[Field],
) -> Result<Vec<Name>, McError> {
    let Some(layout) = Layout::of(target, form) else { return Ok(Vec::new()) };
    let Some(row) = rows.iter().find(|row| row.form == form && row.mnemonic == mnemonic) else { return Ok(Vec::new()) };
    // An atomic that returns nothing must have no destination.
    let mut values = vec![(0u32, layout.fields[Field::Vdst as usize].set(row.fill.bits, 0))];
    for (index, field) in fields.iter().enumerate() {
        let pos = layout.fields[*field as usize];
        values = (0..1u32 << pos.width)
            .flat_map(|value| {
                values.iter().map(move |(number, bits)| (number | value << (3 * index as u32), pos.set(*bits, value)))
            })
            .collect();
    }
    values.sort_unstable();
    let bytes: Vec<Vec<u8>> = values.iter().map(|(_, bits)| Fill { bits: *bits, ..row.fill.clone() }.bytes()).collect();
    let keep = |modifier: &&String| ["format:", "th:", "scope:"].iter().any(|prefix| modifier.starts_with(prefix));
    let mut names = Vec::new();
    for ((value, _), line) in values.into_iter().zip(disassemble(target, &bytes)?) {
        let Some(line) = line else { continue };
        let modifiers: Vec<String> = Instruction::parse(&line.text).modifiers.iter().filter(keep).cloned().collect();
        if !modifiers.is_empty() {
            names.push(Name { group, value, text: modifiers.join(" ") });
        }
    }
    Ok(names)
}

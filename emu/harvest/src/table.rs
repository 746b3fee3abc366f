//! Writes tables.

use crate::harvest::{Harvest, Row, Slot};
use emu::isa::Target;
use emu::isa::layout::{Field, Form};
use std::fmt::Write;

/// The table's text: a header, the column names, a row a line.
pub fn write(target: Target, version: &str, harvest: &Harvest) -> String {
    let mut text = format!("# {target}, harvested from llvm-mc {version} by kfdrun-harvest\n");
    text.push_str("# form\topcode\tmnemonic\tsuffix\toperands\tmodifiers\n");
    for row in &harvest.rows {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", line(row));
    }
    for name in &harvest.names {
        let _ = writeln!(text, "{}\t{:#x}\t{}\t-\t-\t-", name.group, name.value, name.text);
    }
    text
}

fn line(row: &Row) -> String {
    let slots: Vec<String> = row.slots.iter().map(slot).collect();
    let count = |field: Field| match &row.op_sel {
        Some(count) if field == Field::OpSel => format!("*{count}"),
        _ => String::new(),
    };
    let mods: Vec<String> =
        row.mods.iter().map(|(field, mask)| format!("{}:{mask:x}{}", field.name(), count(*field))).collect();
    let or_dash = |text: String| if text.is_empty() { "-".to_owned() } else { text };
    format!(
        "{}\t{:#x}\t{}\t{}\t{}\t{}",
        row.form.name(),
        row.opcode,
        row.mnemonic,
        or_dash(row.suffix.to_owned()),
        or_dash(slots.join(" ")),
        or_dash(mods.join(" ")),
    )
}

fn slot(slot: &Slot) -> String {
    let hidden = if slot.hidden { "~" } else { "" };
    let mut text = format!("{hidden}{}={}:{}:{}", slot.slot, slot.field, slot.kind, slot.dwords);
    if !slot.ty.is_empty() {
        text.push(':');
        text.push_str(&slot.ty);
    }
    text
}

/// Opcodes by form, for the summary line.
pub fn counts(harvest: &Harvest) -> String {
    let count = |form: Form| harvest.rows.iter().filter(|row| row.form == form).count();
    let counts: Vec<String> = Form::ALL
        .iter()
        .copied()
        .filter(|form| count(*form) != 0)
        .map(|form| format!("{} {}", form.name(), count(form)))
        .collect();
    counts.join(", ")
}

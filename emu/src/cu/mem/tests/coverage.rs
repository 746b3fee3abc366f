//! Which memory instructions of the decode tables are executed.

use super::*;
use crate::isa::layout::Form;
use crate::isa::table::{Kind, Row, Slot, Table};
use std::collections::BTreeMap;

/// An instruction of a row: each operand in registers of its own.
fn sample(form: Form, format: Format, row: &Row) -> Decoded {
    let mut decoded = inst::<0>(format, row.mnemonic, Operand::None, []);
    for operand in &row.operands {
        let registers = |number: u8| match operand.kind {
            Kind::Scalar | Kind::Src => s(16 * number, operand.dwords),
            _ => v(8 * number as u16, operand.dwords),
        };
        match operand.slot {
            Slot::Dst => decoded.dst = registers(3),
            Slot::Dst2 => decoded.dst2 = registers(2),
            Slot::Src(number) => decoded.src[usize::from(number)] = registers(number),
            Slot::Other => {}
        }
    }
    if form == Form::Mtbuf {
        decoded.mods.format = 5;
    }
    decoded
}

/// The instructions that are refused, by target. What is in the list is meant to be: it is not emitted for compute, or
/// needs a part of the machine that is not emulated.
#[test]
fn refused_instructions() {
    let mut counts = String::new();
    let mut refused: BTreeMap<(&str, String), Vec<&str>> = BTreeMap::new();
    for target in Target::ALL {
        let table = Table::of(target);
        let mut executed = 0;
        let mut rig = Rig::new(target, 64);
        for (form, format) in [
            (Form::Smem, Format::Smem),
            (Form::Flat, Format::Flat),
            (Form::Global, Format::Global),
            (Form::Scratch, Format::Scratch),
            (Form::Mubuf, Format::Mubuf),
            (Form::Mtbuf, Format::Mtbuf),
            (Form::Ds, Format::Ds),
        ] {
            for (_, row) in table.form(form).into_iter().flat_map(|table| table.rows()) {
                match rig.lower(&sample(form, format, row)) {
                    Ok(_) => executed += 1,
                    Err(reason) => refused.entry((row.mnemonic, reason.to_string())).or_default().push(target.name()),
                }
            }
        }
        counts += &format!("{target}: {executed} executed\n");
    }
    let mut text = counts;
    for ((mnemonic, reason), targets) in refused {
        text += &format!("{mnemonic}: {reason} ({})\n", targets.join(" "));
    }
    insta::assert_snapshot!(text);
}

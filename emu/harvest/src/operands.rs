//! From LLVM's text to a row: which field each printed operand came from, and which slot it goes to.

use crate::fills::Fill;
use crate::harvest::{Row, Slot};
use crate::mc::Line;
use crate::text::{Instruction, Token};
use emu::isa::layout::{Field, Form, Layout};
use emu::isa::{Family, Target};

/// Makes a row of an accepted fill. An operand that is in none of the form's fields is an error, as text for a person.
pub fn row(target: Target, form: Form, layout: &Layout, opcode: u32, fill: Fill, line: Line) -> Result<Row, String> {
    let parts: Vec<&str> = line.text.split(" :: ").collect();
    let text = if form == Form::VopdY { parts.last() } else { parts.first() };
    let instruction = Instruction::parse(text.copied().unwrap_or_default());
    let (mnemonic, suffix) = split_suffix(&instruction.mnemonic);
    let mut slots: Vec<Slot> = Vec::new();
    for (index, token) in instruction.operands.iter().enumerate() {
        let slot = place(form, layout, &fill, token, index, &slots)
            .ok_or_else(|| format!("{target} {} {opcode:#x}: operand {index} of `{}`", form.name(), line.text))?;
        slots.push(slot);
    }
    assign(target, form, mnemonic, &mut slots);
    let mnemonic = mnemonic.to_owned();
    Ok(Row { form, opcode, mnemonic, suffix, slots, mods: Vec::new(), op_sel: None, fill, line })
}

/// Suffixes that name an encoding, longest first.
const SUFFIXES: [&str; 5] = ["_e64_dpp", "_e32", "_e64", "_dpp", "_sdwa"];

fn split_suffix(mnemonic: &str) -> (&str, &'static str) {
    for suffix in SUFFIXES {
        if let Some(name) = mnemonic.strip_suffix(suffix) {
            return (name, suffix);
        }
    }
    (mnemonic, "")
}

/// Finds the field of a printed operand.
fn place(form: Form, layout: &Layout, fill: &Fill, token: &Token, index: usize, before: &[Slot]) -> Option<Slot> {
    let slot = |field: String, kind: &str, dwords| {
        Some(Slot { slot: "", field, kind: kind.to_owned(), dwords, ty: String::new(), hidden: false })
    };
    match token {
        Token::Register { class, number, dwords, half } => {
            let mut fields: Vec<Field> =
                fill.numbers.iter().filter(|(_, register)| register == number).map(|(field, _)| *field).collect();
            if fields.len() > 1 && fields.contains(&Field::Vdst) {
                fields.retain(|field| *field != Field::Vdst || index == 0);
            }
            // Register 0 is a scalar destination of VOP3; elsewhere it is a field left at zero, which tells nothing.
            fields.retain(|field| *field != Field::Sdst || form.base() != Form::Vop3 || index < 2);
            let field = *fields.first()?;
            let width = layout.fields[field as usize].width;
            let kind = match (class, half) {
                (_, true) if width == 9 => "src16",
                (_, true) => "v16",
                ('v' | 's', _) if width == 9 => "src",
                ('v', _) => "v",
                ('a', _) if width == 9 => "asrc",
                ('a', _) => "a",
                ('s', _) => "s",
                _ => return None,
            };
            slot(field.name().to_owned(), kind, *dwords)
        }
        // The address registers of memory instructions are fields that hold `off` or `null` in the fills.
        Token::Special(name) if name == "off" && matches!(form, Form::Flat | Form::Global | Form::Scratch) => {
            let field = if before.iter().any(|slot| slot.field == "vaddr") || index > 1 { "saddr" } else { "vaddr" };
            let field =
                if form == Form::Scratch || layout.get(Field::Vaddr, fill.bits) == 24 { field } else { "saddr" };
            let dwords = if form == Form::Scratch || field == "vaddr" { 1 } else { 2 };
            slot(field.to_owned(), if field == "saddr" { "s" } else { "v" }, dwords)
        }
        Token::Special(_) if form == Form::Smem => slot("soffset".to_owned(), "s", 1),
        Token::Special(name) => slot(name.clone(), "fixed", if name == "vcc" || name == "exec" { 2 } else { 1 }),
        // The only constants the fills hold: simm16, the inline constant 1, SMEM's offset and a literal of zeros.
        Token::Constant(text) => {
            if form == Form::Sopk && before.iter().any(|slot| slot.field == "simm16") {
                return slot("k".to_owned(), "k", 1);
            }
            if layout.has(Field::Simm16) && !before.iter().any(|slot| slot.field == "simm16") {
                return slot("simm16".to_owned(), "imm", 1);
            }
            if form == Form::Smem {
                return match text.starts_with("0x") {
                    false => slot("sdata".to_owned(), "imm", 1),
                    true => slot("offset".to_owned(), "offset", 0),
                };
            }
            let one = [Field::Src1, Field::Src2].into_iter().find(|field| {
                layout.get(*field, fill.bits) == 129 && !before.iter().any(|slot| slot.field == field.name())
            });
            match one {
                Some(field) if text == "1" => slot(field.name().to_owned(), "src", 1),
                // `s_set_gpr_idx_on`: the second source field is an immediate.
                None if form == Form::Sopc && text == "0x48" => slot("src1".to_owned(), "imm", 1),
                _ if text == "0x0" => slot("k".to_owned(), "k", 1),
                _ => None,
            }
        }
        Token::Other(text) if text == "lit(0x0)" => slot("k".to_owned(), "k", 1),
        Token::Other(_) if layout.has(Field::Simm16) => slot("simm16".to_owned(), "imm", 1),
        Token::Other(text) if text.starts_with("sendmsg") => slot("src0".to_owned(), "msg", 1),
        Token::Other(_) => None,
    }
}

/// Gives the operands their slots, by form and position.
fn assign(target: Target, form: Form, mnemonic: &str, slots: &mut Vec<Slot>) {
    let hidden = |slot, field: &str, kind: &str, dwords| Slot {
        slot,
        field: field.to_owned(),
        kind: kind.to_owned(),
        dwords,
        ty: String::new(),
        hidden: true,
    };
    const SOURCES: [&str; 4] = ["s0", "s1", "s2", "s3"];
    match form.base() {
        Form::Sop1 | Form::Sop2 | Form::Sopc | Form::Sopk | Form::Sopp => {
            let mut sources = SOURCES.iter();
            for slot in slots.iter_mut() {
                slot.slot = match slot.field.as_str() {
                    "sdst" => "d",
                    _ => sources.next().unwrap_or(&"s3"),
                };
            }
        }
        Form::Smem => {
            for slot in slots.iter_mut() {
                slot.slot = match slot.field.as_str() {
                    "sdata" if slot.kind == "imm" || mnemonic.contains("store") || mnemonic.contains("atomic") => "s2",
                    "sdata" => "d",
                    "sbase" => "s0",
                    "offset" => "o",
                    _ => "s1",
                };
            }
        }
        Form::Ds => {
            for slot in slots.iter_mut() {
                slot.slot = match slot.field.as_str() {
                    "vdst" => "d",
                    "addr" => "s0",
                    "data0" => "s1",
                    _ => "s2",
                };
            }
        }
        Form::Flat | Form::Global | Form::Scratch => {
            for slot in slots.iter_mut() {
                slot.slot = match slot.field.as_str() {
                    "vdst" => "d",
                    "vaddr" => "s0",
                    "vdata" => "s1",
                    _ => "s2",
                };
            }
        }
        Form::Mubuf | Form::Mtbuf => {
            for slot in slots.iter_mut() {
                slot.slot = match slot.field.as_str() {
                    "vdata" if mnemonic.contains("store") || mnemonic.contains("atomic") => "s1",
                    "vdata" => "d",
                    "vaddr" => "s0",
                    "srsrc" => "s2",
                    _ => "s3",
                };
            }
        }
        Form::Vopc | Form::Vop1 | Form::Vop2 | Form::Vop3 | Form::Vop3p | Form::VopdX | Form::VopdY => {
            let mut next = 0;
            for (index, slot) in slots.iter_mut().enumerate() {
                let destination = slot.field == "vdst" || slot.field == "sdst" || slot.kind == "fixed";
                slot.slot = match index {
                    0 if destination => "d",
                    1 if slot.field == "sdst" || slot.field.starts_with("vcc") => "d2",
                    _ => {
                        next += 1;
                        SOURCES.get(next - 1).copied().unwrap_or("s3")
                    }
                };
            }
            let wide = slots.iter().find(|slot| slot.slot == "d").map_or(1, |slot| slot.dwords);
            let kind = slots.iter().find(|slot| slot.slot == "d").map_or(String::new(), |slot| slot.kind.clone());
            // LLVM takes RDNA for wave32 where nothing says otherwise.
            let lane_mask = if target.family() == Family::Gfx9 { 2 } else { 1 };
            let mask = if target.family() == Family::Gfx9 { "vcc" } else { "vcc_lo" };
            if mnemonic.starts_with("v_cmpx") && !slots.iter().any(|slot| slot.slot == "d") {
                let exec = if target.family() == Family::Gfx9 { "exec" } else { "exec_lo" };
                slots.push(hidden("d", exec, "fixed", lane_mask));
            } else if mnemonic.starts_with("v_cmp") && !slots.iter().any(|slot| slot.slot == "d") {
                slots.push(hidden("d", mask, "fixed", lane_mask));
            }
            let tied = ["v_mac_", "v_fmac_", "v_dual_fmac_", "v_dot2c_", "v_dot4c_", "v_dot8c_", "v_pk_fmac_"]
                .iter()
                .any(|prefix| mnemonic.starts_with(prefix))
                || ["v_dual_dot2acc_f32_f16", "v_dual_dot2acc_f32_bf16", "v_dot2acc_f32_f16"].contains(&mnemonic);
            if tied && next == 2 {
                slots.push(hidden("s2", "vdst", &kind, wide));
            }
            if mnemonic == "v_swap_b32" || mnemonic == "v_swap_b16" {
                slots.push(hidden("s1", "vdst", &kind, wide));
            }
            if mnemonic.starts_with("v_div_fmas") {
                slots.push(hidden("s3", mask, "fixed", lane_mask));
            }
            if mnemonic.starts_with("v_dual_cndmask") && next == 2 {
                slots.push(hidden("s2", mask, "fixed", lane_mask));
            }
        }
        _ => {}
    }
}

//! Changes an accepted encoding bit by bit, to see what its modifiers and constants do.

use crate::fills::Fill;
use crate::harvest::{Row, is_mai};
use crate::mc::{Line, McError, disassemble};
use crate::text::Instruction;
use emu::isa::layout::{Extension, Field, Form, Layout};
use emu::isa::{Family, Target};
use std::collections::BTreeMap;

/// Modifier fields to try, those that share bits apart.
fn modifier_fields(target: Target, row: &Row) -> Vec<Field> {
    let has_sdst = row.slots.iter().any(|slot| slot.field == "sdst");
    let mai = target.family() == Family::Gfx9 && row.form == Form::Vop3p && is_mai(&row.mnemonic);
    let mut fields = Vec::new();
    match row.form.base() {
        Form::Vop3 => {
            if !has_sdst {
                fields.extend([Field::Abs, Field::OpSel]);
            }
            fields.extend([Field::Neg, Field::Omod, Field::Clamp]);
        }
        Form::Vop3p if mai => fields.extend([Field::Cbsz, Field::Abid, Field::Blgp, Field::Acc, Field::AccCd]),
        Form::Vop3p => {
            fields.extend([Field::Neg, Field::NegHi, Field::OpSel, Field::OpSelHi, Field::OpSelHi2, Field::Clamp]);
        }
        Form::Smem | Form::Flat | Form::Global | Form::Scratch | Form::Mubuf | Form::Mtbuf | Form::Ds => {
            fields.extend([
                Field::AccCd,
                Field::Glc,
                Field::Slc,
                Field::Dlc,
                Field::Scc,
                Field::Th,
                Field::Scope,
                Field::Gds,
                Field::Lds,
                Field::Tfe,
                Field::Offset,
                Field::Offset1,
            ])
        }
        _ => {}
    }
    match row.form.extension() {
        Extension::None => {}
        Extension::Dpp16 => fields.extend([Field::Fi, Field::BoundCtrl]),
        Extension::Dpp8 => {}
        Extension::Sdwa => fields.extend([
            Field::DstSel,
            Field::DstUnused,
            Field::Clamp,
            Field::Omod,
            Field::Src0Sel,
            Field::Src0Sext,
            Field::Src1Sel,
            Field::Src1Sext,
        ]),
    }
    if row.form.extension() != Extension::None && !matches!(row.form.base(), Form::Vop3 | Form::Vop3p) {
        fields.extend([Field::Src0Neg, Field::Src0Abs, Field::Src1Neg, Field::Src1Abs]);
    }
    fields
}

/// Flips each modifier bit and keeps those that change the text.
pub fn modifiers(target: Target, layout: &Layout, rows: &mut [Row]) -> Result<(), McError> {
    let mut flips = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        for field in modifier_fields(target, row) {
            let pos = layout.fields[field as usize];
            if matches!(field, Field::DstSel | Field::Src0Sel | Field::Src1Sel) && pos.width != 0 {
                // Selection 7 makes llvm-mc crash.
                let bits = pos.set(row.fill.bits, 5);
                flips.push((index, field, 7, Fill { bits, ..row.fill.clone() }));
                continue;
            }
            for bit in 0..u32::from(pos.width) {
                let bits = row.fill.bits ^ 1u128 << (u32::from(pos.lo) + bit);
                flips.push((index, field, 1 << bit, Fill { bits, ..row.fill.clone() }));
            }
        }
    }
    let bytes: Vec<Vec<u8>> = flips.iter().map(|(_, _, _, fill)| fill.bytes()).collect();
    let lines = disassemble(target, &bytes)?;
    for ((index, field, bits, _), line) in flips.into_iter().zip(lines) {
        let Some(line) = line else { continue };
        let row = &mut rows[index];
        if line.text == row.line.text || line.len != row.line.len {
            continue;
        }
        if field == Field::OpSel && row.form.base() == Form::Vop3 {
            let modifiers = Instruction::parse(&line.text).modifiers;
            let list = modifiers.iter().find_map(|modifier| modifier.strip_prefix("op_sel:"));
            if modifiers.iter().any(|modifier| modifier.starts_with("byte_sel:")) {
                row.op_sel = Some("byte".to_owned());
            } else if let Some(list) = list {
                row.op_sel = Some(list.split(',').count().to_string());
            }
        }
        match row.mods.iter_mut().find(|(known, _)| *known == field) {
            Some((_, mask)) => *mask |= bits,
            None => row.mods.push((field, bits)),
        }
        // An accumulation bit turns v operands into a operands: those are the ones it decides about.
        if matches!(field, Field::Acc | Field::AccCd) {
            let before = Instruction::parse(&row.line.text);
            let after = Instruction::parse(&line.text);
            let printed: Vec<usize> = (0..row.slots.len()).filter(|slot| !row.slots[*slot].hidden).collect();
            for (slot, (old, new)) in printed.into_iter().zip(before.operands.iter().zip(&after.operands)) {
                if old != new {
                    let by_c = field == Field::AccCd;
                    let wide = row.slots[slot].kind == "src" || row.slots[slot].kind == "asrc";
                    row.slots[slot].kind = match (wide, by_c) {
                        (true, true) => "src_c",
                        (true, false) => "src_acc",
                        (false, _) => "v_c",
                    }
                    .to_owned();
                }
            }
        }
    }
    Ok(())
}

/// Selectors and literals that show how constants of an operand are printed.
const PROBES: [(u32, Option<u32>); 9] = [
    (248, None),
    (240, None),
    (193, None),
    (255, Some(0x3f00_0000)),
    (255, Some(0x3800)),
    (255, Some(0x3f00)),
    (255, Some(0x3fe0_0000)),
    (255, Some(0xffff_ffff)),
    (255, Some(0xffff)),
];

/// Finds the types of the rows' constant operands.
pub fn types(target: Target, layout: &Layout, rows: &mut [Row]) -> Result<(), McError> {
    let mut probes = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        for (slot, operand) in row.slots.iter().enumerate() {
            let Some(field) = [Field::Src0, Field::Src1, Field::Src2]
                .into_iter()
                .find(|field| field.name() == operand.field && layout.fields[*field as usize].width >= 8)
            else {
                continue;
            };
            // Literals for these make llvm-mc crash.
            if row.mnemonic.contains("_barrier_") {
                continue;
            }
            if is_mai(&row.mnemonic) && field != Field::Src2 {
                continue;
            }
            if operand.kind == "msg" || operand.kind == "imm" {
                continue;
            }
            if operand.hidden || row.form.extension() != Extension::None && field == Field::Src0 {
                continue;
            }
            let pos = layout.fields[field as usize];
            if pos.width == 8 && !matches!(row.form, Form::Sop1 | Form::Sop2 | Form::Sopc) {
                continue;
            }
            for (probe, (selector, literal)) in PROBES.into_iter().enumerate() {
                let mut bits = pos.set(row.fill.bits, selector);
                if let Some(literal) = literal {
                    // GFX9's VOP3 takes none, and asking makes llvm-mc crash.
                    if target.family() == Family::Gfx9 && matches!(row.form, Form::Vop3 | Form::Vop3p) {
                        continue;
                    }
                    let at = u32::from(layout.len) * 8;
                    bits = bits & !(0xffff_ffffu128 << at) | u128::from(literal) << at;
                }
                probes.push((index, slot, probe, Fill { bits, ..row.fill.clone() }));
            }
        }
    }
    let bytes: Vec<Vec<u8>> = probes.iter().map(|(.., fill)| fill.bytes()).collect();
    let lines = disassemble(target, &bytes)?;
    let mut shown: BTreeMap<(usize, usize), Vec<String>> = BTreeMap::new();
    for ((index, slot, ..), line) in probes.into_iter().zip(lines) {
        let row = &rows[index];
        let printed = row.slots[..slot].iter().filter(|slot| !slot.hidden).count();
        let text = line.map_or("-".to_owned(), |line| {
            let y = row.form == Form::VopdY;
            let part = if y { line.text.split(" :: ").last() } else { line.text.split(" :: ").next() };
            let part = Instruction::parse(part.unwrap_or_default());
            part.raw.get(printed).cloned().unwrap_or("?".to_owned())
        });
        shown.entry((index, slot)).or_default().push(text);
    }
    for ((index, slot), shown) in shown {
        rows[index].slots[slot].ty = type_name(&shown).to_owned();
    }
    Ok(())
}

/// The type that a constant operand is printed as, from what the probes showed (`-`: refused).
fn type_name(shown: &[String]) -> &'static str {
    let shown = |index: usize| shown.get(index).map_or("-", String::as_str);
    let is_literal = |index: usize| shown(index).starts_with("lit(");
    match shown(0) {
        // 1/(2*pi) in full: 64 bits. A literal that is a double's high half turns into that double.
        "0.15915494309189532" if shown(6) == "-" => "f64",
        "0.15915494309189532" => "b64",
        "0.15915494" => match (is_literal(3), is_literal(4), is_literal(5)) {
            // Most operands of 16-bit types cut literals, so that the encoding LLVM shows differs from the probe.
            (false, true, _) if shown(3) == "-" => "f16",
            (false, _, true) if shown(3) == "-" => "bf16",
            (true, true, _) => "f16",
            (true, false, true) => "bf16",
            (true, ..) => "b32",
            (false, true, _) => "v2f16",
            (false, false, true) => "v2bf16",
            _ if shown(3) == "-" => "b32",
            _ => "v2b16",
        },
        // Float constants of 16-bit integers are printed as their bits.
        "-" if shown(2) == "-1" => "b16",
        _ => "reg",
    }
}

/// How an immediate is printed, from its text for 0 and 0x50.
pub fn immediates(target: Target, layout: &Layout, rows: &mut [Row]) -> Result<(), McError> {
    let mut probes = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        for (slot, operand) in row.slots.iter().enumerate().filter(|(_, operand)| operand.kind == "imm") {
            let Some(field) = Field::from_name(&operand.field) else { continue };
            for value in [0, 0x50] {
                let bits = layout.fields[field as usize].set(row.fill.bits, value);
                probes.push((index, slot, Fill { bits, ..row.fill.clone() }));
            }
        }
    }
    let bytes: Vec<Vec<u8>> = probes.iter().map(|(.., fill)| fill.bytes()).collect();
    let lines = disassemble(target, &bytes)?;
    let text = |line: &Option<Line>, slot: usize| {
        let instruction = line.as_ref().map(|line| Instruction::parse(&line.text));
        instruction.and_then(|instruction| instruction.raw.get(slot).cloned()).unwrap_or_default()
    };
    for (pair, lines) in probes.chunks(2).zip(lines.chunks(2)) {
        let [(index, slot, _), _] = pair else { continue };
        let [zero, fifty] = lines else { continue };
        let (zero, fifty) = (text(zero, *slot), text(fifty, *slot));
        let mnemonic = rows[*index].mnemonic.as_str();
        let ty = match mnemonic {
            "s_delay_alu" => "delay",
            "s_waitcnt_depctr" | "s_wait_alu" => "depctr",
            "s_version" => "version",
            "s_set_gpr_idx_on" | "s_set_gpr_idx_mode" => "gpr_idx",
            "s_endpgm" => "end",
            "s_waitcnt" => "waitcnt",
            "s_sendmsg" | "s_sendmsghalt" => "sendmsg",
            _ if fifty.starts_with("hwreg(") || zero.starts_with("hwreg(") => "hwreg",
            _ if fifty == "80" => "dec",
            _ if zero == "0x0" => "hex",
            _ => "u16",
        };
        rows[*index].slots[*slot].ty = ty.to_owned();
    }
    Ok(())
}

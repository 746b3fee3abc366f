//! Makes a table: finds the opcodes of each form, what their operands are and which modifiers they take.

use crate::fills::{Fill, fills};
use crate::mc::{Line, McError, disassemble};
use crate::text::{Instruction, Token};
use emu::isa::layout::{Extension, Field, Form, Layout};
use emu::isa::{Family, Target};
use std::collections::BTreeMap;

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
        let mut form_rows: Vec<Row> = found
            .into_iter()
            .map(|(opcode, fill, line)| row(target, form, &layout, opcode, fill, line, &mut notes))
            .collect();
        modifiers(target, form, &layout, &mut form_rows)?;
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

fn is_mai(mnemonic: &str) -> bool {
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

fn row(
    target: Target,
    form: Form,
    layout: &Layout,
    opcode: u32,
    fill: Fill,
    line: Line,
    notes: &mut Vec<String>,
) -> Row {
    let parts: Vec<&str> = line.text.split(" :: ").collect();
    let text = if form == Form::VopdY { parts.last() } else { parts.first() };
    let instruction = Instruction::parse(text.copied().unwrap_or_default());
    let (mnemonic, suffix) = split_suffix(&instruction.mnemonic);
    let mut slots = Vec::new();
    for (index, token) in instruction.operands.iter().enumerate() {
        match place(form, layout, &fill, token, index, slots.as_slice()) {
            Some(slot) => slots.push(slot),
            None => notes.push(format!("{target} {} {opcode:#x} operand {index} of: {}", form.name(), line.text)),
        }
    }
    assign(target, form, mnemonic, &mut slots);
    Row {
        form,
        opcode,
        mnemonic: mnemonic.to_owned(),
        suffix,
        slots,
        mods: Vec::new(),
        op_sel: None,
        fill,
        line: line.clone(),
    }
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
fn modifiers(target: Target, _form: Form, layout: &Layout, rows: &mut [Row]) -> Result<(), McError> {
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

fn types(target: Target, layout: &Layout, rows: &mut [Row]) -> Result<(), McError> {
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
fn immediates(target: Target, layout: &Layout, rows: &mut [Row]) -> Result<(), McError> {
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
    let messages: Vec<(u32, u32)> = (0..limit).map(|id| (id, id)).collect();
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

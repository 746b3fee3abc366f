//! Decode tables: text in `tables/`, parsed once into arrays indexed by opcode.
//!
//! See `docs/isa-tables.md` for the columns.

use super::layout::{Field, Form, Layout};
use super::{Special, Target};
use std::collections::HashMap;
use std::sync::OnceLock;

/// Slot of a [`super::Decoded`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Slot {
    Dst,
    Dst2,
    Src(u8),
    /// Printed, but kept among the modifiers (SMEM's offset).
    Other,
}

/// Class of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// VGPR.
    Vgpr,
    /// VGPR half: in the 32-bit encodings bit 7 of the field selects the half, elsewhere `op_sel` does.
    Vgpr16,
    /// AccVGPR.
    Agpr,
    /// VGPR, or AccVGPR where the instruction's `acc` bit for C and D, or for memory data, says so.
    VgprOrAcc,
    /// 9-bit selector.
    Src,
    /// 9-bit selector of a 16-bit operand, whose VGPR is a half.
    Src16,
    /// 9-bit selector whose VGPRs are AccVGPRs.
    SrcAgpr,
    /// 9-bit selector, AccVGPR by this instruction's `acc` bits for A and B.
    SrcAcc,
    /// 9-bit selector, AccVGPR by the `acc` bit for C and D.
    SrcAccC,
    /// Scalar selector or register.
    Scalar,
    /// This register.
    Fixed(Special),
    /// An immediate field.
    Imm,
    /// A message number.
    Msg,
    /// The 32-bit constant after the instruction.
    Constant,
    /// SMEM's immediate offset.
    Offset,
}

/// How constants of an operand are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Type {
    /// Immediate, decimal.
    Dec,
    /// Immediate, hexadecimal.
    Hex,
    /// Immediate, decimal up to 64.
    U16,
    /// `s_endpgm`'s: not printed when zero.
    End,
    Hwreg,
    Sendmsg,
    Waitcnt,
    Depctr,
    Delay,
    Version,
    GprIdx,
    B16,
    F16,
    Bf16,
    V2b16,
    V2f16,
    V2bf16,
    B32,
    B64,
    F64,
    /// No constants.
    Reg,
}

/// An operand of a row.
#[derive(Clone, Copy, Debug)]
pub struct OperandRow {
    /// Where it goes.
    pub slot: Slot,
    /// Class.
    pub kind: Kind,
    /// Where it is.
    pub field: Field,
    /// Registers.
    pub dwords: u8,
    /// Type of constants.
    pub ty: Type,
    /// Implied: LLVM does not print it.
    pub hidden: bool,
}

/// Modifier bits that an operation takes. A clear bit is ignored in the encoding.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct ModMasks {
    pub abs: u8,
    pub neg: u8,
    pub neg_hi: u8,
    pub op_sel: u8,
    pub op_sel_hi: u8,
    pub omod: u8,
    pub clamp: u8,
    pub cbsz: u8,
    pub abid: u8,
    pub blgp: u8,
    /// Sources of a control dword: bits 0, 1.
    pub dpp_abs: u8,
    pub dpp_neg: u8,
    pub sext: u8,
    pub sel: u8,
    pub dst_sel: u8,
    /// Bits in the printed `op_sel` list; 0: not printed.
    pub op_sel_count: u8,
}

/// `op_sel` is printed as `byte_sel`: as [`ModMasks::op_sel_count`].
pub const BYTE_SEL: u8 = 255;

/// An operation in one form.
#[derive(Clone, Debug)]
pub struct Row {
    /// Without suffix.
    pub mnemonic: &'static str,
    /// `_e32` and the like.
    pub suffix: &'static str,
    /// Operands in printed order.
    pub operands: Box<[OperandRow]>,
    /// Modifiers.
    pub masks: ModMasks,
    /// Modifier fields that change something, as bits by field number.
    pub fields: u128,
    /// DS: two 8-bit offsets rather than one of 16 bits.
    pub two_offsets: bool,
    /// It is an atomic memory operation that returns the value before when asked to.
    pub atomic: bool,
    /// Data are compared and swapped: the value returned has half their size.
    pub compare_swap: bool,
}

impl Row {
    /// Does the modifier field matter to this operation?
    #[inline]
    pub fn takes(&self, field: Field) -> bool {
        self.fields >> field as u32 & 1 != 0
    }
}

/// A form's layout and rows by opcode.
#[derive(Debug)]
pub struct FormTable {
    /// Layout.
    pub layout: Layout,
    rows: Vec<Option<Row>>,
}

impl FormTable {
    /// The row of an opcode.
    #[inline]
    pub fn row(&self, opcode: u32) -> Option<&Row> {
        self.rows.get(opcode as usize)?.as_ref()
    }

    /// Opcodes and rows.
    pub fn rows(&self) -> impl Iterator<Item = (u32, &Row)> {
        self.rows.iter().enumerate().filter_map(|(opcode, row)| Some((opcode as u32, row.as_ref()?)))
    }
}

/// A set of numbers that have names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Names {
    /// Hardware registers.
    Hwreg,
    /// Messages: `simm16` of `s_sendmsg`.
    Sendmsg,
    /// Messages that return a value.
    SendmsgRtn,
    /// Formats of typed buffer instructions.
    Format,
    /// GFX12 cache policies of loads: `th | scope << 3`.
    ThLoad,
    /// Of stores.
    ThStore,
    /// Of atomics.
    ThAtomic,
    /// Of scalar loads.
    ThScalar,
}

impl Names {
    /// All of them with their names in the tables.
    pub const ALL: [(Names, &'static str); 8] = [
        (Names::Hwreg, "hwreg"),
        (Names::Sendmsg, "sendmsg"),
        (Names::SendmsgRtn, "sendmsg_rtn"),
        (Names::Format, "format"),
        (Names::ThLoad, "th_load"),
        (Names::ThStore, "th_store"),
        (Names::ThAtomic, "th_atomic"),
        (Names::ThScalar, "th_scalar"),
    ];
}

/// A target's table.
#[derive(Debug)]
pub struct Table {
    /// Target.
    pub target: Target,
    forms: Vec<Option<FormTable>>,
    names: HashMap<(Names, u32), &'static str>,
}

/// Why a table could not be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// A row has the wrong number of columns.
    #[error("line {line}: {columns} columns, not 6")]
    Columns {
        /// Line number from 1.
        line: usize,
        /// Columns.
        columns: usize,
    },
    /// A column has a word that means nothing.
    #[error("line {line}: {word:?} is not a known {what}")]
    Word {
        /// Line number from 1.
        line: usize,
        /// The word.
        word: String,
        /// What it should be.
        what: &'static str,
    },
    /// Two rows for an opcode.
    #[error("line {line}: {form} opcode {opcode:#x} is there twice")]
    Duplicate {
        /// Line number from 1.
        line: usize,
        /// Form.
        form: &'static str,
        /// Opcode.
        opcode: u32,
    },
}

impl Table {
    /// The table of a target.
    pub fn of(target: Target) -> &'static Table {
        static TABLES: [OnceLock<Table>; Target::ALL.len()] = [const { OnceLock::new() }; Target::ALL.len()];
        TABLES[target as usize].get_or_init(|| {
            // The texts are part of the program, and a test parses each of them.
            Table::parse(target, text(target)).unwrap_or(Table { target, forms: Vec::new(), names: HashMap::new() })
        })
    }

    /// A form's part of the table.
    #[inline]
    pub fn form(&self, form: Form) -> Option<&FormTable> {
        self.forms.get(form as usize)?.as_ref()
    }

    /// Name of a number.
    pub fn name(&self, group: Names, value: u32) -> Option<&'static str> {
        self.names.get(&(group, value)).copied()
    }

    /// Parses a table's text.
    pub fn parse(target: Target, text: &'static str) -> Result<Table, TableError> {
        let mut forms: Vec<Option<FormTable>> = Form::ALL
            .iter()
            .map(|form| Layout::of(target, *form).map(|layout| FormTable { layout, rows: Vec::new() }))
            .collect();
        let mut names = HashMap::new();
        for (index, text) in text.lines().enumerate() {
            if text.starts_with('#') {
                continue;
            }
            let line = Line { number: index + 1 };
            let columns: Vec<&'static str> = text.split('\t').collect();
            let [form, opcode, mnemonic, suffix, operands, mods] = columns[..] else {
                return Err(TableError::Columns { line: line.number, columns: columns.len() });
            };
            let number = opcode
                .strip_prefix("0x")
                .and_then(|hex| u32::from_str_radix(hex, 16).ok())
                .filter(|opcode| *opcode < 1024)
                .ok_or_else(|| line.word(opcode, "number below 1024"))?;
            if let Some((group, _)) = Names::ALL.into_iter().find(|(_, name)| *name == form) {
                names.insert((group, number), mnemonic);
                continue;
            }
            let (name, opcode) = (form, number);
            let form = Form::from_name(name).ok_or_else(|| line.word(name, "form"))?;
            let table = forms
                .get_mut(form as usize)
                .and_then(Option::as_mut)
                .ok_or_else(|| line.word(name, "form of this target"))?;
            let row = line.row(form, mnemonic, suffix, operands, mods)?;
            let slot = opcode as usize;
            if table.rows.len() <= slot {
                table.rows.resize_with(slot + 1, || None);
            }
            if table.rows[slot].is_some() {
                return Err(TableError::Duplicate { line: line.number, form: form.name(), opcode });
            }
            table.rows[slot] = Some(row);
        }
        Ok(Table { target, forms, names })
    }
}

/// The text of a target's table.
pub fn text(target: Target) -> &'static str {
    match target {
        Target::Gfx900 => include_str!("tables/gfx900.tsv"),
        Target::Gfx906 => include_str!("tables/gfx906.tsv"),
        Target::Gfx90a => include_str!("tables/gfx90a.tsv"),
        Target::Gfx942 => include_str!("tables/gfx942.tsv"),
        Target::Gfx1030 => include_str!("tables/gfx1030.tsv"),
        Target::Gfx1100 => include_str!("tables/gfx1100.tsv"),
        Target::Gfx1201 => include_str!("tables/gfx1201.tsv"),
    }
}

struct Line {
    number: usize,
}

impl Line {
    fn word(&self, word: &str, what: &'static str) -> TableError {
        TableError::Word { line: self.number, word: word.to_owned(), what }
    }

    fn row(
        &self,
        form: Form,
        mnemonic: &'static str,
        suffix: &'static str,
        operands: &'static str,
        mods: &'static str,
    ) -> Result<Row, TableError> {
        let words = |text: &'static str| text.split(' ').filter(|word| *word != "-");
        let operands: Box<[OperandRow]> = words(operands).map(|word| self.operand(word)).collect::<Result<_, _>>()?;
        let mut masks = ModMasks::default();
        let mut fields = 0u128;
        for word in words(mods) {
            let (word, count) = word.split_once('*').unwrap_or((word, ""));
            let (field, mask) = self.modifier(word)?;
            match count {
                "" => {}
                "byte" => masks.op_sel_count = BYTE_SEL,
                _ => masks.op_sel_count = count.parse().map_err(|_| self.word(count, "count"))?,
            }
            fields |= 1 << field as u32;
            let mask = mask as u8;
            match field {
                Field::Abs => masks.abs = mask,
                Field::Neg => masks.neg = mask,
                Field::NegHi => masks.neg_hi = mask,
                Field::OpSel => masks.op_sel = mask,
                Field::OpSelHi => masks.op_sel_hi |= mask,
                Field::OpSelHi2 => masks.op_sel_hi |= mask << 2,
                Field::Omod => masks.omod = mask,
                Field::Clamp => masks.clamp = mask,
                Field::Cbsz => masks.cbsz = mask,
                Field::Abid => masks.abid = mask,
                Field::Blgp => masks.blgp = mask,
                Field::Src0Abs => masks.dpp_abs |= 1,
                Field::Src1Abs => masks.dpp_abs |= 2,
                Field::Src0Neg => masks.dpp_neg |= 1,
                Field::Src1Neg => masks.dpp_neg |= 2,
                Field::Src0Sext => masks.sext |= 1,
                Field::Src1Sext => masks.sext |= 2,
                Field::Src0Sel => masks.sel |= 1,
                Field::Src1Sel => masks.sel |= 2,
                Field::DstSel => masks.dst_sel = 1,
                _ => {}
            }
        }
        let memory = matches!(form, Form::Flat | Form::Global | Form::Scratch | Form::Mubuf | Form::Mtbuf | Form::Smem);
        Ok(Row {
            mnemonic,
            suffix: if suffix == "-" { "" } else { suffix },
            operands,
            masks,
            fields,
            two_offsets: form == Form::Ds
                && ["2addr", "read2", "write2", "wrxchg2"].iter().any(|part| mnemonic.contains(part)),
            atomic: memory && mnemonic.contains("atomic"),
            compare_swap: mnemonic.contains("cmpswap"),
        })
    }

    fn modifier(&self, word: &str) -> Result<(Field, u32), TableError> {
        let unknown = || self.word(word, "modifier");
        let (name, mask) = word.split_once(':').ok_or_else(unknown)?;
        let field = Field::from_name(name).ok_or_else(unknown)?;
        Ok((field, u32::from_str_radix(mask, 16).map_err(|_| unknown())?))
    }

    /// `[~]slot=field:kind:dwords[:type]`
    fn operand(&self, word: &str) -> Result<OperandRow, TableError> {
        let unknown = || self.word(word, "operand");
        let (hidden, rest) = match word.strip_prefix('~') {
            Some(rest) => (true, rest),
            None => (false, word),
        };
        let (slot, rest) = rest.split_once('=').ok_or_else(unknown)?;
        let slot = match slot {
            "d" => Slot::Dst,
            "d2" => Slot::Dst2,
            "s0" => Slot::Src(0),
            "s1" => Slot::Src(1),
            "s2" => Slot::Src(2),
            "s3" => Slot::Src(3),
            "o" => Slot::Other,
            _ => return Err(unknown()),
        };
        let mut parts = rest.split(':');
        let mut next = || parts.next().ok_or_else(unknown);
        let (field_name, kind, dwords) = (next()?, next()?, next()?);
        let kind = match kind {
            "v" => Kind::Vgpr,
            "v16" => Kind::Vgpr16,
            "a" => Kind::Agpr,
            "v_c" => Kind::VgprOrAcc,
            "src" => Kind::Src,
            "src16" => Kind::Src16,
            "asrc" => Kind::SrcAgpr,
            "src_acc" => Kind::SrcAcc,
            "src_c" => Kind::SrcAccC,
            "s" => Kind::Scalar,
            "fixed" => Kind::Fixed(special(field_name).ok_or_else(unknown)?),
            "imm" => Kind::Imm,
            "msg" => Kind::Msg,
            "k" => Kind::Constant,
            "offset" => Kind::Offset,
            _ => return Err(unknown()),
        };
        let field = match kind {
            Kind::Fixed(_) => Field::Vdst,
            _ => Field::from_name(field_name).ok_or_else(unknown)?,
        };
        let ty = match parts.next() {
            None | Some("reg") => Type::Reg,
            Some("b16") => Type::B16,
            Some("f16") => Type::F16,
            Some("bf16") => Type::Bf16,
            Some("v2b16") => Type::V2b16,
            Some("v2f16") => Type::V2f16,
            Some("v2bf16") => Type::V2bf16,
            Some("b32") => Type::B32,
            Some("b64") => Type::B64,
            Some("dec") => Type::Dec,
            Some("hex") => Type::Hex,
            Some("u16") => Type::U16,
            Some("end") => Type::End,
            Some("hwreg") => Type::Hwreg,
            Some("sendmsg") => Type::Sendmsg,
            Some("waitcnt") => Type::Waitcnt,
            Some("depctr") => Type::Depctr,
            Some("delay") => Type::Delay,
            Some("version") => Type::Version,
            Some("gpr_idx") => Type::GprIdx,
            Some("f64") => Type::F64,
            Some(_) => return Err(unknown()),
        };
        let dwords = dwords.parse().map_err(|_| unknown())?;
        Ok(OperandRow { slot, kind, field, dwords, ty, hidden })
    }
}

/// Fixed operands; those that end in no `_lo` are pairs.
fn special(name: &str) -> Option<Special> {
    Some(match name {
        "vcc" | "vcc_lo" => Special::VccLo,
        "exec" | "exec_lo" => Special::ExecLo,
        "m0" => Special::M0,
        "scc" => Special::Scc,
        "null" => Special::Null,
        _ => return None,
    })
}

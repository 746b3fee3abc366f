//! Structured operand fills: what each form is tried with.
//!
//! Registers have a number of their own in each field, so that a printed operand tells the field it came from. Numbers are
//! multiples of four (wide scalar operands), far enough apart for 32-register blocks, and below 128 (true16 fields).

use emu::isa::layout::{Field, Form, Layout};
use emu::isa::{Family, Target};

/// A candidate and what its fields hold.
#[derive(Clone, Debug)]
pub struct Fill {
    /// Bits of the instruction.
    pub bits: u128,
    /// Bytes to give to the disassembler (with room for a literal).
    pub len: usize,
    /// Register numbers by field.
    pub numbers: Vec<(Field, u32)>,
}

impl Fill {
    /// The candidate's bytes.
    pub fn bytes(&self) -> Vec<u8> {
        self.bits.to_le_bytes()[..self.len].to_vec()
    }
}

/// Register number of a field: vector, scalar.
pub fn number(field: Field) -> (u32, u32) {
    match field {
        Field::Vdst => (8, 8),
        Field::Sdst | Field::Sdata => (12, 12),
        Field::Src0 | Field::Vdata | Field::Data0 => (40, 40),
        Field::Src1 | Field::Data1 => (72, 72),
        Field::Src2 => (104, 84),
        Field::Vaddr | Field::Addr | Field::Sbase => (24, 24),
        Field::Saddr | Field::Srsrc => (36, 36),
        Field::Soffset => (20, 20),
        _ => (0, 0),
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Vector,
    Scalar,
    /// All bits zero: an unused field.
    Zero,
    /// Inline constant 1.
    One,
}

struct Maker<'a> {
    layout: &'a Layout,
    bits: u128,
    numbers: Vec<(Field, u32)>,
}

impl Maker<'_> {
    fn raw(&mut self, field: Field, value: u32) -> &mut Self {
        self.bits = self.layout.fields[field as usize].set(self.bits, value);
        self
    }

    fn source(&mut self, field: Field, kind: Kind) -> &mut Self {
        let (vector, scalar) = number(field);
        let wide = self.layout.fields[field as usize].width == 9;
        let (value, register) = match kind {
            Kind::Vector if wide => (256 + vector, Some(vector)),
            Kind::Vector => (vector, Some(vector)),
            Kind::Scalar => (scalar, Some(scalar)),
            Kind::Zero => (0, None),
            Kind::One => (129, None),
        };
        self.raw(field, value);
        if let Some(register) = register {
            self.numbers.push((field, register));
        }
        self
    }

    fn register(&mut self, field: Field) -> &mut Self {
        let (vector, _) = number(field);
        self.raw(field, vector);
        self.numbers.push((field, vector));
        self
    }
}

/// The fills of a form for one opcode, best first.
pub fn fills(target: Target, form: Form, layout: &Layout, opcode: u32) -> Vec<Fill> {
    let family = target.family();
    let mut all = Vec::new();
    let base = layout.op_hi.set(layout.op.set(u128::from(layout.base), opcode), opcode >> layout.op.width);
    let mut add = |build: &dyn Fn(&mut Maker)| {
        let mut maker = Maker { layout, bits: base, numbers: Vec::new() };
        build(&mut maker);
        let len = usize::from(layout.len) + 4;
        all.push(Fill { bits: maker.bits, len: len.min(16), numbers: maker.numbers });
    };
    match form.base() {
        Form::Sop1 | Form::Sop2 | Form::Sopc => {
            for used in subsets(layout, &[Field::Sdst, Field::Src0, Field::Src1]) {
                add(&|m| {
                    for field in &used {
                        m.source(*field, Kind::Scalar);
                    }
                });
            }
        }
        Form::Sopk => {
            for value in [1, 0x4321] {
                for sdst in [true, false] {
                    add(&|m| {
                        if sdst {
                            m.register(Field::Sdst);
                        }
                        m.raw(Field::Simm16, value);
                    });
                }
            }
        }
        Form::Sopp => {
            for value in [1, 0, 0x4321] {
                add(&|m| {
                    m.raw(Field::Simm16, value);
                });
            }
        }
        Form::Smem => {
            for null in [if family == Family::Gfx10 { 0x7d } else { 0x7c }, 0] {
                for cache in [1, 0] {
                    for used in subsets(layout, &[Field::Sdata, Field::Sbase]) {
                        for imm in [1, 0] {
                            add(&|m| {
                                // Atomics print their result only when asked for it.
                                m.raw(Field::Imm, imm).raw(Field::Soffset, null).raw(Field::Glc, cache);
                                for field in &used {
                                    match field {
                                        Field::Sbase => m.raw(Field::Sbase, 12).numbers.push((Field::Sbase, 24)),
                                        _ => {
                                            m.register(*field);
                                        }
                                    }
                                }
                            });
                        }
                    }
                }
            }
        }
        Form::Vop1 | Form::Vop2 | Form::Vopc => {
            for kind in [Kind::Vector, Kind::Scalar, Kind::Zero] {
                for used in subsets(layout, &[Field::Vdst, Field::Src1]) {
                    add(&|m| {
                        control(m, target, form);
                        m.source(Field::Src0, kind);
                        for field in &used {
                            m.register(*field);
                        }
                        if kind == Kind::Scalar {
                            m.raw(Field::S0, 1);
                        }
                        extension(m, form);
                    });
                }
            }
        }
        Form::Vop3 => {
            use Kind::{One, Scalar as S, Vector as V, Zero as Z};
            const KINDS: [(Kind, Kind, Kind); 16] = [
                (V, V, V),
                (V, V, Z),
                (V, V, S),
                (V, S, S),
                (V, S, Z),
                (V, S, V),
                (S, S, S),
                (S, S, Z),
                (S, V, V),
                (S, V, Z),
                (V, Z, Z),
                (S, Z, Z),
                (Z, Z, Z),
                (V, V, One),
                (V, One, Z),
                (V, One, One),
            ];
            for vdst in [8, 126, 124, 0] {
                for (src0, src1, src2) in KINDS {
                    add(&|m| {
                        control(m, target, form);
                        m.raw(Field::Vdst, vdst);
                        if vdst == 8 {
                            m.numbers.push((Field::Vdst, 8));
                        }
                        m.numbers.push((Field::Sdst, 0));
                        m.source(Field::Src1, src1).source(Field::Src2, src2).source(Field::Src0, src0);
                        extension(m, form);
                    });
                }
            }
        }
        Form::Vop3p => {
            for packed in [true, false] {
                for src2 in [Kind::Vector, Kind::Zero, Kind::Scalar, Kind::One] {
                    for (src0, src1) in [(Kind::Vector, Kind::Vector), (Kind::Vector, Kind::Zero)] {
                        add(&|m| {
                            control(m, target, form);
                            m.register(Field::Vdst);
                            m.source(Field::Src1, src1).source(Field::Src2, src2).source(Field::Src0, src0);
                            if packed {
                                m.raw(Field::OpSelHi, 3).raw(Field::OpSelHi2, 1);
                            }
                            extension(m, form);
                        });
                    }
                }
            }
        }
        Form::VopdX => {
            for used in subsets(layout, &[Field::Src1]) {
                add(&|m| {
                    m.register(Field::Vdst).source(Field::Src0, Kind::Vector);
                    for field in &used {
                        m.register(*field);
                    }
                    // Y: v_dual_mov_b32 v17, v120.
                    m.bits |= 8 << 17 | u128::from(256u32 + 120) << 32 | 8 << 49;
                });
            }
        }
        Form::VopdY => {
            for used in subsets(layout, &[Field::Src1]) {
                add(&|m| {
                    m.source(Field::Src0, Kind::Vector);
                    for field in &used {
                        m.register(*field);
                    }
                    m.raw(Field::Vdst, 4).numbers.push((Field::Vdst, 9));
                    // X: v_dual_mov_b32 v16, v120.
                    m.bits |= 8 << 22 | u128::from(256u32 + 120) | 16 << 56;
                });
            }
        }
        Form::Ds => {
            for gds in [0, 1] {
                for used in subsets(layout, &[Field::Addr, Field::Data0, Field::Data1, Field::Vdst]) {
                    add(&|m| {
                        m.raw(Field::Gds, gds);
                        for field in &used {
                            m.register(*field);
                        }
                    });
                }
            }
        }
        Form::Flat | Form::Global | Form::Scratch => {
            let off = match family {
                Family::Gfx9 => 0x7f,
                Family::Gfx10 => 0x7d,
                _ => 0x7c,
            };
            for lds in [0, 1] {
                for cache in [1, 0] {
                    for saddr in [off, 36, 0] {
                        for used in subsets(layout, &[Field::Vaddr, Field::Vdata, Field::Vdst]) {
                            add(&|m| {
                                m.raw(Field::Saddr, saddr).raw(Field::Glc, cache).raw(Field::Th, cache);
                                m.raw(Field::Lds, lds);
                                if form == Form::Scratch && used.contains(&Field::Vaddr) {
                                    m.raw(Field::Sve, 1);
                                }
                                if saddr == 36 {
                                    m.numbers.push((Field::Saddr, 36));
                                }
                                for field in &used {
                                    m.register(*field);
                                }
                            });
                        }
                    }
                }
            }
        }
        Form::Mubuf | Form::Mtbuf => {
            let wide = layout.fields[Field::Srsrc as usize].width == 9;
            for lds in [0, 1] {
                for cache in [1, 0] {
                    for used in subsets(layout, &[Field::Vaddr, Field::Vdata, Field::Srsrc, Field::Soffset]) {
                        add(&|m| {
                            for field in &used {
                                match field {
                                    Field::Srsrc => {
                                        m.raw(Field::Srsrc, if wide { 36 } else { 9 });
                                        m.numbers.push((Field::Srsrc, 36));
                                    }
                                    Field::Vaddr => {
                                        m.register(Field::Vaddr).raw(Field::Offen, 1);
                                    }
                                    _ => {
                                        m.register(*field);
                                    }
                                }
                            }
                            m.raw(Field::Glc, cache).raw(Field::Th, cache).raw(Field::Lds, lds);
                            m.raw(Field::BufFormat, if form == Form::Mubuf { 1 } else { 0x14 });
                        });
                    }
                }
            }
        }
        _ => {}
    }
    all
}

/// All selections of the fields a layout has, the fullest first.
fn subsets(layout: &Layout, fields: &[Field]) -> Vec<Vec<Field>> {
    let fields: Vec<Field> = fields.iter().copied().filter(|field| layout.has(*field)).collect();
    let mut all: Vec<Vec<Field>> = (0..1u32 << fields.len())
        .map(|mask| (0..fields.len()).filter(|bit| mask >> bit & 1 == 0).map(|bit| fields[bit]).collect())
        .collect();
    all.sort_by_key(|fields: &Vec<Field>| std::cmp::Reverse(fields.len()));
    all
}

/// Neutral controls of a DPP or SDWA dword.
fn control(m: &mut Maker, target: Target, form: Form) {
    use emu::isa::layout::Extension;
    match form.extension() {
        Extension::None => {}
        Extension::Dpp16 => {
            // Operations of 64 bits take row_newbcast alone, and only these targets have them.
            let control = if target.unified_agprs() { 0x150 } else { 0xe4 };
            m.raw(Field::DppCtrl, control).raw(Field::BankMask, 15).raw(Field::RowMask, 15);
        }
        Extension::Dpp8 => {
            m.raw(Field::Dpp8Sel, 0o76543210);
        }
        Extension::Sdwa => {
            m.raw(Field::DstSel, 6).raw(Field::Src0Sel, 6);
            if m.layout.has(Field::Src1) {
                m.raw(Field::Src1Sel, 6);
            }
        }
    }
}

/// Puts back the selector that announces the control dword where source 0 of a VOP3 form stands.
fn extension(m: &mut Maker, form: Form) {
    use emu::isa::layout::Extension;
    if matches!(form.base(), Form::Vop3 | Form::Vop3p) {
        let selector = match form.extension() {
            Extension::Dpp16 => 250u128,
            Extension::Dpp8 => 233,
            _ => return,
        };
        m.bits = m.bits & !(0x1ff << 32) | selector << 32;
    }
}

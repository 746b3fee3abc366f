//! Where the fields of an encoding are.
//!
//! A [`Form`] is a format with one of its extensions (a DPP or SDWA control dword). Positions are bit numbers counted from
//! the first byte of the instruction, low bit first, so a field of the second dword begins at 32 or later. They are the
//! same for all targets of a family except where a target is named below. The tables of opcodes are harvested with these
//! positions: an operand that is not where a layout says it is does not get into a table.

mod field;
mod form;
mod memory;
mod vector;

use super::{Format, Target};
pub use field::Field;
pub use form::{Extension, Form};

/// An enum whose variants have names in the tables.
macro_rules! named {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        #[allow(missing_docs)]
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl $name {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// Name in the tables.
            pub fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)*
                }
            }

            /// The one with this name.
            pub fn from_name(name: &str) -> Option<$name> {
                match name {
                    $($text => Some($name::$variant),)*
                    _ => None,
                }
            }
        }
    };
}
pub(crate) use named;

/// Position of a field; `width` 0 where the form has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pos {
    /// First bit.
    pub lo: u8,
    /// Bits.
    pub width: u8,
}

impl Pos {
    /// The field's value.
    #[inline(always)]
    pub fn get(self, bits: u128) -> u32 {
        ((bits >> self.lo) as u64 & ((1u64 << self.width) - 1)) as u32
    }

    /// `bits` with the field set; bits of `value` beyond the field are dropped.
    pub fn set(self, bits: u128, value: u32) -> u128 {
        let mask = ((1u128 << self.width) - 1) << self.lo;
        bits & !mask | (u128::from(value) << self.lo) & mask
    }
}

/// Layout of a form on a target.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Fixed bits of the first dword that tell the form from others.
    pub base: u32,
    /// The opcode.
    pub op: Pos,
    /// A higher bit of the opcode elsewhere (MTBUF on GFX10).
    pub op_hi: Pos,
    /// Bytes without literal.
    pub len: u8,
    /// Fields by number.
    pub fields: [Pos; Field::ALL.len()],
}

impl Layout {
    /// Value of a field, 0 where there is none.
    #[inline(always)]
    pub fn get(&self, field: Field, bits: u128) -> u32 {
        self.fields[field as usize].get(bits)
    }

    /// Does the form have the field?
    #[inline(always)]
    pub fn has(&self, field: Field) -> bool {
        self.fields[field as usize].width != 0
    }

    /// The opcode.
    #[inline(always)]
    pub fn opcode(&self, bits: u128) -> u32 {
        self.op.get(bits) | self.op_hi.get(bits) << self.op.width
    }

    /// Layout of a form, None where the target has no such form.
    pub fn of(target: Target, form: Form) -> Option<Layout> {
        match form.format() {
            Format::Smem => Some(memory::smem(target)),
            Format::Ds => Some(memory::ds(target)),
            Format::Flat | Format::Global | Format::Scratch => Some(memory::flat(target, form)),
            Format::Mubuf => Some(memory::mubuf(target)),
            Format::Mtbuf => Some(memory::mtbuf(target)),
            _ => vector::layout(target.family(), form),
        }
    }
}

/// Fields with their first bits and widths.
type Fields = &'static [(Field, u8, u8)];

/// `fields![Vdst 0 8, Src0 32 9]`: name, first bit, width.
macro_rules! fields {
    ($($field:ident $lo:literal $width:literal),* $(,)?) => {
        &[$((super::Field::$field, $lo, $width)),*]
    };
}
pub(crate) use fields;

/// A layout from its parts: fixed bits, opcode, bytes, groups of fields with what to add to their positions.
fn build(base: u32, op: (u8, u8), len: u8, groups: &[(u8, Fields)]) -> Layout {
    let mut fields = [Pos::default(); Field::ALL.len()];
    for (shift, group) in groups {
        for (field, lo, width) in *group {
            fields[*field as usize] = Pos { lo: lo + shift, width: *width };
        }
    }
    Layout { base, op: Pos { lo: op.0, width: op.1 }, op_hi: Pos::default(), len, fields }
}

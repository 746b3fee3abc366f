//! Dynamic relocations (LLVM AMDGPUUsage "Relocation Records").

use goblin::elf::reloc::RelocSection;

use crate::dynamic::Dynamic;
use crate::header::CTX;
use crate::segment::Segments;
use crate::symbol::{Place, Symbol};

/// What is written, from the value `v` of a relocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelocationKind {
    /// R_AMDGPU_ABS32_LO (1): 4 bytes, `v & 0xffff_ffff`.
    Abs32Lo,
    /// R_AMDGPU_ABS32_HI (2): 4 bytes, `v >> 32`.
    Abs32Hi,
    /// R_AMDGPU_ABS64 (3): 8 bytes, `v`.
    Abs64,
    /// R_AMDGPU_ABS32 (6): 4 bytes, `v`, which has to fit them.
    Abs32,
    /// R_AMDGPU_RELATIVE64 (13): 8 bytes, `v`.
    Relative64,
}

impl RelocationKind {
    /// Bytes written.
    pub fn bytes(self) -> u64 {
        match self {
            RelocationKind::Abs64 | RelocationKind::Relative64 => 8,
            RelocationKind::Abs32Lo | RelocationKind::Abs32Hi | RelocationKind::Abs32 => 4,
        }
    }

    /// Name without `R_AMDGPU_`.
    pub fn name(self) -> &'static str {
        match self {
            RelocationKind::Abs32Lo => "ABS32_LO",
            RelocationKind::Abs32Hi => "ABS32_HI",
            RelocationKind::Abs64 => "ABS64",
            RelocationKind::Abs32 => "ABS32",
            RelocationKind::Relative64 => "RELATIVE64",
        }
    }
}

/// Where the value of a relocation comes from. The addend is in it already; arithmetic wraps at 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// An address in the image: add the load delta (device address - image address).
    Image(u64),
    /// A number that does not move.
    Absolute(u64),
    /// A symbol that is not in this file.
    Undefined {
        /// Its name.
        name: &'a str,
        /// To be added to what it is bound to.
        addend: i64,
        /// It may stay unbound, and counts as 0 then.
        weak: bool,
    },
}

/// A dynamic relocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation<'a> {
    /// Address in the image of what is written; all of it is in one segment.
    pub vaddr: u64,
    /// How.
    pub kind: RelocationKind,
    /// What.
    pub value: Value<'a>,
}

/// What the relocations must say. `index` is the place in the table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RelocationError {
    /// A type that is not for loaders, or none at all.
    #[error(
        "relocation {index}: type {value} ({}) is not one a loader applies: 1, 2, 3, 6 and 13 are",
        static_name(*value)
    )]
    Type {
        /// Place in the table.
        index: usize,
        /// As read.
        value: u32,
    },
    /// The symbol is not in the table.
    #[error("relocation {index}: symbol {symbol} is beyond the {count} dynamic symbols")]
    SymbolIndex {
        /// Place in the table.
        index: usize,
        /// As read.
        symbol: u64,
        /// Dynamic symbols.
        count: usize,
    },
    /// A RELATIVE64 with a symbol.
    #[error("relocation {index}: type 13 (RELATIVE64) with symbol {symbol}, must have none")]
    RelativeSymbol {
        /// Place in the table.
        index: usize,
        /// As read.
        symbol: u64,
    },
    /// Any other type without one.
    #[error("relocation {index}: type {value} without a symbol")]
    NoSymbol {
        /// Place in the table.
        index: usize,
        /// As read.
        value: u32,
    },
    /// The target is not in the image.
    #[error("relocation {index}: r_offset {vaddr:#x} with {size} bytes is not inside a PT_LOAD segment")]
    Outside {
        /// Place in the table.
        index: usize,
        /// `r_offset`.
        vaddr: u64,
        /// Bytes written.
        size: u64,
    },
    /// The reader failed where the range was found right before.
    #[error("relocations cannot be read: {reason}")]
    Reader {
        /// The reader's words.
        reason: String,
    },
}

fn static_name(value: u32) -> &'static str {
    match value {
        4 => "REL32, which the linker applies",
        5 => "REL64, which the linker applies",
        7..=9 => "GOTPCREL, which the linker applies",
        10 | 11 => "REL32_LO/HI, which the linker applies",
        14 => "REL16, which the linker applies",
        _ => "unknown",
    }
}

pub(crate) fn parse<'a>(
    segments: &Segments<'a>,
    dynamic: &Dynamic<'a>,
    symbols: &[Symbol<'a>],
) -> Result<Vec<Relocation<'a>>, RelocationError> {
    let table = RelocSection::parse(dynamic.relocations, 0, dynamic.relocations.len(), true, CTX)
        .map_err(|error| RelocationError::Reader { reason: error.to_string() })?;
    let mut relocations = Vec::with_capacity(table.len());
    for (index, r) in table.iter().enumerate() {
        let kind = match r.r_type {
            // R_AMDGPU_NONE.
            0 => continue,
            1 => RelocationKind::Abs32Lo,
            2 => RelocationKind::Abs32Hi,
            3 => RelocationKind::Abs64,
            6 => RelocationKind::Abs32,
            13 => RelocationKind::Relative64,
            value => return Err(RelocationError::Type { index, value }),
        };
        let addend = r.r_addend.unwrap_or_default();
        let value = match (kind, r.r_sym) {
            (RelocationKind::Relative64, 0) => Value::Image(addend as u64),
            (RelocationKind::Relative64, symbol) => {
                return Err(RelocationError::RelativeSymbol { index, symbol: symbol as u64 });
            }
            (_, 0) => return Err(RelocationError::NoSymbol { index, value: r.r_type }),
            (_, number) => {
                let count = symbols.len();
                let symbol =
                    symbols.get(number).ok_or(RelocationError::SymbolIndex { index, symbol: number as u64, count })?;
                match symbol.place {
                    Place::Image(vaddr) => Value::Image(vaddr.wrapping_add_signed(addend)),
                    Place::Absolute(value) => Value::Absolute(value.wrapping_add_signed(addend)),
                    Place::Undefined => Value::Undefined { name: symbol.name, addend, weak: symbol.weak },
                }
            }
        };
        let (vaddr, size) = (r.r_offset, kind.bytes());
        if segments.find(vaddr, size).is_none() {
            return Err(RelocationError::Outside { index, vaddr, size });
        }
        relocations.push(Relocation { vaddr, kind, value });
    }
    Ok(relocations)
}

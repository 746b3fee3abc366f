//! Everything that can be wrong with a file.

use crate::descriptor::DescriptorError;
use crate::dynamic::DynamicError;
use crate::foreign::Foreign;
use crate::header::HeaderError;
use crate::metadata::MetadataError;
use crate::note::NoteError;
use crate::reloc::RelocationError;
use crate::segment::SegmentError;
use crate::symbol::SymbolError;

/// Characters of a name that a message shows.
const SHOWN: usize = 200;

/// A name from a file as messages show it: on one line, without control characters, and not endless.
pub(crate) fn shown(name: &str) -> String {
    let mut text: String = name.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if name.chars().nth(SHOWN).is_some() {
        text.push('…');
    }
    text
}

/// Why bytes are not a code object that can be loaded. Each displays as one line: the field, its value, the rule. Names
/// in errors are escaped, and cut at 200 characters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Not a code object at all.
    #[error(transparent)]
    Foreign(#[from] Foreign),
    /// ELF header.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// Program headers.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// Dynamic section.
    #[error(transparent)]
    Dynamic(#[from] DynamicError),
    /// Symbol table, and section headers.
    #[error(transparent)]
    Symbol(#[from] SymbolError),
    /// Relocations.
    #[error(transparent)]
    Relocation(#[from] RelocationError),
    /// Note records.
    #[error(transparent)]
    Note(#[from] NoteError),
    /// Metadata.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// What metadata, symbols, descriptors and segments say of one kernel.
    #[error("kernel `{kernel}`: {cause}")]
    Kernel {
        /// `.name`.
        kernel: String,
        /// What is wrong.
        cause: KernelError,
    },
    /// The metadata's target is not that of `e_flags`.
    #[error("metadata amdhsa.target is `{metadata}`, e_flags says amdgcn-amd-amdhsa--{flags}: they must agree")]
    Target {
        /// `amdhsa.target`.
        metadata: String,
        /// From `e_flags`.
        flags: String,
    },
    /// Two kernels of one name.
    #[error("kernels {first} and {second} of the metadata are both called `{name}`")]
    TwoKernels {
        /// `.name`.
        name: String,
        /// Number of the first.
        first: usize,
        /// Number of the second.
        second: usize,
    },
}

/// What can be wrong with one kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KernelError {
    /// `.symbol` names nothing.
    #[error(".symbol `{symbol}` is not a dynamic symbol: give the kernel default or protected visibility")]
    NoSymbol {
        /// `.symbol`.
        symbol: String,
    },
    /// `.symbol` names something else.
    #[error("descriptor symbol `{symbol}`: {field} is {value}, must be {rule}")]
    Symbol {
        /// `.symbol`.
        symbol: String,
        /// What about it.
        field: &'static str,
        /// As found.
        value: String,
        /// What it must be.
        rule: &'static str,
    },
    /// The descriptor is not where it can be read.
    #[error("descriptor at {vaddr:#x} is not inside the file part of a PT_LOAD segment that is not writable")]
    Place {
        /// `st_value`.
        vaddr: u64,
    },
    /// The descriptor by itself.
    #[error("descriptor at {vaddr:#x}: {cause}")]
    Descriptor {
        /// `st_value`.
        vaddr: u64,
        /// What is wrong.
        cause: DescriptorError,
    },
    /// The entry.
    #[error(
        "descriptor at {vaddr:#x}: kernel_code_entry_byte_offset is {offset:#x}, must lead to 256-byte aligned code in \
         the file part of an executable PT_LOAD segment"
    )]
    Entry {
        /// `st_value`.
        vaddr: u64,
        /// As read.
        offset: i64,
    },
    /// The code that old firmware skips is missing.
    #[error("descriptor at {vaddr:#x}: kernarg_preload is set, must have code 256 bytes behind the entry {entry:#x}")]
    PreloadEntry {
        /// `st_value`.
        vaddr: u64,
        /// The entry.
        entry: u64,
    },
    /// Descriptor and metadata disagree.
    #[error("descriptor has {field} {descriptor}, metadata {metadata}: they must agree")]
    Disagreement {
        /// Which.
        field: &'static str,
        /// From the descriptor.
        descriptor: u32,
        /// From the metadata.
        metadata: u32,
    },
}

impl Error {
    /// A word for what is wrong, the same in every version; the text may change.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Foreign(error) => error.code(),
            Error::Header(error) => error.code(),
            Error::Segment(_) => "segment",
            Error::Dynamic(_) => "dynamic-section",
            Error::Symbol(_) => "symbol",
            Error::Relocation(_) => "relocation",
            Error::Note(_) => "note",
            Error::Metadata(_) => "metadata",
            Error::Kernel { .. } => "kernel",
            Error::Target { .. } => "target",
            Error::TwoKernels { .. } => "two-kernels",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn names_stay_on_their_line() {
        assert_eq!(shown("_Z3fooPfi"), "_Z3fooPfi");
        assert_eq!(shown("a\nb\x1b[31m\u{85}ü"), "a\\nb\\u{1b}[31m\\u{85}ü");
        assert_eq!(shown(&"x".repeat(1000)).chars().count(), 201);
    }
}

//! Dynamic symbols (System V ABI "Symbol Table"; LLVM AMDGPUUsage "Symbols").

use goblin::elf::SectionHeader;
use goblin::elf::section_header::{SHN_ABS, SHN_LORESERVE, SHN_UNDEF, SHT_DYNSYM, SHT_NOBITS, SHT_NULL};
use goblin::elf::sym::{
    STB_GLOBAL, STB_LOCAL, STB_WEAK, STT_COMMON, STT_FILE, STT_FUNC, STT_NOTYPE, STT_OBJECT, STT_SECTION, STT_TLS,
    Symtab,
};

use crate::dynamic::Dynamic;
use crate::error::shown;
use crate::header::{CTX, Header};
use crate::segment::Segments;

const SHN_AMDGPU_LDS: u16 = 0xff00;
const STT_AMDGPU_HSA_KERNEL: u8 = 10;

/// What a symbol stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolKind {
    /// STT_OBJECT: a variable, or a kernel descriptor (`.kd`).
    Object,
    /// STT_FUNC: a function, or a kernel's entry.
    Function,
    /// STT_NOTYPE, STT_SECTION and STT_FILE.
    Other,
}

/// Where a symbol is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At this address in the image.
    Image(u64),
    /// A number that does not move with the image.
    Absolute(u64),
    /// Not in this file: a loader has to bind it.
    Undefined,
}

/// A dynamic symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// Name; empty for section symbols.
    pub name: &'a str,
    /// What it stands for.
    pub kind: SymbolKind,
    /// Where it is.
    pub place: Place,
    /// Bytes, 0 if not known.
    pub size: u64,
    /// STB_LOCAL: not for others.
    pub local: bool,
    /// STB_WEAK: 0 when nothing defines it.
    pub weak: bool,
}

impl Symbol<'_> {
    /// Its address in the image, if it has one.
    pub fn vaddr(&self) -> Option<u64> {
        match self.place {
            Place::Image(vaddr) => Some(vaddr),
            Place::Absolute(_) | Place::Undefined => None,
        }
    }
}

/// What the symbol table must say. `index` is the place in the table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SymbolError {
    /// `st_name` beyond the string table.
    #[error("symbol {index}: st_name is {offset:#x}, must be below DT_STRSZ {size:#x}")]
    Name {
        /// Place in the table.
        index: usize,
        /// As read.
        offset: usize,
        /// Bytes of the string table.
        size: usize,
    },
    /// A name that is not UTF-8.
    #[error("symbol {index}: the name at st_name {offset:#x} is not UTF-8")]
    NameText {
        /// Place in the table.
        index: usize,
        /// `st_name`.
        offset: usize,
    },
    /// Symbol type.
    #[error("symbol {index} `{name}`: type (st_info bits 0-3) is {value} ({}), must be 0 to 5", symbol_type(*value))]
    Type {
        /// Place in the table.
        index: usize,
        /// Name.
        name: String,
        /// As read.
        value: u8,
    },
    /// Symbol binding.
    #[error(
        "symbol {index} `{name}`: binding (st_info bits 4-7) is {value}, must be 0 (local), 1 (global) or 2 (weak)"
    )]
    Binding {
        /// Place in the table.
        index: usize,
        /// Name.
        name: String,
        /// As read.
        value: u8,
    },
    /// A reserved section index.
    #[error(
        "symbol {index} `{name}`: st_shndx is {value:#x} ({}), must be 0 (undefined), 0xfff1 (absolute) or a section",
        section_index(*value)
    )]
    Section {
        /// Place in the table.
        index: usize,
        /// Name.
        name: String,
        /// As read.
        value: u16,
    },
    /// A section index beyond the section table.
    #[error("symbol {index} `{name}`: st_shndx is {value}, must be below e_shnum {count}")]
    SectionCount {
        /// Place in the table.
        index: usize,
        /// Name.
        name: String,
        /// As read.
        value: u16,
        /// Sections.
        count: usize,
    },
    /// A variable or function outside the image.
    #[error("symbol {index} `{name}`: st_value {vaddr:#x} with st_size {size:#x} is not inside a PT_LOAD segment")]
    Outside {
        /// Place in the table.
        index: usize,
        /// Name.
        name: String,
        /// `st_value`.
        vaddr: u64,
        /// `st_size`.
        size: u64,
    },
    /// The reader failed where the ranges were found right before.
    #[error("{what} cannot be read: {reason}")]
    Reader {
        /// Which table.
        what: &'static str,
        /// The reader's words.
        reason: String,
    },
    /// A name that occurs once among the symbols that are not local.
    #[error("symbols {first} and {second} are both called `{name}`: they must differ")]
    Twice {
        /// Name.
        name: String,
        /// Place of the first.
        first: usize,
        /// Place of the second.
        second: usize,
    },
    /// A section's file part ends beyond the file.
    #[error("section {index}: sh_offset {offset:#x} + sh_size {size:#x} is beyond the file's {len:#x} bytes")]
    SectionOutsideFile {
        /// Place in the section table.
        index: usize,
        /// `sh_offset`.
        offset: u64,
        /// `sh_size`.
        size: u64,
        /// Bytes of the file.
        len: usize,
    },
    /// The section table's idea of the symbol table.
    #[error(
        "section {index} (SHT_DYNSYM): {field} is {value:#x}, must be {rule:#x}{}",
        if *field == "sh_entsize" { "" } else { ", as PT_DYNAMIC says" }
    )]
    DynsymSection {
        /// Place in the section table.
        index: usize,
        /// `sh_entsize`, `sh_addr` or `sh_size`.
        field: &'static str,
        /// As read.
        value: u64,
        /// What it must be.
        rule: u64,
    },
}

fn symbol_type(value: u8) -> &'static str {
    match value {
        STT_TLS => "thread-local",
        STT_AMDGPU_HSA_KERNEL => "kernel of code object V2",
        _ => "unknown",
    }
}

fn section_index(value: u16) -> &'static str {
    match value {
        SHN_AMDGPU_LDS => "LDS variable of an unlinked object",
        0xfff2 => "common",
        0xffff => "extended index",
        _ => "reserved",
    }
}

/// Reads the dynamic symbols; number 0, the null symbol, has an empty name and is undefined.
pub(crate) fn parse<'a>(
    segments: &Segments<'a>,
    dynamic: &Dynamic<'a>,
    section_count: Option<usize>,
) -> Result<Vec<Symbol<'a>>, SymbolError> {
    let count = dynamic.symbols.len() / 24;
    if count == 0 {
        return Ok(vec![]);
    }
    let table = Symtab::parse(dynamic.symbols, 0, count, CTX)
        .map_err(|error| SymbolError::Reader { what: "dynamic symbols", reason: error.to_string() })?;
    let mut symbols = Vec::with_capacity(count);
    for (index, s) in table.iter().enumerate() {
        let name = string(dynamic.strings, index, s.st_name)?;
        let owned = || shown(name);
        let kind = match s.st_type() {
            STT_OBJECT | STT_COMMON => SymbolKind::Object,
            STT_FUNC => SymbolKind::Function,
            STT_NOTYPE | STT_SECTION | STT_FILE => SymbolKind::Other,
            value => return Err(SymbolError::Type { index, name: owned(), value }),
        };
        if !matches!(s.st_bind(), STB_LOCAL | STB_GLOBAL | STB_WEAK) {
            return Err(SymbolError::Binding { index, name: owned(), value: s.st_bind() });
        }
        // An st_shndx is 16 bits.
        let section = s.st_shndx as u16;
        let place = match u32::from(section) {
            SHN_UNDEF => Place::Undefined,
            SHN_ABS => Place::Absolute(s.st_value),
            SHN_LORESERVE.. => return Err(SymbolError::Section { index, name: owned(), value: section }),
            _ => Place::Image(s.st_value),
        };
        if let Some(count) = section_count.filter(|&count| s.st_shndx >= count && place == Place::Image(s.st_value)) {
            return Err(SymbolError::SectionCount { index, name: owned(), value: section, count });
        }
        if let (Place::Image(vaddr), SymbolKind::Object | SymbolKind::Function) = (place, kind)
            && segments.find(vaddr, s.st_size).is_none()
        {
            return Err(SymbolError::Outside { index, name: owned(), vaddr, size: s.st_size });
        }
        let (local, weak) = (s.st_bind() == STB_LOCAL, s.st_bind() == STB_WEAK);
        symbols.push(Symbol { name, kind, place, size: s.st_size, local, weak });
    }
    Ok(symbols)
}

/// The string at an offset of a table that ends with a NUL.
fn string(strings: &[u8], index: usize, offset: usize) -> Result<&str, SymbolError> {
    let size = strings.len();
    let rest = strings.get(offset..).filter(|rest| !rest.is_empty());
    let rest = rest.ok_or(SymbolError::Name { index, offset, size })?;
    let end = rest.iter().position(|&byte| byte == 0).unwrap_or(rest.len());
    std::str::from_utf8(&rest[..end]).map_err(|_| SymbolError::NameText { index, offset })
}

/// Checks the section headers, when there are any, against the file and against PT_DYNAMIC. Nothing is read from them.
pub(crate) fn check_sections(bytes: &[u8], header: &Header, dynamic: &Dynamic<'_>) -> Result<(), SymbolError> {
    let Some((offset, count)) = header.sections else { return Ok(()) };
    let table = SectionHeader::parse_from(bytes, offset, count, CTX)
        .map_err(|error| SymbolError::Reader { what: "section headers", reason: error.to_string() })?;
    for (index, s) in table.iter().enumerate() {
        if s.sh_type == SHT_NULL || s.sh_type == SHT_NOBITS {
            continue;
        }
        let (offset, size, len) = (s.sh_offset, s.sh_size, bytes.len());
        if offset.checked_add(size).is_none_or(|end| end > len as u64) {
            return Err(SymbolError::SectionOutsideFile { index, offset, size, len });
        }
        if s.sh_type == SHT_DYNSYM {
            let rules = [
                ("sh_entsize", s.sh_entsize, 24),
                ("sh_addr", s.sh_addr, dynamic.symtab),
                ("sh_size", s.sh_size, dynamic.symbols.len() as u64),
            ];
            for (field, value, rule) in rules {
                if value != rule {
                    return Err(SymbolError::DynsymSection { index, field, value, rule });
                }
            }
        }
    }
    Ok(())
}

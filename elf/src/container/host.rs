//! Sections of host ELF files that hold device code (System V ABI, "Sections").

use std::ops::Range;

use super::bundle;
use super::read::{Cut, range, take, u16_at, u32_at, u64_at};

/// What HIP's host code registers.
const HIP_FATBIN: &str = ".hip_fatbin";
/// Offload binaries, for the linker or for OpenMP's run time.
const LLVM_OFFLOADING: &str = ".llvm.offloading";
/// What is left where device code was moved to a `.kpack` file.
const KPACK_REF: &[u8] = b".rocm_kpack_ref\0";
/// Start of the names of sections with the parts of an object file that is not linked (`-fgpu-rdc`).
const OBJECT_BUNDLE: &[u8] = bundle::MAGIC;

const SHT_NOBITS: u32 = 8;
const SHT_LLVM_OFFLOADING: u32 = 0x6fff_4c0b;
const SHF_COMPRESSED: u64 = 0x800;
/// `e_shstrndx` when the index is in the first section header's `sh_link`.
const SHN_XINDEX: u16 = 0xffff;
const SECTION_BYTES: u64 = 64;

/// What a host ELF file must say.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The data end inside a field.
    #[error(transparent)]
    Cut(#[from] Cut),
    /// `EI_CLASS` or `EI_DATA`.
    #[error("{field} is {value}, must be {rule}: only 64-bit little-endian hosts have AMD GPUs")]
    Ident {
        /// Which.
        field: &'static str,
        /// As read.
        value: u8,
        /// What it must be.
        rule: u8,
    },
    /// No section headers.
    #[error("e_shoff is 0: the section headers are stripped, so its device code cannot be found")]
    Stripped,
    /// `e_shentsize`.
    #[error("e_shentsize is {value}, must be 64")]
    EntrySize {
        /// As read.
        value: u16,
    },
    /// The section headers end beyond the file.
    #[error("e_shoff is {offset:#x}: {count} section headers there end beyond the {len:#x} bytes of the file")]
    Headers {
        /// As read.
        offset: u64,
        /// How many.
        count: u64,
        /// Bytes of the file.
        len: usize,
    },
    /// `e_shstrndx`.
    #[error("e_shstrndx is {value}, must be less than the number of sections, {count}")]
    Names {
        /// As read.
        value: u64,
        /// How many.
        count: u64,
    },
    /// A section ends beyond the file.
    #[error(
        "section {name}: offset {offset:#x} and size {size:#x} end beyond the {len:#x} bytes of the file, which is \
         truncated"
    )]
    Section {
        /// Its name.
        name: &'static str,
        /// As read.
        offset: u64,
        /// As read.
        size: u64,
        /// Bytes of the file.
        len: usize,
    },
    /// The section is not in the file.
    #[error("section {name} is SHT_NOBITS: the file has no bytes for it, as a file with debug information only")]
    NoBits {
        /// Its name.
        name: &'static str,
    },
    /// The section is compressed as debug information is.
    #[error("section {name} has SHF_COMPRESSED, which is not supported")]
    SectionCompressed {
        /// Its name.
        name: &'static str,
    },
    /// A program without device code.
    #[error("the file is for {machine} and has no device code: no section .hip_fatbin or .llvm.offloading with bytes")]
    NoDeviceCode {
        /// Name of the machine.
        machine: &'static str,
    },
    /// The device code is in a host object, each part in a section that has its id in its name.
    #[error(
        "its device code is in sections __CLANG_OFFLOAD_BUNDLE__..., one for each target, which is not supported: link \
         it, or take a part out with clang-offload-bundler --unbundle --type=o"
    )]
    ObjectBundle,
    /// The device code is elsewhere.
    #[error(
        "its device code is not in the file but in a ROCm kpack archive (section .rocm_kpack_ref), which is not supported"
    )]
    Kpack,
}

pub(super) struct Section {
    pub name: &'static str,
    pub range: Range<usize>,
}

pub(super) struct Host {
    /// Those with device code, in the order of the section headers.
    pub sections: Vec<Section>,
    /// Where else the device code is.
    pub elsewhere: Option<HostError>,
}

/// Finds the sections with device code. `bytes` start with the ELF magic.
pub(super) fn parse(bytes: &[u8]) -> Result<Host, HostError> {
    let ident = take(bytes, "the ELF header", 0, 64)?;
    for (field, value, rule) in [("EI_CLASS", ident[4], 2), ("EI_DATA", ident[5], 1)] {
        if value != rule {
            return Err(HostError::Ident { field, value, rule });
        }
    }
    let offset = u64_at(bytes, "e_shoff", 0x28)?;
    let entry_size = u16_at(bytes, "e_shentsize", 0x3a)?;
    let mut count = u64::from(u16_at(bytes, "e_shnum", 0x3c)?);
    let names = u16_at(bytes, "e_shstrndx", 0x3e)?;
    if offset == 0 {
        return Err(HostError::Stripped);
    }
    if u64::from(entry_size) != SECTION_BYTES {
        return Err(HostError::EntrySize { value: entry_size });
    }
    let headers = |count: u64| {
        let table = range(offset, count.checked_mul(SECTION_BYTES)?)?;
        bytes.get(table).map(|table| table.chunks_exact(SECTION_BYTES as usize))
    };
    let outside = |count| HostError::Headers { offset, count, len: bytes.len() };
    // Numbers that do not fit the ELF header are in the first section header.
    let first = headers(1).and_then(|mut one| one.next()).ok_or(outside(1))?;
    if count == 0 {
        count = u64_at(first, "sh_size", 0x20)?;
    }
    let names = match names {
        SHN_XINDEX => u64::from(u32_at(first, "sh_link", 0x28)?),
        index => u64::from(index),
    };
    let headers = headers(count).ok_or(outside(count))?;
    if names >= count {
        return Err(HostError::Names { value: names, count });
    }
    let names = headers.clone().nth(names as usize).unwrap_or_default();
    let names = place(names)?;
    let names = range(names.0, names.1).and_then(|range| bytes.get(range)).unwrap_or_default();

    let mut host = Host { sections: vec![], elsewhere: None };
    for header in headers {
        let kind = u32_at(header, "sh_type", 4)?;
        let at = u32_at(header, "sh_name", 0)? as usize;
        let text = names.get(at..).unwrap_or_default();
        let is = |name: &str| text.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&0));
        let name = if is(HIP_FATBIN) {
            HIP_FATBIN
        } else if kind == SHT_LLVM_OFFLOADING || is(LLVM_OFFLOADING) {
            LLVM_OFFLOADING
        } else {
            if text.starts_with(KPACK_REF) {
                host.elsewhere = Some(HostError::Kpack);
            } else if text.starts_with(OBJECT_BUNDLE) {
                host.elsewhere = Some(HostError::ObjectBundle);
            }
            continue;
        };
        if kind == SHT_NOBITS {
            return Err(HostError::NoBits { name });
        }
        if u64_at(header, "sh_flags", 8)? & SHF_COMPRESSED != 0 {
            return Err(HostError::SectionCompressed { name });
        }
        let (offset, size) = place(header)?;
        let range = range(offset, size).filter(|range| range.end <= bytes.len());
        let range = range.ok_or(HostError::Section { name, offset, size, len: bytes.len() })?;
        host.sections.push(Section { name, range });
    }
    Ok(host)
}

/// `sh_offset` and `sh_size`.
fn place(header: &[u8]) -> Result<(u64, u64), Cut> {
    Ok((u64_at(header, "sh_offset", 0x18)?, u64_at(header, "sh_size", 0x20)?))
}

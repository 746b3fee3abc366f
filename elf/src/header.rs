//! The ELF header and the target in `e_flags` (LLVM AMDGPUUsage: "ELF Code Object", "Header").

use std::fmt;

use goblin::container::{Container, Ctx, Endian};
use goblin::elf::header::{self, Header as ElfHeader};

use crate::target::{Feature, Processor, TargetId};

/// Bytes of the ELF header.
pub(crate) const HEADER_BYTES: usize = 64;
const EM_AMDGPU: u16 = 224;
const ELFOSABI_AMDGPU_HSA: u8 = 64;

/// How goblin reads the 64-bit little-endian structures.
pub(crate) const CTX: Ctx = Ctx { container: Container::Big, le: Endian::Little };

/// Code object version, from `EI_ABIVERSION`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// `EI_ABIVERSION` 1.
    V3,
    /// `EI_ABIVERSION` 2.
    V4,
    /// `EI_ABIVERSION` 3.
    V5,
    /// `EI_ABIVERSION` 4.
    V6,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// What the ELF header must say.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// Shorter than the header.
    #[error("the file has {len} bytes: an ELF header has 64")]
    Short {
        /// Bytes of the file.
        len: usize,
    },
    /// `EI_CLASS`.
    #[error("EI_CLASS is {value}, must be 2 (ELFCLASS64)")]
    Class {
        /// As read.
        value: u8,
    },
    /// `EI_DATA`.
    #[error("EI_DATA is {value}, must be 1 (little endian)")]
    Data {
        /// As read.
        value: u8,
    },
    /// `EI_VERSION` or `e_version`.
    #[error("{field} is {value}, must be 1")]
    ElfVersion {
        /// Which.
        field: &'static str,
        /// As read.
        value: u32,
    },
    /// `EI_OSABI`.
    #[error(
        "EI_OSABI is {value} ({}), must be 64 (AMDGPU HSA): compile with --target=amdgcn-amd-amdhsa",
        osabi(*value)
    )]
    OsAbi {
        /// As read.
        value: u8,
    },
    /// `EI_ABIVERSION` 0: code object V2.
    #[error(
        "EI_ABIVERSION is 0 (code object V2), must be 1 to 4 (V3 to V6): compile with -mcode-object-version=4 or later"
    )]
    V2,
    /// Any other `EI_ABIVERSION`.
    #[error(
        "EI_ABIVERSION is {value}, must be 1 to 4 (code object V3 to V6): the object is of a newer form than is known \
         here; compile with -mcode-object-version=6 or earlier"
    )]
    AbiVersion {
        /// As read.
        value: u8,
    },
    /// `e_type` 1.
    #[error("e_type is 1 (ET_REL): the object is not linked; link it with ld.lld -shared")]
    Unlinked,
    /// Any other `e_type`.
    #[error("e_type is {value}, must be 3 (ET_DYN)")]
    Type {
        /// As read.
        value: u16,
    },
    /// `e_ehsize`, `e_phentsize` or `e_shentsize`.
    #[error("{field} is {value}, must be {rule}")]
    EntrySize {
        /// Which.
        field: &'static str,
        /// As read.
        value: u16,
        /// What it must be.
        rule: u16,
    },
    /// No program headers, or an extended count.
    #[error("e_phnum is {value}, must be 1 to 65534")]
    ProgramHeaderCount {
        /// As read.
        value: u16,
    },
    /// The program or section headers end beyond the file.
    #[error("{field} is {offset:#x}: {count} headers of {entry} bytes there end beyond the file's {len} bytes")]
    HeadersOutside {
        /// `e_phoff` or `e_shoff`.
        field: &'static str,
        /// As read.
        offset: u64,
        /// How many.
        count: u16,
        /// Bytes each.
        entry: u16,
        /// Bytes of the file.
        len: usize,
    },
    /// `EF_AMDGPU_MACH` of the R600 family or not a processor.
    #[error(
        "e_flags is {flags:#x}: processor number (bits 0-7) {mach:#04x} is {}",
        match mach {
            1..=0x10 => "R600 family, which has no HSA",
            _ => "not a known amdgcn processor",
        }
    )]
    Processor {
        /// `e_flags`.
        flags: u32,
        /// Its low byte.
        mach: u8,
    },
    /// A feature field disagrees with the processor.
    #[error(
        "e_flags is {flags:#x}: {feature} (bits {bits}) is {}, but {processor} {}",
        setting.name(),
        match setting {
            Feature::Unsupported => "has it: must be 1 (any), 2 (off) or 3 (on)",
            _ => "does not have it: must be 0",
        }
    )]
    Feature {
        /// `e_flags`.
        flags: u32,
        /// `xnack` or `sramecc`.
        feature: &'static str,
        /// Where.
        bits: &'static str,
        /// What it says.
        setting: Feature,
        /// The processor.
        processor: &'static str,
    },
    /// A generic processor has a version, and nothing else has one.
    #[error("e_flags is {flags:#x}: generic version (bits 24-31) is {value}, must be {} for {processor}",
        if *value == 0 { "1 to 255" } else { "0" })]
    GenericVersion {
        /// `e_flags`.
        flags: u32,
        /// As read.
        value: u8,
        /// The processor.
        processor: &'static str,
    },
    /// Generic processors came with V6.
    #[error(
        "e_flags is {flags:#x} ({processor}): generic processors need code object V6, EI_ABIVERSION says {version}"
    )]
    GenericBeforeV6 {
        /// `e_flags`.
        flags: u32,
        /// The processor.
        processor: &'static str,
        /// Of the file.
        version: Version,
    },
    /// Bits no version defines.
    #[error("e_flags is {flags:#x}: bits {reserved:#x} are not defined in code object {version}, must be zero")]
    ReservedFlags {
        /// `e_flags`.
        flags: u32,
        /// Those bits.
        reserved: u32,
        /// Of the file.
        version: Version,
    },
}

impl HeaderError {
    /// A word for the rule that was broken, the same in every version.
    pub fn code(&self) -> &'static str {
        match self {
            HeaderError::Short { .. } => "header-short",
            HeaderError::Class { .. } => "header-class",
            HeaderError::Data { .. } => "header-data",
            HeaderError::ElfVersion { .. } => "header-version",
            HeaderError::OsAbi { .. } => "header-osabi",
            HeaderError::V2 => "code-object-v2",
            HeaderError::AbiVersion { .. } => "code-object-unknown-version",
            HeaderError::Unlinked => "not-linked",
            HeaderError::Type { .. } => "header-type",
            HeaderError::EntrySize { .. } => "header-entry-size",
            HeaderError::ProgramHeaderCount { .. } => "header-program-headers",
            HeaderError::HeadersOutside { .. } => "header-outside",
            HeaderError::Processor { .. } => "flags-processor",
            HeaderError::Feature { .. } => "flags-feature",
            HeaderError::GenericVersion { .. } => "flags-generic-version",
            HeaderError::GenericBeforeV6 { .. } => "flags-generic-before-v6",
            HeaderError::ReservedFlags { .. } => "flags-reserved",
        }
    }
}

fn osabi(value: u8) -> &'static str {
    match value {
        0 => "none",
        3 => "Linux",
        65 => "AMDGPU PAL",
        66 => "AMDGPU Mesa3D",
        _ => "not an AMDGPU ABI",
    }
}

/// What the rest of the parser takes from the header.
pub(crate) struct Header {
    pub version: Version,
    pub target: TargetId,
    pub phoff: usize,
    pub phnum: usize,
    /// Offset and count of the section headers, when there are any.
    pub sections: Option<(usize, usize)>,
}

/// Reads the header of a file that starts with the ELF magic and is for AMDGPU.
pub(crate) fn parse(bytes: &[u8]) -> Result<Header, HeaderError> {
    let short = HeaderError::Short { len: bytes.len() };
    let ident = bytes.get(..HEADER_BYTES).ok_or(short.clone())?;
    if ident[header::EI_DATA] != header::ELFDATA2LSB {
        return Err(HeaderError::Data { value: ident[header::EI_DATA] });
    }
    if ident[header::EI_CLASS] != header::ELFCLASS64 {
        return Err(HeaderError::Class { value: ident[header::EI_CLASS] });
    }
    if ident[header::EI_VERSION] != 1 {
        return Err(HeaderError::ElfVersion { field: "EI_VERSION", value: u32::from(ident[header::EI_VERSION]) });
    }
    if ident[header::EI_OSABI] != ELFOSABI_AMDGPU_HSA {
        return Err(HeaderError::OsAbi { value: ident[header::EI_OSABI] });
    }
    let version = match ident[header::EI_ABIVERSION] {
        0 => return Err(HeaderError::V2),
        1 => Version::V3,
        2 => Version::V4,
        3 => Version::V5,
        4 => Version::V6,
        value => return Err(HeaderError::AbiVersion { value }),
    };

    // Class, data and length are as goblin wants them.
    let h = goblin::elf::Elf::parse_header(bytes).map_err(|_| short)?;
    debug_assert_eq!(h.e_machine, EM_AMDGPU);
    match h.e_type {
        header::ET_DYN => {}
        header::ET_REL => return Err(HeaderError::Unlinked),
        value => return Err(HeaderError::Type { value }),
    }
    if h.e_version != 1 {
        return Err(HeaderError::ElfVersion { field: "e_version", value: h.e_version });
    }
    for (field, value, rule) in [("e_ehsize", h.e_ehsize, 64), ("e_phentsize", h.e_phentsize, 56)] {
        if value != rule {
            return Err(HeaderError::EntrySize { field, value, rule });
        }
    }
    if h.e_phnum == 0 || h.e_phnum == u16::MAX {
        return Err(HeaderError::ProgramHeaderCount { value: h.e_phnum });
    }
    let phoff = table(bytes, "e_phoff", h.e_phoff, h.e_phnum, 56)?;
    Ok(Header {
        version,
        target: target(h.e_flags, version)?,
        phoff,
        phnum: usize::from(h.e_phnum),
        sections: sections(bytes, &h)?,
    })
}

/// Section headers may be gone; if they are there, they must be whole.
fn sections(bytes: &[u8], h: &ElfHeader) -> Result<Option<(usize, usize)>, HeaderError> {
    if h.e_shoff == 0 || h.e_shnum == 0 {
        return Ok(None);
    }
    if h.e_shentsize != 64 {
        return Err(HeaderError::EntrySize { field: "e_shentsize", value: h.e_shentsize, rule: 64 });
    }
    let shoff = table(bytes, "e_shoff", h.e_shoff, h.e_shnum, 64)?;
    Ok(Some((shoff, usize::from(h.e_shnum))))
}

/// The offset of a table that lies in the file.
fn table(bytes: &[u8], field: &'static str, offset: u64, count: u16, entry: u16) -> Result<usize, HeaderError> {
    let len = bytes.len();
    let outside = HeaderError::HeadersOutside { field, offset, count, entry, len };
    match offset.checked_add(u64::from(count) * u64::from(entry)) {
        Some(end) if end <= len as u64 => usize::try_from(offset).map_err(|_| outside),
        _ => Err(outside),
    }
}

/// Target id from `e_flags` of a code object of this version.
pub fn target(flags: u32, version: Version) -> Result<TargetId, HeaderError> {
    let mach = flags as u8;
    let Some(processor) = Processor::by_mach(mach) else {
        return Err(HeaderError::Processor { flags, mach });
    };
    let reserved = flags
        & match version {
            Version::V3 => !0x3ff,
            Version::V4 | Version::V5 => !0xfff,
            Version::V6 => 0x00ff_f000,
        };
    let name = processor.name;
    if processor.is_generic() && version < Version::V6 {
        return Err(HeaderError::GenericBeforeV6 { flags, processor: name, version });
    }
    if reserved != 0 {
        return Err(HeaderError::ReservedFlags { flags, reserved, version });
    }
    let generic_version = (flags >> 24) as u8;
    if processor.is_generic() == (generic_version == 0) {
        return Err(HeaderError::GenericVersion { flags, value: generic_version, processor: name });
    }

    let feature = |feature, has: bool, v3_bit: u32, shift: u32, bits| {
        let setting = match version {
            Version::V3 if flags & v3_bit != 0 => Feature::On,
            Version::V3 if has => Feature::Off,
            Version::V3 => Feature::Unsupported,
            _ => Feature::from_bits(flags >> shift),
        };
        if has == (setting == Feature::Unsupported) {
            return Err(HeaderError::Feature { flags, feature, bits, setting, processor: name });
        }
        Ok(setting)
    };
    let v3 = version == Version::V3;
    Ok(TargetId {
        processor,
        xnack: feature("xnack", processor.has_xnack, 0x100, 8, if v3 { "8" } else { "8-9" })?,
        sramecc: feature("sramecc", processor.has_sramecc, 0x200, 10, if v3 { "9" } else { "10-11" })?,
        generic_version,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Flags that compilers write.
    #[test]
    fn flags_to_target_ids() {
        use Version::{V3, V4, V6};
        for (flags, version, want) in [
            (0x12c, V4, "gfx900"),
            (0x52f, V4, "gfx906"),
            (0x62f, V4, "gfx906:xnack-"),
            (0x53f, V6, "gfx90a"),
            (0x73f, V6, "gfx90a:xnack+"),
            (0xa3f, V6, "gfx90a:sramecc-:xnack-"),
            (0x32f, V3, "gfx906:sramecc+:xnack+"),
            (0x02f, V3, "gfx906:sramecc-:xnack-"),
            (0x041, V4, "gfx1100"),
            (0x549, V6, "gfx1250"),
            (0x0100_0151, V6, "gfx9-generic"),
            (0x0100_055f, V6, "gfx9-4-generic"),
            (0x0100_0054, V6, "gfx11-generic"),
            (0x0100_0059, V6, "gfx12-generic"),
        ] {
            assert_eq!(target(flags, version).unwrap().to_string(), want, "{flags:#x}");
        }
        assert_eq!(target(0x12c, V4).unwrap().xnack, Feature::Any);
        assert_eq!(target(0x0200_0054, V6).unwrap().generic_version, 2);
    }

    #[test]
    fn flags_that_contradict_themselves() {
        use Version::{V3, V5, V6};
        for (flags, version, message) in [
            (0xfe, V6, "e_flags is 0xfe: processor number (bits 0-7) 0xfe is not a known amdgcn processor"),
            (0x05, V6, "e_flags is 0x5: processor number (bits 0-7) 0x05 is R600 family, which has no HSA"),
            (0x241, V6, "e_flags is 0x241: xnack (bits 8-9) is off, but gfx1100 does not have it: must be 0"),
            (
                0x43f,
                V5,
                "e_flags is 0x43f: xnack (bits 8-9) is unsupported, but gfx90a has it: must be 1 (any), 2 (off) or \
                 3 (on)",
            ),
            (0x141, V3, "e_flags is 0x141: xnack (bits 8) is on, but gfx1100 does not have it: must be 0"),
            (0x0100_0041, V6, "e_flags is 0x1000041: generic version (bits 24-31) is 1, must be 0 for gfx1100"),
            (0x54, V6, "e_flags is 0x54: generic version (bits 24-31) is 0, must be 1 to 255 for gfx11-generic"),
            (
                0x0100_0054,
                V5,
                "e_flags is 0x1000054 (gfx11-generic): generic processors need code object V6, EI_ABIVERSION says V5",
            ),
            (0x1041, V6, "e_flags is 0x1041: bits 0x1000 are not defined in code object V6, must be zero"),
            (0x0100_0041, V5, "e_flags is 0x1000041: bits 0x1000000 are not defined in code object V5, must be zero"),
            (0x441, V3, "e_flags is 0x441: bits 0x400 are not defined in code object V3, must be zero"),
        ] {
            assert_eq!(target(flags, version).unwrap_err().to_string(), message);
        }
    }
}

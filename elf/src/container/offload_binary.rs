//! LLVM offload binaries (Clang documentation: "Clang Offload Packager"; LLVM's `OffloadBinary.h`).
//!
//! A header, entries of 40 bytes, tables of strings and images; all offsets count from the magic. Version 1 has one
//! entry and says its size where later versions say the number of entries. From version 2 the value of a string has a
//! length, from version 3 everything after the header may be compressed.

use std::ops::Range;

use super::entry::OffloadKind;
use super::inflate::{self, Budget, InflateError, Method};
use super::read::{Cut, overlap, range, take, u16_at, u32_at, u64_at};

pub(super) const MAGIC: &[u8] = b"\x10\xff\x10\xad";

/// Bytes of an entry.
const ENTRY_BYTES: u64 = 40;
/// Entry flag: there is no image.
const METADATA_ONLY: u32 = 1;
/// The longest triple or arch.
const MAX_NAME: u64 = 4096;
/// Image kind of PTX, which has no magic number of its own.
const IMAGE_PTX: u16 = 5;

/// What an offload binary must say.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OffloadBinaryError {
    /// The data end inside a field.
    #[error(transparent)]
    Cut(#[from] Cut),
    /// A version of later.
    #[error("the version is {value}, must be 1 to 3")]
    Version {
        /// As read.
        value: u32,
    },
    /// The size is less than the header.
    #[error("the size is {size}, must be {header}, the size of the header, or more")]
    Size {
        /// As read.
        size: u64,
        /// Bytes of the header.
        header: u64,
    },
    /// The size is more than there is.
    #[error("the size is {size}, {left} bytes are left: the file is truncated")]
    Truncated {
        /// As read.
        size: u64,
        /// Bytes from the magic to the end.
        left: usize,
    },
    /// Version 1: the entry has another size.
    #[error("the size of the entry is {value}, must be 40")]
    EntrySize {
        /// As read.
        value: u64,
    },
    /// The entries are not inside.
    #[error("{count} entries of 40 bytes at {offset:#x} must be between the header and the end, {size:#x}")]
    Entries {
        /// How many.
        count: u64,
        /// As read.
        offset: u64,
        /// Bytes of the binary, uncompressed.
        size: u64,
    },
    /// More entries than allowed.
    #[error("the number of entries is {count}, the limit is {limit}")]
    TooMany {
        /// As read.
        count: u64,
        /// The limit.
        limit: usize,
    },
    /// A part of an entry is not inside.
    #[error(
        "entry {entry}: {what} at {offset:#x} with {len:#x} bytes must be inside the {size:#x} bytes of the binary"
    )]
    Outside {
        /// Number of the entry.
        entry: u64,
        /// Image, string table, key or value.
        what: &'static str,
        /// As read.
        offset: u64,
        /// Its bytes.
        len: u64,
        /// Bytes of the binary, uncompressed.
        size: u64,
    },
    /// The tables cannot all be there.
    #[error(
        "entry {entry}: {count} strings, with those before it more than the {size:#x} bytes of the binary can hold"
    )]
    Strings {
        /// Number of the entry.
        entry: u64,
        /// As read.
        count: u64,
        /// Bytes of the binary, uncompressed.
        size: u64,
    },
    /// A string that does not end, or is not a name.
    #[error("entry {entry}: the string `{key}` is `{}`, must be printable text of at most 4096 bytes",
        value.escape_ascii())]
    Text {
        /// Number of the entry.
        entry: u64,
        /// `triple` or `arch`.
        key: &'static str,
        /// As read, at most 64 bytes.
        value: Vec<u8>,
    },
    /// A string is there twice.
    #[error("entry {entry}: the string `{key}` is given twice")]
    Twice {
        /// Number of the entry.
        entry: u64,
        /// `triple` or `arch`.
        key: &'static str,
    },
    /// Two images share bytes.
    #[error("the images of entries {first} and {second} overlap")]
    Overlap {
        /// Number of one.
        first: usize,
        /// Number of the other.
        second: usize,
    },
    /// The stream does not give what the header says.
    #[error(transparent)]
    Inflate(#[from] InflateError),
    /// More than one stream.
    #[error("{left} bytes are left after the {method} stream: it must end where the size {size} says")]
    Rest {
        /// How it is compressed.
        method: Method,
        /// Bytes after the stream.
        left: usize,
        /// As read.
        size: u64,
    },
}

pub(super) struct Header {
    pub version: u32,
    /// Bytes in the file; they are there.
    pub size: usize,
    entries_offset: u64,
    entries: u64,
    bytes: u64,
    /// Bytes uncompressed, when it is compressed.
    inflated: Option<u64>,
}

/// An entry.
pub(super) struct Item {
    pub kind: OffloadKind,
    pub triple: String,
    pub arch: String,
    pub range: Range<usize>,
    pub metadata_only: bool,
    pub ptx: bool,
}

/// Reads the header at the start of `bytes`.
pub(super) fn header(bytes: &[u8]) -> Result<Header, OffloadBinaryError> {
    let version = u32_at(bytes, "the version", 4)?;
    if !(1..=3).contains(&version) {
        return Err(OffloadBinaryError::Version { value: version });
    }
    let size = u64_at(bytes, "the size", 8)?;
    let entries_offset = u64_at(bytes, "the offset of the entries", 16)?;
    let entries = u64_at(bytes, "the number of entries", 24)?;
    let (header, inflated) = match version {
        3 => (40, Some(u64_at(bytes, "the uncompressed size", 32)?).filter(|&size| size != 0)),
        _ => (32, None),
    };
    if size < header {
        return Err(OffloadBinaryError::Size { size, header });
    }
    if size > bytes.len() as u64 {
        return Err(OffloadBinaryError::Truncated { size, left: bytes.len() });
    }
    let entries = match version {
        1 if entries != ENTRY_BYTES => return Err(OffloadBinaryError::EntrySize { value: entries }),
        1 => 1,
        _ => entries,
    };
    let whole = inflated.unwrap_or(size);
    let end = entries.checked_mul(ENTRY_BYTES).and_then(|len| len.checked_add(entries_offset));
    if entries_offset < header || entries_offset > size || end.is_none_or(|end| end > whole) {
        return Err(OffloadBinaryError::Entries { count: entries, offset: entries_offset, size: whole });
    }
    Ok(Header { version, size: size as usize, entries_offset, entries, bytes: header, inflated })
}

/// The binary as it would be without compression: all from the entries on is one stream.
pub(super) fn uncompress(
    bytes: &[u8],
    header: &Header,
    budget: &mut Budget,
) -> Result<Option<(Vec<u8>, Method)>, OffloadBinaryError> {
    let Some(inflated) = header.inflated else { return Ok(None) };
    let (head, stream) = bytes[..header.size].split_at(header.entries_offset as usize);
    let method = inflate::detect(stream);
    // The entries are checked to be inside, so there is more than the head.
    let (body, used) = inflate::inflate(method, stream, inflated - header.entries_offset, budget)?;
    if used != stream.len() {
        return Err(OffloadBinaryError::Rest { method, left: stream.len() - used, size: header.size as u64 });
    }
    Ok(Some(([head, &body].concat(), method)))
}

/// Reads the entries of a whole, uncompressed binary.
pub(super) fn parse(bytes: &[u8], header: &Header, max_entries: usize) -> Result<Vec<Item>, OffloadBinaryError> {
    if header.entries > max_entries as u64 {
        return Err(OffloadBinaryError::TooMany { count: header.entries, limit: max_entries });
    }
    let mut items = vec![];
    // Every table of strings has bytes of its own, else the work would grow with the square of the size.
    let mut strings_left = bytes.len() as u64;
    for entry in 0..header.entries {
        items.push(item(bytes, header, entry, &mut strings_left)?);
    }
    if let Some((first, second)) = overlap(items.iter().map(|item| item.range.clone())) {
        return Err(OffloadBinaryError::Overlap { first, second });
    }
    Ok(items)
}

fn item(bytes: &[u8], header: &Header, entry: u64, strings_left: &mut u64) -> Result<Item, OffloadBinaryError> {
    let at = header.entries_offset + entry * ENTRY_BYTES;
    let image_kind = u16_at(bytes, "the image kind", at)?;
    let offload_kind = u16_at(bytes, "the offload kind", at + 2)?;
    let flags = u32_at(bytes, "the flags", at + 4)?;
    let strings = u64_at(bytes, "the offset of the strings", at + 8)?;
    let count = u64_at(bytes, "the number of strings", at + 16)?;
    let image = u64_at(bytes, "the offset of the image", at + 24)?;
    let image_size = u64_at(bytes, "the size of the image", at + 32)?;

    let size = bytes.len() as u64;
    let outside = |what, offset, len| OffloadBinaryError::Outside { entry, what, offset, len, size };
    let metadata_only = header.version > 1 && flags & METADATA_ONLY != 0;
    let range = match range(image, image_size) {
        _ if image_size == 0 => 0..0,
        Some(range) if image >= header.bytes && range.end <= bytes.len() => range,
        _ => return Err(outside("the image", image, image_size)),
    };

    let string_bytes: u64 = if header.version == 1 { 16 } else { 24 };
    let table = count.saturating_mul(string_bytes);
    let table = take(bytes, "", strings, table).map_err(|_| outside("the string table", strings, table))?;
    *strings_left =
        strings_left.checked_sub(table.len() as u64).ok_or(OffloadBinaryError::Strings { entry, count, size })?;
    let (mut triple, mut arch) = (None, None);
    for pair in table.chunks_exact(string_bytes as usize) {
        let offset = u64_at(pair, "the offset of a key", 0)?;
        let (key, slot) = match from(bytes, offset).ok_or_else(|| outside("a key", offset, 1))? {
            [b't', b'r', b'i', b'p', b'l', b'e', 0, ..] => ("triple", &mut triple),
            [b'a', b'r', b'c', b'h', 0, ..] => ("arch", &mut arch),
            _ => continue,
        };
        let offset = u64_at(pair, "the offset of a value", 8)?;
        let value = if header.version == 1 {
            let rest = from(bytes, offset).ok_or_else(|| outside("a value", offset, 1))?;
            let len = rest.iter().take(MAX_NAME as usize + 1).take_while(|&&byte| byte != 0).count();
            // Without its NUL it is as long as can be seen.
            if rest.get(len) == Some(&0) { Ok(&rest[..len]) } else { Err(&rest[..len]) }
        } else {
            let len = u64_at(pair, "the size of a value", 16)?;
            let value = take(bytes, "", offset, len).map_err(|_| outside("a value", offset, len))?;
            if len <= MAX_NAME { Ok(value) } else { Err(value) }
        };
        if slot.is_some() {
            return Err(OffloadBinaryError::Twice { entry, key });
        }
        *slot = Some(value.and_then(name).map_err(|value| OffloadBinaryError::Text {
            entry,
            key,
            value: value.iter().copied().take(64).collect(),
        })?);
    }
    Ok(Item {
        kind: kind(header.version, offload_kind),
        triple: triple.unwrap_or_default(),
        arch: arch.unwrap_or_default(),
        range,
        metadata_only,
        ptx: image_kind == IMAGE_PTX,
    })
}

/// The bytes from `offset` on; there is one at least.
fn from(bytes: &[u8], offset: u64) -> Option<&[u8]> {
    bytes.get(usize::try_from(offset).ok()?..).filter(|rest| !rest.is_empty())
}

fn name(value: &[u8]) -> Result<String, &[u8]> {
    match std::str::from_utf8(value) {
        Ok(text) if !text.chars().any(char::is_control) => Ok(text.to_owned()),
        _ => Err(value),
    }
}

/// The producer. LLVM up to 19 counted, with HIP as 3; later each has a bit. Both call their format version 1.
fn kind(version: u32, value: u16) -> OffloadKind {
    match value {
        1 => OffloadKind::OpenMp,
        2 => OffloadKind::Cuda,
        4 => OffloadKind::Hip,
        3 if version == 1 => OffloadKind::Hip,
        8 => OffloadKind::Sycl,
        _ => OffloadKind::Unstated,
    }
}

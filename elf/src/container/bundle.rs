//! Clang offload bundles (Clang documentation: "Clang Offload Bundler", "Bundled Binary File Layout").
//!
//! The magic, a count, and for each entry offset, size, length of the id (64 bits each) and the id. Offsets count from
//! the magic. Neither the bundle nor the images in it need be aligned.

use std::ops::Range;

use super::read::{Cut, overlap, range, take, u64_at};

pub(super) const MAGIC: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";

/// Bytes of the magic and the count.
const HEADER_BYTES: u64 = 32;
/// Bytes of an entry without its id.
const ENTRY_BYTES: u64 = 24;

/// What a bundle must say.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BundleError {
    /// The data end inside the table of entries.
    #[error(transparent)]
    Cut(#[from] Cut),
    /// More entries than the data could hold.
    #[error("the number of entries is {count}: an entry has 25 bytes or more, {left} are left")]
    Count {
        /// As read.
        count: u64,
        /// Bytes up to the end.
        left: u64,
    },
    /// More entries than allowed.
    #[error("the number of entries is {count}, the limit is {limit}")]
    TooMany {
        /// As read.
        count: u64,
        /// The limit.
        limit: usize,
    },
    /// The id is not a name.
    #[error("the id of entry {entry} is `{}`, must be printable text", id.escape_ascii())]
    Id {
        /// Number of the entry.
        entry: usize,
        /// As read, at most 64 bytes.
        id: Vec<u8>,
    },
    /// The image starts inside the table of entries.
    #[error("entry {entry} ({id}): offset is {offset:#x}, must be {rule:#x}, the end of the table, or more")]
    InTable {
        /// Number of the entry.
        entry: usize,
        /// Its id.
        id: String,
        /// As read.
        offset: u64,
        /// Where the table ends.
        rule: u64,
    },
    /// The image ends beyond the data.
    #[error(
        "entry {entry} ({id}): offset {offset:#x} and size {size:#x} end beyond the {len:#x} bytes there are: the file \
         is truncated"
    )]
    Outside {
        /// Number of the entry.
        entry: usize,
        /// Its id.
        id: String,
        /// As read.
        offset: u64,
        /// As read.
        size: u64,
        /// Bytes from the magic to the end.
        len: usize,
    },
    /// Two images share bytes.
    #[error("the images of entries {first} and {second} overlap")]
    Overlap {
        /// Number of one.
        first: usize,
        /// Number of the other.
        second: usize,
    },
}

/// An entry.
pub(super) struct Item {
    pub id: String,
    pub range: Range<usize>,
}

pub(super) struct Bundle {
    pub items: Vec<Item>,
    /// The end of its last image.
    pub end: usize,
}

/// Reads a bundle at the start of `bytes`.
pub(super) fn parse(bytes: &[u8], max_entries: usize) -> Result<Bundle, BundleError> {
    let count = u64_at(bytes, "the number of entries", MAGIC.len() as u64)?;
    let left = bytes.len() as u64 - HEADER_BYTES;
    // An id has one byte at least.
    if count > left / (ENTRY_BYTES + 1) {
        return Err(BundleError::Count { count, left });
    }
    if count > max_entries as u64 {
        return Err(BundleError::TooMany { count, limit: max_entries });
    }
    let mut table = vec![];
    let mut at = HEADER_BYTES;
    for entry in 0..count as usize {
        let offset = u64_at(bytes, "the offset of an entry", at)?;
        let size = u64_at(bytes, "the size of an entry", at + 8)?;
        let id_len = u64_at(bytes, "the length of an id", at + 16)?;
        at += ENTRY_BYTES;
        table.push((offset, size, id(take(bytes, "the id of an entry", at, id_len)?, entry)?));
        at += id_len;
    }

    let mut items = Vec::with_capacity(table.len());
    for (entry, (offset, size, id)) in table.into_iter().enumerate() {
        // The offset of an empty image, mostly the host's, says nothing.
        let range = match size {
            0 => 0..0,
            _ if offset < at => return Err(BundleError::InTable { entry, id, offset, rule: at }),
            _ => match range(offset, size).filter(|range| range.end <= bytes.len()) {
                Some(range) => range,
                None => return Err(BundleError::Outside { entry, id, offset, size, len: bytes.len() }),
            },
        };
        items.push(Item { id, range });
    }
    if let Some((first, second)) = overlap(items.iter().map(|item| item.range.clone())) {
        return Err(BundleError::Overlap { first, second });
    }
    let end = items.iter().map(|item| item.range.end).fold(at as usize, usize::max);
    Ok(Bundle { items, end })
}

fn id(bytes: &[u8], entry: usize) -> Result<String, BundleError> {
    match std::str::from_utf8(bytes) {
        Ok(id) if !id.is_empty() && !id.chars().any(char::is_control) => Ok(id.to_owned()),
        _ => Err(BundleError::Id { entry, id: bytes.iter().copied().take(64).collect() }),
    }
}

/// Whether text is the form of bundles for assembly and LLVM IR, which starts with a comment that has the magic.
pub(super) fn is_text(bytes: &[u8]) -> bool {
    bytes[..bytes.len().min(256)].windows(MAGIC.len()).any(|window| window == MAGIC)
}

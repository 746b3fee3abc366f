//! PT_DYNAMIC: where the symbol, string, hash and relocation tables are (System V ABI "Dynamic Section").

use goblin::elf::dynamic::{
    DT_GNU_HASH, DT_HASH, DT_JMPREL, DT_NEEDED, DT_NULL, DT_PLTRELSZ, DT_REL, DT_RELA, DT_RELAENT, DT_RELASZ,
    DT_RELENT, DT_RELSZ, DT_STRSZ, DT_STRTAB, DT_SYMENT, DT_SYMTAB,
};

use crate::segment::Segments;

const DT_RELRSZ: u64 = 35;
const DT_RELR: u64 = 36;
const DT_RELRENT: u64 = 37;
const SYM_BYTES: u64 = 24;
const RELA_BYTES: u64 = 24;

/// What the dynamic section must say.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DynamicError {
    /// No PT_DYNAMIC.
    #[error("no PT_DYNAMIC program header: symbols and relocations cannot be found; link with ld.lld -shared")]
    Missing,
    /// No DT_NULL.
    #[error("PT_DYNAMIC has {entries} entries and no DT_NULL to end them")]
    Unterminated {
        /// Whole entries.
        entries: usize,
    },
    /// A tag that must be there.
    #[error("PT_DYNAMIC has no {tag}")]
    NoTag {
        /// The tag.
        tag: &'static str,
    },
    /// Neither hash table.
    #[error("PT_DYNAMIC has no DT_HASH and no DT_GNU_HASH: the number of symbols is not known")]
    NoHash,
    /// A tag that occurs once.
    #[error("PT_DYNAMIC has {tag} twice: {first:#x} and {second:#x}")]
    Twice {
        /// The tag.
        tag: &'static str,
        /// First value.
        first: u64,
        /// Second value.
        second: u64,
    },
    /// A tag for something code objects do not have.
    #[error("PT_DYNAMIC has {tag} ({value:#x}): {rule}")]
    Unsupported {
        /// The tag.
        tag: &'static str,
        /// Its value.
        value: u64,
        /// What a code object has instead.
        rule: &'static str,
    },
    /// An entry size.
    #[error("{tag} is {value}, must be 24")]
    EntrySize {
        /// The tag.
        tag: &'static str,
        /// Its value.
        value: u64,
    },
    /// A table that is not in the file part of one segment.
    #[error("{tag} {vaddr:#x} with {size:#x} bytes is not inside the file part of a PT_LOAD segment")]
    Outside {
        /// The tag.
        tag: &'static str,
        /// Its value.
        vaddr: u64,
        /// Bytes of the table.
        size: u64,
    },
    /// DT_RELASZ.
    #[error("DT_RELASZ is {size}, must be a multiple of 24")]
    RelaSize {
        /// As read.
        size: u64,
    },
    /// The string table does not end.
    #[error("the string table (DT_STRTAB {vaddr:#x}, DT_STRSZ {size:#x}) does not end with a NUL")]
    StringsUnterminated {
        /// DT_STRTAB.
        vaddr: u64,
        /// DT_STRSZ.
        size: u64,
    },
    /// The GNU hash table contradicts itself.
    #[error("DT_GNU_HASH {vaddr:#x}: {what}")]
    GnuHash {
        /// Address of the table.
        vaddr: u64,
        /// What is wrong.
        what: &'static str,
    },
}

/// The tables. Counts are by their sizes.
pub(crate) struct Dynamic<'a> {
    /// DT_SYMTAB, its address.
    pub symtab: u64,
    /// Its bytes, 24 a symbol.
    pub symbols: &'a [u8],
    /// The string table, which ends with a NUL.
    pub strings: &'a [u8],
    /// DT_RELA, 24 bytes a relocation.
    pub relocations: &'a [u8],
}

/// Tags that are looked at, with a place for the value of each.
const TAGS: [(u64, &str); 9] = [
    (DT_HASH, "DT_HASH"),
    (DT_GNU_HASH, "DT_GNU_HASH"),
    (DT_STRTAB, "DT_STRTAB"),
    (DT_STRSZ, "DT_STRSZ"),
    (DT_SYMTAB, "DT_SYMTAB"),
    (DT_SYMENT, "DT_SYMENT"),
    (DT_RELA, "DT_RELA"),
    (DT_RELASZ, "DT_RELASZ"),
    (DT_RELAENT, "DT_RELAENT"),
];

/// Tags of things a code object does not have.
const REFUSED: [(u64, &str, &str); 9] = [
    (DT_NEEDED, "DT_NEEDED", "a code object needs no other file"),
    (DT_REL, "DT_REL", "relocations have addends (DT_RELA)"),
    (DT_RELSZ, "DT_RELSZ", "relocations have addends (DT_RELA)"),
    (DT_RELENT, "DT_RELENT", "relocations have addends (DT_RELA)"),
    (DT_JMPREL, "DT_JMPREL", "a code object has no procedure linkage table"),
    (DT_PLTRELSZ, "DT_PLTRELSZ", "a code object has no procedure linkage table"),
    (DT_RELR, "DT_RELR", "relocations are not packed; link without --pack-dyn-relocs"),
    (DT_RELRSZ, "DT_RELRSZ", "relocations are not packed; link without --pack-dyn-relocs"),
    (DT_RELRENT, "DT_RELRENT", "relocations are not packed; link without --pack-dyn-relocs"),
];

/// Values by tag.
struct Values([Option<u64>; TAGS.len()]);

impl Values {
    fn get(&self, tag: u64) -> Option<u64> {
        TAGS.iter().position(|(t, _)| *t == tag).and_then(|i| self.0[i])
    }

    fn need(&self, tag: u64, name: &'static str) -> Result<u64, DynamicError> {
        self.get(tag).ok_or(DynamicError::NoTag { tag: name })
    }
}

pub(crate) fn parse<'a>(segments: &Segments<'a>) -> Result<Dynamic<'a>, DynamicError> {
    let values = values(segments.dynamic.ok_or(DynamicError::Missing)?)?;
    for (tag, name, size) in [(DT_SYMENT, "DT_SYMENT", SYM_BYTES), (DT_RELAENT, "DT_RELAENT", RELA_BYTES)] {
        if let Some(value) = values.get(tag).filter(|&value| value != size) {
            return Err(DynamicError::EntrySize { tag: name, value });
        }
    }
    let table =
        |tag, vaddr, size: u64| segments.file_bytes(vaddr, size).ok_or(DynamicError::Outside { tag, vaddr, size });

    let symtab = values.need(DT_SYMTAB, "DT_SYMTAB")?;
    let count = match (values.get(DT_HASH), values.get(DT_GNU_HASH)) {
        (Some(vaddr), _) => {
            // nbucket, nchain: there is a chain entry for each symbol.
            let hash = table("DT_HASH", vaddr, 8)?;
            u64::from(word(hash, 1).unwrap_or_default())
        }
        (None, Some(vaddr)) => gnu_hash_count(segments, vaddr)?,
        (None, None) => return Err(DynamicError::NoHash),
    };
    let symbols = table("DT_SYMTAB", symtab, count * SYM_BYTES)?;

    let (vaddr, size) = (values.need(DT_STRTAB, "DT_STRTAB")?, values.need(DT_STRSZ, "DT_STRSZ")?);
    let strings = table("DT_STRTAB", vaddr, size)?;
    if strings.last() != Some(&0) {
        return Err(DynamicError::StringsUnterminated { vaddr, size });
    }

    let relocations = match (values.get(DT_RELA), values.get(DT_RELASZ)) {
        (None, None) => &[],
        (None, Some(_)) => return Err(DynamicError::NoTag { tag: "DT_RELA" }),
        (Some(_), None) => return Err(DynamicError::NoTag { tag: "DT_RELASZ" }),
        (Some(_), Some(0)) => &[],
        (Some(_), Some(size)) if size % RELA_BYTES != 0 => return Err(DynamicError::RelaSize { size }),
        (Some(vaddr), Some(size)) => table("DT_RELA", vaddr, size)?,
    };
    Ok(Dynamic { symtab, symbols, strings, relocations })
}

fn values(section: &[u8]) -> Result<Values, DynamicError> {
    let mut values = Values([None; TAGS.len()]);
    for entry in section.chunks_exact(16) {
        let (tag, value) = (long(entry, 0).unwrap_or_default(), long(entry, 8).unwrap_or_default());
        if tag == DT_NULL {
            return Ok(values);
        }
        if let Some((_, tag, rule)) = REFUSED.iter().find(|(t, ..)| *t == tag) {
            return Err(DynamicError::Unsupported { tag, value, rule });
        }
        if let Some(i) = TAGS.iter().position(|(t, _)| *t == tag)
            && let Some(first) = values.0[i].replace(value)
        {
            return Err(DynamicError::Twice { tag: TAGS[i].1, first, second: value });
        }
    }
    Err(DynamicError::Unterminated { entries: section.len() / 16 })
}

/// The GNU hash table has no count: the last symbol is at the end of the chain that starts last.
fn gnu_hash_count(segments: &Segments<'_>, vaddr: u64) -> Result<u64, DynamicError> {
    let outside = DynamicError::Outside { tag: "DT_GNU_HASH", vaddr, size: 16 };
    let fail = |what| DynamicError::GnuHash { vaddr, what };
    let table = segments.file_bytes_from(vaddr).ok_or(outside.clone())?;
    let field = |i| word(table, i).ok_or(outside.clone());
    let (buckets, first_hashed, bloom_longs) = (field(0)? as usize, field(1)?, field(2)? as usize);
    let start = bloom_longs.checked_mul(2).and_then(|n| n.checked_add(4));
    let chains = start.and_then(|n| n.checked_add(buckets));
    let (Some(start), Some(chains)) = (start, chains) else {
        return Err(fail("its bucket count is beyond the segment"));
    };
    let mut last = 0;
    for i in start..chains {
        last = last.max(word(table, i).ok_or(fail("its buckets end beyond the segment"))?);
    }
    if last == 0 {
        return Ok(u64::from(first_hashed));
    }
    let mut chain = last.checked_sub(first_hashed).ok_or(fail("a bucket is below the first hashed symbol"))? as usize;
    loop {
        let hash = chains.checked_add(chain).and_then(|i| word(table, i));
        if hash.ok_or(fail("a chain ends beyond the segment"))? & 1 != 0 {
            return Ok(u64::from(first_hashed) + chain as u64 + 1);
        }
        chain += 1;
    }
}

/// The `i`th u32.
fn word(bytes: &[u8], i: usize) -> Option<u32> {
    let start = i.checked_mul(4)?;
    Some(u32::from_le_bytes(bytes.get(start..start.checked_add(4)?)?.try_into().ok()?))
}

/// The u64 at an offset.
fn long(bytes: &[u8], offset: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(offset..offset.checked_add(8)?)?.try_into().ok()?))
}

//! Program headers: what is loaded where (System V ABI "Program Header"; LLVM AMDGPUUsage "Loading").

use std::fmt;
use std::ops::Range;

use goblin::elf::program_header::{PF_R, PF_W, PF_X, PT_DYNAMIC, PT_LOAD, PT_NOTE, PT_TLS, ProgramHeader};

use crate::header::{CTX, Header};

/// The largest image: one block of device memory from the first segment to the end of the last.
pub const MAX_SPAN: u64 = 4 << 30;

/// A PT_LOAD segment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Segment<'a> {
    /// Address in the image.
    pub vaddr: u64,
    /// Its start, from the file; the rest up to `memsz` is zero.
    pub bytes: &'a [u8],
    /// Bytes in memory, `bytes.len()` at least.
    pub memsz: u64,
    /// Alignment asked for: a power of two.
    pub align: u64,
    /// PF_R.
    pub readable: bool,
    /// PF_W.
    pub writable: bool,
    /// PF_X.
    pub executable: bool,
}

impl Segment<'_> {
    /// Addresses in the image.
    pub fn range(&self) -> Range<u64> {
        self.vaddr..self.vaddr + self.memsz
    }

    /// Whether `len` bytes at `vaddr` are all in the segment.
    pub fn contains(&self, vaddr: u64, len: u64) -> bool {
        vaddr >= self.vaddr && vaddr.checked_add(len).is_some_and(|end| end <= self.range().end)
    }
}

impl fmt::Debug for Segment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flag = |set, letter| if set { letter } else { '-' };
        write!(
            f,
            "{:#x}..{:#x} {}{}{} ({:#x} bytes from the file, align {:#x})",
            self.vaddr,
            self.range().end,
            flag(self.readable, 'r'),
            flag(self.writable, 'w'),
            flag(self.executable, 'x'),
            self.bytes.len(),
            self.align
        )
    }
}

/// What a program header must say. `index` is its place in the table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SegmentError {
    /// The file part ends beyond the file.
    #[error(
        "program header {index} ({kind}): p_offset {offset:#x} + p_filesz {filesz:#x} is beyond the file's {len:#x} \
         bytes"
    )]
    OutsideFile {
        /// Place in the table.
        index: usize,
        /// PT_LOAD, PT_DYNAMIC or PT_NOTE.
        kind: &'static str,
        /// `p_offset`.
        offset: u64,
        /// `p_filesz`.
        filesz: u64,
        /// Bytes of the file.
        len: usize,
    },
    /// More from the file than in memory.
    #[error("program header {index} (PT_LOAD): p_filesz {filesz:#x} is larger than p_memsz {memsz:#x}")]
    FileLarger {
        /// Place in the table.
        index: usize,
        /// `p_filesz`.
        filesz: u64,
        /// `p_memsz`.
        memsz: u64,
    },
    /// `p_align`.
    #[error("program header {index} (PT_LOAD): p_align is {align:#x}, must be a power of two")]
    Align {
        /// Place in the table.
        index: usize,
        /// As read.
        align: u64,
    },
    /// Address and offset disagree.
    #[error(
        "program header {index} (PT_LOAD): p_vaddr {vaddr:#x} and p_offset {offset:#x} differ modulo p_align {align:#x}"
    )]
    Congruence {
        /// Place in the table.
        index: usize,
        /// `p_vaddr`.
        vaddr: u64,
        /// `p_offset`.
        offset: u64,
        /// `p_align`.
        align: u64,
    },
    /// The image would be too large, or wrap around.
    #[error(
        "program header {index} (PT_LOAD): p_vaddr {vaddr:#x} + p_memsz {memsz:#x} is more than 4 GiB from the first \
         segment at {first:#x}"
    )]
    Span {
        /// Place in the table.
        index: usize,
        /// `p_vaddr`.
        vaddr: u64,
        /// `p_memsz`.
        memsz: u64,
        /// Address of the first segment.
        first: u64,
    },
    /// Not above the segment before it.
    #[error(
        "program header {index} (PT_LOAD): p_vaddr is {vaddr:#x}, must not be below {end:#x}, the end of the segment \
         before"
    )]
    Overlap {
        /// Place in the table.
        index: usize,
        /// `p_vaddr`.
        vaddr: u64,
        /// End of the segment before.
        end: u64,
    },
    /// The reader failed where the range was found right before.
    #[error("program headers cannot be read: {reason}")]
    Reader {
        /// The reader's words.
        reason: String,
    },
    /// Nothing to load.
    #[error("no PT_LOAD program header: the file has nothing to load")]
    NothingToLoad,
    /// Two of a kind that occurs once.
    #[error("program header {index}: a second PT_DYNAMIC, must be one")]
    SecondDynamic {
        /// Place in the table.
        index: usize,
    },
    /// Thread-local storage.
    #[error("program header {index} is PT_TLS: AMDGPU code has no thread-local storage")]
    Tls {
        /// Place in the table.
        index: usize,
    },
}

/// The program headers that matter.
pub(crate) struct Segments<'a> {
    /// PT_LOAD, ascending and apart.
    pub loads: Vec<Segment<'a>>,
    /// File part of PT_DYNAMIC.
    pub dynamic: Option<&'a [u8]>,
    /// File parts of PT_NOTE.
    pub notes: Vec<&'a [u8]>,
}

impl<'a> Segments<'a> {
    /// The segment that has all of `len` bytes at `vaddr`.
    pub fn find(&self, vaddr: u64, len: u64) -> Option<&Segment<'a>> {
        find(&self.loads, vaddr, len)
    }

    /// `len` bytes at `vaddr`, if all of them are in the file part of one segment.
    pub fn file_bytes(&self, vaddr: u64, len: u64) -> Option<&'a [u8]> {
        file_bytes(&self.loads, vaddr, len)
    }

    /// The file part of the segment at `vaddr`, from there on.
    pub fn file_bytes_from(&self, vaddr: u64) -> Option<&'a [u8]> {
        let segment = self.find(vaddr, 0)?;
        segment.bytes.get(usize::try_from(vaddr - segment.vaddr).ok()?..)
    }
}

/// The segment that has all of `len` bytes at `vaddr`.
pub(crate) fn find<'s, 'a>(loads: &'s [Segment<'a>], vaddr: u64, len: u64) -> Option<&'s Segment<'a>> {
    // The last segment that starts at or below vaddr.
    let segment = loads[..loads.partition_point(|s| s.vaddr <= vaddr)].last()?;
    segment.contains(vaddr, len).then_some(segment)
}

/// `len` bytes at `vaddr`, if all of them are in the file part of one segment.
pub(crate) fn file_bytes<'a>(loads: &[Segment<'a>], vaddr: u64, len: u64) -> Option<&'a [u8]> {
    let segment = find(loads, vaddr, len)?;
    let start = usize::try_from(vaddr - segment.vaddr).ok()?;
    segment.bytes.get(start..start.checked_add(usize::try_from(len).ok()?)?)
}

/// Reads the program headers, which the header says are in the file.
pub(crate) fn parse<'a>(bytes: &'a [u8], header: &Header) -> Result<Segments<'a>, SegmentError> {
    let mut segments = Segments { loads: vec![], dynamic: None, notes: vec![] };
    let table = ProgramHeader::parse(bytes, header.phoff, header.phnum, CTX)
        .map_err(|error| SegmentError::Reader { reason: error.to_string() })?;
    for (index, p) in table.iter().enumerate() {
        match p.p_type {
            PT_LOAD => {
                let segment = load(bytes, index, p, &segments.loads)?;
                segments.loads.push(segment);
            }
            PT_DYNAMIC if segments.dynamic.is_some() => return Err(SegmentError::SecondDynamic { index }),
            PT_DYNAMIC => segments.dynamic = Some(file_part(bytes, index, "PT_DYNAMIC", p)?),
            PT_NOTE => segments.notes.push(file_part(bytes, index, "PT_NOTE", p)?),
            PT_TLS => return Err(SegmentError::Tls { index }),
            // PT_PHDR, GNU_RELRO, GNU_STACK and what linkers may add change nothing for a loader that maps one block.
            _ => {}
        }
    }
    if segments.loads.is_empty() {
        return Err(SegmentError::NothingToLoad);
    }
    Ok(segments)
}

fn file_part<'a>(
    bytes: &'a [u8],
    index: usize,
    kind: &'static str,
    p: &ProgramHeader,
) -> Result<&'a [u8], SegmentError> {
    let (offset, filesz, len) = (p.p_offset, p.p_filesz, bytes.len());
    let part =
        offset.checked_add(filesz).and_then(|end| bytes.get(usize::try_from(offset).ok()?..usize::try_from(end).ok()?));
    part.ok_or(SegmentError::OutsideFile { index, kind, offset, filesz, len })
}

fn load<'a>(
    bytes: &'a [u8],
    index: usize,
    p: &ProgramHeader,
    before: &[Segment<'a>],
) -> Result<Segment<'a>, SegmentError> {
    let &ProgramHeader { p_vaddr: vaddr, p_offset: offset, p_filesz: filesz, p_memsz: memsz, .. } = p;
    // 0 and 1 both mean no alignment.
    let align = p.p_align.max(1);
    if !align.is_power_of_two() {
        return Err(SegmentError::Align { index, align });
    }
    let file = file_part(bytes, index, "PT_LOAD", p)?;
    if filesz > memsz {
        return Err(SegmentError::FileLarger { index, filesz, memsz });
    }
    let end = before.last().map(|last| last.range().end);
    if let Some(end) = end.filter(|&end| vaddr < end) {
        return Err(SegmentError::Overlap { index, vaddr, end });
    }
    if (vaddr ^ offset) & (align - 1) != 0 {
        return Err(SegmentError::Congruence { index, vaddr, offset, align });
    }
    let first = before.first().map_or(vaddr, |s| s.vaddr);
    match vaddr.checked_add(memsz) {
        Some(end) if end - first <= MAX_SPAN => {}
        _ => return Err(SegmentError::Span { index, vaddr, memsz, first }),
    }
    let flag = |bit| p.p_flags & bit != 0;
    let (readable, writable, executable) = (flag(PF_R), flag(PF_W), flag(PF_X));
    Ok(Segment { vaddr, bytes: file, memsz, align, readable, writable, executable })
}

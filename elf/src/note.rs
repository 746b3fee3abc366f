//! Note records (System V ABI "Note Section"; LLVM AMDGPUUsage "Note Records").

use crate::error::shown;

/// NT_AMDGPU_METADATA, of the owner "AMDGPU".
const NT_AMDGPU_METADATA: u32 = 32;

/// What notes must say. `offset` counts from the start of the PT_NOTE segment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoteError {
    /// The three words of a record are cut.
    #[error("note at {offset:#x} of PT_NOTE: {left} bytes are left, a note has 12 at least")]
    Cut {
        /// Where.
        offset: usize,
        /// Bytes left.
        left: usize,
    },
    /// The name or the description ends beyond the segment.
    #[error("note at {offset:#x} of PT_NOTE: {field} is {value:#x}, {left:#x} bytes are left")]
    Size {
        /// Where.
        offset: usize,
        /// `namesz` or `descsz`.
        field: &'static str,
        /// As read.
        value: u32,
        /// Bytes left for it.
        left: usize,
    },
    /// No metadata.
    #[error(
        "no AMDGPU metadata: {} no note of the owner AMDGPU and type 32{}",
        if *segments == 0 { "there is no PT_NOTE and so" } else { "PT_NOTE has" },
        match found {
            Some((owner, kind)) => format!("; the first is of `{owner}` and type {kind}"),
            None => String::new(),
        }
    )]
    NoMetadata {
        /// PT_NOTE segments.
        segments: usize,
        /// The first note, if there is one.
        found: Option<(String, u32)>,
    },
}

/// A note.
pub(crate) struct Note<'a> {
    /// Owner, without its NUL.
    pub owner: &'a [u8],
    pub kind: u32,
    pub desc: &'a [u8],
}

/// The records of a PT_NOTE segment, whose names and descriptions are padded to 4 bytes.
pub(crate) fn notes(segment: &[u8]) -> impl Iterator<Item = Result<Note<'_>, NoteError>> {
    let mut offset = 0;
    std::iter::from_fn(move || {
        let rest = segment.get(offset..).filter(|rest| !rest.is_empty())?;
        let start = offset;
        let note = note(rest, start);
        offset = match &note {
            Ok((_, len)) => start + len,
            Err(_) => segment.len(),
        };
        Some(note.map(|(note, _)| note))
    })
}

/// The first record of `rest` and its padded length.
fn note(rest: &[u8], offset: usize) -> Result<(Note<'_>, usize), NoteError> {
    let (Some((head, body)), left) = (rest.split_first_chunk::<12>(), rest.len()) else {
        return Err(NoteError::Cut { offset, left: rest.len() });
    };
    let word = |i: usize| u32::from_le_bytes([head[i], head[i + 1], head[i + 2], head[i + 3]]);
    let (namesz, descsz, kind) = (word(0), word(4), word(8));
    let size = |field, value, left| NoteError::Size { offset, field, value, left };
    let name = body.get(..namesz as usize).ok_or(size("namesz", namesz, body.len()))?;
    let after_name = body.get((namesz as usize).next_multiple_of(4)..).unwrap_or_default();
    let desc = after_name.get(..descsz as usize).ok_or(size("descsz", descsz, after_name.len()))?;
    let used = 12 + (namesz as usize).next_multiple_of(4) + (descsz as usize).next_multiple_of(4);
    Ok((Note { owner: name.strip_suffix(&[0]).unwrap_or(name), kind, desc }, used.min(left)))
}

/// The descriptions of all metadata notes in the file parts of PT_NOTE segments, in the order of the file. GCC's linker
/// leaves one a kernel. The last item is an error if there is none, or if a record cannot be read.
pub fn metadata_notes<'a>(segments: &[&'a [u8]]) -> impl Iterator<Item = Result<&'a [u8], NoteError>> {
    let count = segments.len();
    let mut records = segments.iter().copied().flat_map(notes);
    let (mut first, mut found, mut done) = (None, false, false);
    std::iter::from_fn(move || {
        for note in records.by_ref().take_while(|_| !done) {
            let note = match note {
                Ok(note) => note,
                Err(error) => {
                    (found, done) = (true, true);
                    return Some(Err(error));
                }
            };
            if note.owner == b"AMDGPU" && note.kind == NT_AMDGPU_METADATA {
                found = true;
                return Some(Ok(note.desc));
            }
            first.get_or_insert_with(|| (shown(&String::from_utf8_lossy(note.owner)), note.kind));
        }
        let missing = !std::mem::replace(&mut found, true);
        missing.then(|| Err(NoteError::NoMetadata { segments: count, found: first.take() }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata<'a>(segments: &[&'a [u8]]) -> Result<Vec<&'a [u8]>, NoteError> {
        metadata_notes(segments).collect()
    }

    fn record(owner: &[u8], kind: u32, desc: &[u8]) -> Vec<u8> {
        let mut bytes = vec![];
        bytes.extend((owner.len() as u32).to_le_bytes());
        bytes.extend((desc.len() as u32).to_le_bytes());
        bytes.extend(kind.to_le_bytes());
        for part in [owner, desc] {
            bytes.extend(part);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    #[test]
    fn metadata_is_found_among_others() {
        let other = record(b"GNU\0", 3, &[1; 20]);
        let (one, two) = (record(b"AMDGPU\0", 32, b"abcde"), record(b"AMDGPU\0", 32, b"fgh"));
        let wrong = record(b"AMDGPU\0", 33, b"core");
        let segment = [other.clone(), one, wrong.clone(), two].concat();
        assert_eq!(metadata(&[&segment]), Ok(vec![b"abcde".as_slice(), b"fgh"]));

        // The padding of the last description may be missing.
        let short = &segment[..segment.len() - 1];
        assert_eq!(metadata(&[short]), Ok(vec![b"abcde".as_slice(), b"fgh"]));

        let error = metadata(&[&wrong, &other]).unwrap_err().to_string();
        assert_eq!(
            error,
            "no AMDGPU metadata: PT_NOTE has no note of the owner AMDGPU and type 32; the first is of `AMDGPU` and \
             type 33"
        );
        let error = metadata(&[]).unwrap_err().to_string();
        assert_eq!(error, "no AMDGPU metadata: there is no PT_NOTE and so no note of the owner AMDGPU and type 32");
    }

    #[test]
    fn sizes_are_bounded() {
        let good = record(b"AMDGPU\0", 32, b"abcd");
        assert_eq!(metadata(&[&good[..8]]), Err(NoteError::Cut { offset: 0, left: 8 }));
        let mut bad = good.clone();
        bad[0..4].copy_from_slice(&u32::MAX.to_le_bytes());
        let namesz = NoteError::Size { offset: 0, field: "namesz", value: u32::MAX, left: 12 };
        assert_eq!(metadata(&[&bad]), Err(namesz));
        let mut bad = [good.clone(), good.clone()].concat();
        bad[24 + 4] = 5;
        let descsz = NoteError::Size { offset: 24, field: "descsz", value: 5, left: 4 };
        assert_eq!(metadata(&[&bad]), Err(descsz.clone()));
        assert_eq!(descsz.to_string(), "note at 0x18 of PT_NOTE: descsz is 0x5, 0x4 bytes are left");
    }
}

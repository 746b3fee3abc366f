//! The format strings of `amdhsa.printf`.

use super::opencl::Format;
use crate::format::{Piece, Spec, parse};
use std::collections::HashMap;

/// The formats of an image. OpenCL's and HIP's records cannot be told apart, so an image has one kind.
#[derive(Clone, Debug)]
pub enum Formats {
    /// `ID:N:S0:…:S(N-1):format`, by id.
    OpenCl(HashMap<u32, Format>),
    /// `0:0:HASH,format`, by hash: the low 8 bytes of the format's MD5.
    Hashed(HashMap<u64, Vec<Piece>>),
}

/// Why `amdhsa.printf` cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatsError {
    /// An entry that is of neither form.
    #[error("amdhsa.printf[{index}] is '{text}': must be ID:N:SIZE:…:FORMAT (OpenCL) or 0:0:HASH,FORMAT (HIP)")]
    Malformed {
        /// Index.
        index: usize,
        /// Entry.
        text: String,
    },
    /// Entries of both forms.
    #[error("amdhsa.printf has OpenCL's and HIP's formats: the records of one kernel cannot be told apart")]
    Mixed,
    /// Two different entries of one id.
    #[error("amdhsa.printf[{index}] has the id {id}, as an entry before it with another format")]
    Twice {
        /// Index.
        index: usize,
        /// Id or hash, as the entry has it.
        id: String,
    },
}

/// The hash that stands for formats that are not constant; those come with their records.
const NOT_CONSTANT: u64 = 0xffff_ffff;

impl Formats {
    /// Reads the entries of `amdhsa.printf`. Clang has one for each call of HIP's `printf`, so that calls with the same
    /// format have the same entry.
    pub fn parse(entries: &[&str]) -> Result<Formats, FormatsError> {
        let (mut opencl, mut hashed) = (HashMap::new(), HashMap::new());
        let mut known = HashMap::new();
        let mut is_another = |key: (bool, u64), text| known.insert(key, text).is_some_and(|before| before != text);
        for (index, text) in entries.iter().enumerate() {
            let malformed = || FormatsError::Malformed { index, text: text.chars().take(80).collect() };
            if let Some(rest) = text.strip_prefix("0:0:") {
                let (id, format) = rest.split_once(',').ok_or_else(malformed)?;
                let hash = u64::from_str_radix(id, 16).map_err(|_| malformed())?;
                if is_another((true, hash), format) && hash != NOT_CONSTANT {
                    return Err(FormatsError::Twice { index, id: id.to_owned() });
                }
                hashed.insert(hash, parse(format.as_bytes()));
                continue;
            }
            let (id, format) = entry(text).ok_or_else(malformed)?;
            if is_another((false, id.into()), text) {
                return Err(FormatsError::Twice { index, id: id.to_string() });
            }
            opencl.insert(id, format);
        }
        match (opencl.is_empty(), hashed.is_empty()) {
            (false, false) => Err(FormatsError::Mixed),
            (true, false) => Ok(Formats::Hashed(hashed)),
            _ => Ok(Formats::OpenCl(opencl)),
        }
    }

    /// Bytes that a record may take: what the buffer must have left for nothing to be lost.
    ///
    /// OpenCL's entries say it. HIP's records hold strings of any size, and formats that are not constant; those are
    /// taken to need no more than 64 KiB, so that a buffer with more room is not suspected.
    pub fn largest(&self) -> u64 {
        match self {
            Formats::OpenCl(formats) => formats.values().map(Format::record_bytes).max().unwrap_or(0),
            Formats::Hashed(formats) => {
                formats.iter().map(|(hash, pieces)| hashed_bytes(*hash, pieces)).max().unwrap_or(0)
            }
        }
    }
}

/// What a record of HIP's with a string is taken to need at most.
const WITH_TEXT: u64 = 64 << 10;

/// Bytes that a record of HIP's may take: control word, hash, and a word for each argument.
fn hashed_bytes(hash: u64, pieces: &[Piece]) -> u64 {
    let specs = || crate::format::specs(pieces);
    if hash == NOT_CONSTANT || specs().any(Spec::is_string) {
        return WITH_TEXT;
    }
    specs().map(|spec| 8 + 8 * spec.stars() as u64).sum::<u64>() + 12
}

/// An OpenCL entry. Where a conversion has a `*`, compilers count its arguments in N but leave the last sizes out, so the
/// sizes end at the first field that is no number.
fn entry(text: &str) -> Option<(u32, Format)> {
    let (id, rest) = text.split_once(':')?;
    let id = id.parse().ok()?;
    let (count, mut rest) = rest.split_once(':')?;
    let arguments: usize = count.parse().ok()?;
    let mut sizes = Vec::new();
    while sizes.len() < arguments
        && let Some((size, behind)) = rest.split_once(':')
        && !size.is_empty()
        && size.bytes().all(|byte| byte.is_ascii_digit())
    {
        sizes.push(size.parse::<u32>().ok().filter(|size| size % 4 == 0 && *size <= 1 << 20)?);
        rest = behind;
    }
    Some((id, Format { sizes, pieces: parse(&unescape(rest)) }))
}

/// LLVM writes some characters of OpenCL's formats as escapes (AMDGPUPrintfRuntimeBinding). A backslash in the source is
/// not one of them, so `\\n` of the source reads as a newline here: the string does not say more.
fn unescape(text: &str) -> Vec<u8> {
    const ESCAPES: [(&[u8], u8); 7] =
        [(b"\\72", b':'), (b"\\a", 7), (b"\\b", 8), (b"\\f", 12), (b"\\n", b'\n'), (b"\\r", b'\r'), (b"\\v", 11)];
    let (mut rest, mut out) = (text.as_bytes(), Vec::new());
    while let Some((first, behind)) = rest.split_first() {
        match ESCAPES.iter().find(|(escape, _)| rest.starts_with(escape)) {
            Some((escape, byte)) => {
                out.push(*byte);
                rest = &rest[escape.len()..];
            }
            None => {
                out.push(*first);
                rest = behind;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opencl_entries() {
        let entries = ["2:0:plain\\n", "1:5:4:4:4:4:%s|%5.2f|%-4d|%*d\\n", "7:2:16:8:a\\72b %v4hlf %v2hhd"];
        let Ok(Formats::OpenCl(formats)) = Formats::parse(&entries) else { panic!("OpenCL's formats") };
        assert_eq!(formats[&2].pieces, [Piece::Text(b"plain\n".to_vec())]);
        assert_eq!(formats[&1].sizes, [4; 4], "the fifth argument has no size");
        assert_eq!((formats[&7].sizes.as_slice(), formats[&7].record_bytes()), (&[16, 8][..], 28));
        assert_eq!(formats[&7].pieces[0], Piece::Text(b"a:b ".to_vec()));
    }

    #[test]
    fn an_old_producer_leaves_colons_as_they_are() {
        let Ok(Formats::OpenCl(formats)) = Formats::parse(&["1:1:4:4:x=%d"]) else { panic!("OpenCL's formats") };
        assert_eq!((formats[&1].sizes.as_slice(), &formats[&1].pieces[0]), (&[4][..], &Piece::Text(b"4:x=".to_vec())));
    }

    #[test]
    fn hip_entries() {
        let entries = ["0:0:2a0cd4934d127192,i=%d, n=%d\n", "0:0:ffffffff,\"Non const format string\""];
        let Ok(Formats::Hashed(formats)) = Formats::parse(&entries) else { panic!("HIP's formats") };
        assert_eq!(formats[&0x2a0c_d493_4d12_7192].len(), 5);
    }

    #[test]
    fn what_a_record_may_take() {
        let largest = |entries: &[&str]| Formats::parse(entries).unwrap().largest();
        assert_eq!(largest(&["1:0:a", "2:2:4:8:%d %ld"]), 16);
        assert_eq!(largest(&["0:0:1,a%%", "0:0:2,%d %*d"]), 4 + 8 + 3 * 8);
        assert_eq!(largest(&["0:0:1,%d", "0:0:2,%s"]), 64 << 10);
        assert_eq!(largest(&["0:0:ffffffff,\"Non const format string\""]), 64 << 10);
    }

    #[test]
    fn what_is_neither_is_refused() {
        for bad in [&["x"][..], &["1"], &["0:0:zz,a"], &["0:0:12"], &["1:1:6:%d"], &["a:0:b"]] {
            assert!(matches!(Formats::parse(bad), Err(FormatsError::Malformed { .. })), "{bad:?}");
        }
        assert_eq!(Formats::parse(&["1:0:a", "0:0:1,b"]).unwrap_err(), FormatsError::Mixed);
    }

    #[test]
    fn an_entry_may_stand_there_again_but_not_with_another_format() {
        for (same, other) in [("0:0:12,n=%d\n", "0:0:12,n=%u\n"), ("1:1:4:n=%d\\n", "1:1:8:n=%d\\n")] {
            let once = format!("{:?}", Formats::parse(&[same]));
            assert!(once.starts_with("Ok"), "{once}");
            assert_eq!(format!("{:?}", Formats::parse(&[same, same, same])), once);
            let refused = Formats::parse(&[same, same, other]).unwrap_err();
            assert!(matches!(refused, FormatsError::Twice { index: 2, .. }), "{refused}");
        }
        let unknown = ["0:0:ffffffff,\"Non const format string\"", "0:0:ffffffff,another"];
        assert!(Formats::parse(&unknown).is_ok(), "records of these bring their formats");
    }
}

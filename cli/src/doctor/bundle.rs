//! The archive that `--bundle` writes: what was read, what a copy cannot hold, and the report. Unpacked, it is what
//! `--root` takes.

use super::Report;
use super::facts::FILE;
use super::host::{Host, Seen};
use crate::style::Style;
use std::collections::BTreeMap;

/// Bytes of a block, of which a header is one.
const BLOCK: usize = 512;

/// Longest path of a header without its prefix field.
const MAX_NAME: usize = 100;

/// An archive in the POSIX ustar format, with no times and no owners.
pub fn archive(host: &Host, report: &Report) -> Vec<u8> {
    let mut entries: BTreeMap<String, Seen> = BTreeMap::new();
    for (path, seen) in host.seen() {
        entries.insert(path.trim_start_matches('/').to_owned(), seen);
    }
    let facts = host.facts();
    // A file that could not be read has its folder all the same.
    for path in facts.errors.keys() {
        if let Some((folder, _)) = path.trim_start_matches('/').rsplit_once('/') {
            entries.entry(folder.to_owned()).or_insert(Seen::Folder);
        }
    }
    let file = |text: String| Seen::File(text.into_bytes());
    entries.insert(FILE.to_owned(), file(facts.to_text()));
    entries.insert("report.txt".to_owned(), file(report.text(Style::plain())));
    entries.insert("report.json".to_owned(), file(format!("{}\n", report.json())));
    let mut archive = Vec::new();
    for (path, seen) in entries.iter().filter(|(path, _)| !path.is_empty()) {
        let (name, bytes): (String, &[u8]) = match seen {
            Seen::File(bytes) => (path.clone(), bytes),
            Seen::Folder => (format!("{path}/"), &[]),
        };
        let Some(header) = header(&name, bytes.len(), matches!(seen, Seen::Folder)) else { continue };
        archive.extend(header);
        archive.extend(bytes);
        archive.resize(archive.len().next_multiple_of(BLOCK), 0);
    }
    // Two blocks of zeros end it.
    archive.resize(archive.len() + 2 * BLOCK, 0);
    archive
}

/// A header. None for a path too long for one, which none of those that are read is.
fn header(path: &str, size: usize, folder: bool) -> Option<[u8; BLOCK]> {
    let (prefix, name) = match path.len() {
        ..=MAX_NAME => ("", path),
        _ => {
            // The prefix ends at a slash that leaves the name short enough.
            let at = path.match_indices('/').map(|(at, _)| at).find(|at| path.len() - at - 1 <= MAX_NAME && *at > 0)?;
            (&path[..at], &path[at + 1..])
        }
    };
    if prefix.len() > 155 || name.is_empty() {
        return None;
    }
    let mut block = [0; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, name.as_bytes());
    put(100, if folder { b"0000755\0" } else { b"0000644\0" });
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{size:011o}\0").as_bytes());
    put(136, b"00000000000\0");
    put(148, b"        ");
    put(156, if folder { b"5" } else { b"0" });
    put(257, b"ustar\x0000");
    put(345, prefix.as_bytes());
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Some(block)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_paths_are_split_at_a_slash() {
        let path = format!("{}/{}", "a".repeat(90), "b".repeat(60));
        let block = header(&path, 1, false).unwrap();
        assert_eq!(&block[..61], [vec![b'b'; 60], vec![0]].concat());
        assert_eq!(&block[345..436], [vec![b'a'; 90], vec![0]].concat());
        assert_eq!(header(&"a".repeat(101), 1, false), None);
        assert_eq!(header(&format!("{}/{}", "a".repeat(156), "b".repeat(60)), 1, false), None);
    }
}

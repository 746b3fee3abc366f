//! Sections by name. Nothing that runs needs them; debuggers read `.debug_*` from there.

use crate::container::inflate::{Budget, Method, inflate};
use crate::header::CTX;
use goblin::elf::section_header::{SHF_COMPRESSED, SHT_NOBITS};
use goblin::elf::{Elf, SectionHeader};
use std::borrow::Cow;

/// The most that compressed sections of one name may hold.
const LIMIT: u64 = 1 << 30;

/// Bytes of `Elf64_Chdr`: type, reserved, size, alignment.
const CHDR: usize = 24;

/// The bytes of the first section of this name, uncompressed when it has SHF_COMPRESSED. None when there is no such
/// section, or what tells its place, size or compression is not right.
pub(crate) fn find<'a>(bytes: &'a [u8], wanted: &str) -> Option<Cow<'a, [u8]>> {
    let header = Elf::parse_header(bytes).ok()?;
    let offset = usize::try_from(header.e_shoff).ok().filter(|offset| *offset != 0)?;
    let table = SectionHeader::parse_from(bytes, offset, header.e_shnum.into(), CTX).ok()?;
    let names = file_range(bytes, table.get(usize::from(header.e_shstrndx))?)?;
    let is_wanted = |section: &&SectionHeader| {
        names.get(section.sh_name..).is_some_and(|name| name.split(|byte| *byte == 0).next() == Some(wanted.as_bytes()))
    };
    let section = table.iter().find(is_wanted)?;
    let data = file_range(bytes, section)?;
    if section.sh_flags & u64::from(SHF_COMPRESSED) == 0 {
        return Some(Cow::Borrowed(data));
    }
    let (head, stream) = data.split_at_checked(CHDR)?;
    let method = match u32::from_le_bytes(head[..4].try_into().ok()?) {
        1 => Method::Zlib,
        2 => Method::Zstd,
        _ => return None,
    };
    let size = u64::from_le_bytes(head[8..16].try_into().ok()?);
    let (data, _) = inflate(method, stream, size, &mut Budget { limit: LIMIT, used: 0 }).ok()?;
    Some(Cow::Owned(data))
}

fn file_range<'a>(bytes: &'a [u8], section: &SectionHeader) -> Option<&'a [u8]> {
    if section.sh_type == SHT_NOBITS {
        return None;
    }
    let start = usize::try_from(section.sh_offset).ok()?;
    bytes.get(start..start.checked_add(usize::try_from(section.sh_size).ok()?)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    /// A section header's fields that matter here.
    fn header(name: u32, flags: u64, offset: usize, size: usize) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend(name.to_le_bytes());
        out.extend(1u32.to_le_bytes());
        for value in [flags, 0, offset as u64, size as u64, 0, 1, 0] {
            out.extend(value.to_le_bytes());
        }
        out
    }

    /// A file with these sections besides its names, which come last.
    fn file(sections: &[(&str, u64, &[u8])]) -> Vec<u8> {
        let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 64];
        file.resize(64, 0);
        let mut table = vec![0; 64];
        let mut names = vec![0];
        for (name, flags, data) in sections {
            table.extend(header(names.len() as u32, *flags, file.len(), data.len()));
            names.extend(name.bytes().chain([0]));
            file.extend(*data);
        }
        table.extend(header(0, 0, file.len(), names.len()));
        file.extend(names);
        let offset = file.len() as u64;
        file[40..48].copy_from_slice(&offset.to_le_bytes());
        file[58..60].copy_from_slice(&64u16.to_le_bytes());
        file[60..62].copy_from_slice(&(sections.len() as u16 + 2).to_le_bytes());
        file[62..64].copy_from_slice(&(sections.len() as u16 + 1).to_le_bytes());
        file.extend(table);
        file
    }

    fn compressed(method: u32, size: u64, stream: &[u8]) -> Vec<u8> {
        let mut data = [method.to_le_bytes(), [0; 4]].concat();
        data.extend(size.to_le_bytes());
        data.extend([0; 8]);
        data.extend(stream);
        data
    }

    #[test]
    fn sections_are_found_by_their_whole_name() {
        let file = file(&[(".debug_info.dwo", 0, b"no"), (".debug_info", 0, b"yes")]);
        assert_eq!(find(&file, ".debug_info").as_deref(), Some(&b"yes"[..]));
        assert_eq!(find(&file, ".debug"), None);
    }

    #[test]
    fn compressed_sections_are_uncompressed() {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(b"line table").unwrap();
        let stream = encoder.finish().unwrap();
        let flag = u64::from(SHF_COMPRESSED);
        let good = compressed(1, 10, &stream);
        let file_of = |data: &[u8]| file(&[(".debug_line", flag, data)]);
        assert_eq!(find(&file_of(&good), ".debug_line").as_deref(), Some(&b"line table"[..]));
        for bad in
            [compressed(3, 10, &stream), compressed(1, 11, &stream), compressed(1, 1 << 40, &stream), vec![1; 23]]
        {
            assert_eq!(find(&file_of(&bad), ".debug_line"), None);
        }
    }

    #[test]
    fn what_lies_outside_the_file_is_not_found() {
        let mut file = file(&[(".a", 0, b"x")]);
        let table = file.len() - 3 * 64;
        file[table + 64 + 32..][..8].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(find(&file, ".a"), None);
    }
}

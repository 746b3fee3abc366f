//! Builds small containers to test with.

use std::io::Write;

use elf::container::Method;
use md5::{Digest, Md5};

/// The ELF header of a linked code object, and one empty program header. `flags` are `e_flags`, `abi` is
/// `EI_ABIVERSION`.
pub fn code_with(flags: u32, abi: u8) -> Vec<u8> {
    let mut elf = vec![0; 120];
    elf[..9].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1, 64, abi]);
    let mut put = |at: usize, value: &[u8]| elf[at..at + value.len()].copy_from_slice(value);
    put(0x10, &[3, 0, 224, 0, 1]);
    put(0x20, &[64]);
    put(0x30, &flags.to_le_bytes());
    put(0x34, &[64, 0, 56, 0, 1]);
    elf
}

/// A code object V6 for a target id, which stands at its end to tell it by.
pub fn code(target: &str) -> Vec<u8> {
    let id: elf::TargetId = target.parse().unwrap();
    let bits = |feature| match feature {
        elf::Feature::Unsupported => 0,
        elf::Feature::Any => 1,
        elf::Feature::Off => 2,
        elf::Feature::On => 3,
    };
    let flags = u32::from(id.processor.mach)
        | bits(id.xnack) << 8
        | bits(id.sramecc) << 10
        | u32::from(id.generic_version) << 24;
    [code_with(flags, 4), target.as_bytes().to_vec()].concat()
}

/// A clang offload bundle with images aligned to `align`.
pub fn bundle(align: usize, entries: &[(&str, &[u8])]) -> Vec<u8> {
    let table: usize = entries.iter().map(|(id, _)| 24 + id.len()).sum();
    let mut at = 32 + table;
    let mut images = vec![];
    let mut out = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    out.extend((entries.len() as u64).to_le_bytes());
    for (id, image) in entries {
        let padding = at.next_multiple_of(align) - at;
        images.extend(vec![0; padding]);
        at += padding;
        for value in [at, image.len(), id.len()] {
            out.extend((value as u64).to_le_bytes());
        }
        out.extend(id.as_bytes());
        images.extend(*image);
        at += image.len();
    }
    out.extend(images);
    out
}

/// A bundle with the host's empty entry and one for each target.
pub fn fat(targets: &[&str]) -> Vec<u8> {
    let images: Vec<_> = targets.iter().map(|t| (format!("hipv4-amdgcn-amd-amdhsa--{t}"), code(t))).collect();
    let mut entries = vec![("host-x86_64-unknown-linux-gnu-", &[][..])];
    entries.extend(images.iter().map(|(id, image)| (id.as_str(), &image[..])));
    bundle(1, &entries)
}

pub fn compress(method: Method, bytes: &[u8]) -> Vec<u8> {
    match method {
        Method::Zlib => {
            let mut encoder = flate2::write::ZlibEncoder::new(vec![], flate2::Compression::default());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        Method::Zstd => ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest),
    }
}

/// The header of a compressed bundle and a stream.
pub fn ccob_of(version: u16, method: u16, uncompressed: u64, hash: &[u8], stream: &[u8]) -> Vec<u8> {
    let mut out = b"CCOB".to_vec();
    out.extend(version.to_le_bytes());
    out.extend(method.to_le_bytes());
    match version {
        1 => out.extend((uncompressed as u32).to_le_bytes()),
        2 => {
            out.extend((24 + stream.len() as u32).to_le_bytes());
            out.extend((uncompressed as u32).to_le_bytes());
        }
        _ => {
            out.extend((32 + stream.len() as u64).to_le_bytes());
            out.extend(uncompressed.to_le_bytes());
        }
    }
    out.extend(&hash[..8]);
    out.extend(stream);
    out
}

/// A compressed bundle.
pub fn ccob(version: u16, method: Method, inside: &[u8]) -> Vec<u8> {
    let number = if method == Method::Zlib { 0 } else { 1 };
    ccob_of(version, number, inside.len() as u64, &Md5::digest(inside), &compress(method, inside))
}

/// An entry of an offload binary.
#[derive(Clone)]
pub struct Image<'a> {
    pub image_kind: u16,
    pub offload_kind: u16,
    pub flags: u32,
    pub strings: Vec<(&'a str, &'a str)>,
    pub data: Vec<u8>,
}

/// An image for a HIP target.
pub fn image<'a>(arch: &'a str, data: &[u8]) -> Image<'a> {
    let strings = vec![("arch", arch), ("other", "text"), ("triple", "amdgcn-amd-amdhsa")];
    Image { image_kind: 1, offload_kind: 4, flags: 0, strings, data: data.to_vec() }
}

/// An LLVM offload binary.
pub fn offload_binary(version: u32, images: &[Image<'_>], method: Option<Method>) -> Vec<u8> {
    let header = if version == 3 { 40 } else { 32 };
    let string_bytes = if version == 1 { 16 } else { 24 };
    let strings: usize = images.iter().map(|i| i.strings.len()).sum();
    let text_at = header + images.len() * 40 + strings * string_bytes;
    let (mut entries, mut table, mut text, mut data) = (vec![], vec![], vec![], Vec::<u8>::new());
    let text_len: usize = images.iter().flat_map(|i| &i.strings).map(|(k, v)| k.len() + v.len() + 2).sum();
    let data_at = (text_at + text_len).next_multiple_of(8);
    for image in images {
        entries.extend(image.image_kind.to_le_bytes());
        entries.extend(image.offload_kind.to_le_bytes());
        entries.extend(image.flags.to_le_bytes());
        let strings_at = header + images.len() * 40 + table.len();
        for value in [strings_at, image.strings.len(), data_at + data.len(), image.data.len()] {
            entries.extend((value as u64).to_le_bytes());
        }
        for (key, value) in &image.strings {
            table.extend((text_at as u64 + text.len() as u64).to_le_bytes());
            text.extend([key.as_bytes(), b"\0"].concat());
            table.extend((text_at as u64 + text.len() as u64).to_le_bytes());
            text.extend([value.as_bytes(), b"\0"].concat());
            if version > 1 {
                table.extend((value.len() as u64).to_le_bytes());
            }
        }
        data.extend(&image.data);
    }
    let mut body = [entries, table, text].concat();
    body.resize(data_at - header, 0);
    body.extend(data);
    body.resize((header + body.len()).next_multiple_of(8) - header, 0);

    let inflated = header + body.len();
    let stored = method.map_or(body.clone(), |method| compress(method, &body));
    let mut out = b"\x10\xff\x10\xad".to_vec();
    out.extend(version.to_le_bytes());
    let count = if version == 1 { 40 } else { images.len() };
    for value in [header + stored.len(), header, count] {
        out.extend((value as u64).to_le_bytes());
    }
    if version == 3 {
        out.extend((if method.is_some() { inflated as u64 } else { 0 }).to_le_bytes());
    }
    out.extend(stored);
    out
}

/// A section of a host file.
pub struct Section<'a> {
    pub name: &'a str,
    pub kind: u32,
    pub flags: u64,
    pub data: Vec<u8>,
}

pub fn section<'a>(name: &'a str, data: &[u8]) -> Section<'a> {
    Section { name, kind: 1, flags: 2, data: data.to_vec() }
}

/// An ELF file for x86-64.
pub fn host(sections: &[Section<'_>]) -> Vec<u8> {
    let mut elf = vec![0; 64];
    elf[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1]);
    elf[0x10..0x14].copy_from_slice(&[3, 0, 62, 0]);
    let mut names = vec![0];
    let mut headers = vec![0; 64];
    let mut header = |name: usize, kind: u32, flags: u64, at: usize, size: usize| {
        headers.extend((name as u32).to_le_bytes());
        headers.extend(kind.to_le_bytes());
        for value in [flags, 0, at as u64, size as u64, 0, 1, 0] {
            headers.extend(value.to_le_bytes());
        }
    };
    for section in sections {
        header(names.len(), section.kind, section.flags, elf.len(), section.data.len());
        names.extend([section.name.as_bytes(), b"\0"].concat());
        elf.extend(&section.data);
    }
    let name = names.len();
    names.extend(b".shstrtab\0");
    header(name, 3, 0, elf.len(), names.len());
    elf.extend(names);
    let at = elf.len() as u64;
    elf[0x28..0x30].copy_from_slice(&at.to_le_bytes());
    elf[0x3a..0x40].copy_from_slice(&[64, 0, sections.len() as u8 + 2, 0, sections.len() as u8 + 1, 0]);
    elf.extend(headers);
    elf
}

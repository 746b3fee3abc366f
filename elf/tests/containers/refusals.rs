//! Every way to be wrong, and the one line that says so. Each file has one thing changed.

use std::fmt::Write;

use elf::container::{Limits, Method, open};

use crate::build::{
    Image, Section, bundle, ccob, ccob_of, code, code_with, compress, fat, host, image, offload_binary, section,
};

type Case = (&'static str, Vec<u8>);

fn with(name: &'static str, mut file: Vec<u8>, at: usize, bytes: &[u8]) -> Case {
    file[at..at + bytes.len()].copy_from_slice(bytes);
    (name, file)
}

fn u64_at(name: &'static str, file: Vec<u8>, at: usize, value: u64) -> Case {
    with(name, file, at, &value.to_le_bytes())
}

fn refusals(cases: Vec<Case>) -> String {
    let mut text = String::new();
    for (name, file) in cases {
        let Err(error) = open(&file, &Limits { max_entries: 100, ..Limits::default() }) else {
            panic!("{name} was not refused")
        };
        let line = error.to_string();
        assert!(!line.contains('\n') && !line.is_empty(), "{name}: {line:?}");
        writeln!(text, "{name}: {line}").unwrap();
    }
    text
}

#[test]
fn files_that_are_no_containers() {
    let text = refusals(vec![
        ("empty", vec![]),
        ("text", b"int main() {}\n".to_vec()),
        ("text bundle", b"\n; __CLANG_OFFLOAD_BUNDLE____START__ hip-amdgcn-amd-amdhsa--gfx900\ns_endpgm\n".to_vec()),
        ("bitcode", b"BC\xc0\xde\x35\x14".to_vec()),
        ("archive", b"!<arch>\n".to_vec()),
        ("kpack", b"KPAK\x01\0\0\0".to_vec()),
        ("noise", vec![0, 1, 2, 3]),
        ("start of a bundle", b"__CLANG_OFF".to_vec()),
        ("start of a compressed bundle", b"CC".to_vec()),
        ("start of an offload binary", b"\x10".to_vec()),
        ("start of an ELF file", b"\x7fEL".to_vec()),
        ("start of a kpack archive", b"KPA".to_vec()),
        ("short code object", code("gfx900")[..40].to_vec()),
        ("unlinked code object", with("", code("gfx900"), 0x10, &[1]).1),
        ("code object V2", code_with(0x2c, 0)),
    ]);
    insta::assert_snapshot!(text);
}

#[test]
fn bundles() {
    let good = || fat(&["gfx900", "gfx1100"]);
    // The table: the host's entry at 0x20, then those of the code objects.
    let first = 0x20 + 24 + "host-x86_64-unknown-linux-gnu-".len();
    let second = first + 24 + "hipv4-amdgcn-amd-amdhsa--gfx900".len();
    let offset = |at: usize| u64::from_le_bytes(good()[at..at + 8].try_into().unwrap());
    let text = refusals(vec![
        ("cut count", good()[..30].to_vec()),
        u64_at("count beyond the data", good(), 24, 1 << 60),
        u64_at("count beyond the table", good(), 24, 4),
        ("more than the limit", fat(&["gfx900"; 100])),
        ("cut table", good()[..first + 10].to_vec()),
        u64_at("id beyond the data", good(), first + 16, 5000),
        u64_at("id of nothing", good(), first + 16, 0),
        u64_at("length of an id that wraps", good(), first + 16, u64::MAX),
        with("id with a newline", good(), first + 24, b"a\nb"),
        with("id that is not UTF-8", good(), first + 24, b"\xff\xfe"),
        u64_at("image in the table", good(), first, 0x20),
        u64_at("image at 0", good(), first, 0),
        u64_at("image beyond the data", good(), second, 1 << 40),
        u64_at("image that wraps", good(), second, u64::MAX),
        u64_at("size that wraps", good(), second + 8, u64::MAX - 100),
        ("cut image", good()[..good().len() - 1].to_vec()),
        u64_at("overlap", good(), second, offset(second) - 1),
        u64_at("twice the same image", good(), second, offset(first)),
        ("bytes after it", [good(), b"more".to_vec()].concat()),
        ("bytes after padding", [good(), vec![0; 8], b"\x01".to_vec()].concat()),
        ("the next one is cut", [good(), vec![0; 8], good()[..20].to_vec()].concat()),
        ("the next one is damaged", [good(), u64_at("", good(), 24, 1 << 60).1].concat()),
        ("too many in all", fat(&["gfx900"; 60]).repeat(2)),
        ("too many containers", bundle(1, &[]).repeat(101)),
    ]);
    insta::assert_snapshot!(text);
}

#[test]
fn compressed_bundles() {
    let inside = fat(&["gfx900"]);
    let zlib = || ccob(2, Method::Zlib, &inside);
    let zstd = || ccob(3, Method::Zstd, &inside);
    let size = inside.len() as u64;
    let hash = &zstd()[24..32].to_vec();
    let last = |mut file: Vec<u8>| {
        *file.last_mut().unwrap() ^= 1;
        file
    };
    let text = refusals(vec![
        ("cut version", b"CCOB\x01".to_vec()),
        ("cut header of version 1", ccob(1, Method::Zlib, &inside)[..19].to_vec()),
        ("cut header of version 2", zlib()[..23].to_vec()),
        ("cut header of version 3", zstd()[..31].to_vec()),
        with("version 0", zstd(), 4, &[0]),
        with("version 4", zstd(), 4, &[4]),
        with("method 2", zstd(), 6, &[2]),
        with("total in the header", zlib(), 8, &[23, 0]),
        u64_at("total beyond the data", zstd(), 8, 1 << 40),
        ("cut data", zstd()[..zstd().len() - 1].to_vec()),
        u64_at("total less than the data", zstd(), 8, zstd().len() as u64 - 1),
        ("cut zlib stream without a total", ccob(1, Method::Zlib, &inside)[..100].to_vec()),
        ("no stream", ccob_of(3, 1, size, hash, b"")),
        ("one byte of zlib", ccob_of(3, 0, size, hash, b"x")),
        ("bytes after the stream", ccob_of(3, 1, size, hash, &[compress(Method::Zstd, &inside), vec![0]].concat())),
        ("zlib that says zstd", ccob_of(3, 1, size, hash, &compress(Method::Zlib, &inside))),
        ("zstd that says zlib", ccob_of(3, 0, size, hash, &compress(Method::Zstd, &inside))),
        ("gzip", ccob_of(3, 0, size, hash, b"\x1f\x8b\x08\0")),
        ("declared size beyond the limit", ccob_of(3, 1, 1 << 31, hash, &compress(Method::Zstd, &inside))),
        ("size less than the zlib stream", ccob_of(2, 0, size - 1, hash, &compress(Method::Zlib, &inside))),
        ("size more than the zlib stream", ccob_of(2, 0, size + 1, hash, &compress(Method::Zlib, &inside))),
        ("size less than the zstd frame", ccob_of(2, 1, size - 1, hash, &compress(Method::Zstd, &inside))),
        ("hash", with("", zstd(), 24, &[0; 8]).1),
        ("zlib checksum", last(zlib())),
        ("zstd checksum", last(zstd())),
        ("zstd block of no kind", ccob_of(3, 1, size, hash, b"\x28\xb5\x2f\xfd\0\x50\x07\0\0")),
        ("zstd frame of another size", ccob_of(3, 1, size, hash, b"\x28\xb5\x2f\xfd\xa0\x05\0\0\0\x01\0\0")),
        ("zstd dictionary", ccob_of(3, 1, size, hash, b"\x28\xb5\x2f\xfd\x01\x50\x07\x01\0\0")),
        ("cut zstd frame header", ccob_of(3, 1, size, hash, b"\x28\xb5\x2f\xfd\x00")),
        ("cut zstd block", ccob_of(3, 1, size, hash, b"\x28\xb5\x2f\xfd\0\x50\xf9\0\0")),
        ("zstd skippable frame", ccob_of(3, 1, size, hash, b"\x50\x2a\x4d\x18\x01\0\0\0\0")),
        ("not a bundle inside", ccob(2, Method::Zlib, &code("gfx900"))),
        ("nothing inside", ccob(2, Method::Zlib, b"")),
        ("damaged bundle inside", ccob(2, Method::Zlib, &inside[..inside.len() - 1])),
        ("nested", (0..8).fold(inside.clone(), |file, _| ccob(3, Method::Zlib, &file))),
    ]);
    insta::assert_snapshot!(text);
}

#[test]
fn offload_binaries() {
    let images = ["gfx900", "gfx1100"].map(|t| image(t, &code(t)));
    let v1 = || offload_binary(1, &images[..1], None);
    let v2 = || offload_binary(2, &images, None);
    let v3 = || offload_binary(3, &images, None);
    let packed = || offload_binary(3, &images, Some(Method::Zstd));
    // Version 2: entries at 0x20 and 0x48, strings of the first at 0x70.
    let twice = Image { strings: vec![("arch", "gfx900"), ("arch", "gfx906")], ..images[0].clone() };
    let odd = Image { strings: vec![("arch", "gfx\n900")], ..images[0].clone() };
    let long = "x".repeat(5000);
    let long = Image { strings: vec![("triple", &long)], ..images[0].clone() };
    let len = |file: Vec<u8>| file.len() as u64;
    // Ten entries with the table of the first.
    let many = Image { strings: vec![("other", "x"); 60], ..images[0].clone() };
    let none = Image { strings: vec![], ..images[0].clone() };
    let mut strings = offload_binary(2, &[vec![many], vec![none; 9]].concat(), None);
    for entry in 1..10 {
        strings.copy_within(0x28..0x38, 0x28 + 40 * entry);
    }
    let mut unterminated = v1();
    let at = unterminated.windows(6).position(|w| w == b"gfx900").unwrap();
    unterminated[at..].fill(b'x');
    unterminated[0x40..0x48].copy_from_slice(&1_u64.to_le_bytes());
    let text = refusals(vec![
        ("cut version", v1()[..7].to_vec()),
        ("cut header of version 1", v1()[..31].to_vec()),
        ("cut header of version 3", v3()[..39].to_vec()),
        with("version 0", v1(), 4, &[0]),
        with("version 4", v1(), 4, &[4]),
        u64_at("size in the header", v3(), 8, 39),
        u64_at("size beyond the data", v1(), 8, 1 << 40),
        ("cut", v1()[..v1().len() - 1].to_vec()),
        u64_at("entry size", v1(), 24, 48),
        u64_at("entries in the header", v2(), 16, 31),
        u64_at("entries beyond the end", v2(), 16, len(v2()) - 79),
        u64_at("number of entries that wraps", v2(), 24, u64::MAX / 8),
        ("entries beyond the limit", offload_binary(2, &vec![images[0].clone(); 101], None)),
        u64_at("image beyond the end", v2(), 0x38, len(v2()) - 10),
        u64_at("image in the header", v2(), 0x38, 31),
        u64_at("image size that wraps", v2(), 0x40, u64::MAX),
        u64_at("strings beyond the end", v2(), 0x28, len(v2()) - 10),
        u64_at("number of strings that wraps", v2(), 0x30, u64::MAX),
        ("string tables that share", strings),
        u64_at("key beyond the end", v2(), 0x70, 1 << 40),
        u64_at("value beyond the end", v2(), 0x78, 1 << 40),
        u64_at("value size that wraps", v2(), 0x80, u64::MAX),
        ("value without an end", unterminated),
        ("string twice", offload_binary(2, &[twice], None)),
        ("string with a newline", offload_binary(1, &[odd], None)),
        ("long string of version 1", offload_binary(1, std::slice::from_ref(&long), None)),
        ("long string of version 3", offload_binary(3, &[long], None)),
        u64_at("overlap", v2(), 0x38 + 40, u64::from_le_bytes(v2()[0x38..0x40].try_into().unwrap())),
        u64_at("inflated size of the header", packed(), 32, 40),
        u64_at("inflated size less than the data", packed(), 32, 300),
        u64_at("inflated size beyond the limit", packed(), 32, 1 << 40),
        u64_at("entries beyond the stream", packed(), 16, len(packed()) + 1),
        with("stream of no kind", packed(), 40, b"1234"),
        ("bytes after it", [v1(), b"more".to_vec()].concat()),
        ("bytes after its stream", u64_at("", [packed(), vec![1, 2]].concat(), 8, len(packed()) + 2).1),
        ("the next one is damaged", [v1(), with("", v1(), 4, &[9]).1].concat()),
        ("a damaged bundle inside", offload_binary(2, &[images[0].clone(), image("", &fat(&["gfx900"])[..100])], None)),
    ]);
    insta::assert_snapshot!(text);
}

#[test]
fn host_files() {
    let fat = fat(&["gfx900"]);
    let good = || host(&[section(".text", b"\xc3"), section(".hip_fatbin", &fat)]);
    let shoff = u64::from_le_bytes(good()[0x28..0x30].try_into().unwrap()) as usize;
    let nobits = Section { kind: 8, ..section(".hip_fatbin", &fat) };
    let compressed = Section { flags: 0x802, ..section(".hip_fatbin", &fat) };
    let text = refusals(vec![
        ("cut header", good()[..63].to_vec()),
        with("32 bits", good(), 4, &[1]),
        with("big endian", with("", good(), 5, &[2]).1, 0x12, &[0, 62]),
        u64_at("stripped", good(), 0x28, 0),
        with("header size", good(), 0x3a, &[40]),
        u64_at("headers beyond the end", good(), 0x28, 1 << 40),
        u64_at("headers that wrap", good(), 0x28, u64::MAX),
        with("number of headers", good(), 0x3c, &[200]),
        with("number of names", good(), 0x3e, &[100]),
        u64_at("section beyond the end", good(), shoff + 2 * 64 + 0x18, 1 << 40),
        u64_at("section size that wraps", good(), shoff + 2 * 64 + 0x20, u64::MAX),
        ("no bytes in the file", host(&[nobits])),
        ("SHF_COMPRESSED", host(&[compressed])),
        ("no device code", host(&[section(".text", b"\xc3")])),
        ("no sections at all", host(&[])),
        ("zeros only", host(&[section(".hip_fatbin", &[0; 4096])])),
        ("kpack", host(&[section(".rocm_kpack_ref", b"\x82"), section(".hip_fatbin", &[0; 4096])])),
        (
            "relocatable object",
            host(&[section("__CLANG_OFFLOAD_BUNDLE__hip-amdgcn-amd-amdhsa--gfx90a", b"BC\xc0\xde")]),
        ),
        ("something else in it", host(&[section(".hip_fatbin", b"\0\0\0\0else")])),
        ("a cut bundle in it", host(&[section(".hip_fatbin", &fat[..fat.len() - 1])])),
        ("a damaged one behind", host(&[section(".hip_fatbin", &[fat.clone(), b"CCOB\x09\0\0\0".to_vec()].concat())])),
    ]);
    insta::assert_snapshot!(text);
}

/// More than 65279 sections: the numbers are in the first section header.
#[test]
fn extended_section_numbers() {
    let fat = fat(&["gfx900"]);
    let mut file = host(&[section(".hip_fatbin", &fat)]);
    let shoff = u64::from_le_bytes(file[0x28..0x30].try_into().unwrap()) as usize;
    file[0x3c..0x40].copy_from_slice(&[0, 0, 0xff, 0xff]);
    file[shoff + 0x20] = 3;
    file[shoff + 0x28] = 2;
    assert_eq!(open(&file, &Limits::default()).unwrap().entries.len(), 2);
}

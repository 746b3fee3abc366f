//! Every way to be wrong, and the one line that says so. Each image has one thing changed.

use std::fmt::Write;

use elf::{CodeObject, Error, Foreign, Version};

use crate::image::{Image, M, Parts, descriptor, map};

type Case = (&'static str, Vec<u8>);

/// The image with a change to its bytes.
fn bytes(name: &'static str, change: impl FnOnce(&mut Image)) -> Case {
    let mut image = Parts::default().build();
    change(&mut image);
    (name, image.bytes)
}

/// The image with a change to what it is made of.
fn parts(name: &'static str, change: impl FnOnce(&mut Parts)) -> Case {
    let mut parts = Parts::default();
    change(&mut parts);
    (name, parts.build().bytes)
}

/// The image with a change to its metadata.
fn meta(name: &'static str, change: impl FnOnce(&mut M)) -> Case {
    parts(name, |parts| change(&mut parts.metadata[0]))
}

/// The image with a value of its metadata changed.
fn value(name: &'static str, path: &str, value: impl Into<M>) -> Case {
    meta(name, |m| *m.at(path) = value.into())
}

/// The image with a word of its kernel descriptor changed.
fn word(name: &'static str, offset: usize, value: u32) -> Case {
    parts(name, |parts| parts.descriptor[offset..offset + 4].copy_from_slice(&value.to_le_bytes()))
}

/// The image with a change to one symbol.
fn symbol(name: &'static str, which: usize, change: impl FnOnce(&mut crate::image::Sym)) -> Case {
    parts(name, |parts| change(&mut parts.symbols[which]))
}

/// All refused lines of a list, each checked to be one line.
fn refusals(cases: Vec<Case>) -> String {
    let mut text = String::new();
    for (name, bytes) in cases {
        match CodeObject::parse(&bytes) {
            Ok(_) => panic!("{name} was not refused"),
            Err(error) => {
                let line = error.to_string();
                assert!(!line.contains('\n') && !line.is_empty(), "{name}: {line:?}");
                writeln!(text, "{name}: {line}").unwrap();
            }
        }
    }
    text
}

#[test]
fn the_unchanged_image_is_good() {
    let object = Parts::default().build();
    assert_eq!(CodeObject::parse(&object.bytes).unwrap().version(), Version::V6);
}

#[test]
fn files_that_are_not_code_objects() {
    let cases = vec![
        ("empty", vec![]),
        ("text", b"extern \"C\" void main() {}\n".to_vec()),
        ("script", b"#!/bin/sh\nexec true\n".to_vec()),
        ("bitcode", b"BC\xc0\xde\x35\x14\0\0".to_vec()),
        ("spirv", b"\x03\x02\x23\x07\0\0\x01\0".to_vec()),
        ("bundle", b"__CLANG_OFFLOAD_BUNDLE__\x01\0\0\0\0\0\0\0".to_vec()),
        ("compressed_bundle", b"CCOB\x03\0\x01\0".to_vec()),
        ("offload_binary", b"\x10\xff\x10\xad\x01\0\0\0".to_vec()),
        ("archive", b"!<arch>\n".to_vec()),
        ("zeros", vec![0; 64]),
        bytes("machine_x86", |i| i.put_u16("ehdr", 18, 62)),
        bytes("machine_aarch64", |i| i.put_u16("ehdr", 18, 183)),
        bytes("big_endian_host", |i| {
            i.put("ehdr", 5, &[2]);
            i.put("ehdr", 18, &[0, 22]);
        }),
    ];
    insta::assert_snapshot!(refusals(cases));

    let mut image = Parts::default().build();
    image.put_u16("ehdr", 18, 62);
    let error = CodeObject::parse(&image.bytes).unwrap_err();
    assert_eq!(error, Error::Foreign(Foreign::HostElf { machine: 62, name: "x86-64" }));
}

#[test]
fn headers() {
    let long = |part: &'static str, offset, value| move |i: &mut Image| i.put_u64(part, offset, value);
    let short = |offset, value| move |i: &mut Image| i.put_u16("ehdr", offset, value);
    let cases = vec![
        bytes("short_ehdr", |i| i.bytes.truncate(40)),
        bytes("only_magic", |i| i.bytes.truncate(4)),
        bytes("class32", |i| i.put("ehdr", 4, &[1])),
        bytes("data", |i| i.put("ehdr", 5, &[0])),
        bytes("data_big", |i| i.put("ehdr", 5, &[2])),
        bytes("ident_version", |i| i.put("ehdr", 6, &[0])),
        bytes("osabi_none", |i| i.put("ehdr", 7, &[0])),
        bytes("osabi_pal", |i| i.put("ehdr", 7, &[65])),
        bytes("abi_v2", |i| i.put("ehdr", 8, &[0])),
        bytes("abi9", |i| i.put("ehdr", 8, &[9])),
        bytes("etrel", short(16, 1)),
        bytes("etexec", short(16, 2)),
        bytes("version", |i| i.put_u32("ehdr", 20, 2)),
        bytes("ehsize", short(52, 52)),
        bytes("phentsize", short(54, 32)),
        bytes("phnum_zero", short(56, 0)),
        bytes("phnum_many", short(56, 65535)),
        bytes("phnum_beyond", short(56, 5000)),
        bytes("phoff_far", long("ehdr", 32, u64::MAX - 8)),
        bytes("cut_phdr", |i| i.bytes.truncate(100)),
        bytes("shentsize", short(58, 40)),
        bytes("shoff_far", long("ehdr", 40, 1 << 40)),
        bytes("sym_entsize", |i| i.put_u64("shdr", 4 * 64 + 56, 16)),
        bytes("sym_address", |i| i.put_u64("shdr", 4 * 64 + 16, 16)),
        bytes("sym_size", |i| i.put_u64("shdr", 4 * 64 + 32, 48)),
        bytes("section_outside", |i| i.put_u64("shdr", 64 + 32, u64::MAX)),
        parts("mach_unknown", |p| p.flags = 0xfe),
        parts("mach_r600", |p| p.flags = 0x0a),
        parts("feature_not_there", |p| p.flags = 0x341),
        parts("feature_missing", |p| p.flags = 0x03f),
        parts("generic_bits", |p| p.flags = 0x0100_0041),
        parts("generic_without_version", |p| p.flags = 0x54),
        parts("generic_v5", |p| (p.flags, p.abi_version) = (0x0100_0054, 3)),
        parts("reserved_flags", |p| p.flags = 0x0001_0041),
        parts("reserved_flags_v4", |p| (p.flags, p.abi_version) = (0x1041, 2)),
    ];
    insta::assert_snapshot!(refusals(cases));
}

#[test]
fn segments() {
    let long = |part: &'static str, offset, value| move |i: &mut Image| i.put_u64(part, offset, value);
    let cases = vec![
        bytes("load_filesz", long("load1", 32, 1 << 20)),
        bytes("load_offset_wraps", |i| {
            i.put_u64("load1", 8, u64::MAX - 0x5ff);
            i.put_u64("load1", 16, 0x1a00);
        }),
        bytes("load_memsz_small", long("load1", 40, 16)),
        bytes("load_memsz_huge", long("load1", 40, 1 << 46)),
        bytes("load_memsz_wraps", long("load2", 40, u64::MAX)),
        bytes("load_overlap", long("load1", 16, 0)),
        bytes("load_unsorted", |i| {
            let (a, b) = (i.bytes[i.range("load1")].to_vec(), i.bytes[i.range("load2")].to_vec());
            i.put("load1", 0, &b);
            i.put("load2", 0, &a);
        }),
        bytes("load_align3", long("load1", 48, 3)),
        bytes("load_congruence", |i| i.put_u64("load1", 16, i.vaddr("text") + 16)),
        bytes("no_load", |i| {
            for load in ["load0", "load1", "load2"] {
                i.put_u32(load, 0, 0);
            }
        }),
        bytes("tls", |i| i.put_u32("note_header", 0, 7)),
        bytes("two_dynamic", |i| i.put_u32("note_header", 0, 2)),
        bytes("dynamic_outside", long("dynamic_header", 8, 1 << 32)),
        bytes("note_outside", long("note_header", 32, 1 << 32)),
    ];
    insta::assert_snapshot!(refusals(cases));
}

#[test]
fn dynamic_section() {
    let tag = |tag, value| move |i: &mut Image| i.put_tag(tag, value);
    let rename = |tag, to| move |i: &mut Image| i.rename_tag(tag, to);
    let gnu = |name, change: &dyn Fn(&mut Image)| {
        let mut image = Parts { sysv_hash: false, ..Parts::default() }.build();
        change(&mut image);
        (name, image.bytes)
    };
    let cases = vec![
        bytes("no_dynamic", |i| i.put_u32("dynamic_header", 0, 0)),
        bytes("no_null", |i| i.put_u64("dynamic_header", 32, 0x80)),
        bytes("no_symtab", rename(6, 0x6000_0000)),
        bytes("no_strtab", rename(5, 0x6000_0000)),
        bytes("no_strsz", rename(10, 0x6000_0000)),
        bytes("no_hash", rename(4, 0x6000_0000)),
        bytes("no_rela", rename(7, 0x6000_0000)),
        bytes("no_relasz", rename(8, 0x6000_0000)),
        bytes("rela_twice", rename(9, 7)),
        bytes("needed", rename(9, 1)),
        bytes("rel", rename(9, 17)),
        bytes("relr", rename(9, 36)),
        bytes("jmprel", rename(9, 23)),
        bytes("syment", tag(11, 16)),
        bytes("relaent", tag(9, 16)),
        bytes("relasz", tag(8, 95)),
        bytes("rela_outside", tag(7, 0x10_0000)),
        bytes("rela_in_zeros", |i| i.put_tag(7, i.vaddr("dynamic") + 0x90)),
        bytes("symtab_outside", tag(6, u64::MAX)),
        bytes("hash_outside", tag(4, 0x10_0000)),
        bytes("hash_nchain_huge", |i| i.put_u32("hash", 4, u32::MAX)),
        bytes("strtab_outside", tag(10, 0x10_0000)),
        bytes("dynstr_without_nul", |i| i.put("dynstr", i.range("dynstr").len() - 1, b"x")),
        bytes("dynstr_cut", |i| i.put_tag(10, i.range("dynstr").len() as u64 - 1)),
        bytes("dynstr_empty", tag(10, 0)),
        gnu("gnu_hash_outside", &|i| i.put_tag(0x6fff_fef5, 1 << 40)),
        gnu("gnu_hash_buckets", &|i| i.put_u32("hash", 0, 1 << 30)),
        gnu("gnu_hash_bloom", &|i| i.put_u32("hash", 8, u32::MAX)),
        gnu("gnu_hash_low_bucket", &|i| i.put_u32("hash", 24, 2)),
        gnu("gnu_hash_endless_chain", &|i| i.put_u32("hash", 24, 0x7fff_fff0)),
    ];
    insta::assert_snapshot!(refusals(cases));
}

#[test]
fn symbols() {
    let cases = vec![
        bytes("kd_name", |i| i.put_u32("dynsym", 4 * 24, 0x7fff_ffff)),
        bytes("name_at_the_end", |i| i.put_u32("dynsym", 4 * 24, i.range("dynstr").len() as u32)),
        bytes("name_not_utf8", |i| i.put("dynstr", 1, &[0xff])),
        symbol("type_tls", 5, |s| s.info = 0x16),
        symbol("type_v2_kernel", 3, |s| s.info = 0x1a),
        symbol("type_unknown", 5, |s| s.info = 0x18),
        symbol("binding", 5, |s| s.info = 0xa1),
        symbol("kd_shndx", 4, |s| s.section = 0xfff0),
        symbol("lds", 5, |s| s.section = 0xff00),
        symbol("common", 5, |s| s.section = 0xfff2),
        symbol("section_beyond", 5, |s| s.section = 9),
        symbol("kd_value_far", 4, |s| s.value = 0x1_0000_0000),
        symbol("size_wraps", 5, |s| s.size = u64::MAX),
        symbol("between_segments", 5, |s| (s.section, s.value) = (4, 0xf00)),
        symbol("name_of_two_lines", 5, |s| (s.name, s.info) = ("two\nlines", 0x18)),
        symbol("two_of_a_name", 6, |s| s.name = "counter"),
    ];
    insta::assert_snapshot!(refusals(cases));
}

#[test]
fn relocations() {
    let reloc = |name, reloc: (u64, u32, u32, i64)| parts(name, |p| p.relocations[1] = reloc);
    let cases = vec![
        reloc("rel32", (16, 4, 1, 0)),
        reloc("gotpcrel", (16, 7, 1, 0)),
        reloc("rel32_hi", (16, 11, 1, 0)),
        reloc("rel16", (16, 14, 1, 0)),
        reloc("reserved_type", (16, 12, 1, 0)),
        reloc("unknown_type", (16, 99, 1, 0)),
        reloc("symbol_out_of_range", (16, 3, 8, 0)),
        reloc("no_symbol", (16, 3, 0, 0)),
        reloc("relative_with_symbol", (16, 13, 1, 0)),
        reloc("target_outside", (0x1000, 3, 1, 0)),
        reloc("target_straddles_the_end", (48 + 9 * 16 + 0x100 - 4, 3, 1, 0)),
        reloc("target_wraps", (u64::MAX - 0x3000, 3, 1, 0)),
    ];
    insta::assert_snapshot!(refusals(cases));
}

#[test]
fn notes() {
    let cases = vec![
        bytes("no_note_segment", |i| i.put_u32("note_header", 0, 0)),
        bytes("note_type", |i| i.put_u32("note", 8, 33)),
        bytes("note_owner", |i| i.put("note", 12, b"AMDGPV")),
        bytes("note_namesz", |i| i.put_u32("note", 0, u32::MAX)),
        bytes("note_descsz", |i| i.put_u32("note", 4, u32::MAX)),
        bytes("note_cut", |i| i.put_u64("note_header", 32, 8)),
        bytes("msgpack_trunc", |i| {
            let half = i.range("note").len() as u32 / 2;
            i.put_u32("note", 4, half);
        }),
        bytes("msgpack_reserved", |i| i.put("note", 20, &[0xc1])),
        bytes("msgpack_array_huge", |i| i.put("note", 20, &[0xdd, 0xff, 0xff, 0xff, 0xff])),
        bytes("msgpack_map_huge", |i| i.put("note", 20, &[0xdf, 0xff, 0xff, 0xff, 0xff])),
        bytes("msgpack_bad_in_an_unknown_key", |i| {
            let key = b"\xaa.later_key";
            let at = i.bytes.windows(11).position(|w| w == key).unwrap();
            i.bytes[at + 11..at + 16].copy_from_slice(&[0xdd, 0xff, 0xff, 0xff, 0xff]);
        }),
        parts("second_note", |p| p.metadata.push(M::Nil)),
        meta("deep", |m| {
            let mut deep = M::Nil;
            for _ in 0..17 {
                deep = M::Array(vec![deep]);
            }
            *m.at("later") = deep;
        }),
    ];
    insta::assert_snapshot!(refusals(cases));
}

#[test]
fn bytes_behind_the_root_map() {
    // A padded note whose descsz counts the padding.
    let mut parts = Parts::default();
    while parts.metadata[0].encode().len() % 4 == 0 {
        *parts.metadata[0].at("pad") = M::Str("x".repeat(parts.metadata.len()));
    }
    let mut image = parts.build();
    let len = parts.metadata[0].encode().len();
    image.put_u32("note", 4, len.next_multiple_of(4) as u32);
    let error = CodeObject::parse(&image.bytes).unwrap_err().to_string();
    let rest = len.next_multiple_of(4) - len;
    assert_eq!(error, format!("metadata: {rest} bytes follow the root map, which ends at byte {len} of the note"));
}

#[test]
fn metadata_values() {
    let k = |rest: &str| format!("amdhsa.kernels/0/{rest}");
    let arg = |rest: &str| format!("amdhsa.kernels/0/.args/1/{rest}");
    let missing = |name, path: String| meta(name, |m| m.remove(&path));
    let cases = vec![
        parts("root_not_a_map", |p| p.metadata[0] = M::Array(vec![M::Nil])),
        missing("no_version", "amdhsa.version".to_owned()),
        missing("no_kernels", "amdhsa.kernels".to_owned()),
        value("version_2", "amdhsa.version", [2, 0]),
        value("version_1_9", "amdhsa.version", [1, 9]),
        value("version_of_three", "amdhsa.version", [1, 2, 3]),
        value("version_text", "amdhsa.version", "1.2"),
        value("target_other", "amdhsa.target", "amdgcn-amd-amdhsa--gfx1101"),
        value("target_feature", "amdhsa.target", "amdgcn-amd-amdhsa--gfx90a:xnack+"),
        value("target_nonsense", "amdhsa.target", "nvptx64-nvidia-cuda"),
        value("target_of_two_lines", "amdhsa.target", "amdgcn-amd-amdhsa--\n\u{1b}[1mgfx1100"),
        value("target_number", "amdhsa.target", 1),
        parts("two_targets", |p| {
            p.metadata.push(p.metadata[0].clone());
            *p.metadata[1].at("amdhsa.target") = "amdgcn-amd-amdhsa--gfx1101".into();
        }),
        value("printf_not_an_array", "amdhsa.printf", "text"),
        value("printf_of_numbers", "amdhsa.printf", ["one".into(), M::Int(2)]),
        value("kernels_not_an_array", "amdhsa.kernels", map([])),
        value("kernel_not_a_map", "amdhsa.kernels", [1]),
        missing("no_name", k(".name")),
        missing("no_symbol", k(".symbol")),
        missing("no_kernarg_size", k(".kernarg_segment_size")),
        missing("no_wavefront_size", k(".wavefront_size")),
        value("name_number", &k(".name"), 7),
        value("size_text", &k(".kernarg_segment_size"), "16"),
        value("size_negative", &k(".group_segment_fixed_size"), -1),
        value("size_too_large", &k(".private_segment_fixed_size"), 1 << 32),
        value("align_3", &k(".kernarg_segment_align"), 3),
        value("wavefront_16", &k(".wavefront_size"), 16),
        value("dynamic_stack_2", &k(".uses_dynamic_stack"), 2),
        value("reqd_size_of_two", &k(".reqd_workgroup_size"), [64, 1]),
        value("kind_unknown", &k(".kind"), "later"),
        value("args_not_an_array", &k(".args"), map([])),
        value("arg_not_a_map", &k(".args"), ["x"]),
        missing("arg_no_offset", arg(".offset")),
        missing("arg_no_size", arg(".size")),
        missing("arg_no_kind", arg(".value_kind")),
        value("arg_outside", &arg(".size"), 300),
        value("arg_overlap", &arg(".offset"), 4),
        value("arg_size", &arg(".value_kind"), "global_buffer"),
        value("arg_space", &arg(".address_space"), "flat"),
        value("arg_access", &arg(".access"), "execute"),
        value("arg_pointee_align", &arg(".pointee_align"), 12),
        meta("key_twice", |m| {
            if let M::Map(pairs) = m.at("amdhsa.kernels/0") {
                pairs.push((".name".to_owned(), "k".into()));
            }
        }),
        meta("arg_key_twice", |m| {
            if let M::Map(pairs) = m.at("amdhsa.kernels/0/.args/0") {
                pairs.push((".is_restrict".to_owned(), M::Bool(true)));
            }
        }),
        parts("kernel_twice", |p| p.metadata.push(p.metadata[0].clone())),
    ];
    insta::assert_snapshot!(refusals(cases));
}

#[test]
fn kernels() {
    let cases = vec![
        value("symbol_not_in_dynsym", "amdhsa.kernels/0/.symbol", "hidden.kd"),
        symbol("kd_local", 4, |s| s.info = 0x01),
        symbol("kd_undefined", 4, |s| s.section = 0),
        symbol("kd_absolute", 4, |s| s.section = 0xfff1),
        symbol("kd_function", 4, |s| s.info = 0x12),
        symbol("kd_size", 4, |s| s.size = 32),
        symbol("kd_alignment", 4, |s| s.value = 4u64.wrapping_neg()),
        symbol("kd_writable", 4, |s| {
            // The data is 16-byte aligned; the first multiple of 64 behind its start.
            let data = Parts::default().build().vaddr("data");
            (s.section, s.value) = (2, data.next_multiple_of(64) - data);
        }),
        parts("kd_outside_the_file_part", |p| {
            let data = p.build().vaddr("data");
            (p.symbols[4].section, p.symbols[4].value) = (2, (data + 0x100).next_multiple_of(64) - data);
        }),
        bytes("kd_in_zeros", |i| {
            let size = i.vaddr("kd") + 32;
            i.put_u64("load0", 32, size);
        }),
        bytes("kd_entry_out", |i| i.put_u64("kd", 16, 1 << 30)),
        bytes("kd_entry_negative", |i| i.put_u64("kd", 16, u64::MAX << 40)),
        bytes("kd_entry_unaligned", |i| i.put_u64("kd", 16, i.vaddr("text") + 4 - i.vaddr("kd"))),
        bytes("kd_entry_in_data", |i| i.put_u64("kd", 16, i.vaddr("data").next_multiple_of(256) - i.vaddr("kd"))),
        bytes("kd_entry_in_itself", |i| i.put_u64("kd", 16, 0)),
        bytes("text_not_executable", |i| i.put_u32("load1", 4, 4)),
        word("kd_group_size", 0, 0),
        word("kd_private_size", 4, 8),
        word("kd_kernarg_size", 8, 12),
        word("kd_wave64", 56, 0x0008),
        word("kd_reserved_12", 12, 0x0100),
        word("kd_reserved_40", 40, 1),
        word("kd_reserved_60", 60, 0x8000_0000),
        word("kd_priority", 48, 0xe0af_0c01),
        word("kd_lds_size", 52, 0x9f | 1 << 15),
        word("kd_trap_handler", 52, 0x9f | 1 << 6),
        word("kd_workitem_ids", 52, 0x9f | 3 << 11),
        word("kd_user_sgprs", 52, 0x83),
        word("kd_user_sgprs_too_many", 52, 0x80 | 31 << 1),
        word("kd_vgprs", 48, 0xe0af_003f),
        word("kd_rsrc3", 44, 1 << 20),
        word("kd_shared_vgprs_wave32", 44, 2),
        word("kd_bufsgpr_gfx11", 56, 0x0409),
        word("kd_properties_reserved", 56, 0x0488),
        word("kd_preload_gfx11", 56, 0x0001_0408),
    ];
    insta::assert_snapshot!(refusals(cases));
}

/// The same for a wave64 processor with accumulation registers and kernarg preloading.
#[test]
fn kernels_of_gfx90a() {
    let gfx90a = |change: &dyn Fn(&mut Parts)| {
        let mut parts = Parts { flags: 0x53f, ..Parts::default() };
        *parts.metadata[0].at("amdhsa.target") = "amdgcn-amd-amdhsa--gfx90a".into();
        *parts.metadata[0].at("amdhsa.kernels/0/.wavefront_size") = 64.into();
        for (offset, value) in [(44, 3u32), (48, 0x00af_0001), (52, 0x9c), (56, 0x000a_0008)] {
            parts.descriptor[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
        }
        change(&mut parts);
        parts.build().bytes
    };
    let good = gfx90a(&|_| {});
    let object = CodeObject::parse(&good).unwrap();
    let descriptor = object.kernels()[0].descriptor;
    assert_eq!((descriptor.kernarg_preload_length, descriptor.kernarg_preload_offset), (10, 0));
    assert_eq!(descriptor.accum_offset(object.target().processor.generation), Some(16));

    let word = |name, offset: usize, value: u32| {
        (name, gfx90a(&|p| p.descriptor[offset..offset + 4].copy_from_slice(&value.to_le_bytes())))
    };
    let cases = vec![
        word("wave32", 56, 0x0000_0408),
        word("wgp_mode", 48, 0x20af_0001),
        word("accum_offset", 44, 0x3f),
        word("rsrc3", 44, 0x43),
        word("tg_split_with_lds", 44, 0x1_0003),
        word("sgprs", 48, 0x00af_0381),
        word("preload_more_than_user_sgprs", 56, 0x000d_0008),
        word("preload_beyond_kernarg", 56, 0x200a_0008),
        ("preload_without_second_entry", {
            let mut bytes = gfx90a(&|_| {});
            // p_filesz and p_memsz of the code: the first 256 bytes of it.
            let header = Parts::default().build().at("load1");
            for offset in [32, 40] {
                bytes[header + offset..header + offset + 8].copy_from_slice(&256u64.to_le_bytes());
            }
            bytes
        }),
    ];
    insta::assert_snapshot!(refusals(cases));
}

/// Descriptors of other processors have their own rules; here one that gfx10 has.
#[test]
fn shared_vgprs_need_room() {
    let mut parts = Parts { flags: 0x36, descriptor: descriptor(), ..Parts::default() };
    *parts.metadata[0].at("amdhsa.target") = "amdgcn-amd-amdhsa--gfx1030".into();
    *parts.metadata[0].at("amdhsa.kernels/0/.wavefront_size") = 64.into();
    let mut set = |rsrc1: u32, rsrc3: u32| {
        for (offset, value) in [(44, rsrc3), (48, rsrc1), (56, 0x0008)] {
            parts.descriptor[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
        }
        CodeObject::parse(&parts.build().bytes).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(set(0xe0af_0001, 15), Ok(()));
    let error = set(0xe0af_0025, 15).unwrap_err();
    assert!(error.ends_with("SHARED_VGPR_COUNT is 15, must be less: 8 × 15 above 152 VGPRs, of 256"), "{error}");
}

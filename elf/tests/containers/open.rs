//! What is read from good files.

use elf::container::{ContainerKind, Content, Contents, Limits, Method, OffloadKind, open};
use elf::{Foreign, Version};

use crate::build::{
    Image, Section, bundle, ccob, code, code_with, compress, fat, host, image, offload_binary, section,
};

pub fn opened(bytes: &[u8]) -> Contents<'_> {
    open(bytes, &Limits::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// Ids, and the containers around each entry from the outside to the inside.
fn listing(contents: &Contents<'_>) -> Vec<String> {
    let path = |mut container: Option<usize>| {
        let mut path = vec![];
        while let Some(index) = container {
            let c = &contents.containers[index];
            path.insert(0, format!("{} at {:#x}", c.kind.to_string().split(',').next().unwrap(), c.offset));
            container = c.parent;
        }
        path.join(" / ")
    };
    contents.entries.iter().map(|e| format!("{} in {}", e.id, path(Some(e.container)))).collect()
}

/// Each code object ends with its target, see [`code`].
fn check_code(contents: &Contents<'_>) {
    for entry in &contents.entries {
        if let Some(target) = entry.code_target() {
            assert!(entry.data.ends_with(target.to_string().as_bytes()), "{}", entry.id);
            assert_eq!(entry.target.as_ref(), Some(target));
        }
    }
}

#[test]
fn a_code_object_by_itself() {
    let file = code("gfx90a:xnack+");
    let contents = opened(&file);
    assert_eq!(contents.kind, ContainerKind::CodeObject);
    assert_eq!(listing(&contents), ["amdgcn-amd-amdhsa--gfx90a:xnack+ in AMDGPU code object at 0x0"]);
    let entry = &contents.entries[0];
    assert_eq!((entry.kind, entry.arch.as_str()), (OffloadKind::Unstated, "gfx90a:xnack+"));
    assert!(entry.data.in_file().is_some_and(|data| std::ptr::eq(data, &file[..])));
    let Content::CodeObject { version, target } = &entry.content else { panic!("{:?}", entry.content) };
    assert_eq!((*version, target.to_string().as_str()), (Version::V6, "gfx90a:xnack+"));
}

#[test]
fn bundles() {
    for align in [1, 4, 4096] {
        let (a, b) = (code("gfx900"), code("gfx11-generic"));
        let one = bundle(
            align,
            &[
                ("host-x86_64-unknown-linux-gnu-", &[]),
                ("hipv4-amdgcn-amd-amdhsa--gfx900", &a),
                ("openmp-amdgcn-amd-amdhsa--gfx11-generic", &b),
            ],
        );
        // The linker fills up to the next page, or not.
        for gap in [0, 1, 4096 - one.len() % 4096] {
            let file = [one.clone(), vec![0; gap], fat(&["gfx1201"]), vec![0; 100]].concat();
            let contents = opened(&file);
            check_code(&contents);
            assert_eq!(contents.kind, ContainerKind::Bundle);
            let second = one.len() + gap;
            let first = "in clang offload bundle at 0x0";
            assert_eq!(
                listing(&contents),
                [
                    format!("host-x86_64-unknown-linux-gnu- {first}"),
                    format!("hipv4-amdgcn-amd-amdhsa--gfx900 {first}"),
                    format!("openmp-amdgcn-amd-amdhsa--gfx11-generic {first}"),
                    format!("host-x86_64-unknown-linux-gnu- in clang offload bundle at {second:#x}"),
                    format!("hipv4-amdgcn-amd-amdhsa--gfx1201 in clang offload bundle at {second:#x}"),
                ]
            );
            let kinds: Vec<_> = contents.entries.iter().map(|e| e.kind).collect();
            let (host, hip) = (OffloadKind::Host, OffloadKind::HipV4);
            assert_eq!(kinds, [host, hip, OffloadKind::OpenMp, host, hip]);
            assert_eq!(contents.entries[0].content, Content::Empty);
            assert_eq!(&*contents.entries[2].data, b);
            assert!(contents.entries[2].data.in_file().is_some());
        }
    }
}

#[test]
fn compressed_bundles() {
    let inside = fat(&["gfx900", "gfx1100"]);
    for method in [Method::Zlib, Method::Zstd] {
        for version in 1..=3 {
            let file = ccob(version, method, &inside);
            let contents = opened(&file);
            check_code(&contents);
            let (bytes, uncompressed) = (file.len(), inside.len());
            assert_eq!(contents.kind, ContainerKind::CompressedBundle { version, method, bytes, uncompressed });
            assert_eq!(
                contents.kind.to_string(),
                format!("compressed clang offload bundle V{version}, {method}, {bytes} bytes for {uncompressed} bytes")
            );
            assert_eq!(contents.entries.len(), 3);
            assert!(contents.entries[1].data.in_file().is_none());
            assert_eq!(&*contents.entries[2].data, code("gfx1100"));
        }
    }
    // Of each version and method one after the other, each with another code object, padded and not.
    let targets = ["gfx900", "gfx906", "gfx90a", "gfx942", "gfx1100", "gfx1201"];
    let all = targets.iter().enumerate().map(|(i, target)| {
        let method = if i % 2 == 0 { Method::Zlib } else { Method::Zstd };
        ccob(i as u16 / 2 + 1, method, &fat(&[target]))
    });
    for gap in [0, 4096] {
        let mut file = vec![];
        for one in all.clone() {
            file.extend(one);
            file.resize(file.len().next_multiple_of(gap.max(1)), 0);
        }
        file.extend(fat(&["gfx1030"]));
        let contents = opened(&file);
        check_code(&contents);
        let found: Vec<_> = contents.entries.iter().filter_map(|e| Some(e.code_target()?.to_string())).collect();
        assert_eq!(found[..6], targets);
        assert_eq!(found[6..], ["gfx1030"]);
    }
}

#[test]
fn a_larger_bundle_needs_more_than_one_zstd_block() {
    // 3 MiB that do not repeat soon, so that blocks of all kinds and matches across blocks are in it.
    let mut state = 1_u64;
    let mut noise = |n: usize| -> Vec<u8> {
        (0..n)
            .map(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 60) as u8 * 3
            })
            .collect()
    };
    let half = noise(700_000);
    let image = [code("gfx1100"), half.clone(), vec![7; 1_000_000], noise(900_000), half].concat();
    let inside = bundle(4096, &[("hip-amdgcn-amd-amdhsa--gfx1100", &image)]);
    for method in [Method::Zlib, Method::Zstd] {
        let file = ccob(3, method, &inside);
        assert!(file.len() < inside.len() * 3 / 4);
        assert!(*opened(&file).entries[0].data == image[..]);
    }
}

#[test]
fn offload_binaries() {
    // Version 1 has one image a record, records follow each other.
    let records = ["gfx90a:xnack+", "gfx1100"].map(|t| offload_binary(1, &[image(t, &code(t))], None));
    let file = records.concat();
    let contents = opened(&file);
    check_code(&contents);
    assert_eq!(
        listing(&contents),
        [
            "hip-amdgcn-amd-amdhsa--gfx90a:xnack+ in LLVM offload binary V1 at 0x0".to_owned(),
            format!("hip-amdgcn-amd-amdhsa--gfx1100 in LLVM offload binary V1 at {:#x}", records[0].len()),
        ]
    );

    let images: Vec<_> = ["gfx900", "gfx942", "gfx1201"].map(|t| image(t, &code(t))).into();
    for (version, method) in [(2, None), (3, None), (3, Some(Method::Zlib)), (3, Some(Method::Zstd))] {
        let one = offload_binary(version, &images, method);
        let file = [one.clone(), vec![0; one.len().next_multiple_of(8) - one.len()], one].concat();
        let contents = opened(&file);
        check_code(&contents);
        assert_eq!(contents.kind, ContainerKind::OffloadBinary { version, method });
        assert_eq!(contents.containers.len(), 2);
        let targets: Vec<_> = contents.entries.iter().map(|e| e.arch.as_str()).collect();
        assert_eq!(targets, ["gfx900", "gfx942", "gfx1201", "gfx900", "gfx942", "gfx1201"]);
        assert_eq!(&*contents.entries[4].data, code("gfx942"));
        assert_eq!(contents.entries[0].triple, "amdgcn-amd-amdhsa");
    }
}

#[test]
fn who_an_offload_binary_is_for() {
    let kind = |version, offload_kind| {
        let file = offload_binary(version, &[Image { offload_kind, ..image("gfx900", &code("gfx900")) }], None);
        opened(&file).entries[0].kind
    };
    for version in 1..=3 {
        let kinds = [0, 1, 2, 4, 8].map(|value| kind(version, value));
        use OffloadKind::{Cuda, Hip, OpenMp, Sycl, Unstated};
        assert_eq!(kinds, [Unstated, OpenMp, Cuda, Hip, Sycl]);
    }
    // Clang 19 counted the kinds.
    assert_eq!(kind(1, 3), OffloadKind::Hip);
    assert_eq!(kind(2, 3), OffloadKind::Unstated);
}

#[test]
fn host_files() {
    let inside = fat(&["gfx1100", "gfx1201"]);
    let record = offload_binary(1, &[image("gfx942", &code("gfx942"))], None);
    let by_type = Section { kind: 0x6fff_4c0b, ..section(".anything", &record) };
    let file = host(&[
        section(".text", b"\xc3"),
        // A linker starts it at a page, and other files' bundles at pages.
        section(".hip_fatbin", &[ccob(2, Method::Zstd, &inside), vec![0; 64], fat(&["gfx900"])].concat()),
        section(".hip_fatbin_other", b"not looked at"),
        section(".llvm.rodata.offloading", b"__omp_offloading_main\0"),
        section(".llvm.offloading", &record),
        by_type,
    ]);
    let contents = opened(&file);
    check_code(&contents);
    assert_eq!(contents.kind, ContainerKind::HostElf { machine: 62, name: "x86-64" });
    let second = ccob(2, Method::Zstd, &inside).len() + 64;
    let fatbin = "host ELF for x86-64 at 0x0 / section .hip_fatbin at 0x41";
    let compressed = format!("{fatbin} / compressed clang offload bundle V2 at 0x0 / clang offload bundle at 0x0");
    let plain = format!("{fatbin} / clang offload bundle at {second:#x}");
    let list = listing(&contents);
    assert_eq!(
        list[..5],
        [
            format!("host-x86_64-unknown-linux-gnu- in {compressed}"),
            format!("hipv4-amdgcn-amd-amdhsa--gfx1100 in {compressed}"),
            format!("hipv4-amdgcn-amd-amdhsa--gfx1201 in {compressed}"),
            format!("host-x86_64-unknown-linux-gnu- in {plain}"),
            format!("hipv4-amdgcn-amd-amdhsa--gfx900 in {plain}"),
        ]
    );
    assert_eq!(list.len(), 7);
    for line in &list[5..] {
        assert!(line.contains("section .llvm.offloading"), "{line}");
    }
}

#[test]
fn containers_in_containers() {
    let fat = fat(&["gfx1100"]);
    let compressed = ccob(3, Method::Zlib, &fat);
    let record = offload_binary(2, &[image("", &compressed), image("", &fat)], None);
    let file = host(&[section(".llvm.offloading", &record)]);
    let list = listing(&opened(&file));
    let around = "host ELF for x86-64 at 0x0 / section .llvm.offloading at 0x40 / LLVM offload binary V2 at 0x0";
    // Offsets of containers in an entry count from the entry.
    let inner = "compressed clang offload bundle V3 at 0x0 / clang offload bundle at 0x0";
    assert_eq!(list[1], format!("hipv4-amdgcn-amd-amdhsa--gfx1100 in {around} / {inner}"));
    assert_eq!(list[3], format!("hipv4-amdgcn-amd-amdhsa--gfx1100 in {around} / clang offload bundle at 0x0"));

    let file = bundle(8, &[("hip-amdgcn-amd-amdhsa", &offload_binary(1, &[image("gfx90a", &code("gfx90a"))], None))]);
    assert_eq!(
        listing(&opened(&file)),
        ["hip-amdgcn-amd-amdhsa--gfx90a in clang offload bundle at 0x0 / LLVM offload binary V1 at 0x0"]
    );
}

#[test]
fn what_is_not_a_code_object_is_listed_by_name() {
    let mut x86 = code("gfx900");
    x86[0x12..0x14].copy_from_slice(&[62, 0]);
    let mut unlinked = code("gfx900");
    unlinked[0x10] = 1;
    let v2 = code_with(0x12c, 0);
    let images: [(&[u8], &str); 12] = [
        (b"", "empty"),
        (b"BC\xc0\xde\x35\x14", "LLVM bitcode, which has to be linked first"),
        (b"\xde\xc0\x17\x0b\0\0", "LLVM bitcode, which has to be linked first"),
        (b"\x03\x02\x23\x07\0\x01\x01\0", "SPIR-V, which has to be compiled first"),
        (b"//\n// A compiler\n//\n\n.version 7.8\n.target sm_70\n", "PTX"),
        (b"static int x;\n", "text"),
        (b"!<arch>\nx", "archive"),
        (b"\0\x01\x02\x03\x04\x05\x06\x07\x08\x09", "unknown data that start with [00, 01, 02, 03, 04, 05, 06, 07]"),
        (&x86, "ELF file for x86-64"),
        (&unlinked, "AMDGPU ELF file that cannot be loaded: e_type is 1"),
        (&v2, "AMDGPU ELF file that cannot be loaded: EI_ABIVERSION is 0 (code object V2)"),
        (b"\x7fELF\x02", "AMDGPU ELF file that cannot be loaded: the file has 5 bytes"),
    ];
    let entries: Vec<_> = images.iter().map(|&(image, _)| ("hip-amdgcn-amd-amdhsa--gfx900", image)).collect();
    let file = bundle(1, &entries);
    let in_binary: Vec<_> = images.iter().map(|&(data, _)| image("gfx900", data)).collect();
    let binary = offload_binary(2, &in_binary, None);
    for file in [&file, &binary] {
        let contents = opened(file);
        for (entry, (image, want)) in contents.entries.iter().zip(images) {
            assert!(entry.content.to_string().starts_with(want), "{}", entry.content);
            assert_eq!(&*entry.data, image);
            assert_eq!(entry.code_target(), None);
            assert_eq!(entry.target.unwrap().to_string(), "gfx900");
        }
    }

    let metadata_only = Image { flags: 1, strings: vec![], ..image("", b"") };
    let ptx = Image { image_kind: 5, ..image("sm_90", b".func x\n") };
    let file = offload_binary(3, &[metadata_only, ptx], None);
    let contents = opened(&file);
    assert_eq!(contents.entries[0].content, Content::MetadataOnly);
    assert_eq!(contents.entries[1].content, Content::Ptx);
    assert_eq!((contents.entries[1].target, contents.entries[1].arch.as_str()), (None, "sm_90"));
    let text = Image { image_kind: 1, ..image("sm_90", b".func x\n") };
    let file = offload_binary(1, &[text], None);
    assert_eq!(opened(&file).entries[0].content, Content::Foreign(Foreign::Text));
}

/// A checksum that fits is accepted, as is a zstd frame that does not say its size.
#[test]
fn zstd_frames_of_all_sorts() {
    let inside = fat(&["gfx900"]);
    let frame = compress(Method::Zstd, &inside);
    // One raw block, window of 1 MiB, no size.
    let block = (inside.len() as u32) << 3 | 1;
    let unsized_frame = [&[0x28, 0xb5, 0x2f, 0xfd, 0x00, 10 << 3][..], &block.to_le_bytes()[..3], &inside[..]].concat();
    let hash = <md5::Md5 as md5::Digest>::digest(&inside);
    for stream in [frame, unsized_frame] {
        let file = crate::build::ccob_of(3, 1, inside.len() as u64, &hash, &stream);
        assert_eq!(opened(&file).entries.len(), 2);
    }
}

//! Real images, where they are: programs of this repository, and a folder of cases from outside (`KFDRUN_CASES`, or
//! `../shared/cases` beside the repository). A test says so when it has nothing to look at.

use std::fs;
use std::path::{Path, PathBuf};

use elf::{CodeObject, Error, Foreign, KernelKind, Place, RelocationKind, Value, ValueKind, Version};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::parse::{apply, check, damage, look_at};

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A folder of the cases, if they are there.
fn cases(folder: &str) -> Option<PathBuf> {
    let root = match std::env::var_os("KFDRUN_CASES") {
        Some(root) => PathBuf::from(root),
        None => workspace().join("../shared/cases"),
    };
    let folder = root.join(folder);
    if !folder.is_dir() {
        println!("skipped: {} is not there", folder.display());
        return None;
    }
    Some(folder)
}

/// AMDGPU ELF files in a folder and below.
fn images(folder: &Path, found: &mut Vec<(PathBuf, Vec<u8>)>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            images(&path, found);
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        // Linked files only: e_machine and e_type.
        if bytes.starts_with(b"\x7fELF") && bytes.get(16..20) == Some(&[3, 0, 224, 0]) {
            found.push((path, bytes));
        }
    }
}

#[test]
fn every_image_parses() {
    let mut found = vec![];
    images(&workspace().join("tests/programs"), &mut found);
    if let Some(folder) = cases("images") {
        images(&folder, &mut found);
        assert!(found.len() > 50, "{} images", found.len());
    }
    for (path, bytes) in &found {
        let object = CodeObject::parse(bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        look_at(&object);
        assert!(!object.kernels().is_empty(), "{}", path.display());

        // The name ends with the target: freeargs-xnackon.gfx90a is for gfx90a:xnack+.
        let name = path.file_name().unwrap().to_string_lossy();
        if let Some((_, processor)) = name.rsplit_once('.').filter(|(_, processor)| processor.starts_with("gfx")) {
            assert_eq!(object.target().processor.name, processor, "{name}");
        }
    }
    println!("{} images", found.len());
}

fn read(folder: &Path, name: &str) -> Vec<u8> {
    fs::read(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// What llvm-readelf says of some of them.
#[test]
fn facts_of_images() {
    let Some(folder) = cases("images") else { return };

    let bytes = read(&folder, "free/freelds.gfx90a");
    let object = CodeObject::parse(&bytes).unwrap();
    assert_eq!((object.version(), object.target().to_string().as_str()), (Version::V6, "gfx90a"));
    let loads: Vec<_> = object.segments().iter().map(|s| (s.vaddr, s.bytes.len(), s.memsz)).collect();
    assert_eq!(loads, [(0, 0x980, 0x980), (0x1a00, 0x1104, 0x1104), (0x3b08, 0x70, 0x4f8)]);
    let start = object.kernel("_start").unwrap();
    assert_eq!((start.descriptor_vaddr, start.entry_vaddr), (0x900, 0x1b00));
    assert_eq!((start.metadata.group_segment_fixed_size, start.metadata.vgpr_count), (1024, 17));
    let args: Vec<_> = start.metadata.args.iter().map(|a| (a.offset, a.value_kind)).collect();
    let buffer = ValueKind::GlobalBuffer;
    assert_eq!(args, [(0, ValueKind::ByValue), (8, buffer), (16, buffer), (24, buffer)]);

    let bytes = read(&folder, "llvm22/llvm22-hello.gfx1201");
    let object = CodeObject::parse(&bytes).unwrap();
    assert_eq!(object.span(), 0..0x86d8 + 0x638);
    let rpc = object.symbol("__llvm_rpc_client").unwrap();
    assert_eq!((rpc.place, rpc.size), (Place::Image(0x8ae8), 552));
    assert_eq!(object.globals().map(|s| s.name).collect::<Vec<_>>(), ["__llvm_rpc_client"]);
    let begin = &object.kernel("_begin").unwrap().metadata;
    assert_eq!((begin.kernarg_segment_size, begin.wavefront_size, begin.max_flat_workgroup_size), (280, 32, 1));
    assert_eq!((begin.args[3].offset, begin.args[3].value_kind), (24, ValueKind::HiddenBlockCountX));
    assert_eq!(begin.args.last().map(|a| (a.offset, a.value_kind)), Some((224, ValueKind::HiddenQueuePtr)));

    let bytes = read(&folder, "printf/printf_lib_v4_gfx1030.co");
    let object = CodeObject::parse(&bytes).unwrap();
    assert_eq!(object.version(), Version::V4);
    let kernel = &object.kernel("k_printf_lib").unwrap().metadata;
    assert_eq!((kernel.kernarg_segment_size, kernel.private_segment_fixed_size), (72, 16));
    assert_eq!((kernel.args[6].offset, kernel.args[6].value_kind), (40, ValueKind::HiddenHostcallBuffer));

    let bytes = read(&folder, "libc-tests/integration.startup.gpu.init_fini_array_test.gfx90a");
    let object = CodeObject::parse(&bytes).unwrap();
    let kinds: Vec<_> = object.kernels().iter().map(|k| (k.name(), k.metadata.kind)).collect();
    let normal = KernelKind::Normal;
    assert_eq!(kinds[..3], [("_begin", normal), ("_start", normal), ("_end", normal)]);
    assert_eq!(kinds[3..], [("amdgcn.device.init", KernelKind::Init), ("amdgcn.device.fini", KernelKind::Fini)]);
    let values: Vec<_> = object.relocations().iter().map(|r| (r.vaddr, r.kind, r.value)).collect();
    let relative = RelocationKind::Relative64;
    assert_eq!(values, [(0x6b18, relative, Value::Image(0x4b50)), (0x6b20, relative, Value::Image(0x5590))]);

    let bytes = read(&folder, "gcc12/gcn-hello.gfx906");
    let object = CodeObject::parse(&bytes).unwrap();
    assert_eq!((object.version(), object.target().to_string().as_str()), (Version::V4, "gfx906:xnack-"));
    let kernels: Vec<_> = object.kernels().iter().map(|k| (k.name(), k.descriptor_vaddr)).collect();
    assert_eq!(kernels, [("_init_array", 0x3a40), ("_fini_array", 0x3a80), ("main", 0x3d40)]);
    assert_eq!((object.symbols().len(), object.relocations().len()), (132, 287));

    let xnack = read(&folder, "free/freeargs-xnackon.gfx90a");
    assert_eq!(CodeObject::parse(&xnack).unwrap().target().to_string(), "gfx90a:xnack+");
    for (name, foreign) in [
        ("bundles/vecadd.hipfb", Foreign::OffloadBundle),
        ("bundles/vecadd_ccob.hipfb", Foreign::CompressedBundle),
        ("bundles/vecadd.offbin", Foreign::OffloadBinary),
        ("bundles/host_old.exe", Foreign::HostElf { machine: 62, name: "x86-64" }),
    ] {
        assert_eq!(CodeObject::parse(&read(&folder, name)).unwrap_err(), Error::Foreign(foreign), "{name}");
    }
}

/// A word of the refusal of each malformed image: what was broken in it.
const BAD: [(&str, &str); 21] = [
    ("short_ehdr", "the file has 40 bytes"),
    ("cut_phdr", "e_phoff"),
    ("class32", "EI_CLASS is 1"),
    ("osabi0", "EI_OSABI is 0"),
    ("abi9", "EI_ABIVERSION is 9"),
    ("etrel", "e_type is 1"),
    ("mach_unknown", "e_flags is 0xfe"),
    ("phnum_many", "e_phnum is 65535"),
    ("load_memsz_huge", "p_memsz 0x400000000000"),
    ("load_overlap", "p_vaddr is 0x0"),
    ("load_align3", "p_align is 0x3"),
    ("note_namesz", "namesz is 0xffffffff"),
    ("msgpack_array_huge", "metadata root"),
    ("msgpack_trunc", "beyond the note"),
    ("kd_value_far", "st_value"),
    ("kd_shndx", "st_shndx is 0xfff0"),
    ("kd_name", "st_name is 0x7fffffff"),
    ("sym_entsize", "sh_entsize is 0x10"),
    ("kd_entry_out", "kernel_code_entry_byte_offset"),
    ("kd_bufsgpr_gfx11", "ENABLE_SGPR_PRIVATE_SEGMENT_BUFFER"),
    ("shoff_far", "e_shoff"),
];

#[test]
fn every_malformed_image_is_refused() {
    let Some(folder) = cases("bad") else { return };
    for (name, word) in BAD {
        let error = CodeObject::parse(&read(&folder, &format!("{name}.co"))).unwrap_err().to_string();
        assert!(error.contains(word) && !error.contains('\n'), "{name}: {error}");
    }
    let count =
        fs::read_dir(&folder).unwrap().filter(|e| e.as_ref().unwrap().path().extension().is_some_and(|x| x == "co"));
    assert_eq!(count.count(), BAD.len());
}

#[test]
fn damaged_real_images_never_panic() {
    let mut found = vec![];
    images(&workspace().join("tests/programs"), &mut found);
    if let Some(folder) = cases("images") {
        images(&folder, &mut found);
    }
    // Small ones: more of the damage hits what is read.
    found.retain(|(_, bytes)| bytes.len() < 20_000);
    if found.is_empty() {
        println!("skipped: no images");
        return;
    }
    let mut runner = TestRunner::new(Config { cases: 2000, failure_persistence: None, ..Config::default() });
    let strategy = (0..found.len(), prop::collection::vec(damage(), 1..4));
    runner
        .run(&strategy, |(which, damages)| {
            let mut bytes = found[which].1.clone();
            for damage in &damages {
                apply(&mut bytes, damage);
            }
            check(&bytes);
            Ok(())
        })
        .unwrap();
}

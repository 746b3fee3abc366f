//! Files made by clang's own tools, where they are: a folder of cases from outside (`KFDRUN_CASES`, or
//! `../shared/cases` beside the repository).

use std::path::{Path, PathBuf};

use elf::CodeObject;
use elf::container::{ContainerKind, Content, Limits, Method, OffloadKind, matching, open, select};
use elf::{Processor, TargetId};

use crate::mutations;
use crate::open::opened;

fn bundles() -> Option<PathBuf> {
    let root = match std::env::var_os("KFDRUN_CASES") {
        Some(root) => PathBuf::from(root),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/cases"),
    };
    let folder = root.join("images/bundles");
    if !folder.is_dir() {
        println!("skipped: {} is not there", folder.display());
        return None;
    }
    Some(folder)
}

fn targets(file: &[u8]) -> Vec<String> {
    let contents = opened(file);
    for entry in &contents.entries {
        match &entry.content {
            Content::CodeObject { target, .. } => {
                let code = CodeObject::parse(&entry.data).unwrap_or_else(|error| panic!("{}: {error}", entry.id));
                assert_eq!(code.target(), target);
                assert_eq!(entry.target.unwrap().processor, target.processor);
                assert!(!code.kernels().is_empty());
            }
            content => assert_eq!((content, entry.kind), (&Content::Empty, OffloadKind::Host), "{}", entry.id),
        }
    }
    contents.entries.iter().filter(|e| e.code_target().is_some()).map(|e| e.arch.clone()).collect()
}

#[test]
fn real_files_open() {
    let Some(folder) = bundles() else { return };
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let device = |name| TargetId::of_device(Processor::by_name(name).unwrap(), true, false);
    let eight =
        ["gfx900", "gfx906", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201", "gfx11-generic"].map(str::to_owned);
    let plain = read("vecadd.hipfb");
    for (name, kind) in [
        ("vecadd.hipfb", None),
        ("vecadd_ccob_v1_zlib.hipfb", Some((1, Method::Zlib))),
        ("vecadd_ccob_v2.hipfb", Some((2, Method::Zstd))),
        ("vecadd_ccob.hipfb", Some((3, Method::Zstd))),
    ] {
        let file = read(name);
        let contents = opened(&file);
        match (&contents.kind, kind) {
            (ContainerKind::Bundle, None) => {}
            (&ContainerKind::CompressedBundle { version, method, bytes, uncompressed }, Some(want)) => {
                assert_eq!((version, method), want);
                assert_eq!((bytes, uncompressed), (file.len(), plain.len()));
            }
            (kind, _) => panic!("{name}: {kind}"),
        }
        let mut found = targets(&file);
        found.sort_by_key(|target| eight.iter().position(|t| t == target));
        assert_eq!(found, eight, "{name}");
        assert_eq!(contents.entries[0].id, "host-x86_64-unknown-linux-gnu-");
        for (on, want) in [("gfx1100", "gfx1100"), ("gfx1151", "gfx11-generic"), ("gfx90a", "gfx90a")] {
            let entry = select(&contents, &device(on), None).unwrap();
            assert_eq!(entry.id, format!("hipv4-amdgcn-amd-amdhsa--{want}"));
            assert!(CodeObject::parse(&entry.data).unwrap().kernel("vecadd").is_some());
        }
        assert!(select(&contents, &device("gfx803"), None).is_err());
    }
    assert_eq!(targets(&read("hip_basic_compress.hipfb")), ["gfx1100", "gfx90a"]);

    let file = read("vecadd.offbin");
    assert_eq!(targets(&file), ["gfx1100", "gfx90a:xnack+"]);
    let contents = opened(&file);
    assert_eq!(contents.kind, ContainerKind::OffloadBinary { version: 1, method: None });
    assert_eq!(contents.containers[1].offset, 0x1168);
    assert_eq!(contents.entries[1].id, "openmp-amdgcn-amd-amdhsa--gfx90a:xnack+");
    // Its code runs with XNACK off as well, but that is not what it is called.
    assert_eq!(contents.entries[1].code_target().unwrap().to_string(), "gfx90a");
    assert!(select(&contents, &device("gfx90a"), None).is_err());
    let with_xnack = TargetId::of_device(Processor::by_name("gfx90a").unwrap(), true, true);
    assert_eq!(select(&contents, &with_xnack, None).unwrap().arch, "gfx90a:xnack+");

    let file = read("host_old.exe");
    let contents = opened(&file);
    assert_eq!(contents.kind, ContainerKind::HostElf { machine: 62, name: "x86-64" });
    assert_eq!(contents.containers[1].kind, ContainerKind::Section { name: ".hip_fatbin" });
    assert_eq!(contents.containers[1].offset, 0x3000);
    assert_eq!(targets(&file), ["gfx1100", "gfx90a"]);
    assert_eq!(matching(&contents, &device("gfx1100")).len(), 1);
}

/// One after the other, as a linker puts those of several source files.
#[test]
fn real_files_together() {
    let Some(folder) = bundles() else { return };
    let mut file = vec![];
    for name in ["vecadd_ccob_v1_zlib.hipfb", "vecadd.hipfb", "vecadd_ccob_v2.hipfb", "vecadd.offbin"] {
        file.extend(std::fs::read(folder.join(name)).unwrap());
    }
    assert_eq!(targets(&file).len(), 26);
}

#[test]
fn damage_is_found_and_never_a_panic() {
    let Some(folder) = bundles() else { return };
    for name in ["vecadd_ccob.hipfb", "vecadd_ccob_v1_zlib.hipfb", "vecadd_ccob_v2.hipfb"] {
        let file = std::fs::read(folder.join(name)).unwrap();
        let whole = opened(&file);
        // A compressed bundle has a hash: what still opens is the same (not every bit of a stream means something).
        for at in (0..file.len()).step_by(7) {
            let mut damaged = file.clone();
            damaged[at] ^= 1 << (at % 8);
            match open(&damaged, &Limits::default()) {
                Ok(contents) => {
                    for (entry, want) in contents.entries.iter().zip(&whole.entries) {
                        assert!(*entry.data == *want.data && entry.id == want.id, "byte {at}");
                    }
                }
                Err(error) => mutations::check_line(&error),
            }
        }
        for len in (0..file.len()).step_by(13) {
            mutations::check_cut(&file[..len], &file);
        }
    }
}

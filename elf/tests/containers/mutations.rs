//! Damaged and cut files: never a panic, never another kind, always one line.

use std::sync::LazyLock;

use elf::container::{ContainerError, Limits, Method, matching, open, select};
use elf::{Foreign, Processor, TargetId};
use proptest::prelude::*;

use crate::build::{ccob, code, fat, host, image, offload_binary, section};

/// One of each kind.
fn samples() -> &'static [Vec<u8>] {
    static SAMPLES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(make_samples);
    &SAMPLES
}

fn make_samples() -> Vec<Vec<u8>> {
    let inside = fat(&["gfx900", "gfx90a:xnack+", "gfx1100", "gfx11-generic"]);
    let images = ["gfx900", "gfx1100"].map(|t| image(t, &code(t)));
    let mut samples = vec![code("gfx1100"), inside.clone()];
    for method in [Method::Zlib, Method::Zstd] {
        samples.extend((1..=3).map(|version| ccob(version, method, &inside)));
        samples.push(offload_binary(3, &images, Some(method)));
    }
    samples.push(offload_binary(1, &images[..1], None));
    samples.push(offload_binary(2, &images, None));
    samples.push(offload_binary(3, &images, None));
    let nested = offload_binary(2, &[image("", &ccob(2, Method::Zstd, &inside)), images[0].clone()], None);
    samples.push(host(&[section(".hip_fatbin", &inside), section(".llvm.offloading", &nested)]));
    samples
}

pub fn check_line(error: &ContainerError) {
    let line = error.to_string();
    assert!(!line.is_empty() && !line.contains('\n'), "{line:?}");
}

/// A file without its end is a damaged one of its own kind.
pub fn check_cut(cut: &[u8], whole: &[u8]) {
    let Err(error) = open(cut, &Limits::default()) else { panic!("{} of {} bytes open", cut.len(), whole.len()) };
    check_line(&error);
    let is_own = match (&error, whole) {
        (ContainerError::Foreign(Foreign::Empty), _) => cut.is_empty(),
        (ContainerError::CutMagic { len, .. }, _) => *len == cut.len(),
        (ContainerError::Bundle(_), [b'_', ..]) => true,
        (ContainerError::Compressed(_), [b'C', b'C', ..]) => true,
        (ContainerError::OffloadBinary(_), [0x10, ..]) => true,
        (ContainerError::Header(_), [0x7f, ..]) => whole[0x12] == 224 || cut.len() < 20,
        (ContainerError::Host(_), [0x7f, ..]) => whole[0x12] == 62,
        _ => false,
    };
    assert!(is_own, "{} of {} bytes: {error}", cut.len(), whole.len());
}

#[test]
fn cut_files() {
    for whole in samples() {
        // The table of a code object may lie before its end: the rest is for its own parser.
        let end = if whole.starts_with(b"\x7fELF") && whole[0x12] == 224 { 120 } else { whole.len() };
        for len in 0..end {
            check_cut(&whole[..len], whole);
        }
        assert!(open(whole, &Limits::default()).is_ok());
    }
}

#[test]
fn cut_behind_the_first_container() {
    let first = fat(&["gfx900"]);
    let second = ccob(3, Method::Zstd, &fat(&["gfx1100"]));
    let whole = [first.clone(), vec![0; 40], second].concat();
    for len in first.len()..=whole.len() {
        match open(&whole[..len], &Limits::default()) {
            // What is cut are the zeros, or nothing.
            Ok(contents) => {
                let containers = if len == whole.len() { 3 } else { 1 };
                assert_eq!(contents.containers.len(), containers);
                assert!(len <= first.len() + 40 || len == whole.len());
            }
            Err(ContainerError::In { place, cause }) => {
                assert_eq!(place, format!("the container at {:#x}", first.len() + 40));
                assert!(matches!(*cause, ContainerError::CutMagic { .. } | ContainerError::Compressed(_)), "{cause}");
            }
            Err(error) => panic!("{len}: {error}"),
        }
    }
}

/// Opens and looks at all that a caller looks at.
fn look(bytes: &[u8]) {
    let limits = Limits { max_uncompressed: 1 << 20, max_entries: 64 };
    let contents = match open(bytes, &limits) {
        Ok(contents) => contents,
        Err(error) => return check_line(&error),
    };
    assert!(contents.entries.len() <= 64 && contents.containers.len() <= 64);
    for entry in &contents.entries {
        assert!(entry.container < contents.containers.len());
        assert!(!entry.content.to_string().contains('\n'));
        assert!(entry.data.len() <= bytes.len().max(1 << 20));
        drop(elf::CodeObject::parse(&entry.data));
    }
    for name in ["gfx900", "gfx90a", "gfx1100", "gfx1151"] {
        let device = TargetId::of_device(Processor::by_name(name).unwrap(), true, true);
        drop(matching(&contents, &device));
        for wanted in [None, Some("0"), Some("gfx1100"), Some("hipv4-amdgcn-amd-amdhsa--gfx900")] {
            if let Err(error) = select(&contents, &device, wanted) {
                assert!(!error.to_string().contains('\n'));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn mutations_never_panic(
        which in 0..14_usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(vec![
            0_u8, 1, 2, 3, 4, 8, 0x10, 0x20, 0x28, 0x40, 0x7f, 0x80, 0xff,
        ])), 1..6),
        cut in prop::option::weighted(0.1, any::<prop::sample::Index>()),
        // Most fields are at the start.
        head in any::<bool>(),
    ) {
        let samples = samples();
        prop_assert_eq!(samples.len(), 14);
        let mut file = samples[which].clone();
        let range = if head { file.len().min(160) } else { file.len() };
        for (at, value) in changes {
            file[at.index(range)] = value;
        }
        if let Some(cut) = cut {
            file.truncate(cut.index(file.len()));
        }
        look(&file);
    }

    #[test]
    fn words_never_panic(which in 0..14_usize, at in 0..40_usize, value in prop_oneof![
        any::<u64>(), 0..256_u64, (0..64_u32).prop_map(|n| 1 << n), (0..256_u64).prop_map(|n| n.wrapping_neg()),
    ]) {
        let mut file = samples()[which].clone();
        let at = (at * 4).min(file.len() - 8);
        file[at..at + 8].copy_from_slice(&value.to_le_bytes());
        look(&file);
    }

    #[test]
    fn noise_never_panics(which in 0..5_usize, noise in prop::collection::vec(any::<u8>(), 0..400)) {
        let start: [&[u8]; 5] = [b"", b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB", b"\x10\xff\x10\xad", b"\x7fELF\x02\x01\x01"];
        look(&[start[which], &noise].concat());
    }
}

//! What is read from good images, and that no image makes the parser panic.

use elf::{Arg, CodeObject, Place, RelocationKind, SymbolKind, Value, ValueKind, Version};
use proptest::prelude::*;

use crate::image::{M, Parts, metadata};

#[test]
fn a_small_image() {
    let image = Parts::default().build();
    let object = CodeObject::parse(&image.bytes).unwrap();
    assert_eq!(object.version(), Version::V6);
    assert_eq!(object.target().to_string(), "gfx1100");
    assert_eq!(object.align(), 0x1000);
    assert_eq!(object.printf(), ["1:1:4:value %d\\n"]);

    let [r, x, w] = object.segments() else { panic!("{:?}", object.segments()) };
    assert_eq!([r.readable, r.writable, r.executable], [true, false, false]);
    assert_eq!([x.readable, x.writable, x.executable], [true, false, true]);
    assert_eq!([w.readable, w.writable, w.executable], [true, true, false]);
    assert_eq!((x.vaddr, x.bytes, x.memsz), (image.vaddr("text"), &image.bytes[image.range("text")], 512));
    assert_eq!(w.memsz, w.bytes.len() as u64 + 0x100);
    assert_eq!(object.span(), 0..w.range().end);
    assert_eq!(object.file_bytes(image.vaddr("text"), 4), Some(&[0, 0, 0xb0, 0xbf][..]));
    assert_eq!(object.file_bytes(image.vaddr("text"), 513), None);
    assert_eq!(object.file_bytes(w.range().end - 8, 8), None);
    assert_eq!(format!("{x:?}"), "0x1600..0x1800 r-x (0x200 bytes from the file, align 0x1000)");

    let counter = object.symbol("counter").unwrap();
    assert_eq!((counter.vaddr(), counter.size, counter.kind), (Some(image.vaddr("data")), 8, SymbolKind::Object));
    assert_eq!(object.symbol("k").unwrap().kind, SymbolKind::Function);
    assert_eq!(object.symbol("limit").unwrap().place, Place::Absolute(0x1234));
    assert_eq!(object.symbol("host_symbol").unwrap().place, Place::Undefined);
    assert!(object.symbol("weak_symbol").unwrap().weak);
    assert_eq!(object.symbol(""), None);
    assert_eq!(object.globals().map(|s| s.name).collect::<Vec<_>>(), ["counter", "table"]);

    let data = image.vaddr("data");
    let values: Vec<_> = object.relocations().iter().map(|r| (r.vaddr - data, r.kind, r.value)).collect();
    assert_eq!(
        values,
        [
            (8, RelocationKind::Relative64, Value::Image(0x2000)),
            (16, RelocationKind::Abs64, Value::Undefined { name: "host_symbol", addend: 4, weak: false }),
            (24, RelocationKind::Abs64, Value::Undefined { name: "weak_symbol", addend: 0, weak: true }),
            (32, RelocationKind::Abs64, Value::Image(data + 2)),
        ]
    );
}

#[test]
fn its_kernel() {
    let image = Parts::default().build();
    let object = CodeObject::parse(&image.bytes).unwrap();
    let kernel = object.kernel("k").unwrap();
    assert_eq!(object.kernels().len(), 1);
    assert_eq!((kernel.name(), kernel.metadata.symbol), ("k", "k.kd"));
    assert_eq!((kernel.descriptor_vaddr, kernel.entry_vaddr), (image.vaddr("kd"), image.vaddr("text")));
    assert!(!kernel.uses_dynamic_stack());

    let m = &kernel.metadata;
    assert_eq!((m.kernarg_segment_size, m.kernarg_segment_align), (272, 8));
    assert_eq!((m.group_segment_fixed_size, m.private_segment_fixed_size), (512, 16));
    assert_eq!((m.wavefront_size, m.sgpr_count, m.vgpr_count, m.agpr_count), (32, 18, 12, None));
    assert_eq!((m.max_flat_workgroup_size, m.reqd_workgroup_size), (1024, None));
    assert_eq!((m.uses_dynamic_stack, m.workgroup_processor_mode), (Some(false), Some(true)));
    let kinds: Vec<_> = m.args.iter().map(|a| (a.offset, a.size, a.value_kind)).collect();
    let want = [(0, 8, ValueKind::GlobalBuffer), (8, 4, ValueKind::ByValue), (16, 4, ValueKind::HiddenBlockCountX)];
    assert_eq!(kinds, want);
    assert!(matches!(m.args[0], Arg { name: Some("out"), is_restrict: true, is_const: false, .. }));

    let d = &kernel.descriptor;
    let generation = object.target().processor.generation;
    assert_eq!((d.wavefront_size(), d.vgprs(generation), d.sgprs(generation)), (32, 16, 128));
    assert_eq!((d.user_sgprs(generation), d.workgroup_ids(), d.workitem_id_vgprs()), (15, [true, false, false], 0));
    assert!(d.uses_scratch() && d.kernel_code_properties.kernarg_segment_ptr());
}

#[test]
fn section_headers_are_not_needed() {
    let stripped = Parts { sections: false, ..Parts::default() }.build();
    let object = CodeObject::parse(&stripped.bytes).unwrap();
    assert_eq!(object.kernels().len(), 1);
    assert_eq!(object.symbols().len(), 8);

    // Gone from the header only, as `shoff_zero` of a stripper does it.
    let mut image = Parts::default().build();
    image.put_u64("ehdr", 40, 0);
    assert!(CodeObject::parse(&image.bytes).is_ok());
}

#[test]
fn the_gnu_hash_table_counts_symbols_too() {
    let image = Parts { sysv_hash: false, sections: false, ..Parts::default() }.build();
    let object = CodeObject::parse(&image.bytes).unwrap();
    assert_eq!(object.symbols().last().unwrap().name, "limit");
    assert_eq!(object.symbols().len(), 8);
}

/// GCC's linker leaves one metadata note a kernel, V3 metadata in V4 files, and no target.
#[test]
fn kernels_of_several_notes_add_up() {
    let mut parts = Parts { abi_version: 2, flags: 0x41, ..Parts::default() };
    let mut first = metadata();
    first.remove("amdhsa.target");
    *first.at("amdhsa.version") = [1, 0].into();
    let mut second = first.clone();
    *second.at("amdhsa.kernels/0/.name") = "other".into();
    second.remove("amdhsa.kernels/0/.args");
    second.remove("amdhsa.printf");
    parts.metadata = vec![first, second];
    let image = parts.build();
    let object = CodeObject::parse(&image.bytes).unwrap();
    assert_eq!(object.version(), Version::V4);
    assert_eq!(object.kernels().iter().map(|k| k.name()).collect::<Vec<_>>(), ["k", "other"]);
    assert!(object.kernel("other").unwrap().metadata.args.is_empty());
    assert_eq!(object.printf().len(), 1);
}

#[test]
fn all_keys_are_read() {
    let mut parts = Parts::default();
    let kernel = parts.metadata[0].at("amdhsa.kernels/0");
    for (key, value) in [
        (".reqd_workgroup_size", M::from([64, 2, 1])),
        (".workgroup_size_hint", [32, 1, 1].into()),
        (".cluster_dims", [2, 1, 1].into()),
        (".vec_type_hint", "float4".into()),
        (".language", "OpenCL C".into()),
        (".language_version", [2, 0].into()),
        (".device_enqueue_symbol", "k.enqueue".into()),
        (".kind", "init".into()),
        (".agpr_count", 8.into()),
        (".sgpr_spill_count", 3.into()),
        (".vgpr_spill_count", 4.into()),
        (".max_num_workgroups_x", 100.into()),
        (".max_num_workgroups_z", 1.into()),
        (".uniform_work_group_size", 1.into()),
        // Producers differ in numbers and booleans.
        (".uses_dynamic_stack", 1.into()),
        (".workgroup_processor_mode", M::Bool(false)),
    ] {
        *kernel.at(key) = value;
    }
    let arg = kernel.at(".args/1");
    for (key, value) in [
        (".type_name", M::from("int*")),
        (".access", "read_only".into()),
        (".actual_access", "write_only".into()),
        (".address_space", "local".into()),
        (".pointee_align", 16.into()),
        (".is_const", 1.into()),
        (".is_volatile", M::Bool(true)),
        (".is_pipe", 0.into()),
        (".value_type", "struct".into()),
        (".value_kind", "dynamic_shared_pointer".into()),
    ] {
        *arg.at(key) = value;
    }
    *kernel.at(".args/2/.value_kind") = "hidden_later".into();
    let image = parts.build();
    let object = CodeObject::parse(&image.bytes).unwrap();
    insta::assert_debug_snapshot!(object.kernel("k").unwrap().metadata);
    assert!(object.kernel("k").unwrap().uses_dynamic_stack());
}

/// Images of different make.
fn images() -> Vec<Vec<u8>> {
    let default = Parts::default();
    let gnu = Parts { sysv_hash: false, sections: false, ..default.clone() };
    let mut gcc = Parts { abi_version: 2, ..default.clone() };
    gcc.metadata[0].remove("amdhsa.target");
    gcc.metadata.push(gcc.metadata[0].clone());
    *gcc.metadata[1].at("amdhsa.kernels/0/.name") = "other".into();
    [default, gnu, gcc].iter().map(|parts| parts.build().bytes).collect()
}

/// What a parsed image promises, looked at through every accessor.
pub fn look_at(object: &CodeObject<'_>) {
    let span = object.span();
    assert!(span.end - span.start <= elf::MAX_SPAN);
    assert!(object.align().is_power_of_two());
    for pair in object.segments().windows(2) {
        assert!(pair[0].range().end <= pair[1].vaddr);
    }
    for segment in object.segments() {
        assert!(segment.bytes.len() as u64 <= segment.memsz);
        let _ = format!("{segment:?}");
    }
    let within = |vaddr, len| object.segments().iter().any(|s| s.contains(vaddr, len));
    for relocation in object.relocations() {
        assert!(within(relocation.vaddr, relocation.kind.bytes()));
    }
    for global in object.globals() {
        assert!(within(global.vaddr().unwrap(), global.size));
    }
    let generation = object.target().processor.generation;
    for kernel in object.kernels() {
        assert_eq!(object.kernel(kernel.name()), Some(kernel));
        assert_eq!(kernel.descriptor_vaddr % 64, 0);
        assert_eq!(kernel.entry_vaddr % 256, 0);
        assert!(object.file_bytes(kernel.descriptor_vaddr, 64).is_some());
        let code = object.segments().iter().find(|s| s.contains(kernel.entry_vaddr, 4)).unwrap();
        assert!(code.executable);
        assert!(kernel.descriptor.vgprs(generation) <= 1024 && kernel.descriptor.user_sgprs(generation) <= 32);
        let args = &kernel.metadata.args;
        assert!(
            args.iter().all(|a| u64::from(a.offset) + u64::from(a.size) <= kernel.metadata.kernarg_segment_size.into())
        );
    }
}

pub fn check(bytes: &[u8]) {
    match CodeObject::parse(bytes) {
        Ok(object) => look_at(&object),
        Err(error) => {
            let line = error.to_string();
            assert!(!line.contains(char::is_control) && line.len() < 1200, "{line:?}");
        }
    }
}

/// A way to damage an image; positions are parts of its length.
#[derive(Clone, Debug)]
pub enum Damage {
    Flip(f64, u8),
    Byte(f64, u8),
    Word(f64, u32),
    Long(f64, u64),
    Truncate(f64),
    Copy(f64, f64, u16),
    Insert(f64, Vec<u8>),
    Remove(f64, u16),
}

pub fn damage() -> impl Strategy<Value = Damage> {
    let at = || 0.0..1.0f64;
    // Most of what is worth breaking lies in front.
    let front = || prop_oneof![0.0..1.0f64, 0.0..0.3f64, 0.0..0.06f64];
    let long = prop_oneof![
        Just(0),
        Just(u64::MAX),
        Just(1 << 63),
        Just(u64::from(u32::MAX)),
        Just(0x7fff_ffff_ffff_ffff),
        0u64..0x3000,
        any::<u64>()
    ];
    prop_oneof![
        4 => (front(), 0u8..8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        4 => (front(), any::<u8>()).prop_map(|(at, value)| Damage::Byte(at, value)),
        2 => (front(), prop_oneof![any::<u32>(), 0u32..64]).prop_map(|(at, value)| Damage::Word(at, value)),
        3 => (front(), long).prop_map(|(at, value)| Damage::Long(at, value)),
        1 => at().prop_map(Damage::Truncate),
        1 => (at(), at(), 1u16..300).prop_map(|(from, to, len)| Damage::Copy(from, to, len)),
        1 => (at(), prop::collection::vec(any::<u8>(), 1..20)).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        1 => (at(), 1u16..20).prop_map(|(at, len)| Damage::Remove(at, len)),
    ]
}

pub fn apply(bytes: &mut Vec<u8>, damage: &Damage) {
    let place = |at: f64, len: usize| ((at * bytes.len() as f64) as usize).min(bytes.len().saturating_sub(len));
    let write = |bytes: &mut Vec<u8>, at: usize, value: &[u8]| {
        let end = (at + value.len()).min(bytes.len());
        bytes[at..end].copy_from_slice(&value[..end - at]);
    };
    match damage {
        _ if bytes.is_empty() => {}
        Damage::Flip(at, bit) => {
            let at = place(*at, 1);
            bytes[at] ^= 1 << bit;
        }
        Damage::Byte(at, value) => {
            let at = place(*at, 1);
            bytes[at] = *value;
        }
        Damage::Word(at, value) => {
            let at = place(*at, 4) & !3;
            write(bytes, at, &value.to_le_bytes());
        }
        Damage::Long(at, value) => {
            let at = place(*at, 8) & !7;
            write(bytes, at, &value.to_le_bytes());
        }
        Damage::Truncate(at) => {
            let at = place(*at, 0);
            bytes.truncate(at);
        }
        Damage::Copy(from, to, len) => {
            let len = usize::from(*len).min(bytes.len());
            let (from, to) = (place(*from, len), place(*to, len));
            bytes.copy_within(from..from + len, to);
        }
        Damage::Insert(at, new) => {
            let at = place(*at, 0);
            bytes.splice(at..at, new.iter().copied());
        }
        Damage::Remove(at, len) => {
            let len = usize::from(*len).min(bytes.len());
            let at = place(*at, len);
            bytes.drain(at..at + len);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn damaged_images_never_panic(which in 0usize..3, damages in prop::collection::vec(damage(), 1..4)) {
        let mut bytes = images().swap_remove(which);
        for damage in &damages {
            apply(&mut bytes, damage);
        }
        check(&bytes);
    }

    #[test]
    fn any_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), magic in any::<bool>()) {
        let mut bytes = bytes;
        if magic {
            apply(&mut bytes, &Damage::Long(0.0, 0x4001_0102_464c_457f));
        }
        check(&bytes);
    }
}

/// Every single byte of an image, in turn, at the values that break the most; and every length.
#[test]
fn every_byte_and_every_length() {
    for image in images() {
        assert!(CodeObject::parse(&image).is_ok());
        for at in 0..image.len() {
            let mut bytes = image.clone();
            for value in [0, 1, 0x7f, 0x80, 0xff, bytes[at] ^ 1, bytes[at].wrapping_add(1)] {
                bytes[at] = value;
                check(&bytes);
            }
            check(&image[..at]);
        }
    }
}

//! Kernels through the library: arguments, work-groups, LDS, hidden arguments, data that persists, faults that the
//! process survives.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Setup, TARGETS, address, read};
use loader::{Error, Shape, Stop, Value};
use std::path::{Path, PathBuf};

fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/programs/images")
}

/// Every image of the project's kernels: all targets, and code object versions 4 and 5.
fn kernels() -> Vec<(String, Vec<u8>)> {
    let mut images: Vec<(String, String)> =
        TARGETS.iter().map(|target| (target.to_string(), format!("kernels.{target}"))).collect();
    images.push(("gfx90a".into(), "kernels-v4.gfx90a".into()));
    images.push(("gfx90a".into(), "kernels-v5.gfx90a".into()));
    images.into_iter().map(|(target, file)| (target, std::fs::read(programs().join(file)).unwrap())).collect()
}

#[test]
fn vectors_add_with_a_partial_last_group() {
    for (target, bytes) in kernels() {
        let mut setup = Setup::new(&target);
        let image = setup.image(&bytes);
        let n = 1000;
        let a = setup.buffer(&(0..n).map(|i| (i as f32).to_bits()).collect::<Vec<_>>());
        let b = setup.buffer(&(0..n).map(|i| (0.5 * i as f32).to_bits()).collect::<Vec<_>>());
        let c = setup.buffer(&vec![0; n]);
        let values = [address(&a), address(&b), address(&c), Value::from(n as u32)];
        setup.launch(&image, "vecadd", 256, n as u32, &values).unwrap();
        for (i, bits) in read(&c, n).into_iter().enumerate() {
            assert_eq!(f32::from_bits(bits), 1.5 * i as f32, "{target} element {i}");
        }
    }
}

#[test]
fn groups_reduce_over_lds() {
    for (target, bytes) in kernels() {
        let mut setup = Setup::new(&target);
        let image = setup.image(&bytes);
        let input = setup.buffer(&(0..1024).collect::<Vec<_>>());
        let output = setup.buffer(&[0; 4]);
        setup.launch(&image, "reduce", 256, 1024, &[address(&input), address(&output), Value::from(1024u32)]).unwrap();
        assert_eq!(read(&output, 4), [32640, 98176, 163712, 229248], "{target}");
    }
}

#[test]
fn small_arguments_lie_where_the_metadata_says() {
    for (target, bytes) in kernels() {
        let mut setup = Setup::new(&target);
        let image = setup.image(&bytes);
        let out = setup.buffer(&(0..64).collect::<Vec<_>>());
        let values = [
            address(&out),
            Value::Bytes(vec![3]),
            Value::Bytes(vec![0x10, 0x27]),
            Value::from(7u64 << 32),
            Value::from(64u32),
        ];
        setup.launch(&image, "scale", 64, 64, &values).unwrap();
        assert_eq!(read(&out, 64), (0..64).map(|i| i * 3 + 10000 + 7).collect::<Vec<_>>(), "{target}");
        let error = setup.launch(&image, "scale", 64, 64, &values[..4]).unwrap_err();
        assert!(error.to_string().contains("it takes 5"), "{error}");
    }
}

#[test]
fn a_kernel_sees_the_shape_of_its_launch() {
    for (target, bytes) in kernels() {
        let mut setup = Setup::new(&target);
        let image = setup.image(&bytes);
        let out = setup.buffer(&[0; 16]);
        let shape = Shape::of_items([8, 4, 2], [20, 8, 2]).unwrap();
        setup.launch_shaped(&image, "shape", shape, &[address(&out)], 0).unwrap();
        let seen = read(&out, 11);
        assert_eq!(seen[..6], [8, 4, 2, 20, 8, 2], "{target}");
        // Version 4 has no such hidden arguments.
        if elf::CodeObject::parse(&bytes).unwrap().version() != elf::Version::V4 {
            assert_eq!(
                seen[6..],
                [2, 2, 8, 4, 3],
                "{target}: whole groups in x and y, group size, remainder, dimensions"
            );
        }
    }
}

#[test]
fn data_persists_between_launches() {
    for (target, bytes) in kernels() {
        let mut setup = Setup::new(&target);
        let image = setup.image(&bytes);
        let out = setup.buffer(&[0]);
        for expected in 7..10 {
            setup.launch(&image, "persist", 1, 1, &[address(&out)]).unwrap();
            assert_eq!(read(&out, 1), [expected], "{target}");
        }
        let (va, size) = image.global("counter").unwrap();
        assert_eq!((size, image.vaddr(va.0).is_some()), (4, true));
    }
}

#[test]
fn the_process_survives_a_fault_and_can_run_again() {
    for (target, bytes) in kernels() {
        for _ in 0..2 {
            let mut setup = Setup::new(&target);
            let image = setup.image(&bytes);
            let out = setup.buffer(&[0]);
            let error = setup.launch(&image, "store_null", 64, 64, &[address(&out), Value::from(0u64)]).unwrap_err();
            let Error::Stopped(stop) = &error else { panic!("{target}: {error}") };
            let Stop::MemoryFault { kernel, fault, detail, .. } = stop.as_ref() else { panic!("{target}: {error}") };
            assert_eq!((kernel.as_str(), fault.va.0, fault.raw.not_present), ("store_null", 0, 1), "{target}");
            let detail = detail.as_ref().expect("the emulated machine says where");
            assert_eq!((detail.va, detail.access), (Some(0), Some(trace::Access::Write)), "{target}");
            assert_eq!(read(&out, 1), [1], "{target}: what was stored before the fault is there");
        }
    }
}

#[test]
fn bad_launches_are_refused_before_anything_runs() {
    let (target, bytes) = &kernels()[2];
    let mut setup = Setup::new(target);
    let image = setup.image(bytes);
    let out = setup.buffer(&[0; 4]);
    let mut refused = |kernel: &str, group: u32, values: &[Value], lds: u32| {
        let shape = Shape::of_items([group, 1, 1], [group, 1, 1]).unwrap();
        let error = setup.launch_shaped(&image, kernel, shape, values, lds).unwrap_err();
        error.to_string()
    };
    let address = address(&out);
    let three = [address.clone(), address.clone(), Value::from(1u32)];
    let said = refused("reduce", 512, &three, 0);
    assert!(said.contains("max_flat_workgroup_size is 256"), "{said}");
    let said = refused("reduce", 256, &three, 65536);
    assert!(said.contains("65536") && said.contains("LDS"), "{said}");
    let said = refused("redcue", 256, &three, 0);
    assert!(said.contains("reduce"), "the nearest name comes first: {said}");
    let said = refused("persist", 1, &[Value::Bytes(vec![1])], 0);
    assert!(said.contains("argument 0"), "{said}");
    assert_eq!(setup.gpu.queue().write_index(), 0);
    assert!(Shape::of_items([0, 1, 1], [1, 1, 1]).is_none());
    assert!(Shape::of_groups([1024, 1, 1], [1 << 30, 1, 1]).is_none());
}

use super::*;
use crate::testing::{Script, edit, steps};

const LIFE: &[&str] = &["mmap", "munmap", "ALLOC", "MAP", "UNMAP", "FREE"];

#[test]
fn a_life_in_order() {
    let (device, collector) = Script::machine().device();
    let buffer = Buffer::new(&device, Kind::Control, 5000, "things").unwrap();
    assert_eq!((buffer.size(), buffer.va().0 % PAGE_SIZE), (8192, 0));
    assert!(buffer.is_host_visible());
    drop(buffer);
    let life = steps(&collector, LIFE);
    // One page in front and one behind go with the buffer.
    let expected = [
        "mmap address range for buffers",
        "ALLOC_MEMORY_OF_GPU",
        "mmap things",
        "MAP_MEMORY_TO_GPU",
        "UNMAP_MEMORY_FROM_GPU",
        "munmap 16384",
        "FREE_MEMORY_OF_GPU",
    ];
    assert_eq!(life, expected);
}

#[test]
fn device_memory_stays_a_reservation() {
    let (device, collector) = Script::machine().device();
    let buffer = Buffer::new(&device, Kind::Vram, 1, "scratch").unwrap();
    assert!(!buffer.is_host_visible());
    insta::assert_snapshot!(buffer.write_bytes(0, &[1]).unwrap_err().report(), @r"
    the host cannot access scratch
      rule: device memory without PUBLIC has no host mapping
      do: allocate it host-visible, or copy through a buffer that is
    ");
    drop(buffer);
    assert_eq!(steps(&collector, &["mmap"]), ["mmap address range for buffers"]);
}

#[test]
fn big_buffers_are_aligned() {
    let (device, _) = Script::machine().device();
    let buffer = Buffer::new(&device, Kind::System, (2 << 20) + 1, "big").unwrap();
    assert_eq!(buffer.va().0 % (2 << 20), 0);
    buffer.write_bytes(buffer.size() - 1, &[7]).unwrap();
}

#[test]
fn memory_at_an_address_of_choice() {
    let (device, _) = Script::machine().device();
    let (a, b) = (GpuVa(0x1000_0000_0000), GpuVa(0x1000_0000_1000));
    let buffer = Buffer::at(&device, Kind::Control, a, 2 * PAGE_SIZE, "here").unwrap();
    assert_eq!((buffer.va(), buffer.size()), (a, 2 * PAGE_SIZE));
    buffer.write_bytes(2 * PAGE_SIZE - 1, &[7]).unwrap();
    let taken = Buffer::at(&device, Kind::Control, b, PAGE_SIZE, "there").unwrap_err();
    assert!(matches!(taken, Error::Mmap { errno: Errno::EEXIST, .. }), "{taken}");
    drop(buffer);
    assert_eq!(Buffer::at(&device, Kind::Control, b, PAGE_SIZE, "there").unwrap().va(), b);
    for (va, size) in [(a, 0), (a, 1), (GpuVa(a.0 + 1), PAGE_SIZE)] {
        assert!(matches!(Buffer::at(&device, Kind::Control, va, size, "odd"), Err(Error::Size { .. })));
    }
}

#[test]
fn flags_of_each_kind() {
    let flags = [Kind::Vram, Kind::VramHostVisible, Kind::Control, Kind::System].map(Kind::flags);
    assert_eq!(flags, [0xc000_0001, 0xe000_0001, 0xc600_0002, 0xc000_0002]);
}

#[test]
fn bytes_go_in_and_out() {
    let (device, _) = Script::machine().device();
    let buffer = Buffer::new(&device, Kind::Control, 4096, "bytes").unwrap();
    let bytes: Vec<u8> = (0..61).collect();
    for offset in 0..9 {
        buffer.fill(0, 4096, 0xaa).unwrap();
        buffer.write_bytes(offset, &bytes).unwrap();
        let mut back = vec![0; 63];
        buffer.read_bytes(offset, &mut back).unwrap();
        assert_eq!((&back[..61], &back[61..]), (&bytes[..], &[0xaa; 2][..]));
    }
    buffer.atomic_u64(8).unwrap().store(0x0102_0304_0506_0708, Ordering::Relaxed);
    assert_eq!(buffer.atomic_u32(12).unwrap().load(Ordering::Relaxed), 0x0102_0304);
}

#[test]
fn accesses_outside_are_errors() {
    let (device, _) = Script::machine().device();
    let buffer = Buffer::new(&device, Kind::Control, 4096, "bytes").unwrap();
    assert!(buffer.write_bytes(4096, &[]).is_ok());
    insta::assert_snapshot!(buffer.write_bytes(4095, &[0; 2]).unwrap_err(), @"bytes: access to 2 bytes at offset 0xfff of a buffer of 4096");
    assert!(matches!(buffer.read_bytes(u64::MAX, &mut [0]), Err(Error::OutOfBounds { .. })));
    assert!(matches!(buffer.fill(1, u64::MAX, 0), Err(Error::OutOfBounds { .. })));
    assert!(matches!(buffer.atomic_u64(4092), Err(Error::OutOfBounds { .. })));
    assert!(matches!(buffer.atomic_u64(4), Err(Error::Misaligned { align: 8, .. })));
    let start = buffer.va().0;
    assert!(buffer.contains(GpuVa(start), 4096) && !buffer.contains(GpuVa(start + 1), 4096));
    assert!(!buffer.contains(GpuVa(start - 1), 1) && !buffer.contains(GpuVa(start), u64::MAX));
}

#[test]
fn a_failure_undoes_what_was_done() {
    let (device, collector) = Script::machine().fail("MAP_MEMORY_TO_GPU", Errno::ENOMEM).device();
    let error = Buffer::new(&device, Kind::Control, 4096, "things").unwrap_err();
    insta::assert_snapshot!(error.report(), @r"
    MAP_MEMORY_TO_GPU: ENOMEM (12)
      rule: no memory for page tables, or no buffer has this handle
      do: end other GPU processes; look at dmesg
    ");
    assert_eq!(steps(&collector, &["UNMAP", "munmap", "FREE"]), ["munmap 12288", "FREE_MEMORY_OF_GPU"]);

    let (device, collector) = Script::machine().fail("ALLOC_MEMORY_OF_GPU", Errno::ENOMEM).device();
    assert!(Buffer::new(&device, Kind::Vram, 4096, "things").is_err());
    assert_eq!(steps(&collector, &["UNMAP", "munmap", "FREE"]), ["munmap 12288"]);
}

#[test]
fn success_that_mapped_nothing_is_an_error() {
    let script = Script::machine().on_ioctl(|name, _| (name == "MAP_MEMORY_TO_GPU").then_some(Ok(0)));
    let error = Buffer::new(&script.device().0, Kind::Vram, 4096, "things").unwrap_err();
    insta::assert_snapshot!(error.report(), @"
    MAP_MEMORY_TO_GPU mapped things on 0 of 1 GPUs
      rule: n_success must equal n_devices on success
      do: look at dmesg | grep -iE 'kfd|amdgpu'
    ");
}

#[test]
fn no_large_bar() {
    let bank = "/sys/class/kfd/kfd/topology/nodes/1/mem_banks/0/properties";
    let small = |script: Script| script.file(bank, "heap_type 2\nsize_in_bytes 25753026560\n");
    let (device, _) = small(Script::machine()).fail("ALLOC_MEMORY_OF_GPU", Errno::EINVAL).device();
    assert!(!device.has_large_bar().unwrap());
    insta::assert_snapshot!(Buffer::new(&device, Kind::VramHostVisible, 4096, "code").unwrap_err().report(), @r"
    ALLOC_MEMORY_OF_GPU: EINVAL (22): gpu_id 56387 has no large BAR
      rule: VRAM|PUBLIC needs a BAR over all of the device memory (25753026560 bytes); heap_type 2 says it is smaller
      do: use system memory instead, or enable Resizable BAR in the firmware setup
    ");
    // The same number for another reason keeps its own text.
    let (device, _) = Script::machine().fail("ALLOC_MEMORY_OF_GPU", Errno::EINVAL).device();
    assert!(device.has_large_bar().unwrap());
    let error = Buffer::new(&device, Kind::VramHostVisible, 4096, "code").unwrap_err();
    assert!(matches!(error, Error::Ioctl { .. }), "{error}");
}

#[test]
fn sizes_that_cannot_be() {
    let (device, _) = Script::machine().device();
    for size in [0, u64::MAX, u64::MAX - 4095] {
        assert!(matches!(Buffer::new(&device, Kind::Vram, size, "x"), Err(Error::Size { .. })), "{size}");
    }
    assert!(matches!(Buffer::new(&device, Kind::Vram, 1 << 60, "x"), Err(Error::Mmap { .. })));
}

#[test]
fn addresses_outside_the_gpus_reach() {
    let script = Script::machine().on_ioctl(|name, arg| {
        (name == "GET_PROCESS_APERTURES_NEW").then(|| {
            edit(arg, |args: &mut uapi::GetProcessAperturesNewArgs| {
                let record = uapi::ProcessDeviceApertures { gpuvm_limit: 0xffff, gpu_id: 56387, ..Default::default() };
                crate::testing::edit_array(args.kfd_process_device_apertures_ptr, 1, |records| records[0] = record);
                args.num_of_nodes = 1;
            });
            Ok(0)
        })
    });
    let (device, collector) = script.device();
    assert!(matches!(Buffer::new(&device, Kind::Vram, 4096, "x"), Err(Error::OutsideGpuVm { .. })));
    assert_eq!(steps(&collector, LIFE), ["mmap address range for buffers", "munmap 12288"]);
}

#[test]
fn memory_of_the_caller() {
    let (device, collector) = Script::machine().device();
    #[repr(align(4096))]
    struct Page([u8; 4096]);
    let mut page = Box::new(Page([3; 4096]));
    let start = NonNull::new(page.0.as_mut_ptr()).unwrap();
    // SAFETY: the page outlives the buffer and is not touched meanwhile.
    let buffer = unsafe { Buffer::from_host(&device, start, 4096, "user memory") }.unwrap();
    assert_eq!(buffer.va().0, start.as_ptr() as u64);
    let mut bytes = [0; 2];
    buffer.read_bytes(4094, &mut bytes).unwrap();
    assert_eq!(bytes, [3, 3]);
    drop(buffer);
    let life = ["ALLOC_MEMORY_OF_GPU", "MAP_MEMORY_TO_GPU", "UNMAP_MEMORY_FROM_GPU", "FREE_MEMORY_OF_GPU"];
    assert_eq!(steps(&collector, LIFE), life);
    for (offset, size) in [(1, 4096), (0, 4095), (0, 0)] {
        // SAFETY: refused before anything is done with it.
        let result = unsafe { Buffer::from_host(&device, start.add(offset), size, "user memory") };
        assert!(matches!(result, Err(Error::Size { .. })));
    }
    assert_eq!(page.0[0], 3);
}

use super::*;
use crate::isa::Target;
use crate::testing::{Client, SHARED, errno};
use kfd::Driver;
use kfd::uapi::*;

#[test]
fn nodes() {
    let client = Client::opened(&[Target::Gfx1100]);
    let driver = &client.driver;
    for path in ["/dev/dri/renderD129", "/dev/dri/renderD", "/dev/dri/card0", "/dev/null"] {
        assert_eq!(driver.open(path).err(), Some(kfd::Errno::ENOENT), "{path}");
    }
    // Descriptors are this process' own.
    // SAFETY: asks about a descriptor.
    assert!(unsafe { libc::fcntl(client.kfd, libc::F_GETFD) } >= 0);
    driver.close(client.kfd).unwrap();
    assert_eq!(driver.close(client.kfd).err(), Some(kfd::Errno::EBADF));
    assert_eq!(driver.ioctl(client.kfd, GetVersionArgs::REQUEST, &mut [0; 8]).err(), Some(kfd::Errno::EBADF));
}

#[test]
fn all_opens_share_the_process() {
    let client = Client::new(&[Target::Gfx1100]);
    let buffer = client.buffer(4096, SHARED);
    let second = client.driver.open("/dev/kfd").unwrap();
    client.driver.close(client.kfd).unwrap();
    let mut args = FreeMemoryOfGpuArgs { handle: buffer.handle };
    let busy = errno(client.driver.ioctl(second, FreeMemoryOfGpuArgs::REQUEST, args.as_bytes_mut()));
    assert_eq!(busy, Err(libc::EBUSY));
}

#[test]
fn requests_by_number_and_size() {
    let client = Client::opened(&[Target::Gfx1100]);
    let ioctl = |request: u32, arg: &mut [u8]| errno(client.driver.ioctl(client.kfd, request, arg));
    for nr in [0, 0x27, 0x28, 0x80, 0xff] {
        assert_eq!(ioctl(0xc008_4b00 | nr, &mut [0; 8]), Err(libc::ENOTTY), "{nr:#x}");
    }
    // Magic and direction are not looked at.
    let mut version = [0; 8];
    assert_eq!(ioctl(0x0008_0001, &mut version), Ok(()));
    assert_eq!(version, [1, 0, 0, 0, 17, 0, 0, 0]);
    // A caller with a shorter structure gets what fits, one with a longer keeps its rest.
    let mut short = [9; 4];
    assert_eq!(ioctl(0x8004_4b01, &mut short), Ok(()));
    assert_eq!(short, [1, 0, 0, 0]);
    let mut long = [9; 12];
    assert_eq!(ioctl(0x800c_4b01, &mut long), Ok(()));
    assert_eq!(long, [1, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0, 0]);
    // Fewer bytes than the request says.
    assert_eq!(ioctl(0x8008_4b01, &mut [0; 4]), Err(libc::EFAULT));
    // What the kernel only reads is not copied back.
    let mut policy = [0xff; 32];
    assert_eq!(ioctl(SetMemoryPolicyArgs::REQUEST, &mut policy), Err(libc::EINVAL));
    assert_eq!(policy, [0xff; 32]);
}

#[test]
fn results_are_copied_back_on_failure() {
    let client = Client::opened(&[Target::Gfx1100]);
    // The ring size is raised before anything fails.
    let mut args = CreateQueueArgs { ring_size: 64, gpu_id: client.gpus[0], queue_type: 2, ..Default::default() };
    assert_eq!(client.call(&mut args), Err(libc::ESRCH));
    assert_eq!(args.ring_size, 1024);
    let mut args = WaitEventsArgs { wait_result: 9, num_events: 1, events_ptr: 8, ..Default::default() };
    assert_eq!(client.call(&mut args), Err(libc::EFAULT));
    assert_eq!(args.wait_result, WAIT_RESULT_FAIL);
}

#[test]
fn acquire_vm() {
    let client = Client::opened(&[Target::Gfx1100, Target::Gfx90a]);
    let acquire = |fd: i32, gpu_id| client.call(&mut AcquireVmArgs { drm_fd: fd as u32, gpu_id });
    let [first, second] = [client.gpus[0], client.gpus[1]];
    assert_eq!(acquire(-1, first), Err(libc::EINVAL));
    assert_eq!(acquire(client.render[0], 1), Err(libc::EINVAL));
    assert_eq!(acquire(client.kfd, first), Err(libc::EINVAL));
    assert_eq!(acquire(client.render[0], first), Ok(()));
    assert_eq!(acquire(client.render[0], first), Ok(()));
    // That file's VM is taken.
    assert_eq!(acquire(client.render[0], second), Err(libc::EINVAL));
    let again = client.driver.open("/dev/dri/renderD128").unwrap();
    assert_eq!(acquire(again, first), Err(libc::EBUSY));
    // The kernel does not compare the file's GPU with the one named.
    assert_eq!(acquire(again, second), Ok(()));
}

#[test]
fn apertures() {
    let client = Client::opened(&[Target::Gfx1100, Target::Gfx90a]);
    let mut records = [ProcessDeviceApertures::default(); 3];
    let mut args = GetProcessAperturesNewArgs::default();
    client.call(&mut args).unwrap();
    assert_eq!(args.num_of_nodes, 2);
    args.kfd_process_device_apertures_ptr = records.as_mut_ptr() as u64;
    // The CPU node counts for the limit.
    args.num_of_nodes = 3;
    client.call(&mut args).unwrap();
    assert_eq!((args.num_of_nodes, records[0].gpu_id, records[1].gpu_id), (2, client.gpus[0], client.gpus[1]));
    let first = records[0];
    assert_eq!((first.lds_base, first.lds_limit), (0x1_0000_0000_0000, 0x1_0000_ffff_ffff));
    assert_eq!((first.scratch_base, first.scratch_limit), (0x2_0000_0000_0000, 0x2_0000_ffff_ffff));
    assert_eq!((first.gpuvm_base, first.gpuvm_limit), (0x1_0000, 0x7fff_ffff_ffff));
    args.num_of_nodes = 4;
    assert_eq!(client.call(&mut args), Err(libc::EINVAL));
    args = GetProcessAperturesNewArgs { num_of_nodes: 1, kfd_process_device_apertures_ptr: 64, pad: 0 };
    assert_eq!(client.call(&mut args), Err(libc::EFAULT));
    let mut old = GetProcessAperturesArgs::default();
    client.call(&mut old).unwrap();
    assert_eq!((old.num_of_nodes, old.process_apertures[1]), (2, records[1]));
    // The old request has room for seven.
    let many = Client::opened(&[Target::Gfx1100; 8]);
    let mut old = GetProcessAperturesArgs::default();
    many.call(&mut old).unwrap();
    assert_eq!((old.num_of_nodes, old.process_apertures[6].gpu_id), (7, many.gpus[6]));
}

#[test]
fn clocks_move_together() {
    let client = Client::opened(&[Target::Gfx1100]);
    let read = |gpu_id| {
        let mut args = GetClockCountersArgs { gpu_id, ..Default::default() };
        client.call(&mut args).unwrap();
        args
    };
    let before = read(client.gpus[0]);
    std::thread::sleep(std::time::Duration::from_millis(5));
    let after = read(client.gpus[0]);
    let gpu = after.gpu_clock_counter - before.gpu_clock_counter;
    let system = after.system_clock_counter - before.system_clock_counter;
    assert!(gpu >= 500_000 && system >= 5_000_000 && before.system_clock_freq == 1_000_000_000, "{gpu} {system}");
    assert_eq!(read(7).gpu_clock_counter, 0);
}

#[test]
fn needs_acquire() {
    let client = Client::opened(&[Target::Gfx1100]);
    let gpu_id = client.gpus[0];
    assert_eq!(client.alloc(0x10_0000, 4096, SHARED).err(), Some(libc::ENODEV));
    assert_eq!(client.call(&mut SetScratchBackingVaArgs { gpu_id, ..Default::default() }), Err(libc::ENODEV));
    assert_eq!(client.call(&mut ImportDmabufArgs { gpu_id, ..Default::default() }), Err(libc::ENODEV));
    assert_eq!(client.call(&mut SetMemoryPolicyArgs { gpu_id, ..Default::default() }), Err(libc::ESRCH));
    assert_eq!(client.call(&mut SetTrapHandlerArgs { gpu_id, ..Default::default() }), Err(libc::ESRCH));
    assert_eq!(client.map_to(u64::from(gpu_id) << 32, &[gpu_id]), (Err(libc::ENODEV), 0));
    let mut event = CreateEventArgs { event_page_offset: u64::from(gpu_id) << 32, ..Default::default() };
    assert_eq!(client.call(&mut event), Err(libc::ENODEV));
    assert_eq!(client.call(&mut GetAvailableMemoryArgs { gpu_id, ..Default::default() }), Ok(()));
}

#[test]
fn runtime_and_xnack_come_before_queues() {
    let client = Client::new(&[Target::Gfx90a]);
    let runtime = |mode_mask| client.call(&mut RuntimeEnableArgs { mode_mask, ..Default::default() });
    let xnack = |xnack_enabled| {
        let mut args = SetXnackModeArgs { xnack_enabled };
        client.call(&mut args).map(|()| args.xnack_enabled)
    };
    assert_eq!((runtime(0), runtime(1), runtime(1), runtime(0)), (Ok(()), Ok(()), Err(libc::EBUSY), Ok(())));
    assert_eq!((xnack(-1), xnack(1), xnack(-1), xnack(0)), (Ok(0), Ok(1), Ok(1), Ok(0)));
    let queue = client.queue(64, Default::default());
    assert_eq!((runtime(1), xnack(1), xnack(-1)), (Err(libc::EEXIST), Err(libc::EBUSY), Ok(0)));
    queue.destroy().unwrap();
    assert_eq!((runtime(1), xnack(1)), (Ok(()), Ok(1)));

    let other = Client::opened(&[Target::Gfx1100, Target::Gfx90a]);
    assert_eq!(other.call(&mut SetXnackModeArgs { xnack_enabled: 1 }), Err(libc::EPERM));
    assert_eq!(other.call(&mut SetXnackModeArgs { xnack_enabled: 0 }), Ok(()));
}

#[test]
fn requests_nobody_may_make() {
    let client = Client::new(&[Target::Gfx1100]);
    assert_eq!(client.call(&mut DbgRegisterArgs::default()), Err(libc::EPERM));
    assert_eq!(client.call(&mut DbgUnregisterArgs::default()), Err(libc::EPERM));
    assert_eq!(client.call(&mut DbgAddressWatchArgs::default()), Err(libc::EPERM));
    assert_eq!(client.call(&mut DbgWaveControlArgs::default()), Err(libc::EPERM));
    assert_eq!(client.call(&mut CriuArgs::default()), Err(libc::EACCES));
    assert_eq!(client.call(&mut DbgTrapArgs { pid: 1 << 30, ..Default::default() }), Err(libc::ESRCH));
    assert_eq!(
        client.call(&mut DbgTrapArgs { pid: std::process::id(), op: 5, ..Default::default() }),
        Err(libc::EINVAL)
    );
}

#[test]
fn tile_config() {
    let client = Client::opened(&[Target::Gfx900]);
    let mut tiles = [7u32; 40];
    let mut args = GetTileConfigArgs {
        tile_config_ptr: tiles.as_mut_ptr() as u64,
        macro_tile_config_ptr: tiles.as_mut_ptr() as u64,
        num_tile_configs: 40,
        num_macro_tile_configs: 3,
        gpu_id: client.gpus[0],
        ..Default::default()
    };
    client.call(&mut args).unwrap();
    assert_eq!((args.num_tile_configs, args.num_macro_tile_configs, args.gb_addr_config), (32, 3, 0x2a11_4042));
    assert_eq!((tiles[31], tiles[32]), (0, 7));
    args.tile_config_ptr = 1;
    assert_eq!(client.call(&mut args), Err(libc::EFAULT));
    assert_eq!((args.num_tile_configs, args.num_macro_tile_configs), (0, 3));
}

#[test]
fn mmap_of_kfd() {
    let client = Client::new(&[Target::Gfx1100]);
    let map = |len, kind, gpu_id, offset| {
        let at = client.mmap(client.kfd, 0, len, MmapOffset { kind, gpu_id, offset }.encode());
        at.map(|_| ())
    };
    let gpu = client.gpus[0] as u16;
    assert_eq!(map(8192, MmapType::Doorbell, gpu, 0), Ok(()));
    // What a driver is asked for is whole pages.
    assert_eq!(map(8191, MmapType::Doorbell, gpu, 0), Ok(()));
    for len in [4096, 8193, 16384] {
        assert_eq!(map(len, MmapType::Doorbell, gpu, 0), Err(libc::EINVAL), "{len}");
    }
    assert_eq!(map(8192, MmapType::Doorbell, gpu, 8), Err(libc::EINVAL));
    assert_eq!(map(8192, MmapType::Doorbell, gpu, 4096), Ok(()));
    assert_eq!(map(8192, MmapType::Doorbell, 1, 0), Err(libc::ENODEV));
    assert_eq!(map(4096, MmapType::Mmio, gpu, 0), Ok(()));
    assert_eq!(map(8192, MmapType::Mmio, gpu, 0), Err(libc::EINVAL));
    assert_eq!(map(4096, MmapType::Mmio, 0, 0x1_0000_0000), Err(libc::ENODEV));
    assert_eq!(map(8192, MmapType::ReservedMem, gpu, 0), Err(libc::EINVAL));
    assert_eq!(map(32768, MmapType::Events, 0, 0), Err(libc::EINVAL));
    client.call(&mut CreateEventArgs::default()).unwrap();
    assert_eq!(map(32768, MmapType::Events, 0, 0), Ok(()));
    assert_eq!(map(65536, MmapType::Events, 0, 0), Err(libc::EINVAL));
}

#[test]
fn mmap_of_buffers() {
    let client = Client::new(&[Target::Gfx1100]);
    let va = client.reserve(0x4000);
    let bo = client.alloc(va, 0x3000, SHARED).unwrap();
    assert_eq!(client.mmap(client.render[0], va, 0x3000, bo.mmap_offset), Ok(va));
    assert_eq!(client.mmap(client.render[0], 0, 0x1000, bo.mmap_offset).map(|_| ()), Ok(()));
    assert_eq!(client.mmap(client.render[0], 0, 0x4000, bo.mmap_offset), Err(libc::EINVAL));
    assert_eq!(client.mmap(client.render[0], 0, 0x1000, bo.mmap_offset + 0x1000), Err(libc::EINVAL));
    // A DRM offset on /dev/kfd reads as MMIO of GPU 0.
    assert_eq!(client.mmap(client.kfd, 0, 0x1000, bo.mmap_offset), Err(libc::ENODEV));
    let other = client.driver.open("/dev/dri/renderD128").unwrap();
    assert_eq!(client.mmap(other, 0, 0x1000, bo.mmap_offset), Err(libc::EACCES));
    let private = |prot| {
        // SAFETY: a new mapping where the kernel likes.
        let at = unsafe { client.driver.mmap(0, 0x1000, prot, libc::MAP_PRIVATE, client.render[0], bo.mmap_offset) };
        at.map(|_| ()).map_err(|errno| errno.raw())
    };
    assert_eq!((private(libc::PROT_READ), private(libc::PROT_NONE)), (Err(libc::EINVAL), Ok(())));
}

#[test]
fn memory_stays_while_it_is_mapped() {
    let client = Client::new(&[Target::Gfx1100]);
    let va = client.reserve(0x3000);
    let bo = client.alloc(va, 0x3000, SHARED).unwrap();
    client.mmap(client.render[0], va, 0x3000, bo.mmap_offset).unwrap();
    let word = |offset: u64| (va + offset) as *mut u64;
    // SAFETY: the mapping just made; the middle page is unmapped last and not touched after.
    unsafe {
        word(0).write_volatile(1);
        word(0x2000).write_volatile(3);
        client.call(&mut FreeMemoryOfGpuArgs { handle: bo.handle }).unwrap();
        assert_eq!((word(0).read_volatile(), word(0x2000).read_volatile()), (1, 3));
        client.driver.munmap(va as usize + 0x1000, 0x1000).unwrap();
        assert_eq!((word(0).read_volatile(), word(0x2000).read_volatile()), (1, 3));
        assert_eq!(client.driver.mappings().range(va as usize..va as usize + 0x3000).count(), 2);
        client.driver.munmap(va as usize, 0x3000).unwrap();
    }
    assert_eq!(client.driver.mappings().range(va as usize..va as usize + 0x3000).count(), 0);
}

#[test]
fn private_vram_is_not_for_the_host() {
    let client = Client::new(&[Target::Gfx1100]);
    let va = client.reserve(0x1000);
    let bo = client.alloc(va, 0x1000, ALLOC_MEM_FLAGS_VRAM | ALLOC_MEM_FLAGS_WRITABLE).unwrap();
    client.mmap(client.render[0], va, 0x1000, bo.mmap_offset).unwrap();
    // The host's kernel says EFAULT where a load would fault.
    assert_eq!(client.driver.kernel.user.get::<u64>(va), Err(Errno::EFAULT));
    let public = ALLOC_MEM_FLAGS_VRAM | ALLOC_MEM_FLAGS_PUBLIC;
    let bo = client.alloc(va, 0x1000, public).unwrap();
    client.mmap(client.render[0], va, 0x1000, bo.mmap_offset).unwrap();
    assert_eq!(client.driver.kernel.user.get::<u64>(va), Ok(0));
}

#[test]
fn a_buffer_of_one_file_descriptor_to_another_gpu() {
    let client = Client::new(&[Target::Gfx942, Target::Gfx942]);
    let buffer = client.buffer(8192, SHARED);
    let mut export = ExportDmabufArgs { handle: buffer.handle, ..Default::default() };
    client.call(&mut export).unwrap();
    let mut info = GetDmabufInfoArgs { dmabuf_fd: export.dmabuf_fd, ..Default::default() };
    client.call(&mut info).unwrap();
    assert_eq!((info.size, info.gpu_id, info.flags), (8192, client.gpus[0], ALLOC_MEM_FLAGS_GTT));
    let va_addr = client.reserve(8192);
    let mut import = ImportDmabufArgs { va_addr, gpu_id: client.gpus[1], dmabuf_fd: export.dmabuf_fd, handle: 0 };
    client.call(&mut import).unwrap();
    assert_eq!(import.handle, u64::from(client.gpus[1]) << 32);
    assert_eq!(client.map_to(import.handle, &[client.gpus[1]]), (Ok(()), 1));
    assert_eq!(
        client.call(&mut GetDmabufInfoArgs { dmabuf_fd: client.kfd as u32, ..Default::default() }),
        Err(libc::EINVAL)
    );
    assert_eq!(client.call(&mut GetDmabufInfoArgs { dmabuf_fd: 1 << 20, ..Default::default() }), Err(libc::EBADF));
    assert_eq!(client.call(&mut ExportDmabufArgs { handle: 5, ..Default::default() }), Err(libc::EINVAL));
}

#[test]
fn a_forked_child_has_to_open_anew() {
    let client = Client::new(&[Target::Gfx1100]);
    let doorbells = MmapOffset { kind: MmapType::Doorbell, gpu_id: client.gpus[0] as u16, offset: 0 }.encode();
    // SAFETY: the child does nothing but a few calls of this driver, whose locks no other thread uses, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let mut version = GetVersionArgs::default();
        let denied = client.call(&mut version) == Err(libc::EBADF);
        let unmapped = client.mmap(client.kfd, 0, 8192, doorbells) == Err(libc::EINVAL);
        let opened = client.driver.open("/dev/kfd").ok();
        let fresh = opened.is_some_and(|fd| {
            errno(client.driver.ioctl(fd, GetVersionArgs::REQUEST, version.as_bytes_mut())).is_ok()
                && client.driver.process().is_some_and(|process| process.lock().devices[0].vm.is_none())
        });
        // SAFETY: ends the child without running anything of the parent's.
        unsafe { libc::_exit(i32::from(!denied) | i32::from(!unmapped) << 1 | i32::from(!fresh) << 2) }
    }
    let mut status = 0;
    // SAFETY: waits for the child just made.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(status, 0, "exit status bits 8 to 10: which of the three was wrong");
}

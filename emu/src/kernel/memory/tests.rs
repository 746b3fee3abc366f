use super::Handle;
use crate::isa::Target;
use crate::testing::{Client, SHARED};
use kfd::Driver;
use kfd::uapi::*;

fn client() -> Client {
    Client::new(&[Target::Gfx1100])
}

#[test]
fn alloc_checks() {
    let client = client();
    let va = 0x10_0000;
    let (vram, gtt, userptr, doorbell, mmio) = (
        ALLOC_MEM_FLAGS_VRAM,
        ALLOC_MEM_FLAGS_GTT,
        ALLOC_MEM_FLAGS_USERPTR,
        ALLOC_MEM_FLAGS_DOORBELL,
        ALLOC_MEM_FLAGS_MMIO_REMAP,
    );
    let cases: [(u64, u32, Result<(), i32>); 14] = [
        (0, gtt, Err(libc::EINVAL)),
        (4096, 0, Err(libc::EINVAL)),
        (4096, ALLOC_MEM_FLAGS_WRITABLE | ALLOC_MEM_FLAGS_PUBLIC, Err(libc::EINVAL)),
        (4096, userptr, Err(libc::EINVAL)),
        (4096, doorbell, Err(libc::EINVAL)),
        (8192, doorbell, Ok(())),
        (8192, mmio, Err(libc::EINVAL)),
        (4096, mmio, Ok(())),
        // The size rules of doorbells hold also when another kind wins.
        (4096, vram | doorbell, Err(libc::EINVAL)),
        (8192, vram | doorbell, Ok(())),
        (1, gtt | ALLOC_MEM_FLAGS_AQL_QUEUE_MEM, Err(libc::EINVAL)),
        (8192, gtt | ALLOC_MEM_FLAGS_AQL_QUEUE_MEM, Ok(())),
        (1, gtt, Ok(())),
        (1 << 40, vram, Err(libc::ENOMEM)),
    ];
    for (size, flags, expected) in cases {
        assert_eq!(client.alloc(va, size, flags).map(|_| ()), expected, "{size} {flags:#x}");
    }
    let mut args = AllocMemoryOfGpuArgs { size: 4096, flags: gtt, gpu_id: 3, ..Default::default() };
    assert_eq!(client.call(&mut args), Err(libc::EINVAL));
    // Nobody looks at the address before it is mapped.
    assert!(client.alloc(3, 4096, gtt).is_ok());
}

#[test]
fn handles_start_at_0_and_the_lowest_is_next() {
    let client = client();
    let handle = |id| Handle::new(client.gpus[0], id).0;
    let next = || client.alloc(0x10_0000, 4096, SHARED).unwrap().handle;
    assert_eq!([next(), next(), next()], [handle(0), handle(1), handle(2)]);
    let free = |handle| client.call(&mut FreeMemoryOfGpuArgs { handle });
    free(handle(1)).unwrap();
    assert_eq!(next(), handle(1));
    assert_eq!(free(handle(7)), Err(libc::EINVAL));
    assert_eq!(free(1), Err(libc::EINVAL));
}

#[test]
fn map_checks() {
    let client = client();
    let gpu = client.gpus[0];
    let place = client.reserve(0x10000);
    let bo = |va| client.alloc(va, 0x2000, SHARED).unwrap().handle;
    let map = |handle| client.map_to(handle, &[gpu]);
    let first = bo(place);
    assert_eq!(client.map_to(first, &[]), (Err(libc::EINVAL), 0));
    let mut args = MapMemoryToGpuArgs { handle: first, n_devices: 1, n_success: 2, ..Default::default() };
    assert_eq!(client.call(&mut args), Err(libc::EINVAL));
    args = MapMemoryToGpuArgs { handle: first, n_devices: 1, device_ids_array_ptr: 8, n_success: 0 };
    assert_eq!(client.call(&mut args), Err(libc::EFAULT));
    assert_eq!(map(first & 0xffff_ffff), (Err(libc::EINVAL), 0));
    assert_eq!(map(first + 99), (Err(libc::ENOMEM), 0));
    assert_eq!(client.map_to(first, &[gpu, 1]), (Err(libc::EINVAL), 1));
    // It is mapped already, which is no error.
    assert_eq!(map(first), (Ok(()), 1));
    for (va, why) in
        [(0, "null"), (place + 0x4001, "unaligned"), (place + 0x1000, "overlap"), ((1 << 48) - 0x1000, "end")]
    {
        assert_eq!(map(bo(va)), (Err(libc::EINVAL), 0), "{why}");
    }
    let high = bo((1 << 48) - 0x2000);
    assert_eq!(map(high), (Ok(()), 1));
}

#[test]
fn unmap_and_free() {
    let client = client();
    let gpu = client.gpus[0];
    let buffer = client.buffer(4096, SHARED);
    let free = || client.call(&mut FreeMemoryOfGpuArgs { handle: buffer.handle });
    assert_eq!(free(), Err(libc::EBUSY));
    assert_eq!(client.unmap_from(buffer.handle + 1, &[gpu]), (Err(libc::ENOMEM), 0));
    assert_eq!(client.unmap_from(buffer.handle, &[2]), (Err(libc::EINVAL), 0));
    assert_eq!(client.unmap_from(buffer.handle, &[gpu]), (Ok(()), 1));
    assert_eq!(client.unmap_from(buffer.handle, &[gpu]), (Err(libc::EINVAL), 0));
    assert_eq!(free(), Ok(()));
    assert_eq!(free(), Err(libc::EINVAL));
}

#[test]
fn several_gpus() {
    let client = Client::new(&[Target::Gfx1100, Target::Gfx1201]);
    let va = client.reserve(4096);
    let bo = client.alloc(va, 4096, SHARED).unwrap();
    assert_eq!(client.map_to(bo.handle, &client.gpus), (Ok(()), 2));
    assert_eq!(client.unmap_from(bo.handle, &client.gpus[1..]), (Ok(()), 1));
    let mut args = UnmapMemoryFromGpuArgs {
        handle: bo.handle,
        device_ids_array_ptr: client.gpus.as_ptr() as u64,
        n_devices: 2,
        // Start with the second, which is not mapped any more.
        n_success: 1,
    };
    assert_eq!(client.call(&mut args), Err(libc::EINVAL));
    assert_eq!(args.n_success, 1);
}

#[test]
fn double_mapping_of_a_ring() {
    let client = client();
    let va = client.reserve(0x4000);
    let bo = client.alloc(va, 0x4000, SHARED | ALLOC_MEM_FLAGS_AQL_QUEUE_MEM).unwrap();
    assert_eq!(client.map_to(bo.handle, &client.gpus), (Ok(()), 1));
    let in_the_way = client.alloc(va + 0x2000, 0x1000, SHARED).unwrap();
    assert_eq!(client.map_to(in_the_way.handle, &client.gpus), (Err(libc::EINVAL), 0));
    // Only half of it is memory.
    assert_eq!(client.mmap(client.render[0], va, 0x4000, bo.mmap_offset), Err(libc::EINVAL));
    assert_eq!(client.mmap(client.render[0], va, 0x2000, bo.mmap_offset), Ok(va));
    assert_eq!(client.unmap_from(bo.handle, &client.gpus), (Ok(()), 1));
    // When the second half is taken, the first is not left behind.
    assert_eq!(client.map_to(in_the_way.handle, &client.gpus), (Ok(()), 1));
    assert_eq!(client.map_to(bo.handle, &client.gpus), (Err(libc::EINVAL), 0));
    let first_half = client.alloc(va, 0x2000, SHARED).unwrap();
    assert_eq!(client.map_to(first_half.handle, &client.gpus), (Ok(()), 1));
}

#[test]
fn user_memory() {
    // Another thread may be given the address range that has just become free, but not every time.
    assert!((0..10).any(|_| user_memory_is_gone_in_the_end()));
}

fn user_memory_is_gone_in_the_end() -> bool {
    let client = client();
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping where the kernel likes.
    let va = unsafe { client.driver.mmap(0, 0x3000, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0).unwrap() } as u64;
    let alloc = |at: u64, size| {
        let flags = ALLOC_MEM_FLAGS_USERPTR | ALLOC_MEM_FLAGS_WRITABLE;
        let gpu_id = client.gpus[0];
        let mut args = AllocMemoryOfGpuArgs { va_addr: at, size, mmap_offset: at, flags, gpu_id, handle: 0 };
        client.call(&mut args).map(|()| args.handle)
    };
    let handle = alloc(va, 0x3000).unwrap();
    assert_eq!(client.map_to(handle, &client.gpus), (Ok(()), 1));
    // No memory, and memory that cannot be written.
    assert_eq!(alloc(client.reserve(0x1000), 0x1000), Err(libc::EFAULT));
    assert_eq!(alloc(0x1000, 0x1000), Err(libc::EFAULT));
    // Unmapping it takes it from the GPU, and the buffer can still be unmapped and freed.
    // SAFETY: nothing uses the range.
    unsafe { client.driver.munmap(va as usize, 0x3000).unwrap() };
    assert_eq!(client.unmap_from(handle, &client.gpus), (Ok(()), 1));
    assert_eq!(client.call(&mut FreeMemoryOfGpuArgs { handle }), Ok(()));
    !crate::kernel::user::is_present(va, 0x1000)
}

#[test]
fn event_page_stays() {
    let client = client();
    let small = client.buffer(0x7000, SHARED);
    let page = client.buffer(0x8000, SHARED);
    let create = |handle| {
        let mut args = CreateEventArgs { event_page_offset: handle, ..Default::default() };
        client.call(&mut args).map(|()| args)
    };
    assert_eq!(create(99).err(), Some(libc::EINVAL));
    assert_eq!(create(page.handle + 7).err(), Some(libc::EINVAL));
    assert_eq!(create(small.handle).err(), Some(libc::EINVAL));
    let event = create(page.handle).unwrap();
    assert_eq!((event.event_id, event.event_slot_index, event.event_trigger_data), (1, 1, 1));
    assert_eq!(event.event_page_offset, 1 << 63);
    assert_eq!(page.u64(8).load(std::sync::atomic::Ordering::Relaxed), u64::MAX);
    assert_eq!(create(page.handle).err(), Some(libc::EINVAL));
    assert_eq!(create(0).unwrap().event_id, 2);
    assert_eq!(client.unmap_from(page.handle, &client.gpus), (Ok(()), 1));
    assert_eq!(client.call(&mut FreeMemoryOfGpuArgs { handle: page.handle }), Err(libc::EPERM));
}

#[test]
fn available_memory_goes_down_and_up() {
    let client = client();
    let available = || {
        let mut args = GetAvailableMemoryArgs { gpu_id: client.gpus[0], ..Default::default() };
        client.call(&mut args).unwrap();
        args.available
    };
    let before = available();
    let bo = client.alloc(0x10_0000, 1 << 30, ALLOC_MEM_FLAGS_VRAM).unwrap();
    assert_eq!(before - available(), 1 << 30);
    client.call(&mut FreeMemoryOfGpuArgs { handle: bo.handle }).unwrap();
    assert_eq!(available(), before);
}

#[test]
fn svm_ranges() {
    let client = client();
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let (rw, bytes) = (libc::PROT_READ | libc::PROT_WRITE, 0x4000);
    // SAFETY: a new mapping where the kernel likes.
    let va = unsafe { client.driver.mmap(0, bytes, rw, flags, -1, 0).unwrap() } as u64;
    let svm = |start_addr, size, op, attributes: &mut [SvmAttribute]| {
        let args = SvmArgs { start_addr, size, op, nattr: attributes.len() as u32 };
        let mut raw = args.as_bytes().to_vec();
        attributes.iter().for_each(|attribute| raw.extend_from_slice(attribute.as_bytes()));
        let request = svm_request(attributes.len()).unwrap();
        let result = crate::testing::errno(client.driver.ioctl(client.kfd, request, &mut raw));
        for (attribute, bytes) in attributes.iter_mut().zip(raw[24..].chunks_exact(8)) {
            *attribute = SvmAttribute::from_prefix(bytes).unwrap();
        }
        result
    };
    let gpu = client.gpus[0];
    let attribute = |attr_type, value| SvmAttribute { attr_type, value };
    let access = attribute(SVM_ATTR_ACCESS, gpu);
    let set = SVM_OP_SET_ATTR;
    assert_eq!(svm(va + 1, 0x1000, set, &mut [access]), Err(libc::EINVAL));
    assert_eq!(svm(va, 0, set, &mut [access]), Err(libc::EINVAL));
    assert_eq!(svm(va, 0x1000, 7, &mut [access]), Err(libc::EINVAL));
    assert_eq!(svm(va, 0x1000, set, &mut [attribute(99, 0)]), Err(libc::EINVAL));
    assert_eq!(svm(va, 0x1000, set, &mut [attribute(SVM_ATTR_ACCESS, 1)]), Err(libc::EINVAL));
    assert_eq!(svm(0x1000, 0x1000, set, &mut [access]), Err(libc::EFAULT));
    assert_eq!(svm(va, !4095, set, &mut [access]), Err(libc::EOVERFLOW));

    let space = || {
        let process = client.driver.process().unwrap();
        let inner = process.lock();
        inner.devices[0].vm.as_ref().unwrap().space.clone()
    };
    assert_eq!(svm(va, 0x4000, set, &mut [access]), Ok(()));
    assert_eq!(space().lookup(va + 0x3fff).map(|span| span.end), Some(va + 0x4000));
    // Taking access from the middle leaves both ends.
    assert_eq!(svm(va + 0x1000, 0x1000, set, &mut [attribute(SVM_ATTR_NO_ACCESS, gpu)]), Ok(()));
    let mapped: Vec<bool> = (0..4).map(|page| space().lookup(va + 0x1000 * page).is_some()).collect();
    assert_eq!(mapped, [true, false, true, true]);
    let mut asked = [access, attribute(SVM_ATTR_SET_FLAGS, 0), attribute(SVM_ATTR_PREFERRED_LOC, 0)];
    assert_eq!(svm(va, 0x4000, SVM_OP_GET_ATTR, &mut asked), Ok(()));
    assert_eq!(asked[0], attribute(SVM_ATTR_NO_ACCESS, gpu));
    assert_eq!((asked[1].value, asked[2].value), (SVM_FLAG_HOST_ACCESS | SVM_FLAG_COHERENT, SVM_LOCATION_UNDEFINED));
    // Buffers and ranges keep out of each other's way.
    assert_eq!(client.alloc(va, 0x1000, SHARED).err(), Some(libc::EADDRINUSE));
    let buffer = client.buffer(0x1000, SHARED);
    // The host's mapping of a buffer is a device's; where the host has a reservation only, the GPU's mapping counts.
    assert_eq!(svm(buffer.va, 0x1000, set, &mut [access]), Err(libc::EFAULT));
    // SAFETY: a reservation in place of the test's own mapping, which nothing uses.
    unsafe { client.driver.mmap(buffer.va as usize, 0x1000, 0, flags | libc::MAP_FIXED, -1, 0).unwrap() };
    assert_eq!(svm(buffer.va, 0x1000, set, &mut [access]), Err(libc::EADDRINUSE));
    // SAFETY: nothing uses the range.
    unsafe { client.driver.munmap(va as usize, bytes).unwrap() };
    assert!((0..4).all(|page| space().lookup(va + 0x1000 * page).is_none()));
}

use crate::isa::Target;
use crate::kernel::call;
use crate::kernel::{Options, Rules};
use crate::testing::{Client, SHARED, until};
use kfd::Errno;
use kfd::uapi::*;

/// CREATE_QUEUE with one thing changed.
fn create(client: &Client, args: CreateQueueArgs, change: impl FnOnce(&mut CreateQueueArgs)) -> Result<(), Errno> {
    let mut args = args;
    change(&mut args);
    let process = client.driver.process().unwrap();
    call::ioctl(client.driver.kernel(), &process, CreateQueueArgs::REQUEST, args.as_bytes_mut())
}

#[test]
fn arguments_in_order() {
    let client = Client::opened(&[Target::Gfx1100]);
    let good = CreateQueueArgs {
        ring_base_address: 0x10_0000,
        write_pointer_address: 0x20_0038,
        read_pointer_address: 0x20_0080,
        ring_size: 4096,
        gpu_id: client.gpus[0],
        queue_type: QUEUE_TYPE_COMPUTE_AQL,
        queue_percentage: 100,
        queue_priority: 15,
        ..Default::default()
    };
    let kernel_half = 1 << 63;
    // Each case breaks its rule and all that follow it in the table stay broken for the next.
    assert_eq!(create(&client, good, |_| {}), Err(Errno::ESRCH));
    assert_eq!(create(&client, good, |a| a.gpu_id = 1), Err(Errno::EINVAL));
    assert_eq!(create(&client, good, |a| (a.gpu_id, a.queue_type) = (1, 5)), Err(Errno::ENOTSUPP));
    assert_eq!(
        create(&client, good, |a| (a.queue_type, a.ctx_save_restore_address) = (5, kernel_half)),
        Err(Errno::EFAULT)
    );
    assert_eq!(create(&client, good, |a| (a.queue_type, a.eop_buffer_address) = (5, kernel_half)), Err(Errno::EFAULT));
    assert_eq!(
        create(&client, good, |a| (a.queue_type, a.write_pointer_address) = (5, kernel_half)),
        Err(Errno::EFAULT)
    );
    assert_eq!(
        create(&client, good, |a| (a.ring_size, a.read_pointer_address) = (3000, kernel_half)),
        Err(Errno::EINVAL)
    );
    assert_eq!(create(&client, good, |a| (a.ring_size, a.ring_base_address) = (3000, kernel_half)), Err(Errno::EFAULT));
    assert_eq!(
        create(&client, good, |a| (a.queue_priority, a.ring_base_address) = (16, kernel_half)),
        Err(Errno::EINVAL)
    );
    assert_eq!(
        create(&client, good, |a| (a.queue_percentage, a.ring_base_address) = (101, kernel_half)),
        Err(Errno::EINVAL)
    );
    // Bits 8 to 15 are not the percentage.
    assert_eq!(create(&client, good, |a| a.queue_percentage = 0x364), Err(Errno::ESRCH));
    assert_eq!(create(&client, good, |a| a.ring_size = 0), Err(Errno::ESRCH));
}

#[test]
fn buffers_are_checked_exactly() {
    for target in [Target::Gfx90a, Target::Gfx942, Target::Gfx1100] {
        let client = Client::new(&[target]);
        let parts = client.queue_parts(64, Default::default());
        let bad = |change: fn(&mut CreateQueueArgs)| create(&client, parts.args, change);
        assert_eq!(bad(|a| a.ring_base_address = 0), Err(Errno::EINVAL));
        assert_eq!(bad(|a| a.ring_base_address += 0x1000), Err(Errno::EINVAL));
        assert_eq!(bad(|a| a.ring_size = 8192), Err(Errno::EINVAL));
        assert_eq!(bad(|a| a.write_pointer_address = 0), Err(Errno::EINVAL));
        assert_eq!(bad(|a| a.read_pointer_address = a.ctx_save_restore_address), Err(Errno::EINVAL));
        assert_eq!(bad(|a| a.eop_buffer_size = 2048), Err(Errno::EINVAL));
        assert_eq!(bad(|a| a.eop_buffer_size = 8192), Err(Errno::EINVAL));
        assert_eq!(bad(|a| a.ctl_stack_size += 4096), Err(Errno::EINVAL));
        assert_eq!(bad(|a| a.ctl_stack_size = 0), Err(Errno::EINVAL));
        assert_eq!(bad(|a| a.ctx_save_restore_size -= 4096), Err(Errno::EINVAL));
        assert_eq!(bad(|a| a.ctx_save_restore_size += 1 << 20), Err(Errno::EINVAL));
        assert_eq!(bad(|a| a.ctx_save_restore_address += 4096), Err(Errno::EINVAL));
        assert_eq!(bad(|a| a.queue_type = QUEUE_TYPE_COMPUTE), Err(Errno::EBUSY));
        assert_eq!(bad(|a| a.queue_type = QUEUE_TYPE_SDMA), Err(Errno::ENOMEM));
        assert_eq!(bad(|a| (a.queue_type, a.sdma_engine_id) = (QUEUE_TYPE_SDMA_BY_ENG_ID, 99)), Err(Errno::EINVAL));
        // A refused queue holds on to nothing.
        assert_eq!(client.unmap_from(parts.ring.handle, &client.gpus), (Ok(()), 1));
        assert_eq!(bad(|_| {}), Err(Errno::EINVAL));
        assert_eq!(client.map_to(parts.ring.handle, &client.gpus), (Ok(()), 1));
        // A ring of less than a page is only checked at its start, and no end-of-pipe buffer is fine.
        assert_eq!(bad(|a| (a.ring_size, a.eop_buffer_address) = (2048, 0)), Ok(()));
    }
}

#[test]
fn versions_differ() {
    let options = |rules| Options { workers: 1, rules, ..Options::default() };
    let old = Client::with(&[Target::Gfx90a], options(Rules::Linux6_1));
    old.acquire();
    let args = CreateQueueArgs { gpu_id: old.gpus[0], queue_type: 2, ..Default::default() };
    assert_eq!(create(&old, args, |_| {}), Ok(()));

    let old = Client::with(&[Target::Gfx1100], options(Rules::Linux6_1));
    old.acquire();
    let wptr = old.buffer(8192, SHARED);
    let args = CreateQueueArgs { gpu_id: old.gpus[0], queue_type: 2, ..Default::default() };
    assert_eq!(create(&old, args, |_| {}), Err(Errno::EINVAL));
    assert_eq!(create(&old, args, |a| a.write_pointer_address = wptr.va), Err(Errno::EINVAL));
    let wptr = old.buffer(4096, SHARED);
    assert_eq!(create(&old, args, |a| a.write_pointer_address = wptr.va), Ok(()));

    for (rules, expected) in [(Rules::Linux6_12Early, Err(Errno::EINVAL)), (Rules::Linux6_12, Ok(()))] {
        let client = Client::with(&[Target::Gfx90a], options(rules));
        client.acquire();
        let parts = client.queue_parts(64, Default::default());
        let eop = client.buffer(8192, SHARED);
        let bigger = |a: &mut CreateQueueArgs| (a.eop_buffer_address, a.eop_buffer_size) = (eop.va, 8192);
        assert_eq!(create(&client, parts.args, bigger), expected, "{rules:?}");
        let sizes = client.driver.kernel().devices[0].cwsr;
        let save = sizes.save + 4096;
        let area = client.buffer(sizes.mapping(save, 1).unwrap(), SHARED);
        let bigger = |a: &mut CreateQueueArgs| (a.ctx_save_restore_address, a.ctx_save_restore_size) = (area.va, save);
        assert_eq!(create(&client, parts.args, bigger), expected, "{rules:?}");
    }
}

#[test]
fn ids_doorbells_and_references() {
    let client = Client::new(&[Target::Gfx1100]);
    let (first, second) = (client.queue(64, Default::default()), client.queue(64, Default::default()));
    let offsets = [first.parts.args.doorbell_offset, second.parts.args.doorbell_offset];
    let base = u64::from(client.gpus[0]) << 46 | 3 << 62;
    assert_eq!((offsets, first.parts.args.queue_id, second.parts.args.queue_id), ([base, base + 8], 0, 1));
    for buffer in [first.parts.ring, first.parts.control, first.parts.eop, first.parts.save] {
        assert_eq!(client.unmap_from(buffer.handle, &client.gpus), (Err(libc::EBUSY), 0));
    }
    first.destroy().unwrap();
    assert_eq!(first.destroy(), Err(libc::EINVAL));
    for buffer in [first.parts.ring, first.parts.control, first.parts.eop, first.parts.save] {
        assert_eq!(client.unmap_from(buffer.handle, &client.gpus), (Ok(()), 1));
    }
    let third = client.queue(64, Default::default());
    assert_eq!((third.parts.args.queue_id, third.parts.args.doorbell_offset), (0, base));
}

#[test]
fn queues_of_a_process_on_a_gpu_run_out() {
    let client = Client::new(&[Target::Gfx1100]);
    let parts = client.queue_parts(64, Default::default());
    for _ in 0..127 {
        assert_eq!(create(&client, parts.args, |_| {}), Ok(()));
    }
    assert_eq!(create(&client, parts.args, |_| {}), Err(Errno::ENOSPC));
    client.call(&mut DestroyQueueArgs { queue_id: 40, pad: 0 }).unwrap();
    let mut args = parts.args;
    client.call(&mut args).unwrap();
    assert_eq!(args.queue_id, 40);
}

#[test]
fn a_user_pointer_is_no_place_for_the_write_index_under_mes() {
    for (target, expected) in [(Target::Gfx1100, Err(Errno::EPERM)), (Target::Gfx90a, Ok(()))] {
        let client = Client::new(&[target]);
        let parts = client.queue_parts(64, Default::default());
        let page = Box::leak(Box::new([[0u64; 512]; 2]));
        let va = (page.as_mut_ptr() as u64).next_multiple_of(4096);
        let mut args = AllocMemoryOfGpuArgs {
            va_addr: va,
            mmap_offset: va,
            size: 4096,
            gpu_id: client.gpus[0],
            flags: ALLOC_MEM_FLAGS_USERPTR | ALLOC_MEM_FLAGS_WRITABLE,
            handle: 0,
        };
        client.call(&mut args).unwrap();
        assert_eq!(client.map_to(args.handle, &client.gpus), (Ok(()), 1));
        assert_eq!(create(&client, parts.args, |a| a.write_pointer_address = va + 56), expected, "{target}");
    }
}

#[test]
fn the_write_index_belongs_to_the_queues_gpu_under_mes() {
    for (target, expected) in [(Target::Gfx1100, Err(Errno::EINVAL)), (Target::Gfx90a, Ok(()))] {
        let client = Client::new(&[target, target]);
        let parts = client.queue_parts(64, Default::default());
        let other = client.buffer_on(1, 4096, SHARED);
        assert_eq!(create(&client, parts.args, |a| a.write_pointer_address = other.va), expected, "{target}");
    }
}

#[test]
fn a_save_area_can_be_svm() {
    let client = Client::new(&[Target::Gfx1100]);
    let parts = client.queue_parts(64, Default::default());
    let bytes = parts.save.bytes;
    let va = client.memory(bytes);
    assert_eq!(create(&client, parts.args, |a| a.ctx_save_restore_address = va), Err(Errno::EINVAL));
    let svm = |flags| {
        let mut raw = SvmArgs { start_addr: va, size: bytes, op: SVM_OP_SET_ATTR, nattr: 2 }.as_bytes().to_vec();
        raw.extend(SvmAttribute { attr_type: SVM_ATTR_ACCESS, value: client.gpus[0] }.as_bytes());
        raw.extend(SvmAttribute { attr_type: SVM_ATTR_SET_FLAGS, value: flags }.as_bytes());
        kfd::Driver::ioctl(&client.driver, client.kfd, svm_request(2).unwrap(), &mut raw).unwrap();
    };
    svm(SVM_FLAG_GPU_EXEC);
    assert_eq!(create(&client, parts.args, |a| a.ctx_save_restore_address = va), Err(Errno::EINVAL));
    svm(SVM_FLAG_GPU_ALWAYS_MAPPED);
    assert_eq!(create(&client, parts.args, |a| a.ctx_save_restore_address = va), Ok(()));
}

#[test]
fn a_queue_stops_for_good_when_its_save_area_is_unmapped() {
    let client = Client::new(&[Target::Gfx1100]);
    let mut parts = client.queue_parts(64, Default::default());
    let bytes = parts.save.bytes;
    let va = client.memory(bytes);
    let mut raw = SvmArgs { start_addr: va, size: bytes, op: SVM_OP_SET_ATTR, nattr: 2 }.as_bytes().to_vec();
    raw.extend(SvmAttribute { attr_type: SVM_ATTR_ACCESS, value: client.gpus[0] }.as_bytes());
    raw.extend(SvmAttribute { attr_type: SVM_ATTR_SET_FLAGS, value: SVM_FLAG_GPU_ALWAYS_MAPPED }.as_bytes());
    kfd::Driver::ioctl(&client.driver, client.kfd, svm_request(2).unwrap(), &mut raw).unwrap();
    parts.args.ctx_save_restore_address = va;
    let queue = client.start(parts, 64);
    let packet = aql::BarrierAnd::default().to_bytes();
    queue.submit(packet);
    until(|| queue.read_index() == 1);
    // SAFETY: the test's own memory.
    unsafe { kfd::Driver::munmap(&client.driver, va as usize, bytes as usize).unwrap() };
    queue.submit(packet);
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert_eq!(queue.read_index(), 1);
    queue.destroy().unwrap();
}

#[test]
fn unknown_queues() {
    let client = Client::new(&[Target::Gfx1100]);
    let mask = [3u32; 32];
    let cu_mask = |num_cu_mask, cu_mask_ptr| client.call(&mut SetCuMaskArgs { queue_id: 9, num_cu_mask, cu_mask_ptr });
    let update = |args: UpdateQueueArgs| {
        let mut args = args;
        client.call(&mut args)
    };
    assert_eq!(update(UpdateQueueArgs { queue_id: 9, ..Default::default() }), Err(libc::EFAULT));
    assert_eq!(update(UpdateQueueArgs { queue_id: 9, queue_percentage: 101, ..Default::default() }), Err(libc::EINVAL));
    assert_eq!(cu_mask(32, mask.as_ptr() as u64), Err(libc::EFAULT));
    assert_eq!(client.call(&mut GetQueueWaveStateArgs { queue_id: 9, ..Default::default() }), Err(libc::EFAULT));
    assert_eq!(client.call(&mut DestroyQueueArgs { queue_id: 9, pad: 0 }), Err(libc::EINVAL));
    assert_eq!(client.call(&mut AllocQueueGwsArgs { queue_id: 9, ..Default::default() }), Err(libc::EINVAL));
    assert_eq!(
        (cu_mask(0, 0), cu_mask(33, 0), cu_mask(32, 8)),
        (Err(libc::EINVAL), Err(libc::EINVAL), Err(libc::EFAULT))
    );
}

#[test]
fn cu_masks_pair_up_from_gfx10_on() {
    for (target, unpaired) in [(Target::Gfx1100, Err(libc::EINVAL)), (Target::Gfx90a, Ok(()))] {
        let client = Client::new(&[target]);
        let queue = client.queue(64, Default::default());
        let set = |words: &[u32]| {
            client.call(&mut SetCuMaskArgs {
                queue_id: queue.parts.args.queue_id,
                num_cu_mask: words.len() as u32 * 32,
                cu_mask_ptr: words.as_ptr() as u64,
            })
        };
        assert_eq!((set(&[0xf0cc_3303]), set(&[3, 0x4000_0000]), set(&[6])), (Ok(()), unpaired, unpaired), "{target}");
        // More than 1024 bits are not looked at.
        let mut long = vec![0xffff_ffff; 33];
        long[32] = 1;
        assert_eq!(set(&long), Ok(()));
    }
}

#[test]
fn pausing() {
    let client = Client::new(&[Target::Gfx1100]);
    let queue = client.queue(64, Default::default());
    let args = queue.parts.args;
    let update = |ring_base_address, queue_percentage| {
        client.call(&mut UpdateQueueArgs {
            ring_base_address,
            queue_id: args.queue_id,
            ring_size: args.ring_size,
            queue_percentage,
            queue_priority: 7,
        })
    };
    let mut header = [9u32; 4];
    let mut wave_state = || {
        let ctl_stack_address = header.as_mut_ptr() as u64;
        client.call(&mut GetQueueWaveStateArgs { queue_id: args.queue_id, ctl_stack_address, ..Default::default() })
    };
    assert_eq!(wave_state(), Err(libc::EINVAL));
    assert_eq!(update(args.ring_base_address + 4096, 100), Err(libc::EFAULT));
    assert_eq!(update(args.ring_base_address, 0), Ok(()));
    assert_eq!(wave_state(), Ok(()));
    assert_eq!(update(args.ring_base_address, 100), Ok(()));
    assert_eq!(wave_state(), Err(libc::EINVAL));
    assert_eq!(update(0, 100), Ok(()));
    assert_eq!(wave_state(), Ok(()));
    assert_eq!((header[1], header[3]), (0, 0));
    queue.destroy().unwrap();
}

#[test]
fn global_wave_sync() {
    let client = Client::new(&[Target::Gfx90a]);
    let (first, second) = (client.queue(64, Default::default()), client.queue(64, Default::default()));
    let gws = |queue_id, num_gws| client.call(&mut AllocQueueGwsArgs { queue_id, num_gws, ..Default::default() });
    let (a, b) = (first.parts.args.queue_id, second.parts.args.queue_id);
    assert_eq!((gws(a, 0), gws(a, 64), gws(b, 1), gws(a, 0), gws(b, 1)), {
        (Err(libc::EINVAL), Ok(()), Err(libc::EBUSY), Ok(()), Ok(()))
    });
    assert_eq!(gws(b, 1), Err(libc::EBUSY));
    let without = Client::new(&[Target::Gfx1201]);
    let queue = without.queue(64, Default::default());
    let mut args = AllocQueueGwsArgs { queue_id: queue.parts.args.queue_id, num_gws: 1, ..Default::default() };
    assert_eq!(without.call(&mut args), Err(libc::ENODEV));
}

//! CREATE_QUEUE.

use super::{MAX_PER_PROCESS, Queue};
use crate::cp::{PacketProcessor, Ring, Setup};
use crate::kernel::call::Call;
use crate::kernel::doorbell::{self, Doorbell};
use crate::kernel::memory::Kind;
use crate::kernel::process::Inner;
use crate::kernel::user::access_ok;
use kfd::Errno;
use kfd::uapi::{
    CreateQueueArgs, MAX_QUEUE_PERCENTAGE, MAX_QUEUE_PRIORITY, MIN_QUEUE_RING_SIZE, QUEUE_TYPE_COMPUTE,
    QUEUE_TYPE_COMPUTE_AQL, QUEUE_TYPE_SDMA, QUEUE_TYPE_SDMA_BY_ENG_ID, QUEUE_TYPE_SDMA_XGMI,
};

/// Queues of a process on one GPU: 127, 255 on GC 9.4.3 and 9.4.4.
fn max_per_device(version: u32) -> usize {
    if matches!(version, 90402 | 90403) { 255 } else { 127 }
}

/// Bits 0 to 7 of `queue_percentage`; 8 to 15 choose the XCC of a PM4 queue.
const PERCENTAGE_MASK: u32 = 0xff;

/// The checks CREATE_QUEUE and UPDATE_QUEUE share, in this order:
///
/// | rule | errno |
/// |---|---|
/// | percentage at most 100 | EINVAL |
/// | priority at most 15 | EINVAL |
/// | ring address 0 or in user space | EFAULT |
/// | ring size 0 or a power of two | EINVAL |
///
/// and returns the ring size that is used: 1024 at least.
pub fn common(percentage: u32, priority: u32, ring: u64, ring_bytes: u32) -> Result<u32, Errno> {
    if percentage & PERCENTAGE_MASK > MAX_QUEUE_PERCENTAGE || priority > MAX_QUEUE_PRIORITY {
        return Err(Errno::EINVAL);
    }
    if ring != 0 && !access_ok(ring, 8) {
        return Err(Errno::EFAULT);
    }
    if ring_bytes != 0 && !ring_bytes.is_power_of_two() {
        return Err(Errno::EINVAL);
    }
    Ok(ring_bytes.max(MIN_QUEUE_RING_SIZE))
}

/// CREATE_QUEUE, its checks in the kernel's order.
pub fn create(call: &Call<'_>, args: &mut CreateQueueArgs) -> Result<(), Errno> {
    args.ring_size = common(args.queue_percentage, args.queue_priority, args.ring_base_address, args.ring_size)?;
    if !access_ok(args.read_pointer_address, 4) || !access_ok(args.write_pointer_address, 4) {
        return Err(Errno::EFAULT);
    }
    for optional in [args.eop_buffer_address, args.ctx_save_restore_address] {
        if optional != 0 && !access_ok(optional, 4) {
            return Err(Errno::EFAULT);
        }
    }
    match args.queue_type {
        QUEUE_TYPE_COMPUTE | QUEUE_TYPE_COMPUTE_AQL => {}
        QUEUE_TYPE_SDMA | QUEUE_TYPE_SDMA_XGMI | QUEUE_TYPE_SDMA_BY_ENG_ID => {}
        _ => return Err(Errno::ENOTSUPP),
    }

    let mut inner = call.process.lock();
    let index = inner.index(args.gpu_id)?;
    inner.devices[index].bound()?;
    let device = inner.devices[index].device.clone();
    let profile = &device.profile;
    if args.queue_type == QUEUE_TYPE_SDMA_BY_ENG_ID
        && args.sdma_engine_id >= profile.sdma_engines + profile.sdma_xgmi_engines
    {
        return Err(Errno::EINVAL);
    }
    inner.devices[index].doorbells(call)?;
    if !matches!(args.queue_type, QUEUE_TYPE_COMPUTE_AQL) {
        return refuse_other_types(call, &inner, index, args);
    }
    let buffers = inner.queue_buffers(index, args, call.kernel.options.rules)?;
    let created = finish(call, &mut inner, index, args, buffers);
    if let Err((_, buffers)) = &created {
        inner.release_queue_buffers(index, buffers);
    }
    created.map_err(|(errno, _)| errno)
}

/// A PM4 or SDMA queue passes the kernel's checks of its buffers; then this machine has no processor for it, which a
/// kernel says with ENOMEM when all SDMA queues are taken and with EBUSY when all hardware queues are.
fn refuse_other_types(call: &Call<'_>, inner: &Inner, index: usize, args: &CreateQueueArgs) -> Result<(), Errno> {
    inner.queue_buffer(index, args.write_pointer_address, 4096)?;
    inner.queue_buffer(index, args.read_pointer_address, 4096)?;
    inner.queue_buffer(index, args.ring_base_address, u64::from(args.ring_size))?;
    let (what, errno) = match args.queue_type {
        QUEUE_TYPE_COMPUTE => ("PM4 compute", Errno::EBUSY),
        _ => ("SDMA", Errno::ENOMEM),
    };
    call.kernel.note(|| {
        format!("CREATE_QUEUE type {}: the emulated machine has no {what} queues, only AQL (type 2)", args.queue_type)
    });
    Err(errno)
}

type Failed = (Errno, super::Buffers);

fn finish(
    call: &Call<'_>,
    inner: &mut Inner,
    index: usize,
    args: &mut CreateQueueArgs,
    buffers: super::Buffers,
) -> Result<(), Failed> {
    let device = inner.devices[index].device.clone();
    let of_device = inner.queues.values().filter(|queue| queue.device == index).count();
    if of_device >= max_per_device(device.version()) {
        return Err((Errno::ENOSPC, buffers));
    }
    let Some(id) = (0..MAX_PER_PROCESS).find(|id| !inner.queues.contains_key(id)) else {
        return Err((Errno::ENOMEM, buffers));
    };
    // MES polls the write index at its physical address, so its page must be one that can be pinned.
    let wptr = inner.devices[index].vm.as_ref().and_then(|vm| vm.mapping(args.write_pointer_address));
    let wptr_kind = wptr.and_then(|(_, mapping)| Some((mapping.handle, inner.bo(mapping.handle)?.kind)));
    if device.has_mes() {
        match wptr_kind {
            Some((handle, _)) if handle.gpu_id() != device.gpu_id => return Err((Errno::EINVAL, buffers)),
            Some((_, Kind::Userptr)) => return Err((Errno::EPERM, buffers)),
            _ => {}
        }
    }
    if let Err(errno) = device.add_queue() {
        return Err((errno, buffers));
    }
    let runtime = inner.runtime.is_some();
    let data = &mut inner.devices[index];
    let evicted = data.evicted.clone();
    let space = data.vm.as_ref().map(|vm| vm.space.clone());
    let (Some(doorbells), Some(space)) = (&mut data.doorbells, space) else {
        device.remove_queue();
        return Err((Errno::ENOMEM, buffers));
    };
    let slot = match doorbells.take() {
        Ok(slot) => slot,
        Err(errno) => {
            device.remove_queue();
            return Err((errno, buffers));
        }
    };
    let percentage = args.queue_percentage & PERCENTAGE_MASK;
    let ring = Ring { va: args.ring_base_address, bytes: args.ring_size };
    let setup = Setup {
        kernel: call.kernel.clone(),
        device: device.clone(),
        events: call.process.events.clone(),
        bell: call.process.bell.clone(),
        space,
        evicted,
        queue_id: id,
        read_index: args.read_pointer_address,
        write_index: args.write_pointer_address,
        save_area: args.ctx_save_restore_address,
        doorbell: Doorbell::new(doorbells, slot),
        runtime,
    };
    let active = ring.va != 0 && percentage > 0;
    let processor = match PacketProcessor::start(setup, active.then_some(ring)) {
        Ok(processor) => processor,
        Err(_) => {
            doorbells.release(slot);
            device.remove_queue();
            return Err((Errno::ENOMEM, buffers));
        }
    };
    let queue = Queue {
        device: index,
        ring: args.ring_base_address,
        ring_bytes: args.ring_size,
        percentage,
        buffers,
        doorbell: slot,
        cu_mask: Vec::new(),
        gws: false,
        processor,
    };
    inner.queues.insert(id, queue);
    args.queue_id = id;
    args.doorbell_offset = doorbell::mmap_offset(args.gpu_id, slot);
    Ok(())
}

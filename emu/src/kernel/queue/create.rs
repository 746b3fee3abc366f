//! CREATE_QUEUE.

use super::{MAX_PER_PROCESS, Queue};
use crate::cp::{PacketProcessor, Ring, Setup};
use crate::kernel::call::Call;
use crate::kernel::device::MAX_QUEUES;
use crate::kernel::doorbell::{self, Doorbell, Doorbells};
use crate::kernel::memory::Kind;
use crate::kernel::process::Inner;
use crate::kernel::rule::{check, rules};
use crate::kernel::user::access_ok;
use kfd::Errno;
use kfd::uapi::{
    CreateQueueArgs, MAX_QUEUE_PERCENTAGE, MAX_QUEUE_PRIORITY, MIN_QUEUE_RING_SIZE, QUEUE_TYPE_COMPUTE,
    QUEUE_TYPE_COMPUTE_AQL, QUEUE_TYPE_SDMA_BY_ENG_ID,
};

const NAME: &str = "CREATE_QUEUE";

/// Queues of a process on one GPU: 127, 255 on GC 9.4.3 and 9.4.4.
fn max_per_device(version: u32) -> usize {
    if matches!(version, 90402 | 90403) { 255 } else { 127 }
}

/// Bits 0 to 7 of `queue_percentage`; 8 to 15 choose the XCC of a PM4 queue.
const PERCENTAGE_MASK: u32 = 0xff;

/// What CREATE_QUEUE and UPDATE_QUEUE check of the same arguments.
pub struct CommonFacts {
    /// `queue_percentage`.
    pub percentage: u32,
    /// `queue_priority`.
    pub priority: u32,
    /// `ring_base_address`.
    pub ring: u64,
    /// `ring_size`.
    pub ring_bytes: u32,
}

/// What CREATE_QUEUE looks at of its other arguments.
pub struct AddressFacts {
    args: CreateQueueArgs,
    /// Greatest queue type of the kernel version.
    last_type: u32,
}

/// What CREATE_QUEUE looks at of the device.
pub struct DeviceFacts {
    args: CreateQueueArgs,
    known_gpu: bool,
    acquired: bool,
    sdma_engines: u32,
}

/// What CREATE_QUEUE looks at when the buffers are right.
pub struct RoomFacts {
    /// Queues of the process on the GPU, and how many there can be.
    queues: usize,
    max_queues: usize,
    /// A queue id is free.
    id: Option<u32>,
    mes: bool,
    /// GPU that owns the write index' buffer, when it is one.
    write_index_gpu: Option<u32>,
    write_index_is_userptr: bool,
    gpu_id: u32,
    queue_type: u32,
    /// Queues of all processes on the GPU.
    device_queues: u32,
    /// A doorbell is free.
    doorbell: bool,
}

rules! {
    /// CREATE_QUEUE and UPDATE_QUEUE: arguments. A ring size below 1024 is raised to it afterwards.
    COMMON for f: CommonFacts {
        EINVAL "queue_percentage, bits 0 to 7, is at most 100": f.percentage & PERCENTAGE_MASK =>
            f.percentage & PERCENTAGE_MASK <= MAX_QUEUE_PERCENTAGE;
        EINVAL "queue_priority is at most 15": f.priority => f.priority <= MAX_QUEUE_PRIORITY;
        EFAULT "ring_base_address is 0 or in user space": f.ring => f.ring == 0 || access_ok(f.ring, 8);
        EINVAL "ring_size is 0 or a power of two": f.ring_bytes => f.ring_bytes == 0 || f.ring_bytes.is_power_of_two();
    }

    /// CREATE_QUEUE: the other arguments. Nothing is dereferenced here.
    ADDRESSES for f: AddressFacts {
        EFAULT "read_pointer_address is in user space": f.args.read_pointer_address =>
            access_ok(f.args.read_pointer_address, 4);
        EFAULT "write_pointer_address is in user space": f.args.write_pointer_address =>
            access_ok(f.args.write_pointer_address, 4);
        EFAULT "eop_buffer_address is 0 or in user space": f.args.eop_buffer_address =>
            access_ok(f.args.eop_buffer_address, 4);
        EFAULT "ctx_save_restore_address is 0 or in user space": f.args.ctx_save_restore_address =>
            access_ok(f.args.ctx_save_restore_address, 4);
        ENOTSUPP "queue_type is 0 (PM4), 1 (SDMA), 2 (AQL), 3 (SDMA XGMI) or, since interface 1.17, 4 (SDMA by engine)":
            f.args.queue_type => f.args.queue_type <= f.last_type;
    }

    /// CREATE_QUEUE: the device.
    DEVICE for f: DeviceFacts {
        EINVAL "gpu_id is a GPU of the process": f.args.gpu_id => f.known_gpu;
        ESRCH "ACQUIRE_VM was called for the GPU": f.args.gpu_id => f.acquired;
        EINVAL "sdma_engine_id is an engine of the GPU, with queue type 4": f.args.sdma_engine_id =>
            f.args.queue_type != QUEUE_TYPE_SDMA_BY_ENG_ID || f.args.sdma_engine_id < f.sdma_engines;
    }

    /// CREATE_QUEUE: room for one more, after the buffers.
    ROOM for f: RoomFacts {
        ENOSPC "the process has fewer queues on the GPU than it may (127; 255 on GC 9.4.3)": f.queues =>
            f.queues < f.max_queues;
        ENOMEM "one of the process' 1024 queue ids is free": f.queues => f.id.is_some();
        EINVAL "the write index' buffer belongs to the queue's GPU, under MES": f.gpu_id =>
            !f.mes || f.write_index_gpu.is_none_or(|gpu| gpu == f.gpu_id);
        EPERM "the write index is not in USERPTR memory, which MES cannot pin": f.gpu_id =>
            !f.mes || !f.write_index_is_userptr;
        EPERM "the GPU has fewer than 4096 queues": f.device_queues => f.device_queues < MAX_QUEUES;
        ENOMEM "a hardware queue of an SDMA engine is free: the emulated machine has none": f.queue_type =>
            matches!(f.queue_type, QUEUE_TYPE_COMPUTE | QUEUE_TYPE_COMPUTE_AQL);
        EBUSY "a doorbell outside the reserved ones is free": f.gpu_id => f.doorbell;
        EBUSY "a hardware queue for PM4 is free: the emulated machine has none": f.queue_type =>
            f.queue_type != QUEUE_TYPE_COMPUTE;
    }
}

/// Applies [`COMMON`], and returns the ring size that is used: 1024 at least.
pub fn common(call: &Call<'_>, name: &str, facts: CommonFacts) -> Result<u32, Errno> {
    check(call.kernel, name, COMMON, &facts)?;
    Ok(facts.ring_bytes.max(MIN_QUEUE_RING_SIZE))
}

/// CREATE_QUEUE, its checks in the kernel's order.
pub fn create(call: &Call<'_>, args: &mut CreateQueueArgs) -> Result<(), Errno> {
    let facts = CommonFacts {
        percentage: args.queue_percentage,
        priority: args.queue_priority,
        ring: args.ring_base_address,
        ring_bytes: args.ring_size,
    };
    args.ring_size = common(call, NAME, facts)?;
    let last_type = call.kernel.options.rules.last_queue_type();
    check(call.kernel, NAME, ADDRESSES, &AddressFacts { args: *args, last_type })?;

    let mut inner = call.process.lock();
    let found = inner.index(args.gpu_id).ok();
    let profile = found.map(|index| &inner.devices[index].device.profile);
    let facts = DeviceFacts {
        args: *args,
        known_gpu: found.is_some(),
        acquired: found.is_some_and(|index| inner.devices[index].vm.is_some()),
        sdma_engines: profile.map_or(0, |profile| profile.sdma_engines + profile.sdma_xgmi_engines),
    };
    check(call.kernel, NAME, DEVICE, &facts)?;
    let index = found.ok_or(Errno::EINVAL)?;
    inner.devices[index].doorbells(call)?;
    let buffers = inner.queue_buffers(call, index, args)?;
    let created = finish(call, &mut inner, index, args, buffers);
    if let Err((_, buffers)) = &created {
        inner.release_queue_buffers(index, buffers);
    }
    created.map_err(|(errno, _)| errno)
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
    // MES polls the write index at its physical address, so its page must be one that can be pinned.
    let wptr = inner.devices[index].vm.as_ref().and_then(|vm| vm.mapping(args.write_pointer_address));
    let wptr = wptr.and_then(|(_, mapping)| Some((mapping.handle, inner.bo(mapping.handle)?.kind)));
    let facts = RoomFacts {
        queues: inner.queues.values().filter(|queue| queue.device == index).count(),
        max_queues: max_per_device(device.version()),
        id: (0..MAX_PER_PROCESS).find(|id| !inner.queues.contains_key(id)),
        mes: device.has_mes(),
        write_index_gpu: wptr.map(|(handle, _)| handle.gpu_id()),
        write_index_is_userptr: wptr.is_some_and(|(_, kind)| kind == Kind::Userptr),
        gpu_id: args.gpu_id,
        queue_type: args.queue_type,
        device_queues: device.queues(),
        doorbell: inner.devices[index].doorbells.as_ref().is_some_and(Doorbells::has_free),
    };
    if let Err(errno) = check(call.kernel, NAME, ROOM, &facts) {
        return Err((errno, buffers));
    }
    let Some(id) = facts.id else { return Err((Errno::ENOMEM, buffers)) };
    // Another process of the machine may have been faster.
    if let Err(errno) = device.add_queue() {
        return Err((errno, buffers));
    }
    let runtime = inner.runtime_enabled.clone();
    let data = &mut inner.devices[index];
    let (evicted, reset) = (data.evicted.clone(), data.reset.clone());
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
        reset,
        queue_id: id,
        read_index: args.read_pointer_address,
        write_index: args.write_pointer_address,
        save_area: args.ctx_save_restore_address,
        doorbell: Doorbell::new(doorbells, slot),
        runtime,
    };
    let active = ring.va != 0 && percentage > 0;
    let processor = match PacketProcessor::start(setup, active.then_some(ring), args.queue_priority) {
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
        save_bytes: args.ctx_save_restore_size,
        percentage,
        buffers,
        doorbell: slot,
        gws: false,
        processor,
    };
    inner.queues.insert(id, queue);
    args.queue_id = id;
    args.doorbell_offset = doorbell::mmap_offset(args.gpu_id, slot);
    Ok(())
}

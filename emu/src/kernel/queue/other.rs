//! UPDATE_QUEUE, DESTROY_QUEUE, SET_CU_MASK, GET_QUEUE_WAVE_STATE, ALLOC_QUEUE_GWS.

use super::create::common;
use crate::cp::Ring;
use crate::kernel::call::Call;
use kfd::Errno;
use kfd::uapi::{AllocQueueGwsArgs, DestroyQueueArgs, GetQueueWaveStateArgs, SetCuMaskArgs, UpdateQueueArgs};

/// UPDATE_QUEUE. An unknown queue, or a ring that is no mapping of its own, is EFAULT. Ring address 0 or percentage 0
/// pauses the queue.
pub fn update(call: &Call<'_>, args: &mut UpdateQueueArgs) -> Result<(), Errno> {
    let bytes = common(args.queue_percentage, args.queue_priority, args.ring_base_address, args.ring_size)?;
    let mut inner = call.process.lock();
    let device = inner.queues.get(&args.queue_id).ok_or(Errno::EFAULT)?.device;
    let ring = match args.ring_base_address {
        0 => None,
        _ if call.kernel.options.rules == crate::kernel::Rules::Linux6_1 => None,
        va => Some(inner.queue_buffer(device, va, u64::from(bytes)).map_err(|_| Errno::EFAULT)?),
    };
    let Some(mut queue) = inner.queues.remove(&args.queue_id) else { return Err(Errno::EFAULT) };
    if let Some(handle) = ring {
        inner.replace_ring(device, &mut queue.buffers, handle);
    }
    queue.ring = args.ring_base_address;
    queue.ring_bytes = bytes;
    queue.percentage = args.queue_percentage & 0xff;
    let ring = Ring { va: queue.ring, bytes };
    queue.processor.configure(queue.is_active().then_some(ring));
    inner.queues.insert(args.queue_id, queue);
    Ok(())
}

/// DESTROY_QUEUE. Waves that run are dropped.
pub fn destroy(call: &Call<'_>, args: &mut DestroyQueueArgs) -> Result<(), Errno> {
    let mut inner = call.process.lock();
    let queue = inner.queues.remove(&args.queue_id).ok_or(Errno::EINVAL)?;
    // Its id is not free before its thread is gone; the thread never takes the process mutex.
    queue.processor.stop();
    inner.release_queue_buffers(queue.device, &queue.buffers);
    let data = &mut inner.devices[queue.device];
    if let Some(doorbells) = &mut data.doorbells {
        doorbells.release(queue.doorbell);
    }
    data.device.remove_queue();
    Ok(())
}

/// Bits of a CU mask that are looked at.
const MAX_CU_BITS: u32 = 1024;

/// SET_CU_MASK. On GFX10 and later the two compute units of a work-group processor must be equal.
pub fn cu_mask(call: &Call<'_>, args: &mut SetCuMaskArgs) -> Result<(), Errno> {
    if args.num_cu_mask % 32 != 0 || args.num_cu_mask == 0 {
        return Err(Errno::EINVAL);
    }
    let words = args.num_cu_mask.min(MAX_CU_BITS) / 32;
    let mask: Vec<u32> = call.kernel.user.get_array(args.cu_mask_ptr, words)?;
    let mut inner = call.process.lock();
    let device = inner.queues.get(&args.queue_id).ok_or(Errno::EFAULT)?.device;
    let paired = inner.devices[device].device.version() >= 100_000;
    if paired && mask.iter().any(|word| (word ^ word >> 1) & 0x5555_5555 != 0) {
        return Err(Errno::EINVAL);
    }
    if let Some(queue) = inner.queues.get_mut(&args.queue_id) {
        queue.cu_mask = mask;
    }
    Ok(())
}

/// GET_QUEUE_WAVE_STATE of a paused queue. A paused queue here has no waves in its save area: it stops between packets.
pub fn wave_state(call: &Call<'_>, args: &mut GetQueueWaveStateArgs) -> Result<(), Errno> {
    let inner = call.process.lock();
    let queue = inner.queues.get(&args.queue_id).ok_or(Errno::EFAULT)?;
    if queue.is_active() && !inner.devices[queue.device].is_evicted() {
        return Err(Errno::EINVAL);
    }
    let control_stack = inner.devices[queue.device].device.cwsr.control_stack;
    // control_stack_offset, control_stack_size, wave_state_offset, wave_state_size: the stack grows down and the waves up
    // from the same offset.
    let header = [control_stack, 0, control_stack, 0];
    call.kernel.user.put(args.ctl_stack_address, &header)?;
    args.ctl_stack_used_size = 0;
    args.save_area_used_size = 0;
    Ok(())
}

/// ALLOC_QUEUE_GWS: `num_gws` not 0 takes global wave sync, 0 gives it back; the count does not matter.
pub fn gws(call: &Call<'_>, args: &mut AllocQueueGwsArgs) -> Result<(), Errno> {
    let mut inner = call.process.lock();
    let queue = inner.queues.get(&args.queue_id).ok_or(Errno::EINVAL)?;
    let (device, owns) = (queue.device, queue.gws);
    if inner.devices[device].device.profile.gws == 0 {
        return Err(Errno::ENODEV);
    }
    let take = args.num_gws != 0;
    let other = inner.queues.iter().any(|(id, queue)| *id != args.queue_id && queue.device == device && queue.gws);
    if take && other {
        return Err(Errno::EBUSY);
    }
    if !take && !owns {
        return Err(Errno::EINVAL);
    }
    if let Some(queue) = inner.queues.get_mut(&args.queue_id) {
        queue.gws = take;
    }
    args.first_gws = 0;
    Ok(())
}

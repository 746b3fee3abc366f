//! UPDATE_QUEUE, DESTROY_QUEUE, SET_CU_MASK, GET_QUEUE_WAVE_STATE, ALLOC_QUEUE_GWS.

use super::create::{CommonFacts, common};
use super::mask::units;
use crate::cp::Ring;
use crate::kernel::call::Call;
use crate::kernel::process::Inner;
use crate::kernel::rule::{check, rules};
use kfd::Errno;
use kfd::uapi::{AllocQueueGwsArgs, DestroyQueueArgs, GetQueueWaveStateArgs, SetCuMaskArgs, UpdateQueueArgs};
use std::sync::atomic::Ordering;

/// What UPDATE_QUEUE looks at besides its arguments.
pub struct UpdateFacts {
    args: UpdateQueueArgs,
    known: bool,
    /// A ring buffer, or none is looked for.
    ring: bool,
}

/// What is looked at when a queue's change goes to the hardware.
pub struct HardwareFacts {
    gpu_id: u32,
    /// A reset lost queues of the process on the GPU.
    reset: bool,
}

/// What SET_CU_MASK looks at of the mask.
pub struct MaskFacts {
    queue_id: u32,
    known: bool,
    /// Compute units come in pairs that must be equal.
    paired: bool,
    mask: Vec<u32>,
}

/// What GET_QUEUE_WAVE_STATE looks at.
pub struct StateFacts {
    queue_id: u32,
    known: bool,
    active: bool,
}

/// What ALLOC_QUEUE_GWS looks at.
pub struct GwsFacts {
    args: AllocQueueGwsArgs,
    known: bool,
    device_has: bool,
    /// A queue of the process on the GPU has it.
    taken: bool,
    owned: bool,
}

rules! {
    /// UPDATE_QUEUE, after the arguments.
    UPDATE for f: UpdateFacts {
        EFAULT "queue_id is a queue of the process": f.args.queue_id => f.known;
        EFAULT "a GPU mapping starts at ring_base_address, of exactly ring_size if that is a page or more":
            f.args.ring_base_address => f.ring;
    }

    /// UPDATE_QUEUE, SET_CU_MASK and ALLOC_QUEUE_GWS: what has changed by then goes to the hardware.
    HARDWARE for f: HardwareFacts {
        EACCES "no reset has lost queues of the process on the GPU": f.gpu_id => !f.reset;
    }

    /// DESTROY_QUEUE: whether there is such a queue.
    DESTROY for f: StateFacts {
        EINVAL "queue_id is a queue of the process": f.queue_id => f.known;
    }

    /// SET_CU_MASK: arguments.
    CU_MASK for a: SetCuMaskArgs {
        EINVAL "num_cu_mask is a multiple of 32": a.num_cu_mask => a.num_cu_mask.is_multiple_of(32);
        EINVAL "num_cu_mask is not 0": a.num_cu_mask => a.num_cu_mask != 0;
    }

    /// SET_CU_MASK: queue and mask.
    CU_MASK_BITS for f: MaskFacts {
        EFAULT "queue_id is a queue of the process": f.queue_id => f.known;
        EINVAL "both compute units of a work-group processor are on or off, on GFX10 and later": f.mask[0] =>
            !f.paired || f.mask.iter().all(|word| (word ^ word >> 1) & 0x5555_5555 == 0);
    }

    /// GET_QUEUE_WAVE_STATE.
    WAVE_STATE for f: StateFacts {
        EFAULT "queue_id is a queue of the process": f.queue_id => f.known;
        EINVAL "the queue is paused": f.queue_id => !f.active;
    }

    /// ALLOC_QUEUE_GWS.
    GWS for f: GwsFacts {
        EINVAL "queue_id is a queue of the process": f.args.queue_id => f.known;
        ENODEV "the GPU has global wave sync": f.args.queue_id => f.device_has;
        EBUSY "no queue of the process has it, this one included, with num_gws not 0": f.args.num_gws =>
            f.args.num_gws == 0 || !f.taken;
        EINVAL "the queue has it, with num_gws 0": f.args.queue_id => f.args.num_gws != 0 || f.owned;
    }
}

/// UPDATE_QUEUE. Ring address 0 or percentage 0 pauses the queue.
pub fn update(call: &Call<'_>, args: &mut UpdateQueueArgs) -> Result<(), Errno> {
    const NAME: &str = "UPDATE_QUEUE";
    let facts = CommonFacts {
        percentage: args.queue_percentage,
        priority: args.queue_priority,
        ring: args.ring_base_address,
        ring_bytes: args.ring_size,
    };
    let bytes = common(call, NAME, facts)?;
    let mut inner = call.process.lock();
    let found = inner.queues.get(&args.queue_id).map(|queue| queue.device);
    let looked_for = args.ring_base_address != 0 && call.kernel.options.rules.checks_buffers();
    let ring = found.filter(|_| looked_for).and_then(|device| inner.ring_buffer(device, args.ring_base_address, bytes));
    let facts = UpdateFacts { args: *args, known: found.is_some(), ring: !looked_for || ring.is_some() };
    check(call.kernel, NAME, UPDATE, &facts)?;
    let device = found.ok_or(Errno::EFAULT)?;
    let Some(mut queue) = inner.queues.remove(&args.queue_id) else { return Err(Errno::EFAULT) };
    if let Some(handle) = ring {
        inner.replace_ring(device, &mut queue.buffers, handle);
    }
    queue.ring = args.ring_base_address;
    queue.ring_bytes = bytes;
    queue.percentage = args.queue_percentage & 0xff;
    let ring = Ring { va: queue.ring, bytes };
    queue.processor.configure(queue.is_active().then_some(ring), args.queue_priority);
    inner.queues.insert(args.queue_id, queue);
    hardware(call, NAME, &inner, device)
}

fn hardware(call: &Call<'_>, name: &str, inner: &Inner, device: usize) -> Result<(), Errno> {
    let data = &inner.devices[device];
    let facts = HardwareFacts { gpu_id: data.device.gpu_id, reset: data.reset.load(Ordering::Acquire) };
    check(call.kernel, name, HARDWARE, &facts)
}

/// DESTROY_QUEUE. Waves that run are dropped.
pub fn destroy(call: &Call<'_>, args: &mut DestroyQueueArgs) -> Result<(), Errno> {
    let mut inner = call.process.lock();
    let removed = inner.queues.remove(&args.queue_id);
    let facts = StateFacts { queue_id: args.queue_id, known: removed.is_some(), active: true };
    check(call.kernel, "DESTROY_QUEUE", DESTROY, &facts)?;
    let Some(queue) = removed else { return Err(Errno::EINVAL) };
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
    const NAME: &str = "SET_CU_MASK";
    check(call.kernel, NAME, CU_MASK, args)?;
    let words = args.num_cu_mask.min(MAX_CU_BITS) / 32;
    let mask: Vec<u32> = call.kernel.user.get_array(args.cu_mask_ptr, words)?;
    let inner = call.process.lock();
    let device = inner.queues.get(&args.queue_id).map(|queue| &inner.devices[queue.device].device);
    let paired = device.is_some_and(|device| device.version() >= 100_000);
    let facts = MaskFacts { queue_id: args.queue_id, known: device.is_some(), paired, mask };
    check(call.kernel, NAME, CU_MASK_BITS, &facts)?;
    let mask = facts.mask;
    let Some(queue) = inner.queues.get(&args.queue_id) else { return Err(Errno::EFAULT) };
    let device = queue.device;
    queue.processor.set_units(units(&inner.devices[device].device.profile, &mask));
    hardware(call, NAME, &inner, device)
}

/// GET_QUEUE_WAVE_STATE of a paused queue: how much of its save area its waves take, per XCC. What a wave's registers take
/// is the most it can be; the area itself is not written, since waves here stay where they are.
pub fn wave_state(call: &Call<'_>, args: &mut GetQueueWaveStateArgs) -> Result<(), Errno> {
    let inner = call.process.lock();
    let queue = inner.queues.get(&args.queue_id);
    let active = queue.is_some_and(|queue| queue.is_active() && !inner.devices[queue.device].is_evicted());
    let facts = StateFacts { queue_id: args.queue_id, known: queue.is_some(), active };
    check(call.kernel, "GET_QUEUE_WAVE_STATE", WAVE_STATE, &facts)?;
    let queue = queue.ok_or(Errno::EFAULT)?;
    let device = &inner.devices[queue.device].device;
    let xccs = device.profile.xccs;
    for xcc in 0..xccs {
        // Waves are dealt out to XCCs in turn.
        let waves = queue.processor.saved_waves().saturating_add(xccs - 1 - xcc) / xccs;
        let used = device.cwsr.used(&device.profile, waves);
        // control_stack_offset, control_stack_size, wave_state_offset, wave_state_size: the stack grows down and the waves
        // up from the same offset.
        let start = device.cwsr.control_stack;
        let header = [start - used.control_stack, used.control_stack, start + used.waves, used.waves];
        let slice = u64::from(queue.save_bytes) * u64::from(xcc);
        let area = args.ctl_stack_address.wrapping_add(slice);
        call.kernel.user.put(area, &header)?;
        if device.version() < 100_000 {
            // GFX9 keeps the control stack itself, and it is copied out: here there is nothing in it.
            call.kernel.user.write(area.wrapping_add(header[0].into()), &vec![0; used.control_stack as usize])?;
        }
        if xcc == 0 {
            (args.ctl_stack_used_size, args.save_area_used_size) = (used.control_stack, used.waves);
        }
    }
    Ok(())
}

/// ALLOC_QUEUE_GWS: `num_gws` not 0 takes global wave sync, 0 gives it back; the count does not matter.
pub fn gws(call: &Call<'_>, args: &mut AllocQueueGwsArgs) -> Result<(), Errno> {
    const NAME: &str = "ALLOC_QUEUE_GWS";
    let mut inner = call.process.lock();
    let queue = inner.queues.get(&args.queue_id);
    let device = queue.map(|queue| queue.device);
    let facts = GwsFacts {
        args: *args,
        known: queue.is_some(),
        device_has: device.is_some_and(|device| inner.devices[device].device.profile.gws != 0),
        taken: inner.queues.values().any(|queue| Some(queue.device) == device && queue.gws),
        owned: queue.is_some_and(|queue| queue.gws),
    };
    let (known, device_has) = (facts.known, facts.device_has);
    let checked = check(call.kernel, NAME, GWS, &facts);
    if known && device_has {
        // Written once the GPU is known to have it, also when the queue does not get it.
        args.first_gws = 0;
    }
    checked?;
    let (Some(queue), Some(device)) = (inner.queues.get_mut(&args.queue_id), device) else { return Err(Errno::EINVAL) };
    queue.gws = args.num_gws != 0;
    hardware(call, NAME, &inner, device)
}

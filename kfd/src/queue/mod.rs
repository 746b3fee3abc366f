//! AQL queues: the ring, the `amd_queue_t` around it, the buffers the kernel wants beside it, CREATE_QUEUE.

mod check;
mod report;

pub use check::{Check, CreateQueueError, create_queue_rule};

use crate::buffer::{Buffer, Kind};
use crate::cwsr::ContextSave;
use crate::device::Device;
use crate::doorbell::Doorbell;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::scratch::ScratchRegisters;
use crate::types::{GfxTarget, GpuVa, PAGE_SIZE, QueueId};
use crate::uapi::{self, CreateQueueArgs, Pod};
use aql::queue as field;
use aql::queue::{Caps, QueueProperties, QueueType};
use aql::signal::{self, AmdSignal, SignalKind};
use check::{Buffers, Mapping};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

/// Packets of the smallest ring that is whole pages.
pub const MIN_PACKETS: u32 = 64;
/// Packets of the largest ring: `ring_size` is 2 GiB then.
pub const MAX_PACKETS: u32 = 1 << 25;
/// Bytes of the end-of-pipe buffer.
const EOP_SIZE: u64 = 4096;
/// Where the inactive signal lies in the page of the `amd_queue_t`, behind the 2304 bytes of its version 2.
const INACTIVE_SIGNAL: u64 = 0xc00;
/// Where the kernel ORs the exceptions of the queue into, in the same page.
const EXCEPTIONS: u64 = 0xc80;

/// How a queue shall be.
#[derive(Clone, Copy, Debug)]
pub struct QueueConfig<'e> {
    /// Packets in the ring, a power of two of [`MIN_PACKETS`] to [`MAX_PACKETS`].
    pub packets: u32,
    /// 0 to 15; 7 is normal.
    pub priority: u32,
    /// Who publishes packets.
    pub queue_type: QueueType,
    /// The packet processor writes `start_ts` and `end_ts` of completion signals.
    pub profiling: bool,
    /// Signal event that is set when the packet processor stops the queue.
    pub error_event: Option<&'e Event>,
    /// The kernel reports exceptions of the queue in [`Queue::exceptions`]; needs [`crate::Kfd::enable_runtime`] first.
    pub report_exceptions: bool,
}

impl Default for QueueConfig<'_> {
    fn default() -> Self {
        QueueConfig {
            packets: 1024,
            priority: 7,
            queue_type: QueueType::Single,
            profiling: false,
            error_event: None,
            report_exceptions: false,
        }
    }
}

/// An AQL queue. Dropping it destroys the queue, then frees its buffers.
pub struct Queue {
    id: QueueId,
    device: Arc<Device>,
    doorbell: Doorbell,
    ring: aql::Ring,
    context_save: ContextSave,
    /// Buffers the kernel and the packet processor use; the kernel does not let them go before the queue.
    buffers: QueueBuffers,
}

#[derive(Debug)]
struct QueueBuffers {
    ring: Buffer,
    /// One page: `amd_queue_t`, the inactive signal, the exception word.
    queue: Buffer,
    eop: Option<Buffer>,
    context: Buffer,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").field("id", &self.id).field("buffers", &self.buffers).finish_non_exhaustive()
    }
}

impl Queue {
    /// Makes a queue: four buffers (three on gfx940 to gfx942), each a mapping of its own and of exactly the size the
    /// kernel checks, then CREATE_QUEUE, then the mapping of the doorbells if this is the device's first queue.
    ///
    /// [`Error::CreateQueue`] carries a table of every rule with the value it was given.
    pub fn create(device: &Arc<Device>, config: &QueueConfig<'_>) -> Result<Queue> {
        let node = device.node();
        if !config.packets.is_power_of_two() || !(MIN_PACKETS..=MAX_PACKETS).contains(&config.packets) {
            return Err(Error::Size {
                what: "an AQL ring",
                size: u64::from(config.packets) * aql::PACKET_BYTES as u64,
                rule: "a ring has a power of two of packets of 64 bytes, 64 to 2^25 of them",
            });
        }
        let ring_size = config.packets * aql::PACKET_BYTES as u32;
        let context_save = ContextSave::of(node, device.target())?;
        let eop_size = eop_size(device.target());
        let buffers = QueueBuffers {
            ring: Buffer::new(device, Kind::Control, ring_size.into(), "ring")?,
            queue: Buffer::new(device, Kind::Control, PAGE_SIZE, "amd_queue_t")?,
            eop: match eop_size {
                0 => None,
                size => Some(Buffer::new(device, Kind::Vram, size, "end-of-pipe buffer")?),
            },
            context: Buffer::new(device, Kind::System, context_save.total, "context save area")?,
        };
        let mut ring = buffers.aql_ring(config.packets)?;
        ring.clear();
        buffers.write_amd_queue(device, config)?;
        buffers.write_headers(&context_save, config)?;

        let at = |offset: usize| buffers.queue.va().0 + offset as u64;
        let mut args = CreateQueueArgs {
            ring_base_address: buffers.ring.va().0,
            write_pointer_address: at(field::WRITE_DISPATCH_ID),
            read_pointer_address: at(field::READ_DISPATCH_ID),
            ring_size,
            gpu_id: device.gpu_id().0,
            queue_type: uapi::QUEUE_TYPE_COMPUTE_AQL,
            queue_percentage: uapi::MAX_QUEUE_PERCENTAGE,
            queue_priority: config.priority,
            eop_buffer_address: buffers.eop.as_ref().map_or(0, |eop| eop.va().0),
            eop_buffer_size: eop_size,
            ctx_save_restore_address: buffers.context.va().0,
            ctx_save_restore_size: context_save.slice,
            ctl_stack_size: context_save.control_stack,
            ..Default::default()
        };
        if let Err(errno) = device.kfd().ioctl(&mut args) {
            let checks = check::checks(&args, &buffers.for_checks(&context_save));
            return Err(Box::new(CreateQueueError { errno, args, checks }).into());
        }
        let id = QueueId(args.queue_id);
        match Doorbell::new(device, id, args.doorbell_offset) {
            Ok(doorbell) => Ok(Queue { id, device: device.clone(), doorbell, ring, context_save, buffers }),
            Err(error) => {
                destroy(device, id);
                Err(error)
            }
        }
    }

    /// Id within the process.
    pub fn id(&self) -> QueueId {
        self.id
    }

    /// The device.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Sizes of the context save area.
    pub fn context_save(&self) -> &ContextSave {
        &self.context_save
    }

    /// The ring, for several producers: [`aql::Ring::reserve`]. The doorbell is theirs to ring.
    pub fn ring(&self) -> &aql::Ring {
        &self.ring
    }

    /// Publishes packets as the only producer: bodies, headers, write index. Returns the index of the last, for
    /// [`Queue::ring_doorbell`]. `label` names them in the trace.
    ///
    /// While the ring is full `wait` is called; it ends the wait by returning false, with [`aql::RingError::Full`].
    pub fn publish(
        &mut self,
        packets: &[[u8; 64]],
        label: &str,
        mut wait: impl FnMut(aql::Full) -> bool,
    ) -> Result<u64> {
        let write_index = self.ring.write_index();
        if let Some(wanted) = u32::try_from(packets.len()).ok().filter(|wanted| *wanted <= self.ring.packets()) {
            self.wait_for_space(write_index, wanted, &mut wait)?;
            // Told before the stores, so that the trace has the packets before what the packet processor does with them.
            let (tracer, queue_id) = (self.device.kfd().system().tracer(), self.id.0);
            for (index, packet) in (write_index..).zip(packets) {
                tracer.emit(|| trace::Event::Reserve { queue_id, index });
                let label = || label.to_string();
                tracer.emit(|| trace::Event::Publish { queue_id, index, packet: *packet, label: label() });
            }
        }
        Ok(self.ring.publish(packets, wait)?)
    }

    /// Waits until `wanted` slots are free. Indices that cannot be are left to the ring to refuse.
    fn wait_for_space(&self, write_index: u64, wanted: u32, wait: &mut impl FnMut(aql::Full) -> bool) -> Result<()> {
        let packets = self.ring.packets();
        loop {
            let read_index = self.ring.read_index();
            let used = write_index.wrapping_sub(read_index);
            if used > packets.into() || used + u64::from(wanted) <= packets.into() {
                return Ok(());
            }
            let full = aql::Full { write_index, read_index, wanted, packets };
            if !wait(full) {
                return Err(aql::RingError::Full(full).into());
            }
        }
    }

    /// Stores the index of the last packet published to the doorbell.
    pub fn ring_doorbell(&self, last_index: u64) {
        self.doorbell.ring(last_index);
    }

    /// The doorbell.
    pub fn doorbell(&self) -> &Doorbell {
        &self.doorbell
    }

    /// Packets ever reserved: `write_dispatch_id`.
    pub fn write_index(&self) -> u64 {
        self.ring.write_index()
    }

    /// Packets the packet processor has taken: `read_dispatch_id`. It says nothing of their completion.
    pub fn read_index(&self) -> u64 {
        self.ring.read_index()
    }

    /// The 64 bytes in the slot of a packet index, as they are now. The packet processor overwrites the header of a packet
    /// it has taken with INVALID.
    pub fn slot(&self, index: u64) -> Result<[u8; 64]> {
        let mut packet = [0; 64];
        self.buffers.ring.read_bytes(index % u64::from(self.ring.packets()) * 64, &mut packet)?;
        Ok(packet)
    }

    /// Address of the `amd_queue_t`: what kernels get as their queue pointer.
    pub fn amd_queue_va(&self) -> GpuVa {
        self.buffers.queue.va()
    }

    /// Address of the ring.
    pub fn ring_va(&self) -> GpuVa {
        self.buffers.ring.va()
    }

    /// Value of the inactive signal: bits of [`aql::status`] when the packet processor has stopped the queue, else 0.
    pub fn inactive_value(&self) -> Result<i64> {
        Ok(self.inactive_signal()?.load(Ordering::Acquire))
    }

    /// Stores 0 to the inactive signal: the packet processor goes on with the packet it stopped at.
    pub fn clear_inactive(&self) -> Result<()> {
        self.inactive_signal()?.store(0, Ordering::Release);
        Ok(())
    }

    /// The exceptions the kernel reported, as [`uapi::ec_mask`] bits.
    pub fn exceptions(&self) -> Result<u64> {
        Ok(self.buffers.queue.atomic_u64(EXCEPTIONS)?.load(Ordering::Acquire))
    }

    /// Writes the scratch fields of the `amd_queue_t`. `once` makes the packet processor ask again after one dispatch.
    ///
    /// It takes them up when it connects the queue or goes on after a request for scratch, so call this before the first
    /// packet or while the queue is stopped by [`aql::status`] bit 0x1 or 0x400.
    pub fn set_scratch(&self, scratch: &ScratchRegisters, once: bool) -> Result<()> {
        let word = |offset: usize| self.buffers.queue.atomic_u32(offset as u64);
        for (i, value) in scratch.resource_descriptor.iter().enumerate() {
            word(field::SCRATCH_RESOURCE_DESCRIPTOR + 4 * i)?.store(*value, Ordering::Relaxed);
        }
        let location: &AtomicU64 = self.buffers.queue.atomic_u64(field::SCRATCH_BACKING_MEMORY_LOCATION as u64)?;
        location.store(scratch.location, Ordering::Relaxed);
        word(field::COMPUTE_TMPRING_SIZE)?.store(scratch.tmpring_size, Ordering::Relaxed);
        let properties: &AtomicU32 = word(field::QUEUE_PROPERTIES)?;
        let value = QueueProperties::from_bits(properties.load(Ordering::Relaxed)).with_use_scratch_once(once);
        properties.store(value.into_bits(), Ordering::Relaxed);
        word(field::SCRATCH_WAVE64_LANE_BYTE_SIZE)?.store(scratch.wave64_lane_bytes, Ordering::Release);
        Ok(())
    }

    fn inactive_signal(&self) -> Result<&AtomicI64> {
        let value = self.buffers.queue.atomic_u64(INACTIVE_SIGNAL + signal::VALUE as u64)?;
        // SAFETY: the same size, alignment and lifetime; only the sign is read otherwise.
        Ok(unsafe { AtomicI64::from_ptr(value.as_ptr().cast()) })
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        destroy(&self.device, self.id);
    }
}

/// DESTROY_QUEUE. A failure is in the trace; after ETIME and EIO the queue is gone all the same.
fn destroy(device: &Device, id: QueueId) {
    let _ = device.kfd().ioctl(&mut uapi::DestroyQueueArgs { queue_id: id.0, pad: 0 });
}

/// Bytes of the end-of-pipe buffer: gfx940 to gfx942 take none for AQL queues.
fn eop_size(target: GfxTarget) -> u64 {
    if (90400..=90499).contains(&target.version()) { 0 } else { EOP_SIZE }
}

impl QueueBuffers {
    fn aql_ring(&self, packets: u32) -> Result<aql::Ring> {
        let slots = self.ring.host_ptr(0, self.ring.size())?;
        let index = |offset: usize| self.queue.host_ptr(offset as u64, 8);
        let (write, read) = (index(field::WRITE_DISPATCH_ID)?, index(field::READ_DISPATCH_ID)?);
        // SAFETY: the ring buffer has `packets` slots, both indices lie in the page of the `amd_queue_t`, and the buffers
        // live as long as the ring: both are members of one `Queue`. This process reaches them by atomics only.
        Ok(unsafe { aql::Ring::new(slots.as_ptr(), write.as_ptr().cast(), read.as_ptr().cast(), packets)? })
    }

    /// The `amd_queue_t` and what else is in its page. All of it is there before CREATE_QUEUE, for the packet processor
    /// may read it from then on.
    fn write_amd_queue(&self, device: &Device, config: &QueueConfig<'_>) -> Result<()> {
        let node = device.node();
        let waves = node.positive("max_waves_per_simd", node.properties.max_waves_per_simd)?;
        let simds = node.positive("simd_per_cu", node.properties.simd_per_cu)?;
        let waves_per_cu = waves.checked_mul(simds).ok_or(Error::Property {
            node: node.index,
            key: "max_waves_per_simd",
            value: Some(waves.into()),
            rule: "times simd_per_cu it fits 32 bits",
        })?;
        let inactive = self.queue.va().0 + INACTIVE_SIGNAL;
        let queue = aql::AmdQueue {
            queue_type: config.queue_type,
            base_address: self.ring.va().0,
            size: config.packets,
            caps: Caps::new(),
            group_segment_aperture_base_hi: (device.apertures().lds_base >> 32) as u32,
            private_segment_aperture_base_hi: (device.apertures().scratch_base >> 32) as u32,
            max_cu_id: node.compute_units()?.saturating_sub(1),
            max_wave_id: waves_per_cu - 1,
            queue_properties: QueueProperties::new().with_is_ptr64(true).with_enable_profiling(config.profiling),
            queue_inactive_signal: inactive,
            ..Default::default()
        };
        self.queue.write_bytes(0, &queue.to_v1_bytes())?;
        let signal = AmdSignal {
            kind: SignalKind::User,
            event_mailbox_ptr: config.error_event.and_then(Event::mailbox).map_or(0, |mailbox| mailbox.0),
            event_id: config.error_event.map_or(0, |event| event.id().0),
            ..Default::default()
        };
        self.queue.write_bytes(INACTIVE_SIGNAL, &signal.to_bytes())
    }

    fn write_headers(&self, save: &ContextSave, config: &QueueConfig<'_>) -> Result<()> {
        let (address, event) = match (config.report_exceptions, config.error_event) {
            (false, _) => (0, 0),
            (true, event) => (self.queue.va().0 + EXCEPTIONS, event.map_or(0, |event| event.id().0)),
        };
        for (offset, header) in save.headers(address, event) {
            self.context.write_bytes(offset, header.as_bytes())?;
        }
        Ok(())
    }

    fn for_checks<'a>(&self, save: &'a ContextSave) -> Buffers<'a> {
        let mapping = |buffer: &Buffer| Mapping { va: buffer.va(), size: buffer.size() };
        Buffers {
            ring: mapping(&self.ring),
            queue: mapping(&self.queue),
            eop: self.eop.as_ref().map(mapping),
            context: mapping(&self.context),
            save,
        }
    }
}

#[cfg(test)]
mod tests;

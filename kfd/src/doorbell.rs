//! Doorbells: the store that makes the packet processor look at a queue.

use crate::device::Device;
use crate::error::Result;
use crate::types::QueueId;
use crate::uapi::DOORBELL_OFFSET_IN_SLICE_MASK;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use trace::Event;

/// The doorbell of one queue, 64 bits wide (gfx9 and later).
#[derive(Debug)]
pub struct Doorbell {
    device: Arc<Device>,
    queue: QueueId,
    register: *mut u64,
    /// What was stored last; all ones before the first store. The register itself is not for reading.
    rung: AtomicU64,
}

// SAFETY: `register` points into the device's doorbell mapping, which lives as long as `device`; a doorbell may be
// stored to from any thread, each store being one 64-bit access.
unsafe impl Send for Doorbell {}
// SAFETY: as above.
unsafe impl Sync for Doorbell {}

impl Doorbell {
    /// The doorbell at `doorbell_offset` of CREATE_QUEUE: the offset for mmap, and in its low 13 bits the byte offset of
    /// the queue's own doorbell, for which 0 is as good as any.
    pub(crate) fn new(device: &Arc<Device>, queue: QueueId, doorbell_offset: u64) -> Result<Doorbell> {
        let base = device.doorbells(doorbell_offset & !DOORBELL_OFFSET_IN_SLICE_MASK)?;
        // A doorbell of 8 bytes lies at a multiple of them; the kernel hands out no other offset.
        let offset = doorbell_offset & DOORBELL_OFFSET_IN_SLICE_MASK & !7;
        Ok(Doorbell {
            device: device.clone(),
            queue,
            register: (base + offset as usize) as *mut u64,
            rung: AtomicU64::new(u64::MAX),
        })
    }

    /// Stores the index of the last packet published, which is one less than the write index and is never masked.
    ///
    /// Everything this thread stored before is visible to the device first.
    pub fn ring(&self, last_index: u64) {
        let system = self.device.kfd().system();
        // Told before the store, so that the trace has it before what the device then does.
        system.tracer().emit(|| Event::Doorbell { queue_id: self.queue.0, value: last_index });
        self.rung.store(last_index, Ordering::Relaxed);
        store_fence();
        // SAFETY: an aligned 64-bit register inside the doorbell mapping, alive as long as `self.device`.
        unsafe { self.register.write_volatile(last_index) };
        system.doorbell_hint();
    }

    /// What was stored last through this.
    pub fn last_rung(&self) -> Option<u64> {
        Some(self.rung.load(Ordering::Relaxed)).filter(|index| *index != u64::MAX)
    }
}

/// Orders all stores before the ones that follow, those to write-combined memory such as the BAR included.
fn store_fence() {
    fence(Ordering::Release);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
    #[cfg(not(target_arch = "x86_64"))]
    fence(Ordering::SeqCst);
}

//! Doorbells: 1024 slots of 8 bytes, two pages for each process and GPU (`kfd_doorbell.c`, GFX9 and later).

use super::backing::{NodeMemory, Pages};
use crate::isa::{Family, Target};
use kfd::Errno;
use kfd::uapi::{MmapOffset, MmapType};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Slots of a process on a GPU.
pub const SLOTS: usize = 1024;
/// Bytes of a slot.
pub const SLOT_BYTES: usize = 8;
/// Bytes of the process' slice.
pub const SLICE_BYTES: u64 = (SLOTS * SLOT_BYTES) as u64;

/// Content of a slot that nobody has stored to. Doorbells hold packet indices, so the first store, 0, is another.
const NOT_RUNG: u64 = u64::MAX;

/// Distance from a reserved slot to its mirror, reserved as well.
const MIRROR: usize = 512;

/// Slots that are not for compute queues: SDMA, interrupt handler, video.
fn reserved(target: Target) -> RangeInclusive<usize> {
    match target {
        Target::Gfx900 => 0xf0..=0xff,
        Target::Gfx906 | Target::Gfx90a => 0x100..=0x18f,
        Target::Gfx942 => 0x100..=0x1e8,
        _ => match target.family() {
            Family::Gfx9 => 0x100..=0x1e8,
            Family::Gfx10 | Family::Gfx11 | Family::Gfx12 => 0x100..=0x190,
        },
    }
}

/// The slice of one process on one GPU.
pub struct Doorbells {
    pages: Arc<Pages>,
    taken: [bool; SLOTS],
}

impl Doorbells {
    /// A slice with the target's reserved slots taken.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn new(target: Target, memory: &Arc<NodeMemory>) -> Result<Doorbells, Errno> {
        let mut taken = [false; SLOTS];
        for slot in reserved(target) {
            taken[slot] = true;
            taken[slot + MIRROR] = true;
        }
        Ok(Doorbells { pages: memory.allocate(SLICE_BYTES)?, taken })
    }

    /// The memory.
    pub fn pages(&self) -> &Arc<Pages> {
        &self.pages
    }

    /// Whether a slot is free.
    pub fn has_free(&self) -> bool {
        self.taken.contains(&false)
    }

    /// Takes the lowest free slot for a compute queue. What a former owner stored stays there.
    ///
    /// # Errors
    /// EBUSY: none is free.
    pub fn take(&mut self) -> Result<usize, Errno> {
        let slot = self.taken.iter().position(|taken| !taken).ok_or(Errno::EBUSY)?;
        self.taken[slot] = true;
        Ok(slot)
    }

    /// Frees a slot.
    pub fn release(&mut self, slot: usize) {
        self.taken[slot] = false;
    }
}

/// The doorbell of one queue.
pub struct Doorbell {
    pages: Arc<Pages>,
    slot: usize,
}

impl Doorbell {
    /// A slot of a slice.
    pub fn new(doorbells: &Doorbells, slot: usize) -> Doorbell {
        debug_assert!(slot < SLOTS);
        Doorbell { pages: doorbells.pages.clone(), slot }
    }

    /// Forgets what was stored before, by an earlier owner of the slot as well.
    pub fn arm(&self) {
        self.value().store(NOT_RUNG, Ordering::SeqCst);
    }

    /// What was stored last since it was armed or taken. Every store counts, also of a value that was stored before.
    pub fn take(&self) -> Option<u64> {
        let value = self.value();
        if value.load(Ordering::Acquire) == NOT_RUNG {
            return None;
        }
        Some(value.swap(NOT_RUNG, Ordering::AcqRel))
    }

    /// The memory that stores to the doorbell go to.
    fn value(&self) -> &AtomicU64 {
        // SAFETY: the slice holds SLOTS aligned 8-byte slots and lives as long as `pages`; client and emulator share
        // it.
        unsafe { AtomicU64::from_ptr(self.pages.host().cast::<u64>().add(self.slot)) }
    }
}

/// What CREATE_QUEUE returns: the slice's mmap offset and the slot's byte offset inside it.
pub fn mmap_offset(gpu_id: u32, slot: usize) -> u64 {
    let offset = (slot * SLOT_BYTES) as u64;
    MmapOffset { kind: MmapType::Doorbell, gpu_id: gpu_id as u16, offset }.encode()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doorbells(target: Target) -> Doorbells {
        Doorbells::new(target, &Arc::new(NodeMemory::new(c"test", 0).unwrap())).unwrap()
    }

    #[test]
    fn lowest_free_slot_outside_the_reserved_ones() {
        let mut all = doorbells(Target::Gfx900);
        assert_eq!((all.take(), all.take()), (Ok(0), Ok(1)));
        all.release(0);
        assert_eq!(all.take(), Ok(0));
        let mut rest = Vec::new();
        while let Ok(slot) = all.take() {
            rest.push(slot);
        }
        // 16 slots and their mirrors are reserved.
        assert_eq!(rest.len(), 1024 - 2 - 32);
        assert!(rest.iter().all(|slot| !(0xf0..=0xff).contains(slot) && !(0x2f0..=0x2ff).contains(slot)));
        assert_eq!(all.take(), Err(Errno::EBUSY));
    }

    #[test]
    fn window_ends() {
        for (target, first, last) in
            [(Target::Gfx90a, 0x100, 0x18f), (Target::Gfx942, 0x100, 0x1e8), (Target::Gfx1100, 0x100, 0x190)]
        {
            let all = doorbells(target);
            assert!(!all.taken[first - 1] && all.taken[first] && all.taken[last] && !all.taken[last + 1], "{target}");
            assert!(all.taken[first + 512] && all.taken[last + 512] && !all.taken[last + 513], "{target}");
        }
    }

    #[test]
    fn offsets() {
        assert_eq!(mmap_offset(56387, 0), 0xf710_c000_0000_0000);
        assert_eq!(mmap_offset(56387, 3), 0xf710_c000_0000_0018);
    }
}

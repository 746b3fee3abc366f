//! Which ranges of the GPUs' address space are and were buffers, for reports on stray addresses.

use crate::types::{GpuId, GpuVa};
use crate::uapi::ALLOC_MEM_FLAGS_WRITABLE;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Freed buffers that are remembered.
const FREED: usize = 256;

/// What is known of a range that is a buffer, or was one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Addresses, whole pages.
    pub range: Range<u64>,
    /// Bytes that were asked for; the rest of the last page is nobody's.
    pub bytes: u64,
    /// Which of the process' buffers it is, in the order they were made.
    pub number: u64,
    /// What it is for.
    pub purpose: Cow<'static, str>,
    /// The GPU it is mapped on.
    pub gpu: GpuId,
    /// `ALLOC_MEM_FLAGS_*`.
    pub flags: u32,
    /// The host reaches it at the same addresses.
    host_visible: bool,
    /// When it was freed.
    pub freed: Option<Instant>,
}

impl Known {
    /// Bytes between an address and the range; 0 inside.
    pub fn distance(&self, va: GpuVa) -> u64 {
        if va.0 < self.range.start { self.range.start - va.0 } else { va.0.saturating_sub(self.range.end - 1) }
    }

    /// Whether the GPU may store to it.
    pub fn is_writable(&self) -> bool {
        self.flags & ALLOC_MEM_FLAGS_WRITABLE != 0
    }
}

/// The buffers of a process.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    live: Vec<Known>,
    freed: VecDeque<Known>,
    made: u64,
}

impl Ledger {
    /// Remembers a buffer of `bytes` bytes that is mapped now. With `host_visible` its memory stays mapped into this process
    /// until it is freed here.
    pub fn add(
        &mut self,
        range: Range<u64>,
        bytes: u64,
        purpose: &'static str,
        gpu: GpuId,
        flags: u32,
        host_visible: bool,
    ) {
        let number = self.made;
        self.made += 1;
        self.live.push(Known { range, bytes, number, purpose: purpose.into(), gpu, flags, host_visible, freed: None });
    }

    pub fn live(&self) -> &[Known] {
        &self.live
    }

    pub fn rename(&mut self, va: GpuVa, name: String) {
        if let Some(known) = self.live.iter_mut().find(|known| known.range.start == va.0) {
            known.purpose = name.into();
        }
    }

    /// Must come before the memory goes.
    pub fn free(&mut self, va: GpuVa) {
        let Some(index) = self.live.iter().position(|known| known.range.start == va.0) else { return };
        let known = self.live.swap_remove(index);
        if self.freed.len() == FREED {
            self.freed.pop_front();
        }
        self.freed.push_back(Known { freed: Some(Instant::now()), ..known });
    }

    /// The range that holds `va`, or the nearest: of several one on `gpu` before others, a buffer before a freed one, and
    /// of those the last freed.
    pub fn nearest(&self, gpu: GpuId, va: GpuVa) -> Option<Known> {
        let all = self.live.iter().chain(self.freed.iter().rev());
        all.min_by_key(|known| (known.distance(va), known.gpu != gpu)).cloned()
    }

    /// The double word at an address, where the host reaches it and it is aligned.
    pub fn peek(&self, va: GpuVa) -> Option<u64> {
        let end = va.0.checked_add(8).filter(|_| va.0.is_multiple_of(8))?;
        self.live.iter().find(|known| known.host_visible && known.range.start <= va.0 && end <= known.range.end)?;
        // SAFETY: eight aligned bytes of a buffer that is live, and it stays mapped while this ledger is borrowed: a
        // buffer is taken out of it before its memory goes. The memory is shared, and all access to it is atomic.
        Some(unsafe { AtomicU64::from_ptr(va.0 as *mut u64) }.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: GpuId = GpuId(7);
    const OTHER: GpuId = GpuId(8);

    #[test]
    fn the_nearest_range_is_found_and_freed_ones_are_remembered() {
        let mut ledger = Ledger::default();
        let add = |ledger: &mut Ledger, va, purpose, gpu| ledger.add(va..va + 0x1000, 0x1000, purpose, gpu, 0, false);
        assert_eq!(ledger.nearest(OURS, GpuVa(0)), None);
        add(&mut ledger, 0x1000, "low", OURS);
        add(&mut ledger, 0x8000, "high", OURS);
        ledger.rename(GpuVa(0x8000), "argument 'out'".to_owned());
        let near = |ledger: &Ledger, va| {
            let known = ledger.nearest(OURS, GpuVa(va)).unwrap();
            (known.purpose.to_string(), known.distance(GpuVa(va)), known.freed.is_some())
        };
        assert_eq!(near(&ledger, 0x1fff), ("low".to_owned(), 0, false));
        assert_eq!(near(&ledger, 0x2000), ("low".to_owned(), 1, false));
        assert_eq!(near(&ledger, 0x7ffe), ("argument 'out'".to_owned(), 2, false));
        ledger.free(GpuVa(0x8000));
        assert_eq!(near(&ledger, 0x8000), ("argument 'out'".to_owned(), 0, true));
        // The address is used again.
        add(&mut ledger, 0x8000, "new", OURS);
        assert_eq!(near(&ledger, 0x8000), ("new".to_owned(), 0, false));
        // Two buffers as near as one another: that of the GPU that asks.
        add(&mut ledger, 0x4000, "of another", OTHER);
        add(&mut ledger, 0x6000, "of this", OURS);
        assert_eq!(near(&ledger, 0x4800), ("of another".to_owned(), 0, false));
        assert_eq!(near(&ledger, 0x57ff).0, "of another");
        add(&mut ledger, 0x5fff, "overlapping", OTHER);
        assert_eq!(near(&ledger, 0x6000).0, "of this");
        for at in 0..2 * FREED as u64 {
            add(&mut ledger, at << 32, "many", OURS);
            ledger.free(GpuVa(at << 32));
        }
        assert_eq!(ledger.freed.len(), FREED);
    }

    #[test]
    fn memory_is_looked_at_only_where_the_host_reaches_it() {
        let words = Box::leak(Box::new([1u64, 2, 3]));
        let start = words.as_ptr() as u64;
        let mut ledger = Ledger::default();
        assert_eq!(ledger.peek(GpuVa(start)), None);
        ledger.add(start..start + 16, 16, "seen", OURS, 0, true);
        assert_eq!([0, 4, 8, 16].map(|at| ledger.peek(GpuVa(start + at))), [Some(1), None, Some(2), None]);
        assert_eq!(ledger.peek(GpuVa(u64::MAX - 7)), None);
        ledger.free(GpuVa(start));
        assert_eq!(ledger.peek(GpuVa(start)), None);
        ledger.add(start..start + 16, 16, "unseen", OURS, 0, false);
        assert_eq!(ledger.peek(GpuVa(start)), None);
    }
}

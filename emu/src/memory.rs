//! A GPU's view of a process: page tables from GPU virtual addresses to host memory, with rights.
//!
//! Every address the emulated GPU touches goes through here, so a stray access is a fault record and never a crash of
//! the host. One [`AddressSpace`] is one VM of one GPU. Lookups return the whole mapping around an address, which waves
//! keep in a small cache of their own until [`AddressSpace::epoch`] moves.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Page table rights. Reading is always granted (the ALLOC flags have no bit for it).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// `KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE`.
    pub write: bool,
    /// `KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE`.
    pub execute: bool,
}

/// Host memory behind a mapping; dropped when the last mapping and the last cached translation let go of it.
pub trait Backing: Send + Sync {}

/// One mapping: `start..end` of the GPU's address space lies at `host` in this process.
#[derive(Clone)]
pub struct Span {
    /// First GPU address, page aligned.
    pub start: u64,
    /// One past the last.
    pub end: u64,
    /// Host address of `start`. Valid for `end - start` bytes while `backing` lives.
    pub host: *mut u8,
    /// Rights.
    pub rights: Rights,
    /// Keeps `host` alive.
    pub backing: Arc<dyn Backing>,
}

/// Bytes of a page.
const PAGE: u64 = 4096;

impl Span {
    /// The part around `va` that does without the page at `hole`.
    fn without(mut self, hole: u64, va: u64) -> Option<Span> {
        if (hole..hole.saturating_add(PAGE)).contains(&va) {
            return None;
        }
        if hole > va {
            self.end = self.end.min(hole);
        } else if hole.saturating_add(PAGE) > self.start {
            let cut = hole + PAGE - self.start;
            self.host = self.host.wrapping_add(cut as usize);
            self.start += cut;
        }
        Some(self)
    }
}

// SAFETY: `host` is plain memory kept alive by `backing`; every access to it is an atomic or volatile one of the
// emulated GPU, as memory shared with a device is accessed.
unsafe impl Send for Span {}
// SAFETY: as above.
unsafe impl Sync for Span {}

impl std::fmt::Debug for Span {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#x}..{:#x} {:?}", self.start, self.end, self.rights)
    }
}

/// The page tables of one VM.
#[derive(Default)]
pub struct AddressSpace {
    spans: RwLock<BTreeMap<u64, Span>>,
    /// Addresses of pages that are not there whatever is mapped.
    holes: RwLock<Vec<u64>>,
    epoch: AtomicU64,
}

impl AddressSpace {
    /// Adds a mapping. False when it overlaps one that is there (the kernel's EINVAL).
    #[must_use]
    pub fn map(&self, span: Span) -> bool {
        let mut spans = self.spans.write().unwrap_or_else(PoisonError::into_inner);
        if spans.range(..span.end).next_back().is_some_and(|(_, last)| last.end > span.start) {
            return false;
        }
        spans.insert(span.start, span);
        self.epoch.fetch_add(1, Ordering::Release);
        true
    }

    /// Removes the mapping that starts at `start`.
    pub fn unmap(&self, start: u64) -> Option<Span> {
        let span = self.spans.write().unwrap_or_else(PoisonError::into_inner).remove(&start);
        self.epoch.fetch_add(1, Ordering::Release);
        span
    }

    /// The mapping that holds `va`.
    pub fn lookup(&self, va: u64) -> Option<Span> {
        let spans = self.spans.read().unwrap_or_else(PoisonError::into_inner);
        let span = spans.range(..=va).next_back().filter(|(_, span)| va < span.end).map(|(_, span)| span.clone())?;
        self.holes
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .try_fold(span, |span, hole| span.without(*hole, va))
    }

    /// Makes the page of an address not be there, whatever is mapped.
    pub fn punch(&self, va: u64) {
        self.holes.write().unwrap_or_else(PoisonError::into_inner).push(va & !(PAGE - 1));
        self.epoch.fetch_add(1, Ordering::Release);
    }

    /// The mappings nearest below and above an address that no mapping holds.
    pub fn neighbours(&self, va: u64) -> (Option<Span>, Option<Span>) {
        let spans = self.spans.read().unwrap_or_else(PoisonError::into_inner);
        let below = spans.range(..=va).next_back().map(|(_, span)| span.clone());
        let above = spans.range(va..).next().map(|(_, span)| span.clone());
        (below, above)
    }

    /// Moves on every change of the tables; a cached [`Span`] is stale when it differs from the one seen before the lookup.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }
}

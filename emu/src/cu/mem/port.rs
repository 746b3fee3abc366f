//! What a wave's memory operations reach, and the mappings it has seen lately.

use super::super::inst::Inst;
use super::super::wave::Wave;
use crate::memory::{AddressSpace, Span};
use std::sync::Arc;
use trace::{Access, FaultKind};

/// What a wave's memory operations reach: the page tables, the work-group's LDS and the wave's scratch.
///
/// The fields may be set anew for the next wave; the mappings cached inside stay good as long as `space` is the same.
pub struct MemoryPort {
    /// Page tables of the dispatch's process.
    pub space: Arc<AddressSpace>,
    /// LDS of the work-group, 16-byte aligned. Only the thread that runs the work-group touches it.
    pub lds: *mut u8,
    /// Bytes allocated to the work-group: accesses beyond read 0 and write nothing.
    pub lds_size: u32,
    /// GPU address of this wave's scratch.
    pub scratch_base: u64,
    /// Bytes of it, all lanes together.
    pub scratch_size: u64,
    /// SHARED_BASE >> 32.
    pub shared_aperture: u32,
    /// PRIVATE_BASE >> 32.
    pub private_aperture: u32,
    /// Address that was looked up last; all ones when there is none.
    touched: u64,
    cache: Cache,
}

/// Part of the address space that lies contiguously in host memory.
#[derive(Clone, Copy)]
pub(super) struct Window {
    /// First GPU address.
    pub start: u64,
    /// Bytes.
    pub len: u64,
    /// Host address of `start`.
    pub host: *mut u8,
    /// May be written.
    pub write: bool,
}

impl Window {
    /// Holds no address.
    pub const EMPTY: Window = Window { start: 0, len: 0, host: std::ptr::null_mut(), write: false };

    /// Host address of an address that was found to lie inside.
    #[inline(always)]
    pub fn host_of(&self, va: u64) -> *mut u8 {
        self.host.wrapping_add(va.wrapping_sub(self.start) as usize)
    }

    /// Host address of `va`, when `bytes` from there on lie inside.
    #[inline(always)]
    pub fn at(&self, va: u64, bytes: u64) -> Option<*mut u8> {
        let offset = va.wrapping_sub(self.start);
        // `len` may be less than `bytes`, so the subtraction is on the side that cannot wrap.
        if offset < self.len && bytes <= self.len - offset {
            Some(self.host.wrapping_add(offset as usize))
        } else {
            None
        }
    }
}

/// Addresses below are taken for null pointers with an offset.
const NULL_PAGES: u64 = 0x1_0000;

/// Mappings a wave touches at a time: buffers, kernarg, scratch, code's constants.
const ENTRIES: usize = 8;

struct Cache {
    windows: [Window; ENTRIES],
    /// What keeps the host memory of `windows` alive.
    spans: [Option<Span>; ENTRIES],
    /// Entries replaced during the current instruction, which may still use their host addresses.
    replaced: Vec<Span>,
    next: usize,
    epoch: u64,
    space: *const AddressSpace,
}

// SAFETY: the host addresses are plain memory kept alive by the spans beside them, LDS is touched only by the thread
// that has the wave, and nothing is tied to the thread that made the port.
unsafe impl Send for MemoryPort {}

impl MemoryPort {
    /// A port with an empty cache. The arguments are the fields, in order.
    pub fn new(
        space: Arc<AddressSpace>,
        lds: *mut u8,
        lds_size: u32,
        scratch_base: u64,
        scratch_size: u64,
        shared_aperture: u32,
        private_aperture: u32,
    ) -> MemoryPort {
        let cache = Cache {
            windows: [Window::EMPTY; ENTRIES],
            spans: [const { None }; ENTRIES],
            replaced: Vec::new(),
            next: 0,
            epoch: space.epoch(),
            space: Arc::as_ptr(&space),
        };
        MemoryPort {
            space,
            lds,
            lds_size,
            scratch_base,
            scratch_size,
            shared_aperture,
            private_aperture,
            touched: u64::MAX,
            cache,
        }
    }

    /// The address in memory that was touched last.
    pub fn touched(&self) -> Option<u64> {
        (self.touched != u64::MAX).then_some(self.touched)
    }

    /// Another wave begins.
    pub fn forget_touched(&mut self) {
        self.touched = u64::MAX;
    }

    /// Begins an instruction: forgets what was cached when the tables changed. Host addresses got since are good until
    /// the next call.
    #[inline(always)]
    pub(super) fn begin(&mut self) {
        if self.space.epoch() != self.cache.epoch
            || self.cache.space != Arc::as_ptr(&self.space)
            || !self.cache.replaced.is_empty()
        {
            self.refresh();
        }
    }

    #[cold]
    fn refresh(&mut self) {
        self.cache.replaced.clear();
        let epoch = self.space.epoch();
        let space = Arc::as_ptr(&self.space);
        if epoch != self.cache.epoch || space != self.cache.space {
            self.cache.windows = [Window::EMPTY; ENTRIES];
            self.cache.spans = [const { None }; ENTRIES];
            self.cache.epoch = epoch;
            self.cache.space = space;
        }
    }

    /// The window around an address.
    #[inline(always)]
    pub(super) fn window(&mut self, va: u64) -> Option<Window> {
        self.touched = va;
        for window in &self.cache.windows {
            if va.wrapping_sub(window.start) < window.len {
                return Some(*window);
            }
        }
        self.fill(va)
    }

    #[cold]
    fn fill(&mut self, va: u64) -> Option<Window> {
        let span = self.space.lookup(va)?;
        let window =
            Window { start: span.start, len: span.end - span.start, host: span.host, write: span.rights.write };
        let slot = self.cache.next;
        self.cache.next = (slot + 1) % ENTRIES;
        self.cache.windows[slot] = window;
        if let Some(old) = self.cache.spans[slot].replace(span) {
            self.cache.replaced.push(old);
        }
        Some(window)
    }

    /// Host address of `bytes` bytes at `va`, when one mapping holds them all and grants the access.
    #[inline(always)]
    pub(super) fn host(&mut self, va: u64, bytes: u64, write: bool) -> Option<*mut u8> {
        let window = self.window(va)?;
        if write && !window.write {
            return None;
        }
        window.at(va, bytes)
    }

    /// The first of `bytes` addresses from `va` on that denies the access, and why. None: all of them grant it.
    #[cold]
    pub(super) fn denied(&mut self, va: u64, bytes: u64, write: bool) -> Option<(u64, FaultKind)> {
        let mut at = va;
        let mut left = bytes;
        loop {
            let Some(window) = self.window(at) else { return Some((at, FaultKind::NotPresent)) };
            if write && !window.write {
                return Some((at, FaultKind::ReadOnly));
            }
            let inside = window.len - (at - window.start);
            if inside >= left {
                return None;
            }
            left -= inside;
            at = at.wrapping_add(inside);
        }
    }

    /// Words on what lies around an address that faulted.
    fn describe(&self, va: u64, kind: &FaultKind) -> String {
        if *kind == FaultKind::ReadOnly {
            return match self.space.lookup(va) {
                Some(span) => format!("the mapping {:#x}..{:#x} is not writable", span.start, span.end),
                None => "the mapping is not writable".to_owned(),
            };
        }
        if va < NULL_PAGES {
            return "a null pointer, or one with a small offset".to_owned();
        }
        let (below, above) = self.space.neighbours(va);
        let mut parts = Vec::new();
        if let Some(span) = below {
            parts.push(format!(
                "{:#x} bytes past the end of {:#x}..{:#x}",
                va.saturating_sub(span.end),
                span.start,
                span.end
            ));
        }
        if let Some(span) = above {
            parts.push(format!("{:#x} bytes before {:#x}..{:#x}", span.start.saturating_sub(va), span.start, span.end));
        }
        if parts.is_empty() { "nothing is mapped".to_owned() } else { parts.join(", ") }
    }
}

/// A lane's access that may not happen.
pub(super) struct Denied {
    /// Why.
    pub kind: FaultKind,
    /// Address of the first byte.
    pub va: u64,
    /// Lanes whose access is denied.
    pub lanes: u64,
    /// The rule, where the page tables do not tell it.
    pub detail: Option<String>,
}

/// Stops the wave with a memory fault at `inst`.
#[cold]
pub(super) fn fault(wave: &mut Wave, inst: &Inst, access: Access, denied: Denied) {
    let detail = denied.detail.unwrap_or_else(|| wave.port.describe(denied.va, &denied.kind));
    wave.fault_at(inst, denied.kind, Some((denied.va, access)), denied.lanes, detail);
}

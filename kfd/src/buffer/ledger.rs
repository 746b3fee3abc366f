//! Which ranges of the GPU's address space are and were buffers, for reports on stray addresses.

use crate::types::GpuVa;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;

/// Freed buffers that are remembered.
const FREED: usize = 256;

/// What is known of a range that is a buffer, or was one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Addresses, whole pages.
    pub range: Range<u64>,
    /// Bytes that were asked for; the rest of the last page is nobody's.
    pub bytes: u64,
    /// Which of the device's buffers it is, in the order they were made.
    pub number: u64,
    /// What it is for.
    pub purpose: Cow<'static, str>,
    /// It was freed.
    pub freed: bool,
}

impl Known {
    /// Bytes between an address and the range; 0 inside.
    pub fn distance(&self, va: GpuVa) -> u64 {
        if va.0 < self.range.start { self.range.start - va.0 } else { va.0.saturating_sub(self.range.end - 1) }
    }
}

/// The buffers of a device.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    live: Vec<Known>,
    freed: VecDeque<Known>,
    made: u64,
}

impl Ledger {
    pub fn add(&mut self, va: GpuVa, size: u64, bytes: u64, purpose: &'static str) {
        let range = va.0..va.0.saturating_add(size);
        self.live.push(Known { range, bytes, number: self.made, purpose: purpose.into(), freed: false });
        self.made += 1;
    }

    pub fn live(&self) -> &[Known] {
        &self.live
    }

    pub fn rename(&mut self, va: GpuVa, name: String) {
        if let Some(known) = self.live.iter_mut().find(|known| known.range.start == va.0) {
            known.purpose = name.into();
        }
    }

    pub fn free(&mut self, va: GpuVa) {
        let Some(index) = self.live.iter().position(|known| known.range.start == va.0) else { return };
        let known = self.live.swap_remove(index);
        if self.freed.len() == FREED {
            self.freed.pop_front();
        }
        self.freed.push_back(Known { freed: true, ..known });
    }

    /// The range that holds `va`, or the nearest: of several a buffer before a freed one, and of those the last freed.
    pub fn nearest(&self, va: GpuVa) -> Option<Known> {
        self.live.iter().chain(self.freed.iter().rev()).min_by_key(|known| known.distance(va)).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_range_is_found_and_freed_ones_are_remembered() {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.nearest(GpuVa(0)), None);
        ledger.add(GpuVa(0x1000), 0x1000, 0x1000, "low");
        ledger.add(GpuVa(0x8000), 0x1000, 0x1000, "high");
        ledger.rename(GpuVa(0x8000), "argument 'out'".to_owned());
        let near = |ledger: &Ledger, va| {
            let known = ledger.nearest(GpuVa(va)).unwrap();
            (known.purpose.to_string(), known.distance(GpuVa(va)), known.freed)
        };
        assert_eq!(near(&ledger, 0x1fff), ("low".to_owned(), 0, false));
        assert_eq!(near(&ledger, 0x2000), ("low".to_owned(), 1, false));
        assert_eq!(near(&ledger, 0x7ffe), ("argument 'out'".to_owned(), 2, false));
        ledger.free(GpuVa(0x8000));
        assert_eq!(near(&ledger, 0x8000), ("argument 'out'".to_owned(), 0, true));
        // The address is used again.
        ledger.add(GpuVa(0x8000), 0x1000, 0x1000, "new");
        assert_eq!(near(&ledger, 0x8000), ("new".to_owned(), 0, false));
        for at in 0..2 * FREED as u64 {
            ledger.add(GpuVa(at << 32), 0x1000, 0x1000, "many");
            ledger.free(GpuVa(at << 32));
        }
        assert_eq!(ledger.freed.len(), FREED);
    }
}

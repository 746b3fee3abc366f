//! Events (`kfd_events.c`): what a thread can sleep on, set by the host, by an interrupt of the GPU or by a fault.

pub mod ioctl;
mod wait;

use super::backing::Pages;
use kfd::Errno;
use kfd::uapi::{
    EVENT_DEBUG_EVENT, EVENT_HW_EXCEPTION, EVENT_MEMORY, EVENT_SIGNAL, HsaHwExceptionData, HsaMemoryExceptionData,
    MmapOffset, MmapType, SIGNAL_EVENT_LIMIT,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use wait::Wait;

/// Ids of events without a slot start here.
const FIRST_NONSIGNAL_ID: u32 = 0x4000_0000;
/// Content of the slot of an event that is not signalled. The GPU signals by writing anything else.
const UNSIGNALED: u64 = u64::MAX;
/// Slots of a page that the kernel made and nobody has mapped: what the oldest user space expects.
const SLOTS_BEFORE_MMAP: u32 = 256;

/// One event.
struct Event {
    kind: u32,
    auto_reset: bool,
    signaled: bool,
    /// Starts at 1, moves with every set, and is never 0.
    age: u64,
    memory: HsaMemoryExceptionData,
    hardware: HsaHwExceptionData,
    /// Who waits, one entry a wait and position in it.
    waiters: Vec<Waiter>,
}

/// An entry of an event's wait queue.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Waiter {
    wait: u64,
    index: usize,
}

/// The page of slots that the GPU writes.
struct SignalPage {
    pages: Arc<Pages>,
    /// Slots that may be handed out.
    slots: u32,
    /// Handle of the buffer; none for a page of the kernel's own.
    handle: Option<u64>,
}

impl SignalPage {
    fn new(pages: Arc<Pages>, slots: u32, handle: Option<u64>) -> SignalPage {
        let page = SignalPage { pages, slots, handle };
        for slot in 0..SIGNAL_EVENT_LIMIT {
            page.slot(slot).store(UNSIGNALED, Ordering::Relaxed);
        }
        page
    }

    fn slot(&self, id: u32) -> &AtomicU64 {
        debug_assert!(id < SIGNAL_EVENT_LIMIT);
        // SAFETY: the page has at least SIGNAL_EVENT_LIMIT slots (checked where it is set), 8-byte aligned in whole
        // pages, and lives as long as `pages`; client and GPU share it, so only atomics touch it.
        unsafe { AtomicU64::from_ptr(self.pages.host().cast::<u64>().add(id as usize)) }
    }
}

#[derive(Default)]
struct State {
    events: BTreeMap<u32, Event>,
    page: Option<SignalPage>,
    /// Waits in progress: for each position, whether its event was set, or None when it was destroyed.
    waits: BTreeMap<u64, Vec<Option<bool>>>,
    next_wait: u64,
}

/// The events of one process.
#[derive(Default)]
pub struct Events {
    state: Mutex<State>,
    /// Moves whenever something is set or gone; who waits sleeps on it.
    sequence: AtomicU32,
}

/// What CREATE_EVENT returns.
#[derive(Debug, PartialEq, Eq)]
pub struct Created {
    /// Id, and what the GPU sends with its interrupt.
    pub id: u32,
    /// Slot; signal and debug events only.
    pub slot: Option<u32>,
}

/// mmap offset that CREATE_EVENT returns for events with a slot.
pub const PAGE_OFFSET: u64 = MmapOffset { kind: MmapType::Events, gpu_id: 0, offset: 0 }.encode();

impl State {
    /// `set_event`.
    fn set(&mut self, id: u32) {
        let Some(event) = self.events.get_mut(&id) else { return };
        event.signaled = !event.auto_reset || event.waiters.is_empty();
        event.age = event.age.checked_add(1).unwrap_or(2);
        for waiter in &event.waiters {
            if let Some(Some(activated)) = self.waits.get_mut(&waiter.wait).and_then(|wait| wait.get_mut(waiter.index))
            {
                *activated = true;
            }
        }
    }

    /// Lowest free id of a range. 0 is reserved for interrupts without an id.
    fn free_id(&self, mut range: std::ops::Range<u32>) -> Option<u32> {
        range.find(|id| *id != 0 && !self.events.contains_key(id))
    }

    /// `set_event_from_interrupt`: only an event with a slot, whose slot is taken back first.
    fn set_from_interrupt(&mut self, id: u32) {
        let has_slot = self.events.get(&id).is_some_and(|event| matches!(event.kind, EVENT_SIGNAL | EVENT_DEBUG_EVENT));
        if let (true, Some(page)) = (has_slot, &self.page) {
            page.slot(id).store(UNSIGNALED, Ordering::SeqCst);
            self.set(id);
        }
    }

    fn slot_is_set(&self, id: u32) -> bool {
        id < SIGNAL_EVENT_LIMIT
            && self.page.as_ref().is_some_and(|page| page.slot(id).load(Ordering::SeqCst) != UNSIGNALED)
    }

    /// `lookup_signaled_event_by_partial_id`: the first event with these low bits whose slot is written.
    fn signaled_by_partial_id(&self, partial: u32, bits: u32) -> Option<u32> {
        if bits > 31 || 1 << bits >= SIGNAL_EVENT_LIMIT {
            return Some(partial).filter(|id| self.slot_is_set(*id) && self.events.contains_key(id));
        }
        (partial..SIGNAL_EVENT_LIMIT)
            .step_by(1 << bits)
            .find(|id| self.slot_is_set(*id) && self.events.contains_key(id))
    }
}

impl Events {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `kfd_event_page_set`: makes a buffer the signal page. The caller has checked the handle.
    ///
    /// # Errors
    /// EINVAL: there is a page already, or the buffer has fewer than 32768 bytes.
    pub fn set_page(&self, pages: Arc<Pages>, handle: u64) -> Result<(), Errno> {
        let mut state = self.state();
        if state.page.is_some() || pages.size() < u64::from(SIGNAL_EVENT_LIMIT) * 8 {
            return Err(Errno::EINVAL);
        }
        // Only slots that the interrupt handler looks at.
        let slots = (pages.size() / 8).min(u64::from(SIGNAL_EVENT_LIMIT)) as u32;
        state.page = Some(SignalPage::new(pages, slots, Some(handle)));
        Ok(())
    }

    /// Whether there is a page, by a buffer or the kernel's own.
    pub fn has_page(&self) -> bool {
        self.state().page.is_some()
    }

    /// Handle of the buffer that is the signal page.
    pub fn page_handle(&self) -> Option<u64> {
        self.state().page.as_ref().and_then(|page| page.handle)
    }

    /// The signal page, for `mmap` of `bytes`, after which as many slots can be used.
    pub fn map_page(&self, bytes: u64) -> Result<Arc<Pages>, Errno> {
        let limit = u64::from(SIGNAL_EVENT_LIMIT) * 8;
        // The kernel compares page orders, so up to 32 KiB.
        if bytes > limit {
            return Err(Errno::EINVAL);
        }
        let mut state = self.state();
        let page = state.page.as_mut().ok_or(Errno::EINVAL)?;
        page.slots = (bytes / 8) as u32;
        Ok(page.pages.clone())
    }

    /// CREATE_EVENT without its event page. `own_page` makes the kernel's page when there is none. None: no slot is free.
    ///
    /// # Errors
    /// Those of `own_page`.
    pub fn create(
        &self,
        kind: u32,
        auto_reset: bool,
        own_page: impl FnOnce() -> Result<Arc<Pages>, Errno>,
    ) -> Result<Option<Created>, Errno> {
        let mut state = self.state();
        let with_slot = matches!(kind, EVENT_SIGNAL | EVENT_DEBUG_EVENT);
        let id = if with_slot {
            let slots = match &state.page {
                Some(page) => page.slots,
                None => {
                    state.page = Some(SignalPage::new(own_page()?, SLOTS_BEFORE_MMAP, None));
                    SLOTS_BEFORE_MMAP
                }
            };
            state.free_id(0..slots)
        } else {
            state.free_id(FIRST_NONSIGNAL_ID..i32::MAX as u32)
        };
        let Some(id) = id else { return Ok(None) };
        if let (true, Some(page)) = (with_slot, &state.page) {
            // An earlier event of this id may have left something.
            page.slot(id).store(UNSIGNALED, Ordering::SeqCst);
        }
        let event = Event {
            kind,
            auto_reset,
            signaled: false,
            age: 1,
            memory: HsaMemoryExceptionData::default(),
            hardware: HsaHwExceptionData::default(),
            waiters: Vec::new(),
        };
        state.events.insert(id, event);
        Ok(Some(Created { id, slot: with_slot.then_some(id) }))
    }

    /// DESTROY_EVENT. Who waits for it gets WAIT_RESULT_FAIL.
    ///
    /// # Errors
    /// EINVAL: no such event.
    pub fn destroy(&self, id: u32) -> Result<(), Errno> {
        let mut state = self.state();
        let event = state.events.remove(&id).ok_or(Errno::EINVAL)?;
        for waiter in event.waiters {
            if let Some(entry) = state.waits.get_mut(&waiter.wait).and_then(|wait| wait.get_mut(waiter.index)) {
                *entry = None;
            }
        }
        self.wake();
        Ok(())
    }

    /// SET_EVENT.
    ///
    /// # Errors
    /// EINVAL: no such event, or not one of type SIGNAL.
    pub fn set(&self, id: u32) -> Result<(), Errno> {
        let mut state = self.state();
        state.events.get(&id).filter(|event| event.kind == EVENT_SIGNAL).ok_or(Errno::EINVAL)?;
        state.set(id);
        self.wake();
        Ok(())
    }

    /// RESET_EVENT.
    ///
    /// # Errors
    /// As [`Events::set`].
    pub fn reset(&self, id: u32) -> Result<(), Errno> {
        let mut state = self.state();
        let event = state.events.get_mut(&id).filter(|event| event.kind == EVENT_SIGNAL).ok_or(Errno::EINVAL)?;
        event.signaled = false;
        Ok(())
    }

    /// `kfd_signal_event_interrupt`: an interrupt whose payload holds `bits` valid bits of an event id. When they lead
    /// to no event with a written slot, every event whose slot is written is set.
    pub fn interrupt(&self, partial: u32, bits: u32) {
        let mut state = self.state();
        match state.signaled_by_partial_id(partial, bits) {
            Some(id) => state.set_from_interrupt(id),
            None => {
                let written: Vec<u32> = state
                    .events
                    .range(..SIGNAL_EVENT_LIMIT)
                    .map(|(id, _)| *id)
                    .filter(|id| state.slot_is_set(*id))
                    .collect();
                for id in written {
                    state.set_from_interrupt(id);
                }
            }
        }
        self.wake();
    }

    fn set_all_of(&self, kind: u32, fill: impl Fn(&mut Event)) {
        let mut state = self.state();
        let ids: Vec<u32> = state
            .events
            .range(FIRST_NONSIGNAL_ID..)
            .filter(|(_, event)| event.kind == kind)
            .map(|(id, _)| *id)
            .collect();
        for id in ids {
            if let Some(event) = state.events.get_mut(&id) {
                fill(event);
            }
            state.set(id);
        }
        self.wake();
    }

    /// `kfd_signal_vm_fault_event`: sets all MEMORY events. Nothing happens when there is none.
    pub fn memory_fault(&self, data: HsaMemoryExceptionData) {
        self.set_all_of(EVENT_MEMORY, |event| event.memory = data);
    }

    /// Sets all HW_EXCEPTION events.
    pub fn hardware_exception(&self, data: HsaHwExceptionData) {
        self.set_all_of(EVENT_HW_EXCEPTION, |event| event.hardware = data);
    }
}

#[cfg(test)]
mod tests;

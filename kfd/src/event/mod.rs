//! Events: how a process sleeps until the GPU has something to say.
//!
//! The GPU signals an event by storing to its slot of the event page and raising an interrupt; for a completion signal
//! the packet processor does both (`event_mailbox_ptr`, `event_id`). Memory faults and GPU resets are told through
//! events of their own types only: a process that waits on neither waits for ever after a fault.

mod fault;

pub use fault::{HwException, MemoryFault};

use crate::buffer::{Buffer, KeptBuffer, Kind, map_to};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::kfd::Kfd;
use crate::types::{EventId, GpuId, GpuVa};
use crate::uapi;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Bytes of the event page: 4096 slots of 8.
pub const EVENT_PAGE_SIZE: u64 = uapi::SIGNAL_EVENT_LIMIT as u64 * 8;

/// Interface version from which a wait tells which signal events fired.
const AGE_VERSION: (u32, u32) = (1, 14);

/// The event page of the process. The kernel keeps it until the process ends, so it is never freed.
#[derive(Debug)]
pub(crate) struct EventPage {
    buffer: KeptBuffer,
    /// GPUs it is mapped on.
    gpus: Vec<GpuId>,
}

/// The events of a process on a device.
#[derive(Debug)]
pub struct Events {
    kfd: Arc<Kfd>,
    page: GpuVa,
    /// The event that the call which installed the page made along the way.
    spare: Mutex<Option<Event>>,
}

/// What an event is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Set by the GPU through its slot, or by [`Event::set`].
    Signal,
    /// A GPU page fault, or memory that is damaged.
    Memory,
    /// A GPU reset, or an error that cannot be corrected.
    HwException,
}

/// One event; destroyed when dropped.
#[derive(Debug)]
pub struct Event {
    kfd: Arc<Kfd>,
    id: EventId,
    kind: EventKind,
    mailbox: Option<GpuVa>,
    /// Age last seen. The kernel's starts at 1 and moves each time the event is set.
    age: AtomicU64,
}

impl Events {
    /// The events of the process, with an event page that the device can reach. The first one allocates the page (two
    /// ioctls) and installs it with the first signal event (one more).
    pub fn new(device: &Arc<Device>) -> Result<Events> {
        let kfd = device.kfd();
        let mut page = kfd.event_page.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(page) = page.as_mut() {
            if !page.gpus.contains(&device.gpu_id()) {
                map_to(device, page.buffer.handle)?;
                page.gpus.push(device.gpu_id());
            }
            return Ok(Events { kfd: kfd.clone(), page: page.buffer.va, spare: Mutex::default() });
        }
        let buffer = Buffer::new(device, Kind::Control, EVENT_PAGE_SIZE, "event page")?;
        let first = create(kfd, EventKind::Signal, buffer.va(), buffer.handle())?;
        let buffer = buffer.keep();
        let va = buffer.va;
        *page = Some(EventPage { gpus: vec![buffer.gpu], buffer });
        Ok(Events { kfd: kfd.clone(), page: va, spare: Mutex::new(Some(first)) })
    }

    /// Makes an event (CREATE_EVENT). ENOSPC after 4095 signal events.
    pub fn create(&self, kind: EventKind) -> Result<Event> {
        if kind == EventKind::Signal
            && let Some(event) = self.spare.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            return Ok(event);
        }
        create(&self.kfd, kind, self.page, 0)
    }

    /// Address of the event page.
    pub fn page(&self) -> GpuVa {
        self.page
    }

    /// Waits until one of `events` fires or the time is over (WAIT_EVENTS); None waits for ever. An interrupted wait
    /// goes on with the time that is left.
    ///
    /// Signal events reset themselves when they fire; memory and hardware exceptions stay.
    pub fn wait(&self, events: &[&Event], timeout: Option<Duration>) -> Result<Wait> {
        let ages = self.kfd.version() >= AGE_VERSION;
        let mut data: Vec<uapi::EventData> = events.iter().map(|event| event.data(ages)).collect();
        let before = data.clone();
        let mut args = uapi::WaitEventsArgs {
            events_ptr: data.as_mut_ptr() as u64,
            num_events: u32::try_from(data.len()).map_err(|_| Error::Size {
                what: "an array of events",
                size: data.len() as u64,
                rule: "WAIT_EVENTS takes 2^32 - 1 at most",
            })?,
            wait_for_all: 0,
            timeout: milliseconds(timeout),
            wait_result: 0,
        };
        self.kfd.call(&mut args)?;
        if args.wait_result == uapi::WAIT_RESULT_TIMEOUT {
            return Ok(Wait::Timeout);
        }
        let fired = events.iter().zip(before.iter().zip(&data));
        Ok(Wait::Fired(fired.filter_map(|(event, (before, after))| event.fired(before, after, ages)).collect()))
    }
}

fn create(kfd: &Arc<Kfd>, kind: EventKind, page: GpuVa, page_handle: u64) -> Result<Event> {
    let mut args = uapi::CreateEventArgs {
        event_page_offset: page_handle,
        event_type: match kind {
            EventKind::Signal => uapi::EVENT_SIGNAL,
            EventKind::Memory => uapi::EVENT_MEMORY,
            EventKind::HwException => uapi::EVENT_HW_EXCEPTION,
        },
        // A fault stays to be seen by everybody who asks.
        auto_reset: u32::from(kind == EventKind::Signal),
        ..Default::default()
    };
    kfd.call(&mut args)?;
    let slot = u64::from(args.event_slot_index) * 8;
    Ok(Event {
        kfd: kfd.clone(),
        id: EventId(args.event_id),
        kind,
        mailbox: if kind == EventKind::Signal { page.offset(slot) } else { None },
        age: AtomicU64::new(1),
    })
}

/// The kernel's timeout: milliseconds rounded up, all ones for ever.
fn milliseconds(timeout: Option<Duration>) -> u32 {
    let Some(timeout) = timeout else { return u32::MAX };
    u32::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(u32::MAX).min(u32::MAX - 1)
}

impl Event {
    /// Id.
    pub fn id(&self) -> EventId {
        self.id
    }

    /// What it is for.
    pub fn kind(&self) -> EventKind {
        self.kind
    }

    /// `event_mailbox_ptr` for signals that shall set this event: its slot in the event page. None for events that are
    /// not signals.
    pub fn mailbox(&self) -> Option<GpuVa> {
        self.mailbox
    }

    /// How often it was set as far as waits have seen, from 1.
    pub fn age(&self) -> u64 {
        self.age.load(Ordering::Relaxed)
    }

    /// Sets a signal event from the host (SET_EVENT). EINVAL for other kinds.
    pub fn set(&self) -> Result<()> {
        self.kfd.call(&mut uapi::SetEventArgs { event_id: self.id.0, pad: 0 }).map(drop)
    }

    /// Resets a signal event (RESET_EVENT). EINVAL for other kinds.
    pub fn reset(&self) -> Result<()> {
        self.kfd.call(&mut uapi::ResetEventArgs { event_id: self.id.0, pad: 0 }).map(drop)
    }

    fn data(&self, ages: bool) -> uapi::EventData {
        let mut data = uapi::EventData::new(self.id.0);
        if ages && self.kind == EventKind::Signal {
            data.set_payload(&uapi::HsaSignalEventData { last_event_age: self.age() });
        }
        data
    }

    /// What the kernel's answer says of this event. The payload is written for events that fired only.
    fn fired(&self, before: &uapi::EventData, after: &uapi::EventData, ages: bool) -> Option<Fired> {
        match self.kind {
            EventKind::Signal => {
                let (old, new) = (before.signal_event().last_event_age, after.signal_event().last_event_age);
                self.age.store(new.max(1), Ordering::Relaxed);
                // Without ages any of the signals may be the one.
                (!ages || old != new).then_some(Fired::Signal { event: self.id, age: new })
            }
            EventKind::Memory => {
                let data = after.memory_exception();
                (data.gpu_id != 0).then(|| Fired::Memory(MemoryFault::from(data)))
            }
            EventKind::HwException => {
                let data = after.hw_exception();
                (data.gpu_id != 0).then(|| Fired::HwException(HwException::from(data)))
            }
        }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.kfd.is_leaving() {
            return;
        }
        // A failure is in the trace; there is nobody to tell.
        let _ = self.kfd.ioctl(&mut uapi::DestroyEventArgs { event_id: self.id.0, pad: 0 });
    }
}

/// How a wait ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The time was over.
    Timeout,
    /// These events fired. On kernels before interface 1.14 a signal event that did not may be among them: look at the
    /// signal itself.
    Fired(Vec<Fired>),
}

/// An event that fired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fired {
    /// A signal event.
    Signal {
        /// Which.
        event: EventId,
        /// Its age now, 0 on kernels before interface 1.14.
        age: u64,
    },
    /// A memory fault; the queues of the process on that GPU are stopped for good.
    Memory(MemoryFault),
    /// A hardware exception; the queues of the process on that GPU will not run again.
    HwException(HwException),
}

#[cfg(test)]
mod tests;

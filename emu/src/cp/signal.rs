//! Signals as the packet processor writes them (`amd_signal_t`).

use super::Shared;
use super::bus::{Bus, BusFault};
use aql::signal;
use std::sync::atomic::{Ordering, fence};
use trace::Event;

/// A completion signal's timestamps.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    pub start: u64,
    pub end: u64,
}

/// The end of a packet: release fence, timestamps, decrement, mailbox, interrupt. A null handle is no signal.
pub fn complete(shared: &Shared, bus: &Bus, handle: u64, times: Option<Times>) -> Result<(), BusFault> {
    if handle == 0 {
        return Ok(());
    }
    fence(Ordering::SeqCst);
    if let Some(times) = times {
        bus.store_u64(handle.wrapping_add(signal::START_TS as u64), times.start, "start_ts of the completion signal")?;
        bus.store_u64(handle.wrapping_add(signal::END_TS as u64), times.end, "end_ts of the completion signal")?;
    }
    notify(shared, bus, handle, "completion signal", |value| bus.add_i64(value, -1, "value of the completion signal"))
        .map(|old| {
            let new = old.wrapping_sub(1);
            shared.setup.kernel.tracer.emit(|| Event::Signal { va: handle, old, new, by: "gpu" });
        })
}

/// Sets bits of `queue_inactive_signal`.
pub fn set_bits(shared: &Shared, bus: &Bus, handle: u64, bits: u64) -> Result<(), BusFault> {
    notify(shared, bus, handle, "queue_inactive_signal", |value| {
        bus.or_i64(value, bits as i64, "value of queue_inactive_signal")
    })
    .map(|old| {
        let new = old | bits as i64;
        shared.setup.kernel.tracer.emit(|| Event::Signal { va: handle, old, new, by: "gpu" });
    })
}

/// Changes a signal's value, then writes its mailbox and interrupts. Mailbox and event id are read first: once the
/// value changes, the host may reuse the signal.
fn notify(
    shared: &Shared,
    bus: &Bus,
    handle: u64,
    what: &'static str,
    change: impl FnOnce(u64) -> Result<i64, BusFault>,
) -> Result<i64, BusFault> {
    let mailbox = bus.load_u64(handle.wrapping_add(signal::EVENT_MAILBOX_PTR as u64), what)?;
    let event_id = bus.load_u32(handle.wrapping_add(signal::EVENT_ID as u64), what)?;
    let old = change(handle.wrapping_add(signal::VALUE as u64))?;
    if mailbox != 0 {
        bus.store_u64(mailbox, u64::from(event_id), "event mailbox of the signal")?;
        // An end-of-pipe interrupt carries the whole id.
        shared.interrupt(event_id, 32);
    }
    // Other queues may wait for this signal.
    shared.setup.bell.ring();
    Ok(old)
}

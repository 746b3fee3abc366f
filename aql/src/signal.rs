//! `amd_signal_t`: 64 bytes, 64-byte aligned (`amd_hsa_signal.h`).
//!
//! On completion of a packet the processor does the release fence, writes the timestamps if the queue has profiling on,
//! subtracts 1 from `value` atomically, and, when `event_mailbox_ptr` is not 0, stores `event_id` there and raises an
//! interrupt with that id. A mailbox of 0 means no interrupt: the waiter has to look at the value.

use crate::bytes::{get, put};

/// Bytes of the structure, and its alignment.
pub const SIGNAL_BYTES: usize = 64;

/// Offset of `kind`, i64.
pub const KIND: usize = 0x00;
/// Offset of `value` (i64), or of `hardware_doorbell_ptr` for a doorbell.
pub const VALUE: usize = 0x08;
/// Offset of `event_mailbox_ptr`, u64.
pub const EVENT_MAILBOX_PTR: usize = 0x10;
/// Offset of `event_id`, u32.
pub const EVENT_ID: usize = 0x18;
/// Offset of `start_ts`, u64: GPU ticks when the packet became active.
pub const START_TS: usize = 0x20;
/// Offset of `end_ts`, u64: GPU ticks when it completed.
pub const END_TS: usize = 0x28;
/// Offset of `queue_ptr`, u64: the `amd_queue_t` of a doorbell.
pub const QUEUE_PTR: usize = 0x30;

/// `amd_signal_kind_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(i64)]
pub enum SignalKind {
    /// Not a signal.
    #[default]
    Invalid = 0,
    /// A value in memory.
    User = 1,
    /// A 64-bit hardware doorbell (gfx9 and later).
    Doorbell = -1,
    /// A 32-bit hardware doorbell (gfx7 and gfx8).
    LegacyDoorbell = -2,
}

impl SignalKind {
    /// The kind with this number; none if there is no such kind.
    pub fn from_raw(raw: i64) -> Option<SignalKind> {
        Some(match raw {
            0 => SignalKind::Invalid,
            1 => SignalKind::User,
            -1 => SignalKind::Doorbell,
            -2 => SignalKind::LegacyDoorbell,
            _ => return None,
        })
    }
}

/// The structure, to build its initial bytes or to look at them. The live one in shared memory is read and written with
/// atomics at the offsets above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct AmdSignal {
    /// What it is.
    pub kind: SignalKind,
    /// The value of a user signal; the address of the doorbell, as bits, of a doorbell.
    pub value: i64,
    /// Slot of the event page, or 0 for a signal nobody sleeps on.
    pub event_mailbox_ptr: u64,
    /// KFD event id stored to the mailbox.
    pub event_id: u32,
    /// GPU ticks.
    pub start_ts: u64,
    /// GPU ticks.
    pub end_ts: u64,
    /// `amd_queue_t` of a doorbell.
    pub queue_ptr: u64,
}

impl AmdSignal {
    /// The 64 bytes, reserved fields zero.
    pub fn to_bytes(self) -> [u8; SIGNAL_BYTES] {
        let mut bytes = [0; SIGNAL_BYTES];
        put(&mut bytes, KIND, (self.kind as i64).to_le_bytes());
        put(&mut bytes, VALUE, self.value.to_le_bytes());
        put(&mut bytes, EVENT_MAILBOX_PTR, self.event_mailbox_ptr.to_le_bytes());
        put(&mut bytes, EVENT_ID, self.event_id.to_le_bytes());
        put(&mut bytes, START_TS, self.start_ts.to_le_bytes());
        put(&mut bytes, END_TS, self.end_ts.to_le_bytes());
        put(&mut bytes, QUEUE_PTR, self.queue_ptr.to_le_bytes());
        bytes
    }

    /// Reads 64 bytes; reserved fields are ignored. The error is the kind when it is not a known one.
    pub fn from_bytes(bytes: &[u8; SIGNAL_BYTES]) -> Result<AmdSignal, i64> {
        let kind = i64::from_le_bytes(get(bytes, KIND));
        Ok(AmdSignal {
            kind: SignalKind::from_raw(kind).ok_or(kind)?,
            value: i64::from_le_bytes(get(bytes, VALUE)),
            event_mailbox_ptr: u64::from_le_bytes(get(bytes, EVENT_MAILBOX_PTR)),
            event_id: u32::from_le_bytes(get(bytes, EVENT_ID)),
            start_ts: u64::from_le_bytes(get(bytes, START_TS)),
            end_ts: u64::from_le_bytes(get(bytes, END_TS)),
            queue_ptr: u64::from_le_bytes(get(bytes, QUEUE_PTR)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_lie_where_the_header_says() {
        let signal = AmdSignal {
            kind: SignalKind::LegacyDoorbell,
            value: -5,
            event_mailbox_ptr: 0x1111,
            event_id: 0x2222,
            start_ts: 0x3333,
            end_ts: 0x4444,
            queue_ptr: 0x5555,
        };
        let b = signal.to_bytes();
        let words: Vec<i64> = b.chunks(8).map(|w| i64::from_le_bytes(w.try_into().unwrap())).collect();
        assert_eq!(words, [-2, -5, 0x1111, 0x2222, 0x3333, 0x4444, 0x5555, 0]);
        assert_eq!(AmdSignal::from_bytes(&b), Ok(signal));
        let mut bad = b;
        bad[KIND] = 7;
        assert_eq!(AmdSignal::from_bytes(&bad), Err(i64::from_le_bytes([7, 255, 255, 255, 255, 255, 255, 255])));
    }

    #[test]
    fn a_waiting_signal_is_kind_and_value() {
        let b = AmdSignal { kind: SignalKind::User, value: 1, ..AmdSignal::default() }.to_bytes();
        assert_eq!((b[0], b[8]), (1, 1));
        assert!(b.iter().enumerate().all(|(i, &v)| v == 0 || i == 0 || i == 8));
    }
}

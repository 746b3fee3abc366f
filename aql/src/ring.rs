//! The ring protocol (HSA PSA 1.2 §2.8.3): reserve slots, write bodies, then headers, then ring the doorbell.
//!
//! Indices count packets since the queue was created and are never masked; the slot of index `i` is `i % packets`.
//! `write_dispatch_id` counts what producers have taken, `read_dispatch_id` what the packet processor has. A slot may
//! be written when `index - read_dispatch_id < packets`. The processor leaves a slot with the header INVALID, and stops
//! at a slot whose header is INVALID, so a packet exists from the moment its header is stored, and that store comes
//! last.

use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::PACKET_BYTES;
use crate::header::PacketType;
use crate::packet::BarrierAnd;

/// The smallest ring the hardware takes: 2^8 dwords.
pub const MIN_PACKETS: u32 = 16;

/// The producers' side of an AQL ring in memory shared with a packet processor.
///
/// One producer uses [`Ring::publish`]: the write index follows the headers, so nobody ever sees an index that runs
/// ahead of its packet. Several producers share the ring by reference and use [`Ring::reserve`]: the write index is
/// advanced first, which the specification allows and the processor's stop at an INVALID header makes safe.
pub struct Ring {
    slots: *mut u8,
    write_dispatch_id: *mut u64,
    read_dispatch_id: *mut u64,
    packets: u64,
}

// SAFETY: the memory is reached by atomics only, and is valid from any thread while the ring lives (Ring::new).
unsafe impl Send for Ring {}
// SAFETY: as above; a slot is written only by the producer that reserved it.
unsafe impl Sync for Ring {}

/// The ring is full: what a wait closure is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    /// Packets ever reserved.
    pub write_index: u64,
    /// Packets the processor has taken.
    pub read_index: u64,
    /// Packets that have to fit.
    pub wanted: u32,
    /// Packets in the ring.
    pub packets: u32,
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Full { write_index, read_index, wanted, packets } = self;
        let used = write_index.wrapping_sub(*read_index);
        write!(
            f,
            "{used} of {packets} slots in use (write index {write_index}, read index {read_index}), {wanted} wanted"
        )
    }
}

/// Why the ring could not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RingError {
    /// The size is not one the hardware can have.
    #[error("ring of {packets} packets: must be a power of two, {MIN_PACKETS} at least")]
    Size {
        /// Packets.
        packets: u32,
    },
    /// An address is zero or lacks its alignment.
    #[error("{what} at {address:#x}: must not be null and must be {align}-byte aligned")]
    Address {
        /// Which of the three.
        what: &'static str,
        /// Its address.
        address: usize,
        /// Bytes.
        align: usize,
    },
    /// More packets at once than the ring has slots, or none.
    #[error("{wanted} packets at once in a ring of {packets}: 1 to {packets} can be")]
    Batch {
        /// Packets to publish.
        wanted: usize,
        /// Packets in the ring.
        packets: u32,
    },
    /// The wait for space was ended by the caller.
    #[error("the ring stayed full: {0}")]
    Full(Full),
    /// The read index is not within a ring's length of the write index, so one of them is not what it seems.
    #[error(
        "read index {read_index} and write index {write_index} differ by more than the ring's {packets} packets: \
         read_dispatch_id or write_dispatch_id was overwritten"
    )]
    Indices {
        /// `write_dispatch_id`.
        write_index: u64,
        /// `read_dispatch_id`.
        read_index: u64,
        /// Packets in the ring.
        packets: u32,
    },
}

impl Ring {
    /// A ring of `packets` slots at `slots`. Its packet processor need not exist yet.
    ///
    /// # Safety
    /// As long as the ring lives, `slots` points to `packets` × 64 bytes and the others to 8 bytes each, all readable
    /// and writable from any thread, and everybody in this process reaches them by atomic operations only.
    pub unsafe fn new(
        slots: *mut u8,
        write_dispatch_id: *mut u64,
        read_dispatch_id: *mut u64,
        packets: u32,
    ) -> Result<Ring, RingError> {
        if packets < MIN_PACKETS || !packets.is_power_of_two() {
            return Err(RingError::Size { packets });
        }
        let addresses = [
            ("ring", slots as usize, PACKET_BYTES),
            ("write_dispatch_id", write_dispatch_id as usize, 8),
            ("read_dispatch_id", read_dispatch_id as usize, 8),
        ];
        for (what, address, align) in addresses {
            if address == 0 || address % align != 0 {
                return Err(RingError::Address { what, address, align });
            }
        }
        Ok(Ring { slots, write_dispatch_id, read_dispatch_id, packets: u64::from(packets) })
    }

    /// Sets every header to INVALID, as it has to be before the queue is created.
    pub fn clear(&mut self) {
        for index in 0..self.packets {
            self.header(index).store(PacketType::Invalid as u32, Ordering::Relaxed);
        }
    }

    /// Packets in the ring.
    pub fn packets(&self) -> u32 {
        self.packets as u32
    }

    /// Packets ever reserved.
    pub fn write_index(&self) -> u64 {
        self.write_dispatch_id().load(Ordering::Acquire)
    }

    /// Packets the processor has taken. It says nothing of their completion.
    pub fn read_index(&self) -> u64 {
        // SAFETY: not null, 8-byte aligned, valid while self lives and reached by atomics only (Ring::new).
        unsafe { AtomicU64::from_ptr(self.read_dispatch_id) }.load(Ordering::Acquire)
    }

    /// Byte offset in the ring of the slot of a packet.
    pub fn slot_offset(&self, index: u64) -> usize {
        (index % self.packets) as usize * PACKET_BYTES
    }

    /// Publishes packets in order, as the only producer: bodies, headers, then the write index. Returns the index of
    /// the last, which is the value for the doorbell.
    ///
    /// While the ring is full `wait` is called again and again; it may sleep, look for faults, and end the wait by
    /// returning false. Nothing is written then. The header and setup of a packet are its first 32 bits.
    ///
    /// A ring in device memory behind PCIe is written in this order only if the mapping keeps it: use an uncached or
    /// system-memory ring.
    pub fn publish(&mut self, packets: &[[u8; 64]], wait: impl FnMut(Full) -> bool) -> Result<u64, RingError> {
        let count = self.check_batch(packets.len())?;
        let first = self.wait_for_space(count, wait)?;
        let last = self.fill(first, packets);
        self.write_dispatch_id().store(last.wrapping_add(1), Ordering::Release);
        Ok(last)
    }

    /// Reserves `count` slots in a row, as one of several producers. Publish each of them, the sooner the better: the
    /// processor waits at the first that is missing.
    ///
    /// While the ring is full `wait` is called again and again, and ends the wait by returning false. The write index
    /// is advanced only when there is space, so a wait that ended leaves nothing behind.
    pub fn reserve(&self, count: u32, mut wait: impl FnMut(Full) -> bool) -> Result<Slots<'_>, RingError> {
        let count = self.check_batch(count as usize)?;
        loop {
            let first = self.wait_for_space(count, &mut wait)?;
            let end = first.wrapping_add(u64::from(count));
            // A failure means that another producer was first; look for space again.
            if self.write_dispatch_id().compare_exchange_weak(first, end, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                return Ok(Slots { ring: self, next: first, end });
            }
        }
    }

    fn write_dispatch_id(&self) -> &AtomicU64 {
        // SAFETY: not null, 8-byte aligned, valid while self lives and reached by atomics only (Ring::new).
        unsafe { AtomicU64::from_ptr(self.write_dispatch_id) }
    }

    fn check_batch(&self, wanted: usize) -> Result<u32, RingError> {
        match u32::try_from(wanted) {
            Ok(count) if count > 0 && u64::from(count) <= self.packets => Ok(count),
            _ => Err(RingError::Batch { wanted, packets: self.packets() }),
        }
    }

    /// Returns the write index that was seen with `count` free slots behind it.
    fn wait_for_space(&self, count: u32, mut wait: impl FnMut(Full) -> bool) -> Result<u64, RingError> {
        loop {
            // The read index first: it can only grow, and never past the write index read after it.
            let read_index = self.read_index();
            let write_index = self.write_index();
            let used = write_index.wrapping_sub(read_index);
            if used > self.packets {
                // Or the processor and other producers went on between the two reads.
                if self.read_index() != read_index {
                    continue;
                }
                return Err(RingError::Indices { write_index, read_index, packets: self.packets() });
            }
            if used.saturating_add(u64::from(count)) <= self.packets {
                return Ok(write_index);
            }
            let full = Full { write_index, read_index, wanted: count, packets: self.packets() };
            if !wait(full) {
                return Err(RingError::Full(full));
            }
        }
    }

    /// Bodies, then headers in order. Returns the last index.
    fn fill(&self, first: u64, packets: &[[u8; 64]]) -> u64 {
        for (i, packet) in packets.iter().enumerate() {
            self.write_body(first.wrapping_add(i as u64), packet);
        }
        let mut last = first;
        for (i, packet) in packets.iter().enumerate() {
            last = first.wrapping_add(i as u64);
            self.write_header(last, packet);
        }
        last
    }

    fn write_body(&self, index: u64, packet: &[u8; 64]) {
        for (i, dword) in packet.chunks_exact(4).enumerate().skip(1) {
            let value = u32::from_ne_bytes([dword[0], dword[1], dword[2], dword[3]]);
            self.dword(index, i).store(value, Ordering::Relaxed);
        }
    }

    /// One 32-bit store that nothing written before can pass.
    fn write_header(&self, index: u64, packet: &[u8; 64]) {
        let value = u32::from_ne_bytes([packet[0], packet[1], packet[2], packet[3]]);
        self.header(index).store(value, Ordering::Release);
    }

    fn header(&self, index: u64) -> &AtomicU32 {
        self.dword(index, 0)
    }

    /// Dword `i` (below 16) of the slot of a packet.
    fn dword(&self, index: u64, i: usize) -> &AtomicU32 {
        debug_assert!(i < PACKET_BYTES / 4);
        let offset = self.slot_offset(index) + 4 * i;
        // SAFETY: the offset is below packets × 64 and a multiple of 4, so the dword is inside the ring, which is
        // 64-byte aligned, valid while self lives, and reached by atomics only (Ring::new).
        unsafe { AtomicU32::from_ptr(self.slots.add(offset).cast()) }
    }
}

/// Slots reserved by one of several producers.
///
/// Dropped before all of them are published, the rest become barrier-AND packets that wait for nothing, so that the
/// queue does not stand still for ever.
#[must_use = "reserved slots stop the queue until they are published"]
pub struct Slots<'r> {
    ring: &'r Ring,
    next: u64,
    end: u64,
}

impl Slots<'_> {
    /// Index of the next slot to publish.
    pub fn next_index(&self) -> u64 {
        self.next
    }

    /// Slots not yet published.
    pub fn remaining(&self) -> u64 {
        self.end.wrapping_sub(self.next)
    }

    /// Publishes the next packets in order. Returns the index of the last, which is the value for the doorbell; none
    /// when there are more packets than slots, or no packets, and nothing is written then.
    pub fn publish(&mut self, packets: &[[u8; 64]]) -> Option<u64> {
        if packets.is_empty() || packets.len() as u64 > self.remaining() {
            return None;
        }
        let last = self.ring.fill(self.next, packets);
        self.next = last.wrapping_add(1);
        Some(last)
    }
}

impl Drop for Slots<'_> {
    fn drop(&mut self) {
        let no_op = BarrierAnd::default().to_bytes();
        while self.publish(&[no_op]).is_some() {}
    }
}

#[cfg(test)]
mod tests;

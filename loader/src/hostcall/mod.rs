//! Hostcall: how ROCm's device libraries ask the host for something while a kernel runs. HIP's `printf` and device
//! `malloc` are built on it.
//!
//! A wave takes a packet from a stack of free ones, fills it (64 lanes of eight words), pushes it to a stack of ready ones
//! and waits until the host clears the packet's READY bit. A stack is one word: the index of its first packet, with a
//! tag in the bits above that changes with each push, so that a stale word never matches.

mod calls;

pub use calls::Calls;

use crate::Error;
use crate::rpc::{DeviceMemory, Output};
use aql::AmdSignal;
use kfd::{Buffer, Device, Kind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The parts of the shared buffer: its header, the doorbell signal, a header for each packet, the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    packets: u64,
}

/// Words of the buffer's header, in bytes.
mod word {
    pub const HEADERS: u64 = 0;
    pub const PAYLOADS: u64 = 8;
    pub const DOORBELL: u64 = 16;
    pub const FREE_STACK: u64 = 24;
    pub const READY_STACK: u64 = 32;
    pub const INDEX_MASK: u64 = 40;
}

/// Fields of a packet's header.
mod header {
    pub const NEXT: u64 = 0;
    pub const ACTIVE_MASK: u64 = 8;
    pub const SERVICE: u64 = 16;
    pub const CONTROL: u64 = 20;
    pub const BYTES: u64 = 24;
}

/// The device waits for this bit of `control` to go.
const READY: u32 = 1;
const SIGNAL: u64 = 64;
const PACKET_HEADERS: u64 = 128;
/// 64 lanes of eight words.
const PAYLOAD_BYTES: u64 = 4096;

impl Layout {
    /// For so many waves that run at the same time: the device takes a packet without looking whether one is left.
    pub fn new(waves: u64) -> Layout {
        Layout { packets: waves.clamp(2, 1 << 20) }
    }

    /// Bytes of the buffer.
    pub fn size(&self) -> u64 {
        self.payloads() + PAYLOAD_BYTES * self.packets
    }

    fn payloads(&self) -> u64 {
        (PACKET_HEADERS + header::BYTES * self.packets).next_multiple_of(64)
    }

    /// Bits of a stack's word that are the index; those above are the tag.
    fn index_mask(&self) -> u64 {
        self.packets.next_power_of_two() - 1
    }

    /// The start of the buffer for device address `va`, up to the payloads.
    fn block(&self, va: u64) -> Vec<u8> {
        let mut block = vec![0; self.payloads() as usize];
        let mut put = |at: u64, value: u64| {
            if let Some(place) = block.get_mut(at as usize..at as usize + 8) {
                place.copy_from_slice(&value.to_le_bytes());
            }
        };
        put(word::HEADERS, va + PACKET_HEADERS);
        put(word::PAYLOADS, va + self.payloads());
        put(word::DOORBELL, va + SIGNAL);
        put(word::FREE_STACK, self.packets - 1);
        put(word::READY_STACK, 0);
        put(word::INDEX_MASK, self.index_mask());
        // 0 ends a stack, so packet 0 is known by its tag.
        put(PACKET_HEADERS + header::BYTES, self.index_mask() + 1);
        for packet in 2..self.packets {
            put(PACKET_HEADERS + header::BYTES * packet, packet - 1);
        }
        block
    }
}

/// The host's side.
pub struct Server {
    buffer: Buffer,
    layout: Layout,
    calls: Calls,
}

impl Server {
    /// Makes the buffer.
    pub fn new(device: &Arc<Device>, layout: Layout, memory: Box<dyn DeviceMemory>) -> Result<Server, Error> {
        let buffer = Buffer::new(device, Kind::Control, layout.size(), "hostcall buffer")?;
        buffer.write_bytes(0, &layout.block(buffer.va().0))?;
        // No event behind it: the host looks at the stack of ready packets.
        buffer.write_bytes(SIGNAL, &AmdSignal::default().to_bytes())?;
        buffer.atomic_u64(SIGNAL + aql::signal::VALUE as u64)?.store(1, Ordering::Relaxed);
        Ok(Server { buffer, layout, calls: Calls::new(memory) })
    }

    /// Device address.
    pub fn va(&self) -> u64 {
        self.buffer.va().0
    }

    /// Serves the packets that are ready; returns whether there were any.
    pub fn poll(&mut self, output: &mut dyn Output) -> Result<bool, Error> {
        let ready = self.buffer.atomic_u64(word::READY_STACK)?.swap(0, Ordering::Acquire);
        let mut at = ready;
        let mut left = self.layout.packets;
        while at != 0 {
            let packet = at & self.layout.index_mask();
            if packet >= self.layout.packets || left == 0 {
                self.calls.complain(format!(
                    "hostcall: {at:#x} is not a packet: the kernel wrote over the stack of ready ones"
                ));
                break;
            }
            left -= 1;
            let base = PACKET_HEADERS + header::BYTES * packet;
            let next = self.buffer.atomic_u64(base + header::NEXT)?.load(Ordering::Relaxed);
            let mut active = self.buffer.atomic_u64(base + header::ACTIVE_MASK)?.load(Ordering::Relaxed);
            let service = self.buffer.atomic_u32(base + header::SERVICE)?.load(Ordering::Relaxed);
            while active != 0 {
                let lane = u64::from(active.trailing_zeros());
                active &= active - 1;
                let slot = self.layout.payloads() + PAYLOAD_BYTES * packet + 64 * lane;
                let mut words = [0; 8];
                for (word, at) in words.iter_mut().zip((slot..).step_by(8)) {
                    *word = self.buffer.atomic_u64(at)?.load(Ordering::Relaxed);
                }
                let answer = self.calls.serve(service, &words, output);
                for (word, at) in answer.iter().zip((slot..).step_by(8)) {
                    self.buffer.atomic_u64(at)?.store(*word, Ordering::Relaxed);
                }
            }
            // From here on the packet is the device's again.
            self.buffer.atomic_u32(base + header::CONTROL)?.fetch_and(!READY, Ordering::Release);
            at = next;
        }
        Ok(ready != 0)
    }

    /// What went wrong since the last time, one line each.
    pub fn take_complaints(&mut self) -> Vec<String> {
        self.calls.take_complaints()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_free_stack_holds_every_packet_once() {
        for waves in [0, 2, 3, 4, 5, 64, 100] {
            let layout = Layout::new(waves);
            let block = layout.block(0x10000);
            let load = |at: u64| u64::from_le_bytes(block[at as usize..at as usize + 8].try_into().unwrap());
            assert_eq!(load(word::PAYLOADS) % 64, 0);
            let (mask, mut at, mut seen) = (load(word::INDEX_MASK), load(word::FREE_STACK), Vec::new());
            while at != 0 {
                seen.push(at & mask);
                at = load(PACKET_HEADERS + header::BYTES * (at & mask) + header::NEXT);
            }
            seen.sort();
            assert_eq!(seen, (0..layout.packets).collect::<Vec<_>>(), "{waves} waves");
        }
    }
}

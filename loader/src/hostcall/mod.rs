//! Hostcall: how ROCm's device libraries ask the host for something while a kernel runs. HIP's `printf` and device
//! `malloc` are built on it.
//!
//! A wave takes a packet, fills it (64 lanes of eight words), passes it to the host and waits for the answer. There are two
//! forms of the buffer, and nothing in an image says which it was linked for ([`Form`]).

mod calls;

pub use calls::{Calls, Report};

use crate::Error;
use crate::gpu::Bell;
use crate::rpc::{DeviceMemory, Output};
use aql::AmdSignal;
use kfd::{Buffer, Device, Kind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How the buffer is laid out and how packets change hands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// A stack of free packets and one of ready ones. A stack is one word: the index of its first packet, with a tag in the
    /// bits above that changes with each push, so that a stale word never matches. The host takes all ready packets at once
    /// and clears the READY bit of each.
    #[default]
    Stacks,
    /// A phase of the device and one of the host for each packet, which is the host's while they differ, and a bit for each
    /// packet that a wave has: newer device libraries of ROCm (`hostcall_impl.cl`).
    Phases,
}

/// The parts of the shared buffer: its header, the doorbell signal, what the form keeps of each packet, the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    form: Form,
    packets: u64,
}

/// Words of the buffer's header, in bytes.
mod stacks {
    pub const HEADERS: u64 = 0;
    pub const PAYLOADS: u64 = 8;
    pub const DOORBELL: u64 = 16;
    pub const FREE_STACK: u64 = 24;
    pub const READY_STACK: u64 = 32;
    pub const INDEX_MASK: u64 = 40;
}

/// The same of the other form.
mod phases {
    pub const DEVICE_PHASE: u64 = 0;
    pub const HOST_PHASE: u64 = 8;
    pub const OCCUPIED: u64 = 16;
    pub const HEADERS: u64 = 24;
    pub const PAYLOADS: u64 = 32;
    pub const DOORBELL: u64 = 40;
    pub const PACKETS: u64 = 48;
    /// A packet's header: active lanes, service.
    pub const HEADER_BYTES: u64 = 16;
}

/// Fields of a packet's header between stacks.
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
const TABLES: u64 = 128;
/// 64 lanes of eight words.
const PAYLOAD_BYTES: u64 = 4096;

impl Layout {
    /// For so many waves that run at the same time: between stacks the device takes a packet without looking whether one is
    /// left.
    pub fn new(form: Form, waves: u64) -> Layout {
        Layout { form, packets: waves.clamp(2, 1 << 20) }
    }

    /// Bytes of the buffer.
    pub fn size(&self) -> u64 {
        self.payloads() + PAYLOAD_BYTES * self.packets
    }

    /// Words of one phase for all packets, in bytes, and of one bit for all.
    fn phase_bytes(&self) -> (u64, u64) {
        ((4 * self.packets).next_multiple_of(64), (self.packets.div_ceil(32) * 4).next_multiple_of(64))
    }

    fn headers(&self) -> u64 {
        let (phase, bits) = self.phase_bytes();
        match self.form {
            Form::Stacks => TABLES,
            Form::Phases => TABLES + 2 * phase + bits,
        }
    }

    fn payloads(&self) -> u64 {
        let bytes = match self.form {
            Form::Stacks => header::BYTES,
            Form::Phases => phases::HEADER_BYTES,
        };
        (self.headers() + bytes * self.packets).next_multiple_of(64)
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
        let phase = self.phase_bytes().0;
        match self.form {
            Form::Stacks => {
                put(stacks::HEADERS, va + self.headers());
                put(stacks::PAYLOADS, va + self.payloads());
                put(stacks::DOORBELL, va + SIGNAL);
                put(stacks::FREE_STACK, self.packets - 1);
                put(stacks::READY_STACK, 0);
                put(stacks::INDEX_MASK, self.index_mask());
                // 0 ends a stack, so packet 0 is known by its tag.
                put(self.headers() + header::BYTES, self.index_mask() + 1);
                for packet in 2..self.packets {
                    put(self.headers() + header::BYTES * packet, packet - 1);
                }
            }
            Form::Phases => {
                put(phases::DEVICE_PHASE, va + TABLES);
                put(phases::HOST_PHASE, va + TABLES + phase);
                put(phases::OCCUPIED, va + TABLES + 2 * phase);
                put(phases::HEADERS, va + self.headers());
                put(phases::PAYLOADS, va + self.payloads());
                put(phases::DOORBELL, va + SIGNAL);
                put(phases::PACKETS, self.packets);
            }
        }
        block
    }
}

/// The host's side.
pub struct Server {
    buffer: Buffer,
    layout: Layout,
    calls: Calls,
    used: bool,
}

impl Server {
    /// Makes the buffer. Its doorbell signal has the bell's event behind it.
    pub(crate) fn new(
        device: &Arc<Device>,
        layout: Layout,
        bell: &Bell,
        memory: Box<dyn DeviceMemory>,
    ) -> Result<Server, Error> {
        let buffer = Buffer::new(device, Kind::Control, layout.size(), "hostcall buffer")?;
        buffer.write_bytes(0, &layout.block(buffer.va().0))?;
        // The device adds one for each call; what is in the packets says which. Its kind stays 0, which no device library
        // looks at: one of the other form would take the bits of it for occupied packets and wait for ever.
        let signal =
            AmdSignal { value: 1, event_mailbox_ptr: bell.mailbox, event_id: bell.event, ..AmdSignal::default() };
        buffer.write_bytes(SIGNAL, &signal.to_bytes())?;
        Ok(Server { buffer, layout, calls: Calls::new(memory), used: false })
    }

    /// Device address.
    pub fn va(&self) -> u64 {
        self.buffer.va().0
    }

    /// Serves the packets that are ready; returns whether there were any.
    pub fn poll(&mut self, output: &mut dyn Output) -> Result<bool, Error> {
        let served = match self.layout.form {
            Form::Stacks => self.poll_stacks(output),
            Form::Phases => self.poll_phases(output),
        }?;
        self.used |= served;
        Ok(served)
    }

    /// For a kernel that went wrong and has never got a packet to the host: that the image may know the other form.
    pub fn hint(&self) -> Option<String> {
        let (this, other) = match self.layout.form {
            Form::Stacks => ("stacks", "phases"),
            Form::Phases => ("phases", "stacks"),
        };
        (!self.used).then(|| {
            format!(
                "the image may use hostcall and no call has arrived: if its device library knows the other form of the buffer, \
                 this is what happens; try --hostcall {other} (it was {this})"
            )
        })
    }

    fn poll_stacks(&mut self, output: &mut dyn Output) -> Result<bool, Error> {
        let ready = self.buffer.atomic_u64(stacks::READY_STACK)?.swap(0, Ordering::Acquire);
        let mut at = ready;
        let mut left = self.layout.packets;
        while at != 0 {
            let packet = at & self.layout.index_mask();
            if packet >= self.layout.packets || left == 0 {
                self.calls.complain(format!(
                    "hostcall: {at:#x} is not a packet: the kernel wrote over the stack of ready ones, or was linked for \
                     the other form of the buffer (--hostcall phases)"
                ));
                break;
            }
            left -= 1;
            let base = self.layout.headers() + header::BYTES * packet;
            let next = self.buffer.atomic_u64(base + header::NEXT)?.load(Ordering::Relaxed);
            let active = self.buffer.atomic_u64(base + header::ACTIVE_MASK)?.load(Ordering::Relaxed);
            let service = self.buffer.atomic_u32(base + header::SERVICE)?.load(Ordering::Relaxed);
            self.serve(packet, active, service, output)?;
            // From here on the packet is the device's again.
            self.buffer.atomic_u32(base + header::CONTROL)?.fetch_and(!READY, Ordering::Release);
            at = next;
        }
        Ok(ready != 0)
    }

    fn poll_phases(&mut self, output: &mut dyn Output) -> Result<bool, Error> {
        let mut served = false;
        for packet in 0..self.layout.packets {
            let device_at = TABLES + 4 * packet;
            let device = self.buffer.atomic_u32(device_at)?.load(Ordering::Acquire);
            let host_at = device_at + self.layout.phase_bytes().0;
            if self.buffer.atomic_u32(host_at)?.load(Ordering::Relaxed) == device {
                continue;
            }
            let base = self.layout.headers() + phases::HEADER_BYTES * packet;
            let active = self.buffer.atomic_u64(base)?.load(Ordering::Relaxed);
            let service = self.buffer.atomic_u32(base + 8)?.load(Ordering::Relaxed);
            self.serve(packet, active, service, output)?;
            self.buffer.atomic_u32(host_at)?.store(device, Ordering::Release);
            served = true;
        }
        Ok(served)
    }

    /// Serves each lane of a packet, lowest first.
    fn serve(&mut self, packet: u64, mut active: u64, service: u32, output: &mut dyn Output) -> Result<(), Error> {
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
        Ok(())
    }

    /// Whether the address sanitizer found something after which nothing goes on.
    pub fn is_stopped(&self) -> bool {
        self.calls.is_stopped()
    }

    /// What the address sanitizer found since the last time.
    pub fn take_reports(&mut self) -> Vec<Report> {
        self.calls.take_reports()
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
            let layout = Layout::new(Form::Stacks, waves);
            let block = layout.block(0x10000);
            let load = |at: u64| u64::from_le_bytes(block[at as usize..at as usize + 8].try_into().unwrap());
            assert_eq!(load(stacks::PAYLOADS) % 64, 0);
            let (mask, mut at, mut seen) = (load(stacks::INDEX_MASK), load(stacks::FREE_STACK), Vec::new());
            while at != 0 {
                seen.push(at & mask);
                at = load(layout.headers() + header::BYTES * (at & mask) + header::NEXT);
            }
            seen.sort();
            assert_eq!(seen, (0..layout.packets).collect::<Vec<_>>(), "{waves} waves");
        }
    }

    #[test]
    fn the_parts_of_the_other_form_follow_one_another() {
        for waves in [0, 2, 33, 100] {
            let layout = Layout::new(Form::Phases, waves);
            let block = layout.block(0x10000);
            let load = |at: u64| u64::from_le_bytes(block[at as usize..at as usize + 8].try_into().unwrap()) - 0x10000;
            let count = u32::from_le_bytes(block[48..52].try_into().unwrap());
            let places =
                [phases::DEVICE_PHASE, phases::HOST_PHASE, phases::OCCUPIED, phases::HEADERS, phases::PAYLOADS];
            let bytes = [4 * count, 4 * count, count.div_ceil(32) * 4, 16 * count, 4096 * count];
            let mut end = TABLES;
            for (place, bytes) in places.into_iter().zip(bytes) {
                assert!(load(place) >= end && load(place).is_multiple_of(64), "{waves} waves");
                end = load(place) + u64::from(bytes);
            }
            assert_eq!((end, load(phases::DOORBELL)), (layout.size(), SIGNAL));
        }
    }
}

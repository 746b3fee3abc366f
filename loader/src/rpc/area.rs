//! The shared area: layout and access.

use crate::gpu::Bell;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// Which release of the protocol an image was built for, told by the size of its client structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abi {
    /// LLVM 19 to 22: a client of 552 bytes, at most 4096 ports.
    Llvm19,
    /// Later than 22: a client of 2096 bytes, at most 16384 ports, a doorbell of 64 bytes before the mailboxes.
    Doorbell,
}

impl Abi {
    /// The protocol of a client structure of this size.
    pub fn from_client_size(size: u64) -> Option<Abi> {
        match size {
            552 => Some(Abi::Llvm19),
            2096 => Some(Abi::Doorbell),
            _ => None,
        }
    }

    /// Most ports a client structure has lock bits for.
    pub fn max_ports(self) -> u32 {
        match self {
            Abi::Llvm19 => 4096,
            Abi::Doorbell => 16384,
        }
    }

    fn prefix(self) -> u64 {
        match self {
            Abi::Llvm19 => 0,
            Abi::Doorbell => 64,
        }
    }
}

/// Offsets within the area for a number of ports and lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Protocol.
    pub abi: Abi,
    /// Ports.
    pub ports: u32,
    /// Lanes of the widest wave of the image.
    pub lanes: u32,
}

impl Region {
    /// Bytes.
    pub fn size(&self) -> u64 {
        self.packets() + 64 * u64::from(self.ports) * u64::from(self.lanes)
    }

    /// The mailbox that the server writes.
    fn server_mailbox(&self) -> u64 {
        self.abi.prefix()
    }

    /// The mailbox that the client writes.
    fn client_mailbox(&self) -> u64 {
        self.server_mailbox() + 4 * u64::from(self.ports)
    }

    fn headers(&self) -> u64 {
        self.client_mailbox() + 4 * u64::from(self.ports)
    }

    fn packets(&self) -> u64 {
        self.headers() + 16 * u64::from(self.ports)
    }

    /// The client structure to store into the image, for an area at device address `va`. The lock bitmap that follows
    /// in the image stays zero. The doorbell of later releases is at the start of the area; as long as it is all zeros
    /// nobody rings it.
    pub fn client(&self, va: u64) -> Vec<u8> {
        let mut fields = vec![u64::from(self.ports)];
        if self.abi == Abi::Doorbell {
            fields.push(va);
        }
        for offset in [self.server_mailbox(), self.client_mailbox(), self.headers(), self.packets()] {
            fields.push(va + offset);
        }
        fields.iter().flat_map(|field| field.to_le_bytes()).collect()
    }
}

/// The doorbell at the start of the area: how a client wakes a host that sleeps.
mod doorbell {
    /// Address of the number of open calls; null when nobody wants to be woken.
    pub const VALUE_POINTER: u64 = 0;
    /// Slot of the event page.
    pub const MAILBOX_POINTER: u64 = 8;
    /// What the client stores there and sends with its interrupt when it makes the number one.
    pub const EVENT: u64 = 16;
    /// The number of open calls. The protocol leaves its place to the host.
    pub const VALUE: u64 = 32;
}

/// The area as the host maps it. Clones share it.
#[derive(Clone)]
pub struct Area {
    region: Region,
    base: *mut u8,
    has_bell: bool,
    flips: Rc<Cell<u64>>,
    _keep: Arc<dyn Send + Sync>,
}

impl Area {
    /// The area at `base`, whose mapping `keep` holds.
    ///
    /// # Safety
    /// `base` must be 16-byte aligned and valid for `region.size()` bytes while `keep` lives, shared with nothing but
    /// the device.
    pub unsafe fn new(region: Region, base: *mut u8, keep: Arc<dyn Send + Sync>) -> Area {
        Area { region, base, has_bell: false, flips: Rc::default(), _keep: keep }
    }

    /// Sets the doorbell of an area at device address `va`. Does nothing for a protocol without one.
    pub(crate) fn set_bell(&mut self, va: u64, bell: &Bell) {
        self.has_bell = self.region.abi == Abi::Doorbell && bell.mailbox != 0;
        if self.has_bell {
            self.long(doorbell::MAILBOX_POINTER).store(bell.mailbox, Ordering::Relaxed);
            self.word(doorbell::EVENT).store(bell.event, Ordering::Relaxed);
            self.long(doorbell::VALUE_POINTER).store(va + doorbell::VALUE, Ordering::Release);
        }
    }

    /// Calls that clients have opened and the server has not closed; None where they are not counted.
    pub(super) fn open_calls(&self) -> Option<u64> {
        self.has_bell.then(|| self.long(doorbell::VALUE).load(Ordering::Acquire))
    }

    /// Counts a call that the server has closed.
    pub(super) fn closed(&self) {
        if self.has_bell {
            self.long(doorbell::VALUE).fetch_sub(1, Ordering::Release);
        }
    }

    /// How often the server passed a port to its client.
    pub fn flips(&self) -> u64 {
        self.flips.get()
    }

    /// Ports.
    pub fn ports(&self) -> u32 {
        self.region.ports
    }

    /// Lanes.
    pub fn lanes(&self) -> u32 {
        self.region.lanes
    }

    fn word(&self, offset: u64) -> &AtomicU32 {
        debug_assert!(offset + 4 <= self.region.size() && offset.is_multiple_of(4));
        // SAFETY: callers pass offsets of the region's own tables, so the word lies inside the mapping that `keep`
        // holds, aligned; the device changes it concurrently, hence the atomic.
        unsafe { AtomicU32::from_ptr(self.base.add(offset as usize).cast()) }
    }

    /// Of the doorbell, where there is one.
    fn long(&self, offset: u64) -> &AtomicU64 {
        debug_assert!(offset + 8 <= self.region.abi.prefix() && offset.is_multiple_of(8));
        // SAFETY: callers pass offsets of the doorbell's fields in an area that has one, so these bytes lie inside the
        // mapping that `keep` holds, aligned; the device changes them concurrently, hence the atomic.
        unsafe { AtomicU64::from_ptr(self.base.add(offset as usize).cast()) }
    }

    /// Does the server own the port?
    pub fn server_owns(&self, port: u32) -> bool {
        let at = 4 * u64::from(port);
        let inbox = self.word(self.region.client_mailbox() + at).load(Ordering::Acquire);
        inbox != self.word(self.region.server_mailbox() + at).load(Ordering::Relaxed)
    }

    /// Passes the port to the client: what was stored to its packets becomes visible first.
    pub fn flip(&self, port: u32) {
        let mailbox = self.word(self.region.server_mailbox() + 4 * u64::from(port));
        self.flips.set(self.flips.get() + 1);
        fence(Ordering::Release);
        mailbox.store(u32::from(mailbox.load(Ordering::Relaxed) == 0), Ordering::Relaxed);
    }

    /// Lane mask and opcode of the call in a port.
    pub fn header(&self, port: u32) -> (u64, u32) {
        let at = self.region.headers() + 16 * u64::from(port);
        let load = |offset| self.word(at + offset).load(Ordering::Relaxed);
        let mask = u64::from(load(0)) | u64::from(load(4)) << 32;
        let lanes = if self.region.lanes == 64 { u64::MAX } else { (1 << self.region.lanes) - 1 };
        (mask & lanes, load(8))
    }

    /// A lane's packet.
    pub fn read(&self, port: u32, lane: u32) -> [u8; 64] {
        let at = self.packet(port, lane);
        let mut packet = [0; 64];
        for (index, bytes) in packet.chunks_exact_mut(4).enumerate() {
            bytes.copy_from_slice(&self.word(at + 4 * index as u64).load(Ordering::Relaxed).to_le_bytes());
        }
        packet
    }

    /// Stores the first bytes of a lane's packet, in whole words.
    pub fn write(&self, port: u32, lane: u32, bytes: &[u8]) {
        let at = self.packet(port, lane);
        for (index, chunk) in bytes.chunks(4).take(16).enumerate() {
            let mut word = [0; 4];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(at + 4 * index as u64).store(u32::from_le_bytes(word), Ordering::Relaxed);
        }
    }

    fn packet(&self, port: u32, lane: u32) -> u64 {
        let lane = lane.min(self.region.lanes - 1);
        self.region.packets() + 64 * (u64::from(port) * u64::from(self.region.lanes) + u64::from(lane))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_match_the_protocol() {
        let size = |abi, ports, lanes| Region { abi, ports, lanes }.size();
        assert_eq!(size(Abi::Llvm19, 4096, 32), 8_486_912);
        assert_eq!(size(Abi::Llvm19, 4096, 64), 16_875_520);
        assert_eq!(size(Abi::Doorbell, 16384, 32), 33_947_712);
        assert_eq!(size(Abi::Doorbell, 16384, 64), 67_502_144);
    }

    #[test]
    fn client_layouts() {
        let client = Region { abi: Abi::Llvm19, ports: 4, lanes: 32 }.client(0x1000);
        assert_eq!(client.len(), 40);
        assert_eq!(client[8..16], 0x1000u64.to_le_bytes(), "its inbox is the mailbox the server writes");
        assert_eq!(client[16..24], 0x1010u64.to_le_bytes());
        let client = Region { abi: Abi::Doorbell, ports: 4, lanes: 32 }.client(0x1000);
        assert_eq!((client.len(), &client[16..24]), (48, &0x1040u64.to_le_bytes()[..]));
    }
}

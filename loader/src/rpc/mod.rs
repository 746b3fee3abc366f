//! The host side of the remote procedure calls that LLVM's GPU libc makes.
//!
//! A program image holds a client structure whose pointers the host fills in before the first kernel runs. They lead to
//! one shared area: two mailboxes, a header and one packet a lane for every port. The server owns a port while its two
//! mailboxes differ. Each call runs here as a small state machine of its own, so that a lane that dies inside a call
//! never stops the others.

mod area;
mod calls;
mod files;
mod port;

pub use area::{Abi, Area, Region};
pub use files::Output;

use calls::Shared;
use port::Port;
use std::cell::RefCell;
use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// What a device asks for that only the loader can give.
pub trait DeviceMemory {
    /// Device memory of `size` bytes, 2 MiB aligned; none when there is no more.
    fn allocate(&mut self, size: u64) -> Option<u64>;
    /// Returns an allocation. Unknown addresses are ignored.
    fn free(&mut self, va: u64);
}

/// How a program ended by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// `exit` with this status.
    Exit(i32),
    /// `abort`.
    Abort,
}

/// What a pass over the ports found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Nothing changed.
    Idle,
    /// Some call moved on.
    Served,
    /// The program ended.
    Ended(End),
}

type Call = Pin<Box<dyn Future<Output = ()>>>;

/// Serves the calls of one program.
pub struct Server {
    area: Area,
    shared: Rc<RefCell<Shared>>,
    calls: Vec<(u32, Call)>,
    busy: HashSet<u32>,
}

impl Server {
    /// A server over `area`, which must already be zeroed.
    pub fn new(area: Area, output: Box<dyn Output>, memory: Box<dyn DeviceMemory>) -> Server {
        Server {
            area,
            shared: Rc::new(RefCell::new(Shared::new(output, memory))),
            calls: Vec::new(),
            busy: HashSet::new(),
        }
    }

    /// Looks at every port once and moves every call as far as its device side allows.
    pub fn poll(&mut self) -> Progress {
        let before = self.area.flips();
        for index in 0..self.area.ports() {
            if !self.busy.contains(&index) && self.area.server_owns(index) {
                self.busy.insert(index);
                let port = Port::open(self.area.clone(), index);
                self.calls.push((index, Box::pin(calls::serve(port, self.shared.clone()))));
            }
        }
        let mut context = Context::from_waker(Waker::noop());
        let (busy, shared) = (&mut self.busy, &self.shared);
        self.calls.retain_mut(|(index, call)| {
            let done = call.as_mut().poll(&mut context) == Poll::Ready(());
            if done {
                busy.remove(index);
            }
            !done
        });
        match shared.borrow().end {
            Some(end) => Progress::Ended(end),
            None if self.area.flips() != before => Progress::Served,
            None => Progress::Idle,
        }
    }

    /// What went wrong with calls since the last time, one line each.
    pub fn take_complaints(&mut self) -> Vec<String> {
        std::mem::take(&mut self.shared.borrow_mut().complaints)
    }
}

#[cfg(test)]
mod tests {
    //! A client that plays the device's part, step by step.

    use super::*;
    use std::sync::Arc;

    struct Device {
        region: Region,
        memory: Arc<Vec<u64>>,
        server: Server,
        written: Rc<RefCell<(Vec<u8>, Vec<u8>)>>,
    }

    struct Kept(Rc<RefCell<(Vec<u8>, Vec<u8>)>>);

    impl Output for Kept {
        fn stdout(&mut self, bytes: &[u8]) -> usize {
            self.0.borrow_mut().0.extend_from_slice(bytes);
            bytes.len()
        }
        fn stderr(&mut self, bytes: &[u8]) -> usize {
            self.0.borrow_mut().1.extend_from_slice(bytes);
            bytes.len()
        }
    }

    struct OnePage;

    impl DeviceMemory for OnePage {
        fn allocate(&mut self, size: u64) -> Option<u64> {
            (size <= 4096).then_some(0x20_0000)
        }
        fn free(&mut self, _va: u64) {}
    }

    impl Device {
        fn new(abi: Abi, lanes: u32) -> Device {
            let region = Region { abi, ports: 8, lanes };
            let memory = Arc::new(vec![0u64; region.size() as usize / 8 + 8]);
            // The vector is 8-byte aligned; the area wants 16.
            let base = memory.as_ptr().cast::<u8>().cast_mut();
            let base = base.wrapping_add(base.align_offset(16));
            let written = Rc::default();
            // SAFETY: inside the vector, which `memory` keeps; only the accesses here and the server's touch it.
            let area = unsafe { Area::new(region, base, memory.clone()) };
            let server = Server::new(area, Box::new(Kept(Rc::clone(&written))), Box::new(OnePage));
            Device { region, memory, server, written }
        }

        fn at(&self, offset: u64) -> *mut u8 {
            let base = self.memory.as_ptr().cast::<u8>().cast_mut();
            base.wrapping_add(base.align_offset(16)).wrapping_add(offset as usize)
        }

        fn prefix(&self) -> u64 {
            if self.region.abi == Abi::Doorbell { 64 } else { 0 }
        }

        fn mailboxes(&self, port: u32) -> (*mut u32, *mut u32) {
            let at = self.prefix() + 4 * u64::from(port);
            (self.at(at).cast(), self.at(at + 4 * u64::from(self.region.ports)).cast())
        }

        fn open(&mut self, port: u32, mask: u64, opcode: u32) {
            let header = self.at(self.prefix() + 8 * u64::from(self.region.ports) + 16 * u64::from(port));
            // SAFETY: inside the area.
            unsafe {
                header.cast::<u64>().write_volatile(mask);
                header.add(8).cast::<u32>().write_volatile(opcode);
            }
        }

        fn packet(&self, port: u32, lane: u32) -> *mut [u64; 8] {
            let packets = self.prefix() + 24 * u64::from(self.region.ports);
            self.at(packets + 64 * u64::from(port * self.region.lanes + lane)).cast()
        }

        /// Fills the packets of the lanes of `mask` and passes the port to the server.
        fn send(&mut self, port: u32, mask: u64, fill: impl Fn(u32) -> [u64; 8]) {
            let (server, client) = self.mailboxes(port);
            // SAFETY: inside the area.
            unsafe {
                assert_eq!(server.read_volatile(), client.read_volatile(), "the client owns the port");
                for lane in (0..64).filter(|lane| mask >> lane & 1 == 1) {
                    self.packet(port, lane).write_volatile(fill(lane));
                }
                client.write_volatile(1 - client.read_volatile());
            }
            self.server.poll();
        }

        /// The packet that the server left for a lane.
        fn receive(&mut self, port: u32, lane: u32) -> [u64; 8] {
            let (server, client) = self.mailboxes(port);
            // SAFETY: inside the area.
            unsafe {
                assert_eq!(server.read_volatile(), client.read_volatile(), "the server answered");
                self.packet(port, lane).read_volatile()
            }
        }

        fn send_text(&mut self, port: u32, mask: u64, text: &[u8]) {
            let word = |at: usize| {
                let mut bytes = [0; 8];
                for (byte, from) in bytes.iter_mut().zip(text.iter().skip(at)) {
                    *byte = *from;
                }
                u64::from_le_bytes(bytes)
            };
            self.send(port, mask, |_| {
                let mut packet = [text.len() as u64; 8];
                for (index, slot) in packet[1..].iter_mut().enumerate() {
                    *slot = word(8 * index);
                }
                packet
            });
            let mut done = 56;
            while done < text.len() {
                self.send(port, mask, |_| std::array::from_fn(|index| word(done + 8 * index)));
                done += 64;
            }
        }
    }

    #[test]
    fn every_lane_writes_its_text() {
        for abi in [Abi::Llvm19, Abi::Doorbell] {
            let mut device = Device::new(abi, 32);
            device.open(2, 0b101, 0x6300_0002);
            let text = [b'a'; 130];
            device.send_text(2, 0b101, &text);
            assert_eq!(device.receive(2, 0)[0], 130);
            assert_eq!(device.receive(2, 2)[0], 130);
            assert_eq!(device.written.borrow().0, [b'a'; 260]);
        }
    }

    #[test]
    fn printf_fetches_strings_last_first() {
        let mut device = Device::new(Abi::Llvm19, 64);
        device.open(0, 1, 0x6300_0018);
        device.send_text(0, 1, b"%s=%d, %s=%.1f\n\0");
        assert_eq!(device.receive(0, 0)[0], 8 + 4 + 8 + 8);
        let mut block = 0x1000u64.to_le_bytes().to_vec();
        block.extend(42i32.to_le_bytes());
        block.extend(0x2000u64.to_le_bytes());
        block.extend(2.5f64.to_le_bytes());
        device.send_text(0, 1, &block);
        assert_eq!(device.receive(0, 0)[1], 0x2000);
        device.send_text(0, 1, b"two\0");
        assert_eq!(device.receive(0, 0)[1], 0x1000);
        device.send_text(0, 1, b"one\0");
        assert_eq!(device.receive(0, 0)[..2], [16, 0]);
        assert_eq!(device.written.borrow().0, b"one=42, two=2.5\n");
    }

    #[test]
    fn exit_asks_whether_the_server_lives_first() {
        let mut device = Device::new(Abi::Llvm19, 32);
        device.open(5, 1, 0x6300_0001);
        device.send(5, 1, |_| [0; 8]);
        device.receive(5, 0);
        device.send(5, 1, |_| [7, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(device.server.poll(), Progress::Ended(End::Exit(7)));
    }

    #[test]
    fn a_stuck_port_does_not_stop_the_others() {
        let mut device = Device::new(Abi::Llvm19, 32);
        device.open(0, 1, 0x6300_0002);
        device.send(0, 1, |_| [1000; 8]);
        device.open(1, 1, 0x6300_000a);
        device.send(1, 1, |_| [64; 8]);
        assert_eq!(device.receive(1, 0)[0], 0x20_0000);
    }

    #[test]
    fn host_calls_and_unknown_calls_are_refused() {
        let mut device = Device::new(Abi::Llvm19, 32);
        device.open(0, 1, 0x6300_000c);
        device.send_text(0, 1, b"");
        device.send(0, 1, |_| [0x1234; 8]);
        assert_eq!(device.receive(0, 0)[0], u64::MAX);
        device.open(1, 1, 0x6300_7777);
        device.send(1, 1, |_| [0; 8]);
        assert_eq!(device.server.take_complaints().len(), 2);
    }
}

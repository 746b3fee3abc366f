//! Packets that run at the same time.
//!
//! A packet starts when the one before it has started, and with its barrier bit set when all before it are complete. So
//! kernels of one queue overlap where the bit is clear. A barrier packet holds up the start of those behind it until it is
//! complete. Packets are retired in order: `read_dispatch_id` moves over those that are complete and have none before them
//! that is not, so that a slot is not used again while a kernel looks at its packet.
//!
//! Overlapping needs threads of their own: the first packet is run by the packet processor's thread, and the others are
//! started by whoever runs waves of one before them.

use super::bus::Bus;
use super::processor::{Fetched, Queue, Stop, complete, execute, fetch};
use super::{Ring, Shared, fault};
use crate::inject::Fate;
use aql::{Header, PACKET_BYTES, Packet, PacketType};
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::Scope;

/// Packets of a queue that run at a time.
const MOST: usize = 8;

struct Progress {
    /// One past the last packet that may be taken.
    limit: u64,
    /// The next packet to start.
    next: u64,
    /// First that is not retired.
    retired: u64,
    running: BTreeSet<u64>,
    complete: BTreeSet<u64>,
    /// A barrier packet runs: nothing starts.
    blocked: bool,
    /// Why no more packets start.
    stop: Option<Stop>,
}

/// The packets that run.
pub struct Window<'a> {
    shared: &'a Shared,
    bus: &'a Bus,
    queue: &'a Queue,
    ring: Ring,
    /// Packets may overlap.
    overlap: bool,
    progress: Mutex<Progress>,
}

/// What a window comes to.
pub struct Outcome {
    /// The next packet.
    pub index: u64,
    /// One past the last packet that may be taken.
    pub limit: u64,
    /// Why the queue does not go on.
    pub stop: Option<Stop>,
}

impl<'a> Window<'a> {
    /// A window with nothing in it; `index` is the next packet.
    pub fn new(shared: &'a Shared, bus: &'a Bus, queue: &'a Queue, ring: Ring, index: u64, limit: u64) -> Window<'a> {
        let options = &shared.setup.kernel.options;
        let progress = Progress {
            limit,
            next: index,
            retired: index,
            running: BTreeSet::new(),
            complete: BTreeSet::new(),
            blocked: false,
            stop: None,
        };
        // A seed asks for one order, and lint looks at one packet after the other.
        let overlap = options.seed.is_none() && !options.lint;
        Window { shared, bus, queue, ring, overlap, progress: Mutex::new(progress) }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn address(&self, index: u64) -> u64 {
        let slots = u64::from(self.ring.bytes) / PACKET_BYTES as u64;
        self.ring.va.wrapping_add(index % slots * PACKET_BYTES as u64)
    }

    /// Runs the packet that was fetched, and those that may start while it runs.
    pub fn run(self, bytes: [u8; 64], packet: &Packet) -> Outcome {
        let index = {
            let mut progress = self.progress();
            let index = progress.next;
            progress.next += 1;
            progress.running.insert(index);
            index
        };
        let hold = &self.shared.hold;
        std::thread::scope(|scope| {
            self.one(scope, index, bytes, packet);
            // Waiting for the others is no work.
            hold.leave();
        });
        hold.enter(|| self.shared.cancelled());
        let Progress { limit, retired, stop, .. } = self.progress.into_inner().unwrap_or_else(PoisonError::into_inner);
        Outcome { index: retired, limit, stop }
    }

    fn one<'s>(&'s self, scope: &'s Scope<'s, '_>, index: u64, bytes: [u8; 64], packet: &Packet) {
        let is_dispatch = matches!(packet, Packet::KernelDispatch(_));
        // Scratch is a queue's, so two kernels that use it do not run at a time.
        let overlap = self.overlap && is_dispatch && !uses_scratch(packet);
        let hook = || self.start_next(scope);
        let hook: Option<&(dyn Fn() + Sync)> = if overlap { Some(&hook) } else { None };
        let (shared, bus, queue) = (self.shared, self.bus, self.queue);
        let fetched = Fetched { index, va: self.address(index), bytes, packet };
        let outcome = execute(shared, bus, queue, fetched, hook)
            .and_then(|done| complete(shared, bus, queue, fetched, done, || self.retire(index)));
        let mut progress = self.progress();
        progress.running.remove(&index);
        progress.blocked &= is_dispatch;
        match outcome {
            Ok(()) => {}
            // Taken up again later.
            Err(Stop::Cancelled) if !is_dispatch => progress.next = progress.next.min(index),
            Err(stop) => {
                let stop = match stop {
                    Stop::Fault(fault) => {
                        drop(progress);
                        // At once: the packets before it may never end.
                        fault::raise(self.shared, self.bus, self.queue, fault);
                        progress = self.progress();
                        Stop::Raised
                    }
                    stop => stop,
                };
                progress.stop.get_or_insert(stop);
            }
        }
    }

    /// A packet is complete but for its signal: its slot is free when those before it are.
    fn retire(&self, index: u64) -> Result<(), super::bus::BusFault> {
        let mut progress = self.progress();
        progress.complete.insert(index);
        let before = progress.retired;
        while progress.complete.first() == Some(&progress.retired) {
            progress.complete.pop_first();
            progress.retired += 1;
        }
        if progress.retired == before {
            return Ok(());
        }
        self.bus.store_u64(self.shared.setup.read_index, progress.retired, "read_dispatch_id")
    }

    /// Starts the next packet, if it may start while others run.
    fn start_next<'s>(&'s self, scope: &'s Scope<'s, '_>) {
        let Ok(mut progress) = self.progress.try_lock() else { return };
        if progress.stop.is_some() || progress.blocked || progress.running.len() >= MOST {
            return;
        }
        if let Some(doorbell) = self.shared.setup.doorbell.take()
            && let Ok(limit) = self.queue.limit(self.shared, self.bus, doorbell)
        {
            progress.limit = progress.limit.max(limit);
        }
        let index = progress.next;
        if index >= progress.limit {
            return;
        }
        let va = self.address(index);
        // What is wrong with it is found when it is its turn.
        let Ok(header) = self.bus.load_u16(va, "AQL packet header") else { return };
        let fields = Header::from_bits(header);
        const DISPATCH: u8 = PacketType::KernelDispatch as u8;
        const AND: u8 = PacketType::BarrierAnd as u8;
        const OR: u8 = PacketType::BarrierOr as u8;
        if fields.barrier() || !matches!(fields.packet_type(), DISPATCH | AND | OR) {
            return;
        }
        let Ok(bytes) = self.bus.packet(va) else { return };
        let Ok(packet) = Packet::from_bytes(&bytes) else { return };
        if uses_scratch(&packet) {
            return;
        }
        progress.next += 1;
        progress.running.insert(index);
        progress.blocked = !matches!(packet, Packet::KernelDispatch(_));
        drop(progress);
        scope.spawn(move || {
            let shared = self.shared;
            shared.hold.enter(|| shared.cancelled());
            match fetch(shared, index, header) {
                Fate::Runs(delay) => {
                    std::thread::sleep(delay);
                    self.one(scope, index, bytes, &packet);
                }
                Fate::Reset { removal } => {
                    fault::reset(shared, removal);
                    let mut progress = self.progress();
                    progress.running.remove(&index);
                    progress.stop.get_or_insert(Stop::Cancelled);
                }
            }
            shared.hold.leave();
        });
    }
}

fn uses_scratch(packet: &Packet) -> bool {
    matches!(packet, Packet::KernelDispatch(packet) if packet.private_segment_size > 0)
}

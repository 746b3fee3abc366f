//! The packet processor: what the hardware does with an AQL queue.
//!
//! Each queue has one, on a thread of its own. It looks at the doorbell's memory, so a client's plain store is all that
//! is needed; [`Bell::ring`] only saves it the sleep between two looks.

mod bus;
mod dispatch;
mod fault;
mod hold;
mod lint;
mod pace;
mod processor;
pub mod runlist;
mod signal;
mod vendor;
mod window;

use crate::kernel::Kernel;
use crate::kernel::device::Device;
use crate::kernel::doorbell::Doorbell;
use crate::kernel::event::Events;
use crate::memory::AddressSpace;
use hold::Hold;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, mpsc};
use std::thread::{JoinHandle, Thread};

/// Wakes the packet processors of a process.
#[derive(Default)]
pub struct Bell(RwLock<Vec<Thread>>);

impl Bell {
    /// Wakes them all.
    pub fn ring(&self) {
        for thread in self.0.read().unwrap_or_else(PoisonError::into_inner).iter() {
            thread.unpark();
        }
    }

    fn add(&self, thread: Thread) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).push(thread);
    }

    fn remove(&self, thread: &Thread) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).retain(|other| other.id() != thread.id());
    }
}

/// The ring of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// GPU address.
    pub va: u64,
    /// Bytes.
    pub bytes: u32,
}

/// What CREATE_QUEUE gives the hardware.
pub struct Setup {
    /// The kernel, for interrupts and traces.
    pub kernel: Arc<Kernel>,
    /// The GPU.
    pub device: Arc<Device>,
    /// Events of the process.
    pub events: Arc<Events>,
    /// Wakes the process' packet processors.
    pub bell: Arc<Bell>,
    /// Page tables.
    pub space: Arc<AddressSpace>,
    /// A fault stopped the process' queues on this GPU.
    pub evicted: Arc<AtomicBool>,
    /// A reset lost the process' queues on this GPU.
    pub reset: Arc<AtomicBool>,
    /// Queue id.
    pub queue_id: u32,
    /// Address of `read_dispatch_id`.
    pub read_index: u64,
    /// Address of `write_dispatch_id`.
    pub write_index: u64,
    /// Address of the context save area.
    pub save_area: u64,
    /// Doorbell.
    pub doorbell: Doorbell,
    /// The runtime is enabled (RUNTIME_ENABLE), so that exceptions reach the process.
    pub runtime: Arc<AtomicBool>,
}

/// What the process' threads and the packet processor share.
struct Shared {
    setup: Setup,
    /// None: the queue is paused.
    ring: Mutex<Option<Ring>>,
    /// Moves with every change of `ring`.
    generation: AtomicU64,
    stop: AtomicBool,
    /// Stops what runs of it.
    hold: Hold,
    /// Compute units that waves may be on, as bits of a CU mask; none: all.
    units: Mutex<Option<Arc<[u32]>>>,
}

impl Shared {
    /// The queue must not go on with what it does.
    fn cancelled(&self) -> bool {
        self.stop.load(Ordering::Acquire) || self.setup.evicted.load(Ordering::Acquire)
    }

    /// An interrupt for an event of which `bits` bits of the id are known, unless it is to be lost.
    fn interrupt(&self, id: u32, bits: u32) {
        if self.setup.kernel.faults.loses_interrupt() {
            self.setup.kernel.note(|| format!("the interrupt of event {id} is lost, as injected"));
        } else {
            self.setup.events.interrupt(id, bits);
        }
    }
}

/// The packet processor of one queue. Dropping it stops it.
pub struct PacketProcessor {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl PacketProcessor {
    /// Starts one; without a ring it is paused.
    ///
    /// # Errors
    /// The host has no thread left.
    pub fn start(setup: Setup, ring: Option<Ring>, priority: u32) -> std::io::Result<PacketProcessor> {
        setup.doorbell.arm();
        let name = format!("queue {}", setup.queue_id);
        let hold = Hold::new(setup.device.runlist.clone(), priority);
        let shared = Arc::new(Shared {
            hold,
            units: Mutex::default(),
            setup,
            ring: Mutex::new(ring),
            generation: AtomicU64::new(0),
            stop: AtomicBool::new(false),
        });
        let theirs = shared.clone();
        let (loaded, ready) = mpsc::channel();
        let thread = std::thread::Builder::new().name(name).spawn(move || processor::run(&theirs, loaded))?;
        shared.setup.bell.add(thread.thread().clone());
        // CREATE_QUEUE returns when the hardware has loaded the queue: the other end is dropped then.
        let _ = ready.recv();
        Ok(PacketProcessor { shared, thread: Some(thread) })
    }

    /// UPDATE_QUEUE: another ring, or none to pause, and the priority. When it returns nothing of a paused queue runs: waves
    /// are where they were, and go on when it is resumed.
    pub fn configure(&self, ring: Option<Ring>, priority: u32) {
        *self.shared.ring.lock().unwrap_or_else(PoisonError::into_inner) = ring;
        self.shared.generation.fetch_add(1, Ordering::AcqRel);
        self.shared.hold.set_priority(priority);
        self.wake();
        match ring {
            None => self.shared.hold.pause(),
            Some(_) => self.shared.hold.resume(),
        }
    }

    /// SET_CU_MASK: the compute units that waves of later dispatches may be on.
    pub fn set_units(&self, units: Arc<[u32]>) {
        *self.shared.units.lock().unwrap_or_else(PoisonError::into_inner) = Some(units);
    }

    /// Whether the queue has a hardware slot.
    #[cfg(test)]
    pub fn is_mapped(&self) -> bool {
        self.shared.hold.is_mapped()
    }

    /// Waves of the paused queue that were not at their end.
    pub fn saved_waves(&self) -> u32 {
        self.shared.hold.saved_waves()
    }

    /// Tells it to stop, without waiting.
    pub fn request_stop(&self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.hold.wake();
        self.wake();
    }

    /// Stops it: a dispatch that runs is dropped.
    pub fn stop(self) {
        drop(self);
    }

    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for PacketProcessor {
    fn drop(&mut self) {
        self.request_stop();
        if let Some(thread) = self.thread.take() {
            self.shared.setup.bell.remove(thread.thread());
            // A panic of the thread was printed; there is nothing to add.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;

//! The loop of one packet processor.

use super::bus::{Bus, BusFault};
use super::fault::{self, of_bus, packet_bits, record};
use super::lint::{Adversary, Lint};
use super::pace::Pace;
use super::signal::{self, Times};
use super::window::{Outcome, Window};
use super::{Ring, Shared, dispatch, vendor};
use crate::cu::dispatch::Done;
use crate::inject::Fate;
use crate::machine::gpu_clock;
use aql::queue::{self as amd_queue, QueueProperties};
use aql::{PACKET_BYTES, Packet, PacketError, PacketType};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use trace::{Event, Fault, FaultKind};

/// Why a packet was not completed.
pub enum Stop {
    /// The queue stops for good.
    Fault(Box<Fault>),
    /// The same, and the process was told.
    Raised,
    /// The queue is being destroyed or evicted, was reconfigured, or gave its slot up: the packet stays where it is.
    Cancelled,
}

/// The queue as its memory says.
pub struct Queue {
    /// Address of the `amd_queue_t`.
    pub va: u64,
    /// Generation of the configuration it was loaded with.
    generation: u64,
}

/// Runs until told to stop. `loaded` is dropped when the queue was loaded for the first time, or is not going to be.
pub fn run(shared: &Shared, loaded: Sender<()>) {
    let options = &shared.setup.kernel.options;
    let mut processor = Processor {
        shared,
        bus: Bus::new(shared.setup.space.clone()),
        loaded: Some(loaded),
        index: None,
        fetched: None,
        pace: Pace::new(),
        lint: options.lint.then(Lint::default),
        adversary: options.adversary.map(|seed| Adversary::new(seed ^ u64::from(shared.setup.queue_id))),
    };
    let mut dead = false;
    while !shared.stop.load(Ordering::Acquire) {
        let generation = shared.generation.load(Ordering::Acquire);
        let ring = *shared.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(ring) = ring.filter(|_| !dead && !shared.setup.evicted.load(Ordering::Acquire)) else {
            processor.loaded = None;
            // Paused or stopped for good: only a change of configuration matters, and that unparks.
            std::thread::park();
            continue;
        };
        let changed = || shared.cancelled() || shared.generation.load(Ordering::Acquire) != generation;
        if !processor.has_work() && !changed() {
            processor.pace.wait();
            continue;
        }
        let loaded = &mut processor.loaded;
        if !shared.hold.map(|| *loaded = None, changed) {
            continue;
        }
        dead = processor.load_and_process(ring, generation);
        shared.hold.unmap();
    }
}

struct Processor<'a> {
    shared: &'a Shared,
    bus: Bus,
    loaded: Option<Sender<()>>,
    /// Index of the next packet; none before the queue was loaded first.
    index: Option<u64>,
    /// Greatest index whose fetch was reported, so that a packet tried again is not reported twice.
    fetched: Option<u64>,
    pace: Pace,
    lint: Option<Lint>,
    adversary: Option<Adversary>,
}

impl Processor<'_> {
    /// Whether a queue without a hardware slot is worth one: when none is free, only with packets to take.
    fn has_work(&self) -> bool {
        match self.index {
            Some(index) if !self.shared.hold.has_room() => {
                let written = self.bus.load_u64(self.shared.setup.write_index, "write_dispatch_id");
                written.map_or(true, |written| written > index)
            }
            _ => true,
        }
    }

    /// The queue is mapped to the hardware and runs until it is reconfigured or gives its slot up. True: it will never run
    /// again.
    fn load_and_process(&mut self, ring: Ring, generation: u64) -> bool {
        let mut queue = Queue { va: 0, generation };
        let stop = self.process(ring, &mut queue);
        match self.raise(&queue, stop) {
            Stop::Cancelled => false,
            Stop::Fault(_) | Stop::Raised => true,
        }
    }

    /// Tells the process of a fault.
    fn raise(&mut self, queue: &Queue, stop: Stop) -> Stop {
        match stop {
            Stop::Fault(fault) => {
                self.loaded = None;
                fault::raise(self.shared, &self.bus, queue, fault);
                Stop::Raised
            }
            stop => stop,
        }
    }

    fn stop_for(&self, fault: BusFault) -> Stop {
        Stop::Fault(of_bus(self.shared, fault))
    }

    fn process(&mut self, ring: Ring, queue: &mut Queue) -> Stop {
        match self.work(ring, queue) {
            Ok(never) => match never {},
            Err(stop) => stop,
        }
    }

    fn work(&mut self, ring: Ring, queue: &mut Queue) -> Result<std::convert::Infallible, Stop> {
        let setup = &self.shared.setup;
        queue.va = amd_queue_address(&self.bus, setup.read_index).map_err(|fault| self.stop_for(fault))?;
        // A doorbell that is rung while the queue has no hardware slot is not heard. The write index is read when it gets
        // one, so packets from before are seen without.
        setup.doorbell.arm();
        // One past the last packet that may be taken.
        let mut limit = self.write_index()?;
        let mut index = match self.index {
            Some(index) => index,
            None => self.bus.load_u64(setup.read_index, "read_dispatch_id").map_err(|fault| self.stop_for(fault))?,
        };
        if let Some(lint) = &self.lint {
            lint.loaded(self.shared, queue.va, ring);
        }
        self.loaded = None;
        loop {
            self.index = Some(index);
            if queue.interrupted(self.shared) || self.shared.hold.must_yield(false) {
                return Err(Stop::Cancelled);
            }
            let (mut late, mut early) = (false, false);
            if let Some(adversary) = &mut self.adversary {
                (late, early) = (adversary.is_late(), adversary.is_early());
            }
            if early {
                limit = limit.max(self.write_index()?);
            }
            if !late && let Some(doorbell) = setup.doorbell.take() {
                let reached = queue.limit(self.shared, &self.bus, doorbell).map_err(|fault| self.stop_for(fault))?;
                self.check_doorbell(doorbell)?;
                limit = limit.max(reached);
                self.pace.active();
            }
            if index < limit {
                let slots = u64::from(ring.bytes / PACKET_BYTES as u32);
                let va = ring.va.wrapping_add(index % slots * PACKET_BYTES as u64);
                let header = self.bus.load_u16(va, "AQL packet header").map_err(|fault| self.stop_for(fault))?;
                if header & 0xff == PacketType::Invalid as u16 {
                    if let Some(lint) = &self.lint {
                        lint.blocked(self.shared, &self.bus, ring, index, limit)
                            .map_err(|fault| self.stop_for(fault))?;
                    }
                } else {
                    let hold = &self.shared.hold;
                    hold.enter(|| self.shared.cancelled() || queue.interrupted(self.shared));
                    let outcome = match queue.interrupted(self.shared) {
                        true => Err(Stop::Cancelled),
                        false => self.packet(queue, ring, index, header, limit),
                    };
                    // What a refused packet leaves is there before the queue can be said to be stopped.
                    let outcome = outcome.map_err(|stop| self.raise(queue, stop));
                    hold.leave();
                    let outcome = outcome?;
                    (index, limit) = (outcome.index, outcome.limit);
                    self.index = Some(index);
                    if let Some(stop) = outcome.stop {
                        return Err(stop);
                    }
                    self.pace.active();
                    continue;
                }
            }
            if self.shared.hold.must_yield(index >= limit) {
                return Err(Stop::Cancelled);
            }
            if self.pace.stalled() {
                self.explain(index, limit)?;
            }
            self.pace.wait();
        }
    }

    /// Tells of a doorbell that was rung beyond the write index.
    fn check_doorbell(&self, doorbell: u64) -> Result<(), Stop> {
        let (rung, written) = (doorbell.wrapping_add(1), self.write_index()?);
        if rung > written {
            if let Some(lint) = &self.lint {
                lint.doorbell(self.shared, doorbell, written);
            }
            self.note(|| {
                format!(
                    "the doorbell was rung with {doorbell}, and write_dispatch_id is {written}: the doorbell takes the \
                     index of the last packet, and the write index goes first"
                )
            });
        }
        Ok(())
    }

    fn note(&self, text: impl FnOnce() -> String) {
        self.shared.setup.kernel.note(|| format!("queue {}: {}", self.shared.setup.queue_id, text()));
    }

    /// Nothing has happened for a while: when the write index says that something should, tells why it does not.
    fn explain(&self, index: u64, limit: u64) -> Result<(), Stop> {
        let written = self.write_index()?;
        if index < limit {
            self.note(|| format!("packet {index} holds it up: the doorbell was rung, and its header is INVALID"));
        } else if index < written {
            self.note(|| {
                format!(
                    "write_dispatch_id is {written}, and the doorbell was rung for packets below {index} only: it \
                     takes the index of the last packet"
                )
            });
        }
        Ok(())
    }

    fn write_index(&self) -> Result<u64, Stop> {
        self.bus.load_u64(self.shared.setup.write_index, "write_dispatch_id").map_err(|fault| self.stop_for(fault))
    }

    /// Processes the packet at `index`, whose header is not INVALID, and those that may run at the same time.
    fn packet(&mut self, queue: &Queue, ring: Ring, index: u64, header: u16, limit: u64) -> Result<Outcome, Stop> {
        let (shared, bus) = (self.shared, &self.bus);
        let bus_stop = |fault| Stop::Fault(of_bus(shared, fault));
        let va = ring.va.wrapping_add(index % u64::from(ring.bytes / PACKET_BYTES as u32) * PACKET_BYTES as u64);
        let bytes = bus.packet(va).map_err(bus_stop)?;
        if self.fetched.is_none_or(|last| last < index) {
            self.fetched = Some(index);
            let fate = fetch(shared, index, header);
            if let Some(lint) = &self.lint {
                lint.packet(shared, bus, index, va, &bytes).map_err(bus_stop)?;
            }
            match fate {
                Fate::Runs(delay) => std::thread::sleep(delay),
                Fate::Reset { removal } => {
                    fault::reset(shared, removal);
                    return Err(Stop::Cancelled);
                }
            }
        }
        let packet = Packet::from_bytes(&bytes).map_err(|error| {
            let vendor =
                matches!(error, PacketError::UnknownVendorFormat { .. } | PacketError::UnknownCondition { .. });
            refuse(shared, if vendor { packet_bits::VENDOR } else { packet_bits::PACKET }, error.to_string())
        })?;
        let outcome = Window::new(shared, bus, queue, ring, index, limit).run(bytes, &packet);
        // Those that ran with it were fetched too.
        self.fetched = self.fetched.max(outcome.index.checked_sub(1));
        Ok(outcome)
    }
}

fn refuse(shared: &Shared, bits: u64, detail: String) -> Stop {
    Stop::Fault(record(shared, FaultKind::Packet(bits), detail))
}

/// A packet was read: what becomes of it.
pub fn fetch(shared: &Shared, index: u64, header: u16) -> Fate {
    let queue_id = shared.setup.queue_id;
    shared.setup.kernel.tracer.emit(|| Event::Fetch { queue_id, index, header });
    shared.setup.kernel.faults.packet()
}

/// What a packet did, and when.
pub struct Executed {
    done: Done,
    times: Times,
}

/// A packet that was fetched.
#[derive(Clone, Copy)]
pub struct Fetched<'a> {
    /// Its index.
    pub index: u64,
    /// Address of its slot.
    pub va: u64,
    /// Its bytes.
    pub bytes: [u8; PACKET_BYTES],
    /// What they say.
    pub packet: &'a Packet,
}

/// Does what a packet says. `between` is called between turns of the waves of a kernel.
pub fn execute(
    shared: &Shared,
    bus: &Bus,
    queue: &Queue,
    fetched: Fetched<'_>,
    between: Option<&(dyn Fn() + Sync)>,
) -> Result<Executed, Stop> {
    let Fetched { index, packet, .. } = fetched;
    let queue_id = shared.setup.queue_id;
    let start = gpu_clock();
    let mut done = Done::default();
    match packet {
        Packet::KernelDispatch(packet) => {
            done = dispatch::run(shared, bus, queue, fetched, packet, between)?;
        }
        Packet::BarrierAnd(packet) => {
            for handle in packet.dep_signals.iter().filter(|handle| **handle != 0) {
                queue.wait(shared, bus, |bus| {
                    Ok(bus.load_i64(handle.wrapping_add(8), "signal of a barrier packet")? == 0)
                })?;
            }
        }
        Packet::BarrierOr(packet) => {
            if packet.dep_signals == [0; 5] {
                shared
                    .setup
                    .kernel
                    .note(|| format!("queue {queue_id} packet {index}: a barrier-OR without signals never completes"));
            }
            queue.wait(shared, bus, |bus| {
                for handle in packet.dep_signals.iter().filter(|handle| **handle != 0) {
                    if bus.load_i64(handle.wrapping_add(8), "signal of a barrier packet")? == 0 {
                        return Ok(true);
                    }
                }
                Ok(false)
            })?;
        }
        Packet::Pm4Ib(packet) => vendor::execute(bus, packet.jump).map_err(|refusal| match refusal {
            vendor::Refusal::Bus(fault) => Stop::Fault(of_bus(shared, fault)),
            vendor::Refusal::Command(detail) => refuse(shared, packet_bits::VENDOR, detail),
        })?,
        Packet::BarrierValue(packet) if packet.signal != 0 => queue.wait(shared, bus, |bus| {
            let value = bus.load_i64(packet.signal.wrapping_add(8), "signal of a barrier packet")?;
            Ok(packet.condition.holds(value & packet.mask, packet.value))
        })?,
        Packet::BarrierValue(_) => {}
        Packet::AgentDispatch(_) => {
            let detail = "a GPU queue does not take agent dispatch packets".to_string();
            return Err(refuse(shared, packet_bits::PACKET, detail));
        }
        // The header was something else a moment ago: the client took a published packet back.
        Packet::Invalid => {
            return Err(refuse(shared, packet_bits::PACKET, "the header became INVALID again".to_string()));
        }
    }
    Ok(Executed { done, times: Times { start, end: gpu_clock() } })
}

/// The end of a packet: its slot, `read_dispatch_id` by `retire`, its signal.
pub fn complete(
    shared: &Shared,
    bus: &Bus,
    queue: &Queue,
    Fetched { index, va, packet, .. }: Fetched<'_>,
    Executed { done, times }: Executed,
    retire: impl FnOnce() -> Result<(), BusFault>,
) -> Result<(), Stop> {
    let bus_stop = |fault| Stop::Fault(of_bus(shared, fault));
    let queue_id = shared.setup.queue_id;
    // The slot is free before the host can know that the packet is done.
    match bus.store_u16(va, PacketType::Invalid as u16, "AQL packet header") {
        // The queue was paused meanwhile and given another ring: the old one is none of its business.
        Err(_) if shared.generation.load(Ordering::Acquire) != queue.generation => {}
        stored => stored.map_err(bus_stop)?,
    }
    retire().map_err(bus_stop)?;
    let Done { instructions, waves } = done;
    shared.setup.kernel.tracer.emit(|| Event::Complete { queue_id, index, instructions, waves });
    let properties = queue.properties(bus).map_err(bus_stop)?;
    let times = properties.enable_profiling().then_some(times);
    signal::complete(shared, bus, packet.completion_signal(), times).map_err(bus_stop)?;
    if let Packet::KernelDispatch(packet) = packet
        && packet.private_segment_size > 0
        && properties.use_scratch_once()
    {
        let detail = "the dispatch that had the scratch to itself is done".to_string();
        let fault = *record(shared, FaultKind::Packet(packet_bits::SCRATCH_ONCE), detail);
        match queue.request(shared, bus, packet_bits::SCRATCH_ONCE, fault) {
            // The packet is done all the same.
            Ok(()) | Err(Stop::Cancelled) => {}
            Err(stop) => return Err(stop),
        }
    }
    Ok(())
}

/// The `amd_queue_t` around a read index: the u32 behind the index tells how far before it the structure starts.
fn amd_queue_address(bus: &Bus, read_index: u64) -> Result<u64, BusFault> {
    let behind = (amd_queue::READ_DISPATCH_ID_FIELD_BASE_BYTE_OFFSET - amd_queue::READ_DISPATCH_ID) as u64;
    let offset = bus.load_u32(read_index.wrapping_add(behind), "read_dispatch_id_field_base_byte_offset")?;
    Ok(read_index.wrapping_sub(u64::from(offset)))
}

impl Queue {
    /// Whether the processor must let go of the packet it waits with.
    fn interrupted(&self, shared: &Shared) -> bool {
        shared.cancelled() || shared.generation.load(Ordering::Acquire) != self.generation
    }

    /// How far packets may be taken after a doorbell: it holds the index of the last packet.
    ///
    /// Several producers may ring in any order, and of two stores between two looks only the second is seen here (the
    /// hardware sees both), so for their queues the write index counts too.
    pub fn limit(&self, shared: &Shared, bus: &Bus, doorbell: u64) -> Result<u64, BusFault> {
        let rung = doorbell.wrapping_add(1);
        let kind = bus.load_u32(self.va.wrapping_add(amd_queue::TYPE as u64), "hsa_queue.type")?;
        if kind == amd_queue::QueueType::Single as u32 {
            return Ok(rung);
        }
        Ok(rung.max(bus.load_u64(shared.setup.write_index, "write_dispatch_id")?))
    }

    fn properties(&self, bus: &Bus) -> Result<QueueProperties, BusFault> {
        let at = self.va.wrapping_add(amd_queue::QUEUE_PROPERTIES as u64);
        bus.load_u32(at, "queue_properties").map(QueueProperties::from_bits)
    }

    /// Looks until `ready` holds. The packet that waits is taken up anew when another queue gets the slot meanwhile.
    pub fn wait(&self, shared: &Shared, bus: &Bus, ready: impl Fn(&Bus) -> Result<bool, BusFault>) -> Result<(), Stop> {
        self.look(shared, bus, true, ready)
    }

    fn look(
        &self,
        shared: &Shared,
        bus: &Bus,
        yields: bool,
        ready: impl Fn(&Bus) -> Result<bool, BusFault>,
    ) -> Result<(), Stop> {
        let mut pace = Pace::new();
        while !ready(bus).map_err(|fault| Stop::Fault(of_bus(shared, fault)))? {
            if self.interrupted(shared) || (yields && shared.hold.must_yield(false)) {
                return Err(Stop::Cancelled);
            }
            pace.wait();
        }
        Ok(())
    }

    /// Asks the host for something through `queue_inactive_signal`, and waits until it stores 0 there. `fault` is what
    /// it comes to when there is nobody to ask.
    pub fn request(&self, shared: &Shared, bus: &Bus, bits: u64, fault: Fault) -> Result<(), Stop> {
        let bus_stop = |fault| Stop::Fault(of_bus(shared, fault));
        let at = self.va.wrapping_add(amd_queue::QUEUE_INACTIVE_SIGNAL as u64);
        let handle = bus.load_u64(at, "queue_inactive_signal").map_err(bus_stop)?;
        if handle == 0 {
            let detail = format!("{}; queue_inactive_signal is null, so nobody can be asked", fault.detail);
            return Err(Stop::Fault(Box::new(Fault { detail, ..fault })));
        }
        let queue_id = shared.setup.queue_id;
        shared
            .setup
            .kernel
            .note(|| format!("queue {queue_id} asks with queue_inactive_signal {bits:#x}: {}", fault.detail));
        signal::set_bits(shared, bus, handle, bits).map_err(bus_stop)?;
        // The host was asked, so the answer is waited for.
        self.look(shared, bus, false, |bus| {
            Ok(bus.load_i64(handle.wrapping_add(8), "value of queue_inactive_signal")? == 0)
        })
    }
}

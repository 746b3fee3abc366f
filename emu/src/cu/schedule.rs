//! Workers: each is a host thread that runs the waves of its resident work-groups in turns.
//!
//! A wave runs for a slice, or until it waits, and then the next one has its turn; so waves that spin on one another make
//! progress. A worker begins with one work-group, which keeps registers and LDS in the host's caches, and takes in
//! another when those it has only wait, or have run for long: the device would hold them all at once, and a kernel may
//! count on that.

use super::census::Census;
use super::code::{Code, CodeCache, Shape, text};
use super::dispatch::{Dispatch, Host};
use super::group::Group;
use super::interp::{self, Exit, Indexed};
use super::launch::{Launch, dispatch_fault};
use super::mem::MemoryPort;
use super::salu::{INDEX_ENABLE, VSKIP};
use super::wave::{Request, State, Wave};
use crate::isa::Family;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use trace::{Access, Activity, Fault, FaultKind};

/// Instructions of a slice.
const SLICE: u32 = 4096;
/// A wave that gives up its turn after no more instructions than this is taken to poll.
const POLL: u32 = 256;
/// Rotations through running work-groups after which another is taken in.
const PATIENCE: u32 = 16;
/// Instructions after which a dispatch is worth more threads.
const WORTH_THREADS: u64 = 50_000;
/// Rotations without progress that only yield the processor; later ones sleep.
const SPINS: u32 = 64;

/// A dispatch being run, shared by its workers.
pub struct Job<'a> {
    /// The dispatch.
    pub dispatch: &'a Dispatch,
    /// What its waves start with.
    pub launch: &'a Launch,
    /// Device around it.
    pub host: &'a dyn Host,
    /// Codes of the engine.
    pub codes: &'a CodeCache,
    /// Asks what the waves do.
    pub census: &'a Census,
    /// What code is lowered for.
    pub shape: Shape,
    /// Workers it may have.
    pub workers: u64,
    /// Seed of the order of waves; None: in turn.
    pub seed: Option<u64>,
    /// Next work-group to start.
    next: AtomicU64,
    /// Set when the dispatch ends early.
    stop: AtomicBool,
    fault: Mutex<Option<Box<Fault>>>,
    slots: Mutex<Slots>,
    waves: AtomicU64,
    instructions: AtomicU64,
}

/// Numbers of resident waves.
struct Slots {
    free: Vec<u32>,
    next: u32,
    limit: u32,
}

impl Slots {
    /// Puts `count` numbers into `numbers`. False: so many are not free.
    fn take(&mut self, count: u32, numbers: &mut Vec<u32>) -> bool {
        let missing = count.saturating_sub(self.free.len() as u32);
        if missing > self.limit - self.next {
            return false;
        }
        self.free.extend(self.next..self.next + missing);
        self.next += missing;
        numbers.clear();
        numbers.extend(self.free.drain(self.free.len() - count as usize..));
        true
    }
}

/// What a job uses of its engine.
pub struct Parts<'a> {
    /// Codes.
    pub codes: &'a CodeCache,
    /// Asks what the waves do.
    pub census: &'a Census,
    /// Seed of the order of waves; None: in turn.
    pub seed: Option<u64>,
}

impl<'a> Job<'a> {
    /// A job nobody works at yet.
    pub fn new(
        dispatch: &'a Dispatch,
        launch: &'a Launch,
        host: &'a dyn Host,
        shape: Shape,
        workers: u64,
        Parts { codes, census, seed }: Parts<'a>,
    ) -> Job<'a> {
        let limit = if launch.scratch.slots != 0 { launch.scratch.slots } else { u32::MAX };
        Job {
            dispatch,
            launch,
            host,
            codes,
            census,
            shape,
            workers,
            seed,
            next: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            fault: Mutex::new(None),
            slots: Mutex::new(Slots { free: Vec::new(), next: 0, limit }),
            waves: AtomicU64::new(0),
            instructions: AtomicU64::new(0),
        }
    }

    /// The first fault, or waves and instructions run.
    pub fn finish(self) -> Result<(u64, u64), Box<Fault>> {
        match self.fault.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(fault) => Err(fault),
            None => Ok((self.waves.into_inner(), self.instructions.into_inner())),
        }
    }

    fn fail(&self, fault: Box<Fault>) {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(fault);
        self.stop.store(true, Ordering::Relaxed);
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// xorshift64*; zero is not a state.
struct Order(u64);

impl Order {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound.max(1)
    }
}

/// One thread's part of a job.
pub struct Worker<'a> {
    job: &'a Job<'a>,
    groups: Vec<Group>,
    /// Most groups it holds.
    capacity: usize,
    idle_groups: Vec<Group>,
    idle_waves: Vec<Box<Wave>>,
    /// Slots of the work-group being started.
    numbers: Vec<u32>,
    codes: Vec<Arc<Code>>,
    indexed: Indexed,
    /// Page table epoch at which `codes` were seen to be mapped.
    epoch: u64,
    order: Option<Order>,
    instructions: u64,
    waves: u64,
}

/// What a turn of a wave came to.
enum Turn {
    /// It ran on.
    Progress,
    /// It only waits for others.
    Waits,
    /// It faulted, and the job has the record.
    Fault,
}

impl<'a> Worker<'a> {
    /// A worker without work-groups.
    pub fn new(job: &'a Job<'a>) -> Worker<'a> {
        let capacity = (job.launch.resident_groups / job.workers).clamp(1, 1 << 20) as usize;
        Worker {
            job,
            groups: Vec::new(),
            capacity,
            idle_groups: Vec::new(),
            idle_waves: Vec::new(),
            numbers: Vec::new(),
            codes: Vec::new(),
            indexed: Indexed::new(),
            epoch: job.dispatch.space.epoch(),
            order: job.seed.map(|seed| Order(seed | 1)),
            instructions: 0,
            waves: 0,
        }
    }

    /// Runs work-groups until none are left. `spawn` is called once, when the dispatch turns out to be worth more threads.
    pub fn run(mut self, mut spawn: Option<&mut dyn FnMut()>) {
        let job = self.job;
        let (mut idle, mut rotations, mut precise) = (0u32, 0u32, false);
        let mut seen = job.census.enter();
        while !job.stopped() {
            job.host.rest(self.groups.iter().map(|group| group.waves.len() as u32).sum());
            if job.host.cancelled() {
                job.stop.store(true, Ordering::Relaxed);
                break;
            }
            let more = idle > 0 || rotations >= PATIENCE;
            if self.groups.is_empty() || (more && self.groups.len() < self.capacity && !self.exhausted()) {
                rotations = 0;
                if self.admit() {
                    idle = 0;
                } else if self.groups.is_empty() && self.exhausted() {
                    break;
                }
            }
            // Here, where what was admitted is resident: a short work-group ends within one rotation.
            if job.census.asked() != seen {
                seen = job.census.asked();
                job.census.answer(seen, self.groups.iter().flat_map(|group| self.states(group)));
            }
            self.check_codes();
            match self.rotate() {
                None => break,
                Some(true) => idle = 0,
                Some(false) => idle += 1,
            }
            rotations += 1;
            if self.instructions > WORTH_THREADS
                && !self.exhausted()
                && let Some(spawn) = spawn.take()
            {
                spawn();
            }
            if idle > SPINS {
                // Host threads answer what the waves wait for; they may need this processor.
                if !precise {
                    // The kernel may make a sleep 50 us longer unless told otherwise; where it isn't told, it does.
                    let _ = nix::sys::prctl::set_timerslack(1);
                    precise = true;
                }
                let micros = match idle / SPINS {
                    0..16 => 20,
                    16..64 => 40,
                    _ => 100,
                };
                std::thread::sleep(Duration::from_micros(micros));
            } else if idle > 0 {
                std::thread::yield_now();
            }
        }
        job.census.leave(seen);
        job.instructions.fetch_add(self.instructions, Ordering::Relaxed);
        job.waves.fetch_add(self.waves, Ordering::Relaxed);
    }

    /// What the waves of a work-group do.
    fn states<'g>(&'g self, group: &'g Group) -> impl Iterator<Item = trace::Wave> + 'g {
        group.waves.iter().map(|resident| {
            let wave = &resident.wave;
            let decoded = self.codes.iter().find_map(|code| code.decoded(wave.pc));
            trace::Wave {
                queue_id: self.job.dispatch.queue_id,
                index: self.job.dispatch.dispatch_id,
                workgroup: group.id,
                wave: wave.identity.wave,
                activity: match wave.state {
                    State::Ready | State::Request | State::Indexed => Activity::Running,
                    State::Barrier => Activity::Barrier,
                    State::Yielded => Activity::Yielded,
                    State::Ended | State::Faulted | State::Halted => Activity::Ended,
                },
                pc: wave.pc,
                instruction: decoded.map(|decoded| text(self.job.dispatch.target, decoded, wave.pc)),
                exec: wave.exec,
                touched: wave.port.touched(),
            }
        })
    }

    /// Have all work-groups been started?
    fn exhausted(&self) -> bool {
        self.job.next.load(Ordering::Relaxed) >= self.job.launch.group_count
    }

    /// Starts the next work-group. False: there is none, or no wave slot is free.
    fn admit(&mut self) -> bool {
        let (job, launch) = (self.job, self.job.launch);
        // The lock makes taking slots and the work-group one step.
        let mut slots = job.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let index = job.next.load(Ordering::Relaxed);
        if index >= launch.group_count {
            return false;
        }
        let id = launch.group_id(index);
        let count = launch.waves(launch.group_items(id));
        if !slots.take(count, &mut self.numbers) {
            return false;
        }
        job.next.store(index + 1, Ordering::Relaxed);
        drop(slots);

        let mut group = self.idle_groups.pop().unwrap_or_else(|| Group::new(launch.lds));
        let lds = group.reset(id);
        for (number, slot) in (0..).zip(self.numbers.drain(..)) {
            let mut wave = match self.idle_waves.pop() {
                Some(mut wave) => {
                    wave.clear_rows();
                    wave
                }
                None => Wave::new(launch.lanes, launch.rows, port(job.dispatch)),
            };
            wave.port.lds = lds;
            wave.port.lds_size = launch.lds;
            wave.port.forget_touched();
            launch.start(&mut wave, id, number, slot);
            group.push(wave, None);
        }
        self.waves += count as u64;
        self.groups.push(group);
        true
    }

    /// Forgets codes that the page tables no longer have.
    fn check_codes(&mut self) {
        let space = &self.job.dispatch.space;
        let epoch = space.epoch();
        if epoch == self.epoch {
            return;
        }
        self.epoch = epoch;
        let before = self.codes.len();
        self.codes.retain(|code| code.mapped(space));
        if self.codes.len() != before {
            self.indexed.clear();
            for resident in self.groups.iter_mut().flat_map(|group| &mut group.waves) {
                resident.code = None;
            }
        }
    }

    /// Gives every wave a turn. None: stop. False: all only wait.
    fn rotate(&mut self) -> Option<bool> {
        let mut groups = std::mem::take(&mut self.groups);
        let mut progress = false;
        let first = self.order.as_mut().map_or(0, |order| order.below(groups.len()));
        for group in 0..groups.len() {
            let at = (group + first) % groups.len();
            let group = &mut groups[at];
            let first = self.order.as_mut().map_or(0, |order| order.below(group.waves.len()));
            for wave in 0..group.waves.len() {
                if self.job.stopped() {
                    return None;
                }
                match self.turn(group, (wave + first) % group.waves.len()) {
                    Turn::Progress => progress = true,
                    Turn::Waits => {}
                    Turn::Fault => return None,
                }
            }
        }
        groups.retain_mut(|group| {
            if group.done() {
                self.retire(group);
            }
            !group.waves.is_empty()
        });
        self.groups = groups;
        Some(progress)
    }

    /// Takes back what an ended work-group held.
    fn retire(&mut self, group: &mut Group) {
        let mut slots = self.job.slots.lock().unwrap_or_else(PoisonError::into_inner);
        for resident in group.waves.drain(..) {
            slots.free.push(resident.wave.identity.slot);
            self.idle_waves.push(resident.wave);
        }
        drop(slots);
        self.idle_groups.push(std::mem::replace(group, Group::new(0)));
    }

    /// Runs one wave until its slice is over or it waits.
    fn turn(&mut self, group: &mut Group, index: usize) -> Turn {
        let family = self.job.dispatch.target.family();
        let (split, gfx9) = (family == Family::Gfx12, family == Family::Gfx9);
        let resident = &mut group.waves[index];
        match resident.wave.state {
            State::Ended | State::Barrier => return Turn::Waits,
            State::Yielded => resident.wave.state = State::Ready,
            _ => {}
        }
        let mut left = match &mut self.order {
            Some(order) => 1 + order.below(SLICE as usize) as u32,
            None => SLICE,
        };
        let slice = left;
        loop {
            let resident = &mut group.waves[index];
            let wave = &mut *resident.wave;
            let exit = match &resident.code {
                None => Exit::Leave,
                Some(code) => {
                    let indexing = gfx9 && wave.mode & (INDEX_ENABLE | VSKIP) != 0;
                    // SAFETY: all codes of the job are made for its shape, and so are the waves.
                    let (rest, exit) = unsafe {
                        match indexing {
                            false => interp::run(wave, code, left),
                            true => interp::run_indexed(wave, code, left, &mut self.indexed),
                        }
                    };
                    self.instructions += (left - rest) as u64;
                    left = rest;
                    exit
                }
            };
            match exit {
                Exit::Slice => return Turn::Progress,
                Exit::Leave => match self.code_at(wave.pc) {
                    Ok(code) => resident.code = Some(code),
                    Err(fault) => return self.fault(group, index, fault),
                },
                Exit::State => match wave.state {
                    State::Ready => {}
                    State::Indexed => wave.state = State::Ready,
                    State::Yielded if slice - left > POLL => return Turn::Progress,
                    State::Yielded => return Turn::Waits,
                    State::Ended => {
                        if split {
                            group.leave();
                        } else {
                            group.arrive(true);
                        }
                        return Turn::Progress;
                    }
                    State::Barrier if split => {
                        if group.wait(index) {
                            if group.stuck() {
                                let wave = &mut group.waves[index].wave;
                                let pc = wave.pc.wrapping_sub(4);
                                let text =
                                    "every wave of the work-group waits at s_barrier_wait, and not all have signalled";
                                let kind = FaultKind::IllegalInstruction;
                                let mut fault = dispatch_fault(self.job.dispatch, kind, None, text.into());
                                fault.pc = Some(pc);
                                return self.fault(group, index, fault);
                            }
                            return if left < slice - 1 { Turn::Progress } else { Turn::Waits };
                        }
                        group.waves[index].wave.state = State::Ready;
                    }
                    State::Barrier => {
                        group.arrive(false);
                        return Turn::Progress;
                    }
                    State::Request => self.request(group, index),
                    State::Faulted | State::Halted => {
                        let fault = wave.fault.take().unwrap_or_else(|| {
                            let text = format!("the wave stopped in state {:?}, and nothing can resume it", wave.state);
                            let kind = FaultKind::IllegalInstruction;
                            let mut fault = dispatch_fault(self.job.dispatch, kind, None, text);
                            fault.pc = Some(wave.pc);
                            fault
                        });
                        return self.fault(group, index, fault);
                    }
                },
            }
        }
    }

    /// Does what a wave asks for.
    fn request(&mut self, group: &mut Group, index: usize) {
        let wave = &mut *group.waves[index].wave;
        wave.state = State::Ready;
        match wave.request {
            Request::Interrupt(m0) => self.job.host.interrupt(m0),
            Request::Signal { barrier, first } => {
                // Barrier -2 belongs to the trap handler, which there is none of.
                if barrier == -1 {
                    let was_first = group.signal(index);
                    if first {
                        group.waves[index].wave.scc = was_first;
                    }
                }
            }
            Request::BarrierState { barrier, dst } => {
                let (members, signals) = if barrier == -1 { group.barrier_state() } else { (0, 0) };
                let valid = (members != 0) as u32;
                group.waves[index].wave.scalar[dst as usize] = signals << 16 | members << 4 | valid;
            }
        }
    }

    /// Code at an address, made for the job's shape.
    fn code_at(&mut self, pc: u64) -> Result<Arc<Code>, Box<Fault>> {
        if let Some(code) = self.codes.iter().find(|code| code.holds(pc)) {
            return Ok(code.clone());
        }
        match self.job.codes.get(&self.job.dispatch.space, self.job.shape, pc) {
            Ok(code) => {
                self.codes.push(code.clone());
                Ok(code)
            }
            Err(none) => {
                let memory = Some((pc, Access::Execute));
                let mut fault = dispatch_fault(self.job.dispatch, none.kind, memory, none.detail);
                fault.pc = Some(pc);
                Err(fault)
            }
        }
    }

    /// Completes a fault record and gives it to the job.
    fn fault(&mut self, group: &Group, index: usize, mut fault: Box<Fault>) -> Turn {
        let resident = &group.waves[index];
        fault.gpu_id = self.job.dispatch.gpu_id;
        fault.queue_id = self.job.dispatch.queue_id;
        fault.kernel_object = Some(self.job.launch.kernel_object);
        fault.workgroup = Some(group.id);
        fault.wave = Some(resident.wave.identity.wave);
        fault.lanes.get_or_insert(resident.wave.exec);
        if let Some(pc) = fault.pc
            && fault.access != Some(Access::Execute)
            && let Some(decoded) = self.codes.iter().find_map(|code| code.decoded(pc))
        {
            fault.instruction = Some(text(self.job.dispatch.target, decoded, pc));
            if fault.bytes.is_empty() {
                fault.bytes = decoded.bytes[..decoded.len as usize].to_vec();
            }
        }
        self.job.fail(fault);
        Turn::Fault
    }
}

/// A wave's way to memory.
fn port(dispatch: &Dispatch) -> MemoryPort {
    MemoryPort::new(dispatch.space.clone(), std::ptr::null_mut(), 0, 0, 0, 0, 0)
}

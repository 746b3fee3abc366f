//! Random requests, mappings and packets against the emulated machine: whatever a client does, it must neither panic
//! nor hang.
//!
//! A sequence is given by its seed. It keeps what earlier calls returned (handles, ids, descriptors, addresses) and puts
//! that into later arguments, between values at the edges and plain noise, so that it gets beyond the first checks.
//! Pointers lead into memory that the sequence owns, or nowhere: an answer must not overwrite the fuzzer itself.

use crate::cases::tools::{KERNEL_ADDRESS, NO_FD, NO_GPU, plain_file};
use crate::gpu::{Code, Gpu, Memory, Queue, SHARED, VRAM, dispatch};
use crate::run::{Ended, forked};
use emu::isa::Target;
use emu::{EmulatedDriver, Injection, Machine, Options, Rules};
use kfd::uapi::*;
use kfd::{DEV_KFD, Driver};
use std::fmt;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use trace::Tracer;

/// What sequences have done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// Sequences.
    pub sequences: u64,
    /// Requests.
    pub requests: u64,
    /// Those that succeeded, by number.
    pub succeeded: [u64; NUMBERS],
    /// Calls of mmap.
    pub mappings: u64,
    /// Packets published.
    pub packets: u64,
}

/// One past the last request number.
const NUMBERS: usize = 0x28;

impl Default for Count {
    fn default() -> Count {
        Count { sequences: 0, requests: 0, succeeded: [0; NUMBERS], mappings: 0, packets: 0 }
    }
}

impl Count {
    /// Requests that are never refused by number alone, and of which none has succeeded.
    pub fn unreached(&self) -> Vec<&'static str> {
        let can = |info: &&IoctlInfo| !matches!(info.nr, 0x0d..=0x10 | 0x22) && info.since <= 18;
        let reached = |info: &&IoctlInfo| self.succeeded.get(info.nr as usize).is_some_and(|count| *count != 0);
        IOCTLS.iter().filter(can).filter(|info| !reached(info)).map(|info| info.name).collect()
    }

    /// Adds another count.
    pub fn add(&mut self, other: Count) {
        self.sequences += other.sequences;
        self.requests += other.requests;
        self.succeeded.iter_mut().zip(other.succeeded).for_each(|(sum, more)| *sum += more);
        self.mappings += other.mappings;
        self.packets += other.packets;
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Count { sequences, requests, mappings, packets, .. } = self;
        let succeeded: u64 = self.succeeded.iter().sum();
        write!(
            f,
            "{sequences} sequences: {requests} requests ({succeeded} succeeded), {mappings} mappings, {packets} packets"
        )
    }
}

/// Numbers that follow from a seed (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn of<T: Copy>(&mut self, choices: &[T], otherwise: T) -> T {
        if choices.is_empty() { otherwise } else { choices[self.below(choices.len())] }
    }
}

/// Bytes of the memory that pointers lead into.
const ARENA: u64 = 1 << 20;
/// Behind it nothing can be written, so that an answer to a pointer near its end does not reach anything else.
const GUARD: u64 = 64 << 10;
/// Room for the wave state of a queue on the largest GPU: a header for each XCC, as far apart as their save areas.
const STATES: u64 = 192 << 20;
/// Queues at a time: each is a thread.
const QUEUES: usize = 4;

struct Sequence {
    random: Random,
    driver: Arc<dyn Driver>,
    kfd: i32,
    gpus: Vec<Gpu>,
    handles: Vec<u64>,
    events: Vec<u32>,
    queues: Vec<Queue>,
    buffers: Vec<Memory>,
    descriptors: Vec<i32>,
    mapped: Vec<(u64, usize)>,
    arena: u64,
    states: u64,
    nowhere: u64,
    /// DBG_TRAP's ENABLE succeeded: RUNTIME_ENABLE would wait for the debugger, which is this thread.
    debugged: bool,
    count: Count,
    /// Looks at a refusal of a request, and says what is wrong with it.
    refused: Option<Refused>,
    unexplained: Vec<String>,
}

type Refused = Box<dyn Fn(u8, kfd::Errno) -> Option<String>>;

/// Runs the sequence of a seed, of so many calls.
///
/// # Errors
/// The machine could not be set up, which is the host's doing.
pub fn sequence(seed: u64, calls: usize) -> std::io::Result<Count> {
    let mut sequence = begin(seed, Tracer::new(Vec::new()))?;
    for _ in 0..calls {
        sequence.step();
    }
    Ok(sequence.end())
}

/// Notes of the emulated machine.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Notes {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl trace::Sink for Notes {
    fn record(&self, record: &trace::Record) {
        if let trace::Event::Note { text } = &record.event {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(text.clone());
        }
    }
}

/// Runs a sequence, and returns the refusals that no rule of the emulated KFD's tables accounts for.
///
/// # Errors
/// As [`sequence`].
pub fn unexplained(seed: u64, calls: usize) -> std::io::Result<Vec<String>> {
    let notes = Arc::new(Notes::default());
    let mut sequence = begin(seed, Tracer::new(vec![notes.clone()]))?;
    let rules: Vec<_> = emu::kernel::rule::all().into_iter().flat_map(|(_, rules)| rules).collect();
    sequence.refused = Some(Box::new(move |nr, errno| {
        let notes = notes.take();
        // Unknown numbers, bad pointers, and what the host has no more of.
        let general = matches!(errno.raw(), libc::ENOTTY | libc::EFAULT | libc::EMFILE);
        let told = |note: &String| {
            note.contains("was injected")
                || rules.iter().any(|rule| rule.errno == errno && note.contains(&format!(": {errno}: {}", rule.text)))
        };
        (!general && !notes.iter().any(told)).then(|| format!("request {nr:#04x}: {errno}; notes: {notes:?}"))
    }));
    for _ in 0..calls {
        sequence.step();
    }
    let unexplained = std::mem::take(&mut sequence.unexplained);
    sequence.end();
    Ok(unexplained)
}

/// A machine and nothing done with it.
fn begin(seed: u64, tracer: Tracer) -> std::io::Result<Sequence> {
    let mut random = Random(seed);
    let gpus = if random.one_in(8) { 0 } else { 1 + usize::from(random.one_in(4)) };
    let targets: Vec<Target> = (0..gpus).map(|_| random.of(&Target::ALL, Target::Gfx90a)).collect();
    let options = Options {
        workers: 1,
        rules: random.of(&Rules::ALL, Rules::default()),
        svm: !random.one_in(8),
        lint: random.one_in(4),
        adversary: random.one_in(4).then(|| random.next()),
        inject: faults(&mut random),
        ..Options::default()
    };
    let machine = Machine::with(&targets);
    let driver: Arc<dyn Driver> = Arc::new(EmulatedDriver::new(machine, options, tracer)?);
    let other = |errno: kfd::Errno| std::io::Error::from_raw_os_error(errno.raw());
    let kfd = driver.open(DEV_KFD).map_err(other)?;
    let anonymous = |bytes: u64, prot| {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: without MAP_FIXED the kernel chooses a free place.
        unsafe { driver.mmap(0, bytes as usize, prot, flags, -1, 0) }.map(|at| at as u64).map_err(other)
    };
    let arena = anonymous(ARENA + GUARD, libc::PROT_READ | libc::PROT_WRITE)?;
    // SAFETY: the last pages of the memory just mapped.
    unsafe { libc::mprotect((arena + ARENA) as *mut libc::c_void, GUARD as usize, libc::PROT_NONE) };
    Ok(Sequence {
        refused: None,
        unexplained: Vec::new(),
        arena,
        states: anonymous(STATES, libc::PROT_READ | libc::PROT_WRITE)?,
        nowhere: anonymous(4096, libc::PROT_NONE)?,
        gpus: (0..gpus).filter_map(|n| Gpu::nth(driver.clone(), kfd, n).ok()).collect(),
        random,
        kfd,
        handles: Vec::new(),
        events: Vec::new(),
        queues: Vec::new(),
        buffers: Vec::new(),
        descriptors: vec![plain_file().map_err(other)?],
        mapped: Vec::new(),
        debugged: false,
        count: Count { sequences: 1, ..Count::default() },
        driver,
    })
}

/// Faults of the machine: none, more often than not.
fn faults(random: &mut Random) -> Vec<Injection> {
    let mut faults = Vec::new();
    while random.one_in(3) {
        let nth = 1 + random.next() % 16;
        faults.push(match random.below(5) {
            0 => {
                let errno = random.of(&[libc::ENOMEM, libc::EINTR, libc::ENODEV, libc::EBUSY, libc::EIO], libc::EINVAL);
                let nr = IOCTLS[random.below(IOCTLS.len())].nr;
                Injection::Errno { nr, nth, errno: kfd::Errno::from_raw(errno) }
            }
            1 => Injection::LostInterrupt { nth },
            2 => Injection::VmFault { buffer: Some(nth), offset: random.next() % 0x2000 },
            3 => Injection::Reset { nth, removal: random.one_in(2) },
            _ => Injection::Slow { delay: Duration::from_micros(random.next() % 200) },
        });
    }
    faults
}

/// Sequences that share a process.
pub const BATCH: u64 = 64;
/// A batch that takes longer hangs: hundreds of times what it takes.
const BATCH_LIMIT: Duration = Duration::from_secs(300);

/// Runs the sequences of [`BATCH`] seeds in a child process, so that a crash is seen and what they leave goes with it.
///
/// The caller must have one thread only: the child is a fork that goes on.
///
/// # Errors
/// Something panicked, hung or crashed, or could not be set up; with the seed, as text.
pub fn batch(first: u64, calls: usize) -> Result<Count, String> {
    static PANICS: AtomicU64 = AtomicU64::new(0);
    let work = |mut out: std::fs::File| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            PANICS.fetch_add(1, Ordering::SeqCst);
            report(info);
        }));
        for seed in first..first + BATCH {
            let told = match sequence(seed, calls) {
                Err(error) => writeln!(out, "sequence {seed} could not be set up: {error}"),
                Ok(_) if PANICS.load(Ordering::SeqCst) != 0 => writeln!(out, "sequence {seed} panicked"),
                Ok(Count { requests, succeeded, mappings, packets, .. }) => {
                    let succeeded = succeeded.map(|count| count.to_string()).join(" ");
                    writeln!(out, "{requests} {mappings} {packets} {succeeded}")
                }
            };
            if told.is_err() {
                return;
            }
        }
    };
    let (text, status) = forked(work, Instant::now() + BATCH_LIMIT).map_err(|error| error.to_string())?;
    let mut count = Count::default();
    for line in text.lines() {
        let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [requests, mappings, packets, ref succeeded @ ..] = numbers[..] else { return Err(line.to_string()) };
        let Ok(succeeded) = <[u64; NUMBERS]>::try_from(succeeded) else { return Err(line.to_string()) };
        count.add(Count { sequences: 1, requests, succeeded, mappings, packets });
    }
    let reached = first + count.sequences;
    match status {
        Ended::TooLate => Err(format!("sequence {reached} hangs")),
        Ended::Killed(signal) => Err(format!("sequence {reached} was ended by signal {signal}")),
        Ended::Exited(_) if count.sequences < BATCH => Err(format!("sequence {reached} ended its process")),
        Ended::Exited(_) => Ok(count),
    }
}

impl Sequence {
    fn step(&mut self) {
        match self.random.below(16) {
            0..=7 => self.request(),
            8 => self.noise(),
            9 => self.mapping(),
            10 => self.good(),
            11 => self.good_queue(),
            12 => self.tune(),
            13..=14 => self.packet(),
            _ => self.file(),
        }
    }

    /// A pointer that leads into the arena, or nowhere.
    fn pointer(&mut self) -> u64 {
        match self.random.below(8) {
            0 => 0,
            1 => self.nowhere,
            2 => KERNEL_ADDRESS,
            3 => self.random.next() | 1 << 63,
            4 => self.arena + ARENA - self.random.next() % 64,
            _ => self.arena + self.random.next() % (ARENA / 2) & !7,
        }
    }

    /// An address for the GPU, which may be anything.
    fn address(&mut self) -> u64 {
        match self.random.below(6) {
            0 => self.random.next(),
            1 => self.random.next() & 0xffff_ffff_f000,
            2 => self.pointer(),
            _ => {
                let buffer = self.random.below(self.buffers.len());
                self.buffers.get(buffer).map_or(0x1000_0000, |buffer| buffer.va)
                    + if self.random.one_in(3) { self.random.next() % 0x2000 } else { 0 }
            }
        }
    }

    fn gpu_id(&mut self) -> u32 {
        let ids: Vec<u32> = self.gpus.iter().map(|gpu| gpu.id).collect();
        if self.random.one_in(6) { self.random.of(&[0, 1, NO_GPU, u32::MAX], 0) } else { self.random.of(&ids, 0) }
    }

    fn small(&mut self) -> u32 {
        let noise = self.random.next() as u32;
        self.random.of(&[0, 0, 1, 1, 2, 3, 7, 15, 16, 31, 32, 64, 100, 101, 255, 1024, 4096, u32::MAX, noise], 0)
    }

    fn size(&mut self) -> u64 {
        let pages = 4096 * (self.random.next() % 64);
        let noise = self.random.next();
        self.random
            .of(&[0, 1, 4095, 4096, 4097, 8192, 32768, pages, pages, pages + 1, 1 << 21, 1 << 40, u64::MAX, noise], 0)
    }

    /// Something for a field of this name.
    fn field(&mut self, name: &str, bytes: usize) -> u64 {
        let name = name.rsplit('.').next().unwrap_or(name);
        match name {
            "gpu_id" | "gpuid" => self.gpu_id().into(),
            "handle" | "event_page_offset" => {
                let (handle, noise) = (self.random.of(&self.handles, 0), self.random.next());
                self.random.of(&[handle, handle, handle, handle, 0, noise], 0)
            }
            "event_id" => {
                let event = self.random.of(&self.events, 1);
                u64::from(self.random.of(&[event, event, event, 0, 1, 0x4000_0000, u32::MAX], 0))
            }
            "queue_id" => u64::from(self.random.of(&[0, 0, 1, 2, 3, 1024, u32::MAX], 0)),
            "drm_fd" | "dmabuf_fd" | "dbg_fd" => {
                let mut fds: Vec<u32> = self.descriptors.iter().map(|fd| *fd as u32).collect();
                if name == "drm_fd" {
                    fds.extend(self.gpus.iter().map(|gpu| gpu.render as u32));
                    fds.push(self.kfd as u32);
                }
                fds.push(NO_FD);
                self.random.of(&fds, NO_FD).into()
            }
            // Never long: the sequence has one thread, so nobody would end the wait.
            "timeout" => self.random.next() % 3,
            "pid" => u64::from(self.random.of(&[std::process::id(), 0, 1, u32::MAX], 0)),
            "size" | "ring_size" | "eop_buffer_size" | "ctx_save_restore_size" | "ctl_stack_size" => self.size(),
            "flags" => {
                let kinds = [SHARED, VRAM, VRAM | ALLOC_MEM_FLAGS_PUBLIC, ALLOC_MEM_FLAGS_USERPTR, 0];
                let flags = u64::from(self.random.of(&kinds, SHARED));
                if self.random.one_in(3) { flags ^ 1 << self.random.below(32) } else { flags }
            }
            "op" | "event_type" | "queue_type" | "mode_mask" => self.random.next() % 17,
            "num_events" | "n_devices" | "n_success" | "nattr" | "num_of_nodes" => self.random.next() % 5,
            "ctl_stack_address" => self.random.of(&[self.states, 0, self.nowhere, KERNEL_ADDRESS], 0),
            // Looked at, not dereferenced; what waves do there goes through the page tables.
            "va_addr"
            | "ring_base_address"
            | "write_pointer_address"
            | "read_pointer_address"
            | "eop_buffer_address"
            | "ctx_save_restore_address"
            | "start_addr" => self.address(),
            _ if bytes == 8 => self.pointer(),
            _ => self.small().into(),
        }
    }

    /// A request of the table, its fields one by one.
    fn request(&mut self) {
        let info = &IOCTLS[self.random.below(IOCTLS.len())];
        let size = IoctlInfo::size_of_request(info.request);
        let mut bytes = vec![0; size];
        if info.nr == 0x26 {
            self.debugger(&mut bytes);
        } else {
            for field in info.layout.map_or(&[][..], |layout| layout.fields) {
                let value = self.field(field.name(), field.size).to_ne_bytes();
                if let Some(place) = bytes.get_mut(field.offset..field.offset + field.size.min(8)) {
                    place.copy_from_slice(&value[..place.len()]);
                }
            }
        }
        let mut size = size;
        if info.nr == 0x20 {
            let attributes = self.random.below(4);
            for _ in 0..attributes {
                let (kind, gpu) = (self.random.next() as u32 % 9, self.gpu_id());
                let value = self.random.of(&[gpu, 0, u32::MAX, 0x7f], 0);
                bytes.extend([kind.to_ne_bytes(), value.to_ne_bytes()].concat());
            }
            size = bytes.len();
        }
        // Some structures are older or newer than the kernel's.
        if self.random.one_in(16) {
            size = self.random.below(2 * size + 1);
            bytes.resize(size, 0);
        }
        self.call(info.nr, size, &mut bytes);
    }

    /// DBG_TRAP, whose argument is a union.
    fn debugger(&mut self, bytes: &mut [u8]) {
        let op = self.random.next() as u32 % 16;
        let pid = self.field("pid", 4) as u32;
        let fd = self.field("dbg_fd", 4);
        let words = [self.pointer(), self.pointer(), u64::from(self.small()) | fd << 32];
        let all = [pid.to_ne_bytes(), op.to_ne_bytes()].concat();
        let words = words.iter().flat_map(|word| word.to_ne_bytes());
        for (place, byte) in bytes.iter_mut().zip(all.into_iter().chain(words)) {
            *place = byte;
        }
    }

    /// Any number, any size, any bytes. What could be a pointer is not one into memory.
    fn noise(&mut self) {
        let nr = self.random.next() as u8;
        let size = self.random.of(&[0, 1, 4, 8, 16, 24, 32, 40, 56, 96, 400, 500], 8);
        let mut bytes = Vec::with_capacity(size + 8);
        while bytes.len() < size {
            let word = self.random.next();
            bytes.extend((if self.random.one_in(2) { word % 64 } else { word | 1 << 63 }).to_ne_bytes());
        }
        bytes.truncate(size);
        // A wait would be endless.
        if nr != 0x0c {
            self.call(nr, size, &mut bytes);
        }
    }

    fn call(&mut self, nr: u8, size: usize, bytes: &mut [u8]) {
        if self.debugged && nr == 0x25 {
            return;
        }
        let request = Direction::ReadWrite.request(nr, size.min(0x3fff));
        let result = self.driver.ioctl(self.kfd, request, bytes);
        self.count.requests += 1;
        if let Err(errno) = result {
            self.unexplained.extend(self.refused.as_ref().and_then(|refused| refused(nr, errno)));
            return;
        }
        if let Some(count) = self.count.succeeded.get_mut(nr as usize) {
            *count += 1;
        }
        match nr {
            0x08 => self.events.push(CreateEventArgs::from_prefix_or_zero(bytes).event_id),
            0x16 => self.handles.push(AllocMemoryOfGpuArgs::from_prefix_or_zero(bytes).handle),
            0x1d => self.handles.push(ImportDmabufArgs::from_prefix_or_zero(bytes).handle),
            // Of a shorter argument the descriptor did not come back.
            0x1f | 0x24 if size < IoctlInfo::of(request).map_or(0, |info| IoctlInfo::size_of_request(info.request)) => {
            }
            0x1f => self.descriptors.push(SmiEventsArgs::from_prefix_or_zero(bytes).anon_fd as i32),
            0x24 => self.descriptors.push(ExportDmabufArgs::from_prefix_or_zero(bytes).dmabuf_fd as i32),
            0x26 => self.debugged = true,
            _ => {}
        }
    }

    fn mapping(&mut self) {
        self.count.mappings += 1;
        if self.random.one_in(3)
            && let Some((at, len)) = self.mapped.pop()
        {
            // SAFETY: a mapping of the sequence's own, which nothing refers into.
            let _ = unsafe { self.driver.munmap(at as usize, len) };
            return;
        }
        let kinds = [0, 1 << 62, 2 << 62, 3 << 62];
        let gpu = u64::from(self.gpu_id());
        let noise = self.random.next();
        let offset = match self.random.below(4) {
            0 => noise,
            1 => noise & !4095,
            _ => self.random.of(&kinds, 0) | (gpu & 0xffff) << 46,
        };
        let len = (self.size() & 0xff_ffff) as usize;
        let render = self.gpus.first().map_or(self.kfd, |gpu| gpu.render);
        let fd = self.random.of(&[self.kfd, self.kfd, render], self.kfd);
        let prot = self.random.of(&[libc::PROT_READ | libc::PROT_WRITE, libc::PROT_READ, libc::PROT_NONE], 0);
        let flags = self.random.of(&[libc::MAP_SHARED, libc::MAP_SHARED, libc::MAP_PRIVATE], libc::MAP_SHARED);
        // SAFETY: without MAP_FIXED the kernel chooses a free place.
        if let Ok(at) = unsafe { self.driver.mmap(0, len, prot, flags, fd, offset) } {
            self.mapped.push((at as u64, len));
        }
    }

    /// Something that works, so that later calls find objects.
    fn good(&mut self) {
        if self.gpus.is_empty() {
            return;
        }
        let n = self.random.below(self.gpus.len());
        let gpu = self.gpus[n].clone();
        let _ = gpu.call(&mut AcquireVmArgs { drm_fd: gpu.render as u32, gpu_id: gpu.id });
        if self.buffers.len() < 64 {
            let pages = 1 + self.random.next() % 8;
            let flags = self.random.of(&[SHARED, VRAM | ALLOC_MEM_FLAGS_PUBLIC], SHARED);
            if let Ok(memory) = gpu.memory(4096 * pages, flags) {
                // Descriptor and code of noise.
                for word in 0..64 {
                    memory.u64(8 * word).store(self.random.next(), Ordering::Relaxed);
                }
                self.buffers.push(memory);
                self.handles.push(memory.handle);
            }
        }
    }

    fn good_queue(&mut self) {
        if self.gpus.is_empty() || self.queues.len() >= QUEUES {
            if self.random.one_in(2) && !self.queues.is_empty() {
                let n = self.random.below(self.queues.len());
                let _ = self.queues.swap_remove(n).destroy();
            }
            return;
        }
        let n = self.random.below(self.gpus.len());
        let gpu = self.gpus[n].clone();
        let _ = gpu.call(&mut AcquireVmArgs { drm_fd: gpu.render as u32, gpu_id: gpu.id });
        if let Ok(queue) = gpu.queue(64) {
            let parts = &queue.parts;
            for memory in [parts.control, parts.ring] {
                self.handles.push(memory.handle);
                self.buffers.push(memory);
            }
            self.mapped.extend([parts.eop, parts.save].map(|memory| (memory.va, memory.size as usize)));
            self.queues.push(queue);
        }
    }

    /// Changes a queue in a way that works: pauses it or lets it go on, moves it to other compute units, asks for its state.
    fn tune(&mut self) {
        if self.queues.is_empty() {
            return;
        }
        let n = self.random.below(self.queues.len());
        let args = self.queues[n].parts.args;
        let queue_id = args.queue_id;
        match self.random.below(4) {
            0..=1 => {
                let mut update = UpdateQueueArgs {
                    queue_id,
                    ring_base_address: args.ring_base_address,
                    ring_size: args.ring_size,
                    queue_percentage: self.random.of(&[0, 100], 100),
                    queue_priority: self.random.next() as u32 % 16,
                };
                self.call(0x07, size_of::<UpdateQueueArgs>(), update.as_bytes_mut());
            }
            2 => {
                let mask = self.random.next() as u32 & 0x5555_5555;
                let mask = [mask | mask << 1; 4];
                let mut args = SetCuMaskArgs { queue_id, num_cu_mask: 128, cu_mask_ptr: mask.as_ptr() as u64 };
                self.call(0x1a, size_of::<SetCuMaskArgs>(), args.as_bytes_mut());
            }
            _ => {
                let mut args = GetQueueWaveStateArgs { queue_id, ctl_stack_address: self.states, ..Default::default() };
                self.call(0x1b, size_of::<GetQueueWaveStateArgs>(), args.as_bytes_mut());
            }
        }
    }

    /// A packet, good but for some of it, or noise; and what belongs to it.
    fn packet(&mut self) {
        if self.queues.is_empty() {
            return;
        }
        let n = self.random.below(self.queues.len());
        let mut packet = [0u8; 64];
        for chunk in packet.chunks_exact_mut(8) {
            let word = match self.random.below(4) {
                0 => 0,
                1 => self.random.next() % 0x1_0000,
                2 => self.address(),
                _ => self.random.next(),
            };
            chunk.copy_from_slice(&word.to_ne_bytes());
        }
        if self.random.one_in(2)
            && let Some(kernel) = self.buffers.get(self.random.below(self.buffers.len())).copied()
        {
            let signal = self.address() & !63;
            let mut good = dispatch(&kernel, signal);
            good.group_segment_size = self.small();
            good.private_segment_size = self.small();
            good.grid_size = [1 + self.random.next() as u32 % 64; 3];
            good.workgroup_size = [1 + self.random.next() as u16 % 8; 3];
            good.dims = self.random.next() as u8 % 4;
            good.kernarg_address = self.address();
            packet = good.to_bytes();
            if self.random.one_in(3) {
                packet[self.random.below(64)] ^= 1 << self.random.below(8);
            }
        } else if self.random.one_in(2) {
            // A type that there is, more often than not.
            packet[0] = self.random.next() as u8 % 7;
            packet[1] = 0;
        }
        let queue = &self.queues[n];
        let index = queue.publish(packet);
        self.count.packets += 1;
        let value = match self.random.below(8) {
            0 => self.random.next(),
            1 => index.wrapping_add(self.random.next() % 100),
            _ => index,
        };
        self.queues[n].ring(value);
        if self.random.one_in(8) {
            // Its memory is the client's to spoil.
            let offset = 8 * (self.random.next() % 32);
            let word = self.random.next();
            self.queues[n].parts.control.u64(offset).store(word, Ordering::SeqCst);
        }
        if self.random.one_in(16) {
            let gpu = self.gpus[self.random.below(self.gpus.len())].clone();
            if let Ok(kernel) = gpu.kernel(if self.random.one_in(4) { Code::Spin } else { Code::End }) {
                self.buffers.push(kernel);
            }
        }
    }

    fn file(&mut self) {
        match self.random.below(4) {
            0 => {
                let path =
                    self.random.of(&[DEV_KFD, "/dev/dri/renderD128", "/dev/dri/renderD999", "/dev/null"], DEV_KFD);
                if let Ok(fd) = self.driver.open(path) {
                    self.descriptors.push(fd);
                }
            }
            // The first is the plain file.
            1 if self.descriptors.len() > 1 => {
                let fd = self.descriptors.swap_remove(1 + self.random.below(self.descriptors.len() - 1));
                let _ = self.driver.close(fd);
            }
            2 => {
                let root = kfd::topology::TOPOLOGY;
                let node = self.random.next() % 4;
                let _ = self.driver.read(&format!("{root}/nodes/{node}/properties"));
                let _ = self.driver.list(&format!("{root}/nodes/{node}"));
            }
            _ => self.driver.doorbell_hint(),
        }
    }

    /// The machine is switched off with whatever is left.
    fn end(self) -> Count {
        for fd in self.descriptors {
            let _ = self.driver.close(fd);
        }
        let buffers = self.buffers.iter().map(|memory| (memory.va, memory.size as usize));
        let own = [(self.arena, (ARENA + GUARD) as usize), (self.states, STATES as usize), (self.nowhere, 4096)];
        let ranges: Vec<(u64, usize)> = self.mapped.iter().copied().chain(buffers).chain(own).collect();
        for queue in &self.queues {
            let _ = queue.destroy();
            let _ = queue.unmap_doorbell();
        }
        let driver = self.driver.clone();
        drop((self.queues, self.gpus, self.driver));
        for (at, len) in ranges {
            // SAFETY: the sequence's own mappings, which nothing uses any more.
            let _ = unsafe { driver.munmap(at as usize, len) };
        }
        self.count
    }
}

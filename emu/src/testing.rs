//! For tests: random numbers, and a client of the emulated machine that makes raw calls of the driver, with nothing of
//! the runtime.

use crate::driver::EmulatedDriver;
use crate::isa::Target;
use crate::kernel::Options;
use crate::machine::Machine;
use aql::queue::{AmdQueue, QueueProperties};
use aql::{PACKET_BYTES, signal};
use kfd::Driver;
use kfd::uapi::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use trace::{Collector, Event, Tracer};

/// Numbers that follow from a seed (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.bits() % n
    }
}

/// Flags of memory that host and GPU share.
pub const SHARED: u32 = ALLOC_MEM_FLAGS_GTT
    | ALLOC_MEM_FLAGS_WRITABLE
    | ALLOC_MEM_FLAGS_EXECUTABLE
    | ALLOC_MEM_FLAGS_COHERENT
    | ALLOC_MEM_FLAGS_UNCACHED;

pub struct Client {
    pub driver: EmulatedDriver,
    pub events: Arc<Collector>,
    pub kfd: i32,
    pub render: Vec<i32>,
    pub gpus: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    pub va: u64,
    pub bytes: u64,
    pub handle: u64,
}

impl Buffer {
    pub fn u64(&self, offset: usize) -> &AtomicU64 {
        assert!(offset + 8 <= self.bytes as usize);
        // SAFETY: tests use buffers that are mapped as long as the client lives.
        unsafe { AtomicU64::from_ptr((self.va as usize + offset) as *mut u64) }
    }

    pub fn u32(&self, offset: usize) -> &AtomicU32 {
        assert!(offset + 4 <= self.bytes as usize);
        // SAFETY: as above.
        unsafe { AtomicU32::from_ptr((self.va as usize + offset) as *mut u32) }
    }

    pub fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.bytes as usize);
        // SAFETY: as above.
        unsafe { ((self.va as usize + offset) as *mut u8).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) }
    }
}

pub fn errno(result: Result<i32, kfd::Errno>) -> Result<(), i32> {
    result.map(|_| ()).map_err(|errno| errno.raw())
}

impl Client {
    /// Everything opened, nothing acquired.
    pub fn opened(targets: &[Target]) -> Client {
        Client::with(targets, Options { workers: 1, ..Options::default() })
    }

    pub fn with(targets: &[Target], options: Options) -> Client {
        let events = Arc::new(Collector::default());
        let tracer = Tracer::new(vec![events.clone()]);
        let driver = EmulatedDriver::new(Machine::with(targets), options, tracer).unwrap();
        let kfd = driver.open("/dev/kfd").unwrap();
        let mut render = Vec::new();
        let mut gpus = Vec::new();
        for index in 0..targets.len() {
            render.push(driver.open(&format!("/dev/dri/renderD{}", 128 + index)).unwrap());
            let id = driver.read(&format!("/sys/class/kfd/kfd/topology/nodes/{}/gpu_id", index + 1)).unwrap();
            gpus.push(String::from_utf8(id).unwrap().trim().parse().unwrap());
        }
        Client { driver, events, kfd, render, gpus }
    }

    /// All GPUs acquired.
    pub fn new(targets: &[Target]) -> Client {
        let client = Client::opened(targets);
        client.acquire();
        client
    }

    pub fn acquire(&self) {
        for (fd, gpu_id) in self.render.iter().zip(&self.gpus) {
            self.call(&mut AcquireVmArgs { drm_fd: *fd as u32, gpu_id: *gpu_id }).unwrap();
        }
    }

    pub fn call<T: Ioctl>(&self, args: &mut T) -> Result<(), i32> {
        errno(self.driver.ioctl(self.kfd, T::REQUEST, args.as_bytes_mut()))
    }

    /// A free place in the address space.
    pub fn reserve(&self, bytes: u64) -> u64 {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping where the kernel likes.
        unsafe { self.driver.mmap(0, bytes as usize, libc::PROT_NONE, flags, -1, 0).unwrap() as u64 }
    }

    /// Memory of the test's own.
    pub fn memory(&self, bytes: u64) -> u64 {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let rw = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping where the kernel likes.
        unsafe { self.driver.mmap(0, bytes as usize, rw, flags, -1, 0).unwrap() as u64 }
    }

    pub fn alloc(&self, va_addr: u64, size: u64, flags: u32) -> Result<AllocMemoryOfGpuArgs, i32> {
        let mut args = AllocMemoryOfGpuArgs { va_addr, size, flags, gpu_id: self.gpus[0], ..Default::default() };
        self.call(&mut args).map(|()| args)
    }

    pub fn map_to(&self, handle: u64, gpus: &[u32]) -> (Result<(), i32>, u32) {
        let (device_ids_array_ptr, n_devices) = (gpus.as_ptr() as u64, gpus.len() as u32);
        let mut args = MapMemoryToGpuArgs { handle, device_ids_array_ptr, n_devices, n_success: 0 };
        let result = self.call(&mut args);
        (result, args.n_success)
    }

    pub fn unmap_from(&self, handle: u64, gpus: &[u32]) -> (Result<(), i32>, u32) {
        let (device_ids_array_ptr, n_devices) = (gpus.as_ptr() as u64, gpus.len() as u32);
        let mut args = UnmapMemoryFromGpuArgs { handle, device_ids_array_ptr, n_devices, n_success: 0 };
        let result = self.call(&mut args);
        (result, args.n_success)
    }

    pub fn mmap(&self, fd: i32, addr: u64, len: u64, offset: u64) -> Result<u64, i32> {
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | if addr == 0 { 0 } else { libc::MAP_FIXED };
        // SAFETY: tests pass reservations of theirs.
        let at = unsafe { self.driver.mmap(addr as usize, len as usize, prot, flags, fd, offset) };
        at.map(|at| at as u64).map_err(|errno| errno.raw())
    }

    /// Memory that host and all GPUs reach.
    pub fn buffer(&self, bytes: u64, flags: u32) -> Buffer {
        self.buffer_on(0, bytes, flags)
    }

    /// The same, owned by one of the GPUs.
    pub fn buffer_on(&self, gpu: usize, bytes: u64, flags: u32) -> Buffer {
        let bytes = bytes.next_multiple_of(4096);
        let va = self.reserve(bytes);
        let gpu_id = self.gpus[gpu];
        let mut args = AllocMemoryOfGpuArgs { va_addr: va, size: bytes, flags, gpu_id, ..Default::default() };
        self.call(&mut args).unwrap();
        self.mmap(self.render[gpu], va, bytes, args.mmap_offset).unwrap();
        assert_eq!(self.map_to(args.handle, &self.gpus), (Ok(()), self.gpus.len() as u32));
        Buffer { va, bytes, handle: args.handle }
    }

    /// Contents of the trace.
    pub fn trace(&self) -> Vec<Event> {
        self.events.records().into_iter().map(|record| record.event).collect()
    }
}

/// What a queue needs, and its CREATE_QUEUE argument.
pub struct QueueParts {
    pub control: Buffer,
    pub ring: Buffer,
    pub eop: Buffer,
    pub save: Buffer,
    pub args: CreateQueueArgs,
}

impl Client {
    /// A number of the topology; none where the kernel version has no such key.
    fn property(&self, gpu: usize, key: &str) -> Option<u32> {
        let path = format!("/sys/class/kfd/kfd/topology/nodes/{}/properties", gpu + 1);
        let text = self.driver.read(&path).unwrap();
        let text = String::from_utf8(text).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        Some(line.trim().parse().unwrap())
    }

    /// A queue's buffers on the first GPU, for `packets` packets.
    pub fn queue_parts(&self, packets: u32, queue: AmdQueue) -> QueueParts {
        self.queue_parts_on(0, packets, queue)
    }

    fn queue_parts_on(&self, gpu: usize, packets: u32, queue: AmdQueue) -> QueueParts {
        let property = |key| self.property(gpu, key).unwrap();
        let cwsr = self.driver.kernel().devices[gpu].cwsr;
        let ring = self.buffer_on(gpu, u64::from(packets) * 64, SHARED);
        for index in 0..packets as usize {
            ring.u64(64 * index).store(1, Ordering::Relaxed);
        }
        let control = self.buffer_on(gpu, 4096, SHARED);
        let properties = queue.queue_properties.with_is_ptr64(true);
        let queue = AmdQueue { base_address: ring.va, size: packets, queue_properties: properties, ..queue };
        control.write(0, &queue.to_v1_bytes());
        let save_bytes = self.property(gpu, "cwsr_size").unwrap_or(cwsr.save);
        let control_stack = self.property(gpu, "ctl_stack_size").unwrap_or(cwsr.control_stack);
        let xccs = self.property(gpu, "num_xcc").unwrap_or(1);
        let cus = property("simd_count") / property("simd_per_cu") / xccs;
        let waves = if property("gfx_target_version") >= 100_100 {
            cus * 32
        } else {
            let engines = property("array_count") / xccs / property("simd_arrays_per_engine");
            (cus * 40).min(engines * 512)
        };
        let debug = (waves * 32).next_multiple_of(64);
        let save = self.buffer(u64::from(save_bytes + debug) * u64::from(xccs), SHARED);
        let eop = self.buffer(4096, ALLOC_MEM_FLAGS_VRAM | ALLOC_MEM_FLAGS_WRITABLE | ALLOC_MEM_FLAGS_EXECUTABLE);
        let args = CreateQueueArgs {
            ring_base_address: ring.va,
            write_pointer_address: control.va + 56,
            read_pointer_address: control.va + 128,
            ring_size: packets * 64,
            gpu_id: self.gpus[gpu],
            queue_type: QUEUE_TYPE_COMPUTE_AQL,
            queue_percentage: 100,
            queue_priority: 7,
            eop_buffer_address: eop.va,
            eop_buffer_size: 4096,
            ctx_save_restore_address: save.va,
            ctx_save_restore_size: save_bytes,
            ctl_stack_size: control_stack,
            ..Default::default()
        };
        QueueParts { control, ring, eop, save, args }
    }

    /// A queue that runs.
    pub fn queue(&self, packets: u32, queue: AmdQueue) -> ClientQueue<'_> {
        self.queue_on(0, packets, queue)
    }

    /// A queue that runs on one of the GPUs.
    pub fn queue_on(&self, gpu: usize, packets: u32, queue: AmdQueue) -> ClientQueue<'_> {
        self.start(self.queue_parts_on(gpu, packets, queue), packets)
    }

    /// Creates the queue of some buffers.
    pub fn start(&self, mut parts: QueueParts, packets: u32) -> ClientQueue<'_> {
        self.call(&mut parts.args).unwrap();
        let offset = parts.args.doorbell_offset;
        let slice = self.mmap(self.kfd, 0, 8192, offset & !8191).unwrap();
        ClientQueue { client: self, parts, packets, doorbell: slice + (offset & 8191) }
    }
}

/// A queue as its client sees it.
pub struct ClientQueue<'a> {
    pub client: &'a Client,
    pub parts: QueueParts,
    pub packets: u32,
    pub doorbell: u64,
}

impl ClientQueue<'_> {
    /// Publishes a packet without ringing the doorbell; returns its index.
    pub fn publish(&self, packet: [u8; PACKET_BYTES]) -> u64 {
        let index = self.parts.control.u64(56).fetch_add(1, Ordering::SeqCst);
        let slot = (index % u64::from(self.packets)) as usize * PACKET_BYTES;
        self.parts.ring.write(slot + 4, &packet[4..]);
        let word = u32::from_le_bytes([packet[0], packet[1], packet[2], packet[3]]);
        self.parts.ring.u32(slot).store(word, Ordering::Release);
        index
    }

    /// A plain store to the doorbell.
    pub fn ring(&self, index: u64) {
        // SAFETY: the doorbell is mapped as long as the client lives.
        unsafe { (self.doorbell as *mut u64).write_volatile(index) }
    }

    pub fn submit(&self, packet: [u8; PACKET_BYTES]) -> u64 {
        let index = self.publish(packet);
        self.ring(index);
        index
    }

    pub fn header(&self, index: u64) -> u16 {
        let slot = (index % u64::from(self.packets)) as usize * PACKET_BYTES;
        self.parts.ring.u32(slot).load(Ordering::Acquire) as u16
    }

    pub fn read_index(&self) -> u64 {
        self.parts.control.u64(128).load(Ordering::Acquire)
    }

    pub fn destroy(&self) -> Result<(), i32> {
        self.client.call(&mut DestroyQueueArgs { queue_id: self.parts.args.queue_id, pad: 0 })
    }
}

/// A signal in a buffer.
#[derive(Clone, Copy)]
pub struct ClientSignal {
    pub va: u64,
}

impl ClientSignal {
    pub fn new(buffer: &Buffer, offset: usize, value: i64) -> ClientSignal {
        let bytes = aql::AmdSignal { kind: signal::SignalKind::User, value, ..Default::default() }.to_bytes();
        buffer.write(offset, &bytes);
        ClientSignal { va: buffer.va + offset as u64 }
    }

    pub fn value(&self) -> &AtomicI64 {
        // SAFETY: signals lie in buffers that live as long as the client.
        unsafe { AtomicI64::from_ptr((self.va as usize + signal::VALUE) as *mut i64) }
    }

    /// Waits until the value is `wanted`; fails after ten seconds.
    pub fn wait(&self, wanted: i64) {
        until(|| self.value().load(Ordering::Acquire) == wanted);
    }
}

/// Waits for something; fails after ten seconds.
pub fn until(ready: impl Fn() -> bool) {
    let start = Instant::now();
    while !ready() {
        assert!(start.elapsed() < Duration::from_secs(10), "waited for too long");
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// Properties with profiling.
pub fn profiling() -> QueueProperties {
    QueueProperties::new().with_enable_profiling(true)
}

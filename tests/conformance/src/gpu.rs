//! A GPU as a case uses it: raw calls with the right arguments, which the case then gets wrong on purpose.

use kfd::topology::TOPOLOGY;
use kfd::uapi::*;
use kfd::{ContextSave, Driver, Errno, GfxTarget, Node, Topology};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::session::Stop;

/// Flags of memory that host and GPU share.
pub const SHARED: u32 = ALLOC_MEM_FLAGS_GTT
    | ALLOC_MEM_FLAGS_WRITABLE
    | ALLOC_MEM_FLAGS_EXECUTABLE
    | ALLOC_MEM_FLAGS_COHERENT
    | ALLOC_MEM_FLAGS_UNCACHED;

/// Flags of device memory.
pub const VRAM: u32 = ALLOC_MEM_FLAGS_VRAM | ALLOC_MEM_FLAGS_WRITABLE | ALLOC_MEM_FLAGS_EXECUTABLE;

/// The longest that a case waits for a GPU.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Topology nodes with a GPU; 0 also when the topology cannot be read.
pub fn count(driver: &dyn Driver) -> usize {
    let nodes = driver.list(&format!("{TOPOLOGY}/nodes")).unwrap_or_default();
    nodes.iter().filter(|node| gpu_id(driver, node).is_some_and(|id| id != 0)).count()
}

fn gpu_id(driver: &dyn Driver, node: &str) -> Option<u32> {
    let bytes = driver.read(&format!("{TOPOLOGY}/nodes/{node}/gpu_id")).ok()?;
    String::from_utf8(bytes).ok()?.trim().parse().ok()
}

/// The first GPU of the machine, acquired.
#[derive(Clone)]
pub struct Gpu {
    driver: Arc<dyn Driver>,
    /// `/dev/kfd`.
    pub kfd: i32,
    /// Render node.
    pub render: i32,
    /// gpu_id.
    pub id: u32,
    /// Topology node.
    pub node: Node,
    /// Processor.
    pub target: GfxTarget,
    /// Context save sizes.
    pub save: ContextSave,
}

/// A buffer that is mapped on the GPU and for the host.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Address, the same on both sides.
    pub va: u64,
    /// Bytes.
    pub size: u64,
    /// Handle.
    pub handle: u64,
}

impl Memory {
    /// A word.
    pub fn u64(&self, offset: u64) -> &AtomicU64 {
        assert!(offset + 8 <= self.size && offset.is_multiple_of(8), "a word inside the buffer");
        // SAFETY: inside the mapping and aligned (checked just above); buffers stay mapped as long as the case runs,
        // and host and GPU share them.
        unsafe { AtomicU64::from_ptr((self.va + offset) as *mut u64) }
    }

    /// A word of 32 bits.
    pub fn u32(&self, offset: u64) -> &AtomicU32 {
        assert!(offset + 4 <= self.size && offset.is_multiple_of(4), "a word inside the buffer");
        // SAFETY: as above.
        unsafe { AtomicU32::from_ptr((self.va + offset) as *mut u32) }
    }

    /// Copies bytes in.
    pub fn write(&self, offset: u64, bytes: &[u8]) {
        assert!(offset + bytes.len() as u64 <= self.size, "a range inside the buffer");
        // SAFETY: inside the mapping (checked just above).
        unsafe { ((self.va + offset) as *mut u8).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) }
    }

    /// A signal with a value and without an event.
    pub fn signal(&self, offset: u64, value: i64) -> Signal {
        let bytes = aql::AmdSignal { kind: aql::signal::SignalKind::User, value, ..Default::default() }.to_bytes();
        self.write(offset, &bytes);
        Signal { va: self.va + offset }
    }
}

/// A signal in a buffer.
#[derive(Clone, Copy, Debug)]
pub struct Signal {
    /// Address: its handle.
    pub va: u64,
}

impl Signal {
    /// The value.
    pub fn value(&self) -> &AtomicI64 {
        // SAFETY: signals lie aligned in buffers that stay mapped as long as the case runs.
        unsafe { AtomicI64::from_ptr((self.va as usize + aql::signal::VALUE) as *mut i64) }
    }

    /// Waits until the value is `wanted`; what it was at the end.
    pub fn wait(&self, wanted: i64) -> i64 {
        until(|| self.value().load(Ordering::Acquire) == wanted);
        self.value().load(Ordering::Acquire)
    }
}

/// Waits until something holds, for [`PATIENCE`] at most.
pub fn until(ready: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while !ready() {
        if start.elapsed() > PATIENCE {
            return false;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    true
}

impl Gpu {
    /// Opens and acquires the first GPU.
    ///
    /// # Errors
    /// There is none, or it cannot be acquired.
    pub fn acquire(driver: Arc<dyn Driver>, kfd: i32) -> Result<Gpu, Stop> {
        let gpu = Gpu::open(driver, kfd)?;
        gpu.call(&mut AcquireVmArgs { drm_fd: gpu.render as u32, gpu_id: gpu.id })?;
        Ok(gpu)
    }

    /// Opens the first GPU.
    ///
    /// # Errors
    /// There is none, or its topology makes no sense.
    pub fn open(driver: Arc<dyn Driver>, kfd: i32) -> Result<Gpu, Stop> {
        Gpu::nth(driver, kfd, 0)
    }

    /// Opens the n-th GPU.
    ///
    /// # Errors
    /// As [`Gpu::open`].
    pub fn nth(driver: Arc<dyn Driver>, kfd: i32, n: usize) -> Result<Gpu, Stop> {
        let failed = |text: String| Stop::Failed(text);
        let system = kfd::System::new(driver.clone(), trace::Tracer::new(Vec::new()));
        let topology = Topology::read_gpus(&system).map_err(|error| failed(error.to_string()))?;
        let node = topology.gpus().nth(n).ok_or_else(|| failed("no such GPU".to_string()))?.clone();
        let minor = node.properties.drm_render_minor.ok_or_else(|| failed("no drm_render_minor".to_string()))?;
        let version = node.properties.gfx_target_version.unwrap_or_default();
        let target = GfxTarget::from_version(version).ok_or_else(|| failed("no gfx_target_version".to_string()))?;
        let save = ContextSave::of(&node, target).map_err(|error| failed(error.to_string()))?;
        let id = node.gpu_id.ok_or_else(|| failed("no gpu_id".to_string()))?.0;
        let render = driver.open(&format!("/dev/dri/renderD{minor}"))?;
        Ok(Gpu { driver, kfd, render, id, node, target, save })
    }

    /// An ioctl.
    pub fn call<T: Ioctl>(&self, args: &mut T) -> Result<(), Errno> {
        self.driver.ioctl(self.kfd, T::REQUEST, args.as_bytes_mut()).map(drop)
    }

    /// A reservation of address space.
    pub fn reserve(&self, bytes: u64) -> Result<u64, Errno> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: without MAP_FIXED the kernel chooses a free place.
        unsafe { self.driver.mmap(0, bytes as usize, libc::PROT_NONE, flags, -1, 0) }.map(|at| at as u64)
    }

    /// ALLOC_MEMORY_OF_GPU.
    pub fn alloc(&self, va_addr: u64, size: u64, flags: u32) -> Result<AllocMemoryOfGpuArgs, Errno> {
        let mut args = AllocMemoryOfGpuArgs { va_addr, size, flags, gpu_id: self.id, ..Default::default() };
        self.call(&mut args).map(|()| args)
    }

    /// ALLOC_MEMORY_OF_GPU of memory of the caller's: the same address on both.
    pub fn alloc_user(&self, memory: u64, size: u64) -> Result<AllocMemoryOfGpuArgs, Errno> {
        let flags = ALLOC_MEM_FLAGS_USERPTR | ALLOC_MEM_FLAGS_WRITABLE;
        let (va_addr, mmap_offset) = (memory, memory);
        let mut args =
            AllocMemoryOfGpuArgs { va_addr, mmap_offset, size, flags, gpu_id: self.id, ..Default::default() };
        self.call(&mut args).map(|()| args)
    }

    /// MAP_MEMORY_TO_GPU: what it answered, and `n_success`.
    pub fn map(&self, handle: u64, gpus: &[u32]) -> (Result<(), Errno>, u32) {
        let (device_ids_array_ptr, n_devices) = (gpus.as_ptr() as u64, gpus.len() as u32);
        let mut args = MapMemoryToGpuArgs { handle, device_ids_array_ptr, n_devices, n_success: 0 };
        let result = self.call(&mut args);
        (result, args.n_success)
    }

    /// UNMAP_MEMORY_FROM_GPU: what it answered, and `n_success`.
    pub fn unmap(&self, handle: u64, gpus: &[u32]) -> (Result<(), Errno>, u32) {
        let (device_ids_array_ptr, n_devices) = (gpus.as_ptr() as u64, gpus.len() as u32);
        let mut args = UnmapMemoryFromGpuArgs { handle, device_ids_array_ptr, n_devices, n_success: 0 };
        let result = self.call(&mut args);
        (result, args.n_success)
    }

    /// FREE_MEMORY_OF_GPU.
    pub fn free(&self, handle: u64) -> Result<(), Errno> {
        self.call(&mut FreeMemoryOfGpuArgs { handle })
    }

    /// mmap of a file, at a reservation or, with 0, where the kernel likes.
    pub fn mmap(&self, fd: i32, addr: u64, len: u64, offset: u64) -> Result<u64, Errno> {
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | if addr == 0 { 0 } else { libc::MAP_FIXED };
        // SAFETY: cases pass reservations of theirs, which nothing refers into.
        unsafe { self.driver.mmap(addr as usize, len as usize, prot, flags, fd, offset) }.map(|at| at as u64)
    }

    /// Memory that is mapped on the GPU and, unless it is private device memory, for the host.
    pub fn memory(&self, bytes: u64, flags: u32) -> Result<Memory, Errno> {
        let size = bytes.next_multiple_of(4096);
        let va = self.reserve(size)?;
        let made = self.alloc(va, size, flags).and_then(|args| {
            if flags & ALLOC_MEM_FLAGS_VRAM == 0 || flags & ALLOC_MEM_FLAGS_PUBLIC != 0 {
                self.mmap(self.render, va, size, args.mmap_offset)?;
            }
            self.map(args.handle, &[self.id]).0?;
            Ok(Memory { va, size, handle: args.handle })
        });
        if made.is_err() {
            // SAFETY: the reservation just made, which nothing refers into.
            let _ = unsafe { self.driver.munmap(va as usize, size as usize) };
        }
        made
    }

    /// The buffers of a queue of `packets` packets, and the argument that creates it.
    pub fn queue_parts(&self, packets: u32) -> Result<QueueParts, Errno> {
        let ring = self.memory(u64::from(packets) * 64, SHARED)?;
        for index in 0..u64::from(packets) {
            ring.u64(64 * index).store(1, Ordering::Relaxed);
        }
        let control = self.memory(4096, SHARED)?;
        let save = self.memory(self.save.total, ALLOC_MEM_FLAGS_GTT | ALLOC_MEM_FLAGS_WRITABLE | SHARED)?;
        let eop = self.memory(4096, VRAM)?;
        let properties = aql::queue::QueueProperties::new().with_is_ptr64(true);
        let inactive = control.signal(0xc00, 0);
        let queue = aql::AmdQueue {
            base_address: ring.va,
            size: packets,
            group_segment_aperture_base_hi: 0x1_0000,
            private_segment_aperture_base_hi: 0x2_0000,
            queue_properties: properties,
            queue_inactive_signal: inactive.va,
            ..Default::default()
        };
        control.write(0, &queue.to_v1_bytes());
        let args = CreateQueueArgs {
            ring_base_address: ring.va,
            write_pointer_address: control.va + aql::queue::WRITE_DISPATCH_ID as u64,
            read_pointer_address: control.va + aql::queue::READ_DISPATCH_ID as u64,
            ring_size: packets * 64,
            gpu_id: self.id,
            queue_type: QUEUE_TYPE_COMPUTE_AQL,
            queue_percentage: 100,
            queue_priority: 7,
            eop_buffer_address: eop.va,
            eop_buffer_size: 4096,
            ctx_save_restore_address: save.va,
            ctx_save_restore_size: self.save.slice,
            ctl_stack_size: self.save.control_stack,
            ..Default::default()
        };
        Ok(QueueParts { control, ring, eop, save, inactive, args })
    }

    /// A queue that runs.
    pub fn queue(&self, packets: u32) -> Result<Queue, Errno> {
        self.start(self.queue_parts(packets)?)
    }

    /// Creates the queue of some buffers.
    pub fn start(&self, mut parts: QueueParts) -> Result<Queue, Errno> {
        self.call(&mut parts.args)?;
        let offset = parts.args.doorbell_offset;
        let slice = self.mmap(self.kfd, 0, DOORBELL_SLICE, offset & !(DOORBELL_SLICE - 1))?;
        let doorbell = slice + (offset & (DOORBELL_SLICE - 1));
        Ok(Queue { gpu: self.clone(), packets: u64::from(parts.args.ring_size / 64), slice, doorbell, parts })
    }

    /// Code that ends at once, behind its kernel descriptor, or runs for ever.
    pub fn kernel(&self, code: Code) -> Result<Memory, Errno> {
        const CODE: u64 = 256;
        let memory = self.memory(4096, SHARED)?;
        let version = self.target.version();
        let gfx9 = version < 100_000;
        let end: u32 = if version >= 110_000 { 0xbfb0_0000 } else { 0xbf81_0000 };
        let words: Vec<u32> = match code {
            Code::End => vec![end],
            // `s_branch -1` jumps to itself: opcode 2 of SOPP until GFX10, 0x20 since.
            Code::Spin if version >= 110_000 => vec![0xbfa0_ffff, end],
            Code::Spin => vec![0xbf82_ffff, end],
        };
        // compute_pgm_rsrc1 and 2 stay 0: the least registers. Wave32 where there is one.
        let properties: u16 = if gfx9 { 0 } else { 1 << 10 };
        memory.write(16, &CODE.to_le_bytes());
        memory.write(56, &properties.to_le_bytes());
        for (i, word) in words.iter().enumerate() {
            memory.write(CODE + 4 * i as u64, &word.to_le_bytes());
        }
        Ok(memory)
    }
}

/// Bytes of a process' doorbells on GFX9 and later.
pub const DOORBELL_SLICE: u64 = 8192;

/// What a kernel does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Ends.
    End,
    /// Never ends.
    Spin,
}

/// What a queue needs, and its CREATE_QUEUE argument.
#[derive(Clone, Copy, Debug)]
pub struct QueueParts {
    /// The page of the `amd_queue_t`.
    pub control: Memory,
    /// Ring.
    pub ring: Memory,
    /// End-of-pipe buffer.
    pub eop: Memory,
    /// Context save area.
    pub save: Memory,
    /// `queue_inactive_signal`.
    pub inactive: Signal,
    /// Argument.
    pub args: CreateQueueArgs,
}

impl QueueParts {
    /// Unmaps and frees the buffers.
    pub fn free(&self, gpu: &Gpu) -> Result<(), Errno> {
        for memory in [self.control, self.ring, self.eop, self.save] {
            gpu.unmap(memory.handle, &[gpu.id]).0?;
            // SAFETY: the case's own mapping, of which nothing is kept.
            unsafe { gpu.driver.munmap(memory.va as usize, memory.size as usize)? };
            gpu.free(memory.handle)?;
        }
        Ok(())
    }
}

/// A queue that runs.
pub struct Queue {
    gpu: Gpu,
    packets: u64,
    slice: u64,
    doorbell: u64,
    /// Its memory.
    pub parts: QueueParts,
}

impl Queue {
    /// Id.
    pub fn id(&self) -> u32 {
        self.parts.args.queue_id
    }

    /// Publishes a packet without ringing the doorbell; returns its index.
    pub fn publish(&self, packet: [u8; 64]) -> u64 {
        let index = self.parts.control.u64(aql::queue::WRITE_DISPATCH_ID as u64).fetch_add(1, Ordering::SeqCst);
        let slot = index % self.packets * 64;
        self.parts.ring.write(slot + 4, &packet[4..]);
        let word = u32::from_le_bytes([packet[0], packet[1], packet[2], packet[3]]);
        self.parts.ring.u32(slot).store(word, Ordering::Release);
        index
    }

    /// Stores to the doorbell.
    pub fn ring(&self, index: u64) {
        // SAFETY: an aligned word of the doorbell mapping, which lives as long as the queue.
        unsafe { (self.doorbell as *mut u64).write_volatile(index) }
        self.gpu.driver.doorbell_hint();
    }

    /// Publishes a packet and rings; returns its index.
    pub fn submit(&self, packet: [u8; 64]) -> u64 {
        let index = self.publish(packet);
        self.ring(index);
        index
    }

    /// Header of a packet's slot.
    pub fn header(&self, index: u64) -> u16 {
        self.parts.ring.u32(index % self.packets * 64).load(Ordering::Acquire) as u16
    }

    /// `read_dispatch_id`.
    pub fn read_index(&self) -> u64 {
        self.parts.control.u64(aql::queue::READ_DISPATCH_ID as u64).load(Ordering::Acquire)
    }

    /// DESTROY_QUEUE.
    pub fn destroy(&self) -> Result<(), Errno> {
        self.gpu.call(&mut DestroyQueueArgs { queue_id: self.id(), pad: 0 })
    }

    /// Unmaps the doorbells.
    pub fn unmap_doorbell(&self) -> Result<(), Errno> {
        // SAFETY: the queue's own mapping.
        unsafe { self.gpu.driver.munmap(self.slice as usize, DOORBELL_SLICE as usize) }
    }
}

/// A dispatch of one work-item.
pub fn dispatch(kernel: &Memory, completion_signal: u64) -> aql::KernelDispatch {
    aql::KernelDispatch {
        fences: aql::Fences::SYSTEM,
        dims: 1,
        kernel_object: kernel.va,
        completion_signal,
        ..Default::default()
    }
}

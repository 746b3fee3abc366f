//! Device-accessible memory.
//!
//! A buffer has one address, on the host and on the GPU. Its life is: reserve a range of addresses with a page in front
//! and behind that stays inaccessible, ALLOC_MEMORY_OF_GPU, map it into the host when the host may reach it,
//! MAP_MEMORY_TO_GPU; and back: UNMAP_MEMORY_FROM_GPU, munmap, FREE_MEMORY_OF_GPU.

mod ledger;

pub use ledger::Known;
pub(crate) use ledger::Ledger;

use crate::device::Device;
use crate::errno::Errno;
use crate::error::{Error, Result};
use crate::system::MmapArgs;
use crate::types::{GpuId, GpuVa, PAGE_SIZE, page_up};
use crate::uapi::{
    self, ALLOC_MEM_FLAGS_COHERENT as COHERENT, ALLOC_MEM_FLAGS_EXECUTABLE as EXECUTABLE, ALLOC_MEM_FLAGS_GTT as GTT,
    ALLOC_MEM_FLAGS_PUBLIC as PUBLIC, ALLOC_MEM_FLAGS_UNCACHED as UNCACHED, ALLOC_MEM_FLAGS_USERPTR as USERPTR,
    ALLOC_MEM_FLAGS_VRAM as VRAM, ALLOC_MEM_FLAGS_WRITABLE as WRITABLE, sysfs,
};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// What a buffer is for, which decides its ALLOC flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Device memory the host does not touch: scratch, end-of-pipe buffers.
    Vram,
    /// Device memory the host reaches through the BAR: code objects. Needs a large BAR, else
    /// [`Error::NoLargeBar`] and [`Kind::Control`] is the alternative.
    VramHostVisible,
    /// System memory that host and GPU both watch, uncached on the GPU: rings, queues, signals, kernel arguments.
    Control,
    /// System memory the GPU caches: context save areas, bulk data.
    System,
}

impl Kind {
    /// `ALLOC_MEM_FLAGS_*`.
    pub const fn flags(self) -> u32 {
        match self {
            Kind::Vram => VRAM | WRITABLE | EXECUTABLE,
            Kind::VramHostVisible => VRAM | WRITABLE | EXECUTABLE | PUBLIC,
            Kind::Control => GTT | WRITABLE | EXECUTABLE | COHERENT | UNCACHED,
            Kind::System => GTT | WRITABLE | EXECUTABLE,
        }
    }
}

/// Buffers of this size and more start at a multiple of it, so that the GPU can use 2 MiB page table entries.
const BIG_PAGE: u64 = 2 << 20;

/// A range of host addresses, inaccessible until something is mapped over it.
#[derive(Debug)]
struct Reservation {
    base: usize,
    len: usize,
}

/// A buffer mapped on one GPU. Dropping it undoes everything; what fails then is in the trace only.
#[derive(Debug)]
pub struct Buffer {
    device: Arc<Device>,
    purpose: &'static str,
    va: GpuVa,
    size: u64,
    /// Bytes asked for.
    bytes: u64,
    flags: u32,
    handle: Option<u64>,
    mapped: bool,
    /// None for a buffer over memory of the caller.
    reservation: Option<Reservation>,
    /// Where the host reaches it: at `va`, if at all.
    host: Option<NonNull<u8>>,
}

// SAFETY: `host` points to a mapping that lives as long as the buffer. It is memory shared with a device, so all access
// is atomic, which any thread may do.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Allocates `size` bytes, rounded up to pages. `purpose` names the buffer in traces and errors.
    pub fn new(device: &Arc<Device>, kind: Kind, size: u64, purpose: &'static str) -> Result<Buffer> {
        Buffer::with_flags(device, kind.flags(), size, purpose)
    }

    /// As [`Buffer::new`] with `ALLOC_MEM_FLAGS_*` of the caller's choice: VRAM or GTT with any rights.
    pub fn with_flags(device: &Arc<Device>, flags: u32, size: u64, purpose: &'static str) -> Result<Buffer> {
        let pages = page_up(size).filter(|bytes| *bytes > 0).ok_or(Error::Size {
            what: purpose,
            size,
            rule: "a buffer has 1 byte at least, and its pages fit 64 bits",
        })?;
        let mut buffer = Buffer::reserve(device, flags, pages, purpose)?;
        buffer.bytes = size;
        buffer.make()
    }

    /// As [`Buffer::new`] at an address, where nothing of this process may lie. `va` and `size` are whole pages; there are
    /// no inaccessible pages around it.
    pub fn at(device: &Arc<Device>, kind: Kind, va: GpuVa, size: u64, purpose: &'static str) -> Result<Buffer> {
        if size == 0 || !size.is_multiple_of(PAGE_SIZE) || !va.0.is_multiple_of(PAGE_SIZE) {
            let rule = "memory at an address of choice begins at a page and has whole pages";
            return Err(Error::Size { what: purpose, size, rule });
        }
        let mut buffer = Buffer {
            device: device.clone(),
            purpose,
            va,
            size,
            bytes: size,
            flags: kind.flags(),
            handle: None,
            mapped: false,
            reservation: None,
            host: None,
        };
        buffer.check_range()?;
        let (base, len) = (va.0 as usize, size as usize);
        device.reserve_at(purpose, base, len)?;
        buffer.reservation = Some(Reservation { base, len });
        buffer.make()
    }

    /// Allocates and maps what is reserved.
    fn make(mut self) -> Result<Buffer> {
        let mmap_offset = self.allocate(0)?;
        if self.flags & (GTT | PUBLIC) != 0 {
            self.map_host(mmap_offset)?;
        }
        self.map_gpu()?;
        Ok(self)
    }

    /// Makes memory of this process accessible to the GPU at the same address (USERPTR).
    ///
    /// `size` and `address` are whole pages. The memory is kept out of child processes: a fork would else make it
    /// copy-on-write and stop the queues.
    ///
    /// # Safety
    /// The memory stays mapped, and no reference to it that is not atomic or shared and unwritten is used, as long as
    /// the buffer lives.
    pub unsafe fn from_host(
        device: &Arc<Device>,
        address: NonNull<u8>,
        size: u64,
        purpose: &'static str,
    ) -> Result<Buffer> {
        let va = address.as_ptr() as u64;
        if size == 0 || !size.is_multiple_of(PAGE_SIZE) || !va.is_multiple_of(PAGE_SIZE) {
            let rule = "memory of this process is given to the GPU in whole pages, from a page's start";
            return Err(Error::Size { what: purpose, size, rule });
        }
        let mut buffer = Buffer {
            device: device.clone(),
            purpose,
            va: GpuVa(va),
            size,
            bytes: size,
            flags: USERPTR | WRITABLE | EXECUTABLE | COHERENT,
            handle: None,
            mapped: false,
            reservation: None,
            host: Some(address),
        };
        buffer.check_range()?;
        device.kfd().system().dont_fork(va as usize, size as usize);
        buffer.allocate(va)?;
        buffer.map_gpu()?;
        Ok(buffer)
    }

    fn reserve(device: &Arc<Device>, flags: u32, size: u64, purpose: &'static str) -> Result<Buffer> {
        let align = if size >= BIG_PAGE { BIG_PAGE } else { PAGE_SIZE };
        // A guard page in front, one behind, and room to move the start up to its alignment.
        let len = size
            .checked_add(2 * PAGE_SIZE + align - PAGE_SIZE)
            .and_then(|len| usize::try_from(len).ok())
            .ok_or(Error::Size { what: purpose, size, rule: "buffer and guard pages fit the address space" })?;
        let base = device.reserve(purpose, len)?;
        let va = (base as u64 + PAGE_SIZE).next_multiple_of(align);
        let buffer = Buffer {
            device: device.clone(),
            purpose,
            va: GpuVa(va),
            size,
            bytes: size,
            flags,
            handle: None,
            mapped: false,
            reservation: Some(Reservation { base, len }),
            host: None,
        };
        buffer.check_range()?;
        Ok(buffer)
    }

    /// MAP does not check the GPU's limits, so this does.
    fn check_range(&self) -> Result<()> {
        let apertures = self.device.apertures();
        let last = self.va.0.checked_add(self.size - 1);
        if self.va.0 < apertures.gpuvm_base || last.is_none_or(|last| last > apertures.gpuvm_limit) {
            let (base, limit) = (GpuVa(apertures.gpuvm_base), GpuVa(apertures.gpuvm_limit));
            return Err(Error::OutsideGpuVm { purpose: self.purpose, va: self.va, base, limit });
        }
        Ok(())
    }

    /// ALLOC_MEMORY_OF_GPU; returns `mmap_offset`.
    fn allocate(&mut self, mmap_offset: u64) -> Result<u64> {
        let mut args = uapi::AllocMemoryOfGpuArgs {
            va_addr: self.va.0,
            size: self.size,
            mmap_offset,
            gpu_id: self.device.gpu_id().0,
            flags: self.flags,
            ..Default::default()
        };
        match self.device.kfd().call(&mut args) {
            Ok(_) => {
                self.handle = Some(args.handle);
                Ok(args.mmap_offset)
            }
            Err(error) if error.errno() == Some(Errno::EINVAL) && self.flags & PUBLIC != 0 => {
                Err(self.no_large_bar().unwrap_or(error))
            }
            Err(error) => Err(error),
        }
    }

    /// The error for PUBLIC memory on a GPU whose topology shows no large BAR.
    fn no_large_bar(&self) -> Option<Error> {
        let banks = self.device.mem_banks().ok()?;
        let of = |heap_type| banks.iter().find(|bank| bank.heap_type == Some(heap_type));
        if of(sysfs::MEM_HEAP_TYPE_FB_PUBLIC).is_some() {
            return None;
        }
        let vram = of(sysfs::MEM_HEAP_TYPE_FB_PRIVATE).and_then(|bank| bank.size_in_bytes);
        Some(Error::NoLargeBar { gpu: self.device.gpu_id(), vram })
    }

    /// Maps the buffer over its reservation, through the open of the render node that ACQUIRE_VM got: the kernel lets no
    /// other one map it.
    fn map_host(&mut self, mmap_offset: u64) -> Result<()> {
        let args = MmapArgs {
            addr: self.va.0 as usize,
            len: self.size as usize,
            prot: libc::PROT_READ | libc::PROT_WRITE,
            flags: libc::MAP_SHARED | libc::MAP_FIXED,
            fd: self.device.render_fd(),
            offset: mmap_offset,
        };
        let system = self.device.kfd().system();
        // SAFETY: the range lies inside this buffer's own reservation, into which nothing refers yet.
        let address = unsafe { system.mmap(self.purpose, args) }.map_err(|errno| Error::Mmap {
            purpose: self.purpose,
            len: self.size,
            errno,
        })?;
        system.dont_fork(address, self.size as usize);
        self.host = NonNull::new(address as *mut u8);
        Ok(())
    }

    fn map_gpu(&mut self) -> Result<()> {
        let Some(handle) = self.handle else { return Ok(()) };
        let n_success = map_to(&self.device, handle)?;
        if n_success != 1 {
            return Err(Error::NotMapped { purpose: self.purpose, n_success });
        }
        self.mapped = true;
        let range = self.va.0..self.va.0.saturating_add(self.size);
        let gpu = self.device.gpu_id();
        self.device.kfd().ledger().add(range, self.bytes, self.purpose, gpu, self.flags, self.host.is_some());
        Ok(())
    }

    /// The device it is mapped on.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Address, page aligned.
    pub fn va(&self) -> GpuVa {
        self.va
    }

    /// Bytes, whole pages.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Names the buffer in reports on stray addresses: [`Device::nearest_buffer`].
    pub fn set_name(&self, name: String) {
        self.device.kfd().ledger().rename(self.va, name);
    }

    /// What it is for.
    pub fn purpose(&self) -> &'static str {
        self.purpose
    }

    /// Whether the host can reach it.
    pub fn is_host_visible(&self) -> bool {
        self.host.is_some()
    }

    /// Handle of the allocation: `gpu_id << 32 | n`.
    pub(crate) fn handle(&self) -> u64 {
        self.handle.unwrap_or(0)
    }

    /// Whether a range of bytes lies inside the buffer.
    pub fn contains(&self, va: GpuVa, len: u64) -> bool {
        va.0.checked_sub(self.va.0).and_then(|offset| offset.checked_add(len)).is_some_and(|end| end <= self.size)
    }

    /// Where the host reaches `len` bytes at `offset`. Valid as long as the buffer. The memory is shared with a device:
    /// only atomic and volatile access is allowed.
    ///
    /// [`Error::NotHostVisible`], [`Error::OutOfBounds`].
    pub fn host_ptr(&self, offset: u64, len: u64) -> Result<NonNull<u8>> {
        let host = self.host.ok_or(Error::NotHostVisible { purpose: self.purpose })?;
        if offset.checked_add(len).is_none_or(|end| end > self.size) {
            return Err(Error::OutOfBounds { purpose: self.purpose, offset, len, size: self.size });
        }
        // SAFETY: `offset <= size`, and `host` points to `size` mapped bytes.
        Ok(unsafe { host.add(offset as usize) })
    }

    /// Copies bytes into the buffer. The GPU sees them once a packet, header or signal stored after them with release
    /// order tells it to look.
    pub fn write_bytes(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        for piece in self.pieces(offset, bytes.len() as u64)? {
            match piece {
                Piece::Byte(i, at) => at.store(bytes[i], Ordering::Relaxed),
                Piece::Long(i, at) => {
                    let mut long = [0; 8];
                    long.copy_from_slice(&bytes[i..i + 8]);
                    at.store(u64::from_ne_bytes(long), Ordering::Relaxed);
                }
            }
        }
        Ok(())
    }

    /// Copies bytes out of the buffer.
    pub fn read_bytes(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        for piece in self.pieces(offset, bytes.len() as u64)? {
            match piece {
                Piece::Byte(i, at) => bytes[i] = at.load(Ordering::Relaxed),
                Piece::Long(i, at) => bytes[i..i + 8].copy_from_slice(&at.load(Ordering::Relaxed).to_ne_bytes()),
            }
        }
        Ok(())
    }

    /// Sets `len` bytes to `byte`.
    pub fn fill(&self, offset: u64, len: u64, byte: u8) -> Result<()> {
        for piece in self.pieces(offset, len)? {
            match piece {
                Piece::Byte(_, at) => at.store(byte, Ordering::Relaxed),
                Piece::Long(_, at) => at.store(u64::from_ne_bytes([byte; 8]), Ordering::Relaxed),
            }
        }
        Ok(())
    }

    /// A word of the buffer, for atomic access.
    pub fn atomic_u32(&self, offset: u64) -> Result<&AtomicU32> {
        let at = self.aligned(offset, 4)?;
        // SAFETY: inside the mapping, which lives as long as `self`, and a multiple of 4 (both checked).
        Ok(unsafe { AtomicU32::from_ptr(at.as_ptr().cast()) })
    }

    /// A double word of the buffer, for atomic access.
    pub fn atomic_u64(&self, offset: u64) -> Result<&AtomicU64> {
        let at = self.aligned(offset, 8)?;
        // SAFETY: inside the mapping, which lives as long as `self`, and a multiple of 8 (both checked).
        Ok(unsafe { AtomicU64::from_ptr(at.as_ptr().cast()) })
    }

    fn pieces(&self, offset: u64, len: u64) -> Result<Pieces<'_>> {
        let start = self.host_ptr(offset, len)?;
        Ok(Pieces { start, len: len as usize, next: 0, buffer: PhantomData })
    }

    fn aligned(&self, offset: u64, align: u64) -> Result<NonNull<u8>> {
        let at = self.host_ptr(offset, align)?;
        if !offset.is_multiple_of(align) {
            return Err(Error::Misaligned { purpose: self.purpose, offset, align });
        }
        Ok(at)
    }

    /// Gives the buffer up without undoing anything: the kernel keeps it until the process ends.
    pub(crate) fn keep(mut self) -> KeptBuffer {
        let kept = KeptBuffer { va: self.va, handle: self.handle(), gpu: self.device.gpu_id() };
        (self.handle, self.mapped, self.reservation) = (None, false, None);
        kept
    }
}

/// A buffer that stays until the process ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeptBuffer {
    pub va: GpuVa,
    pub handle: u64,
    pub gpu: GpuId,
}

/// MAP_MEMORY_TO_GPU on one device; returns `n_success`.
pub(crate) fn map_to(device: &Device, handle: u64) -> Result<u32> {
    let gpus = [device.gpu_id().0];
    let mut args = uapi::MapMemoryToGpuArgs {
        handle,
        device_ids_array_ptr: gpus.as_ptr() as u64,
        n_devices: gpus.len() as u32,
        n_success: 0,
    };
    device.kfd().call(&mut args)?;
    Ok(args.n_success)
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let kfd = self.device.kfd();
        if self.mapped {
            kfd.ledger().free(self.va);
        }
        if kfd.is_leaving() {
            return;
        }
        if let (true, Some(handle)) = (self.mapped, self.handle) {
            let gpus = [self.device.gpu_id().0];
            let mut args = uapi::UnmapMemoryFromGpuArgs {
                handle,
                device_ids_array_ptr: gpus.as_ptr() as u64,
                n_devices: gpus.len() as u32,
                n_success: 0,
            };
            // A failure is in the trace; there is nobody to tell.
            let _ = kfd.ioctl(&mut args);
        }
        if let Some(Reservation { base, len }) = self.reservation.take() {
            // SAFETY: the range this buffer reserved; whoever held a pointer or reference into it held the buffer.
            unsafe { kfd.system().munmap(base, len) };
        }
        if let Some(handle) = self.handle.take() {
            let _ = kfd.ioctl(&mut uapi::FreeMemoryOfGpuArgs { handle });
        }
    }
}

/// A byte or an aligned double word of a range, with its offset from the start of the range. Memory shared with a device
/// and with other threads is copied by relaxed atomic access, which costs no more than plain access here.
enum Piece<'b> {
    Byte(usize, &'b AtomicU8),
    Long(usize, &'b AtomicU64),
}

/// The pieces of a range of a buffer, in order; made by [`Buffer::pieces`] with `start` pointing to `len` mapped bytes.
struct Pieces<'b> {
    start: NonNull<u8>,
    len: usize,
    next: usize,
    buffer: PhantomData<&'b Buffer>,
}

impl<'b> Iterator for Pieces<'b> {
    type Item = Piece<'b>;

    fn next(&mut self) -> Option<Piece<'b>> {
        let i = self.next;
        let left = self.len.checked_sub(i).filter(|left| *left > 0)?;
        // SAFETY: `i < len`, and `start` points to `len` mapped bytes.
        let at = unsafe { self.start.add(i) };
        if at.addr().get().is_multiple_of(8) && left >= 8 {
            self.next += 8;
            // SAFETY: aligned, 8 bytes inside the range, and the mapping lives as long as the buffer.
            Some(Piece::Long(i, unsafe { AtomicU64::from_ptr(at.as_ptr().cast()) }))
        } else {
            self.next += 1;
            // SAFETY: a byte inside the range, and the mapping lives as long as the buffer.
            Some(Piece::Byte(i, unsafe { AtomicU8::from_ptr(at.as_ptr()) }))
        }
    }
}

#[cfg(test)]
mod tests;

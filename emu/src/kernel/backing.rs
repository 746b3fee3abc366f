//! Memory behind buffers: ranges of one sparse file a device, which the emulator maps for itself and clients map too.
//!
//! GPU accesses go through the emulator's own mapping, so they do not depend on whether or how the host has mapped a
//! buffer.

use crate::memory::Backing;
use kfd::Errno;
use std::ffi::CStr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// Rounds up to whole pages; none on overflow.
pub fn page_up(bytes: u64) -> Option<u64> {
    Some(bytes.checked_add(PAGE - 1)? & !(PAGE - 1))
}

/// An empty anonymous file.
pub fn memfd(name: &CStr) -> std::io::Result<OwnedFd> {
    // SAFETY: the name is a C string; the result is a new descriptor that nothing else owns.
    unsafe {
        let fd = libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC);
        if fd < 0 { Err(std::io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd)) }
    }
}

/// The memory of one device node as a sparse file; offsets in it are the node's mmap offsets.
pub struct NodeMemory {
    file: OwnedFd,
    end: Mutex<u64>,
    /// Process it was made in. In a forked child the file is its parent's.
    pid: u32,
}

impl NodeMemory {
    /// A file whose first range lies at `start`.
    pub fn new(name: &CStr, start: u64) -> std::io::Result<NodeMemory> {
        Ok(NodeMemory { file: memfd(name)?, end: Mutex::new(start), pid: std::process::id() })
    }

    /// Takes a fresh range of zeroed memory. Ranges are never used again: a late access to a freed one meets nothing.
    pub fn allocate(self: &Arc<NodeMemory>, bytes: u64) -> Result<Arc<Pages>, Errno> {
        self.allocate_charged(bytes, None)
    }

    /// The same, of memory that was taken account of.
    pub fn allocate_charged(self: &Arc<NodeMemory>, bytes: u64, charge: Option<Charge>) -> Result<Arc<Pages>, Errno> {
        let len = page_up(bytes).filter(|len| *len > 0).ok_or(Errno::ENOMEM)?;
        let size = usize::try_from(len).map_err(|_| Errno::ENOMEM)?;
        let offset = self.take(len)?;
        // SAFETY: a new mapping at an address the kernel chooses, of a range inside the file.
        let host = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_NORESERVE,
                self.file.as_raw_fd(),
                offset as i64,
            )
        };
        if host == libc::MAP_FAILED {
            return Err(Errno::ENOMEM);
        }
        Ok(Arc::new(Pages { host: host.cast(), len, file: Some((self.clone(), offset)), charge }))
    }
}

impl NodeMemory {
    /// Takes a range of offsets.
    fn take(&self, len: u64) -> Result<u64, Errno> {
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        let offset = *end;
        let new = offset.checked_add(len).ok_or(Errno::ENOMEM)?;
        let new_off = i64::try_from(new).map_err(|_| Errno::ENOMEM)?;
        // SAFETY: a plain call on a descriptor this struct owns.
        if unsafe { libc::ftruncate(self.file.as_raw_fd(), new_off) } != 0 {
            return Err(Errno::ENOMEM);
        }
        *end = new;
        Ok(offset)
    }

    /// An offset for a buffer whose memory is elsewhere.
    pub fn offset_only(&self, bytes: u64) -> Result<u64, Errno> {
        self.take(page_up(bytes).ok_or(Errno::ENOMEM)?)
    }
}

/// Memory that is taken from a limit, and given back when this is dropped.
pub trait Account: Send + Sync {
    /// Gives bytes back.
    fn discharge(&self, bytes: u64);
}

/// Bytes taken of an account.
pub struct Charge {
    /// Of this one.
    pub account: Arc<dyn Account>,
    /// So many.
    pub bytes: u64,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.account.discharge(self.bytes);
    }
}

/// Host memory of one buffer. It lives as long as the buffer, a mapping of it, or a descriptor it was exported by.
pub struct Pages {
    host: *mut u8,
    len: u64,
    /// None: memory of the caller (USERPTR), which is not this struct's to unmap.
    file: Option<(Arc<NodeMemory>, u64)>,
    /// What it takes of the limits.
    charge: Option<Charge>,
}

// SAFETY: the memory is shared with clients and the emulated GPU anyway, and is accessed with atomics and volatile
// operations only.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Backing for Pages {}

impl Pages {
    /// Memory of the caller.
    pub fn of_user(addr: u64, len: u64, charge: Option<Charge>) -> Arc<Pages> {
        Arc::new(Pages { host: addr as *mut u8, len, file: None, charge })
    }

    /// Where the emulator sees it.
    pub fn host(&self) -> *mut u8 {
        self.host
    }

    /// Bytes.
    pub fn size(&self) -> u64 {
        self.len
    }

    /// Offset in the node's file; none for memory of the caller.
    pub fn offset(&self) -> Option<u64> {
        self.file.as_ref().map(|(_, offset)| *offset)
    }

    /// Maps `len` bytes from `from` on for a client.
    ///
    /// # Safety
    /// As [`kfd::Driver::mmap`].
    pub unsafe fn map(&self, from: u64, addr: usize, len: usize, prot: i32, flags: i32) -> Result<usize, Errno> {
        let (node, offset) = self.file.as_ref().ok_or(Errno::EPERM)?;
        let offset = (*offset + from) as i64;
        // SAFETY: the caller's promise covers `addr`; the file range belongs to this buffer.
        let at = unsafe { libc::mmap(addr as *mut _, len, prot, flags, node.file.as_raw_fd(), offset) };
        if at == libc::MAP_FAILED { Err(Errno::last()) } else { Ok(at as usize) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        drop(self.charge.take());
        let Some((node, offset)) = &self.file else { return };
        // SAFETY: the mapping was made by `allocate` for this struct alone, and dropping it means that no translation and
        // no client mapping of the range is left.
        unsafe { libc::munmap(self.host.cast(), self.len as usize) };
        if node.pid != std::process::id() {
            // Inherited by a fork: the bytes are the parent's.
            return;
        }
        let (mode, fd) = (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE, node.file.as_raw_fd());
        // SAFETY: a plain call on a descriptor; the range is this struct's, and the hole gives its memory back.
        unsafe { libc::fallocate(fd, mode, *offset as i64, self.len as i64) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_and_the_gpu_see_the_same_memory() {
        let node = Arc::new(NodeMemory::new(c"test", 1 << 32).unwrap());
        let first = node.allocate(100).unwrap();
        let second = node.allocate(4097).unwrap();
        assert_eq!((first.size(), second.size()), (4096, 8192));
        assert_eq!((first.offset(), second.offset()), (Some(1 << 32), Some((1 << 32) + 4096)));
        // SAFETY: a fresh mapping nobody else uses.
        unsafe {
            let seen = second.map(0, 0, 8192, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED).unwrap() as *mut u8;
            seen.add(5000).write_volatile(7);
            assert_eq!(second.host().add(5000).read_volatile(), 7);
            assert_eq!(first.host().read_volatile(), 0);
            libc::munmap(seen.cast(), 8192);
        }
    }

    #[test]
    fn sizes_that_cannot_be() {
        let node = Arc::new(NodeMemory::new(c"test", 0).unwrap());
        for bytes in [0, u64::MAX, u64::MAX - 4096, 1 << 63] {
            assert_eq!(node.allocate(bytes).err(), Some(Errno::ENOMEM), "{bytes:#x}");
        }
    }
}

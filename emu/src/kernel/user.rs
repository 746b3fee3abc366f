//! The caller's memory, which the kernel must not trust.

use kfd::Errno;
use kfd::uapi::Pod;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

/// One past the last address of user space on x86-64 with 4-level page tables.
pub const TASK_SIZE: u64 = 0x7fff_ffff_f000;

/// `access_ok`: the range lies in user space. Nothing is said about what is mapped there, and 0 is fine.
pub fn access_ok(addr: u64, bytes: u64) -> bool {
    bytes <= TASK_SIZE && addr <= TASK_SIZE - bytes
}

/// Copies from and to the caller's memory. A bad address is EFAULT, not a crash: the bytes go through a file, so that
/// the host's kernel checks the address.
pub struct UserMemory {
    bounce: Mutex<OwnedFd>,
}

impl UserMemory {
    /// Sets up the file.
    pub fn new() -> std::io::Result<UserMemory> {
        Ok(UserMemory { bounce: Mutex::new(super::backing::memfd(c"kfdrun-copy")?) })
    }

    /// `copy_from_user`.
    pub fn read(&self, addr: u64, bytes: &mut [u8]) -> Result<(), Errno> {
        self.copy(addr, addr, bytes.as_mut_ptr() as u64, bytes.len())
    }

    /// `copy_to_user`.
    pub fn write(&self, addr: u64, bytes: &[u8]) -> Result<(), Errno> {
        self.copy(addr, bytes.as_ptr() as u64, addr, bytes.len())
    }

    fn copy(&self, user: u64, from: u64, to: u64, len: usize) -> Result<(), Errno> {
        // Nothing is copied, so nothing can fail, whatever the address.
        if len == 0 {
            return Ok(());
        }
        if !access_ok(user, len as u64) {
            return Err(Errno::EFAULT);
        }
        let file = self.bounce.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: both calls take any address and fail with EFAULT where it cannot be read or written; the side that is
        // not the user's is a slice of `len` bytes that the caller holds.
        let done = unsafe {
            libc::pwrite(file.as_raw_fd(), from as *const libc::c_void, len, 0) == len as isize
                && libc::pread(file.as_raw_fd(), to as *mut libc::c_void, len, 0) == len as isize
        };
        if done { Ok(()) } else { Err(Errno::EFAULT) }
    }

    /// Reads a value.
    pub fn get<T: Pod>(&self, addr: u64) -> Result<T, Errno> {
        let mut value = T::zeroed();
        self.read(addr, value.as_bytes_mut())?;
        Ok(value)
    }

    /// Writes a value.
    pub fn put<T: Pod>(&self, addr: u64, value: &T) -> Result<(), Errno> {
        self.write(addr, value.as_bytes())
    }

    /// Reads `count` values; ENOMEM where the kernel could not allocate the array.
    pub fn get_array<T: Pod>(&self, addr: u64, count: u32) -> Result<Vec<T>, Errno> {
        let bytes = (count as usize).checked_mul(size_of::<T>()).ok_or(Errno::ENOMEM)?;
        // kmalloc's limit: 4 MiB.
        if bytes > 4 << 20 {
            return Err(Errno::ENOMEM);
        }
        let mut raw = vec![0; bytes];
        self.read(addr, &mut raw)?;
        Ok(raw.chunks_exact(size_of::<T>()).map(T::from_prefix_or_zero).collect())
    }
}

/// How `/proc/self/maps` names what is mapped of a device node: the files of [`NodeMemory`](super::backing::NodeMemory).
const DEVICE_MAPPING: &str = " /memfd:kfdrun-";

/// What a range of the caller's memory is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserPages {
    /// All of it can be read and written.
    Writable,
    /// The first part that cannot be written can be read.
    ReadOnly,
    /// The first part that cannot be written is not there, cannot be read either, or is a device's.
    Absent,
}

/// Whether the GPU can use a range of the caller's memory, as the kernel's walk through it finds out.
pub fn pages(addr: u64, bytes: u64) -> UserPages {
    first_not(addr, bytes, "rw").map_or(UserPages::Writable, |rights| match rights {
        Some(rights) if rights.contains('r') => UserPages::ReadOnly,
        _ => UserPages::Absent,
    })
}

/// Whether all of a range is ordinary memory of this process with at least these rights.
fn is_mapped(addr: u64, bytes: u64, rights: &str) -> bool {
    first_not(addr, bytes, rights).is_none()
}

/// The first part of a range that is not ordinary memory of this process with at least these rights (as in
/// `/proc/self/maps`: `r`, `w`, `x`): its rights, none where nothing is mapped or it is of a device node.
fn first_not(addr: u64, bytes: u64, rights: &str) -> Option<Option<String>> {
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return Some(None) };
    let Some(end) = addr.checked_add(bytes) else { return Some(None) };
    let mut reached = addr;
    for line in maps.lines() {
        let mut words = line.split_ascii_whitespace();
        let (Some(range), Some(has)) = (words.next(), words.next()) else { continue };
        let Some((from, to)) = range.split_once('-') else { continue };
        let (Ok(from), Ok(to)) = (u64::from_str_radix(from, 16), u64::from_str_radix(to, 16)) else { continue };
        if to <= reached {
            continue;
        }
        if reached >= end {
            break;
        }
        if from > reached || line.contains(DEVICE_MAPPING) {
            return Some(None);
        }
        if !rights.chars().all(|right| has.contains(right)) {
            return Some(Some(has.to_owned()));
        }
        reached = to;
    }
    (reached < end).then_some(None)
}

/// Whether the GPU can use a range of the caller's memory: all of it is mapped, to read and write.
pub fn is_writable(addr: u64, bytes: u64) -> bool {
    is_mapped(addr, bytes, "rw")
}

/// Whether all of a range is ordinary memory, with whatever rights.
pub fn is_present(addr: u64, bytes: u64) -> bool {
    is_mapped(addr, bytes, "")
}

/// Puts fresh zero pages in place of the caller's memory, which it is about to unmap but waves may still touch.
pub fn replace(addr: u64, len: u64) -> Result<(), Errno> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    // SAFETY: the caller gives the range up (it is unmapping it), so nothing of it is in use.
    let at = unsafe { libc::mmap(addr as *mut _, len as usize, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    if at == libc::MAP_FAILED { Err(Errno::last()) } else { Ok(()) }
}

/// Unmaps what [`replace`] left.
pub fn unmap(addr: u64, len: u64) {
    // SAFETY: the range was given up by the caller when it was replaced, and no translation to it is left.
    unsafe {
        libc::munmap(addr as *mut _, len as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_and_faults() {
        let user = UserMemory::new().unwrap();
        let source = [1u32, 2, 3];
        assert_eq!(user.get_array::<u32>(source.as_ptr() as u64, 3).unwrap(), source);
        let mut target = 0u64;
        user.put(&raw mut target as u64, &7u64).unwrap();
        assert_eq!(target, 7);
        for bad in [0, 8, TASK_SIZE, u64::MAX] {
            assert_eq!(user.get::<u64>(bad), Err(Errno::EFAULT), "{bad:#x}");
            assert_eq!(user.put(bad, &0u64), Err(Errno::EFAULT), "{bad:#x}");
        }
    }

    #[test]
    fn range_checks() {
        assert!(access_ok(0, 8));
        assert!(access_ok(TASK_SIZE - 8, 8));
        assert!(!access_ok(TASK_SIZE - 7, 8));
        assert!(!access_ok(u64::MAX, 1));
        assert!(!access_ok(0, u64::MAX));
    }

    #[test]
    fn rights_of_ranges() {
        // SAFETY: fresh mappings that nothing else uses.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let at = libc::mmap(std::ptr::null_mut(), 3 * 4096, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
            let addr = at as u64;
            assert!(is_writable(addr, 3 * 4096));
            libc::mprotect((addr + 4096) as *mut _, 4096, libc::PROT_READ);
            assert!(is_writable(addr, 4096) && !is_writable(addr, 8192) && is_present(addr, 3 * 4096));
            assert_eq!((pages(addr, 4096), pages(addr, 8192)), (UserPages::Writable, UserPages::ReadOnly));
            libc::mprotect((addr + 8192) as *mut _, 4096, libc::PROT_NONE);
            assert_eq!((pages(addr, 3 * 4096), pages(addr + 8192, 4096)), (UserPages::ReadOnly, UserPages::Absent));
            libc::mprotect((addr + 8192) as *mut _, 4096, libc::PROT_READ);
            libc::munmap((addr + 4096) as *mut _, 4096);
            assert!(!is_present(addr, 3 * 4096) && is_present(addr + 8192, 4096));
            libc::munmap(addr as *mut _, 3 * 4096);
        }
        assert!(!is_present(u64::MAX - 4095, 4096) && !is_present(0, 4096));
    }
}

//! The Linux kernel as a [`Driver`].

use crate::driver::{Driver, Permissions};
use crate::errno::Errno;
use crate::uapi::IoctlInfo;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use std::os::fd::{IntoRawFd, RawFd};

/// Passes every call on to the kernel.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinuxDriver;

/// Greater than any sysfs attribute, which is one page at most.
const SYSFS_BUFFER: usize = 16 * 1024;

fn check(result: i32) -> Result<i32, Errno> {
    if result == -1 { Err(Errno::last()) } else { Ok(result) }
}

impl Driver for LinuxDriver {
    fn open(&self, path: &str) -> Result<i32, Errno> {
        let fd = open(path, OFlag::O_RDWR | OFlag::O_CLOEXEC, Mode::empty())?;
        Ok(fd.into_raw_fd())
    }

    fn close(&self, fd: RawFd) -> Result<(), Errno> {
        Ok(nix::unistd::close(fd)?)
    }

    fn ioctl(&self, fd: RawFd, request: u32, arg: &mut [u8]) -> Result<i32, Errno> {
        // The kernel copies as many bytes as the request number says.
        if arg.len() < IoctlInfo::size_of_request(request) {
            return Err(Errno::EFAULT);
        }
        // SAFETY: `arg` is writable for at least the bytes the request number announces, which are what the kernel
        // reads and writes there. Addresses inside it are the caller's to vouch for.
        check(unsafe { libc::ioctl(fd, request as _, arg.as_mut_ptr()) })
    }

    unsafe fn mmap(
        &self,
        addr: usize,
        len: usize,
        prot: i32,
        flags: i32,
        fd: RawFd,
        offset: u64,
    ) -> Result<usize, Errno> {
        // The cast keeps the bits: the offset of a doorbell is negative as an `off_t`.
        let offset = offset as libc::off_t;
        // SAFETY: the caller owns the range when MAP_FIXED is set (trait contract); without it the kernel chooses a free
        // one.
        let at = unsafe { libc::mmap(addr as *mut libc::c_void, len, prot, flags, fd, offset) };
        if at == libc::MAP_FAILED { Err(Errno::last()) } else { Ok(at as usize) }
    }

    unsafe fn munmap(&self, addr: usize, len: usize) -> Result<(), Errno> {
        // SAFETY: the caller owns the mapping and nothing refers into it (trait contract).
        check(unsafe { libc::munmap(addr as *mut libc::c_void, len) }).map(drop)
    }

    fn dont_fork(&self, addr: usize, len: usize) -> Result<(), Errno> {
        // SAFETY: MADV_DONTFORK changes what a child process inherits, and no memory of this one.
        check(unsafe { libc::madvise(addr as *mut libc::c_void, len, libc::MADV_DONTFORK) }).map(drop)
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, Errno> {
        let fd = open(path, OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty())?;
        let mut bytes = vec![0; SYSFS_BUFFER];
        let mut len = 0;
        // A read that leaves room in the buffer was the last one, which spares the read that would return 0.
        loop {
            let n = nix::unistd::read(&fd, &mut bytes[len..])?;
            len += n;
            if len < bytes.len() {
                bytes.truncate(len);
                return Ok(bytes);
            }
            bytes.resize(len + SYSFS_BUFFER, 0);
        }
    }

    fn list(&self, path: &str) -> Result<Vec<String>, Errno> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(path)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        Ok(names)
    }

    fn permissions(&self, path: &str) -> Result<Permissions, Errno> {
        let stat = nix::sys::stat::stat(path)?;
        let mut caller_gids = vec![nix::unistd::getegid().as_raw()];
        caller_gids.extend(nix::unistd::getgroups()?.iter().map(|gid| gid.as_raw()));
        Ok(Permissions {
            mode: stat.st_mode & 0o7777,
            uid: stat.st_uid,
            gid: stat.st_gid,
            group: nix::unistd::Group::from_gid(stat.st_gid.into()).ok().flatten().map(|group| group.name),
            caller_uid: nix::unistd::geteuid().as_raw(),
            caller_gids,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::PAGE_SIZE;

    #[test]
    fn files_and_folders() {
        let driver = LinuxDriver;
        assert_eq!(driver.read("/nonexistent"), Err(Errno::ENOENT));
        assert_eq!(driver.list("/nonexistent"), Err(Errno::ENOENT));
        assert_eq!(driver.open("/nonexistent"), Err(Errno::ENOENT));
        assert_eq!(driver.close(-1), Err(Errno::EBADF));
        assert!(driver.read("/proc/self/stat").unwrap().len() > 10);
        assert!(driver.list("/proc/self").unwrap().iter().any(|name| name == "fd"));
    }

    #[test]
    fn a_file_longer_than_the_buffer_is_read_whole() {
        let path = std::env::temp_dir().join(format!("kfdrun-linux-read-{}", std::process::id()));
        let bytes: Vec<u8> = (0..SYSFS_BUFFER * 2 + 7).map(|i| i as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let read = LinuxDriver.read(path.to_str().unwrap());
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read, Ok(bytes));
    }

    #[test]
    fn an_argument_shorter_than_its_request_never_reaches_the_kernel() {
        assert_eq!(LinuxDriver.ioctl(-1, 0xc060_4b02, &mut [0; 95]), Err(Errno::EFAULT));
        assert_eq!(LinuxDriver.ioctl(-1, 0xc060_4b02, &mut [0; 96]), Err(Errno::EBADF));
    }

    #[test]
    fn anonymous_memory() {
        let (driver, len) = (LinuxDriver, PAGE_SIZE as usize);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: no MAP_FIXED; the kernel chooses the address.
        let addr = unsafe { driver.mmap(0, len, libc::PROT_NONE, flags, -1, 0) }.unwrap();
        driver.dont_fork(addr, len).unwrap();
        // SAFETY: the mapping made above, to which there are no references.
        unsafe { driver.munmap(addr, len) }.unwrap();
    }

    #[test]
    fn permissions_of_a_node() {
        let permissions = LinuxDriver.permissions("/dev/null").unwrap();
        assert_eq!(permissions.mode & 0o666, 0o666);
        assert!(!permissions.caller_gids.is_empty());
    }
}

//! The driver together with the tracer that hears of every call to it.

use crate::driver::{Driver, Permissions};
use crate::errno::Errno;
use crate::uapi::{Ioctl, Layout, Record};
use std::sync::Arc;
use trace::{Event, Tracer};

/// A driver and a tracer; cheap to clone.
#[derive(Clone)]
pub struct System {
    driver: Arc<dyn Driver>,
    tracer: Tracer,
}

/// How often an ioctl is tried again on EAGAIN before that is the answer.
const MAX_EAGAIN: u32 = 10_000;

impl std::fmt::Debug for System {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("System").field("tracer", &self.tracer).finish_non_exhaustive()
    }
}

impl System {
    /// A system over `driver` whose calls `tracer` hears.
    pub fn new(driver: Arc<dyn Driver>, tracer: Tracer) -> System {
        System { driver, tracer }
    }

    /// The tracer.
    pub fn tracer(&self) -> &Tracer {
        &self.tracer
    }

    /// Contents of a sysfs file.
    pub fn read(&self, path: &str) -> Result<Vec<u8>, Errno> {
        let result = self.driver.read(path);
        self.tracer.emit(|| Event::Sysfs { path: path.to_string(), result: sizes(&result, Vec::len) });
        result
    }

    /// Names in a sysfs folder, in no particular order.
    pub fn list(&self, path: &str) -> Result<Vec<String>, Errno> {
        let result = self.driver.list(path);
        self.tracer.emit(|| Event::Sysfs { path: path.to_string(), result: sizes(&result, Vec::len) });
        result
    }

    /// Owner and mode of a device node.
    pub fn permissions(&self, path: &str) -> Result<Permissions, Errno> {
        self.driver.permissions(path)
    }

    pub(crate) fn open(&self, path: &str) -> Result<i32, Errno> {
        let result = self.driver.open(path);
        self.tracer.emit(|| Event::Open { path: path.to_string(), result: result.map_err(Errno::raw) });
        result
    }

    pub(crate) fn close(&self, fd: i32) {
        // The descriptor is gone whatever close returns.
        let _ = self.driver.close(fd);
        self.tracer.emit(|| Event::Close { fd });
    }

    /// One ioctl, again on EINTR and EAGAIN. Each try is an event of its own.
    pub(crate) fn ioctl<T: Ioctl>(&self, fd: i32, args: &mut T) -> Result<i32, Errno> {
        let mut again = 0;
        loop {
            let result = self.driver.ioctl(fd, T::REQUEST, args.as_bytes_mut());
            self.emit_ioctl(T::NAME, T::REQUEST, <T as Record>::LAYOUT, args.as_bytes(), result);
            match result {
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) if again < MAX_EAGAIN => {
                    again += 1;
                    std::thread::yield_now();
                }
                _ => return result,
            }
        }
    }

    fn emit_ioctl(&self, name: &'static str, request: u32, layout: &Layout, arg: &[u8], result: Result<i32, Errno>) {
        self.tracer.emit(|| Event::Ioctl {
            name,
            request,
            fields: layout.trace(arg),
            result: result.map_err(Errno::raw),
        });
    }

    /// `mmap` with the purpose it has in the trace.
    ///
    /// # Safety
    /// As [`Driver::mmap`].
    pub(crate) unsafe fn mmap(&self, purpose: &'static str, args: MmapArgs) -> Result<usize, Errno> {
        let MmapArgs { addr, len, prot, flags, fd, offset } = args;
        // SAFETY: the caller keeps the contract of `Driver::mmap`.
        let result = unsafe { self.driver.mmap(addr, len, prot, flags, fd, offset) };
        self.tracer.emit(|| Event::Mmap {
            purpose,
            va: result.unwrap_or(addr) as u64,
            len: len as u64,
            fd: (fd >= 0).then_some(fd),
            offset,
            errno: result.err().map_or(0, Errno::raw),
        });
        result
    }

    /// # Safety
    /// As [`Driver::munmap`].
    pub(crate) unsafe fn munmap(&self, addr: usize, len: usize) {
        // SAFETY: the caller keeps the contract of `Driver::munmap`.
        let result = unsafe { self.driver.munmap(addr, len) };
        self.tracer.emit(|| match result {
            Ok(()) => Event::Munmap { va: addr as u64, len: len as u64 },
            Err(errno) => Event::Note { text: format!("munmap of {len} bytes at {addr:#x} failed: {errno}") },
        });
    }

    /// Keeps a range out of child processes. A kernel that refuses is noted and no more: only a fork would tell.
    pub(crate) fn dont_fork(&self, addr: usize, len: usize) {
        if let Err(errno) = self.driver.dont_fork(addr, len) {
            let text = || format!("MADV_DONTFORK of {len} bytes at {addr:#x} failed: {errno}");
            self.tracer.emit(|| Event::Note { text: text() });
        }
    }

    /// The waves that the GPUs hold now, where the machine can tell: [`Driver::waves`].
    pub fn waves(&self) -> Option<Vec<trace::Wave>> {
        self.driver.waves()
    }

    pub(crate) fn doorbell_hint(&self) {
        self.driver.doorbell_hint();
    }
}

/// Arguments of mmap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MmapArgs {
    pub addr: usize,
    pub len: usize,
    pub prot: i32,
    pub flags: i32,
    pub fd: i32,
    pub offset: u64,
}

fn sizes<T>(result: &Result<T, Errno>, size: impl Fn(&T) -> usize) -> Result<usize, i32> {
    match result {
        Ok(value) => Ok(size(value)),
        Err(errno) => Err(errno.raw()),
    }
}

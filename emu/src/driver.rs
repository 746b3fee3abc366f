//! The emulated machine as a [`kfd::Driver`].

use crate::cp::Bell;
use crate::kernel::backing::{PAGE, Pages, memfd};
use crate::kernel::file::{self, File};
use crate::kernel::{Kernel, Options, call, drm, mmap, user};
use crate::machine::Machine;
use kfd::Errno;
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::os::fd::IntoRawFd;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use trace::Tracer;

/// An emulated machine: its device nodes, sysfs, and the GPUs behind them.
///
/// Descriptors are real ones of this process, so their numbers mean nothing else. All opens share one process object,
/// as the kernel has it. When the driver is dropped, its queues stop and its descriptors are closed; mappings that are
/// left stay mapped.
pub struct EmulatedDriver {
    kernel: Arc<Kernel>,
    /// Client mappings of buffers, by start: memory stays while it is mapped.
    mappings: Mutex<BTreeMap<usize, Mapping>>,
    bell: OnceLock<Arc<Bell>>,
}

struct Mapping {
    end: usize,
    pages: Arc<Pages>,
}

impl EmulatedDriver {
    /// A machine that was just switched on. Events of its packet processors go to `tracer`.
    ///
    /// # Errors
    /// The host gives no anonymous file (`memfd_create`).
    pub fn new(machine: Machine, options: Options, tracer: Tracer) -> std::io::Result<EmulatedDriver> {
        Ok(EmulatedDriver {
            kernel: Arc::new(Kernel::new(&machine, options, tracer)?),
            mappings: Mutex::default(),
            bell: OnceLock::new(),
        })
    }

    #[cfg(test)]
    pub(crate) fn kernel(&self) -> &Arc<Kernel> {
        &self.kernel
    }

    /// The caller's process object.
    #[cfg(test)]
    pub(crate) fn process(&self) -> Option<Arc<crate::kernel::process::Process>> {
        self.kernel.existing_process()
    }

    fn mappings(&self) -> MutexGuard<'_, BTreeMap<usize, Mapping>> {
        self.mappings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_file(&self, name: &CStr, file: File) -> Result<i32, Errno> {
        let fd = memfd(name).map_err(|_| Errno::EMFILE)?.into_raw_fd();
        self.kernel.files.insert(fd, Arc::new(file));
        Ok(fd)
    }

    fn open_node(&self, path: &str) -> Result<i32, Errno> {
        if path == "/dev/kfd" {
            let process = self.kernel.process()?;
            self.bell.get_or_init(|| process.bell.clone());
            return self.open_file(file::KFD_NAME, File::Kfd { process });
        }
        let minor = path.strip_prefix("/dev/dri/renderD").and_then(|minor| minor.parse().ok());
        let device = self.kernel.devices.iter().find(|device| Some(device.render_minor) == minor);
        let device = device.ok_or(Errno::ENOENT)?.clone();
        self.open_file(c"kfdrun-render", File::Render { device, compute: AtomicBool::new(false) })
    }

    /// Takes `addr..addr + len` out of the client mappings, which are cut where they stick out.
    fn forget(&self, addr: usize, len: usize) {
        let end = addr.saturating_add(len);
        let mut mappings = self.mappings();
        let hit: Vec<usize> = mappings
            .range(..end)
            .rev()
            .take_while(|(_, mapping)| mapping.end > addr)
            .map(|(start, _)| *start)
            .collect();
        for start in hit {
            let Some(mapping) = mappings.remove(&start) else { continue };
            if start < addr {
                mappings.insert(start, Mapping { end: addr, pages: mapping.pages.clone() });
            }
            if mapping.end > end {
                mappings.insert(end, Mapping { end: mapping.end, pages: mapping.pages });
            }
        }
    }

    /// mmap of a device node.
    ///
    /// # Safety
    /// As [`kfd::Driver::mmap`].
    unsafe fn map_file(&self, addr: usize, fd: i32, request: mmap::Request) -> Result<usize, Errno> {
        let file = self.kernel.files.get(fd);
        // The process object is the caller's, also with another process' file.
        let file = match self.kernel.existing_process() {
            Some(process) if file.is_none() && file::is_foreign_kfd(fd) => Some(Arc::new(File::Kfd { process })),
            _ => file,
        };
        let Some(file) = file else {
            // A file of the host.
            // SAFETY: the caller's promise.
            let at = unsafe {
                libc::mmap(addr as *mut _, request.len, request.prot, request.flags, fd, request.offset as i64)
            };
            return if at == libc::MAP_FAILED { Err(Errno::last()) } else { Ok(at as usize) };
        };
        let mapped = mmap::check(&self.kernel, &file, request)?;
        let prot = if mapped.visible { request.prot } else { libc::PROT_NONE };
        // SAFETY: the caller's promise.
        let at = unsafe { mapped.pages.map(mapped.from, addr, request.len, prot, request.flags)? };
        if matches!(*file, File::Kfd { .. }) {
            // Mappings of /dev/kfd are VM_DONTCOPY.
            // SAFETY: advice on the mapping that was just made.
            unsafe {
                libc::madvise(at as *mut _, request.len, libc::MADV_DONTFORK);
            }
        }
        self.forget(at, request.len);
        let end = at + request.len.next_multiple_of(PAGE as usize);
        self.mappings().insert(at, Mapping { end, pages: mapped.pages });
        Ok(at)
    }
}

impl kfd::Driver for EmulatedDriver {
    fn open(&self, path: &str) -> Result<i32, Errno> {
        self.open_node(path)
    }

    fn close(&self, fd: i32) -> Result<(), Errno> {
        self.kernel.files.closing(fd);
        // SAFETY: the caller gives the descriptor up.
        if unsafe { libc::close(fd) } != 0 {
            return Err(Errno::last());
        }
        Ok(())
    }

    fn ioctl(&self, fd: i32, request: u32, arg: &mut [u8]) -> Result<i32, Errno> {
        let Some(file) = self.kernel.files.get(fd) else {
            let answers = file::is_open(fd) && !file::is_foreign_kfd(fd);
            return Err(if answers { Errno::ENOTTY } else { Errno::EBADF });
        };
        match &*file {
            File::Kfd { process } => call::ioctl(&self.kernel, process, request, arg)?,
            File::Render { device, .. } => drm::ioctl(&self.kernel, device, request, arg)?,
            File::DmaBuf(_) => return Err(Errno::ENOTTY),
        }
        Ok(0)
    }

    unsafe fn mmap(
        &self,
        addr: usize,
        len: usize,
        prot: i32,
        flags: i32,
        fd: i32,
        offset: u64,
    ) -> Result<usize, Errno> {
        if flags & libc::MAP_ANONYMOUS == 0 && fd >= 0 {
            // SAFETY: the caller's promise.
            return unsafe { self.map_file(addr, fd, mmap::Request { len, prot, flags, offset }) };
        }
        // SAFETY: anonymous memory, at an address the caller answers for.
        let at = unsafe { libc::mmap(addr as *mut _, len, prot, flags, -1, 0) };
        if at == libc::MAP_FAILED {
            return Err(Errno::last());
        }
        self.forget(at as usize, len);
        Ok(at as usize)
    }

    unsafe fn munmap(&self, addr: usize, len: usize) -> Result<(), Errno> {
        if addr.is_multiple_of(PAGE as usize)
            && let Some(process) = self.kernel.existing_process()
            && process.lock().user_memory_gone(&self.kernel, addr as u64, len as u64)
        {
            // Memory of a USERPTR: waves that are about to touch it must not bring the host down.
            user::replace(addr as u64, len as u64)?;
            self.forget(addr, len);
            return Ok(());
        }
        // SAFETY: the caller's own mapping, by its promise.
        if unsafe { libc::munmap(addr as *mut _, len) } != 0 {
            return Err(Errno::last());
        }
        self.forget(addr, len);
        Ok(())
    }

    fn dont_fork(&self, addr: usize, len: usize) -> Result<(), Errno> {
        // SAFETY: advice changes nothing that this process sees.
        if unsafe { libc::madvise(addr as *mut _, len, libc::MADV_DONTFORK) } != 0 {
            return Err(Errno::last());
        }
        Ok(())
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, Errno> {
        self.kernel.topology.read(path)
    }

    fn list(&self, path: &str) -> Result<Vec<String>, Errno> {
        self.kernel.topology.list(path)
    }

    fn waves(&self) -> Option<Vec<trace::Wave>> {
        Some(self.kernel.devices.iter().flat_map(|device| device.engine.waves()).collect())
    }

    fn doorbell_hint(&self) {
        if let Some(bell) = self.bell.get() {
            bell.ring();
        }
    }
}

impl Drop for EmulatedDriver {
    fn drop(&mut self) {
        self.kernel.stop();
        for fd in self.kernel.files.drain() {
            // SAFETY: descriptors this driver made and has not closed.
            unsafe {
                libc::close(fd);
            }
        }
    }
}

#[cfg(test)]
mod tests;

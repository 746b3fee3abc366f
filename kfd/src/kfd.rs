//! An open `/dev/kfd`.

use crate::buffer::Ledger;
use crate::device::RenderNode;
use crate::driver::Driver;
use crate::errno::Errno;
use crate::error::{Absence, Error, Result};
use crate::event::EventPage;
use crate::system::System;
use crate::types::{GpuId, GpuVa, PAGE_SIZE};
use crate::uapi::{self, Ioctl};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use trace::Tracer;

/// Path of the device node.
pub const DEV_KFD: &str = "/dev/kfd";

/// An open `/dev/kfd` whose interface version is one this crate speaks.
///
/// All opens of a process share one process object in the kernel, with the same queues, buffers and events, and it lives
/// until the process ends. So what the kernel takes only once in the life of a process is kept here: the render nodes
/// whose VM was acquired and the event page.
#[derive(Debug)]
pub struct Kfd {
    system: System,
    fd: i32,
    version: (u32, u32),
    pub(crate) render_nodes: Mutex<Vec<RenderNode>>,
    pub(crate) event_page: Mutex<Option<EventPage>>,
    /// The buffers of all devices, for reports.
    ledger: Mutex<Ledger>,
    leaving: AtomicBool,
}

impl Kfd {
    /// Opens `/dev/kfd` and asks for the version (GET_VERSION): the major one must be 1.
    pub fn open(driver: Arc<dyn Driver>, tracer: Tracer) -> Result<Arc<Kfd>> {
        Kfd::open_on(&System::new(driver, tracer))
    }

    /// As [`Kfd::open`], on a system the caller has already.
    pub fn open_on(system: &System) -> Result<Arc<Kfd>> {
        // SAFETY: sysconf reads a number of this process and touches no memory of it.
        let page_size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let page_size = u64::try_from(page_size).unwrap_or(0);
        if page_size != PAGE_SIZE {
            return Err(Error::PageSize { bytes: page_size });
        }
        let fd = system.open(DEV_KFD).map_err(|errno| open_error(system, errno))?;
        let mut kfd = Kfd {
            system: system.clone(),
            fd,
            version: (0, 0),
            render_nodes: Mutex::default(),
            event_page: Mutex::default(),
            ledger: Mutex::default(),
            leaving: AtomicBool::new(false),
        };
        let mut args = uapi::GetVersionArgs::default();
        kfd.call(&mut args)?;
        kfd.version = (args.major_version, args.minor_version);
        if args.major_version != uapi::MAJOR_VERSION {
            return Err(Error::Version { major: args.major_version, minor: args.minor_version });
        }
        Ok(Arc::new(kfd))
    }

    /// The driver and the tracer.
    pub fn system(&self) -> &System {
        &self.system
    }

    /// Interface version: major, minor.
    pub fn version(&self) -> (u32, u32) {
        self.version
    }

    /// The process is about to end: buffers, events and descriptors dropped from now on are left to the kernel, which
    /// takes all of them back at once when the process is gone. Queues are still destroyed.
    pub fn leave(&self) {
        self.leaving.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Relaxed)
    }

    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The double word at an address, where a live buffer of this process holds it, the host reaches it, and it is
    /// aligned: for reports on signals and on what a kernel polls.
    pub fn peek(&self, va: GpuVa) -> Option<u64> {
        self.ledger().peek(va)
    }

    pub(crate) fn fd(&self) -> i32 {
        self.fd
    }

    /// One ioctl, again on EINTR and EAGAIN. `args` holds what the kernel wrote, on failure too.
    pub fn ioctl<T: Ioctl>(&self, args: &mut T) -> Result<i32, Errno> {
        self.system.ioctl(self.fd, args)
    }

    /// As [`Kfd::ioctl`], the error naming the ioctl.
    pub fn call<T: Ioctl>(&self, args: &mut T) -> Result<i32> {
        self.ioctl(args).map_err(|errno| Error::Ioctl { name: T::NAME, request: T::REQUEST, errno })
    }

    /// Whether GPUs repeat accesses that fault (SET_XNACK_MODE with a negative mode). None when the kernel cannot tell,
    /// for lack of SVM.
    pub fn xnack(&self) -> Result<Option<bool>> {
        let mut args = uapi::SetXnackModeArgs { xnack_enabled: -1 };
        match self.ioctl(&mut args) {
            Ok(_) => Ok(Some(args.xnack_enabled != 0)),
            Err(Errno::EPERM | Errno::ENOTTY) => Ok(None),
            Err(errno) => Err(ioctl_error::<uapi::SetXnackModeArgs>(errno)),
        }
    }

    /// Makes the kernel report queue exceptions (RUNTIME_ENABLE), see [`crate::QueueConfig::report_exceptions`]. Must
    /// come before the first queue.
    ///
    /// EBUSY when enabled already, EEXIST when there is a queue.
    pub fn enable_runtime(&self) -> Result<()> {
        let mode_mask = uapi::RUNTIME_ENABLE_MODE_ENABLE_MASK;
        self.call(&mut uapi::RuntimeEnableArgs { mode_mask, ..Default::default() }).map(drop)
    }

    /// Bytes of device memory that can be allocated now (AVAILABLE_MEMORY).
    pub fn available_memory(&self, gpu: GpuId) -> Result<u64> {
        let mut args = uapi::GetAvailableMemoryArgs { gpu_id: gpu.0, ..Default::default() };
        self.call(&mut args)?;
        Ok(args.available)
    }
}

impl Drop for Kfd {
    fn drop(&mut self) {
        if self.is_leaving() {
            return;
        }
        let nodes = self.render_nodes.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        for node in nodes.drain(..) {
            self.system.close(node.fd);
        }
        self.system.close(self.fd);
    }
}

fn ioctl_error<T: Ioctl>(errno: Errno) -> Error {
    Error::Ioctl { name: T::NAME, request: T::REQUEST, errno }
}

fn open_error(system: &System, errno: Errno) -> Error {
    match errno {
        Errno::ENOENT => Error::NoKfd { absence: Absence::find(system) },
        Errno::ENOMEM => Error::NoUsableGpu,
        errno => node_error(system, DEV_KFD, errno),
    }
}

/// The error for a device node that could not be opened.
pub(crate) fn node_error(system: &System, path: &str, errno: Errno) -> Error {
    let path = path.to_string();
    match errno {
        Errno::EACCES | Errno::EPERM => {
            let permissions = system.permissions(&path).ok().map(Box::new);
            Error::Permission { path, errno, permissions }
        }
        errno => Error::Open { path, errno },
    }
}

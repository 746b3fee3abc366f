//! What a case works with: an open `/dev/kfd`, raw calls, and the steps it takes.

use crate::gpu::Gpu;
use crate::record::Step;
use kfd::uapi::{Direction, EventData, Ioctl, SetXnackModeArgs, WaitEventsArgs};
use kfd::{DEV_KFD, Driver, Errno};
use std::fmt::Display;
use std::sync::Arc;

/// Why a case ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It cannot be done here, and why.
    Skip(String),
    /// What the case builds on failed.
    Failed(String),
}

impl From<Errno> for Stop {
    fn from(errno: Errno) -> Stop {
        Stop::Failed(format!("a call that the case builds on failed with {errno}"))
    }
}

/// A case's view of the machine.
pub struct Session {
    /// The driver.
    pub driver: Arc<dyn Driver>,
    /// `/dev/kfd`, opened for the case.
    pub kfd: i32,
    /// Topology nodes with a GPU.
    pub gpu_nodes: usize,
    steps: Vec<Step>,
}

/// The result of a call, as it is written down.
fn answer(result: Result<(), Errno>) -> String {
    match result {
        Ok(()) => "0".to_string(),
        Err(errno) => errno.name(),
    }
}

impl Session {
    /// Opens the KFD.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn new(driver: Arc<dyn Driver>) -> Result<Session, Stop> {
        let kfd = driver.open(DEV_KFD).map_err(|errno| Stop::Failed(format!("open {DEV_KFD}: {errno}")))?;
        let gpu_nodes = crate::gpu::count(&*driver);
        Ok(Session { driver, kfd, gpu_nodes, steps: Vec::new() })
    }

    /// How many steps were taken.
    pub fn steps_taken(&self) -> usize {
        self.steps.len()
    }

    /// The steps so far.
    pub fn into_steps(self) -> Vec<Step> {
        self.steps
    }

    /// Notes what a call answered, and what the kernel answers by its rules.
    pub fn expect(&mut self, what: impl Display, got: Result<(), Errno>, want: Result<(), Errno>) {
        self.value(what, answer(got), answer(want));
    }

    /// As [`Session::expect`], of what needs shared virtual memory: a kernel built without it answers EPERM.
    pub fn expect_svm(&mut self, what: impl Display, got: Result<(), Errno>, want: Result<(), Errno>) {
        let want = if self.has_svm() { want } else { Err(Errno::EPERM) };
        self.expect(what, got, want);
    }

    /// Whether the kernel is built with HSA_AMD_SVM.
    pub fn has_svm(&self) -> bool {
        self.call(&mut SetXnackModeArgs { xnack_enabled: -1 }) != Err(Errno::EPERM)
    }

    /// A call that succeeds.
    pub fn ok(&mut self, what: impl Display, got: Result<(), Errno>) {
        self.expect(what, got, Ok(()));
    }

    /// A call that fails.
    pub fn err(&mut self, what: impl Display, got: Result<(), Errno>, want: Errno) {
        self.expect(what, got, Err(want));
    }

    /// Notes a value, and what it is by the kernel's rules.
    pub fn value(&mut self, what: impl Display, got: impl Display, want: impl Display) {
        self.steps.push(Step { what: what.to_string(), got: got.to_string(), want: want.to_string() });
    }

    /// An ioctl on the session's file.
    pub fn call<T: Ioctl>(&self, args: &mut T) -> Result<(), Errno> {
        self.call_on(self.kfd, args)
    }

    /// An ioctl on a file.
    pub fn call_on<T: Ioctl>(&self, fd: i32, args: &mut T) -> Result<(), Errno> {
        self.raw(fd, T::REQUEST, args.as_bytes_mut())
    }

    /// An ioctl by its request number, of which the size field counts.
    pub fn raw(&self, fd: i32, request: u32, bytes: &mut [u8]) -> Result<(), Errno> {
        self.driver.ioctl(fd, request, bytes).map(drop)
    }

    /// An ioctl with an argument of zeros and this size.
    pub fn zeros(&self, nr: u8, size: usize) -> Result<(), Errno> {
        self.raw(self.kfd, Direction::ReadWrite.request(nr, size), &mut vec![0; size])
    }

    /// Opens `/dev/kfd` again.
    pub fn open(&self) -> Result<i32, Errno> {
        self.driver.open(DEV_KFD)
    }

    /// mmap of `/dev/kfd`, shared, to read and write, where the kernel likes.
    pub fn mmap(&self, fd: i32, len: usize, offset: u64) -> Result<u64, Errno> {
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: without MAP_FIXED the kernel chooses a free place.
        unsafe { self.driver.mmap(0, len, prot, libc::MAP_SHARED, fd, offset) }.map(|at| at as u64)
    }

    /// munmap.
    pub fn munmap(&self, addr: u64, len: usize) -> Result<(), Errno> {
        // SAFETY: cases unmap what they mapped, and keep no references into it.
        unsafe { self.driver.munmap(addr as usize, len) }
    }

    /// Anonymous memory, in whole pages.
    pub fn anonymous(&self, len: usize, prot: i32) -> Result<u64, Errno> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: without MAP_FIXED the kernel chooses a free place.
        unsafe { self.driver.mmap(0, len, prot, flags, -1, 0) }.map(|at| at as u64)
    }

    /// Memory that cannot be touched, for bad pointers.
    pub fn untouchable(&self) -> Result<u64, Errno> {
        self.anonymous(4096, libc::PROT_NONE)
    }

    /// WAIT_EVENTS: what the call answered, and `wait_result`.
    pub fn wait(&self, events: &mut [EventData], all: bool, timeout_ms: u32) -> (Result<(), Errno>, u32) {
        let mut args = WaitEventsArgs {
            events_ptr: events.as_mut_ptr() as u64,
            num_events: events.len() as u32,
            wait_for_all: all.into(),
            timeout: timeout_ms,
            wait_result: 77,
        };
        let result = self.call(&mut args);
        (result, args.wait_result)
    }

    /// The machine's GPU, acquired.
    ///
    /// # Errors
    /// There is none, or it cannot be acquired.
    pub fn gpu(&self) -> Result<Gpu, Stop> {
        Gpu::acquire(self.driver.clone(), self.kfd)
    }
}

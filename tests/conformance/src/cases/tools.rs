//! What several groups need: events, other processes, descriptors through a socket.

use crate::run::{Ended, forked};
use crate::session::{Session, Stop};
use kfd::Errno;
use kfd::uapi::*;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// Longer than any case lets another process work.
const CHILD_LIMIT: Duration = Duration::from_secs(20);

impl Session {
    /// CREATE_EVENT without an event page.
    pub fn create_event(&self, event_type: u32, auto_reset: bool) -> Result<CreateEventArgs, Errno> {
        let mut args = CreateEventArgs { event_type, auto_reset: auto_reset.into(), ..Default::default() };
        self.call(&mut args).map(|()| args)
    }

    /// A signal event: its id.
    pub fn signal_event(&self, auto_reset: bool) -> Result<u32, Errno> {
        self.create_event(EVENT_SIGNAL, auto_reset).map(|args| args.event_id)
    }

    /// SET_EVENT.
    pub fn set(&self, event_id: u32) -> Result<(), Errno> {
        self.call(&mut SetEventArgs { event_id, pad: 0 })
    }

    /// RESET_EVENT.
    pub fn reset(&self, event_id: u32) -> Result<(), Errno> {
        self.call(&mut ResetEventArgs { event_id, pad: 0 })
    }

    /// DESTROY_EVENT.
    pub fn destroy(&self, event_id: u32) -> Result<(), Errno> {
        self.call(&mut DestroyEventArgs { event_id, pad: 0 })
    }

    /// Forks, runs `work` in the child, and returns the lines it gave.
    pub fn in_child(&self, work: impl FnOnce() -> Vec<String>) -> Result<Vec<String>, Stop> {
        let work = |mut out: std::fs::File| {
            // Without a reader there is nobody to tell.
            let _ = out.write_all(work().join("\n").as_bytes());
        };
        match forked(work, Instant::now() + CHILD_LIMIT) {
            Ok((text, Ended::Exited(0))) => Ok(text.lines().map(str::to_string).collect()),
            Ok((_, ended)) => Err(Stop::Failed(format!("the child process: {ended:?}"))),
            Err(error) => Err(Stop::Failed(format!("the child process: {error}"))),
        }
    }
}

/// The result of a call as a line.
pub fn line(result: Result<(), Errno>) -> String {
    match result {
        Ok(()) => "0".to_string(),
        Err(errno) => errno.name(),
    }
}

/// Two ends of a socket that descriptors can be sent through.
pub fn socket_pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for the two descriptors, which nothing else owns.
    unsafe {
        if libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0, ends.as_mut_ptr()) != 0 {
            return Err(Errno::last());
        }
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

/// Room for one descriptor's control message, aligned as its header must be.
#[repr(C, align(8))]
struct Control([u8; 64]);

/// Calls `with` on a message of one byte with room for a control message.
fn message<T>(control: &mut Control, with: impl FnOnce(&mut libc::msghdr) -> T) -> T {
    let mut byte = [0u8];
    let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    // SAFETY: all zeros are a valid message header; the pointers put in live until `with` returns.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    // SAFETY: a computation.
    header.msg_controllen = unsafe { libc::CMSG_SPACE(4) } as _;
    with(&mut header)
}

/// Sends a descriptor.
pub fn send_fd(socket: &OwnedFd, fd: i32) -> Result<(), Errno> {
    let mut control = Control([0; 64]);
    message(&mut control, |header| {
        // SAFETY: the control buffer has room for one header and one descriptor.
        unsafe {
            let first = libc::CMSG_FIRSTHDR(header);
            (*first).cmsg_level = libc::SOL_SOCKET;
            (*first).cmsg_type = libc::SCM_RIGHTS;
            (*first).cmsg_len = libc::CMSG_LEN(4) as _;
            libc::CMSG_DATA(first).cast::<i32>().write_unaligned(fd);
            if libc::sendmsg(socket.as_raw_fd(), header, 0) < 0 { Err(Errno::last()) } else { Ok(()) }
        }
    })
}

/// Receives a descriptor.
pub fn receive_fd(socket: &OwnedFd) -> Result<i32, Errno> {
    let mut control = Control([0; 64]);
    message(&mut control, |header| {
        // SAFETY: the header describes buffers that are there; the control message is looked at only if there is one.
        unsafe {
            if libc::recvmsg(socket.as_raw_fd(), header, 0) < 0 {
                return Err(Errno::last());
            }
            let first = libc::CMSG_FIRSTHDR(header);
            if first.is_null() {
                return Err(Errno::ENODATA);
            }
            Ok(libc::CMSG_DATA(first).cast::<i32>().read_unaligned())
        }
    })
}

/// A duplicate of a descriptor.
pub fn duplicate(fd: i32) -> Result<i32, Errno> {
    // SAFETY: dup takes any number.
    let copy = unsafe { libc::dup(fd) };
    if copy < 0 { Err(Errno::last()) } else { Ok(copy) }
}

/// Waits until a thread of this process sleeps.
pub fn until_asleep(tid: i32) -> bool {
    let asleep = || {
        let stat = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat")).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('S'))
    };
    let start = Instant::now();
    let mut seen = 0;
    while start.elapsed() < CHILD_LIMIT {
        seen = if asleep() { seen + 1 } else { 0 };
        // A thread may sleep for a moment on its way; three looks in a row say that it stays.
        if seen == 3 {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

/// The calling thread's id.
pub fn thread_id() -> i32 {
    // SAFETY: takes nothing.
    unsafe { libc::gettid() }
}

/// An empty anonymous file, which is no device.
pub fn plain_file() -> Result<i32, Errno> {
    // SAFETY: the name is a C string.
    let fd = unsafe { libc::memfd_create(c"conformance".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 { Err(Errno::last()) } else { Ok(fd) }
}

/// A number no descriptor has.
pub const NO_FD: u32 = 0x7fff_fff0;

/// A gpu_id no GPU has: they have 16 bits.
pub const NO_GPU: u32 = 0x12_3456;

/// An address that is the kernel's.
pub const KERNEL_ADDRESS: u64 = 0xffff_8000_0000_0000;

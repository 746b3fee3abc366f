//! SMI_EVENTS: a descriptor that lines about a GPU can be read from (`kfd_smi_events.c`).
//!
//! | event | when | line behind the event's number in hexadecimal |
//! |---|---|---|
//! | 1 VMFAULT | a page fault | `PID:COMMAND`, the number in hexadecimal |
//! | 3 GPU_PRE_RESET, 4 GPU_POST_RESET | a reset begins, is over | count of resets in hexadecimal, and the cause |
//! | 9 QUEUE_EVICTION | the process' queues are stopped | `NS -PID GPU TRIGGER` |
//! | 10 QUEUE_RESTORE | they run again | `NS -PID GPU 0` |
//! | 11 UNMAP_FROM_GPU | shared virtual memory is gone | `NS -PID @PAGE(PAGES) GPU TRIGGER` |
//!
//! Nothing throttles here, and pages do not move and need no retry faults, so the others do not come. A client hears of
//! its own process, and of others when it has CAP_SYS_ADMIN and asks for bit 63; resets concern everyone.

use super::Access;
use crate::kernel::Kernel;
use crate::kernel::call::Call;
use crate::kernel::device::Device;
use crate::kernel::rule::GPU_KNOWN;
use crate::machine::nanoseconds;
use kfd::Errno;
use kfd::uapi::{
    SMI_EVENT_ALL_PROCESS, SMI_EVENT_GPU_POST_RESET, SMI_EVENT_GPU_PRE_RESET, SMI_EVENT_MSG_SIZE,
    SMI_EVENT_QUEUE_EVICTION, SMI_EVENT_QUEUE_RESTORE, SMI_EVENT_UNMAP_FROM_GPU, SMI_EVENT_VMFAULT, SmiEventsArgs,
    smi_event_mask,
};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::sync::atomic::Ordering;

/// Bytes that wait for a client; what does not fit is lost.
const FIFO_BYTES: usize = 1024;

/// The kernel's end of such a descriptor.
pub struct SmiClient {
    socket: OwnedFd,
    gpu_id: u32,
    pid: u32,
    /// It had CAP_SYS_ADMIN when it was made.
    privileged: bool,
    mask: u64,
    /// Bytes sent since the client had read everything.
    waiting: usize,
}

impl SmiClient {
    /// Takes up what the client last wrote.
    fn refresh(&mut self) {
        let mut mask = [0; 8];
        // SAFETY: `mask` has the 8 bytes that are received at most.
        while unsafe { libc::recv(self.socket.as_raw_fd(), mask.as_mut_ptr().cast(), 8, libc::MSG_DONTWAIT) } == 8 {
            self.mask = u64::from_ne_bytes(mask);
        }
    }

    /// `kfd_smi_ev_enabled`; 0 is no process.
    fn wants(&self, pid: u32, event: u32) -> bool {
        let all = self.privileged && self.mask & smi_event_mask(SMI_EVENT_ALL_PROCESS) != 0;
        (pid == 0 || pid == self.pid || all) && self.mask & smi_event_mask(event) != 0
    }

    /// Sends a line, if the client wants it and there is room. False: the client has closed its end.
    fn send(&mut self, pid: u32, event: u32, line: &[u8]) -> bool {
        self.refresh();
        if !self.wants(pid, event) {
            return true;
        }
        let mut unread: libc::c_int = 0;
        // SAFETY: the request writes the int that is given.
        if unsafe { libc::ioctl(self.socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut unread) } == 0 && unread == 0 {
            self.waiting = 0;
        }
        if self.waiting + line.len() > FIFO_BYTES {
            return true;
        }
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        // SAFETY: `line` holds the bytes that are sent.
        let sent = unsafe { libc::send(self.socket.as_raw_fd(), line.as_ptr().cast(), line.len(), flags) };
        self.waiting += usize::try_from(sent).unwrap_or(0);
        sent >= 0 || Errno::last() != Errno::from_raw(libc::EPIPE)
    }
}

/// SMI_EVENTS. Write an 8-byte mask with bit n - 1 for event n, then read lines; an empty read is EAGAIN.
pub fn smi_events(call: &Call<'_>, args: &mut SmiEventsArgs) -> Result<(), Errno> {
    call.gpu("SMI_EVENTS", GPU_KNOWN, &mut call.process.lock(), args.gpuid)?;
    let mut ends = [0; 2];
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: `ends` has room for the two descriptors, which nothing else owns.
    let (socket, client) = unsafe {
        if libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) != 0 {
            return Err(Errno::EMFILE);
        }
        // The descriptor is made without O_CLOEXEC.
        libc::fcntl(ends[1], libc::F_SETFD, 0);
        (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]))
    };
    args.anon_fd = client.into_raw_fd() as u32;
    let privileged = Access::of_caller().admin;
    let (pid, gpu_id) = (call.process.pid, args.gpuid);
    call.kernel.smi_clients().push(SmiClient { socket, gpu_id, pid, privileged, mask: 0, waiting: 0 });
    Ok(())
}

impl Kernel {
    /// `kfd_smi_event_add`: a line to the clients of a GPU. `pid` 0: it concerns everyone.
    fn smi_line(&self, gpu_id: u32, pid: u32, event: u32, text: &str) {
        let mut line = format!("{event:x} {text}\n").into_bytes();
        // What does not fit a message is cut, with its end.
        line.truncate(SMI_EVENT_MSG_SIZE as usize - 1);
        self.smi_clients().retain_mut(|client| client.gpu_id != gpu_id || client.send(pid, event, &line));
    }

    /// A page fault of the process on a GPU.
    pub fn smi_vm_fault(&self, gpu_id: u32) {
        let pid = std::process::id();
        let command = std::fs::read_to_string("/proc/self/comm").unwrap_or_default();
        self.smi_line(gpu_id, pid, SMI_EVENT_VMFAULT, &format!("{pid:x}:{}", command.trim_end()));
    }

    /// A GPU is reset, and is back when it has not been removed.
    pub fn smi_reset(&self, device: &Device, removed: bool) {
        let count = device.resets.fetch_add(1, Ordering::Relaxed) + 1;
        let cause = if device.has_mes() { "MES hang" } else { "HWS hang" };
        self.smi_line(device.gpu_id, 0, SMI_EVENT_GPU_PRE_RESET, &format!("{count:x} {cause}"));
        if !removed {
            self.smi_line(device.gpu_id, 0, SMI_EVENT_GPU_POST_RESET, &format!("{count:x} "));
        }
    }

    /// The queues of the process are stopped on all of its GPUs, because of `trigger`.
    pub fn smi_eviction(&self, trigger: u32) {
        let pid = std::process::id();
        for device in &self.devices {
            let text = format!("{} -{pid} {:x} {trigger}", nanoseconds(libc::CLOCK_BOOTTIME), device.gpu_id);
            self.smi_line(device.gpu_id, pid, SMI_EVENT_QUEUE_EVICTION, &text);
        }
    }

    /// They run again.
    pub fn smi_restore(&self) {
        let pid = std::process::id();
        for device in &self.devices {
            let text = format!("{} -{pid} {:x} 0", nanoseconds(libc::CLOCK_BOOTTIME), device.gpu_id);
            self.smi_line(device.gpu_id, pid, SMI_EVENT_QUEUE_RESTORE, &text);
        }
    }

    /// Shared virtual memory of the process is unmapped from a GPU.
    pub fn smi_unmap(&self, gpu_id: u32, addr: u64, bytes: u64, trigger: u32) {
        let pid = std::process::id();
        let (page, pages) = (addr >> 12, bytes >> 12);
        let text = format!("{} -{pid} @{page:x}({pages:x}) {gpu_id:x} {trigger}", nanoseconds(libc::CLOCK_BOOTTIME));
        self.smi_line(gpu_id, pid, SMI_EVENT_UNMAP_FROM_GPU, &text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(mask: u64, privileged: bool) -> (SmiClient, OwnedFd) {
        let mut ends = [0; 2];
        let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: room for the two descriptors, which nothing else owns.
        let (socket, theirs) = unsafe {
            assert_eq!(libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()), 0);
            (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]))
        };
        (SmiClient { socket, gpu_id: 1, pid: 77, privileged, mask, waiting: 0 }, theirs)
    }

    fn read(fd: &OwnedFd) -> usize {
        let mut bytes = [0u8; 4096];
        // SAFETY: room for the bytes that are asked for.
        let got = unsafe { libc::read(fd.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len()) };
        usize::try_from(got).unwrap_or(0)
    }

    #[test]
    fn of_whom_a_client_hears() {
        let fault = smi_event_mask(SMI_EVENT_VMFAULT);
        let all = smi_event_mask(SMI_EVENT_ALL_PROCESS);
        for (mask, privileged, own, other, everyone) in [
            (fault, false, true, false, true),
            (fault, true, true, false, true),
            (fault | all, false, true, false, true),
            (fault | all, true, true, true, true),
            (all, true, false, false, false),
        ] {
            let (client, _theirs) = client(mask, privileged);
            let wants = [77, 78, 0].map(|pid| client.wants(pid, SMI_EVENT_VMFAULT));
            assert_eq!(wants, [own, other, everyone], "{mask:#x} {privileged}");
        }
    }

    #[test]
    fn what_does_not_fit_is_lost() {
        let (mut client, theirs) = client(u64::MAX, false);
        let line = [b'x'; 96];
        for _ in 0..20 {
            assert!(client.send(77, 1, &line));
        }
        assert_eq!(read(&theirs), 10 * 96);
        assert!(client.send(77, 1, &line));
        assert_eq!(read(&theirs), 96);
        drop(theirs);
        assert!(!client.send(77, 1, &line), "its end is closed");
    }
}

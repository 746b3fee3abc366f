//! SMI_EVENTS: a descriptor that lines about a GPU can be read from.

use crate::kernel::call::Call;
use crate::kernel::rule::GPU_KNOWN;
use kfd::Errno;
use kfd::uapi::{SMI_EVENT_VMFAULT, SmiEventsArgs, smi_event_mask};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};

/// The kernel's end of such a descriptor.
pub struct SmiClient {
    socket: OwnedFd,
    gpu_id: u32,
    mask: u64,
}

impl SmiClient {
    /// Sends a line, if the client has asked for the event. Without room for it the line is lost.
    fn send(&mut self, event: u32, text: &str) {
        let mut mask = [0; 8];
        // SAFETY: `mask` has the 8 bytes that are received at most.
        while unsafe { libc::recv(self.socket.as_raw_fd(), mask.as_mut_ptr().cast(), 8, libc::MSG_DONTWAIT) } == 8 {
            self.mask = u64::from_ne_bytes(mask);
        }
        if self.mask & smi_event_mask(event) == 0 {
            return;
        }
        let line = format!("{event:x} {text}\n");
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        // SAFETY: `line` holds the bytes that are sent.
        unsafe {
            libc::send(self.socket.as_raw_fd(), line.as_ptr().cast(), line.len(), flags);
        }
    }
}

/// SMI_EVENTS. Write an 8-byte mask with bit n - 1 for event n, then read lines; an empty read is EAGAIN.
pub fn smi_events(call: &Call<'_>, args: &mut SmiEventsArgs) -> Result<(), Errno> {
    call.gpu("SMI_EVENTS", GPU_KNOWN, &mut call.process.lock(), args.gpuid)?;
    let mut ends = [0; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: `ends` has room for the two descriptors, which nothing else owns.
    let (socket, client) = unsafe {
        if libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) != 0 {
            return Err(Errno::EMFILE);
        }
        (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]))
    };
    args.anon_fd = client.into_raw_fd() as u32;
    call.kernel.smi_clients().push(SmiClient { socket, gpu_id: args.gpuid, mask: 0 });
    Ok(())
}

impl crate::kernel::Kernel {
    /// Tells clients of a page fault on a GPU.
    pub fn smi_vm_fault(&self, gpu_id: u32, text: &str) {
        for client in self.smi_clients().iter_mut().filter(|client| client.gpu_id == gpu_id) {
            client.send(SMI_EVENT_VMFAULT, text);
        }
    }
}

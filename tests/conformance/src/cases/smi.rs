//! SMI_EVENTS.

use super::tools::NO_GPU;
use crate::case::cases;
use kfd::Errno;
use kfd::uapi::*;

cases! { "SMIEvents", s:
    safe kfd unknown_gpu "gpuid is a GPU of the process: EINVAL, and anon_fd stays" {
        for gpuid in [0, NO_GPU, u32::MAX] {
            let mut args = SmiEventsArgs { gpuid, anon_fd: 0x77 };
            let result = s.call(&mut args);
            s.err(format!("gpuid {gpuid:#x}"), result, Errno::EINVAL);
            s.value("anon_fd", format!("{:#x}", args.anon_fd), "0x77");
        }
    }

    safe gpu empty_read "the descriptor takes a mask of 8 bytes; reading it while nothing happened is EAGAIN" {
        let gpu = s.gpu()?;
        let mut args = SmiEventsArgs { gpuid: gpu.id, anon_fd: 0 };
        let result = s.call(&mut args);
        s.ok("SMI_EVENTS", result);
        let fd = args.anon_fd as i32;
        let mask = smi_event_mask(SMI_EVENT_VMFAULT);
        // SAFETY: the buffers are there for the sizes given.
        let (written, read, errno) = unsafe {
            let written = libc::write(fd, (&raw const mask).cast(), 8);
            let mut line = [0u8; 96];
            let read = libc::read(fd, line.as_mut_ptr().cast(), line.len());
            (written, read, Errno::last())
        };
        s.value("bytes written", written, 8);
        s.value("read", if read < 0 { errno.name() } else { read.to_string() }, "EAGAIN");
    }
}

//! SMI_EVENTS.

use super::tools::NO_GPU;
use crate::case::cases;
use crate::gpu::{Code, SHARED, dispatch};
use kfd::Errno;
use kfd::uapi::*;
use std::time::{Duration, Instant};

/// What can be read now.
fn read(fd: i32) -> Result<String, Errno> {
    let mut bytes = [0u8; 1024];
    // SAFETY: the buffer is there for its size.
    let got = unsafe { libc::read(fd, bytes.as_mut_ptr().cast(), bytes.len()) };
    if got < 0 { Err(Errno::last()) } else { Ok(String::from_utf8_lossy(&bytes[..got as usize]).into_owned()) }
}

/// Looks until something holds, for a few seconds at most.
fn until(mut ready: impl FnMut() -> bool) {
    let start = Instant::now();
    while !ready() && start.elapsed() < crate::gpu::PATIENCE {
        std::thread::sleep(Duration::from_millis(1));
    }
}

cases! { "SMIEvents", s:
    safe kfd unknown_gpu "gpuid is a GPU of the process: EINVAL, and anon_fd stays" {
        for gpuid in [0, NO_GPU, u32::MAX] {
            let mut args = SmiEventsArgs { gpuid, anon_fd: 0x77 };
            let result = s.call(&mut args);
            s.err(format!("gpuid {gpuid:#x}"), result, Errno::EINVAL);
            s.value("anon_fd", format!("{:#x}", args.anon_fd), "0x77");
        }
    }

    safe gpu evictions "when USERPTR memory goes away the queues are stopped and run again; who did not ask hears nothing" {
        let gpu = s.gpu()?;
        let open = |mask: u64| -> Result<i32, Errno> {
            let mut args = SmiEventsArgs { gpuid: gpu.id, anon_fd: 0 };
            s.call(&mut args)?;
            let fd = args.anon_fd as i32;
            // SAFETY: the mask is there for its 8 bytes.
            unsafe { libc::write(fd, (&raw const mask).cast(), 8) };
            Ok(fd)
        };
        let asked = open(smi_event_mask(SMI_EVENT_QUEUE_EVICTION) | smi_event_mask(SMI_EVENT_QUEUE_RESTORE))?;
        let other = open(smi_event_mask(SMI_EVENT_VMFAULT))?;
        let user = s.anonymous(4096, libc::PROT_READ | libc::PROT_WRITE)?;
        let args = gpu.alloc_user(user, 4096)?;
        s.ok("MAP", gpu.map(args.handle, &[gpu.id]).0);
        let queue = gpu.queue(64)?;
        s.ok("munmap of the memory", s.munmap(user, 4096));
        let mut text = String::new();
        until(|| {
            let more = read(asked).unwrap_or_default();
            text.push_str(&more);
            text.lines().count() >= 2
        });
        let words: Vec<Vec<&str>> = text.lines().map(|line| line.split(' ').collect()).collect();
        let word = |line: usize, n: usize| words.get(line).and_then(|words| words.get(n)).copied().unwrap_or_default();
        let (pid, id) = (format!("-{}", std::process::id()), format!("{:x}", gpu.id));
        for (line, what, event, last) in [(0, "eviction", "9", "1"), (1, "restore", "a", "0")] {
            s.value(format!("{what}: event"), word(line, 0), event);
            s.value("process", word(line, 2) == pid, true);
            s.value("GPU", word(line, 3) == id, true);
            s.value("trigger, or whether it was put off", word(line, 4), last);
        }
        s.value("the other client", read(other).map_err(|errno| errno.name()).unwrap_or_else(|name| name), "EAGAIN");
        let kernel = gpu.kernel(Code::End)?;
        let signal = gpu.memory(4096, SHARED)?.signal(0, 1);
        queue.submit(dispatch(&kernel, signal.va).to_bytes());
        s.value("a dispatch of the queue that runs again: its signal", signal.wait(0), 0);
        s.ok("DESTROY_QUEUE", queue.destroy());
        s.ok("FREE after UNMAP", gpu.unmap(args.handle, &[gpu.id]).0.and_then(|()| gpu.free(args.handle)));
    }

    risky gpu fault "a page fault is told with process and command, as a stream of bytes" {
        let gpu = s.gpu()?;
        let mut args = SmiEventsArgs { gpuid: gpu.id, anon_fd: 0 };
        s.call(&mut args)?;
        let fd = args.anon_fd as i32;
        let mask = smi_event_mask(SMI_EVENT_VMFAULT);
        // SAFETY: the mask is there for its 8 bytes.
        unsafe { libc::write(fd, (&raw const mask).cast(), 8) };
        let mut kernel = gpu.kernel(Code::End)?;
        kernel.va = gpu.reserve(8192)?;
        let queue = gpu.queue(64)?;
        queue.submit(dispatch(&kernel, 0).to_bytes());
        let mut text = String::new();
        until(|| {
            let mut byte = [0u8];
            // SAFETY: room for the byte.
            if unsafe { libc::read(fd, byte.as_mut_ptr().cast(), 1) } == 1 {
                text.push(byte[0].into());
            }
            text.ends_with('\n')
        });
        let command = std::fs::read_to_string("/proc/self/comm").unwrap_or_default();
        let want = format!("1 {:x}:{}\n", std::process::id(), command.trim_end());
        s.value("the line, read byte by byte", text == want, true);
        s.ok("DESTROY_QUEUE", queue.destroy());
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

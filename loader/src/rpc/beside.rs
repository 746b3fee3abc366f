//! Work that may take long, done while the server serves other calls.

use std::ffi::{CStr, OsStr};
use std::future::poll_fn;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{TryRecvError, channel};
use std::task::Poll;
use std::thread;

/// Threads at work.
static AT_WORK: AtomicUsize = AtomicUsize::new(0);

/// Whether something that a program asked for still waits, as for a pipe that nobody reads. The C library's `exit` would
/// wait for its stream; `_exit` does not.
pub fn waits_still() -> bool {
    AT_WORK.load(Ordering::Acquire) > 0
}

/// Runs `work` on a thread of its own, from now on; none when there is no thread for it.
pub fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> impl Future<Output = Option<T>> {
    let (send, receive) = channel();
    let run = move || {
        let value = work();
        AT_WORK.fetch_sub(1, Ordering::AcqRel);
        // Without a receiver the result is not wanted any more.
        let _ = send.send(value);
    };
    AT_WORK.fetch_add(1, Ordering::AcqRel);
    if thread::Builder::new().spawn(run).is_err() {
        // The sender has gone with the closure.
        AT_WORK.fetch_sub(1, Ordering::AcqRel);
    }
    poll_fn(move |_| match receive.try_recv() {
        Ok(value) => Poll::Ready(Some(value)),
        Err(TryRecvError::Empty) => Poll::Pending,
        Err(TryRecvError::Disconnected) => Poll::Ready(None),
    })
}

/// A child that does not outlive the call it belongs to, nor does what it started.
struct Shell(Child);

impl Drop for Shell {
    fn drop(&mut self) {
        // A process group of its own would do, and could not read the terminal.
        let started = if matches!(self.0.try_wait(), Ok(None)) { descendants(self.0.id()) } else { Vec::new() };
        // Parents first: one that lives starts the next command when a child ends. It may have ended already.
        let _ = self.0.kill();
        for process in started {
            // SAFETY: a signal to a process; that it may have ended is fine.
            unsafe { libc::kill(process as i32, libc::SIGKILL) };
        }
        let _ = self.0.wait();
    }
}

/// The processes that a process started, and those that these did.
fn descendants(process: u32) -> Vec<u32> {
    // `/proc/N/stat`: the parent is the second word behind the name, which is in parentheses and may hold any.
    let parent = |stat: &str| stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse::<u32>().ok();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let parents: Vec<(u32, u32)> = processes
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter_map(|process| Some((process, parent(&std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?)?)))
        .collect();
    let mut found = vec![process];
    let mut at = 0;
    while let Some(&parent) = found.get(at) {
        let children = parents.iter().filter(|(child, of)| *of == parent && !found.contains(child));
        found.extend(children.map(|(child, _)| *child).collect::<Vec<_>>());
        at += 1;
    }
    found.split_off(1)
}

/// What `wait` tells of a shell that could not be started: it would have ended with 127.
const NO_SHELL: i32 = 127 << 8;

/// `system`: the status as `wait` has it, -1 when there is no process for it.
pub async fn shell(command: &CStr) -> i32 {
    let child = match Command::new("/bin/sh").arg("-c").arg(OsStr::from_bytes(command.to_bytes())).spawn() {
        Ok(child) => child,
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENOMEM)) => return -1,
        Err(_) => return NO_SHELL,
    };
    let mut shell = Shell(child);
    poll_fn(|_| match shell.0.try_wait() {
        Ok(Some(status)) => Poll::Ready(status.into_raw()),
        Ok(None) => Poll::Pending,
        Err(_) => Poll::Ready(-1),
    })
    .await
}

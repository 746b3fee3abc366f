//! Work that may take long, done while the server serves other calls.

use std::ffi::{CStr, OsStr};
use std::future::poll_fn;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};
use std::sync::mpsc::{TryRecvError, channel};
use std::task::Poll;
use std::thread;

/// Runs `work` on a thread of its own; none when there is no thread for it.
pub async fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (send, receive) = channel();
    // Without a receiver the result is not wanted any more.
    thread::Builder::new().spawn(move || drop(send.send(work()))).ok()?;
    poll_fn(|_| match receive.try_recv() {
        Ok(value) => Poll::Ready(Some(value)),
        Err(TryRecvError::Empty) => Poll::Pending,
        Err(TryRecvError::Disconnected) => Poll::Ready(None),
    })
    .await
}

/// A child that does not outlive the call it belongs to.
struct Shell(Child);

impl Drop for Shell {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `system`: the status as `wait` has it, -1 when no shell starts.
pub async fn shell(command: &CStr) -> i32 {
    let Ok(child) = Command::new("/bin/sh").arg("-c").arg(OsStr::from_bytes(command.to_bytes())).spawn() else {
        return -1;
    };
    let mut shell = Shell(child);
    poll_fn(|_| match shell.0.try_wait() {
        Ok(Some(status)) => Poll::Ready(status.into_raw()),
        Ok(None) => Poll::Pending,
        Err(_) => Poll::Ready(-1),
    })
    .await
}

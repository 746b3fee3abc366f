//! What goes where: the program's words to stdout and stderr, unbuffered; ours to stderr. Where they cannot be written no
//! run ends by it: a stderr that takes nothing is nobody's to tell, a stdout is told of at the end.

use crate::exit::{ENVIRONMENT, Failure, PIPE};
use nix::errno::Errno;
use std::io::{IsTerminal, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};

/// Whether a progress line stands on the terminal.
static PROGRESS: AtomicBool = AtomicBool::new(false);

/// The first errno of a program's standard output, 0 for none.
static LOST: AtomicI32 = AtomicI32::new(0);

/// When the run's time is over.
static DEADLINE: OnceLock<Instant> = OnceLock::new();

/// The run's time starts now. A later call changes nothing.
pub fn start(limit: Option<Duration>) {
    if let Some(end) = limit.and_then(|limit| Instant::now().checked_add(limit)) {
        DEADLINE.get_or_init(|| end);
    }
}

fn is_over() -> bool {
    DEADLINE.get().is_some_and(|end| *end <= Instant::now())
}

/// Says something on stderr.
pub fn say(text: &str) {
    clear_progress();
    note(&format!("kfdrun: {text}\n"));
}

/// Text on stderr as it is.
pub fn note(text: &str) {
    // There is nobody to tell.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Text on standard output that is all there is to a command.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    written.map_err(|error| unwritable(error.raw_os_error().unwrap_or_default()))
}

/// As [`print()`], with an end of line.
pub fn print_line(text: impl std::fmt::Display) -> Result<(), Failure> {
    print(&format!("{text}\n"))
}

/// Standard output does not take what it shall. A reader that has gone has what it wants, so nothing is said then.
fn unwritable(errno: i32) -> Failure {
    match errno {
        libc::EPIPE => Failure::new(PIPE, ""),
        // The end of the wait is told as what it is.
        libc::ETIMEDOUT | libc::EINTR => Failure::new(
            ENVIRONMENT,
            "standard output was not read for so long: what should have been written from there on is lost",
        ),
        _ => Failure::new(
            ENVIRONMENT,
            format!(
                "standard output: {}: what should have been written from there on is lost",
                kfd::Errno::from_raw(errno)
            ),
        ),
    }
}

/// Whether whoever read the program's standard output has gone, as `head` does.
pub fn reader_has_gone() -> bool {
    LOST.load(Ordering::Relaxed) == libc::EPIPE
}

/// Why some of the program's standard output is lost.
pub fn lost() -> Option<Failure> {
    let errno = LOST.load(Ordering::Relaxed);
    (errno != 0).then(|| unwritable(errno))
}

/// Whether progress lines are wanted.
pub fn shows_progress() -> bool {
    std::io::stderr().is_terminal()
}

/// Shows or renews a line that the next one replaces.
pub fn progress(text: &str) {
    note(&format!("\r\x1b[Kkfdrun: {text}"));
    PROGRESS.store(true, Ordering::Relaxed);
}

/// Takes the progress line away.
pub fn clear_progress() {
    if PROGRESS.swap(false, Ordering::Relaxed) {
        note("\r\x1b[K");
    }
}

/// The program's standard output, written at once, so that nothing is lost however the run ends.
pub struct Unbuffered;

impl loader::rpc::Output for Unbuffered {
    fn stdout(&mut self, bytes: &[u8]) -> usize {
        clear_progress();
        let (written, errno) = write_all(std::io::stdout().as_fd(), bytes);
        if let Some(errno) = errno {
            // The first one says why.
            let _ = LOST.compare_exchange(0, errno as i32, Ordering::Relaxed, Ordering::Relaxed);
        }
        written
    }

    fn stderr(&mut self, bytes: &[u8]) -> usize {
        clear_progress();
        write_all(std::io::stderr().as_fd(), bytes).0
    }
}

/// Bytes that a pipe which has room takes at once (POSIX: PIPE_BUF).
const AT_ONCE: usize = 4096;

/// Waits until a descriptor takes something, the run's time is over, or the user has had enough.
fn wait_for_room(stream: BorrowedFd) -> Result<(), Errno> {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    let mut poll_for = [PollFd::new(stream, PollFlags::POLLOUT)];
    // A signal may come between a look and the wait, so no wait is long; and there is none when there is no time.
    const LOOK: u8 = 50;
    loop {
        let enough = match (crate::run::is_interrupted(), is_over()) {
            (true, _) => Some(Errno::EINTR),
            (false, true) => Some(Errno::ETIMEDOUT),
            _ => None,
        };
        match (poll(&mut poll_for, PollTimeout::from(if enough.is_some() { 0 } else { LOOK })), enough) {
            (Ok(0) | Err(Errno::EINTR), Some(errno)) => return Err(errno),
            (Ok(0) | Err(Errno::EINTR), None) => {}
            // What cannot be waited for does not make anybody wait.
            _ => return Ok(()),
        }
    }
}

/// Writes to a descriptor; returns how much got there, and why not more.
fn write_all(stream: BorrowedFd, bytes: &[u8]) -> (usize, Option<Errno>) {
    let mut written = 0;
    while written < bytes.len() {
        if let Err(errno) = wait_for_room(stream) {
            return (written, Some(errno));
        }
        let end = bytes.len().min(written + AT_ONCE);
        match nix::unistd::write(stream, &bytes[written..end]) {
            // No descriptor takes nothing of something without an error.
            Ok(0) => return (written, Some(Errno::EIO)),
            Ok(count) => written += count,
            Err(Errno::EINTR) => {}
            Err(errno) => return (written, Some(errno)),
        }
    }
    (written, None)
}

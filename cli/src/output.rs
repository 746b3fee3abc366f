//! What goes where: the program's words to stdout and stderr, unbuffered; ours to stderr. Where they cannot be written no
//! run ends by it: a stderr that takes nothing is nobody's to tell, a stdout is told of at the end.

use crate::exit::{ENVIRONMENT, Failure, INTERRUPTED, PIPE, TIMEOUT};
use nix::errno::Errno;
use std::fs::File;
use std::io::{ErrorKind, IsTerminal, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
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

/// Text on stderr as it is. Where it cannot be written there is nobody to tell.
pub fn note(text: &str) {
    write_all(std::io::stderr().as_fd(), text.as_bytes());
}

/// Text on standard output that is not the program's.
pub fn print(text: &str) -> Result<(), Failure> {
    match write_all(std::io::stdout().as_fd(), text.as_bytes()) {
        (_, None) => Ok(()),
        (_, Some(errno)) => Err(unwritable(errno as i32)),
    }
}

/// As [`print()`], with an end of line.
pub fn print_line(text: impl std::fmt::Display) -> Result<(), Failure> {
    print(&format!("{text}\n"))
}

/// Standard output does not take what it shall. A reader that has gone has what it wants, so nothing is said then.
fn unwritable(errno: i32) -> Failure {
    match errno {
        libc::EPIPE => Failure::new(PIPE, ""),
        // No write ends by these: they say why it was waited for no longer.
        libc::ETIMEDOUT => Failure::new(TIMEOUT, NOT_READ),
        libc::EINTR => Failure::new(INTERRUPTED, NOT_READ),
        _ => {
            let errno = kfd::Errno::from_raw(errno);
            let text = format!("standard output: {errno}: what should have been written from there on is lost");
            Failure::new(ENVIRONMENT, text)
        }
    }
}

const NOT_READ: &str = "standard output was not read for so long: what should have been written from there on is lost";

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

/// A wait this long is worth a line on a terminal.
const LONG: Duration = Duration::from_secs(2);

/// Waits until a descriptor takes something, the run's time is over (ETIMEDOUT), or the user has had enough (EINTR).
fn wait_for_room(stream: BorrowedFd) -> Result<(), Errno> {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    let mut poll_for = [PollFd::new(stream, PollFlags::POLLOUT)];
    // A signal may come between a look and the wait, so no wait is long; and there is none when there is no time.
    const LOOK: u8 = 50;
    let start = Instant::now();
    let mut told = false;
    loop {
        let enough = no_more_waiting();
        match (poll(&mut poll_for, PollTimeout::from(if enough.is_some() { 0 } else { LOOK })), enough) {
            (Ok(0) | Err(Errno::EINTR), Some(errno)) => return Err(errno),
            (Ok(0) | Err(Errno::EINTR), None) => {
                if !told && start.elapsed() >= LONG && shows_progress() && !is_stderr(stream) {
                    told = true;
                    progress("waiting for somebody to read what is written (Ctrl-C or --timeout ends the wait)");
                }
            }
            // What cannot be waited for does not make anybody wait.
            _ => return Ok(()),
        }
    }
}

fn is_stderr(stream: BorrowedFd) -> bool {
    stream.as_raw_fd() == std::io::stderr().as_raw_fd()
}

/// Why nothing is waited for any more.
pub fn no_more_waiting() -> Option<Errno> {
    match (crate::run::is_interrupted(), is_over()) {
        (true, _) => Some(Errno::EINTR),
        (false, true) => Some(Errno::ETIMEDOUT),
        _ => None,
    }
}

/// The failure of what cannot go on, as [`no_more_waiting`] says; `what` was done meanwhile.
pub fn time_is_over(what: &str) -> Option<Failure> {
    no_more_waiting().map(|errno| match errno {
        Errno::ETIMEDOUT => Failure::new(TIMEOUT, format!("--timeout was over while {what}")),
        _ => Failure::new(INTERRUPTED, format!("interrupted while {what}")),
    })
}

/// Opens a file for writing, by others a FIFO: it waits for a reader as for one that reads.
pub fn open_to_write(path: &Path) -> std::io::Result<Patient> {
    let options = || {
        let mut options = File::options();
        options.write(true).custom_flags(libc::O_NONBLOCK);
        options
    };
    loop {
        match options().open(path) {
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) && is_fifo(path) => match no_more_waiting() {
                Some(errno) => return Err(given_up(errno)),
                None => std::thread::sleep(Duration::from_millis(10)),
            },
            opened => return opened.map(Patient),
        }
    }
}

fn is_fifo(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo())
}

fn given_up(errno: Errno) -> std::io::Error {
    let (kind, text) = match errno {
        Errno::ETIMEDOUT => (ErrorKind::TimedOut, "nobody read it before --timeout"),
        // Not `Interrupted`, after which writers try again.
        _ => (ErrorKind::Other, "nobody read it"),
    };
    std::io::Error::new(kind, text)
}

/// A file that is written as the program's output is: no wait is longer than the run's.
pub struct Patient(pub File);

impl Write for Patient {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match write_all(self.0.as_fd(), bytes) {
            (_, Some(errno @ (Errno::ETIMEDOUT | Errno::EINTR))) => Err(given_up(errno)),
            (0, Some(errno)) => Err(errno.into()),
            (count, _) => Ok(count),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
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
            // Somebody else was quicker, or a signal came.
            Err(Errno::EINTR | Errno::EAGAIN) => {}
            Err(errno) => return (written, Some(errno)),
        }
    }
    (written, None)
}

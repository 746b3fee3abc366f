//! What goes where: the program's words to stdout and stderr, unbuffered; ours to stderr. Where they cannot be written no
//! run ends by it: a stderr that takes nothing is nobody's to tell, a stdout is told of at the end.

use crate::exit::{ENVIRONMENT, Failure, PIPE};
use kfd::Errno;
use std::io::{IsTerminal, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// Whether a progress line stands on the terminal.
static PROGRESS: AtomicBool = AtomicBool::new(false);

/// The first errno of a program's standard output, 0 for none.
static LOST: AtomicI32 = AtomicI32::new(0);

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
    written.map_err(|error| unwritable(Errno::from_raw(error.raw_os_error().unwrap_or_default())))
}

/// As [`print`], with an end of line.
pub fn print_line(text: impl std::fmt::Display) -> Result<(), Failure> {
    print(&format!("{text}\n"))
}

/// Standard output does not take what it shall. A reader that has gone has what it wants, so nothing is said then.
fn unwritable(errno: Errno) -> Failure {
    match errno.raw() {
        libc::EPIPE => Failure::new(PIPE, ""),
        _ => Failure::new(
            ENVIRONMENT,
            format!("standard output: {errno}: what should have been written from there on is lost"),
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
    (errno != 0).then(|| unwritable(Errno::from_raw(errno)))
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

/// Writes to a descriptor; returns how much got there, and why not more.
fn write_all(stream: BorrowedFd, bytes: &[u8]) -> (usize, Option<nix::errno::Errno>) {
    let mut written = 0;
    while written < bytes.len() {
        match nix::unistd::write(stream, &bytes[written..]) {
            // No descriptor takes nothing of something without an error.
            Ok(0) => return (written, Some(nix::errno::Errno::EIO)),
            Ok(count) => written += count,
            Err(nix::errno::Errno::EINTR) => {}
            Err(errno) => return (written, Some(errno)),
        }
    }
    (written, None)
}

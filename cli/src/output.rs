//! What goes where: the program's words to stdout and stderr, unbuffered; ours to stderr.

use std::io::IsTerminal;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a progress line stands on the terminal.
static PROGRESS: AtomicBool = AtomicBool::new(false);

/// Says something on stderr.
pub fn say(text: &str) {
    clear_progress();
    eprintln!("kfdrun: {text}");
}

/// Whether progress lines are wanted.
pub fn shows_progress() -> bool {
    std::io::stderr().is_terminal()
}

/// Shows or renews a line that the next one replaces.
pub fn progress(text: &str) {
    eprint!("\r\x1b[Kkfdrun: {text}");
    PROGRESS.store(true, Ordering::Relaxed);
}

/// Takes the progress line away.
pub fn clear_progress() {
    if PROGRESS.swap(false, Ordering::Relaxed) {
        eprint!("\r\x1b[K");
    }
}

/// The program's standard output, written at once, so that nothing is lost however the run ends.
pub struct Unbuffered;

impl loader::rpc::Output for Unbuffered {
    fn stdout(&mut self, bytes: &[u8]) -> usize {
        clear_progress();
        write_all(std::io::stdout().as_fd(), bytes)
    }

    fn stderr(&mut self, bytes: &[u8]) -> usize {
        clear_progress();
        write_all(std::io::stderr().as_fd(), bytes)
    }
}

/// Writes to a descriptor; returns how much got there.
fn write_all(stream: BorrowedFd, bytes: &[u8]) -> usize {
    let mut written = 0;
    while written < bytes.len() {
        match nix::unistd::write(stream, &bytes[written..]) {
            Ok(0) => break,
            Ok(count) => written += count,
            Err(nix::errno::Errno::EINTR) => {}
            Err(_) => break,
        }
    }
    written
}

//! Files that the command line and scripts name: regular ones, and pipes, which may take long or never end.

use crate::exit::{Failure, NOT_FOUND, REFUSED, TIMEOUT};
use crate::output::{clear_progress, progress, shows_progress};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Most bytes of what is no regular file, unless it is known how many are needed.
pub const LARGEST_STREAM: u64 = 1 << 30;

/// Bytes of a regular file that are read between looks at the time.
const PIECE: u64 = 16 << 20;

/// A wait this long is worth a line on a terminal.
const LONG: Duration = Duration::from_secs(2);

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The system's reason.
    #[error("{0}")]
    System(#[from] std::io::Error),
    /// The time was over.
    #[error(
        "--timeout {} s are over: {bytes} bytes have been read, and who writes to it has not closed it",
        limit.as_secs_f64()
    )]
    Timeout {
        /// `--timeout`.
        limit: Duration,
        /// Bytes read until then.
        bytes: usize,
    },
    /// No regular file, and no end.
    #[error("it goes on after {} MiB; what is no regular file must end by then", LARGEST_STREAM >> 20)]
    Endless,
}

impl InputError {
    /// The failure of a command, which ends with `status` unless its time was over.
    pub fn failure(&self, status: u8, name: impl std::fmt::Display) -> Failure {
        let status = if matches!(self, InputError::Timeout { .. }) { TIMEOUT } else { status };
        Failure::new(status, format!("{name}: {self}"))
    }

    /// The failure for a file without which nothing can be done; `what` it should be.
    pub fn of_image(&self, name: impl std::fmt::Display, what: &str) -> Failure {
        match self {
            InputError::System(error) if error.kind() == ErrorKind::NotFound => {
                Failure::new(NOT_FOUND, format!("{name}: no such file"))
            }
            InputError::System(error) if error.kind() == ErrorKind::IsADirectory => {
                Failure::new(REFUSED, format!("{name}: is a directory, not {what}"))
            }
            error => error.failure(REFUSED, name),
        }
    }
}

/// How long reading may take.
#[derive(Clone, Copy, Debug)]
pub struct Input {
    timeout: Option<Duration>,
    start: Instant,
}

impl Input {
    /// The time starts now.
    pub fn new(timeout: Option<Duration>) -> Input {
        Input { timeout, start: Instant::now() }
    }

    /// The time there is, once it is over.
    pub fn over(&self) -> Option<Duration> {
        self.timeout.filter(|limit| self.start.elapsed() >= *limit)
    }

    /// Opens a file to be read by [`Input::rest`]. Nobody need have opened the other end of a FIFO.
    pub fn open(path: &Path) -> std::io::Result<File> {
        File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)
    }

    /// Reads a file: whole, or its first `most` bytes. What is no regular file must have an end.
    pub fn read(&self, path: &Path, most: Option<u64>) -> Result<Vec<u8>, InputError> {
        let mut file = Input::open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return self.rest(&mut file, &path.display(), most);
        }
        let length = most.unwrap_or(u64::MAX).min(metadata.len());
        let mut bytes = Vec::new();
        let room = usize::try_from(length).map_err(std::io::Error::other)?;
        bytes.try_reserve_exact(room).map_err(std::io::Error::other)?;
        // Files of /proc say that they are empty, and are not.
        let mut left = most.unwrap_or(u64::MAX);
        while left > 0 {
            if let Some(limit) = self.over() {
                return Err(InputError::Timeout { limit, bytes: bytes.len() });
            }
            match (&mut file).take(left.min(PIECE)).read_to_end(&mut bytes)? {
                0 => break,
                count => left -= count as u64,
            }
        }
        Ok(bytes)
    }

    /// Reads what comes until the end, or `most` bytes. Ends with the time there is.
    pub fn rest(
        &self,
        file: &mut (impl Read + AsFd),
        name: &dyn std::fmt::Display,
        most: Option<u64>,
    ) -> Result<Vec<u8>, InputError> {
        let mut bytes = Vec::new();
        let result = self.collect(file, name, most, &mut bytes);
        clear_progress();
        result.map(|()| bytes)
    }

    fn collect(
        &self,
        file: &mut (impl Read + AsFd),
        name: &dyn std::fmt::Display,
        most: Option<u64>,
        bytes: &mut Vec<u8>,
    ) -> Result<(), InputError> {
        let mut chunk = vec![0; 1 << 16];
        while most.is_none_or(|most| (bytes.len() as u64) < most) {
            if most.is_none() && bytes.len() as u64 > LARGEST_STREAM {
                return Err(InputError::Endless);
            }
            if let Some(limit) = self.over() {
                return Err(InputError::Timeout { limit, bytes: bytes.len() });
            }
            let left = self.timeout.map_or(Duration::MAX, |limit| limit.saturating_sub(self.start.elapsed()));
            if self.start.elapsed() >= LONG && shows_progress() {
                progress(&format!(
                    "{name}: {} bytes in {} s, waiting for its end (Ctrl-C or --timeout ends the wait)",
                    bytes.len(),
                    self.start.elapsed().as_secs()
                ));
            }
            if !is_ready(file, left.min(Duration::from_secs(1)))? {
                continue;
            }
            let room = most.map_or(chunk.len(), |most| {
                usize::try_from(most - bytes.len() as u64).unwrap_or(usize::MAX).min(chunk.len())
            });
            match file.read(&mut chunk[..room]) {
                Ok(0) => break,
                Ok(count) => {
                    bytes.try_reserve(count).map_err(std::io::Error::other)?;
                    bytes.extend_from_slice(&chunk[..count]);
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Waits until something can be read, the end included. A FIFO that nobody has opened to write is not at its end (poll(2)
/// tells the two apart, read(2) does not).
fn is_ready(file: &impl AsFd, longest: Duration) -> std::io::Result<bool> {
    let mut wait = libc::pollfd { fd: file.as_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let millis = i32::try_from(longest.as_millis()).unwrap_or(i32::MAX).max(1);
    // SAFETY: `wait` is one pollfd that lives until the call returns.
    match unsafe { libc::poll(&mut wait, 1, millis) } {
        -1 => match std::io::Error::last_os_error() {
            error if error.kind() == ErrorKind::Interrupted => Ok(false),
            error => Err(error),
        },
        count => Ok(count > 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_regular_file() {
        let input = Input::new(None);
        assert_eq!(input.read(Path::new("/dev/zero"), Some(100_000)).unwrap(), vec![0; 100_000]);
        assert_eq!(input.read(Path::new("/dev/null"), None).unwrap(), b"");
        assert!(input.read(Path::new("/proc/self/stat"), None).unwrap().len() > 10);
        assert!(matches!(input.read(Path::new("/"), None), Err(InputError::System(_))));
        assert_eq!(input.read(Path::new("/none"), None).unwrap_err().of_image("/none", "an image").status, NOT_FOUND);
    }

    #[test]
    fn a_fifo_ends_with_its_writer_or_with_the_time() {
        let path = std::env::temp_dir().join(format!("kfdrun-input-{}", std::process::id()));
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let error = Input::new(Some(Duration::from_millis(20))).read(&path, None).unwrap_err();
        assert!(matches!(error, InputError::Timeout { bytes: 0, .. }), "{error}");
        assert_eq!(error.failure(2, "x").status, TIMEOUT);
        let writer = std::thread::spawn({
            let path = path.clone();
            move || std::fs::write(path, vec![7; 200_000])
        });
        assert_eq!(Input::new(None).read(&path, None).unwrap(), vec![7; 200_000]);
        writer.join().unwrap().unwrap();
        std::fs::remove_file(&path).unwrap();
    }
}

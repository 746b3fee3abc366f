//! Streams that a device program uses.

use super::input::Input;
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// Where the program's standard output goes.
pub trait Output {
    /// Writes to stdout; returns the bytes written.
    fn stdout(&mut self, bytes: &[u8]) -> usize;
    /// Writes to stderr.
    fn stderr(&mut self, bytes: &[u8]) -> usize;
}

/// A stream as an operation names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard input.
    Stdin,
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// A handle given out by [`Files::add`].
    Handle(u64),
}

impl Stream {
    /// The stream of an encoded word: the low two bits are 1 stdin, 2 stdout, 3 stderr, else it is a handle.
    pub fn decode(word: u64) -> Stream {
        match word & 3 {
            1 => Stream::Stdin,
            2 => Stream::Stdout,
            3 => Stream::Stderr,
            _ => Stream::Handle(word),
        }
    }
}

/// A C stream, closed on drop.
#[derive(Debug)]
pub struct File {
    stream: *mut libc::FILE,
    /// Whether reads and writes wait for nobody, as with a file on a disk.
    is_regular: bool,
}

// SAFETY: C streams lock themselves (POSIX, "flockfile"), and this one is closed when nobody has it any more.
unsafe impl Send for File {}
// SAFETY: as above.
unsafe impl Sync for File {}

impl File {
    /// `fopen`.
    pub fn open(path: &CStr, mode: &CStr) -> Option<File> {
        // SAFETY: both are NUL-terminated strings.
        let stream = unsafe { libc::fopen(path.as_ptr(), mode.as_ptr()) };
        if stream.is_null() {
            return None;
        }
        // SAFETY: the stream is open.
        let descriptor = unsafe { libc::fileno(stream) };
        // SAFETY: an open descriptor and a structure of all zeros, which is a valid one.
        let is_regular = unsafe {
            let mut about: libc::stat = std::mem::zeroed();
            libc::fstat(descriptor, &mut about) == 0 && about.st_mode & libc::S_IFMT == libc::S_IFREG
        };
        Some(File { stream, is_regular })
    }

    /// The C stream.
    pub fn stream(&self) -> *mut libc::FILE {
        self.stream
    }

    /// Whether a read or a write returns at once.
    pub fn is_regular(&self) -> bool {
        self.is_regular
    }

    /// `fread`, or `fgets` with the NUL at its end.
    pub fn read(&self, size: usize, line: bool) -> Vec<u8> {
        let mut block = vec![0u8; size];
        let actual = if line {
            let capacity = i32::try_from(size).unwrap_or(i32::MAX);
            let mut get_line = || {
                // SAFETY: an open stream and a buffer of `capacity` bytes, which fgets terminates.
                unsafe { !libc::fgets(block.as_mut_ptr().cast(), capacity, self.stream).is_null() }
            };
            let got = capacity > 0 && get_line();
            if got { block.iter().position(|byte| *byte == 0).map_or(size, |end| end + 1) } else { 0 }
        } else {
            // SAFETY: an open stream and a buffer of the given length.
            unsafe { libc::fread(block.as_mut_ptr().cast(), 1, size, self.stream) }
        };
        block.truncate(actual);
        block
    }

    /// `fwrite`; returns the bytes written.
    pub fn write(&self, bytes: &[u8]) -> u64 {
        // SAFETY: an open stream, and a slice for the length.
        unsafe { libc::fwrite(bytes.as_ptr().cast(), 1, bytes.len(), self.stream) as u64 }
    }

    /// `fflush`.
    pub fn flush(&self) -> i32 {
        // SAFETY: an open stream.
        unsafe { libc::fflush(self.stream) }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // What should have gone to a pipe that nobody reads has waited long enough:
        // `Server::finish` came first.
        if !self.is_regular {
            // SAFETY: the stream is open, and so is its descriptor.
            unsafe { libc::fcntl(libc::fileno(self.stream), libc::F_SETFL, libc::O_NONBLOCK) };
        }
        // SAFETY: the pointer came from fopen and is closed only here.
        unsafe { libc::fclose(self.stream) };
    }
}

/// Whether opening a path may wait for somebody to open its other end.
pub fn opening_waits(path: &CStr) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let path = std::path::Path::new(std::ffi::OsStr::from_bytes(path.to_bytes()));
    std::fs::metadata(path).is_ok_and(|about| about.file_type().is_fifo())
}

/// Open streams. They are the host C library's, whose modes, positions and flags are what a program expects; the device
/// sees only numbers.
#[derive(Default)]
pub struct Files {
    open: HashMap<u64, Arc<File>>,
    stdin: Option<Input>,
    next: u64,
}

impl Files {
    /// A handle for an open stream.
    pub fn add(&mut self, file: File) -> u64 {
        self.next += 1;
        // Low bits stay clear: they would name a standard stream.
        let handle = self.next << 4;
        self.open.insert(handle, Arc::new(file));
        handle
    }

    /// Takes a stream off the list: it is closed when nobody uses it any more.
    pub fn remove(&mut self, handle: u64) -> Option<Arc<File>> {
        self.open.remove(&handle)
    }

    /// All streams.
    pub fn all(&self) -> Vec<Arc<File>> {
        self.open.values().cloned().collect()
    }

    /// An open stream.
    pub fn get(&self, stream: Stream) -> Option<&Arc<File>> {
        match stream {
            Stream::Handle(handle) => self.open.get(&handle),
            _ => None,
        }
    }

    /// Standard input; none when the process has none.
    pub fn stdin(&mut self) -> Option<&mut Input> {
        if self.stdin.is_none() {
            self.stdin = std::io::stdin().as_fd().try_clone_to_owned().ok().map(Input::new);
        }
        self.stdin.as_mut()
    }

    /// Reads standard input from elsewhere.
    #[cfg(test)]
    pub fn set_stdin(&mut self, input: Input) {
        self.stdin = Some(input);
    }
}

/// A string up to its first NUL.
pub fn c_string(bytes: &[u8]) -> Option<CString> {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    CString::new(&bytes[..end]).ok()
}

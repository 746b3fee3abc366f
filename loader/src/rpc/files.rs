//! Streams that a device program uses.

use std::collections::HashMap;
use std::ffi::CString;

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
    /// A handle given out by [`Files::open`].
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
struct File(*mut libc::FILE);

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: the pointer came from fopen or fdopen and is closed only here.
        unsafe { libc::fclose(self.0) };
    }
}

/// Open streams. They are the host C library's, whose modes, positions and flags are what a program expects; the device
/// sees only numbers.
#[derive(Default)]
pub struct Files {
    open: HashMap<u64, File>,
    stdin: Option<File>,
    next: u64,
}

impl Files {
    /// `fopen`: a handle, or 0.
    pub fn open(&mut self, path: &[u8], mode: &[u8]) -> u64 {
        let (Some(path), Some(mode)) = (c_string(path), c_string(mode)) else { return 0 };
        // SAFETY: both are NUL-terminated strings.
        let file = unsafe { libc::fopen(path.as_ptr(), mode.as_ptr()) };
        if file.is_null() {
            return 0;
        }
        self.next += 1;
        // Low bits stay clear: they would name a standard stream.
        let handle = self.next << 4;
        self.open.insert(handle, File(file));
        handle
    }

    /// `fclose`: 0, or -1 for an unknown handle.
    pub fn close(&mut self, handle: u64) -> i32 {
        match self.open.remove(&handle) {
            Some(_) => 0,
            None => -1,
        }
    }

    /// The C stream of one that can be read, positioned and so on.
    pub fn get(&mut self, stream: Stream) -> Option<*mut libc::FILE> {
        match stream {
            Stream::Handle(handle) => self.open.get(&handle).map(|file| file.0),
            Stream::Stdin => {
                if self.stdin.is_none() {
                    // SAFETY: a duplicate of fd 0 and a literal mode.
                    let file = unsafe { libc::fdopen(libc::dup(0), c"r".as_ptr()) };
                    if file.is_null() {
                        return None;
                    }
                    self.stdin = Some(File(file));
                }
                self.stdin.as_ref().map(|file| file.0)
            }
            Stream::Stdout | Stream::Stderr => None,
        }
    }
}

/// A string up to its first NUL.
pub fn c_string(bytes: &[u8]) -> Option<CString> {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    CString::new(&bytes[..end]).ok()
}

//! Standard input, read so that a call that waits for it keeps neither the other calls nor the run's limit waiting.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd};

/// A stream over a descriptor. Like a C stream it reads ahead and keeps an end-of-file and an error flag; unlike one it
/// never blocks: what is not there yet is None.
#[derive(Debug)]
pub struct Input {
    descriptor: OwnedFd,
    buffer: VecDeque<u8>,
    ended: bool,
    failed: bool,
}

/// Bytes read at once.
const CHUNK: usize = 4096;

impl Input {
    /// Nothing read yet.
    pub fn new(descriptor: OwnedFd) -> Input {
        Input { descriptor, buffer: VecDeque::new(), ended: false, failed: false }
    }

    /// `fread`: `size` bytes, or those before the end.
    pub fn take(&mut self, size: usize) -> Option<Vec<u8>> {
        while self.buffer.len() < size && self.fill()? {}
        let count = size.min(self.buffer.len());
        Some(self.buffer.drain(..count).collect())
    }

    /// `fgets`: at most `size` bytes, up to and with the end of the line.
    pub fn line(&mut self, size: usize) -> Option<Vec<u8>> {
        loop {
            if let Some(end) = self.buffer.iter().take(size).position(|byte| *byte == b'\n') {
                return Some(self.buffer.drain(..=end).collect());
            }
            if self.buffer.len() >= size || !self.fill()? {
                let count = size.min(self.buffer.len());
                return Some(self.buffer.drain(..count).collect());
            }
        }
    }

    /// Reads what is there; false at the end, which stays until [`Input::clear`]. None when nothing is there yet.
    fn fill(&mut self) -> Option<bool> {
        if self.ended || self.failed {
            return Some(false);
        }
        let mut poll = libc::pollfd { fd: self.descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one structure, and no waiting.
        if unsafe { libc::poll(&mut poll, 1, 0) } <= 0 {
            return None;
        }
        let mut chunk = [0u8; CHUNK];
        // SAFETY: an open descriptor and a buffer of the length given.
        match unsafe { libc::read(self.descriptor.as_raw_fd(), chunk.as_mut_ptr().cast(), CHUNK) } {
            0 => self.ended = true,
            count if count > 0 => self.buffer.extend(chunk.iter().take(count as usize)),
            _ => match std::io::Error::last_os_error().kind() {
                std::io::ErrorKind::Interrupted | std::io::ErrorKind::WouldBlock => return None,
                _ => self.failed = true,
            },
        }
        Some(!self.ended && !self.failed)
    }

    /// `feof`: whether a read has met the end.
    pub fn has_ended(&self) -> bool {
        self.ended && self.buffer.is_empty()
    }

    /// `ferror`.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// `clearerr`.
    pub fn clear(&mut self) {
        (self.ended, self.failed) = (false, false);
    }

    /// `ungetc`: the byte, or -1 for what is none.
    pub fn unget(&mut self, byte: i32) -> i64 {
        let Ok(value) = u8::try_from(byte) else { return -1 };
        self.buffer.push_front(value);
        self.ended = false;
        value.into()
    }

    /// `fseek`: 0, or -1 where there are no positions, as in a pipe.
    pub fn seek(&mut self, offset: i64, whence: i32) -> i64 {
        let offset = if whence == libc::SEEK_CUR { offset.wrapping_sub(self.buffer.len() as i64) } else { offset };
        // SAFETY: an open descriptor.
        if unsafe { libc::lseek(self.descriptor.as_raw_fd(), offset, whence) } < 0 {
            return -1;
        }
        self.buffer.clear();
        self.ended = false;
        0
    }

    /// `ftell`.
    pub fn tell(&self) -> i64 {
        // SAFETY: an open descriptor.
        match unsafe { libc::lseek(self.descriptor.as_raw_fd(), 0, libc::SEEK_CUR) } {
            at if at >= 0 => at - self.buffer.len() as i64,
            _ => -1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    #[test]
    fn what_is_not_there_yet_is_waited_for() {
        let (mut writer, reader) = UnixStream::pair().unwrap();
        let mut input = Input::new(reader.into());
        assert_eq!(input.take(1), None);
        writer.write_all(b"one\ntw").unwrap();
        assert_eq!(input.line(100), Some(b"one\n".to_vec()));
        assert_eq!(input.line(100), None, "the line has no end yet");
        assert_eq!(input.line(2), Some(b"tw".to_vec()), "as many as there is room for");
        writer.write_all(b"o\nthree").unwrap();
        assert_eq!(input.take(2), Some(b"o\n".to_vec()));
        assert_eq!(input.unget(i32::from(b'o')), i64::from(b'o'));
        // Not only dropped: a child that another test has just forked may still have a copy.
        writer.shutdown(std::net::Shutdown::Write).unwrap();
        assert!(!input.has_ended());
        assert_eq!(input.line(100), Some(b"othree".to_vec()));
        assert!(input.has_ended() && !input.has_failed());
        assert_eq!(input.take(5), Some(Vec::new()));
        assert_eq!((input.seek(0, libc::SEEK_SET), input.tell()), (-1, -1), "no positions in a pipe");
        assert_eq!(input.unget(-1), -1);
        input.clear();
        assert!(!input.has_ended());
    }

    #[test]
    fn positions_count_what_was_read_ahead() {
        let path = std::env::temp_dir().join(format!("kfdrun-input-{}", std::process::id()));
        std::fs::write(&path, b"0123456789").unwrap();
        let mut input = Input::new(std::fs::File::open(&path).unwrap().into());
        std::fs::remove_file(&path).unwrap();
        assert_eq!(input.take(3), Some(b"012".to_vec()));
        assert_eq!(input.tell(), 3);
        assert_eq!(input.seek(2, libc::SEEK_CUR), 0);
        assert_eq!(input.take(100), Some(b"56789".to_vec()));
        assert!(input.has_ended());
        assert_eq!(input.seek(-1, libc::SEEK_END), 0);
        assert_eq!(input.take(1), Some(b"9".to_vec()));
        assert!(!input.has_ended(), "the end is met by reading beyond it");
    }
}

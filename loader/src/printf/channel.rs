//! The printf buffer between a kernel and the host.
//!
//! A dword with the offset of the next record, a dword with the bytes there are, then the records. The device reserves a
//! record by adding its size to the offset, and stores its arguments; a record that does not fit is dropped and `printf`
//! returns -1.
//!
//! Two libraries count differently. ROCm's device libraries start at offset 0 and place a record at byte 8 + offset;
//! libclc starts at offset 8 and places it at byte offset. The buffer starts at offset 8 for both: what the first dword
//! behind the header holds after the kernel tells which of them wrote.
//!
//! A record that does not fit leaves no trace: the offset stays, and smaller records may still follow. So the host says
//! that output may be missing when less room is left than a record may take ([`Formats::largest`]) or than the largest
//! one took. The offset may then be anything, the one it started with too.

use super::words::{self, Null};
use super::{Doubts, Formats, UNWRITTEN};
use crate::Error;
use crate::rpc::Output;
use kfd::{Buffer, Device, Kind};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

/// The buffer and the formats of an image.
#[derive(Debug)]
pub struct Channel {
    buffer: Buffer,
    formats: Formats,
    /// Bytes for the header and the records.
    size: u64,
}

/// Bytes in front of the records.
const HEADER: u64 = 8;
/// Where the device starts to count.
const START: u32 = 8;
/// Bytes at the end that no record takes.
const SPARE: u64 = 8;

impl Channel {
    /// A buffer of `size` bytes.
    pub fn new(device: &Arc<Device>, formats: Formats, size: u32) -> Result<Channel, Error> {
        let size = u64::from(size.max(64)).next_multiple_of(4);
        let buffer = Buffer::new(device, Kind::Control, size, "printf buffer")?;
        let pattern: Vec<u8> = UNWRITTEN.to_le_bytes().repeat(1024);
        let mut at = 0;
        while at < buffer.size() {
            let count = (buffer.size() - at).min(pattern.len() as u64);
            buffer.write_bytes(at, &pattern[..count as usize])?;
            at += count;
        }
        let channel = Channel { buffer, formats, size };
        channel.reset()?;
        Ok(channel)
    }

    /// Device address.
    pub fn va(&self) -> u64 {
        self.buffer.va().0
    }

    fn reset(&self) -> Result<(), Error> {
        self.buffer.write_bytes(0, &[START.to_le_bytes(), self.usable().to_le_bytes()].concat())?;
        Ok(())
    }

    /// Bytes there are for records, as the device counts them. Both libraries leave the last 8 alone: ROCm's asks for
    /// them to be free, libclc's starts 8 bytes later.
    fn usable(&self) -> u32 {
        (self.size - HEADER) as u32
    }

    /// Prints what the device wrote and empties the buffer. Call it when no kernel runs. Returns lines for the user.
    pub fn drain(&mut self, output: &mut dyn Output) -> Result<Vec<String>, Error> {
        fence(Ordering::Acquire);
        let (offset, usable) = (self.word(0)?, self.word(4)?);
        let mut notes = Vec::new();
        // Where the first record lies.
        let first = if self.word(HEADER)? == UNWRITTEN { u64::from(START) + HEADER } else { u64::from(START) };
        let end = first + u64::from(offset.wrapping_sub(START));
        if usable != self.usable() || offset < START || end > self.size {
            notes.push(format!(
                "printf buffer: its header says offset {offset} of {usable} bytes, where {} are: the kernel wrote over \
                 it; nothing of it is printed",
                self.usable()
            ));
        } else {
            let mut records = vec![0; (end - first) as usize];
            self.buffer.read_bytes(first, &mut records)?;
            let largest = self.print(&records, output, &mut notes).max(self.formats.largest());
            let room = self.size.saturating_sub(end + SPARE);
            if room < largest {
                notes.push(format!(
                    "printf buffer: {room} of {usable} bytes are left and a record may take {largest}: output may be \
                     missing; --printf-buffer BYTES makes it larger"
                ));
            }
        }
        if offset != START || usable != self.usable() {
            let used = end.min(self.buffer.size());
            self.buffer.write_bytes(HEADER, &UNWRITTEN.to_le_bytes().repeat(((used - HEADER) / 4) as usize))?;
            self.reset()?;
        }
        Ok(notes)
    }

    fn word(&self, offset: u64) -> Result<u32, Error> {
        Ok(self.buffer.atomic_u32(offset)?.load(Ordering::Relaxed))
    }

    /// Prints records; the bytes of the largest.
    fn print(&self, records: &[u8], output: &mut dyn Output, notes: &mut Vec<String>) -> u64 {
        let (mut at, mut largest) = (0, 0);
        let mut doubts = Doubts::default();
        while at < records.len() {
            match self.record(&records[at..], output, &mut doubts) {
                Ok(bytes) => {
                    at += bytes;
                    largest = largest.max(bytes as u64);
                }
                Err(what) => {
                    notes.push(format!(
                        "printf buffer: the record at byte {at} has {what}; what follows it is not printed"
                    ));
                    break;
                }
            }
        }
        notes.extend(doubts.notes());
        largest
    }

    /// Prints the first record; its bytes, or what is wrong with it.
    fn record(&self, record: &[u8], output: &mut dyn Output, doubts: &mut Doubts) -> Result<usize, String> {
        let first = record.first_chunk::<4>().ok_or("fewer than 4 bytes")?;
        let first = u32::from_le_bytes(*first);
        let mut text = Vec::new();
        match &self.formats {
            Formats::OpenCl(formats) => {
                let unknown = || format!("format id {first}, which amdhsa.printf does not have");
                let format = formats.get(&first).ok_or_else(unknown)?;
                let bytes = format.record_bytes() as usize;
                let arguments = record.get(4..bytes).ok_or("not as many bytes as its format says")?;
                *doubts += format.render(arguments, &mut text);
                output.stdout(&text);
                Ok(bytes)
            }
            Formats::Hashed(formats) => {
                let bytes = (first >> 2) as usize;
                let (constant, to_stderr) = (first & 2 != 0, first & 1 != 0);
                let data = record.get(4..bytes).ok_or_else(|| format!("the size {bytes} in its control word"))?;
                *doubts += if constant {
                    let (hash, arguments) = data.split_first_chunk::<8>().ok_or("no format hash")?;
                    let hash = u64::from_le_bytes(*hash);
                    let unknown = || format!("format hash {hash:016x}, which amdhsa.printf does not have");
                    words::format(formats.get(&hash).ok_or_else(unknown)?, arguments, Null::Nothing, &mut text)
                } else {
                    words::message(data, Null::Nothing, &mut text)
                };
                if to_stderr {
                    output.stderr(&text)
                } else {
                    output.stdout(&text)
                };
                Ok(bytes)
            }
        }
    }
}

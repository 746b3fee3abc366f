//! The printf buffer between a kernel and the host.
//!
//! A dword with the offset of the next record, a dword with the bytes there are, then the records. The device reserves a
//! record by adding its size to the offset, and stores its arguments; a record that does not fit is dropped and `printf`
//! returns -1.
//!
//! Two libraries count differently. ROCm's device libraries start at offset 0 and place a record at byte 8 + offset;
//! libclc starts at offset 8 and places it at byte offset. The buffer starts at offset 8 for both: what the first dword
//! behind the header holds after the kernel tells which of them wrote.

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
}

/// Bytes in front of the records.
const HEADER: u64 = 8;
/// Where the device starts to count.
const START: u32 = 8;

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
        let channel = Channel { buffer, formats };
        channel.reset(size)?;
        Ok(channel)
    }

    /// Device address.
    pub fn va(&self) -> u64 {
        self.buffer.va().0
    }

    fn reset(&self, size: u64) -> Result<(), Error> {
        // The bytes behind the last record that either library can reserve stay inside.
        let usable = (size - HEADER) as u32;
        self.buffer.write_bytes(0, &[START.to_le_bytes(), usable.to_le_bytes()].concat())?;
        Ok(())
    }

    /// Prints what the device wrote and empties the buffer. Call it when no kernel runs. Returns lines for the user.
    pub fn drain(&mut self, output: &mut dyn Output) -> Result<Vec<String>, Error> {
        fence(Ordering::Acquire);
        let (offset, usable) = (self.word(0)?, self.word(4)?);
        let mut notes = Vec::new();
        let size = u64::from(usable) + HEADER;
        if offset == START {
            return Ok(notes);
        }
        // Where the first record lies.
        let first = if self.word(HEADER)? == UNWRITTEN { u64::from(START) + HEADER } else { u64::from(START) };
        let end = first + u64::from(offset.wrapping_sub(START));
        if offset < START || end > size {
            notes.push(format!(
                "printf buffer: the offset is {offset}, which is outside the {usable} bytes there are: the kernel wrote \
                 over it; nothing of it is printed"
            ));
        } else {
            let mut records = vec![0; (end - first) as usize];
            self.buffer.read_bytes(first, &mut records)?;
            self.print(&records, output, &mut notes);
            let left = size - end;
            if left < self.formats.largest() {
                notes.push(format!(
                    "printf buffer: {left} of {usable} bytes are left, fewer than a record may need: records that did not \
                     fit are lost; give it more with --printf-buffer"
                ));
            }
        }
        let used = end.min(self.buffer.size());
        self.buffer.write_bytes(HEADER, &UNWRITTEN.to_le_bytes().repeat(((used - HEADER) / 4) as usize))?;
        self.reset(size)?;
        Ok(notes)
    }

    fn word(&self, offset: u64) -> Result<u32, Error> {
        Ok(self.buffer.atomic_u32(offset)?.load(Ordering::Relaxed))
    }

    fn print(&self, records: &[u8], output: &mut dyn Output, notes: &mut Vec<String>) {
        let mut at = 0;
        let mut doubts = Doubts::default();
        while at < records.len() {
            let record = &records[at..];
            let Some(first) = record.first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes)) else { break };
            let mut text = Vec::new();
            match &self.formats {
                Formats::OpenCl(formats) => {
                    let Some(format) = formats.get(&first) else {
                        return notes.push(stray(at, &format!("format id {first}, which amdhsa.printf does not have")));
                    };
                    let bytes = format.record_bytes() as usize;
                    let Some(arguments) = record.get(4..bytes) else {
                        return notes.push(stray(at, "not as many bytes as its format says"));
                    };
                    doubts += format.render(arguments, &mut text);
                    output.stdout(&text);
                    at += bytes;
                }
                Formats::Hashed(formats) => {
                    let bytes = (first >> 2) as usize;
                    let (constant, to_stderr) = (first & 2 != 0, first & 1 != 0);
                    let Some(data) = record.get(4..bytes) else {
                        return notes.push(stray(at, &format!("the size {bytes} in its control word")));
                    };
                    if constant {
                        let hash = data.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes)).unwrap_or(0);
                        let Some(format) = formats.get(&hash) else {
                            return notes.push(stray(
                                at,
                                &format!("format hash {hash:016x}, which amdhsa.printf does not have"),
                            ));
                        };
                        doubts += words::format(format, data.get(8..).unwrap_or_default(), Null::Nothing, &mut text);
                    } else {
                        doubts += words::message(data, Null::Nothing, &mut text);
                    }
                    if to_stderr {
                        output.stderr(&text)
                    } else {
                        output.stdout(&text)
                    };
                    at += bytes;
                }
            }
        }
        notes.extend(doubts.notes());
    }
}

fn stray(at: usize, what: &str) -> String {
    format!("printf buffer: the record at byte {at} has {what}; what follows it is not printed")
}

//! What the host does for a lane.

use crate::printf::words::{self, Null};
use crate::rpc::{DeviceMemory, Output};
use std::collections::{BTreeSet, HashMap};

/// Services by number.
mod service {
    pub const FUNCTION: u32 = 1;
    pub const PRINTF: u32 = 2;
    pub const DEVICE_MEMORY: u32 = 3;
    pub const SANITIZER: u32 = 4;
}

/// Parts of a message's descriptor, its first word.
mod descriptor {
    pub const BEGIN: u64 = 1;
    pub const END: u64 = 2;
    /// Words that follow, in bits 5 to 7.
    pub fn length(word: u64) -> usize {
        (word >> 5 & 7) as usize
    }
    /// The host's number for the message, from bit 8.
    pub const ID: u32 = 8;
}

/// Bytes of a message the host keeps at most; more is a damaged one.
const LONGEST: usize = 1 << 24;
const ERROR: u64 = u64::MAX;
/// Reports of the address sanitizer that are kept between two looks.
const REPORTS: usize = 16;

/// The services and their state.
pub struct Calls {
    memory: Box<dyn DeviceMemory>,
    /// Messages under way, by number.
    messages: HashMap<u64, Vec<u8>>,
    next: u64,
    refused: BTreeSet<u32>,
    complaints: Vec<String>,
    reports: Vec<Report>,
}

/// What the address sanitizer tells of the work-items of a work-group that made the same access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Least address.
    pub address: u64,
    /// Highest one.
    pub last: u64,
    /// Where the call of the report returns to.
    pub pc: u64,
    /// Work-group.
    pub group: [u64; 3],
    /// The least of the work-items, by its flat id in the work-group.
    pub item: u64,
    /// A store rather than a load.
    pub is_write: bool,
    /// Bytes of the access.
    pub bytes: u64,
    /// Work-items.
    pub items: u64,
    /// The code was built to go on after a report (`-fsanitize-recover`).
    pub recovers: bool,
}

impl Report {
    /// The words are those of ROCm's device library (asanrtl): address, pc, work-group, work-item, whether it is a write,
    /// with the upper half all ones when the code goes on, and bytes.
    fn new(words: &[u64; 8]) -> Report {
        let [address, pc, x, y, z, item, access, bytes] = *words;
        Report {
            address,
            last: address,
            pc,
            group: [x, y, z],
            item,
            is_write: access as u32 != 0,
            bytes,
            items: 1,
            recovers: access >> 32 != 0,
        }
    }

    /// Takes another work-item in, if it did the same.
    fn merge(&mut self, other: &Report) -> bool {
        let key = |report: &Report| (report.pc, report.group, report.is_write, report.bytes, report.recovers);
        if key(self) != key(other) {
            return false;
        }
        self.address = self.address.min(other.address);
        self.last = self.last.max(other.last);
        self.item = self.item.min(other.item);
        self.items += other.items;
        true
    }
}

impl Calls {
    /// No messages under way.
    pub fn new(memory: Box<dyn DeviceMemory>) -> Calls {
        Calls {
            memory,
            messages: HashMap::new(),
            next: 0,
            refused: BTreeSet::new(),
            complaints: Vec::new(),
            reports: Vec::new(),
        }
    }

    /// Serves one lane; the answer is the first words of its slot.
    pub fn serve(&mut self, number: u32, words: &[u64; 8], output: &mut dyn Output) -> [u64; 2] {
        match number {
            service::PRINTF => [self.printf(words, output), 0],
            service::DEVICE_MEMORY if words[0] != 0 => {
                self.memory.free(words[0]);
                [0; 2]
            }
            service::DEVICE_MEMORY => {
                let va = self.memory.allocate(words[1]);
                if va.is_none() {
                    self.complain(format!("hostcall: device malloc of {} bytes failed", words[1]));
                }
                [va.unwrap_or(0), 0]
            }
            service::SANITIZER => {
                let report = Report::new(words);
                // A kernel of a million lanes may have a million reports.
                if !self.reports.iter_mut().any(|known| known.merge(&report)) && self.reports.len() < REPORTS {
                    self.reports.push(report);
                }
                [0; 2]
            }
            _ => {
                if self.refused.insert(number) {
                    let what = match number {
                        service::FUNCTION => "a call of a host function by its address, which is never made".to_owned(),
                        _ => format!("service {number}, which is not known"),
                    };
                    self.complain(format!("hostcall: the kernel asks for {what}; it is answered with 0"));
                }
                [0; 2]
            }
        }
    }

    /// A part of a message: the first gets a number, the last is printed and answered with the bytes printed.
    fn printf(&mut self, words: &[u64; 8], output: &mut dyn Output) -> u64 {
        let mut head = words[0];
        if head & descriptor::BEGIN != 0 {
            let id = self.next;
            self.next += 1;
            self.messages.insert(id, Vec::new());
            head = head & !descriptor::BEGIN & 0xff | id << descriptor::ID;
        }
        let id = head >> descriptor::ID;
        let Some(message) = self.messages.get_mut(&id) else {
            self.complain(format!("hostcall: a part of message {id}, which has not begun"));
            return ERROR;
        };
        let parts = words[1..].iter().take(descriptor::length(head));
        message.extend(parts.flat_map(|word| word.to_le_bytes()));
        let is_too_long = message.len() > LONGEST;
        if head & descriptor::END == 0 && !is_too_long {
            return head;
        }
        let message = self.messages.remove(&id).unwrap_or_default();
        if is_too_long {
            self.complain(format!("hostcall: a message of more than {LONGEST} bytes is dropped"));
            return ERROR;
        }
        self.print(&message, output)
    }

    /// A whole message: a control word (bit 0 is stderr, others are not defined), a format, its arguments.
    fn print(&mut self, message: &[u8], output: &mut dyn Output) -> u64 {
        let Some((control, rest)) = message.split_first_chunk::<8>() else {
            self.complain("hostcall: an empty message".to_owned());
            return ERROR;
        };
        let control = u64::from_le_bytes(*control);
        if control > 1 {
            self.complain(format!("hostcall: a message of version {control:#x}: 0 and 1 are known"));
            return ERROR;
        }
        let mut text = Vec::new();
        let missing = words::message(rest, Null::Word, &mut text).missing;
        if missing > 0 {
            self.complain(format!("hostcall: {missing} conversions of a printf have no argument"));
        }
        if control == 1 {
            output.stderr(&text)
        } else {
            output.stdout(&text)
        };
        text.len() as u64
    }

    pub(super) fn complain(&mut self, line: String) {
        // A kernel of a million lanes may have a million complaints.
        if self.complaints.len() < 100 {
            self.complaints.push(line);
        }
    }

    /// A report after which nothing goes on has arrived.
    pub(super) fn is_stopped(&self) -> bool {
        self.reports.iter().any(|report| !report.recovers)
    }

    pub(super) fn take_reports(&mut self) -> Vec<Report> {
        std::mem::take(&mut self.reports)
    }

    pub(super) fn take_complaints(&mut self) -> Vec<String> {
        std::mem::take(&mut self.complaints)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Out(Vec<u8>, Vec<u8>);

    impl Output for Out {
        fn stdout(&mut self, bytes: &[u8]) -> usize {
            self.0.extend_from_slice(bytes);
            bytes.len()
        }
        fn stderr(&mut self, bytes: &[u8]) -> usize {
            self.1.extend_from_slice(bytes);
            bytes.len()
        }
    }

    struct Memory(Vec<u64>);

    impl DeviceMemory for Memory {
        fn allocate(&mut self, size: u64) -> Option<u64> {
            (size < 1 << 30).then_some(0x20_0000)
        }
        fn free(&mut self, va: u64) {
            self.0.push(va);
        }
    }

    fn part(head: u64, payload: &[u8]) -> [u64; 8] {
        let mut words = [0; 8];
        words[0] = head | (payload.len().div_ceil(8) as u64) << 5;
        for (word, chunk) in words[1..].iter_mut().zip(payload.chunks(8)) {
            let mut bytes = [0; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            *word = u64::from_le_bytes(bytes);
        }
        words
    }

    #[test]
    fn messages_of_lanes_interleave() {
        let (mut calls, mut out) = (Calls::new(Box::new(Memory(Vec::new()))), Out::default());
        let first = calls.serve(2, &part(1, &[0; 8]), &mut out)[0];
        let second = calls.serve(2, &part(1, &1u64.to_le_bytes()), &mut out)[0];
        assert_eq!((first & 1, first >> 8, second >> 8), (0, 0, 1));
        let id = |head: u64| head & !0xff;
        assert_eq!(calls.serve(2, &part(id(first), b"n=%d s=%s\n\0"), &mut out)[0] >> 8, 0);
        calls.serve(2, &part(id(second), b"to stderr\n\0"), &mut out);
        calls.serve(2, &part(id(first), &7u64.to_le_bytes()), &mut out);
        assert_eq!(calls.serve(2, &part(id(second) | 2, &[]), &mut out)[0], 10);
        assert_eq!(calls.serve(2, &part(id(first) | 2, b"text\0"), &mut out)[0], 11);
        assert_eq!((&out.0[..], &out.1[..]), (&b"n=7 s=text\n"[..], &b"to stderr\n"[..]));
        assert!(calls.take_complaints().is_empty());
    }

    #[test]
    fn reports_of_one_access_are_one() {
        let (mut calls, mut out) = (Calls::new(Box::new(Memory(Vec::new()))), Out::default());
        let goes_on = 0xffff_ffff_0000_0000;
        for (address, item, access) in [(0x1010, 5, goes_on), (0x1000, 3, goes_on), (0x1020, 64, goes_on | 1)] {
            calls.serve(4, &[address, 0x5678, 1, 2, 3, item, access, 8], &mut out);
        }
        assert!(!calls.is_stopped());
        calls.serve(4, &[0x1030, 0x5678, 1, 2, 3, 0, 1, 8], &mut out);
        assert!(calls.is_stopped());
        let reports = calls.take_reports();
        let of = |report: &Report| (report.address, report.last, report.item, report.items, report.is_write);
        let expected = [(0x1000, 0x1010, 3, 2, false), (0x1020, 0x1020, 64, 1, true), (0x1030, 0x1030, 0, 1, true)];
        assert_eq!(reports.iter().map(of).collect::<Vec<_>>(), expected);
        assert!(calls.take_reports().is_empty());
    }

    #[test]
    fn damaged_messages_are_answered_with_an_error() {
        let (mut calls, mut out) = (Calls::new(Box::new(Memory(Vec::new()))), Out::default());
        assert_eq!(calls.serve(2, &part(5 << 8, b"x"), &mut out)[0], ERROR);
        assert_eq!(calls.serve(2, &part(3, &8u64.to_le_bytes()), &mut out)[0], ERROR);
        assert_eq!(calls.serve(2, &part(3, &[]), &mut out)[0], ERROR);
        assert_eq!(calls.take_complaints().len(), 3);
        assert!(out.0.is_empty());
    }

    #[test]
    fn memory_and_what_is_refused() {
        let (mut calls, mut out) = (Calls::new(Box::new(Memory(Vec::new()))), Out::default());
        assert_eq!(calls.serve(3, &[0, 4096, 0, 0, 0, 0, 0, 0], &mut out)[0], 0x20_0000);
        assert_eq!(calls.serve(3, &[0x20_0000, 0, 0, 0, 0, 0, 0, 0], &mut out)[0], 0);
        assert!(calls.take_complaints().is_empty());
        assert_eq!(calls.serve(3, &[0, 1 << 40, 0, 0, 0, 0, 0, 0], &mut out)[0], 0);
        for _ in 0..3 {
            assert_eq!(calls.serve(1, &[0x1234; 8], &mut out), [0; 2]);
        }
        let complaints = calls.take_complaints();
        assert_eq!(complaints.len(), 2, "each refused service is told of once: {complaints:?}");
        assert!(complaints[1].contains("never made"));
    }
}

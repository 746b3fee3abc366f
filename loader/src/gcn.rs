//! Programs of GCC's AMD GCN compiler, as its `gcn-run` runs them.
//!
//! The kernels `_init_array`, `main` and `_fini_array` run one after the other as one wave of 64 lanes along y, all with
//! the same block of arguments (GCC's `config/gcn/gcn-run.cc`, struct kernargs): argc, argv, where output goes, where the
//! heap is. What the program prints lies in a ring of entries that the host empties while the kernel runs. `main`'s value
//! comes back in the first word of the output.

use crate::format;
use crate::gpu::{Finished, Gpu, Pending, WaitState};
use crate::kernarg::Kernarg;
use crate::program::{DEFAULT_GCN_HEAP, Ending, GCN_GROUP as GROUP, Outcome, Program};
use crate::rpc::Output;
use crate::service::host_visible;
use crate::{Error, Image, Shape, Stop};
use elf::CodeObject;
use kfd::{Buffer, Device, Kind};
use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

const KERNELS: [&str; 3] = ["_init_array", "main", "_fini_array"];

/// Is it such a program?
pub fn is_program(code: &CodeObject) -> bool {
    code.kernel("_start").is_none() && ["_init_array", "main"].iter().all(|name| code.kernel(name).is_some())
}

/// The arguments. GCC 12 and before know the first four; the rest is what GCC 13 put behind them.
mod kernarg {
    pub const ARGC: usize = 0;
    pub const ARGV: usize = 8;
    pub const OUTPUT: usize = 16;
    pub const HEAP: usize = 24;
    /// OpenMP's arena: none.
    pub const STACK: usize = 40;
    pub const STACK_SIZE: usize = 52;
    pub const BYTES: usize = 64;
}

/// The output structure.
mod output {
    pub const VALUE: u64 = 0;
    /// Entries reserved since the start.
    pub const NEXT: u64 = 4;
    pub const QUEUE: u64 = 8;
    pub const ENTRIES: u32 = 1024;
    /// Entries the host has taken since the start.
    pub const CONSUMED: u64 = QUEUE + ENTRIES as u64 * super::entry::BYTES;
    pub const BYTES: u64 = CONSUMED + 8;
}

/// An entry of the ring.
mod entry {
    pub const WRITTEN: u64 = 0;
    pub const MESSAGE: usize = 4;
    pub const KIND: usize = 132;
    pub const VALUE: usize = 136;
    pub const BYTES: u64 = 264;
}

/// What the value word holds until the program sets it.
const UNSET: u32 = 0xcafe_0000;

/// Runs a program.
pub fn run(
    device: &Arc<Device>,
    code: CodeObject,
    mut program: Program,
    on_wait: &mut dyn FnMut(&WaitState) -> bool,
) -> Result<Outcome, Error> {
    if program.threads != [1; 3] || program.blocks != [1; 3] {
        return Err(Error::Launch {
            kernel: "main".to_owned(),
            what: "the grid",
            value: format!("{:?} work-items in {:?} work-groups", program.threads, program.blocks),
            rule:
                "a program of GCC's runs as one work-group of 1 x 64 x 1 work-items: leave --threads and --blocks out"
                    .to_owned(),
        });
    }
    let shape = Shape { dims: 3, group: GROUP, grid: GROUP };
    let strings = Arguments::new(&program.arguments);
    let output_at = strings.size().next_multiple_of(64);
    program.options.kernarg_bytes = kernarg::BYTES as u64;
    program.options.shared_bytes = output_at + output::BYTES;
    let mut gpu = Gpu::open(device, program.options)?;
    if program.ends_process {
        device.kfd().leave();
    }
    let image = Image::load(device, code, &HashMap::new(), 0)?;
    let heap_bytes = program.gcn_heap.unwrap_or(DEFAULT_GCN_HEAP);
    let heap = host_visible(device, heap_bytes.saturating_add(8), "heap")?;
    heap.write_bytes(0, &heap_bytes.to_le_bytes())?;
    let stack = Buffer::new(device, Kind::Vram, u64::from(program.gcn_stack), "stack")?;

    let (shared, offset) = gpu.shared();
    let shared = shared.clone();
    let base = shared.va().0 + offset;
    shared.write_bytes(offset, &strings.block(base))?;
    shared.write_bytes(offset + output_at + output::VALUE, &UNSET.to_le_bytes())?;
    let mut ring = Ring { shared: shared.clone(), base: offset + output_at, notes: Vec::new() };

    let mut bytes = vec![0; kernarg::BYTES];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(kernarg::ARGC, &(strings.strings.len() as u32).to_le_bytes());
    put(kernarg::ARGV, &base.to_le_bytes());
    put(kernarg::OUTPUT, &(base + output_at).to_le_bytes());
    put(kernarg::HEAP, &heap.va().0.to_le_bytes());
    put(kernarg::STACK, &stack.va().0.to_le_bytes());
    put(kernarg::STACK_SIZE, &program.gcn_stack.to_le_bytes());

    let deadline = program.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    for name in KERNELS {
        let Some(kernel) = image.code().kernel(name) else { continue };
        // The metadata's kernarg size is not that of the block.
        let kernarg = Kernarg { bytes: bytes.clone(), group_segment_size: kernel.metadata.group_segment_fixed_size };
        let timeout = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let (mut left, mut broken) = (None, None);
        let result = gpu.dispatch_bytes(&image, kernel, &shape, &kernarg, timeout, &mut |state| {
            if !on_wait(state) {
                left = Some((state.signal, state.value));
                return Pending::Leave;
            }
            match ring.take(program.output.as_mut(), false) {
                Ok(true) => Pending::Again,
                Ok(false) => Pending::Poll,
                Err(error) => {
                    broken = Some(error);
                    Pending::Leave
                }
            }
        });
        if let Some(error) = broken {
            return Err(error);
        }
        ring.take(program.output.as_mut(), true)?;
        match result {
            Ok(Finished::Completed) => {}
            Ok(Finished::Left) => {
                let (signal, value) = left.unwrap_or_default();
                return Err(
                    Stop::Interrupted { kernel: name.to_owned(), signal, value, report: gpu.report(&image) }.into()
                );
            }
            Err(Error::Stopped(mut stop)) => {
                if let (Stop::Timeout { limit, .. }, Some(timeout)) = (stop.as_mut(), program.timeout) {
                    *limit = timeout;
                }
                return Err(Error::Stopped(stop));
            }
            Err(error) => return Err(error),
        }
        // `exit` ends the wave in the middle of `main`; what is left to run is not for it.
        if name == "main" && ring.value()? >> 16 == 0xffff {
            break;
        }
    }
    let ending = ending(ring.value()?, &mut ring.notes);
    Ok(Outcome { ending, notes: ring.notes })
}

/// What the value word says. Its high half is 0 after a return, 0xffff after `exit` and `abort`, with the signal in the
/// second byte.
fn ending(value: u32, notes: &mut Vec<String>) -> Ending {
    match (value >> 16, value >> 8 & 0xff, value & 0xff) {
        (0xffff, 6, _) => Ending::Aborted,
        (0xffff, 0, status) => Ending::Exited(status as i32),
        (0xffff, signal, status) => {
            notes.push(format!("the program ended by signal {signal}"));
            Ending::Exited(status as i32)
        }
        (0xcafe, ..) => {
            notes.push("the kernel's exit value was never set: main did not reach its end".to_owned());
            Ending::Exited(255)
        }
        (0, ..) => Ending::Returned(value as i32),
        _ => {
            notes.push(format!("the kernel's exit value is {value:#x}, of no known form: it was written over"));
            Ending::Returned(value as i32)
        }
    }
}

/// argc pointers, with none behind them, then the strings.
struct Arguments {
    strings: Vec<Vec<u8>>,
}

impl Arguments {
    fn new(arguments: &[OsString]) -> Arguments {
        let bytes = |text: &OsString| text.as_bytes().split(|byte| *byte == 0).next().unwrap_or_default().to_vec();
        Arguments { strings: arguments.iter().map(bytes).collect() }
    }

    fn size(&self) -> u64 {
        self.strings.iter().map(|string| 8 + string.len() as u64 + 1).sum()
    }

    fn block(&self, va: u64) -> Vec<u8> {
        let mut at = va + 8 * self.strings.len() as u64;
        let mut block = Vec::new();
        for string in &self.strings {
            block.extend_from_slice(&at.to_le_bytes());
            at += string.len() as u64 + 1;
        }
        for string in &self.strings {
            block.extend_from_slice(string);
            block.push(0);
        }
        block
    }
}

/// The output structure in the shared memory.
struct Ring {
    shared: Arc<Buffer>,
    base: u64,
    notes: Vec<String>,
}

impl Ring {
    fn value(&self) -> Result<u32, Error> {
        Ok(self.shared.atomic_u32(self.base + output::VALUE)?.load(Ordering::Acquire))
    }

    /// Prints the entries that are complete; with `last` the others are left out. Returns whether there were any.
    fn take(&mut self, out: &mut dyn Output, last: bool) -> Result<bool, Error> {
        let next = self.shared.atomic_u32(self.base + output::NEXT)?.load(Ordering::Acquire);
        let consumed = self.shared.atomic_u32(self.base + output::CONSUMED)?;
        let start = consumed.load(Ordering::Relaxed);
        let mut index = start;
        while index != next {
            let at = self.base + output::QUEUE + u64::from(index % output::ENTRIES) * entry::BYTES;
            let written = self.shared.atomic_u32(at + entry::WRITTEN)?;
            if written.load(Ordering::Acquire) == 0 {
                if last {
                    self.notes.push(format!("{} lines were begun and never completed", next.wrapping_sub(index)));
                }
                break;
            }
            let mut bytes = [0; entry::BYTES as usize];
            self.shared.read_bytes(at, &mut bytes)?;
            match text(&bytes) {
                Ok(text) => {
                    out.stdout(&text);
                }
                Err(kind) => self
                    .notes
                    .push(format!("an output entry is of type {kind}: 0 to 3 are known (higher ones are OpenMP's)")),
            }
            written.store(0, Ordering::Relaxed);
            index = index.wrapping_add(1);
            consumed.store(index, Ordering::Release);
        }
        Ok(index != start)
    }
}

/// A number as C's `%f` has it.
fn decimal(value: f64) -> Vec<u8> {
    let mut text = Vec::new();
    for spec in format::specs(&format::parse(b"%f")) {
        format::render(spec, &[], &format::Value::Float(value), &mut text);
    }
    text
}

/// What an entry prints; its type when that is not known.
fn text(bytes: &[u8; entry::BYTES as usize]) -> Result<Vec<u8>, u32> {
    let until_nul = |bytes: &[u8]| bytes.split(|byte| *byte == 0).next().unwrap_or_default().to_vec();
    let message = &bytes[entry::MESSAGE..entry::KIND];
    let value = &bytes[entry::VALUE..];
    let word = value.first_chunk::<8>().copied().unwrap_or_default();
    let kind = bytes[entry::KIND..].first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes));
    let with = |tail: Vec<u8>| [until_nul(message), tail].concat();
    match kind {
        0 => Ok(with(format!("{}\n", i64::from_le_bytes(word)).into_bytes())),
        1 => Ok([with(decimal(f64::from_le_bytes(word))), b"\n".to_vec()].concat()),
        2 => Ok([until_nul(message), until_nul(value), b"\n".to_vec()].concat()),
        // Text without an end of line: it goes on from the message to the value without a NUL between.
        3 if message.contains(&0) => Ok([until_nul(message), until_nul(value)].concat()),
        3 => Ok([message.to_vec(), until_nul(value)].concat()),
        kind => Err(kind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_gccs() {
        assert_eq!((output::CONSUMED, output::BYTES), (270_344, 270_352));
        assert_eq!(
            output::BYTES + 32,
            270_384,
            "the whole of GCC 12's structure, where the output is behind the arguments"
        );
        assert_eq!(output::BYTES + 56, 270_408, "of GCC 13's");
    }

    #[test]
    fn values() {
        let mut notes = Vec::new();
        assert_eq!(ending(42, &mut notes), Ending::Returned(42));
        assert_eq!(ending(0xffff_0007, &mut notes), Ending::Exited(7));
        assert_eq!(ending(0xffff_0686, &mut notes), Ending::Aborted);
        assert!(notes.is_empty());
        assert_eq!(ending(UNSET, &mut notes), Ending::Exited(255));
        assert!(notes[0].contains("exit value was never set"));
        assert_eq!(ending(0xffff_0b8b, &mut notes), Ending::Exited(0x8b));
        assert_eq!(ending(0x1234_0000, &mut notes), Ending::Returned(0x1234_0000));
        assert_eq!(notes.len(), 3);
    }

    #[test]
    fn entries() {
        let mut bytes = [0; entry::BYTES as usize];
        bytes[4..8].copy_from_slice(b"abc=");
        bytes[136..144].copy_from_slice(&(-5i64).to_le_bytes());
        assert_eq!(text(&bytes).unwrap(), b"abc=-5\n");
        bytes[132] = 1;
        bytes[136..144].copy_from_slice(&1.5f64.to_le_bytes());
        assert_eq!(text(&bytes).unwrap(), b"abc=1.500000\n");
        bytes[136..144].copy_from_slice(&f64::NAN.to_le_bytes());
        assert_eq!(text(&bytes).unwrap(), b"abc=nan\n");
        bytes[136..144].copy_from_slice(b"def\0\0\0\0\0");
        bytes[132] = 2;
        assert_eq!(text(&bytes).unwrap(), b"abc=def\n");
        bytes[132] = 3;
        assert_eq!(text(&bytes).unwrap(), b"abc=def");
        bytes[4..132].fill(b'x');
        assert_eq!(text(&bytes).unwrap().len(), 131, "no NUL between the halves");
        bytes[132] = 4;
        assert_eq!(text(&bytes), Err(4));
    }

    #[test]
    fn arguments_have_no_null_at_their_end() {
        let arguments = Arguments::new(&["ab".into(), "c".into()]);
        let block = arguments.block(0x1000);
        assert_eq!(block.len() as u64, arguments.size());
        assert_eq!((&block[8..16], &block[16..]), (&0x1013u64.to_le_bytes()[..], &b"ab\0c\0"[..]));
    }
}

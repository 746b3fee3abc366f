//! Shadow memory for code that LLVM's address sanitizer has instrumented.
//!
//! Before it accesses global memory such code looks at the byte at `(address >> 3) + 0x7fff8000`: 0 when all eight bytes
//! there may be accessed, 1 to 7 when only so many may, anything else when none may, and why. Every buffer of the device
//! gets such bytes; so does what lies around it, as far as whole chunks of shadow memory reach. The device's side of the
//! sanitizer, in the image, changes them for what it hands out itself, and reports by hostcall.

use crate::hostcall::Report;
use crate::{Error, Image};
use elf::CodeObject;
use kfd::{Buffer, Device, GpuVa, Kind, Known};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes that one byte of shadow memory stands for, as a shift.
const SHIFT: u32 = 3;
/// Where the shadow of address 0 is: a constant in instrumented code (LLVM's `AddressSanitizer.cpp`, AMDGPU as x86-64).
const OFFSET: u64 = 0x7fff_8000;
/// Shadow memory is made in multiples of this, so that small buffers share some.
const CHUNK: u64 = 64 << 10;
const PURPOSE: &str = "address sanitizer's shadow memory";

/// Values of shadow bytes, from compiler-rt's `asan_internal.h`.
mod poison {
    pub const REDZONE: u8 = 0xfa;
    pub const FREED: u8 = 0xfd;

    /// What a shadow byte says of the bytes it stands for.
    pub fn describe(value: u8) -> String {
        match value {
            0 => "accessible".to_owned(),
            1..=7 => format!("only the first {value} of 8 bytes are accessible"),
            REDZONE => "beside a buffer or an allocation".to_owned(),
            FREED => "freed".to_owned(),
            0xf9 => "beside a variable".to_owned(),
            0xf7 => "made inaccessible by the program".to_owned(),
            _ => "not accessible".to_owned(),
        }
    }
}

/// Whether the sanitizer has instrumented the image: its symbols may be gone, but the code has the constant.
pub(crate) fn is_instrumented(code: &CodeObject) -> bool {
    let words = |bytes: &[u8]| bytes.chunks_exact(4).any(|word| word == (OFFSET as u32).to_le_bytes());
    code.segments().iter().any(|segment| segment.executable && words(segment.bytes))
        || code.symbols().iter().any(|symbol| symbol.name.starts_with("__asan_"))
}

/// The address that a shadow byte stands for, if there can be one at `va`.
pub(crate) fn shadowed(va: u64) -> Option<u64> {
    va.checked_sub(OFFSET).filter(|index| *index < 1 << (47 - SHIFT)).map(|index| index << SHIFT)
}

/// The shadow memory of a device.
#[derive(Debug)]
pub(crate) struct Shadow {
    device: Arc<Device>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By address. They do not overlap.
    pieces: BTreeMap<u64, Buffer>,
    /// Buffers whose shadow is set, by number.
    known: HashMap<u64, Range<u64>>,
}

impl Shadow {
    /// None yet.
    pub fn new(device: &Arc<Device>) -> Shadow {
        Shadow { device: device.clone(), state: Mutex::default() }
    }

    /// Makes shadow for the buffers that are new, and takes those that are gone out.
    pub fn update(&self) -> Result<(), Error> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let buffers: Vec<Known> = self.device.buffers().into_iter().filter(|known| known.purpose != PURPOSE).collect();
        let live = |number: &u64| buffers.iter().any(|known| known.number == *number);
        let gone: Vec<u64> = state.known.keys().filter(|number| !live(number)).copied().collect();
        for number in gone {
            if let Some(range) = state.known.remove(&number) {
                state.fill(shadow_of(range.start)..shadow_of(range.end), poison::FREED)?;
            }
        }
        for buffer in &buffers {
            if !state.known.contains_key(&buffer.number) {
                state.add(&self.device, buffer)?;
            }
        }
        Ok(())
    }

    /// The shadow byte of an address.
    fn at(&self, address: u64) -> Option<u8> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let va = shadow_of(address);
        let (start, piece) = state.pieces.range(..=va).next_back()?;
        let mut byte = [0];
        piece.read_bytes(va - start, &mut byte).ok()?;
        Some(byte[0])
    }

    /// A report of the device's side, with what is known of the addresses here.
    pub fn explain(&self, report: &Report, image: &Image) -> String {
        let Report { address, last, pc, group: [x, y, z], item, is_write, bytes, items, .. } = report;
        let access = if *is_write { "write" } else { "read" };
        let at = if address == last { format!("{address:#x}") } else { format!("{address:#x} to {last:#x}") };
        let mut lines = vec![format!("address sanitizer: {access} of {bytes} bytes at {at}")];
        let who =
            if *items == 1 { format!("work-item {item}") } else { format!("{items} work-items, the first {item},") };
        // The report returns behind the call.
        let place = image.describe(pc.saturating_sub(1)).map(|place| format!(", in {place} of the image"));
        let place = place.unwrap_or_default();
        lines.push(format!("by {who} of work-group ({x}, {y}, {z}), pc {pc:#x}{place}"));
        let source = image.source_lines(pc.saturating_sub(1)).into_iter().enumerate();
        lines.extend(source.map(|(depth, line)| format!("{}{line}", ["source: ", "inlined in "][depth.min(1)])));
        lines.extend(self.device.nearest_buffer(GpuVa(*address)).map(|known| beside(&known, *address)));
        lines.extend(
            self.at(*address).map(|value| format!("its shadow byte is {value:#04x}: {}", poison::describe(value))),
        );
        lines.join("\n  ")
    }
}

/// Where an address lies by a buffer.
fn beside(known: &Known, address: u64) -> String {
    let Known { range, bytes, purpose, .. } = known;
    let end = range.start + bytes;
    let what = format!(
        "{}{purpose}, {bytes} bytes at {:#x}",
        if known.freed.is_some() { "freed memory: " } else { "" },
        range.start
    );
    match (address.checked_sub(range.start), address.checked_sub(end)) {
        (None, _) => format!("it lies {} bytes before {what}", range.start - address),
        (_, Some(behind)) => format!("it lies {behind} bytes behind the end of {what}"),
        (Some(inside), None) => format!("it lies {inside} bytes inside {what}"),
    }
}

fn shadow_of(address: u64) -> u64 {
    (address >> SHIFT) + OFFSET
}

impl State {
    fn add(&mut self, device: &Arc<Device>, buffer: &Known) -> Result<(), Error> {
        let range = buffer.range.clone();
        self.cover(device, shadow_of(range.start)..shadow_of(range.end))?;
        let whole = shadow_of(range.start + buffer.bytes);
        self.fill(shadow_of(range.start)..whole, 0)?;
        self.fill(whole..shadow_of(range.end), poison::REDZONE)?;
        let rest = (buffer.bytes % (1 << SHIFT)) as u8;
        if rest != 0 {
            self.fill(whole..whole + 1, rest)?;
        }
        self.known.insert(buffer.number, range);
        Ok(())
    }

    /// Makes the shadow memory that is not there yet.
    fn cover(&mut self, device: &Arc<Device>, range: Range<u64>) -> Result<(), Error> {
        let end = range.end.next_multiple_of(CHUNK);
        let mut at = range.start & !(CHUNK - 1);
        while at < end {
            let before = self.pieces.range(..=at).next_back().map(|(start, piece)| start + piece.size());
            if let Some(next) = before.filter(|next| *next > at) {
                at = next;
                continue;
            }
            let next = self.pieces.range(at..end).next().map_or(end, |(start, _)| *start);
            let (va, bytes) = (GpuVa(at), next - at);
            let piece = Buffer::at(device, Kind::Control, va, bytes, PURPOSE).map_err(|error| Error::Shadow {
                va,
                bytes,
                error,
            })?;
            piece.fill(0, bytes, poison::REDZONE)?;
            self.pieces.insert(at, piece);
            at = next;
        }
        Ok(())
    }

    /// Sets shadow bytes, all of which are there.
    fn fill(&self, range: Range<u64>, value: u8) -> Result<(), Error> {
        let mut at = range.start;
        while at < range.end {
            let Some((start, piece)) = self.pieces.range(..=at).next_back() else { break };
            let end = range.end.min(start + piece.size());
            if end <= at {
                break;
            }
            piece.fill(at - start, end - at, value)?;
            // Behind writes over the bus a read returns last.
            piece.read_bytes(end - start - 1, &mut [0])?;
            at = end;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instrumented_images_are_known_by_their_code() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/programs/images");
        let (mut with, mut without) = (0, 0);
        for file in std::fs::read_dir(folder).unwrap().flatten() {
            let name = file.file_name().to_string_lossy().into_owned();
            let bytes = std::fs::read(file.path()).unwrap();
            let found = is_instrumented(&CodeObject::parse(&bytes).unwrap());
            assert_eq!(found, name.starts_with("asan"), "{name}");
            if found { with += 1 } else { without += 1 }
        }
        assert!(with >= 3 && without > 100, "{with} with, {without} without");
    }

    #[test]
    fn addresses_and_their_shadow() {
        for address in [0, 0x7f00_1234_5678, 0x7fff_ffff_fff8] {
            assert_eq!(shadowed(shadow_of(address)), Some(address));
        }
        assert_eq!((shadowed(0x7fff_7fff), shadowed(shadow_of(1 << 47))), (None, None));
        assert_eq!(poison::describe(3), "only the first 3 of 8 bytes are accessible");
    }
}

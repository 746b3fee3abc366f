//! A code object in device memory.

use crate::{Error, shadow};
use elf::{CodeObject, Kernel, RelocationKind, Value};
use kfd::{Buffer, Device, GpuVa, Kind};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use trace::Event;

/// A loaded code object. All its segments lie in one buffer, at the distances the file has: code reaches data relative to
/// itself.
#[derive(Debug)]
pub struct Image<'a> {
    code: CodeObject<'a>,
    buffer: Buffer,
    /// Image address of the buffer's first byte.
    first: u64,
    tail: Range<u64>,
    in_system_memory: bool,
    is_instrumented: bool,
}

/// Bytes behind the last segment that instruction prefetch may touch.
const PREFETCH: u64 = 256;

impl<'a> Image<'a> {
    /// Loads `code`: allocates device memory, copies the segments, zeroes the rest, relocates. `tail` more bytes are
    /// reserved behind the image, 64-byte aligned and zero ([`Image::tail_va`]). `bindings` are addresses for undefined
    /// symbols.
    pub fn load(
        device: &Arc<Device>,
        code: CodeObject<'a>,
        bindings: &HashMap<String, u64>,
        tail: u64,
    ) -> Result<Image<'a>, Error> {
        let is_undefined = |symbol: &elf::Symbol| matches!(symbol.place, elf::Place::Undefined);
        let asan = |symbol: &elf::Symbol| symbol.name.starts_with("__asan_") && is_undefined(symbol);
        if let Some(symbol) = code.symbols().iter().find(|symbol| asan(symbol)) {
            return Err(Error::AddressSanitizer { symbol: symbol.name.to_owned() });
        }
        let is_instrumented = shadow::is_instrumented(&code);
        let span = code.span();
        // The buffer is page aligned; segments want no more from lld.
        let first = span.start & !(kfd::PAGE_SIZE - 1);
        let length = span.end - first;
        let tail_start = (length + PREFETCH).next_multiple_of(64);
        let size = tail_start + tail;
        let (buffer, in_system_memory) = match Buffer::new(device, Kind::VramHostVisible, size, "image") {
            Ok(buffer) => (buffer, false),
            // Without a large BAR the host cannot write device memory; the GPU runs code from system memory as well.
            Err(kfd::Error::NoLargeBar { .. }) => (Buffer::new(device, Kind::Control, size, "image")?, true),
            Err(error) => return Err(error.into()),
        };
        let delta = buffer.va().0.wrapping_sub(first);

        let mut staging = vec![0u8; size as usize];
        for segment in code.segments() {
            let at = (segment.vaddr - first) as usize;
            if let Some(place) = staging.get_mut(at..at + segment.bytes.len()) {
                place.copy_from_slice(segment.bytes);
            }
            let va = segment.vaddr.wrapping_add(delta);
            let tracer = device.kfd().system().tracer();
            tracer.emit(|| Event::Segment { vaddr: segment.vaddr, va, len: segment.memsz });
        }
        let mut missing: Vec<(String, u64)> = Vec::new();
        for relocation in code.relocations() {
            let value = match relocation.value {
                Value::Image(vaddr) => vaddr.wrapping_add(delta),
                Value::Absolute(value) => value,
                Value::Undefined { name, addend, weak } => match bindings.get(name) {
                    Some(va) => va.wrapping_add_signed(addend),
                    None if weak => addend as u64,
                    // All of them are told at once, below.
                    None => {
                        if !missing.iter().any(|(other, _)| other == name) {
                            missing.push((name.to_owned(), relocation.vaddr));
                        }
                        continue;
                    }
                },
            };
            let bytes = match relocation.kind {
                RelocationKind::Abs64 | RelocationKind::Relative64 => value.to_le_bytes().to_vec(),
                RelocationKind::Abs32Lo => (value as u32).to_le_bytes().to_vec(),
                RelocationKind::Abs32Hi => ((value >> 32) as u32).to_le_bytes().to_vec(),
                RelocationKind::Abs32 => match u32::try_from(value) {
                    Ok(value) => value.to_le_bytes().to_vec(),
                    Err(_) => {
                        let (vaddr, kind) = (relocation.vaddr, relocation.kind.name());
                        return Err(Error::RelocationRange { vaddr, value, kind });
                    }
                },
            };
            let at = (relocation.vaddr - first) as usize;
            if let Some(place) = staging.get_mut(at..at + bytes.len()) {
                place.copy_from_slice(&bytes);
            }
        }
        if !missing.is_empty() {
            return Err(Error::UndefinedSymbols { symbols: missing });
        }
        buffer.write_bytes(0, &staging)?;
        let image = Image { code, buffer, first, tail: tail_start..size, in_system_memory, is_instrumented };
        image.flush()?;
        Ok(image)
    }

    /// Makes the host's writes visible to the device: a read of the last byte comes back over the bus behind them.
    fn flush(&self) -> Result<(), Error> {
        fence(Ordering::SeqCst);
        self.buffer.read_bytes(self.buffer.size() - 1, &mut [0])?;
        Ok(())
    }

    /// The code object.
    pub fn code(&self) -> &CodeObject<'a> {
        &self.code
    }

    /// The memory.
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// Whether it lies in system memory, for want of a large BAR: atomics of the GPU on it then cross the bus.
    pub fn in_system_memory(&self) -> bool {
        self.in_system_memory
    }

    /// Whether the address sanitizer has instrumented it, so that it needs shadow memory.
    pub fn is_instrumented(&self) -> bool {
        self.is_instrumented
    }

    /// Device address of an address of the image.
    pub fn va(&self, vaddr: u64) -> GpuVa {
        GpuVa(self.buffer.va().0.wrapping_add(vaddr.wrapping_sub(self.first)))
    }

    /// Image address of a device address, if it lies in the image.
    pub fn vaddr(&self, va: u64) -> Option<u64> {
        let offset = va.checked_sub(self.buffer.va().0)?;
        (offset < self.tail.start).then(|| self.first + offset)
    }

    /// Device address of the reserved bytes behind the image.
    pub fn tail_va(&self) -> GpuVa {
        GpuVa(self.buffer.va().0 + self.tail.start)
    }

    /// Offset in [`Image::buffer`] of the reserved bytes.
    pub fn tail_offset(&self) -> u64 {
        self.tail.start
    }

    /// A kernel by name, as [`crate::names::find`] does.
    pub fn kernel(&self, name: &str) -> Result<&Kernel<'a>, Error> {
        crate::names::find(&self.code, name)
    }

    /// Device address and size of a global variable.
    pub fn global(&self, name: &str) -> Option<(GpuVa, u64)> {
        let symbol = self.code.symbol(name)?;
        Some((self.va(symbol.vaddr()?), symbol.size))
    }

    /// Stores bytes at an address of the image.
    pub fn write(&self, vaddr: u64, bytes: &[u8]) -> Result<(), Error> {
        self.buffer.write_bytes(vaddr.wrapping_sub(self.first), bytes)?;
        self.flush()
    }

    /// Loads bytes from an address of the image.
    pub fn read(&self, vaddr: u64, bytes: &mut [u8]) -> Result<(), Error> {
        Ok(self.buffer.read_bytes(vaddr.wrapping_sub(self.first), bytes)?)
    }

    /// The function that holds a device address, with the distance from its start: `name+0x10`.
    pub fn describe(&self, va: u64) -> Option<String> {
        let vaddr = self.vaddr(va)?;
        let mut symbols = self.code.symbols().iter().filter_map(|symbol| Some((symbol, symbol.vaddr()?)));
        let holds = |start: u64, size: u64| start <= vaddr && vaddr - start < size.max(1);
        let (symbol, start) = symbols.rfind(|(symbol, start)| holds(*start, symbol.size))?;
        Some(format!("{}+{:#x}", symbol.name, vaddr - start))
    }

    /// The source lines of a device address, the innermost function first: `name at file.c:10:3`. Empty without debug
    /// information.
    pub fn source_lines(&self, va: u64) -> Vec<String> {
        self.vaddr(va).map(|vaddr| crate::source::lines(&self.code, vaddr)).unwrap_or_default()
    }
}

//! What can be told of a kernel that faulted or hangs.

use super::{Gpu, KERNARG};
use crate::Image;
use crate::shadow::shadowed;
use aql::Packet;
use elf::{Kernel, ValueKind};
use kfd::{Buffer, GpuVa, Known};
use trace::{Activity, Wave};

/// Kinds of waves that a report lists: same place, same activity.
const KINDS: usize = 12;
/// The first pages, where null pointers with an offset lead.
const NULL_PAGES: u64 = 16 * kfd::PAGE_SIZE;

impl Gpu {
    /// Where the instruction of a fault comes from.
    pub(super) fn place(&self, image: &Image, detail: &Option<Box<trace::Fault>>) -> Vec<String> {
        let Some(pc) = detail.as_ref().and_then(|detail| detail.pc) else { return Vec::new() };
        let place = image.describe(pc).map(|place| format!("in {place} of the image"));
        let lines = image.source_lines(pc).into_iter().enumerate();
        let source =
            lines.map(|(depth, line)| format!("{}{line}", if depth == 0 { "source: " } else { "inlined in " }));
        place.into_iter().chain(source).collect()
    }

    /// What lies around an address that a kernel should not have touched.
    pub(super) fn stray(&self, image: &Image, kernel: &Kernel, va: GpuVa) -> Vec<String> {
        if let Some(address) = shadowed(va.0).filter(|_| image.is_instrumented()) {
            let mut lines = vec![format!(
                "it is the address sanitizer's shadow of {address:#x}: the kernel is about to access that, and no buffer is near"
            )];
            lines.extend(self.around(kernel, GpuVa(address)));
            return lines;
        }
        self.around(kernel, va)
    }

    fn around(&self, kernel: &Kernel, va: GpuVa) -> Vec<String> {
        let near = self.device.nearest_buffer(va).filter(|_| va.0 >= NULL_PAGES);
        let around = near.as_ref().map(|known| {
            let Known { range, purpose, freed, .. } = known;
            let what = format!(
                "{}{purpose}, {:#x}..{:#x}",
                if *freed { "freed memory: " } else { "" },
                range.start,
                range.end
            );
            match known.distance(va) {
                0 => format!("it lies in {what}"),
                bytes if va.0 < range.start => format!("nearest memory: {what}, which begins {bytes} bytes above"),
                bytes => format!("nearest memory: {what}, whose last byte is {bytes} bytes below"),
            }
        });
        around.into_iter().chain(self.argument(kernel, va, near.as_ref())).collect()
    }

    /// The pointer argument of the running kernel that leads to an address: one into the same buffer, or a null one.
    fn argument(&self, kernel: &Kernel, va: GpuVa, near: Option<&Known>) -> Option<String> {
        let pointers = kernel.metadata.args.iter().enumerate().filter_map(|(index, arg)| {
            let mut bytes = [0; 8];
            let is_pointer = arg.value_kind == ValueKind::GlobalBuffer && arg.size == 8;
            self.control.read_bytes(KERNARG + u64::from(arg.offset), &mut bytes).ok().filter(|_| is_pointer)?;
            Some((index, arg.name.unwrap_or_default(), u64::from_le_bytes(bytes)))
        });
        let leads = |pointer: u64| match near {
            Some(known) => known.range.contains(&pointer) || pointer == known.range.end,
            None => pointer == 0,
        };
        let (index, name, pointer) =
            pointers.filter(|(.., pointer)| leads(*pointer)).min_by_key(|(.., pointer)| pointer.abs_diff(va.0))?;
        let name = if name.is_empty() { String::new() } else { format!(" '{name}'") };
        Some(match va.0.checked_sub(pointer) {
            _ if pointer == 0 => format!("argument {index}{name} is null"),
            Some(above) => format!("argument {index}{name} is {pointer:#x}: the address is {above:#x} bytes behind it"),
            None => {
                format!("argument {index}{name} is {pointer:#x}: the address is {:#x} bytes before it", pointer - va.0)
            }
        })
    }

    /// What the queue, its oldest packet, the events and the waves are at, line by line, for a kernel that does not end.
    pub fn report(&self, image: &Image, kernel: &str) -> Vec<String> {
        let queue = &self.queue;
        let (read, write) = (queue.read_index(), queue.write_index());
        let rung = queue.doorbell().last_rung();
        let mut lines = vec![format!(
            "queue {}: read_dispatch_id {read}, write_dispatch_id {write}, doorbell {}{}{}",
            queue.id().0,
            rung.map_or("never rung".to_owned(), |index| format!("rung with {index}")),
            nonzero(", queue_inactive_signal ", queue.inactive_value().unwrap_or_default() as u64),
            nonzero(", exceptions ", queue.exceptions().unwrap_or_default()),
        )];
        if rung.map_or(0, |index| index.wrapping_add(1)) < write {
            lines.push("the doorbell was not rung for the last packet: it takes write_dispatch_id - 1".to_owned());
        }
        if let Some(last) = write.checked_sub(1) {
            lines.extend(self.packet(read.min(last), kernel));
        }
        let events = [
            ("completion", &self.done),
            ("memory fault", &self.memory_fault),
            ("hardware exception", &self.hw_exception),
        ];
        let events = events.map(|(what, event)| format!("{what} id {} age {}", event.id().0, event.age()));
        lines.push(format!("events waited for: {}", events.join(", ")));
        match self.device.kfd().system().waves() {
            Some(waves) => lines.extend(self.waves(image, &waves)),
            None => lines.push(format!(
                "the waves of a GPU can be seen with a debugger: rocgdb -p {}, then `info threads`",
                std::process::id()
            )),
        }
        lines
    }

    fn packet(&self, index: u64, kernel: &str) -> Vec<String> {
        let Ok(bytes) = self.queue.slot(index) else { return Vec::new() };
        let header = u16::from_le_bytes([bytes[0], bytes[1]]);
        let what = match Packet::from_bytes(&bytes) {
            Ok(Packet::Invalid) if index < self.queue.read_index() => "taken from the ring".to_owned(),
            Ok(Packet::Invalid) => "INVALID: it was not published".to_owned(),
            Ok(packet) => {
                let fences = aql::Header::from_bits(header).fences();
                let barrier = if fences.barrier { ", barrier" } else { "" };
                let (acquire, release) = (fences.acquire.name(), fences.release.name());
                format!("{}{barrier}, acquire {acquire}, release {release}", packet.packet_type().name())
            }
            Err(error) => error.to_string(),
        };
        let mut lines = vec![format!("oldest packet {index}: header {header:#06x} ({what})")];
        match Packet::from_bytes(&bytes) {
            Ok(Packet::KernelDispatch(packet)) => {
                let [x, y, z] = packet.grid_size;
                let [a, b, c] = packet.workgroup_size;
                lines.push(format!(
                    "  kernel {kernel}, work-group ({a}, {b}, {c}), grid ({x}, {y}, {z}), kernel_object {:#x}, kernarg {:#x}",
                    packet.kernel_object, packet.kernarg_address
                ));
                lines.push(format!("  completion {}", self.signal_text(packet.completion_signal)));
            }
            Ok(Packet::BarrierAnd(packet)) => lines.extend(self.dependencies(&packet.dep_signals)),
            Ok(Packet::BarrierOr(packet)) => lines.extend(self.dependencies(&packet.dep_signals)),
            _ => {}
        }
        lines
    }

    fn dependencies(&self, signals: &[u64]) -> Vec<String> {
        let signals = signals.iter().filter(|signal| **signal != 0);
        signals.map(|signal| format!("  depends on {}", self.signal_text(*signal))).collect()
    }

    fn signal_text(&self, handle: u64) -> String {
        let at = GpuVa(handle.wrapping_add(aql::signal::VALUE as u64));
        match self.peek(&[&self.control], at) {
            Some(value) => format!("signal {handle:#x} is {}", value as i64),
            None => format!("signal {handle:#x}"),
        }
    }

    /// The doubleword at an address of one of these buffers.
    fn peek(&self, buffers: &[&Buffer], va: GpuVa) -> Option<u64> {
        let mut bytes = [0; 8];
        let buffer = buffers.iter().find(|buffer| buffer.contains(va, 8))?;
        buffer.read_bytes(va.0 - buffer.va().0, &mut bytes).ok()?;
        Some(u64::from_le_bytes(bytes))
    }

    fn waves(&self, image: &Image, waves: &[Wave]) -> Vec<String> {
        if waves.is_empty() {
            return vec!["no waves are resident".to_owned()];
        }
        // Waves at the same place doing the same are one line.
        let mut kinds: Vec<(&Wave, usize)> = Vec::new();
        for wave in waves {
            match kinds.iter_mut().find(|(first, _)| first.pc == wave.pc && first.activity == wave.activity) {
                Some((_, count)) => *count += 1,
                None => kinds.push((wave, 1)),
            }
        }
        let mut lines = vec![format!("waves resident: {}", waves.len())];
        for (wave, count) in kinds.iter().take(KINDS) {
            let [x, y, z] = wave.workgroup;
            let more = if *count > 1 { format!(" and {} more", count - 1) } else { String::new() };
            lines.push(format!("  work-group ({x}, {y}, {z}) wave {}{more}: {}", wave.wave, wave.activity.name()));
            if wave.activity != Activity::Ended {
                let place = image.describe(wave.pc).map_or(String::new(), |place| format!(" in {place}"));
                let instruction = wave.instruction.as_ref().map_or(String::new(), |text| format!(": {text}"));
                lines.push(format!("    next pc {:#x}{place}{instruction}; EXEC {:#x}", wave.pc, wave.exec));
            }
            lines.extend(image.source_lines(wave.pc).first().map(|line| format!("    source: {line}")));
            lines.extend(wave.touched.map(|va| format!("    last touched {}", self.memory_text(image, GpuVa(va)))));
        }
        if kinds.len() > KINDS {
            lines.push(format!("  and {} other places", kinds.len() - KINDS));
        }
        lines
    }

    fn memory_text(&self, image: &Image, va: GpuVa) -> String {
        let known = self.device.nearest_buffer(va).filter(|known| known.distance(va) == 0);
        let what = known.map_or(String::new(), |known| format!(" in {}", known.purpose));
        let value = self.peek(&[image.buffer(), &self.control], va);
        let value = value.map_or(String::new(), |value| format!(", which holds {:#x} now", value as u32));
        format!("{va}{what}{value}")
    }
}

fn nonzero(what: &str, value: u64) -> String {
    if value == 0 { String::new() } else { format!("{what}{value:#x}") }
}

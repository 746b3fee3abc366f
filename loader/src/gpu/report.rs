//! What can be told of a kernel that faulted or hangs.

use super::{Gpu, KERNARG};
use crate::Image;
use crate::shadow::shadowed;
use elf::{Kernel, ValueKind};
use kfd::{GpuVa, Known};
use std::cmp::Ordering;
use std::sync::atomic;
use trace::{Activity, Wave};

/// Kinds of waves that a report lists: same place, same activity.
const KINDS: usize = 12;
/// The first pages, where null pointers with an offset lead.
pub(super) const NULL_PAGES: u64 = 16 * kfd::PAGE_SIZE;

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
        let around = near.as_ref().map(|known| self.near(known, va));
        around.into_iter().chain(self.argument(kernel, va, near.as_ref())).collect()
    }

    fn near(&self, known: &Known, va: GpuVa) -> String {
        let Known { range, purpose, gpu, freed, .. } = known;
        let what = format!("{purpose}, {:#x}..{:#x}", range.start, range.end);
        let freed = freed.map(|freed| format!("was freed {:.1} ms ago", freed.elapsed().as_secs_f64() * 1e3));
        let bytes = |count| if count == 1 { "1 byte".to_owned() } else { format!("{count} bytes") };
        match (known.distance(va), freed) {
            (0, Some(freed)) => format!("it lies in memory that {freed}: {what}"),
            (0, None) if *gpu != self.device.gpu_id() => {
                format!("it lies in {what}, which is mapped on gpu_id {gpu} and not on this GPU")
            }
            (0, None) if !known.is_writable() => format!("it lies in {what}, which the GPU may only read"),
            (0, None) => format!("it lies in {what}"),
            (distance, freed) => {
                let freed = freed.map_or(String::new(), |freed| format!(" (which {freed})"));
                let distance = if va.0 < range.start {
                    format!("which begins {} above", bytes(distance))
                } else {
                    format!("whose last byte is {} below", bytes(distance))
                };
                format!("no buffer is there, nor was one lately; nearest memory: {what}{freed}, {distance}")
            }
        }
    }

    /// The packet that runs, for this queue has one at a time.
    pub(super) fn last_packet(&self, image: &Image) -> Vec<String> {
        let Some(index) = self.queue.write_index().checked_sub(1) else { return Vec::new() };
        let mut lines = self.queue.packet(index, &|object| named(image, object)).into_iter();
        let first = lines.next().map(|first| {
            let (queue, read, write) = (self.queue.id(), self.queue.read_index(), self.queue.write_index());
            format!("packet {index} of queue {queue} (read_dispatch_id {read}, write_dispatch_id {write}): {first}")
        });
        first.into_iter().chain(lines).chain([format!("  {}", self.queue.neighbours(index))]).collect()
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
            Some(above) => {
                format!("argument {index}{name} is {pointer:#x}: the address is {above:#x} bytes past its start")
            }
            None => {
                format!(
                    "argument {index}{name} is {pointer:#x}: the address is {:#x} bytes before its start",
                    pointer - va.0
                )
            }
        })
    }

    /// What the queue, its oldest packet, the events and the waves are at, line by line, for a kernel that does not end.
    pub fn report(&self, image: &Image) -> Vec<String> {
        let mut lines = self.bisect();
        lines.extend(self.queue.report(&|object| named(image, object)));
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

    /// Who did not do what: the signal, the event and the read index against what they were at the doorbell.
    fn bisect(&self) -> Vec<String> {
        let Ok(value) = self.signal().map(|signal| signal.load(atomic::Ordering::Acquire)) else { return Vec::new() };
        let (age, read) = (self.done.age(), self.queue.read_index());
        let moved = |what: &str, now: u64, before: u64| match now.cmp(&before) {
            Ordering::Less => {
                format!("{what}: no, it is {now}, and {before} when the interrupts of earlier kernels have come")
            }
            Ordering::Equal => format!("{what}: no, it is {now} as it was at the doorbell"),
            Ordering::Greater => format!("{what}: yes, from {before} to {now}"),
        };
        let waves = self.device.kfd().system().waves();
        let current = self.queue.write_index().wrapping_sub(1);
        let runs = waves.is_some_and(|waves| waves.iter().any(|wave| wave.index == current));
        let verdict = match (value, age > self.before.age, read != self.before.read) {
            (0, false, _) => "the kernel has completed, and its interrupt was lost",
            (0, true, _) => "the kernel has just completed",
            (_, true, _) => "the event was set and the signal was not: something else sets the same event",
            _ if runs => "the packet was taken and its kernel has not ended: look at the waves",
            (_, false, true) => "the packet was taken and its kernel has not ended: look at the waves",
            (_, false, false) => {
                "the packet was not taken, or its kernel has not ended: look at the doorbell, the header and the waves"
            }
        };
        vec![
            match value {
                0 => "signal satisfied: yes, it is 0".to_owned(),
                value => format!("signal satisfied: no, it is {value}"),
            },
            moved("completion event's age moved", age, self.before.age),
            moved("read_dispatch_id moved", read, self.before.read),
            format!("so {verdict}"),
        ]
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
            lines.extend(wave.touched.map(|va| format!("    last touched {}", self.memory_text(GpuVa(va)))));
        }
        if kinds.len() > KINDS {
            lines.push(format!("  and {} other places", kinds.len() - KINDS));
        }
        lines
    }

    fn memory_text(&self, va: GpuVa) -> String {
        let known = self.device.nearest_buffer(va).filter(|known| known.distance(va) == 0);
        let what = known.map_or(String::new(), |known| format!(" in {}", known.purpose));
        // The word at the address: half of a double word.
        let value = self.device.kfd().peek(GpuVa(va.0 & !7)).map(|value| (value >> (va.0 % 8 / 4 * 32)) as u32);
        let value = value.map_or(String::new(), |value| format!(", which holds {value:#x} now"));
        format!("{va}{what}{value}")
    }
}

/// The kernel of a descriptor address.
fn named(image: &Image, kernel_object: u64) -> Option<String> {
    let vaddr = image.vaddr(kernel_object)?;
    let kernel = image.code().kernels().iter().find(|kernel| kernel.descriptor_vaddr == vaddr)?;
    Some(kernel.name().to_owned())
}

//! What a queue is at, in words, for whoever waits for it.

use super::Queue;
use crate::types::GpuVa;
use aql::signal::SignalKind;
use aql::{Header, Packet};

/// Packets on each side of one that are told of.
const NEIGHBOURS: u64 = 4;

impl Queue {
    /// Both indices, the doorbell, what the packet processor and the kernel say of the queue, and the oldest packet that
    /// is not complete with what it waits for, line by line. `kernel` names the kernel of a descriptor address.
    pub fn report(&self, kernel: &dyn Fn(u64) -> Option<String>) -> Vec<String> {
        let (read, write) = (self.read_index(), self.write_index());
        let rung = self.doorbell().last_rung();
        let mut lines = vec![format!(
            "queue {}: read_dispatch_id {read}, write_dispatch_id {write}, doorbell {}{}{}",
            self.id().0,
            rung.map_or("never rung".to_owned(), |index| format!("rung with {index}")),
            nonzero(", queue_inactive_signal ", self.inactive_value().unwrap_or_default() as u64),
            nonzero(", exceptions ", self.exceptions().unwrap_or_default()),
        )];
        if rung.map_or(0, |index| index.wrapping_add(1)) < write {
            lines.push("the doorbell was not rung for the last packet: it takes write_dispatch_id - 1".to_owned());
        }
        if let Some(last) = write.checked_sub(1) {
            let index = read.min(last);
            lines.extend(prefixed(&format!("oldest packet {index}: "), self.packet(index, kernel)));
        }
        lines
    }

    /// A packet as it lies in its slot now: its header, its bytes, its fields, and the values of its signals.
    pub fn packet(&self, index: u64, kernel: &dyn Fn(u64) -> Option<String>) -> Vec<String> {
        let Ok(bytes) = self.slot(index) else { return Vec::new() };
        let packet = Packet::from_bytes(&bytes);
        let mut lines = vec![format!("header {}", self.header(index, &bytes))];
        lines.extend(bytes.chunks(32).map(|row| {
            let row: Vec<String> = row.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("  {}", row.join(" "))
        }));
        let Ok(packet) = packet else { return lines };
        match &packet {
            Packet::Invalid => return lines,
            Packet::KernelDispatch(packet) => {
                let [x, y, z] = packet.grid_size;
                let [a, b, c] = packet.workgroup_size;
                let name = kernel(packet.kernel_object).map_or(String::new(), |name| format!("kernel {name}, "));
                lines.push(format!(
                    "  {name}dimensions {}: work-group ({a}, {b}, {c}), grid ({x}, {y}, {z}); scratch {} bytes a \
                     work-item, LDS {} bytes",
                    packet.dims, packet.private_segment_size, packet.group_segment_size
                ));
                lines.push(format!(
                    "  kernel_object {:#x}, kernarg {:#x}",
                    packet.kernel_object, packet.kernarg_address
                ));
            }
            Packet::BarrierAnd(packet) => lines.extend(self.dependencies(&packet.dep_signals, "all of these are 0")),
            Packet::BarrierOr(packet) => lines.extend(self.dependencies(&packet.dep_signals, "one of these is 0")),
            Packet::BarrierValue(packet) => lines.push(format!(
                "  waits until (value & {:#x}) {} {} of {}",
                packet.mask,
                packet.condition.symbol(),
                packet.value,
                self.signal(packet.signal)
            )),
            Packet::Pm4Ib(packet) => {
                lines.push(format!("  {} dwords of PM4 commands at {:#x}", packet.dwords(), packet.address()));
            }
            Packet::AgentDispatch(packet) => lines.push(format!("  function {}", packet.function)),
        }
        if packet.completion_signal() != 0 {
            lines.push(format!("  completion {}", self.signal(packet.completion_signal())));
        }
        lines
    }

    /// The headers of the packets around one.
    pub fn neighbours(&self, index: u64) -> String {
        let packets = u64::from(self.ring.packets());
        let from = index.saturating_sub(NEIGHBOURS.min(packets / 2));
        let to = index.saturating_add(NEIGHBOURS.min(packets / 2)).min(self.write_index().max(index));
        let around = (from..=to).filter(|other| *other != index);
        let around: Vec<String> = around
            .filter_map(|other| Some(format!("{other}: {}", self.header(other, &self.slot(other).ok()?))))
            .collect();
        if around.is_empty() { "no packets around it".to_owned() } else { format!("around it: {}", around.join("; ")) }
    }

    fn header(&self, index: u64, bytes: &[u8; 64]) -> String {
        let header = u16::from_le_bytes([bytes[0], bytes[1]]);
        let what = match Packet::from_bytes(bytes) {
            Ok(Packet::Invalid) if index < self.read_index() => "taken from the ring".to_owned(),
            Ok(Packet::Invalid) if index >= self.write_index() => "INVALID: no packet yet".to_owned(),
            Ok(Packet::Invalid) => "INVALID: it was not published".to_owned(),
            Ok(packet) => {
                let fences = Header::from_bits(header).fences();
                let barrier = if fences.barrier { ", barrier" } else { "" };
                let (acquire, release) = (fences.acquire.name(), fences.release.name());
                format!("{}{barrier}, acquire {acquire}, release {release}", packet.packet_type().name())
            }
            Err(error) => error.to_string(),
        };
        format!("{header:#06x} ({what})")
    }

    fn dependencies(&self, signals: &[u64], how_many: &str) -> Vec<String> {
        let used: Vec<(usize, u64)> = signals.iter().copied().enumerate().filter(|(_, signal)| *signal != 0).collect();
        if used.is_empty() {
            return vec!["  waits for no signal".to_owned()];
        }
        let lines = used.iter().map(|(i, handle)| {
            let verdict = match self.signal_value(*handle) {
                Some(0) => ": satisfied",
                Some(_) => ": NOT satisfied, somebody has to make it 0",
                None => "",
            };
            format!("  dep_signal[{i}]: {}{verdict}", self.signal(*handle))
        });
        std::iter::once(format!("  waits until {how_many}:")).chain(lines).collect()
    }

    /// The value of a signal that has one and can be looked at.
    fn signal_value(&self, handle: u64) -> Option<i64> {
        let kfd = self.device.kfd();
        let kind = kfd.peek(GpuVa(handle))?;
        let value = kfd.peek(GpuVa(handle.checked_add(aql::signal::VALUE as u64)?))?;
        (kind == SignalKind::User as u64).then_some(value as i64)
    }

    fn signal(&self, handle: u64) -> String {
        if let Some(value) = self.signal_value(handle) {
            return format!("signal {handle:#x} is {value}");
        }
        let va = GpuVa(handle);
        let why = match (self.device.kfd().peek(va), self.device.nearest_buffer(va)) {
            (Some(kind), _) => match SignalKind::from_raw(kind as i64) {
                Some(SignalKind::Doorbell | SignalKind::LegacyDoorbell) => {
                    format!("a doorbell's (kind {}), which has no value to wait for", kind as i64)
                }
                _ => format!("of kind {}: not a signal with a value", kind as i64),
            },
            (None, Some(known)) if known.distance(va) > 0 => "outside every buffer of this process".to_owned(),
            (None, Some(known)) if known.freed.is_some() => format!("in memory that was freed ({})", known.purpose),
            (None, Some(known)) => format!("which the host cannot look at ({})", known.purpose),
            (None, None) => "outside every buffer of this process".to_owned(),
        };
        format!("signal {handle:#x}, {why}")
    }
}

/// `text` in front of the first line.
fn prefixed(text: &str, lines: Vec<String>) -> Vec<String> {
    let mut lines = lines.into_iter();
    lines.next().map(|first| format!("{text}{first}")).into_iter().chain(lines).collect()
}

fn nonzero(what: &str, value: u64) -> String {
    if value == 0 { String::new() } else { format!("{what}{value:#x}") }
}

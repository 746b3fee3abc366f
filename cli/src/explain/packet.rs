//! AQL packets, their header, and signals, from their bytes.

use super::input::Number;
use super::{Reading, row};
use aql::signal::SignalKind;
use aql::{AmdSignal, FenceScope, Header, Packet, PacketType};

/// The first 16 bits of a packet.
pub fn header_word(number: Number) -> Option<Reading> {
    let bits = u16::try_from(number.word()?).ok()?;
    let header = Header::from_bits(bits);
    let packet_type = PacketType::from_raw(header.packet_type())?;
    if header.reserved() != 0 {
        return None;
    }
    let fences = bits >> 8 != 0;
    let sound = header.acquire() != FenceScope::Reserved && header.release() != FenceScope::Reserved;
    let likely = match packet_type {
        // A vendor packet's type is 0, so any multiple of 256 would do.
        PacketType::VendorSpecific | PacketType::Invalid => 5,
        _ if fences && sound => number.likely(94, 20),
        _ => 6,
    };
    let title = format!("AQL header {bits:#06x}: {}", summary(header, packet_type));
    Some(Reading::new("header", likely, title).section("", header_rows(header)))
}

fn summary(header: Header, packet_type: PacketType) -> String {
    let barrier = if header.barrier() { ", barrier" } else { "" };
    let (acquire, release) = (header.acquire().name(), header.release().name());
    format!("{}{barrier}, acquire {acquire}, release {release}", packet_type.name())
}

fn header_rows(header: Header) -> Vec<[String; 3]> {
    let raw = header.packet_type();
    let name = PacketType::from_raw(raw).map_or("not defined: 0 to 5 are", PacketType::name);
    let scope = |scope: FenceScope| match scope {
        FenceScope::None => "no fence",
        FenceScope::Agent => "memory of this GPU is made consistent",
        FenceScope::System => "memory of the host and of every GPU is made consistent",
        FenceScope::Reserved => "WRONG: 3 is reserved",
    };
    let barrier = match header.barrier() {
        true => "waits until all earlier packets of the queue have completed",
        false => "may start before earlier packets have completed",
    };
    let reserved = if header.reserved() == 0 { "" } else { "WRONG: must be 0" };
    vec![
        row("type (bits 0-7)", raw.to_string(), name),
        row("barrier (bit 8)", u8::from(header.barrier()).to_string(), barrier),
        row("acquire (bits 9-10)", (header.acquire() as u8).to_string(), scope(header.acquire())),
        row("release (bits 11-12)", (header.release() as u8).to_string(), scope(header.release())),
        row("reserved (bits 13-15)", header.reserved().to_string(), reserved),
    ]
}

/// 64 bytes: a packet, or a signal.
pub fn bytes(bytes: &[u8; 64]) -> Vec<Reading> {
    let kind = AmdSignal::from_bytes(bytes).ok().map(|signal| signal.kind);
    let looks_like_signal = kind.is_some_and(|kind| kind != SignalKind::Invalid);
    let mut readings = vec![packet(bytes, if looks_like_signal { 40 } else { 90 })];
    readings.push(signal(bytes, if looks_like_signal { 90 } else { 10 }));
    readings
}

fn packet(bytes: &[u8; 64], likely: u8) -> Reading {
    let header = Header::from_bits(u16::from_le_bytes([bytes[0], bytes[1]]));
    let bits = header.into_bits();
    let title = match PacketType::from_raw(header.packet_type()) {
        Some(packet_type) => format!("AQL packet: {}", summary(header, packet_type)),
        None => format!("AQL packet of type {}, which is not defined", header.packet_type()),
    };
    let mut reading = Reading::new("packet", likely, title);
    reading = reading.section(&format!("Header {bits:#06x}"), header_rows(header));
    let mut verdicts = Vec::new();
    match Packet::from_bytes(bytes) {
        Ok(packet) => {
            let rows = fields(&packet, &mut verdicts);
            reading = reading.section("Fields", rows);
            if let Err(error) = Packet::from_bytes_strict(bytes) {
                verdicts.push(format!("{error}."));
            }
        }
        Err(error) => verdicts.push(format!("The packet processor stops the queue here: {error}.")),
    }
    if verdicts.is_empty() {
        return reading.note("Nothing is wrong with it as far as 64 bytes tell.");
    }
    for verdict in verdicts {
        reading = reading.note(format!("WRONG: {verdict}"));
    }
    reading
}

fn fields(packet: &Packet, wrong: &mut Vec<String>) -> Vec<[String; 3]> {
    let mut rows = match packet {
        Packet::Invalid => {
            return vec![row(
                "",
                "",
                "the slot holds no packet: the packet processor waits here until the header changes",
            )];
        }
        Packet::KernelDispatch(p) => {
            dispatch_verdicts(p, wrong);
            let xyz = |sizes: [u32; 3]| sizes.map(|size| size.to_string()).join(" x ");
            let groups = std::array::from_fn::<String, 3, _>(|i| {
                let size = u32::from(p.workgroup_size[i]);
                p.grid_size[i].checked_next_multiple_of(size).map_or("?".to_owned(), |grid| (grid / size).to_string())
            });
            vec![
                row("+2  setup", p.dims.to_string(), "dimensions of the grid"),
                row("+4  workgroup_size", xyz(p.workgroup_size.map(u32::from)), "work-items of a work-group"),
                row("+12 grid_size", xyz(p.grid_size), format!("work-items: {} work-groups", groups.join(" x "))),
                row("+24 private_segment_size", p.private_segment_size.to_string(), "bytes of scratch of a work-item"),
                row("+28 group_segment_size", p.group_segment_size.to_string(), "bytes of LDS of a work-group"),
                row("+32 kernel_object", hex(p.kernel_object), "address of the kernel descriptor"),
                row("+40 kernarg_address", hex(p.kernarg_address), "address of the kernel's arguments"),
            ]
        }
        Packet::BarrierAnd(p) => barrier(&p.dep_signals, "counts as satisfied"),
        Packet::BarrierOr(p) => barrier(&p.dep_signals, "counts as not satisfied"),
        Packet::AgentDispatch(_) => {
            wrong.push("GPU queues take no agent dispatch packets.".to_owned());
            vec![]
        }
        Packet::Pm4Ib(p) => vec![
            row("+2  format", "1", "PM4 indirect buffer"),
            row("+4  jump", hex(p.address()), format!("{} dwords of PM4 commands there", p.dwords())),
        ],
        Packet::BarrierValue(p) => {
            let condition = p.condition.symbol();
            vec![
                row("+2  format", "2", "barrier value"),
                row("+8  signal", hex(p.signal), "address of the amd_signal_t to look at; 0 counts as satisfied"),
                row("+16 value", p.value.to_string(), format!("waits until (signal & mask) {condition} value")),
                row("+24 mask", hex(p.mask.cast_unsigned()), ""),
                row("+32 condition", (p.condition as u32).to_string(), condition),
            ]
        }
    };
    let signal = packet.completion_signal();
    let meaning = match signal {
        0 => "none: nothing tells when it has completed",
        _ => "address of the amd_signal_t that 1 is subtracted from at the end",
    };
    rows.push(row("+56 completion_signal", hex(signal), meaning));
    if !signal.is_multiple_of(8) {
        wrong.push(format!("completion_signal {signal:#x} is not 8-byte aligned."));
    }
    rows
}

/// What the packet processor, or the kernel, would stumble over.
fn dispatch_verdicts(p: &aql::KernelDispatch, wrong: &mut Vec<String>) {
    if p.dims == 0 {
        wrong.push("setup has 0 dimensions, must be 1 to 3 (inactive 0x2).".to_owned());
    }
    for (i, axis) in ["x", "y", "z"].into_iter().enumerate() {
        if p.workgroup_size[i] == 0 {
            wrong.push(format!("workgroup_size.{axis} is 0 (inactive 0x2)."));
        }
        if p.grid_size[i] == 0 {
            wrong.push(format!("grid_size.{axis} is 0 (inactive 0x2)."));
        }
        if (1..=i).contains(&usize::from(p.dims)) && (p.workgroup_size[i] > 1 || p.grid_size[i] > 1) {
            wrong.push(format!("{axis} is not 1, but the grid has {} dimensions.", p.dims));
        }
    }
    let items: u64 = p.workgroup_size.iter().map(|size| u64::from(*size)).product();
    if items > 1024 {
        wrong.push(format!("a work-group has {items} work-items, 1024 are the most (inactive 0x40)."));
    }
    if p.group_segment_size > 160 * 1024 {
        wrong.push(format!("group_segment_size is {} bytes, more LDS than any GPU has.", p.group_segment_size));
    }
    if p.kernel_object == 0 {
        wrong.push("kernel_object is null (inactive 0x8).".to_owned());
    } else if !p.kernel_object.is_multiple_of(64) {
        wrong.push(format!("kernel_object {:#x} is not 64-byte aligned, as descriptors are.", p.kernel_object));
    }
    if !p.kernarg_address.is_multiple_of(16) {
        wrong.push(format!("kernarg_address {:#x} is not 16-byte aligned.", p.kernarg_address));
    }
}

fn barrier(signals: &[u64; 5], unused: &str) -> Vec<[String; 3]> {
    let row_of = |(i, signal): (usize, &u64)| {
        let meaning = match signal {
            0 => format!("unused: {unused}"),
            _ => "address of an amd_signal_t whose value has to become 0".to_owned(),
        };
        row(format!("+{:<2} dep_signal[{i}]", 8 + 8 * i), hex(*signal), meaning)
    };
    signals.iter().enumerate().map(row_of).collect()
}

fn signal(bytes: &[u8; 64], likely: u8) -> Reading {
    let signal = match AmdSignal::from_bytes(bytes) {
        Ok(signal) => signal,
        Err(kind) => {
            let title = format!("amd_signal_t of kind {kind}, which is not defined");
            return Reading::new("signal", likely, title)
                .note("1 (user), -1, -2 (doorbells) and 0 (none) are defined.");
        }
    };
    let (kind, value, meaning) = match signal.kind {
        SignalKind::Invalid => ("not a signal", signal.value.to_string(), String::new()),
        SignalKind::User => ("a value in memory", signal.value.to_string(), value_meaning(signal.value)),
        SignalKind::Doorbell => {
            ("a 64-bit doorbell", hex(signal.value.cast_unsigned()), "address of the doorbell, not a value".to_owned())
        }
        SignalKind::LegacyDoorbell => {
            ("a 32-bit doorbell", hex(signal.value.cast_unsigned()), "address of the doorbell, not a value".to_owned())
        }
    };
    let mailbox = match signal.event_mailbox_ptr {
        0 => "none: no interrupt, a waiter has to look at the value",
        _ => "slot of the event page that event_id is stored to",
    };
    let mut rows = vec![
        row("+0  kind", (signal.kind as i64).to_string(), kind),
        row("+8  value", value, meaning),
        row("+16 event_mailbox_ptr", hex(signal.event_mailbox_ptr), mailbox),
        row("+24 event_id", signal.event_id.to_string(), "KFD event that wakes the waiter"),
        row("+32 start_ts", signal.start_ts.to_string(), "GPU ticks when the packet became active"),
        row("+40 end_ts", signal.end_ts.to_string(), end_meaning(&signal)),
    ];
    if signal.queue_ptr != 0 || matches!(signal.kind, SignalKind::Doorbell | SignalKind::LegacyDoorbell) {
        rows.push(row("+48 queue_ptr", hex(signal.queue_ptr), "amd_queue_t of a doorbell"));
    }
    let reading = Reading::new("signal", likely, format!("amd_signal_t: {kind}")).section("", rows);
    if signal.to_bytes() == *bytes { reading } else { reading.note("WRONG: reserved bytes are not 0.") }
}

fn value_meaning(value: i64) -> String {
    match value {
        0 => "satisfied: what a barrier packet waits for".to_owned(),
        1.. => format!("{value} completions are still to come, if it counts them"),
        _ => "below 0: more packets completed than were counted".to_owned(),
    }
}

fn end_meaning(signal: &AmdSignal) -> String {
    match signal.end_ts.checked_sub(signal.start_ts) {
        Some(0) if signal.end_ts == 0 => {
            "no timestamps: the queue has no profiling, or nothing has completed".to_owned()
        }
        Some(ticks) => format!("GPU ticks when it completed: {ticks} later"),
        None => "GPU ticks when it completed; before it started, so one of them is stale".to_owned(),
    }
}

fn hex(value: u64) -> String {
    format!("{value:#x}")
}

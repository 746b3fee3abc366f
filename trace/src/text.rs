//! One line an event.

use crate::{Event, Field, Format, Record, Sink};
use std::fmt::Write as _;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

/// Writes one line an event.
pub struct TextSink<W: Write + Send>(Mutex<W>);

impl<W: Write + Send> TextSink<W> {
    /// A sink over `out`.
    pub fn new(out: W) -> TextSink<W> {
        TextSink(Mutex::new(out))
    }
}

impl<W: Write + Send> Sink for TextSink<W> {
    fn record(&self, record: &Record) {
        let text = format!("{:>11.6} {}\n", record.at.as_secs_f64(), line(&record.event));
        let mut out = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A trace that cannot be written must not stop the program it observes.
        let _ = out.write_all(text.as_bytes());
    }
}

fn result<T: std::fmt::Display>(result: &Result<T, i32>) -> String {
    match result {
        Ok(value) => format!("= {value}"),
        Err(errno) => format!("= -1 errno {errno} ({})", std::io::Error::from_raw_os_error(*errno)),
    }
}

fn field(field: &Field) -> String {
    match field.format {
        Format::Hex => format!("{}={:#x}", field.name, field.value),
        Format::Dec => format!("{}={}", field.name, field.value),
    }
}

/// The text of one event, without time and newline.
pub fn line(event: &Event) -> String {
    match event {
        Event::Open { path, result: r } => format!("open      {path} {}", result(r)),
        Event::Close { fd } => format!("close     fd {fd}"),
        Event::Sysfs { path, result: r } => format!("sysfs     {path} {}", result(r)),
        Event::Ioctl { name, request, fields, result: r } => {
            let fields: Vec<String> = fields.iter().map(field).collect();
            format!("ioctl     {name} ({request:#010x}) {{{}}} {}", fields.join(", "), result(r))
        }
        Event::Mmap { purpose, va, len, fd, offset, errno } => {
            let mut text = format!("mmap      {purpose} {va:#x}..{:#x} ({len} bytes)", va.wrapping_add(*len));
            if let Some(fd) = fd {
                let _ = write!(text, " fd {fd} offset {offset:#x}");
            }
            if *errno != 0 {
                let _ = write!(text, " {}", result(&Err::<i32, _>(*errno)));
            }
            text
        }
        Event::Munmap { va, len } => format!("munmap    {va:#x}..{:#x}", va.wrapping_add(*len)),
        Event::Segment { vaddr, va, len } => format!("segment   image {vaddr:#x} at {va:#x} ({len} bytes)"),
        Event::Reserve { queue_id, index } => format!("reserve   queue {queue_id} packet {index}"),
        Event::Publish { queue_id, index, packet, label } => {
            let word = u32::from_le_bytes([packet[0], packet[1], packet[2], packet[3]]);
            format!(
                "publish   queue {queue_id} packet {index} header {:#06x} setup {} {label}",
                word & 0xffff,
                word >> 16
            )
        }
        Event::Doorbell { queue_id, value } => format!("doorbell  queue {queue_id} value {value}"),
        Event::Fetch { queue_id, index, header } => {
            format!("fetch     queue {queue_id} packet {index} header {header:#06x}")
        }
        Event::Dispatch { queue_id, index, kernel_object, workgroups: [x, y, z], wave_size } => format!(
            "dispatch  queue {queue_id} packet {index} kernel object {kernel_object:#x} work-groups {x}x{y}x{z} wave{wave_size}"
        ),
        Event::Complete { queue_id, index, instructions, waves } => {
            format!("complete  queue {queue_id} packet {index} {waves} waves {instructions} instructions")
        }
        Event::Signal { va, old, new, by } => format!("signal    {va:#x} {old} -> {new} ({by})"),
        Event::Fault(fault) => {
            let mut text = format!("fault     queue {} {:?}", fault.queue_id, fault.kind);
            if let Some(va) = fault.va {
                let _ = write!(text, " address {va:#x}");
            }
            if let Some(pc) = fault.pc {
                let _ = write!(text, " pc {pc:#x}");
            }
            if let Some(instruction) = &fault.instruction {
                let _ = write!(text, " `{instruction}`");
            }
            text
        }
        Event::Lint { queue_id, rule, text } => format!("lint      queue {queue_id}: {rule}: {text}"),
        Event::Note { text } => format!("note      {text}"),
    }
}

//! Requests of the KFD.

use super::input::Number;
use super::{Reading, errno, row};
use kfd::uapi::{Direction, IOCTLS, IoctlInfo};

/// The request with this name: any case, with or without `AMDKFD_IOC_`.
pub fn find(name: &str) -> Option<&'static IoctlInfo> {
    let upper = name.to_ascii_uppercase();
    let name = upper.strip_prefix("AMDKFD_IOC_").unwrap_or(&upper);
    let same = |info: &&IoctlInfo| info.name == name || info.name.strip_suffix("_DEPRECATED") == Some(name);
    IOCTLS.iter().find(same)
}

/// A request by its name.
pub fn name(name: &str) -> Option<Reading> {
    find(name).map(|info| reading(info, 100))
}

/// A request number, or the number in its lowest byte.
pub fn number(number: Number) -> Option<Reading> {
    let request = number.word()?;
    if request < 0x100 {
        let info = IoctlInfo::of(request).filter(|info| u32::from(info.nr) == request)?;
        return Some(reading(info, number.likely(20, 5)));
    }
    if request >> 8 & 0xff != u32::from(b'K') {
        return None;
    }
    let Some(info) = IoctlInfo::of(request) else {
        let title = format!("ioctl request {request:#010x}: number {:#x} is none of the KFD's", request & 0xff);
        let note =
            "The kernel answers ENOTTY. Numbers from 0x80 on are requests that only AMD's out-of-tree driver has.";
        return Some(Reading::new("ioctl", 60, title).note(note));
    };
    if request == info.request {
        return Some(reading(info, 100));
    }
    let (is, should) = (IoctlInfo::size_of_request(request), info.layout.map_or(0, |layout| layout.size));
    let mut reading = reading(info, if is == should { 85 } else { 75 });
    reading.title = format!("ioctl request {request:#010x}: {}, usually {:#010x}", info.name, info.request);
    Some(reading.note(format!(
        "Its size field says {is} bytes where the structure of interface 1.{} has {should}: the kernel copies as many as \
         the caller says and takes what is missing as 0. Direction bits do not matter to it.",
        kfd::uapi::MINOR_VERSION
    )))
}

fn reading(info: &IoctlInfo, likely: u8) -> Reading {
    let direction = match info.direction {
        Direction::None => "no argument",
        Direction::Write => "the kernel reads the argument",
        Direction::Read => "the kernel writes the argument",
        Direction::ReadWrite => "the kernel reads and writes the argument",
    };
    let mut reading = Reading::new("ioctl", likely, format!("ioctl {} ({:#010x})", info.name, info.request));
    let since = match info.since {
        1 => "every interface 1.x has it".to_owned(),
        minor => format!("since interface 1.{minor}"),
    };
    reading = reading.section("", vec![row("number", format!("{:#04x}", info.nr), format!("{direction}; {since}"))]);
    if let Some(layout) = info.layout {
        let rows = layout.fields.iter().filter(|field| !field.name().is_empty()).map(|field| {
            row(field.name(), format!("+{:<3} {:2} B", field.offset, field.size), super::constant::plain(field.doc))
        });
        reading = reading.section(&format!("struct {}, {} bytes", layout.c_name, layout.size), rows.collect());
    }
    reading = reading.section("What the kernel checks, in this order", errno::checks(info.name, None));
    let mut rows: Vec<[String; 3]> = Vec::new();
    for rule in kfd::error_rules().iter().filter(|rule| rule.name == info.name) {
        rows.push(row(rule.errno.name(), "", format!("{} -> {}", rule.rule, rule.advice)));
    }
    if info.name == "CREATE_QUEUE" {
        for raw in 1..=kfd::Errno::ENOTSUPP.raw() {
            let errno = kfd::Errno::from_raw(raw);
            if let Some((rule, advice)) = kfd::create_queue_rule(errno) {
                rows.push(row(errno.name(), "", format!("{rule} -> {advice}")));
            }
        }
    }
    reading.section("What its errors mean", rows)
}

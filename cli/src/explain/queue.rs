//! Why a queue stopped: the bits of `queue_inactive_signal`, and the KFD's exception codes.

use super::input::Number;
use super::{Reading, row, status};
use aql::status::{EXCEPTIONS, Exception, INACTIVE_BITS, InactiveBit};

/// What ROCR turns a bit of `queue_inactive_signal` into (`DynamicQueueEventsHandler`).
const INACTIVE_STATUS: [(u64, u32); 10] = [
    (0x2, 0x100d),
    (0x4, 0x1003),
    (0x8, 0x1010),
    (0x20, 0x1009),
    (0x40, 0x1001),
    (0x80, 45),
    (0x100, 0x1009),
    (0x2000_0000, 41),
    (0x4000_0000, 42),
    (0x8000_0000, 0x1016),
];

/// What ROCR turns an exception into (`ExceptionHandler`).
const EXCEPTION_STATUS: [(u8, u32); 19] = [
    (1, 0x1016),
    (2, 0x1016),
    (3, 0x1016),
    (4, 42),
    (5, 43),
    (6, 41),
    (16, 0x100d),
    (17, 0x1003),
    (18, 0x1010),
    (20, 0x1009),
    (21, 0x1001),
    (22, 0x100f),
    (23, 0x1009),
    (31, 0x1000),
    (33, 41),
    (34, 0x1000),
    (35, 0x1000),
    (36, 0x1000),
    (50, 0x1000),
];

/// What is behind an HSA status that a queue's error callback gets.
pub fn behind(status: u32) -> Vec<[String; 3]> {
    let bits = INACTIVE_BITS.iter().filter(|bit| inactive_status(bit) == Some(status));
    let bits = bits.map(|bit| row(format!("inactive {:#x}", bit.bit), bit.name, bit.meaning));
    let codes = EXCEPTIONS.iter().filter(|exception| exception_status(exception) == Some(status));
    let codes = codes.map(|exception| row(format!("exception {}", exception.code), exception.name, exception.meaning));
    bits.chain(codes).collect()
}

fn inactive_status(bit: &InactiveBit) -> Option<u32> {
    INACTIVE_STATUS.iter().find(|(known, _)| *known == bit.bit).map(|(_, status)| *status)
}

fn exception_status(exception: &Exception) -> Option<u32> {
    EXCEPTION_STATUS.iter().find(|(code, _)| *code == exception.code).map(|(_, status)| *status)
}

fn rocr(status: Option<u32>) -> String {
    status.map_or(String::new(), |status| format!("; ROCR: {}", status::name_of(status)))
}

/// A value of `queue_inactive_signal`.
pub fn inactive(number: Number) -> Option<Reading> {
    let value = number.value;
    // The signal's value is signed, and its top bit is ROCR's own mark.
    let (known, rest) = aql::status::inactive_bits(value & !(1 << 63));
    if known.is_empty() || rest != 0 {
        return None;
    }
    let likely = if value >= 0x2000_0000 { number.likely(88, 40) } else { number.likely(40, 15) };
    let names: Vec<&str> = known.iter().map(|bit| bit.name).collect();
    let mut rows: Vec<[String; 3]> = known
        .iter()
        .map(|bit| {
            let after = if bit.recoverable { "; the queue goes on when the host has served it" } else { "" };
            row(format!("{:#x}", bit.bit), bit.name, format!("{}{after}{}", bit.meaning, rocr(inactive_status(bit))))
        })
        .collect();
    if value >> 63 != 0 {
        rows.push(row("bit 63", "", "ROCR's own mark that it ends the queue"));
    }
    let title = format!("queue_inactive_signal {value:#x}: {}", names.join(", "));
    Some(Reading::new("inactive", likely, title).section("", rows))
}

/// An exception code, or a mask of exceptions.
pub fn exception(number: Number) -> Vec<Reading> {
    let mut readings = Vec::new();
    let value = number.value;
    if let Some(exception) = EXCEPTIONS.iter().find(|exception| u64::from(exception.code) == value) {
        readings.push(code(exception, number.likely(25, 50)));
    }
    let (known, rest) = aql::status::exceptions(value);
    if !known.is_empty() && rest == 0 && !number.negative {
        let names: Vec<&str> = known.iter().map(|exception| exception.name).collect();
        let rows = known.iter().map(|exception| {
            let meaning = format!("{}{}", exception.meaning, rocr(exception_status(exception)));
            row(format!("{:#x}", exception.mask()), format!("{} {}", exception.code, exception.name), meaning)
        });
        let title = format!("mask of KFD exceptions {value:#x}: {}", names.join(", "));
        readings.push(
            Reading::new("exception", if value < 0x8000 { 10 } else { number.likely(45, 12) }, title)
                .section("", rows.collect()),
        );
    }
    readings
}

fn code(exception: &Exception, likely: u8) -> Reading {
    let title = format!("KFD exception {}: EC_{}: {}", exception.code, exception.name, exception.meaning);
    let mut rows = vec![row("mask", format!("{:#x}", exception.mask()), "its bit in exception masks: code - 1")];
    if let Some(status) = exception_status(exception) {
        rows.push(row("ROCR", status::name_of(status), "what its queue error callback gets"));
    }
    let reading = Reading::new("exception", likely, title).section("", rows);
    match exception.code {
        22 => reading.note("ROCR's name misleads: the image's target is not the problem, its registers are."),
        _ => reading,
    }
}

/// An exception by its name, with or without `EC_`, or an inactive bit by its name.
pub fn name(name: &str) -> Option<Reading> {
    let upper = name.to_ascii_uppercase();
    let wanted = upper.strip_prefix("EC_").unwrap_or(&upper);
    if let Some(exception) = EXCEPTIONS.iter().find(|exception| exception.name == wanted) {
        return Some(code(exception, 90));
    }
    let bit = INACTIVE_BITS.iter().find(|bit| bit.name.eq_ignore_ascii_case(name))?;
    inactive(Number { value: bit.bit, hex: true, negative: false })
}

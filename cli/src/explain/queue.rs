//! Why a queue stopped: the bits of `queue_inactive_signal`, and the KFD's exception codes.

use super::input::Number;
use super::{Reading, row};
use aql::HsaStatus;
use aql::status::{EXCEPTIONS, Exception, INACTIVE_BITS};

/// What is behind an HSA status that a queue's error callback gets.
pub fn behind(status: u32) -> Vec<[String; 3]> {
    let bits = INACTIVE_BITS.iter().filter(|bit| bit.rocr().is_some_and(|rocr| rocr.number == status));
    let bits = bits.map(|bit| row(format!("inactive {:#x}", bit.bit), bit.name, bit.meaning));
    let codes = EXCEPTIONS.iter().filter(|exception| exception.rocr().is_some_and(|rocr| rocr.number == status));
    let codes = codes.map(|exception| row(format!("exception {}", exception.code), exception.name, exception.meaning));
    bits.chain(codes).collect()
}

fn rocr(status: Option<&HsaStatus>) -> String {
    status.map_or(String::new(), |status| format!("; ROCR: {status}"))
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
            row(format!("{:#x}", bit.bit), bit.name, format!("{}{after}{}", bit.meaning, rocr(bit.rocr())))
        })
        .collect();
    if value >> 63 != 0 {
        rows.push(row("bit 63", "", "ROCR's own mark that it ends the queue"));
    }
    let title = format!("queue_inactive_signal {value:#x}: {}", names.join(", "));
    let mut advice: Vec<&str> = known.iter().map(|bit| bit.advice).collect();
    advice.dedup();
    let reading = Reading::new("inactive", likely, title).section("", rows);
    Some(advice.iter().fold(reading, |reading, advice| reading.note(format!("do: {advice}"))))
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
            let meaning = format!("{}{}", exception.meaning, rocr(exception.rocr()));
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
    if let Some(status) = exception.rocr() {
        rows.push(row("ROCR", status.to_string(), "what its queue error callback gets"));
    }
    rows.push(row("do", "", exception.advice));
    Reading::new("exception", likely, title).section("", rows)
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

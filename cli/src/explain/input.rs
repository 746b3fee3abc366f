//! The words of the command line as one thing to explain.

use super::{KINDS, errno, ioctl};
use elf::Version;
use std::fmt;

/// A number and how it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    /// The value; of a negative one, its 64 bits.
    pub value: u64,
    /// Written in hexadecimal.
    pub hex: bool,
    /// Written with a minus sign.
    pub negative: bool,
}

impl Number {
    /// One score for a number in hexadecimal, one for it in decimal.
    pub fn likely(self, hex: u8, decimal: u8) -> u8 {
        if self.hex { hex } else { decimal }
    }

    /// The value, when it is one of 32 bits.
    pub fn word(self) -> Option<u32> {
        (!self.negative).then_some(self.value).and_then(|value| u32::try_from(value).ok())
    }
}

/// What is to be explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// An ioctl's name and an error.
    CallError(&'static str, kfd::Errno),
    /// A number.
    Number(Number),
    /// `e_flags` and the code object's version.
    Flags(Number, Version),
    /// 64 bytes.
    Bytes(Box<[u8; 64]>),
    /// Anything else.
    Name(String),
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Input::CallError(call, errno) => write!(f, "{call} {errno}"),
            Input::Number(number) | Input::Flags(number, _) if number.negative => {
                write!(f, "{}", number.value.cast_signed())
            }
            Input::Number(number) | Input::Flags(number, _) if number.hex => write!(f, "{:#x}", number.value),
            Input::Number(number) | Input::Flags(number, _) => write!(f, "{}", number.value),
            Input::Bytes(_) => f.write_str("these 64 bytes"),
            Input::Name(name) => write!(f, "'{name}'"),
        }
    }
}

/// Kinds by the names that reports have for them.
const ALSO: [(&str, &str); 2] = [("queue_inactive_signal", "inactive"), ("exceptions", "exception")];

/// The kind that was asked for, if one was, and the input.
pub fn parse(words: &[String]) -> Result<(Option<&'static str>, Input), String> {
    let words: Vec<&str> = words.iter().flat_map(|word| word.split_whitespace()).collect();
    let kind = words.first().and_then(|first| {
        let also = ALSO.iter().find(|(also, _)| also.eq_ignore_ascii_case(first)).map_or(*first, |(_, kind)| kind);
        KINDS.iter().find(|(kind, ..)| kind.eq_ignore_ascii_case(also))
    });
    let (kind, rest) = match kind {
        Some((kind, ..)) if words.len() > 1 => (Some(*kind), &words[1..]),
        _ => (None, &words[..]),
    };
    let input = match rest {
        several if matches!(kind, Some("packet" | "signal")) => match bytes(several) {
            Some(result) => Input::Bytes(Box::new(result?)),
            None => return Err(format!("'{}': 64 bytes in hexadecimal were expected", several.join(" "))),
        },
        [] => return Err("there is nothing to explain".to_owned()),
        [one] => single(one)?,
        [a, b] if call_error(a, b).is_some() => call_error(a, b).ok_or("")?,
        [a, b] if call_error(b, a).is_some() => call_error(b, a).ok_or("")?,
        [a, v] if version(v).is_some() && number(a).is_some() => {
            Input::Flags(number(a).ok_or("")?, version(v).ok_or("")?)
        }
        several => match bytes(several) {
            Some(result) => Input::Bytes(Box::new(result?)),
            None if several.iter().all(|word| word.contains('|') || word.chars().all(|c| !c.is_ascii_digit())) => {
                Input::Name(several.concat())
            }
            None => return Err(format!("'{}' is not one thing: ask for one number or name", several.join(" "))),
        },
    };
    Ok((kind, input))
}

fn single(word: &str) -> Result<Input, String> {
    if let Some(bytes) = bytes(&[word]).filter(|_| word.len() > 34) {
        return Ok(Input::Bytes(Box::new(bytes?)));
    }
    let digits = word.trim_start_matches('-');
    let all = |digits: &str, digit: fn(&u8) -> bool| !digits.is_empty() && digits.bytes().all(|b| digit(&b));
    let hex = digits.strip_prefix("0x").is_some_and(|digits| all(digits, u8::is_ascii_hexdigit));
    match number(word) {
        Some(number) => Ok(Input::Number(number)),
        None if hex || all(digits, u8::is_ascii_digit) => Err(format!("{word} does not fit 64 bits")),
        None => Ok(Input::Name(word.to_owned())),
    }
}

fn call_error(call: &str, error: &str) -> Option<Input> {
    let info = ioctl::find(call)?;
    let errno = errno::find(error).or_else(|| {
        let number = number(error)?;
        let raw = if number.negative { number.value.wrapping_neg() } else { number.value };
        (1..4096).contains(&raw).then(|| kfd::Errno::from_raw(raw as i32))
    })?;
    Some(Input::CallError(info.name, errno))
}

fn version(word: &str) -> Option<Version> {
    [Version::V3, Version::V4, Version::V5, Version::V6].into_iter().find(|v| v.to_string().eq_ignore_ascii_case(word))
}

/// A number: `0x...`, decimal, or hexadecimal digits with a letter among them and a digit at the start or end.
pub fn number(word: &str) -> Option<Number> {
    let (negative, digits) = match word.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, word),
    };
    let digits = digits.replace('_', "");
    let lower = digits.to_ascii_lowercase();
    let (hex, value) = if let Some(digits) = lower.strip_prefix("0x") {
        (true, parse_digits(digits, 16)?)
    } else if let Some(value) = parse_digits(&digits, 10) {
        (false, value)
    } else {
        let bare = digits.len() >= 3 && digits.bytes().any(|b| b.is_ascii_digit());
        (true, parse_digits(&digits, 16).filter(|_| bare)?)
    };
    if negative && value > 1 << 63 {
        return None;
    }
    Some(Number { value: if negative { value.wrapping_neg() } else { value }, hex, negative: negative && value != 0 })
}

/// Digits only: what `from_str_radix` takes besides, a sign, is not a digit.
fn parse_digits(digits: &str, radix: u32) -> Option<u64> {
    if digits.starts_with(['+', '-']) { None } else { u64::from_str_radix(digits, radix).ok() }
}

/// Bytes in hexadecimal: one run of digits or several, in memory order; or words of 32 or 64 bits, each with `0x`, as a
/// debugger prints memory. None when it is not that; the error when it is not 64 bytes.
fn bytes(words: &[&str]) -> Option<Result<[u8; 64], String>> {
    let joined = words.join(" ");
    let parts: Vec<&str> = joined.split([' ', ',', ':', '\t', '\n']).filter(|part| !part.is_empty()).collect();
    let mut bytes = Vec::new();
    for part in &parts {
        let (word, digits) = match part.strip_prefix("0x").or_else(|| part.strip_prefix("0X")) {
            Some(digits) => (true, digits),
            None => (false, *part),
        };
        // Bytes have two digits each; only a number may leave the first out.
        let odd = !word && digits.len() % 2 == 1;
        if odd || digits.is_empty() || !digits.is_ascii() || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        // A word of a debugger is a number, whose lowest byte comes first in memory.
        let little = word && digits.len() <= 16 && parts.len() > 1;
        let digits = if digits.len() % 2 == 1 { format!("0{digits}") } else { digits.to_owned() };
        let mut part: Vec<u8> =
            (0..digits.len() / 2).filter_map(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).ok()).collect();
        if little {
            part.reverse();
        }
        bytes.extend(part);
    }
    let len = bytes.len();
    Some(bytes.try_into().map_err(|_| format!("{len} bytes: a packet or signal has 64")))
}

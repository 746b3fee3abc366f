//! `printf` conversions for formats that come from a device.
//!
//! A format is split into literal text and [`Spec`]s; each spec is rendered by the host's `snprintf` from a conversion
//! string built here out of parsed parts, so that nothing a device sends is ever used as a format.

use std::ffi::CString;

/// Width or precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// A number in the format.
    Fixed(u32),
    /// `*`: taken from the arguments.
    Argument,
}

/// Length modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// None.
    None,
    /// `hh`.
    Char,
    /// `h`.
    Short,
    /// `l`.
    Long,
    /// `ll`.
    LongLong,
    /// `j`, `z`, `t`: 64 bits.
    Word,
    /// `hl`, OpenCL vectors of 32-bit elements.
    HalfLong,
    /// `L`.
    LongDouble,
    /// `w8`, `w16` and so on: so many bits, from 1 to 64.
    Bits(u32),
    /// `wf8`, `wf16` and so on: the fast type of at least so many bits.
    FastBits(u32),
}

/// A conversion specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Flags among `-+ #0`, each once.
    pub flags: String,
    /// Minimum field width.
    pub width: Option<Amount>,
    /// Precision.
    pub precision: Option<Amount>,
    /// Elements of an OpenCL vector, 1 for scalars.
    pub vector: u32,
    /// Length modifier.
    pub length: Length,
    /// Conversion letter.
    pub conversion: u8,
}

/// A piece of a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Bytes to copy (`%%` already reduced).
    Text(Vec<u8>),
    /// A conversion.
    Spec(Spec),
}

/// The conversions among pieces.
pub fn specs(pieces: &[Piece]) -> impl Iterator<Item = &Spec> {
    pieces.iter().filter_map(|piece| match piece {
        Piece::Spec(spec) => Some(spec),
        Piece::Text(_) => None,
    })
}

/// Largest width or precision rendered; more is a damaged format.
const LARGEST: u32 = 1 << 20;

impl Spec {
    /// Arguments for `*`, in front of its own.
    pub fn stars(&self) -> usize {
        [self.width, self.precision].iter().filter(|amount| **amount == Some(Amount::Argument)).count()
    }

    /// Is the argument a string?
    pub fn is_string(&self) -> bool {
        self.conversion == b's'
    }

    /// Is the argument a float?
    pub fn is_float(&self) -> bool {
        matches!(self.conversion, b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' | b'A')
    }

    /// Bytes of the argument in LLVM libc's packed argument block: floats, pointers and strings take 8, integers 4 or
    /// 8 by their length modifier.
    pub fn packed_size(&self) -> usize {
        match self.conversion {
            b'c' => 4,
            b'd' | b'i' | b'o' | b'u' | b'x' | b'X' | b'b' | b'B' => match self.length {
                // LLVM's libc takes `L` for `ll` here.
                Length::Long | Length::LongLong | Length::Word | Length::LongDouble => 8,
                Length::Bits(bits) | Length::FastBits(bits) if bits > 32 => 8,
                _ => 4,
            },
            _ => 8,
        }
    }
}

/// Splits a format. A `%` that starts no conversion known here is kept as text.
pub fn parse(format: &[u8]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut text = Vec::new();
    let mut at = 0;
    while let Some(&byte) = format.get(at) {
        at += 1;
        if byte != b'%' {
            text.push(byte);
            continue;
        }
        if format.get(at) == Some(&b'%') {
            text.push(b'%');
            at += 1;
            continue;
        }
        match parse_spec(&format[at..]) {
            // `%5%`: C leaves it open, C libraries print a `%`.
            Some((Spec { conversion: b'%', .. }, used)) => {
                text.push(b'%');
                at += used;
            }
            Some((spec, used)) => {
                if !text.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut text)));
                }
                pieces.push(Piece::Spec(spec));
                at += used;
            }
            None => text.push(b'%'),
        }
    }
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
    pieces
}

/// Parses what follows a `%`; returns the bytes used.
fn parse_spec(bytes: &[u8]) -> Option<(Spec, usize)> {
    let mut at = 0;
    let peek = |at: usize| bytes.get(at).copied();
    let mut flags = String::new();
    while let Some(flag @ (b'-' | b'+' | b' ' | b'#' | b'0')) = peek(at) {
        if !flags.contains(flag as char) {
            flags.push(flag as char);
        }
        at += 1;
    }
    let amount = |at: &mut usize| -> Option<Amount> {
        if peek(*at) == Some(b'*') {
            *at += 1;
            return Some(Amount::Argument);
        }
        let mut value = None;
        while let Some(digit @ b'0'..=b'9') = peek(*at) {
            value = Some((value.unwrap_or(0u32) * 10 + u32::from(digit - b'0')).min(LARGEST));
            *at += 1;
        }
        value.map(Amount::Fixed)
    };
    let width = amount(&mut at);
    let precision = if peek(at) == Some(b'.') {
        at += 1;
        Some(amount(&mut at).unwrap_or(Amount::Fixed(0)))
    } else {
        None
    };
    let mut vector = 1;
    if peek(at) == Some(b'v') {
        at += 1;
        match amount(&mut at) {
            Some(Amount::Fixed(count @ (2 | 3 | 4 | 8 | 16))) => vector = count,
            _ => return None,
        }
    }
    let (length, used) = match (peek(at), peek(at + 1)) {
        (Some(b'h'), Some(b'h')) => (Length::Char, 2),
        (Some(b'h'), Some(b'l')) => (Length::HalfLong, 2),
        (Some(b'h'), _) => (Length::Short, 1),
        (Some(b'l'), Some(b'l')) => (Length::LongLong, 2),
        (Some(b'l'), _) => (Length::Long, 1),
        (Some(b'j' | b'z' | b't'), _) => (Length::Word, 1),
        (Some(b'L'), _) => (Length::LongDouble, 1),
        (Some(b'w'), Some(b'f')) => (Length::FastBits(0), 2),
        (Some(b'w'), _) => (Length::Bits(0), 1),
        _ => (Length::None, 0),
    };
    at += used;
    let length = match length {
        Length::Bits(_) | Length::FastBits(_) => match amount(&mut at) {
            Some(Amount::Fixed(bits @ 1..)) if used == 1 => Length::Bits(bits.min(64)),
            Some(Amount::Fixed(bits @ 1..)) => Length::FastBits(bits.min(64)),
            _ => return None,
        },
        length => length,
    };
    let conversion = peek(at)?;
    let has_stars = [width, precision].contains(&Some(Amount::Argument));
    if !b"diouxXbBfFeEgGaAcspn".contains(&conversion) && (conversion != b'%' || has_stars) {
        return None;
    }
    Some((Spec { flags, width, precision, vector, length, conversion }, at + 1))
}

/// An argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Integer, character or pointer: the raw bits.
    Bits(u64),
    /// Float.
    Float(f64),
    /// String, none for a null pointer.
    Text(Option<Vec<u8>>),
}

/// Renders one conversion. `star` are the values of `*` width and precision, in that order.
pub fn render(spec: &Spec, star: &[i32], value: &Value, out: &mut Vec<u8>) {
    let mut star = star.iter().copied();
    let mut take = |amount: Option<Amount>| match amount {
        Some(Amount::Fixed(value)) => Some(value as i32),
        Some(Amount::Argument) => star.next().map(|value| value.clamp(-(LARGEST as i32), LARGEST as i32)),
        None => None,
    };
    let mut width = take(spec.width).unwrap_or(0);
    // A negative precision counts as none.
    let precision = take(spec.precision).filter(|precision| *precision >= 0);
    let mut flags = spec.flags.clone();
    if width < 0 {
        width = -width;
        if !flags.contains('-') {
            flags.push('-');
        }
    }
    match value {
        Value::Text(text) => {
            let text = text.as_deref().unwrap_or(b"(null)");
            let text = &text[..precision.map_or(text.len(), |precision| text.len().min(precision as usize))];
            pad(text, width as usize, flags.contains('-'), out);
        }
        Value::Float(value) => {
            let conversion = if spec.is_float() { spec.conversion } else { b'f' };
            number(&flags, width, precision, "", conversion, Number::Float(*value), out);
        }
        Value::Bits(bits) => match spec.conversion {
            // A wide character, as UTF-8; what is none as U+FFFD.
            b'c' if spec.length == Length::Long => {
                let wide = char::from_u32(*bits as u32).unwrap_or(char::REPLACEMENT_CHARACTER);
                pad(wide.encode_utf8(&mut [0; 4]).as_bytes(), width as usize, flags.contains('-'), out);
            }
            b'c' => pad(&[*bits as u8], width as usize, flags.contains('-'), out),
            b'n' => {}
            b'p' if *bits == 0 => pad(b"(nil)", width as usize, flags.contains('-'), out),
            b'p' => number(&format!("{flags}#"), width, precision, "ll", b'x', Number::Unsigned(*bits), out),
            b'b' | b'B' => {
                let value = unsigned(spec.length, *bits);
                let prefix = match (flags.contains('#') && value != 0, spec.conversion) {
                    (true, b'b') => "0b",
                    (true, _) => "0B",
                    (false, _) => "",
                };
                let digits = match (precision, value) {
                    (None, _) if flags.contains('0') && !flags.contains('-') => {
                        width as usize - prefix.len().min(width as usize)
                    }
                    (Some(precision), _) => precision as usize,
                    (None, _) => 1,
                };
                let number = if precision == Some(0) && value == 0 { String::new() } else { format!("{value:b}") };
                let zeros = "0".repeat(digits.saturating_sub(number.len()));
                let text = [prefix, &zeros, &number].concat();
                pad(text.as_bytes(), width as usize, flags.contains('-'), out);
            }
            b'd' | b'i' => {
                number(&flags, width, precision, "ll", spec.conversion, Number::Signed(signed(spec.length, *bits)), out)
            }
            _ => {
                let value = Number::Unsigned(unsigned(spec.length, *bits));
                number(&flags, width, precision, "ll", spec.conversion, value, out)
            }
        },
    }
}

/// The argument of a signed conversion.
fn signed(length: Length, bits: u64) -> i64 {
    match length {
        Length::Char => bits as i8 as i64,
        Length::Short => bits as i16 as i64,
        Length::None | Length::HalfLong | Length::FastBits(..=32) => bits as i32 as i64,
        Length::Bits(width @ 1..=63) => (bits << (64 - width)) as i64 >> (64 - width),
        _ => bits as i64,
    }
}

/// The argument of an unsigned conversion.
fn unsigned(length: Length, bits: u64) -> u64 {
    match length {
        Length::Char => bits as u8 as u64,
        Length::Short => bits as u16 as u64,
        Length::None | Length::HalfLong | Length::FastBits(..=32) => bits as u32 as u64,
        Length::Bits(width @ 1..=63) => bits & ((1 << width) - 1),
        _ => bits,
    }
}

fn pad(text: &[u8], width: usize, left: bool, out: &mut Vec<u8>) {
    let fill = width.saturating_sub(text.len());
    if !left {
        out.resize(out.len() + fill, b' ');
    }
    out.extend_from_slice(text);
    if left {
        out.resize(out.len() + fill, b' ');
    }
}

enum Number {
    Signed(i64),
    Unsigned(u64),
    Float(f64),
}

/// Renders a number with a conversion built from checked parts.
fn number(
    flags: &str,
    width: i32,
    precision: Option<i32>,
    length: &str,
    conversion: u8,
    value: Number,
    out: &mut Vec<u8>,
) {
    let format = format!("%{flags}*.*{length}{}", conversion as char);
    let Ok(format) = CString::new(format) else { return };
    let precision = precision.unwrap_or(-1);
    let print = |buffer: *mut libc::c_char, size: usize| -> usize {
        // SAFETY: the format was built above and consumes exactly two ints and one value of the type its letter names;
        // `buffer` holds `size` bytes.
        let written = unsafe {
            match value {
                Number::Signed(value) => libc::snprintf(buffer, size, format.as_ptr(), width, precision, value),
                Number::Unsigned(value) => libc::snprintf(buffer, size, format.as_ptr(), width, precision, value),
                Number::Float(value) => libc::snprintf(buffer, size, format.as_ptr(), width, precision, value),
            }
        };
        usize::try_from(written).unwrap_or(0)
    };
    let size = print(std::ptr::null_mut(), 0);
    let mut buffer = vec![0u8; size + 1];
    print(buffer.as_mut_ptr().cast(), buffer.len());
    out.extend_from_slice(&buffer[..size]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(format: &str, star: &[i32], value: Value) -> String {
        let mut out = Vec::new();
        for piece in parse(format.as_bytes()) {
            match piece {
                Piece::Text(text) => out.extend(text),
                Piece::Spec(spec) => render(&spec, star, &value, &mut out),
            }
        }
        String::from_utf8(out).unwrap()
    }

    /// What C23 added, and what LLVM's libc makes of `L`.
    #[test]
    fn lengths_in_bits() {
        let size = |format: &str| match &parse(format.as_bytes())[..] {
            [Piece::Spec(spec)] => Some(spec.packed_size()),
            _ => None,
        };
        assert_eq!(
            [size("%w8d"), size("%w32x"), size("%w64d"), size("%wf16u"), size("%wf64d")].map(Option::unwrap),
            [4, 4, 8, 4, 8]
        );
        assert_eq!((size("%Ld"), size("%Lx"), size("%Lf")), (Some(8), Some(8), Some(8)));
        assert_eq!((size("%w7d"), size("%w0d"), size("%wd"), size("%w128d")), (Some(4), None, None, Some(8)));
        assert_eq!(one("%w7d %w7u %w128d", &[], Value::Bits(0xff)), "-1 127 255");
        assert_eq!(one("%w8d", &[], Value::Bits(0x1ff)), "-1");
        assert_eq!(one("%w64d", &[], Value::Bits(1 << 40)), "1099511627776");
        assert_eq!(one("%wf8u", &[], Value::Bits(0x1ff)), "511");
        assert_eq!(one("%5%|%l%|%-08.3%", &[], Value::Bits(0)), "%|%|%");
        assert_eq!(one("%*%", &[3], Value::Bits(0)), "%*%", "it would take an argument");
    }

    #[test]
    fn binary_numbers() {
        let bits = Value::Bits;
        for (format, value, text) in [
            ("%b", 0, "0"),
            ("%b", 5, "101"),
            ("%8b", 5, "     101"),
            ("%-8b|", 5, "101     |"),
            ("%08b", 5, "00000101"),
            ("%#08b", 5, "0b000101"),
            ("%#08B", 0, "00000000"),
            ("%#b", 5, "0b101"),
            ("%.5b", 5, "00101"),
            ("%#9.5b", 5, "  0b00101"),
            ("%.0b", 0, ""),
            ("%#02b", 5, "0b101"),
        ] {
            assert_eq!(one(format, &[], bits(value)), text, "{format} of {value}");
        }
        assert_eq!(one("%0*b", &[1 << 20], bits(1)).len(), 1 << 20);
    }

    #[test]
    fn conversions() {
        let bits = Value::Bits;
        assert_eq!(one("%d", &[], bits(-1i64 as u64)), "-1");
        assert_eq!(one("%hhd", &[], bits(0x1ff)), "-1");
        assert_eq!(one("%u", &[], bits(u64::MAX)), "4294967295");
        assert_eq!(one("%lu", &[], bits(u64::MAX)), "18446744073709551615");
        assert_eq!(one("%08X", &[], bits(0xbeef)), "0000BEEF");
        assert_eq!(one("%-6d|", &[], bits(42)), "42    |");
        assert_eq!(one("%*d", &[5], bits(42)), "   42");
        assert_eq!(one("%*d|", &[-5], bits(42)), "42   |");
        assert_eq!(one("%.*s", &[2], Value::Text(Some(b"abc".to_vec()))), "ab");
        assert_eq!(one("%5s", &[], Value::Text(None)), "(null)");
        assert_eq!(one("%f", &[], Value::Float(3.25)), "3.250000");
        assert_eq!(one("%a", &[], Value::Float(3.25)), "0x1.ap+1");
        assert_eq!(one("%g", &[], Value::Float(1e20)), "1e+20");
        assert_eq!(one("%p", &[], bits(0x1234)), "0x1234");
        assert_eq!(one("%010p|%.8p|%-8p|%8p", &[], bits(0xdead)), "0x0000dead|0x0000dead|0xdead  |  0xdead");
        assert_eq!(one("%p|%8p", &[], bits(0)), "(nil)|   (nil)");
        assert_eq!(one("%#b", &[], bits(5)), "0b101");
        assert_eq!(one("%08b", &[], bits(5)), "00000101");
        assert_eq!(one("100%%", &[], bits(0)), "100%");
        assert_eq!(one("%y", &[], bits(0)), "%y");
        assert_eq!(one("%4lc|%-4lc|", &[], bits(0x20ac)), " €|€ |", "a width counts bytes");
        assert_eq!((one("%lc", &[], bits(0xd800)), one("%c", &[], bits(0x141))), ("\u{fffd}".into(), "A".into()));
    }

    #[test]
    fn vectors_and_lengths() {
        let Piece::Spec(spec) = &parse(b"%v4hld")[0] else { panic!("a conversion") };
        assert_eq!((spec.vector, spec.length), (4, Length::HalfLong));
        assert_eq!(parse(b"%v5d").len(), 1, "no vector has five elements: text");
        let Piece::Spec(spec) = &parse(b"%99999999999d")[0] else { panic!("a conversion") };
        assert_eq!(spec.width, Some(Amount::Fixed(LARGEST)));
    }
}

//! Types of numbers.

use crate::printf::half;

/// A type of numbers, little-endian in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Element {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F16,
    Bf16,
    F32,
    F64,
}

use Element as E;

/// Types, their names here, in OpenCL C and in NumPy's files, and their bytes. NumPy has no bfloat16.
#[rustfmt::skip]
const ELEMENTS: [(Element, &str, &str, Option<&str>, usize); 12] = [
    (E::I8, "i8", "char", Some("|i1"), 1),
    (E::U8, "u8", "uchar", Some("|u1"), 1),
    (E::I16, "i16", "short", Some("<i2"), 2),
    (E::U16, "u16", "ushort", Some("<u2"), 2),
    (E::I32, "i32", "int", Some("<i4"), 4),
    (E::U32, "u32", "uint", Some("<u4"), 4),
    (E::I64, "i64", "long", Some("<i8"), 8),
    (E::U64, "u64", "ulong", Some("<u8"), 8),
    (E::F16, "f16", "half", Some("<f2"), 2),
    (E::Bf16, "bf16", "__bf16", None, 2),
    (E::F32, "f32", "float", Some("<f4"), 4),
    (E::F64, "f64", "double", Some("<f8"), 8),
];

impl Element {
    fn row(self) -> (Element, &'static str, &'static str, Option<&'static str>, usize) {
        ELEMENTS.into_iter().find(|row| row.0 == self).unwrap_or(ELEMENTS[0])
    }

    /// By name.
    pub fn from_name(name: &str) -> Option<Element> {
        ELEMENTS.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// By OpenCL C's name.
    pub fn from_opencl(name: &str) -> Option<Element> {
        ELEMENTS.iter().find(|row| row.2 == name).map(|row| row.0)
    }

    /// By `descr` of a NumPy file.
    pub fn from_npy(descr: &str) -> Option<Element> {
        ELEMENTS.iter().find(|row| row.3 == Some(descr)).map(|row| row.0)
    }

    /// The unsigned type of so many bytes.
    pub fn unsigned(size: u32) -> Option<Element> {
        [E::U8, E::U16, E::U32, E::U64].into_iter().find(|element| element.size() == size as usize)
    }

    /// Name.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// OpenCL C's name.
    pub fn opencl(self) -> &'static str {
        self.row().2
    }

    /// `descr` in NumPy's files.
    pub fn npy(self) -> Option<&'static str> {
        self.row().3
    }

    /// Bytes.
    pub fn size(self) -> usize {
        self.row().4
    }

    /// Floating point?
    pub fn is_float(self) -> bool {
        matches!(self, E::F16 | E::Bf16 | E::F32 | E::F64)
    }

    fn is_signed(self) -> bool {
        matches!(self, E::I8 | E::I16 | E::I32 | E::I64)
    }

    /// All names, for messages.
    pub fn names() -> String {
        ELEMENTS.map(|row| row.1).join(" ")
    }

    /// A number's bytes.
    pub fn parse(self, text: &str) -> Result<Vec<u8>, String> {
        let text = text.trim();
        if self.is_float() {
            let value: f64 = match text.parse() {
                Ok(value) => value,
                Err(_) => super::integer(text).map_err(|_| format!("'{text}' is not a number"))? as f64,
            };
            // Rounded once, from the text.
            let bytes = match (self, text.parse::<f32>()) {
                (E::F32, Ok(single)) => single.to_le_bytes().to_vec(),
                (E::F16 | E::Bf16, _) => self.float_bytes(self.off_the_tie(value, text)),
                _ => self.float_bytes(value),
            };
            let asks_for_infinity = text.trim_start_matches(['-', '+']).starts_with(['i', 'I']);
            if self.to_f64(&bytes).is_infinite() && !asks_for_infinity {
                return Err(format!("{text} does not fit {}: it would become infinite", self.name()));
            }
            return Ok(bytes);
        }
        let value = super::integer(text)?;
        let bits = 8 * self.size() as u32;
        let (low, high) = match self.is_signed() {
            true => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
            false => (0, (1i128 << bits) - 1),
        };
        if value < low || value > high {
            return Err(format!("{text} does not fit {}, which holds {low} to {high}", self.name()));
        }
        Ok(value.to_le_bytes()[..self.size()].to_vec())
    }

    /// The double nearest to a text; where it is halfway between two numbers of the type and the text is not, its neighbour
    /// on the text's side.
    fn off_the_tie(self, value: f64, text: &str) -> f64 {
        let round = |value| self.to_f64(&self.float_bytes(value));
        if (round(value.next_up()) + round(value.next_down())) / 2.0 != value || round(value) == value {
            return value;
        }
        // Every digit of it: a double has no more than this behind the point.
        match (decimal(text), decimal(&format!("{value:.1074}"))) {
            (Some(wanted), Some(tie)) if wanted != tie => {
                let away = wanted > tie;
                if away == (value > 0.0) { value.next_up() } else { value.next_down() }
            }
            _ => value,
        }
    }

    /// Numbers separated by commas.
    pub fn parse_list(self, text: &str) -> Result<Vec<u8>, String> {
        let values: Result<Vec<_>, _> = text.split(',').map(|value| self.parse(value)).collect();
        Ok(values?.concat())
    }

    /// The nearest float of the type.
    pub fn float_bytes(self, value: f64) -> Vec<u8> {
        match self {
            E::F16 => to_half(value).to_le_bytes().to_vec(),
            E::Bf16 => to_bf16(value).to_le_bytes().to_vec(),
            E::F32 => (value as f32).to_le_bytes().to_vec(),
            _ => value.to_le_bytes().to_vec(),
        }
    }

    /// The element as a double: exact but for 64-bit integers.
    pub fn to_f64(self, bytes: &[u8]) -> f64 {
        let bits = self.bits(bytes);
        match self {
            E::F16 => half(bits as u16),
            E::Bf16 => f64::from(f32::from_bits((bits as u32) << 16)),
            E::F32 => f64::from(f32::from_bits(bits as u32)),
            E::F64 => f64::from_bits(bits),
            _ => self.to_i128(bytes) as f64,
        }
    }

    /// The element as an integer; of floats the bits.
    pub fn to_i128(self, bytes: &[u8]) -> i128 {
        let bits = self.bits(bytes);
        if self.is_signed() {
            let shift = 64 - 8 * self.size() as u32;
            return i128::from((bits << shift) as i64 >> shift);
        }
        i128::from(bits)
    }

    fn bits(self, bytes: &[u8]) -> u64 {
        let mut word = [0; 8];
        let count = self.size().min(bytes.len());
        word[..count].copy_from_slice(&bytes[..count]);
        u64::from_le_bytes(word)
    }

    /// The element as text, which [`Element::parse`] reads back.
    pub fn show(self, bytes: &[u8]) -> String {
        let value = self.to_f64(bytes);
        // Beyond these a number has more zeros than digits.
        let long = self.is_float() && value.is_finite() && value != 0.0 && !(1e-5..1e16).contains(&value.abs());
        match self {
            E::F32 if long => format!("{:e}", value as f32),
            E::F32 => (value as f32).to_string(),
            _ if long => format!("{value:e}"),
            _ if self.is_float() => value.to_string(),
            _ => self.to_i128(bytes).to_string(),
        }
    }
}

/// The size of a decimal number, to compare: where its point lies, in front of the first digit that is not 0, and the
/// digits. None when it is 0 or no number.
fn decimal(text: &str) -> Option<(i64, String)> {
    let text = text.trim_start_matches(['-', '+']);
    let (digits, exponent) = match text.split_once(['e', 'E']) {
        Some((digits, exponent)) => (digits, exponent.parse::<i64>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{fraction}");
    if !all.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let significant = all.trim_start_matches('0');
    let zeros = (all.len() - significant.len()) as i64;
    let point = (whole.len() as i64 - zeros).checked_add(exponent)?;
    let significant = significant.trim_end_matches('0');
    (!significant.is_empty()).then(|| (point, significant.to_owned()))
}

/// Nearest, ties to even.
fn to_half(value: f64) -> u16 {
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    let value = value.abs();
    if value.is_nan() {
        return sign | 0x7e00;
    }
    // Half of the last place above 65504 rounds to infinity.
    if value >= 65520.0 {
        return sign | 0x7c00;
    }
    if value < 2f64.powi(-14) {
        return sign | (value * 2f64.powi(24)).round_ties_even() as u16;
    }
    let exponent = (value.to_bits() >> 52) as i32 - 1023;
    let fraction = (value * 2f64.powi(10 - exponent)).round_ties_even() as u16;
    // A fraction that rounds up to 2048 carries into the exponent.
    sign | (((exponent + 14) as u16) << 10).wrapping_add(fraction)
}

/// Nearest, ties to even, in one step: by way of a single it would be rounded twice.
fn to_bf16(value: f64) -> u16 {
    let single = value as f32;
    let bits = single.to_bits();
    if value.is_nan() {
        return (bits >> 16) as u16 | 0x40;
    }
    // A single whose last bit is set when it is not exact rounds as the double does.
    let exact = f64::from(single);
    let bits = match () {
        _ if single.is_infinite() || exact == value => bits,
        _ if exact.abs() > value.abs() => (bits - 1) | 1,
        _ => bits | 1,
    };
    (bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_comes_back() {
        for bits in 0..=u16::MAX {
            let value = half(bits);
            if !value.is_nan() {
                assert_eq!(to_half(value), bits, "{value}");
            }
        }
        assert_eq!(to_half(1.0 + 2f64.powi(-11)), 0x3c00, "a tie goes to even");
        assert_eq!(to_half(1.0 + 3.0 * 2f64.powi(-11)), 0x3c02);
        assert_eq!((to_half(65519.9), to_half(65520.0)), (0x7bff, 0x7c00));
        assert_eq!(to_bf16(1.0 + 2f64.powi(-8)), 0x3f80);
        assert_eq!(to_bf16(1.0 + 3.0 * 2f64.powi(-8)), 0x3f82);
    }

    #[test]
    fn floats_from_text() {
        // Halfway between two singles but for its last digits, which a double has lost.
        let tie = "1.00000005960464477540";
        assert_eq!(E::F32.parse(tie).unwrap(), tie.parse::<f32>().unwrap().to_le_bytes());
        assert_ne!(E::F32.parse(tie).unwrap(), E::F32.float_bytes(tie.parse().unwrap()));
        // Halfway between two but for digits that a double or a single has lost.
        let bits = |element: E, text: &str| u16::from_le_bytes(element.parse(text).unwrap().try_into().unwrap());
        for (element, text, expected) in [
            (E::F16, "1.00048828125", 0x3c00),
            (E::F16, "1.00048828125000000000001", 0x3c01),
            (E::F16, "-1.00048828125000000000001", 0xbc01),
            (E::F16, "1.00146484374999999999999", 0x3c01),
            (E::F16, "0.00100048828125000000000001e3", 0x3c01),
            (E::F16, "2.98023223876953125e-8", 0),
            (E::F16, "2.980232238769531250000001e-8", 1),
            (E::Bf16, "1.00390625", 0x3f80),
            (E::Bf16, "1.0039063", 0x3f81),
            (E::Bf16, "1.00390625000000000000001", 0x3f81),
            (E::Bf16, "1.01171874999999999999999", 0x3f81),
            (E::Bf16, "-1.0117187", 0xbf81),
        ] {
            assert_eq!(bits(element, text), expected, "{} {text}", element.name());
        }
        for (element, text) in [(E::F16, "65520"), (E::F32, "1e39"), (E::F64, "1e309"), (E::Bf16, "-1e39")] {
            assert!(element.parse(text).unwrap_err().contains("infinite"), "{text}");
        }
        for text in ["inf", "-Infinity", "+inf", "65504"] {
            assert!(E::F16.parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn text_comes_back() {
        for (element, text) in [
            (E::I8, "-128"),
            (E::U64, "18446744073709551615"),
            (E::I64, "-9223372036854775808"),
            (E::F32, "0.1"),
            (E::F64, "0.1"),
            (E::F16, "0.5"),
            (E::Bf16, "-2"),
            (E::F32, "NaN"),
            (E::F64, "-inf"),
            (E::F64, "1e300"),
            (E::F64, "-2.5e-300"),
            (E::F32, "3.4028235e38"),
            (E::F64, "0"),
        ] {
            assert_eq!(element.show(&element.parse(text).unwrap()), text, "{}", element.name());
        }
    }
}

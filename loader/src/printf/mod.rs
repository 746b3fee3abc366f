//! Device `printf` as OpenCL and HIP compile it (LLVM AMDGPUUsage, "amdhsa.printf").
//!
//! The compiler leaves the format strings in the metadata and has the device write records to a buffer that the host
//! reads after the kernel: [`Channel`]. OpenCL's records start with the number of their format ([`opencl`]), those of
//! HIP's buffered form with their size and a hash of their format ([`words`], which hostcall shares).

mod channel;
mod formats;
pub mod opencl;
mod readings;
pub mod words;

pub use channel::Channel;
pub use formats::{Formats, FormatsError};

use crate::format::{Amount, Length, Piece, Spec};

/// A dword the device never wrote: what the host fills the buffer with before a kernel.
pub const UNWRITTEN: u32 = 0xf5a7_c3e9;

/// What is not certain about a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Doubts {
    /// Conversions without an argument, which are written as they stand in the format.
    pub missing: usize,
    /// Those of them that belong to a format with a `*`.
    pub starred: usize,
    /// Records that may as well be read in another way.
    pub ambiguous: usize,
}

impl std::ops::AddAssign for Doubts {
    fn add_assign(&mut self, other: Doubts) {
        self.missing += other.missing;
        self.starred += other.starred;
        self.ambiguous += other.ambiguous;
    }
}

impl Doubts {
    /// Of one record.
    fn new(pieces: &[Piece], missing: usize, is_ambiguous: bool) -> Doubts {
        let has_star = pieces.iter().any(|piece| matches!(piece, Piece::Spec(spec) if spec.stars() > 0));
        Doubts { missing, starred: if has_star { missing } else { 0 }, ambiguous: is_ambiguous.into() }
    }

    /// A line on each for the user.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let plural = |count| if count == 1 { "" } else { "s" };
        if self.missing > 0 {
            let why = match self.starred {
                0 => "",
                _ => " (compilers drop or mistake the last arguments of a format with '*')",
            };
            let (count, s) = (self.missing, plural(self.missing));
            notes.push(format!(
                "printf: {count} conversion{s} without an argument in the record, printed as in the format{why}"
            ));
        }
        if self.ambiguous > 0 {
            let (count, s) = (self.ambiguous, plural(self.ambiguous));
            notes.push(format!(
                "printf: {count} record{s} can be read in more than one way: a null pointer for %s leaves nothing in a \
                 record, and which string it was is not certain"
            ));
        }
        notes
    }
}

/// The text of a conversion, for one that has no argument.
fn source(spec: &Spec) -> Vec<u8> {
    let amount = |amount: Amount| match amount {
        Amount::Fixed(value) => value.to_string(),
        Amount::Argument => "*".to_owned(),
    };
    let mut text = format!("%{}", spec.flags);
    text.extend(spec.width.map(amount));
    if let Some(precision) = spec.precision {
        text.push('.');
        text.push_str(&amount(precision));
    }
    if spec.vector > 1 {
        text.push_str(&format!("v{}", spec.vector));
    }
    text.push_str(&match spec.length {
        Length::None => String::new(),
        Length::Char => "hh".to_owned(),
        Length::Short => "h".to_owned(),
        Length::Long => "l".to_owned(),
        Length::LongLong => "ll".to_owned(),
        Length::Word => "z".to_owned(),
        Length::HalfLong => "hl".to_owned(),
        Length::LongDouble => "L".to_owned(),
        Length::Bits(bits) => format!("w{bits}"),
        Length::FastBits(bits) => format!("wf{bits}"),
    });
    text.push(spec.conversion as char);
    text.into_bytes()
}

/// A half-precision number (IEEE 754 binary16).
pub(crate) fn half(bits: u16) -> f64 {
    let sign = if bits & 0x8000 != 0 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    sign * match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::parse;

    #[test]
    fn conversions_give_their_source_back() {
        for text in ["%d", "%-+5.*hhx", "%*.3f", "%v4hlf", "%llu", "%p"] {
            let Piece::Spec(spec) = &parse(text.as_bytes())[0] else { panic!("{text} is a conversion") };
            assert_eq!(String::from_utf8(source(spec)).unwrap(), text);
        }
    }

    #[test]
    fn halves() {
        for (bits, value) in [(0x3c00, 1.0), (0xc000, -2.0), (0x7bff, 65504.0), (0x0001, 2f64.powi(-24)), (0, 0.0)] {
            assert_eq!(half(bits), value, "{bits:#x}");
        }
        assert!(half(0x7c00).is_infinite() && half(0x7e00).is_nan());
    }
}

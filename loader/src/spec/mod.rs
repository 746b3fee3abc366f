//! Kernel arguments as text, checked against the metadata before anything is launched.
//!
//! | text | argument |
//! |---|---|
//! | `5`, `-3`, `0x10`, `1.5`, `true` | a number of the type that the metadata has |
//! | `u32:5`, `f16:1.5`, `i32x4:1,2,3,4` | a number or a vector of a given type |
//! | `hex:0a0b0c0d` | bytes, as for a structure |
//! | `f32[1024]`, `f32[1024]=iota` | a buffer, of zeros or as said |
//! | `null`, `ptr:0x7f0000000000` | an address |
//! | `local:256` | LDS bytes for a `dynamic_shared_pointer` |
//!
//! Types are `i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 f64`. A buffer starts as `zeros`, `iota`, `fill:VALUE`,
//! `rand:SEED` (integers over their range, floats in 0 to 1), `1,2,3` or `@FILE` (NumPy's `.npy`, else raw bytes). `in:` in front
//! of a buffer says that the kernel must leave it as it is, `out:` that its contents are wanted.

mod buffer;
mod check;
mod compare;
mod element;
pub mod npy;

pub use buffer::{BufferSpec, Contents, Direction, Init, enough};
pub use check::{CheckError, Numbered, check, describe, numbered, show, types};
pub use compare::{Differences, Tolerance, compare};
pub use element::Element;

use std::str::FromStr;

/// An argument as written.
#[derive(Clone, Debug, PartialEq)]
pub struct ArgSpec {
    /// The text.
    pub text: String,
    /// What it says.
    pub what: What,
}

/// Kinds of arguments.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A number without a type.
    Number,
    /// `true` or `false`.
    Truth(bool),
    /// Values of a type.
    Typed {
        /// Type.
        element: Element,
        /// Elements.
        count: usize,
        /// Their bytes.
        bytes: Vec<u8>,
    },
    /// Bytes.
    Bytes(Vec<u8>),
    /// A buffer.
    Buffer(BufferSpec),
    /// An address.
    Address(u64),
    /// LDS bytes.
    Local(u32),
}

impl FromStr for ArgSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<ArgSpec, String> {
        Ok(ArgSpec { text: text.to_owned(), what: parse(text)? })
    }
}

fn parse(text: &str) -> Result<What, String> {
    match text {
        "null" => return Ok(What::Address(0)),
        "true" => return Ok(What::Truth(true)),
        "false" => return Ok(What::Truth(false)),
        _ => {}
    }
    if let Some(address) = text.strip_prefix("ptr:") {
        return Ok(What::Address(unsigned(address)?));
    }
    if let Some(size) = text.strip_prefix("local:") {
        let size = unsigned(size)?;
        return u32::try_from(size).map(What::Local).map_err(|_| format!("local:{size} is more than 32 bits of bytes"));
    }
    if let Some(digits) = text.strip_prefix("hex:") {
        return hex(digits).map(What::Bytes);
    }
    if text.contains('[') {
        return text.parse().map(What::Buffer);
    }
    if let Some((name, values)) = text.split_once(':') {
        let (element, count) = match name.split_once('x') {
            Some((element, count)) => (element, count.parse::<usize>().ok().filter(|count| (1..=16).contains(count))),
            None => (name, Some(1)),
        };
        let (Some(element), Some(count)) = (Element::from_name(element), count) else {
            return Err(format!("'{name}' is not a type: types are {}, with xN for a vector", Element::names()));
        };
        let bytes = element.parse_list(values)?;
        if bytes.len() != count * element.size() {
            return Err(format!("{} values are given for {name}", bytes.len() / element.size()));
        }
        return Ok(What::Typed { element, count, bytes });
    }
    if text.parse::<f64>().is_ok() || integer(text).is_ok() {
        return Ok(What::Number);
    }
    Err(format!(
        "'{text}' is not an argument: write a number, TYPE:VALUE, hex:BYTES, TYPE[N]=CONTENTS, null, ptr:ADDRESS or local:BYTES"
    ))
}

/// Decimal or hexadecimal, perhaps negative.
pub fn integer(text: &str) -> Result<i128, String> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let value = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => digits.parse::<u64>(),
    };
    value.map(|value| sign * i128::from(value)).map_err(|_| format!("'{text}' is not a whole number of 64 bits"))
}

/// Decimal or hexadecimal.
pub fn unsigned(text: &str) -> Result<u64, String> {
    u64::try_from(integer(text)?).map_err(|_| format!("'{text}' is negative"))
}

/// Bytes in hexadecimal, in the order of memory; `_` separates.
pub fn hex(text: &str) -> Result<Vec<u8>, String> {
    let digits: Vec<u32> = text
        .chars()
        .filter(|c| *c != '_')
        .map(|c| c.to_digit(16).ok_or_else(|| format!("'{c}' is not a hexadecimal digit")))
        .collect::<Result<_, _>>()?;
    if !digits.len().is_multiple_of(2) {
        return Err(format!("{} hexadecimal digits are not whole bytes", digits.len()));
    }
    Ok(digits.chunks_exact(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        let what = |text: &str| text.parse::<ArgSpec>().map(|spec| spec.what);
        assert_eq!(what("5"), Ok(What::Number));
        assert_eq!(what("-1.5e3"), Ok(What::Number));
        assert_eq!(what("0x10"), Ok(What::Number));
        assert_eq!(what("null"), Ok(What::Address(0)));
        assert_eq!((what("true"), what("false")), (Ok(What::Truth(true)), Ok(What::Truth(false))));
        assert_eq!(what("ptr:0x1000"), Ok(What::Address(4096)));
        assert_eq!(what("local:256"), Ok(What::Local(256)));
        assert_eq!(what("hex:0a_ff"), Ok(What::Bytes(vec![10, 255])));
        let typed = |element, count, bytes: &[u8]| Ok(What::Typed { element, count, bytes: bytes.to_vec() });
        assert_eq!(what("i16:-2"), typed(Element::I16, 1, &[0xfe, 0xff]));
        assert_eq!(what("u8x4:1,2,3,4"), typed(Element::U8, 4, &[1, 2, 3, 4]));
        assert_eq!(what("bf16:1"), typed(Element::Bf16, 1, &[0x80, 0x3f]));
        for bad in [
            "",
            "x",
            "u8:256",
            "u8:-1",
            "i8:128",
            "f32:x",
            "u32x4:1,2",
            "q8:1",
            "hex:0",
            "hex:zz",
            "local:-1",
            "ptr:",
            "u8x99:1",
        ] {
            assert!(what(bad).is_err(), "{bad}");
        }
    }
}

//! Arguments in 8-byte words, as HIP's buffered `printf` and hostcall send them: integers and pointers zero-extended,
//! floats as doubles, strings with their NUL and padded to 8 bytes.

use super::{source, stars};
use crate::format::{Piece, Value, parse, render};

/// Renders a format. A conversion without an argument is written as it stands; their number is returned.
pub fn format(pieces: &[Piece], arguments: &[u8], out: &mut Vec<u8>) -> usize {
    let mut at = 0;
    let mut missing = 0;
    for piece in pieces {
        let spec = match piece {
            Piece::Text(text) => {
                out.extend_from_slice(text);
                continue;
            }
            Piece::Spec(spec) => spec,
        };
        let mut argument = || -> Option<(Vec<i32>, Value)> {
            let mut star = Vec::new();
            for _ in 0..stars(spec) {
                star.push(word(arguments, &mut at)? as i32);
            }
            let value = if spec.is_string() {
                Value::Text(Some(string(arguments, &mut at)?))
            } else if spec.is_float() {
                Value::Float(f64::from_bits(word(arguments, &mut at)?))
            } else {
                Value::Bits(word(arguments, &mut at)?)
            };
            Some((star, value))
        };
        match argument() {
            Some((star, value)) => render(spec, &star, &value, out),
            None => {
                out.extend(source(spec));
                missing += 1;
            }
        }
    }
    missing
}

/// A format string and its arguments, one after the other.
pub fn message(bytes: &[u8], out: &mut Vec<u8>) -> usize {
    let mut at = 0;
    match string(bytes, &mut at) {
        Some(text) => format(&parse(&text), bytes.get(at..).unwrap_or_default(), out),
        None => 0,
    }
}

fn word(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let word = bytes.get(*at..)?.first_chunk::<8>()?;
    *at += 8;
    Some(u64::from_le_bytes(*word))
}

/// A string up to its NUL; a missing NUL ends it where the bytes end.
fn string(bytes: &[u8], at: &mut usize) -> Option<Vec<u8>> {
    let rest = bytes.get(*at..).filter(|rest| !rest.is_empty())?;
    let length = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
    *at += (length + 1).next_multiple_of(8);
    Some(rest[..length].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_strings() {
        let arguments = [
            &5u64.to_le_bytes()[..],
            &0xffff_ffffu64.to_le_bytes(),
            b"seven77\0",
            b"eight888\0\0\0\0\0\0\0\0",
            &1.5f64.to_le_bytes(),
        ]
        .concat();
        let mut out = Vec::new();
        assert_eq!(format(&parse(b"%*d %s %s %f %%|%x"), &arguments, &mut out), 1);
        assert_eq!(String::from_utf8(out).unwrap(), "   -1 seven77 eight888 1.500000 %|%x");
    }

    #[test]
    fn lengths_characters_and_the_count_that_is_not_stored() {
        let words = [0x1ffu64, 0x1_ffff_ffff, 0x1_ffff_ffff, 65, 0x7f00_0000_0000, 7, 0, 9];
        let arguments: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut out = Vec::new();
        assert_eq!(format(&parse(b"%hhd %d %lld %c%n %zu [%s] %d"), &arguments, &mut out), 0);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "-1 -1 8589934591 A 7 [] 9",
            "%n takes a word; a null string is empty"
        );
    }

    #[test]
    fn a_message_starts_with_its_format() {
        let mut out = Vec::new();
        assert_eq!(message(&[&b"n=%d\n\0\0\0"[..], &7u64.to_le_bytes()].concat(), &mut out), 0);
        assert_eq!(out, b"n=7\n");
        for junk in [&b""[..], b"%s", &[0xff; 9]] {
            message(junk, &mut Vec::new());
        }
    }
}

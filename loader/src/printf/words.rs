//! Arguments in 8-byte words, as HIP's buffered `printf` and hostcall send them: integers and pointers zero-extended,
//! floats as doubles, strings with their NUL and padded to 8 bytes.
//!
//! A null pointer for `%s` is a word of zero over hostcall. In a record of the buffer it takes no bytes, so that only
//! the record's length says that a string is missing, and which one may stay open: "abc" and null for `%s %s` look
//! like null and "abc". A record is read so that its arguments take its length (`Readings`). Of several readings
//! the one with the fewest unlikely arguments is taken, then the one with the fewest null pointers. Unlikely are
//! strings with control characters or what is not UTF-8, strings behind whose NUL there is neither zero nor what the
//! buffer was filled with, and integers of at most 32 bits with bits above. A tie is reported.

use super::readings::{Form, Readings};
use super::{Doubts, UNWRITTEN, source};
use crate::format::{Length, Piece, Spec, Value, parse, render};

/// What a null pointer for `%s` sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Null {
    /// A word of zero, as the empty string: hostcall.
    Word,
    /// Nothing: the printf buffer.
    Nothing,
}

/// Renders a format.
pub fn format(pieces: &[Piece], arguments: &[u8], null: Null, out: &mut Vec<u8>) -> Doubts {
    let (nulls, is_ambiguous) = match null {
        Null::Nothing => null_strings(pieces, arguments),
        Null::Word => Default::default(),
    };
    let mut nulls = nulls.into_iter();
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
            for _ in 0..spec.stars() {
                star.push(word(arguments, &mut at)? as i32);
            }
            let value = if spec.is_string() {
                let is_null = nulls.next().unwrap_or(false);
                Value::Text(if is_null { None } else { Some(string(arguments, &mut at)?) })
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
    Doubts::new(pieces, missing, is_ambiguous)
}

/// A format string and its arguments, one after the other.
pub fn message(bytes: &[u8], null: Null, out: &mut Vec<u8>) -> Doubts {
    let mut at = 0;
    match string(bytes, &mut at) {
        Some(text) => format(&parse(&text), bytes.get(at..).unwrap_or_default(), null, out),
        None => Doubts::default(),
    }
}

/// For each string of a record, whether it is a null pointer, and whether another reading is as likely. None is where
/// no reading takes the record's length, as when `printf` was given more arguments than its format takes.
fn null_strings(pieces: &[Piece], arguments: &[u8]) -> (Vec<bool>, bool) {
    let specs = || crate::format::specs(pieces);
    if !specs().any(Spec::is_string) {
        return Default::default();
    }
    // Behind the last NUL there is no string, and nobody looks for one again and again.
    let last_nul = arguments.iter().rposition(|byte| *byte == 0).unwrap_or(0);
    let high = |at: usize| word(arguments, &mut { at }).is_some_and(|word| word >> 32 != 0);
    let mut readings = Readings::new();
    for spec in specs() {
        (0..spec.stars()).for_each(|_| readings.argument(8, high));
        if spec.is_string() {
            let stored = |at| if at <= last_nul { stored(arguments, at) } else { None };
            readings.string(|at| [stored(at), Some(Form { bytes: 0, is_unlikely: false })]);
        } else {
            let is_narrow = matches!(spec.length, Length::None | Length::Char | Length::Short)
                && b"cdiouxX".contains(&spec.conversion);
            readings.argument(8, |at| is_narrow && high(at));
        }
    }
    readings.end(arguments.len()).map(|reading| (reading.forms, reading.is_tied)).unwrap_or_default()
}

/// A string at a byte of a record.
fn stored(arguments: &[u8], at: usize) -> Option<Form> {
    let rest = arguments.get(at..)?;
    let length = rest.iter().position(|byte| *byte == 0)?;
    let bytes = (length + 1).next_multiple_of(8);
    let padding = rest.get(length..bytes)?.get(1..)?;
    let unwritten = UNWRITTEN.to_le_bytes();
    let is_unwritten = (at + length + 1..).zip(padding).all(|(at, byte)| *byte == unwritten[at % 4]);
    let is_padded = is_unwritten || padding.iter().all(|byte| *byte == 0);
    let is_control = |byte: &u8| byte.is_ascii_control() && !byte.is_ascii_whitespace() && *byte != 0x1b;
    let text = &rest[..length];
    let is_text = std::str::from_utf8(text).is_ok() && !text.iter().any(is_control);
    Some(Form { bytes, is_unlikely: !is_padded || !is_text })
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
        assert_eq!(format(&parse(b"%*d %s %s %f %%|%x"), &arguments, Null::Word, &mut out).missing, 1);
        assert_eq!(String::from_utf8(out).unwrap(), "   -1 seven77 eight888 1.500000 %|%x");
    }

    #[test]
    fn lengths_characters_and_the_count_that_is_not_stored() {
        let words = [0x1ffu64, 0x1_ffff_ffff, 0x1_ffff_ffff, 65, 0x7f00_0000_0000, 7, 0, 9];
        let arguments: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut out = Vec::new();
        assert_eq!(format(&parse(b"%hhd %d %lld %c%n %zu [%s] %d"), &arguments, Null::Word, &mut out).missing, 0);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "-1 -1 8589934591 A 7 [] 9",
            "%n takes a word; a null string is empty over hostcall"
        );
    }

    #[test]
    fn a_message_starts_with_its_format() {
        let mut out = Vec::new();
        assert_eq!(
            message(&[&b"n=%d\n\0\0\0"[..], &7u64.to_le_bytes()].concat(), Null::Nothing, &mut out),
            Doubts::default()
        );
        assert_eq!(out, b"n=7\n");
        for junk in [&b""[..], b"%s", &[0xff; 9]] {
            message(junk, Null::Word, &mut Vec::new());
            message(junk, Null::Nothing, &mut Vec::new());
        }
    }

    /// What a format prints in the buffer's form, where each argument is the bytes it takes.
    fn record(text: &str, arguments: &[&[u8]]) -> (String, Doubts) {
        let mut out = Vec::new();
        let doubts = format(&parse(text.as_bytes()), &arguments.concat(), Null::Nothing, &mut out);
        (String::from_utf8_lossy(&out).into_owned(), doubts)
    }

    /// A string that was copied up to its NUL.
    fn copied(text: &str) -> Vec<u8> {
        let mut bytes = [text.as_bytes(), &[0]].concat();
        while bytes.len() % 8 != 0 {
            bytes.push(UNWRITTEN.to_le_bytes()[bytes.len() % 4]);
        }
        bytes
    }

    #[test]
    fn a_null_string_takes_no_bytes_of_a_record() {
        let (null, five, certain) = (&[][..], &5u64.to_le_bytes()[..], Doubts::default());
        assert_eq!(record("%s|", &[null]), ("(null)|".into(), certain));
        assert_eq!(record("[%s] %d", &[null, five]), ("[(null)] 5".into(), certain));
        assert_eq!(record("[%s] %d", &[&copied(""), five]), ("[] 5".into(), certain));
        assert_eq!(record("%d %s %d %s", &[five, null, five, b"eight888\0\0\0\0\0\0\0\0"]).0, "5 (null) 5 eight888");
        assert_eq!(
            record("%d %s %d %s", &[five, &copied("seventeen letters"), five, null]).0,
            "5 seventeen letters 5 (null)"
        );
        assert_eq!(record("%s %d %s", &[null, five, b"x\0\0\0\0\0\0\0"]), ("(null) 5 x".into(), certain));
        assert_eq!(record("%s %d %s", &[&copied("x"), five, null]), ("x 5 (null)".into(), certain));
        let text = "[%s] [%*s] [%.*s] %p %s";
        assert_eq!(record(text, &[null, five, null, five, null, five, null]).0, "[(null)] [(null)] [(null] 0x5 (null)");
        let float = 1.1f64.to_le_bytes();
        assert_eq!(record("%s %f %s", &[&copied("a"), &float, &copied("b")]), ("a 1.100000 b".into(), certain));
    }

    #[test]
    fn which_of_two_strings_is_null_is_told_to_be_open() {
        let open = Doubts { ambiguous: 1, ..Doubts::default() };
        assert_eq!(record("%s %s", &[&[], &copied("abc")]), ("abc (null)".into(), open));
        assert_eq!(record("%s %s", &[&copied("ab"), &copied("abc")]), ("ab abc".into(), Doubts::default()));
        assert_eq!(record("%s %s", &[&[], &[]]), ("(null) (null)".into(), Doubts::default()));
    }

    #[test]
    fn arguments_beyond_the_format_are_left_alone() {
        assert_eq!(record("%s|", &[&copied("abc"), &[5, 0, 0, 0, 0, 0, 0, 0]]), ("abc|".into(), Doubts::default()));
    }

    proptest::proptest! {
        #[test]
        fn records_read_as_they_were_stored(
            arguments in proptest::collection::vec(proptest::option::of("[a-z]{0,20}"), 1..12), is_copied: bool,
        ) {
            let (mut text, mut expected, mut bytes) = (String::new(), String::new(), Vec::new());
            for argument in &arguments {
                match argument {
                    Some(argument) if is_copied => bytes.push(copied(argument)),
                    Some(argument) => {
                        let size = (argument.len() + 1).next_multiple_of(8);
                        bytes.push(format!("{argument:\0<size$}").into_bytes());
                    }
                    None => bytes.push(0x4443_4241u64.to_le_bytes().to_vec()),
                }
                text += if argument.is_some() { "[%s]" } else { "<%x>" };
                expected += &argument.as_ref().map_or("<44434241>".to_owned(), |argument| format!("[{argument}]"));
            }
            let bytes: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
            proptest::prop_assert_eq!(record(&text, &bytes).0, expected);
        }
    }
}

//! The text of topology files: `key value` lines of unsigned decimal numbers, or a single number.

/// What is wrong with the text of a topology file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// A line is not a key, one space and a number.
    #[error("line {line}: {text:?} is not `key value`")]
    Line {
        /// Line, from 1.
        line: usize,
        /// Its text.
        text: String,
    },
    /// A number is not unsigned decimal, or does not fit 64 bits.
    #[error("{key}: {text:?} is not an unsigned decimal number of 64 bits")]
    Number {
        /// Key, empty for a file that is one number.
        key: String,
        /// Its text.
        text: String,
    },
    /// A number does not fit what it counts.
    #[error("{key}: {value} is too large, {max} is the most")]
    Range {
        /// Key, empty for a file that is one number.
        key: String,
        /// Value.
        value: u64,
        /// Greatest value.
        max: u64,
    },
    /// A key is there twice.
    #[error("{key} is there twice")]
    Duplicate {
        /// Key.
        key: String,
    },
    /// The file is not text.
    #[error("not text")]
    NotText,
}

/// The number in a file that holds one.
pub fn number(bytes: &[u8]) -> Result<u64, ParseError> {
    let text = std::str::from_utf8(bytes).map_err(|_| ParseError::NotText)?;
    decimal("", text.trim_end())
}

/// A number of 32 bits in a file that holds one.
pub fn number_u32(bytes: &[u8]) -> Result<u32, ParseError> {
    let value = number(bytes)?;
    u32::try_from(value).map_err(|_| ParseError::Range { key: String::new(), value, max: u32::MAX.into() })
}

/// The lines of a properties file in their order.
pub fn lines(bytes: &[u8]) -> Result<Vec<(&str, u64)>, ParseError> {
    let text = std::str::from_utf8(bytes).map_err(|_| ParseError::NotText)?;
    let mut found: Vec<(&str, u64)> = Vec::new();
    for (i, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let malformed = || ParseError::Line { line: i + 1, text: line.to_string() };
        let (key, value) = line.split_once(' ').ok_or_else(malformed)?;
        if key.is_empty() {
            return Err(malformed());
        }
        if found.iter().any(|(other, _)| *other == key) {
            return Err(ParseError::Duplicate { key: key.to_string() });
        }
        found.push((key, decimal(key, value.trim())?));
    }
    Ok(found)
}

/// A number that has to be decimal digits only: what `str::parse` takes besides, a plus sign, the kernel never prints.
fn decimal(key: &str, text: &str) -> Result<u64, ParseError> {
    let number = || ParseError::Number { key: key.to_string(), text: text.to_string() };
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(number());
    }
    text.parse().map_err(|_| number())
}

/// A value that a properties file's key can have.
pub(super) trait Value: Sized {
    fn from_u64(key: &str, value: u64) -> Result<Self, ParseError>;
}

impl Value for u64 {
    fn from_u64(_key: &str, value: u64) -> Result<u64, ParseError> {
        Ok(value)
    }
}

impl Value for u32 {
    fn from_u64(key: &str, value: u64) -> Result<u32, ParseError> {
        u32::try_from(value).map_err(|_| ParseError::Range { key: key.to_string(), value, max: u32::MAX.into() })
    }
}

/// Writes the type of a properties file: one optional member a key, absent being none and never 0. A key that is not
/// its member's name follows it: `name = "key": type`.
macro_rules! properties {
    ($(#[$meta:meta])* $name:ident { $($(#[$key_meta:meta])* $key:ident $(= $text:literal)?: $ty:ty,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$key_meta])* pub $key: Option<$ty>,)*
            /// Lines with keys not known here, in their order.
            pub other: Vec<(String, u64)>,
        }

        impl $name {
            /// Reads the file's text. Keys may be missing and unknown ones are kept; a line, number or range that
            /// cannot be is an error.
            pub fn parse(bytes: &[u8]) -> Result<$name, $crate::topology::ParseError> {
                let mut properties = $name::default();
                for (key, value) in $crate::topology::parse::lines(bytes)? {
                    $(if key == properties!(@key $key $($text)?) {
                        properties.$key = Some($crate::topology::parse::Value::from_u64(key, value)?);
                        continue;
                    })*
                    properties.other.push((key.to_string(), value));
                }
                Ok(properties)
            }

            /// The lines that are there, known keys first.
            pub fn lines(&self) -> Vec<(&str, u64)> {
                let mut lines = Vec::new();
                $(if let Some(value) = self.$key {
                    lines.push((properties!(@key $key $($text)?), u64::from(value)));
                })*
                lines.extend(self.other.iter().map(|(key, value)| (key.as_str(), *value)));
                lines
            }
        }
    };
    (@key $key:ident) => { stringify!($key) };
    (@key $key:ident $text:literal) => { $text };
}

pub(super) use properties;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_and_numbers() {
        assert_eq!(lines(b"a 1\nb 18446744073709551615\n\n"), Ok(vec![("a", 1), ("b", u64::MAX)]));
        assert_eq!(number(b"2\n"), Ok(2));
        assert_eq!(lines(b""), Ok(vec![]));
    }

    #[test]
    fn what_cannot_be() {
        let error = |bytes: &[u8]| lines(bytes).unwrap_err().to_string();
        assert_eq!(error(b"a 1\nb\n"), "line 2: \"b\" is not `key value`");
        assert_eq!(error(b" 1\n"), "line 1: \" 1\" is not `key value`");
        for value in ["-1", "+1", "0x10", "1 2", "18446744073709551616"] {
            let text = error(format!("a {value}\n").as_bytes());
            assert_eq!(text, format!("a: {value:?} is not an unsigned decimal number of 64 bits"));
        }
        assert_eq!(error(b"a 1\na 1\n"), "a is there twice");
        assert_eq!(error(b"a \xff"), "not text");
        assert_eq!(
            number_u32(b"4294967296").unwrap_err().to_string(),
            ": 4294967296 is too large, 4294967295 is the most"
        );
        assert!(number(b"").is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_handled(bytes: Vec<u8>) {
            let _ = lines(&bytes);
            let _ = number_u32(&bytes);
        }
    }
}

//! The strings a program gets: argv and envp as one block of memory.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// An array of pointers, the last one null, and the strings they point to, packed one after the other.
#[derive(Debug, Default)]
pub struct Strings {
    strings: Vec<Vec<u8>>,
}

impl Strings {
    /// The strings, each without a NUL: what follows one inside an argument cannot reach the program.
    pub fn new<S: AsRef<OsStr>>(strings: impl IntoIterator<Item = S>) -> Strings {
        let cut = |text: S| {
            let bytes = text.as_ref().as_bytes();
            bytes[..bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len())].to_vec()
        };
        Strings { strings: strings.into_iter().map(cut).collect() }
    }

    /// Strings.
    pub fn len(&self) -> usize {
        self.strings.len()
    }

    /// Bytes of the block.
    pub fn size(&self) -> u64 {
        let bytes: usize = self.strings.iter().map(|string| string.len() + 1).sum();
        (8 * (self.strings.len() + 1) + bytes) as u64
    }

    /// The block for device address `va`, 8-byte aligned.
    pub fn block(&self, va: u64) -> Vec<u8> {
        let mut at = va + 8 * (self.strings.len() as u64 + 1);
        let mut block = Vec::new();
        for string in &self.strings {
            block.extend_from_slice(&at.to_le_bytes());
            at += string.len() as u64 + 1;
        }
        block.extend_from_slice(&0u64.to_le_bytes());
        for string in &self.strings {
            block.extend_from_slice(string);
            block.push(0);
        }
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_then_strings() {
        let strings = Strings::new(["ab", "", "c\0d"]);
        let block = strings.block(0x1000);
        assert_eq!(block.len() as u64, strings.size());
        let pointer = |index: usize| u64::from_le_bytes(block[8 * index..8 * index + 8].try_into().unwrap());
        assert_eq!((pointer(0), pointer(1), pointer(2), pointer(3)), (0x1020, 0x1023, 0x1024, 0));
        assert_eq!(&block[32..], b"ab\0\0c\0");
        assert_eq!(Strings::default().block(0), [0; 8]);
    }
}

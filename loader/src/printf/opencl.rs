//! Records of OpenCL's `printf`: a dword with the format's id, then the arguments, each a multiple of 4 bytes and not
//! aligned further (LLVM AMDGPUPrintfRuntimeBinding).

use super::{UNWRITTEN, half, source, stars};
use crate::format::{Piece, Spec, Value, render};

/// A format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// Bytes of each argument in a record.
    pub sizes: Vec<u32>,
    /// The format, taken apart.
    pub pieces: Vec<Piece>,
}

impl Format {
    /// Bytes of a record, the id included.
    pub fn record_bytes(&self) -> u64 {
        4 + self.sizes.iter().map(|size| u64::from(*size)).sum::<u64>()
    }

    /// Renders a record's arguments. A conversion without an argument is written as it stands in the format; their
    /// number is returned.
    pub fn render(&self, arguments: &[u8], out: &mut Vec<u8>) -> usize {
        let (long_strings, short_left) = self.short_strings(arguments);
        let mut reader = Reader { data: arguments, at: 0, sizes: self.sizes.iter().copied(), long_strings, short_left };
        let mut missing = 0;
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text),
                Piece::Spec(spec) => {
                    if reader.conversion(spec, out).is_none() {
                        out.extend(source(spec));
                        missing += 1;
                    }
                }
            }
        }
        missing
    }

    /// String arguments that may be 4 bytes shorter in the record than their size says, and how many of them are.
    ///
    /// LLVM 19 to 22 count a string's NUL, `align4(length + 1)`, but store no NUL where the length is a multiple of 4.
    /// All later arguments then lie 4 bytes earlier and the record's last dwords stay unwritten, one for each such string.
    fn short_strings(&self, arguments: &[u8]) -> (usize, usize) {
        let unwritten = UNWRITTEN.to_le_bytes();
        let end = arguments.rchunks_exact(4).take_while(|dword| **dword == unwritten).count();
        let mut sizes = self.sizes.iter();
        let mut long = 0;
        for piece in &self.pieces {
            let Piece::Spec(spec) = piece else { continue };
            let size = sizes.by_ref().nth(stars(spec));
            if spec.is_string() && size.is_some_and(|size| *size >= 8) {
                long += 1;
            }
        }
        (long, end.min(long))
    }
}

struct Reader<'a, S> {
    data: &'a [u8],
    at: usize,
    sizes: S,
    /// Strings left whose size is 8 or more, and how many of them are short.
    long_strings: usize,
    short_left: usize,
}

impl<S: Iterator<Item = u32>> Reader<'_, S> {
    fn take(&mut self, size: usize) -> Option<Vec<u8>> {
        let bytes = self.data.get(self.at..self.at.checked_add(size)?)?.to_vec();
        self.at += size;
        Some(bytes)
    }

    /// Renders one conversion; none when the record has no argument for it.
    fn conversion(&mut self, spec: &Spec, out: &mut Vec<u8>) -> Option<()> {
        let mut star = Vec::new();
        for _ in 0..stars(spec) {
            let size = self.sizes.next()? as usize;
            star.push(bits(&self.take(size)?) as i32);
        }
        if spec.is_string() {
            let size = self.sizes.next()? as usize;
            let text = self.string(size)?;
            render(spec, &star, &Value::Text(Some(text)), out);
            return Some(());
        }
        let size = self.sizes.next()? as usize;
        let data = self.take(size)?;
        // Three elements lie where four do.
        let slots = if spec.vector == 3 { 4 } else { spec.vector as usize };
        let width = (size / slots).max(1);
        for (index, element) in data.chunks_exact(width).take(spec.vector as usize).enumerate() {
            if index > 0 {
                out.push(b',');
            }
            let value = match (spec.is_float(), width) {
                (true, 2) => Value::Float(half(bits(element) as u16)),
                (true, 4) => Value::Float(f32::from_bits(bits(element) as u32).into()),
                (true, 8) => Value::Float(f64::from_bits(bits(element))),
                _ => Value::Bits(bits(element)),
            };
            render(spec, &star, &value, out);
        }
        Some(())
    }

    /// A string that takes `size` bytes, or 4 fewer.
    fn string(&mut self, size: usize) -> Option<Vec<u8>> {
        let whole = self.data.get(self.at..self.at.checked_add(size)?)?;
        // The empty string is a dword of its own.
        if whole == [0, 0xff, 0xff, 0xff] {
            self.at += size;
            return Some(Vec::new());
        }
        let until_nul = |bytes: &[u8]| bytes.split(|byte| *byte == 0).next().unwrap_or_default().to_vec();
        if size >= 8 {
            let (body, last) = whole.split_at(size - 4);
            let tail = until_nul(last);
            // The last dword of a string that is not short: some characters, then NULs. Some of several strings being
            // short, that is all there is to tell by.
            let is_text = matches!(tail.len(), 1..=3)
                && tail.iter().all(|byte| !byte.is_ascii_control() || byte.is_ascii_whitespace())
                && last[tail.len()..].iter().all(|byte| *byte == 0);
            let all_are = self.short_left == self.long_strings;
            self.long_strings = self.long_strings.saturating_sub(1);
            if self.short_left > 0 && !body.contains(&0) && (all_are || !is_text) {
                self.short_left -= 1;
                self.at += size - 4;
                return Some(body.to_vec());
            }
        }
        self.at += size;
        Some(until_nul(whole))
    }
}

fn bits(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    let count = bytes.len().min(8);
    word[..count].copy_from_slice(&bytes[..count]);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::super::Formats;
    use super::*;

    fn text(entry: &str, data: &[&[u8]]) -> (String, usize) {
        let Ok(Formats::OpenCl(formats)) = Formats::parse(&[entry]) else { panic!("one format of OpenCL") };
        let format = formats.values().next().unwrap();
        let mut data = data.concat();
        while (data.len() as u64) < format.record_bytes() - 4 {
            data.extend(UNWRITTEN.to_le_bytes());
        }
        let mut out = Vec::new();
        let missing = format.render(&data, &mut out);
        (String::from_utf8(out).unwrap(), missing)
    }

    #[test]
    fn numbers_by_their_size() {
        let data: [&[u8]; 3] = [&1.5f32.to_le_bytes(), &3.0f64.to_le_bytes(), &1.5f64.to_le_bytes()];
        assert_eq!(text("6:3:4:8:8:f=%f g=%g e=%e", &data).0, "f=1.500000 g=3 e=1.500000e+00");
        let data: [&[u8]; 4] =
            [&(-5i64).to_le_bytes(), &0x1234u64.to_le_bytes(), &16u64.to_le_bytes(), &[0xf9, 0xff, 0xff, 0xff]];
        assert_eq!(text("3:4:8:8:8:4:%ld %#lx %p %hd", &data).0, "-5 0x1234 0x10 -7");
    }

    #[test]
    fn vectors() {
        let floats: Vec<u8> = [1f32, 2.0, 3.0, 4.0].iter().flat_map(|f| f.to_le_bytes()).collect();
        assert_eq!(
            text("4:2:16:8:%v4hlf %v2hhd", &[&floats, &[1, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff]]).0,
            "1.000000,2.000000,3.000000,4.000000 1,-2"
        );
        assert_eq!(text("4:1:16:%v3hlg", &[&floats]).0, "1,2,3", "the fourth slot is empty");
        assert_eq!(text("4:1:4:%v4hhu", &[&[1, 2, 3, 255]]).0, "1,2,3,255");
        assert_eq!(
            text("4:1:8:%.1v4hg", &[&[0x00, 0x3c, 0x00, 0x40, 0x00, 0x42, 0x00, 0x44]]).0,
            "%.1v4hg".replace("%.1v4hg", "1,2,3,4")
        );
    }

    #[test]
    fn strings_and_the_dword_llvm_leaves_out() {
        let int = 7i32.to_le_bytes();
        assert_eq!(text("1:2:4:4:%s %d", &[b"abc\0", &int]).0, "abc 7");
        assert_eq!(text("1:2:8:4:%s %d", &[b"abcde\0\0\0", &int]).0, "abcde 7");
        assert_eq!(text("1:2:8:4:%s %d", &[b"abcd", &int]).0, "abcd 7", "4 bytes where the size says 8");
        assert_eq!(
            text("1:2:8:4:%s %c", &[b"abcd", b"A\0\0\0"]).0,
            "abcd A",
            "the unwritten end tells it from 'abcdA'"
        );
        assert_eq!(text("1:2:8:4:%s %c", &[b"abcdA\0\0\0", b"B\0\0\0"]).0, "abcdA B");
        assert_eq!(text("1:3:8:8:4:%s %s %d", &[b"abcd", b"efghi\0\0\0", &int]).0, "abcd efghi 7");
        assert_eq!(text("1:3:8:8:4:%s %s %d", &[b"abcde\0\0\0", b"fghi", &int]).0, "abcde fghi 7");
        assert_eq!(text("1:2:4:4:[%s] %d", &[&[0, 0xff, 0xff, 0xff], &int]).0, "[] 7");
        assert_eq!(text("1:2:8:4:%s %d", &[b"abcdefgh", &int]).0, "abcdefgh 7", "later compilers: no NUL at the end");
    }

    #[test]
    fn a_conversion_without_an_argument_stays() {
        assert_eq!(text("1:2:4:a=%*d b", &[&6i32.to_le_bytes()]), ("a=%*d b".to_owned(), 1));
    }
}

//! Records of OpenCL's `printf`: a dword with the format's id, then the arguments, each a multiple of 4 bytes and not
//! aligned further (LLVM AMDGPUPrintfRuntimeBinding).
//!
//! LLVM 19 to 22 count the NUL of a string, so that its size in the metadata is `align4(length + 1)`, but store none
//! where the length is a multiple of 4: such a string is short by a dword. All later arguments then lie 4 bytes
//! earlier, and the record's last dwords stay unwritten, one for each short string. Those dwords tell where the last
//! argument ends, and from there the record is read backwards: a string ends with a zero byte unless it is short. So
//! which strings are short is not a guess, and their number must be that of the unwritten dwords. The empty string is
//! the dword `00 ff ff ff`, which is never short. Later LLVM stores as many bytes as it counts, so that nothing is
//! unwritten.

use super::{Doubts, UNWRITTEN, half, source};
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

    /// Renders a record's arguments.
    pub fn render(&self, arguments: &[u8], out: &mut Vec<u8>) -> Doubts {
        let short = self.short_strings(arguments).into_iter();
        let mut reader = Reader { data: arguments, at: 0, arguments: self.arguments(), short };
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
        Doubts::new(&self.pieces, missing, false)
    }

    /// For each string, whether it is short; nothing where none is.
    fn short_strings(&self, arguments: &[u8]) -> Vec<bool> {
        let unwritten = arguments.rchunks_exact(4).take_while(|dword| **dword == UNWRITTEN.to_le_bytes()).count();
        if unwritten == 0 {
            return Vec::new();
        }
        let strings = self.arguments().filter(|(is_string, size)| *is_string && *size >= 8).count();
        self.read_back(arguments, unwritten.min(strings)).unwrap_or_default()
    }

    /// Goes back from the end of the last argument: whether each string is short, if `short` of them are.
    fn read_back(&self, arguments: &[u8], short: usize) -> Option<Vec<bool>> {
        let mut end = arguments.len().checked_sub(4 * short)?;
        let mut strings = Vec::new();
        for (is_string, size) in self.arguments().collect::<Vec<_>>().into_iter().rev() {
            let is_short = is_string && size >= 8 && arguments.get(end.checked_sub(1)?)? != &0;
            end = end.checked_sub(if is_short { size - 4 } else { size })?;
            if is_string {
                strings.push(is_short);
            }
        }
        strings.reverse();
        (end == 0 && strings.iter().filter(|is_short| **is_short).count() == short).then_some(strings)
    }

    /// The arguments: whether each is stored as a string, and its size.
    ///
    /// LLVM goes by the letter that has the argument's place among the letters of the format that it knows, and stores no
    /// more arguments than those. With a `*`, or with F and A that older versions do not know, these are not the letters
    /// of the arguments, and a string may be stored as a pointer.
    fn arguments(&self) -> impl Iterator<Item = (bool, usize)> {
        let specs = || crate::format::specs(&self.pieces);
        let is_known = |letter: &u8| b"cdieEfFgGaAosuxXp".contains(letter);
        let knows_all = self.sizes.len() >= specs().filter(|spec| is_known(&spec.conversion)).count();
        let known = specs().map(|spec| spec.conversion).filter(is_known);
        let known = known.filter(move |letter| knows_all || !b"FA".contains(letter));
        let strings = specs().flat_map(|spec| [vec![false; spec.stars()], vec![spec.is_string()]].concat());
        let strings = strings.zip(known).map(|(is_string, letter)| is_string && letter == b's');
        strings.chain(std::iter::repeat(false)).zip(self.sizes.iter().map(|size| *size as usize))
    }
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

struct Reader<'a, S> {
    data: &'a [u8],
    at: usize,
    /// Whether each argument that is left is stored as a string, and its size.
    arguments: S,
    /// Whether each string that is left is short.
    short: std::vec::IntoIter<bool>,
}

impl<S: Iterator<Item = (bool, usize)>> Reader<'_, S> {
    fn take(&mut self, size: usize) -> Option<Vec<u8>> {
        let bytes = self.data.get(self.at..self.at.checked_add(size)?)?.to_vec();
        self.at += size;
        Some(bytes)
    }

    /// Renders one conversion; none when the record has no argument for it.
    fn conversion(&mut self, spec: &Spec, out: &mut Vec<u8>) -> Option<()> {
        let mut star = Vec::new();
        for _ in 0..spec.stars() {
            let (_, size) = self.arguments.next()?;
            star.push(bits(&self.take(size)?) as i32);
        }
        let (is_text, size) = self.arguments.next()?;
        if is_text {
            let is_short = self.short.next().unwrap_or(false);
            let stored = self.take(if is_short { size.saturating_sub(4) } else { size })?;
            render(spec, &star, &Value::Text(Some(until_nul(&stored).to_vec())), out);
            return Some(());
        }
        let data = self.take(size)?;
        if spec.is_string() {
            return None;
        }
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
        let doubts = format.render(&data, &mut out);
        assert_eq!(doubts.ambiguous, 0);
        (String::from_utf8(out).unwrap(), doubts.missing)
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
        assert_eq!(text("4:1:8:%.1v4hg", &[&[0x00, 0x3c, 0x00, 0x40, 0x00, 0x42, 0x00, 0x44]]).0, "1,2,3,4");
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
    fn strings_that_are_followed_by_what_may_be_their_end() {
        let abc = 0x434241i32.to_le_bytes();
        assert_eq!(text("1:3:8:4:8:[%s]<%d>[%s]", &[b"dbab", &abc, b" bbdY Z\0"]).0, "[dbab]<4407873>[ bbdY Z]");
        assert_eq!(text("1:3:8:4:8:[%s]%c[%s]", &[b"abcd", b"A\0\0\0", b"xyz12\0\0\0"]).0, "[abcd]A[xyz12]");
        let strings: [&[u8]; 3] = [b"bbbb", b"Yc0Za0YYXb  d\0\0\0", b"cbYXcda\0"];
        assert_eq!(text("1:3:8:16:8:[%s][%s][%s]", &strings).0, "[bbbb][Yc0Za0YYXb  d][cbYXcda]");
        let (none, unwritten) = ([0, 0xff, 0xff, 0xff], UNWRITTEN.to_le_bytes());
        let data: [&[u8]; 4] = [b"abcd", &none, b"efgh", &unwritten];
        assert_eq!(
            text("1:4:8:4:8:4:%s[%s]%s %x", &data).0,
            "abcd[]efgh f5a7c3e9",
            "an argument as unwritten dwords are"
        );
    }

    /// Stores a record as LLVM 19 to 22 do.
    fn store(arguments: &[Option<String>]) -> (String, Vec<u8>, String) {
        let (mut sizes, mut format, mut data, mut expected) = (String::new(), String::new(), Vec::new(), String::new());
        for argument in arguments {
            match argument {
                Some(text) => {
                    let size = (text.len() + 1).next_multiple_of(4);
                    sizes += &format!(":{size}");
                    format += "[%s]";
                    expected += &format!("[{text}]");
                    match text.len() {
                        0 => data.extend([0, 0xff, 0xff, 0xff]),
                        length if length % 4 == 0 => data.extend(text.as_bytes()),
                        _ => data.extend(format!("{text:\0<size$}").as_bytes()),
                    }
                }
                None => {
                    sizes += ":4";
                    format += "<%d>";
                    data.extend(*b"AB\0\0");
                    expected += "<16961>";
                }
            }
        }
        (format!("1:{}{sizes}:{format}", arguments.len()), data, expected)
    }

    proptest::proptest! {
        #[test]
        fn every_record_reads_as_it_was_stored(
            arguments in proptest::collection::vec(proptest::option::of("[A-C]{0,13}"), 1..8)
        ) {
            let (entry, data, expected) = store(&arguments);
            proptest::prop_assert_eq!(text(&entry, &[&data]).0, expected);
        }
    }

    #[test]
    fn a_string_that_was_stored_as_a_pointer_stays() {
        let (int, pointer) = (6i32.to_le_bytes(), 0x7f12_4142_4344u64.to_le_bytes());
        let data: [&[u8]; 3] = [&int, &int, &pointer];
        assert_eq!(text("5:4:4:4:8:%*d|%s|%d", &data), ("     6|%s|%d".to_owned(), 2), "the third letter is d");
        let data: [&[u8]; 3] = [b"abcd", &int, &int];
        assert_eq!(text("4:4:8:4:4:%s|%*d|%s", &data), ("abcd|     6|%s".to_owned(), 1));
        let data: [&[u8]; 2] = [&1.5f64.to_le_bytes(), &pointer];
        assert_eq!(text("1:3:8:8:%F|%s|%d", &data).0, "1.500000|%s|%d", "%F is not known");
        let data: [&[u8]; 3] = [&1.5f64.to_le_bytes(), b"abcd", &int];
        assert_eq!(text("1:3:8:8:4:%F|%s|%d", &data).0, "1.500000|abcd|6", "it is");
    }

    #[test]
    fn a_conversion_without_an_argument_stays() {
        assert_eq!(text("1:2:4:a=%*d b", &[&6i32.to_le_bytes()]), ("a=%*d b".to_owned(), 1));
    }
}

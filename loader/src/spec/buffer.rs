//! Buffers as text.

use super::{Element, npy, unsigned};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// What the kernel may do with a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Anything.
    InOut,
    /// Read it.
    In,
    /// Its contents are wanted after the launch.
    Out,
}

/// What a buffer starts with.
#[derive(Clone, Debug, PartialEq)]
pub enum Init {
    /// Zeros.
    Zeros,
    /// 0, 1, 2…
    Iota,
    /// One value, as bytes.
    Fill(Vec<u8>),
    /// Random numbers of a seed.
    Random(u64),
    /// Values, as bytes.
    Values(Vec<u8>),
    /// A file: NumPy's if it starts like one, else raw bytes.
    File(PathBuf),
}

/// A buffer as written.
#[derive(Clone, Debug, PartialEq)]
pub struct BufferSpec {
    /// Type of its elements.
    pub element: Element,
    /// Elements; none when the contents say.
    pub count: Option<u64>,
    /// Contents.
    pub init: Init,
    /// What the kernel may do with it.
    pub direction: Direction,
}

/// Largest buffer, in bytes.
const LARGEST: u64 = 1 << 40;

impl FromStr for BufferSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<BufferSpec, String> {
        let (direction, rest) = match text.split_once(':') {
            Some(("in", rest)) => (Direction::In, rest),
            Some(("out", rest)) => (Direction::Out, rest),
            Some(("inout", rest)) => (Direction::InOut, rest),
            _ => (Direction::InOut, text),
        };
        let form = || format!("'{text}' is not a buffer: write TYPE[COUNT] or TYPE[COUNT]=CONTENTS");
        let (head, init) = match rest.split_once('=') {
            Some((head, init)) => (head, Some(init)),
            None => (rest, None),
        };
        let (name, count) = head.strip_suffix(']').and_then(|head| head.split_once('[')).ok_or_else(form)?;
        let element = Element::from_name(name)
            .ok_or_else(|| format!("'{name}' is not a type: types are {}", Element::names()))?;
        let count = match count {
            "" => None,
            count => Some(unsigned(count)?),
        };
        if count == Some(0) || count.is_some_and(|count| count.saturating_mul(element.size() as u64) > LARGEST) {
            return Err(format!("'{text}': a buffer has 1 element to {} GiB", LARGEST >> 30));
        }
        let init = init.map_or(Ok(Init::Zeros), |init| Init::parse(init, element))?;
        if count.is_none() && !matches!(init, Init::Values(_) | Init::File(_)) {
            return Err(format!("'{text}' does not say how many elements: write {name}[COUNT]"));
        }
        Ok(BufferSpec { element, count, init, direction })
    }
}

impl Init {
    /// Reads contents for elements of a type.
    pub fn parse(text: &str, element: Element) -> Result<Init, String> {
        Ok(match text.split_once(':') {
            _ if text == "zeros" => Init::Zeros,
            _ if text == "iota" => Init::Iota,
            _ if text.starts_with('@') => Init::File(PathBuf::from(&text[1..])),
            Some(("fill", value)) => Init::Fill(element.parse(value)?),
            Some(("rand", seed)) => Init::Random(unsigned(seed)?),
            _ => Init::Values(element.parse_list(text).map_err(|error| {
                format!("{error}; contents are zeros, iota, fill:VALUE, rand:SEED, VALUE,VALUE… or @FILE")
            })?),
        })
    }

    /// The contents of `count` elements, or of as many as there are. `read` reads a file: whole, or enough to tell whether
    /// it has more than the bytes that are wanted ([`enough`]).
    pub fn contents<E: From<String>>(
        &self,
        element: Element,
        count: Option<u64>,
        read: impl FnOnce(&Path, Option<u64>) -> Result<Vec<u8>, E>,
    ) -> Result<Contents, E> {
        let size = element.size() as u64;
        let source = match self {
            Init::Zeros => Source::Zeros,
            Init::Iota => {
                // Integers wrap; a float that should count would become infinite.
                let last = count.unwrap_or_default().saturating_sub(1);
                if element.is_float() && element.to_f64(&element.float_bytes(last as f64)).is_infinite() {
                    return Err(
                        format!("iota to {last} does not fit {}: it would become infinite", element.name()).into()
                    );
                }
                Source::Iota
            }
            Init::Fill(value) => Source::Fill(value.clone()),
            Init::Random(seed) => Source::Random(*seed),
            Init::Values(bytes) => Source::Bytes(bytes.clone()),
            Init::File(path) => {
                let wanted = count.map(|count| count.saturating_mul(size));
                let mut bytes = read(path, wanted)?;
                let name = path.display();
                if npy::is_npy(&bytes) {
                    let data = npy::read(&bytes, element, count).map_err(|error| format!("{name}: {error}"))?;
                    bytes = data.to_vec();
                } else if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npy")) {
                    return Err(format!("{name}: not a NumPy file, which starts with \\x93NUMPY").into());
                } else if let Some(wanted) = wanted.filter(|wanted| bytes.len() as u64 > *wanted) {
                    let text = format!(
                        "{name}: it has {} bytes or more; {} elements of {} have {wanted}",
                        bytes.len(),
                        wanted / size,
                        element.name()
                    );
                    return Err(text.into());
                } else if !(bytes.len() as u64).is_multiple_of(size) {
                    let length = bytes.len();
                    return Err(format!("{name}: {length} bytes are not whole elements of {}", element.name()).into());
                }
                Source::Bytes(bytes)
            }
        };
        let have = match &source {
            Source::Bytes(bytes) => bytes.len() as u64 / size,
            _ => count.unwrap_or(0),
        };
        if have == 0 || count.is_some_and(|count| count != have) {
            let text = format!(
                "the contents have {have} elements of {}, {} are asked for",
                element.name(),
                count.map_or("1 or more".to_owned(), |count| count.to_string())
            );
            return Err(text.into());
        }
        Ok(Contents { element, count: have, source })
    }
}

/// Bytes of a file that tell whether it has more than `wanted`, behind whatever header.
pub fn enough(wanted: u64) -> u64 {
    wanted.saturating_add(npy::LONGEST_HEADER + 1)
}

impl BufferSpec {
    /// Its contents, see [`Init::contents`].
    pub fn contents<E: From<String>>(
        &self,
        read: impl FnOnce(&Path, Option<u64>) -> Result<Vec<u8>, E>,
    ) -> Result<Contents, E> {
        self.init.contents(self.element, self.count, read)
    }
}

/// Where the elements of a buffer come from.
#[derive(Clone, Debug, PartialEq)]
enum Source {
    Zeros,
    Iota,
    Fill(Vec<u8>),
    Random(u64),
    Bytes(Vec<u8>),
}

/// What a buffer starts with or is compared with, made a piece at a time: a large buffer needs no copy of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Contents {
    element: Element,
    count: u64,
    source: Source,
}

impl Contents {
    /// Type of the elements.
    pub fn element(&self) -> Element {
        self.element
    }

    /// Elements.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Bytes.
    pub fn size(&self) -> u64 {
        self.count * self.element.size() as u64
    }

    /// Whether every byte is 0.
    pub fn is_zero(&self) -> bool {
        match &self.source {
            Source::Zeros => true,
            Source::Fill(value) => value.iter().all(|byte| *byte == 0),
            _ => false,
        }
    }

    /// The elements from number `first` on, as many as `out` has room for and no more than there are; the rest of `out`
    /// stays as it is.
    pub fn write(&self, first: u64, out: &mut [u8]) {
        let size = self.element.size();
        let slots = out.chunks_exact_mut(size).zip(first..self.count);
        match &self.source {
            Source::Zeros => slots.for_each(|(slot, _)| slot.fill(0)),
            Source::Iota if self.element.is_float() => {
                slots.for_each(|(slot, index)| put(self.element, index as f64, slot));
            }
            Source::Iota => slots.for_each(|(slot, index)| slot.copy_from_slice(&index.to_le_bytes()[..size])),
            Source::Fill(value) => slots.for_each(|(slot, _)| slot.copy_from_slice(value)),
            Source::Random(seed) => slots.for_each(|(slot, index)| random(self.element, *seed, index, slot)),
            Source::Bytes(bytes) => {
                let rest = usize::try_from(first).ok().and_then(|first| bytes.get(first.checked_mul(size)?..));
                let rest = rest.unwrap_or_default();
                let count = rest.len().min(out.len());
                out[..count].copy_from_slice(&rest[..count]);
            }
        }
    }

    /// All of them.
    pub fn bytes(&self) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        let room = usize::try_from(self.size()).ok().filter(|room| bytes.try_reserve_exact(*room).is_ok());
        let room = room.ok_or_else(|| {
            format!("{} elements of {} do not fit the memory of the host", self.count, self.element.name())
        })?;
        bytes.resize(room, 0);
        self.write(0, &mut bytes);
        Ok(bytes)
    }
}

/// A float's bytes. The common types need no memory of their own.
fn put(element: Element, value: f64, slot: &mut [u8]) {
    match element {
        Element::F32 => slot.copy_from_slice(&(value as f32).to_le_bytes()),
        Element::F64 => slot.copy_from_slice(&value.to_le_bytes()),
        _ => slot.copy_from_slice(&element.float_bytes(value)),
    }
}

/// Number `index` of a sequence (SplitMix64).
fn random(element: Element, seed: u64, index: u64, slot: &mut [u8]) {
    let mut z = seed.wrapping_add(index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    match element.is_float() {
        // 24 bits: a float below 1 after any rounding to f32.
        true => put(element, (z >> 40) as f64 / 2f64.powi(24), slot),
        false => slot.copy_from_slice(&z.to_le_bytes()[..element.size()]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Result<Vec<u8>, String> {
        let read = |path: &Path, _| match path.to_str() {
            Some("three.bin" | "raw.npy") => Ok(vec![1, 0, 2, 0, 3, 0]),
            Some("three" | "three.NPY") => Ok([npy::header(Element::U16, 3), vec![1, 0, 2, 0, 3, 0]].concat()),
            _ => Err("no such file".to_owned()),
        };
        text.parse::<BufferSpec>()?.contents(read)?.bytes()
    }

    #[test]
    fn contents() {
        assert_eq!(bytes("u16[3]"), Ok(vec![0; 6]));
        assert_eq!(bytes("u16[3]=iota"), Ok(vec![0, 0, 1, 0, 2, 0]));
        assert_eq!(bytes("out:i8[2]=fill:-1"), Ok(vec![255; 2]));
        assert_eq!(bytes("f32[]=1,-2"), Ok([1f32.to_le_bytes(), (-2f32).to_le_bytes()].concat()));
        assert_eq!(bytes("in:u16[]=@three.bin"), Ok(vec![1, 0, 2, 0, 3, 0]));
        for file in ["three", "three.NPY"] {
            assert_eq!(bytes(&format!("u16[]=@{file}")), Ok(vec![1, 0, 2, 0, 3, 0]), "the start of a file tells");
        }
        assert_eq!(bytes("f16[3]=iota"), Ok(vec![0, 0, 0, 0x3c, 0, 0x40]));
        assert!(bytes("f16[65520]=iota").is_ok() && bytes("f16[65521]=iota").unwrap_err().contains("infinite"));
        assert_eq!(bytes("f64[2]=iota"), Ok([0f64.to_le_bytes(), 1f64.to_le_bytes()].concat()));
        assert_eq!(bytes("u64[4]=rand:1"), bytes("u64[4]=rand:1"));
        assert_ne!(bytes("u64[4]=rand:1"), bytes("u64[4]=rand:2"));
        let floats = bytes("f32[1000]=rand:7").unwrap();
        assert!(floats.chunks(4).all(|f| (0.0..1.0).contains(&Element::F32.to_f64(f))));
    }

    #[test]
    fn pieces_are_the_whole() {
        for text in ["u16[100]=iota", "f32[100]=rand:3", "bf16[100]=rand:3", "i64[100]=fill:-5", "f64[100]"] {
            let contents = text.parse::<BufferSpec>().unwrap().contents(|_, _| Err(String::new())).unwrap();
            let (size, mut pieces) = (contents.element().size(), Vec::new());
            for first in (0..100).step_by(30) {
                let mut piece = vec![1; 30.min(100 - first) * size];
                contents.write(first as u64, &mut piece);
                pieces.extend(piece);
            }
            assert_eq!(contents.bytes(), Ok(pieces), "{text}");
            assert_eq!(contents.is_zero(), text == "f64[100]");
        }
        let mut after = [7; 4];
        "u8[2]".parse::<BufferSpec>().unwrap().contents(|_, _| Err(String::new())).unwrap().write(1, &mut after);
        assert_eq!(after, [0, 7, 7, 7], "nothing is written behind the last");
    }

    #[test]
    fn a_known_count_bounds_what_is_read() {
        let mut asked = None;
        let endless = |_: &Path, wanted: Option<u64>| {
            asked = wanted;
            Ok::<_, String>(vec![0; enough(wanted.unwrap_or(0)) as usize])
        };
        let spec: BufferSpec = "f32[4]=@/dev/zero".parse().unwrap();
        let error = spec.contents(endless).unwrap_err();
        assert!(error.contains("bytes or more; 4 elements of f32 have 16"), "{error}");
        assert_eq!(asked, Some(16));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for bad in [
            "u16[]",
            "u16[0]",
            "u16[-1]",
            "u16[3",
            "q[3]",
            "u16[2]=@three.bin",
            "u32[]=@three.bin",
            "u8[]=@three",
            "u16[3]=@raw.npy",
            "u8[1]=@none",
            "u8[2]=fill:300",
            "u8[2]=x",
            "f64[999999999999]",
        ] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
    }
}

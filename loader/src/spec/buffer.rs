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
    /// A file: NumPy's if its name ends in `.npy`, else raw bytes.
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

    /// The bytes of `count` elements, or of as many as there are. Files are read by `read`.
    pub fn bytes(
        &self,
        element: Element,
        count: Option<u64>,
        read: &dyn Fn(&Path) -> Result<Vec<u8>, String>,
    ) -> Result<Vec<u8>, String> {
        let size = element.size();
        let elements = count.unwrap_or(0);
        let room = usize::try_from(elements).ok().and_then(|elements| elements.checked_mul(size));
        let counted = |value: &dyn Fn(u64) -> Vec<u8>| {
            let mut bytes = Vec::new();
            room.and_then(|room| bytes.try_reserve_exact(room).ok()).ok_or_else(|| {
                format!("{elements} elements of {} do not fit the memory of the host", element.name())
            })?;
            (0..elements).for_each(|index| bytes.extend_from_slice(&value(index)));
            Ok::<_, String>(bytes)
        };
        let bytes = match self {
            Init::Zeros => counted(&|_| vec![0; size])?,
            Init::Iota => counted(&|index| element.count_bytes(index))?,
            Init::Fill(value) => counted(&|_| value.clone())?,
            Init::Random(seed) => counted(&|index| random(element, *seed, index))?,
            Init::Values(bytes) => bytes.clone(),
            Init::File(path) => {
                let bytes = read(path)?;
                match path.extension().is_some_and(|extension| extension == "npy") {
                    true => npy::read(&bytes, element).map_err(|error| format!("{}: {error}", path.display()))?,
                    false if bytes.len() % size != 0 => {
                        let (name, length) = (path.display(), bytes.len());
                        return Err(format!("{name}: {length} bytes are not whole elements of {}", element.name()));
                    }
                    false => bytes,
                }
            }
        };
        let have = (bytes.len() / size) as u64;
        if have == 0 || count.is_some_and(|count| count != have) {
            return Err(format!(
                "the contents have {have} elements of {}, {} are asked for",
                element.name(),
                count.map_or("1 or more".to_owned(), |count| count.to_string())
            ));
        }
        Ok(bytes)
    }
}

impl BufferSpec {
    /// Its contents. Files are read by `read`.
    pub fn bytes(&self, read: &dyn Fn(&Path) -> Result<Vec<u8>, String>) -> Result<Vec<u8>, String> {
        self.init.bytes(self.element, self.count, read)
    }
}

/// Number `index` of a sequence (SplitMix64).
fn random(element: Element, seed: u64, index: u64) -> Vec<u8> {
    let mut z = seed.wrapping_add(index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    match element.is_float() {
        // 24 bits: a float below 1 after any rounding to f32.
        true => element.float_bytes((z >> 40) as f64 / 2f64.powi(24)),
        false => z.to_le_bytes()[..element.size()].to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Result<Vec<u8>, String> {
        text.parse::<BufferSpec>()?.bytes(&|path| match path.to_str() {
            Some("three.bin") => Ok(vec![1, 0, 2, 0, 3, 0]),
            _ => Err("no such file".to_owned()),
        })
    }

    #[test]
    fn contents() {
        assert_eq!(bytes("u16[3]"), Ok(vec![0; 6]));
        assert_eq!(bytes("u16[3]=iota"), Ok(vec![0, 0, 1, 0, 2, 0]));
        assert_eq!(bytes("out:i8[2]=fill:-1"), Ok(vec![255; 2]));
        assert_eq!(bytes("f32[]=1,-2"), Ok([1f32.to_le_bytes(), (-2f32).to_le_bytes()].concat()));
        assert_eq!(bytes("in:u16[]=@three.bin"), Ok(vec![1, 0, 2, 0, 3, 0]));
        assert_eq!(bytes("u64[4]=rand:1"), bytes("u64[4]=rand:1"));
        assert_ne!(bytes("u64[4]=rand:1"), bytes("u64[4]=rand:2"));
        let floats = bytes("f32[1000]=rand:7").unwrap();
        assert!(floats.chunks(4).all(|f| (0.0..1.0).contains(&Element::F32.to_f64(f))));
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
            "u8[1]=@none",
            "u8[2]=fill:300",
            "u8[2]=x",
            "f64[999999999999]",
        ] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
    }
}

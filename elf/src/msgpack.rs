//! A bounded reader of MessagePack over `rmp`'s markers: strings are borrowed, counts are checked against the bytes
//! left, nesting is limited.

use rmp::Marker;

/// The deepest nesting of arrays and maps.
pub const MAX_DEPTH: usize = 16;

/// Why bytes are not the MessagePack that was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The bytes end inside a value.
    #[error("the value ends beyond the note")]
    Truncated,
    /// A count that the bytes left cannot hold.
    #[error("a count of {count} with {left} bytes left")]
    Count {
        /// Elements, or pairs.
        count: u32,
        /// Bytes left.
        left: usize,
    },
    /// 0xc1.
    #[error("the byte 0xc1 starts no value")]
    Reserved,
    /// A string that is not UTF-8.
    #[error("a string is not UTF-8")]
    Utf8,
    /// Arrays in arrays in arrays.
    #[error("arrays and maps are nested deeper than {MAX_DEPTH}")]
    Depth,
    /// Another type.
    #[error("is {found}, must be {expected}")]
    Type {
        /// What it is.
        found: &'static str,
        /// What it must be.
        expected: &'static str,
    },
    /// An integer that does not fit.
    #[error("is {value}, must be 0 to {max}")]
    Range {
        /// The integer.
        value: String,
        /// The largest.
        max: u64,
    },
}

type Result<T> = std::result::Result<T, Problem>;

/// A position in MessagePack data.
#[derive(Clone)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    total: usize,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes, total: bytes.len() }
    }

    /// Bytes read so far.
    pub fn position(&self) -> usize {
        self.total - self.rest.len()
    }

    /// Bytes not read yet.
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    fn marker(&mut self) -> Result<Marker> {
        let (&first, rest) = self.rest.split_first().ok_or(Problem::Truncated)?;
        self.rest = rest;
        match Marker::from_u8(first) {
            Marker::Reserved => Err(Problem::Reserved),
            marker => Ok(marker),
        }
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(Problem::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Problem::Truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    fn u8(&mut self) -> Result<u32> {
        self.fixed().map(|[byte]| u32::from(byte))
    }

    fn u16(&mut self) -> Result<u32> {
        self.fixed().map(|bytes| u32::from(u16::from_be_bytes(bytes)))
    }

    fn u32(&mut self) -> Result<u32> {
        self.fixed().map(u32::from_be_bytes)
    }

    /// A count of things that take `each` bytes at least.
    fn count(&self, count: u32, each: usize) -> Result<u32> {
        match (count as usize).checked_mul(each) {
            Some(bytes) if bytes <= self.left() => Ok(count),
            _ => Err(Problem::Count { count, left: self.left() }),
        }
    }

    /// The number of pairs of a map that starts here.
    pub fn map(&mut self) -> Result<u32> {
        let count = match self.marker()? {
            Marker::FixMap(count) => u32::from(count),
            Marker::Map16 => self.u16()?,
            Marker::Map32 => self.u32()?,
            other => return Err(wrong(other, "a map")),
        };
        self.count(count, 2)
    }

    /// The number of elements of an array that starts here.
    pub fn array(&mut self) -> Result<u32> {
        let count = match self.marker()? {
            Marker::FixArray(count) => u32::from(count),
            Marker::Array16 => self.u16()?,
            Marker::Array32 => self.u32()?,
            other => return Err(wrong(other, "an array")),
        };
        self.count(count, 1)
    }

    /// A string.
    pub fn str(&mut self) -> Result<&'a str> {
        std::str::from_utf8(self.str_bytes()?).map_err(|_| Problem::Utf8)
    }

    /// The bytes of a string, to compare with: they may not be UTF-8.
    pub fn str_bytes(&mut self) -> Result<&'a [u8]> {
        let len = match self.marker()? {
            Marker::FixStr(len) => u32::from(len),
            Marker::Str8 => self.u8()?,
            Marker::Str16 => self.u16()?,
            Marker::Str32 => self.u32()?,
            other => return Err(wrong(other, "a string")),
        };
        self.take(len as usize)
    }

    /// An integer of 0 to `max`; a boolean counts as 0 or 1, as producers differ.
    pub fn uint(&mut self, max: u64) -> Result<u64> {
        let value = match self.marker()? {
            Marker::FixPos(value) => i128::from(value),
            Marker::FixNeg(value) => i128::from(value),
            Marker::False => 0,
            Marker::True => 1,
            Marker::U8 => i128::from(self.u8()?),
            Marker::U16 => i128::from(self.u16()?),
            Marker::U32 => i128::from(self.u32()?),
            Marker::U64 => i128::from(u64::from_be_bytes(self.fixed()?)),
            Marker::I8 => i128::from(i8::from_be_bytes(self.fixed()?)),
            Marker::I16 => i128::from(i16::from_be_bytes(self.fixed()?)),
            Marker::I32 => i128::from(i32::from_be_bytes(self.fixed()?)),
            Marker::I64 => i128::from(i64::from_be_bytes(self.fixed()?)),
            other => return Err(wrong(other, "an integer")),
        };
        match u64::try_from(value) {
            Ok(value) if value <= max => Ok(value),
            _ => Err(Problem::Range { value: value.to_string(), max }),
        }
    }

    /// A boolean, or the integer 0 or 1.
    pub fn bool(&mut self) -> Result<bool> {
        Ok(self.uint(1)? != 0)
    }

    /// Passes over one value.
    pub fn skip(&mut self) -> Result<()> {
        self.skip_at(MAX_DEPTH)
    }

    fn skip_at(&mut self, depth: usize) -> Result<()> {
        let len = match self.marker()? {
            Marker::FixPos(_) | Marker::FixNeg(_) | Marker::Null | Marker::False | Marker::True => 0,
            Marker::U8 | Marker::I8 => 1,
            Marker::U16 | Marker::I16 => 2,
            Marker::U32 | Marker::I32 | Marker::F32 => 4,
            Marker::U64 | Marker::I64 | Marker::F64 => 8,
            Marker::FixStr(len) => usize::from(len),
            Marker::Str8 | Marker::Bin8 => self.u8()? as usize,
            Marker::Str16 | Marker::Bin16 => self.u16()? as usize,
            Marker::Str32 | Marker::Bin32 => self.u32()? as usize,
            // An extension has a type byte before its data.
            Marker::FixExt1 => 2,
            Marker::FixExt2 => 3,
            Marker::FixExt4 => 5,
            Marker::FixExt8 => 9,
            Marker::FixExt16 => 17,
            Marker::Ext8 => self.u8()? as usize + 1,
            Marker::Ext16 => self.u16()? as usize + 1,
            Marker::Ext32 => (self.u32()? as usize).checked_add(1).ok_or(Problem::Truncated)?,
            Marker::FixArray(count) => return self.skip_all(u32::from(count), 1, depth),
            Marker::Array16 => return self.u16().and_then(|count| self.skip_all(count, 1, depth)),
            Marker::Array32 => return self.u32().and_then(|count| self.skip_all(count, 1, depth)),
            Marker::FixMap(count) => return self.skip_all(u32::from(count), 2, depth),
            Marker::Map16 => return self.u16().and_then(|count| self.skip_all(count, 2, depth)),
            Marker::Map32 => return self.u32().and_then(|count| self.skip_all(count, 2, depth)),
            Marker::Reserved => return Err(Problem::Reserved),
        };
        self.take(len).map(|_| ())
    }

    fn skip_all(&mut self, count: u32, each: usize, depth: usize) -> Result<()> {
        let depth = depth.checked_sub(1).ok_or(Problem::Depth)?;
        for _ in 0..self.count(count, each)? as usize * each {
            self.skip_at(depth)?;
        }
        Ok(())
    }
}

#[cold]
fn wrong(marker: Marker, expected: &'static str) -> Problem {
    let found = match marker {
        Marker::Null => "nil",
        Marker::False | Marker::True => "a boolean",
        Marker::FixPos(_) | Marker::FixNeg(_) => "an integer",
        Marker::U8 | Marker::U16 | Marker::U32 | Marker::U64 => "an integer",
        Marker::I8 | Marker::I16 | Marker::I32 | Marker::I64 => "an integer",
        Marker::F32 | Marker::F64 => "a float",
        Marker::FixStr(_) | Marker::Str8 | Marker::Str16 | Marker::Str32 => "a string",
        Marker::Bin8 | Marker::Bin16 | Marker::Bin32 => "binary data",
        Marker::FixArray(_) | Marker::Array16 | Marker::Array32 => "an array",
        Marker::FixMap(_) | Marker::Map16 | Marker::Map32 => "a map",
        _ => "an extension",
    };
    Problem::Type { found, expected }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rmp::encode;

    #[test]
    fn integers_and_booleans_are_read_both_ways() {
        for (bytes, value) in [
            (&[0x07][..], 7),
            (&[0xcc, 0xff], 255),
            (&[0xcd, 0x01, 0x00], 256),
            (&[0xce, 0, 1, 0, 0], 65536),
            (&[0xcf, 0, 0, 0, 1, 0, 0, 0, 0], 1 << 32),
            (&[0xd0, 0x05], 5),
            (&[0xd1, 0x01, 0x00], 256),
            (&[0xd2, 0, 1, 0, 0], 65536),
            (&[0xd3, 0, 0, 0, 1, 0, 0, 0, 0], 1 << 32),
            (&[0xc3], 1),
            (&[0xc2], 0),
        ] {
            assert_eq!(Reader::new(bytes).uint(u64::MAX), Ok(value), "{bytes:x?}");
        }
        assert_eq!(Reader::new(&[1]).bool(), Ok(true));
        assert_eq!(Reader::new(&[0xc3]).bool(), Ok(true));
        assert_eq!(Reader::new(&[2]).bool(), Err(Problem::Range { value: "2".to_owned(), max: 1 }));
        assert_eq!(Reader::new(&[0xff]).uint(9), Err(Problem::Range { value: "-1".to_owned(), max: 9 }));
        assert_eq!(Reader::new(&[0xcc, 10]).uint(9).unwrap_err().to_string(), "is 10, must be 0 to 9");
        assert_eq!(Reader::new(&[0xa1, 65]).uint(9).unwrap_err().to_string(), "is a string, must be an integer");
    }

    #[test]
    fn counts_are_bounded_by_what_is_left() {
        let huge = [0xdd, 0xff, 0xff, 0xff, 0xff, 0];
        let count = Problem::Count { count: u32::MAX, left: 1 };
        assert_eq!(Reader::new(&huge).array(), Err(count.clone()));
        assert_eq!(Reader::new(&huge).skip(), Err(count));
        assert_eq!(Reader::new(&[0x82, 0, 0, 0]).map(), Err(Problem::Count { count: 2, left: 3 }));
        assert_eq!(Reader::new(&[0xdb, 0, 0, 0, 9, 65]).str(), Err(Problem::Truncated));
        assert_eq!(Reader::new(&[0xc9, 0xff, 0xff, 0xff, 0xff, 1]).skip(), Err(Problem::Truncated));
        assert_eq!(Reader::new(&[0x91, 0xc1]).skip(), Err(Problem::Reserved));
        assert_eq!(Reader::new(&[]).map(), Err(Problem::Truncated));
        assert_eq!(Reader::new(&[0xa1, 0xff]).str(), Err(Problem::Utf8));
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth| [vec![0x91; depth], vec![0]].concat();
        assert_eq!(Reader::new(&nested(MAX_DEPTH)).skip(), Ok(()));
        assert_eq!(Reader::new(&nested(MAX_DEPTH + 1)).skip(), Err(Problem::Depth));
        assert_eq!(Reader::new(&nested(1_000_000)).skip(), Err(Problem::Depth));
    }

    /// Any value.
    #[derive(Clone, Debug)]
    enum Value {
        Nil,
        Bool(bool),
        Int(i64),
        Float(f64),
        Str(String),
        Bin(Vec<u8>),
        Ext(i8, Vec<u8>),
        Array(Vec<Value>),
        Map(Vec<(Value, Value)>),
    }

    impl Value {
        fn write(&self, out: &mut Vec<u8>) {
            match self {
                Value::Nil => encode::write_nil(out).unwrap(),
                Value::Bool(v) => encode::write_bool(out, *v).unwrap(),
                Value::Int(v) => drop(encode::write_sint(out, *v).unwrap()),
                Value::Float(v) => encode::write_f64(out, *v).unwrap(),
                Value::Str(v) => encode::write_str(out, v).unwrap(),
                Value::Bin(v) => encode::write_bin(out, v).unwrap(),
                Value::Ext(kind, v) => {
                    encode::write_ext_meta(out, v.len() as u32, *kind).unwrap();
                    out.extend(v);
                }
                Value::Array(v) => {
                    encode::write_array_len(out, v.len() as u32).unwrap();
                    v.iter().for_each(|v| v.write(out));
                }
                Value::Map(v) => {
                    encode::write_map_len(out, v.len() as u32).unwrap();
                    v.iter().for_each(|(k, v)| {
                        k.write(out);
                        v.write(out);
                    });
                }
            }
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Nil),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::Int),
            any::<f64>().prop_map(Value::Float),
            ".{0,40}".prop_map(Value::Str),
            prop::collection::vec(any::<u8>(), 0..300).prop_map(Value::Bin),
            (0i8..10, prop::collection::vec(any::<u8>(), 0..20)).prop_map(|(kind, v)| Value::Ext(kind, v)),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..20).prop_map(Value::Array),
                prop::collection::vec((inner.clone(), inner), 0..20).prop_map(Value::Map),
            ]
        })
    }

    proptest! {
        /// What `rmp` writes is passed over to its last byte, and every cut of it is noticed.
        #[test]
        fn skipping_takes_exactly_one_value(value in value(), tail in 0usize..3) {
            let mut bytes = vec![];
            value.write(&mut bytes);
            let len = bytes.len();
            bytes.resize(len + tail, 0xc1);
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(reader.skip(), Ok(()));
            prop_assert_eq!(reader.position(), len);
            for cut in (0..len).step_by(len / 50 + 1) {
                prop_assert!(Reader::new(&bytes[..cut]).skip().is_err());
            }
        }

        /// No bytes make it panic.
        #[test]
        fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Reader::new(&bytes).skip();
            let _ = Reader::new(&bytes).str();
            let _ = Reader::new(&bytes).map();
            let _ = Reader::new(&bytes).uint(u64::MAX);
        }
    }
}

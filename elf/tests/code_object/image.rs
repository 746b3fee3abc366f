//! Builds small code objects to test with: one kernel, variables, relocations, section headers. Everything in them can
//! be changed before, and every byte of them after.

use std::collections::BTreeMap;
use std::ops::Range;

use rmp::encode;

/// A metadata value.
#[derive(Clone, Debug)]
pub enum M {
    Int(i64),
    Bool(bool),
    Nil,
    Str(String),
    Array(Vec<M>),
    Map(Vec<(String, M)>),
}

impl From<i64> for M {
    fn from(value: i64) -> M {
        M::Int(value)
    }
}

impl From<&str> for M {
    fn from(value: &str) -> M {
        M::Str(value.to_owned())
    }
}

impl<T: Into<M>, const N: usize> From<[T; N]> for M {
    fn from(values: [T; N]) -> M {
        M::Array(values.into_iter().map(Into::into).collect())
    }
}

pub fn map<const N: usize>(pairs: [(&str, M); N]) -> M {
    M::Map(pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

impl M {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![];
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            M::Int(value) => drop(encode::write_sint(out, *value).unwrap()),
            M::Bool(value) => encode::write_bool(out, *value).unwrap(),
            M::Nil => encode::write_nil(out).unwrap(),
            M::Str(value) => encode::write_str(out, value).unwrap(),
            M::Array(values) => {
                encode::write_array_len(out, values.len() as u32).unwrap();
                values.iter().for_each(|value| value.write(out));
            }
            M::Map(pairs) => {
                encode::write_map_len(out, pairs.len() as u32).unwrap();
                for (key, value) in pairs {
                    encode::write_str(out, key).unwrap();
                    value.write(out);
                }
            }
        }
    }

    fn step(&mut self, step: &str) -> &mut M {
        match self {
            M::Map(pairs) => {
                if !pairs.iter().any(|(key, _)| key == step) {
                    pairs.push((step.to_owned(), M::Nil));
                }
                pairs.iter_mut().find(|(key, _)| key == step).map(|(_, value)| value).unwrap()
            }
            M::Array(values) => &mut values[step.parse::<usize>().unwrap()],
            other => panic!("{step} of {other:?}"),
        }
    }

    /// The value at a path of keys and numbers, as `amdhsa.kernels/0/.name`; a key that is not there is added.
    pub fn at(&mut self, path: &str) -> &mut M {
        path.split('/').fold(self, |value, step| value.step(step))
    }

    /// Takes the last key of the path out of its map.
    pub fn remove(&mut self, path: &str) {
        let (parent, last) = path.rsplit_once('/').map_or((None, path), |(parent, last)| (Some(parent), last));
        let parent = match parent {
            Some(parent) => self.at(parent),
            None => self,
        };
        match parent {
            M::Map(pairs) => pairs.retain(|(key, _)| key != last),
            M::Array(values) => drop(values.remove(last.parse().unwrap())),
            other => panic!("{path} of {other:?}"),
        }
    }
}

/// A symbol table entry. `section` 1 is code, 2 data, 3 the descriptor's; `value` counts from there.
#[derive(Clone, Debug)]
pub struct Sym {
    pub name: &'static str,
    pub info: u8,
    pub section: u16,
    pub value: u64,
    pub size: u64,
}

const GLOBAL_FUNC: u8 = 0x12;
const GLOBAL_OBJECT: u8 = 0x11;
const GLOBAL_NOTYPE: u8 = 0x10;
const WEAK_NOTYPE: u8 = 0x20;

/// What an image is made of.
#[derive(Clone, Debug)]
pub struct Parts {
    pub abi_version: u8,
    pub flags: u32,
    /// One note each.
    pub metadata: Vec<M>,
    pub descriptor: [u8; 64],
    pub symbols: Vec<Sym>,
    /// Offset in the data, type, symbol, addend.
    pub relocations: Vec<(u64, u32, u32, i64)>,
    pub sections: bool,
    /// DT_HASH, or else DT_GNU_HASH.
    pub sysv_hash: bool,
}

/// The metadata of one kernel `k` of gfx1100 with two arguments and one hidden one.
pub fn metadata() -> M {
    let arg = |offset: i64, size: i64, kind: &str| {
        map([(".offset", offset.into()), (".size", size.into()), (".value_kind", kind.into())])
    };
    let mut buffer = arg(0, 8, "global_buffer");
    *buffer.at(".address_space") = "global".into();
    *buffer.at(".name") = "out".into();
    *buffer.at(".is_restrict") = M::Bool(true);
    let kernel = map([
        (".args", [buffer, arg(8, 4, "by_value"), arg(16, 4, "hidden_block_count_x")].into()),
        (".group_segment_fixed_size", 512.into()),
        (".kernarg_segment_align", 8.into()),
        (".kernarg_segment_size", 272.into()),
        (".max_flat_workgroup_size", 1024.into()),
        (".name", "k".into()),
        (".private_segment_fixed_size", 16.into()),
        (".sgpr_count", 18.into()),
        (".symbol", "k.kd".into()),
        (".uses_dynamic_stack", M::Bool(false)),
        (".vgpr_count", 12.into()),
        (".wavefront_size", 32.into()),
        (".workgroup_processor_mode", 1.into()),
        (".later_key", [map([("deep", M::Nil)])].into()),
    ]);
    map([
        ("amdhsa.kernels", [kernel].into()),
        ("amdhsa.printf", ["1:1:4:value %d\\n"].into()),
        ("amdhsa.target", "amdgcn-amd-amdhsa--gfx1100".into()),
        ("amdhsa.version", [1, 2].into()),
    ])
}

/// The descriptor of that kernel; the entry offset is filled in by `build`.
pub fn descriptor() -> [u8; 64] {
    let mut bytes = [0; 64];
    for (offset, value) in
        [(0, 512u32), (4, 16), (8, 272), (44, 0x20), (48, 0xe0af_0001), (52, 0x0000_009f), (56, 0x0000_0408)]
    {
        bytes[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
    }
    bytes
}

impl Default for Parts {
    fn default() -> Parts {
        let sym = |name, info, section, value, size| Sym { name, info, section, value, size };
        Parts {
            abi_version: 4,
            flags: 0x41,
            metadata: vec![metadata()],
            descriptor: descriptor(),
            symbols: vec![
                sym("", 0, 0, 0, 0),
                sym("host_symbol", GLOBAL_NOTYPE, 0, 0, 0),
                sym("weak_symbol", WEAK_NOTYPE, 0, 0, 0),
                sym("k", GLOBAL_FUNC, 1, 0, 8),
                sym("k.kd", GLOBAL_OBJECT, 3, 0, 64),
                sym("counter", GLOBAL_OBJECT, 2, 0, 8),
                sym("table", GLOBAL_OBJECT, 2, 8, 32),
                sym("limit", GLOBAL_OBJECT, 0xfff1, 0x1234, 0),
            ],
            relocations: vec![(8, 13, 0, 0x2000), (16, 3, 1, 4), (24, 3, 2, 0), (32, 3, 5, 2)],
            sections: true,
            sysv_hash: true,
        }
    }
}

/// An image and where its parts are.
#[derive(Clone, Debug)]
pub struct Image {
    pub bytes: Vec<u8>,
    places: BTreeMap<&'static str, Range<usize>>,
    vaddrs: BTreeMap<&'static str, u64>,
}

impl Image {
    /// File offset of a part.
    pub fn at(&self, part: &str) -> usize {
        self.range(part).start
    }

    /// File range of a part.
    pub fn range(&self, part: &str) -> Range<usize> {
        self.places.get(part).unwrap_or_else(|| panic!("no part {part}")).clone()
    }

    /// Address of a part.
    pub fn vaddr(&self, part: &str) -> u64 {
        self.vaddrs[part]
    }

    /// Overwrites bytes of a part.
    pub fn put(&mut self, part: &str, offset: usize, bytes: &[u8]) {
        let start = self.at(part) + offset;
        self.bytes[start..start + bytes.len()].copy_from_slice(bytes);
    }

    pub fn put_u16(&mut self, part: &str, offset: usize, value: u16) {
        self.put(part, offset, &value.to_le_bytes());
    }

    pub fn put_u32(&mut self, part: &str, offset: usize, value: u32) {
        self.put(part, offset, &value.to_le_bytes());
    }

    pub fn put_u64(&mut self, part: &str, offset: usize, value: u64) {
        self.put(part, offset, &value.to_le_bytes());
    }

    /// Overwrites the value of a dynamic tag.
    pub fn put_tag(&mut self, tag: u64, value: u64) {
        let i = self.tag_index(tag);
        self.put_u64("dynamic", 16 * i + 8, value);
    }

    /// Makes one dynamic tag another.
    pub fn rename_tag(&mut self, tag: u64, to: u64) {
        let i = self.tag_index(tag);
        self.put_u64("dynamic", 16 * i, to);
    }

    fn tag_index(&self, tag: u64) -> usize {
        let entries = &self.bytes[self.range("dynamic")];
        entries.chunks(16).position(|e| e[..8] == tag.to_le_bytes()).unwrap_or_else(|| panic!("no tag {tag:#x}"))
    }
}

const PROGRAM_HEADERS: [&str; 5] = ["load0", "load1", "load2", "dynamic_header", "note_header"];

impl Parts {
    pub fn build(&self) -> Image {
        let mut image = Image { bytes: vec![0; 64], places: BTreeMap::new(), vaddrs: BTreeMap::new() };
        image.places.insert("ehdr", 0..64);
        for name in PROGRAM_HEADERS {
            image.part(name, 8, 0, &[0; 56]);
        }
        image.part("note", 4, 0, &self.notes());
        image.part("dynsym", 8, 0, &vec![0; 24 * self.symbols.len()]);
        image.part("hash", 8, 0, &self.hash());
        image.part("rela", 8, 0, &vec![0; 24 * self.relocations.len()]);
        let strings: Vec<u8> = self.symbols.iter().flat_map(|s| [s.name.as_bytes(), &[0]].concat()).collect();
        image.part("dynstr", 1, 0, &strings);
        image.part("kd", 64, 0, &self.descriptor);
        let end0 = image.bytes.len();
        // s_endpgm, and a tail as compilers leave one.
        let code: Vec<u8> = [0xbfb0_0000u32].iter().chain(&[0xbf9f_0000; 127]).flat_map(|d| d.to_le_bytes()).collect();
        image.part("text", 256, 0x1000, &code);
        image.part("data", 16, 0x2000, &[0x55; 48]);
        image.part("dynamic", 16, 0x2000, &self.dynamic(&image));
        let end2 = image.bytes.len();
        let text_end = image.range("text").end;

        let (text, data) = (image.vaddr("text"), image.vaddr("data"));
        image.put_u64("kd", 16, text.wrapping_sub(image.vaddr("kd")));
        let mut name = 0u32;
        for (i, s) in self.symbols.iter().enumerate() {
            let base = match s.section {
                1 => text,
                2 => data,
                3 => image.vaddr("kd"),
                _ => 0,
            };
            let entry = [
                &name.to_le_bytes()[..],
                &[s.info, 0],
                &s.section.to_le_bytes(),
                &base.wrapping_add(s.value).to_le_bytes(),
                &s.size.to_le_bytes(),
            ];
            image.put("dynsym", 24 * i, &entry.concat());
            name += s.name.len() as u32 + 1;
        }
        for (i, &(offset, kind, symbol, addend)) in self.relocations.iter().enumerate() {
            image.put_u64("rela", 24 * i, data.wrapping_add(offset));
            image.put_u64("rela", 24 * i + 8, u64::from(symbol) << 32 | u64::from(kind));
            image.put_u64("rela", 24 * i + 16, addend as u64);
        }

        let (text_at, data_at) = (image.at("text"), image.at("data"));
        image.program_header("load0", 1, 4, 0..end0, 0, 0, 0x1000);
        image.program_header("load1", 1, 5, text_at..text_end, 0x1000, 0, 0x1000);
        image.program_header("load2", 1, 6, data_at..end2, 0x2000, 0x100, 0x1000);
        image.program_header("dynamic_header", 2, 6, image.range("dynamic"), 0x2000, 0, 8);
        image.program_header("note_header", 4, 4, image.range("note"), 0, 0, 4);
        self.header(&mut image);
        image
    }

    fn notes(&self) -> Vec<u8> {
        let mut bytes = vec![];
        for metadata in &self.metadata {
            let desc = metadata.encode();
            for word in [7u32, desc.len() as u32, 32] {
                bytes.extend(word.to_le_bytes());
            }
            bytes.extend(b"AMDGPU\0\0");
            bytes.extend(&desc);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    fn hash(&self) -> Vec<u8> {
        let count = self.symbols.len() as u32;
        let words = if self.sysv_hash {
            // One bucket, and a chain entry a symbol.
            let mut words = vec![1, count, u32::from(count > 1)];
            words.extend((0..count).map(|i| if i > 0 && i + 1 < count { i + 1 } else { 0 }));
            words
        } else {
            // One bucket that starts at symbol 3, one bloom word, and a chain whose last entry is odd.
            let mut words = vec![1, 3, 1, 6, 0, 0, if count > 3 { 3 } else { 0 }];
            words.extend((3..count).map(|i| 2 * i + u32::from(i + 1 == count)));
            words
        };
        words.into_iter().flat_map(u32::to_le_bytes).collect()
    }

    fn dynamic(&self, image: &Image) -> Vec<u8> {
        let strings = image.range("dynstr").len() as u64;
        let tags: [(u64, u64); 9] = [
            (7, image.vaddr("rela")),
            (8, 24 * self.relocations.len() as u64),
            (9, 24),
            (6, image.vaddr("dynsym")),
            (11, 24),
            (5, image.vaddr("dynstr")),
            (10, strings),
            (if self.sysv_hash { 4 } else { 0x6fff_fef5 }, image.vaddr("hash")),
            (0, 0),
        ];
        tags.iter().flat_map(|(tag, value)| [tag.to_le_bytes(), u64::to_le_bytes(*value)].concat()).collect()
    }

    fn header(&self, image: &mut Image) {
        let sections = if self.sections { image.sections() } else { (0, 0) };
        let ident = [0x7f, b'E', b'L', b'F', 2, 1, 1, 64, self.abi_version];
        image.put("ehdr", 0, &ident);
        for (offset, value) in [(16, 3u16), (18, 224), (52, 64), (54, 56), (56, 5), (58, 64), (60, sections.1)] {
            image.put_u16("ehdr", offset, value);
        }
        image.put_u32("ehdr", 20, 1);
        image.put_u64("ehdr", 32, 64);
        image.put_u64("ehdr", 40, sections.0);
        image.put_u32("ehdr", 48, self.flags);
    }
}

impl Image {
    fn part(&mut self, name: &'static str, align: usize, distance: u64, bytes: &[u8]) {
        self.bytes.resize(self.bytes.len().next_multiple_of(align), 0);
        let start = self.bytes.len();
        self.bytes.extend(bytes);
        self.places.insert(name, start..start + bytes.len());
        self.vaddrs.insert(name, start as u64 + distance);
    }

    #[allow(clippy::too_many_arguments)]
    fn program_header(
        &mut self,
        name: &str,
        kind: u32,
        flags: u32,
        file: Range<usize>,
        distance: u64,
        bss: u64,
        align: u64,
    ) {
        let vaddr = file.start as u64 + distance;
        self.put_u32(name, 0, kind);
        self.put_u32(name, 4, flags);
        for (i, value) in
            [file.start as u64, vaddr, vaddr, file.len() as u64, file.len() as u64 + bss, align].into_iter().enumerate()
        {
            self.put_u64(name, 8 + 8 * i, value);
        }
    }

    /// Appends a section table: null, code, data, descriptors, dynamic symbols.
    fn sections(&mut self) -> (u64, u16) {
        let listed = [("text", 1u32, 0u64), ("data", 1, 0), ("kd", 1, 0), ("dynsym", 11, 24)];
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        let start = self.bytes.len();
        let mut table = vec![0; 64];
        for (name, kind, entry) in listed {
            let range = self.range(name);
            let mut header = vec![0; 64];
            header[4..8].copy_from_slice(&kind.to_le_bytes());
            for (offset, value) in
                [(16, self.vaddr(name)), (24, range.start as u64), (32, range.len() as u64), (56, entry)]
            {
                header[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
            }
            table.extend(header);
        }
        self.places.insert("shdr", start..start + table.len());
        self.bytes.extend(&table);
        (start as u64, listed.len() as u16 + 1)
    }
}

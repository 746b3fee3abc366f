//! Files that carry code objects: offload bundles, compressed bundles, offload binaries and host programs.
//!
//! [`open`] lists what a file carries and [`select`] takes the entry for a device:
//!
//! ```
//! use elf::container::{self, Limits};
//! # fn load(file: &[u8], device: &elf::TargetId) -> Result<(), Box<dyn std::error::Error>> {
//! let contents = container::open(file, &Limits::default())?;
//! let entry = container::select(&contents, device, None)?;
//! let code = elf::CodeObject::parse(&entry.data)?;
//! # Ok(())
//! # }
//! ```
//!
//! What is read: a code object by itself; clang's offload bundles ("Clang Offload Bundler", "Bundled Binary File
//! Layout") and their compressed form, versions 1 to 3 with zlib or zstd ("Compressed Offload Bundle"); LLVM's offload
//! binaries, versions 1 to 3 ("Clang Offload Packager"); and 64-bit little-endian host ELF files with a `.hip_fatbin`
//! or `.llvm.offloading` section. Several bundles or binaries may follow each other with zeros between, as a linker
//! leaves them, and one may be inside another.
//!
//! Nothing is copied but what is compressed. All of that together is bounded by [`Limits::max_uncompressed`].

mod bundle;
mod compressed;
mod entry;
mod error;
mod host;
pub(crate) mod inflate;
mod offload_binary;
mod read;
mod select;

pub use bundle::BundleError;
pub use compressed::CompressedError;
pub use entry::{Content, Data, Entry, OffloadKind};
pub use error::ContainerError;
pub use host::HostError;
pub use inflate::{InflateError, Method};
pub use offload_binary::OffloadBinaryError;
pub use read::Cut;
pub use select::{SelectError, matching, select};

use std::fmt;

use crate::foreign::{self, Foreign};
use crate::header;
use inflate::Budget;

/// How deep containers may be nested. A compressed bundle in an offload binary in a section of a host file is 5 deep.
const MAX_NESTED: usize = 8;

const ELF_MAGIC: &[u8] = b"\x7fELF";
const KPACK_MAGIC: &[u8] = b"KPAK";

/// What the containers of one file may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all compressed containers together, uncompressed. While one is uncompressed, up to three times its
    /// size is in use.
    pub max_uncompressed: u64,
    /// Entries and containers, each.
    pub max_entries: usize,
}

impl Default for Limits {
    /// 1 GiB and 262144 entries.
    fn default() -> Limits {
        Limits { max_uncompressed: 1 << 30, max_entries: 1 << 18 }
    }
}

/// What a file carries.
#[derive(Clone, Debug)]
pub struct Contents<'a> {
    /// What the file is: the kind of its first container.
    pub kind: ContainerKind,
    /// The containers, outer ones before those inside them.
    pub containers: Vec<Container>,
    /// The entries in the order of the file's tables. `--entry` counts them from 0.
    pub entries: Vec<Entry<'a>>,
}

/// A container in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// What it is.
    pub kind: ContainerKind,
    /// Where it starts: an offset in bytes into the container around it (into its uncompressed bytes), or into the
    /// file.
    pub offset: usize,
    /// Index of the container around it.
    pub parent: Option<usize>,
}

/// Kinds of containers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContainerKind {
    /// None: a code object by itself.
    CodeObject,
    /// `__CLANG_OFFLOAD_BUNDLE__`.
    Bundle,
    /// `CCOB`, with a bundle inside.
    CompressedBundle {
        /// 1 to 3.
        version: u16,
        /// How it is compressed.
        method: Method,
        /// Bytes in the file, with the header.
        bytes: usize,
        /// Bytes inside.
        uncompressed: usize,
    },
    /// `0x10FF10AD`.
    OffloadBinary {
        /// 1 to 3.
        version: u32,
        /// How it is compressed, from version 3.
        method: Option<Method>,
    },
    /// An ELF file for another machine.
    HostElf {
        /// `e_machine`.
        machine: u16,
        /// Its name.
        name: &'static str,
    },
    /// A section of a host ELF file.
    Section {
        /// `.hip_fatbin` or `.llvm.offloading`.
        name: &'static str,
    },
}

impl fmt::Display for ContainerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ContainerKind::CodeObject => f.write_str("AMDGPU code object"),
            ContainerKind::Bundle => f.write_str("clang offload bundle"),
            ContainerKind::CompressedBundle { version, method, bytes, uncompressed } => {
                write!(
                    f,
                    "compressed clang offload bundle V{version}, {method}, {bytes} bytes for {uncompressed} bytes"
                )
            }
            ContainerKind::OffloadBinary { version, method: None } => write!(f, "LLVM offload binary V{version}"),
            ContainerKind::OffloadBinary { version, method: Some(method) } => {
                write!(f, "LLVM offload binary V{version}, {method}")
            }
            ContainerKind::HostElf { name, .. } => write!(f, "host ELF for {name}"),
            ContainerKind::Section { name } => write!(f, "section {name}"),
        }
    }
}

/// Containers that start with a magic number and may follow each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Bundle,
    Compressed,
    OffloadBinary,
}

const FORMATS: [(&[u8], Format, &str); 3] = [
    (bundle::MAGIC, Format::Bundle, "a clang offload bundle"),
    (compressed::MAGIC, Format::Compressed, "a compressed clang offload bundle"),
    (offload_binary::MAGIC, Format::OffloadBinary, "an LLVM offload binary"),
];

fn format(bytes: &[u8]) -> Option<Format> {
    FORMATS.iter().find(|(magic, ..)| bytes.starts_with(magic)).map(|&(_, format, _)| format)
}

/// What the bytes would start if they did not end inside its magic number.
fn cut_magic(bytes: &[u8]) -> Option<ContainerError> {
    let others = [(ELF_MAGIC, "an ELF file"), (KPACK_MAGIC, "a ROCm kpack archive")];
    let mut magics = FORMATS.iter().map(|&(magic, _, of)| (magic, of)).chain(others);
    let is_cut = |magic: &[u8]| !bytes.is_empty() && bytes.len() < magic.len() && magic.starts_with(bytes);
    let (_, of) = magics.find(|(magic, _)| is_cut(magic))?;
    Some(ContainerError::CutMagic { len: bytes.len(), of })
}

/// Lists what a file carries. Every entry's data is inside its container; what is compressed is uncompressed and
/// checked. A code object in a container may still break rules, see [`Content::Malformed`].
pub fn open<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Contents<'a>, ContainerError> {
    let mut opener = Opener {
        limits: *limits,
        budget: Budget { limit: limits.max_uncompressed, used: 0 },
        containers: vec![],
        entries: vec![],
    };
    opener.file(bytes)?;
    let Some(kind) = opener.containers.first().map(|c| c.kind.clone()) else {
        return Err(ContainerError::Zeros { len: bytes.len() });
    };
    Ok(Contents { kind, containers: opener.containers, entries: opener.entries })
}

struct Opener<'a> {
    limits: Limits,
    budget: Budget,
    containers: Vec<Container>,
    entries: Vec<Entry<'a>>,
}

impl<'a> Opener<'a> {
    fn file(&mut self, bytes: &'a [u8]) -> Result<(), ContainerError> {
        if let Some(cut) = cut_magic(bytes) {
            return Err(cut);
        }
        if format(bytes).is_some() {
            return self.sequence(&Data::of_file(bytes), None);
        }
        if bytes.starts_with(KPACK_MAGIC) {
            return Err(ContainerError::Kpack);
        }
        match foreign::identify(bytes) {
            None => {
                let header = header::parse(bytes)?;
                let container = self.container(ContainerKind::CodeObject, 0, None)?;
                self.entry(Entry::plain(bytes, &header, container))
            }
            Some(Foreign::HostElf { machine, name }) => self.host(bytes, machine, name),
            Some(Foreign::Text) if bundle::is_text(bytes) => Err(ContainerError::TextBundle),
            Some(foreign) => Err(foreign.into()),
        }
    }

    fn host(&mut self, bytes: &'a [u8], machine: u16, name: &'static str) -> Result<(), ContainerError> {
        let host = host::parse(bytes)?;
        let file = self.container(ContainerKind::HostElf { machine, name }, 0, None)?;
        let mut none = true;
        for host::Section { name, range } in host.sections {
            let data = &bytes[range.clone()];
            if data.iter().all(|&byte| byte == 0) {
                continue;
            }
            none = false;
            let section = self.container(ContainerKind::Section { name }, range.start, Some(file))?;
            self.sequence(&Data::of_file(data), Some(section))
                .map_err(|cause| inside(format!("section {name} at {:#x}", range.start), cause))?;
        }
        if none {
            return Err(host.elsewhere.unwrap_or(HostError::NoDeviceCode { machine: name }).into());
        }
        Ok(())
    }

    /// Containers one after the other, with zeros between.
    fn sequence(&mut self, data: &Data<'a>, parent: Option<usize>) -> Result<(), ContainerError> {
        let mut at = 0;
        let mut first = true;
        loop {
            at += data[at..].iter().take_while(|&&byte| byte == 0).count();
            if at == data.len() {
                return if first { Err(ContainerError::Zeros { len: at }) } else { Ok(()) };
            }
            let rest = data.slice(at..data.len());
            let used = match format(&rest) {
                Some(Format::Bundle) => self.bundle(&rest, at, parent),
                Some(Format::Compressed) => self.compressed(&rest, at, parent),
                Some(Format::OffloadBinary) => self.offload_binary(&rest, at, parent),
                None => match cut_magic(&rest) {
                    Some(cut) => Err(cut),
                    None => return Err(ContainerError::Stray { at, bytes: rest.iter().copied().take(8).collect() }),
                },
            };
            // The start of the file needs no place.
            at += used.map_err(|cause| match at {
                0 => cause,
                _ => inside(format!("the container at {at:#x}"), cause),
            })?;
            first = false;
        }
    }

    fn bundle(&mut self, data: &Data<'a>, at: usize, parent: Option<usize>) -> Result<usize, ContainerError> {
        let bundle = bundle::parse(data, self.limits.max_entries)?;
        let container = self.container(ContainerKind::Bundle, at, parent)?;
        for (number, item) in bundle.items.into_iter().enumerate() {
            let image = data.slice(item.range.clone());
            if format(&image).is_some() {
                self.sequence(&image, Some(container))
                    .map_err(|cause| inside(format!("entry {number} ({}) of the bundle", item.id), cause))?;
            } else {
                self.entry(Entry::of_bundle(item, image, container))?;
            }
        }
        Ok(bundle.end)
    }

    fn compressed(&mut self, data: &Data<'a>, at: usize, parent: Option<usize>) -> Result<usize, ContainerError> {
        let (bundle, header, end) = compressed::parse(data, &mut self.budget)?;
        let kind = ContainerKind::CompressedBundle {
            version: header.version,
            method: header.method,
            bytes: end,
            uncompressed: bundle.len(),
        };
        let container = self.container(kind, at, parent)?;
        self.sequence(&Data::uncompressed(bundle), Some(container))
            .map_err(|cause| inside("the uncompressed bundle".to_owned(), cause))?;
        Ok(end)
    }

    fn offload_binary(&mut self, data: &Data<'a>, at: usize, parent: Option<usize>) -> Result<usize, ContainerError> {
        let record = offload_binary::header(data)?;
        let version = record.version;
        let used = record.size;
        let (data, method) = match offload_binary::uncompress(data, &record, &mut self.budget)? {
            Some((bytes, method)) => (Data::uncompressed(bytes), Some(method)),
            None => (data.slice(0..used), None),
        };
        let items = offload_binary::parse(&data, &record, self.limits.max_entries)?;
        let container = self.container(ContainerKind::OffloadBinary { version, method }, at, parent)?;
        for (number, item) in items.into_iter().enumerate() {
            let image = data.slice(item.range.clone());
            if format(&image).is_some() {
                self.sequence(&image, Some(container))
                    .map_err(|cause| inside(format!("image {number} of the offload binary"), cause))?;
            } else {
                self.entry(Entry::of_offload_binary(item, image, container))?;
            }
        }
        Ok(used)
    }

    fn container(
        &mut self,
        kind: ContainerKind,
        offset: usize,
        parent: Option<usize>,
    ) -> Result<usize, ContainerError> {
        let around = std::iter::successors(parent, |&index| self.containers[index].parent).count();
        if around == MAX_NESTED {
            return Err(ContainerError::Nested { limit: MAX_NESTED });
        }
        if self.containers.len() == self.limits.max_entries {
            return Err(ContainerError::Entries { limit: self.limits.max_entries });
        }
        self.containers.push(Container { kind, offset, parent });
        Ok(self.containers.len() - 1)
    }

    fn entry(&mut self, entry: Entry<'a>) -> Result<(), ContainerError> {
        if self.entries.len() == self.limits.max_entries {
            return Err(ContainerError::Entries { limit: self.limits.max_entries });
        }
        self.entries.push(entry);
        Ok(())
    }
}

fn inside(place: String, cause: ContainerError) -> ContainerError {
    ContainerError::In { place, cause: Box::new(cause) }
}

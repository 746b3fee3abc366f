//! AMDGPU code objects: the ELF files that hold GPU programs, as pure functions over `&[u8]`.
//!
//! [`CodeObject::parse`] reads a linked code object of version 3 to 6 and checks all of it that a loader relies on. It
//! does no I/O, borrows from its input, has no unsafe code, and does not panic on any input: what breaks a rule is
//! refused with one line that names the field, its value and the rule. Section headers are not needed.
//!
//! The rules are those of the System V ABI and of LLVM's "User Guide for AMDGPU Backend" (AMDGPUUsage).

#![forbid(unsafe_code)]

pub mod container;
mod descriptor;
mod dynamic;
mod error;
mod foreign;
mod header;
mod kernel;
mod metadata;
mod msgpack;
mod note;
mod reloc;
mod section;
mod segment;
mod symbol;
mod target;

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

pub use descriptor::{CodeProperties, DESCRIPTOR_BYTES, Descriptor, DescriptorError, ENTRY_ALIGN};
pub use dynamic::DynamicError;
pub use error::{Error, KernelError};
pub use foreign::Foreign;
pub use header::{HeaderError, Version, target as target_of_flags};
pub use kernel::Kernel;
pub use metadata::{
    Access, AddressSpace, Arg, KernelKind, KernelMetadata, Metadata, MetadataError, Path as MetadataPath, ValueKind,
};
pub use msgpack::{MAX_DEPTH, Problem};
pub use note::{NoteError, metadata_notes};
pub use reloc::{Relocation, RelocationError, RelocationKind, Value};
pub use segment::{MAX_SPAN, Segment, SegmentError};
pub use symbol::{Place, Symbol, SymbolError, SymbolKind};
pub use target::{Feature, Generation, Mismatch, PROCESSORS, Processor, TargetId, TargetIdError};

/// A code object that keeps all the rules.
#[derive(Clone, Debug)]
pub struct CodeObject<'a> {
    bytes: &'a [u8],
    version: Version,
    target: TargetId,
    segments: Vec<Segment<'a>>,
    symbols: Vec<Symbol<'a>>,
    by_name: HashMap<&'a str, usize>,
    relocations: Vec<Relocation<'a>>,
    kernels: Vec<Kernel<'a>>,
    kernels_by_name: HashMap<&'a str, usize>,
    printf: Vec<&'a str>,
}

impl<'a> CodeObject<'a> {
    /// Reads and checks a whole file.
    pub fn parse(bytes: &'a [u8]) -> Result<CodeObject<'a>, Error> {
        if let Some(foreign) = foreign::identify(bytes) {
            return Err(foreign.into());
        }
        let header = header::parse(bytes)?;
        let segments = segment::parse(bytes, &header)?;
        let dynamic = dynamic::parse(&segments)?;
        symbol::check_sections(bytes, &header, &dynamic)?;
        let symbols = symbol::parse(&segments, &dynamic, header.sections.map(|(_, count)| count))?;
        let by_name = index_symbols(&symbols)?;
        let relocations = reloc::parse(&segments, &dynamic, &symbols)?;

        let mut metadata = Metadata::default();
        for note in note::metadata_notes(&segments.notes) {
            metadata.add_note(note?)?;
        }
        check_target(metadata.target, &header.target)?;
        let mut kernels = Vec::with_capacity(metadata.kernels.len());
        let mut kernels_by_name = HashMap::with_capacity(metadata.kernels.len());
        for (second, kernel) in metadata.kernels.into_iter().enumerate() {
            let name = kernel.name;
            if let Some(first) = kernels_by_name.insert(name, second) {
                return Err(Error::TwoKernels { name: error::shown(name), first, second });
            }
            let symbol = by_name.get(kernel.symbol).map(|&i| &symbols[i]);
            let kernel = kernel::join(kernel, symbol, &segments, header.target.processor)
                .map_err(|cause| Error::Kernel { kernel: error::shown(name), cause })?;
            kernels.push(kernel);
        }
        Ok(CodeObject {
            bytes,
            version: header.version,
            target: header.target,
            segments: segments.loads,
            symbols,
            by_name,
            relocations,
            kernels,
            kernels_by_name,
            printf: metadata.printf,
        })
    }

    /// Bytes of a section, uncompressed. None when the file has no such section, or a broken one. Nothing else here needs
    /// sections: `.debug_*` is what they are for.
    pub fn section(&self, name: &str) -> Option<Cow<'a, [u8]>> {
        section::find(self.bytes, name)
    }

    /// Code object version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// What the code is compiled for.
    pub fn target(&self) -> &TargetId {
        &self.target
    }

    /// The segments to load, ascending and apart.
    pub fn segments(&self) -> &[Segment<'a>] {
        &self.segments
    }

    /// Addresses from the first segment to the end of the last. Code addresses data relative to itself, so the whole
    /// span has to be loaded at one distance (the load delta) from these addresses.
    pub fn span(&self) -> Range<u64> {
        let start = self.segments.first().map_or(0, |s| s.vaddr);
        start..self.segments.last().map_or(start, |s| s.range().end)
    }

    /// The largest alignment of a segment: the load delta has to be a multiple of it.
    pub fn align(&self) -> u64 {
        self.segments.iter().map(|s| s.align).max().unwrap_or(1)
    }

    /// `len` bytes of the file that are loaded at `vaddr`; none if they are not all there, or are zeros that the file
    /// does not hold.
    pub fn file_bytes(&self, vaddr: u64, len: u64) -> Option<&'a [u8]> {
        segment::file_bytes(&self.segments, vaddr, len)
    }

    /// What to write into the loaded image, in the order of the file.
    pub fn relocations(&self) -> &[Relocation<'a>] {
        &self.relocations
    }

    /// The dynamic symbols, the null symbol first.
    pub fn symbols(&self) -> &[Symbol<'a>] {
        &self.symbols
    }

    /// The dynamic symbol of this name. Local symbols have none.
    pub fn symbol(&self, name: &str) -> Option<&Symbol<'a>> {
        self.by_name.get(name).map(|&i| &self.symbols[i])
    }

    /// The variables: objects in the image that are not kernel descriptors.
    pub fn globals(&self) -> impl Iterator<Item = &Symbol<'a>> {
        let is_global = |s: &&Symbol<'a>| s.kind == SymbolKind::Object && s.vaddr().is_some() && !s.local;
        self.symbols.iter().filter(is_global).filter(|s| !s.name.ends_with(".kd"))
    }

    /// The kernels, in the order of the metadata.
    pub fn kernels(&self) -> &[Kernel<'a>] {
        &self.kernels
    }

    /// The kernel of this name.
    pub fn kernel(&self, name: &str) -> Option<&Kernel<'a>> {
        self.kernels_by_name.get(name).map(|&i| &self.kernels[i])
    }

    /// `amdhsa.printf`: the format strings of device `printf`, as the compiler wrote them.
    pub fn printf(&self) -> &[&'a str] {
        &self.printf
    }
}

/// Symbols that others can see, by name.
fn index_symbols<'a>(symbols: &[Symbol<'a>]) -> Result<HashMap<&'a str, usize>, SymbolError> {
    let mut by_name = HashMap::with_capacity(symbols.len());
    for (second, symbol) in symbols.iter().enumerate().filter(|(_, s)| !s.local && !s.name.is_empty()) {
        if let Some(first) = by_name.insert(symbol.name, second) {
            return Err(SymbolError::Twice { name: error::shown(symbol.name), first, second });
        }
    }
    Ok(by_name)
}

/// The metadata names the target once more, as `amdgcn-amd-amdhsa--gfx90a:xnack+`. V3 files and GCC's do not.
fn check_target(metadata: Option<&str>, flags: &TargetId) -> Result<(), Error> {
    let Some(text) = metadata else { return Ok(()) };
    // Architecture, vendor, system and an environment that is mostly empty.
    let id = text.strip_prefix("amdgcn-amd-amdhsa-").and_then(|rest| rest.split_once('-')).map(|(_, id)| id);
    let same = id
        .and_then(|id| id.parse::<TargetId>().ok())
        .is_some_and(|id| (id.processor, id.sramecc, id.xnack) == (flags.processor, flags.sramecc, flags.xnack));
    if same {
        return Ok(());
    }
    Err(Error::Target { metadata: error::shown(text), flags: flags.to_string() })
}

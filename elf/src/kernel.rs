//! Kernels: metadata, symbol, descriptor and entry brought together.

use crate::descriptor::{DESCRIPTOR_BYTES, Descriptor, ENTRY_ALIGN};
use crate::error::{KernelError, shown};
use crate::metadata::KernelMetadata;
use crate::segment::Segments;
use crate::symbol::{Place, Symbol, SymbolKind};
use crate::target::Processor;

/// A kernel that can be launched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel<'a> {
    /// What the compiler says of it: name, arguments, sizes, limits.
    pub metadata: KernelMetadata<'a>,
    /// Its descriptor.
    pub descriptor: Descriptor,
    /// Address of the descriptor in the image, 64-byte aligned: with the load delta it is the `kernel_object`.
    pub descriptor_vaddr: u64,
    /// Address of its code in the image, 256-byte aligned.
    pub entry_vaddr: u64,
}

impl<'a> Kernel<'a> {
    /// `.name`.
    pub fn name(&self) -> &'a str {
        self.metadata.name
    }

    /// The scratch size is not an upper bound: the launcher has to give more.
    pub fn uses_dynamic_stack(&self) -> bool {
        self.metadata.uses_dynamic_stack.unwrap_or(false) || self.descriptor.kernel_code_properties.uses_dynamic_stack()
    }
}

/// Finds and checks the descriptor of a kernel. `symbol` is what `.symbol` names.
pub(crate) fn join<'a>(
    metadata: KernelMetadata<'a>,
    symbol: Option<&Symbol<'a>>,
    segments: &Segments<'a>,
    processor: &Processor,
) -> Result<Kernel<'a>, KernelError> {
    let name = || shown(metadata.symbol);
    let symbol = symbol.ok_or_else(|| KernelError::NoSymbol { symbol: name() })?;
    let fail = |field, value, rule| Err(KernelError::Symbol { symbol: name(), field, value, rule });
    let vaddr = match symbol.place {
        Place::Image(vaddr) => vaddr,
        Place::Absolute(_) => return fail("st_shndx", "0xfff1 (absolute)".to_owned(), "a section"),
        Place::Undefined => return fail("st_shndx", "0 (undefined)".to_owned(), "a section"),
    };
    if symbol.kind != SymbolKind::Object {
        return fail("type", format!("{:?}", symbol.kind), "Object (STT_OBJECT)");
    }
    if symbol.size != DESCRIPTOR_BYTES {
        return fail("st_size", symbol.size.to_string(), "64");
    }
    if vaddr % DESCRIPTOR_BYTES != 0 {
        return fail("st_value", format!("{vaddr:#x}"), "a multiple of 64");
    }
    let place = KernelError::Place { vaddr };
    if segments.find(vaddr, DESCRIPTOR_BYTES).is_none_or(|segment| segment.writable) {
        return Err(place);
    }
    let bytes = segments.file_bytes(vaddr, DESCRIPTOR_BYTES).and_then(|bytes| bytes.first_chunk::<64>());
    let bytes = bytes.ok_or(place)?;
    let descriptor = Descriptor::parse(bytes, processor).map_err(|cause| KernelError::Descriptor { vaddr, cause })?;

    // Four bytes are the shortest instruction.
    let is_code = |vaddr| {
        segments.find(vaddr, 4).is_some_and(|segment| segment.executable) && segments.file_bytes(vaddr, 4).is_some()
    };
    let entry = descriptor.entry(vaddr).filter(|&entry| entry % ENTRY_ALIGN == 0 && is_code(entry));
    let offset = descriptor.kernel_code_entry_byte_offset;
    let entry_vaddr = entry.ok_or(KernelError::Entry { vaddr, offset })?;
    if descriptor.kernarg_preload_length != 0 && !entry_vaddr.checked_add(ENTRY_ALIGN).is_some_and(is_code) {
        return Err(KernelError::PreloadEntry { vaddr, entry: entry_vaddr });
    }

    let pairs = [
        ("wavefront size", descriptor.wavefront_size(), metadata.wavefront_size),
        ("group segment size", descriptor.group_segment_fixed_size, metadata.group_segment_fixed_size),
        ("private segment size", descriptor.private_segment_fixed_size, metadata.private_segment_fixed_size),
        ("kernarg segment size", descriptor.kernarg_size, metadata.kernarg_segment_size),
    ];
    for (field, descriptor, metadata) in pairs {
        // A kernarg size of 0 in the descriptor means that it is not said.
        if descriptor != metadata && !(field == "kernarg segment size" && descriptor == 0) {
            return Err(KernelError::Disagreement { field, descriptor, metadata });
        }
    }
    Ok(Kernel { metadata, descriptor, descriptor_vaddr: vaddr, entry_vaddr })
}

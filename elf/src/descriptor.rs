//! Kernel descriptors: 64 bytes in the image that the packet processor reads (LLVM AMDGPUUsage "Kernel Descriptor").

use bitfield_struct::bitfield;

use crate::target::{Generation, Processor};

/// Bytes of a descriptor, and its alignment.
pub const DESCRIPTOR_BYTES: u64 = 64;
/// Alignment of a kernel's entry.
pub const ENTRY_ALIGN: u64 = 256;

/// `kernel_code_properties`: which values a wave starts with in SGPRs, from s0 on in this order, and how it runs.
#[bitfield(u16)]
#[derive(PartialEq, Eq)]
pub struct CodeProperties {
    /// Private segment buffer, 4 SGPRs; not with architected flat scratch.
    pub private_segment_buffer: bool,
    /// Address of the dispatch packet, 2 SGPRs.
    pub dispatch_ptr: bool,
    /// Address of the `amd_queue_t`, 2 SGPRs.
    pub queue_ptr: bool,
    /// Address of the kernel arguments, 2 SGPRs.
    pub kernarg_segment_ptr: bool,
    /// Number of the dispatch, 2 SGPRs.
    pub dispatch_id: bool,
    /// Flat scratch base, 2 SGPRs; not with architected flat scratch.
    pub flat_scratch_init: bool,
    /// Scratch bytes of a work-item, 1 SGPR.
    pub private_segment_size: bool,
    #[bits(3)]
    __: u8,
    /// Waves have 32 lanes, otherwise 64.
    pub wavefront32: bool,
    /// The scratch size is not an upper bound.
    pub uses_dynamic_stack: bool,
    #[bits(4)]
    __: u8,
}

impl CodeProperties {
    /// SGPRs that the enabled values take.
    pub fn sgprs(self) -> u32 {
        4 * u32::from(self.private_segment_buffer())
            + 2 * [
                self.dispatch_ptr(),
                self.queue_ptr(),
                self.kernarg_segment_ptr(),
                self.dispatch_id(),
                self.flat_scratch_init(),
            ]
            .map(u32::from)
            .iter()
            .sum::<u32>()
            + u32::from(self.private_segment_size())
    }
}

/// A kernel descriptor that keeps the rules of its processor. The register images are what the compiler wrote; the
/// methods take them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// Static LDS of a work-group in bytes.
    pub group_segment_fixed_size: u32,
    /// Scratch of a work-item in bytes.
    pub private_segment_fixed_size: u32,
    /// Bytes of kernel arguments; 0 if the compiler did not say.
    pub kernarg_size: u32,
    /// Entry, from the descriptor's own address.
    pub kernel_code_entry_byte_offset: i64,
    /// COMPUTE_PGM_RSRC1.
    pub compute_pgm_rsrc1: u32,
    /// COMPUTE_PGM_RSRC2.
    pub compute_pgm_rsrc2: u32,
    /// COMPUTE_PGM_RSRC3.
    pub compute_pgm_rsrc3: u32,
    /// SGPR contents and wave size.
    pub kernel_code_properties: CodeProperties,
    /// Dwords of kernel arguments loaded to SGPRs.
    pub kernarg_preload_length: u32,
    /// First of them, in dwords from the start of the kernel arguments.
    pub kernarg_preload_offset: u32,
}

/// Why 64 bytes are not a kernel descriptor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DescriptorError {
    /// Reserved bytes are not zero.
    #[error("bytes {offset} to {last} are reserved: byte {at} is {value:#04x}, must be zero")]
    ReservedBytes {
        /// First of them.
        offset: usize,
        /// Last of them.
        last: usize,
        /// The first that is not zero.
        at: usize,
        /// Its value.
        value: u8,
    },
    /// Bits that must be zero on this processor.
    #[error("{register} is {value:#x}: {} ({what}) = {bits:#x}, must be zero on {processor}", bit_range(*low, *high))]
    ReservedBits {
        /// Which field.
        register: &'static str,
        /// The whole of it.
        value: u32,
        /// Lowest bit.
        low: u32,
        /// Highest bit.
        high: u32,
        /// What the bits are.
        what: &'static str,
        /// Their value.
        bits: u32,
        /// The processor.
        processor: &'static str,
    },
    /// A field that breaks another rule.
    #[error("{field} is {value}, must be {rule}")]
    Rule {
        /// Which.
        field: &'static str,
        /// As read.
        value: u64,
        /// What it must be.
        rule: String,
    },
}

/// Bits that must be zero in a file. The packet processor sets some of them itself.
struct Zero {
    low: u32,
    high: u32,
    what: &'static str,
    first: Generation,
    last: Generation,
}

const fn zero(low: u32, high: u32, what: &'static str, first: Generation, last: Generation) -> Zero {
    Zero { low, high, what, first, last }
}

use Generation::{Gfx6, Gfx8, Gfx9, Gfx10, Gfx11, Gfx12, Gfx90a, Gfx940, Gfx1250};

// GRANULATED_WAVEFRONT_SGPR_COUNT is to be zero from gfx10 on, where a wave has 128 SGPRs whatever it says; LLVM 19
// leaves a count in it for kernels that call functions, and such images must run.
const RSRC1: [Zero; 12] = [
    zero(10, 11, "PRIORITY", Gfx6, Gfx1250),
    zero(20, 20, "PRIV", Gfx6, Gfx1250),
    zero(22, 22, "DEBUG_MODE", Gfx6, Gfx1250),
    zero(23, 23, "DISABLE_PERF", Gfx12, Gfx1250),
    zero(24, 24, "BULKY", Gfx6, Gfx1250),
    zero(25, 25, "CDBG_USER", Gfx6, Gfx1250),
    zero(26, 26, "reserved", Gfx6, Gfx8),
    zero(27, 27, "reserved", Gfx6, Gfx12),
    zero(28, 28, "reserved", Gfx6, Gfx1250),
    zero(29, 29, "WGP_MODE", Gfx6, Gfx940),
    zero(30, 30, "MEM_ORDERED", Gfx6, Gfx940),
    zero(31, 31, "FWD_PROGRESS", Gfx6, Gfx940),
];

const RSRC2: [Zero; 4] = [
    zero(6, 6, "ENABLE_TRAP_HANDLER", Gfx6, Gfx11),
    zero(13, 14, "exceptions of address watch and memory violation", Gfx6, Gfx1250),
    zero(15, 23, "GRANULATED_LDS_SIZE", Gfx6, Gfx1250),
    zero(31, 31, "reserved", Gfx6, Gfx1250),
];

const RSRC3: [Zero; 11] = [
    zero(0, 31, "reserved", Gfx6, Gfx9),
    zero(6, 15, "reserved", Gfx90a, Gfx940),
    zero(17, 31, "reserved", Gfx90a, Gfx940),
    zero(4, 31, "reserved", Gfx10, Gfx10),
    zero(10, 11, "TRAP_ON_START, TRAP_ON_END", Gfx11, Gfx11),
    zero(12, 30, "reserved", Gfx11, Gfx11),
    zero(31, 31, "IMAGE_OP", Gfx11, Gfx1250),
    zero(0, 3, "reserved", Gfx12, Gfx1250),
    zero(12, 12, "reserved", Gfx12, Gfx1250),
    zero(14, 30, "reserved", Gfx12, Gfx12),
    zero(22, 30, "reserved", Gfx1250, Gfx1250),
];

const PROPERTIES: [Zero; 6] = [
    zero(0, 0, "ENABLE_SGPR_PRIVATE_SEGMENT_BUFFER, which architected flat scratch replaces", Gfx940, Gfx940),
    zero(0, 0, "ENABLE_SGPR_PRIVATE_SEGMENT_BUFFER, which architected flat scratch replaces", Gfx11, Gfx1250),
    zero(5, 5, "ENABLE_SGPR_FLAT_SCRATCH_INIT, which architected flat scratch replaces", Gfx940, Gfx940),
    zero(5, 5, "ENABLE_SGPR_FLAT_SCRATCH_INIT, which architected flat scratch replaces", Gfx11, Gfx1250),
    zero(7, 9, "reserved", Gfx6, Gfx1250),
    zero(12, 15, "reserved", Gfx6, Gfx1250),
];

const PRELOAD: [Zero; 2] = [zero(0, 15, "kernarg preload", Gfx6, Gfx9), zero(0, 15, "kernarg preload", Gfx10, Gfx12)];

impl Descriptor {
    /// Reads a descriptor of `processor`, and checks it by itself: reserved fields, and values that no hardware of that
    /// kind takes.
    pub fn parse(bytes: &[u8; 64], processor: &Processor) -> Result<Descriptor, DescriptorError> {
        let word = |i: usize| u32::from_le_bytes([bytes[i], bytes[i + 1], bytes[i + 2], bytes[i + 3]]);
        for (offset, last) in [(12, 15), (24, 43), (60, 63)] {
            if let Some(at) = (offset..=last).find(|&i| bytes[i] != 0) {
                return Err(DescriptorError::ReservedBytes { offset, last, at, value: bytes[at] });
            }
        }
        let properties = u16::from_le_bytes([bytes[56], bytes[57]]);
        let preload = u32::from(u16::from_le_bytes([bytes[58], bytes[59]]));
        let mut entry = [0; 8];
        entry.copy_from_slice(&bytes[16..24]);
        let descriptor = Descriptor {
            group_segment_fixed_size: word(0),
            private_segment_fixed_size: word(4),
            kernarg_size: word(8),
            kernel_code_entry_byte_offset: i64::from_le_bytes(entry),
            compute_pgm_rsrc3: word(44),
            compute_pgm_rsrc1: word(48),
            compute_pgm_rsrc2: word(52),
            kernel_code_properties: CodeProperties::from_bits(properties),
            kernarg_preload_length: preload & 0x7f,
            kernarg_preload_offset: preload >> 7,
        };
        let registers: [(&str, u32, &[Zero]); 5] = [
            ("compute_pgm_rsrc1", descriptor.compute_pgm_rsrc1, &RSRC1),
            ("compute_pgm_rsrc2", descriptor.compute_pgm_rsrc2, &RSRC2),
            ("compute_pgm_rsrc3", descriptor.compute_pgm_rsrc3, &RSRC3),
            ("kernel_code_properties", u32::from(properties), &PROPERTIES),
            ("kernarg_preload", preload, &PRELOAD),
        ];
        for (register, value, zeros) in registers {
            check_zeros(register, value, zeros, processor)?;
        }
        descriptor.check(processor)?;
        Ok(descriptor)
    }

    fn check(&self, processor: &Processor) -> Result<(), DescriptorError> {
        let generation = processor.generation;
        let fail = |field, value: u32, rule| Err(DescriptorError::Rule { field, value: u64::from(value), rule });
        let wave32 = self.kernel_code_properties.wavefront32();
        if wave32 && generation < Gfx10 {
            return fail("ENABLE_WAVEFRONT_SIZE32", 1, format!("0: {} has waves of 64 lanes", processor.name));
        }
        if !wave32 && generation == Gfx1250 {
            return fail("ENABLE_WAVEFRONT_SIZE32", 0, format!("1: {} has waves of 32 lanes", processor.name));
        }
        let (vgprs, max) = (self.vgprs(generation), max_vgprs(generation));
        if vgprs > max {
            let granule = self.compute_pgm_rsrc1 & 0x3f;
            return fail("GRANULATED_WORKITEM_VGPR_COUNT", granule, format!("less: {vgprs} VGPRs, there are {max}"));
        }
        // 104 (112 with the VCC, flat scratch and XNACK registers) are the most that can be asked for.
        let granule = self.compute_pgm_rsrc1 >> 6 & 0xf;
        if granule > 13 && generation < Gfx10 {
            return fail("GRANULATED_WAVEFRONT_SGPR_COUNT", granule, "at most 13 (112 SGPRs)".to_owned());
        }
        if self.workitem_id_vgprs() == 3 {
            return fail("ENABLE_VGPR_WORKITEM_ID", 3, "0 (x), 1 (x, y) or 2 (x, y, z)".to_owned());
        }

        let (count, enabled) = (self.user_sgprs(generation), self.kernel_code_properties.sgprs());
        let needed = enabled + self.kernarg_preload_length;
        let most = if generation == Gfx1250 { 32 } else { 16 };
        if count < needed || count > most {
            let preload = self.kernarg_preload_length;
            let rule = format!("{needed} to {most}: {enabled} for kernel_code_properties, {preload} for preloading");
            return fail("USER_SGPR_COUNT", count, rule);
        }
        let preload_end = 4 * (self.kernarg_preload_offset + self.kernarg_preload_length);
        if self.kernarg_preload_length != 0 && preload_end > self.kernarg_size.next_multiple_of(4) {
            let rule = format!("inside the kernarg segment: kernarg_size is {}", self.kernarg_size);
            return fail("the end of kernarg_preload", preload_end, rule);
        }
        self.check_rsrc3(generation, vgprs, wave32)
    }

    fn check_rsrc3(&self, generation: Generation, vgprs: u32, wave32: bool) -> Result<(), DescriptorError> {
        let fail = |field, value: u32, rule| Err(DescriptorError::Rule { field, value: u64::from(value), rule });
        let rsrc3 = self.compute_pgm_rsrc3;
        if let Some(first) = self.accum_offset(generation) {
            if first > vgprs.next_multiple_of(8) {
                return fail("ACCUM_OFFSET", rsrc3 & 0x3f, format!("less: AccVGPRs from {first}, of {vgprs} VGPRs"));
            }
            if rsrc3 >> 16 & 1 != 0 && self.group_segment_fixed_size != 0 {
                return fail("TG_SPLIT", 1, format!("0 with LDS: {} bytes", self.group_segment_fixed_size));
            }
        }
        let shared = rsrc3 & 0xf;
        if matches!(generation, Gfx10 | Gfx11) && shared != 0 {
            if wave32 {
                return fail("SHARED_VGPR_COUNT", shared, "0 with waves of 32 lanes".to_owned());
            }
            if vgprs + 8 * shared > 256 {
                return fail("SHARED_VGPR_COUNT", shared, format!("less: 8 × {shared} above {vgprs} VGPRs, of 256"));
            }
        }
        if generation == Gfx1250 && rsrc3 >> 14 & 7 > 4 {
            return fail("NAMED_BAR_CNT", rsrc3 >> 14 & 7, "0 to 4".to_owned());
        }
        Ok(())
    }

    /// Lanes of a wave.
    pub fn wavefront_size(&self) -> u32 {
        if self.kernel_code_properties.wavefront32() { 32 } else { 64 }
    }

    /// VGPRs a wave gets, accumulation registers among them where they are one file.
    pub fn vgprs(&self, generation: Generation) -> u32 {
        let blocks = (self.compute_pgm_rsrc1 & 0x3f) + 1;
        match generation {
            Gfx90a | Gfx940 => 8 * blocks,
            Gfx1250 => 16 * blocks,
            Gfx10 | Gfx11 | Gfx12 if self.kernel_code_properties.wavefront32() => 8 * blocks,
            _ => 4 * blocks,
        }
    }

    /// SGPRs a wave gets: what the field says up to gfx9, always 128 from gfx10.
    pub fn sgprs(&self, generation: Generation) -> u32 {
        match generation {
            Gfx10 | Gfx11 | Gfx12 | Gfx1250 => 128,
            _ => 8 * ((self.compute_pgm_rsrc1 >> 6 & 0xf) + 1),
        }
    }

    /// The first accumulation VGPR, where they share a file with the others.
    pub fn accum_offset(&self, generation: Generation) -> Option<u32> {
        generation.has_unified_vgprs().then(|| 4 * ((self.compute_pgm_rsrc3 & 0x3f) + 1))
    }

    /// USER_SGPR_COUNT: SGPRs in front of the system's own.
    pub fn user_sgprs(&self, generation: Generation) -> u32 {
        let mask = if generation == Gfx1250 { 0x3f } else { 0x1f };
        self.compute_pgm_rsrc2 >> 1 & mask
    }

    /// ENABLE_PRIVATE_SEGMENT: the kernel uses scratch.
    pub fn uses_scratch(&self) -> bool {
        self.compute_pgm_rsrc2 & 1 != 0
    }

    /// Work-group ids in SGPRs: x, y, z.
    pub fn workgroup_ids(&self) -> [bool; 3] {
        [7, 8, 9].map(|bit| self.compute_pgm_rsrc2 >> bit & 1 != 0)
    }

    /// ENABLE_VGPR_WORKITEM_ID: 0 for x, 1 for x and y, 2 for all.
    pub fn workitem_id_vgprs(&self) -> u32 {
        self.compute_pgm_rsrc2 >> 11 & 3
    }

    /// Address of the entry of a descriptor at `vaddr`; none if that wraps around.
    pub fn entry(&self, vaddr: u64) -> Option<u64> {
        vaddr.checked_add_signed(self.kernel_code_entry_byte_offset)
    }
}

fn bit_range(low: u32, high: u32) -> String {
    if low == high { format!("bit {low}") } else { format!("bits {low}-{high}") }
}

fn max_vgprs(generation: Generation) -> u32 {
    match generation {
        Gfx90a | Gfx940 => 512,
        Gfx1250 => 1024,
        _ => 256,
    }
}

fn check_zeros(
    register: &'static str,
    value: u32,
    zeros: &[Zero],
    processor: &Processor,
) -> Result<(), DescriptorError> {
    for &Zero { low, high, what, first, last } in zeros {
        let bits = value >> low & (u32::MAX >> (31 - (high - low)));
        if bits != 0 && (first..=last).contains(&processor.generation) {
            let processor = processor.name;
            return Err(DescriptorError::ReservedBits { register, value, low, high, what, bits, processor });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;

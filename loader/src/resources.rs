//! What a kernel needs of a compute unit, and how many of its waves fit one SIMD.
//!
//! The rules are the hardware's as LLVM states them (AMDGPUBaseInfo, IsaInfo): registers are handed out in granules out of
//! a file a SIMD has, LDS in granules out of what the compute unit (two of them in work-group processor mode) has.

use crate::Shape;
use elf::{Generation, Kernel, Processor};

/// A kernel's needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resources {
    /// Vector registers of a lane that the kernel uses.
    pub vgprs: u32,
    /// Accumulation registers, where the processor has them.
    pub agprs: Option<u32>,
    /// Scalar registers of a wave.
    pub sgprs: u32,
    /// LDS bytes of a work-group.
    pub lds: u32,
    /// Scratch bytes of a work-item.
    pub scratch: u32,
    /// Waves of a SIMD; None for processors whose rules are not known here.
    pub occupancy: Option<Occupancy>,
}

/// Waves that a SIMD can hold at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Of the kernel.
    pub waves: u32,
    /// Of any kernel.
    pub most: u32,
    /// What keeps it from more: `VGPRs`, `SGPRs`, `LDS`; None where nothing does.
    pub limit: Option<&'static str>,
}

/// The needs of a kernel launched in this shape with so much LDS and scratch, in bytes. `lds_of_cu` is what a compute unit
/// has.
pub fn resources(
    processor: &Processor,
    kernel: &Kernel,
    shape: &Shape,
    lds: u32,
    scratch: u32,
    lds_of_cu: u32,
) -> Resources {
    let waves = shape.group_items().div_ceil(u64::from(kernel.metadata.wavefront_size.max(1)));
    Resources {
        vgprs: kernel.metadata.vgpr_count,
        agprs: kernel.metadata.agpr_count,
        sgprs: kernel.metadata.sgpr_count,
        lds,
        scratch,
        occupancy: occupancy(
            processor,
            kernel.descriptor.wavefront_size(),
            kernel.descriptor.vgprs(processor.generation),
            kernel.descriptor.sgprs(processor.generation),
            Lds { bytes: lds, waves, of_cu: lds_of_cu },
        ),
    }
}

/// LDS of a work-group, its waves, and the LDS of a compute unit.
#[derive(Clone, Copy)]
struct Lds {
    bytes: u32,
    waves: u64,
    of_cu: u32,
}

/// RDNA3 and later with half as many registers again.
const LARGE_FILE: [&str; 6] = ["gfx1100", "gfx1101", "gfx1151", "gfx1200", "gfx1201", "gfx12-generic"];

fn occupancy(processor: &Processor, lanes: u32, vgprs: u32, sgprs: u32, lds: Lds) -> Option<Occupancy> {
    use Generation::*;
    let is_rdna1 =
        processor.generation == Gfx10 && (processor.name.starts_with("gfx101") || processor.name == "gfx10-1-generic");
    // Most waves of a SIMD; registers of its file for one lane of a wave, and their granule.
    let (most, file, granule) = match processor.generation {
        Gfx6 | Gfx7 | Gfx8 | Gfx9 => (10, 256, 4),
        Gfx90a | Gfx940 => (8, 512, 8),
        Gfx10 if is_rdna1 => (20, 1024, 8),
        Gfx10 => (16, 1024, 16),
        Gfx11 | Gfx12 if LARGE_FILE.contains(&processor.name) => (16, 1536, 24),
        Gfx11 | Gfx12 => (16, 1024, 16),
        Gfx1250 => return None,
    };
    // Waves of 64 lanes have half of it from RDNA on.
    let halves = if processor.generation >= Gfx10 && lanes == 64 { 2 } else { 1 };
    let (file, granule) = (file / halves, granule / halves);
    let by_vgprs = file / vgprs.max(1).next_multiple_of(granule);
    // From gfx10 on each wave has its own 128.
    let by_sgprs = if processor.generation >= Gfx10 { most } else { 800 / sgprs.max(1) };
    let by_lds = match lds.bytes {
        0 => most,
        bytes => {
            let simds = if processor.generation >= Gfx10 { 2 } else { 4 };
            let granule = if processor.name == "gfx950" { 1280 } else { 512 };
            let groups = u64::from(lds.of_cu / bytes.next_multiple_of(granule));
            u32::try_from((groups * lds.waves).div_ceil(simds)).unwrap_or(most)
        }
    };
    let waves = most.min(by_vgprs).min(by_sgprs).min(by_lds);
    let limits = [(by_vgprs, "VGPRs"), (by_sgprs, "SGPRs"), (by_lds, "LDS")];
    let limit = limits.into_iter().find(|(fits, _)| *fits == waves && waves < most).map(|(_, name)| name);
    Some(Occupancy { waves, most, limit })
}

impl std::fmt::Display for Resources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "VGPRs {}", self.vgprs)?;
        if let Some(agprs) = self.agprs {
            write!(f, ", AGPRs {agprs}")?;
        }
        write!(
            f,
            ", SGPRs {}; LDS {} bytes a work-group; scratch {} bytes a work-item",
            self.sgprs, self.lds, self.scratch
        )?;
        match self.occupancy {
            None => write!(f, "; occupancy unknown for this processor"),
            Some(Occupancy { waves, most, limit: None }) => write!(f, "; occupancy {waves} of {most} waves a SIMD"),
            Some(Occupancy { waves, most, limit: Some(limit) }) => {
                write!(f, "; occupancy {waves} of {most} waves a SIMD, limited by {limit}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What clang 22 says of three kernels (`-Rpass-analysis=kernel-resource-usage`): one with many registers, one with
    /// 20000 bytes of LDS and 256 work-items, a small one.
    #[test]
    fn as_llvm_counts() {
        for (name, lanes, vgprs, many, lds, small) in [
            ("gfx900", 64, 77, 3, 3, 10),
            ("gfx906", 64, 77, 3, 3, 10),
            ("gfx90a", 64, 124, 4, 3, 8),
            ("gfx942", 64, 156, 3, 3, 8),
            ("gfx1030", 32, 124, 8, 12, 16),
            ("gfx1100", 32, 69, 16, 12, 16),
            ("gfx1102", 32, 69, 12, 12, 16),
            ("gfx1201", 32, 68, 16, 12, 16),
        ] {
            let processor = Processor::by_name(name).unwrap();
            let none = Lds { bytes: 0, waves: 1, of_cu: 65536 };
            let some = Lds { bytes: 20000, waves: 256 / u64::from(lanes), of_cu: 65536 };
            let waves = |vgprs, sgprs, lds| occupancy(processor, lanes, vgprs, sgprs, lds).unwrap().waves;
            assert_eq!((waves(vgprs, 112, none), waves(3, 16, some), waves(2, 16, none)), (many, lds, small), "{name}");
        }
    }

    #[test]
    fn what_limits_is_named() {
        let processor = Processor::by_name("gfx900").unwrap();
        let none = Lds { bytes: 0, waves: 1, of_cu: 65536 };
        assert_eq!(
            occupancy(processor, 64, 24, 96, none),
            Some(Occupancy { waves: 8, most: 10, limit: Some("SGPRs") })
        );
        let occupied = occupancy(processor, 64, 4, 16, Lds { bytes: 65536, waves: 4, of_cu: 65536 });
        let resources = Resources { vgprs: 3, agprs: None, sgprs: 10, lds: 65536, scratch: 0, occupancy: occupied };
        assert_eq!(
            resources.to_string(),
            "VGPRs 3, SGPRs 10; LDS 65536 bytes a work-group; scratch 0 bytes a work-item; occupancy 1 of 10 waves a SIMD, \
             limited by LDS"
        );
    }
}

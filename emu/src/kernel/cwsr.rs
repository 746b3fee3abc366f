//! Sizes of a queue's context save area (`kfd_queue.c`).
//!
//! When a queue is preempted, the waves it runs are saved there: a control stack that grows down and wave data that
//! grows up, per XCC, and behind all XCCs a debugger area.

use super::backing::page_up;
use crate::machine::GpuProfile;

/// What the kernel expects of a context save area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Control stack and wave data of one XCC: `cwsr_size`.
    pub save: u32,
    /// Control stack of one XCC: `ctl_stack_size`.
    pub control_stack: u32,
    /// Debugger area of one XCC.
    pub debug: u32,
    /// End-of-pipe buffer.
    pub eop: u32,
}

/// Control stack bytes of a GFX10 device never exceed this.
const CONTROL_STACK_MAX_GFX10: u64 = 0x7000;

/// The sizes for a device.
pub fn sizes(gpu: &GpuProfile) -> Sizes {
    let version = gpu.gfx_target_version;
    let cus = u64::from(gpu.compute_units / gpu.xccs);
    let engines = u64::from(gpu.shader_arrays / gpu.xccs / gpu.arrays_per_engine);
    let waves = if version < 100_100 { (cus * 40).min(engines * 512) } else { cus * 32 };

    let vgprs: u64 = match version {
        90008 | 90010 | 90400..=90500 => 0x80000,
        110_000 | 110_001 | 120_000 | 120_001 => 0x60000,
        _ => 0x40000,
    };
    let (sgprs, lds, hardware_registers) = (0x4000, 0x10000, 0x1000);
    let wave_data = whole_pages(cus * (vgprs + sgprs + lds + hardware_registers));

    let header = 40 + 8;
    let mut control_stack = whole_pages(header + waves * if version >= 100_100 { 12 } else { 8 });
    if (100_000..110_000).contains(&version) {
        control_stack = control_stack.min(CONTROL_STACK_MAX_GFX10);
    }

    Sizes {
        save: (control_stack + wave_data) as u32,
        control_stack: control_stack as u32,
        debug: (waves * 32).next_multiple_of(64) as u32,
        eop: 4096,
    }
}

/// What saved waves take of a save area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used {
    /// Bytes of the control stack.
    pub control_stack: u32,
    /// Bytes of wave data.
    pub waves: u32,
}

impl Sizes {
    /// What so many waves take of the area of one XCC: an entry of the control stack each, and their share of a compute
    /// unit that is full.
    pub fn used(&self, gpu: &GpuProfile, waves: u32) -> Used {
        let entry = if gpu.gfx_target_version >= 100_100 { 12 } else { 8 };
        let per_unit = (self.save - self.control_stack) / (gpu.compute_units / gpu.xccs).max(1);
        let share = (per_unit / gpu.waves_per_cu().max(1)).next_multiple_of(64);
        let data = waves.saturating_mul(share).min(self.save - self.control_stack);
        Used { control_stack: waves.saturating_mul(entry).min(self.control_stack), waves: data }
    }
}

fn whole_pages(bytes: u64) -> u64 {
    page_up(bytes).unwrap_or(bytes)
}

impl Sizes {
    /// Bytes of the mapping that holds save areas of `save` bytes and debugger areas of all XCCs.
    pub fn mapping(&self, save: u32, xccs: u32) -> Option<u64> {
        page_up((u64::from(save) + u64::from(self.debug)).checked_mul(u64::from(xccs))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::Target;
    use crate::machine::profile;

    /// Sizes of real devices: gfx1201's is what its sysfs node says.
    #[test]
    fn known_devices() {
        let known: [(Target, u32, u32, u32, u64); 7] = [
            (Target::Gfx900, 22302720, 20480, 65536, 22368256),
            (Target::Gfx906, 20910080, 20480, 65536, 20975616),
            (Target::Gfx90a, 63508480, 36864, 131072, 63639552),
            (Target::Gfx942, 23203840, 12288, 48640, 186019840),
            (Target::Gfx1030, 27881472, 28672, 81920, 27963392),
            (Target::Gfx1100, 46047232, 40960, 98304, 46145536),
            (Target::Gfx1201, 30699520, 28672, 65536, 30765056),
        ];
        for (target, save, control_stack, debug, mapping) in known {
            let gpu = profile(target);
            let sizes = sizes(&gpu);
            assert_eq!(sizes, Sizes { save, control_stack, debug, eop: 4096 }, "{target}");
            assert_eq!(sizes.mapping(save, gpu.xccs), Some(mapping), "{target}");
        }
    }
}

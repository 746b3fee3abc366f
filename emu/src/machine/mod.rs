//! The devices that can be had: what a GPU is, as numbers.
//!
//! A [`GpuProfile`] holds what differs between GPU models. Numbers that follow from it by a rule of the kernel (context
//! save sizes, cache counts) are not here: `kernel` computes them.

mod profiles;

pub use profiles::profile;

use crate::isa::Target;

/// One GPU model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuProfile {
    /// Processor.
    pub target: Target,
    /// What it is sold as.
    pub product: &'static str,
    /// `nodes/N/name`: the kernel's ASIC name, `ip discovery` for devices that describe themselves.
    pub node_name: &'static str,
    /// `gfx_target_version`: major * 10000 + minor * 100 + stepping.
    pub gfx_target_version: u32,
    /// gpu_id of the first such device; further ones take the next free numbers.
    pub gpu_id: u16,
    /// PCI device id.
    pub device_id: u32,
    /// Accelerator complex dies that work as one device.
    pub xccs: u32,
    /// Enabled compute units, all XCCs together.
    pub compute_units: u32,
    /// SIMDs of a compute unit.
    pub simds_per_cu: u32,
    /// Waves a SIMD holds.
    pub waves_per_simd: u32,
    /// Native wave size (`wave_front_size`).
    pub wave_size: u32,
    /// 32-bit VGPRs of one SIMD for each lane of a native wave.
    pub vgprs_per_simd: u32,
    /// LDS of a compute unit in KiB.
    pub lds_kib: u32,
    /// Shader arrays, all XCCs together (`array_count`).
    pub shader_arrays: u32,
    /// Shader arrays of a shader engine.
    pub arrays_per_engine: u32,
    /// Physical compute units of a shader array; some may be disabled.
    pub cus_per_array: u32,
    /// `max_slots_scratch_cu`.
    pub scratch_slots_per_cu: u32,
    /// `num_gws`.
    pub gws: u32,
    /// SDMA engines for PCIe.
    pub sdma_engines: u32,
    /// SDMA engines for XGMI.
    pub sdma_xgmi_engines: u32,
    /// Queues of an SDMA engine.
    pub sdma_queues_per_engine: u32,
    /// Compute queue slots of the hardware.
    pub cp_queues: u32,
    /// `max_engine_clk_fcompute` in MHz.
    pub engine_clock_mhz: u32,
    /// MEC firmware version.
    pub fw_version: u32,
    /// SDMA firmware version.
    pub sdma_fw_version: u32,
    /// `capability` bits.
    pub capability: u32,
    /// `debug_prop` bits.
    pub debug_prop: u32,
    /// `unique_id` of the first such device.
    pub unique_id: u64,
    /// XGMI hive, 0 for none. Devices of one hive are linked directly.
    pub hive_id: u64,
    /// `GB_ADDR_CONFIG`: how the memory is tiled; nothing that computes looks at it.
    pub gb_addr_config: u32,
    /// Device memory in bytes.
    pub vram_bytes: u64,
    /// Width of the memory bus in bits.
    pub vram_width: u32,
    /// Memory clock in MHz.
    pub vram_clock_mhz: u32,
    /// The whole of the device memory is visible to the CPU.
    pub large_bar: bool,
    /// Bandwidth of the PCIe link in MB/s.
    pub pcie_bandwidth: u32,
    /// Caches, from the compute units outwards.
    pub caches: &'static [Cache],
}

impl GpuProfile {
    /// SIMDs of the device (`simd_count`).
    pub fn simds(&self) -> u32 {
        self.compute_units * self.simds_per_cu
    }

    /// Waves a compute unit holds.
    pub fn waves_per_cu(&self) -> u32 {
        self.waves_per_simd * self.simds_per_cu
    }

    /// Shader engines, all XCCs together.
    pub fn shader_engines(&self) -> u32 {
        self.shader_arrays / self.arrays_per_engine
    }
}

/// One kind of cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cache {
    /// Level.
    pub level: u32,
    /// What it holds.
    pub holds: Holds,
    /// KiB of one instance.
    pub kib: u32,
    /// Bytes of a line.
    pub line: u32,
    /// Who shares an instance.
    pub shared_by: SharedBy,
}

/// Content of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Holds {
    Data,
    Instructions,
}

/// Sharers of one cache instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedBy {
    /// This many neighbouring compute units.
    Cus(u32),
    /// A shader array.
    Array,
    /// The whole device.
    Device,
}

/// A machine: one CPU node and these GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// GPUs in node order.
    pub gpus: Vec<GpuProfile>,
}

impl Machine {
    /// A machine with one GPU of each target, in order.
    pub fn with(targets: &[Target]) -> Machine {
        Machine { gpus: targets.iter().map(|target| profile(*target)).collect() }
    }
}

/// The CPU of every emulated machine.
pub mod cpu {
    /// `cpu_cores_count`.
    pub const CORES: u32 = 32;
    /// Memory of the node in bytes.
    pub const MEMORY_BYTES: u64 = 67_292_962_816;
    /// Width of its memory bus in bits.
    pub const MEMORY_WIDTH: u32 = 64;
    /// `max_engine_clk_ccompute` in MHz.
    pub const CLOCK_MHZ: u32 = 4950;
}

/// Frequency of [`gpu_clock`], in kHz.
pub const CLOCK_KHZ: u32 = 100_000;

/// The GPUs' constant clock, of 100 MHz: dispatch timestamps, GET_CLOCK_COUNTERS and `s_memrealtime` count in it.
pub fn gpu_clock() -> u64 {
    crate::cu::wave::Wave::realtime()
}

/// A clock of the host in nanoseconds.
pub fn nanoseconds(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is written by the call.
    unsafe {
        libc::clock_gettime(clock, &raw mut time);
    }
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

//! Apertures: where LDS, scratch and buffers lie in the 64-bit addresses of a wave (`kfd_flat_memory.c`, GFX9 and
//! later).

use super::version::Rules;
use kfd::uapi::ProcessDeviceApertures;

/// First address of the LDS window.
pub const LDS_BASE: u64 = 0x1_0000_0000_0000;
/// First address of the scratch window.
pub const SCRATCH_BASE: u64 = 0x2_0000_0000_0000;
/// Last address a buffer may have: the end of the canonical lower half.
pub const GPUVM_LIMIT: u64 = 0x7fff_ffff_ffff;

/// The record of one GPU.
pub fn record(gpu_id: u32, rules: Rules) -> ProcessDeviceApertures {
    // Both windows are 4 GiB.
    let limit = |base: u64| base | 0xffff_ffff;
    ProcessDeviceApertures {
        lds_base: LDS_BASE,
        lds_limit: limit(LDS_BASE),
        scratch_base: SCRATCH_BASE,
        scratch_limit: limit(SCRATCH_BASE),
        gpuvm_base: rules.gpuvm_base(),
        gpuvm_limit: GPUVM_LIMIT,
        gpu_id,
        pad: 0,
    }
}

//! Memory operations: SMEM, FLAT, GLOBAL, SCRATCH, MUBUF, MTBUF, DS.

use crate::memory::AddressSpace;
use std::sync::Arc;

/// What a wave's memory operations reach: the page tables, the work-group's LDS and the wave's scratch.
pub struct MemoryPort {
    /// Page tables of the dispatch's process.
    pub space: Arc<AddressSpace>,
    /// LDS of the work-group, 16-byte aligned. Only the thread that runs the work-group touches it.
    pub lds: *mut u8,
    /// Bytes allocated to the work-group: accesses beyond read 0 and write nothing.
    pub lds_size: u32,
    /// GPU address of this wave's scratch.
    pub scratch_base: u64,
    /// Bytes of it, all lanes together.
    pub scratch_size: u64,
    /// SHARED_BASE >> 32.
    pub shared_aperture: u32,
    /// PRIVATE_BASE >> 32.
    pub private_aperture: u32,
}

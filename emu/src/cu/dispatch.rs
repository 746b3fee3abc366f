//! What a packet processor asks of the compute units.

use crate::isa::Target;
use crate::memory::AddressSpace;
use std::sync::Arc;

/// Scratch as the queue's `amd_queue_t` gives it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scratch {
    /// `scratch_backing_memory_location`: GPU address.
    pub va: u64,
    /// `scratch_wave64_lane_byte_size`.
    pub wave64_lane_bytes: u32,
    /// `compute_tmpring_size`.
    pub tmpring: u32,
    /// `scratch_resource_descriptor`.
    pub srd: [u32; 4],
}

/// A kernel dispatch packet that passed the packet processor's checks, with what its waves need to start.
#[derive(Clone)]
pub struct Dispatch {
    /// Target of the device.
    pub target: Target,
    /// GPU id of the device.
    pub gpu_id: u32,
    /// Queue id in the process.
    pub queue_id: u32,
    /// Page tables.
    pub space: Arc<AddressSpace>,
    /// GPU address of the packet: the dispatch pointer.
    pub packet_va: u64,
    /// The packet.
    pub packet: [u8; 64],
    /// Packet index: the dispatch id.
    pub dispatch_id: u64,
    /// GPU address of the `amd_queue_t`: the queue pointer.
    pub queue_va: u64,
    /// LDS aperture base.
    pub shared_base: u64,
    /// Scratch aperture base.
    pub private_base: u64,
    /// Scratch of the queue.
    pub scratch: Scratch,
    /// Compute units of the device.
    pub compute_units: u32,
    /// Those that waves may be on, by their bits of a CU mask, if not all.
    pub units: Option<Arc<[u32]>>,
    /// XCCs of the device.
    pub xccs: u32,
    /// Shader arrays of a shader engine.
    pub arrays_per_engine: u32,
    /// Shader engines of the device (`tmpring` counts waves per engine from GFX11 on).
    pub shader_engines: u32,
    /// Waves a compute unit holds.
    pub waves_per_cu: u32,
    /// LDS bytes of a compute unit.
    pub lds_per_cu: u32,
}

impl Dispatch {
    /// Compute units that waves may be on.
    pub fn enabled_units(&self) -> u32 {
        self.units.as_ref().map_or(self.compute_units, |units| units.len() as u32)
    }
}

/// What waves ask of the device around them.
pub trait Host: Sync {
    /// `s_sendmsg sendmsg(MSG_INTERRUPT)` with this payload in M0.
    fn interrupt(&self, m0: u32);
    /// True when the dispatch must stop: the queue was destroyed, the device reset or the process is ending.
    fn cancelled(&self) -> bool;
    /// A thread begins to run waves; returns when it may. The caller of [`Engine::run`](super::engine::Engine::run) has
    /// begun already.
    fn enter(&self) {}
    /// A thread ends, or waits for others.
    fn leave(&self) {}
    /// A thread with so many resident waves is between two turns of them; it goes on when this returns.
    fn rest(&self, _waves: u32) {}
}

/// What a finished dispatch did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Waves run.
    pub waves: u64,
    /// Instructions executed, summed over waves.
    pub instructions: u64,
}

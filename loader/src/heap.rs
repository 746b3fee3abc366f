//! Device memory that a kernel asks for while it runs.

use crate::rpc::DeviceMemory;
use crate::shadow::Shadow;
use kfd::{Buffer, Device, Kind};
use std::collections::HashMap;
use std::sync::Arc;

/// The allocations of one queue. They end with it.
#[derive(Debug)]
pub(crate) struct Heap {
    device: Arc<Device>,
    buffers: HashMap<u64, Buffer>,
    shadow: Option<Arc<Shadow>>,
}

impl Heap {
    /// No allocations yet. Those to come have `shadow`.
    pub fn new(device: &Arc<Device>, shadow: Option<Arc<Shadow>>) -> Heap {
        Heap { device: device.clone(), buffers: HashMap::new(), shadow }
    }
}

impl DeviceMemory for Heap {
    fn allocate(&mut self, size: u64) -> Option<u64> {
        // Whole multiples of 2 MiB start at one.
        let bytes = size.max(1).checked_next_multiple_of(2 << 20)?;
        let buffer = Buffer::new(&self.device, Kind::Vram, bytes, "device malloc").ok()?;
        if let Some(shadow) = &self.shadow {
            shadow.update().ok()?;
        }
        let va = buffer.va().0;
        self.buffers.insert(va, buffer);
        Some(va)
    }

    fn free(&mut self, va: u64) {
        self.buffers.remove(&va);
    }
}

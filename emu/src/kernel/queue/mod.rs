//! Queues: CREATE, UPDATE, DESTROY and what else takes a queue id (`kfd_chardev.c`, `kfd_process_queue_manager.c`).

mod buffers;
mod create;
mod mask;
mod other;

pub use buffers::Buffers;
pub use create::create;
pub use other::{cu_mask, destroy, gws, update, wave_state};

use super::rule::{RuleText, texts};
use crate::cp::PacketProcessor;

/// The tables of this module.
pub fn rule_texts() -> Vec<(&'static str, Vec<RuleText>)> {
    let create = [
        texts(create::COMMON),
        texts(create::ADDRESSES),
        texts(create::DEVICE),
        texts(buffers::RING),
        texts(buffers::SAVE_AREA),
        texts(create::ROOM),
    ];
    vec![
        ("CREATE_QUEUE", create.concat()),
        ("CREATE_QUEUE, buffers in Linux 6.1 to 6.11", texts(buffers::LINUX_6_1)),
        ("UPDATE_QUEUE", [texts(create::COMMON), texts(other::UPDATE), texts(other::HARDWARE)].concat()),
        ("DESTROY_QUEUE", texts(other::DESTROY)),
        ("SET_CU_MASK", [texts(other::CU_MASK), texts(other::CU_MASK_BITS), texts(other::HARDWARE)].concat()),
        ("GET_QUEUE_WAVE_STATE", texts(other::WAVE_STATE)),
        ("ALLOC_QUEUE_GWS", [texts(other::GWS), texts(other::HARDWARE)].concat()),
    ]
}

/// Queue ids of a process.
pub const MAX_PER_PROCESS: u32 = 1024;

/// A queue.
pub struct Queue {
    /// Position of its GPU.
    pub device: usize,
    /// Ring address, 0 while it is paused that way.
    pub ring: u64,
    /// Bytes of the ring.
    pub ring_bytes: u32,
    /// `ctx_save_restore_size`: the save area of one XCC.
    pub save_bytes: u32,
    /// `queue_percentage`, low byte.
    pub percentage: u32,
    /// What it holds on to.
    pub buffers: Buffers,
    /// Its doorbell's slot.
    pub doorbell: usize,
    /// It owns global wave sync.
    pub gws: bool,
    /// The hardware's side.
    pub processor: PacketProcessor,
}

impl Queue {
    /// A queue is active when it has a ring and a share of the device.
    pub fn is_active(&self) -> bool {
        self.ring_bytes > 0 && self.ring != 0 && self.percentage > 0
    }
}

#[cfg(test)]
mod tests;

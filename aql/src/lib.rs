//! Architected Queuing Language: the packets a GPU takes from a user-mode queue, the protocol of the ring they lie in,
//! and the two structures around it, `amd_queue_t` and `amd_signal_t`.
//!
//! Everything here is a protocol over memory: no system calls, no threads, no knowledge of where the memory came from.
//! Rules are from the HSA Platform System Architecture Specification 1.2 (§2.8 user mode queuing, §2.9 AQL) and from
//! the `amd_hsa_queue.h` / `amd_hsa_signal.h` layouts that the packet processor's firmware reads.
//!
//! A packet's way: [`Ring::publish`] waits for space, writes the 60 bytes behind the header, then the header with one
//! 32-bit release store, advances `write_dispatch_id`, and returns the index to store to the doorbell.
//!
//! ```
//! use aql::{Fences, KernelDispatch};
//!
//! let packet = KernelDispatch {
//!     fences: Fences::SYSTEM,
//!     dims: 1,
//!     workgroup_size: [64, 1, 1],
//!     grid_size: [1024, 1, 1],
//!     kernel_object: 0x7f00_0000_1000,
//!     kernarg_address: 0x7f00_0000_2000,
//!     completion_signal: 0x7f00_0000_3000,
//!     ..KernelDispatch::default()
//! };
//! let bytes = packet.to_bytes();
//! assert_eq!(u16::from_le_bytes([bytes[0], bytes[1]]), 0x1502);
//! assert_eq!(KernelDispatch::from_bytes(&bytes), Ok(packet));
//! ```

mod bytes;
mod header;
mod hsa;
mod packet;
pub mod queue;
mod ring;
pub mod signal;
pub mod status;
mod vendor;

pub use header::{FenceScope, Fences, Header, PacketType};
pub use hsa::{HSA_STATUSES, HsaStatus, hsa_status};
pub use packet::{AgentDispatch, BarrierAnd, BarrierOr, KernelDispatch, Packet, PacketError};
pub use queue::AmdQueue;
pub use ring::{Full, MIN_PACKETS, Ring, RingError, Slots};
pub use signal::AmdSignal;
pub use vendor::{BarrierValue, Condition, Pm4Ib};

/// Bytes of a packet, and the alignment of the ring's slots.
pub const PACKET_BYTES: usize = 64;

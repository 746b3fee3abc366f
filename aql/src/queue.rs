//! `amd_queue_t`, the structure around a user-mode AQL queue (`amd_hsa_queue.h`): 256 bytes as version 1, 2304 as
//! version 2, 64-byte aligned.
//!
//! The kernel is given the addresses of [`WRITE_DISPATCH_ID`] and [`READ_DISPATCH_ID`] only. The packet processor finds
//! the rest by subtracting the u32 behind the read index, [`READ_DISPATCH_ID_FIELD_BASE_BYTE_OFFSET`], from the read
//! index's address; so that field has to be right before the queue is created, and neither index can be a loose word.

use bitfield_struct::bitfield;

use crate::bytes::{get, put};

/// Bytes of version 1.
pub const V1_BYTES: usize = 256;
/// Bytes of version 2, which the processor touches only when [`Caps::cp_async_reclaim`] is set.
pub const V2_BYTES: usize = 2304;

/// `hsa_queue.type`, u32.
pub const TYPE: usize = 0x00;
/// `hsa_queue.features`, u32: bit 0 kernel dispatch, bit 1 agent dispatch.
pub const FEATURES: usize = 0x04;
/// `hsa_queue.base_address`, u64: the ring.
pub const BASE_ADDRESS: usize = 0x08;
/// `hsa_queue.doorbell_signal`, u64.
pub const DOORBELL_SIGNAL: usize = 0x10;
/// `hsa_queue.size`, u32: packets.
pub const SIZE: usize = 0x18;
/// `hsa_queue.id`, u64.
pub const ID: usize = 0x20;
/// `caps`, u32.
pub const CAPS: usize = 0x28;
/// `write_dispatch_id`, u64: packets ever reserved. Written by the host; the kernel's write pointer address.
pub const WRITE_DISPATCH_ID: usize = 0x38;
/// `group_segment_aperture_base_hi`, u32.
pub const GROUP_SEGMENT_APERTURE_BASE_HI: usize = 0x40;
/// `private_segment_aperture_base_hi`, u32.
pub const PRIVATE_SEGMENT_APERTURE_BASE_HI: usize = 0x44;
/// `max_cu_id`, u32.
pub const MAX_CU_ID: usize = 0x48;
/// `max_wave_id`, u32.
pub const MAX_WAVE_ID: usize = 0x4c;
/// `max_legacy_doorbell_dispatch_id_plus_1`, u64 (gfx7 and gfx8).
pub const MAX_LEGACY_DOORBELL_DISPATCH_ID_PLUS_1: usize = 0x50;
/// `legacy_doorbell_lock`, u32 (gfx7 and gfx8).
pub const LEGACY_DOORBELL_LOCK: usize = 0x58;
/// `read_dispatch_id`, u64: packets ever taken. Written by the processor; the kernel's read pointer address.
pub const READ_DISPATCH_ID: usize = 0x80;
/// `read_dispatch_id_field_base_byte_offset`, u32: 0x80.
pub const READ_DISPATCH_ID_FIELD_BASE_BYTE_OFFSET: usize = 0x88;
/// `compute_tmpring_size`, u32: COMPUTE_TMPRING_SIZE.
pub const COMPUTE_TMPRING_SIZE: usize = 0x8c;
/// `scratch_resource_descriptor`, u32 × 4: the private segment buffer.
pub const SCRATCH_RESOURCE_DESCRIPTOR: usize = 0x90;
/// `scratch_backing_memory_location`, u64: address (gfx9 and later).
pub const SCRATCH_BACKING_MEMORY_LOCATION: usize = 0xa0;
/// `scratch_backing_memory_byte_size`, u64.
pub const SCRATCH_BACKING_MEMORY_BYTE_SIZE: usize = 0xa8;
/// `scratch_wave64_lane_byte_size`, u32: scratch bytes a lane that fit; a dispatch that wants more stops the queue.
pub const SCRATCH_WAVE64_LANE_BYTE_SIZE: usize = 0xb0;
/// `queue_properties`, u32.
pub const QUEUE_PROPERTIES: usize = 0xb4;
/// `scratch_max_use_index`, u64 (version 2).
pub const SCRATCH_MAX_USE_INDEX: usize = 0xb8;
/// `queue_inactive_signal`, u64: address of the signal for [status bits](crate::status).
pub const QUEUE_INACTIVE_SIGNAL: usize = 0xc0;
/// `alt_scratch_max_use_index`, u64 (version 2).
pub const ALT_SCRATCH_MAX_USE_INDEX: usize = 0xc8;
/// `alt_scratch_resource_descriptor`, u32 × 4 (version 2).
pub const ALT_SCRATCH_RESOURCE_DESCRIPTOR: usize = 0xd0;
/// `alt_scratch_backing_memory_location`, u64 (version 2).
pub const ALT_SCRATCH_BACKING_MEMORY_LOCATION: usize = 0xe0;
/// `alt_scratch_dispatch_limit_x`, `_y`, `_z`, u32 × 3 (version 2).
pub const ALT_SCRATCH_DISPATCH_LIMIT: usize = 0xe8;
/// `alt_scratch_wave64_lane_byte_size`, u32 (version 2).
pub const ALT_SCRATCH_WAVE64_LANE_BYTE_SIZE: usize = 0xf4;
/// `alt_compute_tmpring_size`, u32 (version 2).
pub const ALT_COMPUTE_TMPRING_SIZE: usize = 0xf8;
/// `scratch_last_used_index`, 128 × {main u64, alt u64}, one an XCC (version 2). Written by the processor.
pub const SCRATCH_LAST_USED_INDEX: usize = 0x100;

/// `caps`.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct Caps {
    /// Bit 0: the firmware can reclaim scratch while the queue runs. Set by the processor.
    pub cp_async_reclaim: bool,
    /// Bit 1: so can the host; the structure is a version 2.
    pub sw_async_reclaim: bool,
    #[bits(30)]
    __: u32,
}

/// `queue_properties`.
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct QueueProperties {
    /// Bit 0.
    pub enable_trap_handler: bool,
    /// Bit 1: always set for a 64-bit process.
    pub is_ptr64: bool,
    /// Bit 2.
    pub enable_trap_handler_debug_sgprs: bool,
    /// Bit 3: the processor writes `start_ts` and `end_ts` of completion signals.
    pub enable_profiling: bool,
    /// Bit 4: the scratch memory serves one dispatch; the queue then stops with status 512.
    pub use_scratch_once: bool,
    #[bits(27)]
    __: u32,
}

/// `hsa_queue.type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u32)]
pub enum QueueType {
    /// Several producers.
    #[default]
    Multi = 0,
    /// One producer.
    Single = 1,
    /// Several producers, cooperative launches.
    Cooperative = 2,
}

/// The fields a host sets before the queue is created. Both indices start at 0, and the field behind the read index is
/// always written right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct AmdQueue {
    /// Who may write.
    pub queue_type: QueueType,
    /// Address of the ring.
    pub base_address: u64,
    /// Address of the doorbell signal, 0 if nothing on the device enqueues.
    pub doorbell_signal: u64,
    /// Packets in the ring.
    pub size: u32,
    /// Number of the queue, unique in the process.
    pub id: u64,
    /// Capability bits.
    pub caps: Caps,
    /// LDS aperture base >> 32.
    pub group_segment_aperture_base_hi: u32,
    /// Scratch aperture base >> 32.
    pub private_segment_aperture_base_hi: u32,
    /// Compute units - 1.
    pub max_cu_id: u32,
    /// Waves of a compute unit - 1.
    pub max_wave_id: u32,
    /// COMPUTE_TMPRING_SIZE.
    pub compute_tmpring_size: u32,
    /// Private segment buffer.
    pub scratch_resource_descriptor: [u32; 4],
    /// Address of the scratch memory (gfx9 and later).
    pub scratch_backing_memory_location: u64,
    /// Its bytes; ROCR leaves this 0.
    pub scratch_backing_memory_byte_size: u64,
    /// Scratch bytes a lane of a 64-lane wave.
    pub scratch_wave64_lane_byte_size: u32,
    /// Property bits.
    pub queue_properties: QueueProperties,
    /// Address of the signal that takes status bits, 0 for none.
    pub queue_inactive_signal: u64,
}

impl AmdQueue {
    /// The 256 bytes of version 1.
    pub fn to_v1_bytes(self) -> [u8; V1_BYTES] {
        let mut b = [0; V1_BYTES];
        put(&mut b, TYPE, (self.queue_type as u32).to_le_bytes());
        put(&mut b, FEATURES, 1u32.to_le_bytes());
        put(&mut b, BASE_ADDRESS, self.base_address.to_le_bytes());
        put(&mut b, DOORBELL_SIGNAL, self.doorbell_signal.to_le_bytes());
        put(&mut b, SIZE, self.size.to_le_bytes());
        put(&mut b, ID, self.id.to_le_bytes());
        put(&mut b, CAPS, self.caps.into_bits().to_le_bytes());
        put(&mut b, GROUP_SEGMENT_APERTURE_BASE_HI, self.group_segment_aperture_base_hi.to_le_bytes());
        put(&mut b, PRIVATE_SEGMENT_APERTURE_BASE_HI, self.private_segment_aperture_base_hi.to_le_bytes());
        put(&mut b, MAX_CU_ID, self.max_cu_id.to_le_bytes());
        put(&mut b, MAX_WAVE_ID, self.max_wave_id.to_le_bytes());
        put(&mut b, READ_DISPATCH_ID_FIELD_BASE_BYTE_OFFSET, (READ_DISPATCH_ID as u32).to_le_bytes());
        put(&mut b, COMPUTE_TMPRING_SIZE, self.compute_tmpring_size.to_le_bytes());
        for (i, dword) in self.scratch_resource_descriptor.iter().enumerate() {
            put(&mut b, SCRATCH_RESOURCE_DESCRIPTOR + 4 * i, dword.to_le_bytes());
        }
        put(&mut b, SCRATCH_BACKING_MEMORY_LOCATION, self.scratch_backing_memory_location.to_le_bytes());
        put(&mut b, SCRATCH_BACKING_MEMORY_BYTE_SIZE, self.scratch_backing_memory_byte_size.to_le_bytes());
        put(&mut b, SCRATCH_WAVE64_LANE_BYTE_SIZE, self.scratch_wave64_lane_byte_size.to_le_bytes());
        put(&mut b, QUEUE_PROPERTIES, self.queue_properties.into_bits().to_le_bytes());
        put(&mut b, QUEUE_INACTIVE_SIGNAL, self.queue_inactive_signal.to_le_bytes());
        b
    }

    /// The 2304 bytes of version 2: version 1, with both scratch use indices at their maximum (no reclaim asked for)
    /// and no alternate scratch.
    pub fn to_v2_bytes(self) -> [u8; V2_BYTES] {
        let mut b = [0; V2_BYTES];
        b[..V1_BYTES].copy_from_slice(&self.to_v1_bytes());
        put(&mut b, SCRATCH_MAX_USE_INDEX, u64::MAX.to_le_bytes());
        put(&mut b, ALT_SCRATCH_MAX_USE_INDEX, u64::MAX.to_le_bytes());
        b
    }

    /// Reads the fields back from the first 256 bytes of either version. The error is `hsa_queue.type` when it is not a
    /// known one.
    pub fn from_bytes(b: &[u8; V1_BYTES]) -> Result<AmdQueue, u32> {
        let queue_type = match u32::from_le_bytes(get(b, TYPE)) {
            0 => QueueType::Multi,
            1 => QueueType::Single,
            2 => QueueType::Cooperative,
            raw => return Err(raw),
        };
        let word = |offset| u32::from_le_bytes(get(b, offset));
        let long = |offset| u64::from_le_bytes(get(b, offset));
        Ok(AmdQueue {
            queue_type,
            base_address: long(BASE_ADDRESS),
            doorbell_signal: long(DOORBELL_SIGNAL),
            size: word(SIZE),
            id: long(ID),
            caps: Caps::from_bits(word(CAPS)),
            group_segment_aperture_base_hi: word(GROUP_SEGMENT_APERTURE_BASE_HI),
            private_segment_aperture_base_hi: word(PRIVATE_SEGMENT_APERTURE_BASE_HI),
            max_cu_id: word(MAX_CU_ID),
            max_wave_id: word(MAX_WAVE_ID),
            compute_tmpring_size: word(COMPUTE_TMPRING_SIZE),
            scratch_resource_descriptor: [0, 4, 8, 12].map(|o| word(SCRATCH_RESOURCE_DESCRIPTOR + o)),
            scratch_backing_memory_location: long(SCRATCH_BACKING_MEMORY_LOCATION),
            scratch_backing_memory_byte_size: long(SCRATCH_BACKING_MEMORY_BYTE_SIZE),
            scratch_wave64_lane_byte_size: word(SCRATCH_WAVE64_LANE_BYTE_SIZE),
            queue_properties: QueueProperties::from_bits(word(QUEUE_PROPERTIES)),
            queue_inactive_signal: long(QUEUE_INACTIVE_SIGNAL),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> AmdQueue {
        AmdQueue {
            queue_type: QueueType::Single,
            base_address: 0x7f00_0001_0000,
            doorbell_signal: 0x7f00_0002_0040,
            size: 1024,
            id: 9,
            caps: Caps::new().with_sw_async_reclaim(true),
            group_segment_aperture_base_hi: 0x1_0000,
            private_segment_aperture_base_hi: 0x2_0000,
            max_cu_id: 95,
            max_wave_id: 31,
            compute_tmpring_size: 0x1234,
            scratch_resource_descriptor: [1, 2, 3, 4],
            scratch_backing_memory_location: 0x7f00_0003_0000,
            scratch_backing_memory_byte_size: 0x10_0000,
            scratch_wave64_lane_byte_size: 256,
            queue_properties: QueueProperties::new().with_is_ptr64(true).with_enable_profiling(true),
            queue_inactive_signal: 0x7f00_0002_0080,
        }
    }

    /// Offsets as numbers, apart from the constants.
    #[test]
    fn version_1_bytes() {
        let b = example().to_v1_bytes();
        let word = |o: usize| u32::from_le_bytes(b[o..o + 4].try_into().unwrap());
        let long = |o: usize| u64::from_le_bytes(b[o..o + 8].try_into().unwrap());
        assert_eq!((word(0), word(4), long(8), long(16), word(24), long(32)), {
            (1, 1, 0x7f00_0001_0000, 0x7f00_0002_0040, 1024, 9)
        });
        assert_eq!((word(40), long(56), word(64), word(68), word(72), word(76)), (2, 0, 0x1_0000, 0x2_0000, 95, 31));
        assert_eq!((long(128), word(136), word(140), word(144), word(156)), (0, 128, 0x1234, 1, 4));
        assert_eq!((long(160), long(168), word(176), word(180)), (0x7f00_0003_0000, 0x10_0000, 256, 0xa));
        assert_eq!((long(184), long(192), long(200)), (0, 0x7f00_0002_0080, 0));
        assert_eq!(AmdQueue::from_bytes(&b), Ok(example()));
    }

    #[test]
    fn version_2_adds_the_use_indices() {
        let b = example().to_v2_bytes();
        let v1 = example().to_v1_bytes();
        for (i, (&two, &one)) in b.iter().zip(v1.iter().chain(&[0; V2_BYTES - V1_BYTES])).enumerate() {
            let use_index = (0xb8..0xc0).contains(&i) || (0xc8..0xd0).contains(&i);
            assert_eq!(two, if use_index { 0xff } else { one }, "byte {i:#x}");
        }
        let mut v1 = example().to_v1_bytes();
        v1[0] = 3;
        assert_eq!(AmdQueue::from_bytes(&v1), Err(3));
    }
}

//! Offsets for mmap of `/dev/kfd` (`drivers/gpu/drm/amd/amdkfd/kfd_priv.h`, `KFD_MMAP_*`; not in the user header, but
//! user space sees the values): type in bits 62–63, GPU id in 46–61, offset in 0–45.

/// What an offset maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MmapType {
    /// The HDP flush registers.
    Mmio,
    /// The kernel's trap handler page, on APUs.
    ReservedMem,
    /// The event page.
    Events,
    /// The process' doorbells of one GPU.
    Doorbell,
}

/// A decoded offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MmapOffset {
    /// What it maps.
    pub kind: MmapType,
    /// GPU id, 16 bits in the offset; 0 for events.
    pub gpu_id: u16,
    /// Low 46 bits.
    pub offset: u64,
}

const TYPE_SHIFT: u32 = 62;
const GPU_ID_SHIFT: u32 = 46;
const OFFSET_MASK: u64 = (1 << GPU_ID_SHIFT) - 1;

impl MmapOffset {
    /// The 64-bit value. As an `off_t` that of a doorbell or event page is negative: pass the bits on as they are.
    pub const fn encode(self) -> u64 {
        let kind = match self.kind {
            MmapType::Mmio => 0u64,
            MmapType::ReservedMem => 1,
            MmapType::Events => 2,
            MmapType::Doorbell => 3,
        };
        kind << TYPE_SHIFT | (self.gpu_id as u64) << GPU_ID_SHIFT | self.offset & OFFSET_MASK
    }

    /// The parts of a 64-bit value.
    pub const fn decode(raw: u64) -> MmapOffset {
        let kind = match raw >> TYPE_SHIFT {
            0 => MmapType::Mmio,
            1 => MmapType::ReservedMem,
            2 => MmapType::Events,
            _ => MmapType::Doorbell,
        };
        MmapOffset { kind, gpu_id: (raw >> GPU_ID_SHIFT) as u16, offset: raw & OFFSET_MASK }
    }
}

/// Bytes of the process' doorbells of one GPU on gfx9 and later: 1024 of 8 bytes. mmap takes exactly this length.
pub const DOORBELL_SLICE_SIZE: u64 = 8192;

/// Bits of [`CreateQueueArgs::doorbell_offset`](super::CreateQueueArgs::doorbell_offset) that are the offset of the
/// queue's own doorbell inside the mapping; the rest is the offset for mmap.
pub const DOORBELL_OFFSET_IN_SLICE_MASK: u64 = DOORBELL_SLICE_SIZE - 1;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_offsets() {
        let doorbell = MmapOffset { kind: MmapType::Doorbell, gpu_id: 56387, offset: 0 };
        assert_eq!(doorbell.encode(), 0xf710_c000_0000_0000);
        assert_eq!(MmapOffset { kind: MmapType::Events, gpu_id: 0, offset: 0 }.encode(), 0x8000_0000_0000_0000);
    }

    proptest! {
        #[test]
        fn decode_then_encode_is_identity(raw: u64) {
            prop_assert_eq!(MmapOffset::decode(raw).encode(), raw);
        }
    }
}

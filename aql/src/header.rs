//! The 16-bit packet header (HSA PSA 1.2 §2.9.1).

use bitfield_struct::bitfield;

/// First 16 bits of every packet. The packet processor looks at nothing else until `packet_type` is not INVALID.
#[bitfield(u16, order = Lsb)]
#[derive(PartialEq, Eq)]
pub struct Header {
    /// Raw packet type, bits 0-7; see [`PacketType`].
    pub packet_type: u8,
    /// Bit 8: processing starts only when all earlier packets of this queue have completed.
    pub barrier: bool,
    /// Bits 9-10: scope of the acquire fence before the packet becomes active.
    #[bits(2)]
    pub acquire: FenceScope,
    /// Bits 11-12: scope of the release fence after the packet completes, before its signal is decremented.
    #[bits(2)]
    pub release: FenceScope,
    /// Bits 13-15: must be zero.
    #[bits(3)]
    pub reserved: u8,
}

impl Header {
    /// Barrier bit and fence scopes.
    pub fn fences(self) -> Fences {
        Fences { barrier: self.barrier(), acquire: self.acquire(), release: self.release() }
    }
}

/// When a packet may start, and what memory it sees and leaves: the part of the header that is not the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Fences {
    /// The packet starts only when all earlier packets of this queue have completed.
    pub barrier: bool,
    /// Scope of the acquire fence before the packet becomes active.
    pub acquire: FenceScope,
    /// Scope of the release fence after the packet completes, before its signal is decremented.
    pub release: FenceScope,
}

impl Fences {
    /// Barrier bit set, both fences at system scope: each packet sees all before it, and the host sees its results.
    pub const SYSTEM: Fences = Fences { barrier: true, acquire: FenceScope::System, release: FenceScope::System };

    /// The header of a packet of this type.
    pub fn header(self, packet_type: PacketType) -> Header {
        Header::new()
            .with_packet_type(packet_type as u8)
            .with_barrier(self.barrier)
            .with_acquire(self.acquire)
            .with_release(self.release)
    }
}

/// How far memory is made consistent by a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FenceScope {
    /// No fence.
    #[default]
    None,
    /// This GPU.
    Agent,
    /// The host and every GPU.
    System,
    /// Value 3: the specification reserves it.
    Reserved,
}

impl FenceScope {
    const fn from_bits(bits: u8) -> FenceScope {
        match bits & 3 {
            0 => FenceScope::None,
            1 => FenceScope::Agent,
            2 => FenceScope::System,
            _ => FenceScope::Reserved,
        }
    }

    const fn into_bits(self) -> u8 {
        self as u8
    }

    /// Lower-case name for messages.
    pub fn name(self) -> &'static str {
        match self {
            FenceScope::None => "none",
            FenceScope::Agent => "agent",
            FenceScope::System => "system",
            FenceScope::Reserved => "reserved (3)",
        }
    }
}

/// The six packet types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PacketType {
    /// Vendor specific; byte 2 of the packet tells the format.
    VendorSpecific = 0,
    /// The slot holds no packet: the packet processor stops here until the header changes.
    Invalid = 1,
    /// Runs a kernel.
    KernelDispatch = 2,
    /// Waits until all of up to five signals are zero.
    BarrierAnd = 3,
    /// Calls a function of an agent; GPU queues do not take it.
    AgentDispatch = 4,
    /// Waits until one of up to five signals is zero.
    BarrierOr = 5,
}

impl PacketType {
    /// The type with this number; none for a number the specification does not define.
    pub fn from_raw(raw: u8) -> Option<PacketType> {
        Some(match raw {
            0 => PacketType::VendorSpecific,
            1 => PacketType::Invalid,
            2 => PacketType::KernelDispatch,
            3 => PacketType::BarrierAnd,
            4 => PacketType::AgentDispatch,
            5 => PacketType::BarrierOr,
            _ => return None,
        })
    }

    /// Name for messages.
    pub fn name(self) -> &'static str {
        match self {
            PacketType::VendorSpecific => "vendor specific",
            PacketType::Invalid => "invalid",
            PacketType::KernelDispatch => "kernel dispatch",
            PacketType::BarrierAnd => "barrier-AND",
            PacketType::AgentDispatch => "agent dispatch",
            PacketType::BarrierOr => "barrier-OR",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_header_words() {
        let h = Header::from_bits(0x1502);
        assert_eq!(PacketType::from_raw(h.packet_type()), Some(PacketType::KernelDispatch));
        assert!(h.barrier());
        assert_eq!((h.acquire(), h.release()), (FenceScope::System, FenceScope::System));

        let h = Header::from_bits(0x0b02);
        assert!(h.barrier());
        assert_eq!((h.acquire(), h.release()), (FenceScope::Agent, FenceScope::Agent));

        let h = Header::from_bits(0x1402);
        assert!(!h.barrier());
        assert_eq!((h.acquire(), h.release()), (FenceScope::System, FenceScope::System));
        assert_eq!(Header::new().with_packet_type(3).with_barrier(true).into_bits(), 0x0103);
    }

    #[test]
    fn every_bit_survives() {
        for bits in 0..=u16::MAX {
            assert_eq!(Header::from_bits(bits).into_bits(), bits);
        }
    }
}

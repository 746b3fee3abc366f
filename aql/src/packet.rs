//! The packets of the specification (HSA PSA 1.2 §2.9), 64 bytes each.

use crate::bytes::{get, put};
use crate::header::{FenceScope, Fences, Header, PacketType};
use crate::vendor::{BarrierValue, Pm4Ib};

/// Why 64 bytes are not a packet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// A type the specification does not define.
    #[error("packet type {raw} in header {header:#06x} is not defined: 0 to 5 are")]
    UnknownType {
        /// Header bits 0-7.
        raw: u8,
        /// The whole header.
        header: u16,
    },
    /// Another type than the one asked for.
    #[error("packet type {raw} where a {} packet (type {}) was expected", expected.name(), *expected as u8)]
    WrongType {
        /// Header bits 0-7.
        raw: u8,
        /// What was asked for.
        expected: PacketType,
    },
    /// A vendor packet in a format that is not known here.
    #[error("vendor packet format {format} is unknown: 1 (PM4 indirect buffer) and 2 (barrier value) are known")]
    UnknownVendorFormat {
        /// Byte 2 of the packet.
        format: u8,
    },
    /// A barrier-value packet whose comparison is not defined.
    #[error("barrier value condition {raw} is not defined: 0 (EQ), 1 (NE), 2 (LT) and 3 (GTE) are")]
    UnknownCondition {
        /// The 32-bit field at offset 32.
        raw: u32,
    },
    /// A fence scope of 3.
    #[error("{which} fence scope is 3 in header {header:#06x}: 0 (none), 1 (agent) and 2 (system) are defined")]
    ReservedScope {
        /// `acquire` or `release`.
        which: &'static str,
        /// The whole header.
        header: u16,
    },
    /// A reserved field is not zero.
    #[error("reserved bits of byte {offset} of a {} packet are {value:#04x}, must be zero", packet_type.name())]
    ReservedField {
        /// Type of the packet.
        packet_type: PacketType,
        /// Offset of the first such byte.
        offset: usize,
        /// Its reserved bits.
        value: u8,
    },
}

/// Any packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet {
    /// No packet in the slot; the 62 bytes behind the header mean nothing.
    Invalid,
    /// Type 2.
    KernelDispatch(KernelDispatch),
    /// Type 3.
    BarrierAnd(BarrierAnd),
    /// Type 4.
    AgentDispatch(AgentDispatch),
    /// Type 5.
    BarrierOr(BarrierOr),
    /// Type 0, format 1.
    Pm4Ib(Pm4Ib),
    /// Type 0, format 2.
    BarrierValue(BarrierValue),
}

impl Packet {
    /// Reads a packet; reserved fields are ignored, as the packet processor does.
    pub fn from_bytes(bytes: &[u8; 64]) -> Result<Packet, PacketError> {
        let header = header(bytes);
        let raw = header.packet_type();
        let Some(packet_type) = PacketType::from_raw(raw) else {
            return Err(PacketError::UnknownType { raw, header: header.into_bits() });
        };
        Ok(match packet_type {
            PacketType::VendorSpecific => match bytes[2] {
                Pm4Ib::FORMAT => Packet::Pm4Ib(Pm4Ib::from_bytes(bytes)?),
                BarrierValue::FORMAT => Packet::BarrierValue(BarrierValue::from_bytes(bytes)?),
                format => return Err(PacketError::UnknownVendorFormat { format }),
            },
            PacketType::Invalid => Packet::Invalid,
            PacketType::KernelDispatch => Packet::KernelDispatch(KernelDispatch::from_bytes(bytes)?),
            PacketType::BarrierAnd => Packet::BarrierAnd(BarrierAnd::from_bytes(bytes)?),
            PacketType::AgentDispatch => Packet::AgentDispatch(AgentDispatch::from_bytes(bytes)?),
            PacketType::BarrierOr => Packet::BarrierOr(BarrierOr::from_bytes(bytes)?),
        })
    }

    /// Like [`Packet::from_bytes`], and refuses reserved fields that are not zero and fence scopes of 3.
    pub fn from_bytes_strict(bytes: &[u8; 64]) -> Result<Packet, PacketError> {
        let packet = Packet::from_bytes(bytes)?;
        if packet == Packet::Invalid {
            return Ok(packet);
        }
        let header = header(bytes);
        for (which, scope) in [("acquire", header.acquire()), ("release", header.release())] {
            if scope == FenceScope::Reserved {
                return Err(PacketError::ReservedScope { which, header: header.into_bits() });
            }
        }
        // What is not reserved survives the way through the structure, so the difference is the reserved bits.
        let again = packet.to_bytes();
        for (offset, (is, should)) in bytes.iter().zip(&again).enumerate() {
            if is != should {
                let packet_type = packet.packet_type();
                return Err(PacketError::ReservedField { packet_type, offset, value: is ^ should });
            }
        }
        Ok(packet)
    }

    /// The 64 bytes, reserved fields zero.
    pub fn to_bytes(self) -> [u8; 64] {
        match self {
            Packet::Invalid => start(Fences::default(), PacketType::Invalid),
            Packet::KernelDispatch(p) => p.to_bytes(),
            Packet::BarrierAnd(p) => p.to_bytes(),
            Packet::AgentDispatch(p) => p.to_bytes(),
            Packet::BarrierOr(p) => p.to_bytes(),
            Packet::Pm4Ib(p) => p.to_bytes(),
            Packet::BarrierValue(p) => p.to_bytes(),
        }
    }

    /// The packet's type.
    pub fn packet_type(&self) -> PacketType {
        match self {
            Packet::Invalid => PacketType::Invalid,
            Packet::KernelDispatch(_) => PacketType::KernelDispatch,
            Packet::BarrierAnd(_) => PacketType::BarrierAnd,
            Packet::AgentDispatch(_) => PacketType::AgentDispatch,
            Packet::BarrierOr(_) => PacketType::BarrierOr,
            Packet::Pm4Ib(_) | Packet::BarrierValue(_) => PacketType::VendorSpecific,
        }
    }

    /// Address of the signal that is decremented on completion; 0 for none.
    pub fn completion_signal(&self) -> u64 {
        match self {
            Packet::Invalid => 0,
            Packet::KernelDispatch(p) => p.completion_signal,
            Packet::BarrierAnd(p) => p.completion_signal,
            Packet::AgentDispatch(p) => p.completion_signal,
            Packet::BarrierOr(p) => p.completion_signal,
            Packet::Pm4Ib(p) => p.completion_signal,
            Packet::BarrierValue(p) => p.completion_signal,
        }
    }
}

/// The header of a packet.
pub(crate) fn header(bytes: &[u8; 64]) -> Header {
    Header::from_bits(u16::from_le_bytes(get(bytes, 0)))
}

/// The fences, if the type is `expected`.
pub(crate) fn expect(bytes: &[u8; 64], expected: PacketType) -> Result<Fences, PacketError> {
    let header = header(bytes);
    match header.packet_type() {
        raw if raw == expected as u8 => Ok(header.fences()),
        raw => Err(PacketError::WrongType { raw, expected }),
    }
}

/// A packet of zeros with a header of this type.
pub(crate) fn start(fences: Fences, packet_type: PacketType) -> [u8; 64] {
    let mut bytes = [0; 64];
    put(&mut bytes, 0, fences.header(packet_type).into_bits().to_le_bytes());
    bytes
}

/// Kernel dispatch packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelDispatch {
    /// Barrier bit and fences.
    pub fences: Fences,
    /// Dimensions of the grid, 1 to 3: bits 0-1 of `setup`.
    pub dims: u8,
    /// Work-items of a work-group in x, y, z.
    pub workgroup_size: [u16; 3],
    /// Work-items of the grid in x, y, z; the last work-group of a dimension may be partial.
    pub grid_size: [u32; 3],
    /// Scratch bytes a work-item.
    pub private_segment_size: u32,
    /// LDS bytes a work-group: static and dynamic.
    pub group_segment_size: u32,
    /// Address of the kernel descriptor.
    pub kernel_object: u64,
    /// Address of the kernel arguments, 16-byte aligned.
    pub kernarg_address: u64,
    /// Address of an `amd_signal_t` to decrement, or 0.
    pub completion_signal: u64,
}

impl Default for KernelDispatch {
    fn default() -> Self {
        KernelDispatch {
            fences: Fences::default(),
            dims: 1,
            workgroup_size: [1; 3],
            grid_size: [1; 3],
            private_segment_size: 0,
            group_segment_size: 0,
            kernel_object: 0,
            kernarg_address: 0,
            completion_signal: 0,
        }
    }
}

impl KernelDispatch {
    /// Reads a packet of type 2; reserved fields are ignored.
    pub fn from_bytes(bytes: &[u8; 64]) -> Result<KernelDispatch, PacketError> {
        let fences = expect(bytes, PacketType::KernelDispatch)?;
        Ok(KernelDispatch {
            fences,
            dims: bytes[2] & 3,
            workgroup_size: [4, 6, 8].map(|o| u16::from_le_bytes(get(bytes, o))),
            grid_size: [12, 16, 20].map(|o| u32::from_le_bytes(get(bytes, o))),
            private_segment_size: u32::from_le_bytes(get(bytes, 24)),
            group_segment_size: u32::from_le_bytes(get(bytes, 28)),
            kernel_object: u64::from_le_bytes(get(bytes, 32)),
            kernarg_address: u64::from_le_bytes(get(bytes, 40)),
            completion_signal: u64::from_le_bytes(get(bytes, 56)),
        })
    }

    /// The 64 bytes. Only the two lowest bits of `dims` are kept.
    pub fn to_bytes(self) -> [u8; 64] {
        let mut bytes = start(self.fences, PacketType::KernelDispatch);
        bytes[2] = self.dims & 3;
        for (i, offset) in [4, 6, 8].into_iter().enumerate() {
            put(&mut bytes, offset, self.workgroup_size[i].to_le_bytes());
        }
        for (i, offset) in [12, 16, 20].into_iter().enumerate() {
            put(&mut bytes, offset, self.grid_size[i].to_le_bytes());
        }
        put(&mut bytes, 24, self.private_segment_size.to_le_bytes());
        put(&mut bytes, 28, self.group_segment_size.to_le_bytes());
        put(&mut bytes, 32, self.kernel_object.to_le_bytes());
        put(&mut bytes, 40, self.kernarg_address.to_le_bytes());
        put(&mut bytes, 56, self.completion_signal.to_le_bytes());
        bytes
    }
}

/// The two barrier packets differ in type and in meaning only.
macro_rules! barrier {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
        pub struct $name {
            /// Barrier bit and fences.
            pub fences: Fences,
            /// Addresses of `amd_signal_t` to wait for, 0 for an unused place.
            pub dep_signals: [u64; 5],
            /// Address of an `amd_signal_t` to decrement, or 0.
            pub completion_signal: u64,
        }

        impl $name {
            /// Reads a packet of this type; reserved fields are ignored.
            pub fn from_bytes(bytes: &[u8; 64]) -> Result<$name, PacketError> {
                let fences = expect(bytes, PacketType::$name)?;
                Ok($name {
                    fences,
                    dep_signals: [8, 16, 24, 32, 40].map(|o| u64::from_le_bytes(get(bytes, o))),
                    completion_signal: u64::from_le_bytes(get(bytes, 56)),
                })
            }

            /// The 64 bytes.
            pub fn to_bytes(self) -> [u8; 64] {
                let mut bytes = start(self.fences, PacketType::$name);
                for (i, signal) in self.dep_signals.iter().enumerate() {
                    put(&mut bytes, 8 + 8 * i, signal.to_le_bytes());
                }
                put(&mut bytes, 56, self.completion_signal.to_le_bytes());
                bytes
            }
        }
    };
}

barrier! {
    /// Barrier-AND packet: completes when every signal has the value 0. An unused place counts as satisfied, so a
    /// packet with none is a no-op.
    BarrierAnd
}

barrier! {
    /// Barrier-OR packet: completes when one signal has the value 0. An unused place counts as not satisfied.
    BarrierOr
}

/// Agent dispatch packet. Host queues take it; a GPU queue refuses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentDispatch {
    /// Barrier bit and fences.
    pub fences: Fences,
    /// The function: below 0x8000 reserved to HSA, from there the application's own.
    pub function: u16,
    /// Where the result goes.
    pub return_address: u64,
    /// Arguments.
    pub args: [u64; 4],
    /// Address of an `amd_signal_t` to decrement, or 0.
    pub completion_signal: u64,
}

impl AgentDispatch {
    /// Reads a packet of type 4; reserved fields are ignored.
    pub fn from_bytes(bytes: &[u8; 64]) -> Result<AgentDispatch, PacketError> {
        let fences = expect(bytes, PacketType::AgentDispatch)?;
        Ok(AgentDispatch {
            fences,
            function: u16::from_le_bytes(get(bytes, 2)),
            return_address: u64::from_le_bytes(get(bytes, 8)),
            args: [16, 24, 32, 40].map(|o| u64::from_le_bytes(get(bytes, o))),
            completion_signal: u64::from_le_bytes(get(bytes, 56)),
        })
    }

    /// The 64 bytes.
    pub fn to_bytes(self) -> [u8; 64] {
        let mut bytes = start(self.fences, PacketType::AgentDispatch);
        put(&mut bytes, 2, self.function.to_le_bytes());
        put(&mut bytes, 8, self.return_address.to_le_bytes());
        for (i, arg) in self.args.iter().enumerate() {
            put(&mut bytes, 16 + 8 * i, arg.to_le_bytes());
        }
        put(&mut bytes, 56, self.completion_signal.to_le_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests;

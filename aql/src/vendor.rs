//! Vendor packets of AMD's packet processor: type 0, format in byte 2.

use crate::bytes::{get, put};
use crate::header::{Fences, PacketType};
use crate::packet::{PacketError, expect, start};

/// Jumps to a buffer of PM4 commands (gfx9 and later).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pm4Ib {
    /// Barrier bit and fences.
    pub fences: Fences,
    /// The PM4 `INDIRECT_BUFFER` command: header, address low and high, length and flags.
    pub jump: [u32; 4],
    /// Address of an `amd_signal_t` to decrement, or 0.
    pub completion_signal: u64,
}

impl Pm4Ib {
    /// Byte 2 of the packet.
    pub const FORMAT: u8 = 1;

    /// Dwords of the slot the processor skips behind the jump: offset 20 to the end is 11 dwords, less one.
    const DW_COUNT_REMAINING: u32 = 0xa;

    /// A jump to `dwords` dwords at `address`: a PM4 type 3 command, opcode 0x3F, with VALID (bit 23) and no chaining.
    /// None when the address is not 4-byte aligned, or it or the length does not fit its field (48 and 20 bits).
    pub fn jump_to(fences: Fences, address: u64, dwords: u32, completion_signal: u64) -> Option<Pm4Ib> {
        if address & 3 != 0 || address >> 48 != 0 || dwords >> 20 != 0 {
            return None;
        }
        let jump = [0xc002_3f00, address as u32, (address >> 32) as u32, dwords | 1 << 23];
        Some(Pm4Ib { fences, jump, completion_signal })
    }

    /// Reads a packet of type 0 and format 1; reserved fields are ignored.
    pub fn from_bytes(bytes: &[u8; 64]) -> Result<Pm4Ib, PacketError> {
        let fences = expect_format(bytes, Self::FORMAT)?;
        Ok(Pm4Ib {
            fences,
            jump: [4, 8, 12, 16].map(|o| u32::from_le_bytes(get(bytes, o))),
            completion_signal: u64::from_le_bytes(get(bytes, 56)),
        })
    }

    /// The 64 bytes.
    pub fn to_bytes(self) -> [u8; 64] {
        let mut bytes = start(self.fences, PacketType::VendorSpecific);
        bytes[2] = Self::FORMAT;
        for (i, dword) in self.jump.iter().enumerate() {
            put(&mut bytes, 4 + 4 * i, dword.to_le_bytes());
        }
        put(&mut bytes, 20, Self::DW_COUNT_REMAINING.to_le_bytes());
        put(&mut bytes, 56, self.completion_signal.to_le_bytes());
        bytes
    }

    /// Address of the commands, from the jump.
    pub fn address(&self) -> u64 {
        u64::from(self.jump[1] & !3) | u64::from(self.jump[2] & 0xffff) << 32
    }

    /// Length of the commands in dwords, from the jump.
    pub fn dwords(&self) -> u32 {
        self.jump[3] & 0xf_ffff
    }
}

/// Waits until `(signal & mask) condition value` holds. ROCR uses it on gfx90a and gfx942 only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarrierValue {
    /// Barrier bit and fences.
    pub fences: Fences,
    /// Address of the `amd_signal_t` to look at; 0 counts as satisfied.
    pub signal: u64,
    /// Right-hand side.
    pub value: i64,
    /// Bits of the signal's value that count.
    pub mask: i64,
    /// The comparison, signed.
    pub condition: Condition,
    /// Address of an `amd_signal_t` to decrement, or 0.
    pub completion_signal: u64,
}

/// Comparison of a barrier-value packet (`hsa_signal_condition_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// 0: equal.
    Eq,
    /// 1: not equal.
    Ne,
    /// 2: less than.
    Lt,
    /// 3: greater or equal.
    Gte,
}

impl Condition {
    /// As it is written between two values.
    pub fn symbol(self) -> &'static str {
        match self {
            Condition::Eq => "==",
            Condition::Ne => "!=",
            Condition::Lt => "<",
            Condition::Gte => ">=",
        }
    }

    /// Whether `left condition right` holds.
    pub fn holds(self, left: i64, right: i64) -> bool {
        match self {
            Condition::Eq => left == right,
            Condition::Ne => left != right,
            Condition::Lt => left < right,
            Condition::Gte => left >= right,
        }
    }
}

impl BarrierValue {
    /// Byte 2 of the packet.
    pub const FORMAT: u8 = 2;

    /// Reads a packet of type 0 and format 2; reserved fields are ignored.
    pub fn from_bytes(bytes: &[u8; 64]) -> Result<BarrierValue, PacketError> {
        let fences = expect_format(bytes, Self::FORMAT)?;
        let condition = match u32::from_le_bytes(get(bytes, 32)) {
            0 => Condition::Eq,
            1 => Condition::Ne,
            2 => Condition::Lt,
            3 => Condition::Gte,
            raw => return Err(PacketError::UnknownCondition { raw }),
        };
        Ok(BarrierValue {
            fences,
            signal: u64::from_le_bytes(get(bytes, 8)),
            value: i64::from_le_bytes(get(bytes, 16)),
            mask: i64::from_le_bytes(get(bytes, 24)),
            condition,
            completion_signal: u64::from_le_bytes(get(bytes, 56)),
        })
    }

    /// The 64 bytes.
    pub fn to_bytes(self) -> [u8; 64] {
        let mut bytes = start(self.fences, PacketType::VendorSpecific);
        bytes[2] = Self::FORMAT;
        put(&mut bytes, 8, self.signal.to_le_bytes());
        put(&mut bytes, 16, self.value.to_le_bytes());
        put(&mut bytes, 24, self.mask.to_le_bytes());
        put(&mut bytes, 32, (self.condition as u32).to_le_bytes());
        put(&mut bytes, 56, self.completion_signal.to_le_bytes());
        bytes
    }
}

fn expect_format(bytes: &[u8; 64], format: u8) -> Result<Fences, PacketError> {
    let fences = expect(bytes, PacketType::VendorSpecific)?;
    if bytes[2] != format {
        return Err(PacketError::UnknownVendorFormat { format: bytes[2] });
    }
    Ok(fences)
}

//! PM4 commands in an indirect buffer (vendor packet format 1).
//!
//! Only those that order memory are known: user space sends them to invalidate instruction caches after it has loaded
//! code, and this machine's memory has no caches. Any other command is refused by name.

use super::bus::{Bus, BusFault};

/// Type 3 commands: a header dword with type in bits 30:31, operands less one in 16:29, opcode in 8:15.
const NOP: u32 = 0x10;
const INDIRECT_BUFFER: u32 = 0x3f;
const ACQUIRE_MEM: u32 = 0x58;

/// Buffers may jump to others, but not in circles.
const MAX_JUMPS: u32 = 16;

/// Why commands were not executed.
pub enum Refusal {
    /// Memory.
    Bus(BusFault),
    /// The command.
    Command(String),
}

impl From<BusFault> for Refusal {
    fn from(fault: BusFault) -> Refusal {
        Refusal::Bus(fault)
    }
}

/// Executes the commands that the INDIRECT_BUFFER command `jump` leads to.
pub fn execute(bus: &Bus, mut jump: [u32; 4]) -> Result<(), Refusal> {
    for _ in 0..MAX_JUMPS {
        if jump[0] >> 30 != 3 || jump[0] >> 8 & 0xff != INDIRECT_BUFFER {
            return Err(Refusal::Command(format!("PM4 header {:#010x} is not an INDIRECT_BUFFER", jump[0])));
        }
        let base = u64::from(jump[1] & !3) | u64::from(jump[2] & 0xffff) << 32;
        match buffer(bus, base, jump[3] & 0xf_ffff)? {
            None => return Ok(()),
            Some(next) => jump = next,
        }
    }
    Err(Refusal::Command(format!("more than {MAX_JUMPS} INDIRECT_BUFFER commands in a row")))
}

/// Executes one buffer. Some: the jump it ends with.
fn buffer(bus: &Bus, base: u64, dwords: u32) -> Result<Option<[u32; 4]>, Refusal> {
    let word = |index: u32| bus.load_u32(base.wrapping_add(4 * u64::from(index)), "PM4 command");
    let mut at = 0;
    while at < dwords {
        let header = word(at)?;
        let opcode = header >> 8 & 0xff;
        match (header >> 30, opcode) {
            // Type 2 is one dword of filler.
            (2, _) => at += 1,
            // A NOP whose count is all ones is the header alone.
            (3, NOP) if header >> 16 & 0x3fff == 0x3fff => at += 1,
            (3, NOP | ACQUIRE_MEM) => at += 2 + (header >> 16 & 0x3fff),
            (3, INDIRECT_BUFFER) if at + 4 >= dwords => {
                return Ok(Some([header, word(at + 1)?, word(at + 2)?, word(at + 3)?]));
            }
            (kind, _) => {
                return Err(Refusal::Command(format!(
                    "PM4 header {header:#010x} at {:#x} (type {kind}, opcode {opcode:#04x}) is not emulated: only NOP, \
                     ACQUIRE_MEM and a final INDIRECT_BUFFER are",
                    base.wrapping_add(4 * u64::from(at))
                )));
            }
        }
    }
    Ok(None)
}

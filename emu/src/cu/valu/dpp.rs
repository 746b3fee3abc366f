//! Data-parallel primitives: source 0 taken from other lanes.

use crate::cu::lower::Unsupported;
use crate::isa::{Dpp, Family, Target};

/// Which lane each lane reads.
pub struct Lanes {
    /// Source lane.
    from: [u8; 64],
    /// Lanes whose source lane is within bounds.
    valid: u64,
    /// Lanes that the row and bank masks let write.
    write: u64,
    /// Lanes without a source read 0 and write, rather than not write.
    zero: bool,
    /// Inactive lanes can be read.
    fetch_inactive: bool,
}

impl Lanes {
    /// The lanes of a DPP control for a wave of `lanes` lanes.
    pub fn new(dpp: Dpp, target: Target, lanes: u32) -> Result<Lanes, Unsupported> {
        let mut from = [0; 64];
        let mut valid = 0;
        match dpp {
            Dpp::Dpp8 { sel, fi } => {
                for lane in 0..lanes as usize {
                    from[lane] = (lane as u8 & !7) | sel[lane & 7] & 7;
                }
                Ok(Lanes { from, valid: u64::MAX, write: u64::MAX, zero: true, fetch_inactive: fi })
            }
            Dpp::Dpp16 { ctrl, row_mask, bank_mask, bound_ctrl, fi } => {
                let mut write = 0;
                for lane in 0..lanes {
                    if let Some(source) = source_lane(ctrl, lane, lanes, target)? {
                        from[lane as usize] = source as u8;
                        valid |= 1 << lane;
                    }
                    let (row, bank) = (lane >> 4 & 3, lane >> 2 & 3);
                    if row_mask >> row & 1 != 0 && bank_mask >> bank & 1 != 0 {
                        write |= 1 << lane;
                    }
                }
                Ok(Lanes { from, valid, write, zero: bound_ctrl, fetch_inactive: fi })
            }
        }
    }

    /// Lanes whose source can be read.
    #[inline(always)]
    fn readable(&self, exec: u64) -> u64 {
        if self.fetch_inactive {
            return self.valid;
        }
        let mut mask = 0;
        for (lane, from) in self.from.iter().enumerate() {
            mask |= (exec >> (from & 63) & 1) << lane;
        }
        mask & self.valid
    }

    /// The active lanes that write.
    pub fn writers(&self, exec: u64) -> u64 {
        exec & self.write & if self.zero { u64::MAX } else { self.readable(exec) }
    }

    /// Moves a row's words to the lanes that read them; zero where there is nothing to read.
    #[inline(always)]
    pub fn permute<const L: usize>(&self, exec: u64, row: &mut [u32; L]) {
        let readable = self.readable(exec);
        let old = *row;
        for (lane, word) in row.iter_mut().enumerate() {
            let value = old[self.from[lane] as usize & (L - 1)];
            *word = if readable >> lane & 1 != 0 { value } else { 0 };
        }
    }
}

/// The lane that `lane` reads, None when it is out of bounds.
fn source_lane(ctrl: u16, lane: u32, lanes: u32, target: Target) -> Result<Option<u32>, Unsupported> {
    let gfx9 = target.family() == Family::Gfx9;
    let row = lane & !15;
    let within = lane & 15;
    let count = ctrl as u32 & 15;
    let in_row = |place: u32| (place < 16).then_some(row | place);
    Ok(match ctrl {
        0x000..=0x0ff => Some(lane & !3 | (ctrl as u32 >> (2 * (lane & 3))) & 3),
        0x101..=0x10f => in_row(within + count),
        0x111..=0x11f => in_row(within.wrapping_sub(count)),
        0x121..=0x12f => in_row(within.wrapping_sub(count) & 15),
        0x130 if gfx9 => (lane + 1 < lanes).then_some(lane + 1),
        0x134 if gfx9 => Some((lane + 1) % lanes),
        0x138 if gfx9 => lane.checked_sub(1),
        0x13c if gfx9 => Some(lane.checked_sub(1).unwrap_or(lanes - 1)),
        0x140 => in_row(15 - within),
        0x141 => Some(lane & !7 | 7 - (lane & 7)),
        0x142 if gfx9 => row.checked_sub(1),
        0x143 if gfx9 => (lane & !31).checked_sub(1),
        // row_newbcast on gfx90a and gfx942, row_share from GFX10 on.
        0x150..=0x15f if !gfx9 || target.unified_agprs() => in_row(count),
        0x160..=0x16f if !gfx9 => in_row(within ^ count),
        _ => return Err(Unsupported::Operand("this DPP control does not exist on the target")),
    })
}

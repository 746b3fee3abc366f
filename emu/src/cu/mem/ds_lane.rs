//! DS instructions that move values between lanes and touch no memory: swizzle, permute, bpermute.
//!
//! A lane that is off in EXEC gives 0, but for `ds_bpermute_fi_b32`. From GFX10 on a wave64 is two halves of 32 lanes
//! that do not see each other.

use super::super::inst::{Handler, Inst};
use super::super::lower::Lowering;
use super::super::wave::Wave;
use super::by_lanes;
use super::ds::copy_row;
use super::pattern::ones;
use crate::isa::Family;

/// Halves of 32 lanes are separate.
const HALVES: u8 = 1;
/// Inactive lanes give their value.
const FETCH_INACTIVE: u8 = 2;

fn flags(lowering: &Lowering, fetch_inactive: bool) -> u8 {
    let halves = lowering.target.family() != Family::Gfx9 && lowering.lanes == 64;
    (if halves { HALVES } else { 0 }) | if fetch_inactive { FETCH_INACTIVE } else { 0 }
}

/// The handler of `ds_permute_b32`.
pub fn permute(lowering: &Lowering, inst: &mut Inst) -> Handler {
    inst.flags = flags(lowering, false);
    by_lanes!(lowering, push)
}

/// The handler of `ds_bpermute_b32` and `ds_bpermute_fi_b32`.
pub fn bpermute(lowering: &Lowering, inst: &mut Inst, fetch_inactive: bool) -> Handler {
    inst.flags = flags(lowering, fetch_inactive);
    by_lanes!(lowering, pull)
}

/// The handler of `ds_swizzle_b32`.
pub fn swizzle(lowering: &Lowering) -> Handler {
    by_lanes!(lowering, swizzle_lanes)
}

/// The lane that a byte address selects, seen from `lane`.
#[inline(always)]
fn selected<const L: usize>(inst: &Inst, lane: usize, address: u32) -> usize {
    let wanted = (address.wrapping_add(inst.imm as u32) / 4) as usize;
    if inst.flags & HALVES != 0 { (lane & 32) | (wanted % 32) } else { wanted % L }
}

/// `ds_permute_b32`: each active lane sends its value to the lane its address selects; the highest sender wins, and a
/// lane nobody sent to gets 0.
unsafe fn push<const L: usize>(wave: &mut Wave, inst: &Inst) {
    // SAFETY: lowering checked the rows.
    unsafe {
        let data = copy_row::<L>(wave, inst.src[1].value());
        let address = wave.rows.byte_add(inst.src[0].value() as usize);
        let mut received = [0; L];
        ones(wave.exec, |lane| received[selected::<L>(inst, lane, *address.add(lane))] = data.0[lane]);
        let dst = wave.rows.byte_add(inst.dst as usize);
        ones(wave.exec, |lane| *dst.add(lane) = received[lane]);
    }
}

/// `ds_bpermute_b32`: each active lane fetches the value of the lane its address selects.
unsafe fn pull<const L: usize>(wave: &mut Wave, inst: &Inst) {
    let visible = if inst.flags & FETCH_INACTIVE != 0 { u64::MAX } else { wave.exec };
    // SAFETY: lowering checked the rows.
    unsafe {
        let data = copy_row::<L>(wave, inst.src[1].value());
        let address = wave.rows.byte_add(inst.src[0].value() as usize);
        let dst = wave.rows.byte_add(inst.dst as usize);
        ones(wave.exec, |lane| {
            let from = selected::<L>(inst, lane, *address.add(lane));
            *dst.add(lane) = if visible >> from & 1 != 0 { data.0[from] } else { 0 };
        });
    }
}

/// The lane that `lane` reads under a `ds_swizzle_b32` offset. All modes stay within 32 lanes.
fn source(offset: u16, lane: usize) -> usize {
    let group = lane & 32;
    let lane = lane & 31;
    let low = (offset & 31) as usize;
    let middle = (offset >> 5 & 31) as usize;
    let from = if offset >= 0xe000 {
        // FFT: the lane's bits reversed, shifted past those that the mask keeps.
        let reversed = (lane as u8).reverse_bits() as usize >> 3;
        (reversed >> low.count_ones()) | lane & low
    } else if offset >= 0xc000 {
        // Rotate by `middle`, left or right; bits in the mask stay.
        let by = if offset & 0x400 != 0 { 32 - middle } else { middle };
        lane & low | (lane + by) & !low & 31
    } else if offset & 0x8000 != 0 {
        lane & !3 | (offset >> (2 * (lane & 3)) & 3) as usize
    } else {
        (lane & low | middle) ^ (offset >> 10 & 31) as usize
    };
    group | from & 31
}

unsafe fn swizzle_lanes<const L: usize>(wave: &mut Wave, inst: &Inst) {
    // SAFETY: lowering checked the rows.
    unsafe {
        let data = copy_row::<L>(wave, inst.src[0].value());
        let dst = wave.rows.byte_add(inst.dst as usize);
        ones(wave.exec, |lane| {
            let from = source(inst.imm as u16, lane);
            *dst.add(lane) = if wave.exec >> from & 1 != 0 { data.0[from] } else { 0 };
        });
    }
}

#[cfg(test)]
mod tests {
    use super::source;

    fn lanes(offset: u16) -> Vec<usize> {
        (0..32).map(|lane| source(offset, lane)).collect()
    }

    #[test]
    fn bit_mask_modes() {
        // xor 1, broadcast of lane 5, reversal of 32.
        assert_eq!(lanes(0x041f)[..4], [1, 0, 3, 2]);
        assert_eq!(lanes(0x00a0), vec![5; 32]);
        assert_eq!(lanes(0x7c1f), (0..32).rev().collect::<Vec<_>>());
    }

    #[test]
    fn quad_permutation() {
        // 3, 2, 1, 0 in each group of four.
        assert_eq!(lanes(0x801b)[..8], [3, 2, 1, 0, 7, 6, 5, 4]);
    }

    #[test]
    fn rotation() {
        // Left by 1: lane 0 reads lane 1. Right by 1: lane 0 reads lane 31. With mask 0x18 groups of eight rotate.
        assert_eq!(lanes(0xc020)[..2], [1, 2]);
        assert_eq!(lanes(0xc420)[..2], [31, 0]);
        assert_eq!(lanes(0xc038)[7], 0);
        assert_eq!(lanes(0xc038)[15], 8);
    }

    #[test]
    fn fft() {
        // No mask: plain bit reversal of five bits; all bits kept: identity.
        assert_eq!(lanes(0xe000)[1], 16);
        assert_eq!(lanes(0xe01f), (0..32).collect::<Vec<_>>());
    }

    #[test]
    fn the_upper_half_of_a_wave64_is_its_own_group() {
        assert_eq!(source(0x041f, 33), 32);
        assert_eq!(source(0xc420, 32), 63);
    }
}

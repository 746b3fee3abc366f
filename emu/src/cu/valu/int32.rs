//! 32-bit integers and bits.

use super::define::{lane, ops, sources};
use crate::cu::fidelity::Fidelity;

use super::op::{Cx, Op, mode};
use super::table::Entry;

/// 24 low bits, zero-extended.
#[inline(always)]
fn u24(value: u32) -> u32 {
    value & 0xff_ffff
}

/// 24 low bits, sign-extended.
#[inline(always)]
fn i24(value: u32) -> i32 {
    (value << 8) as i32 >> 8
}

/// Sum of the absolute differences of the bytes whose mask bit is set.
#[inline(always)]
pub fn sad_bytes(a: u32, b: u32) -> u32 {
    let mut sum = 0;
    for shift in [0, 8, 16, 24] {
        sum += ((a >> shift) & 0xff).abs_diff((b >> shift) & 0xff);
    }
    sum
}

/// One byte chosen by a `v_perm_b32` selector.
#[inline(always)]
fn perm_byte(low: u32, high: u32, selector: u32) -> u32 {
    let bytes = low as u64 | (high as u64) << 32;
    let byte = (bytes >> ((selector & 7) * 8)) as u32 & 0xff;
    // 8..11 replicate the sign of bytes 1, 3, 5, 7.
    let sign = ((bytes >> ((selector & 3) * 16 + 15)) as u32 & 1).wrapping_neg() & 0xff;
    if selector < 8 {
        byte
    } else if selector < 12 {
        sign
    } else if selector == 12 {
        0
    } else {
        0xff
    }
}

/// `D.u8[i] = (a.u8[i] + b.u8[i] + (c.u8[i] & 1)) >> 1`.
#[inline(always)]
fn lerp_bytes(a: u32, b: u32, c: u32) -> u32 {
    let mut result = 0;
    for shift in [0, 8, 16, 24] {
        result |= ((((a >> shift) & 0xff) + ((b >> shift) & 0xff) + ((c >> shift) & 1)) >> 1) << shift;
    }
    result
}

/// Bits of `mask` below the lane, of the half that holds lanes 0..31 or 32..63.
#[inline(always)]
fn below(lane: u32, high: bool) -> u32 {
    let low_half = lane < 32;
    let bits = (1u32 << (lane & 31)).wrapping_sub(1);
    match (high, low_half) {
        (false, true) | (true, false) => bits,
        (false, false) => u32::MAX,
        (true, true) => 0,
    }
}

ops! {
    MovB32 = v_mov_b32 v_accvgpr_read_b32 v_accvgpr_write_b32 v_accvgpr_mov_b32 v_dual_mov_b32
        [_cx](a: u32) -> u32 { a }
    NotB32 = v_not_b32 [_cx](a: u32) -> u32 { !a }
    BfrevB32 = v_bfrev_b32 [_cx](a: u32) -> u32 { a.reverse_bits() }
    FfbhU32 = v_ffbh_u32 v_clz_i32_u32 [_cx](a: u32) -> u32 { if a == 0 { u32::MAX } else { a.leading_zeros() } } .fits()
    FfblB32 = v_ffbl_b32 v_ctz_i32_b32 [_cx](a: u32) -> u32 { if a == 0 { u32::MAX } else { a.trailing_zeros() } } .fits()
    FfbhI32 = v_ffbh_i32 v_cls_i32 [_cx](a: u32) -> u32 {
        let changed = a ^ ((a as i32 >> 31) as u32);
        if changed == 0 { u32::MAX } else { changed.leading_zeros() }
    } .fits()

    AddU32 = v_add_u32 v_add_nc_u32 v_dual_add_nc_u32 [_cx](a: u32, b: u32) -> u32 { a.wrapping_add(b) }
        .clamp::<AddClampU32>()
    AddClampU32 = [_cx](a: u32, b: u32) -> u32 { a.saturating_add(b) }
    SubU32 = v_sub_u32 v_sub_nc_u32 v_dual_sub_nc_u32 [_cx](a: u32, b: u32) -> u32 { a.wrapping_sub(b) }
        .clamp::<SubClampU32>()
    SubClampU32 = [_cx](a: u32, b: u32) -> u32 { a.saturating_sub(b) }
    SubrevU32 = v_subrev_u32 v_subrev_nc_u32 [_cx](a: u32, b: u32) -> u32 { b.wrapping_sub(a) }
        .clamp::<SubrevClampU32>()
    SubrevClampU32 = [_cx](a: u32, b: u32) -> u32 { b.saturating_sub(a) }
    AddI32 = v_add_i32 v_add_nc_i32 [_cx](a: i32, b: i32) -> i32 { a.wrapping_add(b) }
        .clamp::<AddClampI32>()
    AddClampI32 = [_cx](a: i32, b: i32) -> i32 { a.saturating_add(b) }
    SubI32 = v_sub_i32 v_sub_nc_i32 [_cx](a: i32, b: i32) -> i32 { a.wrapping_sub(b) }
        .clamp::<SubClampI32>()
    SubClampI32 = [_cx](a: i32, b: i32) -> i32 { a.saturating_sub(b) }

    AddCoU32 = v_add_co_u32 [_cx](a: u32, b: u32) -> (u32, bool) { a.overflowing_add(b) }
        .clamp::<AddCoClampU32>()
    AddCoClampU32 = [_cx](a: u32, b: u32) -> (u32, bool) { (a.saturating_add(b), a.overflowing_add(b).1) }
    SubCoU32 = v_sub_co_u32 [_cx](a: u32, b: u32) -> (u32, bool) { a.overflowing_sub(b) }
        .clamp::<SubCoClampU32>()
    SubCoClampU32 = [_cx](a: u32, b: u32) -> (u32, bool) { (a.saturating_sub(b), a < b) }
    SubrevCoU32 = v_subrev_co_u32 [_cx](a: u32, b: u32) -> (u32, bool) { b.overflowing_sub(a) }
        .clamp::<SubrevCoClampU32>()
    SubrevCoClampU32 = [_cx](a: u32, b: u32) -> (u32, bool) { (b.saturating_sub(a), b < a) }
    AddcCoU32 = v_addc_co_u32 v_add_co_ci_u32 [_cx](a: u32, b: u32, carry: bool) -> (u32, bool) {
        add_carry(a, b, carry)
    } .clamp::<AddcCoClampU32>()
    AddcCoClampU32 = [_cx](a: u32, b: u32, carry: bool) -> (u32, bool) {
        let (sum, out) = add_carry(a, b, carry);
        (if out { u32::MAX } else { sum }, out)
    }
    SubbCoU32 = v_subb_co_u32 v_sub_co_ci_u32 [_cx](a: u32, b: u32, borrow: bool) -> (u32, bool) {
        sub_borrow(a, b, borrow)
    } .clamp::<SubbCoClampU32>()
    SubbCoClampU32 = [_cx](a: u32, b: u32, borrow: bool) -> (u32, bool) {
        let (difference, out) = sub_borrow(a, b, borrow);
        (if out { 0 } else { difference }, out)
    }
    SubbrevCoU32 = v_subbrev_co_u32 v_subrev_co_ci_u32 [_cx](a: u32, b: u32, borrow: bool) -> (u32, bool) {
        sub_borrow(b, a, borrow)
    } .clamp::<SubbrevCoClampU32>()
    SubbrevCoClampU32 = [_cx](a: u32, b: u32, borrow: bool) -> (u32, bool) {
        let (difference, out) = sub_borrow(b, a, borrow);
        (if out { 0 } else { difference }, out)
    }

    AndB32 = v_and_b32 v_dual_and_b32 [_cx](a: u32, b: u32) -> u32 { a & b }
    OrB32 = v_or_b32 [_cx](a: u32, b: u32) -> u32 { a | b }
    XorB32 = v_xor_b32 [_cx](a: u32, b: u32) -> u32 { a ^ b }
    XnorB32 = v_xnor_b32 [_cx](a: u32, b: u32) -> u32 { !(a ^ b) }
    Or3B32 = v_or3_b32 [_cx](a: u32, b: u32, c: u32) -> u32 { a | b | c }
    Xor3B32 = v_xor3_b32 [_cx](a: u32, b: u32, c: u32) -> u32 { a ^ b ^ c }
    AndOrB32 = v_and_or_b32 [_cx](a: u32, b: u32, c: u32) -> u32 { a & b | c }
    LshlOrB32 = v_lshl_or_b32 [_cx](a: u32, b: u32, c: u32) -> u32 { a << (b & 31) | c }
    LshlAddU32 = v_lshl_add_u32 [_cx](a: u32, b: u32, c: u32) -> u32 { (a << (b & 31)).wrapping_add(c) }
    AddLshlU32 = v_add_lshl_u32 [_cx](a: u32, b: u32, c: u32) -> u32 { a.wrapping_add(b) << (c & 31) }
    Add3U32 = v_add3_u32 [_cx](a: u32, b: u32, c: u32) -> u32 { a.wrapping_add(b).wrapping_add(c) }
    XadU32 = v_xad_u32 [_cx](a: u32, b: u32, c: u32) -> u32 { (a ^ b).wrapping_add(c) }

    LshlrevB32 = v_lshlrev_b32 v_dual_lshlrev_b32 [_cx](a: u32, b: u32) -> u32 { b << (a & 31) }
    LshrrevB32 = v_lshrrev_b32 v_dual_lshrrev_b32 [_cx](a: u32, b: u32) -> u32 { b >> (a & 31) }
    AshrrevI32 = v_ashrrev_i32 v_dual_ashrrev_i32 [_cx](a: u32, b: i32) -> i32 { b >> (a & 31) }

    MulLoU32 = v_mul_lo_u32 v_mul_lo_i32 [_cx](a: u32, b: u32) -> u32 { a.wrapping_mul(b) }
    MulHiU32 = v_mul_hi_u32 [_cx](a: u32, b: u32) -> u32 { ((a as u64).wrapping_mul(b as u64) >> 32) as u32 }
    MulHiI32 = v_mul_hi_i32 [_cx](a: i32, b: i32) -> i32 { ((a as i64).wrapping_mul(b as i64) >> 32) as i32 }
    MulU32U24 = v_mul_u32_u24 [_cx](a: u32, b: u32) -> u32 { u24(a).wrapping_mul(u24(b)) }
        .clamp::<MulClampU32U24>()
    MulClampU32U24 = [_cx](a: u32, b: u32) -> u32 { u24(a).saturating_mul(u24(b)) }
    MulI32I24 = v_mul_i32_i24 [_cx](a: u32, b: u32) -> i32 { i24(a).wrapping_mul(i24(b)) }
        .clamp::<MulClampI32I24>()
    MulClampI32I24 = [_cx](a: u32, b: u32) -> i32 { clamp_i32((i24(a) as i64).wrapping_mul(i24(b) as i64)) }
    MulHiU32U24 = v_mul_hi_u32_u24 [_cx](a: u32, b: u32) -> u32 {
        ((u24(a) as u64).wrapping_mul(u24(b) as u64) >> 32) as u32
    } .fits()
    MulHiI32I24 = v_mul_hi_i32_i24 [_cx](a: u32, b: u32) -> i32 {
        ((i24(a) as i64).wrapping_mul(i24(b) as i64) >> 32) as i32
    } .fits()
    MadU32U24 = v_mad_u32_u24 [_cx](a: u32, b: u32, c: u32) -> u32 {
        u24(a).wrapping_mul(u24(b)).wrapping_add(c)
    } .clamp::<MadClampU32U24>()
    MadClampU32U24 = [_cx](a: u32, b: u32, c: u32) -> u32 {
        let sum = (u24(a) as u64).wrapping_mul(u24(b) as u64).wrapping_add(c as u64);
        if sum > u32::MAX as u64 { u32::MAX } else { sum as u32 }
    }
    MadI32I24 = v_mad_i32_i24 [_cx](a: u32, b: u32, c: i32) -> i32 {
        i24(a).wrapping_mul(i24(b)).wrapping_add(c)
    } .clamp::<MadClampI32I24>()
    MadClampI32I24 = [_cx](a: u32, b: u32, c: i32) -> i32 {
        clamp_i32((i24(a) as i64).wrapping_mul(i24(b) as i64).wrapping_add(c as i64))
    }

    BfeU32 = v_bfe_u32 [_cx](a: u32, b: u32, c: u32) -> u32 {
        (a >> (b & 31)) & (1u32 << (c & 31)).wrapping_sub(1)
    }
    BfeI32 = v_bfe_i32 [_cx](a: u32, b: u32, c: u32) -> i32 {
        let width = c & 31;
        let field = (a as i32 >> (b & 31)) as u32;
        let kept = (field << ((32 - width) & 31)) as i32 >> ((32 - width) & 31);
        if width == 0 { 0 } else { kept }
    }
    BfiB32 = v_bfi_b32 [_cx](a: u32, b: u32, c: u32) -> u32 { a & b | !a & c }
    BfmB32 = v_bfm_b32 [_cx](a: u32, b: u32) -> u32 { (1u32 << (a & 31)).wrapping_sub(1) << (b & 31) }
    // The shift is a half from GFX11 on, and `op_sel` chooses which; its low bits are all that counts.
    AlignbitB32 = v_alignbit_b32 [_cx](a: u32, b: u32, c: u16) -> u32 {
        ((b as u64 | (a as u64) << 32) >> (c & 31)) as u32
    }
    AlignbyteB32 = v_alignbyte_b32 [_cx](a: u32, b: u32, c: u16) -> u32 {
        ((b as u64 | (a as u64) << 32) >> ((c & 3) * 8)) as u32
    }
    PermB32 = v_perm_b32 [_cx](a: u32, b: u32, c: u32) -> u32 {
        let mut result = 0;
        for shift in [0, 8, 16, 24] {
            result |= perm_byte(b, a, (c >> shift) & 0xff) << shift;
        }
        result
    }
    LerpU8 = v_lerp_u8 [_cx](a: u32, b: u32, c: u32) -> u32 { lerp_bytes(a, b, c) }
    BcntU32B32 = v_bcnt_u32_b32 [_cx](a: u32, b: u32) -> u32 { a.count_ones().wrapping_add(b) }
    MbcntLoU32B32 = v_mbcnt_lo_u32_b32 [cx](a: u32, b: u32) -> u32 {
        (a & below(cx.lane, false)).count_ones().wrapping_add(b)
    }
    MbcntHiU32B32 = v_mbcnt_hi_u32_b32 [cx](a: u32, b: u32) -> u32 {
        (a & below(cx.lane, true)).count_ones().wrapping_add(b)
    }

    MinU32 = v_min_u32 [_cx](a: u32, b: u32) -> u32 { a.min(b) } .fits()
    MaxU32 = v_max_u32 [_cx](a: u32, b: u32) -> u32 { a.max(b) } .fits()
    MinI32 = v_min_i32 [_cx](a: i32, b: i32) -> i32 { a.min(b) } .fits()
    MaxI32 = v_max_i32 [_cx](a: i32, b: i32) -> i32 { a.max(b) } .fits()
    Min3U32 = v_min3_u32 [_cx](a: u32, b: u32, c: u32) -> u32 { a.min(b).min(c) }
    Max3U32 = v_max3_u32 [_cx](a: u32, b: u32, c: u32) -> u32 { a.max(b).max(c) }
    Min3I32 = v_min3_i32 [_cx](a: i32, b: i32, c: i32) -> i32 { a.min(b).min(c) }
    Max3I32 = v_max3_i32 [_cx](a: i32, b: i32, c: i32) -> i32 { a.max(b).max(c) }
    Med3U32 = v_med3_u32 [_cx](a: u32, b: u32, c: u32) -> u32 { a.max(b).min(c).max(a.min(b)) }
    Med3I32 = v_med3_i32 [_cx](a: i32, b: i32, c: i32) -> i32 { a.max(b).min(c).max(a.min(b)) }
    MaxminU32 = v_maxmin_u32 [_cx](a: u32, b: u32, c: u32) -> u32 { a.max(b).min(c) }
    MinmaxU32 = v_minmax_u32 [_cx](a: u32, b: u32, c: u32) -> u32 { a.min(b).max(c) }
    MaxminI32 = v_maxmin_i32 [_cx](a: i32, b: i32, c: i32) -> i32 { a.max(b).min(c) }
    MinmaxI32 = v_minmax_i32 [_cx](a: i32, b: i32, c: i32) -> i32 { a.min(b).max(c) }

    SadU8 = v_sad_u8 [_cx](a: u32, b: u32, c: u32) -> u32 { sad_bytes(a, b).wrapping_add(c) } .clamp::<SadClampU8>()
    SadClampU8 = [_cx](a: u32, b: u32, c: u32) -> u32 { sad_bytes(a, b).saturating_add(c) }
    SadHiU8 = v_sad_hi_u8 [_cx](a: u32, b: u32, c: u32) -> u32 { (sad_bytes(a, b) << 16).wrapping_add(c) }
        .clamp::<SadHiClampU8>()
    SadHiClampU8 = [_cx](a: u32, b: u32, c: u32) -> u32 { (sad_bytes(a, b) << 16).saturating_add(c) }
    SadU16 = v_sad_u16 [_cx](a: u32, b: u32, c: u32) -> u32 { sad_words(a, b).wrapping_add(c) }
        .clamp::<SadClampU16>()
    SadClampU16 = [_cx](a: u32, b: u32, c: u32) -> u32 { sad_words(a, b).saturating_add(c) }
    SadU32 = v_sad_u32 [_cx](a: u32, b: u32, c: u32) -> u32 { a.abs_diff(b).wrapping_add(c) }
        .clamp::<SadClampU32>()
    SadClampU32 = [_cx](a: u32, b: u32, c: u32) -> u32 { a.abs_diff(b).saturating_add(c) }
    MsadU8 = v_msad_u8 [_cx](a: u32, b: u32, c: u32) -> u32 { masked_sad(a, b, c) } .clamp::<MsadClampU8>()
    MsadClampU8 = [_cx](a: u32, b: u32, c: u32) -> u32 { masked_sad(a, b, 0).saturating_add(c) }
    ScreenPartition = v_screen_partition_4se_b32 [_cx](a: u32) -> u32 { screen_partition(a) } .fits()

    CndmaskB32 = v_cndmask_b32 v_dual_cndmask_b32 [_cx](a: u32, b: u32, select: bool) -> u32 {
        if select { b } else { a }
    }
}

/// Sum, and whether it carries out: in words, not comparisons, so that lanes need no other width.
#[inline(always)]
fn add_carry(a: u32, b: u32, carry: bool) -> (u32, bool) {
    let sum = a.wrapping_add(b).wrapping_add(carry as u32);
    (sum, ((a & b | (a | b) & !sum) as i32) < 0)
}

/// Difference, and whether it borrows.
#[inline(always)]
fn sub_borrow(a: u32, b: u32, borrow: bool) -> (u32, bool) {
    let difference = a.wrapping_sub(b).wrapping_sub(borrow as u32);
    (difference, ((!a & b | (!a | b) & difference) as i32) < 0)
}

/// Saturates to 32 bits.
#[inline(always)]
pub fn clamp_i32(value: i64) -> i32 {
    if value > i32::MAX as i64 {
        i32::MAX
    } else if value < i32::MIN as i64 {
        i32::MIN
    } else {
        value as i32
    }
}

/// Sum of absolute differences of two halves.
#[inline(always)]
fn sad_words(a: u32, b: u32) -> u32 {
    (a & 0xffff).abs_diff(b & 0xffff).wrapping_add((a >> 16).abs_diff(b >> 16))
}

/// The four shader engines that tiles of a rectangle belong to, as a mask: x is bits 7:6 to 3:2 of the select, y bits 5:4
/// to 1:0, modulo 4. The engine of a tile is `{x[0] ^ y[1], y[0] ^ x[1]}`.
#[inline(always)]
pub fn screen_partition(select: u32) -> u32 {
    let (x0, y0, x1, y1) = (select >> 6 & 3, select >> 4 & 3, select >> 2 & 3, select & 3);
    let mut engines = 0;
    for dx in 0..4 {
        for dy in 0..4 {
            let (x, y) = ((x0 + dx) & 3, (y0 + dy) & 3);
            let engine = ((x ^ y >> 1) & 1) << 1 | (y ^ x >> 1) & 1;
            let inside = dx <= (x1.wrapping_sub(x0) & 3) && dy <= (y1.wrapping_sub(y0) & 3);
            engines |= (inside as u32) << engine;
        }
    }
    engines
}

/// Sum of absolute differences over the bytes of `b` that are not 0.
#[inline(always)]
pub fn masked_sad(a: u32, b: u32, c: u32) -> u32 {
    let mut sum = c;
    for shift in [0, 8, 16, 24] {
        let (a, b) = ((a >> shift) & 0xff, (b >> shift) & 0xff);
        sum = sum.wrapping_add(if b == 0 { 0 } else { a.abs_diff(b) });
    }
    sum
}

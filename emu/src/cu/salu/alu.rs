//! Integer operations.

use super::{Entry, Op};
use crate::cu::lower::Width;
use std::collections::HashMap;
use std::sync::LazyLock;

/// The operation with this mnemonic.
pub fn find(mnemonic: &str) -> Option<Entry> {
    static INDEX: LazyLock<HashMap<&'static str, Entry>> = LazyLock::new(|| {
        let named =
            |(names, entry): &(&'static [&'static str], Entry)| names.iter().map(|n| (*n, *entry)).collect::<Vec<_>>();
        table().iter().flat_map(named).collect()
    });
    INDEX.get(mnemonic).copied()
}

/// Bits `offset` up, `width` of them; the field is packed as offset 4:0 (5:0 for 64 bits), width 22:16.
fn field32(b: u32) -> (u32, u32) {
    (b & 31, b >> 16 & 0x7f)
}

fn field64(b: u32) -> (u32, u32) {
    (b & 63, b >> 16 & 0x7f)
}

fn bfe_u32(a: u32, b: u32) -> u32 {
    let (offset, width) = field32(b);
    a >> offset & 1u32.checked_shl(width).map_or(u32::MAX, |bit| bit - 1)
}

/// The field is taken from the sign-extended source, so one that passes bit 31 is filled with the sign.
fn bfe_i32(a: u32, b: u32) -> u32 {
    let (offset, width) = field32(b);
    let shifted = (a as i32) >> offset;
    match width {
        0 => 0,
        1..32 => (shifted << (32 - width) >> (32 - width)) as u32,
        _ => shifted as u32,
    }
}

fn bfe_u64(a: u64, b: u32) -> u64 {
    let (offset, width) = field64(b);
    a >> offset & 1u64.checked_shl(width).map_or(u64::MAX, |bit| bit - 1)
}

fn bfe_i64(a: u64, b: u32) -> u64 {
    let (offset, width) = field64(b);
    let shifted = (a as i64) >> offset;
    match width {
        0 => 0,
        1..64 => (shifted << (64 - width) >> (64 - width)) as u64,
        _ => shifted as u64,
    }
}

/// Bit n of the result: any of bits 4n..4n+4 set.
fn quadmask(a: u64) -> u64 {
    (0..16).filter(|n| a >> (4 * n) & 0xf != 0).fold(0, |mask, n| mask | 1 << n)
}

/// Each group of four bits: all set if any is.
fn wqm(a: u64) -> u64 {
    (0..16).filter(|n| a >> (4 * n) & 0xf != 0).fold(0, |mask, n| mask | 0xf << (4 * n))
}

/// Each bit twice.
fn bitreplicate(a: u32) -> u64 {
    (0..32).fold(0, |bits, n| bits | ((a as u64 >> n & 1) * 3) << (2 * n))
}

/// -1 for a count that is the whole width: no bit found.
fn position(count: u32, width: u32) -> u32 {
    if count == width { u32::MAX } else { count }
}

fn carry_add(a: u32, b: u32, carry: bool, scc: &mut bool) -> u32 {
    let sum = a as u64 + b as u64 + carry as u64;
    *scc = sum >> 32 != 0;
    sum as u32
}

fn borrow_sub(a: u32, b: u32, borrow: bool, scc: &mut bool) -> u32 {
    *scc = b as u64 + borrow as u64 > a as u64;
    a.wrapping_sub(b).wrapping_sub(borrow as u32)
}

fn overflow(result: (i32, bool), scc: &mut bool) -> u32 {
    *scc = result.1;
    result.0 as u32
}

fn shift_add(a: u32, b: u32, shift: u32, scc: &mut bool) -> u32 {
    let sum = ((a as u64) << shift) + b as u64;
    *scc = sum >> 32 != 0;
    sum as u32
}

/// SCC: the result is not zero.
macro_rules! nonzero {
    ($scc:ident, $value:expr) => {{
        let value = $value;
        *$scc = value != 0;
        value
    }};
}

/// `[names] D, A, B => |old, a, b, scc| result`: registers of the destination and the sources, `()` for none.
macro_rules! operations {
    ($([$($name:literal),+] $d:ty, $a:ty, $b:ty => |$old:pat_param, $x:pat_param, $y:pat_param, $scc:ident| $body:expr;)*) => {
        fn table() -> Vec<(&'static [&'static str], Entry)> {
            vec![$({
                struct This;
                impl Op for This {
                    type D = $d;
                    type A = $a;
                    type B = $b;
                    #[inline(always)]
                    #[allow(clippy::unused_unit, unused_variables)]
                    fn apply(_: u32, $old: $d, $x: $a, $y: $b, $scc: &mut bool) -> $d {
                        $body
                    }
                }
                (&[$($name),+] as &'static [&'static str], Entry::of::<This>(Width::B32))
            }),*]
        }
    };
}

operations! {
    // Moves.
    ["s_mov_b32"] u32, u32, () => |_, a, _, scc| a;
    ["s_mov_b64"] u64, u64, () => |_, a, _, scc| a;
    ["s_cmov_b32"] u32, u32, () => |old, a, _, scc| if *scc { a } else { old };
    ["s_cmov_b64"] u64, u64, () => |old, a, _, scc| if *scc { a } else { old };
    ["s_cselect_b32"] u32, u32, u32 => |_, a, b, scc| if *scc { a } else { b };
    ["s_cselect_b64"] u64, u64, u64 => |_, a, b, scc| if *scc { a } else { b };
    ["s_movk_i32"] u32, (), u32 => |_, _, b, scc| b;
    ["s_cmovk_i32"] u32, (), u32 => |old, _, b, scc| if *scc { b } else { old };

    // Sums. SCC is the carry or borrow of unsigned ones, the overflow of signed ones.
    ["s_add_u32", "s_add_co_u32"] u32, u32, u32 => |_, a, b, scc| carry_add(a, b, false, scc);
    ["s_sub_u32", "s_sub_co_u32"] u32, u32, u32 => |_, a, b, scc| borrow_sub(a, b, false, scc);
    ["s_addc_u32", "s_add_co_ci_u32"] u32, u32, u32 => |_, a, b, scc| carry_add(a, b, *scc, scc);
    ["s_subb_u32", "s_sub_co_ci_u32"] u32, u32, u32 => |_, a, b, scc| borrow_sub(a, b, *scc, scc);
    ["s_add_i32", "s_add_co_i32"] u32, u32, u32 => |_, a, b, scc| overflow((a as i32).overflowing_add(b as i32), scc);
    ["s_sub_i32", "s_sub_co_i32"] u32, u32, u32 => |_, a, b, scc| overflow((a as i32).overflowing_sub(b as i32), scc);
    ["s_addk_i32", "s_addk_co_i32"] u32, (), u32 => |old, _, b, scc| {
        overflow((old as i32).overflowing_add(b as i32), scc)
    };
    ["s_add_nc_u64"] u64, u64, u64 => |_, a, b, scc| a.wrapping_add(b);
    ["s_sub_nc_u64"] u64, u64, u64 => |_, a, b, scc| a.wrapping_sub(b);
    ["s_lshl1_add_u32"] u32, u32, u32 => |_, a, b, scc| shift_add(a, b, 1, scc);
    ["s_lshl2_add_u32"] u32, u32, u32 => |_, a, b, scc| shift_add(a, b, 2, scc);
    ["s_lshl3_add_u32"] u32, u32, u32 => |_, a, b, scc| shift_add(a, b, 3, scc);
    ["s_lshl4_add_u32"] u32, u32, u32 => |_, a, b, scc| shift_add(a, b, 4, scc);
    // The difference wraps before its absolute value is taken.
    ["s_absdiff_i32"] u32, u32, u32 => |_, a, b, scc| nonzero!(scc, (a.wrapping_sub(b) as i32).wrapping_abs() as u32);
    ["s_abs_i32"] u32, u32, () => |_, a, _, scc| nonzero!(scc, (a as i32).wrapping_abs() as u32);

    // Products leave SCC alone.
    ["s_mul_i32"] u32, u32, u32 => |_, a, b, scc| a.wrapping_mul(b);
    ["s_mulk_i32"] u32, (), u32 => |old, _, b, scc| old.wrapping_mul(b);
    ["s_mul_hi_u32"] u32, u32, u32 => |_, a, b, scc| ((a as u64 * b as u64) >> 32) as u32;
    ["s_mul_hi_i32"] u32, u32, u32 => |_, a, b, scc| ((a as i32 as i64 * b as i32 as i64) >> 32) as u32;
    ["s_mul_u64"] u64, u64, u64 => |_, a, b, scc| a.wrapping_mul(b);

    // SCC: source 0 was chosen. Hardware clears it for equal sources of max also, against the manuals of GFX11 and 12.
    ["s_min_i32"] u32, u32, u32 => |_, a, b, scc| { *scc = (a as i32) < b as i32; if *scc { a } else { b } };
    ["s_min_u32"] u32, u32, u32 => |_, a, b, scc| { *scc = a < b; if *scc { a } else { b } };
    ["s_max_i32"] u32, u32, u32 => |_, a, b, scc| { *scc = a as i32 > b as i32; if *scc { a } else { b } };
    ["s_max_u32"] u32, u32, u32 => |_, a, b, scc| { *scc = a > b; if *scc { a } else { b } };

    // Logic.
    ["s_and_b32"] u32, u32, u32 => |_, a, b, scc| nonzero!(scc, a & b);
    ["s_and_b64"] u64, u64, u64 => |_, a, b, scc| nonzero!(scc, a & b);
    ["s_or_b32"] u32, u32, u32 => |_, a, b, scc| nonzero!(scc, a | b);
    ["s_or_b64"] u64, u64, u64 => |_, a, b, scc| nonzero!(scc, a | b);
    ["s_xor_b32"] u32, u32, u32 => |_, a, b, scc| nonzero!(scc, a ^ b);
    ["s_xor_b64"] u64, u64, u64 => |_, a, b, scc| nonzero!(scc, a ^ b);
    ["s_andn2_b32", "s_and_not1_b32"] u32, u32, u32 => |_, a, b, scc| nonzero!(scc, a & !b);
    ["s_andn2_b64", "s_and_not1_b64"] u64, u64, u64 => |_, a, b, scc| nonzero!(scc, a & !b);
    ["s_orn2_b32", "s_or_not1_b32"] u32, u32, u32 => |_, a, b, scc| nonzero!(scc, a | !b);
    ["s_orn2_b64", "s_or_not1_b64"] u64, u64, u64 => |_, a, b, scc| nonzero!(scc, a | !b);
    ["s_nand_b32"] u32, u32, u32 => |_, a, b, scc| nonzero!(scc, !(a & b));
    ["s_nand_b64"] u64, u64, u64 => |_, a, b, scc| nonzero!(scc, !(a & b));
    ["s_nor_b32"] u32, u32, u32 => |_, a, b, scc| nonzero!(scc, !(a | b));
    ["s_nor_b64"] u64, u64, u64 => |_, a, b, scc| nonzero!(scc, !(a | b));
    ["s_xnor_b32"] u32, u32, u32 => |_, a, b, scc| nonzero!(scc, !(a ^ b));
    ["s_xnor_b64"] u64, u64, u64 => |_, a, b, scc| nonzero!(scc, !(a ^ b));
    ["s_not_b32"] u32, u32, () => |_, a, _, scc| nonzero!(scc, !a);
    ["s_not_b64"] u64, u64, () => |_, a, _, scc| nonzero!(scc, !a);

    // Shifts and fields.
    ["s_lshl_b32"] u32, u32, u32 => |_, a, b, scc| nonzero!(scc, a << (b & 31));
    ["s_lshl_b64"] u64, u64, u32 => |_, a, b, scc| nonzero!(scc, a << (b & 63));
    ["s_lshr_b32"] u32, u32, u32 => |_, a, b, scc| nonzero!(scc, a >> (b & 31));
    ["s_lshr_b64"] u64, u64, u32 => |_, a, b, scc| nonzero!(scc, a >> (b & 63));
    ["s_ashr_i32"] u32, u32, u32 => |_, a, b, scc| nonzero!(scc, (a as i32 >> (b & 31)) as u32);
    ["s_ashr_i64"] u64, u64, u32 => |_, a, b, scc| nonzero!(scc, (a as i64 >> (b & 63)) as u64);
    ["s_bfm_b32"] u32, u32, u32 => |_, a, b, scc| ((1 << (a & 31)) - 1) << (b & 31);
    ["s_bfm_b64"] u64, u32, u32 => |_, a, b, scc| ((1 << (a & 63)) - 1) << (b & 63);
    ["s_bfe_u32"] u32, u32, u32 => |_, a, b, scc| nonzero!(scc, bfe_u32(a, b));
    ["s_bfe_i32"] u32, u32, u32 => |_, a, b, scc| nonzero!(scc, bfe_i32(a, b));
    ["s_bfe_u64"] u64, u64, u32 => |_, a, b, scc| nonzero!(scc, bfe_u64(a, b));
    ["s_bfe_i64"] u64, u64, u32 => |_, a, b, scc| nonzero!(scc, bfe_i64(a, b));
    ["s_pack_ll_b32_b16"] u32, u32, u32 => |_, a, b, scc| a & 0xffff | b << 16;
    ["s_pack_lh_b32_b16"] u32, u32, u32 => |_, a, b, scc| a & 0xffff | b & 0xffff_0000;
    ["s_pack_hh_b32_b16"] u32, u32, u32 => |_, a, b, scc| a >> 16 | b & 0xffff_0000;
    ["s_pack_hl_b32_b16"] u32, u32, u32 => |_, a, b, scc| a >> 16 | b << 16;
    ["s_sext_i32_i8"] u32, u32, () => |_, a, _, scc| a as i8 as u32;
    ["s_sext_i32_i16"] u32, u32, () => |_, a, _, scc| a as i16 as u32;

    // Bits.
    ["s_brev_b32"] u32, u32, () => |_, a, _, scc| a.reverse_bits();
    ["s_brev_b64"] u64, u64, () => |_, a, _, scc| a.reverse_bits();
    ["s_bcnt0_i32_b32"] u32, u32, () => |_, a, _, scc| nonzero!(scc, a.count_zeros());
    ["s_bcnt0_i32_b64"] u32, u64, () => |_, a, _, scc| nonzero!(scc, a.count_zeros());
    ["s_bcnt1_i32_b32"] u32, u32, () => |_, a, _, scc| nonzero!(scc, a.count_ones());
    ["s_bcnt1_i32_b64"] u32, u64, () => |_, a, _, scc| nonzero!(scc, a.count_ones());
    ["s_ff0_i32_b32"] u32, u32, () => |_, a, _, scc| position(a.trailing_ones(), 32);
    ["s_ff0_i32_b64"] u32, u64, () => |_, a, _, scc| position(a.trailing_ones(), 64);
    ["s_ff1_i32_b32", "s_ctz_i32_b32"] u32, u32, () => |_, a, _, scc| position(a.trailing_zeros(), 32);
    ["s_ff1_i32_b64", "s_ctz_i32_b64"] u32, u64, () => |_, a, _, scc| position(a.trailing_zeros(), 64);
    ["s_flbit_i32_b32", "s_clz_i32_u32"] u32, u32, () => |_, a, _, scc| position(a.leading_zeros(), 32);
    ["s_flbit_i32_b64", "s_clz_i32_u64"] u32, u64, () => |_, a, _, scc| position(a.leading_zeros(), 64);
    ["s_flbit_i32", "s_cls_i32"] u32, u32, () => |_, a, _, scc| position((a ^ (a as i32 >> 31) as u32).leading_zeros(), 32);
    ["s_flbit_i32_i64", "s_cls_i32_i64"] u32, u64, () => |_, a, _, scc| {
        position((a ^ (a as i64 >> 63) as u64).leading_zeros(), 64)
    };
    ["s_bitset0_b32"] u32, u32, () => |old, a, _, scc| old & !(1 << (a & 31));
    ["s_bitset0_b64"] u64, u32, () => |old, a, _, scc| old & !(1 << (a & 63));
    ["s_bitset1_b32"] u32, u32, () => |old, a, _, scc| old | 1 << (a & 31);
    ["s_bitset1_b64"] u64, u32, () => |old, a, _, scc| old | 1 << (a & 63);
    ["s_bitreplicate_b64_b32"] u64, u32, () => |_, a, _, scc| bitreplicate(a);
    ["s_quadmask_b32"] u32, u32, () => |_, a, _, scc| nonzero!(scc, quadmask(a as u64) as u32);
    ["s_quadmask_b64"] u64, u64, () => |_, a, _, scc| nonzero!(scc, quadmask(a));
    ["s_wqm_b32"] u32, u32, () => |_, a, _, scc| nonzero!(scc, wqm(a as u64) as u32);
    ["s_wqm_b64"] u64, u64, () => |_, a, _, scc| nonzero!(scc, wqm(a));

    // Compares.
    ["s_cmp_eq_i32", "s_cmp_eq_u32", "s_cmpk_eq_i32"] (), u32, u32 => |_, a, b, scc| *scc = a == b;
    ["s_cmp_lg_i32", "s_cmp_lg_u32", "s_cmpk_lg_i32"] (), u32, u32 => |_, a, b, scc| *scc = a != b;
    ["s_cmp_gt_i32", "s_cmpk_gt_i32"] (), u32, u32 => |_, a, b, scc| *scc = a as i32 > b as i32;
    ["s_cmp_ge_i32", "s_cmpk_ge_i32"] (), u32, u32 => |_, a, b, scc| *scc = a as i32 >= b as i32;
    ["s_cmp_lt_i32", "s_cmpk_lt_i32"] (), u32, u32 => |_, a, b, scc| *scc = (a as i32) < b as i32;
    ["s_cmp_le_i32", "s_cmpk_le_i32"] (), u32, u32 => |_, a, b, scc| *scc = a as i32 <= b as i32;
    ["s_cmp_gt_u32"] (), u32, u32 => |_, a, b, scc| *scc = a > b;
    ["s_cmp_ge_u32"] (), u32, u32 => |_, a, b, scc| *scc = a >= b;
    ["s_cmp_lt_u32"] (), u32, u32 => |_, a, b, scc| *scc = a < b;
    ["s_cmp_le_u32"] (), u32, u32 => |_, a, b, scc| *scc = a <= b;
    // The 16-bit immediate of these is not sign-extended.
    ["s_cmpk_eq_u32"] (), u32, u32 => |_, a, b, scc| *scc = a == b & 0xffff;
    ["s_cmpk_lg_u32"] (), u32, u32 => |_, a, b, scc| *scc = a != b & 0xffff;
    ["s_cmpk_gt_u32"] (), u32, u32 => |_, a, b, scc| *scc = a > b & 0xffff;
    ["s_cmpk_ge_u32"] (), u32, u32 => |_, a, b, scc| *scc = a >= b & 0xffff;
    ["s_cmpk_lt_u32"] (), u32, u32 => |_, a, b, scc| *scc = a < b & 0xffff;
    ["s_cmpk_le_u32"] (), u32, u32 => |_, a, b, scc| *scc = a <= b & 0xffff;
    ["s_cmp_eq_u64"] (), u64, u64 => |_, a, b, scc| *scc = a == b;
    ["s_cmp_lg_u64"] (), u64, u64 => |_, a, b, scc| *scc = a != b;
    ["s_bitcmp0_b32"] (), u32, u32 => |_, a, b, scc| *scc = a >> (b & 31) & 1 == 0;
    ["s_bitcmp1_b32"] (), u32, u32 => |_, a, b, scc| *scc = a >> (b & 31) & 1 == 1;
    ["s_bitcmp0_b64"] (), u64, u32 => |_, a, b, scc| *scc = a >> (b & 63) & 1 == 0;
    ["s_bitcmp1_b64"] (), u64, u32 => |_, a, b, scc| *scc = a >> (b & 63) & 1 == 1;
}

//! 64-bit integers and bits.

use super::define::{lane, ops, sources};
use super::int32::{masked_sad, sad_bytes};
use super::op::{Cx, Op, mode};
use super::table::Entry;
use crate::cu::fidelity::Fidelity;

ops! {
    MovB64 = v_mov_b64 [_cx](a: u64) -> u64 { a }
    LshlrevB64 = v_lshlrev_b64 [_cx](a: u32, b: u64) -> u64 { b << (a & 63) }
    LshrrevB64 = v_lshrrev_b64 [_cx](a: u32, b: u64) -> u64 { b >> (a & 63) }
    AshrrevI64 = v_ashrrev_i64 [_cx](a: u32, b: i64) -> i64 { b >> (a & 63) }
    LshlAddU64 = v_lshl_add_u64 [_cx](a: u64, b: u32, c: u64) -> u64 { (a << (b & 7)).wrapping_add(c) }
    AddNcU64 = v_add_nc_u64 [_cx](a: u64, b: u64) -> u64 { a.wrapping_add(b) }
    SubNcU64 = v_sub_nc_u64 [_cx](a: u64, b: u64) -> u64 { a.wrapping_sub(b) }
    MulU64 = v_mul_u64 [_cx](a: u64, b: u64) -> u64 { a.wrapping_mul(b) }
    QsadPkU16U8 = v_qsad_pk_u16_u8 [_cx](a: u64, b: u32, c: u64) -> u64 {
        quad_sad(a, b, c, |a, b, c| sad_bytes(a, b).wrapping_add(c))
    } .clamp::<QsadClampPkU16U8>()
    QsadClampPkU16U8 = [_cx](a: u64, b: u32, c: u64) -> u64 {
        quad_sad(a, b, c, |a, b, c| sad_bytes(a, b).wrapping_add(c).min(0xffff))
    }
    MqsadPkU16U8 = v_mqsad_pk_u16_u8 [_cx](a: u64, b: u32, c: u64) -> u64 { quad_sad(a, b, c, masked_sad) }
        .clamp::<MqsadClampPkU16U8>()
    MqsadClampPkU16U8 = [_cx](a: u64, b: u32, c: u64) -> u64 {
        quad_sad(a, b, c, |a, b, c| masked_sad(a, b, c).min(0xffff))
    }
    MadU64U32 = v_mad_u64_u32 v_mad_co_u64_u32 [_cx](a: u32, b: u32, c: u64) -> (u64, bool) {
        (a as u64).wrapping_mul(b as u64).overflowing_add(c)
    } .clamp::<MadClampU64U32>()
    MadClampU64U32 = [_cx](a: u32, b: u32, c: u64) -> (u64, bool) {
        let product = (a as u64).wrapping_mul(b as u64);
        (product.saturating_add(c), product.overflowing_add(c).1)
    }
    MadI64I32 = v_mad_i64_i32 v_mad_co_i64_i32 [_cx](a: i32, b: i32, c: i64) -> (i64, bool) {
        mad_signed(a, b, c)
    } .clamp::<MadClampI64I32>()
    MadClampI64I32 = [_cx](a: i32, b: i32, c: i64) -> (i64, bool) {
        ((a as i64).wrapping_mul(b as i64).saturating_add(c), mad_signed(a, b, c).1)
    }
}

/// Four sums of absolute differences, of overlapping windows of four bytes.
#[inline(always)]
fn quad_sad(window: u64, reference: u32, sums: u64, sad: impl Fn(u32, u32, u32) -> u32) -> u64 {
    let mut result = 0;
    for part in 0..4 {
        let sum = sad((window >> (8 * part)) as u32, reference, (sums >> (16 * part)) as u32 & 0xffff);
        result |= (sum as u64 & 0xffff) << (16 * part);
    }
    result
}

/// Product and sum, and whether the sum of 65 bits has its top bit set.
#[inline(always)]
fn mad_signed(a: i32, b: i32, c: i64) -> (i64, bool) {
    let product = (a as i64).wrapping_mul(b as i64);
    let (sum, overflow) = product.overflowing_add(c);
    // The true sign: that of the sum unless it overflowed.
    (sum, (sum < 0) != overflow)
}

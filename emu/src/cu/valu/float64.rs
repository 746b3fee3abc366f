//! Double precision arithmetic.

use super::define::{float_ops, lane, sources};
use super::nan::{Float, first_nan};
use super::op::{Cx, Op, mode};
use super::select::{max, max_nan, maximum, min, min_nan, minimum};
use super::signs::Signs;
use super::soft;
use super::table::Entry;
use crate::cu::fidelity::Fidelity;

/// 2^exponent, for exponents of normal numbers.
#[inline(always)]
pub fn exp2i(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// `value * 2^exponent`, rounded once: only the last multiplication may be inexact.
#[inline(always)]
pub fn ldexp(value: f64, exponent: i32) -> f64 {
    let exponent = exponent.clamp(-2200, 2200);
    let (value, exponent) = ldexp_step(value, exponent);
    let (value, exponent) = ldexp_step(value, exponent);
    value * exp2i(exponent.clamp(-1022, 1023))
}

/// Takes a part of an exponent beyond f64's range. Downwards the value stays a normal number, if it was one.
#[inline(always)]
fn ldexp_step(value: f64, exponent: i32) -> (f64, i32) {
    if exponent > 1023 {
        (value * exp2i(1023), exponent - 1023)
    } else if exponent < -1022 {
        (value * exp2i(-969), exponent + 969)
    } else {
        (value, exponent)
    }
}

/// Exponent and mantissa as `frexp` gives them: the mantissa in 0.5..1, both zero for zero.
#[inline(always)]
pub fn frexp(value: f64) -> (f64, i32) {
    let denormal = value.abs() < f64::MIN_POSITIVE;
    // 2^54 makes a denormal normal.
    let bits = (if denormal { value * exp2i(54) } else { value }).to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32 - if denormal { 54 } else { 0 };
    let mantissa = f64::from_bits(bits & 0x800f_ffff_ffff_ffff | 0x3fe0_0000_0000_0000);
    if value == 0.0 { (value, 0) } else { (mantissa, exponent - 1022) }
}

/// Largest f64 below 1.
const BELOW_ONE: f64 = f64::from_bits(0x3fef_ffff_ffff_ffff);

float_ops! {
    AddF64 = v_add_f64 [_cx](a: f64, b: f64) -> f64 { a + b } .soft(soft::add64).signs::<Signs<AddF64>>()
    MulF64 = v_mul_f64 [_cx](a: f64, b: f64) -> f64 { a * b } .soft(soft::mul64).signs::<Signs<MulF64>>()
    FmaF64 = v_fma_f64 v_fmac_f64 v_fmaak_f64 v_fmamk_f64 [_cx](a: f64, b: f64, c: f64) -> f64 {
        a.mul_add(b, c)
    } .soft(soft::fma64).signs::<Signs<FmaF64>>()
    MinF64 = v_min_f64 [cx](a: f64, b: f64) -> f64 { min(a, b) } => nan { min_nan(cx.ieee, a, b) }
    MaxF64 = v_max_f64 [cx](a: f64, b: f64) -> f64 { max(a, b) } => nan { max_nan(cx.ieee, a, b) }
    MinNumF64 = v_min_num_f64 [cx](a: f64, b: f64) -> f64 { min(a, b) } => nan { min_nan(false, a, b) }
    MaxNumF64 = v_max_num_f64 [cx](a: f64, b: f64) -> f64 { max(a, b) } => nan { max_nan(false, a, b) }
    MinimumF64 = v_minimum_f64 [_cx](a: f64, b: f64) -> f64 { minimum(a, b) }
    MaximumF64 = v_maximum_f64 [_cx](a: f64, b: f64) -> f64 { maximum(a, b) }
    TruncF64 = v_trunc_f64 [_cx](a: f64) -> f64 { a.trunc() }
    CeilF64 = v_ceil_f64 [_cx](a: f64) -> f64 { a.ceil() }
    FloorF64 = v_floor_f64 [_cx](a: f64) -> f64 { a.floor() }
    RndneF64 = v_rndne_f64 [_cx](a: f64) -> f64 { a.round_ties_even() }
    FractF64 = v_fract_f64 [_cx](a: f64) -> f64 {
        let fraction = a - a.floor();
        if fraction >= 1.0 { BELOW_ONE } else { fraction }
    }
    LdexpF64 = v_ldexp_f64 [_cx](a: f64, b: i32) -> f64 { ldexp(a, b) } .soft(soft::ldexp64)
    FrexpMantF64 = v_frexp_mant_f64 [_cx](a: f64) -> f64 { if a.is_finite() { frexp(a).0 } else { a } }
}

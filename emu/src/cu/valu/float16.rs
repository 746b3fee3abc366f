//! Half precision arithmetic.

use super::define::{float_ops, lane, sources};
use super::f16::F16;
use super::nan::{Float, first_nan};
use super::op::{Cx, Op, mode};
use super::select::{max, max_nan, maximum, min, min_nan, minimum};
use super::soft;
use super::table::Entry;
use crate::cu::fidelity::Fidelity;

/// A function of f32 that rounds at most once more when its result is made an f16: sums, products, roundings.
#[inline(always)]
pub fn single(value: f32) -> F16 {
    F16::from_f32(value)
}

/// Product and sum rounded apart.
#[inline(always)]
fn mad(a: F16, b: F16, c: F16) -> F16 {
    single(single(a.to_f32() * b.to_f32()).to_f32() + c.to_f32())
}

/// Mantissa in 0.5..1 and exponent; zeros, infinities and NaNs are their own mantissa with exponent 0.
#[inline(always)]
pub fn frexp(value: F16) -> (F16, i32) {
    // Every f16 is a normal f32, or zero.
    let bits = value.to_f32().to_bits();
    let exponent = (bits >> 23 & 0xff) as i32;
    let mantissa = f32::from_bits(bits & 0x807f_ffff | 0x3f00_0000);
    if exponent == 0 || exponent == 0xff { (value, 0) } else { (single(mantissa), exponent - 126) }
}

/// Median of three numbers.
#[inline(always)]
fn med3(a: F16, b: F16, c: F16) -> F16 {
    max(min(max(a, b), c), min(a, b))
}

/// Largest f16 below 1.
const BELOW_ONE: f32 = f32::from_bits(0x3f7f_e000);

float_ops! {
    AddF16 = v_add_f16 [_cx](a: F16, b: F16) -> F16 { single(a.to_f32() + b.to_f32()) } .soft(soft::add16)
    SubF16 = v_sub_f16 [_cx](a: F16, b: F16) -> F16 { single(a.to_f32() - b.to_f32()) } .soft(soft::sub16)
    SubrevF16 = v_subrev_f16 [_cx](a: F16, b: F16) -> F16 { single(b.to_f32() - a.to_f32()) } .soft(soft::subrev16)
    MulF16 = v_mul_f16 [_cx](a: F16, b: F16) -> F16 { single(a.to_f32() * b.to_f32()) } .soft(soft::mul16)
    FmacF16 = v_fmac_f16 v_fmaak_f16 v_fmamk_f16 v_fma_legacy_f16 [_cx](a: F16, b: F16, c: F16) -> F16 { F16::fma(a, b, c) }
        .soft(soft::fma16)
    FmaF16 = v_fma_f16 [_cx](a: F16, b: F16, c: F16) -> F16 { F16::fma(a, b, c) } .soft(soft::fma16) .keeps()
    MacF16 = v_mac_f16 v_madak_f16 v_madmk_f16 v_mad_legacy_f16 [_cx](a: F16, b: F16, c: F16) -> F16 { mad(a, b, c) }
        .soft(soft::mad16)
    MadF16 = v_mad_f16 [_cx](a: F16, b: F16, c: F16) -> F16 { mad(a, b, c) } .soft(soft::mad16) .keeps()

    MinF16 = v_min_f16 [cx](a: F16, b: F16) -> F16 { min(a, b) } => nan { min_nan(cx.ieee, a, b) }
    MaxF16 = v_max_f16 [cx](a: F16, b: F16) -> F16 { max(a, b) } => nan { max_nan(cx.ieee, a, b) }
    MinNumF16 = v_min_num_f16 [cx](a: F16, b: F16) -> F16 { min(a, b) } => nan { min_nan(false, a, b) }
    MaxNumF16 = v_max_num_f16 [cx](a: F16, b: F16) -> F16 { max(a, b) } => nan { max_nan(false, a, b) }
    Min3F16 = v_min3_f16 [cx](a: F16, b: F16, c: F16) -> F16 { min(min(a, b), c) } => nan {
        min_nan(cx.ieee, min_nan(cx.ieee, a, b), c)
    } .keeps()
    Max3F16 = v_max3_f16 [cx](a: F16, b: F16, c: F16) -> F16 { max(max(a, b), c) } => nan {
        max_nan(cx.ieee, max_nan(cx.ieee, a, b), c)
    } .keeps()
    Min3NumF16 = v_min3_num_f16 [cx](a: F16, b: F16, c: F16) -> F16 { min(min(a, b), c) } => nan {
        min_nan(false, min_nan(false, a, b), c)
    }
    Max3NumF16 = v_max3_num_f16 [cx](a: F16, b: F16, c: F16) -> F16 { max(max(a, b), c) } => nan {
        max_nan(false, max_nan(false, a, b), c)
    }
    Med3F16 = v_med3_f16 [cx](a: F16, b: F16, c: F16) -> F16 { med3(a, b, c) } => nan {
        min_nan(cx.ieee, min_nan(cx.ieee, a, b), c)
    } .keeps()
    Med3NumF16 = v_med3_num_f16 [cx](a: F16, b: F16, c: F16) -> F16 { med3(a, b, c) } => nan {
        min_nan(false, min_nan(false, a, b), c)
    }
    MaxminF16 = v_maxmin_f16 [cx](a: F16, b: F16, c: F16) -> F16 { min(max(a, b), c) } => nan {
        min_nan(cx.ieee, max_nan(cx.ieee, a, b), c)
    }
    MinmaxF16 = v_minmax_f16 [cx](a: F16, b: F16, c: F16) -> F16 { max(min(a, b), c) } => nan {
        max_nan(cx.ieee, min_nan(cx.ieee, a, b), c)
    }
    MaxminNumF16 = v_maxmin_num_f16 [cx](a: F16, b: F16, c: F16) -> F16 { min(max(a, b), c) } => nan {
        min_nan(false, max_nan(false, a, b), c)
    }
    MinmaxNumF16 = v_minmax_num_f16 [cx](a: F16, b: F16, c: F16) -> F16 { max(min(a, b), c) } => nan {
        max_nan(false, min_nan(false, a, b), c)
    }
    MinimumF16 = v_minimum_f16 [_cx](a: F16, b: F16) -> F16 { minimum(a, b) }
    MaximumF16 = v_maximum_f16 [_cx](a: F16, b: F16) -> F16 { maximum(a, b) }
    Minimum3F16 = v_minimum3_f16 [_cx](a: F16, b: F16, c: F16) -> F16 { minimum(minimum(a, b), c) }
    Maximum3F16 = v_maximum3_f16 [_cx](a: F16, b: F16, c: F16) -> F16 { maximum(maximum(a, b), c) }
    MinimummaximumF16 = v_minimummaximum_f16 [_cx](a: F16, b: F16, c: F16) -> F16 { maximum(minimum(a, b), c) }
    MaximumminimumF16 = v_maximumminimum_f16 [_cx](a: F16, b: F16, c: F16) -> F16 { minimum(maximum(a, b), c) }

    TruncF16 = v_trunc_f16 [_cx](a: F16) -> F16 { single(a.to_f32().trunc()) }
    CeilF16 = v_ceil_f16 [_cx](a: F16) -> F16 { single(a.to_f32().ceil()) }
    FloorF16 = v_floor_f16 [_cx](a: F16) -> F16 { single(a.to_f32().floor()) }
    RndneF16 = v_rndne_f16 [_cx](a: F16) -> F16 { single(a.to_f32().round_ties_even()) }
    FractF16 = v_fract_f16 [_cx](a: F16) -> F16 {
        let a = a.to_f32();
        let fraction = a - a.floor();
        single(if fraction > BELOW_ONE { BELOW_ONE } else { fraction })
    }
    LdexpF16 = v_ldexp_f16 [_cx](a: F16, b: i16) -> F16 {
        // Exact in f32 for all exponents that can make a difference.
        let scale = f32::from_bits((((b as i32).clamp(-60, 60) + 127) as u32) << 23);
        single(a.to_f32() * scale)
    } .soft(soft::ldexp16)
    FrexpMantF16 = v_frexp_mant_f16 [_cx](a: F16) -> F16 {
        frexp(a).0
    }
}

//! Conversions.

use super::f16::F16;
use super::nan::{Float, first_nan};
use super::op::{Cx, Op, mode};
use super::soft;
use super::table::Entry;
use crate::cu::fidelity::Fidelity;

/// To i32 towards zero; out of range saturates, a NaN gives 0.
#[inline(always)]
fn to_i32(value: f32) -> i32 {
    let inside = value >= -2_147_483_648.0 && value < 2_147_483_648.0;
    // SAFETY: 0 or within the range of i32.
    let whole = unsafe { if inside { value } else { 0.0 }.to_int_unchecked::<i32>() };
    if value >= 2_147_483_648.0 {
        i32::MAX
    } else if value < -2_147_483_648.0 {
        i32::MIN
    } else {
        whole
    }
}

/// To u32, likewise: the upper half of its range is shifted down, where f32 has whole numbers only.
#[inline(always)]
fn to_u32(value: f32) -> u32 {
    let high = value >= 2_147_483_648.0;
    let inside = value > -1.0 && value < 4_294_967_296.0;
    let low = if high { value - 2_147_483_648.0 } else { value };
    // SAFETY: 0 or within the range of i32.
    let whole = unsafe { if inside { low } else { 0.0 }.to_int_unchecked::<i32>() } as u32;
    if value >= 4_294_967_296.0 { u32::MAX } else { whole ^ (high as u32) << 31 }
}

/// f64 to i32, likewise.
#[inline(always)]
fn to_i32_wide(value: f64) -> i32 {
    let inside = value > -2_147_483_649.0 && value < 2_147_483_648.0;
    // SAFETY: 0 or within the range of i32, fractions cut off.
    let whole = unsafe { if inside { value } else { 0.0 }.to_int_unchecked::<i32>() };
    if value >= 2_147_483_648.0 {
        i32::MAX
    } else if value <= -2_147_483_649.0 {
        i32::MIN
    } else {
        whole
    }
}

/// f64 to u32, likewise.
#[inline(always)]
fn to_u32_wide(value: f64) -> u32 {
    let high = value >= 2_147_483_648.0;
    let inside = value > -1.0 && value < 4_294_967_296.0;
    let low = if high { value - 2_147_483_648.0 } else { value };
    // SAFETY: 0 or within the range of i32, fractions cut off.
    let whole = unsafe { if inside { low } else { 0.0 }.to_int_unchecked::<i32>() } as u32;
    if value >= 4_294_967_296.0 { u32::MAX } else { whole ^ (high as u32) << 31 }
}

/// f32 to f16 towards zero: the bits below the f16's places are dropped, an overflow is the largest number.
#[inline(always)]
fn f16_towards_zero(value: f32) -> u32 {
    let bits = value.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    let sign = (bits >> 16) & 0x8000;
    let exponent = magnitude >> 23;
    let mantissa = magnitude & 0x7f_ffff | 0x80_0000;
    // An f16 denormal counts units of 2^-24.
    let small = mantissa >> (126u32.wrapping_sub(exponent)).min(31);
    let normal = magnitude.wrapping_sub(0x3800_0000) >> 13;
    let result = if magnitude > 0x7f80_0000 {
        0x7e00 | (magnitude >> 13) & 0x3ff
    } else if magnitude == 0x7f80_0000 {
        0x7c00
    } else if magnitude >= 0x4780_0000 {
        0x7bff
    } else if magnitude >= 0x3880_0000 {
        normal
    } else {
        small
    };
    sign | result
}

/// -1..1 to -32767..32767, to nearest even; a NaN gives 0.
#[inline(always)]
pub fn snorm(value: f32) -> u32 {
    let clamped = value.clamp(-1.0, 1.0);
    to_i32((clamped * 32767.0).round_ties_even()) as u32 & 0xffff
}

/// 0..1 to 0..65535, to nearest even; a NaN gives 0.
#[inline(always)]
pub fn unorm(value: f32) -> u32 {
    let clamped = if value > 1.0 {
        1.0
    } else if value > 0.0 {
        value
    } else {
        0.0
    };
    to_i32((clamped * 65535.0).round_ties_even()) as u32
}

/// To an unsigned byte towards zero, saturating.
#[inline(always)]
fn to_u8(value: f32) -> u32 {
    to_i32(value).clamp(0, 255) as u32
}

/// Puts a byte into one of the four places of a word.
#[inline(always)]
fn insert_byte(word: u32, byte: u32, place: u32) -> u32 {
    let shift = (place & 3) * 8;
    word & !(0xff << shift) | byte << shift
}

/// Two halves.
#[inline(always)]
fn halves(low: u32, high: u32) -> u32 {
    low & 0xffff | high << 16
}

/// To 0..255.
#[inline(always)]
fn saturate_u8(value: u32) -> u32 {
    (value as u16 as i16).clamp(0, 255) as u16 as u32
}

/// bf16, to nearest even; a NaN is quieted.
#[inline(always)]
pub fn bf16_from_f32(value: f32) -> u32 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff).wrapping_add(bits >> 16 & 1) >> 16;
    if value.is_nan() { bits >> 16 | 0x40 } else { rounded }
}

/// Results that are integers or bits.
pub mod int {
    use super::*;
    use crate::cu::valu::define::{lane, ops, sources};
    use crate::cu::valu::float32;
    use crate::cu::valu::float64;

    ops! {
        CvtI32F32 = v_cvt_i32_f32 [_cx](a: f32) -> i32 { to_i32(a) }
        CvtU32F32 = v_cvt_u32_f32 [_cx](a: f32) -> u32 { to_u32(a) }
        CvtNearestI32F32 = v_cvt_rpi_i32_f32 v_cvt_nearest_i32_f32 [_cx](a: f32) -> i32 {
            // In f64 the sum is exact wherever it matters.
            to_i32_wide((a as f64 + 0.5).floor())
        }
        CvtFloorI32F32 = v_cvt_flr_i32_f32 v_cvt_floor_i32_f32 [_cx](a: f32) -> i32 { to_i32(a.floor()) }
        CvtI32F64 = v_cvt_i32_f64 [_cx](a: f64) -> i32 { to_i32_wide(a) }
        CvtU32F64 = v_cvt_u32_f64 [_cx](a: f64) -> u32 { to_u32_wide(a) }
        CvtU16F16 = v_cvt_u16_f16 [_cx](a: F16) -> u16 { (to_i32(a.to_f32())).clamp(0, 0xffff) as u16 }
        CvtI16F16 = v_cvt_i16_f16 [_cx](a: F16) -> i16 { (to_i32(a.to_f32())).clamp(-0x8000, 0x7fff) as i16 }
        CvtNormI16F16 = v_cvt_norm_i16_f16 [_cx](a: F16) -> u16 { snorm(a.to_f32()) as u16 }
        CvtNormU16F16 = v_cvt_norm_u16_f16 [_cx](a: F16) -> u16 { unorm(a.to_f32()) as u16 }
        CvtPkrtzF16F32 = v_cvt_pkrtz_f16_f32 v_cvt_pk_rtz_f16_f32 [_cx](a: f32, b: f32) -> u32 {
            halves(f16_towards_zero(a), f16_towards_zero(b))
        }
        CvtPknormI16F32 = v_cvt_pknorm_i16_f32 v_cvt_pk_norm_i16_f32 [_cx](a: f32, b: f32) -> u32 {
            halves(snorm(a), snorm(b))
        }
        CvtPknormU16F32 = v_cvt_pknorm_u16_f32 v_cvt_pk_norm_u16_f32 [_cx](a: f32, b: f32) -> u32 {
            halves(unorm(a), unorm(b))
        }
        CvtPknormI16F16 = v_cvt_pknorm_i16_f16 v_cvt_pk_norm_i16_f16 [_cx](a: F16, b: F16) -> u32 {
            halves(snorm(a.to_f32()), snorm(b.to_f32()))
        }
        CvtPknormU16F16 = v_cvt_pknorm_u16_f16 v_cvt_pk_norm_u16_f16 [_cx](a: F16, b: F16) -> u32 {
            halves(unorm(a.to_f32()), unorm(b.to_f32()))
        }
        CvtPkI16F32 = v_cvt_pk_i16_f32 [_cx](a: f32, b: f32) -> u32 {
            halves(to_i32(a).clamp(-0x8000, 0x7fff) as u32, to_i32(b).clamp(-0x8000, 0x7fff) as u32)
        }
        CvtPkU16F32 = v_cvt_pk_u16_f32 [_cx](a: f32, b: f32) -> u32 {
            halves(to_i32(a).clamp(0, 0xffff) as u32, to_i32(b).clamp(0, 0xffff) as u32)
        }
        CvtPkU16U32 = v_cvt_pk_u16_u32 [_cx](a: u32, b: u32) -> u32 { halves(a.min(0xffff), b.min(0xffff)) }
        CvtPkI16I32 = v_cvt_pk_i16_i32 [_cx](a: i32, b: i32) -> u32 {
            halves(a.clamp(-0x8000, 0x7fff) as u32, b.clamp(-0x8000, 0x7fff) as u32)
        }
        CvtPkU8F32 = v_cvt_pk_u8_f32 [_cx](a: f32, b: u32, c: u32) -> u32 { insert_byte(c, to_u8(a), b) }
        CvtPkaccumU8F32 = v_cvt_pkaccum_u8_f32 [_cx](a: f32, b: u32, old: u32) -> u32 { insert_byte(old, to_u8(a), b) }
        CvtI32I16 = v_cvt_i32_i16 [_cx](a: i16) -> i32 { a as i32 }
        CvtU32U16 = v_cvt_u32_u16 [_cx](a: u16) -> u32 { a as u32 }
        SatPkU8I16 = v_sat_pk_u8_i16 [_cx](a: u32) -> u16 { (saturate_u8(a) | saturate_u8(a >> 16) << 8) as u16 } .fits()
        FrexpExpI32F32 = v_frexp_exp_i32_f32 [_cx](a: f32) -> i32 { if a.is_finite() { float32::frexp(a).1 } else { 0 } }
        FrexpExpI32F64 = v_frexp_exp_i32_f64 [_cx](a: f64) -> i32 { if a.is_finite() { float64::frexp(a).1 } else { 0 } }
        FrexpExpI16F16 = v_frexp_exp_i16_f16 [_cx](a: F16) -> i16 {
            super::super::float16::frexp(a).1 as i16
        }
        PackB32F16 = v_pack_b32_f16 [_cx](a: F16, b: F16) -> u32 { halves(a.0, b.0) }
    }
}

/// Results that are numbers.
pub mod float {
    use super::*;
    use crate::cu::valu::define::{float_ops, lane, sources};

    float_ops! {
        CvtF32I32 = v_cvt_f32_i32 [_cx hidden](a: i32) -> f32 { a as f32 } .soft(soft::f32_from_i32)
        CvtF32U32 = v_cvt_f32_u32 [_cx hidden](a: u32) -> f32 { a as f32 } .soft(soft::f32_from_u32)
        CvtF32Ubyte0 = v_cvt_f32_ubyte0 [_cx hidden](a: u32) -> f32 { (a & 0xff) as i32 as f32 }
        CvtF32Ubyte1 = v_cvt_f32_ubyte1 [_cx hidden](a: u32) -> f32 { (a >> 8 & 0xff) as i32 as f32 }
        CvtF32Ubyte2 = v_cvt_f32_ubyte2 [_cx hidden](a: u32) -> f32 { (a >> 16 & 0xff) as i32 as f32 }
        CvtF32Ubyte3 = v_cvt_f32_ubyte3 [_cx hidden](a: u32) -> f32 { (a >> 24) as i32 as f32 }
        CvtF64I32 = v_cvt_f64_i32 [_cx hidden](a: i32) -> f64 { a as f64 }
        CvtF64U32 = v_cvt_f64_u32 [_cx hidden](a: u32) -> f64 { a as f64 }
        CvtF64F32 = v_cvt_f64_f32 [_cx hidden](a: f32) -> f64 { a as f64 }
        CvtF32F64 = v_cvt_f32_f64 [_cx](a: f64) -> f32 { a as f32 } .soft(soft::f32_from_f64)
        CvtF16F32 = v_cvt_f16_f32 [_cx](a: f32) -> F16 { F16::from_f32(a) } .soft(soft::f16_from_f32)
        CvtF32F16 = v_cvt_f32_f16 [_cx](a: F16) -> f32 { a.to_f32() }
        CvtF16U16 = v_cvt_f16_u16 [_cx](a: u16) -> F16 { F16::from_f32(a as i32 as f32) } .soft(soft::f16_from_u16)
        CvtF16I16 = v_cvt_f16_i16 [_cx](a: i16) -> F16 { F16::from_f32(a as i32 as f32) } .soft(soft::f16_from_i16)
        CvtOffF32I4 = v_cvt_off_f32_i4 [_cx hidden](a: u32) -> f32 { ((a << 28) as i32 >> 28) as f32 * 0.0625 }
    }
}

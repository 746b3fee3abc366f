//! 8-bit floating point.
//!
//! GFX12 has the formats of the Open Compute Project, gfx942 those without infinities and without a negative zero
//! ("fnuz"), whose exponent bias is one more.

use super::define::{lane, ops, sources};
use super::dot::addend;
use super::op::{Cx, Op, mode};
use super::table::Entry;
use crate::cu::fidelity::{Fidelity, SUMS};

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Bits of the mantissa.
    mantissa: u32,
    /// Exponent bias.
    bias: i32,
    /// Magnitude bits of infinity; numbers end before it. 0 where there is none.
    infinity: u8,
    /// Magnitude bits of the largest number.
    largest: u8,
    /// The NaN that conversions give.
    nan: u8,
    /// No negative zero: its bits are the NaN.
    fnuz: bool,
}

/// `fp8` of GFX12.
pub const E4M3: Format = Format { mantissa: 3, bias: 7, infinity: 0, largest: 0x7e, nan: 0x7f, fnuz: false };
/// `bf8` of GFX12.
pub const E5M2: Format = Format { mantissa: 2, bias: 15, infinity: 0x7c, largest: 0x7b, nan: 0x7f, fnuz: false };
/// `fp8` of gfx942.
pub const E4M3_FNUZ: Format = Format { mantissa: 3, bias: 8, infinity: 0, largest: 0x7f, nan: 0x80, fnuz: true };
/// `bf8` of gfx942.
pub const E5M2_FNUZ: Format = Format { mantissa: 2, bias: 16, infinity: 0, largest: 0x7f, nan: 0x80, fnuz: true };

/// The value of a byte.
#[inline(always)]
pub fn decode(format: Format, byte: u8) -> f32 {
    let sign = (byte as u32 & 0x80) << 24;
    let magnitude = byte & 0x7f;
    if format.fnuz {
        if byte == format.nan {
            return f32::from_bits(0x7fc0_0000);
        }
    } else if format.infinity != 0 && magnitude == format.infinity {
        return f32::from_bits(sign | 0x7f80_0000);
    } else if magnitude > format.largest {
        return f32::from_bits(sign | 0x7fc0_0000);
    }
    // The value times 2^(bias - 127), as a denormal or normal f32; the product is exact.
    let scaled = f32::from_bits((magnitude as u32) << (23 - format.mantissa));
    let scale = f32::from_bits(((127 + 127 - format.bias) as u32) << 23);
    f32::from_bits((scaled * scale).to_bits() | sign)
}

/// The byte nearest to a number, to even. Beyond the largest number: infinity or NaN, or with `saturate` the largest.
#[inline(always)]
pub fn encode(format: Format, value: f32, saturate: bool) -> u8 {
    let bits = value.to_bits();
    let sign = (bits >> 24) as u8 & 0x80;
    if value.is_nan() {
        return format.nan | if format.fnuz { 0 } else { sign };
    }
    let places = 23 - format.mantissa;
    let exponent = (bits >> 23 & 0xff) as i32 - 127 + format.bias;
    let mantissa = bits & 0x7f_ffff | 0x80_0000;
    // Places cut from the mantissa; denormals of the format lose more.
    let cut = (places as i32 + if exponent < 1 { 1 - exponent } else { 0 }).min(31) as u32;
    let kept = mantissa >> cut;
    let rest = mantissa & ((1 << cut) - 1);
    let half = 1 << (cut - 1);
    let up = rest > half || rest == half && kept & 1 != 0;
    let rounded = kept + up as u32;
    // The leading one adds to the exponent field by itself.
    let magnitude = rounded + if exponent > 1 { ((exponent - 1) as u32) << format.mantissa } else { 0 };
    if value.abs() < f32::MIN_POSITIVE {
        return if format.fnuz { 0 } else { sign };
    }
    if magnitude > format.largest as u32 {
        let beyond = if format.infinity != 0 { format.infinity } else { format.nan };
        let infinite = value.is_infinite() && !saturate;
        let byte = if saturate && !infinite { format.largest } else { beyond };
        return if format.fnuz && byte == format.nan { byte } else { byte | sign };
    }
    if magnitude == 0 && format.fnuz { 0 } else { magnitude as u8 | sign }
}

/// Adds random bits below the places that stay, instead of rounding: the sum wraps within the mantissa.
#[inline(always)]
fn stochastic(format: Format, value: f32, random: u32, saturate: bool) -> u8 {
    let bits = value.to_bits();
    if bits & 0x7f80_0000 == 0x7f80_0000 {
        return encode(format, value, saturate);
    }
    // Random bits reach from just below the kept mantissa down.
    let added = bits.wrapping_add(random >> (9 + format.mantissa));
    encode_truncated(format, f32::from_bits(added), saturate)
}

/// The byte next to a number towards zero.
#[inline(always)]
fn encode_truncated(format: Format, value: f32, saturate: bool) -> u8 {
    let bits = value.to_bits();
    let exponent = (bits >> 23 & 0xff) as i32 - 127 + format.bias;
    let cut = (23 - format.mantissa as i32 + if exponent < 1 { 1 - exponent } else { 0 }).min(24) as u32;
    // Without the places that are cut, rounding does nothing.
    encode(format, f32::from_bits(if cut > 23 { bits & 0x8000_0000 } else { bits & !((1 << cut) - 1) }), saturate)
}

/// The formats of the target: bit 0 of the immediate chooses those without infinities.
#[inline(always)]
fn e4m3(cx: Cx) -> Format {
    if cx.imm & FNUZ != 0 { E4M3_FNUZ } else { E4M3 }
}

/// Likewise for `bf8`.
#[inline(always)]
fn e5m2(cx: Cx) -> Format {
    if cx.imm & FNUZ != 0 { E5M2_FNUZ } else { E5M2 }
}

/// Immediate: the target's formats have no infinities.
pub const FNUZ: i32 = 1;
/// Immediate: place of the byte number (sources of unpacking, destinations of stochastic rounding).
pub const BYTE: u32 = 1;

/// The byte that the immediate names.
#[inline(always)]
fn chosen(cx: Cx, word: u32) -> u8 {
    (word >> (8 * (cx.imm as u32 >> BYTE & 3))) as u8
}

/// Two numbers.
#[inline(always)]
fn two(format: Format, word: u32) -> u64 {
    let low = decode(format, word as u8).to_bits() as u64;
    let high = decode(format, (word >> 8) as u8).to_bits() as u64;
    low | high << 32
}

/// A byte put in the place that the immediate names, the rest from the old word.
#[inline(always)]
fn insert(cx: Cx, old: u32, byte: u8) -> u32 {
    let shift = 8 * (cx.imm as u32 >> BYTE & 3);
    old & !(0xff << shift) | (byte as u32) << shift
}

/// Dot product of four bytes with four bytes.
#[inline(always)]
fn dot4(cx: Cx, a: u32, b: u32, c: f32, a_format: Format, b_format: Format) -> f32 {
    let mut sum = addend(cx, c);
    for shift in [0, 8, 16, 24] {
        let product = decode(a_format, (a >> shift) as u8) * decode(b_format, (b >> shift) as u8);
        sum += product;
    }
    if sum.is_nan() { f32::from_bits(0x7fc0_0000) } else { sum }
}

/// MODE.FP16_OVFL: results beyond the largest number become it.
#[inline(always)]
fn saturates(cx: Cx) -> bool {
    cx.overflow
}

ops! {
    CvtF32Fp8 = v_cvt_f32_fp8 [cx](a: u32) -> f32 { decode(e4m3(cx), chosen(cx, a)) }
    CvtF32Bf8 = v_cvt_f32_bf8 [cx](a: u32) -> f32 { decode(e5m2(cx), chosen(cx, a)) }
    CvtPkF32Fp8 = v_cvt_pk_f32_fp8 [cx](a: u32) -> u64 { two(e4m3(cx), a >> (16 * (cx.imm as u32 >> BYTE & 1))) }
    CvtPkF32Bf8 = v_cvt_pk_f32_bf8 [cx](a: u32) -> u64 { two(e5m2(cx), a >> (16 * (cx.imm as u32 >> BYTE & 1))) }
    CvtPkFp8F32 = v_cvt_pk_fp8_f32 [cx](a: f32, b: f32) -> u16 {
        let (a, b) = (encode(e4m3(cx), a, saturates(cx)), encode(e4m3(cx), b, saturates(cx)));
        a as u16 | (b as u16) << 8
    } .keeps()
    CvtPkBf8F32 = v_cvt_pk_bf8_f32 [cx](a: f32, b: f32) -> u16 {
        let (a, b) = (encode(e5m2(cx), a, saturates(cx)), encode(e5m2(cx), b, saturates(cx)));
        a as u16 | (b as u16) << 8
    } .keeps()
    CvtSrFp8F32 = v_cvt_sr_fp8_f32 [cx](a: f32, b: u32, old: u32) -> u32 {
        insert(cx, old, stochastic(e4m3(cx), a, b, saturates(cx)))
    }
    CvtSrBf8F32 = v_cvt_sr_bf8_f32 [cx](a: f32, b: u32, old: u32) -> u32 {
        insert(cx, old, stochastic(e5m2(cx), a, b, saturates(cx)))
    }
    Dot4Fp8Fp8 = v_dot4_f32_fp8_fp8 [cx](a: u32, b: u32, c: f32) -> f32 { dot4(cx, a, b, c, E4M3, E4M3) }
        .fidelity(SUMS)
    Dot4Fp8Bf8 = v_dot4_f32_fp8_bf8 [cx](a: u32, b: u32, c: f32) -> f32 { dot4(cx, a, b, c, E4M3, E5M2) }
        .fidelity(SUMS)
    Dot4Bf8Fp8 = v_dot4_f32_bf8_fp8 [cx](a: u32, b: u32, c: f32) -> f32 { dot4(cx, a, b, c, E5M2, E4M3) }
        .fidelity(SUMS)
    Dot4Bf8Bf8 = v_dot4_f32_bf8_bf8 [cx](a: u32, b: u32, c: f32) -> f32 { dot4(cx, a, b, c, E5M2, E5M2) }
        .fidelity(SUMS)
}

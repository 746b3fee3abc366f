//! Half precision as bits; arithmetic goes through f32.

/// An f16. Its bits are held in 32, which is what lanes have: with narrower words the compiler would make vectors of
/// twice as many lanes and then split them again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct F16(pub u32);

impl F16 {
    /// Is it a NaN?
    #[inline(always)]
    pub fn is_nan(self) -> bool {
        self.0 & 0x7fff > 0x7c00
    }

    /// The same value as f32. A NaN keeps its payload and is not quieted.
    #[inline(always)]
    pub fn to_f32(self) -> f32 {
        let magnitude = self.0 & 0x7fff;
        let sign = (self.0 & 0x8000) << 16;
        // An f16 subnormal is `magnitude * 2^-24`, exact in f32.
        let small = (magnitude as i32 as f32 * f32::from_bits(0x3380_0000)).to_bits();
        let rebias = if magnitude >= 0x7c00 { 0x7000_0000 } else { 0x3800_0000 };
        let normal = (magnitude << 13) + rebias;
        f32::from_bits(sign | if magnitude < 0x400 { small } else { normal })
    }

    /// As f64.
    #[inline(always)]
    pub fn to_f64(self) -> f64 {
        self.to_f32() as f64
    }

    /// Rounds to nearest even. A NaN is quieted and keeps the upper part of its payload.
    #[inline(always)]
    pub fn from_f32(value: f32) -> F16 {
        let bits = value.to_bits();
        let magnitude = bits & 0x7fff_ffff;
        let sign = (bits >> 16) & 0x8000;
        // Adding 0.5 leaves an f16 subnormal in the low bits of the sum, rounded by the adder.
        let small = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0x3f00_0000);
        let odd = (magnitude >> 13) & 1;
        let normal = magnitude.wrapping_add(0xc800_0fff).wrapping_add(odd) >> 13;
        let large = if magnitude > 0x7f80_0000 { 0x7e00 | (magnitude >> 13) & 0x3ff } else { 0x7c00 };
        let result = if magnitude < 0x3880_0000 {
            small
        } else if magnitude < 0x4780_0000 {
            normal
        } else {
            large
        };
        F16(sign | result & 0x7fff)
    }

    /// Rounds once, to nearest even.
    #[inline(always)]
    pub fn from_f64(value: f64) -> F16 {
        F16::from_f32(to_odd(value))
    }

    /// `a * b + c`, rounded once. The product is exact in f32; the sum is rounded to odd there, from which rounding to
    /// f16 is as good as from the exact sum.
    #[inline(always)]
    pub fn fma(a: F16, b: F16, c: F16) -> F16 {
        let (p, c) = (a.to_f32() * b.to_f32(), c.to_f32());
        let sum = p + c;
        // The rounding error, exactly (Knuth's two-sum).
        let part = sum - p;
        let error = (p - (sum - part)) + (c - part);
        let bits = sum.to_bits();
        // One step towards zero when the sum was rounded away from it.
        let away = (error.to_bits() ^ bits) >> 31;
        let odd = bits.wrapping_sub(away) | 1;
        let inexact = error != 0.0 && sum.is_finite();
        F16::from_f32(f32::from_bits(if inexact { odd } else { bits }))
    }
}

/// f64 to f32 rounded to odd, from which another rounding to at most 22 bits is as good as from the f64.
#[inline(always)]
pub fn to_odd(value: f64) -> f32 {
    let near = value as f32;
    let back = near as f64;
    let bits = near.to_bits();
    // One step towards zero when the conversion rounded away from it.
    let cut = if back.abs() > value.abs() { bits.wrapping_sub(1) } else { bits };
    let odd = if back == value || value.is_nan() { cut } else { cut | 1 };
    f32::from_bits(odd)
}

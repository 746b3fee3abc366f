//! NaNs by rule: the bits of a NaN result must not depend on the host.

use super::f16::F16;

/// A floating-point type.
pub trait Float: Copy {
    /// The NaN of an invalid operation on numbers.
    const DEFAULT: Self;

    /// Is it a NaN?
    fn is_nan(self) -> bool;

    /// Is it a signalling NaN?
    fn is_signalling(self) -> bool;

    /// With the quiet bit set; for NaNs only.
    fn quiet(self) -> Self;
}

impl Float for f32 {
    const DEFAULT: f32 = f32::from_bits(0x7fc0_0000);

    #[inline(always)]
    fn is_nan(self) -> bool {
        f32::is_nan(self)
    }

    #[inline(always)]
    fn is_signalling(self) -> bool {
        f32::is_nan(self) && self.to_bits() & 0x40_0000 == 0
    }

    #[inline(always)]
    fn quiet(self) -> f32 {
        f32::from_bits(self.to_bits() | 0x40_0000)
    }
}

impl Float for f64 {
    const DEFAULT: f64 = f64::from_bits(0x7ff8_0000_0000_0000);

    #[inline(always)]
    fn is_nan(self) -> bool {
        f64::is_nan(self)
    }

    #[inline(always)]
    fn is_signalling(self) -> bool {
        f64::is_nan(self) && self.to_bits() & 0x8_0000_0000_0000 == 0
    }

    #[inline(always)]
    fn quiet(self) -> f64 {
        f64::from_bits(self.to_bits() | 0x8_0000_0000_0000)
    }
}

impl Float for F16 {
    const DEFAULT: F16 = F16(0x7e00);

    #[inline(always)]
    fn is_nan(self) -> bool {
        F16::is_nan(self)
    }

    #[inline(always)]
    fn is_signalling(self) -> bool {
        F16::is_nan(self) && self.0 & 0x200 == 0
    }

    #[inline(always)]
    fn quiet(self) -> F16 {
        F16(self.0 | 0x200)
    }
}

/// A source that may hold the NaN a result of type `D` takes.
pub trait NanSource<D> {
    /// Its NaN, quieted and as a `D`; otherwise what follows.
    fn nan_or(self, otherwise: D) -> D;
}

macro_rules! no_nan {
    ($($type:ty)*) => {$(
        impl<D> NanSource<D> for $type {
            #[inline(always)]
            fn nan_or(self, otherwise: D) -> D {
                otherwise
            }
        }
    )*};
}

no_nan! { () u32 i32 u64 i64 u16 i16 bool }

macro_rules! own_nan {
    ($($type:ty)*) => {$(
        impl NanSource<$type> for $type {
            #[inline(always)]
            fn nan_or(self, otherwise: $type) -> $type {
                if Float::is_nan(self) { Float::quiet(self) } else { otherwise }
            }
        }
    )*};
}

own_nan! { f32 f64 F16 }

impl NanSource<f32> for F16 {
    #[inline(always)]
    fn nan_or(self, otherwise: f32) -> f32 {
        let payload = (self.0 & 0x8000) << 16 | 0x7fc0_0000 | (self.0 & 0x3ff) << 13;
        if F16::is_nan(self) { f32::from_bits(payload) } else { otherwise }
    }
}

impl NanSource<F16> for f32 {
    #[inline(always)]
    fn nan_or(self, otherwise: F16) -> F16 {
        let bits = self.to_bits();
        let payload = bits >> 16 & 0x8000 | 0x7e00 | bits >> 13 & 0x3ff;
        if f32::is_nan(self) { F16(payload) } else { otherwise }
    }
}

impl NanSource<f64> for f32 {
    #[inline(always)]
    fn nan_or(self, otherwise: f64) -> f64 {
        let bits = self.to_bits() as u64;
        let payload = (bits & 0x8000_0000) << 32 | 0x7ff8_0000_0000_0000 | (bits & 0x7f_ffff) << 29;
        if f32::is_nan(self) { f64::from_bits(payload) } else { otherwise }
    }
}

impl NanSource<f32> for f64 {
    #[inline(always)]
    fn nan_or(self, otherwise: f32) -> f32 {
        let bits = self.to_bits();
        let payload = (bits >> 32 & 0x8000_0000) as u32 | 0x7fc0_0000 | (bits >> 29 & 0x7f_ffff) as u32;
        if f64::is_nan(self) { f32::from_bits(payload) } else { otherwise }
    }
}

/// The first NaN among the sources, quieted, or the default NaN.
#[inline(always)]
pub fn first_nan<A, B, C, D>(a: A, b: B, c: C) -> D
where
    A: NanSource<D>,
    B: NanSource<D>,
    C: NanSource<D>,
    D: Float,
{
    a.nan_or(b.nan_or(c.nan_or(D::DEFAULT)))
}

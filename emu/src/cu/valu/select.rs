//! Minimum and maximum of floating-point numbers.

use super::f16::F16;
use super::nan::Float;

/// What minimum and maximum need of a type.
pub trait Order: Float {
    /// `self < other`; false when one is a NaN.
    fn less(self, other: Self) -> bool;
    /// Bitwise or: of two equal numbers, the negative zero if either is one; a NaN if either is one.
    fn or(self, other: Self) -> Self;
    /// Bitwise and: of two equal numbers, the positive zero if either is one.
    fn and(self, other: Self) -> Self;
}

impl Order for f32 {
    #[inline(always)]
    fn less(self, other: f32) -> bool {
        self < other
    }

    #[inline(always)]
    fn or(self, other: f32) -> f32 {
        f32::from_bits(self.to_bits() | other.to_bits())
    }

    #[inline(always)]
    fn and(self, other: f32) -> f32 {
        f32::from_bits(self.to_bits() & other.to_bits())
    }
}

impl Order for f64 {
    #[inline(always)]
    fn less(self, other: f64) -> bool {
        self < other
    }

    #[inline(always)]
    fn or(self, other: f64) -> f64 {
        f64::from_bits(self.to_bits() | other.to_bits())
    }

    #[inline(always)]
    fn and(self, other: f64) -> f64 {
        f64::from_bits(self.to_bits() & other.to_bits())
    }
}

impl Order for F16 {
    #[inline(always)]
    fn less(self, other: F16) -> bool {
        self.to_f32() < other.to_f32()
    }

    #[inline(always)]
    fn or(self, other: F16) -> F16 {
        F16(self.0 | other.0)
    }

    #[inline(always)]
    fn and(self, other: F16) -> F16 {
        F16(self.0 & other.0)
    }
}

/// The smaller, -0 below +0; some NaN when a source is one.
#[inline(always)]
pub fn min<T: Order>(a: T, b: T) -> T {
    if a.less(b) {
        a
    } else if b.less(a) {
        b
    } else {
        a.or(b)
    }
}

/// The larger, -0 below +0; some NaN when a source is one.
#[inline(always)]
pub fn max<T: Order>(a: T, b: T) -> T {
    if b.less(a) {
        a
    } else if a.less(b) {
        b
    } else if a.is_nan() || b.is_nan() {
        a.or(b)
    } else {
        a.and(b)
    }
}

/// The smaller; a NaN when a source is one.
#[inline(always)]
pub fn minimum<T: Order>(a: T, b: T) -> T {
    min(a, b)
}

/// The larger; a NaN when a source is one.
#[inline(always)]
pub fn maximum<T: Order>(a: T, b: T) -> T {
    max(a, b)
}

/// What [`min_nan`] and [`max_nan`] share: a quiet NaN loses against a number, and so does a signalling one unless
/// MODE.IEEE makes it the result, quieted.
#[inline(always)]
fn pick_number<T: Order>(ieee: bool, a: T, b: T, number: T) -> T {
    if ieee && a.is_signalling() {
        a.quiet()
    } else if ieee && b.is_signalling() {
        b.quiet()
    } else if b.is_nan() {
        a
    } else if a.is_nan() {
        b
    } else {
        number
    }
}

/// [`min`] with the rules for NaNs.
#[inline(always)]
pub fn min_nan<T: Order>(ieee: bool, a: T, b: T) -> T {
    pick_number(ieee, a, b, min(a, b))
}

/// [`max`] with the rules for NaNs.
#[inline(always)]
pub fn max_nan<T: Order>(ieee: bool, a: T, b: T) -> T {
    pick_number(ieee, a, b, max(a, b))
}

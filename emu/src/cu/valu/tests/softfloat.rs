//! The integer arithmetic of `soft`, against the host to nearest even and against all f16 in the other modes.

use super::Random;
use crate::cu::valu::lane::Kind;
use crate::cu::valu::soft::{self, DOWN, F16, F32, F64, NEAREST, UP, ZERO};

/// The value of an f16, exactly.
pub fn half_to_f64(bits: u16) -> f64 {
    let sign = if bits & 0x8000 != 0 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (bits >> 10 & 31, (bits & 0x3ff) as f64);
    sign * match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction != 0.0 => f64::NAN,
        31 => f64::INFINITY,
        _ => (1024.0 + fraction) * 2f64.powi(exponent as i32 - 25),
    }
}

/// The neighbours of a number among all f16 magnitudes: the greatest not above it and the least not below it.
fn neighbours(magnitude: f64) -> (u16, u16) {
    let (mut low, mut high) = (0u16, 0x7c00u16);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if half_to_f64(middle) <= magnitude { low = middle } else { high = middle }
    }
    if half_to_f64(high) <= magnitude {
        (high, high)
    } else if half_to_f64(low) == magnitude {
        (low, low)
    } else {
        (low, high)
    }
}

/// An f16 by rounding mode, for numbers exact in f64.
fn rounded_half(round: u32, value: f64) -> u16 {
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    let magnitude = value.abs();
    if magnitude == f64::INFINITY {
        return sign | 0x7c00;
    }
    let (low, high) = neighbours(magnitude);
    let away = match round {
        NEAREST => {
            // Infinity stands where 65536 would.
            let above = if high == 0x7c00 { 65536.0 } else { half_to_f64(high) };
            let (down, up) = (magnitude - half_to_f64(low), above - magnitude);
            up < down || up == down && low & 1 != 0
        }
        UP => sign == 0,
        DOWN => sign != 0,
        _ => false,
    };
    sign | if away { high } else { low }
}

/// The nearest f16, ties to even.
pub fn nearest_half(value: f64) -> u16 {
    rounded_half(NEAREST, value)
}

#[test]
fn every_rounding_mode_of_halves() {
    let mut random = Random(11);
    for _ in 0..20_000 {
        let [a, b] = [(); 2].map(|_| random.value(Kind::F16) & 0xffff);
        let (x, y) = (half_to_f64(a as u16), half_to_f64(b as u16));
        if x.is_nan() || y.is_nan() {
            continue;
        }
        for round in [NEAREST, UP, DOWN, ZERO] {
            // Sums and products of f16 are exact in f64.
            let product = x * y;
            if !product.is_nan() {
                assert_eq!(soft::mul(F16, round, a, b), rounded_half(round, product) as u64, "{x} * {y}, mode {round}");
            }
            let sum = x + y;
            if !sum.is_nan() {
                // The sign of an exact zero is the mode's.
                let zero = if sum == 0.0 && (x != 0.0 || x.is_sign_negative() != y.is_sign_negative()) {
                    Some(if round == DOWN { 0x8000 } else { 0 })
                } else {
                    None
                };
                let wanted = zero.unwrap_or_else(|| rounded_half(round, sum));
                assert_eq!(soft::add(F16, round, a, b), wanted as u64, "{x} + {y}, mode {round}");
            }
            let narrowed = soft::convert(F64, F16, round, (x * 1.000_244_140_625).to_bits());
            assert_eq!(narrowed, rounded_half(round, x * 1.000_244_140_625) as u64);
        }
    }
}

#[test]
fn nearest_even_as_the_host() {
    let mut random = Random(12);
    for _ in 0..20_000 {
        let [a, b, c] = [(); 3].map(|_| random.value(Kind::F32));
        let [x, y, z] = [a, b, c].map(|bits| f32::from_bits(bits as u32));
        let same = |soft: u64, host: f32| assert!(host.is_nan() || soft == host.to_bits() as u64, "{x:e} {y:e} {z:e}");
        same(soft::add(F32, NEAREST, a, b), x + y);
        same(soft::mul(F32, NEAREST, a, b), x * y);
        same(soft::fma_scaled(F32, NEAREST, a, b, c, 0), x.mul_add(y, z));
        let [a, b, c] = [(); 3].map(|_| random.value(Kind::F64));
        let [x, y, z] = [a, b, c].map(f64::from_bits);
        let same = |soft: u64, host: f64| assert!(host.is_nan() || soft == host.to_bits(), "{x:e} {y:e} {z:e}");
        same(soft::add(F64, NEAREST, a, b), x + y);
        same(soft::mul(F64, NEAREST, a, b), x * y);
        same(soft::fma_scaled(F64, NEAREST, a, b, c, 0), x.mul_add(y, z));
        if !x.is_nan() {
            assert_eq!(soft::convert(F64, F32, NEAREST, a), (x as f32).to_bits() as u64, "{x:e}");
        }
        let whole = random.value(Kind::I64) as i64;
        assert_eq!(soft::from_int(F32, NEAREST, whole), (whole as f32).to_bits() as u64, "{whole}");
    }
}

/// The directed modes bracket the exact result, a unit in the last place apart or equal.
#[test]
fn directed_modes_bracket() {
    let mut random = Random(13);
    for _ in 0..20_000 {
        let [a, b, c] = [(); 3].map(|_| random.value(Kind::F32));
        let results = [DOWN, NEAREST, UP, ZERO].map(|round| soft::fma_scaled(F32, round, a, b, c, 0) as u32);
        let [down, nearest, up, zero] = results.map(f32::from_bits);
        if nearest.is_nan() {
            continue;
        }
        assert!(down <= nearest && nearest <= up, "{down:e} {nearest:e} {up:e}");
        let key =
            |x: f32| if x.is_sign_negative() { -((x.to_bits() & 0x7fff_ffff) as i64) } else { x.to_bits() as i64 };
        assert!(key(up) - key(down) <= 1, "{down:e} and {up:e} are not neighbours");
        assert!(zero.abs() == down.abs().min(up.abs()), "{zero:e} is not the nearer to zero of {down:e}, {up:e}");
    }
}

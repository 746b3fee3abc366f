//! Division steps, reciprocals, roots, exponentials, logarithms and trigonometry.
//!
//! Hardware's f32 functions are approximations good to about one unit in the last place; here they are computed in f64
//! with plain multiplications and additions, so that every host gets the same bits, and rounded once.

use super::f16::F16;
use super::float32::flush;
use super::float64::exp2i;
use super::lane::Buffer;
use super::nan::{Float, first_nan};
use super::op::{Cx, Op, mode};
use super::soft;
use super::table::Entry;
use crate::cu::fidelity::Fidelity;
use crate::cu::level::Level;

/// A whole number within the range of i32, as one.
#[inline(always)]
fn small(x: f64) -> i32 {
    let inside = x.abs() < 1e9;
    // SAFETY: 0 or within the range of i32.
    unsafe { if inside { x } else { 0.0 }.to_int_unchecked() }
}

/// 2^x, for x between about -1070 and 1020.
#[inline(always)]
fn exp2(x: f64) -> f64 {
    const C: [f64; 10] = [
        1.0,
        6.931_471_805_599_453e-1,
        2.402_265_069_591_007e-1,
        5.550_410_866_482_158e-2,
        9.618_129_107_628_477e-3,
        1.333_355_814_642_844_3e-3,
        1.540_353_039_338_161e-4,
        1.525_273_380_405_984e-5,
        1.321_548_679_014_431e-6,
        1.017_808_600_923_97e-7,
    ];
    let whole = x.round_ties_even();
    let r = x - whole;
    let mut sum = C[9];
    for k in (0..9).rev() {
        sum = sum * r + C[k];
    }
    sum * exp2i(small(whole).clamp(-1022, 1023))
}

/// Base 2 logarithm of a positive normal number.
#[inline(always)]
fn log2(x: f64) -> f64 {
    let bits = x.to_bits();
    // Mantissa in sqrt(1/2)..sqrt(2), so that logarithms near 0 keep their relative precision.
    let shifted = bits.wrapping_sub(0x3fe6_a09e_667f_3bcd);
    let exponent = (shifted as i64 >> 52) as i32;
    let m = f64::from_bits((shifted & 0x000f_ffff_ffff_ffff).wrapping_add(0x3fe6_a09e_667f_3bcd));
    let s = (m - 1.0) / (m + 1.0);
    let s2 = s * s;
    let mut sum = 1.0 / 15.0;
    for n in [13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0] {
        sum = sum * s2 + 1.0 / n;
    }
    exponent as f64 + s * sum * (2.0 / std::f64::consts::LN_2)
}

/// Sine (quarter 0) or cosine (quarter 1) of `turns` revolutions.
#[inline(always)]
fn sine(turns: f64, quarter: i32) -> f64 {
    let r = turns - turns.round_ties_even();
    let q = (r * 4.0).round_ties_even();
    let t = (r - q * 0.25) * std::f64::consts::TAU;
    let t2 = t * t;
    let mut odd = -1.0 / 39_916_800.0;
    for c in [1.0 / 362_880.0, -1.0 / 5040.0, 1.0 / 120.0, -1.0 / 6.0, 1.0] {
        odd = odd * t2 + c;
    }
    let odd = odd * t;
    let mut even = -1.0 / 3_628_800.0;
    for c in [1.0 / 40_320.0, -1.0 / 720.0, 1.0 / 24.0, -0.5, 1.0] {
        even = even * t2 + c;
    }
    let quadrant = small(q).wrapping_add(quarter) & 3;
    let value = if quadrant & 1 != 0 { even } else { odd };
    if quadrant & 2 != 0 { -value } else { value }
}

/// Beyond 256 turns hardware gives the value for 0.
#[inline(always)]
fn in_turns(x: f64, quarter: i32) -> f64 {
    let value = sine(if x.abs() <= 256.0 { x } else { 0.0 }, quarter);
    if x.is_finite() { value } else { f64::NAN }
}

/// `v_exp`: 2^x, over all numbers.
#[inline(always)]
fn exp_of(x: f64) -> f64 {
    let inside = if x > 1000.0 {
        1000.0
    } else if x > -1000.0 {
        x
    } else {
        -1000.0
    };
    if x.is_nan() { x } else { exp2(inside) }
}

/// `v_log` of a number of a narrower format.
#[inline(always)]
fn log_of(x: f64) -> f64 {
    let inside = log2(if x > 0.0 && x < f64::INFINITY { x } else { 1.0 });
    if x == 0.0 {
        f64::NEG_INFINITY
    } else if x < 0.0 || x.is_nan() {
        f64::NAN
    } else if x == f64::INFINITY {
        x
    } else {
        inside
    }
}

/// To f16. The f32 between costs a second rounding, which a function good to a unit in the last place may have.
#[inline(always)]
fn half(x: f64) -> F16 {
    F16::from_f64(x)
}

/// Leading 1216 bits of 2/pi.
const TWO_OVER_PI: [u64; 19] = [
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_6bab,
];

/// 53 bits of 2/pi from `index * 53` on, further when the argument's exponent is large, scaled to their place.
#[inline(always)]
fn trig_preop(value: u64, index: u32) -> f64 {
    let exponent = (value >> 52 & 0x7ff) as i32;
    let shift = ((index & 31) as i32).wrapping_mul(53) + if exponent > 1077 { exponent - 1077 } else { 0 };
    let at = (shift >> 6) as usize;
    let word = |n: usize| if n < TWO_OVER_PI.len() { TWO_OVER_PI[n] } else { 0 };
    let window = ((word(at) as u128) << 64 | word(at + 1) as u128) << (shift & 63);
    let bits = (window >> 75) as u64 & ((1 << 53) - 1);
    // Only bits within the first 1201 are known to hardware.
    let known = (1201 - shift).clamp(0, 53);
    let bits = bits & !(((1u64 << 53) - 1) >> known);
    let scale = -53 - shift + if exponent >= 1968 { 128 } else { 0 };
    super::float64::ldexp(bits as f64, scale)
}

macro_rules! division {
    (
        $float:ty, $bits:ty, $format:expr, $scale:ident, $fmas:ident, $fixup:ident, $soft:ident,
        $fraction:literal, $ones:literal, $bias:literal, $far:literal, $step:literal, $tiny:literal, $under:literal
    ) => {
        /// Exponent field.
        #[inline(always)]
        fn $soft(value: $float) -> i32 {
            (value.to_bits() >> $fraction & $ones) as i32
        }

        /// The scaling of numerator or denominator (whichever `a` is) in front of the Newton steps: `b` is the
        /// denominator, `c` the numerator. The bit says that the quotient will need scaling back.
        #[inline(always)]
        fn $scale(a: $float, b: $float, c: $float) -> ($float, bool) {
            let (eb, ec) = ($soft(b), $soft(c));
            let (is_b, is_c) = (a.to_bits() == b.to_bits(), a.to_bits() == c.to_bits());
            // Hardware judges the quotient and the reciprocal by exponents.
            let quotient_denormal = ec - eb <= 1 - $bias;
            let reciprocal_denormal = eb >= 2 * $bias - 1;
            let (power, back) = if ec - eb >= $far {
                (if is_b { $step } else { 0 }, true)
            } else if eb == 0 {
                ($step, false)
            } else if reciprocal_denormal && quotient_denormal {
                (if is_b { -$step } else { 0 }, true)
            } else if reciprocal_denormal {
                (-$step, false)
            } else if quotient_denormal {
                (if is_c && !is_b { $step } else { 0 }, true)
            } else if ec <= $tiny {
                ($step, false)
            } else {
                (0, false)
            };
            let one = $bias as $bits;
            let scale = <$float>::from_bits((one.wrapping_add(power as $bits)) << $fraction);
            let scaled = a * scale;
            if b == 0.0 || c == 0.0 {
                (Float::DEFAULT, true)
            } else if a.is_nan() {
                (Float::quiet(a), back)
            } else {
                (scaled, back)
            }
        }

        /// The power of two that scales a quotient back.
        #[inline(always)]
        fn $fmas(c: $float) -> i32 {
            if $soft(c) > $bias { $step } else { -$step }
        }

        /// The quotient `q` of `c / b` with the special cases put right.
        #[inline(always)]
        fn $fixup(q: $float, b: $float, c: $float) -> $float {
            let sign = (b.to_bits() ^ c.to_bits()) & (1 << (<$bits>::BITS - 1));
            let signed = |value: $float| <$float>::from_bits(value.to_bits() | sign);
            let (b_inf, c_inf) = (b.is_infinite(), c.is_infinite());
            let invalid = b == 0.0 && c == 0.0 || b_inf && c_inf;
            if c.is_nan() {
                Float::quiet(c)
            } else if b.is_nan() {
                Float::quiet(b)
            } else if invalid {
                -<$float as Float>::DEFAULT
            } else if b == 0.0 || c_inf {
                signed(<$float>::INFINITY)
            } else if b_inf || c == 0.0 || $soft(c) - $soft(b) < $under {
                signed(0.0)
            } else if q.is_nan() {
                signed(<$float>::INFINITY)
            } else {
                signed(q.abs())
            }
        }
    };
}

division!(f32, u32, soft::F32, div_scale32, fmas_power32, div_fixup32, exponent32, 23, 0xff, 127, 96, 64, 23, -150);
division!(
    f64,
    u64,
    soft::F64,
    div_scale64,
    fmas_power64,
    div_fixup64,
    exponent64,
    52,
    0x7ff,
    1023,
    768,
    128,
    53,
    -1075
);

/// The quotient `q` of `c / b` in half precision with the special cases put right.
#[inline(always)]
fn div_fixup16(q: F16, b: F16, c: F16) -> F16 {
    let sign = (b.0 ^ c.0) & 0x8000;
    let (bm, cm) = (b.0 & 0x7fff, c.0 & 0x7fff);
    if c.is_nan() {
        c.quiet()
    } else if b.is_nan() {
        b.quiet()
    } else if bm == 0 && cm == 0 || bm == 0x7c00 && cm == 0x7c00 {
        F16(0xfe00)
    } else if bm == 0 || cm == 0x7c00 {
        F16(sign | 0x7c00)
    } else if bm == 0x7c00 || cm == 0 {
        F16(sign)
    } else {
        F16(sign | q.0 & 0x7fff)
    }
}

macro_rules! div_fmas {
    ($name:ident, $float:ty, $format:expr, $power:ident, $soft:ident, $mode:expr) => {
        /// The last step of a division: a fused multiply-add, scaled back where VCC says so and then rounded once.
        #[derive(Clone, Copy)]
        struct $name;

        impl Op for $name {
            type A = $float;
            type B = $float;
            type C = $float;
            type D = $float;
            const FIDELITY: Fidelity = Fidelity::Exact;
            const MODE: u32 = mode::<Self>();
            const SPECIAL: bool = true;

            #[inline(always)]
            fn lane(cx: Cx, a: $float, b: $float, c: $float) -> $float {
                let sum = a.mul_add(b, c);
                let scale = exp2i($power(c)) as $float;
                if cx.vcc() { sum * scale } else { sum }
            }

            /// Denormals, and what was rounded up to the smallest normal number, as well as NaNs.
            #[inline(always)]
            unsafe fn any_special<V: Level>(_: &Buffer) -> bool {
                true
            }

            #[inline(always)]
            fn is_special(value: $float) -> bool {
                value.is_nan() || value.abs() <= <$float>::MIN_POSITIVE
            }

            #[inline(always)]
            fn special(cx: Cx, a: $float, b: $float, c: $float, raw: $float) -> $float {
                if raw.is_nan() {
                    first_nan(a, b, c)
                } else if cx.vcc() {
                    let bits = [a, b, c].map(|value| value.to_bits() as u64);
                    <$float>::from_bits(
                        soft::fma_scaled($format, soft::NEAREST, bits[0], bits[1], bits[2], $power(c)) as _
                    )
                } else {
                    raw
                }
            }
        }

        /// Under another rounding mode; bit 8 of `round` is the lane's VCC bit.
        fn $soft(round: u32, a: u64, b: u64, c: u64) -> u64 {
            let power = if round & soft::VCC != 0 { $power(<$float>::from_bits(c as _)) } else { 0 };
            soft::fma_scaled($format, $mode(round), a, b, c, power)
        }
    };
}

div_fmas!(DivFmasF32, f32, soft::F32, fmas_power32, soft_fmas32, soft::single);
div_fmas!(DivFmasF64, f64, soft::F64, fmas_power64, soft_fmas64, soft::double);

/// Results whose bits are the lane function's.
pub mod exact {
    use super::*;
    use crate::cu::valu::define::{lane, ops, sources};

    ops! {
        DivScaleF32 = v_div_scale_f32 [_cx](a: f32, b: f32, c: f32) -> (f32, bool) { div_scale32(a, b, c) }
        DivScaleF64 = v_div_scale_f64 [_cx](a: f64, b: f64, c: f64) -> (f64, bool) { div_scale64(a, b, c) }
        DivFixupF32 = v_div_fixup_f32 [_cx](a: f32, b: f32, c: f32) -> f32 { div_fixup32(a, b, c) }
        DivFixupF64 = v_div_fixup_f64 [_cx](a: f64, b: f64, c: f64) -> f64 { div_fixup64(a, b, c) }
        DivFixupF16 = v_div_fixup_f16 [_cx](a: F16, b: F16, c: F16) -> F16 { div_fixup16(a, b, c) } .keeps()
        DivFixupLegacyF16 = v_div_fixup_legacy_f16 [_cx](a: F16, b: F16, c: F16) -> F16 { div_fixup16(a, b, c) }
        TrigPreopF64 = v_trig_preop_f64 [_cx](a: f64, b: u32) -> f64 { trig_preop(a.to_bits(), b) }
    }
}

/// The two steps of a division that other tables cannot hold.
pub const FMAS: &[Entry] = &[
    Entry::new::<DivFmasF32>(&["v_div_fmas_f32"]).soft(soft_fmas32),
    Entry::new::<DivFmasF64>(&["v_div_fmas_f64"]).soft(soft_fmas64),
];

/// Results that are numbers. The f32 functions take and give no denormals, whatever MODE says.
pub mod float {
    use super::*;
    use crate::cu::fidelity::{HALF_ULP, SEED, ULP, UNSTATED};
    use crate::cu::valu::define::{float_ops, lane, sources};

    float_ops! {
        RcpF32 = v_rcp_f32 v_rcp_iflag_f32 [_cx](a: f32) -> f32 { flush(1.0 / flush(a)) } .fidelity(ULP)
        RsqF32 = v_rsq_f32 [_cx](a: f32) -> f32 { (1.0 / (flush(a) as f64).sqrt()) as f32 } .fidelity(ULP)
        SqrtF32 = v_sqrt_f32 [_cx](a: f32) -> f32 { flush(a).sqrt() } .fidelity(ULP)
        ExpF32 = v_exp_f32 v_exp_legacy_f32 [_cx](a: f32) -> f32 { flush(exp_of(a as f64) as f32) } .fidelity(ULP)
        LogF32 = v_log_f32 v_log_legacy_f32 [_cx](a: f32) -> f32 { log_of(flush(a) as f64) as f32 } .fidelity(ULP)
        SinF32 = v_sin_f32 [_cx](a: f32) -> f32 { in_turns(flush(a) as f64, 0) as f32 } .fidelity(UNSTATED)
        CosF32 = v_cos_f32 [_cx](a: f32) -> f32 { in_turns(flush(a) as f64, 1) as f32 } .fidelity(UNSTATED)
        RcpF64 = v_rcp_f64 [_cx](a: f64) -> f64 { 1.0 / a } .fidelity(SEED)
        RsqF64 = v_rsq_f64 [_cx](a: f64) -> f64 { 1.0 / a.sqrt() } .fidelity(SEED)
        SqrtF64 = v_sqrt_f64 [_cx](a: f64) -> f64 { a.sqrt() } .fidelity(SEED)
        RcpF16 = v_rcp_f16 [_cx](a: F16) -> F16 { F16::from_f32(1.0 / a.to_f32()) } .fidelity(HALF_ULP)
        RsqF16 = v_rsq_f16 [_cx](a: F16) -> F16 { F16::from_f32(1.0 / a.to_f32().sqrt()) } .fidelity(HALF_ULP)
        SqrtF16 = v_sqrt_f16 [_cx](a: F16) -> F16 { F16::from_f32(a.to_f32().sqrt()) } .fidelity(HALF_ULP)
        ExpF16 = v_exp_f16 [_cx](a: F16) -> F16 { half(exp_of(a.to_f64())) } .fidelity(HALF_ULP)
        LogF16 = v_log_f16 [_cx](a: F16) -> F16 { half(log_of(a.to_f64())) } .fidelity(HALF_ULP)
        SinF16 = v_sin_f16 [_cx](a: F16) -> F16 { half(in_turns(a.to_f64(), 0)) } .fidelity(UNSTATED)
        CosF16 = v_cos_f16 [_cx](a: F16) -> F16 { half(in_turns(a.to_f64(), 1)) } .fidelity(UNSTATED)
    }
}

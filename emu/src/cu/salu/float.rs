//! Scalar floating point (GFX12).
//!
//! Values are computed in f64 so that nothing is lost before the one rounding that MODE asks for: sums are rounded to odd,
//! which leaves enough bits of an f64 for a correct second rounding to f32 or f16.

use super::{Entry, Op, Word, plain_destination, source};
use crate::cu::fidelity::Fidelity;
use crate::cu::inst::{Inst, Src};
use crate::cu::lower::{Lowering, Unsupported, Width};
use crate::cu::wave::Wave;
use crate::isa::Decoded;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::LazyLock;

/// The operation with this mnemonic.
pub fn find(mnemonic: &str) -> Option<Entry> {
    static INDEX: LazyLock<HashMap<&'static str, Entry>> = LazyLock::new(|| table().into_iter().collect());
    INDEX.get(mnemonic).copied()
}

/// Lowers the operations with three sources; None for others.
pub fn lower_fused(decoded: &Decoded, lowering: &mut Lowering) -> Result<Option<Inst>, Unsupported> {
    // `s_fmaak d, a, b, K` is a * b + K, `s_fmamk d, a, K, b` is a * K + b: the sources are in order already.
    if !matches!(decoded.mnemonic, "s_fmaak_f32" | "s_fmamk_f32") {
        return Ok(None);
    }
    let mut inst = Inst::new(fused, decoded, Fidelity::Exact);
    inst.dst = plain_destination(decoded.dst, 1, lowering)?;
    for (index, operand) in decoded.src.into_iter().take(3).enumerate() {
        let (src, constant) = source(operand, Width::B32, lowering)?;
        inst.src[index] = src;
        inst.flags |= (constant as u8) << index;
    }
    Ok(Some(inst))
}

unsafe fn fused(wave: &mut Wave, inst: &Inst) {
    let value = |index: usize| {
        let src: Src = inst.src[index];
        // SAFETY: the flag says which of the two it was lowered to.
        unsafe { if inst.flags & 1 << index != 0 { u32::get::<true>(wave, src) } else { u32::get::<false>(wave, src) } }
    };
    let result = fma(F32, wave.mode, value(0), value(1), value(2));
    // SAFETY: lowered as one register.
    unsafe { u32::put(wave, inst.dst, result) };
}

/// A binary format, and where MODE has its bits.
#[derive(Clone, Copy)]
struct Format {
    /// Bits of the significand without the hidden one.
    fraction: u32,
    /// Bits of the exponent.
    exponent: u32,
    /// Shift of the rounding mode in MODE.
    round: u32,
    /// Shift of the denormal mode in MODE: bit 0 keeps denormal sources, bit 1 denormal results.
    denorm: u32,
}

const F32: Format = Format { fraction: 23, exponent: 8, round: 0, denorm: 4 };
const F16: Format = Format { fraction: 10, exponent: 5, round: 2, denorm: 6 };

/// MODE.FP16_OVFL: an f16 result that overflows becomes the largest finite number.
const FP16_OVFL: u32 = 1 << 23;

impl Format {
    fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    fn sign_bit(self) -> u32 {
        1 << (self.fraction + self.exponent)
    }

    fn infinity(self) -> u32 {
        ((1 << self.exponent) - 1) << self.fraction
    }

    fn quiet_bit(self) -> u32 {
        1 << (self.fraction - 1)
    }

    fn is_nan(self, bits: u32) -> bool {
        bits & (self.sign_bit() - 1) > self.infinity()
    }

    /// A source as MODE has it read: a denormal may count as zero.
    fn source(self, mode: u32, bits: u32) -> u32 {
        let bits = bits & (self.sign_bit() | (self.sign_bit() - 1));
        let denormal = bits & self.infinity() == 0;
        if denormal && mode >> self.denorm & 1 == 0 { bits & self.sign_bit() } else { bits }
    }

    fn to_f64(self, bits: u32) -> f64 {
        let sign = if bits & self.sign_bit() != 0 { -1.0 } else { 1.0 };
        let exponent = (bits & self.infinity()) >> self.fraction;
        let fraction = bits & ((1 << self.fraction) - 1);
        let least = 1 - self.bias() - self.fraction as i32;
        sign * match exponent {
            0 => fraction as f64 * power(least),
            e if e << self.fraction == self.infinity() && fraction == 0 => f64::INFINITY,
            e if e << self.fraction == self.infinity() => f64::NAN,
            e => (fraction | 1 << self.fraction) as f64 * power(least + e as i32 - 1),
        }
    }

    /// Rounds as MODE says. `value` is exact, or rounded to odd.
    fn round(self, mode: u32, value: f64) -> u32 {
        let sign = if value.is_sign_negative() { self.sign_bit() } else { 0 };
        let magnitude = value.abs();
        if value.is_nan() {
            return self.infinity() | self.quiet_bit();
        }
        if magnitude == 0.0 || magnitude.is_infinite() {
            return sign | if magnitude == 0.0 { 0 } else { self.infinity() };
        }
        // magnitude = significand * 2^scale, and the result is a multiple of 2^unit.
        let (significand, scale) = split(magnitude);
        let top = scale + 52;
        let least = 1 - self.bias() - self.fraction as i32;
        let unit = (top - self.fraction as i32).max(least);
        // At least 29 bits are dropped; beyond 63 nothing but the knowledge of being there is left.
        let dropped = ((unit - scale) as u32).min(63);
        let kept = significand >> dropped;
        let rest = significand & ((1 << dropped) - 1);
        let half = 1u64 << (dropped - 1);
        let direction = mode >> self.round & 3;
        let up = match direction {
            0 => rest > half || rest == half && kept & 1 == 1,
            1 => rest != 0 && sign == 0,
            2 => rest != 0 && sign != 0,
            _ => false,
        };
        let kept = (kept + up as u64) as u32;
        // A carry out of the fraction moves the exponent by itself.
        let exponent = (unit - least) as u32;
        let bits = kept + (exponent << self.fraction);
        if bits >= self.infinity() {
            let away = match direction {
                0 => true,
                1 => sign == 0,
                2 => sign != 0,
                _ => false,
            };
            let clamps = self.exponent == F16.exponent && mode & FP16_OVFL != 0;
            return sign | if away && !clamps { self.infinity() } else { self.infinity() - 1 };
        }
        if bits >> self.fraction == 0 && mode >> self.denorm & 2 == 0 {
            return sign;
        }
        sign | bits
    }

    /// The NaN that a result takes from its sources: the first one, made quiet.
    fn nan(self, sources: &[u32]) -> Option<u32> {
        sources.iter().find(|bits| self.is_nan(**bits)).map(|bits| bits | self.quiet_bit())
    }
}

/// 2^n for a normal f64.
fn power(n: i32) -> f64 {
    f64::from_bits(((n + 1023) as u64) << 52)
}

/// A positive normal f64 as a 53-bit integer times a power of two. No f32 or f16 operation yields a denormal f64.
fn split(value: f64) -> (u64, i32) {
    let bits = value.to_bits();
    (bits & ((1 << 52) - 1) | 1 << 52, (bits >> 52) as i32 - 1023 - 52)
}

/// a + b rounded to odd: inexact results have a last bit of 1.
fn add_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    if !sum.is_finite() {
        return sum;
    }
    let part = sum - a;
    let error = (a - (sum - part)) + (b - part);
    match error.partial_cmp(&0.0) {
        _ if sum.to_bits() & 1 == 1 => sum,
        Some(Ordering::Greater) => sum.next_up(),
        Some(Ordering::Less) => sum.next_down(),
        _ => sum,
    }
}

/// a * b + c with one rounding.
fn fma(format: Format, mode: u32, a: u32, b: u32, c: u32) -> u32 {
    let sources = [a, b, c].map(|bits| format.source(mode, bits));
    if let Some(nan) = format.nan(&sources) {
        return nan;
    }
    let [a, b, c] = sources.map(|bits| format.to_f64(bits));
    let product = a * b;
    let sum = add_odd(product, c);
    // A sum that cancels is +0, but -0 when rounding down.
    if sum == 0.0 && (product != 0.0 || product.is_sign_negative() != c.is_sign_negative()) {
        return if mode >> format.round & 3 == 2 { format.sign_bit() } else { 0 };
    }
    format.round(mode, sum)
}

fn add(format: Format, mode: u32, a: u32, b: u32) -> u32 {
    fma(format, mode, a, one(format), b)
}

fn sub(format: Format, mode: u32, a: u32, b: u32) -> u32 {
    // A NaN keeps its sign.
    if format.is_nan(b) { add(format, mode, a, b) } else { add(format, mode, a, b ^ format.sign_bit()) }
}

fn one(format: Format) -> u32 {
    (format.bias() as u32) << format.fraction
}

fn mul(format: Format, mode: u32, a: u32, b: u32) -> u32 {
    let sources = [a, b].map(|bits| format.source(mode, bits));
    if let Some(nan) = format.nan(&sources) {
        return nan;
    }
    let [a, b] = sources.map(|bits| format.to_f64(bits));
    format.round(mode, a * b)
}

/// `want`: the order of (a, b) for which a is chosen. -0 is less than +0. `propagate`: a NaN wins, else a number does.
fn extremum(format: Format, mode: u32, a: u32, b: u32, want: Ordering, propagate: bool) -> u32 {
    let (a, b) = (format.source(mode, a), format.source(mode, b));
    match (format.is_nan(a), format.is_nan(b)) {
        (true, true) => a | format.quiet_bit(),
        (true, false) => {
            if propagate {
                a | format.quiet_bit()
            } else {
                b
            }
        }
        (false, true) => {
            if propagate {
                b | format.quiet_bit()
            } else {
                a
            }
        }
        (false, false) => {
            let order = format.to_f64(a).total_cmp(&format.to_f64(b));
            if order == want { a } else { b }
        }
    }
}

fn order(format: Format, mode: u32, a: u32, b: u32) -> Option<Ordering> {
    let value = |bits| format.to_f64(format.source(mode, bits));
    value(a).partial_cmp(&value(b))
}

/// Rounds to an integer; the result is exact.
fn integral(format: Format, mode: u32, a: u32, f: fn(f64) -> f64) -> u32 {
    let a = format.source(mode, a);
    if format.is_nan(a) { a | format.quiet_bit() } else { format.round(mode, f(format.to_f64(a))) }
}

/// From one format to another. A NaN keeps its sign and the high bits of its payload.
fn convert(from: Format, to: Format, mode: u32, a: u32) -> u32 {
    let a = from.source(mode, a);
    if from.is_nan(a) {
        let sign = if a & from.sign_bit() != 0 { to.sign_bit() } else { 0 };
        let fraction = a & ((1 << from.fraction) - 1);
        let payload = if to.fraction > from.fraction {
            fraction << (to.fraction - from.fraction)
        } else {
            fraction >> (from.fraction - to.fraction)
        };
        return sign | to.infinity() | to.quiet_bit() | payload;
    }
    to.round(mode, from.to_f64(a))
}

/// `[f32 name, f16 name] D, A, B => |format, mode, old, a, b, scc| result`, and operations of one name alone.
macro_rules! operations {
    ($([$($name:literal = $which:ident),+] $d:ty, $a:ty, $b:ty
        => |$format:pat_param, $mode:pat_param, $old:pat_param, $x:pat_param, $y:pat_param, $scc:ident| $body:expr;)*) => {
        fn table() -> Vec<(&'static str, Entry)> {
            vec![$($({
                struct This;
                impl Op for This {
                    type D = $d;
                    type A = $a;
                    type B = $b;
                    #[allow(unused_variables)]
                    fn apply($mode: u32, $old: $d, $x: $a, $y: $b, $scc: &mut bool) -> $d {
                        let $format: Format = $which;
                        $body
                    }
                }
                ($name, Entry::of::<This>(if $which.exponent == F16.exponent { Width::F16 } else { Width::B32 }))
            }),+),*]
        }
    };
}

operations! {
    ["s_add_f32" = F32, "s_add_f16" = F16] u32, u32, u32 => |f, mode, _, a, b, scc| add(f, mode, a, b);
    ["s_sub_f32" = F32, "s_sub_f16" = F16] u32, u32, u32 => |f, mode, _, a, b, scc| sub(f, mode, a, b);
    ["s_mul_f32" = F32, "s_mul_f16" = F16] u32, u32, u32 => |f, mode, _, a, b, scc| mul(f, mode, a, b);
    ["s_fmac_f32" = F32, "s_fmac_f16" = F16] u32, u32, u32 => |f, mode, old, a, b, scc| fma(f, mode, a, b, old);
    ["s_min_num_f32" = F32, "s_min_num_f16" = F16] u32, u32, u32 => |f, mode, _, a, b, scc| {
        extremum(f, mode, a, b, Ordering::Less, false)
    };
    ["s_max_num_f32" = F32, "s_max_num_f16" = F16] u32, u32, u32 => |f, mode, _, a, b, scc| {
        extremum(f, mode, a, b, Ordering::Greater, false)
    };
    ["s_minimum_f32" = F32, "s_minimum_f16" = F16] u32, u32, u32 => |f, mode, _, a, b, scc| {
        extremum(f, mode, a, b, Ordering::Less, true)
    };
    ["s_maximum_f32" = F32, "s_maximum_f16" = F16] u32, u32, u32 => |f, mode, _, a, b, scc| {
        extremum(f, mode, a, b, Ordering::Greater, true)
    };
    ["s_ceil_f32" = F32, "s_ceil_f16" = F16] u32, u32, () => |f, mode, _, a, _, scc| integral(f, mode, a, f64::ceil);
    ["s_floor_f32" = F32, "s_floor_f16" = F16] u32, u32, () => |f, mode, _, a, _, scc| integral(f, mode, a, f64::floor);
    ["s_trunc_f32" = F32, "s_trunc_f16" = F16] u32, u32, () => |f, mode, _, a, _, scc| integral(f, mode, a, f64::trunc);
    ["s_rndne_f32" = F32, "s_rndne_f16" = F16] u32, u32, () => |f, mode, _, a, _, scc| {
        integral(f, mode, a, f64::round_ties_even)
    };

    ["s_cvt_f32_i32" = F32] u32, u32, () => |f, mode, _, a, _, scc| f.round(mode, a as i32 as f64);
    ["s_cvt_f32_u32" = F32] u32, u32, () => |f, mode, _, a, _, scc| f.round(mode, a as f64);
    // Saturating, towards zero, NaN to 0.
    ["s_cvt_i32_f32" = F32] u32, u32, () => |f, mode, _, a, _, scc| f.to_f64(f.source(mode, a)) as i32 as u32;
    ["s_cvt_u32_f32" = F32] u32, u32, () => |f, mode, _, a, _, scc| f.to_f64(f.source(mode, a)) as u32;
    ["s_cvt_f16_f32" = F32] u32, u32, () => |f, mode, _, a, _, scc| convert(F32, F16, mode, a);
    ["s_cvt_f32_f16" = F16] u32, u32, () => |f, mode, _, a, _, scc| convert(F16, F32, mode, a);
    ["s_cvt_hi_f32_f16" = F16] u32, u32, () => |f, mode, _, a, _, scc| convert(F16, F32, mode, a >> 16);
    ["s_cvt_pk_rtz_f16_f32" = F32] u32, u32, u32 => |f, mode, _, a, b, scc| {
        let mode = mode | 3 << F16.round;
        convert(F32, F16, mode, a) | convert(F32, F16, mode, b) << 16
    };

    ["s_cmp_lt_f32" = F32, "s_cmp_lt_f16" = F16] (), u32, u32 => |f, mode, _, a, b, scc| {
        *scc = order(f, mode, a, b) == Some(Ordering::Less)
    };
    ["s_cmp_eq_f32" = F32, "s_cmp_eq_f16" = F16] (), u32, u32 => |f, mode, _, a, b, scc| {
        *scc = order(f, mode, a, b) == Some(Ordering::Equal)
    };
    ["s_cmp_le_f32" = F32, "s_cmp_le_f16" = F16] (), u32, u32 => |f, mode, _, a, b, scc| {
        *scc = order(f, mode, a, b).is_some_and(Ordering::is_le)
    };
    ["s_cmp_gt_f32" = F32, "s_cmp_gt_f16" = F16] (), u32, u32 => |f, mode, _, a, b, scc| {
        *scc = order(f, mode, a, b) == Some(Ordering::Greater)
    };
    ["s_cmp_lg_f32" = F32, "s_cmp_lg_f16" = F16] (), u32, u32 => |f, mode, _, a, b, scc| {
        *scc = order(f, mode, a, b).is_some_and(Ordering::is_ne)
    };
    ["s_cmp_ge_f32" = F32, "s_cmp_ge_f16" = F16] (), u32, u32 => |f, mode, _, a, b, scc| {
        *scc = order(f, mode, a, b).is_some_and(Ordering::is_ge)
    };
    ["s_cmp_o_f32" = F32, "s_cmp_o_f16" = F16] (), u32, u32 => |f, mode, _, a, b, scc| {
        *scc = order(f, mode, a, b).is_some()
    };
    ["s_cmp_u_f32" = F32, "s_cmp_u_f16" = F16] (), u32, u32 => |f, mode, _, a, b, scc| {
        *scc = order(f, mode, a, b).is_none()
    };
    // The negated ones are true for NaN.
    ["s_cmp_nge_f32" = F32, "s_cmp_nge_f16" = F16] (), u32, u32 => |f, mode, _, a, b, scc| {
        *scc = !order(f, mode, a, b).is_some_and(Ordering::is_ge)
    };
    ["s_cmp_nlg_f32" = F32, "s_cmp_nlg_f16" = F16] (), u32, u32 => |f, mode, _, a, b, scc| {
        *scc = !order(f, mode, a, b).is_some_and(Ordering::is_ne)
    };
    ["s_cmp_ngt_f32" = F32, "s_cmp_ngt_f16" = F16] (), u32, u32 => |f, mode, _, a, b, scc| {
        *scc = order(f, mode, a, b) != Some(Ordering::Greater)
    };
    ["s_cmp_nle_f32" = F32, "s_cmp_nle_f16" = F16] (), u32, u32 => |f, mode, _, a, b, scc| {
        *scc = !order(f, mode, a, b).is_some_and(Ordering::is_le)
    };
    ["s_cmp_neq_f32" = F32, "s_cmp_neq_f16" = F16] (), u32, u32 => |f, mode, _, a, b, scc| {
        *scc = order(f, mode, a, b) != Some(Ordering::Equal)
    };
    ["s_cmp_nlt_f32" = F32, "s_cmp_nlt_f16" = F16] (), u32, u32 => |f, mode, _, a, b, scc| {
        *scc = order(f, mode, a, b) != Some(Ordering::Less)
    };
}

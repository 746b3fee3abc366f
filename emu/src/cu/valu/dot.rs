//! Dot products, and the multiply-adds of mixed precision.

use super::define::{float_ops, lane, ops, sources};
use super::f16::F16;
use super::lane::{P16, PBf16, PF16};
use super::nan::{Float, NanSource, first_nan};
use super::op::{Cx, Op, mode};
use super::packed::{NEG, NEG_HI, OP_SEL, OP_SEL_HI, bit, choose};
use super::soft;
use super::table::Entry;
use crate::cu::fidelity::{Fidelity, SUMS};

/// Sum of the products of the `BITS` wide parts of two words, each extended by its sign or by zeros.
#[inline(always)]
fn products<const BITS: u32>(a: u32, b: u32, a_signed: bool, b_signed: bool) -> i64 {
    let part = |word: u32, index: u32, signed: bool| {
        let raised = word << (32 - BITS - index * BITS);
        if signed { (raised as i32 >> (32 - BITS)) as i64 } else { (raised >> (32 - BITS)) as i64 }
    };
    let mut sum = 0i64;
    for index in 0..32 / BITS {
        sum = sum.wrapping_add(part(a, index, a_signed).wrapping_mul(part(b, index, b_signed)));
    }
    sum
}

/// The halves of a source as `op_sel` and `op_sel_hi` put them; integers have no signs to flip.
#[inline(always)]
fn pair(cx: Cx, pair: P16, index: u32) -> u32 {
    let half = |field| pair.0 >> (16 * bit(cx.imm, field, index)) & 0xffff;
    half(OP_SEL) | half(OP_SEL_HI) << 16
}

/// The f32 addend of a dot product: absolute value (`neg_hi`) and negation.
#[inline(always)]
pub fn addend(cx: Cx, c: f32) -> f32 {
    let keep = !(bit(cx.imm, NEG_HI, 2) << 31);
    f32::from_bits(c.to_bits() & keep ^ bit(cx.imm, NEG, 2) << 31)
}

/// To 32 bits, saturating.
#[inline(always)]
fn saturate_i32(value: i64) -> u32 {
    super::int32::clamp_i32(value) as u32
}

/// To 32 unsigned bits, saturating.
#[inline(always)]
fn saturate_u32(value: i64) -> u32 {
    if value > u32::MAX as i64 { u32::MAX } else { value as u32 }
}

/// Whether source `index` of `v_dot4_i32_iu8` and its like is signed.
#[inline(always)]
fn is_signed(cx: Cx, index: u32) -> bool {
    bit(cx.imm, NEG, index) != 0
}

/// Integers.
pub mod int {
    use super::*;

    ops! {
        Dot2I32I16 = v_dot2_i32_i16 v_dot2c_i32_i16 [cx](a: P16, b: P16, c: u32) -> u32 {
            (c as i32 as i64).wrapping_add(products::<16>(pair(cx, a, 0), pair(cx, b, 1), true, true)) as u32
        } .clamp::<Dot2ClampI32I16>()
        Dot2ClampI32I16 = [cx](a: P16, b: P16, c: u32) -> u32 {
            saturate_i32((c as i32 as i64).wrapping_add(products::<16>(pair(cx, a, 0), pair(cx, b, 1), true, true)))
        }
        Dot2U32U16 = v_dot2_u32_u16 [cx](a: P16, b: P16, c: u32) -> u32 {
            (c as i64).wrapping_add(products::<16>(pair(cx, a, 0), pair(cx, b, 1), false, false)) as u32
        } .clamp::<Dot2ClampU32U16>()
        Dot2ClampU32U16 = [cx](a: P16, b: P16, c: u32) -> u32 {
            saturate_u32((c as i64).wrapping_add(products::<16>(pair(cx, a, 0), pair(cx, b, 1), false, false)))
        }
        Dot4I32I8 = v_dot4_i32_i8 v_dot4c_i32_i8 [_cx](a: u32, b: u32, c: u32) -> u32 {
            (c as i32 as i64).wrapping_add(products::<8>(a, b, true, true)) as u32
        } .clamp::<Dot4ClampI32I8>()
        Dot4ClampI32I8 = [_cx](a: u32, b: u32, c: u32) -> u32 {
            saturate_i32((c as i32 as i64).wrapping_add(products::<8>(a, b, true, true)))
        }
        Dot4U32U8 = v_dot4_u32_u8 [_cx](a: u32, b: u32, c: u32) -> u32 {
            (c as i64).wrapping_add(products::<8>(a, b, false, false)) as u32
        } .clamp::<Dot4ClampU32U8>()
        Dot4ClampU32U8 = [_cx](a: u32, b: u32, c: u32) -> u32 {
            saturate_u32((c as i64).wrapping_add(products::<8>(a, b, false, false)))
        }
        Dot8I32I4 = v_dot8_i32_i4 v_dot8c_i32_i4 [_cx](a: u32, b: u32, c: u32) -> u32 {
            (c as i32 as i64).wrapping_add(products::<4>(a, b, true, true)) as u32
        } .clamp::<Dot8ClampI32I4>()
        Dot8ClampI32I4 = [_cx](a: u32, b: u32, c: u32) -> u32 {
            saturate_i32((c as i32 as i64).wrapping_add(products::<4>(a, b, true, true)))
        }
        Dot8U32U4 = v_dot8_u32_u4 [_cx](a: u32, b: u32, c: u32) -> u32 {
            (c as i64).wrapping_add(products::<4>(a, b, false, false)) as u32
        } .clamp::<Dot8ClampU32U4>()
        Dot8ClampU32U4 = [_cx](a: u32, b: u32, c: u32) -> u32 {
            saturate_u32((c as i64).wrapping_add(products::<4>(a, b, false, false)))
        }
        Dot4I32Iu8 = v_dot4_i32_iu8 [cx](a: u32, b: u32, c: u32) -> u32 {
            (c as i32 as i64).wrapping_add(products::<8>(a, b, is_signed(cx, 0), is_signed(cx, 1))) as u32
        } .clamp::<Dot4ClampI32Iu8>()
        Dot4ClampI32Iu8 = [cx](a: u32, b: u32, c: u32) -> u32 {
            saturate_i32((c as i32 as i64).wrapping_add(products::<8>(a, b, is_signed(cx, 0), is_signed(cx, 1))))
        }
        Dot8I32Iu4 = v_dot8_i32_iu4 [cx](a: u32, b: u32, c: u32) -> u32 {
            (c as i32 as i64).wrapping_add(products::<4>(a, b, is_signed(cx, 0), is_signed(cx, 1))) as u32
        } .clamp::<Dot8ClampI32Iu4>()
        Dot8ClampI32Iu4 = [cx](a: u32, b: u32, c: u32) -> u32 {
            saturate_i32((c as i32 as i64).wrapping_add(products::<4>(a, b, is_signed(cx, 0), is_signed(cx, 1))))
        }
    }
}

/// Half `high` of a packed source as f32.
#[inline(always)]
fn half(cx: Cx, pair: PF16, index: u32, high: u32) -> F16 {
    F16(choose(cx.imm, pair.0, index, high) as u32)
}

/// `c` plus two products, summed in f64 and rounded once.
#[inline(always)]
fn dot2(a: [f64; 2], b: [f64; 2], c: f64) -> f64 {
    (a[0] * b[0] + a[1] * b[1]) + c
}

/// The halves of both sources.
#[inline(always)]
fn halves(cx: Cx, a: PF16, b: PF16) -> ([F16; 2], [F16; 2]) {
    ([half(cx, a, 0, 0), half(cx, a, 0, 1)], [half(cx, b, 1, 0), half(cx, b, 1, 1)])
}

/// Half `high` of a pair of bf16, as f32.
#[inline(always)]
fn brain(cx: Cx, pair: PBf16, index: u32, high: u32) -> f32 {
    f32::from_bits((choose(cx.imm, pair.0, index, high) as u32) << 16)
}

/// The first NaN of five values, or the default one.
#[inline(always)]
fn nan5<D, A: NanSource<D>, C: NanSource<D>>(a: [A; 2], b: [A; 2], c: C) -> D
where
    D: Float,
    D: NanSource<D>,
{
    let [a0, a1] = a;
    let [b0, b1] = b;
    a0.nan_or(a1.nan_or(b0.nan_or(b1.nan_or(c.nan_or(D::DEFAULT)))))
}

/// Source `index` of a mixed-precision operation: f32, or the chosen half as f16, with absolute value (`neg_hi`) and
/// negation.
#[inline(always)]
fn mix(imm: i32, word: u32, index: u32) -> f32 {
    let half = F16(word >> (16 * bit(imm, OP_SEL, index)) & 0xffff);
    // A signalling f16 stays one.
    let value = if bit(imm, OP_SEL_HI, index) != 0 { half.to_f32() } else { f32::from_bits(word) };
    let keep = !(bit(imm, NEG_HI, index) << 31);
    f32::from_bits(value.to_bits() & keep ^ bit(imm, NEG, index) << 31)
}

/// The three sources.
#[inline(always)]
fn mix3(imm: i32, a: u32, b: u32, c: u32) -> (f32, f32, f32) {
    (mix(imm, a, 0), mix(imm, b, 1), mix(imm, c, 2))
}

/// Multiply-add of a mixed-precision operation.
#[inline(always)]
fn mix_fma(imm: i32, a: u32, b: u32, c: u32) -> f32 {
    let (a, b, c) = mix3(imm, a, b, c);
    let sum = a.mul_add(b, c);
    if sum.is_nan() { first_nan(a, b, c) } else { sum }
}

/// The same with two roundings (`v_mad_mix`).
#[inline(always)]
fn mix_mad(imm: i32, a: u32, b: u32, c: u32) -> f32 {
    let (a, b, c) = mix3(imm, a, b, c);
    let sum = a * b + c;
    if sum.is_nan() { first_nan(a, b, c) } else { sum }
}

/// Rounds to f16, by rule for NaNs too.
#[inline(always)]
fn to_half(value: f32) -> F16 {
    F16::from_f32(value)
}

/// The immediate in a soft operation's `round` argument.
fn imm_of(round: u32) -> i32 {
    (round >> soft::IMM) as i32
}

fn soft_mix_fma(round: u32, a: u64, b: u64, c: u64) -> u64 {
    let (a, b, c) = mix3(imm_of(round), a as u32, b as u32, c as u32);
    soft::fma32(round, a.to_bits() as u64, b.to_bits() as u64, c.to_bits() as u64)
}

fn soft_mix_fma16(round: u32, a: u64, b: u64, c: u64) -> u64 {
    soft::f16_from_f32(round, soft_mix_fma(round, a, b, c), 0, 0)
}

fn soft_mix_mad(round: u32, a: u64, b: u64, c: u64) -> u64 {
    let (a, b, c) = mix3(imm_of(round), a as u32, b as u32, c as u32);
    let product = soft::mul32(round, a.to_bits() as u64, b.to_bits() as u64, 0);
    soft::add32(round, product, c.to_bits() as u64, 0)
}

fn soft_mix_mad16(round: u32, a: u64, b: u64, c: u64) -> u64 {
    soft::f16_from_f32(round, soft_mix_mad(round, a, b, c), 0, 0)
}

/// Mixed precision: bits in, each source f32 or f16 as the modifiers say.
pub mod mixed {
    use super::*;

    ops! {
        FmaMixF32 = v_fma_mix_f32 [cx](a: u32, b: u32, c: u32) -> f32 = 0xff { mix_fma(cx.imm, a, b, c) } .soft(soft_mix_fma)
        FmaMixF16 = v_fma_mixlo_f16 v_fma_mixhi_f16 [cx](a: u32, b: u32, c: u32) -> F16 = 0xff {
            to_half(mix_fma(cx.imm, a, b, c))
        } .soft(soft_mix_fma16) .keeps()
        MadMixF32 = v_mad_mix_f32 [cx](a: u32, b: u32, c: u32) -> f32 = 0xff { mix_mad(cx.imm, a, b, c) } .soft(soft_mix_mad)
        MadMixF16 = v_mad_mixlo_f16 v_mad_mixhi_f16 [cx](a: u32, b: u32, c: u32) -> F16 = 0xff {
            to_half(mix_mad(cx.imm, a, b, c))
        } .soft(soft_mix_mad16) .keeps()
    }
}

/// f16.
pub mod half {
    use super::*;

    float_ops! {
        Dot2F32F16 = v_dot2_f32_f16 v_dot2c_f32_f16 v_dot2acc_f32_f16 v_dual_dot2acc_f32_f16
            [cx](a: PF16, b: PF16, c: f32) -> f32 {
            let (a, b) = halves(cx, a, b);
            dot2(a.map(F16::to_f64), b.map(F16::to_f64), addend(cx, c) as f64) as f32
        } => nan {
            let (a, b) = halves(cx, a, b);
            nan5(a, b, addend(cx, c))
        } .fidelity(SUMS)
        Dot2F16F16 = v_dot2_f16_f16 [cx](a: PF16, b: PF16, c: F16) -> F16 {
            let (a, b) = halves(cx, a, b);
            F16::from_f64(dot2(a.map(F16::to_f64), b.map(F16::to_f64), c.to_f64()))
        } => nan {
            let (a, b) = halves(cx, a, b);
            nan5(a, b, c)
        } .fidelity(SUMS)
    }
}

/// bf16.
pub mod brain {
    use super::*;
    use crate::cu::valu::convert::bf16_from_f32;

    /// The halves of both sources.
    #[inline(always)]
    fn brains(cx: Cx, a: PBf16, b: PBf16) -> ([f32; 2], [f32; 2]) {
        ([brain(cx, a, 0, 0), brain(cx, a, 0, 1)], [brain(cx, b, 1, 0), brain(cx, b, 1, 1)])
    }

    float_ops! {
        Dot2F32Bf16 = v_dot2_f32_bf16 v_dual_dot2acc_f32_bf16 [cx](a: PBf16, b: PBf16, c: f32) -> f32 {
            let (a, b) = brains(cx, a, b);
            dot2(a.map(f64::from), b.map(f64::from), addend(cx, c) as f64) as f32
        } => nan {
            let (a, b) = brains(cx, a, b);
            nan5(a, b, addend(cx, c))
        } .fidelity(SUMS)
    }

    /// bf16 throughout. Its result is bits, NaNs by the rule of the conversion.
    pub mod bits {
        use super::*;

        ops! {
            Dot2Bf16Bf16 = v_dot2_bf16_bf16 [cx](a: PBf16, b: PBf16, c: u16) -> u16 {
                let (a, b) = brains(cx, a, b);
                let c = f32::from_bits((c as u32) << 16);
                let sum = super::super::super::f16::to_odd(dot2(a.map(f64::from), b.map(f64::from), c as f64));
                bf16_from_f32(if sum.is_nan() { nan5(a, b, c) } else { sum }) as u16
            } .fidelity(SUMS)
        }
    }
}

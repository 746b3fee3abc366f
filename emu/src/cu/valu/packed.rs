//! Two 16-bit operations in one register.
//!
//! An operation on halves becomes one on pairs: `op_sel` chooses the half of each source for the low result, `op_sel_hi`
//! for the high one, `neg_lo` and `neg_hi` negate them.

use super::f16::F16;
use super::lane::{Dest, P16, PF16, Source};
use super::op::{Cx, Op};
use super::table::Entry;
use super::{float16, int16, soft};
use crate::cu::fidelity::Fidelity;
use crate::isa::Mods;
use std::marker::PhantomData;

/// `op_sel` in an instruction's immediate, one bit a source; also that of the other half-choosing operations.
pub const OP_SEL: u32 = 0;
/// `op_sel_hi`.
pub const OP_SEL_HI: u32 = 3;
/// `neg_lo`.
pub const NEG: u32 = 6;
/// `neg_hi`.
pub const NEG_HI: u32 = 9;

/// The modifiers of VOP3P as an immediate.
pub fn immediate(mods: &Mods, op_sel_hi: u8) -> i32 {
    (mods.op_sel as i32 & 7) << OP_SEL
        | (op_sel_hi as i32 & 7) << OP_SEL_HI
        | (mods.neg as i32 & 7) << NEG
        | (mods.neg_hi as i32 & 7) << NEG_HI
}

/// A bit of the immediate.
#[inline(always)]
pub fn bit(imm: i32, field: u32, source: u32) -> u32 {
    imm as u32 >> (field + source) & 1
}

/// The type of two halves.
pub trait Pair: Source {
    /// The word.
    fn word(self) -> u32;
    /// From the word.
    fn from_word(word: u32) -> Self;
}

impl Pair for P16 {
    #[inline(always)]
    fn word(self) -> u32 {
        self.0
    }

    #[inline(always)]
    fn from_word(word: u32) -> P16 {
        P16(word)
    }
}

impl Pair for PF16 {
    #[inline(always)]
    fn word(self) -> u32 {
        self.0
    }

    #[inline(always)]
    fn from_word(word: u32) -> PF16 {
        PF16(word)
    }
}

/// No source.
impl Pair for () {
    #[inline(always)]
    fn word(self) -> u32 {
        0
    }

    #[inline(always)]
    fn from_word(_: u32) {}
}

/// The type of one half, and of a pair of it.
pub trait Half: Copy {
    /// The pair.
    type Pair: Pair;
    /// From a register's bits.
    fn from_half(bits: u16) -> Self;
    /// To a register's bits.
    fn half(self) -> u16;
}

macro_rules! half {
    ($($type:ty, $pair:ty, |$bits:ident| $from:expr, |$value:ident| $to:expr;)*) => {$(
        impl Half for $type {
            type Pair = $pair;

            #[inline(always)]
            fn from_half($bits: u16) -> $type {
                $from
            }

            #[inline(always)]
            fn half(self) -> u16 {
                let $value = self;
                $to
            }
        }
    )*};
}

half! {
    u16, P16, |bits| bits, |value| value;
    i16, P16, |bits| bits as i16, |value| value as u16;
    F16, PF16, |bits| F16(bits as u32), |value| value.0 as u16;
    (), (), |_bits| (), |_value| 0;
}

/// The half of source `index` for the low (0) or high (1) result, negated as the modifiers say.
#[inline(always)]
pub fn choose(imm: i32, word: u32, index: u32, high: u32) -> u16 {
    let (select, neg) = if high == 0 { (OP_SEL, NEG) } else { (OP_SEL_HI, NEG_HI) };
    (word >> (16 * bit(imm, select, index))) as u16 ^ (bit(imm, neg, index) << 15) as u16
}

/// An operation on both halves.
pub struct Packed<O>(PhantomData<O>);

impl<O: Op> Op for Packed<O>
where
    O::A: Half,
    O::B: Half,
    O::C: Half,
    O::D: Half,
    <O::D as Half>::Pair: Dest,
{
    type A = <O::A as Half>::Pair;
    type B = <O::B as Half>::Pair;
    type C = <O::C as Half>::Pair;
    type D = <O::D as Half>::Pair;
    const FIDELITY: Fidelity = O::FIDELITY;
    const MODE: u32 = O::MODE;
    const SPECIAL: bool = O::SPECIAL;

    #[inline(always)]
    fn lane(cx: Cx, a: Self::A, b: Self::B, c: Self::C) -> Self::D {
        let one = |high| {
            let a = O::A::from_half(choose(cx.imm, a.word(), 0, high));
            let b = O::B::from_half(choose(cx.imm, b.word(), 1, high));
            let c = O::C::from_half(choose(cx.imm, c.word(), 2, high));
            O::lane(cx, a, b, c).half() as u32
        };
        Self::D::from_word(one(0) | one(1) << 16)
    }

    #[inline(always)]
    fn is_special(value: Self::D) -> bool {
        let word = value.word();
        O::is_special(O::D::from_half(word as u16)) | O::is_special(O::D::from_half((word >> 16) as u16))
    }

    #[inline(always)]
    fn special(cx: Cx, a: Self::A, b: Self::B, c: Self::C, raw: Self::D) -> Self::D {
        let one = |high: u32| {
            let raw = O::D::from_half((raw.word() >> (16 * high)) as u16);
            if !O::is_special(raw) {
                return raw.half() as u32;
            }
            let a = O::A::from_half(choose(cx.imm, a.word(), 0, high));
            let b = O::B::from_half(choose(cx.imm, b.word(), 1, high));
            let c = O::C::from_half(choose(cx.imm, c.word(), 2, high));
            O::special(cx, a, b, c, raw).half() as u32
        };
        Self::D::from_word(one(0) | one(1) << 16)
    }
}

macro_rules! packed {
    ($($name:literal => $op:ident::$type:ident $(, clamp $clamp:ident)? $(, soft $soft:ident)? $(, [$fits:ident])?;)*) => {
        /// The operations of this file.
        pub const TABLE: &[Entry] = &[
            $(
                Entry::new::<Packed<$op::$type>>(&[$name])
                    $(.clamp::<Packed<$op::$clamp>>())?
                    $(.soft(soft::$soft))?
                    $(.$fits())?,
            )*
        ];
    };
}

packed! {
    "v_pk_add_u16" => int16::AddU16, clamp AddClampU16;
    "v_pk_sub_u16" => int16::SubU16, clamp SubClampU16;
    "v_pk_add_i16" => int16::AddI16, clamp AddClampI16;
    "v_pk_sub_i16" => int16::SubI16, clamp SubClampI16;
    "v_pk_mul_lo_u16" => int16::MulLoU16, clamp MulLoClampU16;
    "v_pk_mad_u16" => int16::MadU16, clamp MadClampU16;
    "v_pk_mad_i16" => int16::MadI16, clamp MadClampI16;
    "v_pk_min_u16" => int16::MinU16, [fits];
    "v_pk_max_u16" => int16::MaxU16, [fits];
    "v_pk_min_i16" => int16::MinI16, [fits];
    "v_pk_max_i16" => int16::MaxI16, [fits];
    "v_pk_lshlrev_b16" => int16::LshlrevB16;
    "v_pk_lshrrev_b16" => int16::LshrrevB16;
    "v_pk_ashrrev_i16" => int16::AshrrevI16;
    "v_pk_add_f16" => float16::AddF16, soft add16;
    "v_pk_mul_f16" => float16::MulF16, soft mul16;
    "v_pk_fma_f16" => float16::FmaF16, soft fma16;
    "v_pk_fmac_f16" => float16::FmacF16, soft fma16;
    "v_pk_min_f16" => float16::MinF16;
    "v_pk_max_f16" => float16::MaxF16;
    "v_pk_min_num_f16" => float16::MinNumF16;
    "v_pk_max_num_f16" => float16::MaxNumF16;
    "v_pk_minimum_f16" => float16::MinimumF16;
    "v_pk_maximum_f16" => float16::MaximumF16;
}

//! Operations with absolute values and negations of their sources built in.
//!
//! The general path gives every operation these modifiers; the most frequent ones have handlers of their own.

use super::lane::{Buffer, CHUNK, Source};
use super::op::{Cx, Op};
use crate::cu::fidelity::Fidelity;
use crate::cu::level::Level;
use std::marker::PhantomData;

/// Immediate: absolute value by source, 3 bits.
pub const ABS: u32 = 0;
/// Immediate: negation by source, 3 bits.
pub const NEG: u32 = 3;

/// `O` with signs.
pub struct Signs<O>(PhantomData<O>);

/// Bits of the sign's word that stay, and bits to flip.
#[inline(always)]
fn masks(cx: Cx, index: u32) -> (u32, u32) {
    let bit = |field: u32| (cx.imm as u32 >> (field + index) & 1) << 31;
    (!bit(ABS), bit(NEG))
}

/// A source that can have signs.
pub trait Signed: Source {
    /// A copy of a chunk.
    type Copy;

    /// With absolute value and negation.
    fn signed(self, cx: Cx, index: u32) -> Self;

    /// A chunk with them.
    fn copy(chunk: Self::Chunk<'_>, cx: Cx, index: u32) -> Self::Copy;

    /// The copy as a chunk.
    fn chunk(copy: &Self::Copy) -> Self::Chunk<'_>;
}

impl Signed for () {
    type Copy = ();

    #[inline(always)]
    fn signed(self, _: Cx, _: u32) {}

    #[inline(always)]
    fn copy(_: (), _: Cx, _: u32) {}

    #[inline(always)]
    fn chunk(_: &()) {}
}

/// Words with the sign bit changed.
#[inline(always)]
fn signed_words(words: &[u32; CHUNK], cx: Cx, index: u32) -> [u32; CHUNK] {
    let (keep, flip) = masks(cx, index);
    let mut copy = [0; CHUNK];
    for lane in 0..CHUNK {
        copy[lane] = words[lane] & keep ^ flip;
    }
    copy
}

impl Signed for f32 {
    type Copy = [u32; CHUNK];

    #[inline(always)]
    fn signed(self, cx: Cx, index: u32) -> f32 {
        let (keep, flip) = masks(cx, index);
        f32::from_bits(self.to_bits() & keep ^ flip)
    }

    #[inline(always)]
    fn copy(chunk: &[u32; CHUNK], cx: Cx, index: u32) -> [u32; CHUNK] {
        signed_words(chunk, cx, index)
    }

    #[inline(always)]
    fn chunk(copy: &[u32; CHUNK]) -> &[u32; CHUNK] {
        copy
    }
}

impl Signed for f64 {
    type Copy = ([u32; CHUNK], [u32; CHUNK]);

    #[inline(always)]
    fn signed(self, cx: Cx, index: u32) -> f64 {
        let (keep, flip) = masks(cx, index);
        f64::from_bits(self.to_bits() & ((keep as u64) << 32 | 0xffff_ffff) ^ (flip as u64) << 32)
    }

    #[inline(always)]
    fn copy(chunk: Self::Chunk<'_>, cx: Cx, index: u32) -> Self::Copy {
        (*chunk.0, signed_words(chunk.1, cx, index))
    }

    #[inline(always)]
    fn chunk(copy: &Self::Copy) -> Self::Chunk<'_> {
        (&copy.0, &copy.1)
    }
}

impl<O: Op> Op for Signs<O>
where
    O::A: Signed,
    O::B: Signed,
    O::C: Signed,
{
    type A = O::A;
    type B = O::B;
    type C = O::C;
    type D = O::D;
    const FIDELITY: Fidelity = O::FIDELITY;
    const MODE: u32 = O::MODE;
    const SPECIAL: bool = O::SPECIAL;
    const HIDDEN: bool = O::HIDDEN;

    #[inline(always)]
    fn lane(cx: Cx, a: O::A, b: O::B, c: O::C) -> O::D {
        O::lane(cx, a.signed(cx, 0), b.signed(cx, 1), c.signed(cx, 2))
    }

    #[inline(always)]
    unsafe fn chunk<V: Level>(
        cx: Cx,
        a: <O::A as Source>::Chunk<'_>,
        b: <O::B as Source>::Chunk<'_>,
        c: <O::C as Source>::Chunk<'_>,
        out: &mut Buffer,
    ) -> bool {
        let (a, b, c) = (O::A::copy(a, cx, 0), O::B::copy(b, cx, 1), O::C::copy(c, cx, 2));
        // SAFETY: the caller vouches for the level.
        unsafe {
            O::chunk::<V>(
                cx,
                <O::A as Signed>::chunk(&a),
                <O::B as Signed>::chunk(&b),
                <O::C as Signed>::chunk(&c),
                out,
            )
        }
    }

    #[inline(always)]
    unsafe fn any_special<V: Level>(buffer: &Buffer) -> bool {
        // SAFETY: the caller vouches for buffer and level.
        unsafe { O::any_special::<V>(buffer) }
    }

    #[inline(always)]
    fn is_special(value: O::D) -> bool {
        O::is_special(value)
    }

    #[inline(always)]
    fn special(cx: Cx, a: O::A, b: O::B, c: O::C, raw: O::D) -> O::D {
        O::special(cx, a.signed(cx, 0), b.signed(cx, 1), c.signed(cx, 2), raw)
    }
}

//! Single precision arithmetic.

use super::define::{float_ops, lane, sources};
use super::lane::{Buffer, CHUNK, Source};
use super::nan::{Float, first_nan};
use super::op::{Cx, Op, mode};
use super::select::{max, max_nan, maximum, min, min_nan, minimum};
use super::signs::Signs;
use super::soft;
use super::table::Entry;
use crate::cu::fidelity::Fidelity;
use crate::cu::level::{self, Level};

/// A denormal becomes a zero of its sign.
#[inline(always)]
pub fn flush(value: f32) -> f32 {
    let bits = value.to_bits();
    f32::from_bits(if bits & 0x7f80_0000 == 0 { bits & 0x8000_0000 } else { bits })
}

/// Product and sum rounded apart, denormals flushed whatever MODE says (`v_mad_f32`, `v_mac_f32`).
#[inline(always)]
fn mad(a: f32, b: f32, c: f32) -> f32 {
    flush(flush(flush(a) * flush(b)) + flush(c))
}

/// `a * b` where zero times anything is zero (DX9 rules).
#[inline(always)]
fn mul_legacy(a: f32, b: f32) -> f32 {
    if a == 0.0 || b == 0.0 { 0.0 } else { a * b }
}

/// The number of the major axis's face: x 0, 1; y 2, 3; z 4, 5.
#[inline(always)]
fn cube_id(x: f32, y: f32, z: f32) -> f32 {
    if z.abs() >= x.abs() && z.abs() >= y.abs() {
        if z < 0.0 { 5.0 } else { 4.0 }
    } else if y.abs() >= x.abs() {
        if y < 0.0 { 3.0 } else { 2.0 }
    } else if x < 0.0 {
        1.0
    } else {
        0.0
    }
}

/// The S coordinate on that face.
#[inline(always)]
fn cube_s(x: f32, y: f32, z: f32) -> f32 {
    if z.abs() >= x.abs() && z.abs() >= y.abs() {
        if z < 0.0 { -x } else { x }
    } else if y.abs() >= x.abs() {
        x
    } else if x < 0.0 {
        z
    } else {
        -z
    }
}

/// The T coordinate on that face.
#[inline(always)]
fn cube_t(x: f32, y: f32, z: f32) -> f32 {
    if z.abs() >= x.abs() && z.abs() >= y.abs() {
        -y
    } else if y.abs() >= x.abs() {
        if y < 0.0 { -z } else { z }
    } else {
        -y
    }
}

/// Twice the coordinate on the major axis.
#[inline(always)]
fn cube_major(x: f32, y: f32, z: f32) -> f32 {
    if z.abs() >= x.abs() && z.abs() >= y.abs() {
        2.0 * z
    } else if y.abs() >= x.abs() {
        2.0 * y
    } else {
        2.0 * x
    }
}

/// `value * 2^exponent`, rounded once.
#[inline(always)]
pub fn ldexp(value: f32, exponent: i32) -> f32 {
    let exponent = exponent.clamp(-400, 400);
    let scale = f64::from_bits(((exponent + 1023) as u64) << 52);
    // Exact: the exponent of the product is within f64's.
    (value as f64 * scale) as f32
}

/// Exponent and mantissa of a number as `frexp` gives them: the mantissa in 0.5..1, both zero for zero.
#[inline(always)]
pub fn frexp(value: f32) -> (f32, i32) {
    // f64 holds every f32 as a normal number.
    let bits = (value as f64).to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32;
    let mantissa = f64::from_bits(bits & 0x800f_ffff_ffff_ffff | 0x3fe0_0000_0000_0000);
    if exponent == 0 { (value, 0) } else { (mantissa as f32, exponent - 1022) }
}

/// Largest f32 below 1.
const BELOW_ONE: f32 = f32::from_bits(0x3f7f_ffff);

/// The operations that levels have instructions for.
macro_rules! arithmetic {
    ($($op:ident($a:ident, $b:ident, $c:ident: $type:ty) $operation:ident $body:expr;)*) => {$(
        #[derive(Clone, Copy)]
        #[allow(missing_docs)]
        pub struct $op;

        impl Op for $op {
            type A = f32;
            type B = f32;
            type C = $type;
            type D = f32;
            const FIDELITY: Fidelity = Fidelity::Exact;
            const MODE: u32 = mode::<Self>();
            const SPECIAL: bool = true;

            #[inline(always)]
            fn lane(_: Cx, $a: f32, $b: f32, $c: $type) -> f32 {
                $body
            }

            #[inline(always)]
            unsafe fn chunk<V: Level>(
                _: Cx,
                a: &[u32; CHUNK],
                b: &[u32; CHUNK],
                c: <$type as Source>::Chunk<'_>,
                out: &mut Buffer,
            ) -> bool {
                // SAFETY: the caller vouches for the level.
                unsafe { V::arithmetic::<{ level::$operation }>(a, b, <$type as Third>::words(c, a), out.low_mut()) }
            }

            #[inline(always)]
            fn is_special(value: f32) -> bool {
                value.is_nan()
            }

            #[inline(always)]
            fn special(_: Cx, a: f32, b: f32, c: $type, _: f32) -> f32 {
                first_nan(a, b, c)
            }
        }
    )*};
}

/// The third source, where there is one.
trait Third: Source {
    /// Its words, or `other` where there is none.
    fn words<'a>(chunk: Self::Chunk<'a>, other: &'a [u32; CHUNK]) -> &'a [u32; CHUNK];
}

impl Third for f32 {
    #[inline(always)]
    fn words<'a>(chunk: &'a [u32; CHUNK], _: &'a [u32; CHUNK]) -> &'a [u32; CHUNK] {
        chunk
    }
}

impl Third for () {
    #[inline(always)]
    fn words<'a>(_: (), other: &'a [u32; CHUNK]) -> &'a [u32; CHUNK] {
        other
    }
}

arithmetic! {
    AddF32(a, b, _c: ()) ADD a + b;
    SubF32(a, b, _c: ()) SUB a - b;
    SubrevF32(a, b, _c: ()) SUBREV b - a;
    MulF32(a, b, _c: ()) MUL a * b;
    FmaF32(a, b, c: f32) FMA a.mul_add(b, c);
}

/// Sums, products and fused multiply-adds.
pub const ARITHMETIC: &[Entry] = &[
    Entry::new::<AddF32>(&["v_add_f32", "v_dual_add_f32"]).soft(soft::add32).signs::<Signs<AddF32>>(),
    Entry::new::<SubF32>(&["v_sub_f32", "v_dual_sub_f32"]).soft(soft::sub32).signs::<Signs<SubF32>>(),
    Entry::new::<SubrevF32>(&["v_subrev_f32", "v_dual_subrev_f32"]).soft(soft::subrev32).signs::<Signs<SubrevF32>>(),
    Entry::new::<MulF32>(&["v_mul_f32", "v_dual_mul_f32"]).soft(soft::mul32).signs::<Signs<MulF32>>(),
    Entry::new::<FmaF32>(&[
        "v_fma_f32",
        "v_fmac_f32",
        "v_fmaak_f32",
        "v_fmamk_f32",
        "v_dual_fma_f32",
        "v_dual_fmac_f32",
        "v_dual_fmaak_f32",
        "v_dual_fmamk_f32",
    ])
    .soft(soft::fma32)
    .signs::<Signs<FmaF32>>(),
];

float_ops! {
    MulLegacyF32 = v_mul_legacy_f32 v_mul_dx9_zero_f32 v_dual_mul_dx9_zero_f32 [_cx](a: f32, b: f32) -> f32 {
        mul_legacy(a, b)
    } .soft(soft::mul_legacy32)
    FmaLegacyF32 = v_fma_legacy_f32 v_fma_dx9_zero_f32 v_fmac_legacy_f32 v_fmac_dx9_zero_f32
        [_cx](a: f32, b: f32, c: f32) -> f32 {
        if a == 0.0 || b == 0.0 { c } else { a.mul_add(b, c) }
    } .soft(soft::fma_legacy32)
    MadF32 = v_mad_f32 v_mac_f32 v_madak_f32 v_madmk_f32 [_cx](a: f32, b: f32, c: f32) -> f32 { mad(a, b, c) }
        .soft(soft::mad32)
    MadLegacyF32 = v_mad_legacy_f32 v_mac_legacy_f32 [_cx](a: f32, b: f32, c: f32) -> f32 {
        flush(flush(mul_legacy(flush(a), flush(b))) + flush(c))
    } .soft(soft::mad_legacy32)

    MinF32 = v_min_f32 v_dual_min_f32 [cx](a: f32, b: f32) -> f32 { min(a, b) } => nan { min_nan(cx.ieee, a, b) }
        .signs::<Signs<MinF32>>()
    MaxF32 = v_max_f32 v_dual_max_f32 [cx](a: f32, b: f32) -> f32 { max(a, b) } => nan { max_nan(cx.ieee, a, b) }
        .signs::<Signs<MaxF32>>()
    MinNumF32 = v_min_num_f32 v_dual_min_num_f32 [cx](a: f32, b: f32) -> f32 { min(a, b) } => nan { min_nan(false, a, b) }
    MaxNumF32 = v_max_num_f32 v_dual_max_num_f32 [cx](a: f32, b: f32) -> f32 { max(a, b) } => nan { max_nan(false, a, b) }
    Min3F32 = v_min3_f32 [cx](a: f32, b: f32, c: f32) -> f32 { min(min(a, b), c) } => nan {
        min_nan(cx.ieee, min_nan(cx.ieee, a, b), c)
    }
    Max3F32 = v_max3_f32 [cx](a: f32, b: f32, c: f32) -> f32 { max(max(a, b), c) } => nan {
        max_nan(cx.ieee, max_nan(cx.ieee, a, b), c)
    }
    Min3NumF32 = v_min3_num_f32 [cx](a: f32, b: f32, c: f32) -> f32 { min(min(a, b), c) } => nan {
        min_nan(false, min_nan(false, a, b), c)
    }
    Max3NumF32 = v_max3_num_f32 [cx](a: f32, b: f32, c: f32) -> f32 { max(max(a, b), c) } => nan {
        max_nan(false, max_nan(false, a, b), c)
    }
    Med3F32 = v_med3_f32 [cx](a: f32, b: f32, c: f32) -> f32 { max(min(max(a, b), c), min(a, b)) } => nan {
        min_nan(cx.ieee, min_nan(cx.ieee, a, b), c)
    }
    Med3NumF32 = v_med3_num_f32 [cx](a: f32, b: f32, c: f32) -> f32 { max(min(max(a, b), c), min(a, b)) } => nan {
        min_nan(false, min_nan(false, a, b), c)
    }
    MaxminF32 = v_maxmin_f32 [cx](a: f32, b: f32, c: f32) -> f32 { min(max(a, b), c) } => nan {
        min_nan(cx.ieee, max_nan(cx.ieee, a, b), c)
    }
    MinmaxF32 = v_minmax_f32 [cx](a: f32, b: f32, c: f32) -> f32 { max(min(a, b), c) } => nan {
        max_nan(cx.ieee, min_nan(cx.ieee, a, b), c)
    }
    MaxminNumF32 = v_maxmin_num_f32 [cx](a: f32, b: f32, c: f32) -> f32 { min(max(a, b), c) } => nan {
        min_nan(false, max_nan(false, a, b), c)
    }
    MinmaxNumF32 = v_minmax_num_f32 [cx](a: f32, b: f32, c: f32) -> f32 { max(min(a, b), c) } => nan {
        max_nan(false, min_nan(false, a, b), c)
    }
    MinimumF32 = v_minimum_f32 [_cx](a: f32, b: f32) -> f32 { minimum(a, b) }
    MaximumF32 = v_maximum_f32 [_cx](a: f32, b: f32) -> f32 { maximum(a, b) }
    Minimum3F32 = v_minimum3_f32 [_cx](a: f32, b: f32, c: f32) -> f32 { minimum(minimum(a, b), c) }
    Maximum3F32 = v_maximum3_f32 [_cx](a: f32, b: f32, c: f32) -> f32 { maximum(maximum(a, b), c) }
    MinimummaximumF32 = v_minimummaximum_f32 [_cx](a: f32, b: f32, c: f32) -> f32 { maximum(minimum(a, b), c) }
    MaximumminimumF32 = v_maximumminimum_f32 [_cx](a: f32, b: f32, c: f32) -> f32 { minimum(maximum(a, b), c) }

    TruncF32 = v_trunc_f32 [_cx hidden](a: f32) -> f32 { a.trunc() }
    CeilF32 = v_ceil_f32 [_cx hidden](a: f32) -> f32 { a.ceil() }
    FloorF32 = v_floor_f32 [_cx hidden](a: f32) -> f32 { a.floor() }
    RndneF32 = v_rndne_f32 [_cx hidden](a: f32) -> f32 { a.round_ties_even() }
    FractF32 = v_fract_f32 [_cx](a: f32) -> f32 {
        let fraction = a - a.floor();
        // A tiny negative number's fraction rounds to 1.
        if fraction >= 1.0 { BELOW_ONE } else { fraction }
    }
    LdexpF32 = v_ldexp_f32 [_cx](a: f32, b: i32) -> f32 { ldexp(a, b) } .soft(soft::ldexp32)
    FrexpMantF32 = v_frexp_mant_f32 [_cx](a: f32) -> f32 { if a.is_finite() { frexp(a).0 } else { a } }

    MullitF32 = v_mullit_f32 [_cx](a: f32, b: f32, c: f32) -> f32 {
        // The lowest number where the light does not reach; NaNs of the product are quieted as always.
        if b > f32::MIN && c > 0.0 { a * b } else { f32::MIN }
    }
    CubeidF32 = v_cubeid_f32 [_cx](a: f32, b: f32, c: f32) -> f32 { cube_id(a, b, c) }
    CubescF32 = v_cubesc_f32 [_cx](a: f32, b: f32, c: f32) -> f32 { cube_s(a, b, c) }
    CubetcF32 = v_cubetc_f32 [_cx](a: f32, b: f32, c: f32) -> f32 { cube_t(a, b, c) }
    CubemaF32 = v_cubema_f32 [_cx](a: f32, b: f32, c: f32) -> f32 { cube_major(a, b, c) }
}

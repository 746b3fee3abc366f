//! Vector widths of the host, chosen once at run time.
//!
//! Handlers are generic over a [`Level`] and the wave size, written as plain loops over rows, and instantiated inside
//! functions with the matching `#[target_feature]`, where the compiler vectorises them. The results are the same bits
//! on every level.

use std::mem::MaybeUninit;

/// What the host's processor can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostLevel {
    /// x86-64 baseline, or another architecture.
    Base,
    /// AVX2, FMA, F16C, BMI2.
    Avx2,
    /// AVX-512 F, BW, DQ, VL besides.
    Avx512,
}

impl HostLevel {
    /// The best level of this host.
    pub fn detect() -> HostLevel {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("f16c")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("lzcnt")
                && is_x86_feature_detected!("popcnt");
            let avx512 = avx2
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl");
            if avx512 {
                return HostLevel::Avx512;
            }
            if avx2 {
                return HostLevel::Avx2;
            }
        }
        HostLevel::Base
    }

    /// The levels that this host has.
    pub fn available() -> impl Iterator<Item = HostLevel> {
        let best = HostLevel::detect();
        [HostLevel::Base, HostLevel::Avx2, HostLevel::Avx512].into_iter().filter(move |level| *level <= best)
    }
}

impl std::fmt::Display for HostLevel {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(match self {
            HostLevel::Base => "baseline",
            HostLevel::Avx2 => "AVX2",
            HostLevel::Avx512 => "AVX-512",
        })
    }
}

/// What handlers of one [`HostLevel`] do with intrinsics rather than leave to the compiler. All of it works on rows of
/// 32 words.
pub trait Level: Copy + 'static {
    /// The sign bits of the words, word 0 in bit 0.
    ///
    /// # Safety
    /// The host has what the level needs.
    unsafe fn sign_mask(words: &[u32; 32]) -> u32;

    /// Writes the words whose bit in `active` is set; `row` is all ones in the same places.
    ///
    /// # Safety
    /// The host has what the level needs.
    unsafe fn store_active(words: &[u32; 32], dst: &mut [u32; 32], active: u32, row: &[u32; 32]);

    /// Whether a word's bits in `mask`, which is less than 2^31, are more than `limit` as a number.
    ///
    /// # Safety
    /// The host has what the level needs.
    unsafe fn any_above(words: &[u32; 32], mask: u32, limit: u32) -> bool;

    /// `values << shift | old & keep`, word by word.
    ///
    /// # Safety
    /// The host has what the level needs.
    #[inline(always)]
    unsafe fn place(values: &[u32; 32], old: &[u32; 32], shift: u32, keep: u32) -> [u32; 32] {
        let mut merged = [0; 32];
        for lane in 0..32 {
            merged[lane] = values[lane] << (shift & 31) | old[lane] & keep;
        }
        merged
    }

    /// f32 arithmetic, one rounding; false where the level leaves it to the compiler.
    ///
    /// # Safety
    /// The host has what the level needs.
    #[inline(always)]
    unsafe fn arithmetic<const OPERATION: u8>(
        a: &[u32; 32],
        b: &[u32; 32],
        c: &[u32; 32],
        out: &mut [MaybeUninit<u32>; 32],
    ) -> bool {
        let _ = (a, b, c, out);
        false
    }

    /// Fills a row with one value, in stores as wide as the loads that follow.
    ///
    /// # Safety
    /// The host has what the level needs.
    unsafe fn broadcast(row: &mut [u32; 64], value: u32);
}

/// Operations of [`Level::arithmetic`]: `a + b`.
pub const ADD: u8 = 0;
/// `a - b`.
pub const SUB: u8 = 1;
/// `b - a`.
pub const SUBREV: u8 = 2;
/// `a * b`.
pub const MUL: u8 = 3;
/// `a * b + c`.
pub const FMA: u8 = 4;

/// [`HostLevel::Base`].
#[derive(Clone, Copy)]
pub struct Base;

impl Level for Base {
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn sign_mask(words: &[u32; 32]) -> u32 {
        use std::arch::x86_64::*;
        let mut mask = 0;
        for (part, words) in words.chunks_exact(4).enumerate() {
            // SAFETY: SSE2 is part of x86-64; the chunk is 16 bytes.
            let bits = unsafe { _mm_movemask_ps(_mm_castsi128_ps(_mm_loadu_si128(words.as_ptr().cast()))) };
            mask |= (bits as u32) << (4 * part);
        }
        mask
    }

    #[cfg(not(target_arch = "x86_64"))]
    #[inline(always)]
    unsafe fn sign_mask(words: &[u32; 32]) -> u32 {
        words.iter().enumerate().fold(0, |mask, (lane, word)| mask | (word >> 31) << lane)
    }

    #[inline(always)]
    unsafe fn store_active(words: &[u32; 32], dst: &mut [u32; 32], _: u32, row: &[u32; 32]) {
        // Into an array of its own first, so that the compiler need not ask whether the rows overlap.
        let mut merged = [0; 32];
        for lane in 0..32 {
            merged[lane] = words[lane] & row[lane] | dst[lane] & !row[lane];
        }
        *dst = merged;
    }

    #[inline(always)]
    unsafe fn any_above(words: &[u32; 32], mask: u32, limit: u32) -> bool {
        // The sign of the difference says so.
        words.iter().fold(0, |any, word| any | limit.wrapping_sub(word & mask)) >> 31 != 0
    }

    #[inline(never)]
    unsafe fn broadcast(row: &mut [u32; 64], value: u32) {
        *row = [value; 64];
    }
}

/// [`HostLevel::Avx2`].
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub struct Avx2;

#[cfg(target_arch = "x86_64")]
impl Level for Avx2 {
    #[inline(always)]
    unsafe fn sign_mask(words: &[u32; 32]) -> u32 {
        use std::arch::x86_64::*;
        let mut mask = 0;
        for (part, words) in words.chunks_exact(8).enumerate() {
            // SAFETY: the host has AVX2; the chunk is 32 bytes.
            let bits = unsafe { _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_loadu_si256(words.as_ptr().cast()))) };
            mask |= (bits as u32) << (8 * part);
        }
        mask
    }

    #[inline(always)]
    unsafe fn store_active(words: &[u32; 32], dst: &mut [u32; 32], _: u32, row: &[u32; 32]) {
        use std::arch::x86_64::*;
        for part in (0..32).step_by(8) {
            // SAFETY: the host has AVX2; each part is 32 bytes.
            unsafe {
                let new = _mm256_loadu_ps(words[part..].as_ptr().cast());
                let old = _mm256_loadu_ps(dst[part..].as_ptr().cast());
                let row = _mm256_loadu_ps(row[part..].as_ptr().cast());
                _mm256_storeu_ps(dst[part..].as_mut_ptr().cast(), _mm256_blendv_ps(old, new, row));
            }
        }
    }

    #[inline(always)]
    unsafe fn any_above(words: &[u32; 32], mask: u32, limit: u32) -> bool {
        use std::arch::x86_64::*;
        // SAFETY: the host has AVX2; each chunk is 32 bytes.
        unsafe {
            let (mask, limit) = (_mm256_set1_epi32(mask as i32), _mm256_set1_epi32(limit as i32));
            let mut any = _mm256_setzero_si256();
            for words in words.chunks_exact(8) {
                let bits = _mm256_and_si256(_mm256_loadu_si256(words.as_ptr().cast()), mask);
                any = _mm256_or_si256(any, _mm256_cmpgt_epi32(bits, limit));
            }
            _mm256_testz_si256(any, any) == 0
        }
    }

    #[inline(always)]
    unsafe fn place(values: &[u32; 32], old: &[u32; 32], shift: u32, keep: u32) -> [u32; 32] {
        use std::arch::x86_64::*;
        let mut merged = [0; 32];
        for part in (0..32).step_by(8) {
            // SAFETY: the host has the instructions; each part is a vector.
            unsafe {
                let new = _mm256_sll_epi32(
                    _mm256_loadu_si256(values[part..].as_ptr().cast()),
                    _mm_cvtsi32_si128(shift as i32),
                );
                let old =
                    _mm256_and_si256(_mm256_loadu_si256(old[part..].as_ptr().cast()), _mm256_set1_epi32(keep as i32));
                _mm256_storeu_si256(merged[part..].as_mut_ptr().cast(), _mm256_or_si256(new, old));
            }
        }
        merged
    }

    #[inline(always)]
    unsafe fn arithmetic<const OPERATION: u8>(
        a: &[u32; 32],
        b: &[u32; 32],
        c: &[u32; 32],
        out: &mut [MaybeUninit<u32>; 32],
    ) -> bool {
        use std::arch::x86_64::*;
        for part in (0..32).step_by(8) {
            // SAFETY: the host has the instructions; each part is a vector.
            unsafe {
                let a = _mm256_loadu_ps(a[part..].as_ptr().cast());
                let b = _mm256_loadu_ps(b[part..].as_ptr().cast());
                let result = match OPERATION {
                    ADD => _mm256_add_ps(a, b),
                    SUB => _mm256_sub_ps(a, b),
                    SUBREV => _mm256_sub_ps(b, a),
                    MUL => _mm256_mul_ps(a, b),
                    _ => _mm256_fmadd_ps(a, b, _mm256_loadu_ps(c[part..].as_ptr().cast())),
                };
                _mm256_storeu_ps(out[part..].as_mut_ptr().cast(), result);
            }
        }
        true
    }

    #[inline(always)]
    unsafe fn broadcast(row: &mut [u32; 64], value: u32) {
        #[inline(never)]
        #[target_feature(enable = "avx2")]
        fn fill(row: &mut [u32; 64], value: u32) {
            *row = [value; 64];
        }
        // SAFETY: the host has AVX2.
        unsafe { fill(row, value) }
    }
}

/// [`HostLevel::Avx512`].
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub struct Avx512;

#[cfg(target_arch = "x86_64")]
impl Level for Avx512 {
    #[inline(always)]
    unsafe fn sign_mask(words: &[u32; 32]) -> u32 {
        use std::arch::x86_64::*;
        let (low, high) = words.split_at(16);
        // SAFETY: the host has AVX-512 F and DQ; each half is 64 bytes.
        unsafe {
            let low = _mm512_movepi32_mask(_mm512_loadu_si512(low.as_ptr().cast()));
            let high = _mm512_movepi32_mask(_mm512_loadu_si512(high.as_ptr().cast()));
            low as u32 | (high as u32) << 16
        }
    }

    #[inline(always)]
    unsafe fn store_active(words: &[u32; 32], dst: &mut [u32; 32], active: u32, _: &[u32; 32]) {
        use std::arch::x86_64::*;
        // Blending and storing all of it, as a masked store is not forwarded to the loads that follow.
        for part in [0, 16] {
            // SAFETY: the host has AVX-512 F; each part is 64 bytes.
            unsafe {
                let new = _mm512_loadu_si512(words[part..].as_ptr().cast());
                let old = _mm512_loadu_si512(dst[part..].as_ptr().cast());
                let merged = _mm512_mask_blend_epi32((active >> part) as u16, old, new);
                _mm512_storeu_si512(dst[part..].as_mut_ptr().cast(), merged);
            }
        }
    }

    #[inline(always)]
    unsafe fn any_above(words: &[u32; 32], mask: u32, limit: u32) -> bool {
        use std::arch::x86_64::*;
        // SAFETY: the host has AVX-512 F; each chunk is 64 bytes.
        unsafe {
            let (mask, limit) = (_mm512_set1_epi32(mask as i32), _mm512_set1_epi32(limit as i32));
            let mut any = 0;
            for words in words.chunks_exact(16) {
                let bits = _mm512_and_si512(_mm512_loadu_si512(words.as_ptr().cast()), mask);
                any |= _mm512_cmpgt_epi32_mask(bits, limit);
            }
            any != 0
        }
    }

    #[inline(always)]
    unsafe fn place(values: &[u32; 32], old: &[u32; 32], shift: u32, keep: u32) -> [u32; 32] {
        use std::arch::x86_64::*;
        let mut merged = [0; 32];
        for part in (0..32).step_by(16) {
            // SAFETY: the host has the instructions; each part is a vector.
            unsafe {
                let new = _mm512_sll_epi32(
                    _mm512_loadu_si512(values[part..].as_ptr().cast()),
                    _mm_cvtsi32_si128(shift as i32),
                );
                let old =
                    _mm512_and_si512(_mm512_loadu_si512(old[part..].as_ptr().cast()), _mm512_set1_epi32(keep as i32));
                _mm512_storeu_si512(merged[part..].as_mut_ptr().cast(), _mm512_or_si512(new, old));
            }
        }
        merged
    }

    #[inline(always)]
    unsafe fn arithmetic<const OPERATION: u8>(
        a: &[u32; 32],
        b: &[u32; 32],
        c: &[u32; 32],
        out: &mut [MaybeUninit<u32>; 32],
    ) -> bool {
        use std::arch::x86_64::*;
        for part in (0..32).step_by(16) {
            // SAFETY: the host has the instructions; each part is a vector.
            unsafe {
                let a = _mm512_loadu_ps(a[part..].as_ptr().cast());
                let b = _mm512_loadu_ps(b[part..].as_ptr().cast());
                let result = match OPERATION {
                    ADD => _mm512_add_ps(a, b),
                    SUB => _mm512_sub_ps(a, b),
                    SUBREV => _mm512_sub_ps(b, a),
                    MUL => _mm512_mul_ps(a, b),
                    _ => _mm512_fmadd_ps(a, b, _mm512_loadu_ps(c[part..].as_ptr().cast())),
                };
                _mm512_storeu_ps(out[part..].as_mut_ptr().cast(), result);
            }
        }
        true
    }

    #[inline(always)]
    unsafe fn broadcast(row: &mut [u32; 64], value: u32) {
        #[inline(never)]
        #[target_feature(enable = "avx512f")]
        fn fill(row: &mut [u32; 64], value: u32) {
            *row = [value; 64];
        }
        // SAFETY: the host has AVX-512 F.
        unsafe { fill(row, value) }
    }
}

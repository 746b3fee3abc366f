//! Vector widths of the host, chosen once at run time.
//!
//! Handlers are generic over a [`Level`] and the wave size, written as plain loops over rows, and instantiated inside
//! functions with the matching `#[target_feature]`, where the compiler vectorises them. The results are the same bits
//! on every level.

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
}

/// What handlers of one [`HostLevel`] do with intrinsics rather than leave to the compiler.
pub trait Level: Copy + 'static {
    /// The sign bits of 32 words, word 0 in bit 0.
    ///
    /// # Safety
    /// The host has what the level needs.
    unsafe fn sign_mask(words: &[u32; 32]) -> u32;

    /// Fills a row with one value, in stores as wide as the loads that follow.
    ///
    /// # Safety
    /// The host has what the level needs.
    unsafe fn broadcast(row: &mut [u32; 64], value: u32);
}

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

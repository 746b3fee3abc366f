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

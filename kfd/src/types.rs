//! A type for each kind of number that can be mixed up.

use std::fmt;

/// Bytes of a page of the GPU's page tables, and of the host's: other host page sizes are refused.
pub const PAGE_SIZE: u64 = 4096;

/// `bytes` rounded up to whole pages. None when that does not fit 64 bits.
pub const fn page_up(bytes: u64) -> Option<u64> {
    bytes.checked_next_multiple_of(PAGE_SIZE)
}

/// An address in the GPU's virtual address space, which is the host's: a buffer has the same address on both sides.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GpuVa(pub u64);

impl GpuVa {
    /// The address `bytes` further. None past the end of the address space.
    pub const fn offset(self, bytes: u64) -> Option<GpuVa> {
        match self.0.checked_add(bytes) {
            Some(va) => Some(GpuVa(va)),
            None => None,
        }
    }
}

impl fmt::Display for GpuVa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::Debug for GpuVa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GpuVa({:#x})", self.0)
    }
}

macro_rules! id {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

id! {
    /// The kernel's number of a GPU, from `nodes/N/gpu_id`; never 0.
    GpuId
}
id! {
    /// A queue within the process, from 0.
    QueueId
}
id! {
    /// An event within the process.
    EventId
}

/// A GPU architecture: `gfx_target_version`, and the name LLVM has for it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GfxTarget {
    version: u32,
}

impl GfxTarget {
    /// From `gfx_target_version`: major × 10000 + minor × 100 + stepping. None when it is 0 or when minor or stepping
    /// do not fit the one hexadecimal digit each has in the name.
    pub const fn from_version(version: u32) -> Option<GfxTarget> {
        let target = GfxTarget { version };
        if target.major() == 0 || target.minor() > 15 || target.stepping() > 15 { None } else { Some(target) }
    }

    /// From a name such as `gfx90a`: the last two digits are hexadecimal, the ones before them decimal.
    pub fn from_name(name: &str) -> Option<GfxTarget> {
        let digits = name.strip_prefix("gfx")?;
        if !digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)) {
            return None;
        }
        let (major, rest) = digits.split_at_checked(digits.len().checked_sub(2)?)?;
        let major: u32 = major.parse().ok()?;
        let rest = u32::from_str_radix(rest, 16).ok()?;
        let version = major.checked_mul(10000)?.checked_add((rest >> 4) * 100 + (rest & 15))?;
        GfxTarget::from_version(version).filter(|target| target.to_string() == name)
    }

    /// `gfx_target_version`.
    pub const fn version(self) -> u32 {
        self.version
    }

    /// Major version, such as 9 or 11.
    pub const fn major(self) -> u32 {
        self.version / 10000
    }

    /// Minor version.
    pub const fn minor(self) -> u32 {
        self.version / 100 % 100
    }

    /// Stepping.
    pub const fn stepping(self) -> u32 {
        self.version % 100
    }
}

impl fmt::Display for GfxTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gfx{}{:x}{:x}", self.major(), self.minor(), self.stepping())
    }
}

impl fmt::Debug for GfxTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn targets() {
        let cases = [
            (90000, "gfx900"),
            (90006, "gfx906"),
            (90010, "gfx90a"),
            (90402, "gfx942"),
            (90500, "gfx950"),
            (100306, "gfx1036"),
            (110000, "gfx1100"),
            (110501, "gfx1151"),
            (120001, "gfx1201"),
        ];
        for (version, name) in cases {
            let target = GfxTarget::from_version(version).unwrap();
            assert_eq!(target.to_string(), name);
            assert_eq!(GfxTarget::from_name(name), Some(target));
        }
        for version in [0, 9999, 91600, 90016] {
            assert_eq!(GfxTarget::from_version(version), None, "{version}");
        }
        for name in ["", "gfx", "gfx9", "gfx00", "gfx90A", "gfx90g", "gfx0900", "gfx+900", "gfx99999999900", "gfx9é"] {
            assert_eq!(GfxTarget::from_name(name), None, "{name}");
        }
    }

    proptest! {
        #[test]
        fn any_name_is_handled(name: String) {
            let _ = GfxTarget::from_name(&name);
            let _ = GfxTarget::from_name(&format!("gfx{name}"));
        }

        #[test]
        fn version_and_name_are_one(version: u32) {
            if let Some(target) = GfxTarget::from_version(version) {
                prop_assert_eq!(GfxTarget::from_name(&target.to_string()), Some(target));
            }
        }
    }

    #[test]
    fn rounding() {
        assert_eq!((page_up(0), page_up(1), page_up(4096)), (Some(0), Some(4096), Some(4096)));
        assert_eq!(page_up(u64::MAX), None);
        assert_eq!(GpuVa(u64::MAX).offset(1), None);
    }
}

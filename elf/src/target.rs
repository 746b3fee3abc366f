//! Processors and target ids (LLVM AMDGPUUsage: "Processors", "Target ID", "ELF e_flags").

use std::fmt;
use std::str::FromStr;

use crate::error::shown;

/// Processors that share the layout rules of kernel descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Generation {
    /// Southern Islands.
    Gfx6,
    /// Sea Islands.
    Gfx7,
    /// Volcanic Islands.
    Gfx8,
    /// Vega, and CDNA up to gfx908.
    Gfx9,
    /// gfx90a: unified VGPRs and accumulation VGPRs.
    Gfx90a,
    /// gfx940 to gfx950: as gfx90a, with architected flat scratch.
    Gfx940,
    /// RDNA and RDNA2.
    Gfx10,
    /// RDNA3.
    Gfx11,
    /// RDNA4.
    Gfx12,
    /// gfx1250 and gfx1251.
    Gfx1250,
}

impl Generation {
    /// The hardware sets up FLAT_SCRATCH itself; no private segment buffer in SGPRs.
    pub fn has_architected_flat_scratch(self) -> bool {
        self >= Generation::Gfx11 || self == Generation::Gfx940
    }

    /// Vector and accumulation registers are one file.
    pub fn has_unified_vgprs(self) -> bool {
        matches!(self, Generation::Gfx90a | Generation::Gfx940)
    }

    /// Kernel arguments can be preloaded to SGPRs.
    pub fn has_kernarg_preload(self) -> bool {
        matches!(self, Generation::Gfx90a | Generation::Gfx940 | Generation::Gfx1250)
    }
}

/// A processor, or a generic processor that stands for several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processor {
    /// Name, as `-mcpu` takes it.
    pub name: &'static str,
    /// `EF_AMDGPU_MACH`: bits 0-7 of `e_flags`.
    pub mach: u8,
    /// Which rules it follows.
    pub generation: Generation,
    /// Code is compiled for page fault retry on or off.
    pub has_xnack: bool,
    /// Code is compiled for on-chip memory with or without ECC.
    pub has_sramecc: bool,
}

use Generation::{Gfx6, Gfx7, Gfx8, Gfx9, Gfx10, Gfx11, Gfx12, Gfx90a, Gfx940, Gfx1250};

/// The processors this crate knows, family by family.
#[rustfmt::skip]
pub const PROCESSORS: [Processor; 55] = [
    plain("gfx600", 0x20, Gfx6),            plain("gfx601", 0x21, Gfx6),            plain("gfx602", 0x3a, Gfx6),
    plain("gfx700", 0x22, Gfx7),            plain("gfx701", 0x23, Gfx7),            plain("gfx702", 0x24, Gfx7),
    plain("gfx703", 0x25, Gfx7),            plain("gfx704", 0x26, Gfx7),            plain("gfx705", 0x3b, Gfx7),
    xnack("gfx801", 0x28, Gfx8),            plain("gfx802", 0x29, Gfx8),            plain("gfx803", 0x2a, Gfx8),
    plain("gfx805", 0x3c, Gfx8),            xnack("gfx810", 0x2b, Gfx8),
    xnack("gfx900", 0x2c, Gfx9),            xnack("gfx902", 0x2d, Gfx9),            xnack("gfx904", 0x2e, Gfx9),
    both("gfx906", 0x2f, Gfx9),             both("gfx908", 0x30, Gfx9),             xnack("gfx909", 0x31, Gfx9),
    xnack("gfx90c", 0x32, Gfx9),            xnack("gfx9-generic", 0x51, Gfx9),
    both("gfx90a", 0x3f, Gfx90a),
    both("gfx940", 0x40, Gfx940),           both("gfx941", 0x4b, Gfx940),           both("gfx942", 0x4c, Gfx940),
    both("gfx950", 0x4f, Gfx940),           both("gfx9-4-generic", 0x5f, Gfx940),
    xnack("gfx1010", 0x33, Gfx10),          xnack("gfx1011", 0x34, Gfx10),          xnack("gfx1012", 0x35, Gfx10),
    xnack("gfx1013", 0x42, Gfx10),          xnack("gfx10-1-generic", 0x52, Gfx10),
    plain("gfx1030", 0x36, Gfx10),          plain("gfx1031", 0x37, Gfx10),          plain("gfx1032", 0x38, Gfx10),
    plain("gfx1033", 0x39, Gfx10),          plain("gfx1034", 0x3e, Gfx10),          plain("gfx1035", 0x3d, Gfx10),
    plain("gfx1036", 0x45, Gfx10),          plain("gfx10-3-generic", 0x53, Gfx10),
    plain("gfx1100", 0x41, Gfx11),          plain("gfx1101", 0x46, Gfx11),          plain("gfx1102", 0x47, Gfx11),
    plain("gfx1103", 0x44, Gfx11),          plain("gfx1150", 0x43, Gfx11),          plain("gfx1151", 0x4a, Gfx11),
    plain("gfx1152", 0x55, Gfx11),          plain("gfx1153", 0x58, Gfx11),          plain("gfx11-generic", 0x54, Gfx11),
    plain("gfx1200", 0x48, Gfx12),          plain("gfx1201", 0x4e, Gfx12),          plain("gfx12-generic", 0x59, Gfx12),
    both("gfx1250", 0x49, Gfx1250),         both("gfx1251", 0x5a, Gfx1250),
];

/// Members of the generic processors.
const GENERICS: [(&str, &[&str]); 6] = [
    ("gfx9-generic", &["gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"]),
    ("gfx9-4-generic", &["gfx942", "gfx950"]),
    ("gfx10-1-generic", &["gfx1010", "gfx1011", "gfx1012", "gfx1013"]),
    ("gfx10-3-generic", &["gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"]),
    ("gfx11-generic", &["gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153"]),
    ("gfx12-generic", &["gfx1200", "gfx1201"]),
];

/// The version of its generic processor in which a member was added: 1 for all of them so far.
const GENERIC_VERSION_OF_MEMBERS: u8 = 1;

const fn plain(name: &'static str, mach: u8, generation: Generation) -> Processor {
    Processor { name, mach, generation, has_xnack: false, has_sramecc: false }
}

const fn xnack(name: &'static str, mach: u8, generation: Generation) -> Processor {
    Processor { name, mach, generation, has_xnack: true, has_sramecc: false }
}

const fn both(name: &'static str, mach: u8, generation: Generation) -> Processor {
    Processor { name, mach, generation, has_xnack: true, has_sramecc: true }
}

impl Processor {
    /// The processor with this name.
    pub fn by_name(name: &str) -> Option<&'static Processor> {
        PROCESSORS.iter().find(|p| p.name == name)
    }

    /// The processor with this `EF_AMDGPU_MACH`.
    pub fn by_mach(mach: u8) -> Option<&'static Processor> {
        PROCESSORS.iter().find(|p| p.mach == mach)
    }

    /// The processor with this `gfx_target_version`, as the kernel's topology gives it: major × 10000 + minor × 100 +
    /// stepping.
    pub fn by_gfx_target_version(version: u32) -> Option<&'static Processor> {
        PROCESSORS.iter().find(|p| p.gfx_target_version() == Some(version))
    }

    /// The inverse of [`Processor::by_gfx_target_version`]; none for a generic processor.
    pub fn gfx_target_version(&self) -> Option<u32> {
        let digits = self.name.strip_prefix("gfx").filter(|d| d.is_ascii() && d.len() > 2)?;
        let (major, rest) = digits.split_at(digits.len() - 2);
        let major: u32 = major.parse().ok()?;
        let (minor, stepping) = rest.split_at(1);
        Some(major * 10_000 + u32::from_str_radix(minor, 16).ok()? * 100 + u32::from_str_radix(stepping, 16).ok()?)
    }

    /// Whether the name stands for several processors.
    pub fn is_generic(&self) -> bool {
        self.name.ends_with("-generic")
    }

    /// The generic processor whose code this one runs.
    pub fn generic(&self) -> Option<&'static Processor> {
        GENERICS.iter().find(|(_, members)| members.contains(&self.name)).and_then(|(name, _)| Processor::by_name(name))
    }
}

/// Setting of a target feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// The processor does not have it.
    Unsupported,
    /// The code runs with either setting.
    Any,
    /// Off.
    Off,
    /// On.
    On,
}

impl Feature {
    /// The two-bit coding of `e_flags`, from code object V4.
    pub(crate) fn from_bits(bits: u32) -> Feature {
        match bits & 3 {
            0 => Feature::Unsupported,
            1 => Feature::Any,
            2 => Feature::Off,
            _ => Feature::On,
        }
    }

    /// Name for messages.
    pub fn name(self) -> &'static str {
        match self {
            Feature::Unsupported => "unsupported",
            Feature::Any => "any",
            Feature::Off => "off",
            Feature::On => "on",
        }
    }
}

/// What code is compiled for, or what a device is: a processor and the settings of its features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetId {
    /// The processor.
    pub processor: &'static Processor,
    /// SRAM ECC.
    pub sramecc: Feature,
    /// XNACK: page fault retry.
    pub xnack: Feature,
    /// Version of a generic processor, 1 to 255; 0 for any other.
    pub generic_version: u8,
}

impl TargetId {
    /// A device's target id: both features have a setting where the processor has them, and the settings of features
    /// it lacks are ignored.
    pub fn of_device(processor: &'static Processor, sramecc: bool, xnack: bool) -> TargetId {
        let setting = |has, on| match (has, on) {
            (false, _) => Feature::Unsupported,
            (true, false) => Feature::Off,
            (true, true) => Feature::On,
        };
        TargetId {
            processor,
            sramecc: setting(processor.has_sramecc, sramecc),
            xnack: setting(processor.has_xnack, xnack),
            generic_version: 0,
        }
    }

    /// Whether code for this target runs on `device`, and if not, why.
    ///
    /// The processor has to be the same, or the generic processor of the device in a version that has the device; each
    /// feature the code fixes has to be set so on the device. A device has a setting for each feature it has.
    pub fn matches(&self, device: &TargetId) -> Result<(), Mismatch> {
        let (image, device_id) = (*self, *device);
        if self.processor.is_generic() {
            if device.processor.generic() != Some(self.processor) && device.processor != self.processor {
                return Err(Mismatch::Generic { image, device: device_id });
            }
            if self.generic_version < GENERIC_VERSION_OF_MEMBERS {
                let needed = GENERIC_VERSION_OF_MEMBERS;
                return Err(Mismatch::GenericVersion { image, device: device_id, needed });
            }
        } else if self.processor != device.processor {
            return Err(Mismatch::Processor { image, device: device_id });
        }
        let features = [("sramecc", self.sramecc, device.sramecc), ("xnack", self.xnack, device.xnack)];
        for (feature, wanted, has) in features {
            match (wanted, has) {
                (Feature::Unsupported | Feature::Any, _) => {}
                (_, Feature::Any) => return Err(Mismatch::DeviceSetting { feature, device: device_id }),
                _ if wanted == has => {}
                _ => return Err(Mismatch::Feature { image, device: device_id, feature, wanted, has }),
            }
        }
        Ok(())
    }
}

/// Why code does not run on a device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// Another processor.
    #[error("the image is for {image}, the device is {device}: {}", rebuild(image, device))]
    Processor {
        /// What the code is for.
        image: TargetId,
        /// What the device is.
        device: TargetId,
    },
    /// A generic processor of another family.
    #[error(
        "the image is for {image}, which does not include the device, {device}: compile with -mcpu={}",
        device.processor.name
    )]
    Generic {
        /// What the code is for.
        image: TargetId,
        /// What the device is.
        device: TargetId,
    },
    /// The generic processor got this member later.
    #[error(
        "the image is for version {} of {image}, the device, {device}, needs version {needed}: compile with a newer \
         clang, or with -mcpu={}",
        image.generic_version, device.processor.name
    )]
    GenericVersion {
        /// What the code is for.
        image: TargetId,
        /// What the device is.
        device: TargetId,
        /// The version that has the device.
        needed: u8,
    },
    /// A feature is set otherwise.
    #[error(
        "the image is for {image}, with {feature} {}; the device, {device}, has it {}: compile with -mcpu={} to run with \
         either setting",
        wanted.name(), has.name(), device.processor.name
    )]
    Feature {
        /// What the code is for.
        image: TargetId,
        /// What the device is.
        device: TargetId,
        /// `xnack` or `sramecc`.
        feature: &'static str,
        /// The setting the code is for.
        wanted: Feature,
        /// The device's setting.
        has: Feature,
    },
    /// The device's own setting is not known.
    #[error("the device's target id {device} leaves {feature} open: a device has it on or off")]
    DeviceSetting {
        /// `xnack` or `sramecc`.
        feature: &'static str,
        /// What the device is.
        device: TargetId,
    },
}

/// What to compile for, to run on the device.
fn rebuild(image: &TargetId, device: &TargetId) -> String {
    let (of_image, of_device) = (image.processor.generic(), device.processor.generic());
    match of_device.filter(|_| of_image == of_device) {
        Some(family) => format!(
            "they are of one family and not the same; compile with -mcpu={}, or with -mcpu={} for both",
            device.processor.name, family.name
        ),
        None => format!("compile with -mcpu={}", device.processor.name),
    }
}

impl fmt::Display for TargetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.processor.name)?;
        for (feature, setting) in [("sramecc", self.sramecc), ("xnack", self.xnack)] {
            match setting {
                Feature::Unsupported | Feature::Any => {}
                Feature::Off => write!(f, ":{feature}-")?,
                Feature::On => write!(f, ":{feature}+")?,
            }
        }
        Ok(())
    }
}

/// Why text is not a target id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetIdError {
    /// No processor of this name.
    #[error("`{name}` is not an AMDGPU processor")]
    Processor {
        /// The name.
        name: String,
    },
    /// Neither `xnack` nor `sramecc` with a sign.
    #[error("target feature `{feature}` of {processor} is not one of sramecc+, sramecc-, xnack+, xnack-")]
    Feature {
        /// The processor.
        processor: &'static str,
        /// The feature as written.
        feature: String,
    },
    /// The processor lacks it.
    #[error("{processor} has no {feature}")]
    Unsupported {
        /// The processor.
        processor: &'static str,
        /// `xnack` or `sramecc`.
        feature: &'static str,
    },
    /// Twice.
    #[error("target feature {feature} of {processor} is given twice")]
    Twice {
        /// The processor.
        processor: &'static str,
        /// `xnack` or `sramecc`.
        feature: &'static str,
    },
}

impl FromStr for TargetId {
    type Err = TargetIdError;

    /// Reads `gfx90a`, `gfx90a:xnack+`, `gfx90a:sramecc-:xnack+` and so on. A feature that is not named is `Any` where
    /// the processor has it. A generic processor gets version 1.
    fn from_str(text: &str) -> Result<TargetId, TargetIdError> {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let Some(processor) = Processor::by_name(name) else {
            return Err(TargetIdError::Processor { name: shown(name) });
        };
        let open = |has| if has { Feature::Any } else { Feature::Unsupported };
        let mut id = TargetId {
            processor,
            sramecc: open(processor.has_sramecc),
            xnack: open(processor.has_xnack),
            generic_version: u8::from(processor.is_generic()),
        };
        let processor = processor.name;
        for part in parts {
            let (feature, slot, setting) = match part {
                "sramecc+" => ("sramecc", &mut id.sramecc, Feature::On),
                "sramecc-" => ("sramecc", &mut id.sramecc, Feature::Off),
                "xnack+" => ("xnack", &mut id.xnack, Feature::On),
                "xnack-" => ("xnack", &mut id.xnack, Feature::Off),
                _ => return Err(TargetIdError::Feature { processor, feature: shown(part) }),
            };
            match *slot {
                Feature::Unsupported => return Err(TargetIdError::Unsupported { processor, feature }),
                Feature::Any => *slot = setting,
                Feature::Off | Feature::On => return Err(TargetIdError::Twice { processor, feature }),
            }
        }
        Ok(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> TargetId {
        text.parse().unwrap()
    }

    #[test]
    fn names_and_numbers_are_unique_and_members_exist() {
        for (i, p) in PROCESSORS.iter().enumerate() {
            assert_eq!(Processor::by_name(p.name), Some(&PROCESSORS[i]));
            assert_eq!(Processor::by_mach(p.mach), Some(&PROCESSORS[i]));
            assert_eq!(p.gfx_target_version().is_none(), p.is_generic());
        }
        for (generic, members) in GENERICS {
            let generic = Processor::by_name(generic).unwrap();
            for member in members {
                let member = Processor::by_name(member).unwrap();
                assert_eq!(member.generation, generic.generation);
                assert_eq!(member.generic(), Some(generic));
            }
        }
    }

    #[test]
    fn target_versions_use_hexadecimal_steppings() {
        for (version, name) in
            [(90_000, "gfx900"), (90_010, "gfx90a"), (90_012, "gfx90c"), (90_402, "gfx942"), (110_501, "gfx1151")]
        {
            assert_eq!(Processor::by_gfx_target_version(version).unwrap().name, name);
        }
        assert_eq!(Processor::by_gfx_target_version(90_001), None);
    }

    #[test]
    fn text_goes_both_ways() {
        for text in ["gfx900", "gfx90a:sramecc+:xnack-", "gfx90a:xnack+", "gfx906:sramecc-", "gfx11-generic", "gfx1201"]
        {
            assert_eq!(id(text).to_string(), text);
        }
        assert_eq!(id("gfx90a:xnack-:sramecc+").to_string(), "gfx90a:sramecc+:xnack-");
        assert_eq!(id("gfx1100").xnack, Feature::Unsupported);
        assert_eq!(id("gfx900").xnack, Feature::Any);
        for (text, message) in [
            ("", "`` is not an AMDGPU processor"),
            ("sm_90", "`sm_90` is not an AMDGPU processor"),
            ("gfx900:xnack", "target feature `xnack` of gfx900 is not one of sramecc+, sramecc-, xnack+, xnack-"),
            ("gfx900:sramecc+", "gfx900 has no sramecc"),
            ("gfx90a:xnack+:xnack-", "target feature xnack of gfx90a is given twice"),
        ] {
            assert_eq!(text.parse::<TargetId>().unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn matching() {
        let device = TargetId::of_device(Processor::by_name("gfx90a").unwrap(), true, false);
        assert_eq!(device.to_string(), "gfx90a:sramecc+:xnack-");
        for text in ["gfx90a", "gfx90a:xnack-", "gfx90a:sramecc+", "gfx90a:sramecc+:xnack-"] {
            assert_eq!(id(text).matches(&device), Ok(()), "{text}");
        }
        for (text, message) in [
            (
                "gfx90a:xnack+",
                "the image is for gfx90a:xnack+, with xnack on; the device, gfx90a:sramecc+:xnack-, has it off: compile with \
                 -mcpu=gfx90a to run with either setting",
            ),
            (
                "gfx90a:sramecc-",
                "the image is for gfx90a:sramecc-, with sramecc off; the device, gfx90a:sramecc+:xnack-, has it on: compile \
                 with -mcpu=gfx90a to run with either setting",
            ),
            ("gfx942", "the image is for gfx942, the device is gfx90a:sramecc+:xnack-: compile with -mcpu=gfx90a"),
            (
                "gfx9-generic",
                "the image is for gfx9-generic, which does not include the device, gfx90a:sramecc+:xnack-: compile \
                 with -mcpu=gfx90a",
            ),
        ] {
            assert_eq!(id(text).matches(&device).unwrap_err().to_string(), message);
        }

        // A generic processor's code runs on its members, whatever they have that the generic one has not.
        let gfx906 = TargetId::of_device(Processor::by_name("gfx906").unwrap(), true, true);
        assert_eq!(id("gfx9-generic").matches(&gfx906), Ok(()));
        assert_eq!(id("gfx9-generic:xnack+").matches(&gfx906), Ok(()));
        assert!(matches!(id("gfx9-generic:xnack-").matches(&gfx906), Err(Mismatch::Feature { .. })));
        let old = TargetId { generic_version: 0, ..id("gfx9-generic") };
        assert!(matches!(old.matches(&gfx906), Err(Mismatch::GenericVersion { needed: 1, .. })));
        assert_eq!(id("gfx11-generic").matches(&id("gfx1151")), Ok(()));
        assert!(matches!(id("gfx90a:xnack+").matches(&id("gfx90a")), Err(Mismatch::DeviceSetting { .. })));
    }
}

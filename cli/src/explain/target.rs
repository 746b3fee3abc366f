//! Processors: names, `gfx_target_version`, `e_flags`.

use super::input::Number;
use super::{Reading, row};
use elf::{Feature, Processor, TargetId, Version};
use kfd::GfxTarget;

const VERSIONS: [Version; 4] = [Version::V6, Version::V5, Version::V4, Version::V3];

/// A processor by its name; a target id such as `gfx90a:xnack+` too.
pub fn name(name: &str) -> Option<Reading> {
    let processor = name.split(':').next().and_then(|name| Processor::by_name(&name.to_ascii_lowercase()))?;
    let mut reading = Reading::new("target", 100, format!("processor {}", processor.name));
    reading = reading.section("", facts(processor));
    if name.contains(':') {
        match name.to_ascii_lowercase().parse::<TargetId>() {
            Ok(id) => {
                let features = [("sramecc", id.sramecc), ("xnack", id.xnack)];
                let rows = features.map(|(name, setting)| row(name, setting.name(), meaning(setting)));
                reading = reading.section("Target id", rows.to_vec());
            }
            Err(error) => reading = reading.note(error.to_string()),
        }
    }
    Some(reading)
}

/// `gfx_target_version` of the topology.
pub fn version(number: Number) -> Option<Reading> {
    let version = number.word()?;
    let target = GfxTarget::from_version(version).filter(|target| target.major() >= 6 && target.major() < 20)?;
    let title = format!("gfx_target_version {version}: {target}");
    let reading = match Processor::by_gfx_target_version(version) {
        Some(processor) => Reading::new("target", number.likely(20, 98), title).section("", facts(processor)),
        None => Reading::new("target", number.likely(3, 40), title)
            .note("No processor of this name is known here: major * 10000 + minor * 100 + stepping."),
    };
    Some(reading)
}

fn facts(processor: &Processor) -> Vec<[String; 3]> {
    let has = |has: bool| if has { "yes" } else { "no" };
    let mut rows = Vec::new();
    if let Some(version) = processor.gfx_target_version() {
        let text = "major * 10000 + minor * 100 + stepping, in the topology";
        rows.push(row("gfx_target_version", version.to_string(), text));
    }
    rows.push(row("EF_AMDGPU_MACH", format!("{:#04x}", processor.mach), "bits 0-7 of e_flags"));
    rows.push(row("XNACK", has(processor.has_xnack), "code is compiled for page fault retry on or off"));
    rows.push(row("SRAM ECC", has(processor.has_sramecc), "code is compiled for SRAM ECC on or off"));
    if let Some(generic) = processor.generic() {
        rows.push(row("generic", generic.name, "code for it runs here as well"));
    }
    let members: Vec<&str> =
        elf::PROCESSORS.iter().filter(|p| p.generic() == Some(processor) && *p != processor).map(|p| p.name).collect();
    if !members.is_empty() {
        rows.push(row("members", "", members.join(", ")));
    }
    let emulated = emu::isa::Target::from_name(processor.name).is_some();
    rows.push(row(
        "emulated",
        has(emulated),
        if emulated { format!("--device emu:{}", processor.name) } else { String::new() },
    ));
    rows
}

fn meaning(setting: Feature) -> &'static str {
    match setting {
        Feature::Unsupported => "the processor does not have it",
        Feature::Any => "the code runs with either setting of the device",
        Feature::Off => "the code runs only where it is off",
        Feature::On => "the code runs only where it is on",
    }
}

/// `e_flags`, of the version if one is given, else of the newest in which they make sense.
pub fn e_flags(number: Number, version: Option<Version>) -> Option<Reading> {
    let flags = number.word()?;
    let fit = |version: Version| elf::target_of_flags(flags, version).ok().map(|id| (version, id));
    let found: Vec<(Version, TargetId)> = match version {
        Some(version) => fit(version).into_iter().collect(),
        None => VERSIONS.into_iter().filter_map(fit).collect(),
    };
    let (newest, id) = *found.first()?;
    let likely = match (version, flags) {
        (Some(_), _) => 100,
        (_, 0..0x100) => number.likely(45, 8),
        _ => number.likely(93, 30),
    };
    let title = format!("e_flags {flags:#x}: {id}");
    let (xnack_bits, sramecc_bits) =
        if newest == Version::V3 { ("bit 8", "bit 9") } else { ("bits 8-9", "bits 10-11") };
    let mut rows = vec![
        row("processor (bits 0-7)", format!("{:#04x} {}", flags & 0xff, id.processor.name), ""),
        row(format!("xnack ({xnack_bits})"), id.xnack.name(), meaning(id.xnack)),
        row(format!("sramecc ({sramecc_bits})"), id.sramecc.name(), meaning(id.sramecc)),
    ];
    if id.processor.is_generic() {
        let text = "version of the generic processor";
        rows.push(row("generic version (bits 24-31)", id.generic_version.to_string(), text));
    }
    let mut reading = Reading::new("e_flags", likely, title).section("", rows);
    if version.is_none() {
        let fits: Vec<String> = VERSIONS
            .iter()
            .rev()
            .map(|version| match found.iter().find(|(fits, _)| fits == version) {
                Some((_, id)) => format!("{version} (EI_ABIVERSION {}): {id}", abi(*version)),
                None => format!("{version}: not valid"),
            })
            .collect();
        reading = reading.note(format!("The code object's version decides. {}.", fits.join("; ")));
    }
    Some(reading)
}

fn abi(version: Version) -> u8 {
    match version {
        Version::V3 => 1,
        Version::V4 => 2,
        Version::V5 => 3,
        Version::V6 => 4,
    }
}

/// Why a number is not `e_flags` of this version.
pub fn refusal(number: Number, version: Version) -> Option<String> {
    Some(elf::target_of_flags(number.word()?, version).err()?.to_string())
}

//! Words of bits: memory flags, mmap offsets, capabilities.

use super::input::Number;
use super::{Reading, constant, row};
use kfd::uapi::{self, MmapOffset, MmapType, sysfs};

const ALLOC: &str = "KFD_IOC_ALLOC_MEM_FLAGS_";

/// Bits that say what kind of memory it is, in the order in which the kernel looks at them.
const KINDS: u32 = uapi::ALLOC_MEM_FLAGS_VRAM
    | uapi::ALLOC_MEM_FLAGS_GTT
    | uapi::ALLOC_MEM_FLAGS_USERPTR
    | uapi::ALLOC_MEM_FLAGS_DOORBELL
    | uapi::ALLOC_MEM_FLAGS_MMIO_REMAP;

/// Flags of ALLOC_MEMORY_OF_GPU as a word.
pub fn alloc_flags(number: Number) -> Option<Reading> {
    let flags = number.word()?;
    let known = bits(ALLOC);
    if flags == 0 || known.iter().fold(flags, |rest, (bit, ..)| rest & !bit) != 0 {
        return None;
    }
    let one_kind = (flags & KINDS).count_ones() == 1;
    let likely = if one_kind && flags >= 1 << 23 { number.likely(92, 60) } else { number.likely(15, 5) };
    Some(alloc_reading(flags, likely))
}

/// Flags of ALLOC_MEMORY_OF_GPU by their names, `VRAM|WRITABLE`.
pub fn flag_names(names: &str) -> Option<Reading> {
    let known = bits(ALLOC);
    let mut flags = 0;
    for name in names.split('|') {
        let upper = name.trim().to_ascii_uppercase();
        let name = upper.strip_prefix(ALLOC).unwrap_or(&upper);
        flags |= known.iter().find(|(_, known, _)| *known == name)?.0;
    }
    Some(alloc_reading(flags, 80))
}

fn alloc_reading(flags: u32, likely: u8) -> Reading {
    let set: Vec<(u32, &str, String)> = bits(ALLOC).into_iter().filter(|(bit, ..)| flags & bit != 0).collect();
    let names: Vec<&str> = set.iter().map(|(_, name, _)| *name).collect();
    let rows = set.iter().map(|(bit, name, doc)| row(format!("{bit:#010x}"), *name, doc.as_str())).collect();
    let title = format!("flags of ALLOC_MEMORY_OF_GPU {flags:#010x}: {}", names.join("|"));
    let mut reading = Reading::new("flags", likely, title).section("", rows);
    match (flags & KINDS).count_ones() {
        0 => reading = reading.note("EINVAL: no kind of memory (VRAM, GTT, USERPTR, DOORBELL, MMIO_REMAP) is named."),
        1 => {}
        _ => reading = reading.note("More than one kind of memory is named: VRAM wins over GTT, GTT over USERPTR."),
    }
    if flags & uapi::ALLOC_MEM_FLAGS_WRITABLE == 0 {
        reading = reading.note("Without WRITABLE a GPU store faults (ReadOnly); loads always work.");
    }
    if flags & uapi::ALLOC_MEM_FLAGS_EXECUTABLE == 0 {
        reading = reading.note("Without EXECUTABLE an instruction fetch faults.");
    }
    reading
}

/// The single bits among the constants with a prefix, lowest first: bit, name, meaning.
fn bits(prefix: &str) -> Vec<(u32, &'static str, String)> {
    let single = constant::all().filter_map(|c| {
        let name = c.c_name.strip_prefix(prefix)?;
        let bit = u32::try_from(c.value).ok().filter(|value| value.is_power_of_two())?;
        Some((bit, name, constant::plain(c.doc)))
    });
    let mut bits: Vec<_> = single.collect();
    bits.sort_by_key(|(bit, ..)| *bit);
    bits
}

/// An offset for mmap of `/dev/kfd`: what CREATE_QUEUE, CREATE_EVENT and ALLOC_MEMORY_OF_GPU give back.
pub fn mmap_offset(number: Number) -> Option<Reading> {
    let offset = MmapOffset::decode(number.value);
    let in_slice = offset.offset & uapi::DOORBELL_OFFSET_IN_SLICE_MASK;
    let (name, likely) = match offset.kind {
        MmapType::Doorbell if offset.gpu_id != 0 && offset.offset < uapi::DOORBELL_SLICE_SIZE => ("doorbells", 96),
        MmapType::Events if offset.gpu_id == 0 && offset.offset == 0 => ("event page", 96),
        MmapType::ReservedMem if offset.gpu_id != 0 && offset.offset == 0 => ("the kernel's own trap handler page", 60),
        MmapType::Mmio if offset.gpu_id != 0 && offset.offset == 0 => ("HDP flush page", 60),
        _ => return None,
    };
    let mut rows = vec![row("type (bits 62-63)", (number.value >> 62).to_string(), name)];
    if offset.gpu_id != 0 {
        rows.push(row("gpu_id (bits 46-61)", offset.gpu_id.to_string(), "GPU"));
    }
    rows.push(row("offset (bits 0-45)", format!("{:#x}", offset.offset), ""));
    let title = format!("offset for mmap of /dev/kfd {:#018x}: {name}", number.value);
    let mut reading = Reading::new("mmap", likely, title);
    if offset.kind == MmapType::Doorbell {
        let slot = format!("{}", in_slice / 8);
        rows.push(row("doorbell (bits 0-12)", slot, format!("its 8 bytes lie {in_slice:#x} bytes into the mapping")));
        reading = reading.section("", rows).note(format!(
            "mmap takes offset {:#x} and length {}: the low 13 bits are not part of it. As an off_t it is negative.",
            number.value & !uapi::DOORBELL_OFFSET_IN_SLICE_MASK,
            uapi::DOORBELL_SLICE_SIZE
        ));
        if !in_slice.is_multiple_of(8) {
            reading = reading.note("The doorbell's offset is no multiple of 8, which gfx9 and later never have.");
        }
        return Some(reading);
    }
    Some(reading.section("", rows))
}

/// The line `capability` of a GPU node.
pub fn capability(number: Number) -> Option<Reading> {
    let value = number.word()?;
    let doorbell = (value & sysfs::CAP_DOORBELL_TYPE_TOTALBITS_MASK) >> sysfs::CAP_DOORBELL_TYPE_TOTALBITS_SHIFT;
    let watch = (value & sysfs::CAP_WATCH_POINTS_TOTALBITS_MASK) >> sysfs::CAP_WATCH_POINTS_TOTALBITS_SHIFT;
    let revision = (value & sysfs::CAP_ASIC_REVISION_MASK) >> sysfs::CAP_ASIC_REVISION_SHIFT;
    let fields = sysfs::CAP_DOORBELL_TYPE_TOTALBITS_MASK
        | sysfs::CAP_WATCH_POINTS_TOTALBITS_MASK
        | sysfs::CAP_ASIC_REVISION_MASK;
    if value & sysfs::CAP_RESERVED_WAS_SRAM_EDCSUPPORTED != 0 || doorbell > sysfs::CAP_DOORBELL_TYPE_2_0 {
        return None;
    }
    let plausible = doorbell == sysfs::CAP_DOORBELL_TYPE_2_0 && value & sysfs::CAP_WATCH_POINTS_SUPPORTED != 0;
    let likely = if plausible { number.likely(90, 80) } else { 0 };
    let mut rows: Vec<[String; 3]> = bits("HSA_CAP_")
        .into_iter()
        .filter(|(bit, name, _)| value & bit & !fields != 0 && !name.ends_with("_SHIFT") && !name.contains("TYPE_"))
        .map(|(bit, name, doc)| row(format!("{bit:#010x}"), name, doc))
        .collect();
    let types = ["32-bit doorbells of gfx7", "32-bit doorbells", "64-bit doorbells of gfx9 and later"];
    rows.push(row("bits 12-13", format!("DOORBELL_TYPE {doorbell}"), *types.get(doorbell as usize)?));
    rows.push(row("bits 8-11", format!("WATCH_POINTS {watch}"), format!("2^{watch} address watchpoints")));
    rows.push(row("bits 22-25", format!("ASIC_REVISION {revision}"), "revision of the chip"));
    let title = format!("capability {value} ({value:#010x}) of a GPU node");
    let mut reading = Reading::new("capability", likely, title).section("", rows);
    if doorbell != sysfs::CAP_DOORBELL_TYPE_2_0 {
        reading = reading.note("kfdrun drives GPUs with 64-bit doorbells only.");
    }
    Some(reading)
}

//! The same for people.

use super::{kind, undefined};
use elf::container::{Contents, Entry};
use elf::{CodeObject, Kernel, KernelKind};
use loader::names;
use loader::spec::{self, Numbered};
use std::fmt::Write;

pub fn whole(name: &str, bytes: usize, contents: &Contents, entries: &[(usize, &Entry)]) -> String {
    let mut out = format!("{name}: {}, {bytes} bytes\n", contents.kind);
    // Writing to a string does not fail.
    let _ = write(&mut out, contents, entries);
    out
}

fn write(out: &mut String, contents: &Contents, entries: &[(usize, &Entry)]) -> std::fmt::Result {
    if contents.containers.len() > 1 {
        writeln!(out, "\ncontainers:")?;
        for (index, container) in contents.containers.iter().enumerate() {
            let inside = container.parent.map_or(String::new(), |parent| format!(" of container {parent}"));
            writeln!(out, "  {index}: {} at byte {:#x}{inside}", container.kind, container.offset)?;
        }
    }
    if contents.entries.len() > 1 {
        writeln!(out, "\nentries:")?;
        for (index, entry) in entries {
            writeln!(out, "  {index}: {}: {}, {} bytes", entry.id, entry.content, entry.data.len())?;
        }
    }
    for (index, entry) in entries {
        if entry.code_target().is_none() {
            continue;
        }
        match CodeObject::parse(&entry.data) {
            Ok(parsed) => code(out, *index, &parsed)?,
            Err(error) => writeln!(out, "\nentry {index}: cannot be loaded: {error}")?,
        }
    }
    Ok(())
}

fn code(out: &mut String, index: usize, code: &CodeObject) -> std::fmt::Result {
    writeln!(out, "\nentry {index}: code object {} for {}", code.version(), code.target())?;
    for found in code.kernels() {
        kernel(out, code, found)?;
    }
    let globals: Vec<String> =
        code.globals().map(|symbol| format!("{} ({} bytes)", symbol.name, symbol.size)).collect();
    for (title, list) in [
        ("variables", globals),
        ("undefined symbols", undefined(code).into_iter().map(str::to_owned).collect()),
        ("printf formats", code.printf().iter().map(|format| format!("{format:?}")).collect()),
    ] {
        if !list.is_empty() {
            writeln!(out, "  {title}:")?;
            list.iter().try_for_each(|line| writeln!(out, "    {line}"))?;
        }
    }
    Ok(())
}

fn kernel(out: &mut String, code: &CodeObject, kernel: &Kernel) -> std::fmt::Result {
    let metadata = &kernel.metadata;
    let generation = code.target().processor.generation;
    let suffix = match metadata.kind {
        KernelKind::Normal => String::new(),
        other => format!(" ({})", kind(other)),
    };
    writeln!(out, "  kernel {}{suffix}", metadata.name)?;
    if let Some(names::Demangled { whole, .. }) = names::demangle(kernel.name()) {
        writeln!(out, "    {whole}")?;
    }
    write!(out, "    work-group up to {} work-items", metadata.max_flat_workgroup_size)?;
    if let Some([x, y, z]) = metadata.reqd_workgroup_size.filter(|size| *size != [0; 3]) {
        write!(out, ", exactly {x} x {y} x {z}")?;
    }
    if metadata.uniform_work_group_size == Some(true) {
        write!(out, ", all whole")?;
    }
    writeln!(out, "; wave{}", metadata.wavefront_size)?;
    write!(out, "    VGPRs {} ({} allocated)", metadata.vgpr_count, kernel.descriptor.vgprs(generation))?;
    if let Some(count) = metadata.agpr_count {
        write!(out, ", AGPRs {count}")?;
    }
    write!(out, ", SGPRs {}", metadata.sgpr_count)?;
    let spills = (metadata.vgpr_spill_count.unwrap_or(0), metadata.sgpr_spill_count.unwrap_or(0));
    if spills != (0, 0) {
        write!(out, "; spilled {} VGPRs, {} SGPRs", spills.0, spills.1)?;
    }
    writeln!(
        out,
        "; LDS {} bytes; scratch {} bytes a work-item{}",
        metadata.group_segment_fixed_size,
        metadata.private_segment_fixed_size,
        if kernel.uses_dynamic_stack() { " or more (dynamic stack)" } else { "" }
    )?;
    writeln!(out, "    kernarg segment of {} bytes:", metadata.kernarg_segment_size)?;
    for Numbered { arg, number, type_name } in spec::numbered(metadata) {
        let (offset, size, kind) = (arg.offset, arg.size, arg.value_kind.name());
        let number = number.map_or(String::new(), |number| format!("argument {number}: "));
        let words: Vec<&str> = type_name.as_deref().into_iter().chain(arg.name).collect();
        let words = if words.is_empty() { String::new() } else { format!(", {}", words.join(" ")) };
        writeln!(out, "      {offset:#05x} {size:>3}  {number}{kind}{words}")?;
    }
    Ok(())
}

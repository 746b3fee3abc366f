//! Which code object of a file runs, and on which device.

use crate::args::{Args, DeviceChoice};
use crate::device;
use crate::exit::{Failure, REFUSED};
use elf::container::{Contents, Entry, SelectError, matching, select};
use elf::{CodeObject, Feature, Processor, TargetId};
use kfd::Device;
use kfd::uapi::sysfs;
use std::path::Path;
use std::sync::Arc;
use trace::Tracer;

/// Opens the device and takes the code object for it. Where several are equally good, as in a program of several source
/// files, the one that `has` what is asked for.
pub fn choose<'c, 'a>(
    contents: &'c Contents<'a>,
    path: &Path,
    args: &Args,
    tracer: &Tracer,
    has: &dyn Fn(&Entry) -> bool,
) -> Result<(&'c Entry<'a>, Arc<Device>), Failure> {
    let refuse = |text: String| Failure::new(REFUSED, format!("{}: {text}", path.display()));
    let wanted = args.entry.as_deref();
    let candidates: Vec<&Entry> =
        contents.entries.iter().enumerate().filter(|(i, entry)| is_wanted(*i, entry, wanted)).map(|(_, e)| e).collect();
    let mut targets: Vec<TargetId> = Vec::new();
    for target in candidates.iter().filter_map(|entry| target(entry)) {
        if !targets.contains(&target) {
            targets.push(target);
        }
    }
    if targets.is_empty() {
        return Err(refuse(match (wanted, &candidates[..]) {
            (Some(wanted), []) => format!("no entry is '{wanted}'; there are {}", list(contents)),
            _ => format!("no AMDGPU code object to load; there are {}", list(contents)),
        }));
    }
    let device = open(&targets, args, tracer)?;
    if let ([entry], 1) = (&candidates[..], contents.entries.len()) {
        return Ok((entry, device));
    }
    Ok((choose_on(&device, contents, path, args, has)?, device))
}

/// Takes the code object for a device that is open.
pub fn choose_on<'c, 'a>(
    device: &Device,
    contents: &'c Contents<'a>,
    path: &Path,
    args: &Args,
    has: &dyn Fn(&Entry) -> bool,
) -> Result<&'c Entry<'a>, Failure> {
    let refuse = |text: String| Failure::new(REFUSED, format!("{}: {text}", path.display()));
    let id = identity(device)?;
    match select(contents, &id, args.entry.as_deref()) {
        Ok(entry) => Ok(entry),
        Err(error @ SelectError::Ambiguous { .. }) => {
            let fitting = matching(contents, &id);
            match fitting.iter().filter(|entry| has(entry)).collect::<Vec<_>>()[..] {
                [entry] => Ok(entry),
                [] => Err(refuse(format!(
                    "none of the entries that fit the device has the kernel that is asked for; they have {}",
                    kernels(&fitting)
                ))),
                _ => Err(refuse(format!("{error} (--entry N)"))),
            }
        }
        Err(error) => Err(refuse(error.to_string())),
    }
}

/// The names of the kernels of entries.
fn kernels(entries: &[&Entry]) -> String {
    let codes: Vec<CodeObject> = entries.iter().filter_map(|entry| CodeObject::parse(&entry.data).ok()).collect();
    let names: Vec<&str> = codes.iter().flat_map(|code| code.kernels()).map(|kernel| kernel.name()).collect();
    let shown = names.iter().take(16).copied().collect::<Vec<_>>().join(", ");
    if names.len() > 16 { format!("{shown} and {} more", names.len() - 16) } else { shown }
}

/// What an entry is for: what its code says, and where that leaves a feature open what the container says.
fn target(entry: &Entry) -> Option<TargetId> {
    let code = *entry.code_target()?;
    let said = entry.target.filter(|said| said.processor == code.processor).unwrap_or(code);
    let either = |code, said| if code == Feature::Any { said } else { code };
    Some(TargetId { sramecc: either(code.sramecc, said.sramecc), xnack: either(code.xnack, said.xnack), ..code })
}

/// Whether `--entry` names it, by number, id or target id.
fn is_wanted(index: usize, entry: &Entry, wanted: Option<&str>) -> bool {
    let Some(wanted) = wanted else { return true };
    match wanted.parse::<usize>() {
        Ok(number) => number == index,
        Err(_) => {
            entry.id == wanted
                || entry.arch == wanted
                || entry.code_target().is_some_and(|target| target.to_string() == wanted)
        }
    }
}

fn list(contents: &Contents) -> String {
    let mut entries: Vec<String> =
        contents.entries.iter().take(8).map(|entry| format!("{} ({})", entry.id, entry.content)).collect();
    if contents.entries.len() > entries.len() {
        entries.push(format!("{} more", contents.entries.len() - entries.len()));
    }
    if entries.is_empty() { "no entries".to_owned() } else { entries.join(", ") }
}

/// Opens the first device that runs one of the targets.
fn open(targets: &[TargetId], args: &Args, tracer: &Tracer) -> Result<Arc<Device>, Failure> {
    let machine = args.machine();
    let wanted = args.device(&args.device)?;
    // Code that takes the process' XNACK mode as it is goes before code that has it switched on, whatever their order.
    let mut targets = targets.to_vec();
    targets.sort_by_key(|target| target.xnack == Feature::On);
    let try_all = |choice: &DeviceChoice| {
        let mut reasons: Vec<String> = Vec::new();
        for target in &targets {
            match device::open(choice, target, &machine, tracer) {
                Ok(device) => return Ok(device),
                Err(failure) if failure.status == REFUSED => reasons.push(failure.text),
                Err(failure) => return Err(failure),
            }
        }
        reasons.dedup();
        Err(Failure::new(REFUSED, reasons.join("; ")))
    };
    if targets.len() == 1 {
        return try_all(wanted);
    }
    match wanted {
        // A GPU for any of them comes before an emulated machine for the first.
        DeviceChoice::Auto => match try_all(&DeviceChoice::Kfd(None)) {
            Ok(device) => Ok(device),
            Err(_) => try_all(&DeviceChoice::Auto),
        },
        choice => try_all(choice),
    }
}

/// The device as a target id, all features set.
fn identity(device: &Device) -> Result<TargetId, Failure> {
    let properties = &device.node().properties;
    let processor = properties.gfx_target_version.and_then(Processor::by_gfx_target_version).ok_or_else(|| {
        Failure::new(REFUSED, format!("topology node {} is an unknown processor", device.node().index))
    })?;
    let sramecc = properties.capability.is_some_and(|bits| bits & sysfs::CAP_SRAM_EDCSUPPORTED != 0);
    let xnack = processor.has_xnack && device.kfd().xnack()?.unwrap_or(false);
    Ok(TargetId::of_device(processor, sramecc, xnack))
}

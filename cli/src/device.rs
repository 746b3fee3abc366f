//! Which device runs an image.

use crate::args::{DeviceChoice, target_names};
use crate::exit::{ENVIRONMENT, Failure, REFUSED};
use crate::output::say;
use elf::{Feature, Mismatch, Processor, TargetId};
use emu::isa::Target;
use emu::{EmulatedDriver, Machine, Options};
use kfd::uapi::{self, sysfs};
use kfd::{Device, Errno, Kfd, LinuxDriver, Node, Topology};
use std::sync::Arc;
use trace::Tracer;

/// Opens the device for an image. Says on stderr when `auto` falls back to the emulated machine.
pub fn open(
    choice: &DeviceChoice,
    image: &TargetId,
    options: &Options,
    tracer: &Tracer,
) -> Result<Arc<Device>, Failure> {
    match choice {
        DeviceChoice::Kfd(node) => {
            let kfd = Kfd::open(Arc::new(LinuxDriver), tracer.clone())?;
            Ok(pick(&kfd, image, *node)?.map_err(|reason| Failure::new(REFUSED, reason))?)
        }
        DeviceChoice::Emulated(target) => {
            let target = match target {
                Some(target) => *target,
                None => emulated_target(image)?,
            };
            emulated(target, image, options, tracer)
        }
        DeviceChoice::Auto => {
            let reason = match Kfd::open(Arc::new(LinuxDriver), tracer.clone()) {
                Ok(kfd) => match pick(&kfd, image, None)? {
                    Ok(device) => return Ok(device),
                    Err(reason) => reason,
                },
                Err(kfd::Error::NoKfd { .. }) => "/dev/kfd does not exist".to_owned(),
                Err(error) => error.to_string(),
            };
            let target = emulated_target(image)?;
            say(&format!("no GPU here can run {image} code ({reason}); running on the emulated {target}"));
            emulated(target, image, options, tracer)
        }
    }
}

/// Finds a GPU that runs the image and opens it; the inner error says why none does.
fn pick(kfd: &Arc<Kfd>, image: &TargetId, wanted: Option<u32>) -> Result<Result<Arc<Device>, String>, Failure> {
    let topology = Topology::read_gpus(kfd.system()).map_err(kfd::Error::from)?;
    let nodes: Vec<&Node> = match wanted {
        None => topology.gpus().collect(),
        Some(index) => match topology.gpus().find(|node| node.index == index) {
            Some(node) => vec![node],
            None => {
                let gpus: Vec<String> = topology.gpus().map(|node| node.index.to_string()).collect();
                let text =
                    format!("topology node {index} is not a GPU of this process; GPUs are nodes {}", gpus.join(", "));
                return Err(Failure::new(ENVIRONMENT, text));
            }
        },
    };
    let mut reason = "the topology lists no GPU".to_owned();
    for node in nodes {
        match suits(kfd, node, image)? {
            Ok(()) => return Ok(Ok(Device::open(kfd, node, topology.node_count())?)),
            Err(why) => reason = why,
        }
    }
    Ok(Err(reason))
}

/// Whether a GPU runs the image. Where the image insists on XNACK and the process can still choose, it is set.
fn suits(kfd: &Kfd, node: &Node, image: &TargetId) -> Result<Result<(), String>, Failure> {
    let Some(version) = node.properties.gfx_target_version else {
        return Ok(Err(format!("topology node {} has no gfx_target_version", node.index)));
    };
    let Some(processor) = Processor::by_gfx_target_version(version) else {
        return Ok(Err(format!("topology node {} is an unknown processor (gfx_target_version {version})", node.index)));
    };
    let sramecc = node.properties.capability.is_some_and(|bits| bits & sysfs::CAP_SRAM_EDCSUPPORTED != 0);
    // The mode is asked for only when the answer matters.
    let xnack = match image.xnack {
        Feature::On | Feature::Off if processor.has_xnack => kfd.xnack()?.unwrap_or(false),
        _ => false,
    };
    match image.matches(&TargetId::of_device(processor, sramecc, xnack)) {
        Err(Mismatch::Feature { feature: "xnack", wanted, .. }) => {
            let enable = i32::from(wanted == Feature::On);
            match kfd.ioctl(&mut uapi::SetXnackModeArgs { xnack_enabled: enable }) {
                Ok(_) => Ok(Ok(())),
                Err(errno) => Ok(Err(format!(
                    "the image is for {image} and the device's XNACK cannot be switched {}: SET_XNACK_MODE: {errno}{}",
                    wanted.name(),
                    if errno == Errno::EPERM { " (some visible GPU does not support it)" } else { "" }
                ))),
            }
        }
        Err(mismatch) => Ok(Err(mismatch.to_string())),
        Ok(()) => Ok(Ok(())),
    }
}

/// The emulated machine for an image: its own processor, or one of its generic family.
fn emulated_target(image: &TargetId) -> Result<Target, Failure> {
    let runs = |target: &Target| {
        let processor = Processor::by_name(target.name());
        processor.is_some_and(|processor| {
            processor == image.processor || processor.generic().is_some_and(|generic| generic == image.processor)
        })
    };
    Target::ALL.into_iter().find(runs).ok_or_else(|| {
        let text = format!("the image is for {image}, which no emulated machine has; there are {}", target_names());
        Failure::new(REFUSED, text)
    })
}

fn emulated(target: Target, image: &TargetId, options: &Options, tracer: &Tracer) -> Result<Arc<Device>, Failure> {
    let driver = EmulatedDriver::new(Machine::with(&[target]), options.clone(), tracer.clone())
        .map_err(|error| Failure::new(ENVIRONMENT, format!("the emulated machine cannot start: {error}")))?;
    let kfd = Kfd::open(Arc::new(driver), tracer.clone())?;
    pick(&kfd, image, None)?.map_err(|reason| Failure::new(REFUSED, reason))
}

//! `kfdrun devices`: the GPUs that can be had, real or emulated, with the labels of rocminfo for those who look for them.
//!
//! What is not known is left out of the text and `null` in JSON. A real machine's list needs sysfs only; where `/dev/kfd`
//! opens, it tells the XNACK mode besides.

mod collect;
mod text;

use crate::args::{Args, DeviceChoice, DevicesArgs};
use crate::doctor::Host;
use crate::exit::{ENVIRONMENT, Failure};
use crate::output::{print, print_line, say};
use crate::style::Style;
use emu::isa::Target;
use emu::{EmulatedDriver, Machine, Options};
use kfd::{Driver, LinuxDriver, System};
use std::sync::Arc;
use trace::Tracer;

/// Version of the form of `--json`.
const SCHEMA: u32 = 1;

/// A machine and its agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// What `--device` takes for it: `kfd`, or `emu:gfxNNNN`.
    pub device: String,
    /// Nodes that could be read.
    pub agents: Vec<collect::Agent>,
    /// Why there is no list, or what is missing from it.
    pub problems: Vec<String>,
}

/// Lists devices on standard output; returns the exit status.
pub fn run(args: &DevicesArgs, global: &Args) -> Result<u8, Failure> {
    let choice = global.device(args.device.as_ref().unwrap_or(&global.device))?;
    let options = global.machine();
    let emulated = |target| emulated(target, &options);
    let kfd: Arc<dyn Driver> = match &args.root {
        None => Arc::new(LinuxDriver),
        Some(root) => Arc::new(Host::recorded(root).map_err(|problem| Failure::new(ENVIRONMENT, problem))?),
    };
    let (listings, real) = match choice {
        _ if args.root.is_some() => (vec![real(kfd, None)], true),
        DeviceChoice::Auto | DeviceChoice::Kfd(None) => (vec![real(kfd, None)], true),
        DeviceChoice::Kfd(Some(node)) => (vec![real(kfd, Some(*node))], true),
        DeviceChoice::Emulated(Some(target)) => (vec![emulated(*target)?], false),
        DeviceChoice::Emulated(None) => (Target::ALL.into_iter().map(emulated).collect::<Result<_, _>>()?, false),
    };
    if args.json {
        print_line(text::json(&listings))?;
    } else if args.arch {
        print(&text::arch(&listings))?;
    } else if args.tree {
        print(&text::tree(&listings))?;
    } else {
        print(&text::labels(&listings, Style::stdout()))?;
    }
    for problem in listings.iter().flat_map(|listing| &listing.problems) {
        say(problem);
    }
    if real && !listings.iter().flat_map(|listing| &listing.agents).any(|agent| agent.gpu.is_some()) {
        let remedy = "kfdrun doctor looks for the reason; kfdrun devices --device emu lists emulated GPUs";
        return Err(Failure::new(ENVIRONMENT, format!("no GPU is listed: {remedy}")));
    }
    Ok(0)
}

/// A machine with a KFD, or one node of it.
fn real(driver: Arc<dyn Driver>, node: Option<u32>) -> Listing {
    let system = System::new(driver, Tracer::default());
    let mut listing = collect::listing(&system, "kfd".to_owned(), |_| None);
    if let Some(node) = node {
        listing.agents.retain(|agent| agent.node == node);
    }
    listing
}

/// The emulated machine with a GPU of this target.
fn emulated(target: Target, options: &Options) -> Result<Listing, Failure> {
    let machine = Machine::with(&[target]);
    let product = machine.gpus.first().map(|gpu| gpu.product.to_owned());
    let driver = EmulatedDriver::new(machine, options.clone(), Tracer::default())
        .map_err(|error| Failure::new(ENVIRONMENT, format!("the emulated machine cannot start: {error}")))?;
    let system = System::new(Arc::new(driver), Tracer::default());
    Ok(collect::listing(&system, format!("emu:{target}"), |_| product.clone()))
}

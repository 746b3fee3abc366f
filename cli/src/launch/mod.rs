//! `kfdrun launch`: one kernel with arguments from the command line, or several from a file.

mod args;
mod choose;
mod dump;
mod form;
mod globals;
mod kernarg;
mod memory;
mod runner;
mod script;

pub use args::LaunchArgs;
pub use choose::{choose, choose_on};

use crate::args::Args;
use crate::exit::{Failure, REFUSED, USAGE};
use crate::input::Input;
use crate::output::Unbuffered;
use crate::run;
use elf::container::Entry;
use elf::{CodeObject, Kernel, KernelKind};
use globals::Globals;
use loader::kernarg::SHAPE_RULE;
use loader::spec::{self, CheckError};
use loader::{Gpu, GpuOptions, Image, ServiceOptions, Services, Shape, names};
use memory::{Files, Memory};
use runner::{Runner, Step};
use std::path::Path;

/// A buffer is not what was expected.
const DIFFERS: u8 = 1;

impl From<CheckError> for Failure {
    fn from(error: CheckError) -> Failure {
        Failure::new(USAGE, error.to_string())
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Failure {
        usage(text)
    }
}

fn usage(text: impl Into<String>) -> Failure {
    Failure::new(USAGE, text)
}

/// Runs it.
pub fn run(args: &Args, launch: &LaunchArgs) -> Result<u8, Failure> {
    match (&launch.script, &launch.image, &launch.kernel) {
        (Some(script), ..) => script::run(args, launch, script),
        (None, Some(image), Some(kernel)) => one(args, launch, image, kernel),
        _ => Err(usage("an image and a kernel are needed, or --script")),
    }
}

/// Runs one kernel.
fn one(args: &Args, launch: &LaunchArgs, path: &Path, kernel: &str) -> Result<u8, Failure> {
    let input = Input::new(args.timeout);
    let bytes = run::read(path, &input)?;
    let contents = run::open(path, &bytes)?;
    let (tracer, faults) = run::tracer(args);
    let has = |entry: &Entry| CodeObject::parse(&entry.data).is_ok_and(|code| names::find(&code, kernel).is_ok());
    let (entry, device) = choose(&contents, path, args, &tracer, &has)?;
    let code = run::parse(path, entry)?;
    run::tell(args, path, &code, &device);

    let kernel = find(&code, kernel, path)?.clone();
    let shape = shape(&kernel, launch.group_size, launch.groups, launch.items)?;
    // Everything is read and checked before memory is allocated, types before contents.
    spec::check(&kernel.metadata, &launch.arguments, |_| Ok::<_, Failure>(0))?;
    let files = Files::of_command(input);
    let globals = Globals::read(&code, &launch.set_global, &launch.dump_global, &files)?;
    let memory = Memory::read(&code, &kernel, launch, &files)?;

    let options = GpuOptions {
        stack_size: args.stack_size,
        faults: Some(faults),
        kernarg_bytes: u64::from(kernel.metadata.kernarg_segment_size).max(4096),
        timestamps: launch.repeat > 1,
        ..GpuOptions::default()
    };
    let mut gpu = Gpu::open(&device, options)?;
    let mut memory = memory.allocate(&device)?;
    let values = spec::check(&kernel.metadata, &launch.arguments, |index| {
        memory.address(index).ok_or_else(|| usage(format!("argument {index} has no buffer")))
    })?;
    let image = Image::load(&device, code, &memory.bindings, 0)?;
    globals.set(&image)?;

    // Constructors run before, destructors after, as with a runtime.
    let (before, after) = match kernel.metadata.kind {
        KernelKind::Normal => (of_kind(&image, KernelKind::Init), of_kind(&image, KernelKind::Fini)),
        _ => (None, None),
    };
    let (dynamic_lds, repeat, dump_kernarg) = (launch.dynamic_lds, launch.repeat, launch.dump_kernarg);
    let mut steps: Vec<Step> = before.iter().map(Step::once).collect();
    steps.push(Step { kernel: &kernel, shape, values, dynamic_lds, repeat, dump_kernarg });
    steps.extend(after.iter().map(Step::once));
    let kernels: Vec<(&Kernel, Shape)> = steps.iter().map(|step| (step.kernel, step.shape)).collect();
    let mut services = Services::new(&mut gpu, &image, &kernels, services(args, launch), Box::new(Unbuffered))?;
    run::catch_interrupts();
    let mut runner = Runner::new(args, &device, gpu);
    for step in &steps {
        runner.reserve(step.kernel, &step.shape)?;
    }
    for step in &steps {
        // What the device does not allow is found before the first of them runs.
        runner.segment(&image, &services, step)?;
    }
    for step in &steps {
        runner.run(&image, &mut services, step)?;
    }
    // Neither holds up the other; what failed first is the status.
    let same = memory.finish(launch.tolerance.unwrap_or_default());
    let printed = globals.dump(&image);
    let same = same?;
    printed.map(|()| if same { 0 } else { DIFFERS })
}

fn services(args: &Args, launch: &LaunchArgs) -> ServiceOptions {
    ServiceOptions { printf_bytes: launch.printf_buffer, hostcall: args.hostcall }
}

/// The kernel of constructors or destructors.
fn of_kind<'a>(image: &Image<'a>, kind: KernelKind) -> Option<Kernel<'a>> {
    image.code().kernels().iter().find(|kernel| kernel.metadata.kind == kind).cloned()
}

/// The kernel, or the names nearest to it.
fn find<'c, 'a>(code: &'c CodeObject<'a>, name: &str, path: &Path) -> Result<&'c Kernel<'a>, Failure> {
    names::find(code, name).map_err(|error| Failure::new(REFUSED, format!("{}: {error}", path.display())))
}

/// The grid that is asked for.
fn shape(
    kernel: &Kernel,
    group_size: Option<[u32; 3]>,
    groups: Option<[u32; 3]>,
    items: Option<[u32; 3]>,
) -> Result<Shape, Failure> {
    let required = kernel.metadata.reqd_workgroup_size.filter(|size| *size != [0; 3]);
    let group = group_size.or(required).ok_or_else(|| {
        usage(format!(
            "kernel {} takes work-groups of up to {} work-items of any form: say how many with --group-size X[,Y[,Z]]",
            kernel.name(),
            kernel.metadata.max_flat_workgroup_size
        ))
    })?;
    let shape = match (groups, items) {
        (Some(groups), _) => Shape::of_groups(group, groups),
        (None, items) => Shape::of_items(group, items.unwrap_or([1; 3])),
    };
    shape.ok_or_else(|| {
        let grid = match groups {
            Some(groups) => format!("{groups:?} work-groups"),
            None => format!("{:?} work-items", items.unwrap_or([1; 3])),
        };
        usage(format!("a grid of {grid} in work-groups of {group:?}: {SHAPE_RULE}"))
    })
}

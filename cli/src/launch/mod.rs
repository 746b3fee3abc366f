//! `kfdrun launch`: one kernel with arguments from the command line.

mod args;
mod choose;
mod kernarg;
mod memory;

pub use args::LaunchArgs;
pub use choose::choose;

use crate::args::Args;
use crate::exit::{Failure, REFUSED, USAGE};
use crate::output::{Unbuffered, clear_progress, say};
use crate::run;
use elf::container::Entry;
use elf::{CodeObject, Kernel, KernelKind};
use loader::spec::{self, CheckError};
use loader::{Finished, Gpu, GpuOptions, Image, Launch, Pending, Services, Shape, Stop, WaitState};
use memory::Memory;
use std::time::{Duration, Instant};

/// A buffer is not what was expected.
const DIFFERS: u8 = 1;

impl From<CheckError> for Failure {
    fn from(error: CheckError) -> Failure {
        Failure::new(USAGE, error.to_string())
    }
}

fn usage(text: impl Into<String>) -> Failure {
    Failure::new(USAGE, text)
}

/// Runs it.
pub fn run(args: &Args, launch: &LaunchArgs) -> Result<u8, Failure> {
    let path = launch.image.as_path();
    let bytes = run::read(path)?;
    let contents = run::open(path, &bytes)?;
    let (tracer, faults) = run::tracer(args);
    let name = launch.kernel.strip_suffix(".kd").unwrap_or(&launch.kernel);
    let has = |entry: &Entry| CodeObject::parse(&entry.data).is_ok_and(|code| code.kernel(name).is_some());
    let (entry, device) = choose(&contents, path, args, &tracer, &has)?;
    let code = run::parse(path, entry)?;
    run::tell(args, path, &code, &device);

    let kernel = find(&code, name, launch)?.clone();
    let shape = shape(launch, &kernel)?;
    // Everything is read and checked before memory is allocated.
    let memory = Memory::read(&code, &kernel, launch)?;
    spec::check(&kernel.metadata, &launch.arguments, |_| Ok::<_, Failure>(0))?;

    let options = GpuOptions {
        stack_size: args.stack_size,
        faults: Some(faults),
        kernarg_bytes: u64::from(kernel.metadata.kernarg_segment_size).max(4096),
        ..GpuOptions::default()
    };
    let mut gpu = Gpu::open(&device, options)?;
    let memory = memory.allocate(&device)?;
    let values = spec::check(&kernel.metadata, &launch.arguments, |index| {
        memory.address(index).ok_or_else(|| usage(format!("argument {index} has no buffer")))
    })?;
    let image = Image::load(&device, code, &memory.bindings, 0)?;
    memory.set_globals(&image)?;

    // Constructors run before, destructors after, as with a runtime.
    let of_kind = |kind: KernelKind| image.code().kernels().iter().find(|k| k.metadata.kind == kind).cloned();
    let (before, after) = match kernel.metadata.kind {
        KernelKind::Normal => (of_kind(KernelKind::Init), of_kind(KernelKind::Fini)),
        _ => (None, None),
    };
    let once = Shape { dims: 1, group: [1; 3], grid: [1; 3] };
    let mut steps: Vec<(&Kernel, Shape)> = before.iter().map(|kernel| (kernel, once)).collect();
    steps.push((&kernel, shape));
    steps.extend(after.iter().map(|kernel| (kernel, once)));
    let mut services = Services::new(&device, image.code(), &steps, launch.printf_buffer, Box::new(Unbuffered))?;
    gpu.set_hidden_buffers(services.buffers());
    for (kernel, shape) in &steps {
        let lanes = kernel.metadata.wavefront_size;
        gpu.reserve_scratch(gpu.private_bytes(kernel), lanes, shape.waves(lanes))?;
    }
    if args.verbose {
        let groups: Vec<u32> = shape.grid.iter().zip(shape.group).map(|(grid, group)| grid.div_ceil(group)).collect();
        say(&format!(
            "{}: {} x {} x {} work-groups of {} x {} x {} work-items; the grid has {} x {} x {} work-items",
            kernel.name(),
            groups[0],
            groups[1],
            groups[2],
            shape.group[0],
            shape.group[1],
            shape.group[2],
            shape.grid[0],
            shape.grid[1],
            shape.grid[2]
        ));
    }

    run::catch_interrupts();
    let deadline = args.timeout.map(|timeout| Instant::now() + timeout);
    let mut times = Vec::new();
    for (step, shape) in &steps {
        let is_main = step.name() == kernel.name();
        let values = if is_main { values.clone() } else { Vec::new() };
        let dynamic_lds = if is_main { launch.dynamic_lds } else { 0 };
        let request = Launch { shape: *shape, values, dynamic_lds, timeout: None };
        let segment = gpu.kernarg(&image, step, &request)?;
        if args.print_resource_usage {
            run::tell_resources(args, image.code(), step, shape, segment.group_segment_size, &device);
        }
        if is_main && launch.dump_kernarg {
            clear_progress();
            eprint!("{}", kernarg::annotated(&step.metadata, &segment));
        }
        for _ in 0..if is_main { launch.repeat } else { 1 } {
            let timeout = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let start = Instant::now();
            let mut wait = Wait::new(&mut services);
            let result = gpu.dispatch_bytes(&image, step, shape, &segment, timeout, &mut |state| wait.look(state));
            let (stopped, broken) = (wait.left, wait.broken);
            if is_main {
                times.push(start.elapsed());
            }
            clear_progress();
            for note in services.finish()? {
                say(&note);
            }
            if let Some(error) = broken {
                return Err(error.into());
            }
            match result {
                Ok(Finished::Completed) => {}
                Ok(Finished::Left) => {
                    let (signal, value) = stopped.unwrap_or_default();
                    let stop = Stop::Interrupted {
                        kernel: step.name().to_owned(),
                        signal,
                        value,
                        report: gpu.report(&image, step.name()),
                    };
                    return Err(loader::Error::from(stop).into());
                }
                Err(loader::Error::Stopped(mut stop)) => {
                    if let (Stop::Timeout { limit, .. }, Some(timeout)) = (stop.as_mut(), args.timeout) {
                        *limit = timeout;
                    }
                    return Err(loader::Error::Stopped(stop).into());
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
    if launch.repeat > 1 {
        tell_times(&mut times);
    }
    let same = memory.finish(&image, launch.tolerance.unwrap_or_default())?;
    Ok(if same { 0 } else { DIFFERS })
}

/// What is done while a kernel runs.
struct Wait<'s> {
    services: &'s mut Services,
    sleep: Duration,
    shown: Duration,
    left: Option<(kfd::GpuVa, i64)>,
    broken: Option<loader::Error>,
}

impl Wait<'_> {
    const POLL: (Duration, Duration) = (Duration::from_micros(20), Duration::from_micros(200));

    fn new(services: &mut Services) -> Wait<'_> {
        Wait { services, sleep: Wait::POLL.0, shown: Duration::ZERO, left: None, broken: None }
    }

    fn look(&mut self, state: &WaitState) -> Pending {
        if !run::watch(state, &mut self.shown) {
            self.left = Some((state.signal, state.value));
            return Pending::Leave;
        }
        match self.services.poll() {
            Ok(None) => Pending::Sleep(Duration::from_millis(100)),
            Ok(Some(true)) => {
                self.sleep = Wait::POLL.0;
                Pending::Again
            }
            Ok(Some(false)) => {
                self.sleep = (self.sleep + self.sleep / 8).min(Wait::POLL.1);
                Pending::Sleep(self.sleep)
            }
            Err(error) => {
                self.broken = Some(error);
                Pending::Leave
            }
        }
    }
}

/// The kernel, or the names nearest to it.
fn find<'c, 'a>(code: &'c CodeObject<'a>, name: &str, launch: &LaunchArgs) -> Result<&'c Kernel<'a>, Failure> {
    code.kernel(name).ok_or_else(|| {
        let kernels = code.kernels().iter().map(|kernel| kernel.name().to_owned()).collect();
        let error = loader::Error::NoKernel { name: name.to_owned(), kernels };
        Failure::new(REFUSED, format!("{}: {error}", launch.image.display()))
    })
}

fn shape(launch: &LaunchArgs, kernel: &Kernel) -> Result<Shape, Failure> {
    let required = kernel.metadata.reqd_workgroup_size.filter(|size| *size != [0; 3]);
    let group = launch.group_size.or(required).ok_or_else(|| {
        usage(format!(
            "kernel {} takes work-groups of up to {} work-items of any form: say how many with --group-size X[,Y[,Z]]",
            kernel.name(),
            kernel.metadata.max_flat_workgroup_size
        ))
    })?;
    let shape = match (launch.groups, launch.items) {
        (Some(groups), _) => Shape::of_groups(group, groups),
        (None, items) => Shape::of_items(group, items.unwrap_or([1; 3])),
    };
    shape.ok_or_else(|| {
        usage(format!(
            "--group-size {group:?}: a dimension of a work-group has 1 to 65535 work-items, one of the grid fewer than 2^32"
        ))
    })
}

fn tell_times(times: &mut [Duration]) {
    times.sort();
    let micros = |time: Option<&Duration>| time.map_or(0.0, |time| time.as_secs_f64() * 1e6);
    say(&format!(
        "{} launches, from the packet to its completion signal as this process sees them: least {:.1} us, median {:.1} us, most {:.1} us",
        times.len(),
        micros(times.first()),
        micros(times.get(times.len() / 2)),
        micros(times.last())
    ));
}

//! One kernel after the other on one device.

use super::kernarg;
use crate::args::Args;
use crate::exit::Failure;
use crate::output::{self, clear_progress, note, say};
use crate::run;
use elf::Kernel;
use kfd::Device;
use loader::{Finished, Gpu, Image, Kernarg, Launch, Pending, Services, Shape, Stop, Value, WaitState};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The device's queue and the time there is.
pub struct Runner<'a> {
    args: &'a Args,
    device: Arc<Device>,
    gpu: Gpu,
    deadline: Option<Instant>,
}

/// A kernel and how it is launched.
pub struct Step<'k, 'c> {
    /// Kernel.
    pub kernel: &'k Kernel<'c>,
    /// Grid.
    pub shape: Shape,
    /// Explicit arguments.
    pub values: Vec<Value>,
    /// LDS bytes beyond what it has statically.
    pub dynamic_lds: u32,
    /// How often.
    pub repeat: u32,
    /// Whether its segment is printed.
    pub dump_kernarg: bool,
}

impl<'k, 'c> Step<'k, 'c> {
    /// Constructors and destructors run once, without arguments.
    pub fn once(kernel: &'k Kernel<'c>) -> Step<'k, 'c> {
        let shape = Shape { dims: 1, group: [1; 3], grid: [1; 3] };
        Step { kernel, shape, values: Vec::new(), dynamic_lds: 0, repeat: 1, dump_kernarg: false }
    }
}

impl<'a> Runner<'a> {
    /// The time starts now.
    pub fn new(args: &'a Args, device: &Arc<Device>, gpu: Gpu) -> Runner<'a> {
        output::start(args.timeout);
        let deadline = args.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        Runner { args, device: device.clone(), gpu, deadline }
    }

    /// Makes scratch for what is to come: the packet processor takes it up before the first packet.
    pub fn reserve(&mut self, kernel: &Kernel, shape: &Shape) -> Result<(), Failure> {
        let lanes = kernel.metadata.wavefront_size;
        Ok(self.gpu.reserve_scratch(self.gpu.private_bytes(kernel), lanes, shape.waves(lanes))?)
    }

    /// Checks a step and builds its kernel argument segment.
    pub fn segment(&mut self, image: &Image, services: &Services, step: &Step) -> Result<Kernarg, Failure> {
        self.gpu.set_hidden_buffers(services.buffers());
        let (shape, values, dynamic_lds) = (step.shape, step.values.clone(), step.dynamic_lds);
        Ok(self.gpu.kernarg(image, step.kernel, &Launch { shape, values, dynamic_lds, timeout: None })?)
    }

    /// Runs a step.
    pub fn run(&mut self, image: &Image, services: &mut Services, step: &Step) -> Result<(), Failure> {
        let Step { kernel, shape, .. } = step;
        let segment = self.segment(image, services, step)?;
        if self.args.verbose {
            say(&described(kernel, shape));
        }
        if self.args.print_resource_usage {
            run::tell_resources(self.args, image.code(), kernel, shape, segment.group_segment_size, &self.device);
        }
        if step.dump_kernarg {
            clear_progress();
            note(&kernarg::annotated(&kernel.metadata, &segment));
        }
        let mut times = Vec::new();
        for _ in 0..step.repeat {
            let timeout = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let mut wait = Wait::new(services);
            let result =
                self.gpu.dispatch_bytes(image, kernel, shape, &segment, timeout, &mut |state| wait.look(state));
            let (stopped, broken) = (wait.left, wait.broken);
            clear_progress();
            let completed = matches!(result, Ok(Finished::Completed));
            for note in services.finish(image, kernel.name(), completed)? {
                say(&note);
            }
            if let Some(error) = broken {
                return Err(error.into());
            }
            match result {
                Ok(Finished::Completed) => times.extend(self.gpu.timestamps()?.map(|(start, end)| end - start)),
                Ok(Finished::Left) => {
                    let (signal, value) = stopped.unwrap_or_default();
                    let report = self.gpu.report(image);
                    let stop = Stop::Interrupted { kernel: kernel.name().to_owned(), signal, value, report };
                    return Err(loader::Error::from(stop).into());
                }
                Err(loader::Error::Stopped(mut stop)) => {
                    if let (Stop::Timeout { limit, .. }, Some(timeout)) = (stop.as_mut(), self.args.timeout) {
                        *limit = timeout;
                    }
                    services.add_hint(&mut stop);
                    return Err(loader::Error::Stopped(stop).into());
                }
                Err(error) => return Err(error.into()),
            }
        }
        if step.repeat > 1 {
            let tick = 1e6 / self.device.counter_frequency()? as f64;
            say(&summary(kernel.name(), step.repeat, &mut times, tick));
        }
        Ok(())
    }
}

/// The size of a launch.
fn described(kernel: &Kernel, shape: &Shape) -> String {
    let Shape { group, grid, .. } = shape;
    let groups: Vec<u32> = grid.iter().zip(group).map(|(grid, group)| grid.div_ceil(*group)).collect();
    format!(
        "{}: {} x {} x {} work-groups of {} x {} x {} work-items; the grid has {} x {} x {} work-items",
        kernel.name(),
        groups[0],
        groups[1],
        groups[2],
        group[0],
        group[1],
        group[2],
        grid[0],
        grid[1],
        grid[2]
    )
}

/// How long launches took, of `tick` microseconds a tick.
fn summary(kernel: &str, launches: u32, ticks: &mut [u64], tick: f64) -> String {
    ticks.sort();
    let micros = |ticks: u64| ticks as f64 * tick;
    // Of an even number the middle of the two in the middle.
    let median = match (ticks.get(ticks.len().saturating_sub(1) / 2), ticks.get(ticks.len() / 2)) {
        (Some(low), Some(high)) => low.midpoint(*high),
        _ => 0,
    };
    match (ticks.first(), ticks.last()) {
        (Some(least), Some(most)) => format!(
            "{kernel}: {launches} launches, from start to end by the GPU's clock (ticks of {:.1} ns): least {:.2} us, median {:.2} us, \
             most {:.2} us",
            tick * 1e3,
            micros(*least),
            micros(median),
            micros(*most)
        ),
        _ => format!("{kernel}: {launches} launches; the packet processor wrote no timestamps to their signals"),
    }
}

/// What is done while a kernel runs.
struct Wait<'s> {
    services: &'s mut Services,
    shown: Duration,
    left: Option<(kfd::GpuVa, i64)>,
    broken: Option<loader::Error>,
}

impl Wait<'_> {
    fn new(services: &mut Services) -> Wait<'_> {
        Wait { services, shown: Duration::ZERO, left: None, broken: None }
    }

    fn look(&mut self, state: &WaitState) -> Pending {
        if !run::watch(state, &mut self.shown) {
            self.left = Some((state.signal, state.value));
            return Pending::Leave;
        }
        self.services.poll().unwrap_or_else(|error| {
            self.broken = Some(error);
            Pending::Leave
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_ordered() {
        assert_eq!(
            summary("k", 3, &mut [300, 100, 250], 0.01),
            "k: 3 launches, from start to end by the GPU's clock (ticks of 10.0 ns): least 1.00 us, median 2.50 us, most 3.00 us"
        );
        assert!(summary("k", 2, &mut [300, 100], 0.01).contains("median 2.00 us"));
        assert!(summary("k", 2, &mut [], 0.01).contains("no timestamps"));
    }
}

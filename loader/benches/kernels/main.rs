//! Speed of the emulated GPUs: wave-instructions and lane-operations a second of CPU time, beside the same work on this
//! host in the same run: in Rust, vectorised, and through OpenCL when there is one. All results are compared.
//!
//! `cargo bench -p kfdrun-loader`; a word after `--` runs the kernels whose names hold it.

#![allow(clippy::unwrap_used, missing_docs)]

#[path = "../../tests/common/mod.rs"]
mod common;
mod native;
mod opencl;

use common::{Setup, address, read};
use emu::HostLevel;
use kfd::Buffer;
use loader::{Image, Shape, Value};
use opencl::OpenCl;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Sums what completed packets tell.
#[derive(Default)]
struct Counter {
    instructions: AtomicU64,
}

impl trace::Sink for Counter {
    fn record(&self, record: &trace::Record) {
        if let trace::Event::Complete { instructions, .. } = record.event {
            self.instructions.fetch_add(instructions, Ordering::Relaxed);
        }
    }
}

/// CPU time of the whole process.
fn cpu() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid place for the result.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Seconds that a sample takes. The kernel counts the CPU time of threads on other processors by its clock tick, so that a
/// reading may be some milliseconds behind.
const SAMPLE: f64 = 0.1;

/// Seconds of CPU time of a run, the best of several samples.
fn best(mut run: impl FnMut()) -> f64 {
    let start = Instant::now();
    run();
    let runs = (SAMPLE / start.elapsed().as_secs_f64().max(1e-9)).ceil().clamp(1.0, 1e6);
    let samples = (0..5).map(|_| {
        let start = cpu();
        for _ in 0..runs as u32 {
            run();
        }
        cpu() - start
    });
    samples.min().unwrap_or_default().as_secs_f64().max(1e-9) / runs
}

/// An argument of a kernel.
pub enum Place {
    /// A buffer with these words.
    In(Vec<u32>),
    /// A buffer of so many words for the result.
    Out(usize),
    /// A number.
    Word(u32),
}

/// A kernel to time.
pub struct Case {
    name: String,
    kernel: &'static str,
    group: u32,
    items: u32,
    places: Vec<Place>,
    /// The same work in Rust: doublewords of the result, and what writes them.
    native: Option<(usize, Native)>,
}

/// Writes the result; every word that the kernel writes.
type Native = Box<dyn Fn(&mut [u64])>;

impl Case {
    fn new(name: impl Into<String>, kernel: &'static str, [group, items]: [u32; 2], places: Vec<Place>) -> Case {
        Case { name: name.into(), kernel, group, items, places, native: None }
    }

    /// With the same work in Rust, on the result's words.
    fn native<T: bytemuck::Pod>(mut self, native: impl Fn(&mut [T]) + 'static) -> Case {
        let Place::Out(words) = self.places[self.result()] else { unreachable!("the place of the result") };
        self.native = Some((words / 2, Box::new(move |out| native(bytemuck::cast_slice_mut(out)))));
        self
    }

    /// The result by Rust, or nothing.
    fn expected(&self) -> Vec<u32> {
        let mut out = Vec::new();
        if let Some((size, native)) = &self.native {
            out.resize(*size, 0);
            native(&mut out);
        }
        bytemuck::cast_slice(&out).to_vec()
    }

    fn result(&self) -> usize {
        self.places.iter().position(|place| matches!(place, Place::Out(_))).unwrap()
    }
}

fn words(count: u32) -> Vec<u32> {
    (0..count).map(|i| i.wrapping_mul(2_654_435_761)).collect()
}

fn floats(count: u32) -> Vec<f32> {
    (0..count).map(|i| i as f32 * 0.001).collect()
}

fn bits(floats: &[f32]) -> Vec<u32> {
    floats.iter().map(|x| x.to_bits()).collect()
}

fn bits64(doubles: &[f64]) -> Vec<u32> {
    doubles.iter().flat_map(|x| [x.to_bits() as u32, (x.to_bits() >> 32) as u32]).collect()
}

const TURNS: u32 = 200_000;
const ITEMS: u32 = 1 << 16;

fn xorshift(items: u32) -> Case {
    Case::new("xorshift 65536 x 1000", "xorshift", [256, items], vec![Place::Out(items as usize), Place::Word(1000)])
        .native(|out| native::xorshift(out, 1000))
}

fn ten(lanes: u32) -> Case {
    let places = vec![Place::Out(lanes as usize), Place::Word(TURNS)];
    Case::new("ten-instruction loop, one wave", "ten", [lanes, lanes], places).native(|out| native::ten(out, TURNS))
}

fn cases(lanes: u32) -> Vec<Case> {
    let million = 1u32 << 20;
    let part = lanes / 2 + 1;
    let partial = vec![Place::Out(lanes as usize), Place::Word(TURNS), Place::Word(part)];
    let matmul = |n: u32| {
        let a = floats(n * n);
        let count = (n * n) as usize;
        let places = vec![Place::In(bits(&a)), Place::In(bits(&a)), Place::Out(count), Place::Word(n)];
        Case::new(format!("matmul {n}x{n} f32"), "matmul", [256, n * n], places)
            .native(move |c| native::matmul(&a, &a, c, n as usize))
    };
    let integers = words(million);
    let a = floats(million);
    let doubles: Vec<f64> = (0..million / 2).map(|i| i as f64 * 0.5).collect();
    vec![
        ten(lanes),
        Case::new(format!("the same, {part} lanes"), "ten_partial", [lanes, lanes], partial),
        Case::new("empty kernel, 16384 waves", "empty", [256, 16384 * lanes], vec![Place::Out(1)]),
        Case::new("collatz 65536", "collatz", [256, ITEMS], vec![Place::Out(ITEMS as usize), Place::Word(ITEMS)])
            .native(native::collatz),
        xorshift(ITEMS),
        matmul(256),
        matmul(512),
        Case::new(
            "LDS reduction of 1 M",
            "reduce",
            [256, million],
            vec![Place::In(integers.clone()), Place::Out(million as usize / 256), Place::Word(million)],
        )
        .native(move |out| native::sum(&integers, out)),
        Case::new(
            "vector add of 1 M f32",
            "vecadd",
            [256, million],
            vec![Place::In(bits(&a)), Place::In(bits(&a)), Place::Out(a.len()), Place::Word(million)],
        )
        .native(move |c| native::add(&a, &a, c)),
        Case::new(
            "stencil of 512 K f64",
            "stencil",
            [256, million / 2],
            vec![Place::In(bits64(&doubles)), Place::Out(million as usize), Place::Word(million / 2)],
        )
        .native(move |b| native::stencil(&doubles, b)),
        Case::new(
            "copy of 4 MiB",
            "copy",
            [256, million / 4],
            vec![Place::In(words(million)), Place::Out(million as usize)],
        )
        .native({
            let from = words(million);
            move |to: &mut [u32]| to.copy_from_slice(&from)
        }),
    ]
}

/// An emulated machine with the kernels loaded.
struct Machine<'a> {
    setup: Setup,
    image: Image<'a>,
    counter: Arc<Counter>,
}

impl<'a> Machine<'a> {
    fn new(target: &str, bytes: &'a [u8], workers: usize, level: Option<HostLevel>) -> Machine<'a> {
        let counter = Arc::new(Counter::default());
        let mut options = emu::Options { workers, ..emu::Options::default() };
        if let Some(level) = level {
            options.level = level;
        }
        let setup = Setup::with(target, options, vec![counter.clone()]);
        let image = setup.image(bytes);
        Machine { setup, image, counter }
    }

    fn launch(&mut self, case: &Case, values: &[Value]) {
        let shape = Shape::of_items([case.group, 1, 1], [case.items, 1, 1]).unwrap();
        self.setup.launch_shaped(&self.image, case.kernel, shape, values, 0).unwrap();
    }

    /// Runs a case once: its buffers, the arguments and the wave-instructions it takes.
    fn prepare(&mut self, case: &Case) -> (Vec<Option<Buffer>>, Vec<Value>, f64) {
        let buffers: Vec<Option<Buffer>> = case
            .places
            .iter()
            .map(|place| match place {
                Place::In(words) => Some(self.setup.buffer(words)),
                Place::Out(count) => Some(self.setup.buffer(&vec![0; *count])),
                Place::Word(_) => None,
            })
            .collect();
        let values: Vec<Value> = case
            .places
            .iter()
            .zip(&buffers)
            .map(|(place, buffer)| match (place, buffer) {
                (Place::Word(word), _) => Value::from(*word),
                (_, Some(buffer)) => address(buffer),
                _ => unreachable!("a buffer for each place but words"),
            })
            .collect();
        self.counter.instructions.store(0, Ordering::Relaxed);
        self.launch(case, &values);
        let instructions = self.counter.instructions.load(Ordering::Relaxed) as f64;
        (buffers, values, instructions)
    }

    /// Seconds of CPU time and wave-instructions; the result is compared with what the host finds.
    fn time(&mut self, case: &Case) -> (f64, f64) {
        let (buffers, values, instructions) = self.prepare(case);
        let expected = case.expected();
        let found = read(buffers[case.result()].as_ref().unwrap(), expected.len());
        assert!(found == expected, "{}: the emulated GPU and the host differ", case.name);
        (best(|| self.launch(case, &values)), instructions)
    }

    /// Wall times of many dispatches of an empty kernel and their waits.
    fn latency(&mut self, lanes: u32) -> [Duration; 2] {
        let case = Case::new("empty kernel", "empty", [lanes, lanes], vec![Place::Out(1)]);
        let (_buffers, values, _) = self.prepare(&case);
        let mut times: Vec<Duration> = (0..1000)
            .map(|_| {
                let start = Instant::now();
                self.launch(&case, &values);
                start.elapsed()
            })
            .collect();
        times.sort();
        [times[0], times[500]]
    }
}

/// Prints a case's line.
fn report(machine: &mut Machine, target: &str, lanes: u32, case: &Case, opencl: Option<&OpenCl>) {
    let (time, instructions) = machine.time(case);
    let ratio = |other: f64| format!("{:.1}", time / other);
    let native = case.native.as_ref().map_or("-".to_owned(), |(size, native)| {
        let mut out = vec![0; *size];
        ratio(best(|| native(std::hint::black_box(&mut out))))
    });
    let other = opencl.filter(|_| case.kernel != "ten_partial").map_or("-".to_owned(), |opencl| {
        let launch = opencl.prepare(case);
        launch.run();
        let expected = case.expected();
        assert!(launch.read(case.result(), expected.len()) == expected, "{}: OpenCL and Rust differ", case.name);
        ratio(best(|| launch.run()))
    });
    println!(
        "| {} | {target} | {:.2} | {:.0} | {:.1} | {:.2} | {native} | {other} |",
        case.name,
        instructions / 1e6,
        instructions / time / 1e6,
        instructions * lanes as f64 / time / 1e9,
        time * 1e3,
    );
}

fn main() {
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/programs/images");
    let opencl = OpenCl::open();
    match &opencl {
        Ok(opencl) => println!("OpenCL: {}\n", opencl.name()),
        Err(error) => println!("no OpenCL to compare with: {error}\n"),
    }
    println!(
        "| kernel | target | wave-instructions, M | M wave-instructions/s | G lane-operations/s | ms | times Rust's | times OpenCL's |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let files = [("gfx1100", 32), ("gfx90a", 64)]
        .map(|(target, lanes)| (target, lanes, std::fs::read(images.join(format!("bench.{target}"))).unwrap()));
    for (target, lanes, bytes) in &files {
        let mut machine = Machine::new(target, bytes, 1, None);
        for case in cases(*lanes).iter().filter(|case| case.name.contains(&filter)) {
            report(&mut machine, target, *lanes, case, opencl.as_ref().ok());
        }
    }
    if !filter.is_empty() {
        return;
    }

    println!("\nTen-instruction loop by vector width of the host, M wave-instructions/s:\n");
    println!("| target | width | all lanes | half of them and one |\n|---|---|---|---|");
    for (target, lanes, bytes) in &files {
        for level in HostLevel::available() {
            let mut machine = Machine::new(target, bytes, 1, Some(level));
            let places = vec![Place::Out(*lanes as usize), Place::Word(TURNS), Place::Word(lanes / 2 + 1)];
            let partial = Case::new("partial", "ten_partial", [*lanes, *lanes], places);
            let [all, part] = [ten(*lanes), partial].map(|case| {
                let (time, instructions) = machine.time(&case);
                instructions / time / 1e6
            });
            println!("| {target} | {level} | {all:.0} | {part:.0} |");
        }
    }

    println!("\nWall time of xorshift 262144 x 1000 by workers, and of a dispatch of an empty kernel with its wait:\n");
    println!(
        "| target | 1 worker, ms | 2 workers, ms | ratio | empty, least | empty, median |\n|---|---|---|---|---|---|"
    );
    for (target, lanes, bytes) in &files {
        let [one, two] = [1, 2].map(|workers| {
            let mut machine = Machine::new(target, bytes, workers, None);
            let case = xorshift(4 * ITEMS);
            let (_buffers, values, _) = machine.prepare(&case);
            let times = (0..5).map(|_| {
                let start = Instant::now();
                machine.launch(&case, &values);
                start.elapsed()
            });
            times.min().unwrap_or_default().as_secs_f64() * 1e3
        });
        let [least, median] = Machine::new(target, bytes, 1, None).latency(*lanes);
        println!("| {target} | {one:.1} | {two:.1} | {:.2} | {least:?} | {median:?} |", one / two);
    }
}

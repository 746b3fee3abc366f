//! Speed of the emulated GPUs: wave-instructions and lane-operations a second of CPU time, beside the same work in Rust on
//! this host, vectorised, in the same run.
//!
//! `cargo bench -p kfdrun-loader`; a word after `--` runs the kernels whose names hold it.

#![allow(clippy::unwrap_used)]

#[path = "../tests/common/mod.rs"]
mod common;

use common::{Setup, address};
use kfd::Buffer;
use loader::{Image, Shape, Value};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Sums what completed packets tell.
#[derive(Default)]
struct Counter {
    instructions: AtomicU64,
    waves: AtomicU64,
}

impl trace::Sink for Counter {
    fn record(&self, record: &trace::Record) {
        if let trace::Event::Complete { instructions, waves, .. } = record.event {
            self.instructions.fetch_add(instructions, Ordering::Relaxed);
            self.waves.fetch_add(waves, Ordering::Relaxed);
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

/// Best CPU time of several runs.
fn best(mut run: impl FnMut()) -> Duration {
    (0..5)
        .map(|_| {
            let start = cpu();
            run();
            cpu() - start
        })
        .min()
        .unwrap_or_default()
}

struct Bench<'a> {
    setup: Setup,
    image: Image<'a>,
    counter: Arc<Counter>,
    target: &'a str,
    lanes: f64,
    filter: Option<String>,
}

impl Bench<'_> {
    /// Runs a kernel and prints its line; `native` is the same work on the host.
    fn run(&mut self, name: &str, kernel: &str, group: u32, items: u32, values: &[Value], native: Option<&dyn Fn()>) {
        if self.filter.as_ref().is_some_and(|filter| !name.contains(filter.as_str())) {
            return;
        }
        let shape = Shape::of_items([group, 1, 1], [items, 1, 1]).unwrap();
        self.counter.instructions.store(0, Ordering::Relaxed);
        self.setup.launch_shaped(&self.image, kernel, shape, values, 0).unwrap();
        let instructions = self.counter.instructions.load(Ordering::Relaxed) as f64;
        let time = best(|| self.setup.launch_shaped(&self.image, kernel, shape, values, 0).unwrap()).as_secs_f64();
        let ratio = native.map_or("-".to_owned(), |native| {
            let host = best(native).as_secs_f64();
            format!("{:.1}", time / host.max(1e-9))
        });
        println!(
            "| {name} | {} | {:.2} | {:.0} | {:.1} | {:.2} | {ratio} |",
            self.target,
            instructions / 1e6,
            instructions / time / 1e6,
            instructions * self.lanes / time / 1e9,
            time * 1e3,
        );
    }
}

impl Bench<'_> {
    /// Prints the wall time of a dispatch and its wait.
    fn latency(&mut self, group: u32, values: &[Value]) {
        let shape = Shape::of_items([group, 1, 1], [group, 1, 1]).unwrap();
        let mut times: Vec<Duration> = (0..1000)
            .map(|_| {
                let start = std::time::Instant::now();
                self.setup.launch_shaped(&self.image, "empty", shape, values, 0).unwrap();
                start.elapsed()
            })
            .collect();
        times.sort();
        println!(
            "| empty kernel: dispatch and wait, wall time of 1000 | {} | least {:?} | median {:?} | | | |",
            self.target, times[0], times[500]
        );
    }
}

fn words(count: u32) -> Vec<u32> {
    (0..count).map(|i| i.wrapping_mul(2_654_435_761)).collect()
}

fn floats(count: u32) -> Vec<u32> {
    (0..count).map(|i| (i as f32 * 0.001).to_bits()).collect()
}

/// A function compiled with AVX2 and FMA where the host has them.
macro_rules! native {
    ($name:ident($($arg:ident: $type:ty),*) $body:block) => {
        fn $name($($arg: $type),*) {
            #[inline(always)]
            fn body($($arg: $type),*) $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                fn wide($($arg: $type),*) { body($($arg),*) }
                if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                    // SAFETY: the host has the features.
                    return unsafe { wide($($arg),*) };
                }
            }
            body($($arg),*)
        }
    };
}

native!(ten(out: &mut [u32], turns: u32) {
    for (chunk, out) in out.chunks_mut(32).enumerate() {
        let mut a: [u32; 32] = std::array::from_fn(|i| (chunk * 32 + i) as u32);
        let b: [u32; 32] = std::array::from_fn(|i| a[i] * 3 + 1);
        let mut f: [f32; 32] = std::array::from_fn(|i| 1.0 + a[i] as f32);
        for _ in 0..turns {
            for i in 0..32 {
                let x = a[i].wrapping_add(b[i]);
                let c = x.wrapping_mul(b[i]);
                f[i] = f[i].mul_add(0.999, 0.5);
                let d = x ^ c;
                a[i] = (if d > b[i] { c } else { x }).wrapping_add(d);
            }
        }
        for (i, out) in out.iter_mut().enumerate() {
            *out = a[i] ^ f[i].to_bits();
        }
    }
});
native!(xorshift(out: &mut [u32], turns: u32) {
    for (chunk, out) in out.chunks_mut(32).enumerate() {
        let mut x: [u32; 32] = std::array::from_fn(|i| (chunk * 32 + i + 1) as u32);
        for _ in 0..turns {
            for x in &mut x {
                *x ^= *x << 13;
                *x ^= *x >> 17;
                *x ^= *x << 5;
            }
        }
        out.copy_from_slice(&x[..out.len()]);
    }
});
native!(collatz(out: &mut [u32]) {
    for (i, out) in out.iter_mut().enumerate() {
        let (mut x, mut steps) = (i as u32 + 1, 0);
        while x != 1 {
            x = if x & 1 == 1 { x.wrapping_mul(3).wrapping_add(1) } else { x / 2 };
            steps += 1;
        }
        *out = steps;
    }
});
native!(matmul(a: &[f32], b: &[f32], c: &mut [f32], n: usize) {
    for row in 0..n {
        for k in 0..n {
            let x = a[row * n + k];
            for column in 0..n {
                c[row * n + column] = x.mul_add(b[k * n + column], c[row * n + column]);
            }
        }
    }
});
native!(add(a: &[f32], b: &[f32], c: &mut [f32]) {
    for ((a, b), c) in a.iter().zip(b).zip(c) {
        *c = a + b;
    }
});
native!(stencil(a: &[f64], b: &mut [f64]) {
    for (w, b) in a.windows(3).zip(&mut b[1..]) {
        *b = w[1] * 0.5 + (w[0] + w[2]) * 0.25;
    }
});
native!(sum(a: &[u32], out: &mut [u32]) {
    for (a, out) in a.chunks(256).zip(out) {
        *out = a.iter().fold(0, |sum, x| sum.wrapping_add(*x));
    }
});

fn main() {
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    println!(
        "| kernel | target | wave-instructions, M | M wave-instructions/s | G lane-operations/s | ms | times the host's |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (target, lanes) in [("gfx1100", 32.0), ("gfx90a", 64.0)] {
        let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/programs/images");
        let bytes = std::fs::read(images.join(format!("bench.{target}"))).unwrap();
        let counter = Arc::new(Counter::default());
        let options = emu::Options { workers: 1, ..emu::Options::default() };
        let setup = Setup::with(target, options, vec![counter.clone()]);
        let image = setup.image(&bytes);
        let mut bench = Bench { setup, image, counter, target, lanes, filter: filter.clone() };
        let buffer = |bench: &Bench, words: &[u32]| -> Buffer { bench.setup.buffer(words) };
        use std::hint::black_box;

        let out = buffer(&bench, &vec![0; 1 << 20]);
        let value = |word: u32| Value::from(word);
        let lanes32 = lanes as u32;
        let (turns, o) = (200_000, address(&out));
        bench.run(
            "ten-instruction loop, one wave",
            "ten",
            lanes32,
            lanes32,
            &[o.clone(), value(turns)],
            Some(&|| {
                let mut out = vec![0; lanes32 as usize];
                ten(&mut out, turns);
                black_box(out);
            }),
        );
        let part = lanes32 / 2 + 1;
        let values = [o.clone(), value(turns), value(part)];
        bench.run(&format!("the same, {part} lanes"), "ten_partial", lanes32, lanes32, &values, None);
        bench.run("empty kernel, one wave", "empty", lanes32, lanes32, std::slice::from_ref(&o), None);
        bench.latency(lanes32, std::slice::from_ref(&o));
        bench.run("empty kernel, 16384 waves", "empty", 256, 16384 * lanes32, std::slice::from_ref(&o), None);
        let n = 1 << 16;
        bench.run(
            "collatz 65536",
            "collatz",
            256,
            n,
            &[o.clone(), value(n)],
            Some(&|| {
                let mut out = vec![0; n as usize];
                collatz(&mut out);
                black_box(out);
            }),
        );
        bench.run(
            "xorshift 65536 x 1000",
            "xorshift",
            256,
            n,
            &[o.clone(), value(1000)],
            Some(&|| {
                let mut out = vec![0; n as usize];
                xorshift(&mut out, 1000);
                black_box(out);
            }),
        );
        for n in [256u32, 512] {
            let host: Vec<f32> = floats(n * n).into_iter().map(f32::from_bits).collect();
            let (a, b) = (buffer(&bench, &floats(n * n)), buffer(&bench, &floats(n * n)));
            let values = [address(&a), address(&b), o.clone(), value(n)];
            bench.run(
                &format!("matmul {n}x{n} f32"),
                "matmul",
                256,
                n * n,
                &values,
                Some(&|| {
                    let mut c = vec![0.0; (n * n) as usize];
                    matmul(&host, &host, &mut c, n as usize);
                    black_box(c);
                }),
            );
        }
        let n = 1 << 20;
        let input = buffer(&bench, &words(n));
        let host = words(n);
        let values = [address(&input), o.clone(), value(n)];
        bench.run(
            "LDS reduction of 1 M",
            "reduce",
            256,
            n,
            &values,
            Some(&|| {
                let mut out = vec![0; (n / 256) as usize];
                sum(&host, &mut out);
                black_box(out);
            }),
        );
        let host: Vec<f32> = floats(n).into_iter().map(f32::from_bits).collect();
        let (a, b) = (buffer(&bench, &floats(n)), buffer(&bench, &floats(n)));
        let values = [address(&a), address(&b), o.clone(), value(n)];
        bench.run(
            "vector add of 1 M f32",
            "vecadd",
            256,
            n,
            &values,
            Some(&|| {
                let mut c = vec![0.0; n as usize];
                add(&host, &host, &mut c);
                black_box(c);
            }),
        );
        let doubles: Vec<f64> = (0..n / 2).map(|i| i as f64 * 0.5).collect();
        let bits: Vec<u32> = doubles.iter().flat_map(|x| [x.to_bits() as u32, (x.to_bits() >> 32) as u32]).collect();
        let a = buffer(&bench, &bits);
        let values = [address(&a), o.clone(), value(n / 2)];
        bench.run(
            "stencil of 512 K f64",
            "stencil",
            256,
            n / 2,
            &values,
            Some(&|| {
                let mut b = vec![0.0; doubles.len()];
                stencil(&doubles, &mut b);
                black_box(b);
            }),
        );
        let values = [address(&input), o.clone()];
        let host = words(n);
        bench.run(
            "copy of 4 MiB",
            "copy",
            256,
            n / 4,
            &values,
            Some(&|| {
                black_box(host.clone());
            }),
        );
    }
}

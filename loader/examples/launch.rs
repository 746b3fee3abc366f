//! Loads an image, launches a kernel on the emulated GPU and reads the result: `cargo run --example launch`.
//!
//! `Arc::new(kfd::LinuxDriver)` in place of the emulated driver runs the same on a real one.

use elf::CodeObject;
use emu::{EmulatedDriver, Machine, Options, isa::Target};
use kfd::{Device, Kfd, Topology};
use loader::{Gpu, GpuOptions, Image, Launch, Pending, Shape, Value};
use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use trace::Tracer;

/// Twice each number.
pub fn run(numbers: &[f32]) -> Result<Vec<f32>, Box<dyn Error>> {
    let file = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/programs/images/arguments.gfx90a"))?;
    let driver = EmulatedDriver::new(Machine::with(&[Target::Gfx90a]), Options::default(), Tracer::default())?;
    let kfd = Kfd::open(Arc::new(driver), Tracer::default())?;
    let topology = Topology::read_gpus(kfd.system())?;
    let node = topology.gpus().next().ok_or("no GPU")?;
    let device = Device::open(&kfd, node, topology.node_count())?;
    let mut gpu = Gpu::open(&device, GpuOptions::default())?;
    let image = Image::load(&device, CodeObject::parse(&file)?, &HashMap::new(), 0)?;
    let kernel = image.code().kernel("scale").ok_or("no such kernel")?;

    // scale(global const float *in, global float *out, float factor, uint n)
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    let from = loader::host_visible(&device, bytes.len() as u64, "in")?;
    let to = loader::host_visible(&device, bytes.len() as u64, "out")?;
    from.write_bytes(0, &bytes)?;
    let count = numbers.len() as u32;
    let values = vec![Value::Address(from.va().0), Value::Address(to.va().0), Value::from(2f32), Value::from(count)];
    let shape = Shape::of_items([64, 1, 1], [count, 1, 1]).ok_or("an empty grid")?;
    let launch = Launch { shape, values, dynamic_lds: 0, timeout: Some(Duration::from_secs(60)) };
    gpu.dispatch(&image, kernel, &launch, &mut |_| Pending::Sleep(Duration::from_millis(100)))?;

    let mut bytes = vec![0; bytes.len()];
    to.read_bytes(0, &mut bytes)?;
    Ok(bytes.chunks_exact(4).map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect())
}

#[allow(dead_code)]
fn main() -> Result<(), Box<dyn Error>> {
    println!("{:?}", run(&[1.0, 2.5, -3.0])?);
    Ok(())
}

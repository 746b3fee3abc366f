//! Runs the kernels of an image on an emulated machine.

use kfd::{Buffer, Device, Kfd, Kind, Topology};
use loader::{Gpu, GpuOptions, Image, Launch, Pending, Shape, Value};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use trace::{LastFault, Tracer};

/// Longest time for one kernel.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs `kernel_0` to `kernel_{count - 1}` for `lanes` work-items each; the results of each kernel.
pub fn run(image: &Path, target: &str, count: u64, inputs: &[u32; 16], lanes: u32) -> Result<Vec<Vec<u64>>, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let target = emu::isa::Target::from_name(target).ok_or_else(|| format!("no emulated machine has a {target}"))?;
    let bytes = std::fs::read(image).map_err(|error| text(&error))?;
    let code = elf::CodeObject::parse(&bytes).map_err(|error| text(&error))?;
    let faults = Arc::new(LastFault::default());
    let tracer = Tracer::new(vec![faults.clone()]);
    let options = emu::Options { workers: 1, ..emu::Options::default() };
    let driver = emu::EmulatedDriver::new(emu::Machine::with(&[target]), options, tracer.clone())
        .map_err(|error| text(&error))?;
    let kfd = Kfd::open(Arc::new(driver), tracer).map_err(|error| text(&error))?;
    let topology = Topology::read(kfd.system()).map_err(|error| text(&error))?;
    let node = topology.first_gpu().map_err(|error| text(&error))?;
    let device = Device::open(&kfd, node, topology.node_count()).map_err(|error| text(&error))?;
    let options = GpuOptions { faults: Some(faults), ..GpuOptions::default() };
    let mut gpu = Gpu::open(&device, options).map_err(|error| text(&error))?;
    let image = Image::load(&device, code, &HashMap::new(), 0).map_err(|error| text(&error))?;
    let input = Buffer::new(&device, Kind::VramHostVisible, 64, "inputs").map_err(|error| text(&error))?;
    let words: Vec<u8> = inputs.iter().flat_map(|word| word.to_le_bytes()).collect();
    input.write_bytes(0, &words).map_err(|error| text(&error))?;
    let size = 8 * u64::from(lanes);
    let output = Buffer::new(&device, Kind::VramHostVisible, size, "results").map_err(|error| text(&error))?;
    let shape = Shape::of_items([64, 1, 1], [lanes, 1, 1]).ok_or("no such shape")?;
    let values = vec![Value::Address(input.va().0), Value::Address(output.va().0)];
    let launch = Launch { shape, values, dynamic_lds: 0, timeout: Some(LIMIT) };
    let mut results = Vec::new();
    for index in 0..count {
        output.fill(0, size, 0xee).map_err(|error| text(&error))?;
        let kernel = image.kernel(&format!("kernel_{index}")).map_err(|error| text(&error))?;
        gpu.dispatch(&image, kernel, &launch, &mut |_| Pending::Sleep(Duration::from_millis(100)))
            .map_err(|error| format!("kernel_{index}: {error}"))?;
        let mut bytes = vec![0; size as usize];
        output.read_bytes(0, &mut bytes).map_err(|error| text(&error))?;
        let word = |chunk: &[u8]| chunk.try_into().map(u64::from_le_bytes).unwrap_or_default();
        results.push(bytes.chunks_exact(8).map(word).collect());
    }
    Ok(results)
}

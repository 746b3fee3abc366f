//! Runs images on an emulated machine.

use crate::plan::{Order, Variant};
use kfd::{Buffer, Device, Kfd, Kind, Topology, uapi};
use loader::program::{Ending, Program};
use loader::rpc::Output;
use loader::{Gpu, GpuOptions, Image, Launch, Pending, Shape, Value};
use std::collections::HashMap;
use std::fmt::Display;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use trace::{LastFault, Tracer};

/// Longest time for one kernel or program.
const LIMIT: Duration = Duration::from_secs(60);

fn text(error: impl Display) -> String {
    error.to_string()
}

/// An emulated machine with the variant's GPU, opened.
fn open(variant: &Variant) -> Result<(Arc<Device>, Arc<LastFault>), String> {
    let name = variant.processor();
    let target = emu::isa::Target::from_name(name).ok_or_else(|| format!("no emulated machine has a {name}"))?;
    let faults = Arc::new(LastFault::default());
    let tracer = Tracer::new(vec![faults.clone()]);
    let (workers, seed) = match variant.order {
        Order::Workers(workers) => (workers, None),
        Order::Seed(seed) => (1, Some(seed)),
    };
    let options = emu::Options { workers, seed, ..emu::Options::default() };
    let driver = emu::EmulatedDriver::new(emu::Machine::with(&[target]), options, tracer.clone()).map_err(text)?;
    let kfd = Kfd::open(Arc::new(driver), tracer).map_err(text)?;
    if variant.target.contains("xnack+") {
        kfd.ioctl(&mut uapi::SetXnackModeArgs { xnack_enabled: 1 })
            .map_err(|errno| format!("SET_XNACK_MODE: {errno}"))?;
    }
    let topology = Topology::read(kfd.system()).map_err(text)?;
    let node = topology.first_gpu().map_err(text)?;
    let device = Device::open(&kfd, node, topology.node_count()).map_err(text)?;
    Ok((device, faults))
}

/// Runs `kernel_0` to `kernel_{count - 1}` for `lanes` work-items each in groups of `group`; the results of each kernel.
pub fn kernels(
    image: &Path,
    variant: &Variant,
    count: u64,
    inputs: &[u32; 16],
    (group, lanes): (u32, u32),
) -> Result<Vec<Vec<u64>>, String> {
    let bytes = std::fs::read(image).map_err(text)?;
    let code = elf::CodeObject::parse(&bytes).map_err(text)?;
    let (device, faults) = open(variant)?;
    let options = GpuOptions { faults: Some(faults), ..GpuOptions::default() };
    let mut gpu = Gpu::open(&device, options).map_err(text)?;
    let image = Image::load(&device, code, &HashMap::new(), 0).map_err(text)?;
    let input = Buffer::new(&device, Kind::VramHostVisible, 64, "inputs").map_err(text)?;
    let words: Vec<u8> = inputs.iter().flat_map(|word| word.to_le_bytes()).collect();
    input.write_bytes(0, &words).map_err(text)?;
    let size = 8 * u64::from(lanes);
    let output = Buffer::new(&device, Kind::VramHostVisible, size, "results").map_err(text)?;
    let shape = Shape::of_items([group, 1, 1], [lanes, 1, 1]).ok_or("no such shape")?;
    let values = vec![Value::Address(input.va().0), Value::Address(output.va().0)];
    let launch = Launch { shape, values, dynamic_lds: 0, timeout: Some(LIMIT) };
    let mut results = Vec::new();
    for index in 0..count {
        output.fill(0, size, 0xee).map_err(text)?;
        let kernel = image.kernel(&format!("kernel_{index}")).map_err(text)?;
        gpu.dispatch(&image, kernel, &launch, &mut |_| Pending::Sleep(Duration::from_millis(100)))
            .map_err(|error| format!("kernel_{index}: {error}"))?;
        let mut bytes = vec![0; size as usize];
        output.read_bytes(0, &mut bytes).map_err(text)?;
        let word = |chunk: &[u8]| chunk.try_into().map(u64::from_le_bytes).unwrap_or_default();
        results.push(bytes.chunks_exact(8).map(word).collect());
    }
    Ok(results)
}

/// Keeps what a program prints.
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Output for Kept {
    fn stdout(&mut self, bytes: &[u8]) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        bytes.len()
    }

    fn stderr(&mut self, bytes: &[u8]) -> usize {
        self.stdout(bytes)
    }
}

/// Runs a program to its end; what it printed.
pub fn program(image: &Path, variant: &Variant) -> Result<String, String> {
    let bytes = std::fs::read(image).map_err(text)?;
    let code = elf::CodeObject::parse(&bytes).map_err(text)?;
    let (device, faults) = open(variant)?;
    let printed = Arc::new(Mutex::new(Vec::new()));
    let program = Program {
        arguments: vec!["program".into()],
        environment: Vec::new(),
        threads: [1; 3],
        blocks: [1; 3],
        timeout: Some(LIMIT),
        options: GpuOptions { faults: Some(faults), ..GpuOptions::default() },
        ends_process: false,
        calls: None,
        services: loader::ServiceOptions::default(),
        gcn_heap: None,
        gcn_stack: loader::program::DEFAULT_GCN_STACK,
        output: Box::new(Kept(printed.clone())),
    };
    let outcome = loader::program::run(&device, code, program, &mut |_| true).map_err(text)?;
    if outcome.ending != Ending::Returned(0) {
        return Err(format!("it ends with {:?}", outcome.ending));
    }
    let bytes = printed.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

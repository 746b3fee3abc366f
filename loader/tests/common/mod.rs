//! An emulated machine, and launches on it.

#![allow(dead_code, missing_docs, clippy::unwrap_used)]

use kfd::{Buffer, Device, Kfd, Kind, Topology};
use loader::{Error, Gpu, GpuOptions, Image, Launch, Pending, Shape, Value};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use trace::{LastFault, Tracer};

pub const TARGETS: [&str; 7] = ["gfx900", "gfx906", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201"];

/// An emulated machine with an image loaded.
pub struct Setup {
    /// Its GPU.
    pub gpu: Gpu,
    device: Arc<Device>,
}

impl Setup {
    pub fn new(target: &str) -> Setup {
        Setup::with(target, emu::Options::default(), Vec::new())
    }

    /// A machine with these options, whose events also go to `sinks`.
    pub fn with(target: &str, options: emu::Options, mut sinks: Vec<Arc<dyn trace::Sink>>) -> Setup {
        let faults = Arc::new(LastFault::default());
        sinks.push(faults.clone());
        let tracer = Tracer::new(sinks);
        let target = emu::isa::Target::from_name(target).expect("a target");
        let driver = emu::EmulatedDriver::new(emu::Machine::with(&[target]), options, tracer.clone()).unwrap();
        let kfd = Kfd::open(Arc::new(driver), tracer).unwrap();
        let topology = Topology::read(kfd.system()).unwrap();
        let device = Device::open(&kfd, topology.first_gpu().unwrap(), topology.node_count()).unwrap();
        let gpu = Gpu::open(&device, GpuOptions { faults: Some(faults), ..GpuOptions::default() }).unwrap();
        Setup { gpu, device }
    }

    pub fn image<'a>(&self, bytes: &'a [u8]) -> Image<'a> {
        self.bound(bytes, &HashMap::new()).unwrap()
    }

    /// Loads an image with addresses for undefined symbols.
    pub fn bound<'a>(&self, bytes: &'a [u8], bindings: &HashMap<String, u64>) -> Result<Image<'a>, Error> {
        Image::load(&self.device, elf::CodeObject::parse(bytes).unwrap(), bindings, 0)
    }

    pub fn buffer(&self, words: &[u32]) -> Buffer {
        let buffer = Buffer::new(&self.device, Kind::VramHostVisible, 4 * words.len() as u64, "test").unwrap();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        buffer.write_bytes(0, &bytes).unwrap();
        buffer
    }

    pub fn launch(
        &mut self,
        image: &Image,
        kernel: &str,
        group: u32,
        items: u32,
        values: &[Value],
    ) -> Result<(), Error> {
        self.launch_shaped(image, kernel, Shape::of_items([group, 1, 1], [items, 1, 1]).unwrap(), values, 0)
    }

    pub fn launch_shaped(
        &mut self,
        image: &Image,
        kernel: &str,
        shape: Shape,
        values: &[Value],
        dynamic_lds: u32,
    ) -> Result<(), Error> {
        let launch = Launch { shape, values: values.to_vec(), dynamic_lds, timeout: Some(Duration::from_secs(60)) };
        let kernel = image.kernel(kernel)?;
        self.gpu.dispatch(image, kernel, &launch, &mut |_| Pending::Sleep(Duration::from_millis(50))).map(drop)
    }
}

/// Words of a buffer.
pub fn read(buffer: &Buffer, count: usize) -> Vec<u32> {
    let mut bytes = vec![0; 4 * count];
    buffer.read_bytes(0, &mut bytes).unwrap();
    bytes.chunks_exact(4).map(|chunk| u32::from_le_bytes(chunk.try_into().unwrap())).collect()
}

/// A pointer argument.
pub fn address(buffer: &Buffer) -> Value {
    Value::Address(buffer.va().0)
}

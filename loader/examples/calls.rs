//! Runs a program that asks its host for prices, by a remote call of its own: `cargo run --example calls`.

use elf::CodeObject;
use emu::{EmulatedDriver, Machine, Options, isa::Target};
use kfd::{Device, Kfd, Topology};
use loader::program::{self, Outcome, Program};
use loader::rpc::{Handler, Output};
use loader::{GpuOptions, ServiceOptions};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use trace::Tracer;

/// The operation code that the program and this host agreed upon (tests/programs/prices.c). LLVM's begin with 0x63.
const PRICE: u32 = 0x6b00_0001;

/// Answers the program's calls from a list of prices.
fn prices(list: [u64; 4]) -> Handler {
    Box::new(move |port| {
        if port.opcode != PRICE {
            return None; // the library's
        }
        Some(Box::pin(async move {
            port.receive().await;
            port.reply(|lane| (port.packet(lane)[0] as usize).checked_sub(1).map_or(0, |item| list[item % 4])).await;
        }))
    })
}

/// Runs it; its output goes to `output`.
pub fn run(output: Box<dyn Output>) -> Result<Outcome, Box<dyn Error>> {
    let file = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/programs/images/prices.gfx1100"))?;
    let driver = EmulatedDriver::new(Machine::with(&[Target::Gfx1100]), Options::default(), Tracer::default())?;
    let kfd = Kfd::open(Arc::new(driver), Tracer::default())?;
    let topology = Topology::read_gpus(kfd.system())?;
    let node = topology.gpus().next().ok_or("no GPU")?;
    let device = Device::open(&kfd, node, topology.node_count())?;
    let program = Program {
        arguments: vec!["prices".into()],
        environment: Vec::new(),
        threads: [1; 3],
        blocks: [1; 3],
        timeout: Some(Duration::from_secs(60)),
        options: GpuOptions::default(),
        ends_process: false,
        output,
        services: ServiceOptions::default(),
        calls: Some(prices([5, 20, 100, 7])),
        gcn_heap: None,
        gcn_stack: program::DEFAULT_GCN_STACK,
    };
    Ok(program::run(&device, CodeObject::parse(&file)?, program, &mut |_| true)?)
}

#[allow(dead_code)]
struct Terminal;

impl Output for Terminal {
    fn stdout(&mut self, bytes: &[u8]) -> usize {
        print!("{}", String::from_utf8_lossy(bytes));
        bytes.len()
    }
    fn stderr(&mut self, bytes: &[u8]) -> usize {
        eprint!("{}", String::from_utf8_lossy(bytes));
        bytes.len()
    }
}

#[allow(dead_code)]
fn main() -> Result<(), Box<dyn Error>> {
    println!("{:?}", run(Box::new(Terminal))?.ending);
    Ok(())
}

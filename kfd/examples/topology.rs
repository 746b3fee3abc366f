//! Opens `/dev/kfd` and prints what the driver tells of the machine; then makes a queue on the first GPU.
//!
//! `cargo run -p kfdrun-kfd --example topology`, with `--trace` to see every call.

use kfd::{Device, Error, Events, Kfd, LinuxDriver, Queue, QueueConfig, System, Topology};
use std::process::ExitCode;
use std::sync::Arc;
use trace::{TextSink, Tracer};

fn main() -> ExitCode {
    let tracer = match std::env::args().nth(1).as_deref() {
        Some("--trace") => Tracer::new(vec![Arc::new(TextSink::new(std::io::stderr()))]),
        _ => Tracer::default(),
    };
    match run(&System::new(Arc::new(LinuxDriver), tracer)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", error.report());
            ExitCode::FAILURE
        }
    }
}

fn run(system: &System) -> Result<(), Error> {
    // The topology can be read by everybody, so it is there although the driver may refuse this process.
    let topology = Topology::read(system)?;
    for node in &topology.nodes {
        let kind = node.target().map_or("host".to_string(), |target| target.to_string());
        println!("node {} {kind} {}", node.index, node.name(system)?);
        for (key, value) in node.properties.lines() {
            println!("  {key} {value}");
        }
        for bank in node.mem_banks(system)? {
            println!("  memory bank {:?}", bank.lines());
        }
        println!("  {} caches", node.caches(system)?.len());
        for link in node.io_links(system)?.iter().chain(&node.p2p_links(system)?) {
            println!("  link {:?}", link.lines());
        }
    }
    for skipped in &topology.skipped {
        println!("{skipped}");
    }

    let kfd = Kfd::open_on(system)?;
    let (major, minor) = kfd.version();
    println!("interface {major}.{minor}, xnack {:?}", kfd.xnack()?);
    let device = Device::open(&kfd, topology.first_gpu()?, topology.node_count())?;
    let _events = Events::new(&device)?;
    let queue = Queue::create(&device, &QueueConfig::default())?;
    println!("queue {} on {}: {:?}", queue.id(), device.target(), queue.context_save());
    Ok(())
}

//! Prints what an AMDGPU code object holds: `cargo run -p kfdrun-elf --example kernels -- image...`

use elf::{CodeObject, Place};

fn main() {
    for path in std::env::args().skip(1) {
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) => {
                eprintln!("{path}: {error}");
                continue;
            }
        };
        match CodeObject::parse(&bytes) {
            Ok(object) => print(&path, &object),
            Err(error) => eprintln!("{path}: {error}"),
        }
    }
}

fn print(path: &str, object: &CodeObject<'_>) {
    println!("{path}: code object {} for {}", object.version(), object.target());
    for segment in object.segments() {
        println!("  segment {segment:?}");
    }
    for kernel in object.kernels() {
        let (m, d) = (&kernel.metadata, &kernel.descriptor);
        let generation = object.target().processor.generation;
        println!(
            "  kernel {} at {:#x}: wave{}, {} VGPRs, {} SGPRs, {} bytes of LDS, {} of scratch, {} of kernel arguments",
            m.name,
            kernel.entry_vaddr,
            m.wavefront_size,
            d.vgprs(generation),
            d.sgprs(generation),
            m.group_segment_fixed_size,
            m.private_segment_fixed_size,
            m.kernarg_segment_size
        );
        for arg in &m.args {
            println!("    {:4} {:4} {} {}", arg.offset, arg.size, arg.value_kind.name(), arg.name.unwrap_or_default());
        }
    }
    for symbol in object.symbols().iter().filter(|s| s.place == Place::Undefined && !s.name.is_empty()) {
        println!("  undefined {}", symbol.name);
    }
    for global in object.globals() {
        println!("  variable {} at {:#x}, {} bytes", global.name, global.vaddr().unwrap_or_default(), global.size);
    }
    println!("  {} relocations, {} printf formats", object.relocations().len(), object.printf().len());
}

//! Listings as text: rocminfo's labels, a tree, names only, JSON.

use super::collect::{Agent, Gpu};
use super::{Listing, SCHEMA};
use crate::json::Json;
use crate::style::{Colour, Style};
use kfd::uapi::sysfs;
use std::fmt::Write as _;

/// Column at which rocminfo's values start.
const VALUE: usize = 27;

/// Names only, one GPU a line, as `amdgpu-arch` prints them.
pub fn arch(listings: &[Listing]) -> String {
    let gpus = listings.iter().flat_map(|listing| &listing.agents).filter_map(|agent| agent.gpu.as_ref());
    gpus.map(|gpu| format!("{}\n", gpu.name.as_deref().unwrap_or("unknown"))).collect()
}

/// Lines with rocminfo's labels. Of several machines only the GPUs.
pub fn labels(listings: &[Listing], style: Style) -> String {
    let mut out = String::new();
    for listing in listings {
        if listings.len() > 1 {
            out += &format!("{}\n", style.paint(Colour::Bold, &format!("==== --device {} ====", listing.device)));
        }
        let several = listings.len() > 1;
        let shown = listing.agents.iter().enumerate().filter(|(_, agent)| !several || agent.gpu.is_some());
        for (index, agent) in shown {
            let title = format!("Agent {}", index + 1);
            let bar = "*".repeat(title.len());
            out += &format!("{bar}\n{}\n{bar}\n", style.paint(Colour::Bold, &title));
            out += &agent_labels(agent);
        }
    }
    out
}

fn agent_labels(agent: &Agent) -> String {
    let mut out = String::new();
    let mut put = |indent: usize, label: &str, value: Option<String>| {
        if let Some(value) = value {
            let width = VALUE.saturating_sub(indent);
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{:indent$}{:width$}{value}", "", format!("{label}:"));
        }
    };
    let decimal = |value: Option<u32>| value.map(|value| value.to_string());
    let both = |value: Option<u32>| value.map(|value| format!("{value}({value:#x})"));
    match &agent.gpu {
        None => {
            put(2, "Name", Some(agent.cpu_name.clone().unwrap_or_else(|| "CPU".to_owned())));
            put(2, "Uuid", Some("CPU-XX".to_owned()));
            put(2, "Marketing Name", agent.cpu_name.clone());
            put(2, "Vendor Name", Some("CPU".to_owned()));
            put(2, "Device Type", Some("CPU".to_owned()));
            put(2, "Max Clock Freq. (MHz)", decimal(agent.clock));
            put(2, "Internal Node ID", Some(agent.node.to_string()));
            put(2, "Compute Unit", decimal(agent.cores));
        }
        Some(gpu) => {
            put(2, "Name", Some(gpu.name.clone().unwrap_or_else(|| "unknown".to_owned())));
            put(2, "Uuid", Some(uuid(gpu)));
            put(2, "Marketing Name", Some(gpu.product.clone().unwrap_or_default()));
            put(2, "Vendor Name", gpu.pci_id.0.map(vendor));
            put(2, "Device Type", Some("GPU".to_owned()));
            put(2, "Chip ID", both(gpu.pci_id.1));
            put(2, "Max Clock Freq. (MHz)", decimal(agent.clock));
            put(2, "BDFID", decimal(gpu.location.1));
            put(2, "Internal Node ID", Some(agent.node.to_string()));
            put(2, "Compute Unit", decimal(gpu.compute_units));
            put(2, "SIMDs per CU", decimal(gpu.simds_per_cu));
            put(2, "Shader Engines", decimal(gpu.engines()));
            put(2, "Shader Arrs. per Eng.", decimal(gpu.arrays_per_engine));
            put(2, "Wavefront Size", both(gpu.wave));
            put(2, "Max Waves Per CU", both(gpu.waves_per_cu()));
            put(2, "Packet Processor uCode:", decimal(gpu.firmware.0));
            put(2, "SDMA engine uCode:", decimal(gpu.firmware.1));
            put(2, "XCCs", Some(gpu.xccs.to_string()));
            put(2, "PCI address", gpu.bdf());
            put(2, "KFD gpu_id", Some(gpu.id.to_string()));
            put(2, "Kernel name", gpu.asic.clone());
            put(2, "Render node", gpu.render.clone());
            put(2, "SDMA engines", gpu.sdma.0.map(|pcie| sdma(pcie, gpu.sdma.1)));
            put(2, "Compute queues", decimal(gpu.queues));
        }
    }
    pools(agent, &mut out);
    if let Some(gpu) = &agent.gpu {
        isas(gpu, &mut out);
    }
    out
}

fn vendor(id: u32) -> String {
    if id == 0x1002 { "AMD".to_owned() } else { format!("PCI vendor {id:#06x}") }
}

fn sdma(pcie: u32, xgmi: Option<u32>) -> String {
    xgmi.map_or_else(|| pcie.to_string(), |xgmi| format!("{pcie} and {xgmi} for xGMI"))
}

fn uuid(gpu: &Gpu) -> String {
    gpu.unique_id.map_or("GPU-XX".to_owned(), |id| format!("GPU-{id:016x}"))
}

/// What a heap type is called in rocminfo, with how the host reaches it.
fn segment(heap: Option<u32>) -> String {
    match heap {
        Some(sysfs::MEM_HEAP_TYPE_SYSTEM) => "GLOBAL; system memory".to_owned(),
        Some(sysfs::MEM_HEAP_TYPE_FB_PUBLIC) => "GLOBAL; VRAM, all of it visible to the host".to_owned(),
        Some(sysfs::MEM_HEAP_TYPE_FB_PRIVATE) => "GLOBAL; VRAM, small BAR".to_owned(),
        Some(sysfs::MEM_HEAP_TYPE_GPU_LDS) => "GROUP".to_owned(),
        Some(other) => format!("heap type {other}"),
        None => "unknown".to_owned(),
    }
}

fn pools(agent: &Agent, out: &mut String) {
    let lds = agent.gpu.as_ref().and_then(|gpu| gpu.lds_kib).map(|kib| ("GROUP".to_owned(), Some(u64::from(kib))));
    let banks = agent.banks.iter().map(|(heap, bytes)| (segment(*heap), bytes.map(|bytes| bytes >> 10)));
    let pools: Vec<(String, Option<u64>)> = banks.chain(lds).collect();
    if pools.is_empty() {
        return;
    }
    out.push_str("  Pool Info:\n");
    for (i, (segment, kib)) in pools.iter().enumerate() {
        let _ = writeln!(out, "    Pool {}", i + 1);
        let _ = writeln!(out, "      {:21}{segment}", "Segment:");
        if let Some(kib) = kib {
            let _ = writeln!(out, "      {:21}{kib}({kib:#x}) KB", "Size:");
        }
    }
}

fn isas(gpu: &Gpu, out: &mut String) {
    let generic = gpu.generic.map(|generic| format!("amdgcn-amd-amdhsa--{generic}"));
    let isas: Vec<String> = gpu.isa().into_iter().chain(generic).collect();
    if isas.is_empty() {
        return;
    }
    out.push_str("  ISA Info:\n");
    for (i, isa) in isas.iter().enumerate() {
        let _ = writeln!(out, "    ISA {}", i + 1);
        let _ = writeln!(out, "      {:21}{isa}", "Name:");
    }
}

/// SoC, XCC, shader engine, shader array, compute unit, SIMD. Which compute units are off is not known, only how many.
pub fn tree(listings: &[Listing]) -> String {
    let mut out = String::new();
    for listing in listings {
        for agent in &listing.agents {
            if let Some(gpu) = &agent.gpu {
                gpu_tree(&listing.device, agent.node, gpu, &mut out);
            }
        }
    }
    out
}

fn gpu_tree(device: &str, node: u32, gpu: &Gpu, out: &mut String) {
    let name = gpu.name.as_deref().unwrap_or("unknown processor");
    let product = gpu.product.as_ref().map_or(String::new(), |product| format!(" ({product})"));
    let _ = writeln!(out, "SoC: {name}{product}, {device} node {node}, gpu_id {}", gpu.id);
    let (Some(units), Some(simds), Some(arrays), Some(per_engine), Some(per_array)) =
        (gpu.compute_units, gpu.simds_per_cu, gpu.arrays, gpu.arrays_per_engine, gpu.cus_per_array)
    else {
        out.push_str("`- its topology lacks the numbers of what is in it\n");
        return;
    };
    let xccs = gpu.xccs.max(1);
    let engines = gpu.engines().unwrap_or(0) / xccs;
    let built = per_array.saturating_mul(arrays) / xccs;
    let waves = gpu.waves_per_simd.map_or(String::new(), |waves| format!(", {waves} waves each"));
    // A damaged topology may claim millions; a tree of them helps nobody.
    let shown = |count: u32| count.min(16);
    for xcc in 0..shown(xccs) {
        let last_xcc = xcc + 1 == shown(xccs);
        let units = units / xccs;
        let _ = writeln!(out, "{} XCC {xcc}: {units} CUs enabled of {built}", branch(last_xcc));
        let bar = if last_xcc { "   " } else { "|  " };
        for engine in 0..shown(engines) {
            let last = engine + 1 == shown(engines);
            let arrays = if per_engine == 1 { "1 array".to_owned() } else { format!("{per_engine} arrays") };
            let _ = writeln!(
                out,
                "{bar}{} SE {engine}: {arrays} of {per_array} CUs, {simds} SIMDs a CU{waves}",
                branch(last)
            );
        }
        if engines > shown(engines) {
            let _ = writeln!(out, "{bar}   and {} more", engines - shown(engines));
        }
    }
    if xccs > shown(xccs) {
        let _ = writeln!(out, "   and {} more", xccs - shown(xccs));
    }
    // GFX10 and later pair compute units, and some tools count the pairs.
    if gpu.name.as_deref().and_then(kfd::GfxTarget::from_name).is_some_and(|target| target.major() >= 10) {
        let _ = writeln!(out, "   {units} CUs are {} WGPs, which HIP may count instead", units / 2);
    }
}

fn branch(last: bool) -> &'static str {
    if last { "`-" } else { "|-" }
}

/// All of it.
pub fn json(listings: &[Listing]) -> Json {
    let machines = listings.iter().map(|listing| {
        Json::object([
            ("device", listing.device.as_str().into()),
            ("agents", Json::list(listing.agents.iter().map(agent_json))),
            ("problems", Json::list(listing.problems.iter().map(String::as_str))),
        ])
    });
    Json::object([
        ("schema", "kfdrun-devices".into()),
        ("schema_version", SCHEMA.into()),
        ("machines", Json::list(machines)),
    ])
}

fn agent_json(agent: &Agent) -> Json {
    let bank = |(heap, bytes): &(Option<u32>, Option<u64>)| {
        Json::object([("heap_type", (*heap).into()), ("size_in_bytes", (*bytes).into())])
    };
    let gpu = agent.gpu.as_ref().map_or(Json::Null, |gpu| {
        Json::object([
            ("name", gpu.name.clone().into()),
            ("isa", gpu.isa().into()),
            ("isa_xnack_known", gpu.xnack_known.into()),
            ("isa_generic", gpu.generic.map(|generic| format!("amdgcn-amd-amdhsa--{generic}")).into()),
            ("marketing_name", gpu.product.clone().into()),
            ("kernel_name", gpu.asic.clone().into()),
            ("uuid", uuid(gpu).into()),
            ("gpu_id", gpu.id.into()),
            ("pci_vendor", gpu.pci_id.0.into()),
            ("pci_device", gpu.pci_id.1.into()),
            ("pci_address", gpu.bdf().into()),
            ("render_node", gpu.render.clone().into()),
            ("compute_units", gpu.compute_units.into()),
            ("simds_per_cu", gpu.simds_per_cu.into()),
            ("xccs", gpu.xccs.into()),
            ("shader_engines", gpu.engines().into()),
            ("shader_arrays", gpu.arrays.into()),
            ("cus_per_shader_array", gpu.cus_per_array.into()),
            ("wavefront_size", gpu.wave.into()),
            ("waves_per_cu", gpu.waves_per_cu().into()),
            ("lds_kib_per_cu", gpu.lds_kib.into()),
            ("sdma_engines", gpu.sdma.0.into()),
            ("sdma_xgmi_engines", gpu.sdma.1.into()),
            ("compute_queues", gpu.queues.into()),
            ("fw_version", gpu.firmware.0.into()),
            ("sdma_fw_version", gpu.firmware.1.into()),
        ])
    });
    Json::object([
        ("node", agent.node.into()),
        ("type", if agent.gpu.is_some() { "GPU".into() } else { "CPU".into() }),
        ("cpu_cores", agent.cores.into()),
        ("max_clock_mhz", agent.clock.into()),
        ("memory_banks", Json::list(agent.banks.iter().map(bank))),
        ("gpu", gpu),
    ])
}

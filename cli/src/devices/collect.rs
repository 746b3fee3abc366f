//! What a machine's topology says, agent by agent.

use super::Listing;
use elf::{Processor, TargetId};
use kfd::uapi::sysfs;
use kfd::{Kfd, Node, System, Topology};

/// A node of the topology, what rocminfo calls an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agent {
    /// Number of the node.
    pub node: u32,
    /// Host cores.
    pub cores: Option<u32>,
    /// The GPU, if it is one.
    pub gpu: Option<Gpu>,
    /// Memory banks: heap type and bytes.
    pub banks: Vec<(Option<u32>, Option<u64>)>,
    /// Name of the host's processor.
    pub cpu_name: Option<String>,
    /// Greatest clock in MHz.
    pub clock: Option<u32>,
}

/// A GPU's numbers; absent is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gpu {
    /// `gpu_id`.
    pub id: u32,
    /// Processor, `gfx90a`.
    pub name: Option<String>,
    /// Target id, `gfx90a:sramecc+:xnack-`.
    pub target_id: Option<String>,
    /// Generic processor whose code runs too.
    pub generic: Option<&'static str>,
    /// Whether the XNACK mode was asked of the driver: without that the target id leaves it out.
    pub xnack_known: bool,
    /// What it is sold as.
    pub product: Option<String>,
    /// `name` of the node.
    pub asic: Option<String>,
    /// Serial number.
    pub unique_id: Option<u64>,
    /// PCI vendor and device.
    pub pci_id: (Option<u32>, Option<u32>),
    /// PCI domain and location.
    pub location: (Option<u32>, Option<u32>),
    /// Render node.
    pub render: Option<String>,
    /// Compute units, all XCCs.
    pub compute_units: Option<u32>,
    /// SIMDs of a compute unit.
    pub simds_per_cu: Option<u32>,
    /// XCCs.
    pub xccs: u32,
    /// Shader arrays, all XCCs.
    pub arrays: Option<u32>,
    /// Shader arrays of a shader engine.
    pub arrays_per_engine: Option<u32>,
    /// Compute units built into a shader array.
    pub cus_per_array: Option<u32>,
    /// Lanes of a wave.
    pub wave: Option<u32>,
    /// Waves of a SIMD.
    pub waves_per_simd: Option<u32>,
    /// KiB of LDS of a compute unit.
    pub lds_kib: Option<u32>,
    /// Microcode versions: compute, SDMA.
    pub firmware: (Option<u32>, Option<u32>),
    /// Copy engines: PCI Express, xGMI.
    pub sdma: (Option<u32>, Option<u32>),
    /// Compute queues of the hardware.
    pub queues: Option<u32>,
}

impl Gpu {
    /// Shader engines, all XCCs.
    pub fn engines(&self) -> Option<u32> {
        self.arrays?.checked_div(self.arrays_per_engine?)
    }

    /// Waves of a compute unit.
    pub fn waves_per_cu(&self) -> Option<u32> {
        self.waves_per_simd?.checked_mul(self.simds_per_cu?)
    }

    /// Name of the instruction set, as rocminfo and the compiler's tools have it.
    pub fn isa(&self) -> Option<String> {
        Some(format!("amdgcn-amd-amdhsa--{}", self.target_id.as_ref()?))
    }

    /// PCI address, `0000:03:00.0`.
    pub fn bdf(&self) -> Option<String> {
        let location = self.location.1?;
        let domain = self.location.0.unwrap_or(0);
        Some(format!("{domain:04x}:{:02x}:{:02x}.{:x}", location >> 8 & 0xff, location >> 3 & 0x1f, location & 7))
    }
}

/// Lists a machine. `product` knows what a GPU is sold as where the files do not.
pub fn listing(system: &System, device: String, product: impl Fn(&Node) -> Option<String>) -> Listing {
    let mut listing = Listing { device, agents: Vec::new(), problems: Vec::new() };
    let topology = match Topology::read(system) {
        Ok(topology) => topology,
        Err(error) => {
            listing.problems.push(kfd::Error::from(error).report());
            return listing;
        }
    };
    listing.problems.extend(topology.skipped.iter().map(|skipped| format!("left out: {skipped}")));
    // No mode is known without the driver; then the name leaves it out.
    let xnack = match topology.gpus().next() {
        Some(_) => Kfd::open_on(system).and_then(|kfd| kfd.xnack()).ok(),
        None => None,
    };
    for node in &topology.nodes {
        listing.agents.push(agent(system, node, xnack, &product, &mut listing.problems));
    }
    listing
}

fn agent(
    system: &System,
    node: &Node,
    xnack: Option<Option<bool>>,
    product: &impl Fn(&Node) -> Option<String>,
    problems: &mut Vec<String>,
) -> Agent {
    let p = &node.properties;
    let banks = match node.mem_banks(system) {
        Ok(banks) => banks.iter().map(|bank| (bank.heap_type, bank.size_in_bytes)).collect(),
        Err(error) => {
            problems.push(format!("node {}: no memory banks: {error}", node.index));
            Vec::new()
        }
    };
    let is_gpu = node.gpu_id.is_some();
    Agent {
        node: node.index,
        cores: p.cpu_cores_count.filter(|cores| *cores > 0),
        gpu: node.gpu_id.map(|id| gpu(system, node, id.0, xnack, product)),
        banks,
        cpu_name: if is_gpu { None } else { cpu_name(system) },
        clock: if is_gpu { p.max_engine_clk_fcompute } else { p.max_engine_clk_ccompute },
    }
}

fn gpu(
    system: &System,
    node: &Node,
    id: u32,
    xnack: Option<Option<bool>>,
    product: &impl Fn(&Node) -> Option<String>,
) -> Gpu {
    let p = &node.properties;
    let processor = p.gfx_target_version.and_then(Processor::by_gfx_target_version);
    let sramecc = p.capability.is_some_and(|bits| bits & sysfs::CAP_SRAM_EDCSUPPORTED != 0);
    let has_xnack = processor.is_some_and(|processor| processor.has_xnack);
    let id_of = |processor| {
        let mut id = TargetId::of_device(processor, sramecc, xnack.flatten().unwrap_or(false));
        if xnack.is_none() && has_xnack {
            id.xnack = elf::Feature::Any;
        }
        id.to_string()
    };
    Gpu {
        id,
        name: node.target().map(|target| target.to_string()),
        target_id: processor.map(id_of),
        generic: processor.and_then(Processor::generic).map(|generic| generic.name),
        xnack_known: xnack.is_some() || !has_xnack,
        product: product(node).or_else(|| product_name(system, node)),
        asic: node.name(system).ok().filter(|name| !name.is_empty()),
        unique_id: p.unique_id.filter(|id| *id != 0),
        pci_id: (p.vendor_id, p.device_id),
        location: (p.domain, p.location_id),
        render: node.render_path(),
        compute_units: node.compute_units().ok(),
        simds_per_cu: p.simd_per_cu,
        xccs: node.num_xcc(),
        arrays: p.array_count,
        arrays_per_engine: p.simd_arrays_per_engine,
        cus_per_array: p.cu_per_simd_array,
        wave: p.wave_front_size,
        waves_per_simd: p.max_waves_per_simd,
        lds_kib: p.lds_size_in_kb,
        firmware: (p.fw_version, p.sdma_fw_version),
        sdma: (p.num_sdma_engines, p.num_sdma_xgmi_engines),
        queues: p.num_cp_queues,
    }
}

/// What the card's own memory says it is; most consumer cards say nothing. libdrm's table of names, where it is installed.
fn product_name(system: &System, node: &Node) -> Option<String> {
    let text = |path: &str| Some(String::from_utf8_lossy(&system.read(path).ok()?).trim().to_owned());
    let minor = node.properties.drm_render_minor.filter(|minor| *minor != 0)?;
    let folder = format!("/sys/class/drm/renderD{minor}/device");
    if let Some(name) = text(&format!("{folder}/product_name")).filter(|name| !name.is_empty()) {
        return Some(name);
    }
    let hex = |text: &str| u32::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok();
    let revision = hex(&text(&format!("{folder}/revision"))?)?;
    let device = node.properties.device_id?;
    let table = text("/usr/share/libdrm/amdgpu.ids")?;
    table.lines().find_map(|line| {
        let mut fields = line.splitn(3, ',');
        let found = hex(fields.next()?)? == device && hex(fields.next()?)? == revision;
        found.then_some(fields.next()?.trim().to_owned())
    })
}

fn cpu_name(system: &System) -> Option<String> {
    let text = system.read("/proc/cpuinfo").ok()?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let name =
        text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':').map(|(_, name)| name.trim()));
    name.map(str::to_owned)
}

//! The topology files: `/sys/class/kfd/kfd/topology`.
//!
//! A machine does not change, so the tree is made once, as a map from path to content.

mod cache;
mod link;

use super::device::Device;
use super::version::Rules;
use crate::machine::cpu;
use kfd::Errno;
use link::Link;
pub use link::reaches;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Write as _};
use std::sync::Arc;

/// The same folder under its two names.
const ROOTS: [&str; 2] = ["/sys/class/kfd/kfd/topology", "/sys/devices/virtual/kfd/kfd/topology"];

/// The tree.
pub struct Topology {
    files: BTreeMap<String, String>,
    /// Folders, those without files among them.
    folders: BTreeSet<String>,
}

/// Lines `key value`.
#[derive(Default)]
struct Properties(String);

impl Properties {
    fn add(&mut self, key: &str, value: impl Display) -> &mut Properties {
        // Writing to a String does not fail.
        let _ = writeln!(self.0, "{key} {value}");
        self
    }
}

impl Topology {
    /// The tree of a machine: the CPU node first, then a node a GPU.
    pub fn new(devices: &[Arc<Device>], rules: Rules) -> Topology {
        let mut tree = Topology { files: BTreeMap::new(), folders: BTreeSet::new() };
        tree.file("generation_id", format!("{}\n", 1 + devices.len()));
        let mut system = Properties::default();
        system.add("platform_oem", 0).add("platform_id", 0).add("platform_rev", 0);
        tree.file("system_properties", system.0);
        tree.cpu_node(devices, rules);
        for device in devices {
            tree.gpu_node(devices, device, rules);
        }
        tree
    }

    fn file(&mut self, path: &str, content: String) {
        let mut folder = path;
        while let Some((parent, _)) = folder.rsplit_once('/') {
            self.folders.insert(parent.to_string());
            folder = parent;
        }
        self.files.insert(path.to_string(), content);
    }

    fn numbered(&mut self, folder: String, entries: Vec<String>) {
        for (index, entry) in entries.into_iter().enumerate() {
            self.file(&format!("{folder}/{index}/properties"), entry);
        }
        self.folders.insert(folder);
    }

    /// What all nodes have besides their `properties`.
    fn node(&mut self, node: usize, gpu_id: u32, name: &str, properties: String, parts: Parts) {
        let at = format!("nodes/{node}");
        self.file(&format!("{at}/gpu_id"), format!("{gpu_id}\n"));
        self.file(&format!("{at}/name"), format!("{name}\n"));
        self.file(&format!("{at}/properties"), properties);
        self.numbered(format!("{at}/mem_banks"), vec![parts.bank]);
        self.numbered(format!("{at}/caches"), parts.caches);
        self.numbered(format!("{at}/io_links"), parts.links.iter().map(Link::properties).collect());
        self.numbered(format!("{at}/p2p_links"), parts.peers.iter().map(Link::properties).collect());
        // Of performance counters there are none.
        self.folders.insert(format!("{at}/perf"));
    }

    fn cpu_node(&mut self, devices: &[Arc<Device>], rules: Rules) {
        let links: Vec<Link> = devices.iter().filter_map(|device| link::cpu_to_gpu(device)).collect();
        let mut p = Properties::default();
        p.add("cpu_cores_count", cpu::CORES);
        p.add("simd_count", 0);
        p.add("mem_banks_count", 1);
        p.add("caches_count", 0);
        p.add("io_links_count", links.len());
        for key in [
            "p2p_links_count",
            "cpu_core_id_base",
            "simd_id_base",
            "max_waves_per_simd",
            "lds_size_in_kb",
            "gds_size_in_kb",
            "num_gws",
            "wave_front_size",
            "array_count",
            "simd_arrays_per_engine",
            "cu_per_simd_array",
            "simd_per_cu",
            "max_slots_scratch_cu",
            "gfx_target_version",
            "vendor_id",
            "device_id",
            "location_id",
            "domain",
            "drm_render_minor",
            "hive_id",
            "num_sdma_engines",
            "num_sdma_xgmi_engines",
            "num_sdma_queues_per_engine",
            "num_cp_queues",
        ] {
            p.add(key, 0);
        }
        if rules.save_sizes_in_topology() {
            p.add("cwsr_size", 0);
            p.add("ctl_stack_size", 0);
        }
        p.add("max_engine_clk_ccompute", cpu::CLOCK_MHZ);
        let bank = memory_bank(0, cpu::MEMORY_BYTES, cpu::MEMORY_WIDTH, 0);
        self.node(0, 0, "", p.0, Parts { bank, caches: Vec::new(), links, peers: Vec::new() });
    }

    fn gpu_node(&mut self, devices: &[Arc<Device>], device: &Device, rules: Rules) {
        let gpu = &device.profile;
        let caches = cache::properties(device);
        let links = link::of_gpu(devices, device);
        let peers = link::peers(devices, device);
        let mut p = Properties::default();
        p.add("cpu_cores_count", 0);
        p.add("simd_count", gpu.simds());
        p.add("mem_banks_count", 1);
        p.add("caches_count", caches.len());
        p.add("io_links_count", links.len());
        p.add("p2p_links_count", peers.len());
        p.add("cpu_core_id_base", 0);
        p.add("simd_id_base", simd_id_base(device));
        p.add("max_waves_per_simd", gpu.waves_per_simd);
        p.add("lds_size_in_kb", gpu.lds_kib);
        p.add("gds_size_in_kb", 0);
        p.add("num_gws", gpu.gws);
        p.add("wave_front_size", gpu.wave_size);
        p.add("array_count", gpu.shader_arrays);
        p.add("simd_arrays_per_engine", gpu.arrays_per_engine);
        p.add("cu_per_simd_array", gpu.cus_per_array);
        p.add("simd_per_cu", gpu.simds_per_cu);
        p.add("max_slots_scratch_cu", gpu.scratch_slots_per_cu);
        p.add("gfx_target_version", gpu.gfx_target_version);
        p.add("vendor_id", 0x1002);
        p.add("device_id", gpu.device_id);
        p.add("location_id", device.location_id);
        p.add("domain", 0);
        p.add("drm_render_minor", device.render_minor);
        p.add("hive_id", gpu.hive_id);
        p.add("num_sdma_engines", gpu.sdma_engines);
        p.add("num_sdma_xgmi_engines", gpu.sdma_xgmi_engines);
        p.add("num_sdma_queues_per_engine", gpu.sdma_queues_per_engine);
        p.add("num_cp_queues", gpu.cp_queues);
        if rules.save_sizes_in_topology() {
            p.add("cwsr_size", device.cwsr.save);
            p.add("ctl_stack_size", device.cwsr.control_stack);
        }
        p.add("max_engine_clk_fcompute", gpu.engine_clock_mhz);
        p.add("local_mem_size", 0);
        p.add("fw_version", gpu.fw_version);
        p.add("capability", gpu.capability);
        if rules.capability2() {
            // Resets of single SDMA queues, of which there are none.
            p.add("capability2", 0);
        }
        if rules.debug_properties() {
            p.add("debug_prop", gpu.debug_prop);
        }
        p.add("sdma_fw_version", gpu.sdma_fw_version);
        p.add("unique_id", device.unique_id);
        if rules.debug_properties() {
            p.add("num_xcc", gpu.xccs);
        }
        p.add("max_engine_clk_ccompute", cpu::CLOCK_MHZ);
        // Heap type 1: all of it visible to the host. 2: a part at most.
        let bank = memory_bank(if gpu.large_bar { 1 } else { 2 }, gpu.vram_bytes, gpu.vram_width, gpu.vram_clock_mhz);
        let parts = Parts { bank, caches, links, peers };
        self.node(device.index + 1, device.gpu_id, gpu.node_name, p.0, parts);
    }

    /// Path below the root. ENOENT for a path elsewhere.
    fn below(path: &str) -> Result<&str, Errno> {
        ROOTS
            .iter()
            .find_map(|root| path.strip_prefix(root))
            .filter(|rest| rest.is_empty() || rest.starts_with('/'))
            .map(|rest| rest.trim_matches('/'))
            .ok_or(Errno::ENOENT)
    }

    /// Content of a file.
    pub fn read(&self, path: &str) -> Result<Vec<u8>, Errno> {
        let path = Topology::below(path)?;
        match self.files.get(path) {
            Some(content) => Ok(content.clone().into_bytes()),
            None if path.is_empty() || self.folders.contains(path) => Err(Errno::from_raw(libc::EISDIR)),
            None => Err(Errno::ENOENT),
        }
    }

    /// Names in a folder.
    pub fn list(&self, path: &str) -> Result<Vec<String>, Errno> {
        let path = Topology::below(path)?;
        if self.files.contains_key(path) {
            return Err(Errno::from_raw(libc::ENOTDIR));
        }
        if !path.is_empty() && !self.folders.contains(path) {
            return Err(Errno::ENOENT);
        }
        let names: BTreeSet<&str> = self
            .files
            .keys()
            .chain(&self.folders)
            .filter_map(|entry| {
                if path.is_empty() { Some(entry.as_str()) } else { entry.strip_prefix(path)?.strip_prefix('/') }
            })
            .filter_map(|rest| rest.split('/').next())
            .collect();
        Ok(names.into_iter().map(str::to_string).collect())
    }
}

/// What differs in shape between nodes.
struct Parts {
    bank: String,
    caches: Vec<String>,
    links: Vec<Link>,
    peers: Vec<Link>,
}

fn memory_bank(heap_type: u32, bytes: u64, width: u32, clock: u32) -> String {
    let mut p = Properties::default();
    p.add("heap_type", heap_type).add("size_in_bytes", bytes).add("flags", 0);
    p.add("width", width).add("mem_clk_max", clock);
    p.0
}

/// Number of a node's first SIMD: the kernel counts GPU SIMDs from 0x80001000 up, in blocks.
fn simd_id_base(device: &Device) -> u32 {
    0x8000_1000 + device.index as u32 * 0x100
}

#[cfg(test)]
mod tests;

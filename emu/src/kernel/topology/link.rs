//! Links between nodes (`kfd_crat.c`, `kfd_topology.c`).

use super::Properties;
use crate::kernel::device::Device;
use std::sync::Arc;

const TYPE_PCIE: u32 = 2;
const TYPE_XGMI: u32 = 11;

/// `CRAT_IOLINK_FLAGS_*`.
const ENABLED: u32 = 1;
const NON_COHERENT: u32 = 2;

/// Weight of a PCIe link between a GPU and the CPU.
const WEIGHT_PCIE: u32 = 20;
/// Weight of one XGMI hop.
const WEIGHT_XGMI: u32 = 15;

/// Least bandwidth of a PCIe link in MB/s.
const PCIE_MIN_BANDWIDTH: u32 = 312;
/// Bandwidth of one XGMI link in MB/s.
const XGMI_BANDWIDTH: u32 = 50_000;

/// One link, as its node tells it.
pub struct Link {
    kind: u32,
    from: usize,
    to: usize,
    weight: u32,
    bandwidth: (u32, u32),
    flags: u32,
}

impl Link {
    /// The text of its file.
    pub fn properties(&self) -> String {
        let mut p = Properties::default();
        p.add("type", self.kind);
        p.add("version_major", 0).add("version_minor", 0);
        p.add("node_from", self.from).add("node_to", self.to);
        p.add("weight", self.weight);
        p.add("min_latency", 0).add("max_latency", 0);
        p.add("min_bandwidth", self.bandwidth.0).add("max_bandwidth", self.bandwidth.1);
        p.add("recommended_transfer_size", 0);
        p.add("recommended_sdma_engine_id_mask", 0);
        p.add("flags", self.flags);
        p.0
    }
}

fn node(device: &Device) -> usize {
    device.index + 1
}

fn pcie(from: usize, to: usize, device: &Device, flags: u32) -> Link {
    let bandwidth = (PCIE_MIN_BANDWIDTH, device.profile.pcie_bandwidth);
    Link { kind: TYPE_PCIE, from, to, weight: WEIGHT_PCIE, bandwidth, flags }
}

/// The CPU's link to a GPU, which exists when the GPU's memory is visible to it.
pub fn cpu_to_gpu(device: &Device) -> Option<Link> {
    device.profile.large_bar.then(|| pcie(0, node(device), device, ENABLED | NON_COHERENT))
}

fn same_hive(a: &Device, b: &Device) -> bool {
    a.profile.hive_id != 0 && a.profile.hive_id == b.profile.hive_id
}

/// A GPU's direct links: to the CPU and to the others of its hive.
pub fn of_gpu(devices: &[Arc<Device>], device: &Device) -> Vec<Link> {
    let mut links = vec![pcie(node(device), 0, device, ENABLED)];
    for peer in devices.iter().filter(|peer| peer.index != device.index && same_hive(peer, device)) {
        links.push(Link {
            kind: TYPE_XGMI,
            from: node(device),
            to: node(peer),
            weight: WEIGHT_XGMI,
            bandwidth: (XGMI_BANDWIDTH, XGMI_BANDWIDTH),
            flags: ENABLED,
        });
    }
    links
}

/// Whether `device` reaches the memory of `peer`.
pub fn reaches(device: &Device, peer: &Device) -> bool {
    device.index == peer.index || same_hive(device, peer) || peer.profile.large_bar
}

/// A GPU's links to other GPUs across the CPU.
pub fn peers(devices: &[Arc<Device>], device: &Device) -> Vec<Link> {
    devices
        .iter()
        .filter(|peer| peer.index != device.index && !same_hive(peer, device) && reaches(device, peer))
        .map(|peer| Link {
            weight: 2 * WEIGHT_PCIE,
            bandwidth: (PCIE_MIN_BANDWIDTH, device.profile.pcie_bandwidth.min(peer.profile.pcie_bandwidth)),
            ..pcie(node(device), node(peer), device, ENABLED)
        })
        .collect()
}

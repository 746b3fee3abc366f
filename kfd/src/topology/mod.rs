//! The machine as the KFD describes it below `/sys/class/kfd/kfd/topology`: nodes, each a set of host cores, a GPU or
//! both, with memory banks, caches and links.
//!
//! [`Topology::read`] reads two files a node; banks, caches and links are read when asked for.

mod parse;
mod properties;

pub use parse::ParseError;
pub use properties::{Cache, CacheProperties, Link, MemBank, NodeProperties};

use crate::errno::Errno;
use crate::error::{Error, Result};
use crate::system::System;
use crate::types::{GfxTarget, GpuId};

/// Folder of the topology.
pub const TOPOLOGY: &str = "/sys/class/kfd/kfd/topology";

/// How often a topology that changes while it is read is read again.
const MAX_TRIES: u32 = 5;

/// Why the topology, or a node, could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    /// A file or folder could not be read.
    #[error("{path}: {errno}")]
    Unreadable {
        /// Path.
        path: String,
        /// Error.
        errno: Errno,
    },
    /// A file's text cannot be.
    #[error("{path}: {problem}")]
    Malformed {
        /// Path.
        path: String,
        /// What is wrong with it.
        problem: ParseError,
    },
    /// The generation number changed each time the topology was read.
    #[error("{TOPOLOGY}/generation_id changed during each of {tries} readings")]
    Unstable {
        /// Readings.
        tries: u32,
    },
    /// There is no GPU among the nodes.
    #[error("the KFD lists no GPU this process may use ({} nodes)", nodes + skipped.len())]
    NoGpu {
        /// Nodes that could be read.
        nodes: usize,
        /// Nodes that could not, and why.
        skipped: Vec<Skipped>,
    },
}

impl TopologyError {
    /// The error number, when a file could not be read.
    pub fn errno(&self) -> Option<Errno> {
        match self {
            TopologyError::Unreadable { errno, .. } => Some(*errno),
            _ => None,
        }
    }

    pub(crate) fn advice(&self) -> Option<String> {
        match self {
            TopologyError::Unreadable { path, errno: Errno::ENOENT } if path.starts_with(TOPOLOGY) => {
                Some("no amdkfd in this kernel, or no /sys in this container: is the amdgpu module loaded?".into())
            }
            TopologyError::NoGpu { skipped, .. } => Some(match skipped.as_slice() {
                [] => "dmesg | grep -i kfd names the GPUs the driver passed over and why".into(),
                skipped => {
                    let lines: Vec<String> = skipped.iter().map(Skipped::to_string).collect();
                    format!("these nodes could not be read: {}", lines.join("; "))
                }
            }),
            TopologyError::Unstable { .. } => Some("devices come and go: try again when the machine is quiet".into()),
            TopologyError::Unreadable { errno: Errno::EPERM, .. } => {
                Some("the device cgroup of a container hides the GPU: pass its render node".into())
            }
            TopologyError::Unreadable { .. } => Some("look at ls -l of the file and at dmesg | grep -i kfd".into()),
            TopologyError::Malformed { .. } => None,
        }
    }
}

/// A node that was passed over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("node {index}: {reason}{}", if self.hidden() { ", hidden by the device cgroup" } else { "" })]
pub struct Skipped {
    /// Number of the node.
    pub index: u32,
    /// Why.
    pub reason: TopologyError,
}

impl Skipped {
    /// Whether the node is a GPU that the device cgroup keeps from this process: its files give EPERM.
    pub fn hidden(&self) -> bool {
        self.reason.errno() == Some(Errno::EPERM)
    }
}

/// One node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Number of the node: N of `nodes/N`.
    pub index: u32,
    /// GPU id; none for a node of host cores only, where the file says 0.
    pub gpu_id: Option<GpuId>,
    /// `properties`.
    pub properties: NodeProperties,
}

/// The nodes in order of number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Generation; it changes when devices come or go.
    pub generation: u64,
    /// Nodes that could be read.
    pub nodes: Vec<Node>,
    /// Nodes that could not: hidden from this process, incomplete or malformed.
    pub skipped: Vec<Skipped>,
}

fn read(system: &System, path: &str) -> Result<Vec<u8>, TopologyError> {
    system.read(path).map_err(|errno| TopologyError::Unreadable { path: path.to_string(), errno })
}

fn parsed<T>(path: &str, result: Result<T, ParseError>) -> Result<T, TopologyError> {
    result.map_err(|problem| TopologyError::Malformed { path: path.to_string(), problem })
}

/// Names in a folder that are numbers, in order.
fn numbered(system: &System, path: &str) -> Result<Vec<u32>, TopologyError> {
    let names = system.list(path).map_err(|errno| TopologyError::Unreadable { path: path.to_string(), errno })?;
    let mut numbers: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

impl Topology {
    /// Reads all nodes. A node that cannot be read is remembered in [`Topology::skipped`] and no error. The reading is
    /// repeated when the generation number moved meanwhile.
    pub fn read(system: &System) -> Result<Topology, TopologyError> {
        Topology::read_nodes(system, true)
    }

    /// As [`Topology::read`], leaving out the properties of nodes without a GPU: what a run needs.
    pub fn read_gpus(system: &System) -> Result<Topology, TopologyError> {
        Topology::read_nodes(system, false)
    }

    fn read_nodes(system: &System, all: bool) -> Result<Topology, TopologyError> {
        let generation_path = format!("{TOPOLOGY}/generation_id");
        let generation = || parsed(&generation_path, parse::number(&read(system, &generation_path)?));
        let mut before = generation()?;
        for _ in 0..MAX_TRIES {
            let mut topology = Topology { generation: before, nodes: Vec::new(), skipped: Vec::new() };
            for index in numbered(system, &format!("{TOPOLOGY}/nodes"))? {
                match Node::read(system, index, all) {
                    Ok(node) => topology.nodes.push(node),
                    Err(reason) => topology.skipped.push(Skipped { index, reason }),
                }
            }
            let after = generation()?;
            if after == before {
                return Ok(topology);
            }
            before = after;
        }
        Err(TopologyError::Unstable { tries: MAX_TRIES })
    }

    /// The nodes that are GPUs.
    pub fn gpus(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| node.gpu_id.is_some())
    }

    /// The first GPU.
    pub fn first_gpu(&self) -> Result<&Node, TopologyError> {
        let none = || TopologyError::NoGpu { nodes: self.nodes.len(), skipped: self.skipped.clone() };
        self.gpus().next().ok_or_else(none)
    }

    /// How many nodes there are, those that could not be read included.
    pub fn node_count(&self) -> usize {
        self.nodes.len() + self.skipped.len()
    }
}

impl Node {
    fn read(system: &System, index: u32, all: bool) -> Result<Node, TopologyError> {
        let path = format!("{TOPOLOGY}/nodes/{index}/gpu_id");
        let gpu_id = parsed(&path, parse::number_u32(&read(system, &path)?))?;
        let properties = if all || gpu_id != 0 {
            let path = format!("{TOPOLOGY}/nodes/{index}/properties");
            parsed(&path, NodeProperties::parse(&read(system, &path)?))?
        } else {
            NodeProperties::default()
        };
        Ok(Node { index, gpu_id: (gpu_id != 0).then_some(GpuId(gpu_id)), properties })
    }

    /// Architecture; none for a node without a GPU, and for a `gfx_target_version` that names none.
    pub fn target(&self) -> Option<GfxTarget> {
        self.gpu_id?;
        GfxTarget::from_version(self.properties.gfx_target_version?)
    }

    /// Render node of a GPU. The line is 0 and means nothing on other nodes.
    pub fn render_path(&self) -> Option<String> {
        self.gpu_id?;
        self.properties.drm_render_minor.filter(|minor| *minor != 0).map(|minor| format!("/dev/dri/renderD{minor}"))
    }

    /// XCCs the node combines: 1 when the kernel is too old to tell.
    pub fn num_xcc(&self) -> u32 {
        self.properties.num_xcc.unwrap_or(1)
    }

    /// Compute units, of all XCCs.
    pub fn compute_units(&self) -> Result<u32> {
        let simds = self.positive("simd_count", self.properties.simd_count)?;
        let per_cu = self.positive("simd_per_cu", self.properties.simd_per_cu)?;
        Ok(simds / per_cu)
    }

    /// A line that has to be there and not 0.
    pub(crate) fn positive(&self, key: &'static str, value: Option<u32>) -> Result<u32> {
        match value {
            Some(value) if value > 0 => Ok(value),
            _ => Err(Error::Property {
                node: self.index,
                key,
                value: value.map(u64::from),
                rule: "a GPU node has this line, and it is not 0",
            }),
        }
    }

    /// `name`: the kernel's name of the chip, or `ip discovery`.
    pub fn name(&self, system: &System) -> Result<String, TopologyError> {
        let path = format!("{TOPOLOGY}/nodes/{}/name", self.index);
        Ok(String::from_utf8_lossy(&read(system, &path)?).trim_end().to_string())
    }

    /// Memory banks.
    pub fn mem_banks(&self, system: &System) -> Result<Vec<MemBank>, TopologyError> {
        self.items(system, "mem_banks", MemBank::parse)
    }

    /// Caches.
    pub fn caches(&self, system: &System) -> Result<Vec<Cache>, TopologyError> {
        self.items(system, "caches", Cache::parse)
    }

    /// Links to other nodes.
    pub fn io_links(&self, system: &System) -> Result<Vec<Link>, TopologyError> {
        self.items(system, "io_links", Link::parse)
    }

    /// Links to other GPUs; kernels before 6.0 have none.
    pub fn p2p_links(&self, system: &System) -> Result<Vec<Link>, TopologyError> {
        match self.items(system, "p2p_links", Link::parse) {
            Err(TopologyError::Unreadable { errno: Errno::ENOENT, .. }) => Ok(Vec::new()),
            result => result,
        }
    }

    fn items<T>(
        &self,
        system: &System,
        folder: &str,
        parse: impl Fn(&[u8]) -> Result<T, ParseError>,
    ) -> Result<Vec<T>, TopologyError> {
        let folder = format!("{TOPOLOGY}/nodes/{}/{folder}", self.index);
        let mut items = Vec::new();
        for index in numbered(system, &folder)? {
            let path = format!("{folder}/{index}/properties");
            items.push(parsed(&path, parse(&read(system, &path)?))?);
        }
        Ok(items)
    }
}

#[cfg(test)]
mod tests;

//! The KFD's topology: what is there, what cannot be right.

use super::Line;
use elf::Processor;
use kfd::uapi::sysfs;
use kfd::{Error, Node, System, Topology, TopologyError};

/// The topology, or why there is none.
pub struct Reading(Result<Topology, TopologyError>);

impl Reading {
    /// Reads it.
    pub fn of(system: &System) -> Reading {
        Reading(Topology::read(system))
    }

    /// Whether it could be read.
    pub fn readable(&self) -> bool {
        self.0.is_ok()
    }

    /// Nodes that are GPUs.
    pub fn gpus(&self) -> impl Iterator<Item = &Node> {
        self.0.iter().flat_map(Topology::gpus)
    }

    /// Render nodes of GPUs that kfdrun can drive, as far as the topology tells.
    pub fn usable(&self) -> impl Iterator<Item = String> {
        let driven = |node: &&Node| {
            let target = node.target().is_some_and(|target| (9..=12).contains(&target.major()));
            target && node.compute_units().is_ok()
        };
        self.gpus().filter(driven).filter_map(Node::render_path)
    }

    /// What there is to say about it.
    pub fn lines(&self, system: &System) -> Vec<Line> {
        let topology = match &self.0 {
            Ok(topology) => topology,
            Err(error) => return vec![Line::error("topology", &Error::Topology(error.clone()))],
        };
        let mut lines = Vec::new();
        for skipped in &topology.skipped {
            let remedy = match skipped.hidden() {
                true => "pass the GPU's render node to the container: --device /dev/dri/renderD<minor>",
                false => "the node is left out; if the driver is not in the middle of a reset, please report the file",
            };
            lines.push(Line::warning("node", skipped.to_string(), remedy));
        }
        match topology.first_gpu() {
            Err(error) => lines.push(Line::error("gpu", &Error::Topology(error))),
            Ok(_) => lines.extend(topology.gpus().flat_map(|node| gpu(system, node))),
        }
        lines
    }
}

fn number<T: ToString>(value: Option<T>) -> String {
    value.map_or("absent".to_owned(), |value| value.to_string())
}

/// One GPU: what it is, then what is odd about it.
fn gpu(system: &System, node: &Node) -> Vec<Line> {
    let p = &node.properties;
    let mut lines = Vec::new();
    let id = node.gpu_id.map_or(0, |id| id.0);
    let name = node.target().map_or_else(|| "unknown processor".to_owned(), |target| target.to_string());
    let units = node.compute_units().map_or_else(|_| "absent".to_owned(), |units| units.to_string());
    let memory = memory(system, node);
    let (Ok(shown) | Err(shown)) = &memory;
    let what = format!("node {}: {name}, gpu_id {id}, {units} compute units, {shown}", node.index);
    let known = p.gfx_target_version.and_then(Processor::by_gfx_target_version);
    match node.target() {
        None => lines.push(Line::error(
            "gpu",
            &Error::Property {
                node: node.index,
                key: "gfx_target_version",
                value: p.gfx_target_version.map(u64::from),
                rule: "major * 10000 + minor * 100 + stepping, minor and stepping below 16",
            },
        )),
        Some(target) if !(9..=12).contains(&target.major()) => {
            lines.push(Line::failure("gpu", what, "kfdrun drives gfx9 to gfx12; use another GPU, or an emulated one"))
        }
        Some(_) if known.is_none() => {
            lines.push(Line::warning(
                "gpu",
                format!("{what}; no processor of this name is known"),
                "use a newer kfdrun",
            ));
        }
        Some(_) if memory.is_err() => {
            lines.push(Line::warning("gpu", what, "the kernel's topology is damaged: please report it"));
        }
        Some(_) => lines.push(Line::good("gpu", what)),
    }
    lines.extend(units_line(node));
    if node.render_path().is_none() {
        let minor = number(p.drm_render_minor);
        let text = format!("node {}: drm_render_minor is {minor}: the GPU has no render node", node.index);
        lines.push(Line::failure("render_minor", text, "look at dmesg | grep -i amdgpu"));
    }
    if p.num_sdma_engines == Some(0) && p.num_sdma_xgmi_engines.unwrap_or(0) == 0 {
        let text = format!(
            "node {}: num_sdma_engines is 0: copies have to be done by kernels; some versions of ROCR crash on it",
            node.index
        );
        lines.push(Line::warning("sdma", text, "HSA_ENABLE_SDMA=0 keeps ROCR from using copy engines"));
    }
    match (p.cwsr_size, p.ctl_stack_size) {
        (Some(_), Some(_)) => {}
        (None, None) => {
            let text = format!(
                "node {}: cwsr_size and ctl_stack_size are absent, as in older kernels: the sizes for CREATE_QUEUE are \
                 computed",
                node.index
            );
            lines.push(Line::note("cwsr", text));
        }
        _ => {
            let text = format!(
                "node {}: cwsr_size and ctl_stack_size are {} and {}: the sizes for CREATE_QUEUE are computed",
                node.index,
                number(p.cwsr_size),
                number(p.ctl_stack_size)
            );
            lines.push(Line::note("cwsr", text));
        }
    }
    lines
}

/// Compute units against what is built in.
fn units_line(node: &Node) -> Option<Line> {
    let p = &node.properties;
    let units = match node.compute_units() {
        Ok(units) => units,
        Err(error) => return Some(Line::error("compute_units", &error)),
    };
    let (Some(simds), Some(per_cu)) = (p.simd_count, p.simd_per_cu) else { return None };
    if simds % per_cu != 0 {
        let text = format!("node {}: simd_count {simds} is no multiple of simd_per_cu {per_cu}", node.index);
        return Some(Line::warning("compute_units", text, "the kernel's topology is damaged: please report it"));
    }
    let built = p.array_count?.checked_mul(p.cu_per_simd_array?)?;
    (units > built).then(|| {
        let text = format!(
            "node {}: {units} compute units by simd_count {simds} / simd_per_cu {per_cu}, but {} shader arrays of {} have \
             {built}: the KFD counts units that are not there",
            node.index,
            number(p.array_count),
            number(p.cu_per_simd_array)
        );
        Line::warning("compute_units", text, "kernels may hang when scratch or a CU mask names missing units: use a newer kernel")
    })
}

/// Device memory, with its unit, and how the host reaches it; the error is what to show when it cannot be right.
fn memory(system: &System, node: &Node) -> Result<String, String> {
    let banks = match node.mem_banks(system) {
        Ok(banks) => banks,
        Err(error) => return Err(format!("memory unknown ({error})")),
    };
    let kinds = [sysfs::MEM_HEAP_TYPE_FB_PUBLIC, sysfs::MEM_HEAP_TYPE_FB_PRIVATE];
    let local: Vec<_> = banks.iter().filter(|bank| bank.heap_type.is_some_and(|kind| kinds.contains(&kind))).collect();
    let bytes = local.iter().filter_map(|bank| bank.size_in_bytes).try_fold(0u64, u64::checked_add);
    match (local.is_empty(), bytes) {
        (true, _) => Ok("no memory bank of its own".to_owned()),
        (_, None) => Err("memory of impossible size".to_owned()),
        (_, Some(bytes)) => {
            let public = local.iter().all(|bank| bank.heap_type == Some(sysfs::MEM_HEAP_TYPE_FB_PUBLIC));
            let bar = if public { "all of it visible to the host" } else { "small BAR" };
            Ok(format!("{bytes} bytes ({} MiB) of VRAM, {bar}", bytes >> 20))
        }
    }
}

//! sysfs (`kfd_topology.c`).

use crate::case::cases;
use crate::session::{Session, Stop};
use kfd::Errno;
use kfd::topology::TOPOLOGY;

/// A file's text.
fn read(s: &Session, path: &str) -> Result<String, Stop> {
    let bytes = s.driver.read(&format!("{TOPOLOGY}/{path}"))?;
    String::from_utf8(bytes).map_err(|_| Stop::Failed(format!("{path} is not text")))
}

/// The keys of a file of `key value` lines, in order.
fn keys(text: &str) -> String {
    text.lines().map(|line| line.split_once(' ').map_or("?", |(key, _)| key)).collect::<Vec<_>>().join(" ")
}

/// One value of such a file.
fn value(text: &str, key: &str) -> String {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
    line.unwrap_or("absent").to_string()
}

fn names(s: &Session, path: &str) -> Result<String, Stop> {
    let mut names = s.driver.list(&format!("{TOPOLOGY}/{path}"))?;
    names.sort();
    Ok(names.join(" "))
}

/// Keys of every node, and those only GPUs have.
const NODE_KEYS: &str = "cpu_cores_count simd_count mem_banks_count caches_count io_links_count p2p_links_count \
                         cpu_core_id_base simd_id_base max_waves_per_simd lds_size_in_kb gds_size_in_kb num_gws \
                         wave_front_size array_count simd_arrays_per_engine cu_per_simd_array simd_per_cu \
                         max_slots_scratch_cu gfx_target_version vendor_id device_id location_id domain \
                         drm_render_minor hive_id num_sdma_engines num_sdma_xgmi_engines num_sdma_queues_per_engine \
                         num_cp_queues cwsr_size ctl_stack_size";

cases! { "KFDTopologyTest", s:
    safe kfd folders "the topology is a folder with two files and a folder of nodes, each with the same names" {
        let got = names(s, "")?;
        s.value("topology", got, "generation_id nodes system_properties");
        let got = names(s, "nodes/0")?;
        s.value("nodes/0", got, "caches gpu_id io_links mem_banks name p2p_links perf properties");
        let got = s.driver.list(&format!("{TOPOLOGY}/nodes"))?.len() > s.gpu_nodes;
        s.value("there is a node without a GPU", got, true);
    }

    safe kfd system_properties "system_properties has the platform's identity in three lines" {
        let text = read(s, "system_properties")?;
        s.value("keys", keys(&text), "platform_oem platform_id platform_rev");
        let text = read(s, "generation_id")?;
        s.value("generation_id is a decimal number", text.trim().parse::<u32>().is_ok(), true);
    }

    safe kfd cpu_node "a CPU node has every node's keys in the kernel's order, and 0 for what only GPUs have" {
        let text = read(s, "nodes/0/properties")?;
        s.value("keys", keys(&text), format!("{NODE_KEYS} max_engine_clk_ccompute"));
        for key in ["simd_count", "gfx_target_version", "drm_render_minor", "cwsr_size", "ctl_stack_size", "vendor_id"] {
            s.value(key, value(&text, key), "0");
        }
        let has_cores = value(&text, "cpu_cores_count").parse::<u32>().is_ok_and(|cores| cores > 0);
        s.value("cpu_cores_count is not 0", has_cores, true);
        let got = read(s, "nodes/0/gpu_id")?.trim().to_string();
        s.value("gpu_id", got, "0");
    }

    safe kfd memory_banks "there are as many memory banks as the properties say, each with the same keys" {
        let text = read(s, "nodes/0/properties")?;
        let banks = s.driver.list(&format!("{TOPOLOGY}/nodes/0/mem_banks"))?.len();
        s.value("banks are those of mem_banks_count", value(&text, "mem_banks_count") == banks.to_string(), true);
        let text = read(s, "nodes/0/mem_banks/0/properties")?;
        s.value("keys", keys(&text), "heap_type size_in_bytes flags width mem_clk_max");
        s.value("heap_type", value(&text, "heap_type"), "0");
    }

    safe kfd links "links are as many as the properties say" {
        let text = read(s, "nodes/0/properties")?;
        for (folder, key) in [("io_links", "io_links_count"), ("p2p_links", "p2p_links_count")] {
            let links = s.driver.list(&format!("{TOPOLOGY}/nodes/0/{folder}"))?.len();
            s.value(format!("{folder} are those of {key}"), value(&text, key) == links.to_string(), true);
        }
    }

    safe kfd absent "what is not there is ENOENT" {
        for path in ["nodes/99/gpu_id", "nodes/0/nothing", "nothing"] {
            let result = s.driver.read(&format!("{TOPOLOGY}/{path}")).map(drop);
            s.err(format!("read {path}"), result, Errno::ENOENT);
        }
        let result = s.driver.list(&format!("{TOPOLOGY}/nodes/99")).map(drop);
        s.err("list nodes/99", result, Errno::ENOENT);
    }

    safe gpu gpu_node "a GPU's node has more keys; gpu_id is a file of its own, and the render node is there" {
        let nodes = s.driver.list(&format!("{TOPOLOGY}/nodes"))?;
        for node in nodes {
            let id = read(s, &format!("nodes/{node}/gpu_id"))?;
            if id.trim() == "0" {
                continue;
            }
            let text = read(s, &format!("nodes/{node}/properties"))?;
            let has = keys(&text).starts_with(NODE_KEYS);
            s.value(format!("node {node} has every node's keys"), has, true);
            for key in ["max_engine_clk_fcompute", "local_mem_size", "fw_version", "capability", "num_xcc"] {
                s.value(format!("node {node} has {key}"), value(&text, key) != "absent", true);
            }
            s.value("local_mem_size", value(&text, "local_mem_size"), "0");
            s.value("gpu_id has 16 bits", id.trim().parse::<u32>().is_ok_and(|id| id < 1 << 16), true);
            let path = format!("/dev/dri/renderD{}", value(&text, "drm_render_minor"));
            let opened = s.driver.open(&path);
            s.ok(format!("open {path}"), opened.map(drop));
        }
    }
}

use super::*;
use crate::isa::Target;
use crate::kernel::Options;
use crate::machine::Machine;

fn topology(targets: &[Target]) -> Topology {
    Topology::new(&Device::all(&Machine::with(targets), &Options::default()), Rules::default())
}

fn text(tree: &Topology, path: &str) -> String {
    String::from_utf8(tree.read(&format!("/sys/class/kfd/kfd/topology/{path}")).unwrap()).unwrap()
}

/// The files of a machine with one RX 7900 XTX, whole.
#[test]
fn one_gfx1100() {
    let tree = topology(&[Target::Gfx1100]);
    let mut all = String::new();
    for path in ["generation_id", "system_properties"] {
        all += &format!("== {path}\n{}", text(&tree, path));
    }
    for node in 0..2 {
        for file in ["gpu_id", "name", "properties", "mem_banks/0/properties", "io_links/0/properties"] {
            all += &format!("== nodes/{node}/{file}\n{}", text(&tree, &format!("nodes/{node}/{file}")));
        }
    }
    insta::assert_snapshot!(all);
}

#[test]
fn counts_match_the_folders() {
    let tree = topology(&[Target::Gfx942, Target::Gfx942, Target::Gfx1201, Target::Gfx90a]);
    for node in tree.list("/sys/devices/virtual/kfd/kfd/topology/nodes").unwrap() {
        let properties = text(&tree, &format!("nodes/{node}/properties"));
        for folder in ["mem_banks", "caches", "io_links", "p2p_links"] {
            let entries = tree.list(&format!("/sys/class/kfd/kfd/topology/nodes/{node}/{folder}")).unwrap().len();
            assert!(properties.contains(&format!("\n{folder}_count {entries}\n")), "node {node} {folder} {entries}");
        }
    }
    // Two of one hive are linked directly, the others across the CPU.
    let properties = text(&tree, "nodes/1/properties");
    assert!(properties.contains("io_links_count 2\np2p_links_count 2\n"), "{properties}");
}

#[test]
fn cache_counts_of_real_devices() {
    for (target, count) in
        [(Target::Gfx1100, 206), (Target::Gfx1201, 138), (Target::Gfx90a, 217), (Target::Gfx942, 626)]
    {
        let properties = text(&topology(&[target]), "nodes/1/properties");
        assert!(properties.contains(&format!("\ncaches_count {count}\n")), "{target} {properties}");
    }
}

#[test]
fn missing_paths() {
    let tree = topology(&[Target::Gfx1100]);
    assert_eq!(tree.read("/sys/class/kfd/kfd/topology/nodes/2/gpu_id"), Err(Errno::ENOENT));
    assert_eq!(tree.read("/sys/class/kfd/kfd/topologyX/generation_id"), Err(Errno::ENOENT));
    assert_eq!(tree.read("/sys/class/drm"), Err(Errno::ENOENT));
    assert_eq!(tree.read("/sys/class/kfd/kfd/topology/nodes"), Err(Errno::from_raw(libc::EISDIR)));
    assert_eq!(tree.list("/sys/class/kfd/kfd/topology/generation_id"), Err(Errno::from_raw(libc::ENOTDIR)));
    assert_eq!(tree.list("/sys/class/kfd/kfd/topology/nodes/"), Ok(vec!["0".to_string(), "1".to_string()]));
    let root = tree.list("/sys/class/kfd/kfd/topology").unwrap();
    assert_eq!(root, ["generation_id", "nodes", "system_properties"]);
}

use super::*;
use crate::testing::Script;
use crate::uapi::sysfs;

fn path(file: &str) -> String {
    format!("{TOPOLOGY}/nodes/1/{file}")
}

#[test]
fn a_cpu_and_a_gpu() {
    let (system, collector) = Script::machine().system();
    let topology = Topology::read(&system).unwrap();
    assert_eq!((topology.generation, topology.node_count(), topology.skipped.len()), (2, 2, 0));
    // Twice the generation, the list of nodes, two files a node: a run pays for no more.
    assert_eq!(collector.records().len(), 7);

    let cpu = &topology.nodes[0];
    assert_eq!((cpu.gpu_id, cpu.target(), cpu.render_path()), (None, None, None));
    assert_eq!((cpu.properties.cpu_cores_count, cpu.properties.unique_id), (Some(32), None));

    let gpu = topology.first_gpu().unwrap();
    assert_eq!((gpu.index, gpu.gpu_id), (1, Some(GpuId(56387))));
    assert_eq!(gpu.target().unwrap().to_string(), "gfx1100");
    assert_eq!(gpu.render_path().as_deref(), Some("/dev/dri/renderD128"));
    assert_eq!((gpu.compute_units().unwrap(), gpu.num_xcc()), (96, 1));
    assert_eq!(gpu.properties.unique_id, Some(11673270660693242239));
    assert_eq!((gpu.properties.cwsr_size, gpu.properties.ctl_stack_size), (Some(46047232), Some(40960)));
    assert_eq!(gpu.properties.capability, Some(0x2803_a280));
    assert_eq!(gpu.properties.lines().len(), 40);
    assert_eq!(gpu.properties.other, []);
}

#[test]
fn banks_caches_and_links_on_request() {
    let (system, _) = Script::machine().system();
    let topology = Topology::read(&system).unwrap();
    let gpu = topology.first_gpu().unwrap();
    assert_eq!(gpu.name(&system).unwrap(), "ip discovery");
    let banks = gpu.mem_banks(&system).unwrap();
    assert_eq!(banks[0].heap_type, Some(sysfs::MEM_HEAP_TYPE_FB_PUBLIC));
    assert_eq!(banks[0].size_in_bytes, Some(25753026560));
    let caches = gpu.caches(&system).unwrap();
    assert_eq!(caches[0].sibling_map.as_deref(), Some("1,0,0,0,0,0,0,0"));
    let kind = sysfs::CACHE_TYPE_DATA | sysfs::CACHE_TYPE_HSACU;
    assert_eq!((caches[0].properties.cache_type, caches[0].properties.level), (Some(kind), Some(1)));
    let links = gpu.io_links(&system).unwrap();
    assert_eq!((links[0].link_type, links[0].node_to), (Some(sysfs::IOLINK_TYPE_PCIEXPRESS), Some(0)));
    // Older kernels have no such folder.
    assert_eq!(gpu.p2p_links(&system).unwrap(), []);
}

#[test]
fn a_node_the_cgroup_hides_is_passed_over() {
    let (system, _) = Script::machine().unreadable(&path("gpu_id"), Errno::EPERM).system();
    let topology = Topology::read(&system).unwrap();
    assert_eq!((topology.nodes.len(), topology.node_count()), (1, 2));
    assert!(topology.skipped[0].hidden());
    insta::assert_snapshot!(Error::from(topology.first_gpu().unwrap_err()).report(), @r"
    the KFD lists no GPU this process may use (2 nodes)
      do: these nodes could not be read: node 1: /sys/class/kfd/kfd/topology/nodes/1/gpu_id: EPERM (1), hidden by the device cgroup
    ");
}

#[test]
fn a_damaged_node_is_passed_over() {
    let cases = [
        (Script::machine().without(&path("properties")), "/sys/class/kfd/kfd/topology/nodes/1/properties: ENOENT (2)"),
        (Script::machine().file(&path("properties"), "simd_count -1\n"), "simd_count: \"-1\" is not"),
        (Script::machine().file(&path("properties"), "simd_count 4294967296\n"), "simd_count: 4294967296 is too large"),
        (Script::machine().file(&path("gpu_id"), ""), "\"\" is not an unsigned decimal number"),
    ];
    for (script, text) in cases {
        let topology = Topology::read(&script.system().0).unwrap();
        assert!(topology.first_gpu().is_err());
        let skipped = topology.skipped[0].to_string();
        assert!(skipped.contains(text), "{skipped}");
        assert!(!topology.skipped[0].hidden());
    }
}

#[test]
fn absent_is_not_zero() {
    let (system, _) = Script::machine().file(&path("properties"), "gfx_target_version 110000\n").system();
    let topology = Topology::read(&system).unwrap();
    let gpu = topology.first_gpu().unwrap();
    assert_eq!(gpu.properties.num_sdma_engines, None);
    assert_eq!((gpu.render_path(), gpu.num_xcc()), (None, 1));
    insta::assert_snapshot!(gpu.compute_units().unwrap_err().report(), @r"
    topology node 1: simd_count is absent
      rule: a GPU node has this line, and it is not 0
      do: the kernel's topology is damaged or of an unknown form: please report it with the file
    ");
}

#[test]
fn keys_of_newer_kernels_are_kept() {
    let (system, _) = Script::machine().file(&path("properties"), "simd_count 4\nnew_thing 7\n").system();
    let topology = Topology::read(&system).unwrap();
    assert_eq!(topology.nodes[1].properties.other, [("new_thing".to_string(), 7)]);
}

#[test]
fn a_topology_that_changes_is_read_again() {
    let topology = Topology::read(&Script::machine().restless(3).system().0).unwrap();
    assert_eq!(topology.generation, 3);
    let error = Topology::read(&Script::machine().restless(100).system().0).unwrap_err();
    assert_eq!(error, TopologyError::Unstable { tries: 5 });
}

#[test]
fn no_topology() {
    insta::assert_snapshot!(Error::from(Topology::read(&Script::default().system().0).unwrap_err()).report(), @r"
    /sys/class/kfd/kfd/topology/generation_id: ENOENT (2)
      do: no amdkfd in this kernel, or no /sys in this container: is the amdgpu module loaded?
    ");
    let cpu_only = Script::machine().without(&format!("{TOPOLOGY}/nodes/1"));
    let topology = Topology::read(&cpu_only.system().0).unwrap();
    insta::assert_snapshot!(Error::from(topology.first_gpu().unwrap_err()).report(), @r"
    the KFD lists no GPU this process may use (1 nodes)
      do: dmesg | grep -i kfd names the GPUs the driver passed over and why
    ");
}

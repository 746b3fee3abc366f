//! The files of a node, as types (`drivers/gpu/drm/amd/amdkfd/kfd_topology.c`).

use super::parse::properties;

properties! {
    /// `nodes/N/properties`.
    NodeProperties {
        /// Host cores; 0 on a GPU node.
        cpu_cores_count: u32,
        /// SIMDs, of all XCCs; 0 on a CPU node.
        simd_count: u32,
        /// Memory banks.
        mem_banks_count: u32,
        /// Caches.
        caches_count: u32,
        /// Links to other nodes.
        io_links_count: u32,
        /// Links to other GPUs.
        p2p_links_count: u32,
        /// Number of the first host core.
        cpu_core_id_base: u32,
        /// Number of the first SIMD.
        simd_id_base: u32,
        /// Waves a SIMD can hold.
        max_waves_per_simd: u32,
        /// KiB of LDS of a compute unit.
        lds_size_in_kb: u32,
        /// KiB of global data share.
        gds_size_in_kb: u32,
        /// Global wave sync barriers.
        num_gws: u32,
        /// Lanes of the architecture's native wave.
        wave_front_size: u32,
        /// Shader arrays, of all XCCs.
        array_count: u32,
        /// Shader arrays of a shader engine.
        simd_arrays_per_engine: u32,
        /// Compute units of a shader array as built, of which some may be off.
        cu_per_simd_array: u32,
        /// SIMDs of a compute unit.
        simd_per_cu: u32,
        /// Waves of a compute unit that can have scratch at once.
        max_slots_scratch_cu: u32,
        /// Architecture: major × 10000 + minor × 100 + stepping.
        gfx_target_version: u32,
        /// PCI vendor.
        vendor_id: u32,
        /// PCI device.
        device_id: u32,
        /// PCI bus << 8 | device << 3 | function.
        location_id: u32,
        /// PCI domain.
        domain: u32,
        /// N of `/dev/dri/renderDN`; means nothing on a CPU node.
        drm_render_minor: u32,
        /// xGMI hive.
        hive_id: u64,
        /// SDMA engines for PCIe.
        num_sdma_engines: u32,
        /// SDMA engines for xGMI.
        num_sdma_xgmi_engines: u32,
        /// Queues an SDMA engine has room for.
        num_sdma_queues_per_engine: u32,
        /// Compute queues the hardware has room for.
        num_cp_queues: u32,
        /// Bytes of the context save area of one XCC, from newer kernels.
        cwsr_size: u32,
        /// Bytes of its control stack, from newer kernels.
        ctl_stack_size: u32,
        /// Greatest clock of the compute units in MHz.
        max_engine_clk_fcompute: u32,
        /// Always 0; device memory is a memory bank.
        local_mem_size: u64,
        /// Version of the compute microcode.
        fw_version: u32,
        /// [`crate::uapi::sysfs`] `CAP_*` bits.
        capability: u32,
        /// [`crate::uapi::sysfs`] `CAP2_*` bits, from newer kernels.
        capability2: u32,
        /// [`crate::uapi::sysfs`] `DBG_*` bits.
        debug_prop: u64,
        /// Version of the SDMA microcode.
        sdma_fw_version: u32,
        /// Serial number.
        unique_id: u64,
        /// XCCs the node combines; absent on older kernels, where it is 1.
        num_xcc: u32,
        /// Greatest clock of the host cores in MHz.
        max_engine_clk_ccompute: u32,
    }
}

properties! {
    /// `nodes/N/mem_banks/I/properties`.
    MemBank {
        /// [`crate::uapi::sysfs`] `MEM_HEAP_TYPE_*`.
        heap_type: u32,
        /// Bytes.
        size_in_bytes: u64,
        /// [`crate::uapi::sysfs`] `MEM_FLAGS_*`.
        flags: u32,
        /// Bits of the bus.
        width: u32,
        /// Greatest clock in MHz.
        mem_clk_max: u32,
    }
}

properties! {
    /// `nodes/N/io_links/I/properties` and `nodes/N/p2p_links/I/properties`.
    Link {
        /// Line `type`: [`crate::uapi::sysfs`] `IOLINK_TYPE_*`.
        link_type = "type": u32,
        /// Major version.
        version_major: u32,
        /// Minor version.
        version_minor: u32,
        /// Node the link starts at.
        node_from: u32,
        /// Node the link ends at.
        node_to: u32,
        /// Relative cost.
        weight: u32,
        /// Least latency, 0 for unknown.
        min_latency: u32,
        /// Greatest latency, 0 for unknown.
        max_latency: u32,
        /// Least bandwidth in MB/s.
        min_bandwidth: u32,
        /// Greatest bandwidth in MB/s.
        max_bandwidth: u32,
        /// Bytes of a good transfer, 0 for unknown.
        recommended_transfer_size: u32,
        /// SDMA engines to use, as bits.
        recommended_sdma_engine_id_mask: u32,
        /// [`crate::uapi::sysfs`] `IOLINK_FLAGS_*`.
        flags: u32,
    }
}

/// `nodes/N/caches/I/properties`. Absent lines are none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cache {
    /// The lines that are numbers.
    pub properties: CacheProperties,
    /// Which of the processors from `processor_id_low` on share the cache, one 0 or 1 each.
    pub sibling_map: Option<String>,
}

properties! {
    /// The numbers of a cache's file.
    CacheProperties {
        /// First processor that uses the cache.
        processor_id_low: u32,
        /// Level.
        level: u32,
        /// KiB.
        size: u32,
        /// Bytes of a line.
        cache_line_size: u32,
        /// Lines of a tag.
        cache_lines_per_tag: u32,
        /// Ways.
        association: u32,
        /// Latency.
        latency: u32,
        /// Line `type`: [`crate::uapi::sysfs`] `CACHE_TYPE_*`.
        cache_type = "type": u32,
    }
}

impl Cache {
    /// Reads the file's text.
    pub fn parse(bytes: &[u8]) -> Result<Cache, super::ParseError> {
        let text = std::str::from_utf8(bytes).map_err(|_| super::ParseError::NotText)?;
        let (maps, numbers): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.starts_with("sibling_map "));
        let sibling_map = maps.first().and_then(|line| line.split_once(' ')).map(|(_, map)| map.trim().to_string());
        Ok(Cache { properties: CacheProperties::parse(numbers.join("\n").as_bytes())?, sibling_map })
    }
}

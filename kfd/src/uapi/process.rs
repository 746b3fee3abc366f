//! What concerns a process and a device as a whole: version, apertures, memory policy, clocks, trap handler.

use super::abi::{constants, structs};

constants! {
    "" u32 since 1 {
        /// Records [`GetProcessAperturesArgs`] can hold.
        NUM_OF_SUPPORTED_GPUS = 7;
    }
    "KFD_IOC_" u32 since 1 {
        /// Accesses are coherent.
        CACHE_POLICY_COHERENT = 0;
        /// Accesses are not coherent.
        CACHE_POLICY_NONCOHERENT = 1;
    }
    "KFD_" u32 since 1 {
        /// Offset in the MMIO remap page of the register whose store flushes host writes out of the HDP into VRAM.
        MMIO_REMAP_HDP_MEM_FLUSH_CNTL = 0;
        /// Offset in the MMIO remap page of the register whose store flushes HDP register writes.
        MMIO_REMAP_HDP_REG_FLUSH_CNTL = 4;
    }
}

structs! {
    /// Argument of GET_VERSION, which never fails.
    GetVersionArgs = "kfd_ioctl_get_version_args" since 1 {
        /// Out: major version, 1.
        major_version: u32, dec;
        /// Out: minor version.
        minor_version: u32, dec;
    }

    /// The 64-bit windows of one GPU in this process.
    ProcessDeviceApertures = "kfd_process_device_apertures" since 1 {
        /// First address of the LDS (group segment) window; its upper half goes into `amd_queue_t`.
        lds_base: u64, hex;
        /// Last address of the LDS window.
        lds_limit: u64, hex;
        /// First address of the scratch (private segment) window; its upper half goes into `amd_queue_t`.
        scratch_base: u64, hex;
        /// Last address of the scratch window.
        scratch_limit: u64, hex;
        /// First address buffers may take.
        gpuvm_base: u64, hex;
        /// Last address buffers may take.
        gpuvm_limit: u64, hex;
        /// GPU.
        gpu_id: u32, dec;
        /// Zero.
        pad: u32, none;
    }

    /// Argument of GET_PROCESS_APERTURES, which knows seven GPUs only.
    GetProcessAperturesArgs = "kfd_ioctl_get_process_apertures_args" since 1 {
        /// Out: records.
        process_apertures: [ProcessDeviceApertures; NUM_OF_SUPPORTED_GPUS as usize], none;
        /// Out: how many are filled.
        num_of_nodes: u32, dec;
        /// Zero.
        pad: u32, none;
    }

    /// Argument of GET_PROCESS_APERTURES_NEW.
    GetProcessAperturesNewArgs = "kfd_ioctl_get_process_apertures_new_args" since 1 {
        /// In: address of an array of [`ProcessDeviceApertures`].
        kfd_process_device_apertures_ptr: u64, hex;
        /// In: records it can hold, 0 to ask for the count. Out: records filled, or the count.
        num_of_nodes: u32, dec;
        /// Zero.
        pad: u32, none;
    }

    /// Argument of SET_MEMORY_POLICY, which has an effect on gfx7 and gfx8 only.
    SetMemoryPolicyArgs = "kfd_ioctl_set_memory_policy_args" since 1 {
        /// In: start of the aperture with the alternate policy.
        alternate_aperture_base: u64, hex;
        /// In: its bytes, 0 for none.
        alternate_aperture_size: u64, hex;
        /// In: GPU.
        gpu_id: u32, dec;
        /// In: `CACHE_POLICY_*`.
        default_policy: u32, dec;
        /// In: `CACHE_POLICY_*` inside the aperture.
        alternate_policy: u32, dec;
        /// In, since 1.18: flags of the process, before that padding.
        misc_process_flag: u32, hex "misc_process_flag|pad";
    }

    /// Argument of GET_CLOCK_COUNTERS, which never fails.
    GetClockCountersArgs = "kfd_ioctl_get_clock_counters_args" since 1 {
        /// Out: GPU clock, 0 for an unknown `gpu_id`.
        gpu_clock_counter: u64, dec;
        /// Out: CLOCK_MONOTONIC_RAW in ns.
        cpu_clock_counter: u64, dec;
        /// Out: CLOCK_BOOTTIME in ns.
        system_clock_counter: u64, dec;
        /// Out: Hz of the system clock, 10^9.
        system_clock_freq: u64, dec;
        /// In: GPU.
        gpu_id: u32, dec;
        /// Zero.
        pad: u32, none;
    }

    /// Argument of SET_SCRATCH_BACKING_VA; AQL queues carry their scratch in `amd_queue_t` instead.
    SetScratchBackingVaArgs = "kfd_ioctl_set_scratch_backing_va_args" since 1 {
        /// In: GPU address of the scratch memory.
        va_addr: u64, hex;
        /// In: GPU.
        gpu_id: u32, dec;
        /// Zero.
        pad: u32, none;
    }

    /// Argument of GET_TILE_CONFIG.
    GetTileConfigArgs = "kfd_ioctl_get_tile_config_args" since 1 {
        /// In: address of an array of u32.
        tile_config_ptr: u64, hex;
        /// In: address of an array of u32.
        macro_tile_config_ptr: u64, hex;
        /// In: room in the first array. Out: entries written.
        num_tile_configs: u32, dec;
        /// In: room in the second array. Out: entries written.
        num_macro_tile_configs: u32, dec;
        /// In: GPU.
        gpu_id: u32, dec;
        /// Out: register GB_ADDR_CONFIG.
        gb_addr_config: u32, hex;
        /// Out: memory banks.
        num_banks: u32, dec;
        /// Out: memory ranks.
        num_ranks: u32, dec;
    }

    /// Argument of SET_TRAP_HANDLER.
    SetTrapHandlerArgs = "kfd_ioctl_set_trap_handler_args" since 1 {
        /// In: GPU address of the trap handler's code.
        tba_addr: u64, hex;
        /// In: GPU address of the trap handler's memory.
        tma_addr: u64, hex;
        /// In: GPU.
        gpu_id: u32, dec;
        /// Zero.
        pad: u32, none;
    }

    /// Argument of ACQUIRE_VM: makes the VM of an open render node this process' VM on the GPU.
    AcquireVmArgs = "kfd_ioctl_acquire_vm_args" since 1 {
        /// In: file descriptor of the render node.
        drm_fd: u32, dec;
        /// In: GPU.
        gpu_id: u32, dec;
    }
}

//! Buffers: allocate, map, share.

use super::abi::{constants, structs};

constants! {
    "KFD_IOC_" u32 since 1 {
        /// Device memory.
        ALLOC_MEM_FLAGS_VRAM = 1 << 0;
        /// System memory owned by the driver.
        ALLOC_MEM_FLAGS_GTT = 1 << 1;
        /// System memory of the caller, at `mmap_offset`.
        ALLOC_MEM_FLAGS_USERPTR = 1 << 2;
        /// The process' doorbells of a GPU.
        ALLOC_MEM_FLAGS_DOORBELL = 1 << 3;
        /// The page of HDP flush registers.
        ALLOC_MEM_FLAGS_MMIO_REMAP = 1 << 4;
        /// The GPU may store; it may always load.
        ALLOC_MEM_FLAGS_WRITABLE = 1 << 31;
        /// The GPU may fetch instructions.
        ALLOC_MEM_FLAGS_EXECUTABLE = 1 << 30;
        /// Device memory the host can reach; needs a BAR that covers all of it.
        ALLOC_MEM_FLAGS_PUBLIC = 1 << 29;
        /// Without effect.
        ALLOC_MEM_FLAGS_NO_SUBSTITUTE = 1 << 28;
        /// Allocates half of `size` and maps it twice, side by side.
        ALLOC_MEM_FLAGS_AQL_QUEUE_MEM = 1 << 27;
        /// GPU accesses are coherent with the host.
        ALLOC_MEM_FLAGS_COHERENT = 1 << 26;
        /// The GPU does not cache it.
        ALLOC_MEM_FLAGS_UNCACHED = 1 << 25;
    }
    "KFD_IOC_" u32 since 13 {
        /// Coherent for device-scope atomics across devices too.
        ALLOC_MEM_FLAGS_EXT_COHERENT = 1 << 24;
    }
    "KFD_IOC_" u32 since 16 {
        /// Physically contiguous device memory, as far as can be had.
        ALLOC_MEM_FLAGS_CONTIGUOUS = 1 << 23;
    }
    "KFD_" u32 since 7 {
        /// File descriptor that is none.
        INVALID_FD = 0xffff_ffff;
    }
}

structs! {
    /// Argument of ALLOC_MEMORY_OF_GPU.
    AllocMemoryOfGpuArgs = "kfd_ioctl_alloc_memory_of_gpu_args" since 1 {
        /// In: GPU address it will have; checked when it is mapped.
        va_addr: u64, hex;
        /// In: bytes, rounded up to a page.
        size: u64, dec;
        /// Out: handle, `gpu_id << 32 | n` with `n` from 0.
        handle: u64, hex;
        /// In: host address of the memory of a USERPTR. Out: offset for mmap of the render node.
        mmap_offset: u64, hex;
        /// In: GPU.
        gpu_id: u32, dec;
        /// In: `ALLOC_MEM_FLAGS_*`.
        flags: u32, hex;
    }

    /// Argument of FREE_MEMORY_OF_GPU.
    FreeMemoryOfGpuArgs = "kfd_ioctl_free_memory_of_gpu_args" since 1 {
        /// In: handle, of a buffer mapped nowhere.
        handle: u64, hex;
    }

    /// Argument of MAP_MEMORY_TO_GPU.
    MapMemoryToGpuArgs = "kfd_ioctl_map_memory_to_gpu_args" since 1 {
        /// In: handle.
        handle: u64, hex;
        /// In: address of an array of GPU ids, u32.
        device_ids_array_ptr: u64, hex;
        /// In: its length.
        n_devices: u32, dec;
        /// In: how many of them to skip. Out: how many are done, on failure too.
        n_success: u32, dec;
    }

    /// Argument of UNMAP_MEMORY_FROM_GPU.
    UnmapMemoryFromGpuArgs = "kfd_ioctl_unmap_memory_from_gpu_args" since 1 {
        /// In: handle.
        handle: u64, hex;
        /// In: address of an array of GPU ids, u32.
        device_ids_array_ptr: u64, hex;
        /// In: its length.
        n_devices: u32, dec;
        /// In: how many of them to skip. Out: how many are done, on failure too.
        n_success: u32, dec;
    }

    /// Argument of AVAILABLE_MEMORY.
    GetAvailableMemoryArgs = "kfd_ioctl_get_available_memory_args" since 9 {
        /// Out: bytes of device memory that can be allocated now.
        available: u64, dec;
        /// In: GPU.
        gpu_id: u32, dec;
        /// Zero.
        pad: u32, none;
    }

    /// Argument of GET_DMABUF_INFO.
    GetDmabufInfoArgs = "kfd_ioctl_get_dmabuf_info_args" since 1 {
        /// Out: bytes.
        size: u64, dec;
        /// In: address of room for metadata.
        metadata_ptr: u64, hex;
        /// In: bytes of that room. Out: bytes of metadata.
        metadata_size: u32, dec;
        /// Out: GPU that owns it.
        gpu_id: u32, dec;
        /// Out: `ALLOC_MEM_FLAGS_*`.
        flags: u32, hex;
        /// In: file descriptor.
        dmabuf_fd: u32, dec;
    }

    /// Argument of IMPORT_DMABUF.
    ImportDmabufArgs = "kfd_ioctl_import_dmabuf_args" since 1 {
        /// In: GPU address it will have.
        va_addr: u64, hex;
        /// Out: handle.
        handle: u64, hex;
        /// In: GPU.
        gpu_id: u32, dec;
        /// In: file descriptor.
        dmabuf_fd: u32, dec;
    }

    /// Argument of EXPORT_DMABUF.
    ExportDmabufArgs = "kfd_ioctl_export_dmabuf_args" since 12 {
        /// In: handle.
        handle: u64, hex;
        /// In: flags of the file descriptor, such as O_CLOEXEC.
        flags: u32, hex;
        /// Out: file descriptor.
        dmabuf_fd: u32, dec;
    }
}

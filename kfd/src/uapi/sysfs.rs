//! Bits of the topology files (`include/uapi/linux/kfd_sysfs.h`).

use super::abi::constants;

constants! {
    "HSA_" u32 since 1 {
        /// The node can be unplugged.
        CAP_HOT_PLUGGABLE = 0x1;
        /// The node translates addresses through the host's page tables.
        CAP_ATS_PRESENT = 0x2;
        /// The node also drives a display.
        CAP_SHARED_WITH_GRAPHICS = 0x4;
        /// Ring sizes are powers of two.
        CAP_QUEUE_SIZE_POW2 = 0x8;
        /// Ring sizes have 32 bits.
        CAP_QUEUE_SIZE_32BIT = 0x10;
        /// An event tells when a queue is idle.
        CAP_QUEUE_IDLE_EVENT = 0x20;
        /// The address space is limited.
        CAP_VA_LIMIT = 0x40;
        /// There are address watchpoints.
        CAP_WATCH_POINTS_SUPPORTED = 0x80;
        /// Log2 of the watchpoints.
        CAP_WATCH_POINTS_TOTALBITS_MASK = 0xf00;
        /// Shift of [`CAP_WATCH_POINTS_TOTALBITS_MASK`].
        CAP_WATCH_POINTS_TOTALBITS_SHIFT = 8;
        /// Doorbell type, a `CAP_DOORBELL_TYPE_*` value.
        CAP_DOORBELL_TYPE_TOTALBITS_MASK = 0x3000;
        /// Shift of [`CAP_DOORBELL_TYPE_TOTALBITS_MASK`].
        CAP_DOORBELL_TYPE_TOTALBITS_SHIFT = 12;
        /// 32-bit doorbells of gfx7.
        CAP_DOORBELL_TYPE_PRE_1_0 = 0;
        /// 32-bit doorbells.
        CAP_DOORBELL_TYPE_1_0 = 1;
        /// 64-bit doorbells of gfx9 and later.
        CAP_DOORBELL_TYPE_2_0 = 2;
        /// The ring must be mapped twice, side by side.
        CAP_AQL_QUEUE_DOUBLE_MAP = 0x4000;
        /// Was once a wrong bit; always 0.
        CAP_RESERVED_WAS_SRAM_EDCSUPPORTED = 0x8_0000;
        /// Device memory detects and corrects errors.
        CAP_MEM_EDCSUPPORTED = 0x10_0000;
        /// Errors raise events.
        CAP_RASEVENTNOTIFY = 0x20_0000;
        /// Revision of the chip.
        CAP_ASIC_REVISION_MASK = 0x3c0_0000;
        /// Shift of [`CAP_ASIC_REVISION_MASK`].
        CAP_ASIC_REVISION_SHIFT = 22;
        /// On-chip memory detects and corrects errors.
        CAP_SRAM_EDCSUPPORTED = 0x400_0000;
        /// The SVM ioctl works.
        CAP_SVMAPI_SUPPORTED = 0x800_0000;
        /// The host reaches device memory coherently.
        CAP_FLAGS_COHERENTHOSTACCESS = 0x1000_0000;
    }
    "HSA_" u32 since 13 {
        /// The debugger interface works.
        CAP_TRAP_DEBUG_SUPPORT = 0x8000;
        /// The trap mask of new waves can be set.
        CAP_TRAP_DEBUG_WAVE_LAUNCH_TRAP_OVERRIDE_SUPPORTED = 0x1_0000;
        /// How waves start can be set.
        CAP_TRAP_DEBUG_WAVE_LAUNCH_MODE_SUPPORTED = 0x2_0000;
        /// Memory operations can be made precise.
        CAP_TRAP_DEBUG_PRECISE_MEMORY_OPERATIONS_SUPPORTED = 0x4_0000;
        /// The firmware can be debugged with.
        CAP_TRAP_DEBUG_FIRMWARE_SUPPORTED = 0x2000_0000;
    }
    "HSA_" u32 since 15 {
        /// Arithmetic operations can be made precise.
        CAP_TRAP_DEBUG_PRECISE_ALU_OPERATIONS_SUPPORTED = 0x4000_0000;
    }
    "HSA_" u32 since 18 {
        /// A single queue can be reset.
        CAP_PER_QUEUE_RESET_SUPPORTED = 0x8000_0000;
        /// Line `capability2`: a single SDMA queue can be reset.
        CAP2_PER_SDMA_QUEUE_RESET_SUPPORTED = 0x1;
    }
    "HSA_" u32 since 21 {
        /// Line `capability2`: an LDS address out of range can trap.
        CAP2_TRAP_DEBUG_LDS_OUT_OF_ADDR_RANGE_SUPPORTED = 0x2;
    }
    "HSA_" u64 since 13 {
        /// Line `debug_prop`: lowest address bit of a watchpoint's mask.
        DBG_WATCH_ADDR_MASK_LO_BIT_MASK = 0xf;
        /// Shift of [`DBG_WATCH_ADDR_MASK_LO_BIT_MASK`].
        DBG_WATCH_ADDR_MASK_LO_BIT_SHIFT = 0;
        /// Line `debug_prop`: highest address bit of a watchpoint's mask.
        DBG_WATCH_ADDR_MASK_HI_BIT_MASK = 0x3f0;
        /// Shift of [`DBG_WATCH_ADDR_MASK_HI_BIT_MASK`].
        DBG_WATCH_ADDR_MASK_HI_BIT_SHIFT = 4;
        /// Line `debug_prop`: the dispatch of a wave is always known.
        DBG_DISPATCH_INFO_ALWAYS_VALID = 0x400;
        /// Line `debug_prop`: watchpoints belong to one process.
        DBG_WATCHPOINTS_EXCLUSIVE = 0x800;
        /// Line `debug_prop`: bits without a meaning.
        DBG_RESERVED = 0xffff_ffff_ffff_f000;
    }
    "HSA_" u32 since 1 {
        /// Memory of the host.
        MEM_HEAP_TYPE_SYSTEM = 0;
        /// Device memory, all of which the host can reach.
        MEM_HEAP_TYPE_FB_PUBLIC = 1;
        /// Device memory, of which the host reaches a part at most.
        MEM_HEAP_TYPE_FB_PRIVATE = 2;
        /// Global data share.
        MEM_HEAP_TYPE_GPU_GDS = 3;
        /// Local data share.
        MEM_HEAP_TYPE_GPU_LDS = 4;
        /// Scratch.
        MEM_HEAP_TYPE_GPU_SCRATCH = 5;
        /// The memory can be unplugged.
        MEM_FLAGS_HOT_PLUGGABLE = 1;
        /// The memory keeps its contents without power.
        MEM_FLAGS_NON_VOLATILE = 2;
        /// Bits without a meaning.
        MEM_FLAGS_RESERVED = 0xffff_fffc;
        /// Caches data.
        CACHE_TYPE_DATA = 1;
        /// Caches instructions.
        CACHE_TYPE_INSTRUCTION = 2;
        /// Belongs to host cores.
        CACHE_TYPE_CPU = 4;
        /// Belongs to compute units.
        CACHE_TYPE_HSACU = 8;
        /// Bits without a meaning.
        CACHE_TYPE_RESERVED = 0xffff_fff0;
        /// Unknown.
        IOLINK_TYPE_UNDEFINED = 0;
        /// HyperTransport.
        IOLINK_TYPE_HYPERTRANSPORT = 1;
        /// PCI Express.
        IOLINK_TYPE_PCIEXPRESS = 2;
        /// AMBA.
        IOLINK_TYPE_AMBA = 3;
        /// MIPI.
        IOLINK_TYPE_MIPI = 4;
        /// QPI 1.1.
        IOLINK_TYPE_QPI_1_1 = 5;
        /// No meaning.
        IOLINK_TYPE_RESERVED1 = 6;
        /// No meaning.
        IOLINK_TYPE_RESERVED2 = 7;
        /// RapidIO.
        IOLINK_TYPE_RAPID_IO = 8;
        /// InfiniBand.
        IOLINK_TYPE_INFINIBAND = 9;
        /// No meaning.
        IOLINK_TYPE_RESERVED3 = 10;
        /// xGMI (Infinity Fabric).
        IOLINK_TYPE_XGMI = 11;
        /// XGOP.
        IOLINK_TYPE_XGOP = 12;
        /// GZ.
        IOLINK_TYPE_GZ = 13;
        /// RDMA over Ethernet.
        IOLINK_TYPE_ETHERNET_RDMA = 14;
        /// Other RDMA.
        IOLINK_TYPE_RDMA_OTHER = 15;
        /// Other.
        IOLINK_TYPE_OTHER = 16;
        /// The link is usable.
        IOLINK_FLAGS_ENABLED = 1;
        /// Not coherent.
        IOLINK_FLAGS_NON_COHERENT = 2;
        /// No 32-bit atomics.
        IOLINK_FLAGS_NO_ATOMICS_32_BIT = 4;
        /// No 64-bit atomics.
        IOLINK_FLAGS_NO_ATOMICS_64_BIT = 8;
        /// No peer-to-peer DMA.
        IOLINK_FLAGS_NO_PEER_TO_PEER_DMA = 16;
        /// Bits without a meaning.
        IOLINK_FLAGS_RESERVED = 0xffff_ffe0;
    }
}

/// `HSA_CAP_RESERVED` of interface 1.17: capability bits without a meaning. Bit 31 has one since 1.18.
pub const CAP_RESERVED: u32 = 0x800f_8000;

//! System management events, read from the file descriptor that SMI_EVENTS returns.

use super::abi::{constants, structs};

constants! {
    "KFD_" u32 since 3 {
        /// None.
        SMI_EVENT_NONE = 0;
        /// GPU page fault.
        SMI_EVENT_VMFAULT = 1;
        /// Thermal throttling.
        SMI_EVENT_THERMAL_THROTTLE = 2;
        /// A GPU reset starts.
        SMI_EVENT_GPU_PRE_RESET = 3;
        /// A GPU reset is over.
        SMI_EVENT_GPU_POST_RESET = 4;
        /// Bytes of the longest message.
        SMI_EVENT_MSG_SIZE = 96;
    }
    "KFD_" u32 since 10 {
        /// Pages start to move.
        SMI_EVENT_MIGRATE_START = 5;
        /// Pages have moved.
        SMI_EVENT_MIGRATE_END = 6;
        /// Handling of a retry fault starts.
        SMI_EVENT_PAGE_FAULT_START = 7;
        /// A retry fault is handled.
        SMI_EVENT_PAGE_FAULT_END = 8;
        /// The process' queues were stopped.
        SMI_EVENT_QUEUE_EVICTION = 9;
        /// The process' queues run again.
        SMI_EVENT_QUEUE_RESTORE = 10;
        /// A range was unmapped from a GPU.
        SMI_EVENT_UNMAP_FROM_GPU = 11;
        /// As a bit of the mask: events of all processes, for CAP_SYS_ADMIN.
        SMI_EVENT_ALL_PROCESS = 64;
        /// Pages move because of a prefetch.
        MIGRATE_TRIGGER_PREFETCH = 0;
        /// Pages move because of a GPU fault.
        MIGRATE_TRIGGER_PAGEFAULT_GPU = 1;
        /// Pages move because of a host fault.
        MIGRATE_TRIGGER_PAGEFAULT_CPU = 2;
        /// Pages move because VRAM is short.
        MIGRATE_TRIGGER_TTM_EVICTION = 3;
        /// Queues stop because an SVM range moves.
        QUEUE_EVICTION_TRIGGER_SVM = 0;
        /// Queues stop because USERPTR pages move.
        QUEUE_EVICTION_TRIGGER_USERPTR = 1;
        /// Queues stop because a buffer moves.
        QUEUE_EVICTION_TRIGGER_TTM = 2;
        /// Queues stop because the GPU suspends.
        QUEUE_EVICTION_TRIGGER_SUSPEND = 3;
        /// Queues stop for a checkpoint.
        QUEUE_EVICTION_CRIU_CHECKPOINT = 4;
        /// Queues stop for a restore.
        QUEUE_EVICTION_CRIU_RESTORE = 5;
        /// Unmapped because the host's mapping changed.
        SVM_UNMAP_TRIGGER_MMU_NOTIFY = 0;
        /// Unmapped because pages move.
        SVM_UNMAP_TRIGGER_MMU_NOTIFY_MIGRATE = 1;
        /// Unmapped because the host unmapped.
        SVM_UNMAP_TRIGGER_UNMAP_FROM_CPU = 2;
    }
}

structs! {
    /// Argument of SMI_EVENTS.
    SmiEventsArgs = "kfd_ioctl_smi_events_args" since 3 {
        /// In: GPU.
        gpuid: u32, dec;
        /// Out: file descriptor to write the mask to and to read lines from.
        anon_fd: u32, dec;
    }
}

/// The bit of an SMI event in the 64-bit mask written to the file descriptor; 0 for [`SMI_EVENT_NONE`] and for numbers
/// the mask has no bit for.
pub const fn smi_event_mask(event: u32) -> u64 {
    match event {
        1..=64 => 1 << (event - 1),
        _ => 0,
    }
}

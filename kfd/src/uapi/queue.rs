//! Queues and what the kernel needs to know about their memory.

use super::abi::{constants, structs};

constants! {
    "KFD_IOC_" u32 since 1 {
        /// Compute queue of PM4 packets.
        QUEUE_TYPE_COMPUTE = 0;
        /// SDMA queue on an engine the kernel chooses.
        QUEUE_TYPE_SDMA = 1;
        /// Compute queue of AQL packets.
        QUEUE_TYPE_COMPUTE_AQL = 2;
        /// SDMA queue on an engine that serves xGMI links.
        QUEUE_TYPE_SDMA_XGMI = 3;
    }
    "KFD_IOC_" u32 since 17 {
        /// SDMA queue on the engine `sdma_engine_id`.
        QUEUE_TYPE_SDMA_BY_ENG_ID = 4;
    }
    "KFD_" u32 since 1 {
        /// Greatest `queue_percentage`.
        MAX_QUEUE_PERCENTAGE = 100;
        /// Greatest `queue_priority`.
        MAX_QUEUE_PRIORITY = 15;
    }
    "KFD_" u32 since 17 {
        /// Least `ring_size` in bytes; the kernel raises a smaller one to it.
        MIN_QUEUE_RING_SIZE = 1024;
    }
}

structs! {
    /// Argument of CREATE_QUEUE.
    CreateQueueArgs = "kfd_ioctl_create_queue_args" since 1 {
        /// In: GPU address of the ring, page aligned, the start of its own mapping.
        ring_base_address: u64, hex;
        /// In: address of the write index, in a mapping of exactly one page.
        write_pointer_address: u64, hex;
        /// In: address of the read index, in a mapping of exactly one page.
        read_pointer_address: u64, hex;
        /// Out: offset for mmap of the doorbells, the offset of this queue's doorbell inside them in its low 13 bits.
        doorbell_offset: u64, hex;
        /// In: bytes of the ring, a power of two. Out: raised to [`MIN_QUEUE_RING_SIZE`].
        ring_size: u32, dec;
        /// In: GPU.
        gpu_id: u32, dec;
        /// In: `QUEUE_TYPE_*`.
        queue_type: u32, dec;
        /// In: 0 (paused) to 100 in bits 0–7; bits 8–15 choose the XCC of a PM4 queue.
        queue_percentage: u32, dec;
        /// In: 0 to 15, 7 being normal.
        queue_priority: u32, dec;
        /// Out: id within the process.
        queue_id: u32, dec;
        /// In: address of the end-of-pipe buffer, the start of its own mapping, or 0.
        eop_buffer_address: u64, hex;
        /// In: its bytes.
        eop_buffer_size: u64, dec;
        /// In: address of the context save area, the start of its own mapping.
        ctx_save_restore_address: u64, hex;
        /// In: bytes of control stack and wave data of one XCC, without the debug area.
        ctx_save_restore_size: u32, dec;
        /// In: bytes of the control stack of one XCC.
        ctl_stack_size: u32, dec;
        /// In, since 1.17: engine for [`QUEUE_TYPE_SDMA_BY_ENG_ID`].
        sdma_engine_id: u32, dec;
        /// Zero.
        pad: u32, none;
    }

    /// Argument of DESTROY_QUEUE.
    DestroyQueueArgs = "kfd_ioctl_destroy_queue_args" since 1 {
        /// In: queue.
        queue_id: u32, dec;
        /// Zero.
        pad: u32, none;
    }

    /// Argument of UPDATE_QUEUE. Address 0 or percentage 0 pauses the queue.
    UpdateQueueArgs = "kfd_ioctl_update_queue_args" since 1 {
        /// In: GPU address of the ring.
        ring_base_address: u64, hex;
        /// In: queue.
        queue_id: u32, dec;
        /// In: bytes of the ring.
        ring_size: u32, dec;
        /// In: 0 to 100.
        queue_percentage: u32, dec;
        /// In: 0 to 15.
        queue_priority: u32, dec;
    }

    /// Argument of SET_CU_MASK.
    SetCuMaskArgs = "kfd_ioctl_set_cu_mask_args" since 1 {
        /// In: queue.
        queue_id: u32, dec;
        /// In: bits of the mask, a multiple of 32.
        num_cu_mask: u32, dec;
        /// In: address of the mask, u32 words.
        cu_mask_ptr: u64, hex;
    }

    /// Argument of GET_QUEUE_WAVE_STATE; the queue must be paused.
    GetQueueWaveStateArgs = "kfd_ioctl_get_queue_wave_state_args" since 1 {
        /// In: address the control stack is copied to.
        ctl_stack_address: u64, hex;
        /// Out: bytes of control stack in use.
        ctl_stack_used_size: u32, dec;
        /// Out: bytes of save area in use.
        save_area_used_size: u32, dec;
        /// In: queue.
        queue_id: u32, dec;
        /// Zero.
        pad: u32, none;
    }

    /// Argument of ALLOC_QUEUE_GWS.
    AllocQueueGwsArgs = "kfd_ioctl_alloc_queue_gws_args" since 1 {
        /// In: queue.
        queue_id: u32, dec;
        /// In: 0 gives global wave sync back, anything else takes it.
        num_gws: u32, dec;
        /// Out: 0.
        first_gws: u32, dec;
        /// Zero.
        pad: u32, none;
    }

    /// Header at the start of the context save area of each XCC. User space fills `debug_*` and `err_*`, the kernel
    /// and the trap handler the rest.
    ContextSaveAreaHeader = "kfd_context_save_area_header" since 13 {
        /// Byte offset of the saved control stack.
        control_stack_offset: u32, hex "wave_state.control_stack_offset";
        /// Its bytes.
        control_stack_size: u32, dec "wave_state.control_stack_size";
        /// Byte offset of the saved waves.
        wave_state_offset: u32, hex "wave_state.wave_state_offset";
        /// Their bytes.
        wave_state_size: u32, dec "wave_state.wave_state_size";
        /// Byte offset from this header to the debugger's memory, which follows the areas of all XCCs.
        debug_offset: u32, hex;
        /// Bytes of the debugger's memory, of all XCCs.
        debug_size: u32, dec;
        /// Address of a u64 the kernel ORs `1 << (code - 1)` into on a queue exception; 0 for none.
        err_payload_addr: u64, hex;
        /// Event the kernel sets on a queue exception; 0 for none.
        err_event_id: u32, dec;
        /// Zero.
        reserved1: u32, none;
    }
}

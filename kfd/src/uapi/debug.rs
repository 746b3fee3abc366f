//! Runtime enable, exceptions and the debugger interface.

use super::abi::{Pod, constants, structs};

/// The bit of an exception code in the 64-bit masks (`KFD_EC_MASK`); 0 for [`EC_NONE`] and for numbers without a bit.
pub const fn ec_mask(code: u32) -> u64 {
    match code {
        1..=64 => 1 << (code - 1),
        _ => 0,
    }
}

constants! {
    "KFD_" u32 since 13 {
        /// [`RuntimeEnableArgs::mode_mask`]: enable, so that queue exceptions reach the process.
        RUNTIME_ENABLE_MODE_ENABLE_MASK = 1;
        /// [`RuntimeEnableArgs::mode_mask`]: the trap handler saves the trap temporaries.
        RUNTIME_ENABLE_MODE_TTMP_SAVE_MASK = 2;
        /// Bit of a queue id in a suspend or resume array: that queue failed.
        DBG_QUEUE_ERROR_BIT = 30;
        /// Bit of a queue id in a suspend or resume array: no such queue.
        DBG_QUEUE_INVALID_BIT = 31;
        /// [`DBG_QUEUE_ERROR_BIT`] as a mask.
        DBG_QUEUE_ERROR_MASK = 1 << DBG_QUEUE_ERROR_BIT;
        /// [`DBG_QUEUE_INVALID_BIT`] as a mask.
        DBG_QUEUE_INVALID_MASK = 1 << DBG_QUEUE_INVALID_BIT;
    }
    "" u32 since 1 {
        /// Points of the withdrawn address watch.
        MAX_ALLOWED_NUM_POINTS = 100;
        /// Bytes of the withdrawn address watch.
        MAX_ALLOWED_AW_BUFF_SIZE = 4096;
        /// Bytes of the withdrawn wave control.
        MAX_ALLOWED_WAC_BUFF_SIZE = 128;
    }
    "" u32 since 13 {
        /// The runtime has not enabled.
        DEBUG_RUNTIME_STATE_DISABLED = 0;
        /// The runtime has enabled.
        DEBUG_RUNTIME_STATE_ENABLED = 1;
        /// Enabled, but a debugger cannot attach.
        DEBUG_RUNTIME_STATE_ENABLED_BUSY = 2;
        /// Enabling failed.
        DEBUG_RUNTIME_STATE_ENABLED_ERROR = 3;
        /// No exception.
        EC_NONE = 0;
        /// Queue: a wave aborted.
        EC_QUEUE_WAVE_ABORT = 1;
        /// Queue: a wave trapped.
        EC_QUEUE_WAVE_TRAP = 2;
        /// Queue: arithmetic error.
        EC_QUEUE_WAVE_MATH_ERROR = 3;
        /// Queue: illegal instruction.
        EC_QUEUE_WAVE_ILLEGAL_INSTRUCTION = 4;
        /// Queue: memory violation.
        EC_QUEUE_WAVE_MEMORY_VIOLATION = 5;
        /// Queue: address outside every aperture.
        EC_QUEUE_WAVE_APERTURE_VIOLATION = 6;
        /// Queue: bad dimensions in a dispatch packet.
        EC_QUEUE_PACKET_DISPATCH_DIM_INVALID = 16;
        /// Queue: bad group segment size in a dispatch packet.
        EC_QUEUE_PACKET_DISPATCH_GROUP_SEGMENT_SIZE_INVALID = 17;
        /// Queue: no code in a dispatch packet.
        EC_QUEUE_PACKET_DISPATCH_CODE_INVALID = 18;
        /// Queue: reserved packet field set.
        EC_QUEUE_PACKET_RESERVED = 19;
        /// Queue: unsupported packet.
        EC_QUEUE_PACKET_UNSUPPORTED = 20;
        /// Queue: work-group too large.
        EC_QUEUE_PACKET_DISPATCH_WORK_GROUP_SIZE_INVALID = 21;
        /// Queue: too many registers.
        EC_QUEUE_PACKET_DISPATCH_REGISTER_INVALID = 22;
        /// Queue: unsupported vendor packet.
        EC_QUEUE_PACKET_VENDOR_UNSUPPORTED = 23;
        /// Queue: preemption failed.
        EC_QUEUE_PREEMPTION_ERROR = 30;
        /// Queue: it is new.
        EC_QUEUE_NEW = 31;
        /// Device: a queue was deleted.
        EC_DEVICE_QUEUE_DELETE = 32;
        /// Device: memory violation.
        EC_DEVICE_MEMORY_VIOLATION = 33;
        /// Device: uncorrectable error.
        EC_DEVICE_RAS_ERROR = 34;
        /// Device: it stopped.
        EC_DEVICE_FATAL_HALT = 35;
        /// Device: it is new.
        EC_DEVICE_NEW = 36;
        /// Process: the runtime enabled or disabled.
        EC_PROCESS_RUNTIME = 48;
        /// Process: a device went away.
        EC_PROCESS_DEVICE_REMOVE = 49;
        /// One past the greatest code.
        EC_MAX = 50;
    }
    "KFD_" u64 since 13 {
        /// Exceptions a packet causes.
        EC_MASK_PACKET = ec_mask(EC_QUEUE_PACKET_DISPATCH_DIM_INVALID)
            | ec_mask(EC_QUEUE_PACKET_DISPATCH_GROUP_SEGMENT_SIZE_INVALID)
            | ec_mask(EC_QUEUE_PACKET_DISPATCH_CODE_INVALID)
            | ec_mask(EC_QUEUE_PACKET_RESERVED)
            | ec_mask(EC_QUEUE_PACKET_UNSUPPORTED)
            | ec_mask(EC_QUEUE_PACKET_DISPATCH_WORK_GROUP_SIZE_INVALID)
            | ec_mask(EC_QUEUE_PACKET_DISPATCH_REGISTER_INVALID)
            | ec_mask(EC_QUEUE_PACKET_VENDOR_UNSUPPORTED);
        /// Exceptions of a queue.
        EC_MASK_QUEUE = EC_MASK_PACKET
            | ec_mask(EC_QUEUE_WAVE_ABORT)
            | ec_mask(EC_QUEUE_WAVE_TRAP)
            | ec_mask(EC_QUEUE_WAVE_MATH_ERROR)
            | ec_mask(EC_QUEUE_WAVE_ILLEGAL_INSTRUCTION)
            | ec_mask(EC_QUEUE_WAVE_MEMORY_VIOLATION)
            | ec_mask(EC_QUEUE_WAVE_APERTURE_VIOLATION)
            | ec_mask(EC_QUEUE_PREEMPTION_ERROR)
            | ec_mask(EC_QUEUE_NEW);
        /// Exceptions of a device.
        EC_MASK_DEVICE = ec_mask(EC_DEVICE_QUEUE_DELETE)
            | ec_mask(EC_DEVICE_RAS_ERROR)
            | ec_mask(EC_DEVICE_FATAL_HALT)
            | ec_mask(EC_DEVICE_MEMORY_VIOLATION)
            | ec_mask(EC_DEVICE_NEW);
        /// Exceptions of a process.
        EC_MASK_PROCESS = ec_mask(EC_PROCESS_RUNTIME) | ec_mask(EC_PROCESS_DEVICE_REMOVE);
    }
    "KFD_" u32 since 13 {
        /// The trap mask is added to what waves ask for.
        DBG_TRAP_OVERRIDE_OR = 0;
        /// The trap mask replaces what waves ask for.
        DBG_TRAP_OVERRIDE_REPLACE = 1;
        /// Trap on an invalid floating-point operation.
        DBG_TRAP_MASK_FP_INVALID = 1;
        /// Trap on a denormal input.
        DBG_TRAP_MASK_FP_INPUT_DENORMAL = 2;
        /// Trap on a floating-point division by zero.
        DBG_TRAP_MASK_FP_DIVIDE_BY_ZERO = 4;
        /// Trap on overflow.
        DBG_TRAP_MASK_FP_OVERFLOW = 8;
        /// Trap on underflow.
        DBG_TRAP_MASK_FP_UNDERFLOW = 16;
        /// Trap on an inexact result.
        DBG_TRAP_MASK_FP_INEXACT = 32;
        /// Trap on an integer division by zero.
        DBG_TRAP_MASK_INT_DIVIDE_BY_ZERO = 64;
        /// Trap on an address watch hit.
        DBG_TRAP_MASK_DBG_ADDRESS_WATCH = 128;
        /// Trap on a memory violation.
        DBG_TRAP_MASK_DBG_MEMORY_VIOLATION = 256;
        /// Trap when a wave starts.
        DBG_TRAP_MASK_TRAP_ON_WAVE_START = 1 << 30;
        /// Trap when a wave ends.
        DBG_TRAP_MASK_TRAP_ON_WAVE_END = 1 << 31;
        /// Waves start as usual.
        DBG_TRAP_WAVE_LAUNCH_MODE_NORMAL = 0;
        /// Waves start halted.
        DBG_TRAP_WAVE_LAUNCH_MODE_HALT = 1;
        /// Waves start in debug mode.
        DBG_TRAP_WAVE_LAUNCH_MODE_DEBUG = 3;
        /// Watch loads.
        DBG_TRAP_ADDRESS_WATCH_MODE_READ = 0;
        /// Watch stores and atomics.
        DBG_TRAP_ADDRESS_WATCH_MODE_NONREAD = 1;
        /// Watch atomics.
        DBG_TRAP_ADDRESS_WATCH_MODE_ATOMIC = 2;
        /// Watch everything.
        DBG_TRAP_ADDRESS_WATCH_MODE_ALL = 3;
        /// One memory operation at a time, so that faults are precise.
        DBG_TRAP_FLAG_SINGLE_MEM_OP = 1;
    }
    "KFD_" u32 since 15 {
        /// One arithmetic operation at a time.
        DBG_TRAP_FLAG_SINGLE_ALU_OP = 2;
    }
    "KFD_" u32 since 21 {
        /// An LDS address out of range traps.
        DBG_TRAP_FLAG_LDS_OUT_OF_ADDR_RANGE = 4;
    }
    "KFD_IOC_" u32 since 13 {
        /// Attaches: [`DbgTrapEnableArgs`].
        DBG_TRAP_ENABLE = 0;
        /// Detaches; no argument.
        DBG_TRAP_DISABLE = 1;
        /// Raises an exception in the debugged process: [`DbgTrapSendRuntimeEventArgs`].
        DBG_TRAP_SEND_RUNTIME_EVENT = 2;
        /// Chooses what is reported: [`DbgTrapSetExceptionsEnabledArgs`].
        DBG_TRAP_SET_EXCEPTIONS_ENABLED = 3;
        /// Sets the trap mask of new waves: [`DbgTrapSetWaveLaunchOverrideArgs`].
        DBG_TRAP_SET_WAVE_LAUNCH_OVERRIDE = 4;
        /// Sets how waves start: [`DbgTrapSetWaveLaunchModeArgs`].
        DBG_TRAP_SET_WAVE_LAUNCH_MODE = 5;
        /// Takes queues off the hardware: [`DbgTrapSuspendQueuesArgs`].
        DBG_TRAP_SUSPEND_QUEUES = 6;
        /// Puts queues back: [`DbgTrapResumeQueuesArgs`].
        DBG_TRAP_RESUME_QUEUES = 7;
        /// Sets a watchpoint: [`DbgTrapSetNodeAddressWatchArgs`].
        DBG_TRAP_SET_NODE_ADDRESS_WATCH = 8;
        /// Clears a watchpoint: [`DbgTrapClearNodeAddressWatchArgs`].
        DBG_TRAP_CLEAR_NODE_ADDRESS_WATCH = 9;
        /// Sets `DBG_TRAP_FLAG_*`: [`DbgTrapSetFlagsArgs`].
        DBG_TRAP_SET_FLAGS = 10;
        /// Takes the next exception: [`DbgTrapQueryDebugEventArgs`].
        DBG_TRAP_QUERY_DEBUG_EVENT = 11;
        /// Takes what is known of an exception: [`DbgTrapQueryExceptionInfoArgs`].
        DBG_TRAP_QUERY_EXCEPTION_INFO = 12;
        /// Lists queues: [`DbgTrapQueueSnapshotArgs`].
        DBG_TRAP_GET_QUEUE_SNAPSHOT = 13;
        /// Lists devices: [`DbgTrapDeviceSnapshotArgs`].
        DBG_TRAP_GET_DEVICE_SNAPSHOT = 14;
    }
}

structs! {
    /// Argument of DBG_REGISTER_DEPRECATED, which returns EPERM.
    DbgRegisterArgs = "kfd_ioctl_dbg_register_args" since 1 {
        /// In: GPU.
        gpu_id: u32, dec;
        /// Zero.
        pad: u32, none;
    }

    /// Argument of DBG_UNREGISTER_DEPRECATED, which returns EPERM.
    DbgUnregisterArgs = "kfd_ioctl_dbg_unregister_args" since 1 {
        /// In: GPU.
        gpu_id: u32, dec;
        /// Zero.
        pad: u32, none;
    }

    /// Argument of DBG_ADDRESS_WATCH_DEPRECATED, which returns EPERM.
    DbgAddressWatchArgs = "kfd_ioctl_dbg_address_watch_args" since 1 {
        /// In: address of the content.
        content_ptr: u64, hex;
        /// In: GPU.
        gpu_id: u32, dec;
        /// In: bytes.
        buf_size_in_bytes: u32, dec;
    }

    /// Argument of DBG_WAVE_CONTROL_DEPRECATED, which returns EPERM.
    DbgWaveControlArgs = "kfd_ioctl_dbg_wave_control_args" since 1 {
        /// In: address of the content.
        content_ptr: u64, hex;
        /// In: GPU.
        gpu_id: u32, dec;
        /// In: bytes.
        buf_size_in_bytes: u32, dec;
    }

    /// What a debugger learns of the runtime.
    RuntimeInfo = "kfd_runtime_info" since 13 {
        /// Address of `r_debug`.
        r_debug: u64, hex;
        /// `DEBUG_RUNTIME_STATE_*`.
        runtime_state: u32, dec;
        /// 1 when the trap temporaries are set up.
        ttmp_setup: u32, dec;
    }

    /// Argument of RUNTIME_ENABLE; before any queue.
    RuntimeEnableArgs = "kfd_ioctl_runtime_enable_args" since 13 {
        /// In: address of `r_debug`, or 0.
        r_debug: u64, hex;
        /// In: `RUNTIME_ENABLE_MODE_*`; without the enable bit the call disables.
        mode_mask: u32, hex;
        /// Left as it is by the kernel.
        capabilities_mask: u32, hex;
    }

    /// One queue of a snapshot.
    QueueSnapshotEntry = "kfd_queue_snapshot_entry" since 13 {
        /// Exceptions raised, as [`ec_mask`] bits.
        exception_status: u64, hex;
        /// Address of the ring.
        ring_base_address: u64, hex;
        /// Address of the write index.
        write_pointer_address: u64, hex;
        /// Address of the read index.
        read_pointer_address: u64, hex;
        /// Address of the context save area.
        ctx_save_restore_address: u64, hex;
        /// Queue.
        queue_id: u32, dec;
        /// GPU.
        gpu_id: u32, dec;
        /// Bytes of the ring.
        ring_size: u32, dec;
        /// `QUEUE_TYPE_*`.
        queue_type: u32, dec;
        /// Bytes of the context save area.
        ctx_save_restore_area_size: u32, dec;
        /// Zero.
        reserved: u32, none;
    }

    /// One device of a snapshot.
    DbgDeviceInfoEntry = "kfd_dbg_device_info_entry" since 13 {
        /// Exceptions raised, as [`ec_mask`] bits.
        exception_status: u64, hex;
        /// First address of the LDS window.
        lds_base: u64, hex;
        /// Last address of the LDS window.
        lds_limit: u64, hex;
        /// First address of the scratch window.
        scratch_base: u64, hex;
        /// Last address of the scratch window.
        scratch_limit: u64, hex;
        /// First address buffers may take.
        gpuvm_base: u64, hex;
        /// Last address buffers may take.
        gpuvm_limit: u64, hex;
        /// GPU.
        gpu_id: u32, dec;
        /// Bus, device and function.
        location_id: u32, hex;
        /// PCI vendor.
        vendor_id: u32, hex;
        /// PCI device.
        device_id: u32, hex;
        /// PCI revision.
        revision_id: u32, hex;
        /// PCI subsystem vendor.
        subsystem_vendor_id: u32, hex;
        /// PCI subsystem device.
        subsystem_device_id: u32, hex;
        /// Firmware version.
        fw_version: u32, dec;
        /// As in the topology.
        gfx_target_version: u32, dec;
        /// As in the topology.
        simd_count: u32, dec;
        /// As in the topology.
        max_waves_per_simd: u32, dec;
        /// As in the topology.
        array_count: u32, dec;
        /// As in the topology.
        simd_arrays_per_engine: u32, dec;
        /// As in the topology.
        num_xcc: u32, dec;
        /// As in the topology.
        capability: u32, hex;
        /// As in the topology.
        debug_prop: u32, hex;
    }

    /// Argument of [`DBG_TRAP_ENABLE`].
    DbgTrapEnableArgs = "kfd_ioctl_dbg_trap_enable_args" since 13 {
        /// In: exceptions to report.
        exception_mask: u64, hex;
        /// In: address of a [`RuntimeInfo`].
        rinfo_ptr: u64, hex;
        /// In: its bytes. Out: bytes the kernel has.
        rinfo_size: u32, dec;
        /// In: file descriptor the kernel writes to when an exception is raised.
        dbg_fd: u32, dec;
    }

    /// Argument of [`DBG_TRAP_SEND_RUNTIME_EVENT`].
    DbgTrapSendRuntimeEventArgs = "kfd_ioctl_dbg_trap_send_runtime_event_args" since 13 {
        /// In: exceptions.
        exception_mask: u64, hex;
        /// In: GPU.
        gpu_id: u32, dec;
        /// In: queue.
        queue_id: u32, dec;
    }

    /// Argument of [`DBG_TRAP_SET_EXCEPTIONS_ENABLED`].
    DbgTrapSetExceptionsEnabledArgs = "kfd_ioctl_dbg_trap_set_exceptions_enabled_args" since 13 {
        /// In: exceptions to report.
        exception_mask: u64, hex;
    }

    /// Argument of [`DBG_TRAP_SET_WAVE_LAUNCH_OVERRIDE`].
    DbgTrapSetWaveLaunchOverrideArgs = "kfd_ioctl_dbg_trap_set_wave_launch_override_args" since 13 {
        /// In: `DBG_TRAP_OVERRIDE_*`.
        override_mode: u32, dec;
        /// In: `DBG_TRAP_MASK_*` to set. Out: what was set before.
        enable_mask: u32, hex;
        /// In: `DBG_TRAP_MASK_*` to change. Out: what can be changed.
        support_request_mask: u32, hex;
        /// Zero.
        pad: u32, none;
    }

    /// Argument of [`DBG_TRAP_SET_WAVE_LAUNCH_MODE`].
    DbgTrapSetWaveLaunchModeArgs = "kfd_ioctl_dbg_trap_set_wave_launch_mode_args" since 13 {
        /// In: `DBG_TRAP_WAVE_LAUNCH_MODE_*`.
        launch_mode: u32, dec;
        /// Zero.
        pad: u32, none;
    }

    /// Argument of [`DBG_TRAP_SUSPEND_QUEUES`].
    DbgTrapSuspendQueuesArgs = "kfd_ioctl_dbg_trap_suspend_queues_args" since 13 {
        /// In: exceptions to clear.
        exception_mask: u64, hex;
        /// In: address of an array of queue ids. Out: `DBG_QUEUE_*` bits in them.
        queue_array_ptr: u64, hex;
        /// In: its length.
        num_queues: u32, dec;
        /// In: time given to running waves, in units of 64 ticks of the GPU clock.
        grace_period: u32, dec;
    }

    /// Argument of [`DBG_TRAP_RESUME_QUEUES`].
    DbgTrapResumeQueuesArgs = "kfd_ioctl_dbg_trap_resume_queues_args" since 13 {
        /// In: address of an array of queue ids. Out: `DBG_QUEUE_*` bits in them.
        queue_array_ptr: u64, hex;
        /// In: its length.
        num_queues: u32, dec;
        /// Zero.
        pad: u32, none;
    }

    /// Argument of [`DBG_TRAP_SET_NODE_ADDRESS_WATCH`].
    DbgTrapSetNodeAddressWatchArgs = "kfd_ioctl_dbg_trap_set_node_address_watch_args" since 13 {
        /// In: address.
        address: u64, hex;
        /// In: `DBG_TRAP_ADDRESS_WATCH_MODE_*`.
        mode: u32, dec;
        /// In: address bits that count.
        mask: u32, hex;
        /// In: GPU.
        gpu_id: u32, dec;
        /// Out: watchpoint.
        id: u32, dec;
    }

    /// Argument of [`DBG_TRAP_CLEAR_NODE_ADDRESS_WATCH`].
    DbgTrapClearNodeAddressWatchArgs = "kfd_ioctl_dbg_trap_clear_node_address_watch_args" since 13 {
        /// In: GPU.
        gpu_id: u32, dec;
        /// In: watchpoint.
        id: u32, dec;
    }

    /// Argument of [`DBG_TRAP_SET_FLAGS`].
    DbgTrapSetFlagsArgs = "kfd_ioctl_dbg_trap_set_flags_args" since 13 {
        /// In: `DBG_TRAP_FLAG_*`. Out: what was set before.
        flags: u32, hex;
        /// Zero.
        pad: u32, none;
    }

    /// Argument of [`DBG_TRAP_QUERY_DEBUG_EVENT`].
    DbgTrapQueryDebugEventArgs = "kfd_ioctl_dbg_trap_query_debug_event_args" since 13 {
        /// In: exceptions to clear. Out: exceptions raised.
        exception_mask: u64, hex;
        /// Out: GPU.
        gpu_id: u32, dec;
        /// Out: queue.
        queue_id: u32, dec;
    }

    /// Argument of [`DBG_TRAP_QUERY_EXCEPTION_INFO`].
    DbgTrapQueryExceptionInfoArgs = "kfd_ioctl_dbg_trap_query_exception_info_args" since 13 {
        /// In: address the information is copied to.
        info_ptr: u64, hex;
        /// In: room there. Out: bytes there are.
        info_size: u32, dec;
        /// In: GPU or queue.
        source_id: u32, dec;
        /// In: `EC_*`.
        exception_code: u32, dec;
        /// In: 1 to clear it.
        clear_exception: u32, dec;
    }

    /// Argument of [`DBG_TRAP_GET_QUEUE_SNAPSHOT`].
    DbgTrapQueueSnapshotArgs = "kfd_ioctl_dbg_trap_queue_snapshot_args" since 13 {
        /// In: exceptions to clear.
        exception_mask: u64, hex;
        /// In: address of an array of [`QueueSnapshotEntry`].
        snapshot_buf_ptr: u64, hex;
        /// In: entries it can hold. Out: queues there are.
        num_queues: u32, dec;
        /// In: bytes of an entry. Out: bytes the kernel's has.
        entry_size: u32, dec;
    }

    /// Argument of [`DBG_TRAP_GET_DEVICE_SNAPSHOT`].
    DbgTrapDeviceSnapshotArgs = "kfd_ioctl_dbg_trap_device_snapshot_args" since 13 {
        /// In: exceptions to clear.
        exception_mask: u64, hex;
        /// In: address of an array of [`DbgDeviceInfoEntry`].
        snapshot_buf_ptr: u64, hex;
        /// In: entries it can hold. Out: devices there are.
        num_devices: u32, dec;
        /// In: bytes of an entry. Out: bytes the kernel's has.
        entry_size: u32, dec;
    }

    /// Argument of DBG_TRAP: an operation and the union of their arguments.
    DbgTrapArgs = "kfd_ioctl_dbg_trap_args" since 13 {
        /// In: process.
        pid: u32, dec;
        /// In: `DBG_TRAP_*` operation.
        op: u32, dec;
        /// In, out: argument of the operation, see [`DbgTrapArgs::argument`].
        payload: [u64; 3], none "suspend_queues";
    }
}

/// The argument of a DBG_TRAP operation.
pub trait DbgTrapOp: Pod {
    /// `DBG_TRAP_*` operation.
    const OP: u32;
}

macro_rules! operations {
    ($($op:ident $args:ident;)*) => { $(impl DbgTrapOp for $args { const OP: u32 = $op; })* };
}

operations! {
    DBG_TRAP_ENABLE                   DbgTrapEnableArgs;
    DBG_TRAP_SEND_RUNTIME_EVENT       DbgTrapSendRuntimeEventArgs;
    DBG_TRAP_SET_EXCEPTIONS_ENABLED   DbgTrapSetExceptionsEnabledArgs;
    DBG_TRAP_SET_WAVE_LAUNCH_OVERRIDE DbgTrapSetWaveLaunchOverrideArgs;
    DBG_TRAP_SET_WAVE_LAUNCH_MODE     DbgTrapSetWaveLaunchModeArgs;
    DBG_TRAP_SUSPEND_QUEUES           DbgTrapSuspendQueuesArgs;
    DBG_TRAP_RESUME_QUEUES            DbgTrapResumeQueuesArgs;
    DBG_TRAP_SET_NODE_ADDRESS_WATCH   DbgTrapSetNodeAddressWatchArgs;
    DBG_TRAP_CLEAR_NODE_ADDRESS_WATCH DbgTrapClearNodeAddressWatchArgs;
    DBG_TRAP_SET_FLAGS                DbgTrapSetFlagsArgs;
    DBG_TRAP_QUERY_DEBUG_EVENT        DbgTrapQueryDebugEventArgs;
    DBG_TRAP_QUERY_EXCEPTION_INFO     DbgTrapQueryExceptionInfoArgs;
    DBG_TRAP_GET_QUEUE_SNAPSHOT       DbgTrapQueueSnapshotArgs;
    DBG_TRAP_GET_DEVICE_SNAPSHOT      DbgTrapDeviceSnapshotArgs;
}

impl DbgTrapArgs {
    /// An operation with its argument.
    pub fn new<T: DbgTrapOp>(pid: u32, argument: &T) -> DbgTrapArgs {
        DbgTrapArgs { pid, op: T::OP, payload: Pod::from_prefix_or_zero(argument.as_bytes()) }
    }

    /// The argument, if `op` is the operation that has it.
    pub fn argument<T: DbgTrapOp>(&self) -> Option<T> {
        if self.op == T::OP { T::from_prefix(self.payload.as_bytes()) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_operations() {
        let flags = DbgTrapSetFlagsArgs { flags: DBG_TRAP_FLAG_SINGLE_MEM_OP, pad: 0 };
        let args = DbgTrapArgs::new(42, &flags);
        assert_eq!(args.op, 10);
        assert_eq!(args.argument::<DbgTrapSetFlagsArgs>(), Some(flags));
        assert_eq!(args.argument::<DbgTrapEnableArgs>(), None);
    }

    #[test]
    fn every_exception_has_one_class() {
        let classes = [EC_MASK_QUEUE, EC_MASK_DEVICE, EC_MASK_PROCESS];
        for code in EC_NONE + 1..EC_MAX {
            let count = classes.iter().filter(|&&class| class & ec_mask(code) != 0).count();
            assert!(count <= 1, "{code}");
        }
        assert_eq!(EC_MASK_PACKET & !EC_MASK_QUEUE, 0);
        assert_eq!((ec_mask(EC_NONE), ec_mask(64), ec_mask(65)), (0, 1 << 63, 0));
    }
}

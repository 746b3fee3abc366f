//! Checkpoint and restore.

use super::abi::{constants, structs};

constants! {
    "KFD_" u32 since 7 {
        /// Stops the process and tells how much there is to save.
        CRIU_OP_PROCESS_INFO = 0;
        /// Saves.
        CRIU_OP_CHECKPOINT = 1;
        /// Lets the process go on.
        CRIU_OP_UNPAUSE = 2;
        /// Restores.
        CRIU_OP_RESTORE = 3;
        /// Starts the restored process.
        CRIU_OP_RESUME = 4;
    }
}

structs! {
    /// Argument of CRIU_OP.
    CriuArgs = "kfd_ioctl_criu_args" since 7 {
        /// In: address of an array of [`CriuDeviceBucket`].
        devices: u64, hex;
        /// In: address of an array of [`CriuBoBucket`].
        bos: u64, hex;
        /// In: address of the driver's private data.
        priv_data: u64, hex;
        /// In, out: bytes of the private data.
        priv_data_size: u64, dec;
        /// In, out: devices.
        num_devices: u32, dec;
        /// In, out: buffers.
        num_bos: u32, dec;
        /// In, out: queues, events and SVM ranges.
        num_objects: u32, dec;
        /// In, out: process.
        pid: u32, dec;
        /// In: `CRIU_OP_*`.
        op: u32, dec;
        /// The header ends at `op`; the compiler rounds up to 8 bytes.
        hole: u32, none "";
    }

    /// One GPU of a checkpoint.
    CriuDeviceBucket = "kfd_criu_device_bucket" since 7 {
        /// GPU id the process knows.
        user_gpu_id: u32, dec;
        /// GPU id it has.
        actual_gpu_id: u32, dec;
        /// File descriptor of the render node.
        drm_fd: u32, dec;
        /// Zero.
        pad: u32, none;
    }

    /// One buffer of a checkpoint.
    CriuBoBucket = "kfd_criu_bo_bucket" since 7 {
        /// Address.
        addr: u64, hex;
        /// Bytes.
        size: u64, dec;
        /// mmap offset.
        offset: u64, hex;
        /// mmap offset after the restore.
        restored_offset: u64, hex;
        /// GPU id the process knows.
        gpu_id: u32, dec;
        /// `ALLOC_MEM_FLAGS_*`.
        alloc_flags: u32, hex;
        /// File descriptor.
        dmabuf_fd: u32, dec;
        /// Zero.
        pad: u32, none;
    }
}

//! The AMDKFD user interface as data: `include/uapi/linux/kfd_ioctl.h` and `kfd_sysfs.h`.
//!
//! Interface version 1.17 (Linux 6.12) and the later additions that are documented, each marked with the minor version
//! it came with. Names are the header's without its prefix: `struct kfd_ioctl_create_queue_args` is
//! [`CreateQueueArgs`], `KFD_IOC_QUEUE_TYPE_COMPUTE_AQL` is [`QUEUE_TYPE_COMPUTE_AQL`]. The program
//! `kfdrun-header-check` compares every size, offset, constant and request number here with a header given to it.
//!
//! In the documentation of fields, "in" is what the caller fills, "out" what the kernel writes back.

mod abi;
mod criu;
mod debug;
mod drm;
mod event;
mod ioctl;
mod memory;
mod mmap;
mod process;
mod queue;
mod smi;
mod svm;
pub mod sysfs;

pub use abi::{Constant, FieldLayout, Ioctl, Layout, Pod, Record};
pub use criu::*;
pub use debug::*;
pub use drm::*;
pub use event::*;
pub use ioctl::*;
pub use memory::*;
pub use mmap::*;
pub use process::*;
pub use queue::*;
pub use smi::*;
pub use svm::*;

/// Every structure of the interface, by header section.
pub const STRUCTS: &[&[&Layout]] = &[
    process::LAYOUTS,
    queue::LAYOUTS,
    event::LAYOUTS,
    memory::LAYOUTS,
    svm::LAYOUTS,
    smi::LAYOUTS,
    criu::LAYOUTS,
    debug::LAYOUTS,
];

/// Every constant of the interface, by header section.
pub const CONSTANTS: &[&[Constant]] = &[
    ioctl::VALUES,
    process::VALUES,
    queue::VALUES,
    event::VALUES,
    memory::VALUES,
    svm::VALUES,
    smi::VALUES,
    criu::VALUES,
    debug::VALUES,
    sysfs::VALUES,
];

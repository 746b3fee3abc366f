//! What can go wrong, one variant a cause.
//!
//! `Display` is one line: what failed, with the raw number and its name. [`Error::rule`] is the rule that was broken and
//! the value that broke it, [`Error::advice`] what to do; [`Error::report`] puts the three together.

mod open;
mod rules;

pub use open::Absence;
pub use rules::{Rule as ErrorRule, all as error_rules, find as find_error_rule};

use crate::cwsr::ContextSaveError;
use crate::driver::Permissions;
use crate::errno::Errno;
use crate::queue::CreateQueueError;
use crate::scratch::ScratchError;
use crate::topology::TopologyError;
use crate::types::{GfxTarget, GpuId, GpuVa};

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no `/dev/kfd`.
    #[error("/dev/kfd: {}: there is no AMDKFD device node here", Errno::ENOENT)]
    NoKfd {
        /// Why, as far as can be seen.
        absence: Absence,
    },

    /// A device node exists and this process may not open it.
    #[error("{path}: {errno}: this process may not open it")]
    Permission {
        /// Device node.
        path: String,
        /// EACCES or EPERM.
        errno: Errno,
        /// Owner and mode of the node, and who asked; none when they could not be had.
        permissions: Option<Box<Permissions>>,
    },

    /// The driver is there and has no GPU for this process: ENOMEM on open.
    #[error("/dev/kfd: {}: the driver has no GPU it can use for compute", Errno::ENOMEM)]
    NoUsableGpu,

    /// A device node could not be opened for another reason.
    #[error("{path}: {errno}: cannot be opened")]
    Open {
        /// Device node.
        path: String,
        /// Error.
        errno: Errno,
    },

    /// The kernel speaks another interface.
    #[error("/dev/kfd has interface {major}.{minor}")]
    Version {
        /// Major version.
        major: u32,
        /// Minor version.
        minor: u32,
    },

    /// The host's pages are not those of the GPU.
    #[error("the host has pages of {bytes} bytes")]
    PageSize {
        /// Bytes.
        bytes: u64,
    },

    /// The topology could not be read.
    #[error(transparent)]
    Topology(#[from] TopologyError),

    /// A topology line that is needed is not there or cannot be right.
    #[error("topology node {node}: {key} {}", value.map_or("is absent".to_string(), |value| format!("is {value}")))]
    Property {
        /// Node.
        node: u32,
        /// Key in `properties`.
        key: &'static str,
        /// Its value, none when the line is absent.
        value: Option<u64>,
        /// What it has to be.
        rule: &'static str,
    },

    /// A GPU this runtime does not know how to drive.
    #[error("{target} cannot be driven")]
    Unsupported {
        /// Architecture.
        target: GfxTarget,
        /// Why.
        reason: &'static str,
    },

    /// GET_PROCESS_APERTURES_NEW has no record of a GPU that the topology lists.
    #[error("the kernel has no apertures for gpu_id {gpu}")]
    NoApertures {
        /// GPU.
        gpu: GpuId,
        /// GPUs it has apertures for.
        known: Vec<u32>,
    },

    /// An ioctl failed.
    #[error("{name}: {errno}")]
    Ioctl {
        /// Name after `AMDKFD_IOC_`.
        name: &'static str,
        /// Request number.
        request: u32,
        /// Error.
        errno: Errno,
    },

    /// CREATE_QUEUE failed; the cause carries a table of what was checked.
    #[error(transparent)]
    CreateQueue(#[from] Box<CreateQueueError>),

    /// The driver does not know how fast the real-time counter of a GPU is.
    #[error("DRM_AMDGPU_INFO: gpu_id {gpu}: gpu_counter_freq is 0")]
    NoCounterFrequency {
        /// GPU.
        gpu: GpuId,
    },

    /// Device memory for the host was asked of a GPU whose BAR does not cover its memory.
    #[error("ALLOC_MEMORY_OF_GPU: {}: gpu_id {gpu} has no large BAR", Errno::EINVAL)]
    NoLargeBar {
        /// GPU.
        gpu: GpuId,
        /// Bytes of device memory, when the topology tells.
        vram: Option<u64>,
    },

    /// MAP_MEMORY_TO_GPU returned success and did not map.
    #[error("MAP_MEMORY_TO_GPU mapped {purpose} on {n_success} of 1 GPUs")]
    NotMapped {
        /// What the buffer is for.
        purpose: &'static str,
        /// What the kernel counted.
        n_success: u32,
    },

    /// mmap failed.
    #[error("mmap of {len} bytes for {purpose}: {errno}")]
    Mmap {
        /// What it is for.
        purpose: &'static str,
        /// Bytes.
        len: u64,
        /// Error.
        errno: Errno,
    },

    /// A size that cannot be.
    #[error("{what} of {size} bytes")]
    Size {
        /// What has it.
        what: &'static str,
        /// Bytes.
        size: u64,
        /// What it has to be.
        rule: &'static str,
    },

    /// The kernel chose host addresses outside what the GPU can map.
    #[error("{purpose} would lie at {va}, outside the GPU's {base}..={limit}")]
    OutsideGpuVm {
        /// What the buffer is for.
        purpose: &'static str,
        /// Address.
        va: GpuVa,
        /// First address the GPU can map.
        base: GpuVa,
        /// Last address the GPU can map.
        limit: GpuVa,
    },

    /// The host cannot reach the buffer.
    #[error("the host cannot access {purpose}")]
    NotHostVisible {
        /// What the buffer is for.
        purpose: &'static str,
    },

    /// An access past the end of a buffer.
    #[error("{purpose}: access to {len} bytes at offset {offset:#x} of a buffer of {size}")]
    OutOfBounds {
        /// What the buffer is for.
        purpose: &'static str,
        /// Offset.
        offset: u64,
        /// Bytes.
        len: u64,
        /// Bytes of the buffer.
        size: u64,
    },

    /// An atomic access to an address that is not a multiple of its size.
    #[error("{purpose}: atomic access of {align} bytes at offset {offset:#x}")]
    Misaligned {
        /// What the buffer is for.
        purpose: &'static str,
        /// Offset.
        offset: u64,
        /// Bytes of the access.
        align: u64,
    },

    /// The context save area cannot be laid out.
    #[error(transparent)]
    ContextSave(#[from] ContextSaveError),

    /// Scratch cannot be laid out.
    #[error(transparent)]
    Scratch(#[from] ScratchError),

    /// The ring cannot be used.
    #[error(transparent)]
    Ring(#[from] aql::RingError),
}

/// `Result` with [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Rule and advice for what no table has.
const UNKNOWN: &str = "no rule is known here that ends so";
const DMESG: &str = "look at dmesg | grep -iE 'kfd|amdgpu'";
const DAMAGED: &str = "the kernel's topology is damaged or of an unknown form: please report it with the file";

impl Error {
    /// The raw error number, when a system call failed.
    pub fn errno(&self) -> Option<Errno> {
        match self {
            Error::NoKfd { .. } => Some(Errno::ENOENT),
            Error::NoUsableGpu => Some(Errno::ENOMEM),
            Error::NoLargeBar { .. } => Some(Errno::EINVAL),
            Error::Permission { errno, .. }
            | Error::Open { errno, .. }
            | Error::Ioctl { errno, .. }
            | Error::Mmap { errno, .. } => Some(*errno),
            Error::CreateQueue(error) => Some(error.errno),
            Error::Topology(error) => error.errno(),
            _ => None,
        }
    }

    /// The rule that was broken and the value that broke it, one line or a table.
    pub fn rule(&self) -> Option<String> {
        Some(match self {
            Error::NoKfd { absence } => absence.rule(),
            Error::Permission { permissions, .. } => open::permission_rule(permissions.as_deref()?),
            Error::NoUsableGpu => {
                "open returns ENOMEM when no GPU could be set up for compute; memory is not short".into()
            }
            Error::Open { path, errno } => open::open_rule(path, *errno).unwrap_or(UNKNOWN).into(),
            Error::Version { .. } => "major version must be 1".into(),
            Error::PageSize { .. } => "buffers are laid out in pages of 4096 bytes on both sides".into(),
            Error::Property { rule, .. } | Error::Size { rule, .. } => (*rule).into(),
            Error::Unsupported { reason, .. } => (*reason).into(),
            Error::NoApertures { known, .. } if known.is_empty() => {
                "it has them for every GPU that this process may use, and that is none".into()
            }
            Error::NoApertures { known, .. } => {
                format!("it has them for every GPU that this process may use, and these are gpu_ids {known:?}")
            }
            Error::Ioctl { name, errno, request } => match rules::find(name, *errno) {
                Some(rule) => rule.rule.into(),
                None => format!("{UNKNOWN} (request {request:#x})"),
            },
            Error::CreateQueue(error) => error.table().unwrap_or_else(|| UNKNOWN.into()),
            Error::NoCounterFrequency { .. } => "the driver knows the GPU's reference clock from its BIOS".into(),
            Error::NoLargeBar { vram, .. } => match vram {
                Some(vram) => format!(
                    "VRAM|PUBLIC needs a BAR over all of the device memory ({vram} bytes); heap_type 2 says it is smaller"
                ),
                None => "VRAM|PUBLIC needs a BAR over all of the device memory".into(),
            },
            Error::NotMapped { .. } => "n_success must equal n_devices on success".into(),
            Error::Mmap { errno, .. } => open::mmap_rule(*errno).unwrap_or(UNKNOWN).into(),
            Error::OutsideGpuVm { .. } => "a buffer has the same address on host and GPU".into(),
            Error::NotHostVisible { .. } => "device memory without PUBLIC has no host mapping".into(),
            Error::Misaligned { .. } => "the offset of an atomic access is a multiple of its size".into(),
            Error::Topology(_)
            | Error::OutOfBounds { .. }
            | Error::ContextSave(_)
            | Error::Scratch(_)
            | Error::Ring(_) => return None,
        })
    }

    /// What to do about it.
    pub fn advice(&self) -> Option<String> {
        Some(match self {
            Error::NoKfd { absence } => absence.advice(),
            Error::Permission { path, errno, permissions } => {
                open::permission_advice(path, *errno, permissions.as_deref())
            }
            Error::NoUsableGpu => {
                "dmesg | grep -iE 'kfd|amdgpu' names the GPU and the reason: too old, no PCIe atomics, \
                                   firmware"
                    .into()
            }
            Error::Open { path, errno } => open::open_advice(path, *errno).unwrap_or(DMESG).into(),
            Error::Version { .. } => "this program is too old for the kernel".into(),
            Error::PageSize { .. } => "use a kernel with 4 KiB pages".into(),
            Error::Property { .. } | Error::Topology(TopologyError::Malformed { .. }) => DAMAGED.into(),
            Error::Topology(error) => error.advice()?,
            Error::Unsupported { .. } => "use another GPU, or an emulated one".into(),
            Error::NoApertures { .. } => "the device cgroup of a container hides a GPU whose render node it does not \
                                          allow: pass --device /dev/dri/renderD<minor>"
                .into(),
            Error::Ioctl { name, errno, .. } => match rules::find(name, *errno) {
                Some(rule) => rule.advice.into(),
                None => format!("{DMESG}; `kfdrun explain {name}` lists what the kernel checks"),
            },
            Error::CreateQueue(error) => error.advice().unwrap_or(DMESG).into(),
            Error::NoCounterFrequency { .. } => "measure it against the host's clock (GET_CLOCK_COUNTERS)".into(),
            Error::NoLargeBar { .. } => {
                "use system memory instead, or enable Resizable BAR in the firmware setup".into()
            }
            Error::Mmap { errno, .. } => open::mmap_advice(*errno).unwrap_or(DMESG).into(),
            Error::OutsideGpuVm { .. } => "the address space is nearly used up or unusually laid out".into(),
            Error::NotHostVisible { .. } => "allocate it host-visible, or copy through a buffer that is".into(),
            Error::Scratch(error) => error.advice().into(),
            Error::NotMapped { .. } => DMESG.into(),
            Error::ContextSave(_) => DAMAGED.into(),
            Error::Ring(aql::RingError::Full(_)) => {
                "the packet processor takes no packets: look at the doorbell, the oldest packet and what it waits for"
                    .into()
            }
            Error::Size { .. } | Error::OutOfBounds { .. } | Error::Misaligned { .. } | Error::Ring(_) => {
                rules::DEFECT.into()
            }
        })
    }

    /// What failed, the rule and the advice, a line each or more.
    pub fn report(&self) -> String {
        let mut text = self.to_string();
        for (label, part) in [("rule", self.rule()), ("do", self.advice())] {
            if let Some(part) = part {
                // A table starts on a line of its own.
                let separator = if part.contains('\n') { '\n' } else { ' ' };
                text += &format!("\n  {label}:{separator}{part}");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests;

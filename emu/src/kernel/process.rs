//! What the kernel keeps for one process: a record for each GPU, buffers, queues and events.
//!
//! The process object is made by the first open of `/dev/kfd` and shared by all later ones; closing a file changes
//! nothing of it.

use super::backing::{NodeMemory, Pages};
use super::debug::{Acknowledge, Debug};
use super::device::{DRM_FIRST_OFFSET, Device};
use super::doorbell::Doorbells;
use super::event::Events;
use super::file::File;
use super::memory::{Bo, Handle, Mapping};
use super::queue::Queue;
use super::svm;
use crate::cp;
use crate::memory::AddressSpace;
use kfd::Errno;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The process object.
pub struct Process {
    /// Its id: ioctls of any other process on its files are EBADF.
    pub pid: u32,
    /// Events.
    pub events: Arc<Events>,
    /// What RUNTIME_ENABLE waits for when a debugger is there.
    pub acknowledge: Acknowledge,
    /// Wakes its packet processors.
    pub bell: Arc<cp::Bell>,
    /// Memory behind `/dev/kfd`: doorbells, the kernel's event page, MMIO pages.
    pub memory: Arc<NodeMemory>,
    inner: Mutex<Inner>,
}

/// What the process mutex protects.
pub struct Inner {
    /// One record a GPU, in device order.
    pub devices: Vec<DeviceData>,
    /// Queues by id.
    pub queues: BTreeMap<u32, Queue>,
    /// Retry faults.
    pub xnack: bool,
    /// RUNTIME_ENABLE was called.
    pub runtime: Option<Runtime>,
    /// The same for packet processors.
    pub runtime_enabled: Arc<AtomicBool>,
    /// Debugging.
    pub debug: Debug,
    /// Shared virtual memory ranges.
    pub svm: svm::Ranges,
}

/// What RUNTIME_ENABLE was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runtime {
    /// Address of `r_debug`.
    pub r_debug: u64,
    /// The trap handler saves the trap temporaries.
    pub ttmp_setup: bool,
}

/// A GPU in this process.
pub struct DeviceData {
    /// The GPU.
    pub device: Arc<Device>,
    /// ACQUIRE_VM was called.
    pub vm: Option<Vm>,
    /// Memory of its buffers, as one file with the render node's mmap offsets. Processes have files of their own, so that a
    /// forked child does not take what is its parent's.
    pub memory: Arc<NodeMemory>,
    /// Buffers it owns, by the low half of their handles.
    pub bos: BTreeMap<u32, Bo>,
    /// The process' doorbells on it, once needed.
    pub doorbells: Option<Doorbells>,
    /// The page of HDP flush registers, once needed.
    pub mmio: Option<Arc<Pages>>,
    /// SET_SCRATCH_BACKING_VA.
    pub scratch_backing: u64,
    /// SET_TRAP_HANDLER: TBA and TMA.
    pub trap_handler: (u64, u64),
    /// A fault stopped the queues of the process on this GPU.
    pub evicted: Arc<AtomicBool>,
    /// Queues of the process on this GPU were lost in a reset.
    pub reset: Arc<AtomicBool>,
}

/// A virtual memory space on a GPU.
pub struct Vm {
    /// The render node's open file it came from.
    pub file: Arc<File>,
    /// Page tables.
    pub space: Arc<AddressSpace>,
    /// Mappings by start address.
    pub mappings: BTreeMap<u64, Mapping>,
}

impl Process {
    /// A process without queues, buffers or events.
    pub fn new(pid: u32, devices: &[Arc<Device>]) -> std::io::Result<Process> {
        let xnack = devices.is_empty();
        let devices = devices
            .iter()
            .map(|device| {
                Ok(DeviceData {
                    device: device.clone(),
                    vm: None,
                    memory: Arc::new(NodeMemory::new(c"kfdrun-gpu-memory", DRM_FIRST_OFFSET)?),
                    bos: BTreeMap::new(),
                    doorbells: None,
                    mmio: None,
                    scratch_backing: 0,
                    trap_handler: (0, 0),
                    evicted: Arc::default(),
                    reset: Arc::default(),
                })
            })
            .collect::<std::io::Result<_>>()?;
        Ok(Process {
            pid,
            events: Arc::default(),
            acknowledge: Acknowledge::default(),
            bell: Arc::default(),
            memory: Arc::new(NodeMemory::new(c"kfdrun-kfd-memory", 0)?),
            inner: Mutex::new(Inner {
                devices,
                queues: BTreeMap::new(),
                // Nothing speaks against retry faults without a GPU; the GPUs here have them off when the machine starts.
                xnack,
                runtime: None,
                runtime_enabled: Arc::default(),
                debug: Debug::default(),
                svm: svm::Ranges::default(),
            }),
        })
    }

    /// Takes the process mutex.
    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The end of the process: stops its queues.
    pub fn stop(&self) {
        let queues = std::mem::take(&mut self.lock().queues);
        for queue in queues.values() {
            queue.processor.request_stop();
        }
        // Dropping them waits for their threads.
        drop(queues);
    }
}

impl Inner {
    /// `kfd_process_device_data_by_id`: the record of a GPU id, EINVAL for an unknown one.
    pub fn device(&mut self, gpu_id: u32) -> Result<&mut DeviceData, Errno> {
        self.devices.iter_mut().find(|data| data.device.gpu_id == gpu_id).ok_or(Errno::EINVAL)
    }

    /// Position of the record of a GPU id.
    pub fn index(&self, gpu_id: u32) -> Result<usize, Errno> {
        let known = |data: &DeviceData| data.device.gpu_id == gpu_id && !data.device.removed.load(Ordering::Acquire);
        self.devices.iter().position(known).ok_or(Errno::EINVAL)
    }

    /// The buffer with this handle.
    pub fn bo(&self, handle: Handle) -> Option<&Bo> {
        self.devices.get(self.index(handle.gpu_id()).ok()?)?.bos.get(&handle.id())
    }
}

impl DeviceData {
    /// Whether a fault stopped this GPU for the process.
    pub fn is_evicted(&self) -> bool {
        self.evicted.load(Ordering::Acquire)
    }
}

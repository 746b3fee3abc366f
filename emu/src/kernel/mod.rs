//! The kernel's side of the interface: AMDKFD's rules, check by check in its order, with its error numbers.
//!
//! Written from the interface header and the behaviour of Linux 6.12; each file states the rules of one concept.
//! Nothing here is shared with the runtime above the boundary but the layout of structures, so that a wrong formula on
//! one side shows against the other.

pub mod aperture;
pub mod backing;
pub mod call;
pub mod criu;
pub mod cwsr;
pub mod debug;
pub mod device;
pub mod doorbell;
pub mod drm;
pub mod event;
pub mod file;
pub mod memory;
pub mod misc;
pub mod mmap;
pub mod process;
pub mod queue;
pub mod rule;
pub mod svm;
pub mod topology;
pub mod user;
pub mod version;

use crate::cu::fidelity::Met;
use crate::cu::level::HostLevel;
use crate::inject::{Faults, Injection};
use crate::machine::Machine;
use backing::{Account, Charge};
use device::Device;
use kfd::Errno;
use process::Process;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use trace::{Event, Tracer};

pub use version::Rules;

/// How the machine is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Host threads that stand for the compute units of a GPU; 0: one a processor.
    pub workers: usize,
    /// Vector instructions of the host that may be used.
    pub level: HostLevel,
    /// Run waves one at a time in an order given by this seed.
    pub seed: Option<u64>,
    /// Tell of what clients do that works and should not be done.
    pub lint: bool,
    /// Packet processors look at the worst moment that the rules allow, in an order given by this seed.
    pub adversary: Option<u64>,
    /// Faults to inject.
    pub inject: Vec<Injection>,
    /// Where to count operations that are not exact; None: nowhere, which costs nothing.
    pub met: Option<Arc<Met>>,
    /// Kernel version whose rules apply.
    pub rules: Rules,
    /// The kernel is built with HSA_AMD_SVM, which SVM and SET_XNACK_MODE need. Debian's are not.
    pub svm: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            workers: 0,
            level: HostLevel::detect(),
            seed: None,
            lint: false,
            adversary: None,
            inject: Vec::new(),
            met: None,
            rules: Rules::default(),
            svm: true,
        }
    }
}

/// The kernel of an emulated machine.
pub struct Kernel {
    /// How it is run.
    pub options: Options,
    /// Where events go.
    pub tracer: Tracer,
    /// Faults to inject.
    pub faults: Faults,
    /// GPUs.
    pub devices: Vec<Arc<Device>>,
    /// sysfs.
    pub topology: topology::Topology,
    /// Access to the caller's memory.
    pub user: user::UserMemory,
    /// Open files.
    pub files: file::Table,
    /// VRAM of every device that is kept for page tables.
    pub page_table_reserve: u64,
    /// Memory of the host that buffers take.
    pub system: Arc<SystemMemory>,
    smi: Mutex<Vec<misc::SmiClient>>,
    processes: Mutex<HashMap<u32, Arc<Process>>>,
}

impl Kernel {
    /// The kernel of a machine.
    ///
    /// # Errors
    /// The host has no anonymous files (`memfd_create`) left to give.
    pub fn new(machine: &Machine, options: Options, tracer: Tracer) -> std::io::Result<Kernel> {
        let devices = Device::all(machine, &options);
        Ok(Kernel {
            topology: topology::Topology::new(&devices, options.rules),
            faults: Faults::new(&options.inject),
            page_table_reserve: device::page_table_reserve(&devices),
            user: user::UserMemory::new()?,
            files: file::Table::default(),
            system: Arc::default(),
            smi: Mutex::default(),
            processes: Mutex::default(),
            options,
            tracer,
            devices,
        })
    }

    /// Writes a line into the trace.
    pub fn note(&self, text: impl FnOnce() -> String) {
        self.tracer.emit(|| Event::Note { text: text() });
    }

    fn smi_clients(&self) -> MutexGuard<'_, Vec<misc::SmiClient>> {
        self.smi.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The process object of the caller, made when it has none.
    pub fn process(&self) -> Result<Arc<Process>, Errno> {
        let pid = std::process::id();
        let mut processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(process) = processes.get(&pid) {
            return Ok(process.clone());
        }
        let process = Arc::new(Process::new(pid, &self.devices).map_err(|_| Errno::ENOMEM)?);
        processes.insert(pid, process.clone());
        Ok(process)
    }

    /// Whether a process has opened the KFD. A forked child knows of those before it, and they not of the child.
    pub fn knows(&self, pid: u32) -> bool {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&pid)
    }

    /// The process object of the caller, if it has one.
    pub fn existing_process(&self) -> Option<Arc<Process>> {
        let processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        processes.get(&std::process::id()).cloned()
    }

    /// The end: all queues stop.
    pub fn stop(&self) {
        let processes = std::mem::take(&mut *self.processes.lock().unwrap_or_else(PoisonError::into_inner));
        for (pid, process) in processes {
            if pid == std::process::id() {
                process.stop();
            } else {
                // What a forked child inherited: the threads of its queues are not in this process, and waiting for
                // them would never end.
                std::mem::forget(process);
            }
        }
    }
}

/// Memory that buffers of all GPUs share.
#[derive(Default)]
pub struct SystemMemory(Mutex<SystemUsage>);

#[derive(Default)]
struct SystemUsage {
    /// All of it.
    used: u64,
    /// What of it the driver owns.
    gtt: u64,
}

impl SystemMemory {
    fn usage(&self) -> MutexGuard<'_, SystemUsage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes bytes, of the driver's part too with `gtt`.
    pub fn charge(self: &Arc<SystemMemory>, bytes: u64, gtt: bool) -> Result<Charge, Errno> {
        let mut usage = self.usage();
        let used = usage.used.checked_add(bytes).filter(|used| *used <= device::SYSTEM_MEMORY_LIMIT);
        let driver = usage.gtt.checked_add(if gtt { bytes } else { 0 });
        let driver = driver.filter(|driver| !gtt || *driver <= device::GTT_MEMORY_LIMIT);
        let (Some(used), Some(driver)) = (used, driver) else { return Err(Errno::ENOMEM) };
        (usage.used, usage.gtt) = (used, driver);
        drop(usage);
        Ok(Charge { account: Arc::new(SystemAccount { memory: self.clone(), gtt }), bytes })
    }
}

struct SystemAccount {
    memory: Arc<SystemMemory>,
    gtt: bool,
}

impl Account for SystemAccount {
    fn discharge(&self, bytes: u64) {
        let mut usage = self.memory.usage();
        usage.used = usage.used.saturating_sub(bytes);
        if self.gtt {
            usage.gtt = usage.gtt.saturating_sub(bytes);
        }
    }
}

//! The kernel's side of the interface: AMDKFD's rules, check by check in its order, with its error numbers.
//!
//! Written from the interface header and the behaviour of Linux 6.12; each file states the rules of one concept.
//! Nothing here is shared with the runtime above the boundary but the layout of structures, so that a wrong formula on
//! one side shows against the other.

pub mod aperture;
pub mod backing;
pub mod call;
pub mod cwsr;
pub mod device;
pub mod doorbell;
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

use crate::cu::level::HostLevel;
use crate::inject::{Faults, Injection};
use crate::machine::Machine;
use device::Device;
use kfd::Errno;
use memory::Kind;
use process::Process;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use trace::{Event, Tracer};

/// Whose checks CREATE_QUEUE does on a queue's buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rules {
    /// Linux 6.1 to 6.11: next to none.
    Linux6_1,
    /// The first 6.12: sizes of end-of-pipe buffer and save area must be equal to the device's.
    Linux6_12Early,
    /// 6.12 with its stable updates, and later: those sizes may be greater.
    #[default]
    Linux6_12,
}

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
    /// Kernel version whose queue checks apply.
    pub rules: Rules,
    /// Minor version that GET_VERSION tells.
    pub interface_minor: u32,
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
            rules: Rules::default(),
            interface_minor: kfd::uapi::MINOR_VERSION,
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
    system_used: Mutex<u64>,
    smi: Mutex<Vec<misc::SmiClient>>,
    processes: Mutex<HashMap<u32, Arc<Process>>>,
}

impl Kernel {
    /// The kernel of a machine.
    ///
    /// # Errors
    /// The host has no anonymous files (`memfd_create`) left to give.
    pub fn new(machine: &Machine, options: Options, tracer: Tracer) -> std::io::Result<Kernel> {
        let devices = Device::all(machine, &options)?;
        Ok(Kernel {
            topology: topology::Topology::new(&devices),
            faults: Faults::new(&options.inject),
            page_table_reserve: device::page_table_reserve(&devices),
            user: user::UserMemory::new()?,
            files: file::Table::default(),
            system_used: Mutex::new(0),
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

    /// Takes memory for a buffer. ENOMEM when there is not enough.
    pub fn charge(&self, device: &Device, kind: Kind, bytes: u64) -> Result<(), Errno> {
        match kind {
            Kind::Vram => device.charge_vram(bytes, self.page_table_reserve),
            Kind::Gtt | Kind::Userptr => {
                let mut used = self.system_used.lock().unwrap_or_else(PoisonError::into_inner);
                match used.checked_add(bytes) {
                    Some(total) if total <= device::SYSTEM_MEMORY_LIMIT => {
                        *used = total;
                        Ok(())
                    }
                    _ => Err(Errno::ENOMEM),
                }
            }
            Kind::Doorbell | Kind::MmioRemap | Kind::Imported => Ok(()),
        }
    }

    /// Gives it back.
    pub fn discharge(&self, device: &Device, kind: Kind, bytes: u64) {
        match kind {
            Kind::Vram => device.discharge_vram(bytes),
            Kind::Gtt | Kind::Userptr => {
                let mut used = self.system_used.lock().unwrap_or_else(PoisonError::into_inner);
                *used = used.saturating_sub(bytes);
            }
            Kind::Doorbell | Kind::MmioRemap | Kind::Imported => {}
        }
    }
}

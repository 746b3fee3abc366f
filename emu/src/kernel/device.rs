//! A GPU of the machine, as the kernel holds it for all processes.

use super::backing::{Account, Charge};
use super::{Options, cwsr};
use crate::cp::runlist::Runlist;
use crate::cu::engine::Engine;
use crate::machine::{GpuProfile, Machine, cpu};
use kfd::Errno;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Mutex, PoisonError};

/// Number of the first render node.
pub const FIRST_RENDER_MINOR: u32 = 128;

/// `max_num_of_queues_per_device`.
pub const MAX_QUEUES: u32 = 4096;

/// One GPU.
pub struct Device {
    /// Position among the GPUs.
    pub index: usize,
    /// gpu_id: 16 bits, not 0.
    pub gpu_id: u32,
    /// N of `/dev/dri/renderDN`.
    pub render_minor: u32,
    /// bus << 8 | devfn.
    pub location_id: u32,
    /// `unique_id`.
    pub unique_id: u64,
    /// Model.
    pub profile: GpuProfile,
    /// Context save sizes.
    pub cwsr: cwsr::Sizes,
    /// Compute units.
    pub engine: Engine,
    /// Slots for queues.
    pub runlist: Arc<Runlist>,
    /// The device is gone: the kernel does not know its id any more.
    pub removed: AtomicBool,
    /// Times it was reset.
    pub resets: AtomicU32,
    usage: Mutex<Usage>,
}

/// What is taken of a device.
#[derive(Default)]
struct Usage {
    vram: u64,
    /// The same with each buffer in whole units of AVAILABLE_MEMORY.
    vram_in_units: u64,
    queues: u32,
}

/// The first mmap offset of a render node: DRM keeps the lower 4 GiB free.
pub const DRM_FIRST_OFFSET: u64 = 1 << 32;

/// Free VRAM is reported in units of 2 MiB.
const AVAILABLE_UNIT: u64 = 2 << 20;

impl Device {
    /// The GPUs of a machine, with identities of their own.
    pub fn all(machine: &Machine, options: &Options) -> Vec<Arc<Device>> {
        let mut devices: Vec<Arc<Device>> = Vec::with_capacity(machine.gpus.len());
        for (index, profile) in machine.gpus.iter().enumerate() {
            let mut gpu_id = u32::from(profile.gpu_id);
            while gpu_id == 0 || devices.iter().any(|other| other.gpu_id == gpu_id) {
                gpu_id = (gpu_id + 1) & 0xffff;
            }
            devices.push(Arc::new(Device {
                index,
                gpu_id,
                render_minor: FIRST_RENDER_MINOR + index as u32,
                location_id: (3 + index as u32) << 8,
                unique_id: profile.unique_id.wrapping_add(index as u64),
                cwsr: cwsr::sizes(profile),
                engine: match options.seed {
                    Some(seed) => Engine::deterministic(profile.target, options.level, seed),
                    None => Engine::new(profile.target, options.workers, options.level),
                }
                .counting(options.met.clone()),
                runlist: Arc::new(Runlist::new(profile.cp_queues)),
                removed: AtomicBool::new(false),
                resets: AtomicU32::new(0),
                profile: profile.clone(),
                usage: Mutex::default(),
            }));
        }
        devices
    }

    /// major * 10000 + minor * 100 + stepping.
    pub fn version(&self) -> u32 {
        self.profile.gfx_target_version
    }

    /// GFX11 and later are scheduled by MES, earlier ones by HWS.
    pub fn has_mes(&self) -> bool {
        self.version() >= 110_000
    }

    fn usage(&self) -> std::sync::MutexGuard<'_, Usage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes VRAM, ENOMEM when less is left than `bytes` and the reserve for page tables.
    pub fn charge_vram(&self, bytes: u64, reserve: u64) -> Result<(), Errno> {
        let mut usage = self.usage();
        let limit = self.profile.vram_bytes.saturating_sub(reserve);
        match usage.vram.checked_add(bytes) {
            Some(total) if total <= limit => {
                usage.vram = total;
                usage.vram_in_units = usage.vram_in_units.saturating_add(bytes.next_multiple_of(AVAILABLE_UNIT));
                Ok(())
            }
            _ => Err(Errno::ENOMEM),
        }
    }

    /// Takes VRAM that is given back with what is returned.
    pub fn take_vram(self: &Arc<Device>, bytes: u64, reserve: u64) -> Result<Charge, Errno> {
        self.charge_vram(bytes, reserve)?;
        Ok(Charge { account: self.clone(), bytes })
    }

    /// Gives VRAM back.
    pub fn discharge_vram(&self, bytes: u64) {
        let mut usage = self.usage();
        usage.vram = usage.vram.saturating_sub(bytes);
        usage.vram_in_units = usage.vram_in_units.saturating_sub(bytes.next_multiple_of(AVAILABLE_UNIT));
    }

    /// AVAILABLE_MEMORY: each buffer counts in whole units.
    pub fn available_vram(&self, reserve: u64) -> u64 {
        let left = self.profile.vram_bytes.saturating_sub(self.usage().vram_in_units).saturating_sub(reserve);
        left / AVAILABLE_UNIT * AVAILABLE_UNIT
    }

    /// Queues of all processes.
    pub fn queues(&self) -> u32 {
        self.usage().queues
    }

    /// Counts a queue; EPERM when the device has as many as it takes.
    pub fn add_queue(&self) -> Result<(), Errno> {
        let mut usage = self.usage();
        if usage.queues >= MAX_QUEUES {
            return Err(Errno::EPERM);
        }
        usage.queues += 1;
        Ok(())
    }

    /// Uncounts a queue.
    pub fn remove_queue(&self) {
        let mut usage = self.usage();
        usage.queues = usage.queues.saturating_sub(1);
    }
}

impl Account for Device {
    fn discharge(&self, bytes: u64) {
        self.discharge_vram(bytes);
    }
}

/// System memory that buffers may take: all but 1/64 and 1.5 GiB.
pub const SYSTEM_MEMORY_LIMIT: u64 = cpu::MEMORY_BYTES - cpu::MEMORY_BYTES / 64 - (3 << 29);

/// System memory that driver-owned buffers (GTT) may take: half, TTM's limit.
pub const GTT_MEMORY_LIMIT: u64 = cpu::MEMORY_BYTES / 2;

/// VRAM kept for page tables: 1/16384 of what all of them could map, 8 MiB at least.
pub fn page_table_reserve(devices: &[Arc<Device>]) -> u64 {
    let total = devices.iter().fold(cpu::MEMORY_BYTES, |sum, device| sum.saturating_add(device.profile.vram_bytes));
    (total / 16384).max(8 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::Target;

    fn all(targets: &[Target]) -> Vec<Arc<Device>> {
        Device::all(&Machine::with(targets), &Options::default())
    }

    #[test]
    fn equal_models_differ_in_identity() {
        let devices = all(&[Target::Gfx1100, Target::Gfx1100, Target::Gfx90a]);
        let ids: Vec<u32> = devices.iter().map(|device| device.gpu_id).collect();
        assert_eq!(ids, [56387, 56388, 46371]);
        let minors: Vec<u32> = devices.iter().map(|device| device.render_minor).collect();
        assert_eq!(minors, [128, 129, 130]);
    }

    #[test]
    fn vram_runs_out() {
        let devices = all(&[Target::Gfx1100]);
        let (gpu, reserve) = (&devices[0], page_table_reserve(&devices));
        assert_eq!(reserve, 8 << 20);
        assert_eq!(gpu.available_vram(reserve) % (2 << 20), 0);
        let all = gpu.profile.vram_bytes - reserve;
        gpu.charge_vram(all - 4096, reserve).unwrap();
        assert_eq!(gpu.charge_vram(8192, reserve), Err(Errno::ENOMEM));
        assert_eq!(gpu.charge_vram(u64::MAX, reserve), Err(Errno::ENOMEM));
        assert_eq!(gpu.available_vram(reserve), 0);
        gpu.discharge_vram(all - 4096);
        gpu.charge_vram(all, reserve).unwrap();
        gpu.discharge_vram(all);
        // A page of each of two buffers takes 2 MiB of what AVAILABLE_MEMORY tells.
        let before = gpu.available_vram(reserve);
        gpu.charge_vram(4096, reserve).unwrap();
        gpu.charge_vram(4096, reserve).unwrap();
        assert_eq!(before - gpu.available_vram(reserve), 4 << 20);
    }

    #[test]
    fn queues_run_out() {
        let devices = all(&[Target::Gfx90a]);
        for _ in 0..MAX_QUEUES {
            devices[0].add_queue().unwrap();
        }
        assert_eq!(devices[0].add_queue(), Err(Errno::EPERM));
        devices[0].remove_queue();
        devices[0].add_queue().unwrap();
    }
}

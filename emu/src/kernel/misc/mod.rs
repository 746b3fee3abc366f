//! Requests about the process and a device as a whole.

pub mod dmabuf;
mod smi;

pub use smi::{SmiClient, smi_events};

use super::aperture;
use super::call::Call;
use super::file::File;
use super::process::Vm;
use crate::machine;
use kfd::Errno;
use kfd::uapi::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// GET_VERSION.
pub fn version(call: &Call<'_>, args: &mut GetVersionArgs) -> Result<(), Errno> {
    *args = GetVersionArgs { major_version: MAJOR_VERSION, minor_version: call.kernel.options.interface_minor };
    Ok(())
}

/// ACQUIRE_VM.
///
/// | rule | errno |
/// |---|---|
/// | the descriptor is open | EINVAL |
/// | the GPU exists | EINVAL |
/// | the GPU was acquired with this same file | done |
/// | the GPU was not acquired with another | EBUSY |
/// | the descriptor is a render node's | EINVAL |
/// | its VM is not a compute VM yet | EINVAL |
pub fn acquire_vm(call: &Call<'_>, args: &mut AcquireVmArgs) -> Result<(), Errno> {
    let fd = i32::try_from(args.drm_fd).map_err(|_| Errno::EINVAL)?;
    let file = call.kernel.files.get(fd);
    let open = file.is_some() || is_open(fd);
    if !open {
        return Err(Errno::EINVAL);
    }
    let mut inner = call.process.lock();
    let data = inner.device(args.gpu_id)?;
    if let Some(vm) = &data.vm {
        return match file {
            Some(file) if Arc::ptr_eq(&vm.file, &file) => Ok(()),
            _ => Err(Errno::EBUSY),
        };
    }
    let file = file.ok_or(Errno::EINVAL)?;
    let File::Render { compute, .. } = &*file else { return Err(Errno::EINVAL) };
    if compute.swap(true, Ordering::AcqRel) {
        return Err(Errno::EINVAL);
    }
    data.vm = Some(Vm { file, space: Arc::default(), mappings: BTreeMap::new() });
    Ok(())
}

fn is_open(fd: i32) -> bool {
    // SAFETY: F_GETFD takes any number and changes nothing.
    unsafe { libc::fcntl(fd, libc::F_GETFD) >= 0 }
}

/// GET_PROCESS_APERTURES: seven GPUs at most.
pub fn apertures(call: &Call<'_>, args: &mut GetProcessAperturesArgs) -> Result<(), Errno> {
    let inner = call.process.lock();
    args.num_of_nodes = 0;
    for (record, data) in args.process_apertures.iter_mut().zip(&inner.devices) {
        *record = aperture::record(data.device.gpu_id);
        args.num_of_nodes += 1;
    }
    Ok(())
}

/// GET_PROCESS_APERTURES_NEW. `num_of_nodes` 0 asks for the count; more than the machine's nodes, the CPU's counted,
/// is EINVAL.
pub fn apertures_new(call: &Call<'_>, args: &mut GetProcessAperturesNewArgs) -> Result<(), Errno> {
    let inner = call.process.lock();
    let count = inner.devices.len() as u32;
    if args.num_of_nodes == 0 {
        args.num_of_nodes = count;
        return Ok(());
    }
    if args.num_of_nodes > count + 1 {
        return Err(Errno::EINVAL);
    }
    let wanted = args.num_of_nodes.min(count);
    let records: Vec<u8> = inner.devices[..wanted as usize]
        .iter()
        .flat_map(|data| aperture::record(data.device.gpu_id).as_bytes().to_vec())
        .collect();
    args.num_of_nodes = wanted;
    call.kernel.user.write(args.kfd_process_device_apertures_ptr, &records)
}

/// SET_MEMORY_POLICY, without effect on GFX9 and later.
pub fn memory_policy(call: &Call<'_>, args: &mut SetMemoryPolicyArgs) -> Result<(), Errno> {
    for policy in [args.default_policy, args.alternate_policy] {
        if policy != CACHE_POLICY_COHERENT && policy != CACHE_POLICY_NONCOHERENT {
            return Err(Errno::EINVAL);
        }
    }
    call.process.lock().device(args.gpu_id)?.bound().map(|_| ())
}

/// GET_CLOCK_COUNTERS, which never fails: the GPU's counter is 0 for an unknown GPU.
pub fn clock_counters(call: &Call<'_>, args: &mut GetClockCountersArgs) -> Result<(), Errno> {
    let known = call.process.lock().index(args.gpu_id).is_ok();
    args.gpu_clock_counter = if known { machine::gpu_clock() } else { 0 };
    args.cpu_clock_counter = machine::nanoseconds(libc::CLOCK_MONOTONIC_RAW);
    args.system_clock_counter = machine::nanoseconds(libc::CLOCK_BOOTTIME);
    args.system_clock_freq = 1_000_000_000;
    Ok(())
}

/// DBG_REGISTER, DBG_UNREGISTER, DBG_ADDRESS_WATCH, DBG_WAVE_CONTROL, gone since interface 1.13.
pub fn old_debugger(_: &Call<'_>, _: &mut [u8]) -> Result<(), Errno> {
    Err(Errno::EPERM)
}

/// SET_SCRATCH_BACKING_VA: only kept; AQL queues carry their scratch themselves.
pub fn scratch_backing(call: &Call<'_>, args: &mut SetScratchBackingVaArgs) -> Result<(), Errno> {
    call.process.lock().acquired(args.gpu_id)?.scratch_backing = args.va_addr;
    Ok(())
}

/// SET_TRAP_HANDLER: only kept; addresses are not looked at.
pub fn trap_handler(call: &Call<'_>, args: &mut SetTrapHandlerArgs) -> Result<(), Errno> {
    let mut inner = call.process.lock();
    let data = inner.device(args.gpu_id)?;
    data.bound()?;
    data.trap_handler = (args.tba_addr, args.tma_addr);
    Ok(())
}

/// Entries of the tile mode tables, all 0 since GFX9.
const TILE_MODES: u32 = 32;
const MACRO_TILE_MODES: u32 = 16;

/// GET_TILE_CONFIG. On EFAULT both counts are 0.
pub fn tile_config(call: &Call<'_>, args: &mut GetTileConfigArgs) -> Result<(), Errno> {
    let register = call.process.lock().device(args.gpu_id)?.device.profile.gb_addr_config;
    args.gb_addr_config = register;
    // GB_ADDR_CONFIG: log2 of banks in bits 12 to 14, of ranks in bit 28 and up, of pipes below.
    args.num_banks = 1 << (register >> 12 & 7);
    args.num_ranks = register >> 28 & 1;
    let tables = [
        (args.tile_config_ptr, &mut args.num_tile_configs, TILE_MODES),
        (args.macro_tile_config_ptr, &mut args.num_macro_tile_configs, MACRO_TILE_MODES),
    ];
    let mut failed = false;
    for (address, room, entries) in tables {
        *room = (*room).min(entries);
        let zeros = vec![0; *room as usize * 4];
        failed |= call.kernel.user.write(address, &zeros).is_err();
    }
    if failed {
        (args.num_tile_configs, args.num_macro_tile_configs) = (0, 0);
        return Err(Errno::EFAULT);
    }
    Ok(())
}

/// SET_XNACK_MODE. A negative value asks. Retry faults a process are a matter of GC 9.4.2 and 9.4.3 alone, and only
/// when all GPUs have them.
pub fn xnack(call: &Call<'_>, args: &mut SetXnackModeArgs) -> Result<(), Errno> {
    let mut inner = call.process.lock();
    if args.xnack_enabled < 0 {
        args.xnack_enabled = i32::from(inner.xnack);
        return Ok(());
    }
    if !inner.queues.is_empty() {
        return Err(Errno::EBUSY);
    }
    let enable = args.xnack_enabled != 0;
    if enable == inner.xnack {
        return Ok(());
    }
    let supported = |version: u32| matches!(version, 90010 | 90402 | 90403);
    if enable && !inner.devices.iter().all(|data| supported(data.device.version())) {
        return Err(Errno::EPERM);
    }
    inner.xnack = enable;
    Ok(())
}

/// `KFD_RUNTIME_ENABLE_MODE_ENABLE_MASK`.
const RUNTIME_ENABLE: u32 = 1;

/// RUNTIME_ENABLE: from then on queue exceptions reach the process. `capabilities_mask` is left as it is.
pub fn runtime_enable(call: &Call<'_>, args: &mut RuntimeEnableArgs) -> Result<(), Errno> {
    let mut inner = call.process.lock();
    if args.mode_mask & RUNTIME_ENABLE == 0 {
        inner.runtime = None;
        return Ok(());
    }
    if inner.runtime.is_some() {
        return Err(Errno::EBUSY);
    }
    if !inner.queues.is_empty() {
        return Err(Errno::EEXIST);
    }
    inner.runtime = Some(args.r_debug);
    Ok(())
}

/// DBG_TRAP: there is no debugger side. A process that is not this one cannot be traced; on itself everything but
/// enabling needs to be enabled first, and enabling is refused as by a device that cannot be debugged.
pub fn debug_trap(call: &Call<'_>, args: &mut DbgTrapArgs) -> Result<(), Errno> {
    if args.pid != call.process.pid {
        // SAFETY: signal 0 only asks whether the process exists.
        let exists = i32::try_from(args.pid).is_ok_and(|pid| pid > 0 && unsafe { libc::kill(pid, 0) } == 0);
        return Err(if exists { Errno::EPERM } else { Errno::ESRCH });
    }
    if args.op != DBG_TRAP_ENABLE {
        return Err(Errno::EINVAL);
    }
    call.kernel.note(|| "DBG_TRAP: the emulated machine has no debugger interface".to_string());
    Err(Errno::ENODEV)
}

/// CRIU_OP needs CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN, which the emulated machine grants to nobody.
pub fn criu(_: &Call<'_>, _: &mut CriuArgs) -> Result<(), Errno> {
    Err(Errno::EACCES)
}

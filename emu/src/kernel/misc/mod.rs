//! Requests about the process and a device as a whole.

pub mod dmabuf;
mod smi;

pub use smi::{SmiClient, smi_events};

use super::aperture;
use super::call::Call;
use super::file::{File, is_open};
use super::process::{Runtime, Vm};
use super::rule::{GPU_ACQUIRED, GPU_BOUND, GPU_KNOWN, RuleText, check, rules, texts};
use crate::machine;
use crate::memory::AddressSpace;
use kfd::Errno;
use kfd::uapi::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Capabilities of the caller, as the host says.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// CAP_SYS_ADMIN.
    pub admin: bool,
    /// CAP_CHECKPOINT_RESTORE, or CAP_SYS_ADMIN, which has it too.
    pub checkpoint: bool,
}

impl Access {
    /// Of the calling thread.
    pub fn of_caller() -> Access {
        const SYS_ADMIN: u32 = 21;
        const CHECKPOINT_RESTORE: u32 = 40;
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        let effective = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or_default();
        let has = |capability: u32| effective & 1 << capability != 0;
        Access { admin: has(SYS_ADMIN), checkpoint: has(SYS_ADMIN) || has(CHECKPOINT_RESTORE) }
    }
}

/// GET_VERSION.
pub fn version(call: &Call<'_>, args: &mut GetVersionArgs) -> Result<(), Errno> {
    let minor_version = call.kernel.options.rules.interface_minor();
    *args = GetVersionArgs { major_version: MAJOR_VERSION, minor_version };
    Ok(())
}

/// What ACQUIRE_VM looks at.
pub struct AcquireFacts {
    args: AcquireVmArgs,
    open: bool,
    known_gpu: bool,
    /// Acquired before, with this same file.
    same_file: bool,
    /// Acquired before.
    acquired: bool,
    /// A render node, and whether its VM is a compute VM already.
    render: Option<bool>,
}

rules! {
    /// ACQUIRE_VM.
    ACQUIRE_VM for f: AcquireFacts {
        EINVAL "drm_fd is an open file": f.args.drm_fd => f.open;
        EINVAL "gpu_id is a GPU of the process": f.args.gpu_id => f.known_gpu;
        EBUSY "the GPU was not acquired with another open file": f.args.gpu_id => !f.acquired || f.same_file;
        EINVAL "drm_fd is a render node": f.args.drm_fd => f.same_file || f.render.is_some();
        EINVAL "the file's VM is not a compute VM yet": f.args.drm_fd => f.same_file || f.render == Some(false);
    }

    /// GET_PROCESS_APERTURES_NEW with `num_of_nodes` not 0.
    APERTURES for f: AperturesFacts {
        EINVAL "num_of_nodes is at most the machine's nodes, the CPU's counted": f.wanted => f.wanted <= f.count + 1;
    }

    /// The first debugger interface.
    WITHDRAWN for _f: () {
        EPERM "the kernel has the interface of the old debugger, which is gone": 0 => false;
    }

    /// SET_MEMORY_POLICY.
    MEMORY_POLICY for a: SetMemoryPolicyArgs {
        EINVAL "default_policy is 0 (coherent) or 1": a.default_policy => a.default_policy <= CACHE_POLICY_NONCOHERENT;
        EINVAL "alternate_policy is 0 (coherent) or 1": a.alternate_policy =>
            a.alternate_policy <= CACHE_POLICY_NONCOHERENT;
    }

    /// SET_XNACK_MODE.
    BUILT for built: bool {
        EPERM "the kernel is built with HSA_AMD_SVM": *built => *built;
    }

    /// SET_XNACK_MODE with a value that is not negative, when it would change the mode.
    XNACK for f: XnackFacts {
        EBUSY "the process has no queue": f.queues => f.queues == 0;
        EPERM "all GPUs can retry faults a process (GC 9.4.2, 9.4.3)": f.enable =>
            !f.changes || !f.enable || f.supported;
    }

    /// RUNTIME_ENABLE with mode bit 0.
    RUNTIME for f: RuntimeFacts {
        EBUSY "the runtime is not enabled yet": f.enabled => !f.enabled;
        EEXIST "the process has no queue": f.queues => f.queues == 0;
    }
}

/// What GET_PROCESS_APERTURES_NEW looks at.
pub struct AperturesFacts {
    wanted: u32,
    /// GPUs.
    count: u32,
}

/// What SET_XNACK_MODE looks at.
pub struct XnackFacts {
    queues: usize,
    enable: bool,
    changes: bool,
    supported: bool,
}

/// What RUNTIME_ENABLE looks at.
pub struct RuntimeFacts {
    enabled: bool,
    queues: usize,
}

/// The tables of this module.
pub fn rule_texts() -> Vec<(&'static str, Vec<RuleText>)> {
    let mut all = vec![
        ("ACQUIRE_VM", texts(ACQUIRE_VM)),
        ("GET_PROCESS_APERTURES_NEW", texts(APERTURES)),
        ("DBG_REGISTER, DBG_UNREGISTER, DBG_ADDRESS_WATCH, DBG_WAVE_CONTROL", texts(WITHDRAWN)),
        ("SET_MEMORY_POLICY", [texts(MEMORY_POLICY), texts(GPU_BOUND)].concat()),
        ("SET_SCRATCH_BACKING_VA", texts(GPU_ACQUIRED)),
        ("SET_TRAP_HANDLER", texts(GPU_BOUND)),
        ("GET_TILE_CONFIG", texts(GPU_KNOWN)),
        ("SMI_EVENTS", texts(GPU_KNOWN)),
        ("SET_XNACK_MODE", [texts(BUILT), texts(XNACK)].concat()),
        ("RUNTIME_ENABLE", texts(RUNTIME)),
    ];
    all.extend(dmabuf::rule_texts());
    all
}

/// ACQUIRE_VM. Doing it again with the same file is no error.
pub fn acquire_vm(call: &Call<'_>, args: &mut AcquireVmArgs) -> Result<(), Errno> {
    let fd = args.drm_fd as i32;
    let file = call.kernel.files.get(fd);
    let mut inner = call.process.lock();
    let vm = inner.device(args.gpu_id).ok().and_then(|data| data.vm.as_ref());
    let facts = AcquireFacts {
        args: *args,
        open: file.is_some() || is_open(fd),
        acquired: vm.is_some(),
        same_file: vm.zip(file.as_ref()).is_some_and(|(vm, file)| Arc::ptr_eq(&vm.file, file)),
        known_gpu: inner.index(args.gpu_id).is_ok(),
        render: match file.as_deref() {
            Some(File::Render { compute, .. }) => Some(compute.load(Ordering::Acquire)),
            _ => None,
        },
    };
    check(call.kernel, "ACQUIRE_VM", ACQUIRE_VM, &facts)?;
    let (Some(file), false) = (file, facts.same_file) else { return Ok(()) };
    if let File::Render { compute, .. } = &*file {
        compute.store(true, Ordering::Release);
    }
    let space = Arc::<AddressSpace>::default();
    call.kernel.faults.holes().into_iter().for_each(|va| space.punch(va));
    inner.device(args.gpu_id)?.vm = Some(Vm { file, space, mappings: BTreeMap::new() });
    Ok(())
}

/// GET_PROCESS_APERTURES: seven GPUs at most.
pub fn apertures(call: &Call<'_>, args: &mut GetProcessAperturesArgs) -> Result<(), Errno> {
    let inner = call.process.lock();
    args.num_of_nodes = 0;
    for (record, data) in args.process_apertures.iter_mut().zip(&inner.devices) {
        *record = aperture::record(data.device.gpu_id, call.kernel.options.rules);
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
    check(call.kernel, "GET_PROCESS_APERTURES_NEW", APERTURES, &AperturesFacts { wanted: args.num_of_nodes, count })?;
    let wanted = args.num_of_nodes.min(count);
    let records: Vec<u8> = inner.devices[..wanted as usize]
        .iter()
        .flat_map(|data| aperture::record(data.device.gpu_id, call.kernel.options.rules).as_bytes().to_vec())
        .collect();
    args.num_of_nodes = wanted;
    call.kernel.user.write(args.kfd_process_device_apertures_ptr, &records)
}

/// SET_MEMORY_POLICY, without effect on GFX9 and later.
pub fn memory_policy(call: &Call<'_>, args: &mut SetMemoryPolicyArgs) -> Result<(), Errno> {
    check(call.kernel, "SET_MEMORY_POLICY", MEMORY_POLICY, args)?;
    call.gpu("SET_MEMORY_POLICY", GPU_BOUND, &mut call.process.lock(), args.gpu_id).map(|_| ())
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
pub fn old_debugger(call: &Call<'_>, _: &mut [u8]) -> Result<(), Errno> {
    check(call.kernel, "DBG_REGISTER", WITHDRAWN, &())
}

/// SET_SCRATCH_BACKING_VA: only kept; AQL queues carry their scratch themselves.
pub fn scratch_backing(call: &Call<'_>, args: &mut SetScratchBackingVaArgs) -> Result<(), Errno> {
    let mut inner = call.process.lock();
    call.gpu("SET_SCRATCH_BACKING_VA", GPU_ACQUIRED, &mut inner, args.gpu_id)?.scratch_backing = args.va_addr;
    Ok(())
}

/// SET_TRAP_HANDLER: only kept; addresses are not looked at.
pub fn trap_handler(call: &Call<'_>, args: &mut SetTrapHandlerArgs) -> Result<(), Errno> {
    let mut inner = call.process.lock();
    let data = call.gpu("SET_TRAP_HANDLER", GPU_BOUND, &mut inner, args.gpu_id)?;
    data.trap_handler = (args.tba_addr, args.tma_addr);
    Ok(())
}

/// Entries of the tile mode tables, all 0 since GFX9.
const TILE_MODES: u32 = 32;
const MACRO_TILE_MODES: u32 = 16;

/// GET_TILE_CONFIG. A table that cannot be written is EFAULT with its count 0; the one behind it stays as it is then.
pub fn tile_config(call: &Call<'_>, args: &mut GetTileConfigArgs) -> Result<(), Errno> {
    let mut inner = call.process.lock();
    let register = call.gpu("GET_TILE_CONFIG", GPU_KNOWN, &mut inner, args.gpu_id)?.device.profile.gb_addr_config;
    drop(inner);
    args.gb_addr_config = register;
    // The driver fills these in for GFX8 and earlier only.
    (args.num_banks, args.num_ranks) = (0, 0);
    let tables = [
        (args.tile_config_ptr, &mut args.num_tile_configs, TILE_MODES),
        (args.macro_tile_config_ptr, &mut args.num_macro_tile_configs, MACRO_TILE_MODES),
    ];
    for (address, room, entries) in tables {
        *room = (*room).min(entries);
        let zeros = vec![0; *room as usize * 4];
        call.kernel.user.write(address, &zeros).inspect_err(|_| *room = 0)?;
    }
    Ok(())
}

/// SET_XNACK_MODE. A negative value asks. Retry faults a process are a matter of GC 9.4.2 and 9.4.3 alone, and only
/// when all GPUs have them.
pub fn xnack(call: &Call<'_>, args: &mut SetXnackModeArgs) -> Result<(), Errno> {
    check(call.kernel, "SET_XNACK_MODE", BUILT, &call.kernel.options.svm)?;
    let mut inner = call.process.lock();
    if args.xnack_enabled < 0 {
        args.xnack_enabled = i32::from(inner.xnack);
        return Ok(());
    }
    let enable = args.xnack_enabled != 0;
    let supported = |version: u32| matches!(version, 90010 | 90402 | 90403);
    let facts = XnackFacts {
        queues: inner.queues.len(),
        enable,
        changes: enable != inner.xnack,
        supported: inner.devices.iter().all(|data| supported(data.device.version())),
    };
    check(call.kernel, "SET_XNACK_MODE", XNACK, &facts)?;
    inner.xnack = enable;
    Ok(())
}

/// RUNTIME_ENABLE: from then on queue exceptions reach the process. `capabilities_mask` is left as it is.
pub fn runtime_enable(call: &Call<'_>, args: &mut RuntimeEnableArgs) -> Result<(), Errno> {
    let mut inner = call.process.lock();
    if args.mode_mask & RUNTIME_ENABLE_MODE_ENABLE_MASK == 0 {
        inner.runtime = None;
    } else {
        let facts = RuntimeFacts { enabled: inner.runtime.is_some(), queues: inner.queues.len() };
        check(call.kernel, "RUNTIME_ENABLE", RUNTIME, &facts)?;
        let ttmp_setup = args.mode_mask & RUNTIME_ENABLE_MODE_TTMP_SAVE_MASK != 0;
        inner.runtime = Some(Runtime { r_debug: args.r_debug, ttmp_setup });
    }
    inner.runtime_enabled.store(inner.runtime.is_some(), Ordering::Release);
    let debugged = inner.debug.is_enabled();
    inner.debug.raise(ec_mask(EC_PROCESS_RUNTIME));
    drop(inner);
    if debugged {
        // The debugger must know before any queue is there.
        call.process.acknowledge.wait();
    }
    Ok(())
}

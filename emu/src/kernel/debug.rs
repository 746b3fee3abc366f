//! DBG_TRAP (`kfd_debug.c`): what of a debugger's interface needs no GPU.
//!
//! On a machine without GPUs all of it is here. With GPUs ENABLE is refused, as by a GPU that cannot be debugged: waves
//! here cannot be stopped from outside.

use super::call::Call;
use super::process::{Inner, Process};
use super::rule::{Rule, RuleText, check, rules, texts};
use kfd::Errno;
use kfd::uapi::*;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// A debugger that was enabled.
pub struct Session {
    /// Gets a byte for every exception that is reported.
    file: OwnedFd,
    /// Exceptions that are reported.
    enabled: u64,
}

/// Debugging of one process.
#[derive(Default)]
pub struct Debug {
    session: Option<Session>,
    /// Exceptions of the process that were raised.
    raised: u64,
    /// `DBG_TRAP_FLAG_*`.
    flags: u32,
}

/// What RUNTIME_ENABLE waits for while a debugger is there: its acknowledgement.
#[derive(Default)]
pub struct Acknowledge {
    given: Mutex<u32>,
    changed: Condvar,
}

impl Acknowledge {
    fn give(&self) {
        *self.given.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.changed.notify_all();
    }

    /// Sleeps until the debugger acknowledges.
    pub fn wait(&self) {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        while *given == 0 {
            given = self.changed.wait(given).unwrap_or_else(PoisonError::into_inner);
        }
        *given -= 1;
    }
}

impl Debug {
    /// Whether a debugger is enabled.
    pub fn is_enabled(&self) -> bool {
        self.session.is_some()
    }

    /// `kfd_dbg_ev_raise` of an exception of the process.
    pub fn raise(&mut self, exceptions: u64) {
        let Some(session) = &self.session else { return };
        self.raised |= exceptions & EC_MASK_PROCESS;
        if session.enabled & exceptions != 0 {
            session.tell();
        }
    }
}

impl Session {
    fn tell(&self) {
        // SAFETY: one byte that is there. That a file takes none is its owner's business, as in the kernel.
        unsafe {
            libc::write(self.file.as_raw_fd(), b".".as_ptr().cast(), 1);
        }
    }
}

/// What every operation is checked for.
pub struct Facts {
    op: u32,
    pid: u32,
    /// The process object of `pid` is known here.
    known: bool,
    /// It is the caller's.
    own: bool,
    enabled: bool,
    runtime: bool,
    /// GPUs of the process.
    gpus: usize,
    /// The operation's gpu_id is one of them.
    known_gpu: bool,
}

/// What QUERY_EXCEPTION_INFO is checked for.
pub struct InfoFacts {
    pointer: u64,
    code: u32,
    of_process: bool,
    raised: bool,
}

/// What ENABLE is checked for.
pub struct EnableFacts {
    enabled: bool,
    gpus: usize,
    fd: u32,
    open: bool,
}

/// Operations on waves.
const OF_WAVES: [u32; 7] = [
    DBG_TRAP_SET_WAVE_LAUNCH_OVERRIDE,
    DBG_TRAP_SET_WAVE_LAUNCH_MODE,
    DBG_TRAP_SUSPEND_QUEUES,
    DBG_TRAP_RESUME_QUEUES,
    DBG_TRAP_SET_NODE_ADDRESS_WATCH,
    DBG_TRAP_CLEAR_NODE_ADDRESS_WATCH,
    DBG_TRAP_SET_FLAGS,
];

fn is_watch(op: u32) -> bool {
    matches!(op, DBG_TRAP_SET_NODE_ADDRESS_WATCH | DBG_TRAP_CLEAR_NODE_ADDRESS_WATCH)
}

rules! {
    /// DBG_TRAP: any operation.
    RULES for f: Facts {
        ESRCH "pid is a process that has opened the KFD": f.pid => f.known;
        EPERM "it is the caller, or one that the caller traces": f.pid => f.own;
        EINVAL "debugging is enabled, for all but ENABLE": f.op => f.op == DBG_TRAP_ENABLE || f.enabled;
        EPERM "RUNTIME_ENABLE was called, for operations on waves (4 to 10)": f.op =>
            !OF_WAVES.contains(&f.op) || f.runtime;
        ENODEV "gpu_id is a GPU of the process, for watchpoints": f.gpus => !is_watch(f.op) || f.known_gpu;
        EINVAL "op is at most 14": f.op => f.op <= DBG_TRAP_GET_DEVICE_SNAPSHOT;
    }

    /// DBG_TRAP: ENABLE.
    ENABLE for f: EnableFacts {
        EALREADY "debugging is not enabled yet": f.gpus => !f.enabled;
        ENODEV "every GPU can be debugged; emulated ones cannot": f.gpus => f.gpus == 0;
        EBADF "dbg_fd is an open file": f.fd => f.open;
    }

    /// DBG_TRAP: SUSPEND_QUEUES and RESUME_QUEUES with a list.
    QUEUE_LIST for f: (u64, u32) {
        EINVAL "queue_array_ptr is not 0, or num_queues is": f.1 => f.0 != 0 || f.1 == 0;
        EINVAL "num_queues is at most 1024": f.1 => f.0 == 0 || f.1 <= 1024;
    }

    /// DBG_TRAP: SEND_RUNTIME_EVENT of a memory violation.
    RUNTIME_EVENT for f: (u32, bool) {
        ENODEV "gpu_id is a GPU of the process, with a memory violation": f.0 => f.1;
    }

    /// DBG_TRAP: QUERY_DEBUG_EVENT.
    PENDING for pending: u64 {
        EAGAIN "an exception that is enabled is pending": *pending => *pending != 0;
    }

    /// DBG_TRAP: QUERY_EXCEPTION_INFO.
    INFO for f: InfoFacts {
        EINVAL "info_ptr is not 0": f.pointer => f.pointer != 0;
        EINVAL "exception_code is one of the process: of queues and GPUs there are none that could have one": f.code =>
            f.of_process;
        ENODATA "the exception was raised": f.code => f.raised;
    }

    /// DBG_TRAP: GET_QUEUE_SNAPSHOT.
    QUEUE_SNAPSHOT for entry_size: u32 {
        EINVAL "entry_size is not 0": *entry_size => *entry_size != 0;
    }

    /// DBG_TRAP: GET_DEVICE_SNAPSHOT.
    DEVICE_SNAPSHOT for pointer: u64 {
        EINVAL "snapshot_buf_ptr is not 0": *pointer => *pointer != 0;
    }

    /// DBG_TRAP: SET_WAVE_LAUNCH_MODE.
    LAUNCH_MODE for mode: u32 {
        EINVAL "launch_mode, its low 8 bits, is 0, 1 or 3": *mode => matches!(mode & 0xff, 0 | 1 | 3);
    }
}

/// The tables of this module.
pub fn rule_texts() -> Vec<(&'static str, Vec<RuleText>)> {
    vec![
        ("DBG_TRAP", texts(RULES)),
        ("DBG_TRAP ENABLE", texts(ENABLE)),
        ("DBG_TRAP SEND_RUNTIME_EVENT", texts(RUNTIME_EVENT)),
        ("DBG_TRAP SET_WAVE_LAUNCH_MODE", texts(LAUNCH_MODE)),
        ("DBG_TRAP SUSPEND_QUEUES, RESUME_QUEUES", texts(QUEUE_LIST)),
        ("DBG_TRAP QUERY_DEBUG_EVENT", texts(PENDING)),
        ("DBG_TRAP QUERY_EXCEPTION_INFO", texts(INFO)),
        ("DBG_TRAP GET_QUEUE_SNAPSHOT", texts(QUEUE_SNAPSHOT)),
        ("DBG_TRAP GET_DEVICE_SNAPSHOT", texts(DEVICE_SNAPSHOT)),
    ]
}

const NAME: &str = "DBG_TRAP";

fn passes<F>(call: &Call<'_>, rules: &[Rule<F>], facts: &F) -> Result<(), Errno> {
    check(call.kernel, NAME, rules, facts)
}

/// An operation's argument, put back whatever `handler` says.
fn with<T: DbgTrapOp, R>(args: &mut DbgTrapArgs, handler: impl FnOnce(&mut T) -> Result<R, Errno>) -> Result<R, Errno> {
    let mut argument = T::from_prefix_or_zero(args.payload.as_bytes());
    let result = handler(&mut argument);
    args.payload.as_bytes_mut()[..size_of::<T>()].copy_from_slice(argument.as_bytes());
    result
}

/// DBG_TRAP.
pub fn trap(call: &Call<'_>, args: &mut DbgTrapArgs) -> Result<(), Errno> {
    let process: &Arc<Process> = call.process;
    let mut inner = process.lock();
    let inner = &mut *inner;
    let gpu_id = match args.op {
        DBG_TRAP_SET_NODE_ADDRESS_WATCH => args.argument::<DbgTrapSetNodeAddressWatchArgs>().map(|args| args.gpu_id),
        DBG_TRAP_CLEAR_NODE_ADDRESS_WATCH => args.argument::<DbgTrapClearNodeAddressWatchArgs>().map(|a| a.gpu_id),
        _ => None,
    };
    let facts = Facts {
        op: args.op,
        pid: args.pid,
        known: call.kernel.knows(args.pid),
        own: args.pid == process.pid,
        enabled: inner.debug.is_enabled(),
        runtime: inner.runtime.is_some(),
        gpus: inner.devices.len(),
        known_gpu: gpu_id.is_some_and(|gpu_id| inner.index(gpu_id).is_ok()),
    };
    passes(call, RULES, &facts)?;
    match args.op {
        DBG_TRAP_ENABLE => with(args, |args| enable(call, inner, args)),
        DBG_TRAP_DISABLE => {
            // Flags stay, exceptions do not.
            (inner.debug.session, inner.debug.raised) = (None, 0);
            Ok(())
        }
        DBG_TRAP_SEND_RUNTIME_EVENT => with(args, |args: &mut DbgTrapSendRuntimeEventArgs| {
            if args.exception_mask & ec_mask(EC_DEVICE_MEMORY_VIOLATION) != 0 {
                passes(call, RUNTIME_EVENT, &(args.gpu_id, inner.index(args.gpu_id).is_ok()))?;
            }
            if args.exception_mask & ec_mask(EC_PROCESS_RUNTIME) != 0 {
                process.acknowledge.give();
            }
            Ok(())
        }),
        DBG_TRAP_SET_EXCEPTIONS_ENABLED => with(args, |args: &mut DbgTrapSetExceptionsEnabledArgs| {
            if let Some(session) = &mut inner.debug.session {
                if args.exception_mask & inner.debug.raised != 0 {
                    session.tell();
                }
                session.enabled = args.exception_mask;
            }
            Ok(())
        }),
        DBG_TRAP_SET_WAVE_LAUNCH_OVERRIDE => with(args, |args: &mut DbgTrapSetWaveLaunchOverrideArgs| {
            args.support_request_mask = u32::MAX;
            Ok(())
        }),
        DBG_TRAP_SET_WAVE_LAUNCH_MODE => {
            with(args, |args: &mut DbgTrapSetWaveLaunchModeArgs| passes(call, LAUNCH_MODE, &args.launch_mode))
        }
        DBG_TRAP_SUSPEND_QUEUES => {
            with(args, |args: &mut DbgTrapSuspendQueuesArgs| no_queues(call, args.queue_array_ptr, args.num_queues))
        }
        DBG_TRAP_RESUME_QUEUES => with(args, |args: &mut DbgTrapResumeQueuesArgs| match args.queue_array_ptr {
            // All queues: there are none.
            0 => Ok(()),
            array => no_queues(call, array, args.num_queues),
        }),
        DBG_TRAP_SET_FLAGS => with(args, |args: &mut DbgTrapSetFlagsArgs| {
            std::mem::swap(&mut inner.debug.flags, &mut args.flags);
            Ok(())
        }),
        DBG_TRAP_QUERY_DEBUG_EVENT => with(args, |args| query(call, &mut inner.debug, args)),
        DBG_TRAP_QUERY_EXCEPTION_INFO => with(args, |args| exception_info(call, inner, args)),
        DBG_TRAP_GET_QUEUE_SNAPSHOT => with(args, |args: &mut DbgTrapQueueSnapshotArgs| {
            args.num_queues = 0;
            passes(call, QUEUE_SNAPSHOT, &args.entry_size)?;
            args.entry_size = args.entry_size.min(size_of::<QueueSnapshotEntry>() as u32);
            Ok(())
        }),
        DBG_TRAP_GET_DEVICE_SNAPSHOT => with(args, |args: &mut DbgTrapDeviceSnapshotArgs| {
            passes(call, DEVICE_SNAPSHOT, &args.snapshot_buf_ptr)?;
            args.num_devices = 0;
            args.entry_size = args.entry_size.min(size_of::<DbgDeviceInfoEntry>() as u32);
            Ok(())
        }),
        // Watchpoints: the rules let none through.
        _ => Err(Errno::ENODEV),
    }
}

fn enable(call: &Call<'_>, inner: &mut Inner, args: &mut DbgTrapEnableArgs) -> Result<(), Errno> {
    // SAFETY: a duplicate, for the kernel's reference to the file; the call takes any number.
    let copy = unsafe { libc::fcntl(args.dbg_fd as i32, libc::F_DUPFD_CLOEXEC, 0) };
    // SAFETY: the descriptor was just made and nothing else owns it.
    let file = (copy >= 0).then(|| unsafe { OwnedFd::from_raw_fd(copy) });
    let (enabled, gpus) = (inner.debug.is_enabled(), inner.devices.len());
    passes(call, ENABLE, &EnableFacts { enabled, gpus, fd: args.dbg_fd, open: file.is_some() })?;
    let info = inner.runtime_info();
    let room = (args.rinfo_size as usize).min(size_of::<RuntimeInfo>());
    args.rinfo_size = size_of::<RuntimeInfo>() as u32;
    call.kernel.user.write(args.rinfo_ptr, &info.as_bytes()[..room])?;
    inner.debug.session = file.map(|file| Session { file, enabled: args.exception_mask });
    Ok(())
}

/// A list of queues of which there is none: each gets the mark of an unknown one.
fn no_queues(call: &Call<'_>, array: u64, count: u32) -> Result<(), Errno> {
    passes(call, QUEUE_LIST, &(array, count))?;
    if array == 0 {
        return Ok(());
    }
    let mut ids: Vec<u32> = call.kernel.user.get_array(array, count)?;
    for id in &mut ids {
        *id |= DBG_QUEUE_INVALID_MASK;
    }
    // What cannot be written back is only logged.
    let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_ne_bytes()).collect();
    let _ = call.kernel.user.write(array, &bytes);
    Ok(())
}

fn query(call: &Call<'_>, debug: &mut Debug, args: &mut DbgTrapQueryDebugEventArgs) -> Result<(), Errno> {
    let clear = args.exception_mask;
    *args = DbgTrapQueryDebugEventArgs { exception_mask: 0, gpu_id: 0, queue_id: 0 };
    let enabled = debug.session.as_ref().map_or(0, |session| session.enabled);
    passes(call, PENDING, &(enabled & debug.raised))?;
    args.exception_mask = debug.raised;
    debug.raised &= !clear;
    Ok(())
}

fn exception_info(call: &Call<'_>, inner: &mut Inner, args: &mut DbgTrapQueryExceptionInfoArgs) -> Result<(), Errno> {
    let bit = ec_mask(args.exception_code);
    let facts = InfoFacts {
        pointer: args.info_ptr,
        code: args.exception_code,
        of_process: bit & EC_MASK_PROCESS != 0,
        raised: inner.debug.raised & bit != 0,
    };
    passes(call, INFO, &facts)?;
    let mut size = 0;
    if args.exception_code == EC_PROCESS_RUNTIME {
        let info = inner.runtime_info();
        let room = (args.info_size as usize).min(size_of::<RuntimeInfo>());
        call.kernel.user.write(args.info_ptr, &info.as_bytes()[..room])?;
        size = size_of::<RuntimeInfo>() as u32;
    }
    args.info_size = size;
    if args.clear_exception != 0 {
        inner.debug.raised &= !bit;
    }
    Ok(())
}

impl Inner {
    fn runtime_info(&self) -> RuntimeInfo {
        match &self.runtime {
            None => RuntimeInfo { r_debug: 0, runtime_state: DEBUG_RUNTIME_STATE_DISABLED, ttmp_setup: 0 },
            Some(runtime) => RuntimeInfo {
                r_debug: runtime.r_debug,
                runtime_state: DEBUG_RUNTIME_STATE_ENABLED,
                ttmp_setup: u32::from(runtime.ttmp_setup),
            },
        }
    }
}

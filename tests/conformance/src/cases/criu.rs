//! CRIU_OP: who may, and what is decided without a GPU.

use super::tools::line;
use crate::case::cases;
use crate::session::{Session, Stop};
use kfd::Errno;
use kfd::uapi::*;

/// Whether this process has CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE.
fn may_checkpoint() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or_default();
    bits & (1 << 21 | 1 << 40) != 0
}

fn op(op: u32) -> CriuArgs {
    CriuArgs { op, ..Default::default() }
}

fn with_privilege(_: &Session) -> Result<(), Stop> {
    if may_checkpoint() {
        return Ok(());
    }
    Err(Stop::Skip("needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE".to_string()))
}

cases! { "CRIU", s:
    safe kfd without_privilege "without CAP_CHECKPOINT_RESTORE and CAP_SYS_ADMIN every operation is EACCES" {
        // SAFETY: gives the user's rights up, and with them the capabilities; the process is the case's own.
        let dropped = unsafe { !may_checkpoint() || libc::setresuid(65534, 65534, 65534) == 0 };
        if !dropped || may_checkpoint() {
            return Err(Stop::Skip("the capabilities cannot be given up".to_string()));
        }
        for number in [0, 1, 2, 3, 4, 5, u32::MAX] {
            let result = s.call(&mut op(number));
            s.err(format!("op {number}"), result, Errno::EACCES);
        }
        let result = s.call(&mut GetVersionArgs::default());
        s.ok("the file is good for all else", result);
    }

    safe kfd unknown_op "an unknown operation is EINVAL" {
        with_privilege(s)?;
        for number in [5, 6, u32::MAX] {
            let result = s.call(&mut op(number));
            s.err(format!("op {number}"), result, Errno::EINVAL);
        }
    }

    safe no_gpu without_a_gpu "a process without GPUs cannot be dumped: ENODEV; argument checks come first" {
        with_privilege(s)?;
        let result = s.call(&mut op(CRIU_OP_PROCESS_INFO));
        s.err("PROCESS_INFO", result, Errno::ENODEV);
        let result = s.call(&mut op(CRIU_OP_CHECKPOINT));
        s.err("CHECKPOINT without buffers", result, Errno::EINVAL);
        let result = s.call(&mut CriuArgs { devices: 1, bos: 1, priv_data: 1, ..op(CRIU_OP_CHECKPOINT) });
        s.err("CHECKPOINT", result, Errno::ENODEV);
        let result = s.call(&mut op(CRIU_OP_UNPAUSE));
        s.err("UNPAUSE of what is not paused", result, Errno::EINVAL);
        let result = s.call(&mut op(CRIU_OP_RESTORE));
        s.err("RESTORE without buffers", result, Errno::EINVAL);
        let args = CriuArgs { devices: 1, priv_data: 1, priv_data_size: 1, num_devices: 1, ..op(CRIU_OP_RESTORE) };
        let result = s.call(&mut args.clone());
        s.err("RESTORE with too little data", result, Errno::EINVAL);
    }

    safe kfd resume "RESUME needs a process that has the KFD open: ESRCH" {
        with_privilege(s)?;
        for (what, pid) in [("process 0", 0), ("no process", 0x7fff_fff0)] {
            let result = s.call(&mut CriuArgs { pid, ..op(CRIU_OP_RESUME) });
            s.err(what, result, Errno::ESRCH);
        }
    }

    safe kfd forked "the owner of the file is asked for before the capabilities: EBADF" {
        let lines = s.in_child(|| vec![line(s.call(&mut op(0))), line(s.call(&mut op(9)))])?;
        for (i, what) in ["op 0", "op 9"].into_iter().enumerate() {
            s.value(what, lines.get(i).cloned().unwrap_or_default(), "EBADF");
        }
    }
}

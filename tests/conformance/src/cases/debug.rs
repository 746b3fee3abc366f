//! DBG_TRAP of the process itself: what is decided without waves.

use super::tools::{KERNEL_ADDRESS, NO_FD, line, plain_file, thread_id, until_asleep};
use crate::case::cases;
use crate::session::Session;
use kfd::Errno;
use kfd::uapi::*;
use std::sync::atomic::{AtomicI32, Ordering};

/// An operation on this process: its union as three words.
fn op(op: u32, words: [u64; 3]) -> Vec<u8> {
    op_of(std::process::id(), op, words)
}

fn op_of(pid: u32, op: u32, words: [u64; 3]) -> Vec<u8> {
    let mut bytes = [pid.to_ne_bytes(), op.to_ne_bytes()].concat();
    bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
    bytes
}

fn call(s: &Session, bytes: &mut [u8]) -> Result<(), Errno> {
    s.raw(s.kfd, DbgTrapArgs::REQUEST, bytes)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_prefix_or_zero(&bytes[at..])
}

/// Bytes of a file.
fn file_size(fd: i32) -> i64 {
    // SAFETY: seeks in the case's own file.
    unsafe { libc::lseek(fd, 0, libc::SEEK_END) }
}

/// ENABLE: exception mask, address of the runtime information, its bytes and the descriptor for events.
fn enable(info: u64, bytes: u32, fd: u32) -> Vec<u8> {
    op(DBG_TRAP_ENABLE, [0, info, u64::from(bytes) | u64::from(fd) << 32])
}

cases! { "KFDDBGTest", s:
    safe kfd which_process "the process exists and has the KFD open: ESRCH" {
        for (what, pid) in [("process 0", 0), ("no process", 0x7fff_fff0), ("a number beyond", u32::MAX)] {
            for number in [DBG_TRAP_ENABLE, DBG_TRAP_DISABLE] {
                let result = call(s, &mut op_of(pid, number, [0; 3]));
                s.err(format!("{what}, op {number}"), result, Errno::ESRCH);
            }
        }
        let parent = std::os::unix::process::parent_id();
        let result = call(s, &mut op_of(parent, DBG_TRAP_DISABLE, [0; 3]));
        s.err("a process without the KFD", result, Errno::ESRCH);
    }

    safe kfd not_traced "another process is for whoever traces it: EPERM" {
        let parent = std::process::id();
        let lines = s.in_child(|| {
            let own = s.open();
            let mut answers = vec![line(own.map(drop))];
            for number in [DBG_TRAP_ENABLE, DBG_TRAP_DISABLE, 99] {
                let result = own.and_then(|fd| s.raw(fd, DbgTrapArgs::REQUEST, &mut op_of(parent, number, [0; 3])));
                answers.push(line(result));
            }
            answers
        })?;
        for (n, (what, want)) in
            [("open in a child", "0"), ("ENABLE of the parent", "EPERM"), ("DISABLE", "EPERM"), ("op 99", "EPERM")]
                .into_iter()
                .enumerate()
        {
            s.value(what, lines.get(n).cloned().unwrap_or_default(), want);
        }
    }

    safe kfd not_enabled "all but ENABLE need the debugger to be enabled: EINVAL" {
        for number in (1..=14).chain([15, 99, u32::MAX]) {
            let result = call(s, &mut op(number, [0; 3]));
            s.err(format!("op {number}"), result, Errno::EINVAL);
        }
    }

    safe no_gpu enable_twice "ENABLE takes an open file and room for the runtime's state, and is done once: EALREADY" {
        let file = plain_file()? as u32;
        let result = call(s, &mut enable(0, 0, NO_FD));
        s.err("a descriptor that is not open", result, Errno::EBADF);
        let result = call(s, &mut enable(KERNEL_ADDRESS, 16, file));
        s.err("no room for the state", result, Errno::EFAULT);
        let mut info = [0xeeu8; 32];
        let mut bytes = enable(info.as_mut_ptr() as u64, 32, file);
        let result = call(s, &mut bytes);
        s.ok("ENABLE", result);
        s.value("rinfo_size", word(&bytes, 24), 16);
        s.value("the state: r_debug, runtime_state, ttmp_setup", format!("{:x?}", &info[..16]), "[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]");
        s.value("behind it", format!("{:x}", info[16]), "ee");
        let result = call(s, &mut enable(0, 0, file));
        s.err("ENABLE again", result, Errno::EALREADY);
        let result = call(s, &mut op(DBG_TRAP_DISABLE, [0; 3]));
        s.ok("DISABLE", result);
        let result = call(s, &mut op(DBG_TRAP_DISABLE, [0; 3]));
        s.err("DISABLE again", result, Errno::EINVAL);
        let result = call(s, &mut enable(0, 0, file));
        s.ok("ENABLE without room for the state", result);
        let result = call(s, &mut op(DBG_TRAP_DISABLE, [0; 3]));
        s.ok("DISABLE", result);
    }

    safe no_gpu runtime_state "ENABLE tells what RUNTIME_ENABLE said" {
        let result = s.call(&mut RuntimeEnableArgs { r_debug: 0x1234_5678, mode_mask: 1, ..Default::default() });
        s.ok("RUNTIME_ENABLE", result);
        let file = plain_file()? as u32;
        let mut info = [0xeeu8; 16];
        let result = call(s, &mut enable(info.as_mut_ptr() as u64, 16, file));
        s.ok("ENABLE", result);
        s.value("r_debug", format!("{:#x}", u64::from_prefix_or_zero(&info)), "0x12345678");
        s.value("runtime_state", word(&info, 8), DEBUG_RUNTIME_STATE_ENABLED);
        s.value("ttmp_setup", word(&info, 12), 0);
        let result = call(s, &mut op(DBG_TRAP_DISABLE, [0; 3]));
        s.ok("DISABLE", result);
    }

    safe no_gpu waves_need_the_runtime "what concerns waves needs RUNTIME_ENABLE: EPERM" {
        let file = plain_file()? as u32;
        let result = call(s, &mut enable(0, 0, file));
        s.ok("ENABLE", result);
        for number in [
            DBG_TRAP_SET_WAVE_LAUNCH_OVERRIDE,
            DBG_TRAP_SET_WAVE_LAUNCH_MODE,
            DBG_TRAP_SUSPEND_QUEUES,
            DBG_TRAP_RESUME_QUEUES,
            DBG_TRAP_SET_NODE_ADDRESS_WATCH,
            DBG_TRAP_CLEAR_NODE_ADDRESS_WATCH,
            DBG_TRAP_SET_FLAGS,
        ] {
            let result = call(s, &mut op(number, [0; 3]));
            s.err(format!("op {number}"), result, Errno::EPERM);
        }
        for number in [15, u32::MAX] {
            let result = call(s, &mut op(number, [0; 3]));
            s.err(format!("op {number}"), result, Errno::EINVAL);
        }
    }

    safe no_gpu queries "with nothing pending a query is EAGAIN, and snapshots count" {
        let file = plain_file()? as u32;
        let result = call(s, &mut enable(0, 0, file));
        s.ok("ENABLE", result);
        let mut bytes = op(DBG_TRAP_QUERY_DEBUG_EVENT, [u64::MAX, u64::MAX, 0]);
        let result = call(s, &mut bytes);
        s.err("QUERY_DEBUG_EVENT", result, Errno::EAGAIN);
        s.value("exception_mask, gpu_id, queue_id", format!("{:x?}", &bytes[8..24]), "[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]");
        let result = call(s, &mut op(DBG_TRAP_SET_EXCEPTIONS_ENABLED, [u64::MAX, 0, 0]));
        s.ok("SET_EXCEPTIONS_ENABLED", result);
        let mut bytes = op(DBG_TRAP_GET_QUEUE_SNAPSHOT, [0, 0, 0]);
        let result = call(s, &mut bytes);
        s.err("GET_QUEUE_SNAPSHOT with entries of 0 bytes", result, Errno::EINVAL);
        let mut bytes = op(DBG_TRAP_GET_QUEUE_SNAPSHOT, [0, 0, 9 | 999 << 32]);
        let result = call(s, &mut bytes);
        s.ok("GET_QUEUE_SNAPSHOT", result);
        s.value("num_queues, entry_size", format!("{}, {}", word(&bytes, 24), word(&bytes, 28)), "0, 64");
        let mut bytes = op(DBG_TRAP_GET_DEVICE_SNAPSHOT, [0, 0, 9 | 999 << 32]);
        let result = call(s, &mut bytes);
        s.err("GET_DEVICE_SNAPSHOT to nowhere", result, Errno::EINVAL);
        let mut room = [0u8; 4096];
        let mut bytes = op(DBG_TRAP_GET_DEVICE_SNAPSHOT, [0, room.as_mut_ptr() as u64, 9 | 999 << 32]);
        let result = call(s, &mut bytes);
        s.ok("GET_DEVICE_SNAPSHOT", result);
        let got = format!("{}, {}", word(&bytes, 24), word(&bytes, 28));
        s.value("num_devices, entry_size", got, format!("{}, 120", s.gpu_nodes));
        // info_ptr, info_size | source_id << 32, exception_code | clear << 32
        for (what, code, want) in [
            ("of a queue", EC_QUEUE_NEW, Errno::EINVAL),
            ("of a device", EC_DEVICE_NEW, Errno::EINVAL),
            ("of the process", EC_PROCESS_RUNTIME, Errno::ENODATA),
            ("of nothing", EC_NONE, Errno::EINVAL),
            ("beyond", 99, Errno::EINVAL),
        ] {
            let mut bytes = op(DBG_TRAP_QUERY_EXCEPTION_INFO, [room.as_mut_ptr() as u64, 64, code.into()]);
            let result = call(s, &mut bytes);
            s.err(format!("QUERY_EXCEPTION_INFO {what}"), result, want);
        }
        let mut bytes = op(DBG_TRAP_QUERY_EXCEPTION_INFO, [0, 64, EC_PROCESS_RUNTIME.into()]);
        let result = call(s, &mut bytes);
        s.err("QUERY_EXCEPTION_INFO to nowhere", result, Errno::EINVAL);
    }

    safe no_gpu runtime_waits_for_the_debugger "RUNTIME_ENABLE tells a debugger, and sleeps until it acknowledges" {
        let file = plain_file()?;
        let result = call(s, &mut op(DBG_TRAP_ENABLE, [ec_mask(EC_PROCESS_RUNTIME), 0, (file as u64) << 32]));
        s.ok("ENABLE with EC_PROCESS_RUNTIME", result);
        let session = &*s;
        let tid = &AtomicI32::new(0);
        let (asleep, query, bytes, info, enabled) = std::thread::scope(|scope| {
            let runtime = scope.spawn(move || {
                tid.store(thread_id(), Ordering::SeqCst);
                session.call(&mut RuntimeEnableArgs { r_debug: 0x77, mode_mask: 1, ..Default::default() })
            });
            while tid.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            let asleep = until_asleep(tid.load(Ordering::SeqCst));
            let mut bytes = op(DBG_TRAP_QUERY_DEBUG_EVENT, [u64::MAX, 0, 0]);
            let query = call(session, &mut bytes);
            let info = file_size(file);
            let acknowledge = [ec_mask(EC_PROCESS_RUNTIME), 0, 0];
            let sent = call(session, &mut op(DBG_TRAP_SEND_RUNTIME_EVENT, acknowledge));
            let enabled = if sent.is_ok() { runtime.join().unwrap_or(Err(Errno::EIO)) } else { sent };
            (asleep, query, bytes, info, enabled)
        });
        s.value("RUNTIME_ENABLE sleeps", asleep, true);
        s.ok("QUERY_DEBUG_EVENT", query);
        let raised = u64::from_prefix_or_zero(&bytes[8..]);
        s.value("the exception", format!("{raised:#x}"), format!("{:#x}", ec_mask(EC_PROCESS_RUNTIME)));
        s.value("bytes in the debugger's file", info, 1);
        s.ok("RUNTIME_ENABLE after SEND_RUNTIME_EVENT", enabled);
        let result = call(s, &mut op(DBG_TRAP_QUERY_DEBUG_EVENT, [u64::MAX, 0, 0]));
        s.err("QUERY_DEBUG_EVENT: it was cleared", result, Errno::EAGAIN);
        let result = call(s, &mut op(DBG_TRAP_DISABLE, [0; 3]));
        s.ok("DISABLE", result);
    }

    safe no_gpu waves_without_a_gpu "with the runtime enabled and no GPU, what concerns waves finds nothing to do" {
        let result = s.call(&mut RuntimeEnableArgs { mode_mask: 1, ..Default::default() });
        s.ok("RUNTIME_ENABLE", result);
        let file = plain_file()? as u32;
        let result = call(s, &mut enable(0, 0, file));
        s.ok("ENABLE", result);
        for (mode, want) in [(0, Ok(())), (1, Ok(())), (2, Err(Errno::EINVAL)), (3, Ok(())), (4, Err(Errno::EINVAL))] {
            let result = call(s, &mut op(DBG_TRAP_SET_WAVE_LAUNCH_MODE, [mode, 0, 0]));
            s.expect(format!("SET_WAVE_LAUNCH_MODE {mode}"), result, want);
        }
        let mut bytes = op(DBG_TRAP_SET_FLAGS, [1, 0, 0]);
        let result = call(s, &mut bytes);
        s.ok("SET_FLAGS 1", result);
        s.value("the flags before", word(&bytes, 8), 0);
        let mut bytes = op(DBG_TRAP_SET_FLAGS, [0, 0, 0]);
        let result = call(s, &mut bytes);
        s.ok("SET_FLAGS 0", result);
        s.value("the flags before", word(&bytes, 8), 1);
        let result = call(s, &mut op(DBG_TRAP_SET_NODE_ADDRESS_WATCH, [0; 3]));
        s.err("SET_NODE_ADDRESS_WATCH on no GPU", result, Errno::ENODEV);
        let result = call(s, &mut op(DBG_TRAP_CLEAR_NODE_ADDRESS_WATCH, [0; 3]));
        s.err("CLEAR_NODE_ADDRESS_WATCH on no GPU", result, Errno::ENODEV);
        // exception_mask, queue_array_ptr, num_queues | grace_period << 32
        let result = call(s, &mut op(DBG_TRAP_SUSPEND_QUEUES, [0, 0, 1]));
        s.err("SUSPEND_QUEUES of a list at nowhere", result, Errno::EINVAL);
        let result = call(s, &mut op(DBG_TRAP_SUSPEND_QUEUES, [0, KERNEL_ADDRESS, 1]));
        s.err("SUSPEND_QUEUES of a list that cannot be read", result, Errno::EFAULT);
        let mut ids = [7u32, 9];
        let result = call(s, &mut op(DBG_TRAP_SUSPEND_QUEUES, [0, ids.as_mut_ptr() as u64, 2]));
        s.ok("SUSPEND_QUEUES of unknown queues", result);
        s.value("their ids afterwards", format!("{ids:x?}"), "[80000007, 80000009]");
        let mut ids = [7u32, 9];
        let result = call(s, &mut op(DBG_TRAP_RESUME_QUEUES, [ids.as_mut_ptr() as u64, 2, 0]));
        s.ok("RESUME_QUEUES of unknown queues", result);
        s.value("their ids afterwards", format!("{ids:x?}"), "[80000007, 80000009]");
        let result = call(s, &mut op(DBG_TRAP_RESUME_QUEUES, [0, 0, 0]));
        s.ok("RESUME_QUEUES of all", result);
        let result = call(s, &mut op(DBG_TRAP_DISABLE, [0; 3]));
        s.ok("DISABLE", result);
    }
}

//! Files: who may use one, and what they share (`kfd_open`, `kfd_ioctl`).

use super::tools::{duplicate, line, plain_file, receive_fd, send_fd, socket_pair};
use crate::case::cases;
use crate::gpu::{Code, Gpu, SHARED, dispatch};
use crate::session::Stop;
use kfd::Errno;
use kfd::uapi::*;
use std::sync::atomic::Ordering;

const EVENTS: u64 = MmapOffset { kind: MmapType::Events, gpu_id: 0, offset: 0 }.encode();

cases! { "KFDOpenCloseKFDTest", s:
    safe kfd open_twice "all opens of a process are of one process object" {
        let second = s.open()?;
        let id = s.signal_event(false)?;
        let result = s.call_on(second, &mut SetEventArgs { event_id: id, pad: 0 });
        s.ok("SET_EVENT of the first file's event on the second", result);
        let mut args = CreateEventArgs::default();
        let result = s.call_on(second, &mut args);
        s.ok("CREATE_EVENT on the second", result);
        s.value("event_id", args.event_id, id + 1);
    }

    safe kfd closed "a closed file is EBADF, and closing changes nothing of the process object" {
        let id = s.signal_event(false)?;
        s.driver.close(s.kfd)?;
        let result = s.set(id);
        s.err("SET_EVENT on the closed file", result, Errno::EBADF);
        let again = s.open()?;
        let result = s.call_on(again, &mut SetEventArgs { event_id: id, pad: 0 });
        s.ok("SET_EVENT of the old event on a new file", result);
    }

    safe kfd many "a process may open and close as often as it likes" {
        let mut results = Vec::new();
        for _ in 0..100 {
            let fd = s.open()?;
            results.push(s.call_on(fd, &mut GetVersionArgs::default()));
            s.driver.close(fd)?;
        }
        s.value("failures of 100", results.iter().filter(|result| result.is_err()).count(), 0);
    }

    safe kfd duplicated "a duplicated descriptor is the same file, which is open until the last is closed" {
        let copy = duplicate(s.kfd)?;
        let id = s.signal_event(false)?;
        let result = s.call_on(copy, &mut SetEventArgs { event_id: id, pad: 0 });
        s.ok("SET_EVENT on the duplicate", result);
        s.driver.close(s.kfd)?;
        let result = s.call_on(copy, &mut SetEventArgs { event_id: id, pad: 0 });
        s.ok("SET_EVENT after the first was closed", result);
        s.driver.close(copy)?;
        let result = s.call_on(copy, &mut SetEventArgs { event_id: id, pad: 0 });
        s.err("SET_EVENT after both were closed", result, Errno::EBADF);
    }

    safe kfd through_a_socket "a descriptor that came through a socket is the same file" {
        let (a, b) = socket_pair()?;
        send_fd(&a, s.kfd)?;
        let copy = receive_fd(&b)?;
        let result = s.call_on(copy, &mut GetVersionArgs::default());
        s.ok("GET_VERSION", result);
    }

    safe kfd other_thread "all threads of the process that opened the file may use it" {
        let result = std::thread::scope(|scope| scope.spawn(|| s.signal_event(false).map(drop)).join());
        let result = result.map_err(|_| Stop::Failed("the thread panicked".to_string()))?;
        s.ok("CREATE_EVENT in a thread", result);
    }

    safe kfd forked "in a forked child every request on the parent's file is EBADF" {
        let id = s.signal_event(false)?;
        let lines = s.in_child(|| {
            vec![
                line(s.call(&mut GetVersionArgs::default())),
                line(s.set(id)),
                line(s.zeros(0x26, 32)),
                line(s.zeros(0x27, 8)),
                line(s.zeros(0x00, 8)),
            ]
        })?;
        for (what, want) in [
            ("GET_VERSION", "EBADF"),
            ("SET_EVENT", "EBADF"),
            ("DBG_TRAP", "EBADF"),
            ("number 0x27, which comes first", "ENOTTY"),
            ("number 0x00", "ENOTTY"),
        ] {
            let got = lines.get(s.steps_taken()).cloned().unwrap_or_default();
            s.value(what, got, want);
        }
    }

    safe kfd fork_and_mmap "mmap finds the process object by the caller, so a forked child has none: EINVAL" {
        s.signal_event(false)?;
        let lines = s.in_child(|| {
            let before = s.mmap(s.kfd, 32768, EVENTS).map(drop);
            let own = s.open();
            // The child's own object has no events yet.
            let empty = s.mmap(s.kfd, 32768, EVENTS).map(drop);
            let created = own.and_then(|fd| s.call_on(fd, &mut CreateEventArgs::default()));
            let after = s.mmap(s.kfd, 32768, EVENTS).map(drop);
            vec![line(before), line(empty), line(created), line(after)]
        })?;
        for (what, want) in [
            ("the parent's file, in a child without an object", "EINVAL"),
            ("the parent's file, in a child without events", "EINVAL"),
            ("CREATE_EVENT on the child's file", "0"),
            ("the parent's file, in a child with events: they are the child's", "0"),
        ] {
            let got = lines.get(s.steps_taken()).cloned().unwrap_or_default();
            s.value(what, got, want);
        }
    }

    safe kfd fork_and_open "a child that opens anew gets an object of its own" {
        s.signal_event(false)?;
        s.signal_event(false)?;
        let lines = s.in_child(|| {
            let mut args = CreateEventArgs::default();
            let opened = s.open();
            let created = opened.and_then(|fd| s.call_on(fd, &mut args));
            vec![line(opened.map(drop)), line(created), args.event_id.to_string()]
        })?;
        for (what, want) in [("open", "0"), ("CREATE_EVENT", "0"), ("event_id", "1")] {
            let got = lines.get(s.steps_taken()).cloned().unwrap_or_default();
            s.value(what, got, want);
        }
        let next = s.signal_event(false)?;
        s.value("the parent's next event_id", next, 3);
    }

    risky gpu fork_and_dispatch "parent and child have buffers and queues of their own, and neither sees the other's" {
        let gpu = s.gpu()?;
        let kernel = gpu.kernel(Code::End)?;
        let memory = gpu.memory(8192, SHARED)?;
        let signal = memory.signal(64, 1);
        let queue = gpu.queue(64)?;
        memory.u64(4096).store(77, Ordering::SeqCst);
        let lines = s.in_child(|| {
            let work = || -> Result<Vec<String>, Stop> {
                let gpu = Gpu::acquire(s.driver.clone(), s.open()?)?;
                let kernel = gpu.kernel(Code::End)?;
                let memory = gpu.memory(8192, SHARED)?;
                let fresh = memory.u64(4096).load(Ordering::SeqCst);
                memory.u64(4096).store(78, Ordering::SeqCst);
                let signal = memory.signal(64, 1);
                let queue = gpu.queue(64)?;
                queue.submit(dispatch(&kernel, signal.va).to_bytes());
                let done = signal.wait(0);
                let freed = queue.destroy().and_then(|()| queue.parts.free(&gpu));
                Ok(vec![queue.id().to_string(), fresh.to_string(), done.to_string(), line(freed)])
            };
            work().unwrap_or_else(|stop| vec![format!("{stop:?}")])
        })?;
        for (n, (what, want)) in [
            ("the child's queue_id", "0"),
            ("its fresh memory", "0"),
            ("its dispatch's signal", "0"),
            ("its queue's buffers unmap and free", "0"),
        ]
        .into_iter()
        .enumerate()
        {
            s.value(what, lines.get(n).cloned().unwrap_or_default(), want);
        }
        s.value("the parent's memory afterwards", memory.u64(4096).load(Ordering::SeqCst), 77);
        queue.submit(dispatch(&kernel, signal.va).to_bytes());
        s.value("its dispatch's signal", signal.wait(0), 0);
        s.ok("DESTROY_QUEUE", queue.destroy());
    }

    safe kfd another_process_file "a file that another process opened is EBADF, also when it came through a socket" {
        let (ours, theirs) = socket_pair()?;
        s.in_child(|| {
            let sent = s.open().and_then(|fd| send_fd(&theirs, fd));
            vec![line(sent)]
        })?;
        drop(theirs);
        let fd = receive_fd(&ours)?;
        let result = s.call_on(fd, &mut GetVersionArgs::default());
        s.err("GET_VERSION", result, Errno::EBADF);
        let result = s.call_on(fd, &mut CreateEventArgs::default());
        s.err("CREATE_EVENT", result, Errno::EBADF);
    }

    safe kfd no_device "requests on other files are no KFD requests" {
        let fd = plain_file()?;
        let result = s.call_on(fd, &mut GetVersionArgs::default());
        s.err("GET_VERSION on a plain file", result, Errno::ENOTTY);
        let result = s.call_on(-1, &mut GetVersionArgs::default());
        s.err("GET_VERSION on descriptor -1", result, Errno::EBADF);
    }

    safe no_gpu no_render_node "a machine without GPUs has no render node" {
        let result = s.driver.open("/dev/dri/renderD128").map(drop);
        s.err("open /dev/dri/renderD128", result, Errno::ENOENT);
    }
}

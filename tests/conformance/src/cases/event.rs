//! Events (`kfd_events.c`).

use super::tools::{KERNEL_ADDRESS, thread_id, until_asleep};
use crate::case::cases;
use crate::session::{Session, Stop};
use kfd::Errno;
use kfd::uapi::*;
use std::sync::atomic::{AtomicI32, Ordering};

/// mmap offset of the page of slots.
const PAGE: u64 = MmapOffset { kind: MmapType::Events, gpu_id: 0, offset: 0 }.encode();
/// First id of an event without a slot.
const FIRST_OTHER: u32 = 0x4000_0000;

/// An event with its age, as a wait's entry.
fn aged(event_id: u32, age: u64) -> EventData {
    let mut data = EventData::new(event_id);
    data.set_payload(&HsaSignalEventData { last_event_age: age });
    data
}

/// Creates signal events until it fails: how many there were, and why no more.
fn fill(s: &Session) -> (usize, Result<(), Errno>) {
    let mut count = 0;
    while count < 5000 {
        match s.signal_event(false) {
            Ok(_) => count += 1,
            Err(errno) => return (count, Err(errno)),
        }
    }
    (count, Ok(()))
}

/// Waits in another thread without a time limit, does `then` once that thread sleeps, and returns what the wait said.
fn while_waiting(
    s: &Session,
    events: &mut [EventData],
    all: bool,
    then: impl FnOnce() -> Result<(), Errno>,
) -> Result<(Result<(), Errno>, u32), Stop> {
    let tid = AtomicI32::new(0);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            tid.store(thread_id(), Ordering::SeqCst);
            s.wait(events, all, u32::MAX)
        });
        while tid.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        if !until_asleep(tid.load(Ordering::SeqCst)) {
            return Err(Stop::Failed("the waiting thread never slept".to_string()));
        }
        then()?;
        waiter.join().map_err(|_| Stop::Failed("the waiting thread panicked".to_string()))
    })
}

extern "C" fn nothing(_: libc::c_int) {}

/// Handles a signal by doing nothing.
fn handle(signal: i32, flags: i32) -> Result<(), Errno> {
    // SAFETY: zeros are a valid `sigaction`, and the handler touches nothing.
    let done = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = flags;
        libc::sigaction(signal, &raw const action, std::ptr::null_mut())
    };
    if done == 0 { Ok(()) } else { Err(Errno::last()) }
}

cases! { "KFDEventTest", s:
    safe kfd create_destroy "a signal event gets the lowest free id from 1, which is its slot and its trigger" {
        let first = s.create_event(EVENT_SIGNAL, true)?;
        s.value("event_id", first.event_id, 1);
        s.value("event_slot_index", first.event_slot_index, 1);
        s.value("event_trigger_data", first.event_trigger_data, 1);
        s.value("event_page_offset", format!("{:#x}", first.event_page_offset), "0x8000000000000000");
        for want in 2..=4 {
            let id = s.signal_event(false)?;
            s.value("the next event_id", id, want);
        }
        let result = s.destroy(2);
        s.ok("DESTROY_EVENT 2", result);
        let id = s.signal_event(false)?;
        s.value("event_id after that", id, 2);
        let id = s.signal_event(false)?;
        s.value("and after that", id, 5);
    }

    safe kfd unknown "an unknown event is EINVAL, and so is 0, which is reserved" {
        s.signal_event(false)?;
        for id in [0, 2, 4096, FIRST_OTHER, u32::MAX] {
            let result = s.set(id);
            s.err(format!("SET_EVENT {id:#x}"), result, Errno::EINVAL);
            let result = s.reset(id);
            s.err(format!("RESET_EVENT {id:#x}"), result, Errno::EINVAL);
            let result = s.destroy(id);
            s.err(format!("DESTROY_EVENT {id:#x}"), result, Errno::EINVAL);
            let (result, _) = s.wait(&mut [EventData::new(id)], false, 0);
            s.err(format!("WAIT_EVENTS {id:#x}"), result, Errno::EINVAL);
        }
        let result = s.destroy(1);
        s.ok("DESTROY_EVENT 1", result);
        let result = s.destroy(1);
        s.err("DESTROY_EVENT 1 again", result, Errno::EINVAL);
    }

    safe kfd types "types 0 and 5 have slots, all others ids from 0x40000000; the host sets only type 0" {
        for (kind, want) in [
            (EVENT_SIGNAL, 1),
            (EVENT_NODECHANGE, FIRST_OTHER),
            (EVENT_DEVICESTATECHANGE, FIRST_OTHER + 1),
            (EVENT_HW_EXCEPTION, FIRST_OTHER + 2),
            (EVENT_SYSTEM_EVENT, FIRST_OTHER + 3),
            (EVENT_DEBUG_EVENT, 2),
            (EVENT_PROFILE_EVENT, FIRST_OTHER + 4),
            (EVENT_QUEUE_EVENT, FIRST_OTHER + 5),
            (EVENT_MEMORY, FIRST_OTHER + 6),
            (9, FIRST_OTHER + 7),
            (u32::MAX, FIRST_OTHER + 8),
        ] {
            let mut args = CreateEventArgs { event_type: kind, event_slot_index: 0x77, ..Default::default() };
            let result = s.call(&mut args);
            s.ok(format!("CREATE_EVENT of type {kind}"), result);
            s.value("event_id", format!("{:#x}", args.event_id), format!("{want:#x}"));
            let slot = if want < FIRST_OTHER { want } else { 0x77 };
            s.value("event_slot_index", format!("{:#x}", args.event_slot_index), format!("{slot:#x}"));
            let page = if want < FIRST_OTHER { PAGE } else { 0 };
            s.value("event_page_offset", format!("{:#x}", args.event_page_offset), format!("{page:#x}"));
            let set = s.set(args.event_id);
            s.expect("SET_EVENT", set, if kind == EVENT_SIGNAL { Ok(()) } else { Err(Errno::EINVAL) });
        }
    }

    safe kfd page_of_no_buffer "event_page_offset is a buffer's handle, EINVAL when its GPU is unknown" {
        for handle in [1u64, 1 << 32, 0x1234_5678_0000_0000, u64::MAX, PAGE] {
            let mut args = CreateEventArgs { event_page_offset: handle, ..Default::default() };
            let result = s.call(&mut args);
            s.err(format!("event_page_offset {handle:#x}"), result, Errno::EINVAL);
            s.value("event_page_offset afterwards", format!("{:#x}", args.event_page_offset), format!("{handle:#x}"));
        }
        s.signal_event(false)?;
        let mut args = CreateEventArgs { event_page_offset: 1 << 32, ..Default::default() };
        let result = s.call(&mut args);
        s.err("with a page that the kernel made", result, Errno::EINVAL);
    }

    safe kfd node_is_ignored "node_id and auto_reset's value are not looked at" {
        let mut args = CreateEventArgs { node_id: 0xdead, auto_reset: 0x8000_0000, ..Default::default() };
        let result = s.call(&mut args);
        s.ok("CREATE_EVENT", result);
        let id = args.event_id;
        let result = s.set(id);
        s.ok("SET_EVENT", result);
        let (_, first) = s.wait(&mut [EventData::new(id)], false, 0);
        let (_, second) = s.wait(&mut [EventData::new(id)], false, 0);
        s.value("two waits: the event resets itself", format!("{first} {second}"), "0 1");
    }

    safe kfd poll "a wait with timeout 0 is a look; running out of time is a result, not an error" {
        let id = s.signal_event(false)?;
        let (result, outcome) = s.wait(&mut [EventData::new(id)], false, 0);
        s.ok("not set", result);
        s.value("wait_result", outcome, WAIT_RESULT_TIMEOUT);
        let (result, outcome) = s.wait(&mut [EventData::new(id)], false, 20);
        s.ok("not set, 20 ms", result);
        s.value("wait_result", outcome, WAIT_RESULT_TIMEOUT);
        s.set(id)?;
        for what in ["set", "still set"] {
            let (result, outcome) = s.wait(&mut [EventData::new(id)], false, 0);
            s.ok(what, result);
            s.value("wait_result", outcome, WAIT_RESULT_COMPLETE);
        }
        s.reset(id)?;
        let (result, outcome) = s.wait(&mut [EventData::new(id)], false, 0);
        s.ok("reset", result);
        s.value("wait_result", outcome, WAIT_RESULT_TIMEOUT);
    }

    safe kfd nothing_to_wait_for "a wait for no event is complete at once, whatever the pointer" {
        for (array, all) in [(0, 0), (0, 1), (KERNEL_ADDRESS, 0)] {
            let mut args = WaitEventsArgs {
                events_ptr: array,
                wait_for_all: all,
                timeout: u32::MAX,
                wait_result: 9,
                ..Default::default()
            };
            let result = s.call(&mut args);
            s.ok(format!("array {array:#x}, wait_for_all {all}"), result);
            s.value("wait_result", args.wait_result, WAIT_RESULT_COMPLETE);
        }
    }

    safe kfd any_and_all "any of the events, or all of them" {
        let ids = [s.signal_event(false)?, s.signal_event(false)?, s.signal_event(false)?];
        let look = |s: &Session, all| s.wait(&mut ids.map(EventData::new), all, 0).1;
        for set in [None, Some(ids[1]), Some(ids[0]), Some(ids[2])] {
            if let Some(id) = set {
                s.set(id)?;
            }
            let any = if set.is_some() { 0 } else { 1 };
            let all = if set == Some(ids[2]) { 0 } else { 1 };
            let got = (look(s, false), look(s, true));
            s.value(format!("any, all after {set:?}"), format!("{got:?}"), format!("{:?}", (any, all)));
        }
        // wait_for_all is a flag, whatever its bits.
        let mut events = ids.map(EventData::new);
        let mut args = WaitEventsArgs {
            events_ptr: events.as_mut_ptr() as u64,
            num_events: 3,
            wait_for_all: 0x100,
            ..Default::default()
        };
        s.reset(ids[0])?;
        let result = s.call(&mut args);
        s.ok("wait_for_all 0x100", result);
        s.value("wait_result", args.wait_result, WAIT_RESULT_TIMEOUT);
    }

    safe kfd auto_reset "an event that resets itself is consumed by the wait that finds it set" {
        let id = s.signal_event(true)?;
        s.set(id)?;
        s.set(id)?;
        let (_, first) = s.wait(&mut [EventData::new(id)], false, 0);
        let (_, second) = s.wait(&mut [EventData::new(id)], false, 0);
        s.value("two waits after two sets", format!("{first} {second}"), "0 1");
        s.set(id)?;
        let (_, twice) = s.wait(&mut [EventData::new(id), EventData::new(id)], true, 0);
        s.value("all of the same event twice: the second entry finds it reset", twice, WAIT_RESULT_TIMEOUT);
        let (_, after) = s.wait(&mut [EventData::new(id)], false, 0);
        s.value("and it is consumed", after, WAIT_RESULT_TIMEOUT);
    }

    safe kfd consumed_on_failure "entries in front of a bad one have consumed their events" {
        let id = s.signal_event(true)?;
        s.set(id)?;
        let (result, outcome) = s.wait(&mut [EventData::new(id), EventData::new(999)], false, 0);
        s.err("an unknown event behind a set one", result, Errno::EINVAL);
        s.value("wait_result", outcome, WAIT_RESULT_FAIL);
        let (_, after) = s.wait(&mut [EventData::new(id)], false, 0);
        s.value("the set one is consumed", after, WAIT_RESULT_TIMEOUT);
    }

    safe kfd ages "an event's age starts at 1 and moves with every set; another age than the caller's is a signal" {
        let id = s.signal_event(true)?;
        let mut data = [aged(id, 1)];
        let (_, outcome) = s.wait(&mut data, false, 0);
        s.value("age 1: nothing new", outcome, WAIT_RESULT_TIMEOUT);
        s.value("age afterwards", data[0].signal_event().last_event_age, 1);
        for stale in [2, 77, u64::MAX] {
            let mut data = [aged(id, stale)];
            let (_, outcome) = s.wait(&mut data, false, 0);
            s.value(format!("age {stale}"), outcome, WAIT_RESULT_COMPLETE);
            s.value("age afterwards", data[0].signal_event().last_event_age, 1);
        }
        s.set(id)?;
        s.set(id)?;
        let mut data = [aged(id, 1)];
        let (_, outcome) = s.wait(&mut data, false, 0);
        s.value("after two sets", outcome, WAIT_RESULT_COMPLETE);
        s.value("age afterwards", data[0].signal_event().last_event_age, 3);
        let mut data = [aged(id, 3)];
        let (_, outcome) = s.wait(&mut data, false, 0);
        s.value("the sets are consumed", outcome, WAIT_RESULT_TIMEOUT);
        s.set(id)?;
        s.reset(id)?;
        let mut data = [aged(id, 3)];
        let (_, outcome) = s.wait(&mut data, false, 0);
        s.value("set and reset: the age tells", outcome, WAIT_RESULT_COMPLETE);
        s.value("age afterwards", data[0].signal_event().last_event_age, 4);
        let mut data = [aged(id, 0)];
        let (_, outcome) = s.wait(&mut data, false, 0);
        s.value("age 0 opts out", outcome, WAIT_RESULT_TIMEOUT);
        s.value("age afterwards", data[0].signal_event().last_event_age, 0);
    }

    safe kfd no_age_without_signal "only signal events have ages; the payload of another event is not looked at" {
        for kind in [EVENT_MEMORY, EVENT_HW_EXCEPTION, EVENT_DEBUG_EVENT, EVENT_QUEUE_EVENT] {
            let id = s.create_event(kind, true)?.event_id;
            let mut data = [aged(id, 99)];
            let (result, outcome) = s.wait(&mut data, false, 0);
            s.ok(format!("type {kind} with payload 99"), result);
            s.value("wait_result", outcome, WAIT_RESULT_TIMEOUT);
            s.value("payload", data[0].signal_event().last_event_age, 99);
        }
    }

    safe kfd bad_arrays "an array that cannot be read is EFAULT, and wait_result says so" {
        let nowhere = s.untouchable()?;
        let id = s.signal_event(false)?;
        s.set(id)?;
        for (what, array) in [("null", 0), ("untouchable", nowhere), ("kernel", KERNEL_ADDRESS)] {
            let mut args = WaitEventsArgs { events_ptr: array, num_events: 1, ..Default::default() };
            let result = s.call(&mut args);
            s.err(format!("{what} array"), result, Errno::EFAULT);
            s.value("wait_result", args.wait_result, WAIT_RESULT_FAIL);
        }
        // The second entry lies beyond the end of the memory.
        let page = s.anonymous(8192, libc::PROT_READ | libc::PROT_WRITE)?;
        s.munmap(page + 4096, 4096)?;
        let first = page + 4096 - size_of::<EventData>() as u64;
        // SAFETY: inside the page that is mapped.
        unsafe { (first as *mut EventData).write(EventData::new(id)) };
        let mut args = WaitEventsArgs { events_ptr: first, num_events: 2, ..Default::default() };
        let result = s.call(&mut args);
        s.err("half an array", result, Errno::EFAULT);
        // An age is written back, which read-only memory does not take.
        let page = s.anonymous(4096, libc::PROT_READ | libc::PROT_WRITE)?;
        // SAFETY: the page just mapped, which is made read-only afterwards.
        unsafe {
            (page as *mut EventData).write(aged(id, 7));
            libc::mprotect(page as *mut libc::c_void, 4096, libc::PROT_READ);
        }
        let mut args = WaitEventsArgs { events_ptr: page, num_events: 1, ..Default::default() };
        let result = s.call(&mut args);
        s.err("a read-only array and an age", result, Errno::EFAULT);
    }

    risky kfd too_many_entries "the kernel holds 56 bytes an entry in one allocation of 4 MiB at most: ENOMEM beyond" {
        for (count, want) in [(74_898, Errno::EFAULT), (74_899, Errno::ENOMEM), (u32::MAX, Errno::ENOMEM)] {
            let mut args = WaitEventsArgs { num_events: count, ..Default::default() };
            let result = s.call(&mut args);
            s.err(format!("{count} entries"), result, want);
            s.value("wait_result", args.wait_result, WAIT_RESULT_FAIL);
        }
    }

    safe kfd many_waits "one wait may name many events, and the same one several times" {
        let ids: Vec<u32> = (0..100).map(|_| s.signal_event(false)).collect::<Result<_, _>>()?;
        let mut data: Vec<EventData> = ids.iter().cycle().take(1000).map(|id| EventData::new(*id)).collect();
        let (result, outcome) = s.wait(&mut data, false, 0);
        s.ok("1000 entries", result);
        s.value("wait_result", outcome, WAIT_RESULT_TIMEOUT);
        for id in &ids {
            s.set(*id)?;
        }
        let (_, outcome) = s.wait(&mut data, true, 0);
        s.value("all set", outcome, WAIT_RESULT_COMPLETE);
    }

    safe kfd set_while_waiting "a set wakes who waits" {
        let ids = [s.signal_event(false)?, s.signal_event(true)?];
        for all in [false, true] {
            let outcome = while_waiting(s, &mut ids.map(EventData::new), all, || {
                s.set(ids[1])?;
                if all { s.set(ids[0]) } else { Ok(()) }
            })?;
            s.ok(format!("wait_for_all {all}"), outcome.0);
            s.value("wait_result", outcome.1, WAIT_RESULT_COMPLETE);
        }
        let (_, after) = s.wait(&mut [EventData::new(ids[1])], false, 0);
        s.value("the one that resets itself is reset", after, WAIT_RESULT_TIMEOUT);
    }

    safe kfd age_while_waiting "who is woken gets the new age" {
        let id = s.signal_event(true)?;
        let mut data = [aged(id, 1)];
        let outcome = while_waiting(s, &mut data, false, || s.set(id))?;
        s.ok("WAIT_EVENTS", outcome.0);
        s.value("wait_result", outcome.1, WAIT_RESULT_COMPLETE);
        s.value("age", data[0].signal_event().last_event_age, 2);
    }

    safe kfd destroyed_while_waiting "who waits for an event that is destroyed gets EIO and WAIT_RESULT_FAIL" {
        let ids = [s.signal_event(false)?, s.create_event(EVENT_MEMORY, false)?.event_id];
        for id in ids {
            let outcome = while_waiting(s, &mut [EventData::new(id)], false, || s.destroy(id))?;
            s.err(format!("event {id:#x}"), outcome.0, Errno::EIO);
            s.value("wait_result", outcome.1, WAIT_RESULT_FAIL);
        }
    }

    safe kfd two_waiters "a set wakes every waiter of an event that resets itself" {
        let id = s.signal_event(true)?;
        let tids = [AtomicI32::new(0), AtomicI32::new(0)];
        let session = &*s;
        let outcomes = std::thread::scope(|scope| {
            let waiters = tids.each_ref().map(|tid| {
                scope.spawn(move || {
                    tid.store(thread_id(), Ordering::SeqCst);
                    session.wait(&mut [EventData::new(id)], false, u32::MAX)
                })
            });
            for tid in &tids {
                while tid.load(Ordering::SeqCst) == 0 {
                    std::thread::yield_now();
                }
                until_asleep(tid.load(Ordering::SeqCst));
            }
            let set = session.set(id);
            (set, waiters.map(|waiter| waiter.join().ok()))
        });
        s.ok("SET_EVENT", outcomes.0);
        for outcome in outcomes.1 {
            let (result, outcome) = outcome.ok_or_else(|| Stop::Failed("a waiting thread panicked".to_string()))?;
            s.ok("WAIT_EVENTS", result);
            s.value("wait_result", outcome, WAIT_RESULT_COMPLETE);
        }
        let (_, after) = s.wait(&mut [EventData::new(id)], false, 0);
        s.value("and it is reset", after, WAIT_RESULT_TIMEOUT);
    }

    safe kfd signals "a signal ends a wait with EINTR and the time that is left, unless its handler restarts what it interrupts" {
        for (what, flags, timeout, want) in [
            ("a handler that does not restart", 0, 60_000, Err(Errno::EINTR)),
            ("without a time limit", 0, u32::MAX, Err(Errno::EINTR)),
            ("a handler that restarts", libc::SA_RESTART, 300, Ok(())),
        ] {
            let id = s.signal_event(true)?;
            // Two events of which one is set: a wait for both has consumed it.
            let set = s.signal_event(true)?;
            s.set(set)?;
            handle(libc::SIGUSR1, flags)?;
            let (tid, session) = (AtomicI32::new(0), &*s);
            let (result, args) = std::thread::scope(|scope| {
                let waiter = scope.spawn(|| {
                    tid.store(thread_id(), Ordering::SeqCst);
                    let mut events = [EventData::new(id), EventData::new(set)];
                    let events_ptr = events.as_mut_ptr() as u64;
                    let mut args =
                        WaitEventsArgs { events_ptr, num_events: 2, wait_for_all: 1, timeout, wait_result: 77 };
                    (session.call(&mut args), args)
                });
                while tid.load(Ordering::SeqCst) == 0 {
                    std::thread::yield_now();
                }
                let waiting = tid.load(Ordering::SeqCst);
                until_asleep(waiting);
                // SAFETY: a thread of this process, which has a handler for the signal.
                unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), waiting, libc::SIGUSR1) };
                waiter.join().map_err(|_| Stop::Failed("the waiting thread panicked".to_string()))
            })?;
            s.expect(what, result, want);
            let (outcome, left) = match (want, timeout) {
                (Ok(()), _) => (WAIT_RESULT_TIMEOUT, args.timeout <= timeout),
                (_, u32::MAX) => (WAIT_RESULT_FAIL, args.timeout == u32::MAX),
                _ => (WAIT_RESULT_FAIL, args.timeout <= timeout && args.timeout > timeout / 2),
            };
            s.value("wait_result", args.wait_result, outcome);
            s.value("timeout is what is left", left, true);
            let (_, consumed) = s.wait(&mut [EventData::new(set)], false, 0);
            let again = if want.is_err() { WAIT_RESULT_COMPLETE } else { WAIT_RESULT_TIMEOUT };
            s.value("the event that was set", consumed, again);
        }
    }

    safe kfd limit_before_mmap "without the page mapped there are 256 slots, one of them reserved: then ENOSPC" {
        let (count, stopped) = fill(s);
        s.value("events", count, 255);
        s.expect("one more", stopped, Err(Errno::ENOSPC));
        let other = s.create_event(EVENT_MEMORY, false).map(drop);
        s.ok("an event without a slot", other);
        let debug = s.create_event(EVENT_DEBUG_EVENT, false).map(drop);
        s.err("a debug event", debug, Errno::ENOSPC);
        let result = s.destroy(100);
        s.ok("DESTROY_EVENT 100", result);
        let id = s.signal_event(false)?;
        s.value("event_id", id, 100);
    }

    safe kfd limit_after_mmap "as many slots as are mapped may be used, 4096 at most" {
        s.signal_event(false)?;
        for (bytes, want) in [(4096, 511), (20480, 2559), (32768, 4095)] {
            let at = s.mmap(s.kfd, bytes, PAGE)?;
            let (count, stopped) = fill(s);
            s.expect(format!("{bytes} bytes: one too many"), stopped, Err(Errno::ENOSPC));
            // What was there before counts too.
            s.value("more events than before", count > 0, true);
            let result = s.destroy(want);
            s.ok(format!("the last one is {want}"), result);
            let result = s.destroy(want + 1);
            s.err(format!("there is no {}", want + 1), result, Errno::EINVAL);
            s.munmap(at, bytes)?;
        }
    }

    safe kfd map_less "a shorter mapping takes slots away from later events, not from those there are" {
        s.signal_event(false)?;
        let at = s.mmap(s.kfd, 32768, PAGE)?;
        for _ in 0..600 {
            s.signal_event(false)?;
        }
        s.munmap(at, 32768)?;
        s.mmap(s.kfd, 4096, PAGE)?;
        let result = s.signal_event(false).map(drop);
        s.err("a new event with 601 in use and 512 mapped", result, Errno::ENOSPC);
        let result = s.set(600);
        s.ok("SET_EVENT 600", result);
        s.destroy(3)?;
        let result = s.signal_event(false).map(drop);
        s.ok("a new event where one below 512 is free", result);
    }

    safe kfd page_mmap "the page maps up to 32768 bytes once there is a signal event; gpu_id and offset do not matter" {
        let result = s.mmap(s.kfd, 32768, PAGE).map(drop);
        s.err("before any event", result, Errno::EINVAL);
        s.create_event(EVENT_MEMORY, false)?;
        let result = s.mmap(s.kfd, 32768, PAGE).map(drop);
        s.err("after an event without a slot", result, Errno::EINVAL);
        s.signal_event(false)?;
        for (len, want) in [
            (1, Ok(())),
            (4096, Ok(())),
            (12288, Ok(())),
            (32768, Ok(())),
            (32769, Err(Errno::EINVAL)),
            (65536, Err(Errno::EINVAL)),
            (0, Err(Errno::EINVAL)),
        ] {
            let result = s.mmap(s.kfd, len, PAGE).map(drop);
            s.expect(format!("{len} bytes"), result, want);
        }
        let result = s.mmap(s.kfd, 32768, PAGE | 77 << 46).map(drop);
        s.ok("with a gpu_id", result);
        let result = s.mmap(s.kfd, 32768, PAGE | 4096).map(drop);
        s.ok("with offset 4096", result);
        let result = s.mmap(s.kfd, 32768, PAGE | 1).map(drop);
        s.err("with offset 1", result, Errno::EINVAL);
    }

    safe kfd one_byte_mapped "a mapping of one byte is one of a page: 512 slots" {
        s.signal_event(false)?;
        s.mmap(s.kfd, 1, PAGE)?;
        let (count, stopped) = fill(s);
        s.value("events", count, 510);
        s.expect("one more", stopped, Err(Errno::ENOSPC));
    }

    safe kfd slots "an unsignalled slot is all ones, also that of an event whose id was used before" {
        let id = s.signal_event(false)?;
        let page = s.mmap(s.kfd, 32768, PAGE)?;
        // SAFETY: a slot of the page that is mapped until the case ends; the kernel shares it.
        let slot = unsafe { std::sync::atomic::AtomicU64::from_ptr((page as *mut u64).add(id as usize)) };
        s.value("slot of a new event", format!("{:#x}", slot.load(Ordering::SeqCst)), "0xffffffffffffffff");
        s.set(id)?;
        s.value("after SET_EVENT", format!("{:#x}", slot.load(Ordering::SeqCst)), "0xffffffffffffffff");
        slot.store(id.into(), Ordering::SeqCst);
        let (_, outcome) = s.wait(&mut [EventData::new(id)], false, 0);
        s.value("a wait for the set event", outcome, WAIT_RESULT_COMPLETE);
        s.value("a store stays without an interrupt", slot.load(Ordering::SeqCst), id);
        s.destroy(id)?;
        s.value("after DESTROY_EVENT", slot.load(Ordering::SeqCst), id);
        let again = s.signal_event(false)?;
        s.value("the id is used again", again, id);
        s.value("slot of the new event", format!("{:#x}", slot.load(Ordering::SeqCst)), "0xffffffffffffffff");
    }

    safe kfd private_page "the page can be mapped privately and read-only" {
        s.signal_event(false)?;
        // SAFETY: without MAP_FIXED the kernel chooses a free place.
        let result = unsafe { s.driver.mmap(0, 32768, libc::PROT_READ, libc::MAP_SHARED, s.kfd, PAGE) };
        s.ok("shared, read-only", result.map(drop));
        // SAFETY: as above.
        let result = unsafe { s.driver.mmap(0, 32768, libc::PROT_READ, libc::MAP_PRIVATE, s.kfd, PAGE) };
        s.ok("private, read-only", result.map(drop));
    }
}

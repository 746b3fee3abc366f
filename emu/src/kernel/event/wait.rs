//! WAIT_EVENTS (`kfd_wait_on_events`).

use super::ioctl::EntryFacts;
use super::{Events, State, Waiter};
use crate::kernel::user::UserMemory;
use kfd::Errno;
use kfd::uapi::{
    EVENT_HW_EXCEPTION, EVENT_MEMORY, EVENT_SIGNAL, EventData, HsaSignalEventData, Pod, WAIT_RESULT_COMPLETE,
    WAIT_RESULT_FAIL, WAIT_RESULT_TIMEOUT,
};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The argument of a wait.
pub struct Wait<'a> {
    /// The caller's memory.
    pub user: &'a UserMemory,
    /// Address of the array of `kfd_event_data`.
    pub array: u64,
    /// Entries.
    pub count: u32,
    /// All of them, or any.
    pub all: bool,
    /// Ages are looked at.
    pub ages: bool,
    /// Milliseconds; 0 polls, `u32::MAX` waits for ever.
    pub timeout_ms: u32,
    /// The check of an entry.
    pub entry: &'a dyn Fn(&EntryFacts) -> Result<(), Errno>,
}

/// One entry of the array, as far as it was taken up.
struct Entry {
    id: u32,
    age_enabled: bool,
}

/// `test_event_condition`.
fn result(all: bool, activated: &[Option<bool>]) -> u32 {
    let mut set = 0;
    for entry in activated {
        match entry {
            None => return WAIT_RESULT_FAIL,
            Some(true) if !all => return WAIT_RESULT_COMPLETE,
            Some(true) => set += 1,
            Some(false) => {}
        }
    }
    if set == activated.len() { WAIT_RESULT_COMPLETE } else { WAIT_RESULT_TIMEOUT }
}

impl Events {
    /// Waits. Returns a `WAIT_RESULT_*`.
    ///
    /// # Errors
    /// Those of `Wait::entry`; entries before the bad one have consumed their auto-reset events by then, as in the kernel.
    /// EFAULT: the array cannot be written.
    /// EINTR: a signal was handled; `Wait::timeout_ms` is what is left, and events that the wait had consumed are set again.
    pub fn wait(&self, wait: &mut Wait<'_>) -> Result<u32, Errno> {
        let mut state = self.state();
        let id = state.next_wait;
        state.next_wait += 1;
        state.waits.insert(id, Vec::with_capacity(wait.count as usize));
        let mut entries = Vec::with_capacity(wait.count as usize);
        let outcome = state.enlist(id, wait, &mut entries);
        if let Err(errno) = outcome {
            state.delist(id, &entries);
            return Err(errno);
        }

        let deadline = match wait.timeout_ms {
            u32::MAX => None,
            ms => Instant::now().checked_add(Duration::from_millis(u64::from(ms.min(0x7fff_ffff)))),
        };
        let result = loop {
            let result = result(wait.all, state.waits.get(&id).map_or(&[], Vec::as_slice));
            if result != WAIT_RESULT_TIMEOUT || wait.timeout_ms == 0 {
                break result;
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                break WAIT_RESULT_TIMEOUT;
            }
            let seen = self.sequence.load(Ordering::Acquire);
            drop(state);
            // A sleep without a limit is restarted by the host where the handler says so.
            let interrupted = !sleep(&self.sequence, seen, left) && (left.is_none() || signals::interrupt());
            state = self.state();
            if interrupted {
                let consumed = state.consumed(id, &entries);
                state.delist(id, &entries);
                // `undo_auto_reset` of `free_waiters`: a set like any other.
                consumed.into_iter().for_each(|event| state.set(event));
                self.wake();
                wait.timeout_ms = left.map_or(wait.timeout_ms, |left| left.as_millis() as u32);
                return Err(Errno::EINTR);
            }
        };
        let copied = if result == WAIT_RESULT_COMPLETE { state.copy_data(id, wait, &entries) } else { Ok(()) };
        state.delist(id, &entries);
        copied.map(|()| result)
    }

    /// Who waits looks again.
    pub(super) fn wake(&self) {
        self.sequence.fetch_add(1, Ordering::AcqRel);
        let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: the word lives as long as `self`; waking takes no other pointer.
        unsafe { libc::syscall(libc::SYS_futex, self.sequence.as_ptr(), operation, i32::MAX) };
    }
}

/// Sleeps while the word has this value, for so long at most. False: a signal was handled.
fn sleep(word: &AtomicU32, value: u32, limit: Option<Duration>) -> bool {
    let time = limit
        .map(|limit| libc::timespec { tv_sec: limit.as_secs() as libc::time_t, tv_nsec: limit.subsec_nanos().into() });
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word and the time, if there is one, live until the call returns.
    let slept = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, time) };
    slept == 0 || Errno::last() != Errno::EINTR
}

/// What the process does with signals.
mod signals {
    /// Signals of the thread's own doing, which do not come while it sleeps.
    const OWN: [i32; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP];

    /// Whether a call that was interrupted is not restarted: there is a handler without SA_RESTART, which is taken to be
    /// the one that ran.
    pub fn interrupt() -> bool {
        (1..=64).filter(|signal| !OWN.contains(signal)).any(|signal| {
            // SAFETY: zeros are a valid `sigaction`, which the call overwrites; without a new one nothing changes.
            let (known, action) = unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                (libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0, action)
            };
            known && action.sa_sigaction > libc::SIG_IGN && action.sa_flags & libc::SA_RESTART == 0
        })
    }
}

impl State {
    /// `init_event_waiter` for every entry.
    fn enlist(&mut self, wait_id: u64, wait: &Wait<'_>, entries: &mut Vec<Entry>) -> Result<(), Errno> {
        for index in 0..wait.count as usize {
            let data: Option<EventData> = wait.user.get(entry_address(wait.array, index)).ok();
            let id = data.map(|data| data.event_id);
            let known = id.is_some_and(|id| self.events.contains_key(&id));
            (wait.entry)(&EntryFacts { index, id, known })?;
            let data = data.ok_or(Errno::EFAULT)?;
            let event = self.events.get_mut(&data.event_id).ok_or(Errno::EINVAL)?;
            // 0 is what callers that know nothing of ages pass, and other events have none.
            let age = if wait.ages && event.kind == EVENT_SIGNAL { data.signal_event().last_event_age } else { 0 };
            let mut activated = event.signaled;
            event.signaled = event.signaled && !event.auto_reset;
            activated |= age != 0 && age != event.age;
            if !activated {
                event.waiters.push(Waiter { wait: wait_id, index });
            }
            self.waits.entry(wait_id).or_default().push(Some(activated));
            entries.push(Entry { id: data.event_id, age_enabled: age != 0 });
        }
        Ok(())
    }

    /// Events that reset themselves and that the wait has found or seen set.
    fn consumed(&self, wait_id: u64, entries: &[Entry]) -> Vec<u32> {
        let activated = self.waits.get(&wait_id).map_or(&[][..], Vec::as_slice);
        let set = entries.iter().zip(activated).filter(|(_, activated)| **activated == Some(true));
        let resets = |id: &u32| self.events.get(id).is_some_and(|event| event.auto_reset);
        set.map(|(entry, _)| entry.id).filter(resets).collect()
    }

    fn delist(&mut self, wait_id: u64, entries: &[Entry]) {
        for entry in entries {
            if let Some(event) = self.events.get_mut(&entry.id) {
                event.waiters.retain(|waiter| waiter.wait != wait_id);
            }
        }
        self.waits.remove(&wait_id);
    }

    /// `copy_signaled_event_data`: the payload of what was set.
    fn copy_data(&self, wait_id: u64, wait: &Wait<'_>, entries: &[Entry]) -> Result<(), Errno> {
        let activated = self.waits.get(&wait_id).map_or(&[][..], Vec::as_slice);
        for (index, (entry, activated)) in entries.iter().zip(activated).enumerate() {
            let event = self.events.get(&entry.id).ok_or(Errno::EINVAL)?;
            if *activated != Some(true) {
                continue;
            }
            let to = entry_address(wait.array, index);
            match event.kind {
                EVENT_MEMORY => wait.user.write(to, event.memory.as_bytes())?,
                EVENT_HW_EXCEPTION => wait.user.write(to, event.hardware.as_bytes())?,
                EVENT_SIGNAL if entry.age_enabled => {
                    wait.user.write(to, HsaSignalEventData { last_event_age: event.age }.as_bytes())?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn entry_address(array: u64, index: usize) -> u64 {
    array.wrapping_add((index * size_of::<EventData>()) as u64)
}

//! Stopping a queue between two turns of its waves, and letting it go on: what hardware does when it saves the waves of a
//! queue to its save area and restores them later.
//!
//! Threads that work for a queue are its agents: its packet processor while it has a packet in hand, and the threads that
//! run waves. An agent rests when the queue is to stop; once all of them do, nothing of the queue runs.

use super::runlist::{Key, Runlist};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often who rests looks whether it is to end.
const LOOK: Duration = Duration::from_millis(20);

#[derive(Default)]
struct State {
    /// UPDATE_QUEUE paused the queue.
    paused: bool,
    /// The queue gave up its hardware slot, or is about to, with a packet in hand.
    without_slot: bool,
    /// An agent waits for a slot.
    acquiring: bool,
    agents: u32,
    resting: u32,
    /// Resident waves of agents that rest.
    waves: u32,
    /// Threads that wait for a change: without any, nobody is told of one, which would cost a system call.
    waiting: u32,
}

/// The hold on one queue.
pub struct Hold {
    runlist: Arc<Runlist>,
    key: Key,
    priority: AtomicU32,
    /// Agents are to look at the state.
    wanted: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

impl Hold {
    /// Of a new queue.
    pub fn new(runlist: Arc<Runlist>, priority: u32) -> Hold {
        Hold {
            key: runlist.key(),
            runlist,
            priority: AtomicU32::new(priority),
            wanted: AtomicBool::new(false),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.waiting += 1;
        state = self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        state.waiting -= 1;
        state
    }

    fn tell(&self, state: &State) {
        if state.waiting > 0 {
            self.changed.notify_all();
        }
    }

    fn update(&self, state: &State) {
        self.wanted.store(state.paused || state.without_slot, Ordering::Release);
        self.tell(state);
    }

    /// UPDATE_QUEUE's priority.
    pub fn set_priority(&self, priority: u32) {
        self.priority.store(priority, Ordering::Relaxed);
        self.runlist.set_priority(self.key, priority);
    }

    /// Gets a hardware slot for a queue without a packet in hand; `wait` is called before that takes time.
    pub fn map(&self, wait: impl FnOnce(), cancelled: impl Fn() -> bool) -> bool {
        self.runlist.acquire(self.key, self.priority.load(Ordering::Relaxed), wait, cancelled)
    }

    /// Gives the slot back.
    pub fn unmap(&self) {
        self.runlist.release(self.key);
    }

    /// Whether the queue has a slot.
    #[cfg(test)]
    pub fn is_mapped(&self) -> bool {
        self.runlist.is_mapped(self.key)
    }

    /// Whether a slot is free that nobody else wants.
    pub fn has_room(&self) -> bool {
        self.runlist.has_room()
    }

    /// Whether the queue, which has a packet in hand or not, should give its slot to another.
    pub fn must_yield(&self, idle: bool) -> bool {
        self.runlist.must_yield(self.key, idle)
    }

    /// An agent begins; not while the queue is stopped.
    pub fn enter(&self, cancelled: impl Fn() -> bool) {
        let mut state = self.state();
        while (state.paused || state.without_slot) && !cancelled() {
            state = self.wait(state);
        }
        state.agents += 1;
    }

    /// An agent ends.
    pub fn leave(&self) {
        let mut state = self.state();
        state.agents -= 1;
        self.tell(&state);
    }

    /// An agent with so many resident waves is between two turns of them: here it stays while the queue is stopped. It
    /// also gives the slot to another queue when that is due.
    pub fn rest(&self, waves: u32, cancelled: impl Fn() -> bool) {
        if !self.wanted.load(Ordering::Acquire) {
            if !self.must_yield(false) {
                return;
            }
            let mut state = self.state();
            state.without_slot = true;
            self.update(&state);
        }
        let mut state = self.state();
        state.resting += 1;
        state.waves += waves;
        self.tell(&state);
        while (state.paused || state.without_slot) && !cancelled() {
            // Saved is saved: the slot is free for others once all agents rest.
            if state.without_slot && !state.paused && !state.acquiring && state.agents == state.resting {
                state.acquiring = true;
                drop(state);
                self.runlist.release(self.key);
                let given_up = || cancelled() || self.state().paused;
                let priority = self.priority.load(Ordering::Relaxed);
                let mapped = self.runlist.acquire(self.key, priority, || {}, given_up);
                state = self.state();
                state.acquiring = false;
                state.without_slot = !mapped;
                self.update(&state);
                continue;
            }
            state = self.wait(state);
        }
        state.resting -= 1;
        state.waves -= waves;
    }

    /// UPDATE_QUEUE stops the queue. When this returns, nothing of it runs, and its slot is free.
    pub fn pause(&self) {
        let mut state = self.state();
        state.paused = true;
        self.update(&state);
        while state.agents != state.resting || state.acquiring {
            state = self.wait(state);
        }
        state.without_slot = state.agents != 0;
        drop(state);
        self.runlist.release(self.key);
    }

    /// UPDATE_QUEUE lets it go on.
    pub fn resume(&self) {
        let mut state = self.state();
        state.paused = false;
        self.update(&state);
    }

    /// Waves of the stopped queue that were not at their end.
    pub fn saved_waves(&self) -> u32 {
        self.state().waves
    }

    /// Who rests looks whether it is to end.
    pub fn wake(&self) {
        self.changed.notify_all();
    }
}

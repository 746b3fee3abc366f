//! Hardware queues: a GPU runs as many queues at a time as it has slots for (`num_cp_queues`), and the scheduler switches
//! between more.
//!
//! What clients may rely on: every queue with work has a turn, also while others run for ever or wait for signals, and a
//! queue of a higher priority does not wait for one of a lower to end its turn. A queue without a slot is not woken by its
//! doorbell; its write index is read when it gets one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a queue keeps its slot while others of its priority wait.
const TURN: Duration = Duration::from_millis(1);
/// Who has waited for so long comes first whatever its priority, so that nobody starves.
const TOO_LONG: Duration = Duration::from_millis(32);
/// How often who waits looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(2);

/// Names a queue on its GPU, among all processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(u64);

#[derive(Clone, Copy, Debug)]
struct Entry {
    priority: u32,
    since: Instant,
}

impl Entry {
    /// Who waits and is first in the order of these has the next slot.
    fn rank(&self, now: Instant) -> (bool, u32, Duration) {
        let waited = now.saturating_duration_since(self.since);
        (waited >= TOO_LONG, self.priority, waited)
    }
}

#[derive(Default)]
struct State {
    mapped: BTreeMap<Key, Entry>,
    waiting: BTreeMap<Key, Entry>,
}

impl State {
    fn first_waiting(&self, now: Instant) -> Option<(Key, Entry)> {
        self.waiting.iter().max_by_key(|(_, entry)| entry.rank(now)).map(|(key, entry)| (*key, *entry))
    }
}

/// The slots of one GPU.
pub struct Runlist {
    slots: usize,
    state: Mutex<State>,
    changed: Condvar,
    /// Someone waits.
    contended: AtomicBool,
    keys: AtomicU64,
}

impl Runlist {
    /// A GPU with so many slots.
    pub fn new(slots: u32) -> Runlist {
        Runlist {
            slots: slots.max(1) as usize,
            state: Mutex::default(),
            changed: Condvar::new(),
            contended: AtomicBool::new(false),
            keys: AtomicU64::new(0),
        }
    }

    /// A name for a new queue.
    pub fn key(&self) -> Key {
        Key(self.keys.fetch_add(1, Ordering::Relaxed))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether someone waits for a slot.
    pub fn contended(&self) -> bool {
        self.contended.load(Ordering::Relaxed)
    }

    /// Whether a queue has a slot.
    #[cfg(test)]
    pub fn is_mapped(&self, key: Key) -> bool {
        self.state().mapped.contains_key(&key)
    }

    /// Whether a slot is free and nobody waits for it.
    pub fn has_room(&self) -> bool {
        let state = self.state();
        state.mapped.len() < self.slots && state.waiting.is_empty()
    }

    /// Waits for a slot, and calls `wait` before it has to. False: `cancelled` held first.
    pub fn acquire(&self, key: Key, priority: u32, wait: impl FnOnce(), cancelled: impl Fn() -> bool) -> bool {
        let mut state = self.state();
        if state.mapped.contains_key(&key) {
            return true;
        }
        let mut wait = Some(wait);
        state.waiting.insert(key, Entry { priority, since: Instant::now() });
        loop {
            let first = state.first_waiting(Instant::now()).is_some_and(|(first, _)| first == key);
            let mine = first && state.mapped.len() < self.slots;
            let gives_up = !mine && cancelled();
            if mine || gives_up {
                state.waiting.remove(&key);
                if mine {
                    state.mapped.insert(key, Entry { priority, since: Instant::now() });
                }
                self.contended.store(!state.waiting.is_empty(), Ordering::Relaxed);
                self.changed.notify_all();
                return mine;
            }
            self.contended.store(true, Ordering::Relaxed);
            if let Some(wait) = wait.take() {
                wait();
            }
            state = self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Gives a slot back, if the queue has one.
    pub fn release(&self, key: Key) {
        if self.state().mapped.remove(&key).is_some() {
            self.changed.notify_all();
        }
    }

    /// Whether a queue has a slot that it must give up for another: its turn is over, or one of a higher priority waits.
    /// Without work it gives the slot to anyone.
    pub fn must_yield(&self, key: Key, idle: bool) -> bool {
        if !self.contended() {
            return false;
        }
        let (state, now) = (self.state(), Instant::now());
        let (Some(mine), Some((_, other))) = (state.mapped.get(&key), state.first_waiting(now)) else { return false };
        if state.mapped.len() < self.slots {
            return false;
        }
        let turn_is_over = now.saturating_duration_since(mine.since) >= TURN;
        let (starves, priority, _) = other.rank(now);
        idle || (turn_is_over && (starves || priority >= mine.priority)) || priority > mine.priority
    }

    /// UPDATE_QUEUE: the priority changes.
    pub fn set_priority(&self, key: Key, priority: u32) {
        let mut state = self.state();
        let State { mapped, waiting } = &mut *state;
        for entry in [mapped.get_mut(&key), waiting.get_mut(&key)].into_iter().flatten() {
            entry.priority = priority;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(state: &mut State, key: u64, priority: u32, since: Instant) {
        state.waiting.insert(Key(key), Entry { priority, since });
    }

    #[test]
    fn the_order_of_those_that_wait() {
        let now = Instant::now();
        let ago = |ms| now.checked_sub(Duration::from_millis(ms)).unwrap();
        let mut state = State::default();
        waits(&mut state, 1, 7, ago(2));
        waits(&mut state, 2, 7, ago(1));
        assert_eq!(state.first_waiting(now).map(|(key, _)| key), Some(Key(1)), "who waits longest");
        waits(&mut state, 3, 8, ago(0));
        assert_eq!(state.first_waiting(now).map(|(key, _)| key), Some(Key(3)), "the highest priority");
        waits(&mut state, 4, 0, ago(40));
        assert_eq!(state.first_waiting(now).map(|(key, _)| key), Some(Key(4)), "who has waited too long");
    }

    #[test]
    fn slots_go_round() {
        let list = Runlist::new(1);
        let (low, high) = (list.key(), list.key());
        assert!(list.acquire(low, 7, || panic!("there is a slot"), || false));
        assert!(!list.must_yield(low, true), "nobody waits");
        std::thread::scope(|scope| {
            let other = scope.spawn(|| list.acquire(high, 8, || {}, || false));
            while !list.must_yield(low, false) {
                std::thread::yield_now();
            }
            list.release(low);
            assert!(other.join().unwrap());
        });
        // The other way round: a lower one gets a slot when the other has nothing to do.
        std::thread::scope(|scope| {
            let other = scope.spawn(|| list.acquire(low, 7, || {}, || false));
            while !list.contended() {
                std::thread::yield_now();
            }
            assert!(list.must_yield(high, true));
            list.release(high);
            assert!(other.join().unwrap());
        });
        // A priority can change while others wait.
        std::thread::scope(|scope| {
            let other = scope.spawn(|| list.acquire(high, 7, || {}, || false));
            while !list.contended() {
                std::thread::yield_now();
            }
            list.set_priority(low, 9);
            list.set_priority(high, 10);
            let state = list.state();
            let of =
                |entries: &BTreeMap<Key, Entry>| -> Vec<u32> { entries.values().map(|entry| entry.priority).collect() };
            assert_eq!((of(&state.mapped), of(&state.waiting)), (vec![9], vec![10]));
            drop(state);
            assert!(list.must_yield(low, false));
            list.release(low);
            assert!(other.join().unwrap());
            list.release(high);
            assert!(list.has_room());
            assert!(list.acquire(low, 7, || {}, || false));
            assert!(!list.has_room());
        });
        // Who is told to stop does not wait for ever.
        assert!(!list.acquire(high, 8, || {}, || true));
        assert!(!list.contended());
    }
}

//! Asks running workers what their waves do, without stopping them.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use trace::Wave;

/// How long workers have for an answer. One looks after each round through its waves.
const PATIENCE: Duration = Duration::from_secs(1);

/// A question that workers look for between two turns.
#[derive(Default)]
pub struct Census {
    /// Counts the questions.
    asked: AtomicU32,
    state: Mutex<State>,
    answered: Condvar,
}

#[derive(Default)]
struct State {
    /// Workers that run.
    workers: u32,
    /// Workers that have not answered the question.
    missing: u32,
    waves: Vec<Wave>,
}

impl Census {
    /// The waves of all workers that answer in time, in the order of queues, packets, work-groups and waves.
    pub fn take(&self) -> Vec<Wave> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.waves.clear();
        state.missing = state.workers;
        self.asked.fetch_add(1, Ordering::Relaxed);
        let deadline = Instant::now() + PATIENCE;
        while state.missing != 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.answered.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.missing = 0;
        let mut waves = std::mem::take(&mut state.waves);
        drop(state);
        waves.sort_by_key(|wave| {
            let [x, y, z] = wave.workgroup;
            (wave.queue_id, wave.index, [z, y, x], wave.wave)
        });
        waves
    }

    /// A worker begins: the last question, which is not for it.
    pub fn enter(&self) -> u32 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.workers += 1;
        self.asked.load(Ordering::Relaxed)
    }

    /// The number of the last question.
    #[inline(always)]
    pub fn asked(&self) -> u32 {
        self.asked.load(Ordering::Relaxed)
    }

    /// A worker's answer to question `asked`, if that is still the one that is waited for.
    pub fn answer(&self, asked: u32, waves: impl Iterator<Item = Wave>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.missing != 0 && asked == self.asked.load(Ordering::Relaxed) {
            state.waves.extend(waves);
            state.missing -= 1;
            self.answered.notify_all();
        }
    }

    /// A worker ends; `seen` is the last question it answered, or entered with.
    pub fn leave(&self, seen: u32) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.workers -= 1;
        if state.missing != 0 && seen != self.asked.load(Ordering::Relaxed) {
            state.missing -= 1;
            self.answered.notify_all();
        }
    }
}

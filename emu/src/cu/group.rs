//! A resident work-group: its waves, LDS and barrier.

use super::code::Code;
use super::wave::{Row, State, Wave};
use std::sync::Arc;

/// A wave with what the scheduler keeps for it.
pub struct Resident {
    /// The wave.
    pub wave: Box<Wave>,
    /// Code it runs in.
    pub code: Option<Arc<Code>>,
    /// Signalled the split barrier in its current phase.
    signalled: bool,
    /// Phase of the split barrier that `s_barrier_wait` waits for.
    wait_for: u64,
}

/// A resident work-group.
pub struct Group {
    /// Work-group id.
    pub id: [u32; 3],
    /// Its waves.
    pub waves: Vec<Resident>,
    /// Waves that have not ended.
    live: u32,
    /// Live waves at the barrier.
    arrived: u32,
    /// Completed phases of the split barrier.
    phase: u64,
    /// Whether anybody signalled in the current phase.
    signals: u32,
    lds: Vec<Row>,
}

impl Group {
    /// An empty group with this much LDS.
    pub fn new(lds: u32) -> Group {
        Group {
            id: [0; 3],
            waves: Vec::new(),
            live: 0,
            arrived: 0,
            phase: 0,
            signals: 0,
            lds: vec![Row([0; 64]); (lds as usize).div_ceil(size_of::<Row>())],
        }
    }

    /// Takes a new identity: no waves, LDS of zeros.
    pub fn reset(&mut self, id: [u32; 3]) -> *mut u8 {
        self.id = id;
        self.waves.clear();
        (self.live, self.arrived, self.phase, self.signals) = (0, 0, 0, 0);
        self.lds.fill(Row([0; 64]));
        self.lds.as_mut_ptr().cast()
    }

    /// Adds a wave.
    pub fn push(&mut self, wave: Box<Wave>, code: Option<Arc<Code>>) {
        self.waves.push(Resident { wave, code, signalled: false, wait_for: 0 });
        self.live += 1;
    }

    /// Have all waves ended?
    pub fn done(&self) -> bool {
        self.live == 0
    }

    /// A wave came to `s_barrier`, or ended: ended waves count as arrived.
    pub fn arrive(&mut self, ended: bool) {
        if ended {
            self.live -= 1;
        } else {
            self.arrived += 1;
        }
        if self.arrived != 0 && self.arrived == self.live {
            self.arrived = 0;
            self.release(u64::MAX);
        }
    }

    /// A wave ended on a target with split barriers.
    pub fn leave(&mut self, index: usize) {
        self.live -= 1;
        // Its signal stays counted: it stands among those that have arrived.
        self.waves[index].signalled = false;
        self.complete();
    }

    /// Wave `index` signals the split barrier. True: it was the first of the phase.
    pub fn signal(&mut self, index: usize) -> bool {
        let first = self.signals == 0;
        self.signals += 1;
        let resident = &mut self.waves[index];
        resident.signalled = true;
        resident.wait_for = self.phase + 1;
        self.complete();
        first
    }

    /// Must wave `index` wait at `s_barrier_wait`?
    pub fn must_wait(&self, index: usize) -> bool {
        self.waves[index].wait_for > self.phase
    }

    /// Members, and signals of the current phase.
    pub fn barrier_state(&self) -> (u32, u32) {
        (self.waves.len() as u32, self.signals)
    }

    fn complete(&mut self) {
        let waiting_for = self.waves.iter().any(|r| r.wave.state != State::Ended && !r.signalled);
        if self.signals == 0 || waiting_for {
            return;
        }
        self.phase += 1;
        self.signals = 0;
        for resident in &mut self.waves {
            resident.signalled = false;
        }
        self.release(self.phase);
    }

    /// Readies the waves at the barrier that wait for no later phase than this.
    fn release(&mut self, phase: u64) {
        for resident in &mut self.waves {
            if resident.wave.state == State::Barrier && resident.wait_for <= phase {
                resident.wave.state = State::Ready;
            }
        }
    }
}

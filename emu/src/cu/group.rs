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
    /// Signalled the split barrier since it last completed.
    signalled: bool,
    /// The split barrier completed, and the wave has not waited for it yet.
    complete: bool,
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
    /// Signals of the split barrier since it last completed.
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
            signals: 0,
            lds: vec![Row([0; 64]); (lds as usize).div_ceil(size_of::<Row>())],
        }
    }

    /// Takes a new identity: no waves, LDS of zeros.
    pub fn reset(&mut self, id: [u32; 3]) -> *mut u8 {
        self.id = id;
        self.waves.clear();
        (self.live, self.arrived, self.signals) = (0, 0, 0);
        self.lds.fill(Row([0; 64]));
        self.lds.as_mut_ptr().cast()
    }

    /// Adds a wave.
    pub fn push(&mut self, wave: Box<Wave>, code: Option<Arc<Code>>) {
        self.waves.push(Resident { wave, code, signalled: false, complete: false });
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
            for resident in &mut self.waves {
                if resident.wave.state == State::Barrier {
                    resident.wave.state = State::Ready;
                }
            }
        }
    }

    /// A wave ended on a target with split barriers. It counts as having signalled.
    pub fn leave(&mut self) {
        self.live -= 1;
        self.complete();
    }

    /// Wave `index` signals the split barrier. True: it was the first to.
    pub fn signal(&mut self, index: usize) -> bool {
        let first = self.signals == 0;
        self.signals += 1;
        self.waves[index].signalled = true;
        self.complete();
        first
    }

    /// Wave `index` comes to `s_barrier_wait`. True: it must wait until the barrier completes.
    pub fn wait(&mut self, index: usize) -> bool {
        !std::mem::take(&mut self.waves[index].complete)
    }

    /// Does every wave that has not ended wait at the barrier?
    pub fn stuck(&self) -> bool {
        self.waves.iter().all(|r| matches!(r.wave.state, State::Ended | State::Barrier))
    }

    /// Members of the split barrier, and signals since it last completed.
    pub fn barrier_state(&self) -> (u32, u32) {
        (self.waves.len() as u32, self.signals)
    }

    /// Completes the split barrier when every wave has signalled or ended.
    fn complete(&mut self) {
        let missing = self.waves.iter().any(|r| r.wave.state != State::Ended && !r.signalled);
        if self.signals == 0 || missing {
            return;
        }
        self.signals = 0;
        for resident in &mut self.waves {
            resident.signalled = false;
            // Who waits already goes on; others find it complete when they come to wait.
            resident.complete = resident.wave.state != State::Barrier;
            if resident.wave.state == State::Barrier {
                resident.wave.state = State::Ready;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cu::mem::MemoryPort;
    use crate::memory::AddressSpace;

    fn group(waves: usize) -> Group {
        let mut group = Group::new(0);
        group.reset([0; 3]);
        for _ in 0..waves {
            let port = MemoryPort::new(Arc::new(AddressSpace::default()), std::ptr::null_mut(), 0, 0, 0, 0, 0);
            group.push(Wave::new(32, 1, port), None);
        }
        group
    }

    fn states(group: &Group) -> Vec<State> {
        group.waves.iter().map(|resident| resident.wave.state).collect()
    }

    #[test]
    fn a_barrier_opens_for_the_last_wave_or_when_it_ends() {
        let mut group = group(3);
        for round in 0..2 {
            for index in 0..2 {
                group.waves[index].wave.state = State::Barrier;
                group.arrive(false);
            }
            assert_eq!(states(&group)[..2], [State::Barrier, State::Barrier]);
            // The third comes in the first round and ends in the second.
            group.waves[2].wave.state = if round == 0 { State::Barrier } else { State::Ended };
            group.arrive(round == 1);
            assert_eq!(states(&group)[..2], [State::Ready, State::Ready]);
        }
        // From now on two waves make it up.
        group.waves[0].wave.state = State::Barrier;
        group.arrive(false);
        group.waves[1].wave.state = State::Barrier;
        group.arrive(false);
        assert_eq!(states(&group), [State::Ready, State::Ready, State::Ended]);
    }

    #[test]
    fn a_split_barrier_completes_when_all_have_signalled() {
        let mut group = group(3);
        assert!(group.signal(0), "the first");
        assert!(group.wait(0));
        group.waves[0].wave.state = State::Barrier;
        assert!(!group.signal(1));
        assert_eq!((group.barrier_state(), states(&group)[0]), ((3, 2), State::Barrier));
        // The third ends instead.
        group.waves[2].wave.state = State::Ended;
        group.leave();
        assert_eq!(states(&group), [State::Ready, State::Ready, State::Ended]);
        assert!(!group.wait(1), "complete already, and it is told once");
        assert!(group.wait(1));
        assert!(group.signal(1), "the first of the next round");
    }

    #[test]
    fn a_group_is_stuck_when_all_wait() {
        let mut group = group(2);
        group.waves[0].wave.state = State::Barrier;
        assert!(!group.stuck());
        group.waves[1].wave.state = State::Ended;
        assert!(group.stuck());
    }
}

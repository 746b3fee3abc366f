//! The compute units of one device.

use super::census::Census;
use super::code::{CodeCache, Shape};
use super::dispatch::{Dispatch, Done, Host};
use super::fidelity::Met;
use super::launch::Launch;
use super::level::HostLevel;
use super::schedule::{Job, Parts, Worker};
use crate::isa::Target;
use std::sync::Arc;
use trace::{Fault, Wave};

/// The compute units of one emulated GPU. Dispatches of several queues may run at the same time.
pub struct Engine {
    target: Target,
    workers: usize,
    level: HostLevel,
    seed: Option<u64>,
    codes: CodeCache,
    census: Census,
}

impl Engine {
    /// Compute units that `workers` host threads stand for (0: one a processor).
    pub fn new(target: Target, workers: usize, level: HostLevel) -> Engine {
        let processors = || std::thread::available_parallelism().map_or(1, |n| n.get());
        let workers = if workers == 0 { processors() } else { workers };
        Engine { target, workers, level, seed: None, codes: CodeCache::default(), census: Census::default() }
    }

    /// Compute units on one host thread that run waves in an order given by `seed`: the same each time, as far as the
    /// program does not depend on other threads or on time.
    pub fn deterministic(target: Target, level: HostLevel, seed: u64) -> Engine {
        Engine { target, workers: 1, level, seed: Some(seed), codes: CodeCache::default(), census: Census::default() }
    }

    /// With operations that are not exact counted, when there is somewhere to.
    pub fn counting(mut self, met: Option<Arc<Met>>) -> Engine {
        self.codes.met = met;
        self
    }

    /// Target of the device.
    pub fn target(&self) -> Target {
        self.target
    }

    /// The resident waves. Those of a worker that does not come round within a second are left out.
    pub fn waves(&self) -> Vec<Wave> {
        self.census.take()
    }

    /// The checks on a dispatch that come before any wave runs.
    ///
    /// # Errors
    /// As [`Engine::run`].
    pub fn prepare(&self, dispatch: &Dispatch) -> Result<Launch, Box<Fault>> {
        Launch::new(dispatch)
    }

    /// Runs a dispatch to its end, and returns early when `host` says that it is cancelled.
    ///
    /// # Errors
    /// [`trace::FaultKind::Packet`] with `queue_inactive_signal` bits when the dispatch is refused before any wave runs (bits
    /// 0x1 and 0x400: the queue has too little scratch, and the dispatch may be tried again); any other kind when a wave
    /// faulted. All waves have stopped then.
    pub fn run(&self, dispatch: &Dispatch, host: &dyn Host) -> Result<Done, Box<Fault>> {
        self.run_prepared(dispatch, &self.prepare(dispatch)?, host)
    }

    /// Runs a dispatch that passed [`Engine::prepare`].
    ///
    /// # Errors
    /// As [`Engine::run`].
    pub fn run_prepared(&self, dispatch: &Dispatch, launch: &Launch, host: &dyn Host) -> Result<Done, Box<Fault>> {
        let shape = Shape {
            target: self.target,
            lanes: launch.lanes,
            vgprs: launch.vgprs,
            agpr_base: launch.agpr_base,
            rows: launch.rows,
            level: self.level,
        };
        let workers = (self.workers as u64).min(launch.group_count).min(launch.resident_groups).max(1);
        let parts = Parts { codes: &self.codes, census: &self.census, seed: self.seed };
        let job = Job::new(dispatch, launch, host, shape, workers, parts);
        let shared = &job;
        std::thread::scope(|scope| {
            let mut spawn = || {
                for _ in 1..workers {
                    scope.spawn(|| {
                        host.enter();
                        Worker::new(shared).run(None);
                        host.leave();
                    });
                }
            };
            Worker::new(shared).run(Some(&mut spawn));
            // Waiting for the others is no work.
            host.leave();
        });
        host.enter();
        let (waves, instructions) = job.finish()?;
        Ok(Done { waves, instructions })
    }
}

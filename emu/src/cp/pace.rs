//! How often a waiting packet processor looks.

use std::time::{Duration, Instant};

/// After activity it looks without a pause for this long.
const SPIN: Duration = Duration::from_micros(50);
/// First sleep after that.
const FIRST_SLEEP: Duration = Duration::from_micros(20);
/// Longest sleep while activity is not long ago.
const SHORT_SLEEP: Duration = Duration::from_micros(500);
/// How long ago that is.
const RECENT: Duration = Duration::from_millis(200);
/// Longest sleep: what a client that does not ring the bell may have to wait for.
const LONG_SLEEP: Duration = Duration::from_millis(4);

/// After this long without activity it is worth a look whether something is wrong.
const STALL: Duration = Duration::from_secs(1);

/// The pace of one processor's looks.
pub struct Pace {
    active: Instant,
    sleep: Duration,
    told: bool,
}

impl Pace {
    /// Starts as if there had been activity just now.
    pub fn new() -> Pace {
        Pace { active: Instant::now(), sleep: FIRST_SLEEP, told: false }
    }

    /// Something happened.
    pub fn active(&mut self) {
        *self = Pace::new();
    }

    /// True once, when there has been no activity for long.
    pub fn stalled(&mut self) -> bool {
        let stalled = !self.told && self.sleep == LONG_SLEEP && self.active.elapsed() > STALL;
        self.told |= stalled;
        stalled
    }

    /// Waits until the next look. Returns early when the thread is unparked.
    pub fn wait(&mut self) {
        let idle = self.active.elapsed();
        if idle < SPIN {
            for _ in 0..16 {
                std::hint::spin_loop();
            }
            return;
        }
        std::thread::park_timeout(self.sleep);
        let longest = if idle < RECENT { SHORT_SLEEP } else { LONG_SLEEP };
        self.sleep = (self.sleep * 2).min(longest);
    }
}

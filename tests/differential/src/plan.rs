//! What a batch is compiled for and how it is run, drawn from its seed.

use crate::generate::Random;
use std::fmt;

/// Order in which an emulated machine runs waves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By so many host threads.
    Workers(usize),
    /// By one, in an order given by the seed.
    Seed(u64),
}

/// One image and one run of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// `-mcpu=`: a processor, with features if any.
    pub target: String,
    /// Optimisation level: O0 and the like.
    pub level: String,
    /// Waves of 64 lanes where 32 are the default.
    pub wave64: bool,
    /// Order of waves.
    pub order: Order,
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -{}", self.target, self.level)?;
        if self.wave64 {
            write!(f, " -mwavefrontsize64")?;
        }
        match self.order {
            Order::Workers(1) => Ok(()),
            Order::Workers(workers) => write!(f, " ({workers} workers)"),
            Order::Seed(seed) => write!(f, " (order {seed})"),
        }
    }
}

impl Variant {
    /// The processor without features.
    pub fn processor(&self) -> &str {
        self.target.split(':').next().unwrap_or_default()
    }
}

/// Group size and work-items of a batch; the last wave and the last group are often partial.
pub fn geometry(seed: u64) -> (u32, u32) {
    let mut random = Random(seed ^ 0x0067_656f);
    let group = random.pick(&[64, 64, 64, 32, 40, 96, 128]);
    let lanes = random.pick(&[64, 100, 128, 70, 129]);
    (group, lanes)
}

/// `count` different variants of all that `targets` and `levels` allow, or all of them.
pub fn variants(seed: u64, targets: &[String], levels: &[String], count: usize) -> Vec<Variant> {
    let mut all = Vec::new();
    let mut random = Random(seed ^ 0x7661_7269);
    for target in targets {
        for level in levels {
            for wave64 in [false, true] {
                if wave64 && target.starts_with("gfx9") {
                    continue;
                }
                let order = match random.below(4) {
                    0 => Order::Workers(2),
                    1 => Order::Seed(random.below(1000)),
                    _ => Order::Workers(1),
                };
                all.push(Variant { target: target.clone(), level: level.clone(), wave64, order });
            }
        }
    }
    if count == 0 || count >= all.len() {
        return all;
    }
    (0..count).map(|_| all.swap_remove(random.below(all.len() as u64) as usize)).collect()
}

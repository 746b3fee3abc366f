//! How close operations come to hardware, and which of those that are not exact a run met.
//!
//! Every operation states its fidelity where it is defined: [`Inst`]s cannot be made without one.

use super::inst::{Extra, Inst};
use super::wave::Wave;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// An error that the manuals of the instruction sets allow, in hundredths of a unit in the last place (ULP).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ulps(pub u64);

impl fmt::Display for Ulps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.0 / 100, self.0 % 100);
        match part {
            0 if whole >= 1 << 10 && whole.is_power_of_two() => write!(f, "2^{} ULP", whole.ilog2()),
            0 => write!(f, "{whole} ULP"),
            _ => write!(f, "{whole}.{part:02} ULP"),
        }
    }
}

/// How close an operation comes to what hardware does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fidelity {
    /// The result that is defined, bit by bit.
    Exact,
    /// Nothing to do on this machine, for this reason.
    NoOp(&'static str),
    /// A result within the documented error, in which hardware's may differ.
    Within(Ulps),
    /// Hardware may do otherwise, in this respect.
    Approximated(&'static str),
}

/// f32 functions, by the manuals.
pub const ULP: Fidelity = Fidelity::Within(Ulps(100));
/// f16 functions, by the manuals.
pub const HALF_ULP: Fidelity = Fidelity::Within(Ulps(51));
/// f64 functions, by the manuals: the start of Newton's iteration.
pub const SEED: Fidelity = Fidelity::Within(Ulps(100 << 29));
/// Functions for whose error the manuals state no bound.
pub const UNSTATED: Fidelity = Fidelity::Approximated("no error is documented; computed in f64 and rounded once");
/// Sums of products.
pub const SUMS: Fidelity =
    Fidelity::Approximated("order and rounding of the sums within the instruction are not documented");
/// Waits.
pub const WAIT: Fidelity = Fidelity::NoOp("memory operations complete before the next instruction");
/// Caches.
pub const CACHE: Fidelity =
    Fidelity::NoOp("no cache lies between waves and memory; accesses are ordered with the host's");
/// Hints.
pub const HINT: Fidelity = Fidelity::NoOp("timing, priority or prefetching, which have no results");
/// Debuggers and profilers.
pub const OBSERVER: Fidelity = Fidelity::NoOp("for debuggers, profilers and trap handlers, of which there are none");
/// Clocks.
pub const CLOCK: Fidelity = Fidelity::Approximated("time is the host's, at 100 MHz");

impl Fidelity {
    /// The class alone.
    pub fn class(self) -> &'static str {
        match self {
            Fidelity::Exact => "exact",
            Fidelity::NoOp(_) => "no-op",
            Fidelity::Within(_) => "within tolerance",
            Fidelity::Approximated(_) => "approximated",
        }
    }
}

impl fmt::Display for Fidelity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fidelity::Exact => f.write_str("exact"),
            Fidelity::NoOp(reason) => write!(f, "no-op: {reason}"),
            Fidelity::Within(ulps) => write!(f, "within {ulps}, the documented error"),
            Fidelity::Approximated(what) => write!(f, "approximated: {what}"),
        }
    }
}

/// How often an operation was met.
#[derive(Debug, Default)]
struct Count {
    places: AtomicU64,
    executed: AtomicU64,
}

/// The operations that are not exact which a run met.
#[derive(Debug, Default)]
pub struct Met {
    counts: Mutex<BTreeMap<(Fidelity, &'static str), Arc<Count>>>,
}

/// An operation of [`Met`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetOperation {
    /// Mnemonic.
    pub mnemonic: &'static str,
    /// Never [`Fidelity::Exact`].
    pub fidelity: Fidelity,
    /// Places in the code that were reached. A place counts again for waves of another size or register allocation.
    pub places: u64,
    /// Executions, by waves.
    pub executed: u64,
}

impl Met {
    /// What was met, by fidelity and name.
    pub fn operations(&self) -> Vec<MetOperation> {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let operation = |(&(fidelity, mnemonic), count): (&(Fidelity, &'static str), &Arc<Count>)| MetOperation {
            mnemonic,
            fidelity,
            places: count.places.load(Ordering::Relaxed),
            executed: count.executed.load(Ordering::Relaxed),
        };
        counts.iter().map(operation).collect()
    }

    /// The instruction with its executions counted, unless it is exact. `place`: it stands for another place in the code.
    pub(super) fn watch(&self, inst: Inst, place: bool) -> Inst {
        let Some(Extra { decoded, fidelity, .. }) = inst.extra.as_deref() else { return inst };
        if *fidelity == Fidelity::Exact {
            return inst;
        }
        let count = {
            let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            counts.entry((*fidelity, decoded.mnemonic)).or_default().clone()
        };
        count.places.fetch_add(place as u64, Ordering::Relaxed);
        let mut outer = Inst::new(counted, decoded, *fidelity);
        outer.len = inst.len;
        if let Some(extra) = &mut outer.extra {
            extra.data = Some(Box::new(Counted { inner: inst, count }));
        }
        outer
    }
}

struct Counted {
    inner: Inst,
    count: Arc<Count>,
}

/// Counts an execution of the instruction behind it.
unsafe fn counted(wave: &mut Wave, inst: &Inst) {
    let data = inst.extra.as_ref().and_then(|extra| extra.data.as_ref()?.downcast_ref::<Counted>());
    if let Some(Counted { inner, count }) = data
        && let Some(run) = inner.run
    {
        count.executed.fetch_add(1, Ordering::Relaxed);
        // SAFETY: lowered for this wave, as the outer instruction was.
        unsafe { run(wave, inner) }
    }
}

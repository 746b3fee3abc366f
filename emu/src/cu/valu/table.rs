//! The operations by name.

use super::lane::{Dest, Kind, Source};
use super::op::{Op, pick};
use super::{compare, convert, dot, float16, float32, float64, fp8, int16, int32, int64, math, packed};
use crate::cu::fidelity::Fidelity;
use crate::cu::inst::Handler;
use crate::cu::level::HostLevel;
use std::collections::HashMap;
use std::sync::OnceLock;

/// One lane of an operation under any rounding mode: the rounding modes as MODE holds them (3:0) and the sources' bits.
/// Denormals are flushed by the caller.
pub type Soft = fn(round: u32, a: u64, b: u64, c: u64) -> u64;

/// Picks the handler for a host.
pub type Pick = fn(HostLevel) -> Handler;

/// An operation: its names over the generations and what lowering needs to know of it.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Mnemonics.
    pub names: &'static [&'static str],
    /// Handlers.
    pub pick: Pick,
    /// Handlers of the form with negations and absolute values, where there is one of its own.
    pub signs: Option<Pick>,
    /// Sources.
    pub src: [Kind; 3],
    /// Result.
    pub dst: Kind,
    /// Whether it writes a lane mask.
    pub mask: bool,
    /// For other rounding modes, when the operation rounds.
    pub soft: Option<Soft>,
    /// The integer operation that saturates.
    pub clamp: Option<Pick>,
    /// How close it comes to hardware.
    pub fidelity: Fidelity,
    /// An integer operation whose results are always in range, so that clamping changes nothing.
    pub fits: bool,
    /// A 16-bit operation that keeps the other half of its destination on GFX9 already.
    pub keeps: bool,
}

impl Entry {
    /// An operation under these names.
    pub const fn new<O: Op>(names: &'static [&'static str]) -> Entry {
        Entry {
            names,
            pick: pick::<O>,
            signs: None,
            src: [O::A::KIND, O::B::KIND, O::C::KIND],
            dst: O::D::KIND,
            mask: O::D::MASK,
            soft: None,
            clamp: None,
            fidelity: O::FIDELITY,
            fits: false,
            keeps: false,
        }
    }

    /// With this fidelity.
    pub const fn fidelity(mut self, fidelity: Fidelity) -> Entry {
        self.fidelity = fidelity;
        self
    }

    /// With this for other rounding modes.
    pub const fn soft(mut self, soft: Soft) -> Entry {
        self.soft = Some(soft);
        self
    }

    /// With this operation when clamped.
    pub const fn clamp<O: Op>(mut self) -> Entry {
        self.clamp = Some(pick::<O>);
        self
    }

    /// With this operation when sources are negated or absolute.
    pub const fn signs<O: Op>(mut self) -> Entry {
        self.signs = Some(pick::<O>);
        self
    }

    /// With results that clamping does not change.
    pub const fn fits(mut self) -> Entry {
        self.fits = true;
        self
    }

    /// Keeps the other half of a 16-bit destination on GFX9.
    pub const fn keeps(mut self) -> Entry {
        self.keeps = true;
        self
    }
}

const TABLES: &[&[Entry]] = &[
    int32::TABLE,
    int16::TABLE,
    int64::TABLE,
    float32::ARITHMETIC,
    float32::TABLE,
    float64::TABLE,
    float16::TABLE,
    math::exact::TABLE,
    math::float::TABLE,
    math::FMAS,
    convert::int::TABLE,
    convert::float::TABLE,
    compare::TABLE,
    packed::TABLE,
    fp8::TABLE,
    dot::int::TABLE,
    dot::mixed::TABLE,
    dot::half::TABLE,
    dot::brain::TABLE,
    dot::brain::bits::TABLE,
];

/// All operations.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    TABLES.iter().flat_map(|table| table.iter())
}

/// The operation of this name.
pub fn find(name: &str) -> Option<&'static Entry> {
    static INDEX: OnceLock<HashMap<&'static str, &'static Entry>> = OnceLock::new();
    let index =
        INDEX.get_or_init(|| entries().flat_map(|entry| entry.names.iter().map(move |name| (*name, entry))).collect());
    index.get(name).copied()
}

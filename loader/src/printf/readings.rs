//! Records that can be read in more than one way: each string lies in one of two forms, and only the record's length
//! tells which.
//!
//! `Readings` goes through a record's arguments once and keeps each way to have read them so far. Ways that stand
//! at the same byte go on alike, so only the best of them is kept and the cost stays small. The best is the one with
//! the fewest unlikely arguments, then with the fewest strings in their rare form, then with the common form first.

use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The ways to read a record up to an argument.
pub(super) struct Readings {
    /// By the byte that comes next.
    ways: BTreeMap<usize, Way>,
    /// What the search may still cost, in steps of about a word.
    budget: usize,
}

/// A way.
#[derive(Clone, Default)]
struct Way {
    /// Arguments that do not look like what their conversions print.
    unlikely: u32,
    /// Strings in their rare form.
    rare: u32,
    /// For each string, whether it is in its rare form.
    forms: Vec<bool>,
    /// There is another way with no more unlikely arguments.
    is_tied: bool,
}

/// A string in one of its forms.
pub(super) struct Form {
    /// Bytes it takes in the record.
    pub bytes: usize,
    /// It does not look like text.
    pub is_unlikely: bool,
}

/// What the record's length leaves.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reading {
    /// For each string, whether it is in its rare form.
    pub forms: Vec<bool>,
    /// Another reading is as likely.
    pub is_tied: bool,
}

/// Steps of a search. A record of 40 strings takes some thousands.
const BUDGET: usize = 1 << 20;

impl Readings {
    /// At the first argument.
    pub fn new() -> Readings {
        Readings { ways: BTreeMap::from([(0, Way::default())]), budget: BUDGET }
    }

    /// An argument of `bytes` bytes; `is_unlikely` judges it by where it would lie.
    pub fn argument(&mut self, bytes: usize, is_unlikely: impl Fn(usize) -> bool) {
        let Some(left) = self.budget.checked_sub(self.ways.len()) else {
            self.ways.clear();
            return;
        };
        self.budget = left;
        for (at, mut way) in std::mem::take(&mut self.ways) {
            way.unlikely += u32::from(is_unlikely(at));
            self.ways.insert(at.saturating_add(bytes), way);
        }
    }

    /// A string, which may lie at a byte in its common form, its rare form, both or neither.
    pub fn string(&mut self, forms: impl Fn(usize) -> [Option<Form>; 2]) {
        for (at, way) in std::mem::take(&mut self.ways) {
            for (form, is_rare) in forms(at).into_iter().zip([false, true]) {
                let Some(form) = form else { continue };
                let cost = 1 + form.bytes / 8 + way.forms.len() / 8;
                let Some(left) = self.budget.checked_sub(cost) else {
                    self.ways.clear();
                    return;
                };
                self.budget = left;
                let mut next = way.clone();
                next.unlikely += u32::from(form.is_unlikely);
                next.rare += u32::from(is_rare);
                next.forms.push(is_rare);
                self.keep(at.saturating_add(form.bytes), next);
            }
        }
    }

    fn keep(&mut self, at: usize, way: Way) {
        let Some(known) = self.ways.get_mut(&at) else {
            self.ways.insert(at, way);
            return;
        };
        let is_tie = known.unlikely == way.unlikely;
        let key = |way: &Way| (way.unlikely, way.rare);
        if key(&way).cmp(&key(known)).then_with(|| way.forms.cmp(&known.forms)) == Ordering::Less {
            *known = way;
        }
        known.is_tied |= is_tie;
    }

    /// The best way that ends at byte `end`; none when there is no such way, or the search would cost too much.
    pub fn end(mut self, end: usize) -> Option<Reading> {
        self.ways.remove(&end).map(|way| Reading { forms: way.forms, is_tied: way.is_tied })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(bytes: usize, is_unlikely: bool) -> Option<Form> {
        Some(Form { bytes, is_unlikely })
    }

    #[test]
    fn the_end_tells() {
        let mut readings = Readings::new();
        readings.string(|_| [form(8, false), form(4, false)]);
        readings.argument(4, |_| false);
        readings.string(|at| [form(8, false).filter(|_| at == 12), form(4, false)]);
        assert_eq!(readings.end(16), Some(Reading { forms: vec![false, true], is_tied: false }));
    }

    #[test]
    fn several_ways_are_ranked_and_ties_are_told() {
        let both = |is_unlikely| {
            let mut readings = Readings::new();
            readings.string(|_| [form(8, is_unlikely), form(0, false)]);
            readings.string(|_| [form(8, false), form(0, false)]);
            readings.end(8)
        };
        assert_eq!(both(false), Some(Reading { forms: vec![false, true], is_tied: true }));
        assert_eq!(both(true), Some(Reading { forms: vec![true, false], is_tied: false }));
        assert_eq!(Readings::new().end(4), None);
    }

    #[test]
    fn a_search_that_would_not_end_is_given_up() {
        let mut readings = Readings::new();
        for string in 0..200usize {
            // No two ways meet again.
            readings.string(|_| [form(1usize << string.min(40), false), form(0, false)]);
        }
        assert_eq!(readings.end(0), None);

        let mut readings = Readings::new();
        (0..200).for_each(|_| readings.string(|_| [form(8, false), form(0, false)]));
        for _ in 0..200_000 {
            readings.argument(8, |_| false);
        }
        assert_eq!((readings.budget < 201, readings.ways.len()), (true, 0));
    }
}

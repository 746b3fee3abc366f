//! The cases, in groups named after kfdtest's where those have the same subject.

mod close;
mod criu;
mod cwsr;
mod debug;
mod dmabuf;
mod event;
mod exception;
mod gws;
mod hws;
mod interface;
mod local_memory;
mod memory;
mod open_close;
mod packet;
mod queue;
mod runtime;
mod smi;
mod svm;
pub(crate) mod tools;
mod topology;

use crate::case::Case;

/// All cases, in the order in which they are run.
pub fn all() -> Vec<&'static Case> {
    [
        interface::CASES,
        open_close::CASES,
        close::CASES,
        topology::CASES,
        event::CASES,
        memory::CASES,
        local_memory::CASES,
        queue::CASES,
        cwsr::CASES,
        hws::CASES,
        gws::CASES,
        packet::CASES,
        exception::CASES,
        svm::CASES,
        dmabuf::CASES,
        smi::CASES,
        runtime::CASES,
        debug::CASES,
        criu::CASES,
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_rules_are_stated() {
        let mut ids: Vec<String> = all().iter().map(|case| case.id()).collect();
        ids.sort();
        let count = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), count);
        assert!(all().iter().all(|case| case.rule.len() > 10));
    }
}

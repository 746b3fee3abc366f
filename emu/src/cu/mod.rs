//! Compute units: waves, LDS, memory access, scheduling.
//!
//! A kernel's instructions are decoded once into [`inst::Inst`]s, each with the handler that executes it. Registers are
//! rows of lanes; a handler works on whole rows, compiled for each vector width of the host ([`level`]).

mod code;
pub mod dispatch;
pub mod engine;
mod group;
pub mod inst;
mod interp;
pub mod launch;
pub mod level;
pub mod lower;
pub mod mem;
pub mod salu;
mod schedule;
#[cfg(test)]
mod tests;
pub mod valu;
pub mod wave;

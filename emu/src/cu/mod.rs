//! Compute units: waves, LDS, memory access, scheduling.
//!
//! A kernel's instructions are decoded once into [`inst::Inst`]s, each with the handler that executes it. Registers are
//! rows of lanes; a handler works on whole rows, compiled for each vector width of the host ([`level`]).

mod census;
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
// Comparisons are spelled out as the hardware does them with NaNs, constants as the manuals print them, and lanes are indexed.
#[allow(
    clippy::approx_constant,
    clippy::collapsible_if,
    clippy::double_comparisons,
    clippy::eq_op,
    clippy::if_same_then_else,
    clippy::manual_clamp,
    clippy::manual_range_contains,
    clippy::needless_lifetimes,
    clippy::needless_range_loop,
    clippy::neg_cmp_op_on_partial_ord,
    clippy::new_without_default
)]
pub mod valu;
pub mod wave;

//! Containers of code objects: what is read, what is refused, and what it costs.

// Helpers of tests fail as tests do; the lints know only functions that are tests themselves.
#![allow(clippy::unwrap_used, clippy::panic)]

mod bombs;
mod build;
mod cases;
mod memory;
mod mutations;
mod open;
mod refusals;
mod select;

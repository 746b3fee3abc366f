//! Tests on whole images.

// Helpers of tests fail as tests do; the lints know only functions that are tests themselves.
#![allow(clippy::unwrap_used, clippy::panic)]

mod cases;
mod image;
mod parse;
mod refusals;

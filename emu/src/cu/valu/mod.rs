//! Vector ALU operations.
//!
//! An operation is one line in a table: its names, the types of its operands and what one lane does ([`op`], `int32`,
//! `float32` and so on). [`general`] gives every operation every modifier and every state of MODE; [`cross`] has what
//! moves across lanes, [`pair`] what is two operations in one, [`matrix`] the matrix instructions.

pub mod compare;
pub mod convert;
pub mod cross;
mod define;
pub mod dot;
pub mod dpp;
pub mod f16;
pub mod float16;
pub mod float32;
pub mod float64;
pub mod fp8;
pub mod general;
pub mod int16;
pub mod int32;
pub mod int64;
pub mod lane;
mod lower;
pub mod math;
pub mod matrix;
pub mod nan;
pub mod op;
pub mod packed;
pub mod pair;
pub mod select;
mod signs;
pub mod soft;
pub mod table;

pub use lower::lower;

#[cfg(test)]
#[allow(clippy::type_complexity)]
mod tests;

//! Containers of code objects: what is read, what is refused, and what it costs.

mod bombs;
mod build;
mod cases;
mod memory;
mod mutations;
mod open;
mod refusals;
mod select;

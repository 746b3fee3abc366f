//! The kernel's rules as cases that run on any [`kfd::Driver`]: the Linux kernel, or the emulated machine.
//!
//! A case makes raw calls and states for each what the kernel answers. [`run`] gives each case a process of its own,
//! because the kernel keeps what it knows of a process until that ends, and a time limit. What was answered is a
//! [`record::Record`]; [`table`] prints one, or two side by side.

pub mod case;
pub mod cases;
pub mod device;
pub mod fuzz;
pub mod gpu;
pub mod record;
pub mod run;
pub mod session;
pub mod table;

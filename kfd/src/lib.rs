//! The AMDKFD driver interface: what a process says to `/dev/kfd` and a render node, and what comes back.
//!
//! [`uapi`] is data only. [`Driver`] is the boundary: the Linux kernel on one side of it or an emulated machine, and
//! nothing above it asks which.

pub mod driver;
pub mod uapi;

pub use driver::{Driver, Errno};

//! The emulated machine: a second [`kfd::Driver`], in the same process.
//!
//! `kernel` answers the ioctls by the kernel's rules, `cp` processes AQL packets, `cu` runs waves, `isa` knows the
//! instructions, `machine` the devices that can be had.

pub mod cp;
pub mod cu;
pub mod driver;
pub mod inject;
pub mod isa;
pub mod kernel;
pub mod machine;
pub mod memory;

#[cfg(test)]
mod testing;

pub use cu::level::HostLevel;
pub use driver::EmulatedDriver;
pub use inject::{Injection, InjectionError};
pub use kernel::{Options, Rules};
pub use machine::{GpuProfile, Machine};

//! Loads code objects into device memory, dispatches kernels and runs programs.
//!
//! [`Gpu`] is a device with one queue; [`Image`] a code object in its memory; [`Gpu::dispatch`] runs a kernel and waits.
//! [`program`] puts them together for images with a `main`.

mod arguments;
mod error;
mod format;
mod gcn;
mod gpu;
mod heap;
pub mod hostcall;
mod image;
pub mod kernarg;
pub mod names;
pub mod printf;
pub mod program;
pub mod resources;
pub mod rpc;
mod service;
mod shadow;
mod source;
pub mod spec;
mod stop;

pub use error::Error;
pub use gpu::{Finished, Gpu, GpuOptions, HiddenBuffers, Launch, Pending, WaitState, lds_of_cu};
pub use image::Image;
pub use kernarg::{Kernarg, Shape, Value};
pub use service::{DEFAULT_PRINTF_BUFFER, ServiceOptions, Services, host_visible};
pub use stop::Stop;

/// Stack of a work-item, in bytes, for kernels whose depth the compiler does not know: what LLVM's loader gives.
pub const DEFAULT_STACK: u32 = 16384;

#[cfg(test)]
mod fuzz;

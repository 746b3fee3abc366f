//! Loads code objects into device memory, dispatches kernels and runs programs.

mod format;
pub mod rpc;

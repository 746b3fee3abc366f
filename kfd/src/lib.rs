//! The AMDKFD driver interface: what a process says to `/dev/kfd` and a render node, and what comes back.
//!
//! [`uapi`] is data only. [`Driver`] is the boundary: the Linux kernel on one side of it or an emulated machine, and
//! nothing above it asks which. Above it every kernel object is an owner that undoes it when dropped, in the order of
//! their making: [`Kfd`], [`Device`], [`Buffer`], [`Events`], [`Queue`] with its [`Doorbell`].
//!
//! ```no_run
//! use kfd::{Device, Kfd, LinuxDriver, Queue, QueueConfig, Topology};
//! use std::sync::Arc;
//!
//! # fn main() -> Result<(), kfd::Error> {
//! let kfd = Kfd::open(Arc::new(LinuxDriver), trace::Tracer::default())?;
//! let topology = Topology::read(kfd.system())?;
//! let device = Device::open(&kfd, topology.first_gpu()?, topology.node_count())?;
//! let queue = Queue::create(&device, &QueueConfig::default())?;
//! println!("queue {} on {}", queue.id(), device.target());
//! # Ok(())
//! # }
//! ```

mod buffer;
mod cwsr;
mod device;
mod doorbell;
pub mod driver;
mod errno;
mod error;
mod event;
mod kfd;
mod linux;
mod queue;
mod scratch;
mod system;
pub mod topology;
mod types;
pub mod uapi;

pub use crate::kfd::{DEV_KFD, Kfd};
pub use buffer::{Buffer, Kind, Known};
pub use cwsr::{ContextSave, ContextSaveError, Origin};
pub use device::Device;
pub use doorbell::Doorbell;
pub use driver::{Driver, Permissions};
pub use errno::Errno;
pub use error::{Absence, Error, ErrorRule, Result, error_rules, find_error_rule};
pub use event::{EVENT_PAGE_SIZE, Event, EventKind, Events, Fired, HwException, MemoryFault, Wait};
pub use linux::LinuxDriver;
pub use queue::{Check, CreateQueueError, MAX_PACKETS, MIN_PACKETS, Queue, QueueConfig, create_queue_rule};
pub use scratch::{ScratchError, ScratchLayout, ScratchRegisters};
pub use system::System;
pub use topology::{Node, Topology, TopologyError};
pub use types::{EventId, GfxTarget, GpuId, GpuVa, PAGE_SIZE, QueueId, page_up};

#[cfg(test)]
mod testing;

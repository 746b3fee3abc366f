//! Buffers: ALLOC, FREE, MAP, UNMAP (`kfd_chardev.c`, `amdgpu_amdkfd_gpuvm.c`).

mod alloc;
mod map;

pub use alloc::{allocate, available, free};
pub use map::{map, unmap};

use super::Kernel;
use super::backing::Pages;
use super::process::{Inner, Vm};
use super::rule::{GPU_KNOWN, RuleText, texts};
use crate::memory::{Rights, Span};
use kfd::uapi::{
    ALLOC_MEM_FLAGS_AQL_QUEUE_MEM, ALLOC_MEM_FLAGS_EXECUTABLE, ALLOC_MEM_FLAGS_WRITABLE, QUEUE_EVICTION_TRIGGER_USERPTR,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The tables of this module.
pub fn rule_texts() -> Vec<(&'static str, Vec<RuleText>)> {
    vec![
        ("ALLOC_MEMORY_OF_GPU", [texts(alloc::RULES), texts(alloc::ACCOUNT), texts(alloc::USER_PAGES)].concat()),
        ("FREE_MEMORY_OF_GPU", texts(alloc::FREE)),
        ("AVAILABLE_MEMORY", texts(GPU_KNOWN)),
        ("MAP_MEMORY_TO_GPU", [texts(map::LIST), texts(map::BUFFER), texts(map::DEVICE), texts(map::PLACE)].concat()),
        ("UNMAP_MEMORY_FROM_GPU", [texts(map::LIST), texts(map::UNMAP_BUFFER), texts(map::UNMAP)].concat()),
    ]
}

/// A buffer's handle: `gpu_id << 32 | id`. The first of a GPU has id 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Handle(pub u64);

impl Handle {
    /// From its parts.
    pub fn new(gpu_id: u32, id: u32) -> Handle {
        Handle(u64::from(gpu_id) << 32 | u64::from(id))
    }

    /// GPU that owns the buffer.
    pub fn gpu_id(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Number within that GPU.
    pub fn id(self) -> u32 {
        self.0 as u32
    }
}

/// What a buffer's memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Device memory.
    Vram,
    /// System memory of the driver.
    Gtt,
    /// System memory of the caller.
    Userptr,
    /// The process' doorbells.
    Doorbell,
    /// HDP flush registers.
    MmioRemap,
    /// Memory of another buffer, by IMPORT_DMABUF.
    Imported,
}

/// A buffer object.
pub struct Bo {
    /// GPU address.
    pub va: u64,
    /// Bytes in whole pages; half of what was asked for with AQL_QUEUE_MEM.
    pub size: u64,
    /// Flags.
    pub flags: u32,
    /// Kind.
    pub kind: Kind,
    /// Memory.
    pub pages: Arc<Pages>,
    /// Offset for mmap of the render node.
    pub mmap_offset: u64,
    /// By position of the GPU it is mapped on: how many uses live queues make of its mappings there.
    pub mapped: BTreeMap<usize, u32>,
    /// The caller has unmapped the memory of a USERPTR: ranges that go away with the buffer.
    pub unmapped: Vec<(u64, u64)>,
}

impl Bo {
    /// Addresses the buffer is mapped at: one, or two for AQL_QUEUE_MEM. None when they are beyond 64 bits.
    pub fn addresses(&self) -> Option<Vec<u64>> {
        if self.flags & ALLOC_MEM_FLAGS_AQL_QUEUE_MEM == 0 {
            return Some(vec![self.va]);
        }
        Some(vec![self.va, self.va.checked_add(self.size)?])
    }

    /// A translation of the buffer at `start`.
    pub fn span(&self, start: u64) -> Span {
        Span {
            start,
            end: start.saturating_add(self.size),
            host: self.pages.host(),
            rights: Rights {
                write: self.flags & ALLOC_MEM_FLAGS_WRITABLE != 0,
                execute: self.flags & ALLOC_MEM_FLAGS_EXECUTABLE != 0,
            },
            backing: self.pages.clone(),
        }
    }
}

/// One mapping in a VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Bytes.
    pub size: u64,
    /// Its buffer.
    pub handle: Handle,
}

impl Vm {
    /// The mapping that holds an address, with its start.
    pub fn mapping(&self, va: u64) -> Option<(u64, Mapping)> {
        let (start, mapping) = self.mappings.range(..=va).next_back()?;
        (va - start < mapping.size).then_some((*start, *mapping))
    }
}

impl Inner {
    /// Takes the translations of USERPTR buffers over `addr..addr + len` away, as the MMU notifier does when the caller
    /// unmaps the memory: the GPU faults on its next access. True when there was one, and then the memory must stay
    /// until waves have let go of it.
    ///
    /// The kernel stops the process' queues for this and lets them run again when it has looked for the pages, also when
    /// there are none.
    pub fn user_memory_gone(&mut self, kernel: &Kernel, addr: u64, len: u64) -> bool {
        let end = addr.saturating_add(len);
        let mut hit = false;
        let mut gone: Vec<(usize, Vec<u64>)> = Vec::new();
        for data in &mut self.devices {
            for bo in data.bos.values_mut().filter(|bo| bo.kind == Kind::Userptr) {
                let start = bo.pages.host() as u64;
                if start < end && addr < start.saturating_add(bo.pages.size()) {
                    hit = true;
                    bo.unmapped.push((addr, len));
                    let addresses = bo.addresses().unwrap_or_default();
                    gone.extend(bo.mapped.keys().map(|device| (*device, addresses.clone())));
                }
            }
        }
        for (device, addresses) in gone {
            if let Some(vm) = &self.devices[device].vm {
                for address in addresses {
                    vm.space.unmap(address);
                }
            }
        }
        if hit {
            kernel.smi_eviction(QUEUE_EVICTION_TRIGGER_USERPTR);
            kernel.smi_restore();
        }
        self.svm.user_memory_gone(kernel, &self.devices, addr, len) || hit
    }
}

#[cfg(test)]
mod tests;

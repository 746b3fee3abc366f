//! MAP_MEMORY_TO_GPU, UNMAP_MEMORY_FROM_GPU.

use super::{Bo, Handle, Kind, Mapping};
use crate::kernel::backing::PAGE;
use crate::kernel::call::Call;
use crate::kernel::process::{Inner, Vm};
use crate::kernel::rule::{check, rules};
use crate::kernel::topology;
use kfd::Errno;
use kfd::uapi::{MapMemoryToGpuArgs, UnmapMemoryFromGpuArgs};

/// One past the last address of a GPU's page tables.
const VM_END: u64 = 1 << 48;

/// What both calls look at in front of the buffer.
pub struct ListFacts {
    count: u32,
    done: u32,
}

/// What both calls look at of the buffer.
pub struct BufferFacts {
    handle: Handle,
    known_gpu: bool,
    acquired: bool,
    exists: bool,
}

/// What MAP looks at for each GPU.
pub struct DeviceFacts {
    gpu_id: u32,
    known: bool,
    acquired: bool,
}

/// What MAP looks at where the buffer is not mapped yet.
pub struct PlaceFacts {
    va: u64,
    /// One past the last address; none beyond 64 bits.
    end: Option<u64>,
    reachable: bool,
    free: bool,
}

/// What UNMAP looks at for each GPU.
pub struct UnmapFacts {
    gpu_id: u32,
    known: bool,
    /// Uses by live queues; none: not mapped there.
    uses: Option<u32>,
}

rules! {
    /// Both: the list of GPUs.
    LIST for f: ListFacts {
        EINVAL "n_devices is not 0": f.count => f.count != 0;
        EINVAL "n_success, the index to start with, is at most n_devices": f.done => f.done <= f.count;
        ENOMEM "the list of n_devices ids has 4 MiB at most, what kmalloc can give": f.count =>
            u64::from(f.count) * 4 <= 4 << 20;
    }

    /// MAP: the buffer. That an unknown one is ENOMEM is the kernel's.
    BUFFER for f: BufferFacts {
        EINVAL "handle names a GPU of the process": f.handle.0 >> 32 => f.known_gpu;
        ENODEV "ACQUIRE_VM was called for the buffer's GPU": f.handle.0 >> 32 => f.acquired;
        ENOMEM "handle names a buffer": f.handle.0 => f.exists;
    }

    /// UNMAP: the buffer.
    UNMAP_BUFFER for f: BufferFacts {
        EINVAL "handle names a GPU of the process": f.handle.0 >> 32 => f.known_gpu;
        ENOMEM "handle names a buffer": f.handle.0 => f.exists;
    }

    /// MAP: each GPU of the list.
    DEVICE for f: DeviceFacts {
        EINVAL "the listed id is a GPU of the process": f.gpu_id => f.known;
        ENODEV "ACQUIRE_VM was called for the listed GPU": f.gpu_id => f.acquired;
    }

    /// MAP: where the buffer is not mapped on the GPU yet.
    PLACE for f: PlaceFacts {
        EINVAL "va_addr of the buffer is not 0": f.va => f.va != 0;
        EINVAL "va_addr of the buffer is a multiple of 4096": f.va => f.va.is_multiple_of(PAGE);
        EINVAL "the buffer ends below 2^48": f.end.unwrap_or(u64::MAX) => f.end.is_some_and(|end| end <= VM_END);
        EINVAL "the GPU reaches the buffer's memory": f.va => f.reachable;
        EINVAL "nothing else is mapped there": f.va => f.free;
    }

    /// UNMAP: each GPU of the list.
    UNMAP for f: UnmapFacts {
        EINVAL "the listed id is a GPU of the process": f.gpu_id => f.known;
        EINVAL "the buffer is mapped on the listed GPU": f.gpu_id => f.uses.is_some();
        EBUSY "no live queue uses the mapping": f.uses.unwrap_or_default() => f.uses == Some(0);
    }
}

const MAP: &str = "MAP_MEMORY_TO_GPU";
const UNMAP_CALL: &str = "UNMAP_MEMORY_FROM_GPU";

fn list(call: &Call<'_>, name: &str, array: u64, count: u32, done: u32) -> Result<Vec<u32>, Errno> {
    check(call.kernel, name, LIST, &ListFacts { count, done })?;
    call.kernel.user.get_array(array, count)
}

/// MAP_MEMORY_TO_GPU. `n_success` tells how far it came, also on failure.
pub fn map(call: &Call<'_>, args: &mut MapMemoryToGpuArgs) -> Result<(), Errno> {
    let gpu_ids = list(call, MAP, args.device_ids_array_ptr, args.n_devices, args.n_success)?;
    let handle = Handle(args.handle);
    let mut inner = call.process.lock();
    check(call.kernel, MAP, BUFFER, &inner.buffer_facts(handle))?;
    for gpu_id in gpu_ids.iter().skip(args.n_success as usize) {
        let index = inner.index(*gpu_id).ok();
        let acquired = index.is_some_and(|index| inner.devices[index].vm.is_some());
        check(call.kernel, MAP, DEVICE, &DeviceFacts { gpu_id: *gpu_id, known: index.is_some(), acquired })?;
        inner.map_on(call, handle, index.ok_or(Errno::EINVAL)?)?;
        args.n_success += 1;
    }
    Ok(())
}

/// UNMAP_MEMORY_FROM_GPU.
pub fn unmap(call: &Call<'_>, args: &mut UnmapMemoryFromGpuArgs) -> Result<(), Errno> {
    let gpu_ids = list(call, UNMAP_CALL, args.device_ids_array_ptr, args.n_devices, args.n_success)?;
    let handle = Handle(args.handle);
    let mut inner = call.process.lock();
    check(call.kernel, UNMAP_CALL, UNMAP_BUFFER, &inner.buffer_facts(handle))?;
    for gpu_id in gpu_ids.iter().skip(args.n_success as usize) {
        let index = inner.index(*gpu_id).ok();
        let uses = index.and_then(|index| inner.bo(handle)?.mapped.get(&index).copied());
        check(call.kernel, UNMAP_CALL, UNMAP, &UnmapFacts { gpu_id: *gpu_id, known: index.is_some(), uses })?;
        inner.unmap_from(handle, index.ok_or(Errno::EINVAL)?)?;
        args.n_success += 1;
    }
    Ok(())
}

impl Vm {
    /// Whether nothing is mapped in `start..end`.
    fn is_free(&self, start: u64, end: u64) -> bool {
        self.mappings.range(..end).next_back().is_none_or(|(from, mapping)| from + mapping.size <= start)
    }
}

impl Inner {
    fn owner(&self, handle: Handle) -> Result<usize, Errno> {
        self.index(handle.gpu_id())
    }

    fn bo_mut(&mut self, handle: Handle) -> Result<&mut Bo, Errno> {
        let owner = self.owner(handle)?;
        self.devices[owner].bos.get_mut(&handle.id()).ok_or(Errno::EINVAL)
    }

    fn buffer_facts(&self, handle: Handle) -> BufferFacts {
        let owner = self.owner(handle).ok();
        BufferFacts {
            handle,
            known_gpu: owner.is_some(),
            acquired: owner.is_some_and(|owner| self.devices[owner].vm.is_some()),
            exists: self.bo(handle).is_some(),
        }
    }

    /// Maps a buffer on a GPU. One that is mapped there already stays as it is.
    fn map_on(&mut self, call: &Call<'_>, handle: Handle, peer: usize) -> Result<(), Errno> {
        let owner = self.owner(handle)?;
        let bo = self.bo(handle).ok_or(Errno::EINVAL)?;
        if bo.mapped.contains_key(&peer) {
            return Ok(());
        }
        let (va, size) = (bo.va, bo.size);
        let addresses = bo.addresses();
        let end = addresses.as_ref().and_then(|all| all.last()?.checked_add(size));
        let local = matches!(bo.kind, Kind::Gtt | Kind::Userptr);
        let vm = self.devices[peer].vm.as_ref().ok_or(Errno::ENODEV)?;
        let facts = PlaceFacts {
            va,
            end,
            reachable: local || topology::reaches(&self.devices[peer].device, &self.devices[owner].device),
            free: end.is_some_and(|end| !self.svm.overlaps(va, end - va) && vm.is_free(va, end)),
        };
        check(call.kernel, MAP, PLACE, &facts)?;
        let addresses = addresses.unwrap_or_default();
        let spans: Vec<_> = addresses.iter().map(|va| bo.span(*va)).collect();
        let vm = self.devices[peer].vm.as_mut().ok_or(Errno::ENODEV)?;
        for (va, span) in addresses.iter().zip(spans) {
            if !vm.space.map(span) {
                return Err(Errno::EINVAL);
            }
            vm.mappings.insert(*va, Mapping { size, handle });
        }
        self.bo_mut(handle)?.mapped.insert(peer, 0);
        Ok(())
    }

    fn unmap_from(&mut self, handle: Handle, peer: usize) -> Result<(), Errno> {
        let bo = self.bo_mut(handle)?;
        bo.mapped.remove(&peer);
        let addresses = bo.addresses().unwrap_or_default();
        if let Some(vm) = &mut self.devices[peer].vm {
            for va in addresses {
                vm.space.unmap(va);
                vm.mappings.remove(&va);
            }
        }
        Ok(())
    }

    /// Counts a live queue's use of a buffer mapped on a GPU.
    pub fn use_mapping(&mut self, handle: Handle, peer: usize, more: bool) {
        let uses = self.bo_mut(handle).ok().and_then(|bo| bo.mapped.get_mut(&peer));
        if let Some(uses) = uses {
            *uses = if more { uses.saturating_add(1) } else { uses.saturating_sub(1) };
        }
    }
}

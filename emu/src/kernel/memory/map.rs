//! MAP_MEMORY_TO_GPU, UNMAP_MEMORY_FROM_GPU.

use super::{Bo, Handle, Kind, Mapping};
use crate::kernel::backing::PAGE;
use crate::kernel::call::Call;
use crate::kernel::process::Inner;
use crate::kernel::topology;
use kfd::Errno;
use kfd::uapi::{MapMemoryToGpuArgs, UnmapMemoryFromGpuArgs};

/// One past the last address of a GPU's page tables.
const VM_END: u64 = 1 << 48;

/// What both calls check of their argument, up to the device list: handle and the GPU ids.
fn list(call: &Call<'_>, array: u64, count: u32, done: u32) -> Result<Vec<u32>, Errno> {
    if count == 0 || done > count {
        return Err(Errno::EINVAL);
    }
    call.kernel.user.get_array(array, count)
}

/// MAP_MEMORY_TO_GPU. `n_success` tells how far it came, also on failure.
pub fn map(call: &Call<'_>, args: &mut MapMemoryToGpuArgs) -> Result<(), Errno> {
    let gpu_ids = list(call, args.device_ids_array_ptr, args.n_devices, args.n_success)?;
    let handle = Handle(args.handle);
    let mut inner = call.process.lock();
    inner.acquired(handle.gpu_id())?;
    // Sic: not EINVAL.
    inner.bo(handle).ok_or(Errno::ENOMEM)?;
    for gpu_id in gpu_ids.iter().skip(args.n_success as usize) {
        let peer = inner.index(*gpu_id)?;
        inner.acquired(*gpu_id)?;
        inner.map_on(handle, peer)?;
        args.n_success += 1;
    }
    Ok(())
}

/// UNMAP_MEMORY_FROM_GPU.
pub fn unmap(call: &Call<'_>, args: &mut UnmapMemoryFromGpuArgs) -> Result<(), Errno> {
    let gpu_ids = list(call, args.device_ids_array_ptr, args.n_devices, args.n_success)?;
    let handle = Handle(args.handle);
    let mut inner = call.process.lock();
    inner.device(handle.gpu_id())?;
    inner.bo(handle).ok_or(Errno::ENOMEM)?;
    for gpu_id in gpu_ids.iter().skip(args.n_success as usize) {
        let peer = inner.index(*gpu_id)?;
        inner.unmap_from(handle, peer)?;
        args.n_success += 1;
    }
    Ok(())
}

impl Inner {
    fn owner(&self, handle: Handle) -> Result<usize, Errno> {
        self.index(handle.gpu_id())
    }

    fn bo_mut(&mut self, handle: Handle) -> Result<&mut Bo, Errno> {
        let owner = self.owner(handle)?;
        self.devices[owner].bos.get_mut(&handle.id()).ok_or(Errno::EINVAL)
    }

    /// `amdgpu_amdkfd_gpuvm_map_memory_to_gpu`. A buffer that is mapped there already stays as it is.
    pub fn map_on(&mut self, handle: Handle, peer: usize) -> Result<(), Errno> {
        let owner = self.owner(handle)?;
        let (owner_device, peer_device) = (self.devices[owner].device.clone(), self.devices[peer].device.clone());
        let bo = self.bo(handle).ok_or(Errno::EINVAL)?;
        if bo.mapped.contains_key(&peer) {
            return Ok(());
        }
        let addresses = bo.addresses().ok_or(Errno::EINVAL)?;
        let size = bo.size;
        // The size is in whole pages since ALLOC.
        if bo.va == 0 || bo.va % PAGE != 0 {
            return Err(Errno::EINVAL);
        }
        if addresses.iter().any(|va| va.checked_add(size).is_none_or(|end| end > VM_END)) {
            return Err(Errno::EINVAL);
        }
        let local = matches!(bo.kind, Kind::Gtt | Kind::Userptr);
        if !local && !topology::reaches(&peer_device, &owner_device) {
            return Err(Errno::EINVAL);
        }
        let spans: Vec<_> = addresses.iter().map(|va| bo.span(*va)).collect();
        let vm = self.devices[peer].vm.as_mut().ok_or(Errno::ENODEV)?;
        for (done, span) in spans.into_iter().enumerate() {
            if !vm.space.map(span) {
                for va in &addresses[..done] {
                    vm.space.unmap(*va);
                    vm.mappings.remove(va);
                }
                return Err(Errno::EINVAL);
            }
            vm.mappings.insert(addresses[done], Mapping { size, handle });
        }
        self.bo_mut(handle)?.mapped.insert(peer, 0);
        Ok(())
    }

    /// `amdgpu_amdkfd_gpuvm_unmap_memory_from_gpu`.
    pub fn unmap_from(&mut self, handle: Handle, peer: usize) -> Result<(), Errno> {
        let bo = self.bo_mut(handle)?;
        match bo.mapped.get(&peer) {
            None => return Err(Errno::EINVAL),
            Some(0) => {}
            Some(_) => return Err(Errno::EBUSY),
        }
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

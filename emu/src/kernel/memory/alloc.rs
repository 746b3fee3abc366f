//! ALLOC_MEMORY_OF_GPU, FREE_MEMORY_OF_GPU, AVAILABLE_MEMORY.

use super::{Bo, Handle, Kind};
use crate::kernel::backing::{PAGE, Pages, page_up};
use crate::kernel::call::Call;
use crate::kernel::doorbell::{self, Doorbells};
use crate::kernel::process::DeviceData;
use crate::kernel::user;
use kfd::Errno;
use kfd::uapi::{
    ALLOC_MEM_FLAGS_AQL_QUEUE_MEM, ALLOC_MEM_FLAGS_DOORBELL, ALLOC_MEM_FLAGS_GTT, ALLOC_MEM_FLAGS_MMIO_REMAP,
    ALLOC_MEM_FLAGS_PUBLIC, ALLOC_MEM_FLAGS_USERPTR, ALLOC_MEM_FLAGS_VRAM, AllocMemoryOfGpuArgs, FreeMemoryOfGpuArgs,
    GetAvailableMemoryArgs, MmapOffset, MmapType,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// ALLOC_MEMORY_OF_GPU. Neither alignment nor range of the address is looked at: MAP does that.
pub fn allocate(call: &Call<'_>, args: &mut AllocMemoryOfGpuArgs) -> Result<(), Errno> {
    let AllocMemoryOfGpuArgs { va_addr, size, flags, gpu_id, .. } = *args;
    let has = |bits: u32| flags & bits != 0;
    if size == 0 {
        return Err(Errno::EINVAL);
    }
    let mut inner = call.process.lock();
    // VRAM without an address is for a later import elsewhere.
    let svm_address = !(has(ALLOC_MEM_FLAGS_VRAM) && va_addr == 0);
    if (svm_address && inner.svm.overlaps(va_addr, size))
        || (has(ALLOC_MEM_FLAGS_USERPTR) && inner.svm.overlaps(args.mmap_offset, size))
    {
        return Err(Errno::EADDRINUSE);
    }
    let index = inner.index(gpu_id)?;
    let data = &mut inner.devices[index];
    let device = data.device.clone();
    if has(ALLOC_MEM_FLAGS_VRAM) && has(ALLOC_MEM_FLAGS_PUBLIC) && !device.profile.large_bar {
        return Err(Errno::EINVAL);
    }
    if data.vm.is_none() {
        return Err(Errno::ENODEV);
    }
    // These two look at their own flag before any precedence of kinds.
    if has(ALLOC_MEM_FLAGS_DOORBELL) && size != doorbell::SLICE_BYTES {
        return Err(Errno::EINVAL);
    }
    if has(ALLOC_MEM_FLAGS_MMIO_REMAP) && size != PAGE {
        return Err(Errno::EINVAL);
    }
    let kind = kind(flags).ok_or(Errno::EINVAL)?;
    if kind == Kind::Userptr && args.mmap_offset == 0 {
        return Err(Errno::EINVAL);
    }
    if has(ALLOC_MEM_FLAGS_AQL_QUEUE_MEM) && size < 2 {
        return Err(Errno::EINVAL);
    }
    let size = if has(ALLOC_MEM_FLAGS_AQL_QUEUE_MEM) { size / 2 } else { size };
    let bytes = page_up(size).ok_or(Errno::ENOMEM)?;

    call.kernel.charge(&device, kind, bytes)?;
    let pages = match pages(call, data, kind, args.mmap_offset, bytes) {
        Ok(pages) => pages,
        Err(errno) => {
            call.kernel.discharge(&device, kind, bytes);
            return Err(errno);
        }
    };
    let mmap_offset = match kind {
        Kind::MmioRemap => MmapOffset { kind: MmapType::Mmio, gpu_id: gpu_id as u16, offset: 0 }.encode(),
        // The render node's offset, of which a USERPTR and the doorbells have none that works.
        _ => pages.offset().unwrap_or(args.mmap_offset),
    };
    let (mapped, unmapped) = (BTreeMap::new(), Vec::new());
    let bo = Bo { va: va_addr, size: bytes, flags, kind, pages, mmap_offset, mapped, unmapped };
    args.handle = data.insert(bo).0;
    args.mmap_offset = mmap_offset;
    Ok(())
}

/// The kind that wins when several bits are set.
fn kind(flags: u32) -> Option<Kind> {
    [
        (ALLOC_MEM_FLAGS_VRAM, Kind::Vram),
        (ALLOC_MEM_FLAGS_GTT, Kind::Gtt),
        (ALLOC_MEM_FLAGS_USERPTR, Kind::Userptr),
        (ALLOC_MEM_FLAGS_DOORBELL, Kind::Doorbell),
        (ALLOC_MEM_FLAGS_MMIO_REMAP, Kind::MmioRemap),
    ]
    .into_iter()
    .find(|(bit, _)| flags & bit != 0)
    .map(|(_, kind)| kind)
}

fn pages(
    call: &Call<'_>,
    data: &mut DeviceData,
    kind: Kind,
    user_address: u64,
    bytes: u64,
) -> Result<Arc<Pages>, Errno> {
    match kind {
        Kind::Vram | Kind::Gtt | Kind::Imported => data.device.memory.allocate(bytes),
        Kind::Userptr => {
            let start = user_address & !(PAGE - 1);
            if !user::access_ok(start, bytes) || !user::is_writable(start, bytes) {
                return Err(Errno::EFAULT);
            }
            Ok(Pages::of_user(start, bytes))
        }
        Kind::Doorbell => Ok(data.doorbells(call)?.pages().clone()),
        Kind::MmioRemap => match &data.mmio {
            Some(pages) => Ok(pages.clone()),
            None => Ok(data.mmio.insert(call.process.memory.allocate(PAGE)?).clone()),
        },
    }
}

impl DeviceData {
    /// Gives a buffer the lowest free handle.
    pub fn insert(&mut self, bo: Bo) -> Handle {
        let mut id = 0;
        for taken in self.bos.keys() {
            if *taken != id {
                break;
            }
            id += 1;
        }
        self.bos.insert(id, bo);
        Handle::new(self.device.gpu_id, id)
    }

    /// The process' doorbells, made when first needed.
    pub fn doorbells(&mut self, call: &Call<'_>) -> Result<&mut Doorbells, Errno> {
        if self.doorbells.is_none() {
            self.doorbells = Some(Doorbells::new(self.device.profile.target, &call.process.memory)?);
        }
        self.doorbells.as_mut().ok_or(Errno::ENOMEM)
    }
}

/// FREE_MEMORY_OF_GPU.
pub fn free(call: &Call<'_>, args: &mut FreeMemoryOfGpuArgs) -> Result<(), Errno> {
    let mut inner = call.process.lock();
    if call.process.events.page_handle() == Some(args.handle) {
        return Err(Errno::EPERM);
    }
    let handle = Handle(args.handle);
    let data = inner.device(handle.gpu_id())?;
    let bo = data.bos.get(&handle.id()).ok_or(Errno::EINVAL)?;
    if !bo.mapped.is_empty() {
        return Err(Errno::EBUSY);
    }
    let device = data.device.clone();
    if let Some(bo) = data.bos.remove(&handle.id()) {
        call.kernel.discharge(&device, bo.kind, bo.pages.len());
        for (addr, len) in &bo.unmapped {
            user::unmap(*addr, *len);
        }
    }
    Ok(())
}

/// AVAILABLE_MEMORY.
pub fn available(call: &Call<'_>, args: &mut GetAvailableMemoryArgs) -> Result<(), Errno> {
    let mut inner = call.process.lock();
    let data = inner.device(args.gpu_id)?;
    args.available = data.device.available_vram(call.kernel.page_table_reserve);
    Ok(())
}

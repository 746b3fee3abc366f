//! ALLOC_MEMORY_OF_GPU, FREE_MEMORY_OF_GPU, AVAILABLE_MEMORY.

use super::{Bo, Handle, Kind};
use crate::kernel::backing::{Charge, PAGE, Pages, page_up};
use crate::kernel::call::Call;
use crate::kernel::device::Device;
use crate::kernel::doorbell::{self, Doorbells};
use crate::kernel::process::DeviceData;
use crate::kernel::rule::{GPU_KNOWN, check, rules};
use crate::kernel::user::{self, UserPages};
use kfd::Errno;
use kfd::uapi::{
    ALLOC_MEM_FLAGS_AQL_QUEUE_MEM, ALLOC_MEM_FLAGS_DOORBELL, ALLOC_MEM_FLAGS_GTT, ALLOC_MEM_FLAGS_MMIO_REMAP,
    ALLOC_MEM_FLAGS_PUBLIC, ALLOC_MEM_FLAGS_USERPTR, ALLOC_MEM_FLAGS_VRAM, AllocMemoryOfGpuArgs, FreeMemoryOfGpuArgs,
    GetAvailableMemoryArgs, MmapOffset, MmapType,
};
use std::collections::BTreeMap;
use std::sync::Arc;

const NAME: &str = "ALLOC_MEMORY_OF_GPU";

/// What ALLOC looks at.
pub struct Facts {
    args: AllocMemoryOfGpuArgs,
    /// The range of the address, or of a USERPTR's memory, overlaps a shared virtual memory range.
    svm_address: bool,
    svm_memory: bool,
    known_gpu: bool,
    large_bar: bool,
    acquired: bool,
    kind: Option<Kind>,
}

impl Facts {
    fn has(&self, bits: u32) -> bool {
        self.args.flags & bits != 0
    }

    /// Bytes of the buffer; none beyond 64 bits.
    fn bytes(&self) -> Option<u64> {
        page_up(if self.has(ALLOC_MEM_FLAGS_AQL_QUEUE_MEM) { self.args.size / 2 } else { self.args.size })
    }
}

rules! {
    /// ALLOC_MEMORY_OF_GPU, in front of the accounting.
    RULES for f: Facts {
        EINVAL "size is not 0": f.args.size => f.args.size != 0;
        EADDRINUSE "va_addr is not in a shared virtual memory range": f.args.va_addr => !f.svm_address;
        EADDRINUSE "the memory of a USERPTR is not in a shared virtual memory range": f.args.mmap_offset =>
            !f.svm_memory;
        EINVAL "gpu_id is a GPU of the process": f.args.gpu_id => f.known_gpu;
        EINVAL "VRAM is PUBLIC only where all of it is visible to the host": f.args.flags =>
            !(f.has(ALLOC_MEM_FLAGS_VRAM) && f.has(ALLOC_MEM_FLAGS_PUBLIC)) || f.large_bar;
        ENODEV "ACQUIRE_VM was called for the GPU": f.args.gpu_id => f.acquired;
        EINVAL "size is 8192 with DOORBELL, whatever other kind wins": f.args.size =>
            !f.has(ALLOC_MEM_FLAGS_DOORBELL) || f.args.size == doorbell::SLICE_BYTES;
        EINVAL "size is 4096 with MMIO_REMAP and not DOORBELL, whatever other kind wins": f.args.size =>
            !f.has(ALLOC_MEM_FLAGS_MMIO_REMAP) || f.has(ALLOC_MEM_FLAGS_DOORBELL) || f.args.size == PAGE;
        EINVAL "flags name a kind: VRAM, GTT, USERPTR, DOORBELL or MMIO_REMAP": f.args.flags => f.kind.is_some();
        EINVAL "mmap_offset is not 0 with USERPTR": f.args.mmap_offset =>
            f.kind != Some(Kind::Userptr) || f.args.mmap_offset != 0;
        EINVAL "size, half of it with AQL_QUEUE_MEM, is not 0 in whole pages, nor 2^64": f.args.size =>
            f.bytes().is_some_and(|bytes| bytes != 0);
    }

    /// ALLOC_MEMORY_OF_GPU: the accounting. With GTT and VRAM both, the buffer is VRAM and counts as GTT.
    ACCOUNT for f: AccountFacts {
        ENOMEM "the GPU has as much VRAM left, but for page tables": f.bytes => f.kind != Kind::Vram || f.fits;
        ENOMEM "as much system memory is left: all but 1/64 and 1.5 GiB, half of all for GTT": f.bytes =>
            f.kind == Kind::Vram || f.fits;
    }

    /// ALLOC_MEMORY_OF_GPU with USERPTR: the caller's memory.
    USER_PAGES for f: UserFacts {
        EFAULT "all of it is ordinary memory of the process": f.address => f.pages != UserPages::Absent;
        EPERM "all of it can be written": f.address => f.pages != UserPages::ReadOnly;
    }

    /// FREE_MEMORY_OF_GPU.
    FREE for f: FreeFacts {
        EPERM "the buffer is not the signal page": f.handle => !f.signal_page;
        EINVAL "handle names a GPU of the process": f.handle >> 32 => f.known_gpu;
        EINVAL "handle names a buffer": f.handle => f.mappings.is_some();
        EBUSY "the buffer is mapped on no GPU": f.mappings.unwrap_or_default() => f.mappings == Some(0);
    }
}

/// What the accounting comes to.
pub struct AccountFacts {
    bytes: u64,
    kind: Kind,
    fits: bool,
}

/// What is looked at of a USERPTR's memory.
pub struct UserFacts {
    address: u64,
    pages: UserPages,
}

/// What FREE looks at.
pub struct FreeFacts {
    handle: u64,
    signal_page: bool,
    known_gpu: bool,
    /// GPUs the buffer is mapped on; none: there is no buffer.
    mappings: Option<usize>,
}

/// ALLOC_MEMORY_OF_GPU. Neither alignment nor range of the address is looked at: MAP does that.
pub fn allocate(call: &Call<'_>, args: &mut AllocMemoryOfGpuArgs) -> Result<(), Errno> {
    let AllocMemoryOfGpuArgs { va_addr, size, flags, gpu_id, mmap_offset, .. } = *args;
    let has = |bits: u32| flags & bits != 0;
    let mut inner = call.process.lock();
    let index = inner.index(gpu_id).ok();
    let data = index.map(|index| &inner.devices[index]);
    let facts = Facts {
        args: *args,
        // VRAM without an address is for a later import elsewhere.
        svm_address: !(has(ALLOC_MEM_FLAGS_VRAM) && va_addr == 0) && inner.svm.overlaps(va_addr, size),
        svm_memory: has(ALLOC_MEM_FLAGS_USERPTR) && inner.svm.overlaps(mmap_offset, size),
        known_gpu: data.is_some(),
        large_bar: data.is_some_and(|data| data.device.profile.large_bar),
        acquired: data.is_some_and(|data| data.vm.is_some()),
        kind: kind(flags),
    };
    check(call.kernel, NAME, RULES, &facts)?;
    let (Some(index), Some(kind)) = (index, facts.kind) else { return Err(Errno::EINVAL) };
    let data = &mut inner.devices[index];
    let device = data.device.clone();
    let bytes = facts.bytes().ok_or(Errno::EINVAL)?;

    let charge = charge(call, &device, kind, flags, bytes)?;
    let pages = pages(call, data, kind, args.mmap_offset, bytes, charge)?;
    let mmap_offset = match kind {
        Kind::MmioRemap => MmapOffset { kind: MmapType::Mmio, gpu_id: gpu_id as u16, offset: 0 }.encode(),
        // It has an offset too, though it cannot be mapped.
        Kind::Userptr => data.memory.offset_only(bytes)?,
        // The render node's offset; that of the doorbells is of no use.
        _ => pages.offset().unwrap_or_default(),
    };
    for va in call.kernel.faults.allocated(va_addr) {
        call.kernel.note(|| format!("ALLOC_MEMORY_OF_GPU: the page of {va:#x} will not be there, as injected"));
        if let Some(vm) = &data.vm {
            vm.space.punch(va);
        }
    }
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

fn charge(call: &Call<'_>, device: &Arc<Device>, kind: Kind, flags: u32, bytes: u64) -> Result<Option<Charge>, Errno> {
    let kind = if flags & ALLOC_MEM_FLAGS_GTT != 0 { Kind::Gtt } else { kind };
    let taken = match kind {
        Kind::Vram => device.take_vram(bytes, call.kernel.page_table_reserve),
        Kind::Gtt | Kind::Userptr => call.kernel.system.charge(bytes, kind == Kind::Gtt),
        Kind::Doorbell | Kind::MmioRemap | Kind::Imported => return Ok(None),
    };
    check(call.kernel, NAME, ACCOUNT, &AccountFacts { bytes, kind, fits: taken.is_ok() })?;
    taken.map(Some)
}

fn pages(
    call: &Call<'_>,
    data: &mut DeviceData,
    kind: Kind,
    user_address: u64,
    bytes: u64,
    charge: Option<Charge>,
) -> Result<Arc<Pages>, Errno> {
    match kind {
        Kind::Vram | Kind::Gtt | Kind::Imported => data.memory.allocate_charged(bytes, charge),
        Kind::Userptr => {
            let address = user_address & !(PAGE - 1);
            let pages = if user::access_ok(address, bytes) { user::pages(address, bytes) } else { UserPages::Absent };
            check(call.kernel, NAME, USER_PAGES, &UserFacts { address, pages })?;
            Ok(Pages::of_user(address, bytes, charge))
        }
        Kind::Doorbell => Ok(data.doorbells(call)?.pages().clone()),
        Kind::MmioRemap => data.mmio_page(call),
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

    /// The page of HDP flush registers, made when first needed. Stores to it do nothing: host writes reach the memory
    /// at once.
    pub fn mmio_page(&mut self, call: &Call<'_>) -> Result<Arc<Pages>, Errno> {
        match &self.mmio {
            Some(pages) => Ok(pages.clone()),
            None => Ok(self.mmio.insert(call.process.memory.allocate(PAGE)?).clone()),
        }
    }
}

/// FREE_MEMORY_OF_GPU.
pub fn free(call: &Call<'_>, args: &mut FreeMemoryOfGpuArgs) -> Result<(), Errno> {
    let mut inner = call.process.lock();
    let handle = Handle(args.handle);
    let facts = FreeFacts {
        handle: args.handle,
        signal_page: call.process.events.page_handle() == Some(args.handle),
        known_gpu: inner.index(handle.gpu_id()).is_ok(),
        mappings: inner.bo(handle).map(|bo| bo.mapped.len()),
    };
    check(call.kernel, "FREE_MEMORY_OF_GPU", FREE, &facts)?;
    if let Some(bo) = inner.device(handle.gpu_id())?.bos.remove(&handle.id()) {
        for (addr, len) in &bo.unmapped {
            user::unmap(*addr, *len);
        }
    }
    Ok(())
}

/// AVAILABLE_MEMORY.
pub fn available(call: &Call<'_>, args: &mut GetAvailableMemoryArgs) -> Result<(), Errno> {
    let mut inner = call.process.lock();
    let data = call.gpu("AVAILABLE_MEMORY", GPU_KNOWN, &mut inner, args.gpu_id)?;
    args.available = data.device.available_vram(call.kernel.page_table_reserve);
    Ok(())
}

//! mmap of the device nodes.

use super::Kernel;
use super::backing::{PAGE, Pages};
use super::device::Device;
use super::doorbell::SLICE_BYTES;
use super::file::File;
use super::memory::Kind;
use kfd::Errno;
use kfd::uapi::{ALLOC_MEM_FLAGS_PUBLIC, MmapOffset, MmapType};
use std::sync::Arc;

/// What of the arguments matters.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Bytes.
    pub len: usize,
    /// PROT_ bits.
    pub prot: i32,
    /// MAP_ bits.
    pub flags: i32,
    /// Offset, all 64 bits.
    pub offset: u64,
}

/// What to map.
pub struct Mapped {
    /// Memory.
    pub pages: Arc<Pages>,
    /// The host may touch it.
    pub visible: bool,
}

/// Checks a mapping of an open file.
///
/// | node | rule | errno |
/// |---|---|---|
/// | any | length not 0, offset in whole pages | EINVAL |
/// | `/dev/kfd` | the caller has a process object | EINVAL |
/// | | doorbells, reserved memory, MMIO: the GPU id in the offset exists | ENODEV |
/// | | doorbells: exactly 8192 bytes | EINVAL |
/// | | events: at most 32768 bytes, and there is a page | EINVAL |
/// | | MMIO: exactly 4096 bytes | EINVAL |
/// | | reserved memory: an APU's | EINVAL |
/// | render node | a buffer starts at the offset and is at least as long | EINVAL |
/// | | ACQUIRE_VM of the buffer's GPU was called with this open file | EACCES |
/// | | the mapping is shared, or has no access right at all | EINVAL |
pub fn check(kernel: &Arc<Kernel>, file: &Arc<File>, request: Request) -> Result<Mapped, Errno> {
    if request.len == 0 || request.offset % PAGE != 0 {
        return Err(Errno::EINVAL);
    }
    match &**file {
        File::Kfd { .. } => kfd(kernel, request).map(|pages| Mapped { pages, visible: true }),
        File::Render { device, .. } => render(kernel, file, device, request),
        File::DmaBuf(shared) if request.offset == 0 && request.len as u64 <= shared.size => {
            Ok(Mapped { pages: shared.pages.clone(), visible: true })
        }
        File::DmaBuf(_) => Err(Errno::EINVAL),
    }
}

fn kfd(kernel: &Arc<Kernel>, request: Request) -> Result<Arc<Pages>, Errno> {
    let process = kernel.existing_process().ok_or(Errno::EINVAL)?;
    let at = MmapOffset::decode(request.offset);
    let len = request.len as u64;
    if at.kind == MmapType::Events {
        return process.events.map_page(len);
    }
    let mut inner = process.lock();
    let data = inner.device(u32::from(at.gpu_id)).map_err(|_| Errno::ENODEV)?;
    match at.kind {
        MmapType::Doorbell if len == SLICE_BYTES => {
            let call = super::call::Call { kernel, process: &process };
            Ok(data.doorbells(&call)?.pages().clone())
        }
        MmapType::Mmio if len == PAGE => match &data.mmio {
            Some(pages) => Ok(pages.clone()),
            None => Ok(data.mmio.insert(process.memory.allocate(PAGE)?).clone()),
        },
        _ => Err(Errno::EINVAL),
    }
}

fn render(kernel: &Arc<Kernel>, file: &Arc<File>, device: &Arc<Device>, request: Request) -> Result<Mapped, Errno> {
    // Buffers of other processes than the caller's are none of this file's.
    let process = kernel.existing_process().ok_or(Errno::EINVAL)?;
    let inner = process.lock();
    let data = &inner.devices[device.index];
    let bo = data
        .bos
        .values()
        .filter(|bo| matches!(bo.kind, Kind::Vram | Kind::Gtt | Kind::Imported))
        .find(|bo| bo.mmap_offset == request.offset && request.len as u64 <= bo.size)
        .ok_or(Errno::EINVAL)?;
    if !data.vm.as_ref().is_some_and(|vm| Arc::ptr_eq(&vm.file, file)) {
        return Err(Errno::EACCES);
    }
    let access = request.prot & (libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC) != 0;
    if request.flags & libc::MAP_TYPE == libc::MAP_PRIVATE && access {
        return Err(Errno::EINVAL);
    }
    // The kernel would move the buffer into the visible part of the VRAM on a touch. Here the touch is seen as the
    // mistake it is.
    let visible = bo.kind != Kind::Vram || bo.flags & ALLOC_MEM_FLAGS_PUBLIC != 0;
    Ok(Mapped { pages: bo.pages.clone(), visible })
}

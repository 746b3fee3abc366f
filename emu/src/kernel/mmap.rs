//! mmap of the device nodes.

use super::Kernel;
use super::backing::{PAGE, Pages};
use super::device::Device;
use super::doorbell::SLICE_BYTES;
use super::file::File;
use super::memory::{Bo, Kind};
use super::rule::{self, RuleText, rules, texts};
use kfd::Errno;
use kfd::uapi::{ALLOC_MEM_FLAGS_PUBLIC, ALLOC_MEM_FLAGS_WRITABLE, MmapOffset, MmapType};
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
    /// First byte of it.
    pub from: u64,
    /// The host may touch it.
    pub visible: bool,
}

/// What is looked at on `/dev/kfd`.
pub struct KfdFacts {
    request: Request,
    at: MmapOffset,
    process: bool,
    known_gpu: bool,
    /// There is a page of event slots.
    signal_page: bool,
}

/// What is looked at on an exported buffer.
pub struct DmaBufFacts {
    request: Request,
    bytes: u64,
    writable: bool,
}

/// What is looked at on a render node.
pub struct RenderFacts {
    request: Request,
    /// Bytes of the buffer that starts at the offset.
    buffer: Option<u64>,
    userptr: bool,
    /// ACQUIRE_VM was called for the buffer's GPU with this open file.
    same_file: bool,
}

rules! {
    /// mmap of any node.
    ANY for r: Request {
        EINVAL "length is not 0": r.len => r.len != 0;
        EINVAL "offset is a multiple of 4096": r.offset => r.offset.is_multiple_of(PAGE);
    }

    /// mmap of `/dev/kfd`.
    KFD for f: KfdFacts {
        EINVAL "the calling process has opened /dev/kfd": f.process => f.process;
        ENODEV "bits 46 to 61 of offset are a GPU of the process, but for events": f.at.gpu_id =>
            f.known_gpu || f.at.kind == MmapType::Events;
        EINVAL "length, in whole pages, is 8192 for doorbells (type 3)": f.request.len =>
            f.at.kind != MmapType::Doorbell || f.request.len as u64 == SLICE_BYTES;
        EINVAL "length is at most 32768 for events (type 2)": f.request.len =>
            f.at.kind != MmapType::Events || f.request.len <= 32768;
        EINVAL "a signal event was created before events (type 2) are mapped": f.request.len =>
            f.at.kind != MmapType::Events || f.signal_page;
        EINVAL "length, in whole pages, is 4096 for MMIO (type 0)": f.request.len =>
            f.at.kind != MmapType::Mmio || f.request.len as u64 == PAGE;
        EINVAL "reserved memory (type 1) is an APU's": f.at.gpu_id => f.at.kind != MmapType::ReservedMem;
    }

    /// mmap of a descriptor of EXPORT_DMABUF.
    DMA_BUF for f: DmaBufFacts {
        EACCES "the buffer was allocated WRITABLE, with shared write access": f.request.prot =>
            f.writable || f.request.prot & libc::PROT_WRITE == 0 || f.request.flags & libc::MAP_TYPE == libc::MAP_PRIVATE;
        EINVAL "the mapping ends at the buffer's end or before": f.request.len =>
            f.request.offset.checked_add(f.request.len as u64).is_some_and(|end| end <= f.bytes);
        EINVAL "the mapping is shared, or without any access": f.request.flags =>
            f.request.flags & libc::MAP_TYPE != libc::MAP_PRIVATE || f.request.prot == libc::PROT_NONE;
    }

    /// mmap of a render node.
    RENDER for f: RenderFacts {
        EINVAL "a buffer of the node starts at offset": f.request.offset => f.buffer.is_some();
        EINVAL "length is at most the buffer's": f.request.len =>
            f.buffer.is_some_and(|bytes| f.request.len as u64 <= bytes);
        EACCES "ACQUIRE_VM of the buffer's GPU was called with this open file": f.request.offset => f.same_file;
        EPERM "the buffer is not USERPTR": f.request.offset => !f.userptr;
        EINVAL "the mapping is shared, or without any access": f.request.flags =>
            f.request.flags & libc::MAP_TYPE != libc::MAP_PRIVATE || f.request.prot == libc::PROT_NONE;
    }
}

/// The tables of this module.
pub fn rule_texts() -> Vec<(&'static str, Vec<RuleText>)> {
    vec![
        ("mmap of /dev/kfd", [texts(ANY), texts(KFD)].concat()),
        ("mmap of a render node", [texts(ANY), texts(RENDER)].concat()),
        ("mmap of an exported buffer", [texts(ANY), texts(DMA_BUF)].concat()),
    ]
}

/// Checks a mapping of an open file.
pub fn check(kernel: &Arc<Kernel>, file: &Arc<File>, mut request: Request) -> Result<Mapped, Errno> {
    rule::check(kernel, "mmap", ANY, &request)?;
    // What a driver sees is whole pages.
    request.len = request.len.checked_next_multiple_of(PAGE as usize).ok_or(Errno::ENOMEM)?;
    match &**file {
        File::Kfd { .. } => kfd(kernel, request).map(|pages| Mapped { pages, from: 0, visible: true }),
        File::Render { device, .. } => render(kernel, file, device, request),
        File::DmaBuf(shared) => {
            let writable = shared.flags & ALLOC_MEM_FLAGS_WRITABLE != 0;
            let facts = DmaBufFacts { request, bytes: shared.size, writable };
            rule::check(kernel, "mmap of an exported buffer", DMA_BUF, &facts)?;
            Ok(Mapped { pages: shared.pages.clone(), from: request.offset, visible: true })
        }
    }
}

fn kfd(kernel: &Arc<Kernel>, request: Request) -> Result<Arc<Pages>, Errno> {
    let process = kernel.existing_process();
    let at = MmapOffset::decode(request.offset);
    let facts = KfdFacts {
        request,
        at,
        process: process.is_some(),
        known_gpu: process.as_ref().is_some_and(|process| process.lock().index(at.gpu_id.into()).is_ok()),
        signal_page: process.as_ref().is_some_and(|process| process.events.has_page()),
    };
    rule::check(kernel, "mmap of /dev/kfd", KFD, &facts)?;
    let process = process.ok_or(Errno::EINVAL)?;
    if at.kind == MmapType::Events {
        return process.events.map_page(request.len as u64);
    }
    let call = super::call::Call { kernel, process: &process, user_size: 0 };
    let mut inner = process.lock();
    let data = inner.device(at.gpu_id.into())?;
    match at.kind {
        MmapType::Doorbell => Ok(data.doorbells(&call)?.pages().clone()),
        _ => data.mmio_page(&call),
    }
}

fn render(kernel: &Arc<Kernel>, file: &Arc<File>, device: &Arc<Device>, request: Request) -> Result<Mapped, Errno> {
    // Buffers of other processes than the caller's are none of this file's.
    let process = kernel.existing_process().ok_or(Errno::EINVAL)?;
    let inner = process.lock();
    let data = &inner.devices[device.index];
    let mappable = |bo: &&Bo| matches!(bo.kind, Kind::Vram | Kind::Gtt | Kind::Imported | Kind::Userptr);
    let mut mappable = data.bos.values().filter(mappable);
    let bo = mappable.find(|bo| bo.mmap_offset == request.offset);
    let facts = RenderFacts {
        request,
        buffer: bo.map(|bo| bo.size),
        userptr: bo.is_some_and(|bo| bo.kind == Kind::Userptr),
        same_file: data.vm.as_ref().is_some_and(|vm| Arc::ptr_eq(&vm.file, file)),
    };
    rule::check(kernel, "mmap of a render node", RENDER, &facts)?;
    let bo = bo.ok_or(Errno::EINVAL)?;
    // The kernel would move the buffer into the visible part of the VRAM on a touch. Here the touch is seen as the
    // mistake it is.
    let visible = bo.kind != Kind::Vram || bo.flags & ALLOC_MEM_FLAGS_PUBLIC != 0;
    Ok(Mapped { pages: bo.pages.clone(), from: 0, visible })
}

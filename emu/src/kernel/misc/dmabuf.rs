//! Sharing buffers by file descriptor: EXPORT_DMABUF, IMPORT_DMABUF, GET_DMABUF_INFO.

use crate::kernel::backing::memfd;
use crate::kernel::call::Call;
use crate::kernel::file::{DmaBuf, File, is_open};
use crate::kernel::memory::{Bo, Handle, Kind};
use crate::kernel::rule::{GPU_ACQUIRED, RuleText, check, rules, texts};
use kfd::Errno;
use kfd::uapi::{
    ALLOC_MEM_FLAGS_EXECUTABLE, ALLOC_MEM_FLAGS_GTT, ALLOC_MEM_FLAGS_PUBLIC, ALLOC_MEM_FLAGS_VRAM,
    ALLOC_MEM_FLAGS_WRITABLE, ExportDmabufArgs, GetDmabufInfoArgs, ImportDmabufArgs,
};
use std::collections::BTreeMap;
use std::os::fd::IntoRawFd;
use std::sync::Arc;

/// What EXPORT_DMABUF looks at.
pub struct ExportFacts {
    handle: u64,
    known_gpu: bool,
    kind: Option<Kind>,
}

rules! {
    /// EXPORT_DMABUF.
    EXPORT for f: ExportFacts {
        EINVAL "handle names a GPU of the process": f.handle >> 32 => f.known_gpu;
        EINVAL "handle names a buffer": f.handle => f.kind.is_some();
        EPERM "the buffer is not USERPTR": f.handle => f.kind != Some(Kind::Userptr);
    }

    /// GET_DMABUF_INFO, in front of the descriptor.
    INFO for gpus: usize {
        EINVAL "the machine has a GPU, whose driver is asked": *gpus => *gpus != 0;
    }

    /// GET_DMABUF_INFO and IMPORT_DMABUF: the descriptor.
    DESCRIPTOR for f: DescriptorFacts {
        EBADF "dmabuf_fd is an open file": f.fd => f.open;
        EINVAL "the file is an exported buffer": f.fd => f.is_buffer;
    }
}

/// What is looked at of a descriptor.
pub struct DescriptorFacts {
    fd: u32,
    open: bool,
    is_buffer: bool,
}

/// The tables of this module.
pub fn rule_texts() -> Vec<(&'static str, Vec<RuleText>)> {
    vec![
        ("EXPORT_DMABUF", texts(EXPORT)),
        ("IMPORT_DMABUF", [texts(GPU_ACQUIRED), texts(DESCRIPTOR)].concat()),
        ("GET_DMABUF_INFO", [texts(INFO), texts(DESCRIPTOR)].concat()),
    ]
}

/// The shared buffer behind a descriptor: EBADF when it is not open, EINVAL when it is something else.
fn shared(call: &Call<'_>, fd: u32) -> Result<Arc<File>, Errno> {
    let file = call.kernel.files.get(fd as i32);
    let is_buffer = file.as_deref().is_some_and(|file| matches!(file, File::DmaBuf(_)));
    check(call.kernel, "dma-buf", DESCRIPTOR, &DescriptorFacts { fd, open: is_open(fd as i32), is_buffer })?;
    file.ok_or(Errno::EBADF)
}

/// EXPORT_DMABUF.
pub fn export(call: &Call<'_>, args: &mut ExportDmabufArgs) -> Result<(), Errno> {
    let inner = call.process.lock();
    let handle = Handle(args.handle);
    let bo = inner.bo(handle);
    let (known_gpu, kind) = (inner.index(handle.gpu_id()).is_ok(), bo.map(|bo| bo.kind));
    check(call.kernel, "EXPORT_DMABUF", EXPORT, &ExportFacts { handle: args.handle, known_gpu, kind })?;
    let device = inner.devices[inner.index(handle.gpu_id())?].device.clone();
    let bo = bo.ok_or(Errno::EINVAL)?;
    let file = File::DmaBuf(DmaBuf { device, pages: bo.pages.clone(), size: bo.size, flags: bo.flags });
    let fd = memfd(c"kfdrun-dmabuf").map_err(|_| Errno::EMFILE)?.into_raw_fd();
    if args.flags & libc::O_CLOEXEC as u32 == 0 {
        // SAFETY: the descriptor just made.
        unsafe { libc::fcntl(fd, libc::F_SETFD, 0) };
    }
    call.kernel.files.insert(fd, Arc::new(file));
    args.dmabuf_fd = fd as u32;
    Ok(())
}

/// IMPORT_DMABUF: a buffer that is writable and executable.
pub fn import(call: &Call<'_>, args: &mut ImportDmabufArgs) -> Result<(), Errno> {
    let mut inner = call.process.lock();
    call.gpu("IMPORT_DMABUF", GPU_ACQUIRED, &mut inner, args.gpu_id)?;
    let file = shared(call, args.dmabuf_fd)?;
    let File::DmaBuf(shared) = &*file else { return Err(Errno::EINVAL) };
    let domain = shared.flags & (ALLOC_MEM_FLAGS_VRAM | ALLOC_MEM_FLAGS_GTT);
    let bo = Bo {
        va: args.va_addr,
        size: shared.size,
        flags: domain | ALLOC_MEM_FLAGS_WRITABLE | ALLOC_MEM_FLAGS_EXECUTABLE,
        kind: Kind::Imported,
        pages: shared.pages.clone(),
        mmap_offset: shared.pages.offset().unwrap_or_default(),
        mapped: BTreeMap::new(),
        unmapped: Vec::new(),
    };
    args.handle = inner.device(args.gpu_id)?.insert(bo).0;
    Ok(())
}

/// GET_DMABUF_INFO. Buffers here have no metadata.
pub fn info(call: &Call<'_>, args: &mut GetDmabufInfoArgs) -> Result<(), Errno> {
    check(call.kernel, "GET_DMABUF_INFO", INFO, &call.kernel.devices.len())?;
    let file = shared(call, args.dmabuf_fd)?;
    let File::DmaBuf(shared) = &*file else { return Err(Errno::EINVAL) };
    args.size = shared.size;
    let vram = shared.flags & ALLOC_MEM_FLAGS_VRAM != 0;
    // System memory belongs to no partition of a GPU that can have some (GC 9.4.3), and then the first GPU's id is told.
    let partitions = matches!(shared.device.version(), 90402..90600);
    let teller = if partitions && !vram { call.kernel.devices.first() } else { None };
    args.gpu_id = teller.unwrap_or(&shared.device).gpu_id;
    args.flags = if vram { ALLOC_MEM_FLAGS_VRAM | shared.flags & ALLOC_MEM_FLAGS_PUBLIC } else { ALLOC_MEM_FLAGS_GTT };
    args.metadata_size = 0;
    Ok(())
}

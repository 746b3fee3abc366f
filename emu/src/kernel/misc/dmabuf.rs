//! Sharing buffers by file descriptor: EXPORT_DMABUF, IMPORT_DMABUF, GET_DMABUF_INFO.

use crate::kernel::backing::memfd;
use crate::kernel::call::Call;
use crate::kernel::file::{DmaBuf, File};
use crate::kernel::memory::{Bo, Handle, Kind};
use crate::kernel::rule::GPU_ACQUIRED;
use kfd::Errno;
use kfd::uapi::{
    ALLOC_MEM_FLAGS_EXECUTABLE, ALLOC_MEM_FLAGS_GTT, ALLOC_MEM_FLAGS_VRAM, ALLOC_MEM_FLAGS_WRITABLE, ExportDmabufArgs,
    GetDmabufInfoArgs, ImportDmabufArgs,
};
use std::collections::BTreeMap;
use std::os::fd::IntoRawFd;
use std::sync::Arc;

/// The shared buffer behind a descriptor: EBADF when it is not open, EINVAL when it is something else.
fn shared(call: &Call<'_>, fd: u32) -> Result<Arc<File>, Errno> {
    let fd = i32::try_from(fd).map_err(|_| Errno::EBADF)?;
    match call.kernel.files.get(fd) {
        Some(file) if matches!(*file, File::DmaBuf(_)) => Ok(file),
        Some(_) => Err(Errno::EINVAL),
        None if super::is_open(fd) => Err(Errno::EINVAL),
        None => Err(Errno::EBADF),
    }
}

/// EXPORT_DMABUF.
pub fn export(call: &Call<'_>, args: &mut ExportDmabufArgs) -> Result<(), Errno> {
    let inner = call.process.lock();
    let handle = Handle(args.handle);
    let device = inner.devices[inner.index(handle.gpu_id())?].device.clone();
    let bo = inner.bo(handle).ok_or(Errno::EINVAL)?;
    if !matches!(bo.kind, Kind::Vram | Kind::Gtt | Kind::Imported) {
        return Err(Errno::EINVAL);
    }
    let file = File::DmaBuf(DmaBuf { device, pages: bo.pages.clone(), size: bo.size, flags: bo.flags });
    let fd = memfd(c"kfdrun-dmabuf").map_err(|_| Errno::EMFILE)?.into_raw_fd();
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
    let file = shared(call, args.dmabuf_fd)?;
    let File::DmaBuf(shared) = &*file else { return Err(Errno::EINVAL) };
    args.size = shared.size;
    args.gpu_id = shared.device.gpu_id;
    args.flags = shared.flags & (ALLOC_MEM_FLAGS_VRAM | ALLOC_MEM_FLAGS_GTT);
    args.metadata_size = 0;
    Ok(())
}

//! EXPORT_DMABUF, IMPORT_DMABUF, GET_DMABUF_INFO.

use super::tools::{NO_FD, plain_file};
use crate::case::cases;
use crate::gpu::{SHARED, VRAM};
use kfd::Errno;
use kfd::uapi::*;

cases! { "KFDIPCTest", s:
    safe kfd unknown_handle "EXPORT_DMABUF of no buffer is EINVAL" {
        for handle in [0u64, 1, 1 << 32, 0x1234_0000_0000, u64::MAX] {
            let result = s.call(&mut ExportDmabufArgs { handle, ..Default::default() });
            s.err(format!("handle {handle:#x}"), result, Errno::EINVAL);
        }
    }

    safe no_gpu info_without_a_gpu "GET_DMABUF_INFO asks a GPU's driver: without one EINVAL, whatever the descriptor" {
        for (what, dmabuf_fd) in [("no descriptor", NO_FD), ("a plain file", plain_file()? as u32)] {
            let result = s.call(&mut GetDmabufInfoArgs { dmabuf_fd, ..Default::default() });
            s.err(what, result, Errno::EINVAL);
        }
    }

    safe gpu descriptors "a descriptor that is not open is EBADF, one that is no dma-buf EINVAL" {
        let gpu = s.gpu()?;
        for (what, dmabuf_fd, want) in
            [("no descriptor", NO_FD, Errno::EBADF), ("a plain file", plain_file()? as u32, Errno::EINVAL)]
        {
            let result = s.call(&mut GetDmabufInfoArgs { dmabuf_fd, ..Default::default() });
            s.err(format!("GET_DMABUF_INFO of {what}"), result, want);
            let result = s.call(&mut ImportDmabufArgs { dmabuf_fd, gpu_id: gpu.id, ..Default::default() });
            s.err(format!("IMPORT_DMABUF of {what}"), result, want);
        }
    }

    safe gpu before_acquire "IMPORT_DMABUF needs ACQUIRE_VM, before the descriptor is looked at: ENODEV" {
        let gpu = crate::gpu::Gpu::open(s.driver.clone(), s.kfd)?;
        let result = s.call(&mut ImportDmabufArgs { dmabuf_fd: NO_FD, gpu_id: gpu.id, ..Default::default() });
        s.err("IMPORT_DMABUF", result, Errno::ENODEV);
    }

    safe gpu rights "a buffer that the GPU cannot write is exported to be read; O_CLOEXEC is the caller's choice" {
        let gpu = s.gpu()?;
        for (what, flags, cloexec, want) in [
            ("a writable buffer", SHARED, true, Ok(())),
            ("one that is only read", SHARED & !ALLOC_MEM_FLAGS_WRITABLE, false, Err(Errno::EACCES)),
        ] {
            let buffer = gpu.alloc(gpu.reserve(8192)?, 8192, flags)?;
            let open = if cloexec { libc::O_CLOEXEC as u32 } else { 0 };
            let mut export = ExportDmabufArgs { handle: buffer.handle, flags: open, dmabuf_fd: 0 };
            s.call(&mut export)?;
            let fd = export.dmabuf_fd as i32;
            // SAFETY: asks for the flags of a descriptor.
            let closes = unsafe { libc::fcntl(fd, libc::F_GETFD) } & libc::FD_CLOEXEC != 0;
            s.value("closes on exec", closes, cloexec);
            s.expect(format!("mmap of {what} to write"), gpu.mmap(fd, 0, 8192, 0).map(drop), want);
            let read = |len, offset| {
                // SAFETY: without MAP_FIXED the kernel chooses a free place.
                unsafe { s.driver.mmap(0, len, libc::PROT_READ, libc::MAP_SHARED, fd, offset) }.map(drop)
            };
            let results = [read(8192, 0), read(4096, 4096), read(8192, 4096)];
            let [all, second, beyond] = results;
            s.ok("all of it to read", all);
            s.ok("its second page", second);
            s.err("beyond its end", beyond, Errno::EINVAL);
        }
    }

    safe gpu export_and_import "an exported buffer tells its size, GPU and kind, and imports as a buffer of its own" {
        let gpu = s.gpu()?;
        for (what, flags, kind) in [("GTT", SHARED, ALLOC_MEM_FLAGS_GTT), ("VRAM", VRAM, ALLOC_MEM_FLAGS_VRAM)] {
            let buffer = gpu.alloc(gpu.reserve(8192)?, 8192, flags)?;
            let mut export = ExportDmabufArgs { handle: buffer.handle, flags: libc::O_CLOEXEC as u32, dmabuf_fd: 0 };
            let result = s.call(&mut export);
            s.ok(format!("EXPORT_DMABUF of {what}"), result);
            let mut info = GetDmabufInfoArgs { dmabuf_fd: export.dmabuf_fd, ..Default::default() };
            let result = s.call(&mut info);
            s.ok("GET_DMABUF_INFO", result);
            s.value("size", info.size, 8192);
            s.value("gpu_id", info.gpu_id == gpu.id, true);
            s.value("its kind in flags", info.flags & kind != 0, true);
            let va_addr = gpu.reserve(8192)?;
            let dmabuf_fd = export.dmabuf_fd;
            let mut import = ImportDmabufArgs { va_addr, gpu_id: gpu.id, dmabuf_fd, ..Default::default() };
            let result = s.call(&mut import);
            s.ok("IMPORT_DMABUF", result);
            s.value("another handle", import.handle != buffer.handle, true);
            s.ok("MAP of it", gpu.map(import.handle, &[gpu.id]).0);
            s.ok("FREE of the original", gpu.free(buffer.handle));
            s.ok("UNMAP of the import", gpu.unmap(import.handle, &[gpu.id]).0);
            s.ok("FREE of the import", gpu.free(import.handle));
            s.driver.close(export.dmabuf_fd as i32)?;
        }
        let doorbells = gpu.alloc(gpu.reserve(8192)?, 8192, ALLOC_MEM_FLAGS_DOORBELL | ALLOC_MEM_FLAGS_WRITABLE)?;
        let mut export = ExportDmabufArgs { handle: doorbells.handle, flags: libc::O_CLOEXEC as u32, dmabuf_fd: 0 };
        let result = s.call(&mut export);
        s.ok("EXPORT_DMABUF of the doorbells", result);
        s.driver.close(export.dmabuf_fd as i32)?;
        let user = s.anonymous(4096, libc::PROT_READ | libc::PROT_WRITE)?;
        let args = gpu.alloc_user(user, 4096)?;
        let result = s.call(&mut ExportDmabufArgs { handle: args.handle, ..Default::default() });
        s.err("EXPORT_DMABUF of a USERPTR", result, Errno::EPERM);
    }
}

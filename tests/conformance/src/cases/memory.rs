//! Buffers, and mmap of the device nodes.

use super::tools::{KERNEL_ADDRESS, NO_FD, NO_GPU, plain_file};
use crate::case::cases;
use crate::gpu::{DOORBELL_SLICE, Gpu, SHARED, VRAM};
use kfd::Errno;
use kfd::uapi::*;
use std::sync::atomic::Ordering;

const DOORBELL: u64 = 3 << 62;
const RESERVED: u64 = 1 << 62;

fn doorbells(gpu_id: u32) -> u64 {
    DOORBELL | u64::from(gpu_id) << 46
}

cases! { "KFDMemoryTest", s:
    safe kfd unknown_buffers "a buffer is looked for in its GPU first: EINVAL when the process does not have that" {
        for handle in [0u64, 1, 1 << 32, 0xffff_ffff_0000_0000, u64::MAX] {
            let result = s.call(&mut FreeMemoryOfGpuArgs { handle });
            s.err(format!("FREE {handle:#x}"), result, Errno::EINVAL);
            let list = [NO_GPU];
            let device_ids_array_ptr = list.as_ptr() as u64;
            let mut args = MapMemoryToGpuArgs { handle, device_ids_array_ptr, n_devices: 1, n_success: 0 };
            let result = s.call(&mut args);
            s.err(format!("MAP {handle:#x}"), result, Errno::EINVAL);
            let mut args = UnmapMemoryFromGpuArgs { handle, device_ids_array_ptr, n_devices: 1, n_success: 0 };
            let result = s.call(&mut args);
            s.err(format!("UNMAP {handle:#x}"), result, Errno::EINVAL);
        }
    }

    safe kfd device_lists "the list of GPUs is not empty, n_success is at most its length, and it can be read" {
        let list = [NO_GPU; 2];
        let good = list.as_ptr() as u64;
        let nowhere = s.untouchable()?;
        for (what, array, n_devices, n_success, want) in [
            ("empty", good, 0, 0, Errno::EINVAL),
            ("empty and n_success 1", good, 0, 1, Errno::EINVAL),
            ("n_success beyond", good, 2, 3, Errno::EINVAL),
            ("n_success beyond, array untouchable", nowhere, 2, 3, Errno::EINVAL),
            ("array null", 0, 2, 0, Errno::EFAULT),
            ("array untouchable", nowhere, 2, 2, Errno::EFAULT),
            ("array of the kernel", KERNEL_ADDRESS, 1, 0, Errno::EFAULT),
            ("array good", good, 2, 1, Errno::EINVAL),
        ] {
            let mut args = MapMemoryToGpuArgs { handle: 0, device_ids_array_ptr: array, n_devices, n_success };
            let result = s.call(&mut args);
            s.err(format!("MAP, list {what}"), result, want);
            s.value("n_success", args.n_success, n_success);
            let mut args = UnmapMemoryFromGpuArgs { handle: 0, device_ids_array_ptr: array, n_devices, n_success };
            let result = s.call(&mut args);
            s.err(format!("UNMAP, list {what}"), result, want);
            s.value("n_success", args.n_success, n_success);
        }
    }

    risky kfd long_device_lists "a list that does not fit one allocation of 4 MiB is ENOMEM" {
        for (n_devices, want) in [(1 << 20, Errno::EFAULT), ((1 << 20) + 1, Errno::ENOMEM), (u32::MAX, Errno::ENOMEM)] {
            let mut args = MapMemoryToGpuArgs { n_devices, ..Default::default() };
            let result = s.call(&mut args);
            s.err(format!("MAP with {n_devices} devices"), result, want);
            let mut args = UnmapMemoryFromGpuArgs { n_devices, ..Default::default() };
            let result = s.call(&mut args);
            s.err(format!("UNMAP with {n_devices} devices"), result, want);
        }
    }

    safe kfd kfd_mmap "doorbells, MMIO and reserved memory are a GPU's: ENODEV when there is no such GPU" {
        for (what, kind) in [("MMIO", 0), ("reserved memory", RESERVED), ("doorbells", DOORBELL)] {
            for gpu_id in [0u64, 0xffff] {
                for len in [4096, 8192, 1 << 20] {
                    let result = s.mmap(s.kfd, len, kind | gpu_id << 46).map(drop);
                    s.err(format!("{what} of GPU {gpu_id:#x}, {len} bytes"), result, Errno::ENODEV);
                }
            }
        }
        let result = s.mmap(s.kfd, 0, DOORBELL).map(drop);
        s.err("no bytes", result, Errno::EINVAL);
        let result = s.mmap(s.kfd, 8192, DOORBELL | 8).map(drop);
        s.err("an offset inside a page", result, Errno::EINVAL);
        let result = s.mmap(NO_FD as i32, 8192, DOORBELL).map(drop);
        s.err("no file", result, Errno::EBADF);
    }

    safe gpu doorbell_mmap "doorbells map whole, any number of times" {
        let gpu = s.gpu()?;
        for (len, want) in [
            (8192, Ok(())),
            (8191, Ok(())),
            (4097, Ok(())),
            (4096, Err(Errno::EINVAL)),
            (1, Err(Errno::EINVAL)),
            (8193, Err(Errno::EINVAL)),
            (16384, Err(Errno::EINVAL)),
        ] {
            let result = s.mmap(s.kfd, len, doorbells(gpu.id)).map(drop);
            s.expect(format!("{len} bytes"), result, want);
        }
        let result = s.mmap(s.kfd, 8192, doorbells(gpu.id) | 8192).map(drop);
        s.ok("an offset beyond does not matter", result);
        for len in [4096, 8192] {
            let result = s.mmap(s.kfd, len, RESERVED | u64::from(gpu.id) << 46).map(drop);
            s.err(format!("reserved memory of a GPU that is no APU, {len} bytes"), result, Errno::EINVAL);
        }
        let result = s.mmap(s.kfd, 8192, u64::from(gpu.id) << 46).map(drop);
        s.err("MMIO, 8192 bytes", result, Errno::EINVAL);
    }

    safe gpu acquire "a GPU is acquired once, with one file of its render node: EBUSY" {
        let gpu = Gpu::open(s.driver.clone(), s.kfd)?;
        let acquire = |fd: i32| s.call(&mut AcquireVmArgs { drm_fd: fd as u32, gpu_id: gpu.id });
        let plain = acquire(plain_file()?);
        let kfd = acquire(s.kfd);
        let none = acquire(NO_FD as i32);
        let first = acquire(gpu.render);
        let again = acquire(gpu.render);
        let other = s.driver.open(&format!("/dev/dri/renderD{}", gpu.node.properties.drm_render_minor.unwrap_or(0)))?;
        let second = acquire(other);
        let plain_after = acquire(plain_file()?);
        s.err("a plain file", plain, Errno::EINVAL);
        s.err("/dev/kfd itself", kfd, Errno::EINVAL);
        s.err("no file", none, Errno::EINVAL);
        s.ok("the render node", first);
        s.ok("the same file again", again);
        s.err("another file of the node", second, Errno::EBUSY);
        s.err("a plain file afterwards", plain_after, Errno::EBUSY);
    }

    safe gpu before_acquire "without ACQUIRE_VM memory requests are ENODEV, queue requests ESRCH" {
        let gpu = Gpu::open(s.driver.clone(), s.kfd)?;
        s.err("ALLOC", gpu.alloc(0x1000_0000, 4096, SHARED).map(drop), Errno::ENODEV);
        s.err("ALLOC without a kind", gpu.alloc(0x1000_0000, 4096, 0).map(drop), Errno::ENODEV);
        s.err("ALLOC of 0 bytes", gpu.alloc(0x1000_0000, 0, SHARED).map(drop), Errno::EINVAL);
        s.err("MAP of no buffer", gpu.map(u64::from(gpu.id) << 32, &[gpu.id]).0, Errno::ENODEV);
        s.err("UNMAP of no buffer", gpu.unmap(u64::from(gpu.id) << 32, &[gpu.id]).0, Errno::ENOMEM);
        s.err("FREE of no buffer", gpu.free(u64::from(gpu.id) << 32), Errno::EINVAL);
        let gpu_id = gpu.id;
        let result = s.call(&mut SetScratchBackingVaArgs { gpu_id, ..Default::default() });
        s.err("SET_SCRATCH_BACKING_VA", result, Errno::ENODEV);
        let result = s.call(&mut SetMemoryPolicyArgs { gpu_id, ..Default::default() });
        s.err("SET_MEMORY_POLICY", result, Errno::ESRCH);
        let result = s.call(&mut SetMemoryPolicyArgs { gpu_id, default_policy: 2, ..Default::default() });
        s.err("SET_MEMORY_POLICY 2", result, Errno::EINVAL);
        let result = s.call(&mut SetTrapHandlerArgs { gpu_id, ..Default::default() });
        s.err("SET_TRAP_HANDLER", result, Errno::ESRCH);
        let result = s.call(&mut CreateQueueArgs { gpu_id, queue_type: 2, ..Default::default() });
        s.err("CREATE_QUEUE", result, Errno::ESRCH);
        let result = s.call(&mut CreateEventArgs { event_page_offset: u64::from(gpu_id) << 32, ..Default::default() });
        s.err("CREATE_EVENT with a buffer", result, Errno::ENODEV);
        let result = s.call(&mut GetTileConfigArgs { gpu_id, ..Default::default() });
        s.ok("GET_TILE_CONFIG without arrays", result);
        let result = s.call(&mut GetAvailableMemoryArgs { gpu_id, ..Default::default() });
        s.ok("AVAILABLE_MEMORY", result);
    }

    safe gpu alloc "ALLOC checks size and kind, and takes any address" {
        let gpu = s.gpu()?;
        let va = gpu.reserve(1 << 20)?;
        for (what, size, flags, want) in [
            ("0 bytes", 0, SHARED, Err(Errno::EINVAL)),
            ("no kind", 4096, ALLOC_MEM_FLAGS_WRITABLE, Err(Errno::EINVAL)),
            ("USERPTR without memory", 4096, ALLOC_MEM_FLAGS_USERPTR, Err(Errno::EINVAL)),
            ("DOORBELL of one page", 4096, ALLOC_MEM_FLAGS_DOORBELL, Err(Errno::EINVAL)),
            ("MMIO_REMAP of two pages", 8192, ALLOC_MEM_FLAGS_MMIO_REMAP, Err(Errno::EINVAL)),
            ("AQL_QUEUE_MEM of 1 byte", 1, SHARED | ALLOC_MEM_FLAGS_AQL_QUEUE_MEM, Err(Errno::EINVAL)),
            ("VRAM and DOORBELL of one page", 4096, VRAM | ALLOC_MEM_FLAGS_DOORBELL, Err(Errno::EINVAL)),
            ("VRAM and DOORBELL of two pages", 8192, VRAM | ALLOC_MEM_FLAGS_DOORBELL, Ok(())),
            (
                "DOORBELL and MMIO_REMAP: DOORBELL's size counts",
                8192,
                ALLOC_MEM_FLAGS_DOORBELL | ALLOC_MEM_FLAGS_MMIO_REMAP,
                Ok(()),
            ),
            ("more than any memory", 1 << 50, SHARED, Err(Errno::ENOMEM)),
            ("more than any VRAM", 1 << 50, VRAM, Err(Errno::ENOMEM)),
            ("1 byte", 1, SHARED, Ok(())),
            ("MMIO_REMAP", 4096, ALLOC_MEM_FLAGS_MMIO_REMAP | ALLOC_MEM_FLAGS_WRITABLE, Ok(())),
            ("DOORBELL", 8192, ALLOC_MEM_FLAGS_DOORBELL | ALLOC_MEM_FLAGS_WRITABLE, Ok(())),
        ] {
            let result = gpu.alloc(va, size, flags).map(drop);
            s.expect(what, result, want);
        }
        for addr in [0, 1, 0x1234, KERNEL_ADDRESS, u64::MAX - 4095] {
            let result = gpu.alloc(addr, 4096, SHARED).map(drop);
            s.ok(format!("at {addr:#x}"), result);
        }
    }

    safe gpu handles "handles are the GPU and the lowest free number, from 0" {
        let gpu = s.gpu()?;
        let make = || gpu.alloc(0x1000_0000, 4096, SHARED).map(|args| args.handle);
        let handles = [make()?, make()?, make()?];
        for (n, handle) in handles.into_iter().enumerate() {
            s.value("its GPU", handle >> 32 == u64::from(gpu.id), true);
            s.value("its number", handle & 0xffff_ffff, n);
        }
        s.ok("FREE of the second", gpu.free(handles[1]));
        let again = make()?;
        s.value("the next is the second again", again == handles[1], true);
        s.ok("FREE of the first", gpu.free(handles[0]));
        s.err("FREE of it again", gpu.free(handles[0]), Errno::EINVAL);
        s.err("MAP of it", gpu.map(handles[0], &[gpu.id]).0, Errno::ENOMEM);
        s.err("UNMAP of it", gpu.unmap(handles[0], &[gpu.id]).0, Errno::ENOMEM);
    }

    safe gpu map "MAP checks address and overlap; mapping twice is no error, unmapping twice is" {
        let gpu = s.gpu()?;
        let va = gpu.reserve(1 << 20)?;
        for (what, at, want) in [
            ("at 0", 0, Err(Errno::EINVAL)),
            ("at an odd address", va + 1, Err(Errno::EINVAL)),
            ("beyond 2^48", 1 << 48, Err(Errno::EINVAL)),
            ("where the page tables end", (1 << 48) - 4096, Err(Errno::EINVAL)),
            ("at a page", va, Ok(())),
        ] {
            if what == "where the page tables end" {
                // The kernel keeps things of its own up there.
                continue;
            }
            let handle = gpu.alloc(at, 8192, SHARED)?.handle;
            let (result, done) = gpu.map(handle, &[gpu.id]);
            s.expect(format!("MAP {what}"), result, want);
            s.value("n_success", done, u32::from(want.is_ok()));
        }
        let first = gpu.alloc(va + 0x10000, 8192, SHARED)?.handle;
        s.ok("MAP", gpu.map(first, &[gpu.id]).0);
        s.ok("MAP again", gpu.map(first, &[gpu.id]).0);
        for (what, at) in [("the same address", va + 0x10000), ("its end", va + 0x11000), ("its start", va + 0xf000)] {
            let other = gpu.alloc(at, 8192, SHARED)?.handle;
            s.err(format!("MAP of another over {what}"), gpu.map(other, &[gpu.id]).0, Errno::EINVAL);
            s.ok("FREE of that", gpu.free(other));
        }
        s.err("FREE while mapped", gpu.free(first), Errno::EBUSY);
        s.ok("UNMAP", gpu.unmap(first, &[gpu.id]).0);
        s.err("UNMAP again", gpu.unmap(first, &[gpu.id]).0, Errno::EINVAL);
        s.ok("FREE", gpu.free(first));
    }

    safe gpu map_lists "the list is worked off from n_success on, which tells how far it came" {
        let gpu = s.gpu()?;
        let handle = gpu.alloc(gpu.reserve(4096)?, 4096, SHARED)?.handle;
        let (result, done) = gpu.map(handle, &[gpu.id, NO_GPU]);
        s.err("MAP on the GPU and on none", result, Errno::EINVAL);
        s.value("n_success", done, 1);
        let list = [NO_GPU, gpu.id];
        let mut args =
            MapMemoryToGpuArgs { handle, device_ids_array_ptr: list.as_ptr() as u64, n_devices: 2, n_success: 1 };
        let result = s.call(&mut args);
        s.ok("MAP from the second on", result);
        s.value("n_success", args.n_success, 2);
        let mut args =
            UnmapMemoryFromGpuArgs { handle, device_ids_array_ptr: list.as_ptr() as u64, n_devices: 2, n_success: 0 };
        let result = s.call(&mut args);
        s.err("UNMAP from none and the GPU", result, Errno::EINVAL);
        s.value("n_success", args.n_success, 0);
        s.err("FREE: it is mapped yet", gpu.free(handle), Errno::EBUSY);
    }

    safe gpu render_mmap "a buffer maps by the file that acquired its GPU, from its start, and no further than its end" {
        let gpu = s.gpu()?;
        let buffer = gpu.alloc(gpu.reserve(8192)?, 8192, SHARED)?;
        let offset = buffer.mmap_offset;
        let map = |fd, len, offset| gpu.mmap(fd, 0, len, offset).map(drop);
        let other = s.driver.open(&format!("/dev/dri/renderD{}", gpu.node.properties.drm_render_minor.unwrap_or(0)))?;
        s.ok("all of it", map(gpu.render, 8192, offset));
        s.ok("its first page", map(gpu.render, 4096, offset));
        s.err("more than it", map(gpu.render, 12288, offset), Errno::EINVAL);
        s.err("its second page", map(gpu.render, 4096, offset + 4096), Errno::EINVAL);
        s.err("an offset of nothing", map(gpu.render, 4096, offset + (1 << 40)), Errno::EINVAL);
        s.err("by another file of the node", map(other, 8192, offset), Errno::EACCES);
        s.err("by /dev/kfd", map(s.kfd, 8192, offset), Errno::ENODEV);
    }

    safe gpu shared_contents "host and GPU see one memory, and it stays while it is mapped" {
        let gpu = s.gpu()?;
        let buffer = gpu.memory(8192, SHARED)?;
        s.value("fresh memory is 0", buffer.u64(4096).load(Ordering::SeqCst), 0);
        buffer.u64(4096).store(77, Ordering::SeqCst);
        s.ok("UNMAP", gpu.unmap(buffer.handle, &[gpu.id]).0);
        s.ok("FREE", gpu.free(buffer.handle));
        s.value("the host's mapping still has it", buffer.u64(4096).load(Ordering::SeqCst), 77);
        s.ok("munmap", s.munmap(buffer.va, 8192));
    }

    safe gpu signal_page "the page of events may be a buffer, once; it cannot be freed" {
        let gpu = s.gpu()?;
        let small = gpu.alloc(gpu.reserve(16384)?, 16384, SHARED)?.handle;
        let page = gpu.memory(32768, SHARED)?;
        let create = |handle| {
            let mut args = CreateEventArgs { event_page_offset: handle, ..Default::default() };
            s.call(&mut args).map(|()| args)
        };
        let results = [create(small).map(drop), create(small + 100).map(drop)];
        let first = create(page.handle);
        let again = create(page.handle).map(drop);
        let [too_small, no_buffer] = results;
        s.err("a buffer of 16384 bytes", too_small, Errno::EINVAL);
        s.err("no buffer", no_buffer, Errno::EINVAL);
        s.ok("a buffer of 32768 bytes", first.map(drop));
        s.value("event_id", first.map(|args| args.event_id).unwrap_or_default(), 1);
        s.value("its slots are all ones", format!("{:#x}", page.u64(8).load(Ordering::SeqCst)), "0xffffffffffffffff");
        s.err("a page again", again, Errno::EINVAL);
        s.ok("UNMAP", gpu.unmap(page.handle, &[gpu.id]).0);
        s.err("FREE", gpu.free(page.handle), Errno::EPERM);
    }

    safe gpu userptr "USERPTR is the process' own memory: EFAULT where there is none" {
        let gpu = s.gpu()?;
        let memory = s.anonymous(8192, libc::PROT_READ | libc::PROT_WRITE)?;
        let nowhere = s.anonymous(8192, libc::PROT_READ | libc::PROT_WRITE)?;
        s.munmap(nowhere, 8192)?;
        let make = |va_addr, mmap_offset| {
            let flags = ALLOC_MEM_FLAGS_USERPTR | ALLOC_MEM_FLAGS_WRITABLE;
            let mut args =
                AllocMemoryOfGpuArgs { va_addr, mmap_offset, size: 8192, flags, gpu_id: gpu.id, ..Default::default() };
            s.call(&mut args).map(|()| args)
        };
        let good = make(memory, memory);
        let bad = make(nowhere, nowhere).map(drop);
        s.ok("memory", good.map(drop));
        s.err("no memory", bad, Errno::EFAULT);
        if let Ok(args) = good {
            let mapped = gpu.mmap(gpu.render, 0, 8192, args.mmap_offset).map(drop);
            s.err("mmap at its offset", mapped, Errno::EPERM);
            s.ok("MAP", gpu.map(args.handle, &[gpu.id]).0);
            s.ok("UNMAP", gpu.unmap(args.handle, &[gpu.id]).0);
            s.ok("FREE", gpu.free(args.handle));
        }
    }

    safe gpu userptr_rights "USERPTR memory must be writable: EPERM where it can only be read, EFAULT where not even that" {
        let gpu = s.gpu()?;
        let memory = s.anonymous(3 * 4096, libc::PROT_READ | libc::PROT_WRITE)?;
        let protect = |page: u64, prot| {
            // SAFETY: pages of the case's own, of which it keeps no references.
            unsafe { libc::mprotect((memory + 4096 * page) as *mut libc::c_void, 4096, prot) }
        };
        protect(1, libc::PROT_READ);
        protect(2, libc::PROT_NONE);
        let make = |page: u64, size| gpu.alloc_user(memory + 4096 * page, size).map(drop);
        let results = [make(0, 8192), make(1, 8192), make(2, 4096), make(0, 4096)];
        let [behind, both, neither, first] = results;
        s.err("a page that can only be read behind a good one", behind, Errno::EPERM);
        s.err("such a page in front of one without rights", both, Errno::EPERM);
        s.err("a page without rights", neither, Errno::EFAULT);
        s.ok("the good one", first);
    }

    safe gpu available_units "a page of VRAM takes 2 MiB of what AVAILABLE_MEMORY tells, until nothing refers to it" {
        let gpu = s.gpu()?;
        let available = || {
            let mut args = GetAvailableMemoryArgs { gpu_id: gpu.id, ..Default::default() };
            s.call(&mut args).map(|()| args.available)
        };
        let before = available()?;
        let small = [gpu.alloc(gpu.reserve(4096)?, 4096, VRAM)?, gpu.alloc(gpu.reserve(4096)?, 4096, VRAM)?];
        let between = available()?;
        let mut export = ExportDmabufArgs { handle: small[0].handle, flags: libc::O_CLOEXEC as u32, dmabuf_fd: 0 };
        let exported = s.call(&mut export);
        for buffer in small {
            gpu.free(buffer.handle)?;
        }
        let shared = available()?;
        s.driver.close(export.dmabuf_fd as i32)?;
        let after = available()?;
        s.ok("EXPORT_DMABUF", exported);
        s.value("two buffers of a page: less by", before - between, 4 << 20);
        s.value("freed, but one is exported: less by", before - shared, 2 << 20);
        s.value("closed: less by", before - after, 0);
    }

    safe gpu available "AVAILABLE_MEMORY falls with VRAM, and comes back" {
        let gpu = s.gpu()?;
        let available = || {
            let mut args = GetAvailableMemoryArgs { gpu_id: gpu.id, ..Default::default() };
            s.call(&mut args).map(|()| args.available)
        };
        let before = available()?;
        let size = 64 << 20;
        let handle = gpu.alloc(gpu.reserve(size)?, size, VRAM)?.handle;
        let between = available()?;
        gpu.free(handle)?;
        let after = available()?;
        s.value("whole units of 2 MiB", before.is_multiple_of(2 << 20), true);
        s.value("less by the buffer", before - between >= size, true);
        s.value("as before", after == before, true);
    }

    safe gpu doorbell_buffer "the doorbells as a buffer can be mapped on the GPU" {
        let gpu = s.gpu()?;
        let va = gpu.reserve(DOORBELL_SLICE)?;
        let flags = ALLOC_MEM_FLAGS_DOORBELL | ALLOC_MEM_FLAGS_WRITABLE | ALLOC_MEM_FLAGS_COHERENT;
        let args = gpu.alloc(va, DOORBELL_SLICE, flags)?;
        s.ok("MAP", gpu.map(args.handle, &[gpu.id]).0);
        let result = gpu.mmap(s.kfd, va, DOORBELL_SLICE, doorbells(gpu.id)).map(drop);
        s.ok("mmap of /dev/kfd at its address", result);
        s.ok("UNMAP", gpu.unmap(args.handle, &[gpu.id]).0);
        s.ok("FREE", gpu.free(args.handle));
    }
}

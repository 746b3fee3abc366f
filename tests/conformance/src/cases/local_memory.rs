//! Device memory.

use crate::case::cases;
use crate::gpu::VRAM;
use crate::session::Stop;
use kfd::Errno;
use kfd::uapi::*;
use std::sync::atomic::Ordering;

cases! { "KFDLocalMemoryTest", s:
    safe gpu contents "fresh memory is 0, and what is in it stays while it is unmapped from the GPU" {
        let gpu = s.gpu()?;
        let memory = match gpu.memory(8192, VRAM | ALLOC_MEM_FLAGS_PUBLIC) {
            Err(Errno::EINVAL) => return Err(Stop::Skip("not all of the memory is visible to the host".to_string())),
            memory => memory?,
        };
        let word = memory.u64(4096);
        s.value("fresh", word.load(Ordering::SeqCst), 0);
        word.store(77, Ordering::SeqCst);
        s.ok("UNMAP", gpu.unmap(memory.handle, &[gpu.id]).0);
        s.value("unmapped", word.load(Ordering::SeqCst), 77);
        s.ok("MAP", gpu.map(memory.handle, &[gpu.id]).0);
        s.value("mapped again", word.load(Ordering::SeqCst), 77);
        s.ok("UNMAP", gpu.unmap(memory.handle, &[gpu.id]).0);
        s.ok("FREE", gpu.free(memory.handle));
        let again = gpu.memory(8192, VRAM | ALLOC_MEM_FLAGS_PUBLIC)?;
        s.value("the next buffer", again.u64(4096).load(Ordering::SeqCst), 0);
    }

    safe gpu too_much "more than the device has is ENOMEM, and takes nothing" {
        let gpu = s.gpu()?;
        let available = || {
            let mut args = GetAvailableMemoryArgs { gpu_id: gpu.id, ..Default::default() };
            s.call(&mut args).map(|()| args.available)
        };
        let before = available()?;
        let result = gpu.alloc(0x1000_0000_0000, before + (1 << 30), VRAM).map(drop);
        let after = available()?;
        s.err("ALLOC of 1 GiB more than is available", result, Errno::ENOMEM);
        s.value("as much as before", after == before, true);
    }
}

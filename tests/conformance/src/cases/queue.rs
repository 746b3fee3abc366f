//! Queues: creation, update, destruction.

use super::tools::{KERNEL_ADDRESS, NO_GPU};
use crate::case::cases;
use crate::gpu::{Code, SHARED, dispatch};
use crate::run::{Ended, forked};
use crate::session::Stop;
use kfd::Errno;
use kfd::uapi::*;
use std::io::Write;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

cases! { "KFDQMTest", s:
    safe kfd create_order "CREATE_QUEUE checks its arguments in the kernel's order, the GPU after them" {
        let bad = KERNEL_ADDRESS;
        let base = CreateQueueArgs { gpu_id: NO_GPU, queue_type: 2, ring_size: 4096, ..Default::default() };
        let all = CreateQueueArgs {
            queue_percentage: 101,
            queue_priority: 16,
            ring_base_address: bad,
            ring_size: 3000,
            read_pointer_address: bad,
            queue_type: 9,
            ..base
        };
        for (what, args, want) in [
            ("percentage 101 before all else", all, Errno::EINVAL),
            ("priority 16 before the addresses", CreateQueueArgs { queue_percentage: 100, ..all }, Errno::EINVAL),
            (
                "the ring's address before its size",
                CreateQueueArgs { queue_percentage: 0, queue_priority: 15, ..all },
                Errno::EFAULT,
            ),
            (
                "the ring's size before the indices",
                CreateQueueArgs { queue_percentage: 0, queue_priority: 0, ring_base_address: 0, ..all },
                Errno::EINVAL,
            ),
            (
                "the read index before the type",
                CreateQueueArgs { queue_type: 9, read_pointer_address: bad, ..base },
                Errno::EFAULT,
            ),
            (
                "the write index before the type",
                CreateQueueArgs { queue_type: 9, write_pointer_address: bad, ..base },
                Errno::EFAULT,
            ),
            (
                "the end-of-pipe buffer before the type",
                CreateQueueArgs { queue_type: 9, eop_buffer_address: bad, ..base },
                Errno::EFAULT,
            ),
            (
                "the save area before the type",
                CreateQueueArgs { queue_type: 9, ctx_save_restore_address: bad, ..base },
                Errno::EFAULT,
            ),
            ("the type before the GPU", CreateQueueArgs { queue_type: 9, ..base }, Errno::ENOTSUPP),
            ("type 5", CreateQueueArgs { queue_type: 5, ..base }, Errno::ENOTSUPP),
            ("no GPU", base, Errno::EINVAL),
            ("PM4, no GPU", CreateQueueArgs { queue_type: 0, ..base }, Errno::EINVAL),
            ("SDMA, no GPU", CreateQueueArgs { queue_type: 1, ..base }, Errno::EINVAL),
            ("SDMA XGMI, no GPU", CreateQueueArgs { queue_type: 3, ..base }, Errno::EINVAL),
            ("SDMA by engine, no GPU", CreateQueueArgs { queue_type: 4, sdma_engine_id: 99, ..base }, Errno::EINVAL),
            (
                "percentage's low byte counts",
                CreateQueueArgs { queue_percentage: 0xff00, queue_type: 9, ..base },
                Errno::ENOTSUPP,
            ),
            ("percentage 255", CreateQueueArgs { queue_percentage: 0xff, queue_type: 9, ..base }, Errno::EINVAL),
        ] {
            let result = s.call(&mut args.clone());
            s.err(what, result, want);
        }
    }

    safe kfd user_range "an address is of user space when the bytes behind it are: 8 of a ring, 4 of the others" {
        // One past the last byte of user space with 4-level page tables; with 5 levels it is higher.
        let args = |ring, read| CreateQueueArgs {
            ring_base_address: ring,
            read_pointer_address: read,
            queue_type: 9,
            ring_size: 4096,
            ..Default::default()
        };
        for (what, ring, read, want) in [
            ("both 0", 0, 0, Errno::ENOTSUPP),
            ("ring at 4096", 4096, 0, Errno::ENOTSUPP),
            ("ring at 2^64 - 8", u64::MAX - 7, 0, Errno::EFAULT),
            ("ring at 2^63", 1 << 63, 0, Errno::EFAULT),
            ("index at 2^64 - 4", 0, u64::MAX - 3, Errno::EFAULT),
            ("index at 2^63", 0, 1 << 63, Errno::EFAULT),
            ("index at 1", 0, 1, Errno::ENOTSUPP),
        ] {
            let result = s.call(&mut args(ring, read));
            s.err(what, result, want);
        }
    }

    safe kfd ring_sizes "a ring's size is 0 or a power of two, and 1024 at least, which is written back" {
        for (size, want, used) in [
            (0, Errno::ENOTSUPP, 1024),
            (1, Errno::ENOTSUPP, 1024),
            (3, Errno::EINVAL, 3),
            (512, Errno::ENOTSUPP, 1024),
            (1024, Errno::ENOTSUPP, 1024),
            (4096, Errno::ENOTSUPP, 4096),
            (4097, Errno::EINVAL, 4097),
            (0x8000_0000, Errno::ENOTSUPP, 0x8000_0000),
            (u32::MAX, Errno::EINVAL, u32::MAX),
        ] {
            let mut args = CreateQueueArgs { ring_size: size, queue_type: 9, ..Default::default() };
            let result = s.call(&mut args);
            s.err(format!("ring_size {size}"), result, want);
            s.value("ring_size afterwards", args.ring_size, used);
        }
    }

    safe kfd unknown_queue "an unknown queue is EFAULT to UPDATE, SET_CU_MASK and WAVE_STATE, EINVAL to DESTROY and GWS" {
        let mask = [u32::MAX; 32];
        for queue_id in [0, 1, 1023, 1024, u32::MAX] {
            let result = s.call(&mut UpdateQueueArgs { queue_id, ..Default::default() });
            s.err(format!("UPDATE_QUEUE {queue_id}"), result, Errno::EFAULT);
            let mut args = SetCuMaskArgs { queue_id, num_cu_mask: 32, cu_mask_ptr: mask.as_ptr() as u64 };
            let result = s.call(&mut args);
            s.err(format!("SET_CU_MASK {queue_id}"), result, Errno::EFAULT);
            let result = s.call(&mut GetQueueWaveStateArgs { queue_id, ..Default::default() });
            s.err(format!("GET_QUEUE_WAVE_STATE {queue_id}"), result, Errno::EFAULT);
            let result = s.call(&mut DestroyQueueArgs { queue_id, pad: 0 });
            s.err(format!("DESTROY_QUEUE {queue_id}"), result, Errno::EINVAL);
            let result = s.call(&mut AllocQueueGwsArgs { queue_id, num_gws: 1, ..Default::default() });
            s.err(format!("ALLOC_QUEUE_GWS {queue_id}"), result, Errno::EINVAL);
        }
    }

    safe kfd update_order "UPDATE_QUEUE checks its arguments before it looks for the queue" {
        let bad = KERNEL_ADDRESS;
        for (what, percentage, priority, ring, size, want) in [
            ("percentage 101", 101, 0, 0, 0, Errno::EINVAL),
            ("priority 16", 0, 16, bad, 0, Errno::EINVAL),
            ("the ring's address before its size", 0, 0, bad, 3, Errno::EFAULT),
            ("size 3", 0, 0, 0, 3, Errno::EINVAL),
            ("the queue", 100, 15, 4096, 4096, Errno::EFAULT),
        ] {
            let mut args = UpdateQueueArgs {
                ring_base_address: ring,
                ring_size: size,
                queue_percentage: percentage,
                queue_priority: priority,
                queue_id: 5,
            };
            let result = s.call(&mut args);
            s.err(what, result, want);
        }
    }

    safe kfd cu_mask_arguments "a CU mask has a multiple of 32 bits and some, and can be read up to 1024 bits" {
        let nowhere = s.untouchable()?;
        let mask = [u32::MAX; 32];
        for (what, bits, at, want) in [
            ("16 bits", 16, 0, Errno::EINVAL),
            ("33 bits", 33, nowhere, Errno::EINVAL),
            ("no bits", 0, 0, Errno::EINVAL),
            ("null", 32, 0, Errno::EFAULT),
            ("untouchable", 32, nowhere, Errno::EFAULT),
            ("2^20 bits, of which 1024 are read: no such queue", 1 << 20, mask.as_ptr() as u64, Errno::EFAULT),
        ] {
            let result = s.call(&mut SetCuMaskArgs { queue_id: 0, num_cu_mask: bits, cu_mask_ptr: at });
            s.err(what, result, want);
        }
    }

    safe gpu create_destroy "queues get the lowest free id and doorbell, and give both back" {
        let gpu = s.gpu()?;
        let queues = [gpu.queue(64)?, gpu.queue(64)?, gpu.queue(64)?];
        for (n, queue) in queues.iter().enumerate() {
            s.value("queue_id", queue.id(), n);
            let offset = queue.parts.args.doorbell_offset;
            s.value("type and GPU in doorbell_offset", offset >> 46 == 3 << 16 | u64::from(gpu.id), true);
            s.value("byte in the doorbells", offset & 0x1fff, 8 * n);
        }
        s.ok("DESTROY_QUEUE of the second", queues[1].destroy());
        s.err("again", queues[1].destroy(), Errno::EINVAL);
        let again = gpu.start(queues[1].parts)?;
        s.value("queue_id", again.id(), 1);
        s.value("byte in the doorbells", again.parts.args.doorbell_offset & 0x1fff, 8);
        for queue in [&queues[0], &again, &queues[2]] {
            s.ok("DESTROY_QUEUE", queue.destroy());
        }
    }

    safe gpu buffers "each buffer is a mapping of exactly its size on the GPU: EINVAL" {
        let gpu = s.gpu()?;
        let parts = gpu.queue_parts(64)?;
        let good = parts.args;
        let two = gpu.memory(8192, SHARED)?;
        let loose = gpu.reserve(4096)?;
        let unmapped = gpu.alloc(loose, 4096, SHARED)?;
        let cases: Vec<(&str, CreateQueueArgs)> = vec![
            ("ring at 0", CreateQueueArgs { ring_base_address: 0, ..good }),
            ("ring of another size", CreateQueueArgs { ring_size: 8192, ..good }),
            ("ring behind its start", CreateQueueArgs { ring_base_address: good.ring_base_address + 4096, ..good }),
            ("ring in a larger buffer", CreateQueueArgs { ring_base_address: two.va, ..good }),
            ("ring that is not mapped", CreateQueueArgs { ring_base_address: unmapped.va_addr, ..good }),
            ("read index at 0", CreateQueueArgs { read_pointer_address: 0, ..good }),
            ("read index in two pages", CreateQueueArgs { read_pointer_address: two.va, ..good }),
            ("write index at 0", CreateQueueArgs { write_pointer_address: 0, ..good }),
            ("write index in two pages", CreateQueueArgs { write_pointer_address: two.va + 4096, ..good }),
            ("end-of-pipe size 0", CreateQueueArgs { eop_buffer_size: 0, ..good }),
            ("end-of-pipe buffer too large", CreateQueueArgs { eop_buffer_address: two.va, ..good }),
            ("control stack size", CreateQueueArgs { ctl_stack_size: good.ctl_stack_size + 4096, ..good }),
            ("save area size", CreateQueueArgs { ctx_save_restore_size: good.ctx_save_restore_size - 4096, ..good }),
            ("save area at 0", CreateQueueArgs { ctx_save_restore_address: 0, ..good }),
            ("save area in a small buffer", CreateQueueArgs { ctx_save_restore_address: two.va, ..good }),
        ];
        for (what, args) in cases {
            let result = s.call(&mut args.clone());
            s.err(what, result, Errno::EINVAL);
        }
        // Without an end-of-pipe buffer its size does not matter.
        let mut args = CreateQueueArgs { eop_buffer_address: 0, eop_buffer_size: 99, ..good };
        let result = s.call(&mut args);
        s.ok("no end-of-pipe buffer", result);
        s.call(&mut DestroyQueueArgs { queue_id: args.queue_id, pad: 0 })?;
        let queue = gpu.start(parts)?;
        s.value("queue_id after all that", queue.id(), 0);
        s.ok("DESTROY_QUEUE", queue.destroy());
    }

    safe gpu buffers_in_use "buffers of a live queue cannot be unmapped: EBUSY" {
        let gpu = s.gpu()?;
        let queue = gpu.queue(64)?;
        let parts = queue.parts;
        for (what, memory) in
            [("ring", parts.ring), ("indices", parts.control), ("end of pipe", parts.eop), ("save area", parts.save)]
        {
            let (result, done) = gpu.unmap(memory.handle, &[gpu.id]);
            s.err(format!("UNMAP of the {what}"), result, Errno::EBUSY);
            s.value("n_success", done, 0);
            s.err(format!("FREE of the {what}"), gpu.free(memory.handle), Errno::EBUSY);
        }
        s.ok("DESTROY_QUEUE", queue.destroy());
        s.ok("all buffers unmap and free", parts.free(&gpu));
    }

    safe gpu update "UPDATE_QUEUE changes ring, priority and percentage; address 0 or percentage 0 pauses" {
        let gpu = s.gpu()?;
        let kernel = gpu.kernel(Code::End)?;
        let queue = gpu.queue(64)?;
        let signals = gpu.memory(4096, SHARED)?;
        let good = queue.parts.args;
        let update = |ring_base_address, ring_size, queue_percentage| {
            let queue_priority = 15;
            let queue_id = queue.id();
            s.call(&mut UpdateQueueArgs { ring_base_address, ring_size, queue_percentage, queue_priority, queue_id })
        };
        let paused = update(0, good.ring_size, 100);
        let signal = signals.signal(0, 1);
        queue.submit(dispatch(&kernel, signal.va).to_bytes());
        std::thread::sleep(Duration::from_millis(30));
        let while_paused = signal.value().load(Ordering::SeqCst);
        let resumed = update(good.ring_base_address, good.ring_size, 100);
        let after = signal.wait(0);
        let wrong = [
            update(good.ring_base_address, 8192, 100),
            update(good.ring_base_address + 4096, good.ring_size, 100),
            update(signals.va + 4096, 4096, 100),
        ];
        let percentage = update(good.ring_base_address, good.ring_size, 0);
        s.ok("address 0", paused);
        s.value("a dispatch while paused: its signal", while_paused, 1);
        s.ok("the ring again", resumed);
        s.value("the signal", after, 0);
        for (what, result) in ["another size", "an address inside", "no buffer"].into_iter().zip(wrong) {
            s.err(what, result, Errno::EFAULT);
        }
        s.ok("percentage 0", percentage);
        s.ok("DESTROY_QUEUE of the paused queue", queue.destroy());
    }

    safe gpu wave_state "the wave state is of a paused queue: EINVAL while it is active" {
        let gpu = s.gpu()?;
        let queue = gpu.queue(64)?;
        let queue_id = queue.id();
        // A header for each XCC, as far apart as their save areas.
        let room = vec![0u8; gpu.save.total as usize];
        let address = room.as_ptr() as u64;
        let state = |ctl_stack_address| {
            let mut args = GetQueueWaveStateArgs { queue_id, ctl_stack_address, ..Default::default() };
            s.call(&mut args)
        };
        let active = state(address);
        s.call(&mut UpdateQueueArgs { queue_id, ring_size: 4096, ..Default::default() })?;
        let paused = state(address);
        let nowhere = state(0);
        s.err("active", active, Errno::EINVAL);
        s.ok("paused", paused);
        s.err("to nowhere", nowhere, Errno::EFAULT);
        s.ok("DESTROY_QUEUE", queue.destroy());
    }

    safe gpu cu_mask "on GFX10 and later the two CUs of a WGP are on or off together" {
        let gpu = s.gpu()?;
        let queue = gpu.queue(64)?;
        let paired = gpu.target.version() >= 100_000;
        for (what, mask, even) in
            [("all", u32::MAX, true), ("none", 0, true), ("pairs", 0xc3, true), ("halves", 1, false), ("odd", 2, false)]
        {
            let words = [mask];
            let mut args = SetCuMaskArgs { queue_id: queue.id(), num_cu_mask: 32, cu_mask_ptr: words.as_ptr() as u64 };
            let result = s.call(&mut args);
            s.expect(what, result, if even || !paired { Ok(()) } else { Err(Errno::EINVAL) });
        }
        s.ok("DESTROY_QUEUE", queue.destroy());
    }

    risky gpu ids "a process has 127 queues on a GPU (255 on GC 9.4.3): ENOSPC" {
        let gpu = s.gpu()?;
        let limit = if matches!(gpu.target.version(), 90402 | 90403) { 255 } else { 127 };
        let parts = gpu.queue_parts(64)?;
        let mut queues = Vec::new();
        let stopped = loop {
            // The same buffers do for all of them: none has work.
            match gpu.start(parts) {
                Ok(queue) => queues.push(queue),
                Err(errno) => break errno,
            }
            if queues.len() > limit {
                break Errno::EIO;
            }
        };
        s.value("queues", queues.len(), limit);
        s.err("one more", Err(stopped), Errno::ENOSPC);
        let failed = queues.iter().filter(|queue| queue.destroy().is_err()).count();
        s.value("that could not be destroyed", failed, 0);
    }

    risky gpu threads "64 queues from 8 threads, each with a dispatch" {
        let gpu = s.gpu()?;
        let kernel = gpu.kernel(Code::End)?;
        let work = || -> Result<i64, Errno> {
            let signals = gpu.memory(4096, SHARED)?;
            let queues = (0..8).map(|_| gpu.queue(64)).collect::<Result<Vec<_>, _>>()?;
            let mut left = 0;
            for (n, queue) in queues.iter().enumerate() {
                let signal = signals.signal(64 * n as u64, 1);
                queue.submit(dispatch(&kernel, signal.va).to_bytes());
                left += signal.wait(0);
            }
            for queue in &queues {
                queue.destroy()?;
            }
            Ok(left)
        };
        let results: Vec<Result<i64, Errno>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(work)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or(Err(Errno::EIO))).collect()
        });
        for (n, result) in results.into_iter().enumerate() {
            s.ok(format!("thread {n}"), result.map(drop));
            s.value("dispatches that did not complete", result.unwrap_or(-1), 0);
        }
    }

    risky gpu recycled "a thousand times: create a queue on the same buffers and doorbell, dispatch, destroy" {
        let gpu = s.gpu()?;
        let kernel = gpu.kernel(Code::End)?;
        let signals = gpu.memory(4096, SHARED)?;
        let signal = signals.signal(0, 1);
        let mut parts = gpu.queue_parts(64)?;
        let (mut done, mut ids) = (0, 0);
        for _ in 0..1000 {
            parts.control.u64(aql::queue::WRITE_DISPATCH_ID as u64).store(0, Ordering::SeqCst);
            parts.control.u64(aql::queue::READ_DISPATCH_ID as u64).store(0, Ordering::SeqCst);
            signal.value().store(1, Ordering::SeqCst);
            let queue = gpu.start(parts)?;
            queue.submit(dispatch(&kernel, signal.va).to_bytes());
            done += i64::from(signal.wait(0) == 0);
            ids += queue.id();
            queue.destroy()?;
            queue.unmap_doorbell()?;
            parts = queue.parts;
        }
        s.value("dispatches that completed", done, 1000);
        s.value("sum of the queue ids", ids, 0);
    }

    risky gpu in_the_middle "a queue can be destroyed in the middle of a dispatch, and the next one works" {
        let gpu = s.gpu()?;
        let (spin, end) = (gpu.kernel(Code::Spin)?, gpu.kernel(Code::End)?);
        let signals = gpu.memory(4096, SHARED)?;
        let (endless, good) = (signals.signal(0, 1), signals.signal(64, 1));
        let queue = gpu.queue(64)?;
        queue.submit(dispatch(&spin, endless.va).to_bytes());
        std::thread::sleep(Duration::from_millis(50));
        s.ok("DESTROY_QUEUE", queue.destroy());
        s.value("the endless dispatch's signal", endless.value().load(Ordering::SeqCst), 1);
        s.ok("its buffers unmap and free", queue.parts.free(&gpu));
        let queue = gpu.queue(64)?;
        queue.submit(dispatch(&end, good.va).to_bytes());
        s.value("the next queue's signal", good.wait(0), 0);
        s.ok("DESTROY_QUEUE", queue.destroy());
    }

    risky gpu killed "a process that is killed in the middle of a dispatch leaves the GPU to others" {
        let work = |mut out: std::fs::File| {
            let run = || -> Result<(), Stop> {
                let fd = s.open()?;
                let gpu = crate::gpu::Gpu::acquire(s.driver.clone(), fd)?;
                let spin = gpu.kernel(Code::Spin)?;
                let signal = gpu.memory(4096, SHARED)?.signal(0, 1);
                let queue = gpu.queue(64)?;
                queue.submit(dispatch(&spin, signal.va).to_bytes());
                std::thread::sleep(Duration::from_millis(50));
                Ok(())
            };
            let told = write!(out, "{:?}", run());
            // SAFETY: ends this process, while its kernel runs.
            unsafe { libc::kill(libc::getpid(), if told.is_ok() { libc::SIGKILL } else { libc::SIGTERM }) };
        };
        let ended = forked(work, Instant::now() + Duration::from_secs(20));
        let ended = ended.map_err(|error| Stop::Failed(format!("the child process: {error}")))?;
        s.value("the killed process", format!("{ended:?}"), format!("{:?}", ("Ok(())", Ended::Killed(libc::SIGKILL))));
        let gpu = s.gpu()?;
        let kernel = gpu.kernel(Code::End)?;
        let signal = gpu.memory(4096, SHARED)?.signal(0, 1);
        let queue = gpu.queue(64)?;
        s.value("queue_id", queue.id(), 0);
        queue.submit(dispatch(&kernel, signal.va).to_bytes());
        s.value("the signal", signal.wait(0), 0);
        s.ok("DESTROY_QUEUE", queue.destroy());
    }
}

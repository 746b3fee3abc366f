//! Saving the waves of a queue and restoring them.

use crate::case::cases;
use crate::gpu::{Code, SHARED, dispatch};
use kfd::uapi::*;
use std::time::{Duration, Instant};

cases! { "KFDCWSRTest", s:
    risky gpu in_a_kernel "a queue pauses in the middle of a kernel: its waves are saved, and go on when it is resumed" {
        let gpu = s.gpu()?;
        let spin = gpu.kernel(Code::Spin)?;
        let queue = gpu.queue(64)?;
        let (good, queue_id) = (queue.parts.args, queue.id());
        let room = vec![0u8; gpu.save.total as usize];
        let update = |queue_percentage| {
            let (ring_base_address, ring_size, queue_priority) = (good.ring_base_address, good.ring_size, 7);
            s.call(&mut UpdateQueueArgs { ring_base_address, ring_size, queue_percentage, queue_priority, queue_id })
        };
        let used = || {
            let ctl_stack_address = room.as_ptr() as u64;
            let mut args = GetQueueWaveStateArgs { queue_id, ctl_stack_address, ..Default::default() };
            s.call(&mut args).map(|()| (args.ctl_stack_used_size, args.save_area_used_size))
        };
        update(0)?;
        let idle = used();
        update(100)?;
        queue.submit(dispatch(&spin, 0).to_bytes());
        std::thread::sleep(Duration::from_millis(50));
        let paused = update(0);
        let busy = used();
        let resumed = update(100);
        std::thread::sleep(Duration::from_millis(10));
        let again = [update(0), used().map(drop)];
        s.value("an idle queue's control stack and waves", format!("{idle:?}"), "Ok((0, 0))");
        s.ok("pause", paused);
        s.value("a wave is saved", busy.is_ok_and(|(stack, waves)| stack > 0 && waves > 0), true);
        s.ok("resume", resumed);
        for result in again {
            s.ok("pause again, and its state", result);
        }
        s.ok("DESTROY_QUEUE of the paused queue", queue.destroy());
        s.ok("its buffers unmap and free", queue.parts.free(&gpu));
    }

    risky gpu again_and_again "packets complete as often as they are there, however often the queue is paused" {
        let gpu = s.gpu()?;
        let kernel = gpu.kernel(Code::End)?;
        let signal = gpu.memory(4096, SHARED)?.signal(0, 500);
        let queue = gpu.queue(1024)?;
        let (good, queue_id) = (queue.parts.args, queue.id());
        let update = |queue_percentage| {
            let (ring_base_address, ring_size, queue_priority) = (good.ring_base_address, good.ring_size, 7);
            s.call(&mut UpdateQueueArgs { ring_base_address, ring_size, queue_percentage, queue_priority, queue_id })
        };
        for _ in 0..500 {
            queue.submit(dispatch(&kernel, signal.va).to_bytes());
        }
        let (start, mut rounds) = (Instant::now(), 0);
        while queue.read_index() < 500 && start.elapsed() < crate::gpu::PATIENCE {
            update(0)?;
            let stopped = queue.read_index();
            std::thread::sleep(Duration::from_micros(200));
            rounds += i32::from(queue.read_index() != stopped);
            update(100)?;
            std::thread::sleep(Duration::from_micros(200));
        }
        s.value("times that read_dispatch_id moved while it was paused", rounds, 0);
        s.value("the signal", signal.wait(0), 0);
        s.ok("DESTROY_QUEUE", queue.destroy());
    }
}

//! What is left when a file is closed while objects live.

use crate::case::cases;
use kfd::uapi::*;

cases! { "KFDCloseKFDTest", s:
    safe kfd with_events "events outlive the file they were made on" {
        let ids = [s.signal_event(false)?, s.signal_event(true)?, s.create_event(EVENT_MEMORY, false)?.event_id];
        s.driver.close(s.kfd)?;
        s.kfd = s.open()?;
        for id in ids {
            let result = s.destroy(id);
            s.ok("DESTROY_EVENT on a new file", result);
        }
    }

    safe kfd with_a_mapped_page "the page of events outlives the file" {
        s.signal_event(false)?;
        let page = s.mmap(s.kfd, 32768, 2 << 62)?;
        s.driver.close(s.kfd)?;
        s.kfd = s.open()?;
        // SAFETY: the page that was just mapped, and is until the end of the case.
        let slot = unsafe { (page as *const u64).add(1).read_volatile() };
        s.value("slot 1", format!("{slot:#x}"), "0xffffffffffffffff");
        let next = s.create_event(EVENT_SIGNAL, false)?.event_id;
        s.value("the next event_id", next, 2);
    }

    risky gpu with_a_queue "queues and buffers outlive the file" {
        let gpu = s.gpu()?;
        let queue = gpu.queue(64)?;
        s.driver.close(s.kfd)?;
        s.kfd = s.open()?;
        let result = s.call(&mut UnmapMemoryFromGpuArgs {
            handle: queue.parts.ring.handle,
            device_ids_array_ptr: (&raw const gpu.id) as u64,
            n_devices: 1,
            n_success: 0,
        });
        s.err("UNMAP of its ring on a new file", result, kfd::Errno::EBUSY);
        let result = s.call(&mut DestroyQueueArgs { queue_id: queue.id(), pad: 0 });
        s.ok("DESTROY_QUEUE on a new file", result);
        let result = s.call(&mut DestroyQueueArgs { queue_id: queue.id(), pad: 0 });
        s.err("DESTROY_QUEUE once more", result, kfd::Errno::EINVAL);
    }
}

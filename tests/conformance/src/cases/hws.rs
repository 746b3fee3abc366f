//! More queues than the hardware has slots for.

use crate::case::cases;
use crate::gpu::{Code, SHARED, dispatch};
use std::time::Duration;

cases! { "KFDHWSTest", s:
    risky gpu oversubscribed "more queues than the hardware has slots for: all have their turn, whatever the others do" {
        let gpu = s.gpu()?;
        let (spin, end) = (gpu.kernel(Code::Spin)?, gpu.kernel(Code::End)?);
        let slots = gpu.node.properties.num_cp_queues.unwrap_or(0);
        let signals = gpu.memory(4096, SHARED)?;
        let (first, second) = (signals.signal(0, 1), signals.signal(64, 1));
        let queues = (0..slots + 2).map(|_| gpu.queue(64)).collect::<Result<Vec<_>, _>>()?;
        let (working, others) = queues.split_at(2);
        for queue in others {
            queue.submit(dispatch(&spin, 0).to_bytes());
        }
        // One waits for the other, and neither has a slot of its own.
        let barrier = aql::BarrierAnd { dep_signals: [first.va, 0, 0, 0, 0], completion_signal: second.va, ..Default::default() };
        working[0].submit(barrier.to_bytes());
        std::thread::sleep(Duration::from_millis(20));
        working[1].submit(dispatch(&end, first.va).to_bytes());
        s.value("the kernel's signal", first.wait(0), 0);
        s.value("the signal of who waited for it", second.wait(0), 0);
        let failed = queues.iter().filter(|queue| queue.destroy().is_err()).count();
        s.value("queues that could not be destroyed", failed, 0);
    }
}

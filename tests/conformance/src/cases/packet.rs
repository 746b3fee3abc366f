//! Packets: the five bad ones of rocrtst's Queue_Validation tests, and its barrier and signal tests.

use crate::case::cases;
use crate::gpu::{Code, Gpu, Queue, SHARED, dispatch, until};
use crate::session::{Session, Stop};
use aql::status::inactive_bits;
use std::sync::atomic::Ordering;

/// What a refused packet must leave: the queue stopped with a reason, the packet and the signal as they were, and other
/// queues in order.
fn refused(s: &mut Session, make: impl FnOnce(&Gpu, u64) -> Result<[u8; 64], Stop>, bit: i64) -> Result<(), Stop> {
    let gpu = s.gpu()?;
    let signals = gpu.memory(4096, SHARED)?;
    let (bad, good) = (signals.signal(0, 1), signals.signal(64, 1));
    let packet = make(&gpu, bad.va)?;
    let queue = gpu.queue(64)?;
    let index = queue.submit(packet);
    let inactive = queue.parts.inactive;
    until(|| inactive.value().load(Ordering::Acquire) != 0);
    let named = |bits: i64| {
        let names: Vec<&str> = inactive_bits(bits as u64).0.iter().map(|bit| bit.name).collect();
        format!("{bits:#x} ({})", names.join(", "))
    };
    s.value("queue_inactive_signal", named(inactive.value().load(Ordering::Acquire)), named(bit));
    s.value("read_dispatch_id", queue.read_index(), index);
    s.value("the packet's header is left", queue.header(index), u16::from_le_bytes([packet[0], packet[1]]));
    s.value("its completion signal", bad.value().load(Ordering::Acquire), 1);
    let kernel = gpu.kernel(Code::End)?;
    let other = gpu.queue(64)?;
    other.submit(dispatch(&kernel, good.va).to_bytes());
    s.value("a dispatch on another queue: its signal", good.wait(0), 0);
    s.ok("DESTROY_QUEUE of the stopped queue", queue.destroy());
    s.ok("DESTROY_QUEUE of the other", other.destroy());
    Ok(())
}

fn barrier_and(signals: [u64; 5], completion_signal: u64) -> [u8; 64] {
    let fences = aql::Fences { barrier: true, ..aql::Fences::SYSTEM };
    aql::BarrierAnd { fences, dep_signals: signals, completion_signal }.to_bytes()
}

fn publish_all(queue: &Queue, packets: &[[u8; 64]]) {
    let mut last = 0;
    for packet in packets {
        last = queue.publish(*packet);
    }
    queue.ring(last);
}

cases! { "rocrtst", s:
    risky gpu invalid_dimension "a dispatch of 0 dimensions stops the queue with bit 1 (dimensions)" {
        refused(s, |gpu, signal| {
            let kernel = gpu.kernel(Code::End)?;
            Ok(aql::KernelDispatch { dims: 0, ..dispatch(&kernel, signal) }.to_bytes())
        }, 2)?;
    }

    risky gpu invalid_group_memory "more LDS than a work-group can have stops the queue with bit 2" {
        refused(s, |gpu, signal| {
            let kernel = gpu.kernel(Code::End)?;
            Ok(aql::KernelDispatch { group_segment_size: u32::MAX, ..dispatch(&kernel, signal) }.to_bytes())
        }, 4)?;
    }

    risky gpu invalid_kernel_object "no kernel stops the queue with bit 3" {
        refused(s, |gpu, signal| {
            let kernel = gpu.kernel(Code::End)?;
            Ok(aql::KernelDispatch { kernel_object: 0, ..dispatch(&kernel, signal) }.to_bytes())
        }, 8)?;
    }

    risky gpu invalid_packet "a packet of unknown type stops the queue with bit 5" {
        refused(s, |gpu, signal| {
            let kernel = gpu.kernel(Code::End)?;
            let mut packet = dispatch(&kernel, signal).to_bytes();
            packet[0] = 0x3f;
            Ok(packet)
        }, 32)?;
    }

    risky gpu invalid_work_group_size "a work-group of more than 1024 work-items stops the queue with bit 6" {
        refused(s, |gpu, signal| {
            let kernel = gpu.kernel(Code::End)?;
            let size = [1025, 1, 1];
            let grid_size = [1025, 1, 1];
            Ok(aql::KernelDispatch { workgroup_size: size, grid_size, ..dispatch(&kernel, signal) }.to_bytes())
        }, 64)?;
    }

    risky gpu barrier_bit "a packet with the barrier bit starts when all before it are complete, and completes after them" {
        let gpu = s.gpu()?;
        let kernel = gpu.kernel(Code::End)?;
        let signals = gpu.memory(4096, SHARED)?;
        let (gate, first, second) = (signals.signal(0, 1), signals.signal(64, 1), signals.signal(128, 1));
        let queue = gpu.queue(64)?;
        let mut behind = dispatch(&kernel, second.va);
        behind.fences.barrier = true;
        publish_all(&queue, &[barrier_and([gate.va, 0, 0, 0, 0], first.va), behind.to_bytes()]);
        std::thread::sleep(std::time::Duration::from_millis(30));
        let closed = (first.value().load(Ordering::SeqCst), second.value().load(Ordering::SeqCst));
        gate.value().store(0, Ordering::SeqCst);
        // The processor looks at the gate again by itself.
        let open = (first.wait(0), second.wait(0));
        s.value("both signals with the gate closed", format!("{closed:?}"), "(1, 1)");
        s.value("and with it open", format!("{open:?}"), "(0, 0)");
        s.ok("DESTROY_QUEUE", queue.destroy());
    }

    risky gpu no_barrier_bit "a packet without the barrier bit starts while the one before it runs" {
        let gpu = s.gpu()?;
        let (spin, end) = (gpu.kernel(Code::Spin)?, gpu.kernel(Code::End)?);
        let signals = gpu.memory(4096, SHARED)?;
        let [endless, free, bound] = [0, 64, 128].map(|offset| signals.signal(offset, 1));
        let queue = gpu.queue(64)?;
        let free_fences = aql::Fences { barrier: false, ..aql::Fences::SYSTEM };
        publish_all(&queue, &[
            dispatch(&spin, endless.va).to_bytes(),
            aql::KernelDispatch { fences: free_fences, ..dispatch(&end, free.va) }.to_bytes(),
            dispatch(&end, bound.va).to_bytes(),
        ]);
        s.value("the signal of the one without", free.wait(0), 0);
        std::thread::sleep(std::time::Duration::from_millis(30));
        s.value("of the one with it, behind", bound.value().load(Ordering::SeqCst), 1);
        s.value("of the kernel that never ends", endless.value().load(Ordering::SeqCst), 1);
        s.ok("DESTROY_QUEUE", queue.destroy());
    }

    risky gpu barrier_of_five "a barrier-AND waits for all of its five signals, a barrier-OR for one" {
        let gpu = s.gpu()?;
        let signals = gpu.memory(4096, SHARED)?;
        let gates = [0u64, 1, 2, 3, 4].map(|n| signals.signal(64 * n, 1));
        let (all, any) = (signals.signal(640, 1), signals.signal(704, 1));
        let (of_all, of_any) = (gpu.queue(64)?, gpu.queue(64)?);
        let handles = gates.map(|gate| gate.va);
        of_all.submit(barrier_and(handles, all.va));
        let or = aql::BarrierOr { fences: aql::Fences::SYSTEM, dep_signals: handles, completion_signal: any.va };
        of_any.submit(or.to_bytes());
        std::thread::sleep(std::time::Duration::from_millis(30));
        let none = (all.value().load(Ordering::SeqCst), any.value().load(Ordering::SeqCst));
        gates[3].value().store(0, Ordering::SeqCst);
        let one = (any.wait(0), all.value().load(Ordering::SeqCst));
        for gate in gates {
            gate.value().store(0, Ordering::SeqCst);
        }
        let every = all.wait(0);
        s.value("AND, OR with no signal", format!("{none:?}"), "(1, 1)");
        s.value("OR, AND with one", format!("{one:?}"), "(0, 1)");
        s.value("AND with all", every, 0);
        s.ok("DESTROY_QUEUE", of_all.destroy());
        s.ok("DESTROY_QUEUE", of_any.destroy());
    }

    risky gpu one_signal "N packets on one signal, from several queues, decrement it N times" {
        let gpu = s.gpu()?;
        let kernel = gpu.kernel(Code::End)?;
        let signal = gpu.memory(4096, SHARED)?.signal(0, 4 * 60);
        let queues = (0..4).map(|_| gpu.queue(64)).collect::<Result<Vec<_>, _>>()?;
        for queue in &queues {
            publish_all(queue, &[dispatch(&kernel, signal.va).to_bytes(); 60]);
        }
        s.value("the signal", signal.wait(0), 0);
        for queue in &queues {
            s.value("read_dispatch_id", queue.read_index(), 60);
            s.ok("DESTROY_QUEUE", queue.destroy());
        }
    }

    risky gpu signal_of_kernel "a kernel behind a barrier on another kernel's signal runs after it" {
        let gpu = s.gpu()?;
        let kernel = gpu.kernel(Code::End)?;
        let signals = gpu.memory(4096, SHARED)?;
        let (first, second) = (signals.signal(0, 1), signals.signal(64, 1));
        let (a, b) = (gpu.queue(64)?, gpu.queue(64)?);
        publish_all(&b, &[barrier_and([first.va, 0, 0, 0, 0], 0), dispatch(&kernel, second.va).to_bytes()]);
        std::thread::sleep(std::time::Duration::from_millis(20));
        let before = second.value().load(Ordering::SeqCst);
        a.submit(dispatch(&kernel, first.va).to_bytes());
        let after = (first.wait(0), second.wait(0));
        s.value("the second's signal before the first ran", before, 1);
        s.value("both afterwards", format!("{after:?}"), "(0, 0)");
        s.ok("DESTROY_QUEUE", a.destroy());
        s.ok("DESTROY_QUEUE", b.destroy());
    }

    risky gpu wrap "a ring is used again from its start, as often as there are packets" {
        let gpu = s.gpu()?;
        let kernel = gpu.kernel(Code::End)?;
        let signal = gpu.memory(4096, SHARED)?.signal(0, 1000);
        let queue = gpu.queue(64)?;
        for _ in 0..1000 {
            let index = queue.submit(dispatch(&kernel, signal.va).to_bytes());
            if !until(|| queue.read_index() + 32 > index) {
                break;
            }
        }
        s.value("the signal after 1000 packets in a ring of 64", signal.wait(0), 0);
        s.value("read_dispatch_id", queue.read_index(), 1000);
        s.ok("DESTROY_QUEUE", queue.destroy());
    }
}

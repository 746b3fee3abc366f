//! When a queue runs: pause and resume, hardware slots, the barrier bit, CU masks.

use super::kernels::{END_GFX1100, load};
use super::*;
use crate::isa::Target;
use aql::Fences;

/// Adds 1 to the word that the kernel arguments point to, for ever.
const COUNT: &str = "000004f4000000f88002007e8102027e07fc89bf0000d6dc00010000fdffa0bf";
/// Ends when the word that the kernel arguments point to is not 0.
const POLL: &str = "000004f4000000f88002007e07fc89bf006052dc00000001f70389bf0105047e028006bffaffa2bf0000b0bf";
/// Stores HW_ID1 to where the kernel arguments point.
const HW_ID1: &str = "000004f4000000f817f882b88002007e0202027e07fc89bf00006adc000100000000b0bf";
/// Stores HW_ID and XCC_ID to where the kernel arguments point, on gfx942.
const HW_ID_AND_XCC: &str = "000006c00000000004f882b814f883b88002007e0202047e0302067e7fc08cbf008074dc00020000000081bf";
/// Branches to itself, on gfx1201.
const SPIN_GFX1201: &str = "ffffa0bf";

fn packet(kernel: &Buffer, kernarg: u64, completion_signal: u64, barrier: bool) -> [u8; 64] {
    KernelDispatch {
        fences: Fences { barrier, ..Fences::SYSTEM },
        dims: 1,
        kernel_object: kernel.va,
        kernarg_address: kernarg,
        completion_signal,
        ..Default::default()
    }
    .to_bytes()
}

fn update(queue: &ClientQueue<'_>, queue_percentage: u32, queue_priority: u32) -> Result<(), i32> {
    let args = queue.parts.args;
    queue.client.call(&mut UpdateQueueArgs {
        queue_id: args.queue_id,
        ring_base_address: args.ring_base_address,
        ring_size: args.ring_size,
        queue_percentage,
        queue_priority,
    })
}

#[test]
fn a_paused_queue_stands_still_and_goes_on() {
    let client = client();
    let kernel = load(&client, Target::Gfx1100, COUNT, 0);
    let data = client.buffer(4096, SHARED);
    data.u64(0).store(data.va + 64, Ordering::SeqCst);
    let counter = || data.u32(64).load(Ordering::SeqCst);
    let queue = client.queue(64, AmdQueue::default());
    // Three work-groups: on several workers or one, all of them stop.
    let mut bytes = packet(&kernel, data.va, 0, true);
    bytes[12..16].copy_from_slice(&3u32.to_le_bytes());
    queue.submit(bytes);
    until(|| counter() > 0);
    let mut header = [9u32; 4];
    let mut state = || {
        let (queue_id, ctl_stack_address) = (queue.parts.args.queue_id, header.as_mut_ptr() as u64);
        let mut args = GetQueueWaveStateArgs { queue_id, ctl_stack_address, ..Default::default() };
        client.call(&mut args).map(|()| (args.ctl_stack_used_size, args.save_area_used_size))
    };
    assert_eq!(state(), Err(libc::EINVAL));
    update(&queue, 0, 7).unwrap();
    let stopped = counter();
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(counter(), stopped);
    let (stack, waves) = state().unwrap();
    assert!(stack > 0 && stack.is_multiple_of(12) && waves > 0, "{stack} {waves}");
    assert_eq!((header[1], header[3]), (stack, waves));
    assert_eq!((header[0], header[2]), (40960 - stack, 40960 + waves));
    update(&queue, 100, 7).unwrap();
    until(|| counter() > stopped);
    // Also a queue that stands still can be destroyed.
    update(&queue, 0, 7).unwrap();
    queue.destroy().unwrap();
}

#[test]
fn another_ring_while_a_kernel_is_saved() {
    let client = client();
    let kernel = load(&client, Target::Gfx1100, POLL, 0);
    let data = client.buffer(4096, SHARED);
    data.u64(0).store(data.va + 64, Ordering::SeqCst);
    let buffer = signals(&client);
    let (first, second) = (ClientSignal::new(&buffer, 0, 1), ClientSignal::new(&buffer, 64, 1));
    let queue = client.queue(64, AmdQueue::default());
    queue.submit(packet(&kernel, data.va, first.va, true));
    until(|| client.trace().iter().any(|event| matches!(event, Event::Dispatch { .. })));
    update(&queue, 0, 7).unwrap();
    let ring = client.buffer(4096, SHARED);
    let args = queue.parts.args;
    let mut moved = UpdateQueueArgs {
        queue_id: args.queue_id,
        ring_base_address: ring.va,
        ring_size: 4096,
        queue_percentage: 0,
        queue_priority: 7,
    };
    client.call(&mut moved).unwrap();
    // The old ring is free to go, and with it the slot of the packet that runs.
    assert_eq!(client.unmap_from(queue.parts.ring.handle, &client.gpus).0, Ok(()));
    ring.write(64, &nothing(second.va));
    queue.parts.control.u64(56).store(2, Ordering::SeqCst);
    moved.queue_percentage = 100;
    client.call(&mut moved).unwrap();
    data.u64(64).store(1, Ordering::SeqCst);
    first.wait(0);
    second.wait(0);
    assert_eq!((queue.read_index(), faults(&client)), (2, vec![]));
}

#[test]
fn packets_without_the_barrier_bit_run_at_the_same_time() {
    for barrier in [false, true] {
        let client = client();
        let poll = load(&client, Target::Gfx1100, POLL, 0);
        let end = load(&client, Target::Gfx1100, END_GFX1100, 0);
        let data = client.buffer(4096, SHARED);
        data.u64(0).store(data.va + 64, Ordering::SeqCst);
        let buffer = signals(&client);
        let [first, second, third] = [0, 64, 128].map(|offset| ClientSignal::new(&buffer, offset, 1));
        let queue = client.queue(64, AmdQueue::default());
        queue.submit(packet(&poll, data.va, first.va, true));
        queue.submit(packet(&end, data.va, second.va, barrier));
        queue.submit(nothing(third.va));
        if !barrier {
            second.wait(0);
            third.wait(0);
            // Slots are given back in order.
            assert_eq!(queue.read_index(), 0);
        } else {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(first.value().load(Ordering::SeqCst), 1, "{barrier}");
        assert_eq!(second.value().load(Ordering::SeqCst), i64::from(barrier), "{barrier}");
        data.u64(64).store(1, Ordering::SeqCst);
        for signal in [first, second, third] {
            signal.wait(0);
        }
        until(|| queue.read_index() == 3);
    }
}

#[test]
fn a_bad_packet_beside_a_kernel_stops_the_queue_at_once() {
    let client = client();
    let poll = load(&client, Target::Gfx1100, POLL, 0);
    let data = client.buffer(4096, SHARED);
    data.u64(0).store(data.va + 64, Ordering::SeqCst);
    let buffer = signals(&client);
    let (queue, status) = queue_with_status(&client, &buffer);
    let (first, bad) = (ClientSignal::new(&buffer, 64, 1), ClientSignal::new(&buffer, 128, 1));
    queue.submit(packet(&poll, data.va, first.va, false));
    queue.submit(KernelDispatch { dims: 0, completion_signal: bad.va, ..Default::default() }.to_bytes());
    until(|| status.value().load(Ordering::SeqCst) == 2);
    // The kernel before it goes on, and is the last one.
    data.u64(64).store(1, Ordering::SeqCst);
    first.wait(0);
    until(|| queue.read_index() == 1);
    assert_eq!(bad.value().load(Ordering::SeqCst), 1);
    assert!(is_dead(&queue));
    queue.destroy().unwrap();
}

#[test]
fn more_queues_than_slots() {
    // gfx1201 has four.
    let client = Client::new(&[Target::Gfx1201]);
    let spin = load(&client, Target::Gfx1201, SPIN_GFX1201, 0);
    let buffer = signals(&client);
    let queues: Vec<_> = (0..6).map(|_| client.queue(64, AmdQueue::default())).collect();
    for queue in &queues[..5] {
        queue.submit(packet(&spin, 0, 0, true));
    }
    // One whose packets are there, and one that waits for it.
    let (first, second) = (ClientSignal::new(&buffer, 0, 1), ClientSignal::new(&buffer, 64, 1));
    let waits = client.queue(64, AmdQueue::default());
    waits.submit(and([first.va, 0, 0, 0, 0], second.va));
    std::thread::sleep(Duration::from_millis(5));
    queues[5].submit(nothing(first.va));
    first.wait(0);
    second.wait(0);
    // Pausing gives a slot back, and a queue that has none can be paused and destroyed.
    for queue in &queues {
        update(queue, 0, 0).unwrap();
        update(queue, 100, 15).unwrap();
        queue.destroy().unwrap();
    }
}

#[test]
fn a_queue_without_a_slot_does_not_hear_its_doorbell() {
    let client = Client::new(&[Target::Gfx1201]);
    let spin = load(&client, Target::Gfx1201, SPIN_GFX1201, 0);
    let idle = client.queue(64, AmdQueue::default());
    let busy: Vec<_> = (0..5).map(|_| client.queue(64, AmdQueue::default())).collect();
    for queue in &busy {
        queue.submit(packet(&spin, 0, 0, true));
    }
    let id = idle.parts.args.queue_id;
    let process = client.driver.process().unwrap();
    until(|| !process.lock().queues[&id].processor.is_mapped());
    // Five kernels keep the four slots busy. The write index is what the scheduler looks at.
    idle.parts.ring.write(0, &nothing(0));
    idle.ring(0);
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!((idle.read_index(), idle.header(0)), (0, 3));
    idle.parts.control.u64(56).store(1, Ordering::SeqCst);
    until(|| idle.read_index() == 1);
    assert!(busy.iter().all(|queue| queue.read_index() == 0));
}

#[test]
fn idle_queues_give_their_slots_to_others() {
    let client = Client::new(&[Target::Gfx1201]);
    let buffer = signals(&client);
    let queues: Vec<_> = (0..12).map(|_| client.queue(64, AmdQueue::default())).collect();
    for round in 0..5 {
        for queue in &queues {
            let done = ClientSignal::new(&buffer, 64, 1);
            queue.submit(nothing(done.va));
            done.wait(0);
            assert_eq!(queue.read_index(), round + 1);
        }
    }
    // Without work nobody wants a slot.
    let runlist = &client.driver.kernel().devices[0].runlist;
    until(|| !runlist.contended());
    for _ in 0..10 {
        std::thread::sleep(Duration::from_millis(2));
        assert!(!runlist.contended());
    }
}

#[test]
fn waves_are_where_the_cu_mask_lets_them_be() {
    let client = client();
    let kernel = load(&client, Target::Gfx1100, HW_ID1, 0);
    let data = client.buffer(4096, SHARED);
    data.u64(0).store(data.va + 64, Ordering::SeqCst);
    let buffer = signals(&client);
    let queue = client.queue(64, AmdQueue::default());
    let done = ClientSignal::new(&buffer, 0, 1);
    let mask = |words: &[u32]| {
        client.call(&mut SetCuMaskArgs {
            queue_id: queue.parts.args.queue_id,
            num_cu_mask: words.len() as u32 * 32,
            cu_mask_ptr: words.as_ptr() as u64,
        })
    };
    // Unit, array and engine. Six engines of two arrays: bits 0 and 1 are the first pair of engine 0, bits 2 and 3 that of
    // engine 1, bits 12 and 13 that of the other array of engine 0, bits 24 and 25 the second pair of engine 0.
    for (word, place) in [(3u32, (0, 0, 0)), (0xc, (0, 0, 1)), (0x3000, (0, 1, 0)), (0x300_0000, (2, 0, 0))] {
        mask(&[word]).unwrap();
        done.value().store(1, Ordering::SeqCst);
        queue.submit(packet(&kernel, data.va, done.va, true));
        done.wait(0);
        let id = data.u32(64).load(Ordering::SeqCst);
        assert_eq!((id >> 10 & 0xf, id >> 16 & 1, id >> 18 & 7), place, "{word:#x}");
    }
    // Without a compute unit the queue hangs, until it is given one.
    mask(&[0, 0, 0]).unwrap();
    done.value().store(1, Ordering::SeqCst);
    queue.submit(packet(&kernel, data.va, done.va, true));
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(done.value().load(Ordering::SeqCst), 1);
    mask(&[u32::MAX; 3]).unwrap();
    done.wait(0);
}

#[test]
fn cu_mask_bits_go_round_the_xccs() {
    let client = Client::new(&[Target::Gfx942]);
    let kernel = load(&client, Target::Gfx942, HW_ID_AND_XCC, 0);
    let data = client.buffer(4096, SHARED);
    data.u64(0).store(data.va + 64, Ordering::SeqCst);
    let buffer = signals(&client);
    let queue = client.queue(64, AmdQueue::default());
    let done = ClientSignal::new(&buffer, 0, 1);
    // All eight XCCs must have one: the lowest bit decides where the first wave goes.
    for (words, xcc, engine) in [([0xff, 0], 0, 0), ([0xff00, 0], 0, 1), ([0xfe00, 1], 1, 1), ([0, 0xff], 0, 0)] {
        let mut args =
            SetCuMaskArgs { queue_id: queue.parts.args.queue_id, num_cu_mask: 64, cu_mask_ptr: words.as_ptr() as u64 };
        client.call(&mut args).unwrap();
        done.value().store(1, Ordering::SeqCst);
        queue.submit(packet(&kernel, data.va, done.va, true));
        done.wait(0);
        let id = data.u32(64).load(Ordering::SeqCst);
        assert_eq!((data.u32(68).load(Ordering::SeqCst), id >> 13 & 7), (xcc, engine), "{words:x?}");
    }
    // Bits 32 to 39 come after four engines of eight XCCs: the second compute unit of engine 0.
    assert_eq!(data.u32(64).load(Ordering::SeqCst) >> 8 & 0xf, 1);
}

mod kernels;
mod lint;
mod residency;

use crate::isa::Target;
use crate::testing::{Buffer, Client, ClientQueue, ClientSignal, SHARED, profiling, until};
use aql::queue::QueueType;
use aql::{AgentDispatch, AmdQueue, BarrierAnd, BarrierOr, BarrierValue, Condition, KernelDispatch, Pm4Ib};
use kfd::Driver;
use kfd::uapi::*;
use std::sync::atomic::Ordering;
use std::time::Duration;
use trace::{Access, Event, FaultKind};

fn client() -> Client {
    Client::new(&[Target::Gfx1100])
}

/// Signals of a test, 64 bytes each.
fn signals(client: &Client) -> Buffer {
    client.buffer(4096, SHARED)
}

fn and(dep_signals: [u64; 5], completion_signal: u64) -> [u8; 64] {
    BarrierAnd { dep_signals, completion_signal, ..Default::default() }.to_bytes()
}

/// A packet that completes at once.
fn nothing(completion_signal: u64) -> [u8; 64] {
    and([0; 5], completion_signal)
}

fn faults(client: &Client) -> Vec<trace::Fault> {
    let fault = |event| match event {
        Event::Fault(fault) => Some(*fault),
        _ => None,
    };
    client.trace().into_iter().filter_map(fault).collect()
}

/// A queue with a signal for its status, at offset 0 of the buffer.
fn queue_with_status<'a>(client: &'a Client, buffer: &Buffer) -> (ClientQueue<'a>, ClientSignal) {
    let status = ClientSignal::new(buffer, 0, 0);
    (client.queue(64, AmdQueue { queue_inactive_signal: status.va, ..Default::default() }), status)
}

/// The queue takes no packet any more.
fn is_dead(queue: &ClientQueue<'_>) -> bool {
    let index = queue.submit(nothing(0));
    std::thread::sleep(Duration::from_millis(20));
    queue.header(index) != 1
}

#[test]
fn a_packet_from_store_to_signal() {
    let client = client();
    let buffer = signals(&client);
    let done = ClientSignal::new(&buffer, 0, 1);
    let queue = client.queue(64, AmdQueue::default());
    // The first doorbell value is 0, which is also what the memory held before.
    assert_eq!(queue.submit(nothing(done.va)), 0);
    done.wait(0);
    assert_eq!((queue.header(0), queue.read_index()), (1, 1));
    // The trace has it in order; the signal event follows the store.
    until(|| matches!(client.trace().last(), Some(Event::Signal { .. })));
    let queue_id = queue.parts.args.queue_id;
    assert_eq!(
        client.trace(),
        [
            Event::Fetch { queue_id, index: 0, header: 3 },
            Event::Complete { queue_id, index: 0, instructions: 0, waves: 0 },
            Event::Signal { va: done.va, old: 1, new: 0, by: "gpu" },
        ]
    );
}

#[test]
fn many_packets_go_round_the_ring() {
    let client = client();
    let buffer = signals(&client);
    let done = ClientSignal::new(&buffer, 0, 1000);
    let queue = client.queue(64, AmdQueue::default());
    for index in 0..1000 {
        until(|| index - queue.read_index() < 64);
        assert_eq!(queue.submit(nothing(done.va)), index);
        client.driver.doorbell_hint();
    }
    done.wait(0);
    assert_eq!(queue.read_index(), 1000);
}

#[test]
fn packets_from_before_the_queue_need_no_doorbell() {
    let client = client();
    let buffer = signals(&client);
    let done = ClientSignal::new(&buffer, 0, 1);
    let mut parts = client.queue_parts(64, AmdQueue::default());
    parts.ring.write(0, &nothing(done.va));
    parts.control.u64(56).store(1, Ordering::SeqCst);
    client.call(&mut parts.args).unwrap();
    done.wait(0);
}

#[test]
fn nothing_happens_without_a_doorbell() {
    let client = client();
    let queue = client.queue(64, AmdQueue::default());
    queue.publish(nothing(0));
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(queue.header(0), 3);
}

#[test]
fn how_far_a_doorbell_reaches() {
    let client = client();
    // With one producer exactly as far as it says.
    let single = client.queue(64, AmdQueue { queue_type: QueueType::Single, ..Default::default() });
    for _ in 0..3 {
        single.publish(nothing(0));
    }
    single.ring(1);
    until(|| single.read_index() == 2);
    std::thread::sleep(Duration::from_millis(10));
    assert_eq!(single.header(2), 3);
    // Producers that overtake each other ring in any order.
    let multi = client.queue(64, AmdQueue::default());
    for _ in 0..3 {
        multi.publish(nothing(0));
    }
    multi.ring(0);
    until(|| multi.read_index() == 3);
}

#[test]
fn an_invalid_header_holds_the_queue() {
    let client = client();
    let queue = client.queue(64, AmdQueue::default());
    // Slot 0 is reserved and not written yet.
    queue.parts.control.u64(56).store(1, Ordering::SeqCst);
    assert_eq!(queue.submit(nothing(0)), 1);
    std::thread::sleep(Duration::from_millis(10));
    assert_eq!((queue.read_index(), queue.header(1)), (0, 3));
    queue.parts.ring.write(4, &nothing(0)[4..]);
    queue.parts.ring.u32(0).store(3, Ordering::Release);
    until(|| queue.read_index() == 2);
}

#[test]
fn barriers() {
    let client = client();
    let buffer = signals(&client);
    let signal = |slot: usize, value| ClientSignal::new(&buffer, 64 * slot, value);
    let (a, b) = (signal(0, 1), signal(1, 1));
    let (all, any) = (signal(2, 1), signal(3, 1));
    let and_queue = client.queue(64, AmdQueue::default());
    let or_queue = client.queue(64, AmdQueue::default());
    and_queue.submit(and([a.va, 0, b.va, 0, 0], all.va));
    let or = BarrierOr { dep_signals: [0, a.va, b.va, 0, 0], completion_signal: any.va, ..Default::default() };
    or_queue.submit(or.to_bytes());
    std::thread::sleep(Duration::from_millis(5));
    assert_eq!((all.value().load(Ordering::SeqCst), any.value().load(Ordering::SeqCst)), (1, 1));
    // The completion of one queue's packet is what the others wait for.
    let third = client.queue(64, AmdQueue::default());
    third.submit(nothing(b.va));
    any.wait(0);
    assert_eq!(all.value().load(Ordering::SeqCst), 1);
    a.value().store(0, Ordering::SeqCst);
    all.wait(0);
}

#[test]
fn barrier_value() {
    let client = Client::new(&[Target::Gfx90a]);
    let buffer = signals(&client);
    let (watched, done) = (ClientSignal::new(&buffer, 0, 0x105), ClientSignal::new(&buffer, 64, 1));
    let packet = BarrierValue {
        fences: Default::default(),
        signal: watched.va,
        value: 6,
        mask: 0xff,
        condition: Condition::Gte,
        completion_signal: done.va,
    };
    let queue = client.queue(64, AmdQueue::default());
    queue.submit(packet.to_bytes());
    std::thread::sleep(Duration::from_millis(5));
    assert_eq!(done.value().load(Ordering::SeqCst), 1);
    watched.value().store(6, Ordering::SeqCst);
    done.wait(0);
}

#[test]
fn timestamps_when_asked_for() {
    let client = client();
    let buffer = signals(&client);
    for (slot, queue_properties) in [(0, Default::default()), (1, profiling())] {
        let done = ClientSignal::new(&buffer, 64 * slot, 1);
        let queue = client.queue(64, AmdQueue { queue_properties, ..Default::default() });
        let before = crate::machine::gpu_clock();
        queue.submit(nothing(done.va));
        done.wait(0);
        let times = [32, 40].map(|offset| buffer.u64(64 * slot + offset).load(Ordering::SeqCst));
        if slot == 0 {
            assert_eq!(times, [0, 0]);
        } else {
            assert!(before <= times[0] && times[0] <= times[1] && times[1] <= crate::machine::gpu_clock());
        }
    }
}

/// An event page and a signal event on it.
fn event(client: &Client) -> (Buffer, CreateEventArgs) {
    let page = client.buffer(0x8000, SHARED);
    let mut args = CreateEventArgs { event_page_offset: page.handle, auto_reset: 1, ..Default::default() };
    client.call(&mut args).unwrap();
    (page, args)
}

fn wait(client: &Client, event_id: u32) -> EventData {
    let mut data = [EventData::new(event_id)];
    let events_ptr = data.as_mut_ptr() as u64;
    let mut args = WaitEventsArgs { events_ptr, num_events: 1, timeout: 10_000, ..Default::default() };
    client.call(&mut args).unwrap();
    assert_eq!(args.wait_result, WAIT_RESULT_COMPLETE);
    data[0]
}

#[test]
fn completion_wakes_a_sleeper() {
    let client = client();
    let (page, event) = event(&client);
    let buffer = signals(&client);
    let done = ClientSignal::new(&buffer, 0, 1);
    buffer.u64(16).store(page.va + 8 * u64::from(event.event_slot_index), Ordering::SeqCst);
    buffer.u32(24).store(event.event_id, Ordering::SeqCst);
    let queue = client.queue(64, AmdQueue::default());
    queue.submit(nothing(done.va));
    wait(&client, event.event_id);
    assert_eq!(done.value().load(Ordering::SeqCst), 0);
    // The kernel takes the slot back.
    assert_eq!(page.u64(8).load(Ordering::SeqCst), u64::MAX);
}

#[test]
fn packets_that_are_refused() {
    let dispatch = KernelDispatch { completion_signal: 0, ..Default::default() };
    let with = |change: fn(&mut KernelDispatch)| {
        let mut packet = dispatch;
        change(&mut packet);
        packet.to_bytes()
    };
    let pm4 = |opcode: u32| Pm4Ib {
        fences: Default::default(),
        jump: [0xc000_0000 | opcode << 8, 0, 0, 0],
        completion_signal: 0,
    };
    let mut vendor = [0; 64];
    vendor[2] = 3;
    let mut unknown = [0; 64];
    unknown[0] = 6;
    let cases: [(&str, [u8; 64], i64, u64); 10] = [
        (
            "agent dispatch",
            AgentDispatch {
                fences: Default::default(),
                function: 1,
                return_address: 0,
                args: [0; 4],
                completion_signal: 0,
            }
            .to_bytes(),
            0x20,
            20,
        ),
        ("unknown type", unknown, 0x20, 20),
        ("vendor format", vendor, 0x100, 23),
        ("not a jump", pm4(0x10).to_bytes(), 0x100, 23),
        ("no dimensions", with(|p| p.dims = 0), 0x2, 16),
        ("two sizes for one dimension", with(|p| p.grid_size[1] = 2), 0x2, 16),
        ("empty grid", with(|p| p.grid_size[0] = 0), 0x2, 16),
        ("null code", with(|p| p.kernel_object = 0), 0x8, 18),
        ("unaligned code", with(|p| p.kernel_object = 0x1001), 0x8, 18),
        ("large work-group", with(|p| p.workgroup_size[0] = 1025), 0x40, 21),
    ];
    for (what, packet, bits, code) in cases {
        let client = client();
        let (_page, event) = event(&client);
        client.call(&mut RuntimeEnableArgs { mode_mask: 1, ..Default::default() }).unwrap();
        let buffer = signals(&client);
        let status = ClientSignal::new(&buffer, 0, 0);
        let mut parts = client.queue_parts(64, AmdQueue { queue_inactive_signal: status.va, ..Default::default() });
        // The header of the save area names where exceptions go.
        parts.save.u64(24).store(buffer.va + 128, Ordering::SeqCst);
        parts.save.u32(32).store(event.event_id, Ordering::SeqCst);
        parts.ring.write(0, &packet);
        parts.control.u64(56).store(1, Ordering::SeqCst);
        client.call(&mut parts.args).unwrap();
        wait(&client, event.event_id);
        assert_eq!(buffer.u64(128).load(Ordering::SeqCst), 1 << (code - 1), "{what}");
        status.wait(bits);
        let faults = faults(&client);
        assert_eq!(faults.len(), 1, "{what}");
        assert_eq!(faults[0].kind, FaultKind::Packet(bits as u64), "{what}");
        assert_eq!((faults[0].gpu_id, faults[0].queue_id), (client.gpus[0], parts.args.queue_id), "{what}");
        assert!(!faults[0].detail.is_empty(), "{what}");
        // It stays where it was.
        assert_eq!(parts.control.u64(128).load(Ordering::SeqCst), 0, "{what}");
    }
}

#[test]
fn exceptions_reach_the_process_while_the_runtime_is_enabled() {
    for (enabled, until_then) in [(true, true), (false, false), (true, false)] {
        let client = client();
        let mut event = CreateEventArgs { auto_reset: 1, ..Default::default() };
        client.call(&mut event).unwrap();
        let runtime = |mode_mask| client.call(&mut RuntimeEnableArgs { mode_mask, ..Default::default() }).unwrap();
        if enabled {
            runtime(1);
        }
        let buffer = signals(&client);
        let (queue, status) = queue_with_status(&client, &buffer);
        let payload = buffer.u64(1024);
        payload.store(1, Ordering::SeqCst);
        let header = ContextSaveAreaHeader {
            err_payload_addr: buffer.va + 1024,
            err_event_id: event.event_id,
            ..ContextSaveAreaHeader::default()
        };
        queue.parts.save.write(0, header.as_bytes());
        if !until_then {
            runtime(0);
        }
        queue.submit(KernelDispatch { dims: 0, ..Default::default() }.to_bytes());
        until(|| status.value().load(Ordering::SeqCst) != 0);
        let told = enabled && until_then;
        // Dimensions are exception 16; what is there stays.
        until(|| !told || payload.load(Ordering::SeqCst) == 1 << 15 | 1);
        let mut data = EventData { event_id: event.event_id, ..Default::default() };
        let (events_ptr, timeout) = (&raw mut data as u64, if told { 5000 } else { 20 });
        let mut args = WaitEventsArgs { events_ptr, num_events: 1, timeout, ..Default::default() };
        client.call(&mut args).unwrap();
        let expected = if told { WAIT_RESULT_COMPLETE } else { WAIT_RESULT_TIMEOUT };
        assert_eq!(args.wait_result, expected, "{enabled} {until_then}");
        assert_eq!(payload.load(Ordering::SeqCst), if told { 1 << 15 | 1 } else { 1 }, "{enabled} {until_then}");
    }
}

#[test]
fn a_refused_packet_ends_its_queue_alone() {
    let client = client();
    let buffer = signals(&client);
    let (bad, status) = queue_with_status(&client, &buffer);
    let good = client.queue(64, AmdQueue::default());
    bad.submit(KernelDispatch::default().to_bytes());
    status.wait(8);
    assert!(is_dead(&bad));
    let done = ClientSignal::new(&buffer, 64, 1);
    good.submit(nothing(done.va));
    done.wait(0);
    bad.destroy().unwrap();
}

#[test]
fn a_page_fault_stops_all_queues_of_the_gpu() {
    let client = Client::new(&[Target::Gfx1100, Target::Gfx1201]);
    let mut memory = CreateEventArgs { event_type: EVENT_MEMORY, ..Default::default() };
    client.call(&mut memory).unwrap();
    let mut smi = SmiEventsArgs { gpuid: client.gpus[0], anon_fd: 0 };
    client.call(&mut smi).unwrap();
    let mask = smi_event_mask(SMI_EVENT_VMFAULT).to_ne_bytes();
    // SAFETY: `mask` has 8 bytes.
    assert_eq!(unsafe { libc::write(smi.anon_fd as i32, mask.as_ptr().cast(), 8) }, 8);
    let buffer = signals(&client);
    let (bad, status) = queue_with_status(&client, &buffer);
    let other = client.queue(64, AmdQueue::default());
    let nowhere = client.reserve(4096);
    let packet = KernelDispatch { kernel_object: nowhere + 64, ..Default::default() };
    bad.submit(packet.to_bytes());
    let data = wait(&client, memory.event_id).memory_exception();
    assert_eq!((data.va, data.gpu_id, data.error_type), (nowhere, client.gpus[0], MEM_ERR_NO_RAS));
    assert_eq!(data.failure, MemoryExceptionFailure { not_present: 1, ..Default::default() });
    let faults = faults(&client);
    assert_eq!(faults[0].kind, FaultKind::NotPresent);
    assert_eq!((faults[0].va, faults[0].access), (Some(nowhere + 64), Some(Access::Read)));
    assert_eq!(status.value().load(Ordering::SeqCst), 0);
    let mut line = [0u8; 96];
    // SAFETY: `line` has 96 bytes.
    let read = || unsafe { libc::read(smi.anon_fd as i32, line.as_ptr() as *mut _, 96) };
    let command = std::fs::read_to_string("/proc/self/comm").unwrap();
    let expected = format!("1 {:x}:{command}", std::process::id());
    until(|| read() == expected.len() as isize);
    line.iter_mut().skip(expected.len()).for_each(|byte| *byte = 0);
    assert_eq!(&line[..expected.len()], expected.as_bytes());
    assert!(is_dead(&bad) && is_dead(&other));
    // A queue that comes later does not run either.
    assert!(is_dead(&client.queue(64, AmdQueue::default())));
    bad.destroy().unwrap();
    other.destroy().unwrap();
}

#[test]
fn a_signal_the_gpu_may_not_write() {
    let client = client();
    let mut memory = CreateEventArgs { event_type: EVENT_MEMORY, ..Default::default() };
    client.call(&mut memory).unwrap();
    let page = client.buffer(4096, ALLOC_MEM_FLAGS_GTT);
    let done = ClientSignal::new(&page, 0, 1);
    let queue = client.queue(64, AmdQueue::default());
    queue.submit(nothing(done.va));
    let data = wait(&client, memory.event_id).memory_exception();
    assert_eq!((data.va, data.failure.read_only, data.failure.not_present), (page.va, 1, 0));
    assert_eq!(done.value().load(Ordering::SeqCst), 1);
    assert!(faults(&client)[0].detail.contains("completion signal"), "{:?}", faults(&client));
}

#[test]
fn cache_invalidation_by_pm4() {
    let client = client();
    let buffer = signals(&client);
    let done = ClientSignal::new(&buffer, 0, 1);
    let commands = client.buffer(4096, SHARED);
    // ACQUIRE_MEM with 7 operands as user space sends it on GFX10 and later, a NOP, filler.
    let ib: [u32; 11] = [0xc006_5800, 0, 0xffff_ffff, 0xff, 0, 0, 0xa, 0x1c0, 0xc000_1000, 0, 0x8000_0000];
    for (index, word) in ib.iter().enumerate() {
        commands.u32(4 * index).store(*word, Ordering::SeqCst);
    }
    let packet = Pm4Ib::jump_to(Default::default(), commands.va, ib.len() as u32, done.va).unwrap();
    let (queue, status) = queue_with_status(&client, &signals(&client));
    queue.submit(packet.to_bytes());
    done.wait(0);
    // WRITE_DATA is another matter.
    commands.u32(0).store(0xc003_3700, Ordering::SeqCst);
    queue.submit(packet.to_bytes());
    status.wait(0x100);
    assert!(faults(&client)[0].detail.contains("opcode 0x37"), "{:?}", faults(&client));
}

#[test]
fn a_paused_queue_takes_nothing_and_reads_the_write_index_when_it_goes_on() {
    let client = client();
    let queue = client.queue(64, AmdQueue { queue_type: QueueType::Single, ..Default::default() });
    let args = queue.parts.args;
    let update = |queue_percentage| {
        let mut update = UpdateQueueArgs {
            ring_base_address: args.ring_base_address,
            queue_id: args.queue_id,
            ring_size: args.ring_size,
            queue_percentage,
            queue_priority: 7,
        };
        client.call(&mut update).unwrap();
    };
    queue.submit(nothing(0));
    until(|| queue.read_index() == 1);
    update(0);
    queue.submit(nothing(0));
    // This one has no doorbell at all.
    queue.publish(nothing(0));
    std::thread::sleep(Duration::from_millis(10));
    assert_eq!(queue.read_index(), 1);
    update(100);
    until(|| queue.read_index() == 3);
}

#[test]
fn a_doorbell_is_heard_by_a_queue_that_runs_as_often_as_it_is_rung() {
    let client = client();
    let queue = client.queue(64, AmdQueue::default());
    queue.submit(nothing(0));
    until(|| queue.read_index() == 1);
    // The same value again: the write index has moved.
    queue.publish(nothing(0));
    queue.ring(0);
    until(|| queue.read_index() == 2);
    let args = queue.parts.args;
    let update = |queue_percentage| {
        client
            .call(&mut UpdateQueueArgs {
                ring_base_address: args.ring_base_address,
                queue_id: args.queue_id,
                ring_size: args.ring_size,
                queue_percentage,
                queue_priority: 7,
            })
            .unwrap();
    };
    // Rung while it is paused, and the write index does not tell of the packet: nobody knows of it.
    update(0);
    queue.parts.ring.write(128, &nothing(0));
    queue.ring(2);
    update(100);
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(queue.read_index(), 2);
    queue.ring(2);
    until(|| queue.read_index() == 3);
}

#[test]
fn waiting_queues_end_at_once() {
    let client = client();
    let buffer = signals(&client);
    let never = ClientSignal::new(&buffer, 0, 1);
    let destroyed = client.queue(64, AmdQueue::default());
    destroyed.submit(and([never.va, 0, 0, 0, 0], 0));
    destroyed.submit(BarrierOr::default().to_bytes());
    let dropped = client.queue(64, AmdQueue::default());
    dropped.submit(and([never.va, 0, 0, 0, 0], 0));
    std::thread::sleep(Duration::from_millis(5));
    destroyed.destroy().unwrap();
    // The other ends with the driver.
    drop(client);
}

#[test]
fn a_plain_store_is_enough_after_a_long_sleep() {
    let client = client();
    let buffer = signals(&client);
    let queue = client.queue(64, AmdQueue::default());
    std::thread::sleep(Duration::from_millis(400));
    let done = ClientSignal::new(&buffer, 0, 1);
    queue.submit(nothing(done.va));
    done.wait(0);
}

#[test]
fn a_read_index_that_is_a_loose_word() {
    let client = client();
    let mut memory = CreateEventArgs { event_type: EVENT_MEMORY, ..Default::default() };
    client.call(&mut memory).unwrap();
    let mut parts = client.queue_parts(64, AmdQueue::default());
    // The u32 behind it leads 16 MiB astray.
    parts.control.u32(136).store(16 << 20, Ordering::SeqCst);
    client.call(&mut parts.args).unwrap();
    let slice = client.mmap(client.kfd, 0, 8192, parts.args.doorbell_offset & !8191).unwrap();
    let queue = ClientQueue { client: &client, doorbell: slice, packets: 64, parts };
    queue.submit(nothing(0));
    let data = wait(&client, memory.event_id).memory_exception();
    assert_eq!(data.va, (queue.parts.control.va + 128 - (16 << 20)) & !0xfff);
}

/// What goes wrong without an error on hardware is at least told.
#[test]
fn silence_is_explained() {
    let client = client();
    let notes = || {
        let note = |event| match event {
            Event::Note { text } => Some(text),
            _ => None,
        };
        client.trace().into_iter().filter_map(note).collect::<Vec<_>>()
    };
    // Rung with the write index instead of the last packet's.
    let ahead = client.queue(64, AmdQueue::default());
    ahead.publish(nothing(0));
    ahead.ring(1);
    until(|| {
        notes().iter().any(|text| text.contains("queue 0: the doorbell was rung with 1, and write_dispatch_id is 1"))
    });
    let silent = client.queue(64, AmdQueue::default());
    silent.publish(nothing(0));
    until(|| notes().iter().any(|text| text.contains("queue 1: write_dispatch_id is 1, and the doorbell")));
    until(|| notes().iter().any(|text| text.contains("queue 0: packet 1 holds it up")));
    assert_eq!(notes().len(), 3, "{:?}", notes());
}

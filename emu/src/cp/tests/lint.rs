//! Lint, adversarial looks and injected faults.

use super::*;
use crate::kernel::Options;

fn linted(options: Options) -> Client {
    let client = Client::with(&[Target::Gfx1100], Options { workers: 1, lint: true, ..options });
    client.acquire();
    client
}

/// Rules that were told, once each, in order.
fn rules(client: &Client) -> Vec<&'static str> {
    let mut rules: Vec<&str> = Vec::new();
    for event in client.trace() {
        if let Event::Lint { rule, .. } = event
            && !rules.contains(&rule)
        {
            rules.push(rule);
        }
    }
    rules
}

fn system_fences(packet: [u8; 64]) -> [u8; 64] {
    let mut packet = packet;
    packet[1] |= 0x14;
    packet
}

#[test]
fn a_careful_client_is_told_nothing() {
    let client = linted(Options::default());
    let buffer = signals(&client);
    let done = ClientSignal::new(&buffer, 0, 100);
    let queue = client.queue(64, AmdQueue::default());
    for index in 0..100 {
        until(|| index - queue.read_index() < 64);
        queue.submit(system_fences(nothing(done.va)));
    }
    done.wait(0);
    // The client's buffers lie where the host put them, so that there may be no page between them.
    assert_eq!(rules(&client).iter().filter(|rule| **rule != "no-guard-page").count(), 0);
}

#[test]
fn a_body_after_its_header() {
    let client = linted(Options::default());
    let buffer = signals(&client);
    let done = ClientSignal::new(&buffer, 0, 1);
    let queue = client.queue(64, AmdQueue::default());
    // The packet processor looks as soon as the header is there, and again a little later.
    let slot = 0;
    queue.parts.control.u64(56).store(1, Ordering::SeqCst);
    queue.ring(0);
    let packet = nothing(done.va);
    queue.parts.ring.u32(slot).store(u32::from_le_bytes([packet[0], packet[1], 0, 0]), Ordering::Release);
    let started = std::time::Instant::now();
    while !rules(&client).contains(&"body-after-header") && started.elapsed() < Duration::from_secs(5) {
        // Dependencies that are null all the time but for these stores.
        queue.parts.ring.u64(slot + 48).fetch_add(1, Ordering::Relaxed);
        if queue.read_index() != 0 {
            // It took the packet with what was there first; once more.
            queue.parts.ring.u32(slot).store(1, Ordering::Relaxed);
            let index = queue.parts.control.u64(56).fetch_add(1, Ordering::SeqCst);
            let slot = (index % 64) as usize * 64;
            queue.ring(index);
            queue.parts.ring.u32(slot).store(u32::from_le_bytes([packet[0], packet[1], 0, 0]), Ordering::Release);
            for _ in 0..200 {
                queue.parts.ring.u64(slot + 48).fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_micros(10));
            }
        }
    }
    assert!(rules(&client).contains(&"body-after-header"), "{:?}", client.trace());
}

#[test]
fn publication_out_of_order() {
    let client = linted(Options::default());
    let queue = client.queue(64, AmdQueue::default());
    queue.parts.control.u64(56).store(2, Ordering::SeqCst);
    queue.parts.ring.write(64, &nothing(0));
    queue.ring(1);
    until(|| rules(&client).contains(&"out-of-order"));
    assert_eq!(queue.read_index(), 0);
}

#[test]
fn fences_reserved_bits_and_doorbells() {
    let client = linted(Options::default());
    let buffer = signals(&client);
    let done = ClientSignal::new(&buffer, 0, 1);
    let (queue, _) = queue_with_status(&client, &client.buffer(4096, SHARED));
    let mut packet = nothing(done.va);
    packet[48] = 1;
    queue.ring(0);
    until(|| rules(&client).contains(&"doorbell-first"));
    queue.submit(packet);
    until(|| rules(&client).contains(&"reserved-bits") || done.value().load(Ordering::Acquire) == 0);
    // A dispatch without scopes; what becomes of it is another matter.
    queue.submit(KernelDispatch { dims: 1, ..Default::default() }.to_bytes());
    until(|| rules(&client).contains(&"no-fence"));
}

#[test]
fn indices_that_lie_loose_and_rings_without_a_guard() {
    let client = linted(Options::default());
    let mut parts = client.queue_parts(64, AmdQueue::default());
    parts.args.write_pointer_address = parts.control.va + 1024;
    client.call(&mut parts.args).unwrap();
    until(|| rules(&client).contains(&"loose-indices"));

    let two = client.reserve(8192);
    let both = client.alloc(two, 8192, SHARED).unwrap();
    client.mmap(client.render[0], two, 8192, both.mmap_offset).unwrap();
    assert_eq!(client.map_to(both.handle, &client.gpus).0, Ok(()));
    // A ring that is a whole buffer, and another buffer right behind it.
    let pair = client.reserve(8192);
    let mut parts = client.queue_parts(64, AmdQueue::default());
    for at in [pair, pair + 4096] {
        let buffer = client.alloc(at, 4096, SHARED).unwrap();
        client.mmap(client.render[0], at, 4096, buffer.mmap_offset).unwrap();
        assert_eq!(client.map_to(buffer.handle, &client.gpus).0, Ok(()));
    }
    parts.args.ring_base_address = pair;
    client.call(&mut parts.args).unwrap();
    until(|| rules(&client).contains(&"no-guard-page"));
}

#[test]
fn a_careful_client_survives_the_worst_moments() {
    for seed in 0..4 {
        let client = linted(Options { adversary: Some(seed), ..Options::default() });
        let buffer = signals(&client);
        let done = ClientSignal::new(&buffer, 0, 500);
        let queue = client.queue(64, AmdQueue::default());
        for index in 0..500 {
            until(|| index - queue.read_index() < 64);
            queue.submit(nothing(done.va));
        }
        done.wait(0);
        assert_eq!(queue.read_index(), 500);
    }
}

#[test]
fn a_packet_may_be_taken_before_its_doorbell() {
    let client = linted(Options { adversary: Some(1), ..Options::default() });
    let queue = client.queue(64, AmdQueue::default());
    queue.publish(nothing(0));
    until(|| queue.read_index() == 1);
}

fn injected(faults: &[&str]) -> Client {
    let inject = faults.iter().map(|fault| fault.parse().unwrap()).collect();
    Client::with(&[Target::Gfx1100], Options { workers: 1, inject, ..Options::default() })
}

#[test]
fn calls_fail_when_asked_to() {
    let client = injected(&["CREATE_EVENT:2=ENOSPC"]);
    client.acquire();
    let create = || client.call(&mut CreateEventArgs { event_type: EVENT_HW_EXCEPTION, ..Default::default() });
    assert_eq!([create(), create(), create()], [Ok(()), Err(libc::ENOSPC), Ok(())]);
}

#[test]
fn a_page_that_is_not_there() {
    let client = injected(&["vm-fault:#1+0x1000"]);
    client.acquire();
    let buffer = client.buffer(3 * 4096, SHARED);
    let space = client.driver.process().unwrap().lock().devices[0].vm.as_ref().unwrap().space.clone();
    let around =
        |offset: u64| space.lookup(buffer.va + offset).map(|span| (span.start - buffer.va, span.end - buffer.va));
    assert_eq!([around(0), around(0x1fff), around(0x2000)], [Some((0, 0x1000)), None, Some((0x2000, 0x3000))]);
    // The host's view of the rest is the GPU's.
    let span = space.lookup(buffer.va + 0x2008).unwrap();
    buffer.u64(0x2008).store(0x1234, Ordering::SeqCst);
    // SAFETY: the span holds the address and is alive.
    assert_eq!(unsafe { span.host.add(8).cast::<u64>().read_volatile() }, 0x1234);
}

#[test]
fn a_lost_interrupt_leaves_the_value() {
    let client = injected(&["lost-interrupt:1"]);
    client.acquire();
    let page = client.buffer(0x8000, SHARED);
    let mut event = CreateEventArgs { event_page_offset: page.handle, auto_reset: 1, ..Default::default() };
    client.call(&mut event).unwrap();
    let buffer = signals(&client);
    let queue = client.queue(64, AmdQueue::default());
    let wait = |milliseconds: u32| {
        let mut data = EventData { event_id: event.event_id, ..Default::default() };
        let events_ptr = &raw mut data as u64;
        let mut args =
            WaitEventsArgs { events_ptr, num_events: 1, wait_for_all: 1, timeout: milliseconds, ..Default::default() };
        client.call(&mut args).unwrap();
        args.wait_result
    };
    for expected in [WAIT_RESULT_TIMEOUT, WAIT_RESULT_COMPLETE] {
        let done = ClientSignal::new(&buffer, 0, 1);
        let mailbox = page.va + 8 * u64::from(event.event_slot_index);
        buffer.u64(aql::signal::EVENT_MAILBOX_PTR).store(mailbox, Ordering::SeqCst);
        buffer.u32(aql::signal::EVENT_ID).store(event.event_id, Ordering::SeqCst);
        queue.submit(nothing(done.va));
        done.wait(0);
        assert_eq!(wait(if expected == WAIT_RESULT_TIMEOUT { 20 } else { 5000 }), expected);
    }
}

#[test]
fn a_reset_sets_the_events_and_stops_the_queues() {
    for (fault, gone) in [("reset:2", false), ("removal:2", true)] {
        let client = injected(&[fault]);
        client.acquire();
        let mut event = CreateEventArgs { event_type: EVENT_HW_EXCEPTION, auto_reset: 1, ..Default::default() };
        client.call(&mut event).unwrap();
        let mut smi = SmiEventsArgs { gpuid: client.gpus[0], anon_fd: 0 };
        client.call(&mut smi).unwrap();
        let mask = smi_event_mask(SMI_EVENT_GPU_PRE_RESET) | smi_event_mask(SMI_EVENT_GPU_POST_RESET);
        // SAFETY: the mask has 8 bytes.
        assert_eq!(unsafe { libc::write(smi.anon_fd as i32, (&raw const mask).cast(), 8) }, 8);
        let buffer = signals(&client);
        let done = ClientSignal::new(&buffer, 0, 2);
        let queue = client.queue(64, AmdQueue::default());
        queue.submit(nothing(done.va));
        queue.submit(nothing(done.va));
        let mut data = EventData { event_id: event.event_id, ..Default::default() };
        let events_ptr = &raw mut data as u64;
        let mut args =
            WaitEventsArgs { events_ptr, num_events: 1, wait_for_all: 1, timeout: 5000, ..Default::default() };
        client.call(&mut args).unwrap();
        assert_eq!(args.wait_result, WAIT_RESULT_COMPLETE, "{fault}");
        let exception = HsaHwExceptionData::from_prefix_or_zero(data.as_bytes());
        assert_eq!((exception.memory_lost, exception.gpu_id), (1, client.gpus[0]), "{fault}");
        assert_eq!((done.value().load(Ordering::Acquire), queue.read_index()), (1, 1), "{fault}");
        assert!(is_dead(&queue), "{fault}");
        let mut told = [0u8; 96];
        // SAFETY: room for the bytes that are asked for.
        let bytes = unsafe { libc::read(smi.anon_fd as i32, told.as_mut_ptr().cast(), told.len()) };
        let told = std::str::from_utf8(&told[..bytes as usize]).unwrap();
        assert_eq!(told, if gone { "3 1 MES hang\n" } else { "3 1 MES hang\n4 1 \n" }, "{fault}");
        let after = client.alloc(client.reserve(4096), 4096, SHARED).map(|_| ());
        assert_eq!(after, if gone { Err(libc::EINVAL) } else { Ok(()) }, "{fault}");
        // What is changed of the queue cannot go to the hardware any more.
        let args = queue.parts.args;
        let mut update = UpdateQueueArgs { queue_id: args.queue_id, queue_percentage: 100, ..Default::default() };
        assert_eq!(client.call(&mut update), Err(libc::EACCES), "{fault}");
        queue.destroy().unwrap();
    }
}

#[test]
fn a_slow_processor_makes_packets_wait() {
    let client = injected(&["slow:200000"]);
    client.acquire();
    let buffer = signals(&client);
    let done = ClientSignal::new(&buffer, 0, 1);
    let queue = client.queue(64, AmdQueue::default());
    queue.submit(nothing(done.va));
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(done.value().load(Ordering::Acquire), 1);
    done.wait(0);
}

//! Dispatches with code: bytes assembled by llvm-mc.

use super::*;
use aql::Fences;

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// Offset of the code behind its descriptor.
const CODE: usize = 256;

/// A kernel with its descriptor: kernarg pointer in s[0:1], `private` bytes of scratch, wave32 where there is one.
pub fn load(client: &Client, target: Target, code: &str, private: u32) -> Buffer {
    use crate::isa::Family;
    let buffer = client.buffer(8192, SHARED);
    let gfx9 = target.family() == Family::Gfx9;
    let mut properties: u16 = 1 << 3;
    let user_sgprs = 2;
    if !gfx9 {
        properties |= 1 << 10;
    }
    let rsrc2: u32 = user_sgprs << 1 | u32::from(private > 0);
    buffer.write(4, &private.to_le_bytes());
    buffer.write(8, &8u32.to_le_bytes());
    buffer.write(16, &(CODE as u64).to_le_bytes());
    buffer.write(52, &rsrc2.to_le_bytes());
    buffer.write(56, &properties.to_le_bytes());
    buffer.write(CODE, &hex(code));
    buffer
}

/// Loads a pointer from the kernel arguments and stores 42 there.
const STORE_42: [(Target, &str); 7] = [
    (Target::Gfx900, "000006c0000000008002007eaa02027e7fc08cbf008070dc00010000000081bf"),
    (Target::Gfx906, "000006c0000000008002007eaa02027e7fc08cbf008070dc00010000000081bf"),
    (Target::Gfx90a, "000006c0000000008002007eaa02027e7fc08cbf008070dc00010000000081bf"),
    (Target::Gfx942, "000006c0000000008002007eaa02027e7fc08cbf008070dc00010000000081bf"),
    (Target::Gfx1030, "000004f4000000fa8002007eaa02027e7fc08cbf008070dc00010000000081bf"),
    (Target::Gfx1100, "000004f4000000f88002007eaa02027e07fc89bf00006adc000100000000b0bf"),
    (Target::Gfx1201, "002000f4000000f88002007eaa02027e0000c7bf008006ee00008000000000000000b0bf"),
];

fn store_42(target: Target) -> &'static str {
    STORE_42.iter().find(|(of, _)| *of == target).unwrap().1
}

/// Endless: waits for a register to become 0.
const SPIN_GFX1100: &str = "810083be010083bf038006bffdffa1bf0000b0bf";
/// Trap 2, end.
const TRAP_GFX1100: &str = "020090bf0000b0bf";
pub const END_GFX1100: &str = "0000b0bf";

fn dispatch(kernel: &Buffer, kernarg: u64, completion_signal: u64) -> [u8; 64] {
    KernelDispatch {
        fences: Fences::SYSTEM,
        dims: 1,
        kernel_object: kernel.va,
        kernarg_address: kernarg,
        completion_signal,
        ..Default::default()
    }
    .to_bytes()
}

#[test]
fn a_store_on_every_target() {
    for (target, code) in STORE_42 {
        let client = Client::new(&[target]);
        let kernel = load(&client, target, code, 0);
        let data = client.buffer(4096, SHARED);
        let buffer = signals(&client);
        data.u64(0).store(data.va + 64, Ordering::SeqCst);
        let done = ClientSignal::new(&buffer, 64, 1);
        let (queue, _status) = queue_with_status(&client, &buffer);
        queue.submit(dispatch(&kernel, data.va, done.va));
        until(|| done.value().load(Ordering::SeqCst) == 0 || !faults(&client).is_empty());
        assert_eq!(faults(&client), [], "{target}");
        assert_eq!((data.u64(64).load(Ordering::SeqCst), done.value().load(Ordering::SeqCst)), (42, 0), "{target}");
        let wave_size = if target.family() == crate::isa::Family::Gfx9 { 64 } else { 32 };
        let queue_id = queue.parts.args.queue_id;
        let (kernel_object, workgroups) = (kernel.va, [1, 1, 1]);
        assert!(client.trace().contains(&Event::Dispatch { queue_id, index: 0, kernel_object, workgroups, wave_size }));
        assert!(
            client.trace().contains(&Event::Complete { queue_id, index: 0, instructions: 6, waves: 1 }),
            "{target}"
        );
    }
}

#[test]
fn a_store_to_nowhere_names_its_place() {
    let target = Target::Gfx1100;
    let client = client();
    let mut memory = CreateEventArgs { event_type: EVENT_MEMORY, ..Default::default() };
    client.call(&mut memory).unwrap();
    let kernel = load(&client, target, store_42(target), 0);
    let data = client.buffer(4096, SHARED);
    let nowhere = client.reserve(4096);
    data.u64(0).store(nowhere + 0x123 * 4, Ordering::SeqCst);
    let queue = client.queue(64, AmdQueue::default());
    queue.submit(dispatch(&kernel, data.va, 0));
    let exception = wait(&client, memory.event_id).memory_exception();
    assert_eq!((exception.va, exception.failure.not_present), (nowhere, 1));
    let fault = &faults(&client)[0];
    assert_eq!((fault.va, fault.access), (Some(nowhere + 0x48c), Some(Access::Write)));
    assert_eq!(fault.kernel_object, Some(kernel.va));
    assert_eq!(fault.workgroup, Some([0; 3]));
}

#[test]
fn code_that_is_not_executable() {
    let client = client();
    let mut memory = CreateEventArgs { event_type: EVENT_MEMORY, ..Default::default() };
    client.call(&mut memory).unwrap();
    let loaded = load(&client, Target::Gfx1100, END_GFX1100, 0);
    let plain = client.buffer(4096, ALLOC_MEM_FLAGS_GTT | ALLOC_MEM_FLAGS_WRITABLE);
    for word in 0..512 {
        plain.u64(8 * word).store(loaded.u64(8 * word).load(Ordering::SeqCst), Ordering::SeqCst);
    }
    let queue = client.queue(64, AmdQueue::default());
    queue.submit(dispatch(&plain, 0, 0));
    let exception = wait(&client, memory.event_id).memory_exception();
    // NoExecute is never told.
    assert_eq!((exception.va, exception.failure), (plain.va, MemoryExceptionFailure::default()));
    assert_eq!(faults(&client)[0].kind, FaultKind::NoExecute);
}

#[test]
fn traps_and_illegal_instructions() {
    for (code, bits, exception) in [(TRAP_GFX1100, 0x8000_0000, 1), ("ffffffffffffffff", 0x4000_0000, 1 << 3)] {
        let client = client();
        client.call(&mut RuntimeEnableArgs { mode_mask: 1, ..Default::default() }).unwrap();
        let (_page, event) = event(&client);
        let buffer = signals(&client);
        let (queue, status) = queue_with_status(&client, &buffer);
        queue.parts.save.u64(24).store(buffer.va + 128, Ordering::SeqCst);
        queue.parts.save.u32(32).store(event.event_id, Ordering::SeqCst);
        let kernel = load(&client, Target::Gfx1100, code, 0);
        queue.submit(dispatch(&kernel, 0, 0));
        wait(&client, event.event_id);
        status.wait(bits);
        assert_eq!(buffer.u64(128).load(Ordering::SeqCst), exception);
        assert_eq!(faults(&client)[0].pc, Some(kernel.va + CODE as u64));
    }
}

#[test]
fn a_running_dispatch_ends_with_its_queue() {
    let client = client();
    let kernel = load(&client, Target::Gfx1100, SPIN_GFX1100, 0);
    let destroyed = client.queue(64, AmdQueue::default());
    let dropped = client.queue(64, AmdQueue::default());
    destroyed.submit(dispatch(&kernel, 0, 0));
    dropped.submit(dispatch(&kernel, 0, 0));
    let running = || client.trace().iter().filter(|event| matches!(event, Event::Dispatch { .. })).count();
    until(|| running() == 2);
    destroyed.destroy().unwrap();
    assert_eq!(faults(&client), []);
    drop(client);
}

#[test]
fn scratch_is_asked_for() {
    let client = client();
    let buffer = signals(&client);
    let (queue, status) = queue_with_status(&client, &buffer);
    let done = ClientSignal::new(&buffer, 64, 1);
    let kernel = load(&client, Target::Gfx1100, END_GFX1100, 64);
    let packet = KernelDispatch {
        private_segment_size: 64,
        kernel_object: kernel.va,
        completion_signal: done.va,
        ..Default::default()
    };
    queue.submit(packet.to_bytes());
    // A wave32 asks with bit 10.
    status.wait(0x400);
    assert_eq!(done.value().load(Ordering::SeqCst), 1);
    // 64 bytes for each of 32 lanes are 2 KiB, 32 bytes a lane of 64; WAVESIZE counts 256 bytes, WAVES an engine.
    let scratch = client.buffer(1 << 20, SHARED);
    let control = queue.parts.control;
    control.u64(0xa0).store(scratch.va, Ordering::SeqCst);
    control.u32(0xb0).store(32, Ordering::SeqCst);
    control.u32(0x8c).store(8 << 12 | 4, Ordering::SeqCst);
    status.value().store(0, Ordering::SeqCst);
    done.wait(0);
    assert_eq!(status.value().load(Ordering::SeqCst), 0);
    // Used once: the processor tells when it is done with it, and waits.
    control.u32(0xb4).store(0x12, Ordering::SeqCst);
    let again = ClientSignal::new(&buffer, 64, 1);
    queue.submit(packet.to_bytes());
    again.wait(0);
    status.wait(0x200);
    queue.submit(nothing(0));
    std::thread::sleep(Duration::from_millis(5));
    assert_eq!(queue.read_index(), 2);
    status.value().store(0, Ordering::SeqCst);
    until(|| queue.read_index() == 3);
}

#[test]
fn scratch_that_nobody_can_give() {
    let client = client();
    let kernel = load(&client, Target::Gfx1100, END_GFX1100, 64);
    let queue = client.queue(64, AmdQueue::default());
    let packet = KernelDispatch { private_segment_size: 64, kernel_object: kernel.va, ..Default::default() };
    queue.submit(packet.to_bytes());
    until(|| !faults(&client).is_empty());
    assert!(faults(&client)[0].detail.contains("queue_inactive_signal is null"), "{:?}", faults(&client));
}

#[test]
fn memory_of_the_caller() {
    let target = Target::Gfx1100;
    let client = client();
    let mut memory = CreateEventArgs { event_type: EVENT_MEMORY, ..Default::default() };
    client.call(&mut memory).unwrap();
    let kernel = load(&client, target, store_42(target), 0);
    let data = client.buffer(4096, SHARED);
    let buffer = signals(&client);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping where the kernel likes.
    let own = unsafe { client.driver.mmap(0, 4096, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0).unwrap() } as u64;
    let mut args = AllocMemoryOfGpuArgs {
        va_addr: own,
        mmap_offset: own,
        size: 4096,
        gpu_id: client.gpus[0],
        flags: ALLOC_MEM_FLAGS_USERPTR | ALLOC_MEM_FLAGS_WRITABLE,
        handle: 0,
    };
    client.call(&mut args).unwrap();
    assert_eq!(client.map_to(args.handle, &client.gpus), (Ok(()), 1));
    data.u64(0).store(own, Ordering::SeqCst);
    let done = ClientSignal::new(&buffer, 0, 1);
    let queue = client.queue(64, AmdQueue::default());
    queue.submit(dispatch(&kernel, data.va, done.va));
    done.wait(0);
    // SAFETY: the mapping made above.
    assert_eq!(unsafe { (own as *const u32).read_volatile() }, 42);
    // Once the caller unmaps it, the GPU faults.
    // SAFETY: nothing else uses the range.
    unsafe { client.driver.munmap(own as usize, 4096).unwrap() };
    queue.submit(dispatch(&kernel, data.va, 0));
    assert_eq!(wait(&client, memory.event_id).memory_exception().va, own);
}

#[test]
fn the_second_gpu_runs_its_own_code() {
    let targets = [Target::Gfx90a, Target::Gfx1100];
    let client = Client::new(&targets);
    let kernels = targets.map(|target| load(&client, target, store_42(target), 0));
    let data = client.buffer(4096, SHARED);
    let buffer = signals(&client);
    for (index, kernel) in kernels.iter().enumerate() {
        data.u64(0).store(data.va + 64, Ordering::SeqCst);
        data.u64(64).store(0, Ordering::SeqCst);
        let done = ClientSignal::new(&buffer, 0, 1);
        let queue = client.queue_on(index, 64, AmdQueue::default());
        queue.submit(dispatch(kernel, data.va, done.va));
        done.wait(0);
        assert_eq!(data.u64(64).load(Ordering::SeqCst), 42, "{}", targets[index]);
    }
}

use super::*;
use crate::{AgentDispatch, Fences, Packet};
use proptest::prelude::*;
use std::sync::atomic::AtomicBool;

/// The memory of a ring, and the packet processor's side of the protocol: it takes packets up to an INVALID header,
/// leaves INVALID behind and advances the read index.
struct Memory {
    slots: *mut [AtomicU32; 16],
    indices: Box<[AtomicU64; 2]>,
    packets: u32,
}

// SAFETY: all of it is atomics.
unsafe impl Sync for Memory {}
// SAFETY: as above.
unsafe impl Send for Memory {}

impl Memory {
    fn layout(packets: u32) -> std::alloc::Layout {
        std::alloc::Layout::from_size_align(packets as usize * 64, 64).unwrap()
    }

    /// Indices start at `start`, as in a queue that took that many packets before.
    fn new(packets: u32, start: u64) -> Memory {
        // SAFETY: the layout has a size.
        let slots = unsafe { std::alloc::alloc_zeroed(Self::layout(packets)) }.cast();
        Memory { slots, indices: Box::new([AtomicU64::new(start), AtomicU64::new(start)]), packets }
    }

    fn ring(&self) -> Ring {
        let (write, read) = (self.indices[0].as_ptr(), self.indices[1].as_ptr());
        // SAFETY: tests drop the ring before the memory, and use atomics.
        let mut ring = unsafe { Ring::new(self.slots.cast(), write, read, self.packets) }.unwrap();
        ring.clear();
        ring
    }

    fn slot(&self, index: u64) -> &[AtomicU32; 16] {
        // SAFETY: inside the allocation.
        unsafe { &*self.slots.add((index % u64::from(self.packets)) as usize) }
    }

    /// Takes the next packet if there is one.
    fn take(&self) -> Option<(u64, Packet)> {
        let index = self.indices[1].load(Ordering::Relaxed);
        let slot = self.slot(index);
        let first = slot[0].load(Ordering::Acquire);
        if first & 0xff == PacketType::Invalid as u32 {
            return None;
        }
        let mut bytes = [0; 64];
        for (i, dword) in slot.iter().enumerate() {
            let value = if i == 0 { first } else { dword.load(Ordering::Relaxed) };
            bytes[4 * i..4 * i + 4].copy_from_slice(&value.to_ne_bytes());
        }
        slot[0].store(PacketType::Invalid as u32, Ordering::Relaxed);
        self.indices[1].store(index + 1, Ordering::Release);
        Some((index, Packet::from_bytes_strict(&bytes).unwrap()))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { std::alloc::dealloc(self.slots.cast(), Self::layout(self.packets)) }
    }
}

/// A packet in which every body byte depends on `n`.
fn numbered(n: u64) -> Packet {
    let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Packet::AgentDispatch(AgentDispatch {
        fences: Fences::SYSTEM,
        function: n as u16,
        return_address: mixed,
        args: [mixed ^ 1, mixed ^ 2, mixed ^ 3, n],
        completion_signal: !mixed,
    })
}

fn bytes(n: u64) -> [u8; 64] {
    numbered(n).to_bytes()
}

fn no_wait(_: Full) -> bool {
    false
}

#[test]
fn the_first_packet_has_index_0_and_its_header_comes_first_in_memory() {
    let memory = Memory::new(16, 0);
    let mut ring = memory.ring();
    assert_eq!(memory.take(), None);
    assert_eq!(ring.publish(&[bytes(5)], no_wait), Ok(0));
    assert_eq!((ring.write_index(), ring.read_index()), (1, 0));
    assert_eq!(memory.slot(0)[0].load(Ordering::Relaxed), 0x0005_1504);
    assert_eq!(memory.take(), Some((0, numbered(5))));
    assert_eq!(memory.take(), None);
    assert_eq!((ring.write_index(), ring.read_index()), (1, 1));
}

#[test]
fn a_full_ring_waits_and_the_wait_can_end() {
    let memory = Memory::new(16, 0);
    let mut ring = memory.ring();
    let batch: Vec<_> = (0..16).map(bytes).collect();
    assert_eq!(ring.publish(&batch, no_wait), Ok(15));

    let full = Full { write_index: 16, read_index: 0, wanted: 1, packets: 16 };
    assert_eq!(ring.publish(&[bytes(16)], no_wait), Err(RingError::Full(full)));
    assert_eq!(ring.reserve(1, no_wait).err(), Some(RingError::Full(full)));
    assert_eq!(ring.write_index(), 16);
    assert_eq!(full.to_string(), "16 of 16 slots in use (write index 16, read index 0), 1 wanted");

    // Two packets need two slots: the wait goes on until the second is free.
    let mut waits = 0;
    let last = ring.publish(&[bytes(16), bytes(17)], |full| {
        waits += 1;
        assert_eq!(full.read_index, waits - 1);
        memory.take().is_some()
    });
    assert_eq!((last, waits), (Ok(17), 2));
    for n in 2..18 {
        assert_eq!(memory.take(), Some((n, numbered(n))));
    }
}

#[test]
fn a_slot_left_unpublished_stops_the_processor_until_it_is_dropped() {
    let memory = Memory::new(16, 0);
    let ring = memory.ring();
    let mut first = ring.reserve(2, no_wait).unwrap();
    let mut second = ring.reserve(1, no_wait).unwrap();
    assert_eq!((first.next_index(), second.next_index(), ring.write_index()), (0, 2, 3));
    assert_eq!(second.publish(&[bytes(2), bytes(3)]), None);
    assert_eq!(second.publish(&[]), None);
    assert_eq!(second.publish(&[bytes(2)]), Some(2));
    assert_eq!(memory.take(), None);
    assert_eq!(first.publish(&[bytes(0)]), Some(0));
    assert_eq!(memory.take(), Some((0, numbered(0))));
    assert_eq!(memory.take(), None);
    drop(first);
    assert_eq!(memory.take(), Some((1, Packet::BarrierAnd(BarrierAnd::default()))));
    assert_eq!(memory.take(), Some((2, numbered(2))));
}

#[test]
fn wrong_sizes_addresses_and_batches() {
    let memory = Memory::new(16, 0);
    let (write, read) = (memory.indices[0].as_ptr(), memory.indices[1].as_ptr());
    let slots: *mut u8 = memory.slots.cast();
    for packets in [0, 1, 8, 17, 1000] {
        // SAFETY: refused before anything is touched.
        let error = unsafe { Ring::new(slots, write, read, packets) }.err();
        assert_eq!(error, Some(RingError::Size { packets }));
    }
    // SAFETY: as above.
    let error = unsafe { Ring::new(slots.wrapping_add(32), write, read, 16) }.err();
    assert!(matches!(error, Some(RingError::Address { what: "ring", align: 64, .. })));
    // SAFETY: as above.
    let error = unsafe { Ring::new(slots, write, std::ptr::null_mut(), 16) }.err().unwrap();
    assert_eq!(error.to_string(), "read_dispatch_id at 0x0: must not be null and must be 8-byte aligned");

    let mut ring = memory.ring();
    assert_eq!(ring.publish(&[], no_wait), Err(RingError::Batch { wanted: 0, packets: 16 }));
    assert_eq!(ring.publish(&[bytes(0); 17], no_wait), Err(RingError::Batch { wanted: 17, packets: 16 }));
}

#[test]
fn an_overwritten_index_is_an_error_not_a_wait() {
    let memory = Memory::new(16, 100);
    let mut ring = memory.ring();
    for read_index in [101, 83, 0, u64::MAX] {
        memory.indices[1].store(read_index, Ordering::Relaxed);
        let error = RingError::Indices { write_index: 100, read_index, packets: 16 };
        assert_eq!(ring.publish(&[bytes(0)], |_| unreachable!()), Err(error));
    }
}

/// A step of the model.
#[derive(Clone, Debug)]
enum Step {
    /// The single producer publishes this many; only with no reservation outstanding.
    Publish(u8),
    /// A producer reserves this many.
    Reserve(u8),
    /// The producer with this number (modulo) publishes up to this many of its slots.
    Fill(u8, u8),
    /// The producer with this number (modulo) gives up.
    Abandon(u8),
    /// The processor takes up to this many.
    Take(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1u8..20).prop_map(Step::Publish),
        3 => (1u8..9).prop_map(Step::Reserve),
        4 => (any::<u8>(), 1u8..9).prop_map(|(who, n)| Step::Fill(who, n)),
        1 => any::<u8>().prop_map(Step::Abandon),
        4 => (1u8..20).prop_map(Step::Take),
    ]
}

proptest! {
    /// Against a model that is a map from index to packet: whatever producers do, the processor sees each index once,
    /// in order, with the packet its producer wrote, and never one that was not published.
    #[test]
    fn the_ring_behaves_as_its_model(
        start in prop_oneof![Just(0u64), Just((1 << 32) - 5), Just(u64::from(u32::MAX) * 7), Just((1 << 63) - 3)],
        log2 in 4u32..7,
        steps in prop::collection::vec(step(), 1..200),
    ) {
        let packets = 1 << log2;
        let memory = Memory::new(packets, start);
        let mut ring = memory.ring();
        let mut model = std::collections::BTreeMap::new();
        let (mut reserved, mut taken) = (start, start);
        // Rebuilding the producers' list each time lets the borrow of the ring end for `publish`.
        let mut steps = steps.into_iter().peekable();
        while steps.peek().is_some() {
            while let Some(Step::Publish(n)) = steps.peek() {
                let batch: Vec<_> = (0..u64::from(*n)).map(|i| bytes(reserved + i)).collect();
                let fits = reserved + u64::from(*n) - taken <= u64::from(packets);
                let result = ring.publish(&batch, no_wait);
                prop_assert_eq!(result.is_ok(), fits);
                if let Ok(last) = result {
                    prop_assert_eq!(last, reserved + u64::from(*n) - 1);
                    for _ in 0..*n {
                        model.insert(reserved, numbered(reserved));
                        reserved += 1;
                    }
                }
                prop_assert_eq!(ring.write_index(), reserved);
                steps.next();
            }
            let mut producers: Vec<Slots<'_>> = vec![];
            while let Some(step) = steps.peek().cloned() {
                match step {
                    Step::Publish(_) => break,
                    Step::Reserve(n) => {
                        let fits = reserved + u64::from(n) - taken <= u64::from(packets);
                        let result = ring.reserve(u32::from(n), no_wait);
                        prop_assert_eq!(result.is_ok(), fits);
                        if let Ok(slots) = result {
                            prop_assert_eq!(slots.next_index(), reserved);
                            reserved += u64::from(n);
                            producers.push(slots);
                        }
                        prop_assert_eq!(ring.write_index(), reserved);
                    }
                    Step::Fill(who, n) if !producers.is_empty() => {
                        let who = usize::from(who) % producers.len();
                        let first = producers[who].next_index();
                        let n = u64::from(n).min(producers[who].remaining());
                        let batch: Vec<_> = (first..first + n).map(bytes).collect();
                        let last = producers[who].publish(&batch);
                        prop_assert_eq!(last, (n > 0).then(|| first + n - 1));
                        model.extend((first..first + n).map(|i| (i, numbered(i))));
                    }
                    Step::Abandon(who) if !producers.is_empty() => {
                        let slots = producers.swap_remove(usize::from(who) % producers.len());
                        let range = slots.next_index()..slots.next_index() + slots.remaining();
                        model.extend(range.map(|i| (i, Packet::BarrierAnd(BarrierAnd::default()))));
                    }
                    Step::Take(n) => for _ in 0..n {
                        let want = model.remove(&taken).map(|packet| (taken, packet));
                        prop_assert_eq!(memory.take(), want);
                        if want.is_none() { break; }
                        taken += 1;
                        prop_assert_eq!(ring.read_index(), taken);
                    },
                    _ => {}
                }
                steps.next();
            }
            for slots in producers {
                let range = slots.next_index()..slots.next_index() + slots.remaining();
                model.extend(range.map(|i| (i, Packet::BarrierAnd(BarrierAnd::default()))));
            }
        }
        while let Some(packet) = model.remove(&taken) {
            prop_assert_eq!(memory.take(), Some((taken, packet)));
            taken += 1;
        }
        prop_assert_eq!((memory.take(), taken), (None, reserved));
    }
}

/// Threads of producers against a thread of the processor, through the wrap of the slot index and of 2^32.
#[test]
fn producers_on_threads_lose_nothing() {
    const EACH: u64 = 4000;
    const PRODUCERS: u64 = 3;
    let start = (1u64 << 32) - 1000;
    let memory = Memory::new(16, start);
    let ring = memory.ring();
    let stop = AtomicBool::new(false);
    let wait = |_: Full| {
        std::thread::yield_now();
        !stop.load(Ordering::Relaxed)
    };
    let mut seen = vec![];
    std::thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let (ring, wait) = (&ring, &wait);
            scope.spawn(move || {
                let mut n = 0;
                while n < EACH {
                    let count = (1 + n % 4).min(EACH - n);
                    let mut slots = ring.reserve(count as u32, wait).unwrap();
                    let batch: Vec<_> = (n..n + count).map(|n| bytes(producer << 32 | n)).collect();
                    slots.publish(&batch).unwrap();
                    n += count;
                }
            });
        }
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(120);
        while seen.len() < (PRODUCERS * EACH) as usize {
            match memory.take() {
                Some((index, Packet::AgentDispatch(p))) => {
                    assert_eq!(index, start + seen.len() as u64);
                    assert_eq!(Packet::AgentDispatch(p), numbered(p.args[3]));
                    seen.push(p.args[3]);
                }
                Some(other) => panic!("{other:?}"),
                None if std::time::Instant::now() > deadline => {
                    stop.store(true, Ordering::Relaxed);
                    panic!("{} packets after two minutes", seen.len());
                }
                None => std::thread::yield_now(),
            }
        }
    });
    for producer in 0..PRODUCERS {
        let own: Vec<_> = seen.iter().filter(|n| **n >> 32 == producer).map(|n| n & 0xffff_ffff).collect();
        assert!(own.into_iter().eq(0..EACH), "producer {producer}'s packets are out of order");
    }
}

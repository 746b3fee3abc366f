//! Lint: what a client does that the kernel and the hardware let pass, and that goes wrong on another day.
//!
//! | rule | what |
//! |---|---|
//! | `body-after-header` | a packet's bytes changed after its header was stored: the header goes last |
//! | `out-of-order` | a packet was published while one before it was still INVALID |
//! | `no-fence` | a packet of the host has acquire or release scope NONE: what the other side wrote may not be seen |
//! | `reserved-bits` | a reserved field is not zero |
//! | `doorbell-first` | the doorbell was rung with an index that `write_dispatch_id` has not reached |
//! | `loose-indices` | the write index given to CREATE_QUEUE is not that of the `amd_queue_t` around the read index |
//! | `no-guard-page` | memory is mapped directly behind the ring, so that a store beyond its end hits something |
//!
//! A rule is told a few times a queue and then no more.

use super::Shared;
use super::bus::{Bus, BusFault};
use aql::{FenceScope, Header, Packet, PacketType};
use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;
use trace::Event;

/// Times that a rule is told.
const TIMES: u32 = 4;
/// How long a packet is watched after its header was seen.
const WATCH: Duration = Duration::from_micros(200);

/// The lint of one queue.
#[derive(Default)]
pub struct Lint {
    told: RefCell<HashMap<&'static str, u32>>,
}

impl Lint {
    fn tell(&self, shared: &Shared, rule: &'static str, text: String) {
        let mut told = self.told.borrow_mut();
        let times = told.entry(rule).or_default();
        *times += 1;
        if *times <= TIMES {
            let queue_id = shared.setup.queue_id;
            shared.setup.kernel.tracer.emit(|| Event::Lint { queue_id, rule, text });
        }
    }

    /// The queue was loaded.
    pub fn loaded(&self, shared: &Shared, queue: u64, ring: super::Ring) {
        let setup = &shared.setup;
        let expected = queue.wrapping_add(aql::queue::WRITE_DISPATCH_ID as u64);
        if setup.write_index != expected {
            let text = format!(
                "the write index is at {:#x}, and the amd_queue_t around the read index has write_dispatch_id at {expected:#x}",
                setup.write_index
            );
            self.tell(shared, "loose-indices", text);
        }
        let end = ring.va.wrapping_add(ring.bytes.into());
        if let Some(behind) = setup.space.lookup(end) {
            let text = format!("the ring ends at {end:#x}, where {behind:?} begins: leave a page between");
            self.tell(shared, "no-guard-page", text);
        }
    }

    /// The doorbell was rung beyond the write index.
    pub fn doorbell(&self, shared: &Shared, doorbell: u64, written: u64) {
        let text = format!(
            "the doorbell was rung with {doorbell} while write_dispatch_id was {written}: it must be greater first"
        );
        self.tell(shared, "doorbell-first", text);
    }

    /// The packet at `index` is INVALID, and those up to `limit` may be published.
    pub fn blocked(
        &self,
        shared: &Shared,
        bus: &Bus,
        ring: super::Ring,
        index: u64,
        limit: u64,
    ) -> Result<(), BusFault> {
        let slots = u64::from(ring.bytes) / aql::PACKET_BYTES as u64;
        for later in index + 1..limit.min(index.saturating_add(slots)) {
            let at = ring.va.wrapping_add(later % slots * aql::PACKET_BYTES as u64);
            if bus.load_u16(at, "AQL packet header")? & 0xff != PacketType::Invalid as u16 {
                self.tell(
                    shared,
                    "out-of-order",
                    format!("packet {later} was published, and packet {index} is still INVALID"),
                );
                break;
            }
        }
        Ok(())
    }

    /// A packet was read, right after its header was seen; it is read again a little later.
    pub fn packet(&self, shared: &Shared, bus: &Bus, index: u64, va: u64, bytes: &[u8; 64]) -> Result<(), BusFault> {
        std::thread::sleep(WATCH);
        let again = bus.packet(va)?;
        if let (Some(first), Some(last)) =
            ((0..64).find(|at| again[*at] != bytes[*at]), (0..64).rfind(|at| again[*at] != bytes[*at]))
        {
            let text = format!(
                "packet {index}: bytes {first} to {last} changed after its header was stored: the header goes last"
            );
            self.tell(shared, "body-after-header", text);
        }
        if let Err(error) = Packet::from_bytes_strict(bytes) {
            self.tell(shared, "reserved-bits", format!("packet {index}: {error}"));
        }
        let header = Header::from_bits(u16::from_le_bytes([bytes[0], bytes[1]]));
        let scopes = [("acquire", header.acquire()), ("release", header.release())];
        let none: Vec<&str> =
            scopes.iter().filter(|(_, scope)| *scope == FenceScope::None).map(|(name, _)| *name).collect();
        if header.packet_type() == PacketType::KernelDispatch as u8 && !none.is_empty() {
            let text =
                format!("packet {index}: {} scope NONE: what the other side wrote may not be seen", none.join(" and "));
            self.tell(shared, "no-fence", text);
        }
        Ok(())
    }
}

/// Looks at the worst moment that the rules allow, in an order given by a seed: at packets as soon as their header is
/// there, without waiting for the doorbell, and at doorbells so late that several stores become one.
pub struct Adversary(u64);

impl Adversary {
    pub fn new(seed: u64) -> Adversary {
        Adversary(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, bound: u64) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
    }

    /// Whether to look at the slots without a doorbell: the specification lets a packet be taken from the moment its header
    /// is there.
    pub fn is_early(&mut self) -> bool {
        self.below(2) == 0
    }

    /// Whether to leave a doorbell that changed for the next look.
    pub fn is_late(&mut self) -> bool {
        self.below(4) != 0
    }
}

//! Dispatches through a whole engine, on page tables made by hand.

mod compiled;
mod fuzz;
#[rustfmt::skip]
mod kernels;
mod launch;
// Registers that belong together are set in one tuple, a line for each group.
#[allow(clippy::unnecessary_operation)]
mod rules;
mod run;

use super::dispatch::{Dispatch, Done, Host, Scratch};
use super::engine::Engine;
use super::level::HostLevel;
use crate::isa::Target;
use crate::memory::{AddressSpace, Backing, Rights, Span};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use trace::Fault;

const CODE: u64 = 0x10_0000;
const KERNARG: u64 = 0x20_0000;
const DATA: u64 = 0x30_0000;
const SCRATCH: u64 = 0x40_0000;
const SCRATCH_BYTES: usize = 1 << 20;

/// Zeroed memory, as words that anybody may touch at any time.
struct Memory(Box<[AtomicU32]>);

impl Backing for Memory {}

/// A device's host side in which nothing happens.
#[derive(Default)]
struct Idle {
    cancelled: AtomicBool,
    interrupts: Mutex<Vec<u32>>,
}

impl Host for Idle {
    fn interrupt(&self, m0: u32) {
        self.interrupts.lock().unwrap().push(m0);
    }

    fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// Page tables with code, arguments, data and scratch.
struct Machine {
    target: Target,
    space: Arc<AddressSpace>,
    code: Arc<Memory>,
    kernarg: Arc<Memory>,
    data: Arc<Memory>,
}

/// A kernel descriptor's fields that tests vary.
#[derive(Clone, Copy)]
struct Descriptor {
    rsrc1: u32,
    rsrc2: u32,
    rsrc3: u32,
    properties: u16,
    preload: u16,
    entry: i64,
}

impl Descriptor {
    /// Kernarg pointer in s[0:1], work-group ids X, Y, Z in s2.. , work-item ids X, Y, Z, 16 VGPRs at least, wave32 where there
    /// is one. The code follows at +256.
    fn new(target: Target) -> Descriptor {
        let wave32 = !matches!(target, Target::Gfx900 | Target::Gfx906 | Target::Gfx90a | Target::Gfx942);
        Descriptor {
            rsrc1: 3 | 0xaf << 16,
            rsrc2: 2 << 1 | 7 << 7 | 2 << 11,
            rsrc3: if target.unified_agprs() { 3 } else { 0 },
            properties: 1 << 3 | (wave32 as u16) << 10,
            preload: 0,
            entry: 256,
        }
    }
}

impl Machine {
    fn new(target: Target) -> Machine {
        let space = Arc::new(AddressSpace::default());
        let machine = |va: u64, bytes: usize, execute: bool| {
            let memory = Arc::new(Memory((0..bytes / 4).map(|_| AtomicU32::new(0)).collect()));
            map(&space, va, &memory, Rights { write: !execute, execute });
            memory
        };
        let code = machine(CODE, 0x2000, true);
        let kernarg = machine(KERNARG, 0x1000, false);
        let data = machine(DATA, 0x10000, false);
        machine(SCRATCH, SCRATCH_BYTES, false);
        let machine = Machine { target, space, code, kernarg, data };
        machine.argument(0, DATA);
        machine
    }

    fn argument(&self, index: usize, value: u64) {
        self.kernarg.0[index * 2].store(value as u32, Ordering::Relaxed);
        self.kernarg.0[index * 2 + 1].store((value >> 32) as u32, Ordering::Relaxed);
    }

    /// Writes a descriptor at the start of the code, and the code behind it.
    fn load(&self, descriptor: Descriptor, code: &[u32]) {
        let Descriptor { rsrc1, rsrc2, rsrc3, properties, preload, entry } = descriptor;
        let fields = [
            (4, entry as u32),
            (5, (entry >> 32) as u32),
            (11, rsrc3),
            (12, rsrc1),
            (13, rsrc2),
            (14, properties as u32 | (preload as u32) << 16),
        ];
        for (word, value) in fields {
            self.code.0[word].store(value, Ordering::Relaxed);
        }
        for (word, value) in self.code.0[64..].iter().zip(code) {
            word.store(*value, Ordering::Relaxed);
        }
    }

    fn dispatch(&self, group: [u16; 3], grid: [u32; 3]) -> Dispatch {
        let mut packet = [0u8; 64];
        for (d, (group, grid)) in group.into_iter().zip(grid).enumerate() {
            packet[4 + 2 * d..][..2].copy_from_slice(&group.to_le_bytes());
            packet[12 + 4 * d..][..4].copy_from_slice(&grid.to_le_bytes());
        }
        packet[32..40].copy_from_slice(&CODE.to_le_bytes());
        packet[40..48].copy_from_slice(&KERNARG.to_le_bytes());
        Dispatch {
            target: self.target,
            gpu_id: 0x1234,
            queue_id: 5,
            space: self.space.clone(),
            packet_va: 0x7f00_0000_0040,
            packet,
            dispatch_id: 9,
            queue_va: 0x7f00_0000_1000,
            shared_base: 1 << 48,
            private_base: 2 << 48,
            scratch: Scratch::default(),
            compute_units: 8,
            shader_engines: 2,
            units: None,
            xccs: 1,
            arrays_per_engine: 1,
            waves_per_cu: 32,
            lds_per_cu: 65536,
        }
    }

    /// Runs on one thread.
    fn run(&self, dispatch: &Dispatch) -> Result<Done, Box<Fault>> {
        Engine::new(self.target, 1, HostLevel::detect()).run(dispatch, &Idle::default())
    }

    fn word(&self, index: usize) -> u32 {
        self.data.0[index].load(Ordering::Relaxed)
    }
}

fn map(space: &AddressSpace, va: u64, memory: &Arc<Memory>, rights: Rights) {
    let host = memory.0.as_ptr().cast_mut().cast::<u8>();
    let end = va + 4 * memory.0.len() as u64;
    assert!(space.map(Span { start: va, end, host, rights, backing: memory.clone() }));
}

fn set_private(dispatch: &mut Dispatch, bytes: u32) {
    dispatch.packet[24..28].copy_from_slice(&bytes.to_le_bytes());
}

fn set_group(dispatch: &mut Dispatch, bytes: u32) {
    dispatch.packet[28..32].copy_from_slice(&bytes.to_le_bytes());
}

//! Memory instructions on a wave with a small address space of its own.

mod atomic;
mod buffer;
mod ds;
mod flat;
mod scratch;
mod smem;

use super::super::inst::Inst;
use super::super::level::HostLevel;
use super::super::lower::{ConstantPool, Lowering, Unsupported};
use super::super::wave::{State, Wave};
use super::MemoryPort;
use crate::isa::{Decoded, Format, Mods, Operand, Target};
use crate::memory::{AddressSpace, Backing, Rights, Span};
use std::sync::Arc;
use trace::{Access, Fault, FaultKind};

const PAGE: u64 = 4096;
const SHARED: u32 = 0x1_0000;
const PRIVATE: u32 = 0x2_0000;
const ROWS: u32 = 32;

/// Page-aligned memory, freed with the last mapping.
struct Pages {
    _memory: Vec<Page>,
}

#[derive(Clone)]
#[repr(C, align(4096))]
struct Page([u8; PAGE as usize]);

impl Backing for Pages {}

/// A wave, its memory, and the means to run one instruction at a time.
struct Rig {
    target: Target,
    level: HostLevel,
    wave: Box<Wave>,
    constants: ConstantPool,
    space: Arc<AddressSpace>,
    /// Keeps LDS.
    _lds: Vec<u128>,
}

impl Rig {
    fn new(target: Target, lanes: u32) -> Rig {
        let space = Arc::new(AddressSpace::default());
        let mut lds = vec![0u128; 64];
        let port = MemoryPort::new(space.clone(), lds.as_mut_ptr().cast(), 1024, 0, 0, SHARED, PRIVATE);
        let wave = Wave::new(lanes, ROWS, port);
        Rig { target, level: HostLevel::Base, wave, constants: ConstantPool::default(), space, _lds: lds }
    }

    /// Every target's wave sizes that memory rules differ for, at every vector width this host has.
    fn all(targets: &[Target]) -> Vec<Rig> {
        let mut rigs = Vec::new();
        for target in targets {
            for lanes in if target.family() == crate::isa::Family::Gfx9 { &[64][..] } else { &[32, 64] } {
                for level in [HostLevel::Base, HostLevel::Avx2, HostLevel::Avx512] {
                    if level <= HostLevel::detect() {
                        let mut rig = Rig::new(*target, *lanes);
                        rig.level = level;
                        rigs.push(rig);
                    }
                }
            }
        }
        rigs
    }

    fn lanes(&self) -> u32 {
        self.wave.lanes
    }

    /// Maps `pages` pages at `va`, filled with a byte pattern that tells the address.
    fn map(&self, va: u64, pages: u64, write: bool) {
        let mut memory = vec![Page([0; PAGE as usize]); pages as usize];
        for (number, page) in memory.iter_mut().enumerate() {
            for (index, byte) in page.0.iter_mut().enumerate() {
                *byte = pattern(va + number as u64 * PAGE + index as u64);
            }
        }
        let host = memory.as_mut_ptr().cast();
        let span = Span {
            start: va,
            end: va + pages * PAGE,
            host,
            rights: Rights { write, execute: false },
            backing: Arc::new(Pages { _memory: memory }),
        };
        assert!(self.space.map(span), "test mappings overlap");
    }

    fn host(&self, va: u64, bytes: usize) -> *mut u8 {
        let span = self.space.lookup(va).expect("mapped");
        assert!(va + bytes as u64 <= span.end);
        span.host.wrapping_add((va - span.start) as usize)
    }

    fn bytes(&self, va: u64, count: usize) -> Vec<u8> {
        // SAFETY: `host` checks the range; no other thread writes.
        unsafe { std::slice::from_raw_parts(self.host(va, count), count) }.to_vec()
    }

    fn peek(&self, va: u64) -> u32 {
        u32::from_le_bytes(self.bytes(va, 4).try_into().expect("four bytes"))
    }

    fn set_bytes(&self, va: u64, bytes: &[u8]) {
        // SAFETY: `host` checks the range; no other thread reads.
        unsafe { std::slice::from_raw_parts_mut(self.host(va, bytes.len()), bytes.len()) }.copy_from_slice(bytes);
    }

    fn poke(&self, va: u64, value: u32) {
        self.set_bytes(va, &value.to_le_bytes());
    }

    fn lds(&self, offset: u32) -> u32 {
        assert!(offset + 4 <= self.wave.port.lds_size);
        // SAFETY: checked; no other thread writes.
        unsafe { self.wave.port.lds.add(offset as usize).cast::<u32>().read_unaligned() }
    }

    fn set_lds(&mut self, offset: u32, value: u32) {
        assert!(offset + 4 <= self.wave.port.lds_size);
        // SAFETY: checked; no other thread reads.
        unsafe { self.wave.port.lds.add(offset as usize).cast::<u32>().write_unaligned(value) }
    }

    /// Gives the wave scratch at `va`, `each` bytes a lane.
    fn scratch(&mut self, va: u64, each: u64) {
        let size = each * self.lanes() as u64;
        self.map(va, size.div_ceil(PAGE), true);
        self.wave.port.scratch_base = va;
        self.wave.port.scratch_size = size;
    }

    fn row(&mut self, row: u32, value: impl Fn(u32) -> u32) {
        for lane in 0..self.lanes() {
            self.wave.write_vgpr(row, lane, value(lane));
        }
    }

    /// A row pair.
    fn row64(&mut self, row: u32, value: impl Fn(u64) -> u64) {
        self.row(row, |lane| value(lane as u64) as u32);
        self.row(row + 1, |lane| (value(lane as u64) >> 32) as u32);
    }

    fn v(&self, row: u32, lane: u32) -> u32 {
        self.wave.read_vgpr(row, lane)
    }

    fn s64(&mut self, register: u8, value: u64) {
        self.wave.set_scalar64(register, value);
    }

    fn lower(&mut self, decoded: &Decoded) -> Result<Inst, Unsupported> {
        let mut lowering = Lowering {
            target: self.target,
            lanes: self.wave.lanes,
            level: self.level,
            vgprs: ROWS,
            agpr_base: ROWS,
            rows: ROWS,
            constants: &mut self.constants,
        };
        crate::cu::code::lower(decoded, &mut lowering)
    }

    fn run(&mut self, decoded: &Decoded) {
        let inst = self.lower(decoded).expect("the instruction is implemented");
        self.wave.constants = self.constants.as_ptr();
        // SAFETY: lowered for this wave.
        unsafe { inst.run.expect("a handler")(&mut self.wave, &inst) };
    }

    /// Runs an instruction that must not fault.
    fn ok(&mut self, decoded: &Decoded) {
        self.run(decoded);
        assert_eq!(self.wave.state, State::Ready, "{decoded:?}: {:?}", self.wave.fault);
    }

    /// Runs an instruction that must fault, and makes the wave ready again.
    fn fault(&mut self, decoded: &Decoded) -> Fault {
        self.run(decoded);
        assert_eq!(self.wave.state, State::Faulted, "{decoded:?}");
        self.wave.state = State::Ready;
        *self.wave.fault.take().expect("a fault")
    }
}

/// The byte that [`Rig::map`] puts at an address.
fn pattern(va: u64) -> u8 {
    (va ^ va >> 8 ^ va >> 13 ^ va >> 31).wrapping_mul(157) as u8
}

fn pattern16(va: u64) -> u16 {
    u16::from_le_bytes([pattern(va), pattern(va + 1)])
}

fn pattern32(va: u64) -> u32 {
    pattern16(va) as u32 | (pattern16(va + 2) as u32) << 16
}

fn v(reg: u16, dwords: u8) -> Operand {
    Operand::Vgpr { reg, dwords, hi: false }
}

fn s(reg: u8, dwords: u8) -> Operand {
    Operand::Sgpr { reg, dwords }
}

/// A decoded instruction: destination and sources in the slots of the format.
fn inst<const N: usize>(format: Format, mnemonic: &'static str, dst: Operand, sources: [Operand; N]) -> Decoded {
    let mut src = [Operand::None; 4];
    src[..N].copy_from_slice(&sources);
    let mods = Mods::default();
    let dst2 = Operand::None;
    Decoded { mnemonic, format, opcode: 0, len: 8, bytes: [0; 16], dst, dst2, src, mods, second: None }
}

fn with(mut decoded: Decoded, change: impl FnOnce(&mut Mods)) -> Decoded {
    change(&mut decoded.mods);
    decoded
}

fn kind(fault: &Fault) -> (FaultKind, u64, Option<Access>, u64) {
    (fault.kind.clone(), fault.va.expect("an address"), fault.access, fault.lanes.expect("lanes"))
}

/// Masks worth trying: all, one lane, a tail, alternating, holes, none of the first.
fn masks(lanes: u32) -> Vec<u64> {
    let full = if lanes == 64 { u64::MAX } else { 0xffff_ffff };
    [u64::MAX, 1, 1 << 17, 0x1ffff, 0x5555_5555_5555_5555, 0xf0ff_00f0_8001_fff0, 0xffff_fff8, 1 << 63 | 1 << 31]
        .map(|mask| mask & full)
        .into_iter()
        .filter(|mask| *mask != 0)
        .collect()
}

//! The rules of the instruction sets that emulators get wrong, on real encodings: each test decodes, lowers and runs a
//! listing as `llvm-mc-22` assembled it. `docs/isa-rules.md` lists the rules with their tests.

mod control;
mod float;
mod lanes;
mod masks;
mod matrix;
mod memory;
mod modifiers;
mod registers;
mod scalar;
mod table;

use super::super::code::{Code, CodeCache, Shape};
use super::super::interp::{self, Exit, Indexed};
use super::super::level::HostLevel;
use super::super::mem::MemoryPort;
use super::super::salu::INDEX_ENABLE;
use super::super::wave::{State, Wave, scalar as number};
use super::{Memory, map};
use crate::isa::{self, Family, Target};
use crate::memory::{AddressSpace, Rights};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use trace::Fault;

/// Where the listing lies.
const CODE: u64 = 0x10_0000;
/// A buffer of 64 KiB, each word holding its own index.
const DATA: u64 = 0x7_0030_0000;
/// A buffer of 4 KiB that may only be read.
const CONSTANT: u64 = 0x50_0000;
/// Scratch of the wave.
const SCRATCH: u64 = 0x40_0000;
const SCRATCH_BYTES: u64 = 0x1_0000;
/// LDS bytes of the work-group.
const LDS: u32 = 1024;
/// VGPRs, and as many AccVGPRs behind them.
const ROWS: u32 = 64;

/// A wave about to run a listing.
struct Gpu {
    target: Target,
    level: HostLevel,
    wave: Box<Wave>,
    code: Arc<Code>,
    end: u64,
    data: Arc<Memory>,
    scratch: Arc<Memory>,
    lds: Vec<u128>,
}

/// Calls `test` for each listing at each vector width of the host. A listing begins with `.target`, or `.target wave64`
/// where waves of 32 lanes are the rule; each line behind it has the words of an instruction and its text.
fn each(listings: &[&str], mut test: impl FnMut(&mut Gpu)) {
    for listing in listings {
        for level in [HostLevel::Base, HostLevel::Avx2, HostLevel::Avx512] {
            if level <= HostLevel::detect() {
                test(&mut Gpu::new(listing, level));
            }
        }
    }
}

/// The words of a listing line: hexadecimal, eight digits each, in front of the text.
fn words(line: &str) -> Vec<u32> {
    let word = |text: &&str| text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    line.split_whitespace().take_while(word).map(|text| u32::from_str_radix(text, 16).unwrap()).collect()
}

impl Gpu {
    fn new(listing: &str, level: HostLevel) -> Gpu {
        let mut lines = listing.lines().map(str::trim).filter(|line| !line.is_empty());
        let mut head = lines.next().unwrap().trim_start_matches('.').split_whitespace();
        let target = Target::from_name(head.next().unwrap()).unwrap();
        let lanes = if target.family() == Family::Gfx9 || head.next() == Some("wave64") { 64 } else { 32 };

        let space = Arc::new(AddressSpace::default());
        let memory = |va: u64, bytes: u64, rights: Rights| {
            let words = (0..bytes as u32 / 4).map(AtomicU32::new).collect();
            let memory = Arc::new(Memory(words));
            map(&space, va, &memory, rights);
            memory
        };
        let text = memory(CODE, 0x1000, Rights { write: false, execute: true });
        let data = memory(DATA, 0x1_0000, Rights { write: true, execute: false });
        memory(CONSTANT, 0x1000, Rights { write: false, execute: false });
        let scratch = memory(SCRATCH, SCRATCH_BYTES, Rights { write: true, execute: false });

        let mut at = 0;
        for line in lines {
            let words = words(line);
            assert!(!words.is_empty(), "{line}: no words");
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            if let Ok(decoded) = isa::decode(target, &bytes)
                // LLVM's text depends on the wave size and on true16, which it has off for GFX12; ours does not.
                && !(line.contains(".long")
                    || target.family() != Family::Gfx9 && lanes == 64
                    || target == Target::Gfx1201 && line.contains("16") && (line.contains(".h") || line.contains(".l")))
            {
                let printed = isa::disassemble(target, &decoded, 0);
                assert!(line.ends_with(&printed), "{target}: {line}\nis {printed}");
                assert_eq!(decoded.len as usize, bytes.len(), "{line}");
            }
            for word in words {
                text.0[at].store(word, Ordering::Relaxed);
                at += 1;
            }
        }
        let end = CODE + 4 * at as u64;
        let end_program =
            if matches!(target.family(), Family::Gfx9 | Family::Gfx10) { 0xbf81_0000 } else { 0xbfb0_0000 };
        text.0[at].store(end_program, Ordering::Relaxed);

        let mut lds = vec![0u128; LDS as usize / 16];
        let shape = Shape { target, lanes, vgprs: ROWS, agpr_base: ROWS, rows: 2 * ROWS, level };
        let port =
            MemoryPort::new(space.clone(), lds.as_mut_ptr().cast(), LDS, SCRATCH, SCRATCH_BYTES, 0x1_0000, 0x2_0000);
        let mut wave = Wave::new(lanes, 2 * ROWS, port);
        wave.mode = if target.family() == Family::Gfx12 { 0x1f0 } else { 0x3f0 };
        let apertures = [(number::SHARED_BASE, 0x1_0000), (number::PRIVATE_BASE, 0x2_0000)];
        for (register, high) in apertures {
            wave.set_scalar64(register, high << 32);
            wave.set_scalar64(register + 2, high << 32 | 0xffff_ffff);
        }
        // FLAT_SCRATCH as the kernel's prologue or the hardware sets it.
        wave.set_scalar64(if target.family() == Family::Gfx9 { 102 } else { number::FLAT_SCRATCH }, SCRATCH);
        let code = CodeCache::default().get(&space, shape, CODE).ok().unwrap();
        Gpu { target, level, wave, code, end, data, scratch, lds }
    }

    /// Runs the listing from its start until the program ends or the wave cannot go on.
    fn run(&mut self) -> State {
        self.run_from(0)
    }

    /// Runs from the instruction at this byte.
    fn run_from(&mut self, offset: u64) -> State {
        self.wave.pc = CODE + offset;
        self.wave.state = State::Ready;
        let mut indexed = Indexed::new();
        for _ in 0..1000 {
            let indexing = self.target.family() == Family::Gfx9 && self.wave.mode & INDEX_ENABLE != 0;
            // SAFETY: the code was made for this wave's shape.
            let (_, exit) = unsafe {
                match indexing {
                    false => interp::run(&mut self.wave, &self.code, 100_000),
                    true => interp::run_indexed(&mut self.wave, &self.code, 100_000, &mut indexed),
                }
            };
            match (exit, self.wave.state) {
                (Exit::State, State::Yielded | State::Indexed) => self.wave.state = State::Ready,
                (Exit::State, State::Ready) => {}
                (Exit::State, state) => return state,
                (Exit::Slice, _) => panic!("{}: the listing does not end", self.target),
                (Exit::Leave, _) => panic!("{}: the listing jumps to {:#x}", self.target, self.wave.pc),
            }
        }
        panic!("{}: the listing does not end", self.target)
    }

    /// Runs a listing that must come to its end.
    fn ok(&mut self) {
        let state = self.run();
        assert_eq!(state, State::Ended, "{} {:?}: {:?}", self.target, self.level, self.wave.fault);
        assert_eq!(self.wave.pc, self.end + 4, "{}: ended early", self.target);
    }

    /// Runs a listing that must fault.
    fn fault(&mut self) -> Fault {
        let state = self.run();
        assert_eq!(state, State::Faulted, "{}: no fault", self.target);
        *self.wave.fault.take().unwrap()
    }

    fn gfx9(&self) -> bool {
        self.target.family() == Family::Gfx9
    }

    fn lanes(&self) -> u32 {
        self.wave.lanes
    }

    fn exec(&mut self, mask: u64) {
        self.wave.set_exec(mask);
    }

    /// A lane mask as this wave has it.
    fn mask(&self, mask: u64) -> u64 {
        mask & self.wave.full_mask()
    }

    fn v(&self, register: u32, lane: u32) -> u32 {
        self.wave.read_vgpr(register, lane)
    }

    fn v64(&self, register: u32, lane: u32) -> u64 {
        self.v(register, lane) as u64 | (self.v(register + 1, lane) as u64) << 32
    }

    fn f(&self, register: u32, lane: u32) -> f32 {
        f32::from_bits(self.v(register, lane))
    }

    fn d(&self, register: u32, lane: u32) -> f64 {
        f64::from_bits(self.v64(register, lane))
    }

    fn row(&self, register: u32) -> Vec<u32> {
        (0..self.lanes()).map(|lane| self.v(register, lane)).collect()
    }

    /// Sets each lane of a register.
    fn set(&mut self, register: u32, value: impl Fn(u32) -> u32) {
        for lane in 0..self.lanes() {
            self.wave.write_vgpr(register, lane, value(lane));
        }
    }

    fn set64(&mut self, register: u32, value: impl Fn(u32) -> u64) {
        self.set(register, |lane| value(lane) as u32);
        self.set(register + 1, |lane| (value(lane) >> 32) as u32);
    }

    fn fill(&mut self, register: u32, value: u32) {
        self.set(register, |_| value);
    }

    fn fill_f(&mut self, register: u32, value: f32) {
        self.fill(register, value.to_bits());
    }

    fn fill64(&mut self, register: u32, value: u64) {
        self.set64(register, |_| value);
    }

    fn s(&self, register: u8) -> u32 {
        self.wave.scalar[register as usize]
    }

    fn s64(&self, register: u8) -> u64 {
        self.wave.scalar64(register)
    }

    fn set_s(&mut self, register: u8, value: u32) {
        self.wave.scalar[register as usize] = value;
    }

    fn set_s64(&mut self, register: u8, value: u64) {
        self.wave.set_scalar64(register, value);
    }

    fn vcc(&self) -> u64 {
        self.mask(self.s64(number::VCC))
    }

    fn word(&self, index: usize) -> u32 {
        self.data.0[index].load(Ordering::Relaxed)
    }

    fn set_word(&self, index: usize, value: u32) {
        self.data.0[index].store(value, Ordering::Relaxed);
    }

    fn lds(&self, word: usize) -> u32 {
        (self.lds[word / 4] >> (32 * (word % 4))) as u32
    }

    fn set_lds(&mut self, word: usize, value: u32) {
        let cell = &mut self.lds[word / 4];
        let shift = 32 * (word % 4);
        *cell = *cell & !(0xffff_ffff << shift) | (value as u128) << shift;
        // The wave reaches LDS through a pointer of its own.
        self.wave.port.lds = self.lds.as_mut_ptr().cast();
    }
}

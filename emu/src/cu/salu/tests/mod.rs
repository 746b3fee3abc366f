//! One test a rule; instructions are put together by hand.

use super::lower;
use crate::cu::level::HostLevel;
use crate::cu::lower::{ConstantPool, Lowering, Unsupported};
use crate::cu::mem::MemoryPort;
use crate::cu::wave::{Request, State, Wave, scalar};
use crate::isa::{Decoded, Format, Mods, Operand, Special, Target};
use crate::memory::AddressSpace;
use std::sync::Arc;
use trace::FaultKind;

mod alu;
mod branch;
mod control;
mod exec;
mod float;

const NONE: Operand = Operand::None;

fn s(reg: u8) -> Operand {
    Operand::Sgpr { reg, dwords: 1 }
}

fn pair(reg: u8) -> Operand {
    Operand::Sgpr { reg, dwords: 2 }
}

fn special(reg: Special, dwords: u8) -> Operand {
    Operand::Special { reg, dwords }
}

fn int(value: i8) -> Operand {
    Operand::Int(value)
}

struct Bench {
    wave: Box<Wave>,
    constants: ConstantPool,
    target: Target,
}

impl Bench {
    fn new(target: Target, lanes: u32) -> Bench {
        let port = MemoryPort::new(Arc::new(AddressSpace::default()), std::ptr::null_mut(), 0, 0, 0, 0, 0);
        let mut wave = Wave::new(lanes, 4, port);
        wave.pc = 0x1000;
        Bench { wave, constants: ConstantPool::default(), target }
    }

    fn try_lower(&mut self, decoded: &Decoded) -> Result<crate::cu::inst::Inst, Unsupported> {
        let mut lowering = Lowering {
            target: self.target,
            lanes: self.wave.lanes,
            level: HostLevel::Base,
            vgprs: 4,
            agpr_base: 4,
            rows: 4,
            constants: &mut self.constants,
        };
        crate::cu::code::lower(decoded, &mut lowering)
    }

    /// Executes an instruction of four bytes.
    fn step(&mut self, mnemonic: &'static str, format: Format, dst: Operand, sources: &[Operand]) {
        let decoded = make(mnemonic, format, dst, sources);
        let inst = self.try_lower(&decoded).unwrap_or_else(|error| panic!("{mnemonic}: {error}"));
        self.wave.constants = self.constants.as_ptr();
        self.wave.pc += 4;
        // SAFETY: lowered for this wave.
        unsafe { inst.run.unwrap()(&mut self.wave, &inst) };
    }

    fn set(&mut self, register: u8, value: u32) {
        self.wave.scalar[register as usize] = value;
    }

    fn set64(&mut self, register: u8, value: u64) {
        self.wave.set_scalar64(register, value);
    }

    fn get(&self, register: u8) -> u32 {
        self.wave.scalar[register as usize]
    }

    fn get64(&self, register: u8) -> u64 {
        self.wave.scalar64(register)
    }

    /// D and SCC of a 32-bit SOP2, with SCC set to `scc` before.
    fn two(&mut self, mnemonic: &'static str, a: u32, b: u32, scc: bool) -> (u32, bool) {
        self.set(2, a);
        self.set(3, b);
        self.wave.scc = scc;
        self.step(mnemonic, Format::Sop2, s(4), &[s(2), s(3)]);
        (self.get(4), self.wave.scc)
    }

    /// D and SCC of a 32-bit SOP1.
    fn one(&mut self, mnemonic: &'static str, a: u32) -> (u32, bool) {
        self.set(2, a);
        self.step(mnemonic, Format::Sop1, s(4), &[s(2)]);
        (self.get(4), self.wave.scc)
    }

    /// SCC of a 32-bit SOPC.
    fn compare(&mut self, mnemonic: &'static str, a: u32, b: u32) -> bool {
        self.set(2, a);
        self.set(3, b);
        self.wave.scc = !self.wave.scc;
        self.step(mnemonic, Format::Sopc, NONE, &[s(2), s(3)]);
        self.wave.scc
    }
}

fn make(mnemonic: &'static str, format: Format, dst: Operand, sources: &[Operand]) -> Decoded {
    let mut src = [NONE; 4];
    src[..sources.len()].copy_from_slice(sources);
    Decoded {
        mnemonic,
        format,
        opcode: 0,
        len: 4,
        bytes: [0; 16],
        dst,
        dst2: NONE,
        src,
        mods: Mods::default(),
        second: None,
    }
}

fn gfx9() -> Bench {
    Bench::new(Target::Gfx90a, 64)
}

//! Vector instructions on a wave of their own.

mod bench;
mod division;
mod extremes;
mod float;
mod integer;
mod levels;
mod modifiers;
mod oracle;
mod rules;
mod softfloat;

use crate::cu::level::HostLevel;
use crate::cu::lower::{ConstantPool, Lowering, Unsupported};
use crate::cu::mem::MemoryPort;
use crate::cu::valu::lane::Kind;
use crate::cu::valu::table::Entry;
use crate::cu::wave::{Wave, scalar};
use crate::isa::{Decoded, Format, Mods, Operand, Special, Target};
use crate::memory::AddressSpace;
pub use crate::testing::Random;
use std::sync::Arc;

/// VGPRs of a test wave.
const ROWS: u32 = 128;

/// MODE as clang sets it: nearest even, denormals kept, DX10_CLAMP and IEEE on.
const MODE: u32 = 0x3f0;

/// The vector widths this host has.
pub fn levels() -> Vec<HostLevel> {
    let all = [HostLevel::Base, HostLevel::Avx2, HostLevel::Avx512];
    all.into_iter().filter(|level| *level <= HostLevel::detect()).collect()
}

/// A wave and the means to run one instruction at a time.
pub struct Rig {
    target: Target,
    level: HostLevel,
    pub wave: Box<Wave>,
    constants: ConstantPool,
}

impl Rig {
    pub fn new(target: Target, lanes: u32, level: HostLevel) -> Rig {
        let port = MemoryPort::new(Arc::new(AddressSpace::default()), std::ptr::null_mut(), 0, 0, 0, 0, 0);
        let mut wave = Wave::new(lanes, ROWS, port);
        wave.mode = MODE;
        Rig { target, level, wave, constants: ConstantPool::default() }
    }

    /// Both wave sizes on every width.
    pub fn all() -> Vec<Rig> {
        let sizes = [(Target::Gfx1100, 32), (Target::Gfx90a, 64)];
        sizes
            .into_iter()
            .flat_map(|(target, lanes)| levels().into_iter().map(move |level| Rig::new(target, lanes, level)))
            .collect()
    }

    pub fn lanes(&self) -> u32 {
        self.wave.lanes
    }

    pub fn get(&self, register: u32, lane: u32) -> u32 {
        self.wave.read_vgpr(register, lane)
    }

    pub fn set(&mut self, register: u32, lane: u32, value: u32) {
        self.wave.write_vgpr(register, lane, value);
    }

    pub fn get64(&self, register: u32, lane: u32) -> u64 {
        self.get(register, lane) as u64 | (self.get(register + 1, lane) as u64) << 32
    }

    pub fn set64(&mut self, register: u32, lane: u32, value: u64) {
        self.set(register, lane, value as u32);
        self.set(register + 1, lane, (value >> 32) as u32);
    }

    /// Every lane of a register the same.
    pub fn fill(&mut self, register: u32, value: u32) {
        for lane in 0..self.lanes() {
            self.set(register, lane, value);
        }
    }

    pub fn row(&self, register: u32) -> Vec<u32> {
        (0..self.lanes()).map(|lane| self.get(register, lane)).collect()
    }

    pub fn lower(&mut self, decoded: &Decoded) -> Result<crate::cu::inst::Inst, Unsupported> {
        let mut lowering = Lowering {
            target: self.target,
            lanes: self.wave.lanes,
            level: self.level,
            vgprs: ROWS,
            agpr_base: ROWS,
            rows: ROWS,
            constants: &mut self.constants,
        };
        let inst = crate::cu::valu::lower(decoded, &mut lowering);
        self.wave.constants = self.constants.as_ptr();
        inst
    }

    pub fn run(&mut self, decoded: &Decoded) {
        let inst = self.lower(decoded).unwrap_or_else(|error| panic!("{}: {error}", decoded.mnemonic));
        let run = inst.run.unwrap();
        // SAFETY: lowered for this wave just now.
        unsafe { run(&mut self.wave, &inst) };
    }

    pub fn vcc(&self) -> u64 {
        let mask = self.wave.scalar64(scalar::VCC);
        if self.lanes() == 64 { mask } else { mask as u32 as u64 }
    }

    pub fn set_vcc(&mut self, mask: u64) {
        self.wave.set_scalar64(scalar::VCC, mask);
    }
}

const VCC: Operand = Operand::Special { reg: Special::VccLo, dwords: 2 };

fn v(reg: u16) -> Operand {
    Operand::Vgpr { reg, dwords: 1, hi: false }
}

fn v2(reg: u16) -> Operand {
    Operand::Vgpr { reg, dwords: 2, hi: false }
}

fn vh(reg: u16) -> Operand {
    Operand::Vgpr { reg, dwords: 1, hi: true }
}

fn s(reg: u8) -> Operand {
    Operand::Sgpr { reg, dwords: 1 }
}

fn s2(reg: u8) -> Operand {
    Operand::Sgpr { reg, dwords: 2 }
}

/// An instruction in the VOP3 encoding.
pub fn op(mnemonic: &'static str, dst: Operand, sources: &[Operand]) -> Decoded {
    let mut src = [Operand::None; 4];
    src[..sources.len()].copy_from_slice(sources);
    Decoded {
        mnemonic,
        format: Format::Vop3,
        opcode: 0,
        len: 8,
        bytes: [0; 16],
        dst,
        dst2: Operand::None,
        src,
        mods: Mods::default(),
        second: None,
    }
}

impl Random {
    fn choose<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.bits() as usize % from.len()]
    }

    /// A value of a kind: half the time one of its edges, else any bits or a number near 1.
    fn value(&mut self, kind: Kind) -> u64 {
        let any = self.bits();
        let edge = any >> 62 < 2;
        let near = any >> 61 & 1 != 0;
        match kind {
            Kind::F32 if edge => self.choose(&F32_EDGES) as u64,
            Kind::F32 if near => ((any as u32 & 0x83ff_ffff) + 0x3e00_0000) as u64,
            Kind::F64 if edge => self.choose(&F64_EDGES),
            Kind::F64 if near => (any & 0x807f_ffff_ffff_ffff) + 0x3fc0_0000_0000_0000,
            Kind::F16 | Kind::PF16 if edge => self.choose(&F16_EDGES) as u64 | (self.choose(&F16_EDGES) as u64) << 16,
            Kind::B64 | Kind::I64 if edge => self.choose(&B64_EDGES),
            _ if edge => self.choose(&B32_EDGES) as u64,
            Kind::B64 | Kind::I64 | Kind::F64 => any,
            _ => any & 0xffff_ffff,
        }
    }
}

const B32_EDGES: [u32; 20] = [
    0,
    1,
    2,
    3,
    31,
    32,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0x8000,
    0xffff,
    0x1_0000,
    0x7f_ffff,
    0x80_0000,
    0xff_ffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_fffe,
    0xffff_ffff,
];

const B64_EDGES: [u64; 10] = [
    0,
    1,
    63,
    64,
    0x7fff_ffff,
    0xffff_ffff,
    0x1_0000_0000,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    0xffff_ffff_ffff_ffff,
];

/// Zeros, denormals, limits of formats, ones, halves, infinities, NaNs of both sorts and signs.
const F32_EDGES: [u32; 36] = [
    0x0000_0000,
    0x8000_0000,
    0x0000_0001,
    0x8000_0001,
    0x007f_ffff,
    0x807f_ffff,
    0x0080_0000,
    0x8080_0000,
    0x0080_0001,
    0x3f80_0000,
    0xbf80_0000,
    0x3f7f_ffff,
    0x3f80_0001,
    0x3f00_0000,
    0xbf00_0000,
    0x3fc0_0000,
    0x4020_0000,
    0xc020_0000,
    0x4f00_0000,
    0xcf00_0000,
    0x4f80_0000,
    0x4eff_ffff,
    0x3880_0000,
    0x3300_0000,
    0x3380_0000,
    0x477f_e000,
    0x477f_f000,
    0x7f7f_ffff,
    0xff7f_ffff,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0xffc1_2345,
    0x7f80_0001,
    0xffa0_0000,
    0x7e80_0000,
];

const F64_EDGES: [u64; 26] = [
    0x0000_0000_0000_0000,
    0x8000_0000_0000_0000,
    0x0000_0000_0000_0001,
    0x800f_ffff_ffff_ffff,
    0x0010_0000_0000_0000,
    0x8010_0000_0000_0000,
    0x3ff0_0000_0000_0000,
    0xbff0_0000_0000_0000,
    0x3fef_ffff_ffff_ffff,
    0x3ff0_0000_0000_0001,
    0x3fe0_0000_0000_0000,
    0xbfe0_0000_0000_0000,
    0x3ff8_0000_0000_0000,
    0x4004_0000_0000_0000,
    0x41df_ffff_ffc0_0000,
    0xc1e0_0000_0000_0000,
    0x41ef_ffff_ffe0_0000,
    0x47ef_ffff_e000_0000,
    0x36a0_0000_0000_0000,
    0x7fef_ffff_ffff_ffff,
    0x7ff0_0000_0000_0000,
    0xfff0_0000_0000_0000,
    0x7ff8_0000_0000_0000,
    0xfff8_1234_5678_9abc,
    0x7ff0_0000_0000_0001,
    0xfff4_0000_0000_0000,
];

const F16_EDGES: [u16; 22] = [
    0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x83ff, 0x0400, 0x8400, 0x3c00, 0xbc00, 0x3bff, 0x3c01, 0x3800, 0xb800,
    0x3e00, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0xfe12, 0x7c01,
];

/// EXEC patterns: all, none, one, some.
const EXECS: [u64; 5] = [u64::MAX, 0, 1 << 17, 0x0123_4567_89ab_cdef, 0x8000_0000_8000_0000];

/// An instruction of an entry with VGPR operands at 16, 20 and 24, its result at `dst` and its mask in VCC.
fn plain(entry: &Entry, dst: u16) -> Decoded {
    let name = entry.names[0];
    let operand = |kind: Kind, reg: u16| match kind {
        Kind::None => Operand::None,
        Kind::Mask => s2(20),
        _ => Operand::Vgpr { reg, dwords: kind.dwords() as u8, hi: false },
    };
    let sources = [operand(entry.src[0], 16), operand(entry.src[1], 20), operand(entry.src[2], 24)];
    let mut decoded = op(name, VCC, &sources);
    if entry.dst != Kind::None {
        decoded.dst = operand(entry.dst, dst);
        decoded.dst2 = if entry.mask { VCC } else { Operand::None };
    }
    if name.starts_with("v_pk_") && name != "v_pk_fmac_f16"
        || name.contains("_mix")
        || name.starts_with("v_dot") && !name.ends_with("f16_f16") && !name.ends_with("bf16_bf16")
    {
        decoded.format = Format::Vop3p;
        decoded.mods.op_sel_hi = 7;
    }
    decoded
}

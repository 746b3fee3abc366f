//! `s_getreg` and `s_setreg`.
//!
//! Register numbers are LLVM's (`llvm-mc` prints `hwreg(HW_REG_…)`): those of GFX12 differ from the ones before.

use super::control::{INDEX_ENABLE, VSKIP, vcc};
use super::{Word, destination, source};
use crate::cu::fidelity::{CLOCK, Fidelity};
use crate::cu::inst::Inst;
use crate::cu::lower::{Lowering, Unsupported, Width};
use crate::cu::wave::{State, Wave, scalar};
use crate::isa::{Decoded, Family, Operand, Target};

/// A hardware register that a wave can see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Register {
    Mode,
    Status,
    StatePriv,
    HwId,
    HwId1,
    HwId2,
    GprAlloc,
    LdsAlloc,
    ShMemBases,
    FlatScratchLo,
    FlatScratchHi,
    /// 20 bits of the shader clock.
    ShaderCycles,
    ShaderCyclesLo,
    ShaderCyclesHi,
    XccId,
    /// Exceptions that nobody raises, trap handlers that nobody installed, counters that nobody runs.
    Zero,
}

impl Register {
    /// How close reading it comes to hardware.
    fn fidelity(self) -> Fidelity {
        match self {
            Register::HwId | Register::HwId1 | Register::HwId2 | Register::XccId => {
                Fidelity::Approximated("the wave's place on the device is made up from its slot")
            }
            Register::ShaderCycles | Register::ShaderCyclesLo | Register::ShaderCyclesHi => CLOCK,
            Register::Zero => Fidelity::Approximated("reads 0: nothing is emulated that would set it"),
            _ => Fidelity::Exact,
        }
    }
}

fn register(target: Target, id: u32) -> Option<Register> {
    let family = target.family();
    Some(match (family, id) {
        (_, 1) => Register::Mode,
        (_, 2) => Register::Status,
        (Family::Gfx12, 3) => return None,
        (_, 3) => Register::Zero,
        (Family::Gfx9, 4) => Register::HwId,
        (Family::Gfx12, 4) => Register::StatePriv,
        (_, 5) => Register::GprAlloc,
        (_, 6) => Register::LdsAlloc,
        (_, 7) => Register::Zero,
        (Family::Gfx9 | Family::Gfx10 | Family::Gfx11, 15) => Register::ShMemBases,
        (Family::Gfx9 | Family::Gfx10, 16..=19) | (Family::Gfx11, 18 | 19) => Register::Zero,
        (Family::Gfx12, 15 | 17..=19 | 26 | 31) => Register::Zero,
        (Family::Gfx9, 20) if target == Target::Gfx942 => Register::XccId,
        (Family::Gfx10 | Family::Gfx11 | Family::Gfx12, 20) => Register::FlatScratchLo,
        (Family::Gfx10 | Family::Gfx11 | Family::Gfx12, 21) => Register::FlatScratchHi,
        (Family::Gfx10 | Family::Gfx11 | Family::Gfx12, 23) => Register::HwId1,
        (Family::Gfx10 | Family::Gfx11 | Family::Gfx12, 24) => Register::HwId2,
        (Family::Gfx10 | Family::Gfx11, 29) => Register::ShaderCycles,
        (Family::Gfx12, 29) => Register::ShaderCyclesLo,
        (Family::Gfx12, 30) => Register::ShaderCyclesHi,
        _ => return None,
    })
}

/// What a handler needs: the register, and the field in it.
struct Access {
    register: Register,
    family: Family,
    offset: u32,
    bits: u32,
}

impl Access {
    /// `simm16`: id 5:0, offset 10:6, size - 1 15:11.
    fn new(target: Target, operand: Operand) -> Result<Access, Unsupported> {
        let Operand::Imm(immediate) = operand else {
            return Err(Unsupported::Operand("a hardware register is needed here"));
        };
        let field = immediate as u32;
        let Some(register) = register(target, field & 0x3f) else {
            return Err(Unsupported::Operand("this hardware register is not emulated"));
        };
        let bits = (field >> 11 & 0x1f) + 1;
        Ok(Access { register, family: target.family(), offset: field >> 6 & 0x1f, bits })
    }

    fn mask(&self) -> u32 {
        u32::MAX >> (32 - self.bits)
    }
}

/// Lowers an access to hardware registers; None for other operations.
pub fn lower(decoded: &Decoded, lowering: &mut Lowering) -> Result<Option<Inst>, Unsupported> {
    let target = lowering.target;
    let (access, mut inst) = match decoded.mnemonic {
        "s_getreg_b32" => {
            let access = Access::new(target, decoded.src[0])?;
            let mut inst = Inst::new(get, decoded, access.register.fidelity());
            inst.dst = destination(decoded.dst, 1, lowering)?;
            (access, inst)
        }
        "s_setreg_b32" => {
            // The register field names the source.
            let operand = if decoded.dst == Operand::None { decoded.src[1] } else { decoded.dst };
            let access = Access::new(target, decoded.src[0])?;
            let (src, constant) = source(operand, Width::B32, lowering)?;
            let mut inst = Inst::new(if constant { set::<true> } else { set::<false> }, decoded, Fidelity::Exact);
            inst.src[0] = src;
            (access, inst)
        }
        "s_setreg_imm32_b32" => {
            let access = Access::new(target, decoded.src[0])?;
            let (src, constant) = source(decoded.src[1], Width::B32, lowering)?;
            let mut inst = Inst::new(if constant { set::<true> } else { set::<false> }, decoded, Fidelity::Exact);
            inst.src[0] = src;
            (access, inst)
        }
        _ => return Ok(None),
    };
    if let Some(extra) = &mut inst.extra {
        extra.data = Some(Box::new(access));
    }
    Ok(Some(inst))
}

fn access(inst: &Inst) -> Option<&Access> {
    inst.extra.as_ref()?.data.as_ref()?.downcast_ref()
}

unsafe fn get(wave: &mut Wave, inst: &Inst) {
    let Some(access) = access(inst) else { return };
    let value = read(wave, access.family, access.register) >> access.offset & access.mask();
    // SAFETY: lowered as one register.
    unsafe { u32::put(wave, inst.dst, value) };
    if (scalar::EXEC as u32..scalar::EXEC as u32 + 2).contains(&inst.dst) {
        wave.set_exec(wave.scalar64(scalar::EXEC));
    }
}

unsafe fn set<const C: bool>(wave: &mut Wave, inst: &Inst) {
    let Some(access) = access(inst) else { return };
    // SAFETY: lowered for this instance.
    let value = unsafe { u32::get::<C>(wave, inst.src[0]) };
    let mask = access.mask() << access.offset;
    let old = read(wave, access.family, access.register);
    write(wave, access.family, access.register, old & !mask | value << access.offset & mask);
}

fn read(wave: &Wave, family: Family, register: Register) -> u32 {
    let who = &wave.identity;
    let cycles = Wave::cycles;
    match register {
        // Bit 8 is an internal constant on GFX12.
        Register::Mode if family == Family::Gfx12 => wave.mode & !(1 << 8),
        Register::Mode => wave.mode,
        Register::Status => {
            let scc = (wave.scc && family != Family::Gfx12) as u32;
            let execz = (wave.exec == 0) as u32;
            let vccz = (vcc(wave) == 0) as u32;
            let in_group = (who.waves > 1) as u32;
            scc | execz << 9 | vccz << 10 | in_group << 11 | 1 << 16
        }
        Register::StatePriv => (wave.scc as u32) << 9,
        Register::HwId => {
            let place = Place::of(wave, family, 4);
            place.wave & 0xf
                | place.simd << 4
                | (place.unit & 0xf) << 8
                | (place.array & 1) << 12
                | (place.engine & 7) << 13
                | (who.slot & 0xf) << 16
                | (who.queue_id & 7) << 24
        }
        Register::HwId1 => {
            let place = Place::of(wave, family, 4);
            place.wave & 0x1f
                | place.simd << 8
                | (place.unit & 0xf) << 10
                | (place.array & 1) << 16
                | (place.engine & 7) << 18
        }
        Register::XccId => Place::of(wave, family, 4).xcc & 0xf,
        Register::HwId2 => who.queue_id & 0xf | (who.slot & 0x1f) << 16,
        Register::GprAlloc => {
            let granule = if wave.lanes == 32 { 8 } else { 4 };
            (who.vgprs.div_ceil(granule).saturating_sub(1) & 0xff) << 8
        }
        // LDS_SIZE 20:12, in units of 512 bytes.
        Register::LdsAlloc => ((wave.port.lds_size / 512) & 0x1ff) << 12,
        Register::ShMemBases => (wave.port.private_aperture >> 16) | (wave.port.shared_aperture & 0xffff_0000),
        Register::FlatScratchLo => wave.scalar[scalar::FLAT_SCRATCH as usize],
        Register::FlatScratchHi => wave.scalar[scalar::FLAT_SCRATCH as usize + 1],
        Register::ShaderCycles => cycles() as u32 & 0xf_ffff,
        Register::ShaderCyclesLo => cycles() as u32,
        Register::ShaderCyclesHi => (cycles() >> 32) as u32,
        Register::Zero => 0,
    }
}

fn write(wave: &mut Wave, family: Family, register: Register, value: u32) {
    match register {
        Register::Mode => {
            wave.mode = if family == Family::Gfx12 { value | 1 << 8 } else { value };
            if family == Family::Gfx9 && value & (INDEX_ENABLE | VSKIP) != 0 {
                wave.state = State::Indexed;
            }
        }
        Register::FlatScratchLo => wave.scalar[scalar::FLAT_SCRATCH as usize] = value,
        Register::FlatScratchHi => wave.scalar[scalar::FLAT_SCRATCH as usize + 1] = value,
        // What is left is for the trap handler to write.
        _ => {}
    }
}

/// Where on the device a resident wave is: `unit` as the bits of CU masks go (see the kernel's `queue::mask`).
struct Place {
    xcc: u32,
    engine: u32,
    array: u32,
    unit: u32,
    simd: u32,
    wave: u32,
}

impl Place {
    fn of(wave: &Wave, family: Family, simds: u32) -> Place {
        let who = &wave.identity;
        let (xccs, arrays) = (who.xccs.max(1), who.arrays_per_engine.max(1));
        let engines = (who.shader_engines / xccs).max(1);
        let (xcc, bit) = (who.unit % xccs, who.unit / xccs);
        // Work-group processors have two compute units side by side.
        let pair = if family == Family::Gfx9 { 1 } else { 2 };
        let (nth, half) = (bit / pair, bit % pair);
        let within = who.slot % who.waves_per_cu.max(1);
        Place {
            xcc,
            engine: nth % engines,
            array: nth / engines % arrays,
            unit: nth / engines / arrays * pair + half,
            simd: within % simds,
            wave: within / simds,
        }
    }
}

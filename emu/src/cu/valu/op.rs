//! Operations and the handlers made of them.
//!
//! An operation says what one lane does. `body` runs it over the lanes of a wave: sources are found, results of a
//! chunk of lanes computed before any is written, EXEC applied. It is compiled for each vector width of the host, where the compiler turns the inner loop into vector instructions.

use super::general;
use super::lane::{Buffer, CHUNK, Dest, Kind, Source, lanes, write_mask};
use crate::cu::fidelity::Fidelity;
use crate::cu::inst::{Handler, Inst};
#[cfg(target_arch = "x86_64")]
use crate::cu::level::{Avx2, Avx512};
use crate::cu::level::{Base, HostLevel, Level};
use crate::cu::wave::{Wave, scalar};

/// What an operation may know besides its operands.
#[derive(Clone, Copy)]
pub struct Cx {
    /// The lane.
    pub lane: u32,
    /// VCC.
    pub vcc: u64,
    /// MODE.IEEE.
    pub ieee: bool,
    /// MODE.FP16_OVFL.
    pub overflow: bool,
    /// Immediate of the instruction.
    pub imm: i32,
}

impl Cx {
    /// VCC bit of the lane.
    #[inline(always)]
    pub fn vcc(self) -> bool {
        (self.vcc >> (self.lane & 63)) & 1 != 0
    }
}

/// A vector operation without lane crossing.
pub trait Op: 'static {
    /// Source 0.
    type A: Source;
    /// Source 1.
    type B: Source;
    /// Source 2.
    type C: Source;
    /// Result.
    type D: Dest;
    /// How close it comes to hardware.
    const FIDELITY: Fidelity;
    /// MODE bits it depends on; it computes as for round to nearest even with denormals kept, and other modes take the
    /// general path.
    const MODE: u32;
    /// Whether [`Op::is_special`] and [`Op::special`] are to be used.
    const SPECIAL: bool = false;

    /// What one lane does.
    fn lane(cx: Cx, a: Self::A, b: Self::B, c: Self::C) -> Self::D;

    /// Whether the loop over lanes is hidden from the compiler's unrolling, see [`lanes`].
    const HIDDEN: bool = false;

    /// Computes a chunk with instructions of the level; false where there are none, and [`Op::lane`] does it.
    ///
    /// # Safety
    /// The host has what the level needs.
    #[inline(always)]
    unsafe fn chunk<V: Level>(
        cx: Cx,
        a: <Self::A as Source>::Chunk<'_>,
        b: <Self::B as Source>::Chunk<'_>,
        c: <Self::C as Source>::Chunk<'_>,
        out: &mut Buffer,
    ) -> bool {
        let _ = (cx, a, b, c, out);
        false
    }

    /// Whether a chunk may have results that need [`Op::special`].
    ///
    /// # Safety
    /// All results were stored; the host has what the level needs.
    #[inline(always)]
    unsafe fn any_special<V: Level>(buffer: &Buffer) -> bool {
        // SAFETY: the caller vouches for it.
        Self::SPECIAL && unsafe { Self::D::any_nan::<V>(buffer) }
    }

    /// Whether a result needs [`Op::special`]: a NaN, whose bits depend on the host, or another rare case.
    #[inline(always)]
    fn is_special(_: Self::D) -> bool {
        false
    }

    /// The result of a lane where [`Op::lane`] gave the special result `raw`.
    #[inline(always)]
    fn special(cx: Cx, a: Self::A, b: Self::B, c: Self::C, raw: Self::D) -> Self::D {
        let _ = (cx, a, b, c);
        raw
    }
}

/// Default state of the MODE bits in `mask`: round to nearest even, denormals kept.
const DEFAULT_MODE: u32 = 0xf0;

/// Runs an operation over a wave.
///
/// # Safety
/// As for [`Handler`]; the host has the level's instructions.
#[inline(always)]
unsafe fn body<O: Op, V: Level>(wave: &mut Wave, inst: &Inst) {
    if O::MODE != 0 && wave.mode & O::MODE != DEFAULT_MODE & O::MODE {
        // SAFETY: the caller vouches for the instruction.
        return unsafe { general::other_mode(wave, inst) };
    }
    // SAFETY: lowering matched the instruction's operands with the operation's.
    unsafe {
        let a = O::A::row::<V>(wave, inst, 0);
        let b = O::B::row::<V>(wave, inst, 1);
        let c = O::C::row::<V>(wave, inst, 2);
        let mut cx = Cx {
            lane: 0,
            vcc: wave.scalar64(scalar::VCC),
            ieee: wave.mode & 0x200 != 0,
            overflow: wave.mode & 0x80_0000 != 0,
            imm: inst.imm,
        };
        let full = wave.exec == wave.full_mask();
        let mut mask = 0;
        for start in (0..wave.lanes as usize).step_by(CHUNK) {
            let a = O::A::chunk(a, start);
            let b = O::B::chunk(b, start);
            let c = O::C::chunk(c, start);
            let mut out = Buffer::empty();
            if !O::chunk::<V>(cx, a, b, c, &mut out) {
                for lane in 0..if O::HIDDEN { lanes() } else { CHUNK } {
                    cx.lane = (start + lane) as u32;
                    let value = O::lane(cx, O::A::get(a, lane), O::B::get(b, lane), O::C::get(c, lane));
                    O::D::put(&mut out, lane, value);
                }
            }
            if O::any_special::<V>(&out) {
                cx.lane = start as u32;
                repair::<O>(cx, a, b, c, &mut out);
            }
            mask |= (O::D::commit::<V>(&out, wave, inst, start, full) as u64) << start;
        }
        if O::D::MASK {
            let register = if O::D::KIND == Kind::None { inst.dst } else { inst.dst2 };
            write_mask(wave, inst, register, mask & wave.exec);
        }
    }
}

/// Puts the special results of a chunk right.
///
/// # Safety
/// All results were stored.
#[cold]
#[inline(never)]
unsafe fn repair<O: Op>(
    mut cx: Cx,
    a: <O::A as Source>::Chunk<'_>,
    b: <O::B as Source>::Chunk<'_>,
    c: <O::C as Source>::Chunk<'_>,
    out: &mut Buffer,
) {
    let start = cx.lane;
    for lane in 0..lanes() {
        // SAFETY: the caller vouches for it.
        let raw = unsafe { O::D::get(out, lane) };
        if O::is_special(raw) {
            cx.lane = start + lane as u32;
            let (a, b, c) = (O::A::get(a, lane), O::B::get(b, lane), O::C::get(c, lane));
            O::D::put(out, lane, O::special(cx, a, b, c, raw));
        }
    }
}

/// # Safety
/// As for [`Handler`].
unsafe fn base<O: Op>(wave: &mut Wave, inst: &Inst) {
    // SAFETY: the caller vouches for the instruction.
    unsafe { body::<O, Base>(wave, inst) }
}

/// # Safety
/// As for [`Handler`]; the host has the features named here.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn avx2<O: Op>(wave: &mut Wave, inst: &Inst) {
    // SAFETY: the caller vouches for the instruction and the host.
    unsafe { body::<O, Avx2>(wave, inst) }
}

/// # Safety
/// As for [`Handler`]; the host has the features named here.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn avx512<O: Op>(wave: &mut Wave, inst: &Inst) {
    // SAFETY: the caller vouches for the instruction and the host.
    unsafe { body::<O, Avx512>(wave, inst) }
}

/// The handler of an operation for a host. It serves both wave sizes: the loop over chunks of 32 lanes runs once or
/// twice.
pub fn pick<O: Op>(level: HostLevel) -> Handler {
    match level {
        #[cfg(target_arch = "x86_64")]
        HostLevel::Avx512 => avx512::<O>,
        #[cfg(target_arch = "x86_64")]
        HostLevel::Avx2 => avx2::<O>,
        _ => base::<O>,
    }
}

/// MODE bits that govern operands of these kinds.
pub const fn mode<O: Op>() -> u32 {
    O::A::KIND.mode() | O::B::KIND.mode() | O::C::KIND.mode() | O::D::KIND.mode()
}

//! Memory operations: SMEM, FLAT, GLOBAL, SCRATCH, MUBUF, MTBUF, DS.
//!
//! Every global address goes through the [`AddressSpace`](crate::memory::AddressSpace) of the dispatch, by way of a small cache of mappings in each
//! wave's [`MemoryPort`]; rights are checked once for a run of contiguous lanes, else lane by lane, and always before
//! any register or memory changes. Memory is shared with host threads, so every access is an atomic or volatile one
//! (`access`). LDS belongs to the one thread that runs the work-group and is accessed plainly (`ds`).
//!
//! A vector memory instruction is two halves: where each lane's data lies (`flat`, `scratch`, `buffer`) and what
//! is done there (`element`, `lanes`, `atomic`).

mod access;
mod atomic;
mod block;
mod buffer;
mod ds;
mod ds_lane;
mod element;
mod flat;
mod format;
mod lanes;
mod names;
mod pattern;
mod port;
mod resource;
mod scratch;
mod smem;
#[cfg(test)]
mod tests;

pub use port::MemoryPort;

use super::fidelity::Fidelity;
use super::inst::{Extra, Handler, Inst, Src};
use super::lower::{Lowering, Unsupported};
use super::wave::Wave;
use crate::isa::{Decoded, Format, Operand};

/// Lowers an instruction of one of the memory formats.
///
/// # Errors
/// [`Unsupported`] when the operation or one of its operands is not executed here.
pub fn lower(decoded: &Decoded, lowering: &mut Lowering) -> Result<Inst, Unsupported> {
    match decoded.format {
        Format::Smem => smem::lower(decoded, lowering),
        Format::Flat | Format::Global => flat::lower(decoded, lowering),
        Format::Scratch => scratch::lower(decoded, lowering),
        Format::Ds => ds::lower(decoded, lowering),
        Format::Mubuf | Format::Mtbuf => buffer::lower(decoded, lowering),
        _ => Err(Unsupported::Operation),
    }
}

/// An instruction with nothing filled in but what all of them have.
fn blank(decoded: &Decoded, run: Handler, fidelity: Fidelity) -> Inst {
    Inst {
        run: Some(run),
        dst: 0,
        dst2: 0,
        src: [Src(0); 3],
        imm: 0,
        len: decoded.len,
        flags: 0,
        aux: 0,
        extra: Some(Box::new(Extra { decoded: decoded.clone(), fidelity, data: None })),
    }
}

/// First register of a block, and how many the wave has from there on, 32 at most.
fn block_registers(operand: Operand, lowering: &Lowering) -> Result<(u32, u16), Unsupported> {
    let first = match operand {
        Operand::Vgpr { reg, hi, .. } => Operand::Vgpr { reg, dwords: 1, hi },
        other => other,
    };
    let offset = lowering.row(first)?;
    let left = lowering.vgprs - offset / (4 * lowering.lanes);
    Ok((offset, left.min(32) as u16))
}

/// An instruction that does nothing where loads complete at once and caches do not exist.
unsafe fn nop(_: &mut Wave, _: &Inst) {}

/// A cache write-back or invalidation: orders this thread's accesses with the host's.
unsafe fn fence(_: &mut Wave, _: &Inst) {
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}

/// Picks the instance of a handler for a wave size.
macro_rules! by_lanes {
    ($lowering:expr, $handler:ident $(, $generic:expr)*) => {
        if $lowering.lanes == 64 { $handler::<64 $(, $generic)*> } else { $handler::<32 $(, $generic)*> }
    };
}
use by_lanes;

/// Defines `$pick`, which picks the instance of a handler for a vector width of the host and a wave size. `$body` is an
/// `#[inline(always)]` function, generic over the lanes and the constants that follow.
macro_rules! leveled {
    ($pick:ident, $body:ident $(, $generic:ident: $type:ty)*) => {
        fn $pick<$(const $generic: $type),*>(lowering: &Lowering) -> Handler {
            unsafe fn base<const L: usize $(, const $generic: $type)*>(wave: &mut Wave, inst: &Inst) {
                // SAFETY: the caller's promise is passed on.
                unsafe { $body::<L $(, $generic)*>(wave, inst) }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
            unsafe fn avx2<const L: usize $(, const $generic: $type)*>(wave: &mut Wave, inst: &Inst) {
                // SAFETY: the caller's promise is passed on.
                unsafe { $body::<L $(, $generic)*>(wave, inst) }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512dq,avx512vl")]
            unsafe fn avx512<const L: usize $(, const $generic: $type)*>(wave: &mut Wave, inst: &Inst) {
                // SAFETY: the caller's promise is passed on.
                unsafe { $body::<L $(, $generic)*>(wave, inst) }
            }
            match (lowering.level, lowering.lanes) {
                #[cfg(target_arch = "x86_64")]
                ($crate::cu::level::HostLevel::Avx512, 64) => avx512::<64 $(, $generic)*>,
                #[cfg(target_arch = "x86_64")]
                ($crate::cu::level::HostLevel::Avx512, _) => avx512::<32 $(, $generic)*>,
                #[cfg(target_arch = "x86_64")]
                ($crate::cu::level::HostLevel::Avx2, 64) => avx2::<64 $(, $generic)*>,
                #[cfg(target_arch = "x86_64")]
                ($crate::cu::level::HostLevel::Avx2, _) => avx2::<32 $(, $generic)*>,
                (_, 64) => base::<64 $(, $generic)*>,
                (_, _) => base::<32 $(, $generic)*>,
            }
        }
    };
}
use leveled;

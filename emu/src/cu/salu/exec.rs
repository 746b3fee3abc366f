//! Operations that combine a source with EXEC and save it: `s_*_saveexec_*` and `s_*_wrexec_*`.

use super::{Word, destination, exec_flags, set_exec, source};
use crate::cu::fidelity::Fidelity;
use crate::cu::inst::{Handler, Inst, Src};
use crate::cu::lower::{Lowering, Unsupported, Width};
use crate::cu::wave::Wave;
use crate::isa::Decoded;

/// What becomes of (source, EXEC).
trait Combine {
    fn apply(a: u64, exec: u64) -> u64;
}

/// `C`: the source is a constant. `WIDE`: 64 bits, else EXEC_LO only. `NEW`: the destination gets the new EXEC.
unsafe fn run<O: Combine, const C: bool, const WIDE: bool, const NEW: bool>(wave: &mut Wave, inst: &Inst) {
    let old = wave.exec;
    // SAFETY: lowered for this instance.
    unsafe {
        let new = if WIDE {
            O::apply(u64::get::<C>(wave, inst.src[0]), old) & wave.full_mask()
        } else {
            let low = O::apply(u32::get::<C>(wave, inst.src[0]) as u64, old) & 0xffff_ffff;
            wave.scc = low != 0;
            old & !0xffff_ffff | low
        };
        if WIDE {
            wave.scc = new != 0;
        }
        let saved = if NEW { new } else { old };
        if WIDE {
            u64::put(wave, inst.dst, saved);
        } else {
            u32::put(wave, inst.dst, saved as u32);
        }
        set_exec(wave, inst, new);
    }
}

fn pick<O: Combine>(constant: bool, wide: bool, new: bool) -> Handler {
    match (constant, wide, new) {
        (false, false, false) => run::<O, false, false, false>,
        (false, false, true) => run::<O, false, false, true>,
        (false, true, false) => run::<O, false, true, false>,
        (false, true, true) => run::<O, false, true, true>,
        (true, false, false) => run::<O, true, false, false>,
        (true, false, true) => run::<O, true, false, true>,
        (true, true, false) => run::<O, true, true, false>,
        (true, true, true) => run::<O, true, true, true>,
    }
}

macro_rules! combine {
    ($name:ident, $operation:ident, $expression:expr, $($alternative:literal)|+) => {{
        struct This;
        impl Combine for This {
            #[inline(always)]
            fn apply(a: u64, exec: u64) -> u64 {
                let f: fn(u64, u64) -> u64 = $expression;
                f(a, exec)
            }
        }
        if matches!($operation, $($alternative)|+) {
            $name = Some(pick::<This> as fn(bool, bool, bool) -> Handler);
        }
    }};
}

/// Lowers an operation of this family; None for others.
pub fn lower(decoded: &Decoded, lowering: &mut Lowering) -> Result<Option<Inst>, Unsupported> {
    let Some(name) = decoded.mnemonic.strip_prefix("s_") else { return Ok(None) };
    let (name, wide) = match (name.strip_suffix("_b64"), name.strip_suffix("_b32")) {
        (Some(name), _) => (name, true),
        (_, Some(name)) => (name, false),
        _ => return Ok(None),
    };
    let (operation, new) = match (name.strip_suffix("_saveexec"), name.strip_suffix("_wrexec")) {
        (Some(name), _) => (name, false),
        (_, Some(name)) => (name, true),
        _ => return Ok(None),
    };
    let mut found = None;
    combine!(found, operation, |a, exec| a & exec, "and");
    combine!(found, operation, |a, exec| a | exec, "or");
    combine!(found, operation, |a, exec| a ^ exec, "xor");
    combine!(found, operation, |a, exec| !(a & exec), "nand");
    combine!(found, operation, |a, exec| !(a | exec), "nor");
    combine!(found, operation, |a, exec| !(a ^ exec), "xnor");
    combine!(found, operation, |a, exec| !a & exec, "andn1" | "and_not0");
    combine!(found, operation, |a, exec| a & !exec, "andn2" | "and_not1");
    combine!(found, operation, |a, exec| !a | exec, "orn1" | "or_not0");
    combine!(found, operation, |a, exec| a | !exec, "orn2" | "or_not1");
    let Some(pick) = found else { return Ok(None) };

    let width = if wide { Width::B64 } else { Width::B32 };
    let (src, constant) = source(decoded.src[0], width, lowering)?;
    let mut inst = Inst::new(pick(constant, wide, new), decoded, Fidelity::Exact);
    inst.src = [src, Src(0), Src(0)];
    inst.flags = exec_flags(lowering);
    inst.dst = destination(decoded.dst, width.dwords(), lowering)?;
    Ok(Some(inst))
}

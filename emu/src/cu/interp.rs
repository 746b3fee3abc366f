//! The interpreter loop.

use super::code::{Code, is_skipped, is_vector};
use super::inst::Inst;
use super::salu::{INDEX_ENABLE, VSKIP};
use super::wave::{State, Wave, scalar};
use std::collections::HashMap;

/// Why the loop returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The slice is over.
    Slice,
    /// The wave's state is no longer [`State::Ready`].
    State,
    /// The next instruction is not in this code.
    Leave,
}

/// Runs up to `slice` instructions of a ready wave; returns how many are left of them.
///
/// # Safety
/// The code was made for the wave's size and registers.
pub unsafe fn run(wave: &mut Wave, code: &Code, slice: u32) -> (u32, Exit) {
    wave.constants = code.constants();
    let table = code.table();
    let mut left = slice;
    loop {
        let mut pc = wave.pc;
        if !code.holds(pc) {
            return (left, Exit::Leave);
        }
        // SAFETY: `holds` put the index into the table.
        let mut entry = unsafe { table.add((pc.wrapping_sub(code.start) / 4) as usize) };
        loop {
            // SAFETY: each step is at most 16 bytes of code, up to the guard entries, which are never filled.
            let Some(handler) = (unsafe { Code::handler(entry) }) else {
                // SAFETY: both point into the table.
                if !code.fill(unsafe { entry.offset_from(table) } as usize) {
                    return (left, Exit::Leave);
                }
                continue;
            };
            if left == 0 {
                return (0, Exit::Slice);
            }
            left -= 1;
            // SAFETY: an entry with a handler is whole and does not change any more.
            let inst = unsafe { &*entry };
            let len = inst.len as usize;
            pc = pc.wrapping_add(len as u64);
            // SAFETY: as above; there is an entry for each four bytes.
            entry = unsafe { entry.byte_add(len * (size_of::<Inst>() / 4)) };
            wave.pc = pc;
            // SAFETY: lowered for this wave's shape, as the caller promises.
            unsafe { handler(wave, inst) };
            // One test for the two rare cases.
            if (wave.pc ^ pc) | wave.state as u64 != 0 {
                break;
            }
        }
        if wave.state != State::Ready {
            return (left, Exit::State);
        }
    }
}

/// Vector instructions lowered for a register index, by address and the index bits of M0.
pub type Indexed = HashMap<(u64, u32), Inst>;

/// Instructions kept in [`Indexed`].
const KEEP: usize = 4096;

/// [`run`] while VGPR indexing or the skipping of vector instructions is on (GFX9, MODE.GPR_IDX_EN and VSKIP). Also
/// returns [`Exit::State`] when they are switched off.
///
/// # Safety
/// As for [`run`]; `indexed` was filled for this code's shape.
pub unsafe fn run_indexed(wave: &mut Wave, code: &Code, slice: u32, indexed: &mut Indexed) -> (u32, Exit) {
    wave.constants = code.constants();
    let mut left = slice;
    while wave.mode & (INDEX_ENABLE | VSKIP) != 0 && wave.state == State::Ready {
        if !code.holds(wave.pc) {
            return (left, Exit::Leave);
        }
        let index = (wave.pc.wrapping_sub(code.start) / 4) as usize;
        // SAFETY: `holds` put the index into the table.
        let entry = unsafe { code.table().add(index) };
        // SAFETY: as above.
        let Some(handler) = (unsafe { Code::handler(entry) }) else {
            code.fill(index);
            continue;
        };
        if left == 0 {
            return (0, Exit::Slice);
        }
        left -= 1;
        // SAFETY: an entry with a handler is whole and does not change any more.
        let inst = unsafe { &*entry };
        if wave.mode & VSKIP != 0 && inst.extra.as_ref().is_some_and(|extra| is_skipped(&extra.decoded)) {
            wave.pc = wave.pc.wrapping_add(inst.len as u64);
            continue;
        }
        let m0 = wave.scalar[scalar::M0 as usize] & 0xf0ff;
        let vector = inst.extra.as_ref().map(|extra| &extra.decoded).filter(|decoded| is_vector(decoded));
        let key = (wave.pc, m0);
        wave.pc = wave.pc.wrapping_add(inst.len as u64);
        let (inst, handler) = match vector {
            None => (inst, Some(handler)),
            Some(decoded) => {
                if indexed.len() >= KEEP {
                    indexed.clear();
                }
                let inst: &Inst = indexed.entry(key).or_insert_with(|| code.lower_indexed(decoded, m0));
                (inst, inst.run)
            }
        };
        if let Some(handler) = handler {
            // SAFETY: lowered for this wave's shape, as the caller promises.
            unsafe { handler(wave, inst) };
        }
    }
    (left, Exit::State)
}

//! The interpreter loop.

use super::code::Code;
use super::wave::{State, Wave};

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
        let mut index = (pc.wrapping_sub(code.start) / 4) as usize;
        loop {
            // SAFETY: `holds` put the index into the table, and what follows steps at most 16 bytes of code at a time, up
            // to the guard entries, which are never filled.
            let entry = unsafe { table.add(index) };
            // SAFETY: as above.
            let Some(handler) = (unsafe { Code::handler(entry) }) else {
                if !code.fill(index) {
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
            let len = inst.len as u64;
            pc = pc.wrapping_add(len);
            index += (len / 4) as usize;
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

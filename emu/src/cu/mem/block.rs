//! Block loads and stores (GFX12): up to 32 VGPRs to or from consecutive dwords of each lane. M0 has a bit for each
//! register; those whose bit is off are skipped, and so are their dwords.
//!
//! Lowered as [`super::flat`] and [`super::scratch`] do, with the registers from the first on that the wave has in
//! `aux`.

use super::super::inst::Inst;
use super::super::wave::{Wave, scalar};
use super::element::Kind;
use super::lanes::{Lanes, Layout};
use super::pattern::ones;
use super::port::fault;
use trace::{Access, FaultKind};

/// Transfers the registers that begin at byte offset `first` of the register file. All accesses are checked before the
/// first.
///
/// # Safety
/// `first` and `inst.aux` registers from there on lie in the wave's register file.
pub unsafe fn transfer<const L: usize>(
    wave: &mut Wave,
    inst: &Inst,
    layout: Layout,
    first: u32,
    access: Access,
    address: impl Fn(usize) -> u64,
) {
    let mut mask = wave.scalar[scalar::M0 as usize];
    if mask.checked_shr(inst.aux.into()).unwrap_or(0) != 0 {
        let exec = wave.exec;
        let detail = format!("M0 is {mask:#x}, and the wave has {} registers from the first on", inst.aux);
        return wave.fault_at(inst, FaultKind::IllegalInstruction, None, exec, detail);
    }
    // A load may overwrite the registers that hold the addresses.
    let mut addresses = [0; L];
    ones(wave.exec, |lane| addresses[lane] = address(lane));
    let mut resolved: Vec<(usize, Lanes<L>)> = Vec::with_capacity(mask.count_ones() as usize);
    while mask != 0 {
        let index = mask.trailing_zeros() as usize;
        mask &= mask - 1;
        let address = |lane: usize| addresses[lane].wrapping_add(4 * index as u64);
        match Lanes::resolve(&mut wave.port, layout, wave.exec, 0, 4, access, address) {
            Ok(lanes) => resolved.push((index, lanes)),
            Err(denied) => return fault(wave, inst, access, denied),
        }
    }
    for (index, lanes) in resolved {
        // SAFETY: the register is one of the wave's, as just checked; the lanes were resolved in this instruction.
        unsafe {
            let row = wave.rows.byte_add(first as usize).add(index * L);
            match access {
                Access::Read => lanes.load(&mut wave.port, Kind::B32, row),
                _ => lanes.store(&mut wave.port, Kind::B32, row),
            }
        }
    }
}

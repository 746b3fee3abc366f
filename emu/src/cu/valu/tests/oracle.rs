//! Operations against scalar statements of what they do, on edge values, under several EXEC patterns, in both wave
//! sizes and on every vector width.

use super::*;
use crate::cu::valu::table;
use crate::isa::Family;

/// What a lane writes: the destination and, where there is one, the mask bit.
pub type Expected = (u64, bool);

/// Runs an operation many times and compares each lane with the statement `expect`, which gets the sources' bits, the
/// VCC bit or third source's mask bit, and the lane number.
pub fn verify(name: &str, expect: impl Fn([u64; 3], u32) -> Expected) {
    let entry = table::find(name).unwrap_or_else(|| panic!("{name}: not in the tables"));
    let mut seed = 1;
    for mut rig in Rig::all() {
        for exec in EXECS {
            for _ in 0..6 {
                seed += 1;
                once(&mut rig, name, exec, seed, entry, &expect);
            }
        }
    }
}

fn once(rig: &mut Rig, name: &str, exec: u64, seed: u64, entry: &Entry, expect: &impl Fn([u64; 3], u32) -> Expected) {
    let mut random = Random(seed);
    let lanes = rig.lanes();
    let mut sources = vec![[0; 3]; lanes as usize];
    let masks = random.bits();
    rig.wave.set_scalar64(20, masks);
    for (index, kind) in entry.src.iter().enumerate() {
        for lane in 0..lanes {
            let value = if *kind == Kind::Mask { masks >> lane & 1 } else { random.value(*kind) };
            let value = match kind.dwords() {
                2 => value,
                1 => value & 0xffff_ffff,
                _ => value,
            };
            rig.set64(16 + 4 * index as u32, lane, value);
            sources[lane as usize][index] = if kind.is_16() { value & 0xffff } else { value };
        }
    }
    let old: Vec<u64> = (0..lanes).map(|_| random.bits()).collect();
    for lane in 0..lanes {
        rig.set64(8, lane, old[lane as usize]);
    }
    rig.set_vcc(random.bits());
    rig.wave.set_exec(exec);
    let active = rig.wave.exec;
    let mut decoded = plain(entry, 8);
    decoded.mnemonic = table::find(name).and_then(|entry| entry.names.iter().find(|known| **known == name)).unwrap();
    rig.run(&decoded);
    let mut mask = 0;
    for lane in 0..lanes {
        let (value, bit) = expect(sources[lane as usize], lane);
        let before = old[lane as usize];
        let is_active = active >> lane & 1 != 0;
        mask |= ((bit && is_active) as u64) << lane;
        let kept = if rig.target.family() == Family::Gfx9 && !entry.keeps { 0 } else { before & 0xffff_0000 };
        let written = match entry.dst.dwords() {
            2 => value,
            1 if entry.dst.is_16() => before & !0xffff_ffff | kept | value & 0xffff,
            1 => before & !0xffff_ffff | value & 0xffff_ffff,
            _ => before,
        };
        let wanted = if is_active { written } else { before };
        let got = rig.get64(8, lane);
        assert_eq!(
            got, wanted,
            "{name} on {:?}, wave{lanes}, exec {active:#x}, lane {lane}, sources {:x?}: {got:#x} is not {wanted:#x}",
            rig.level, sources[lane as usize]
        );
    }
    if entry.mask {
        let got = rig.vcc();
        assert_eq!(got, mask, "{name} on {:?}, wave{lanes}, exec {active:#x}: mask", rig.level);
    }
}

/// An operation without a mask.
pub fn value(name: &str, expect: impl Fn(u64, u64, u64) -> u64) {
    verify(name, |[a, b, c], _| (expect(a, b, c), false));
}

/// A comparison.
pub fn mask(name: &str, expect: impl Fn(u64, u64) -> bool) {
    verify(name, |[a, b, _], _| (0, expect(a, b)));
}

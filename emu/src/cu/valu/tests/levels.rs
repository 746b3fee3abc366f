//! Every operation gives the same bits on every vector width, in every state of MODE, and leaves inactive lanes alone.

use super::*;
use crate::cu::valu::table;

/// Fills the sources of an instruction with values of their kinds.
fn fill(rig: &mut Rig, entry: &Entry, random: &mut Random) {
    for (index, kind) in entry.src.iter().enumerate() {
        let register = 16 + 4 * index as u32;
        for lane in 0..rig.lanes() {
            rig.set64(register, lane, random.value(*kind));
        }
    }
    for lane in 0..rig.lanes() {
        rig.set64(8, lane, random.bits());
    }
    rig.set_vcc(random.bits());
    rig.wave.set_scalar64(20, random.bits());
}

/// Registers and VCC after an instruction.
fn outcome(rig: &Rig) -> (Vec<u32>, u64) {
    let registers = [8, 9, 16, 17, 20, 21, 24, 25];
    (registers.iter().flat_map(|register| rig.row(*register)).collect(), rig.vcc())
}

#[test]
fn all_widths_agree() {
    let modes = [MODE, 0x0f0, 0x300, 0x3f5, 0x3fa, 0x3ff, 0x390];
    let mut failures = Vec::new();
    for (number, entry) in table::entries().enumerate() {
        let Some(name) = entry.names.first() else { continue };
        for (target, lanes) in [(Target::Gfx1100, 32), (Target::Gfx90a, 64)] {
            for (round, mode) in modes.into_iter().enumerate() {
                let exec = EXECS[(number + round) % EXECS.len()];
                let exec = if round == 0 { u64::MAX } else { exec };
                let outcomes = levels().into_iter().map(|level| {
                    let mut rig = Rig::new(target, lanes, level);
                    let mut random = Random(number as u64 * 1000 + round as u64);
                    fill(&mut rig, entry, &mut random);
                    rig.wave.set_exec(exec);
                    rig.wave.mode = mode;
                    let before = outcome(&rig);
                    rig.run(&plain(entry, 8));
                    let after = outcome(&rig);
                    for (index, (old, new)) in before.0.iter().zip(&after.0).enumerate() {
                        let active = rig.wave.exec >> (index % lanes as usize) & 1 != 0;
                        let written = index < 2 * lanes as usize && active;
                        assert!(written || old == new, "{name}: word {index} of an inactive lane or a source changed");
                    }
                    (level, after)
                });
                let outcomes: Vec<_> = outcomes.collect();
                for (level, outcome) in &outcomes[1..] {
                    if *outcome != outcomes[0].1 {
                        let at = outcome.0.iter().zip(&outcomes[0].1.0).position(|(a, b)| a != b);
                        let words = at.map(|at| (at, outcome.0[at], outcomes[0].1.0[at]));
                        failures.push(format!("{name} mode {mode:#x} lanes {lanes} {level:?}: {words:x?}"));
                    }
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

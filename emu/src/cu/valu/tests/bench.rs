//! Speed, for a person to read: `cargo test --release -p kfdrun-emu valu_speed -- --ignored --nocapture`.

use super::*;
use crate::cu::inst::Inst;
use crate::cu::valu::table;
use std::time::Instant;

fn measure(rig: &mut Rig, name: &str, program: &[Inst]) {
    let mut best = f64::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        const ROUNDS: usize = 20_000;
        for _ in 0..ROUNDS {
            for inst in program {
                // SAFETY: lowered for this wave.
                unsafe { inst.run.unwrap()(&mut rig.wave, inst) };
            }
        }
        best = best.min(start.elapsed().as_secs_f64() / (ROUNDS * program.len()) as f64);
    }
    println!("{name:34} {:6.2} ns  {:5.0} M/s", best * 1e9, 1e-6 / best);
}

#[test]
#[ignore = "measures time"]
fn valu_speed() {
    for (target, lanes) in [(Target::Gfx1100, 32), (Target::Gfx90a, 64)] {
        for level in levels() {
            for exec in [u64::MAX, 0x0123_4567_89ab_cdef] {
                println!("--- wave{lanes} {level:?} exec {exec:#x}");
                let mut rig = Rig::new(target, lanes, level);
                for register in 0..40 {
                    for lane in 0..lanes {
                        rig.set(register, lane, 0x3f00_0000 + register * 77 + lane * 1031);
                    }
                }
                rig.wave.set_exec(exec);
                let mut addc = op("v_add_co_ci_u32", v(4), &[v(4), v(5), VCC]);
                addc.dst2 = VCC;
                let mut fma_neg = op("v_fma_f32", v(3), &[v(20), v(21), v(3)]);
                fma_neg.mods.neg = 1;
                let ops = [
                    op("v_add_nc_u32", v(1), &[v(1), v(2)]),
                    op("v_mul_lo_u32", v(2), &[v(2), v(1)]),
                    op("v_fma_f32", v(3), &[v(3), v(20), v(21)]),
                    op("v_xor_b32", v(4), &[v(4), v(1)]),
                    op("v_cmp_lt_u32", VCC, &[v(1), v(4)]),
                    op("v_cndmask_b32", v(5), &[v(5), v(4), VCC]),
                    op("v_add_nc_u32", v(6), &[v(6), Operand::Int(1)]),
                    op("v_lshlrev_b32", v(7), &[Operand::Int(3), v(6)]),
                    op("v_add_f32", v(8), &[v(8), s(3)]),
                    op("v_mov_b32", v(9), &[v(8)]),
                ];
                let program: Vec<_> = ops.iter().map(|decoded| rig.lower(decoded).unwrap()).collect();
                measure(&mut rig, "mix of ten", &program);
                let singles = [
                    op("v_mov_b32", v(9), &[v(8)]),
                    op("v_mov_b32", v(9), &[s(8)]),
                    op("v_add_f32", v(22), &[v(22), v(23)]),
                    op("v_add_f32", v(22), &[s(1), v(23)]),
                    op("v_fma_f32", v(3), &[v(3), v(20), v(21)]),
                    fma_neg,
                    op("v_max_f32", v(3), &[v(24), v(25)]),
                    op("v_mul_hi_u32", v(3), &[v(3), v(2)]),
                    op("v_cmp_lt_f32", VCC, &[v(24), v(25)]),
                    op("v_cndmask_b32", v(5), &[v(5), v(4), VCC]),
                    addc,
                    op("v_lshlrev_b64", v2(10), &[Operand::Int(2), v2(10)]),
                    op("v_mad_u64_u32", v2(10), &[v(1), v(2), v2(12)]),
                    op("v_fma_f64", v2(10), &[v2(26), v2(28), v2(30)]),
                    op("v_add_f16", v(10), &[v(32), v(33)]),
                    op("v_cvt_f32_u32", v(10), &[v(34)]),
                    op("v_cvt_i32_f32", v(10), &[v(34)]),
                    op("v_rcp_f32", v(10), &[v(34)]),
                    op("v_exp_f32", v(10), &[v(34)]),
                    op("v_sin_f32", v(10), &[v(34)]),
                    op("v_readfirstlane_b32", s(4), &[v(12)]),
                ];
                for decoded in &singles {
                    let program = [rig.lower(decoded).unwrap()];
                    measure(&mut rig, decoded.mnemonic, &program);
                }
            }
        }
    }
}

#[test]
#[ignore = "measures time"]
fn valu_each() {
    for level in levels().into_iter().skip(1) {
        for entry in table::entries() {
            let only = std::env::var("OPS").unwrap_or_default();
            if entry.names.is_empty() || !only.is_empty() && !only.split(' ').any(|name| entry.names.contains(&name)) {
                continue;
            }
            let mut rig = Rig::new(Target::Gfx1100, 32, level);
            let mut random = Random(1);
            for (index, kind) in entry.src.iter().enumerate() {
                for lane in 0..32 {
                    let near = match kind {
                        Kind::F32 => 0x3f00_0000 + random.bits() % 0xff_ffff,
                        Kind::F64 => 0x3fe0_0000_0000_0000 + (random.bits() >> 12),
                        Kind::F16 | Kind::PF16 => {
                            0x3800 + random.bits() % 0x7ff + ((0x3800 + random.bits() % 0x7ff) << 16)
                        }
                        _ => random.bits(),
                    };
                    rig.set64(16 + 4 * index as u32, lane, near);
                }
            }
            // Eight independent results.
            let program: Vec<_> = (0..4).map(|number| rig.lower(&plain(entry, 40 + 4 * number)).unwrap()).collect();
            measure(&mut rig, &format!("{level:?} {}", entry.names[0]), &program);
        }
    }
}

#[test]
#[ignore = "prints addresses"]
fn addresses() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let base = usize::from_str_radix(maps.split('-').next().unwrap(), 16).unwrap();
    for name in std::env::var("OPS").unwrap_or_default().split_whitespace() {
        let pick = table::find(name).unwrap().pick;
        println!(
            "ADDR {name} {:#x} {:#x}",
            pick(HostLevel::Avx2) as usize - base,
            pick(HostLevel::Avx512) as usize - base
        );
    }
}

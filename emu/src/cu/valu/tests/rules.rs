//! Rules that emulators got wrong, one test each.

use super::*;
use crate::isa::Family;

fn f(value: f32) -> u32 {
    value.to_bits()
}

#[test]
fn inactive_lanes_keep_their_destination_and_sources_are_read_first() {
    for mut rig in Rig::all() {
        rig.wave.set_exec(0x5555_5555_5555_5555);
        for lane in 0..rig.lanes() {
            rig.set64(2, lane, 1 << 32 | lane as u64);
        }
        // The destination overlaps the source by one register.
        rig.run(&op("v_lshlrev_b64", v2(3), &[Operand::Int(4), v2(2)]));
        for lane in 0..rig.lanes() {
            let wanted = if lane % 2 == 0 { [lane, lane << 4, 16] } else { [lane, 1, 0] };
            assert_eq!([rig.get(2, lane), rig.get(3, lane), rig.get(4, lane)], wanted, "lane {lane}");
        }
    }
}

#[test]
fn compares_and_carries_write_the_whole_mask() {
    for mut rig in Rig::all() {
        rig.wave.set_exec(0b1010);
        rig.fill(1, u32::MAX);
        for (name, dst) in [("v_cmp_eq_u32", VCC), ("v_add_co_u32", v(4))] {
            rig.set_vcc(u64::MAX);
            let mut decoded = op(name, dst, &[v(1), v(1)]);
            decoded.dst2 = VCC;
            rig.run(&decoded);
            assert_eq!(rig.vcc(), 0b1010, "{name}");
        }
    }
}

#[test]
fn wave32_masks_leave_vcc_hi_alone() {
    for level in levels() {
        let mut rig = Rig::new(Target::Gfx1100, 32, level);
        rig.wave.scalar[scalar::VCC as usize + 1] = 0x1234_5678;
        rig.run(&op("v_cmp_eq_u32", VCC, &[v(1), v(1)]));
        assert_eq!(rig.wave.scalar64(scalar::VCC), 0x1234_5678_ffff_ffff);
    }
}

#[test]
fn cmpx_writes_exec_and_on_gfx9_the_mask_too() {
    for mut rig in Rig::all() {
        for lane in 0..rig.lanes() {
            rig.set(1, lane, lane);
        }
        let gfx9 = rig.target.family() == Family::Gfx9;
        let exec = Operand::Special { reg: Special::ExecLo, dwords: 2 };
        rig.wave.set_exec(0xff);
        rig.set_vcc(u64::MAX);
        rig.run(&op("v_cmpx_lt_u32", if gfx9 { VCC } else { exec }, &[v(1), Operand::Int(4)]));
        assert_eq!(rig.wave.exec, 0xf);
        assert_eq!(rig.wave.exec_row.0[3..5], [u32::MAX, 0]);
        assert_eq!(rig.vcc(), if gfx9 { 0xf } else { u32::MAX as u64 });
    }
}

#[test]
fn masks_to_null_go_nowhere() {
    for mut rig in Rig::all() {
        let null = Operand::Special { reg: Special::Null, dwords: 1 };
        let before = rig.wave.scalar[..scalar::SINK as usize].to_vec();
        rig.run(&op("v_cmp_eq_u32", null, &[v(1), v(1)]));
        let mut add = op("v_add_co_u32", v(4), &[v(1), v(1)]);
        add.dst2 = null;
        rig.run(&add);
        assert_eq!(rig.wave.scalar[..scalar::SINK as usize], before);
    }
}

#[test]
fn lane_moves_ignore_exec() {
    for mut rig in Rig::all() {
        for lane in 0..rig.lanes() {
            rig.set(1, lane, 100 + lane);
        }
        rig.wave.set_exec(0b1000);
        rig.run(&op("v_readfirstlane_b32", s(4), &[v(1)]));
        assert_eq!(rig.wave.scalar[4], 103);
        rig.wave.set_exec(0);
        rig.run(&op("v_readfirstlane_b32", s(4), &[v(1)]));
        assert_eq!(rig.wave.scalar[4], 100, "lane 0 when EXEC is 0");
        rig.run(&op("v_readlane_b32", s(4), &[v(1), Operand::Int(9)]));
        assert_eq!(rig.wave.scalar[4], 109);
        // The lane is taken modulo the wave size.
        rig.wave.scalar[5] = 64 + rig.lanes() + 2;
        rig.run(&op("v_readlane_b32", s(4), &[v(1), s(5)]));
        assert_eq!(rig.wave.scalar[4], 102);
        rig.run(&op("v_writelane_b32", v(1), &[Operand::Int(-1), s(5)]));
        assert_eq!([rig.get(1, 1), rig.get(1, 2), rig.get(1, 3)], [101, u32::MAX, 103]);
    }
}

#[test]
fn readlane_into_exec_updates_the_lanes() {
    for mut rig in Rig::all() {
        rig.fill(1, 0b110);
        rig.run(&op("v_readfirstlane_b32", Operand::Special { reg: Special::ExecLo, dwords: 1 }, &[v(1)]));
        assert_eq!(rig.wave.exec as u32, 0b110);
        assert_eq!(rig.wave.exec_row.0[..3], [0, u32::MAX, u32::MAX]);
    }
}

#[test]
fn bodies_run_with_exec_0() {
    for mut rig in Rig::all() {
        rig.wave.set_exec(0);
        rig.set_vcc(u64::MAX);
        rig.fill(4, 9);
        rig.run(&op("v_add_f32", v(4), &[v(1), v(2)]));
        rig.run(&op("v_cmp_eq_f32", VCC, &[v(1), v(2)]));
        assert_eq!((rig.get(4, 0), rig.vcc()), (9, 0));
    }
}

#[test]
fn constants_take_the_width_of_their_operand() {
    for mut rig in Rig::all() {
        let half = Operand::Float(240);
        rig.run(&op("v_mov_b32", v(4), &[half]));
        assert_eq!(rig.get(4, 0), 0x3f00_0000);
        rig.fill(1, 0);
        rig.run(&op("v_add_f16", v(4), &[half, v(1)]));
        assert_eq!(rig.get(4, 0) & 0xffff, 0x3800);
        for lane in 0..rig.lanes() {
            rig.set64(2, lane, 0);
        }
        rig.run(&op("v_add_f64", v2(4), &[half, v2(2)]));
        assert_eq!(rig.get64(4, 0), 0.5f64.to_bits());
        // A literal is the high half of an f64.
        rig.run(&op("v_add_f64", v2(4), &[Operand::Literal(0x4009_0000), v2(2)]));
        assert_eq!(rig.get64(4, 0), 3.125f64.to_bits());
        // It is sign-extended in a signed 64-bit operand, zero-extended in an unsigned one.
        rig.run(&op("v_ashrrev_i64", v2(4), &[Operand::Int(0), Operand::Literal(0x8000_0000)]));
        assert_eq!(rig.get64(4, 0), 0xffff_ffff_8000_0000);
        rig.run(&op("v_lshrrev_b64", v2(4), &[Operand::Int(0), Operand::Literal(0x8000_0000)]));
        assert_eq!(rig.get64(4, 0), 0x8000_0000);
        rig.run(&op("v_lshrrev_b64", v2(4), &[Operand::Int(0), Operand::Int(-2)]));
        assert_eq!(rig.get64(4, 0), u64::MAX - 1);
    }
}

#[test]
fn scalar_sources_are_the_same_in_all_lanes() {
    for mut rig in Rig::all() {
        rig.wave.set_scalar64(10, 0x1122_3344_5566_7788);
        rig.run(&op("v_mov_b32", v(4), &[s(10)]));
        assert!(rig.row(4).iter().all(|word| *word == 0x5566_7788));
        rig.run(&op("v_mov_b64", v2(4), &[s2(10)]));
        assert_eq!(rig.get64(4, rig.lanes() - 1), 0x1122_3344_5566_7788);
        for lane in 0..rig.lanes() {
            rig.set(1, lane, lane);
        }
        rig.run(&op("v_add3_u32", v(4), &[s(10), v(1), s(10)]));
        assert_eq!(rig.get(4, 3), 0x5566_7788u32.wrapping_mul(2) + 3);
    }
}

#[test]
fn registers_beyond_the_allocation_are_refused() {
    let mut rig = Rig::new(Target::Gfx1100, 32, HostLevel::Base);
    let error = rig.lower(&op("v_mov_b32", v(ROWS as u16), &[v(1)])).err();
    assert_eq!(error, Some(Unsupported::Register { register: ROWS, allocated: ROWS }));
    assert!(rig.lower(&op("v_lshlrev_b64", v2(ROWS as u16 - 1), &[v(1), v2(2)])).is_err());
}

#[test]
fn relative_moves_follow_m0() {
    for level in levels() {
        let mut rig = Rig::new(Target::Gfx1100, 32, level);
        for register in 0..20 {
            rig.fill(register, 100 + register);
        }
        rig.wave.scalar[scalar::M0 as usize] = 3;
        rig.run(&op("v_movrels_b32", v(1), &[v(10)]));
        assert_eq!(rig.get(1, 0), 113);
        rig.run(&op("v_movreld_b32", v(14), &[v(10)]));
        assert_eq!(rig.get(17, 0), 110);
        rig.wave.scalar[scalar::M0 as usize] = 1 | 2 << 16;
        rig.run(&op("v_movrelsd_2_b32", v(5), &[v(10)]));
        assert_eq!(rig.get(7, 0), 111);
        rig.run(&op("v_swaprel_b32", v(5), &[v(12)]));
        assert_eq!([rig.get(7, 0), rig.get(13, 0)], [113, 111]);
        // Beyond the allocation a source is v0 and a destination nothing.
        rig.wave.scalar[scalar::M0 as usize] = ROWS;
        rig.run(&op("v_movrels_b32", v(1), &[v(10)]));
        rig.run(&op("v_movreld_b32", v(10), &[v(2)]));
        assert_eq!([rig.get(1, 0), rig.get(10, 0)], [100, 110]);
    }
}

#[test]
fn swap_exchanges_active_lanes() {
    for mut rig in Rig::all() {
        rig.fill(1, 1);
        rig.fill(2, 2);
        rig.wave.set_exec(0b01);
        rig.run(&op("v_swap_b32", v(1), &[v(2)]));
        assert_eq!([rig.get(1, 0), rig.get(2, 0), rig.get(1, 1), rig.get(2, 1)], [2, 1, 1, 2]);
    }
}

#[test]
fn permlane16_selects_within_and_across_rows() {
    for mut rig in Rig::all() {
        for lane in 0..rig.lanes() {
            rig.set(1, lane, lane);
            rig.set(5, lane, lane ^ 3);
        }
        // Lane n reads lane 15 - n of its row, or of the neighbouring one.
        let (low, high) = (Operand::Literal(0x89ab_cdef), Operand::Literal(0x0123_4567));
        rig.run(&op("v_permlane16_b32", v(4), &[v(1), low, high]));
        assert_eq!([rig.get(4, 0), rig.get(4, 17)], [15, 30]);
        rig.run(&op("v_permlanex16_b32", v(4), &[v(1), low, high]));
        assert_eq!([rig.get(4, 0), rig.get(4, 17)], [31, 14]);
        rig.run(&op("v_permlane16_var_b32", v(4), &[v(1), v(5)]));
        assert_eq!([rig.get(4, 0), rig.get(4, 17)], [3, 18]);
        rig.run(&op("v_permlanex16_var_b32", v(4), &[v(1), v(5)]));
        assert_eq!([rig.get(4, 0), rig.get(4, 17)], [19, 2]);
        // Lane 15 is off: its reader keeps its value, gets 0, or fetches all the same.
        rig.wave.set_exec(!(1 << 15));
        for (op_sel, wanted) in [(0, 77), (2, 0), (1, 15)] {
            rig.fill(4, 77);
            let mut decoded = op("v_permlane16_b32", v(4), &[v(1), low, high]);
            decoded.mods.op_sel = op_sel;
            rig.run(&decoded);
            assert_eq!([rig.get(4, 0), rig.get(4, 15)], [wanted, 77], "op_sel {op_sel}");
        }
    }
}

#[test]
fn permlane64_swaps_halves_and_is_nothing_in_wave32() {
    for lanes in [32, 64] {
        let mut rig = Rig::new(Target::Gfx1100, lanes, HostLevel::detect());
        for lane in 0..lanes {
            rig.set(1, lane, lane);
        }
        rig.fill(4, 7);
        rig.run(&op("v_permlane64_b32", v(4), &[v(1)]));
        assert_eq!([rig.get(4, 0), rig.get(4, lanes - 1)], if lanes == 64 { [32, 31] } else { [7, 7] });
    }
}

fn dual(x: Decoded, y: Decoded) -> Decoded {
    let mut decoded = x;
    decoded.format = Format::Vopd;
    let mut second = y;
    second.format = Format::Vopd;
    decoded.second = Some(Box::new(second));
    decoded
}

#[test]
fn both_halves_of_vopd_read_before_either_writes() {
    for level in levels() {
        let mut rig = Rig::new(Target::Gfx1100, 32, level);
        let moves = |a: u16, b: u16, c: u16, d: u16| {
            dual(op("v_dual_mov_b32", v(a), &[v(b)]), op("v_dual_mov_b32", v(c), &[v(d)]))
        };
        let mut run = |decoded: &Decoded| {
            rig.fill(0, 10);
            rig.fill(1, 11);
            rig.fill(2, 12);
            rig.wave.set_exec(1);
            rig.run(decoded);
            assert_eq!([rig.get(0, 1), rig.get(1, 1)], [10, 11], "an inactive lane");
            rig.wave.set_exec(u64::MAX);
            [rig.get(0, 0), rig.get(1, 0)]
        };
        assert_eq!(run(&moves(0, 1, 1, 2)), [11, 12], "X reads what Y writes");
        assert_eq!(run(&moves(0, 2, 1, 0)), [12, 10], "Y reads what X writes");
        assert_eq!(run(&moves(0, 1, 1, 0)), [11, 10], "a swap");
    }
}

#[test]
fn vopd_accumulates_and_selects() {
    for level in levels() {
        let mut rig = Rig::new(Target::Gfx1100, 32, level);
        rig.fill(1, f(2.0));
        rig.fill(2, f(3.0));
        rig.fill(4, f(1.0));
        rig.set_vcc(0b10);
        let fmac = op("v_dual_fmac_f32", v(4), &[v(1), v(2), v(4)]);
        let select = op("v_dual_cndmask_b32", v(5), &[v(1), v(4), VCC]);
        rig.run(&dual(fmac, select));
        assert_eq!(f32::from_bits(rig.get(4, 0)), 7.0);
        assert_eq!([rig.get(5, 0), rig.get(5, 1)], [f(2.0), f(1.0)]);
    }
}

#[test]
fn scalar_functions_of_gfx12_take_and_give_scalars() {
    for level in levels() {
        let mut rig = Rig::new(Target::Gfx1201, 32, level);
        rig.wave.mode = 0xf0;
        rig.wave.set_exec(0);
        rig.wave.scalar[3] = f(8.0);
        rig.run(&op("v_s_log_f32", s(4), &[s(3)]));
        assert_eq!(f32::from_bits(rig.wave.scalar[4]), 3.0);
        let mut negated = op("v_s_rcp_f32", s(4), &[s(3)]);
        negated.mods.neg = 1;
        rig.run(&negated);
        assert_eq!((f32::from_bits(rig.wave.scalar[4]), rig.wave.exec), (-0.125, 0));
    }
}

#[test]
fn denormals_follow_mode() {
    let denormal = 0x0000_0100;
    for mut rig in Rig::all() {
        rig.fill(1, denormal);
        rig.fill(2, f(1.0));
        rig.fill(3, 0x0080_0001);
        rig.fill(5, f(0.5));
        let mut results = |mode: u32| {
            rig.wave.mode = mode;
            rig.run(&op("v_mul_f32", v(6), &[v(1), v(2)]));
            rig.run(&op("v_mul_f32", v(7), &[v(3), v(5)]));
            rig.run(&op("v_cmp_eq_f32", VCC, &[v(1), Operand::Int(0)]));
            [rig.get(6, 0), rig.get(7, 0), rig.vcc() as u32 & 1]
        };
        assert_eq!(results(0x3f0), [denormal, 0x0040_0000, 0], "kept");
        assert_eq!(results(0x3c0), [0, 0, 1], "sources and results flushed");
        assert_eq!(results(0x3d0), [0, 0, 0], "results flushed");
        assert_eq!(results(0x3e0), [0, 0x0040_0000, 1], "sources flushed");
        // f64 and f16 have bits of their own.
        for lane in 0..rig.lanes() {
            rig.set64(10, lane, 1);
        }
        for (mode, wanted) in [(0x3f0, 2), (0x3c0, 2), (0x330, 0)] {
            rig.wave.mode = mode;
            rig.run(&op("v_add_f64", v2(12), &[v2(10), v2(10)]));
            assert_eq!(rig.get64(12, 0), wanted, "mode {mode:#x}");
        }
    }
}

#[test]
fn flushing_keeps_the_sign_and_moves_are_no_arithmetic() {
    for mut rig in Rig::all() {
        rig.wave.mode = 0x3c0;
        rig.fill(1, 0x8000_0100);
        rig.fill(2, f(1.0));
        rig.run(&op("v_mul_f32", v(4), &[v(1), v(2)]));
        rig.run(&op("v_mov_b32", v(5), &[v(1)]));
        assert_eq!([rig.get(4, 0), rig.get(5, 0)], [0x8000_0000, 0x8000_0100]);
    }
}

#[test]
fn rounding_follows_mode() {
    for mut rig in Rig::all() {
        rig.fill(1, f(1.0));
        rig.fill(2, f(2f32.powi(-30)));
        rig.fill(3, f(-1.0));
        for lane in 0..rig.lanes() {
            rig.set64(10, lane, (1.0 + f64::EPSILON * 2f64.powi(20)).to_bits());
        }
        let above = 0x3f80_0001;
        for (round, up, down, narrowed) in [
            (0, f(1.0), f(-1.0), f(1.0)),
            (1, above, 0xbf7f_ffff, above),
            (2, f(1.0), f(-1.0), f(1.0)),
            (3, f(1.0), 0xbf7f_ffff, f(1.0)),
        ] {
            rig.wave.mode = 0x3f0 | round;
            rig.run(&op("v_add_f32", v(4), &[v(1), v(2)]));
            rig.run(&op("v_fma_f32", v(5), &[v(3), v(1), v(2)]));
            rig.run(&op("v_cvt_f32_f64", v(6), &[v2(10)]));
            assert_eq!([rig.get(4, 0), rig.get(5, 0), rig.get(6, 0)], [up, down, narrowed], "round {round}");
        }
        // The mode of f16 and f64 is apart.
        rig.wave.mode = 0x3f0 | 1 << 2;
        rig.run(&op("v_add_f32", v(4), &[v(1), v(2)]));
        rig.fill(7, f(1.0 + 2f32.powi(-20)));
        rig.run(&op("v_cvt_f16_f32", v(8), &[v(7)]));
        assert_eq!([rig.get(4, 0), rig.get(8, 0) & 0xffff], [f(1.0), 0x3c01]);
    }
}

#[test]
fn negations_work_while_mode_differs() {
    for mut rig in Rig::all() {
        rig.wave.mode = 0x3c1;
        rig.fill(1, f(1.0));
        rig.fill(2, f(2f32.powi(-30)));
        let mut decoded = op("v_add_f32", v(4), &[v(1), v(2)]);
        decoded.mods.neg = 2;
        rig.run(&decoded);
        assert_eq!(rig.get(4, 0), f(1.0), "upwards from just below 1");
        rig.wave.set_exec(0b10);
        rig.fill(4, 5);
        rig.run(&decoded);
        assert_eq!([rig.get(4, 0), rig.get(4, 1)], [5, f(1.0)]);
    }
}

#[test]
fn f16_overflow_follows_mode() {
    for mut rig in Rig::all() {
        rig.fill(1, 0x7bff);
        rig.fill(2, 0x7c00);
        let mut sums = |mode: u32| {
            rig.wave.mode = mode;
            rig.run(&op("v_add_f16", v(4), &[v(1), v(1)]));
            rig.run(&op("v_add_f16", v(5), &[v(1), v(2)]));
            [rig.get(4, 0) & 0xffff, rig.get(5, 0) & 0xffff]
        };
        assert_eq!(sums(MODE), [0x7c00, 0x7c00]);
        assert_eq!(sums(MODE | 1 << 23), [0x7bff, 0x7c00], "an infinite source stays infinite");
    }
}

#[test]
fn mad_is_unfused_and_flushes_whatever_mode_says() {
    for mut rig in Rig::all() {
        // The square of 1 + 2^-12 is 1 + 2^-11 + 2^-24, a tie that rounds down.
        rig.fill(1, f(1.0 + 2f32.powi(-12)));
        rig.fill(2, f(1.0 + 2f32.powi(-12)));
        rig.fill(3, f(-1.0 - 2f32.powi(-11)));
        rig.run(&op("v_mad_f32", v(4), &[v(1), v(2), v(3)]));
        rig.run(&op("v_fma_f32", v(5), &[v(1), v(2), v(3)]));
        assert_eq!([rig.get(4, 0), rig.get(5, 0)], [0, f(2f32.powi(-24))]);
        rig.fill(1, 0x0000_0100);
        rig.run(&op("v_mac_f32", v(4), &[v(1), v(3), v(1)]));
        assert_eq!(rig.get(4, 0) & 0x7fff_ffff, 0);
    }
}

#[test]
fn legacy_products_of_zero_are_zero() {
    for mut rig in Rig::all() {
        rig.fill(1, 0x8000_0000);
        for other in [0x7fc0_0000, 0x7f80_0000, f(-3.0)] {
            rig.fill(2, other);
            rig.fill(3, f(7.0));
            rig.run(&op("v_mul_legacy_f32", v(4), &[v(1), v(2)]));
            rig.run(&op("v_fma_legacy_f32", v(5), &[v(1), v(2), v(3)]));
            assert_eq!([rig.get(4, 0), rig.get(5, 0)], [0, f(7.0)]);
        }
    }
}

#[test]
fn nans_come_out_by_rule() {
    for mut rig in Rig::all() {
        rig.fill(1, 0x7f80_0000);
        rig.fill(2, 0xff80_0000);
        rig.fill(3, 0xff81_2345);
        rig.fill(5, 0x7fc0_0007);
        rig.run(&op("v_add_f32", v(4), &[v(1), v(2)]));
        assert_eq!(rig.get(4, 0), 0x7fc0_0000, "the default NaN");
        rig.run(&op("v_add_f32", v(4), &[v(1), v(3)]));
        assert_eq!(rig.get(4, 0), 0xffc1_2345, "quieted");
        rig.run(&op("v_fma_f32", v(4), &[v(1), v(5), v(3)]));
        assert_eq!(rig.get(4, 0), 0x7fc0_0007, "the first of two");
    }
}

#[test]
fn minimum_with_signalling_nan_depends_on_ieee() {
    for mut rig in Rig::all() {
        rig.fill(1, 0x7f80_0001);
        rig.fill(2, f(3.0));
        rig.run(&op("v_min_f32", v(4), &[v(1), v(2)]));
        assert_eq!(rig.get(4, 0), 0x7fc0_0001, "IEEE: the NaN, quieted");
        rig.wave.mode = MODE & !0x200;
        rig.run(&op("v_min_f32", v(4), &[v(1), v(2)]));
        assert_eq!(rig.get(4, 0), f(3.0), "without: the number");
        rig.wave.mode = MODE;
        rig.run(&op("v_min_num_f32", v(4), &[v(1), v(2)]));
        assert_eq!(rig.get(4, 0), f(3.0), "GFX12: the number");
        rig.run(&op("v_minimum_f32", v(4), &[v(2), v(1)]));
        assert_eq!(rig.get(4, 0), 0x7fc0_0001, "GFX12 minimum: the NaN");
    }
}

#[test]
fn minus_zero_is_below_zero() {
    for mut rig in Rig::all() {
        rig.fill(1, 0);
        rig.fill(2, 0x8000_0000);
        for (a, b) in [(1, 2), (2, 1)] {
            rig.run(&op("v_min_f32", v(4), &[v(a), v(b)]));
            rig.run(&op("v_max_f32", v(5), &[v(a), v(b)]));
            assert_eq!([rig.get(4, 0), rig.get(5, 0)], [0x8000_0000, 0]);
        }
    }
}

#[test]
fn sine_takes_turns_and_gives_up_beyond_256() {
    for mut rig in Rig::all() {
        let mut functions = |turns: f32| {
            rig.fill(1, f(turns));
            rig.run(&op("v_sin_f32", v(4), &[v(1)]));
            rig.run(&op("v_cos_f32", v(5), &[v(1)]));
            [rig.get(4, 0), rig.get(5, 0)].map(f32::from_bits)
        };
        assert_eq!(functions(0.25), [1.0, 0.0]);
        assert_eq!(functions(0.5)[1], -1.0);
        assert_eq!(functions(-0.25), [-1.0, 0.0]);
        assert_eq!(functions(300.1), [0.0, 1.0]);
        assert!(functions(f32::INFINITY)[0].is_nan());
    }
}

#[test]
fn single_functions_take_no_denormals() {
    for mut rig in Rig::all() {
        rig.fill(1, 0x8000_0100);
        for (name, wanted) in [
            ("v_rcp_f32", 0xff80_0000),
            ("v_rsq_f32", 0xff80_0000),
            ("v_sqrt_f32", 0x8000_0000),
            ("v_log_f32", 0xff80_0000),
        ] {
            rig.run(&op(name, v(4), &[v(1)]));
            assert_eq!(rig.get(4, 0), wanted, "{name}");
        }
        rig.fill(1, f(-140.0));
        rig.run(&op("v_exp_f32", v(4), &[v(1)]));
        assert_eq!(rig.get(4, 0), 0);
        rig.fill(1, f(2f32.powi(127)));
        rig.run(&op("v_rcp_f32", v(4), &[v(1)]));
        assert_eq!(rig.get(4, 0), 0);
    }
}

#[test]
fn integer_conversions_saturate_and_nan_is_0() {
    for mut rig in Rig::all() {
        for (x, signed, unsigned) in [
            (f32::NAN, 0, 0),
            (f32::INFINITY, 0x7fff_ffff, u32::MAX),
            (-1e20, 0x8000_0000, 0),
            (3e9, 0x7fff_ffff, 3_000_000_000),
            (-0.9, 0, 0),
        ] {
            rig.fill(1, f(x));
            rig.run(&op("v_cvt_i32_f32", v(4), &[v(1)]));
            rig.run(&op("v_cvt_u32_f32", v(5), &[v(1)]));
            assert_eq!([rig.get(4, 0), rig.get(5, 0)], [signed, unsigned], "{x}");
        }
    }
}

#[test]
fn trig_preop_gives_bits_of_two_over_pi() {
    for mut rig in Rig::all() {
        let mut segment = |x: f64, index: i8| {
            for lane in 0..rig.lanes() {
                rig.set64(2, lane, x.to_bits());
            }
            rig.run(&op("v_trig_preop_f64", v2(4), &[v2(2), Operand::Int(index)]));
            f64::from_bits(rig.get64(4, 0))
        };
        let sum = segment(1.0, 0) + segment(1.0, 1);
        assert_eq!(sum, std::f64::consts::FRAC_2_PI);
        // A large argument moves the window, and the scale with it.
        assert!(segment(2f64.powi(200), 0) < segment(1.0, 1));
    }
}

#[test]
fn eight_bit_floats_in_both_families() {
    for (target, lanes, one, largest, beyond) in
        [(Target::Gfx942, 64, 0x40, 0x7f, 0x80), (Target::Gfx1201, 32, 0x38, 0x7e, 0x7f)]
    {
        for level in levels() {
            let mut rig = Rig::new(target, lanes, level);
            let most = if target == Target::Gfx942 { 240.0 } else { 448.0 };
            let mut pack = |a: f32, b: f32, mode: u32| {
                rig.wave.mode = mode;
                rig.fill(1, f(a));
                rig.fill(2, f(b));
                rig.fill(4, 0xdead_beef);
                rig.run(&op("v_cvt_pk_fp8_f32", v(4), &[v(1), v(2)]));
                rig.get(4, 0)
            };
            assert_eq!(pack(1.0, most, MODE), 0xdead_0000 | largest << 8 | one, "{target}");
            assert_eq!(pack(1e6, 0.0, MODE) & 0xff, beyond, "{target}: beyond the largest");
            assert_eq!(pack(1e6, 0.0, MODE | 1 << 23) & 0xff, largest, "{target}: FP16_OVFL");
            // Every byte survives the way to f32 and back.
            for byte in 0..=255u32 {
                rig.wave.mode = MODE;
                rig.fill(1, byte);
                rig.run(&op("v_cvt_f32_fp8", v(2), &[v(1)]));
                rig.run(&op("v_cvt_pk_fp8_f32", v(3), &[v(2), v(2)]));
                let value = f32::from_bits(rig.get(2, 0));
                assert!(value.is_nan() || rig.get(3, 0) & 0xff == byte, "{target}: {byte:#x} is {value}");
            }
            // Two from the half that `op_sel`, or in the short form of GFX12 the register number, names.
            rig.fill(1, one << 16 | largest << 24);
            let mut pair = op("v_cvt_pk_f32_fp8", Operand::Vgpr { reg: 2, dwords: 2, hi: false }, &[v(1)]);
            let expected = [f(1.0), f(most)];
            pair.mods.op_sel = 1;
            rig.run(&pair);
            assert_eq!([rig.get(2, 0), rig.get(3, 0)], expected, "{target}");
            pair.mods.op_sel = 0;
            pair.src[0] = Operand::Vgpr { reg: 1, dwords: 1, hi: true };
            rig.fill(2, 0);
            rig.run(&pair);
            assert_eq!([rig.get(2, 0), rig.get(3, 0)], expected, "{target}");
        }
    }
}

#[test]
fn every_vector_mnemonic_has_a_handler_or_is_named_here() {
    let missing = |name: &str| {
        // Sparse matrices, a debugging aid without meaning here, and the illegal instruction.
        name.starts_with("v_smfmac_")
            || name.starts_with("v_swmmac_")
            || ["v_screen_partition_4se_b32", "v_illegal"].contains(&name)
    };
    let mut unknown = Vec::new();
    for target in Target::ALL {
        let mut rig = Rig::new(target, 64, HostLevel::Base);
        for line in crate::isa::table::text(target).lines().filter(|line| line.starts_with("vop")) {
            let name = line.split('\t').nth(2).unwrap();
            // Operands that fit hardly anything: what counts is whether the name is known.
            let any = Operand::Vgpr { reg: 0, dwords: 2, hi: false };
            let error = rig.lower(&op(name, any, &[any, any, any])).err();
            if error == Some(Unsupported::Operation) && !missing(name) {
                unknown.push(format!("{target} {name}"));
            }
        }
    }
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
}

#[test]
fn operands_that_are_halves_are_taken_as_halves() {
    use crate::isa::layout::Form;
    use crate::isa::table::{Kind, Slot, Table};
    let mut wrong = Vec::new();
    for target in [Target::Gfx1100, Target::Gfx1201] {
        for form in Form::ALL.iter().copied() {
            let Some(table) = Table::of(target).form(form) else { continue };
            for (_, row) in table.rows() {
                // Of these the immediate names the half.
                if row.mnemonic.starts_with("v_cvt_pk_f32_") {
                    continue;
                }
                let Some(entry) = crate::cu::valu::table::find(row.mnemonic) else { continue };
                for operand in row.operands.iter().filter(|operand| matches!(operand.kind, Kind::Vgpr16 | Kind::Src16))
                {
                    let kind = match operand.slot {
                        Slot::Dst => entry.dst,
                        Slot::Src(index) => entry.src[index as usize],
                        _ => continue,
                    };
                    let word = format!("{} {:?}", row.mnemonic, operand.slot);
                    if !kind.is_16() && !wrong.contains(&word) {
                        wrong.push(word);
                    }
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

//! SMEM.

use super::super::super::wave::scalar;
use super::*;
use crate::isa::Special;

const BASE: u64 = 0x50_0000;

fn load(name: &'static str, reg: u8, dwords: u8, offset: i32) -> Decoded {
    with(inst(Format::Smem, name, s(reg, dwords), [s(0, 2)]), |mods| mods.offset = offset)
}

#[test]
fn widths_and_names() {
    for (target, names) in [
        (
            Target::Gfx90a,
            [
                ("s_load_dword", 1),
                ("s_load_dwordx2", 2),
                ("s_load_dwordx4", 4),
                ("s_load_dwordx8", 8),
                ("s_load_dwordx16", 16),
            ],
        ),
        (
            Target::Gfx1201,
            [("s_load_b32", 1), ("s_load_b64", 2), ("s_load_b96", 3), ("s_load_b256", 8), ("s_load_b512", 16)],
        ),
    ] {
        let mut rig = Rig::new(target, 64);
        rig.map(BASE, 2, false);
        for (name, dwords) in names {
            // Also over a page boundary.
            for start in [BASE + 64, BASE + PAGE - 4] {
                rig.s64(0, start + 0x20);
                rig.wave.scalar[16..33].fill(0xaaaa_aaaa);
                // EXEC does not matter.
                rig.wave.set_exec(0);
                rig.ok(&load(name, 16, dwords, -0x20));
                for index in 0..17 {
                    let expected = if index < dwords { pattern32(start + 4 * index as u64) } else { 0xaaaa_aaaa };
                    assert_eq!(rig.wave.scalar[16 + index as usize], expected, "{name} {index}");
                }
            }
        }
    }
}

#[test]
fn offsets_add_up_and_are_cut_to_a_dword() {
    let mut rig = Rig::new(Target::Gfx1100, 32);
    rig.map(BASE, 1, false);
    rig.s64(0, BASE);
    rig.wave.scalar[9] = 0x105;
    let decoded = with(inst(Format::Smem, "s_load_b32", s(4, 1), [s(0, 2), s(9, 1)]), |mods| mods.offset = 0xd);
    rig.ok(&decoded);
    assert_eq!(rig.wave.scalar[4], pattern32(BASE + 0x110));
    // The destination may be the base; NULL takes nothing.
    rig.ok(&load("s_load_b64", 0, 2, 8));
    assert_eq!(rig.wave.scalar[..2], [pattern32(BASE + 8), pattern32(BASE + 12)]);
    rig.s64(0, BASE);
    let null = Operand::Special { reg: Special::Null, dwords: 1 };
    rig.ok(&inst(Format::Smem, "s_load_b32", null, [s(0, 2), null]));
    assert_eq!(rig.wave.scalar[scalar::NULL as usize], 0);
}

#[test]
fn bytes_and_halves() {
    let mut rig = Rig::new(Target::Gfx1201, 32);
    rig.map(BASE, 1, false);
    rig.s64(0, BASE);
    for offset in [0, 1, 3, 5, 6] {
        let va = BASE + offset as u64;
        rig.ok(&load("s_load_u8", 8, 1, offset));
        assert_eq!(rig.wave.scalar[8], pattern(va) as u32);
        rig.ok(&load("s_load_i8", 8, 1, offset));
        assert_eq!(rig.wave.scalar[8], pattern(va) as i8 as u32);
        rig.ok(&load("s_load_u16", 8, 1, offset & !1));
        assert_eq!(rig.wave.scalar[8], pattern16(va & !1) as u32);
        rig.ok(&load("s_load_i16", 8, 1, offset & !1));
        assert_eq!(rig.wave.scalar[8], pattern16(va & !1) as i16 as u32);
    }
}

#[test]
fn faults_leave_registers_alone() {
    let mut rig = Rig::new(Target::Gfx90a, 64);
    rig.map(BASE, 1, false);
    rig.s64(0, BASE + PAGE - 8);
    rig.wave.scalar[16..20].fill(7);
    let fault = rig.fault(&load("s_load_dwordx4", 16, 4, 0));
    assert_eq!(kind(&fault), (FaultKind::NotPresent, BASE + PAGE, Some(Access::Read), 0));
    assert_eq!(rig.wave.scalar[16..20], [7; 4]);
}

#[test]
fn buffers_end_at_num_records() {
    for (stride, records) in [(0u32, 40u32), (8, 5)] {
        let mut rig = Rig::new(Target::Gfx1100, 32);
        rig.map(BASE, 1, false);
        rig.s64(4, BASE | (stride as u64) << 48);
        rig.wave.scalar[6] = records;
        rig.wave.scalar[7] = 0;
        let decoded = inst(Format::Smem, "s_buffer_load_b128", s(16, 4), [s(4, 4)]);
        rig.ok(&with(decoded, |mods| mods.offset = 32));
        assert_eq!(rig.wave.scalar[16..20], [pattern32(BASE + 32), pattern32(BASE + 36), 0, 0]);
        let decoded = inst(Format::Smem, "s_buffer_load_b64", s(16, 2), [s(4, 4)]);
        rig.ok(&with(decoded, |mods| mods.offset = 4000));
        assert_eq!(rig.wave.scalar[16..18], [0, 0]);
    }
}

#[test]
fn scalar_stores_and_atomics() {
    let mut rig = Rig::new(Target::Gfx90a, 64);
    rig.map(BASE, 1, true);
    rig.map(BASE + PAGE, 1, false);
    rig.s64(0, BASE + 16);
    rig.wave.scalar[8..12].copy_from_slice(&[1, 2, 3, 4]);
    let data = |dwords| [s(0, 2), Operand::None, s(8, dwords)];
    let store = inst(Format::Smem, "s_store_dwordx4", Operand::None, data(4));
    rig.ok(&with(store.clone(), |mods| mods.offset = 7));
    assert_eq!([20, 24, 28, 32].map(|at| rig.peek(BASE + at)), [1, 2, 3, 4]);
    let fault = rig.fault(&with(store, |mods| mods.offset = 4096 - 24));
    assert_eq!(kind(&fault), (FaultKind::ReadOnly, BASE + PAGE, Some(Access::Write), 0));
    assert_eq!(rig.peek(BASE + PAGE - 8), pattern32(BASE + PAGE - 8));

    // One for the wave, whatever EXEC says.
    rig.wave.set_exec(0);
    let add = inst(Format::Smem, "s_atomic_add", s(12, 1), data(1));
    rig.ok(&with(add, |mods| (mods.offset, mods.returns) = (16, true)));
    assert_eq!((rig.peek(BASE + 32), rig.wave.scalar[12]), (5, 4));
    rig.wave.scalar[8..12].copy_from_slice(&[70, 80, 2, 3]);
    let swap = inst(Format::Smem, "s_atomic_cmpswap_x2", s(8, 2), data(4));
    rig.ok(&with(swap.clone(), |mods| (mods.offset, mods.returns) = (8, true)));
    assert_eq!((rig.peek(BASE + 24), rig.peek(BASE + 28)), (70, 80));
    assert_eq!(rig.wave.scalar[8..10], [2, 3]);
    let fault = rig.fault(&with(swap, |mods| mods.offset = 4));
    assert_eq!(kind(&fault), (FaultKind::Aperture, BASE + 20, Some(Access::Atomic), 0));

    // A buffer's end.
    rig.s64(4, BASE);
    (rig.wave.scalar[6], rig.wave.scalar[7]) = (24, 0);
    let store = inst(Format::Smem, "s_buffer_store_dwordx2", Operand::None, [s(4, 4), Operand::None, s(8, 2)]);
    rig.ok(&with(store, |mods| mods.offset = 20));
    assert_eq!((rig.peek(BASE + 20), rig.peek(BASE + 24)), (2, 70));
    let add = inst(Format::Smem, "s_buffer_atomic_or", s(12, 1), [s(4, 4), Operand::None, s(8, 1)]);
    rig.ok(&with(add, |mods| (mods.offset, mods.returns) = (24, true)));
    assert_eq!((rig.peek(BASE + 24), rig.wave.scalar[12]), (70, 0));
}

#[test]
fn clocks_run() {
    let mut rig = Rig::new(Target::Gfx90a, 64);
    for name in ["s_memrealtime", "s_memtime"] {
        let read = |rig: &mut Rig| {
            rig.ok(&inst::<0>(Format::Smem, name, s(4, 2), []));
            rig.wave.scalar64(4)
        };
        let first = read(&mut rig);
        std::thread::sleep(std::time::Duration::from_millis(2));
        let ticks = read(&mut rig) - first;
        let least = if name == "s_memtime" { 2_000_000 } else { 200_000 };
        assert!(ticks >= least && ticks < least * 5000, "{name}: {ticks}");
    }
}

#[test]
fn writing_exec_keeps_its_row() {
    let mut rig = Rig::new(Target::Gfx90a, 64);
    rig.map(BASE, 1, true);
    rig.poke(BASE, 0x5);
    rig.poke(BASE + 4, 0x8000_0000);
    rig.s64(0, BASE);
    let exec = Operand::Special { reg: Special::ExecLo, dwords: 2 };
    rig.ok(&inst(Format::Smem, "s_load_dwordx2", exec, [s(0, 2)]));
    assert_eq!(rig.wave.exec, 0x8000_0000_0000_0005);
    assert_eq!((rig.wave.exec_row.0[2], rig.wave.exec_row.0[3], rig.wave.exec_row.0[63]), (u32::MAX, 0, u32::MAX));
}

#[test]
fn cache_controls_and_refusals() {
    let mut rig = Rig::new(Target::Gfx1030, 32);
    for name in ["s_dcache_inv", "s_dcache_wb", "s_gl1_inv"] {
        rig.ok(&inst::<0>(Format::Smem, name, Operand::None, []));
    }
    for name in ["s_scratch_load_dwordx3", "s_store_dwordx8", "s_atomic_frob"] {
        assert!(matches!(rig.lower(&inst(Format::Smem, name, s(4, 1), [s(0, 2)])), Err(Unsupported::Operation)));
    }
}

#[test]
fn scalar_scratch_counts_its_offset_register_in_64_bytes() {
    let mut rig = Rig::new(Target::Gfx90a, 64);
    rig.map(BASE, 1, true);
    rig.s64(0, BASE);
    rig.wave.scalar[9] = 3;
    let load = inst(Format::Smem, "s_scratch_load_dwordx2", s(4, 2), [s(0, 2), s(9, 1)]);
    rig.ok(&with(load, |mods| mods.offset = 8));
    assert_eq!((rig.wave.scalar[4], rig.wave.scalar[5]), (pattern32(BASE + 200), pattern32(BASE + 204)));
    rig.ok(&load_at("s_scratch_load_dword", 0x40));
    assert_eq!(rig.wave.scalar[6], pattern32(BASE + 0x40), "the immediate counts bytes");
    rig.wave.scalar[4..8].copy_from_slice(&[1, 2, 3, 4]);
    rig.ok(&inst(Format::Smem, "s_scratch_store_dwordx4", Operand::None, [s(0, 2), s(9, 1), s(4, 4)]));
    assert_eq!([0, 4, 8, 12].map(|byte| rig.peek(BASE + 192 + byte)), [1, 2, 3, 4]);
}

fn load_at(name: &'static str, offset: i32) -> Decoded {
    load(name, 6, 1, offset)
}

//! Vector atomics.

use super::super::atomic::{Rmw, apply32, apply64};
use super::*;
use std::sync::atomic::{AtomicU32, Ordering};

const BASE: u64 = 0x60_0000;

#[test]
fn integer_rules() {
    let cases: [(Rmw, u32, u32, u32, u32); 27] = [
        (Rmw::Swap, 1, 2, 0, 2),
        (Rmw::CmpSwap, 1, 2, 1, 2),
        (Rmw::CmpSwap, 1, 2, 3, 1),
        (Rmw::Add, u32::MAX, 2, 0, 1),
        (Rmw::Sub, 1, 2, 0, u32::MAX),
        (Rmw::RSub, 1, 3, 0, 2),
        (Rmw::SubClamp, 5, 7, 0, 0),
        (Rmw::SubClamp, 7, 5, 0, 2),
        (Rmw::CondSub, 5, 7, 0, 5),
        (Rmw::CondSub, 7, 7, 0, 0),
        (Rmw::SMin, u32::MAX, 0, 0, u32::MAX),
        (Rmw::SMax, u32::MAX, 0, 0, 0),
        (Rmw::UMin, u32::MAX, 0, 0, 0),
        (Rmw::UMax, u32::MAX, 0, 0, u32::MAX),
        (Rmw::And, 12, 10, 0, 8),
        (Rmw::Or, 12, 10, 0, 14),
        (Rmw::Xor, 12, 10, 0, 6),
        (Rmw::Inc, 3, 4, 0, 4),
        (Rmw::Inc, 4, 4, 0, 0),
        (Rmw::Inc, 9, 4, 0, 0),
        (Rmw::Inc, u32::MAX - 1, u32::MAX, 0, u32::MAX),
        (Rmw::Dec, 3, 4, 0, 2),
        (Rmw::Dec, 0, 4, 0, 4),
        (Rmw::Dec, 5, 4, 0, 4),
        (Rmw::Dec, 4, 4, 0, 3),
        (Rmw::MaskOr, 0xf0, 0x30, 0x01, 0xc1),
        (Rmw::Wrap, 3, 5, 4, 7),
    ];
    for (op, old, data, cmp, expected) in cases {
        assert_eq!(apply32(op, old, data, cmp), expected, "{op:?} {old} {data} {cmp}");
    }
    assert_eq!(apply64(Rmw::Inc, u64::MAX - 1, u64::MAX, 0), u64::MAX);
    assert_eq!(apply64(Rmw::Dec, 0, 7, 0), 7);
    assert_eq!(apply64(Rmw::SMin, u64::MAX, 0, 0), u64::MAX);
    assert_eq!(apply64(Rmw::UMin, u64::MAX, 1 << 40, 0), 1 << 40);
}

#[test]
fn float_rules() {
    let f = |op, a: f32, b: f32| f32::from_bits(apply32(op, a.to_bits(), b.to_bits(), 0));
    let bits = |op, a: f32, b: f32| apply32(op, a.to_bits(), b.to_bits(), 0);
    assert_eq!(f(Rmw::FAdd, 1.5, 2.25), 3.75);
    // Denormals are kept.
    assert_eq!(bits(Rmw::FAdd, f32::from_bits(1), f32::from_bits(1)), 2);
    assert_eq!(f(Rmw::FMin, 1.0, f32::NAN), 1.0);
    assert_eq!(f(Rmw::FMin, f32::NAN, 2.0), 2.0);
    assert_eq!(f(Rmw::FMax, -1.0, f32::NEG_INFINITY), -1.0);
    assert_eq!(bits(Rmw::FMin, 0.0, -0.0), (-0f32).to_bits());
    assert_eq!(bits(Rmw::FMin, -0.0, 0.0), (-0f32).to_bits());
    assert_eq!(bits(Rmw::FMax, 0.0, -0.0), 0);
    assert_eq!(bits(Rmw::FMax, -0.0, 0.0), 0);
    let swap = |old: f32, new: f32, cmp: f32| apply32(Rmw::FCmpSwap, old.to_bits(), new.to_bits(), cmp.to_bits());
    assert_eq!(swap(0.0, 5.0, -0.0), 5f32.to_bits());
    assert_eq!(swap(f32::NAN, 5.0, f32::NAN), f32::NAN.to_bits());
    assert_eq!(apply64(Rmw::FMax, 1f64.to_bits(), 3f64.to_bits(), 0), 3f64.to_bits());
    assert_eq!(apply32(Rmw::PkAddF16, 0x7bff_3c00, 0x7bff_0001, 0), 0x7c00_3c00);
    assert_eq!(apply32(Rmw::PkAddBf16, 0x3f80_4000, 0x3f80_3f80, 0), 0x4000_4040);
}

fn name(rig: &Rig, before: &'static str, after: &'static str) -> &'static str {
    if rig.target.family() < crate::isa::Family::Gfx11 { before } else { after }
}

#[test]
fn lanes_on_one_word_go_upward() {
    for mut rig in Rig::all(&[Target::Gfx90a, Target::Gfx1100]) {
        rig.map(BASE, 1, true);
        for (format, prefix) in [(Format::Global, "global_"), (Format::Flat, "flat_")] {
            rig.poke(BASE + 8, 50);
            rig.row64(2, |_| BASE);
            rig.row(4, |lane| lane);
            let name = format!("{prefix}{}", name(&rig, "atomic_add", "atomic_add_u32")).leak();
            let add = inst(format, name, v(6, 1), [v(2, 2), v(4, 1), Operand::Off]);
            let mask = rig.wave.full_mask() & !0b1000;
            rig.wave.set_exec(mask);
            rig.row(6, |_| 9);
            rig.ok(&with(add, |mods| (mods.offset, mods.returns) = (8, true)));
            let mut sum = 50;
            for lane in 0..rig.lanes() {
                assert_eq!(rig.v(6, lane), if lane == 3 { 9 } else { sum });
                sum += if lane == 3 { 0 } else { lane };
            }
            assert_eq!(rig.peek(BASE + 8), sum);
            // Without return the destination stays.
            rig.row(6, |_| 9);
            let add = inst(format, name, Operand::None, [v(2, 2), v(4, 1), Operand::Off]);
            rig.ok(&with(add, |mods| mods.offset = 8));
            assert_eq!(rig.v(6, 0), 9);
        }
    }
}

#[test]
fn compare_and_swap_takes_new_then_compared() {
    for mut rig in Rig::all(&[Target::Gfx90a, Target::Gfx1201]) {
        rig.map(BASE, 1, true);
        rig.poke(BASE + 16, 7);
        rig.s64(4, BASE);
        rig.row(2, |_| 16);
        rig.row(4, |lane| 1000 + lane);
        rig.row(5, |lane| if lane == 0 { 7 } else { 1000 + lane - 1 });
        let name32 = name(&rig, "global_atomic_cmpswap", "global_atomic_cmpswap_b32");
        let swap = with(inst(Format::Global, name32, v(4, 1), [v(2, 1), v(4, 2), s(4, 2)]), |mods| mods.returns = true);
        rig.ok(&swap);
        assert_eq!(rig.peek(BASE + 16), 1000 + rig.lanes() - 1);
        assert_eq!((rig.v(4, 0), rig.v(4, 1)), (7, 1000), "the destination may be the data");
        // 64 bits.
        rig.poke(BASE + 24, 1);
        rig.poke(BASE + 28, 2);
        rig.wave.set_exec(0b10);
        rig.row(2, |_| 24);
        rig.row64(4, |_| 0x1111_2222_3333_4444);
        rig.row64(6, |_| 2 << 32 | 1);
        let name64 = name(&rig, "global_atomic_cmpswap_x2", "global_atomic_cmpswap_b64");
        let swap = with(inst(Format::Global, name64, v(8, 2), [v(2, 1), v(4, 4), s(4, 2)]), |mods| mods.returns = true);
        rig.ok(&swap);
        assert_eq!((rig.v(8, 1), rig.v(9, 1)), (1, 2));
        assert_eq!((rig.peek(BASE + 24), rig.peek(BASE + 28)), (0x3333_4444, 0x1111_2222));
    }
}

#[test]
fn lanes_on_words_of_their_own() {
    for mut rig in Rig::all(&[Target::Gfx90a, Target::Gfx1100]) {
        rig.map(BASE, 1, true);
        rig.row64(2, |lane| BASE + 8 * (lane * 7 % 64));
        rig.row64(4, |lane| lane << 33 | lane);
        let name = name(&rig, "global_atomic_add_x2", "global_atomic_add_u64");
        let add =
            with(inst(Format::Global, name, v(6, 2), [v(2, 2), v(4, 2), Operand::Off]), |mods| mods.returns = true);
        rig.ok(&add);
        for lane in 0..rig.lanes() {
            let va = BASE + 8 * (lane as u64 * 7 % 64);
            let before = pattern32(va) as u64 | (pattern32(va + 4) as u64) << 32;
            assert_eq!(rig.v(6, lane) as u64 | (rig.v(7, lane) as u64) << 32, before);
            let after = rig.peek(va) as u64 | (rig.peek(va + 4) as u64) << 32;
            assert_eq!(after, before.wrapping_add((lane as u64) << 33 | lane as u64));
        }
    }
}

#[test]
fn misaligned_or_denied_atomics_fault_before_any_lane() {
    let mut rig = Rig::new(Target::Gfx1100, 32);
    rig.map(BASE, 1, true);
    rig.map(BASE + PAGE, 1, false);
    rig.row(4, |_| 1);
    let add = inst(Format::Global, "global_atomic_add_u32", Operand::None, [v(2, 2), v(4, 1), Operand::Off]);
    rig.row64(2, |lane| BASE + 4 * lane + if lane == 4 || lane == 6 { 2 } else { 0 });
    let fault = rig.fault(&add);
    assert_eq!(kind(&fault), (FaultKind::Aperture, BASE + 18, Some(Access::Atomic), 1 << 4 | 1 << 6));
    assert_eq!(fault.detail, "an atomic of 4 bytes needs an address that is a multiple of 4");
    assert_eq!(rig.peek(BASE), pattern32(BASE));
    rig.row64(2, |lane| BASE + 4 * lane + if lane == 9 { PAGE } else { 0 });
    let fault = rig.fault(&add);
    assert_eq!(kind(&fault), (FaultKind::ReadOnly, BASE + PAGE + 36, Some(Access::Atomic), 1 << 9));
    assert_eq!(rig.peek(BASE), pattern32(BASE));
    let wide = inst(Format::Global, "global_atomic_add_u64", Operand::None, [v(2, 2), v(4, 2), Operand::Off]);
    rig.row64(2, |_| BASE + 4);
    assert_eq!(rig.fault(&wide).kind, FaultKind::Aperture);
}

#[test]
fn flat_atomics_on_lds_and_scratch() {
    let mut rig = Rig::new(Target::Gfx1100, 32);
    rig.map(BASE, 1, true);
    rig.scratch(0x10_0000, 32);
    for lane in 0..32 {
        rig.poke(0x10_0000 + 128 + 4 * lane, u32::MAX);
        rig.poke(0x10_0000 + 256 + 4 * lane, lane as u32);
    }
    rig.set_lds(8, u32::MAX);
    rig.set_lds(12, 3);
    rig.row64(2, |lane| match lane {
        0..16 => (SHARED as u64) << 32 | 8,
        31 => (SHARED as u64) << 32 | 1024,
        _ => (PRIVATE as u64) << 32 | 8,
    });
    rig.row64(4, |_| 1);
    let add = inst(Format::Flat, "flat_atomic_add_u64", v(6, 2), [v(2, 2), v(4, 2), Operand::Off]);
    // The private address must be aligned within the lane's segment.
    rig.ok(&with(add, |mods| mods.returns = true));
    assert_eq!((rig.lds(8), rig.lds(12)), (15, 4));
    assert_eq!((rig.v(6, 15), rig.v(7, 15)), (14, 4));
    assert_eq!((rig.v(6, 31), rig.v(7, 31)), (0, 0));
    for lane in 16..31u32 {
        // Byte 8 of a lane is its third dword.
        let at = 0x10_0000 + 2 * 128 + 4 * lane as u64;
        assert_eq!(rig.v(6, lane), lane);
        assert_eq!(rig.peek(at), lane + 1);
    }
}

#[test]
fn host_threads_see_each_step() {
    let mut rig = Rig::new(Target::Gfx1100, 32);
    rig.map(BASE, 1, true);
    rig.poke(BASE, 0);
    rig.row64(2, |_| BASE);
    rig.row(4, |_| 1);
    let host = rig.host(BASE, 4).addr();
    let other = std::thread::spawn(move || {
        // SAFETY: the mapping outlives the thread, which is joined below.
        let cell = unsafe { AtomicU32::from_ptr(std::ptr::with_exposed_provenance_mut(host)) };
        for _ in 0..20_000 {
            cell.fetch_add(1, Ordering::Relaxed);
        }
    });
    rig.host(BASE, 4).expose_provenance();
    let add = inst(Format::Global, "global_atomic_add_u32", Operand::None, [v(2, 2), v(4, 1), Operand::Off]);
    let max = inst(Format::Global, "global_atomic_max_u32", Operand::None, [v(2, 2), v(5, 1), Operand::Off]);
    for _ in 0..500 {
        rig.ok(&add);
        rig.ok(&max);
    }
    other.join().expect("the thread ends");
    assert_eq!(rig.peek(BASE), 20_000 + 500 * 32);
}

#[test]
fn fences() {
    let mut rig = Rig::new(Target::Gfx942, 64);
    for (format, name) in [
        (Format::Mubuf, "buffer_wbl2"),
        (Format::Mubuf, "buffer_inv"),
        (Format::Mubuf, "buffer_wbinvl1_vol"),
        (Format::Mubuf, "buffer_gl0_inv"),
        (Format::Mubuf, "buffer_gl1_inv"),
        (Format::Global, "global_inv"),
        (Format::Global, "global_wb"),
        (Format::Global, "global_wbinv"),
    ] {
        rig.ok(&inst::<0>(format, name, Operand::None, []));
    }
}

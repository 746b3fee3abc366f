//! The division sequences that compilers emit give correctly rounded quotients.

use super::*;

/// LLVM's expansion of an f32 division: v1 / v2 into v10.
fn divide32(rig: &mut Rig) {
    let neg = |mut decoded: Decoded, mask: u8| {
        decoded.mods.neg = mask;
        decoded
    };
    let scale = |dst: u16, a: u16, mask: Operand| {
        let mut decoded = op("v_div_scale_f32", v(dst), &[v(a), v(2), v(1)]);
        decoded.dst2 = mask;
        decoded
    };
    rig.run(&scale(3, 2, s2(30)));
    rig.run(&scale(4, 1, VCC));
    rig.run(&op("v_rcp_f32", v(5), &[v(3)]));
    rig.run(&neg(op("v_fma_f32", v(6), &[v(3), v(5), Operand::Float(242)]), 1));
    rig.run(&op("v_fma_f32", v(5), &[v(6), v(5), v(5)]));
    rig.run(&op("v_mul_f32", v(6), &[v(4), v(5)]));
    rig.run(&neg(op("v_fma_f32", v(7), &[v(3), v(6), v(4)]), 1));
    rig.run(&op("v_fma_f32", v(6), &[v(7), v(5), v(6)]));
    rig.run(&neg(op("v_fma_f32", v(7), &[v(3), v(6), v(4)]), 1));
    rig.run(&op("v_div_fmas_f32", v(8), &[v(7), v(5), v(6), VCC]));
    rig.run(&op("v_div_fixup_f32", v(10), &[v(8), v(2), v(1)]));
}

/// LLVM's expansion of an f64 division: v[2:3] / v[4:5] into v[20:21].
fn divide64(rig: &mut Rig) {
    let neg = |mut decoded: Decoded, mask: u8| {
        decoded.mods.neg = mask;
        decoded
    };
    let scale = |dst: u16, a: u16, mask: Operand| {
        let mut decoded = op("v_div_scale_f64", v2(dst), &[v2(a), v2(4), v2(2)]);
        decoded.dst2 = mask;
        decoded
    };
    let one = Operand::Float(242);
    rig.run(&scale(6, 4, s2(30)));
    rig.run(&op("v_rcp_f64", v2(8), &[v2(6)]));
    rig.run(&neg(op("v_fma_f64", v2(10), &[v2(6), v2(8), one]), 1));
    rig.run(&op("v_fma_f64", v2(8), &[v2(8), v2(10), v2(8)]));
    rig.run(&neg(op("v_fma_f64", v2(10), &[v2(6), v2(8), one]), 1));
    rig.run(&op("v_fma_f64", v2(8), &[v2(8), v2(10), v2(8)]));
    rig.run(&scale(10, 2, VCC));
    rig.run(&op("v_mul_f64", v2(12), &[v2(10), v2(8)]));
    rig.run(&neg(op("v_fma_f64", v2(6), &[v2(6), v2(12), v2(10)]), 1));
    rig.run(&op("v_div_fmas_f64", v2(6), &[v2(6), v2(8), v2(12), VCC]));
    rig.run(&op("v_div_fixup_f64", v2(20), &[v2(6), v2(4), v2(2)]));
}

#[test]
fn single_quotients() {
    for mut rig in Rig::all() {
        let mut random = Random(21);
        let mut check = |rig: &mut Rig, pairs: &dyn Fn(&mut Random, u32) -> (u32, u32)| {
            for lane in 0..rig.lanes() {
                let (x, y) = pairs(&mut random, lane);
                rig.set(1, lane, x);
                rig.set(2, lane, y);
            }
            divide32(rig);
            for lane in 0..rig.lanes() {
                let (x, y) = (f32::from_bits(rig.get(1, lane)), f32::from_bits(rig.get(2, lane)));
                let (got, wanted) = (f32::from_bits(rig.get(10, lane)), x / y);
                let same = got.is_nan() && wanted.is_nan() || got.to_bits() == wanted.to_bits();
                assert!(same, "{x:e} / {y:e} on {:?}: {got:e} is not {wanted:e}", rig.level);
            }
        };
        for x in F32_EDGES {
            for chunk in F32_EDGES.chunks(rig.lanes() as usize) {
                check(&mut rig, &|_, lane| (x, chunk[lane as usize % chunk.len()]));
            }
        }
        for _ in 0..300 {
            check(&mut rig, &|random, _| (random.value(Kind::F32) as u32, random.value(Kind::F32) as u32));
            check(&mut rig, &|random, _| (random.bits() as u32, random.bits() as u32));
        }
    }
}

#[test]
fn double_quotients() {
    for mut rig in Rig::all() {
        let mut random = Random(22);
        for round in 0..400 {
            for lane in 0..rig.lanes() {
                for register in [2, 4] {
                    let any = random.bits();
                    rig.set64(register, lane, if round % 2 == 0 { random.value(Kind::F64) } else { any });
                }
            }
            divide64(&mut rig);
            for lane in 0..rig.lanes() {
                let (x, y) = (f64::from_bits(rig.get64(2, lane)), f64::from_bits(rig.get64(4, lane)));
                let (got, wanted) = (f64::from_bits(rig.get64(20, lane)), x / y);
                let same = got.is_nan() && wanted.is_nan() || got.to_bits() == wanted.to_bits();
                assert!(same, "{x:e} / {y:e} on {:?}: {got:e} is not {wanted:e}", rig.level);
            }
        }
    }
}

/// What tests on hardware found: `v_div_scale_f32` asks for scaling back exactly when it scaled one side only, and gives
/// a NaN for a zero; `v_div_fmas_f32` scales by 2^64 up or down, by the exponent of its addend.
#[test]
fn div_scale_and_fmas_as_measured() {
    for mut rig in Rig::all() {
        let mut scale = |a: f32, b: f32, c: f32| {
            for (register, value) in [(1, a), (2, b), (3, c)] {
                rig.fill(register, value.to_bits());
            }
            let mut decoded = op("v_div_scale_f32", v(4), &[v(1), v(2), v(3)]);
            decoded.dst2 = VCC;
            rig.run(&decoded);
            (f32::from_bits(rig.get(4, 0)), rig.vcc() & 1)
        };
        assert_eq!(scale(1.0, 4.0, 1.0), (1.0, 0));
        assert_eq!(scale(1.0, 1.0, f32::MAX), (2f32.powi(64), 1));
        assert_eq!(scale(f32::MAX, 1.0, f32::MAX), (f32::MAX, 1));
        assert_eq!(scale(f32::MIN_POSITIVE, 1.0, f32::MIN_POSITIVE), (f32::MIN_POSITIVE * 2f32.powi(64), 1));
        assert_eq!(scale(1.0, 2f32.powi(127), 1.0), (1.0, 1));
        let (zero, mask) = scale(1.0, 0.0, 1.0);
        assert!(zero.is_nan() && mask == 1);
        let mut fmas = |a: f32, b: f32, c: f32, vcc: u64| {
            for (register, value) in [(1, a), (2, b), (3, c)] {
                rig.fill(register, value.to_bits());
            }
            rig.set_vcc(vcc);
            rig.run(&op("v_div_fmas_f32", v(4), &[v(1), v(2), v(3), VCC]));
            [0, 1].map(|lane| f32::from_bits(rig.get(4, lane)))
        };
        assert_eq!(fmas(1.0, 1.0, 2.0, 1), [3.0 * 2f32.powi(64), 3.0]);
        assert_eq!(fmas(2.0, 3.0, 1.0, 1), [7.0 * 2f32.powi(-64), 7.0]);
    }
}

/// A quotient that is not a number is an infinity where numerator and denominator are ordinary numbers.
#[test]
fn div_fixup_makes_infinity_of_a_nan_quotient() {
    for mut rig in Rig::all() {
        rig.fill(1, 0x7fc0_0000);
        rig.fill(2, (-2f32).to_bits());
        rig.fill(3, 3f32.to_bits());
        rig.run(&op("v_div_fixup_f32", v(4), &[v(1), v(2), v(3)]));
        assert_eq!(f32::from_bits(rig.get(4, 0)), f32::NEG_INFINITY);
    }
}

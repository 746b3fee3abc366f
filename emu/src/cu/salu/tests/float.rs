//! Floating point of GFX12.

use super::*;

fn gfx12() -> Bench {
    let mut b = Bench::new(Target::Gfx1201, 32);
    b.wave.mode = 0xf0;
    b
}

fn f(b: &mut Bench, name: &'static str, x: f32, y: f32) -> f32 {
    f32::from_bits(b.two(name, x.to_bits(), y.to_bits(), false).0)
}

/// Pairs that need rounding, denormals and overflow.
fn values() -> Vec<f32> {
    let mut bits = vec![0, 1, 0x7f_ffff, 0x80_0000, 0x3f80_0000, 0x7f7f_ffff, 0x7f80_0000, 0x3eaa_aaab, 0x4b7f_ffff];
    let mut state = 12345u32;
    for _ in 0..200 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        bits.push(state & 0x7fff_ffff);
    }
    bits.into_iter().flat_map(|b| [f32::from_bits(b), -f32::from_bits(b)]).filter(|f| !f.is_nan()).collect()
}

#[test]
fn nearest_even_agrees_with_the_host() {
    let mut b = gfx12();
    for x in values() {
        for y in values() {
            let same = |got: f32, want: f32| (got.is_nan() && want.is_nan()) || got.to_bits() == want.to_bits();
            let (sum, product) = (f(&mut b, "s_add_f32", x, y), f(&mut b, "s_mul_f32", x, y));
            assert!(same(sum, x + y), "{x:e} + {y:e} = {:e}, got {sum:e}", x + y);
            assert!(same(product, x * y), "{x:e} * {y:e} = {:e}, got {product:e}", x * y);
            b.set(4, 1.5f32.to_bits());
            b.step("s_fmac_f32", Format::Sop2, s(4), &[s(2), s(3)]);
            let fused = f32::from_bits(b.get(4));
            assert!(same(fused, x.mul_add(y, 1.5)), "{x:e} * {y:e} + 1.5, got {fused:e}");
        }
    }
}

#[test]
fn directed_rounding_brackets_the_exact_result() {
    let mut b = gfx12();
    let one_ulp = f32::EPSILON / 4.0;
    for (mode, plus, minus) in [(1, 1.0f32.next_up(), -1.0f32), (2, 1.0, -1.0f32.next_up()), (3, 1.0, -1.0)] {
        b.wave.mode = 0xf0 | mode;
        assert_eq!(f(&mut b, "s_add_f32", 1.0, one_ulp), plus);
        assert_eq!(f(&mut b, "s_add_f32", -1.0, -one_ulp), minus);
    }
    b.wave.mode = 0xf2;
    assert_eq!(f(&mut b, "s_sub_f32", 1.0, 1.0).to_bits(), 0x8000_0000, "a sum that cancels is -0 rounding down");
    b.wave.mode = 0xf3;
    assert_eq!(f(&mut b, "s_mul_f32", f32::MAX, 2.0), f32::MAX);
}

#[test]
fn denormals_go_as_mode_says() {
    let mut b = gfx12();
    let denormal = f32::from_bits(0x40_0000);
    b.wave.mode = 0x20;
    assert_eq!(f(&mut b, "s_add_f32", denormal, 0.0), 0.0, "a source counts as zero");
    b.wave.mode = 0x10;
    assert_eq!(f(&mut b, "s_mul_f32", f32::MIN_POSITIVE, 0.5), 0.0, "a result becomes zero");
    b.wave.mode = 0x30;
    assert_eq!(f(&mut b, "s_mul_f32", f32::MIN_POSITIVE, 0.5), denormal);
}

#[test]
fn nans_and_zeros_in_extremes() {
    let mut b = gfx12();
    let nan = f32::from_bits(0x7fa0_0000);
    assert_eq!(f(&mut b, "s_min_num_f32", nan, 2.0), 2.0);
    assert_eq!(f(&mut b, "s_minimum_f32", 2.0, nan).to_bits(), 0x7fe0_0000);
    assert_eq!(f(&mut b, "s_min_num_f32", 0.0, -0.0).to_bits(), 0x8000_0000);
    assert_eq!(f(&mut b, "s_max_num_f32", -0.0, 0.0).to_bits(), 0);
    assert!(b.compare("s_cmp_nlt_f32", nan.to_bits(), 0));
    assert!(!b.compare("s_cmp_lg_f32", nan.to_bits(), 0));
    assert!(b.compare("s_cmp_u_f32", nan.to_bits(), 0));
}

#[test]
fn half_precision_and_conversions() {
    let mut b = gfx12();
    let bits = |x: f32| x.to_bits();
    assert_eq!(b.one("s_cvt_f16_f32", bits(1.0)).0, 0x3c00);
    assert_eq!(b.one("s_cvt_f16_f32", bits(65520.0)).0, 0x7c00);
    assert_eq!(b.one("s_cvt_f16_f32", bits(5.960_464_5e-8)).0, 1);
    b.wave.mode |= 1 << 23;
    assert_eq!(b.one("s_cvt_f16_f32", bits(65520.0)).0, 0x7bff, "FP16_OVFL");
    assert_eq!(b.one("s_cvt_f32_f16", 0x0001).0, bits(5.960_464_5e-8));
    assert_eq!(b.one("s_cvt_hi_f32_f16", 0xbc00_0000).0, bits(-1.0));
    assert_eq!(b.two("s_add_f16", 0x3c00, 0x1000, false).0, 0x3c00, "1 + 2^-11 ties to even");
    assert_eq!(b.two("s_cvt_pk_rtz_f16_f32", bits(1.9999), bits(-2.0), false).0, 0xc000_3fff);
    assert_eq!(b.one("s_cvt_i32_f32", bits(-3.9)).0 as i32, -3);
    assert_eq!(b.one("s_cvt_u32_f32", bits(-3.9)).0, 0);
    assert_eq!(b.one("s_cvt_i32_f32", 0x7fc0_0000).0, 0);
    assert_eq!(b.one("s_cvt_f32_u32", u32::MAX).0, bits(4_294_967_300.0));
    assert_eq!(b.one("s_rndne_f32", bits(2.5)).0, bits(2.0));
    assert_eq!(b.one("s_ceil_f32", bits(-0.5)).0, bits(-0.0));
    b.set(2, bits(2.0));
    b.set(3, bits(3.0));
    b.step("s_fmaak_f32", Format::Sop2, s(4), &[s(2), s(3), Operand::Literal(bits(0.5))]);
    assert_eq!(b.get(4), bits(6.5));
    b.step("s_fmamk_f32", Format::Sop2, s(4), &[s(2), Operand::Literal(bits(0.5)), s(3)]);
    assert_eq!(b.get(4), bits(4.0));
}

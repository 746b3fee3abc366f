//! Floating point, against wider arithmetic and the rules for what is not a number.

use super::oracle::{mask, value};
use super::softfloat::{half_to_f64, nearest_half};

fn f(x: u64) -> f32 {
    f32::from_bits(x as u32)
}

fn d(x: u64) -> f64 {
    f64::from_bits(x)
}

/// The first NaN among the sources, quieted; None when all are numbers.
fn nan32(sources: &[u64]) -> Option<u64> {
    sources.iter().find(|x| **x & 0x7fff_ffff > 0x7f80_0000).map(|x| x | 0x40_0000)
}

fn nan64(sources: &[u64]) -> Option<u64> {
    sources.iter().find(|x| **x & (u64::MAX >> 1) > 0x7ff0 << 48).map(|x| x | 8 << 48)
}

fn nan16(sources: &[u64]) -> Option<u64> {
    sources.iter().find(|x| **x & 0x7fff > 0x7c00).map(|x| x | 0x200)
}

/// Bits of a result: the sources' NaN, the default NaN, or the number.
fn bits32(sources: &[u64], result: f32) -> u64 {
    let number = if result.is_nan() { 0x7fc0_0000 } else { result.to_bits() as u64 };
    nan32(sources).unwrap_or(number)
}

fn bits64(sources: &[u64], result: f64) -> u64 {
    let number = if result.is_nan() { 0x7ff8 << 48 } else { result.to_bits() };
    nan64(sources).unwrap_or(number)
}

fn bits16(sources: &[u64], result: f64) -> u64 {
    let number = if result.is_nan() { 0x7e00 } else { nearest_half(result) as u64 };
    nan16(sources).unwrap_or(number)
}

#[test]
fn single_arithmetic() {
    // f64 holds products exactly and sums with enough places to round twice.
    let wide = |x: u64| f(x) as f64;
    value("v_add_f32", |a, b, _| bits32(&[a, b], (wide(a) + wide(b)) as f32));
    value("v_sub_f32", |a, b, _| bits32(&[a, b], (wide(a) - wide(b)) as f32));
    value("v_subrev_f32", |a, b, _| bits32(&[a, b], (wide(b) - wide(a)) as f32));
    value("v_mul_f32", |a, b, _| bits32(&[a, b], (wide(a) * wide(b)) as f32));
    value("v_fma_f32", |a, b, c| bits32(&[a, b, c], f(a).mul_add(f(b), f(c))));
    value(
        "v_mul_legacy_f32",
        |a, b, _| {
            if f(a) == 0.0 || f(b) == 0.0 { 0 } else { bits32(&[a, b], (wide(a) * wide(b)) as f32) }
        },
    );
    let flushed = |x: u64| if x & 0x7f80_0000 == 0 { x & 0x8000_0000 } else { x };
    let flushed_number = |x: f32| f(flushed(x.to_bits() as u64));
    value("v_mad_f32", |a, b, c| {
        let [x, y, z] = [a, b, c].map(|x| f(flushed(x)));
        bits32(&[a, b, c], flushed_number(flushed_number(x * y) + z))
    });
}

#[test]
fn double_arithmetic() {
    value("v_add_f64", |a, b, _| bits64(&[a, b], d(a) + d(b)));
    value("v_mul_f64", |a, b, _| bits64(&[a, b], d(a) * d(b)));
    value("v_fma_f64", |a, b, c| bits64(&[a, b, c], d(a).mul_add(d(b), d(c))));
}

#[test]
fn half_arithmetic() {
    let h = |x: u64| half_to_f64(x as u16);
    value("v_add_f16", |a, b, _| bits16(&[a, b], h(a) + h(b)));
    value("v_sub_f16", |a, b, _| bits16(&[a, b], h(a) - h(b)));
    value("v_mul_f16", |a, b, _| bits16(&[a, b], h(a) * h(b)));
    value("v_fma_f16", |a, b, c| bits16(&[a, b, c], h(a) * h(b) + h(c)));
    value("v_mac_f16", |a, b, c| {
        let product = h(a) * h(b);
        let product = if product.is_nan() { product } else { half_to_f64(nearest_half(product)) };
        bits16(&[a, b, c], product + h(c))
    });
    value("v_pk_add_f16", |a, b, _| {
        let part = |n: u64| {
            let (a, b) = (a >> (16 * n) & 0xffff, b >> (16 * n) & 0xffff);
            bits16(&[a, b], h(a) + h(b)) << (16 * n)
        };
        part(0) | part(1)
    });
    value("v_pk_fma_f16", |a, b, c| {
        let part = |n: u64| {
            let [a, b, c] = [a, b, c].map(|x| x >> (16 * n) & 0xffff);
            bits16(&[a, b, c], h(a) * h(b) + h(c)) << (16 * n)
        };
        part(0) | part(1)
    });
}

/// Minimum and maximum by a total order: NaNs aside, bits as sign and magnitude.
fn key32(x: u64) -> i64 {
    let magnitude = (x & 0x7fff_ffff) as i64;
    if x & 0x8000_0000 != 0 { -magnitude - 1 } else { magnitude }
}

/// The IEEE rule of MODE's default: a signalling NaN wins, quieted; a quiet one loses.
fn minmax32(a: u64, b: u64, greater: bool) -> u64 {
    let is_nan = |x: u64| x & 0x7fff_ffff > 0x7f80_0000;
    let signals = |x: u64| is_nan(x) && x & 0x40_0000 == 0;
    if signals(a) {
        a | 0x40_0000
    } else if signals(b) {
        b | 0x40_0000
    } else if is_nan(b) {
        a
    } else if is_nan(a) {
        b
    } else if (key32(a) > key32(b)) == greater {
        a
    } else {
        b
    }
}

#[test]
fn extrema() {
    value("v_min_f32", |a, b, _| minmax32(a, b, false));
    value("v_max_f32", |a, b, _| minmax32(a, b, true));
    value("v_min3_f32", |a, b, c| minmax32(minmax32(a, b, false), c, false));
    value("v_max3_f32", |a, b, c| minmax32(minmax32(a, b, true), c, true));
    value("v_med3_f32", |a, b, c| {
        if nan32(&[a, b, c]).is_some() {
            return minmax32(minmax32(a, b, false), c, false);
        }
        let mut three = [a, b, c];
        three.sort_by_key(|x| key32(*x));
        three[1]
    });
    // GFX12: the number wins against any NaN; minimum and maximum give the NaN.
    value("v_min_num_f32", |a, b, _| {
        let number = |x: u64| x & 0x7fff_ffff <= 0x7f80_0000;
        match (number(a), number(b)) {
            (true, true) => minmax32(a, b, false),
            (true, false) => a,
            (false, true) => b,
            (false, false) => a,
        }
    });
    value("v_minimum_f32", |a, b, _| nan32(&[a, b]).unwrap_or_else(|| minmax32(a, b, false)));
    value("v_maximum_f32", |a, b, _| nan32(&[a, b]).unwrap_or_else(|| minmax32(a, b, true)));
    value("v_maximum_f64", |a, b, _| {
        nan64(&[a, b]).unwrap_or_else(|| {
            let key = |x: u64| if x >> 63 != 0 { -((x & (u64::MAX >> 1)) as i128) - 1 } else { x as i128 };
            if key(a) > key(b) { a } else { b }
        })
    });
    value("v_minimum_f16", |a, b, _| {
        nan16(&[a, b]).unwrap_or_else(|| {
            let key = |x: u64| if x & 0x8000 != 0 { -((x & 0x7fff) as i32) - 1 } else { x as i32 };
            if key(a) < key(b) { a } else { b }
        })
    });
}

#[test]
fn whole_numbers() {
    // By cutting bits: what a mantissa of 23 places holds beyond its exponent.
    let cut = |x: f32| if x.abs() < 8_388_608.0 { (x as i32) as f32 } else { x };
    let signed = |bits: u64, x: f32| if x == 0.0 { f32::from_bits(bits as u32 & 0x8000_0000) } else { x };
    value("v_trunc_f32", |a, _, _| bits32(&[a], signed(a, cut(f(a)))));
    value("v_floor_f32", |a, _, _| {
        let whole = cut(f(a));
        bits32(&[a], signed(a, if whole > f(a) { whole - 1.0 } else { whole }))
    });
    value("v_ceil_f32", |a, _, _| {
        let whole = cut(f(a));
        bits32(&[a], signed(a, if whole < f(a) { whole + 1.0 } else { whole }))
    });
    value("v_rndne_f32", |a, _, _| {
        let whole = cut(f(a));
        let rest = (f(a) - whole).abs();
        let away = if rest > 0.5 || rest == 0.5 && whole % 2.0 != 0.0 { 1f32.copysign(f(a)) } else { 0.0 };
        bits32(&[a], signed(a, whole + away))
    });
    value("v_rndne_f64", |a, _, _| bits64(&[a], d(a).round_ties_even()));
    value("v_fract_f32", |a, _, _| {
        let below = f32::from_bits(0x3f7f_ffff);
        let rest = f(a) - f(a).floor();
        bits32(&[a], if rest >= 1.0 { below } else { rest })
    });
}

#[test]
fn scaling() {
    value("v_ldexp_f32", |a, b, _| {
        // In f64, whose exponents suffice for what f32 can tell apart.
        bits32(&[a], (f(a) as f64 * 2f64.powi((b as i32).clamp(-500, 500))) as f32)
    });
    value("v_frexp_mant_f32", |a, _, _| {
        let x = f(a) as f64;
        let mut mantissa = x;
        while mantissa.is_finite() && mantissa != 0.0 && mantissa.abs() >= 1.0 {
            mantissa /= 2.0;
        }
        while mantissa != 0.0 && mantissa.abs() < 0.5 {
            mantissa *= 2.0;
        }
        bits32(&[a], mantissa as f32)
    });
    value("v_frexp_exp_i32_f32", |a, _, _| {
        let mut x = (f(a) as f64).abs();
        if x == 0.0 || !x.is_finite() {
            return 0;
        }
        let mut exponent = 0i32;
        while x >= 1.0 {
            x /= 2.0;
            exponent += 1;
        }
        while x < 0.5 {
            x *= 2.0;
            exponent -= 1;
        }
        exponent as u32 as u64
    });
    value("v_frexp_exp_i32_f64", |a, _, _| {
        let magnitude = a & (u64::MAX >> 1);
        if magnitude == 0 || magnitude >= 0x7ff0 << 48 {
            return 0;
        }
        let exponent = (magnitude >> 52) as i32;
        let denormal = 64 - (magnitude.leading_zeros() as i32);
        (if exponent == 0 { denormal - 1074 } else { exponent - 1022 }) as u32 as u64
    });
}

#[test]
fn conversions() {
    value("v_cvt_i32_f32", |a, _, _| (f(a) as i32) as u32 as u64);
    value("v_cvt_u32_f32", |a, _, _| (f(a) as u32) as u64);
    value("v_cvt_i32_f64", |a, _, _| (d(a) as i32) as u32 as u64);
    value("v_cvt_u32_f64", |a, _, _| (d(a) as u32) as u64);
    value("v_cvt_f32_i32", |a, _, _| (a as i32 as f32).to_bits() as u64);
    value("v_cvt_f32_u32", |a, _, _| (a as u32 as f32).to_bits() as u64);
    value("v_cvt_f64_i32", |a, _, _| (a as i32 as f64).to_bits());
    value("v_cvt_f64_u32", |a, _, _| (a as u32 as f64).to_bits());
    for (byte, name) in
        ["v_cvt_f32_ubyte0", "v_cvt_f32_ubyte1", "v_cvt_f32_ubyte2", "v_cvt_f32_ubyte3"].iter().enumerate()
    {
        value(name, |a, _, _| ((a >> (8 * byte) & 0xff) as f32).to_bits() as u64);
    }
    value("v_cvt_flr_i32_f32", |a, _, _| (f(a).floor() as i32) as u32 as u64);
    value("v_cvt_rpi_i32_f32", |a, _, _| ((f(a) as f64 + 0.5).floor() as i32) as u32 as u64);
    let shifted_nan = |sign: u64, exponent: u64, payload: u64| sign | exponent | payload;
    value("v_cvt_f64_f32", |a, _, _| match nan32(&[a]) {
        Some(nan) => shifted_nan((nan & 0x8000_0000) << 32, 0x7ff0 << 48, (nan & 0x7f_ffff) << 29),
        None => (f(a) as f64).to_bits(),
    });
    value("v_cvt_f32_f64", |a, _, _| match nan64(&[a]) {
        Some(nan) => shifted_nan(nan >> 32 & 0x8000_0000, 0x7f80_0000, nan >> 29 & 0x7f_ffff),
        None => (d(a) as f32).to_bits() as u64,
    });
    value("v_cvt_f32_f16", |a, _, _| match nan16(&[a]) {
        Some(nan) => shifted_nan((nan & 0x8000) << 16, 0x7f80_0000, (nan & 0x3ff) << 13),
        None => (half_to_f64(a as u16) as f32).to_bits() as u64,
    });
    value("v_cvt_f16_f32", |a, _, _| match nan32(&[a]) {
        Some(nan) => shifted_nan(nan >> 16 & 0x8000, 0x7c00, nan >> 13 & 0x3ff),
        None => nearest_half(f(a) as f64) as u64,
    });
    value("v_cvt_i16_f16", |a, _, _| (half_to_f64(a as u16) as i16) as u16 as u64);
    value("v_cvt_u16_f16", |a, _, _| half_to_f64(a as u16) as u16 as u64);
    value("v_cvt_f16_u16", |a, _, _| nearest_half(a as f64) as u64);
    value("v_cvt_f16_i16", |a, _, _| nearest_half(a as u16 as i16 as f64) as u64);
    value("v_cvt_pkrtz_f16_f32", |a, b, _| {
        let half = |x: u64| match nan32(&[x]) {
            Some(nan) => nan >> 16 & 0x8000 | 0x7c00 | nan >> 13 & 0x3ff,
            None => {
                // The nearest, or the one before it when that is beyond the number.
                let near = nearest_half(f(x) as f64);
                let beyond = half_to_f64(near).abs() > (f(x) as f64).abs();
                (near - beyond as u16) as u64
            }
        };
        half(a) | half(b) << 16
    });
    value("v_cvt_pknorm_u16_f32", |a, b, _| {
        let norm = |x: u64| ((f(x) as f64).clamp(0.0, 1.0) as f32 * 65535.0).round_ties_even() as u16 as u64;
        norm(a) | norm(b) << 16
    });
    value("v_cvt_pknorm_i16_f32", |a, b, _| {
        let norm = |x: u64| ((f(x) as f64).clamp(-1.0, 1.0) as f32 * 32767.0).round_ties_even() as i16 as u16 as u64;
        norm(a) | norm(b) << 16
    });
    value("v_cvt_off_f32_i4", |a, _, _| {
        let four = (a & 15) as i32;
        ((if four > 7 { four - 16 } else { four }) as f32 / 16.0).to_bits() as u64
    });
}

#[test]
fn comparisons() {
    // Less, equal, greater, unordered.
    let conditions: [(&str, [bool; 4]); 16] = [
        ("f", [false, false, false, false]),
        ("lt", [true, false, false, false]),
        ("eq", [false, true, false, false]),
        ("le", [true, true, false, false]),
        ("gt", [false, false, true, false]),
        ("lg", [true, false, true, false]),
        ("ge", [false, true, true, false]),
        ("o", [true, true, true, false]),
        ("u", [false, false, false, true]),
        ("nge", [true, false, false, true]),
        ("nlg", [false, true, false, true]),
        ("ngt", [true, true, false, true]),
        ("nle", [false, false, true, true]),
        ("neq", [true, false, true, true]),
        ("nlt", [false, true, true, true]),
        ("tru", [true, true, true, true]),
    ];
    let order = |a: f64, b: f64| match a.partial_cmp(&b) {
        Some(std::cmp::Ordering::Less) => 0,
        Some(std::cmp::Ordering::Equal) => 1,
        Some(std::cmp::Ordering::Greater) => 2,
        None => 3,
    };
    for (condition, holds) in conditions {
        mask(&format!("v_cmp_{condition}_f32"), |a, b| holds[order(f(a) as f64, f(b) as f64)]);
        mask(&format!("v_cmp_{condition}_f64"), |a, b| holds[order(d(a), d(b))]);
        mask(&format!("v_cmp_{condition}_f16"), |a, b| holds[order(half_to_f64(a as u16), half_to_f64(b as u16))]);
    }
}

#[test]
fn classes() {
    use std::num::FpCategory;
    let class = |category: FpCategory, negative: bool, quiet: bool| match (category, negative) {
        (FpCategory::Nan, _) => quiet as u32,
        (FpCategory::Infinite, true) => 2,
        (FpCategory::Normal, true) => 3,
        (FpCategory::Subnormal, true) => 4,
        (FpCategory::Zero, true) => 5,
        (FpCategory::Zero, false) => 6,
        (FpCategory::Subnormal, false) => 7,
        (FpCategory::Normal, false) => 8,
        (FpCategory::Infinite, false) => 9,
    };
    mask("v_cmp_class_f32", |a, b| b >> class(f(a).classify(), f(a).is_sign_negative(), a & 0x40_0000 != 0) & 1 != 0);
    mask("v_cmp_class_f64", |a, b| b >> class(d(a).classify(), d(a).is_sign_negative(), a & 8 << 48 != 0) & 1 != 0);
    mask("v_cmp_class_f16", |a, b| {
        let x = half_to_f64(a as u16);
        let category = match x.classify() {
            FpCategory::Normal if x.abs() < 2f64.powi(-14) => FpCategory::Subnormal,
            other => other,
        };
        b >> class(category, a & 0x8000 != 0, a & 0x200 != 0) & 1 != 0
    });
}

/// Units in the last place between two f32.
fn ulps(a: f32, b: f64) -> f64 {
    let spacing = (f32::from_bits((b as f32).abs().to_bits() + 1) - (b as f32).abs()) as f64;
    (a as f64 - b).abs() / spacing
}

#[test]
fn functions_within_a_unit_in_the_last_place() {
    use super::*;
    let cases: [(&str, fn(f64) -> f64, f32, f32); 6] = [
        ("v_exp_f32", |x| x.exp2(), -125.9, 127.9),
        ("v_log_f32", |x| x.log2(), 1.2e-38, 3.4e38),
        ("v_rcp_f32", |x| 1.0 / x, 1.2e-38, 8.0e37),
        ("v_rsq_f32", |x| 1.0 / x.sqrt(), 1.2e-38, 3.4e38),
        ("v_sqrt_f32", |x| x.sqrt(), 1.2e-38, 3.4e38),
        ("v_log_f32", |x| x.log2(), 0.5, 2.0),
    ];
    for mut rig in Rig::all() {
        let mut random = Random(3);
        for (name, function, least, most) in cases {
            for _ in 0..40 {
                for lane in 0..rig.lanes() {
                    let at = (random.bits() >> 11) as f64 / (1u64 << 53) as f64;
                    // Even over exponents where the range has many.
                    let x = if least > 0.0 {
                        ((least as f64).ln() * (1.0 - at) + (most as f64).ln() * at).exp() as f32
                    } else {
                        (least as f64 * (1.0 - at) + most as f64 * at) as f32
                    };
                    rig.set(1, lane, x.to_bits());
                }
                rig.run(&op(name, v(2), &[v(1)]));
                for lane in 0..rig.lanes() {
                    let (x, y) = (f32::from_bits(rig.get(1, lane)), f32::from_bits(rig.get(2, lane)));
                    let error = ulps(y, function(x as f64));
                    assert!(error <= 1.0, "{name}({x:e}) = {y:e} on {:?}: {error} ulp", rig.level);
                }
            }
        }
    }
}

#[test]
fn sine_and_cosine_of_turns() {
    use super::*;
    for mut rig in Rig::all() {
        let mut random = Random(5);
        for _ in 0..40 {
            for lane in 0..rig.lanes() {
                let at = (random.bits() >> 11) as f64 / (1u64 << 53) as f64;
                rig.set(1, lane, ((at - 0.5) * 500.0) as f32 as u32);
                rig.set(1, lane, (((at - 0.5) * 500.0) as f32).to_bits());
            }
            rig.run(&op("v_sin_f32", v(2), &[v(1)]));
            rig.run(&op("v_cos_f32", v(3), &[v(1)]));
            for lane in 0..rig.lanes() {
                let turns = f32::from_bits(rig.get(1, lane)) as f64;
                let angle = (turns - turns.round()) * std::f64::consts::TAU;
                let (sine, cosine) = (f32::from_bits(rig.get(2, lane)), f32::from_bits(rig.get(3, lane)));
                assert!((sine as f64 - angle.sin()).abs() < 1e-7, "sin of {turns} turns: {sine}");
                assert!((cosine as f64 - angle.cos()).abs() < 1e-7, "cos of {turns} turns: {cosine}");
            }
        }
    }
}

//! Minima, maxima and medians of three, halves and bit operations of 16 bits, against sorted numbers.

use super::oracle::value;

/// Least, middle and greatest.
fn sorted(mut all: [i64; 3]) -> [i64; 3] {
    all.sort_unstable();
    all
}

/// The operations of three sources and of two steps of one type, which `read` makes numbers of.
fn family(suffix: &str, read: fn(u64) -> i64) {
    let numbers = move |a, b, c| [read(a), read(b), read(c)];
    value(&format!("v_min3_{suffix}"), move |a, b, c| sorted(numbers(a, b, c))[0] as u64);
    value(&format!("v_med3_{suffix}"), move |a, b, c| sorted(numbers(a, b, c))[1] as u64);
    value(&format!("v_max3_{suffix}"), move |a, b, c| sorted(numbers(a, b, c))[2] as u64);
}

#[test]
fn of_three_integers() {
    family("u32", |x| x as u32 as i64);
    family("i32", |x| x as u32 as i32 as i64);
    family("u16", |x| x as u16 as i64);
    family("i16", |x| x as u16 as i16 as i64);
}

#[test]
fn of_two_steps() {
    value("v_maxmin_u32", |a, b, c| (a as u32).max(b as u32).min(c as u32) as u64);
    value("v_minmax_u32", |a, b, c| (a as u32).min(b as u32).max(c as u32) as u64);
    value("v_maxmin_i32", |a, b, c| (a as i32).max(b as i32).min(c as i32) as u64);
    value("v_minmax_i32", |a, b, c| (a as i32).min(b as i32).max(c as i32) as u64);
}

#[test]
fn of_halves() {
    value("v_max_u16", |a, b, _| a.max(b));
    value("v_min_u16", |a, b, _| a.min(b));
    value("v_max_i16", |a, b, _| (a as i16).max(b as i16) as u64);
    value("v_min_i16", |a, b, _| (a as i16).min(b as i16) as u64);
    value("v_and_b16", |a, b, _| a & b);
    value("v_or_b16", |a, b, _| a | b);
    value("v_xor_b16", |a, b, _| a ^ b);
    value("v_add_i16", |a, b, _| a + b);
    value("v_sub_i16", |a, b, _| a.wrapping_sub(b));
    value("v_mad_legacy_u16", |a, b, c| a * b + c);
    value("v_mad_legacy_i16", |a, b, c| a * b + c);
}

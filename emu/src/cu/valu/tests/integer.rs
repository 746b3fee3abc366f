//! Integers, against sums and products in 128 bits and bits taken one at a time.

use super::oracle::{mask, value, verify};

fn s(x: u64) -> i128 {
    x as u32 as i32 as i128
}

fn u(x: u64) -> i128 {
    x as u32 as i128
}

fn l(x: u64) -> i128 {
    x as i64 as i128
}

/// Sign-extended low bits.
fn low(x: u64, bits: u32) -> i128 {
    let value = (x & ((1 << bits) - 1)) as i128;
    if value >> (bits - 1) & 1 != 0 { value - (1 << bits) } else { value }
}

fn within(x: i128, least: i128, most: i128) -> u64 {
    (if x < least {
        least
    } else if x > most {
        most
    } else {
        x
    }) as u64
}

fn bit(x: u64, n: u64) -> u64 {
    x >> n & 1
}

/// A word from a function of its bit numbers.
fn bits(f: impl Fn(u64) -> u64) -> u64 {
    (0..32).map(|n| f(n) << n).sum()
}

fn byte(x: u64, n: u64) -> i128 {
    (x >> (8 * n) & 0xff) as i128
}

#[test]
fn sums_and_carries() {
    value("v_add_u32", |a, b, _| (u(a) + u(b)) as u64);
    value("v_sub_u32", |a, b, _| (u(a) - u(b)) as u64);
    value("v_subrev_u32", |a, b, _| (u(b) - u(a)) as u64);
    value("v_add3_u32", |a, b, c| (u(a) + u(b) + u(c)) as u64);
    value("v_add_nc_u64", |a, b, _| (a as i128 + b as i128) as u64);
    value("v_sub_nc_u64", |a, b, _| (a as i128 - b as i128) as u64);
    verify("v_add_co_u32", |[a, b, _], _| ((u(a) + u(b)) as u64, u(a) + u(b) > 0xffff_ffff));
    verify("v_sub_co_u32", |[a, b, _], _| ((u(a) - u(b)) as u64, u(a) < u(b)));
    verify("v_subrev_co_u32", |[a, b, _], _| ((u(b) - u(a)) as u64, u(b) < u(a)));
    verify("v_addc_co_u32", |[a, b, c], _| ((u(a) + u(b) + u(c)) as u64, u(a) + u(b) + u(c) > 0xffff_ffff));
    verify("v_subb_co_u32", |[a, b, c], _| ((u(a) - u(b) - u(c)) as u64, u(a) - u(b) - u(c) < 0));
    verify("v_subbrev_co_u32", |[a, b, c], _| ((u(b) - u(a) - u(c)) as u64, u(b) - u(a) - u(c) < 0));
}

#[test]
fn products() {
    value("v_mul_lo_u32", |a, b, _| (u(a) * u(b)) as u64);
    value("v_mul_hi_u32", |a, b, _| (u(a) * u(b) >> 32) as u64);
    value("v_mul_hi_i32", |a, b, _| (s(a) * s(b) >> 32) as u64);
    value("v_mul_u32_u24", |a, b, _| ((a & 0xff_ffff) as i128 * (b & 0xff_ffff) as i128) as u64);
    value("v_mul_i32_i24", |a, b, _| (low(a, 24) * low(b, 24)) as u64);
    value("v_mul_hi_u32_u24", |a, b, _| ((a & 0xff_ffff) as i128 * (b & 0xff_ffff) as i128 >> 32) as u64);
    value("v_mul_hi_i32_i24", |a, b, _| (low(a, 24) * low(b, 24) >> 32) as u64);
    value("v_mad_u32_u24", |a, b, c| ((a & 0xff_ffff) as i128 * (b & 0xff_ffff) as i128 + u(c)) as u64);
    value("v_mad_i32_i24", |a, b, c| (low(a, 24) * low(b, 24) + s(c)) as u64);
    value("v_mul_u64", |a, b, _| (a as u128).wrapping_mul(b as u128) as u64);
    verify("v_mad_u64_u32", |[a, b, c], _| {
        let sum = u(a) * u(b) + c as i128;
        (sum as u64, sum > u64::MAX as i128)
    });
    verify("v_mad_i64_i32", |[a, b, c], _| {
        let sum = s(a) * s(b) + l(c);
        (sum as u64, sum < 0)
    });
    value("v_mad_u32_u16", |a, b, c| (a as i128 * b as i128 + u(c)) as u64);
    value("v_mad_i32_i16", |a, b, c| (low(a, 16) * low(b, 16) + s(c)) as u64);
    value("v_mul_lo_u16", |a, b, _| a * b);
    value("v_mad_u16", |a, b, c| a * b + c);
    value("v_mad_i16", |a, b, c| (low(a, 16) * low(b, 16) + low(c, 16)) as u64);
}

#[test]
fn logic_and_shifts() {
    value("v_mov_b32", |a, _, _| a);
    value("v_mov_b64", |a, _, _| a);
    value("v_not_b32", |a, _, _| bits(|n| 1 - bit(a, n)));
    value("v_and_b32", |a, b, _| bits(|n| bit(a, n) * bit(b, n)));
    value("v_or_b32", |a, b, _| bits(|n| (bit(a, n) + bit(b, n)).min(1)));
    value("v_xor_b32", |a, b, _| bits(|n| (bit(a, n) + bit(b, n)) % 2));
    value("v_xnor_b32", |a, b, _| bits(|n| (bit(a, n) + bit(b, n) + 1) % 2));
    value("v_or3_b32", |a, b, c| bits(|n| (bit(a, n) + bit(b, n) + bit(c, n)).min(1)));
    value("v_xor3_b32", |a, b, c| bits(|n| (bit(a, n) + bit(b, n) + bit(c, n)) % 2));
    value("v_and_or_b32", |a, b, c| bits(|n| (bit(a, n) * bit(b, n) + bit(c, n)).min(1)));
    value("v_bfi_b32", |a, b, c| bits(|n| if bit(a, n) == 1 { bit(b, n) } else { bit(c, n) }));
    value("v_bfrev_b32", |a, _, _| bits(|n| bit(a, 31 - n)));
    let shifted = |x: u64, by: u64| bits(|n| if n >= by { bit(x, n - by) } else { 0 });
    value("v_lshlrev_b32", |a, b, _| shifted(b, a % 32));
    value("v_lshrrev_b32", |a, b, _| bits(|n| if n + a % 32 < 32 { bit(b, n + a % 32) } else { 0 }));
    value("v_ashrrev_i32", |a, b, _| bits(|n| bit(b, (n + a % 32).min(31))));
    value("v_lshl_or_b32", |a, b, c| shifted(a, b % 32) | c);
    value("v_lshl_add_u32", |a, b, c| shifted(a, b % 32) + c);
    value("v_add_lshl_u32", |a, b, c| shifted(a + b, c % 32));
    value("v_xad_u32", |a, b, c| (a ^ b) + c);
    value("v_lshlrev_b64", |a, b, _| ((b as u128) << (a % 64)) as u64);
    value("v_lshrrev_b64", |a, b, _| (b as u128 >> (a % 64)) as u64);
    value("v_ashrrev_i64", |a, b, _| (l(b) >> (a % 64)) as u64);
    value("v_lshl_add_u64", |a, b, c| (((a as u128) << (b % 8)) + c as u128) as u64);
    value("v_lshlrev_b16", |a, b, _| b << (a % 16));
    value("v_lshrrev_b16", |a, b, _| b >> (a % 16));
    value("v_ashrrev_i16", |a, b, _| (low(b, 16) >> (a % 16)) as u64);
    value("v_alignbit_b32", |a, b, c| bits(|n| bit(b | a << 32, n + c % 32)));
    value("v_alignbyte_b32", |a, b, c| bits(|n| bit(b | a << 32, n + 8 * (c % 4))));
}

#[test]
fn fields_and_counts() {
    value("v_bfe_u32", |a, b, c| bits(|n| if n < c % 32 && n + b % 32 < 32 { bit(a, n + b % 32) } else { 0 }));
    value("v_bfe_i32", |a, b, c| {
        // Bits beyond the width repeat the field's last one; a field beyond bit 31 continues with the sign.
        let from = |n: u64| bit(a, (n + b % 32).min(31));
        if c % 32 == 0 { 0 } else { bits(|n| from(n.min(c % 32 - 1))) }
    });
    value("v_bfm_b32", |a, b, _| bits(|n| (n >= b % 32 && n < b % 32 + a % 32) as u64));
    value("v_bcnt_u32_b32", |a, b, _| (0..32).map(|n| bit(a, n)).sum::<u64>() + b);
    value("v_ffbh_u32", |a, _, _| (0..32).find(|n| bit(a, 31 - n) == 1).unwrap_or(u64::MAX));
    value("v_ffbl_b32", |a, _, _| (0..32).find(|n| bit(a, *n) == 1).unwrap_or(u64::MAX));
    value("v_ffbh_i32", |a, _, _| (1..32).find(|n| bit(a, 31 - n) != bit(a, 31)).unwrap_or(u64::MAX));
    verify("v_mbcnt_lo_u32_b32", |[a, b, _], lane| {
        ((0..32).filter(|n| *n < lane).map(|n| bit(a, n.into())).sum::<u64>() + b, false)
    });
    verify("v_mbcnt_hi_u32_b32", |[a, b, _], lane| {
        ((0..32).filter(|n| n + 32 < lane).map(|n| bit(a, n.into())).sum::<u64>() + b, false)
    });
    verify("v_cndmask_b32", |[a, b, c], _| (if c == 1 { b } else { a }, false));
    value("v_perm_b32", |a, b, c| {
        let data = b | a << 32;
        let chosen = |selector: i128| match selector {
            0..=7 => byte(data, selector as u64),
            8..=11 => 255 * bit(data, 16 * (selector as u64 - 8) + 15) as i128,
            12 => 0,
            _ => 255,
        };
        (0..4).map(|n| (chosen(byte(c, n)) as u64) << (8 * n)).sum()
    });
}

#[test]
fn extrema() {
    value("v_min_u32", |a, b, _| a.min(b));
    value("v_max_u32", |a, b, _| a.max(b));
    value("v_min_i32", |a, b, _| s(a).min(s(b)) as u64);
    value("v_max_i32", |a, b, _| s(a).max(s(b)) as u64);
    let sorted = |mut three: [i128; 3]| {
        three.sort();
        three.map(|x| x as u64)
    };
    for (name, place) in [("v_min3", 0), ("v_med3", 1), ("v_max3", 2)] {
        value(&format!("{name}_u32"), |a, b, c| sorted([u(a), u(b), u(c)])[place]);
        value(&format!("{name}_i32"), |a, b, c| sorted([s(a), s(b), s(c)])[place]);
        value(&format!("{name}_u16"), |a, b, c| sorted([u(a), u(b), u(c)])[place]);
        value(&format!("{name}_i16"), |a, b, c| sorted([low(a, 16), low(b, 16), low(c, 16)])[place]);
    }
    value("v_maxmin_i32", |a, b, c| s(a).max(s(b)).min(s(c)) as u64);
    value("v_minmax_u32", |a, b, c| u(a).min(u(b)).max(u(c)) as u64);
}

#[test]
fn sums_of_differences() {
    let sad = |a, b| (0..4).map(|n| (byte(a, n) - byte(b, n)).abs()).sum::<i128>();
    value("v_sad_u8", |a, b, c| (sad(a, b) + u(c)) as u64);
    value("v_sad_hi_u8", |a, b, c| ((sad(a, b) << 16) + u(c)) as u64);
    value("v_sad_u16", |a, b, c| {
        let half = |x: u64, n: u64| (x >> (16 * n) & 0xffff) as i128;
        ((half(a, 0) - half(b, 0)).abs() + (half(a, 1) - half(b, 1)).abs() + u(c)) as u64
    });
    value("v_sad_u32", |a, b, c| ((u(a) - u(b)).abs() + u(c)) as u64);
    let masked = |a, b| (0..4).filter(|n| byte(b, *n) != 0).map(|n| (byte(a, n) - byte(b, n)).abs()).sum::<i128>();
    value("v_msad_u8", |a, b, c| (masked(a, b) + u(c)) as u64);
    let quad = |f: &dyn Fn(u64, u64) -> i128, a: u64, b: u64, c: u64| -> u64 {
        (0..4).map(|n| ((f(a >> (8 * n), b) + (c >> (16 * n) & 0xffff) as i128) as u64 & 0xffff) << (16 * n)).sum()
    };
    value("v_qsad_pk_u16_u8", |a, b, c| quad(&sad, a, b, c));
    value("v_mqsad_pk_u16_u8", |a, b, c| quad(&masked, a, b, c));
    value("v_lerp_u8", |a, b, c| {
        (0..4).map(|n| (((byte(a, n) + byte(b, n) + byte(c, n) % 2) / 2) as u64) << (8 * n)).sum()
    });
}

#[test]
fn halves() {
    value("v_add_u16", |a, b, _| a + b);
    value("v_sub_u16", |a, b, _| a.wrapping_sub(b));
    value("v_subrev_u16", |a, b, _| b.wrapping_sub(a));
    value("v_min_u16", |a, b, _| a.min(b));
    value("v_max_i16", |a, b, _| low(a, 16).max(low(b, 16)) as u64);
    value("v_not_b16", |a, _, _| !a);
    value("v_cvt_i32_i16", |a, _, _| low(a, 16) as u64);
    value("v_cvt_u32_u16", |a, _, _| a);
    value("v_cvt_pk_u16_u32", |a, b, _| within(u(a), 0, 0xffff) | within(u(b), 0, 0xffff) << 16);
    value("v_cvt_pk_i16_i32", |a, b, _| {
        within(s(a), -0x8000, 0x7fff) & 0xffff | (within(s(b), -0x8000, 0x7fff) & 0xffff) << 16
    });
    value("v_sat_pk_u8_i16", |a, _, _| within(low(a, 16), 0, 255) | within(low(a >> 16, 16), 0, 255) << 8);
    value("v_pack_b32_f16", |a, b, _| a | b << 16);
    // Both halves of packed operations.
    let both = |a: u64, b: u64, c: u64, f: &dyn Fn(i128, i128, i128) -> i128| -> u64 {
        let half = |n: u64| {
            let part = |x: u64| low(x >> (16 * n), 16);
            (f(part(a), part(b), part(c)) as u64 & 0xffff) << (16 * n)
        };
        half(0) | half(1)
    };
    value("v_pk_add_u16", |a, b, c| both(a, b, c, &|a, b, _| a + b));
    value("v_pk_sub_i16", |a, b, c| both(a, b, c, &|a, b, _| a - b));
    value("v_pk_mul_lo_u16", |a, b, c| both(a, b, c, &|a, b, _| a * b));
    value("v_pk_mad_i16", |a, b, c| both(a, b, c, &|a, b, c| a * b + c));
    value("v_pk_max_i16", |a, b, c| both(a, b, c, &|a, b, _| a.max(b)));
    value("v_pk_min_u16", |a, b, c| both(a, b, c, &|a, b, _| (a & 0xffff).min(b & 0xffff)));
    value("v_pk_lshlrev_b16", |a, b, c| both(a, b, c, &|a, b, _| b << (a & 15)));
    value("v_pk_ashrrev_i16", |a, b, c| both(a, b, c, &|a, b, _| b >> (a & 15)));
}

#[test]
fn dot_products() {
    let parts = |x: u64, width: u32, signed: bool| -> Vec<i128> {
        (0..32 / width)
            .map(|n| {
                let part = x >> (n * width) & ((1 << width) - 1);
                if signed { low(part, width) } else { part as i128 }
            })
            .collect()
    };
    let dot = |a, b, width, signed| -> i128 {
        parts(a, width, signed).iter().zip(parts(b, width, signed)).map(|(a, b)| a * b).sum()
    };
    value("v_dot2_i32_i16", |a, b, c| (dot(a, b, 16, true) + s(c)) as u64);
    value("v_dot2_u32_u16", |a, b, c| (dot(a, b, 16, false) + u(c)) as u64);
    value("v_dot4_i32_i8", |a, b, c| (dot(a, b, 8, true) + s(c)) as u64);
    value("v_dot4_u32_u8", |a, b, c| (dot(a, b, 8, false) + u(c)) as u64);
    value("v_dot8_i32_i4", |a, b, c| (dot(a, b, 4, true) + s(c)) as u64);
    value("v_dot8_u32_u4", |a, b, c| (dot(a, b, 4, false) + u(c)) as u64);
    // Without neg the mixed forms are unsigned.
    value("v_dot4_i32_iu8", |a, b, c| (dot(a, b, 8, false) + s(c)) as u64);
    value("v_dot8_i32_iu4", |a, b, c| (dot(a, b, 4, false) + s(c)) as u64);
}

#[test]
fn comparisons() {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let conditions: [(&str, &[std::cmp::Ordering]); 8] = [
        ("f", &[]),
        ("lt", &[Less]),
        ("eq", &[Equal]),
        ("le", &[Less, Equal]),
        ("gt", &[Greater]),
        ("ne", &[Less, Greater]),
        ("ge", &[Greater, Equal]),
        ("t", &[Less, Equal, Greater]),
    ];
    let types: [(&str, fn(u64) -> i128); 6] = [
        ("i16", |x| low(x, 16)),
        ("u16", |x| (x & 0xffff) as i128),
        ("i32", s),
        ("u32", u),
        ("i64", l),
        ("u64", |x| x as i128),
    ];
    for (condition, orders) in conditions {
        for (kind, number) in types {
            mask(&format!("v_cmp_{condition}_{kind}"), |a, b| orders.contains(&number(a).cmp(&number(b))));
        }
    }
}

/// The table of the manuals, one digit for each select from 0 on.
#[test]
fn screen_partition_is_the_manuals_table() {
    const TABLE: &str = "\
        137f5fff7ffffffff26efafffbffffffdf4cff5fffdfffff9bf8fffafffeffff\
        ffff4cdf6fffeffffffff89bf99ffdffffff7f13ff9fffbfffff6ef26ff6fff7\
        bfffffff23bfaffff7fffffff19df5ffffefffffef8cffaffffdffff67f4fff5\
        9fffdfffffff8ceff66ffefffffff467ff6fff7fffffbf239ff9fffbffff9df1";
    let table: Vec<u64> = TABLE.bytes().map(|digit| (digit as char).to_digit(16).unwrap().into()).collect();
    assert_eq!(table.len(), 256);
    value("v_screen_partition_4se_b32", |a, _, _| table[a as usize & 0xff]);
    for select in 0..256 {
        assert_eq!(super::super::int32::screen_partition(select) as u64, table[select as usize], "{select:#x}");
    }
}

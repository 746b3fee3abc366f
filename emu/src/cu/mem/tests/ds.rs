//! DS.

use super::*;

const TARGETS: [Target; 3] = [Target::Gfx90a, Target::Gfx1100, Target::Gfx1201];

fn fill(rig: &mut Rig) {
    for offset in (0..1024).step_by(4) {
        rig.set_lds(offset, pattern32(offset as u64));
    }
}

fn name(rig: &Rig, before: &'static str, after: &'static str) -> &'static str {
    if rig.target.family() < crate::isa::Family::Gfx11 { before } else { after }
}

#[test]
fn loads_of_all_sizes_and_out_of_range() {
    type Rule = (&'static str, &'static str, u32, fn(u64, u32) -> Vec<u32>);
    let rules: [Rule; 14] = [
        ("ds_read_u8", "ds_load_u8", 1, |at, _| vec![pattern(at) as u32]),
        ("ds_read_i8", "ds_load_i8", 1, |at, _| vec![pattern(at) as i8 as u32]),
        ("ds_read_u16", "ds_load_u16", 2, |at, _| vec![pattern16(at) as u32]),
        ("ds_read_i16", "ds_load_i16", 2, |at, _| vec![pattern16(at) as i16 as u32]),
        ("ds_read_u8_d16", "ds_load_u8_d16", 1, |at, old| vec![old & 0xffff_0000 | pattern(at) as u32]),
        ("ds_read_u8_d16_hi", "ds_load_u8_d16_hi", 1, |at, old| vec![old & 0xffff | (pattern(at) as u32) << 16]),
        ("ds_read_i8_d16", "ds_load_i8_d16", 1, |at, old| vec![old & 0xffff_0000 | pattern(at) as i8 as u16 as u32]),
        ("ds_read_i8_d16_hi", "ds_load_i8_d16_hi", 1, |at, old| {
            vec![old & 0xffff | (pattern(at) as i8 as u16 as u32) << 16]
        }),
        ("ds_read_u16_d16", "ds_load_u16_d16", 2, |at, old| vec![old & 0xffff_0000 | pattern16(at) as u32]),
        ("ds_read_u16_d16_hi", "ds_load_u16_d16_hi", 2, |at, old| vec![old & 0xffff | (pattern16(at) as u32) << 16]),
        ("ds_read_b32", "ds_load_b32", 4, |at, _| vec![pattern32(at)]),
        ("ds_read_b64", "ds_load_b64", 8, |at, _| vec![pattern32(at), pattern32(at + 4)]),
        ("ds_read_b96", "ds_load_b96", 12, |at, _| (0..3).map(|word| pattern32(at + 4 * word)).collect()),
        ("ds_read_b128", "ds_load_b128", 16, |at, _| (0..4).map(|word| pattern32(at + 4 * word)).collect()),
    ];
    for mut rig in Rig::all(&TARGETS) {
        fill(&mut rig);
        for (before, after, bytes, expected) in rules {
            let name = name(&rig, before, after);
            let addresses: [&dyn Fn(u32) -> u32; 6] = [
                &|lane| bytes * (lane % 32),
                &|lane| bytes * lane + 640,
                &|_| 44,
                &|lane| (lane * 37) % 900 + 3,
                &|lane| 1024u32.wrapping_sub(bytes).wrapping_add(lane % 3),
                &|lane| if lane == 5 { u32::MAX } else { 8 * (lane % 16) },
            ];
            for (which, address) in addresses.iter().enumerate() {
                for mask in masks(rig.lanes()) {
                    rig.wave.set_exec(mask);
                    // The offset may wrap a negative address back.
                    rig.row(2, |lane| address(lane).wrapping_sub(8));
                    for row in 0..bytes.div_ceil(4) {
                        rig.row(4 + row, |lane| 0x8765_0000 + lane);
                    }
                    let load = inst(Format::Ds, name, v(4, bytes.div_ceil(4) as u8), [v(2, 1)]);
                    rig.ok(&with(load, |mods| mods.offset = 8));
                    for (lane, row) in
                        (0..rig.lanes()).flat_map(|lane| (0..bytes.div_ceil(4)).map(move |row| (lane, row)))
                    {
                        let old = 0x8765_0000 + lane;
                        let at = address(lane);
                        let expected = if mask >> lane & 1 == 0 {
                            old
                        } else if at as u64 + bytes as u64 <= 1024 {
                            expected(at as u64, old)[row as usize]
                        } else {
                            match (name.ends_with("d16"), name.ends_with("d16_hi")) {
                                (true, _) => old & 0xffff_0000,
                                (_, true) => old & 0xffff,
                                _ => 0,
                            }
                        };
                        assert_eq!(
                            rig.v(4 + row, lane),
                            expected,
                            "{name} addresses {which} mask {mask:#x} lane {lane}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn stores_of_all_sizes_and_out_of_range() {
    let rules = [
        ("ds_write_b8", "ds_store_b8", 1, 0),
        ("ds_write_b16", "ds_store_b16", 2, 0),
        ("ds_write_b8_d16_hi", "ds_store_b8_d16_hi", 1, 16),
        ("ds_write_b16_d16_hi", "ds_store_b16_d16_hi", 2, 16),
        ("ds_write_b32", "ds_store_b32", 4, 0),
        ("ds_write_b64", "ds_store_b64", 8, 0),
        ("ds_write_b96", "ds_store_b96", 12, 0),
        ("ds_write_b128", "ds_store_b128", 16, 0),
    ];
    for mut rig in Rig::all(&TARGETS) {
        for (before, after, bytes, shift) in rules {
            let name = name(&rig, before, after);
            let addresses: [&dyn Fn(u32) -> u32; 4] =
                [&|lane| bytes * lane + 100, &|_| 52, &|lane| (lane * 29) % 1100 + 1, &|lane| {
                    if lane == 9 { u32::MAX - 1 } else { 16 * (lane % 60) }
                }];
            for address in addresses {
                for mask in masks(rig.lanes()) {
                    fill(&mut rig);
                    rig.wave.set_exec(mask);
                    rig.row(2, address);
                    let data = |lane: u32, row: u32| 0x9e37_79b9u32.wrapping_mul(lane + 5) ^ (row << 7);
                    for row in 0..4 {
                        rig.row(4 + row, |lane| data(lane, row));
                    }
                    rig.ok(&inst(Format::Ds, name, Operand::None, [v(2, 1), v(4, bytes.div_ceil(4) as u8)]));
                    let mut expected: Vec<u8> = (0..1024).map(pattern).collect();
                    for lane in (0..rig.lanes()).filter(|lane| mask >> lane & 1 != 0) {
                        let at = address(lane) as usize;
                        if at + bytes as usize <= 1024 {
                            for index in 0..bytes as usize {
                                expected[at + index] = (data(lane, index as u32 / 4) >> shift >> (index % 4 * 8)) as u8;
                            }
                        }
                    }
                    let got: Vec<u8> = (0..1024).step_by(4).flat_map(|at| rig.lds(at).to_le_bytes()).collect();
                    assert!(got == expected, "{name} mask {mask:#x}");
                }
            }
        }
    }
}

#[test]
fn two_addresses_scale_with_the_element() {
    for mut rig in Rig::all(&TARGETS) {
        fill(&mut rig);
        let lanes = rig.lanes();
        rig.row(2, |lane| 4 * (lane % 8));
        for (before, after, wide, scale) in [
            ("ds_read2_b32", "ds_load_2addr_b32", false, 4),
            ("ds_read2st64_b32", "ds_load_2addr_stride64_b32", false, 256),
            ("ds_read2_b64", "ds_load_2addr_b64", true, 8),
            ("ds_read2st64_b64", "ds_load_2addr_stride64_b64", true, 512),
        ] {
            let load = inst(Format::Ds, name(&rig, before, after), v(4, if wide { 4 } else { 2 }), [v(2, 1)]);
            rig.ok(&with(load, |mods| (mods.offset, mods.offset1) = (3, 1)));
            for lane in 0..lanes {
                let base = 4 * (lane % 8);
                let word = |at: u32, size: u32| {
                    if base + at / scale * scale + size <= 1024 { pattern32((base + at) as u64) } else { 0 }
                };
                let expected = if wide {
                    [word(3 * scale, 8), word(3 * scale + 4, 8), word(scale, 8), word(scale + 4, 8)].to_vec()
                } else {
                    [word(3 * scale, 4), word(scale, 4)].to_vec()
                };
                let got: Vec<u32> = (0..expected.len() as u32).map(|row| rig.v(4 + row, lane)).collect();
                assert_eq!(got, expected, "{before} lane {lane}");
            }
        }
        for (before, after, wide, scale) in [
            ("ds_write2_b32", "ds_store_2addr_b32", false, 4),
            ("ds_write2st64_b32", "ds_store_2addr_stride64_b32", false, 256),
            ("ds_write2_b64", "ds_store_2addr_b64", true, 8),
        ] {
            fill(&mut rig);
            rig.wave.set_exec(2);
            rig.row(2, |_| 4);
            for row in 0..4 {
                rig.row(4 + row, |_| 50 + row);
            }
            let words = if wide { 2 } else { 1 };
            let store = inst(Format::Ds, name(&rig, before, after), Operand::None, [v(2, 1), v(4, words), v(6, words)]);
            rig.ok(&with(store, |mods| (mods.offset, mods.offset1) = (2, 3)));
            assert_eq!((rig.lds(4 + 2 * scale), rig.lds(4 + 3 * scale)), (50, 52), "{before}");
            if wide {
                assert_eq!((rig.lds(8 + 2 * scale), rig.lds(8 + 3 * scale)), (51, 53));
            }
            rig.wave.set_exec(u64::MAX);
        }
        // Exchange: both old values come back.
        fill(&mut rig);
        rig.wave.set_exec(1);
        rig.row(2, |_| 8);
        let exchange = inst(
            Format::Ds,
            name(&rig, "ds_wrxchg2_rtn_b32", "ds_storexchg_2addr_rtn_b32"),
            v(10, 2),
            [v(2, 1), v(4, 1), v(5, 1)],
        );
        rig.ok(&with(exchange, |mods| (mods.offset, mods.offset1) = (0, 1)));
        assert_eq!((rig.v(10, 0), rig.v(11, 0)), (pattern32(8), pattern32(12)));
        assert_eq!((rig.lds(8), rig.lds(12)), (rig.v(4, 0), rig.v(5, 0)));
    }
}

#[test]
fn atomics_go_lane_by_lane_upward() {
    for mut rig in Rig::all(&TARGETS) {
        let lanes = rig.lanes();
        rig.set_lds(16, 100);
        rig.row(2, |_| 8);
        rig.row(4, |lane| lane + 1);
        let add = inst(Format::Ds, "ds_add_rtn_u32", v(6, 1), [v(2, 1), v(4, 1)]);
        rig.ok(&with(add, |mods| mods.offset = 8));
        for lane in 0..lanes {
            assert_eq!(rig.v(6, lane), 100 + lane * (lane + 1) / 2);
        }
        let total = 100 + lanes * (lanes + 1) / 2;
        assert_eq!(rig.lds(16), total);
        // Without return, only active lanes, out of range not at all.
        rig.wave.set_exec(0b1011);
        rig.row(2, |lane| if lane == 3 { 2000 } else { 16 });
        rig.ok(&inst(Format::Ds, "ds_add_u32", Operand::None, [v(2, 1), v(4, 1)]));
        assert_eq!(rig.lds(16), total + 1 + 2);
        // Out of range reads 0.
        rig.row(6, |_| 9);
        rig.ok(&inst(Format::Ds, "ds_max_rtn_u32", v(6, 1), [v(2, 1), v(4, 1)]));
        assert_eq!((rig.v(6, 2), rig.v(6, 3)), (9, 0));
    }
}

#[test]
fn compare_and_store_changed_its_order() {
    // Before GFX11: data0 compares, data1 is stored. From GFX11 on the other way round.
    for (target, name, new, cmp) in
        [(Target::Gfx90a, "ds_cmpst_rtn_b32", 5, 4), (Target::Gfx1100, "ds_cmpstore_rtn_b32", 4, 5)]
    {
        let mut rig = Rig::new(target, 64);
        rig.set_lds(0, 7);
        rig.wave.set_exec(3);
        rig.row(2, |_| 0);
        rig.row(new, |lane| 70 + lane);
        rig.row(cmp, |_| 7);
        rig.ok(&inst(Format::Ds, name, v(6, 1), [v(2, 1), v(4, 1), v(5, 1)]));
        assert_eq!((rig.v(6, 0), rig.v(6, 1), rig.lds(0)), (7, 70, 70));
    }
    let mut rig = Rig::new(Target::Gfx1201, 32);
    rig.set_lds(8, 1);
    rig.set_lds(12, 2);
    rig.wave.set_exec(1);
    rig.row(2, |_| 8);
    rig.row64(4, |_| 0xaaaa_bbbb_cccc_dddd);
    rig.row64(6, |_| 2 << 32 | 1);
    rig.ok(&inst(Format::Ds, "ds_cmpstore_b64", Operand::None, [v(2, 1), v(4, 2), v(6, 2)]));
    assert_eq!((rig.lds(8), rig.lds(12)), (0xcccc_dddd, 0xaaaa_bbbb));
}

#[test]
fn wide_and_special_atomics() {
    let mut rig = Rig::new(Target::Gfx90a, 64);
    rig.wave.set_exec(1);
    rig.row(2, |_| 0);
    let mut run = |name, words, before: u64, data: u64, second: u64| {
        rig.set_lds(0, before as u32);
        rig.set_lds(4, (before >> 32) as u32);
        rig.row64(4, |_| data);
        rig.row64(6, |_| second);
        rig.ok(&inst(Format::Ds, name, v(8, words), [v(2, 1), v(4, words), v(6, words)]));
        rig.lds(0) as u64 | (rig.lds(4) as u64) << 32
    };
    assert_eq!(run("ds_add_rtn_u64", 2, u64::MAX, 3, 0), 2);
    assert_eq!(run("ds_rsub_u32", 1, 10, 30, 0), 20);
    assert_eq!(run("ds_mskor_b32", 1, 0xff00, 0x0f00, 0x0003,), 0xf003);
    assert_eq!(run("ds_wrap_rtn_b32", 1, 10, 4, 9), 6);
    assert_eq!(run("ds_wrap_rtn_b32", 1, 3, 4, 9), 12);
    assert_eq!(run("ds_condxchg32_rtn_b64", 2, 0x11 << 32 | 0x22, 0x8000_0033 << 32 | 0x44, 0), 0x33 << 32 | 0x22);
    assert_eq!(run("ds_add_f32", 1, 1.5f32.to_bits() as u64, 2.25f32.to_bits() as u64, 0), 3.75f32.to_bits() as u64);
    assert_eq!(run("ds_min_f64", 2, 1.5f64.to_bits(), (-2.0f64).to_bits(), 0), (-2.0f64).to_bits());
    assert_eq!(run("ds_pk_add_f16", 1, 0x3c00_4000, 0x3c00_3c00, 0), 0x4000_4200);
}

#[test]
fn thread_id_forms_append_and_consume() {
    for mut rig in Rig::all(&TARGETS) {
        let lanes = rig.lanes();
        fill(&mut rig);
        rig.wave.scalar[124] = 0xabcd_0010;
        let load = inst(Format::Ds, name(&rig, "ds_read_addtid_b32", "ds_load_addtid_b32"), v(4, 1), []);
        rig.ok(&with(load, |mods| mods.offset = 0x204));
        for lane in 0..lanes {
            assert_eq!(rig.v(4, lane), pattern32(0x214 + 4 * lane as u64));
        }
        rig.row(5, |lane| lane);
        let store = inst(
            Format::Ds,
            name(&rig, "ds_write_addtid_b32", "ds_store_addtid_b32"),
            Operand::None,
            [Operand::None, v(5, 1)],
        );
        rig.ok(&store);
        assert_eq!((rig.lds(0x10), rig.lds(0x10 + 4 * (lanes - 1))), (0, lanes - 1));

        rig.set_lds(0x20, 1000);
        rig.wave.set_exec(0b110101);
        rig.row(6, |_| 0);
        rig.ok(&with(inst(Format::Ds, "ds_append", v(6, 1), []), |mods| mods.offset = 0x10));
        assert_eq!((rig.v(6, 0), rig.v(6, 1), rig.v(6, 5), rig.lds(0x20)), (1000, 0, 1000, 1004));
        rig.ok(&with(inst(Format::Ds, "ds_consume", v(6, 1), []), |mods| mods.offset = 0x10));
        assert_eq!((rig.v(6, 2), rig.lds(0x20)), (1004, 1000));
    }
}

#[test]
fn bpermute_masks_the_lane_and_sees_only_active_ones() {
    for mut rig in Rig::all(&TARGETS) {
        let lanes = rig.lanes();
        let halves = rig.target != Target::Gfx90a && lanes == 64;
        rig.row(2, |lane| 4 * (lane + 3) + 2 + 0x400);
        rig.row(4, |lane| 100 + lane);
        let exec = rig.wave.full_mask() & !(1 << 10);
        rig.wave.set_exec(exec);
        let decoded = with(inst(Format::Ds, "ds_bpermute_b32", v(4, 1), [v(2, 1), v(4, 1)]), |mods| mods.offset = 4);
        rig.ok(&decoded);
        for lane in 0..lanes {
            let from = if halves { (lane & 32) | ((lane + 4) % 32) } else { (lane + 4) % lanes };
            let expected = match (lane, from) {
                (10, _) => 110,
                (_, 10) => 0,
                _ => 100 + from,
            };
            assert_eq!(rig.v(4, lane), expected, "lane {lane} of {lanes} on {}", rig.target);
        }
        // The form that fetches from inactive lanes.
        rig.row(4, |lane| 100 + lane);
        rig.ok(&with(inst(Format::Ds, "ds_bpermute_fi_b32", v(5, 1), [v(2, 1), v(4, 1)]), |mods| mods.offset = 4));
        assert_eq!(rig.v(5, 6), 110);
    }
}

#[test]
fn permute_sends_and_the_last_sender_wins() {
    for mut rig in Rig::all(&TARGETS) {
        let lanes = rig.lanes();
        // Even lanes send to themselves + 1, lanes 4 and 5 both to 20, others to themselves + 1 as well.
        rig.row(2, |lane| 4 * if lane == 4 || lane == 5 { 20 } else { lane / 2 * 2 + 1 });
        rig.row(4, |lane| 100 + lane);
        rig.ok(&inst(Format::Ds, "ds_permute_b32", v(5, 1), [v(2, 1), v(4, 1)]));
        for lane in 0..lanes.min(32) {
            let expected = match lane {
                20 => 105,
                5 => 0,
                _ if lane % 2 == 1 => 100 + lane,
                _ => 0,
            };
            assert_eq!(rig.v(5, lane), expected, "lane {lane}");
        }
    }
}

#[test]
fn swizzle_reads_zero_from_inactive_lanes() {
    for mut rig in Rig::all(&TARGETS) {
        rig.row(2, |lane| 100 + lane);
        let exec = rig.wave.full_mask() & !(1 << 6);
        rig.wave.set_exec(exec);
        rig.row(3, |_| 1);
        rig.ok(&with(inst(Format::Ds, "ds_swizzle_b32", v(3, 1), [v(2, 1)]), |mods| mods.offset = 0x041f));
        for lane in 0..rig.lanes() {
            let expected = match lane {
                6 => 1,
                7 => 0,
                _ => 100 + (lane ^ 1),
            };
            assert_eq!(rig.v(3, lane), expected);
        }
    }
}

#[test]
fn refusals_name_the_reason() {
    let mut rig = Rig::new(Target::Gfx90a, 64);
    let refused = |rig: &mut Rig, decoded: &Decoded| match rig.lower(decoded) {
        Err(reason) => reason.to_string(),
        Ok(_) => panic!("it must be refused"),
    };
    let gws = inst(Format::Ds, "ds_gws_barrier", Operand::None, [v(2, 1)]);
    assert_eq!(refused(&mut rig, &gws), "GWS is not emulated: no global wave sync resource can be had");
    let gds = with(inst(Format::Ds, "ds_add_u32", Operand::None, [v(2, 1), v(4, 1)]), |mods| mods.gds = true);
    assert_eq!(refused(&mut rig, &gds), "the global data share is not emulated");
    rig.ok(&inst(Format::Ds, "ds_nop", Operand::None, []));
}

#[test]
fn data_of_src2_forms_lie_in_lds_at_a_distance() {
    type Rule = (&'static str, bool, fn(u64, u64) -> u64);
    let rules: [Rule; 8] = [
        ("ds_add_src2_u32", false, |a, b| a.wrapping_add(b)),
        ("ds_rsub_src2_u32", false, |a, b| b.wrapping_sub(a)),
        ("ds_max_src2_i32", false, |a, b| (a as i32).max(b as i32) as u64),
        ("ds_write_src2_b32", false, |_, b| b),
        ("ds_inc_src2_u64", true, |a, b| if a >= b { 0 } else { a + 1 }),
        ("ds_xor_src2_b64", true, |a, b| a ^ b),
        ("ds_min_src2_f64", true, |a, b| {
            let (a, b) = (f64::from_bits(a), f64::from_bits(b));
            (if b < a { b } else { a }).to_bits()
        }),
        ("ds_write_src2_b64", true, |_, b| b),
    ];
    // The distance in dwords: 15 bits of the offset, or address 31:17 when offset 15 is set; then the address has 17 bits.
    let by_address = 300 << 17 | 64;
    for (offset, base, at, distance) in
        [(0x10, 512, 512, 16), (0x7ff8, 512, 512, -8), (0x8000, by_address, 64, 300 / 2), (0xfff0, 512, 512, 0)]
    {
        for (name, wide, rule) in rules {
            let mut rig = Rig::new(Target::Gfx900, 64);
            fill(&mut rig);
            let before: Vec<u32> = (0..256).map(|word| rig.lds(4 * word)).collect();
            // One lane at a time of the few: lanes before change what later ones see.
            rig.wave.set_exec(0b101);
            let distance = if offset == 0x8000 { 300 } else { distance };
            rig.row(2, |lane| base + 8 * (lane / 2));
            rig.ok(&with(inst(Format::Ds, name, Operand::None, [v(2, 1)]), |mods| mods.offset = offset));
            let mut wanted = before.clone();
            for lane in [0i32, 2] {
                let a = (at + 8 * (lane / 2)) / 4;
                let b = a + distance;
                let read = |words: &[u32], at: i32| {
                    let inside = at >= 0 && (at as usize) + (wide as usize) < words.len();
                    let word = |n: i32| if inside { words[(at + n) as usize] as u64 } else { 0 };
                    if wide { word(0) | word(1) << 32 } else { word(0) }
                };
                let new = rule(read(&wanted, a), read(&wanted, b));
                wanted[a as usize] = new as u32;
                if wide {
                    wanted[a as usize + 1] = (new >> 32) as u32;
                }
            }
            let after: Vec<u32> = (0..256).map(|word| rig.lds(4 * word)).collect();
            assert_eq!(after, wanted, "{name} offset {offset:#x}");
        }
    }
}

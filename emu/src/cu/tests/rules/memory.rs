//! Memory: address forms, layouts, bounds, atomics.

use super::*;

/// A resource descriptor: base, stride, records, word 3.
fn resource(gpu: &mut Gpu, register: u8, base: u64, stride: u32, records: u32, word3: u32) {
    gpu.set_s64(register, base | (stride as u64) << 48);
    (gpu.set_s(register + 2, records), gpu.set_s(register + 3, word3));
}

#[test]
fn flat_accesses_tell_lds_scratch_and_memory_by_the_high_half_of_the_address() {
    let gfx9 = "
        .gfx90a
        dc500000 04000002  flat_load_dword v4, v[2:3]
        dc700000 00000102  flat_store_dword v[2:3], v1
        dc500004 05000002  flat_load_dword v5, v[2:3] offset:4
    ";
    let gfx11 = "
        .gfx1100
        dc500000 047c0002  flat_load_b32 v4, v[2:3]
        dc680000 007c0102  flat_store_b32 v[2:3], v1
        dc500004 057c0002  flat_load_b32 v5, v[2:3] offset:4
    ";
    each(&[gfx9, gfx11], |gpu| {
        gpu.set(1, |lane| 9000 + lane);
        let place = |lane: u32| match lane % 3 {
            0 => (1 << 48) + 8 * lane as u64,
            1 => (2 << 48) + 16,
            _ => DATA + 8 * lane as u64,
        };
        gpu.set64(2, place);
        (0..256).for_each(|word| gpu.set_lds(word, 5000 + word as u32));
        gpu.ok();
        let lanes = gpu.lanes();
        for lane in 0..lanes {
            // Scratch holds the index of each word, dwords of lanes side by side.
            let scratch = |dword: u32| dword * lanes + lane;
            let [before, next] = match lane % 3 {
                0 => [5000 + 2 * lane, 5001 + 2 * lane],
                1 => [scratch(4), scratch(5)],
                _ => [2 * lane, 2 * lane + 1],
            };
            assert_eq!([gpu.v(4, lane), gpu.v(5, lane)], [before, next], "{} lane {lane}", gpu.target);
            let after = match lane % 3 {
                0 => gpu.lds(2 * lane as usize),
                1 => gpu.scratch.0[scratch(4) as usize].load(Ordering::Relaxed),
                _ => gpu.word(2 * lane as usize),
            };
            assert_eq!(after, 9000 + lane, "lane {lane}");
        }
    });
}

#[test]
fn scratch_is_interleaved_by_dwords_of_lanes() {
    let gfx942 = "
        .gfx942
        dc606000 007f0102  scratch_store_byte v2, v1, off
        dc504008 047f0000  scratch_load_dword v4, off, off offset:8
        dc744000 00040600  scratch_store_dwordx2 off, v[6:7], s4
    ";
    let gfx10 = "
        .gfx1030
        dc604000 007d0102  scratch_store_byte v2, v1, off
        dc304008 047f0000  scratch_load_dword v4, off, off offset:8
        dc744000 00040600  scratch_store_dwordx2 off, v[6:7], s4
    ";
    let gfx11 = "
        .gfx1100
        dc610000 00fc0102  scratch_store_b8 v2, v1, off
        dc510008 047c0000  scratch_load_b32 v4, off, off offset:8
        dc6d0000 00040600  scratch_store_b64 off, v[6:7], s4
    ";
    let gfx12 = "
        .gfx1201
        ed06007c 00820000 00000002  scratch_store_b8 v2, v1, off
        ed05007c 00000004 00000800  scratch_load_b32 v4, off, off offset:8
        ed06c004 03000000 00000000  scratch_store_b64 off, v[6:7], s4
    ";
    let wave64 = "
        .gfx1201 wave64
        ed06007c 00820000 00000002  scratch_store_b8 v2, v1, off
        ed05007c 00000004 00000800  scratch_load_b32 v4, off, off offset:8
        ed06c004 03000000 00000000  scratch_store_b64 off, v[6:7], s4
    ";
    each(&[gfx942, gfx10, gfx11, gfx12, wave64], |gpu| {
        (gpu.fill(1, 0xee), gpu.set(2, |lane| lane % 8), gpu.set(6, |lane| 70 + lane), gpu.set(7, |lane| 170 + lane));
        gpu.set_s(4, 16);
        gpu.ok();
        let lanes = gpu.lanes();
        let word = |dword: u32, lane: u32| gpu.scratch.0[(dword * lanes + lane) as usize].load(Ordering::Relaxed);
        for lane in 0..lanes {
            let byte = lane % 8;
            let old = byte / 4 * lanes + lane;
            let shift = 8 * (byte % 4);
            assert_eq!(word(byte / 4, lane), old & !(0xff << shift) | 0xee << shift, "{} lane {lane}", gpu.target);
            assert_eq!(gpu.v(4, lane), 2 * lanes + lane);
            assert_eq!([word(4, lane), word(5, lane)], [70 + lane, 170 + lane]);
        }
    });
}

#[test]
fn scalar_loads_drop_the_low_address_bits_and_gfx12_has_small_and_odd_sizes() {
    let gfx9 = "
        .gfx90a
        c0000282 00000006  s_load_dword s10, s[4:5], s6
        c0060302 00000007  s_load_dwordx2 s[12:13], s[4:5], 0x7
        c00202c2 001ffffc  s_load_dword s11, s[4:5], -0x4
    ";
    let gfx11 = "
        .gfx1100
        f4000282 0c000000  s_load_b32 s10, s[4:5], s6
        f4040302 f8000007  s_load_b64 s[12:13], s[4:5], 0x7
        f40002c2 f81ffffc  s_load_b32 s11, s[4:5], -0x4
    ";
    let gfx12 = "
        .gfx1201
        f4000282 0c000000  s_load_b32 s10, s[4:5], s6 offset:0x0
        f4002302 f8000007  s_load_b64 s[12:13], s[4:5], 0x7
        f40002c2 f8fffffc  s_load_b32 s11, s[4:5], -0x4
        f400a402 f8000010  s_load_b96 s[16:18], s[4:5], 0x10
        f4012502 f8000011  s_load_u8 s20, s[4:5], 0x11
        f4010542 f8000013  s_load_i8 s21, s[4:5], 0x13
        f4016582 f8000012  s_load_u16 s22, s[4:5], 0x12
        f40145c2 f8000012  s_load_i16 s23, s[4:5], 0x12
        f4000602 f8ffff00  s_load_b32 s24, s[4:5], -0x100
    ";
    each(&[gfx9, gfx11, gfx12], |gpu| {
        gpu.set_s64(4, DATA + 0x100);
        gpu.set_s(6, 0x22);
        gpu.set_word(64 + 4, 0x8182_8384);
        gpu.ok();
        assert_eq!([gpu.s(10), gpu.s(12), gpu.s(13), gpu.s(11)], [64 + 8, 64 + 1, 64 + 2, 63], "{}", gpu.target);
        if gpu.target == Target::Gfx1201 {
            assert_eq!([gpu.s(16), gpu.s(17), gpu.s(18)], [0x8182_8384, 69, 70]);
            assert_eq!([gpu.s(20), gpu.s(21)], [0x83, 0xffff_ff81]);
            assert_eq!([gpu.s(22), gpu.s(23), gpu.s(24)], [0x8182, 0xffff_8182, 0]);
        }
    });
}

#[test]
fn global_addresses_are_a_scalar_base_an_unsigned_offset_and_a_signed_immediate() {
    let gfx9 = "
        .gfx90a
        dc509000 04040001  global_load_dword v4, v1, s[4:5] offset:-4096
        dc508ffc 05060002  global_load_dword v5, v2, s[6:7] offset:4092
        dc509ff8 067f0008  global_load_dword v6, v[8:9], off offset:-8
    ";
    let gfx10 = "
        .gfx1030
        dc308800 04040001  global_load_dword v4, v1, s[4:5] offset:-2048
        dc3087fc 05060002  global_load_dword v5, v2, s[6:7] offset:2044
        dc308ff8 067d0008  global_load_dword v6, v[8:9], off offset:-8
    ";
    let gfx11 = "
        .gfx1100
        dc521000 04040001  global_load_b32 v4, v1, s[4:5] offset:-4096
        dc520ffc 05060002  global_load_b32 v5, v2, s[6:7] offset:4092
        dc521ff8 067c0008  global_load_b32 v6, v[8:9], off offset:-8
    ";
    let gfx12 = "
        .gfx1201
        ee050004 00000004 80000001  global_load_b32 v4, v1, s[4:5] offset:-8388608
        ee050006 00000005 7ffffc02  global_load_b32 v5, v2, s[6:7] offset:8388604
        ee05007c 00000006 fffff808  global_load_b32 v6, v[8:9], off offset:-8
    ";
    each(&[gfx9, gfx10, gfx11, gfx12], |gpu| {
        let most = match gpu.target.family() {
            Family::Gfx10 => 2048u64,
            Family::Gfx12 => 8 << 20,
            _ => 4096,
        };
        gpu.set(1, |lane| 0xffff_0000 + 4 * lane);
        gpu.set(2, |lane| 4 * lane);
        gpu.set_s64(4, DATA.wrapping_sub(0xffff_0000).wrapping_add(most));
        gpu.set_s64(6, DATA + 4 - most);
        gpu.set64(8, |lane| DATA + 8 + 4 * lane as u64);
        gpu.ok();
        for lane in 0..gpu.lanes() {
            assert_eq!([gpu.v(4, lane), gpu.v(5, lane), gpu.v(6, lane)], [lane; 3], "{} lane {lane}", gpu.target);
        }
    });
}

#[test]
fn buffers_end_at_num_records_bytes_or_records() {
    let gfx9 = "
        .gfx90a
        e0501000 80010401  buffer_load_dword v4, v1, s[4:7], 0 offen
        e0502004 80020502  buffer_load_dword v5, v2, s[8:11], 0 idxen offset:4
        e0701000 80010301  buffer_store_dword v3, v1, s[4:7], 0 offen
        e0541000 80010601  buffer_load_dwordx2 v[6:7], v1, s[4:7], 0 offen
    ";
    let gfx11 = "
        .gfx1100
        e0500000 80410401  buffer_load_b32 v4, v1, s[4:7], 0 offen
        e0500004 80820502  buffer_load_b32 v5, v2, s[8:11], 0 idxen offset:4
        e0680000 80410301  buffer_store_b32 v3, v1, s[4:7], 0 offen
        e0540000 80410601  buffer_load_b64 v[6:7], v1, s[4:7], 0 offen
    ";
    let gfx12 = "
        .gfx1201
        c405007c 40800804 00000001  buffer_load_b32 v4, v1, s[4:7], null offen
        c405007c 80801005 00000402  buffer_load_b32 v5, v2, s[8:11], null idxen offset:4
        c406807c 40800803 00000001  buffer_store_b32 v3, v1, s[4:7], null offen
        c405407c 40800806 00000001  buffer_load_b64 v[6:7], v1, s[4:7], null offen
    ";
    each(&[gfx9, gfx11, gfx12], |gpu| {
        // OOB_SELECT 3 (raw) from GFX10 on.
        let (raw, structured) = if gpu.gfx9() { (0x2_0000, 0x2_0000) } else { (3 << 28 | 0x1_4000, 0x1_4000) };
        resource(gpu, 4, DATA, 0, 40, raw);
        resource(gpu, 8, DATA, 16, 5, structured);
        gpu.set(1, |lane| 4 * lane);
        gpu.set(2, |lane| lane);
        gpu.fill(3, 0xeeee);
        (4..8).for_each(|register| gpu.fill(register, 77));
        gpu.ok();
        for lane in 0..16 {
            assert_eq!(gpu.v(4, lane), if lane < 10 { lane } else { 0 }, "{} lane {lane}: 40 bytes", gpu.target);
            assert_eq!(
                gpu.v(5, lane),
                if lane < 5 { 4 * lane + 1 } else { 0 },
                "{} lane {lane}: 5 records",
                gpu.target
            );
            assert_eq!(gpu.word(lane as usize), if lane < 10 { 0xeeee } else { lane }, "a store beyond is dropped");
        }
        assert_eq!([gpu.v(6, 8), gpu.v(7, 8), gpu.v(6, 9), gpu.v(7, 9)], [0xeeee, 0xeeee, 0xeeee, 0]);
    });
}

#[test]
fn atomics_return_on_request_alone_and_take_the_new_value_in_front_of_the_compared() {
    let gfx9 = "
        .gfx90a
        dd098000 04040201  global_atomic_add v4, v1, v2, s[4:5] glc
        dd088000 00040201  global_atomic_add v1, v2, s[4:5]
        dd058040 05040601  global_atomic_cmpswap v5, v1, v[6:7], s[4:5] offset:64 glc
        dd2d8080 08040901  global_atomic_inc v8, v1, v9, s[4:5] offset:128 glc
        dd3180c0 0a040901  global_atomic_dec v10, v1, v9, s[4:5] offset:192 glc
        dd348100 00040c01  global_atomic_add_f32 v1, v12, s[4:5] offset:256
        dd388140 00040d01  global_atomic_pk_add_f16 v1, v13, s[4:5] offset:320
        dd1d8180 0e040f01  global_atomic_umax v14, v1, v15, s[4:5] offset:384 glc
    ";
    let gfx11 = "
        .gfx1100
        dcd64000 04040201  global_atomic_add_u32 v4, v1, v2, s[4:5] glc
        dcd60000 00040201  global_atomic_add_u32 v1, v2, s[4:5]
        dcd24040 05040601  global_atomic_cmpswap_b32 v5, v1, v[6:7], s[4:5] offset:64 glc
        dcfe4080 08040901  global_atomic_inc_u32 v8, v1, v9, s[4:5] offset:128 glc
        dd0240c0 0a040901  global_atomic_dec_u32 v10, v1, v9, s[4:5] offset:192 glc
        dd5a0100 00040c01  global_atomic_add_f32 v1, v12, s[4:5] offset:256
        bf800000  s_nop 0
        dcee4180 0e040f01  global_atomic_max_u32 v14, v1, v15, s[4:5] offset:384 glc
    ";
    let gfx12 = "
        .gfx1201
        ee0d4004 01100004 00000001  global_atomic_add_u32 v4, v1, v2, s[4:5] th:TH_ATOMIC_RETURN
        ee0d4004 01000000 00000001  global_atomic_add_u32 v1, v2, s[4:5]
        ee0d0004 03100005 00004001  global_atomic_cmpswap_b32 v5, v1, v[6:7], s[4:5] offset:64 th:TH_ATOMIC_RETURN
        ee0fc004 04900008 00008001  global_atomic_inc_u32 v8, v1, v9, s[4:5] offset:128 th:TH_ATOMIC_RETURN
        ee100004 0490000a 0000c001  global_atomic_dec_u32 v10, v1, v9, s[4:5] offset:192 th:TH_ATOMIC_RETURN
        ee158004 06000000 00010001  global_atomic_add_f32 v1, v12, s[4:5] offset:256
        ee164004 06800000 00014001  global_atomic_pk_add_f16 v1, v13, s[4:5] offset:320
        ee0ec004 0790000e 00018001  global_atomic_max_u32 v14, v1, v15, s[4:5] offset:384 th:TH_ATOMIC_RETURN
    ";
    each(&[gfx9, gfx11, gfx12], |gpu| {
        gpu.set_s64(4, DATA);
        gpu.exec(0b1011);
        // All lanes on one word each.
        gpu.fill(1, 0);
        gpu.set(2, |lane| 10 + lane);
        // Lane 1 alone compares with what is there.
        (gpu.set(6, |lane| 700 + lane), gpu.set(7, |lane| if lane == 1 { 16 } else { 5000 }));
        (
            gpu.fill(9, 5),
            gpu.fill_f(12, 1.5),
            gpu.fill(13, 0x4000_3c00),
            gpu.set(15, |lane| [50, 300, 0, 200][lane as usize % 4]),
        );
        (
            gpu.set_word(0, 1000),
            gpu.set_word(32, 4),
            gpu.set_word(48, 1),
            gpu.set_word(64, 0),
            gpu.set_word(80, 0),
            gpu.set_word(96, 96),
        );
        gpu.ok();
        let lanes = |register| [gpu.v(register, 0), gpu.v(register, 1), gpu.v(register, 3)];
        assert_eq!((lanes(4), gpu.word(0)), ([1000, 1010, 1021], 1000 + 2 * 34), "{}: lanes in order", gpu.target);
        assert_eq!((lanes(5), gpu.word(16)), ([16, 16, 701], 701), "cmpswap");
        assert_eq!((lanes(8), gpu.word(32)), ([4, 5, 0], 1), "inc wraps at the operand");
        assert_eq!((lanes(10), gpu.word(48)), ([1, 0, 5], 4), "dec wraps to the operand");
        assert_eq!(f32::from_bits(gpu.word(64)), 4.5);
        if gpu.target != Target::Gfx1100 {
            assert_eq!(gpu.word(80), 0x4600_4200, "three times (2, 1)");
        }
        assert_eq!((lanes(14), gpu.word(96)), ([96, 96, 300], 300));
    });
}

#[test]
fn lds_forms_scale_their_offsets_and_every_lane_takes_part_in_atomics() {
    let gfx9 = "
        .gfx90a
        d8000000 00000201  ds_add_u32 v1, v2
        d8400200 04000203  ds_add_rtn_u32 v4, v3, v2 offset:512
        d86e0301 06000001  ds_read2_b32 v[6:7], v1 offset0:1 offset1:3
        d8ee0100 08000003  ds_read2_b64 v[8:11], v3 offset1:1
        d8700100 0c000003  ds_read2st64_b32 v[12:13], v3 offset1:1
        d81c6040 00020201  ds_write2_b32 v1, v2, v2 offset0:64 offset1:96
        d96c0004 0e000000  ds_read_addtid_b32 v14 offset:4
        d8200258 00111003  ds_cmpst_b32 v3, v16, v17 offset:600
    ";
    let gfx11 = "
        .gfx1100
        d8000000 00000201  ds_add_u32 v1, v2
        d8800200 04000203  ds_add_rtn_u32 v4, v3, v2 offset:512
        d8dc0301 06000001  ds_load_2addr_b32 v[6:7], v1 offset0:1 offset1:3
        d9dc0100 08000003  ds_load_2addr_b64 v[8:11], v3 offset1:1
        d8e00100 0c000003  ds_load_2addr_stride64_b32 v[12:13], v3 offset1:1
        d8386040 00020201  ds_store_2addr_b32 v1, v2, v2 offset0:64 offset1:96
        dac40004 0e000000  ds_load_addtid_b32 v14 offset:4
        d8400258 00101103  ds_cmpstore_b32 v3, v17, v16 offset:600
    ";
    each(&[gfx9, gfx11], |gpu| {
        gpu.exec(0xff);
        (0..256).for_each(|word| gpu.set_lds(word, 1000 * word as u32));
        gpu.set(1, |lane| 4 * lane);
        gpu.set(2, |lane| 1 + lane);
        gpu.fill(3, 0);
        // Compared and new value: GFX9 has the compared one first, GFX11 the new one.
        (gpu.fill(16, 150_000), gpu.fill(17, 42));
        gpu.set_s(number::M0, 0);
        gpu.ok();
        for lane in 0..8 {
            let word = lane as usize;
            assert_eq!(gpu.lds(word), 1000 * lane + 1 + lane, "{} lane {lane}", gpu.target);
            let below: u32 = (1..=lane).sum();
            assert_eq!(gpu.v(4, lane), 128_000 + below, "one after the other");
            let at = |word: u32| 1000 * word + if word < 8 { 1 + word } else { 0 };
            assert_eq!([gpu.v(6, lane), gpu.v(7, lane)], [at(lane + 1), at(lane + 3)]);
            assert_eq!([8, 9, 10, 11].map(|register| gpu.v(register, lane)), [1, 1002, 2003, 3004]);
            assert_eq!([gpu.v(12, lane), gpu.v(13, lane)], [1, 64_000]);
            assert_eq!([gpu.lds(64 + word), gpu.lds(96 + word)], [1 + lane; 2]);
            assert_eq!(gpu.v(14, lane), at(lane + 1));
        }
        assert_eq!(gpu.lds(150), 42, "{}", gpu.target);
    });
}

#[test]
fn lds_ends_with_the_allocation() {
    let gfx9 = "
        .gfx90a
        d86c0000 04000001  ds_read_b32 v4, v1
        d81a0000 00000201  ds_write_b32 v1, v2
        d8ec0000 06000003  ds_read_b64 v[6:7], v3
        d8400000 05000201  ds_add_rtn_u32 v5, v1, v2
    ";
    let gfx11 = "
        .gfx1100
        d8d80000 04000001  ds_load_b32 v4, v1
        d8340000 00000201  ds_store_b32 v1, v2
        d9d80000 06000003  ds_load_b64 v[6:7], v3
        d8800000 05000201  ds_add_rtn_u32 v5, v1, v2
    ";
    each(&[gfx9, gfx11], |gpu| {
        gpu.exec(0b1111);
        (0..256).for_each(|word| gpu.set_lds(word, 7));
        gpu.set(1, |lane| [LDS - 4, LDS, 0xffff_fffc, 0x1_0000][lane as usize % 4]);
        gpu.fill(2, 3);
        gpu.fill(3, LDS);
        [4, 5, 6, 7].iter().for_each(|register| gpu.fill(*register, 99));
        gpu.ok();
        assert_eq!([0, 1, 2, 3].map(|lane| gpu.v(4, lane)), [7, 0, 0, 0], "{}", gpu.target);
        assert_eq!([0, 1, 2, 3].map(|lane| gpu.v(5, lane)), [3, 0, 0, 0]);
        assert_eq!([gpu.v(6, 0), gpu.v(7, 0), gpu.lds(255), gpu.lds(0)], [0, 0, 6, 7]);
    });
}

#[test]
fn d16_loads_keep_the_other_half_and_small_loads_extend() {
    let gfx9 = "
        .gfx90a
        dc908000 04040001  global_load_short_d16 v4, v1, s[4:5]
        dc948000 05040001  global_load_short_d16_hi v5, v1, s[4:5]
        dc808001 06040001  global_load_ubyte_d16 v6, v1, s[4:5] offset:1
        dc8c8001 07040001  global_load_sbyte_d16_hi v7, v1, s[4:5] offset:1
        dc448001 08040001  global_load_sbyte v8, v1, s[4:5] offset:1
        dc488000 09040001  global_load_ushort v9, v1, s[4:5]
        dc4c8000 0a040001  global_load_sshort v10, v1, s[4:5]
        d8b40000 0b000001  ds_read_u16_d16 v11, v1
        d8b20001 0c000001  ds_read_i8_d16_hi v12, v1 offset:1
        dc6c8008 00040d01  global_store_short_d16_hi v1, v13, s[4:5] offset:8
        e0941000 80020e01  buffer_load_short_d16_hi v14, v1, s[8:11], 0 offen
    ";
    let gfx11 = "
        .gfx1100
        dc820000 04040001  global_load_d16_b16 v4, v1, s[4:5]
        dc8e0000 05040001  global_load_d16_hi_b16 v5, v1, s[4:5]
        dc7a0001 06040001  global_load_d16_u8 v6, v1, s[4:5] offset:1
        dc8a0001 07040001  global_load_d16_hi_i8 v7, v1, s[4:5] offset:1
        dc460001 08040001  global_load_i8 v8, v1, s[4:5] offset:1
        dc4a0000 09040001  global_load_u16 v9, v1, s[4:5]
        dc4e0000 0a040001  global_load_i16 v10, v1, s[4:5]
        da980000 0b000001  ds_load_u16_d16 v11, v1
        da940001 0c000001  ds_load_i8_d16_hi v12, v1 offset:1
        dc960008 00040d01  global_store_d16_hi_b16 v1, v13, s[4:5] offset:8
        e08c0000 80420e01  buffer_load_d16_hi_b16 v14, v1, s[8:11], 0 offen
    ";
    each(&[gfx9, gfx11], |gpu| {
        gpu.set_s64(4, DATA);
        resource(gpu, 8, DATA, 0, 0x1000, if gpu.target == Target::Gfx90a { 0x2_0000 } else { 3 << 28 | 0x1_4000 });
        gpu.exec(1);
        gpu.fill(1, 0);
        (gpu.set_word(0, 0x1234_f0a5), gpu.set_word(2, 0x5555_5555));
        gpu.set_lds(0, 0x1234_f0a5);
        (4..15).for_each(|register| gpu.fill(register, 0xaaaa_bbbb));
        gpu.ok();
        let got: Vec<u32> = (4..13).map(|register| gpu.v(register, 0)).collect();
        let wanted = [
            0xaaaa_f0a5,
            0xf0a5_bbbb,
            0xaaaa_00f0,
            0xfff0_bbbb,
            0xffff_fff0,
            0xf0a5,
            0xffff_f0a5,
            0xaaaa_f0a5,
            0xfff0_bbbb,
        ];
        assert_eq!(got, wanted, "{}", gpu.target);
        assert_eq!((gpu.word(2), gpu.v(14, 0)), (0x5555_aaaa, 0xf0a5_bbbb));
    });
}

#[test]
fn waits_cache_controls_and_hints_change_nothing() {
    let gfx9 = "
        .gfx90a
        bf8c0000  s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)
        e0a00000 00000000  buffer_wbl2
        e0a40000 00000000  buffer_invl2
        e0fc0000 00000000  buffer_wbinvl1_vol
        c0800000 00000000  s_dcache_inv
        c0840000 00000000  s_dcache_wb
        bf930000  s_icache_inv
        bf800007  s_nop 7
        bf8f0003  s_setprio 3
    ";
    let gfx942 = "
        .gfx942
        e0a0c000 00000000  buffer_wbl2 sc0 sc1
        e0a4c000 00000000  buffer_inv sc0 sc1
    ";
    let gfx11 = "
        .gfx1100
        bf890000  s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)
        bc7c0000  s_waitcnt_vscnt null, 0x0
        bf88ff9e  s_waitcnt_depctr depctr_sa_sdst(0)
        e0ac0000 00000000  buffer_gl0_inv
        e0b00000 00000000  buffer_gl1_inv
        f4840000 00000000  s_dcache_inv
        bf870001  s_delay_alu instid0(VALU_DEP_1)
        bf850003  s_clause 0x3
        bf840001  s_set_inst_prefetch_distance 0x1
        bfbc0000  s_icache_inv
    ";
    let gfx12 = "
        .gfx1201
        bfc00000  s_wait_loadcnt 0x0
        bfc10000  s_wait_storecnt 0x0
        bfc60000  s_wait_dscnt 0x0
        bfc70000  s_wait_kmcnt 0x0
        bfc80000  s_wait_loadcnt_dscnt 0x0
        bf88ff9e  s_wait_alu depctr_sa_sdst(0)
        ee0ac07c 000c0000 00000000  global_inv scope:SCOPE_SYS
        ee0b007c 000c0000 00000000  global_wb scope:SCOPE_SYS
        ee13c07c 000c0000 00000000  global_wbinv scope:SCOPE_SYS
        f4042000 00000000  s_dcache_inv
    ";
    each(&[gfx9, gfx942, gfx11, gfx12], |gpu| {
        (0..ROWS).for_each(|register| gpu.fill(register, 3 * register));
        let scalars = gpu.wave.scalar;
        gpu.wave.scc = true;
        gpu.ok();
        assert!((0..ROWS).all(|register| gpu.v(register, 1) == 3 * register));
        assert!(gpu.wave.scalar == scalars && gpu.wave.scc, "{}", gpu.target);
    });
}

#[test]
fn a_denied_access_names_address_lanes_and_instruction() {
    let listing = "
        .gfx90a
        bf800000  s_nop 0
        dc508000 047f0002  global_load_dword v4, v[2:3], off
    ";
    let store = "
        .gfx1100
        bf800000  s_nop 0
        dc6a0000 007c0402  global_store_b32 v[2:3], v4, off
    ";
    each(&[listing, store], |gpu| {
        let write = !gpu.gfx9();
        gpu.set64(2, |lane| if lane == 5 { if write { CONSTANT } else { 0x7000 } } else { DATA });
        gpu.fill(4, 77);
        let fault = gpu.fault();
        let wanted = if write { trace::FaultKind::ReadOnly } else { trace::FaultKind::NotPresent };
        assert_eq!((fault.kind, fault.pc, fault.lanes), (wanted, Some(CODE + 4), Some(1 << 5)));
        assert_eq!(fault.va, Some(if write { CONSTANT } else { 0x7000 }));
        assert_eq!((gpu.v(4, 0), gpu.word(0)), (77, 0), "nothing was done");
    });
}

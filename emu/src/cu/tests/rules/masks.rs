//! EXEC, lane masks and what they leave alone.

use super::super::kernels::IDS_GFX1100;
use super::super::{Descriptor, Machine};
use super::*;
use crate::cu::dispatch::Done;

#[test]
fn only_active_lanes_write_registers_memory_and_lds() {
    let gfx9 = "
        .gfx90a
        7e080301  v_mov_b32_e32 v4, v1
        dc508000 05040001  global_load_dword v5, v1, s[4:5]
        d86c0000 06000001  ds_read_b32 v6, v1
        dc708400 00040101  global_store_dword v1, v1, s[4:5] offset:1024
        d81a0200 00000101  ds_write_b32 v1, v1 offset:512
    ";
    let wave32 = "
        .gfx1100
        7e080301  v_mov_b32_e32 v4, v1
        dc520000 05040001  global_load_b32 v5, v1, s[4:5]
        d8d80000 06000001  ds_load_b32 v6, v1
        dc6a0400 00040101  global_store_b32 v1, v1, s[4:5] offset:1024
        d8340200 00000101  ds_store_b32 v1, v1 offset:512
    ";
    let wave64 = "
        .gfx1100 wave64
        7e080301  v_mov_b32_e32 v4, v1
        dc520000 05040001  global_load_b32 v5, v1, s[4:5]
        d8d80000 06000001  ds_load_b32 v6, v1
        dc6a0400 00040101  global_store_b32 v1, v1, s[4:5] offset:1024
        d8340200 00000101  ds_store_b32 v1, v1 offset:512
    ";
    each(&[gfx9, wave32, wave64], |gpu| {
        for exec in [u64::MAX, 0, 1, 1 << 31, 0x8000_0001_4000_0000, 0x0123_4567_89ab_cdef] {
            gpu.exec(exec);
            gpu.set(1, |lane| 4 * lane);
            gpu.set_s64(4, DATA);
            for register in 4..7 {
                gpu.fill(register, 77);
            }
            for word in 0..64 {
                gpu.set_word(256 + word, 99);
                gpu.set_lds(word, 1000 + word as u32);
                gpu.set_lds(128 + word, 99);
            }
            gpu.ok();
            for lane in 0..gpu.lanes() {
                let active = gpu.mask(exec) >> lane & 1 != 0;
                let at = lane as usize;
                let loaded = [gpu.v(4, lane), gpu.v(5, lane), gpu.v(6, lane)];
                assert_eq!(loaded, if active { [4 * lane, lane, 1000 + lane] } else { [77; 3] }, "lane {lane}");
                let stored = [gpu.word(256 + at), gpu.lds(128 + at)];
                assert_eq!(stored, if active { [4 * lane; 2] } else { [99; 2] }, "lane {lane}");
            }
        }
    });
}

#[test]
fn all_sources_are_read_before_any_part_of_the_destination_is_written() {
    let gfx9 = "
        .gfx900
        d28f0003 00020484  v_lshlrev_b64 v[3:4], 4, v[2:3]
        d1e8140a 042a150b  v_mad_u64_u32 v[10:11], s[20:21], v11, v10, v[10:11]
        7e18a30d  v_swap_b32 v12, v13
        d86e0201 0e00000f  ds_read2_b32 v[14:15], v15 offset0:1 offset1:2
        dc548000 107f0010  global_load_dwordx2 v[16:17], v[16:17], off
    ";
    let gfx11 = "
        .gfx1100
        d73c0003 00020484  v_lshlrev_b64 v[3:4], 4, v[2:3]
        d6fe140a 042a150b  v_mad_u64_u32 v[10:11], s20, v11, v10, v[10:11]
        7e18cb0d  v_swap_b32 v12, v13
        d8dc0201 0e00000f  ds_load_2addr_b32 v[14:15], v15 offset0:1 offset1:2
        dc560000 107c0010  global_load_b64 v[16:17], v[16:17], off
    ";
    each(&[gfx9, gfx11], |gpu| {
        gpu.set64(2, |lane| 0x1_0000_0000 + lane as u64);
        gpu.set64(10, |lane| 0x7_0000_0005 + lane as u64);
        (gpu.fill(12, 1), gpu.fill(13, 2));
        gpu.set(15, |lane| 4 * (lane & 15));
        (0..32).for_each(|word| gpu.set_lds(word, 500 + word as u32));
        gpu.set64(16, |lane| DATA + 8 * lane as u64);
        gpu.ok();
        for lane in 0..gpu.lanes() {
            assert_eq!(gpu.v64(3, lane), (0x1_0000_0000 + lane as u64) << 4);
            let (a, b) = (5 + lane as u64, 7);
            assert_eq!(gpu.v64(10, lane), a * b + 0x7_0000_0000 + a, "lane {lane}");
            assert_eq!([gpu.v(12, lane), gpu.v(13, lane)], [2, 1]);
            assert_eq!([gpu.v(14, lane), gpu.v(15, lane)], [501 + (lane & 15), 502 + (lane & 15)]);
            assert_eq!([gpu.v(16, lane), gpu.v(17, lane)], [2 * lane, 2 * lane + 1]);
        }
    });
}

#[test]
fn the_whole_lane_mask_is_written_and_inactive_lanes_are_0() {
    let gfx9 = "
        .gfx90a
        7d940301  v_cmp_eq_u32_e32 vcc, v1, v1
        d0ca000a 00020301  v_cmp_eq_u32_e64 s[10:11], v1, v1
        d1190c04 00020301  v_add_co_u32_e64 v4, s[12:13], v1, v1
        d1e00e05 040e0502  v_div_scale_f32 v5, s[14:15], v2, v2, v3
        d0100010 00022902  v_cmp_class_f32_e64 s[16:17], v2, v20
        d1e81206 04220301  v_mad_u64_u32 v[6:7], s[18:19], v1, v1, v[8:9]
        d11c1404 002a0301  v_addc_co_u32_e64 v4, s[20:21], v1, v1, s[10:11]
        d0620016 0002150a  v_cmp_eq_f64_e64 s[22:23], v[10:11], v[10:11]
        d0a10018 00022901  v_cmp_lt_i16_e64 s[24:25], v1, v20
        d11d1a04 002a0314  v_subb_co_u32_e64 v4, s[26:27], v20, v1, s[10:11]
    ";
    let gfx11 = "
        .gfx1100
        7c940301  v_cmp_eq_u32_e32 vcc_lo, v1, v1
        d44a000a 00020301  v_cmp_eq_u32_e64 s10, v1, v1
        d7000c04 00020301  v_add_co_u32 v4, s12, v1, v1
        d6fc0e05 040e0502  v_div_scale_f32 v5, s14, v2, v2, v3
        d47e0010 00022902  v_cmp_class_f32_e64 s16, v2, v20
        d6fe1206 04220301  v_mad_u64_u32 v[6:7], s18, v1, v1, v[8:9]
        d5201404 002a0301  v_add_co_ci_u32_e64 v4, s20, v1, v1, s10
        d4220016 0002150a  v_cmp_eq_f64_e64 s22, v[10:11], v[10:11]
        d4310018 00022901  v_cmp_lt_i16_e64 s24, v1.l, v20.l
        d5211a04 002a0314  v_sub_co_ci_u32_e64 v4, s26, v20, v1, s10
    ";
    let wave64 = "
        .gfx1201 wave64
        7c940301  v_cmp_eq_u32_e32 vcc, v1, v1
        d44a000a 00020301  v_cmp_eq_u32_e64 s[10:11], v1, v1
        d7000c04 00020301  v_add_co_u32 v4, s[12:13], v1, v1
        d6fc0e05 040e0502  v_div_scale_f32 v5, s[14:15], v2, v2, v3
        d47e0010 00022902  v_cmp_class_f32_e64 s[16:17], v2, v20
        d6fe1206 04220301  v_mad_co_u64_u32 v[6:7], s[18:19], v1, v1, v[8:9]
        d5201404 002a0301  v_add_co_ci_u32_e64 v4, s[20:21], v1, v1, s[10:11]
        d4220016 0002150a  v_cmp_eq_f64_e64 s[22:23], v[10:11], v[10:11]
        d4310018 00022901  v_cmp_lt_i16_e64 s[24:25], v1, v20
        d5211a04 002a0314  v_sub_co_ci_u32_e64 v4, s[26:27], v20, v1, s[10:11]
    ";
    each(&[gfx9, gfx11, wave64], |gpu| {
        for exec in [0x8000_0000_0000_0006, 0, u64::MAX, 1 << 31] {
            gpu.exec(exec);
            gpu.fill(1, u32::MAX);
            gpu.fill(20, 0x3ff);
            // The quotient of a denormal needs scaling.
            gpu.fill(2, 1);
            gpu.fill_f(3, 1.0);
            gpu.fill64(8, u64::MAX);
            for register in 10..28 {
                gpu.set_s(register, u32::MAX);
            }
            gpu.set_s64(number::VCC, u64::MAX);
            gpu.ok();
            let wanted = gpu.mask(exec);
            assert_eq!(gpu.vcc(), wanted, "{} VCC", gpu.target);
            for register in (10..28).step_by(2) {
                let got = gpu.mask(gpu.s64(register));
                assert_eq!(got, wanted, "{} {:?} s{register}, EXEC {wanted:#x}", gpu.target, gpu.level);
            }
            let high = gpu.s(11);
            assert!(gpu.lanes() == 64 || high == u32::MAX, "a wave of 32 lanes writes one register");
        }
    });
}

#[test]
fn cmpx_writes_exec_and_the_mask_on_gfx9_and_exec_alone_later() {
    let gfx9 = "
        .gfx90a
        d0d9000a 00011901  v_cmpx_lt_u32_e64 s[10:11], v1, 12
        7db20282  v_cmpx_lt_u32_e32 vcc, 2, v1
    ";
    let gfx10 = "
        .gfx1030
        d4d1007e 00011901  v_cmpx_lt_u32_e64 v1, 12
        7da20282  v_cmpx_lt_u32_e32 2, v1
    ";
    let gfx11 = "
        .gfx1100
        d4c9007e 00011901  v_cmpx_lt_u32_e64 v1, 12
        7d920282  v_cmpx_lt_u32_e32 2, v1
    ";
    let gfx12 = "
        .gfx1201
        d4c9007e 00011901  v_cmpx_lt_u32_e64 v1, 12
        7d920282  v_cmpx_lt_u32_e32 2, v1
    ";
    each(&[gfx9, gfx10, gfx11, gfx12], |gpu| {
        gpu.set(1, |lane| lane);
        gpu.exec(0x8000_ffff);
        gpu.set_s64(10, 0x5555_5555_5555_5555);
        gpu.set_s64(number::VCC, 0x6666_6666_6666_6666);
        gpu.ok();
        assert_eq!(gpu.wave.exec, 0xff8, "{}", gpu.target);
        let wanted = if gpu.gfx9() { [0xfff, 0xff8] } else { [0x5555_5555_5555_5555, 0x6666_6666_6666_6666] };
        assert_eq!([gpu.s64(10), gpu.s64(number::VCC)], wanted, "{}", gpu.target);
    });
}

#[test]
fn readlane_writelane_and_readfirstlane_ignore_exec() {
    let gfx9 = "
        .gfx90a
        7e140501  v_readfirstlane_b32 s10, v1
        d289000b 00011301  v_readlane_b32 s11, v1, 9
        d289000c 00000501  v_readlane_b32 s12, v1, s2
        d28a0002 000004aa  v_writelane_b32 v2, 42, s2
        d28a0002 00010ac1  v_writelane_b32 v2, -1, 5
    ";
    let gfx11 = "
        .gfx1100
        7e140501  v_readfirstlane_b32 s10, v1
        d760000b 00011301  v_readlane_b32 s11, v1, 9
        d760000c 00000501  v_readlane_b32 s12, v1, s2
        d7610002 000004aa  v_writelane_b32 v2, 42, s2
        d7610002 00010ac1  v_writelane_b32 v2, -1, 5
    ";
    each(&[gfx9, gfx11], |gpu| {
        for (exec, first) in [(0b1000, 103), (0, 100), (u64::MAX, 100), (1 << 31, 131)] {
            gpu.set(1, |lane| 100 + lane);
            gpu.fill(2, 7);
            gpu.exec(exec);
            // The lane number is taken modulo the wave size.
            let lane = gpu.lanes() * 4 + 6;
            gpu.set_s(2, lane);
            gpu.ok();
            assert_eq!([gpu.s(10), gpu.s(11), gpu.s(12)], [first, 109, 106], "EXEC {exec:#x}");
            let row = gpu.row(2);
            assert_eq!(row[4..8], [7, u32::MAX, 42, 7], "EXEC {exec:#x}");
            assert_eq!(row.iter().filter(|word| **word == 7).count(), row.len() - 2);
        }
    });
}

#[test]
fn a_body_that_runs_with_exec_0_does_nothing_and_faults_nowhere() {
    let gfx9 = "
        .gfx90a
        7d940301  v_cmp_eq_u32_e32 vcc, v1, v1
        7e140501  v_readfirstlane_b32 s10, v1
        dc508000 027f0004  global_load_dword v2, v[4:5], off
        dc708000 007f0104  global_store_dword v[4:5], v1, off
        dd088000 007f0104  global_atomic_add v[4:5], v1, off
        dc500000 02000004  flat_load_dword v2, v[4:5]
        d86c0000 02000004  ds_read_b32 v2, v4
        d81a0000 00000104  ds_write_b32 v4, v1
        e0501000 80030204  buffer_load_dword v2, v4, s[12:15], 0 offen
        d87e0000 02000104  ds_bpermute_b32 v2, v4, v1
        7e0402fa ff00b101  v_mov_b32_dpp v2, v1 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
        7e044501  v_rcp_f32_e32 v2, v1
    ";
    let gfx11 = "
        .gfx1100
        7c940301  v_cmp_eq_u32_e32 vcc_lo, v1, v1
        7e140501  v_readfirstlane_b32 s10, v1
        dc520000 027c0004  global_load_b32 v2, v[4:5], off
        dc6a0000 007c0104  global_store_b32 v[4:5], v1, off
        dcd60000 007c0104  global_atomic_add_u32 v[4:5], v1, off
        dc500000 027c0004  flat_load_b32 v2, v[4:5]
        d8d80000 02000004  ds_load_b32 v2, v4
        d8340000 00000104  ds_store_b32 v4, v1
        e0500000 80430204  buffer_load_b32 v2, v4, s[12:15], 0 offen
        dacc0000 02000104  ds_bpermute_b32 v2, v4, v1
        7e0402fa ff00b101  v_mov_b32_dpp v2, v1 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
        d65b0002 000c0501  v_permlane16_b32 v2, v1, s2, s3
        7e045501  v_rcp_f32_e32 v2, v1
    ";
    each(&[gfx9, gfx11], |gpu| {
        gpu.exec(0);
        gpu.set(1, |lane| 5 + lane);
        gpu.fill(2, 77);
        gpu.fill64(4, 0xdead_0000_0000);
        gpu.set_s64(12, 0xdead_0000_0000);
        (gpu.set_s(14, u32::MAX), gpu.set_s(15, 0x2_0000));
        gpu.set_s64(number::VCC, u64::MAX);
        gpu.ok();
        assert!(gpu.row(2).iter().all(|word| *word == 77));
        assert_eq!((gpu.s(10), gpu.vcc()), (5, 0));
    });
}

#[test]
fn wave32_masks_are_single_registers_even_odd_ones_and_vcc_hi() {
    let gfx10 = "
        .gfx1030
        d4c4006b 00020288  v_cmp_gt_u32_e64 vcc_hi, 8, v1
        d4c40005 00020284  v_cmp_gt_u32_e64 s5, 4, v1
        d5010002 01ad288a  v_cndmask_b32_e64 v2, 10, 20, vcc_hi
        d5010003 0015288a  v_cndmask_b32_e64 v3, 10, 20, s5
        d5280704 00158301  v_add_co_ci_u32_e64 v4, s7, v1, -1, s5
        be893c6b  s_and_saveexec_b32 s9, vcc_hi
        be8a046a  s_mov_b64 s[10:11], vcc
    ";
    let gfx11 = "
        .gfx1100
        d44c006b 00020288  v_cmp_gt_u32_e64 vcc_hi, 8, v1
        d44c0005 00020284  v_cmp_gt_u32_e64 s5, 4, v1
        d5010002 01ad288a  v_cndmask_b32_e64 v2, 10, 20, vcc_hi
        d5010003 0015288a  v_cndmask_b32_e64 v3, 10, 20, s5
        d5200704 00158301  v_add_co_ci_u32_e64 v4, s7, v1, -1, s5
        be89206b  s_and_saveexec_b32 s9, vcc_hi
        be8a016a  s_mov_b64 s[10:11], vcc
    ";
    let gfx12 = "
        .gfx1201
        d44c006b 00020288  v_cmp_gt_u32_e64 vcc_hi, 8, v1
        d44c0005 00020284  v_cmp_gt_u32_e64 s5, 4, v1
        d5010002 01ad288a  v_cndmask_b32_e64 v2, 10, 20, vcc_hi
        d5010003 0015288a  v_cndmask_b32_e64 v3, 10, 20, s5
        d5200704 00158301  v_add_co_ci_u32_e64 v4, s7, v1, -1, s5
        be89206b  s_and_saveexec_b32 s9, vcc_hi
        be8a016a  s_mov_b64 s[10:11], vcc
    ";
    each(&[gfx10, gfx11, gfx12], |gpu| {
        gpu.exec(u64::MAX);
        gpu.set(1, |lane| lane);
        for register in [4, 6, 8, number::VCC, number::TTMP0] {
            gpu.set_s(register, 0xabcd);
        }
        gpu.ok();
        assert_eq!([gpu.s(107), gpu.s(5), gpu.s(7), gpu.s(9)], [0xff, 0xf, 0xffff_ffff, 0xffff_ffff]);
        assert_eq!(gpu.wave.exec, 0xff);
        for register in [4, 6, 8, number::VCC, number::TTMP0] {
            assert_eq!(gpu.s(register), 0xabcd, "register {register} is not part of the mask");
        }
        assert_eq!(gpu.s64(10), 0xff_0000_abcd, "64-bit scalar operations take pairs");
        let selected = |lane: u32, limit: u32| if lane < limit { 20 } else { 10 };
        for lane in 0..32 {
            assert_eq!([gpu.v(2, lane), gpu.v(3, lane)], [selected(lane, 8), selected(lane, 4)], "lane {lane}");
            assert_eq!(gpu.v(4, lane), lane.wrapping_sub((lane >= 4) as u32));
        }
    });
}

#[test]
fn the_descriptor_decides_the_wave_size_on_rdna() {
    for (wave32, lanes) in [(1u16, 32), (0, 64)] {
        let machine = Machine::new(Target::Gfx1100);
        let base = Descriptor::new(Target::Gfx1100);
        let properties = base.properties & !(1 << 10) | wave32 << 10;
        machine.load(Descriptor { rsrc2: 2 << 1 | 1 << 7, properties, ..base }, IDS_GFX1100);
        let done = machine.run(&machine.dispatch([128, 1, 1], [128, 1, 1])).unwrap();
        assert_eq!(done, Done { waves: 128 / lanes, instructions: 8 * 128 / lanes });
        assert!((0..128).all(|item| machine.word(item) == item as u32));
    }
}

#[test]
fn wave64_of_rdna_has_masks_of_64_lanes() {
    let listing = "
        .gfx1100 wave64
        d71f0001 000100c1  v_mbcnt_lo_u32_b32 v1, -1, 0
        d7200001 000202c1  v_mbcnt_hi_u32_b32 v1, -1, v1
        7c92029f  v_cmp_lt_u32_e32 vcc, 31, v1
        02040903  v_cndmask_b32_e32 v2, v3, v4, vcc
        be84216a  s_and_saveexec_b64 s[4:5], vcc
        7e0a0281  v_mov_b32_e32 v5, 1
    ";
    each(&[listing], |gpu| {
        gpu.exec(u64::MAX);
        (gpu.fill(3, 3), gpu.fill(4, 4), gpu.fill(5, 0));
        gpu.ok();
        assert_eq!((gpu.vcc(), gpu.s64(4), gpu.wave.exec), (!0 << 32, u64::MAX, !0 << 32));
        for lane in 0..64 {
            let high = (lane > 31) as u32;
            assert_eq!([gpu.v(1, lane), gpu.v(2, lane), gpu.v(5, lane)], [lane, 3 + high, high]);
        }
    });
}

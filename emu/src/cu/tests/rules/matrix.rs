//! Matrix operations: EXEC, signs and MODE. Layouts and values have tests beside them.

use super::*;

#[test]
fn mfma_computes_all_lanes_whatever_exec_says() {
    let gfx90a = "
        .gfx90a
        d3c20008 04120501  v_mfma_f32_4x4x1f32 v[8:11], v1, v2, v[4:7]
        d3c58000 03ca0501  v_mfma_f32_16x16x4f32 a[0:3], v1, v2, 1.0
        d3d2000c 02160703  v_mfma_i32_4x4x4i8 v[12:15], v3, v3, 5
    ";
    let gfx942 = "
        .gfx942
        d3c20008 04120501  v_mfma_f32_4x4x1_16b_f32 v[8:11], v1, v2, v[4:7]
        d3c58000 03ca0501  v_mfma_f32_16x16x4_f32 a[0:3], v1, v2, 1.0
        d3d2000c 02160703  v_mfma_i32_4x4x4_16b_i8 v[12:15], v3, v3, 5
    ";
    each(&[gfx90a, gfx942], |gpu| {
        for exec in [u64::MAX, 0, 1, 0x5555_5555_5555_5555] {
            gpu.exec(exec);
            (gpu.fill_f(1, 3.0), gpu.fill_f(2, 2.0), gpu.fill(3, 0x0101_0101));
            (4..8).for_each(|register| gpu.fill_f(register, 100.0));
            (8..16).for_each(|register| gpu.fill(register, 0));
            gpu.ok();
            for lane in 0..64 {
                assert!((8..12).all(|register| gpu.f(register, lane) == 106.0), "{} EXEC {exec:#x}", gpu.target);
                assert!((0..4).all(|acc| gpu.f(ROWS + acc, lane) == 25.0), "lane {lane}");
                assert!((12..16).all(|register| gpu.v(register, lane) == 9), "lane {lane}");
            }
        }
    });
}

#[test]
fn mfma_of_f64_negates_by_its_lane_pattern_field() {
    let gfx90a = "
        .gfx90a
        d3ef0008 041a0902  v_mfma_f64_4x4x4f64 v[8:9], v[2:3], v[4:5], v[6:7]
        d3ef000a 241a0902  v_mfma_f64_4x4x4f64 v[10:11], v[2:3], v[4:5], v[6:7] blgp:1
        d3ef000c 841a0902  v_mfma_f64_4x4x4f64 v[12:13], v[2:3], v[4:5], v[6:7] blgp:4
        d3ef000e e41a0902  v_mfma_f64_4x4x4f64 v[14:15], v[2:3], v[4:5], v[6:7] blgp:7
    ";
    let gfx942 = "
        .gfx942
        d3ef0008 041a0902  v_mfma_f64_4x4x4_4b_f64 v[8:9], v[2:3], v[4:5], v[6:7]
        d3ef000a 241a0902  v_mfma_f64_4x4x4_4b_f64 v[10:11], v[2:3], v[4:5], v[6:7] neg:[1,0,0]
        d3ef000c 841a0902  v_mfma_f64_4x4x4_4b_f64 v[12:13], v[2:3], v[4:5], v[6:7] neg:[0,0,1]
        d3ef000e e41a0902  v_mfma_f64_4x4x4_4b_f64 v[14:15], v[2:3], v[4:5], v[6:7] neg:[1,1,1]
    ";
    each(&[gfx90a, gfx942], |gpu| {
        gpu.fill64(2, 3f64.to_bits());
        gpu.fill64(4, 2f64.to_bits());
        gpu.fill64(6, 100f64.to_bits());
        gpu.ok();
        let got = [8, 10, 12, 14].map(|register| gpu.d(register, 37));
        assert_eq!(got, [124.0, 76.0, -76.0, -76.0], "{}", gpu.target);
    });
}

#[test]
fn f32_mfma_alone_heeds_the_denormal_bits_of_mode() {
    let gfx90a = "
        .gfx90a
        d3c20008 02020501  v_mfma_f32_4x4x1f32 v[8:11], v1, v2, 0
        d3ca000c 02020d04  v_mfma_f32_4x4x4f16 v[12:15], v[4:5], v[6:7], 0
    ";
    each(&[gfx90a], |gpu| {
        // A denormal f32 by 2, and 2^-24 as an f16 by 1.
        (gpu.fill(1, 0x100), gpu.fill_f(2, 2.0));
        (gpu.fill(4, 0x0001_0001), gpu.fill(5, 0x0001_0001), gpu.fill(6, 0x3c00_3c00), gpu.fill(7, 0x3c00_3c00));
        for (mode, product) in [(0x3f0, 0x200), (0x300, 0)] {
            gpu.wave.mode = mode;
            gpu.ok();
            assert_eq!((gpu.v(8, 9), gpu.f(12, 9)), (product, 2f32.powi(-22)), "MODE {mode:#x}");
        }
    });
}

#[test]
fn wmma_reads_rows_twice_on_gfx11_and_once_on_gfx12() {
    let gfx11 = "
        .gfx1100
        cc404018 1c421100  v_wmma_f32_16x16x16_f16 v[24:31], v[0:7], v[8:15], v[16:23]
    ";
    let gfx12 = "
        .gfx1201
        cc404018 1c421100  v_wmma_f32_16x16x16_f16 v[24:31], v[0:3], v[8:11], v[16:23]
    ";
    each(&[gfx11, gfx12], |gpu| {
        // A is 2 in row 3 and 1 elsewhere, B is 1; C is 0.5.
        let gfx11 = gpu.target == Target::Gfx1100;
        let row = |lane: u32| lane % 16;
        (0..8).for_each(|register| gpu.set(register, |lane| if row(lane) == 3 { 0x4000_4000 } else { 0x3c00_3c00 }));
        (8..16).for_each(|register| gpu.fill(register, 0x3c00_3c00));
        (16..24).for_each(|register| gpu.fill_f(register, 0.5));
        gpu.ok();
        for lane in 0..32 {
            for register in 0..8 {
                // GFX11 has the even rows in lanes 0 to 15 and the odd ones above; GFX12 rows 0 to 7, then 8 to 15.
                let half = lane / 16;
                let row = if gfx11 { 2 * register + half } else { 8 * half + register };
                let wanted = if row == 3 { 32.5 } else { 16.5 };
                assert_eq!(gpu.f(24 + register, lane), wanted, "{} row {row} lane {lane}", gpu.target);
            }
        }
        // What lanes 16 to 31 hold of A is a copy on GFX11: without it nothing is the same.
        if gfx11 {
            (0..8).for_each(|register| gpu.set(register, |lane| if lane < 16 { 0x3c00_3c00 } else { 0 }));
            gpu.ok();
            assert!((24..32).all(|register| [0, 17].iter().all(|lane| gpu.f(register, *lane) <= 16.5)));
        }
    });
}

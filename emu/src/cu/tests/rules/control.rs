//! Messages, hardware registers, clocks, barriers, traps.

use super::super::Idle;
use super::super::{Descriptor, Machine};
use super::*;
use crate::cu::engine::Engine;
use trace::FaultKind;

/// Code of a listing, to dispatch.
fn code(listing: &str) -> (Target, Vec<u32>) {
    let head = listing.lines().map(str::trim).find(|line| !line.is_empty()).unwrap();
    (Target::from_name(head.trim_start_matches('.')).unwrap(), listing.lines().flat_map(words).collect())
}

#[test]
fn message_3_frees_registers_from_gfx11_on_and_is_something_else_before() {
    let gfx11 = "
        .gfx1100
        bfb60003  s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)
    ";
    let gfx12 = "
        .gfx1201
        bfb60003  s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)
    ";
    each(&[gfx11, gfx12], |gpu| gpu.ok());
    // The same number is a geometry shader's message on GFX9.
    let gfx9 = "
        .gfx90a
        bf900003  .long 0xbf900003
    ";
    each(&[gfx9], |gpu| assert_eq!(gpu.fault().kind, FaultKind::IllegalInstruction));
}

#[test]
fn an_interrupt_message_carries_m0_to_the_host() {
    let gfx9 = "
        .gfx90a
        befc00aa  s_mov_b32 m0, 42
        bf900001  s_sendmsg sendmsg(MSG_INTERRUPT)
        bf810000  s_endpgm
    ";
    let gfx10 = "
        .gfx1030
        befc03aa  s_mov_b32 m0, 42
        bf900001  s_sendmsg sendmsg(MSG_INTERRUPT)
        bf810000  s_endpgm
    ";
    let gfx12 = "
        .gfx1201
        befd00aa  s_mov_b32 m0, 42
        bfb60001  s_sendmsg sendmsg(MSG_INTERRUPT)
        bfb00000  s_endpgm
    ";
    for listing in [gfx9, gfx10, gfx12] {
        let (target, code) = code(listing);
        let machine = Machine::new(target);
        machine.load(Descriptor::new(target), &code);
        let host = Idle::default();
        let dispatch = machine.dispatch([64, 1, 1], [64, 1, 1]);
        Engine::new(target, 1, HostLevel::detect()).run(&dispatch, &host).unwrap();
        let waves = if target == Target::Gfx90a { 1 } else { 2 };
        assert_eq!(*host.interrupts.lock().unwrap(), vec![42; waves], "{target}");
    }
}

#[test]
fn realtime_runs_at_100_mhz_by_the_hosts_clock() {
    let gfx9 = "
        .gfx90a
        c0940100 00000000  s_memrealtime s[4:5]
        c0900180 00000000  s_memtime s[6:7]
    ";
    let gfx10 = "
        .gfx1030
        f4940100 00000000  s_memrealtime s[4:5]
        f4900180 00000000  s_memtime s[6:7]
    ";
    let gfx11 = "
        .gfx1100
        be844d83  s_sendmsg_rtn_b64 s[4:5], sendmsg(MSG_RTN_GET_REALTIME)
        b886981d  s_getreg_b32 s6, hwreg(HW_REG_SHADER_CYCLES, 0, 20)
    ";
    let gfx12 = "
        .gfx1201
        be844d83  s_sendmsg_rtn_b64 s[4:5], sendmsg(MSG_RTN_GET_REALTIME)
        b886f81d  s_getreg_b32 s6, hwreg(HW_REG_SHADER_CYCLES_LO)
    ";
    each(&[gfx9, gfx10, gfx11, gfx12], |gpu| {
        let before = Wave::realtime();
        gpu.ok();
        let (now, cycles) = (gpu.s64(4), gpu.s(6));
        let after = Wave::realtime();
        assert!((before..=after).contains(&now), "{}: {before} {now} {after}", gpu.target);
        std::thread::sleep(std::time::Duration::from_micros(50));
        gpu.ok();
        assert!(gpu.s64(4) - now >= 5_000 && gpu.s(6) != cycles, "{}: 50 us are 5000 ticks", gpu.target);
    });
}

#[test]
fn status_is_made_of_the_live_state() {
    let gfx9 = "
        .gfx90a
        b8840002  s_getreg_b32 s4, hwreg(HW_REG_STATUS, 0, 1)
        b8850242  s_getreg_b32 s5, hwreg(HW_REG_STATUS, 9, 1)
        b8860282  s_getreg_b32 s6, hwreg(HW_REG_STATUS, 10, 1)
        b8873801  s_getreg_b32 s7, hwreg(HW_REG_MODE, 0, 8)
    ";
    let gfx11 = "
        .gfx1100
        b8840002  s_getreg_b32 s4, hwreg(HW_REG_STATUS, 0, 1)
        b8850242  s_getreg_b32 s5, hwreg(HW_REG_STATUS, 9, 1)
        b8860282  s_getreg_b32 s6, hwreg(HW_REG_STATUS, 10, 1)
        b8873801  s_getreg_b32 s7, hwreg(HW_REG_MODE, 0, 8)
    ";
    each(&[gfx9, gfx11], |gpu| {
        for (scc, exec, vcc) in [(false, 0, 5u64), (true, 1, 0), (true, 0, 0), (false, 1, 1)] {
            gpu.wave.scc = scc;
            gpu.exec(exec);
            gpu.set_s64(number::VCC, vcc);
            gpu.ok();
            let wanted = [scc as u32, (exec == 0) as u32, (vcc == 0) as u32, 0xf0];
            assert_eq!([4, 5, 6, 7].map(|register| gpu.s(register)), wanted, "{}", gpu.target);
        }
    });
}

#[test]
fn hardware_ids_differ_between_resident_waves() {
    // out[4 * group] = the register: waves of other work-groups wait until all have come.
    let gfx9 = "
        .gfx90a
        c0060100 00000000  s_load_dwordx2 s[4:5], s[0:1], 0x0
        b886f804  s_getreg_b32 s6, hwreg(HW_REG_HW_ID)
        8e078202  s_lshl_b32 s7, s2, 2
        7e020207  v_mov_b32_e32 v1, s7
        7e040206  v_mov_b32_e32 v2, s6
        7e060280  v_mov_b32_e32 v3, 0
        7e080281  v_mov_b32_e32 v4, 1
        befe0181  s_mov_b64 exec, 1
        dc708000 00040201  global_store_dword v1, v2, s[4:5]
        dd088400 00040403  global_atomic_add v3, v4, s[4:5] offset:1024
        dc518400 05040003  global_load_dword v5, v3, s[4:5] offset:1024 glc
        7e100505  v_readfirstlane_b32 s8, v5
        bf8e0001  s_sleep 1
        bf0a8808  s_cmp_lt_u32 s8, 8
        bf85fffa  s_cbranch_scc1 65530
        bf810000  s_endpgm
    ";
    let gfx11 = "
        .gfx1100
        f4040100 f8000000  s_load_b64 s[4:5], s[0:1], 0x0
        b886f817  s_getreg_b32 s6, hwreg(HW_REG_HW_ID1)
        84078202  s_lshl_b32 s7, s2, 2
        7e020207  v_mov_b32_e32 v1, s7
        7e040206  v_mov_b32_e32 v2, s6
        7e060280  v_mov_b32_e32 v3, 0
        7e080281  v_mov_b32_e32 v4, 1
        befe0081  s_mov_b32 exec_lo, 1
        dc6a0000 00040201  global_store_b32 v1, v2, s[4:5]
        dcd60400 00040403  global_atomic_add_u32 v3, v4, s[4:5] offset:1024
        dc524400 05040003  global_load_b32 v5, v3, s[4:5] offset:1024 glc
        7e100505  v_readfirstlane_b32 s8, v5
        bf830001  s_sleep 1
        bf0a8808  s_cmp_lt_u32 s8, 8
        bfa2fffa  s_cbranch_scc1 65530
        bfb00000  s_endpgm
    ";
    for listing in [gfx9, gfx11] {
        let (target, code) = code(listing);
        let machine = Machine::new(target);
        machine.load(Descriptor { rsrc2: 2 << 1 | 1 << 7, ..Descriptor::new(target) }, &code);
        machine.run(&machine.dispatch([32, 1, 1], [8 * 32, 1, 1])).unwrap();
        let mut ids: Vec<u32> = (0..8).map(|group| machine.word(group)).collect();
        assert_eq!(machine.word(256), 8);
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 8, "{target}: {ids:x?}");
    }
}

#[test]
fn the_split_barrier_tells_who_was_first_and_how_many_came() {
    // Each wave adds 1 to out[1] before it signals and SCC to out[0] behind.
    let listing = "
        .gfx1201
        f4002100 f8000000  s_load_b64 s[4:5], s[0:1], 0x0
        bfc70000  s_wait_kmcnt 0x0
        7e020280  v_mov_b32_e32 v1, 0
        7e060281  v_mov_b32_e32 v3, 1
        befe0081  s_mov_b32 exec_lo, 1
        ee0d4004 01800000 00000401  global_atomic_add_u32 v1, v3, s[4:5] offset:4
        be804fc1  s_barrier_signal_isfirst -1
        98068081  s_cselect_b32 s6, 1, 0
        7e040206  v_mov_b32_e32 v2, s6
        ee0d4004 01000000 00000001  global_atomic_add_u32 v1, v2, s[4:5]
        bf94ffff  s_barrier_wait 0xffff
        ee050004 00000004 00000401  global_load_b32 v4, v1, s[4:5] offset:4
        ee0e4004 02000000 00000801  global_atomic_min_u32 v1, v4, s[4:5] offset:8
        bfb00000  s_endpgm
    ";
    let (target, code) = code(listing);
    for seed in 0..10 {
        let machine = Machine::new(target);
        machine.data.0[2].store(1000, Ordering::Relaxed);
        machine.load(Descriptor { rsrc2: 2 << 1, ..Descriptor::new(target) }, &code);
        let dispatch = machine.dispatch([128, 1, 1], [128, 1, 1]);
        Engine::deterministic(target, HostLevel::detect(), seed).run(&dispatch, &Idle::default()).unwrap();
        assert_eq!([machine.word(0), machine.word(1)], [1, 4], "one of four waves signals first");
        assert_eq!(machine.word(2), 4, "seed {seed}: nobody passes before all have come");
    }
}

#[test]
fn a_barrier_of_a_single_wave_and_ended_waves_hold_nobody_up() {
    // Wave 0 ends at once; the others meet at the barrier.
    let gfx9 = "
        .gfx90a
        c0060100 00000000  s_load_dwordx2 s[4:5], s[0:1], 0x0
        7e0c0500  v_readfirstlane_b32 s6, v0
        bf068006  s_cmp_eq_u32 s6, 0
        bf850006  s_cbranch_scc1 6
        bf8a0000  s_barrier
        7e020280  v_mov_b32_e32 v1, 0
        7e040281  v_mov_b32_e32 v2, 1
        befe0181  s_mov_b64 exec, 1
        dd088000 00040201  global_atomic_add v1, v2, s[4:5]
        bf810000  s_endpgm
    ";
    let gfx11 = "
        .gfx1100
        f4040100 f8000000  s_load_b64 s[4:5], s[0:1], 0x0
        7e0c0500  v_readfirstlane_b32 s6, v0
        bf068006  s_cmp_eq_u32 s6, 0
        bfa20006  s_cbranch_scc1 6
        bfbd0000  s_barrier
        7e020280  v_mov_b32_e32 v1, 0
        7e040281  v_mov_b32_e32 v2, 1
        befe0081  s_mov_b32 exec_lo, 1
        dcd60000 00040201  global_atomic_add_u32 v1, v2, s[4:5]
        bfb00000  s_endpgm
    ";
    for listing in [gfx9, gfx11] {
        let (target, code) = code(listing);
        let lanes = if target == Target::Gfx90a { 64 } else { 32 };
        let machine = Machine::new(target);
        machine.load(Descriptor { rsrc2: 2 << 1, ..Descriptor::new(target) }, &code);
        machine.run(&machine.dispatch([4 * lanes, 1, 1], [4 * lanes as u32, 1, 1])).unwrap();
        assert_eq!(machine.word(0), 3, "{target}");
    }
    let alone = "
        .gfx90a
        bf8a0000  s_barrier
    ";
    let split = "
        .gfx1201
        be804ec1  s_barrier_signal -1
        bf94ffff  s_barrier_wait 0xffff
    ";
    each(&[alone, split], |gpu| gpu.ok());
}

#[test]
fn traps_and_the_fill_behind_code_stop_the_wave_with_its_address() {
    let abort = "
        .gfx90a
        bf800000  s_nop 0
        bf920002  s_trap 2
    ";
    let debug = "
        .gfx1100
        bf800000  s_nop 0
        bf900003  s_trap 3
    ";
    let fill = "
        .gfx1030
        bf800000  s_nop 0
        bf9f0000  s_code_end
    ";
    each(&[abort, fill], |gpu| {
        let fault = gpu.fault();
        let wanted = if gpu.gfx9() { FaultKind::Trap(2) } else { FaultKind::IllegalInstruction };
        assert_eq!((fault.kind, fault.pc), (wanted, Some(CODE + 4)));
    });
    // llvm.debugtrap without a debugger is passed over.
    each(&[debug], |gpu| gpu.ok());
}

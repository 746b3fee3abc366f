//! What a wave starts with, and which dispatches are refused.

use super::*;
use crate::cu::launch::{Launch, WaveScratch, refusal};
use crate::cu::mem::MemoryPort;
use crate::cu::wave::{Wave, scalar};
use trace::FaultKind;

fn start(dispatch: &Dispatch, group: [u32; 3], number: u32, slot: u32) -> Box<Wave> {
    let launch = Launch::new(dispatch).unwrap();
    let port = MemoryPort::new(dispatch.space.clone(), std::ptr::null_mut(), 0, 0, 0, 0, 0);
    let mut wave = Wave::new(launch.lanes, launch.rows, port);
    launch.start(&mut wave, group, number, slot);
    wave
}

fn refused(dispatch: &Dispatch) -> (u64, String) {
    let fault = Launch::new(dispatch).err().unwrap();
    match fault.kind {
        FaultKind::Packet(bits) => (bits, fault.detail.clone()),
        other => panic!("{other:?}: {}", fault.detail),
    }
}

fn pair(wave: &Wave, register: u8) -> u64 {
    wave.scalar64(register)
}

#[test]
fn user_sgprs_come_in_bit_order_then_system_sgprs() {
    let machine = Machine::new(Target::Gfx900);
    // All seven user items: 4 + 2 + 2 + 2 + 2 + 2 + 1 = 15; count 16 leaves s15 unset.
    let descriptor = Descriptor {
        properties: 0x7f,
        rsrc2: 1 | 16 << 1 | 7 << 7 | 1 << 10 | 2 << 11,
        ..Descriptor::new(Target::Gfx900)
    };
    machine.load(descriptor, &[]);
    let mut dispatch = machine.dispatch([64, 2, 1], [256, 8, 3]);
    set_private(&mut dispatch, 16);
    dispatch.scratch =
        Scratch { va: SCRATCH, wave64_lane_bytes: 16, tmpring: 1 << 12 | 64, srd: [1, 2, 3, 0x00ea_4fac] };
    let wave = start(&dispatch, [3, 2, 1], 1, 5);
    assert_eq!(wave.scalar[..4], [1, 2, 3, 0x00ea_4fac]);
    assert_eq!(pair(&wave, 4), dispatch.packet_va);
    assert_eq!(pair(&wave, 6), dispatch.queue_va);
    assert_eq!(pair(&wave, 8), KERNARG);
    assert_eq!(pair(&wave, 10), dispatch.dispatch_id);
    assert_eq!(pair(&wave, 12), SCRATCH);
    assert_eq!(wave.scalar[14], 16);
    assert_eq!(wave.scalar[15], 0);
    // Work-group ids, work-group info (not the first wave, 2 waves), scratch wave offset.
    assert_eq!(wave.scalar[16..21], [3, 2, 1, 2, 5 * 1024]);
    assert_eq!((wave.port.scratch_base, wave.port.scratch_size), (SCRATCH + 5 * 1024, 1024));
    assert_eq!(start(&dispatch, [0, 0, 0], 0, 0).scalar[19], 1 << 31 | 2);
    assert_eq!(wave.pc, CODE + 256);
    assert_eq!((wave.scalar64(scalar::SHARED_BASE), wave.scalar64(scalar::PRIVATE_BASE)), (1 << 48, 2 << 48));
}

#[test]
fn system_sgprs_follow_the_user_count_and_leave_no_gaps() {
    let machine = Machine::new(Target::Gfx1100);
    let descriptor = Descriptor { rsrc2: 13 << 1 | 1 << 8, ..Descriptor::new(Target::Gfx1100) };
    machine.load(descriptor, &[]);
    let wave = start(&machine.dispatch([32, 1, 1], [32, 9, 1]), [0, 7, 0], 0, 0);
    assert_eq!(wave.scalar[13], 7, "Y alone is enabled");
    assert_eq!(wave.scalar[14], 0);
}

#[test]
fn gfx12_has_work_group_ids_in_trap_registers() {
    let machine = Machine::new(Target::Gfx1201);
    machine.load(Descriptor::new(Target::Gfx1201), &[]);
    let wave = start(&machine.dispatch([64, 1, 1], [640, 9, 9]), [5, 6, 7], 1, 0);
    assert_eq!(wave.scalar[2..5], [0, 0, 0]);
    assert_eq!(wave.scalar[scalar::TTMP0 as usize + 9], 5);
    assert_eq!(wave.scalar[scalar::TTMP0 as usize + 7], 7 << 16 | 6);
    assert_eq!(wave.scalar[scalar::TTMP0 as usize + 8] >> 25, 1);
}

#[test]
fn work_item_ids_are_packed_or_not_by_target() {
    for (target, packed) in [
        (Target::Gfx900, false),
        (Target::Gfx906, false),
        (Target::Gfx90a, true),
        (Target::Gfx942, true),
        (Target::Gfx1030, false),
        (Target::Gfx1100, true),
        (Target::Gfx1201, true),
    ] {
        let machine = Machine::new(target);
        machine.load(Descriptor::new(target), &[]);
        // Lane 31 of wave 0 in a 4 x 4 x 4 group: (3, 3, 1).
        let wave = start(&machine.dispatch([4, 4, 4], [4, 4, 4]), [0, 0, 0], 0, 0);
        let ids = [0, 1, 2].map(|row| wave.read_vgpr(row, 31));
        assert_eq!(ids, if packed { [3 | 3 << 10 | 1 << 20, 0, 0] } else { [3, 3, 1] }, "{target}");
    }
    // Ids that the descriptor does not enable are not given.
    let machine = Machine::new(Target::Gfx1100);
    machine.load(Descriptor { rsrc2: 0, ..Descriptor::new(Target::Gfx1100) }, &[]);
    assert_eq!(start(&machine.dispatch([4, 4, 4], [4, 4, 4]), [0, 0, 0], 0, 0).read_vgpr(0, 31), 3);
}

#[test]
fn groups_at_the_edge_are_smaller() {
    let machine = Machine::new(Target::Gfx1030);
    machine.load(Descriptor::new(Target::Gfx1030), &[]);
    let dispatch = machine.dispatch([16, 4, 1], [20, 6, 1]);
    let launch = Launch::new(&dispatch).unwrap();
    assert_eq!((launch.groups, launch.group_count), ([2, 2, 1], 4));
    assert_eq!(launch.group_id(3), [1, 1, 0]);
    assert_eq!(launch.group_items([1, 1, 0]), [4, 2, 1]);
    assert_eq!(launch.waves([16, 4, 1]), 2);
    assert_eq!(launch.waves([4, 2, 1]), 1);
    let wave = start(&dispatch, [1, 1, 0], 0, 0);
    assert_eq!(wave.exec, 0xff);
    assert_eq!([wave.read_vgpr(0, 6), wave.read_vgpr(1, 6)], [2, 1], "items are numbered within the smaller group");
}

#[test]
fn mode_comes_from_rsrc1() {
    let mode = |target, rsrc1| {
        let machine = Machine::new(target);
        machine.load(Descriptor { rsrc1, ..Descriptor::new(target) }, &[]);
        start(&machine.dispatch([1, 1, 1], [1, 1, 1]), [0, 0, 0], 0, 0).mode
    };
    assert_eq!(mode(Target::Gfx1100, 0xe0af_0040), 0x3f0);
    assert_eq!(mode(Target::Gfx1100, 0xe00c_0040 | 1 << 26), 1 << 23 | 0xc0);
    assert_eq!(mode(Target::Gfx1201, 0xe00f_0000), 0x1f0);
}

#[test]
fn registers_by_generation() {
    let rows = |target, rsrc1: u32, rsrc3, wave64: bool| {
        let machine = Machine::new(target);
        let mut descriptor = Descriptor { rsrc1, rsrc3, ..Descriptor::new(target) };
        if wave64 {
            descriptor.properties &= !(1 << 10);
        }
        machine.load(descriptor, &[]);
        let launch = Launch::new(&machine.dispatch([1, 1, 1], [1, 1, 1])).map_err(|fault| fault.kind)?;
        Ok((launch.lanes, launch.rows, launch.vgprs, launch.agpr_base))
    };
    assert_eq!(rows(Target::Gfx900, 5, 0, false), Ok((64, 24, 24, 24)));
    assert_eq!(rows(Target::Gfx90a, 5, 7, false), Ok((64, 48, 32, 32)));
    assert_eq!(rows(Target::Gfx90a, 63, 63, false), Ok((64, 512, 256, 256)));
    assert_eq!(rows(Target::Gfx1100, 5, 0, false), Ok((32, 48, 48, 48)));
    assert_eq!(rows(Target::Gfx1100, 5, 0, true), Ok((64, 24, 24, 24)));
    assert_eq!(rows(Target::Gfx1100, 32, 0, false), Err(FaultKind::Packet(refusal::REGISTERS)));
    assert_eq!(rows(Target::Gfx90a, 0, 2, false), Err(FaultKind::Packet(refusal::CODE)));
}

#[test]
fn scratch_by_generation() {
    let scratch = |target, tmpring, lane_bytes, private| {
        let machine = Machine::new(target);
        let descriptor = Descriptor::new(target);
        machine.load(Descriptor { rsrc2: descriptor.rsrc2 | 1, ..descriptor }, &[]);
        let mut dispatch = machine.dispatch([64, 1, 1], [64, 1, 1]);
        set_private(&mut dispatch, private);
        dispatch.scratch = Scratch { va: SCRATCH, wave64_lane_bytes: lane_bytes, tmpring, srd: [0; 4] };
        Launch::new(&dispatch).map(|launch| launch.scratch).map_err(|fault| fault.kind)
    };
    let have = |wave_bytes, slots| Ok(WaveScratch { va: SCRATCH, wave_bytes, slots });
    assert_eq!(scratch(Target::Gfx90a, 2 << 12 | 32, 32, 32), have(2048, 32));
    assert_eq!(scratch(Target::Gfx1030, 2 << 12 | 32, 32, 64), have(2048, 32));
    assert_eq!(scratch(Target::Gfx1100, 8 << 12 | 16, 32, 64), have(2048, 32));
    assert_eq!(scratch(Target::Gfx1201, 0x10008 << 12 | 16, 0x40000, 64), have(0x100_0800, 32));
    assert_eq!(scratch(Target::Gfx1100, 0, 0, 0), Ok(WaveScratch::default()));
    // Too little: a lane of a wave32 has twice the bytes of a wave64's.
    assert_eq!(scratch(Target::Gfx90a, 2 << 12 | 32, 32, 33), Err(FaultKind::Packet(refusal::SCRATCH_WAVE64)));
    assert_eq!(scratch(Target::Gfx1100, 8 << 12 | 16, 32, 65), Err(FaultKind::Packet(refusal::SCRATCH_WAVE32)));
    assert_eq!(scratch(Target::Gfx1100, 0, 0, 4), Err(FaultKind::Packet(refusal::SCRATCH_WAVE32)));
    // Slots for less than a work-group.
    assert_eq!(scratch(Target::Gfx90a, 2 << 12, 32, 32), Err(FaultKind::Packet(refusal::SCRATCH_WAVE64)));
}

#[test]
fn flat_scratch_is_architected_from_gfx942_and_gfx11_on() {
    for (target, register) in
        [(Target::Gfx942, 102), (Target::Gfx1100, scalar::FLAT_SCRATCH), (Target::Gfx1201, scalar::FLAT_SCRATCH)]
    {
        let machine = Machine::new(target);
        let descriptor = Descriptor::new(target);
        machine.load(Descriptor { rsrc2: descriptor.rsrc2 | 1, ..descriptor }, &[]);
        let mut dispatch = machine.dispatch([64, 1, 1], [64, 1, 1]);
        set_private(&mut dispatch, 16);
        dispatch.scratch = Scratch { va: SCRATCH, wave64_lane_bytes: 16, tmpring: 4 << 12 | 32, srd: [0; 4] };
        let wave = start(&dispatch, [0, 0, 0], 0, 3);
        assert_eq!(wave.scalar64(register), wave.port.scratch_base, "{target}");
        assert_ne!(wave.port.scratch_base, SCRATCH);
        // No scratch wave offset among the SGPRs: X, Y, Z are the last.
        assert_eq!(wave.scalar[5], 0);
    }
}

#[test]
fn kernel_arguments_are_preloaded_and_the_prologue_skipped() {
    let machine = Machine::new(Target::Gfx90a);
    machine.load(Descriptor { rsrc2: 5 << 1 | 1 << 7, preload: 3 | 2 << 7, ..Descriptor::new(Target::Gfx90a) }, &[]);
    machine.argument(1, 0x2222_2222_1111_1111);
    machine.argument(2, 0x3333_3333);
    let dispatch = machine.dispatch([64, 1, 1], [128, 1, 1]);
    let wave = start(&dispatch, [1, 0, 0], 0, 0);
    assert_eq!(wave.scalar[2..6], [0x1111_1111, 0x2222_2222, 0x3333_3333, 1]);
    assert_eq!(wave.pc, CODE + 512);
    // Firmware without support for it would not do that.
    let machine = Machine::new(Target::Gfx1100);
    machine.load(Descriptor { preload: 1, ..Descriptor::new(Target::Gfx1100) }, &[]);
    assert_eq!(refused(&machine.dispatch([1, 1, 1], [1, 1, 1])).0, refusal::CODE);
}

#[test]
fn bad_dispatches_are_refused_with_the_packet_processors_code() {
    let machine = Machine::new(Target::Gfx1100);
    machine.load(Descriptor::new(Target::Gfx1100), &[]);
    let one = [1, 1, 1];
    assert_eq!(refused(&machine.dispatch([0, 1, 1], [1, 1, 1])).0, refusal::DIMENSIONS);
    assert_eq!(refused(&machine.dispatch([1, 1, 1], [1, 0, 1])).0, refusal::DIMENSIONS);
    assert_eq!(refused(&machine.dispatch([1025, 1, 1], one)).0, refusal::GROUP_SIZE);
    let mut dispatch = machine.dispatch([1, 1, 1], one);
    set_group(&mut dispatch, 65537);
    let (bits, detail) = refused(&dispatch);
    assert_eq!(bits, refusal::GROUP_MEMORY);
    insta::assert_snapshot!(detail, @"group_segment_size 65537 bytes, the limit of gfx1100 is 65536");
    set_group(&mut dispatch, 65536);
    assert_eq!(Launch::new(&dispatch).unwrap().lds, 65536);
    dispatch.packet[32..40].fill(0);
    assert_eq!(refused(&dispatch), (refusal::CODE, "kernel_object is null".into()));
    dispatch.packet[32] = 4;
    assert_eq!(refused(&dispatch).0, refusal::CODE);

    let bad = |change: fn(&mut Descriptor)| {
        let mut descriptor = Descriptor::new(Target::Gfx1100);
        change(&mut descriptor);
        machine.load(descriptor, &[]);
        refused(&machine.dispatch([1, 1, 1], [1, 1, 1]))
    };
    assert_eq!(bad(|d| d.entry = 0).0, refusal::CODE);
    assert_eq!(bad(|d| d.entry = 192).0, refusal::CODE);
    assert_eq!(bad(|d| d.properties |= 1 << 12).0, refusal::CODE);
    assert_eq!(bad(|d| d.properties |= 1).0, refusal::CODE);
    assert_eq!(bad(|d| d.rsrc2 |= 3 << 11).0, refusal::CODE);
    let machine = Machine::new(Target::Gfx90a);
    let descriptor = Descriptor::new(Target::Gfx90a);
    machine.load(Descriptor { properties: descriptor.properties | 1 << 10, ..descriptor }, &[]);
    assert_eq!(refused(&machine.dispatch([1, 1, 1], one)).0, refusal::CODE);
}

#[test]
fn a_group_must_fit_into_the_registers() {
    // 512 VGPRs a SIMD: waves of 256 fit twice into each of 4.
    let machine = Machine::new(Target::Gfx90a);
    machine.load(Descriptor { rsrc1: 31, rsrc3: 63, ..Descriptor::new(Target::Gfx90a) }, &[]);
    assert!(Launch::new(&machine.dispatch([512, 1, 1], [512, 1, 1])).is_ok());
    assert_eq!(refused(&machine.dispatch([576, 1, 1], [576, 1, 1])).0, refusal::REGISTERS);
}

#[test]
fn an_unmapped_descriptor_is_a_memory_fault() {
    let machine = Machine::new(Target::Gfx1100);
    let mut dispatch = machine.dispatch([1, 1, 1], [1, 1, 1]);
    dispatch.packet[32..40].copy_from_slice(&0xdead_0000u64.to_le_bytes());
    let fault = Launch::new(&dispatch).err().unwrap();
    assert_eq!((&fault.kind, fault.va), (&FaultKind::NotPresent, Some(0xdead_0000)));
}

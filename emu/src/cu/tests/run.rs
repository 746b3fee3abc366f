//! Kernels from their first instruction to their last.

use super::kernels::*;
use super::*;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;
use trace::{Access, FaultKind};

fn loaded(target: Target, code: &[u32]) -> Machine {
    let machine = Machine::new(target);
    machine.load(Descriptor::new(target), code);
    machine
}

#[test]
fn work_item_ids_reach_memory() {
    for (target, code) in [
        (Target::Gfx1100, IDS_GFX1100),
        (Target::Gfx90a, IDS_GFX90A),
        (Target::Gfx942, IDS_GFX90A),
        (Target::Gfx900, IDS_GFX90A),
        (Target::Gfx906, IDS_GFX90A),
        (Target::Gfx1030, IDS_GFX1030),
        (Target::Gfx1201, IDS_GFX1201),
    ] {
        let machine = loaded(target, code);
        // Ids X alone, so that v0 is X on every target; the last group is partial.
        machine.load(Descriptor { rsrc2: 2 << 1 | 1 << 7, ..Descriptor::new(target) }, code);
        let done = machine.run(&machine.dispatch([64, 1, 1], [300, 1, 1])).unwrap();
        for index in 0..512 {
            let want = if index < 300 { ((index / 64) << 16) | (index % 64) } else { 0 };
            assert_eq!(machine.word(index as usize), want, "{target} item {index}");
        }
        let lanes = if matches!(target, Target::Gfx1030 | Target::Gfx1100 | Target::Gfx1201) { 32 } else { 64 };
        let waves = 4 * 64 / lanes + 44u64.div_ceil(lanes);
        assert_eq!(done, Done { waves, instructions: 8 * waves }, "{target}");
    }
}

#[test]
fn ids_in_three_dimensions() {
    for (target, code) in
        [(Target::Gfx1100, SUM_GFX1100), (Target::Gfx1030, SUM_GFX1030), (Target::Gfx1201, SUM_GFX1201)]
    {
        for workers in [1, 3] {
            let machine = loaded(target, code);
            let (group, grid) = ([4u16, 3, 5], [13u32, 7, 11]);
            Engine::new(target, workers, HostLevel::detect())
                .run(&machine.dispatch(group, grid), &Idle::default())
                .unwrap();
            let mut sum = 0;
            for (x, y, z) in (0..13).flat_map(|x| (0..7).flat_map(move |y| (0..11).map(move |z| (x, y, z)))) {
                sum += x % 4 + 10 * (y % 3) + 100 * (z % 5) + 1000 * (x / 4) + 10000 * (y / 3) + 100_000 * (z / 5);
            }
            assert_eq!((machine.word(0), machine.word(1)), (sum, 13 * 7 * 11), "{target}");
        }
    }
}

#[test]
fn barriers_order_lds() {
    for (target, code) in
        [(Target::Gfx1100, REVERSE_GFX1100), (Target::Gfx90a, REVERSE_GFX90A), (Target::Gfx1201, REVERSE_GFX1201)]
    {
        for seed in 0..20 {
            let machine = loaded(target, code);
            machine.load(Descriptor { rsrc2: 2 << 1, ..Descriptor::new(target) }, code);
            let mut dispatch = machine.dispatch([256, 1, 1], [256, 1, 1]);
            set_group(&mut dispatch, 1024);
            let engine = Engine::deterministic(target, HostLevel::detect(), seed);
            engine.run(&dispatch, &Idle::default()).unwrap();
            for item in 0..256 {
                assert_eq!(machine.word(item), 3 * (255 - item as u32), "{target} seed {seed} item {item}");
            }
        }
    }
}

#[test]
fn each_wave_has_scratch_of_its_own() {
    let machine = Machine::new(Target::Gfx1100);
    machine.load(Descriptor { rsrc2: 1 | 2 << 1 | 1 << 7, ..Descriptor::new(Target::Gfx1100) }, SCRATCH_GFX1100);
    let mut dispatch = machine.dispatch([64, 1, 1], [64 * 50, 1, 1]);
    set_private(&mut dispatch, 16);
    // Room for 2 engines x 3 waves: work-groups of 2 waves wait for one another's slots.
    dispatch.scratch = Scratch { va: SCRATCH, wave64_lane_bytes: 8, tmpring: 2 << 12 | 3, srd: [0; 4] };
    for workers in [1, 2] {
        Engine::new(Target::Gfx1100, workers, HostLevel::detect()).run(&dispatch, &Idle::default()).unwrap();
        for index in 0..64 * 50 {
            assert_eq!(machine.word(index as usize), ((index / 64) << 16) | (index % 64));
            machine.data.0[index as usize].store(0, Ordering::Relaxed);
        }
    }
}

#[test]
fn work_groups_may_wait_for_one_another() {
    for workers in [1, 2] {
        let machine = loaded(Target::Gfx1100, SPIN_GFX1100);
        let engine = Engine::new(Target::Gfx1100, workers, HostLevel::detect());
        let done = engine.run(&machine.dispatch([32, 1, 1], [64, 1, 1]), &Idle::default()).unwrap();
        assert_eq!((done.waves, machine.word(0), machine.word(1)), (2, 1, 1));
    }
}

#[test]
fn waves_wait_for_the_host_and_interrupt_it() {
    let machine = loaded(Target::Gfx1100, WAIT_HOST_GFX1100);
    let host = Idle::default();
    let dispatch = machine.dispatch([32, 1, 1], [32, 1, 1]);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| Engine::new(Target::Gfx1100, 1, HostLevel::detect()).run(&dispatch, &host));
        std::thread::sleep(Duration::from_millis(20));
        assert!(!running.is_finished());
        machine.data.0[0].store(1, Ordering::Release);
        running.join().unwrap().unwrap();
    });
    assert_eq!(*host.interrupts.lock().unwrap(), [42]);
}

#[test]
fn a_cancelled_dispatch_returns() {
    let machine = loaded(Target::Gfx1100, WAIT_HOST_GFX1100);
    let host = Idle::default();
    let dispatch = machine.dispatch([32, 1, 1], [64, 1, 1]);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| Engine::new(Target::Gfx1100, 1, HostLevel::detect()).run(&dispatch, &host));
        std::thread::sleep(Duration::from_millis(5));
        host.cancelled.store(true, Ordering::Relaxed);
        running.join().unwrap().unwrap();
    });
}

#[test]
fn instructions_are_counted_over_slices() {
    let machine = loaded(Target::Gfx1100, LOOP_GFX1100);
    let done = machine.run(&machine.dispatch([64, 1, 1], [64, 1, 1])).unwrap();
    assert_eq!(done, Done { waves: 2, instructions: 2 * (1 + 3 * 100_000 + 1) });
}

#[test]
fn the_seed_decides_the_order() {
    let machine = loaded(Target::Gfx1100, SUM_GFX1100);
    let run = |seed| {
        let engine = Engine::deterministic(Target::Gfx1100, HostLevel::detect(), seed);
        engine.run(&machine.dispatch([64, 1, 1], [640, 1, 1]), &Idle::default()).unwrap()
    };
    assert_eq!(run(1), run(1));
    assert_eq!(run(1), run(2));
}

#[test]
fn an_illegal_instruction_is_a_fault_when_reached() {
    let machine = loaded(Target::Gfx1100, CODE_END_GFX1100);
    let fault = machine.run(&machine.dispatch([32, 1, 1], [32, 1, 1])).unwrap_err();
    assert_eq!(fault.kind, FaultKind::IllegalInstruction);
    assert_eq!((fault.pc, &fault.bytes[..]), (Some(CODE + 260), &[0, 0, 0x9f, 0xbf][..]));
    assert_eq!((fault.gpu_id, fault.queue_id, fault.kernel_object), (0x1234, 5, Some(CODE)));
    assert_eq!((fault.workgroup, fault.wave, fault.lanes), (Some([0, 0, 0]), Some(0), Some(0xffff_ffff)));
    assert_eq!(fault.instruction.as_deref(), Some("s_code_end"));
    insta::assert_snapshot!(fault.detail, @"s_code_end: it fills the space behind the code");
}

#[test]
fn what_is_no_instruction_at_all_is_one_too() {
    let machine = loaded(Target::Gfx1100, &[0xffff_ffff]);
    let fault = machine.run(&machine.dispatch([32, 1, 1], [32, 1, 1])).unwrap_err();
    assert_eq!((&fault.kind, fault.pc, fault.bytes.len()), (&FaultKind::IllegalInstruction, Some(CODE + 256), 4));
    assert_eq!(fault.instruction.as_deref(), Some(".long 0xffffffff"));
    insta::assert_snapshot!(fault.detail, @"0xffffffff begins no gfx1100 instruction");
}

#[test]
fn traps_stop_the_dispatch() {
    let machine = loaded(Target::Gfx1100, TRAP_GFX1100);
    let fault = machine.run(&machine.dispatch([32, 1, 1], [32, 1, 1])).unwrap_err();
    assert_eq!((&fault.kind, fault.pc), (&FaultKind::Trap(2), Some(CODE + 260)));
}

#[test]
fn a_store_to_null_is_a_fault() {
    let machine = loaded(Target::Gfx1100, NULL_STORE_GFX1100);
    let fault = machine.run(&machine.dispatch([32, 1, 1], [16, 1, 1])).unwrap_err();
    assert_eq!((&fault.kind, fault.va, fault.access), (&FaultKind::NotPresent, Some(0), Some(Access::Write)));
    assert_eq!((fault.pc, fault.lanes), (Some(CODE + 264), Some(0xffff)));
    assert_eq!(fault.instruction.as_deref(), Some("global_store_b32 v[0:1], v0, off"));
}

#[test]
fn code_must_be_mapped_and_executable() {
    let machine = loaded(Target::Gfx1100, JUMP_GFX1100);
    let dispatch = machine.dispatch([32, 1, 1], [32, 1, 1]);
    let jump = |to| {
        machine.argument(0, to);
        let fault = machine.run(&dispatch).unwrap_err();
        assert_eq!((fault.pc, fault.va, fault.access), (Some(to), Some(to), Some(Access::Execute)));
        fault.kind
    };
    assert_eq!(jump(DATA + 16), FaultKind::NoExecute);
    assert_eq!(jump(0xdead_0000), FaultKind::NotPresent);
    // Past the end of the mapping.
    assert_eq!(jump(CODE + 0x2000), FaultKind::NotPresent);
}

#[test]
fn code_elsewhere_can_be_jumped_to() {
    let machine = loaded(Target::Gfx1100, JUMP_GFX1100);
    let other = Arc::new(Memory((0..1024).map(|_| AtomicU32::new(0xbfb0_0000)).collect()));
    map(&machine.space, 0x7000_0000, &other, Rights { write: false, execute: true });
    machine.argument(0, 0x7000_0100);
    let done = machine.run(&machine.dispatch([32, 1, 1], [32, 1, 1])).unwrap();
    assert_eq!(done.instructions, 4);
}

#[test]
fn a_dispatch_sees_code_that_changed() {
    let machine = loaded(Target::Gfx1100, LITERAL_GFX1100);
    let engine = Engine::new(Target::Gfx1100, 1, HostLevel::detect());
    let dispatch = machine.dispatch([32, 1, 1], [1, 1, 1]);
    engine.run(&dispatch, &Idle::default()).unwrap();
    assert_eq!(machine.word(0), 0x1111_1111);
    machine.code.0[64 + 4].store(0x2222_2222, Ordering::Relaxed);
    engine.run(&dispatch, &Idle::default()).unwrap();
    assert_eq!(machine.word(0), 0x2222_2222);
    // And other memory at the same address.
    assert!(machine.space.unmap(CODE).is_some());
    let other = Memory(machine.code.0.iter().map(|word| AtomicU32::new(word.load(Ordering::Relaxed))).collect());
    other.0[64 + 4].store(0x3333_3333, Ordering::Relaxed);
    map(&machine.space, CODE, &Arc::new(other), Rights { write: false, execute: true });
    engine.run(&dispatch, &Idle::default()).unwrap();
    assert_eq!(machine.word(0), 0x3333_3333);
}

#[test]
fn registers_are_indexed_on_gfx9() {
    let machine = loaded(Target::Gfx900, INDEX_GFX900);
    machine.run(&machine.dispatch([64, 1, 1], [64, 1, 1])).unwrap();
    assert_eq!([0, 1, 2].map(|index| machine.word(index)), [0x66, 0x55, 0x44]);
}

#[test]
fn dispatches_of_several_queues_run_at_once() {
    let machine = loaded(Target::Gfx1100, SUM_GFX1100);
    let engine = Engine::new(Target::Gfx1100, 2, HostLevel::detect());
    let dispatch = machine.dispatch([64, 1, 1], [64 * 100, 1, 1]);
    let failures = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                if engine.run(&dispatch, &Idle::default()).is_err() {
                    failures.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!((failures.into_inner(), machine.word(1)), (0, 4 * 6400));
}

#[test]
fn what_is_not_exact_is_counted_when_asked_for() {
    use crate::cu::fidelity::{HINT, Met, MetOperation, ULP};
    // s_nop 0; v_rcp_f32 v1, v0; v_rcp_f32 v1, v0; v_mov_b32 v2, v1; s_endpgm
    let machine = loaded(Target::Gfx1100, &[0xbf80_0000, 0x7e02_5500, 0x7e02_5500, 0x7e04_0301, 0xbfb0_0000]);
    let dispatch = machine.dispatch([64, 1, 1], [256, 1, 1]);
    let met = Arc::new(Met::default());
    let engine = Engine::new(Target::Gfx1100, 2, HostLevel::detect()).counting(Some(met.clone()));
    for runs in 1..3 {
        assert_eq!(engine.run(&dispatch, &Idle::default()).unwrap(), Done { waves: 8, instructions: 40 });
        let nop = MetOperation { mnemonic: "s_nop", fidelity: HINT, places: 1, executed: 8 * runs };
        let rcp = MetOperation { mnemonic: "v_rcp_f32", fidelity: ULP, places: 2, executed: 16 * runs };
        assert_eq!(met.operations(), [nop, rcp]);
    }
}

#[test]
fn skipped_vector_instructions_do_nothing() {
    // s_mov_b32 s4, 1 and s_setvskip s4, 0; v_mov_b32 v0, 5; s_mov_b32 s5, 0 and s_setvskip s5, 0; as IDS from here on
    let mut code = vec![0xbe84_0081, 0xbf10_8004, 0x7e00_0285, 0xbe85_0080, 0xbf10_8005];
    code.extend(IDS_GFX90A);
    let machine = loaded(Target::Gfx90a, &code);
    let descriptor = Descriptor { rsrc2: 2 << 1 | 1 << 7, ..Descriptor::new(Target::Gfx90a) };
    machine.load(descriptor, &code);
    machine.run(&machine.dispatch([64, 1, 1], [64, 1, 1])).unwrap();
    for index in 0..64 {
        assert_eq!(machine.word(index as usize), index, "v0 is still the work-item's id");
    }
}

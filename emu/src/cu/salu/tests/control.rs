//! Waits, traps, modes and what is refused.

use super::*;

#[test]
fn waits_messages_and_ends_change_the_state() {
    let mut b = gfx9();
    b.step("s_sleep", Format::Sopp, NONE, &[Operand::Imm(0)]);
    assert_eq!(b.wave.state, State::Ready);
    b.step("s_sleep", Format::Sopp, NONE, &[Operand::Imm(1)]);
    assert_eq!(b.wave.state, State::Yielded);
    b.wave.state = State::Ready;
    b.step("s_barrier", Format::Sopp, NONE, &[]);
    assert_eq!(b.wave.state, State::Ready, "a wave alone does not wait");
    b.wave.identity.waves = 2;
    b.step("s_barrier", Format::Sopp, NONE, &[]);
    assert_eq!(b.wave.state, State::Barrier);
    b.set(scalar::M0, 0x1234);
    b.step("s_sendmsg", Format::Sopp, NONE, &[Operand::Imm(1)]);
    assert_eq!((b.wave.state, b.wave.request), (State::Request, Request::Interrupt(0x1234)));
    b.wave.state = State::Ready;
    b.step("s_waitcnt", Format::Sopp, NONE, &[Operand::Imm(0)]);
    assert_eq!(b.wave.state, State::Ready);
    b.step("s_endpgm", Format::Sopp, NONE, &[Operand::Imm(0)]);
    assert_eq!(b.wave.state, State::Ended);
}

#[test]
fn traps() {
    let mut b = Bench::new(Target::Gfx1100, 32);
    b.step("s_trap", Format::Sopp, NONE, &[Operand::Imm(3)]);
    assert_eq!(b.wave.state, State::Ready, "the debugger's trap returns without one");
    b.step("s_trap", Format::Sopp, NONE, &[Operand::Imm(2)]);
    let fault = b.wave.fault.as_ref().unwrap();
    assert_eq!((b.wave.state, &fault.kind, fault.pc), (State::Faulted, &FaultKind::Trap(2), Some(0x1004)));
}

#[test]
fn mode_is_written_by_fields() {
    let mut b = gfx9();
    b.wave.mode = 0x3f0;
    let hwreg = |id: i32, offset: i32, size: i32| Operand::Imm(id | offset << 6 | (size - 1) << 11);
    b.step("s_setreg_imm32_b32", Format::Sopk, NONE, &[hwreg(1, 4, 2), Operand::Literal(0xfffc)]);
    assert_eq!(b.wave.mode, 0x3c0);
    b.set(4, 0xe);
    b.step("s_setreg_b32", Format::Sopk, s(4), &[hwreg(1, 0, 4)]);
    assert_eq!(b.wave.mode, 0x3ce);
    b.step("s_getreg_b32", Format::Sopk, s(5), &[hwreg(1, 4, 4)]);
    assert_eq!(b.get(5), 0xc);
    b.wave.set_exec(0);
    b.wave.scc = true;
    b.step("s_getreg_b32", Format::Sopk, s(5), &[hwreg(2, 0, 32)]);
    assert_eq!(b.get(5) & 0x601, 0x601, "SCC, EXECZ, VCCZ");
    b.step("s_round_mode", Format::Sopp, NONE, &[Operand::Imm(5)]);
    b.step("s_denorm_mode", Format::Sopp, NONE, &[Operand::Imm(15)]);
    assert_eq!(b.wave.mode, 0x3f5);
}

#[test]
fn flat_scratch_is_a_hardware_register_on_gfx10() {
    let mut b = Bench::new(Target::Gfx1030, 32);
    let hwreg = |id: i32| Operand::Imm(id | 31 << 11);
    b.set(4, 0x1234);
    b.step("s_setreg_b32", Format::Sopk, s(4), &[hwreg(20)]);
    assert_eq!(b.get(scalar::FLAT_SCRATCH), 0x1234);
    assert!(b.try_lower(&make("s_getreg_b32", Format::Sopk, s(4), &[hwreg(20 + 2)])).is_err());
}

#[test]
fn relative_moves_check_their_register() {
    let mut b = gfx9();
    b.set(12, 77);
    b.set(scalar::M0, 10);
    b.step("s_movrels_b32", Format::Sop1, s(4), &[s(2)]);
    assert_eq!(b.get(4), 77);
    b.step("s_movreld_b64", Format::Sop1, pair(4), &[int(-1)]);
    assert_eq!(b.get64(14), u64::MAX);
    b.set(scalar::M0, 200);
    b.step("s_movrels_b32", Format::Sop1, s(4), &[s(2)]);
    assert_eq!(b.wave.state, State::Faulted);
}

#[test]
fn index_mode_sits_in_m0_and_mode() {
    let mut b = Bench::new(Target::Gfx900, 64);
    b.set(2, 0x103);
    b.step("s_set_gpr_idx_on", Format::Sopc, NONE, &[s(2), Operand::Imm(9)]);
    assert_eq!((b.get(scalar::M0), b.wave.mode >> 27 & 1, b.wave.state), (0x9003, 1, State::Indexed));
    b.step("s_set_gpr_idx_off", Format::Sopp, NONE, &[]);
    assert_eq!((b.wave.mode >> 27 & 1, b.wave.state), (0, State::Ready));
}

#[test]
fn what_is_not_executed_says_so() {
    let mut b = gfx9();
    let refused = |b: &mut Bench, name, format, sources: &[Operand]| {
        b.try_lower(&make(name, format, NONE, sources)).err().unwrap().to_string()
    };
    insta::assert_snapshot!(refused(&mut b, "s_rfe_b64", Format::Sop1, &[pair(2)]), @"it returns from a trap handler, and there is none");
    insta::assert_snapshot!(
        refused(&mut b, "s_sendmsg", Format::Sopp, &[Operand::Imm(9)]), @"nobody answers this message");
    let mut b = Bench::new(Target::Gfx1201, 32);
    insta::assert_snapshot!(
        refused(&mut b, "s_barrier_signal", Format::Sop1, &[special(Special::M0, 1)]), @"named barriers are not emulated");
}

#[test]
fn lower_refuses_a_vector_operand() {
    let mut constants = ConstantPool::default();
    let mut lowering = Lowering {
        target: Target::Gfx1100,
        lanes: 32,
        level: HostLevel::Base,
        vgprs: 4,
        agpr_base: 4,
        rows: 4,
        constants: &mut constants,
    };
    let vgpr = Operand::Vgpr { reg: 0, dwords: 1, hi: false };
    assert!(lower(&make("s_mov_b32", Format::Sop1, s(0), &[vgpr]), &mut lowering).is_err());
}

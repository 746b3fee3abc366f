//! Branches, calls and branches that divide EXEC.

use super::*;

#[test]
fn branches() {
    let mut b = gfx9();
    let target = |b: &mut Bench, name| {
        b.wave.pc = 0x1000;
        b.step(name, Format::Sopp, NONE, &[Operand::Imm(-3)]);
        b.wave.pc
    };
    let (taken, not) = (0x1004 - 12, 0x1004);
    assert_eq!(target(&mut b, "s_branch"), taken);
    assert_eq!((target(&mut b, "s_cbranch_scc0"), target(&mut b, "s_cbranch_scc1")), (taken, not));
    b.wave.scc = true;
    assert_eq!((target(&mut b, "s_cbranch_scc0"), target(&mut b, "s_cbranch_scc1")), (not, taken));
    assert_eq!((target(&mut b, "s_cbranch_execz"), target(&mut b, "s_cbranch_execnz")), (not, taken));
    b.wave.set_exec(0);
    assert_eq!((target(&mut b, "s_cbranch_execz"), target(&mut b, "s_cbranch_execnz")), (taken, not));
    b.set64(scalar::VCC, 1 << 32);
    assert_eq!((target(&mut b, "s_cbranch_vccz"), target(&mut b, "s_cbranch_vccnz")), (not, taken));
    assert_eq!(target(&mut b, "s_cbranch_cdbgsys"), not);
    // VCC_HI is no mask in a wave32.
    let mut b = Bench::new(Target::Gfx1100, 32);
    b.set64(scalar::VCC, 1 << 32);
    assert_eq!(target(&mut b, "s_cbranch_vccz"), taken);
}

#[test]
fn calls_and_jumps() {
    let mut b = gfx9();
    b.step("s_getpc_b64", Format::Sop1, pair(4), &[]);
    assert_eq!(b.get64(4), 0x1004);
    b.set64(2, 0x7f00_0000_2002);
    b.step("s_swappc_b64", Format::Sop1, pair(30), &[pair(2)]);
    assert_eq!((b.get64(30), b.wave.pc), (0x1008, 0x7f00_0000_2000));
    // The pair may be its own target.
    b.step("s_swappc_b64", Format::Sop1, pair(30), &[pair(30)]);
    assert_eq!((b.get64(30), b.wave.pc), (0x7f00_0000_2004, 0x1008));
    b.step("s_setpc_b64", Format::Sop1, NONE, &[pair(30)]);
    assert_eq!(b.wave.pc, 0x7f00_0000_2004);
    b.step("s_call_b64", Format::Sopk, pair(4), &[Operand::Imm(-1)]);
    assert_eq!((b.get64(4), b.wave.pc), (0x7f00_0000_2008, 0x7f00_0000_2004));
}

/// EXEC, where the wave is and the stack pointer.
fn path(b: &Bench) -> (u64, u64, u32) {
    (b.wave.exec, b.wave.pc, b.wave.mode >> 29)
}

#[test]
fn forks_run_the_path_of_fewer_lanes_first_and_joins_the_other() {
    let mut b = gfx9();
    b.wave.set_exec(0xff);
    b.set64(20, 0x9000);
    b.set64(22, 0x0f0f);
    // All lanes one way: no stack.
    b.step("s_cbranch_g_fork", Format::Sop2, NONE, &[int(-1), pair(20)]);
    assert_eq!(path(&b), (0xff, 0x9000, 0));
    b.wave.pc = 0x1000;
    b.step("s_cbranch_g_fork", Format::Sop2, NONE, &[int(0), pair(20)]);
    assert_eq!(path(&b), (0xff, 0x1004, 0));
    // Four lanes each: those of the mask go first; the others wait with their address.
    b.step("s_cbranch_g_fork", Format::Sop2, NONE, &[pair(22), pair(20)]);
    assert_eq!(path(&b), (0x0f, 0x9000, 1));
    assert_eq!((b.get64(0), b.get64(2)), (0xf0, 0x1008));
    // Within it one lane fails, which goes first.
    b.set64(22, 0x7);
    b.step("s_cbranch_i_fork", Format::Sopk, pair(22), &[Operand::Imm(0x10)]);
    assert_eq!(path(&b), (0x8, 0x9004, 2));
    assert_eq!((b.get64(4), b.get64(6)), (0x7, 0x9044));
    // The inner join takes the other path, and passes the second time.
    b.step("s_cbranch_join", Format::Sop1, NONE, &[int(1)]);
    assert_eq!(path(&b), (0x7, 0x9044, 1));
    b.step("s_cbranch_join", Format::Sop1, NONE, &[int(1)]);
    assert_eq!(path(&b), (0x7, 0x9048, 1));
    b.set(30, 0);
    b.step("s_cbranch_join", Format::Sop1, NONE, &[s(30)]);
    assert_eq!(path(&b), (0xf0, 0x1008, 0));
    // Entry 7 is the last.
    b.wave.mode = 7 << 29;
    b.wave.set_exec(3);
    b.step("s_cbranch_g_fork", Format::Sop2, NONE, &[int(1), pair(20)]);
    assert_eq!((path(&b), b.get64(28)), ((1, 0x9000, 0), 2));
}

#[test]
fn subvector_loops_run_the_halves_of_a_wave64_one_after_the_other() {
    let run = |lanes: u32, exec: u64| {
        let mut b = Bench::new(Target::Gfx1030, lanes);
        b.wave.set_exec(exec);
        let mut passes = Vec::new();
        b.step("s_subvector_loop_begin", Format::Sopk, s(4), &[Operand::Imm(2)]);
        // The end is at 0x1008 and goes back to 0x1004.
        while b.wave.pc == 0x1004 {
            passes.push(b.wave.exec);
            b.wave.pc = 0x1008;
            b.step("s_subvector_loop_end", Format::Sopk, s(4), &[Operand::Imm(-2)]);
        }
        assert_eq!(b.wave.pc, 0x100c);
        (passes, b.wave.exec)
    };
    let (low, high) = (0x0f0f_0001u64, 0x8000_00f0u64 << 32);
    assert_eq!(run(64, high | low), (vec![low, high], high | low));
    assert_eq!(run(64, low), (vec![low], low));
    assert_eq!(run(64, high), (vec![high], high));
    assert_eq!(run(64, 0), (vec![], 0));
    assert_eq!(run(32, low), (vec![low], low));
}

//! What rewrites EXEC and what reads conditions.

use super::*;

#[test]
fn writes_to_exec_reach_its_lane_row() {
    let mut b = gfx9();
    b.step("s_mov_b64", Format::Sop1, special(Special::ExecLo, 2), &[int(5)]);
    assert_eq!(b.wave.exec, 5);
    assert_eq!(b.wave.exec_row.0[..3], [u32::MAX, 0, u32::MAX]);
    b.step("s_mov_b32", Format::Sop1, special(Special::ExecHi, 1), &[int(-1)]);
    assert_eq!(b.wave.exec, 0xffff_ffff_0000_0005);
    assert_eq!(b.wave.exec_row.0[63], u32::MAX);

    let mut b = Bench::new(Target::Gfx1100, 32);
    b.step("s_mov_b64", Format::Sop1, special(Special::ExecLo, 2), &[int(-1)]);
    assert_eq!(b.wave.exec, 0xffff_ffff);
}

#[test]
fn saveexec_and_wrexec() {
    let mut b = gfx9();
    let both = |b: &mut Bench, name, source: u64, exec: u64| {
        b.set64(2, source);
        b.wave.set_exec(exec);
        b.step(name, Format::Sop1, pair(4), &[pair(2)]);
        (b.get64(4), b.wave.exec, b.wave.scc)
    };
    assert_eq!(both(&mut b, "s_and_saveexec_b64", 0xc, 0xa), (0xa, 0x8, true));
    assert_eq!(both(&mut b, "s_and_saveexec_b64", 0x1, 0xa), (0xa, 0, false));
    assert_eq!(both(&mut b, "s_or_saveexec_b64", 0x5, 0xa), (0xa, 0xf, true));
    assert_eq!(both(&mut b, "s_xor_saveexec_b64", 0x3, 0xa), (0xa, 0x9, true));
    assert_eq!(both(&mut b, "s_andn2_saveexec_b64", 0xc, 0xa), (0xa, 0x4, true));
    assert_eq!(both(&mut b, "s_andn1_saveexec_b64", 0xc, 0xa), (0xa, 0x2, true));
    assert_eq!(both(&mut b, "s_orn2_saveexec_b64", 0, u64::MAX), (u64::MAX, 0, false));
    assert_eq!(both(&mut b, "s_nor_saveexec_b64", 0, u64::MAX), (u64::MAX, 0, false));
    assert_eq!(both(&mut b, "s_andn1_wrexec_b64", 0xc, 0xa), (0x2, 0x2, true));
    assert_eq!(both(&mut b, "s_andn2_wrexec_b64", 0xc, 0xa), (0x4, 0x4, true));

    let mut b = Bench::new(Target::Gfx1100, 32);
    b.set(2, 0);
    b.step("s_or_not1_saveexec_b32", Format::Sop1, s(4), &[s(2)]);
    assert_eq!((b.get(4), b.wave.exec, b.wave.scc), (u32::MAX, 0, false));
    b.step("s_and_not0_saveexec_b32", Format::Sop1, s(4), &[int(0)]);
    assert_eq!((b.get(4), b.wave.exec), (0, 0));
}

#[test]
fn conditions_are_sources() {
    let mut b = gfx9();
    b.wave.scc = true;
    b.set64(scalar::VCC, 0);
    b.step("s_mov_b32", Format::Sop1, s(4), &[special(Special::Scc, 1)]);
    b.step("s_mov_b32", Format::Sop1, s(5), &[special(Special::Vccz, 1)]);
    b.step("s_mov_b32", Format::Sop1, s(6), &[special(Special::Execz, 1)]);
    assert_eq!((b.get(4), b.get(5), b.get(6)), (1, 1, 0));
}

#[test]
fn null_reads_zero_and_takes_writes() {
    let mut b = Bench::new(Target::Gfx1100, 32);
    b.step("s_mov_b64", Format::Sop1, pair(4), &[special(Special::Null, 2)]);
    assert_eq!(b.get64(4), 0);
    let exec = b.wave.exec;
    b.step("s_mov_b64", Format::Sop1, special(Special::Null, 2), &[int(7)]);
    assert_eq!((b.get(scalar::NULL), b.wave.exec, b.get(scalar::EXEC)), (0, exec, exec as u32));
}

#[test]
fn vskip_is_a_bit_of_a_source() {
    let mut b = gfx9();
    b.wave.mode = 0x3f0;
    b.set(2, 1 << 5);
    b.step("s_setvskip", Format::Sopc, NONE, &[s(2), int(37)]);
    assert_eq!((b.wave.mode, b.wave.state), (0x3f0 | 1 << 28, State::Indexed));
    b.wave.state = State::Ready;
    b.step("s_setvskip", Format::Sopc, NONE, &[s(2), int(4)]);
    assert_eq!((b.wave.mode, b.wave.state), (0x3f0, State::Ready));
}

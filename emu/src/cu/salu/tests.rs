//! One test a rule; instructions are put together by hand.

use super::lower;
use crate::cu::level::HostLevel;
use crate::cu::lower::{ConstantPool, Lowering, Unsupported};
use crate::cu::mem::MemoryPort;
use crate::cu::wave::{Request, State, Wave, scalar};
use crate::isa::{Decoded, Format, Mods, Operand, Special, Target};
use crate::memory::AddressSpace;
use std::sync::Arc;
use trace::FaultKind;

const NONE: Operand = Operand::None;

fn s(reg: u8) -> Operand {
    Operand::Sgpr { reg, dwords: 1 }
}

fn pair(reg: u8) -> Operand {
    Operand::Sgpr { reg, dwords: 2 }
}

fn special(reg: Special, dwords: u8) -> Operand {
    Operand::Special { reg, dwords }
}

fn int(value: i8) -> Operand {
    Operand::Int(value)
}

struct Bench {
    wave: Box<Wave>,
    constants: ConstantPool,
    target: Target,
}

impl Bench {
    fn new(target: Target, lanes: u32) -> Bench {
        let port = MemoryPort::new(Arc::new(AddressSpace::default()), std::ptr::null_mut(), 0, 0, 0, 0, 0);
        let mut wave = Wave::new(lanes, 4, port);
        wave.pc = 0x1000;
        Bench { wave, constants: ConstantPool::default(), target }
    }

    fn try_lower(&mut self, decoded: &Decoded) -> Result<crate::cu::inst::Inst, Unsupported> {
        let mut lowering = Lowering {
            target: self.target,
            lanes: self.wave.lanes,
            level: HostLevel::Base,
            vgprs: 4,
            agpr_base: 4,
            rows: 4,
            constants: &mut self.constants,
        };
        crate::cu::code::lower(decoded, &mut lowering)
    }

    /// Executes an instruction of four bytes.
    fn step(&mut self, mnemonic: &'static str, format: Format, dst: Operand, sources: &[Operand]) {
        let decoded = make(mnemonic, format, dst, sources);
        let inst = self.try_lower(&decoded).unwrap_or_else(|error| panic!("{mnemonic}: {error}"));
        self.wave.constants = self.constants.as_ptr();
        self.wave.pc += 4;
        // SAFETY: lowered for this wave.
        unsafe { inst.run.unwrap()(&mut self.wave, &inst) };
    }

    fn set(&mut self, register: u8, value: u32) {
        self.wave.scalar[register as usize] = value;
    }

    fn set64(&mut self, register: u8, value: u64) {
        self.wave.set_scalar64(register, value);
    }

    fn get(&self, register: u8) -> u32 {
        self.wave.scalar[register as usize]
    }

    fn get64(&self, register: u8) -> u64 {
        self.wave.scalar64(register)
    }

    /// D and SCC of a 32-bit SOP2, with SCC set to `scc` before.
    fn two(&mut self, mnemonic: &'static str, a: u32, b: u32, scc: bool) -> (u32, bool) {
        self.set(2, a);
        self.set(3, b);
        self.wave.scc = scc;
        self.step(mnemonic, Format::Sop2, s(4), &[s(2), s(3)]);
        (self.get(4), self.wave.scc)
    }

    /// D and SCC of a 32-bit SOP1.
    fn one(&mut self, mnemonic: &'static str, a: u32) -> (u32, bool) {
        self.set(2, a);
        self.step(mnemonic, Format::Sop1, s(4), &[s(2)]);
        (self.get(4), self.wave.scc)
    }

    /// SCC of a 32-bit SOPC.
    fn compare(&mut self, mnemonic: &'static str, a: u32, b: u32) -> bool {
        self.set(2, a);
        self.set(3, b);
        self.wave.scc = !self.wave.scc;
        self.step(mnemonic, Format::Sopc, NONE, &[s(2), s(3)]);
        self.wave.scc
    }
}

fn make(mnemonic: &'static str, format: Format, dst: Operand, sources: &[Operand]) -> Decoded {
    let mut src = [NONE; 4];
    src[..sources.len()].copy_from_slice(sources);
    Decoded {
        mnemonic,
        format,
        opcode: 0,
        len: 4,
        bytes: [0; 16],
        dst,
        dst2: NONE,
        src,
        mods: Mods::default(),
        second: None,
    }
}

fn gfx9() -> Bench {
    Bench::new(Target::Gfx90a, 64)
}

#[test]
fn sums_set_carry_borrow_or_overflow() {
    let mut b = gfx9();
    assert_eq!(b.two("s_add_u32", u32::MAX, 1, false), (0, true));
    assert_eq!(b.two("s_add_u32", 1, 2, true), (3, false));
    assert_eq!(b.two("s_addc_u32", u32::MAX, 0, true), (0, true));
    assert_eq!(b.two("s_addc_u32", 1, 1, true), (3, false));
    assert_eq!(b.two("s_add_i32", 0x7fff_ffff, 1, false), (0x8000_0000, true));
    assert_eq!(b.two("s_add_i32", u32::MAX, 1, true), (0, false));
    assert_eq!(b.two("s_sub_u32", 1, 2, false), (u32::MAX, true));
    assert_eq!(b.two("s_sub_u32", 2, 2, true), (0, false));
    assert_eq!(b.two("s_subb_u32", 2, 2, true), (u32::MAX, true));
    assert_eq!(b.two("s_subb_u32", 3, 2, true), (0, false));
    // The carry of b + borrow itself must not get lost.
    assert_eq!(b.two("s_subb_u32", 0, u32::MAX, true), (0, true));
    assert_eq!(b.two("s_sub_i32", 0x8000_0000, 1, false), (0x7fff_ffff, true));
    assert_eq!(b.two("s_lshl3_add_u32", 0x2000_0000, 5, false), (5, true));
    assert_eq!(b.two("s_absdiff_i32", 3, 10, false), (7, true));
    assert_eq!(b.two("s_absdiff_i32", 10, 10, true), (0, false));
    assert_eq!(b.two("s_absdiff_i32", 0x8000_0000, 0, false), (0x8000_0000, true));
}

#[test]
fn products_leave_scc() {
    let mut b = gfx9();
    for scc in [false, true] {
        assert_eq!(b.two("s_mul_i32", 0x10000, 0x10001, scc), (0x10000, scc));
        assert_eq!(b.two("s_mul_hi_u32", u32::MAX, u32::MAX, scc), (u32::MAX - 1, scc));
        assert_eq!(b.two("s_mul_hi_i32", u32::MAX, 5, scc), (u32::MAX, scc));
        assert_eq!(b.two("s_bfm_b32", 8, 4, scc), (0xff0, scc));
        assert_eq!(b.two("s_pack_lh_b32_b16", 0x1111_2222, 0x3333_4444, scc), (0x3333_2222, scc));
        assert_eq!(b.two("s_pack_ll_b32_b16", 0x1111_2222, 0x3333_4444, scc), (0x4444_2222, scc));
        assert_eq!(b.two("s_pack_hh_b32_b16", 0x1111_2222, 0x3333_4444, scc), (0x3333_1111, scc));
    }
}

#[test]
fn min_and_max_tell_whether_source_0_was_chosen() {
    let mut b = gfx9();
    assert_eq!(b.two("s_min_i32", u32::MAX, 1, false), (u32::MAX, true));
    assert_eq!(b.two("s_min_u32", u32::MAX, 1, true), (1, false));
    assert_eq!(b.two("s_min_u32", 1, 1, true), (1, false));
    assert_eq!(b.two("s_max_i32", u32::MAX, 1, true), (1, false));
    assert_eq!(b.two("s_max_u32", u32::MAX, 1, false), (u32::MAX, true));
    assert_eq!(b.two("s_max_u32", 7, 7, true), (7, false));
}

#[test]
fn shifts_take_the_low_bits_of_the_count() {
    let mut b = gfx9();
    assert_eq!(b.two("s_lshl_b32", 1, 33, false), (2, true));
    assert_eq!(b.two("s_lshr_b32", 1, 1, true), (0, false));
    assert_eq!(b.two("s_ashr_i32", 0x8000_0000, 31, false), (u32::MAX, true));
    b.set64(2, 1);
    b.set(6, 65);
    b.step("s_lshl_b64", Format::Sop2, pair(4), &[pair(2), s(6)]);
    assert_eq!((b.get64(4), b.wave.scc), (2, true));
    b.set64(2, 1 << 63);
    b.set(6, 63);
    b.step("s_ashr_i64", Format::Sop2, pair(4), &[pair(2), s(6)]);
    assert_eq!(b.get64(4), u64::MAX);
}

#[test]
fn bit_fields() {
    let mut b = gfx9();
    let field = |offset: u32, width: u32| offset | width << 16;
    assert_eq!(b.two("s_bfe_u32", 0x1234_5678, field(8, 8), false), (0x56, true));
    assert_eq!(b.two("s_bfe_u32", 0x1234_5678, field(8, 0), true), (0, false));
    assert_eq!(b.two("s_bfe_u32", 0x1234_5678, field(0, 32), false), (0x1234_5678, true));
    assert_eq!(b.two("s_bfe_u32", 0x8000_0000, field(28, 8), false), (8, true));
    assert_eq!(b.two("s_bfe_i32", 0x0000_8000, field(8, 8), false), (0xffff_ff80, true));
    assert_eq!(b.two("s_bfe_i32", 0x8000_0000, field(28, 8), false), (0xffff_fff8, true));
    b.set64(2, 0xff00_0000_0000);
    b.set(6, field(40, 8));
    b.step("s_bfe_i64", Format::Sop2, pair(4), &[pair(2), s(6)]);
    assert_eq!(b.get64(4), u64::MAX);
    b.step("s_bfe_u64", Format::Sop2, pair(4), &[pair(2), s(6)]);
    assert_eq!(b.get64(4), 0xff);
}

#[test]
fn counting_and_finding_bits() {
    let mut b = gfx9();
    assert_eq!(b.one("s_bcnt1_i32_b32", 0xf0), (4, true));
    assert_eq!(b.one("s_bcnt0_i32_b32", u32::MAX), (0, false));
    assert_eq!(b.one("s_ff1_i32_b32", 0x10).0, 4);
    assert_eq!(b.one("s_ff1_i32_b32", 0).0, u32::MAX);
    assert_eq!(b.one("s_ff0_i32_b32", 0x7).0, 3);
    assert_eq!(b.one("s_ff0_i32_b32", u32::MAX).0, u32::MAX);
    assert_eq!(b.one("s_flbit_i32_b32", 1).0, 31);
    assert_eq!(b.one("s_flbit_i32_b32", 0).0, u32::MAX);
    assert_eq!(b.one("s_flbit_i32", 0x4000_0000).0, 1);
    assert_eq!(b.one("s_flbit_i32", 0xffff_0000).0, 16);
    assert_eq!(b.one("s_flbit_i32", u32::MAX).0, u32::MAX);
    assert_eq!(b.one("s_brev_b32", 1).0, 0x8000_0000);
    assert_eq!(b.one("s_quadmask_b32", 0x0010_0001), (0x21, true));
    assert_eq!(b.one("s_wqm_b32", 0x0010_0001), (0x00f0_000f, true));
    assert_eq!(b.one("s_wqm_b32", 0), (0, false));
    assert_eq!(b.one("s_sext_i32_i8", 0x80).0, 0xffff_ff80);
    assert_eq!(b.one("s_abs_i32", 0xffff_fffb), (5, true));
    assert_eq!(b.one("s_not_b32", u32::MAX), (0, false));
    b.set(2, 0b101);
    b.step("s_bitreplicate_b64_b32", Format::Sop1, pair(4), &[s(2)]);
    assert_eq!(b.get64(4), 0b110011);
    b.set(4, 0xff);
    b.set(2, 33);
    b.step("s_bitset0_b32", Format::Sop1, s(4), &[s(2)]);
    assert_eq!(b.get(4), 0xfd);
    b.step("s_bitset1_b64", Format::Sop1, pair(4), &[s(2)]);
    assert_eq!(b.get(5) & 2, 2);
}

#[test]
fn names_of_later_generations_mean_the_same() {
    let mut b = Bench::new(Target::Gfx1201, 32);
    assert_eq!(b.two("s_add_co_u32", u32::MAX, 1, false), (0, true));
    assert_eq!(b.two("s_and_not1_b32", 0xff, 0x0f, false), (0xf0, true));
    assert_eq!(b.two("s_or_not1_b32", 0, u32::MAX, true), (0, false));
    assert_eq!(b.one("s_ctz_i32_b32", 8).0, 3);
    assert_eq!(b.one("s_clz_i32_u32", 1).0, 31);
    assert_eq!(b.one("s_cls_i32", u32::MAX).0, u32::MAX);
    b.set64(2, u64::MAX);
    b.set64(6, 2);
    b.wave.scc = true;
    b.step("s_add_nc_u64", Format::Sop2, pair(4), &[pair(2), pair(6)]);
    assert_eq!((b.get64(4), b.wave.scc), (1, true));
    b.step("s_mul_u64", Format::Sop2, pair(4), &[pair(2), pair(6)]);
    assert_eq!(b.get64(4), u64::MAX - 1);
}

#[test]
fn constants_widen_by_the_operation() {
    let mut b = gfx9();
    b.step("s_mov_b64", Format::Sop1, pair(4), &[int(-1)]);
    assert_eq!(b.get64(4), u64::MAX);
    b.step("s_mov_b64", Format::Sop1, pair(4), &[Operand::Literal(0x8000_0000)]);
    assert_eq!(b.get64(4), 0x8000_0000);
    b.step("s_ashr_i64", Format::Sop2, pair(4), &[Operand::Literal(0x8000_0000), int(4)]);
    assert_eq!(b.get64(4), 0xffff_ffff_f800_0000);
    b.step("s_mov_b32", Format::Sop1, s(4), &[Operand::Float(242)]);
    assert_eq!(b.get(4), 0x3f80_0000);
    b.step("s_mov_b64", Format::Sop1, pair(4), &[Operand::Float(242)]);
    assert_eq!(b.get64(4), 0x3ff0_0000_0000_0000);
    b.step("s_and_b64", Format::Sop2, pair(4), &[int(12), int(10)]);
    assert_eq!(b.get64(4), 8);
}

#[test]
fn moves_and_selects_under_scc() {
    let mut b = gfx9();
    assert_eq!(b.two("s_cselect_b32", 1, 2, true), (1, true));
    assert_eq!(b.two("s_cselect_b32", 1, 2, false), (2, false));
    b.set(4, 9);
    b.set(2, 5);
    b.step("s_cmov_b32", Format::Sop1, s(4), &[s(2)]);
    assert_eq!(b.get(4), 9);
    b.wave.scc = true;
    b.step("s_cmov_b32", Format::Sop1, s(4), &[s(2)]);
    assert_eq!(b.get(4), 5);
    b.step("s_cmovk_i32", Format::Sopk, s(4), &[Operand::Imm(-3)]);
    assert_eq!(b.get(4) as i32, -3);
    b.step("s_movk_i32", Format::Sopk, s(4), &[Operand::Imm(-2)]);
    assert_eq!(b.get(4) as i32, -2);
    b.step("s_addk_i32", Format::Sopk, s(4), &[Operand::Imm(-2)]);
    assert_eq!((b.get(4) as i32, b.wave.scc), (-4, false));
    b.step("s_mulk_i32", Format::Sopk, s(4), &[Operand::Imm(-2)]);
    assert_eq!(b.get(4), 8);
}

#[test]
fn compares() {
    let mut b = gfx9();
    assert!(b.compare("s_cmp_lt_i32", u32::MAX, 0));
    assert!(!b.compare("s_cmp_lt_u32", u32::MAX, 0));
    assert!(b.compare("s_cmp_ge_u32", 3, 3));
    assert!(b.compare("s_cmp_lg_u32", 3, 4));
    assert!(b.compare("s_bitcmp1_b32", 4, 34));
    assert!(!b.compare("s_bitcmp0_b32", 4, 34));
    // The unsigned compare with an immediate does not extend its sign.
    b.set(4, 0xffff);
    b.step("s_cmpk_eq_u32", Format::Sopk, s(4), &[Operand::Imm(-1)]);
    assert!(b.wave.scc);
    b.step("s_cmpk_eq_i32", Format::Sopk, s(4), &[Operand::Imm(-1)]);
    assert!(!b.wave.scc);
    b.set64(2, 1 << 40);
    b.set64(6, 1 << 41);
    b.step("s_cmp_lg_u64", Format::Sopc, NONE, &[pair(2), pair(6)]);
    assert!(b.wave.scc);
}

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

mod float {
    use super::*;

    fn gfx12() -> Bench {
        let mut b = Bench::new(Target::Gfx1201, 32);
        b.wave.mode = 0xf0;
        b
    }

    fn f(b: &mut Bench, name: &'static str, x: f32, y: f32) -> f32 {
        f32::from_bits(b.two(name, x.to_bits(), y.to_bits(), false).0)
    }

    /// Pairs that need rounding, denormals and overflow.
    fn values() -> Vec<f32> {
        let mut bits =
            vec![0, 1, 0x7f_ffff, 0x80_0000, 0x3f80_0000, 0x7f7f_ffff, 0x7f80_0000, 0x3eaa_aaab, 0x4b7f_ffff];
        let mut state = 12345u32;
        for _ in 0..200 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            bits.push(state & 0x7fff_ffff);
        }
        bits.into_iter().flat_map(|b| [f32::from_bits(b), -f32::from_bits(b)]).filter(|f| !f.is_nan()).collect()
    }

    #[test]
    fn nearest_even_agrees_with_the_host() {
        let mut b = gfx12();
        for x in values() {
            for y in values() {
                let same = |got: f32, want: f32| (got.is_nan() && want.is_nan()) || got.to_bits() == want.to_bits();
                let (sum, product) = (f(&mut b, "s_add_f32", x, y), f(&mut b, "s_mul_f32", x, y));
                assert!(same(sum, x + y), "{x:e} + {y:e} = {:e}, got {sum:e}", x + y);
                assert!(same(product, x * y), "{x:e} * {y:e} = {:e}, got {product:e}", x * y);
                b.set(4, 1.5f32.to_bits());
                b.step("s_fmac_f32", Format::Sop2, s(4), &[s(2), s(3)]);
                let fused = f32::from_bits(b.get(4));
                assert!(same(fused, x.mul_add(y, 1.5)), "{x:e} * {y:e} + 1.5, got {fused:e}");
            }
        }
    }

    #[test]
    fn directed_rounding_brackets_the_exact_result() {
        let mut b = gfx12();
        let one_ulp = f32::EPSILON / 4.0;
        for (mode, plus, minus) in [(1, 1.0f32.next_up(), -1.0f32), (2, 1.0, -1.0f32.next_up()), (3, 1.0, -1.0)] {
            b.wave.mode = 0xf0 | mode;
            assert_eq!(f(&mut b, "s_add_f32", 1.0, one_ulp), plus);
            assert_eq!(f(&mut b, "s_add_f32", -1.0, -one_ulp), minus);
        }
        b.wave.mode = 0xf2;
        assert_eq!(f(&mut b, "s_sub_f32", 1.0, 1.0).to_bits(), 0x8000_0000, "a sum that cancels is -0 rounding down");
        b.wave.mode = 0xf3;
        assert_eq!(f(&mut b, "s_mul_f32", f32::MAX, 2.0), f32::MAX);
    }

    #[test]
    fn denormals_go_as_mode_says() {
        let mut b = gfx12();
        let denormal = f32::from_bits(0x40_0000);
        b.wave.mode = 0x20;
        assert_eq!(f(&mut b, "s_add_f32", denormal, 0.0), 0.0, "a source counts as zero");
        b.wave.mode = 0x10;
        assert_eq!(f(&mut b, "s_mul_f32", f32::MIN_POSITIVE, 0.5), 0.0, "a result becomes zero");
        b.wave.mode = 0x30;
        assert_eq!(f(&mut b, "s_mul_f32", f32::MIN_POSITIVE, 0.5), denormal);
    }

    #[test]
    fn nans_and_zeros_in_extremes() {
        let mut b = gfx12();
        let nan = f32::from_bits(0x7fa0_0000);
        assert_eq!(f(&mut b, "s_min_num_f32", nan, 2.0), 2.0);
        assert_eq!(f(&mut b, "s_minimum_f32", 2.0, nan).to_bits(), 0x7fe0_0000);
        assert_eq!(f(&mut b, "s_min_num_f32", 0.0, -0.0).to_bits(), 0x8000_0000);
        assert_eq!(f(&mut b, "s_max_num_f32", -0.0, 0.0).to_bits(), 0);
        assert!(b.compare("s_cmp_nlt_f32", nan.to_bits(), 0));
        assert!(!b.compare("s_cmp_lg_f32", nan.to_bits(), 0));
        assert!(b.compare("s_cmp_u_f32", nan.to_bits(), 0));
    }

    #[test]
    fn half_precision_and_conversions() {
        let mut b = gfx12();
        let bits = |x: f32| x.to_bits();
        assert_eq!(b.one("s_cvt_f16_f32", bits(1.0)).0, 0x3c00);
        assert_eq!(b.one("s_cvt_f16_f32", bits(65520.0)).0, 0x7c00);
        assert_eq!(b.one("s_cvt_f16_f32", bits(5.960_464_5e-8)).0, 1);
        b.wave.mode |= 1 << 23;
        assert_eq!(b.one("s_cvt_f16_f32", bits(65520.0)).0, 0x7bff, "FP16_OVFL");
        assert_eq!(b.one("s_cvt_f32_f16", 0x0001).0, bits(5.960_464_5e-8));
        assert_eq!(b.one("s_cvt_hi_f32_f16", 0xbc00_0000).0, bits(-1.0));
        assert_eq!(b.two("s_add_f16", 0x3c00, 0x1000, false).0, 0x3c00, "1 + 2^-11 ties to even");
        assert_eq!(b.two("s_cvt_pk_rtz_f16_f32", bits(1.9999), bits(-2.0), false).0, 0xc000_3fff);
        assert_eq!(b.one("s_cvt_i32_f32", bits(-3.9)).0 as i32, -3);
        assert_eq!(b.one("s_cvt_u32_f32", bits(-3.9)).0, 0);
        assert_eq!(b.one("s_cvt_i32_f32", 0x7fc0_0000).0, 0);
        assert_eq!(b.one("s_cvt_f32_u32", u32::MAX).0, bits(4_294_967_300.0));
        assert_eq!(b.one("s_rndne_f32", bits(2.5)).0, bits(2.0));
        assert_eq!(b.one("s_ceil_f32", bits(-0.5)).0, bits(-0.0));
        b.set(2, bits(2.0));
        b.set(3, bits(3.0));
        b.step("s_fmaak_f32", Format::Sop2, s(4), &[s(2), s(3), Operand::Literal(bits(0.5))]);
        assert_eq!(b.get(4), bits(6.5));
        b.step("s_fmamk_f32", Format::Sop2, s(4), &[s(2), Operand::Literal(bits(0.5)), s(3)]);
        assert_eq!(b.get(4), bits(4.0));
    }
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

//! Branches, calls, barriers, messages, waits and the end of a program.

use super::{Word, plain_destination, source};
use crate::cu::fidelity::{CLOCK, Fidelity, HINT, OBSERVER, WAIT};
use crate::cu::inst::{Handler, Inst, Src};
use crate::cu::lower::{Lowering, Unsupported, Width};
use crate::cu::wave::{Request, State, Wave, scalar};
use crate::isa::{Decoded, Family, Operand};
use trace::FaultKind;

/// Lowers SOPP.
pub fn sopp(decoded: &Decoded, lowering: &mut Lowering) -> Result<Inst, Unsupported> {
    let immediate = match decoded.src[0] {
        Operand::Imm(value) => value,
        Operand::Int(value) => value as i32,
        _ => 0,
    };
    let family = lowering.target.family();
    let mut fidelity = Fidelity::Exact;
    let mut stated = |reason, run: Handler| {
        fidelity = reason;
        run
    };
    let run: Handler = match decoded.mnemonic {
        "s_branch" => branch,
        "s_cbranch_scc0" => branch_scc0,
        "s_cbranch_scc1" => branch_scc1,
        "s_cbranch_vccz" => branch_vccz,
        "s_cbranch_vccnz" => branch_vccnz,
        "s_cbranch_execz" => branch_execz,
        "s_cbranch_execnz" => branch_execnz,
        "s_endpgm" | "s_endpgm_saved" | "s_endpgm_ordered_ps_done" => end,
        "s_barrier" => barrier,
        "s_barrier_wait" => match immediate {
            -1 => barrier_wait,
            // Bit 0 is reserved, -2 is the trap handler's.
            _ => stated(OBSERVER, nop),
        },
        "s_sleep" if immediate & 0x7f != 0 => stated(SLEEP, sleep),
        "s_sendmsg" => match message(family, immediate)? {
            Some(run) => run,
            None => stated(Fidelity::NoOp("nobody needs to hear of it"), nop),
        },
        "s_sendmsghalt" => return Err(Unsupported::Operand("a wave that halts cannot be resumed")),
        "s_sethalt" if immediate & 1 != 0 => halt,
        "s_trap" => trap,
        "s_round_mode" => round_mode,
        "s_denorm_mode" => denorm_mode,
        "s_set_gpr_idx_off" => index_off,
        "s_set_gpr_idx_mode" => index_mode,
        "s_sleep"
        | "s_nop"
        | "s_wakeup"
        | "s_setprio"
        | "s_clause"
        | "s_delay_alu"
        | "s_inst_prefetch"
        | "s_set_inst_prefetch_distance"
        | "s_singleuse_vdst" => stated(HINT, nop),
        "s_icache_inv" => {
            stated(Fidelity::Approximated("code that changes during a dispatch is noticed by the next one"), nop)
        }
        "s_sethalt" | "s_setkill" | "s_incperflevel" | "s_decperflevel" | "s_ttracedata" | "s_ttracedata_imm" => {
            stated(OBSERVER, nop)
        }
        "s_barrier_leave" => stated(Fidelity::NoOp("there are no named barriers to leave"), nop),
        // The conditions are false.
        name if name.starts_with("s_cbranch_cdbg") => stated(OBSERVER, nop),
        name if name.starts_with("s_wait") => stated(WAIT, nop),
        "s_code_end" => return Err(Unsupported::Operand("it fills the space behind the code")),
        _ => return Err(Unsupported::Operation),
    };
    let mut inst = Inst::new(run, decoded, fidelity);
    inst.imm = match decoded.mnemonic {
        name if name.contains("branch") => immediate.wrapping_mul(4),
        _ => immediate,
    };
    Ok(inst)
}

/// Sleeping.
const SLEEP: Fidelity = Fidelity::Approximated("lets other waves run, for no certain time");

/// Lowers what is left of SOP1, SOP2, SOPC and SOPK.
pub fn other(decoded: &Decoded, lowering: &mut Lowering) -> Result<Inst, Unsupported> {
    let pair = |operand, lowering: &Lowering| plain_destination(operand, 2, lowering);
    match decoded.mnemonic {
        "s_getpc_b64" => {
            let mut inst = Inst::new(getpc, decoded, Fidelity::Exact);
            inst.dst = pair(decoded.dst, lowering)?;
            Ok(inst)
        }
        "s_setpc_b64" | "s_swappc_b64" => {
            let (src, constant) = source(decoded.src[0], Width::B64, lowering)?;
            let swap = decoded.mnemonic == "s_swappc_b64";
            let mut inst = Inst::new(
                match (swap, constant) {
                    (false, false) => setpc::<false, false>,
                    (false, true) => setpc::<false, true>,
                    (true, false) => setpc::<true, false>,
                    (true, true) => setpc::<true, true>,
                },
                decoded,
                Fidelity::Exact,
            );
            inst.src[0] = src;
            inst.dst = if swap { pair(decoded.dst, lowering)? } else { 0 };
            Ok(inst)
        }
        "s_call_b64" => {
            let Operand::Imm(offset) = decoded.src[0] else {
                return Err(Unsupported::Operand("a branch offset is needed here"));
            };
            let mut inst = Inst::new(call, decoded, Fidelity::Exact);
            inst.dst = pair(decoded.dst, lowering)?;
            inst.imm = offset.wrapping_mul(4);
            Ok(inst)
        }
        "s_movrels_b32" | "s_movrels_b64" | "s_movreld_b32" | "s_movreld_b64" | "s_movrelsd_2_b32" => {
            relative(decoded, lowering)
        }
        "s_barrier_signal" | "s_barrier_signal_isfirst" | "s_get_barrier_state" => barrier_request(decoded, lowering),
        "s_sleep_var" => {
            let (src, constant) = source(decoded.src[0], Width::B32, lowering)?;
            let mut inst = Inst::new(if constant { sleep_var::<true> } else { sleep_var::<false> }, decoded, SLEEP);
            inst.src[0] = src;
            Ok(inst)
        }
        "s_sendmsg_rtn_b32" | "s_sendmsg_rtn_b64" => {
            let number = match decoded.src[0] {
                Operand::Imm(number) => number,
                Operand::Int(number) => number as i32,
                Operand::Literal(number) => number as i32,
                _ => return Err(Unsupported::Operand("a message number is needed here")),
            };
            let wide = decoded.mnemonic.ends_with("b64");
            let run: Handler = match number & 0xff {
                131 if wide => realtime::<true>,
                131 => realtime::<false>,
                // Doorbell, debugger's draw id, TMA, save wave, TBA, TBA to PC, SE and AID id: there is no trap handler, and
                // one shader engine array.
                128..=135 if wide => zero::<true>,
                128..=135 => zero::<false>,
                _ => return Err(Unsupported::Operand("this message is not answered")),
            };
            let fidelity =
                if number & 0xff == 131 { CLOCK } else { Fidelity::Approximated("reads 0: there is no trap handler") };
            let mut inst = Inst::new(run, decoded, fidelity);
            inst.dst = plain_destination(decoded.dst, if wide { 2 } else { 1 }, lowering)?;
            Ok(inst)
        }
        "s_set_gpr_idx_on" => {
            let (src, constant) = source(decoded.src[0], Width::B32, lowering)?;
            let mut inst =
                Inst::new(if constant { index_on::<true> } else { index_on::<false> }, decoded, Fidelity::Exact);
            inst.src[0] = src;
            inst.imm = match decoded.src[1] {
                Operand::Imm(mode) => mode,
                Operand::Int(mode) => mode as i32,
                _ => return Err(Unsupported::Operand("an index mode is needed here")),
            };
            Ok(inst)
        }
        "s_set_gpr_idx_idx" => {
            let (src, constant) = source(decoded.src[0], Width::B32, lowering)?;
            let mut inst =
                Inst::new(if constant { index_idx::<true> } else { index_idx::<false> }, decoded, Fidelity::Exact);
            inst.src[0] = src;
            Ok(inst)
        }
        "s_setvskip" => {
            let (bits, index) =
                (source(decoded.src[0], Width::B32, lowering)?, source(decoded.src[1], Width::B32, lowering)?);
            let run = match (bits.1, index.1) {
                (false, false) => set_vskip::<false, false>,
                (false, true) => set_vskip::<false, true>,
                (true, false) => set_vskip::<true, false>,
                (true, true) => set_vskip::<true, true>,
            };
            let mut inst = Inst::new(run, decoded, Fidelity::Exact);
            (inst.src[0], inst.src[1]) = (bits.0, index.0);
            Ok(inst)
        }
        "s_version" => Ok(Inst::new(nop, decoded, OBSERVER)),
        name if name.starts_with("s_waitcnt_") => Ok(Inst::new(nop, decoded, WAIT)),
        _ => Err(Unsupported::Operation),
    }
}

unsafe fn nop(_: &mut Wave, _: &Inst) {}

unsafe fn branch(wave: &mut Wave, inst: &Inst) {
    wave.pc = wave.pc.wrapping_add_signed(inst.imm as i64);
}

/// Conditional branches, without a branch of the host's: the interpreter loop has one.
macro_rules! conditional {
    ($($name:ident: |$wave:ident| $condition:expr;)*) => {
        $(unsafe fn $name($wave: &mut Wave, inst: &Inst) {
            let taken = ($condition) as i64;
            $wave.pc = $wave.pc.wrapping_add_signed(inst.imm as i64 & taken.wrapping_neg());
        })*
    };
}

conditional! {
    branch_scc0: |wave| !wave.scc;
    branch_scc1: |wave| wave.scc;
    branch_vccz: |wave| vcc(wave) == 0;
    branch_vccnz: |wave| vcc(wave) != 0;
    branch_execz: |wave| wave.exec == 0;
    branch_execnz: |wave| wave.exec != 0;
}

/// VCC as the wave's size has it: VCC_HI is an ordinary register of a wave32.
#[inline(always)]
pub fn vcc(wave: &Wave) -> u64 {
    wave.scalar64(scalar::VCC) & wave.full_mask()
}

unsafe fn end(wave: &mut Wave, _: &Inst) {
    wave.state = State::Ended;
}

unsafe fn barrier(wave: &mut Wave, _: &Inst) {
    if wave.identity.waves > 1 {
        wave.state = State::Barrier;
    }
}

unsafe fn barrier_wait(wave: &mut Wave, _: &Inst) {
    if wave.identity.waves > 1 {
        wave.state = State::Barrier;
    }
}

unsafe fn sleep(wave: &mut Wave, _: &Inst) {
    wave.state = State::Yielded;
}

unsafe fn sleep_var<const C: bool>(wave: &mut Wave, inst: &Inst) {
    // SAFETY: lowered for this instance.
    if unsafe { u32::get::<C>(wave, inst.src[0]) } & 0x7f != 0 {
        wave.state = State::Yielded;
    }
}

unsafe fn halt(wave: &mut Wave, inst: &Inst) {
    let exec = wave.exec;
    let detail = "s_sethalt stopped the wave, and no debugger can resume it".to_string();
    wave.fault_at(inst, FaultKind::Trap(0), None, exec, detail);
}

/// Trap 3 is the debugger's, which returns at once without one; so does any id above.
unsafe fn trap(wave: &mut Wave, inst: &Inst) {
    let id = inst.imm as u8;
    if id < 3 {
        let exec = wave.exec;
        let what = match id {
            2 => "s_trap 2: the program aborted (llvm.trap)",
            _ => "s_trap without a trap handler for it",
        };
        wave.fault_at(inst, FaultKind::Trap(id), None, exec, what.to_string());
    }
}

/// The message of `s_sendmsg`: 4 bits up to GFX10, 8 bits later. None: there is nothing to do.
fn message(family: Family, immediate: i32) -> Result<Option<Handler>, Unsupported> {
    let late = matches!(family, Family::Gfx11 | Family::Gfx12);
    let number = immediate & if late { 0xff } else { 0xf };
    match number {
        1 => Ok(Some(interrupt)),
        0 => Ok(None),
        // Registers can go to others; before GFX11 it is GS_DONE, which compute waves may send to nobody.
        3 if late => Ok(None),
        // The context save's own.
        4 => Ok(None),
        _ => Err(Unsupported::Operand("nobody answers this message")),
    }
}

unsafe fn interrupt(wave: &mut Wave, _: &Inst) {
    wave.request = Request::Interrupt(wave.scalar[scalar::M0 as usize]);
    wave.state = State::Request;
}

unsafe fn round_mode(wave: &mut Wave, inst: &Inst) {
    wave.mode = wave.mode & !0xf | inst.imm as u32 & 0xf;
}

unsafe fn denorm_mode(wave: &mut Wave, inst: &Inst) {
    wave.mode = wave.mode & !0xf0 | (inst.imm as u32 & 0xf) << 4;
}

unsafe fn getpc(wave: &mut Wave, inst: &Inst) {
    let pc = wave.pc;
    // SAFETY: lowered as a pair.
    unsafe { u64::put(wave, inst.dst, pc) };
}

unsafe fn setpc<const SWAP: bool, const C: bool>(wave: &mut Wave, inst: &Inst) {
    // SAFETY: lowered for this instance.
    let target = unsafe { u64::get::<C>(wave, inst.src[0]) } & !3;
    if SWAP {
        let pc = wave.pc;
        // SAFETY: as above.
        unsafe { u64::put(wave, inst.dst, pc) };
    }
    wave.pc = target;
}

unsafe fn call(wave: &mut Wave, inst: &Inst) {
    let pc = wave.pc;
    // SAFETY: lowered as a pair.
    unsafe { u64::put(wave, inst.dst, pc) };
    wave.pc = pc.wrapping_add_signed(inst.imm as i64);
}

unsafe fn realtime<const WIDE: bool>(wave: &mut Wave, inst: &Inst) {
    let now = Wave::realtime();
    // SAFETY: lowered with as many registers.
    unsafe { if WIDE { u64::put(wave, inst.dst, now) } else { u32::put(wave, inst.dst, now as u32) } }
}

unsafe fn zero<const WIDE: bool>(wave: &mut Wave, inst: &Inst) {
    // SAFETY: lowered with as many registers.
    unsafe { if WIDE { u64::put(wave, inst.dst, 0) } else { u32::put(wave, inst.dst, 0) } }
}

/// `s_barrier_signal`, `s_barrier_signal_isfirst` and `s_get_barrier_state` of the work-group's barrier, -1.
fn barrier_request(decoded: &Decoded, lowering: &mut Lowering) -> Result<Inst, Unsupported> {
    let number = match decoded.src[0] {
        Operand::Int(number) => number as i32,
        Operand::Imm(number) => number,
        _ => return Err(Unsupported::Operand("named barriers are not emulated")),
    };
    if number > 0 {
        return Err(Unsupported::Operand("named barriers are not emulated"));
    }
    let run: Handler = match decoded.mnemonic {
        "s_barrier_signal" => barrier_signal::<false>,
        "s_barrier_signal_isfirst" => barrier_signal::<true>,
        _ => barrier_state,
    };
    let mut inst = Inst::new(run, decoded, Fidelity::Exact);
    inst.imm = number;
    if decoded.mnemonic == "s_get_barrier_state" {
        inst.dst = plain_destination(decoded.dst, 1, lowering)?;
    }
    Ok(inst)
}

unsafe fn barrier_signal<const FIRST: bool>(wave: &mut Wave, inst: &Inst) {
    // Barrier 0 is a no-op, -2 belongs to trap handlers, and a wave alone is in no work-group.
    if inst.imm != -1 || wave.identity.waves == 1 {
        if FIRST {
            wave.scc = false;
        }
        return;
    }
    wave.request = Request::Signal { barrier: inst.imm, first: FIRST };
    wave.state = State::Request;
}

unsafe fn barrier_state(wave: &mut Wave, inst: &Inst) {
    wave.request = Request::BarrierState { barrier: inst.imm, dst: inst.dst as u8 };
    wave.state = State::Request;
}

/// Registers that `s_movrel*` reach: s0..s105 and VCC.
const RELATIVE_LIMIT: u64 = 108;

fn relative(decoded: &Decoded, lowering: &mut Lowering) -> Result<Inst, Unsupported> {
    let wide = decoded.mnemonic.ends_with("b64");
    let width = if wide { Width::B64 } else { Width::B32 };
    let (src, constant) = source(decoded.src[0], width, lowering)?;
    let to = decoded.mnemonic.starts_with("s_movreld");
    if constant && !to {
        return Err(Unsupported::Operand("a scalar register is needed here"));
    }
    let run: Handler = match (decoded.mnemonic, constant) {
        ("s_movrels_b32", _) => from_relative::<u32>,
        ("s_movrels_b64", _) => from_relative::<u64>,
        ("s_movreld_b32", false) => to_relative::<u32, false>,
        ("s_movreld_b32", true) => to_relative::<u32, true>,
        ("s_movreld_b64", false) => to_relative::<u64, false>,
        ("s_movreld_b64", true) => to_relative::<u64, true>,
        _ => both_relative,
    };
    let mut inst = Inst::new(run, decoded, Fidelity::Exact);
    inst.src[0] = src;
    inst.dst = plain_destination(decoded.dst, width.dwords(), lowering)?;
    Ok(inst)
}

/// The register `offset` beyond `base`, when it and those that follow exist.
fn beyond(base: u32, offset: u32, dwords: u32) -> Option<u32> {
    let register = base as u64 + offset as u64;
    (register + dwords as u64 <= RELATIVE_LIMIT).then_some(register as u32)
}

#[cold]
fn out_of_range(wave: &mut Wave, inst: &Inst, base: u32, offset: u32) {
    let exec = wave.exec;
    let detail = format!("M0 leads from scalar register {base} to {}, beyond VCC", base as u64 + offset as u64);
    wave.fault_at(inst, FaultKind::IllegalInstruction, None, exec, detail);
}

unsafe fn from_relative<W: Word>(wave: &mut Wave, inst: &Inst) {
    let m0 = wave.scalar[scalar::M0 as usize];
    match beyond(inst.src[0].0, m0, W::DWORDS) {
        // SAFETY: within the registers, as just checked; the destination is lowered.
        Some(register) => unsafe {
            let value = W::get::<false>(wave, Src(register));
            W::put(wave, inst.dst, value);
        },
        None => out_of_range(wave, inst, inst.src[0].0, m0),
    }
}

unsafe fn to_relative<W: Word, const C: bool>(wave: &mut Wave, inst: &Inst) {
    let m0 = wave.scalar[scalar::M0 as usize];
    match beyond(inst.dst, m0, W::DWORDS) {
        // SAFETY: within the registers, as just checked; the source is lowered for this instance.
        Some(register) => unsafe {
            let value = W::get::<C>(wave, inst.src[0]);
            W::put(wave, register, value);
        },
        None => out_of_range(wave, inst, inst.dst, m0),
    }
}

unsafe fn both_relative(wave: &mut Wave, inst: &Inst) {
    let m0 = wave.scalar[scalar::M0 as usize];
    let (from, to) = (m0 & 0x3ff, m0 >> 16 & 0x3ff);
    match (beyond(inst.src[0].0, from, 1), beyond(inst.dst, to, 1)) {
        (Some(from), Some(to)) => wave.scalar[to as usize] = wave.scalar[from as usize],
        (None, _) => out_of_range(wave, inst, inst.src[0].0, from),
        _ => out_of_range(wave, inst, inst.dst, to),
    }
}

/// MODE.VSKIP.
pub const VSKIP: u32 = 1 << 28;

/// `s_setvskip`: the bit of source 0 that source 1 names.
unsafe fn set_vskip<const A: bool, const B: bool>(wave: &mut Wave, inst: &Inst) {
    // SAFETY: lowered for this instance.
    let (bits, index) = unsafe { (u32::get::<A>(wave, inst.src[0]), u32::get::<B>(wave, inst.src[1])) };
    let on = bits >> (index & 31) & 1;
    wave.mode = wave.mode & !VSKIP | on << VSKIP.trailing_zeros();
    if on != 0 {
        wave.state = State::Indexed;
    }
}

/// MODE.GPR_IDX_EN.
pub const INDEX_ENABLE: u32 = 1 << 27;

unsafe fn index_on<const C: bool>(wave: &mut Wave, inst: &Inst) {
    // SAFETY: lowered for this instance.
    let index = unsafe { u32::get::<C>(wave, inst.src[0]) } & 0xff;
    let m0 = &mut wave.scalar[scalar::M0 as usize];
    *m0 = *m0 & !0xf0ff | index | (inst.imm as u32 & 0xf) << 12;
    wave.mode |= INDEX_ENABLE;
    wave.state = State::Indexed;
}

unsafe fn index_off(wave: &mut Wave, _: &Inst) {
    wave.mode &= !INDEX_ENABLE;
    wave.state = State::Ready;
}

unsafe fn index_mode(wave: &mut Wave, inst: &Inst) {
    let m0 = &mut wave.scalar[scalar::M0 as usize];
    *m0 = *m0 & !0xf000 | (inst.imm as u32 & 0xf) << 12;
}

unsafe fn index_idx<const C: bool>(wave: &mut Wave, inst: &Inst) {
    // SAFETY: lowered for this instance.
    let index = unsafe { u32::get::<C>(wave, inst.src[0]) } & 0xff;
    let m0 = &mut wave.scalar[scalar::M0 as usize];
    *m0 = *m0 & !0xff | index;
}

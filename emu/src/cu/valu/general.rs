//! The path of instructions with modifiers, and of any arithmetic while MODE differs from its default.
//!
//! Sources are prepared in intermediate rows (DPP, SDWA selection, denormals, absolute value, negation, in this order),
//! the operation's own handler runs on them, and its result is finished (output modifier, denormals, clamp, placement)
//! and written to the active lanes. So every operation has every modifier, and says nothing about them itself.

use super::dpp::Lanes;
use super::f16::F16;
use super::lane::{AUX_HIGH, AUX_KEEP, CHUNK, Kind, half_placement, second, store};
use super::packed::choose;
use super::soft;
use super::table::Soft;
use crate::cu::inst::{Handler, Inst, Src};
#[cfg(target_arch = "x86_64")]
use crate::cu::level::Avx2;
use crate::cu::level::{Base, HostLevel, Level};
use crate::cu::wave::{Row, Wave, scalar};
use crate::isa::Sdwa;

/// What an instruction needs for this path.
pub struct General {
    /// Handler of the bare operation.
    pub core: Handler,
    /// Kinds of the sources.
    pub src: [Kind; 3],
    /// Kind of the result.
    pub dst: Kind,
    /// Absolute value, by source.
    pub abs: u8,
    /// Negation, by source.
    pub neg: u8,
    /// Output modifier.
    pub omod: u8,
    /// Clamp of a floating-point result.
    pub clamp: bool,
    /// Clamp makes 0 of a NaN: bit of MODE that says so, or 0 where it always does.
    pub clamp_nan: u32,
    /// Mode bit under which output modifiers do nothing.
    pub ieee: u32,
    /// DPP of source 0.
    pub dpp: Option<Lanes>,
    /// SDWA.
    pub sdwa: Option<Sdwa>,
    /// The operation under other rounding modes.
    pub soft: Option<Soft>,
    /// The instruction writes EXEC.
    pub writes_exec: bool,
    /// A mixed-precision operation, which chooses halves and signs of its sources itself.
    pub mixed: bool,
}

/// First intermediate row of the prepared sources; those before serve as broadcast rows.
const PREPARED: usize = 6;

/// MODE's state in which handlers run.
const DEFAULT: u32 = 0xf0;

/// MODE.FP16_OVFL: an f16 result that overflows is the largest number, not infinity.
const OVERFLOW: u32 = 1 << 23;

/// Sign bit within the highest register of a number.
fn sign_bit(kind: Kind) -> u32 {
    match kind {
        Kind::B16 | Kind::F16 => 0x8000,
        Kind::P16 | Kind::PF16 | Kind::PBf16 => 0x8000_8000,
        _ => 0x8000_0000,
    }
}

#[inline(always)]
fn flush16(half: u32) -> u32 {
    if half & 0x7c00 == 0 { half & 0x8000 } else { half }
}

/// Denormals become zeros of their sign.
#[inline(always)]
fn flush_rows(kind: Kind, low: &mut [u32], high: &mut [u32]) {
    match kind {
        Kind::F32 => {
            for word in low {
                *word = if *word & 0x7f80_0000 == 0 { *word & 0x8000_0000 } else { *word };
            }
        }
        Kind::F16 | Kind::PF16 => {
            for word in low {
                *word = flush16(*word & 0xffff) | flush16(*word >> 16) << 16;
            }
        }
        Kind::F64 => {
            for (low, high) in low.iter_mut().zip(high) {
                let denormal = *high & 0x7ff0_0000 == 0;
                *low = if denormal { 0 } else { *low };
                *high = if denormal { *high & 0x8000_0000 } else { *high };
            }
        }
        _ => {}
    }
}

/// Whether MODE flushes denormal sources and results of a kind.
fn flushes(kind: Kind, mode: u32) -> (bool, bool) {
    let bits = match kind {
        Kind::F32 => mode >> 4 & 3,
        Kind::F16 | Kind::PF16 | Kind::F64 => mode >> 6 & 3,
        _ => 3,
    };
    // 0 flushes both, 1 results, 2 sources, 3 neither.
    (bits & 1 == 0, bits & 2 == 0)
}

/// Place and size of an SDWA selection.
fn part(selection: u8) -> (u32, u32) {
    match selection {
        0..=3 => (selection as u32 * 8, 8),
        4 => (0, 16),
        5 => (16, 16),
        _ => (0, 32),
    }
}

/// The selected part of a source, extended.
#[inline(always)]
fn select_part(row: &mut [u32], selection: u8, signed: bool) {
    let (shift, bits) = part(selection);
    for word in row {
        let raised = *word << (32 - bits - shift);
        *word = if signed { (raised as i32 >> (32 - bits)) as u32 } else { raised >> (32 - bits) };
    }
}

/// Copies the `L` words of a row.
///
/// # Safety
/// `row` has them.
#[inline(always)]
unsafe fn copy_row<const L: usize>(row: *const u32, to: &mut [u32]) {
    // SAFETY: the caller vouches for the row.
    to.copy_from_slice(unsafe { &*row.cast::<[u32; L]>() });
}

/// Prepares source `index` in its intermediate rows.
///
/// # Safety
/// The instruction was lowered for this wave.
#[inline(always)]
unsafe fn prepare<const L: usize>(wave: &mut Wave, inst: &Inst, general: &General, index: usize) -> Src {
    let kind = general.src[index];
    let wide = kind.dwords() == 2;
    let mut rows = [[0; L]; 2];
    let [low, high] = &mut rows;
    // SAFETY: the caller vouches for the instruction.
    unsafe {
        copy_row::<L>(wave.src::<L>(inst.src[index], 2 * index), low);
        if wide {
            copy_row::<L>(wave.src::<L>(second(inst.src[index], L as u32), 2 * index + 1), high);
        }
    }
    if index == 0
        && let Some(lanes) = &general.dpp
    {
        lanes.permute(wave.exec, low);
        if wide {
            lanes.permute(wave.exec, high);
        }
    }
    if index < 2
        && let Some(sdwa) = general.sdwa
    {
        let selection = if index == 0 { sdwa.src0_sel } else { sdwa.src1_sel };
        select_part(low, selection, sdwa.sext >> index & 1 != 0);
    }
    if flushes(kind, wave.mode).0 {
        flush_rows(kind, low, high);
    }
    let mut keep = if general.abs >> index & 1 != 0 { !sign_bit(kind) } else { u32::MAX };
    let mut flip = if general.neg >> index & 1 != 0 { sign_bit(kind) } else { 0 };
    if kind.is_16() && inst.aux >> index & AUX_HIGH != 0 {
        // The half that op_sel chose has its sign there.
        keep = keep.rotate_left(16);
        flip <<= 16;
    }
    for word in if wide { &mut *high } else { &mut *low } {
        *word = *word & keep ^ flip;
    }
    let first = PREPARED + 2 * index;
    // The second row of a pair follows the first by one row of the wave.
    let words: &mut [u32] = wave.temp[first..first + 2].as_flattened_words();
    words[..L].copy_from_slice(low);
    words[L..2 * L].copy_from_slice(high);
    Src::temp((first * size_of::<Row>()) as u32)
}

/// Rows as words.
trait Flat {
    fn as_flattened_words(&mut self) -> &mut [u32];
}

impl Flat for [Row] {
    #[inline(always)]
    fn as_flattened_words(&mut self) -> &mut [u32] {
        // SAFETY: a `Row` is an array of 64 words without padding, its size being a multiple of its alignment.
        unsafe { std::slice::from_raw_parts_mut(self.as_mut_ptr().cast(), self.len() * 64) }
    }
}

/// What an output modifier multiplies with.
fn factor(omod: u8) -> f64 {
    match omod {
        1 => 2.0,
        2 => 4.0,
        3 => 0.5,
        _ => 1.0,
    }
}

/// Output modifier, denormals and clamp of a result.
#[inline(always)]
fn finish(general: &General, mode: u32, low: &mut [u32], high: &mut [u32]) {
    let flush = flushes(general.dst, mode).1;
    // Output modifiers work only while results are flushed and IEEE is off.
    let omod = if flush && mode & general.ieee == 0 { general.omod } else { 0 };
    if omod != 0 {
        let factor = factor(omod);
        // Adding zero makes +0 of -0. NaNs pass through untouched.
        let scale = |value: f64| value * factor + 0.0;
        each_number(general.dst, low, high, |value| if value.is_nan() { None } else { Some(scale(value)) });
    }
    if flush {
        flush_rows(general.dst, low, high);
    }
    if general.clamp {
        let nan_to_zero = general.clamp_nan == 0 || mode & general.clamp_nan != 0;
        each_number(general.dst, low, high, |value| {
            if value.is_nan() {
                if nan_to_zero { Some(0.0) } else { None }
            } else if value > 0.0 {
                Some(value.min(1.0))
            } else {
                Some(0.0)
            }
        });
    }
}

/// Replaces the numbers of a row for which there is another.
#[inline(always)]
fn each_number(kind: Kind, low: &mut [u32], high: &mut [u32], change: impl Fn(f64) -> Option<f64>) {
    for (low, high) in low.iter_mut().zip(high) {
        match kind {
            Kind::F32 => {
                if let Some(value) = change(f32::from_bits(*low) as f64) {
                    *low = (value as f32).to_bits();
                }
            }
            Kind::F16 => {
                if let Some(value) = change(F16(*low & 0xffff).to_f64()) {
                    *low = F16::from_f64(value).0;
                }
            }
            Kind::F64 => {
                let bits = *low as u64 | (*high as u64) << 32;
                if let Some(value) = change(f64::from_bits(bits)) {
                    *low = value.to_bits() as u32;
                    *high = (value.to_bits() >> 32) as u32;
                }
            }
            Kind::PF16 => {
                for shift in [0, 16] {
                    if let Some(value) = change(F16(*low >> shift & 0xffff).to_f64()) {
                        *low = *low & !(0xffff << shift) | (F16::from_f64(value).0) << shift;
                    }
                }
            }
            _ => {}
        }
    }
}

/// Puts a result into its SDWA place.
#[inline(always)]
fn place(sdwa: Sdwa, result: u32, old: u32) -> u32 {
    let (shift, bits) = part(sdwa.dst_sel);
    let mask = u32::MAX >> (32 - bits);
    let value = result & mask;
    match sdwa.dst_unused {
        2 => old & !(mask << shift) | value << shift,
        1 => (((value << (32 - bits)) as i32 >> (32 - bits)) as u32) << shift,
        _ => value << shift,
    }
}

/// Runs the instruction.
///
/// # Safety
/// As for [`Handler`].
#[inline(always)]
unsafe fn run<V: Level, const L: usize>(wave: &mut Wave, inst: &Inst, general: &General) {
    let mode = wave.mode;
    let soft = general.soft.filter(|_| mode & 0xf != 0);
    let limited = mode & OVERFLOW != 0 && general.soft.is_some() && matches!(general.dst, Kind::F16 | Kind::PF16);
    let post = general.dst.dwords() != 0
        && (limited
            || general.omod != 0
            || general.clamp
            || general.sdwa.is_some()
            || soft.is_some()
            || flushes(general.dst, mode).1);
    let mut inner = Inst {
        run: None,
        dst: inst.dst,
        dst2: inst.dst2,
        src: inst.src,
        imm: inst.imm,
        len: inst.len,
        flags: inst.flags,
        aux: inst.aux,
        extra: None,
    };
    for index in 0..3 {
        let kind = general.src[index];
        let needed = post
            || general.dpp.is_some()
            || general.sdwa.is_some()
            || (general.abs | general.neg) >> index & 1 != 0
            || flushes(kind, mode).0;
        if kind.dwords() != 0 && needed {
            // SAFETY: the caller vouches for the instruction.
            inner.src[index] = unsafe { prepare::<L>(wave, inst, general, index) };
        }
    }
    let exec = wave.exec;
    if let Some(lanes) = &general.dpp {
        let writers = lanes.writers(exec);
        if writers != exec {
            wave.set_exec(writers);
        }
    }
    wave.mode = mode & !(0xff | if limited { OVERFLOW } else { 0 }) | DEFAULT;
    if post {
        // SAFETY: the caller vouches for the instruction.
        unsafe { run_apart::<V, L>(wave, inst, inner, general, mode, soft) };
    } else {
        // SAFETY: the operands are those of the instruction, or rows prepared for it.
        unsafe { (general.core)(wave, &inner) };
    }
    wave.mode = mode;
    if general.dpp.is_some() && !general.writes_exec && wave.exec != exec {
        wave.set_exec(exec);
    }
}

/// Computes the result apart, finishes it and writes it.
///
/// # Safety
/// As for [`Handler`]; the vector sources of `inner` are prepared.
#[inline(always)]
unsafe fn run_apart<V: Level, const L: usize>(
    wave: &mut Wave,
    inst: &Inst,
    mut inner: Inst,
    general: &General,
    mode: u32,
    soft: Option<Soft>,
) {
    let mut result = [Row([0; 64]); 4];
    inner.dst = 0;
    inner.aux &= !(AUX_KEEP | AUX_HIGH << 3);
    if let Some(soft) = soft {
        // SAFETY: the caller vouches for the sources.
        unsafe { run_soft::<L>(wave, &inner, general, mode, soft, &mut result) };
    } else {
        let rows = wave.rows;
        wave.rows = result.as_mut_ptr().cast();
        // SAFETY: the sources are intermediate rows; the register file is the array of results, row 0 its destination.
        unsafe { (general.core)(wave, &inner) };
        wave.rows = rows;
    }
    let words = result.as_flattened_words();
    let (low, high) = words[..2 * L].split_at_mut(L);
    if mode & OVERFLOW != 0 && general.soft.is_some() {
        for (lane, word) in low.iter_mut().enumerate() {
            // SAFETY: the caller vouches for the sources.
            *word = unsafe { limit::<L>(wave, &inner, general, lane, *word) };
        }
    }
    finish(general, mode, low, high);
    let full = wave.exec == u64::MAX >> (64 - L);
    // SAFETY: lowering checked the destination's rows.
    unsafe {
        let dst = wave.rows.byte_add(inst.dst as usize);
        if let Some(sdwa) = general.sdwa.filter(|_| general.dst.dwords() == 1) {
            for (lane, word) in low.iter_mut().enumerate() {
                *word = place(sdwa, *word, *dst.add(lane));
            }
        } else if general.dst.is_16() {
            let (shift, keep) = half_placement(inst.aux);
            for (lane, word) in low.iter_mut().enumerate() {
                *word = *word << shift | *dst.add(lane) & keep;
            }
        }
        for start in (0..L).step_by(CHUNK) {
            store::<V>(&*low.as_ptr().add(start).cast(), wave, dst, start, full);
            if general.dst.dwords() == 2 {
                store::<V>(&*high.as_ptr().add(start).cast(), wave, dst.add(L), start, full);
            }
        }
    }
}

/// A result of f16, or two, with infinities that are not those of a source replaced by the largest number.
///
/// # Safety
/// The vector sources of `inner` are prepared.
unsafe fn limit<const L: usize>(wave: &mut Wave, inner: &Inst, general: &General, lane: usize, word: u32) -> u32 {
    let mut word = word;
    let halves = match general.dst {
        Kind::F16 => 1,
        Kind::PF16 => 2,
        _ => 0,
    };
    for high in 0..halves {
        if word >> (16 * high) & 0x7fff != 0x7c00 {
            continue;
        }
        let mut infinite = false;
        for (index, kind) in general.src.iter().enumerate().filter(|(_, kind)| kind.dwords() == 1) {
            // SAFETY: the caller vouches for the sources.
            let bits = unsafe { *wave.src::<L>(inner.src[index], 2 * index).add(lane) };
            infinite |= match kind {
                Kind::F32 => bits & 0x7fff_ffff == 0x7f80_0000,
                Kind::PF16 => choose(inner.imm, bits, index as u32, high) & 0x7fff == 0x7c00,
                Kind::F16 if general.mixed => choose(inner.imm, bits, index as u32, 0) & 0x7fff == 0x7c00,
                Kind::F16 => bits >> ((inner.aux >> index & AUX_HIGH) * 16) & 0x7fff == 0x7c00,
                _ => false,
            };
        }
        if !infinite {
            word -= 1 << (16 * high);
        }
    }
    word
}

/// Computes lane by lane in integers, for rounding modes the handlers do not have.
///
/// # Safety
/// The vector sources of `inner` are prepared.
unsafe fn run_soft<const L: usize>(
    wave: &mut Wave,
    inner: &Inst,
    general: &General,
    mode: u32,
    soft: Soft,
    result: &mut [Row; 4],
) {
    let vcc = wave.scalar64(scalar::VCC);
    let words = result.as_flattened_words();
    for lane in 0..L {
        let mut bits = [0; 3];
        for (index, bits) in bits.iter_mut().enumerate() {
            let kind = general.src[index];
            if kind.dwords() == 0 {
                continue;
            }
            // SAFETY: the caller vouches for the sources.
            unsafe {
                let row = wave.src::<L>(inner.src[index], 2 * index).add(lane);
                *bits = *row as u64;
                if kind.dwords() == 2 {
                    *bits |= (*row.add(L) as u64) << 32;
                }
            }
            if kind.is_16() && !general.mixed {
                *bits = *bits >> ((inner.aux >> index & AUX_HIGH) * 16) & 0xffff;
            }
        }
        let round = mode & 0xf | if vcc >> lane & 1 != 0 { soft::VCC } else { 0 } | (inner.imm as u32) << soft::IMM;
        if general.dst == Kind::PF16 {
            let half = |high: u32| {
                let chosen = |index: u32| choose(inner.imm, bits[index as usize] as u32, index, high) as u64;
                soft(round, chosen(0), chosen(1), chosen(2)) as u32
            };
            words[lane] = half(0) | half(1) << 16;
            continue;
        }
        let value = soft(round, bits[0], bits[1], bits[2]);
        words[lane] = value as u32;
        words[L + lane] = (value >> 32) as u32;
    }
}

/// What lowering prepared for an instruction.
#[inline(always)]
fn general(inst: &Inst) -> Option<&General> {
    inst.extra.as_ref()?.data.as_ref()?.downcast_ref()
}

/// Handler of an instruction with modifiers.
///
/// # Safety
/// As for [`Handler`].
#[inline(always)]
unsafe fn modified<V: Level, const L: usize>(wave: &mut Wave, inst: &Inst) {
    if let Some(general) = general(inst) {
        // SAFETY: the caller vouches for the instruction.
        unsafe { run::<V, L>(wave, inst, general) }
    }
}

/// Runs arithmetic while MODE is not in its default state.
///
/// # Safety
/// As for [`Handler`].
#[cold]
#[inline(never)]
pub unsafe fn other_mode(wave: &mut Wave, inst: &Inst) {
    // SAFETY: the caller vouches for the instruction.
    unsafe { if wave.lanes == 64 { base::<64>(wave, inst) } else { base::<32>(wave, inst) } }
}

/// # Safety
/// As for [`Handler`].
unsafe fn base<const L: usize>(wave: &mut Wave, inst: &Inst) {
    // SAFETY: the caller vouches for the instruction.
    unsafe { modified::<Base, L>(wave, inst) }
}

/// # Safety
/// As for [`Handler`]; the host has the feature.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn avx2<const L: usize>(wave: &mut Wave, inst: &Inst) {
    // SAFETY: the caller vouches for the instruction and the host.
    unsafe { modified::<Avx2, L>(wave, inst) }
}

/// The handler of instructions with modifiers.
pub fn pick(level: HostLevel, lanes: u32) -> Handler {
    match (level, lanes) {
        #[cfg(target_arch = "x86_64")]
        (HostLevel::Avx2 | HostLevel::Avx512, 64) => avx2::<64>,
        #[cfg(target_arch = "x86_64")]
        (HostLevel::Avx2 | HostLevel::Avx512, _) => avx2::<32>,
        (_, 64) => base::<64>,
        (_, _) => base::<32>,
    }
}

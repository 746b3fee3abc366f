//! What a lane's operands and results look like: how they lie in rows, how they are read and written.

use super::f16::F16;
use crate::cu::inst::{Inst, Src};
use crate::cu::level::Level;
use crate::cu::lower::Width;
use crate::cu::wave::{Wave, scalar};
use std::mem::MaybeUninit;

/// Lanes a handler computes before it writes any of them.
pub const CHUNK: usize = 32;

/// [`CHUNK`], in a way the compiler cannot see through: it would take loops of a known small count apart before it makes
/// vectors of them, and then fail to.
#[inline(always)]
pub fn lanes() -> usize {
    let mut count = CHUNK;
    // SAFETY: nothing is executed.
    unsafe { std::arch::asm!("/* {0} */", inout(reg) count, options(pure, nomem, nostack, preserves_flags)) };
    // At most that many, the compiler may know.
    count & CHUNK
}

/// Results of a chunk; all of them are written before any is read.
pub type Words = [MaybeUninit<u32>; CHUNK];

/// The results, once all are written.
///
/// # Safety
/// They are.
#[inline(always)]
pub unsafe fn written(words: &Words) -> &[u32; CHUNK] {
    // SAFETY: the caller vouches for it.
    unsafe { &*(&raw const *words).cast() }
}

/// Type of an operand, as far as lowering and modifiers care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No such operand.
    None,
    /// 32-bit integer or bits.
    B32,
    /// f32.
    F32,
    /// 64-bit bits or unsigned integer.
    B64,
    /// 64-bit signed integer.
    I64,
    /// f64.
    F64,
    /// 16-bit integer or bits in one half of a register.
    B16,
    /// f16 in one half of a register.
    F16,
    /// Two 16-bit integers.
    P16,
    /// Two f16.
    PF16,
    /// Two bf16.
    PBf16,
    /// One bit a lane in scalar registers.
    Mask,
}

impl Kind {
    /// How a constant becomes bits.
    pub fn width(self) -> Width {
        match self {
            Kind::None | Kind::B32 | Kind::F32 | Kind::P16 | Kind::PBf16 => Width::B32,
            Kind::B64 | Kind::Mask => Width::B64,
            Kind::I64 => Width::I64,
            Kind::F64 => Width::F64,
            Kind::B16 => Width::B16,
            Kind::F16 | Kind::PF16 => Width::F16,
        }
    }

    /// Registers it takes.
    pub fn dwords(self) -> u32 {
        match self {
            Kind::None | Kind::Mask => 0,
            Kind::B64 | Kind::I64 | Kind::F64 => 2,
            _ => 1,
        }
    }

    /// One half of a register.
    pub fn is_16(self) -> bool {
        matches!(self, Kind::B16 | Kind::F16)
    }

    /// One floating-point number, to which absolute value, negation, output modifier and clamp to 0..1 apply.
    pub fn is_float(self) -> bool {
        matches!(self, Kind::F16 | Kind::F32 | Kind::F64)
    }

    /// The MODE bits that govern arithmetic on it: rounding in 3:0, denormals in 7:4, FP16_OVFL in 23.
    pub const fn mode(self) -> u32 {
        match self {
            Kind::F32 => 0x33,
            Kind::F64 => 0xcc,
            Kind::F16 | Kind::PF16 => 0x80_00cc,
            _ => 0,
        }
    }
}

/// The second register of a 64-bit source, in a wave of `lanes` lanes.
#[inline(always)]
pub fn second(src: Src, lanes: u32) -> Src {
    if src.is_scalar() {
        Src(src.0 + 1)
    } else if src.is_constant() {
        Src(src.0 + 256)
    } else {
        Src(src.0 + 4 * lanes)
    }
}

/// The words of a source; a scalar is broadcast into intermediate row `slot` first.
///
/// # Safety
/// `src` was lowered for this wave; the host has what the level needs.
#[inline(always)]
pub unsafe fn fetch<V: Level>(wave: &mut Wave, src: Src, slot: usize) -> *const u32 {
    // SAFETY: lowering checked rows against the register count and made constants and intermediate rows.
    unsafe {
        if src.is_row() {
            wave.rows.byte_add(src.value() as usize)
        } else if src.is_constant() {
            wave.constants.byte_add(src.value() as usize)
        } else if src.is_scalar() {
            let value = wave.scalar[src.value() as usize & 0xff];
            let row = &mut wave.temp[slot].0;
            V::broadcast(row, value);
            row.as_ptr()
        } else {
            wave.temp.as_ptr().cast::<u32>().byte_add(src.value() as usize)
        }
    }
}

/// A source operand of one lane.
pub trait Source: Copy + 'static {
    /// Its kind.
    const KIND: Kind;
    /// Where its lanes are.
    type Row: Copy;
    /// 32 lanes of them.
    type Chunk<'a>: Copy;

    /// Finds the lanes of source `index`.
    ///
    /// # Safety
    /// The instruction was lowered for this wave and an operand of this kind.
    unsafe fn row<V: Level>(wave: &mut Wave, inst: &Inst, index: usize) -> Self::Row;

    /// Lanes from `start`, a multiple of [`CHUNK`].
    ///
    /// # Safety
    /// `row` is valid for the wave's lanes, and nobody writes it while the chunk lives.
    unsafe fn chunk<'a>(row: Self::Row, start: usize) -> Self::Chunk<'a>;

    /// One lane.
    fn get(chunk: Self::Chunk<'_>, lane: usize) -> Self;
}

/// # Safety
/// `row` has `CHUNK` words from `start`.
#[inline(always)]
unsafe fn words<'a>(row: *const u32, start: usize) -> &'a [u32; CHUNK] {
    // SAFETY: the caller vouches for the words.
    unsafe { &*row.add(start).cast() }
}

impl Source for () {
    const KIND: Kind = Kind::None;
    type Row = ();
    type Chunk<'a> = ();

    #[inline(always)]
    unsafe fn row<V: Level>(_: &mut Wave, _: &Inst, _: usize) {}

    #[inline(always)]
    unsafe fn chunk<'a>(_: (), _: usize) -> Self::Chunk<'a> {}

    #[inline(always)]
    fn get(_: (), _: usize) {}
}

macro_rules! source32 {
    ($($type:ty, $kind:ident, $from:expr;)*) => {$(
        impl Source for $type {
            const KIND: Kind = Kind::$kind;
            type Row = *const u32;
            type Chunk<'a> = &'a [u32; CHUNK];

            #[inline(always)]
            unsafe fn row<V: Level>(wave: &mut Wave, inst: &Inst, index: usize) -> *const u32 {
                // SAFETY: the caller vouches for the instruction.
                unsafe { fetch::<V>(wave, inst.src[index], 2 * index) }
            }

            #[inline(always)]
            unsafe fn chunk<'a>(row: *const u32, start: usize) -> &'a [u32; CHUNK] {
                // SAFETY: the caller vouches for the row.
                unsafe { words(row, start) }
            }

            #[inline(always)]
            fn get(chunk: &[u32; CHUNK], lane: usize) -> $type {
                $from(chunk[lane])
            }
        }
    )*};
}

source32! {
    u32, B32, |word| word;
    i32, B32, |word| word as i32;
    f32, F32, f32::from_bits;
    P16, P16, P16;
    PF16, PF16, PF16;
    PBf16, PBf16, PBf16;
}

/// Two bf16.
#[derive(Clone, Copy)]
pub struct PBf16(pub u32);

/// Two 16-bit integers.
#[derive(Clone, Copy)]
pub struct P16(pub u32);

/// Two f16.
#[derive(Clone, Copy)]
pub struct PF16(pub u32);

macro_rules! source64 {
    ($($type:ty, $kind:ident, $from:expr;)*) => {$(
        impl Source for $type {
            const KIND: Kind = Kind::$kind;
            type Row = (*const u32, *const u32);
            type Chunk<'a> = (&'a [u32; CHUNK], &'a [u32; CHUNK]);

            #[inline(always)]
            unsafe fn row<V: Level>(wave: &mut Wave, inst: &Inst, index: usize) -> Self::Row {
                let src = inst.src[index];
                // SAFETY: the caller vouches for the instruction.
                unsafe {
                    let high = second(src, wave.lanes);
                    (fetch::<V>(wave, src, 2 * index), fetch::<V>(wave, high, 2 * index + 1))
                }
            }

            #[inline(always)]
            unsafe fn chunk<'a>(row: Self::Row, start: usize) -> Self::Chunk<'a> {
                // SAFETY: the caller vouches for the rows.
                unsafe { (words(row.0, start), words(row.1, start)) }
            }

            #[inline(always)]
            fn get(chunk: Self::Chunk<'_>, lane: usize) -> $type {
                $from(chunk.0[lane] as u64 | (chunk.1[lane] as u64) << 32)
            }
        }
    )*};
}

source64! {
    u64, B64, |bits| bits;
    i64, I64, |bits| bits as i64;
    f64, F64, f64::from_bits;
}

/// Bit of [`Inst::aux`] that says that source `index` is the high half of its register. Bit 3 is the destination's.
pub const AUX_HIGH: u16 = 1;
/// Bit of [`Inst::aux`]: a 16-bit result keeps the other half of its register.
pub const AUX_KEEP: u16 = 1 << 4;

macro_rules! source16 {
    ($($type:ty, $kind:ident, $from:expr;)*) => {$(
        impl Source for $type {
            const KIND: Kind = Kind::$kind;
            type Row = (*const u32, u32);
            type Chunk<'a> = (&'a [u32; CHUNK], u32);

            #[inline(always)]
            unsafe fn row<V: Level>(wave: &mut Wave, inst: &Inst, index: usize) -> Self::Row {
                let shift = ((inst.aux >> index) & AUX_HIGH) as u32 * 16;
                // SAFETY: the caller vouches for the instruction.
                unsafe { (fetch::<V>(wave, inst.src[index], 2 * index), shift) }
            }

            #[inline(always)]
            unsafe fn chunk<'a>(row: Self::Row, start: usize) -> Self::Chunk<'a> {
                // SAFETY: the caller vouches for the row.
                unsafe { (words(row.0, start), row.1) }
            }

            #[inline(always)]
            fn get(chunk: Self::Chunk<'_>, lane: usize) -> $type {
                $from(chunk.0[lane] >> (chunk.1 & 31) & 0xffff)
            }
        }
    )*};
}

source16! {
    u16, B16, |half| half as u16;
    i16, B16, |half| half as u16 as i16;
    F16, F16, F16;
}

/// Bit of each lane of a chunk.
const LANE_BIT: [u32; CHUNK] = {
    let mut bits = [0; CHUNK];
    let mut lane = 0;
    while lane < CHUNK {
        bits[lane] = 1 << lane;
        lane += 1;
    }
    bits
};

impl Source for bool {
    const KIND: Kind = Kind::Mask;
    type Row = u64;
    type Chunk<'a> = u32;

    #[inline(always)]
    unsafe fn row<V: Level>(wave: &mut Wave, inst: &Inst, index: usize) -> u64 {
        let src = inst.src[index];
        if src.is_scalar() {
            return wave.scalar64(src.value() as u8);
        }
        // SAFETY: a mask is a scalar register or a constant of two rows, whose words are all equal.
        unsafe {
            let low = *fetch::<V>(wave, src, 0);
            let high = *fetch::<V>(wave, second(src, wave.lanes), 0);
            low as u64 | (high as u64) << 32
        }
    }

    #[inline(always)]
    unsafe fn chunk<'a>(mask: u64, start: usize) -> Self::Chunk<'a> {
        (mask >> start) as u32
    }

    #[inline(always)]
    fn get(mask: u32, lane: usize) -> bool {
        mask & LANE_BIT[lane] != 0
    }
}

/// The result of one lane.
pub trait Dest: Copy + 'static {
    /// Kind of the vector part.
    const KIND: Kind;
    /// Whether a lane mask is written, to `dst` when it is all there is, else to `dst2`.
    const MASK: bool = false;

    /// Stores a lane's result.
    fn put(buffer: &mut Buffer, lane: usize, value: Self);

    /// A lane's result again.
    ///
    /// # Safety
    /// It was stored.
    unsafe fn get(buffer: &Buffer, lane: usize) -> Self;

    /// Whether a result is a NaN. May be true of other results, never false of a NaN.
    ///
    /// # Safety
    /// All results were stored; the host has what the level needs.
    #[inline(always)]
    unsafe fn any_nan<V: Level>(_: &Buffer) -> bool {
        false
    }

    /// Writes the active lanes of the chunk at `start`; returns its mask bits.
    ///
    /// # Safety
    /// All results were stored; the instruction was lowered for this wave and a result of this kind.
    unsafe fn commit<V: Level>(buffer: &Buffer, wave: &mut Wave, inst: &Inst, start: usize, full: bool) -> u32;
}

/// Results of a chunk: low and high words, and lane masks, as far as the result has them.
pub struct Buffer {
    low: Words,
    high: Words,
    mask: Words,
}

impl Buffer {
    /// An empty one.
    #[inline(always)]
    pub fn empty() -> Buffer {
        let words = [MaybeUninit::uninit(); CHUNK];
        Buffer { low: words, high: words, mask: words }
    }

    /// The low words, to store.
    #[inline(always)]
    pub fn low_mut(&mut self) -> &mut Words {
        &mut self.low
    }

    /// The low words.
    ///
    /// # Safety
    /// All were stored.
    #[inline(always)]
    pub unsafe fn low(&self) -> &[u32; CHUNK] {
        // SAFETY: the caller vouches for it.
        unsafe { written(&self.low) }
    }
}

/// Writes the words of active lanes.
///
/// # Safety
/// `dst` has `CHUNK` words from `start`; the host has what the level needs.
#[inline(always)]
pub unsafe fn store<V: Level>(values: &[u32; CHUNK], wave: &Wave, dst: *mut u32, start: usize, full: bool) {
    // SAFETY: the caller vouches for the words; the register file and the wave do not overlap; `start` is 0, or 32 in a
    // row of 64.
    unsafe {
        let dst: &mut [u32; CHUNK] = &mut *dst.add(start).cast();
        if full {
            *dst = *values;
        } else {
            V::store_active(values, dst, (wave.exec >> start) as u32, words(wave.exec_row.0.as_ptr(), start));
        }
    }
}

macro_rules! dest32 {
    ($($type:ty, $kind:ident, $to:expr, $from:expr $(, $nan:ident)?;)*) => {$(
        impl Dest for $type {
            const KIND: Kind = Kind::$kind;

            #[inline(always)]
            fn put(buffer: &mut Buffer, lane: usize, value: $type) {
                buffer.low[lane].write($to(value));
            }

            #[inline(always)]
            unsafe fn get(buffer: &Buffer, lane: usize) -> $type {
                // SAFETY: the caller vouches for it.
                $from(unsafe { buffer.low[lane].assume_init() })
            }

            $(
                #[inline(always)]
                unsafe fn any_nan<V: Level>(buffer: &Buffer) -> bool {
                    // SAFETY: the caller vouches for buffer and level.
                    unsafe { $nan::<V>(buffer) }
                }
            )?

            #[inline(always)]
            unsafe fn commit<V: Level>(buffer: &Buffer, wave: &mut Wave, inst: &Inst, start: usize, full: bool) -> u32 {
                // SAFETY: lowering checked the row.
                unsafe {
                    let dst = wave.rows.byte_add(inst.dst as usize);
                    store::<V>(written(&buffer.low), wave, dst, start, full);
                }
                0
            }
        }
    )*};
}

dest32! {
    u32, B32, |value| value, |word| word;
    i32, B32, |value| value as u32, |word| word as i32;
    f32, F32, f32::to_bits, f32::from_bits, any_nan32;
    P16, P16, |value: P16| value.0, P16;
    PF16, PF16, |value: PF16| value.0, PF16, any_nan16x2;
}

/// # Safety
/// All low words were stored; the host has what the level needs.
#[inline(always)]
unsafe fn any_nan32<V: Level>(buffer: &Buffer) -> bool {
    // SAFETY: the caller vouches for it.
    unsafe { V::any_above(written(&buffer.low), 0x7fff_ffff, 0x7f80_0000) }
}

/// Infinities count as well.
///
/// # Safety
/// All high words were stored; the host has what the level needs.
#[inline(always)]
unsafe fn any_nan64<V: Level>(buffer: &Buffer) -> bool {
    // SAFETY: the caller vouches for it.
    unsafe { V::any_above(written(&buffer.high), 0x7fff_ffff, 0x7fef_ffff) }
}

/// # Safety
/// All low words were stored; the host has what the level needs.
#[inline(always)]
unsafe fn any_nan16<V: Level>(buffer: &Buffer) -> bool {
    // SAFETY: the caller vouches for it.
    unsafe { V::any_above(written(&buffer.low), 0x7fff, 0x7c00) }
}

/// An infinity in the high half may count as well.
///
/// # Safety
/// All low words were stored; the host has what the level needs.
#[inline(always)]
unsafe fn any_nan16x2<V: Level>(buffer: &Buffer) -> bool {
    // SAFETY: the caller vouches for it.
    unsafe {
        V::any_above(written(&buffer.low), 0x7fff, 0x7c00)
            || V::any_above(written(&buffer.low), 0x7fff_ffff, 0x7c00_0000)
    }
}

macro_rules! dest64 {
    ($($type:ty, $kind:ident, $to:expr, $from:expr $(, $nan:ident)?;)*) => {$(
        impl Dest for $type {
            const KIND: Kind = Kind::$kind;

            #[inline(always)]
            fn put(buffer: &mut Buffer, lane: usize, value: $type) {
                let bits: u64 = $to(value);
                buffer.low[lane].write(bits as u32);
                buffer.high[lane].write((bits >> 32) as u32);
            }

            #[inline(always)]
            unsafe fn get(buffer: &Buffer, lane: usize) -> $type {
                // SAFETY: the caller vouches for it.
                let (low, high) = unsafe { (buffer.low[lane].assume_init(), buffer.high[lane].assume_init()) };
                $from(low as u64 | (high as u64) << 32)
            }

            $(
                #[inline(always)]
                unsafe fn any_nan<V: Level>(buffer: &Buffer) -> bool {
                    // SAFETY: the caller vouches for buffer and level.
                    unsafe { $nan::<V>(buffer) }
                }
            )?

            #[inline(always)]
            unsafe fn commit<V: Level>(buffer: &Buffer, wave: &mut Wave, inst: &Inst, start: usize, full: bool) -> u32 {
                // SAFETY: lowering checked both rows.
                unsafe {
                    let dst = wave.rows.byte_add(inst.dst as usize);
                    store::<V>(written(&buffer.low), wave, dst, start, full);
                    store::<V>(written(&buffer.high), wave, dst.add(wave.lanes as usize), start, full);
                }
                0
            }
        }
    )*};
}

dest64! {
    u64, B64, |value| value, |bits| bits;
    i64, I64, |value| value as u64, |bits| bits as i64;
    f64, F64, f64::to_bits, f64::from_bits, any_nan64;
}

macro_rules! dest16 {
    ($($type:ty, $kind:ident, $to:expr, $from:expr $(, $nan:ident)?;)*) => {$(
        impl Dest for $type {
            const KIND: Kind = Kind::$kind;

            #[inline(always)]
            fn put(buffer: &mut Buffer, lane: usize, value: $type) {
                buffer.low[lane].write($to(value));
            }

            #[inline(always)]
            unsafe fn get(buffer: &Buffer, lane: usize) -> $type {
                // SAFETY: the caller vouches for it.
                $from(unsafe { buffer.low[lane].assume_init() })
            }

            $(
                #[inline(always)]
                unsafe fn any_nan<V: Level>(buffer: &Buffer) -> bool {
                    // SAFETY: the caller vouches for buffer and level.
                    unsafe { $nan::<V>(buffer) }
                }
            )?

            #[inline(always)]
            unsafe fn commit<V: Level>(buffer: &Buffer, wave: &mut Wave, inst: &Inst, start: usize, full: bool) -> u32 {
                // SAFETY: lowering checked the row.
                unsafe {
                    let dst = wave.rows.byte_add(inst.dst as usize);
                    let (shift, keep) = half_placement(inst.aux);
                    let (values, old) = (written(&buffer.low), words(dst, start));
                    let merged = V::place(values, old, shift, keep);
                    store::<V>(&merged, wave, dst, start, full);
                }
                0
            }
        }
    )*};
}

dest16! {
    u16, B16, |value| value as u32, |half| half as u16;
    i16, B16, |value| value as u16 as u32, |half| half as u16 as i16;
    F16, F16, |value: F16| value.0, F16, any_nan16;
}

/// Where a 16-bit result goes: left shift, and the bits of the old register that stay.
#[inline(always)]
pub fn half_placement(aux: u16) -> (u32, u32) {
    if aux & (AUX_HIGH << 3) != 0 {
        (16, 0xffff)
    } else if aux & AUX_KEEP != 0 {
        (0, 0xffff_0000)
    } else {
        (0, 0)
    }
}

impl Dest for bool {
    const KIND: Kind = Kind::None;
    const MASK: bool = true;

    #[inline(always)]
    fn put(buffer: &mut Buffer, lane: usize, value: bool) {
        buffer.mask[lane].write(if value { u32::MAX } else { 0 });
    }

    #[inline(always)]
    unsafe fn get(buffer: &Buffer, lane: usize) -> bool {
        // SAFETY: the caller vouches for it.
        unsafe { buffer.mask[lane].assume_init() != 0 }
    }

    #[inline(always)]
    unsafe fn commit<V: Level>(buffer: &Buffer, _: &mut Wave, _: &Inst, _: usize, _: bool) -> u32 {
        // SAFETY: the caller vouches for the results; the handler was picked for the host's level.
        unsafe { V::sign_mask(written(&buffer.mask)) }
    }
}

/// A value and a bit: carry-out and the like.
impl<D: Dest> Dest for (D, bool) {
    const KIND: Kind = D::KIND;
    const MASK: bool = true;

    #[inline(always)]
    fn put(buffer: &mut Buffer, lane: usize, value: (D, bool)) {
        D::put(buffer, lane, value.0);
        <bool as Dest>::put(buffer, lane, value.1);
    }

    #[inline(always)]
    unsafe fn get(buffer: &Buffer, lane: usize) -> (D, bool) {
        // SAFETY: the caller vouches for it.
        unsafe { (D::get(buffer, lane), <bool as Dest>::get(buffer, lane)) }
    }

    #[inline(always)]
    unsafe fn commit<V: Level>(buffer: &Buffer, wave: &mut Wave, inst: &Inst, start: usize, full: bool) -> u32 {
        // SAFETY: the caller vouches for the results, the instruction and the level.
        unsafe {
            D::commit::<V>(buffer, wave, inst, start, full);
            <bool as Dest>::commit::<V>(buffer, wave, inst, start, full)
        }
    }
}

/// Flag of an [`Inst`]: the mask goes to EXEC as well (GFX9 `v_cmpx`).
pub const FLAG_EXEC: u8 = 1;

/// Writes a whole lane mask.
#[inline(always)]
pub fn write_mask(wave: &mut Wave, inst: &Inst, register: u32, mask: u64) {
    let register = register as u8;
    if register == scalar::EXEC || inst.flags & FLAG_EXEC != 0 {
        wave.set_exec(mask);
    }
    if register != scalar::EXEC {
        if let [low, high] = &mut wave.scalar[register as usize..][..2] {
            *low = mask as u32;
            if wave.lanes == 64 {
                *high = (mask >> 32) as u32;
            }
        }
    }
}

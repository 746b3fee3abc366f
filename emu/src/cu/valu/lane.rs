//! What a lane's operands and results look like: how they lie in rows, how they are read and written.

use super::f16::F16;
use crate::cu::inst::{Inst, Src};
use crate::cu::level::Level;
use crate::cu::lower::Width;
use crate::cu::wave::{Wave, scalar};

/// Lanes a handler computes before it writes any of them.
pub const CHUNK: usize = 32;

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
    /// One bit a lane in scalar registers.
    Mask,
    /// Four registers.
    B128,
}

impl Kind {
    /// How a constant becomes bits.
    pub fn width(self) -> Width {
        match self {
            Kind::None | Kind::B32 | Kind::F32 | Kind::P16 | Kind::B128 => Width::B32,
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
            Kind::B128 => 4,
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

    /// The MODE bits that govern arithmetic on it: rounding in 3:0, denormals in 7:4.
    pub const fn mode(self) -> u32 {
        match self {
            Kind::F32 => 0x33,
            Kind::F16 | Kind::F64 | Kind::PF16 => 0xcc,
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
}

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
                $from((chunk.0[lane] >> (chunk.1 & 31)) as u16)
            }
        }
    )*};
}

source16! {
    u16, B16, |half| half;
    i16, B16, |half: u16| half as i16;
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
    /// Results of a chunk.
    type Buffer;

    /// An empty one.
    fn buffer() -> Self::Buffer;

    /// Stores a lane's result.
    fn put(buffer: &mut Self::Buffer, lane: usize, value: Self);

    /// A lane's result again.
    fn get(buffer: &Self::Buffer, lane: usize) -> Self;

    /// Writes the active lanes of the chunk at `start`; returns its mask bits.
    ///
    /// # Safety
    /// The instruction was lowered for this wave and a result of this kind.
    unsafe fn commit<V: Level>(buffer: &Self::Buffer, wave: &mut Wave, inst: &Inst, start: usize, full: bool) -> u32;
}

/// Writes the words of active lanes.
///
/// # Safety
/// `dst` has `CHUNK` words from `start`.
#[inline(always)]
pub unsafe fn store(values: &[u32; CHUNK], wave: &Wave, dst: *mut u32, start: usize, full: bool) {
    // SAFETY: the caller vouches for the words; the register file and the wave do not overlap.
    let dst: &mut [u32; CHUNK] = unsafe { &mut *dst.add(start).cast() };
    if full {
        *dst = *values;
    } else {
        // SAFETY: `start` is 0, or 32 in a row of 64.
        let exec: &[u32; CHUNK] = unsafe { words(wave.exec_row.0.as_ptr(), start) };
        for lane in 0..CHUNK {
            dst[lane] = if (exec[lane] as i32) < 0 { values[lane] } else { dst[lane] };
        }
    }
}

macro_rules! dest32 {
    ($($type:ty, $kind:ident, $to:expr, $from:expr;)*) => {$(
        impl Dest for $type {
            const KIND: Kind = Kind::$kind;
            type Buffer = [u32; CHUNK];

            #[inline(always)]
            fn buffer() -> [u32; CHUNK] {
                [0; CHUNK]
            }

            #[inline(always)]
            fn put(buffer: &mut [u32; CHUNK], lane: usize, value: $type) {
                buffer[lane] = $to(value);
            }

            #[inline(always)]
            fn get(buffer: &[u32; CHUNK], lane: usize) -> $type {
                $from(buffer[lane])
            }

            #[inline(always)]
            unsafe fn commit<V: Level>(
                buffer: &[u32; CHUNK],
                wave: &mut Wave,
                inst: &Inst,
                start: usize,
                full: bool,
            ) -> u32 {
                // SAFETY: lowering checked the row.
                unsafe { store(buffer, wave, wave.rows.byte_add(inst.dst as usize), start, full) };
                0
            }
        }
    )*};
}

dest32! {
    u32, B32, |value| value, |word| word;
    i32, B32, |value| value as u32, |word| word as i32;
    f32, F32, f32::to_bits, f32::from_bits;
}

macro_rules! dest64 {
    ($($type:ty, $kind:ident, $to:expr, $from:expr;)*) => {$(
        impl Dest for $type {
            const KIND: Kind = Kind::$kind;
            type Buffer = ([u32; CHUNK], [u32; CHUNK]);

            #[inline(always)]
            fn buffer() -> Self::Buffer {
                ([0; CHUNK], [0; CHUNK])
            }

            #[inline(always)]
            fn put(buffer: &mut Self::Buffer, lane: usize, value: $type) {
                let bits: u64 = $to(value);
                buffer.0[lane] = bits as u32;
                buffer.1[lane] = (bits >> 32) as u32;
            }

            #[inline(always)]
            fn get(buffer: &Self::Buffer, lane: usize) -> $type {
                $from(buffer.0[lane] as u64 | (buffer.1[lane] as u64) << 32)
            }

            #[inline(always)]
            unsafe fn commit<V: Level>(
                buffer: &Self::Buffer,
                wave: &mut Wave,
                inst: &Inst,
                start: usize,
                full: bool,
            ) -> u32 {
                // SAFETY: lowering checked both rows.
                unsafe {
                    let dst = wave.rows.byte_add(inst.dst as usize);
                    store(&buffer.0, wave, dst, start, full);
                    store(&buffer.1, wave, dst.add(wave.lanes as usize), start, full);
                }
                0
            }
        }
    )*};
}

dest64! {
    u64, B64, |value| value, |bits| bits;
    i64, I64, |value| value as u64, |bits| bits as i64;
    f64, F64, f64::to_bits, f64::from_bits;
}

macro_rules! dest16 {
    ($($type:ty, $kind:ident, $to:expr, $from:expr;)*) => {$(
        impl Dest for $type {
            const KIND: Kind = Kind::$kind;
            type Buffer = [u32; CHUNK];

            #[inline(always)]
            fn buffer() -> [u32; CHUNK] {
                [0; CHUNK]
            }

            #[inline(always)]
            fn put(buffer: &mut [u32; CHUNK], lane: usize, value: $type) {
                let half: u16 = $to(value);
                buffer[lane] = half as u32;
            }

            #[inline(always)]
            fn get(buffer: &[u32; CHUNK], lane: usize) -> $type {
                $from(buffer[lane] as u16)
            }

            #[inline(always)]
            unsafe fn commit<V: Level>(
                buffer: &[u32; CHUNK],
                wave: &mut Wave,
                inst: &Inst,
                start: usize,
                full: bool,
            ) -> u32 {
                // SAFETY: lowering checked the row.
                unsafe {
                    let dst = wave.rows.byte_add(inst.dst as usize);
                    let (shift, keep) = half_placement(inst.aux);
                    let old: &[u32; CHUNK] = words(dst, start);
                    let mut merged = [0; CHUNK];
                    for lane in 0..CHUNK {
                        merged[lane] = buffer[lane] << (shift & 31) | old[lane] & keep;
                    }
                    store(&merged, wave, dst, start, full);
                }
                0
            }
        }
    )*};
}

dest16! {
    u16, B16, |value| value, |half| half;
    i16, B16, |value| value as u16, |half: u16| half as i16;
    F16, F16, |value: F16| value.0, F16;
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
    type Buffer = [u32; CHUNK];

    #[inline(always)]
    fn buffer() -> [u32; CHUNK] {
        [0; CHUNK]
    }

    #[inline(always)]
    fn put(buffer: &mut [u32; CHUNK], lane: usize, value: bool) {
        buffer[lane] = if value { u32::MAX } else { 0 };
    }

    #[inline(always)]
    fn get(buffer: &[u32; CHUNK], lane: usize) -> bool {
        buffer[lane] != 0
    }

    #[inline(always)]
    unsafe fn commit<V: Level>(buffer: &[u32; CHUNK], _: &mut Wave, _: &Inst, _: usize, _: bool) -> u32 {
        // SAFETY: the handler was picked for the host's level.
        unsafe { V::sign_mask(buffer) }
    }
}

/// A value and a bit: carry-out and the like.
impl<D: Dest> Dest for (D, bool) {
    const KIND: Kind = D::KIND;
    const MASK: bool = true;
    type Buffer = (D::Buffer, [u32; CHUNK]);

    #[inline(always)]
    fn buffer() -> Self::Buffer {
        (D::buffer(), [0; CHUNK])
    }

    #[inline(always)]
    fn put(buffer: &mut Self::Buffer, lane: usize, value: (D, bool)) {
        D::put(&mut buffer.0, lane, value.0);
        <bool as Dest>::put(&mut buffer.1, lane, value.1);
    }

    #[inline(always)]
    fn get(buffer: &Self::Buffer, lane: usize) -> (D, bool) {
        (D::get(&buffer.0, lane), buffer.1[lane] != 0)
    }

    #[inline(always)]
    unsafe fn commit<V: Level>(buffer: &Self::Buffer, wave: &mut Wave, inst: &Inst, start: usize, full: bool) -> u32 {
        // SAFETY: the caller vouches for the instruction and the level.
        unsafe {
            D::commit::<V>(&buffer.0, wave, inst, start, full);
            V::sign_mask(&buffer.1)
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

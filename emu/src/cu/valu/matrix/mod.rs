//! Matrix instructions: MFMA and WMMA.
//!
//! A and B are read into flat arrays, multiplied there and the result written at once, to all lanes: EXEC has no say.
//! Hardware does not document the order of its sums; here each element is C and then the products in the order of k,
//! one rounding a step, in f32 for narrower inputs.

mod shape;
#[cfg(test)]
#[allow(clippy::unnecessary_cast)]
mod tests;

use super::convert::bf16_from_f32;
use super::f16::F16;
use super::float32::flush;
use super::fp8;
use super::lane::fetch;
use crate::cu::fidelity::{Fidelity, SUMS};
use crate::cu::inst::{Handler, Inst, Src};
use crate::cu::level::{Base, HostLevel};
use crate::cu::lower::{Lowering, Unsupported, Width};
use crate::cu::wave::Wave;
use crate::isa::{Decoded, Family, Operand};
use shape::{Element, Layout, Shape};

/// Where an element lies: word from the operand's first row, lowest bit.
#[derive(Clone, Copy)]
struct Place {
    word: u32,
    bit: u32,
}

/// What lowering found out.
struct Matrix {
    shape: Shape,
    /// Operands A, B and C.
    src: [Src; 3],
    /// Byte offset of D's first row.
    dst: u32,
    /// Elements of A as rows, after MFMA's broadcasts.
    a: Vec<Place>,
    /// Elements of B as rows.
    b: Vec<Place>,
    /// Elements of C and D as rows.
    d: Vec<Place>,
    /// C is a constant.
    constant: bool,
    /// MFMA of f64: negates A, B, C.
    blgp: u8,
    /// Sign modifiers of WMMA by source: `neg` for even elements, `neg_hi` for odd ones; for C negation and absolute
    /// value. With integers `neg` says that a source is signed.
    neg: u8,
    neg_hi: u8,
    /// Saturates an integer result.
    clamp: bool,
    /// The target's 8-bit floats have no infinities and no negative zero.
    fnuz: bool,
    multiply: Multiply,
}

/// `d += a * b` over a shape, for each type of accumulator.
#[derive(Clone, Copy)]
struct Multiply {
    f32: unsafe fn(&Shape, &[f32], &[f32], &mut [f32]),
    f64: unsafe fn(&Shape, &[f64], &[f64], &mut [f64]),
    i32: unsafe fn(&Shape, &[i64], &[i64], &mut [i64]),
}

/// Lowers a matrix instruction; None when it is none.
pub fn lower(decoded: &Decoded, lowering: &mut Lowering) -> Option<Result<Inst, Unsupported>> {
    let name = decoded.mnemonic;
    if name.starts_with("v_smfmac_") || name.starts_with("v_swmmac_") {
        return Some(Err(Unsupported::Operation));
    }
    if !name.starts_with("v_mfma_") && !name.starts_with("v_wmma_") {
        return None;
    }
    Some(matrix(decoded, lowering))
}

fn registers(operand: Operand) -> usize {
    match operand {
        Operand::Vgpr { dwords, .. } | Operand::Agpr { dwords, .. } => dwords.into(),
        _ => 0,
    }
}

fn matrix(decoded: &Decoded, lowering: &mut Lowering) -> Result<Inst, Unsupported> {
    let family = lowering.target.family();
    let [a, b, c, _] = decoded.src;
    let counts = [registers(a), registers(b), registers(c), registers(decoded.dst)];
    let shape = Shape::parse(decoded.mnemonic, family, lowering.lanes as usize, counts[0]);
    let shape = shape.ok_or(Unsupported::Operation)?;
    let mods = &decoded.mods;
    let mfma = shape.layout == Layout::Mfma;
    if mfma && shape.blocks >> mods.cbsz == 0 {
        return Err(Unsupported::Operand("cbsz is larger than the number of blocks"));
    }
    let high = (shape.layout == Layout::Wmma11 && mods.op_sel & 4 != 0) as usize * 16;
    let f64s = shape.d == Element::F64;
    let place =
        |(register, lane, bit): shape::Place| Place { word: (register * shape.lanes + lane) as u32, bit: bit as u32 };
    let a_places = indices(shape.blocks, shape.m, shape.k).map(|(block, i, k)| {
        let group = if mfma && !f64s { (1 << mods.cbsz) - 1 } else { 0 };
        place(shape.input(shape.a, shape.m, block & !group | mods.abid as usize & group, i, k))
    });
    let b_places = indices(shape.blocks, shape.k, shape.n).map(|(block, k, j)| {
        let (register, lane, bit) = shape.input(shape.b, shape.n, block, j, k);
        place((register, if mfma && !f64s { pattern(mods.blgp, lane) } else { lane }, bit))
    });
    let d_places = indices(shape.blocks, shape.m, shape.n).map(|(block, i, j)| {
        let (register, lane, bit) = shape.output(block, i, j);
        place((register, lane, if shape.d.bits() == 16 { bit + high } else { bit }))
    });
    let width = match shape.d {
        Element::F64 => Width::F64,
        Element::F16 => Width::F16,
        _ => Width::B32,
    };
    let matrix = Matrix {
        shape,
        src: [Src::row(lowering.row(a)?), Src::row(lowering.row(b)?), lowering.src(c, width)?],
        dst: lowering.row(decoded.dst)?,
        a: a_places.collect(),
        b: b_places.collect(),
        d: d_places.collect(),
        constant: counts[2] == 0,
        blgp: mods.blgp,
        neg: mods.neg,
        neg_hi: mods.neg_hi,
        clamp: mods.clamp,
        fnuz: family == Family::Gfx9,
        multiply: pick(lowering.level),
    };
    // Every element must lie within its operand, as the handlers do not check again.
    let fits = |places: &[Place], element: Element, registers: usize| {
        let extra = (element.bits() / 64 * shape.lanes) as u32;
        places.iter().all(|place| ((place.word + extra) as usize) < registers * shape.lanes)
    };
    let enough = fits(&matrix.a, shape.a, counts[0])
        && fits(&matrix.b, shape.b, counts[1])
        && fits(&matrix.d, shape.d, counts[3])
        && (counts[2] == counts[3] || matrix.constant && matrix.src[2].is_constant())
        && (!mfma || shape.lanes == 64);
    if !enough {
        return Err(Unsupported::Operand("the registers do not fit the shape of the matrices"));
    }
    let run: Handler = match shape.d {
        Element::F64 => run_f64,
        Element::I32 => run_i32,
        _ => run_f32,
    };
    // Integers sum up to the same in any order.
    let fidelity = if shape.d == Element::I32 { Fidelity::Exact } else { SUMS };
    let mut inst = Inst::new(run, decoded, fidelity);
    if let Some(extra) = &mut inst.extra {
        extra.data = Some(Box::new(matrix));
    }
    Ok(inst)
}

/// Blocks, rows and columns in order.
fn indices(blocks: usize, rows: usize, columns: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    (0..blocks * rows * columns).map(move |at| (at / (rows * columns), at / columns % rows, at % columns))
}

/// The lane of B that MFMA's lane pattern puts in place of `lane`.
fn pattern(blgp: u8, lane: usize) -> usize {
    match blgp {
        1 => lane & 31,
        2 => lane | 32,
        3 => (lane + 16) & 63,
        4..=7 => lane & 15 | 16 * (blgp as usize - 4),
        _ => lane,
    }
}

impl Matrix {
    fn of(inst: &Inst) -> Option<&Matrix> {
        inst.extra.as_ref()?.data.as_ref()?.downcast_ref()
    }

    /// Whether element `k` of A (`index` 0) or B is negated.
    fn flips(&self, index: usize, k: usize) -> bool {
        let mask = if self.shape.layout == Layout::Mfma {
            0
        } else if k.is_multiple_of(2) {
            self.neg
        } else {
            self.neg_hi
        };
        mask >> index & 1 != 0
    }

    /// An element as f32.
    fn number(&self, element: Element, bits: u64) -> f32 {
        let bits = bits as u32;
        match element {
            Element::F16 => F16(bits).to_f32(),
            Element::Bf16 => f32::from_bits(bits << 16),
            Element::Fp8 => fp8::decode(if self.fnuz { fp8::E4M3_FNUZ } else { fp8::E4M3 }, bits as u8),
            Element::Bf8 => fp8::decode(if self.fnuz { fp8::E5M2_FNUZ } else { fp8::E5M2 }, bits as u8),
            Element::Xf32 => {
                // To 10 bits of mantissa, to nearest even; NaNs stay.
                let rounded = bits.wrapping_add(0xfff).wrapping_add(bits >> 13 & 1) & !0x1fff;
                f32::from_bits(if bits & 0x7f80_0000 == 0x7f80_0000 { bits } else { rounded })
            }
            _ => f32::from_bits(bits),
        }
    }

    /// The elements of A (`index` 0) or B in rows; the conversion is told their k.
    ///
    /// # Safety
    /// The instruction was lowered for this wave.
    unsafe fn inputs<T>(&self, wave: &mut Wave, index: usize, convert: impl Fn(usize, u64) -> T) -> Vec<T> {
        let shape = &self.shape;
        let (places, element) = if index == 0 { (&self.a, shape.a) } else { (&self.b, shape.b) };
        // SAFETY: a source of the instruction.
        let words = unsafe { fetch::<Base>(wave, self.src[index], index) };
        let element = |(at, place): (usize, &Place)| {
            let k = if index == 0 { at % shape.k } else { at / shape.n % shape.k };
            // SAFETY: lowering checked that the places lie within the operand.
            convert(k, unsafe { load(words, *place, element.bits(), shape.lanes) })
        };
        places.iter().enumerate().map(element).collect()
    }

    /// The elements of C in rows.
    ///
    /// # Safety
    /// The instruction was lowered for this wave.
    unsafe fn accumulators<T: Clone>(&self, wave: &mut Wave, convert: impl Fn(u64) -> T) -> Vec<T> {
        let bits = self.shape.d.bits();
        // SAFETY: lowering checked that the places lie within the operand; a constant's rows have 64 words.
        unsafe {
            let words = fetch::<Base>(wave, self.src[2], 2);
            if self.constant {
                return vec![convert(load(words, Place { word: 0, bit: 0 }, bits, 64)); self.d.len()];
            }
            self.d.iter().map(|place| convert(load(words, *place, bits, self.shape.lanes))).collect()
        }
    }

    /// Writes D.
    ///
    /// # Safety
    /// The instruction was lowered for this wave.
    unsafe fn scatter<T: Copy>(&self, wave: &mut Wave, values: &[T], convert: impl Fn(T) -> u64) {
        for (place, value) in self.d.iter().zip(values) {
            let bits = convert(*value);
            // SAFETY: lowering checked that the places lie within the destination.
            unsafe {
                let word = wave.rows.byte_add(self.dst as usize).add(place.word as usize);
                match self.shape.d.bits() {
                    16 => *word = *word & !(0xffff << place.bit) | (bits as u32 & 0xffff) << place.bit,
                    64 => {
                        *word = bits as u32;
                        *word.add(self.shape.lanes) = (bits >> 32) as u32;
                    }
                    _ => *word = bits as u32,
                }
            }
        }
    }
}

/// An element of an operand whose rows have `lanes` words.
///
/// # Safety
/// The place lies within the operand.
#[inline(always)]
unsafe fn load(words: *const u32, place: Place, bits: usize, lanes: usize) -> u64 {
    // SAFETY: the caller vouches for the place.
    unsafe {
        let low = *words.add(place.word as usize) as u64;
        if bits == 64 {
            return low | (*words.add(place.word as usize + lanes) as u64) << 32;
        }
        low >> place.bit & ((1 << bits) - 1)
    }
}

/// f32 accumulators, for every input narrower than f64.
///
/// # Safety
/// As for [`Handler`].
unsafe fn run_f32(wave: &mut Wave, inst: &Inst) {
    let Some(matrix) = Matrix::of(inst) else { return };
    let shape = &matrix.shape;
    // Only f32 inputs follow MODE's denormals; flushed inputs and results become zeros.
    let single = shape.a == Element::F32;
    let (flush_in, flush_out) = (single && wave.mode & 0x10 == 0, single && wave.mode & 0x20 == 0);
    let load = |index: usize, element: Element| {
        move |k: usize, bits: u64| {
            let value = matrix.number(element, bits);
            let value = if matrix.flips(index, k) { -value } else { value };
            if flush_in { flush(value) } else { value }
        }
    };
    // SAFETY: the caller vouches for the instruction; the multiplier was picked for the host.
    unsafe {
        let a = matrix.inputs(wave, 0, load(0, shape.a));
        let b = matrix.inputs(wave, 1, load(1, shape.b));
        let mut d = matrix.accumulators(wave, |bits| {
            let value = matrix.number(shape.d, bits);
            let value = if matrix.neg_hi & 4 != 0 { value.abs() } else { value };
            let value = if matrix.neg & 4 != 0 { -value } else { value };
            if flush_in { flush(value) } else { value }
        });
        (matrix.multiply.f32)(shape, &a, &b, &mut d);
        matrix.scatter(wave, &d, |value| {
            // A NaN's bits are not left to the host.
            let value = if value.is_nan() { f32::from_bits(0x7fc0_0000) } else { value };
            let value = if flush_out { flush(value) } else { value };
            match shape.d {
                Element::F16 => F16::from_f32(value).0 as u64,
                Element::Bf16 => bf16_from_f32(value) as u64,
                _ => value.to_bits() as u64,
            }
        });
    }
}

/// f64.
///
/// # Safety
/// As for [`Handler`].
unsafe fn run_f64(wave: &mut Wave, inst: &Inst) {
    let Some(matrix) = Matrix::of(inst) else { return };
    // The lane pattern's bits negate A, B and C.
    let sign = |index: u8| (matrix.blgp as u64 >> index & 1) << 63;
    // SAFETY: the caller vouches for the instruction; the multiplier was picked for the host.
    unsafe {
        let a = matrix.inputs(wave, 0, |_, bits| f64::from_bits(bits ^ sign(0)));
        let b = matrix.inputs(wave, 1, |_, bits| f64::from_bits(bits ^ sign(1)));
        let mut d = matrix.accumulators(wave, |bits| f64::from_bits(bits ^ sign(2)));
        (matrix.multiply.f64)(&matrix.shape, &a, &b, &mut d);
        matrix.scatter(wave, &d, |value| if value.is_nan() { 0x7ff8_0000_0000_0000 } else { value.to_bits() });
    }
}

/// i32 accumulators. Sums are kept whole, to saturate or wrap once.
///
/// # Safety
/// As for [`Handler`].
unsafe fn run_i32(wave: &mut Wave, inst: &Inst) {
    let Some(matrix) = Matrix::of(inst) else { return };
    let shape = &matrix.shape;
    let load = |index: usize, element: Element| {
        let signed = element == Element::I8 || matrix.neg >> index & 1 != 0;
        let shift = 64 - element.bits();
        move |_: usize, bits: u64| {
            let raised = bits << shift;
            if signed { raised as i64 >> shift } else { (raised >> shift) as i64 }
        }
    };
    // SAFETY: the caller vouches for the instruction; the multiplier was picked for the host.
    unsafe {
        let a = matrix.inputs(wave, 0, load(0, shape.a));
        let b = matrix.inputs(wave, 1, load(1, shape.b));
        let mut d = matrix.accumulators(wave, |bits| bits as u32 as i32 as i64);
        (matrix.multiply.i32)(shape, &a, &b, &mut d);
        matrix.scatter(wave, &d, |sum| {
            let sum = if matrix.clamp { sum.clamp(i32::MIN.into(), i32::MAX.into()) } else { sum };
            sum as u32 as u64
        });
    }
}

/// A type to accumulate in.
trait Accumulator: Copy {
    /// `self + a * b`, rounded once.
    fn add_product(self, a: Self, b: Self) -> Self;
}

impl Accumulator for f32 {
    #[inline(always)]
    fn add_product(self, a: f32, b: f32) -> f32 {
        a.mul_add(b, self)
    }
}

impl Accumulator for f64 {
    #[inline(always)]
    fn add_product(self, a: f64, b: f64) -> f64 {
        a.mul_add(b, self)
    }
}

impl Accumulator for i64 {
    #[inline(always)]
    fn add_product(self, a: i64, b: i64) -> i64 {
        self.wrapping_add(a.wrapping_mul(b))
    }
}

/// `d += a * b`, all matrices in rows.
#[inline(always)]
fn multiply<T: Accumulator>(shape: &Shape, a: &[T], b: &[T], d: &mut [T]) {
    let Shape { m, n, k, .. } = *shape;
    let blocks = a.chunks_exact(m * k).zip(b.chunks_exact(k * n)).zip(d.chunks_exact_mut(m * n));
    for ((a, b), d) in blocks {
        for (a, d) in a.chunks_exact(k).zip(d.chunks_exact_mut(n)) {
            for (a, b) in a.iter().zip(b.chunks_exact(n)) {
                for (d, b) in d.iter_mut().zip(b) {
                    *d = d.add_product(*a, *b);
                }
            }
        }
    }
}

/// # Safety
/// None is needed.
unsafe fn base<T: Accumulator>(shape: &Shape, a: &[T], b: &[T], d: &mut [T]) {
    multiply(shape, a, b, d);
}

/// # Safety
/// The host has the features.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2<T: Accumulator>(shape: &Shape, a: &[T], b: &[T], d: &mut [T]) {
    multiply(shape, a, b, d);
}

fn pick(level: HostLevel) -> Multiply {
    match level {
        #[cfg(target_arch = "x86_64")]
        HostLevel::Avx2 | HostLevel::Avx512 => Multiply { f32: avx2, f64: avx2, i32: avx2 },
        _ => Multiply { f32: base, f64: base, i32: base },
    }
}

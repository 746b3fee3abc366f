//! Formatted buffer loads and stores: conversion between registers and the element format of a typed instruction or of
//! the resource.
//!
//! Components out of range, and those a format lacks, read 0; the fourth reads 1 when the format lacks it. Values
//! stored saturate to what the component holds; normalised ones round to nearest.

use super::super::inst::{Handler, Inst};
use super::super::lower::{Lowering, Unsupported};
use super::super::valu::f16::F16;
use super::super::wave::{Row, Wave};
use super::element::Kind;
use super::pattern::ones;
use super::port::fault;
use super::{buffer, by_lanes};
use crate::isa::{Decoded, Family, Format};
use trace::Access;

/// Components of an instruction.
#[derive(Clone, Copy)]
pub struct Shape {
    /// 1 to 4.
    pub count: u8,
    /// 16 bits each, two a register.
    pub d16: bool,
    /// The one component is in the high half.
    pub high: bool,
}

const D16: u16 = 1 << 2;
const HIGH: u16 = 1 << 3;
const TYPED: u16 = 1 << 4;

/// The handler of a formatted load or store; `inst` gets the shape and format.
pub fn lower(
    decoded: &Decoded,
    lowering: &Lowering,
    inst: &mut Inst,
    load: bool,
    shape: Shape,
) -> Result<Handler, Unsupported> {
    inst.aux = (shape.count as u16 - 1) | if shape.d16 { D16 } else { 0 } | if shape.high { HIGH } else { 0 };
    if decoded.format == Format::Mtbuf {
        let number = decoded.mods.format;
        if Element::of(lowering.target.family(), number as u32).is_none() {
            return Err(Unsupported::Operand("the buffer format number is not one of this target"));
        }
        inst.aux |= TYPED | (number as u16) << 8;
    }
    Ok(if load { by_lanes!(lowering, load_format) } else { by_lanes!(lowering, store_format) })
}

/// How a component's bits are a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    Unorm,
    Snorm,
    Uscaled,
    Sscaled,
    Uint,
    Sint,
    Float,
}

impl Number {
    /// By NUM_FORMAT of GFX9.
    const ALL: [Option<Number>; 8] = [
        Some(Number::Unorm),
        Some(Number::Snorm),
        Some(Number::Uscaled),
        Some(Number::Sscaled),
        Some(Number::Uint),
        Some(Number::Sint),
        None,
        Some(Number::Float),
    ];

    fn is_integer(self) -> bool {
        matches!(self, Number::Uint | Number::Sint)
    }
}

/// Bits of the components by DATA_FORMAT of GFX9, x first, which lies lowest. The format's name gives them from the
/// highest down.
const WIDTHS: [&[u32]; 15] = [
    &[],
    &[8],
    &[16],
    &[8, 8],
    &[32],
    &[16, 16],
    &[11, 11, 10],
    &[10, 11, 11],
    &[2, 10, 10, 10],
    &[10, 10, 10, 2],
    &[8, 8, 8, 8],
    &[32, 32],
    &[16, 16, 16, 16],
    &[32, 32, 32],
    &[32, 32, 32, 32],
];

/// The number formats each data format has in the unified numbering of GFX10 (second) and GFX11 (third), which counts
/// them through from 1.
const UNIFIED: [(usize, &[usize], &[usize]); 14] = {
    const INTEGERS: &[usize] = &[0, 1, 2, 3, 4, 5];
    const ALL: &[usize] = &[0, 1, 2, 3, 4, 5, 7];
    const WORDS: &[usize] = &[4, 5, 7];
    [
        (1, INTEGERS, INTEGERS),
        (2, ALL, ALL),
        (3, INTEGERS, INTEGERS),
        (4, WORDS, WORDS),
        (5, ALL, ALL),
        (6, ALL, &[7]),
        (7, ALL, &[7]),
        (8, INTEGERS, &[0, 1, 4, 5]),
        (9, INTEGERS, INTEGERS),
        (10, INTEGERS, INTEGERS),
        (11, WORDS, WORDS),
        (12, ALL, ALL),
        (13, WORDS, WORDS),
        (14, WORDS, WORDS),
    ]
};

/// Format of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Element {
    widths: &'static [u32],
    number: Number,
}

impl Element {
    /// The format with a number: DATA_FORMAT | NUM_FORMAT << 4 on GFX9, the unified one later.
    fn of(family: Family, number: u32) -> Option<Element> {
        let (data, numeric) = if family == Family::Gfx9 {
            (number as usize & 15, number as usize >> 4 & 7)
        } else {
            let mut left = (number as usize).checked_sub(1)?;
            let row = UNIFIED.iter().find_map(|(data, gfx10, gfx11)| {
                let numbers = if family == Family::Gfx10 { gfx10 } else { gfx11 };
                if left < numbers.len() {
                    return Some((*data, numbers[left]));
                }
                left -= numbers.len();
                None
            });
            row?
        };
        let widths = *WIDTHS.get(data)?;
        if widths.is_empty() {
            return None;
        }
        Some(Element { widths, number: Number::ALL[numeric]? })
    }

    fn bytes(self) -> u32 {
        self.widths.iter().sum::<u32>() / 8
    }

    /// What component `index` of an element reads as: f32 bits or an integer.
    fn read(self, words: &[u32; 4], index: usize) -> u32 {
        let Some(&width) = self.widths.get(index) else {
            let one = if self.number.is_integer() { 1 } else { 1f32.to_bits() };
            return if index == 3 { one } else { 0 };
        };
        let bits = field(words, self.widths[..index].iter().sum(), width);
        let signed = ((bits << (32 - width)) as i32) >> (32 - width);
        match self.number {
            Number::Uint => bits,
            Number::Sint => signed as u32,
            Number::Uscaled => (bits as f32).to_bits(),
            Number::Sscaled => (signed as f32).to_bits(),
            Number::Unorm => (bits as f32 / low_mask(width) as f32).to_bits(),
            Number::Snorm => (signed as f32 / low_mask(width - 1) as f32).max(-1.0).to_bits(),
            Number::Float => match width {
                32 => bits,
                16 => F16(bits & 0xffff).to_f32().to_bits(),
                // 5 exponent bits as f16 has them, and no sign.
                _ => F16(bits << (15 - width) & 0xffff).to_f32().to_bits(),
            },
        }
    }

    /// The bits of component `index` that stand for a value: f32 bits or an integer.
    fn write(self, words: &mut [u32; 4], index: usize, value: u32) {
        let Some(&width) = self.widths.get(index) else { return };
        let float = f32::from_bits(value);
        let most = low_mask(width);
        let high = low_mask(width - 1) as i32;
        let bits = match self.number {
            Number::Uint => value.min(most),
            Number::Sint => (value as i32).clamp(-high - 1, high) as u32,
            // `as` saturates and turns NaN into 0.
            Number::Uscaled => (float as u32).min(most),
            Number::Sscaled => (float as i32).clamp(-high - 1, high) as u32,
            Number::Unorm => (float.clamp(0.0, 1.0) as f64 * most as f64).round_ties_even() as u32,
            Number::Snorm => (float.clamp(-1.0, 1.0) as f64 * high as f64).round_ties_even() as i32 as u32,
            Number::Float => match width {
                32 => value,
                16 => F16::from_f32(float).0,
                _ if float.is_nan() => most,
                // Negative values have no place.
                _ => F16::from_f32(float.max(0.0)).0 >> (15 - width),
            },
        };
        let at = self.widths[..index].iter().sum::<u32>();
        words[at as usize / 32] |= (bits & most) << (at % 32);
    }
}

fn low_mask(width: u32) -> u32 {
    u32::MAX >> (32 - width)
}

/// `width` bits at bit `at`; a component never crosses a dword.
fn field(words: &[u32; 4], at: u32, width: u32) -> u32 {
    words[at as usize / 32] >> (at % 32) & low_mask(width)
}

/// Format and selections of an instruction.
struct Typed {
    element: Element,
    /// For each component: 0 zero, 1 one, 4 to 7 x to w.
    select: [u32; 4],
    count: usize,
    d16: bool,
    high: bool,
}

impl Typed {
    /// None: the resource has no valid format, so loads read 0 and stores do nothing.
    fn of(inst: &Inst, word3: u32) -> Option<Typed> {
        let family = buffer::family(inst);
        let (number, select) = if inst.aux & TYPED != 0 {
            ((inst.aux >> 8) as u32, [4, 5, 6, 7])
        } else {
            let number = match family {
                Family::Gfx9 => word3 >> 15 & 15 | (word3 >> 12 & 7) << 4,
                Family::Gfx10 => word3 >> 12 & 0x7f,
                _ => word3 >> 12 & 0x3f,
            };
            (number, [word3 & 7, word3 >> 3 & 7, word3 >> 6 & 7, word3 >> 9 & 7])
        };
        Some(Typed {
            element: Element::of(family, number)?,
            select,
            count: usize::from(inst.aux & 3) + 1,
            d16: inst.aux & D16 != 0,
            high: inst.aux & HIGH != 0,
        })
    }
}

/// How an element of so many bytes is moved: in dwords, or at once.
fn pieces(bytes: u32) -> (Kind, u32) {
    match bytes {
        1 => (Kind::U8, 1),
        2 => (Kind::U16, 1),
        _ => (Kind::B32, bytes / 4),
    }
}

unsafe fn load_format<const L: usize>(wave: &mut Wave, inst: &Inst) {
    if wave.exec == 0 {
        return;
    }
    wave.port.begin();
    let count = usize::from(inst.aux & 3) + 1;
    let mut raw = [Row([0; 64]); 4];
    let mut outside = 0;
    // SAFETY: lowered for this wave; resolved in this instruction.
    let typed = unsafe {
        let resource = buffer::resource(wave, inst);
        let typed = Typed::of(inst, resource.word3);
        if let Some(typed) = &typed {
            let (piece, pieces) = pieces(typed.element.bytes());
            for (index, row) in raw.iter_mut().enumerate().take(pieces as usize) {
                match buffer::resolve::<L>(wave, inst, &resource, 4 * index as u32, piece.bytes(), Access::Read) {
                    Ok(lanes) => {
                        lanes.load(&mut wave.port, piece, row.0.as_mut_ptr());
                        outside |= lanes.outside();
                    }
                    Err(denied) => return fault(wave, inst, Access::Read, denied),
                }
            }
        }
        typed
    };
    ones(wave.exec, |lane| {
        let mut values = [0; 4];
        if let Some(typed) = &typed {
            let words = [raw[0].0[lane], raw[1].0[lane], raw[2].0[lane], raw[3].0[lane]];
            let one = if typed.element.number.is_integer() { 1 } else { 1f32.to_bits() };
            for (value, select) in values.iter_mut().zip(typed.select) {
                *value = match select {
                    1 => one,
                    4.. if outside >> lane & 1 == 0 => typed.element.read(&words, select as usize - 4),
                    _ => 0,
                };
                if typed.d16 && !typed.element.number.is_integer() {
                    *value = F16::from_f32(f32::from_bits(*value)).0;
                }
            }
        }
        // SAFETY: lowering checked the rows.
        unsafe {
            let dst = wave.rows.byte_add(inst.dst as usize).add(lane);
            for (index, value) in values.iter().enumerate().take(count) {
                if inst.aux & D16 != 0 {
                    let to = dst.add(index / 2 * L);
                    let high = index % 2 == 1 || inst.aux & HIGH != 0;
                    *to = if high { *to & 0xffff | value << 16 } else { *to & 0xffff_0000 | value & 0xffff };
                } else {
                    *dst.add(index * L) = *value;
                }
            }
        }
    });
}

unsafe fn store_format<const L: usize>(wave: &mut Wave, inst: &Inst) {
    if wave.exec == 0 {
        return;
    }
    wave.port.begin();
    // SAFETY: lowered for this wave; resolved in this instruction.
    unsafe {
        let resource = buffer::resource(wave, inst);
        let Some(typed) = Typed::of(inst, resource.word3) else { return };
        let (piece, pieces) = pieces(typed.element.bytes());
        let mut resolved = [const { None }; 4];
        for (index, slot) in resolved.iter_mut().enumerate().take(pieces as usize) {
            match buffer::resolve::<L>(wave, inst, &resource, 4 * index as u32, piece.bytes(), Access::Write) {
                Ok(lanes) => *slot = Some(lanes),
                Err(denied) => return fault(wave, inst, Access::Write, denied),
            }
        }
        let mut raw = [Row([0; 64]); 4];
        let data = wave.rows.byte_add(inst.src[1].value() as usize);
        ones(wave.exec, |lane| {
            let mut words = [0; 4];
            for index in 0..typed.count {
                let Some(component) = (typed.select[index] as usize).checked_sub(4) else { continue };
                let value = if typed.d16 {
                    let both = *data.add(lane + index / 2 * L);
                    let half = (if index % 2 == 1 || typed.high { both >> 16 } else { both }) as u16;
                    match typed.element.number {
                        Number::Uint => half as u32,
                        Number::Sint => half as i16 as u32,
                        _ => F16(half as u32).to_f32().to_bits(),
                    }
                } else {
                    *data.add(lane + index * L)
                };
                typed.element.write(&mut words, component, value);
            }
            for (row, word) in raw.iter_mut().zip(words) {
                row.0[lane] = word;
            }
        });
        for (lanes, row) in resolved.iter().flatten().zip(&raw) {
            lanes.store(&mut wave.port, piece, row.0.as_ptr());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_assembler() {
        let of = |family, number| Element::of(family, number).map(|element| (element.widths.len(), element.number));
        // LLVM's names: BUF_FMT_8_UINT 5, _32_FLOAT 22, _10_11_11_FLOAT 36 / 30, _32_32_32_32_FLOAT 77 / 63.
        assert_eq!(of(Family::Gfx10, 5), Some((1, Number::Uint)));
        assert_eq!(of(Family::Gfx10, 22), Some((1, Number::Float)));
        assert_eq!(of(Family::Gfx10, 36), Some((3, Number::Float)));
        assert_eq!(of(Family::Gfx11, 30), Some((3, Number::Float)));
        assert_eq!(of(Family::Gfx10, 77), Some((4, Number::Float)));
        assert_eq!(of(Family::Gfx11, 63), Some((4, Number::Float)));
        assert_eq!(of(Family::Gfx12, 63), Some((4, Number::Float)));
        assert_eq!(of(Family::Gfx10, 78), None);
        assert_eq!(of(Family::Gfx11, 64), None);
        assert_eq!(of(Family::Gfx11, 0), None);
        // GFX9: data format 4 (32), number format 7 (float).
        assert_eq!(of(Family::Gfx9, 4 | 7 << 4), Some((1, Number::Float)));
        assert_eq!(of(Family::Gfx9, 15), None);
    }

    #[test]
    fn components_convert_both_ways() {
        let element = |data: usize, number| Element { widths: WIDTHS[data], number };
        let read = |element: Element, word: u32, index| f32::from_bits(element.read(&[word, 0, 0, 0], index));
        let bytes = element(10, Number::Unorm);
        assert_eq!(read(bytes, 0xff00_0080, 3), 1.0);
        assert_eq!(read(bytes, 0xff00_0080, 0), 128.0 / 255.0);
        assert_eq!(read(element(10, Number::Snorm), 0x80, 0), -1.0);
        assert_eq!(read(element(10, Number::Snorm), 0x81, 0), -1.0);
        assert_eq!(element(10, Number::Sint).read(&[0x80, 0, 0, 0], 0), -128i32 as u32);
        assert_eq!(read(element(6, Number::Float), 0x3c0, 0), 1.0);
        assert_eq!(read(element(6, Number::Float), 0x1e0 << 22, 2), 1.0);
        // R10G10B10A2: x lowest, w on top.
        assert_eq!(read(element(9, Number::Unorm), 3 << 30, 3), 1.0);
        assert_eq!(read(element(9, Number::Unorm), 0x3ff, 0), 1.0);

        let write = |element: Element, index, value: u32| {
            let mut words = [0; 4];
            element.write(&mut words, index, value);
            words[0]
        };
        assert_eq!(write(bytes, 1, 0.5f32.to_bits()), 0x8000);
        assert_eq!(write(bytes, 1, 7f32.to_bits()), 0xff00);
        assert_eq!(write(bytes, 1, f32::NAN.to_bits()), 0);
        assert_eq!(write(element(10, Number::Sint), 0, -1000i32 as u32), 0x80);
        assert_eq!(write(element(10, Number::Snorm), 0, (-1f32).to_bits()), 0x81);
        assert_eq!(write(element(6, Number::Float), 0, 1f32.to_bits()), 0x3c0);
        assert_eq!(write(element(6, Number::Float), 0, (-1f32).to_bits()), 0);
        assert_eq!(write(element(5, Number::Float), 1, 1f32.to_bits()), 0x3c00_0000);
        // A format's missing components.
        assert_eq!(read(element(1, Number::Unorm), 0xff, 1), 0.0);
        assert_eq!(read(element(1, Number::Unorm), 0xff, 3), 1.0);
        assert_eq!(element(1, Number::Uint).read(&[0xff, 0, 0, 0], 3), 1);
    }
}

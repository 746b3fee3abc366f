//! What the names of matrix instructions say, and where elements lie in registers.
//!
//! Layouts as published in AMD's matrix instruction calculator.

use crate::isa::Family;

/// Type of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Element {
    F64,
    F32,
    /// f32 whose mantissa is rounded to 10 bits first.
    Xf32,
    F16,
    Bf16,
    Fp8,
    Bf8,
    I32,
    I8,
    /// Signed or unsigned by a modifier.
    Iu8,
    Iu4,
}

impl Element {
    /// Bits of an element in a register.
    pub fn bits(self) -> usize {
        match self {
            Element::F64 => 64,
            Element::F32 | Element::Xf32 | Element::I32 => 32,
            Element::F16 | Element::Bf16 => 16,
            Element::Fp8 | Element::Bf8 | Element::I8 | Element::Iu8 => 8,
            Element::Iu4 => 4,
        }
    }

    fn parse(name: &str) -> Option<Element> {
        Some(match name {
            "f64" => Element::F64,
            "f32" => Element::F32,
            "xf32" => Element::Xf32,
            "f16" => Element::F16,
            "bf16" | "bf16_1k" => Element::Bf16,
            "fp8" => Element::Fp8,
            "bf8" => Element::Bf8,
            "i32" => Element::I32,
            "i8" => Element::I8,
            "iu8" => Element::Iu8,
            "iu4" => Element::Iu4,
            _ => return None,
        })
    }
}

/// Which layout the registers have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// MFMA.
    Mfma,
    /// WMMA of GFX11: A and B are duplicated, rows of C and D alternate between the groups of 16 lanes.
    Wmma11,
    /// WMMA of GFX12.
    Wmma12,
}

/// `D = A * B + C` with A of `m` rows and `k` columns, B of `k` rows and `n` columns, `blocks` times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Layout.
    pub layout: Layout,
    /// Lanes of the wave.
    pub lanes: usize,
    /// Rows of A and D.
    pub m: usize,
    /// Columns of B and D.
    pub n: usize,
    /// Columns of A.
    pub k: usize,
    /// Independent products.
    pub blocks: usize,
    /// Elements of A.
    pub a: Element,
    /// Elements of B.
    pub b: Element,
    /// Elements of C and D.
    pub d: Element,
}

/// An element's place: register, lane, lowest bit.
pub type Place = (usize, usize, usize);

impl Shape {
    /// The shape of `v_mfma_*` or `v_wmma_*`, whose A operand takes `registers` registers; None for other names.
    pub fn parse(mnemonic: &str, family: Family, lanes: usize, registers: usize) -> Option<Shape> {
        let (rest, layout) = if let Some(rest) = mnemonic.strip_prefix("v_mfma_") {
            (rest, Layout::Mfma)
        } else {
            let layout = if family == Family::Gfx11 { Layout::Wmma11 } else { Layout::Wmma12 };
            (mnemonic.strip_prefix("v_wmma_")?, layout)
        };
        let (d, rest) = rest.split_once('_')?;
        let (m, rest) = rest.split_once('x')?;
        let (n, rest) = rest.split_once('x')?;
        let digits = rest.find(|character: char| !character.is_ascii_digit())?;
        let (k, rest) = rest.split_at(digits);
        let rest = rest.trim_start_matches('_');
        // The number of blocks, which the registers say as well.
        let rest = match rest.split_once("b_") {
            Some((blocks, rest)) if blocks.bytes().all(|byte| byte.is_ascii_digit()) => rest,
            _ => rest,
        };
        let (a, b) = match rest.split_once('_') {
            Some((a, b)) if b != "1k" => (a, b),
            _ => (rest, rest),
        };
        let mut shape = Shape {
            layout,
            lanes,
            m: m.parse().ok()?,
            n: n.parse().ok()?,
            k: k.parse().ok()?,
            blocks: 1,
            a: Element::parse(a)?,
            b: Element::parse(b)?,
            d: Element::parse(d)?,
        };
        if layout == Layout::Mfma {
            let elements = lanes * registers * 32 / shape.a.bits();
            shape.blocks = elements / (shape.m * shape.k);
        }
        (shape.blocks != 0 && shape.m != 0 && shape.n != 0).then_some(shape)
    }

    /// Where element `k` of row `i` of A, or of column `i` of B, lies; rows and columns are laid out alike. Where an
    /// element lies in several lanes the lowest is given.
    pub fn input(&self, element: Element, dimension: usize, block: usize, i: usize, k: usize) -> Place {
        let bits = element.bits();
        let place = |index: usize, lane: usize| (index * bits / 32, lane, index * bits % 32);
        match self.layout {
            Layout::Mfma if self.blocks == 4 && self.m == 4 => (0, i + 4 * block + 16 * k, 0),
            Layout::Mfma if self.blocks > 1 => place(k, i + dimension * block),
            Layout::Mfma => {
                let per_lane = dimension * self.k / self.lanes;
                place(k % per_lane, i + dimension * (k / per_lane))
            }
            Layout::Wmma11 => place(k, i),
            Layout::Wmma12 => {
                // A register at least: i4 leaves half of a wave64 unused.
                let per_lane = (16 * self.k / self.lanes).max(32 / bits);
                place(k % per_lane, i + 16 * (k / per_lane))
            }
        }
    }

    /// Where the element in row `i` and column `j` of C and D lies.
    pub fn output(&self, block: usize, i: usize, j: usize) -> Place {
        match self.layout {
            Layout::Mfma if self.d == Element::F64 && self.m == 4 => (0, j + 4 * block + 16 * i, 0),
            Layout::Mfma if self.d == Element::F64 => (2 * (i / 4), j + 16 * (i % 4), 0),
            Layout::Mfma if self.m == 32 => (16 * block + 4 * (i / 8) + i % 4, j + 32 * (i / 4 % 2), 0),
            Layout::Mfma if self.m == 16 => (4 * block + i % 4, j + 16 * (i / 4), 0),
            Layout::Mfma => (i, j + 4 * block, 0),
            Layout::Wmma11 => {
                let groups = self.lanes / 16;
                (i / groups, j + 16 * (i % groups), 0)
            }
            Layout::Wmma12 => {
                let bits = self.d.bits();
                let (index, group) = if self.lanes == 32 {
                    (i % 8, i / 8)
                } else {
                    // Groups of 16 lanes take rows 0, 8, 4, 12 onwards.
                    (i % 4, [0, 2, 1, 3][i / 4])
                };
                (index * bits / 32, j + 16 * group, index * bits % 32)
            }
        }
    }
}

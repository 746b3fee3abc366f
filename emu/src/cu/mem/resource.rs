//! Buffer resources (V#): four scalar registers that describe a buffer.
//!
//! | bits | field |
//! |---|---|
//! | 47:0 | base address |
//! | 61:48 | stride; with ADD_TID on GFX9 its bits 17:14 are in 114:111 |
//! | 63 (GFX9, GFX10), 63:62 (GFX11, GFX12) | swizzle: off, or on with elements of 4 (1), 8 (2), 16 bytes (3) |
//! | 95:64 | NUM_RECORDS: bytes or strides |
//! | 107:96 | selection of each component |
//! | 110:108, 114:111 (GFX9), 114:108 (GFX10), 113:108 (GFX11, GFX12) | format |
//! | 118:117 | index stride: 8, 16, 32, 64 |
//! | 119 | ADD_TID: the lane's number is added to the index |
//! | 125:124 (GFX10 on) | what out of range means |

use super::super::wave::Wave;
use crate::isa::Family;

/// When an access is out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Range {
    /// Its last byte lies beyond NUM_RECORDS bytes from the base.
    Raw,
    /// Its index is NUM_RECORDS or more, or its last byte lies beyond the stride.
    IndexAndOffset,
    /// Its index is NUM_RECORDS or more.
    Index,
    /// NUM_RECORDS is 0.
    Empty,
}

/// A buffer resource, as an instruction sees it.
#[derive(Clone, Copy, Debug)]
pub struct Resource {
    /// Base plus the instruction's scalar offset.
    pub base: u64,
    /// The scalar offset.
    soffset: u32,
    /// Bytes of a record.
    pub stride: u32,
    /// NUM_RECORDS.
    pub records: u32,
    /// Bytes of a swizzled element, None: linear.
    pub element: Option<u32>,
    /// Records whose elements alternate.
    pub index_stride: u32,
    /// The lane's number is added to the index.
    pub add_tid: bool,
    range: Range,
    /// The fourth register: selections and format.
    pub word3: u32,
}

impl Resource {
    /// Reads the registers from `first` on.
    #[inline(always)]
    pub fn read(wave: &Wave, family: Family, first: usize, soffset: u32, idxen: bool) -> Resource {
        let word = |index: usize| wave.scalar[first + index];
        let (word1, word3) = (word(1), word(3));
        let mut stride = word1 >> 16 & 0x3fff;
        let add_tid = word3 >> 23 & 1 != 0;
        let swizzle = if matches!(family, Family::Gfx9 | Family::Gfx10) { word1 >> 31 } else { word1 >> 30 };
        let range = if family == Family::Gfx9 {
            if add_tid {
                stride |= (word3 >> 15 & 15) << 14;
            }
            if idxen && stride != 0 { Range::Index } else { Range::Raw }
        } else {
            [Range::IndexAndOffset, Range::Index, Range::Empty, Range::Raw][(word3 >> 28 & 3) as usize]
        };
        Resource {
            base: (word(0) as u64 | (word1 as u64 & 0xffff) << 32).wrapping_add(soffset as u64),
            soffset,
            stride,
            records: word(2),
            element: (swizzle != 0).then(|| 2 << swizzle),
            index_stride: 8 << (word3 >> 21 & 3),
            add_tid,
            range,
            word3,
        }
    }

    /// Are `bytes` bytes at `offset` of record `index` in range?
    #[inline(always)]
    pub fn holds(&self, index: u32, offset: u32, bytes: u32) -> bool {
        let end = offset as u64 + bytes as u64;
        match self.range {
            Range::Raw => end + self.soffset as u64 <= self.records as u64,
            Range::IndexAndOffset => index < self.records && end <= self.stride as u64,
            Range::Index => index < self.records,
            Range::Empty => self.records != 0,
        }
    }

    /// Bounds are on offsets alone: what holds for the highest offset holds for all.
    #[inline(always)]
    pub fn by_offset(&self) -> bool {
        matches!(self.range, Range::Raw | Range::Empty)
    }

    /// GPU address of byte `offset` of record `index`.
    #[inline(always)]
    pub fn address(&self, index: u32, offset: u32) -> u64 {
        let (index, offset) = (index as u64, offset as u64);
        let at = match self.element {
            None => offset.wrapping_add(index.wrapping_mul(self.stride as u64)),
            Some(element) => {
                let (element, together) = (element as u64, self.index_stride as u64);
                let block = (index / together) * self.stride as u64 + offset / element * element;
                block.wrapping_mul(together).wrapping_add(index % together * element + offset % element)
            }
        };
        self.base.wrapping_add(at)
    }

    /// The layout of scratch: a dword of every lane, then the next.
    #[inline(always)]
    pub fn is_scratch(&self, lanes: usize) -> bool {
        self.add_tid && self.element == Some(4) && self.index_stride as usize == lanes
    }
}

//! Elements: what one lane moves between memory and its registers, and the loops over lanes that do it.

use super::super::wave::Row;
use super::access::{read_dwords, read8, read16, read32, read64, write_dwords, write8, write16, write32, write64};
use super::pattern::{ones, runs};

/// What one lane loads or stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Byte, zero-extended. Stores: bits 7:0.
    U8,
    /// Byte, sign-extended.
    I8,
    /// 16 bits, zero-extended. Stores: bits 15:0.
    U16,
    /// 16 bits, sign-extended.
    I16,
    /// Byte, zero-extended to 16 bits, into the low half; the other half stays.
    U8Lo,
    /// The same into the high half. Stores: bits 23:16.
    U8Hi,
    /// Byte, sign-extended to 16 bits, into the low half.
    I8Lo,
    /// The same into the high half.
    I8Hi,
    /// 16 bits into the low half.
    B16Lo,
    /// 16 bits into the high half. Stores: bits 31:16.
    B16Hi,
    /// A dword.
    B32,
    /// Two dwords.
    B64,
    /// Three.
    B96,
    /// Four.
    B128,
}

impl Kind {
    const ALL: [Kind; 14] = [
        Kind::U8,
        Kind::I8,
        Kind::U16,
        Kind::I16,
        Kind::U8Lo,
        Kind::U8Hi,
        Kind::I8Lo,
        Kind::I8Hi,
        Kind::B16Lo,
        Kind::B16Hi,
        Kind::B32,
        Kind::B64,
        Kind::B96,
        Kind::B128,
    ];

    /// The kind with this number; lowering put it into an instruction.
    #[inline(always)]
    pub fn from_number(number: u16) -> Kind {
        Kind::ALL[usize::from(number) % Kind::ALL.len()]
    }

    /// Bytes in memory.
    #[inline(always)]
    pub fn bytes(self) -> u32 {
        match self {
            Kind::U8 | Kind::I8 | Kind::U8Lo | Kind::U8Hi | Kind::I8Lo | Kind::I8Hi => 1,
            Kind::U16 | Kind::I16 | Kind::B16Lo | Kind::B16Hi => 2,
            Kind::B32 => 4,
            Kind::B64 => 8,
            Kind::B96 => 12,
            Kind::B128 => 16,
        }
    }

    /// Registers.
    #[inline(always)]
    pub fn dwords(self) -> u32 {
        self.bytes().div_ceil(4)
    }
}

/// A lane's register with a 16-bit half replaced.
#[inline(always)]
fn half(old: u32, high: bool, value: u16) -> u32 {
    if high { old & 0xffff | (value as u32) << 16 } else { old & 0xffff_0000 | value as u32 }
}

/// Loads lanes: dword `k` of lane `l` from `at(l) + k * stride` into `rows[k][l]`.
///
/// # Safety
/// Every address must be valid for reading the kind's bytes, `rows` for its dwords times `L` dwords.
#[inline(always)]
pub unsafe fn load_lanes<const L: usize>(
    kind: Kind,
    mask: u64,
    rows: *mut u32,
    stride: usize,
    at: impl Fn(usize) -> *const u8,
) {
    macro_rules! each {
        (|$old:ident, $at:ident| $value:expr) => {
            ones(mask, |lane| {
                let $at = at(lane);
                // SAFETY: the caller's promise.
                unsafe {
                    let to = rows.add(lane);
                    #[allow(unused_variables)]
                    let $old = *to;
                    *to = $value;
                }
            })
        };
    }
    match kind {
        Kind::U8 => each!(|old, at| read8(at) as u32),
        Kind::I8 => each!(|old, at| read8(at) as i8 as u32),
        Kind::U16 => each!(|old, at| read16(at) as u32),
        Kind::I16 => each!(|old, at| read16(at) as i16 as u32),
        Kind::U8Lo => each!(|old, at| half(old, false, read8(at) as u16)),
        Kind::U8Hi => each!(|old, at| half(old, true, read8(at) as u16)),
        Kind::I8Lo => each!(|old, at| half(old, false, read8(at) as i8 as u16)),
        Kind::I8Hi => each!(|old, at| half(old, true, read8(at) as i8 as u16)),
        Kind::B16Lo => each!(|old, at| half(old, false, read16(at))),
        Kind::B16Hi => each!(|old, at| half(old, true, read16(at))),
        Kind::B32 => each!(|old, at| read32(at)),
        Kind::B64 => ones(mask, |lane| {
            let at = at(lane);
            // SAFETY: the caller's promise.
            let value = unsafe {
                if stride == 4 && at.addr().is_multiple_of(8) {
                    read64(at)
                } else {
                    read32(at) as u64 | (read32(at.add(stride)) as u64) << 32
                }
            };
            // SAFETY: the caller's promise.
            unsafe {
                *rows.add(lane) = value as u32;
                *rows.add(lane + L) = (value >> 32) as u32;
            }
        }),
        Kind::B96 | Kind::B128 => {
            let dwords = kind.dwords() as usize;
            ones(mask, |lane| {
                let at = at(lane);
                let mut value = [0; 4];
                for (index, word) in value.iter_mut().enumerate().take(dwords) {
                    // SAFETY: the caller's promise.
                    *word = unsafe { read32(at.add(index * stride)) };
                }
                for (index, word) in value.iter().enumerate().take(dwords) {
                    // SAFETY: the caller's promise.
                    unsafe { *rows.add(lane + index * L) = *word };
                }
            });
        }
    }
}

/// Stores lanes: dword `k` of lane `l` from `rows[k][l]` to `at(l) + k * stride`.
///
/// # Safety
/// Every address must be valid for writing the kind's bytes, `rows` for reading its dwords times `L` dwords.
#[inline(always)]
pub unsafe fn store_lanes<const L: usize>(
    kind: Kind,
    mask: u64,
    rows: *const u32,
    stride: usize,
    at: impl Fn(usize) -> *mut u8,
) {
    macro_rules! each {
        (|$value:ident, $at:ident| $store:expr) => {
            ones(mask, |lane| {
                let $at = at(lane);
                // SAFETY: the caller's promise.
                unsafe {
                    let $value = *rows.add(lane);
                    $store
                }
            })
        };
    }
    match kind {
        Kind::U8 | Kind::I8 | Kind::U8Lo | Kind::I8Lo => each!(|value, at| write8(at, value as u8)),
        Kind::U16 | Kind::I16 | Kind::B16Lo => each!(|value, at| write16(at, value as u16)),
        Kind::U8Hi | Kind::I8Hi => each!(|value, at| write8(at, (value >> 16) as u8)),
        Kind::B16Hi => each!(|value, at| write16(at, (value >> 16) as u16)),
        Kind::B32 => each!(|value, at| write32(at, value)),
        Kind::B64 => ones(mask, |lane| {
            let at = at(lane);
            // SAFETY: the caller's promise.
            unsafe {
                let (low, high) = (*rows.add(lane), *rows.add(lane + L));
                if stride == 4 && at.addr().is_multiple_of(8) {
                    write64(at, low as u64 | (high as u64) << 32);
                } else {
                    write32(at, low);
                    write32(at.add(stride), high);
                }
            }
        }),
        Kind::B96 | Kind::B128 => ones(mask, |lane| {
            let at = at(lane);
            for index in 0..kind.dwords() as usize {
                // SAFETY: the caller's promise.
                unsafe { write32(at.add(index * stride), *rows.add(lane + index * L)) };
            }
        }),
    }
}

#[inline(never)]
unsafe fn load_side_by_side<const L: usize>(kind: Kind, mask: u64, rows: *mut u32, start: *const u8) {
    let bytes = kind.bytes() as usize;
    // SAFETY: the caller's promise.
    unsafe { load_lanes::<L>(kind, mask, rows, 4, |lane| start.wrapping_add(lane * bytes)) };
}

#[inline(never)]
unsafe fn store_side_by_side<const L: usize>(kind: Kind, mask: u64, rows: *const u32, start: *mut u8) {
    let bytes = kind.bytes() as usize;
    // SAFETY: the caller's promise.
    unsafe { store_lanes::<L>(kind, mask, rows, 4, |lane| start.wrapping_add(lane * bytes)) };
}

/// Loads lanes that lie side by side, lane 0 at `start`.
///
/// # Safety
/// The active lanes' elements must be valid for reading, `rows` for writing the kind's registers.
#[inline(always)]
pub unsafe fn load_step<const L: usize>(kind: Kind, mask: u64, rows: *mut u32, start: *const u8) {
    if kind == Kind::B32 {
        // SAFETY: the caller's promise; an inactive lane's address is not dereferenced.
        runs(mask, |lane, length| unsafe { read_dwords(start.wrapping_add(lane * 4), rows.add(lane), length) });
    } else {
        // SAFETY: the caller's promise.
        unsafe { load_side_by_side::<L>(kind, mask, rows, start) };
    }
}

/// Stores lanes that lie side by side, lane 0 at `start`.
///
/// # Safety
/// The active lanes' elements must be valid for writing, `rows` for reading the kind's registers.
#[inline(always)]
pub unsafe fn store_step<const L: usize>(kind: Kind, mask: u64, rows: *const u32, start: *mut u8) {
    if kind == Kind::B32 {
        // SAFETY: the caller's promise; an inactive lane's address is not dereferenced.
        runs(mask, |lane, length| unsafe { write_dwords(rows.add(lane), start.wrapping_add(lane * 4), length) });
    } else {
        // SAFETY: the caller's promise.
        unsafe { store_side_by_side::<L>(kind, mask, rows, start) };
    }
}

/// Loads one element into the only active lane.
#[inline(never)]
unsafe fn load_alone<const L: usize>(kind: Kind, exec: u64, rows: *mut u32, at: *const u8) {
    // SAFETY: the caller's promise.
    unsafe { load_lanes::<L>(kind, exec, rows, 4, |_| at) };
}

/// Loads one element into all active lanes. `exec` is not zero, and `mask` its row.
///
/// # Safety
/// The element must be valid for reading, `rows` for writing the kind's registers.
#[inline(always)]
pub unsafe fn load_same<const L: usize>(kind: Kind, exec: u64, mask: &Row, rows: *mut u32, at: *const u8) {
    if exec & (exec - 1) == 0 {
        // SAFETY: the caller's promise.
        return unsafe { load_alone::<L>(kind, exec, rows, at) };
    }
    let mut value = [0; 4];
    // SAFETY: the caller's promise.
    unsafe {
        load_one(kind, &mut value, at);
        let keep = match kind {
            Kind::U8Lo | Kind::I8Lo | Kind::B16Lo => 0xffff_0000,
            Kind::U8Hi | Kind::I8Hi | Kind::B16Hi => 0xffff,
            _ => 0,
        };
        for (index, word) in value.iter().enumerate().take(kind.dwords() as usize) {
            let row = rows.add(index * L);
            for lane in 0..L {
                let write = mask.0[lane] & !keep;
                *row.add(lane) = *row.add(lane) & !write | word & write;
            }
        }
    }
}

/// One element as the registers of one lane, merged halves over zero.
#[inline(never)]
unsafe fn load_one(kind: Kind, value: &mut [u32; 4], at: *const u8) {
    // SAFETY: the caller's promise; with one lane a row the rows are the array.
    unsafe { load_lanes::<1>(kind, 1, value.as_mut_ptr(), 4, |_| at) };
}

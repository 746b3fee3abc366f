//! Little-endian fields at offsets that come from a file.

use std::ops::Range;

/// The data end before a field does. `at` counts from the start of the container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} at {at:#x} has {need} bytes, {left} are left: the file is truncated")]
pub struct Cut {
    /// Which.
    pub field: &'static str,
    /// Where.
    pub at: u64,
    /// Its bytes.
    pub need: u64,
    /// Bytes up to the end.
    pub left: u64,
}

/// `len` bytes at `at`.
pub(super) fn take<'b>(bytes: &'b [u8], field: &'static str, at: u64, need: u64) -> Result<&'b [u8], Cut> {
    let range = range(at, need);
    range.and_then(|range| bytes.get(range)).ok_or(Cut {
        field,
        at,
        need,
        left: (bytes.len() as u64).saturating_sub(at),
    })
}

pub(super) fn range(at: u64, len: u64) -> Option<Range<usize>> {
    let end = at.checked_add(len)?;
    Some(usize::try_from(at).ok()?..usize::try_from(end).ok()?)
}

pub(super) fn array<const N: usize>(bytes: &[u8], field: &'static str, at: u64) -> Result<[u8; N], Cut> {
    let mut array = [0; N];
    array.copy_from_slice(take(bytes, field, at, N as u64)?);
    Ok(array)
}

pub(super) fn u16_at(bytes: &[u8], field: &'static str, at: u64) -> Result<u16, Cut> {
    array(bytes, field, at).map(u16::from_le_bytes)
}

pub(super) fn u32_at(bytes: &[u8], field: &'static str, at: u64) -> Result<u32, Cut> {
    array(bytes, field, at).map(u32::from_le_bytes)
}

pub(super) fn u64_at(bytes: &[u8], field: &'static str, at: u64) -> Result<u64, Cut> {
    array(bytes, field, at).map(u64::from_le_bytes)
}

/// The first two entries of a table whose ranges overlap. Empty ranges do not.
pub(super) fn overlap(ranges: impl Iterator<Item = Range<usize>>) -> Option<(usize, usize)> {
    let mut sorted: Vec<_> = ranges.enumerate().filter(|(_, range)| !range.is_empty()).collect();
    sorted.sort_by_key(|(_, range)| range.start);
    let pair = sorted.windows(2).find(|pair| pair[1].1.start < pair[0].1.end)?;
    Some((pair[0].0.min(pair[1].0), pair[0].0.max(pair[1].0)))
}

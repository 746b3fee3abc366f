//! How the lanes' addresses relate, found on the address rows without computing any lane's address.

use super::super::wave::Row;

/// How the active lanes' addresses relate.
pub enum Pattern<T> {
    /// Lane `l` at the value plus `step * l`.
    Step(T),
    /// All at the value.
    Same(T),
    /// Neither.
    Each,
}

/// The pattern of a row of 32-bit addresses, for elements of `step` bytes. `exec` is not zero.
///
/// # Safety
/// `row` must point to `L` dwords.
#[inline(always)]
pub unsafe fn pattern32<const L: usize>(row: *const u32, exec: u64, mask: &Row, step: u32) -> Pattern<u32> {
    let first = exec.trailing_zeros();
    let last = 63 - exec.leading_zeros();
    // SAFETY: `exec` has no bits at or above L.
    let base = unsafe { *row.add(first as usize) };
    let rest = exec & (exec - 1);
    if rest == 0 {
        return Pattern::Same(base);
    }
    let second = rest.trailing_zeros();
    // SAFETY: as above.
    let difference = unsafe { *row.add(second as usize) }.wrapping_sub(base);
    let step = if difference == 0 {
        0
    } else if difference == step * (second - first) && base.checked_add(step * (last - first)).is_some() {
        step
    } else {
        return Pattern::Each;
    };
    let start = base.wrapping_sub(step * first);
    let mut wrong = 0;
    for lane in 0..L {
        // SAFETY: the row has L dwords.
        let value = unsafe { *row.add(lane) };
        wrong |= (value ^ start.wrapping_add(step.wrapping_mul(lane as u32))) & mask.0[lane];
    }
    match (wrong, step) {
        (0, 0) => Pattern::Same(start),
        (0, _) => Pattern::Step(start),
        _ => Pattern::Each,
    }
}

/// The pattern of two rows that hold the halves of 64-bit addresses.
///
/// # Safety
/// `low` and `high` must point to `L` dwords each.
#[inline(always)]
pub unsafe fn pattern64<const L: usize>(
    low: *const u32,
    high: *const u32,
    exec: u64,
    mask: &Row,
    step: u32,
) -> Pattern<u64> {
    let first = exec.trailing_zeros() as usize;
    // SAFETY: `exec` has no bits at or above L.
    let top = unsafe { *high.add(first) };
    if exec & (exec - 1) == 0 {
        // SAFETY: as above.
        return Pattern::Same(unsafe { *low.add(first) } as u64 | (top as u64) << 32);
    }
    let mut wrong = 0;
    for lane in 0..L {
        // SAFETY: the row has L dwords.
        wrong |= (unsafe { *high.add(lane) } ^ top) & mask.0[lane];
    }
    if wrong != 0 {
        return Pattern::Each;
    }
    // SAFETY: the caller's promise.
    widen(unsafe { pattern32::<L>(low, exec, mask, step) }, top, exec, step)
}

/// A pattern of low halves as one of 64-bit addresses with the high half `top`. The low halves of active lanes do not
/// wrap from one lane to the next, but the value for lane 0 may lie below zero when lane 0 is off.
#[inline(always)]
pub fn widen(pattern: Pattern<u32>, top: u32, exec: u64, step: u32) -> Pattern<u64> {
    let top = (top as u64) << 32;
    match pattern {
        Pattern::Step(start) => {
            let before = step * exec.trailing_zeros();
            let first = start.wrapping_add(before) as u64 | top;
            Pattern::Step(first.wrapping_sub(before as u64))
        }
        Pattern::Same(low) => Pattern::Same(low as u64 | top),
        Pattern::Each => Pattern::Each,
    }
}

/// Calls `run` with the start and length of each run of ones.
#[inline(always)]
pub fn runs(mut mask: u64, mut run: impl FnMut(usize, usize)) {
    while mask != 0 {
        let start = mask.trailing_zeros();
        let length = (!(mask >> start)).trailing_zeros();
        run(start as usize, length as usize);
        let end = start + length;
        mask = if end >= 64 { 0 } else { mask & (u64::MAX << end) };
    }
}

/// Calls `each` with the number of each one.
#[inline(always)]
pub fn ones(mut mask: u64, mut each: impl FnMut(usize)) {
    while mask != 0 {
        each(mask.trailing_zeros() as usize);
        mask &= mask - 1;
    }
}

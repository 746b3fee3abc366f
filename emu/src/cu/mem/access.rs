//! Accesses to host memory that host threads may touch at the same time.
//!
//! Each naturally aligned element of up to 8 bytes is one relaxed atomic access, so that a host thread which polls or
//! writes the same word never sees a half of it, and the compiler neither merges nor repeats accesses. Elements that
//! are not aligned go byte by byte. Copies of rows use 16-byte moves: on x86 an aligned word inside one is not torn.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

/// # Safety
/// `at` must be valid for reading one byte.
#[inline(always)]
pub unsafe fn read8(at: *const u8) -> u8 {
    // SAFETY: the caller's promise; a byte is always aligned.
    unsafe { AtomicU8::from_ptr(at.cast_mut()) }.load(Relaxed)
}

/// # Safety
/// `at` must be valid for writing one byte.
#[inline(always)]
pub unsafe fn write8(at: *mut u8, value: u8) {
    // SAFETY: the caller's promise; a byte is always aligned.
    unsafe { AtomicU8::from_ptr(at) }.store(value, Relaxed);
}

macro_rules! element {
    ($read:ident, $write:ident, $int:ty, $atomic:ty) => {
        /// # Safety
        /// `at` must be valid for reading an element; any alignment.
        #[inline(always)]
        pub unsafe fn $read(at: *const u8) -> $int {
            if at.addr().is_multiple_of(size_of::<$int>()) {
                // SAFETY: valid by the caller's promise, aligned by the test.
                unsafe { <$atomic>::from_ptr(at.cast_mut().cast()) }.load(Relaxed)
            } else {
                let mut bytes = [0; size_of::<$int>()];
                for (index, byte) in bytes.iter_mut().enumerate() {
                    // SAFETY: inside the element.
                    *byte = unsafe { read8(at.add(index)) };
                }
                <$int>::from_le_bytes(bytes)
            }
        }

        /// # Safety
        /// `at` must be valid for writing an element; any alignment.
        #[inline(always)]
        pub unsafe fn $write(at: *mut u8, value: $int) {
            if at.addr().is_multiple_of(size_of::<$int>()) {
                // SAFETY: valid by the caller's promise, aligned by the test.
                unsafe { <$atomic>::from_ptr(at.cast()) }.store(value, Relaxed);
            } else {
                for (index, byte) in value.to_le_bytes().into_iter().enumerate() {
                    // SAFETY: inside the element.
                    unsafe { write8(at.add(index), byte) };
                }
            }
        }
    };
}

element!(read16, write16, u16, AtomicU16);
element!(read32, write32, u32, AtomicU32);
element!(read64, write64, u64, AtomicU64);

/// Copies `count` dwords of shared memory into registers.
///
/// # Safety
/// `from` must be valid for reading and `to` for writing them; only `to` must be aligned, to 4 bytes.
#[inline(always)]
pub unsafe fn read_dwords(mut from: *const u8, mut to: *mut u32, mut count: usize) {
    #[cfg(target_arch = "x86_64")]
    while count >= 4 {
        // SAFETY: 16 bytes remain on both sides; SSE2 is part of x86-64.
        unsafe {
            std::arch::asm!("movdqu {v}, [{from}]", "movdqu [{to}], {v}", v = out(xmm_reg) _, from = in(reg) from,
                to = in(reg) to, options(nostack, preserves_flags));
            from = from.add(16);
            to = to.add(4);
        }
        count -= 4;
    }
    while count > 0 {
        // SAFETY: at least one dword remains on both sides.
        unsafe {
            to.write(read32(from));
            from = from.add(4);
            to = to.add(1);
        }
        count -= 1;
    }
}

/// Copies `count` dwords of registers into shared memory.
///
/// # Safety
/// `from` must be valid for reading and `to` for writing them; only `from` must be aligned, to 4 bytes.
#[inline(always)]
pub unsafe fn write_dwords(mut from: *const u32, mut to: *mut u8, mut count: usize) {
    #[cfg(target_arch = "x86_64")]
    while count >= 4 {
        // SAFETY: 16 bytes remain on both sides; SSE2 is part of x86-64.
        unsafe {
            std::arch::asm!("movdqu {v}, [{from}]", "movdqu [{to}], {v}", v = out(xmm_reg) _, from = in(reg) from,
                to = in(reg) to, options(nostack, preserves_flags));
            from = from.add(4);
            to = to.add(16);
        }
        count -= 4;
    }
    while count > 0 {
        // SAFETY: at least one dword remains on both sides.
        unsafe {
            write32(to, from.read());
            from = from.add(1);
            to = to.add(4);
        }
        count -= 1;
    }
}

//! How the packet processor touches memory: through the page tables of its queue, aligned, as a device does.

use crate::memory::AddressSpace;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU16, AtomicU32, AtomicU64, Ordering};
use trace::{Access, FaultKind};

/// An access that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusFault {
    /// Address.
    pub va: u64,
    /// How it was touched.
    pub access: Access,
    /// Why it failed.
    pub why: Why,
    /// What was looked for there.
    pub what: &'static str,
}

/// Why an access failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// No page, or the mapping ends inside the value.
    NotPresent,
    /// No write right.
    ReadOnly,
    /// Not a multiple of the value's size.
    Misaligned,
}

impl BusFault {
    /// The kind of fault it is.
    pub fn kind(&self) -> FaultKind {
        match self.why {
            Why::NotPresent => FaultKind::NotPresent,
            Why::ReadOnly => FaultKind::ReadOnly,
            Why::Misaligned => FaultKind::Aperture,
        }
    }
}

/// Access to a queue's memory.
pub struct Bus {
    space: Arc<AddressSpace>,
}

macro_rules! accessors {
    ($($load:ident $($store:ident)? => $int:ty, $atomic:ty;)*) => {$(
        pub fn $load(&self, va: u64, what: &'static str) -> Result<$int, BusFault> {
            self.at::<$int, _>(va, Access::Read, what, |at| {
                // SAFETY: `at` hands out a pointer to an aligned, mapped value that client and GPU share.
                unsafe { <$atomic>::from_ptr(at) }.load(Ordering::Acquire)
            })
        }

        $(pub fn $store(&self, va: u64, value: $int, what: &'static str) -> Result<(), BusFault> {
            self.at::<$int, _>(va, Access::Write, what, |at| {
                // SAFETY: as for loading.
                unsafe { <$atomic>::from_ptr(at) }.store(value, Ordering::Release);
            })
        })?
    )*};
}

impl Bus {
    pub fn new(space: Arc<AddressSpace>) -> Bus {
        Bus { space }
    }

    /// Translates the address of a `T` and runs `access` on its host address, while the memory is held.
    fn at<T, R>(
        &self,
        va: u64,
        access: Access,
        what: &'static str,
        run: impl FnOnce(*mut T) -> R,
    ) -> Result<R, BusFault> {
        let fault = |why| BusFault { va, access, why, what };
        if !va.is_multiple_of(size_of::<T>() as u64) {
            return Err(fault(Why::Misaligned));
        }
        let span = self.space.lookup(va).ok_or(fault(Why::NotPresent))?;
        if span.end - va < size_of::<T>() as u64 {
            return Err(fault(Why::NotPresent));
        }
        if access != Access::Read && !span.rights.write {
            return Err(fault(Why::ReadOnly));
        }
        // SAFETY: the value lies inside the span, whose host memory `span.backing` keeps until `run` is done.
        Ok(run(unsafe { span.host.add((va - span.start) as usize) }.cast()))
    }

    accessors! {
        load_u16 store_u16 => u16, AtomicU16;
        load_u32 => u32, AtomicU32;
        load_u64 store_u64 => u64, AtomicU64;
        load_i64 => i64, AtomicI64;
    }

    /// Adds to a signal's value and returns the one before.
    pub fn add_i64(&self, va: u64, value: i64, what: &'static str) -> Result<i64, BusFault> {
        self.at::<i64, _>(va, Access::Atomic, what, |at| {
            // SAFETY: as for loading.
            unsafe { AtomicI64::from_ptr(at) }.fetch_add(value, Ordering::SeqCst)
        })
    }

    /// Sets bits of a signal's value and returns the one before.
    pub fn or_i64(&self, va: u64, value: i64, what: &'static str) -> Result<i64, BusFault> {
        self.at::<i64, _>(va, Access::Atomic, what, |at| {
            // SAFETY: as for loading.
            unsafe { AtomicI64::from_ptr(at) }.fetch_or(value, Ordering::SeqCst)
        })
    }

    /// A packet.
    pub fn packet(&self, va: u64) -> Result<[u8; 64], BusFault> {
        let mut bytes = [0; 64];
        for (index, chunk) in bytes.chunks_exact_mut(8).enumerate() {
            let word = self.load_u64(va.wrapping_add(8 * index as u64), "AQL packet")?;
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        Ok(bytes)
    }
}

//! Loads and stores of the lanes of a wave, once it is known where each lane's data lies.
//!
//! Three shapes: all lanes side by side (a copy), all lanes at one address (one access), and anything else. The first
//! two are tried on the address rows ([`super::pattern`]); the last works on [`Lanes`], which checks every lane before
//! the first access.

use super::super::wave::{Row, Wave};
use super::access::{read8, write8};
use super::element::{Kind, load_lanes, load_same, load_step, store_lanes, store_step};
use super::pattern::{Pattern, ones};
use super::port::{Denied, MemoryPort, Window};
use std::mem::MaybeUninit;
use trace::{Access, FaultKind};

/// The window that holds every active lane's `bytes` bytes and grants the access, when there is one.
#[inline(always)]
pub fn one_window<const L: usize>(
    port: &mut MemoryPort,
    exec: u64,
    mask: &Row,
    bytes: u32,
    write: bool,
    address: impl Fn(usize) -> u64,
) -> Option<Window> {
    let window = port.window(address(exec.trailing_zeros() as usize))?;
    let limit = window.len.checked_sub(bytes as u64)?;
    let mut outside = 0;
    for lane in 0..L {
        outside |= (address(lane).wrapping_sub(window.start) > limit) as u32 & mask.0[lane];
    }
    (outside == 0 && (window.write || !write)).then_some(window)
}

/// Where bytes of a lane lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// At its address.
    Linear,
    /// In LDS, the address is an offset.
    Lds,
    /// In scratch: the address is an offset into the lane's private segment. Dwords of the lanes alternate, so byte `a`
    /// of lane `l` lies at `base + a / 4 * 4 * lanes + 4 * l + a % 4`.
    Scratch {
        /// GPU address of the wave's scratch.
        base: u64,
        /// Accesses outside of the wave's scratch are denied.
        bounded: bool,
    },
}

/// GPU address of byte `at` of a lane's private segment.
#[inline(always)]
pub fn swizzle<const L: usize>(base: u64, at: u64, lane: usize) -> u64 {
    base.wrapping_add((at / 4).wrapping_mul(4 * L as u64)).wrapping_add(4 * lane as u64 + at % 4)
}

/// Lanes at arbitrary addresses, checked.
pub struct Lanes<const L: usize> {
    addresses: [u64; L],
    host: [MaybeUninit<*mut u8>; L],
    /// Lanes whose `host` holds the host address.
    direct: u64,
    /// Lanes whose bytes lie in more than one piece.
    split: u64,
    /// Lanes out of range of a buffer or LDS: read 0, write nothing.
    zero: u64,
    layout: Layout,
}

impl<const L: usize> Lanes<L> {
    /// Checks `bytes` bytes of each lane in `mask`, and finds their host addresses. `address` is called for active lanes
    /// only. `zero`: lanes found out of range already. An atomic's element must be naturally aligned.
    ///
    /// # Errors
    /// The lanes that may not.
    #[inline(always)]
    pub fn resolve(
        port: &mut MemoryPort,
        layout: Layout,
        mask: u64,
        zero: u64,
        bytes: u32,
        access: Access,
        address: impl Fn(usize) -> u64,
    ) -> Result<Lanes<L>, Denied> {
        let mut lanes =
            Lanes { addresses: [0; L], host: [MaybeUninit::uninit(); L], direct: 0, split: 0, zero, layout };
        ones(mask & !zero, |lane| lanes.addresses[lane] = address(lane));
        let mask = mask & !zero;
        let write = access != Access::Read;
        if access == Access::Atomic {
            let misaligned = lanes.filter(mask, |address| !address.is_multiple_of(bytes as u64));
            if misaligned != 0 {
                let va = lanes.first_va(misaligned, port);
                return Err(Denied {
                    kind: FaultKind::Aperture,
                    va,
                    lanes: misaligned,
                    detail: Some(format!("an atomic of {bytes} bytes needs an address that is a multiple of {bytes}")),
                });
            }
        }
        match layout {
            Layout::Linear => lanes.resolve_linear(port, mask, bytes, write)?,
            Layout::Lds => lanes.resolve_lds(port, mask, bytes),
            Layout::Scratch { base, bounded } => lanes.resolve_scratch(port, base, bounded, mask, bytes, write)?,
        }
        Ok(lanes)
    }

    fn filter(&self, mask: u64, test: impl Fn(u64) -> bool) -> u64 {
        let mut found = 0;
        ones(mask, |lane| found |= (test(self.addresses[lane]) as u64) << lane);
        found
    }

    fn first_va(&self, mask: u64, port: &MemoryPort) -> u64 {
        let address = self.addresses[mask.trailing_zeros() as usize % L];
        match self.layout {
            Layout::Linear => address,
            Layout::Lds => (port.shared_aperture as u64) << 32 | address,
            Layout::Scratch { .. } => (port.private_aperture as u64) << 32 | address & 0xffff_ffff,
        }
    }

    #[inline(always)]
    fn resolve_linear(&mut self, port: &mut MemoryPort, mask: u64, bytes: u32, write: bool) -> Result<(), Denied> {
        let mut window = Window::EMPTY;
        let mut denied: Option<Denied> = None;
        ones(mask, |lane| {
            let va = self.addresses[lane];
            if let Some(host) = window.at(va, bytes as u64)
                && (window.write || !write)
            {
                self.host[lane] = MaybeUninit::new(host);
                self.direct |= 1 << lane;
                return;
            }
            if let Some(other) = port.window(va) {
                window = other;
            }
            if let Some(host) = port.host(va, bytes as u64, write) {
                self.host[lane] = MaybeUninit::new(host);
                self.direct |= 1 << lane;
            } else if let Some((va, kind)) = port.denied(va, bytes as u64, write) {
                denied.get_or_insert(Denied { kind, va, lanes: 0, detail: None }).lanes |= 1 << lane;
            } else {
                self.split |= 1 << lane;
            }
        });
        denied.map_or(Ok(()), Err)
    }

    fn resolve_lds(&mut self, port: &MemoryPort, mask: u64, bytes: u32) {
        ones(mask, |lane| {
            let offset = self.addresses[lane];
            if offset + bytes as u64 <= port.lds_size as u64 {
                self.host[lane] = MaybeUninit::new(port.lds.wrapping_add(offset as usize));
                self.direct |= 1 << lane;
            } else {
                self.zero |= 1 << lane;
            }
        });
    }

    fn resolve_scratch(
        &mut self,
        port: &mut MemoryPort,
        base: u64,
        bounded: bool,
        mask: u64,
        bytes: u32,
        write: bool,
    ) -> Result<(), Denied> {
        let mut outside = 0u64;
        let mut denied: Option<Denied> = None;
        ones(mask, |lane| {
            let at = self.addresses[lane];
            let first = swizzle::<L>(base, at, lane);
            let last = swizzle::<L>(base, at + bytes as u64 - 1, lane);
            let inside = |va: u64| !bounded || va.wrapping_sub(port.scratch_base) < port.scratch_size;
            if at + bytes as u64 > 1 << 32 || !inside(first) || !inside(last) {
                outside |= 1 << lane;
                return;
            }
            let one_piece = if bytes >= 4 { at.is_multiple_of(4) } else { at % 4 + bytes as u64 <= 4 };
            if one_piece && let Some(host) = port.host(first, last - first + 1, write) {
                self.host[lane] = MaybeUninit::new(host);
                self.direct |= 1 << lane;
                return;
            }
            for byte in 0..bytes as u64 {
                if let Some((va, kind)) = port.denied(swizzle::<L>(base, at + byte, lane), 1, write) {
                    denied.get_or_insert(Denied { kind, va, lanes: 0, detail: None }).lanes |= 1 << lane;
                    return;
                }
            }
            self.split |= 1 << lane;
        });
        if outside != 0 {
            let offset = self.addresses[outside.trailing_zeros() as usize % L];
            let detail = if port.scratch_size == 0 {
                format!("private offset {offset:#x}, but the dispatch has no scratch")
            } else {
                let each = port.scratch_size / L as u64;
                format!("private offset {offset:#x} is outside the {each} bytes of scratch a lane has")
            };
            let va = self.first_va(outside, port);
            return Err(Denied { kind: FaultKind::Aperture, va, lanes: outside, detail: Some(detail) });
        }
        denied.map_or(Ok(()), Err)
    }

    /// GPU address or LDS offset of a byte of a lane.
    fn byte_address(&self, lane: usize, byte: usize) -> u64 {
        let address = self.addresses[lane].wrapping_add(byte as u64);
        match self.layout {
            Layout::Linear | Layout::Lds => address,
            Layout::Scratch { base, .. } => swizzle::<L>(base, address, lane),
        }
    }

    /// Distance of a lane's dwords in host memory.
    #[inline(always)]
    pub fn stride(&self) -> usize {
        match self.layout {
            Layout::Linear | Layout::Lds => 4,
            Layout::Scratch { .. } => 4 * L,
        }
    }

    /// The host address of a lane in `direct`, and the distance of its dwords.
    ///
    /// # Safety
    /// `lane` must be in `direct`.
    #[inline(always)]
    unsafe fn host(&self, lane: usize) -> *mut u8 {
        // SAFETY: set for every lane in `direct`.
        unsafe { self.host[lane].assume_init() }
    }

    /// Loads into `rows`.
    ///
    /// # Safety
    /// The lanes must have been resolved for reading the kind's bytes in this instruction; `rows` must be valid for the
    /// kind's registers.
    pub unsafe fn load(&self, port: &mut MemoryPort, kind: Kind, rows: *mut u32) {
        // SAFETY: resolved, and the caller's promise.
        unsafe {
            load_lanes::<L>(kind, self.direct, rows, self.stride(), |lane| self.host(lane));
            if self.zero != 0 {
                let zeros = [0u8; 16];
                load_lanes::<L>(kind, self.zero, rows, 4, |_| zeros.as_ptr());
            }
        }
        ones(self.split, |lane| {
            let mut bytes = [0u8; 16];
            for (index, byte) in bytes.iter_mut().enumerate().take(kind.bytes() as usize) {
                if let Some(host) = port.host(self.byte_address(lane, index), 1, false) {
                    // SAFETY: the window is valid for it.
                    *byte = unsafe { read8(host) };
                }
            }
            // SAFETY: the caller's promise.
            unsafe { load_lanes::<L>(kind, 1 << lane, rows, 4, |_| bytes.as_ptr()) };
        });
    }

    /// Stores from `rows`.
    ///
    /// # Safety
    /// The lanes must have been resolved for writing the kind's bytes in this instruction; `rows` must be valid for the
    /// kind's registers.
    pub unsafe fn store(&self, port: &mut MemoryPort, kind: Kind, rows: *const u32) {
        // SAFETY: resolved, and the caller's promise.
        unsafe { store_lanes::<L>(kind, self.direct, rows, self.stride(), |lane| self.host(lane)) };
        ones(self.split, |lane| {
            let mut bytes = [0u8; 16];
            let start = bytes.as_mut_ptr();
            // SAFETY: the caller's promise; the array holds the largest kind.
            unsafe { store_lanes::<L>(kind, 1 << lane, rows, 4, |_| start) };
            for (index, byte) in bytes.iter().enumerate().take(kind.bytes() as usize) {
                if let Some(host) = port.host(self.byte_address(lane, index), 1, true) {
                    // SAFETY: the window is valid for it.
                    unsafe { write8(host, *byte) };
                }
            }
        });
    }

    /// Lanes of elements that were resolved for an atomic, which are never split over mappings.
    pub fn mask(&self) -> u64 {
        self.direct | self.zero
    }

    /// Host address of a lane, None where it reads 0 and writes nothing.
    #[inline(always)]
    pub fn at(&self, lane: usize) -> Option<*mut u8> {
        // SAFETY: the lane is in `direct`.
        if self.direct >> lane & 1 != 0 { Some(unsafe { self.host(lane) }) } else { None }
    }

    /// Lanes that read 0 and write nothing.
    pub fn outside(&self) -> u64 {
        self.zero
    }
}

/// Loads side by side or uniform lanes at GPU addresses. False when one mapping does not hold them all: the lanes must
/// be resolved one by one.
///
/// # Safety
/// `dst` must have been lowered for this wave and kind, `exec` be its EXEC and not zero.
#[inline(always)]
pub unsafe fn load_pattern<const L: usize>(wave: &mut Wave, kind: Kind, dst: u32, pattern: &Pattern<u64>) -> bool {
    let exec = wave.exec;
    // SAFETY: lowering checked the rows; the port checked the memory.
    unsafe {
        let rows = wave.rows.byte_add(dst as usize);
        match *pattern {
            Pattern::Step(start) => {
                let Some(host) = span_of(&mut wave.port, kind, exec, start, false) else { return false };
                load_step::<L>(kind, exec, rows, host);
            }
            Pattern::Same(va) => {
                let Some(host) = wave.port.host(va, kind.bytes() as u64, false) else { return false };
                load_same::<L>(kind, wave.exec, &wave.exec_row, rows, host);
            }
            Pattern::Each => return false,
        }
    }
    true
}

/// Stores side by side or uniform lanes at GPU addresses; of lanes at one address the highest wins. False as
/// [`load_pattern`].
///
/// # Safety
/// As [`load_pattern`], for `src`.
#[inline(always)]
pub unsafe fn store_pattern<const L: usize>(wave: &mut Wave, kind: Kind, src: u32, pattern: &Pattern<u64>) -> bool {
    let exec = wave.exec;
    // SAFETY: lowering checked the rows; the port checked the memory.
    unsafe {
        let rows = wave.rows.byte_add(src as usize);
        match *pattern {
            Pattern::Step(start) => {
                let Some(host) = span_of(&mut wave.port, kind, exec, start, true) else { return false };
                store_step::<L>(kind, exec, rows, host);
            }
            Pattern::Same(va) => {
                let Some(host) = wave.port.host(va, kind.bytes() as u64, true) else { return false };
                let last = 63 - exec.leading_zeros() as usize;
                store_step::<L>(kind, 1 << last, rows, host.wrapping_sub(last * kind.bytes() as usize));
            }
            Pattern::Each => return false,
        }
    }
    true
}

/// Host address of lane 0 (which need not be valid when the lane is off) of side by side lanes.
#[inline(always)]
fn span_of(port: &mut MemoryPort, kind: Kind, exec: u64, start: u64, write: bool) -> Option<*mut u8> {
    let bytes = kind.bytes() as u64;
    let first = exec.trailing_zeros() as u64;
    let last = 63 - exec.leading_zeros() as u64;
    let host = port.host(start.wrapping_add(first * bytes), (last - first + 1) * bytes, write)?;
    Some(host.wrapping_sub((first * bytes) as usize))
}

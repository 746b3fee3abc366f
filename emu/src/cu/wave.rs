//! The state of one wave.

use super::inst::Src;

/// Numbers of scalar registers in [`Wave::scalar`].
///
/// s0..s105 keep their numbers (on GFX9 FLAT_SCRATCH is s102:s103 and XNACK_MASK s104:s105, as in the encoding).
pub mod scalar {
    /// VCC, two registers.
    pub const VCC: u8 = 106;
    /// ttmp0..ttmp15.
    pub const TTMP0: u8 = 108;
    /// M0.
    pub const M0: u8 = 124;
    /// Reads 0; writes are dropped by the writer's lowering.
    pub const NULL: u8 = 125;
    /// EXEC, two registers. The array's copy is for reading; [`super::Wave::set_exec`] writes it and its lane row.
    pub const EXEC: u8 = 126;
    /// SHARED_BASE, two registers; read only, as all that follow.
    pub const SHARED_BASE: u8 = 128;
    /// SHARED_LIMIT.
    pub const SHARED_LIMIT: u8 = 130;
    /// PRIVATE_BASE.
    pub const PRIVATE_BASE: u8 = 132;
    /// PRIVATE_LIMIT.
    pub const PRIVATE_LIMIT: u8 = 134;
    /// FLAT_SCRATCH where it is not an SGPR pair (architected flat scratch, GFX10 FLAT_SCR).
    pub const FLAT_SCRATCH: u8 = 136;
    /// Length of the array; what it holds beyond the last name is zero.
    pub const COUNT: usize = 144;
}

/// One row of lanes; a wave32 uses its first half.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct Row(pub [u32; 64]);

/// What a wave does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Runs.
    Ready,
    /// Waits at a barrier.
    Barrier,
    /// Gave up its slice (`s_sleep`, polling); runs again when others had a turn.
    Yielded,
    /// Ended by `s_endpgm`.
    Ended,
    /// Stopped by a fault, whose record lies in [`Wave::fault`].
    Faulted,
}

/// One wave.
///
/// The part here is what instruction handlers touch on every step; `lanes` rows of the register file follow one another
/// without gaps, so that row `r` of a wave32 lies at byte `128 * r` and of a wave64 at `256 * r`.
#[repr(C)]
pub struct Wave {
    /// Register file: VGPR rows, then AccVGPR rows. 64-byte aligned.
    pub rows: *mut u32,
    /// Constant pool of the code being run: rows of 64 equal lanes (4-byte values), 64-byte aligned.
    pub constants: *const u32,
    /// Address of the next instruction.
    pub pc: u64,
    /// EXEC; bits at and above the wave size are zero.
    pub exec: u64,
    /// Lanes: 32 or 64.
    pub lanes: u32,
    /// SCC.
    pub scc: bool,
    /// What to do next.
    pub state: State,
    /// EXEC as a row: all ones in active lanes.
    pub exec_row: Row,
    /// Rows for broadcast scalars and intermediate values.
    pub temp: [Row; 12],
    /// Scalar registers by the numbers of [`scalar`].
    pub scalar: [u32; scalar::COUNT],
    /// MODE register: round 3:0, denorm 7:4, DX10_CLAMP 8, IEEE 9, and what else the target has.
    pub mode: u32,
    /// Memory it reaches.
    pub port: super::mem::MemoryPort,
    /// Why the wave stopped, when its state is [`State::Faulted`].
    pub fault: Option<Box<trace::Fault>>,
}

impl Wave {
    /// All lanes of the wave, as a mask.
    #[inline(always)]
    pub fn full_mask(&self) -> u64 {
        if self.lanes == 64 { u64::MAX } else { u32::MAX as u64 }
    }

    /// Writes EXEC and its lane row. Bits beyond the wave size are dropped.
    #[inline(always)]
    pub fn set_exec(&mut self, mask: u64) {
        let mask = mask & self.full_mask();
        self.exec = mask;
        self.scalar[scalar::EXEC as usize] = mask as u32;
        self.scalar[scalar::EXEC as usize + 1] = (mask >> 32) as u32;
        for (lane, word) in self.exec_row.0.iter_mut().enumerate() {
            *word = (((mask >> lane) & 1) as u32).wrapping_neg();
        }
    }

    /// A scalar register pair.
    #[inline(always)]
    pub fn scalar64(&self, register: u8) -> u64 {
        self.scalar[register as usize] as u64 | (self.scalar[register as usize + 1] as u64) << 32
    }

    /// A pointer to the `lanes` words of a source row; a scalar is broadcast into `temp[slot]` first.
    ///
    /// # Safety
    /// `src` must have been lowered for this wave.
    #[inline(always)]
    pub unsafe fn src<const L: usize>(&mut self, src: Src, slot: usize) -> *const u32 {
        if src.is_row() {
            // SAFETY: lowering checked the row against the register count.
            unsafe { self.rows.byte_add(src.value() as usize) }
        } else if src.is_constant() {
            // SAFETY: lowering made the row in the code's pool.
            unsafe { self.constants.byte_add(src.value() as usize) }
        } else {
            let value = self.scalar[src.value() as usize];
            let row = &mut self.temp[slot].0;
            for word in &mut row[..L] {
                *word = value;
            }
            row.as_ptr()
        }
    }
}

//! The state of one wave.

use super::inst::{Inst, Src};
use super::mem::MemoryPort;
use trace::{Access, Fault, FaultKind};

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
    /// VCCZ, EXECZ and SCC as 0 or 1. They hold the current value only while an instruction that names them as a
    /// source runs (the engine refreshes them first).
    pub const VCCZ: u8 = 138;
    /// EXECZ.
    pub const EXECZ: u8 = 139;
    /// SCC.
    pub const SCC: u8 = 140;
    /// Where writes to NULL may go, up to 16 registers. Never read.
    pub const SINK: u8 = 144;
    /// Length of the array; what it holds beyond the last name is zero.
    pub const COUNT: usize = 160;
}

/// One row of lanes; a wave32 uses its first half.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct Row(pub [u32; 64]);

/// What a wave does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// Runs. The interpreter loop tests for zero.
    Ready = 0,
    /// Waits at a barrier.
    Barrier,
    /// Gave up its slice (`s_sleep`, polling); runs again when others had a turn.
    Yielded,
    /// Ended by `s_endpgm`.
    Ended,
    /// Stopped by a fault, whose record lies in [`Wave::fault`].
    Faulted,
    /// Asks the engine for what it alone can do, see [`Wave::request`], and runs on.
    Request,
    /// Halted by `s_sethalt`; nobody can resume it.
    Halted,
    /// Switched VGPR indexing (`s_set_gpr_idx_on`) or the skipping of vector instructions (`s_setvskip`) on or off (GFX9)
    /// and runs on, each vector instruction lowered anew or skipped.
    Indexed,
}

/// What a wave in [`State::Request`] wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Interrupt to the host with this M0.
    Interrupt(u32),
    /// GFX12 `s_barrier_signal` (`first`: `_isfirst`, SCC tells whether this wave was the first).
    Signal {
        /// Barrier id: -1 the work-group's.
        barrier: i32,
        /// Whether SCC is wanted.
        first: bool,
    },
    /// GFX12 `s_get_barrier_state` into this scalar register.
    BarrierState {
        /// Barrier id.
        barrier: i32,
        /// Destination.
        dst: u8,
    },
}

/// Who a wave is, for hardware registers and reports.
#[derive(Clone, Copy, Debug, Default)]
pub struct Identity {
    /// Work-group id.
    pub workgroup: [u32; 3],
    /// Wave number in the work-group.
    pub wave: u32,
    /// Waves of the work-group.
    pub waves: u32,
    /// Number among the waves the device holds now; no two resident waves share one.
    pub slot: u32,
    /// Compute unit, by its bit of a CU mask.
    pub unit: u32,
    /// XCCs of the device.
    pub xccs: u32,
    /// Shader arrays of a shader engine.
    pub arrays_per_engine: u32,
    /// Waves a compute unit holds, to split `slot` into hardware ids.
    pub waves_per_cu: u32,
    /// Shader engines of the device.
    pub shader_engines: u32,
    /// Compute units of the device.
    pub compute_units: u32,
    /// VGPR rows.
    pub vgprs: u32,
    /// Row of AccVGPR 0.
    pub agpr_base: u32,
    /// Queue id in the process.
    pub queue_id: u32,
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
    pub port: MemoryPort,
    /// Why the wave stopped, when its state is [`State::Faulted`].
    pub fault: Option<Box<Fault>>,
    /// What it asks for, when its state is [`State::Request`].
    pub request: Request,
    /// Who it is.
    pub identity: Identity,
    /// What `rows` points at, owned.
    storage: *mut [Row],
}

// SAFETY: a wave owns its registers; what else it points at (constants, LDS) is shared by rules of its own.
unsafe impl Send for Wave {}

impl Drop for Wave {
    fn drop(&mut self) {
        // SAFETY: made by `Box::into_raw` in `new`, and nothing else frees it.
        drop(unsafe { Box::from_raw(self.storage) });
    }
}

/// Bit of each lane of a half.
const LANE_BIT: [u32; 32] = {
    let mut bits = [0; 32];
    let mut lane = 0;
    while lane < 32 {
        bits[lane] = 1 << lane;
        lane += 1;
    }
    bits
};

/// All ones in the words whose bit is set. Test against a table of bits: the baseline instruction set has no shifts by
/// different counts, but it does compare.
#[inline(always)]
fn expand(mask: u32, words: &mut [u32]) {
    for (word, bit) in words.iter_mut().zip(&LANE_BIT) {
        *word = if mask & bit != 0 { u32::MAX } else { 0 };
    }
}

impl Wave {
    /// A wave of `lanes` lanes with `rows` zeroed register rows, all lanes active, at address 0, without constants.
    pub fn new(lanes: u32, rows: u32, port: MemoryPort) -> Box<Wave> {
        let words = rows as usize * lanes as usize;
        let storage = Box::into_raw(vec![Row([0; 64]); words.div_ceil(64)].into_boxed_slice());
        let mut wave = Box::new(Wave {
            rows: storage.cast(),
            constants: std::ptr::null(),
            pc: 0,
            exec: 0,
            lanes,
            scc: false,
            state: State::Ready,
            exec_row: Row([0; 64]),
            temp: [Row([0; 64]); 12],
            scalar: [0; scalar::COUNT],
            mode: 0,
            port,
            fault: None,
            request: Request::Interrupt(0),
            identity: Identity { wave: 0, waves: 1, vgprs: rows, ..Identity::default() },
            storage,
        });
        wave.set_exec(u64::MAX);
        wave
    }

    /// Register rows it holds.
    pub fn row_count(&self) -> u32 {
        (self.storage.len() * 64) as u32 / self.lanes
    }

    /// Word of a row's lane; panics beyond the registers.
    fn word(&self, row: u32, lane: u32) -> *mut u32 {
        assert!(row < self.row_count() && lane < self.lanes, "row {row} lane {lane} is beyond the registers");
        // SAFETY: within the allocation, as just checked.
        unsafe { self.rows.add((row * self.lanes + lane) as usize) }
    }

    /// One lane of a register row. The row must be below [`Wave::row_count`].
    pub fn read_vgpr(&self, row: u32, lane: u32) -> u32 {
        // SAFETY: `word` checks the place; the wave is borrowed.
        unsafe { *self.word(row, lane) }
    }

    /// Writes one lane of a register row. The row must be below [`Wave::row_count`].
    pub fn write_vgpr(&mut self, row: u32, lane: u32, value: u32) {
        // SAFETY: `word` checks the place; the wave is borrowed alone.
        unsafe { *self.word(row, lane) = value }
    }

    /// The lanes of a register row. The row must be below [`Wave::row_count`].
    pub fn row_mut(&mut self, row: u32) -> &mut [u32] {
        // SAFETY: `word` checks the row, which is `lanes` words; the wave is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.word(row, 0), self.lanes as usize) }
    }

    /// Zeroes the register rows.
    pub fn clear_rows(&mut self) {
        // SAFETY: `storage` is alive until drop, and the wave is borrowed alone.
        unsafe { (*self.storage).fill(Row([0; 64])) };
    }

    /// Stops the wave at `inst`, the instruction being executed. Call it before writing [`Wave::pc`]. The first fault
    /// stays. The engine adds the instruction's text, the work-group and the device.
    #[cold]
    pub fn fault_at(
        &mut self,
        inst: &Inst,
        kind: FaultKind,
        memory: Option<(u64, Access)>,
        lanes: u64,
        detail: String,
    ) {
        if self.state == State::Faulted {
            return;
        }
        let bytes = inst
            .extra
            .as_ref()
            .map_or(Vec::new(), |extra| extra.decoded.bytes.iter().copied().take(extra.decoded.len as usize).collect());
        self.state = State::Faulted;
        self.fault = Some(Box::new(Fault {
            kind,
            gpu_id: 0,
            queue_id: 0,
            va: memory.map(|(va, _)| va),
            access: memory.map(|(_, access)| access),
            pc: Some(self.pc.wrapping_sub(inst.len as u64)),
            instruction: None,
            bytes,
            kernel_object: None,
            workgroup: None,
            wave: None,
            lanes: Some(lanes),
            detail,
        }));
    }

    /// The 100 MHz counter that `s_memrealtime` and `GET_REALTIME` read.
    pub fn realtime() -> u64 {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `now` is a valid timespec to write to.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
        (now.tv_sec as u64).wrapping_mul(100_000_000).wrapping_add(now.tv_nsec as u64 / 10)
    }

    /// The shader clock that `s_memtime` and SHADER_CYCLES read; it runs at 1 GHz.
    pub fn cycles() -> u64 {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `now` is a valid timespec to write to.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
        (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
    }

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
        let (low, high) = self.exec_row.0.split_at_mut(32);
        expand(mask as u32, low);
        if self.lanes == 64 {
            expand((mask >> 32) as u32, high);
        }
    }

    /// A scalar register pair.
    #[inline(always)]
    pub fn scalar64(&self, register: u8) -> u64 {
        self.scalar[register as usize] as u64 | (self.scalar[register as usize + 1] as u64) << 32
    }

    /// Writes a scalar register pair that is not EXEC.
    #[inline(always)]
    pub fn set_scalar64(&mut self, register: u8, value: u64) {
        self.scalar[register as usize] = value as u32;
        self.scalar[register as usize + 1] = (value >> 32) as u32;
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
        } else if src.is_scalar() {
            let value = self.scalar[src.value() as usize];
            let row = &mut self.temp[slot].0;
            for word in &mut row[..L] {
                *word = value;
            }
            row.as_ptr()
        } else {
            // SAFETY: a vector handler made the row there, within the array.
            unsafe { self.temp.as_ptr().cast::<u32>().byte_add(src.value() as usize) }
        }
    }
}

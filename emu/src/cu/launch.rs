//! From a dispatch packet to the first state of its waves.
//!
//! Reads the kernel descriptor (LLVM AMDGPUUsage "Kernel Descriptor") through the page tables, checks what the packet
//! processor and the launcher check, and computes initial registers ("Initial Kernel Execution State").

use super::dispatch::Dispatch;
use super::wave::{Identity, State, Wave, scalar};
use crate::isa::{Family, Target};
use crate::memory::AddressSpace;
use std::sync::Arc;
use trace::{Access, Fault, FaultKind};

/// `queue_inactive_signal` bits for a refused dispatch (ROCR's DynamicQueueEventsHandler).
pub mod refusal {
    /// More scratch needed by a wave64 kernel.
    pub const SCRATCH_WAVE64: u64 = 0x1;
    /// Bad dimensions.
    pub const DIMENSIONS: u64 = 0x2;
    /// LDS beyond what a compute unit has.
    pub const GROUP_MEMORY: u64 = 0x4;
    /// Null or invalid code.
    pub const CODE: u64 = 0x8;
    /// Work-group too large.
    pub const GROUP_SIZE: u64 = 0x40;
    /// Too many VGPRs.
    pub const REGISTERS: u64 = 0x80;
    /// More scratch needed by a wave32 kernel.
    pub const SCRATCH_WAVE32: u64 = 0x400;
}

/// Bytes of LDS are allotted in this unit.
const LDS_GRANULE: u32 = 512;
/// Most work-items of a work-group.
const MAX_GROUP: u64 = 1024;
/// User SGPRs that are initialised.
const MAX_USER_SGPRS: usize = 16;

/// A dispatch ready to start waves.
pub struct Launch {
    /// Address of the kernel descriptor.
    pub kernel_object: u64,
    /// Address of the first instruction.
    pub entry: u64,
    /// Lanes of a wave.
    pub lanes: u32,
    /// Register rows of a wave.
    pub rows: u32,
    /// Rows that VGPR operands may name.
    pub vgprs: u32,
    /// Row of AccVGPR 0.
    pub agpr_base: u32,
    /// Work-items of a full work-group.
    pub group_size: [u32; 3],
    /// Work-items of the grid.
    pub grid: [u32; 3],
    /// Work-groups of the grid.
    pub groups: [u32; 3],
    /// Work-groups in all.
    pub group_count: u64,
    /// Work-groups the device holds at a time.
    pub resident_groups: u64,
    /// LDS bytes of a work-group.
    pub lds: u32,
    /// MODE at start.
    pub mode: u32,
    /// Scratch of the kernel.
    pub scratch: WaveScratch,
    user: [u32; MAX_USER_SGPRS],
    user_count: usize,
    rsrc2: u32,
    packed_ids: bool,
    target: Target,
    shared_aperture: u32,
    private_aperture: u32,
    /// Compute units that waves may be on, if not all.
    units: Option<Arc<[u32]>>,
    identity: Identity,
}

/// How scratch is dealt out to waves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaveScratch {
    /// GPU address of slot 0.
    pub va: u64,
    /// Bytes of a wave.
    pub wave_bytes: u64,
    /// Waves that can have scratch at a time. 0: the kernel uses none.
    pub slots: u32,
}

/// The fields of the packet that matter here.
struct Packet {
    group_size: [u32; 3],
    grid: [u32; 3],
    private_segment: u32,
    group_segment: u32,
    kernel_object: u64,
    kernarg: u64,
}

fn u32_at(bytes: &[u8; 64], offset: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|i| bytes[offset + i]))
}

fn u64_at(bytes: &[u8; 64], offset: usize) -> u64 {
    u32_at(bytes, offset) as u64 | (u32_at(bytes, offset + 4) as u64) << 32
}

fn u16_at(bytes: &[u8; 64], offset: usize) -> u16 {
    u16::from_le_bytes([bytes[offset], bytes[offset + 1]])
}

impl Packet {
    fn new(bytes: &[u8; 64]) -> Packet {
        Packet {
            group_size: [4, 6, 8].map(|offset| u16_at(bytes, offset) as u32),
            grid: [12, 16, 20].map(|offset| u32_at(bytes, offset)),
            private_segment: u32_at(bytes, 24),
            group_segment: u32_at(bytes, 28),
            kernel_object: u64_at(bytes, 32),
            kernarg: u64_at(bytes, 40),
        }
    }
}

/// The kernel descriptor's fields.
struct Descriptor {
    entry_offset: i64,
    rsrc1: u32,
    rsrc2: u32,
    rsrc3: u32,
    properties: u16,
    preload_dwords: u32,
    preload_offset: u32,
}

impl Descriptor {
    fn new(bytes: &[u8; 64]) -> Descriptor {
        let preload = u16_at(bytes, 58) as u32;
        Descriptor {
            entry_offset: u64_at(bytes, 16) as i64,
            rsrc3: u32_at(bytes, 44),
            rsrc1: u32_at(bytes, 48),
            rsrc2: u32_at(bytes, 52),
            properties: u16_at(bytes, 56),
            preload_dwords: preload & 0x7f,
            preload_offset: preload >> 7,
        }
    }
}

/// A fault record without a wave.
pub fn dispatch_fault(
    dispatch: &Dispatch,
    kind: FaultKind,
    memory: Option<(u64, Access)>,
    detail: String,
) -> Box<Fault> {
    Box::new(Fault {
        kind,
        gpu_id: dispatch.gpu_id,
        queue_id: dispatch.queue_id,
        va: memory.map(|(va, _)| va),
        access: memory.map(|(_, access)| access),
        pc: None,
        instruction: None,
        bytes: Vec::new(),
        kernel_object: Some(u64_at(&dispatch.packet, 32)),
        workgroup: None,
        wave: None,
        lanes: None,
        detail,
    })
}

/// Copies dwords from GPU memory. Err: the address that is not mapped.
fn read_dwords(space: &AddressSpace, va: u64, out: &mut [u32]) -> Result<(), u64> {
    for (index, word) in out.iter_mut().enumerate() {
        let at = va.wrapping_add(index as u64 * 4);
        let span = space.lookup(at).filter(|span| span.end - at >= 4).ok_or(at)?;
        // SAFETY: the span holds four bytes at `at`, alive through its backing; memory shared with a device is read as
        // volatile, at its alignment or byte by byte.
        unsafe {
            let host = span.host.add((at - span.start) as usize);
            *word = if host.addr() % 4 == 0 {
                host.cast::<u32>().read_volatile()
            } else {
                u32::from_le_bytes(std::array::from_fn(|i| host.add(i).read_volatile()))
            };
        }
    }
    Ok(())
}

/// Targets whose hardware writes FLAT_SCRATCH itself.
fn architected_flat_scratch(target: Target) -> bool {
    target == Target::Gfx942 || matches!(target.family(), Family::Gfx11 | Family::Gfx12)
}

/// Targets that put the three work-item ids into v0.
fn packed_ids(target: Target) -> bool {
    matches!(target, Target::Gfx90a | Target::Gfx942 | Target::Gfx1100 | Target::Gfx1201)
}

/// Targets whose firmware loads kernel arguments into SGPRs.
fn preloads_kernargs(target: Target) -> bool {
    matches!(target, Target::Gfx90a | Target::Gfx942)
}

/// VGPRs of a SIMD for one lane of a wave of this size, and SIMDs of a compute unit.
fn register_file(target: Target, lanes: u32) -> (u32, u32) {
    let wave64 = match target {
        Target::Gfx900 | Target::Gfx906 => return (256, 4),
        Target::Gfx90a | Target::Gfx942 => return (512, 4),
        Target::Gfx1030 => 512,
        Target::Gfx1100 | Target::Gfx1201 => 768,
    };
    (wave64 * 64 / lanes, 2)
}

impl Launch {
    /// Reads the descriptor and checks the dispatch.
    pub fn new(dispatch: &Dispatch) -> Result<Launch, Box<Fault>> {
        let target = dispatch.target;
        let family = target.family();
        let packet = Packet::new(&dispatch.packet);
        let refuse = |bits: u64, detail: String| Err(dispatch_fault(dispatch, FaultKind::Packet(bits), None, detail));
        let unmapped = |va: u64, what: &str| {
            let detail = format!("the packet processor reads the {what} there, and no page is mapped");
            dispatch_fault(dispatch, FaultKind::NotPresent, Some((va, Access::Read)), detail)
        };

        if packet.group_size.contains(&0) || packet.grid.contains(&0) {
            let text = format!("work-group {:?} and grid {:?} must be non-zero", packet.group_size, packet.grid);
            return refuse(refusal::DIMENSIONS, text);
        }
        let items: u64 = packet.group_size.iter().map(|&n| n as u64).product();
        if items > MAX_GROUP {
            return refuse(refusal::GROUP_SIZE, format!("work-group of {items} work-items, the limit is {MAX_GROUP}"));
        }
        let groups: [u32; 3] = std::array::from_fn(|d| packet.grid[d].div_ceil(packet.group_size[d]));
        let Some(group_count) = (groups[0] as u64 * groups[1] as u64).checked_mul(groups[2] as u64) else {
            return refuse(refusal::DIMENSIONS, format!("{groups:?} work-groups are more than 2^64"));
        };

        let kernel_object = packet.kernel_object;
        if kernel_object == 0 {
            return refuse(refusal::CODE, "kernel_object is null".into());
        }
        if !kernel_object.is_multiple_of(64) {
            return refuse(refusal::CODE, format!("kernel_object {kernel_object:#x} is not aligned to 64 bytes"));
        }
        let mut words = [0u32; 16];
        read_dwords(&dispatch.space, kernel_object, &mut words).map_err(|va| unmapped(va, "kernel descriptor"))?;
        let mut bytes = [0u8; 64];
        for (chunk, word) in bytes.chunks_exact_mut(4).zip(words) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        let descriptor = Descriptor::new(&bytes);
        let Descriptor { rsrc1, rsrc2, rsrc3, properties, .. } = descriptor;

        let mut entry = kernel_object.wrapping_add_signed(descriptor.entry_offset);
        if descriptor.entry_offset == 0 || !entry.is_multiple_of(256) {
            let text = format!(
                "entry {entry:#x} (descriptor {kernel_object:#x} + {:#x}) is not aligned to 256 bytes, \
                or is the descriptor",
                descriptor.entry_offset
            );
            return refuse(refusal::CODE, text);
        }
        if properties & 0xf380 != 0 {
            return refuse(refusal::CODE, format!("kernel_code_properties {properties:#06x} has reserved bits"));
        }
        let wave32 = properties & 1 << 10 != 0;
        if wave32 && family == Family::Gfx9 {
            return refuse(
                refusal::CODE,
                format!("ENABLE_WAVEFRONT_SIZE32 in the descriptor, and {target} has wave64 only"),
            );
        }
        let lanes = if wave32 { 32 } else { 64 };
        let architected = architected_flat_scratch(target);
        if architected && properties & 0x21 != 0 {
            let text = format!(
                "kernel_code_properties {properties:#06x} asks for a private segment buffer or flat scratch \
                init, which {target} does not have"
            );
            return refuse(refusal::CODE, text);
        }
        if rsrc2 >> 11 & 3 == 3 {
            return refuse(refusal::CODE, format!("compute_pgm_rsrc2 {rsrc2:#x}: ENABLE_VGPR_WORKITEM_ID is 3"));
        }
        if family == Family::Gfx12 && rsrc2 & 1 << 6 != 0 {
            let text = format!("compute_pgm_rsrc2 {rsrc2:#x}: ENABLE_DYNAMIC_VGPR is not emulated");
            return refuse(refusal::CODE, text);
        }
        if matches!(family, Family::Gfx10 | Family::Gfx11) && rsrc3 & 0xf != 0 {
            return refuse(refusal::CODE, format!("compute_pgm_rsrc3 {rsrc3:#x}: shared VGPRs are not emulated"));
        }

        // Registers.
        let granule = (rsrc1 & 0x3f) + 1;
        let (rows, most) = match (family, target.unified_agprs()) {
            (Family::Gfx9, false) => (granule * 4, 256),
            (Family::Gfx9, true) => (granule * 8, 512),
            _ => (granule * if wave32 { 8 } else { 4 }, 256),
        };
        if rows > most {
            return refuse(refusal::REGISTERS, format!("{rows} VGPRs, the limit of {target} is {most}"));
        }
        let vgprs = if target.unified_agprs() { ((rsrc3 & 0x3f) + 1) * 4 } else { rows };
        if vgprs > rows {
            return refuse(refusal::CODE, format!("accum_offset {vgprs} is beyond the {rows} allocated VGPRs"));
        }
        let waves = (items as u32).div_ceil(lanes);
        let wgp = family != Family::Gfx9 && rsrc1 & 1 << 29 != 0;
        let units = if wgp { 2 } else { 1 };
        let (file, simds) = register_file(target, lanes);
        let register_waves = (file / rows.min(file)) * simds * units;
        if waves > register_waves {
            let text =
                format!("a work-group of {waves} waves with {rows} VGPRs each, and registers hold {register_waves}");
            return refuse(refusal::REGISTERS, text);
        }

        // LDS.
        let lds_limit = dispatch.lds_per_cu;
        let lds = packet.group_segment.checked_next_multiple_of(LDS_GRANULE).unwrap_or(u32::MAX);
        if lds > lds_limit {
            let text =
                format!("group_segment_size {} bytes, the limit of {target} is {lds_limit}", packet.group_segment);
            return refuse(refusal::GROUP_MEMORY, text);
        }

        let scratch = match scratch(dispatch, rsrc2, packet.private_segment, lanes, waves) {
            Ok(scratch) => scratch,
            Err(detail) => {
                return refuse(if wave32 { refusal::SCRATCH_WAVE32 } else { refusal::SCRATCH_WAVE64 }, detail);
            }
        };

        // User SGPRs, in the order of their bits, without gaps; what does not fit into 16 is not written.
        let mut user = Vec::with_capacity(32);
        let push64 = |user: &mut Vec<u32>, value: u64| user.extend([value as u32, (value >> 32) as u32]);
        if properties & 1 != 0 {
            let mut srd = dispatch.scratch.srd;
            if family != Family::Gfx9 {
                // ROCR leaves INDEX_STRIDE to the packet processor from GFX10 on: 32 or 64 elements.
                srd[3] |= if wave32 { 2 } else { 3 } << 21;
            }
            user.extend(srd);
        }
        let wanted = [(1, dispatch.packet_va), (2, dispatch.queue_va), (3, packet.kernarg), (4, dispatch.dispatch_id)];
        for (bit, value) in wanted {
            if properties & 1 << bit != 0 {
                push64(&mut user, value);
            }
        }
        if properties & 1 << 5 != 0 {
            push64(&mut user, dispatch.scratch.va);
        }
        if properties & 1 << 6 != 0 {
            user.push(packet.private_segment);
        }
        if descriptor.preload_dwords != 0 {
            if !preloads_kernargs(target) {
                return refuse(
                    refusal::CODE,
                    format!("the descriptor asks for kernarg preload, which {target} does not have"),
                );
            }
            let room = MAX_USER_SGPRS.saturating_sub(user.len());
            let mut arguments = vec![0u32; (descriptor.preload_dwords as usize).min(room)];
            let from = packet.kernarg.wrapping_add(descriptor.preload_offset as u64 * 4);
            read_dwords(&dispatch.space, from, &mut arguments).map_err(|va| unmapped(va, "kernel arguments"))?;
            user.extend(arguments);
            // The first 256 bytes load the same registers, for firmware that does not preload.
            entry = entry.wrapping_add(256);
        }
        user.truncate(MAX_USER_SGPRS);
        user.resize(MAX_USER_SGPRS, 0);

        let waves_per_unit = dispatch.waves_per_cu.max(1) * units;
        if waves > waves_per_unit {
            let text = format!("a work-group of {waves} waves, and a compute unit holds {waves_per_unit}");
            return refuse(refusal::GROUP_SIZE, text);
        }
        let by_waves = waves_per_unit.min(register_waves) / waves;
        let by_lds = (lds_limit * units).checked_div(lds).unwrap_or(u32::MAX);
        let mut resident_groups =
            dispatch.enabled_units().div_ceil(units).max(1) as u64 * by_waves.min(by_lds).max(1) as u64;
        if scratch.slots != 0 {
            resident_groups = resident_groups.min((scratch.slots / waves) as u64);
        }

        Ok(Launch {
            kernel_object,
            entry,
            lanes,
            rows,
            vgprs,
            agpr_base: vgprs,
            group_size: packet.group_size,
            grid: packet.grid,
            groups,
            group_count,
            resident_groups,
            lds,
            mode: mode(family, rsrc1, rsrc2),
            scratch,
            user: std::array::from_fn(|i| user[i]),
            user_count: (rsrc2 >> 1 & 0x1f) as usize,
            rsrc2,
            packed_ids: packed_ids(target),
            units: dispatch.units.clone(),
            target,
            shared_aperture: (dispatch.shared_base >> 32) as u32,
            private_aperture: (dispatch.private_base >> 32) as u32,
            identity: Identity {
                waves_per_cu: dispatch.waves_per_cu.max(1),
                shader_engines: dispatch.shader_engines.max(1),
                compute_units: dispatch.compute_units.max(1),
                xccs: dispatch.xccs.max(1),
                arrays_per_engine: dispatch.arrays_per_engine.max(1),
                vgprs: rows,
                agpr_base: vgprs,
                queue_id: dispatch.queue_id,
                ..Identity::default()
            },
        })
    }

    /// Work-group id of the `index`th work-group.
    pub fn group_id(&self, index: u64) -> [u32; 3] {
        let [x, y, _] = self.groups.map(u64::from);
        [(index % x) as u32, (index / x % y) as u32, (index / x / y) as u32]
    }

    /// Work-items of this work-group: fewer than a full one's at the grid's edge.
    pub fn group_items(&self, group: [u32; 3]) -> [u32; 3] {
        std::array::from_fn(|d| (self.grid[d] - group[d] * self.group_size[d]).min(self.group_size[d]))
    }

    /// Waves of a work-group with these work-items.
    pub fn waves(&self, items: [u32; 3]) -> u32 {
        items.iter().product::<u32>().div_ceil(self.lanes)
    }

    /// The compute unit of a resident wave, by its bit of a CU mask.
    fn unit(&self, slot: u32) -> u32 {
        let nth = slot / self.identity.waves_per_cu;
        match &self.units {
            Some(units) if !units.is_empty() => units[nth as usize % units.len()],
            _ => nth % self.identity.compute_units,
        }
    }

    /// Sets a wave whose registers are zero to the state it starts with. `slot` is its number among resident waves, which
    /// is also its scratch slot.
    pub fn start(&self, wave: &mut Wave, group: [u32; 3], number: u32, slot: u32) {
        let items = self.group_items(group);
        let family = self.target.family();
        let port = &mut wave.port;
        port.shared_aperture = self.shared_aperture;
        port.private_aperture = self.private_aperture;
        let scratch_offset = slot as u64 * self.scratch.wave_bytes;
        (port.scratch_base, port.scratch_size) = match self.scratch.slots {
            0 => (0, 0),
            _ => (self.scratch.va.wrapping_add(scratch_offset), self.scratch.wave_bytes),
        };
        let scratch_base = port.scratch_base;

        wave.pc = self.entry;
        wave.scc = false;
        wave.state = State::Ready;
        wave.fault = None;
        wave.mode = self.mode;
        let waves = self.waves(items);
        wave.identity =
            Identity { workgroup: group, wave: number, waves, slot, unit: self.unit(slot), ..self.identity };

        let sgprs = &mut wave.scalar;
        *sgprs = [0; scalar::COUNT];
        sgprs[..MAX_USER_SGPRS].copy_from_slice(&self.user);
        let mut next = self.user_count;
        let mut system = |enabled: bool, value: u32| {
            if enabled {
                sgprs[next] = value;
                next += 1;
            }
        };
        let bit = |n: u32| self.rsrc2 & 1 << n != 0;
        for (dimension, id) in group.into_iter().enumerate() {
            system(bit(7 + dimension as u32) && family != Family::Gfx12, id);
        }
        let first = if number == 0 { 1 << 31 } else { 0 };
        system(bit(10), first | wave.identity.waves & 0x3f);
        let architected = architected_flat_scratch(self.target);
        system(bit(0) && !architected, if self.scratch.slots != 0 { scratch_offset as u32 } else { 0 });
        if family == Family::Gfx12 {
            sgprs[scalar::TTMP0 as usize + 9] = group[0];
            sgprs[scalar::TTMP0 as usize + 7] = group[1] & 0xffff | group[2] << 16;
            sgprs[scalar::TTMP0 as usize + 8] = (number & 0x1f) << 25;
        }
        if architected {
            let register = if family == Family::Gfx9 { 102 } else { scalar::FLAT_SCRATCH };
            sgprs[register as usize] = scratch_base as u32;
            sgprs[register as usize + 1] = (scratch_base >> 32) as u32;
        }
        sgprs[scalar::SHARED_BASE as usize + 1] = self.shared_aperture;
        sgprs[scalar::SHARED_LIMIT as usize] = u32::MAX;
        sgprs[scalar::SHARED_LIMIT as usize + 1] = self.shared_aperture;
        sgprs[scalar::PRIVATE_BASE as usize + 1] = self.private_aperture;
        sgprs[scalar::PRIVATE_LIMIT as usize] = u32::MAX;
        sgprs[scalar::PRIVATE_LIMIT as usize + 1] = self.private_aperture;

        // Work-item ids and EXEC.
        let total: u32 = items.iter().product();
        let from = number * self.lanes;
        let active = (total - from).min(self.lanes);
        wave.set_exec(if active >= 64 { u64::MAX } else { (1 << active) - 1 });
        self.work_item_ids(wave, items, from, active as usize);
    }

    /// Writes the work-item ids that the descriptor enables into v0, or v0 to v2, for `active` items from `from` on.
    fn work_item_ids(&self, wave: &mut Wave, items: [u32; 3], from: u32, active: usize) {
        let [x, y, _] = items;
        if from + active as u32 <= x {
            for (lane, word) in wave.row_mut(0)[..active].iter_mut().enumerate() {
                *word = from + lane as u32;
            }
            return;
        }
        let fields = (self.rsrc2 >> 11 & 3) as usize;
        let mut id = [from % x, from / x % y, from / x / y];
        for lane in 0..active {
            if self.packed_ids {
                let shift = |field: usize| if field <= fields { id[field] << (10 * field) } else { 0 };
                wave.row_mut(0)[lane] = id[0] | shift(1) | shift(2);
            } else {
                for (register, id) in id.into_iter().enumerate().take(fields + 1) {
                    wave.row_mut(register as u32)[lane] = id;
                }
            }
            id[0] += 1;
            if id[0] == x {
                id = [0, id[1] + 1, id[2]];
                if id[1] == y {
                    id = [0, 0, id[2] + 1];
                }
            }
        }
    }
}

/// MODE from the descriptor: FP_ROUND and FP_DENORM 7:0, DX10_CLAMP 8, IEEE 9, EXCP_EN 18:12, FP16_OVFL 23. GFX12 has
/// neither DX10_CLAMP nor IEEE and clamps NaN to 0 always, which handlers see as bit 8; `s_getreg` hides it.
fn mode(family: Family, rsrc1: u32, rsrc2: u32) -> u32 {
    let mut mode = rsrc1 >> 12 & 0xff | (rsrc2 >> 24 & 0x7f) << 12;
    if family == Family::Gfx12 {
        mode |= 1 << 8;
    } else {
        mode |= (rsrc1 >> 21 & 1) << 8 | (rsrc1 >> 23 & 1) << 9;
    }
    mode | (rsrc1 >> 26 & 1) << 23
}

/// Scratch of the dispatch, or why the queue has too little. The packet processor compares the packet with
/// `scratch_wave64_lane_byte_size`; COMPUTE_TMPRING_SIZE says how the backing memory is divided.
fn scratch(dispatch: &Dispatch, rsrc2: u32, private: u32, lanes: u32, waves: u32) -> Result<WaveScratch, String> {
    if private == 0 {
        return Ok(WaveScratch::default());
    }
    let ring = dispatch.scratch.tmpring;
    let (bits, unit, engines) = match dispatch.target.family() {
        Family::Gfx9 | Family::Gfx10 => (13, 1024, 1),
        Family::Gfx11 => (15, 256, dispatch.shader_engines.max(1)),
        Family::Gfx12 => (18, 256, dispatch.shader_engines.max(1)),
    };
    let wave_bytes = (ring >> 12 & ((1 << bits) - 1)) as u64 * unit;
    let slots = (ring & 0xfff) * engines;
    let need = private as u64 * lanes as u64;
    let lane_bytes = dispatch.scratch.wave64_lane_bytes as u64 * 64;
    if need > lane_bytes || need > wave_bytes {
        return Err(format!(
            "private_segment_size {private} with {lanes} lanes needs {need} bytes a wave; the queue has {lane_bytes} \
             (scratch_wave64_lane_byte_size * 64) and {wave_bytes} (compute_tmpring_size {ring:#x})"
        ));
    }
    // ENABLE_PRIVATE_SEGMENT comes from the descriptor: without it a wave gets no scratch whatever the packet says.
    if rsrc2 & 1 == 0 {
        return Ok(WaveScratch::default());
    }
    if slots < waves {
        return Err(format!(
            "compute_tmpring_size {ring:#x} gives scratch to {slots} waves, and a work-group has {waves}"
        ));
    }
    Ok(WaveScratch { va: dispatch.scratch.va, wave_bytes, slots })
}

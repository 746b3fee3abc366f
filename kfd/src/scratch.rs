//! Scratch: the private segment of every wave, carved out of one buffer by the packet processor and the hardware.
//!
//! The registers are written from `amd_queue_t`: COMPUTE_TMPRING_SIZE says how many waves have scratch and how much
//! each, the private segment buffer descriptor where it lies (register names as in the GPU register headers under
//! `drivers/gpu/drm/amd/include/asic_reg/gc`).

use crate::error::Result;
use crate::topology::Node;
use crate::types::{GfxTarget, GpuVa};

/// Greatest scratch of one wave in bytes: the WAVESIZE field of gfx9 and gfx10.
const MAX_WAVE_BYTES: u64 = 8191 * 1024;

/// Why scratch cannot be laid out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScratchError {
    /// The private segment is larger than the hardware can give.
    #[error(
        "{bytes_per_lane} bytes of scratch a lane: {lanes} lanes make {wave_bytes} bytes a wave, {max} is the most"
    )]
    WaveTooLarge {
        /// Bytes a lane, rounded up to what the hardware counts in.
        bytes_per_lane: u64,
        /// Lanes of a wave.
        lanes: u32,
        /// Bytes a wave.
        wave_bytes: u64,
        /// Greatest.
        max: u64,
    },
    /// Not even one wave a shader engine fits the memory allowed.
    #[error(
        "scratch: {wave_bytes} bytes a wave x {waves} waves x {num_xcc} XCCs = {} bytes, {max} are allowed",
        wave_bytes.saturating_mul((*waves).into()).saturating_mul((*num_xcc).into())
    )]
    NoRoom {
        /// Bytes a wave.
        wave_bytes: u64,
        /// Least waves an XCC.
        waves: u32,
        /// XCCs.
        num_xcc: u32,
        /// Bytes allowed.
        max: u64,
    },
    /// A wave has 32 or 64 lanes.
    #[error("a wave of {lanes} lanes")]
    Lanes {
        /// Lanes.
        lanes: u32,
    },
}

impl ScratchError {
    pub(crate) fn advice(&self) -> &'static str {
        match self {
            ScratchError::Lanes { .. } => "a wave has 32 or 64 lanes, and gfx9 knows 64 only",
            _ => "the kernel needs too much private memory: look for large arrays and spills in it",
        }
    }
}

/// How scratch is laid out on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScratchLayout {
    target: GfxTarget,
    /// Bytes a lane, rounded up to what the hardware counts in.
    pub bytes_per_lane: u64,
    /// Lanes of a wave, 32 or 64.
    pub lanes: u32,
    /// Bytes a wave.
    pub wave_bytes: u64,
    /// Waves with scratch on one XCC.
    pub waves: u32,
    /// Shader engines of one XCC.
    pub engines: u32,
    /// XCCs.
    pub num_xcc: u32,
}

/// The scratch fields of `amd_queue_t`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScratchRegisters {
    /// COMPUTE_TMPRING_SIZE: WAVES in bits 0–11, WAVESIZE from bit 12.
    pub tmpring_size: u32,
    /// Private segment buffer descriptor.
    pub resource_descriptor: [u32; 4],
    /// Address of the scratch memory.
    pub location: u64,
    /// Bytes a lane of a 64-lane wave; a dispatch that wants more stops the queue.
    pub wave64_lane_bytes: u32,
}

impl ScratchLayout {
    /// The layout that gives `private_segment_bytes` a lane to as many waves of `lanes` lanes as the GPU runs at once,
    /// or to fewer if that would take more than `max_bytes`.
    pub fn new(
        node: &Node,
        target: GfxTarget,
        private_segment_bytes: u32,
        lanes: u32,
        max_bytes: u64,
    ) -> Result<ScratchLayout> {
        if lanes != 64 && !(lanes == 32 && target.major() >= 10) {
            return Err(ScratchError::Lanes { lanes }.into());
        }
        let unit = unit(target);
        let lane_unit = unit / u64::from(lanes);
        // A multiple of `unit / lanes` a lane makes whole units a wave.
        let bytes_per_lane = u64::from(private_segment_bytes.max(1)).next_multiple_of(lane_unit);
        let wave_bytes = bytes_per_lane * u64::from(lanes);
        if wave_bytes > MAX_WAVE_BYTES {
            return Err(ScratchError::WaveTooLarge { bytes_per_lane, lanes, wave_bytes, max: MAX_WAVE_BYTES }.into());
        }

        let num_xcc = node.positive("num_xcc", Some(node.num_xcc()))?;
        let arrays = node.positive("array_count", node.properties.array_count)?;
        let per_engine = node.positive("simd_arrays_per_engine", node.properties.simd_arrays_per_engine)?;
        let slots = node.positive("max_slots_scratch_cu", node.properties.max_slots_scratch_cu)?;
        let engines = (arrays / per_engine / num_xcc).max(1);
        let cus = (node.compute_units()? / num_xcc).max(1);
        // Every engine gets the same number of waves.
        let most = u64::from(cus).next_multiple_of(engines.into()).saturating_mul(slots.into());
        let field = 0xfff * if waves_are_per_engine(target) { u64::from(engines) } else { 1 };
        let allowed = max_bytes / (wave_bytes * u64::from(num_xcc));
        let waves = most.min(field).min(allowed) / u64::from(engines) * u64::from(engines);
        match u32::try_from(waves) {
            Ok(waves) if waves > 0 => {
                Ok(ScratchLayout { target, bytes_per_lane, lanes, wave_bytes, waves, engines, num_xcc })
            }
            _ => Err(ScratchError::NoRoom { wave_bytes, waves: engines, num_xcc, max: max_bytes }.into()),
        }
    }

    /// Bytes of the scratch memory.
    pub fn bytes(&self) -> u64 {
        self.wave_bytes * u64::from(self.waves) * u64::from(self.num_xcc)
    }

    /// What to write into `amd_queue_t` for scratch memory of [`ScratchLayout::bytes`] at `va`.
    pub fn registers(&self, va: GpuVa) -> ScratchRegisters {
        let waves = if waves_are_per_engine(self.target) { self.waves / self.engines } else { self.waves };
        // Both fit their fields: `new` saw to it.
        let wave_size = (self.wave_bytes / unit(self.target)) as u32;
        let (swizzle, word3) = match self.target.major() {
            9 => (0x8000_0000, 0x00ea_4fac),
            10 => (0x8000_0000, 0x2181_4fac),
            _ => (0x4000_0000, 0x2081_4fac),
        };
        // The descriptor covers the memory of one XCC.
        let records = u32::try_from(self.wave_bytes * u64::from(self.waves)).unwrap_or(u32::MAX);
        ScratchRegisters {
            tmpring_size: wave_size << 12 | waves,
            resource_descriptor: [va.0 as u32, (va.0 >> 32) as u32 & 0xffff | swizzle, records, word3],
            location: va.0,
            wave64_lane_bytes: (self.bytes_per_lane * u64::from(self.lanes) / 64) as u32,
        }
    }
}

/// What WAVESIZE counts in.
fn unit(target: GfxTarget) -> u64 {
    if target.major() >= 11 { 256 } else { 1024 }
}

/// Whether WAVES counts the waves of one shader engine, not of the XCC.
fn waves_are_per_engine(target: GfxTarget) -> bool {
    target.major() >= 11
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::topology::NodeProperties;
    use crate::types::GpuId;
    use proptest::prelude::*;

    fn gpu(version: u32, cus: u32, xccs: u32, simds: u32, arrays: u32, per_engine: u32) -> (Node, GfxTarget) {
        let properties = NodeProperties {
            simd_count: Some(cus * simds),
            simd_per_cu: Some(simds),
            num_xcc: Some(xccs),
            array_count: Some(arrays),
            simd_arrays_per_engine: Some(per_engine),
            max_slots_scratch_cu: Some(32),
            ..Default::default()
        };
        let node = Node { index: 1, gpu_id: Some(GpuId(1)), properties };
        (node, GfxTarget::from_version(version).unwrap())
    }

    #[test]
    fn gfx90a() {
        let (node, target) = gpu(90010, 104, 1, 4, 8, 1);
        let layout = ScratchLayout::new(&node, target, 20, 64, u64::MAX).unwrap();
        // 16-byte steps a lane make 1 KiB steps a wave; 104 compute units are a multiple of 8 engines.
        assert_eq!((layout.bytes_per_lane, layout.wave_bytes, layout.waves), (32, 2048, 104 * 32));
        assert_eq!(layout.bytes(), 2048 * 3328);
        let registers = layout.registers(GpuVa(0x7f12_3456_7000));
        assert_eq!(registers.tmpring_size, 2 << 12 | 3328);
        assert_eq!(registers.resource_descriptor, [0x3456_7000, 0x8000_7f12, 2048 * 3328, 0x00ea_4fac]);
        assert_eq!((registers.location, registers.wave64_lane_bytes), (0x7f12_3456_7000, 32));
    }

    #[test]
    fn gfx1100_counts_waves_of_an_engine() {
        let (node, target) = gpu(110000, 96, 1, 2, 12, 2);
        let layout = ScratchLayout::new(&node, target, 20, 32, u64::MAX).unwrap();
        assert_eq!((layout.bytes_per_lane, layout.wave_bytes, layout.waves, layout.engines), (24, 768, 96 * 32, 6));
        let registers = layout.registers(GpuVa(0x1_0000_0000));
        assert_eq!(registers.tmpring_size, 3 << 12 | 512);
        assert_eq!(registers.resource_descriptor, [0, 0x4000_0001, 768 * 3072, 0x2081_4fac]);
        // A 32-lane wave uses half of what a lane of a 64-lane wave would have.
        assert_eq!(registers.wave64_lane_bytes, 12);
    }

    #[test]
    fn gfx942_lays_out_every_xcc() {
        let (node, target) = gpu(90402, 304, 8, 4, 32, 1);
        let layout = ScratchLayout::new(&node, target, 1024, 64, u64::MAX).unwrap();
        // 38 compute units on 4 engines are handed out as 40.
        assert_eq!((layout.waves, layout.engines, layout.num_xcc), (40 * 32, 4, 8));
        assert_eq!(layout.bytes(), 65536 * 1280 * 8);
        assert_eq!(layout.registers(GpuVa(0)).resource_descriptor[2], 65536 * 1280);
    }

    #[test]
    fn less_memory_means_fewer_waves() {
        let (node, target) = gpu(100300, 80, 1, 2, 8, 2);
        let layout = ScratchLayout::new(&node, target, 4096, 64, 100 << 20).unwrap();
        assert_eq!((layout.wave_bytes, layout.waves), (256 << 10, 400));
        assert!(layout.bytes() <= 100 << 20);
    }

    #[test]
    fn what_cannot_be() {
        let (node, target) = gpu(90010, 104, 1, 4, 8, 1);
        let report = |bytes, lanes, max| ScratchLayout::new(&node, target, bytes, lanes, max).unwrap_err().report();
        insta::assert_snapshot!(report(200_000, 64, u64::MAX), @r"
        200000 bytes of scratch a lane: 64 lanes make 12800000 bytes a wave, 8387584 is the most
          do: the kernel needs too much private memory: look for large arrays and spills in it
        ");
        insta::assert_snapshot!(report(100_000, 64, 1 << 20), @r"
        scratch: 6400000 bytes a wave x 8 waves x 1 XCCs = 51200000 bytes, 1048576 are allowed
          do: the kernel needs too much private memory: look for large arrays and spills in it
        ");
        insta::assert_snapshot!(report(4, 32, u64::MAX), @r"
        a wave of 32 lanes
          do: a wave has 32 or 64 lanes, and gfx9 knows 64 only
        ");
        let mut broken = node.clone();
        broken.properties.max_slots_scratch_cu = None;
        let error = ScratchLayout::new(&broken, target, 4, 64, u64::MAX).unwrap_err();
        assert!(matches!(error, Error::Property { key: "max_slots_scratch_cu", value: None, .. }));
    }

    proptest! {
        #[test]
        fn any_numbers_are_handled(values: [Option<u32>; 6], bytes: u32, wide: bool, max: u64) {
            let [simd_count, simd_per_cu, num_xcc, array_count, simd_arrays_per_engine, max_slots_scratch_cu] = values;
            let properties = NodeProperties {
                simd_count, simd_per_cu, num_xcc, array_count, simd_arrays_per_engine, max_slots_scratch_cu,
                ..Default::default()
            };
            let node = Node { index: 1, gpu_id: Some(GpuId(1)), properties };
            for version in [90010, 100300, 110000, 120001] {
                let target = GfxTarget::from_version(version).unwrap();
                let lanes = if wide { 64 } else { 32 };
                if let Ok(layout) = ScratchLayout::new(&node, target, bytes % (1 << 18), lanes, max) {
                    prop_assert!(layout.bytes() <= max);
                    let registers = layout.registers(GpuVa(0));
                    prop_assert!(registers.tmpring_size & 0xfff > 0);
                    prop_assert!(u64::from(registers.wave64_lane_bytes) * 64 >= u64::from(bytes % (1 << 18)) * u64::from(lanes));
                }
            }
        }
    }
}

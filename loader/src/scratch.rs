//! Scratch: how much a dispatch needs, and how `amd_queue_t` says so to the packet processor.
//!
//! Encodings: `COMPUTE_TMPRING_SIZE` and the buffer resource words per generation, as ROCR writes them.

/// What a device fixes about scratch. All counts are of one XCC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Major number of the target: 9 to 12.
    pub gfx_major: u32,
    /// Shader engines.
    pub shader_engines: u32,
    /// Compute units.
    pub compute_units: u32,
    /// Waves with scratch that a compute unit holds (`max_slots_scratch_cu`).
    pub slots_per_cu: u32,
    /// XCCs of the device.
    pub xccs: u32,
}

/// Scratch for a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of the buffer.
    pub bytes: u64,
    /// `compute_tmpring_size`.
    pub tmpring: u32,
    /// `scratch_wave64_lane_byte_size`.
    pub wave64_lane_bytes: u32,
    /// Bytes of one wave.
    pub wave_bytes: u64,
    /// Waves of one XCC that may run at a time.
    pub waves: u32,
}

/// Most bytes of one wave that WAVESIZE can say (the hardware's cap).
const WAVE_BYTES_MAX: u64 = 8_387_584;

/// Why no scratch can be set up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// More than the field holds.
    #[error(
        "scratch: {lane_bytes} bytes a work-item x {lanes} lanes = {needed} bytes a wave, and the hardware takes at most \
         {WAVE_BYTES_MAX}; reduce the kernel's private memory or --stack-size"
    )]
    WaveTooLarge {
        /// Bytes a work-item.
        lane_bytes: u32,
        /// Lanes.
        lanes: u32,
        /// Product.
        needed: u64,
    },
    /// The topology gives no compute units or shader engines.
    #[error("scratch: the topology gives {0} as zero")]
    Geometry(&'static str),
}

impl Geometry {
    /// Scratch for `waves` waves of `lanes` lanes with `lane_bytes` bytes a work-item, or for as many as the device
    /// holds if that is fewer.
    pub fn layout(&self, lane_bytes: u32, lanes: u32, waves: u64) -> Result<Layout, Error> {
        for (value, name) in [
            (self.shader_engines, "shader engines"),
            (self.compute_units, "compute units"),
            (self.slots_per_cu, "max_slots_scratch_cu"),
            (self.xccs, "num_xcc"),
        ] {
            if value == 0 {
                return Err(Error::Geometry(name));
            }
        }
        // WAVESIZE counts units; it starts at bit 12.
        let unit: u64 = if self.gfx_major <= 10 { 1024 } else { 256 };
        let needed = u64::from(lane_bytes) * u64::from(lanes);
        let wave_bytes = needed.next_multiple_of(unit).max(unit);
        if wave_bytes > WAVE_BYTES_MAX {
            return Err(Error::WaveTooLarge { lane_bytes, lanes, needed });
        }
        let engines = u64::from(self.shader_engines);
        let slots = u64::from(self.compute_units).next_multiple_of(engines) * u64::from(self.slots_per_cu);
        // The waves of a dispatch spread over XCCs and engines; each engine gets the same number of slots.
        let waves = waves.div_ceil(u64::from(self.xccs)).next_multiple_of(engines).clamp(engines, slots).min(0xfff);
        let waves = waves - waves % engines;
        // Up to GFX10 WAVES counts a whole XCC, later one shader engine.
        let field = if self.gfx_major <= 10 { waves } else { waves / engines };
        Ok(Layout {
            bytes: waves * wave_bytes * u64::from(self.xccs),
            tmpring: (field | (wave_bytes / unit) << 12) as u32,
            wave64_lane_bytes: (wave_bytes / 64) as u32,
            wave_bytes,
            waves: waves as u32,
        })
    }

    /// The buffer resource of a scratch buffer at `va`, for kernels that take it in SGPRs.
    pub fn resource(&self, va: u64, layout: &Layout) -> [u32; 4] {
        let high = (va >> 32) as u32 & 0xffff;
        let (swizzle, word3) = match self.gfx_major {
            ..=9 => (0x8000_0000, 0x00ea_4fac),
            10 => (0x8000_0000, 0x2181_4fac),
            _ => (0x4000_0000, 0x2081_4fac),
        };
        [va as u32, high | swizzle, (layout.bytes / u64::from(self.xccs)) as u32, word3]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MI210: Geometry = Geometry { gfx_major: 9, shader_engines: 8, compute_units: 104, slots_per_cu: 32, xccs: 1 };
    const NAVI31: Geometry = Geometry { gfx_major: 11, shader_engines: 6, compute_units: 96, slots_per_cu: 32, xccs: 1 };

    #[test]
    fn a_small_dispatch_gets_a_slot_an_engine() {
        let layout = MI210.layout(16384, 64, 1).unwrap();
        assert_eq!(layout, Layout {
            bytes: 8 << 20,
            tmpring: 8 | 1024 << 12,
            wave64_lane_bytes: 16384,
            wave_bytes: 1 << 20,
            waves: 8
        });
        let layout = NAVI31.layout(16384, 32, 1).unwrap();
        assert_eq!((layout.tmpring, layout.wave64_lane_bytes, layout.waves), (1 | 2048 << 12, 8192, 6));
    }

    #[test]
    fn a_large_dispatch_is_bounded_by_the_device() {
        let layout = MI210.layout(256, 64, 1 << 20).unwrap();
        assert_eq!(layout.waves, 104 * 32);
        let layout = NAVI31.layout(256, 32, 1 << 20).unwrap();
        assert_eq!((layout.waves, layout.tmpring & 0xfff), (96 * 32, 512));
    }

    #[test]
    fn sizes_round_up_to_the_unit() {
        assert_eq!(MI210.layout(4, 64, 1).unwrap().wave_bytes, 1024);
        assert_eq!(NAVI31.layout(4, 32, 1).unwrap().wave_bytes, 256);
        assert_eq!(NAVI31.layout(12, 32, 1).unwrap().wave_bytes, 512);
        assert!(matches!(MI210.layout(262_144, 64, 1), Err(Error::WaveTooLarge { .. })));
    }
}

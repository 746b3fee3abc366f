//! The context save area: where the waves of a queue go when it is preempted (compute wave save and restore).
//!
//! For each XCC a slice of control stack and saved waves; behind the slices of all XCCs the debugger's memory. The
//! kernel checks the sizes at CREATE_QUEUE against numbers it computes itself (`kfd_queue_ctx_save_restore_size` in
//! `drivers/gpu/drm/amd/amdkfd/kfd_queue.c`), and newer ones put two of them in the topology.

use crate::topology::Node;
use crate::types::{GfxTarget, PAGE_SIZE, page_up};
use crate::uapi::{ContextSaveAreaHeader, Record};

/// Why the sizes cannot be told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContextSaveError {
    /// A topology line the formula needs is absent or 0.
    #[error("topology node {node}: {key} is {}, and the context save area is computed from it", value.map_or("absent".to_string(), |value| value.to_string()))]
    Property {
        /// Node.
        node: u32,
        /// Key.
        key: &'static str,
        /// Value, none when absent.
        value: Option<u32>,
    },
    /// The sizes do not fit what CREATE_QUEUE takes.
    #[error("topology node {node}: its numbers make a context save area too large to be")]
    TooLarge {
        /// Node.
        node: u32,
    },
}

/// Where a size comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The topology lines `cwsr_size` and `ctl_stack_size`: the kernel's own numbers.
    Topology,
    /// The kernel's formula, computed here, for kernels without these lines.
    Formula,
}

/// Sizes of a context save area in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextSave {
    /// Control stack of one XCC: `ctl_stack_size` of CREATE_QUEUE.
    pub control_stack: u32,
    /// Control stack and wave data of one XCC: `ctx_save_restore_size` of CREATE_QUEUE, and the stride of the slices.
    pub slice: u32,
    /// Debugger's memory of one XCC. No kernel tells it.
    pub debug: u32,
    /// XCCs.
    pub num_xcc: u32,
    /// The whole buffer: slices and debugger's memory of all XCCs in whole pages.
    pub total: u64,
    /// Where `control_stack` and `slice` come from.
    pub origin: Origin,
    /// `control_stack` and `slice` as the formula has them, to compare with what the topology says.
    pub formula: (u32, u32),
}

const SGPR_BYTES_PER_CU: u64 = 0x4000;
const LDS_BYTES_PER_CU: u64 = 0x1_0000;
const HWREG_BYTES_PER_CU: u64 = 0x1000;
/// Debugger's memory a wave.
const DEBUG_BYTES_PER_WAVE: u64 = 32;
/// Behind the header in the control stack.
const CONTROL_STACK_TAIL: u64 = 8;
/// gfx10 hardware has a control stack of 28 KiB at most.
const GFX10_CONTROL_STACK_MAX: u64 = 0x7000;

/// Vector register bytes of a compute unit.
fn vgpr_bytes_per_cu(target: GfxTarget) -> u64 {
    match target.version() {
        90008 | 90010 | 90400..=90499 | 90500 => 0x8_0000,
        110000 | 110001 | 110501 | 120000 | 120001 => 0x6_0000,
        _ => 0x4_0000,
    }
}

impl ContextSave {
    /// The sizes for a GPU: the kernel's numbers where the topology has them, the formula elsewhere. The debugger's
    /// memory is always from the formula.
    pub fn of(node: &Node, target: GfxTarget) -> Result<ContextSave, ContextSaveError> {
        let mut save = ContextSave::by_formula(node, target)?;
        let lines = (node.properties.cwsr_size, node.properties.ctl_stack_size);
        if let (Some(slice), Some(control_stack)) = lines
            && slice > 0
            && control_stack > 0
        {
            (save.slice, save.control_stack, save.origin) = (slice, control_stack, Origin::Topology);
            save.total =
                total(slice, save.debug, save.num_xcc).ok_or(ContextSaveError::TooLarge { node: node.index })?;
        }
        Ok(save)
    }

    /// The kernel's formula.
    pub fn by_formula(node: &Node, target: GfxTarget) -> Result<ContextSave, ContextSaveError> {
        let properties = &node.properties;
        let positive = |key, value: Option<u32>| match value {
            Some(value) if value > 0 => Ok(u64::from(value)),
            _ => Err(ContextSaveError::Property { node: node.index, key, value }),
        };
        let num_xcc = positive("num_xcc", Some(node.num_xcc()))?;
        let simds = positive("simd_count", properties.simd_count)?;
        let cus = simds / positive("simd_per_cu", properties.simd_per_cu)? / num_xcc;
        let gfx10_or_later = target.version() >= 100_100;
        let waves = if gfx10_or_later {
            32 * cus
        } else {
            // The topology counts the arrays of all XCCs.
            let arrays = positive("array_count", properties.array_count)? / num_xcc;
            let engines = arrays / positive("simd_arrays_per_engine", properties.simd_arrays_per_engine)?;
            (40 * cus).min(512 * engines)
        };
        let lds = match target.version() {
            90500 => 1024 * positive("lds_size_in_kb", properties.lds_size_in_kb)?,
            _ => LDS_BYTES_PER_CU,
        };
        let per_cu = vgpr_bytes_per_cu(target) + SGPR_BYTES_PER_CU + lds + HWREG_BYTES_PER_CU;
        let per_wave = if gfx10_or_later { 12 } else { 8 };
        let header = ContextSaveAreaHeader::LAYOUT.size as u64;

        let too_large = ContextSaveError::TooLarge { node: node.index };
        // No overflow: `cus` and `waves` come from 32-bit numbers, `per_cu` is below 2^43.
        let mut control_stack = (header + CONTROL_STACK_TAIL + waves * per_wave).next_multiple_of(PAGE_SIZE);
        if target.major() == 10 {
            control_stack = control_stack.min(GFX10_CONTROL_STACK_MAX);
        }
        let sizes = || {
            let wave_data = page_up(cus.checked_mul(per_cu)?)?;
            let slice = u32::try_from(control_stack.checked_add(wave_data)?).ok()?;
            let debug = u32::try_from((waves * DEBUG_BYTES_PER_WAVE).next_multiple_of(64)).ok()?;
            let num_xcc = u32::try_from(num_xcc).ok()?;
            let control_stack = u32::try_from(control_stack).ok()?;
            Some(ContextSave {
                control_stack,
                slice,
                debug,
                num_xcc,
                total: total(slice, debug, num_xcc)?,
                origin: Origin::Formula,
                formula: (control_stack, slice),
            })
        };
        sizes().ok_or(too_large)
    }

    /// The header of each XCC's slice with its offset in the area. `error_address` and `error_event` say where the
    /// kernel reports exceptions of the queue, 0 for nowhere.
    pub fn headers(&self, error_address: u64, error_event: u32) -> Vec<(u64, ContextSaveAreaHeader)> {
        let header = |xcc: u32| ContextSaveAreaHeader {
            // `total` was checked to fit 32 bits, and these are parts of it.
            debug_offset: (self.num_xcc - xcc) * self.slice,
            debug_size: self.debug * self.num_xcc,
            err_payload_addr: error_address,
            err_event_id: error_event,
            ..Default::default()
        };
        (0..self.num_xcc).map(|xcc| (u64::from(xcc) * u64::from(self.slice), header(xcc))).collect()
    }
}

/// Bytes of the whole area. None beyond 32 bits, which the offsets in the headers have.
fn total(slice: u32, debug: u32, num_xcc: u32) -> Option<u64> {
    let bytes = page_up((u64::from(slice) + u64::from(debug)).checked_mul(u64::from(num_xcc))?)?;
    (bytes <= u64::from(u32::MAX)).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::NodeProperties;
    use crate::types::GpuId;
    use proptest::prelude::*;

    fn node(properties: NodeProperties) -> Node {
        Node { index: 1, gpu_id: Some(GpuId(1)), properties }
    }

    /// One GPU: version, compute units an XCC, XCCs, SIMDs a compute unit, shader arrays an XCC, arrays an engine, LDS.
    fn gpu(version: u32, cus: u32, xccs: u32, simds: u32, arrays: u32, per_engine: u32, lds: u32) -> Node {
        node(NodeProperties {
            gfx_target_version: Some(version),
            simd_count: Some(cus * xccs * simds),
            simd_per_cu: Some(simds),
            num_xcc: Some(xccs),
            array_count: Some(arrays * xccs),
            simd_arrays_per_engine: Some(per_engine),
            lds_size_in_kb: Some(lds),
            ..Default::default()
        })
    }

    /// Sizes the kernel wants, for GPUs as they are sold.
    #[test]
    fn sizes_of_known_gpus() {
        let rows = [
            // GPU, control stack, slice, debug, whole buffer
            (gpu(90006, 60, 1, 4, 4, 1, 64), 20480, 20910080, 65536, 20975616),
            (gpu(90008, 120, 1, 4, 8, 1, 64), 36864, 73273344, 131072, 73404416),
            (gpu(90010, 104, 1, 4, 8, 1, 64), 36864, 63508480, 131072, 63639552),
            (gpu(90402, 38, 8, 4, 4, 1, 64), 12288, 23203840, 48640, 186019840),
            (gpu(90402, 38, 1, 4, 4, 1, 64), 12288, 23203840, 48640, 23252992),
            (gpu(90402, 38, 6, 4, 4, 1, 64), 12288, 23203840, 48640, 139517952),
            (gpu(90500, 32, 8, 4, 4, 1, 160), 12288, 22687744, 40960, 181829632),
            (gpu(100100, 40, 1, 2, 4, 2, 64), 16384, 13942784, 40960, 13983744),
            (gpu(100300, 80, 1, 2, 8, 2, 64), 28672, 27881472, 81920, 27963392),
            (gpu(110000, 96, 1, 2, 12, 2, 64), 40960, 46047232, 98304, 46145536),
            (gpu(110001, 60, 1, 2, 6, 2, 64), 24576, 28778496, 61440, 28839936),
            (gpu(110002, 32, 1, 2, 4, 2, 64), 16384, 11157504, 32768, 11190272),
            (gpu(110501, 40, 1, 2, 4, 2, 64), 16384, 19185664, 40960, 19226624),
            (gpu(120000, 32, 1, 2, 4, 2, 64), 16384, 15351808, 32768, 15384576),
            (gpu(120001, 64, 1, 2, 8, 2, 64), 28672, 30699520, 65536, 30765056),
        ];
        for (node, control_stack, slice, debug, total) in rows {
            let target = node.target().unwrap();
            let save = ContextSave::of(&node, target).unwrap();
            assert_eq!(save.origin, Origin::Formula);
            assert_eq!(
                (save.control_stack, save.slice, save.debug, save.total),
                (control_stack, slice, debug, total),
                "{target} with {} XCCs",
                save.num_xcc
            );
        }
    }

    #[test]
    fn the_topology_knows_better() {
        let mut node = gpu(110501, 40, 1, 2, 4, 2, 64);
        node.properties.cwsr_size = Some(13942784);
        node.properties.ctl_stack_size = Some(16384);
        let save = ContextSave::of(&node, node.target().unwrap()).unwrap();
        assert_eq!((save.slice, save.origin, save.total), (13942784, Origin::Topology, 13983744));
        // Zero is what a kernel without context save prints.
        node.properties.cwsr_size = Some(0);
        assert_eq!(ContextSave::of(&node, node.target().unwrap()).unwrap().origin, Origin::Formula);
    }

    #[test]
    fn headers_of_two_xccs() {
        let node = gpu(90402, 38, 2, 4, 4, 1, 64);
        let save = ContextSave::of(&node, node.target().unwrap()).unwrap();
        let headers = save.headers(0x1000, 7);
        assert_eq!(headers.len(), 2);
        assert_eq!(headers[1].0, 23203840);
        let offsets: Vec<u64> = headers.iter().map(|(at, header)| at + u64::from(header.debug_offset)).collect();
        assert_eq!(offsets, [2 * 23203840; 2], "both point behind the last slice");
        for (_, header) in headers {
            assert_eq!((header.debug_size, header.err_payload_addr, header.err_event_id), (97280, 0x1000, 7));
        }
    }

    #[test]
    fn lines_that_are_needed() {
        let mut broken = gpu(90010, 104, 1, 4, 8, 1, 64);
        broken.properties.simd_per_cu = None;
        let error = ContextSave::of(&broken, broken.target().unwrap()).unwrap_err();
        insta::assert_snapshot!(error, @"topology node 1: simd_per_cu is absent, and the context save area is computed from it");
        let mut broken = gpu(90010, 104, 1, 4, 8, 1, 64);
        broken.properties.simd_arrays_per_engine = Some(0);
        let error = ContextSave::of(&broken, broken.target().unwrap()).unwrap_err();
        insta::assert_snapshot!(error, @"topology node 1: simd_arrays_per_engine is 0, and the context save area is computed from it");
    }

    proptest! {
        #[test]
        fn any_numbers_are_handled(values: [Option<u32>; 8], version in prop_oneof![Just(90010u32), Just(90500), Just(100300), Just(120001)]) {
            let [simd_count, simd_per_cu, num_xcc, array_count, simd_arrays_per_engine, lds_size_in_kb, cwsr_size, ctl_stack_size] = values;
            let node = node(NodeProperties {
                gfx_target_version: Some(version), simd_count, simd_per_cu, num_xcc, array_count,
                simd_arrays_per_engine, lds_size_in_kb, cwsr_size, ctl_stack_size, ..Default::default()
            });
            let target = node.target().unwrap();
            if let Ok(save) = ContextSave::of(&node, target) && save.num_xcc < 1000 {
                let _ = save.headers(0, 0);
            }
        }
    }
}

//! Cache entries (`kfd_crat.c`, `kfd_fill_cache_info`): one for each instance, with the compute units that share it.

use super::{Properties, simd_id_base};
use crate::kernel::device::Device;
use crate::machine::{Cache, Holds, SharedBy};

/// `HSA_CACHE_TYPE_HSACU`: belongs to compute units.
const TYPE_COMPUTE_UNIT: u32 = 8;

/// Bytes of a shader array's part of a sibling map.
const BYTES_PER_ARRAY: usize = 4;

/// `properties` of every cache of a GPU, those shared by compute units first.
pub fn properties(device: &Device) -> Vec<String> {
    let gpu = &device.profile;
    let mut entries = Vec::new();
    // Enabled compute units of each array: the total spread evenly, low numbers first.
    let arrays: Vec<u32> = (0..gpu.shader_arrays)
        .map(|array| {
            gpu.compute_units * (array + 1) / gpu.shader_arrays - gpu.compute_units * array / gpu.shader_arrays
        })
        .collect();
    for cache in gpu.caches {
        match cache.shared_by {
            SharedBy::Cus(sharers) => {
                let mut first_simd = simd_id_base(device);
                for &cus in &arrays {
                    for first in (0..cus).step_by(sharers as usize) {
                        let siblings = sharers.min(cus - first);
                        entries.push(entry(cache, first_simd + first * gpu.simds_per_cu, &[mask(siblings)]));
                    }
                    first_simd += cus * gpu.simds_per_cu;
                }
            }
            SharedBy::Array => {
                let mut first_simd = simd_id_base(device);
                for &cus in &arrays {
                    entries.push(entry(cache, first_simd, &[mask(cus)]));
                    first_simd += cus * gpu.simds_per_cu;
                }
            }
            SharedBy::Device => {
                // The kernel describes the caches of the first XCC.
                let first_xcc = &arrays[..(gpu.shader_arrays / gpu.xccs) as usize];
                let masks: Vec<u32> = first_xcc.iter().map(|cus| mask(*cus)).collect();
                entries.push(entry(cache, simd_id_base(device), &masks));
            }
        }
    }
    entries
}

fn mask(cus: u32) -> u32 {
    if cus >= 32 { u32::MAX } else { (1 << cus) - 1 }
}

fn entry(cache: &Cache, processor: u32, siblings: &[u32]) -> String {
    let mut p = Properties::default();
    p.add("processor_id_low", processor);
    p.add("level", cache.level);
    p.add("size", cache.kib);
    p.add("cache_line_size", cache.line);
    p.add("cache_lines_per_tag", 1);
    p.add("association", 0);
    p.add("latency", 0);
    let content = match cache.holds {
        Holds::Data => 1,
        Holds::Instructions => 2,
    };
    p.add("type", TYPE_COMPUTE_UNIT | content);
    let bits: Vec<&str> = siblings
        .iter()
        .flat_map(|mask| (0..8 * BYTES_PER_ARRAY).map(move |bit| if mask >> bit & 1 == 1 { "1" } else { "0" }))
        .collect();
    p.add("sibling_map", bits.join(","));
    p.0
}

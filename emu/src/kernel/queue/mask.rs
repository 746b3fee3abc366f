//! CU masks: which compute units the bits of SET_CU_MASK stand for (`mqd_symmetrically_map_cu_mask`).
//!
//! Bits go round the shader engines, so that a mask of the first bits uses all of them: bit n is of engine n modulo the
//! engines, then of the next shader array, then of the next compute unit of each. On GFX10 and later a work-group processor's
//! two compute units are neighbouring bits. With several XCCs the bits go round the XCCs first. Bits beyond the mask are 0.

use crate::machine::GpuProfile;
use std::sync::Arc;

/// The compute units that a mask turns on, each as the number of its bit. Where an XCC is left with none the queue hangs:
/// nothing then.
pub fn units(gpu: &GpuProfile, mask: &[u32]) -> Arc<[u32]> {
    let bits = (mask.len() as u32 * 32).min(gpu.compute_units);
    let on: Vec<u32> = (0..bits).filter(|bit| mask[*bit as usize / 32] >> (bit % 32) & 1 != 0).collect();
    let served = (0..gpu.xccs).all(|xcc| on.iter().any(|bit| bit % gpu.xccs == xcc));
    if served { on.into() } else { Arc::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::Target;
    use crate::machine::profile;

    #[test]
    fn bits_of_masks() {
        let gpu = profile(Target::Gfx90a);
        assert_eq!(*units(&gpu, &[0b1011]), [0, 1, 3]);
        assert_eq!(units(&gpu, &[u32::MAX; 32]).len(), 104);
        assert_eq!(units(&gpu, &[u32::MAX; 2]).len(), 64);
        assert!(units(&gpu, &[0]).is_empty());
        // Each of eight XCCs must have a compute unit.
        let gpu = profile(Target::Gfx942);
        assert!(units(&gpu, &[0x7f]).is_empty());
        assert_eq!(units(&gpu, &[0xff]).len(), 8);
    }
}

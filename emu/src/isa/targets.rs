//! Fields of immediates that differ between targets.

use super::{Family, Target};

/// What `s_waitcnt` waits for: a counter may be at most this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waits {
    /// Vector memory.
    pub vm: u8,
    /// Exports.
    pub exp: u8,
    /// LDS, GDS, scalar memory, messages.
    pub lgkm: u8,
}

impl Waits {
    /// The greatest counts there are: no wait.
    pub fn none(target: Target) -> Waits {
        wait_counts(target, 0xffff)
    }
}

/// Takes `s_waitcnt`'s immediate apart (LLVM AMDGPUUsage, "s_waitcnt").
///
/// | family | vmcnt | expcnt | lgkmcnt |
/// |---|---|---|---|
/// | GFX9 | 3:0 and 15:14 | 6:4 | 11:8 |
/// | GFX10 | 3:0 and 15:14 | 6:4 | 13:8 |
/// | GFX11, GFX12 | 15:10 | 2:0 | 9:4 |
pub fn wait_counts(target: Target, simm16: u16) -> Waits {
    let field = |lo: u32, width: u32| (simm16 >> lo & ((1 << width) - 1)) as u8;
    match target.family() {
        Family::Gfx9 => Waits { vm: field(0, 4) | field(14, 2) << 4, exp: field(4, 3), lgkm: field(8, 4) },
        Family::Gfx10 => Waits { vm: field(0, 4) | field(14, 2) << 4, exp: field(4, 3), lgkm: field(8, 6) },
        Family::Gfx11 | Family::Gfx12 => Waits { vm: field(10, 6), exp: field(0, 3), lgkm: field(4, 6) },
    }
}

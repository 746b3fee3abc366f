//! Operations that move values across lanes or between scalar and vector registers.

use crate::cu::inst::Inst;
use crate::cu::lower::{Lowering, Unsupported};
use crate::isa::Decoded;

/// Lowers one of them; None when the operation is another.
pub fn lower(decoded: &Decoded, lowering: &mut Lowering) -> Option<Result<Inst, Unsupported>> {
    let _ = (decoded, lowering);
    None
}

//! Two operations in one instruction.

use crate::cu::inst::Inst;
use crate::cu::lower::{Lowering, Unsupported};
use crate::isa::Decoded;

/// VOPD.
pub fn lower_dual(decoded: &Decoded, lowering: &mut Lowering) -> Result<Inst, Unsupported> {
    let _ = (decoded, lowering);
    Err(Unsupported::Operation)
}

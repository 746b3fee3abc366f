//! Scalar operations: SOP1, SOP2, SOPK, SOPC, SOPP.

use super::inst::Inst;
use super::lower::{Lowering, Unsupported};
use crate::isa::Decoded;

/// Lowers an instruction of one of the scalar formats.
///
/// # Errors
/// [`Unsupported`] when the operation or one of its operands is not executed here.
pub fn lower(decoded: &Decoded, lowering: &mut Lowering) -> Result<Inst, Unsupported> {
    let _ = (decoded, lowering);
    Err(Unsupported::Operation)
}

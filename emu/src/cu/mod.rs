//! Compute units: waves, LDS, memory access, scheduling.
//!
//! A kernel's instructions are decoded once into [`inst::Inst`]s, each with the handler that executes it. Registers are
//! rows of lanes; a handler works on whole rows, compiled for each vector width of the host ([`level`]).

mod census;
mod code;
pub mod dispatch;
pub mod engine;
pub mod fidelity;
mod group;
pub mod inst;
mod interp;
pub mod launch;
pub mod level;
pub mod lower;
pub mod mem;
mod refusal;
pub mod salu;
mod schedule;
#[cfg(test)]
mod tests;
// Comparisons are spelled out as the hardware does them with NaNs, constants as the manuals print them, and lanes are indexed.
#[allow(
    clippy::approx_constant,
    clippy::collapsible_if,
    clippy::double_comparisons,
    clippy::eq_op,
    clippy::if_same_then_else,
    clippy::manual_clamp,
    clippy::manual_range_contains,
    clippy::needless_lifetimes,
    clippy::needless_range_loop,
    clippy::neg_cmp_op_on_partial_ord,
    clippy::new_without_default
)]
pub mod valu;
pub mod wave;

/// How close an instruction comes to hardware in waves of so many lanes, by what the emulator itself does when it reaches
/// it.
///
/// # Errors
/// [`lower::Unsupported`] when reaching it raises an illegal-instruction exception.
pub fn support(
    target: crate::isa::Target,
    lanes: u32,
    decoded: &crate::isa::Decoded,
) -> Result<fidelity::Fidelity, lower::Unsupported> {
    let mut constants = lower::ConstantPool::default();
    let mut lowering = lower::Lowering {
        target,
        lanes,
        level: level::HostLevel::Base,
        vgprs: 256,
        agpr_base: 256,
        rows: 512,
        constants: &mut constants,
    };
    let inst = code::lower(decoded, &mut lowering)?;
    Ok(inst.extra.map_or(fidelity::Fidelity::Exact, |extra| extra.fidelity))
}

//! The instruction sets: targets, decoded instructions, tables, disassembly.
//!
//! Decode tables are data harvested from LLVM's disassembler (`cargo run -p kfdrun-harvest`), one a target. A decoded
//! instruction is the same type for all targets; what differs between generations (selector numbers, field positions)
//! ends here.

mod decode;
mod disasm;
mod inst;
pub mod layout;
pub mod table;
pub mod targets;
#[cfg(test)]
mod tests;

pub use decode::{DecodeError, EXCLUDED, decode};
pub use disasm::disassemble;
pub use inst::*;

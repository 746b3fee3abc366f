//! From decoded to executable instructions: resolves operands for a wave size and a register allocation.

use super::inst::Src;
use super::level::HostLevel;
use super::wave::{Row, scalar};
use crate::isa::{Operand, Special, Target};
use std::collections::HashMap;

/// Why an instruction cannot be executed; it becomes an illegal-instruction exception when reached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    /// No semantics for the operation.
    #[error("this operation is not implemented")]
    Operation,
    /// No semantics for the operation, for this reason.
    #[error("{0}")]
    Refused(&'static str),
    /// The operand is not one this operation takes.
    #[error("{0}")]
    Operand(&'static str),
    /// A register beyond the wave's allocation.
    #[error("v{register} is beyond the {allocated} allocated registers")]
    Register {
        /// Number.
        register: u32,
        /// Allocated.
        allocated: u32,
    },
}

/// How a constant operand becomes bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// 16-bit integer in a 32-bit register.
    B16,
    /// f16 in the low half.
    F16,
    /// 32-bit integer or f32 (inline floats are f32 for both).
    B32,
    /// 64 bits, literals sign-extended.
    I64,
    /// 64 bits, literals zero-extended.
    B64,
    /// f64: inline floats as f64, literals the high half.
    F64,
}

impl Width {
    /// Dwords of a value.
    pub fn dwords(self) -> u32 {
        match self {
            Width::B16 | Width::F16 | Width::B32 => 1,
            Width::I64 | Width::B64 | Width::F64 => 2,
        }
    }
}

/// Rows of constants that instructions use, one value in all lanes. Rows never move once made.
#[derive(Default)]
pub struct ConstantPool {
    rows: Vec<Row>,
    index: HashMap<(u64, u32), u32>,
}

/// Constants a code may use; a fixed capacity keeps rows where they are.
const POOL_ROWS: usize = 16384;

impl ConstantPool {
    /// First row.
    pub fn as_ptr(&mut self) -> *const u32 {
        if self.rows.capacity() == 0 {
            self.rows.reserve_exact(POOL_ROWS);
        }
        self.rows.as_ptr().cast()
    }

    /// Byte offset of the row (two rows for `dwords` 2) that holds `value`.
    fn intern(&mut self, value: u64, dwords: u32) -> Result<u32, Unsupported> {
        self.as_ptr();
        let value = if dwords == 1 { value & 0xffff_ffff } else { value };
        if let Some(&offset) = self.index.get(&(value, dwords)) {
            return Ok(offset);
        }
        if self.rows.len() + dwords as usize > POOL_ROWS {
            return Err(Unsupported::Operand("the code uses more constants than the emulator keeps"));
        }
        let offset = (self.rows.len() * size_of::<Row>()) as u32;
        self.rows.push(Row([value as u32; 64]));
        if dwords == 2 {
            self.rows.push(Row([(value >> 32) as u32; 64]));
        }
        self.index.insert((value, dwords), offset);
        Ok(offset)
    }
}

/// What lowering needs to know.
pub struct Lowering<'a> {
    /// Target.
    pub target: Target,
    /// Lanes of the wave: 32 or 64.
    pub lanes: u32,
    /// Vector width of the host to pick handlers for.
    pub level: HostLevel,
    /// VGPR rows allocated.
    pub vgprs: u32,
    /// Row of AccVGPR 0, where the target has any.
    pub agpr_base: u32,
    /// Rows allocated in all.
    pub rows: u32,
    /// Constants.
    pub constants: &'a mut ConstantPool,
}

impl Lowering<'_> {
    /// Byte offset of the first row of a VGPR or AccVGPR operand.
    pub fn row(&self, operand: Operand) -> Result<u32, Unsupported> {
        let (first, dwords, limit) = match operand {
            Operand::Vgpr { reg, dwords, .. } => (reg as u32, dwords as u32, self.vgprs),
            Operand::Agpr { reg, dwords } => (self.agpr_base + reg as u32, dwords as u32, self.rows),
            _ => return Err(Unsupported::Operand("a vector register is needed here")),
        };
        if first + dwords > limit {
            return Err(Unsupported::Register { register: first + dwords - 1, allocated: limit });
        }
        Ok(first * self.lanes * 4)
    }

    /// Number of the first scalar register of an operand, for reading or writing.
    pub fn scalar(&self, operand: Operand) -> Result<u8, Unsupported> {
        Ok(match operand {
            Operand::Sgpr { reg, .. } => reg,
            Operand::Ttmp { reg, .. } => scalar::TTMP0 + reg,
            Operand::Special { reg, .. } => match reg {
                Special::FlatScratchLo if self.target.family() == crate::isa::Family::Gfx9 => 102,
                Special::FlatScratchHi if self.target.family() == crate::isa::Family::Gfx9 => 103,
                Special::FlatScratchLo => scalar::FLAT_SCRATCH,
                Special::FlatScratchHi => scalar::FLAT_SCRATCH + 1,
                Special::XnackMaskLo => 104,
                Special::XnackMaskHi => 105,
                Special::VccLo => scalar::VCC,
                Special::VccHi => scalar::VCC + 1,
                Special::M0 => scalar::M0,
                Special::Null => scalar::NULL,
                Special::ExecLo => scalar::EXEC,
                Special::ExecHi => scalar::EXEC + 1,
                Special::SharedBase => scalar::SHARED_BASE,
                Special::SharedLimit => scalar::SHARED_LIMIT,
                Special::PrivateBase => scalar::PRIVATE_BASE,
                Special::PrivateLimit => scalar::PRIVATE_LIMIT,
                // Refreshed in front of each instruction that reads them.
                Special::Vccz => scalar::VCCZ,
                Special::Execz => scalar::EXECZ,
                Special::Scc => scalar::SCC,
                Special::PopsExitingWaveId | Special::LdsDirect => {
                    return Err(Unsupported::Operand("this special register is not emulated as an operand"));
                }
            },
            _ => return Err(Unsupported::Operand("a scalar register is needed here")),
        })
    }

    /// The bits of a constant operand, None for a register.
    pub fn constant(operand: Operand, width: Width) -> Option<u64> {
        Some(match operand {
            Operand::Int(value) => match width {
                Width::B16 | Width::F16 => value as i16 as u16 as u64,
                Width::B32 => value as i32 as u32 as u64,
                Width::I64 | Width::B64 | Width::F64 => value as i64 as u64,
            },
            Operand::Imm(value) => match width.dwords() {
                1 => value as u32 as u64,
                _ => value as i64 as u64,
            },
            Operand::Float(selector) => inline_float(selector, width)?,
            Operand::Literal(value) => match width {
                Width::B16 | Width::F16 | Width::B32 | Width::B64 => value as u64,
                Width::I64 => value as i32 as i64 as u64,
                Width::F64 => (value as u64) << 32,
            },
            _ => return None,
        })
    }

    /// A source operand: a row, a constant row or a scalar register.
    pub fn src(&mut self, operand: Operand, width: Width) -> Result<Src, Unsupported> {
        if let Some(value) = Self::constant(operand, width) {
            return Ok(Src::constant(self.constants.intern(value, width.dwords())?));
        }
        match operand {
            Operand::Vgpr { .. } | Operand::Agpr { .. } => Ok(Src::row(self.row(operand)?)),
            _ => Ok(Src::scalar(self.scalar(operand)?)),
        }
    }
}

/// Inline float constants, LLVM AMDGPUUsage "Operand Syntax": 0.5, 1.0, 2.0, 4.0 with both signs and 1/(2*pi).
fn inline_float(selector: u8, width: Width) -> Option<u64> {
    let index = usize::from(selector.checked_sub(240)?);
    const F16: [u16; 9] = [0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000, 0xc000, 0x4400, 0xc400, 0x3118];
    const F32: [u32; 9] = [
        0x3f00_0000,
        0xbf00_0000,
        0x3f80_0000,
        0xbf80_0000,
        0x4000_0000,
        0xc000_0000,
        0x4080_0000,
        0xc080_0000,
        0x3e22_f983,
    ];
    const F64: [u64; 9] = [
        0x3fe0_0000_0000_0000,
        0xbfe0_0000_0000_0000,
        0x3ff0_0000_0000_0000,
        0xbff0_0000_0000_0000,
        0x4000_0000_0000_0000,
        0xc000_0000_0000_0000,
        0x4010_0000_0000_0000,
        0xc010_0000_0000_0000,
        0x3fc4_5f30_6dc9_c882,
    ];
    match width {
        Width::B16 | Width::F16 => F16.get(index).map(|bits| *bits as u64),
        Width::B32 => F32.get(index).map(|bits| *bits as u64),
        Width::I64 | Width::B64 | Width::F64 => F64.get(index).copied(),
    }
}

//! Instructions ready to execute.

use super::fidelity::Fidelity;
use super::wave::Wave;
use crate::isa::Decoded;
use std::any::Any;

/// Executes one instruction on a wave. `wave.pc` already points behind the instruction; a branch overwrites it.
///
/// # Safety
/// The instruction must have been lowered for this wave's size and register count: operands are offsets into its
/// register file and are not checked again.
pub type Handler = unsafe fn(&mut Wave, &Inst);

/// A source operand of a handler.
///
/// | kind | bits 31:30 | rest |
/// |---|---|---|
/// | row of the register file (VGPR, AccVGPR) | 0 | byte offset of the row |
/// | row of constants | 1 | byte offset in the code's constant pool, whose rows hold one value in all 64 lanes |
/// | scalar register | 2 | number, see [`super::wave::scalar`] |
/// | intermediate row | 3 | byte offset in [`Wave::temp`] |
///
/// Operands of 64 bits and more take consecutive rows or scalar registers, low part first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Src(pub u32);

impl Src {
    const KIND: u32 = 3 << 30;

    /// Row of the register file at this byte offset.
    pub fn row(offset: u32) -> Src {
        debug_assert!(offset < 1 << 30);
        Src(offset)
    }

    /// Row of the constant pool at this byte offset.
    pub fn constant(offset: u32) -> Src {
        debug_assert!(offset < 1 << 30);
        Src(offset | 1 << 30)
    }

    /// Scalar register.
    pub fn scalar(register: u8) -> Src {
        Src(register as u32 | 2 << 30)
    }

    /// Row at this byte offset of the wave's intermediate rows.
    pub fn temp(offset: u32) -> Src {
        debug_assert!(offset < 1 << 30);
        Src(offset | 3 << 30)
    }

    /// Is it a register row?
    #[inline(always)]
    pub fn is_row(self) -> bool {
        self.0 & Src::KIND == 0
    }

    /// Is it a constant row?
    #[inline(always)]
    pub fn is_constant(self) -> bool {
        self.0 & Src::KIND == 1 << 30
    }

    /// Is it a scalar register?
    #[inline(always)]
    pub fn is_scalar(self) -> bool {
        self.0 & Src::KIND == 2 << 30
    }

    /// Byte offset or register number.
    #[inline(always)]
    pub fn value(self) -> u32 {
        self.0 & !Src::KIND
    }
}

/// A predecoded instruction.
pub struct Inst {
    /// The handler. None: not decoded yet.
    pub run: Option<Handler>,
    /// Destination: byte offset of its first row in the register file, or number of its first scalar register.
    pub dst: u32,
    /// Second destination (carry-out, mask): scalar register number.
    pub dst2: u32,
    /// Sources.
    pub src: [Src; 3],
    /// Immediate: branch target offset, memory offset, shift and the like, as the handler takes it.
    pub imm: i32,
    /// Bytes of the encoding.
    pub len: u8,
    /// Handler's own small flags.
    pub flags: u8,
    /// Handler's own small number.
    pub aux: u16,
    /// What rare paths and reports need.
    pub extra: Option<Box<Extra>>,
}

impl Inst {
    /// An instruction with this handler, its fidelity, and `decoded` kept for reports; operands are for the caller to
    /// fill in.
    pub fn new(run: Handler, decoded: &Decoded, fidelity: Fidelity) -> Inst {
        Inst {
            run: Some(run),
            dst: 0,
            dst2: 0,
            src: [Src(0); 3],
            imm: 0,
            len: decoded.len,
            flags: 0,
            aux: 0,
            extra: Some(Box::new(Extra { decoded: decoded.clone(), fidelity, data: None })),
        }
    }
}

/// The cold part of an [`Inst`].
pub struct Extra {
    /// The instruction as decoded.
    pub decoded: Decoded,
    /// How close the operation comes to hardware.
    pub fidelity: Fidelity,
    /// Whatever a handler with modifiers prepared for itself.
    pub data: Option<Box<dyn Any + Send + Sync>>,
}

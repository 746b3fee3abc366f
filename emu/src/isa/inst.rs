//! Decoded instructions.

use std::fmt;

/// A processor that the emulated machine knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Target {
    Gfx900,
    Gfx906,
    Gfx90a,
    Gfx942,
    Gfx1030,
    Gfx1100,
    Gfx1201,
}

/// Encoding family: targets that share field positions and selector numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Family {
    Gfx9,
    Gfx10,
    Gfx11,
    Gfx12,
}

impl Target {
    /// All of them.
    pub const ALL: [Target; 7] = [
        Target::Gfx900,
        Target::Gfx906,
        Target::Gfx90a,
        Target::Gfx942,
        Target::Gfx1030,
        Target::Gfx1100,
        Target::Gfx1201,
    ];

    /// LLVM's `-mcpu` name.
    pub fn name(self) -> &'static str {
        match self {
            Target::Gfx900 => "gfx900",
            Target::Gfx906 => "gfx906",
            Target::Gfx90a => "gfx90a",
            Target::Gfx942 => "gfx942",
            Target::Gfx1030 => "gfx1030",
            Target::Gfx1100 => "gfx1100",
            Target::Gfx1201 => "gfx1201",
        }
    }

    /// The target with this `-mcpu` name.
    pub fn from_name(name: &str) -> Option<Target> {
        Target::ALL.into_iter().find(|target| target.name() == name)
    }

    /// Encoding family.
    pub fn family(self) -> Family {
        match self {
            Target::Gfx900 | Target::Gfx906 | Target::Gfx90a | Target::Gfx942 => Family::Gfx9,
            Target::Gfx1030 => Family::Gfx10,
            Target::Gfx1100 => Family::Gfx11,
            Target::Gfx1201 => Family::Gfx12,
        }
    }

    /// gfx90a and gfx942: one register file for VGPRs and AccVGPRs, 64-bit operands on even registers.
    pub fn unified_agprs(self) -> bool {
        matches!(self, Target::Gfx90a | Target::Gfx942)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Encoding of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Format {
    Sop1,
    Sop2,
    Sopk,
    Sopc,
    Sopp,
    Smem,
    Vop1,
    Vop2,
    Vopc,
    Vop3,
    Vop3p,
    Vopd,
    Ds,
    Flat,
    Global,
    Scratch,
    Mubuf,
    Mtbuf,
    Mimg,
    Exp,
    Vintrp,
    Ldsdir,
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&format!("{self:?}").to_uppercase())
    }
}

/// A scalar register that is not s0..s105.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Special {
    /// Low half of FLAT_SCRATCH where it is a register pair (GFX9 s102:103), `SRC_FLAT_SCRATCH_BASE` on GFX12.
    FlatScratchLo,
    FlatScratchHi,
    XnackMaskLo,
    XnackMaskHi,
    VccLo,
    VccHi,
    M0,
    /// Reads 0, writes nothing (GFX10 and later).
    Null,
    ExecLo,
    ExecHi,
    SharedBase,
    SharedLimit,
    PrivateBase,
    PrivateLimit,
    PopsExitingWaveId,
    Vccz,
    Execz,
    Scc,
    LdsDirect,
}

/// An operand, its selector already resolved for the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// The slot is not used by this instruction.
    None,
    /// `dwords` consecutive VGPRs from `reg`. `hi`: the high half of a 16-bit operand (true16, `.h`).
    Vgpr {
        /// First register.
        reg: u16,
        /// Registers.
        dwords: u8,
        /// High half.
        hi: bool,
    },
    /// Consecutive AccVGPRs.
    Agpr {
        /// First register.
        reg: u16,
        /// Registers.
        dwords: u8,
    },
    /// Consecutive SGPRs s0..s105.
    Sgpr {
        /// First register.
        reg: u8,
        /// Registers.
        dwords: u8,
    },
    /// Consecutive trap temporaries.
    Ttmp {
        /// First register.
        reg: u8,
        /// Registers.
        dwords: u8,
    },
    /// A special register, or the pair that begins there.
    Special {
        /// The register.
        reg: Special,
        /// Registers.
        dwords: u8,
    },
    /// Inline integer constant, -16..=64.
    Int(i8),
    /// Inline float constant by selector: 240 0.5, 241 -0.5, 242 1.0, 243 -1.0, 244 2.0, 245 -2.0, 246 4.0, 247 -4.0,
    /// 248 1/(2*pi). Its bits depend on the width of the operand.
    Float(u8),
    /// 32-bit literal that follows the instruction, or is part of it (`v_madmk`, `s_setreg_imm32`).
    Literal(u32),
    /// An immediate field: simm16 (sign-extended), hwreg, message, wait counts.
    Imm(i32),
    /// `off`: no address register.
    Off,
}

/// DPP controls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dpp {
    /// 16-lane rows.
    Dpp16 {
        /// `DPP_CTRL`, 9 bits.
        ctrl: u16,
        /// Rows that write.
        row_mask: u8,
        /// Banks that write.
        bank_mask: u8,
        /// `bound_ctrl`: invalid lanes read 0 and still write.
        bound_ctrl: bool,
        /// Fetch from inactive lanes.
        fi: bool,
    },
    /// 8-lane groups.
    Dpp8 {
        /// Source lane for each lane of a group.
        sel: [u8; 8],
        /// Fetch from inactive lanes.
        fi: bool,
    },
}

/// SDWA controls (GFX9, GFX10). Selections: 0..3 byte, 4 word 0, 5 word 1, 6 dword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sdwa {
    /// Part of the destination that is written.
    pub dst_sel: u8,
    /// 0 pad with zeros, 1 sign-extend, 2 preserve.
    pub dst_unused: u8,
    /// Part of source 0.
    pub src0_sel: u8,
    /// Part of source 1.
    pub src1_sel: u8,
    /// Sign-extend the selected part of source 0 / source 1 (bits 0, 1).
    pub sext: u8,
}

/// Modifiers. Bit n of a mask belongs to source n.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mods {
    /// Absolute value.
    pub abs: u8,
    /// Negate; `neg_lo` for VOP3P.
    pub neg: u8,
    /// `neg_hi` of VOP3P.
    pub neg_hi: u8,
    /// `op_sel`; bit 3 is the destination's.
    pub op_sel: u8,
    /// `op_sel_hi`.
    pub op_sel_hi: u8,
    /// Output modifier: 1 times 2, 2 times 4, 3 divided by 2.
    pub omod: u8,
    /// Clamp.
    pub clamp: bool,
    /// MFMA: broadcast size, block id, lane permutation (or negation for f64).
    pub cbsz: u8,
    /// See `cbsz`.
    pub abid: u8,
    /// See `cbsz`.
    pub blgp: u8,
    /// DPP.
    pub dpp: Option<Dpp>,
    /// SDWA.
    pub sdwa: Option<Sdwa>,
    /// Memory: byte offset, sign-extended where the format has a signed one; `offset0` of DS two-address forms.
    pub offset: i32,
    /// Memory: `offset1` of DS two-address forms.
    pub offset1: u8,
    /// Memory: raw cache-policy bits. Bit 0 glc/sc0, bit 1 slc/nt, bit 2 dlc, bit 4 scc/sc1; GFX12: bits 2:0 th, 4:3 scope.
    pub cpol: u8,
    /// Memory: an atomic that returns the value before.
    pub returns: bool,
    /// Memory: DS to global data share, buffer/global loads to LDS.
    pub gds: bool,
    /// See `gds`.
    pub lds: bool,
    /// Buffers: the address has an index.
    pub idxen: bool,
    /// Buffers: the address has an offset.
    pub offen: bool,
    /// Buffers: texture fail enable.
    pub tfe: bool,
    /// Typed buffers: format number.
    pub format: u8,
}

/// A decoded instruction.
///
/// `mnemonic` is LLVM's for the target, without `_e32`, `_e64`, `_sdwa`, `_dpp` and the like. Slots:
///
/// | format | dst | dst2 | src |
/// |---|---|---|---|
/// | SOP1, SOP2, SOPK, SOPC | sdst | | ssrc0, ssrc1; SOPK: `Imm` simm16 in src 0, `s_setreg_imm32` literal in src 1 |
/// | SOPP | | | `Imm` |
/// | SMEM | sdata | | sbase, soffset register (or None), store data; immediate in `mods.offset` |
/// | VOP1, VOP2, VOP3, VOP3P | vdst (or sdst) | carry-out or second result, VCC when implied | src0, src1, src2; VCC when implied as carry-in or selector; the tied destination of `v_fmac`/`v_mac` |
/// | VOPC and its VOP3 form | the mask: VCC, an SGPR pair, EXEC | | src0, src1 |
/// | VOPD | of X | | of X; Y is the whole instruction in `second` |
/// | DS | vdst | | addr, data0, data1 |
/// | FLAT, GLOBAL, SCRATCH | vdst | | vaddr (or Off), vdata, saddr (or Off) |
/// | MUBUF, MTBUF | vdst of a load or returning atomic | | vaddr, vdata, srsrc, soffset |
///
/// What the table does not say:
///
/// - `s_cmpk_*` and `s_setreg_b32` read the register in `dst`.
/// - `v_div_fmas` has VCC in source 3, `v_swap` its destination in source 1.
/// - A lane mask has the width that LLVM prints: two dwords on GFX9; one on later targets, whatever the wave size.
/// - `v_fma_mix*` and `v_mad_mix*`: `neg_hi` is the absolute value, `op_sel_hi` says which sources are 16 bits wide.
/// - A half that `op_sel` of VOP3 selects is in `mods.op_sel` and in the operand's `hi` where that is a VGPR.
/// - `op_sel` is `fi` and `bound_ctrl` of `v_permlane16` and `v_permlanex16`, the byte of the fp8 conversions, the index
///   key of `v_swmmac`.
/// - A buffer access with `tfe` has one register more.
/// - SMEM: `s_prefetch_*` has its length, `s_atc_probe` its mask, as `Imm` in source 2.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// Name.
    pub mnemonic: &'static str,
    /// Encoding.
    pub format: Format,
    /// Opcode number within the format.
    pub opcode: u16,
    /// Bytes, 4 to 16.
    pub len: u8,
    /// The bytes, padded with zeros.
    pub bytes: [u8; 16],
    /// Destination.
    pub dst: Operand,
    /// Second destination.
    pub dst2: Operand,
    /// Sources.
    pub src: [Operand; 4],
    /// Modifiers.
    pub mods: Mods,
    /// The Y half of a VOPD.
    pub second: Option<Box<Decoded>>,
}

//! Fields of encodings.

use super::named;

named! {
    /// A field of an encoding: operands first, then modifiers.
    Field {
        Vdst = "vdst",
        Sdst = "sdst",
        Src0 = "src0",
        Src1 = "src1",
        Src2 = "src2",
        Simm16 = "simm16",
        Sbase = "sbase",
        Sdata = "sdata",
        Soffset = "soffset",
        Addr = "addr",
        Data0 = "data0",
        Data1 = "data1",
        Vaddr = "vaddr",
        Vdata = "vdata",
        Saddr = "saddr",
        Srsrc = "srsrc",
        /// The 32-bit constant of `v_madmk`, `v_fmaak`, `s_setreg_imm32` and the like.
        K = "k",
        Abs = "abs",
        Neg = "neg",
        NegHi = "neg_hi",
        OpSel = "op_sel",
        OpSelHi = "op_sel_hi",
        /// `op_sel_hi` of source 2, which is apart from the others.
        OpSelHi2 = "op_sel_hi2",
        Omod = "omod",
        Clamp = "clamp",
        /// Accumulation register bits of MFMA's sources A and B.
        Acc = "acc",
        /// Accumulation register bit of MFMA's C and D, of a memory instruction's data.
        AccCd = "acc_cd",
        Cbsz = "cbsz",
        Abid = "abid",
        Blgp = "blgp",
        Offset = "offset",
        Offset1 = "offset1",
        Glc = "glc",
        Slc = "slc",
        Dlc = "dlc",
        Scc = "scc",
        Th = "th",
        Scope = "scope",
        Gds = "gds",
        Lds = "lds",
        Offen = "offen",
        Idxen = "idxen",
        Tfe = "tfe",
        BufFormat = "format",
        /// SMEM: the offset field is an immediate.
        Imm = "imm",
        /// SMEM: there is a register offset beside the immediate.
        SoffsetEn = "soffset_en",
        /// SCRATCH: there is a VGPR address.
        Sve = "sve",
        DppCtrl = "dpp_ctrl",
        Fi = "fi",
        BoundCtrl = "bound_ctrl",
        BankMask = "bank_mask",
        RowMask = "row_mask",
        /// `src0_neg` of a control dword; abs and source 1 follow.
        Src0Neg = "src0_neg",
        Src0Abs = "src0_abs",
        Src1Neg = "src1_neg",
        Src1Abs = "src1_abs",
        Dpp8Sel = "dpp8_sel",
        DstSel = "dst_sel",
        DstUnused = "dst_unused",
        Src0Sel = "src0_sel",
        Src0Sext = "src0_sext",
        Src1Sel = "src1_sel",
        Src1Sext = "src1_sext",
        /// SDWA: source 0 is scalar.
        S0 = "s0",
        S1 = "s1",
        /// SDWA VOPC: `sdst` is used.
        Sd = "sd",
    }
}

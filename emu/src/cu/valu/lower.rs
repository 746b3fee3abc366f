//! From decoded vector instructions to handlers.

use super::dpp::Lanes;
use super::general::{self, General};
use super::lane::{AUX_HIGH, AUX_KEEP, FLAG_EXEC, Kind};
use super::table::{self, Entry};
use super::{cross, fp8, matrix, packed, pair, signs};
use crate::cu::inst::Inst;
use crate::cu::lower::{Lowering, Unsupported, Width};
use crate::cu::wave::scalar;
use crate::isa::{Decoded, Dpp, Family, Format, Mods, Operand, Special};

/// Finds the handler of a vector instruction and resolves its operands.
pub fn lower(decoded: &Decoded, lowering: &mut Lowering) -> Result<Inst, Unsupported> {
    if decoded.format == Format::Vopd {
        return pair::lower_dual(decoded, lowering);
    }
    let special = cross::lower(decoded, lowering)
        .or_else(|| pair::lower_packed(decoded, lowering))
        .or_else(|| matrix::lower(decoded, lowering));
    if let Some(result) = special {
        return result;
    }
    let entry = table::find(decoded.mnemonic).ok_or(Unsupported::Operation)?;
    regular(entry, decoded, lowering)
}

/// The scalar register a lane mask or scalar result goes to.
pub fn scalar_dst(operand: Operand, lowering: &Lowering) -> Result<u32, Unsupported> {
    match operand {
        Operand::None | Operand::Special { reg: Special::Null, .. } => Ok(scalar::SINK as u32),
        _ => {
            let register = lowering.scalar(operand)?;
            if register > scalar::EXEC + 1 {
                return Err(Unsupported::Operand("this register cannot be written"));
            }
            Ok(register as u32)
        }
    }
}

/// Source kinds of a mixed-precision operation: `op_sel_hi` makes a source an f16.
fn mixed_kinds(op_sel_hi: u8) -> [Kind; 3] {
    std::array::from_fn(|index| if op_sel_hi >> index & 1 != 0 { Kind::F16 } else { Kind::F32 })
}

/// An operation of the tables.
pub fn regular(entry: &Entry, decoded: &Decoded, lowering: &mut Lowering) -> Result<Inst, Unsupported> {
    let mods = &decoded.mods;
    let (level, lanes, family) = (lowering.level, lowering.lanes, lowering.target.family());
    let packed = decoded.format == Format::Vop3p;
    let mix = packed && decoded.mnemonic.contains("_mix");
    let kinds = if mix { mixed_kinds(mods.op_sel_hi) } else { entry.src };
    let float = entry.dst.is_float() || entry.dst == Kind::PF16;
    let core = match entry.clamp {
        Some(clamp) if mods.clamp => clamp,
        _ => entry.pick,
    }(level);
    // Conversions to integers saturate anyway, and comparisons have nothing to clamp.
    let ranged = float || entry.clamp.is_some() || entry.fits;
    if mods.clamp && !ranged && entry.dst != Kind::None && !entry.src[0].is_float() {
        return Err(Unsupported::Operand(if decoded.mnemonic.starts_with("v_cvt_pk_f32_") {
            "clamping two f32 is not emulated"
        } else {
            "what clamp does to bits that are no number is not documented"
        }));
    }
    let mut inst = Inst::new(core, decoded, entry.fidelity);
    // VOP3P has negation in its operations; elsewhere the general path does it.
    let (abs, neg) = if packed { (0, 0) } else { (mods.abs, mods.neg) };
    inst.imm = match decoded.format {
        Format::Vop3p => packed::immediate(mods, mods.op_sel_hi),
        _ if decoded.mnemonic.ends_with("fp8") || decoded.mnemonic.ends_with("bf8") => {
            fp8_immediate(decoded, family, 0)
        }
        _ if decoded.mnemonic.starts_with("v_cvt_pk_fp8") || decoded.mnemonic.starts_with("v_cvt_pk_bf8") => {
            fp8_immediate(decoded, family, 0)
        }
        _ if decoded.mnemonic.starts_with("v_cvt_sr_") => fp8_immediate(decoded, family, mods.op_sel >> 2),
        // v_pk_fmac_f16 and dot products of other formats have no selectors.
        _ => packed::immediate(&Mods::default(), 7),
    };
    for index in 0..3 {
        if entry.src[index] == Kind::None {
            continue;
        }
        let operand = match decoded.src[index] {
            // The old destination, where a part of it stays.
            Operand::None if index == 2 => decoded.dst,
            operand => operand,
        };
        let width = match (kinds[index], operand) {
            // An integer constant fills both halves.
            (Kind::PF16, Operand::Int(_)) => Width::B32,
            // GFX9 has the f32 there: its low half is 0 (LLVM, "Use shorter form for i16 operands").
            (Kind::B16, Operand::Float(_)) if family == Family::Gfx9 => Width::B32,
            (kind, _) => kind.width(),
        };
        let operand = match (kinds[index], Lowering::constant(operand, width)) {
            // A bf16 is the upper half of the f32.
            (Kind::PBf16, Some(bits)) if matches!(operand, Operand::Float(_)) => Operand::Literal(bits as u32 >> 16),
            _ => operand,
        };
        inst.src[index] = lowering.src(operand, width)?;
        if entry.src[index].is_16() {
            let high = matches!(operand, Operand::Vgpr { hi: true, .. }) || mods.op_sel >> index & 1 != 0;
            inst.aux |= (high as u16 * AUX_HIGH) << index;
        }
    }
    if entry.dst == Kind::None {
        inst.dst = scalar_dst(decoded.dst, lowering)?;
    } else {
        inst.dst = lowering.row(decoded.dst)?;
        if entry.mask {
            inst.dst2 = scalar_dst(decoded.dst2, lowering)?;
        }
        if entry.dst.is_16() {
            let high = matches!(decoded.dst, Operand::Vgpr { hi: true, .. })
                || !packed && mods.op_sel & 8 != 0
                || mix && decoded.mnemonic.contains("mixhi");
            inst.aux |= (high as u16 * AUX_HIGH) << 3;
            if entry.keeps || family != Family::Gfx9 {
                inst.aux |= AUX_KEEP;
            }
        }
    }
    let cmpx = decoded.mnemonic.starts_with("v_cmpx");
    if cmpx && family == Family::Gfx9 {
        inst.flags |= FLAG_EXEC;
    }
    if let Some(Dpp::Dpp16 { ctrl, .. }) = mods.dpp
        && family == Family::Gfx9
        && entry.src[0].dwords().max(entry.dst.dwords()) == 2
        && !matches!(ctrl, 0x150..=0x15f)
    {
        return Err(Unsupported::Operand("operations of 64 bits take row_newbcast alone of all DPP controls"));
    }
    let dpp = mods.dpp.map(|dpp| Lanes::new(dpp, lowering.target, lanes)).transpose()?;
    let finishes = mods.omod != 0 || mods.clamp && float;
    let other = finishes || dpp.is_some() || mods.sdwa.is_some();
    if abs | neg != 0 || other {
        inst.run = Some(match entry.signs {
            Some(with_signs) if !other => {
                inst.imm = (abs as i32) << signs::ABS | (neg as i32) << signs::NEG;
                with_signs(level)
            }
            _ => general::pick(level, lanes),
        });
    }
    let governed = kinds.iter().any(|kind| kind.mode() != 0) || entry.dst.mode() != 0;
    if let Some(extra) = &mut inst.extra
        && (governed || abs | neg != 0 || other)
    {
        let gfx12 = family == Family::Gfx12;
        extra.data = Some(Box::new(General {
            core,
            src: kinds,
            dst: entry.dst,
            abs,
            neg,
            omod: mods.omod,
            clamp: mods.clamp && float,
            clamp_nan: if gfx12 { 0 } else { 0x100 },
            ieee: if gfx12 { 0 } else { 0x200 },
            dpp,
            sdwa: mods.sdwa,
            soft: entry.soft,
            writes_exec: cmpx || inst.dst == scalar::EXEC as u32 && entry.dst == Kind::None,
            mixed: mix,
        }));
    }
    Ok(inst)
}

/// The immediate of conversions to and from 8-bit floats: formats, and which byte or half. GFX12 names the byte of an
/// unpacked source in `op_sel` with its bits reversed, and the half in the lower of them.
fn fp8_immediate(decoded: &Decoded, family: Family, byte: u8) -> i32 {
    let op_sel = decoded.mods.op_sel;
    let byte = match decoded.mnemonic {
        "v_cvt_f32_fp8" | "v_cvt_f32_bf8" => (op_sel & 1) << 1 | op_sel >> 1 & 1,
        "v_cvt_pk_f32_fp8" | "v_cvt_pk_f32_bf8" => {
            op_sel & 1 | u8::from(matches!(decoded.src[0], Operand::Vgpr { hi: true, .. }))
        }
        _ => byte,
    };
    let formats = if family == Family::Gfx9 { fp8::FNUZ } else { 0 };
    formats | (byte as i32 & 3) << fp8::BYTE
}

//! From decoded vector instructions to handlers.

use super::dpp::Lanes;
use super::general::{self, General};
use super::lane::{AUX_HIGH, AUX_KEEP, FLAG_EXEC, Kind};
use super::table::{self, Entry};
use super::{cross, pair};
use crate::cu::inst::Inst;
use crate::cu::lower::{Lowering, Unsupported};
use crate::cu::wave::scalar;
use crate::isa::{Decoded, Family, Format, Operand, Special};

/// Finds the handler of a vector instruction and resolves its operands.
pub fn lower(decoded: &Decoded, lowering: &mut Lowering) -> Result<Inst, Unsupported> {
    if decoded.format == Format::Vopd {
        return pair::lower_dual(decoded, lowering);
    }
    if let Some(result) = cross::lower(decoded, lowering) {
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

/// An operation without peculiarities.
pub fn regular(entry: &Entry, decoded: &Decoded, lowering: &mut Lowering) -> Result<Inst, Unsupported> {
    let mods = &decoded.mods;
    let (level, lanes) = (lowering.level, lowering.lanes);
    let float = entry.dst.is_float();
    let pick = match entry.clamp {
        Some(clamp) if mods.clamp => clamp,
        _ => entry.pick,
    };
    // Conversions to integers saturate anyway, and comparisons have nothing to clamp.
    if mods.clamp && !float && entry.clamp.is_none() && entry.dst != Kind::None && !entry.src[0].is_float() {
        return Err(Unsupported::Operand("clamp is not implemented for this integer operation"));
    }
    let signs_only = mods.omod == 0 && !(mods.clamp && float) && mods.dpp.is_none() && mods.sdwa.is_none();
    let signs = mods.abs | mods.neg;
    let core = pick(level);
    let mut inst = Inst::new(core, decoded);
    for index in 0..3 {
        let kind = entry.src[index];
        if kind == Kind::None {
            continue;
        }
        let operand = decoded.src[index];
        inst.src[index] = lowering.src(operand, kind.width())?;
        if kind.is_16() {
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
            let high = matches!(decoded.dst, Operand::Vgpr { hi: true, .. }) || mods.op_sel & 8 != 0;
            if high {
                inst.aux |= AUX_HIGH << 3;
            }
            if entry.keeps || lowering.target.family() != Family::Gfx9 {
                inst.aux |= AUX_KEEP;
            }
        }
    }
    let cmpx = decoded.mnemonic.starts_with("v_cmpx");
    let gfx12 = lowering.target.family() == Family::Gfx12;
    if cmpx && lowering.target.family() == Family::Gfx9 {
        inst.flags |= FLAG_EXEC;
    }
    let dpp = mods.dpp.map(|dpp| Lanes::new(dpp, lowering.target, lanes)).transpose()?;
    if signs != 0 || !signs_only {
        inst.run = Some(match entry.signs {
            Some(signs) if signs_only => {
                inst.flags |= mods.abs << 2 | mods.neg << 5;
                signs(level)
            }
            _ => general::pick(level, lanes),
        });
    }
    let governed = entry.src.iter().any(|kind| kind.mode() != 0) || entry.dst.mode() != 0;
    if let Some(extra) = &mut inst.extra
        && (governed || signs != 0 || !signs_only)
    {
        extra.data = Some(Box::new(General {
            core,
            src: entry.src,
            dst: entry.dst,
            abs: mods.abs,
            neg: mods.neg,
            omod: mods.omod,
            clamp: mods.clamp && float,
            clamp_nan: if gfx12 { 0 } else { 0x100 },
            ieee: if gfx12 { 0 } else { 0x200 },
            dpp,
            sdwa: mods.sdwa,
            soft: entry.soft,
            writes_exec: cmpx || inst.dst == scalar::EXEC as u32 && entry.dst == Kind::None,
        }));
    }
    Ok(inst)
}

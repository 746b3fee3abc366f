//! 16-bit integers and bits.

use super::define::{lane, ops, sources};
use super::op::{Cx, Op, mode};
use super::table::Entry;
use crate::cu::fidelity::Fidelity;

ops! {
    MovB16 = v_mov_b16 [_cx](a: u16) -> u16 { a }
    NotB16 = v_not_b16 [_cx](a: u16) -> u16 { !a }
    AddU16 = v_add_u16 v_add_nc_u16 [_cx](a: u16, b: u16) -> u16 { a.wrapping_add(b) } .clamp::<AddClampU16>()
    AddClampU16 = [_cx](a: u16, b: u16) -> u16 { a.saturating_add(b) }
    SubU16 = v_sub_u16 v_sub_nc_u16 [_cx](a: u16, b: u16) -> u16 { a.wrapping_sub(b) } .clamp::<SubClampU16>()
    SubClampU16 = [_cx](a: u16, b: u16) -> u16 { a.saturating_sub(b) }
    SubrevU16 = v_subrev_u16 [_cx](a: u16, b: u16) -> u16 { b.wrapping_sub(a) } .clamp::<SubrevClampU16>()
    SubrevClampU16 = [_cx](a: u16, b: u16) -> u16 { b.saturating_sub(a) }
    AddI16 = v_add_i16 v_add_nc_i16 [_cx](a: i16, b: i16) -> i16 { a.wrapping_add(b) }
        .clamp::<AddClampI16>() .keeps()
    AddClampI16 = [_cx](a: i16, b: i16) -> i16 { a.saturating_add(b) }
    SubI16 = v_sub_i16 v_sub_nc_i16 [_cx](a: i16, b: i16) -> i16 { a.wrapping_sub(b) }
        .clamp::<SubClampI16>() .keeps()
    SubClampI16 = [_cx](a: i16, b: i16) -> i16 { a.saturating_sub(b) }
    MulLoU16 = v_mul_lo_u16 [_cx](a: u16, b: u16) -> u16 { a.wrapping_mul(b) } .clamp::<MulLoClampU16>()
    MulLoClampU16 = [_cx](a: u16, b: u16) -> u16 { a.saturating_mul(b) }
    MadU16 = v_mad_u16 [_cx](a: u16, b: u16, c: u16) -> u16 { a.wrapping_mul(b).wrapping_add(c) }
        .clamp::<MadClampU16>() .keeps()
    MadLegacyU16 = v_mad_legacy_u16 [_cx](a: u16, b: u16, c: u16) -> u16 { a.wrapping_mul(b).wrapping_add(c) }
        .clamp::<MadClampU16>()
    MadClampU16 = [_cx](a: u16, b: u16, c: u16) -> u16 {
        let sum = (a as u64).wrapping_mul(b as u64).wrapping_add(c as u64);
        if sum > 0xffff { 0xffff } else { sum as u16 }
    }
    MadI16 = v_mad_i16 [_cx](a: i16, b: i16, c: i16) -> i16 { a.wrapping_mul(b).wrapping_add(c) }
        .clamp::<MadClampI16>() .keeps()
    MadLegacyI16 = v_mad_legacy_i16 [_cx](a: i16, b: i16, c: i16) -> i16 { a.wrapping_mul(b).wrapping_add(c) }
        .clamp::<MadClampI16>()
    MadClampI16 = [_cx](a: i16, b: i16, c: i16) -> i16 {
        (a as i32).wrapping_mul(b as i32).saturating_add(c as i32).clamp(-0x8000, 0x7fff) as i16
    }
    MadU32U16 = v_mad_u32_u16 [_cx](a: u16, b: u16, c: u32) -> u32 {
        (a as u32).wrapping_mul(b as u32).wrapping_add(c)
    } .clamp::<MadClampU32U16>()
    MadClampU32U16 = [_cx](a: u16, b: u16, c: u32) -> u32 { (a as u32).wrapping_mul(b as u32).saturating_add(c) }
    MadI32I16 = v_mad_i32_i16 [_cx](a: i16, b: i16, c: i32) -> i32 {
        (a as i32).wrapping_mul(b as i32).wrapping_add(c)
    } .clamp::<MadClampI32I16>()
    MadClampI32I16 = [_cx](a: i16, b: i16, c: i32) -> i32 { (a as i32).wrapping_mul(b as i32).saturating_add(c) }

    LshlrevB16 = v_lshlrev_b16 [_cx](a: u16, b: u16) -> u16 { b << (a & 15) }
    LshrrevB16 = v_lshrrev_b16 [_cx](a: u16, b: u16) -> u16 { b >> (a & 15) }
    AshrrevI16 = v_ashrrev_i16 [_cx](a: u16, b: i16) -> i16 { b >> (a & 15) }
    AndB16 = v_and_b16 [_cx](a: u16, b: u16) -> u16 { a & b }
    OrB16 = v_or_b16 [_cx](a: u16, b: u16) -> u16 { a | b }
    XorB16 = v_xor_b16 [_cx](a: u16, b: u16) -> u16 { a ^ b }
    MinU16 = v_min_u16 [_cx](a: u16, b: u16) -> u16 { a.min(b) } .fits()
    MaxU16 = v_max_u16 [_cx](a: u16, b: u16) -> u16 { a.max(b) } .fits()
    MinI16 = v_min_i16 [_cx](a: i16, b: i16) -> i16 { a.min(b) } .fits()
    MaxI16 = v_max_i16 [_cx](a: i16, b: i16) -> i16 { a.max(b) } .fits()
    Min3U16 = v_min3_u16 [_cx](a: u16, b: u16, c: u16) -> u16 { a.min(b).min(c) } .keeps() .fits()
    Max3U16 = v_max3_u16 [_cx](a: u16, b: u16, c: u16) -> u16 { a.max(b).max(c) } .keeps() .fits()
    Min3I16 = v_min3_i16 [_cx](a: i16, b: i16, c: i16) -> i16 { a.min(b).min(c) } .keeps() .fits()
    Max3I16 = v_max3_i16 [_cx](a: i16, b: i16, c: i16) -> i16 { a.max(b).max(c) } .keeps() .fits()
    Med3U16 = v_med3_u16 [_cx](a: u16, b: u16, c: u16) -> u16 { a.max(b).min(c).max(a.min(b)) } .keeps() .fits()
    Med3I16 = v_med3_i16 [_cx](a: i16, b: i16, c: i16) -> i16 { a.max(b).min(c).max(a.min(b)) } .keeps() .fits()
    CndmaskB16 = v_cndmask_b16 [_cx](a: u16, b: u16, select: bool) -> u16 { if select { b } else { a } }
}

//! What the mnemonics of vector memory instructions mean.
//!
//! Names changed with GFX11 (`load_dword` became `load_b32`) and again with GFX12 (`atomic_csub` became
//! `atomic_sub_clamp_u32`); all spellings of an operation lead to one value here.

use super::atomic::Rmw;
use super::element::Kind;

/// What a FLAT, GLOBAL, SCRATCH, MUBUF or MTBUF instruction does at its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vmem {
    /// Memory to registers.
    Load(Kind),
    /// Registers to memory.
    Store(Kind),
    /// Memory to LDS.
    LoadLds(Kind),
    /// LDS to memory.
    StoreLds,
    /// A dword at a scalar address plus four times the lane.
    LoadAddtid,
    /// See [`Vmem::LoadAddtid`].
    StoreAddtid,
    /// Up to 32 registers from consecutive dwords.
    LoadBlock,
    /// Up to 32 registers to consecutive dwords.
    StoreBlock,
    /// Read-modify-write of 32 bits.
    Atomic32(Rmw),
    /// Read-modify-write of 64 bits.
    Atomic64(Rmw),
    /// `count` components converted from the buffer's format, packed in halves when `d16`, the upper halves only when
    /// `high`.
    LoadFormat {
        /// Components.
        count: u8,
        /// 16-bit components.
        d16: bool,
        /// Into the high half.
        high: bool,
    },
    /// The other direction.
    StoreFormat {
        /// Components.
        count: u8,
        /// 16-bit components.
        d16: bool,
        /// From the high half.
        high: bool,
    },
    /// Cache write-back or invalidation.
    Fence,
}

use Vmem::{
    Atomic32, Atomic64, Fence, Load, LoadAddtid, LoadBlock, LoadFormat, LoadLds, Store, StoreAddtid, StoreBlock,
    StoreFormat, StoreLds,
};

/// Operations by the mnemonic behind `flat_`, `global_`, `scratch_`, `buffer_` or `tbuffer_`.
const VMEM: &[(&str, Vmem)] = &[
    ("load_ubyte", Load(Kind::U8)),
    ("load_u8", Load(Kind::U8)),
    ("load_sbyte", Load(Kind::I8)),
    ("load_i8", Load(Kind::I8)),
    ("load_ushort", Load(Kind::U16)),
    ("load_u16", Load(Kind::U16)),
    ("load_sshort", Load(Kind::I16)),
    ("load_i16", Load(Kind::I16)),
    ("load_ubyte_d16", Load(Kind::U8Lo)),
    ("load_d16_u8", Load(Kind::U8Lo)),
    ("load_ubyte_d16_hi", Load(Kind::U8Hi)),
    ("load_d16_hi_u8", Load(Kind::U8Hi)),
    ("load_sbyte_d16", Load(Kind::I8Lo)),
    ("load_d16_i8", Load(Kind::I8Lo)),
    ("load_sbyte_d16_hi", Load(Kind::I8Hi)),
    ("load_d16_hi_i8", Load(Kind::I8Hi)),
    ("load_short_d16", Load(Kind::B16Lo)),
    ("load_d16_b16", Load(Kind::B16Lo)),
    ("load_short_d16_hi", Load(Kind::B16Hi)),
    ("load_d16_hi_b16", Load(Kind::B16Hi)),
    ("load_dword", Load(Kind::B32)),
    ("load_b32", Load(Kind::B32)),
    ("load_dwordx2", Load(Kind::B64)),
    ("load_b64", Load(Kind::B64)),
    ("load_dwordx3", Load(Kind::B96)),
    ("load_b96", Load(Kind::B96)),
    ("load_dwordx4", Load(Kind::B128)),
    ("load_b128", Load(Kind::B128)),
    ("store_byte", Store(Kind::U8)),
    ("store_b8", Store(Kind::U8)),
    ("store_short", Store(Kind::U16)),
    ("store_b16", Store(Kind::U16)),
    ("store_byte_d16_hi", Store(Kind::U8Hi)),
    ("store_d16_hi_b8", Store(Kind::U8Hi)),
    ("store_short_d16_hi", Store(Kind::B16Hi)),
    ("store_d16_hi_b16", Store(Kind::B16Hi)),
    ("store_dword", Store(Kind::B32)),
    ("store_b32", Store(Kind::B32)),
    ("store_dwordx2", Store(Kind::B64)),
    ("store_b64", Store(Kind::B64)),
    ("store_dwordx3", Store(Kind::B96)),
    ("store_b96", Store(Kind::B96)),
    ("store_dwordx4", Store(Kind::B128)),
    ("store_b128", Store(Kind::B128)),
    ("load_lds_ubyte", LoadLds(Kind::U8)),
    ("load_lds_u8", LoadLds(Kind::U8)),
    ("load_lds_sbyte", LoadLds(Kind::I8)),
    ("load_lds_i8", LoadLds(Kind::I8)),
    ("load_lds_ushort", LoadLds(Kind::U16)),
    ("load_lds_u16", LoadLds(Kind::U16)),
    ("load_lds_sshort", LoadLds(Kind::I16)),
    ("load_lds_i16", LoadLds(Kind::I16)),
    ("load_lds_dword", LoadLds(Kind::B32)),
    ("load_lds_b32", LoadLds(Kind::B32)),
    ("load_lds_dwordx3", LoadLds(Kind::B96)),
    ("load_lds_dwordx4", LoadLds(Kind::B128)),
    ("store_lds_dword", StoreLds),
    ("load_block", LoadBlock),
    ("store_block", StoreBlock),
    ("load_dword_addtid", LoadAddtid),
    ("load_addtid_b32", LoadAddtid),
    ("store_dword_addtid", StoreAddtid),
    ("store_addtid_b32", StoreAddtid),
    ("atomic_swap", Atomic32(Rmw::Swap)),
    ("atomic_swap_b32", Atomic32(Rmw::Swap)),
    ("atomic_cmpswap", Atomic32(Rmw::CmpSwap)),
    ("atomic_cmpswap_b32", Atomic32(Rmw::CmpSwap)),
    ("atomic_fcmpswap", Atomic32(Rmw::FCmpSwap)),
    ("atomic_cmpswap_f32", Atomic32(Rmw::FCmpSwap)),
    ("atomic_add", Atomic32(Rmw::Add)),
    ("atomic_add_u32", Atomic32(Rmw::Add)),
    ("atomic_sub", Atomic32(Rmw::Sub)),
    ("atomic_sub_u32", Atomic32(Rmw::Sub)),
    ("atomic_csub", Atomic32(Rmw::SubClamp)),
    ("atomic_csub_u32", Atomic32(Rmw::SubClamp)),
    ("atomic_sub_clamp_u32", Atomic32(Rmw::SubClamp)),
    ("atomic_cond_sub_u32", Atomic32(Rmw::CondSub)),
    ("atomic_smin", Atomic32(Rmw::SMin)),
    ("atomic_min_i32", Atomic32(Rmw::SMin)),
    ("atomic_umin", Atomic32(Rmw::UMin)),
    ("atomic_min_u32", Atomic32(Rmw::UMin)),
    ("atomic_smax", Atomic32(Rmw::SMax)),
    ("atomic_max_i32", Atomic32(Rmw::SMax)),
    ("atomic_umax", Atomic32(Rmw::UMax)),
    ("atomic_max_u32", Atomic32(Rmw::UMax)),
    ("atomic_and", Atomic32(Rmw::And)),
    ("atomic_and_b32", Atomic32(Rmw::And)),
    ("atomic_or", Atomic32(Rmw::Or)),
    ("atomic_or_b32", Atomic32(Rmw::Or)),
    ("atomic_xor", Atomic32(Rmw::Xor)),
    ("atomic_xor_b32", Atomic32(Rmw::Xor)),
    ("atomic_inc", Atomic32(Rmw::Inc)),
    ("atomic_inc_u32", Atomic32(Rmw::Inc)),
    ("atomic_dec", Atomic32(Rmw::Dec)),
    ("atomic_dec_u32", Atomic32(Rmw::Dec)),
    ("atomic_add_f32", Atomic32(Rmw::FAdd)),
    ("atomic_fmin", Atomic32(Rmw::FMin)),
    ("atomic_min_f32", Atomic32(Rmw::FMin)),
    ("atomic_min_num_f32", Atomic32(Rmw::FMin)),
    ("atomic_fmax", Atomic32(Rmw::FMax)),
    ("atomic_max_f32", Atomic32(Rmw::FMax)),
    ("atomic_max_num_f32", Atomic32(Rmw::FMax)),
    ("atomic_pk_add_f16", Atomic32(Rmw::PkAddF16)),
    ("atomic_pk_add_bf16", Atomic32(Rmw::PkAddBf16)),
    ("atomic_swap_x2", Atomic64(Rmw::Swap)),
    ("atomic_swap_b64", Atomic64(Rmw::Swap)),
    ("atomic_cmpswap_x2", Atomic64(Rmw::CmpSwap)),
    ("atomic_cmpswap_b64", Atomic64(Rmw::CmpSwap)),
    ("atomic_fcmpswap_x2", Atomic64(Rmw::FCmpSwap)),
    ("atomic_add_x2", Atomic64(Rmw::Add)),
    ("atomic_add_u64", Atomic64(Rmw::Add)),
    ("atomic_sub_x2", Atomic64(Rmw::Sub)),
    ("atomic_sub_u64", Atomic64(Rmw::Sub)),
    ("atomic_smin_x2", Atomic64(Rmw::SMin)),
    ("atomic_min_i64", Atomic64(Rmw::SMin)),
    ("atomic_umin_x2", Atomic64(Rmw::UMin)),
    ("atomic_min_u64", Atomic64(Rmw::UMin)),
    ("atomic_smax_x2", Atomic64(Rmw::SMax)),
    ("atomic_max_i64", Atomic64(Rmw::SMax)),
    ("atomic_umax_x2", Atomic64(Rmw::UMax)),
    ("atomic_max_u64", Atomic64(Rmw::UMax)),
    ("atomic_and_x2", Atomic64(Rmw::And)),
    ("atomic_and_b64", Atomic64(Rmw::And)),
    ("atomic_or_x2", Atomic64(Rmw::Or)),
    ("atomic_or_b64", Atomic64(Rmw::Or)),
    ("atomic_xor_x2", Atomic64(Rmw::Xor)),
    ("atomic_xor_b64", Atomic64(Rmw::Xor)),
    ("atomic_inc_x2", Atomic64(Rmw::Inc)),
    ("atomic_inc_u64", Atomic64(Rmw::Inc)),
    ("atomic_dec_x2", Atomic64(Rmw::Dec)),
    ("atomic_dec_u64", Atomic64(Rmw::Dec)),
    ("atomic_add_f64", Atomic64(Rmw::FAdd)),
    ("atomic_fmin_x2", Atomic64(Rmw::FMin)),
    ("atomic_min_f64", Atomic64(Rmw::FMin)),
    ("atomic_fmax_x2", Atomic64(Rmw::FMax)),
    ("atomic_max_f64", Atomic64(Rmw::FMax)),
    ("wbl2", Fence),
    ("inv", Fence),
    ("invl2", Fence),
    ("wb", Fence),
    ("wbinv", Fence),
    ("wbinvl1", Fence),
    ("wbinvl1_vol", Fence),
    ("gl0_inv", Fence),
    ("gl1_inv", Fence),
];

/// The operation of a mnemonic without the prefix of its format.
pub fn vmem(name: &str) -> Option<Vmem> {
    VMEM.iter().find(|(spelling, _)| *spelling == name).map(|(_, operation)| *operation).or_else(|| format(name))
}

/// `load_format_xy`, `load_format_d16_xy` (before GFX11), `load_d16_format_xy`, `load_d16_hi_format_x`,
/// `load_format_d16_hi_x`, and the stores.
fn format(name: &str) -> Option<Vmem> {
    let (load, rest) = match (name.strip_prefix("load_"), name.strip_prefix("store_")) {
        (Some(rest), _) => (true, rest),
        (_, Some(rest)) => (false, rest),
        _ => return None,
    };
    let rest = rest.strip_prefix("format_").map(|rest| (rest, "")).or_else(|| {
        let at = rest.find("_format_")?;
        Some((&rest[at + 8..], &rest[..at]))
    });
    let (rest, before) = rest?;
    let (components, width) = match rest.rfind('_') {
        Some(at) => (&rest[at + 1..], &rest[..at]),
        None => (rest, before),
    };
    let (d16, high) = match width {
        "" => (false, false),
        "d16" => (true, false),
        "d16_hi" => (true, true),
        _ => return None,
    };
    let count = ["x", "xy", "xyz", "xyzw"].iter().position(|known| *known == components)? as u8 + 1;
    Some(if load { LoadFormat { count, d16, high } } else { StoreFormat { count, d16, high } })
}

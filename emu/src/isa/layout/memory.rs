//! Memory encodings. On GFX12 they are the V* formats of 12 bytes, DS apart.

use super::super::{Family, Target};
use super::{Fields, Form, Layout, Pos, build, fields};

pub(super) fn smem(target: Target) -> Layout {
    let common: Fields = fields![Sbase 0 6, Sdata 6 7, Soffset 57 7];
    let (base, op, rest): (u32, _, Fields) = match target.family() {
        Family::Gfx9 => (0xc000_0000, (18, 8), fields![SoffsetEn 14 1, Glc 16 1, Imm 17 1, Offset 32 21]),
        Family::Gfx10 => (0xf400_0000, (18, 8), fields![Dlc 14 1, Glc 16 1, Offset 32 21]),
        Family::Gfx11 => (0xf400_0000, (18, 8), fields![Dlc 13 1, Glc 14 1, Offset 32 21]),
        Family::Gfx12 => (0xf400_0000, (13, 6), fields![Scope 21 2, Th 23 2, Offset 32 24]),
    };
    build(base, op, 8, &[(0, common), (0, rest)])
}

pub(super) fn ds(target: Target) -> Layout {
    let common: Fields = fields![Offset 0 8, Offset1 8 8, Addr 32 8, Data0 40 8, Data1 48 8, Vdst 56 8];
    let (op, rest): (_, Fields) = match target.family() {
        Family::Gfx9 if target.unified_agprs() => ((17, 8), fields![Gds 16 1, AccCd 25 1]),
        Family::Gfx9 => ((17, 8), fields![Gds 16 1]),
        Family::Gfx10 | Family::Gfx11 => ((18, 8), fields![Gds 17 1]),
        Family::Gfx12 => ((18, 8), &[]),
    };
    build(0xd800_0000, op, 8, &[(0, common), (0, rest)])
}

pub(super) fn flat(target: Target, form: Form) -> Layout {
    let segment = match form {
        Form::Scratch => 1u32,
        Form::Global => 2,
        _ => 0,
    };
    if target.family() == Family::Gfx12 {
        let all: Fields =
            fields![Saddr 0 7, Vdst 32 8, Sve 49 1, Scope 50 2, Th 52 3, Vdata 55 8, Vaddr 64 8, Offset 72 24];
        return build(0xec00_0000 | segment << 24, (14, 7), 12, &[(0, all)]);
    }
    let common: Fields = fields![Vaddr 32 8, Vdata 40 8, Saddr 48 7, Vdst 56 8];
    let (shift, rest): (u32, Fields) = match (target, target.family()) {
        (Target::Gfx942, _) => (14, fields![Offset 0 13, Sve 13 1, Glc 16 1, Slc 17 1, Scc 25 1, AccCd 55 1]),
        (Target::Gfx90a, _) => (14, fields![Offset 0 13, Lds 13 1, Glc 16 1, Slc 17 1, Scc 25 1, AccCd 55 1]),
        (_, Family::Gfx9) => (14, fields![Offset 0 13, Lds 13 1, Glc 16 1, Slc 17 1]),
        (_, Family::Gfx10) => (14, fields![Offset 0 12, Dlc 12 1, Lds 13 1, Glc 16 1, Slc 17 1]),
        _ => (16, fields![Offset 0 13, Dlc 13 1, Glc 14 1, Slc 15 1, Sve 55 1]),
    };
    build(0xdc00_0000 | segment << shift, (18, 7), 8, &[(0, common), (0, rest)])
}

/// Fields that untyped and typed buffer instructions share before GFX12.
const BUFFER: Fields = fields![Offset 0 12, Vaddr 32 8, Vdata 40 8, Srsrc 48 5, Soffset 56 8];
/// Address controls of GFX9 and GFX10, of GFX11.
const BUFFER_LOW: Fields = fields![Offen 12 1, Idxen 13 1, Glc 14 1];
const BUFFER_GFX11: Fields = fields![Slc 12 1, Dlc 13 1, Glc 14 1, Tfe 53 1, Offen 54 1, Idxen 55 1];

pub(super) fn mubuf(target: Target) -> Layout {
    let (op, low, rest): (_, Fields, Fields) = match (target.family(), target.unified_agprs()) {
        (Family::Gfx12, _) => return vbuffer((14, 8), 0),
        (Family::Gfx9, true) => ((18, 7), BUFFER_LOW, fields![Scc 15 1, Lds 16 1, Slc 17 1, AccCd 55 1]),
        (Family::Gfx9, false) => ((18, 7), BUFFER_LOW, fields![Lds 16 1, Slc 17 1, Tfe 55 1]),
        (Family::Gfx10, _) => ((18, 8), BUFFER_LOW, fields![Dlc 15 1, Lds 16 1, Slc 54 1, Tfe 55 1]),
        (Family::Gfx11, _) => ((18, 8), BUFFER_GFX11, &[]),
    };
    build(0xe000_0000, op, 8, &[(0, BUFFER), (0, low), (0, rest)])
}

/// On GFX12 the typed instructions are opcodes 128 and up of the same encoding.
pub(super) fn mtbuf(target: Target) -> Layout {
    let (op, low, rest): (_, Fields, Fields) = match (target.family(), target.unified_agprs()) {
        (Family::Gfx12, _) => return vbuffer((14, 7), 1 << 21),
        (Family::Gfx9, true) => ((15, 4), BUFFER_LOW, fields![Scc 53 1, Slc 54 1, AccCd 55 1]),
        (Family::Gfx9, false) => ((15, 4), BUFFER_LOW, fields![Slc 54 1, Tfe 55 1]),
        (Family::Gfx10, _) => ((16, 3), BUFFER_LOW, fields![Dlc 15 1, Slc 54 1, Tfe 55 1]),
        (Family::Gfx11, _) => ((15, 4), BUFFER_GFX11, &[]),
    };
    let layout = build(0xe800_0000, op, 8, &[(0, BUFFER), (0, low), (0, rest), (0, fields![BufFormat 19 7])]);
    // The fourth bit of GFX10's opcode is in the second dword.
    let op_hi = if target.family() == Family::Gfx10 { Pos { lo: 53, width: 1 } } else { Pos::default() };
    Layout { op_hi, ..layout }
}

fn vbuffer(op: (u8, u8), typed: u32) -> Layout {
    let all: Fields = fields![
        Soffset 0 7, Tfe 22 1, Vdata 32 8, Srsrc 41 9, Scope 50 2, Th 52 3, BufFormat 55 7, Offen 62 1, Idxen 63 1,
        Vaddr 64 8, Offset 72 24,
    ];
    build(0xc400_0000 | typed, op, 12, &[(0, all)])
}

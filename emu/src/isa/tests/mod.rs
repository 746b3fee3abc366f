//! Tables, decoding and disassembly.

mod encodings;
mod slots;

use super::layout::Form;
use super::table::{Table, text};
use super::{DecodeError, Target, decode, disassemble};
use proptest::prelude::*;

/// The bytes of an instruction, with zeros behind it.
fn bytes(words: &[u32]) -> [u8; 16] {
    let mut bytes = [0; 16];
    for (bytes, word) in bytes.chunks_mut(4).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

#[test]
fn every_table_parses_without_duplicates() {
    for target in Target::ALL {
        let table = Table::parse(target, text(target)).unwrap();
        for form in Form::ALL {
            if let Some(form_table) = table.form(*form) {
                assert!(form_table.rows().count() > 0, "{target} {} is empty", form.name());
            }
        }
        assert!(text(target).starts_with(&format!("# {target}, harvested from llvm-mc ")), "{target}");
    }
}

/// Opcodes that LLVM 22 has: each of these numbers was found a second time by another harvest, made independently of
/// this one. Formats where the two differ in what they leave out (GDS, attribute interpolation, `v_illegal`) are not here.
#[test]
fn tables_have_the_known_numbers_of_opcodes() {
    use Form::*;
    use Target::*;
    let known: &[(Target, &[(Form, usize)])] = &[
        (
            Gfx90a,
            &[
                (Sop2, 53),
                (Sopk, 21),
                (Sop1, 54),
                (Sopc, 20),
                (Sopp, 31),
                (Vop1, 79),
                (Vop2, 62),
                (Vopc, 198),
                (Vop3, 436),
                (Vop3p, 62),
                (Smem, 84),
                (Ds, 124),
                (Flat, 51),
                (Global, 53),
                (Scratch, 22),
                (Mubuf, 76),
                (Mtbuf, 16),
            ],
        ),
        (
            Gfx942,
            &[
                (Sop2, 53),
                (Sopk, 21),
                (Sop1, 54),
                (Sopc, 20),
                (Sopp, 31),
                (Vop1, 84),
                (Vopc, 198),
                (Vop3, 443),
                (Vop3p, 81),
                (Smem, 84),
                (Ds, 128),
                (Flat, 54),
                (Global, 59),
                (Scratch, 27),
                (Mubuf, 73),
                (Mtbuf, 16),
            ],
        ),
        (
            Gfx1030,
            &[
                (Sop2, 51),
                (Sopk, 27),
                (Sop1, 65),
                (Sopc, 18),
                (Sopp, 37),
                (Vopc, 190),
                (Vop3p, 29),
                (Smem, 16),
                (Flat, 54),
                (Global, 57),
                (Scratch, 22),
            ],
        ),
        (
            Gfx1100,
            &[
                (Sop2, 52),
                (Sopk, 27),
                (Sop1, 65),
                (Sopc, 18),
                (Sopp, 39),
                (Vopc, 190),
                (Vop3p, 34),
                (VopdX, 14),
                (Smem, 14),
                (Flat, 52),
                (Global, 55),
                (Scratch, 22),
                (Mubuf, 73),
                (Mtbuf, 16),
            ],
        ),
        (
            Gfx1201,
            &[
                (Sop2, 74),
                (Sopk, 9),
                (Sop1, 87),
                (Sopc, 46),
                (Sopp, 43),
                (Vopc, 162),
                (Vop3p, 56),
                (VopdX, 14),
                (Smem, 28),
                (Ds, 123),
                (Flat, 55),
                (Scratch, 24),
            ],
        ),
    ];
    for (target, forms) in known {
        let table = Table::of(*target);
        for (form, count) in *forms {
            let found = table.form(*form).map_or(0, |form| form.rows().count());
            assert_eq!(found, *count, "{target} {}", form.name());
        }
    }
}

#[test]
fn prints_what_llvm_prints() {
    for (target, words, expected) in encodings::ENCODINGS {
        let decoded = decode(*target, &bytes(words)).unwrap();
        assert_eq!(usize::from(decoded.len), words.len() * 4, "{target} {expected}");
        assert_eq!(disassemble(*target, &decoded, 0), *expected, "{target}");
    }
}

#[test]
fn a_cut_instruction_says_how_long_it_is() {
    for (target, words, text) in encodings::ENCODINGS {
        let bytes = bytes(words);
        for available in 0..words.len() * 4 {
            let error = decode(*target, &bytes[..available]).unwrap_err();
            match error {
                DecodeError::Truncated { available: seen, needed } => {
                    assert_eq!(seen, available, "{target} {text}");
                    assert!(needed > available && needed <= words.len() * 4, "{target} {text}: {needed}");
                }
                other => panic!("{target} {text}: {other}"),
            }
        }
    }
}

#[test]
fn an_unknown_opcode_names_its_format() {
    // SOPP 0x7e is free on GFX9.
    let error = decode(Target::Gfx90a, &bytes(&[0xbf80_0000 | 0x7e << 16])).unwrap_err();
    assert_eq!(error.to_string(), "gfx90a has no SOPP opcode 0x7e (0xbffe0000)");
    let error = decode(Target::Gfx1030, &bytes(&[0xfc00_0602])).unwrap_err();
    assert_eq!(error.to_string(), "0xfc000602 begins no gfx1030 instruction");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    /// Any bytes: no panic, and the same answer whatever follows the instruction.
    #[test]
    fn any_bytes_decode_or_fail(mut words: [u32; 4], prefix in 0u32..64, target in 0..Target::ALL.len()) {
        let target = Target::ALL[target];
        // All prefixes are equally likely, so that small formats come up.
        words[0] = words[0] >> 6 | prefix << 26;
        let bytes = bytes(&words);
        for available in 0..=16 {
            if let Ok(decoded) = decode(target, &bytes[..available]) {
                let len = usize::from(decoded.len);
                prop_assert!(len >= 4 && len <= available && len % 4 == 0);
                prop_assert!(!disassemble(target, &decoded, 0).is_empty());
                prop_assert_eq!(&decoded, &decode(target, &bytes[..len]).unwrap());
            }
        }
    }
}

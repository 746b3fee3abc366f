//! Which scalar operations of which target are executed.

use super::lower;
use crate::cu::level::HostLevel;
use crate::cu::lower::{ConstantPool, Lowering};
use crate::isa::{Target, decode};
use std::collections::BTreeMap;

/// First dword of an instruction with operands that any operation of the format takes: s4 = s6, s2.
fn encode(form: &str, opcode: u32) -> Option<u32> {
    Some(match form {
        "sop1" => 0x17d << 23 | 4 << 16 | opcode << 8 | 6,
        "sop2" => 2 << 30 | opcode << 23 | 4 << 16 | 2 << 8 | 6,
        "sopc" => 0x17e << 23 | opcode << 16 | 2 << 8 | 6,
        // Immediate 1: a barrier to wait for, MODE, the interrupt message.
        "sopk" => 0xb << 28 | opcode << 23 | 4 << 16 | 1,
        "sopp" => 0x17f << 23 | opcode << 16 | 1,
        _ => return None,
    })
}

#[test]
fn every_scalar_operation_is_executed_or_refused_on_purpose() {
    let mut refused: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut executed = 0;
    for target in Target::ALL {
        let table = match target {
            Target::Gfx900 => include_str!("../../isa/tables/gfx900.tsv"),
            Target::Gfx906 => include_str!("../../isa/tables/gfx906.tsv"),
            Target::Gfx90a => include_str!("../../isa/tables/gfx90a.tsv"),
            Target::Gfx942 => include_str!("../../isa/tables/gfx942.tsv"),
            Target::Gfx1030 => include_str!("../../isa/tables/gfx1030.tsv"),
            Target::Gfx1100 => include_str!("../../isa/tables/gfx1100.tsv"),
            Target::Gfx1201 => include_str!("../../isa/tables/gfx1201.tsv"),
        };
        for line in table.lines().filter(|line| !line.starts_with('#')) {
            let fields: Vec<&str> = line.split('\t').collect();
            let opcode = u32::from_str_radix(fields[1].trim_start_matches("0x"), 16).unwrap();
            let Some(mut word) = encode(fields[0], opcode) else { continue };
            match fields[2] {
                // REALTIME, the work-group's barrier.
                name if name.starts_with("s_sendmsg_rtn") => word = word & !0xff | 131,
                name if name.contains("barrier_s") => word = word & !0xff | 193,
                // Without operands there is no immediate either.
                _ if fields[0] == "sopp" && fields[4] == "-" => word &= !0xffff,
                _ => {}
            }
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&word.to_le_bytes());
            let decoded = decode(target, &bytes).unwrap_or_else(|error| panic!("{target} {line}: {error}"));
            assert_eq!(decoded.mnemonic, fields[2], "{target}");
            let mut constants = ConstantPool::default();
            let mut lowering = Lowering {
                target,
                lanes: 64,
                level: HostLevel::Base,
                vgprs: 16,
                agpr_base: 16,
                rows: 16,
                constants: &mut constants,
            };
            match lower(&decoded, &mut lowering) {
                Ok(_) => executed += 1,
                Err(error) => refused.entry(format!("{}: {error}", fields[2])).or_default().push(target.name()),
            }
        }
    }
    let text: Vec<String> = refused.iter().map(|(why, targets)| format!("{why} ({})", targets.join(" "))).collect();
    insta::assert_snapshot!(text.join("\n"));
    assert!(executed > 1300, "{executed} operations are executed");
}

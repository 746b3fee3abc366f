//! Compares disassembly with `llvm-objdump`'s.

use crate::mc::{self, McError, tool};
use crate::samples;
use emu::isa::{Target, decode, disassemble};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// What a comparison found for one target.
#[derive(Clone, Debug, Default)]
pub struct Agreement {
    /// Files.
    pub files: usize,
    /// Instructions compared.
    pub total: u64,
    /// Of which equal.
    pub equal: u64,
    /// Disagreements by what they look like: how often, and one of them.
    pub different: BTreeMap<String, (u64, String)>,
}

impl Agreement {
    /// Compares one line of LLVM's with ours.
    pub fn compare(&mut self, target: Target, bytes: &[u8], len: usize, pc: u64, expected: &str) {
        self.total += 1;
        let mut padded = bytes.to_vec();
        padded.resize(16, 0);
        let ours = match decode(target, &padded) {
            Ok(decoded) if usize::from(decoded.len) == len => disassemble(target, &decoded, pc),
            Ok(decoded) => format!("({} bytes) {}", decoded.len, disassemble(target, &decoded, pc)),
            Err(_) if expected.starts_with(".long") => expected.to_owned(),
            Err(error) => format!("({error})"),
        };
        if ours == expected {
            self.equal += 1;
            return;
        }
        let mnemonic = |text: &str| text.split(' ').next().unwrap_or_default().to_owned();
        let key = format!("{} / {}", mnemonic(expected), mnemonic(&ours));
        let entry = self.different.entry(key).or_default();
        entry.0 += 1;
        let hex: Vec<String> = padded.iter().take(len).map(|byte| format!("{byte:02x}")).collect();
        entry.1 = format!("llvm: {expected}\n      ours: {ours}\n      [{}]", hex.join(" "));
    }

    /// Adds another comparison's counts.
    pub fn add(&mut self, other: Agreement) {
        self.files += other.files;
        self.total += other.total;
        self.equal += other.equal;
        for (key, (count, example)) in other.different {
            let entry = self.different.entry(key).or_default();
            entry.0 += count;
            entry.1 = example;
        }
    }

    /// A line of the summary, and the most frequent disagreements.
    pub fn print(&self, target: Target, show: usize) {
        let percent = if self.total == 0 { 100.0 } else { self.equal as f64 * 100.0 / self.total as f64 };
        println!(
            "{:8} {:5} files {:9} instructions {:9} equal {percent:8.4} %",
            target.name(),
            self.files,
            self.total,
            self.equal
        );
        let mut worst: Vec<_> = self.different.iter().collect();
        worst.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
        for (key, (count, example)) in worst.into_iter().take(show) {
            println!("  {count:7}  {key}\n      {example}");
        }
    }
}

/// Target of an AMDGPU ELF file by `EF_AMDGPU_MACH`; the generic ones have the encodings of their first member.
pub fn target_of(elf: &[u8]) -> Option<Target> {
    if !elf.starts_with(b"\x7fELF") || elf.get(18..20)? != [224, 0] {
        return None;
    }
    Some(match elf.get(48)? {
        0x2c | 0x51 => Target::Gfx900,
        0x2f => Target::Gfx906,
        0x3f => Target::Gfx90a,
        0x4c | 0x5f => Target::Gfx942,
        0x36 | 0x53 => Target::Gfx1030,
        0x41 | 0x54 => Target::Gfx1100,
        0x4e | 0x59 => Target::Gfx1201,
        _ => return None,
    })
}

/// Compares all instructions of a file's code sections.
pub fn file(target: Target, path: &Path) -> Result<Agreement, McError> {
    let tool = tool("llvm-objdump");
    let output = Command::new(&tool)
        .arg("-d")
        .arg(path)
        .output()
        .map_err(|source| McError::Io { tool: tool.clone(), source })?;
    let mut agreement = Agreement { files: 1, ..Agreement::default() };
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        // `\ttext // 0000000012AB: 7E020280 <symbol>`
        let Some((text, comment)) = line.strip_prefix('\t').and_then(|line| line.split_once("//")) else { continue };
        let Some((address, words)) = comment.trim().split_once(": ") else { continue };
        let words = words.split('<').next().unwrap_or_default();
        let bytes: Vec<u8> = words
            .split_whitespace()
            .map_while(|word| u32::from_str_radix(word, 16).ok())
            .flat_map(u32::to_le_bytes)
            .collect();
        let pc = u64::from_str_radix(address, 16).unwrap_or_default();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if !bytes.is_empty() {
            agreement.compare(target, &bytes, bytes.len(), pc, &text);
        }
    }
    Ok(agreement)
}

/// Compares encodings made from the target's table with `llvm-mc`; those that it refuses do not count.
pub fn samples(target: Target, count: u32) -> Result<Agreement, McError> {
    let candidates = samples::samples(target, count);
    let mut agreement = Agreement::default();
    for (candidate, line) in candidates.iter().zip(mc::disassemble_loosely(target, &candidates)?) {
        let Some(line) = line else { continue };
        // LLVM turns literals that are inline doubles into those, and shows an encoding without literal.
        let ours = decode(target, candidate).map_or(line.len, |decoded| decoded.len.into());
        let len = if ours == line.len + 4 { ours } else { line.len };
        agreement.compare(target, candidate, len, 0, &line.text);
    }
    Ok(agreement)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_counts_and_keeps_an_example() {
        let mut agreement = Agreement::default();
        // v_mov_b32_e32 v1, s4
        let bytes = 0x7e02_0204u32.to_le_bytes();
        agreement.compare(Target::Gfx90a, &bytes, 4, 0, "v_mov_b32_e32 v1, s4");
        agreement.compare(Target::Gfx90a, &bytes, 4, 0, "v_mov_b32_e32 v1, s5");
        agreement.compare(Target::Gfx90a, &bytes, 8, 0, "v_mov_b32_e32 v1, s4");
        assert_eq!((agreement.total, agreement.equal), (3, 1));
        assert_eq!(agreement.different["v_mov_b32_e32 / v_mov_b32_e32"].0, 1);
        assert_eq!(agreement.different["v_mov_b32_e32 / (4"].0, 1);
    }

    #[test]
    fn data_must_be_refused() {
        let mut agreement = Agreement::default();
        agreement.compare(Target::Gfx1100, &0xbf9f_deadu32.to_le_bytes(), 4, 0, ".long 0xbf9fdead");
        agreement.compare(Target::Gfx1100, &0xbf9f_0000u32.to_le_bytes(), 4, 0, ".long 0xbf9f0000");
        assert_eq!((agreement.total, agreement.equal), (2, 1));
    }
}

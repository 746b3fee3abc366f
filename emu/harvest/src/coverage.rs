//! What the emulated machine does with each row of the decode tables: `docs/isa-coverage.md`.
//!
//! Encodings made of a row's operands go through the emulator's own lowering, in each wave size of the target.

use crate::samples::{self, Sampled};
use emu::cu::fidelity::Fidelity;
use emu::cu::support;
use emu::isa::{EXCLUDED, Family, Format, Target, decode};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Encodings with ordinary operands, each of which must be executed for a row to count as implemented.
const PLAIN: u32 = 4;
/// Encodings with arbitrary operands and modifiers.
const ANY: u32 = 60;

/// Columns of the text.
const WIDTH: usize = 120;

/// Rows of a format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Executed.
    pub implemented: usize,
    /// Executed, with nothing to do.
    pub no_ops: usize,
    /// Not executed.
    pub refused: usize,
}

/// Mnemonics by reason, and the targets on which they have it.
type Reasons = BTreeMap<String, BTreeMap<&'static str, BTreeSet<Target>>>;

/// What there is to tell.
#[derive(Default)]
pub struct Coverage {
    /// By target and format.
    pub counts: BTreeMap<(Target, Format), Count>,
    /// Refused whatever the operands.
    pub refused: Reasons,
    /// Refused with some operands or modifiers.
    pub partly: Reasons,
    /// Operations that are not exact.
    pub inexact: BTreeMap<Fidelity, BTreeSet<&'static str>>,
}

impl Coverage {
    /// Goes through the tables of these targets.
    pub fn of(targets: &[Target]) -> Coverage {
        let mut coverage = Coverage::default();
        for target in targets {
            for sampled in samples::by_row(*target, PLAIN, ANY) {
                coverage.row(*target, &sampled);
            }
        }
        coverage
    }

    fn row(&mut self, target: Target, sampled: &Sampled) {
        let mnemonic = sampled.row.mnemonic;
        let mut plain = BTreeSet::new();
        let mut reasons = BTreeSet::new();
        for (bytes, ordinary) in
            sampled.plain.iter().map(|bytes| (bytes, true)).chain(sampled.any.iter().map(|bytes| (bytes, false)))
        {
            let mut padded = bytes.clone();
            padded.resize(16, 0);
            let decoded = match decode(target, &padded) {
                Ok(decoded) => decoded,
                Err(error) if ordinary => {
                    reasons.insert((true, error.to_string()));
                    continue;
                }
                // Not every arbitrary encoding is one.
                Err(_) => continue,
            };
            for lanes in wave_sizes(target) {
                match support(target, *lanes, &decoded) {
                    Err(reason) => {
                        reasons.insert((ordinary, reason.to_string()));
                    }
                    Ok(fidelity) => {
                        if fidelity != Fidelity::Exact {
                            self.inexact.entry(fidelity).or_default().insert(mnemonic);
                        }
                        if ordinary {
                            plain.insert(fidelity);
                        }
                    }
                }
            }
        }
        let count = self.counts.entry((target, sampled.form.format())).or_default();
        let refused: Vec<&String> =
            reasons.iter().filter(|(ordinary, _)| *ordinary).map(|(_, reason)| reason).collect();
        let note = |reasons: &mut Reasons, reason: &String| {
            reasons.entry(reason.clone()).or_default().entry(mnemonic).or_default().insert(target);
        };
        if !refused.is_empty() {
            count.refused += 1;
            for reason in refused {
                note(&mut self.refused, reason);
            }
            return;
        }
        if plain.iter().all(|fidelity| matches!(fidelity, Fidelity::NoOp(_))) {
            count.no_ops += 1;
        } else {
            count.implemented += 1;
        }
        for (_, reason) in &reasons {
            note(&mut self.partly, reason);
        }
    }

    /// The document.
    pub fn document(&self) -> String {
        let mut text = INTRODUCTION.to_owned();
        text += "\n## Counts\n\n";
        paragraph(&mut text, "", COUNTS);
        text += "\n| format |";
        for target in Target::ALL {
            let _ = write!(text, " {target} |");
        }
        text += "\n|---|";
        text += &"---|".repeat(Target::ALL.len());
        text += "\n";
        let formats: BTreeSet<Format> = self.counts.keys().map(|(_, format)| *format).collect();
        for format in formats {
            let _ = write!(text, "| {} |", format);
            for target in Target::ALL {
                text += " ";
                text += &self.counts.get(&(target, format)).map_or("-".to_owned(), cell);
                text += " |";
            }
            text += "\n";
        }
        text += "| all |";
        for target in Target::ALL {
            let _ = write!(text, " {} |", cell(&self.total(target)));
        }
        text += "\n\n## Refused\n\n";
        paragraph(&mut text, "", REFUSED);
        text += "\n";
        for (format, reason) in EXCLUDED {
            paragraph(&mut text, "- ", &format!("All of {}: {reason}.", format));
        }
        reasons(&mut text, &self.refused, names);
        text += "\n## Refused with some operands or modifiers\n\n";
        paragraph(&mut text, "", PARTLY);
        text += "\n";
        reasons(&mut text, &self.partly, some_names);
        text += "\n## Fidelity\n\n";
        paragraph(&mut text, "", FIDELITY);
        text += "\n";
        for (fidelity, mnemonics) in &self.inexact {
            paragraph(&mut text, "- ", &format!("{}: {}.", capital(&fidelity.to_string()), some_names(mnemonics)));
        }
        text
    }

    /// All formats of a target.
    pub fn total(&self, target: Target) -> Count {
        let mut all = Count::default();
        for (_, count) in self.counts.iter().filter(|((of, _), _)| *of == target) {
            all.implemented += count.implemented;
            all.no_ops += count.no_ops;
            all.refused += count.refused;
        }
        all
    }
}

const INTRODUCTION: &str = "\
# Instruction coverage

Generated from the code by `cargo run -p kfdrun-harvest -- coverage`, which needs no LLVM; a test fails when this file is
not what the command writes (`coverage --check`).

Every row of the decode tables ([isa-tables.md](isa-tables.md)) is encoded with 4 sets of ordinary operands and 60 of
arbitrary operands and modifiers, decoded, and lowered as the emulator does it when it reaches an instruction, in each wave
size that the target has. A row counts as implemented when all of the ordinary ones are executed.

An instruction that is refused ends the run with status 132 and a report: name, reason, bytes, place.
";

const COUNTS: &str = "Implemented rows, plus those with nothing to do on this machine, of the rows that exist. A row is an \
operation in one form: with and without DPP or SDWA are rows of their own.";

const REFUSED: &str = "By reason. Attribute interpolation, exports and images are not in the tables, as compute programs do \
not have them.";

const PARTLY: &str = "These rows count as implemented. Registers beyond a wave's allocation and selectors without a meaning \
are refused everywhere, and not listed.";

const FIDELITY: &str = "What is not listed is exact: the result that is defined, bit by bit. `kfdrun --fidelity` tells which \
of the others a run met, and how often. The documented errors are those of AMD's instruction set manuals.";

/// Wave sizes of a target.
fn wave_sizes(target: Target) -> &'static [u32] {
    if target.family() == Family::Gfx9 { &[64] } else { &[32, 64] }
}

fn cell(count: &Count) -> String {
    let all = count.implemented + count.no_ops + count.refused;
    match count.no_ops {
        0 => format!("{} of {all}", count.implemented),
        no_ops => format!("{} + {no_ops} of {all}", count.implemented),
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// Families of operations of which lists without a special reason for each give the number only.
const FAMILIES: [&str; 4] = ["buffer_load_", "buffer_store_", "v_mfma_", "v_wmma_"];

/// [`names`], shorter.
fn some_names(mnemonics: &BTreeSet<&'static str>) -> String {
    let family = |name: &str| FAMILIES.into_iter().find(|family| name.starts_with(family));
    let single = mnemonics.iter().filter(|name| family(name).is_none()).copied().collect::<BTreeSet<_>>();
    let mut parts = Vec::new();
    if !single.is_empty() {
        parts.push(names(&single));
    }
    for family in FAMILIES {
        let members: BTreeSet<_> = mnemonics.iter().filter(|name| name.starts_with(family)).copied().collect();
        match members.len() {
            0 => {}
            1..6 => parts.push(names(&members)),
            count => parts.push(format!("{count} of `{family}*`")),
        }
    }
    parts.join(", ")
}

/// Names in code style. Those that differ only in their last part are drawn together.
fn names(mnemonics: &BTreeSet<&'static str>) -> String {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for name in mnemonics {
        let (stem, end) = name.rsplit_once('_').unwrap_or((name, ""));
        groups.entry(stem).or_default().push(end);
    }
    let group = |(stem, ends): (&str, Vec<&str>)| match &ends[..] {
        [""] => format!("`{stem}`"),
        [end] => format!("`{stem}_{end}`"),
        _ => format!("`{stem}_{{{}}}`", ends.join(",")),
    };
    groups.into_iter().map(group).collect::<Vec<_>>().join(", ")
}

/// A line for each reason and set of targets.
fn reasons(text: &mut String, reasons: &Reasons, names: fn(&BTreeSet<&'static str>) -> String) {
    for (reason, mnemonics) in reasons {
        let mut by_targets: BTreeMap<&BTreeSet<Target>, BTreeSet<&'static str>> = BTreeMap::new();
        for (mnemonic, targets) in mnemonics {
            by_targets.entry(targets).or_default().insert(mnemonic);
        }
        let mut parts = Vec::new();
        for (targets, mnemonics) in by_targets {
            let on = match targets.len() == Target::ALL.len() {
                true => "all targets".to_owned(),
                false => targets.iter().map(|target| target.name()).collect::<Vec<_>>().join(", "),
            };
            parts.push(format!("{} ({on})", names(&mnemonics)));
        }
        paragraph(text, "- ", &format!("{}: {}.", capital(reason), parts.join("; ")));
    }
}

/// Appends a paragraph, wrapped; lines after the first are indented by the mark's width.
fn paragraph(text: &mut String, mark: &str, words: &str) {
    let mut line = mark.to_owned();
    let mut empty = true;
    for word in words.split(' ') {
        if !empty && line.len() + 1 + word.len() > WIDTH {
            text.push_str(&line);
            text.push('\n');
            line = " ".repeat(mark.len());
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    text.push_str(&line);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_is_what_the_code_says() {
        let coverage = Coverage::of(&Target::ALL);
        let path = crate::coverage_path();
        let document = std::fs::read_to_string(&path).unwrap();
        let text = coverage.document();
        let stale = document.lines().zip(text.lines()).find(|(old, new)| old != new);
        assert!(
            document == text,
            "{}: run `cargo run -p kfdrun-harvest -- coverage`; first line that differs: {stale:?}",
            path.display()
        );
    }

    #[test]
    fn whatever_is_refused_has_a_reason_of_its_own() {
        let coverage = Coverage::of(&Target::ALL);
        let general = emu::cu::lower::Unsupported::Operation.to_string();
        assert_eq!(coverage.refused.get(&general), None, "add the reason to emu/src/cu/refusal.rs");
        assert_eq!(coverage.partly.get(&general), None);
        for target in Target::ALL {
            let Count { implemented, no_ops, refused } = coverage.total(target);
            assert!(refused * 50 < implemented, "{target}: {refused} rows refused, {implemented} implemented");
            assert!(no_ops > 20, "{target}: {no_ops}");
        }
    }

    #[test]
    fn names_are_drawn_together() {
        let set = BTreeSet::from(["v_rcp_f16", "v_rcp_f32", "v_rsq_f32", "v_nop"]);
        assert_eq!(names(&set), "`v_nop`, `v_rcp_{f16,f32}`, `v_rsq_f32`");
    }

    #[test]
    fn paragraphs_wrap() {
        let mut text = String::new();
        paragraph(&mut text, "- ", "word ".repeat(40).trim_end());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("- word") && lines[1].starts_with("  word") && lines[0].len() <= WIDTH);
    }
}

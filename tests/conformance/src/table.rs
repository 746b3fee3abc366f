//! Tables of what was found: of one run, or of two side by side.

use crate::record::{Outcome, Record, Step};
use std::fmt::Write;

/// A table of one run: a line a case, and a line for each step that is not as it should be; with `steps` all of them.
pub fn one(records: &[Record], steps: bool) -> String {
    let width = records.iter().map(|record| record.id.len()).max().unwrap_or(0);
    let mut text = String::new();
    for record in records {
        let note = match &record.outcome {
            Outcome::Skip(reason) | Outcome::Broken(reason) => reason.clone(),
            Outcome::Pass | Outcome::Fail => format!("{} answers", record.steps.len()),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{:width$}  {:6}  {note}", record.id, record.outcome.name());
        for step in record.steps.iter().filter(|step| steps || step.got != step.want) {
            let want = if step.got == step.want { String::new() } else { format!(", by the rules {}", step.want) };
            let _ = writeln!(text, "    {}: {}{want}", step.what, step.got);
        }
    }
    let count = |name| records.iter().filter(|record| record.outcome.name() == name).count();
    let answers: usize = records.iter().map(|record| record.steps.len()).sum();
    let _ = writeln!(
        text,
        "{} cases, {answers} answers: {} pass, {} fail, {} broken, {} skipped",
        records.len(),
        count("pass"),
        count("FAIL"),
        count("BROKEN"),
        count("skip"),
    );
    text
}

/// Two runs side by side.
pub struct Comparison {
    /// The table.
    pub text: String,
    /// Cases that ran on both.
    pub compared: usize,
    /// Answers that were compared.
    pub answers: usize,
    /// Cases that ran on both and gave different answers.
    pub different: Vec<String>,
}

fn ran(record: &Record) -> bool {
    !matches!(record.outcome, Outcome::Skip(_))
}

/// Puts two runs side by side: each answer of each case that ran on both.
pub fn two(left: &[Record], left_name: &str, right: &[Record], right_name: &str) -> Comparison {
    let mut comparison = Comparison { text: String::new(), compared: 0, answers: 0, different: Vec::new() };
    let widest = |records: &[Record]| records.iter().flat_map(|record| &record.steps).map(|step| step.what.len()).max();
    let width = widest(left).max(widest(right)).unwrap_or(0).min(64);
    let column = |text: &str| {
        let short: String = text.chars().take(36).collect();
        if short.len() < text.len() { format!("{short}…") } else { short }
    };
    let text = &mut comparison.text;
    let _ = writeln!(text, "{:width$}      {left_name:38} {right_name}", "case and answer");
    for record in left {
        let Some(other) = right.iter().find(|other| other.id == record.id) else { continue };
        if !ran(record) || !ran(other) {
            continue;
        }
        comparison.compared += 1;
        let (a, b) = (record.outcome.name(), other.outcome.name());
        let _ = writeln!(text, "{:width$}      {a:38} {b}", record.id);
        let mut differs = record.steps.len() != other.steps.len() || a != b;
        let none = Step { what: String::new(), got: "—".to_string(), want: String::new() };
        for i in 0..record.steps.len().max(other.steps.len()) {
            let (a, b) = (record.steps.get(i).unwrap_or(&none), other.steps.get(i).unwrap_or(&none));
            let what = if a.what.is_empty() { &b.what } else { &a.what };
            let same = a.got == b.got && a.what == b.what;
            differs |= !same;
            comparison.answers += 1;
            let mark = if same { ' ' } else { '!' };
            let _ = writeln!(text, "{mark}   {what:width$}  {:38} {}", column(&a.got), column(&b.got));
        }
        for reason in [record.outcome.reason(), other.outcome.reason()].into_iter().flatten() {
            let _ = writeln!(text, "    {reason}");
        }
        if differs {
            comparison.different.push(record.id.clone());
        }
    }
    let (compared, answers) = (comparison.compared, comparison.answers);
    let _ =
        writeln!(text, "{compared} cases ran on both, with {answers} answers; {} differ", comparison.different.len());
    for id in &comparison.different {
        let _ = writeln!(text, "differs: {id}");
    }
    comparison
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(id: &str, outcome: Outcome, steps: &[(&str, &str, &str)]) -> Record {
        let step = |(what, got, want): &(&str, &str, &str)| Step {
            what: what.to_string(),
            got: got.to_string(),
            want: want.to_string(),
        };
        Record { id: id.to_string(), outcome, steps: steps.iter().map(step).collect() }
    }

    #[test]
    fn tables() {
        let left = [
            record("A/same", Outcome::Pass, &[("open", "0", "0"), ("close", "EBADF", "EBADF")]),
            record("A/different", Outcome::Fail, &[("open", "EINVAL", "0")]),
            record("A/shorter", Outcome::Broken("it took too long".to_string()), &[]),
            record("B/skipped", Outcome::Skip("no GPU".to_string()), &[]),
        ];
        let right = [
            record("A/same", Outcome::Pass, &[("open", "0", "0"), ("close", "EBADF", "EBADF")]),
            record("A/different", Outcome::Pass, &[("open", "0", "0")]),
            record("A/shorter", Outcome::Pass, &[("open", "0", "0")]),
            record("B/skipped", Outcome::Pass, &[("open", "0", "0")]),
        ];
        insta::assert_snapshot!("one", one(&left, false));
        let comparison = two(&left, "emulated", &right, "Linux");
        assert_eq!((comparison.compared, comparison.answers), (3, 4));
        assert_eq!(comparison.different, ["A/different", "A/shorter"]);
        insta::assert_snapshot!("two", comparison.text);
    }
}

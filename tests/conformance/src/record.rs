//! What a case found, and how it is written: one line of JSON a case, so that it gets through a serial console.

use std::fmt::Write;

/// One call of a case, or one value it looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What was done.
    pub what: String,
    /// The answer: `0`, an errno's name, or a value.
    pub got: String,
    /// The answer by the kernel's rules.
    pub want: String,
}

/// How a case ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every answer was the one wanted.
    Pass,
    /// Some were not.
    Fail,
    /// It came to no end: what it builds on failed, it took too long, or its process died.
    Broken(String),
    /// It cannot run here.
    Skip(String),
}

/// A case's end with its steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// `group/name`.
    pub id: String,
    /// How it ended.
    pub outcome: Outcome,
    /// What it did.
    pub steps: Vec<Step>,
}

impl Outcome {
    /// As in a table.
    pub fn name(&self) -> &'static str {
        match self {
            Outcome::Pass => "pass",
            Outcome::Fail => "FAIL",
            Outcome::Broken(_) => "BROKEN",
            Outcome::Skip(_) => "skip",
        }
    }

    /// Why it was skipped or broke off.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Outcome::Broken(reason) | Outcome::Skip(reason) => Some(reason),
            Outcome::Pass | Outcome::Fail => None,
        }
    }

    /// Not a success.
    pub fn is_bad(&self) -> bool {
        matches!(self, Outcome::Fail | Outcome::Broken(_))
    }
}

/// What a line of records must start with to be one: a console has other lines too.
const START: &str = "{\"case\":";

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if (c as u32) < 0x20 => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

impl Record {
    /// One line of JSON, without its end.
    pub fn to_line(&self) -> String {
        let mut line = format!("{START}{},\"outcome\":{}", quoted(&self.id), quoted(self.outcome.name()));
        if let Some(reason) = self.outcome.reason() {
            let _ = write!(line, ",\"reason\":{}", quoted(reason));
        }
        line.push_str(",\"steps\":[");
        for (i, step) in self.steps.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            let (what, got, want) = (quoted(&step.what), quoted(&step.got), quoted(&step.want));
            let _ = write!(line, "{comma}[{what},{got},{want}]");
        }
        line.push_str("]}");
        line
    }

    /// Reads such a line. None: it is not one.
    pub fn from_line(line: &str) -> Option<Record> {
        let mut text = Text(line.trim_end().strip_prefix(START)?);
        let id = text.string()?;
        text.literal(",\"outcome\":")?;
        let name = text.string()?;
        let reason = match text.literal(",\"reason\":") {
            Some(()) => text.string()?,
            None => String::new(),
        };
        text.literal(",\"steps\":[")?;
        let mut steps = Vec::new();
        while text.literal("]}").is_none() {
            if !steps.is_empty() {
                text.literal(",")?;
            }
            text.literal("[")?;
            let what = text.string()?;
            text.literal(",")?;
            let got = text.string()?;
            text.literal(",")?;
            let want = text.string()?;
            text.literal("]")?;
            steps.push(Step { what, got, want });
        }
        let outcome = match name.as_str() {
            "pass" => Outcome::Pass,
            "FAIL" => Outcome::Fail,
            "BROKEN" => Outcome::Broken(reason),
            "skip" => Outcome::Skip(reason),
            _ => return None,
        };
        text.0.is_empty().then_some(Record { id, outcome, steps })
    }
}

/// The records in a file or on a console.
pub fn read(text: &str) -> Vec<Record> {
    text.lines().filter_map(|line| Record::from_line(&line[line.find(START)?..])).collect()
}

/// The rest of a line.
struct Text<'a>(&'a str);

impl Text<'_> {
    fn literal(&mut self, wanted: &str) -> Option<()> {
        self.0 = self.0.strip_prefix(wanted)?;
        Some(())
    }

    fn string(&mut self) -> Option<String> {
        self.literal("\"")?;
        let mut out = String::new();
        let mut chars = self.0.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.0 = &self.0[at + 1..];
                    return Some(out);
                }
                '\\' => match chars.next()?.1 {
                    'u' => {
                        let digits: String = (0..4).filter_map(|_| chars.next().map(|(_, c)| c)).collect();
                        out.push(char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?);
                    }
                    c => out.push(c),
                },
                c => out.push(c),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_back() {
        let step = |what: &str| Step { what: what.to_string(), got: "0".to_string(), want: "EINVAL".to_string() };
        let steps = vec![step("a \"quoted\" \\ one"), step("two\nlines")];
        for outcome in [
            Outcome::Pass,
            Outcome::Fail,
            Outcome::Broken("it, \"hangs\"".to_string()),
            Outcome::Skip("no GPU".to_string()),
        ] {
            for steps in [Vec::new(), steps.clone()] {
                let record = Record { id: "G/n".to_string(), outcome: outcome.clone(), steps };
                assert_eq!(Record::from_line(&record.to_line()), Some(record.clone()));
                let console = format!("[    1.0] noise\r\n[  1.1] {}\r\nmore", record.to_line());
                assert_eq!(read(&console), [record]);
            }
        }
        assert_eq!(Record::from_line("{\"case\":\"G/n\",\"outcome\":\"pass\",\"steps\":["), None);
        assert_eq!(Record::from_line("nothing"), None);
    }
}

//! Readings as text and as JSON.

use super::{KINDS, Reading, SCHEMA, Section};
use crate::json::Json;
use crate::style::{Colour, Style};

/// The first reading in full, the others by their titles.
pub fn readings(words: &str, readings: &[Reading], style: Style) -> String {
    let mut out = String::new();
    let Some((first, others)) = readings.split_first() else { return out };
    out += &full(first, style);
    if !others.is_empty() {
        out += &format!("\n{}\n", style.paint(Colour::Bold, "It can also be:"));
        let names = KINDS.map(|(kind, ..)| kind);
        let bare = match words.split_once(char::is_whitespace) {
            Some((first, rest)) if names.contains(&first) => rest,
            _ => words,
        };
        let short = if bare.len() > 40 { "..." } else { bare };
        let rows: Vec<Vec<String>> = others.iter().map(|r| vec![asking(first, r, short), r.title.clone()]).collect();
        out += &style.table(2, &rows);
    }
    out
}

/// The words that ask for this reading; only its kind where they would ask for the first one again.
fn asking(first: &Reading, other: &Reading, input: &str) -> String {
    if first.kind == other.kind { other.kind.to_owned() } else { format!("explain {} {input}", other.kind) }
}

fn full(reading: &Reading, style: Style) -> String {
    let mut out = format!("{}\n", style.paint(Colour::Bold, &style.hang("", 0, &reading.title)));
    for section in &reading.sections {
        if !section.title.is_empty() {
            out += &format!("\n{}:\n", section.title);
        }
        out += &table(section, style);
    }
    if !reading.notes.is_empty() && !reading.sections.is_empty() {
        out.push('\n');
    }
    for note in &reading.notes {
        out += &format!("{}\n", style.hang("  ", 2, note));
    }
    out
}

fn table(section: &Section, style: Style) -> String {
    let used = [0, 1, 2].map(|column| section.rows.iter().any(|row| !row[column].is_empty()));
    let rows: Vec<Vec<String>> = section
        .rows
        .iter()
        .map(|row| row.iter().zip(used).filter(|(_, used)| *used).map(|(cell, _)| cell.clone()).collect())
        .collect();
    style.table(2, &rows)
}

/// All readings in full.
pub fn json(words: &str, readings: &[Reading]) -> Json {
    let section = |section: &Section| {
        let rows = section.rows.iter().map(|[name, value, meaning]| {
            let text = |text: &String| Json::from((!text.is_empty()).then(|| text.clone()));
            Json::object([("name", text(name)), ("value", text(value)), ("meaning", text(meaning))])
        });
        Json::object([("title", section.title.as_str().into()), ("rows", Json::list(rows))])
    };
    let readings = readings.iter().map(|reading| {
        Json::object([
            ("kind", reading.kind.into()),
            ("likely", reading.likely.into()),
            ("title", reading.title.as_str().into()),
            ("sections", Json::list(reading.sections.iter().map(section))),
            ("notes", Json::list(reading.notes.iter().map(String::as_str))),
        ])
    });
    Json::object([
        ("schema", "kfdrun-explain".into()),
        ("schema_version", SCHEMA.into()),
        ("input", words.into()),
        ("readings", Json::list(readings)),
    ])
}

/// What can be explained.
pub fn kinds(style: Style) -> String {
    let rows: Vec<Vec<String>> = KINDS
        .iter()
        .map(|(kind, what, example)| vec![(*kind).to_owned(), format!("{what}; kfdrun explain {example}")])
        .collect();
    format!(
        "This can be explained; the word in front, to be put before it, is needed only to choose:\n{}",
        style.table(2, &rows)
    )
}

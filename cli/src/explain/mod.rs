//! `kfdrun explain`: what a number, a name or some bytes mean. Needs no device.
//!
//! Each module knows some kinds of things and gives a [`Reading`] of what it was handed, with how likely that is meant.
//! The tables are those the rest of the program runs on.

mod constant;
mod errno;
mod input;
mod ioctl;
mod packet;
mod queue;
mod status;
mod target;
mod text;
mod word;

#[cfg(test)]
mod tests;

use crate::output::{print, print_line};
use input::{Input, Number};

/// Version of the form of `--json`.
const SCHEMA: u32 = 1;

/// One thing the input can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// What kind of thing, a word of [`KINDS`].
    pub kind: &'static str,
    /// How likely it is meant, 0 to 100; 0 is shown only when its kind is asked for.
    pub likely: u8,
    /// One line.
    pub title: String,
    /// Tables.
    pub sections: Vec<Section>,
    /// Sentences.
    pub notes: Vec<String>,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Heading; empty for the only table.
    pub title: String,
    /// Name, value and meaning; a column that is empty in all rows is not shown.
    pub rows: Vec<[String; 3]>,
}

impl Reading {
    fn new(kind: &'static str, likely: u8, title: impl Into<String>) -> Reading {
        Reading { kind, likely, title: title.into(), sections: Vec::new(), notes: Vec::new() }
    }

    fn section(mut self, title: &str, rows: Vec<[String; 3]>) -> Reading {
        if !rows.is_empty() {
            self.sections.push(Section { title: title.to_owned(), rows });
        }
        self
    }

    fn note(mut self, note: impl Into<String>) -> Reading {
        self.notes.push(note.into());
        self
    }
}

/// A row of a table.
fn row(name: impl Into<String>, value: impl Into<String>, meaning: impl Into<String>) -> [String; 3] {
    [name.into(), value.into(), meaning.into()]
}

/// What can be explained: the word that asks for it, what it is, an example.
pub const KINDS: [(&str, &str, &str); 13] = [
    ("errno", "error number, alone or of one ioctl", "CREATE_QUEUE EINVAL"),
    ("hsa", "HSA status, as ROCR prints it", "0x1009"),
    ("ioctl", "KFD request: number or name", "0xc0604b02"),
    ("inactive", "value of queue_inactive_signal", "inactive 0x80"),
    ("exception", "KFD exception code, or mask of them", "exception 22"),
    ("e_flags", "e_flags of a code object: V3 to V6 may follow", "e_flags 0x53f V6"),
    ("target", "processor: gfx name or gfx_target_version", "90402"),
    ("flags", "flags of ALLOC_MEMORY_OF_GPU: word or names", "0xd6000002"),
    ("header", "first 16 bits of an AQL packet", "header 0x1502"),
    ("packet", "AQL packet: 64 bytes in hexadecimal", "packet 02 15 01 00 ..."),
    ("signal", "amd_signal_t: 64 bytes in hexadecimal", "signal 01 00 00 00 ..."),
    ("mmap", "offset for mmap of /dev/kfd, such as doorbell_offset", "0xf710c00000000008"),
    ("capability", "capability line of a GPU node's properties", "capability 671588992"),
];

/// Every reading of the words, likeliest first. The error says what is wrong with them.
pub fn readings(words: &[String]) -> Result<Vec<Reading>, String> {
    let (kind, input) = input::parse(words)?;
    let mut found: Vec<Reading> = Vec::new();
    match &input {
        Input::CallError(call, errno) => found.extend(errno::of_call(call, *errno)),
        Input::Bytes(bytes) => found.extend(packet::bytes(bytes)),
        Input::Number(number) => of_number(*number, None, &mut found),
        Input::Flags(number, version) => of_number(*number, Some(*version), &mut found),
        Input::Name(name) => {
            found.extend(errno::name(name));
            found.extend(status::name(name));
            found.extend(ioctl::name(name));
            found.extend(queue::name(name));
            found.extend(target::name(name));
            found.extend(word::flag_names(name));
            if found.is_empty() {
                found.extend(constant::name(name));
            }
        }
    }
    if let Some(kind) = kind {
        found.retain(|reading| reading.kind == kind);
        // A report's `exceptions 0x10` is a mask, of which each bit is a code.
        if words.first().is_some_and(|word| word.to_ascii_lowercase().starts_with("exceptions")) {
            found.retain(|reading| reading.title.starts_with("mask"));
        }
        if found.is_empty() {
            return Err(format!("{input} cannot be read as {kind}{}", why_not(kind, &input)));
        }
    }
    if kind.is_none() {
        found.retain(|reading| reading.likely > 0);
    }
    found.sort_by_key(|reading| std::cmp::Reverse(reading.likely));
    if found.is_empty() {
        return Err(format!("{input} is not known here"));
    }
    Ok(found)
}

fn of_number(number: Number, version: Option<elf::Version>, found: &mut Vec<Reading>) {
    found.extend(errno::number(number));
    found.extend(status::number(number));
    found.extend(ioctl::number(number));
    found.extend(queue::inactive(number));
    found.extend(queue::exception(number));
    found.extend(target::e_flags(number, version));
    found.extend(target::version(number));
    found.extend(word::alloc_flags(number));
    found.extend(packet::header_word(number));
    found.extend(word::mmap_offset(number));
    found.extend(word::capability(number));
}

/// The reason a number is not of the kind that was asked for, where there is more to say.
fn why_not(kind: &str, input: &Input) -> String {
    let reason = match (kind, input) {
        ("e_flags", Input::Flags(number, version)) => target::refusal(*number, *version),
        ("e_flags", Input::Number(number)) => target::refusal(*number, elf::Version::V6),
        _ => None,
    };
    reason.map_or(String::new(), |reason| format!(": {reason}"))
}

/// Explains the words on standard output; returns the exit status.
pub fn run(words: &[String], json: bool) -> Result<u8, crate::exit::Failure> {
    let style = crate::style::Style::stdout();
    match readings(words) {
        Ok(readings) if json => print_line(text::json(&words.join(" "), &readings))?,
        Ok(readings) => print(&text::readings(&words.join(" "), &readings, style))?,
        Err(problem) => {
            if json {
                print_line(text::json(&words.join(" "), &[]))?;
            }
            return Err(crate::exit::Failure::new(1, format!("{problem}\n{}", text::kinds(style).trim_end())));
        }
    }
    Ok(0)
}

//! `kfdrun doctor`: whether this machine and this process can use a GPU, and if not, why.
//!
//! Everything is looked at through one [`Host`], which is this machine or the copy of one that `--bundle` wrote. Files,
//! device nodes and limits are judged by what they say, never by the names of groups or distributions.

mod bundle;
mod environment;
mod facts;
mod host;
mod machine;
mod nodes;
mod pci;
mod topology;

use crate::args::DoctorArgs;
use crate::exit::{ENVIRONMENT, Failure};
use crate::json::Json;
use crate::output::{print, print_line};
use crate::style::{Colour, Style};
pub use host::Host;
use kfd::System;
use std::sync::Arc;
use trace::Tracer;

/// Version of the form of `--json`.
const SCHEMA: u32 = 1;

/// Exit status when something failed.
const FAILED: u8 = 1;

/// What a check found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// As it should be.
    Good,
    /// Worth knowing, neither good nor bad.
    Note,
    /// It will do, or some programs will not.
    Warning,
    /// No program will run on the GPU.
    Failure,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            State::Good => "ok",
            State::Note => "note",
            State::Warning => "warning",
            State::Failure => "failure",
        }
    }

    fn colour(self) -> Colour {
        match self {
            State::Good => Colour::Green,
            State::Note => Colour::Dim,
            State::Warning => Colour::Yellow,
            State::Failure => Colour::Red,
        }
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// What was looked at, a word for programs.
    pub check: &'static str,
    /// What was found.
    pub state: State,
    /// In words, with the values.
    pub text: String,
    /// What to do.
    pub remedy: Option<String>,
}

impl Line {
    fn new(check: &'static str, state: State, text: impl Into<String>) -> Line {
        Line { check, state, text: text.into(), remedy: None }
    }

    fn good(check: &'static str, text: impl Into<String>) -> Line {
        Line::new(check, State::Good, text)
    }

    fn note(check: &'static str, text: impl Into<String>) -> Line {
        Line::new(check, State::Note, text)
    }

    fn warning(check: &'static str, text: impl Into<String>, remedy: impl Into<String>) -> Line {
        Line { remedy: Some(remedy.into()), ..Line::new(check, State::Warning, text) }
    }

    fn failure(check: &'static str, text: impl Into<String>, remedy: impl Into<String>) -> Line {
        Line { remedy: Some(remedy.into()), ..Line::new(check, State::Failure, text) }
    }

    /// A failure with an error's own words.
    fn error(check: &'static str, error: &kfd::Error) -> Line {
        let rule = error.rule().map_or(String::new(), |rule| format!("; {rule}"));
        Line { remedy: error.advice(), ..Line::new(check, State::Failure, format!("{error}{rule}")) }
    }
}

/// All findings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Findings by subject.
    pub sections: Vec<(&'static str, Vec<Line>)>,
}

impl Report {
    /// Looks at everything.
    fn of(host: &Arc<Host>) -> Report {
        let system = System::new(host.clone(), Tracer::default());
        let surroundings = machine::Surroundings::of(&system);
        let topology = topology::Reading::of(&system);
        let (opened, mut nodes) = nodes::lines(&system, host, &topology);
        let (mut gpus, mut pci) = match surroundings.impossible() && !topology.readable() {
            // What is missing further down has been explained.
            true => (Vec::new(), Vec::new()),
            false => (topology.lines(&system), pci::lines(&system, &topology)),
        };
        // One GPU that works is enough; what is wrong with others keeps no program from running.
        if opened.version.is_some() && topology.usable().any(|path| opened.render_nodes.contains(&path)) {
            for line in nodes.iter_mut().chain(&mut gpus).chain(&mut pci).filter(|line| line.state == State::Failure) {
                line.state = State::Warning;
            }
        }
        Report {
            sections: vec![
                ("Machine", machine::lines(&system, host, &surroundings)),
                ("Driver", machine::driver(&system, &surroundings, opened.version)),
                ("Device nodes", nodes),
                ("Topology", gpus),
                ("PCI Express", pci),
                ("Limits", environment::limits(&system, host)),
                ("Environment", environment::variables(host, &topology)),
            ],
        }
    }

    fn count(&self, state: State) -> usize {
        self.sections.iter().flat_map(|(_, lines)| lines).filter(|line| line.state == state).count()
    }

    fn status(&self) -> u8 {
        if self.count(State::Failure) > 0 { FAILED } else { 0 }
    }

    fn summary(&self) -> String {
        let count = |state, what: &str| match self.count(state) {
            1 => format!("1 {what}"),
            n => format!("{n} {what}s"),
        };
        let verdict = match self.status() {
            0 => "kfdrun can use the GPU here",
            _ => "kfdrun cannot use a GPU here; --device emu runs programs on an emulated one",
        };
        format!("{verdict} ({}, {})", count(State::Failure, "failure"), count(State::Warning, "warning"))
    }

    fn text(&self, style: Style) -> String {
        const INDENT: usize = 11;
        let mut out = String::new();
        let mut said = Vec::new();
        for (title, lines) in self.sections.iter().filter(|(_, lines)| !lines.is_empty()) {
            out += &format!("{}\n", style.paint(Colour::Bold, title));
            for line in lines {
                let state = style.paint(line.state.colour(), &format!("{:7}", line.state.name()));
                out += &format!("{}\n", style.hang(&format!("  {state}  "), INDENT, &line.text));
                // The same remedy twice would look like two.
                if let Some(remedy) = line.remedy.as_ref().filter(|remedy| !said.contains(remedy)) {
                    said.push(remedy);
                    out += &format!("{}\n", style.hang(&format!("{:INDENT$}-> ", ""), INDENT + 3, remedy));
                }
            }
            out.push('\n');
        }
        let colour = if self.status() == 0 { Colour::Green } else { Colour::Red };
        out + &format!("{}\n", style.hang("", 0, &style.paint(colour, &self.summary())))
    }

    fn json(&self) -> Json {
        let line = |line: &Line| {
            Json::object([
                ("check", line.check.into()),
                ("state", line.state.name().into()),
                ("text", line.text.as_str().into()),
                ("remedy", line.remedy.clone().into()),
            ])
        };
        let sections = self.sections.iter().map(|(title, lines)| {
            Json::object([("title", (*title).into()), ("checks", Json::list(lines.iter().map(line)))])
        });
        Json::object([
            ("schema", "kfdrun-doctor".into()),
            ("schema_version", SCHEMA.into()),
            ("kfdrun", env!("CARGO_PKG_VERSION").into()),
            ("failures", Json::Number(self.count(State::Failure) as i128)),
            ("warnings", Json::Number(self.count(State::Warning) as i128)),
            ("sections", Json::list(sections)),
        ])
    }
}

/// Looks at the machine, prints the report, writes the bundle; returns the exit status.
pub fn run(args: &DoctorArgs) -> Result<u8, Failure> {
    let host = match &args.root {
        None => Host::this_machine(),
        Some(root) => Host::recorded(root).map_err(|problem| Failure::new(ENVIRONMENT, problem))?,
    };
    let host = Arc::new(host);
    let report = Report::of(&host);
    if let Some(path) = &args.bundle {
        let archive = bundle::archive(&host, &report);
        let written = std::fs::write(path, archive);
        written.map_err(|error| Failure::new(ENVIRONMENT, format!("{}: {error}", path.display())))?;
    }
    if args.json {
        print_line(report.json())?;
    } else {
        print(&report.text(Style::stdout()))?;
    }
    Ok(report.status())
}

//! Constants of the user interface by name.

use super::{Reading, row};
use kfd::uapi::{CONSTANTS, Constant};

/// Documentation as plain text: no links, no backticks.
pub fn plain(doc: &str) -> String {
    let mut text = String::new();
    let mut rest = doc.trim();
    while let Some(at) = rest.find(['[', '`']) {
        text += &rest[..at];
        rest = &rest[at..];
        if let Some(link) = rest.strip_prefix("[`")
            && let Some((name, after)) = link.split_once("`]")
        {
            text += name.rsplit("::").next().unwrap_or(name);
            rest = after.strip_prefix('(').and_then(|after| after.split_once(')')).map_or(after, |(_, after)| after);
        } else {
            text += if rest.starts_with('[') { "[" } else { "" };
            rest = &rest[1..];
        }
    }
    (text + rest).replace("  ", " ")
}

/// The constants of the interface.
pub fn all() -> impl Iterator<Item = &'static Constant> {
    CONSTANTS.iter().flat_map(|section| section.iter())
}

/// A constant by its name or the end of it.
pub fn name(name: &str) -> Option<Reading> {
    let upper = name.to_ascii_uppercase();
    let ends = |c: &&Constant| c.c_name.strip_suffix(upper.as_str()).is_some_and(|rest| rest.ends_with('_'));
    let constant = all().find(|c| c.c_name == upper).or_else(|| all().find(ends).filter(|_| upper.len() >= 3))?;
    let since = match constant.since {
        1 => "every interface 1.x".to_owned(),
        minor => format!("interface 1.{minor} and later"),
    };
    let title = format!("{} = {:#x} ({})", constant.c_name, constant.value, constant.value);
    let rows = vec![row("meaning", "", plain(constant.doc)), row("in", "", since)];
    Some(Reading::new("constant", 50, title).section("", rows))
}

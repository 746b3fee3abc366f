//! Which entry a device runs (LLVM AMDGPUUsage: "Target ID", "Generic Processors"; Clang documentation: "Clang Offload
//! Bundler", "Target ID").

use std::collections::BTreeMap;

use super::entry::{Contradiction, Entry};
use super::{ContainerKind, Contents};
use crate::target::{Feature, Mismatch, TargetId};

/// Why there is no entry to load. Each displays as one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// The code object, which is the only one or was asked for, does not run there.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// None of several runs there.
    #[error("the device is {device}, the file has no code object for it; it has {has}")]
    NoMatch {
        /// What the device is.
        device: TargetId,
        /// What the file has.
        has: String,
    },
    /// The name names nothing.
    #[error(
        "the file has no entry `{wanted}`: name one by its number (0 to {}), its bundle id or its target id; it has {has}",
        count.saturating_sub(1)
    )]
    NoEntry {
        /// The name.
        wanted: String,
        /// Entries there are.
        count: usize,
        /// What the file has.
        has: String,
    },
    /// The entry for the device, or the one asked for, is not a code object.
    #[error("entry {index} ({id}) is not a code object to load but {content}")]
    NotCode {
        /// Its number.
        index: usize,
        /// Its id.
        id: String,
        /// What it is.
        content: String,
    },
    /// Several are equally good.
    #[error(
        "entries {} are equally good for the device, {device}: they belong to different programs; name one by its number",
        list(entries)
    )]
    Ambiguous {
        /// What the device is.
        device: TargetId,
        /// Their numbers.
        entries: Vec<usize>,
    },
    /// The container calls it something that its code is not.
    #[error("entry {index} is called {id}, its e_flags say {flags}: they must agree")]
    Disagreement {
        /// Its number.
        index: usize,
        /// Its id.
        id: String,
        /// What the code is for.
        flags: TargetId,
    },
}

fn list(entries: &[usize]) -> String {
    let mut text: Vec<_> = entries.iter().take(8).map(usize::to_string).collect();
    if entries.len() > text.len() {
        text.push(format!("{} more", entries.len() - text.len()));
    }
    text.join(", ")
}

/// The entry to load on `device`, whose features all have a setting.
///
/// Of the code objects that run there, in this order: the device's own processor with most features fixed, with fewer,
/// then the generic processor of its family in a version that has the device. When several bundles have one each, they
/// are parts of different programs and nothing is guessed.
///
/// `wanted` names an entry by number, bundle id or target id. It must run on the device as well.
pub fn select<'c, 'a>(
    contents: &'c Contents<'a>,
    device: &TargetId,
    wanted: Option<&str>,
) -> Result<&'c Entry<'a>, SelectError> {
    let named: Vec<usize> = match wanted {
        Some(wanted) => named(contents, wanted),
        None => (0..contents.entries.len()).collect(),
    };
    let best = best(contents, device, &named);
    if let [index] = best[..] {
        return Ok(&contents.entries[index]);
    }
    if !best.is_empty() {
        return Err(SelectError::Ambiguous { device: *device, entries: best });
    }
    Err(why_none(contents, device, wanted, &named))
}

/// The entries to choose from for `device`: of each bundle, and of offload binaries side by side, the best. One of them
/// at most is what [`select`] gives; a program of several source files has one for each.
pub fn matching<'c, 'a>(contents: &'c Contents<'a>, device: &TargetId) -> Vec<&'c Entry<'a>> {
    let all: Vec<usize> = (0..contents.entries.len()).collect();
    best(contents, device, &all).into_iter().map(|index| &contents.entries[index]).collect()
}

/// Entries by number, id or target id.
fn named(contents: &Contents<'_>, wanted: &str) -> Vec<usize> {
    if let Ok(index) = wanted.parse::<usize>() {
        return (0..contents.entries.len()).filter(|&i| i == index).collect();
    }
    let target: Option<TargetId> = wanted.parse().ok();
    let is_named = |entry: &Entry<'_>| {
        let of_target = |id: &TargetId| target.is_some_and(|want| same(&want, id));
        entry.id == wanted
            || entry.arch == wanted
            || entry.target.as_ref().or(entry.code_target()).is_some_and(of_target)
    };
    (0..contents.entries.len()).filter(|&i| is_named(&contents.entries[i])).collect()
}

fn same(a: &TargetId, b: &TargetId) -> bool {
    (a.processor, a.sramecc, a.xnack) == (b.processor, b.sramecc, b.xnack)
}

/// The best of each group, all of them where several are as good.
fn best(contents: &Contents<'_>, device: &TargetId, among: &[usize]) -> Vec<usize> {
    let mut groups: BTreeMap<_, (_, Vec<usize>)> = BTreeMap::new();
    for &index in among {
        let entry = &contents.entries[index];
        let Some(Ok(target)) = entry.for_devices() else { continue };
        if target.matches(device).is_err() {
            continue;
        }
        let rank = rank(&target);
        let (top, entries) = groups.entry(group(contents, entry)).or_insert((rank, vec![]));
        if rank > *top {
            (*top, *entries) = (rank, vec![]);
        }
        if rank == *top {
            entries.push(index);
        }
    }
    let mut best: Vec<_> = groups.into_values().flat_map(|(_, entries)| entries).collect();
    best.sort_unstable();
    best
}

/// Better is more: the processor itself, then features that are fixed.
fn rank(target: &TargetId) -> (bool, usize) {
    let fixed = [target.sramecc, target.xnack].into_iter().filter(|f| matches!(f, Feature::On | Feature::Off));
    (!target.processor.is_generic(), fixed.count())
}

/// What holds the versions of one program: a bundle, or all offload binaries that lie side by side.
fn group(contents: &Contents<'_>, entry: &Entry<'_>) -> Option<usize> {
    match contents.containers.get(entry.container) {
        Some(container) if matches!(container.kind, ContainerKind::OffloadBinary { .. }) => container.parent,
        _ => Some(entry.container),
    }
}

fn why_none(contents: &Contents<'_>, device: &TargetId, wanted: Option<&str>, named: &[usize]) -> SelectError {
    let entries = &contents.entries;
    if let (Some(wanted), []) = (wanted, named) {
        let (wanted, count, has) = (wanted.to_owned(), entries.len(), summary(contents));
        return SelectError::NoEntry { wanted, count, has };
    }
    // What seems to be for the device explains more than what is for others.
    let only = named.len() == 1;
    let seems = |target: Option<&TargetId>| target.is_some_and(|target| target.matches(device).is_ok());
    let mut mismatches = vec![];
    for &index in named {
        let entry = &entries[index];
        let said = seems(entry.target.as_ref());
        match (entry.for_devices(), entry.code_target()) {
            (Some(Err(Contradiction)), Some(&flags)) if only || said || seems(Some(&flags)) => {
                return SelectError::Disagreement { index, id: entry.id.clone(), flags };
            }
            (None, _) if only || said => {
                let Entry { id, content, .. } = entry;
                return SelectError::NotCode { index, id: id.clone(), content: content.to_string() };
            }
            (Some(Ok(target)), _) => mismatches.extend(target.matches(device).err()),
            _ => {}
        }
    }
    if let [mismatch] = &mismatches[..] {
        return mismatch.clone().into();
    }
    SelectError::NoMatch { device: *device, has: summary(contents) }
}

/// What a file has, each target once, in its order.
fn summary(contents: &Contents<'_>) -> String {
    const MOST: usize = 24;
    let mut has: Vec<String> = vec![];
    let mut more = 0;
    for entry in &contents.entries {
        let text = match (entry.code_target(), entry.arch.as_str()) {
            (Some(target), _) => target.to_string(),
            (None, "") => format!("{} ({})", entry.kind.name(), entry.content),
            (None, arch) => format!("{arch} ({})", entry.content),
        };
        if has.contains(&text) {
            continue;
        }
        if has.len() == MOST {
            more += 1;
            continue;
        }
        has.push(text);
    }
    if has.is_empty() {
        return "nothing".to_owned();
    }
    if more > 0 {
        has.push(format!("{more} more"));
    }
    has.join(", ")
}

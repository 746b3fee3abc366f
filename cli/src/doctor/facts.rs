//! What a copy of a machine's files cannot hold: owners of device nodes, who asked, limits, variables. A bundle has it in
//! one file of lines, `kfdrun-host`.

use kfd::{Errno, Permissions};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Name of the file.
pub const FILE: &str = "kfdrun-host";

/// First line of the file.
const HEAD: &str = "kfdrun-host 1";

/// The facts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Effective user.
    pub uid: u32,
    /// Effective and supplementary groups.
    pub gids: Vec<u32>,
    /// Bytes of a page of the host.
    pub page_size: u64,
    /// RLIMIT_AS in bytes, none for no limit.
    pub address_space: Option<u64>,
    /// RLIMIT_NOFILE, none for no limit.
    pub open_files: Option<u64>,
    /// Owner, group, mode and name of the group of device nodes that exist.
    pub nodes: BTreeMap<String, (u32, u32, u32, Option<String>)>,
    /// What opening a device node gave: 0, or the error.
    pub opens: BTreeMap<String, i32>,
    /// KFD interface.
    pub version: Option<(u32, u32)>,
    /// Files and folders that could not be read for another reason than that they do not exist.
    pub errors: BTreeMap<String, i32>,
    /// Variables that change what ROCR does.
    pub variables: Vec<(String, String)>,
}

impl Facts {
    /// Owner and mode of a device node, as [`kfd::Error`] wants it.
    pub fn permissions(&self, path: &str) -> Result<Permissions, Errno> {
        let (uid, gid, mode, group) = self.nodes.get(path).ok_or(Errno::ENOENT)?;
        Ok(Permissions {
            mode: *mode,
            uid: *uid,
            gid: *gid,
            group: group.clone(),
            caller_uid: self.uid,
            caller_gids: self.gids.clone(),
        })
    }

    /// The file's text.
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "{HEAD}\nuid {}\ngids{}\n",
            self.uid,
            self.gids.iter().fold(String::new(), |s, g| s + &format!(" {g}"))
        );
        let limit = |limit: Option<u64>| limit.map_or("unlimited".to_owned(), |bytes| bytes.to_string());
        // Writing to a string cannot fail.
        let _ = writeln!(text, "page_size {}", self.page_size);
        let _ = writeln!(text, "limit_as {}\nlimit_nofile {}", limit(self.address_space), limit(self.open_files));
        for (path, (uid, gid, mode, group)) in &self.nodes {
            let _ = writeln!(text, "node {path} {uid} {gid} {mode:o} {}", group.as_deref().unwrap_or("-"));
        }
        for (path, errno) in &self.opens {
            let _ = writeln!(text, "open {path} {errno}");
        }
        if let Some((major, minor)) = self.version {
            let _ = writeln!(text, "version {major} {minor}");
        }
        for (path, errno) in &self.errors {
            let _ = writeln!(text, "error {path} {errno}");
        }
        for (name, value) in &self.variables {
            let _ = writeln!(text, "env {name}={}", value.replace('\\', "\\\\").replace('\n', "\\n"));
        }
        text
    }

    /// Reads the file's text; the error names the line.
    pub fn parse(text: &str) -> Result<Facts, String> {
        let mut lines = text.lines();
        if lines.next() != Some(HEAD) {
            return Err(format!("{FILE} does not start with '{HEAD}'"));
        }
        let mut facts = Facts { page_size: kfd::PAGE_SIZE, ..Facts::default() };
        for line in lines.filter(|line| !line.trim().is_empty()) {
            facts.parse_line(line).ok_or_else(|| format!("{FILE}: cannot read the line '{line}'"))?;
        }
        Ok(facts)
    }

    fn parse_line(&mut self, line: &str) -> Option<()> {
        let (key, rest) = line.split_once(' ').unwrap_or((line, ""));
        let words: Vec<&str> = rest.split(' ').collect();
        let limit = |text: &str| if text == "unlimited" { Some(None) } else { text.parse().ok().map(Some) };
        match (key, words.as_slice()) {
            ("uid", [uid]) => self.uid = uid.parse().ok()?,
            ("gids", _) => self.gids = rest.split_whitespace().map(|gid| gid.parse().ok()).collect::<Option<_>>()?,
            ("page_size", [bytes]) => self.page_size = bytes.parse().ok()?,
            ("limit_as", [bytes]) => self.address_space = limit(bytes)?,
            ("limit_nofile", [count]) => self.open_files = limit(count)?,
            ("node", [path, uid, gid, mode, group @ ..]) => {
                let group = group.join(" ");
                let mode = u32::from_str_radix(mode, 8).ok()?;
                let node = (uid.parse().ok()?, gid.parse().ok()?, mode, Some(group).filter(|group| group != "-"));
                self.nodes.insert((*path).to_owned(), node);
            }
            ("open", [path, errno]) => {
                self.opens.insert((*path).to_owned(), errno.parse().ok()?);
            }
            ("version", [major, minor]) => self.version = Some((major.parse().ok()?, minor.parse().ok()?)),
            ("error", [path, errno]) => {
                self.errors.insert((*path).to_owned(), errno.parse().ok()?);
            }
            ("env", _) => {
                let (name, value) = rest.split_once('=')?;
                self.variables.push((name.to_owned(), value.replace("\\n", "\n").replace("\\\\", "\\")));
            }
            _ => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        let facts = Facts {
            uid: 1000,
            gids: vec![1000, 4],
            page_size: 4096,
            address_space: Some(1 << 30),
            open_files: None,
            nodes: [("/dev/kfd".to_owned(), (0, 110, 0o660, Some("render".to_owned())))].into(),
            opens: [("/dev/kfd".to_owned(), 13)].into(),
            version: Some((1, 17)),
            errors: [("/sys/x".to_owned(), 1)].into(),
            variables: vec![("HSA_XNACK".to_owned(), "1 2".to_owned()), ("HSA_CU_MASK".to_owned(), String::new())],
        };
        assert_eq!(Facts::parse(&facts.to_text()), Ok(facts));
        for bad in
            ["", "kfdrun-host 2\n", "kfdrun-host 1\nuid x\n", "kfdrun-host 1\nhello\n", "kfdrun-host 1\nnode /x 1\n"]
        {
            assert!(Facts::parse(bad).is_err(), "{bad}");
        }
    }
}

//! Device nodes: who owns them, who asks, and whether they open.

use super::host::Host;
use super::topology::Reading;
use super::{Line, State};
use kfd::{DEV_KFD, Driver, Errno, Error, Kfd, Permissions, System};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What could be opened.
pub struct Opened {
    /// The KFD's interface.
    pub version: Option<(u32, u32)>,
    /// Render nodes.
    pub render_nodes: BTreeSet<String>,
}

/// What could be opened, and a line for each device node.
pub fn lines(system: &System, host: &Arc<Host>, topology: &Reading) -> (Opened, Vec<Line>) {
    let mut lines = Vec::new();
    let opened = Kfd::open_on(system);
    let version = match &opened {
        Ok(kfd) => {
            host.set_version(kfd.version());
            lines.push(owned(system, DEV_KFD));
            Some(kfd.version())
        }
        Err(error) => {
            lines.push(Line::error("kfd_node", error));
            if matches!(error, Error::Permission { .. }) && topology.readable() {
                let text =
                    "the topology in sysfs can be read all the same: tools that read sysfs only will list the GPU";
                lines.push(Line::note("kfd_node", text));
            }
            None
        }
    };
    let mut render_nodes = BTreeSet::new();
    let paths: BTreeSet<String> = topology.gpus().filter_map(kfd::Node::render_path).collect();
    for path in paths {
        match host.open(&path) {
            Ok(fd) => {
                // Nothing was done with it that a failing close could undo.
                let _ = host.close(fd);
                lines.push(owned(system, &path));
                render_nodes.insert(path);
            }
            Err(errno) => lines.push(refused(system, path, errno)),
        }
    }
    (Opened { version, render_nodes }, lines)
}

fn refused(system: &System, path: String, errno: Errno) -> Line {
    let error = match errno {
        Errno::EACCES | Errno::EPERM => {
            let permissions = system.permissions(&path).ok().map(Box::new);
            Error::Permission { path, errno, permissions }
        }
        errno => Error::Open { path, errno },
    };
    Line::error("render_node", &error)
}

/// A node that opens.
fn owned(system: &System, path: &str) -> Line {
    let check = if path == DEV_KFD { "kfd_node" } else { "render_node" };
    let Ok(permissions) = system.permissions(path) else { return Line::good(check, format!("{path} opens")) };
    let Permissions { mode, uid, gid, group, caller_uid, caller_gids } = permissions;
    let group = group.map_or_else(|| format!("gid {gid}"), |name| format!("{name} (gid {gid})"));
    let why = if mode & 0o006 == 0o006 {
        "everybody may".to_owned()
    } else if caller_gids.contains(&gid) {
        format!("one of your groups is gid {gid}")
    } else {
        format!("you are uid {caller_uid}")
    };
    let text = format!("{path} opens: owner uid {uid}, group {group}, mode {mode:04o}; {why}");
    Line::new(check, State::Good, text)
}

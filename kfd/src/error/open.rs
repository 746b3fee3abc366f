//! Why a device node cannot be opened or mapped.

use crate::driver::Permissions;
use crate::errno::Errno;
use crate::kfd::DEV_KFD;
use crate::system::System;

/// Why there is no `/dev/kfd`, as far as the file system tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// Windows Subsystem for Linux, which has `/dev/dxg` instead.
    Wsl,
    /// A container that the node was not passed to.
    Container {
        /// The host has the amdgpu module.
        module: bool,
    },
    /// The amdgpu module is not loaded.
    NoModule,
    /// The amdgpu module is loaded and has no KFD in it.
    ModuleWithoutKfd,
    /// The KFD is there and its node is not.
    NodeMissing,
}

impl Absence {
    /// Looks for the reason. Reads a few files; for use after the open failed.
    pub(crate) fn find(system: &System) -> Absence {
        let version = system.read("/proc/version").unwrap_or_default();
        if String::from_utf8_lossy(&version).to_ascii_lowercase().contains("microsoft") {
            return Absence::Wsl;
        }
        let module = system.list("/sys/module/amdgpu").is_ok();
        let root = system.list("/").unwrap_or_default();
        let marked = root.iter().any(|name| matches!(name.as_str(), ".dockerenv" | ".singularity.d"));
        if marked || system.read("/run/.containerenv").is_ok() {
            Absence::Container { module }
        } else if !module {
            Absence::NoModule
        } else if system.list("/sys/class/kfd").is_err() {
            Absence::ModuleWithoutKfd
        } else {
            Absence::NodeMissing
        }
    }

    pub(super) fn rule(self) -> String {
        match self {
            Absence::Wsl => "WSL passes GPUs through /dev/dxg; its kernel has no AMDKFD",
            Absence::Container { module: true } => "this is a container, and the host has the amdgpu module loaded",
            Absence::Container { module: false } => "this is a container, and the host has no amdgpu module loaded",
            Absence::NoModule => "the amdgpu module makes the node, and /sys/module/amdgpu does not exist",
            Absence::ModuleWithoutKfd => "amdgpu is loaded, and /sys/class/kfd does not exist",
            Absence::NodeMissing => "amdgpu is loaded and /sys/class/kfd exists",
        }
        .into()
    }

    pub(super) fn advice(self) -> String {
        match self {
            Absence::Wsl => "use a real Linux host, or an emulated GPU",
            Absence::Container { module: true } => {
                "start the container with --device /dev/kfd --device /dev/dri (Apptainer: --bind)"
            }
            Absence::Container { module: false } => {
                "on the host: sudo modprobe amdgpu; then look at dmesg | grep -iE 'kfd|amdgpu'"
            }
            Absence::NoModule => "sudo modprobe amdgpu; then look at dmesg | grep -iE 'kfd|amdgpu'",
            Absence::ModuleWithoutKfd => "the kernel needs CONFIG_HSA_AMD=y; then look at dmesg | grep -i kfd",
            Absence::NodeMissing => "devtmpfs or udev did not make the node: is /dev a full one?",
        }
        .into()
    }
}

/// What an overflow gid shows as in a user namespace that does not map it (`/proc/sys/kernel/overflowgid`).
const OVERFLOW_GID: u32 = 65534;

/// The name of a group, or its number.
fn group(permissions: &Permissions) -> String {
    match &permissions.group {
        Some(name) => format!("{name} (gid {})", permissions.gid),
        None => format!("gid {}", permissions.gid),
    }
}

fn in_group(permissions: &Permissions) -> bool {
    permissions.caller_gids.contains(&permissions.gid)
}

pub(super) fn permission_rule(permissions: &Permissions) -> String {
    let gids: Vec<String> = permissions.caller_gids.iter().map(u32::to_string).collect();
    format!(
        "owner uid {}, group {}, mode {:04o}; this process is uid {} in gids {}",
        permissions.uid,
        group(permissions),
        permissions.mode,
        permissions.caller_uid,
        gids.join(" ")
    )
}

pub(super) fn permission_advice(path: &str, errno: Errno, permissions: Option<&Permissions>) -> String {
    if errno == Errno::EPERM {
        return format!(
            "EPERM comes from a device cgroup or a security module, not from the file's mode: start the container with \
             --device {path}"
        );
    }
    let Some(permissions) = permissions else {
        return format!("look at ls -l {path} and at id: one of your groups must own the node");
    };
    if permissions.gid == OVERFLOW_GID {
        return "the node's group is not mapped into this user namespace: map it (/etc/subgid), or run the container \
                with the host's groups (podman: --group-add keep-groups)"
            .into();
    }
    if permissions.mode & 0o060 == 0o060 && in_group(permissions) {
        return format!(
            "you are in group {}, so this is not a group problem: look at security modules and at dmesg | grep -i kfd",
            group(permissions)
        );
    }
    if permissions.mode & 0o060 != 0o060 {
        return format!("the group may not read and write {path}: a udev rule has to give it mode 0660");
    }
    let gid = permissions.gid;
    let join = match &permissions.group {
        Some(name) => format!("sudo usermod -aG {name} $USER, then log in again"),
        None => format!("no group here has gid {gid}: make one and join it"),
    };
    format!("{join}; in a container: --group-add {gid} (the host's number)")
}

pub(super) fn open_rule(path: &str, errno: Errno) -> Option<&'static str> {
    Some(match (path == DEV_KFD, errno) {
        (true, Errno::EINVAL) => "the driver refused this process: a GPU reset or a driver change is under way",
        (true, Errno::EAGAIN) => "the driver is locked: a GPU reset is under way",
        (true, Errno::ENOSPC) => "every process needs an address space number (PASID), and none is free",
        (true, Errno::ENODEV) => "the node is not the KFD's",
        (false, Errno::ENOENT) => "the render node that the topology names does not exist here",
        (_, Errno::EMFILE) => "this process has as many files open as it may (RLIMIT_NOFILE)",
        _ => return None,
    })
}

pub(super) fn open_advice(path: &str, errno: Errno) -> Option<&'static str> {
    Some(match (path == DEV_KFD, errno) {
        (true, Errno::EINVAL | Errno::EAGAIN) => {
            "wait and try again; if it stays, look at dmesg | grep -iE 'kfd|amdgpu'"
        }
        (true, Errno::ENOSPC) => "end other GPU processes",
        (true, Errno::ENODEV) => "another driver has its device numbers: compare ls -l /dev/kfd with /proc/devices",
        (false, Errno::ENOENT) => "in a container, pass it: --device /dev/dri/renderD<minor>",
        (_, Errno::EMFILE) => "raise ulimit -n",
        _ => return None,
    })
}

pub(super) fn mmap_rule(errno: Errno) -> Option<&'static str> {
    Some(match errno {
        Errno::ENOMEM => "the address space or the number of mappings is used up",
        Errno::EACCES => "a buffer is mapped through the very open of the render node that ACQUIRE_VM got",
        Errno::EINVAL => "the length must be the kernel's own, and the process the one that opened /dev/kfd",
        Errno::ENODEV => "the offset names no mapping of this file",
        _ => return None,
    })
}

pub(super) fn mmap_advice(errno: Errno) -> Option<&'static str> {
    Some(match errno {
        Errno::ENOMEM => "look at ulimit -v and at /proc/sys/vm/max_map_count",
        Errno::EINVAL => "a forked child has to open /dev/kfd itself",
        Errno::EEXIST => "something of this process lies at the addresses that are needed: /proc/self/maps lists it",
        _ => return None,
    })
}

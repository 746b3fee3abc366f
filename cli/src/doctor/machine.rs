//! What kind of machine this is, and its driver.

use super::Line;
use super::host::Host;
use kfd::{Absence, Error, System};

/// Gids that a user namespace with all of them maps.
const ALL_GIDS: u64 = u32::MAX as u64;

/// `/proc/version` of gVisor, which names no project: a kernel of this age and date that is none.
const GVISOR_VERSION: &str = "4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016";

/// What this process runs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surroundings {
    /// First line of `/proc/version`.
    version: String,
    /// Windows Subsystem for Linux.
    wsl: bool,
    /// The gVisor sandbox.
    gvisor: bool,
    /// What shows that it is a container.
    container: Option<String>,
    /// `/sys/module/amdgpu` exists.
    module: bool,
}

fn text(system: &System, path: &str) -> Option<String> {
    let bytes = system.read(path).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim_end().to_owned())
}

impl Surroundings {
    /// Looks around.
    pub fn of(system: &System) -> Surroundings {
        let version = text(system, "/proc/version").unwrap_or_default();
        let lower = version.to_ascii_lowercase();
        let marks = ["/.dockerenv", "/run/.containerenv"];
        let mark = marks.into_iter().find(|path| system.read(path).is_ok());
        let mark = mark.or_else(|| system.list("/.singularity.d").is_ok().then_some("/.singularity.d"));
        let cgroup = text(system, "/proc/1/cgroup").unwrap_or_default();
        let group =
            ["kubepods", "docker", "containerd", "libpod", "lxc"].into_iter().find(|word| cgroup.contains(word));
        Surroundings {
            wsl: lower.contains("microsoft"),
            gvisor: lower.contains("gvisor") || version.contains(GVISOR_VERSION),
            container: mark.map(str::to_owned).or_else(|| group.map(|word| format!("{word} in /proc/1/cgroup"))),
            module: system.list("/sys/module/amdgpu").is_ok(),
            version,
        }
    }
}

impl Surroundings {
    /// No KFD can be here, whatever is done.
    pub fn impossible(&self) -> bool {
        self.wsl || self.gvisor
    }
}

/// Kernel, sandbox, container, user namespace, page size.
pub fn lines(system: &System, host: &Host, around: &Surroundings) -> Vec<Line> {
    let mut lines = Vec::new();
    let kernel = around.version.split(' ').take(3).collect::<Vec<_>>().join(" ").replace(" version ", " ");
    lines.push(match kernel.as_str() {
        "" => Line::note("kernel", "/proc/version cannot be read"),
        kernel => Line::note("kernel", kernel),
    });
    if around.wsl {
        let dxg = if system.list("/dev").is_ok_and(|names| names.iter().any(|name| name == "dxg")) {
            "/dev/dxg is there"
        } else {
            "/dev/dxg is not there either"
        };
        let text = format!("Windows Subsystem for Linux: GPUs come through /dev/dxg ({dxg}); its kernel has no AMDKFD");
        let remedy = "no KFD is possible here: use a real Linux host, or the emulated GPU: kfdrun --device emu IMAGE";
        lines.push(Line::failure("wsl", text, remedy));
    }
    if around.gvisor {
        let remedy = "run outside the sandbox, or use the emulated GPU: kfdrun --device emu IMAGE";
        lines.push(Line::failure("sandbox", "gVisor, which has no support for AMD GPUs", remedy));
    }
    if let Some(mark) = &around.container {
        lines.push(Line::note("container", format!("this is a container ({mark})")));
    }
    lines.extend(user_namespace(system, host));
    let bytes = host.facts().page_size;
    if bytes != kfd::PAGE_SIZE {
        lines.push(Line::error("page_size", &Error::PageSize { bytes }));
    }
    lines
}

/// Ranges of `/proc/self/gid_map`: gid here, gid outside, count.
fn user_namespace(system: &System, host: &Host) -> Option<Line> {
    let map = text(system, "/proc/self/gid_map")?;
    let ranges: Vec<[u64; 3]> = map
        .lines()
        .filter_map(|line| {
            let numbers: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
            numbers.try_into().ok()
        })
        .collect();
    if ranges.iter().any(|[here, outside, count]| *here == 0 && *outside == 0 && *count >= ALL_GIDS) {
        return None;
    }
    let shown: Vec<String> = ranges
        .iter()
        .map(|[here, outside, count]| {
            let last = |first: &u64| first.saturating_add(count.saturating_sub(1));
            match count {
                1 => format!("gid {here} is {outside} outside"),
                _ => format!("gids {here} to {} are {outside} to {} outside", last(here), last(outside)),
            }
        })
        .collect();
    let what = if shown.is_empty() { "it maps no gid".to_owned() } else { shown.join(", ") };
    let root = if host.facts().uid == 0 { "; uid 0 in it is not the host's root" } else { "" };
    Some(Line::note("user_namespace", format!("this is a user namespace: {what}{root}")))
}

/// Module parameters that matter: name, the value that is no trouble, what another one does.
const PARAMETERS: [(&str, &[&str], &str); 5] = [
    ("sched_policy", &["0"], "queues are not scheduled by the firmware: fewer of them, and no debugger"),
    ("cwsr_enable", &["1"], "waves cannot be preempted: a long kernel blocks other processes"),
    ("gpu_recovery", &["-1", "1"], "a GPU that hangs is not reset"),
    ("halt_if_hws_hang", &["0"], "a GPU that hangs stays so, for debugging"),
    ("debug_evictions", &["0", "N"], "evictions are logged"),
];

/// The amdgpu module, and the interface of the KFD when it could be opened.
pub fn driver(system: &System, around: &Surroundings, opened: Option<(u32, u32)>) -> Vec<Line> {
    let mut lines = Vec::new();
    if !around.module {
        // WSL and gVisor say so already, and the remedy would mislead.
        if !around.impossible() {
            let absence = match around.container {
                Some(_) => Absence::Container { module: false },
                None => Absence::NoModule,
            };
            let remedy = Error::NoKfd { absence }.advice().unwrap_or_default();
            let text = "the amdgpu module is not loaded: /sys/module/amdgpu does not exist";
            lines.push(Line::failure("module", text, remedy));
        }
        return lines;
    }
    lines.push(match text(system, "/sys/module/amdgpu/version").filter(|version| !version.is_empty()) {
        Some(version) => {
            Line::good("module", format!("amdgpu {version} is loaded (a driver with a version of its own)"))
        }
        None => Line::good("module", "amdgpu is loaded, the kernel's own"),
    });
    for (name, usual, effect) in PARAMETERS {
        let path = format!("/sys/module/amdgpu/parameters/{name}");
        if let Some(value) = text(system, &path).filter(|value| !usual.contains(&value.as_str())) {
            let remedy = format!("usual is {}; {path} says what it is now", usual.join(" or "));
            lines.push(Line::warning("parameter", format!("amdgpu.{name} is {value}: {effect}"), remedy));
        }
    }
    if system.list("/sys/class/kfd").is_err() {
        lines.push(Line::error("kfd", &Error::NoKfd { absence: Absence::ModuleWithoutKfd }));
    }
    if let Some((major, minor)) = opened {
        let text = format!("the KFD has interface {major}.{minor}");
        lines.push(match minor {
            ..13 => Line::warning(
                "kfd_version",
                format!(
                    "{text}: no RUNTIME_ENABLE before 1.13, so exceptions of a queue are told by its own signal only"
                ),
                "Linux 6.5 and later have 1.13",
            ),
            _ => Line::good("kfd_version", text),
        });
    }
    lines
}

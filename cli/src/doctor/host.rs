//! The machine that is looked at: this one, or files copied from another.

use super::environment;
use super::facts::{FILE, Facts};
use kfd::uapi::{GetVersionArgs, Ioctl, Pod};
use kfd::{Driver, Errno, LinuxDriver, Permissions};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of the descriptor that stands for a device node of a recorded machine; no system call ever gets it.
const RECORDED_FD: i32 = i32::MAX;

/// Longer files are not read: none of those that matter is.
const MAX_FILE: u64 = 1 << 20;

/// What was read, for the bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A file.
    File(Vec<u8>),
    /// A folder.
    Folder,
}

/// A machine as a driver: files below a root, device nodes by the kernel or as they were recorded.
pub struct Host {
    root: PathBuf,
    live: bool,
    facts: Mutex<Facts>,
    seen: Mutex<BTreeMap<String, Seen>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Host {
    /// This machine.
    pub fn this_machine() -> Host {
        let mut gids = vec![nix::unistd::getegid().as_raw()];
        for gid in nix::unistd::getgroups().unwrap_or_default() {
            if !gids.contains(&gid.as_raw()) {
                gids.push(gid.as_raw());
            }
        }
        let facts = Facts {
            uid: nix::unistd::geteuid().as_raw(),
            gids,
            page_size: page_size(),
            address_space: limit(libc::RLIMIT_AS),
            open_files: limit(libc::RLIMIT_NOFILE),
            variables: environment::known()
                .filter_map(|name| std::env::var_os(&name).map(|value| (name, value.to_string_lossy().into_owned())))
                .collect(),
            ..Facts::default()
        };
        Host { root: "/".into(), live: true, facts: facts.into(), seen: Mutex::default() }
    }

    /// A machine whose files were copied to `root`.
    pub fn recorded(root: &Path) -> Result<Host, String> {
        let path = root.join(FILE);
        let text = std::fs::read_to_string(&path).map_err(|error| {
            format!("{}: {error}; --root takes the unpacked archive that kfdrun doctor --bundle wrote", path.display())
        })?;
        let facts = Facts::parse(&text).map_err(|problem| format!("{}: {problem}", root.display()))?;
        Ok(Host { root: root.into(), live: false, facts: facts.into(), seen: Mutex::default() })
    }

    /// What is known besides the files, by now.
    pub fn facts(&self) -> Facts {
        lock(&self.facts).clone()
    }

    /// The interface version, once it is known.
    pub fn set_version(&self, version: (u32, u32)) {
        lock(&self.facts).version = Some(version);
    }

    /// Files and folders that were read.
    pub fn seen(&self) -> BTreeMap<String, Seen> {
        lock(&self.seen).clone()
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    fn remember<T>(&self, path: &str, result: Result<T, Errno>, seen: impl Fn(&T) -> Seen) -> Result<T, Errno> {
        match &result {
            Ok(value) => {
                lock(&self.seen).insert(path.to_owned(), seen(value));
            }
            // ENOTDIR is what a file gives where a folder was asked for: no such folder.
            Err(errno) if *errno != Errno::ENOENT && errno.raw() != libc::ENOTDIR => {
                lock(&self.facts).errors.insert(path.to_owned(), errno.raw());
            }
            Err(_) => {}
        }
        result
    }

    fn recorded_error(&self, path: &str) -> Result<(), Errno> {
        match lock(&self.facts).errors.get(path) {
            Some(errno) if !self.live => Err(Errno::from_raw(*errno)),
            _ => Ok(()),
        }
    }
}

/// A limit of this process; none when there is none.
fn limit(resource: libc::__rlimit_resource_t) -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: getrlimit writes one `rlimit`, which `limit` is; on failure it leaves it as it is.
    unsafe { libc::getrlimit(resource, &raw mut limit) };
    Some(limit.rlim_cur).filter(|soft| *soft != libc::RLIM_INFINITY)
}

/// Bytes of a page of this machine.
fn page_size() -> u64 {
    // SAFETY: sysconf reads a number of this process and touches no memory of it.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(0)
}

fn read_some(path: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(MAX_FILE).read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl Driver for Host {
    fn open(&self, path: &str) -> Result<i32, Errno> {
        if self.live {
            let result = LinuxDriver.open(path);
            lock(&self.facts).opens.insert(path.to_owned(), result.err().map_or(0, Errno::raw));
            return result;
        }
        match lock(&self.facts).opens.get(path) {
            Some(0) => Ok(RECORDED_FD),
            Some(errno) => Err(Errno::from_raw(*errno)),
            None => Err(Errno::ENOENT),
        }
    }

    fn close(&self, fd: i32) -> Result<(), Errno> {
        if self.live { LinuxDriver.close(fd) } else { Ok(()) }
    }

    fn ioctl(&self, fd: i32, request: u32, arg: &mut [u8]) -> Result<i32, Errno> {
        if self.live {
            return LinuxDriver.ioctl(fd, request, arg);
        }
        let version = lock(&self.facts).version;
        match version {
            Some((major_version, minor_version)) if request == GetVersionArgs::REQUEST => {
                let args = GetVersionArgs { major_version, minor_version };
                let bytes = args.as_bytes();
                arg.get_mut(..bytes.len()).ok_or(Errno::EFAULT)?.copy_from_slice(bytes);
                Ok(0)
            }
            _ => Err(Errno::ENOTTY),
        }
    }

    unsafe fn mmap(&self, _: usize, _: usize, _: i32, _: i32, _: i32, _: u64) -> Result<usize, Errno> {
        // Nothing here maps anything.
        Err(Errno::ENOSYS)
    }

    unsafe fn munmap(&self, _: usize, _: usize) -> Result<(), Errno> {
        Err(Errno::ENOSYS)
    }

    fn dont_fork(&self, _: usize, _: usize) -> Result<(), Errno> {
        Err(Errno::ENOSYS)
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, Errno> {
        self.recorded_error(path)?;
        let result = read_some(&self.at(path)).map_err(Errno::from);
        self.remember(path, result, |bytes| Seen::File(bytes.clone()))
    }

    fn list(&self, path: &str) -> Result<Vec<String>, Errno> {
        self.recorded_error(path)?;
        let names = || {
            let mut names = Vec::new();
            for entry in std::fs::read_dir(self.at(path))? {
                names.push(entry?.file_name().to_string_lossy().into_owned());
            }
            names.sort();
            Ok::<_, Errno>(names)
        };
        self.remember(path, names(), |_| Seen::Folder)
    }

    fn permissions(&self, path: &str) -> Result<Permissions, Errno> {
        if self.live {
            let found = LinuxDriver.permissions(path)?;
            let node = (found.uid, found.gid, found.mode, found.group);
            lock(&self.facts).nodes.insert(path.to_owned(), node);
        }
        lock(&self.facts).permissions(path)
    }
}

//! Open files of the device nodes.

use super::backing::Pages;
use super::device::Device;
use super::process::Process;
use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An open file description: what `open` makes and `dup` shares.
pub enum File {
    /// `/dev/kfd`.
    Kfd {
        /// Process that opened it.
        process: Arc<Process>,
    },
    /// `/dev/dri/renderDN`.
    Render {
        /// Its GPU.
        device: Arc<Device>,
        /// Its VM became a compute VM by ACQUIRE_VM.
        compute: AtomicBool,
    },
    /// A buffer shared by EXPORT_DMABUF.
    DmaBuf(DmaBuf),
}

/// What an exported buffer is.
pub struct DmaBuf {
    /// GPU that owns it.
    pub device: Arc<Device>,
    /// Its memory.
    pub pages: Arc<Pages>,
    /// Bytes.
    pub size: u64,
    /// ALLOC flags.
    pub flags: u32,
}

/// Name of the anonymous file behind a descriptor of `/dev/kfd`. A process that gets one through a socket knows it by
/// this.
pub const KFD_NAME: &std::ffi::CStr = c"kfdrun-kfd";

/// Tells open file descriptions apart: each is an anonymous file of its own, whatever numbers its descriptors have.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Identity(libc::dev_t, libc::ino_t);

impl Identity {
    /// Of the file behind a descriptor; none when it is not open.
    fn of(fd: i32) -> Option<Identity> {
        // SAFETY: all zeros are a valid `stat`, which the call overwrites; it takes any number as descriptor.
        unsafe {
            let mut stat: libc::stat = std::mem::zeroed();
            (libc::fstat(fd, &raw mut stat) == 0).then_some(Identity(stat.st_dev, stat.st_ino))
        }
    }
}

/// Whether a number is an open descriptor.
pub fn is_open(fd: i32) -> bool {
    Identity::of(fd).is_some()
}

/// Whether a descriptor that is in no table is another process' `/dev/kfd`.
pub fn is_foreign_kfd(fd: i32) -> bool {
    let target = std::fs::read_link(format!("/proc/self/fd/{fd}")).unwrap_or_default();
    target.to_str().and_then(|name| name.strip_prefix("/memfd:")?.split(' ').next()) == KFD_NAME.to_str().ok()
}

struct Entry {
    file: Arc<File>,
    /// The descriptor it was made with.
    fd: i32,
}

/// Open files.
#[derive(Default)]
pub struct Table(Mutex<HashMap<Identity, Entry>>);

impl Table {
    fn files(&self) -> MutexGuard<'_, HashMap<Identity, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file behind a descriptor.
    pub fn get(&self, fd: i32) -> Option<Arc<File>> {
        let identity = Identity::of(fd)?;
        self.files().get(&identity).map(|entry| entry.file.clone())
    }

    /// Enters a file.
    pub fn insert(&self, fd: i32, file: Arc<File>) {
        if let Some(identity) = Identity::of(fd) {
            self.files().insert(identity, Entry { file, fd });
        }
    }

    /// A descriptor is about to be closed: its file goes with the last one.
    pub fn closing(&self, fd: i32) {
        let Some(identity) = Identity::of(fd) else { return };
        let others = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
        let mut others = others.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        if others.any(|other: i32| other != fd && Identity::of(other) == Some(identity)) {
            return;
        }
        self.files().remove(&identity);
    }

    /// Takes all files out: the descriptors they were made with, as far as those are theirs yet.
    pub fn drain(&self) -> Vec<i32> {
        let files = std::mem::take(&mut *self.files());
        files.iter().filter(|(identity, entry)| Identity::of(entry.fd) == Some(**identity)).map(|(_, e)| e.fd).collect()
    }
}

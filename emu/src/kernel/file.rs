//! Open files of the device nodes.

use super::backing::Pages;
use super::device::Device;
use super::process::Process;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

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

/// Open files by descriptor.
#[derive(Default)]
pub struct Table(Mutex<std::collections::HashMap<i32, Arc<File>>>);

impl Table {
    fn files(&self) -> std::sync::MutexGuard<'_, std::collections::HashMap<i32, Arc<File>>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The file behind a descriptor.
    pub fn get(&self, fd: i32) -> Option<Arc<File>> {
        self.files().get(&fd).cloned()
    }

    /// Enters a file.
    pub fn insert(&self, fd: i32, file: Arc<File>) {
        self.files().insert(fd, file);
    }

    /// Takes a file out.
    pub fn remove(&self, fd: i32) -> Option<Arc<File>> {
        self.files().remove(&fd)
    }

    /// Takes all files out: their descriptors.
    pub fn drain(&self) -> Vec<i32> {
        self.files().drain().map(|(fd, _)| fd).collect()
    }
}

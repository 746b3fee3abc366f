//! The syscall boundary.

pub use crate::errno::Errno;

/// What a process can do to the kernel here. [`LinuxDriver`](crate::LinuxDriver) passes each call on; the emulated
/// machine answers it. No caller may behave differently for one or the other.
///
/// Paths are the kernel's (`/dev/kfd`, `/dev/dri/renderD128`, `/sys/class/kfd/kfd/topology/...`).
pub trait Driver: Send + Sync {
    /// `open(path, O_RDWR | O_CLOEXEC)` of a device node.
    fn open(&self, path: &str) -> Result<i32, Errno>;

    /// `close(fd)`.
    fn close(&self, fd: i32) -> Result<(), Errno>;

    /// `ioctl(fd, request, arg)`, once: the caller retries EINTR and EAGAIN. `arg` is the whole argument structure and
    /// is written back also on failure. Pointers inside it are addresses in this process.
    fn ioctl(&self, fd: i32, request: u32, arg: &mut [u8]) -> Result<i32, Errno>;

    /// `mmap(addr, len, prot, flags, fd, offset)`; `fd` -1 for anonymous memory. `offset` is the raw 64-bit value: that
    /// of a doorbell has its top bits set. Returns the address.
    ///
    /// # Safety
    /// With `MAP_FIXED`, `addr..addr + len` must be a reservation the caller owns and nothing may hold references into.
    unsafe fn mmap(&self, addr: usize, len: usize, prot: i32, flags: i32, fd: i32, offset: u64)
    -> Result<usize, Errno>;

    /// `munmap(addr, len)`.
    ///
    /// # Safety
    /// The range must be the caller's own mapping, with no references into it.
    unsafe fn munmap(&self, addr: usize, len: usize) -> Result<(), Errno>;

    /// `madvise(addr, len, MADV_DONTFORK)`: keeps a later fork from turning the range copy-on-write under the GPU.
    fn dont_fork(&self, addr: usize, len: usize) -> Result<(), Errno>;

    /// Contents of a sysfs file.
    fn read(&self, path: &str) -> Result<Vec<u8>, Errno>;

    /// Names in a sysfs folder, in no particular order.
    fn list(&self, path: &str) -> Result<Vec<String>, Errno>;

    /// Owner and mode of a device node, and who asks: only to explain a refused open. A driver without device nodes
    /// returns ENOSYS.
    fn permissions(&self, _path: &str) -> Result<Permissions, Errno> {
        Err(Errno::ENOSYS)
    }

    /// A doorbell was just stored to. Only an optimisation: a plain store to the mapped doorbell must do by itself.
    fn doorbell_hint(&self) {}

    /// The waves that the GPUs hold now, where the machine can tell: an emulated one. On hardware that takes a debugger.
    fn waves(&self) -> Option<Vec<trace::Wave>> {
        None
    }
}

/// Who owns a device node, and who wants to open it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// Permission bits, as in `0o660`.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Name of the group, when the system has one for it.
    pub group: Option<String>,
    /// Effective user of this process.
    pub caller_uid: u32,
    /// Effective and supplementary groups of this process.
    pub caller_gids: Vec<u32>,
}

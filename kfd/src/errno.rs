//! Error numbers as the kernel returns them.

use std::fmt;

/// An error number, raw: AMDKFD also returns numbers that POSIX does not have.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(i32);

macro_rules! errnos {
    ($($name:ident)*) => {
        #[allow(missing_docs)]
        impl Errno {
            $(pub const $name: Errno = Errno(libc::$name);)*
        }
    };
}

errnos! {
    EPERM ENOENT ESRCH EINTR EIO EBADF EAGAIN ENOMEM EACCES EFAULT EBUSY EEXIST ENODEV EINVAL EMFILE ENOTTY ENOSPC
    ENODATA ETIME EOVERFLOW EADDRINUSE EALREADY ENOSYS
}

impl Errno {
    /// `ENOTSUPP` of `include/linux/errno.h`, which user space has no name for: an unknown queue type.
    pub const ENOTSUPP: Errno = Errno(524);

    /// The error with this number.
    pub const fn from_raw(raw: i32) -> Errno {
        Errno(raw)
    }

    /// The number.
    pub const fn raw(self) -> i32 {
        self.0
    }

    /// Its name, such as `EINVAL`; a number that has none is written `errno N`.
    pub fn name(self) -> String {
        match nix::errno::Errno::from_raw(self.0) {
            _ if self == Errno::ENOTSUPP => "ENOTSUPP".to_string(),
            nix::errno::Errno::UnknownErrno => format!("errno {}", self.0),
            known => format!("{known:?}"),
        }
    }

    /// The error of the last system call of this thread.
    pub fn last() -> Errno {
        Errno(nix::errno::Errno::last_raw())
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.0)
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<nix::errno::Errno> for Errno {
    fn from(errno: nix::errno::Errno) -> Errno {
        Errno(errno as i32)
    }
}

impl From<std::io::Error> for Errno {
    fn from(error: std::io::Error) -> Errno {
        // An error that came from no system call is one of this process alone.
        Errno(error.raw_os_error().unwrap_or(libc::EIO))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(Errno::EINVAL.to_string(), "EINVAL (22)");
        assert_eq!(Errno::from_raw(524).to_string(), "ENOTSUPP (524)");
        assert_eq!(Errno::from_raw(9999).to_string(), "errno 9999 (9999)");
    }
}

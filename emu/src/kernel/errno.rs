//! Error numbers as the kernel returns them.

use std::fmt;

/// An error number. Unlike the C library's it can be 524, which AMDKFD returns and no user-space header names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Errno(pub i32);

macro_rules! errnos {
    ($($name:ident)*) => {
        #[allow(missing_docs)]
        impl Errno {
            $(pub const $name: Errno = Errno(libc::$name);)*
            /// The kernel's own "operation is not supported", which is not the C library's `ENOTSUP`.
            pub const ENOTSUPP: Errno = Errno(524);

            fn name(self) -> Option<&'static str> {
                match self.0 {
                    $(libc::$name => Some(stringify!($name)),)*
                    524 => Some("ENOTSUPP"),
                    _ => None,
                }
            }
        }
    };
}

errnos! {
    EPERM ENOENT ESRCH EINTR EIO EBADF EAGAIN ENOMEM EACCES EFAULT EBUSY EEXIST ENODEV ENOTDIR EISDIR EINVAL EMFILE
    ENOTTY ENOSPC EOVERFLOW EADDRINUSE ENODATA EALREADY ETIME
}

impl Errno {
    /// The error of the system call that just failed.
    pub fn last() -> Errno {
        Errno(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "errno {}", self.0),
        }
    }
}

impl From<Errno> for kfd::Errno {
    fn from(errno: Errno) -> kfd::Errno {
        kfd::Errno::from_raw(errno.0)
    }
}

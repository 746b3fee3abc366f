//! The table of requests and how a request gets to its handler (`kfd_ioctl`).
//!
//! | rule | errno |
//! |---|---|
//! | the number, the low 8 bits, is in the table; magic and direction of the request are not looked at | ENOTTY |
//! | the file was opened by this process | EBADF |
//! | the argument can be read, as many bytes as the request's size field says | EFAULT |
//!
//! A shorter argument than the kernel's is filled up with zeros, of a longer one the rest is ignored. Of requests that
//! the kernel writes, as many bytes as the caller's size are copied back, also when the handler failed.

use super::process::Process;
use super::{Kernel, criu, debug, event, memory, misc, queue, svm};
use kfd::Errno;
use kfd::uapi::{Direction, IoctlInfo, Pod};
use std::sync::Arc;

/// What a handler gets besides its argument.
pub struct Call<'a> {
    /// The kernel.
    pub kernel: &'a Arc<Kernel>,
    /// The caller.
    pub process: &'a Arc<Process>,
    /// Bytes of the argument by the caller's request number.
    pub user_size: usize,
}

type Handler = fn(&Call<'_>, &mut [u8]) -> Result<(), Errno>;

/// Runs a handler on the structure in `bytes`, and puts it back whatever the handler says.
fn with<T: Pod>(bytes: &mut [u8], handler: impl FnOnce(&mut T) -> Result<(), Errno>) -> Result<(), Errno> {
    let mut args = T::from_prefix_or_zero(bytes);
    let result = handler(&mut args);
    bytes[..size_of::<T>()].copy_from_slice(args.as_bytes());
    result
}

macro_rules! handlers {
    ($($nr:literal => $handler:path $(as $raw:ident)?,)*) => {
        /// The handler of a request number.
        fn handler(nr: u8) -> Option<Handler> {
            match nr {
                $($nr => Some(handlers!(@one $handler $(, $raw)?)),)*
                _ => None,
            }
        }
    };
    (@one $handler:path, bytes) => { $handler };
    (@one $handler:path) => { |call, bytes| with(bytes, |args| $handler(call, args)) };
}

handlers! {
    0x01 => misc::version,
    0x02 => queue::create,
    0x03 => queue::destroy,
    0x04 => misc::memory_policy,
    0x05 => misc::clock_counters,
    0x06 => misc::apertures,
    0x07 => queue::update,
    0x08 => event::ioctl::create,
    0x09 => event::ioctl::destroy,
    0x0a => event::ioctl::set,
    0x0b => event::ioctl::reset,
    0x0c => event::ioctl::wait,
    0x0d => misc::old_debugger as bytes,
    0x0e => misc::old_debugger as bytes,
    0x0f => misc::old_debugger as bytes,
    0x10 => misc::old_debugger as bytes,
    0x11 => misc::scratch_backing,
    0x12 => misc::tile_config,
    0x13 => misc::trap_handler,
    0x14 => misc::apertures_new,
    0x15 => misc::acquire_vm,
    0x16 => memory::allocate,
    0x17 => memory::free,
    0x18 => memory::map,
    0x19 => memory::unmap,
    0x1a => queue::cu_mask,
    0x1b => queue::wave_state,
    0x1c => misc::dmabuf::info,
    0x1d => misc::dmabuf::import,
    0x1e => queue::gws,
    0x1f => misc::smi_events,
    0x20 => svm::ioctl as bytes,
    0x21 => misc::xnack,
    0x22 => criu::criu,
    0x23 => memory::available,
    0x24 => misc::dmabuf::export,
    0x25 => misc::runtime_enable,
    0x26 => debug::trap,
}

/// One ioctl on an open `/dev/kfd`.
pub fn ioctl(kernel: &Arc<Kernel>, process: &Arc<Process>, request: u32, arg: &mut [u8]) -> Result<(), Errno> {
    let unknown = || {
        kernel.note(|| {
            let (errno, minor) = (Errno::ENOTTY, kernel.options.rules.interface_minor());
            format!("request {request:#x}: {errno}: number {:#04x} is not one of interface 1.{minor}", request & 0xff)
        });
        Errno::ENOTTY
    };
    let info = IoctlInfo::of(request).ok_or_else(unknown)?;
    // What is newer than the interface version that is told is beyond the end of the table.
    let known = info.since <= kernel.options.rules.interface_minor();
    let handler = handler(info.nr).filter(|_| known).ok_or_else(unknown)?;
    if process.pid != std::process::id() {
        return Err(Errno::EBADF);
    }
    if let Some(errno) = kernel.faults.call(info.nr) {
        kernel.note(|| format!("{}: {errno} was injected", info.name));
        return Err(errno);
    }
    let user_size = IoctlInfo::size_of_request(request);
    let kernel_size = IoctlInfo::size_of_request(info.request);
    let mut buffer = vec![0; user_size.max(kernel_size)];
    let user = arg.get_mut(..user_size).ok_or(Errno::EFAULT)?;
    if matches!(info.direction, Direction::Write | Direction::ReadWrite) {
        buffer[..user_size].copy_from_slice(user);
    }
    let result = handler(&Call { kernel, process, user_size }, &mut buffer);
    if matches!(info.direction, Direction::Read | Direction::ReadWrite) {
        user.copy_from_slice(&buffer[..user_size]);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_up_to_1_17_has_a_handler() {
        for info in kfd::uapi::IOCTLS {
            assert_eq!(handler(info.nr).is_some(), info.since <= 17, "{}", info.name);
        }
    }
}

//! The buffers of a queue, as Linux 6.12 and later check them (`kfd_queue.c`). Any failure is EINVAL.
//!
//! | buffer | mapping must | size |
//! |---|---|---|
//! | ring | start at its page | exactly `ring_size`, where that is a page or more |
//! | write index, read index | hold the address in its first page | exactly one page |
//! | end-of-pipe buffer, if any | start at its page | `eop_buffer_size` in whole pages; at least the device's value |
//! | control stack | | `ctl_stack_size` is exactly the device's value |
//! | context save area | start at its page | (`ctx_save_restore_size` + debugger area) * XCCs in whole pages |

use crate::kernel::Rules;
use crate::kernel::backing::{PAGE, page_up};
use crate::kernel::memory::Handle;
use crate::kernel::process::Inner;
use kfd::Errno;
use kfd::uapi::CreateQueueArgs;

/// What a queue holds on to: mappings that cannot be undone while it lives.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Buffers {
    handles: Vec<Handle>,
    /// The save area as SVM ranges: address and bytes.
    svm: Option<(u64, u64)>,
}

impl Inner {
    /// `kfd_queue_buffer_get`: the buffer whose mapping on this GPU starts at the page of `addr` and has exactly
    /// `bytes`, if that is a page or more.
    pub fn queue_buffer(&self, device: usize, addr: u64, bytes: u64) -> Result<Handle, Errno> {
        let vm = self.devices[device].vm.as_ref().ok_or(Errno::EINVAL)?;
        let (start, mapping) = vm.mapping(addr).ok_or(Errno::EINVAL)?;
        if start / PAGE != addr / PAGE || (bytes >= PAGE && mapping.size / PAGE != bytes / PAGE) {
            return Err(Errno::EINVAL);
        }
        Ok(mapping.handle)
    }

    /// Checks the buffers of a compute queue and takes hold of them.
    pub fn queue_buffers(&mut self, device: usize, args: &CreateQueueArgs, rules: Rules) -> Result<Buffers, Errno> {
        let sizes = self.devices[device].device.cwsr;
        let xccs = self.devices[device].device.profile.xccs;
        if rules == Rules::Linux6_1 {
            return self.queue_buffers_6_1(device, args);
        }
        let mut handles = vec![
            self.queue_buffer(device, args.write_pointer_address, PAGE)?,
            self.queue_buffer(device, args.read_pointer_address, PAGE)?,
            self.queue_buffer(device, args.ring_base_address, u64::from(args.ring_size))?,
        ];
        let exact = rules == Rules::Linux6_12Early;
        if args.eop_buffer_address != 0 {
            let wanted = u64::from(sizes.eop);
            if args.eop_buffer_size < wanted || (exact && args.eop_buffer_size != wanted) {
                return Err(Errno::EINVAL);
            }
            let bytes = page_up(args.eop_buffer_size).ok_or(Errno::EINVAL)?;
            handles.push(self.queue_buffer(device, args.eop_buffer_address, bytes)?);
        }
        if args.ctl_stack_size != sizes.control_stack {
            return Err(Errno::EINVAL);
        }
        let save = args.ctx_save_restore_size;
        if save < sizes.save || (exact && save != sizes.save) {
            return Err(Errno::EINVAL);
        }
        let bytes = sizes.mapping(save, xccs).ok_or(Errno::EINVAL)?;
        let mut svm = None;
        match self.queue_buffer(device, args.ctx_save_restore_address, bytes) {
            Ok(handle) => handles.push(handle),
            Err(_) if self.svm.always_mapped(args.ctx_save_restore_address, bytes, device) => {
                svm = Some((args.ctx_save_restore_address, bytes));
            }
            Err(errno) => return Err(errno),
        }
        for handle in &handles {
            self.use_mapping(*handle, device, true);
        }
        if let Some((addr, bytes)) = svm {
            self.svm.use_ranges(addr, bytes, true);
        }
        Ok(Buffers { handles, svm })
    }

    /// Linux 6.1 to 6.11 check nothing but, under MES, that the write index lies in a buffer of at most one page.
    fn queue_buffers_6_1(&mut self, device: usize, args: &CreateQueueArgs) -> Result<Buffers, Errno> {
        if !self.devices[device].device.has_mes() {
            return Ok(Buffers::default());
        }
        let vm = self.devices[device].vm.as_ref().ok_or(Errno::EINVAL)?;
        let (_, mapping) = vm.mapping(args.write_pointer_address).ok_or(Errno::EINVAL)?;
        if mapping.size > PAGE {
            return Err(Errno::EINVAL);
        }
        Ok(Buffers::default())
    }

    /// Exchanges the ring of a queue for another buffer.
    pub fn replace_ring(&mut self, device: usize, buffers: &mut Buffers, ring: Handle) {
        self.use_mapping(ring, device, true);
        if let Some(place) = buffers.handles.get_mut(2) {
            let old = std::mem::replace(place, ring);
            self.use_mapping(old, device, false);
        }
    }

    /// Lets go of the buffers.
    pub fn release_queue_buffers(&mut self, device: usize, buffers: &Buffers) {
        for handle in &buffers.handles {
            self.use_mapping(*handle, device, false);
        }
        if let Some((addr, bytes)) = buffers.svm {
            self.svm.use_ranges(addr, bytes, false);
        }
    }
}

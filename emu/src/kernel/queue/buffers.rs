//! The buffers of a queue (`kfd_queue.c`, Linux 6.12 and later). Any failure is EINVAL.
//!
//! A buffer is found by the GPU mapping around its address. The mapping must start in the page of the address, so a
//! buffer cannot be a part of a larger one, and sizes of a page and more must be the mapping's exactly.

use crate::kernel::Rules;
use crate::kernel::backing::{PAGE, page_up};
use crate::kernel::call::Call;
use crate::kernel::cwsr::Sizes;
use crate::kernel::memory::{Handle, Mapping};
use crate::kernel::process::Inner;
use crate::kernel::rule::{check, rules};
use kfd::Errno;
use kfd::uapi::{CreateQueueArgs, QUEUE_TYPE_COMPUTE, QUEUE_TYPE_COMPUTE_AQL};

/// What a queue holds on to: mappings that cannot be undone while it lives.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Buffers {
    handles: Vec<Handle>,
    /// The save area as SVM ranges: address and bytes.
    svm: Option<(u64, u64)>,
}

/// The GPU mapping around an address.
#[derive(Clone, Copy)]
pub struct Found {
    va: u64,
    start: u64,
    mapping: Mapping,
}

/// Whether a mapping starts in the page of the address and has exactly `bytes`, if that is a page or more.
fn fits(found: Option<Found>, bytes: Option<u64>) -> bool {
    let (Some(found), Some(bytes)) = (found, bytes) else { return false };
    found.start / PAGE == found.va / PAGE && (bytes < PAGE || found.mapping.size / PAGE == bytes / PAGE)
}

/// What is looked at.
pub struct Facts {
    args: CreateQueueArgs,
    sizes: Sizes,
    xccs: u32,
    /// Sizes must be equal to the device's.
    exact: bool,
    mes: bool,
    write_index: Option<Found>,
    read_index: Option<Found>,
    ring: Option<Found>,
    eop: Option<Found>,
    save: Option<Found>,
    /// The save area is shared virtual memory that is always mapped on this GPU.
    save_is_svm: bool,
}

impl Facts {
    fn save_bytes(&self) -> Option<u64> {
        self.sizes.mapping(self.args.ctx_save_restore_size, self.xccs)
    }

    fn eop_bytes(&self) -> u64 {
        self.args.eop_buffer_size
    }
}

rules! {
    /// CREATE_QUEUE of any type: ring and indices.
    RING for f: Facts {
        EINVAL "write_pointer_address lies in a GPU mapping of exactly one page": f.args.write_pointer_address =>
            fits(f.write_index, Some(PAGE));
        EINVAL "read_pointer_address lies in a GPU mapping of exactly one page": f.args.read_pointer_address =>
            fits(f.read_index, Some(PAGE));
        EINVAL "a GPU mapping starts at ring_base_address, of exactly ring_size if that is a page or more":
            f.args.ring_base_address => fits(f.ring, Some(f.args.ring_size.into()));
    }

    /// CREATE_QUEUE of compute queues: end-of-pipe buffer and context save area.
    SAVE_AREA for f: Facts {
        EINVAL "eop_buffer_size is at least 4096 (exactly, in the first 6.12), unless the address is 0":
            f.args.eop_buffer_size => f.args.eop_buffer_address == 0
                || f.eop_bytes() == f.sizes.eop.into() || (!f.exact && f.eop_bytes() > f.sizes.eop.into());
        EINVAL "a GPU mapping of exactly eop_buffer_size in whole pages starts at eop_buffer_address, unless that is 0":
            f.args.eop_buffer_address => f.args.eop_buffer_address == 0 || fits(f.eop, page_up(f.eop_bytes()));
        EINVAL "ctl_stack_size is the device's": f.args.ctl_stack_size =>
            f.args.ctl_stack_size == f.sizes.control_stack;
        EINVAL "ctx_save_restore_size is at least the device's (exactly, in the first 6.12)":
            f.args.ctx_save_restore_size => f.args.ctx_save_restore_size == f.sizes.save
                || (!f.exact && f.args.ctx_save_restore_size > f.sizes.save);
        EINVAL "a GPU mapping of exactly (ctx_save_restore_size + debugger area) * XCCs in whole pages starts at \
                ctx_save_restore_address, or always mapped shared virtual memory lies there":
            f.args.ctx_save_restore_address => fits(f.save, f.save_bytes()) || f.save_is_svm;
    }

    /// CREATE_QUEUE of Linux 6.1 to 6.11, which check nothing else.
    LINUX_6_1 for f: Facts {
        EINVAL "the write index lies in a GPU mapping, under MES": f.args.write_pointer_address =>
            !f.mes || f.write_index.is_some();
        EINVAL "that mapping is of at most one page, under MES": f.args.write_pointer_address =>
            !f.mes || f.write_index.is_some_and(|found| found.mapping.size <= PAGE);
    }
}

impl Inner {
    fn found(&self, device: usize, va: u64) -> Option<Found> {
        let (start, mapping) = self.devices[device].vm.as_ref()?.mapping(va)?;
        Some(Found { va, start, mapping })
    }

    /// The buffer of a ring, if it is one.
    pub fn ring_buffer(&self, device: usize, va: u64, bytes: u32) -> Option<Handle> {
        self.found(device, va).filter(|found| fits(Some(*found), Some(bytes.into()))).map(|found| found.mapping.handle)
    }

    /// What the checks look at.
    pub fn queue_facts(&self, device: usize, args: &CreateQueueArgs, rules: Rules) -> Facts {
        let gpu = &self.devices[device].device;
        let mut facts = Facts {
            args: *args,
            sizes: gpu.cwsr,
            xccs: gpu.profile.xccs,
            exact: rules.exact_sizes(),
            mes: gpu.has_mes(),
            write_index: self.found(device, args.write_pointer_address),
            read_index: self.found(device, args.read_pointer_address),
            ring: self.found(device, args.ring_base_address),
            eop: self.found(device, args.eop_buffer_address),
            save: self.found(device, args.ctx_save_restore_address),
            save_is_svm: false,
        };
        facts.save_is_svm = !fits(facts.save, facts.save_bytes())
            && facts
                .save_bytes()
                .is_some_and(|bytes| self.svm.always_mapped(args.ctx_save_restore_address, bytes, device));
        facts
    }

    /// Checks the buffers of a queue and takes hold of them.
    pub fn queue_buffers(&mut self, call: &Call<'_>, device: usize, args: &CreateQueueArgs) -> Result<Buffers, Errno> {
        const NAME: &str = "CREATE_QUEUE";
        let rules = call.kernel.options.rules;
        let facts = self.queue_facts(device, args, rules);
        if !rules.checks_buffers() {
            check(call.kernel, NAME, LINUX_6_1, &facts)?;
            return Ok(Buffers::default());
        }
        check(call.kernel, NAME, RING, &facts)?;
        let compute = matches!(args.queue_type, QUEUE_TYPE_COMPUTE | QUEUE_TYPE_COMPUTE_AQL);
        if compute {
            check(call.kernel, NAME, SAVE_AREA, &facts)?;
        }
        let eop = facts.eop.filter(|_| compute && args.eop_buffer_address != 0);
        let save = facts.save.filter(|_| compute && !facts.save_is_svm);
        // The ring comes first: `replace_ring`.
        let found = [facts.ring, facts.write_index, facts.read_index, eop, save];
        let handles: Vec<Handle> = found.into_iter().flatten().map(|found| found.mapping.handle).collect();
        for handle in &handles {
            self.use_mapping(*handle, device, true);
        }
        let svm = facts
            .save_bytes()
            .filter(|_| compute && facts.save_is_svm)
            .map(|bytes| (args.ctx_save_restore_address, bytes));
        if let Some((addr, bytes)) = svm {
            self.svm.use_ranges(addr, bytes, true);
        }
        Ok(Buffers { handles, svm })
    }

    /// Exchanges the ring of a queue for another buffer.
    pub fn replace_ring(&mut self, device: usize, buffers: &mut Buffers, ring: Handle) {
        self.use_mapping(ring, device, true);
        if let Some(place) = buffers.handles.first_mut() {
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

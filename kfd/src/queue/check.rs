//! Why CREATE_QUEUE refused: the rules of the kernel (`kfd_ioctl_create_queue` in `kfd_chardev.c`, `kfd_queue.c`), each
//! with the value it was given.

use crate::cwsr::{ContextSave, Origin};
use crate::errno::Errno;
use crate::types::{GpuVa, PAGE_SIZE};
use crate::uapi::{self, CreateQueueArgs};
use std::fmt::Write as _;

/// One rule of CREATE_QUEUE applied to one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Field of `kfd_ioctl_create_queue_args`, or the mapping it points to.
    pub field: &'static str,
    /// Its value.
    pub value: String,
    /// The rule, with the expected value in it.
    pub rule: String,
    /// Whether the value keeps the rule.
    pub pass: bool,
    /// Where the rule, or the value it expects, comes from.
    pub origin: &'static str,
    /// There are two sources for what is expected, and they disagree.
    pub disputed: bool,
}

/// CREATE_QUEUE failed.
#[derive(Debug, thiserror::Error)]
#[error("CREATE_QUEUE: {errno}")]
pub struct CreateQueueError {
    /// Error.
    pub errno: Errno,
    /// The argument as the kernel left it.
    pub args: CreateQueueArgs,
    /// What can be checked from here.
    pub checks: Vec<Check>,
}

/// A mapping of a queue's buffer on the GPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mapping {
    pub va: GpuVa,
    pub size: u64,
}

/// What the checks need to know besides the argument.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffers<'a> {
    pub ring: Mapping,
    pub queue: Mapping,
    pub eop: Option<Mapping>,
    pub context: Mapping,
    pub save: &'a ContextSave,
}

/// Applies every rule that can be seen from user space.
pub(super) fn checks(args: &CreateQueueArgs, buffers: &Buffers<'_>) -> Vec<Check> {
    const IOCTL: &str = "kfd_ioctl.h";
    const MAPPING: &str = "its mapping";
    const KERNEL: &str = "from the kernel: topology";
    const FORMULA: &str = "computed here by the kernel's formula";
    const BOTH: &str = "slices from the kernel: topology; debug computed here";
    let mut checks = Vec::new();
    let mut check = |field, value: String, rule: String, pass, origin| {
        checks.push(Check { field, value, rule, pass, origin, disputed: false });
    };
    let save = buffers.save;
    let (size_origin, whole_origin) = match save.origin {
        Origin::Topology => (KERNEL, BOTH),
        Origin::Formula => (FORMULA, FORMULA),
    };
    // Two sources that disagree are worth a look: one of them is not what the kernel checks against.
    let size_rule = |expected: u32, formula: u32| match expected == formula {
        true => is(expected.into()),
        false => format!("= {expected} as told; {formula} as computed here: they differ"),
    };

    let percentage = args.queue_percentage & 0xff;
    let max = uapi::MAX_QUEUE_PERCENTAGE;
    check("queue_percentage", percentage.to_string(), format!("<= {max}"), percentage <= max, IOCTL);
    let (priority, max) = (args.queue_priority, uapi::MAX_QUEUE_PRIORITY);
    check("queue_priority", priority.to_string(), format!("<= {max}"), priority <= max, IOCTL);
    let queue_type = args.queue_type;
    check("queue_type", queue_type.to_string(), "<= 4".into(), queue_type <= 4, IOCTL);

    let (size, min) = (args.ring_size, uapi::MIN_QUEUE_RING_SIZE);
    let pass = size.is_power_of_two() && size >= min;
    check("ring_size", size.to_string(), format!("power of two, >= {min}"), pass, IOCTL);
    let ring = buffers.ring;
    check("ring_base_address", hex(args.ring_base_address), starts(ring), args.ring_base_address == ring.va.0, MAPPING);
    check("ring mapping", ring.size.to_string(), "= ring_size".into(), u64::from(size) == ring.size, MAPPING);

    let queue = buffers.queue;
    for (field, address) in
        [("write_pointer_address", args.write_pointer_address), ("read_pointer_address", args.read_pointer_address)]
    {
        let inside = address & !(PAGE_SIZE - 1) == queue.va.0;
        check(field, hex(address), format!("in the page at {}", queue.va), inside, MAPPING);
    }
    check("amd_queue_t mapping", queue.size.to_string(), is(PAGE_SIZE), queue.size == PAGE_SIZE, MAPPING);

    match buffers.eop {
        Some(eop) => {
            let address = args.eop_buffer_address;
            check("eop_buffer_address", hex(address), starts(eop), address == eop.va.0, MAPPING);
            let size = args.eop_buffer_size;
            check("eop_buffer_size", size.to_string(), is(eop.size), size == eop.size, MAPPING);
        }
        None => {
            let address = args.eop_buffer_address;
            check("eop_buffer_address", hex(address), "0: not used on gfx940-942".into(), address == 0, "architecture");
        }
    }

    let context = buffers.context;
    let address = args.ctx_save_restore_address;
    check("ctx_save_restore_address", hex(address), starts(context), address == context.va.0, MAPPING);
    let size = args.ctl_stack_size;
    let rule = size_rule(save.control_stack, save.formula.0);
    check("ctl_stack_size", size.to_string(), rule, size == save.control_stack, size_origin);
    let (size, rule) = (args.ctx_save_restore_size, size_rule(save.slice, save.formula.1));
    check("ctx_save_restore_size", size.to_string(), rule, size == save.slice, size_origin);
    let whole = (u64::from(save.slice) + u64::from(save.debug)) * u64::from(save.num_xcc);
    let whole = whole.next_multiple_of(PAGE_SIZE);
    let rule = format!("= {whole} = page_up(({} + debug {}) * num_xcc {})", save.slice, save.debug, save.num_xcc);
    check("ctx_save_restore mapping", context.size.to_string(), rule, context.size == whole, whole_origin);
    for check in &mut checks {
        check.disputed = match check.field {
            "ctl_stack_size" => save.control_stack != save.formula.0,
            "ctx_save_restore_size" => save.slice != save.formula.1,
            _ => false,
        };
    }
    checks
}

fn hex(value: u64) -> String {
    format!("{value:#x}")
}

fn is(value: u64) -> String {
    format!("= {value}")
}

fn starts(mapping: Mapping) -> String {
    format!("= {}", mapping.va)
}

impl CreateQueueError {
    /// The table of checks for EINVAL, the rule in words for other errors.
    pub fn table(&self) -> Option<String> {
        if self.errno != Errno::EINVAL {
            return create_queue_rule(self.errno).map(|(rule, _)| rule.to_string());
        }
        let width = |column: fn(&Check) -> usize| self.checks.iter().map(column).max().unwrap_or(0);
        let field = width(|check| check.field.len());
        let value = width(|check| check.value.len());
        let mut text = String::new();
        for check in &self.checks {
            let verdict = if check.pass { "pass" } else { "FAIL" };
            let _ = writeln!(
                text,
                "    {verdict}  {:field$}  {:>value$}  {} ({})",
                check.field, check.value, check.rule, check.origin
            );
        }
        Some(text.trim_end().to_string())
    }

    /// What to do.
    pub fn advice(&self) -> Option<&'static str> {
        Some(match create_queue_rule(self.errno) {
            Some((_, advice)) => advice,
            None if self.errno != Errno::EINVAL => return None,
            None if self.checks.iter().any(|check| !check.pass) => "the fields marked FAIL break the kernel's rules",
            None if self.checks.iter().any(|check| check.disputed) => {
                "the kernel's own sizes and its formula disagree: look at cwsr_size and ctl_stack_size in \
                 /sys/class/kfd/kfd/topology/nodes/*/properties; the kernel may have told other sizes than it checks"
            }
            None => {
                "every rule known here is kept, so the kernel expects other sizes: echo 'file kfd_queue.c +p' > \
                 /sys/kernel/debug/dynamic_debug/control makes dmesg tell which"
            }
        })
    }
}

/// Rule and advice for the errors of CREATE_QUEUE that no field explains: all but EINVAL.
pub fn create_queue_rule(errno: Errno) -> Option<(&'static str, &'static str)> {
    const RESET: &str = "look at dmesg | grep -i amdgpu; a GPU reset or a reboot is needed";
    const DEFECT: &str = "this is a defect of the program that called, and not of the machine";
    const HOLDERS: &str = "ls /sys/class/kfd/kfd/proc/*/queues shows who holds queues: end some of them";
    Some(match errno {
        Errno::ENOSPC => ("a process has 127 queues on a GPU at most (255 on gfx942)", "destroy queues"),
        Errno::ENOMEM => ("doorbells, queue ids or memory for the queue's state are used up", HOLDERS),
        Errno::EPERM => ("the GPU has as many queues as the driver allows (max_num_of_queues_per_device)", HOLDERS),
        Errno::EBUSY => ("no doorbell or hardware queue is free", HOLDERS),
        Errno::ESRCH => ("ACQUIRE_VM must come first", DEFECT),
        Errno::EFAULT => ("an address is not one of this process", DEFECT),
        Errno::ENOTSUPP => ("the kernel does not know the queue type", "use a newer kernel"),
        Errno::ETIME => ("the scheduler did not answer", RESET),
        Errno::EIO => ("the GPU is in reset", RESET),
        _ => return None,
    })
}

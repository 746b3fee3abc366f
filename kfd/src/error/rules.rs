//! What an error number of an ioctl means: the handlers in `drivers/gpu/drm/amd/amdkfd/kfd_chardev.c` and what they call
//! (Linux 6.12).

use crate::errno::Errno;

/// The rule an error number of an ioctl stands for, and what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Name after `AMDKFD_IOC_`; empty for every ioctl that has no rule of its own for the number.
    pub name: &'static str,
    /// Error.
    pub errno: Errno,
    /// What must hold.
    pub rule: &'static str,
    /// What to do.
    pub advice: &'static str,
}

const fn rule(name: &'static str, errno: Errno, rule: &'static str, advice: &'static str) -> Rule {
    Rule { name, errno, rule, advice }
}

/// All rules, but those of CREATE_QUEUE, of which EINVAL has too many for one line.
pub fn all() -> &'static [Rule] {
    RULES
}

/// The rule for an ioctl, else that for every ioctl.
pub fn find(name: &str, errno: Errno) -> Option<&'static Rule> {
    let of = |wanted: &str| RULES.iter().find(|rule| rule.name == wanted && rule.errno == errno);
    of(name).or_else(|| of(""))
}

const RESET: &str = "the scheduler is not answering or the GPU is in reset: look at dmesg | grep -i amdgpu; a reset or a \
                     reboot is needed";

pub(super) const DEFECT: &str = "this is a defect of the program that called, and not of the machine";

const RULES: &[Rule] = &[
    rule(
        "ACQUIRE_VM",
        Errno::EINVAL,
        "drm_fd must be a render node of amdgpu whose VM no one else has acquired",
        DEFECT,
    ),
    rule(
        "ACQUIRE_VM",
        Errno::EBUSY,
        "this process has acquired the GPU through another open of its render node",
        "keep one open of /dev/kfd and its devices for the life of the process",
    ),
    rule(
        "ACQUIRE_VM",
        Errno::ENOMEM,
        "no memory for the page tables of a new VM",
        "end other GPU processes; look at dmesg",
    ),
    rule("GET_PROCESS_APERTURES_NEW", Errno::EINVAL, "num_of_nodes must not exceed the nodes of the topology", DEFECT),
    rule(
        "ALLOC_MEMORY_OF_GPU",
        Errno::EINVAL,
        "size > 0; gpu_id one this process may use; one memory type; PUBLIC only with a large BAR",
        DEFECT,
    ),
    rule("ALLOC_MEMORY_OF_GPU", Errno::ENODEV, "ACQUIRE_VM must come first", DEFECT),
    rule(
        "ALLOC_MEMORY_OF_GPU",
        Errno::ENOMEM,
        "device memory, or the KFD's own limit on system memory, is used up",
        "see AVAILABLE_MEMORY and /sys/class/kfd/kfd/proc/*/vram_*; free memory or end other GPU processes",
    ),
    rule("ALLOC_MEMORY_OF_GPU", Errno::EADDRINUSE, "the address range overlaps an SVM range", DEFECT),
    rule("ALLOC_MEMORY_OF_GPU", Errno::EFAULT, "USERPTR memory must be mapped in this process", DEFECT),
    rule("FREE_MEMORY_OF_GPU", Errno::EPERM, "the event page cannot be freed before the process ends", DEFECT),
    rule("FREE_MEMORY_OF_GPU", Errno::EINVAL, "no buffer has this handle", DEFECT),
    rule("FREE_MEMORY_OF_GPU", Errno::EBUSY, "the buffer is still mapped on a GPU", DEFECT),
    rule(
        "MAP_MEMORY_TO_GPU",
        Errno::EINVAL,
        "address and size whole pages, not 0, below 2^48, and free in the GPU's address space",
        DEFECT,
    ),
    rule("MAP_MEMORY_TO_GPU", Errno::ENODEV, "ACQUIRE_VM must come first", DEFECT),
    rule(
        "MAP_MEMORY_TO_GPU",
        Errno::ENOMEM,
        "no memory for page tables, or no buffer has this handle",
        "end other GPU processes; look at dmesg",
    ),
    rule("UNMAP_MEMORY_FROM_GPU", Errno::EINVAL, "the buffer must be mapped on the GPU", DEFECT),
    rule("UNMAP_MEMORY_FROM_GPU", Errno::EBUSY, "a live queue uses the buffer: DESTROY_QUEUE comes first", DEFECT),
    rule("UNMAP_MEMORY_FROM_GPU", Errno::ENOMEM, "no buffer has this handle", DEFECT),
    rule("DESTROY_QUEUE", Errno::EINVAL, "no queue has this id", DEFECT),
    rule("DESTROY_QUEUE", Errno::EBUSY, "another thread is destroying the queue", DEFECT),
    rule("DESTROY_QUEUE", Errno::ETIME, "a wave did not leave in time; the queue is gone nevertheless", RESET),
    rule("DESTROY_QUEUE", Errno::EIO, "the GPU is in reset; the queue is gone nevertheless", RESET),
    rule("UPDATE_QUEUE", Errno::EFAULT, "no queue has this id, or the ring is not exactly one mapping", DEFECT),
    rule("UPDATE_QUEUE", Errno::EINVAL, "percentage <= 100, priority <= 15, ring a power of two", DEFECT),
    rule("UPDATE_QUEUE", Errno::EACCES, "a GPU reset has ended the queue", RESET),
    rule("UPDATE_QUEUE", Errno::ETIME, "the scheduler did not answer", RESET),
    rule(
        "CREATE_EVENT",
        Errno::EINVAL,
        "the event page: 32768 bytes at least, not USERPTR, and set once in the life of a process",
        "keep one open of /dev/kfd for the life of the process",
    ),
    rule("CREATE_EVENT", Errno::ENODEV, "ACQUIRE_VM must come first", DEFECT),
    rule("CREATE_EVENT", Errno::ENOSPC, "4095 signal events are all a process can have", "destroy events"),
    rule("DESTROY_EVENT", Errno::EINVAL, "no event has this id", DEFECT),
    rule("SET_EVENT", Errno::EINVAL, "no signal event has this id", DEFECT),
    rule("RESET_EVENT", Errno::EINVAL, "no signal event has this id", DEFECT),
    rule("WAIT_EVENTS", Errno::EINVAL, "every event must exist", DEFECT),
    rule("WAIT_EVENTS", Errno::EIO, "an event was destroyed while it was waited for", DEFECT),
    rule("SET_XNACK_MODE", Errno::EPERM, "the GPU has no XNACK mode to choose, or the kernel no SVM", DEFECT),
    rule("SET_XNACK_MODE", Errno::EBUSY, "the mode can be set before the first queue only", DEFECT),
    rule("RUNTIME_ENABLE", Errno::EBUSY, "this process has enabled already", DEFECT),
    rule("RUNTIME_ENABLE", Errno::EEXIST, "it must come before the first queue", DEFECT),
    rule("AVAILABLE_MEMORY", Errno::EINVAL, "gpu_id must be one this process may use", DEFECT),
    rule(
        "",
        Errno::EBADF,
        "only the process that opened /dev/kfd may use it",
        "a forked child has to open /dev/kfd itself",
    ),
    rule("", Errno::ENOTTY, "this kernel's interface does not have the request", "use a newer kernel"),
    rule("", Errno::ESRCH, "ACQUIRE_VM must come first", DEFECT),
    rule("", Errno::EIO, "the GPU is in reset", RESET),
    rule("", Errno::ETIME, "the scheduler did not answer", RESET),
    rule("", Errno::ENOMEM, "the kernel is short of memory", "look at dmesg"),
    rule("", Errno::EFAULT, "an address given to the kernel is not mapped in this process", DEFECT),
    rule("", Errno::EINVAL, "an argument is not valid for this process: gpu_id, id or handle", DEFECT),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uapi::IOCTLS;

    #[test]
    fn every_rule_is_for_an_ioctl_and_only_once() {
        for (i, rule) in RULES.iter().enumerate() {
            assert!(rule.name.is_empty() || IOCTLS.iter().any(|info| info.name == rule.name), "{}", rule.name);
            let twice = RULES[..i].iter().any(|other| other.name == rule.name && other.errno == rule.errno);
            assert!(!twice, "{} {}", rule.name, rule.errno);
        }
    }

    #[test]
    fn specific_before_general() {
        assert!(find("FREE_MEMORY_OF_GPU", Errno::EPERM).unwrap().rule.contains("event page"));
        assert!(find("FREE_MEMORY_OF_GPU", Errno::EBADF).unwrap().rule.contains("opened"));
        assert!(find("GET_VERSION", Errno::EPERM).is_none());
    }
}

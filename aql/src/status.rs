//! What the packet processor says when it stops a queue, as tables: the bits it stores to `queue_inactive_signal`, and
//! the exception codes the kernel delivers instead once RUNTIME_ENABLE was called. ROCR has a name for each, and not
//! always the same one for the same thing.

use crate::hsa::{HsaStatus, hsa_status};

/// A bit of `queue_inactive_signal`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InactiveBit {
    /// The value of the bit.
    pub bit: u64,
    /// Short name.
    pub name: &'static str,
    /// What the processor found.
    pub meaning: &'static str,
    /// The queue goes on after the host has served the request and stored 0 to the signal.
    pub recoverable: bool,
    /// What ROCR calls it (`DynamicQueueEventsHandler` in `amd_aql_queue.cpp`), for a request when it cannot serve it.
    rocr: Option<u32>,
    /// What to do.
    pub advice: &'static str,
}

impl InactiveBit {
    /// The status that ROCR's queue error callback gets, for a request only when ROCR cannot serve it; none for what is
    /// no error.
    pub fn rocr(&self) -> Option<&'static HsaStatus> {
        self.rocr.and_then(hsa_status)
    }
}

const SCRATCH_ADVICE: &str = "the host gives the queue more scratch and stores 0 to the signal; where it cannot, launch \
                              fewer waves or use less stack";
const DIMENSIONS_ADVICE: &str = "setup has 1 to 3 dimensions, no size is 0, and sizes beyond the dimensions are 1";
const GROUP_ADVICE: &str = "static and dynamic LDS together must fit what a work-group can have (65536 bytes on most \
                            GPUs): `kfdrun inspect` shows the static part";
const CODE_ADVICE: &str = "kernel_object is the device address of the kernel descriptor (symbol NAME.kd, 64-byte \
                           aligned), not of the code";
const PACKET_ADVICE: &str = "`kfdrun explain packet BYTES` checks the packet; a header that is stored before the other 60 \
                             bytes gives this error now and then";
const WORKGROUP_ADVICE: &str = "a work-group has 1024 work-items at most";
const REGISTERS_ADVICE: &str = "the image's target is not the problem, whatever the name says: launch smaller \
                                work-groups, or compile for them (amdgpu_flat_work_group_size, --gpu-max-threads-per-block)";
const VENDOR_ADVICE: &str = "known formats are 1 (PM4 indirect buffer, a single INDIRECT_BUFFER command) and 2 (barrier \
                             value)";
const APERTURE_ADVICE: &str = "look for a pointer to LDS or scratch that is used as one to global memory, an address of \
                               more than 48 bits, an atomic that is not aligned";
const ILLEGAL_ADVICE: &str = "the image is for another processor, or the program ran into data: `kfdrun inspect` shows \
                              what it was built for";
const TRAP_ADVICE: &str = "s_trap 2 is what __builtin_trap ends in, and abort() and failed assertions of programs without \
                           a libc; look at the source line, and at what was printed before";
const DMESG_ADVICE: &str = "look at dmesg | grep -iE 'amdgpu|kfd'; queues of before never run again, so start anew";

/// The bits, lowest first.
pub const INACTIVE_BITS: [InactiveBit; 13] = [
    asks(
        0x1,
        "scratch-wave64",
        "a dispatch of 64-lane waves needs more scratch than the queue has",
        Some(0x1008),
        SCRATCH_ADVICE,
    ),
    inactive(0x2, "dispatch-dimensions", "the dispatch's dimensions are not valid", 0x100d, DIMENSIONS_ADVICE),
    inactive(0x4, "group-memory", "the dispatch's group segment size is not valid", 0x1003, GROUP_ADVICE),
    inactive(0x8, "code", "the dispatch's kernel object is null or not valid", 0x1010, CODE_ADVICE),
    inactive(0x20, "packet", "the packet's type or format is not supported", 0x1009, PACKET_ADVICE),
    inactive(0x40, "workgroup-size", "the work-group is too large", 0x1001, WORKGROUP_ADVICE),
    inactive(
        0x80,
        "registers",
        "the kernel needs more VGPRs than a work-group of this size can have",
        45,
        REGISTERS_ADVICE,
    ),
    inactive(0x100, "vendor-packet", "the vendor packet is not supported", 0x1009, VENDOR_ADVICE),
    asks(0x200, "scratch-once-done", "the dispatch that had the scratch to itself is done", None, "it is no error"),
    asks(
        0x400,
        "scratch-wave32",
        "a dispatch of 32-lane waves needs more scratch than the queue has",
        Some(0x1008),
        SCRATCH_ADVICE,
    ),
    inactive(0x2000_0000, "aperture-violation", "a wave used an address outside every aperture", 41, APERTURE_ADVICE),
    inactive(0x4000_0000, "illegal-instruction", "a wave met an instruction the GPU does not have", 42, ILLEGAL_ADVICE),
    inactive(0x8000_0000, "trap", "a wave executed a trap and no handler took it", 0x1016, TRAP_ADVICE),
];

const fn inactive(bit: u64, name: &'static str, meaning: &'static str, rocr: u32, advice: &'static str) -> InactiveBit {
    InactiveBit { bit, name, meaning, recoverable: false, rocr: Some(rocr), advice }
}

const fn asks(
    bit: u64,
    name: &'static str,
    meaning: &'static str,
    rocr: Option<u32>,
    advice: &'static str,
) -> InactiveBit {
    InactiveBit { bit, name, meaning, recoverable: true, rocr, advice }
}

/// The known bits set in a value of `queue_inactive_signal`, and the bits that are not known.
pub fn inactive_bits(value: u64) -> (Vec<&'static InactiveBit>, u64) {
    let known: Vec<_> = INACTIVE_BITS.iter().filter(|b| value & b.bit != 0).collect();
    let rest = known.iter().fold(value, |rest, b| rest & !b.bit);
    (known, rest)
}

/// A KFD exception code (`enum kfd_dbg_trap_exception_code`). In a mask it is bit `code - 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exception {
    /// The code.
    pub code: u8,
    /// Name without the `EC_` prefix.
    pub name: &'static str,
    /// What happened.
    pub meaning: &'static str,
    /// What ROCR calls it (`ExceptionHandler` in `amd_aql_queue.cpp`). Codes that are not in its table are the error
    /// without a number of its own. Its table has two codes under other numbers than the kernel: 31 for 30 and 50 for 49.
    rocr: u32,
    /// What to do.
    pub advice: &'static str,
}

impl Exception {
    /// Its bit in an exception mask.
    pub const fn mask(&self) -> u64 {
        1 << (self.code - 1)
    }

    /// The status that ROCR's queue error callback gets.
    pub fn rocr(&self) -> Option<&'static HsaStatus> {
        hsa_status(self.rocr)
    }
}

/// An error that has no number of its own.
const ERROR: u32 = 0x1000;
const NOTICE: &str = "it is no error";

/// The codes, lowest first.
pub const EXCEPTIONS: [Exception; 24] = [
    exception(1, "QUEUE_WAVE_ABORT", "a wave aborted", 0x1016, TRAP_ADVICE),
    exception(2, "QUEUE_WAVE_TRAP", "a wave executed a trap", 0x1016, TRAP_ADVICE),
    exception(
        3,
        "QUEUE_WAVE_MATH_ERROR",
        "a wave raised an enabled floating point or integer exception",
        0x1016,
        "the kernel descriptor's enable_exception bits ask for it: compile without them, or look at the operands",
    ),
    exception(
        4,
        "QUEUE_WAVE_ILLEGAL_INSTRUCTION",
        "a wave met an instruction the GPU does not have",
        42,
        ILLEGAL_ADVICE,
    ),
    exception(
        5,
        "QUEUE_WAVE_MEMORY_VIOLATION",
        "a wave accessed memory it may not",
        43,
        "the memory fault event has the address",
    ),
    exception(6, "QUEUE_WAVE_APERTURE_VIOLATION", "a wave used an address outside every aperture", 41, APERTURE_ADVICE),
    exception(
        16,
        "QUEUE_PACKET_DISPATCH_DIM_INVALID",
        "the dispatch's dimensions are not valid",
        0x100d,
        DIMENSIONS_ADVICE,
    ),
    exception(
        17,
        "QUEUE_PACKET_DISPATCH_GROUP_SEGMENT_SIZE_INVALID",
        "the dispatch's group segment size is not valid",
        0x1003,
        GROUP_ADVICE,
    ),
    exception(
        18,
        "QUEUE_PACKET_DISPATCH_CODE_INVALID",
        "the dispatch's kernel object is null or not valid",
        0x1010,
        CODE_ADVICE,
    ),
    exception(19, "QUEUE_PACKET_RESERVED", "the packet type is reserved", ERROR, PACKET_ADVICE),
    exception(20, "QUEUE_PACKET_UNSUPPORTED", "the packet type is not supported", 0x1009, PACKET_ADVICE),
    exception(
        21,
        "QUEUE_PACKET_DISPATCH_WORK_GROUP_SIZE_INVALID",
        "the work-group is too large",
        0x1001,
        WORKGROUP_ADVICE,
    ),
    exception(
        22,
        "QUEUE_PACKET_DISPATCH_REGISTER_INVALID",
        "the kernel needs more registers than there are",
        0x100f,
        REGISTERS_ADVICE,
    ),
    exception(23, "QUEUE_PACKET_VENDOR_UNSUPPORTED", "the vendor packet is not supported", 0x1009, VENDOR_ADVICE),
    exception(29, "QUEUE_RESET", "the queue was reset; kernels after 6.12 tell it", ERROR, DMESG_ADVICE),
    exception(30, "QUEUE_PREEMPTION_ERROR", "the queue could not be preempted", ERROR, DMESG_ADVICE),
    exception(31, "QUEUE_NEW", "a queue was created", ERROR, NOTICE),
    exception(32, "DEVICE_QUEUE_DELETE", "a queue was removed", ERROR, NOTICE),
    exception(
        33,
        "DEVICE_MEMORY_VIOLATION",
        "the GPU accessed memory it may not",
        41,
        "the memory fault event has the address",
    ),
    exception(34, "DEVICE_RAS_ERROR", "the GPU found a memory error it could not correct", ERROR, DMESG_ADVICE),
    exception(35, "DEVICE_FATAL_HALT", "the GPU halted", ERROR, DMESG_ADVICE),
    exception(36, "DEVICE_NEW", "a GPU was added", ERROR, NOTICE),
    exception(48, "PROCESS_RUNTIME", "the runtime was enabled or disabled", ERROR, NOTICE),
    exception(49, "PROCESS_DEVICE_REMOVE", "a GPU was removed", ERROR, DMESG_ADVICE),
];

const fn exception(code: u8, name: &'static str, meaning: &'static str, rocr: u32, advice: &'static str) -> Exception {
    Exception { code, name, meaning, rocr, advice }
}

/// The known exceptions in a mask, and the bits that are not known.
pub fn exceptions(mask: u64) -> (Vec<&'static Exception>, u64) {
    let known: Vec<_> = EXCEPTIONS.iter().filter(|e| mask & e.mask() != 0).collect();
    let rest = known.iter().fold(mask, |rest, e| rest & !e.mask());
    (known, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted_single_bits() {
        assert!(INACTIVE_BITS.iter().all(|b| b.bit.is_power_of_two()));
        assert!(INACTIVE_BITS.windows(2).all(|w| w[0].bit < w[1].bit));
        assert!(EXCEPTIONS.windows(2).all(|w| w[0].code < w[1].code));
        assert!(EXCEPTIONS.iter().all(|e| (1..=64).contains(&e.code) && e.rocr().is_some()));
        assert!(INACTIVE_BITS.iter().all(|b| b.rocr().is_some() || b.recoverable));
    }

    #[test]
    fn values_split_into_names_and_rest() {
        let (known, rest) = inactive_bits(0x4000_0010);
        assert_eq!((known.iter().map(|b| b.name).collect::<Vec<_>>(), rest), (vec!["illegal-instruction"], 0x10));
        assert_eq!(inactive_bits(0), (vec![], 0));
        let (known, rest) = exceptions(1 << 3 | 1 << 17 | 1 << 63);
        assert_eq!(known.iter().map(|e| e.code).collect::<Vec<_>>(), [4, 18]);
        assert_eq!(rest, 1 << 63);
    }
}

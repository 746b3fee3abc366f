//! What the packet processor says when it stops a queue, as tables: the bits it stores to `queue_inactive_signal`, and
//! the exception codes the kernel delivers instead once RUNTIME_ENABLE was called.

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
}

/// The bits, lowest first.
pub const INACTIVE_BITS: [InactiveBit; 13] = [
    inactive(0x1, "scratch-wave64", "a dispatch of 64-lane waves needs more scratch than the queue has", true),
    inactive(0x2, "dispatch-dimensions", "the dispatch's dimensions are not valid", false),
    inactive(0x4, "group-memory", "the dispatch's group segment size is not valid", false),
    inactive(0x8, "code", "the dispatch's kernel object is null or not valid", false),
    inactive(0x20, "packet", "the packet's type or format is not supported", false),
    inactive(0x40, "workgroup-size", "the work-group is too large", false),
    inactive(0x80, "registers", "the kernel needs more VGPRs than a work-group of this size can have", false),
    inactive(0x100, "vendor-packet", "the vendor packet is not supported", false),
    inactive(0x200, "scratch-once-done", "the dispatch that had the scratch to itself is done", true),
    inactive(0x400, "scratch-wave32", "a dispatch of 32-lane waves needs more scratch than the queue has", true),
    inactive(0x2000_0000, "aperture-violation", "a wave used an address outside every aperture", false),
    inactive(0x4000_0000, "illegal-instruction", "a wave met an instruction the GPU does not have", false),
    inactive(0x8000_0000, "trap", "a wave executed a trap and no handler took it", false),
];

const fn inactive(bit: u64, name: &'static str, meaning: &'static str, recoverable: bool) -> InactiveBit {
    InactiveBit { bit, name, meaning, recoverable }
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
}

impl Exception {
    /// Its bit in an exception mask.
    pub const fn mask(&self) -> u64 {
        1 << (self.code - 1)
    }
}

/// The codes, lowest first.
pub const EXCEPTIONS: [Exception; 23] = [
    exception(1, "QUEUE_WAVE_ABORT", "a wave aborted"),
    exception(2, "QUEUE_WAVE_TRAP", "a wave executed a trap"),
    exception(3, "QUEUE_WAVE_MATH_ERROR", "a wave raised an enabled floating point or integer exception"),
    exception(4, "QUEUE_WAVE_ILLEGAL_INSTRUCTION", "a wave met an instruction the GPU does not have"),
    exception(5, "QUEUE_WAVE_MEMORY_VIOLATION", "a wave accessed memory it may not"),
    exception(6, "QUEUE_WAVE_APERTURE_VIOLATION", "a wave used an address outside every aperture"),
    exception(16, "QUEUE_PACKET_DISPATCH_DIM_INVALID", "the dispatch's dimensions are not valid"),
    exception(17, "QUEUE_PACKET_DISPATCH_GROUP_SEGMENT_SIZE_INVALID", "the dispatch's group segment size is not valid"),
    exception(18, "QUEUE_PACKET_DISPATCH_CODE_INVALID", "the dispatch's kernel object is null or not valid"),
    exception(19, "QUEUE_PACKET_RESERVED", "the packet type is reserved"),
    exception(20, "QUEUE_PACKET_UNSUPPORTED", "the packet type is not supported"),
    exception(21, "QUEUE_PACKET_DISPATCH_WORK_GROUP_SIZE_INVALID", "the work-group is too large"),
    exception(22, "QUEUE_PACKET_DISPATCH_REGISTER_INVALID", "the kernel needs more registers than there are"),
    exception(23, "QUEUE_PACKET_VENDOR_UNSUPPORTED", "the vendor packet is not supported"),
    exception(30, "QUEUE_PREEMPTION_ERROR", "the queue could not be preempted"),
    exception(31, "QUEUE_NEW", "a queue was created"),
    exception(32, "DEVICE_QUEUE_DELETE", "a queue was removed"),
    exception(33, "DEVICE_MEMORY_VIOLATION", "the GPU accessed memory it may not"),
    exception(34, "DEVICE_RAS_ERROR", "the GPU found a memory error it could not correct"),
    exception(35, "DEVICE_FATAL_HALT", "the GPU halted"),
    exception(36, "DEVICE_NEW", "a GPU was added"),
    exception(48, "PROCESS_RUNTIME", "the runtime was enabled or disabled"),
    exception(49, "PROCESS_DEVICE_REMOVE", "a GPU was removed"),
];

const fn exception(code: u8, name: &'static str, meaning: &'static str) -> Exception {
    Exception { code, name, meaning }
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
        assert!(EXCEPTIONS.iter().all(|e| (1..=64).contains(&e.code)));
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

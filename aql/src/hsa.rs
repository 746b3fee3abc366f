//! HSA status numbers (`hsa.h`, `hsa_ext_amd.h`): what ROCR calls things.

use std::fmt;

/// A status of the HSA runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HsaStatus {
    /// `hsa_status_t`.
    pub number: u32,
    /// Name behind `HSA_STATUS_`.
    pub name: &'static str,
    /// What it says.
    pub meaning: &'static str,
}

/// `HSA_STATUS_NAME (number)`; the statuses of `hsa.h` are written in hexadecimal there, those of `hsa_ext_amd.h` in
/// decimal.
impl fmt::Display for HsaStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            0x1000.. => write!(f, "HSA_STATUS_{} ({:#x})", self.name, self.number),
            number => write!(f, "HSA_STATUS_{} ({number})", self.name),
        }
    }
}

/// The status with this number.
pub fn hsa_status(number: u32) -> Option<&'static HsaStatus> {
    HSA_STATUSES.iter().find(|status| status.number == number)
}

/// All of them, in the order of their numbers.
pub const HSA_STATUSES: [HsaStatus; 47] = [
    status(0x0, "SUCCESS", "the call did what it should"),
    status(0x1, "INFO_BREAK", "a callback ended an iteration early; no error"),
    status(40, "ERROR_INVALID_MEMORY_POOL", "the memory pool is not one"),
    status(41, "ERROR_MEMORY_APERTURE_VIOLATION", "a wave used an address outside every aperture"),
    status(42, "ERROR_ILLEGAL_INSTRUCTION", "a wave met an instruction the GPU does not have"),
    status(43, "ERROR_MEMORY_FAULT", "the GPU accessed an address that it may not"),
    status(44, "CU_MASK_REDUCED", "the CU mask was set, less the compute units this process may not use; no error"),
    status(
        45,
        "ERROR_OUT_OF_REGISTERS",
        "the kernel needs more vector registers than a work-group of this size can have",
    ),
    status(46, "ERROR_RESOURCE_BUSY", "the resource is in use"),
    status(47, "ERROR_NOT_SUPPORTED", "the device or the driver cannot do it"),
    status(0x1000, "ERROR", "an error that has no number of its own"),
    status(0x1001, "ERROR_INVALID_ARGUMENT", "an argument is not valid"),
    status(0x1002, "ERROR_INVALID_QUEUE_CREATION", "the queue cannot be created as asked"),
    status(0x1003, "ERROR_INVALID_ALLOCATION", "the memory cannot be allocated as asked"),
    status(0x1004, "ERROR_INVALID_AGENT", "the agent is not one"),
    status(0x1005, "ERROR_INVALID_REGION", "the memory region is not one"),
    status(0x1006, "ERROR_INVALID_SIGNAL", "the signal is not one"),
    status(0x1007, "ERROR_INVALID_QUEUE", "the queue is not one"),
    status(
        0x1008,
        "ERROR_OUT_OF_RESOURCES",
        "the runtime could not get something: memory, a queue, or access to the device",
    ),
    status(0x1009, "ERROR_INVALID_PACKET_FORMAT", "an AQL packet is malformed"),
    status(0x100a, "ERROR_RESOURCE_FREE", "a resource could not be released"),
    status(0x100b, "ERROR_NOT_INITIALIZED", "hsa_init was not called, or hsa_shut_down was"),
    status(0x100c, "ERROR_REFCOUNT_OVERFLOW", "hsa_init was called too often"),
    status(0x100d, "ERROR_INCOMPATIBLE_ARGUMENTS", "the arguments do not fit one another"),
    status(0x100e, "ERROR_INVALID_INDEX", "the index is out of range"),
    status(0x100f, "ERROR_INVALID_ISA", "the instruction set architecture is not one"),
    status(0x1010, "ERROR_INVALID_CODE_OBJECT", "the code object cannot be used"),
    status(0x1011, "ERROR_INVALID_EXECUTABLE", "the executable is not one"),
    status(0x1012, "ERROR_FROZEN_EXECUTABLE", "the executable is frozen"),
    status(0x1013, "ERROR_INVALID_SYMBOL_NAME", "there is no symbol of this name"),
    status(0x1014, "ERROR_VARIABLE_ALREADY_DEFINED", "the variable is defined already"),
    status(0x1015, "ERROR_VARIABLE_UNDEFINED", "the variable is not defined"),
    status(0x1016, "ERROR_EXCEPTION", "a kernel raised an exception: trap, abort or arithmetic"),
    status(0x1017, "ERROR_INVALID_ISA_NAME", "there is no instruction set architecture of this name"),
    status(0x1018, "ERROR_INVALID_CODE_SYMBOL", "the code object symbol is not one"),
    status(0x1019, "ERROR_INVALID_EXECUTABLE_SYMBOL", "the executable symbol is not one"),
    status(0x1020, "ERROR_INVALID_FILE", "the file descriptor is not valid"),
    status(0x1021, "ERROR_INVALID_CODE_OBJECT_READER", "the code object reader is not one"),
    status(0x1022, "ERROR_INVALID_CACHE", "the cache is not one"),
    status(0x1023, "ERROR_INVALID_WAVEFRONT", "the wavefront is not one"),
    status(0x1024, "ERROR_INVALID_SIGNAL_GROUP", "the signal group is not one"),
    status(0x1025, "ERROR_INVALID_RUNTIME_STATE", "the runtime is not being configured"),
    status(0x1026, "ERROR_FATAL", "the queue met an error that may need the process to end"),
    status(0x3000, "ERROR_IMAGE_FORMAT_UNSUPPORTED", "the image format is not supported"),
    status(0x3001, "ERROR_IMAGE_SIZE_UNSUPPORTED", "the image size is not supported"),
    status(0x3002, "ERROR_IMAGE_PITCH_UNSUPPORTED", "the image pitch is not supported"),
    status(0x3003, "ERROR_SAMPLER_DESCRIPTOR_UNSUPPORTED", "the sampler is not supported"),
];

const fn status(number: u32, name: &'static str, meaning: &'static str) -> HsaStatus {
    HsaStatus { number, name, meaning }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names() {
        assert!(HSA_STATUSES.windows(2).all(|pair| pair[0].number < pair[1].number));
        let shown = |number| hsa_status(number).map(HsaStatus::to_string);
        assert_eq!(shown(0x1009).as_deref(), Some("HSA_STATUS_ERROR_INVALID_PACKET_FORMAT (0x1009)"));
        assert_eq!(shown(43).as_deref(), Some("HSA_STATUS_ERROR_MEMORY_FAULT (43)"));
        assert_eq!(shown(2), None);
    }
}

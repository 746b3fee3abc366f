//! HSA status numbers (`hsa.h`, `hsa_ext_amd.h`): what ROCR prints, and what lies behind it.

use super::input::Number;
use super::{Reading, queue, row};

/// A status: number, name after `HSA_STATUS_`, meaning.
type Status = (u32, &'static str, &'static str);

const STATUSES: [Status; 47] = [
    (0x0, "SUCCESS", "the call did what it should"),
    (0x1, "INFO_BREAK", "a callback ended an iteration early; no error"),
    (40, "ERROR_INVALID_MEMORY_POOL", "the memory pool is not one"),
    (41, "ERROR_MEMORY_APERTURE_VIOLATION", "a wave used an address outside every aperture"),
    (42, "ERROR_ILLEGAL_INSTRUCTION", "a wave met an instruction the GPU does not have"),
    (43, "ERROR_MEMORY_FAULT", "the GPU accessed an address that it may not"),
    (44, "CU_MASK_REDUCED", "the CU mask was set, less the compute units this process may not use; no error"),
    (45, "ERROR_OUT_OF_REGISTERS", "the kernel needs more vector registers than a work-group of this size can have"),
    (46, "ERROR_RESOURCE_BUSY", "the resource is in use"),
    (47, "ERROR_NOT_SUPPORTED", "the device or the driver cannot do it"),
    (0x1000, "ERROR", "an error that has no number of its own"),
    (0x1001, "ERROR_INVALID_ARGUMENT", "an argument is not valid"),
    (0x1002, "ERROR_INVALID_QUEUE_CREATION", "the queue cannot be created as asked"),
    (0x1003, "ERROR_INVALID_ALLOCATION", "the memory cannot be allocated as asked"),
    (0x1004, "ERROR_INVALID_AGENT", "the agent is not one"),
    (0x1005, "ERROR_INVALID_REGION", "the memory region is not one"),
    (0x1006, "ERROR_INVALID_SIGNAL", "the signal is not one"),
    (0x1007, "ERROR_INVALID_QUEUE", "the queue is not one"),
    (0x1008, "ERROR_OUT_OF_RESOURCES", "the runtime could not get something: memory, a queue, or access to the device"),
    (0x1009, "ERROR_INVALID_PACKET_FORMAT", "an AQL packet is malformed"),
    (0x100a, "ERROR_RESOURCE_FREE", "a resource could not be released"),
    (0x100b, "ERROR_NOT_INITIALIZED", "hsa_init was not called, or hsa_shut_down was"),
    (0x100c, "ERROR_REFCOUNT_OVERFLOW", "hsa_init was called too often"),
    (0x100d, "ERROR_INCOMPATIBLE_ARGUMENTS", "the arguments do not fit one another"),
    (0x100e, "ERROR_INVALID_INDEX", "the index is out of range"),
    (0x100f, "ERROR_INVALID_ISA", "the instruction set architecture is not one"),
    (0x1010, "ERROR_INVALID_CODE_OBJECT", "the code object cannot be used"),
    (0x1011, "ERROR_INVALID_EXECUTABLE", "the executable is not one"),
    (0x1012, "ERROR_FROZEN_EXECUTABLE", "the executable is frozen"),
    (0x1013, "ERROR_INVALID_SYMBOL_NAME", "there is no symbol of this name"),
    (0x1014, "ERROR_VARIABLE_ALREADY_DEFINED", "the variable is defined already"),
    (0x1015, "ERROR_VARIABLE_UNDEFINED", "the variable is not defined"),
    (0x1016, "ERROR_EXCEPTION", "a kernel raised an exception: trap, abort or arithmetic"),
    (0x1017, "ERROR_INVALID_ISA_NAME", "there is no instruction set architecture of this name"),
    (0x1018, "ERROR_INVALID_CODE_SYMBOL", "the code object symbol is not one"),
    (0x1019, "ERROR_INVALID_EXECUTABLE_SYMBOL", "the executable symbol is not one"),
    (0x1020, "ERROR_INVALID_FILE", "the file descriptor is not valid"),
    (0x1021, "ERROR_INVALID_CODE_OBJECT_READER", "the code object reader is not one"),
    (0x1022, "ERROR_INVALID_CACHE", "the cache is not one"),
    (0x1023, "ERROR_INVALID_WAVEFRONT", "the wavefront is not one"),
    (0x1024, "ERROR_INVALID_SIGNAL_GROUP", "the signal group is not one"),
    (0x1025, "ERROR_INVALID_RUNTIME_STATE", "the runtime is not being configured"),
    (0x1026, "ERROR_FATAL", "the queue met an error that may need the process to end"),
    (0x3000, "ERROR_IMAGE_FORMAT_UNSUPPORTED", "the image format is not supported"),
    (0x3001, "ERROR_IMAGE_SIZE_UNSUPPORTED", "the image size is not supported"),
    (0x3002, "ERROR_IMAGE_PITCH_UNSUPPORTED", "the image pitch is not supported"),
    (0x3003, "ERROR_SAMPLER_DESCRIPTOR_UNSUPPORTED", "the sampler is not supported"),
];

/// Statuses of `hsa.h` are written in hexadecimal there, those of `hsa_ext_amd.h` in decimal.
fn shown(status: u32) -> String {
    if status < 0x1000 { status.to_string() } else { format!("{status:#x}") }
}

/// The name of a status.
pub fn name_of(status: u32) -> String {
    let known = STATUSES.iter().find(|(number, ..)| *number == status);
    known.map_or_else(|| shown(status), |(number, name, _)| format!("HSA_STATUS_{name} ({})", shown(*number)))
}

/// A status by its name, with or without `HSA_STATUS_` and `ERROR_`.
pub fn name(name: &str) -> Option<Reading> {
    let upper = name.to_ascii_uppercase();
    let name = upper.strip_prefix("HSA_STATUS_").unwrap_or(&upper);
    let same = |status: &&Status| status.1 == name || status.1.strip_prefix("ERROR_") == Some(name);
    STATUSES.iter().find(same).map(|status| reading(status, 95))
}

/// A status by its number.
pub fn number(number: Number) -> Option<Reading> {
    let status = number.word()?;
    let likely = if status < 0x1000 { number.likely(45, 25) } else { number.likely(97, 85) };
    STATUSES.iter().find(|(known, ..)| *known == status).map(|status| reading(status, likely))
}

fn reading(status: &Status, likely: u8) -> Reading {
    let (number, name, meaning) = status;
    let reading = Reading::new("hsa", likely, format!("HSA_STATUS_{name} ({}): {meaning}", shown(*number)));
    let mut reading = reading.section("As a queue error of ROCR it stands for", queue::behind(*number));
    reading = match number {
        0x1008 => reading.section(
            "Causes that ROCR reports with this one number",
            vec![
                row("", "", "/dev/kfd or a render node may not be opened (EACCES): kfdrun doctor"),
                row("", "", "no GPU the driver can use (ENOMEM on open): kfdrun doctor"),
                row("", "", "CREATE_QUEUE refused (EINVAL: sizes; ENOMEM: doorbells): kfdrun explain CREATE_QUEUE"),
                row("", "", "scratch that does not fit: private segment bytes x lanes x waves x compute units"),
                row(
                    "",
                    "",
                    "memory, or the KFD's own limit on it, is used up: kfdrun explain ALLOC_MEMORY_OF_GPU ENOMEM",
                ),
            ],
        ),
        0x1009 => reading.note(
            "kfdrun explain packet BYTES checks the packet. A header that was stored before the other 60 bytes, or \
             without a release, gives the same error now and then.",
        ),
        0x100f => reading.note(
            "Seen while a kernel runs, it says nothing about the image's target: the packet processor found that the \
             kernel needs more registers than there are (exception 22).",
        ),
        0x1010 => reading.note("When loading: wrong target, code object version or ELF type, or a damaged file."),
        0x1016 => reading.note("s_trap without a handler, __builtin_trap, abort() and failed assertions end so."),
        41 | 43 => reading.note("The line before it names the address; kfdrun --trace shows what is mapped there."),
        _ => reading,
    };
    reading
}

//! What people read when a kernel did not complete: every way a GPU and its driver tell, raw numbers first.

use super::*;
use kfd::uapi::{self, MemoryExceptionFailure};
use kfd::{GpuId, HwException, MemoryFault};

/// How a GPU stops a queue: the condition, the bits of `queue_inactive_signal`, the exception codes.
const CONDITIONS: [(&str, &[u64], &[u8]); 15] = [
    ("need more scratch (wave64, wave32)", &[0x1, 0x400], &[]),
    ("bad dimensions", &[0x2], &[16]),
    ("bad group size", &[0x4], &[17]),
    ("null or invalid code", &[0x8], &[18]),
    ("bad packet, bad vendor packet", &[0x20, 0x100], &[20, 23]),
    ("work-group too large", &[0x40], &[21]),
    ("registers too large", &[0x80], &[22]),
    ("large scratch release", &[0x200], &[]),
    ("aperture violation", &[0x2000_0000], &[6, 33]),
    ("illegal instruction", &[0x4000_0000], &[4]),
    ("trap, abort, math", &[0x8000_0000], &[2, 1, 3]),
    ("memory violation", &[], &[5]),
    ("preemption, RAS, halt, removed", &[], &[30, 34, 35, 49]),
    ("reserved type, reset", &[], &[19, 29]),
    ("what nobody knows", &[0x10], &[9]),
];

fn stop(inactive: u64, exceptions: u64) -> Stop {
    Stop::Queue { kernel: "k".to_owned(), inactive, exceptions, detail: None, notes: Vec::new() }
}

#[test]
fn the_error_map() {
    let mut text = String::new();
    for (condition, bits, codes) in CONDITIONS {
        text += &format!("== {condition}\n");
        for bit in bits {
            text += &format!("{}\n", stop(*bit, 0));
        }
        for code in codes {
            text += &format!("{}\n", stop(0, 1 << (code - 1)));
        }
    }
    insta::assert_snapshot!(text);
}

#[test]
fn the_error_map_is_whole() {
    let inactive: u64 = aql::status::INACTIVE_BITS.iter().fold(0, |all, bit| all | bit.bit);
    let told: u64 = CONDITIONS.iter().flat_map(|(_, bits, _)| *bits).fold(0, |all, bit| all | bit);
    assert_eq!(told & inactive, inactive);
    // Notices of a debugger are no errors of a queue.
    let notices = [31, 32, 36, 48];
    for exception in aql::status::EXCEPTIONS.iter().filter(|exception| !notices.contains(&exception.code)) {
        assert!(CONDITIONS.iter().any(|(.., codes)| codes.contains(&exception.code)), "{}", exception.name);
    }
}

#[test]
fn several_reasons_at_once() {
    insta::assert_snapshot!(stop(0x8000_0010 | 0x20, 1 << 19 | 1 << 1), @"
    trap: kernel k: queue_inactive_signal 0x80000030, exceptions 0x80002
      inactive 0x20 (packet): the packet's type or format is not supported; ROCR: HSA_STATUS_ERROR_INVALID_PACKET_FORMAT (0x1009)
      inactive 0x80000000 (trap): a wave executed a trap and no handler took it; ROCR: HSA_STATUS_ERROR_EXCEPTION (0x1016)
      inactive 0x10: bits that are not known
      exception 2 (EC_QUEUE_WAVE_TRAP): a wave executed a trap; ROCR: HSA_STATUS_ERROR_EXCEPTION (0x1016)
      exception 20 (EC_QUEUE_PACKET_UNSUPPORTED): the packet type is not supported; ROCR: HSA_STATUS_ERROR_INVALID_PACKET_FORMAT (0x1009)
      the driver does not tell the pc, the instruction or the lanes
      do: `kfdrun explain packet BYTES` checks the packet; a header that is stored before the other 60 bytes gives this error now and then
      do: s_trap 2 is what __builtin_trap ends in, and abort() and failed assertions of programs without a libc; look at the source line, and at what was printed before
      do: the firmware or the kernel is newer than the tables here: please report the bits
      do: the same launch on an emulated GPU (--device emu) names instruction, lanes and source line
    ");
    insta::assert_snapshot!(stop(0, 0), @"queue stopped: kernel k: no reason was told");
}

fn fault(raw: MemoryExceptionFailure, error_type: u32) -> String {
    let fault = MemoryFault { gpu: GpuId(7), va: GpuVa(0x7f00_0000_3000), raw, error_type };
    Stop::MemoryFault { kernel: "k".to_owned(), fault, detail: None, notes: Vec::new() }.to_string()
}

#[test]
fn memory_faults() {
    let mut text = String::new();
    for (what, not_present, read_only, no_execute, imprecise, error_type) in [
        ("not present", 1, 0, 0, 0, uapi::MEM_ERR_NO_RAS),
        ("read-only", 0, 1, 0, 0, uapi::MEM_ERR_NO_RAS),
        ("no execute", 0, 0, 1, 0, uapi::MEM_ERR_NO_RAS),
        ("all of them, not exact", 1, 1, 1, 1, uapi::MEM_ERR_NO_RAS),
        ("no reason bits", 0, 0, 0, 0, uapi::MEM_ERR_NO_RAS),
        ("SRAM ECC", 0, 0, 0, 1, uapi::MEM_ERR_SRAM_ECC),
        ("poison, and not present", 1, 0, 0, 1, uapi::MEM_ERR_POISON_CONSUMED),
        ("hang", 0, 0, 0, 1, uapi::MEM_ERR_GPU_HANG),
        ("what nobody knows", 0, 0, 0, 0, 9),
    ] {
        let raw = MemoryExceptionFailure { not_present, read_only, no_execute, imprecise };
        text += &format!("== {what}\n{}\n", fault(raw, error_type));
    }
    insta::assert_snapshot!(text);
}

#[test]
fn hardware_exceptions() {
    let mut text = String::new();
    for (reset_type, reset_cause, memory_lost) in [
        (uapi::HW_EXCEPTION_WHOLE_GPU_RESET, uapi::HW_EXCEPTION_GPU_HANG, true),
        (uapi::HW_EXCEPTION_PER_ENGINE_RESET, uapi::HW_EXCEPTION_ECC, false),
        (9, 9, false),
    ] {
        let exception = HwException { gpu: GpuId(7), reset_type, reset_cause, memory_lost };
        text += &format!("{}\n", Stop::HwException { kernel: "k".to_owned(), exception, notes: Vec::new() });
    }
    insta::assert_snapshot!(text);
}

#[test]
fn lanes() {
    for (mask, text) in [
        (0, "lanes 0x0 (it concerns the wave, not a lane)"),
        (1, "lanes 0x1 (lane 0)"),
        (1 << 63, "lanes 0x8000000000000000 (lane 63)"),
        (u64::MAX, "lanes 0xffffffffffffffff (64 lanes: 0-63)"),
        (0x0f0f_0007, "lanes 0xf0f0007 (11 lanes: 0-2, 16-19, 24-27)"),
        (0x5555_5555, "lanes 0x55555555 (16 lanes: 0, 2, 4, 6, 8, 10, ...)"),
    ] {
        assert_eq!(lanes_text(mask), text);
    }
}

#[test]
fn a_pipe_that_is_not_read() {
    let text = |limit| Stop::Unread { limit }.to_string();
    let end = "the program ended, and a pipe that it wrote to was not read: the rest is lost";
    assert_eq!(text(Some(Duration::from_millis(1500))), format!("timeout: within the limit of 1.5 s {end}"));
    assert_eq!(text(None), format!("interrupted: {end}"));
}

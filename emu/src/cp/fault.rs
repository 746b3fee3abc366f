//! What is left to see when a queue stops.
//!
//! | cause | memory event | `queue_inactive_signal` | exception code after RUNTIME_ENABLE |
//! |---|---|---|---|
//! | page fault | set, all queues of the process on the GPU stop | | |
//! | aperture violation | | 0x20000000 | 6 |
//! | illegal instruction | | 0x40000000 | 4 |
//! | trap 2 (abort) | | 0x80000000 | 1 |
//! | other trap | | 0x80000000 | 2 |
//! | bad packet | | its bits | 16 to 23 |

use super::bus::{Bus, BusFault};
use super::processor::Queue;
use super::{Shared, signal};
use aql::queue::QUEUE_INACTIVE_SIGNAL;
use kfd::uapi::{ContextSaveAreaHeader, HsaHwExceptionData, HsaMemoryExceptionData, MemoryExceptionFailure};
use std::mem::offset_of;
use std::sync::atomic::Ordering;
use trace::{Event, Fault, FaultKind};

/// Bits of `queue_inactive_signal` for waves.
const APERTURE: u64 = 0x2000_0000;
const ILLEGAL_INSTRUCTION: u64 = 0x4000_0000;
const TRAP: u64 = 0x8000_0000;

/// `queue_inactive_signal` bits of a refused packet.
pub mod packet_bits {
    /// Dimensions.
    pub const DIMENSIONS: u64 = 0x2;
    /// The packet's type.
    pub const PACKET: u64 = 0x20;
    /// A vendor packet.
    pub const VENDOR: u64 = 0x100;
    /// Scratch for a wave64 or a wave32 dispatch: the host can help.
    pub const SCRATCH: u64 = 0x1 | 0x400;
    /// The dispatch that had its scratch to itself is done.
    pub const SCRATCH_ONCE: u64 = 0x200;
}

/// Exception codes of packet bits.
const PACKET_EXCEPTIONS: [(u64, u32); 8] =
    [(0x2, 16), (0x4, 17), (0x8, 18), (0x20, 20), (0x40, 21), (0x80, 22), (0x100, 23), (0x400_0000, 19)];

/// The trap that means abort (`llvm.trap`).
const TRAP_ABORT: u8 = 2;

/// A record of something the packet processor itself ran into.
pub fn record(shared: &Shared, kind: FaultKind, detail: String) -> Box<Fault> {
    Box::new(Fault {
        kind,
        gpu_id: shared.setup.device.gpu_id,
        queue_id: shared.setup.queue_id,
        va: None,
        access: None,
        pc: None,
        instruction: None,
        bytes: Vec::new(),
        kernel_object: None,
        workgroup: None,
        wave: None,
        lanes: None,
        detail,
    })
}

/// A record of a failed access of the packet processor.
pub fn of_bus(shared: &Shared, fault: BusFault) -> Box<Fault> {
    let detail = format!("the packet processor's {} of the {}", fault.access.name(), fault.what);
    Box::new(Fault { va: Some(fault.va), access: Some(fault.access), ..*record(shared, fault.kind(), detail) })
}

/// Stops the queue: tells the process whatever way the fault has, and writes it into the trace.
pub fn raise(shared: &Shared, bus: &Bus, queue: &Queue, fault: Box<Fault>) {
    let setup = &shared.setup;
    // Before the host can see it and end the run.
    setup.kernel.tracer.emit(|| Event::Fault(fault.clone()));
    let (bits, code) = match fault.kind {
        FaultKind::NotPresent | FaultKind::ReadOnly | FaultKind::NoExecute => {
            memory_fault(shared, &fault);
            return;
        }
        FaultKind::Aperture => (APERTURE, Some(6)),
        FaultKind::IllegalInstruction => (ILLEGAL_INSTRUCTION, Some(4)),
        FaultKind::Trap(TRAP_ABORT) => (TRAP, Some(1)),
        FaultKind::Trap(_) => (TRAP, Some(2)),
        FaultKind::Packet(bits) => {
            (bits, PACKET_EXCEPTIONS.iter().find(|(bit, _)| bits & bit != 0).map(|(_, code)| *code))
        }
    };
    // A queue whose structure or signal cannot be reached stops all the same.
    if let Ok(handle) = bus.load_u64(queue.va.wrapping_add(QUEUE_INACTIVE_SIGNAL as u64), "queue_inactive_signal")
        && handle != 0
    {
        let _ = signal::set_bits(shared, bus, handle, bits);
    }
    // Last, so that whoever its event wakes finds the bits as well.
    if let Some(code) = code.filter(|_| setup.runtime.load(Ordering::Acquire)) {
        exception(shared, code);
    }
}

/// A page fault: the process' queues on this GPU are evicted and its memory events set.
fn memory_fault(shared: &Shared, fault: &Fault) {
    let setup = &shared.setup;
    setup.evicted.store(true, Ordering::Release);
    let va = fault.va.unwrap_or_default() & !0xfff;
    let failure = MemoryExceptionFailure {
        not_present: u32::from(fault.kind == FaultKind::NotPresent),
        read_only: u32::from(fault.kind == FaultKind::ReadOnly),
        // GFX9 to GFX12 do not tell.
        no_execute: 0,
        imprecise: 0,
    };
    let gpu_id = setup.device.gpu_id;
    setup.events.memory_fault(HsaMemoryExceptionData { failure, va, gpu_id, error_type: 0 });
    setup.kernel.smi_vm_fault(gpu_id);
    setup.bell.ring();
}

/// The GPU hangs and is reset, or is gone: the process' queues on it never run again, and its HW_EXCEPTION events are set.
pub fn reset(shared: &Shared, removal: bool) {
    let setup = &shared.setup;
    let what = if removal { "removed" } else { "reset" };
    setup.kernel.note(|| format!("queue {}: the GPU is {what}, as injected", setup.queue_id));
    setup.evicted.store(true, Ordering::Release);
    setup.reset.store(true, Ordering::Release);
    if removal {
        setup.device.removed.store(true, Ordering::Release);
    }
    setup.kernel.smi_reset(&setup.device, removal);
    // The kernel takes the memory for lost with every reset.
    let (gpu_id, memory_lost) = (setup.device.gpu_id, 1);
    setup.events.hardware_exception(HsaHwExceptionData { reset_type: 0, reset_cause: 0, memory_lost, gpu_id });
    setup.bell.ring();
}

/// `kfd_send_exception_to_runtime`: the kernel itself ORs the code into the place that the save area's header names,
/// and sets the event named there.
fn exception(shared: &Shared, code: u32) {
    let user = &shared.setup.kernel.user;
    let header = shared.setup.save_area;
    let deliver = || {
        let at = user.get::<u64>(header.wrapping_add(offset_of!(ContextSaveAreaHeader, err_payload_addr) as u64))?;
        let event = user.get::<u32>(header.wrapping_add(offset_of!(ContextSaveAreaHeader, err_event_id) as u64))?;
        let payload = user.get::<u64>(at)?;
        user.put(at, &(payload | 1 << (code - 1)))?;
        shared.setup.events.set(event)
    };
    if let Err(errno) = deliver() {
        shared.setup.kernel.note(|| {
            format!(
                "queue {}: exception code {code} is lost ({errno:?}): the header of the save area at {header:#x} names \
                 no payload or no event that can be reached",
                shared.setup.queue_id
            )
        });
    }
}

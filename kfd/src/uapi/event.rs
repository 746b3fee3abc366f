//! Events.

use super::abi::{Pod, constants, structs};

constants! {
    "KFD_IOC_" u32 since 1 {
        /// Set by the GPU through the event page, or by SET_EVENT.
        EVENT_SIGNAL = 0;
        /// Not produced by any kernel.
        EVENT_NODECHANGE = 1;
        /// Not produced by any kernel.
        EVENT_DEVICESTATECHANGE = 2;
        /// GPU reset or uncorrectable error.
        EVENT_HW_EXCEPTION = 3;
        /// Not produced by any kernel.
        EVENT_SYSTEM_EVENT = 4;
        /// As [`EVENT_SIGNAL`], for a debugger.
        EVENT_DEBUG_EVENT = 5;
        /// Not produced by any kernel.
        EVENT_PROFILE_EVENT = 6;
        /// Not produced by any kernel.
        EVENT_QUEUE_EVENT = 7;
        /// GPU page fault or poisoned memory.
        EVENT_MEMORY = 8;
        /// What was waited for has happened.
        WAIT_RESULT_COMPLETE = 0;
        /// The time ran out; the ioctl itself returns 0.
        WAIT_RESULT_TIMEOUT = 1;
        /// An event was destroyed meanwhile; the ioctl returns EIO.
        WAIT_RESULT_FAIL = 2;
    }
    "KFD_" u32 since 1 {
        /// Slots of the event page.
        SIGNAL_EVENT_LIMIT = 4096;
        /// [`HsaHwExceptionData::reset_type`]: the whole GPU was reset.
        HW_EXCEPTION_WHOLE_GPU_RESET = 0;
        /// [`HsaHwExceptionData::reset_type`]: one engine was reset.
        HW_EXCEPTION_PER_ENGINE_RESET = 1;
        /// [`HsaHwExceptionData::reset_cause`]: the GPU hung.
        HW_EXCEPTION_GPU_HANG = 0;
        /// [`HsaHwExceptionData::reset_cause`]: uncorrectable memory error.
        HW_EXCEPTION_ECC = 1;
        /// [`HsaMemoryExceptionData::error_type`]: none of the below, an ordinary page fault.
        MEM_ERR_NO_RAS = 0;
        /// [`HsaMemoryExceptionData::error_type`]: uncorrectable SRAM error.
        MEM_ERR_SRAM_ECC = 1;
        /// [`HsaMemoryExceptionData::error_type`]: poisoned data was consumed.
        MEM_ERR_POISON_CONSUMED = 2;
        /// [`HsaMemoryExceptionData::error_type`]: the GPU hung for a reason not known.
        MEM_ERR_GPU_HANG = 3;
    }
}

structs! {
    /// Argument of CREATE_EVENT.
    CreateEventArgs = "kfd_ioctl_create_event_args" since 1 {
        /// In: handle of the buffer that becomes the event page, in the first call only, else 0. Out: mmap offset.
        event_page_offset: u64, hex;
        /// Out: what the GPU sends with its interrupt, equal to the event id.
        event_trigger_data: u32, dec;
        /// In: `EVENT_*`.
        event_type: u32, dec;
        /// In: 1 to reset the event when it wakes a waiter.
        auto_reset: u32, dec;
        /// In: ignored by the kernel.
        node_id: u32, dec;
        /// Out: id.
        event_id: u32, dec;
        /// Out: slot in the event page; signal and debug events only.
        event_slot_index: u32, dec;
    }

    /// Argument of DESTROY_EVENT.
    DestroyEventArgs = "kfd_ioctl_destroy_event_args" since 1 {
        /// In: event.
        event_id: u32, dec;
        /// Zero.
        pad: u32, none;
    }

    /// Argument of SET_EVENT.
    SetEventArgs = "kfd_ioctl_set_event_args" since 1 {
        /// In: event, of type [`EVENT_SIGNAL`].
        event_id: u32, dec;
        /// Zero.
        pad: u32, none;
    }

    /// Argument of RESET_EVENT.
    ResetEventArgs = "kfd_ioctl_reset_event_args" since 1 {
        /// In: event, of type [`EVENT_SIGNAL`].
        event_id: u32, dec;
        /// Zero.
        pad: u32, none;
    }

    /// Why a GPU access failed, each member 0 or 1.
    MemoryExceptionFailure = "kfd_memory_exception_failure" since 1 {
        /// No page is mapped at the address.
        not_present: u32, dec "NotPresent";
        /// Store to a page without write right.
        read_only: u32, dec "ReadOnly";
        /// Instruction fetch from a page without execute right; gfx9 to gfx12 never report it.
        no_execute: u32, dec "NoExecute";
        /// The address is not exact.
        imprecise: u32, dec;
    }

    /// Payload of [`EVENT_MEMORY`].
    HsaMemoryExceptionData = "kfd_hsa_memory_exception_data" since 1 {
        /// Reasons.
        failure: MemoryExceptionFailure, none;
        /// Faulting address, rounded down to a page.
        va: u64, hex;
        /// GPU; 0 when the event has not fired.
        gpu_id: u32, dec;
        /// `MEM_ERR_*`.
        error_type: u32, dec "ErrorType";
    }

    /// Payload of [`EVENT_HW_EXCEPTION`].
    HsaHwExceptionData = "kfd_hsa_hw_exception_data" since 1 {
        /// `HW_EXCEPTION_*_RESET`.
        reset_type: u32, dec;
        /// [`HW_EXCEPTION_GPU_HANG`] or [`HW_EXCEPTION_ECC`].
        reset_cause: u32, dec;
        /// 1 when VRAM contents are gone.
        memory_lost: u32, dec;
        /// GPU; 0 when the event has not fired.
        gpu_id: u32, dec;
    }

    /// Payload of [`EVENT_SIGNAL`], since 1.14.
    HsaSignalEventData = "kfd_hsa_signal_event_data" since 14 {
        /// In: age the caller last saw, 0 not to take part. Out: age now. A wait ends at once when they differ.
        last_event_age: u64, dec;
    }

    /// One event to wait for, with its payload; the kernel writes the payload of events that fired only.
    EventData = "kfd_event_data" since 1 {
        /// One of [`HsaMemoryExceptionData`], [`HsaHwExceptionData`], [`HsaSignalEventData`].
        payload: [u64; 4], none "memory_exception_data";
        /// Unused.
        kfd_event_data_ext: u64, hex;
        /// In: event.
        event_id: u32, dec;
        /// Zero.
        pad: u32, none;
    }

    /// Argument of WAIT_EVENTS.
    WaitEventsArgs = "kfd_ioctl_wait_events_args" since 1 {
        /// In: address of an array of [`EventData`].
        events_ptr: u64, hex;
        /// In: its length.
        num_events: u32, dec;
        /// In: 1 to wait for all of them, 0 for any.
        wait_for_all: u32, dec;
        /// In: milliseconds; 0 polls, `0xffff_ffff` waits for ever. Out: what is left when a signal interrupted.
        timeout: u32, dec;
        /// Out: `WAIT_RESULT_*`.
        wait_result: u32, dec;
    }
}

impl EventData {
    /// An event to wait for, its payload zero.
    pub fn new(event_id: u32) -> EventData {
        EventData { event_id, ..Default::default() }
    }

    /// The payload read as that of [`EVENT_MEMORY`].
    pub fn memory_exception(&self) -> HsaMemoryExceptionData {
        HsaMemoryExceptionData::from_prefix_or_zero(self.payload.as_bytes())
    }

    /// The payload read as that of [`EVENT_HW_EXCEPTION`].
    pub fn hw_exception(&self) -> HsaHwExceptionData {
        HsaHwExceptionData::from_prefix_or_zero(self.payload.as_bytes())
    }

    /// The payload read as that of [`EVENT_SIGNAL`].
    pub fn signal_event(&self) -> HsaSignalEventData {
        HsaSignalEventData::from_prefix_or_zero(self.payload.as_bytes())
    }

    /// Puts a payload in place, the rest of it zero.
    pub fn set_payload(&mut self, payload: &impl Payload) {
        self.payload = Pod::from_prefix_or_zero(payload.as_bytes());
    }
}

/// What an [`EventData`] can carry.
pub trait Payload: Pod {}
impl Payload for HsaMemoryExceptionData {}
impl Payload for HsaHwExceptionData {}
impl Payload for HsaSignalEventData {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads() {
        let mut data = EventData::new(9);
        data.set_payload(&HsaHwExceptionData { gpu_id: 3, ..Default::default() });
        assert_eq!(data.payload, [0, 3 << 32, 0, 0]);
        let memory =
            HsaMemoryExceptionData { va: 0x1000, gpu_id: 5, error_type: 2, failure: MemoryExceptionFailure::default() };
        data.set_payload(&memory);
        assert_eq!(data.memory_exception(), memory);
        data.set_payload(&HsaSignalEventData { last_event_age: 1 });
        assert_eq!(data.payload, [1, 0, 0, 0]);
        assert_eq!(data.signal_event().last_event_age, 1);
    }
}

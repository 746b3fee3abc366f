//! The handlers of the event ioctls.

use super::{Events, PAGE_OFFSET, Wait};
use crate::kernel::call::Call;
use crate::kernel::memory::{Handle, Kind};
use crate::kernel::rule::{RuleText, check, rules, texts};
use kfd::Errno;
use kfd::uapi::{self, EVENT_SIGNAL, SIGNAL_EVENT_LIMIT};

/// Bytes of the signal page.
const PAGE_BYTES: u64 = SIGNAL_EVENT_LIMIT as u64 * 8;

/// What CREATE_EVENT looks at when it names a buffer as signal page.
pub struct PageFacts {
    handle: u64,
    page: bool,
    known_gpu: bool,
    acquired: bool,
    /// Kind and bytes of the buffer.
    buffer: Option<(Kind, u64)>,
}

/// What WAIT_EVENTS looks at of an entry.
pub struct EntryFacts {
    /// Position.
    pub index: usize,
    /// Its event; none when it cannot be read.
    pub id: Option<u32>,
    /// There is such an event.
    pub known: bool,
}

/// What ended a wait.
pub struct DoneFacts {
    interrupted: bool,
    destroyed: bool,
}

/// What SET_EVENT, RESET_EVENT and DESTROY_EVENT look at.
pub struct EventFacts {
    id: u32,
    /// Type of the event.
    kind: Option<u32>,
}

rules! {
    /// CREATE_EVENT with `event_page_offset` not 0.
    PAGE for f: PageFacts {
        EINVAL "the process has no signal page yet": f.handle => !f.page;
        EINVAL "event_page_offset, a buffer's handle, names a GPU of the process": f.handle >> 32 => f.known_gpu;
        ENODEV "ACQUIRE_VM was called for that GPU": f.handle >> 32 => f.acquired;
        EINVAL "event_page_offset names a buffer": f.handle => f.buffer.is_some();
        EINVAL "the buffer is not USERPTR": f.handle => f.buffer.is_some_and(|(kind, _)| kind != Kind::Userptr);
        EINVAL "the buffer has at least 32768 bytes": f.buffer.map_or(0, |(_, bytes)| bytes) =>
            f.buffer.is_some_and(|(_, bytes)| bytes >= PAGE_BYTES);
    }

    /// CREATE_EVENT.
    ROOM for kind: (u32, bool) {
        ENOSPC "a slot of the signal page is free (those that are mapped; 255 before), with types 0 and 5": kind.0 => kind.1;
    }

    /// WAIT_EVENTS.
    WAIT for count: u32 {
        ENOMEM "num_events waiters of 56 bytes fit one allocation of 4 MiB": *count => *count <= (4 << 20) / 56;
    }

    /// WAIT_EVENTS: each entry. Those in front of a bad one have consumed their events.
    ENTRY for f: EntryFacts {
        EFAULT "the entry can be read": f.index => f.id.is_some();
        EINVAL "event_id is an event of the process": f.id.unwrap_or_default() => f.known;
    }

    /// WAIT_EVENTS, at its end. Running out of time is no error.
    DONE for f: DoneFacts {
        EINTR "no signal is handled meanwhile, but by a handler with SA_RESTART; timeout is what is left": f.interrupted =>
            !f.interrupted;
        EIO "no event of the wait is destroyed meanwhile": f.destroyed => !f.destroyed;
    }

    /// DESTROY_EVENT.
    KNOWN for f: EventFacts {
        EINVAL "event_id is an event of the process": f.id => f.kind.is_some();
    }

    /// SET_EVENT and RESET_EVENT.
    SIGNAL for f: EventFacts {
        EINVAL "event_id is an event of the process": f.id => f.kind.is_some();
        EINVAL "the event is of type 0 (SIGNAL)": f.kind.unwrap_or_default() => f.kind == Some(EVENT_SIGNAL);
    }
}

/// The tables of this module.
pub fn rule_texts() -> Vec<(&'static str, Vec<RuleText>)> {
    vec![
        ("CREATE_EVENT", [texts(PAGE), texts(ROOM)].concat()),
        ("WAIT_EVENTS", [texts(WAIT), texts(ENTRY), texts(DONE)].concat()),
        ("DESTROY_EVENT", texts(KNOWN)),
        ("SET_EVENT", texts(SIGNAL)),
        ("RESET_EVENT", texts(SIGNAL)),
    ]
}

/// CREATE_EVENT.
pub fn create(call: &Call<'_>, args: &mut uapi::CreateEventArgs) -> Result<(), Errno> {
    let events = &call.process.events;
    if args.event_page_offset != 0 {
        let inner = call.process.lock();
        let handle = Handle(args.event_page_offset);
        let index = inner.index(handle.gpu_id()).ok();
        let bo = inner.bo(handle);
        let facts = PageFacts {
            handle: handle.0,
            page: events.has_page(),
            known_gpu: index.is_some(),
            acquired: index.is_some_and(|index| inner.devices[index].vm.is_some()),
            buffer: bo.map(|bo| (bo.kind, bo.size)),
        };
        check(call.kernel, "CREATE_EVENT", PAGE, &facts)?;
        events.set_page(bo.ok_or(Errno::EINVAL)?.pages.clone(), handle.0)?;
    }
    args.event_page_offset = 0;
    let own_page = || call.process.memory.allocate(PAGE_BYTES);
    let created = events.create(args.event_type, args.auto_reset != 0, own_page)?;
    check(call.kernel, "CREATE_EVENT", ROOM, &(args.event_type, created.is_some()))?;
    let created = created.ok_or(Errno::ENOSPC)?;
    if let Some(slot) = created.slot {
        args.event_page_offset = PAGE_OFFSET;
        args.event_slot_index = slot;
    }
    args.event_id = created.id;
    args.event_trigger_data = created.id;
    Ok(())
}

fn known(call: &Call<'_>, name: &str, rules: &[crate::kernel::rule::Rule<EventFacts>], id: u32) -> Result<(), Errno> {
    check(call.kernel, name, rules, &EventFacts { id, kind: call.process.events.kind(id) })
}

/// DESTROY_EVENT.
pub fn destroy(call: &Call<'_>, args: &mut uapi::DestroyEventArgs) -> Result<(), Errno> {
    known(call, "DESTROY_EVENT", KNOWN, args.event_id)?;
    call.process.events.destroy(args.event_id)
}

/// SET_EVENT.
pub fn set(call: &Call<'_>, args: &mut uapi::SetEventArgs) -> Result<(), Errno> {
    known(call, "SET_EVENT", SIGNAL, args.event_id)?;
    call.process.events.set(args.event_id)
}

/// RESET_EVENT.
pub fn reset(call: &Call<'_>, args: &mut uapi::ResetEventArgs) -> Result<(), Errno> {
    known(call, "RESET_EVENT", SIGNAL, args.event_id)?;
    call.process.events.reset(args.event_id)
}

/// WAIT_EVENTS. Running out of time is a result, not an error.
pub fn wait(call: &Call<'_>, args: &mut uapi::WaitEventsArgs) -> Result<(), Errno> {
    const NAME: &str = "WAIT_EVENTS";
    args.wait_result = uapi::WAIT_RESULT_FAIL;
    check(call.kernel, NAME, WAIT, &args.num_events)?;
    let mut wait = Wait {
        user: &call.kernel.user,
        array: args.events_ptr,
        count: args.num_events,
        all: args.wait_for_all != 0,
        ages: call.kernel.options.rules.event_ages(),
        timeout_ms: args.timeout,
        entry: &|facts| check(call.kernel, NAME, ENTRY, facts),
    };
    let outcome = call.process.events.wait(&mut wait);
    let interrupted = outcome == Err(Errno::EINTR);
    args.timeout = wait.timeout_ms;
    if !interrupted {
        args.wait_result = outcome?;
    }
    let destroyed = args.wait_result == uapi::WAIT_RESULT_FAIL;
    check(call.kernel, NAME, DONE, &DoneFacts { interrupted, destroyed })
}

impl Events {
    /// Type of an event.
    fn kind(&self, id: u32) -> Option<u32> {
        self.state().events.get(&id).map(|event| event.kind)
    }
}

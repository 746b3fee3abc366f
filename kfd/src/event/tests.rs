use super::*;
use crate::errno::Errno;
use crate::testing::{Script, edit, edit_array, steps};

/// Answers WAIT_EVENTS: what to write into each event, and the result.
fn waiting(result: u32, answer: impl Fn(usize, &mut uapi::EventData) + Send + Sync + 'static) -> Script {
    Script::machine().on_ioctl(move |name, arg| {
        (name == "WAIT_EVENTS").then(|| {
            edit(arg, |args: &mut uapi::WaitEventsArgs| {
                edit_array(args.events_ptr, args.num_events, |data: &mut [uapi::EventData]| {
                    data.iter_mut().enumerate().for_each(|(i, data)| answer(i, data));
                });
                args.wait_result = result;
            });
            Ok(0)
        })
    })
}

fn three(events: &Events) -> [Event; 3] {
    [EventKind::Signal, EventKind::Memory, EventKind::HwException].map(|kind| events.create(kind).unwrap())
}

#[test]
fn the_first_signal_event_comes_with_the_page() {
    let (device, collector) = Script::machine().device();
    let events = Events::new(&device).unwrap();
    let [signal, memory, _hw] = three(&events);
    assert_eq!((signal.id(), signal.mailbox()), (EventId(1), events.page().offset(8)));
    assert_eq!((memory.id(), memory.mailbox()), (EventId(2), None));
    let ioctls = ["ALLOC_MEMORY_OF_GPU", "MAP_MEMORY_TO_GPU", "CREATE_EVENT", "CREATE_EVENT", "CREATE_EVENT"];
    assert_eq!(steps(&collector, &["ALLOC", "MAP", "CREATE"]), ioctls);
    // The page is set once in the life of a process: other owners share it, and nobody frees it.
    let second = Events::new(&device).unwrap();
    assert_eq!(second.page(), events.page());
    drop((signal, memory, _hw, events, second, device));
    let end = steps(&collector, &["DESTROY", "FREE", "UNMAP", "munmap"]);
    assert_eq!(end, ["DESTROY_EVENT", "DESTROY_EVENT", "DESTROY_EVENT", "munmap 1073700864"]);
}

#[test]
fn a_signal() {
    let (device, _) = waiting(0, |i, data| {
        if i == 0 {
            assert_eq!(data.signal_event().last_event_age, 1);
            data.set_payload(&uapi::HsaSignalEventData { last_event_age: 2 });
        }
    })
    .device();
    let events = Events::new(&device).unwrap();
    let [signal, memory, hw] = three(&events);
    let wait = events.wait(&[&signal, &memory, &hw], Some(Duration::from_millis(5))).unwrap();
    assert_eq!(wait, Wait::Fired(vec![Fired::Signal { event: signal.id(), age: 2 }]));
    assert_eq!(signal.age(), 2);
}

#[test]
fn nothing() {
    let (device, _) = waiting(1, |_, _| {}).device();
    let events = Events::new(&device).unwrap();
    let signal = events.create(EventKind::Signal).unwrap();
    assert_eq!(events.wait(&[&signal], Some(Duration::ZERO)).unwrap(), Wait::Timeout);
    assert_eq!(signal.age(), 1);
}

#[test]
fn a_memory_fault() {
    let (device, _) = waiting(0, |i, data| {
        if i == 1 {
            data.set_payload(&uapi::HsaMemoryExceptionData {
                failure: uapi::MemoryExceptionFailure { not_present: 1, read_only: 1, ..Default::default() },
                va: 0x7f00_0000_3000,
                gpu_id: 56387,
                error_type: 0,
            });
        }
    })
    .device();
    let events = Events::new(&device).unwrap();
    let [signal, memory, hw] = three(&events);
    let Wait::Fired(fired) = events.wait(&[&signal, &memory, &hw], None).unwrap() else { panic!() };
    let [Fired::Memory(fault)] = fired[..] else { panic!("{fired:?}") };
    assert_eq!((fault.gpu, fault.va), (GpuId(56387), GpuVa(0x7f00_0000_3000)));
    insta::assert_snapshot!(fault, @"memory fault on gpu_id 56387 at 0x7f0000003000: NotPresent=1 ReadOnly=1 NoExecute=0 imprecise=0 ErrorType=0: no page is mapped there, store to a page that may only be read");
    let silent = MemoryFault { raw: uapi::MemoryExceptionFailure { imprecise: 1, ..Default::default() }, ..fault };
    insta::assert_snapshot!(silent, @"memory fault on gpu_id 56387 at 0x7f0000003000: NotPresent=0 ReadOnly=0 NoExecute=0 imprecise=1 ErrorType=0: the driver gave no reason bits (imprecise: the access was elsewhere or earlier, the address is not exact)");
    assert_eq!(
        MemoryFault { raw: Default::default(), error_type: 2, ..fault }.reasons(),
        ["damaged (poisoned) data was read"]
    );
}

#[test]
fn a_reset() {
    let (device, _) = waiting(0, |i, data| {
        if i == 2 {
            data.set_payload(&uapi::HsaHwExceptionData { memory_lost: 1, gpu_id: 56387, ..Default::default() });
        }
    })
    .device();
    let events = Events::new(&device).unwrap();
    let [signal, memory, hw] = three(&events);
    let Wait::Fired(fired) = events.wait(&[&signal, &memory, &hw], None).unwrap() else { panic!() };
    let [Fired::HwException(exception)] = fired[..] else { panic!("{fired:?}") };
    insta::assert_snapshot!(exception, @"hardware exception on gpu_id 56387: reset_type=0 reset_cause=0 memory_lost=1: the whole GPU was reset (it hung), device memory is lost");
}

#[test]
fn before_1_14_any_signal_may_be_the_one() {
    let script = Script::machine().on_ioctl(|name, arg| match name {
        "GET_VERSION" => {
            edit(arg, |args: &mut uapi::GetVersionArgs| (args.major_version, args.minor_version) = (1, 11));
            Some(Ok(0))
        }
        "WAIT_EVENTS" => {
            let args: uapi::WaitEventsArgs = uapi::Pod::from_prefix(arg).unwrap();
            edit_array(args.events_ptr, args.num_events, |data: &mut [uapi::EventData]| {
                assert!(data.iter().all(|data| data.payload == [0; 4]));
            });
            Some(Ok(0))
        }
        _ => None,
    });
    let (device, _) = script.device();
    let events = Events::new(&device).unwrap();
    let signal = events.create(EventKind::Signal).unwrap();
    let wait = events.wait(&[&signal], None).unwrap();
    assert_eq!(wait, Wait::Fired(vec![Fired::Signal { event: signal.id(), age: 0 }]));
}

#[test]
fn an_interrupted_wait_goes_on() {
    let tries = AtomicU64::new(0);
    let script = Script::machine().on_ioctl(move |name, _| {
        (name == "WAIT_EVENTS").then(|| match tries.fetch_add(1, Ordering::Relaxed) {
            0 => Err(Errno::EINTR),
            1 => Err(Errno::EAGAIN),
            _ => Err(Errno::EIO),
        })
    });
    let (device, collector) = script.device();
    let events = Events::new(&device).unwrap();
    insta::assert_snapshot!(events.wait(&[], None).unwrap_err().report(), @r"
    WAIT_EVENTS: EIO (5)
      rule: an event was destroyed while it was waited for
      do: this is a defect of the program that called, and not of the machine
    ");
    let tries = ["WAIT_EVENTS EINTR (4)", "WAIT_EVENTS EAGAIN (11)", "WAIT_EVENTS EIO (5)"];
    assert_eq!(steps(&collector, &["WAIT"]), tries);
}

#[test]
fn timeouts() {
    assert_eq!(milliseconds(None), u32::MAX);
    assert_eq!(milliseconds(Some(Duration::ZERO)), 0);
    assert_eq!(milliseconds(Some(Duration::from_nanos(1))), 1);
    assert_eq!(milliseconds(Some(Duration::MAX)), u32::MAX - 1);
}

use super::*;
use crate::kernel::backing::NodeMemory;
use crate::kernel::user::UserMemory;
use kfd::uapi::{EventData, HsaSignalEventData, WAIT_RESULT_COMPLETE, WAIT_RESULT_FAIL, WAIT_RESULT_TIMEOUT};
use std::time::{Duration, Instant};

fn page(bytes: u64) -> Arc<Pages> {
    Arc::new(NodeMemory::new(c"test", 0).unwrap()).allocate(bytes).unwrap()
}

fn events() -> Events {
    let events = Events::default();
    events.set_page(page(32768), 5 << 32).unwrap();
    events
}

fn create(events: &Events, kind: u32, auto_reset: bool) -> u32 {
    events.create(kind, auto_reset, || panic!("there is a page")).unwrap().unwrap().id
}

/// The table's answer, without a kernel to note it.
fn entry(facts: &ioctl::EntryFacts) -> Result<(), Errno> {
    ioctl::ENTRY.iter().find(|rule| !(rule.holds)(facts)).map_or(Ok(()), |rule| Err(rule.errno))
}

fn wait(events: &Events, data: &mut [EventData], all: bool, timeout_ms: u32) -> Result<u32, Errno> {
    let user = UserMemory::new().unwrap();
    let array = data.as_mut_ptr() as u64;
    events.wait(&mut Wait { user: &user, array, count: data.len() as u32, all, ages: true, timeout_ms, entry: &entry })
}

#[test]
fn ids_and_slots() {
    let events = events();
    let first = events.create(EVENT_SIGNAL, true, || panic!()).unwrap();
    assert_eq!(first, Some(Created { id: 1, slot: Some(1) }));
    assert_eq!(create(&events, EVENT_MEMORY, false), 0x4000_0000);
    assert_eq!(create(&events, EVENT_DEBUG_EVENT, false), 2);
    assert_eq!(create(&events, 77, false), 0x4000_0001);
    events.destroy(1).unwrap();
    assert_eq!(create(&events, EVENT_SIGNAL, false), 1);
    assert_eq!(events.destroy(9), Err(Errno::EINVAL));
}

#[test]
fn slots_run_out() {
    let all = events();
    for id in 1..4096 {
        assert_eq!(create(&all, EVENT_SIGNAL, true), id);
    }
    assert_eq!(all.create(EVENT_SIGNAL, true, || panic!()), Ok(None));
    assert_eq!(create(&all, EVENT_MEMORY, true), 0x4000_0000);

    // A page of the kernel's own has 256 slots until it is mapped.
    let own = Events::default();
    for id in 1..256 {
        assert_eq!(own.create(EVENT_SIGNAL, true, || Ok(page(32768))).unwrap().unwrap().id, id);
    }
    assert_eq!(own.create(EVENT_SIGNAL, true, || panic!()), Ok(None));
    assert_eq!(own.map_page(65536).err(), Some(Errno::EINVAL));
    own.map_page(32768).unwrap();
    assert_eq!(create(&own, EVENT_SIGNAL, true), 256);
}

#[test]
fn page_rules() {
    let events = Events::default();
    assert_eq!(events.map_page(4096).err(), Some(Errno::EINVAL));
    assert_eq!(events.set_page(page(28672), 1), Err(Errno::EINVAL));
    let pages = page(32768);
    events.set_page(pages.clone(), 1).unwrap();
    // SAFETY: the page has 32768 bytes.
    let bytes = unsafe { std::slice::from_raw_parts(pages.host(), 32768) };
    assert!(bytes.iter().all(|byte| *byte == 0xff));
    assert_eq!(events.set_page(page(32768), 2), Err(Errno::EINVAL));
    assert_eq!(events.page_handle(), Some(1));
}

#[test]
fn auto_reset_events_are_consumed_and_manual_ones_stay() {
    let events = events();
    let (auto, manual) = (create(&events, EVENT_SIGNAL, true), create(&events, EVENT_SIGNAL, false));
    for id in [auto, manual] {
        assert_eq!(wait(&events, &mut [EventData::new(id)], false, 0), Ok(WAIT_RESULT_TIMEOUT));
        events.set(id).unwrap();
        assert_eq!(wait(&events, &mut [EventData::new(id)], false, 0), Ok(WAIT_RESULT_COMPLETE));
    }
    assert_eq!(wait(&events, &mut [EventData::new(auto)], false, 0), Ok(WAIT_RESULT_TIMEOUT));
    assert_eq!(wait(&events, &mut [EventData::new(manual)], false, 0), Ok(WAIT_RESULT_COMPLETE));
    events.reset(manual).unwrap();
    assert_eq!(wait(&events, &mut [EventData::new(manual)], false, 0), Ok(WAIT_RESULT_TIMEOUT));
}

#[test]
fn only_signal_events_take_set_and_reset() {
    let events = events();
    for kind in [EVENT_DEBUG_EVENT, EVENT_MEMORY, EVENT_HW_EXCEPTION, 42] {
        let id = create(&events, kind, false);
        assert_eq!((events.set(id), events.reset(id)), (Err(Errno::EINVAL), Err(Errno::EINVAL)), "{kind}");
    }
}

#[test]
fn any_and_all() {
    let events = events();
    let ids = [create(&events, EVENT_SIGNAL, false), create(&events, EVENT_SIGNAL, false)];
    events.set(ids[1]).unwrap();
    let mut data = ids.map(EventData::new);
    assert_eq!(wait(&events, &mut data, false, 0), Ok(WAIT_RESULT_COMPLETE));
    assert_eq!(wait(&events, &mut data, true, 5), Ok(WAIT_RESULT_TIMEOUT));
    events.set(ids[0]).unwrap();
    assert_eq!(wait(&events, &mut data, true, 10_000), Ok(WAIT_RESULT_COMPLETE));
    assert_eq!(wait(&events, &mut [], true, 10_000), Ok(WAIT_RESULT_COMPLETE));
}

#[test]
fn bad_arguments() {
    let events = events();
    assert_eq!(wait(&events, &mut [EventData::new(3)], false, 0), Err(Errno::EINVAL));
    let user = UserMemory::new().unwrap();
    let bad = |array, count| {
        events.wait(&mut Wait { user: &user, array, count, all: false, ages: true, timeout_ms: 0, entry: &entry })
    };
    assert_eq!(bad(16, 1), Err(Errno::EFAULT));
    assert_eq!(bad(u64::MAX - 8, 1), Err(Errno::EFAULT));
}

#[test]
fn age_tells_a_missed_set() {
    let events = events();
    let id = create(&events, EVENT_SIGNAL, true);
    let mut data = [EventData::new(id)];
    data[0].set_payload(&HsaSignalEventData { last_event_age: 1 });
    assert_eq!(wait(&events, &mut data, false, 0), Ok(WAIT_RESULT_TIMEOUT));
    events.set(id).unwrap();
    assert_eq!(wait(&events, &mut data, false, 0), Ok(WAIT_RESULT_COMPLETE));
    assert_eq!(data[0].signal_event().last_event_age, 2);
    // Another thread consumed the event: the old age still completes.
    data[0].set_payload(&HsaSignalEventData { last_event_age: 1 });
    assert_eq!(wait(&events, &mut data, false, 0), Ok(WAIT_RESULT_COMPLETE));
}

#[test]
fn memory_faults_fill_in_their_data() {
    let events = events();
    let (memory, signal) = (create(&events, EVENT_MEMORY, true), create(&events, EVENT_SIGNAL, true));
    let fault = HsaMemoryExceptionData { va: 0x7f00_0000_1000, gpu_id: 9, ..Default::default() };
    events.memory_fault(fault);
    let mut data = [EventData::new(signal), EventData::new(memory)];
    assert_eq!(wait(&events, &mut data, false, 0), Ok(WAIT_RESULT_COMPLETE));
    assert_eq!(data[1].memory_exception(), fault);
    assert_eq!(data[0].payload, [0; 4]);
}

fn gpu_writes(events: &Events, slot: u32, value: u64) {
    events.state().page.as_ref().unwrap().slot(slot).store(value, Ordering::SeqCst);
}

fn slot(events: &Events, slot: u32) -> u64 {
    events.state().page.as_ref().unwrap().slot(slot).load(Ordering::SeqCst)
}

#[test]
fn interrupts_need_a_written_slot() {
    let events = events();
    let id = create(&events, EVENT_SIGNAL, true);
    events.interrupt(id, 32);
    assert_eq!(wait(&events, &mut [EventData::new(id)], false, 0), Ok(WAIT_RESULT_TIMEOUT));
    gpu_writes(&events, id, u64::from(id));
    events.interrupt(id, 32);
    assert_eq!(slot(&events, id), u64::MAX);
    assert_eq!(wait(&events, &mut [EventData::new(id)], false, 0), Ok(WAIT_RESULT_COMPLETE));
}

#[test]
fn partial_ids() {
    let events = events();
    for id in 1..=0x105 {
        assert_eq!(create(&events, EVENT_SIGNAL, true), id);
    }
    // s_sendmsg carries the low 8 bits of 0x105.
    gpu_writes(&events, 0x105, 0x105);
    events.interrupt(5, 24);
    assert_eq!(wait(&events, &mut [EventData::new(5)], false, 0), Ok(WAIT_RESULT_TIMEOUT));
    assert_eq!(wait(&events, &mut [EventData::new(0x105)], false, 0), Ok(WAIT_RESULT_COMPLETE));
    gpu_writes(&events, 0x105, 0x105);
    events.interrupt(5, 8);
    assert_eq!(wait(&events, &mut [EventData::new(0x105)], false, 0), Ok(WAIT_RESULT_COMPLETE));
}

#[test]
fn sleepers_wake() {
    let events = events();
    let (id, doomed) = (create(&events, EVENT_SIGNAL, true), create(&events, EVENT_SIGNAL, true));
    std::thread::scope(|scope| {
        let sleepers: Vec<_> =
            (0..3).map(|_| scope.spawn(|| wait(&events, &mut [EventData::new(id)], false, 10_000))).collect();
        let failing = scope.spawn(|| wait(&events, &mut [EventData::new(doomed)], false, 10_000));
        while events.state().events[&id].waiters.len() < 3 || events.state().events[&doomed].waiters.is_empty() {
            std::thread::yield_now();
        }
        // All current waiters are activated, an auto-reset event's too.
        events.set(id).unwrap();
        events.destroy(doomed).unwrap();
        for sleeper in sleepers {
            assert_eq!(sleeper.join().unwrap(), Ok(WAIT_RESULT_COMPLETE));
        }
        assert_eq!(failing.join().unwrap(), Ok(WAIT_RESULT_FAIL));
    });
    // It woke somebody, so it is not left set.
    assert_eq!(wait(&events, &mut [EventData::new(id)], false, 0), Ok(WAIT_RESULT_TIMEOUT));
}

#[test]
fn timeout_takes_its_time() {
    let events = events();
    let id = create(&events, EVENT_SIGNAL, true);
    let start = Instant::now();
    assert_eq!(wait(&events, &mut [EventData::new(id)], false, 20), Ok(WAIT_RESULT_TIMEOUT));
    assert!(start.elapsed() >= Duration::from_millis(20));
}

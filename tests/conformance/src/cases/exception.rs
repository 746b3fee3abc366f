//! Faults: what the process hears of them.

use crate::case::cases;
use crate::gpu::{Code, SHARED, dispatch};
use kfd::uapi::*;
use std::sync::atomic::Ordering;

cases! { "KFDExceptionTest", s:
    risky gpu address_fault "code at an address that is not mapped sets MEMORY events, with address, GPU and reason" {
        let gpu = s.gpu()?;
        let memory = s.create_event(EVENT_MEMORY, false)?.event_id;
        let signal = gpu.memory(4096, SHARED)?.signal(0, 1);
        let mut kernel = gpu.kernel(Code::End)?;
        let nowhere = gpu.reserve(8192)?;
        kernel.va = nowhere;
        let queue = gpu.queue(64)?;
        queue.submit(dispatch(&kernel, signal.va).to_bytes());
        let mut data = [EventData::new(memory)];
        let (result, outcome) = s.wait(&mut data, false, 10_000);
        let fault = data[0].memory_exception();
        s.ok("WAIT_EVENTS", result);
        s.value("wait_result", outcome, WAIT_RESULT_COMPLETE);
        s.value("the page", fault.va == nowhere, true);
        s.value("its GPU", fault.gpu_id == gpu.id, true);
        s.value("NotPresent", fault.failure.not_present, 1);
        s.value("the dispatch's signal", signal.value().load(Ordering::SeqCst), 1);
        s.ok("DESTROY_QUEUE", queue.destroy());
    }

    risky gpu queue_exception "with the runtime enabled a queue's exception is ORed into the payload that its save area names, and its event is set" {
        let gpu = s.gpu()?;
        s.call(&mut RuntimeEnableArgs { mode_mask: 1, ..Default::default() })?;
        let event = s.signal_event(true)?;
        let payload = gpu.memory(4096, SHARED)?;
        let kernel = gpu.kernel(Code::End)?;
        let queue = gpu.queue(64)?;
        // The kernel reads the header when it has something to tell.
        let header = ContextSaveAreaHeader { err_payload_addr: payload.va, err_event_id: event, ..Default::default() };
        queue.parts.save.write(0, header.as_bytes());
        queue.submit(aql::KernelDispatch { dims: 0, ..dispatch(&kernel, 0) }.to_bytes());
        let (result, outcome) = s.wait(&mut [EventData::new(event)], false, 10_000);
        s.ok("WAIT_EVENTS", result);
        s.value("wait_result", outcome, WAIT_RESULT_COMPLETE);
        s.value("the payload: exception 16, dimensions", payload.u64(0).load(Ordering::SeqCst), 1 << 15);
        s.ok("DESTROY_QUEUE", queue.destroy());
    }

    risky gpu without_an_event "without a MEMORY event nobody hears of a fault, and the queue does not run again" {
        let gpu = s.gpu()?;
        let signals = gpu.memory(4096, SHARED)?;
        let (bad, good) = (signals.signal(0, 1), signals.signal(64, 1));
        let kernel = gpu.kernel(Code::End)?;
        let mut nowhere = kernel;
        nowhere.va = gpu.reserve(8192)?;
        let queue = gpu.queue(64)?;
        queue.submit(dispatch(&nowhere, bad.va).to_bytes());
        std::thread::sleep(std::time::Duration::from_millis(50));
        queue.submit(dispatch(&kernel, good.va).to_bytes());
        std::thread::sleep(std::time::Duration::from_millis(50));
        s.value("the bad dispatch's signal", bad.value().load(Ordering::SeqCst), 1);
        s.value("the one behind it", good.value().load(Ordering::SeqCst), 1);
        s.ok("DESTROY_QUEUE", queue.destroy());
    }
}

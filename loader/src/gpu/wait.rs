//! The wait for a kernel: its signal, what it asks of the host, and what may go wrong meanwhile.

use super::{Finished, Gpu, Pending, WaitState, report};
use crate::stop::Stop;
use crate::{Error, Image};
use elf::Kernel;
use kfd::{Fired, GpuVa, Wait, uapi};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Sleeps between looks at what the kernel asks for: at first, and at most. Each is an eighth longer than the one before.
const NAP: (Duration, Duration) = (Duration::from_micros(20), Duration::from_micros(50));
/// After this long without a call the sleeps may become longer than [`NAP`]'s.
const DROWSY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_micros(200));
/// How long a wait looks at the signal before it sleeps.
const SPIN: Duration = Duration::from_micros(50);
/// The same after it has served the kernel, which may go on to the next call.
const SERVED_SPIN: Duration = Duration::from_micros(150);
/// How long it then looks without letting other threads have its processor.
const YIELD: Duration = Duration::from_micros(5);
/// Longest time between looks at the fault events.
const LOOK: Duration = Duration::from_millis(2);

impl Gpu {
    pub(super) fn wait(
        &mut self,
        image: &Image,
        kernel: &Kernel,
        timeout: Option<Duration>,
        scratch: (u32, u32, u64),
        pending: &mut dyn FnMut(&WaitState) -> Pending,
    ) -> Result<Finished, Error> {
        let start = Instant::now();
        let signal_va = self.signal_va();
        let mut looked = start;
        let mut yielded = start;
        let mut idle_since = start;
        let mut nap = NAP.0;
        let mut spin = SPIN;
        loop {
            let value = self.signal()?.load(Ordering::Acquire);
            if value == 0 {
                let tracer = self.device.kfd().system().tracer();
                tracer.emit(|| trace::Event::Signal { va: signal_va.0, old: 1, new: 0, by: "host" });
                self.completed += 1;
                return Ok(Finished::Completed);
            }
            let elapsed = start.elapsed();
            if let Some(limit) = timeout
                && elapsed >= limit
            {
                return Err(Stop::Timeout {
                    kernel: kernel.name().to_owned(),
                    limit,
                    signal: signal_va,
                    value,
                    report: self.report(image),
                }
                .into());
            }
            let report = || self.report(image);
            let state = WaitState {
                kernel: kernel.name(),
                elapsed,
                signal: signal_va,
                value,
                is_for_files: false,
                report: &report,
            };
            let sleep = match pending(&state) {
                Pending::Leave => return Ok(Finished::Left),
                Pending::Again => {
                    idle_since = Instant::now();
                    (nap, spin) = (NAP.0, SERVED_SPIN);
                    continue;
                }
                Pending::Poll => None,
                Pending::Sleep(longest) => Some(longest.min(timeout.map_or(longest, |limit| limit - elapsed))),
            };
            if idle_since.elapsed() < spin {
                // The thread that woke this one may wait for its processor: an emulated GPU's is one of this machine.
                if spin == SERVED_SPIN && yielded.elapsed() >= YIELD {
                    std::thread::yield_now();
                    yielded = Instant::now();
                }
                std::hint::spin_loop();
                continue;
            }
            // Naps serve a device that talks to the host; the events are looked at now and then. Longer sleeps are spent in
            // the kernel, which wakes this thread.
            if sleep.is_none() {
                std::thread::sleep(nap);
                let longest = if idle_since.elapsed() < DROWSY.0 { NAP.1 } else { DROWSY.1 };
                nap = (nap + nap / 8).min(longest);
                if looked.elapsed() < LOOK {
                    continue;
                }
            }
            looked = Instant::now();
            let block = sleep.unwrap_or_default();
            let mut events = vec![&self.done, &self.memory_fault, &self.hw_exception];
            events.extend(&self.call);
            if let Wait::Fired(fired) = self.events.wait(&events, Some(block))? {
                self.faults(image, kernel, &fired)?;
            }
            self.check_queue(image, kernel, scratch)?;
        }
    }

    /// Turns fault events into an error.
    fn faults(&self, image: &Image, kernel: &Kernel, fired: &[Fired]) -> Result<(), Error> {
        let ours = self.device.gpu_id();
        for event in fired {
            match event {
                Fired::Memory(fault) if fault.gpu == ours => {
                    let mut detail = self.detail();
                    let mut notes = self.place(image, &detail);
                    let va = detail.as_ref().and_then(|detail| detail.va).map_or(fault.va, GpuVa);
                    let stray = self.stray(image, kernel, va);
                    // The page tables have addresses, the buffers have names as well.
                    if let Some(detail) = detail.as_mut().filter(|_| va.0 >= report::NULL_PAGES && !stray.is_empty()) {
                        detail.detail.clear();
                    }
                    notes.extend(stray);
                    notes.extend(self.last_packet(image));
                    return Err(
                        Stop::MemoryFault { kernel: kernel.name().to_owned(), fault: *fault, detail, notes }.into()
                    );
                }
                Fired::HwException(exception) if exception.gpu == ours => {
                    let (kernel, notes) = (kernel.name().to_owned(), self.last_packet(image));
                    return Err(Stop::HwException { kernel, exception: *exception, notes }.into());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Looks whether the packet processor has stopped the queue; gives it scratch when it asks for some.
    fn check_queue(&mut self, image: &Image, kernel: &Kernel, scratch: (u32, u32, u64)) -> Result<(), Error> {
        let inactive = self.queue.inactive_value()? as u64;
        let exceptions = self.queue.exceptions()?;
        const MORE_SCRATCH: u64 = 0x1 | 0x400;
        const SCRATCH_USED_ONCE: u64 = 0x200;
        if inactive & MORE_SCRATCH != 0 && inactive & !MORE_SCRATCH == 0 {
            let (bytes, lanes, waves) = scratch;
            self.reserve_scratch(bytes.max(1), lanes, waves)?;
            return Ok(self.queue.clear_inactive()?);
        }
        if inactive == SCRATCH_USED_ONCE {
            return Ok(self.queue.clear_inactive()?);
        }
        // A memory violation comes with its own event, which says more.
        let memory_violation = uapi::ec_mask(uapi::EC_QUEUE_WAVE_MEMORY_VIOLATION);
        if inactive == 0 && exceptions & !memory_violation == 0 {
            return Ok(());
        }
        let detail = self.detail();
        let mut notes = self.place(image, &detail);
        notes.extend(self.last_packet(image));
        let stop = Stop::Queue { kernel: kernel.name().to_owned(), inactive, exceptions, detail, notes };
        let mut stop = Box::new(stop);
        if stop.is_bad_address() && kernel.uses_dynamic_stack() {
            stop.add_note(format!(
                "the compiler does not know how deep the kernel's calls go; a work-item has {} bytes of stack: if that is too \
                 little, --stack-size (GpuOptions::stack_size) gives it more",
                self.private_bytes(kernel)
            ));
        }
        Err(Error::Stopped(stop))
    }

    fn detail(&self) -> Option<Box<trace::Fault>> {
        self.options.faults.as_ref().and_then(|faults| faults.take()).map(Box::new)
    }
}

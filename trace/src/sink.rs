//! Where events go.

use crate::Event;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// An event with its time.
#[derive(Clone, Debug)]
pub struct Record {
    /// Time since the tracer was made.
    pub at: Duration,
    /// The event.
    pub event: Event,
}

/// Receives events in the order they happened on each thread.
pub trait Sink: Send + Sync {
    /// Takes one event. Must not block for long: producers wait for it.
    fn record(&self, record: &Record);
}

/// A cheap handle to the sinks of one run, cloned into every producer.
#[derive(Clone)]
pub struct Tracer {
    sinks: Arc<[Arc<dyn Sink>]>,
    start: Instant,
}

impl std::fmt::Debug for Tracer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tracer").field("sinks", &self.sinks.len()).finish()
    }
}

impl Default for Tracer {
    fn default() -> Self {
        Tracer::new(Vec::new())
    }
}

impl Tracer {
    /// A tracer that feeds `sinks`.
    pub fn new(sinks: Vec<Arc<dyn Sink>>) -> Tracer {
        Tracer { sinks: sinks.into(), start: Instant::now() }
    }

    /// Whether anybody listens.
    pub fn enabled(&self) -> bool {
        !self.sinks.is_empty()
    }

    /// Reports the event that `make` builds; `make` is not called when nobody listens.
    pub fn emit(&self, make: impl FnOnce() -> Event) {
        if self.enabled() {
            let record = Record { at: self.start.elapsed(), event: make() };
            for sink in self.sinks.iter() {
                sink.record(&record);
            }
        }
    }
}

/// Keeps every event, for tests.
#[derive(Debug, Default)]
pub struct Collector(Mutex<Vec<Record>>);

impl Collector {
    /// The events so far.
    pub fn records(&self) -> Vec<Record> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Sink for Collector {
    fn record(&self, record: &Record) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(record.clone());
    }
}

/// Keeps the last fault that the emulated machine told of, for reports that can say more than the driver does.
#[derive(Debug, Default)]
pub struct LastFault(Mutex<Option<crate::Fault>>);

impl LastFault {
    /// Takes it, so that the next one is new.
    pub fn take(&self) -> Option<crate::Fault> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Sink for LastFault {
    fn record(&self, record: &Record) {
        if let Event::Fault(fault) = &record.event {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((**fault).clone());
        }
    }
}

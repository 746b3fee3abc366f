//! Everything that happens between a program image and its exit value, as one stream of typed events.
//!
//! The driver interface, the loader and the emulated machine each report what they do as an [`Event`]; text, JSON and
//! pictures are views of that stream. The types here are plain data and know nothing of their producers.

mod event;
mod sink;
mod text;
mod wave;

pub use event::*;
pub use sink::{Collector, LastFault, Record, Sink, Tracer};
pub use text::{TextSink, line};
pub use wave::{Activity, Wave};

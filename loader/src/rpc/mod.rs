//! The host side of the remote procedure calls that LLVM's GPU libc makes.
//!
//! A program image holds a client structure whose pointers the host fills in before the first kernel runs. They lead to
//! one shared area: two mailboxes, a header and one packet a lane for every port. The server owns a port while its two
//! mailboxes differ. Each call runs here as a small state machine of its own, so that a lane that dies inside a call
//! never stops the others.

mod area;
mod beside;
mod calls;
mod files;
mod input;
mod port;
mod printf;

pub use area::{Abi, Area, Region};
pub use beside::waits_still;
pub use files::Output;
pub use port::Port;

use calls::Shared;
use std::cell::RefCell;
use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// What a device asks for that only the loader can give.
pub trait DeviceMemory {
    /// Device memory of `size` bytes, 2 MiB aligned; none when there is no more.
    fn allocate(&mut self, size: u64) -> Option<u64>;
    /// Returns an allocation. Unknown addresses are ignored.
    fn free(&mut self, va: u64);
}

/// How a program ended by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// `exit` with this status.
    Exit(i32),
    /// `abort`.
    Abort,
}

/// What a pass over the ports found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Nothing changed.
    Idle,
    /// Some call moved on.
    Served,
    /// The program ended.
    Ended(End),
}

/// What goes on between the host and the lanes of one call.
pub type Call = Pin<Box<dyn Future<Output = ()>>>;

/// Serves calls that this library does not know, or serves known ones in its own way: it looks at [`Port::opcode`] and
/// returns the exchange, or None for one that it leaves to the library. The port is closed behind it.
pub type Handler = Box<dyn FnMut(Rc<Port>) -> Option<Call>>;

/// Serves the calls of one program.
pub struct Server {
    area: Area,
    shared: Rc<RefCell<Shared>>,
    handler: Option<Handler>,
    calls: Vec<(u32, Call)>,
    /// The last writes of the program's files, once they are begun.
    last: Option<Pin<Box<dyn Future<Output = i64>>>>,
    busy: HashSet<u32>,
}

impl Server {
    /// A server over `area`, which must already be zeroed.
    pub fn new(area: Area, output: Box<dyn Output>, memory: Box<dyn DeviceMemory>) -> Server {
        Server {
            area,
            shared: Rc::new(RefCell::new(Shared::new(output, memory))),
            handler: None,
            calls: Vec::new(),
            last: None,
            busy: HashSet::new(),
        }
    }

    /// Asks `handler` about each call first.
    pub fn set_handler(&mut self, handler: Handler) {
        self.handler = Some(handler);
    }

    /// Looks at every port once and moves every call as far as its device side allows.
    pub fn poll(&mut self) -> Progress {
        let before = self.area.flips();
        for index in 0..self.area.ports() {
            if !self.busy.contains(&index) && self.area.server_owns(index) {
                self.busy.insert(index);
                let port = Rc::new(Port::open(self.area.clone(), index));
                let own = self.handler.as_mut().and_then(|handler| handler(port.clone()));
                let shared = self.shared.clone();
                let call = async move {
                    match own {
                        Some(call) => call.await,
                        None => calls::serve(&port, shared).await,
                    }
                    port.close();
                };
                self.calls.push((index, Box::pin(call)));
            }
        }
        let mut context = Context::from_waker(Waker::noop());
        let (busy, shared) = (&mut self.busy, &self.shared);
        self.calls.retain_mut(|(index, call)| {
            let done = call.as_mut().poll(&mut context) == Poll::Ready(());
            if done {
                busy.remove(index);
            }
            !done
        });
        match shared.borrow().end {
            Some(end) => Progress::Ended(end),
            None if self.area.flips() != before => Progress::Served,
            None => Progress::Idle,
        }
    }

    /// Writes what the program's files have kept, when no kernel runs any more; true when it is done. A pipe that nobody
    /// reads keeps it waiting, nothing else does.
    pub fn finish(&mut self) -> bool {
        let files = || self.shared.borrow().files.all();
        let last = self.last.get_or_insert_with(|| Box::pin(calls::flush(files())));
        match last.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => false,
            Poll::Ready(answer) => {
                self.last = None;
                if answer != 0 {
                    let text = "what a file of the program had kept could not be written whole";
                    self.shared.borrow_mut().complaints.push(text.to_owned());
                }
                true
            }
        }
    }

    /// No call is open, and the next one wakes a host that sleeps.
    pub fn is_quiet(&self) -> bool {
        self.calls.is_empty() && self.area.open_calls() == Some(0)
    }

    /// What went wrong with calls since the last time, one line each.
    pub fn take_complaints(&mut self) -> Vec<String> {
        std::mem::take(&mut self.shared.borrow_mut().complaints)
    }
}

#[cfg(test)]
mod tests;

//! One run: image, device, program, exit status.

use crate::args::{Args, Command};
use crate::device;
use crate::exit::{ABORT, Failure, NOT_FOUND, REFUSED};
use crate::output::{Unbuffered, clear_progress, progress, say, shows_progress};
use loader::program::{Ending, Outcome, Program};
use loader::{GpuOptions, WaitState};
use std::ffi::OsString;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use trace::{LastFault, Sink, TextSink, Tracer};

/// A wait this long is worth a line on a terminal.
const LONG: Duration = Duration::from_secs(2);

/// Set by the first SIGINT; the second ends the process.
static INTERRUPT: AtomicBool = AtomicBool::new(false);

/// Runs what the command line says; returns the exit status.
pub fn run(args: &Args) -> Result<u8, Failure> {
    let command = match &args.command {
        Command::Image(command) => command,
        Command::Explain(explain) => return crate::explain::run(&explain.what, explain.json),
    };
    let Some((image, rest)) = command.split_first() else {
        return Err(Failure::new(NOT_FOUND, "no image"));
    };
    let path = Path::new(image);
    let bytes = read(path)?;
    let refuse = |error: elf::Error| Failure::new(REFUSED, format!("{}: {error}", path.display()));
    let code = elf::CodeObject::parse(&bytes).map_err(refuse)?;

    let faults = Arc::new(LastFault::default());
    let mut sinks: Vec<Arc<dyn Sink>> = vec![faults.clone()];
    if args.trace {
        sinks.push(Arc::new(TextSink::new(std::io::stderr())));
    }
    let tracer = Tracer::new(sinks);
    let machine = emu::Options { seed: args.deterministic, ..emu::Options::default() };
    let device = device::open(&args.device, code.target(), &machine, &tracer)?;
    if args.verbose {
        let (major, minor) = device.kfd().version();
        say(&format!(
            "{} for {}, code object {}; topology node {} ({}), gpu_id {}, KFD {major}.{minor}",
            path.display(),
            code.target(),
            code.version(),
            device.node().index,
            device.target(),
            device.gpu_id()
        ));
    }
    catch_interrupts();
    let program = Program {
        arguments: [&[image.clone()], rest].concat(),
        environment: std::env::vars_os().map(|(key, value)| join(key, value)).collect(),
        threads: [args.threads_x, args.threads_y, args.threads_z],
        blocks: [args.blocks_x, args.blocks_y, args.blocks_z],
        timeout: args.timeout,
        options: GpuOptions { stack_size: args.stack_size, faults: Some(faults), ..GpuOptions::default() },
        ends_process: true,
        output: Box::new(Unbuffered),
    };
    let mut shown = Duration::ZERO;
    let result = loader::program::run(&device, code, program, &mut |state: &WaitState| {
        if state.elapsed >= LONG && state.elapsed - shown >= Duration::from_secs(1) && shows_progress() {
            shown = state.elapsed;
            progress(&format!(
                "{} has run for {} s (waiting for signal {}, value {}; Ctrl-C or --timeout ends it)",
                state.kernel,
                state.elapsed.as_secs(),
                state.signal,
                state.value
            ));
        }
        !INTERRUPT.load(Ordering::Relaxed)
    });
    clear_progress();
    let Outcome { ending, notes } = result?;
    for note in notes {
        say(&note);
    }
    match ending {
        Ending::Returned(value) | Ending::Exited(value) => {
            if !(0..256).contains(&value) {
                say(&format!(
                    "the program's value {value:#x} ({value}) does not fit an exit status: {} is left",
                    value & 255
                ));
            }
            Ok((value & 255) as u8)
        }
        Ending::Aborted => Ok(ABORT),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let show = path.display();
    if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        let read = std::io::stdin().read_to_end(&mut bytes);
        return read.map(|_| bytes).map_err(|error| Failure::new(REFUSED, format!("standard input: {error}")));
    }
    std::fs::read(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Failure::new(NOT_FOUND, format!("{show}: no such file")),
        ErrorKind::IsADirectory => Failure::new(REFUSED, format!("{show}: is a directory, not an image")),
        _ => Failure::new(REFUSED, format!("{show}: {error}")),
    })
}

fn join(key: OsString, value: OsString) -> OsString {
    let mut pair = key;
    pair.push("=");
    pair.push(value);
    pair
}

extern "C" fn on_interrupt(_signal: i32) {
    INTERRUPT.store(true, Ordering::Relaxed);
}

/// The first Ctrl-C ends the wait, which says what it waited for; the second ends the process.
fn catch_interrupts() {
    use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
    let action = SigAction::new(SigHandler::Handler(on_interrupt), SaFlags::SA_RESETHAND, SigSet::empty());
    // SAFETY: the handler only stores to an atomic.
    let _ = unsafe { sigaction(Signal::SIGINT, &action) };
}

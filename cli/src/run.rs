//! One run: image, device, program, exit status.

use crate::args::{Args, Command};
use crate::exit::{ABORT, Failure, INTERRUPTED, NOT_FOUND, REFUSED, USAGE};
use crate::fidelity;
use crate::input::{Input, InputError};
use crate::output::{self, Unbuffered, clear_progress, note, progress, say, shows_progress};
use crate::{inspect, launch};
use elf::container::{self, Contents, Entry, Limits};
use elf::{CodeObject, Kernel};
use kfd::Device;
use loader::program::{self, Ending, Outcome, Program};
use loader::{GpuOptions, ServiceOptions, Shape, WaitState};
use memmap2::{Mmap, MmapOptions};
use std::ffi::OsString;
use std::ops::Deref;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;
use trace::{LastFault, Sink, TextSink, Tracer};

/// A wait this long is worth a line on a terminal.
const LONG: Duration = Duration::from_secs(2);

/// Set by the first SIGINT; the second ends the process.
static INTERRUPT: AtomicBool = AtomicBool::new(false);

/// Set by SIGQUIT, which asks what a kernel is at.
static REPORT: AtomicBool = AtomicBool::new(false);

/// Runs what the command line says; returns the exit status.
pub fn run(args: &Args) -> Result<u8, Failure> {
    let result = without_output(args, run_command(args));
    if let Some(met) = args.met.as_ref().filter(|_| result.as_ref().map_or_else(Failure::is_of_run, |_| true)) {
        fidelity::tell(met);
    }
    result
}

/// The end of a run whose standard output was not taken whole. A program was told of it by its own calls; one that goes on
/// writing to a reader that has gone was ended, as SIGPIPE ends others.
fn without_output(args: &Args, result: Result<u8, Failure>) -> Result<u8, Failure> {
    let Some(lost) = output::lost() else { return result };
    let ran = result.as_ref().map_or_else(|failure| failure.status == INTERRUPTED, |_| true);
    if (output::reader_has_gone() && ran) || (matches!(args.command, Command::Launch(_)) && matches!(result, Ok(0))) {
        return Err(lost);
    }
    if !lost.text.is_empty() {
        say(&lost.text);
    }
    result
}

fn run_command(args: &Args) -> Result<u8, Failure> {
    if let (false, Some(option)) = (matches!(args.command, Command::Image(_)), args.of_programs()) {
        return Err(Failure::new(USAGE, format!("{option} is for programs (kfdrun IMAGE)")));
    }
    if args.met.is_some() && !matches!(args.command, Command::Image(_) | Command::Launch(_)) {
        return Err(Failure::new(USAGE, "--fidelity is for runs: an image, or `launch`"));
    }
    match &args.command {
        Command::Image(command) => program(args, command),
        Command::Devices(devices) => crate::devices::run(devices, args),
        Command::Doctor(doctor) => crate::doctor::run(doctor),
        Command::Explain(explain) => crate::explain::run(&explain.what, explain.json),
        Command::Launch(launch) => launch::run(args, launch),
        Command::Inspect(inspect) => inspect::run(args, inspect),
    }
}

/// Lists what a file carries.
pub fn open<'a>(path: &Path, bytes: &'a [u8]) -> Result<Contents<'a>, Failure> {
    container::open(bytes, &Limits::default())
        .map_err(|error| Failure::new(REFUSED, format!("{}: {error}", path.display())))
}

/// Reads the code object of an entry.
pub fn parse<'e>(path: &Path, entry: &'e Entry) -> Result<CodeObject<'e>, Failure> {
    CodeObject::parse(&entry.data).map_err(|error| Failure::new(REFUSED, format!("{}: {error}", path.display())))
}

/// Says what `--lint` finds.
struct Lints;

impl Sink for Lints {
    fn record(&self, record: &trace::Record) {
        if let trace::Event::Lint { queue_id, rule, text } = &record.event {
            say(&format!("lint: queue {queue_id}: {rule}: {text}"));
        }
    }
}

/// The tracer that the command line asks for, and what it keeps of faults.
pub fn tracer(args: &Args) -> (Tracer, Arc<LastFault>) {
    let faults = Arc::new(LastFault::default());
    let mut sinks: Vec<Arc<dyn Sink>> = vec![faults.clone()];
    if args.lint {
        sinks.push(Arc::new(Lints));
    }
    if args.trace {
        sinks.push(Arc::new(TextSink::new(std::io::stderr())));
    }
    (Tracer::new(sinks), faults)
}

/// Says what runs where, if asked.
pub fn tell(args: &Args, path: &Path, code: &CodeObject, device: &Device) {
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
}

/// Shows on a terminal that a kernel takes long; false when the user has had enough, or the reader of its output.
pub fn watch(state: &WaitState, shown: &mut Duration) -> bool {
    static SLACK: Once = Once::new();
    if state.elapsed > Duration::from_millis(1) {
        // Naps of tens of microseconds between looks at a kernel's calls are not to become 50 longer, which is the default.
        // Where this cannot be done they do.
        SLACK.call_once(|| nix::sys::prctl::set_timerslack(1).unwrap_or_default());
    }
    if state.elapsed >= LONG && state.elapsed.saturating_sub(*shown) >= Duration::from_secs(1) && shows_progress() {
        *shown = state.elapsed;
        if state.is_for_files {
            progress("the program has ended; a pipe that it wrote to is not read (Ctrl-C or --timeout ends the wait)");
            return !is_interrupted();
        }
        progress(&format!(
            "{} has run for {} s (waiting for signal {}, value {}; Ctrl-C or --timeout ends it)",
            state.kernel,
            state.elapsed.as_secs(),
            state.signal,
            state.value
        ));
    }
    if REPORT.swap(false, Ordering::Relaxed) {
        clear_progress();
        say(&format!(
            "SIGQUIT: {} has run for {} s and goes on: signal {}: want 0, have {}",
            state.kernel,
            state.elapsed.as_secs(),
            state.signal,
            state.value
        ));
        for line in (state.report)() {
            note(&format!("  {line}\n"));
        }
    }
    !is_interrupted() && !output::reader_has_gone()
}

/// Runs an image with a `main`.
fn program(args: &Args, command: &[OsString]) -> Result<u8, Failure> {
    let Some((image, rest)) = command.split_first() else {
        return Err(Failure::new(NOT_FOUND, "no image"));
    };
    let path = Path::new(image);
    let bytes = read(path, &Input::new(args.timeout))?;
    let contents = open(path, &bytes)?;
    let (tracer, faults) = tracer(args);
    let has = |entry: &Entry| {
        CodeObject::parse(&entry.data)
            .is_ok_and(|code| ["_start", "main"].iter().any(|name| code.kernel(name).is_some()))
    };
    // A malformed code object by itself says why before a device is opened.
    if let [entry] = &contents.entries[..]
        && entry.code_target().is_some()
    {
        parse(path, entry)?;
    }
    let (entry, device) = launch::choose(&contents, path, args, &tracer, &has)?;
    let code = parse(path, entry)?;
    tell(args, path, &code, &device);
    catch_interrupts();
    let program = Program {
        arguments: [std::slice::from_ref(image), rest].concat(),
        environment: environment(args),
        threads: [args.threads_x, args.threads_y, args.threads_z],
        blocks: [args.blocks_x, args.blocks_y, args.blocks_z],
        timeout: args.timeout,
        options: GpuOptions { stack_size: args.stack_size, faults: Some(faults), ..GpuOptions::default() },
        ends_process: true,
        output: Box::new(Unbuffered),
        services: ServiceOptions { hostcall: args.hostcall, ..ServiceOptions::default() },
        calls: None,
        gcn_heap: args.heap,
        gcn_stack: gcn_stack(&code)?,
    };
    if args.print_resource_usage {
        let once = Shape { dims: 1, group: [1; 3], grid: [1; 3] };
        for kernel in code.kernels() {
            let shape = match kernel.name() {
                "_start" => Shape::of_groups(program.threads, program.blocks).unwrap_or(once),
                _ if loader::program::is_gcn(&code) => Shape { group: loader::program::GCN_GROUP, ..once },
                _ => once,
            };
            tell_resources(args, &code, kernel, &shape, kernel.metadata.group_segment_fixed_size, &device);
        }
    }
    let mut shown = Duration::ZERO;
    output::start(args.timeout);
    let result = program::run(&device, code, program, &mut |state: &WaitState| watch(state, &mut shown));
    clear_progress();
    let Outcome { ending, notes } = result.map_err(|error| match error {
        error @ loader::Error::NotAProgram { .. } => {
            Failure::new(REFUSED, format!("{error}; `kfdrun launch` runs one kernel with arguments"))
        }
        error => error.into(),
    })?;
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
        Ending::Aborted => {
            say("the program called abort()");
            Ok(ABORT)
        }
    }
}

/// The bytes of a file.
pub enum Bytes {
    /// Read whole: standard input, pipes.
    Read(Vec<u8>),
    /// Mapped: of a large file the pages that are looked at. The mapping is left to the kernel at the process' end.
    Mapped(&'static Mmap),
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Read(bytes) => bytes,
            Bytes::Mapped(map) => map,
        }
    }
}

/// Opens an image, `-` standard input.
pub fn read(path: &Path, input: &Input) -> Result<Bytes, Failure> {
    read_as(path, input, "an image")
}

/// Opens a file that is `what`, `-` standard input.
pub fn read_as(path: &Path, input: &Input, what: &str) -> Result<Bytes, Failure> {
    if path.as_os_str() == "-" {
        let bytes = input.rest(&mut std::io::stdin().lock(), &"standard input", None);
        return bytes.map(Bytes::Read).map_err(|error| error.failure(REFUSED, "standard input"));
    }
    let contents = || {
        let mut file = Input::open(path)?;
        let metadata = file.metadata()?;
        // Files of /proc say that they are empty, and are not.
        if !metadata.is_file() || metadata.len() == 0 {
            return Ok(Bytes::Read(input.rest(&mut file, &path.display(), None)?));
        }
        let length = usize::try_from(metadata.len()).map_err(std::io::Error::other)?;
        // SAFETY: a mapping that is only read. Who writes to or cuts an image that is being loaded may end this
        // process, as with every loader.
        let map = unsafe { MmapOptions::new().len(length).map(&file) }?;
        Ok(Bytes::Mapped(Box::leak(Box::new(map))))
    };
    contents().map_err(|error: InputError| error.of_image(path.display(), what))
}

/// The stack of a program in GCC's form: gcn-run takes its size from a variable.
fn gcn_stack(code: &CodeObject) -> Result<u32, Failure> {
    let Some(text) = std::env::var_os("GCN_STACK_SIZE").filter(|_| program::is_gcn(code)) else {
        return Ok(program::DEFAULT_GCN_STACK);
    };
    let size = text.to_str().and_then(|text| text.parse().ok()).filter(|size| *size != 0);
    size.ok_or_else(|| {
        let rule = "it is the bytes of the program's stack, from 1 to 4294967295";
        Failure::new(USAGE, format!("GCN_STACK_SIZE is {text:?} in the environment: {rule}"))
    })
}

/// The program's environment: ours unless `--clean-env`, with what `--env` says.
fn environment(args: &Args) -> Vec<OsString> {
    let mut variables: Vec<(OsString, OsString)> =
        if args.clean_env { Vec::new() } else { std::env::vars_os().collect() };
    for (key, value) in &args.env {
        variables.retain(|(other, _)| other != key);
        variables.extend(value.clone().or_else(|| std::env::var_os(key)).map(|value| (key.clone(), value)));
    }
    let join = |(mut pair, value): (OsString, OsString)| {
        pair.push("=");
        pair.push(value);
        pair
    };
    variables.into_iter().map(join).collect()
}

/// Says what a kernel needs.
pub fn tell_resources(args: &Args, code: &CodeObject, kernel: &Kernel, shape: &Shape, lds: u32, device: &Device) {
    let fixed = kernel.metadata.private_segment_fixed_size;
    let scratch = if kernel.uses_dynamic_stack() { fixed.max(args.stack_size) } else { fixed };
    let processor = code.target().processor;
    let resources = loader::resources::resources(processor, kernel, shape, lds, scratch, loader::lds_of_cu(device));
    say(&format!("{}: {resources}", kernel.name()));
}

/// Whether Ctrl-C was pressed.
pub fn is_interrupted() -> bool {
    INTERRUPT.load(Ordering::Relaxed)
}

extern "C" fn on_interrupt(_signal: i32) {
    INTERRUPT.store(true, Ordering::Relaxed);
}

extern "C" fn on_quit(_signal: i32) {
    REPORT.store(true, Ordering::Relaxed);
}

/// The first Ctrl-C ends the wait, which says what it waited for; the second ends the process. Ctrl-\ has
/// the wait tell what it waits for, and goes on.
pub fn catch_interrupts() {
    use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
    let action = SigAction::new(SigHandler::Handler(on_interrupt), SaFlags::SA_RESETHAND, SigSet::empty());
    let quit = SigAction::new(SigHandler::Handler(on_quit), SaFlags::SA_RESTART, SigSet::empty());
    // SAFETY: the handlers only store to atomics.
    unsafe {
        let _ = sigaction(Signal::SIGINT, &action);
        let _ = sigaction(Signal::SIGQUIT, &quit);
    }
}

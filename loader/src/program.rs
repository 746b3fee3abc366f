//! Programs: images with a `main`, as LLVM's GPU libc and its loader run them.
//!
//! `_begin` (argc, argv, envp) runs once, `_start` (argc, argv, envp, ret) on the grid, `_end` once; each waits for the one
//! before. `_start` ORs the value of `main` into `*ret`. Only `_start` must exist.

use crate::arguments::Strings;
use crate::gpu::{Finished, Gpu, GpuOptions, Launch, Pending, WaitState};
use crate::heap::Heap;
use crate::rpc::{Abi, Area, End, Handler, Output, Progress, Region, Server};
use crate::service::{LISTEN, TICK};
use crate::{Error, Image, ServiceOptions, Services, Shape, Stop, Value, gcn, kernarg};
use elf::{CodeObject, Kernel};
use kfd::{Device, GpuVa};
use std::collections::HashMap;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A program run.
pub struct Program {
    /// Its arguments, the first one being its name.
    pub arguments: Vec<OsString>,
    /// Its environment, `KEY=VALUE`.
    pub environment: Vec<OsString>,
    /// Work-items of a work-group of `_start`.
    pub threads: [u32; 3],
    /// Work-groups of `_start`.
    pub blocks: [u32; 3],
    /// Longest time for all kernels together.
    pub timeout: Option<Duration>,
    /// How to open the device's queue.
    pub options: GpuOptions,
    /// The process ends with the program: what it holds of the device is left to the kernel.
    pub ends_process: bool,
    /// Where its output goes.
    pub output: Box<dyn Output>,
    /// Serves remote calls before the library does.
    pub calls: Option<Handler>,
    /// What a program without LLVM's remote calls gets.
    pub services: ServiceOptions,
    /// Bytes of the heap of a program in GCC's form ([`DEFAULT_GCN_HEAP`] when none is given); others get memory as they
    /// ask for it.
    pub gcn_heap: Option<u64>,
    /// Bytes of the stack of a program of GCC 13 or later; those of earlier ones take scratch.
    pub gcn_stack: u32,
}

/// Heap of a program in GCC's form, in bytes: what gcn-run gives.
pub const DEFAULT_GCN_HEAP: u64 = 10 << 20;

/// Stack of a program of GCC 13 or later, in bytes: what gcn-run gives.
pub const DEFAULT_GCN_STACK: u32 = 1 << 20;

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// `main` returned; the values of all work-items, ORed.
    Returned(i32),
    /// `exit` was called.
    Exited(i32),
    /// `abort` was called.
    Aborted,
}

/// How a program ended, and what is worth telling of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How it ended.
    pub ending: Ending,
    /// Lines for the user.
    pub notes: Vec<String>,
}

/// The image's client structure for remote calls: how big, and where in the image.
fn client(code: &CodeObject) -> Option<(Abi, u64)> {
    let symbol = code.symbol("__llvm_rpc_client")?;
    Some((Abi::from_client_size(symbol.size)?, symbol.vaddr()?))
}

/// LLVM 19 has a pointer to the structure instead.
fn client_pointer(code: &CodeObject) -> Option<u64> {
    code.symbol("__llvm_libc_rpc_client").filter(|symbol| symbol.size == 8)?.vaddr()
}

/// Whether the image is a program in the form of GCC's gcn-run.
pub fn is_gcn(code: &CodeObject) -> bool {
    gcn::is_program(code)
}

/// The one work-group of such a program: one wave, its lanes along y.
pub const GCN_GROUP: [u32; 3] = [1, 64, 1];

/// Runs a program. `on_wait` is called again and again; it ends the run by returning false.
pub fn run(
    device: &Arc<Device>,
    code: CodeObject,
    mut program: Program,
    on_wait: &mut dyn FnMut(&WaitState) -> bool,
) -> Result<Outcome, Error> {
    let names = || code.kernels().iter().map(|kernel| kernel.name().to_owned()).collect();
    if gcn::is_program(&code) {
        return gcn::run(device, code, program, on_wait);
    }
    if code.kernel("_start").is_none() {
        return Err(Error::NotAProgram { kernels: names() });
    }
    if let Some(bytes) = program.gcn_heap {
        return Err(Error::Launch {
            kernel: "_start".to_owned(),
            what: "the heap",
            value: format!("{bytes} bytes"),
            rule: "only programs in the form of GCC's gcn-run have a heap of a fixed size; this one gets memory as it asks \
                   for it: leave --heap out"
                .to_owned(),
        });
    }
    let shape = shape(program.threads, program.blocks)?;
    let lanes = code.kernels().iter().map(|kernel| kernel.metadata.wavefront_size).max().unwrap_or(64);

    // The shared memory: argv, envp, then the area of remote calls.
    let argv = Strings::new(&program.arguments);
    let envp = Strings::new(&program.environment);
    let envp_at = argv.size().next_multiple_of(8);
    let area_at = (envp_at + envp.size()).next_multiple_of(64);
    let found = client(&code);
    let abi = found.map(|(abi, _)| abi).or(client_pointer(&code).map(|_| Abi::Llvm19));
    let region = abi.map(|abi| {
        let waves = shape.waves(lanes);
        let ports = waves.next_multiple_of(32).clamp(64, u64::from(abi.max_ports())) as u32;
        Region { abi, ports, lanes }
    });
    let largest = code.kernels().iter().map(|kernel| kernel.metadata.kernarg_segment_size).max().unwrap_or(0);
    program.options.kernarg_bytes = u64::from(largest);
    program.options.shared_bytes = area_at + region.map_or(0, |region| region.size());
    let mut gpu = Gpu::open(device, program.options)?;
    if program.ends_process {
        device.kfd().leave();
    }
    let image = Image::load(device, code, &HashMap::new(), 64)?;

    let (shared, offset) = gpu.shared();
    let shared = shared.clone();
    let base = shared.va().0 + offset;
    shared.write_bytes(offset, &argv.block(base))?;
    shared.write_bytes(offset + envp_at, &envp.block(base + envp_at))?;
    let mut output = Some(program.output);
    let mut server = match region {
        None => None,
        Some(region) => {
            let vaddr = match found {
                Some((_, vaddr)) => Some(vaddr),
                None => pointed(&image)?,
            };
            if let Some(vaddr) = vaddr {
                image.write(vaddr, &region.client(base + area_at))?;
            }
            let at = shared.host_ptr(offset + area_at, region.size())?;
            // SAFETY: `host_ptr` checked the range, which starts at a multiple of 64 in a page-aligned buffer; the
            // buffer lives as long as the area, and nothing else of the host touches this part of it.
            let mut area = unsafe { Area::new(region, at.as_ptr(), shared.clone()) };
            if region.abi == Abi::Doorbell && device.has_atomics_to_host() {
                area.set_bell(base + area_at, &gpu.bell()?);
            }
            let shadow = image.is_instrumented().then(|| gpu.shadow().clone());
            let server = output.take().map(|output| Server::new(area, output, Box::new(Heap::new(device, shadow))));
            server.map(|mut server| {
                if let Some(handler) = program.calls.take() {
                    server.set_handler(handler);
                }
                server
            })
        }
    };

    // LLVM's libc takes the time of the GPU's clock with this; images come with 100 MHz.
    let mut notes = Vec::new();
    if let Some(vaddr) =
        image.code().symbol("__llvm_libc_clock_freq").filter(|symbol| symbol.size == 8).and_then(|s| s.vaddr())
    {
        match device.counter_frequency() {
            Ok(hertz) => image.write(vaddr, &hertz.to_le_bytes())?,
            Err(error) => {
                notes.push(format!("the program's clock is what its image says, for want of the GPU's: {error}"))
            }
        }
    }

    let once = Shape::of_items([1; 3], [1; 3]).unwrap_or(shape);
    let argc = Value::from(argv.len() as u32);
    let strings = [argc, Value::Address(base), Value::Address(base + envp_at)];
    let with_ret = [&strings[..], &[Value::Address(image.tail_va().0)]].concat();
    let code = image.code();
    let mut steps: Vec<(&Kernel, Shape, Vec<Value>)> = Vec::new();
    let has = |name: &str| code.kernel(name);
    // Images with constructors and no _begin leave them to these two kernels; with a _begin both would run them.
    match (has("_begin"), has("amdgcn.device.init")) {
        (Some(kernel), _) => steps.push((kernel, once, strings.to_vec())),
        (None, Some(kernel)) => steps.push((kernel, once, Vec::new())),
        (None, None) => {}
    }
    steps.extend(has("_start").map(|kernel| (kernel, shape, with_ret)));
    match (has("_end"), has("amdgcn.device.fini")) {
        (Some(kernel), _) => steps.push((kernel, once, Vec::new())),
        (None, Some(kernel)) if has("_begin").is_none() => steps.push((kernel, once, Vec::new())),
        _ => {}
    }
    // Images without LLVM's remote calls may use the device library's services.
    let mut services = match output {
        None => None,
        Some(output) => {
            let kernels: Vec<_> = steps.iter().map(|(kernel, shape, _)| (*kernel, *shape)).collect();
            Some(Services::new(&mut gpu, &image, &kernels, program.services, output)?)
        }
    };
    gpu.set_hidden_buffers(services.as_ref().map(Services::buffers).unwrap_or_default());
    // The packet processor takes scratch up before the first packet, so it is made for the hungriest kernel.
    for (kernel, shape, _) in &steps {
        let lanes = kernel.metadata.wavefront_size;
        gpu.reserve_scratch(gpu.private_bytes(kernel), lanes, shape.waves(lanes))?;
    }

    let until = program.timeout.and_then(|limit| Some((Instant::now().checked_add(limit)?, limit)));
    if image.in_system_memory() {
        notes.push(
            "the device has no large BAR: the image lies in system memory, where atomics need PCIe support".to_owned(),
        );
    }
    let mut ended = None;
    let mut last = None;
    for (kernel, shape, mut values) in steps {
        if kernel.name() == "_end" && kernel.metadata.args.iter().any(|arg| !arg.value_kind.is_hidden()) {
            values = vec![Value::from(read_value(&image)? as u32)];
        }
        let timeout = until.map(|(end, _)| end.saturating_duration_since(Instant::now()));
        let launch = Launch { shape, values, dynamic_lds: 0, timeout };
        let (mut left, mut broken) = (None, None);
        let result = gpu.dispatch(&image, kernel, &launch, &mut |state| {
            if !on_wait(state) {
                left = Some((state.signal, state.value));
                return Pending::Leave;
            }
            match (&mut server, &mut services) {
                (Some(server), _) => match server.poll() {
                    Progress::Ended(_) => Pending::Leave,
                    Progress::Served => Pending::Again,
                    Progress::Idle if server.is_quiet() => Pending::Sleep(LISTEN),
                    Progress::Idle => Pending::Poll,
                },
                (None, Some(services)) => services.poll().unwrap_or_else(|error| {
                    broken = Some(error);
                    Pending::Leave
                }),
                (None, None) => Pending::Sleep(TICK),
            }
        });
        if let Some(error) = broken {
            return Err(error);
        }
        // What the kernel said last, faulted or not.
        let completed = matches!(result, Ok(Finished::Completed));
        if let Some(services) = &mut services {
            notes.extend(services.finish(&image, kernel.name(), completed)?);
        }
        if let Some(server) = &mut server {
            // One that goes on would never be done.
            while server.poll() == Progress::Served && completed {}
            notes.extend(server.take_complaints());
            if let Progress::Ended(end) = server.poll() {
                ended = Some(end);
            }
        }
        let signal = left.unwrap_or((gpu.signal_va(), 0));
        last = Some((kernel.name(), signal));
        match result {
            Ok(Finished::Completed) => {}
            Ok(Finished::Left) => match left {
                Some((signal, value)) => {
                    return Err(Stop::Interrupted {
                        kernel: kernel.name().to_owned(),
                        signal,
                        value,
                        report: gpu.report(&image),
                    }
                    .into());
                }
                None => break,
            },
            // The program ended while the fault was on its way.
            Err(_) if ended.is_some() => break,
            Err(Error::Stopped(mut stop)) => {
                // The limit is on all kernels together; each was given what was left of it.
                if let (Stop::Timeout { limit, .. }, Some(timeout)) = (stop.as_mut(), program.timeout) {
                    *limit = timeout;
                }
                if let Some(services) = &services {
                    services.add_hint(&mut stop);
                }
                if let Some(server) = server.as_mut().filter(|_| !matches!(*stop, Stop::Timeout { .. })) {
                    // What stopped the kernel is the news.
                    let _ = write_files(server, until, &mut |elapsed| on_wait(&files_wait(&last, elapsed)));
                }
                return Err(Error::Stopped(stop));
            }
            Err(error) => return Err(error),
        }
        if ended.is_some() {
            break;
        }
    }
    if let Some(server) = &mut server {
        write_files(server, until, &mut |elapsed| on_wait(&files_wait(&last, elapsed)))?;
        notes.extend(server.take_complaints());
    }
    let ending = match ended {
        Some(End::Exit(status)) => Ending::Exited(status),
        Some(End::Abort) => Ending::Aborted,
        None => Ending::Returned(read_value(&image)?),
    };
    Ok(Outcome { ending, notes })
}

/// Writes what the program's files have kept. A pipe that nobody reads may take for ever: `until` is when the time is over,
/// and how much there was; `goes_on` is asked again and again.
fn write_files(
    server: &mut Server,
    until: Option<(Instant, Duration)>,
    goes_on: &mut dyn FnMut(Duration) -> bool,
) -> Result<(), Stop> {
    let start = Instant::now();
    while !server.finish() {
        if let Some((_, limit)) = until.filter(|(end, _)| *end <= Instant::now()) {
            return Err(Stop::Unread { limit: Some(limit) });
        }
        if !goes_on(start.elapsed()) {
            return Err(Stop::Unread { limit: None });
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// The state of that wait, after the last kernel and its signal.
fn files_wait<'k>(last: &Option<(&'k str, (GpuVa, i64))>, elapsed: Duration) -> WaitState<'k> {
    let (kernel, (signal, value)) = last.unwrap_or_default();
    WaitState { kernel, elapsed, signal, value, is_for_files: true, report: &|| Vec::new() }
}

fn shape(threads: [u32; 3], blocks: [u32; 3]) -> Result<Shape, Error> {
    Shape::of_groups(threads, blocks).ok_or_else(|| Error::Launch {
        kernel: "_start".to_owned(),
        what: "the grid",
        value: format!("{threads:?} work-items in {blocks:?} work-groups"),
        rule: kernarg::SHAPE_RULE.to_owned(),
    })
}

/// The word that `_start` left.
fn read_value(image: &Image) -> Result<i32, Error> {
    let mut bytes = [0; 4];
    image.buffer().read_bytes(image.tail_offset(), &mut bytes)?;
    Ok(i32::from_le_bytes(bytes))
}

/// Where in the image the pointer of LLVM 19's clients leads.
fn pointed(image: &Image) -> Result<Option<u64>, Error> {
    let Some(vaddr) = client_pointer(image.code()) else { return Ok(None) };
    let mut bytes = [0; 8];
    image.read(vaddr, &mut bytes)?;
    Ok(image.vaddr(u64::from_le_bytes(bytes)))
}

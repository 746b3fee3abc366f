//! `kfdrun launch --script`: several launches over buffers that they share, from a TOML file.
//!
//! Everything is read and checked before memory is allocated: a mistake in the last launch is found before the first runs.

use super::form::{self, Entered, Script};
use super::globals::Globals;
use super::memory::{Files, Memory, about};
use super::runner::{Runner, Step};
use super::{DIFFERS, LaunchArgs, choose, choose_on, find, of_kind, shape, usage};
use crate::args::Args;
use crate::exit::Failure;
use crate::input::Input;
use crate::output::Unbuffered;
use crate::run;
use elf::container::{Contents, Entry};
use elf::{CodeObject, Kernel, KernelKind};
use kfd::Device;
use loader::spec::{self, ArgSpec, BufferSpec, What};
use loader::{Gpu, GpuOptions, Image, Services, Shape, names};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trace::Tracer;

/// A launch that fits its kernel.
struct Planned<'c> {
    image: usize,
    kernel: Kernel<'c>,
    shape: Shape,
    arguments: Vec<ArgSpec>,
    /// Names of the buffers among them.
    buffers: Vec<Option<String>>,
    dynamic_lds: u32,
    repeat: u32,
    globals: Globals,
}

/// Runs the launches of a file.
pub fn run(args: &Args, launch: &LaunchArgs, path: &Path) -> Result<u8, Failure> {
    let of_file = |failure: Failure| about(&path.display().to_string(), failure);
    let input = Input::new(args.timeout);
    let bytes = run::read_as(path, &input, "a script")?;
    let text = std::str::from_utf8(&bytes)
        .map_err(|error| usage(format!("{}: is not text: byte {} is no UTF-8", path.display(), error.valid_up_to())))?;
    let script = form::read(text).map_err(|error| of_file(usage(error)))?;
    let of_launch = |index: usize| {
        let kernel = script.launch.get(index).map_or("", |launch| launch.kernel.as_str());
        let title = form::title(index, kernel);
        // Some say themselves which kernel it is.
        let own = format!("kernel {kernel}: ");
        move |failure: Failure| {
            let text = failure.text.strip_prefix(&own).unwrap_or(&failure.text).to_owned();
            of_file(about(&title, Failure { text, ..failure }))
        }
    };
    let base = path.parent().unwrap_or(Path::new(""));
    let (paths, places) = images(&script, base);

    let files: Vec<run::Bytes> = paths.iter().map(|path| run::read(path, &input)).collect::<Result<_, _>>()?;
    let contents: Vec<Contents> =
        paths.iter().zip(&files).map(|(path, bytes)| run::open(path, bytes)).collect::<Result<_, _>>()?;
    let (tracer, faults) = run::tracer(args);
    let (device, codes) = codes(&script, &paths, &places, &contents, args, &tracer)?;
    for (path, code) in paths.iter().zip(&codes) {
        run::tell(args, path, code, &device);
    }

    let files = Files::of_script(base, input);
    let specs = buffers(&script).map_err(of_file)?;
    // Types and names first, then contents, which may be large.
    let mut planned = Vec::new();
    let known = known(&script, &specs);
    for (index, (entered, image)) in script.launch.iter().zip(&places).enumerate() {
        let plan = plan(entered, *image, &codes[*image], &paths[*image], &known, &files);
        planned.push(plan.map_err(of_launch(index))?);
    }
    let memory = memory(&script, &specs, &codes, files).map_err(of_file)?;

    let largest = planned.iter().map(|planned| planned.kernel.metadata.kernarg_segment_size).max().unwrap_or(0);
    let options = GpuOptions {
        stack_size: args.stack_size,
        faults: Some(faults),
        kernarg_bytes: u64::from(largest).max(4096),
        timestamps: planned.iter().any(|planned| planned.repeat > 1),
        ..GpuOptions::default()
    };
    let mut gpu = Gpu::open(&device, options)?;
    let mut memory = memory.allocate(&device)?;
    let images: Vec<Image> =
        codes.into_iter().map(|code| Image::load(&device, code, &memory.bindings, 0)).collect::<Result<_, _>>()?;
    let of_all =
        |kind: KernelKind| -> Vec<Option<Kernel>> { images.iter().map(|image| of_kind(image, kind)).collect() };
    let (before, after) = (of_all(KernelKind::Init), of_all(KernelKind::Fini));
    let mut services = Vec::new();
    for (index, image) in images.iter().enumerate() {
        let once =
            [&before[index], &after[index]].into_iter().flatten().map(|kernel| (kernel, Step::once(kernel).shape));
        let own =
            planned.iter().filter(|planned| planned.image == index).map(|planned| (&planned.kernel, planned.shape));
        let kernels: Vec<(&Kernel, Shape)> = once.chain(own).collect();
        services.push(Services::new(&mut gpu, image, &kernels, super::services(args, launch), Box::new(Unbuffered))?);
    }

    run::catch_interrupts();
    let mut runner = Runner::new(args, &device, gpu);
    for kernel in before.iter().chain(&after).flatten() {
        runner.reserve(kernel, &Step::once(kernel).shape)?;
    }
    for (index, planned) in planned.iter().enumerate() {
        runner.reserve(&planned.kernel, &planned.shape).map_err(of_launch(index))?;
    }
    let mut steps = Vec::new();
    for (number, planned) in planned.iter().enumerate() {
        let values = spec::check(&planned.kernel.metadata, &planned.arguments, |index| {
            let name = planned.buffers.get(index).and_then(Option::as_deref);
            let address = name.and_then(|name| memory.address_of(name));
            address.ok_or_else(|| usage(format!("argument {index} has no buffer")))
        })?;
        let step = Step {
            kernel: &planned.kernel,
            shape: planned.shape,
            values,
            dynamic_lds: planned.dynamic_lds,
            repeat: planned.repeat,
            dump_kernarg: launch.dump_kernarg,
        };
        // What the device does not allow is found before the first of them runs.
        runner.segment(&images[planned.image], &services[planned.image], &step).map_err(of_launch(number))?;
        steps.push(step);
    }
    for (index, kernel) in before.iter().enumerate() {
        if let Some(kernel) = kernel {
            runner.run(&images[index], &mut services[index], &Step::once(kernel))?;
        }
    }
    // What cannot be printed holds up nothing else.
    let mut lost = None;
    for (index, (planned, step)) in planned.iter().zip(&steps).enumerate() {
        let image = &images[planned.image];
        planned.globals.set(image)?;
        runner.run(image, &mut services[planned.image], step).map_err(of_launch(index))?;
        if let Err(failure) = planned.globals.dump(image) {
            lost.get_or_insert(failure);
        }
    }
    for (index, kernel) in after.iter().enumerate() {
        if let Some(kernel) = kernel {
            runner.run(&images[index], &mut services[index], &Step::once(kernel))?;
        }
    }
    let same = memory.finish(script.tolerance.unwrap_or_default())?;
    lost.map_or(Ok(if same { 0 } else { DIFFERS }), Err)
}

/// Opens the device that runs the first image, and takes the code object for it from each; where several would do, the one
/// with the kernels that are launched.
fn codes<'c>(
    script: &Script,
    paths: &[PathBuf],
    places: &[usize],
    contents: &'c [Contents],
    args: &Args,
    tracer: &Tracer,
) -> Result<(Arc<Device>, Vec<CodeObject<'c>>), Failure> {
    let mut device: Option<Arc<Device>> = None;
    let mut codes = Vec::new();
    for (index, (path, contents)) in paths.iter().zip(contents).enumerate() {
        let launches = script.launch.iter().zip(places).filter(|(_, place)| **place == index);
        let kernels: Vec<&str> = launches.map(|(launch, _)| launch.kernel.as_str()).collect();
        let has = |entry: &Entry| {
            CodeObject::parse(&entry.data).is_ok_and(|code| kernels.iter().all(|name| names::find(&code, name).is_ok()))
        };
        let entry = match &device {
            None => {
                let (entry, opened) = choose(contents, path, args, tracer, &has)?;
                device = Some(opened);
                entry
            }
            Some(device) => choose_on(device, contents, path, args, &has)?,
        };
        codes.push(run::parse(path, entry)?);
    }
    device.map(|device| (device, codes)).ok_or_else(|| usage("it has no image"))
}

/// The buffers that the file lists.
fn buffers(script: &Script) -> Result<BTreeMap<String, BufferSpec>, Failure> {
    let mut specs = BTreeMap::new();
    for (name, text) in &script.buffers {
        let what = format!("buffer {name}");
        let spec: BufferSpec = text.parse().map_err(|error| about(&what, usage(error)))?;
        if name.parse::<ArgSpec>().is_ok() {
            return Err(usage(format!("{what}: that name reads as an argument")));
        }
        specs.insert(name.clone(), spec);
    }
    Ok(specs)
}

/// These and those of symbols, by the names that launches may use.
fn known(script: &Script, specs: &BTreeMap<String, BufferSpec>) -> BTreeMap<String, BufferSpec> {
    let mut known = specs.clone();
    for (symbol, what) in script.define.iter().filter(|(_, what)| what.contains('[') && !specs.contains_key(what)) {
        if let Ok(spec) = what.parse() {
            known.entry(symbol.clone()).or_insert(spec);
        }
    }
    known
}

/// Reads the contents of the buffers, and what becomes of them.
fn memory(
    script: &Script,
    specs: &BTreeMap<String, BufferSpec>,
    codes: &[CodeObject],
    files: Files,
) -> Result<Memory, Failure> {
    let mut memory = Memory::new(files);
    for (name, spec) in specs {
        memory.add(None, name.clone(), None, spec, &format!("buffer {name}"))?;
    }
    let all: Vec<&CodeObject> = codes.iter().collect();
    for (symbol, what) in &script.define {
        memory.define(&all, symbol, what)?;
    }
    for (which, to) in &script.dump {
        memory.dump(which, to)?;
    }
    for (which, what) in &script.expect {
        memory.expect(which, what)?;
    }
    Ok(memory)
}

/// The images, each once, and which of them each launch runs. Two paths may lead to one file.
fn images(script: &Script, base: &Path) -> (Vec<PathBuf>, Vec<usize>) {
    let (mut paths, mut files, mut places) = (Vec::new(), Vec::new(), Vec::new());
    for launch in &script.launch {
        let path = base.join(&launch.image);
        // What is not there is told when it is read.
        let file = path.canonicalize().unwrap_or_else(|_| path.clone());
        let place = files.iter().position(|other| *other == file).unwrap_or(files.len());
        if place == files.len() {
            files.push(file);
            paths.push(path);
        }
        places.push(place);
    }
    (paths, places)
}

/// Checks a launch against its kernel and the buffers there are.
fn plan<'c>(
    entered: &Entered,
    image: usize,
    code: &CodeObject<'c>,
    path: &Path,
    buffers: &BTreeMap<String, BufferSpec>,
    files: &Files,
) -> Result<Planned<'c>, Failure> {
    let kernel = find(code, &entered.kernel, path)?.clone();
    let shape = shape(&kernel, entered.group_size, entered.groups, entered.items)?;
    let (mut arguments, mut names) = (Vec::new(), Vec::new());
    for (index, text) in entered.args.iter().enumerate() {
        if let Some(spec) = buffers.get(text) {
            arguments.push(ArgSpec { text: text.clone(), what: What::Buffer(spec.clone()) });
            names.push(Some(text.clone()));
            continue;
        }
        let spec: ArgSpec =
            text.parse().map_err(|error| usage(format!("argument {index}: {error}, or the name of a buffer")))?;
        if matches!(spec.what, What::Buffer(_)) {
            return Err(usage(format!("argument {index}, '{text}': give it a name under [buffers] and write that")));
        }
        arguments.push(spec);
        names.push(None);
    }
    spec::check(&kernel.metadata, &arguments, |_| Ok::<_, Failure>(0))?;
    let globals = Globals::read(code, &entered.set_global, &entered.dump_global, files)?;
    let (dynamic_lds, repeat) = (entered.dynamic_lds, entered.repeat);
    Ok(Planned { image, kernel, shape, arguments, buffers: names, dynamic_lds, repeat, globals })
}

//! `kfdrun launch --script`: several launches over buffers that they share, from a TOML file.
//!
//! Everything is read and checked before memory is allocated: a mistake in the last launch is found before the first runs.

use super::args::tolerance;
use super::globals::Globals;
use super::memory::Memory;
use super::runner::{Runner, Step};
use super::{DIFFERS, LaunchArgs, choose, choose_on, find, of_kind, shape, usage};
use crate::args::Args;
use crate::exit::Failure;
use crate::output::Unbuffered;
use crate::run;
use elf::container::{Contents, Entry};
use elf::{CodeObject, Kernel, KernelKind};
use kfd::Device;
use loader::spec::{self, ArgSpec, BufferSpec, What};
use loader::{Gpu, GpuOptions, Image, Services, Shape, names};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The form that this version reads.
const VERSION: u32 = 1;

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Script {
    version: u32,
    /// Image of the launches that name none.
    image: Option<PathBuf>,
    /// Name and `TYPE[COUNT]=CONTENTS` of the buffers.
    #[serde(default)]
    buffers: BTreeMap<String, String>,
    /// Undefined symbols: an address, or the name of a buffer.
    #[serde(default)]
    define: BTreeMap<String, String>,
    /// In order.
    launch: Vec<Entered>,
    /// Buffers to write after the last launch, and where.
    #[serde(default)]
    dump: BTreeMap<String, String>,
    /// Buffers to compare after the last launch, and with what.
    #[serde(default)]
    expect: BTreeMap<String, String>,
    tolerance: Option<String>,
}

/// A launch.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Entered {
    image: Option<PathBuf>,
    kernel: String,
    groups: Option<Size>,
    items: Option<Size>,
    group_size: Option<Size>,
    #[serde(default)]
    args: Vec<Argument>,
    #[serde(default)]
    dynamic_lds: u32,
    repeat: Option<u32>,
    #[serde(default)]
    set_global: BTreeMap<String, Argument>,
    #[serde(default)]
    dump_global: Vec<String>,
}

/// One to three dimensions.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Size {
    One(u32),
    Many(Vec<u32>),
}

impl Size {
    fn dimensions(&self) -> Result<[u32; 3], String> {
        let given = match self {
            Size::One(size) => std::slice::from_ref(size),
            Size::Many(sizes) => sizes,
        };
        let mut sizes = [1; 3];
        if given.is_empty() || given.len() > 3 || given.contains(&0) {
            return Err(format!("{given:?} is not a size: 1 to 3 numbers of 1 or more are"));
        }
        sizes[..given.len()].copy_from_slice(given);
        Ok(sizes)
    }
}

/// A number, the name of a buffer, or an argument as `--arg` has it.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Argument {
    Integer(i64),
    Float(f64),
    Text(String),
}

impl Argument {
    fn text(&self) -> String {
        match self {
            Argument::Integer(value) => value.to_string(),
            Argument::Float(value) => format!("{value:?}"),
            Argument::Text(text) => text.clone(),
        }
    }
}

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
    let about = |text: &dyn std::fmt::Display| usage(format!("{}: {text}", path.display()));
    let bytes = run::read(path)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| about(&"is not text"))?;
    let script: Script = toml::from_str(text).map_err(|error| about(&error))?;
    if script.version != VERSION {
        return Err(about(&format!("version {} of the form is not known; this is version {VERSION}", script.version)));
    }
    if script.launch.is_empty() {
        return Err(about(&"it has no [[launch]]"));
    }
    let base = path.parent().unwrap_or(Path::new(""));
    let paths = images(&script, base).map_err(|error| about(&error))?;

    let files: Vec<run::Bytes> = paths.iter().map(|path| run::read(path)).collect::<Result<_, _>>()?;
    let contents: Vec<Contents> =
        paths.iter().zip(&files).map(|(path, bytes)| run::open(path, bytes)).collect::<Result<_, _>>()?;
    let (tracer, faults) = run::tracer(args);
    let mut device: Option<Arc<Device>> = None;
    let mut codes = Vec::new();
    for (index, (path, contents)) in paths.iter().zip(&contents).enumerate() {
        let kernels: Vec<&str> = script
            .launch
            .iter()
            .filter(|l| at(&paths, &script, l, base) == Some(index))
            .map(|l| l.kernel.as_str())
            .collect();
        let has = |entry: &Entry| {
            CodeObject::parse(&entry.data).is_ok_and(|code| kernels.iter().all(|name| names::find(&code, name).is_ok()))
        };
        let entry = match &device {
            None => {
                let (entry, opened) = choose(contents, path, args, &tracer, &has)?;
                device = Some(opened);
                entry
            }
            Some(device) => choose_on(device, contents, path, args, &has)?,
        };
        codes.push(run::parse(path, entry)?);
    }
    let Some(device) = device else { return Err(about(&"it has no image")) };
    for (path, code) in paths.iter().zip(&codes) {
        run::tell(args, path, code, &device);
    }

    let mut memory = Memory::new(base);
    for (name, text) in &script.buffers {
        let spec: BufferSpec = text.parse().map_err(|error| about(&format!("buffer {name}: {error}")))?;
        if name.parse::<ArgSpec>().is_ok() {
            return Err(about(&format!("buffer {name}: that name reads as an argument")));
        }
        memory.add(None, name.clone(), None, &spec, &format!("buffer {name}"))?;
    }
    for (symbol, what) in &script.define {
        let code = codes.iter().find(|code| code.symbol(symbol).is_some()).or(codes.first());
        if let Some(code) = code {
            memory.define(code, symbol, what)?;
        }
    }
    for (which, to) in &script.dump {
        memory.dump(which, to)?;
    }
    for (which, what) in &script.expect {
        memory.expect(which, what)?;
    }
    let tolerance = script.tolerance.as_deref().map(tolerance).transpose().map_err(|error| about(&error))?;
    let mut planned = Vec::new();
    for (index, entered) in script.launch.iter().enumerate() {
        let image = at(&paths, &script, entered, base).unwrap_or_default();
        let plan = plan(entered, image, &codes[image], &paths[image], &memory, base);
        planned.push(plan.map_err(|failure| {
            Failure::new(failure.status, format!("{}: launch {index}: {}", path.display(), failure.text))
        })?);
    }

    let largest = planned.iter().map(|planned| planned.kernel.metadata.kernarg_segment_size).max().unwrap_or(0);
    let options = GpuOptions {
        stack_size: args.stack_size,
        faults: Some(faults),
        kernarg_bytes: u64::from(largest).max(4096),
        timestamps: planned.iter().any(|planned| planned.repeat > 1),
        ..GpuOptions::default()
    };
    let mut gpu = Gpu::open(&device, options)?;
    let memory = memory.allocate(&device)?;
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
    for planned in &planned {
        runner.reserve(&planned.kernel, &planned.shape)?;
    }
    let mut steps = Vec::new();
    for planned in &planned {
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
        runner.segment(&images[planned.image], &services[planned.image], &step)?;
        steps.push(step);
    }
    for (index, kernel) in before.iter().enumerate() {
        if let Some(kernel) = kernel {
            runner.run(&images[index], &mut services[index], &Step::once(kernel))?;
        }
    }
    for (planned, step) in planned.iter().zip(&steps) {
        let image = &images[planned.image];
        planned.globals.set(image)?;
        runner.run(image, &mut services[planned.image], step)?;
        planned.globals.dump(image)?;
    }
    for (index, kernel) in after.iter().enumerate() {
        if let Some(kernel) = kernel {
            runner.run(&images[index], &mut services[index], &Step::once(kernel))?;
        }
    }
    let same = memory.finish(tolerance.unwrap_or_default())?;
    Ok(if same { 0 } else { DIFFERS })
}

/// The images, each once.
fn images(script: &Script, base: &Path) -> Result<Vec<PathBuf>, String> {
    let mut paths = Vec::new();
    for (index, launch) in script.launch.iter().enumerate() {
        let image = launch.image.as_ref().or(script.image.as_ref());
        let image = base.join(image.ok_or_else(|| format!("launch {index}: neither it nor the file has an image"))?);
        if !paths.contains(&image) {
            paths.push(image);
        }
    }
    Ok(paths)
}

/// Which of them a launch runs.
fn at(paths: &[PathBuf], script: &Script, launch: &Entered, base: &Path) -> Option<usize> {
    let image = base.join(launch.image.as_ref().or(script.image.as_ref())?);
    paths.iter().position(|path| *path == image)
}

/// Checks a launch against its kernel and the buffers there are.
fn plan<'c>(
    entered: &Entered,
    image: usize,
    code: &CodeObject<'c>,
    path: &Path,
    memory: &Memory,
    base: &Path,
) -> Result<Planned<'c>, Failure> {
    let kernel = find(code, &entered.kernel, path)?.clone();
    let size = |size: &Option<Size>, name: &str| {
        let size = size.as_ref().map(Size::dimensions).transpose();
        size.map_err(|error| usage(format!("{name}: {error}")))
    };
    let (groups, items) = (size(&entered.groups, "groups")?, size(&entered.items, "items")?);
    if groups.is_some() == items.is_some() {
        return Err(usage("it needs a grid: groups or items, and not both"));
    }
    let shape = shape(&kernel, size(&entered.group_size, "group-size")?, groups, items)?;
    let (mut arguments, mut buffers) = (Vec::new(), Vec::new());
    for (index, argument) in entered.args.iter().enumerate() {
        let text = argument.text();
        if let Some(spec) = memory.spec(&text) {
            arguments.push(ArgSpec { text: text.clone(), what: What::Buffer(spec.clone()) });
            buffers.push(Some(text));
            continue;
        }
        let spec: ArgSpec =
            text.parse().map_err(|error| usage(format!("argument {index}: {error}, or the name of a buffer")))?;
        if matches!(spec.what, What::Buffer(_)) {
            return Err(usage(format!("argument {index}, '{text}': give it a name under [buffers] and write that")));
        }
        arguments.push(spec);
        buffers.push(None);
    }
    spec::check(&kernel.metadata, &arguments, |_| Ok::<_, Failure>(0))?;
    let set: Vec<(String, String)> =
        entered.set_global.iter().map(|(name, value)| (name.clone(), value.text())).collect();
    let globals = Globals::read(code, &set, &entered.dump_global, base)?;
    let repeat = entered.repeat.unwrap_or(1);
    if repeat == 0 {
        return Err(usage("repeat is 0, 1 or more is possible"));
    }
    Ok(Planned { image, kernel, shape, arguments, buffers, dynamic_lds: entered.dynamic_lds, repeat, globals })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"
version = 1
image = "a.co"
tolerance = "1e-3,2"
[buffers]
x = "f32[4]=iota"
[define]
symbol = "x"
[[launch]]
kernel = "k"
groups = [2, 3]
group-size = 64
args = ["x", 2.0, -1, "u32:5"]
dynamic-lds = 128
repeat = 3
set-global = { counter = 41, text = "hex:00" }
dump-global = ["counter:u32"]
[[launch]]
image = "b.co"
kernel = "l"
items = 100
[dump]
x = "-"
[expect]
x = "x.npy"
"#;

    #[test]
    fn a_whole_file() {
        let script: Script = toml::from_str(WHOLE).unwrap();
        assert_eq!(images(&script, Path::new("/f")), Ok(vec!["/f/a.co".into(), "/f/b.co".into()]));
        let launch = &script.launch[0];
        let texts: Vec<String> = launch.args.iter().map(Argument::text).collect();
        assert_eq!(texts, ["x", "2.0", "-1", "u32:5"]);
        assert_eq!(launch.groups.as_ref().unwrap().dimensions(), Ok([2, 3, 1]));
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for (from, to, words) in [
            ("repeat = 3", "repeats = 3", "unknown field `repeats`"),
            ("[dump]", "[dumps]", "unknown field `dumps`"),
            ("dynamic-lds = 128", "dynamic-lds = -1", "dynamic-lds"),
            ("kernel = \"k\"", "", "missing field `kernel`"),
            ("version = 1", "", "missing field `version`"),
        ] {
            let error = toml::from_str::<Script>(&WHOLE.replace(from, to)).unwrap_err().to_string();
            assert!(error.contains(words), "{words}: {error}");
        }
        for size in [Size::One(0), Size::Many(vec![]), Size::Many(vec![1; 4]), Size::Many(vec![2, 0])] {
            assert!(size.dimensions().is_err(), "{size:?}");
        }
    }
}

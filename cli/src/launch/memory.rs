//! The buffers of a launch, the image's variables, and what becomes of them.

use super::{LaunchArgs, usage};
use crate::exit::{ENVIRONMENT, Failure, REFUSED};
use crate::output::{clear_progress, say};
use elf::{CodeObject, Kernel};
use kfd::{Buffer, Device};
use loader::Image;
use loader::spec::{self, ArgSpec, BufferSpec, Direction, Element, Init, Tolerance, What, npy};
use std::collections::HashMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// A buffer that is named.
struct Named {
    /// Number of the argument; none for a symbol.
    index: Option<usize>,
    /// What messages call it.
    name: String,
    /// Other names.
    also: Option<String>,
    spec: BufferSpec,
    bytes: Vec<u8>,
    buffer: Option<Buffer>,
    dumps: Vec<String>,
    /// What it is expected to be.
    expected: Vec<Vec<u8>>,
}

/// All of them.
pub struct Memory {
    named: Vec<Named>,
    /// Addresses of undefined symbols.
    pub bindings: HashMap<String, u64>,
    globals: Vec<(String, u64, Vec<u8>)>,
    global_dumps: Vec<(String, u64, u64, Option<Element>)>,
}

/// Reads a file that an argument names.
fn file(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

impl Memory {
    /// Reads contents and checks names; nothing is allocated.
    pub fn read(code: &CodeObject, kernel: &Kernel, launch: &LaunchArgs) -> Result<Memory, Failure> {
        let mut memory =
            Memory { named: Vec::new(), bindings: HashMap::new(), globals: Vec::new(), global_dumps: Vec::new() };
        let explicit: Vec<_> = kernel.metadata.args.iter().filter(|arg| !arg.value_kind.is_hidden()).collect();
        for (index, spec) in launch.arguments.iter().enumerate() {
            if let What::Buffer(buffer) = &spec.what {
                let also = explicit.get(index).and_then(|arg| arg.name).map(str::to_owned);
                memory.add(Some(index), index.to_string(), also, buffer, &spec.text)?;
            }
        }
        for (symbol, what) in &launch.define {
            if code.symbol(symbol).is_some_and(|symbol| symbol.vaddr().is_some()) {
                return Err(usage(format!("--define {symbol}: the image defines it; --set-global changes a variable")));
            }
            if what.contains('[') {
                let spec: BufferSpec = what.parse().map_err(|error| usage(format!("--define {symbol}: {error}")))?;
                memory.add(None, symbol.clone(), None, &spec, what)?;
            } else {
                let va = spec::unsigned(what).map_err(|error| usage(format!("--define {symbol}: {error}")))?;
                memory.bindings.insert(symbol.clone(), va);
            }
        }
        for (which, path) in &launch.dump {
            memory.find(which, "--dump")?.dumps.push(path.clone());
        }
        for (which, what) in &launch.expect {
            let named = memory.find(which, "--expect")?;
            let element = named.spec.element;
            let init = Init::parse(what, element).unwrap_or_else(|_| Init::File(what.into()));
            let count = (named.bytes.len() / element.size()) as u64;
            let bytes = init.bytes(element, Some(count), &file);
            named.expected.push(bytes.map_err(|error| usage(format!("--expect {which}: {error}")))?);
        }
        for (name, value) in &launch.set_global {
            let (vaddr, size) = variable(code, name, "--set-global")?;
            let bytes = global_bytes(value, size).map_err(|error| usage(format!("--set-global {name}: {error}")))?;
            if bytes.len() as u64 != size {
                let text = format!("--set-global {name}: {value} has {} bytes, the variable has {size}", bytes.len());
                return Err(usage(text));
            }
            memory.globals.push((name.clone(), vaddr, bytes));
        }
        for text in &launch.dump_global {
            let (name, element) = match text.rsplit_once(':').map(|(name, ty)| (name, Element::from_name(ty))) {
                Some((name, Some(element))) => (name, Some(element)),
                _ => (text.as_str(), None),
            };
            let (vaddr, size) = variable(code, name, "--dump-global")?;
            memory.global_dumps.push((name.to_owned(), vaddr, size, element));
        }
        Ok(memory)
    }

    fn add(
        &mut self,
        index: Option<usize>,
        name: String,
        also: Option<String>,
        spec: &BufferSpec,
        text: &str,
    ) -> Result<(), Failure> {
        let bytes = spec.bytes(&file).map_err(|error| usage(format!("{text}: {error}")))?;
        let (dumps, expected) = (Vec::new(), Vec::new());
        self.named.push(Named { index, name, also, spec: spec.clone(), bytes, buffer: None, dumps, expected });
        Ok(())
    }

    fn find(&mut self, which: &str, option: &str) -> Result<&mut Named, Failure> {
        let names: Vec<String> = self.named.iter().map(|named| named.name.clone()).collect();
        let found = self.named.iter_mut().find(|named| named.name == which || named.also.as_deref() == Some(which));
        found.ok_or_else(|| {
            let names = if names.is_empty() {
                "there are none".to_owned()
            } else {
                format!("buffers are {}", names.join(", "))
            };
            usage(format!("{option} {which}: no such buffer; {names}"))
        })
    }

    /// Allocates and fills the buffers.
    pub fn allocate(mut self, device: &Arc<Device>) -> Result<Memory, Failure> {
        for named in &mut self.named {
            let buffer = loader::host_visible(device, named.bytes.len() as u64, "argument")?;
            buffer.set_name(match named.index {
                Some(index) if named.also.is_none() => format!("buffer of argument {index}"),
                _ => format!("buffer '{}'", named.also.as_ref().unwrap_or(&named.name)),
            });
            buffer.write_bytes(0, &named.bytes)?;
            // Behind writes over the bus a read returns last.
            buffer.read_bytes(buffer.size() - 1, &mut [0])?;
            if named.index.is_none() {
                self.bindings.insert(named.name.clone(), buffer.va().0);
            }
            named.buffer = Some(buffer);
        }
        Ok(self)
    }

    /// Address of the buffer of an argument.
    pub fn address(&self, index: usize) -> Option<u64> {
        let named = self.named.iter().find(|named| named.index == Some(index))?;
        named.buffer.as_ref().map(|buffer| buffer.va().0)
    }

    /// Stores what `--set-global` says.
    pub fn set_globals(&self, image: &Image) -> Result<(), Failure> {
        for (_, vaddr, bytes) in &self.globals {
            image.write(*vaddr, bytes)?;
        }
        Ok(())
    }

    /// Writes, prints and compares; returns whether all is as expected.
    pub fn finish(&self, image: &Image, tolerance: Tolerance) -> Result<bool, Failure> {
        clear_progress();
        let mut same = true;
        for named in &self.named {
            let Some(buffer) = &named.buffer else { continue };
            let element = named.spec.element;
            let mut got = vec![0; named.bytes.len()];
            buffer.read_bytes(0, &mut got)?;
            let prints = named.spec.direction == Direction::Out && named.dumps.is_empty();
            for path in named.dumps.iter().map(String::as_str).chain(prints.then_some("-")) {
                dump(&named.name, element, &got, path)?;
            }
            let unchanged = (named.spec.direction == Direction::In).then_some((&named.bytes, Tolerance::default()));
            let wanted = named.expected.iter().map(|bytes| (bytes, tolerance));
            for (want, tolerance) in unchanged.into_iter().chain(wanted) {
                if let Some(found) = spec::compare(element, &got, want, tolerance) {
                    same = false;
                    let first: Vec<String> = found
                        .first
                        .iter()
                        .map(|(index, got, want)| format!("\n  [{index}] is {got}, expected {want}"))
                        .collect();
                    say(&format!(
                        "buffer {}: {} of {} elements differ{}",
                        named.name,
                        found.count,
                        found.of,
                        first.concat()
                    ));
                }
            }
        }
        for (name, vaddr, size, element) in &self.global_dumps {
            let mut bytes = vec![0; *size as usize];
            image.read(*vaddr, &mut bytes)?;
            match element {
                Some(element) => dump(name, *element, &bytes, "-")?,
                None => {
                    let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                    print(format!("{name}: {}\n", hex.join(" ")).as_bytes())?;
                }
            }
        }
        Ok(same)
    }
}

fn variable(code: &CodeObject, name: &str, option: &str) -> Result<(u64, u64), Failure> {
    let symbol = code.symbol(name).and_then(|symbol| Some((symbol.vaddr()?, symbol.size)));
    symbol.filter(|(_, size)| *size > 0).ok_or_else(|| {
        let names: Vec<&str> = code.globals().map(|symbol| symbol.name).take(16).collect();
        let names = if names.is_empty() {
            "it has none that others see".to_owned()
        } else {
            format!("they are {}", names.join(", "))
        };
        Failure::new(REFUSED, format!("{option} {name}: the image has no such variable; {names}"))
    })
}

/// The bytes for a variable.
fn global_bytes(text: &str, size: u64) -> Result<Vec<u8>, String> {
    match text.parse::<ArgSpec>()?.what {
        What::Typed { bytes, .. } | What::Bytes(bytes) => Ok(bytes),
        What::Buffer(buffer) => buffer.bytes(&file),
        What::Address(va) => Ok(va.to_le_bytes().to_vec()),
        What::Number => {
            let element = u32::try_from(size).ok().and_then(Element::unsigned);
            let element =
                element.ok_or_else(|| format!("no number has {size} bytes: write TYPE:VALUE or hex:BYTES"))?;
            match spec::integer(text)? {
                value if value < 0 && value >= -(1i128 << (8 * size - 1)) => {
                    Ok(value.to_le_bytes()[..element.size()].to_vec())
                }
                _ => element.parse(text),
            }
        }
        What::Local(_) => Err("LDS has no place in a variable".to_owned()),
    }
}

/// Writes elements to a file, or as text to stdout.
fn dump(name: &str, element: Element, bytes: &[u8], path: &str) -> Result<(), Failure> {
    if path == "-" {
        let whole = bytes.chunks_exact(element.size());
        let values: Vec<String> = whole.map(|value| element.show(value)).collect();
        return print(format!("{name}: {}\n", values.join(" ")).as_bytes());
    }
    let is_npy = Path::new(path).extension().is_some_and(|extension| extension == "npy");
    let written = if is_npy { npy::write(element, bytes) } else { bytes.to_vec() };
    std::fs::write(path, written).map_err(|error| Failure::new(ENVIRONMENT, format!("{path}: {error}")))
}

fn print(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(bytes).and_then(|()| stdout.flush());
    written.map_err(|error| Failure::new(ENVIRONMENT, format!("standard output: {error}")))
}

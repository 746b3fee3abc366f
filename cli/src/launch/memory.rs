//! The buffers of a launch and what becomes of them.

use super::{LaunchArgs, usage};
use crate::exit::{ENVIRONMENT, Failure};
use crate::output::{clear_progress, say};
use elf::{CodeObject, Kernel};
use kfd::{Buffer, Device};
use loader::spec::{self, BufferSpec, Direction, Element, Init, Tolerance, What, npy};
use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
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
    /// Symbols that are bound to a buffer of another name.
    symbols: Vec<(String, String)>,
    /// Where relative paths start.
    base: PathBuf,
}

/// Reads a file that an argument names.
pub fn file(base: &Path) -> impl Fn(&Path) -> Result<Vec<u8>, String> + use<'_> {
    move |path| {
        let path = base.join(path);
        std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
    }
}

impl Memory {
    /// None yet. Paths that are not absolute start at `base`.
    pub fn new(base: &Path) -> Memory {
        Memory { named: Vec::new(), bindings: HashMap::new(), symbols: Vec::new(), base: base.to_owned() }
    }

    /// What the options of one launch say. Reads contents and checks names; nothing is allocated.
    pub fn read(code: &CodeObject, kernel: &Kernel, launch: &LaunchArgs) -> Result<Memory, Failure> {
        let mut memory = Memory::new(Path::new(""));
        let explicit: Vec<_> = kernel.metadata.args.iter().filter(|arg| !arg.value_kind.is_hidden()).collect();
        for (index, spec) in launch.arguments.iter().enumerate() {
            if let What::Buffer(buffer) = &spec.what {
                let also = explicit.get(index).and_then(|arg| arg.name).map(str::to_owned);
                memory.add(Some(index), index.to_string(), also, buffer, &spec.text)?;
            }
        }
        for (symbol, what) in &launch.define {
            memory.define(code, symbol, what)?;
        }
        for (which, path) in &launch.dump {
            memory.dump(which, path)?;
        }
        for (which, what) in &launch.expect {
            memory.expect(which, what)?;
        }
        Ok(memory)
    }

    /// Gives a symbol an address, or a buffer: one there is, or one of its own.
    pub fn define(&mut self, code: &CodeObject, symbol: &str, what: &str) -> Result<(), Failure> {
        if code.symbol(symbol).is_some_and(|symbol| symbol.vaddr().is_some()) {
            return Err(usage(format!("--define {symbol}: the image defines it; --set-global changes a variable")));
        }
        if code.symbol(symbol).is_none() {
            return Err(usage(format!("--define {symbol}: the image does not need such a symbol")));
        }
        if self.spec(what).is_some() {
            self.symbols.push((symbol.to_owned(), what.to_owned()));
        } else if what.contains('[') {
            let spec: BufferSpec = what.parse().map_err(|error| usage(format!("--define {symbol}: {error}")))?;
            self.add(None, symbol.to_owned(), None, &spec, what)?;
            self.symbols.push((symbol.to_owned(), symbol.to_owned()));
        } else {
            let va = spec::unsigned(what).map_err(|error| usage(format!("--define {symbol}: {error}")))?;
            self.bindings.insert(symbol.to_owned(), va);
        }
        Ok(())
    }

    /// Writes a buffer to a file at the end.
    pub fn dump(&mut self, which: &str, path: &str) -> Result<(), Failure> {
        let path = if path == "-" { path.to_owned() } else { self.base.join(path).to_string_lossy().into_owned() };
        self.find(which, "--dump")?.dumps.push(path);
        Ok(())
    }

    /// Compares a buffer at the end.
    pub fn expect(&mut self, which: &str, what: &str) -> Result<(), Failure> {
        let base = self.base.clone();
        let named = self.find(which, "--expect")?;
        let element = named.spec.element;
        let init = Init::parse(what, element).unwrap_or_else(|_| Init::File(what.into()));
        let count = (named.bytes.len() / element.size()) as u64;
        let bytes = init.bytes(element, Some(count), &file(&base));
        named.expected.push(bytes.map_err(|error| usage(format!("--expect {which}: {error}")))?);
        Ok(())
    }

    /// How a buffer is declared.
    pub fn spec(&self, name: &str) -> Option<&BufferSpec> {
        self.named.iter().find(|named| named.index.is_none() && named.name == name).map(|named| &named.spec)
    }

    /// Address of a buffer by its name.
    pub fn address_of(&self, name: &str) -> Option<u64> {
        let named = self.named.iter().find(|named| named.name == name)?;
        named.buffer.as_ref().map(|buffer| buffer.va().0)
    }

    /// Adds a buffer.
    pub fn add(
        &mut self,
        index: Option<usize>,
        name: String,
        also: Option<String>,
        spec: &BufferSpec,
        text: &str,
    ) -> Result<(), Failure> {
        let bytes = spec.bytes(&file(&self.base)).map_err(|error| usage(format!("{text}: {error}")))?;
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
            named.buffer = Some(buffer);
        }
        for (symbol, name) in &self.symbols {
            if let Some(va) = self.address_of(name) {
                self.bindings.insert(symbol.clone(), va);
            }
        }
        Ok(self)
    }

    /// Address of the buffer of an argument.
    pub fn address(&self, index: usize) -> Option<u64> {
        let named = self.named.iter().find(|named| named.index == Some(index))?;
        named.buffer.as_ref().map(|buffer| buffer.va().0)
    }

    /// Writes, prints and compares; returns whether all is as expected.
    pub fn finish(&self, tolerance: Tolerance) -> Result<bool, Failure> {
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
        Ok(same)
    }
}

/// Writes elements to a file, or as text to stdout.
pub fn dump(name: &str, element: Element, bytes: &[u8], path: &str) -> Result<(), Failure> {
    if path == "-" {
        let whole = bytes.chunks_exact(element.size());
        let values: Vec<String> = whole.map(|value| element.show(value)).collect();
        return print(format!("{name}: {}\n", values.join(" ")).as_bytes());
    }
    let is_npy = Path::new(path).extension().is_some_and(|extension| extension == "npy");
    let written = if is_npy { npy::write(element, bytes) } else { bytes.to_vec() };
    std::fs::write(path, written).map_err(|error| Failure::new(ENVIRONMENT, format!("{path}: {error}")))
}

/// Prints to stdout.
pub fn print(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(bytes).and_then(|()| stdout.flush());
    written.map_err(|error| Failure::new(ENVIRONMENT, format!("standard output: {error}")))
}

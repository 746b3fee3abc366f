//! The buffers of a launch and what becomes of them.

use super::dump::Dump;
use super::{LaunchArgs, usage};
use crate::exit::{Failure, TIMEOUT, USAGE};
use crate::input::{Input, InputError};
use crate::output::{self, clear_progress, say};
use elf::{CodeObject, Kernel, Place};
use kfd::{Buffer, Device};
use loader::spec::{self, BufferSpec, Contents, Differences, Direction, Init, Tolerance, What};
use std::collections::HashMap;
use std::os::unix::fs::FileTypeExt;
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
    contents: Contents,
    buffer: Option<Buffer>,
    dumps: Vec<Dump>,
    /// What it is expected to be.
    expected: Option<Contents>,
}

/// Bytes that are looked at or written at a time: whole elements of every type.
const PIECE: usize = 1 << 20;

/// Where pieces of a buffer start, and their bytes.
fn spans(size: u64) -> impl Iterator<Item = (u64, usize)> {
    (0..size).step_by(PIECE).map(move |at| (at, (size - at).min(PIECE as u64) as usize))
}

impl Named {
    /// The elements a kernel left, a piece at a time, with the number of the first.
    fn pieces(&self, buffer: &Buffer, mut each: impl FnMut(u64, &[u8]) -> Result<(), Failure>) -> Result<(), Failure> {
        let mut piece = vec![0; PIECE];
        for (at, length) in spans(self.contents.size()) {
            if let Some(failure) = output::time_is_over(&format!("buffer {} was written or compared", self.name)) {
                return Err(failure);
            }
            buffer.read_bytes(at, &mut piece[..length])?;
            each(at / self.spec.element.size() as u64, &piece[..length])?;
        }
        Ok(())
    }

    /// Writes what the kernel is to find.
    fn fill(&self, buffer: &Buffer, input: &Input) -> Result<(), Failure> {
        let size = self.contents.size();
        let mut piece = vec![0; PIECE];
        for (at, length) in spans(size) {
            if let Some(limit) = input.over() {
                let text = format!(
                    "--timeout {} s are over while buffer {} is being filled: {at} of {size} bytes are",
                    limit.as_secs_f64(),
                    self.name
                );
                return Err(Failure::new(TIMEOUT, text));
            }
            // Zeros are written as well: kernels before the stable updates of 6.12 hand out device memory as it was left
            // (the driver's VRAM_CLEARED came to KFD's allocations late).
            if self.contents.is_zero() {
                buffer.fill(at, length as u64, 0)?;
            } else {
                self.contents.write(at / self.spec.element.size() as u64, &mut piece[..length]);
                buffer.write_bytes(at, &piece[..length])?;
            }
        }
        // Behind writes over the bus a read returns last.
        Ok(buffer.read_bytes(buffer.size() - 1, &mut [0])?)
    }

    /// Compares what the kernel left with what it should be.
    fn differences(
        &self,
        buffer: &Buffer,
        wanted: &Contents,
        tolerance: Tolerance,
        exact: bool,
    ) -> Result<Option<Differences>, Failure> {
        let element = self.spec.element;
        let mut all = Differences { count: 0, of: wanted.count() as usize, first: Vec::new() };
        let mut want = vec![0; PIECE];
        self.pieces(buffer, |first, got| {
            let want = &mut want[..got.len()];
            wanted.write(first, want);
            // Equal bytes are equal numbers, and most pieces are.
            if *got == *want {
                return Ok(());
            }
            if let Some(found) = spec::compare(element, got, want, tolerance, exact) {
                all.count += found.count;
                let shown = Differences::LISTED - all.first.len().min(Differences::LISTED);
                let moved = found.first.into_iter().map(|(index, got, want)| (first as usize + index, got, want));
                all.first.extend(moved.take(shown));
            }
            Ok(())
        })?;
        Ok((all.count > 0).then_some(all))
    }
}

/// All of them.
pub struct Memory {
    named: Vec<Named>,
    /// Addresses of undefined symbols.
    pub bindings: HashMap<String, u64>,
    /// Symbols that are bound to a buffer of another name.
    symbols: Vec<(String, String)>,
    files: Files,
}

/// The files that a command line or a script names.
#[derive(Clone)]
pub struct Files {
    /// Where relative paths start.
    base: PathBuf,
    input: Input,
    /// What stands in front of an option's name: nothing in a script.
    dashes: &'static str,
}

impl Files {
    /// Those of a command line.
    pub fn of_command(input: Input) -> Files {
        Files { base: PathBuf::new(), input, dashes: "--" }
    }

    /// Those of a script: paths that are not absolute start at `base`.
    pub fn of_script(base: &Path, input: Input) -> Files {
        Files { base: base.to_owned(), input, dashes: "" }
    }

    /// How messages call an option's value: `--dump x` of the command line is `dump x` in a script.
    pub fn option(&self, name: &str, value: &str) -> String {
        format!("{}{name} {value}", self.dashes)
    }

    /// A path.
    pub fn path(&self, path: &Path) -> PathBuf {
        self.base.join(path)
    }

    /// Reads a file: whole, or enough to tell whether it has more than the bytes that are wanted. Devices have no end, and
    /// are read no further than that.
    pub fn read(&self, path: &Path, wanted: Option<u64>) -> Result<Vec<u8>, Failure> {
        let path = self.path(path);
        let is_device = || std::fs::metadata(&path).is_ok_and(|metadata| metadata.file_type().is_char_device());
        let most = wanted.map(|wanted| if is_device() { wanted } else { spec::enough(wanted) });
        self.input.read(&path, most).map_err(|error| {
            let failure = error.failure(USAGE, path.display());
            match error {
                InputError::Endless => {
                    Failure { text: format!("{}, or TYPE[COUNT] say how much is needed", failure.text), ..failure }
                }
                _ => failure,
            }
        })
    }
}

/// What was wrong with an option's value.
pub fn about(what: &str, failure: Failure) -> Failure {
    Failure::new(failure.status, format!("{what}: {}", failure.text))
}

impl Memory {
    /// None yet.
    pub fn new(files: Files) -> Memory {
        Memory { named: Vec::new(), bindings: HashMap::new(), symbols: Vec::new(), files }
    }

    /// What the options of one launch say. Reads contents and checks names; nothing is allocated.
    pub fn read(code: &CodeObject, kernel: &Kernel, launch: &LaunchArgs, files: &Files) -> Result<Memory, Failure> {
        let mut memory = Memory::new(files.clone());
        let explicit: Vec<_> = kernel.metadata.args.iter().filter(|arg| !arg.value_kind.is_hidden()).collect();
        for (index, spec) in launch.arguments.iter().enumerate() {
            if let What::Buffer(buffer) = &spec.what {
                let also = explicit.get(index).and_then(|arg| arg.name).map(str::to_owned);
                memory.add(Some(index), index.to_string(), also, buffer, &spec.text)?;
            }
        }
        for (symbol, what) in &launch.define {
            memory.define(&[code], symbol, what)?;
        }
        for (which, path) in &launch.dump {
            memory.dump(which, path)?;
        }
        for (which, what) in &launch.expect {
            memory.expect(which, what)?;
        }
        Ok(memory)
    }

    /// Gives a symbol an address, or a buffer: one there is, or one of its own. One of `codes` must need it.
    pub fn define(&mut self, codes: &[&CodeObject], symbol: &str, what: &str) -> Result<(), Failure> {
        let option = self.files.option("define", symbol);
        let found = || codes.iter().filter_map(|code| code.symbol(symbol));
        if !found().any(|symbol| symbol.place == Place::Undefined) {
            let defined = found().next().is_some();
            return Err(usage(match (defined, codes.len()) {
                (true, _) => {
                    format!("{option}: the image defines it; {}set-global changes a variable", self.files.dashes)
                }
                (false, 1) => format!("{option}: the image does not need such a symbol"),
                (false, _) => format!("{option}: no image needs such a symbol"),
            }));
        }
        if self.bindings.contains_key(symbol) || self.symbols.iter().any(|(other, _)| other == symbol) {
            return Err(usage(format!("{option}: it is given twice")));
        }
        if self.spec(what).is_some() {
            self.symbols.push((symbol.to_owned(), what.to_owned()));
        } else if what.contains('[') {
            let spec: BufferSpec = what.parse().map_err(|error| usage(format!("{option}: {error}")))?;
            self.add(None, symbol.to_owned(), None, &spec, &option)?;
            self.symbols.push((symbol.to_owned(), symbol.to_owned()));
        } else {
            let va = spec::unsigned(what).map_err(|error| {
                let forms = "write an address, TYPE[COUNT]=CONTENTS, or in a script the name of a buffer";
                usage(format!("{option}: {error}; {forms}"))
            })?;
            self.bindings.insert(symbol.to_owned(), va);
        }
        Ok(())
    }

    /// Writes a buffer to a file at the end.
    pub fn dump(&mut self, which: &str, path: &str) -> Result<(), Failure> {
        let place = self.files.path(Path::new(path));
        let others: Vec<&Dump> = self.named.iter().flat_map(|named| &named.dumps).collect();
        let dump =
            Dump::open(path, &place, &others).map_err(|failure| about(&self.files.option("dump", which), failure))?;
        let option = self.files.option("dump", &format!("{which}={path}"));
        let named = self.find(which, "dump")?;
        if dump.is_stdout() && named.dumps.iter().any(Dump::is_stdout) {
            return Err(usage(format!("{option}: it is given twice")));
        }
        named.dumps.push(dump);
        Ok(())
    }

    /// Compares a buffer at the end.
    pub fn expect(&mut self, which: &str, what: &str) -> Result<(), Failure> {
        let files = self.files.clone();
        let option = files.option("expect", which);
        let named = self.find(which, "expect")?;
        if named.expected.is_some() {
            return Err(usage(format!("{option}: it is given twice")));
        }
        let element = named.spec.element;
        let init = match Init::parse(what, element) {
            Ok(init) => init,
            Err(_) if files.path(Path::new(what)).exists() => Init::File(what.into()),
            Err(error) => {
                return Err(usage(format!(
                    "{option}={what}: there is no file {}, and as contents: {error}",
                    files.path(Path::new(what)).display()
                )));
            }
        };
        let contents = init.contents(element, Some(named.contents.count()), |path, most| files.read(path, most));
        named.expected = Some(contents.map_err(|failure: Failure| about(&option, failure))?);
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
        if self.named.iter().any(|named| named.name == name) {
            return Err(usage(format!("{text}: there is a buffer of that name already")));
        }
        let contents = spec.contents(|path, most| self.files.read(path, most));
        let contents = contents.map_err(|failure: Failure| about(text, failure))?;
        let (dumps, expected) = (Vec::new(), None);
        self.named.push(Named { index, name, also, spec: spec.clone(), contents, buffer: None, dumps, expected });
        Ok(())
    }

    fn find(&mut self, which: &str, option: &str) -> Result<&mut Named, Failure> {
        let names: Vec<String> = self.named.iter().map(|named| named.name.clone()).collect();
        let option = self.files.option(option, which);
        let found = self.named.iter_mut().find(|named| named.name == which || named.also.as_deref() == Some(which));
        found.ok_or_else(|| {
            let names = if names.is_empty() {
                "there are none".to_owned()
            } else {
                format!("buffers are {}", names.join(", "))
            };
            usage(format!("{option}: no such buffer; {names}"))
        })
    }

    /// Allocates and fills the buffers.
    pub fn allocate(mut self, device: &Arc<Device>) -> Result<Memory, Failure> {
        for named in &mut self.named {
            let buffer = loader::host_visible(device, named.contents.size(), "argument")?;
            buffer.set_name(match named.index {
                Some(index) if named.also.is_none() => format!("buffer of argument {index}"),
                _ => format!("buffer '{}'", named.also.as_ref().unwrap_or(&named.name)),
            });
            named.fill(&buffer, &self.files.input)?;
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

    /// Writes, prints and compares; returns whether all is as expected. A file that cannot be written ends it only after
    /// everything else was told.
    pub fn finish(&mut self, tolerance: Tolerance) -> Result<bool, Failure> {
        clear_progress();
        let mut same = true;
        let mut failed = None;
        for named in &mut self.named {
            let Some(buffer) = named.buffer.take() else { continue };
            let mut dumps = std::mem::take(&mut named.dumps);
            if named.spec.direction == Direction::Out && dumps.is_empty() {
                dumps.push(Dump::stdout());
            }
            for mut dump in dumps {
                let begun = dump.begin(&named.name, named.spec.element, named.contents.count());
                let written = begun
                    .and_then(|()| named.pieces(&buffer, |_, piece| dump.piece(named.spec.element, piece)))
                    .and_then(|()| dump.end());
                if let Err(failure) = written {
                    // Nothing is said of a reader of standard output that has gone.
                    if !failure.text.is_empty() {
                        say(&failure.text);
                    }
                    failed.get_or_insert(failure);
                }
            }
            let unchanged = (named.spec.direction == Direction::In).then_some((&named.contents, true));
            let wanted = named.expected.iter().map(|contents| (contents, false));
            for (want, exact) in unchanged.into_iter().chain(wanted) {
                if let Some(found) = named.differences(&buffer, want, tolerance, exact)? {
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
        match failed {
            Some(failure) if failure.text.is_empty() => Err(failure),
            Some(failure) => {
                Err(Failure { text: "not every buffer could be written, see above".to_owned(), ..failure })
            }
            None => Ok(same),
        }
    }
}

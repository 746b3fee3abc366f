//! Code object metadata (LLVM AMDGPUUsage "Code Object Metadata", V3 to V6).

mod args;
mod kernel;

use std::fmt;

pub use args::{Access, AddressSpace, Arg, ValueKind};
pub use kernel::{KernelKind, KernelMetadata};

use crate::error::shown;
use crate::msgpack::{Problem, Reader};

/// What the metadata must say.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    /// A value that cannot be read, or is of the wrong type or range.
    #[error("metadata {path} (byte {position} of the note): {problem}")]
    Value {
        /// Which.
        path: Path,
        /// Where it starts.
        position: usize,
        /// Why.
        problem: Problem,
    },
    /// A key that must be there.
    #[error("metadata {path} is missing: it is required")]
    Missing {
        /// Which.
        path: Path,
    },
    /// A key that occurs once.
    #[error("metadata {path} is given twice")]
    Twice {
        /// Which.
        path: Path,
    },
    /// A value the rule does not allow.
    #[error("metadata {path} is {value}, must be {rule}")]
    Rule {
        /// Which.
        path: Path,
        /// As read.
        value: String,
        /// What it must be.
        rule: &'static str,
    },
    /// Bytes behind the root map.
    #[error("metadata: {bytes} bytes follow the root map, which ends at byte {position} of the note")]
    Trailing {
        /// End of the root map.
        position: usize,
        /// Bytes behind it.
        bytes: usize,
    },
    /// An argument outside the kernarg segment.
    #[error("metadata {path} is {offset} with a size of {size}: must end inside the kernarg segment's {segment} bytes")]
    ArgOutside {
        /// Its offset.
        path: Path,
        /// Its value.
        offset: u32,
        /// `.size`.
        size: u32,
        /// `.kernarg_segment_size`.
        segment: u32,
    },
    /// Two arguments at one place.
    #[error("metadata {path} is {offset}: overlaps argument {other}, which ends at {end}")]
    ArgOverlap {
        /// Offset of the second.
        path: Path,
        /// Its value.
        offset: u32,
        /// Number of the first.
        other: usize,
        /// Where that ends.
        end: u64,
    },
    /// A size the kind does not have.
    #[error("metadata {path} is {size}, must be {rule} for {kind}")]
    ArgSize {
        /// Its size.
        path: Path,
        /// As read.
        size: u32,
        /// What it must be.
        rule: u32,
        /// `.value_kind`.
        kind: String,
    },
}

/// Names a value of the metadata, as `amdhsa.kernels[3].args[0].offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Path {
    kernel: Option<u32>,
    arg: Option<u32>,
    key: &'static str,
    element: Option<u32>,
}

impl Path {
    fn root(key: &'static str) -> Path {
        Path { key, ..Path::default() }
    }

    fn of_kernel(kernel: u32) -> Path {
        Path { kernel: Some(kernel), ..Path::default() }
    }

    fn arg(self, arg: u32) -> Path {
        Path { arg: Some(arg), ..self }
    }

    fn key(self, key: &'static str) -> Path {
        Path { key, ..self }
    }

    fn element(self, element: u32) -> Path {
        Path { element: Some(element), ..self }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(kernel) = self.kernel {
            write!(f, "amdhsa.kernels[{kernel}]")?;
        }
        if let Some(arg) = self.arg {
            write!(f, ".args[{arg}]")?;
        }
        match (self.kernel, self.key) {
            (None, "") => f.write_str("root")?,
            (_, key) => f.write_str(key)?,
        }
        match self.element {
            Some(element) => write!(f, "[{element}]"),
            None => Ok(()),
        }
    }
}

/// Reads with `f`, and names the value if that fails.
fn read<'a, T>(
    reader: &mut Reader<'a>,
    path: Path,
    f: impl FnOnce(&mut Reader<'a>) -> Result<T, Problem>,
) -> Result<T, MetadataError> {
    let position = reader.position();
    f(reader).map_err(|problem| MetadataError::Value { path, position, problem })
}

/// Puts a value in its place, which has to be empty.
fn set<T>(place: &mut Option<T>, value: T, path: Path) -> Result<(), MetadataError> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(MetadataError::Twice { path }),
    }
}

/// A number of up to 32 bits.
fn u32(reader: &mut Reader<'_>) -> Result<u32, Problem> {
    reader.uint(u64::from(u32::MAX)).map(|value| value as u32)
}

/// An array of three numbers.
fn triple(reader: &mut Reader<'_>, path: Path) -> Result<[u32; 3], MetadataError> {
    const THREE: &str = "an array of 3";
    match read(reader, path, Reader::array)? {
        3 => {}
        count => return Err(MetadataError::Rule { path, value: format!("an array of {count}"), rule: THREE }),
    }
    let mut values = [0; 3];
    for (i, value) in (0..).zip(&mut values) {
        *value = read(reader, path.element(i), u32)?;
    }
    Ok(values)
}

/// An array of two numbers.
fn pair(reader: &mut Reader<'_>, path: Path) -> Result<[u32; 2], MetadataError> {
    match read(reader, path, Reader::array)? {
        2 => {}
        count => {
            return Err(MetadataError::Rule { path, value: format!("an array of {count}"), rule: "an array of 2" });
        }
    }
    Ok([read(reader, path.element(0), u32)?, read(reader, path.element(1), u32)?])
}

/// The metadata of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata<'a> {
    /// `amdhsa.target`: GCC leaves it out.
    pub target: Option<&'a str>,
    /// `amdhsa.printf`, as they are: the format strings of device `printf`, with ids and sizes in front.
    pub printf: Vec<&'a str>,
    /// `amdhsa.kernels`.
    pub kernels: Vec<KernelMetadata<'a>>,
}

impl<'a> Metadata<'a> {
    /// Reads a metadata note, and adds its kernels and format strings to those of the notes before.
    pub fn add_note(&mut self, note: &'a [u8]) -> Result<(), MetadataError> {
        let mut reader = Reader::new(note);
        let (mut version, mut target, mut printf, mut kernels) = (None, None, None, None);
        let root = Path::default();
        for _ in 0..read(&mut reader, root, Reader::map)? {
            match read(&mut reader, root, Reader::str_bytes)? {
                b"amdhsa.version" => {
                    let path = Path::root("amdhsa.version");
                    set(&mut version, pair(&mut reader, path)?, path)?;
                }
                b"amdhsa.target" => {
                    let path = Path::root("amdhsa.target");
                    set(&mut target, read(&mut reader, path, Reader::str)?, path)?;
                }
                b"amdhsa.printf" => {
                    let path = Path::root("amdhsa.printf");
                    set(&mut printf, (), path)?;
                    for i in 0..read(&mut reader, path, Reader::array)? {
                        self.printf.push(read(&mut reader, path.element(i), Reader::str)?);
                    }
                }
                b"amdhsa.kernels" => {
                    let path = Path::root("amdhsa.kernels");
                    set(&mut kernels, (), path)?;
                    for _ in 0..read(&mut reader, path, Reader::array)? {
                        // A note has less than 2^32 bytes, and so have all of them kernels.
                        let kernel = kernel::parse(&mut reader, self.kernels.len() as u32)?;
                        self.kernels.push(kernel);
                    }
                }
                _ => read(&mut reader, root, Reader::skip)?,
            }
        }
        if reader.left() != 0 {
            return Err(MetadataError::Trailing { position: reader.position(), bytes: reader.left() });
        }

        let path = Path::root("amdhsa.version");
        match version.ok_or(MetadataError::Missing { path })? {
            [1, 0..=2] => {}
            [major, minor] => {
                let value = format!("[{major}, {minor}]");
                return Err(MetadataError::Rule { path, value, rule: "[1, 0], [1, 1] or [1, 2]" });
            }
        }
        kernels.ok_or(MetadataError::Missing { path: Path::root("amdhsa.kernels") })?;
        match (self.target, target) {
            (Some(first), Some(second)) if first != second => {
                let (path, rule) = (Path::root("amdhsa.target"), "the same in all notes of a file");
                return Err(MetadataError::Rule {
                    path,
                    value: format!("`{}` after `{}`", shown(second), shown(first)),
                    rule,
                });
            }
            (None, Some(target)) => self.target = Some(target),
            _ => {}
        }
        Ok(())
    }
}

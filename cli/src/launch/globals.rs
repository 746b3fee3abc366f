//! The variables of an image.

use super::memory::{dump, file, print};
use super::usage;
use crate::exit::{Failure, REFUSED};
use elf::CodeObject;
use loader::Image;
use loader::spec::{self, ArgSpec, Element, What};
use std::path::Path;

/// What is set before a launch and printed after it.
pub struct Globals {
    set: Vec<(u64, Vec<u8>)>,
    dumps: Vec<(String, u64, u64, Option<Element>)>,
}

impl Globals {
    /// Checks names and sizes. Paths that are not absolute start at `base`.
    pub fn read(
        code: &CodeObject,
        set: &[(String, String)],
        dumps: &[String],
        base: &Path,
    ) -> Result<Globals, Failure> {
        let mut globals = Globals { set: Vec::new(), dumps: Vec::new() };
        for (name, value) in set {
            let (vaddr, size) = variable(code, name, "--set-global")?;
            let bytes =
                global_bytes(value, size, base).map_err(|error| usage(format!("--set-global {name}: {error}")))?;
            if bytes.len() as u64 != size {
                let text = format!("--set-global {name}: {value} has {} bytes, the variable has {size}", bytes.len());
                return Err(usage(text));
            }
            globals.set.push((vaddr, bytes));
        }
        for text in dumps {
            let (name, element) = match text.rsplit_once(':').map(|(name, ty)| (name, Element::from_name(ty))) {
                Some((name, Some(element))) => (name, Some(element)),
                _ => (text.as_str(), None),
            };
            let (vaddr, size) = variable(code, name, "--dump-global")?;
            globals.dumps.push((name.to_owned(), vaddr, size, element));
        }
        Ok(globals)
    }

    /// Stores what is to be set.
    pub fn set(&self, image: &Image) -> Result<(), Failure> {
        for (vaddr, bytes) in &self.set {
            image.write(*vaddr, bytes)?;
        }
        Ok(())
    }

    /// Prints what is wanted.
    pub fn dump(&self, image: &Image) -> Result<(), Failure> {
        for (name, vaddr, size, element) in &self.dumps {
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
        Ok(())
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
fn global_bytes(text: &str, size: u64, base: &Path) -> Result<Vec<u8>, String> {
    match text.parse::<ArgSpec>()?.what {
        What::Typed { bytes, .. } | What::Bytes(bytes) => Ok(bytes),
        What::Buffer(buffer) => buffer.bytes(&file(base)),
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
        What::Truth(value) if size == 1 => Ok(vec![u8::from(value)]),
        What::Truth(_) => Err(format!("a bool has 1 byte, this has {size}: write a number")),
        What::Local(_) => Err("LDS has no place in a variable".to_owned()),
    }
}

//! The variables of an image.

use super::dump::Dump;
use super::memory::{Files, about};
use super::usage;
use crate::exit::Failure;
use crate::output::print_line;
use elf::{CodeObject, Place, Symbol, SymbolKind};
use loader::Image;
use loader::spec::{self, ArgSpec, Element, What};

/// What is set before a launch and printed after it.
pub struct Globals {
    set: Vec<(u64, Vec<u8>)>,
    dumps: Vec<(String, u64, u64, Option<Element>)>,
}

impl Globals {
    /// Checks names and sizes.
    pub fn read(
        code: &CodeObject,
        set: &[(String, String)],
        dumps: &[String],
        files: &Files,
    ) -> Result<Globals, Failure> {
        let mut globals = Globals { set: Vec::new(), dumps: Vec::new() };
        for (index, (name, value)) in set.iter().enumerate() {
            let option = files.option("set-global", name);
            if set[..index].iter().any(|(other, _)| other == name) {
                return Err(usage(format!("{option}: it is given twice")));
            }
            let (vaddr, size) = variable(code, name).map_err(|why| usage(format!("{option}: {why}")))?;
            let bytes = global_bytes(value, size, files).map_err(|failure| about(&option, failure))?;
            if bytes.len() as u64 != size {
                let text = format!("{option}: {value} has {} bytes, the variable has {size}", bytes.len());
                return Err(usage(text));
            }
            globals.set.push((vaddr, bytes));
        }
        for (index, text) in dumps.iter().enumerate() {
            let fail = |why: String| usage(format!("{}: {why}", files.option("dump-global", text)));
            if dumps[..index].contains(text) {
                return Err(fail("it is given twice".to_owned()));
            }
            let (name, element) = match text.rsplit_once(':') {
                Some((name, ty)) if code.symbol(text).is_none() => {
                    let element = Element::from_name(ty);
                    let types = || fail(format!("'{ty}' is not a type: types are {}", Element::names()));
                    (name, Some(element.ok_or_else(types)?))
                }
                _ => (text.as_str(), None),
            };
            let (vaddr, size) = variable(code, name).map_err(fail)?;
            if let Some(element) = element.filter(|element| !size.is_multiple_of(element.size() as u64)) {
                let bytes = element.size();
                let text = format!("the variable has {size} bytes, which are no whole {} of {bytes}", element.name());
                return Err(fail(text));
            }
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
                Some(element) => {
                    let mut dump = Dump::stdout();
                    dump.begin(name, *element, size / element.size() as u64)?;
                    dump.piece(*element, &bytes)?;
                    dump.end()?;
                }
                None => {
                    let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                    print_line(format!("{name}: {}", hex.join(" ")))?;
                }
            }
        }
        Ok(())
    }
}

/// Address and size of a variable, or what else the name stands for.
fn variable(code: &CodeObject, name: &str) -> Result<(u64, u64), String> {
    let Some(symbol) = code.symbol(name) else {
        let names: Vec<&str> = code.globals().filter(|symbol| symbol.size > 0).map(|symbol| symbol.name).collect();
        return Err(match names.len() {
            0 => "the image has no such variable; it has none that others see".to_owned(),
            count @ ..=16 => format!("the image has no such variable; its {count} are {}", names.join(", ")),
            count => {
                format!("the image has no such variable; of its {count} the first are {}", names[..16].join(", "))
            }
        });
    };
    let is_code = |vaddr| code.segments().iter().any(|segment| segment.executable && segment.range().contains(&vaddr));
    match (symbol.place, symbol.kind) {
        (Place::Undefined, _) => Err("the image does not define it: --define gives it an address".to_owned()),
        (Place::Absolute(value), _) => Err(format!("it is the number {value:#x}, which has no place in memory")),
        _ if is_descriptor(code, symbol) => Err("it is a kernel's descriptor, not a variable".to_owned()),
        (Place::Image(_), SymbolKind::Function) => Err("it is code, not a variable".to_owned()),
        (Place::Image(vaddr), _) if is_code(vaddr) => {
            Err("it lies in an executable segment: it is code, not a variable".to_owned())
        }
        (Place::Image(_), SymbolKind::Other) => {
            Err("it is a label (its symbol's type is not STT_OBJECT), not a variable".to_owned())
        }
        (Place::Image(_), SymbolKind::Object) if symbol.size == 0 => {
            Err("the variable has 0 bytes: there is nothing to set or to print".to_owned())
        }
        (Place::Image(vaddr), SymbolKind::Object) => Ok((vaddr, symbol.size)),
    }
}

fn is_descriptor(code: &CodeObject, symbol: &Symbol) -> bool {
    symbol.name.strip_suffix(".kd").is_some_and(|name| code.kernel(name).is_some() || symbol.size == 64)
}

/// The bytes for a variable.
fn global_bytes(text: &str, size: u64, files: &Files) -> Result<Vec<u8>, Failure> {
    match text.parse::<ArgSpec>()?.what {
        What::Typed { bytes, .. } | What::Bytes(bytes) => Ok(bytes),
        What::Buffer(buffer) => {
            let contents = buffer.contents(|path, most| files.read(path, most))?;
            if contents.size() != size {
                return Err(usage(format!("{text} has {} bytes, the variable has {size}", contents.size())));
            }
            Ok(contents.bytes()?)
        }
        What::Address(va) => Ok(va.to_le_bytes().to_vec()),
        What::Number => {
            let element = u32::try_from(size).ok().and_then(Element::unsigned);
            let element =
                element.ok_or_else(|| format!("no number has {size} bytes: write TYPE:VALUE or hex:BYTES"))?;
            match spec::integer(text)? {
                value if value < 0 && value >= -(1i128 << (8 * size - 1)) => {
                    Ok(value.to_le_bytes()[..element.size()].to_vec())
                }
                _ => Ok(element.parse(text)?),
            }
        }
        What::Truth(value) if size == 1 => Ok(vec![u8::from(value)]),
        What::Truth(_) => Err(usage(format!("a bool has 1 byte, this has {size}: write a number"))),
        What::Local(_) => Err(usage("LDS has no place in a variable")),
    }
}

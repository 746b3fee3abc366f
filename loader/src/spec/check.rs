//! Arguments against the metadata.

use super::{ArgSpec, Element, What};
use crate::Value;
use elf::{Arg, KernelMetadata, ValueKind};

/// Why an argument does not fit its kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// Wrong number.
    #[error("kernel {kernel}: the number of arguments is {given}, it takes {}: {list}", .expected.len(), list = Listed(.expected))]
    Count {
        /// Kernel.
        kernel: String,
        /// What it takes.
        expected: Vec<String>,
        /// Given.
        given: usize,
    },
    /// A value that does not fit.
    #[error("argument {index}, '{text}': the metadata says {says}; {why}")]
    Value {
        /// Index among the explicit arguments.
        index: usize,
        /// As written.
        text: String,
        /// The argument in the metadata's words.
        says: String,
        /// What is wrong.
        why: String,
    },
}

struct Listed<'l>(&'l [String]);

impl std::fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            [] => f.write_str("none"),
            list => f.write_str(&list.join("; ")),
        }
    }
}

/// An argument in the metadata's words: `by_value, 4 bytes, uint n`.
pub fn describe(arg: &Arg) -> String {
    let mut text = arg.value_kind.name().to_owned();
    if arg.value_kind == ValueKind::ByValue {
        text.push_str(&format!(", {} bytes", arg.size));
    }
    let words: Vec<&str> = arg.type_name.into_iter().chain(arg.name).collect();
    if !words.is_empty() {
        text.push_str(&format!(", {}", words.join(" ")));
    }
    text
}

/// The values for a kernel's explicit arguments. A buffer gets its address from `place`, which is called in order and
/// only when every argument fits.
pub fn check<E: From<CheckError>>(
    kernel: &KernelMetadata,
    specs: &[ArgSpec],
    mut place: impl FnMut(usize) -> Result<u64, E>,
) -> Result<Vec<Value>, E> {
    let explicit: Vec<&Arg> = kernel.args.iter().filter(|arg| !arg.value_kind.is_hidden()).collect();
    if explicit.len() != specs.len() {
        let expected = explicit.iter().map(|arg| describe(arg)).collect();
        return Err(CheckError::Count { kernel: kernel.name.to_owned(), expected, given: specs.len() }.into());
    }
    let types = crate::names::parameters(kernel.name).filter(|types| types.len() == explicit.len());
    let mut values = Vec::new();
    for (index, (arg, spec)) in explicit.into_iter().zip(specs).enumerate() {
        // The metadata of C++ and HIP kernels has no types; their mangled names have.
        let named = types.as_ref().and_then(|types| types.get(index)).map(|name| as_opencl(name));
        let arg = Arg { type_name: arg.type_name.or(named.as_deref()), ..arg.clone() };
        let value = one(&arg, spec).map_err(|why| CheckError::Value {
            index,
            text: spec.text.clone(),
            says: describe(&arg),
            why,
        })?;
        values.push(value);
    }
    let finished = values.into_iter().enumerate().map(|(index, value)| match value {
        Some(value) => Ok(value),
        None => place(index).map(Value::Address),
    });
    finished.collect()
}

/// The value of an argument; none for a buffer, which has no address yet.
fn one(arg: &Arg, spec: &ArgSpec) -> Result<Option<Value>, String> {
    match (arg.value_kind, &spec.what) {
        (ValueKind::ByValue, What::Number) => number(arg, &spec.text).map(Some),
        (ValueKind::ByValue, What::Typed { element, count, bytes }) => {
            if let Some((named, _)) = arg.type_name.and_then(opencl_type)
                && !is_alike(named, *element)
            {
                return Err(format!("{} is not {}", element.name(), named.opencl()));
            }
            let mut bytes = bytes.clone();
            // A vector of three takes the room of four.
            if *count == 3 {
                bytes.resize(4 * element.size(), 0);
            }
            sized(arg, bytes).map(Some)
        }
        (ValueKind::ByValue, What::Bytes(bytes)) => sized(arg, bytes.clone()).map(Some),
        (ValueKind::ByValue, What::Address(va)) if arg.size == 8 => Ok(Some(Value::Address(*va))),
        (ValueKind::ByValue, What::Buffer(_)) if arg.size == 8 => Ok(None),
        (ValueKind::GlobalBuffer, What::Buffer(buffer)) => match pointee(arg) {
            // Bytes may be anything.
            Some((named, _)) if buffer.element != Element::U8 && !is_alike(named, buffer.element) => Err(format!(
                "its elements are {}, not {}: write {}[COUNT], or u8[COUNT] for bytes",
                named.opencl(),
                buffer.element.name(),
                named.name()
            )),
            _ => Ok(None),
        },
        (ValueKind::GlobalBuffer, What::Address(va)) => {
            // A vector of three lies as one of four.
            let align =
                pointee(arg).map_or(1, |(named, count)| named.size() as u64 * u64::from(count.next_power_of_two()));
            if va.is_multiple_of(align) {
                Ok(Some(Value::Address(*va)))
            } else {
                Err(format!("{va:#x} is not a multiple of {align}, its alignment"))
            }
        }
        (ValueKind::DynamicSharedPointer, What::Local(size)) => Ok(Some(Value::Lds(*size))),
        (ValueKind::ByValue, _) => Err("write a number, TYPE:VALUE or hex:BYTES".to_owned()),
        (ValueKind::GlobalBuffer, _) => Err("write a buffer, TYPE[COUNT]=CONTENTS, or null".to_owned()),
        (ValueKind::DynamicSharedPointer, _) => Err("write local:BYTES".to_owned()),
        (kind, _) => Err(format!("arguments of kind {} cannot be given here", kind.name())),
    }
}

fn sized(arg: &Arg, bytes: Vec<u8>) -> Result<Value, String> {
    match bytes.len() == arg.size as usize {
        true => Ok(Value::Bytes(bytes)),
        false => Err(format!("{} bytes are given", bytes.len())),
    }
}

/// A number without a type: the metadata's type name has it, else it is an integer of the argument's size.
fn number(arg: &Arg, text: &str) -> Result<Value, String> {
    match arg.type_name.and_then(opencl_type) {
        Some((element, 1)) => sized(arg, element.parse(text)?),
        Some((element, count)) => {
            Err(format!("a vector of {count} is needed: write {}x{count}:VALUE,VALUE…", element.name()))
        }
        None => {
            let unsigned = Element::unsigned(arg.size)
                .ok_or_else(|| format!("no number has {} bytes: write hex:BYTES", arg.size))?;
            let value = super::integer(text).map_err(|error| {
                format!("{error}, and the metadata has no type: write f32:{text}, f64:{text} or the like")
            })?;
            let bits = 8 * arg.size;
            if value < -(1i128 << (bits - 1)) || value >= 1i128 << bits {
                return Err(format!("{text} does not fit {bits} bits"));
            }
            sized(arg, value.to_le_bytes()[..unsigned.size()].to_vec())
        }
    }
}

/// Same size, and both floating-point or neither.
fn is_alike(a: Element, b: Element) -> bool {
    (a.is_float(), a.size()) == (b.is_float(), b.size())
}

/// A type of C++ under the name that OpenCL has for it, if it has one.
fn as_opencl(name: &str) -> String {
    let (pointee, star) = name.strip_suffix('*').map_or((name, ""), |pointee| (pointee, "*"));
    let opencl = match pointee {
        "signed char" => "char",
        "unsigned char" => "uchar",
        "unsigned short" => "ushort",
        "unsigned int" => "uint",
        "long long" => "long",
        "unsigned long" | "unsigned long long" => "ulong",
        "_Float16" => "half",
        other => other,
    };
    format!("{opencl}{star}")
}

/// What `float*` or `uint4*` points to.
fn pointee(arg: &Arg) -> Option<(Element, u32)> {
    opencl_type(arg.type_name?.strip_suffix('*')?.trim_end())
}

/// `uint` or `float4`.
fn opencl_type(name: &str) -> Option<(Element, u32)> {
    let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (element, count) = name.split_at(name.len() - digits);
    let count = if count.is_empty() { 1 } else { count.parse().ok()? };
    Some((Element::from_opencl(element)?, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arg(kind: ValueKind<'static>, size: u32, type_name: Option<&'static str>) -> Arg<'static> {
        Arg { type_name, ..Arg::new(kind, 0, size) }
    }

    fn given(arg: &Arg, text: &str) -> Result<Option<Value>, String> {
        one(arg, &text.parse().unwrap())
    }

    #[test]
    fn numbers_take_the_metadatas_type() {
        let word = arg(ValueKind::ByValue, 4, None);
        assert_eq!(given(&word, "-1"), Ok(Some(Value::Bytes(vec![255; 4]))));
        assert_eq!(given(&word, "4294967295"), Ok(Some(Value::Bytes(vec![255; 4]))));
        assert!(given(&word, "4294967296").unwrap_err().contains("32 bits"));
        assert!(given(&word, "1.5").unwrap_err().contains("f32:1.5"));
        assert_eq!(given(&word, "f32:1"), Ok(Some(Value::from(1f32))));
        assert!(given(&word, "f64:1").unwrap_err().contains("8 bytes"));
        let float = arg(ValueKind::ByValue, 4, Some("float"));
        assert_eq!(given(&float, "3"), Ok(Some(Value::from(3f32))));
        assert!(given(&float, "u32:3").is_err());
        assert_eq!(given(&float, "hex:0000803f"), Ok(Some(Value::from(1f32))));
        let uchar = arg(ValueKind::ByValue, 1, Some("uchar"));
        assert!(given(&uchar, "-1").is_err());
    }

    #[test]
    fn vectors() {
        let vector = arg(ValueKind::ByValue, 16, Some("float3"));
        assert!(matches!(given(&vector, "f32x3:1,2,3"), Ok(Some(Value::Bytes(bytes))) if bytes.len() == 16));
        assert!(given(&vector, "1").unwrap_err().contains("f32x3"));
    }

    #[test]
    fn kinds_do_not_mix() {
        let pointer = arg(ValueKind::GlobalBuffer, 8, None);
        assert_eq!(given(&pointer, "u32[4]"), Ok(None));
        assert_eq!(given(&pointer, "null"), Ok(Some(Value::Address(0))));
        assert!(given(&pointer, "5").is_err());
        let floats = arg(ValueKind::GlobalBuffer, 8, Some("float4*"));
        assert_eq!((given(&floats, "f32[4]"), given(&floats, "u8[16]")), (Ok(None), Ok(None)));
        assert!(given(&floats, "u32[4]").unwrap_err().contains("its elements are float, not u32"));
        assert!(given(&floats, "f64[4]").is_err());
        assert_eq!(given(&floats, "ptr:0x1010"), Ok(Some(Value::Address(0x1010))));
        assert!(given(&floats, "ptr:0x1008").unwrap_err().contains("0x1008 is not a multiple of 16"));
        assert_eq!(given(&arg(ValueKind::GlobalBuffer, 8, Some("struct S*")), "f64[4]"), Ok(None));
        let local = arg(ValueKind::DynamicSharedPointer, 4, None);
        assert_eq!(given(&local, "local:64"), Ok(Some(Value::Lds(64))));
        assert!(given(&local, "64").unwrap_err().contains("local:BYTES"));
        assert!(given(&arg(ValueKind::Image, 8, None), "u32[4]").unwrap_err().contains("image"));
        assert!(given(&arg(ValueKind::ByValue, 4, None), "local:4").is_err());
    }
}

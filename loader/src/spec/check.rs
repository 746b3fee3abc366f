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

/// An argument in the metadata's words: `by_value, 4 bytes at offset 8, uint n`.
pub fn describe(arg: &Arg) -> String {
    let mut text = format!("{}, {} bytes at offset {}", arg.value_kind.name(), arg.size, arg.offset);
    let words: Vec<&str> = arg.type_name.into_iter().chain(arg.name).collect();
    if !words.is_empty() {
        text.push_str(&format!(", {}", words.join(" ")));
    }
    text
}

/// The types of a kernel's explicit arguments, under the names that OpenCL has for them. The metadata of C++ and HIP kernels
/// has none; their mangled names have.
pub fn types(kernel: &KernelMetadata) -> Vec<Option<String>> {
    let explicit: Vec<&Arg> = kernel.args.iter().filter(|arg| !arg.value_kind.is_hidden()).collect();
    let named = crate::names::parameters(kernel.name).filter(|types| types.len() == explicit.len());
    // A class of this name and the type are demangled to the same.
    let is_class = |name: &str| name.trim_end_matches(['*', '&']) == "half" && kernel.name.contains("4half");
    let plain = |name: &String| if is_class(name) { class(name) } else { as_opencl(name) };
    let named = named.map_or(vec![None; explicit.len()], |types| types.iter().map(|name| Some(plain(name))).collect());
    explicit.iter().zip(named).map(|(arg, named)| arg.type_name.map(str::to_owned).or(named)).collect()
}

/// An argument of a kernel.
#[derive(Clone, Debug)]
pub struct Numbered<'k, 'a> {
    /// As the metadata has it.
    pub arg: &'k Arg<'a>,
    /// Number among the explicit arguments; none of a hidden one.
    pub number: Option<usize>,
    /// Type, as [`types`] has it.
    pub type_name: Option<String>,
}

/// All arguments of a kernel, in order.
pub fn numbered<'k, 'a>(kernel: &'k KernelMetadata<'a>) -> Vec<Numbered<'k, 'a>> {
    let mut types = types(kernel).into_iter().enumerate();
    let of = |arg: &'k Arg<'a>| {
        let explicit = if arg.value_kind.is_hidden() { None } else { types.next() };
        let (number, type_name) = explicit.map_or((None, None), |(number, type_name)| (Some(number), type_name));
        Numbered { arg, number, type_name }
    };
    kernel.args.iter().map(of).collect()
}

/// The bytes of a by-value argument as its type has them: `1.5`, `1 2 3`; none when the type says nothing.
pub fn show(type_name: &str, bytes: &[u8]) -> Option<String> {
    if type_name == "bool" {
        return Some(match bytes {
            [0] => "false".to_owned(),
            [1] => "true".to_owned(),
            _ => return None,
        });
    }
    let (element, count) = opencl_type(type_name)?;
    let values: Vec<String> = bytes.chunks_exact(element.size()).map(|bytes| element.show(bytes)).collect();
    Some(values.get(..count as usize)?.join(" "))
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
    let types = types(kernel);
    let mut values = Vec::new();
    for (index, (arg, spec)) in explicit.into_iter().zip(specs).enumerate() {
        let arg = Arg { type_name: types.get(index).and_then(Option::as_deref), ..arg.clone() };
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

/// What a type's name says.
enum Known {
    /// A number, or a vector of them.
    Numbers(Element, u32),
    /// `bool`.
    Truth,
    /// A pointer, a structure, no name at all.
    Other,
}

fn known(arg: &Arg) -> Known {
    match arg.type_name {
        Some("bool") => Known::Truth,
        Some(name) => opencl_type(name).map_or(Known::Other, |(element, count)| Known::Numbers(element, count)),
        None => Known::Other,
    }
}

/// The value of an argument; none for a buffer, which has no address yet.
fn one(arg: &Arg, spec: &ArgSpec) -> Result<Option<Value>, String> {
    match (arg.value_kind, &spec.what) {
        (ValueKind::ByValue, What::Number) => number(arg, &spec.text).map(Some),
        (ValueKind::ByValue, What::Truth(value)) => match known(arg) {
            Known::Truth => sized(arg, vec![u8::from(*value)]).map(Some),
            _ => Err("only a bool is true or false: write a number".to_owned()),
        },
        (ValueKind::ByValue, What::Typed { element, count, bytes }) => {
            match known(arg) {
                Known::Numbers(named, _) if !is_alike(named, *element) => {
                    return Err(format!("{} is not {}", element.name(), named.opencl()));
                }
                Known::Numbers(_, needed) if needed as usize != *count => {
                    return Err(format!("{count} values are given, it has {needed}"));
                }
                Known::Truth if bytes.iter().skip(1).any(|byte| *byte != 0) || bytes.first() > Some(&1) => {
                    return Err("a bool is 0 or 1".to_owned());
                }
                _ => {}
            }
            let mut bytes = bytes.clone();
            // A vector of three takes the room of four.
            if matches!(known(arg), Known::Numbers(_, 3)) {
                bytes.resize(4 * element.size(), 0);
            }
            sized(arg, bytes).map(Some)
        }
        (ValueKind::ByValue, What::Bytes(bytes)) => sized(arg, bytes.clone()).map(Some),
        (ValueKind::ByValue, What::Address(_) | What::Buffer(_)) if !matches!(known(arg), Known::Other) => {
            Err("it is a number, not a pointer".to_owned())
        }
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
            // OpenCL's vector of three lies as one of four; HIP's is a structure of three.
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
    match known(arg) {
        Known::Numbers(element, 1) => sized(arg, element.parse(text)?),
        Known::Numbers(element, count) => {
            Err(format!("a vector of {count} is needed: write {}x{count}:VALUE,VALUE…", element.name()))
        }
        Known::Truth => match super::integer(text) {
            Ok(value @ 0..=1) => sized(arg, vec![value as u8]),
            _ => Err("a bool is 0 or 1, or true or false".to_owned()),
        },
        Known::Other => {
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

/// The same floating-point type, or integers of one size.
fn is_alike(a: Element, b: Element) -> bool {
    a == b || (!a.is_float() && !b.is_float() && a.size() == b.size())
}

/// A type of C++ under the name that OpenCL has for it. One that OpenCL has no name for keeps its own, with a word where it
/// would be taken for OpenCL's: `float3` is a class there.
fn as_opencl(name: &str) -> String {
    let pointee = name.strip_suffix(['*', '&']).unwrap_or(name);
    let star = &name[pointee.len()..];
    // clang's vectors, which OpenCL's are.
    let (scalar, count) = match pointee.strip_suffix(')').and_then(|rest| rest.split_once(" __vector(")) {
        Some((scalar, count)) if count.parse::<u32>().is_ok() => (scalar, count),
        _ => (pointee, ""),
    };
    let opencl = match scalar {
        "signed char" | "char" => "char",
        "unsigned char" | "char8_t" => "uchar",
        "unsigned short" | "char16_t" => "ushort",
        "short" => "short",
        "unsigned int" | "char32_t" => "uint",
        "int" | "wchar_t" => "int",
        "long long" | "long" => "long",
        "unsigned long" | "unsigned long long" => "ulong",
        "_Float16" | "half" | "__fp16" => "half",
        "std::bfloat16_t" | "__bf16" => "__bf16",
        "float" => "float",
        "double" => "double",
        "bool" => return name.to_owned(),
        _ if opencl_type(pointee).is_some() => return class(name),
        _ => return name.to_owned(),
    };
    format!("{opencl}{count}{star}")
}

/// A class of C++ that has the name of a type of OpenCL.
fn class(name: &str) -> String {
    let pointee = name.trim_end_matches(['*', '&']);
    format!("{pointee} (a class){}", &name[pointee.len()..])
}

/// What `float*` or `uint4*` points to, or what a C++ reference refers to.
fn pointee(arg: &Arg) -> Option<(Element, u32)> {
    opencl_type(arg.type_name?.strip_suffix(['*', '&'])?.trim_end())
}

/// `uint` or `float4`.
fn opencl_type(name: &str) -> Option<(Element, u32)> {
    // One name ends in digits that are no count.
    if let Some(element) = Element::from_opencl(name) {
        return Some((element, 1));
    }
    let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (element, count) = name.split_at(name.len() - digits);
    Some((Element::from_opencl(element)?, count.parse().ok().filter(|count| (2..=16).contains(count))?))
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
        assert!(given(&vector, "f32x4:1,2,3,4").unwrap_err().contains("4 values are given, it has 3"));
        let four = arg(ValueKind::ByValue, 16, Some("float4"));
        assert!(given(&four, "f32x3:1,2,3").unwrap_err().contains("3 values are given, it has 4"));
        // Of what is no vector by its type, no more is known than its size.
        assert!(given(&arg(ValueKind::ByValue, 16, None), "f32x3:1,2,3").unwrap_err().contains("12 bytes are given"));
        let three = arg(ValueKind::ByValue, 12, Some("struct three"));
        assert!(matches!(given(&three, "f32x3:1,2,3"), Ok(Some(Value::Bytes(bytes))) if bytes.len() == 12));
    }

    #[test]
    fn types_of_cpp() {
        for (cpp, opencl) in [
            ("unsigned long long*", "ulong*"),
            ("float __vector(3)", "float3"),
            ("unsigned char __vector(4)*", "uchar4*"),
            ("std::bfloat16_t", "__bf16"),
            ("_Float16", "half"),
            ("bool", "bool"),
            ("float3*", "float3 (a class)*"),
            ("HIP_vector_type<float, 3u>", "HIP_vector_type<float, 3u>"),
            ("std::pair<int, float>", "std::pair<int, float>"),
            ("void*", "void*"),
            ("unsigned int&", "uint&"),
            ("uchar&", "uchar (a class)&"),
        ] {
            assert_eq!(as_opencl(cpp), opencl);
        }
        let integer = Arg { type_name: Some("int&"), ..Arg::new(ValueKind::GlobalBuffer, 0, 8) };
        assert!(given(&integer, "f32[1]").is_err() && given(&integer, "ptr:0x1001").is_err());
        assert_eq!(given(&integer, "i32[1]"), Ok(None));
        let class = as_opencl("float3*");
        let pointer = Arg { type_name: Some(&class), ..Arg::new(ValueKind::GlobalBuffer, 0, 8) };
        assert_eq!(given(&pointer, "ptr:0x1004"), Ok(Some(Value::Address(0x1004))), "it may be a structure of three");
    }

    /// Two floating-point types of one size are not the same, a number is not an address.
    #[test]
    fn what_a_type_does_not_take() {
        let of = |size, name| arg(ValueKind::ByValue, size, Some(name));
        for (size, name, text, words) in [
            (2, "half", "bf16:1", "bf16 is not half"),
            (2, "__bf16", "f16:1", "f16 is not __bf16"),
            (2, "half", "u16:1", "u16 is not half"),
            (8, "double", "f64[1]", "a number, not a pointer"),
            (8, "long", "null", "a number, not a pointer"),
            (8, "ulong", "ptr:0x1000", "a number, not a pointer"),
            (1, "bool", "2", "0 or 1"),
            (1, "bool", "-1", "0 or 1"),
            (1, "bool", "u8:2", "0 or 1"),
            (1, "uchar", "true", "only a bool"),
        ] {
            assert!(given(&of(size, name), text).unwrap_err().contains(words), "{name} {text}");
        }
        for (name, element, other) in [("half*", "f16", "bf16"), ("__bf16*", "bf16", "f16"), ("float*", "f32", "i32")] {
            let pointer = arg(ValueKind::GlobalBuffer, 8, Some(name));
            assert_eq!(given(&pointer, &format!("{element}[1]")), Ok(None));
            assert!(given(&pointer, &format!("{other}[1]")).is_err(), "{name} {other}");
        }
        for text in ["true", "1", "u8:1", "hex:01"] {
            assert_eq!(given(&of(1, "bool"), text), Ok(Some(Value::Bytes(vec![1]))), "{text}");
        }
        assert_eq!(given(&of(1, "bool"), "false"), Ok(Some(Value::Bytes(vec![0]))));
        // Without a name, or of a structure, eight bytes may be an address.
        assert_eq!(given(&of(8, "struct S"), "null"), Ok(Some(Value::Address(0))));
        assert_eq!(given(&arg(ValueKind::ByValue, 8, None), "f64[1]"), Ok(None));
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

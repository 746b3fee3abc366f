//! The kernel argument segment for people.

use elf::{Arg, KernelMetadata, ValueKind};
use loader::Kernarg;
use loader::spec::{self, Numbered};

/// Each argument with its place, its bytes and what they are. Bytes that belong to no argument are left out; they are 0.
pub fn annotated(kernel: &KernelMetadata, segment: &Kernarg) -> String {
    let mut text = format!(
        "kernarg segment of {}: {} bytes, LDS of a work-group: {} bytes\n",
        kernel.name,
        segment.bytes.len(),
        segment.group_segment_size
    );
    for Numbered { arg, number, type_name } in spec::numbered(kernel) {
        let end = (arg.offset as usize).saturating_add(arg.size as usize);
        let bytes = segment.bytes.get(arg.offset as usize..end).unwrap_or_default();
        let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut what = arg.value_kind.name().to_owned();
        if let Some(number) = number {
            let words: Vec<&str> = type_name.as_deref().into_iter().chain(arg.name).collect();
            what = format!("argument {number}: {what} {}", words.join(" "));
        }
        let line = format!("  {:#06x} {:>4}  {:<24} {}", arg.offset, arg.size, hex.join(" "), what.trim_end());
        text.push_str(&line);
        if let Some(value) = value(arg, type_name.as_deref(), bytes) {
            text.push_str(&format!(" = {value}"));
        }
        text.push('\n');
    }
    text
}

/// Addresses in hexadecimal, numbers as their type has them, others of the usual sizes in decimal.
fn value(arg: &Arg, type_name: Option<&str>, bytes: &[u8]) -> Option<String> {
    let shown = type_name.filter(|_| arg.value_kind == ValueKind::ByValue).and_then(|name| spec::show(name, bytes));
    if shown.is_some() || !matches!(bytes.len(), 1 | 2 | 4 | 8) {
        return shown;
    }
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    let value = u64::from_le_bytes(word);
    let is_address = matches!(
        arg.value_kind,
        ValueKind::GlobalBuffer
            | ValueKind::HiddenPrintfBuffer
            | ValueKind::HiddenHostcallBuffer
            | ValueKind::HiddenHeapV1
            | ValueKind::HiddenQueuePtr
    );
    let absent = match arg.value_kind {
        ValueKind::HiddenDefaultQueue => Some("there is no queue for kernels to enqueue on"),
        ValueKind::HiddenCompletionAction => Some("nothing is done at its end"),
        ValueKind::HiddenMultigridSyncArg => Some("it is no part of a launch on several grids"),
        _ => None,
    };
    if let Some(why) = absent.filter(|_| value == 0) {
        return Some(format!("null: {why}"));
    }
    Some(if is_address { format!("{value:#x}") } else { value.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use elf::CodeObject;
    use loader::kernarg::{Hidden, build};
    use loader::{Shape, Value};

    #[test]
    fn a_segment() {
        let file = include_bytes!("../../../tests/programs/images/hidden.gfx90a");
        let code = CodeObject::parse(file).unwrap();
        let kernel = &code.kernels()[0].metadata;
        let hidden = Hidden {
            shape: Shape::of_items([64, 2, 1], [300, 5, 1]).unwrap(),
            dynamic_lds: 512,
            queue: 0x7000_0000_1000,
            shared_base: 0x1_0000,
            private_base: 0x2_0000,
            printf_buffer: 0,
            hostcall_buffer: 0x7000_0000_3000,
            heap: 0x7000_0000_4000,
        };
        let segment = build(kernel, &[Value::Address(0x7000_0000_5000), Value::from(64u32)], &hidden, 65536).unwrap();
        insta::assert_snapshot!(annotated(kernel, &segment));
    }
}

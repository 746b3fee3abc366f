//! `kfdrun inspect`: what a file carries, as text or JSON.

mod text;

use crate::args::Args;
use crate::exit::Failure;
use crate::input::Input;
use crate::json::Json;
use crate::output::{print, print_line};
use crate::run;
use elf::container::{self, ContainerError, Contents, Entry, Limits};
use elf::{CodeObject, Kernel, KernelKind};
use loader::names;
use std::path::PathBuf;

/// `kfdrun inspect`.
#[derive(Debug, clap::Args)]
pub struct InspectArgs {
    /// Code object, or a file that carries some: offload bundle, offload binary, host program
    pub file: PathBuf,
    /// Print one JSON object; its `schema_version` changes when a key changes its meaning
    #[arg(long)]
    pub json: bool,
}

/// Version of the JSON: keys may be added within one.
const SCHEMA_VERSION: i64 = 1;

/// Prints it.
pub fn run(args: &Args, inspect: &InspectArgs) -> Result<u8, Failure> {
    let bytes = run::read(&inspect.file, &Input::new(args.timeout))?;
    let name = inspect.file.display().to_string();
    let contents = match container::open(&bytes, &Limits::default()) {
        Ok(contents) => contents,
        Err(error) => {
            if inspect.json {
                print_line(refused(&name, bytes.len(), &error))?;
            }
            return Err(Failure::new(crate::exit::REFUSED, format!("{name}: {error}")));
        }
    };
    let wanted = args.entry.as_deref();
    let entries: Vec<(usize, &Entry)> = contents
        .entries
        .iter()
        .enumerate()
        .filter(|(index, entry)| {
            wanted.is_none_or(|wanted| wanted == index.to_string() || wanted == entry.id || wanted == entry.arch)
        })
        .collect();
    if let (Some(wanted), []) = (wanted, &entries[..]) {
        return Err(Failure::new(crate::exit::REFUSED, format!("{}: no entry is '{wanted}'", inspect.file.display())));
    }
    if inspect.json {
        print_line(whole(&name, bytes.len(), &contents, &entries))?;
    } else {
        print(&text::whole(&name, bytes.len(), &contents, &entries))?;
    }
    Ok(0)
}

fn whole(name: &str, bytes: usize, contents: &Contents, entries: &[(usize, &Entry)]) -> Json {
    let containers = contents.containers.iter().map(|container| {
        Json::object([
            ("kind", Json::from(container.kind.to_string())),
            ("offset", Json::from(container.offset as u64)),
            ("parent", container.parent.map_or(Json::Null, |parent| Json::from(parent as u64))),
        ])
    });
    Json::object([
        ("schema", Json::from("kfdrun-inspect")),
        ("schema_version", Json::from(SCHEMA_VERSION)),
        ("file", Json::from(name)),
        ("bytes", Json::from(bytes as u64)),
        ("kind", Json::from(contents.kind.to_string())),
        ("error", Json::Null),
        ("error_code", Json::Null),
        ("containers", Json::List(containers.collect())),
        ("entries", Json::List(entries.iter().map(|(index, entry)| entry_json(*index, entry)).collect())),
    ])
}

/// What is said of a file that cannot be opened: the same keys, and nothing in it.
fn refused(name: &str, bytes: usize, error: &ContainerError) -> Json {
    Json::object([
        ("schema", Json::from("kfdrun-inspect")),
        ("schema_version", Json::from(SCHEMA_VERSION)),
        ("file", Json::from(name)),
        ("bytes", Json::from(bytes as u64)),
        ("kind", Json::Null),
        ("error", Json::from(error.to_string())),
        ("error_code", Json::from(error.code())),
        ("containers", Json::List(Vec::new())),
        ("entries", Json::List(Vec::new())),
    ])
}

fn entry_json(index: usize, entry: &Entry) -> Json {
    let code = entry.code_target().map(|_| CodeObject::parse(&entry.data));
    let (object, error, error_code) = match &code {
        None => (Json::Null, Json::Null, Json::Null),
        Some(Ok(code)) => (code_json(code), Json::Null, Json::Null),
        Some(Err(error)) => (Json::Null, Json::from(error.to_string()), Json::from(error.code())),
    };
    Json::object([
        ("index", Json::from(index as u64)),
        ("id", Json::from(entry.id.as_str())),
        ("offload_kind", Json::from(entry.kind.name())),
        ("triple", Json::from(entry.triple.as_str())),
        ("arch", Json::from(entry.arch.as_str())),
        ("container", Json::from(entry.container as u64)),
        ("bytes", Json::from(entry.data.len() as u64)),
        ("content", Json::from(entry.content.to_string())),
        ("code_object", object),
        ("error", error),
        ("error_code", error_code),
    ])
}

fn code_json(code: &CodeObject) -> Json {
    let globals = code.globals().map(|symbol| {
        Json::object([
            ("name", Json::from(symbol.name)),
            ("vaddr", symbol.vaddr().map_or(Json::Null, Json::from)),
            ("size", Json::from(symbol.size)),
        ])
    });
    Json::object([
        ("version", Json::from(code.version().to_string())),
        ("target", Json::from(code.target().to_string())),
        ("kernels", Json::List(code.kernels().iter().map(|kernel| kernel_json(code, kernel)).collect())),
        ("globals", Json::List(globals.collect())),
        ("undefined", Json::List(undefined(code).into_iter().map(Json::from).collect())),
        ("printf", Json::List(code.printf().iter().map(|format| Json::from(*format)).collect())),
    ])
}

/// Symbols that a launch has to define.
fn undefined<'a>(code: &CodeObject<'a>) -> Vec<&'a str> {
    let missing = code.symbols().iter().filter(|symbol| symbol.place == elf::Place::Undefined);
    missing.map(|symbol| symbol.name).filter(|name| !name.is_empty()).collect()
}

fn kernel_json(code: &CodeObject, kernel: &Kernel) -> Json {
    let metadata = &kernel.metadata;
    let descriptor = &kernel.descriptor;
    let generation = code.target().processor.generation;
    let optional = |value: Option<u32>| value.map_or(Json::Null, Json::from);
    let flag = |value: Option<bool>| value.map_or(Json::Null, Json::Bool);
    let triple = |sizes: Option<[u32; 3]>| {
        sizes.map_or(Json::Null, |sizes| Json::List(sizes.into_iter().map(Json::from).collect()))
    };
    let text = |value: Option<&str>| value.map_or(Json::Null, Json::from);
    let arguments = metadata.args.iter().map(|arg| {
        Json::object([
            ("offset", Json::from(arg.offset)),
            ("size", Json::from(arg.size)),
            ("value_kind", Json::from(arg.value_kind.name())),
            ("hidden", Json::Bool(arg.value_kind.is_hidden())),
            ("name", text(arg.name)),
            ("type_name", text(arg.type_name)),
            ("pointee_align", optional(arg.pointee_align)),
        ])
    });
    Json::object([
        ("name", Json::from(metadata.name)),
        ("symbol", Json::from(metadata.symbol)),
        ("demangled", names::demangle(kernel.name()).map_or(Json::Null, |names| Json::from(names.whole))),
        ("kind", Json::from(kind(metadata.kind))),
        ("language", text(metadata.language)),
        ("wavefront_size", Json::from(metadata.wavefront_size)),
        ("max_flat_workgroup_size", Json::from(metadata.max_flat_workgroup_size)),
        ("reqd_workgroup_size", triple(metadata.reqd_workgroup_size)),
        ("uniform_work_group_size", flag(metadata.uniform_work_group_size)),
        ("uses_dynamic_stack", Json::Bool(kernel.uses_dynamic_stack())),
        ("vgpr_count", Json::from(metadata.vgpr_count)),
        ("vgprs_allocated", Json::from(descriptor.vgprs(generation))),
        ("agpr_count", optional(metadata.agpr_count)),
        ("accum_offset", optional(descriptor.accum_offset(generation))),
        ("sgpr_count", Json::from(metadata.sgpr_count)),
        ("vgpr_spill_count", optional(metadata.vgpr_spill_count)),
        ("sgpr_spill_count", optional(metadata.sgpr_spill_count)),
        ("lds_bytes", Json::from(metadata.group_segment_fixed_size)),
        ("scratch_bytes_per_work_item", Json::from(metadata.private_segment_fixed_size)),
        ("kernarg_bytes", Json::from(metadata.kernarg_segment_size)),
        ("kernarg_align", Json::from(metadata.kernarg_segment_align)),
        ("kernarg_preload_dwords", Json::from(descriptor.kernarg_preload_length)),
        ("descriptor_vaddr", Json::from(kernel.descriptor_vaddr)),
        ("entry_vaddr", Json::from(kernel.entry_vaddr)),
        ("arguments", Json::List(arguments.collect())),
    ])
}

fn kind(kind: KernelKind) -> &'static str {
    match kind {
        KernelKind::Normal => "normal",
        KernelKind::Init => "init",
        KernelKind::Fini => "fini",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As text and as JSON.
    fn both(name: &str, bytes: &[u8]) -> (String, String) {
        let contents = container::open(bytes, &Limits::default()).unwrap();
        let entries: Vec<(usize, &Entry)> = contents.entries.iter().enumerate().collect();
        let json = whole(name, bytes.len(), &contents, &entries).to_string();
        (text::whole(name, bytes.len(), &contents, &entries), json)
    }

    #[test]
    fn a_library_of_kernels() {
        let (text, json) = both("arguments.gfx90a", include_bytes!("../../../tests/programs/images/arguments.gfx90a"));
        insta::assert_snapshot!("inspect_arguments_text", text);
        insta::assert_snapshot!("inspect_arguments_json", json);
    }

    #[test]
    fn variables_symbols_and_formats() {
        let (text, _) = both("variables.gfx1100", include_bytes!("../../../tests/programs/images/variables.gfx1100"));
        insta::assert_snapshot!("inspect_variables_text", text);
        let (text, _) = both("prints.gfx1201", include_bytes!("../../../tests/programs/images/prints.gfx1201"));
        insta::assert_snapshot!("inspect_prints_text", text);
    }
}

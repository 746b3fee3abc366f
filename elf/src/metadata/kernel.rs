//! The kernel map of the metadata.

use super::args::{self, Arg, one_of};
use super::{MetadataError, Path, pair, read, set, triple, u32};
use crate::msgpack::Reader;

/// `.kind`: when a kernel runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum KernelKind {
    /// When it is launched.
    #[default]
    Normal,
    /// Once after loading, by the loader, with one work-item: constructors.
    Init,
    /// Once before unloading, by the loader, with one work-item: destructors.
    Fini,
}

/// What the compiler says of a kernel. Sizes are in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelMetadata<'a> {
    /// `.name`: as in the source, or mangled.
    pub name: &'a str,
    /// `.symbol`: of the kernel descriptor.
    pub symbol: &'a str,
    /// `.args`, hidden ones among them.
    pub args: Vec<Arg<'a>>,
    /// `.kernarg_segment_size`.
    pub kernarg_segment_size: u32,
    /// `.kernarg_segment_align`: a power of two, or 0 where there are no arguments.
    pub kernarg_segment_align: u32,
    /// `.group_segment_fixed_size`: static LDS of a work-group.
    pub group_segment_fixed_size: u32,
    /// `.private_segment_fixed_size`: scratch of a work-item.
    pub private_segment_fixed_size: u32,
    /// `.wavefront_size`: 32 or 64.
    pub wavefront_size: u32,
    /// `.sgpr_count`.
    pub sgpr_count: u32,
    /// `.vgpr_count`.
    pub vgpr_count: u32,
    /// `.agpr_count`, where there are accumulation registers.
    pub agpr_count: Option<u32>,
    /// `.sgpr_spill_count`.
    pub sgpr_spill_count: Option<u32>,
    /// `.vgpr_spill_count`.
    pub vgpr_spill_count: Option<u32>,
    /// `.max_flat_workgroup_size`: work-items a work-group may have.
    pub max_flat_workgroup_size: u32,
    /// `.reqd_workgroup_size`: the only work-group size allowed.
    pub reqd_workgroup_size: Option<[u32; 3]>,
    /// `.workgroup_size_hint`.
    pub workgroup_size_hint: Option<[u32; 3]>,
    /// `.max_num_workgroups_x`, `_y` and `_z`.
    pub max_num_workgroups: [Option<u32>; 3],
    /// `.cluster_dims`.
    pub cluster_dims: Option<[u32; 3]>,
    /// `.vec_type_hint`.
    pub vec_type_hint: Option<&'a str>,
    /// `.language`.
    pub language: Option<&'a str>,
    /// `.language_version`.
    pub language_version: Option<[u32; 2]>,
    /// `.device_enqueue_symbol`.
    pub device_enqueue_symbol: Option<&'a str>,
    /// `.kind`.
    pub kind: KernelKind,
    /// `.uses_dynamic_stack`: the scratch size is not an upper bound.
    pub uses_dynamic_stack: Option<bool>,
    /// `.workgroup_processor_mode`.
    pub workgroup_processor_mode: Option<bool>,
    /// `.uniform_work_group_size`: the grid is a multiple of the work-group.
    pub uniform_work_group_size: Option<bool>,
}

/// Numbers that must be there, in the order of `Numbers`.
const REQUIRED: [&str; 8] = [
    ".kernarg_segment_size",
    ".kernarg_segment_align",
    ".group_segment_fixed_size",
    ".private_segment_fixed_size",
    ".wavefront_size",
    ".sgpr_count",
    ".vgpr_count",
    ".max_flat_workgroup_size",
];

/// Numbers that may be there.
const OPTIONAL: [&str; 6] = [
    ".agpr_count",
    ".sgpr_spill_count",
    ".vgpr_spill_count",
    ".max_num_workgroups_x",
    ".max_num_workgroups_y",
    ".max_num_workgroups_z",
];

const FLAGS: [&str; 3] = [".uses_dynamic_stack", ".workgroup_processor_mode", ".uniform_work_group_size"];
const TRIPLES: [&str; 3] = [".reqd_workgroup_size", ".workgroup_size_hint", ".cluster_dims"];
const STRINGS: [&str; 5] = [".name", ".symbol", ".vec_type_hint", ".language", ".device_enqueue_symbol"];
const KIND_RULE: &str = "normal, init or fini";
const KINDS: [(&str, KernelKind); 3] =
    [("normal", KernelKind::Normal), ("init", KernelKind::Init), ("fini", KernelKind::Fini)];

/// The place of a key in one of the lists.
fn find(list: &[&'static str], key: &[u8]) -> Option<(usize, &'static str)> {
    list.iter().position(|name| name.as_bytes() == key).map(|i| (i, list[i]))
}

/// Reads kernel number `index`.
pub(super) fn parse<'a>(reader: &mut Reader<'a>, index: u32) -> Result<KernelMetadata<'a>, MetadataError> {
    let at = Path::of_kernel(index);
    let mut required = [None; REQUIRED.len()];
    let mut optional = [None; OPTIONAL.len()];
    let mut flags = [None; FLAGS.len()];
    let mut triples = [None; TRIPLES.len()];
    let mut strings = [None; STRINGS.len()];
    let (mut args, mut kind, mut language_version) = (None, None, None);
    for _ in 0..read(reader, at, Reader::map)? {
        let key = read(reader, at, Reader::str_bytes)?;
        if let Some((i, key)) = find(&REQUIRED, key) {
            set(&mut required[i], read(reader, at.key(key), u32)?, at.key(key))?;
        } else if let Some((i, key)) = find(&STRINGS, key) {
            set(&mut strings[i], read(reader, at.key(key), Reader::str)?, at.key(key))?;
        } else if key == b".args" {
            set(&mut args, args::parse(reader, at)?, at.key(".args"))?;
        } else if let Some((i, key)) = find(&FLAGS, key) {
            set(&mut flags[i], read(reader, at.key(key), Reader::bool)?, at.key(key))?;
        } else if let Some((i, key)) = find(&OPTIONAL, key) {
            set(&mut optional[i], read(reader, at.key(key), u32)?, at.key(key))?;
        } else if let Some((i, key)) = find(&TRIPLES, key) {
            set(&mut triples[i], triple(reader, at.key(key))?, at.key(key))?;
        } else if key == b".language_version" {
            let path = at.key(".language_version");
            set(&mut language_version, pair(reader, path)?, path)?;
        } else if key == b".kind" {
            let path = at.key(".kind");
            set(&mut kind, one_of(reader, path, &KINDS, KIND_RULE)?, path)?;
        } else {
            read(reader, at, Reader::skip)?;
        }
    }

    let missing = |key| MetadataError::Missing { path: at.key(key) };
    let number = |i: usize| required[i].ok_or(missing(REQUIRED[i]));
    let kernel = KernelMetadata {
        name: strings[0].ok_or(missing(STRINGS[0]))?,
        symbol: strings[1].ok_or(missing(STRINGS[1]))?,
        args: args.unwrap_or_default(),
        kernarg_segment_size: number(0)?,
        kernarg_segment_align: number(1)?,
        group_segment_fixed_size: number(2)?,
        private_segment_fixed_size: number(3)?,
        wavefront_size: number(4)?,
        sgpr_count: number(5)?,
        vgpr_count: number(6)?,
        max_flat_workgroup_size: number(7)?,
        agpr_count: optional[0],
        sgpr_spill_count: optional[1],
        vgpr_spill_count: optional[2],
        max_num_workgroups: [optional[3], optional[4], optional[5]],
        reqd_workgroup_size: triples[0],
        workgroup_size_hint: triples[1],
        cluster_dims: triples[2],
        vec_type_hint: strings[2],
        language: strings[3],
        language_version,
        device_enqueue_symbol: strings[4],
        kind: kind.unwrap_or_default(),
        uses_dynamic_stack: flags[0],
        workgroup_processor_mode: flags[1],
        uniform_work_group_size: flags[2],
    };
    let rule =
        |i: usize, value: u32, rule| MetadataError::Rule { path: at.key(REQUIRED[i]), value: value.to_string(), rule };
    let align = kernel.kernarg_segment_align;
    if align != 0 && !align.is_power_of_two() {
        return Err(rule(1, align, "a power of two"));
    }
    if !matches!(kernel.wavefront_size, 32 | 64) {
        return Err(rule(4, kernel.wavefront_size, "32 or 64"));
    }
    args::check_layout(&kernel.args, kernel.kernarg_segment_size, at)?;
    Ok(kernel)
}

//! Kernel arguments (LLVM AMDGPUUsage "Code Object V3 Kernel Argument Metadata Map" and the changes of V5).

use super::{MetadataError, Path, read, set, u32};
use crate::error::shown;
use crate::msgpack::Reader;

/// `.value_kind`: what goes into an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind<'a> {
    /// The value itself.
    ByValue,
    /// Address of global memory.
    GlobalBuffer,
    /// Offset in LDS of memory the launcher adds to the static size.
    DynamicSharedPointer,
    /// Address of a sampler.
    Sampler,
    /// Address of an image.
    Image,
    /// Address of a pipe.
    Pipe,
    /// Address of a device queue.
    Queue,
    /// Grid offset in x.
    HiddenGlobalOffsetX,
    /// Grid offset in y.
    HiddenGlobalOffsetY,
    /// Grid offset in z.
    HiddenGlobalOffsetZ,
    /// A hole.
    HiddenNone,
    /// Address of the OpenCL printf buffer.
    HiddenPrintfBuffer,
    /// Address of the hostcall buffer.
    HiddenHostcallBuffer,
    /// Address of the default device queue.
    HiddenDefaultQueue,
    /// Address of what device enqueue runs at its end.
    HiddenCompletionAction,
    /// Address of the state of a cooperative launch.
    HiddenMultigridSyncArg,
    /// Address of the heap of device `malloc`.
    HiddenHeapV1,
    /// LDS bytes of the dispatch beyond the static size.
    HiddenDynamicLdsSize,
    /// Whole work-groups in x.
    HiddenBlockCountX,
    /// Whole work-groups in y.
    HiddenBlockCountY,
    /// Whole work-groups in z.
    HiddenBlockCountZ,
    /// Work-items of a work-group in x.
    HiddenGroupSizeX,
    /// Work-items of a work-group in y.
    HiddenGroupSizeY,
    /// Work-items of a work-group in z.
    HiddenGroupSizeZ,
    /// Work-items of the partial work-group in x.
    HiddenRemainderX,
    /// Work-items of the partial work-group in y.
    HiddenRemainderY,
    /// Work-items of the partial work-group in z.
    HiddenRemainderZ,
    /// Dimensions of the grid.
    HiddenGridDims,
    /// High half of the scratch aperture's address.
    HiddenPrivateBase,
    /// High half of the LDS aperture's address.
    HiddenSharedBase,
    /// Address of the `amd_queue_t`.
    HiddenQueuePtr,
    /// A kind that is not known here: a kernel with it cannot be launched.
    Other(&'a str),
}

use ValueKind as K;

/// Kinds, their names, and their sizes where they have one.
#[rustfmt::skip]
const KINDS: [(&str, ValueKind<'static>, Option<u32>); 31] = [
    ("by_value", K::ByValue, None),
    ("global_buffer", K::GlobalBuffer, Some(8)),
    ("dynamic_shared_pointer", K::DynamicSharedPointer, Some(4)),
    ("sampler", K::Sampler, Some(8)),
    ("image", K::Image, Some(8)),
    ("pipe", K::Pipe, Some(8)),
    ("queue", K::Queue, Some(8)),
    ("hidden_block_count_x", K::HiddenBlockCountX, Some(4)),
    ("hidden_block_count_y", K::HiddenBlockCountY, Some(4)),
    ("hidden_block_count_z", K::HiddenBlockCountZ, Some(4)),
    ("hidden_group_size_x", K::HiddenGroupSizeX, Some(2)),
    ("hidden_group_size_y", K::HiddenGroupSizeY, Some(2)),
    ("hidden_group_size_z", K::HiddenGroupSizeZ, Some(2)),
    ("hidden_remainder_x", K::HiddenRemainderX, Some(2)),
    ("hidden_remainder_y", K::HiddenRemainderY, Some(2)),
    ("hidden_remainder_z", K::HiddenRemainderZ, Some(2)),
    ("hidden_global_offset_x", K::HiddenGlobalOffsetX, Some(8)),
    ("hidden_global_offset_y", K::HiddenGlobalOffsetY, Some(8)),
    ("hidden_global_offset_z", K::HiddenGlobalOffsetZ, Some(8)),
    ("hidden_grid_dims", K::HiddenGridDims, Some(2)),
    ("hidden_none", K::HiddenNone, None),
    ("hidden_printf_buffer", K::HiddenPrintfBuffer, Some(8)),
    ("hidden_hostcall_buffer", K::HiddenHostcallBuffer, Some(8)),
    ("hidden_multigrid_sync_arg", K::HiddenMultigridSyncArg, Some(8)),
    ("hidden_heap_v1", K::HiddenHeapV1, Some(8)),
    ("hidden_default_queue", K::HiddenDefaultQueue, Some(8)),
    ("hidden_completion_action", K::HiddenCompletionAction, Some(8)),
    ("hidden_dynamic_lds_size", K::HiddenDynamicLdsSize, Some(4)),
    ("hidden_private_base", K::HiddenPrivateBase, Some(4)),
    ("hidden_shared_base", K::HiddenSharedBase, Some(4)),
    ("hidden_queue_ptr", K::HiddenQueuePtr, Some(8)),
];

impl<'a> ValueKind<'a> {
    /// The kind of this name, and the size its arguments have.
    fn from_name(name: &'a str) -> (ValueKind<'a>, Option<u32>) {
        KINDS.iter().find(|(n, ..)| *n == name).map_or((K::Other(name), None), |(_, kind, size)| (*kind, *size))
    }

    /// The name in the metadata.
    pub fn name(self) -> &'a str {
        match self {
            K::Other(name) => name,
            kind => KINDS.iter().find(|(_, k, _)| *k == kind).map_or("", |(name, ..)| name),
        }
    }

    /// Not an argument of the source: the launcher fills it.
    pub fn is_hidden(self) -> bool {
        self.name().starts_with("hidden_")
    }
}

/// `.address_space` of a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressSpace {
    /// Scratch.
    Private,
    /// Global memory.
    Global,
    /// Constant memory.
    Constant,
    /// LDS.
    Local,
    /// Any of them.
    Generic,
    /// Global data share.
    Region,
}

/// `.access` and `.actual_access`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// `read_only`.
    ReadOnly,
    /// `write_only`.
    WriteOnly,
    /// `read_write`.
    ReadWrite,
}

/// A kernel argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arg<'a> {
    /// `.offset` in the kernarg segment.
    pub offset: u32,
    /// `.size` in bytes.
    pub size: u32,
    /// `.value_kind`.
    pub value_kind: ValueKind<'a>,
    /// `.name`, which compilers of C leave out.
    pub name: Option<&'a str>,
    /// `.type_name`.
    pub type_name: Option<&'a str>,
    /// `.address_space`.
    pub address_space: Option<AddressSpace>,
    /// `.access`, as declared.
    pub access: Option<Access>,
    /// `.actual_access`, as used.
    pub actual_access: Option<Access>,
    /// `.pointee_align` of LDS pointers, in bytes.
    pub pointee_align: Option<u32>,
    /// `.is_const`.
    pub is_const: bool,
    /// `.is_restrict`.
    pub is_restrict: bool,
    /// `.is_volatile`.
    pub is_volatile: bool,
    /// `.is_pipe`.
    pub is_pipe: bool,
}

impl<'a> Arg<'a> {
    /// An argument of which no more is known than the metadata must say.
    pub fn new(value_kind: ValueKind<'a>, offset: u32, size: u32) -> Arg<'a> {
        Arg {
            offset,
            size,
            value_kind,
            name: None,
            type_name: None,
            address_space: None,
            access: None,
            actual_access: None,
            pointee_align: None,
            is_const: false,
            is_restrict: false,
            is_volatile: false,
            is_pipe: false,
        }
    }
}

/// Reads the arguments of kernel number `kernel`.
pub(super) fn parse<'a>(reader: &mut Reader<'a>, kernel: Path) -> Result<Vec<Arg<'a>>, MetadataError> {
    let count = read(reader, kernel.key(".args"), Reader::array)?;
    // A map takes more than a byte: a wrong count does not become memory.
    let mut args = Vec::with_capacity((count as usize).min(reader.left() / 16));
    for i in 0..count {
        args.push(arg(reader, kernel.arg(i))?);
    }
    Ok(args)
}

fn arg<'a>(reader: &mut Reader<'a>, at: Path) -> Result<Arg<'a>, MetadataError> {
    let (mut offset, mut size, mut value_kind, mut name, mut type_name) = (None, None, None, None, None);
    let (mut address_space, mut access, mut actual_access, mut pointee_align) = (None, None, None, None);
    let (mut is_const, mut is_restrict, mut is_volatile, mut is_pipe) = (None, None, None, None);
    for _ in 0..read(reader, at, Reader::map)? {
        let flag = match read(reader, at, Reader::str_bytes)? {
            b".offset" => {
                let path = at.key(".offset");
                set(&mut offset, read(reader, path, u32)?, path)?;
                continue;
            }
            b".size" => {
                let path = at.key(".size");
                set(&mut size, read(reader, path, u32)?, path)?;
                continue;
            }
            b".value_kind" => {
                let path = at.key(".value_kind");
                set(&mut value_kind, ValueKind::from_name(read(reader, path, Reader::str)?), path)?;
                continue;
            }
            b".name" => {
                let path = at.key(".name");
                set(&mut name, read(reader, path, Reader::str)?, path)?;
                continue;
            }
            b".type_name" => {
                let path = at.key(".type_name");
                set(&mut type_name, read(reader, path, Reader::str)?, path)?;
                continue;
            }
            b".address_space" => {
                let path = at.key(".address_space");
                set(&mut address_space, one_of(reader, path, &SPACES, SPACE_RULE)?, path)?;
                continue;
            }
            b".access" => {
                let path = at.key(".access");
                set(&mut access, one_of(reader, path, &ACCESSES, ACCESS_RULE)?, path)?;
                continue;
            }
            b".actual_access" => {
                let path = at.key(".actual_access");
                set(&mut actual_access, one_of(reader, path, &ACCESSES, ACCESS_RULE)?, path)?;
                continue;
            }
            b".pointee_align" => {
                let path = at.key(".pointee_align");
                let value = read(reader, path, u32)?;
                if !value.is_power_of_two() {
                    return Err(MetadataError::Rule { path, value: value.to_string(), rule: "a power of two" });
                }
                set(&mut pointee_align, value, path)?;
                continue;
            }
            b".is_const" => (&mut is_const, ".is_const"),
            b".is_restrict" => (&mut is_restrict, ".is_restrict"),
            b".is_volatile" => (&mut is_volatile, ".is_volatile"),
            b".is_pipe" => (&mut is_pipe, ".is_pipe"),
            _ => {
                read(reader, at, Reader::skip)?;
                continue;
            }
        };
        let path = at.key(flag.1);
        set(flag.0, read(reader, path, Reader::bool)?, path)?;
    }
    let missing = |key| MetadataError::Missing { path: at.key(key) };
    let (value_kind, kind_size) = value_kind.ok_or(missing(".value_kind"))?;
    let arg = Arg {
        offset: offset.ok_or(missing(".offset"))?,
        size: size.ok_or(missing(".size"))?,
        value_kind,
        name,
        type_name,
        address_space,
        access,
        actual_access,
        pointee_align,
        is_const: is_const.unwrap_or(false),
        is_restrict: is_restrict.unwrap_or(false),
        is_volatile: is_volatile.unwrap_or(false),
        is_pipe: is_pipe.unwrap_or(false),
    };
    if let Some(rule) = kind_size.filter(|&rule| rule != arg.size) {
        let (path, kind) = (at.key(".size"), value_kind.name().to_owned());
        return Err(MetadataError::ArgSize { path, size: arg.size, rule, kind });
    }
    Ok(arg)
}

const SPACE_RULE: &str = "private, global, constant, local, generic or region";
const SPACES: [(&str, AddressSpace); 6] = [
    ("global", AddressSpace::Global),
    ("generic", AddressSpace::Generic),
    ("local", AddressSpace::Local),
    ("constant", AddressSpace::Constant),
    ("private", AddressSpace::Private),
    ("region", AddressSpace::Region),
];

const ACCESS_RULE: &str = "read_only, write_only or read_write";
const ACCESSES: [(&str, Access); 3] =
    [("read_only", Access::ReadOnly), ("write_only", Access::WriteOnly), ("read_write", Access::ReadWrite)];

/// A string of a fixed set.
pub(super) fn one_of<T: Copy>(
    reader: &mut Reader<'_>,
    path: Path,
    names: &[(&str, T)],
    rule: &'static str,
) -> Result<T, MetadataError> {
    let name = read(reader, path, Reader::str)?;
    match names.iter().find(|(n, _)| *n == name) {
        Some((_, value)) => Ok(*value),
        None => Err(MetadataError::Rule { path, value: format!("`{}`", shown(name)), rule }),
    }
}

/// Checks that arguments lie in the kernarg segment, and apart.
pub(super) fn check_layout(args: &[Arg<'_>], segment: u32, kernel: Path) -> Result<(), MetadataError> {
    let end_of = |arg: &Arg<'_>| u64::from(arg.offset) + u64::from(arg.size);
    let path = |i: usize| kernel.arg(i as u32).key(".offset");
    if let Some((i, arg)) = args.iter().enumerate().find(|(_, arg)| end_of(arg) > u64::from(segment)) {
        return Err(MetadataError::ArgOutside { path: path(i), offset: arg.offset, size: arg.size, segment });
    }
    // Compilers list them by offset; sort only what is not.
    let mut order: Vec<usize> = vec![];
    if !args.is_sorted_by_key(|arg| arg.offset) {
        order = (0..args.len()).collect();
        order.sort_by_key(|&i| args[i].offset);
    }
    let nth = |i: usize| order.get(i).copied().unwrap_or(i);
    let mut last: Option<(usize, u64)> = None;
    for i in (0..args.len()).map(nth) {
        let offset = args[i].offset;
        if let Some((other, end)) = last.filter(|&(_, end)| u64::from(offset) < end) {
            return Err(MetadataError::ArgOverlap { path: path(i), offset, other, end });
        }
        last = Some((i, end_of(&args[i])));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_names_both_ways() {
        for (name, kind, size) in KINDS {
            assert_eq!(ValueKind::from_name(name), (kind, size));
            assert_eq!(kind.name(), name);
            assert_eq!(kind.is_hidden(), name.starts_with("hidden"));
        }
        assert_eq!(ValueKind::from_name("hidden_later"), (K::Other("hidden_later"), None));
        assert!(K::Other("hidden_later").is_hidden());
    }

    fn arg_at(offset: u32, size: u32) -> Arg<'static> {
        Arg::new(K::ByValue, offset, size)
    }

    #[test]
    fn layouts() {
        let at = Path::of_kernel(2);
        let check = |args: &[Arg<'_>]| check_layout(args, 24, at).map_err(|error| error.to_string());
        assert_eq!(check(&[]), Ok(()));
        assert_eq!(check(&[arg_at(0, 8), arg_at(8, 8), arg_at(20, 4)]), Ok(()));
        assert_eq!(check(&[arg_at(20, 4), arg_at(8, 8), arg_at(0, 8)]), Ok(()));
        assert_eq!(check(&[arg_at(8, 0), arg_at(8, 8)]), Ok(()));
        let error = check(&[arg_at(0, 8), arg_at(20, 8)]).unwrap_err();
        assert_eq!(
            error,
            "metadata amdhsa.kernels[2].args[1].offset is 20 with a size of 8: must end inside the kernarg segment's \
             24 bytes"
        );
        let error = check(&[arg_at(4, 8), arg_at(16, 8), arg_at(0, 8)]).unwrap_err();
        assert_eq!(error, "metadata amdhsa.kernels[2].args[0].offset is 4: overlaps argument 2, which ends at 8");
        assert!(check(&[arg_at(u32::MAX, u32::MAX)]).is_err());
    }
}

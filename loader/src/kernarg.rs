//! The kernel argument segment.
//!
//! Every argument goes where the metadata puts it. The segment is zero first; a hidden argument is filled by its kind, and
//! a kind that this loader does not know or cannot serve is refused by name, never left zero in silence.

use elf::{Arg, KernelMetadata, ValueKind};

/// The number and size of work-groups of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Dimensions used, 1 to 3.
    pub dims: u16,
    /// Work-items of a work-group.
    pub group: [u32; 3],
    /// Work-items of the grid.
    pub grid: [u32; 3],
}

/// What a [`Shape`] can be.
pub const SHAPE_RULE: &str = "a dimension of a work-group has 1 to 65535 work-items, one of the grid fewer than 2^32, the \
                              whole grid fewer than 2^64";

impl Shape {
    /// `blocks` work-groups of `threads` work-items. Three dimensions, as the program loaders of LLVM launch, unless the
    /// outer ones are 1.
    ///
    /// None when the grid has 2^32 work-items or more in a dimension or 2^64 in all, or a dimension of a work-group does not
    /// fit 16 bits.
    pub fn of_groups(threads: [u32; 3], blocks: [u32; 3]) -> Option<Shape> {
        let mut grid = [0; 3];
        for ((grid, threads), blocks) in grid.iter_mut().zip(threads).zip(blocks) {
            *grid = threads.checked_mul(blocks).filter(|items| *items > 0)?;
        }
        Shape::of_items(threads, grid)
    }

    /// A grid of `grid` work-items, cut into work-groups of `group`; the last of a dimension may be partial. None as with
    /// [`Shape::of_groups`].
    pub fn of_items(group: [u32; 3], grid: [u32; 3]) -> Option<Shape> {
        if group.iter().any(|size| *size == 0 || *size > 0xffff) || grid.contains(&0) {
            return None;
        }
        grid.iter().try_fold(1u64, |items, size| items.checked_mul(u64::from(*size)))?;
        let dims = if grid[2] > 1 || group[2] > 1 {
            3
        } else if grid[1] > 1 || group[1] > 1 {
            2
        } else {
            1
        };
        Some(Shape { dims, group, grid })
    }

    /// Work-items of a work-group.
    pub fn group_items(&self) -> u64 {
        self.group.iter().map(|size| u64::from(*size)).product()
    }

    /// Waves of `lanes` lanes.
    pub fn waves(&self, lanes: u32) -> u64 {
        self.groups().saturating_mul(self.group_items().div_ceil(u64::from(lanes.max(1))))
    }

    /// Work-groups, partial ones included.
    pub fn groups(&self) -> u64 {
        let groups = self.grid.iter().zip(self.group).map(|(grid, group)| u64::from(grid.div_ceil(group.max(1))));
        groups.fold(1, u64::saturating_mul)
    }
}

/// A value for an explicit argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// The bytes of a by-value argument, as many as the metadata says.
    Bytes(Vec<u8>),
    /// A device address, for pointers.
    Address(u64),
    /// LDS bytes for a `dynamic_shared_pointer`.
    Lds(u32),
}

impl From<u32> for Value {
    fn from(value: u32) -> Value {
        Value::Bytes(value.to_le_bytes().to_vec())
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Value {
        Value::Bytes(value.to_le_bytes().to_vec())
    }
}

impl From<f32> for Value {
    fn from(value: f32) -> Value {
        Value::Bytes(value.to_le_bytes().to_vec())
    }
}

/// What hidden arguments tell of the launch and the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hidden {
    /// The launch.
    pub shape: Shape,
    /// LDS bytes beyond what the kernel has statically.
    pub dynamic_lds: u32,
    /// Address of the `amd_queue_t`.
    pub queue: u64,
    /// High half of the LDS aperture.
    pub shared_base: u32,
    /// High half of the scratch aperture.
    pub private_base: u32,
    /// Address of the printf buffer, or 0.
    pub printf_buffer: u64,
    /// Address of the hostcall buffer, or 0.
    pub hostcall_buffer: u64,
    /// Address of the device heap, or 0.
    pub heap: u64,
}

/// Why a kernel's arguments cannot be set up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Wrong number of arguments.
    #[error("kernel {kernel}: the number of arguments is {given}, it takes {expected}")]
    Count {
        /// Kernel.
        kernel: String,
        /// In the metadata.
        expected: usize,
        /// Given.
        given: usize,
    },
    /// A value that does not fit its argument.
    #[error("kernel {kernel} argument {index}{name} is {kind} of {size} bytes; {given} is given")]
    Mismatch {
        /// Kernel.
        kernel: String,
        /// Index among the explicit arguments.
        index: usize,
        /// ` (name)`, when the metadata has one.
        name: String,
        /// `.value_kind`.
        kind: String,
        /// `.size`.
        size: u32,
        /// What was given.
        given: String,
    },
    /// A hidden argument of an unknown kind.
    #[error(
        "kernel {kernel} wants the hidden argument '{kind}' at offset {offset}, which this version does not know; the image \
         is newer than it"
    )]
    UnknownHidden {
        /// Kernel.
        kernel: String,
        /// `.value_kind`.
        kind: String,
        /// `.offset`.
        offset: u32,
    },
    /// More LDS than there is.
    #[error("kernel {kernel}: {fixed} bytes of LDS + {dynamic} dynamic bytes are more than the device's {limit}")]
    Lds {
        /// Kernel.
        kernel: String,
        /// Static.
        fixed: u32,
        /// Dynamic.
        dynamic: u64,
        /// Limit.
        limit: u32,
    },
    /// An argument outside the segment. The metadata parser excludes it.
    #[error("kernel {kernel}: the argument at offset {offset} of {size} bytes lies outside the segment of {segment}")]
    Outside {
        /// Kernel.
        kernel: String,
        /// `.offset`.
        offset: u32,
        /// `.size`.
        size: u32,
        /// `.kernarg_segment_size`.
        segment: usize,
    },
}

/// The segment of a launch, and its LDS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernarg {
    /// `.kernarg_segment_size` bytes.
    pub bytes: Vec<u8>,
    /// LDS of a work-group: static, then `dynamic_shared_pointer` arguments, then the dynamic bytes of `hidden`.
    pub group_segment_size: u32,
}

/// Builds the segment for a kernel from the values of its explicit arguments, in order. `lds_limit` is the device's LDS of
/// a work-group in bytes.
pub fn build(kernel: &KernelMetadata, values: &[Value], hidden: &Hidden, lds_limit: u32) -> Result<Kernarg, Error> {
    let name = || kernel.name.to_owned();
    let explicit: Vec<&Arg> = kernel.args.iter().filter(|arg| !arg.value_kind.is_hidden()).collect();
    if explicit.len() != values.len() {
        return Err(Error::Count { kernel: name(), expected: explicit.len(), given: values.len() });
    }
    let mut bytes = vec![0u8; kernel.kernarg_segment_size as usize];
    let mut lds = u64::from(kernel.group_segment_fixed_size);
    for (index, (arg, value)) in explicit.into_iter().zip(values).enumerate() {
        let data = match (arg.value_kind, value) {
            (ValueKind::ByValue, Value::Bytes(data)) if data.len() == arg.size as usize => data.clone(),
            (ValueKind::GlobalBuffer, Value::Address(va)) => va.to_le_bytes().to_vec(),
            // C pointers to address space 4 and opaque handles are by_value in some producers' metadata.
            (ValueKind::ByValue, Value::Address(va)) if arg.size == 8 => va.to_le_bytes().to_vec(),
            (ValueKind::DynamicSharedPointer, Value::Lds(size)) => {
                let align = u64::from(arg.pointee_align.unwrap_or(1).max(1));
                let at = lds.next_multiple_of(align);
                lds = at + u64::from(*size);
                (at.min(u64::from(u32::MAX)) as u32).to_le_bytes().to_vec()
            }
            _ => {
                return Err(Error::Mismatch {
                    kernel: name(),
                    index,
                    name: arg.name.map(|name| format!(" ({name})")).unwrap_or_default(),
                    kind: arg.value_kind.name().to_owned(),
                    size: arg.size,
                    given: match value {
                        Value::Bytes(data) => format!("a value of {} bytes", data.len()),
                        Value::Address(_) => "a device address".to_owned(),
                        Value::Lds(_) => "an LDS size".to_owned(),
                    },
                });
            }
        };
        store(kernel, &mut bytes, arg, &data)?;
    }
    lds += u64::from(hidden.dynamic_lds);
    if lds > u64::from(lds_limit) {
        let fixed = kernel.group_segment_fixed_size;
        return Err(Error::Lds { kernel: name(), fixed, dynamic: lds - u64::from(fixed), limit: lds_limit });
    }
    for arg in kernel.args.iter().filter(|arg| arg.value_kind.is_hidden()) {
        let value = hidden_value(kernel, arg, hidden)?;
        let size = (arg.size as usize).min(8);
        store(kernel, &mut bytes, arg, &value.to_le_bytes()[..size])?;
    }
    Ok(Kernarg { bytes, group_segment_size: lds as u32 })
}

/// The value of a hidden argument (LLVM AMDGPUUsage "Code Object V5 Kernel Argument Metadata Map").
fn hidden_value(kernel: &KernelMetadata, arg: &Arg, hidden: &Hidden) -> Result<u64, Error> {
    let Hidden { shape, .. } = hidden;
    // Work-groups that are whole; what is left over is the remainder.
    let count = |axis: usize| u64::from(shape.grid[axis] / shape.group[axis]);
    let remainder = |axis: usize| u64::from(shape.grid[axis] % shape.group[axis]);
    let size = |axis: usize| u64::from(shape.group[axis]);
    Ok(match arg.value_kind {
        ValueKind::HiddenBlockCountX => count(0),
        ValueKind::HiddenBlockCountY => count(1),
        ValueKind::HiddenBlockCountZ => count(2),
        ValueKind::HiddenGroupSizeX => size(0),
        ValueKind::HiddenGroupSizeY => size(1),
        ValueKind::HiddenGroupSizeZ => size(2),
        ValueKind::HiddenRemainderX => remainder(0),
        ValueKind::HiddenRemainderY => remainder(1),
        ValueKind::HiddenRemainderZ => remainder(2),
        ValueKind::HiddenGlobalOffsetX | ValueKind::HiddenGlobalOffsetY | ValueKind::HiddenGlobalOffsetZ => 0,
        ValueKind::HiddenNone => 0,
        ValueKind::HiddenGridDims => u64::from(shape.dims),
        ValueKind::HiddenDynamicLdsSize => u64::from(hidden.dynamic_lds),
        ValueKind::HiddenPrivateBase => u64::from(hidden.private_base),
        ValueKind::HiddenSharedBase => u64::from(hidden.shared_base),
        ValueKind::HiddenQueuePtr => hidden.queue,
        ValueKind::HiddenPrintfBuffer => hidden.printf_buffer,
        ValueKind::HiddenHostcallBuffer => hidden.hostcall_buffer,
        ValueKind::HiddenHeapV1 => hidden.heap,
        // Null, as LLVM's own program loader leaves them: the compiler lists these for every kernel that calls through
        // a pointer, used or not. A kernel that does use one ends in a memory fault at a null page, never in a wrong value.
        ValueKind::HiddenMultigridSyncArg | ValueKind::HiddenDefaultQueue | ValueKind::HiddenCompletionAction => 0,
        _ => {
            return Err(Error::UnknownHidden {
                kernel: kernel.name.to_owned(),
                kind: arg.value_kind.name().to_owned(),
                offset: arg.offset,
            });
        }
    })
}

fn store(kernel: &KernelMetadata, bytes: &mut [u8], arg: &Arg, data: &[u8]) -> Result<(), Error> {
    let segment = bytes.len();
    let at = arg.offset as usize;
    match at.checked_add(data.len()).and_then(|end| bytes.get_mut(at..end)) {
        Some(slot) => {
            slot.copy_from_slice(data);
            Ok(())
        }
        None => Err(Error::Outside { kernel: kernel.name.to_owned(), offset: arg.offset, size: arg.size, segment }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use elf::CodeObject;

    const IMAGE: &[u8] = include_bytes!("../../tests/programs/images/hidden.gfx90a");

    fn hidden() -> Hidden {
        Hidden {
            shape: Shape::of_items([64, 2, 1], [300, 5, 1]).unwrap(),
            dynamic_lds: 0x200,
            queue: 0x7000_0000_1000,
            shared_base: 0x1_0000,
            private_base: 0x2_0000,
            printf_buffer: 0x7000_0000_2000,
            hostcall_buffer: 0x7000_0000_3000,
            heap: 0x7000_0000_4000,
        }
    }

    #[test]
    fn grids_that_cannot_be_counted_are_none() {
        let most = u32::MAX;
        assert!(Shape::of_items([1; 3], [most, most, 1]).is_some());
        assert_eq!(Shape::of_items([1; 3], [most, most, 2]), None);
        assert_eq!(Shape::of_groups([1; 3], [most; 3]), None);
        assert_eq!(Shape::of_groups([2, 1, 1], [1 << 31, 1, 1]), None);
    }

    fn arg(offset: u32, size: u32, value_kind: ValueKind<'static>) -> Arg<'static> {
        Arg::new(value_kind, offset, size)
    }

    /// The segment of a kernel of these arguments.
    fn segment(args: Vec<Arg>, size: u32, values: &[Value]) -> Result<Kernarg, Error> {
        let code = CodeObject::parse(IMAGE).unwrap();
        let mut kernel = code.kernels()[0].metadata.clone();
        (kernel.args, kernel.kernarg_segment_size, kernel.group_segment_fixed_size) = (args, size, 0x100);
        build(&kernel, values, &hidden(), 65536)
    }

    /// The tables of LLVM's AMDGPUUsage, "Code Object V3 Kernel Argument Metadata Map" and "V5", and what each is here.
    #[test]
    fn every_hidden_argument_of_every_version() {
        use ValueKind::*;
        let of_v5 = [
            (0, 4, HiddenBlockCountX, 4),
            (4, 4, HiddenBlockCountY, 2),
            (8, 4, HiddenBlockCountZ, 1),
            (12, 2, HiddenGroupSizeX, 64),
            (14, 2, HiddenGroupSizeY, 2),
            (16, 2, HiddenGroupSizeZ, 1),
            (18, 2, HiddenRemainderX, 44),
            (20, 2, HiddenRemainderY, 1),
            (22, 2, HiddenRemainderZ, 0),
            (40, 8, HiddenGlobalOffsetX, 0),
            (48, 8, HiddenGlobalOffsetY, 0),
            (56, 8, HiddenGlobalOffsetZ, 0),
            (64, 2, HiddenGridDims, 2),
            (72, 8, HiddenPrintfBuffer, 0x7000_0000_2000),
            (80, 8, HiddenHostcallBuffer, 0x7000_0000_3000),
            (88, 8, HiddenMultigridSyncArg, 0),
            (96, 8, HiddenHeapV1, 0x7000_0000_4000),
            (104, 8, HiddenDefaultQueue, 0),
            (112, 8, HiddenCompletionAction, 0),
            (120, 4, HiddenDynamicLdsSize, 0x200),
            (192, 4, HiddenPrivateBase, 0x2_0000),
            (196, 4, HiddenSharedBase, 0x1_0000),
            (200, 8, HiddenQueuePtr, 0x7000_0000_1000),
        ];
        // Three words of global offsets, then slots of which one kernel has one kind and another none.
        let of_v3 = [
            (0, 8, HiddenGlobalOffsetX, 0),
            (8, 8, HiddenGlobalOffsetY, 0),
            (16, 8, HiddenGlobalOffsetZ, 0),
            (24, 8, HiddenPrintfBuffer, 0x7000_0000_2000),
            (32, 8, HiddenNone, 0),
            (40, 8, HiddenCompletionAction, 0),
            (48, 8, HiddenMultigridSyncArg, 0),
        ];
        for (list, size) in [(&of_v5[..], 256), (&of_v3[..], 56)] {
            // Behind one explicit argument of 4 bytes.
            let explicit = arg(0, 4, ByValue);
            let args = list.iter().map(|(offset, size, kind, _)| arg(8 + offset, *size, *kind));
            let built =
                segment([explicit].into_iter().chain(args).collect(), 8 + size, &[Value::from(0xabcdu32)]).unwrap();
            let mut expected = vec![0; 8 + size as usize];
            expected[..4].copy_from_slice(&0xabcdu32.to_le_bytes());
            for (offset, size, _, value) in list {
                let (at, value): (usize, u64) = (8 + *offset as usize, *value);
                expected[at..at + *size as usize].copy_from_slice(&value.to_le_bytes()[..*size as usize]);
            }
            assert_eq!(built.bytes, expected, "holes stay zero");
            assert_eq!(built.group_segment_size, 0x300, "static and dynamic LDS");
        }
    }

    #[test]
    fn what_cannot_be_filled_is_refused_by_name() {
        let error = segment(vec![arg(8, 8, ValueKind::Other("hidden_teleport_buffer"))], 16, &[]);
        // The parser takes kinds that start so for hidden ones.
        let text = error.unwrap_err().to_string();
        assert!(text.contains("hidden_teleport_buffer") && text.contains("offset 8"), "{text}");
        for (kind, name) in [
            (ValueKind::Image, "image"),
            (ValueKind::Sampler, "sampler"),
            (ValueKind::Pipe, "pipe"),
            (ValueKind::Queue, "queue"),
        ] {
            let text = segment(vec![arg(0, 8, kind)], 8, &[Value::Address(0)]).unwrap_err().to_string();
            assert!(text.contains(&format!("is {name} of 8 bytes; a device address is given")), "{text}");
        }
    }

    #[test]
    fn lds_arguments_and_their_limit() {
        let mut local = arg(0, 4, ValueKind::DynamicSharedPointer);
        local.pointee_align = Some(64);
        let built = segment(
            vec![local.clone(), arg(4, 4, ValueKind::DynamicSharedPointer)],
            8,
            &[Value::Lds(5), Value::Lds(7)],
        );
        let built = built.unwrap();
        assert_eq!(built.bytes, [&0x100u32.to_le_bytes()[..], &0x105u32.to_le_bytes()].concat());
        assert_eq!(built.group_segment_size, 0x100 + 5 + 7 + 0x200);
        let error = segment(vec![local], 4, &[Value::Lds(65536)]).unwrap_err();
        assert!(error.to_string().contains("more than the device's 65536"), "{error}");
    }
}

//! How a C structure and a C constant are written down once, and used as a Rust type, as bytes, as trace fields and as
//! a line of the header check.

use trace::Format;

/// Plain old data: a structure that crosses the system call boundary as bytes.
///
/// # Safety
/// The type is `repr(C)` or a primitive, has no padding, holds no reference and no cell, and every bit pattern is a
/// valid value.
pub unsafe trait Pod: Copy + 'static {
    /// The value with every byte zero.
    fn zeroed() -> Self {
        // SAFETY: every bit pattern is a valid value of a `Pod`.
        unsafe { std::mem::zeroed() }
    }

    /// The bytes of the value, in host order.
    fn as_bytes(&self) -> &[u8] {
        // SAFETY: a `Pod` has no padding, so all its bytes are initialised; the borrow covers exactly the value.
        unsafe { std::slice::from_raw_parts((&raw const *self).cast(), size_of::<Self>()) }
    }

    /// The bytes of the value, for the kernel to write.
    fn as_bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_bytes`; any byte written leaves a valid value, for every bit pattern is one.
        unsafe { std::slice::from_raw_parts_mut((&raw mut *self).cast(), size_of::<Self>()) }
    }

    /// The value at the start of `bytes`, whatever their alignment. None when they are too few.
    fn from_prefix(bytes: &[u8]) -> Option<Self> {
        (bytes.len() >= size_of::<Self>()).then(|| Self::from_prefix_or_zero(bytes))
    }

    /// The value at the start of `bytes`, what is missing being zero: how the kernel takes the argument of a caller
    /// that was built against an older header.
    fn from_prefix_or_zero(bytes: &[u8]) -> Self {
        let mut value = Self::zeroed();
        let len = bytes.len().min(size_of::<Self>());
        value.as_bytes_mut()[..len].copy_from_slice(&bytes[..len]);
        value
    }
}

// SAFETY: integers have no padding and every bit pattern is a value.
unsafe impl Pod for u8 {}
// SAFETY: as above.
unsafe impl Pod for u32 {}
// SAFETY: as above.
unsafe impl Pod for i32 {}
// SAFETY: as above.
unsafe impl Pod for u64 {}
// SAFETY: an array adds no padding to its elements, which are `Pod`.
unsafe impl<T: Pod, const N: usize> Pod for [T; N] {}

/// One member of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldLayout {
    /// Name in the header; the member of a nested structure is written with a dot, the names a member had in different
    /// header versions are separated by `|`, newest first. Empty for a hole the header leaves to the compiler.
    pub c_name: &'static str,
    /// Byte offset.
    pub offset: usize,
    /// Bytes.
    pub size: usize,
    /// How a trace shows it; none for padding and for members that are not a single number.
    pub format: Option<Format>,
    /// What it is, as documented here; a line starts with a space.
    pub doc: &'static str,
}

impl FieldLayout {
    /// The newest name the header gave it.
    pub fn name(&self) -> &'static str {
        self.c_name.split('|').next().unwrap_or_default()
    }
}

/// A structure of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Name after `struct` in the header.
    pub c_name: &'static str,
    /// Bytes.
    pub size: usize,
    /// Minor interface version that brought it, 1 for the first.
    pub since: u32,
    /// Members in order of offset.
    pub fields: &'static [FieldLayout],
}

impl Layout {
    /// The members of the structure that lies in `bytes` as trace fields: whole members only, padding left out.
    pub fn trace(&self, bytes: &[u8]) -> Vec<trace::Field> {
        let mut fields = Vec::with_capacity(self.fields.len());
        for field in self.fields {
            let Some(format) = field.format else { continue };
            let value = match bytes.get(field.offset..field.offset + field.size) {
                Some(&[a, b, c, d]) => u64::from(u32::from_ne_bytes([a, b, c, d])),
                Some(&[a, b, c, d, e, f, g, h]) => u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
                _ => continue,
            };
            fields.push(trace::Field { name: field.name(), value, format });
        }
        fields
    }
}

/// A structure of the header with its layout.
pub trait Record: Pod {
    /// Layout.
    const LAYOUT: &'static Layout;

    /// The members as trace fields.
    fn fields(&self) -> Vec<trace::Field> {
        Self::LAYOUT.trace(self.as_bytes())
    }
}

/// The argument structure of an ioctl.
pub trait Ioctl: Record {
    /// Name after `AMDKFD_IOC_`.
    const NAME: &'static str;
    /// Request number: direction, size, `'K'` and number.
    const REQUEST: u32;
}

/// A constant of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constant {
    /// Name in the header.
    pub c_name: &'static str,
    /// Value, zero-extended.
    pub value: u64,
    /// Bytes of the type it has here, 4 or 8.
    pub size: usize,
    /// Minor interface version that brought it, 1 for the first.
    pub since: u32,
    /// What it is, as documented here; a line starts with a space.
    pub doc: &'static str,
}

/// Writes structures: the Rust type, its byte views and its [`Layout`].
///
/// `Name = "c_name" since MINOR { field: type, show "c name"; }`, where `show` is `hex`, `dec` or `none` (not in a
/// trace) and the C name is only given when it differs.
macro_rules! structs {
    ($($(#[$meta:meta])* $name:ident = $c:literal since $since:literal {
        $($(#[doc = $field_doc:literal])* $field:ident: $ty:ty, $show:ident $($field_c:literal)?;)*
    })*) => {
        $(
            $(#[$meta])*
            #[doc = concat!("\n\n`struct ", $c, "`.")]
            #[repr(C)]
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
            pub struct $name {
                $($(#[doc = $field_doc])* pub $field: $ty,)*
            }

            const _: () = {
                const fn pod<T: $crate::uapi::Pod>() {}
                $(pod::<$ty>();)*
                assert!(size_of::<$name>() == 0 $(+ size_of::<$ty>())*, "padding");
            };

            // SAFETY: `repr(C)` of `Pod` members whose sizes sum to the size of the whole (both checked just above), so
            // there is no padding and every bit pattern is a value.
            unsafe impl $crate::uapi::Pod for $name {}

            impl $crate::uapi::Record for $name {
                const LAYOUT: &'static $crate::uapi::Layout = &$crate::uapi::Layout {
                    c_name: $c,
                    size: size_of::<$name>(),
                    since: $since,
                    fields: &[$($crate::uapi::FieldLayout {
                        c_name: structs!(@name $field $($field_c)?),
                        offset: std::mem::offset_of!($name, $field),
                        size: size_of::<$ty>(),
                        format: structs!(@show $show),
                        doc: concat!($($field_doc),*),
                    },)*],
                };
            }
        )*

        pub(super) const LAYOUTS: &[&$crate::uapi::Layout] = &[$(<$name as $crate::uapi::Record>::LAYOUT,)*];
    };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $c:literal) => { $c };
    (@show hex) => { Some(trace::Format::Hex) };
    (@show dec) => { Some(trace::Format::Dec) };
    (@show none) => { None };
}

/// Writes constants: `"PREFIX" type since MINOR { NAME = value; }`; the header's name is the prefix and the name.
macro_rules! constants {
    ($($prefix:literal $ty:ident since $since:literal {
        $($(#[doc = $doc:literal])* $name:ident = $value:expr;)*
    })*) => {
        $($(
            $(#[doc = $doc])*
            #[doc = concat!("\n\n`", $prefix, stringify!($name), "`.")]
            pub const $name: $ty = $value;
        )*)*

        pub(super) const VALUES: &[$crate::uapi::Constant] = &[$($($crate::uapi::Constant {
            c_name: concat!($prefix, stringify!($name)),
            value: $name as u64,
            size: size_of::<$ty>(),
            since: $since,
            doc: concat!($($doc),*),
        },)*)*];
    };
}

pub(crate) use {constants, structs};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uapi::{CreateQueueArgs, SetXnackModeArgs};

    #[test]
    fn bytes_and_back() {
        let args = CreateQueueArgs { ring_base_address: 0x1000, queue_id: 7, ..Default::default() };
        assert_eq!(CreateQueueArgs::from_prefix(args.as_bytes()), Some(args));
        assert_eq!(CreateQueueArgs::from_prefix(&args.as_bytes()[..95]), None);
        // A caller of interface 1.16 passes 88 bytes.
        assert_eq!(CreateQueueArgs::from_prefix_or_zero(&args.as_bytes()[..88]), args);
    }

    #[test]
    fn trace_fields_leave_padding_out_and_zero_extend() {
        let fields = CreateQueueArgs { ring_size: 4096, ..Default::default() }.fields();
        assert!(fields.iter().all(|field| field.name != "pad"));
        assert!(fields.iter().any(|field| field.name == "ring_size" && field.value == 4096));
        let fields = SetXnackModeArgs { xnack_enabled: -1 }.fields();
        assert_eq!(fields[0].value, 0xffff_ffff);
    }

    #[test]
    fn trace_of_a_short_argument_shows_whole_members_only() {
        let fields = CreateQueueArgs::LAYOUT.trace(&[0xff; 12]);
        assert_eq!(fields.len(), 1);
        assert_eq!(fields[0].name, "ring_base_address");
    }
}

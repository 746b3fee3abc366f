//! Comparisons: one bit a lane.

use super::f16::F16;
use super::lane::Source;
use super::op::{Cx, Op, mode};
use super::table::Entry;
use crate::cu::fidelity::Fidelity;
use std::marker::PhantomData;

/// The sixteen conditions, numbered as VOPC opcodes count them: less 1, equal 2, greater 4; 7 is ordered; 8 inverts.
/// Integers use 0..7.
struct Compare<T, const CONDITION: u8>(PhantomData<T>);

/// What can be compared.
trait Comparable: Source {
    /// Whether the condition holds.
    fn compare<const CONDITION: u8>(a: Self, b: Self) -> bool;
}

macro_rules! comparable {
    ($($type:ty, |$value:ident| $key:expr, $is_number:expr;)*) => {$(
        impl Comparable for $type {
            #[inline(always)]
            fn compare<const CONDITION: u8>(a: $type, b: $type) -> bool {
                let key = |$value: $type| $key;
                #[allow(unused_variables)]
                let is_number = |$value: $type| $is_number;
                let ordered = is_number(a) & is_number(b);
                let (a, b) = (key(a), key(b));
                let holds = match CONDITION & 7 {
                    0 => false,
                    1 => a < b,
                    2 => a == b,
                    3 => a <= b,
                    4 => a > b,
                    5 => ordered && a != b,
                    6 => a >= b,
                    _ => ordered,
                };
                holds != (CONDITION >= 8)
            }
        }
    )*};
}

comparable! {
    u32, |value| value, true;
    i32, |value| value, true;
    u64, |value| value, true;
    i64, |value| value, true;
    u16, |value| value, true;
    i16, |value| value, true;
    f32, |value| value, !value.is_nan();
    f64, |value| value, !value.is_nan();
    F16, |value| value.to_f32(), !value.is_nan();
}

impl<T: Comparable, const CONDITION: u8> Op for Compare<T, CONDITION> {
    type A = T;
    type B = T;
    type C = ();
    type D = bool;
    const FIDELITY: Fidelity = Fidelity::Exact;
    const MODE: u32 = mode::<Self>() & 0xf0;

    #[inline(always)]
    fn lane(_: Cx, a: T, b: T, _: ()) -> bool {
        T::compare::<CONDITION>(a, b)
    }
}

/// Whether a number, given by the parts of its bits, is of one of the classes in the mask.
#[inline(always)]
fn class(mask: u32, negative: bool, exponent_ones: bool, exponent_zero: bool, fraction: bool, quiet: bool) -> bool {
    let (minus, plus) = if exponent_ones {
        if fraction { if quiet { (1, 1) } else { (0, 0) } } else { (2, 9) }
    } else if exponent_zero {
        if fraction { (4, 7) } else { (5, 6) }
    } else {
        (3, 8)
    };
    (mask >> if negative { minus } else { plus }) & 1 != 0
}

macro_rules! class_op {
    ($name:ident, $bits:ty, $mask:ty, $fraction:literal, $exponent:literal) => {
        struct $name;

        impl Op for $name {
            type A = $bits;
            type B = $mask;
            type C = ();
            type D = bool;
            const FIDELITY: Fidelity = Fidelity::Exact;
            // Looks at bits: denormals are a class whatever MODE says.
            const MODE: u32 = 0;

            #[inline(always)]
            fn lane(_: Cx, a: $bits, b: $mask, _: ()) -> bool {
                const ONES: $bits = (1 << $exponent) - 1;
                let exponent = (a >> $fraction) & ONES;
                let fraction = a & ((1 << $fraction) - 1);
                class(
                    b as u32,
                    a >> ($fraction + $exponent) != 0,
                    exponent == ONES,
                    exponent == 0,
                    fraction != 0,
                    fraction >> ($fraction - 1) != 0,
                )
            }
        }
    };
}

class_op!(ClassF16, u16, u16, 10, 5);
class_op!(ClassF32, u32, u32, 23, 8);
class_op!(ClassF64, u64, u32, 52, 11);

macro_rules! entries {
    ({ $($type:ty, $name:literal;)* } { $($int:ty, $int_name:literal;)* }) => {
        /// The operations of this file.
        pub const TABLE: &[Entry] = &[
            $(
                entries!(@ $type, 0, $name, "f"),
                entries!(@ $type, 1, $name, "lt"),
                entries!(@ $type, 2, $name, "eq"),
                entries!(@ $type, 3, $name, "le"),
                entries!(@ $type, 4, $name, "gt"),
                entries!(@ $type, 5, $name, "lg"),
                entries!(@ $type, 6, $name, "ge"),
                entries!(@ $type, 7, $name, "o"),
                entries!(@ $type, 15, $name, "u"),
                entries!(@ $type, 14, $name, "nge"),
                entries!(@ $type, 13, $name, "nlg"),
                entries!(@ $type, 12, $name, "ngt"),
                entries!(@ $type, 11, $name, "nle"),
                entries!(@ $type, 10, $name, "neq"),
                entries!(@ $type, 9, $name, "nlt"),
                entries!(@ $type, 8, $name, "tru", "t"),
            )*
            $(
                entries!(@ $int, 0, $int_name, "f"),
                entries!(@ $int, 1, $int_name, "lt"),
                entries!(@ $int, 2, $int_name, "eq"),
                entries!(@ $int, 3, $int_name, "le"),
                entries!(@ $int, 4, $int_name, "gt"),
                entries!(@ $int, 5, $int_name, "ne"),
                entries!(@ $int, 6, $int_name, "ge"),
                entries!(@ $int, 7, $int_name, "t"),
            )*
            Entry::new::<ClassF16>(&["v_cmp_class_f16", "v_cmpx_class_f16"]),
            Entry::new::<ClassF32>(&["v_cmp_class_f32", "v_cmpx_class_f32"]),
            Entry::new::<ClassF64>(&["v_cmp_class_f64", "v_cmpx_class_f64"]),
        ];
    };
    (@ $type:ty, $condition:literal, $type_name:literal, $($name:literal),*) => {
        Entry::new::<Compare<$type, $condition>>(&[
            $(
                concat!("v_cmp_", $name, "_", $type_name),
                concat!("v_cmpx_", $name, "_", $type_name),
            )*
        ])
    };
}

entries! {
    { F16, "f16"; f32, "f32"; f64, "f64"; }
    { i16, "i16"; u16, "u16"; i32, "i32"; u32, "u32"; i64, "i64"; u64, "u64"; }
}

//! Macros that define operations.

/// The source types of a parameter list.
macro_rules! sources {
    ($a:ty) => {
        type A = $a;
        type B = ();
        type C = ();
    };
    ($a:ty, $b:ty) => {
        type A = $a;
        type B = $b;
        type C = ();
    };
    ($a:ty, $b:ty, $c:ty) => {
        type A = $a;
        type B = $b;
        type C = $c;
    };
}

/// A function of a lane with as many parameters as were written, and unused ones for the rest.
macro_rules! lane {
    ($name:ident, $cx:ident, ($($raw:ident)?), $result:ty, $body:block, $a:ident) => {
        #[inline(always)]
        #[allow(unused_variables)]
        fn $name($cx: Cx, $a: Self::A, _: (), _: () $(, $raw: $result)?) -> $result {
            $body
        }
    };
    ($name:ident, $cx:ident, ($($raw:ident)?), $result:ty, $body:block, $a:ident, $b:ident) => {
        #[inline(always)]
        #[allow(unused_variables)]
        fn $name($cx: Cx, $a: Self::A, $b: Self::B, _: () $(, $raw: $result)?) -> $result {
            $body
        }
    };
    ($name:ident, $cx:ident, ($($raw:ident)?), $result:ty, $body:block, $a:ident, $b:ident, $c:ident) => {
        #[inline(always)]
        #[allow(unused_variables)]
        fn $name($cx: Cx, $a: Self::A, $b: Self::B, $c: Self::C $(, $raw: $result)?) -> $result {
            $body
        }
    };
}

/// Operations whose result's bits are all the lane function's: integers, moves, comparisons, minima.
///
/// `Type = mnemonics [context] (sources) -> result { one lane } .entry_methods()`; `hidden` behind the context sets
/// [`Op::HIDDEN`]; a number after `result =` adds MODE bits
/// that the operation depends on beyond the denormal modes of its operands.
macro_rules! ops {
    ($($op:ident = $($name:ident)* [$cx:ident $($hidden:ident)?] ($($arg:ident: $type:ty),*) -> $result:ty $(= $mode:literal)? $body:block
       $(. $method:ident $(::<$other:ty>)? ($($value:expr),*))*)*) => {
        $(
            #[derive(Clone, Copy)]
            #[allow(missing_docs)]
            pub struct $op;

            impl Op for $op {
                sources!($($type),*);
                type D = $result;
                const FIDELITY: Fidelity = Fidelity::Exact;
                $(const HIDDEN: bool = stringify!($hidden).len() != 0;)?
                const MODE: u32 = mode::<Self>() & 0xf0 $(| $mode)?;

                lane!(lane, $cx, (), $result, $body, $($arg),*);
            }
        )*

        /// The operations of this file.
        pub const TABLE: &[Entry] = &[
            $(Entry::new::<$op>(&[$(stringify!($name)),*]) $(. $method $(::<$other>)? ($($value),*))*,)*
        ];
    };
}

/// Floating-point operations.
///
/// A result that is a NaN becomes the first NaN among the sources, quieted, or the default NaN when there is none; a
/// block after `nan` says otherwise.
macro_rules! float_ops {
    (@special $cx:ident, $result:ty, $nan:block, $($arg:ident),*) => {
        lane!(special, $cx, (_raw), $result, $nan, $($arg),*);
    };
    (@special $cx:ident, $result:ty, , $($arg:ident),*) => {
        #[inline(always)]
        fn special(_: Cx, a: Self::A, b: Self::B, c: Self::C, _: $result) -> $result {
            first_nan(a, b, c)
        }
    };
    ($($op:ident = $($name:ident)* [$cx:ident $($hidden:ident)?] ($($arg:ident: $type:ty),*) -> $result:ty $body:block
       $(=> nan $nan:block)?
       $(. $method:ident $(::<$other:ty>)? ($($value:expr),*))*)*) => {
        $(
            #[derive(Clone, Copy)]
            #[allow(missing_docs)]
            pub struct $op;

            impl Op for $op {
                sources!($($type),*);
                type D = $result;
                const FIDELITY: Fidelity = Fidelity::Exact;
                $(const HIDDEN: bool = stringify!($hidden).len() != 0;)?
                const MODE: u32 = mode::<Self>();
                const SPECIAL: bool = true;

                lane!(lane, $cx, (), $result, $body, $($arg),*);

                #[inline(always)]
                fn is_special(value: $result) -> bool {
                    Float::is_nan(value)
                }

                float_ops!(@special $cx, $result, $($nan)?, $($arg),*);
            }
        )*

        /// The operations of this file.
        pub const TABLE: &[Entry] = &[
            $(Entry::new::<$op>(&[$(stringify!($name)),*]) $(. $method $(::<$other>)? ($($value),*))*,)*
        ];
    };
}

pub(super) use {float_ops, lane, ops, sources};

//! Expressions.

use super::{Generator, Type};

impl Generator<'_> {
    pub(super) fn condition(&mut self, depth: u32) -> String {
        let ty = self.any_type();
        let left = self.expression(ty, depth);
        let right = self.expression(ty, depth);
        let operator = self.random.pick(&["<", ">", "<=", ">=", "==", "!="]);
        let simple = format!("({left}) {operator} ({right})");
        match self.random.below(6) {
            0 if depth > 0 => format!("({simple}) && ({})", self.condition(depth - 1)),
            1 if depth > 0 => format!("({simple}) || ({})", self.condition(depth - 1)),
            2 => format!("!({simple})"),
            _ => simple,
        }
    }

    pub(super) fn convert(&mut self, text: &str, from: Type, to: Type) -> String {
        if from == to {
            return text.to_owned();
        }
        match (from, to) {
            (Type::F16, _) if !to.is_float() => format!("({})int_f16({text})", to.name()),
            (Type::F32, Type::U64) => format!("ulong_f32({text})"),
            (Type::F32, Type::U32) => format!("uint_f32({text})"),
            (Type::F32, _) if !to.is_float() => format!("({})int_f32({text})", to.name()),
            (Type::F64, Type::I64) => format!("long_f64({text})"),
            (Type::F64, _) if !to.is_float() => format!("({})int_f64({text})", to.name()),
            (Type::F32, Type::F16) => format!("narrow({text})"),
            (_, Type::F16) if !from.is_float() => format!("half_i32((i32)(({text}) ^ ({})unknown))", from.name()),
            (_, Type::F32 | Type::F64) if !from.is_float() => {
                format!("({})(({text}) ^ ({})unknown)", to.name(), from.name())
            }
            _ => format!("({})({text})", to.name()),
        }
    }

    fn leaf(&mut self, ty: Type) -> String {
        match self.random.below(10) {
            5 if self.memory => {
                let index = self.random.below(16);
                self.convert(&format!("in[{index}]"), Type::U32, ty)
            }
            6 | 7 if self.memory && !self.places.is_empty() => {
                let place = self.random.pick(&self.places.clone());
                let (text, from) = self.read_place(place);
                self.convert(&text, from, ty)
            }
            4 if self.memory && !self.vectors.is_empty() => {
                let (text, from) = self.read_vector();
                self.convert(&text, from, ty)
            }
            0..=7 => {
                let same: Vec<String> =
                    self.locals.iter().filter(|(_, local)| *local == ty).map(|(name, _)| name.clone()).collect();
                if !same.is_empty() {
                    return same[self.random.below(same.len() as u64) as usize].clone();
                }
                if self.locals.is_empty() {
                    return self.convert("lane", Type::U32, ty);
                }
                let (name, from) = self.random_local();
                self.convert(&name, from, ty)
            }
            _ => self.constant(ty),
        }
    }

    fn constant(&mut self, ty: Type) -> String {
        match ty {
            // LLVM 22 takes `0 - x` for a negation of x, which is wrong for x = +0: no zero is known to the compiler.
            Type::F16 => format!(
                "(f16){}",
                self.random.pick(&["ZERO_f32", "1.0f", "-0.5f", "3.14f", "65504.0f", "6e-8f", "(-ZERO_f32)", "1e-3f"])
            ),
            Type::F32 => self
                .random
                .pick(&["ZERO_f32", "1.0f", "-2.5f", "0.1f", "3e38f", "1e-42f", "(-ZERO_f32)", "16777217.0f", "1e-30f"])
                .to_owned(),
            Type::F64 => self
                .random
                .pick(&["ZERO_f64", "1.0", "-2.5", "0.1", "1e308", "4e-320", "(-ZERO_f64)", "9007199254740993.0"])
                .to_owned(),
            _ => {
                let value = match self.random.below(5) {
                    0 => self.random.pick(&[0, 1, u64::MAX, 1 << 31, 1 << 63, 0x7fff_ffff, 0xffff_ffff, 0x8000]),
                    1 | 2 => self.random.below(65),
                    3 => self.random.next() as u32 as u64,
                    _ => self.random.next(),
                };
                format!("({}){value:#x}ul", ty.name())
            }
        }
    }

    pub(super) fn expression(&mut self, ty: Type, depth: u32) -> String {
        if depth == 0 || self.random.chance(15) {
            return self.leaf(ty);
        }
        let depth = depth - 1;
        if self.random.chance(12) {
            let from = self.any_type();
            let inner = self.expression(from, depth);
            return self.convert(&inner, from, ty);
        }
        if self.random.chance(10) {
            let condition = self.condition(depth.min(1));
            let (yes, no) = (self.expression(ty, depth), self.expression(ty, depth));
            if !ty.is_float() && ty.bits() == 64 {
                // LLVM 22 drops the upper half of `x | (c ? A : B)` when both constants have all of its bits.
                return format!("({condition} ? {yes} ^ ({})unknown : {no})", ty.name());
            }
            return format!("({condition} ? {yes} : {no})");
        }
        let left = self.expression(ty, depth);
        let name = ty.name();
        if ty.is_float() {
            if self.random.chance(12) {
                let suffix = match ty {
                    Type::F16 => "f16",
                    Type::F32 => "f",
                    _ => "",
                };
                return match self.random.below(9) {
                    1 => format!("__builtin_fabs{suffix}({left})"),
                    2 if ty != Type::F16 => format!("__builtin_sqrt{suffix}(__builtin_fabs{suffix}({left}))"),
                    3 if ty != Type::F16 => {
                        let function = self.random.pick(&["floor", "ceil", "trunc", "rint"]);
                        format!("__builtin_{function}{suffix}({left})")
                    }
                    4 | 5 if ty != Type::F16 => {
                        let (b, c) = (self.expression(ty, depth), self.expression(ty, depth));
                        format!("__builtin_fma{suffix}({left}, {b}, {c})")
                    }
                    6 if ty != Type::F16 => {
                        let right = self.expression(ty, depth);
                        format!("{}_{name}({left}, {right})", self.random.pick(&["LEAST", "MOST"]))
                    }
                    7 | 8 if ty != Type::F16 => {
                        // The sign of a NaN is left open.
                        let right = self.random.pick(&["1.0", "-2.0", "(i32)lane - 20"]);
                        let sign = if self.memory { right } else { "-3.0" };
                        format!("__builtin_copysign{suffix}({left}, ({name})({sign}))")
                    }
                    _ => format!("-({left})"),
                };
            }
            let right = self.expression(ty, depth);
            let operator = self.random.pick(&["+", "-", "*", "+", "-", "*", "/"]);
            return format!("({name})(({left}) {operator} ({right}))");
        }
        let bits = ty.bits();
        match self.random.below(19) {
            16 | 17 => {
                let right = self.expression(ty, depth);
                format!("over_{}_{name}({left}, {right})", self.random.pick(&["add", "sub", "mul"]))
            }
            18 if bits == 64 => {
                let right = self.expression(ty, depth);
                format!("({name})high64((u64)({left}), (u64)({right}))")
            }
            0..=4 => {
                let right = self.expression(ty, depth);
                format!("({name})(({left}) {} ({right}))", self.random.pick(&["+", "-", "*"]))
            }
            5..=7 => {
                let right = self.expression(ty, depth);
                format!("({name})(({left}) {} ({right}))", self.random.pick(&["&", "|", "^"]))
            }
            8 | 9 => {
                let right = self.expression(Type::U32, depth);
                format!("({name})(({left}) {} (({right}) & {}))", self.random.pick(&["<<", ">>"]), bits - 1)
            }
            10 => {
                // LLVM 22 divides a constant of more than 24 bits by a small divisor in single precision at -O0, and gets
                // it wrong: the dividend is never one.
                let left = format!("({left}) ^ ({name})unknown");
                let right = self.expression(ty, depth);
                // A positive divisor: no zero, no overflow.
                format!("({name})(({left}) {} (({name})((({right}) & 0x7f) + 1)))", self.random.pick(&["/", "%"]))
            }
            11 if bits >= 32 => {
                let left = format!("({left}) ^ ({name})unknown");
                let right = self.expression(ty, depth);
                format!(
                    "({name})(({left}) {} (({right}) == 0 || ({right}) == ({name})-1 ? ({name})3 : ({right})))",
                    self.random.pick(&["/", "%"])
                )
            }
            12 => {
                let wide = self.convert(&left, ty, Type::U32);
                let function = self.random.pick(&["__builtin_popcount", "__builtin_bswap32", "__builtin_bitreverse32"]);
                format!("({name}){function}({wide})")
            }
            13 => {
                let wide = self.convert(&left, ty, Type::U64);
                let function =
                    self.random.pick(&["__builtin_clzl(1 | ", "__builtin_ctzl(1ul << 63 | ", "__builtin_popcountl("]);
                format!("({name}){function}{wide})")
            }
            14 => {
                let right = self.expression(Type::U32, 0);
                let wide = self.convert(&left, ty, Type::U32);
                format!("({name})__builtin_rotateleft32({wide}, ({right}) & 31)")
            }
            _ => format!("({name}){}({left})", self.random.pick(&["~", "-", "!"])),
        }
    }
}

//! Random C functions with one meaning on every machine.
//!
//! What C leaves open is avoided: shifts are masked, divisors are made non-zero, signed arithmetic wraps (`-fwrapv`), floats
//! are converted to integers only inside the range, loops end, array indices are masked. NaNs are folded into one value
//! wherever their bits could be seen.

use std::fmt::Write;

/// SplitMix64.
#[derive(Clone)]
pub struct Random(pub u64);

impl Random {
    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Type {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F16,
    F32,
    F64,
}

const INTEGERS: [Type; 8] = [Type::U32, Type::I32, Type::U64, Type::I64, Type::U8, Type::I8, Type::U16, Type::I16];

impl Type {
    fn name(self) -> &'static str {
        match self {
            Type::U8 => "u8",
            Type::I8 => "i8",
            Type::U16 => "u16",
            Type::I16 => "i16",
            Type::U32 => "u32",
            Type::I32 => "i32",
            Type::U64 => "u64",
            Type::I64 => "i64",
            Type::F16 => "f16",
            Type::F32 => "f32",
            Type::F64 => "f64",
        }
    }

    fn is_float(self) -> bool {
        matches!(self, Type::F16 | Type::F32 | Type::F64)
    }

    fn bits(self) -> u32 {
        match self {
            Type::U8 | Type::I8 => 8,
            Type::U16 | Type::I16 | Type::F16 => 16,
            Type::U32 | Type::I32 | Type::F32 => 32,
            Type::U64 | Type::I64 | Type::F64 => 64,
        }
    }
}

/// What every generated file starts with.
pub const PRELUDE: &str = r#"typedef unsigned char u8; typedef signed char i8; typedef unsigned short u16; typedef short i16;
typedef unsigned u32; typedef int i32; typedef unsigned long u64; typedef long i64;
typedef _Float16 f16; typedef float f32; typedef double f64;
#define NOINLINE __attribute__((noinline))
static inline u64 mix(u64 h, u64 v) { h ^= v + 0x9e3779b97f4a7c15ul + (h << 6) + (h >> 2); return h * 0xff51afd7ed558ccdul; }
static inline u64 bits_f32(f32 x) { return x != x ? 0x7fc00000u : __builtin_bit_cast(u32, x); }
static inline u64 bits_f64(f64 x) { return x != x ? 0x7ff8000000000000ul : __builtin_bit_cast(u64, x); }
static inline u64 bits_f16(f16 x) { return x != x ? 0x7e00u : __builtin_bit_cast(u16, x); }
static inline f32 from_u32(u32 x) { f32 f = __builtin_bit_cast(f32, x); return f != f ? 1.5f : f; }
static inline f64 from_u64(u64 x) { f64 f = __builtin_bit_cast(f64, x); return f != f ? 1.5 : f; }
static inline i32 int_f32(f32 x) { return x > -2e9f && x < 2e9f ? (i32)x : 7; }
static inline u32 uint_f32(f32 x) { return x > -0.5f && x < 4e9f ? (u32)x : 9; }
static inline i32 int_f64(f64 x) { return x > -2e9 && x < 2e9 ? (i32)x : 7; }
static inline i64 long_f64(f64 x) { return x > -9e18 && x < 9e18 ? (i64)x : 7; }
static inline u64 ulong_f32(f32 x) { return x > -0.5f && x < 1.8e19f ? (u64)x : 9; }
static inline i32 int_f16(f16 x) { return x > (f16)-6e4f && x < (f16)6e4f ? (i32)x : 7; }
// LLVM turns a product that is rounded to f16 into v_fma_mixlo_f16 with +0 as addend, which loses the sign of -0.
static NOINLINE f16 narrow(f32 x) { return (f16)x; }
static inline f16 half_i32(i32 x) { return (f16)(f32)(x % 60000); }
static volatile u32 unknown;
struct S { u32 a; i16 b; u64 c; f32 d; u8 e[4]; };
"#;

/// Generates one function `name(in, lane)` and the helpers it calls, appended to `out`.
pub fn function(random: &mut Random, name: &str, floats: bool, out: &mut String) {
    let mut generator = Generator {
        random,
        out: String::new(),
        locals: Vec::new(),
        helpers: Vec::new(),
        indent: 1,
        next: 0,
        floats,
        budget: 30,
    };
    generator.body(name);
    for helper in &generator.helpers {
        out.push_str(helper);
    }
    out.push_str(&generator.out);
}

struct Generator<'a> {
    random: &'a mut Random,
    out: String,
    locals: Vec<(String, Type)>,
    helpers: Vec<String>,
    indent: usize,
    next: u32,
    floats: bool,
    budget: u32,
}

impl Generator<'_> {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "{:1$}{text}", "", self.indent * 2);
    }

    fn any_type(&mut self) -> Type {
        if self.floats && self.random.chance(40) {
            self.random.pick(&[Type::F32, Type::F32, Type::F64, Type::F16])
        } else {
            self.random.pick(&INTEGERS[..if self.random.0 & 1 == 0 { 4 } else { 8 }])
        }
    }

    fn body(&mut self, name: &str) {
        let _ = writeln!(self.out, "static u64 {name}(const u32 *in, u32 lane) {{");
        self.line("u64 h = lane;");
        self.line("u32 array[16]; struct S s = {in[1], (i16)in[2], (u64)in[3] << 32 | lane, (f32)(i32)in[4], {1, 2, 3, (u8)lane}};");
        self.line("for (u32 i = 0; i < 16; i++) array[i] = in[i] + i * lane;");
        for _ in 0..4 + self.random.below(4) {
            self.declare();
        }
        for _ in 0..6 + self.random.below(6) {
            self.statement(3);
        }
        let locals = self.locals.clone();
        for (name, ty) in locals {
            let value = self.visible(&name, ty);
            self.line(&format!("h = mix(h, {value});"));
        }
        self.line("for (u32 i = 0; i < 16; i++) h = mix(h, array[i]);");
        self.line("h = mix(h, s.a); h = mix(h, (u64)(i64)s.b); h = mix(h, s.c); h = mix(h, bits_f32(s.d));");
        self.line("return mix(h, s.e[0] + s.e[1] * 3 + s.e[2] * 5 + s.e[3] * 7);");
        self.out.push_str("}\n");
    }

    /// The bits of a variable as an integer.
    fn visible(&mut self, name: &str, ty: Type) -> String {
        match ty {
            Type::F16 | Type::F32 | Type::F64 => format!("bits_{}({name})", ty.name()),
            _ => format!("(u64)(i64){name}"),
        }
    }

    fn declare(&mut self) {
        let ty = self.any_type();
        let value = self.expression(ty, 2);
        let name = format!("v{}", self.next);
        self.next += 1;
        self.line(&format!("{} {name} = {value};", ty.name()));
        self.locals.push((name, ty));
    }

    fn statement(&mut self, depth: u32) {
        if self.budget == 0 {
            return;
        }
        self.budget -= 1;
        match self.random.below(if depth == 0 { 5 } else { 11 }) {
            0..=2 => {
                let (name, ty) = self.random_local();
                let value = self.expression(ty, 3);
                self.line(&format!("{name} = {value};"));
            }
            3 => {
                let index = self.expression(Type::U32, 1);
                let value = self.expression(Type::U32, 2);
                let operator = self.random.pick(&["=", "+=", "^=", "-="]);
                self.line(&format!("array[({index}) & 15] {operator} {value};"));
            }
            4 => {
                let (field, ty) =
                    self.random.pick(&[("s.a", Type::U32), ("s.b", Type::I16), ("s.c", Type::U64), ("s.d", Type::F32)]);
                let value = if ty == Type::F32 && !self.floats { "1.0f".into() } else { self.expression(ty, 2) };
                self.line(&format!("{field} = {value};"));
            }
            5 | 6 => {
                let condition = self.condition(2);
                self.line(&format!("if ({condition}) {{"));
                self.block(depth - 1);
                if self.random.chance(50) {
                    self.line("} else {");
                    self.block(depth - 1);
                }
                self.line("}");
            }
            7 | 8 => {
                let variable = format!("loop{}", self.next);
                self.next += 1;
                let bound = if self.random.chance(50) {
                    format!("{}", 1 + self.random.below(12))
                } else {
                    format!("(({}) & 7)", self.expression(Type::U32, 1))
                };
                self.line(&format!(
                    "for (u32 {variable} = 0, n_{variable} = {bound}; {variable} < n_{variable}; {variable}++) {{"
                ));
                self.locals.push((variable, Type::U32));
                let at = self.locals.len() - 1;
                // The loop variable may be read, never written: keep it out of assignments by a copy.
                let copy = format!("turn{}", self.next);
                self.next += 1;
                let name = self.locals[at].0.clone();
                self.indent += 1;
                self.line(&format!("u32 {copy} = {name};"));
                self.indent -= 1;
                self.locals[at].0 = copy;
                self.block(depth - 1);
                if self.random.chance(20) {
                    let condition = self.condition(1);
                    self.line(&format!("  if ({condition}) {};", self.random.clone().pick(&["break", "continue"])));
                }
                self.locals.remove(at);
                self.line("}");
            }
            9 => {
                let value = self.expression(Type::U32, 2);
                self.line(&format!("switch (({value}) % 6) {{"));
                for case in 0..4 {
                    self.line(&format!("case {case}:"));
                    self.block(depth - 1);
                    if self.random.chance(75) {
                        self.line("  break;");
                    }
                }
                self.line("default: h = mix(h, 5);");
                self.line("}");
            }
            _ => {
                let call = self.call();
                self.line(&format!("h = mix(h, {call});"));
            }
        }
    }

    fn block(&mut self, depth: u32) {
        self.indent += 1;
        let known = self.locals.len();
        for _ in 0..1 + self.random.below(3) {
            self.statement(depth);
        }
        self.locals.truncate(known);
        self.indent -= 1;
    }

    fn random_local(&mut self) -> (String, Type) {
        let at = self.random.below(self.locals.len() as u64) as usize;
        self.locals[at].clone()
    }

    /// A call of a new helper, which the compiler may not inline.
    fn call(&mut self) -> String {
        let name = format!("f{:x}_{}", self.random.next() as u32, self.helpers.len());
        let types: Vec<Type> = (0..1 + self.random.below(4)).map(|_| self.any_type()).collect();
        let arguments: Vec<String> = types.iter().map(|ty| self.expression(*ty, 1)).collect();
        let saved_locals = std::mem::take(&mut self.locals);
        self.locals = types.iter().enumerate().map(|(index, ty)| (format!("p{index}"), *ty)).collect();
        let value = self.expression_without_memory(Type::U64, 3);
        let parameters: Vec<String> =
            types.iter().enumerate().map(|(index, ty)| format!("{} p{index}", ty.name())).collect();
        self.helpers.push(format!("static NOINLINE u64 {name}({}) {{ return {value}; }}\n", parameters.join(", ")));
        self.locals = saved_locals;
        format!("{name}({})", arguments.join(", "))
    }

    fn expression_without_memory(&mut self, ty: Type, depth: u32) -> String {
        let text = self.expression(ty, depth);
        // Helpers see only their parameters.
        if text.contains("array") || text.contains("in[") || text.contains("s.") || text.contains("lane") {
            let (name, from) = self.random_local();
            return self.convert(&name, from, ty);
        }
        text
    }

    fn condition(&mut self, depth: u32) -> String {
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

    fn convert(&mut self, text: &str, from: Type, to: Type) -> String {
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
            (_, Type::F16) if !from.is_float() => format!("half_i32((i32)({text}))"),
            _ => format!("({})({text})", to.name()),
        }
    }

    fn leaf(&mut self, ty: Type) -> String {
        match self.random.below(10) {
            0..=4 => {
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
            5 => {
                let index = self.random.below(16);
                self.convert(&format!("in[{index}]"), Type::U32, ty)
            }
            6 => {
                let index = self.convert("lane", Type::U32, Type::U32);
                self.convert(&format!("array[({index} + {}) & 15]", self.random.clone().below(16)), Type::U32, ty)
            }
            7 => {
                let (field, from) = self.random.pick(&[
                    ("s.a", Type::U32),
                    ("s.b", Type::I16),
                    ("s.c", Type::U64),
                    ("s.e[lane & 3]", Type::U8),
                ]);
                self.convert(field, from, ty)
            }
            _ => self.constant(ty),
        }
    }

    fn constant(&mut self, ty: Type) -> String {
        match ty {
            Type::F16 => format!(
                "(f16){}",
                self.random.pick(&["0.0f", "1.0f", "-0.5f", "3.14f", "65504.0f", "6e-8f", "-0.0f", "1e-3f"])
            ),
            Type::F32 => self
                .random
                .pick(&["0.0f", "1.0f", "-2.5f", "0.1f", "3e38f", "1e-42f", "-0.0f", "16777217.0f", "1e-30f"])
                .to_owned(),
            Type::F64 => self
                .random
                .pick(&["0.0", "1.0", "-2.5", "0.1", "1e308", "4e-320", "-0.0", "9007199254740993.0"])
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

    fn expression(&mut self, ty: Type, depth: u32) -> String {
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
                let choice = self.random.below(5);
                return match choice {
                    0 => format!("-({left})"),
                    1 => format!("__builtin_fabs{suffix}({left})"),
                    2 if ty != Type::F16 => format!("__builtin_sqrt{suffix}(__builtin_fabs{suffix}({left}))"),
                    3 if ty != Type::F16 => {
                        let function = self.random.pick(&["floor", "ceil", "trunc", "rint"]);
                        format!("__builtin_{function}{suffix}({left})")
                    }
                    _ if ty != Type::F16 => {
                        let (b, c) = (self.expression(ty, depth), self.expression(ty, depth));
                        format!("__builtin_fma{suffix}({left}, {b}, {c})")
                    }
                    _ => format!("-({left})"),
                };
            }
            let right = self.expression(ty, depth);
            let operator = self.random.pick(&["+", "-", "*", "+", "-", "*", "/"]);
            return format!("({name})(({left}) {operator} ({right}))");
        }
        let bits = ty.bits();
        match self.random.below(16) {
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

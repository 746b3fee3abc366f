//! Random C functions with one meaning on every machine.
//!
//! What C leaves open is avoided: shifts are masked, divisors are made non-zero, signed arithmetic wraps (`-fwrapv`), floats
//! are converted to integers only inside the range, loops end, array indices are masked. NaNs are folded into one value
//! wherever their bits could be seen. `docs/differential.md` lists what is generated and what is left out.

mod expression;
mod place;
mod statement;
mod vector;

use place::Place;
use std::fmt::Write;
use vector::Shape;

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

    /// One of `from`.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
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

/// What every generated file starts with; GROUP and LANES are defined on the command line.
pub const PRELUDE: &str = include_str!("prelude.h");

/// What the generator may use.
#[derive(Clone, Copy)]
pub struct Dialect {
    /// float, double.
    pub floats: bool,
    /// What only clang has: half floats, vectors, shared memory.
    pub clang: bool,
}

/// Generates one function `name(in, lane)` and what it uses, appended to `out`.
pub fn function(random: &mut Random, name: &str, dialect: Dialect, out: &mut String) {
    let mut generator = Generator {
        random,
        name: name.to_owned(),
        out: String::new(),
        locals: Vec::new(),
        vectors: Vec::new(),
        places: Vec::new(),
        globals: String::new(),
        helpers: Vec::new(),
        indent: 1,
        next: 0,
        dialect,
        budget: 14,
        memory: true,
    };
    generator.body();
    out.push_str(&generator.globals);
    for helper in &generator.helpers {
        out.push_str(helper);
    }
    out.push_str(&generator.out);
}

struct Generator<'a> {
    random: &'a mut Random,
    name: String,
    out: String,
    locals: Vec<(String, Type)>,
    vectors: Vec<(String, Shape)>,
    places: Vec<Place>,
    globals: String,
    helpers: Vec<String>,
    indent: usize,
    next: u32,
    dialect: Dialect,
    /// Statements that may still be made.
    budget: u32,
    /// The function's own variables are in scope; a helper has its parameters only.
    memory: bool,
}

impl Generator<'_> {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "{:1$}{text}", "", self.indent * 2);
    }

    fn any_type(&mut self) -> Type {
        if self.dialect.floats && self.random.chance(40) {
            let floats = [Type::F32, Type::F32, Type::F64, Type::F16];
            self.random.pick(&floats[..if self.dialect.clang { 4 } else { 3 }])
        } else {
            self.random.pick(&INTEGERS[..if self.random.0 & 1 == 0 { 4 } else { 8 }])
        }
    }

    /// A name that is not taken in the file.
    fn fresh(&mut self, stem: &str) -> String {
        self.next += 1;
        format!("{stem}{}_{}", self.next, self.name)
    }

    fn body(&mut self) {
        let _ = writeln!(self.out, "static u64 {}(const u32 *in, u32 lane) {{", self.name);
        self.line("u64 h = lane;");
        let kinds = Place::choose(self.random, self.dialect);
        for place in kinds {
            self.declare_place(place);
            self.places.push(place);
        }
        for _ in 0..3 + self.random.below(3) {
            self.declare();
        }
        if self.dialect.clang && self.random.chance(40) {
            for _ in 0..2 + self.random.below(2) {
                self.declare_vector();
            }
        }
        for _ in 0..3 + self.random.below(5) {
            self.statement(3);
        }
        for (name, ty) in self.locals.clone() {
            let value = visible(&name, ty);
            self.line(&format!("h = mix(h, {value});"));
        }
        for (name, shape) in self.vectors.clone() {
            for index in 0..shape.lanes {
                let value = visible(&format!("{name}[{index}]"), shape.ty);
                self.line(&format!("h = mix(h, {value});"));
            }
        }
        for place in self.places.clone() {
            self.finish_place(place);
        }
        self.line("return h;");
        self.out.push_str("}\n");
    }

    fn declare(&mut self) {
        let ty = self.any_type();
        let value = self.expression(ty, 2);
        let name = format!("v{}", self.next);
        self.next += 1;
        self.line(&format!("{} {name} = {value};", ty.name()));
        self.locals.push((name, ty));
    }
}

/// The bits of a variable as an integer.
fn visible(name: &str, ty: Type) -> String {
    match ty {
        Type::F16 | Type::F32 | Type::F64 => format!("bits_{}({name})", ty.name()),
        _ => format!("(u64)(i64){name}"),
    }
}

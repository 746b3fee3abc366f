//! Vectors of two to four elements.

use super::{Generator, Type};

/// A vector type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Element type.
    pub(super) ty: Type,
    /// Elements.
    pub lanes: u32,
}

const fn shape(ty: Type, lanes: u32) -> Shape {
    Shape { ty, lanes }
}

/// Those the prelude declares, integers first.
const SHAPES: [Shape; 12] = [
    shape(Type::U32, 2),
    shape(Type::I32, 3),
    shape(Type::U32, 4),
    shape(Type::I16, 2),
    shape(Type::U16, 4),
    shape(Type::U8, 4),
    shape(Type::U64, 2),
    shape(Type::F32, 2),
    shape(Type::F32, 4),
    shape(Type::F16, 2),
    shape(Type::F16, 4),
    shape(Type::F64, 2),
];

impl Shape {
    fn name(self) -> String {
        format!("{}x{}", self.ty.name(), self.lanes)
    }
}

impl Generator<'_> {
    pub(super) fn declare_vector(&mut self) {
        let shape = match self.vectors.last() {
            Some((_, shape)) if self.random.chance(60) => *shape,
            _ => self.random.pick(&SHAPES[..if self.dialect.floats { 12 } else { 7 }]),
        };
        let elements: Vec<String> = (0..shape.lanes).map(|_| self.expression(shape.ty, 1)).collect();
        let name = format!("x{}", self.next);
        self.next += 1;
        self.line(&format!("{} {name} = {{{}}};", shape.name(), elements.join(", ")));
        self.vectors.push((name, shape));
    }

    /// A statement that changes a vector.
    pub(super) fn write_vector(&mut self) {
        let (name, shape) = self.random_vector();
        if self.random.chance(25) {
            let (index, value) = (self.expression(Type::U32, 1), self.expression(shape.ty, 2));
            self.line(&format!("{name}[({index}) % {}] = {value};", shape.lanes));
        } else {
            let value = self.vector(shape, 2);
            self.line(&format!("{name} = {value};"));
        }
    }

    /// An element of a vector.
    pub(super) fn read_vector(&mut self) -> (String, Type) {
        let (name, shape) = self.random_vector();
        let index = self.random.below(shape.lanes.into());
        let index =
            if self.random.chance(30) { format!("(lane + {index}) % {}", shape.lanes) } else { index.to_string() };
        (format!("{name}[{index}]"), shape.ty)
    }

    fn random_vector(&mut self) -> (String, Shape) {
        let at = self.random.below(self.vectors.len() as u64) as usize;
        self.vectors[at].clone()
    }

    fn vector(&mut self, shape: Shape, depth: u32) -> String {
        let same: Vec<String> =
            self.vectors.iter().filter(|(_, other)| *other == shape).map(|(name, _)| name.clone()).collect();
        let name = shape.name();
        if depth == 0 || self.random.chance(15) {
            if !same.is_empty() && self.random.chance(80) {
                return same[self.random.below(same.len() as u64) as usize].clone();
            }
            let value = self.expression(shape.ty, 1);
            return format!("({name})({value})");
        }
        let left = self.vector(shape, depth - 1);
        let right = self.vector(shape, depth - 1);
        if self.random.chance(10) {
            let order: Vec<String> =
                (0..shape.lanes).map(|_| self.random.below(2 * u64::from(shape.lanes)).to_string()).collect();
            return format!("__builtin_shufflevector({left}, {right}, {})", order.join(", "));
        }
        if shape.ty.is_float() {
            return match self.random.below(8) {
                0 if shape.ty != Type::F16 => {
                    let third = self.vector(shape, depth - 1);
                    format!("__builtin_elementwise_fma({left}, {right}, {third})")
                }
                1 => format!("__builtin_elementwise_abs({left})"),
                2 => format!("-({left})"),
                n => format!("(({left}) {} ({right}))", ["+", "-", "*"][n as usize % 3]),
            };
        }
        match self.random.below(10) {
            n @ 0..=2 => format!("(({left}) {} ({right}))", ["+", "-", "*"][n as usize]),
            n @ 3..=5 => format!("(({left}) {} ({right}))", ["&", "|", "^"][n as usize - 3]),
            6 => {
                let count = self.random.below(shape.ty.bits().into());
                format!("(({left}) {} ({name}){count})", self.random.pick(&["<<", ">>"]))
            }
            7 => format!("__builtin_elementwise_{}({left}, {right})", self.random.pick(&["max", "min"])),
            8 => format!("__builtin_elementwise_{}_sat({left}, {right})", self.random.pick(&["add", "sub"])),
            _ => format!("~({left})"),
        }
    }
}

//! Statements.

use super::{Generator, Type};

impl Generator<'_> {
    pub(super) fn statement(&mut self, depth: u32) {
        if self.budget == 0 {
            return;
        }
        self.budget -= 1;
        match self.random.below(if depth == 0 { 7 } else { 14 }) {
            3 | 4 if !self.places.is_empty() => {
                let place = self.random.pick(&self.places.clone());
                self.write_place(place);
            }
            5 | 6 if !self.vectors.is_empty() => self.write_vector(),
            0..=6 => {
                let (name, ty) = self.random_local();
                let value = self.expression(ty, 3);
                self.line(&format!("{name} = {value};"));
            }
            7 | 8 => {
                let condition = self.condition(2);
                self.line(&format!("if ({condition}) {{"));
                self.block(depth - 1);
                if self.random.chance(50) {
                    self.line("} else {");
                    self.block(depth - 1);
                }
                self.line("}");
            }
            9 | 10 => self.repeat(depth),
            11 => {
                let value = self.expression(Type::U32, 2);
                self.line(&format!("switch (({value}) % 6) {{"));
                // No case falls through: LLVM 22's StructurizeCFG then loses the values that a case takes from vectors.
                for case in 0..4 {
                    let more = if case == 3 && self.random.chance(30) { " case 5:" } else { "" };
                    self.line(&format!("case {case}:{more}"));
                    self.block(depth - 1);
                    self.line("  break;");
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

    fn repeat(&mut self, depth: u32) {
        let variable = format!("loop{}", self.next);
        self.next += 1;
        let bound = if self.random.chance(50) {
            format!("{}", 1 + self.random.below(12))
        } else {
            format!("(({}) & 7)", self.expression(Type::U32, 1))
        };
        let after = self.random.chance(20);
        self.line(&if after {
            format!("u32 {variable} = 0, n_{variable} = {bound}; do {{")
        } else {
            format!("for (u32 {variable} = 0, n_{variable} = {bound}; {variable} < n_{variable}; {variable}++) {{")
        });
        // The loop variable may be read, never written: a copy stands for it.
        let copy = format!("turn{}", self.next);
        self.next += 1;
        self.line(&format!("  u32 {copy} = {variable};"));
        self.locals.push((copy, Type::U32));
        let at = self.locals.len() - 1;
        self.block(depth - 1);
        if self.random.chance(20) && !after {
            let condition = self.condition(1);
            let word = self.random.pick(&["break", "continue"]);
            self.line(&format!("  if ({condition}) {word};"));
        }
        self.locals.remove(at);
        self.line(&if after { format!("}} while (++{variable} < n_{variable});") } else { "}".into() });
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

    pub(super) fn random_local(&mut self) -> (String, Type) {
        let at = self.random.below(self.locals.len() as u64) as usize;
        self.locals[at].clone()
    }

    /// A call of a new helper, which the compiler may not inline: direct, recursive, or through a pointer.
    fn call(&mut self) -> String {
        let form = self.random.below(10);
        let name = self.fresh("call");
        let types: Vec<Type> = (0..1 + self.random.below(4)).map(|_| self.any_type()).collect();
        let arguments: Vec<String> = types.iter().map(|ty| self.expression(*ty, 1)).collect();
        let count = self.expression(Type::U32, 1);
        let parameters: Vec<String> =
            types.iter().enumerate().map(|(index, ty)| format!("{} p{index}", ty.name())).collect();
        let locals = types.iter().enumerate().map(|(index, ty)| (format!("p{index}"), *ty)).collect();
        let (saved_locals, saved_memory) = (std::mem::replace(&mut self.locals, locals), self.memory);
        self.memory = false;
        let value = self.expression(Type::U64, 3);
        let second = self.expression(Type::U64, 2);
        self.locals = saved_locals;
        self.memory = saved_memory;
        let (parameters, arguments) = (parameters.join(", "), arguments.join(", "));
        let plain =
            |name: &str, value: &str| format!("static NOINLINE u64 {name}({parameters}) {{ return {value}; }}\n");
        match form {
            0 | 1 => {
                let passed: Vec<String> = (0..types.len()).map(|index| format!("p{index}")).collect();
                self.helpers.push(format!(
                    "static NOINLINE u64 {name}(u32 n, {parameters}) {{ u64 x = {value}; if (n == 0) return x; \
                     return mix({name}(n - 1, {}), x); }}\n",
                    passed.join(", ")
                ));
                format!("{name}(({count}) & 7, {arguments})")
            }
            2 => {
                let kinds: Vec<&str> = types.iter().map(|ty| ty.name()).collect();
                self.helpers.push(plain(&format!("{name}_a"), &value));
                self.helpers.push(plain(&format!("{name}_b"), &second));
                self.helpers
                    .push(format!("static u64 (*const {name}[2])({}) = {{{name}_a, {name}_b}};\n", kinds.join(", ")));
                format!("{name}[({count}) & 1]({arguments})")
            }
            _ => {
                self.helpers.push(plain(&name, &value));
                format!("{name}({arguments})")
            }
        }
    }
}

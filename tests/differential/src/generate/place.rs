//! Memory that functions use: arrays, structures, unions, shared and global memory.

use super::{Dialect, Generator, Random, Type};
use std::fmt::Write;

/// A kind of memory in a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// `u32 array[16]`, with pointers into it.
    Array,
    /// `struct S s`.
    Struct,
    /// Bit fields, passed and returned by value.
    Bits,
    /// An array of structures.
    Pairs,
    /// A union read in other types than it was written.
    Either,
    /// Bytes, read and written at odd addresses.
    Bytes,
    /// LDS, one slot a work-item, with barriers and atomics.
    Shared,
    /// Global memory, one slot a work-item, with atomics.
    Cells,
}

impl Place {
    const ALL: [Place; 8] = [
        Place::Array,
        Place::Struct,
        Place::Bits,
        Place::Pairs,
        Place::Either,
        Place::Bytes,
        Place::Cells,
        Place::Shared,
    ];

    /// Up to three different ones.
    pub fn choose(random: &mut Random, dialect: Dialect) -> Vec<Place> {
        let all = &Place::ALL[..if dialect.clang { 8 } else { 7 }];
        let mut chosen: Vec<Place> = Vec::new();
        for _ in 0..random.below(4) {
            let place = random.pick(all);
            if !chosen.contains(&place) {
                chosen.push(place);
            }
        }
        chosen
    }
}

impl Generator<'_> {
    pub(super) fn declare_place(&mut self, place: Place) {
        let name = self.name.clone();
        match place {
            Place::Array => {
                self.line("u32 array[16];");
                self.line("for (u32 i = 0; i < 16; i++) array[i] = in[i] + i * lane;");
            }
            Place::Struct => self.line(
                "struct S s = {in[1], (i16)in[2], (u64)in[3] << 32 | lane, (f32)(i32)in[4], {1, 2, 3, (u8)lane}};",
            ),
            Place::Bits => {
                self.line("struct Bits bits; bits.a = in[5]; bits.b = (i32)(in[6] + lane); bits.c = in[7] * 3ul;");
                self.line("bits.d = (u16)lane; bits.e = (i16)in[8];");
            }
            Place::Pairs => {
                self.line("struct Pair pairs[4];");
                self.line(
                    "for (u32 i = 0; i < 4; i++) { pairs[i].x = in[i] * 5ul + lane; pairs[i].y = (i32)in[i + 4]; }",
                );
            }
            Place::Either => self.line("union Either either = {{in[0], lane, in[2], in[3] ^ lane}};"),
            Place::Bytes => {
                self.line("u8 bytes[24];");
                self.line("for (u32 i = 0; i < 24; i++) bytes[i] = (u8)(in[i & 15] >> (i & 7)) + (u8)lane;");
            }
            Place::Cells => {
                let _ = writeln!(self.globals, "static u32 cells_{name}[LANES * 2]; static u64 wide_{name}[LANES];");
                self.line(&format!("u32 *cell = cells_{name} + lane * 2; u64 *wide = wide_{name} + lane;"));
                self.line("cell[0] = in[9]; cell[1] = lane; *wide = in[10] * 7ul + lane;");
            }
            Place::Shared => {
                let _ = writeln!(self.globals, "static SHARED u32 lds_{name}[GROUP * 4];");
                let (step, factor, word) = (self.random.below(70), self.random.next() as u32, self.random.below(16));
                let value = |lane: &str| format!("(in[{lane} & 15] * {factor:#x}u + {lane} + in[{word}])");
                self.line(&format!("LOCAL u32 *slot = lds_{name} + HERE * 4; u32 other = peer(lane, {step});"));
                self.out.push_str("#ifdef __AMDGCN__\n");
                self.line(&format!("slot[0] = {};", value("lane")));
                self.line("MEET();");
                self.line(&format!("h = mix(h, lds_{name}[other % GROUP * 4]);"));
                self.line("MEET();");
                self.out.push_str("#else\n");
                self.line(&format!("h = mix(h, {});", value("other")));
                self.out.push_str("#endif\n");
                self.line("for (u32 i = 0; i < 4; i++) slot[i] = in[i + 6] ^ lane;");
            }
        }
    }

    /// Makes what is left in the memory part of the result.
    pub(super) fn finish_place(&mut self, place: Place) {
        self.line(match place {
            Place::Array => "for (u32 i = 0; i < 16; i++) h = mix(h, array[i]);",
            Place::Struct => {
                "h = mix(mix(mix(mix(h, s.a), (u64)(i64)s.b), s.c), bits_f32(s.d)); \
                 for (u32 i = 0; i < 4; i++) h = mix(h, s.e[i]);"
            }
            Place::Bits => "h = mix(h, seen(bits));",
            Place::Pairs => "for (u32 i = 0; i < 4; i++) h = mix(mix(h, pairs[i].x), (u64)(i64)pairs[i].y);",
            Place::Either => "h = mix(mix(h, either.d[0]), either.d[1]);",
            Place::Bytes => "for (u32 i = 0; i < 24; i++) h = mix(h, bytes[i]);",
            Place::Cells => "h = mix(mix(mix(h, cell[0]), cell[1]), *wide);",
            Place::Shared => "for (u32 i = 0; i < 4; i++) h = mix(h, slot[i]);",
        });
    }

    /// A value in memory and its type.
    pub(super) fn read_place(&mut self, place: Place) -> (String, Type) {
        let n = self.random.below(16);
        let (text, ty) = match place {
            Place::Array => return (format!("array[(lane + {n}) & 15]"), Type::U32),
            Place::Struct => self.random.pick(&[
                ("s.a", Type::U32),
                ("s.b", Type::I16),
                ("s.c", Type::U64),
                ("s.e[lane & 3]", Type::U8),
                ("s.e[s.a & 3]", Type::U8),
            ]),
            // Bit fields narrower than int promote to int.
            Place::Bits => self.random.pick(&[
                ("(u32)bits.a", Type::U32),
                ("(i32)bits.b", Type::I32),
                ("(u64)bits.c", Type::U64),
                ("(u16)bits.d", Type::U16),
                ("(i16)bits.e", Type::I16),
            ]),
            Place::Pairs => self.random.pick(&[
                ("pairs[lane & 3].x", Type::U64),
                ("pairs[lane >> 2 & 3].y", Type::I32),
                ("pairs[2].x", Type::U64),
            ]),
            Place::Either => self.random.pick(&[
                ("either.w[lane & 3]", Type::U32),
                ("either.d[1]", Type::U64),
                ("either.h[lane >> 1 & 7]", Type::U16),
                ("either.b[in[3] & 15]", Type::U8),
            ]),
            Place::Bytes => return (format!("bytes[(lane + {n}) % 24]"), Type::U8),
            Place::Cells => self.random.pick(&[("cell[lane & 1]", Type::U32), ("*wide", Type::U64)]),
            Place::Shared => self.random.pick(&[("slot[lane & 3]", Type::U32), ("slot[2]", Type::U32)]),
        };
        (text.to_owned(), ty)
    }

    /// A statement that changes memory.
    pub(super) fn write_place(&mut self, place: Place) {
        let index = self.expression(Type::U32, 1);
        let value = self.expression(Type::U32, 2);
        let wide = |generator: &mut Self| generator.expression(Type::U64, 2);
        let operator = self.random.pick(&["=", "+=", "^=", "-="]);
        match place {
            Place::Array => match self.random.below(4) {
                0 => {
                    let at = self.expression(Type::U32, 1);
                    self.line(&format!("{{ u32 *p = array + (({at}) & 7); p[({index}) & 7] {operator} {value}; }}"));
                }
                1 => {
                    let name = self.fresh("walk");
                    self.helpers.push(format!(
                        "static NOINLINE u32 {name}(u32 *p, u32 n) {{ u32 sum = 0; for (u32 i = 0; i < n; i++) \
                         {{ sum = sum * 3 + p[i]; p[i] {operator} sum >> 1; }} return sum; }}\n"
                    ));
                    self.line(&format!("h = mix(h, {name}(array + (({index}) & 7), 1 + (({value}) & 7)));"));
                }
                _ => self.line(&format!("array[({index}) & 15] {operator} {value};")),
            },
            Place::Struct => {
                let fields = [("s.a", Type::U32), ("s.b", Type::I16), ("s.c", Type::U64), ("s.d", Type::F32)];
                let (field, ty) = self.random.pick(&fields[..if self.dialect.floats { 4 } else { 3 }]);
                let value = self.expression(ty, 2);
                self.line(&format!("{field} = {value};"));
            }
            // GCC 12 breaks off over structures returned by value.
            Place::Bits => match self.random.below(3) {
                0 if self.dialect.clang => {
                    let (name, more) = (self.fresh("bits"), wide(self));
                    self.helpers.push(format!(
                        "static NOINLINE struct Bits {name}(struct Bits p, u64 x) {{ p.c {operator} x; p.a = (u32)(x >> 3) + \
                         p.d; p.e = (i16)(p.b * (i32)x); return p; }}\n"
                    ));
                    self.line(&format!("bits = {name}(bits, {more});"));
                }
                0 | 1 => {
                    let more = wide(self);
                    self.line(&format!("bits.c {operator} {more};"));
                }
                _ => {
                    let field = self.random.pick(&["bits.a", "bits.b", "bits.d", "bits.e"]);
                    self.line(&format!("{field} {operator} {value};"));
                }
            },
            Place::Pairs => match self.random.below(3) {
                0 if self.dialect.clang => {
                    let (name, more) = (self.fresh("pair"), wide(self));
                    self.helpers.push(format!(
                        "static NOINLINE struct Pair {name}(struct Pair p, u64 x) {{ struct Pair r = {{p.x ^ x, p.y {} \
                         (i32)x}}; return r; }}\n",
                        self.random.pick(&["+", "-", "*"])
                    ));
                    self.line(&format!("pairs[({index}) & 3] = {name}(pairs[({value}) & 3], {more});"));
                }
                0 | 1 => self.line(&format!("pairs[({index}) & 3].y {operator} (i32)({value});")),
                _ => {
                    let more = wide(self);
                    self.line(&format!("pairs[({index}) & 3].x {operator} {more};"));
                }
            },
            Place::Either => {
                let (field, mask) = self.random.pick(&[("w", 3), ("d", 1), ("h", 7), ("b", 15)]);
                self.line(&format!("either.{field}[({index}) & {mask}] {operator} {value};"));
            }
            Place::Bytes => match self.random.below(3) {
                0 => {
                    let more = wide(self);
                    self.line(&format!("{{ u64 x = {more}; __builtin_memcpy(bytes + (({index}) & 15), &x, 8); }}"));
                }
                1 => self
                    .line(&format!("{{ u32 x; __builtin_memcpy(&x, bytes + (({index}) & 15), 4); h = mix(h, x); }}")),
                _ => self.line(&format!("bytes[({index}) % 24] {operator} {value};")),
            },
            Place::Cells | Place::Shared => {
                let (narrow, wide_too) = if place == Place::Cells {
                    (format!("&cell[({index}) & 1]"), true)
                } else {
                    (format!("&slot[({index}) & 3]"), false)
                };
                if self.random.chance(30) {
                    return self.line(&format!("*({narrow}) {operator} {value};"));
                }
                let is_wide = wide_too && self.random.chance(40);
                let (at, value) = if is_wide { ("wide".to_owned(), wide(self)) } else { (narrow, value) };
                let order = self.random.pick(&["__ATOMIC_RELAXED", "__ATOMIC_ACQ_REL", "__ATOMIC_SEQ_CST"]);
                let ty = if is_wide { "u64" } else { "u32" };
                let fetch: &[&str] = if self.dialect.clang {
                    &[
                        "fetch_add",
                        "fetch_sub",
                        "fetch_and",
                        "fetch_or",
                        "fetch_xor",
                        "fetch_max",
                        "fetch_min",
                        "exchange",
                    ]
                } else {
                    &["fetch_add", "fetch_sub", "fetch_and", "fetch_or", "fetch_xor", "exchange"]
                };
                if self.random.chance(20) {
                    self.line(&format!(
                        "{{ {ty} want = ({value}) & 1 ? *({at}) : 5; h = mix(h, __atomic_compare_exchange_n({at}, &want, \
                         ({ty})({value}), 0, {order}, __ATOMIC_RELAXED)); h = mix(h, want); }}"
                    ));
                } else {
                    let name = self.random.pick(fetch);
                    let suffix = if name == "exchange" { "_n" } else { "" };
                    self.line(&format!("h = mix(h, __atomic_{name}{suffix}({at}, ({ty})({value}), {order}));"));
                }
            }
        }
    }
}

//! Floating-point arithmetic in integers, for rounding modes other than to nearest even, and where the host has no
//! instruction with a single rounding.
//!
//! A finite number is `mantissa * 2^exponent`, exactly; results are rounded once, by `pack`.

/// A binary format.
#[derive(Clone, Copy)]
pub struct Format {
    /// Bits of the fraction field.
    fraction: u32,
    /// Bits of the exponent field.
    exponent: u32,
}

/// f16.
pub const F16: Format = Format { fraction: 10, exponent: 5 };
/// f32.
pub const F32: Format = Format { fraction: 23, exponent: 8 };
/// f64.
pub const F64: Format = Format { fraction: 52, exponent: 11 };
/// bf16.
pub const BF16: Format = Format { fraction: 7, exponent: 8 };

impl Format {
    fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    fn sign_bit(self) -> u64 {
        1 << (self.fraction + self.exponent)
    }

    fn infinity(self) -> u64 {
        ((1 << self.exponent) - 1) << self.fraction
    }

    fn quiet_bit(self) -> u64 {
        1 << (self.fraction - 1)
    }

    /// The default NaN.
    pub fn nan(self) -> u64 {
        self.infinity() | self.quiet_bit()
    }

    /// Exponent of the smallest denormal.
    fn least(self) -> i32 {
        1 - self.bias() - self.fraction as i32
    }
}

/// MODE's rounding modes.
pub const NEAREST: u32 = 0;
/// Towards plus infinity.
pub const UP: u32 = 1;
/// Towards minus infinity.
pub const DOWN: u32 = 2;
/// Towards zero.
pub const ZERO: u32 = 3;

/// A number taken apart.
#[derive(Clone, Copy)]
enum Value {
    /// Its bits in its own format.
    Nan(u64),
    Infinite {
        negative: bool,
    },
    /// Zero has mantissa 0. Mantissas stay below 2^120.
    Finite {
        negative: bool,
        exponent: i32,
        mantissa: u128,
    },
}

fn unpack(format: Format, bits: u64) -> Value {
    let negative = bits & format.sign_bit() != 0;
    let fraction = bits & ((1 << format.fraction) - 1);
    let exponent = (bits >> format.fraction) & ((1 << format.exponent) - 1);
    if exponent == (1 << format.exponent) - 1 {
        return if fraction != 0 { Value::Nan(bits) } else { Value::Infinite { negative } };
    }
    if exponent == 0 {
        return Value::Finite { negative, exponent: format.least(), mantissa: fraction as u128 };
    }
    let mantissa = fraction as u128 | 1 << format.fraction;
    Value::Finite { negative, exponent: exponent as i32 + format.least() - 1, mantissa }
}

/// Shifts right; bits that fall out leave a one in the lowest place.
fn shift_sticky(value: u128, places: u32) -> u128 {
    if places == 0 {
        value
    } else if places >= 128 {
        (value != 0) as u128
    } else {
        value >> places | (value & ((1 << places) - 1) != 0) as u128
    }
}

/// Rounds `mantissa * 2^exponent` into a format; a denormal result stays one.
fn pack(format: Format, round: u32, negative: bool, exponent: i32, mantissa: u128) -> u64 {
    let sign = if negative { format.sign_bit() } else { 0 };
    if mantissa == 0 {
        return sign;
    }
    let top = exponent + 127 - mantissa.leading_zeros() as i32;
    let lowest = (top - format.fraction as i32).max(format.least());
    // Two bits below the lowest place, the second sticky.
    let shift = lowest - 2 - exponent;
    let scaled = if shift <= 0 { mantissa << -shift } else { shift_sticky(mantissa, shift as u32) };
    let (mut kept, rest) = ((scaled >> 2) as u64, scaled & 3);
    let up = match round {
        NEAREST => rest > 2 || rest == 2 && kept & 1 != 0,
        UP => rest != 0 && !negative,
        DOWN => rest != 0 && negative,
        _ => false,
    };
    kept += up as u64;
    // `kept` counts units of 2^lowest; its leading one, if it has that place, adds one to the exponent field.
    let field = (lowest - format.least()) as u128;
    let result = (field << format.fraction) + kept as u128;
    if result >= format.infinity() as u128 {
        let infinite = match round {
            NEAREST => true,
            UP => !negative,
            DOWN => negative,
            _ => false,
        };
        return sign | if infinite { format.infinity() } else { format.infinity() - 1 };
    }
    sign | result as u64
}

/// The first NaN of `values`, quieted, or the default one.
fn nan_of(format: Format, values: &[Value]) -> u64 {
    for value in values {
        if let Value::Nan(bits) = value {
            return bits | format.quiet_bit();
        }
    }
    format.nan()
}

/// Brings the leading one of a non-zero mantissa to bit 119.
fn normalize(exponent: i32, mantissa: u128) -> (i32, u128) {
    let shift = mantissa.leading_zeros() as i32 - 8;
    (exponent - shift, mantissa << shift)
}

fn add_values(format: Format, round: u32, a: Value, b: Value) -> u64 {
    let zero = |negative: bool| if negative { format.sign_bit() } else { 0 };
    match (a, b) {
        (Value::Nan(_), _) | (_, Value::Nan(_)) => nan_of(format, &[a, b]),
        (Value::Infinite { negative: x }, Value::Infinite { negative: y }) if x != y => format.nan(),
        (Value::Infinite { negative }, _) | (_, Value::Infinite { negative }) => zero(negative) | format.infinity(),
        (
            Value::Finite { negative: x, exponent: ex, mantissa: mx },
            Value::Finite { negative: y, exponent: ey, mantissa: my },
        ) => {
            if mx == 0 && my == 0 {
                return zero(if x == y { x } else { round == DOWN });
            }
            if my == 0 {
                return pack(format, round, x, ex, mx);
            }
            if mx == 0 {
                return pack(format, round, y, ey, my);
            }
            let (ex, mx) = normalize(ex, mx);
            let (ey, my) = normalize(ey, my);
            let ((x, ex, mx), (y, ey, my)) =
                if ex >= ey { ((x, ex, mx), (y, ey, my)) } else { ((y, ey, my), (x, ex, mx)) };
            let my = shift_sticky(my, (ex - ey) as u32);
            if x == y {
                pack(format, round, x, ex, mx + my)
            } else if mx > my {
                pack(format, round, x, ex, mx - my)
            } else if my > mx {
                pack(format, round, y, ex, my - mx)
            } else {
                zero(round == DOWN)
            }
        }
    }
}

fn product(a: Value, b: Value) -> Option<Value> {
    Some(match (a, b) {
        (Value::Nan(_), _) | (_, Value::Nan(_)) => return None,
        (Value::Infinite { negative }, other) | (other, Value::Infinite { negative }) => match other {
            Value::Finite { mantissa: 0, .. } | Value::Nan(_) => return None,
            Value::Infinite { negative: other } | Value::Finite { negative: other, .. } => {
                Value::Infinite { negative: negative != other }
            }
        },
        (
            Value::Finite { negative: x, exponent: ex, mantissa: mx },
            Value::Finite { negative: y, exponent: ey, mantissa: my },
        ) => Value::Finite { negative: x != y, exponent: ex + ey, mantissa: mx * my },
    })
}

/// `a + b`.
pub fn add(format: Format, round: u32, a: u64, b: u64) -> u64 {
    add_values(format, round, unpack(format, a), unpack(format, b))
}

/// `a * b`.
pub fn mul(format: Format, round: u32, a: u64, b: u64) -> u64 {
    let (a, b) = (unpack(format, a), unpack(format, b));
    match product(a, b) {
        None => nan_of(format, &[a, b]),
        Some(Value::Finite { negative, exponent, mantissa }) => pack(format, round, negative, exponent, mantissa),
        Some(Value::Infinite { negative }) => format.infinity() | if negative { format.sign_bit() } else { 0 },
        Some(Value::Nan(bits)) => bits,
    }
}

/// `(a * b + c) * 2^scale`, rounded once.
pub fn fma_scaled(format: Format, round: u32, a: u64, b: u64, c: u64, scale: i32) -> u64 {
    let (a, b, c) = (unpack(format, a), unpack(format, b), unpack(format, c));
    if matches!(a, Value::Nan(_)) || matches!(b, Value::Nan(_)) || matches!(c, Value::Nan(_)) {
        return nan_of(format, &[a, b, c]);
    }
    let Some(product) = product(a, b) else { return format.nan() };
    let scaled = |value: Value| match value {
        Value::Finite { negative, exponent, mantissa } => {
            Value::Finite { negative, exponent: exponent + scale, mantissa }
        }
        other => other,
    };
    add_values(format, round, scaled(product), scaled(c))
}

/// `value * 2^exponent`.
pub fn ldexp(format: Format, round: u32, value: u64, exponent: i32) -> u64 {
    match unpack(format, value) {
        Value::Finite { negative, exponent: own, mantissa } => {
            pack(format, round, negative, own + exponent.clamp(-8192, 8192), mantissa)
        }
        Value::Nan(bits) => bits | format.quiet_bit(),
        Value::Infinite { .. } => value,
    }
}

/// From one format to another. A NaN is quieted and keeps the upper part of its payload.
pub fn convert(from: Format, to: Format, round: u32, bits: u64) -> u64 {
    let sign = if bits & from.sign_bit() != 0 { to.sign_bit() } else { 0 };
    match unpack(from, bits) {
        Value::Finite { negative, exponent, mantissa } => pack(to, round, negative, exponent, mantissa),
        Value::Infinite { .. } => sign | to.infinity(),
        Value::Nan(_) => {
            let fraction = bits & ((1 << from.fraction) - 1);
            let fraction = if to.fraction >= from.fraction {
                fraction << (to.fraction - from.fraction)
            } else {
                fraction >> (from.fraction - to.fraction)
            };
            sign | to.nan() | fraction
        }
    }
}

/// From an integer.
pub fn from_int(to: Format, round: u32, value: i64) -> u64 {
    pack(to, round, value < 0, 0, value.unsigned_abs() as u128)
}

const SIGN32: u64 = 1 << 31;
const SIGN16: u64 = 1 << 15;

/// Place in a soft operation's `round` argument of the 12 modifier bits of VOP3P.
pub const IMM: u32 = 16;
/// Bit of a soft operation's `round` argument: the VCC bit of the lane.
pub const VCC: u32 = 1 << 8;

/// The rounding mode of f32.
pub fn single(round: u32) -> u32 {
    round & 3
}

/// The rounding mode of f64 and f16.
pub fn double(round: u32) -> u32 {
    (round >> 2) & 3
}

macro_rules! soft {
    ($($name:ident($round:ident, $a:ident, $b:ident, $c:ident) $body:block)*) => {$(
        #[allow(missing_docs)]
        pub fn $name($round: u32, $a: u64, $b: u64, $c: u64) -> u64 $body
    )*};
}

soft! {
    add32(round, a, b, _c) { add(F32, single(round), a, b) }
    sub32(round, a, b, _c) { sub(F32, single(round), a, b, SIGN32) }
    subrev32(round, a, b, _c) { subrev(F32, single(round), a, b, SIGN32) }
    mul32(round, a, b, _c) { mul(F32, single(round), a, b) }
    mul_legacy32(round, a, b, _c) {
        if a & !SIGN32 == 0 || b & !SIGN32 == 0 { 0 } else { mul(F32, single(round), a, b) }
    }
    fma32(round, a, b, c) { fma_scaled(F32, single(round), a, b, c, 0) }
    fma_legacy32(round, a, b, c) {
        if a & !SIGN32 == 0 || b & !SIGN32 == 0 {
            add(F32, single(round), c, c & SIGN32)
        } else {
            fma_scaled(F32, single(round), a, b, c, 0)
        }
    }
    mad32(round, a, b, c) {
        let product = flush32(mul(F32, single(round), flush32(a), flush32(b)));
        flush32(add(F32, single(round), product, flush32(c)))
    }
    mad_legacy32(round, a, b, c) {
        let product = flush32(mul_legacy32(round, flush32(a), flush32(b), 0));
        flush32(add(F32, single(round), product, flush32(c)))
    }
    ldexp32(round, a, b, _c) { ldexp(F32, single(round), a, b as i32) }

    add64(round, a, b, _c) { add(F64, double(round), a, b) }
    mul64(round, a, b, _c) { mul(F64, double(round), a, b) }
    fma64(round, a, b, c) { fma_scaled(F64, double(round), a, b, c, 0) }
    ldexp64(round, a, b, _c) { ldexp(F64, double(round), a, b as i32) }

    add16(round, a, b, _c) { add(F16, double(round), a, b) }
    sub16(round, a, b, _c) { sub(F16, double(round), a, b, SIGN16) }
    subrev16(round, a, b, _c) { subrev(F16, double(round), a, b, SIGN16) }
    mul16(round, a, b, _c) { mul(F16, double(round), a, b) }
    fma16(round, a, b, c) { fma_scaled(F16, double(round), a, b, c, 0) }
    mad16(round, a, b, c) { add(F16, double(round), mul(F16, double(round), a, b), c) }
    ldexp16(round, a, b, _c) { ldexp(F16, double(round), a, b as i16 as i32) }

    f32_from_f64(round, a, _b, _c) { convert(F64, F32, single(round), a) }
    f16_from_f32(round, a, _b, _c) { convert(F32, F16, double(round), a) }
    f32_from_i32(round, a, _b, _c) { from_int(F32, single(round), a as i32 as i64) }
    f32_from_u32(round, a, _b, _c) { from_int(F32, single(round), a as u32 as i64) }
    f16_from_i16(round, a, _b, _c) { from_int(F16, double(round), a as i16 as i64) }
    f16_from_u16(round, a, _b, _c) { from_int(F16, double(round), a as u16 as i64) }
}

/// `a - b`; a NaN keeps its sign.
fn sub(format: Format, round: u32, a: u64, b: u64, sign: u64) -> u64 {
    match unpack(format, b) {
        Value::Nan(_) => add(format, round, a, b),
        _ => add(format, round, a, b ^ sign),
    }
}

/// `b - a`; the NaN of `a` comes first all the same.
fn subrev(format: Format, round: u32, a: u64, b: u64, sign: u64) -> u64 {
    match unpack(format, a) {
        Value::Nan(_) => add(format, round, a, b),
        _ => add(format, round, a ^ sign, b),
    }
}

fn flush32(bits: u64) -> u64 {
    if bits & 0x7f80_0000 == 0 { bits & SIGN32 } else { bits }
}

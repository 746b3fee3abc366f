//! Takes LLVM's assembly text apart.

/// A printed operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    /// A numbered register or range.
    Register {
        /// `v`, `a`, `s`.
        class: char,
        /// First.
        number: u32,
        /// Registers.
        dwords: u8,
        /// `.l` or `.h`.
        half: bool,
    },
    /// A named register or `off`.
    Special(String),
    /// A number.
    Constant(String),
    /// Anything else.
    Other(String),
}

/// An instruction taken apart.
#[derive(Clone, Debug)]
pub struct Instruction {
    /// Mnemonic with suffix.
    pub mnemonic: String,
    /// Operands as text.
    pub raw: Vec<String>,
    /// Operands.
    pub operands: Vec<Token>,
    /// Modifiers after the operands.
    pub modifiers: Vec<String>,
}

impl Instruction {
    /// Splits at commas outside brackets; what follows a space after an operand is a modifier.
    pub fn parse(text: &str) -> Instruction {
        let (mnemonic, rest) = text.split_once(' ').unwrap_or((text, ""));
        let mut pieces = vec![String::new()];
        let mut modifiers = Vec::new();
        let mut depth = 0;
        let mut in_modifier = false;
        let mut modifier = String::new();
        for char in rest.chars() {
            match char {
                '[' | '(' => depth += 1,
                ']' | ')' => depth -= 1,
                ',' if depth == 0 => {
                    in_modifier = false;
                    pieces.push(String::new());
                    continue;
                }
                ' ' if depth == 0 => {
                    let empty = pieces.last().is_none_or(|piece| piece.is_empty());
                    if in_modifier && !modifier.is_empty() {
                        modifiers.push(std::mem::take(&mut modifier));
                    }
                    in_modifier = !empty;
                    continue;
                }
                _ => {}
            }
            if in_modifier {
                modifier.push(char);
            } else if let Some(piece) = pieces.last_mut() {
                piece.push(char);
            }
        }
        if !modifier.is_empty() {
            modifiers.push(modifier);
        }
        pieces.retain(|piece| !piece.is_empty());
        // `offset:8` and flags may be all there is.
        if let [only, ..] = pieces.as_slice()
            && is_modifier(only)
        {
            modifiers.insert(0, only.clone());
            pieces.remove(0);
        }
        let operands = pieces.iter().map(|piece| token(piece)).collect();
        Instruction { mnemonic: mnemonic.to_owned(), raw: pieces, operands, modifiers }
    }
}

/// `name:value`, or a flag that instructions without operands have.
fn is_modifier(text: &str) -> bool {
    let name = text.split_once(':').map(|(name, _)| name);
    name.is_some_and(|name| name.chars().all(|char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '_'))
        || ["gds", "glc", "lds"].contains(&text)
}

fn token(text: &str) -> Token {
    let (text, half) = match text.strip_suffix(".l").or(text.strip_suffix(".h")) {
        Some(text) => (text, true),
        None => (text, false),
    };
    if let Some(register) = register(text, half) {
        return register;
    }
    const NAMES: [&str; 12] = [
        "vcc",
        "vcc_lo",
        "exec",
        "exec_lo",
        "off",
        "null",
        "m0",
        "scc",
        "flat_scratch",
        "xnack_mask",
        "vcc_hi",
        "exec_hi",
    ];
    if NAMES.contains(&text) {
        return Token::Special(text.to_owned());
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    let number = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).is_ok(),
        None => digits.parse::<f64>().is_ok(),
    };
    if number { Token::Constant(text.to_owned()) } else { Token::Other(text.to_owned()) }
}

fn register(text: &str, half: bool) -> Option<Token> {
    let class = text.chars().next().filter(|class| ['v', 's', 'a'].contains(class))?;
    let rest = &text[1..];
    let (first, last) = match rest.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(range) => {
            let (first, last) = range.split_once(':').unwrap_or((range, range));
            (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?)
        }
        None => {
            let number = rest.parse().ok()?;
            (number, number)
        }
    };
    let dwords = u8::try_from(last.checked_sub(first)? + 1).ok()?;
    Some(Token::Register { class, number: first, dwords, half })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_operands_and_modifiers_apart() {
        let load = Instruction::parse("global_load_dword v8, v[24:25], off offset:-8 glc");
        assert_eq!(load.mnemonic, "global_load_dword");
        assert_eq!(load.raw, ["v8", "v[24:25]", "off"]);
        assert_eq!(load.operands[1], Token::Register { class: 'v', number: 24, dwords: 2, half: false });
        assert_eq!(load.modifiers, ["offset:-8", "glc"]);
        let getreg = Instruction::parse("s_getreg_b32 s12, hwreg(HW_REG_MODE, 0, 1)");
        assert_eq!(getreg.raw, ["s12", "hwreg(HW_REG_MODE, 0, 1)"]);
        let nop = Instruction::parse("v_nop quad_perm:[0,1,2,3] row_mask:0xf");
        assert!(nop.operands.is_empty());
        assert_eq!(nop.modifiers, ["quad_perm:[0,1,2,3]", "row_mask:0xf"]);
    }

    #[test]
    fn tells_registers_from_numbers_and_names() {
        let half = Instruction::parse("v_mov_b16 v8.l, 0.5");
        assert_eq!(half.operands[0], Token::Register { class: 'v', number: 8, dwords: 1, half: true });
        assert_eq!(half.operands[1], Token::Constant("0.5".to_owned()));
        assert_eq!(Instruction::parse("s_nop 0x10").operands, [Token::Constant("0x10".to_owned())]);
        assert_eq!(Instruction::parse("v_x vcc").operands, [Token::Special("vcc".to_owned())]);
        assert_eq!(Instruction::parse("v_x attr0.x").operands, [Token::Other("attr0.x".to_owned())]);
    }
}

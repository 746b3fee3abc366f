//! What a header declares, by name: enough C to tell which names exist, the values are the compiler's to tell.

use std::collections::{BTreeMap, BTreeSet};

/// Names a header declares.
#[derive(Debug, Default)]
pub struct Header {
    /// `struct` tags with the identifiers inside their braces.
    pub structs: BTreeMap<String, BTreeSet<String>>,
    /// Macros without parameters that have a value, and enumerators.
    pub constants: BTreeSet<String>,
}

/// Reads the names out of a header's text.
pub fn parse(text: &str) -> Header {
    let text = without_comments(&text.replace("\\\n", " "));
    let mut header = Header::default();
    let mut code = String::new();
    for line in text.lines() {
        match line.trim_start().strip_prefix('#') {
            None => {
                code.push_str(line);
                code.push('\n');
            }
            Some(directive) => {
                let Some(rest) = directive.trim_start().strip_prefix("define") else { continue };
                let rest = rest.trim_start();
                let end = rest.find(|c: char| !is_identifier(c)).unwrap_or(rest.len());
                let (name, body) = rest.split_at(end);
                if !name.is_empty() && !body.starts_with('(') && !body.trim().is_empty() {
                    header.constants.insert(name.to_string());
                }
            }
        }
    }
    declarations(&tokens(&code), &mut header);
    header
}

fn is_identifier(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("/*") {
        out.push_str(&rest[..start]);
        out.push(' ');
        rest = &rest[start + 2..];
        rest = rest.find("*/").map_or("", |end| &rest[end + 2..]);
    }
    out.push_str(rest);
    out
}

fn tokens(code: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let end = if is_identifier(first) {
            rest.find(|c: char| !is_identifier(c)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        tokens.push(&rest[..end]);
        rest = rest[end..].trim_start();
    }
    tokens
}

fn declarations(tokens: &[&str], header: &mut Header) {
    let mut at = 0;
    while at < tokens.len() {
        let body = match tokens[at..] {
            ["struct", tag, "{", ..] => {
                let body = braces(&tokens[at + 2..]);
                let names = body.iter().filter(|token| token.starts_with(is_identifier));
                header.structs.insert(tag.to_string(), names.map(|token| token.to_string()).collect());
                body.len() + 3
            }
            ["enum", _, "{", ..] => {
                let body = braces(&tokens[at + 2..]);
                // An enumerator follows the brace or a comma.
                for (i, token) in body.iter().enumerate() {
                    if token.starts_with(is_identifier) && (i == 0 || body[i - 1] == ",") {
                        header.constants.insert(token.to_string());
                    }
                }
                body.len() + 3
            }
            _ => 1,
        };
        at += body;
    }
}

/// The tokens between the brace at the start and the one that closes it.
fn braces<'a, 'b>(tokens: &'b [&'a str]) -> &'b [&'a str] {
    let mut depth = 0usize;
    for (i, token) in tokens.iter().enumerate() {
        match *token {
            "{" => depth += 1,
            "}" => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return &tokens[1..i];
                }
            }
            _ => {}
        }
    }
    tokens.get(1..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let header = parse(
            "#ifndef GUARD\n#define GUARD\n#define A 1 /* one */\n#define F(x) (x)\n#  define B \\\n\tF(2)\n\
             /* struct no { int x; }; */\n\
             struct s { int a; struct { int b; } inner; union { int c; }; };\n\
             enum e { X, Y = 3, /* Z, */ };\n",
        );
        assert_eq!(header.constants.iter().map(String::as_str).collect::<Vec<_>>(), ["A", "B", "X", "Y"]);
        assert_eq!(header.structs.keys().map(String::as_str).collect::<Vec<_>>(), ["s"]);
        for name in ["a", "b", "c", "inner"] {
            assert!(header.structs["s"].contains(name), "{name}");
        }
    }

    #[test]
    fn odd_ends() {
        for text in ["/*", "struct s {", "enum e {", "#define", "struct s { } } {", "#define X"] {
            let _ = parse(text);
        }
    }
}

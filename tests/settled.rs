//! Texts for snapshots.

/// A text without what differs from run to run: addresses keep their place in a page, times and bytes of addresses
/// nothing.
pub fn settled(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.len() == 32 && words.iter().all(|word| word.len() == 2 && u8::from_str_radix(word, 16).is_ok()) {
            out += &line[..line.len() - line.trim_start().len()];
            out += &words.chunks(8).map(settled_bytes).collect::<Vec<_>>().join(" ");
        } else {
            out += &settled_line(line);
        }
        out.push('\n');
    }
    out
}

/// Eight bytes: dots for those of an address.
fn settled_bytes(bytes: &[&str]) -> String {
    // From 2^44 to 2^48, where the kernel maps things.
    let address = u8::from_str_radix(bytes[5], 16).is_ok_and(|byte| byte >= 0x10);
    if address && bytes[6..] == ["00", "00"] {
        return format!("{} .. .. .. .. .. 00 00", bytes[0]);
    }
    bytes.join(" ")
}

fn settled_line(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find("0x") {
        let (before, number) = rest.split_at(at);
        let digits = number[2..].chars().take_while(char::is_ascii_hexdigit).count();
        out += before;
        out += &match digits {
            9..=12 => format!("0x…{}", &number[2 + digits - 3..2 + digits]),
            _ => number[..2 + digits].to_owned(),
        };
        rest = &number[2 + digits..];
    }
    out += rest;
    // Addresses as bytes.
    let words: Vec<&str> = out.split(' ').collect();
    let pair = |word: &str| word.len() == 2 && u8::from_str_radix(word, 16).is_ok();
    if let Some(at) = words.windows(8).position(|bytes| bytes.iter().all(|word| pair(word))) {
        let bytes = &words[at..at + 8];
        out = [words[..at].join(" "), settled_bytes(bytes), words[at + 8..].join(" ")].join(" ");
    }
    // `was freed 0.2 ms ago`
    if let (Some(from), Some(to)) = (out.find("freed "), out.find(" ms ago")) {
        out.replace_range(from + 6..to, "N");
    }
    out
}

//! Text for people: colours on a terminal only, lines that fit it.

use std::io::IsTerminal;

/// Least width that lines are wrapped for.
const NARROWEST: usize = 40;

/// Width of lines that go to no terminal.
const PLAIN_WIDTH: usize = 100;

/// How text is shown.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    colour: bool,
    width: usize,
}

/// A colour with a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// A heading.
    Bold,
    /// Less important.
    Dim,
    /// As it should be.
    Green,
    /// Worth a look.
    Yellow,
    /// Wrong.
    Red,
}

impl Style {
    /// For standard output: colours when it is a terminal, `TERM` is not `dumb` and `NO_COLOR` is not set to anything.
    pub fn stdout() -> Style {
        let terminal = std::io::stdout().is_terminal();
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let width = if terminal { terminal_width().unwrap_or(80) } else { PLAIN_WIDTH };
        Style { colour: terminal && !dumb && !set("NO_COLOR"), width: width.max(NARROWEST) }
    }

    /// Without colours, for files and pipes.
    pub fn plain() -> Style {
        Style { colour: false, width: PLAIN_WIDTH }
    }

    /// Text in a colour.
    pub fn paint(self, colour: Colour, text: &str) -> String {
        let code = match colour {
            _ if !self.colour => return text.to_owned(),
            Colour::Bold => "1",
            Colour::Dim => "2",
            Colour::Green => "32",
            Colour::Yellow => "33",
            Colour::Red => "31",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// `first` and then `text`, broken between words at the width, the lines that follow indented by `indent`. `first`
    /// takes `indent` columns or more and may have colours; it is not looked at.
    pub fn hang(self, first: &str, indent: usize, text: &str) -> String {
        let room = self.width.saturating_sub(indent).max(NARROWEST / 2);
        let mut out = first.to_owned();
        for (i, line) in wrap(text, room).iter().enumerate() {
            if i > 0 {
                out += &format!("\n{:indent$}", "");
            }
            out += line;
        }
        out
    }

    /// Rows of cells under one another, two spaces between; the last column takes what is left and is wrapped.
    pub fn table(self, indent: usize, rows: &[Vec<String>]) -> String {
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| rows.iter().filter_map(|row| row.get(column).map(|cell| count(cell))).max();
        let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
        let mut out = String::new();
        for row in rows {
            let Some((last, fixed)) = row.split_last() else { continue };
            let mut first = " ".repeat(indent);
            for (cell, width) in fixed.iter().zip(&widths) {
                first += &format!("{cell:width$}  ");
            }
            let at = count(&first);
            out += self.hang(&first, at, last).trim_end();
            out.push('\n');
        }
        out
    }
}

fn count(text: &str) -> usize {
    text.chars().count()
}

fn wrap(text: &str, room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        let mut line = String::new();
        for word in paragraph.split(' ') {
            if !line.is_empty() && count(&line) + 1 + count(word) > room {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line += word;
        }
        lines.push(line);
    }
    lines
}

/// Columns of the terminal on standard output.
fn terminal_width() -> Option<usize> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: TIOCGWINSZ writes one `winsize`, which `size` is.
    let result = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &raw mut size) };
    (result == 0 && size.ws_col > 0).then_some(size.ws_col.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_wrapped_between_words() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("a-very-long-word b", 7), ["a-very-long-word", "b"]);
        assert_eq!(wrap("", 7), [""]);
        let style = Style { colour: false, width: 40 };
        let row = |a: &str, b: &str| vec![a.to_owned(), b.to_owned()];
        let table = style.table(2, &[row("a", "1 2 3"), row("long", "words that do not fit in what is left of it")]);
        assert_eq!(table, "  a     1 2 3\n  long  words that do not fit in what is\n        left of it\n");
    }

    #[test]
    fn colours_only_where_wanted() {
        assert_eq!(Style::plain().paint(Colour::Red, "x"), "x");
        assert_eq!(Style { colour: true, width: 80 }.paint(Colour::Red, "x"), "\x1b[31mx\x1b[0m");
    }
}

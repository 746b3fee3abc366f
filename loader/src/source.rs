//! Source lines of code addresses, from DWARF.

use addr2line::gimli::{self, DwarfSections, EndianSlice, LittleEndian};
use addr2line::{Context, Location};
use elf::CodeObject;

/// Inlined calls that are looked through.
const DEPTH: usize = 16;

/// Where an image address comes from, one line a function, the innermost first: `name at file.c:10:3`. Empty when the image
/// has no debug information for it.
pub fn lines(code: &CodeObject, vaddr: u64) -> Vec<String> {
    frames(code, vaddr).unwrap_or_default()
}

fn frames(code: &CodeObject, vaddr: u64) -> Result<Vec<String>, gimli::Error> {
    let load = |id: gimli::SectionId| Ok::<_, gimli::Error>(code.section(id.name()).unwrap_or_default());
    let sections = DwarfSections::load(load)?;
    let context = Context::from_dwarf(sections.borrow(|bytes| EndianSlice::new(bytes, LittleEndian)))?;
    let mut frames = context.find_frames(vaddr).skip_all_loads()?;
    let mut lines = Vec::new();
    while lines.len() < DEPTH {
        let Some(frame) = frames.next()? else { break };
        let name = frame.function.as_ref().and_then(|function| function.demangle().ok().map(|name| name.into_owned()));
        let place = frame.location.as_ref().and_then(place);
        lines.extend(match (name, place) {
            (Some(name), Some(place)) => Some(format!("{name} at {place}")),
            (Some(name), None) => Some(name),
            (None, place) => place,
        });
    }
    Ok(lines)
}

/// `file:line:column`, as far as it is known. Line and column 0 stand for unknown.
fn place(location: &Location) -> Option<String> {
    let mut text = location.file?.to_owned();
    for number in [location.line, location.column] {
        match number {
            Some(number) if number != 0 => text.push_str(&format!(":{number}")),
            _ => break,
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const IMAGE: &[u8] = include_bytes!("../../tests/programs/images/fault.gfx90a");

    /// Bytes of the debug sections in the file.
    fn debug_ranges() -> Vec<std::ops::Range<usize>> {
        let code = CodeObject::parse(IMAGE).unwrap();
        [
            ".debug_info",
            ".debug_abbrev",
            ".debug_line",
            ".debug_str",
            ".debug_addr",
            ".debug_rnglists",
            ".debug_line_str",
        ]
        .iter()
        .filter_map(|name| code.section(name))
        .filter_map(|bytes| {
            IMAGE.windows(bytes.len()).position(|window| window == &*bytes).map(|at| at..at + bytes.len())
        })
        .collect()
    }

    #[test]
    fn a_line_of_each_function() {
        let code = CodeObject::parse(IMAGE).unwrap();
        let start = code.symbol("_start").unwrap();
        let all: Vec<Vec<String>> =
            (0..start.size / 4).map(|word| lines(&code, start.vaddr().unwrap() + 4 * word)).collect();
        assert!(
            all.iter().any(
                |lines| matches!(&lines[..], [main, start] if main.starts_with("main at ") && main.contains("fault.c:")
            && start.starts_with("_start at ") && start.contains("start.c:"))
            ),
            "{all:?}"
        );
        assert_eq!(lines(&code, 0), Vec::<String>::new());
    }

    proptest! {
        #[test]
        fn damaged_information_ends_in_few_lines_or_none(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12)) {
            let ranges = debug_ranges();
            let places: Vec<usize> = ranges.into_iter().flatten().collect();
            prop_assert!(!places.is_empty());
            let mut file = IMAGE.to_vec();
            for (index, byte) in changes {
                file[*index.get(&places)] = byte;
            }
            let code = CodeObject::parse(&file).unwrap();
            let start = code.symbol("_start").unwrap();
            for word in 0..start.size / 4 {
                prop_assert!(lines(&code, start.vaddr().unwrap() + 4 * word).len() <= DEPTH);
            }
        }
    }
}

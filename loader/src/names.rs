//! Kernels by the names that people have for them: as in the image, with `.kd` behind, or as in the source.

use crate::Error;
use cpp_demangle::{DemangleOptions, DemangleWrite, Symbol};
use elf::{CodeObject, Kernel};
use std::fmt;

/// A name as it is in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demangled {
    /// With the types of parameters: `scale<float>(float*, unsigned int)`.
    pub whole: String,
    /// Without: `scale<float>`.
    pub short: String,
}

/// A demangled name may be much longer than the one in the image; no longer than this.
const LONGEST: usize = 16 << 10;

/// What a C++ or Rust compiler made of a name in the source; none when it did not.
pub fn demangle(name: &str) -> Option<Demangled> {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        let text = format!("{rust:#}");
        return Some(Demangled { whole: text.clone(), short: text });
    }
    let symbol = Symbol::new(name).ok().filter(|_| name.len() <= LONGEST)?;
    let text = |options: DemangleOptions| {
        let mut text = Bounded(String::new());
        symbol.structured_demangle(&mut text, &options).ok().map(|()| text.0)
    };
    let options = DemangleOptions::new().no_return_type();
    Some(Demangled { whole: text(options)?, short: text(options.no_params())? })
}

/// The types of a C++ function's parameters, as `float*`, without `const`; none when the name does not tell.
pub fn parameters(name: &str) -> Option<Vec<String>> {
    let Demangled { whole, short } = demangle(name)?;
    let list = whole.strip_prefix(&short)?.strip_prefix('(')?.strip_suffix(')')?;
    let (mut depth, mut types) = (0, vec![String::new()]);
    for c in list.chars() {
        match c {
            '<' | '(' | '[' => depth += 1,
            '>' | ')' | ']' => depth -= 1,
            _ => {}
        }
        match types.last_mut() {
            Some(last) if c != ',' || depth > 0 => last.push(c),
            _ => types.push(String::new()),
        }
    }
    let plain = |name: String| name.replace(" const", "").replace(" volatile", "").trim().to_owned();
    Some(types.into_iter().map(plain).filter(|name| !name.is_empty() && name != "void").collect())
}

struct Bounded(String);

impl DemangleWrite for Bounded {
    fn write_string(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > LONGEST {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// The kernel of a name. What the image calls it goes first; a name from the source must stand for one kernel only.
///
/// # Errors
/// [`Error::NoKernel`], with the names nearest to it; [`Error::AmbiguousKernel`].
pub fn find<'c, 'a>(code: &'c CodeObject<'a>, name: &str) -> Result<&'c Kernel<'a>, Error> {
    let plain = name.strip_suffix(".kd").unwrap_or(name);
    if let Some(kernel) = code.kernel(plain) {
        return Ok(kernel);
    }
    let squeezed = |text: &str| text.split_whitespace().collect::<String>();
    // What c++filt prints of a template has its return type in front, which a kernel's is always this.
    let wanted = squeezed(plain.strip_prefix("void ").unwrap_or(plain));
    let kernels: Vec<(&Kernel, Option<Demangled>)> =
        code.kernels().iter().map(|kernel| (kernel, demangle(kernel.name()))).collect();
    let of = |name: &dyn Fn(&Demangled) -> String| -> Vec<&(&Kernel, Option<Demangled>)> {
        kernels.iter().filter(|(_, demangled)| demangled.as_ref().is_some_and(|d| name(d) == wanted)).collect()
    };
    let template = |short: &str| short.split('<').next().unwrap_or_default().to_owned();
    let last = |name: &str| name.rsplit("::").next().unwrap_or_default().to_owned();
    for found in [
        of(&|d| squeezed(&d.whole)),
        of(&|d| squeezed(&d.short)),
        of(&|d| template(&squeezed(&d.short))),
        of(&|d| last(&template(&squeezed(&d.short)))),
    ] {
        match found[..] {
            [] => {}
            [(kernel, _)] => return Ok(kernel),
            _ => {
                let kernels = found.iter().map(|(kernel, demangled)| shown(kernel.name(), demangled)).collect();
                return Err(Error::AmbiguousKernel { name: plain.to_owned(), kernels });
            }
        }
    }
    let mut near: Vec<(usize, String)> = kernels
        .iter()
        .map(|(kernel, demangled)| {
            let short = demangled.as_ref().map(|demangled| demangled.short.as_str());
            let near = |name: &str| if name.contains(plain) { 0 } else { distance(name, plain) };
            let distance = near(kernel.name()).min(short.map_or(usize::MAX, near));
            (distance, shown(kernel.name(), demangled))
        })
        .collect();
    near.sort_by_key(|(distance, _)| *distance);
    Err(Error::NoKernel { name: plain.to_owned(), kernels: near.into_iter().map(|(_, name)| name).collect() })
}

/// A name of the image, and what it is in the source.
fn shown(name: &str, demangled: &Option<Demangled>) -> String {
    demangled.as_ref().map_or(name.to_owned(), |demangled| format!("{name} = {}", demangled.whole))
}

/// Levenshtein distance, for suggestions.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut last = i;
        row[0] = i + 1;
        for (j, y) in b.chars().enumerate() {
            let next = (last + usize::from(x != y)).min(row[j] + 1).min(row[j + 1] + 1);
            last = row[j + 1];
            row[j + 1] = next;
        }
    }
    row[b.chars().count()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_source() {
        let of = |name| demangle(name).map(|d| (d.whole, d.short));
        let pair = |whole: &str, short: &str| Some((whole.to_owned(), short.to_owned()));
        assert_eq!(of("_Z5scalePfj"), pair("scale(float*, unsigned int)", "scale"));
        assert_eq!(of("_ZN2ns3addIfEEvPT_"), pair("ns::add<float>(float*)", "ns::add<float>"));
        assert_eq!(of("_RNvCs15kBYyAo9fc_7mycrate3foo"), pair("mycrate::foo", "mycrate::foo"));
        assert_eq!((of("scale"), of("_Z"), of("")), (None, None, None));
        let types = |name| parameters(name).map(|types| types.join("; "));
        assert_eq!(types("_Z5scalePfj").as_deref(), Some("float*; unsigned int"));
        assert_eq!(types("_Z3addPKfSt4pairIifE").as_deref(), Some("float*; std::pair<int, float>"));
        assert_eq!((types("_Z4nonev").as_deref(), types("scale")), (Some(""), None));
        // Each substitution doubles what there is.
        let doubling = format!("_Z1fI{}E", "1aIS0_S0_E".repeat(60));
        assert!(of(&doubling).is_none_or(|(whole, _)| whole.len() <= LONGEST));
    }
}

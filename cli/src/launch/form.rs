//! The form of a script: what its TOML may say. Everything that is refused is told with its line.

use super::args::tolerance;
use loader::spec::Tolerance;
use std::path::PathBuf;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// The version that is read.
const VERSION: i128 = 1;

/// A file.
#[derive(Debug, Default)]
pub struct Script {
    /// Name and `TYPE[COUNT]=CONTENTS` of the buffers.
    pub buffers: Vec<(String, String)>,
    /// Undefined symbols: an address, a buffer or the name of one.
    pub define: Vec<(String, String)>,
    /// In order.
    pub launch: Vec<Entered>,
    /// Buffers to write after the last launch, and where.
    pub dump: Vec<(String, String)>,
    /// Buffers to compare after the last launch, and with what.
    pub expect: Vec<(String, String)>,
    /// How far apart they may be.
    pub tolerance: Option<Tolerance>,
}

/// A launch.
#[derive(Debug)]
pub struct Entered {
    /// Image, its own or the file's.
    pub image: PathBuf,
    /// Kernel.
    pub kernel: String,
    /// Grid in work-groups.
    pub groups: Option<[u32; 3]>,
    /// Grid in work-items.
    pub items: Option<[u32; 3]>,
    /// Work-items of a work-group.
    pub group_size: Option<[u32; 3]>,
    /// Numbers, names of buffers, or arguments as `--arg` has them.
    pub args: Vec<String>,
    /// LDS bytes beyond what the kernel has statically.
    pub dynamic_lds: u32,
    /// How often.
    pub repeat: u32,
    /// Variables and their values.
    pub set_global: Vec<(String, String)>,
    /// Variables.
    pub dump_global: Vec<String>,
}

const OF_FILE: [&str; 8] = ["version", "image", "buffers", "define", "launch", "dump", "expect", "tolerance"];
const OF_LAUNCH: [&str; 10] =
    ["image", "kernel", "groups", "items", "group-size", "args", "dynamic-lds", "repeat", "set-global", "dump-global"];

/// Reads a file.
pub fn read(text: &str) -> Result<Script, String> {
    let document = DeTable::parse(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        format!("line {}: {}", line(text, start), error.message().lines().collect::<Vec<_>>().join(", "))
    })?;
    let file = Section { text, table: document.get_ref(), context: String::new() };
    // Another version may have other keys.
    let version = file.get("version").ok_or_else(|| format!("version is missing: write version = {VERSION}"))?;
    if whole(version.get_ref()) != Some(VERSION) {
        let given = shown(version.get_ref());
        let text = format!("version {given} of the form is not known; this is version {VERSION}");
        return Err(file.fail(version, &text));
    }
    file.only(&OF_FILE)?;
    let image = file.string("image", "a path")?.map(PathBuf::from);
    let mut script = Script {
        buffers: file.pairs("buffers", "TYPE[COUNT]=CONTENTS", false)?,
        define: file.pairs("define", "an address, a buffer or the name of one", true)?,
        dump: file.pairs("dump", "a file, or \"-\"", false)?,
        expect: file.pairs("expect", "a file or contents", true)?,
        ..Script::default()
    };
    if let Some(text) = file.string("tolerance", "\"REL[,ABS]\"")? {
        script.tolerance = Some(tolerance(&text).map_err(|error| format!("tolerance: {error}"))?);
    }
    let launches = file.get("launch").ok_or("it has no [[launch]]")?;
    let DeValue::Array(list) = launches.get_ref() else {
        return Err(file.fail(launches, "launch is a list of tables: write [[launch]] in front of each"));
    };
    for (index, launch) in list.iter().enumerate() {
        let context = format!("launch {index}: ");
        let DeValue::Table(table) = launch.get_ref() else {
            return Err(file.fail(launch, &format!("{context}is {}, not a table", kind(launch.get_ref()))));
        };
        script.launch.push(entered(Section { text, table, context }, launch, index, &image)?);
    }
    if script.launch.is_empty() {
        return Err("it has no [[launch]]".to_owned());
    }
    Ok(script)
}

fn entered(
    mut section: Section,
    launch: &Spanned<DeValue>,
    index: usize,
    image: &Option<PathBuf>,
) -> Result<Entered, String> {
    let kernel = section.string("kernel", "its name")?;
    let kernel = kernel.ok_or_else(|| section.fail(launch, "kernel is missing"))?;
    section.context = format!("{}: ", title(index, &kernel));
    section.only(&OF_LAUNCH)?;
    let own = section.string("image", "a path")?.map(PathBuf::from);
    let image = own.or_else(|| image.clone());
    let image = image.ok_or_else(|| section.fail(launch, "neither it nor the file has an image"))?;
    let (groups, items) = (section.size("groups")?, section.size("items")?);
    if groups.is_some() == items.is_some() {
        return Err(section.fail(launch, "it needs a grid: groups or items, and not both"));
    }
    Ok(Entered {
        image,
        kernel,
        groups,
        items,
        group_size: section.size("group-size")?,
        args: section.list("args", "a number, true, false, the name of a buffer, or a text as --arg has it")?,
        dynamic_lds: section.number("dynamic-lds", 0)?.unwrap_or(0),
        repeat: section.number("repeat", 1)?.unwrap_or(1),
        set_global: section.pairs("set-global", "a number, or a text as --arg has it", true)?,
        dump_global: section.list("dump-global", "\"NAME[:TYPE]\"")?,
    })
}

/// How messages call a launch.
pub fn title(index: usize, kernel: &str) -> String {
    format!("launch {index}, kernel {kernel}")
}

/// A table of the file.
struct Section<'t, 'i> {
    text: &'t str,
    table: &'t DeTable<'i>,
    /// In front of messages.
    context: String,
}

impl<'t, 'i> Section<'t, 'i> {
    fn get(&self, key: &str) -> Option<&'t Spanned<DeValue<'i>>> {
        self.table.iter().find(|(name, _)| name.get_ref() == key).map(|(_, value)| value)
    }

    fn fail<T>(&self, at: &Spanned<T>, what: &str) -> String {
        format!("line {}: {}{what}", line(self.text, at.span().start), self.context)
    }

    /// Refuses other keys.
    fn only(&self, known: &[&str]) -> Result<(), String> {
        let other = self.table.iter().find(|(key, _)| !known.contains(&key.get_ref().as_ref()));
        other.map_or(Ok(()), |(key, _)| {
            Err(self.fail(key, &format!("unknown key '{}'; keys here are {}", key.get_ref(), known.join(", "))))
        })
    }

    fn string(&self, key: &str, form: &str) -> Result<Option<String>, String> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match value.get_ref() {
            DeValue::String(text) => Ok(Some(text.to_string())),
            other => Err(self.fail(value, &format!("{key} is {}: a text is needed, {form}", shown(other)))),
        }
    }

    fn number(&self, key: &str, least: u32) -> Result<Option<u32>, String> {
        self.get(key).map(|value| self.count(key, value, least)).transpose()
    }

    fn count(&self, key: &str, value: &Spanned<DeValue>, least: u32) -> Result<u32, String> {
        let count = whole(value.get_ref()).and_then(|value| u32::try_from(value).ok());
        count.filter(|count| *count >= least).ok_or_else(|| {
            let given = shown(value.get_ref());
            self.fail(value, &format!("{key} is {given}: a whole number from {least} to 4294967295 is needed"))
        })
    }

    /// One to three dimensions.
    fn size(&self, key: &str) -> Result<Option<[u32; 3]>, String> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let mut sizes = [1; 3];
        match value.get_ref() {
            DeValue::Array(list) if (1..=3).contains(&list.len()) => {
                for (size, value) in sizes.iter_mut().zip(list.iter()) {
                    *size = self.count(&format!("a number of {key}"), value, 1)?;
                }
            }
            DeValue::Array(list) => {
                return Err(self.fail(value, &format!("{key} has {} numbers, 1 to 3 are possible", list.len())));
            }
            _ => sizes[0] = self.count(key, value, 1)?,
        }
        Ok(Some(sizes))
    }

    fn list(&self, key: &str, form: &str) -> Result<Vec<String>, String> {
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        let DeValue::Array(list) = value.get_ref() else {
            return Err(
                self.fail(value, &format!("{key} is {}: a list is needed, [{form}, …]", shown(value.get_ref())))
            );
        };
        let list: &DeArray = list;
        list.iter()
            .enumerate()
            .map(|(index, value)| self.scalar(&format!("{key}[{index}]"), value, form, true))
            .collect()
    }

    fn pairs(&self, key: &str, form: &str, numbers: bool) -> Result<Vec<(String, String)>, String> {
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        let DeValue::Table(table) = value.get_ref() else {
            return Err(self.fail(value, &format!("{key} is {}: a table is needed", shown(value.get_ref()))));
        };
        table
            .iter()
            .map(|(name, value)| {
                let name = name.get_ref().to_string();
                let text = self.scalar(&format!("{key}: {name}"), value, form, numbers)?;
                Ok((name, text))
            })
            .collect()
    }

    /// A text, or a number, true or false as a text: whole numbers of any form in decimal, others as they are written.
    fn scalar(&self, what: &str, value: &Spanned<DeValue>, form: &str, numbers: bool) -> Result<String, String> {
        match value.get_ref() {
            DeValue::String(text) => Ok(text.to_string()),
            DeValue::Integer(integer) if numbers => match whole(value.get_ref()) {
                Some(value) => Ok(value.to_string()),
                None => Err(self.fail(value, &format!("{what} is {integer}, more than any type here holds"))),
            },
            DeValue::Float(float) if numbers => Ok(float.as_str().to_owned()),
            DeValue::Boolean(value) if numbers => Ok(value.to_string()),
            other => Err(self.fail(value, &format!("{what} is {}: write {form}", shown(other)))),
        }
    }
}

/// The number of the line that holds a byte.
fn line(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

/// An integer. TOML promises 64 bits with a sign; texts have more.
fn whole(value: &DeValue) -> Option<i128> {
    match value {
        DeValue::Integer(integer) => i128::from_str_radix(integer.as_str(), integer.radix()).ok(),
        _ => None,
    }
}

/// A value for messages.
fn shown(value: &DeValue) -> String {
    match value {
        DeValue::String(text) => format!("the text \"{text}\""),
        DeValue::Integer(integer) => integer.to_string(),
        DeValue::Float(float) => float.as_str().to_owned(),
        DeValue::Boolean(value) => value.to_string(),
        other => kind(other).to_owned(),
    }
}

fn kind(value: &DeValue) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"
version = 1
image = "a.co"
tolerance = "1e-3,2"
[buffers]
x = "f32[4]=iota"
[define]
symbol = "x"
place = 4096
[[launch]]
kernel = "k"
groups = [2, 3]
group-size = 64
args = ["x", 2.0, -1, "u32:5", 18446744073709551615, 0x10, 1.00000005960464477540]
dynamic-lds = 128
repeat = 3
set-global = { counter = 41, text = "hex:00" }
dump-global = ["counter:u32"]
[[launch]]
image = "b.co"
kernel = "l"
items = 100
[dump]
x = "-"
[expect]
x = "x.npy"
"#;

    #[test]
    fn a_whole_file() {
        let script = read(WHOLE).unwrap();
        let images: Vec<_> = script.launch.iter().map(|launch| launch.image.to_str().unwrap()).collect();
        assert_eq!(images, ["a.co", "b.co"]);
        let launch = &script.launch[0];
        let exact = "1.00000005960464477540";
        assert_eq!(launch.args, ["x", "2.0", "-1", "u32:5", "18446744073709551615", "16", exact]);
        assert_eq!((launch.groups, script.launch[1].items), (Some([2, 3, 1]), Some([100, 1, 1])));
        assert_eq!((launch.dynamic_lds, launch.repeat, script.launch[1].repeat), (128, 3, 1));
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(launch.set_global, [pair("counter", "41"), pair("text", "hex:00")]);
        assert_eq!(script.define, [pair("place", "4096"), pair("symbol", "x")]);
    }

    #[test]
    fn what_is_refused_is_told_with_its_line() {
        for (from, to, words) in [
            ("repeat = 3", "repeats = 3", "line 16: launch 0, kernel k: unknown key 'repeats'; keys here are image, "),
            ("[dump]", "[dumps]", "line 23: unknown key 'dumps'; keys here are version, "),
            ("dynamic-lds = 128", "dynamic-lds = -1", "line 15: launch 0, kernel k: dynamic-lds is -1: a whole number"),
            ("kernel = \"k\"\n", "", "line 10: launch 0: kernel is missing"),
            ("kernel = \"k\"", "kernel = 5", "line 11: launch 0: kernel is 5: a text is needed, its name"),
            ("version = 1", "", "version is missing: write version = 1"),
            ("version = 1", "version = -1", "line 2: version -1 of the form is not known"),
            ("version = 1", "version = \"1\"", "line 2: version the text \"1\" of the form is not known"),
            ("groups = [2, 3]", "groups = 1.5", "line 12: launch 0, kernel k: groups is 1.5: a whole number"),
            ("groups = [2, 3]", "groups = []", "groups has 0 numbers, 1 to 3 are possible"),
            ("groups = [2, 3]", "groups = [1, 1, 1, 1]", "groups has 4 numbers"),
            ("groups = [2, 3]", "groups = [0, 1]", "a number of groups is 0: a whole number from 1"),
            ("groups = [2, 3]", "groups = 4294967296", "groups is 4294967296: a whole number"),
            ("groups = [2, 3]", "groups = \"1\"", "groups is the text \"1\": a whole number"),
            ("groups = [2, 3]", "", "line 10: launch 0, kernel k: it needs a grid"),
            ("items = 100", "items = 100\ngroups = 1", "line 19: launch 1, kernel l: it needs a grid"),
            ("repeat = 3", "repeat = 0", "repeat is 0: a whole number from 1 to 4294967295"),
            (
                "-1, \"u32:5\"",
                "{}",
                "line 14: launch 0, kernel k: args[2] is a table: write a number, true, false, the name of",
            ),
            ("-1, \"u32:5\"", "[1]", "args[2] is a list: write a number"),
            ("-1, \"u32:5\"", "1979-05-27", "args[2] is a date or time: write a number"),
            ("x = \"f32[4]=iota\"", "x = 5", "line 6: buffers: x is 5: write TYPE[COUNT]=CONTENTS"),
            ("image = \"a.co\"\n", "", "launch 0, kernel k: neither it nor the file has an image"),
            ("\"1e-3,2\"", "\"much\"", "tolerance: 'much' is not a number"),
            ("\"counter:u32\"", "{}", "dump-global[0] is a table: write \"NAME[:TYPE]\""),
        ] {
            assert!(WHOLE.contains(from), "{from}");
            let error = read(&WHOLE.replacen(from, to, 1)).unwrap_err();
            assert!(error.contains(words), "{words}: {error}");
        }
        assert!(
            read("version = 1\n[launch]\nkernel = \"k\"").unwrap_err().contains("line 2: launch is a list of tables")
        );
        assert!(read("version = 1\nlaunch = []").unwrap_err().contains("no [[launch]]"));
        assert!(read("version = 1\nversion = 1").unwrap_err().contains("line 2"));
        assert!(read(&format!("x = {}", "[".repeat(100_000))).is_err());
    }
}

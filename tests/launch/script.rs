//! Several launches from a file.

use super::*;

/// A file in a folder of its own, and what `kfdrun launch --script` makes of it.
fn script(name: &str, text: &str, options: &[&str]) -> (Output, PathBuf) {
    let folder = std::env::temp_dir().join(format!("kfdrun-script-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let images = image("").to_str().expect("a path of text").to_owned();
    let file = folder.join("run.toml");
    std::fs::write(&file, text.replace("IMAGES/", &images)).expect("a file");
    let path = file.to_str().expect("a path of text");
    (kfdrun(&[&["launch", "--script", path], options].concat()), folder)
}

const PIPELINE: &str = r#"
version = 1
image = "IMAGES/arguments.gfx90a"
tolerance = "1e-6"

[buffers]
first = "f32[100]=iota"
second = "f32[100]"
third = "f32[100]"
words = "u32[3]"

[define]
elsewhere = "shared"

[[launch]]
kernel = "scale"
items = 100
group-size = 64
args = ["first", "second", 2.0, 100]

[[launch]]
image = "IMAGES/variables.gfx90a"
kernel = "count.kd"
groups = 1
group-size = [1]
args = ["words"]
set-global = { counter = 41, weights = "f32[]=1,2,3,4" }
dump-global = ["counter:u32"]
repeat = 2

[[launch]]
kernel = "scale"
groups = [2, 1]
group-size = [64, 1, 1]
args = ["second", "third", "f32:5", 100]

[dump]
words = "-"
third = "third.npy"

[expect]
third = "third.bin"
"#;

#[test]
fn launches_that_share_buffers() {
    let text = PIPELINE.replace("words = \"u32[3]\"", "words = \"u32[3]\"\nshared = \"u32[2]=fill:6\"");
    let folder = std::env::temp_dir().join(format!("kfdrun-script-pipeline-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let expected: Vec<u8> = (0..100).flat_map(|i| (10.0 * i as f32).to_le_bytes()).collect();
    std::fs::write(folder.join("third.bin"), &expected).expect("a file");
    let (output, folder) = script("pipeline", &text, &["-v"]);
    let (stdout, stderr) = said(&output, 0);
    assert_eq!(stdout, "counter: 43\nwords: 42 5 6\n");
    for words in ["scale: 2 x 1 x 1 work-groups", "count: 2 launches"] {
        assert!(stderr.contains(words), "'{words}' is missing in: {stderr}");
    }
    assert!(std::fs::read(folder.join("third.npy")).expect("a file beside the script").ends_with(&expected));
    std::fs::write(folder.join("third.bin"), vec![0; 400]).expect("a file");
    let (_, stderr) = said(&script("pipeline", &text, &[]).0, 1);
    assert!(stderr.contains("buffer third: 99 of 100 elements differ"), "{stderr}");
    std::fs::remove_dir_all(&folder).expect("the folder goes");
}

#[test]
fn mistakes_in_a_script_are_found_before_anything_runs() {
    let whole = PIPELINE
        .replace("words = \"u32[3]\"", "words = \"u32[3]\"\nshared = \"u32[2]\"")
        .replace("[expect]\nthird = \"third.bin\"\n", "");
    for (from, to, status, words) in [
        ("version = 1", "version = 2", 2, "version 2 of the form is not known"),
        ("repeat = 2", "again = 2", 2, "launch 1, kernel count.kd: unknown key 'again'; keys here are image, kernel"),
        ("repeat = 2", "repeat = 0", 2, "launch 1, kernel count.kd: repeat is 0"),
        (
            "\"f32:5\", 100",
            "\"u32:5\", 100",
            2,
            "launch 2, kernel scale: argument 2, 'u32:5': the metadata says by_value, 4 bytes at offset 16, float",
        ),
        ("\"f32:5\", 100", "\"f32:5\"", 2, "launch 2, kernel scale: the number of arguments is 3, it takes 4"),
        (
            "[\"words\"]",
            "[\"u32[3]\"]",
            2,
            "launch 1, kernel count.kd: argument 0, 'u32[3]': give it a name under [buffers]",
        ),
        ("[\"words\"]", "[\"wards\"]", 2, "or the name of a buffer"),
        (
            "groups = [2, 1]",
            "groups = [2, 1]\nitems = 4",
            2,
            "launch 2, kernel scale: it needs a grid: groups or items, and not both",
        ),
        ("groups = [2, 1]", "groups = nan", 2, "groups"),
        ("groups = [2, 1]", "groups = 0", 2, "line 34: launch 2, kernel scale: groups is 0: a whole number"),
        ("group-size = [64, 1, 1]", "group-size = 2048", 2, "launch 2, kernel scale: the work-group is 2048"),
        (
            "group-size = [64, 1, 1]",
            "group-size = 64\ndynamic-lds = 1000000",
            2,
            "launch 2, kernel scale: 0 bytes of LDS",
        ),
        ("count.kd", "cuont", 126, "launch 1, kernel cuont: "),
        ("[dump]\nwords", "[dump]\nwards", 2, "wards: no such buffer"),
        ("words = \"-\"", "words = \"third.npy\"", 2, "third.npy: another dump goes to that file already"),
        ("words = \"-\"", "words = \"none/x\"", 125, ": dump words: "),
        ("groups = [2, 1]", "items = [4294967295, 4294967295, 2]", 2, "launch 2, kernel scale: a grid of [4294967295"),
        (
            "elsewhere = \"shared\"",
            "elsewhere = \"u32\"",
            2,
            "'u32' is not a whole number of 64 bits; write an address",
        ),
        ("counter = 41", "counter = true", 2, "set-global counter: a bool has 1 byte, this has 4"),
        ("shared = \"u32[2]\"", "5 = \"u32[2]\"", 2, "that name reads as an argument"),
        ("elsewhere = \"shared\"", "counter = \"shared\"", 2, "the image defines it"),
        ("elsewhere = \"shared\"", "nowhere = \"shared\"", 2, "no image needs such a symbol"),
        ("tolerance = \"1e-6\"", "tolerance = \"much\"", 2, "'much' is not a number"),
        ("IMAGES/variables.gfx90a", "IMAGES/variables.gfx1100", 126, "gfx1100"),
        ("IMAGES/variables.gfx90a", "IMAGES/nothing", 127, "no such file"),
    ] {
        assert!(whole.contains(from), "{from}");
        let (output, folder) = script("mistakes", &whole.replace(from, to), &[]);
        let (stdout, stderr) = said(&output, status);
        assert!(stderr.contains(words), "'{words}' is missing in: {stderr}");
        assert_eq!(stdout, "", "{to}");
        std::fs::remove_dir_all(&folder).expect("the folder goes");
    }
    said(&kfdrun(&["launch", "--script", "x.toml", "--groups", "1"]), 2);
    said(&kfdrun(&["launch", "x.co"]), 2);
}

/// Another folder's file.
fn temporary(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("kfdrun-script-{name}-{}", std::process::id()))
}

fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for at in 0..bytes.len() - from.len() {
        if bytes[at..].starts_with(from) {
            bytes[at..at + to.len()].copy_from_slice(to);
        }
    }
    bytes
}

const TWO_IMAGES: &str = r#"
version = 1
[buffers]
words = "u32[3]"
shared = "u32[2]=fill:6"
mine = "u32[2]=fill:7"
[define]
elsewhere = "shared"
counter = "mine"
[[launch]]
image = "IMAGES/variables.gfx90a"
kernel = "count"
groups = 1
group-size = 1
args = ["words"]
[[launch]]
image = "OTHER"
kernel = "count"
groups = 1
group-size = 1
args = ["words"]
[dump]
words = "-"
mine = "-"
"#;

#[test]
fn symbols_are_bound_where_they_are_undefined() {
    // The second image needs what the first defines: there it is called counter, and its own counter otherwise.
    let file = std::fs::read(image("variables.gfx90a")).expect("an image");
    let file = replaced(&file, b"\0counter\0", b"\0countar\0");
    let other = temporary("other");
    std::fs::write(&other, replaced(&file, b"\0elsewhere\0", b"\0counter\0e\0")).expect("a file");
    let text = TWO_IMAGES.replace("OTHER", other.to_str().expect("a path of text"));
    let (output, folder) = script("symbols", &text, &[]);
    assert_eq!(said(&output, 0).0, "mine: 7 77\nwords: 5 0 7\n");
    // One that every image has itself is not for --define; one that nothing binds is told by its name.
    for (from, to, status, words) in [
        ("counter = \"mine\"", "weights = \"mine\"", 2, ": define weights: the image defines it"),
        ("counter = \"mine\"", "", 126, "needs the symbol 'counter' (relocation at 0x"),
        ("elsewhere = \"shared\"", "elsewhere = \"u32[2]\"\nshared = \"u32[2]\"", 2, "no image needs such a symbol"),
    ] {
        let (output, _) = script("symbols", &text.replace(from, to), &[]);
        let (stdout, stderr) = said(&output, status);
        assert!(stderr.contains(words) && stdout.is_empty(), "'{words}' is missing in: {stderr}");
    }
    // A buffer of the script's own under the symbol's name is another thing by that name.
    let twice = text
        .replace("elsewhere = \"shared\"", "elsewhere = \"u32[2]=7,8\"")
        .replace("shared = \"u32[2]=fill:6\"", "elsewhere = \"u32[2]=fill:6\"");
    let (_, stderr) = said(&script("symbols", &twice, &[]).0, 2);
    assert!(stderr.contains("elsewhere: there is a buffer of that name already"), "{stderr}");
    std::fs::remove_file(&other).expect("the file goes");
    std::fs::remove_dir_all(&folder).expect("the folder goes");
}

#[test]
fn two_paths_to_one_image() {
    let text = TWO_IMAGES.replace("OTHER", "IMAGES/../images/variables.gfx90a").replace("counter = \"mine\"", "");
    let (output, folder) = script("paths", &text, &[]);
    assert_eq!(said(&output, 0).0, "mine: 7 7\nwords: 6 0 6\n", "the second launch counts on");
    std::fs::remove_dir_all(&folder).expect("the folder goes");
}

const NUMBERS: &str = r#"
version = 1
image = "IMAGES/arguments.gfx1100"
[buffers]
out = "out:f64[11]"
[[launch]]
kernel = "scalars"
groups = 1
group-size = 64
args = ["out", -5, 200, -300, 60000, -70000, 4000000000, -5000000000, 18446744073709551615, 0.5, 1.5, 0.1]
"#;

#[test]
fn numbers_of_a_script_are_exact() {
    let (output, folder) = script("numbers", NUMBERS, &[]);
    let (stdout, _) = said(&output, 0);
    assert_eq!(stdout, "out: -5 200 -300 60000 -70000 4000000000 -5000000000 1.8446744073709552e19 0.5 1.5 0.1\n");
    let (_, stderr) = said(&script("numbers", &NUMBERS.replace("551615", "551616"), &[]).0, 2);
    assert!(stderr.contains("argument 8, '18446744073709551616'"), "{stderr}");
    std::fs::remove_dir_all(&folder).expect("the folder goes");
}

#[test]
fn a_file_that_cannot_be_written_hides_nothing() {
    let text = PIPELINE
        .replace("words = \"u32[3]\"", "words = \"u32[3]\"\nshared = \"u32[2]=fill:6\"")
        .replace("words = \"-\"", "first = \"/dev/full\"\nwords = \"-\"")
        .replace("third = \"third.bin\"", "third = \"fill:-1\"");
    let (output, folder) = script("full", &text, &[]);
    let (stdout, stderr) = said(&output, 125);
    assert!(stdout.contains("words: 42 5 6\n"), "{stdout}");
    for words in ["/dev/full: No space left", "buffer third: 100 of 100 elements differ"] {
        assert!(stderr.contains(words), "'{words}' is missing in: {stderr}");
    }
    assert!(folder.join("third.npy").exists());
    // What is there stays until there is something new; what is not is not left behind.
    std::fs::write(folder.join("old.bin"), b"old").expect("a file");
    let wrong = text
        .replace("/dev/full", "old.bin")
        .replace("third = \"third.npy\"", "third = \"new.bin\"")
        .replace("group-size = [64, 1, 1]", "group-size = 2048");
    said(&script("full", &wrong, &[]).0, 2);
    assert_eq!(std::fs::read(folder.join("old.bin")).expect("the file"), b"old");
    assert!(!folder.join("new.bin").exists());
    let (_, stderr) = said(&script("full", &text.replace("/dev/full", "."), &[]).0, 2);
    assert!(stderr.contains("is a directory, a file is needed"), "{stderr}");
    std::fs::remove_dir_all(&folder).expect("the folder goes");
}

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
        ("repeat = 2", "again = 2", 2, "unknown field `again`"),
        ("repeat = 2", "repeat = 0", 2, "launch 1: repeat is 0"),
        (
            "\"f32:5\", 100",
            "\"u32:5\", 100",
            2,
            "launch 2: argument 2, 'u32:5': the metadata says by_value, 4 bytes at offset 16, float",
        ),
        ("\"f32:5\", 100", "\"f32:5\"", 2, "launch 2: kernel scale: the number of arguments is 3, it takes 4"),
        ("[\"words\"]", "[\"u32[3]\"]", 2, "launch 1: argument 0, 'u32[3]': give it a name under [buffers]"),
        ("[\"words\"]", "[\"wards\"]", 2, "or the name of a buffer"),
        (
            "groups = [2, 1]",
            "groups = [2, 1]\nitems = 4",
            2,
            "launch 2: it needs a grid: groups or items, and not both",
        ),
        ("groups = [2, 1]", "groups = nan", 2, "groups"),
        ("groups = [2, 1]", "groups = 0", 2, "launch 2: groups: [0] is not a size"),
        ("group-size = [64, 1, 1]", "group-size = 2048", 2, "2048"),
        ("group-size = [64, 1, 1]", "group-size = 64\ndynamic-lds = 1000000", 2, "LDS"),
        ("count.kd", "cuont", 126, "launch 1: "),
        ("[dump]\nwords", "[dump]\nwards", 2, "wards: no such buffer"),
        ("shared = \"u32[2]\"", "5 = \"u32[2]\"", 2, "that name reads as an argument"),
        ("elsewhere = \"shared\"", "counter = \"shared\"", 2, "the image defines it"),
        ("elsewhere = \"shared\"", "nowhere = \"shared\"", 2, "does not need such a symbol"),
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

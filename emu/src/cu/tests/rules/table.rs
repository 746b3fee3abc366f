//! The list of rules in `docs/isa-rules.md`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Names of the test functions in a folder's sources.
fn tests_in(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            tests_in(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            for test in text.split("#[test]").skip(1) {
                let name = test.trim_start().strip_prefix("fn ").and_then(|rest| rest.split('(').next());
                names.extend(name.map(str::to_owned));
            }
        }
    }
}

#[test]
fn each_rule_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut known = BTreeSet::new();
    tests_in(&root.join("src"), &mut known);
    let list = fs::read_to_string(root.join("../docs/isa-rules.md")).unwrap();
    let rows: Vec<&str> = list.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| rule")).collect();
    assert!(rows.len() >= 70, "{} rules", rows.len());
    for row in rows {
        let tests: Vec<&str> = row.rsplit('|').nth(1).unwrap().split('`').skip(1).step_by(2).collect();
        assert!(!tests.is_empty(), "no test: {row}");
        for test in tests {
            assert!(known.contains(test), "there is no test {test}: {row}");
        }
    }
}

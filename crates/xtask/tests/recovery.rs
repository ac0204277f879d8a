//! `docs/recovery.md` promises something for each bad day, and names the tests that hold it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use xtask::workspace::root;

/// Names of functions in a folder of sources and below.
fn functions(folder: &Path, names: &mut BTreeSet<String>) {
    let entries = fs::read_dir(folder).into_iter().flatten();
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            functions(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("a source file");
            let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix("fn "));
            names.extend(lines.filter_map(|line| Some(line.split_once('(')?.0.to_owned())));
        }
    }
}

#[test]
fn each_condition_has_a_test_and_each_test_exists() {
    let root = root();
    let mut known = BTreeSet::new();
    functions(&root.join("crates"), &mut known);
    let text = fs::read_to_string(root.join("docs/recovery.md")).expect("the document");
    let mut rows = 0;
    let conditions =
        text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| ---"));
    for row in conditions {
        let cells: Vec<_> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [condition, .., tests] = cells[..] else { continue };
        if cells.len() != 5 || tests == "tests" {
            continue;
        }
        rows += 1;
        let named: Vec<_> = tests.split(", ").map(|name| name.trim_matches('`')).collect();
        for name in named {
            assert!(known.contains(name), "{condition}: there is no test `{name}`");
        }
    }
    assert!(rows > 30, "only {rows} rows were read");
}

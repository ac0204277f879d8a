//! `docs/recovery.md` promises something for each bad day and each state, and names the tests that hold it.

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

/// The variants of an enum of the interface, as they are on the wire.
fn states(source: &str, name: &str) -> Vec<String> {
    let (_, body) = source.split_once(&format!("pub enum {name} {{")).expect("the enum");
    let (body, _) = body.split_once("\n}").expect("its end");
    let variants = body.lines().filter_map(|line| line.trim().strip_suffix(','));
    let snake_case = |variant: &str| {
        let mut word = String::new();
        for c in variant.chars() {
            if c.is_uppercase() && !word.is_empty() {
                word.push('_');
            }
            word.extend(c.to_lowercase());
        }
        word
    };
    variants.map(snake_case).collect()
}

#[test]
fn each_state_has_a_way_out() {
    let root = root();
    let source = fs::read_to_string(root.join("crates/acpd-api/src/info.rs")).expect("the states");
    let text = fs::read_to_string(root.join("docs/recovery.md")).expect("the document");
    for (name, header) in
        [("AgentState", "| state of the agent |"), ("SessionState", "| state of the session |")]
    {
        let (_, table) = text.split_once(header).expect("the table");
        let (table, _) = table.split_once("\n\n").expect("its end");
        let first_cells = table.lines().skip(2).filter_map(|row| row.split('|').nth(1));
        let told: String = first_cells.collect();
        let states = states(&source, name);
        assert!(states.len() > 5, "{states:?}");
        for state in states {
            assert!(told.contains(&format!("`{state}`")), "{name} `{state}` is in no row");
        }
    }
}

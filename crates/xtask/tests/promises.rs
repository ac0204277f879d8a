//! `docs/recovery.md` promises something for each failure and each state, `docs/security.md` for each attack.
//! `promises.txt` has the tests that hold each promise.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use xtask::workspace::root;

/// The documents, and how many promises each has at least.
const DOCUMENTS: [(&str, usize); 2] = [("recovery.md", 60), ("security.md", 30)];

fn document(name: &str) -> String {
    fs::read_to_string(root().join("docs").join(name)).expect("the document")
}

/// Names of all functions of our crates.
fn known() -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    functions(&root().join("crates"), &mut known);
    known
}

/// Names of functions in a folder of sources and below, and of tests of the page.
fn functions(folder: &Path, names: &mut BTreeSet<String>) {
    let entries = fs::read_dir(folder).into_iter().flatten();
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() {
            if name != "node_modules" {
                functions(&path, names);
            }
        } else if name.to_string_lossy().ends_with(".test.js") {
            let text = fs::read_to_string(&path).expect("a test of the page");
            let tests = text.lines().filter_map(|line| {
                line.strip_prefix("test('").or_else(|| line.strip_prefix("scene('"))
            });
            names.extend(tests.filter_map(|test| Some(test.split_once('\'')?.0.to_owned())));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("a source file");
            let lines = text.lines().map(|line| line.trim_start().trim_start_matches("async "));
            let lines = lines.filter_map(|line| line.strip_prefix("fn "));
            names.extend(lines.filter_map(|line| Some(line.split_once('(')?.0.to_owned())));
        }
    }
}

/// First cells of the headers of tables with promises.
const HEADERS: [&str; 5] =
    ["failure", "promise", "state of the agent", "state of the session", "state of the daemon"];

/// First cells of the rows of tables with promises.
fn promises(text: &str) -> Vec<&str> {
    let mut rows = Vec::new();
    let mut in_table = false;
    for line in text.lines() {
        let Some((first, _)) = line.strip_prefix("| ").and_then(|row| row.split_once(" | ")) else {
            in_table = false;
            continue;
        };
        if HEADERS.contains(&first) {
            in_table = true;
        } else if in_table && first != "---" {
            rows.push(first);
        }
    }
    rows
}

/// Promises of a document with the names of their tests, by `promises.txt`.
fn tests_of(document: &str) -> Vec<(&'static str, Vec<&'static str>)> {
    let text = include_str!("promises.txt");
    let (_, text) = text.split_once(&format!("\n# docs/{document}\n")).expect("the document");
    let mut promises: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in text.lines().take_while(|line| !line.starts_with("# ")) {
        match (line.strip_prefix("    "), promises.last_mut()) {
            (Some(test), Some((_, tests))) => tests.push(test),
            _ => promises.push((line, Vec::new())),
        }
    }
    promises
}

#[test]
fn each_promise_has_a_test_and_each_test_exists() {
    let known = known();
    for (name, least) in DOCUMENTS {
        let text = document(name);
        let promises = promises(&text);
        assert!(promises.len() >= least, "{name}: only {} rows were read", promises.len());
        let tested = tests_of(name);
        let with_tests: Vec<_> = tested.iter().map(|(promise, _)| *promise).collect();
        assert_eq!(promises, with_tests, "rows of {name}, and of promises.txt");
        for (promise, tests) in tested {
            assert!(!tests.is_empty(), "{name}, {promise}: no test");
            for test in tests {
                assert!(known.contains(test), "{name}, {promise}: no test `{test}`");
            }
        }
    }
}

/// A filter with the old name of a test leaves out nothing.
#[test]
fn the_ci_leaves_out_tests_that_exist() {
    let script = fs::read_to_string(root().join(".ci/run")).expect("the script");
    let filters = script.split("test(").skip(1);
    let names: Vec<_> = filters.filter_map(|filter| Some(filter.split_once(')')?.0)).collect();
    assert!(!names.is_empty(), "no filter was found");
    let known = known();
    let unknown: Vec<_> = names.iter().filter(|name| !known.contains(**name)).collect();
    assert!(unknown.is_empty(), "no tests {unknown:?}");
}

/// The numbers that the name of a test begins with: `m5` and `l3` of `m5_l3_…`.
fn numbers(test: &str) -> impl Iterator<Item = &str> {
    let is_number = |word: &&str| {
        let digits = word.strip_prefix(['h', 'm', 'l']).unwrap_or_default();
        !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit())
    };
    test.split('_').take_while(is_number)
}

/// Tests whose names begin with a letter and a number hold a former flaw.
#[test]
fn each_flaw_that_was_mended_is_part_of_a_promise() {
    let tests = tests_of("security.md").into_iter().flat_map(|(_, tests)| tests);
    let promised: BTreeSet<_> = tests.flat_map(numbers).collect();
    let known = known();
    let mended: BTreeSet<_> = known.iter().flat_map(|name| numbers(name)).collect();
    assert!(mended.len() > 20, "{mended:?}");
    let missing: Vec<_> = mended.difference(&promised).collect();
    assert!(missing.is_empty(), "promises.txt names no test of {missing:?}");
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
    let text = document("recovery.md");
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

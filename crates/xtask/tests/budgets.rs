//! The size of the repository, held by a test: no part has more lines than `budgets.txt` gives it.
//!
//! After lines were deleted, `UPDATE_BUDGETS=1 cargo test -p xtask --test budgets` lowers the budgets. Raising
//! one is a commit of its own, by hand, with its reason.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use xtask::workspace;

const FILE: &str = "crates/xtask/tests/budgets.txt";
/// Scripts and pages, by the ends of their names.
const SCRIPTS: [&str; 9] = ["css", "html", "js", "mjs", "ps1", "py", "rb", "sh", "ts"];
/// Code of others that is kept here.
const FOREIGN: &str = "crates/acpd-web/page/lib/";

/// Attributes of items that only tests have.
const BEGINNINGS: [&str; 3] = ["#[cfg(test)]", "#[cfg(all(test", "#[cfg(any(test"];

/// Lines of a part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Lines {
    code: usize,
    /// With comments and blank lines.
    all: usize,
}

impl Lines {
    fn add(&mut self, line: &str, comment: &str) {
        let line = line.trim();
        self.all += 1;
        self.code += usize::from(!line.is_empty() && !line.starts_with(comment));
    }
}

/// Crates without their tests, all tests, the page, other scripts.
type Parts = BTreeMap<String, Lines>;

fn is_test_path(path: &str) -> bool {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let is_tests = |folder: &str| folder == "tests" || folder == "benches" || folder == "fuzz";
    let is_test = name.ends_with("_tests.rs") || matches!(name, "tests.rs" | "testing.rs");
    is_test || folders.split('/').any(is_tests)
}

/// Counts a Rust file that `cargo fmt` has formatted: an item of tests ends at its own indentation.
fn count_rust(text: &str, is_test: bool, code: &mut Lines, tests: &mut Lines) {
    let mut item: Option<&str> = None;
    for line in text.lines() {
        let indent = &line[..line.len() - line.trim_start().len()];
        let begins = BEGINNINGS.iter().any(|cfg| line.trim_start().starts_with(cfg));
        if is_test || item.is_some() || begins {
            tests.add(line, "//");
        } else {
            code.add(line, "//");
        }
        if begins {
            item = Some(indent);
        } else if item == Some(indent) {
            let is_end = line.ends_with('}') || line.ends_with("};") || line.ends_with(';');
            item = item.filter(|_| !is_end);
        }
    }
}

fn part_of(path: &str) -> String {
    let crate_name = path.strip_prefix("crates/").and_then(|path| path.split_once('/'));
    crate_name.map_or("elsewhere", |(name, _)| name).to_owned()
}

/// Counts the files that git knows, so nothing is counted that is not kept.
fn count(root: &Path) -> Parts {
    let output = Command::new("git").arg("ls-files").current_dir(root).output().unwrap();
    assert!(output.status.success(), "`git ls-files` failed");
    let (mut parts, mut tests) = (Parts::new(), Lines::default());
    for path in String::from_utf8(output.stdout).unwrap().lines() {
        let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
        let is_script = SCRIPTS.contains(&extension) || path == ".ci/run";
        if path.starts_with(FOREIGN) || (extension != "rs" && !is_script) {
            continue;
        }
        let Ok(text) = fs::read_to_string(root.join(path)) else { continue };
        if extension == "rs" {
            let code = parts.entry(part_of(path)).or_default();
            count_rust(&text, is_test_path(path), code, &mut tests);
            continue;
        }
        let is_test = is_test_path(path) || path.contains("/page-tests/");
        let part = match (is_test, path.contains("/page/")) {
            (true, _) => "test-scripts",
            (false, true) => "page",
            (false, false) => "scripts",
        };
        let comment = if matches!(extension, "js" | "mjs" | "ts") { "//" } else { "#" };
        let lines = parts.entry(part.to_owned()).or_default();
        text.lines().for_each(|line| lines.add(line, comment));
    }
    parts.insert("tests".to_owned(), tests);
    parts
}

fn read_budgets(text: &str) -> Parts {
    let rows = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    rows.map(|row| {
        let fields: Vec<&str> = row.split_whitespace().collect();
        let [part, code, all] = fields[..] else { panic!("`{row}` is no budget") };
        (part.to_owned(), Lines { code: code.parse().unwrap(), all: all.parse().unwrap() })
    })
    .collect()
}

/// The file with budgets that are no larger than what is there, in steps of ten lines.
fn lowered(text: &str, counted: &Parts) -> String {
    let mut budgets = read_budgets(text);
    let mut lowered: String = text.lines().take_while(|line| line.starts_with('#')).fold(
        String::new(),
        |mut file, line| {
            writeln!(file, "{line}").unwrap();
            file
        },
    );
    for (part, lines) in counted {
        let budget =
            budgets.entry(part.clone()).or_insert(Lines { code: usize::MAX, all: usize::MAX });
        budget.code = budget.code.min(lines.code.next_multiple_of(10));
        budget.all = budget.all.min(lines.all.next_multiple_of(10));
    }
    budgets.retain(|part, _| counted.contains_key(part));
    for (part, Lines { code, all }) in budgets {
        writeln!(lowered, "{part:<16}{code:>8}{all:>8}").unwrap();
    }
    lowered
}

#[test]
fn no_part_is_larger_than_its_budget() {
    let root = workspace::root();
    let file = root.join(FILE);
    let counted = count(&root);
    let is_counted = |part: &str| counted.get(part).is_some_and(|lines| lines.code > 5_000);
    assert!(is_counted("acpd-core") && is_counted("tests"), "{counted:?}: lines are not found");
    let mut text = fs::read_to_string(&file).unwrap();
    if std::env::var_os("UPDATE_BUDGETS").is_some() {
        text = lowered(&text, &counted);
        fs::write(&file, &text).unwrap();
    }
    let budgets = read_budgets(&text);
    let mut larger = String::new();
    for (part, lines) in &counted {
        let budget = budgets.get(part).copied().unwrap_or_default();
        if lines.code > budget.code || lines.all > budget.all {
            writeln!(larger, "{part}: {lines:?}, its budget is {budget:?}").unwrap();
        }
    }
    assert!(
        larger.is_empty(),
        "{larger}delete as much elsewhere in it, or raise it in {FILE} in a commit of its own"
    );
}

#[test]
fn tests_are_counted_apart() {
    let text = "//! Doc.\n\nfn one() {}\n\n#[cfg(test)]\nmod tests;\n\nmod two {\n    #[cfg(test)]\n    fn three() {\n        four();\n    }\n}\n";
    let (mut code, mut tests) = Default::default();
    count_rust(text, false, &mut code, &mut tests);
    assert_eq!((code, tests), (Lines { code: 3, all: 7 }, Lines { code: 6, all: 6 }));
    count_rust("// One.\nfn one() {}\n", true, &mut code, &mut tests);
    assert_eq!(tests, Lines { code: 7, all: 8 });
}

#[test]
fn budgets_only_fall_by_themselves() {
    let counted = read_budgets("one 5 21\nnew 1 1\n");
    let file = "# Lines.\none 30 30\ngone 1 1\n";
    assert_eq!(read_budgets(&lowered(file, &counted)), read_budgets("one 10 30\nnew 10 10\n"));
    let counted = read_budgets("one 50 60\n");
    assert_eq!(read_budgets(&lowered(file, &counted)), read_budgets("one 30 30\n"));
}

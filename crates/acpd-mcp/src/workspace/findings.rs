//! Findings of compilers and linters: as SARIF, as cargo's JSON, or as `file:line:column: message`.

use std::path::{Component, Path, PathBuf};

use serde::Serialize;
use serde_json::{Value, json};

use super::folders::Folders;
use crate::paths::of_uri;
use crate::report::{line, row};

/// Most findings of one command.
pub(super) const MOST: usize = 10_000;

/// The worst comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Severity {
    Error,
    Warning,
    Note,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Finding {
    pub(super) severity: Severity,
    pub(super) path: PathBuf,
    pub(super) line: u64,
    pub(super) column: Option<u64>,
    pub(super) code: Option<String>,
    pub(super) message: String,
}

impl Finding {
    pub(super) fn shown(&self, folders: &Folders) -> Value {
        row(json!({
            "severity": self.severity, "file": folders.shown(&self.path), "line": self.line,
            "column": self.column, "code": self.code, "message": self.message,
        }))
    }
}

impl Severity {
    /// Reads the word of a tool; unknown words count as the lowest severity.
    pub(super) fn of(word: &str) -> Severity {
        match word {
            "error" | "error: internal compiler error" => Severity::Error,
            "warning" => Severity::Warning,
            _ => Severity::Note,
        }
    }
}

/// Reads the findings in the output of a command. Relative paths begin in `cwd`.
pub(super) fn findings(output: &str, cwd: &Path) -> Vec<Finding> {
    let document: Option<Value> = serde_json::from_str(output.trim()).ok();
    let all: Vec<Finding> = match document.as_ref().and_then(|all| all["runs"].as_array()) {
        Some(runs) => {
            let results = runs.iter().filter_map(|run| run["results"].as_array()).flatten();
            results.filter_map(sarif).collect()
        }
        None => output.lines().filter_map(|line| cargo(line).or_else(|| plain(line))).collect(),
    };
    let placed = all.into_iter().take(MOST);
    placed.map(|one| Finding { path: normalized(&cwd.join(&one.path)), ..one }).collect()
}

/// A path without `.` and `..`; it need not exist.
fn normalized(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

pub(super) fn message(text: &str) -> String {
    line(&text.into())
}

/// A line of `cargo --message-format json`.
fn cargo(text: &str) -> Option<Finding> {
    if !text.starts_with('{') {
        return None;
    }
    let said: Value = serde_json::from_str::<Value>(text).ok()?["message"].take();
    let span = said["spans"].as_array()?.iter().find(|span| span["is_primary"] == true)?;
    Some(Finding {
        severity: Severity::of(said["level"].as_str()?),
        path: span["file_name"].as_str()?.into(),
        line: span["line_start"].as_u64()?,
        column: span["column_start"].as_u64(),
        code: said["code"]["code"].as_str().map(message),
        message: message(said["message"].as_str()?),
    })
}

/// A result of SARIF 2.1.
fn sarif(result: &Value) -> Option<Finding> {
    let locations = result["locations"].as_array()?.iter();
    let place = locations.map(|one| &one["physicalLocation"]).find(|place| place.is_object())?;
    let region = &place["region"];
    Some(Finding {
        // The default of the format.
        severity: Severity::of(result["level"].as_str().unwrap_or("warning")),
        path: of_uri(place["artifactLocation"]["uri"].as_str()?)?,
        line: region["startLine"].as_u64().unwrap_or(1),
        column: region["startColumn"].as_u64(),
        code: result["ruleId"].as_str().map(message),
        message: message(result["message"]["text"].as_str().unwrap_or_default()),
    })
}

/// `path:line:column: message`, `path:line: message`, `path:line:column - message` or
/// `path(line,column): message`.
fn plain(text: &str) -> Option<Finding> {
    let (path, line, column, rest) = place(text)?;
    let rest = rest.trim_start_matches([':', '-', ' ']);
    let rest = rest.strip_prefix("fatal ").unwrap_or(rest);
    let (word, said) = rest.split_once(':').unwrap_or((rest, ""));
    // `error[E0425]`, `error TS2322`, `warning`.
    let end = word.find(['[', ' ']).unwrap_or(word.len());
    let (level, code) = word.split_at(end);
    let is_level =
        ["error", "warning", "note", "info", "help"].contains(&level) && !said.is_empty();
    let code = code.trim_matches(['[', ']', ' ']);
    let (severity, code, said) = if is_level {
        (Severity::of(level), (!code.is_empty()).then(|| message(code)), said)
    } else {
        // A linter with one severity only.
        (Severity::Warning, None, rest)
    };
    let said = message(said.trim());
    let path = PathBuf::from(path);
    (!said.is_empty()).then_some(Finding { severity, path, line, column, code, message: said })
}

/// Splits path, line and column from the beginning of a text.
fn place(text: &str) -> Option<(&str, u64, Option<u64>, &str)> {
    let opens = text.char_indices().filter(|(_, c)| matches!(c, ':' | '('));
    for (at, open) in opens {
        let (path, rest) = (&text[..at], &text[at + 1..]);
        let Some((line, rest)) = number(rest).filter(|_| is_path(path)) else { continue };
        let comma = if open == '(' { ',' } else { ':' };
        let (column, rest) = match rest.strip_prefix(comma).and_then(number) {
            Some((column, rest)) => (Some(column), rest),
            None => (None, rest),
        };
        let rest = if open == '(' { rest.strip_prefix(')')? } else { rest };
        return rest.starts_with([':', ' ']).then_some((path, line, column, rest));
    }
    None
}

fn number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// A time of day looks like a place, too.
fn is_path(text: &str) -> bool {
    let is_plain = !text.is_empty() && !text.contains(['"', '\'', '`']) && text.trim() == text;
    is_plain && text.contains(|c: char| c.is_alphabetic())
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// A path as compilers print it.
    fn path() -> impl Strategy<Value = String> {
        let part = "[a-z_.][a-z0-9_.-]{0,8}";
        let root = prop_oneof![Just(""), Just("/"), Just("./"), Just("../")];
        (root, vec(part, 1..4), "[a-z]{1,3}")
            .prop_map(|(root, parts, end)| format!("{root}{}.{end}", parts.join("/")))
    }

    /// A folder, on the drive of the test where there are drives.
    fn folder() -> PathBuf {
        std::path::absolute("/w").unwrap()
    }

    /// A path with `/` between its names, without its drive.
    fn shown(path: &Path) -> String {
        let names = path.strip_prefix(std::path::absolute("/").unwrap()).unwrap();
        format!("/{}", names.display()).replace(std::path::MAIN_SEPARATOR, "/")
    }

    proptest! {
        #[test]
        fn sarif_and_cargos_json_are_read_whatever_their_texts_are(
            // Without what parts of a path are there, and here or there.
            name in "[^/\\\\:\\x00]{1,12}", at in 1_u64..100_000, column in 1_u64..500, said in ".{0,600}",
        ) {
            prop_assume!(name != "." && name != "..");
            let place = json!({"physicalLocation": {
                "artifactLocation": {"uri": acp_wire::acp::file_uri(folder().join(&name).to_str().unwrap())},
                "region": {"startLine": at, "startColumn": column}}});
            let sarif = json!({"version": "2.1.0", "runs": [{"results": [
                {"level": "note", "message": {"text": said}, "locations": [place]}]}]});
            let span = json!({"file_name": name, "line_start": at, "column_start": column,
                "is_primary": true});
            let cargo = json!({"message": {"level": "note", "message": said, "code": null,
                "spans": [span]}});
            for output in [sarif.to_string(), cargo.to_string()] {
                let found = findings(&output, &folder());
                prop_assert_eq!(found.len(), 1, "{}", output);
                let one = &found[0];
                prop_assert_eq!(&one.path, &folder().join(&name));
                prop_assert_eq!((one.line, one.column), (at, Some(column)));
                prop_assert_eq!(&one.message, &message(&said));
            }
        }

        #[test]
        fn no_output_is_too_much_and_nothing_of_it_is_more_than_a_line(
            lines in vec(prop_oneof![
                ".{0,80}", "[a-z./(),:0-9 \\-]{0,40}", "\\{.{0,60}\\}",
                path().prop_map(|path| format!("{path}:1:1: error: \u{1b}[31mx\u{202e}")),
            ], 0..30),
        ) {
            for one in findings(&lines.join("\n"), &folder()) {
                prop_assert!(!one.message.is_empty());
                prop_assert!(!one.message.chars().any(char::is_control), "{:?}", one.message);
                prop_assert!(one.message.chars().count() <= 401);
                prop_assert!(one.path.is_absolute());
                prop_assert!(!one.path.components().any(|part| part == Component::ParentDir));
            }
        }
    }

    #[test]
    fn so_many_findings_are_read_and_no_more() {
        let output = "a.rs:1:1: error: x\n".repeat(MOST + 1);
        assert_eq!(findings(&output, &folder()).len(), MOST);
    }

    fn read(output: &str) -> Vec<String> {
        let show = |one: Finding| {
            let column = one.column.map(|column| format!(":{column}")).unwrap_or_default();
            let code = one.code.map(|code| format!(" {code}")).unwrap_or_default();
            let word = json!(one.severity);
            let (path, word) = (shown(&one.path), word.as_str().unwrap());
            format!("{path}:{}{column} {word}{code} {}", one.line, one.message)
        };
        findings(output, &folder()).into_iter().map(show).collect()
    }

    #[test]
    fn what_compilers_and_linters_say_of_a_line_is_read() {
        for (output, expected) in [
            (
                "src/a.rs:3:5: error[E0425]: cannot find `x`",
                "/w/src/a.rs:3:5 error E0425 cannot find `x`",
            ),
            ("src/a.rs:3:5: warning: unused: `x`", "/w/src/a.rs:3:5 warning unused: `x`"),
            ("src/a.ts(1,7): error TS2322: no string", "/w/src/a.ts:1:7 error TS2322 no string"),
            ("src/a.ts:1:7 - error TS2322: no string", "/w/src/a.ts:1:7 error TS2322 no string"),
            ("a.py:1:8: F401 [*] `os` imported", "/w/a.py:1:8 warning F401 [*] `os` imported"),
            ("./a b.go:7: missing return", "/w/a b.go:7 warning missing return"),
            ("/other/a.c:1:2: fatal error: x", "/other/a.c:1:2 error x"),
            ("../a.c:1:2: note: x", "/a.c:1:2 note x"),
        ] {
            assert_eq!(read(output), [expected], "{output}");
        }
        for nothing in [
            "",
            "12:30:01: started",
            "   Compiling acpd v0.1.0",
            "error: could not compile `a` (lib) due to 2 previous errors",
            "Found 2 errors.",
            "http://example.com:80/x",
            "a.rs:3:",
            "{\"reason\":\"build-finished\",\"success\":false}",
        ] {
            assert_eq!(read(nothing), [""; 0], "{nothing}");
        }
    }
}

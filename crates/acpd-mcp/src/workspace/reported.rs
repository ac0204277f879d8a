//! Findings of an editor, in the shapes of LSP's diagnostics, or as a compiler prints them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::checks::{show, tail};
use super::findings::{Finding, MOST, Severity, findings, message};
use super::folders::Folders;
use crate::lent::{Source, text_of};
use crate::paths::of_uri;

/// Levels of nested lists to read.
const DEEP: usize = 4;

/// The answer of an editor as an agent gets it: findings in the folders, and their source.
pub(super) fn reported(
    folders: &Folders,
    only: Option<&Path>,
    source: &Source,
    said: &Value,
) -> Value {
    let text = text_of(said);
    let from_text = serde_json::from_str(&text).ok();
    let structured = said.get("structuredContent").filter(|value| !value.is_null());
    let mut found = Vec::new();
    let is_read = structured
        .or(from_text.as_ref())
        .is_some_and(|value| collect(value, None, DEEP, &mut found));
    let is_part_unread = !is_read && !found.is_empty();
    if !is_read && found.is_empty() {
        found = findings(&text, folders.cwd());
    }
    let mut editor = source.shown();
    if is_part_unread || (found.is_empty() && !is_read) {
        // The whole answer: an unreadable answer is not an answer without findings.
        let said =
            if text.trim().is_empty() { structured.unwrap_or(said).to_string() } else { text };
        editor["output"] = json!(tail(&said));
    }
    let real = |path: PathBuf| path.canonicalize().unwrap_or(path);
    let placed =
        found.into_iter().map(|one| Finding { path: real(folders.named(&one.path)), ..one });
    let inside = placed.filter(|one| folders.contain(&one.path)).collect();
    let mut answer = show(folders, only, inside);
    answer["editor"] = editor;
    answer
}

/// Takes diagnostics out of lists like LSP's, with the file in them or around. Returns whether all
/// of the value could be read.
fn collect(value: &Value, file: Option<&str>, deep: usize, found: &mut Vec<Finding>) -> bool {
    let all = |list: &[Value], file: Option<&str>, found: &mut Vec<Finding>| {
        let deeper = deep.checked_sub(1);
        // All are read, also those behind one that cannot be.
        let read =
            list.iter().filter(|one| deeper.is_some_and(|deep| collect(one, file, deep, found)));
        read.count() == list.len()
    };
    match value {
        Value::Array(list) => all(list, file, found),
        Value::Object(object) => {
            let text = |name: &&str| object.get(*name).and_then(Value::as_str);
            let file =
                ["uri", "path", "filePath", "file_path", "file"].iter().find_map(text).or(file);
            let lists = ["diagnostics", "problems", "errors", "items"];
            let list = lists.iter().find_map(|name| object.get(*name)?.as_array());
            match (list, file.zip(object.get("message").and_then(Value::as_str))) {
                (Some(list), _) => all(list, file, found),
                (None, Some((file, said))) => {
                    let one = diagnostic(value, file, said);
                    let is_read = one.is_some();
                    if found.len() < MOST {
                        found.extend(one);
                    }
                    is_read
                }
                _ => false,
            }
        }
        _ => false,
    }
}

fn diagnostic(value: &Value, file: &str, said: &str) -> Option<Finding> {
    let path = if file.starts_with("file://") { of_uri(file)? } else { PathBuf::from(file) };
    let number = |value: &Value| value.as_u64();
    // LSP counts from 0; a value without a range counts from 1.
    let start = &value["range"]["start"];
    let line = number(&start["line"]).map(|line| line.saturating_add(1)).or(number(&value["line"]));
    let column = number(&start["character"]).map(|column| column.saturating_add(1));
    let code = match &value["code"] {
        Value::Object(code) => code.get("value").cloned().unwrap_or_default(),
        code => code.clone(),
    };
    let code = code.as_str().map(str::to_owned).or_else(|| Some(number(&code)?.to_string()));
    Some(Finding {
        severity: severity(&value["severity"]),
        path,
        line: line.unwrap_or(1),
        column: column.or(number(&value["column"])),
        code: code.map(|code| message(&code)),
        message: message(said),
    })
}

fn severity(value: &Value) -> Severity {
    match (value.as_u64(), value.as_str()) {
        (Some(1), _) => Severity::Error,
        (Some(2), _) => Severity::Warning,
        (_, Some(word)) => Severity::of(&word.to_ascii_lowercase()),
        _ => Severity::Note,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use acp_wire::acp::file_uri;

    use super::*;

    /// Reads an answer about a folder with the file `a.rs`, with the folder's URI as `file://$W`.
    fn read(said: &Value) -> Value {
        let home = tempfile::tempdir().unwrap();
        let work = home.path().canonicalize().unwrap();
        fs::write(work.join("a.rs"), "").unwrap();
        let said = said.to_string().replace("file://$W", &file_uri(work.to_str().unwrap()));
        let folders = Folders::open(&[work]).unwrap();
        let source = Source { server: "ide".to_owned(), tool: Some("t".to_owned()) };
        let said = serde_json::from_str(&said).unwrap();
        reported(&folders, None, &source, &said)
    }

    fn text(value: &Value) -> Value {
        json!({"content": [{"type": "text", "text": value.to_string()}]})
    }

    #[test]
    fn diagnostics_of_editors_are_read_in_their_shapes() {
        let range =
            json!({"start": {"line": 6, "character": 4}, "end": {"line": 6, "character": 9}});
        let lsp =
            json!({"message": "no `x`", "severity": 1, "code": {"value": "E1"}, "range": range});
        let word = json!({"message": "odd", "severity": "Warning", "code": 7, "range": range});
        let error = json!({"severity": "error", "file": "a.rs", "line": 7, "column": 5,
            "message": "no `x`", "code": "E1"});
        let warning = json!({"severity": "warning", "file": "a.rs", "line": 7, "column": 5,
            "message": "odd", "code": "7"});
        let by_file = json!([{"uri": "file://$W/a.rs", "diagnostics": [word, lsp]}]);
        assert_eq!(read(&text(&by_file))["diagnostics"], json!([error, warning]));
        let wrapped = json!({"structuredContent": {"items": by_file}, "content": []});
        assert_eq!(read(&wrapped)["diagnostics"], json!([error, warning]));
        let flat = json!([{"file": "a.rs", "line": 7, "column": 5, "severity": "ERROR",
            "message": "no `x`", "code": "E1"}]);
        assert_eq!(read(&text(&flat))["diagnostics"], json!([error]));
        let plain = json!({"content": [{"type": "text", "text": "a.rs:7:5: error[E1]: no `x`"}]});
        assert_eq!(read(&plain)["diagnostics"], json!([error]));
    }

    #[test]
    fn nothing_of_other_folders_is_told_and_no_mistake_is_an_answer() {
        let outside =
            json!([{"uri": "file:///etc/passwd", "diagnostics": [{"message": "secret"}]}]);
        let answer = read(&text(&outside));
        assert_eq!(answer["diagnostics"], json!([]));
        let none = json!({"server": "ide", "tool": "t"});
        assert_eq!(answer["editor"], none);
        for nothing in [json!([]), json!({"diagnostics": []})] {
            let answer = read(&text(&nothing));
            assert_eq!((&answer["diagnostics"], &answer["editor"]), (&json!([]), &none));
        }
    }

    #[test]
    fn what_cannot_be_read_of_an_answer_is_shown() {
        let output = |said: &Value| read(said)["editor"]["output"].as_str().map(str::to_owned);
        let structured = json!({"structuredContent": {"summary": "2 errors"}, "content": []});
        assert!(output(&structured).is_some_and(|shown| shown.contains("2 errors")));
        let other = json!({"problems": "2 errors"});
        assert!(output(&other).is_some_and(|shown| shown.contains("2 errors")));
        let one = json!({"file": "a.rs", "line": 7, "message": "odd"});
        let part = text(&json!([one, {"where": "a.rs", "what": "no `y`"}]));
        assert!(output(&part).is_some_and(|shown| shown.contains("no `y`")));
        assert_eq!(read(&part)["diagnostics"].as_array().map(Vec::len), Some(1));
    }

    #[test]
    fn what_is_in_no_known_shape_is_shown_and_bounded() {
        let said = json!({"content": [{"type": "text", "text": "all \u{1b}[31mgood"}]});
        let output = read(&said)["editor"]["output"].as_str().unwrap().to_owned();
        assert!(output.contains("all") && !output.contains('\u{1b}'), "{output}");
        let long = json!({"content": [{"type": "text", "text": "x".repeat(1 << 20)}]});
        assert!(read(&long)["editor"]["output"].as_str().unwrap().len() <= 4001);
        let mut deep = json!({"message": "m", "file": Path::new("a.rs")});
        for _ in 0..100 {
            deep = json!([deep]);
        }
        assert_eq!(read(&text(&deep))["diagnostics"], json!([]));
    }
}

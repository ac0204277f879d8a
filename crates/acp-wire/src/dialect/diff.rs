//! Diffs: the two texts of version 1 become a patch.

use std::fmt::Write as _;

use bytes::Bytes;

use super::objects::quoted;
use crate::{lossy_at, remove_member, set_member, str_at};

/// Lines around the change.
const CONTEXT: usize = 3;

/// Converts a diff. `None`: it is not one of version 1.
pub(super) fn diff_to_v2(diff: &Bytes) -> Option<Bytes> {
    let path = str_at(diff, &["path"])?;
    let (old, new) = (lossy_at(diff, &["oldText"]), lossy_at(diff, &["newText"])?);
    let operation = if old.is_none() { "add" } else { "modify" };
    let file = quoted(&path);
    let changes = format!(r#"[{{"operation":"{operation}","path":{file},"fileType":"text"}}]"#);
    let patch = git_patch(&path, old.as_deref(), &new);
    let members = ["path", "oldText", "newText"];
    let diff = members.iter().fold(diff.clone(), |diff, name| remove_member(&diff, &[name]));
    let diff = set_member(&diff, &["changes"], changes.as_bytes());
    let Some(patch) = patch else { return Some(diff) };
    let patch = format!(r#"{{"format":"git_patch","text":{}}}"#, quoted(&patch));
    Some(set_member(&diff, &["patch"], patch.as_bytes()))
}

/// A patch of one hunk, as Git writes it but without `a/` and `b/`: from the first line that differs
/// to the last one. Linear in the texts. `None`: they are equal.
fn git_patch(path: &str, old: Option<&str>, new: &str) -> Option<String> {
    if old == Some(new) {
        return None;
    }
    let name = git_path(path);
    let mut patch = format!("diff --git {name} {name}\n");
    if old.is_none() {
        patch.push_str("new file mode 100644\n");
    }
    let before: Vec<&str> = old.unwrap_or_default().split_inclusive('\n').collect();
    let after: Vec<&str> = new.split_inclusive('\n').collect();
    if before == after {
        return Some(patch);
    }
    let head = before.iter().zip(&after).take_while(|(old, new)| old == new).count();
    let most = before.len().min(after.len()) - head;
    let ends = before.iter().rev().zip(after.iter().rev()).take(most);
    let tail = ends.take_while(|(old, new)| old == new).count();
    let (removed_to, added_to) = (before.len() - tail, after.len() - tail);
    let (first, more) = (head.saturating_sub(CONTEXT), tail.min(CONTEXT));
    let range = |end: usize| {
        let count = end + more - first;
        format!("{},{count}", first + usize::from(count > 0))
    };
    let old_name = if old.is_none() { "/dev/null" } else { &name };
    let (removed, added) = (range(removed_to), range(added_to));
    // Writing to memory cannot fail.
    let _ = writeln!(patch, "--- {old_name}\n+++ {name}\n@@ -{removed} +{added} @@");
    for (sign, lines) in [
        (' ', &before[first..head]),
        ('-', &before[head..removed_to]),
        ('+', &after[head..added_to]),
        (' ', &before[removed_to..removed_to + more]),
    ] {
        for line in lines {
            patch.push(sign);
            patch.push_str(line);
            if !line.ends_with('\n') {
                patch.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
    Some(patch)
}

/// A path as Git writes it: in quotes if it has other bytes than printable ASCII.
fn git_path(path: &str) -> String {
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
    if path.as_bytes().iter().all(is_plain) {
        return path.to_owned();
    }
    let mut text = String::from("\"");
    for byte in path.bytes() {
        match byte {
            b'\t' => text.push_str("\\t"),
            b'\n' => text.push_str("\\n"),
            b'"' | b'\\' => text.extend(['\\', char::from(byte)]),
            _ if is_plain(&byte) => text.push(char::from(byte)),
            _ => {
                let _ = write!(text, "\\{byte:03o}");
            }
        }
    }
    text.push('"');
    text
}

//! Diffs: a patch becomes the texts of version 1, one pair for each hunk.

use std::borrow::Cow;

use bytes::Bytes;
use serde_json::json;

use super::text_item;
use crate::dialect::objects::{items_at, value_at};
use crate::{lossy_at, set_member, str_at};

/// The part of a patch about one file.
#[derive(Debug, Default)]
pub struct FilePatch<'a> {
    /// In their order.
    pub hunks: Vec<Hunk<'a>>,
}

/// A piece of a file with its changes.
#[derive(Debug, Default)]
pub struct Hunk<'a> {
    /// The old and the new number of the first line, from 1.
    pub first: (usize, usize),
    /// The lines with their signs. `\ No newline at end of file` is about the line before it.
    lines: Vec<&'a str>,
    /// Old and new lines that are still to come.
    left: (usize, usize),
}

/// Converts a diff into items of a tool call's content: a diff for each hunk and for a deleted file,
/// and a text for any other change without a hunk.
///
/// Returns also whether the diffs say everything: rules see no texts, so they must not decide about
/// the rest.
pub(super) fn diffs_from_v2(diff: &Bytes) -> (Vec<Bytes>, bool) {
    let changes = items_at(diff, &["changes"]).unwrap_or_default();
    let is_git = str_at(diff, &["patch", "format"]).is_some_and(|format| format == "git_patch");
    let patch = lossy_at(diff, &["patch", "text"]).unwrap_or_default();
    let files = if is_git { files_of(&patch, changes.len()) } else { None };
    let unread = (files.is_none() && !patch.is_empty()).then(|| text_item(&patch));
    let meta = value_at(diff, &["_meta"]);
    let with_meta = |item: Bytes| match &meta {
        Some(meta) => set_member(&item, &["_meta"], meta),
        None => item,
    };
    let (mut files, mut is_whole) = (files.unwrap_or_default().into_iter(), unread.is_none());
    let items = changes.iter().flat_map(|change| {
        let (items, says_all) = items_of(change, &files.next().unwrap_or_default());
        is_whole &= says_all;
        items
    });
    let items = items.map(with_meta).collect::<Vec<_>>().into_iter().chain(unread).collect();
    (items, is_whole)
}

/// Returns also whether the diffs among the items say all of the change.
fn items_of(change: &Bytes, file: &FilePatch<'_>) -> (Vec<Bytes>, bool) {
    let of = |name| lossy_at(change, &[name]).unwrap_or(Cow::Borrowed("?"));
    let (operation, path) = (of("operation"), of("path"));
    let hunks = file.hunks.iter().map(|hunk| {
        let old = (operation != "add").then(|| hunk.text('+'));
        let diff = json!({"type": "diff", "path": path, "oldText": old, "newText": hunk.text('-')});
        Bytes::from(diff.to_string())
    });
    let pair = matches!(&*operation, "move" | "copy").then(|| of("oldPath"));
    let text = match pair {
        Some(old) => Some(format!("{operation}: {old} → {path}")),
        None if !file.hunks.is_empty() => None,
        None if operation == "delete" => {
            let diff = json!({"type": "diff", "path": path, "oldText": null, "newText": ""});
            return (vec![diff.to_string().into()], str_at(change, &["path"]).is_some());
        }
        None => Some(format!("{operation}: {path}")),
    };
    let says_all = text.is_none() && str_at(change, &["path"]).is_some();
    (text.map(|text| text_item(&text)).into_iter().chain(hunks).collect(), says_all)
}

/// Reads a patch in Git's form, with a part for each of its changes; without that, no part is known to
/// belong to a change. `None` also if one of its hunks cannot be read. Lines that are no part of a hunk only separate files.
pub fn files_of(patch: &str, changes: usize) -> Option<Vec<FilePatch<'_>>> {
    let mut files: Vec<FilePatch<'_>> = Vec::new();
    let mut has_names = false;
    for line in patch.split_inclusive('\n') {
        let hunk = files.last_mut().and_then(|file| file.hunks.last_mut());
        if hunk.is_some_and(|hunk| hunk.take(line)) {
            continue;
        }
        if line.starts_with("diff --git ") {
            files.push(FilePatch::default());
            has_names = false;
        } else if line.starts_with("--- ") {
            // A patch without Git's own lines.
            if has_names || files.is_empty() {
                files.push(FilePatch::default());
            }
            has_names = true;
        } else if line.starts_with("@@") {
            files.last_mut()?.hunks.push(Hunk::begin(line)?);
        }
    }
    (files.len() == changes).then_some(files)
}

impl<'a> Hunk<'a> {
    /// Reads `@@ -1,2 +3,4 @@`.
    fn begin(line: &str) -> Option<Hunk<'a>> {
        let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
        let (new, _) = rest.split_once(" @@")?;
        let range = |range: &str| {
            let (first, count) = range.split_once(',').unwrap_or((range, "1"));
            Some((first.parse().ok()?, count.parse().ok()?))
        };
        let ((old_first, old_count), (new_first, new_count)) = (range(old)?, range(new)?);
        let (first, left) = ((old_first, new_first), (old_count, new_count));
        Some(Hunk { first, left, lines: Vec::new() })
    }

    /// Takes a line, if it is one of the hunk.
    fn take(&mut self, line: &'a str) -> bool {
        let Some(sign) = line.chars().next() else { return false };
        if sign != '\\' {
            if self.left == (0, 0) {
                return false;
            }
            if sign != '+' {
                self.left.0 = self.left.0.saturating_sub(1);
            }
            if sign != '-' {
                self.left.1 = self.left.1.saturating_sub(1);
            }
        }
        self.lines.push(line);
        true
    }

    /// Each line: its sign, and its text with its end, if it has one.
    pub fn signed(&self) -> impl Iterator<Item = (char, &'a str)> {
        let ends = self.lines.iter().skip(1).map(|next| !next.starts_with('\\'));
        let lines = self.lines.iter().zip(ends.chain([true]));
        lines.filter(|(line, _)| !line.starts_with('\\')).map(|(line, has_end)| {
            let line = if has_end { line } else { line.strip_suffix('\n').unwrap_or(line) };
            // Some tools write an empty line without its space.
            match line.chars().next() {
                Some(sign @ ('+' | '-' | ' ')) => (sign, &line[1..]),
                _ => (' ', line),
            }
        })
    }

    /// The text without the lines that have this sign.
    fn text(&self, gone: char) -> String {
        self.signed().filter(|(sign, _)| *sign != gone).map(|(_, text)| text).collect()
    }
}

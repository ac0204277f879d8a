//! Diffs: a patch becomes the texts of version 1, one pair for each hunk.

use std::borrow::Cow;

use bytes::Bytes;
use serde_json::json;

use super::text_item;
use crate::dialect::objects::{items_at, value_at};
use crate::{lossy_at, set_member, str_at};

/// The part of a patch about one file.
#[derive(Debug, Default)]
struct FilePatch<'a> {
    hunks: Vec<Hunk<'a>>,
}

#[derive(Debug, Default)]
struct Hunk<'a> {
    old: Vec<&'a str>,
    new: Vec<&'a str>,
    /// Old and new lines that are still to come.
    left: (usize, usize),
    /// How the last line began.
    last: char,
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
    let mut files = if is_git { files_of(&patch) } else { Vec::new() };
    // Without a part for each change, no part is known to belong to a change.
    let is_read = is_git && files.len() == changes.len();
    let unread = (!is_read && !patch.is_empty()).then(|| text_item(&patch));
    if unread.is_some() {
        files.clear();
    }
    let meta = value_at(diff, &["_meta"]);
    let with_meta = |item: Bytes| match &meta {
        Some(meta) => set_member(&item, &["_meta"], meta),
        None => item,
    };
    let (mut files, mut is_whole) = (files.into_iter(), unread.is_none());
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
        let old = (operation != "add").then(|| hunk.old.concat());
        let diff =
            json!({"type": "diff", "path": path, "oldText": old, "newText": hunk.new.concat()});
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

/// Reads a patch in Git's form. Lines that are no part of a hunk only separate files.
fn files_of(patch: &str) -> Vec<FilePatch<'_>> {
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
        } else if let Some(hunk) = Hunk::begin(line)
            && let Some(file) = files.last_mut()
        {
            file.hunks.push(hunk);
        }
    }
    files
}

impl<'a> Hunk<'a> {
    /// Reads `@@ -1,2 +3,4 @@`.
    fn begin(line: &str) -> Option<Hunk<'a>> {
        let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
        let (new, _) = rest.split_once(" @@")?;
        let count = |range: &str| match range.split_once(',') {
            Some((_, count)) => count.parse().ok(),
            None => Some(1),
        };
        Some(Hunk { left: (count(old)?, count(new)?), ..Hunk::default() })
    }

    /// Takes a line, if it is one of the hunk.
    fn take(&mut self, line: &'a str) -> bool {
        let Some(sign) = line.chars().next() else { return false };
        let of_both = |sign| (sign != '+', sign != '-');
        let (is_old, is_new) = of_both(if sign == '\\' { self.last } else { sign });
        if sign == '\\' {
            // The line before it has no end.
            for lines in [(is_old, &mut self.old), (is_new, &mut self.new)] {
                if let (true, Some(last)) = (lines.0, lines.1.last_mut()) {
                    *last = last.strip_suffix('\n').unwrap_or(last);
                }
            }
            return true;
        }
        if self.left == (0, 0) {
            return false;
        }
        // Some tools write an empty line without its space.
        let text = line.strip_prefix(['+', '-', ' ']).unwrap_or(line);
        for (is_its, left, lines) in
            [(is_old, &mut self.left.0, &mut self.old), (is_new, &mut self.left.1, &mut self.new)]
        {
            if is_its {
                *left = left.saturating_sub(1);
                lines.push(text);
            }
        }
        self.last = sign;
        true
    }
}

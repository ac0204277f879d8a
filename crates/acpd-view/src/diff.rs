//! Changes of files for users.

use std::time::Duration;

use acp_wire::dialect::{FilePatch, files_of};
use acpd_api::{Untrusted, escape};
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use crate::lenient;
use crate::text;
use crate::text::{Role, Text};

const CONTEXT_LINES: usize = 2;
/// Time limit for a comparison. A comparison that is cut short reports too many changed lines.
const MAX_COMPARE_TIME: Duration = Duration::from_millis(200);

/// A change of a file, as the agent has told it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FileDiff {
    pub path: Untrusted,
    /// Of a moved or copied file.
    pub old_path: Option<Untrusted>,
    pub content: FileContent,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FileContent {
    /// None for a new file.
    Texts(Option<Untrusted>, Untrusted),
    /// A word for what happened to the file, and a part of a patch.
    Patch(Untrusted, Vec<Hunk>),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Hunk {
    /// The old and the new number of the first line, from 1.
    first: (usize, usize),
    /// Each line with its sign.
    lines: Vec<(char, String)>,
}

impl FileDiff {
    /// Reads the diff of a tool call's content: texts in version 1 of the protocol, a patch in
    /// version 2. The error has all of it as text, if no part of the patch is known to belong to a
    /// file.
    pub(crate) fn read(item: &Value) -> Result<Vec<FileDiff>, Untrusted> {
        let of = |value: &Value, name| value.get(name)?.as_str().map(Untrusted::from);
        let Some(changes) = item.get("changes") else {
            let content =
                FileContent::Texts(of(item, "oldText"), of(item, "newText").unwrap_or_default());
            let path = of(item, "path").unwrap_or_default();
            return Ok(vec![FileDiff { path, old_path: None, content }]);
        };
        let changes: Vec<Value> = lenient::list(Some(changes));
        let patch = item["patch"]["text"].as_str().unwrap_or_default();
        let files = if patch.is_empty() {
            changes.iter().map(|_| FilePatch::default()).collect()
        } else {
            let is_git = item["patch"]["format"] == "git_patch";
            let files = is_git.then(|| files_of(patch, changes.len())).flatten();
            files.ok_or_else(|| {
                let word = |of: &Value, name| of[name].as_str().unwrap_or("?").to_owned();
                let line = |of| word(of, "operation") + ": " + &word(of, "path") + "\n";
                changes.iter().map(line).collect::<String>() + patch
            })?
        };
        let diff = |(change, file): (&Value, FilePatch<'_>)| {
            let hunks = file.hunks.iter().map(|hunk| Hunk {
                first: hunk.first,
                lines: hunk.signed().map(|(sign, text)| (sign, text.to_owned())).collect(),
            });
            let operation = of(change, "operation").unwrap_or_default();
            FileDiff {
                path: of(change, "path").unwrap_or_default(),
                old_path: of(change, "oldPath"),
                content: FileContent::Patch(operation, hunks.collect()),
            }
        };
        Ok(changes.iter().zip(files).map(diff).collect())
    }

    /// Returns the change as a patch.
    pub fn unified(&self, path: &Untrusted) -> String {
        let in_line = |path: &Untrusted| path.raw().replace(['\n', '\r'], " ");
        let path = in_line(path);
        let is_new = match &self.content {
            FileContent::Texts(old, _) => old.is_none(),
            FileContent::Patch(operation, _) => *operation == "add",
        };
        let old_path = self.old_path.as_ref().map_or_else(|| path.clone(), in_line);
        let old_path = if is_new { "/dev/null" } else { &old_path };
        match &self.content {
            FileContent::Texts(old, new) => {
                let old = old.as_ref().map_or("", Untrusted::raw);
                let diff = TextDiff::from_lines(old, new.raw());
                diff.unified_diff().header(old_path, &path).to_string()
            }
            FileContent::Patch(_, hunks) => {
                let hunks: String = hunks.iter().map(Hunk::unified).collect();
                format!("--- {old_path}\n+++ {path}\n{hunks}")
            }
        }
    }
}

impl Hunk {
    fn count(&self, gone: char) -> usize {
        self.lines.iter().filter(|(sign, _)| *sign != gone).count()
    }

    fn unified(&self) -> String {
        let ((old, new), count) = (self.first, |gone| self.count(gone));
        let head = format!("@@ -{old},{} +{new},{} @@\n", count('+'), count('-'));
        let lines = self.lines.iter().map(|(sign, text)| match text.strip_suffix('\n') {
            Some(text) => format!("{sign}{text}\n"),
            None => format!("{sign}{text}\n\\ No newline at end of file\n"),
        });
        head + &lines.collect::<String>()
    }

    fn shown(&self) -> Vec<DiffLine> {
        let (mut old, mut new) = self.first;
        let line = |(sign, text): &(char, String)| {
            let number = if *sign == '-' { old } else { new };
            old = old.saturating_add(usize::from(*sign != '+'));
            new = new.saturating_add(usize::from(*sign != '-'));
            DiffLine::text(number, *sign, text)
        };
        self.lines.iter().map(line).collect()
    }
}

#[derive(Debug)]
pub struct Change {
    /// Path, counts, and a mark for a new file.
    pub head: Text,
    pub lines: Vec<DiffLine>,
    pub added: usize,
    pub removed: usize,
    /// Moved or copied.
    pub has_old_path: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiffLine {
    /// Omitted lines without changes.
    Gap,
    Text {
        /// Line number in the new text; for a removed line in the old text.
        number: usize,
        /// `+`, `-` or a space.
        sign: char,
        text: Text,
    },
}

impl DiffLine {
    fn text(number: usize, sign: char, text: &str) -> DiffLine {
        let text = escape::verbatim(text.trim_end_matches(['\n', '\r'])).into();
        DiffLine::Text { number, sign, text }
    }

    pub fn line(&self) -> Text {
        match self {
            DiffLine::Gap => Text::of(Role::Dim, "         ⋮"),
            DiffLine::Text { number, sign, text } => {
                let role = match sign {
                    '+' => Role::Added,
                    '-' => Role::Removed,
                    _ => Role::Dim,
                };
                let line: Text = text!("{:>8} {} {}", *number, *sign, text);
                Text::of(role, line.trim_end())
            }
        }
    }
}

impl Change {
    /// `path`: as it is shown.
    pub fn of(path: &Untrusted, file: &FileDiff) -> Change {
        let (added, removed, note, lines) = match &file.content {
            FileContent::Texts(old, new) => {
                let before = old.as_ref().map_or("", Untrusted::raw);
                let mut config = TextDiff::configure();
                let changes = config.timeout(MAX_COMPARE_TIME).diff_lines(before, new.raw());
                let all = || changes.iter_all_changes();
                let count = |tag| all().filter(|change| change.tag() == tag).count();
                let note = if old.is_none() { " new file" } else { "" };
                (count(ChangeTag::Insert), count(ChangeTag::Delete), note, hunks(&changes))
            }
            FileContent::Patch(operation, hunks) => {
                let all = || hunks.iter().flat_map(|hunk| &hunk.lines);
                let count = |of| all().filter(|(sign, _)| *sign == of).count();
                let note = match operation.raw() {
                    "add" => " new file",
                    "delete" => " deleted",
                    "move" => " moved",
                    "copy" => " copied",
                    _ => "",
                };
                let lines: Vec<_> = hunks.iter().map(Hunk::shown).collect();
                (count('+'), count('-'), note, lines.join(&DiffLine::Gap))
            }
        };
        let path = match &file.old_path {
            Some(old) => text!("{} → {}", old, path),
            None => path.into(),
        };
        let head = with_counts(Text::of(Role::Name, path), added, removed).and(Role::Plain, note);
        Change { head, lines, added, removed, has_old_path: file.old_path.is_some() }
    }
}

pub(crate) fn with_counts(line: Text, added: usize, removed: usize) -> Text {
    line.and(Role::Plain, " ")
        .and(Role::Added, text!("+{}", added))
        .and(Role::Plain, " ")
        .and(Role::Removed, text!("-{}", removed))
}

fn hunks(changes: &TextDiff<'_, '_, '_, str>) -> Vec<DiffLine> {
    let mut lines = Vec::new();
    for (at, group) in changes.grouped_ops(CONTEXT_LINES).iter().enumerate() {
        if at > 0 {
            lines.push(DiffLine::Gap);
        }
        for change in group.iter().flat_map(|op| changes.iter_changes(op)) {
            let sign = match change.tag() {
                ChangeTag::Insert => '+',
                ChangeTag::Delete => '-',
                ChangeTag::Equal => ' ',
            };
            let number = change.new_index().or(change.old_index()).unwrap_or(0) + 1;
            lines.push(DiffLine::text(number, sign, change.value()));
        }
    }
    lines
}

//! Tool calls: one line at the start and one at the end, followed by diffs and the end of a
//! command's output.

use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use acpd_view::about::commands;
use acpd_view::{Change, ToolCall, icon};

use crate::text::{BOLD, Role, Text, text};

const OUTPUT_LINES: usize = 10;
const COMMAND_LINES: usize = 10;
const FAILURE_LINES: usize = 5;
/// The head of a diff counts all lines.
const DIFF_LINES: usize = 60;
const MAX_PLACES: usize = 3;

#[derive(Debug, Default)]
pub(super) struct Shown {
    begun: bool,
    ended: bool,
    is_command_printed: bool,
    /// Hashes of printed diffs, so that each is printed once.
    diffs: HashSet<u64>,
}

impl Shown {
    pub(super) fn update(&mut self, call: &ToolCall) -> Text {
        let mut text = Text::new();
        let end = match call.status() {
            Some("completed") => Some(("✓", Role::Good)),
            Some("failed" | "cancelled") => Some(("✗", Role::Bad)),
            _ => None,
        };
        let mut ends_now = false;
        match end {
            Some(_) if self.ended => {}
            // The call began before this verb was attached, and its id alone says nothing.
            Some(_) if call.title().is_none() && call.kind().is_none() => self.ended = true,
            Some((mark, style)) => {
                (self.ended, ends_now) = (true, true);
                text += head(call, &Text::styled(style, mark));
            }
            None if self.begun => {}
            None => text += head(call, &Text::styled(Role::Name, icon(call.kind()))),
        }
        self.begun = true;
        if let Some(input) = call.raw_input().filter(|_| !self.is_command_printed) {
            let lines = commands(input, call.title().as_ref());
            self.is_command_printed = !lines.is_empty();
            text += command(&lines);
        }
        for file in call.diffs() {
            let path = call.short(&file.path);
            let hash =
                BuildHasherDefault::<DefaultHasher>::default().hash_one((&path, &file.content));
            if self.diffs.insert(hash) {
                text += diff(&Change::of(&path, &file));
            }
        }
        if ends_now {
            text += output(call);
        }
        text
    }
}

fn command(lines: &[Text]) -> Text {
    let mut text: Text =
        lines.iter().take(COMMAND_LINES).map(|line| text!("    {}\n", line)).collect();
    if lines.len() > COMMAND_LINES {
        let more = text!("    … {} lines more", lines.len() - COMMAND_LINES);
        text += Text::styled(Role::Dim, more) + "\n";
    }
    text
}

fn diff(change: &Change) -> Text {
    let mut text = text!("    {}\n", change.head);
    for line in change.lines.iter().take(DIFF_LINES) {
        text += line.line() + "\n";
    }
    if change.lines.len() > DIFF_LINES {
        let more = text!("      … {} more lines\n", change.lines.len() - DIFF_LINES);
        text += Text::styled(Role::Dim, more);
    }
    text
}

fn head(call: &ToolCall, mark: &Text) -> Text {
    let title = name(call);
    let places = places(call, &title);
    let places = if places.is_empty() { places } else { text!("  {}", places) };
    text!("{} {}{}\n", mark, Text::styled(BOLD, title), Text::styled(Role::Dim, places))
}

pub(crate) fn name(call: &ToolCall) -> Text {
    let kind = || call.kind().map(acpd_api::Untrusted::from);
    call.title().or_else(kind).unwrap_or_else(|| call.id()).into()
}

fn places(call: &ToolCall, title: &Text) -> Text {
    let mut names: Vec<Text> = Vec::new();
    for location in call.locations() {
        let name = call.place(&location);
        if !title.as_str().contains(name.as_str()) && !names.contains(&name) {
            names.push(name);
        }
    }
    if names.len() > MAX_PLACES {
        let rest = names.len() - MAX_PLACES;
        names.truncate(MAX_PLACES);
        names.push(text!("and {} more", rest));
    }
    Text::join(names, ", ")
}

/// Returns the end of a command's output, or the beginning of another call's failure.
pub(crate) fn output(call: &ToolCall) -> Text {
    let is_command = call.kind() == Some("execute");
    if !is_command && call.status() != Some("failed") {
        return Text::new();
    }
    let lines = call.output();
    let mut text = Text::new();
    let shown = if is_command {
        let from = lines.len().saturating_sub(OUTPUT_LINES);
        if from > 0 {
            text += Text::styled(Role::Dim, text!("    … {} lines before", from)) + "\n";
        }
        &lines[from..]
    } else {
        &lines[..lines.len().min(FAILURE_LINES)]
    };
    let indented = |line: &Text| Text::styled(Role::Dim, text!("    {}", line)) + "\n";
    text + shown.iter().map(indented).collect::<Text>()
}

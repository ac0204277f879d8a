//! Tool calls: one line at the start and one at the end, followed by diffs and, for commands, by the end of
//! their output.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use acpd_api::{Untrusted, escape};
use anstream::adapter::strip_str;

use super::about::commands;
use super::diff::diff;
use super::update::{FileDiff, Location, ToolCall, ToolContent};
use crate::paint::{BOLD, CYAN, DIM, GREEN, Paint, RED};
use crate::text::{Text, text};

/// Lines shown of what a command printed.
const OUTPUT_LINES: usize = 10;
/// Lines shown of a command.
const COMMAND_LINES: usize = 10;
/// Lines shown of why another call failed.
const FAILURE_LINES: usize = 5;
/// Places shown on one line.
const MAX_PLACES: usize = 3;

/// What is known of the tool calls of a session.
#[derive(Debug, Default)]
pub(super) struct Tools {
    calls: HashMap<Untrusted, Shown>,
}

#[derive(Debug, Default)]
struct Shown {
    call: ToolCall,
    begun: bool,
    ended: bool,
    /// Its command was shown.
    told: bool,
    /// Hashes of the diffs that were shown, so that each is shown once.
    diffs: HashSet<u64>,
}

impl Tools {
    /// Takes a call or a change of one; returns the lines to show, if any.
    pub(super) fn update(&mut self, update: ToolCall, paint: Paint) -> Text {
        let shown = self.calls.entry(update.id.clone()).or_default();
        let content = update.content.clone();
        shown.call.change(update);
        let mut text = Text::new();
        let end = match shown.call.status() {
            Some("completed") => Some(("✓", GREEN)),
            Some("failed") => Some(("✗", RED)),
            _ => None,
        };
        let ends_now = end.is_some() && !shown.ended;
        match end {
            Some(_) if shown.ended => {}
            // It began before this command was attached: an id alone does not say what has ended.
            Some(_) if !is_known(&shown.call) => shown.ended = true,
            Some((mark, style)) => {
                shown.ended = true;
                text += head(&shown.call, &paint.apply(style, mark), paint);
            }
            None if shown.begun => {}
            None => {
                let mark = paint.apply(CYAN, icon(shown.call.kind()));
                text += head(&shown.call, &mark, paint);
            }
        }
        shown.begun = true;
        if let Some(input) = shown.call.raw_input.as_ref().filter(|_| !shown.told) {
            let lines = commands(input, shown.call.title.as_ref());
            shown.told = !lines.is_empty();
            text += command(&lines, paint);
        }
        for file in diffs(content.as_deref().unwrap_or_default()) {
            let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(file);
            if shown.diffs.insert(hash) {
                text += diff(file, paint);
            }
        }
        if end.is_some() {
            if ends_now {
                text += output(&shown.call, paint);
            }
            // They may be big, and nothing of them is shown again.
            shown.call.content = None;
            shown.call.raw_input = None;
        }
        text
    }
}

fn is_known(call: &ToolCall) -> bool {
    call.title.is_some() || call.kind.is_some()
}

/// The beginning of a command, below its call.
fn command(lines: &[Text], paint: Paint) -> Text {
    let mut text: Text =
        lines.iter().take(COMMAND_LINES).map(|line| text!("    {}\n", line)).collect();
    if lines.len() > COMMAND_LINES {
        let more = text!("    … {} lines more", lines.len() - COMMAND_LINES);
        text += paint.apply(DIM, more) + "\n";
    }
    text
}

fn head(call: &ToolCall, mark: &Text, paint: Paint) -> Text {
    let title = Text::from(call.title());
    let places = places(call.locations.as_deref().unwrap_or_default(), &title);
    let places = if places.is_empty() { places } else { text!("  {}", places) };
    text!("{} {}{}\n", mark, paint.apply(BOLD, title), paint.apply(DIM, places))
}

/// The touched places that the title does not already name.
fn places(locations: &[Location], title: &Text) -> Text {
    let mut names: Vec<Text> = Vec::new();
    for location in locations {
        let name = place(location);
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

/// A place as `path:line`.
pub(crate) fn place(location: &Location) -> Text {
    match location.line {
        Some(line) => text!("{}:{}", location.path, line),
        None => (&location.path).into(),
    }
}

pub(super) fn icon(kind: Option<&str>) -> &'static str {
    match kind {
        Some("read") => "◇",
        Some("edit") => "✎",
        Some("delete") => "−",
        Some("move") => "→",
        Some("search") => "?",
        Some("execute") => "$",
        Some("think") => "…",
        Some("fetch") => "↓",
        Some("switch_mode") => "⇄",
        _ => "•",
    }
}

fn diffs(content: &[ToolContent]) -> impl Iterator<Item = &FileDiff> {
    content.iter().filter_map(|item| match item {
        ToolContent::Diff(file) => Some(file),
        _ => None,
    })
}

/// The end of what a command printed; of another call the beginning of why it failed.
pub(crate) fn output(call: &ToolCall, paint: Paint) -> Text {
    let texts = call.content.iter().flatten().filter_map(|item| match item {
        ToolContent::Content { content } => content.text.as_ref().map(Untrusted::raw),
        _ => None,
    });
    // Many agents put what was printed into a code block.
    let is_text = |line: &&str| !line.trim().is_empty() && !line.starts_with("```");
    let lines: Vec<&str> = texts.flat_map(str::lines).filter(is_text).collect();
    let shown = match (call.kind(), call.status()) {
        (Some("execute"), _) => &lines[lines.len().saturating_sub(OUTPUT_LINES)..],
        (_, Some("failed")) => &lines[..lines.len().min(FAILURE_LINES)],
        _ => return Text::new(),
    };
    let mut text = Text::new();
    if call.kind() == Some("execute") && shown.len() < lines.len() {
        let before = text!("    … {} lines before", lines.len() - shown.len());
        text += paint.apply(DIM, before) + "\n";
    }
    for line in shown {
        // The colours of a command are none that we show.
        let line = strip_str(line.trim_end()).to_string();
        text += paint.apply(DIM, text!("    {}", escape::verbatim(&line))) + "\n";
    }
    text
}

//! A transcript in Markdown.

use acpd_api::{SessionInfo, Untrusted};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use similar::TextDiff;

use super::collect::{Item, Speaker};
use crate::human;
use crate::info::usage;
use crate::paint::Paint;
use crate::render::{
    Content, FileDiff, PlanEntry, ToolCall, ToolContent, commands, describe, output, place,
    sentence,
};
use crate::text::{Text, text};

/// A piece of a transcript.
#[derive(Debug)]
pub(crate) enum Part {
    /// What we write around it.
    Ours(Text),
    /// What was said, and changes of files: data.
    Theirs(Untrusted),
}

impl<T: Into<Text>> From<T> for Part {
    fn from(text: T) -> Part {
        Part::Ours(text.into())
    }
}

/// The head of a transcript.
pub(crate) fn head(session: &SessionInfo) -> Text {
    let title = session.title.as_ref().or(session.name.as_ref()).unwrap_or(&session.session_id);
    let name = match &session.name {
        Some(name) => text!("{} ({})", name, session.session_id),
        None => (&session.session_id).into(),
    };
    let usage = session.usage.as_ref().map(|told| text!("- usage: {}\n", usage::sentence(told)));
    text!(
        "# {}\n\n- session: {}\n- agent: {}\n- directory: {}\n- created: {}\n- used: {}\n{}",
        title,
        name,
        session.agent,
        session.cwd,
        human::clock(session.created),
        human::clock(session.updated),
        usage,
    )
}

/// Writes items, with a heading wherever somebody else speaks.
#[derive(Debug)]
pub(crate) struct Markdown {
    agent: Text,
    last: Option<Voice>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Voice {
    User,
    Agent,
}

impl Markdown {
    /// A transcript of a session of this agent.
    pub(crate) fn new(agent: &Untrusted) -> Markdown {
        Markdown { agent: agent.into(), last: None }
    }

    /// An item; empty for what a transcript leaves out.
    pub(crate) fn item(&mut self, item: Item) -> Vec<Part> {
        match item {
            Item::Message { by: Speaker::Thought, .. } => Vec::new(),
            Item::Message { by: Speaker::User, content, .. } => {
                self.said(Voice::User, blocks(content))
            }
            Item::Message { by: Speaker::Agent, content, .. } => {
                self.said(Voice::Agent, blocks(content))
            }
            Item::Call { call, .. } => self.said(Voice::Agent, tool_call(call)),
            Item::Plan { entries, .. } => vec![plan(entries).into()],
            Item::Notice { method, params, .. } => {
                let sentence = sentence(&method, &Value::Object(params).to_string());
                sentence.map(|sentence| text!("\n> {}\n", sentence).into()).into_iter().collect()
            }
        }
    }

    fn said(&mut self, voice: Voice, mut parts: Vec<Part>) -> Vec<Part> {
        if self.last.replace(voice) != Some(voice) {
            let heading = match voice {
                Voice::User => "\n## You\n".into(),
                Voice::Agent => text!("\n## {}\n", self.agent),
            };
            parts.insert(0, heading.into());
        }
        parts
    }
}

fn blocks(content: Vec<Value>) -> Vec<Part> {
    let mut parts = Vec::new();
    for block in content {
        match read::<Content>(block) {
            Some(Content::Text { text: said }) => {
                let said = Untrusted::from(said.raw().trim_end());
                parts.extend(["\n".into(), Part::Theirs(said), "\n".into()]);
            }
            Some(other) => {
                parts.extend(describe(&other).map(|what| text!("\n`{}`\n", what).into()));
            }
            None => {}
        }
    }
    parts
}

fn tool_call(call: Map<String, Value>) -> Vec<Part> {
    let call: ToolCall = read(Value::Object(call)).unwrap_or_default();
    let kind = call.kind.as_ref().map_or_else(|| "other".into(), Text::from);
    let status = match call.status() {
        Some("completed") => "done",
        Some("failed") => "failed",
        _ => "not finished",
    };
    let places = call.locations.iter().flatten().map(|location| text!("`{}`", place(location)));
    let places = Text::join(places, ", ");
    let places = if places.is_empty() { places } else { text!(": {}", places) };
    let mut parts = vec![text!("\n**{}** ({}, {}){}\n", call.title(), kind, status, places).into()];
    let input = call.raw_input.as_ref();
    let commands = input.map(|input| commands(input, call.title.as_ref())).unwrap_or_default();
    if !commands.is_empty() {
        let lines = Text::join(commands, "\n");
        let fence = fence(lines.as_str());
        parts.push(text!("\n{}sh\n{}\n{}\n", fence, lines, fence).into());
    }
    for content in call.content.iter().flatten() {
        if let ToolContent::Diff(file) = content {
            parts.extend(diff(file));
        }
    }
    let output = output(&call, Paint::plain());
    if !output.is_empty() {
        parts.push(text!("\n{}", output).into());
    }
    parts
}

fn diff(file: &FileDiff) -> [Part; 3] {
    let path = file.path.raw().replace(['\n', '\r'], " ");
    let old = file.old_text.as_ref().map(Untrusted::raw);
    let changes = TextDiff::from_lines(old.unwrap_or_default(), file.new_text.raw());
    let old_path = if old.is_some() { &path } else { "/dev/null" };
    let changes = changes.unified_diff().header(old_path, &path).to_string();
    let fence = fence(&changes);
    let end = if changes.is_empty() || changes.ends_with('\n') { "" } else { "\n" };
    [
        text!("\n{}diff\n", fence).into(),
        Part::Theirs(changes.into()),
        text!("{}{}\n", end, fence).into(),
    ]
}

/// The line around a code block that this text cannot end.
fn fence(text: &str) -> Text {
    Text::repeated("`", human::fence(text))
}

fn plan(entries: Value) -> Text {
    let entries: Vec<PlanEntry> = read(entries).unwrap_or_default();
    if entries.is_empty() {
        return Text::new();
    }
    let mut text = Text::from("\n## Plan\n\n");
    for entry in entries {
        let (mark, more) = match entry.status.raw() {
            "completed" => ("x", ""),
            "in_progress" => (" ", ", in progress"),
            _ => (" ", ""),
        };
        let priority =
            if entry.priority.is_empty() { "medium".into() } else { Text::from(&entry.priority) };
        text += text!("- [{}] {} ({}{})\n", mark, entry.content, priority, more);
    }
    text
}

fn read<T: DeserializeOwned>(value: Value) -> Option<T> {
    serde_json::from_value(value).ok()
}

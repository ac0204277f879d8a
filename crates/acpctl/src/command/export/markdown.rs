//! A transcript in Markdown.

use std::fmt::Write as _;

use acpd_api::SessionInfo;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use similar::TextDiff;

use super::collect::{Item, Speaker};
use crate::human;
use crate::paint::{Paint, one_line};
use crate::render::{
    Content, FileDiff, PlanEntry, ToolCall, ToolContent, commands, describe, output, place,
    sentence, title,
};

/// The head of a transcript.
pub(super) fn head(session: &SessionInfo) -> String {
    let title = session.title.as_ref().or(session.name.as_ref()).unwrap_or(&session.session_id);
    let name = match &session.name {
        Some(name) => format!("{} ({})", one_line(name), session.session_id),
        None => session.session_id.clone(),
    };
    format!(
        "# {}\n\n- session: {name}\n- agent: {}\n- directory: {}\n- created: {}\n- used: {}\n",
        one_line(title),
        one_line(&session.agent),
        one_line(&session.cwd),
        human::clock(session.created),
        human::clock(session.updated),
    )
}

/// Writes items, with a heading wherever somebody else speaks.
#[derive(Debug)]
pub(super) struct Markdown {
    agent: String,
    last: Option<Voice>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Voice {
    User,
    Agent,
}

impl Markdown {
    /// A transcript of a session of this agent.
    pub(super) fn new(agent: &str) -> Markdown {
        Markdown { agent: one_line(agent), last: None }
    }

    /// An item; empty for what a transcript leaves out.
    pub(super) fn item(&mut self, item: Item) -> String {
        match item {
            Item::Message { by: Speaker::Thought, .. } => String::new(),
            Item::Message { by: Speaker::User, content, .. } => {
                self.voice(Voice::User) + &blocks(content)
            }
            Item::Message { by: Speaker::Agent, content, .. } => {
                self.voice(Voice::Agent) + &blocks(content)
            }
            Item::Call { call, .. } => self.voice(Voice::Agent) + &tool_call(call),
            Item::Plan { entries, .. } => plan(entries),
            Item::Notice { method, params, .. } => {
                match sentence(&method, &Value::Object(params).to_string()) {
                    Some(sentence) => format!("\n> {sentence}\n"),
                    None => String::new(),
                }
            }
        }
    }

    fn voice(&mut self, voice: Voice) -> String {
        if self.last.replace(voice) == Some(voice) {
            return String::new();
        }
        match voice {
            Voice::User => "\n## You\n".to_owned(),
            Voice::Agent => format!("\n## {}\n", self.agent),
        }
    }
}

fn blocks(content: Vec<Value>) -> String {
    let mut text = String::new();
    for block in content {
        match read::<Content>(block) {
            Some(Content::Text { text: said }) => {
                let _ = writeln!(text, "\n{}", said.trim_end());
            }
            Some(other) => text.extend(describe(&other).map(|what| format!("\n`{what}`\n"))),
            None => {}
        }
    }
    text
}

fn tool_call(call: Map<String, Value>) -> String {
    let call: ToolCall = read(Value::Object(call)).unwrap_or_default();
    let kind = call.kind.as_deref().map_or_else(|| "other".to_owned(), one_line);
    let status = match call.status.as_deref() {
        Some("completed") => "done",
        Some("failed") => "failed",
        _ => "not finished",
    };
    let places = call.locations.iter().flatten().map(|location| format!("`{}`", place(location)));
    let places = places.collect::<Vec<_>>().join(", ");
    let places = if places.is_empty() { places } else { format!(": {places}") };
    let mut text = format!("\n**{}** ({kind}, {status}){places}\n", title(&call));
    let input = call.raw_input.as_ref();
    let commands = input.map(|input| commands(input, call.title.as_deref())).unwrap_or_default();
    if !commands.is_empty() {
        let _ = write!(text, "\n{}", human::fenced("sh", &(commands.join("\n") + "\n")));
    }
    for content in call.content.iter().flatten() {
        if let ToolContent::Diff(file) = content {
            text += &diff(file);
        }
    }
    let output = output(&call, Paint::plain());
    if !output.is_empty() {
        let _ = write!(text, "\n{output}");
    }
    text
}

fn diff(file: &FileDiff) -> String {
    let path = one_line(&file.path);
    let old = file.old_text.as_deref();
    let changes = TextDiff::from_lines(old.unwrap_or_default(), &file.new_text);
    let old_path = if old.is_some() { &path } else { "/dev/null" };
    let changes = changes.unified_diff().header(old_path, &path).to_string();
    format!("\n{}", human::fenced("diff", &changes))
}

fn plan(entries: Value) -> String {
    let entries: Vec<PlanEntry> = read(entries).unwrap_or_default();
    if entries.is_empty() {
        return String::new();
    }
    let mut text = "\n## Plan\n\n".to_owned();
    for entry in entries {
        let (mark, more) = match entry.status.as_str() {
            "completed" => ('x', ""),
            "in_progress" => (' ', ", in progress"),
            _ => (' ', ""),
        };
        let priority = one_line(&entry.priority);
        let priority = if priority.is_empty() { "medium".to_owned() } else { priority };
        let _ = writeln!(text, "- [{mark}] {} ({priority}{more})", one_line(&entry.content));
    }
    text
}

fn read<T: DeserializeOwned>(value: Value) -> Option<T> {
    serde_json::from_value(value).ok()
}

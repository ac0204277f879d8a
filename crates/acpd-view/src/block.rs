//! Blocks: the parts of a conversation that a user sees, one below the other.

use std::sync::Arc;

use acpd_api::{RestoreLevel, Skipped, TurnEnded, Untrusted};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use strum::IntoStaticStr;

use crate::diff::FileDiff;
use crate::lenient::{self, text};
use crate::terminal::Terminal;
use crate::text;
use crate::text::Text;

/// Members of `rawOutput` that can hold the exit code of a command.
pub(crate) const EXIT_CODES: [&str; 2] = ["exitCode", "exit_code"];

/// Items of a tool call's content that are kept of those that come one by one.
const MAX_ITEMS: usize = 512;

#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    pub id: Id,
    /// The last line that changed the block.
    pub last: u64,
    pub kind: Kind,
    pub progress: Progress,
    /// The default; the user's choice overrides it.
    pub folding: Folding,
    /// A call with an open question.
    pub(crate) is_asked: bool,
    /// A call that a user or a rule refused.
    pub(crate) is_refused: bool,
    pub(crate) source: Option<Box<Source>>,
}

/// The notice of acpd that a block was made from.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    pub method: String,
    /// All members except the session and `_meta`; not escaped.
    pub params: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Id {
    /// The number of the block's first line in the journal.
    Line(u64),
    /// A subagent whose announcement was not read: the number of its first known line. A block
    /// inside of it has that number too.
    Around(u64),
}

/// State of the question whether a tool call may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Consent {
    Asked,
    Refused,
}

#[derive(Debug, Clone, PartialEq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Kind {
    Prompt(Message),
    Answer(Message),
    Thought(Message),
    Call(ToolCall),
    /// A tool call that changes files.
    Edit(ToolCall),
    Command(ToolCall),
    Plan(Plan),
    Question(Question),
    Subagent(Subagent),
    Notice(Notice),
    /// A line over the size limit.
    Gap(Skipped),
    Turn(Box<TurnEnded>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Progress {
    Running,
    Done,
    Failed,
    /// The turn ended before the block did.
    Interrupted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Folding {
    Open,
    /// At most this many lines, from the beginning.
    First(usize),
    /// At most this many lines, from the end.
    Last(usize),
    /// Only the summary. The block may be in a group.
    Closed,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Message {
    /// Texts are merged: no two are adjacent.
    pub content: Vec<Content>,
    pub steered: bool,
    pub(crate) id: Option<Untrusted>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// An answer's text is Markdown.
    Text(Untrusted),
    Other(Value),
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolCall {
    /// The newest value of each member, as the agent wrote it.
    pub(crate) members: Map<String, Value>,
    pub(crate) folder: Option<Arc<str>>,
    pub(crate) terminals: Vec<Terminal>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delegation {
    pub session_name: Untrusted,
    /// None if the call names none; then the default agent works.
    pub agent: Option<Untrusted>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolContent {
    /// `None` if it cannot be read.
    Text(Option<Untrusted>),
    Diff(FileDiff),
    /// A terminal without output, or a type that this version does not know.
    Other,
}

/// Reads a line number; any other value is none.
fn line<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Value::deserialize(deserializer).map(|value| value.as_u64())
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Location {
    pub path: Untrusted,
    /// From 1.
    #[serde(default, deserialize_with = "line")]
    pub line: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    pub entries: Vec<PlanEntry>,
    /// The plan as Markdown or its address, if it has no steps.
    pub text: Option<Untrusted>,
    pub(crate) id: Option<Untrusted>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanEntry {
    pub content: Untrusted,
    /// `high`, `medium` or `low`.
    #[serde(skip_serializing_if = "Untrusted::is_empty")]
    pub priority: Untrusted,
    /// `pending`, `in_progress` or `completed`.
    #[serde(skip_serializing_if = "Untrusted::is_empty")]
    pub status: Untrusted,
}

/// An answered question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// For `_acpd/interaction/answer`; empty if not known.
    pub id: Untrusted,
    pub tool_call: Option<Untrusted>,
    /// The call, or the message of a form or page.
    pub about: Text,
    /// Such as `allowed once`, `denied` or `filled in`.
    pub verdict: Text,
    /// The client and its place, or the rule.
    pub by: Text,
    pub is_refused: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Subagent {
    pub session: Untrusted,
    pub title: Option<Untrusted>,
    /// `running`, `idle`, `requires_action`, `unknown` or an unknown value.
    pub state: Option<Untrusted>,
    pub blocks: Vec<Block>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    pub severity: Severity,
    pub text: Text,
    pub topic: Topic,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Topic {
    Any,
    Restored(RestoreLevel),
    Mode(Untrusted),
    /// The id of a compaction.
    Compaction(Untrusted),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Info,
    Warning,
    Error,
}

/// Returns a path relative to the session's folder; a path outside is unchanged.
pub(crate) fn short(path: &Untrusted, folder: &str) -> Untrusted {
    let inside = path.raw().strip_prefix(folder.trim_end_matches('/'));
    let inside = inside.and_then(|rest| rest.strip_prefix('/')).filter(|rest| !rest.is_empty());
    inside.map_or_else(|| path.clone(), Untrusted::from)
}

impl Block {
    pub(crate) fn new(seq: u64, kind: Kind, progress: Progress) -> Block {
        let (id, folding) = (Id::Line(seq), Folding::Open);
        Block {
            id,
            last: seq,
            kind,
            progress,
            folding,
            is_asked: false,
            is_refused: false,
            source: None,
        }
    }

    pub fn consent(&self) -> Option<Consent> {
        let asked = self.is_asked.then_some(Consent::Asked);
        asked.or_else(|| self.is_refused.then_some(Consent::Refused))
    }

    pub fn source(&self) -> Option<&Source> {
        self.source.as_deref()
    }

    pub fn tool_call(&self) -> Option<&ToolCall> {
        match &self.kind {
            Kind::Call(call) | Kind::Edit(call) | Kind::Command(call) => Some(call),
            _ => None,
        }
    }

    pub fn message(&self) -> Option<&Message> {
        match &self.kind {
            Kind::Prompt(message) | Kind::Answer(message) | Kind::Thought(message) => Some(message),
            _ => None,
        }
    }
}

impl Kind {
    pub fn name(&self) -> &'static str {
        self.into()
    }
}

impl Id {
    pub fn seq(self) -> u64 {
        match self {
            Id::Line(seq) | Id::Around(seq) => seq,
        }
    }
}

impl Message {
    pub fn text(&self) -> Untrusted {
        let texts = self.content.iter().filter_map(|part| match part {
            Content::Text(text) => Some(text.raw()),
            Content::Other(_) => None,
        });
        texts.collect::<String>().into()
    }

    pub(crate) fn others(&self) -> impl Iterator<Item = &Value> {
        self.content.iter().filter_map(|part| match part {
            Content::Text(_) => None,
            Content::Other(block) => Some(block),
        })
    }
}

impl ToolCall {
    pub fn id(&self) -> Untrusted {
        text(&self.members, "toolCallId").unwrap_or_default()
    }

    /// Returns none if the title is blank.
    pub fn title(&self) -> Option<Untrusted> {
        text(&self.members, "title").filter(|title| !title.raw().trim().is_empty())
    }

    /// `read`, `edit`, `execute`, …
    pub fn kind(&self) -> Option<&str> {
        self.members.get("kind").and_then(Value::as_str)
    }

    /// `pending`, `in_progress`, `completed`, `failed`, or of a later version of the protocol `paused`,
    /// `cancelled` or an unknown value.
    pub fn status(&self) -> Option<&str> {
        self.members.get("status").and_then(Value::as_str)
    }

    pub fn content(&self) -> Vec<ToolContent> {
        let output =
            |terminal: &Terminal| terminal.text().map(|text| ToolContent::Text(Some(text)));
        let Some(items) = self.members.get("content").and_then(Value::as_array) else {
            return self.terminals.iter().filter_map(output).collect();
        };
        // Each terminal once, and not before it has output.
        let mut shown: Vec<&str> = Vec::new();
        let read = |item: &Value| match item["type"].as_str() {
            Some("content") => match item.get("content") {
                Some(Value::Object(content)) => {
                    let text = text(content, "text").map(|text| ToolContent::Text(Some(text)));
                    vec![text.unwrap_or(ToolContent::Other)]
                }
                _ => vec![ToolContent::Text(None)],
            },
            Some("diff") => match FileDiff::read(item) {
                Ok(files) => files.into_iter().map(ToolContent::Diff).collect(),
                Err(text) => vec![ToolContent::Text(Some(text))],
            },
            Some("terminal") => {
                let is_it = |of: &&Terminal| item["terminalId"] == *of.id.raw();
                let of = self.terminals.iter().find(is_it);
                let of = of.filter(|of| !shown.contains(&of.id.raw()));
                shown.extend(of.map(|terminal| terminal.id.raw()));
                of.and_then(output).into_iter().collect()
            }
            _ => vec![ToolContent::Other],
        };
        items.iter().flat_map(read).collect()
    }

    /// Returns whether the call shows a terminal. Agents name it like the call, if they say no more.
    pub(crate) fn shows(&self, terminal: &str) -> bool {
        match self.members.get("content").and_then(Value::as_array) {
            Some(items) => items.iter().any(|item| item["terminalId"] == *terminal),
            None => self.has_id(terminal),
        }
    }

    pub fn diffs(&self) -> Vec<FileDiff> {
        let diffs = self.content().into_iter().filter_map(|item| match item {
            ToolContent::Diff(file) => Some(file),
            _ => None,
        });
        diffs.collect()
    }

    pub fn locations(&self) -> Vec<Location> {
        lenient::list(self.members.get("locations"))
    }

    pub fn short(&self, path: &Untrusted) -> Untrusted {
        self.folder.as_ref().map_or_else(|| path.clone(), |folder| short(path, folder))
    }

    /// Returns a location as `path:line`.
    pub fn place(&self, location: &Location) -> Text {
        let path = self.short(&location.path);
        match location.line {
            Some(line) => text!("{}:{}", path, line),
            None => path.into(),
        }
    }

    pub fn raw_input(&self) -> Option<&Value> {
        self.members.get("rawInput")
    }

    /// Returns the work that the call delegates with acpd's `prompt` tool.
    pub fn delegation(&self) -> Option<Delegation> {
        let input = self.raw_input()?;
        // Some agents name the server in the title. Others name it in the input, with the arguments
        // one level below.
        let is_own = |text: &str| text.to_ascii_lowercase().contains("acpd");
        let server = input.get("server").and_then(Value::as_str);
        if !server.is_some_and(is_own) && !self.title().is_some_and(|title| is_own(title.raw())) {
            return None;
        }
        let arguments = input.get("arguments").unwrap_or(input).as_object()?;
        text(arguments, "prompt")?;
        let session_name = text(arguments, "session_name")?;
        Some(Delegation { session_name, agent: text(arguments, "agent") })
    }

    pub fn exit_code(&self) -> Option<i64> {
        let told = |name: &&str| self.members.get("rawOutput")?.get(*name)?.as_i64();
        let told = EXIT_CODES.iter().find_map(told);
        told.or_else(|| self.terminals.iter().rev().find_map(|terminal| terminal.exit_code))
    }

    /// Unchanged values from the agent; not escaped.
    pub fn members(&self) -> &Map<String, Value> {
        &self.members
    }

    pub(crate) fn has_id(&self, id: &str) -> bool {
        self.members.get("toolCallId").and_then(Value::as_str) == Some(id)
    }

    /// Applies an update; other members that are null mean unchanged.
    pub(crate) fn change(&mut self, mut update: Map<String, Value>, cleared: &[String]) {
        if let Some(content) = update.remove("content").filter(|content| !content.is_null()) {
            update.insert("content".to_owned(), lenient::items(content));
        }
        self.members.extend(update.into_iter().filter(|(_, value)| !value.is_null()));
        for name in cleared {
            match name.as_str() {
                "content" => drop(self.members.insert(name.clone(), Value::Array(Vec::new()))),
                name => drop(self.members.remove(name)),
            }
        }
    }

    /// Adds an item to the content.
    pub(crate) fn add_content(&mut self, item: Value) {
        if let Value::Array(items) = lenient::items(item)
            && let Value::Array(all) =
                self.members.entry("content").or_insert_with(|| Value::Array(Vec::new()))
        {
            all.extend(items);
            // Twice, so that items are seldom moved.
            if all.len() > 2 * MAX_ITEMS {
                all.drain(..all.len() - MAX_ITEMS);
            }
        }
    }
}

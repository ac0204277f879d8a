//! Blocks: what a person sees of a conversation, one under the other.

use std::sync::Arc;

use acpd_api::{CutShort, Outcome, RestoreLevel, Untrusted};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use strum::IntoStaticStr;

use crate::lenient;
use crate::text;
use crate::text::Text;

/// Members of a raw output that have the exit code of a command.
pub(crate) const EXIT_CODES: [&str; 2] = ["exitCode", "exit_code"];

/// A part of a conversation that is shown as one.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// Stays the same as long as it exists.
    pub id: Id,
    /// The last line that changed it.
    pub last: u64,
    pub kind: Kind,
    pub progress: Progress,
    /// How much of it is shown by rule. A person's choice beats the rule.
    pub folding: Folding,
    /// The beginning of the block was not read.
    pub partial: bool,
    /// A call whose question waits for an answer.
    pub(crate) is_asked: bool,
    /// A call that was refused, by a person or a rule.
    pub(crate) is_refused: bool,
    /// The notice of acpd that it was made of.
    pub(crate) source: Option<Box<Source>>,
}

/// A notice of acpd, as it came.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    pub method: String,
    /// All of it but the session and `_meta`: data, not for a terminal.
    pub params: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Id {
    /// The number of its first line in the journal.
    Line(u64),
    /// A subagent whose announcement was not read: the number of the first line that is known of it, which is that of
    /// a block in it, too.
    Around(u64),
}

/// State of the question whether a tool call may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Consent {
    /// It waits for an answer.
    Asked,
    Refused,
}

/// Kinds of blocks, with their contents.
#[derive(Debug, Clone, PartialEq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Kind {
    /// A message of the user.
    Prompt(Message),
    /// A message of the agent.
    Answer(Message),
    /// A thought of the agent.
    Thought(Message),
    /// A tool call that is no edit and no command.
    Call(ToolCall),
    /// A tool call that changes files.
    Edit(ToolCall),
    /// A tool call that runs a command.
    Command(ToolCall),
    /// Steps that the agent plans.
    Plan(Plan),
    /// A question of the agent.
    Question(Question),
    /// A subagent, and what it does.
    Subagent(Subagent),
    /// A sentence of acpd or of the agent.
    Notice(Notice),
    /// Something that is left out here.
    Gap(Gap),
    Turn(TurnEnd),
}

/// State of a block: it runs, or how it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Progress {
    Running,
    Done,
    Failed,
    /// The turn is over, and the block had no end.
    Interrupted,
}

/// How much of a block is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Folding {
    Open,
    /// The first lines, up to this number.
    First(usize),
    /// The last lines, up to this number.
    Last(usize),
    /// The summary alone. The block may be part of a group.
    Closed,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Message {
    /// In order; no two texts follow each other.
    pub content: Vec<Content>,
    /// Sent into a turn that was running.
    pub steered: bool,
    pub(crate) id: Option<Untrusted>,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Text; of an answer it is Markdown.
    Text(Untrusted),
    /// Anything else, as it came: a picture, a file.
    Other(Value),
}

/// A tool call, as far as the agent reported it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolCall {
    /// The newest value of each member, as the agent wrote it.
    pub(crate) members: Map<String, Value>,
    /// The folder of its session.
    pub(crate) folder: Option<Arc<str>>,
}

/// Work that a call gives to another agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delegation {
    /// Name of the session that does the work.
    pub session_name: Untrusted,
    /// The agent of a new session; the default one if the call names none.
    pub agent: Option<Untrusted>,
}

/// Something that a tool produced.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToolContent {
    /// A content block; only text is shown.
    Content {
        /// The block; none if it cannot be read.
        content: Option<ToolText>,
    },
    /// A change of a file.
    Diff(FileDiff),
    /// A terminal or a kind that this version does not know.
    #[serde(other)]
    Other,
}

/// The text of a content block, if it has one.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ToolText {
    pub text: Option<Untrusted>,
}

/// A number of a line; another value is none.
fn line<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Value::deserialize(deserializer).map(|value| value.as_u64())
}

/// A change of a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileDiff {
    #[serde(default)]
    pub path: Untrusted,
    /// The text before; absent for a new file.
    pub old_text: Option<Untrusted>,
    #[serde(default)]
    pub new_text: Untrusted,
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Location {
    pub path: Untrusted,
    /// The line, from 1.
    #[serde(default, deserialize_with = "line")]
    pub line: Option<u64>,
}

/// Steps that an agent plans, or a text instead of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    pub entries: Vec<PlanEntry>,
    /// The plan as Markdown, or where it is, if it has no steps.
    pub text: Option<Untrusted>,
    pub(crate) id: Option<Untrusted>,
}

/// A step of a plan.
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

/// A question of an agent, and its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The id for `_acpd/interaction/answer`; empty if it is not known.
    pub id: Untrusted,
    /// The tool call that it is about.
    pub tool_call: Option<Untrusted>,
    pub asked: acpd_api::Question,
    pub answer: Answer,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The answer in words: `allowed once`, `denied`, `filled in`.
    pub verdict: Text,
    /// The source of the answer: a client and where, or a rule.
    pub by: Text,
    pub is_automatic: bool,
    /// The agent may not do it.
    pub is_refused: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Subagent {
    pub session: Untrusted,
    /// The task of the subagent.
    pub title: Option<Untrusted>,
    /// `running`, `idle`, `requires_action`, `unknown` or another.
    pub state: Option<Untrusted>,
    /// Blocks of the subagent in this turn.
    pub blocks: Vec<Block>,
}

/// A sentence for the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// How much it matters.
    pub severity: Severity,
    pub text: Text,
    pub topic: Topic,
}

/// Subject of a notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Topic {
    Any,
    /// The session was restored, or could not be.
    Restored(RestoreLevel),
    /// The session is in this mode now.
    Mode(Untrusted),
    /// The conversation is made shorter: the id of that.
    Compaction(Untrusted),
}

/// How much a notice matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// For those who want to know.
    Info,
    /// Something to look at.
    Warning,
    Error,
}

/// A line that was too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// How long it is, in bytes.
    pub bytes: u64,
    pub limit: u64,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnEnd {
    /// Number of the turn, from 1.
    pub turn: u64,
    /// When it began (ms since the epoch); 0 if that is not known.
    pub started_at: u64,
    /// When it ended (ms since the epoch).
    pub at: u64,
    pub outcome: Outcome,
    /// The cause of an early end, and the client that did it.
    pub cut_short: Option<CutShort>,
    /// The files that it has changed.
    pub files: Vec<Untrusted>,
    /// The tool calls in it.
    pub tools: Option<u32>,
}

/// A path inside of a session's folder without that folder; another path as it is.
pub(crate) fn short(path: &Untrusted, folder: &str) -> Untrusted {
    let inside = path.raw().strip_prefix(folder.trim_end_matches('/'));
    let inside = inside.and_then(|rest| rest.strip_prefix('/')).filter(|rest| !rest.is_empty());
    inside.map_or_else(|| path.clone(), Untrusted::from)
}

impl Block {
    /// Returns whether only the summary is shown by rule.
    pub fn is_closed(&self) -> bool {
        self.folding == Folding::Closed
    }

    /// State of the question about a call, if it matters.
    pub fn consent(&self) -> Option<Consent> {
        let asked = self.is_asked.then_some(Consent::Asked);
        asked.or_else(|| self.is_refused.then_some(Consent::Refused))
    }

    /// The notice of acpd that it was made of.
    pub fn source(&self) -> Option<&Source> {
        self.source.as_deref()
    }

    pub fn tool_call(&self) -> Option<&ToolCall> {
        match &self.kind {
            Kind::Call(call) | Kind::Edit(call) | Kind::Command(call) => Some(call),
            _ => None,
        }
    }

    pub(crate) fn tool_call_mut(&mut self) -> Option<&mut ToolCall> {
        match &mut self.kind {
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
    /// Returns the kind as programs name it.
    pub fn name(&self) -> &'static str {
        self.into()
    }
}

impl Id {
    /// The line with which it begins in the journal.
    pub fn seq(self) -> u64 {
        match self {
            Id::Line(seq) | Id::Around(seq) => seq,
        }
    }
}

impl Message {
    /// Returns the texts, one after the other.
    pub fn text(&self) -> Untrusted {
        let texts = self.content.iter().filter_map(|part| match part {
            Content::Text(text) => Some(text.raw()),
            Content::Other(_) => None,
        });
        texts.collect::<String>().into()
    }
}

impl ToolCall {
    pub fn id(&self) -> Untrusted {
        self.text("toolCallId").unwrap_or_default()
    }

    /// Returns the agent's description of the call; none if it is blank.
    pub fn title(&self) -> Option<Untrusted> {
        self.text("title").filter(|title| !title.raw().trim().is_empty())
    }

    /// `read`, `edit`, `execute`, …
    pub fn kind(&self) -> Option<&str> {
        self.members.get("kind").and_then(Value::as_str)
    }

    /// `pending`, `in_progress`, `completed` or `failed`.
    pub fn status(&self) -> Option<&str> {
        self.members.get("status").and_then(Value::as_str)
    }

    pub fn content(&self) -> Vec<ToolContent> {
        self.list("content")
    }

    /// Returns the changes of files in the content.
    pub fn diffs(&self) -> Vec<FileDiff> {
        let diffs = self.content().into_iter().filter_map(|item| match item {
            ToolContent::Diff(file) => Some(file),
            _ => None,
        });
        diffs.collect()
    }

    /// Files that it touches.
    pub fn locations(&self) -> Vec<Location> {
        self.list("locations")
    }

    /// A path as people read it in this session.
    pub fn short(&self, path: &Untrusted) -> Untrusted {
        self.folder.as_ref().map_or_else(|| path.clone(), |folder| short(path, folder))
    }

    /// A place as `path:line`.
    pub fn place(&self, location: &Location) -> Text {
        let path = self.short(&location.path);
        match location.line {
            Some(line) => text!("{}:{}", path, line),
            None => path.into(),
        }
    }

    /// Returns the input of the tool.
    pub fn raw_input(&self) -> Option<&Value> {
        self.members.get("rawInput")
    }

    /// Returns the work that the call gives to another agent with acpd's tool `prompt`.
    pub fn delegation(&self) -> Option<Delegation> {
        let input = self.raw_input()?;
        // Some agents name the server in the title, others in the input, with the arguments below.
        let is_own = |text: &str| text.to_ascii_lowercase().contains("acpd");
        let server = input.get("server").and_then(Value::as_str);
        if !server.is_some_and(is_own) && !self.title().is_some_and(|title| is_own(title.raw())) {
            return None;
        }
        let arguments = input.get("arguments").unwrap_or(input);
        let text = |name| arguments.get(name).and_then(Value::as_str).map(Untrusted::from);
        text("prompt")?;
        Some(Delegation { session_name: text("session_name")?, agent: text("agent") })
    }

    /// Returns the exit code of the command, if the agent reports one.
    pub fn exit_code(&self) -> Option<i64> {
        let output = self.members.get("rawOutput")?;
        EXIT_CODES.iter().find_map(|name| output.get(name)?.as_i64())
    }

    /// All members, as the agent wrote them: data, not for a terminal.
    pub fn members(&self) -> &Map<String, Value> {
        &self.members
    }

    pub(crate) fn has_id(&self, id: &str) -> bool {
        self.members.get("toolCallId").and_then(Value::as_str) == Some(id)
    }

    /// Takes what is new; null means unchanged.
    pub(crate) fn change(&mut self, mut update: Map<String, Value>) {
        if let Some(content) = update.remove("content").filter(|content| !content.is_null()) {
            update.insert("content".to_owned(), lenient::items(content));
        }
        self.members.extend(update.into_iter().filter(|(_, value)| !value.is_null()));
    }

    fn text(&self, name: &str) -> Option<Untrusted> {
        self.members.get(name).and_then(Value::as_str).map(Untrusted::from)
    }

    /// Reads a list, without the items that cannot be read.
    fn list<T: DeserializeOwned>(&self, name: &str) -> Vec<T> {
        let items = self.members.get(name).and_then(Value::as_array);
        items.into_iter().flatten().filter_map(|item| T::deserialize(item).ok()).collect()
    }
}

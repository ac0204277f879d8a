//! The parts of a `session/update` that are shown.
//!
//! Reading is lenient: what is missing or unknown is simply not shown.

use acpd_api::Untrusted;
use serde::Deserialize;
use serde_json::Value;

/// One update.
#[derive(Debug, Deserialize)]
#[serde(tag = "sessionUpdate", rename_all = "snake_case")]
pub(crate) enum Update {
    /// A piece of what the user said.
    UserMessageChunk(Chunk),
    /// A piece of the answer.
    AgentMessageChunk(Chunk),
    /// A piece of what the agent thinks.
    AgentThoughtChunk(Chunk),
    /// A tool call begins.
    ToolCall(ToolCall),
    /// A tool call changes.
    #[serde(rename = "tool_call_update")]
    ToolCallChanged(ToolCall),
    /// The whole plan.
    Plan(Plan),
    /// Another mode.
    #[serde(rename = "current_mode_update", rename_all = "camelCase")]
    Mode {
        /// Its id.
        current_mode_id: Untrusted,
    },
    /// All options, some of them changed.
    #[serde(rename = "config_option_update", rename_all = "camelCase")]
    Options {
        /// The complete list.
        config_options: Value,
    },
    /// How much the session has used.
    #[serde(rename = "usage_update")]
    Usage(Usage),
    /// Something that the agent wants a person to know.
    Notice(Notice),
    /// The agent makes the conversation shorter.
    #[serde(rename = "compaction_update")]
    Compaction(Compaction),
    /// A subagent, announced or changed.
    #[serde(rename = "subagent_update")]
    Subagent(Subagent),
    /// Everything that is quiet: commands, titles and what is not known yet.
    #[serde(other)]
    Quiet,
}

/// A piece of a message.
#[derive(Debug, Deserialize)]
pub(crate) struct Chunk {
    /// What it holds.
    pub(crate) content: Content,
}

/// A content block.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Content {
    /// Text.
    Text {
        /// The text.
        text: Untrusted,
    },
    /// A picture.
    Image(Blob),
    /// A sound.
    Audio(Blob),
    /// Where something is.
    ResourceLink {
        /// Its address.
        uri: Untrusted,
        /// Its name.
        name: Option<Untrusted>,
    },
    /// Something with its content.
    Resource {
        /// What.
        resource: Resource,
    },
    /// A kind that this version does not know.
    #[serde(other)]
    Unknown,
}

/// Data in base64.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Blob {
    /// The data.
    #[serde(default)]
    pub(crate) data: Untrusted,
    /// Its type.
    pub(crate) mime_type: Option<Untrusted>,
}

/// An embedded resource; its content is not shown.
#[derive(Debug, Deserialize)]
pub(crate) struct Resource {
    /// Its address.
    pub(crate) uri: Untrusted,
}

/// A tool call or a change of one; absent members are unchanged.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ToolCall {
    /// Which one.
    #[serde(rename = "toolCallId")]
    pub(crate) id: Untrusted,
    /// What it does, in words.
    pub(crate) title: Option<Untrusted>,
    /// `read`, `edit`, `execute`, …
    pub(crate) kind: Option<Untrusted>,
    /// `pending`, `in_progress`, `completed` or `failed`.
    pub(crate) status: Option<Untrusted>,
    /// What it produced.
    pub(crate) content: Option<Vec<ToolContent>>,
    /// Files that it touches.
    pub(crate) locations: Option<Vec<Location>>,
    /// What the tool is given.
    pub(crate) raw_input: Option<Value>,
}

impl ToolCall {
    /// Its kind, to match.
    pub(crate) fn kind(&self) -> Option<&str> {
        self.kind.as_ref().map(Untrusted::raw)
    }

    /// Its status, to match.
    pub(crate) fn status(&self) -> Option<&str> {
        self.status.as_ref().map(Untrusted::raw)
    }

    /// Its title, or its kind, or its id.
    pub(crate) fn title(&self) -> &Untrusted {
        let title = self.title.as_ref().filter(|title| !title.raw().trim().is_empty());
        title.or(self.kind.as_ref()).unwrap_or(&self.id)
    }

    /// Takes what is new.
    pub(crate) fn change(&mut self, update: ToolCall) {
        let ToolCall { id, title, kind, status, content, locations, raw_input } = update;
        self.id = id;
        self.title = title.or(self.title.take());
        self.kind = kind.or(self.kind.take());
        self.status = status.or(self.status.take());
        self.content = content.or(self.content.take());
        self.locations = locations.or(self.locations.take());
        self.raw_input = raw_input.or(self.raw_input.take());
    }
}

/// Something that a tool produced.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ToolContent {
    /// A content block; only text is shown.
    Content {
        /// The block.
        content: ToolText,
    },
    /// A change of a file.
    Diff(FileDiff),
    /// A terminal or a kind that this version does not know.
    #[serde(other)]
    Other,
}

/// The text of a content block, if it has one.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct ToolText {
    /// The text.
    pub(crate) text: Option<Untrusted>,
}

/// A change of a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FileDiff {
    /// The file.
    pub(crate) path: Untrusted,
    /// Its text before; absent for a new file.
    pub(crate) old_text: Option<Untrusted>,
    /// Its text after.
    #[serde(default)]
    pub(crate) new_text: Untrusted,
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Location {
    /// The file.
    pub(crate) path: Untrusted,
    /// The line, from 1.
    pub(crate) line: Option<u64>,
}

/// A plan.
#[derive(Debug, Deserialize)]
pub(crate) struct Plan {
    /// In order.
    pub(crate) entries: Vec<PlanEntry>,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[derive(Default)]
pub(crate) struct PlanEntry {
    /// What to do.
    pub(crate) content: Untrusted,
    /// `high`, `medium` or `low`.
    pub(crate) priority: Untrusted,
    /// `pending`, `in_progress` or `completed`.
    pub(crate) status: Untrusted,
}

/// How much a session has used.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Usage {
    /// Tokens of the context.
    pub(crate) used: u64,
    /// Tokens that fit into it; 0 if that is not known.
    #[serde(default)]
    pub(crate) size: u64,
    /// Money.
    pub(crate) cost: Option<Cost>,
}

/// Money.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Cost {
    /// How much, in whole units.
    pub(crate) amount: f64,
    /// Of what: `USD`.
    #[serde(default)]
    pub(crate) currency: Untrusted,
}

/// Something that the agent wants a person to know.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Notice {
    /// `info`, `warning`, `error` or another.
    pub(crate) severity: Untrusted,
    /// In short.
    pub(crate) title: Untrusted,
    /// In full.
    pub(crate) description: Option<Untrusted>,
}

/// A change of a subagent; absent members are unchanged.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Subagent {
    /// Its session.
    pub(crate) session_id: Untrusted,
    /// What it is for, in short.
    pub(crate) title: Option<Untrusted>,
    /// What it does.
    pub(crate) state: Option<SubagentState>,
}

/// What a subagent does.
#[derive(Debug, Deserialize)]
pub(crate) struct SubagentState {
    /// `running`, `idle`, `requires_action`, `unknown` or another.
    pub(crate) state: Untrusted,
}

/// A change of a compaction.
#[derive(Debug, Deserialize)]
pub(crate) struct Compaction {
    /// `in_progress`, `completed`, `failed`, `cancelled` or another.
    pub(crate) status: Option<Untrusted>,
    /// Why it failed.
    pub(crate) error: Option<Value>,
}

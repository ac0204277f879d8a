//! The methods of protocol v1, and the meaning of session updates.
//!
//! The hub handles some methods itself; every other one is routed by `params.sessionId`. Tests go
//! through the list, so that no method is forgotten.

/// An end of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The agent handles the call.
    Agent,
    /// The client handles the call.
    Client,
}

/// Handler of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The other side answers the call.
    Forward,
    /// acpd answers the call or decides about it.
    Hub,
}

use Answer::{Forward, Hub};
use Side::{Agent, Client};

/// Every known method: its name, its receiver, and its handler.
pub const METHODS: &[(&str, Side, Answer)] = &[
    ("initialize", Agent, Hub),
    ("authenticate", Agent, Hub),
    ("logout", Agent, Hub),
    ("session/new", Agent, Hub),
    ("session/load", Agent, Hub),
    ("session/resume", Agent, Hub),
    ("session/list", Agent, Hub),
    ("session/close", Agent, Hub),
    ("session/delete", Agent, Hub),
    ("session/prompt", Agent, Hub),
    ("session/cancel", Agent, Hub),
    ("session/set_mode", Agent, Forward),
    ("session/set_config_option", Agent, Forward),
    ("session/set_model", Agent, Forward), // No longer in the schema, still met.
    ("session/fork", Agent, Hub),
    ("session/archive", Agent, Hub),
    ("session/unarchive", Agent, Hub),
    ("session/status", Agent, Hub),
    ("session/set_title", Agent, Hub),
    ("session/options", Agent, Forward),
    // Of no schema: the first is an extension of several agents, the second an open proposal.
    ("_session/steering", Agent, Hub),
    ("session/inject", Agent, Hub),
    ("auth/status", Agent, Forward),
    ("providers/list", Agent, Forward),
    ("providers/set", Agent, Forward),
    ("providers/disable", Agent, Forward),
    ("mcp/message", Agent, Forward),
    ("$/cancel_request", Agent, Hub),
    ("$/cancelRequest", Agent, Hub), // No longer in the schema, still met.
    ("session/update", Client, Forward),
    ("session/request_permission", Client, Hub),
    ("fs/read_text_file", Client, Hub),
    ("fs/write_text_file", Client, Hub),
    ("terminal/create", Client, Hub),
    ("terminal/output", Client, Hub),
    ("terminal/wait_for_exit", Client, Hub),
    ("terminal/kill", Client, Hub),
    ("terminal/release", Client, Hub),
    ("elicitation/create", Client, Hub),
    ("elicitation/complete", Client, Hub),
    ("mcp/message", Client, Hub),
    ("auth/status_update", Client, Forward),
    ("$/cancel_request", Client, Hub),
    ("$/cancelRequest", Client, Hub), // No longer in the schema, still met.
];

/// Meaning of a `session/update` variant for the journal (protocol brief, section 3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpdateClass {
    /// A chunk of a message.
    Conversation,
    /// A tool call or a change of one.
    ToolCall,
    /// The last value counts.
    State(StateKey),
    /// Shown to attached clients, never replayed.
    Live,
    /// Cursors and suggestions: no conversation, and without state in acpd. Agents are not asked
    /// for them.
    NotAsked,
    /// Unknown, or appended like any other record.
    Other,
}

/// A piece of session state of which only the last value counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StateKey {
    /// The plan of the agent.
    Plan,
    /// The commands on offer.
    Commands,
    /// The mode of the session.
    Mode,
    /// The session's config options.
    Options,
    /// Title and time of the last change. The fields merge: absent is unchanged, `null` clears.
    Info,
    /// Context size and cost.
    Usage,
}

impl StateKey {
    /// All keys.
    pub const ALL: [Self; 6] =
        [Self::Plan, Self::Commands, Self::Mode, Self::Options, Self::Info, Self::Usage];
}

/// The class of a `sessionUpdate` value.
pub fn classify_update(kind: &str) -> UpdateClass {
    match kind {
        "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk" => {
            UpdateClass::Conversation
        }
        "tool_call" | "tool_call_update" => UpdateClass::ToolCall,
        "plan" => UpdateClass::State(StateKey::Plan),
        "available_commands_update" => UpdateClass::State(StateKey::Commands),
        "current_mode_update" => UpdateClass::State(StateKey::Mode),
        "config_option_update" => UpdateClass::State(StateKey::Options),
        "session_info_update" => UpdateClass::State(StateKey::Info),
        "usage_update" => UpdateClass::State(StateKey::Usage),
        "notice" => UpdateClass::Live,
        "cursor_update" | "prompt_suggestions_update" => UpdateClass::NotAsked,
        _ => UpdateClass::Other,
    }
}

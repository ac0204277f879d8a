//! The meaning of session updates.

/// Meaning of a `session/update` variant for the journal.
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

/// A piece of session state of which only the last value counts. The order is on disk.
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

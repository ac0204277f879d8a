//! Messages of acpd, which serialize to params of protocol v1.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::read::Implementation;

/// acpd's services for agents without an editor's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Services {
    /// acpd offers `fs/*`.
    pub fs: bool,
    /// acpd offers `terminal/*`.
    pub terminal: bool,
}

/// The `initialize` params for agents: protocol version 1, and only capabilities that acpd has
/// without a client. Questions wait for a user, who can always answer them from a terminal.
/// `subagents`: the agent may show the sessions of its subagents.
pub fn initialize_params(
    client_info: &Implementation,
    services: Services,
    subagents: bool,
) -> Value {
    let Services { fs, terminal } = services;
    let mut capabilities = json!({
        "fs": {"readTextFile": fs, "writeTextFile": fs},
        "terminal": terminal,
        "session": {"configOptions": {"boolean": {}}, "notices": {}, "compaction": {}},
        "plan": {},
        "elicitation": {"form": {}, "url": {}},
    });
    if subagents {
        capabilities["subagents"] = json!({});
    }
    json!({"protocolVersion": 1, "clientCapabilities": capabilities, "clientInfo": client_info})
}

/// The params of `session/set_mode`.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SetModeParams<'a> {
    /// Id of the session.
    pub session_id: &'a str,
    /// The mode to switch to.
    pub mode_id: &'a str,
}

/// The params of `session/set_config_option`.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SetConfigOptionParams<'a> {
    /// Id of the session.
    pub session_id: &'a str,
    /// Id of the option.
    pub config_id: &'a str,
    /// `boolean` for a boolean value, otherwise absent.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    /// Value of the option.
    value: &'a RawValue,
}

impl<'a> SetConfigOptionParams<'a> {
    /// The params for a value as [`ConfigOption`](super::ConfigOption) reads it: a JSON string or
    /// boolean.
    pub fn new(session_id: &'a str, config_id: &'a str, value: &'a RawValue) -> Self {
        Self {
            session_id,
            config_id,
            kind: matches!(value.get(), "true" | "false").then_some("boolean"),
            value,
        }
    }
}

/// The params of `_session/steering` for these content blocks. The message never becomes an
/// unrequested turn.
pub fn steering_params(session_id: &str, prompt: &[Value]) -> Value {
    let meta = json!({"steering": {"idleBehavior": "promptRequired"}});
    json!({"sessionId": session_id, "prompt": prompt, "_meta": meta})
}

/// The params of a `session/update` by acpd.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionUpdate<'a> {
    /// Id of the session.
    pub session_id: &'a str,
    /// Content of the update.
    pub update: Update<'a>,
}

/// The updates that acpd sends itself.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(tag = "sessionUpdate", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Update<'a> {
    /// A block of a user's message, for the clients that did not send it.
    UserMessageChunk {
        /// The block as the sender wrote it.
        content: &'a RawValue,
        /// Separates two messages in a row.
        #[serde(skip_serializing_if = "Option::is_none")]
        message_id: Option<&'a str>,
    },
    /// A tool call whose agent died.
    ToolCallUpdate {
        /// Id of the tool call.
        tool_call_id: &'a str,
        /// Status of the tool call: `failed`.
        status: &'static str,
    },
    /// A mode that another client has set.
    CurrentModeUpdate {
        /// Id of the mode.
        current_mode_id: &'a str,
    },
    /// Options that another client has set.
    ConfigOptionUpdate {
        /// The complete list as the agent wrote it.
        config_options: &'a RawValue,
    },
    /// A title that another client has set.
    SessionInfoUpdate {
        /// The title; `null` removes it.
        title: Option<&'a str>,
    },
}

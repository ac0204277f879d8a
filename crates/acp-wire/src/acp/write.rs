//! Messages of acpd, which serialize to params of protocol v1.

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::read::Implementation;

/// The `initialize` params for agents: protocol version 1, and only capabilities that acpd has
/// without a client.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeParams {
    protocol_version: u16,
    client_capabilities: Capabilities,
    client_info: Implementation,
}

#[derive(Debug, Clone, Default, Serialize)]
struct Capabilities {
    fs: Fs,
    terminal: bool,
    session: Session,
    plan: Supported,
    elicitation: Elicitation,
    #[serde(skip_serializing_if = "Option::is_none")]
    subagents: Option<Supported>,
}

/// Questions wait for a user, who can always answer them from a terminal.
#[derive(Debug, Clone, Default, Serialize)]
struct Elicitation {
    form: Supported,
    url: Supported,
}

#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Fs {
    read_text_file: bool,
    write_text_file: bool,
}

#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Session {
    config_options: ConfigOptions,
    notices: Supported,
    compaction: Supported,
}

#[derive(Debug, Clone, Default, Serialize)]
struct ConfigOptions {
    boolean: Supported,
}

/// Serializes to an empty object.
#[derive(Debug, Clone, Default, Serialize)]
struct Supported {}

/// acpd's services for agents without an editor's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Services {
    /// acpd offers `fs/*`.
    pub fs: bool,
    /// acpd offers `terminal/*`.
    pub terminal: bool,
}

impl InitializeParams {
    /// The params under the given name.
    pub fn new(client_info: Implementation, services: Services) -> Self {
        let Services { fs, terminal } = services;
        let client_capabilities = Capabilities {
            fs: Fs { read_text_file: fs, write_text_file: fs },
            terminal,
            ..Capabilities::default()
        };
        Self { protocol_version: 1, client_capabilities, client_info }
    }

    /// Sets whether the agent may show the sessions of its subagents.
    #[must_use]
    pub fn with_subagents(mut self, offered: bool) -> Self {
        self.client_capabilities.subagents = offered.then(Supported::default);
        self
    }
}

/// The params of `session/cancel`.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelParams<'a> {
    /// The session whose turn ends.
    pub session_id: &'a str,
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

/// Params of `_session/steering`. The message never becomes an unrequested turn.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SteeringParams<'a> {
    session_id: &'a str,
    prompt: &'a [Value],
    #[serde(rename = "_meta")]
    meta: Value,
}

impl<'a> SteeringParams<'a> {
    /// The params for these content blocks.
    pub fn new(session_id: &'a str, prompt: &'a [Value]) -> Self {
        let meta = json!({"steering": {"idleBehavior": "promptRequired"}});
        Self { session_id, prompt, meta }
    }
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
    #[serde(rename = "tool_call_update", serialize_with = "failed")]
    ToolCallFailed {
        /// Id of the tool call.
        tool_call_id: &'a str,
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

/// The params of `session/set_title`.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SetTitleParams<'a> {
    /// Id of the session.
    pub session_id: &'a str,
    /// New title of the session.
    pub title: &'a str,
}

fn failed<S: Serializer>(tool_call_id: &str, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Failed<'a> {
        tool_call_id: &'a str,
        status: &'static str,
    }
    Failed { tool_call_id, status: "failed" }.serialize(serializer)
}

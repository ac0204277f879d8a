//! Reading values leniently, and the `initialize` exchange.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::bound::{LONGEST_ID, NAME, SENTENCE, clipped};
use crate::legible::decode_lossy;
use crate::locate::locate;
use crate::scan::json;
use crate::version::Version;

/// A required part of a message that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {reason}")]
pub struct Unreadable {
    /// The shape that was expected.
    pub what: &'static str,
    /// Description of the problem.
    pub reason: String,
}

impl Unreadable {
    pub(super) fn missing(what: &'static str, field: &str) -> Self {
        Self { what, reason: format!("`{field}` is missing or of the wrong type") }
    }
}

/// Lenient access to the members of a JSON value.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a>(&'a str);

impl<'a> Reader<'a> {
    pub(crate) fn new(raw: &'a RawValue) -> Self {
        Self(raw.get())
    }

    fn at(self, path: &[&str]) -> Option<&'a str> {
        self.0.get(locate(self.0.as_bytes(), path)?)
    }

    pub(crate) fn text(self, path: &[&str]) -> Option<Cow<'a, str>> {
        json::decode(self.at(path)?)
    }

    /// A text to show, with U+FFFD for each lone surrogate.
    pub(crate) fn lossy(self, path: &[&str]) -> Option<Cow<'a, str>> {
        decode_lossy(self.at(path)?)
    }

    pub(super) fn string(self, path: &[&str]) -> Option<String> {
        self.text(path).map(Cow::into_owned)
    }

    /// An id up to [`LONGEST_ID`].
    pub(super) fn id(self, path: &[&str]) -> Option<String> {
        self.text(path).filter(|id| id.len() <= LONGEST_ID).map(Cow::into_owned)
    }

    /// A clipped name to show.
    pub(super) fn name(self, path: &[&str]) -> Option<String> {
        self.lossy(path).map(|name| clipped(&name, NAME))
    }

    pub(crate) fn integer(self, path: &[&str]) -> Option<i64> {
        self.at(path)?.parse().ok()
    }

    /// The raw value; `null` counts as absent.
    pub(crate) fn raw(self, path: &[&str]) -> Option<&'a RawValue> {
        let text = self.at(path).filter(|text| *text != "null")?;
        serde_json::from_str(text).ok()
    }

    pub(super) fn object(self, path: &[&str]) -> Option<Self> {
        self.at(path).filter(|text| text.starts_with('{')).map(Self)
    }

    /// The object under the first of these names that has one.
    fn first_object(self, names: &[&str]) -> Option<Self> {
        names.iter().find_map(|name| self.object(&[name]))
    }

    pub(super) fn supports(self, path: &[&str]) -> bool {
        self.at(path).is_some_and(|text| text == "true" || text.starts_with('{'))
    }

    pub(super) fn list(self, path: &[&str]) -> Vec<&'a RawValue> {
        let items = self.at(path).and_then(|text| serde_json::from_str(text).ok());
        items.unwrap_or_default()
    }

    pub(super) fn strings(self, path: &[&str]) -> Vec<String> {
        let items = self.list(path).into_iter();
        items.filter_map(|item| Reader::new(item).string(&[])).collect()
    }
}

impl Reader<'_> {
    fn names(self, path: &[&str]) -> Vec<String> {
        let members = self.raw(path).map(|raw| serde_json::from_str(raw.get()));
        let members: Option<BTreeMap<String, &RawValue>> = members.and_then(Result::ok);
        members.unwrap_or_default().into_keys().collect()
    }

    /// Reads variables as `{NAME: VALUE}` or as `[{name, value}]`.
    fn variables(self, path: &[&str]) -> Vec<(String, String)> {
        let Some(raw) = self.raw(path) else { return Vec::new() };
        if let Ok(map) = serde_json::from_str::<BTreeMap<String, String>>(raw.get()) {
            return map.into_iter().collect();
        }
        let items = self.list(path).into_iter().map(Reader::new);
        items.filter_map(|item| Some((item.string(&["name"])?, item.string(&["value"])?))).collect()
    }
}

/// Name and version of the peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Implementation {
    /// The name for programs.
    pub name: String,
    /// The name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Version of the peer, in any form.
    pub version: String,
}

impl Implementation {
    fn read(info: Reader<'_>) -> Option<Self> {
        Some(Self {
            name: info.name(&["name"])?,
            title: info.name(&["title"]),
            version: info.name(&["version"]).unwrap_or_default(),
        })
    }
}

/// An agent's answer to `initialize`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitializeResult {
    /// The version that the agent selects.
    pub protocol_version: u16,
    /// Capabilities of the agent.
    pub capabilities: AgentCapabilities,
    /// The ways to log in. An empty list does not mean logged in.
    pub auth_methods: Vec<AuthMethod>,
    /// Name and version of the agent.
    pub agent_info: Option<Implementation>,
}

/// Capabilities of an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AgentCapabilities {
    /// The agent supports `session/load`.
    pub load_session: bool,
    /// The agent supports `session/list`.
    pub list: bool,
    /// The agent supports `session/resume`.
    pub resume: bool,
    /// The agent supports `session/fork` (unstable).
    pub fork: bool,
    /// The agent supports `session/close`.
    pub close: bool,
    /// The agent supports `session/delete`.
    pub delete: bool,
    /// The agent supports `session/archive`, `session/unarchive` and the filter of `session/list`
    /// (unstable).
    pub archive: bool,
    /// The agent supports `session/set_title` (unstable).
    pub title: bool,
    /// The agent supports `session/status` (unstable).
    pub status: bool,
    /// The way to send a message into a running turn.
    pub steering: Option<Steering>,
    /// Prompts may have image blocks.
    pub image: bool,
    /// Prompts may have audio blocks.
    pub audio: bool,
    /// Prompts may have resource blocks.
    pub embedded_context: bool,
    /// The agent supports `logout`.
    pub logout: bool,
    /// The agent supports `auth/status` and its notification.
    pub auth_status: bool,
    /// The agent supports MCP servers over HTTP.
    pub mcp_http: bool,
    /// The agent supports MCP servers over SSE.
    pub mcp_sse: bool,
    /// The agent supports MCP servers in the client, over ACP itself.
    pub mcp_acp: bool,
}

/// The way to send a message into a running turn. The stable protocol has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steering {
    /// `_session/steering`, an extension of several agents.
    Extension,
    /// `session/inject` with the mode `steer`, an open proposal.
    Inject,
}

/// A way to log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthMethod {
    /// The id for `authenticate`.
    pub id: String,
    /// The name for people.
    pub name: String,
    /// Description for people.
    pub description: Option<String>,
    /// The `type`: `agent` (also when absent), `terminal`, or another.
    pub kind: String,
    /// Command for the user's terminal, for a method without `authenticate`.
    pub terminal: Option<TerminalLogin>,
    /// Names of the members of its `_meta`.
    pub meta: Vec<String>,
}

/// A login in the user's terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TerminalLogin {
    /// The program; `None` for the agent's own command line with `args` added.
    pub command: Option<String>,
    /// Arguments of the program.
    pub args: Vec<String>,
    /// Environment variables to set, by name.
    pub env: Vec<(String, String)>,
}

impl InitializeResult {
    /// Reads an `initialize` result. Fails without an integer `protocolVersion`.
    pub fn from_raw(raw: &RawValue) -> Result<Self, Unreadable> {
        let result = Reader::new(raw);
        // Agents of other protocol versions use the second name, as servers of MCP do.
        let capabilities = result.first_object(&["agentCapabilities", "capabilities"]);
        let can =
            |path: &[&str]| capabilities.is_some_and(|capabilities| capabilities.supports(path));
        Ok(Self {
            protocol_version: protocol_version(result, "initialize result")?,
            capabilities: AgentCapabilities {
                load_session: can(&["loadSession"]),
                list: can(&["sessionCapabilities", "list"]),
                resume: can(&["sessionCapabilities", "resume"]),
                fork: can(&["sessionCapabilities", "fork"]),
                close: can(&["sessionCapabilities", "close"]),
                delete: can(&["sessionCapabilities", "delete"]),
                archive: can(&["sessionCapabilities", "archive"]),
                title: can(&["sessionCapabilities", "title"]),
                status: can(&["sessionCapabilities", "status"]),
                steering: Steering::read(result),
                image: can(&["promptCapabilities", "image"]),
                audio: can(&["promptCapabilities", "audio"]),
                embedded_context: can(&["promptCapabilities", "embeddedContext"]),
                logout: can(&["auth", "logout"]),
                auth_status: can(&["auth", "status"]),
                mcp_http: can(&["mcpCapabilities", "http"]),
                mcp_sse: can(&["mcpCapabilities", "sse"]),
                mcp_acp: can(&["mcpCapabilities", "acp"]),
            },
            auth_methods: result
                .list(&["authMethods"])
                .into_iter()
                .filter_map(AuthMethod::read)
                .collect(),
            agent_info: result
                .first_object(&["agentInfo", "info", "serverInfo"])
                .and_then(Implementation::read),
        })
    }
}

impl Steering {
    /// Prefers the extension that reports the fate of a message that comes too late.
    fn read(result: Reader<'_>) -> Option<Self> {
        if result.supports(&["_meta", "steering", "supported"]) {
            return Some(Self::Extension);
        }
        let modes = result.strings(&["agentCapabilities", "session", "inject", "modes"]);
        modes.iter().any(|mode| mode == "steer").then_some(Self::Inject)
    }
}

impl AuthMethod {
    fn read(raw: &RawValue) -> Option<Self> {
        let method = Reader::new(raw);
        let id = method.id(&["id"])?;
        Some(Self {
            name: method.name(&["name"]).unwrap_or_else(|| id.clone()),
            description: method.lossy(&["description"]).map(|text| clipped(&text, SENTENCE)),
            kind: method.string(&["type"]).unwrap_or_else(|| "agent".into()),
            terminal: TerminalLogin::read(method),
            meta: method.names(&["_meta"]),
            id,
        })
    }
}

impl TerminalLogin {
    /// Also reads the form from before there was a `type`.
    fn read(method: Reader<'_>) -> Option<Self> {
        let is_terminal = |path: &[&str]| method.text(path).is_some_and(|kind| kind == "terminal");
        let from = if is_terminal(&["type"]) {
            method
        } else if is_terminal(&["_meta", "type"]) {
            method.object(&["_meta"])?
        } else {
            let hint = method.object(&["_meta", "terminal-auth"])?;
            hint.text(&["command"])?;
            hint
        };
        Some(Self {
            command: from.string(&["command"]).filter(|_| !is_terminal(&["type"])),
            args: from.strings(&["args"]),
            env: from.variables(&["env"]),
        })
    }
}

/// A client's `initialize` params.
#[derive(Debug, Clone)]
pub struct ClientInitialize<'a> {
    /// The newest version that the client speaks.
    pub protocol_version: u16,
    /// The version of the connection.
    pub version: Version,
    /// Name and version of the client.
    pub client_info: Option<Implementation>,
    /// Capabilities of the client.
    pub capabilities: ClientCapabilities,
    /// Capabilities as the client wrote them.
    pub raw_capabilities: Option<&'a RawValue>,
    /// The client's `_meta` object.
    pub meta: Option<&'a RawValue>,
}

/// Capabilities of a client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClientCapabilities {
    /// The client serves `fs/read_text_file`.
    pub fs_read: bool,
    /// The client serves `fs/write_text_file`.
    pub fs_write: bool,
    /// The client serves all `terminal/*` methods.
    pub terminal: bool,
    /// The client takes config options of type `boolean`.
    pub boolean_options: bool,
    /// The client takes the update `notice`.
    pub notices: bool,
    /// The client takes the updates `compaction_update` and `compaction_summary_chunk`.
    pub compaction: bool,
    /// The client takes the updates `plan_update` and `plan_removed`.
    pub plan: bool,
    /// The client takes the updates `subagent_update`, `session_message` and
    /// `session_message_chunk`.
    pub subagents: bool,
    /// The client shows forms.
    pub elicitation_form: bool,
    /// The client opens pages.
    pub elicitation_url: bool,
    /// The client runs the agent in a terminal for a login.
    pub auth_terminal: bool,
}

impl ClientCapabilities {
    /// A client that takes each kind of line, and serves nothing: in version 2 every client takes
    /// them.
    pub fn all_shown() -> Self {
        Self {
            boolean_options: true,
            notices: true,
            compaction: true,
            plan: true,
            subagents: true,
            ..Self::default()
        }
    }
}

impl<'a> ClientInitialize<'a> {
    /// Reads `initialize` params. Fails without an integer `protocolVersion`. `newest`: the newest
    /// version for clients. Some clients ask for 2 with the members of version 1, or with those of
    /// both: `info` decides.
    pub fn from_raw(raw: &'a RawValue, newest: Version) -> Result<Self, Unreadable> {
        let params = Reader::new(raw);
        let protocol_version = protocol_version(params, "initialize params")?;
        let offers = protocol_version >= Version::V2 as u16 && params.object(&["info"]).is_some();
        let version = newest.min(if offers { Version::V2 } else { Version::V1 });
        let [capabilities_names, info_names] = match version {
            Version::V1 => [["clientCapabilities", "capabilities"], ["clientInfo", "info"]],
            Version::V2 => [["capabilities", "clientCapabilities"], ["info", "clientInfo"]],
        };
        let capabilities = params.first_object(&capabilities_names);
        let can =
            |path: &[&str]| capabilities.is_some_and(|capabilities| capabilities.supports(path));
        let shown = match version {
            Version::V1 => ClientCapabilities {
                fs_read: can(&["fs", "readTextFile"]),
                fs_write: can(&["fs", "writeTextFile"]),
                terminal: can(&["terminal"]),
                boolean_options: can(&["session", "configOptions", "boolean"]),
                notices: can(&["session", "notices"]),
                compaction: can(&["session", "compaction"]),
                plan: can(&["plan"]),
                subagents: can(&["subagents"]),
                ..ClientCapabilities::default()
            },
            Version::V2 => ClientCapabilities::all_shown(),
        };
        Ok(Self {
            protocol_version,
            version,
            client_info: params.first_object(&info_names).and_then(Implementation::read),
            capabilities: ClientCapabilities {
                elicitation_form: can(&["elicitation", "form"]),
                elicitation_url: can(&["elicitation", "url"]),
                auth_terminal: can(&["auth", "terminal"]),
                ..shown
            },
            raw_capabilities: capabilities_names.iter().find_map(|name| params.raw(&[name])),
            meta: params.raw(&["_meta"]),
        })
    }
}

fn protocol_version(reader: Reader<'_>, what: &'static str) -> Result<u16, Unreadable> {
    let version = reader.integer(&["protocolVersion"]);
    version.and_then(|version| u16::try_from(version).ok()).ok_or_else(|| Unreadable {
        what,
        reason: "`protocolVersion` is not an integer from 0 to 65535".into(),
    })
}

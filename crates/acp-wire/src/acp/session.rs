//! Reading the messages of a session: setup, prompts, updates, permissions.

use std::borrow::Cow;
use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::read::{Reader, Unreadable};
use crate::bound::{LONGEST_ID, LONGEST_PATH};
use crate::id::Id;
use crate::locate::locate;

/// The params of every method with a session id, and of `session/new` and `session/fork`.
#[derive(Debug, Clone, Default)]
pub struct SessionParams<'a> {
    /// Id of the session.
    pub session_id: Option<Cow<'a, str>>,
    /// Working directory of the session.
    pub cwd: Option<String>,
    /// The MCP servers as the client wrote them.
    pub mcp_servers: Option<&'a RawValue>,
    /// Root directories in addition to `cwd`.
    pub additional_directories: Vec<String>,
    /// The client's `_meta` object.
    pub meta: Option<&'a RawValue>,
}

impl<'a> SessionParams<'a> {
    /// Reads the params. Every field is optional here; the caller knows the required ones of its
    /// method.
    pub fn from_raw(raw: &'a RawValue) -> Self {
        let params = Reader::new(raw);
        Self {
            session_id: params.text(&["sessionId"]),
            cwd: params.string(&["cwd"]),
            mcp_servers: params.raw(&["mcpServers"]),
            additional_directories: params.strings(&["additionalDirectories"]),
            meta: params.raw(&["_meta"]),
        }
    }
}

/// The result of `session/new` and `session/fork`.
#[derive(Debug, Clone)]
pub struct NewSessionResult<'a> {
    /// Id of the new session.
    pub session_id: Cow<'a, str>,
    /// Modes of the session.
    pub modes: Option<&'a RawValue>,
    /// The list of config options.
    pub config_options: Option<&'a RawValue>,
}

impl<'a> NewSessionResult<'a> {
    /// Reads the result. Fails without a `sessionId`, or with one that is empty or too long.
    pub fn from_raw(raw: &'a RawValue) -> Result<Self, Unreadable> {
        let result = Reader::new(raw);
        let what = "the result";
        let session_id = result.text(&["sessionId"]);
        let session_id = session_id.ok_or_else(|| Unreadable::missing(what, "sessionId"))?;
        if session_id.is_empty() {
            return Err(Unreadable { what, reason: "`sessionId` is empty".into() });
        }
        if session_id.len() > LONGEST_ID {
            let reason = format!("`sessionId` has more than {LONGEST_ID} bytes");
            return Err(Unreadable { what, reason });
        }
        Ok(Self {
            session_id,
            modes: result.raw(&["modes"]),
            config_options: result.raw(&["configOptions"]),
        })
    }
}

/// The mode state of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Modes {
    /// The mode of the session.
    pub current_mode_id: String,
    /// The modes to choose from.
    pub available: Vec<Mode>,
}

/// A mode of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mode {
    /// The id for `session/set_mode`.
    pub id: String,
    /// The name for people.
    pub name: String,
}

impl Modes {
    /// Reads a `modes` object. Fails without a `currentModeId` of valid length.
    pub fn from_raw(raw: &RawValue) -> Result<Self, Unreadable> {
        let modes = Reader::new(raw);
        let available = modes.list(&["availableModes"]).into_iter();
        Ok(Self {
            current_mode_id: modes
                .id(&["currentModeId"])
                .ok_or_else(|| Unreadable::missing("modes", "currentModeId"))?,
            available: available
                .filter_map(|item| {
                    let mode = Reader::new(item);
                    let id = mode.string(&["id"])?;
                    let name = mode.lossy(&["name"]).map(Cow::into_owned);
                    Some(Mode { name: name.unwrap_or_else(|| id.clone()), id })
                })
                .collect(),
        })
    }
}

/// A config option of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigOption {
    /// The id for `session/set_config_option`.
    pub id: String,
    /// Category: `mode`, `model`, `thought_level`, or another.
    pub category: Option<String>,
    /// The current value as JSON text: a string, or a boolean for options of that type.
    pub current_value: String,
    /// Values and names of all choices, with those of groups.
    pub choices: Vec<(String, String)>,
}

impl ConfigOption {
    /// Reads a `configOptions` list.
    pub fn list(raw: &RawValue) -> Vec<Self> {
        let options = Reader::new(raw).list(&[]).into_iter();
        options
            .filter_map(|item| {
                let option = Reader::new(item);
                Some(Self {
                    id: option.id(&["id"])?,
                    category: option.name(&["category"]),
                    current_value: option
                        .raw(&["currentValue"])
                        .map(RawValue::get)
                        .filter(|value| value.len() <= LONGEST_ID)?
                        .to_owned(),
                    choices: choices(option.list(&["options"])),
                })
            })
            .collect()
    }
}

/// Reads choices with and without groups.
fn choices(items: Vec<&RawValue>) -> Vec<(String, String)> {
    let choices = items.into_iter().map(Reader::new).flat_map(|item| match item.id(&["value"]) {
        Some(value) => {
            let name = item.name(&["name"]).unwrap_or_else(|| value.clone());
            vec![(value, name)]
        }
        None => choices(item.list(&["options"])),
    });
    choices.collect()
}

/// The result of `session/list`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionList {
    /// The sessions of this page.
    pub sessions: Vec<SessionInfo>,
    /// The cursor of the next page.
    pub next_cursor: Option<String>,
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    /// Id of the listed session.
    pub session_id: String,
    /// Working directory, if the agent reports one.
    pub cwd: Option<String>,
    /// Title of the session, if there is one.
    pub title: Option<String>,
    /// Time of the last change, as the agent wrote it (ISO 8601).
    pub updated_at: Option<String>,
    /// The session is archived (unstable).
    pub archived: bool,
}

impl SessionList {
    /// Reads a `session/list` result. Of a duplicate session the first entry counts. An empty
    /// cursor counts as none: it would request the first page again.
    pub fn from_raw(raw: &RawValue) -> Self {
        let result = Reader::new(raw);
        let sessions = result.list(&["sessions"]).into_iter().filter_map(SessionInfo::read);
        let mut seen = HashSet::new();
        Self {
            sessions: sessions.filter(|info| seen.insert(info.session_id.clone())).collect(),
            next_cursor: result.string(&["nextCursor"]).filter(|cursor| !cursor.is_empty()),
        }
    }
}

impl SessionInfo {
    fn read(raw: &RawValue) -> Option<Self> {
        let info = Reader::new(raw);
        Some(Self {
            session_id: info.id(&["sessionId"]).filter(|id| !id.is_empty())?,
            cwd: info.string(&["cwd"]).filter(|cwd| cwd.len() <= LONGEST_PATH),
            title: info.name(&["title"]),
            updated_at: info.name(&["updatedAt"]),
            archived: info.raw(&["archived"]).is_some_and(|raw| raw.get() == "true"),
        })
    }
}

/// The params of `session/prompt`.
#[derive(Debug, Clone)]
pub struct PromptParams<'a> {
    /// Id of the session.
    pub session_id: Cow<'a, str>,
    /// The content blocks as the client wrote them.
    pub blocks: Vec<&'a RawValue>,
}

impl<'a> PromptParams<'a> {
    /// Reads the params. Fails without a `sessionId`, or if `prompt` is not a list.
    pub fn from_raw(raw: &'a RawValue) -> Result<Self, Unreadable> {
        let params = Reader::new(raw);
        let what = "session/prompt params";
        Ok(Self {
            session_id: params
                .text(&["sessionId"])
                .ok_or_else(|| Unreadable::missing(what, "sessionId"))?,
            blocks: params
                .raw(&["prompt"])
                .and_then(|prompt| serde_json::from_str(prompt.get()).ok())
                .ok_or_else(|| Unreadable::missing(what, "prompt"))?,
        })
    }
}

/// The `stopReason` of a `session/prompt` result.
pub fn stop_reason(result: &RawValue) -> Option<Cow<'_, str>> {
    Reader::new(result).text(&["stopReason"])
}

/// An agent's reaction to a message into a turn: the `outcome` of a `_session/steering` result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SteeringOutcome<'a> {
    /// The message is in the running turn.
    Injected,
    /// The agent has begun a new turn with it.
    StartedNewTurn,
    /// The turn was over.
    PromptRequired,
    /// The message was refused, for a reason of the agent.
    Other(Cow<'a, str>),
}

impl<'a> SteeringOutcome<'a> {
    /// Reads the result; `None` without an outcome.
    pub fn from_raw(result: &'a RawValue) -> Option<Self> {
        let outcome = Reader::new(result).text(&["outcome"])?;
        Some(match &*outcome {
            "injected" => SteeringOutcome::Injected,
            "startedNewTurn" => SteeringOutcome::StartedNewTurn,
            "promptRequired" => SteeringOutcome::PromptRequired,
            _ => SteeringOutcome::Other(outcome),
        })
    }
}

/// The request that a `$/cancel_request` cancels.
pub fn cancelled_request(params: &RawValue) -> Option<Id> {
    let range = locate(params.get().as_bytes(), &["requestId"])?;
    let raw: &RawValue = serde_json::from_str(params.get().get(range)?).ok()?;
    Id::from_raw(raw)
}

/// The kinds of tool calls (ACP, `ToolKind`).
pub const TOOL_KINDS: [&str; 10] = [
    "read",
    "edit",
    "delete",
    "move",
    "search",
    "execute",
    "think",
    "fetch",
    "switch_mode",
    "other",
];

/// The params of `session/request_permission`.
#[derive(Debug, Clone)]
pub struct PermissionRequest<'a> {
    /// Id of the session.
    pub session_id: Cow<'a, str>,
    /// Id of the tool call.
    pub tool_call_id: Option<Cow<'a, str>>,
    /// The title of the tool call, for display.
    pub title: Option<Cow<'a, str>>,
    /// The kind of the tool call.
    pub kind: Option<Cow<'a, str>>,
    /// Input of the tool, as the agent wrote it.
    pub raw_input: Option<&'a RawValue>,
    /// Content of the tool call, as the agent wrote it.
    pub content: Option<&'a RawValue>,
    /// The paths of its `locations`.
    pub locations: Vec<Cow<'a, str>>,
    /// The paths of the diffs in its `content`.
    pub diffs: Vec<Cow<'a, str>>,
    /// Malformed members of the tool call: the other fields lack their content, or have it in part.
    /// A kind of the wrong type is an unknown one.
    pub unread: Vec<&'static str>,
    /// The answers to choose from.
    pub options: Vec<PermissionOption>,
}

/// An answer that may be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionOption {
    /// The id for the answer.
    pub option_id: String,
    /// The name for people.
    pub name: String,
    /// `allow_once`, `allow_always`, `reject_once`, `reject_always`; for any other kind, or none,
    /// the user must be asked.
    pub kind: String,
}

impl<'a> PermissionRequest<'a> {
    /// Reads the params. Fails without a `sessionId`.
    pub fn from_raw(raw: &'a RawValue) -> Result<Self, Unreadable> {
        let params = Reader::new(raw);
        let options = params.list(&["options"]).into_iter();
        let session_id = params.text(&["sessionId"]);
        Ok(Self {
            session_id: session_id.ok_or_else(|| {
                Unreadable::missing("session/request_permission params", "sessionId")
            })?,
            options: options
                .filter_map(|item| {
                    let option = Reader::new(item);
                    let option_id = option.id(&["optionId"])?;
                    Some(PermissionOption {
                        name: option
                            .lossy(&["name"])
                            .map_or_else(|| option_id.clone(), Cow::into_owned),
                        kind: option.string(&["kind"]).unwrap_or_default(),
                        option_id,
                    })
                })
                .collect(),
            ..Self::of_call(params.raw(&["toolCall"]))
        })
    }

    /// A question without options, from an update about a tool call.
    pub fn of_call(call: Option<&'a RawValue>) -> Self {
        let call = call.map(Reader::new);
        let text = |name: &str| call.and_then(|call| call.text(&[name]));
        let raw = |name: &str| call.and_then(|call| call.raw(&[name]));
        let list = |name: &str| call.map(|call| call.list(&[name])).unwrap_or_default().into_iter();
        let is_list_with = |name: &str, member: &str| {
            let items = raw(name).map(|raw| serde_json::from_str::<Vec<&RawValue>>(raw.get()));
            items.is_none_or(|items| {
                items.is_ok_and(|all| all.iter().all(|item| has_text(item, member)))
            })
        };
        let as_expected = [
            ("title", raw("title").is_none() || text("title").is_some()),
            ("content", is_list_with("content", "type") && list("content").all(has_path_if_diff)),
            ("locations", is_list_with("locations", "path")),
        ];
        let diffs = list("content").filter(is_diff).map(Reader::new);
        Self {
            session_id: Cow::default(),
            tool_call_id: text("toolCallId"),
            title: call.and_then(|call| call.lossy(&["title"])),
            kind: text("kind"),
            raw_input: raw("rawInput"),
            content: raw("content"),
            locations: list("locations")
                .filter_map(|item| Reader::new(item).text(&["path"]))
                .collect(),
            diffs: diffs.filter_map(|diff| diff.text(&["path"])).collect(),
            unread: as_expected.iter().filter(|(_, is)| !is).map(|(name, _)| *name).collect(),
            options: Vec::new(),
        }
    }
}

fn is_diff(item: &&RawValue) -> bool {
    Reader::new(item).text(&["type"]).is_some_and(|kind| kind == "diff")
}

fn has_path_if_diff(item: &RawValue) -> bool {
    !is_diff(&item) || has_text(item, "path")
}

fn has_text(object: &RawValue, member: &str) -> bool {
    Reader::new(object).text(&[member]).is_some()
}

/// The answer to `session/request_permission`. It serializes to the whole result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(into = "PermissionResult")]
pub enum PermissionAnswer {
    /// The option with this id was chosen. The caller checks that it was offered.
    Selected(String),
    /// The turn was cancelled.
    Cancelled,
}

#[derive(Serialize, Deserialize)]
struct PermissionResult {
    outcome: PermissionOutcome,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
enum PermissionOutcome {
    Selected {
        #[serde(rename = "optionId")]
        option_id: String,
    },
    Cancelled,
}

impl From<PermissionAnswer> for PermissionResult {
    fn from(answer: PermissionAnswer) -> Self {
        let outcome = match answer {
            PermissionAnswer::Selected(option_id) => PermissionOutcome::Selected { option_id },
            PermissionAnswer::Cancelled => PermissionOutcome::Cancelled,
        };
        Self { outcome }
    }
}

impl PermissionAnswer {
    /// Reads a client's result strictly: anything but the two shapes of the schema is an error, and
    /// an error is never consent.
    pub fn from_raw(raw: &RawValue) -> Result<Self, Unreadable> {
        let what = "session/request_permission result";
        // A derived reader would take an array for a struct.
        if Reader::new(raw).object(&["outcome"]).is_none() {
            return Err(Unreadable::missing(what, "outcome"));
        }
        let result: PermissionResult = serde_json::from_str(raw.get())
            .map_err(|error| Unreadable { what, reason: error.to_string() })?;
        Ok(match result.outcome {
            PermissionOutcome::Selected { option_id } => Self::Selected(option_id),
            PermissionOutcome::Cancelled => Self::Cancelled,
        })
    }
}

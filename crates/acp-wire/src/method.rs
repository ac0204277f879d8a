//! The method table of protocol v1, as data.
//!
//! A method that is not in the table is routed by `params.sessionId`. Every request has its JSON-RPC
//! id rewritten from hop to hop; that is not listed.

use std::str::FromStr;

/// What is known about a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Method {
    /// The name on the wire.
    pub name: &'static str,
    /// Who receives the call.
    pub to: Side,
    /// Whether it is answered.
    pub call: Call,
    /// Whether `params.sessionId` says where it belongs.
    pub scope: Scope,
    /// Whether acpd passes it on unasked.
    pub answer: Answer,
    /// How settled it is.
    pub since: Stability,
    /// What acpd may change in it or in its answer on the way; nothing else.
    pub rewrites: &'static [Rewrite],
}

/// An end of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The agent.
    Agent,
    /// The client.
    Client,
}

/// The kind of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// Answered exactly once.
    Request,
    /// Never answered.
    Notification,
}

/// What a call is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The session that `params.sessionId` names.
    Session,
    /// The whole connection.
    Connection,
}

/// Who handles a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Passed to the other side, which answers it.
    Forward,
    /// acpd answers it itself or decides what becomes of it.
    Hub,
}

/// How settled a method is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stability {
    /// Part of the stable protocol v1.
    Stable,
    /// May change with any release of the schema.
    Unstable,
    /// No longer in the schema, still met.
    Removed,
}

/// A change that acpd may make to a message on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rewrite {
    /// A session id at this path of the call or of its answer, if acpd translates it.
    SessionId(&'static [&'static str]),
    /// A JSON-RPC id of the hop at this path.
    RequestId(&'static [&'static str]),
    /// `params.mcpServers`, merged with the configured ones; those in a client get ids of acpd's.
    McpServers,
    /// The id of an MCP server in a client at this path.
    ServerId(&'static [&'static str]),
    /// Updates and options that this client did not advertise are changed or left out.
    Downgrade,
    /// Terminals that this client does not know become text.
    TerminalToText,
    /// The block that sums up a lost context, put before a prompt.
    Reseed,
    /// The sequence number in `params._meta`, for clients that asked.
    Sequence,
}

use Answer::{Forward, Hub};
use Call::{Notification, Request};
use Scope::{Connection, Session};
use Side::{Agent, Client};
use Stability::{Removed, Stable, Unstable};

const PARAM_ID: Rewrite = Rewrite::SessionId(&["params", "sessionId"]);
const RESULT_ID: Rewrite = Rewrite::SessionId(&["result", "sessionId"]);
const CHILD_ID: Rewrite = Rewrite::SessionId(&["params", "update", "sessionId"]);
const SENDER_ID: Rewrite = Rewrite::SessionId(&["params", "update", "senderSessionId"]);
const RECIPIENT_ID: Rewrite = Rewrite::SessionId(&["params", "update", "recipientSessionId"]);
const REQUEST_ID: Rewrite = Rewrite::RequestId(&["params", "requestId"]);

const SERVER_ID: Rewrite = Rewrite::ServerId(&["params", "serverId"]);

const ID: &[Rewrite] = &[PARAM_ID];

/// Every method that is known.
pub const METHODS: &[Method] = &[
    row("initialize", Agent, Request, Connection, Hub, Stable, &[]),
    row("authenticate", Agent, Request, Connection, Hub, Stable, &[]),
    row("logout", Agent, Request, Connection, Hub, Stable, &[]),
    row(
        "session/new",
        Agent,
        Request,
        Connection,
        Hub,
        Stable,
        &[Rewrite::McpServers, Rewrite::Downgrade, RESULT_ID],
    ),
    row(
        "session/load",
        Agent,
        Request,
        Session,
        Hub,
        Stable,
        &[PARAM_ID, Rewrite::McpServers, Rewrite::Downgrade],
    ),
    row(
        "session/resume",
        Agent,
        Request,
        Session,
        Hub,
        Stable,
        &[PARAM_ID, Rewrite::McpServers, Rewrite::Downgrade],
    ),
    row("session/list", Agent, Request, Connection, Hub, Stable, &[]),
    row("session/close", Agent, Request, Session, Hub, Stable, ID),
    row("session/delete", Agent, Request, Session, Hub, Stable, ID),
    row("session/prompt", Agent, Request, Session, Hub, Stable, &[PARAM_ID, Rewrite::Reseed]),
    row("session/cancel", Agent, Notification, Session, Hub, Stable, ID),
    row("session/set_mode", Agent, Request, Session, Forward, Stable, ID),
    row(
        "session/set_config_option",
        Agent,
        Request,
        Session,
        Forward,
        Stable,
        &[PARAM_ID, Rewrite::Downgrade],
    ),
    row("session/set_model", Agent, Request, Session, Forward, Removed, ID),
    row(
        "session/fork",
        Agent,
        Request,
        Session,
        Hub,
        Unstable,
        &[PARAM_ID, Rewrite::McpServers, Rewrite::Downgrade, RESULT_ID],
    ),
    row("session/archive", Agent, Request, Session, Hub, Unstable, ID),
    row("session/unarchive", Agent, Request, Session, Hub, Unstable, ID),
    row("session/status", Agent, Request, Session, Hub, Unstable, ID),
    row("session/set_title", Agent, Request, Session, Hub, Unstable, ID),
    // Of no schema: the first is an extension of several agents, the second an open proposal.
    row("_session/steering", Agent, Request, Session, Hub, Unstable, ID),
    row("session/inject", Agent, Request, Session, Hub, Unstable, ID),
    row("auth/status", Agent, Request, Connection, Forward, Unstable, &[]),
    row("providers/list", Agent, Request, Connection, Forward, Unstable, &[]),
    row("providers/set", Agent, Request, Connection, Forward, Unstable, &[]),
    row("providers/disable", Agent, Request, Connection, Forward, Unstable, &[]),
    row("mcp/message", Agent, Notification, Connection, Forward, Unstable, &[SERVER_ID]),
    row("$/cancel_request", Agent, Notification, Connection, Hub, Stable, &[REQUEST_ID]),
    row("$/cancelRequest", Agent, Notification, Connection, Hub, Removed, &[REQUEST_ID]),
    row(
        "session/update",
        Client,
        Notification,
        Session,
        Forward,
        Stable,
        &[
            PARAM_ID,
            CHILD_ID,
            SENDER_ID,
            RECIPIENT_ID,
            Rewrite::Downgrade,
            Rewrite::TerminalToText,
            Rewrite::Sequence,
        ],
    ),
    row(
        "session/request_permission",
        Client,
        Request,
        Session,
        Hub,
        Stable,
        &[PARAM_ID, Rewrite::TerminalToText],
    ),
    row("fs/read_text_file", Client, Request, Session, Hub, Stable, ID),
    row("fs/write_text_file", Client, Request, Session, Hub, Stable, ID),
    row("terminal/create", Client, Request, Session, Hub, Stable, ID),
    row("terminal/output", Client, Request, Session, Hub, Stable, ID),
    row("terminal/wait_for_exit", Client, Request, Session, Hub, Stable, ID),
    row("terminal/kill", Client, Request, Session, Hub, Stable, ID),
    row("terminal/release", Client, Request, Session, Hub, Stable, ID),
    // Scoped by `sessionId` or by `requestId`, hence not by the session alone.
    row("elicitation/create", Client, Request, Connection, Hub, Stable, &[PARAM_ID, REQUEST_ID]),
    row("elicitation/complete", Client, Notification, Connection, Hub, Stable, &[]),
    row("mcp/message", Client, Request, Connection, Hub, Unstable, &[SERVER_ID]),
    row("auth/status_update", Client, Notification, Connection, Forward, Unstable, &[]),
    row("$/cancel_request", Client, Notification, Connection, Hub, Stable, &[REQUEST_ID]),
    row("$/cancelRequest", Client, Notification, Connection, Hub, Removed, &[REQUEST_ID]),
];

const fn row(
    name: &'static str,
    to: Side,
    call: Call,
    scope: Scope,
    answer: Answer,
    since: Stability,
    rewrites: &'static [Rewrite],
) -> Method {
    Method { name, to, call, scope, answer, since, rewrites }
}

/// The row of a method, by its receiver and its name.
pub fn lookup(to: Side, name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.to == to && method.name == name)
}

/// What a `session/update` variant means to the journal (protocol brief, section 3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpdateClass {
    /// A chunk of a message.
    Conversation,
    /// A tool call or news of one.
    ToolCall,
    /// The last value counts.
    State(StateKey),
    /// Shown to attached clients, never replayed.
    Live,
    /// Unknown, or appended like any other record.
    Other,
}

/// A piece of session state of which only the last value counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StateKey {
    /// The plan.
    Plan,
    /// The commands on offer.
    Commands,
    /// The current mode.
    Mode,
    /// The config options.
    Options,
    /// Title and time of the last change. The fields merge: absent is unchanged, `null` clears.
    Info,
    /// Context and cost.
    Usage,
}

impl StateKey {
    /// Every key.
    pub const ALL: [Self; 6] =
        [Self::Plan, Self::Commands, Self::Mode, Self::Options, Self::Info, Self::Usage];

    /// The stable name, as stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Commands => "commands",
            Self::Mode => "mode",
            Self::Options => "options",
            Self::Info => "info",
            Self::Usage => "usage",
        }
    }
}

/// The name is not one of a [`StateKey`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a kind of session state")]
pub struct UnknownStateKey(pub String);

impl FromStr for StateKey {
    type Err = UnknownStateKey;

    fn from_str(name: &str) -> Result<Self, UnknownStateKey> {
        Self::ALL
            .into_iter()
            .find(|key| key.as_str() == name)
            .ok_or_else(|| UnknownStateKey(name.to_owned()))
    }
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
        _ => UpdateClass::Other,
    }
}

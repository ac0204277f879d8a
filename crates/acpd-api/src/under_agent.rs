//! What a client that runs under an agent may do: a tool that an agent has started, or one of its
//! descendants.
//!
//! Agents work with other agents, so such a client reads, opens and prompts sessions like any other. It
//! must not decide for a person, nor take away what a person uses, because the agent itself would then do
//! so. This is the only list of refusals; `docs/protocol.md` shows it, and the daemon checks it before
//! anything else.

/// Whether something is for a client that runs under an agent. What it is not for is said in words that
/// follow "may not".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnderAgent {
    /// It is.
    Allowed,
    /// It is, unless it would end or change a turn of somebody else: one that runs in the session, or
    /// waits there.
    OwnTurns(&'static str),
    /// It is, for sessions of the agent process that the client runs under.
    OwnSessions(&'static str),
    /// It is not, but where the configuration lets agents answer what is asked in turns that they have sent.
    OwnQuestions(&'static str),
    /// It is not.
    Refused(&'static str),
}

use UnderAgent::{Allowed, OwnSessions, OwnTurns, Refused};

/// Methods of ACP. Of the others acpd knows nothing, and the agent decides.
pub const ACP: &[(&str, UnderAgent)] = &[
    ("initialize", Allowed),
    ("authenticate", Refused("log an agent in")),
    ("logout", Refused("log an agent out")),
    ("auth/status", Allowed),
    ("providers/list", Allowed),
    ("providers/set", Refused("choose the providers of an agent")),
    ("providers/disable", Refused("choose the providers of an agent")),
    ("session/new", Allowed),
    ("session/load", Allowed),
    ("session/resume", Allowed),
    ("session/fork", Allowed),
    ("session/list", Allowed),
    ("session/status", Allowed),
    ("session/options", Allowed),
    ("session/prompt", Allowed),
    ("session/cancel", OwnTurns("cancel a turn")),
    ("_session/steering", OwnTurns("add to a turn")),
    ("session/inject", OwnTurns("add to a turn")),
    ("session/close", OwnTurns("close a session")),
    ("session/delete", Refused("delete a session")),
    ("session/archive", Refused("put a session away")),
    ("session/unarchive", Refused("put a session away")),
    ("session/set_title", Refused("rename a session")),
    // A mode says what a person is asked, and which mode asks less only its agent knows. An option may
    // be a mode.
    ("session/set_mode", Refused("change the settings of a session")),
    ("session/set_config_option", Refused("change the settings of a session")),
    ("session/set_model", Refused("change the settings of a session")),
    ("mcp/message", Allowed),
    // They name requests of the same connection.
    ("$/cancel_request", Allowed),
    ("$/cancelRequest", Allowed),
];

/// Members of `_meta._acpd` in what clients send.
pub const FLAGS: &[(&str, UnderAgent)] = &[
    ("agent", Allowed),
    ("cwd", Allowed),
    ("notices", Allowed),
    ("seq", Allowed),
    ("maxLine", Allowed),
    ("client", Allowed),
    ("role", Allowed),
    ("place", Allowed),
    ("tool", Allowed),
    ("name", Allowed),
    ("reuse", Allowed),
    ("parent", OwnSessions("begin sessions for a session of another agent")),
    ("after", Allowed),
    ("permissions", Refused("answer questions of agents beforehand")),
    ("inPlaceOf", Refused("change prompts that wait")),
    ("idempotencyKey", Allowed),
    ("title", Allowed),
];

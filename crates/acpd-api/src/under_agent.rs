//! Rights of a client that runs under an agent: a tool that an agent started, or a descendant.
//!
//! Agents work with other agents, so such a client reads, opens and prompts sessions like any
//! other. It must not decide for a person, nor take something from one, because the agent itself
//! would do so. The daemon checks this only list of refusals before anything else;
//! `docs/reference.md` shows it.

use crate::scope::Scope;

/// Rights for a method or flag under an agent. The words of a refusal follow "may not".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnderAgent {
    /// Allowed as for any other client.
    Allowed,
    /// Allowed unless the session has a running or queued prompt of another sender.
    OwnTurns(&'static str),
    /// Allowed for sessions that the agent's process holds.
    OwnSessions(&'static str),
    /// Allowed only for questions of turns that this connection sent, if the configuration says so.
    OwnQuestions(&'static str),
    /// Refused, with these words in the error.
    Refused(&'static str),
}

use Scope::{Answer, Prompt, Watch};
use UnderAgent::{Allowed, OwnSessions, OwnTurns, Refused};

/// Methods of ACP, as [`METHODS`](crate::method::METHODS). acpd does not know other methods, and the
/// agent decides.
pub const ACP: &[(&str, UnderAgent, Option<Scope>)] = &[
    ("initialize", Allowed, Some(Watch)),
    ("authenticate", Refused("log an agent in"), None),
    ("logout", Refused("log an agent out"), None),
    ("auth/login", Refused("log an agent in"), None),
    ("auth/logout", Refused("log an agent out"), None),
    ("auth/status", Allowed, Some(Watch)),
    ("providers/list", Allowed, None),
    ("providers/set", Refused("choose the providers of an agent"), None),
    ("providers/disable", Refused("choose the providers of an agent"), None),
    ("session/new", Allowed, Some(Prompt)),
    ("session/load", Allowed, Some(Watch)),
    ("session/resume", Allowed, Some(Watch)),
    ("session/fork", Allowed, Some(Prompt)),
    ("session/list", Allowed, Some(Watch)),
    ("session/status", Allowed, Some(Watch)),
    ("session/options", Allowed, Some(Watch)),
    ("session/prompt", Allowed, Some(Prompt)),
    ("session/cancel", OwnTurns("cancel a turn"), Some(Prompt)),
    ("tool_call/cancel", Refused("cancel a tool call"), Some(Prompt)),
    ("terminal/cancel", Refused("cancel a command"), Some(Prompt)),
    ("_session/steering", OwnTurns("add to a turn"), Some(Prompt)),
    ("session/inject", OwnTurns("add to a turn"), Some(Prompt)),
    ("session/close", OwnTurns("close a session"), Some(Prompt)),
    ("session/delete", Refused("delete a session"), None),
    ("session/archive", Refused("put a session away"), Some(Prompt)),
    ("session/unarchive", Refused("put a session away"), Some(Prompt)),
    ("session/set_title", Refused("rename a session"), Some(Prompt)),
    // A mode decides how much the user is asked, and only the agent knows which mode asks less. An
    // option may be a mode.
    ("session/set_mode", Refused("change the settings of a session"), Some(Answer)),
    ("session/set_config_option", Refused("change the settings of a session"), Some(Answer)),
    ("session/set_model", Refused("change the settings of a session"), Some(Prompt)),
    // The answer of a server in the client counts as an answer.
    ("mcp/message", Allowed, Some(Answer)),
    // These name requests of the same connection.
    ("$/cancel_request", Allowed, Some(Watch)),
    ("$/cancelRequest", Allowed, Some(Watch)),
];

/// Members of `_meta._acpd` in what clients send.
pub const FLAGS: &[(&str, UnderAgent)] = &[
    ("agent", Allowed),
    ("cwd", Allowed),
    ("notices", Allowed),
    ("seq", Allowed),
    ("originals", Allowed),
    ("maxLine", Allowed),
    ("client", Allowed),
    ("role", Allowed),
    ("place", Allowed),
    ("tool", Allowed),
    ("name", Allowed),
    ("reuse", Allowed),
    ("parent", OwnSessions("begin sessions for a session of another agent")),
    ("labels", Allowed),
    ("after", Allowed),
    ("permissions", Refused("answer questions of agents beforehand")),
    ("inPlaceOf", Refused("change prompts that wait")),
    ("idempotencyKey", Allowed),
    ("title", Allowed),
];

//! Names of the extension methods and notices.
//!
//! Every method declares what a client that runs under an agent may do with it ([`UnderAgent`]).

use crate::under_agent::ACP;
use crate::under_agent::UnderAgent::{self, Allowed, OwnQuestions, OwnSessions, OwnTurns, Refused};

/// Declares methods that clients call, and the table of them.
macro_rules! methods {
    ($($(#[doc = $doc:literal])* $name:ident = $method:literal, $side:expr;)*) => {
        $($(#[doc = $doc])* pub const $name: &str = $method;)*

        /// The methods that clients call, and which of them are for a client that runs under an agent.
        pub const METHODS: &[(&str, UnderAgent)] = &[$(($name, $side)),*];
    };
}

/// Declares notices, and the list of them.
macro_rules! notices {
    ($($(#[doc = $doc:literal])* $name:ident = $method:literal;)*) => {
        $($(#[doc = $doc])* pub const $name: &str = $method;)*

        /// What only the daemon says.
        pub const NOTICES: &[&str] = &[$($name),*];
    };
}

methods! {
    /// Daemon, agents, sessions and turns in one answer: [`crate::Empty`] → [`crate::Status`].
    STATUS = "_acpd/status", Allowed;
    /// Shows every row of [`STATUS`] and every open question, and from then on what changes of them
    /// ([`CHANGED`]), until the connection ends: [`crate::Empty`] → [`crate::Watched`].
    WATCH = "_acpd/watch", Allowed;
    /// Answered at once, from memory, whatever agents and disks do: [`crate::Empty`] → [`crate::Empty`]. Who
    /// waits long for another answer learns by it whether the daemon is there.
    PING = "_acpd/ping", Allowed;
    /// Ends running turns, stops every agent, then the daemon: [`crate::DaemonStopParams`] →
    /// [`crate::Empty`]. The answer is sent when the agents are gone, or, with `detach`, left alone.
    DAEMON_STOP = "_acpd/daemon/stop", Refused("stop the daemon");
    /// Runs the installed program in the daemon's place, under the same pid (on Windows under another one); agents and
    /// turns continue:
    /// [`crate::Empty`] → [`crate::Empty`]. If that program could not start, the reason is the error, and nothing
    /// changes. The answer is sent before; the successor has another [`crate::DaemonInfo::boot`].
    DAEMON_RESTART = "_acpd/daemon/restart", Allowed;
    /// Tells what the daemon logs, and changes it until it starts again: [`crate::LogLevelParams`] →
    /// [`crate::LogLevel`].
    DAEMON_LOG_LEVEL = "_acpd/daemon/log_level", Refused("change what the daemon logs");
    /// All configured agents: [`crate::Empty`] → [`crate::AgentList`].
    AGENT_LIST = "_acpd/agent/list", Allowed;
    /// One agent: [`crate::AgentRef`] → [`crate::AgentInfo`].
    AGENT_SHOW = "_acpd/agent/show", Allowed;
    /// Wants an agent up and clears a crash loop; answered when it is ready or has failed:
    /// [`crate::AgentRef`] → [`crate::AgentInfo`].
    AGENT_START = "_acpd/agent/start", Refused("start an agent");
    /// Stops an agent and keeps it down until it is started: [`crate::AgentRef`] → [`crate::AgentInfo`].
    AGENT_STOP = "_acpd/agent/stop", Refused("stop an agent");
    /// Stops an agent and starts it again; its sessions are restored: [`crate::RestartParams`] →
    /// [`crate::AgentInfo`].
    AGENT_RESTART = "_acpd/agent/restart", Refused("restart an agent");
    /// A person has logged in without `authenticate`: the agent is started anew, and what waited for the
    /// login comes back: [`crate::AgentRef`] → [`crate::AgentInfo`]. Answered when it is ready or has failed.
    AUTH_DONE = "_acpd/auth/done", Refused("say that somebody has logged in");
    /// Sessions of all agents: [`crate::SessionListParams`] → [`crate::SessionList`].
    SESSION_LIST = "_acpd/session/list", Allowed;
    /// One session by name, id or unique prefix: [`crate::SessionRef`] → [`crate::SessionInfo`].
    SESSION_SHOW = "_acpd/session/show", Allowed;
    /// A page of a session's journal: [`crate::LogParams`] → [`crate::LogResult`].
    SESSION_LOG = "_acpd/session/log", Allowed;
    /// Finds what was said, by words: [`crate::SearchParams`] → [`crate::SearchResult`].
    SESSION_SEARCH = "_acpd/session/search", Allowed;
    /// Follows a session of any agent from a sequence number: [`crate::AttachParams`] →
    /// [`crate::AttachResult`]; then the journal, then a [`CAUGHT_UP`] notice, then what comes.
    SESSION_ATTACH = "_acpd/session/attach", Allowed;
    /// Stops following: [`crate::SessionRef`] → [`crate::Empty`].
    SESSION_DETACH = "_acpd/session/detach", Allowed;
    /// Gives a session another name: [`crate::RenameParams`] → [`crate::SessionInfo`].
    SESSION_RENAME = "_acpd/session/rename", Refused("rename a session");
    /// Gives a session a title, which stands before the agent's: [`crate::TitleParams`] →
    /// [`crate::SessionInfo`].
    SESSION_TITLE = "_acpd/session/title", Refused("rename a session");
    /// Changes the directory of a session, where it is then restored: [`crate::MoveParams`] →
    /// [`crate::SessionInfo`]. Refused while a turn runs in it.
    SESSION_MOVE = "_acpd/session/move", Refused("move a session");
    /// Gives up the agent's copy of a session: the next prompt continues in a new one, after a summary, and
    /// the journal says so: [`crate::ReseedParams`] → [`crate::SessionInfo`].
    SESSION_RESEED = "_acpd/session/reseed", Refused("give up a conversation");
    /// Ends the running turn, and takes back the prompts that wait behind it unless they are to stay:
    /// [`crate::CancelParams`] → [`crate::CancelResult`]. Answered when the agent is told, not when the turn is
    /// over. An error if there is nothing to cancel.
    SESSION_CANCEL = "_acpd/session/cancel", OwnTurns("cancel a turn");
    /// The prompts that wait in a session: [`crate::SessionRef`] → [`crate::QueueInfo`].
    SESSION_QUEUE = "_acpd/session/queue", Allowed;
    /// Says something else in a prompt that waits: [`crate::QueueEditParams`] → [`crate::QueueInfo`].
    SESSION_QUEUE_EDIT = "_acpd/session/queue/edit", Refused("change prompts that wait");
    /// Moves a prompt that waits to another place among those: [`crate::QueueMoveParams`] →
    /// [`crate::QueueInfo`].
    SESSION_QUEUE_MOVE = "_acpd/session/queue/move", Refused("change prompts that wait");
    /// Takes a prompt back that waits; whoever sent it gets an error that says who did:
    /// [`crate::QueueRemoveParams`] → [`crate::QueueInfo`].
    SESSION_QUEUE_REMOVE = "_acpd/session/queue/remove", Refused("take back prompts that wait");
    /// Frees the agent's copy; the session stays listed, and the next prompt restores it:
    /// [`crate::SessionRef`] → [`crate::SessionInfo`].
    SESSION_CLOSE = "_acpd/session/close", OwnTurns("close a session");
    /// Closes a session for all and leaves it out of lists: [`crate::SessionRef`] →
    /// [`crate::SessionInfo`].
    SESSION_ARCHIVE = "_acpd/session/archive", Refused("put a session away");
    /// Lists a session again: [`crate::SessionRef`] → [`crate::SessionInfo`].
    SESSION_UNARCHIVE = "_acpd/session/unarchive", Refused("put a session away");
    /// Deletes a session and its journal; for a while it can be brought back: [`crate::RemoveParams`] →
    /// [`crate::RemoveResult`].
    SESSION_REMOVE = "_acpd/session/remove", Refused("delete a session");
    /// Brings a deleted session back: [`crate::UndoParams`] → [`crate::UndoResult`].
    SESSION_UNDO = "_acpd/session/undo", Refused("bring a session back");
    /// Deletes some of the sessions that the limits of the configuration let go, or says which that are:
    /// [`crate::GcParams`] → [`crate::GcResult`].
    GC = "_acpd/gc", Refused("delete sessions");
    /// What turns have used, added up: [`crate::UsageParams`] → [`crate::UsageReport`].
    USAGE = "_acpd/usage", Allowed;
    /// Figures and counters of the daemon, for monitoring: [`crate::Empty`] → [`crate::Metrics`].
    METRICS = "_acpd/metrics", Allowed;
    /// Shows the lines of a session or an agent as they go ([`TRACED`]), until the connection ends:
    /// [`crate::TraceParams`] → [`crate::Empty`].
    TRACE = "_acpd/trace", Refused("look at the lines of agents");
    /// Questions of agents that wait for a person: [`crate::Empty`] → [`crate::InteractionList`].
    INTERACTION_LIST = "_acpd/interaction/list", Allowed;
    /// Answers one of them: [`crate::AnswerParams`] → [`crate::AnswerResult`].
    INTERACTION_ANSWER = "_acpd/interaction/answer", OwnQuestions("answer questions of agents");
    /// MCP servers that clients lend to a session, as far as these are connected: [`crate::SessionRef`] →
    /// [`crate::McpServerList`].
    MCP_LIST = "_acpd/mcp/list", OwnSessions("use what is lent to a session of another agent");
    /// Asks one of them for its tools, or calls one, which the journal shows: [`crate::McpCallParams`] → the client's answer to `mcp/message`.
    MCP_CALL = "_acpd/mcp/call", OwnSessions("use what is lent to a session of another agent");
    /// Remembered decisions: [`crate::Empty`] → [`crate::PolicyList`].
    POLICY_LIST = "_acpd/policy/list", Allowed;
    /// Takes a remembered decision back: [`crate::ForgetParams`] → [`crate::Empty`].
    POLICY_FORGET = "_acpd/policy/forget", Refused("take decisions of people back");
    /// Who would answer a permission question, and why: [`crate::PolicyTestParams`] → an object with the
    /// `rules` in their order, what could be remembered (`subject`), and the `decision`.
    POLICY_TEST = "_acpd/policy/test", Allowed;
    /// Notification [`crate::Answered`] of a client with a token. A counted line.
    CLIENT_ANSWERED = "_acpd/client/answered", Allowed;
    /// Notification [`crate::Empty`] of a client with a token: it leaves for good, so that
    /// acpd forgets it at once. Its last line; not counted.
    CLIENT_LEAVE = "_acpd/client/leave", Allowed;
}

notices! {
    /// Notification [`crate::Empty`] to clients with a token: the daemon was told to stop, its agents are
    /// gone, and the connection is about to end for good. Live only.
    DAEMON_STOPPED = "_acpd/daemon/stopped";
    /// Notice [`crate::TurnStarted`]. Journalled.
    TURN_STARTED = "_acpd/turn_started";
    /// Notice [`crate::TurnEnded`]. Journalled.
    TURN_ENDED = "_acpd/turn_ended";
    /// Notice [`crate::Restored`]. Journalled.
    RESTORED = "_acpd/restored";
    /// Notice [`crate::PermissionDecided`]: a question was answered without a person. Journalled.
    PERMISSION_DECIDED = "_acpd/permission_decided";
    /// Notice [`crate::QuestionAnswered`]: a client answered a question. Journalled.
    ANSWERED = "_acpd/answered";
    /// Notification [`crate::Changed`] to connections that watch ([`WATCH`]). Live only.
    CHANGED = "_acpd/changed";
    /// Notification [`crate::Traced`] to connections that trace ([`TRACE`]). Live only.
    TRACED = "_acpd/traced";
    /// Notice [`crate::StateChanged`]. Live only.
    SESSION_STATE = "_acpd/session_state";
    /// Notice [`crate::SessionGone`]: the session was deleted. Live only.
    SESSION_REMOVED = "_acpd/session_removed";
    /// Notice [`crate::SessionsExpired`]: acpd has deleted sessions over a limit. Live only.
    SESSIONS_EXPIRED = "_acpd/sessions_expired";
    /// Notice [`crate::SessionNotice`]: a sentence for the person at a session. Journalled.
    NOTICE = "_acpd/notice";
    /// Notice [`crate::Skipped`]: a line that was too long to relay. Journalled.
    SKIPPED = "_acpd/skipped";
    /// Notice [`crate::PromptQueued`]: another prompt runs first. Live only.
    PROMPT_QUEUED = "_acpd/prompt_queued";
    /// Notice [`crate::PromptRepeated`]: a prompt was sent before under its idempotency key. Live only.
    PROMPT_REPEATED = "_acpd/prompt_repeated";
    /// Notice [`crate::CaughtUp`]: all that was journalled has been sent. Live only. A client with a
    /// token gets it without notices, too.
    CAUGHT_UP = "_acpd/caught_up";
    /// Notification [`crate::Received`] to a client with a token, after each commit. Live only.
    CLIENT_RECEIVED = "_acpd/client/received";
    /// Notice [`crate::Unanswered`]: an agent takes long to answer a request of this client. Live only.
    UNANSWERED = "_acpd/unanswered";
    /// Notice [`crate::AgentNotice`]: an agent changed its state. Live only.
    AGENT_STATE = "_acpd/agent_state";
    /// Notice [`crate::AuthChanged`]: it changed whether an agent is logged in. Live only.
    AUTH_CHANGED = "_acpd/auth_changed";
}

impl UnderAgent {
    /// Whether a method is for a client that runs under an agent.
    pub fn of_method(name: &str) -> UnderAgent {
        let known = METHODS.iter().chain(ACP).find(|(known, _)| *known == name);
        known.map_or(Allowed, |(_, side)| *side)
    }
}

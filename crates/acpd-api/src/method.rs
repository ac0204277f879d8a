//! Extension methods and notices, with their parameters and results.
//!
//! Each method declares its effect ([`MethodEffect`]), the rights of a client under an agent
//! ([`UnderAgent`]), and the [`Scope`] of a client from elsewhere. `docs/reference.md` is generated
//! from these declarations.

use serde_json::Value;

use crate::scope::Scope::{self, Answer, Prompt, Watch};
use crate::under_agent::ACP;
use crate::under_agent::UnderAgent::{self, Allowed, OwnQuestions, OwnSessions, OwnTurns, Refused};
use crate::{
    AgentInfo, AgentList, AgentNotice, AgentRef, AnswerParams, AnswerResult, Answered,
    AttachParams, AttachResult, AuthChanged, CancelParams, CancelResult, CaughtUp, Changed,
    DaemonRestartParams, DaemonStopParams, Empty, ForgetParams, GcParams, GcResult,
    InteractionList, LabelParams, LogLevel, LogLevelParams, LogParams, LogResult, McpCallParams,
    McpServerList, Metrics, MoveParams, PermissionDecided, PolicyList, PolicyTestParams,
    PromptQueued, PromptRepeated, QuestionAnswered, QueueEditParams, QueueInfo, QueueMoveParams,
    QueueRemoveParams, Received, RemoveParams, RemoveResult, RenameParams, ReseedParams,
    RestartParams, Restored, SearchParams, SearchResult, SessionGone, SessionInfo, SessionList,
    SessionListParams, SessionNotice, SessionRef, SessionsExpired, Skipped, StateChanged, Status,
    StatusParams, TitleParams, TraceParams, Traced, TurnEnded, TurnStarted, Unanswered, UndoParams,
    UndoResult, UsageParams, UsageReport, Watched,
};

/// Effect of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MethodEffect {
    /// Nothing changes, so the request needs no journal.
    Reads,
    /// A client without the answer sends the request again.
    Repeats,
    /// The answer is kept until the client confirms it.
    Once,
}

use MethodEffect::{Once, Reads, Repeats};

/// Declares methods that clients call, and the table of them.
macro_rules! methods {
    ($($(#[doc = $doc:literal])* $name:ident = $method:literal, $params:ty => $result:ty, $effect:expr, $rights:expr, $scope:expr;)*) => {
        $(
            $(#[doc = $doc])*
            pub const $name: &str = $method;
            const _: Option<($params, $result)> = None;
        )*

        /// Methods that clients call, with the rights of a client under an agent, and the scope that
        /// a client from elsewhere needs.
        pub const METHODS: &[(&str, UnderAgent, Option<Scope>)] = &[$(($name, $rights, $scope)),*];

        impl MethodEffect {
            /// Returns the effect of a method; unknown ones may change anything.
            pub fn of_method(name: &str) -> MethodEffect {
                match name {
                    $($name => $effect,)*
                    "session/list" | "session/status" => Reads,
                    "initialize" | "session/load" | "session/resume" => Repeats,
                    _ => Once,
                }
            }
        }
    };
}

/// Declares notices, and the list of them.
macro_rules! notices {
    ($($(#[doc = $doc:literal])* $name:ident = $method:literal, $params:ty;)*) => {
        $(
            $(#[doc = $doc])*
            pub const $name: &str = $method;
            const _: Option<$params> = None;
        )*

        /// Notices of the daemon.
        pub const NOTICES: &[&str] = &[$($name),*];
    };
}

methods! {
    /// Returns the daemon, all agents, and all sessions that are not archived.
    STATUS = "_acpd/status", StatusParams => Status, Reads, Allowed, Some(Watch);
    /// Returns all sessions, agents and open questions, then sends changes (`_acpd/changed`) until
    /// the connection ends.
    WATCH = "_acpd/watch", Empty => Watched, Reads, Allowed, Some(Watch);
    /// Answered at once from memory. A client that waits for another answer uses it on a second
    /// connection to check that the daemon is there.
    PING = "_acpd/ping", Empty => Empty, Reads, Allowed, Some(Watch);
    /// Cancels running turns, stops every agent, answers, and ends the daemon. With `detach` agents
    /// and turns continue. The error is `agent_leftovers` if a process survives SIGKILL; the daemon
    /// ends without it.
    DAEMON_STOP = "_acpd/daemon/stop", DaemonStopParams => Empty, Repeats, Refused("stop the daemon"), None;
    /// Replaces the running daemon by the installed program, under the same pid (Windows: another
    /// one); agents and turns continue. If that program could not start, the reason is the error,
    /// and nothing changes. The answer is sent before the replacement; the next daemon has another
    /// `boot`.
    DAEMON_RESTART = "_acpd/daemon/restart", DaemonRestartParams => Empty, Repeats, Allowed, None;
    /// Returns the log level, and sets it until the next start or reload.
    DAEMON_LOG_LEVEL = "_acpd/daemon/log_level", LogLevelParams => LogLevel, Reads, Refused("change what the daemon logs"), None;
    /// Returns all enabled agents, and others with sessions, by name.
    AGENT_LIST = "_acpd/agent/list", Empty => AgentList, Reads, Allowed, Some(Watch);
    /// Returns one agent with all details.
    AGENT_SHOW = "_acpd/agent/show", AgentRef => AgentInfo, Reads, Allowed, Some(Watch);
    /// Starts an agent, keeps it up, and ends a crash loop. Answered when the agent is ready, or
    /// with `agent_start_failed`, `agent_timeout`, `agent_protocol`, `agent_crash_loop` or
    /// `agent_leftovers`.
    AGENT_START = "_acpd/agent/start", AgentRef => AgentInfo, Repeats, Refused("start an agent"), None;
    /// Cancels the agent's turns, stops it, and keeps it down until it is started, also across
    /// restarts of the daemon. Answered when its processes are gone, or with `agent_leftovers`.
    AGENT_STOP = "_acpd/agent/stop", AgentRef => AgentInfo, Repeats, Refused("stop an agent"), None;
    /// Stops an agent and starts it again; its sessions are restored, and lost ones tried once
    /// more. Errors as for `_acpd/agent/start`.
    AGENT_RESTART = "_acpd/agent/restart", RestartParams => AgentInfo, Repeats, Refused("restart an agent"), None;
    /// Reports a login without `authenticate`, such as by a command: the agent is restarted unless
    /// it works, and waiting sessions continue. Answered when the agent is ready.
    AUTH_DONE = "_acpd/auth/done", AgentRef => AgentInfo, Once, Refused("say that somebody has logged in"), None;
    /// Returns sessions of all agents, most recently used first.
    SESSION_LIST = "_acpd/session/list", SessionListParams => SessionList, Reads, Allowed, Some(Watch);
    /// Returns one session by its reference.
    SESSION_SHOW = "_acpd/session/show", SessionRef => SessionInfo, Reads, Allowed, Some(Watch);
    /// Returns a page of a session's journal, with notices and lines of subagents.
    SESSION_LOG = "_acpd/session/log", LogParams => LogResult, Reads, Allowed, Some(Watch);
    /// Searches messages of users and agents and titles of tool calls in finished turns. Best hits first.
    SESSION_SEARCH = "_acpd/session/search", SearchParams => SearchResult, Reads, Allowed, Some(Watch);
    /// Follows a session of any agent: the answer, then its journal from a sequence number, then
    /// `_acpd/caught_up`, then new lines. Prompts need a connection that is bound to the session's
    /// agent.
    SESSION_ATTACH = "_acpd/session/attach", AttachParams => AttachResult, Repeats, Allowed, Some(Watch);
    /// Stops following a session.
    SESSION_DETACH = "_acpd/session/detach", SessionRef => Empty, Repeats, Allowed, Some(Watch);
    /// Gives a session another name, or none. Errors: `name_taken`, `invalid`.
    SESSION_RENAME = "_acpd/session/rename", RenameParams => SessionInfo, Once, Refused("rename a session"), Some(Prompt);
    /// Gives a session a title that wins over the agent's, or removes it.
    SESSION_TITLE = "_acpd/session/title", TitleParams => SessionInfo, Once, Refused("rename a session"), Some(Prompt);
    /// Adds and removes labels of a session. Error: `invalid`.
    SESSION_LABEL = "_acpd/session/label", LabelParams => SessionInfo, Once, Refused("label a session"), Some(Prompt);
    /// Changes the directory of a session, where it is then restored. Errors: `session_blocked`
    /// during a turn, `name_taken`, `invalid`.
    SESSION_MOVE = "_acpd/session/move", MoveParams => SessionInfo, Once, Refused("move a session"), None;
    /// Gives up the agent's copy of a lost or blocked session, or of any with `discard`: the next
    /// prompt goes to a new session of the agent, after a summary. Errors: `invalid`,
    /// `session_blocked` during a turn.
    SESSION_RESEED = "_acpd/session/reseed", ReseedParams => SessionInfo, Once, Refused("give up a conversation"), None;
    /// Cancels the running turn and takes back queued prompts. Answered when the agent is notified;
    /// `_acpd/turn_ended` reports the end. Error: `no_turn`.
    SESSION_CANCEL = "_acpd/session/cancel", CancelParams => CancelResult, Once, OwnTurns("cancel a turn"), Some(Prompt);
    /// Returns the queued prompts of a session.
    SESSION_QUEUE = "_acpd/session/queue", SessionRef => QueueInfo, Reads, Allowed, Some(Watch);
    /// Replaces the content of a queued prompt. Errors: `invalid` if it is no longer queued, `out_of_scope`.
    SESSION_QUEUE_EDIT = "_acpd/session/queue/edit", QueueEditParams => QueueInfo, Once, Refused("change prompts that wait"), Some(Prompt);
    /// Moves a queued prompt. All prompts that change their place get new tickets.
    SESSION_QUEUE_MOVE = "_acpd/session/queue/move", QueueMoveParams => QueueInfo, Once, Refused("change prompts that wait"), Some(Prompt);
    /// Takes a queued prompt back. Its sender gets the error `interrupted` with the caller's name.
    SESSION_QUEUE_REMOVE = "_acpd/session/queue/remove", QueueRemoveParams => QueueInfo, Once, Refused("take back prompts that wait"), Some(Prompt);
    /// Ends the running turn and frees the agent's copy. The session stays listed, clients stay
    /// attached, and the next prompt restores it.
    SESSION_CLOSE = "_acpd/session/close", SessionRef => SessionInfo, Once, OwnTurns("close a session"), Some(Prompt);
    /// Archives a session: closes it and leaves it out of lists.
    SESSION_ARCHIVE = "_acpd/session/archive", SessionRef => SessionInfo, Once, Refused("put a session away"), Some(Prompt);
    /// Takes a session out of the archive.
    SESSION_UNARCHIVE = "_acpd/session/unarchive", SessionRef => SessionInfo, Once, Refused("put a session away"), Some(Prompt);
    /// Deletes a session and its journal, for all clients. It can be restored for `keep_deleted` (a
    /// day), then the agent is asked to delete its copy. With `now`, and for unused sessions, at
    /// once.
    SESSION_REMOVE = "_acpd/session/remove", RemoveParams => RemoveResult, Once, Refused("delete a session"), None;
    /// Restores a deleted session.
    SESSION_UNDO = "_acpd/session/undo", UndoParams => UndoResult, Once, Refused("bring a session back"), None;
    /// Lists or deletes sessions over the configured limits, a few per call. Error: `invalid` without limits.
    GC = "_acpd/gc", GcParams => GcResult, Once, Refused("delete sessions"), None;
    /// Returns sums of tokens and cost over sessions, with deleted ones.
    USAGE = "_acpd/usage", UsageParams => UsageReport, Reads, Allowed, Some(Watch);
    /// Returns figures and counters for monitoring.
    METRICS = "_acpd/metrics", Empty => Metrics, Reads, Allowed, Some(Watch);
    /// Sends the lines of a session or an agent (`_acpd/traced`) until the connection ends. A
    /// second request replaces the first. Lines are dropped for a slow reader.
    TRACE = "_acpd/trace", TraceParams => Empty, Reads, Refused("look at the lines of agents"), None;
    /// Returns all open questions of agents.
    INTERACTION_LIST = "_acpd/interaction/list", Empty => InteractionList, Reads, Allowed, Some(Watch);
    /// Answers an open question. Error: `invalid`, also for a question that was withdrawn.
    INTERACTION_ANSWER = "_acpd/interaction/answer", AnswerParams => AnswerResult, Once, OwnQuestions("answer questions of agents"), Some(Answer);
    /// Returns the MCP servers that connected clients lend to a session.
    MCP_LIST = "_acpd/mcp/list", SessionRef => McpServerList, Reads, OwnSessions("use what is lent to a session of another agent"), None;
    /// Calls `tools/list` or `tools/call` of such a server, within 20 seconds; the journal names
    /// the tool. The result is the client's answer to `mcp/message`.
    MCP_CALL = "_acpd/mcp/call", McpCallParams => Value, Reads, OwnSessions("use what is lent to a session of another agent"), None;
    /// Returns the remembered decisions, oldest first.
    POLICY_LIST = "_acpd/policy/list", Empty => PolicyList, Reads, Allowed, None;
    /// Forgets a remembered decision: such calls are asked about again.
    POLICY_FORGET = "_acpd/policy/forget", ForgetParams => Empty, Once, Refused("take decisions of people back"), None;
    /// Explains the answer to a permission question: all `rules` in order, the `subject` to
    /// remember, and the `decision`.
    POLICY_TEST = "_acpd/policy/test", PolicyTestParams => Value, Reads, Allowed, None;
    /// Notification of a client with a token: acpd may forget these answers. A counted line.
    CLIENT_ANSWERED = "_acpd/client/answered", Answered => Empty, Once, Allowed, Some(Watch);
    /// Notification of a client with a token, its last line: acpd forgets it at once. Not counted.
    CLIENT_LEAVE = "_acpd/client/leave", Empty => Empty, Once, Allowed, Some(Watch);
}

notices! {
    /// The daemon was stopped and its agents are gone. For clients with a token and watchers, live
    /// only.
    DAEMON_STOPPED = "_acpd/daemon/stopped", Empty;
    /// The agent got a prompt. Journalled.
    TURN_STARTED = "_acpd/turn_started", TurnStarted;
    /// A turn has ended. Journalled.
    TURN_ENDED = "_acpd/turn_ended", TurnEnded;
    /// A session was restored, or is lost. Journalled.
    RESTORED = "_acpd/restored", Restored;
    /// A permission was decided automatically. Journalled.
    PERMISSION_DECIDED = "_acpd/permission_decided", PermissionDecided;
    /// A client answered a question. Journalled.
    ANSWERED = "_acpd/answered", QuestionAnswered;
    /// Rows have changed, up to 20 times per second. To watchers, live only.
    CHANGED = "_acpd/changed", Changed;
    /// A line between acpd and an agent or client. To tracers, live only.
    TRACED = "_acpd/traced", Traced;
    /// A session's state has changed, or a question was opened or closed. To attached clients, live only.
    SESSION_STATE = "_acpd/session_state", StateChanged;
    /// A session was deleted. To attached clients, live only.
    SESSION_REMOVED = "_acpd/session_removed", SessionGone;
    /// Sessions over a limit were deleted. To all clients that are not under an agent, live only.
    SESSIONS_EXPIRED = "_acpd/sessions_expired", SessionsExpired;
    /// A sentence for the user of a session. Journalled.
    NOTICE = "_acpd/notice", SessionNotice;
    /// A line was too long: of the agent (journalled), or for this client.
    SKIPPED = "_acpd/skipped", Skipped;
    /// The sender's prompt is queued. Live only.
    PROMPT_QUEUED = "_acpd/prompt_queued", PromptQueued;
    /// The sender's prompt was sent before under its idempotency key, and is this turn. Live only.
    PROMPT_REPEATED = "_acpd/prompt_repeated", PromptRepeated;
    /// All journalled lines have been sent. Also to clients with a token without `notices`, live only.
    CAUGHT_UP = "_acpd/caught_up", CaughtUp;
    /// The first lines of a client with a token are safe. After each commit, live only.
    CLIENT_RECEIVED = "_acpd/client/received", Received;
    /// An agent has not answered a request of this client for `stall_notice`. Live only.
    UNANSWERED = "_acpd/unanswered", Unanswered;
    /// An agent's state has changed. To clients of the agent, live only.
    AGENT_STATE = "_acpd/agent_state", AgentNotice;
    /// An agent's login has changed. To clients of the agent, live only.
    AUTH_CHANGED = "_acpd/auth_changed", AuthChanged;
}

impl UnderAgent {
    /// Returns the rights for a method under an agent.
    pub fn of_method(name: &str) -> UnderAgent {
        let known = METHODS.iter().chain(ACP).find(|(known, ..)| *known == name);
        known.map_or(Allowed, |(_, rights, _)| *rights)
    }
}

impl Scope {
    /// Returns the scope that a method needs; `None` if no client from elsewhere may call it.
    pub fn of_method(name: &str) -> Option<Scope> {
        METHODS.iter().chain(ACP).find(|(known, ..)| *known == name)?.2
    }
}

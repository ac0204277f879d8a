//! Names of the extension methods and notices.

/// Daemon, agents, sessions and turns in one answer: [`crate::Empty`] → [`crate::Status`].
pub const STATUS: &str = "_acpd/status";
/// Ends running turns, stops every agent, then the daemon: [`crate::DaemonStopParams`] →
/// [`crate::Empty`]. The answer is sent when the agents are gone, or, with `detach`, left alone.
pub const DAEMON_STOP: &str = "_acpd/daemon/stop";
/// Runs the installed program in the daemon's place, under the same pid; agents and turns go on:
/// [`crate::Empty`] → [`crate::Empty`]. A configuration that cannot be read is an error, and nothing
/// changes. The answer is sent before; the successor has another [`crate::DaemonInfo::boot`].
pub const DAEMON_RESTART: &str = "_acpd/daemon/restart";

/// Notification [`crate::Empty`] to clients with a token: the daemon was told to stop, its agents are
/// gone, and the connection is about to end for good. Live only.
pub const DAEMON_STOPPED: &str = "_acpd/daemon/stopped";

/// All configured agents: [`crate::Empty`] → [`crate::AgentList`].
pub const AGENT_LIST: &str = "_acpd/agent/list";
/// One agent: [`crate::AgentRef`] → [`crate::AgentInfo`].
pub const AGENT_SHOW: &str = "_acpd/agent/show";
/// Wants an agent up and clears a crash loop; answered when it is ready or has failed:
/// [`crate::AgentRef`] → [`crate::AgentInfo`].
pub const AGENT_START: &str = "_acpd/agent/start";
/// Stops an agent and keeps it down until it is started: [`crate::AgentRef`] → [`crate::AgentInfo`].
pub const AGENT_STOP: &str = "_acpd/agent/stop";
/// Stops an agent and starts it again; its sessions are restored: [`crate::RestartParams`] →
/// [`crate::AgentInfo`].
pub const AGENT_RESTART: &str = "_acpd/agent/restart";

/// A person has logged in without `authenticate`: the agent is started anew, and what waited for the
/// login comes back: [`crate::AgentRef`] → [`crate::AgentInfo`]. Answered when it is ready or has failed.
pub const AUTH_DONE: &str = "_acpd/auth/done";

/// Sessions of all agents: [`crate::SessionListParams`] → [`crate::SessionList`].
pub const SESSION_LIST: &str = "_acpd/session/list";
/// One session by name, id or unique prefix: [`crate::SessionRef`] → [`crate::SessionInfo`].
pub const SESSION_SHOW: &str = "_acpd/session/show";
/// A page of a session's journal: [`crate::LogParams`] → [`crate::LogResult`].
pub const SESSION_LOG: &str = "_acpd/session/log";
/// Finds what was said, by words: [`crate::SearchParams`] → [`crate::SearchResult`].
pub const SESSION_SEARCH: &str = "_acpd/session/search";
/// Follows a session of any agent from a sequence number: [`crate::AttachParams`] →
/// [`crate::AttachResult`]; then the journal, then a [`CAUGHT_UP`] notice, then what comes.
pub const SESSION_ATTACH: &str = "_acpd/session/attach";
/// Stops following: [`crate::SessionRef`] → [`crate::Empty`].
pub const SESSION_DETACH: &str = "_acpd/session/detach";
/// Gives a session another name: [`crate::RenameParams`] → [`crate::SessionInfo`].
pub const SESSION_RENAME: &str = "_acpd/session/rename";
/// Gives a session a title, which stands before the agent's: [`crate::TitleParams`] →
/// [`crate::SessionInfo`].
pub const SESSION_TITLE: &str = "_acpd/session/title";
/// Tells a session that its directory is another one; it comes back there: [`crate::MoveParams`] →
/// [`crate::SessionInfo`]. Refused while a turn runs in it.
pub const SESSION_MOVE: &str = "_acpd/session/move";
/// Gives up what the agent has of a session: the next prompt goes on in a new one, behind a summary, and
/// that is told: [`crate::ReseedParams`] → [`crate::SessionInfo`]. Refused to a client that runs under an
/// agent.
pub const SESSION_RESEED: &str = "_acpd/session/reseed";
/// Frees the agent's copy; the session stays listed and comes back with the next prompt:
/// [`crate::SessionRef`] → [`crate::SessionInfo`].
pub const SESSION_CLOSE: &str = "_acpd/session/close";
/// Closes a session for all and leaves it out of lists: [`crate::SessionRef`] →
/// [`crate::SessionInfo`].
pub const SESSION_ARCHIVE: &str = "_acpd/session/archive";
/// Lists a session again: [`crate::SessionRef`] → [`crate::SessionInfo`].
pub const SESSION_UNARCHIVE: &str = "_acpd/session/unarchive";
/// Deletes a session and its journal for good: [`crate::SessionRef`] → [`crate::Empty`].
pub const SESSION_REMOVE: &str = "_acpd/session/remove";

/// Questions of agents that wait for a person: [`crate::Empty`] → [`crate::InteractionList`].
pub const INTERACTION_LIST: &str = "_acpd/interaction/list";
/// Answers one of them: [`crate::AnswerParams`] → [`crate::Empty`]. Refused to a client that runs under
/// an agent.
pub const INTERACTION_ANSWER: &str = "_acpd/interaction/answer";
/// Remembered decisions: [`crate::Empty`] → [`crate::PolicyList`].
pub const POLICY_LIST: &str = "_acpd/policy/list";
/// Takes a remembered decision back: [`crate::ForgetParams`] → [`crate::Empty`].
pub const POLICY_FORGET: &str = "_acpd/policy/forget";
/// Who would answer a permission question, and why: [`crate::PolicyTestParams`] → an object with the
/// `rules` in their order, what could be remembered (`subject`), and the `decision`.
pub const POLICY_TEST: &str = "_acpd/policy/test";

/// Notice [`crate::TurnStarted`]. Journalled.
pub const TURN_STARTED: &str = "_acpd/turn_started";
/// Notice [`crate::TurnEnded`]. Journalled.
pub const TURN_ENDED: &str = "_acpd/turn_ended";
/// Notice [`crate::Restored`]. Journalled.
pub const RESTORED: &str = "_acpd/restored";
/// Notice [`crate::PermissionDecided`]: a question was answered without a person. Journalled.
pub const PERMISSION_DECIDED: &str = "_acpd/permission_decided";
/// Notice [`crate::StateChanged`]. Live only.
pub const SESSION_STATE: &str = "_acpd/session_state";
/// Notice [`crate::SessionGone`]: the session was deleted. Live only.
pub const SESSION_REMOVED: &str = "_acpd/session_removed";
/// Notice [`crate::SessionNotice`]: a sentence for the person at a session. Journalled.
pub const NOTICE: &str = "_acpd/notice";
/// Notice [`crate::Skipped`]: a line that was too long to relay. Journalled.
pub const SKIPPED: &str = "_acpd/skipped";
/// Notice [`crate::PromptQueued`]: another prompt runs first. Live only.
pub const PROMPT_QUEUED: &str = "_acpd/prompt_queued";
/// Notice [`crate::CaughtUp`]: all that was journalled has been sent. Live only. A client with a
/// token gets it without notices, too.
pub const CAUGHT_UP: &str = "_acpd/caught_up";
/// Notification [`crate::Received`] to a client with a token, after each commit. Live only.
pub const CLIENT_RECEIVED: &str = "_acpd/client/received";
/// Notification [`crate::Answered`] of a client with a token. A counted line.
pub const CLIENT_ANSWERED: &str = "_acpd/client/answered";
/// Notification [`crate::Empty`] of a client with a token: it ends and will not come back, so that
/// acpd forgets it at once. Its last line; not counted.
pub const CLIENT_LEAVE: &str = "_acpd/client/leave";
/// Notice [`crate::Unanswered`]: an agent takes long to answer a request of this client. Live only.
pub const UNANSWERED: &str = "_acpd/unanswered";
/// Notice [`crate::AgentNotice`]: an agent changed its state. Live only.
pub const AGENT_STATE: &str = "_acpd/agent_state";
/// Notice [`crate::AuthChanged`]: it changed whether an agent is logged in. Live only.
pub const AUTH_CHANGED: &str = "_acpd/auth_changed";

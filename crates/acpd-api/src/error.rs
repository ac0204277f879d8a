//! Machine-readable reasons of errors, in `error.data._acpd`.

use serde::{Deserialize, Serialize};

use crate::Untrusted;

/// `error.data._acpd` of acpd's own errors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorData {
    /// Reason of the error, for programs.
    pub reason: Reason,
    /// The way out, in one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<Untrusted>,
    /// The session in question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Untrusted>,
    /// The last lines of the agent's stderr.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<Untrusted>,
}

impl ErrorData {
    /// Creates data with a reason only.
    pub fn new(reason: Reason) -> ErrorData {
        ErrorData { reason, hint: None, session_id: None, stderr: None }
    }

    /// Adds the way out.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<Untrusted>) -> ErrorData {
        self.hint = Some(hint.into());
        self
    }
}

/// Reason of an error of acpd.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Parameters that do not fit.
    Invalid,
    /// No agent profile of that name.
    AgentUnknown,
    /// The agent's process could not be started.
    AgentStartFailed,
    /// The agent's process ended.
    AgentExited,
    /// The user stopped the agent.
    AgentStopped,
    /// The agent crashes repeatedly and is no longer restarted.
    AgentCrashLoop,
    /// Processes of the agent's last run survive SIGKILL.
    AgentLeftovers,
    /// The agent did not answer in time.
    AgentTimeout,
    /// The agent speaks another protocol version.
    AgentProtocol,
    /// The agent requires a login.
    NeedsLogin,
    /// There is no such session.
    SessionNotFound,
    /// Several sessions match; a longer reference is needed.
    SessionAmbiguous,
    /// The agent no longer has the session.
    SessionLost,
    /// The session waits for an action of the user.
    SessionBlocked,
    /// The directory of the session does not exist.
    CwdMissing,
    /// The session was deleted while the request waited.
    SessionRemoved,
    /// Another session has that name.
    NameTaken,
    /// The turn was cut off.
    Interrupted,
    /// No turn runs that could take the message.
    NoTurn,
    /// The budget of the day is used up, and the user did not allow the prompt.
    Budget,
    /// The agent takes no message into a running turn.
    CannotSteer,
    /// The turn failed: it ended without any output of the agent.
    EmptyTurn,
    /// The turn failed by the signs of its profile, although the agent reported a normal end.
    FailedTurn,
    /// The agent may or may not have got the request.
    OutcomeUnknown,
    /// The journal cannot be written.
    StoreFailed,
    /// A line was longer than the limit.
    LineTooLong,
    /// A limit of acpd is reached: clients, requests in flight, queued prompts.
    TooMany,
    /// Another connection came with the client's token; this one is closed and must not be resumed.
    Replaced,
    /// The client runs under an agent and must not decide for a person.
    UnderAgent,
    /// The scopes of the client's token do not allow this.
    OutOfScope,
    /// The daemon is going down.
    ShuttingDown,
    /// A newer reason than this client knows.
    #[serde(other)]
    Other,
}

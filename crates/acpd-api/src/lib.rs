//! Types of acpd's protocol beyond ACP.
//!
//! A connection speaks ACP v1. acpd's own parts are extension methods `_acpd/…` on the same
//! connection, notices (notifications `_acpd/…`, only for clients that asked for them), and members
//! `_acpd` of a `_meta` or `error.data` object. The daemon, the command line and plugins share the
//! types of this crate.
//!
//! JSON members are camelCase as in ACP; times are milliseconds since the Unix epoch.

#![warn(missing_docs)]

mod auth;
mod copy;
mod environment;
mod error;
pub mod escape;
mod exit;
mod gc;
mod hook;
mod info;
mod interaction;
pub mod json;
mod meta;
pub mod method;
mod metrics;
mod nearest;
mod notice;
mod params;
mod queue;
pub mod redact;
mod reseed;
mod resume;
mod scope;
mod search;
mod shown;
mod tools;
mod trace;
pub mod under_agent;
mod untrusted;
mod usage;
mod watch;
mod who;

pub use auth::{AuthChanged, AuthInfo, AuthSource, AuthState, LoginMethod};
pub use copy::{CopyLine, CopyReport};
pub use environment::{Environment, is_named};
pub use error::{ErrorData, Reason};
pub use exit::{ExitCode, LOGIN_NOT_BEGUN};
pub use gc::{GcLimit, GcParams, GcResult, GcSession};
pub use hook::{AgentTroubleInfo, HookEvent, HookInfo, TurnEndInfo};
pub use info::{
    AgentInfo, AgentState, ConfigChanged, ConfigMistake, ConfigPlace, ConfigReport, ConfigValue,
    ConfigValues, DaemonInfo, Doing, DoingKind, LoginShellInfo, McpInfo, McpKind, PackageInfo,
    Reseed, RestoreLevel, SessionInfo, SessionRowKey, SessionState, ShimInfo, Status, StoreState,
    TurnInfo, TurnState, VariableFrom, VariableInfo,
};
pub use interaction::{
    AnswerInfo, AnswerParams, AnswerResult, ForgetParams, GivenAnswer, InteractionInfo,
    InteractionList, OptionInfo, PermissionDecided, PolicyList, PolicyTestParams, Question,
    QuestionAnswered, RememberedInfo,
};
pub use meta::{ClientMeta, Meta, NewSessionMeta, PermissionMeta, PromptMeta, Role, UpdateMeta};
pub use metrics::{
    AgentMetrics, Bucket, Histogram, JournalMetrics, Latencies, Metrics, QueueMetrics, TurnMetrics,
};
pub use nearest::nearest;
pub use notice::{
    AgentNotice, CaughtUp, Outcome, PromptQueued, PromptRepeated, Restored, SessionGone,
    SessionNotice, SessionsExpired, Skipped, StateChanged, TurnEnded, TurnStarted, Unanswered,
};
pub use params::{
    AgentList, AgentRef, ArchiveFilter, AttachParams, AttachResult, CancelParams,
    DaemonRestartParams, DaemonStopParams, Empty, LogEntry, LogLevel, LogLevelParams, LogParams,
    LogResult, McpCallParams, McpServerList, MoveParams, RemoveParams, RemoveResult, RenameParams,
    RestartParams, SessionList, SessionListParams, SessionRef, StatusParams, TitleParams,
    UndoParams, UndoResult,
};
pub use queue::{
    CancelResult, QueueEditParams, QueueInfo, QueueMoveParams, QueueRemoveParams, QueueStep,
    QueuedPrompt,
};
pub use reseed::ReseedParams;
pub use resume::{Answered, ClientToken, Leaving, LoadMeta, RawId, Received, Resume, Resumed};
pub use scope::Scope;
pub use search::{Hit, Part, SearchParams, SearchResult, Speaker};
pub use shown::{RawCall, Shown, ShownDiff, ShownUnclear};
pub use tools::Tools;
pub use trace::{Direction, LineKind, TraceParams, Traced};
pub use under_agent::UnderAgent;
pub use untrusted::Untrusted;
pub use usage::{
    Amount, BudgetInfo, Cost, Tokens, TurnUsage, Usage, UsageBy, UsageParams, UsageReport,
    UsageTotal,
};
pub use watch::{Changed, Removed, Watched};
pub use who::{ClientName, CutShort};

/// The key of acpd's own members in `_meta` and `error.data`.
pub const NAMESPACE: &str = "_acpd";

/// Returns whether a method belongs to acpd's protocol.
pub fn is_own(method: &str) -> bool {
    method.strip_prefix(NAMESPACE).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Version of the `_acpd/*` methods; a daemon serves this one and the one before it.
pub const API_VERSION: u32 = 1;

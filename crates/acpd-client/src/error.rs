use std::io;
use std::path::PathBuf;

use acp_wire::ErrorObject;
use acpd_api::{ErrorData, NAMESPACE, Untrusted};
use acpd_sys::files::DirError;
use acpd_sys::lock::{self, LockError};
use acpd_sys::paths::Paths;
use acpd_sys::process::{self, Condition, condition};
use acpd_sys::startup::SpawnError;
use acpd_sys::users::UserId;
use thiserror::Error;

use crate::program::obstacle;
use crate::request::member;

/// Reasons why there is no connection.
#[derive(Debug, Error)]
pub enum ConnectError {
    #[error("acpd is not running")]
    NotRunning,
    /// A daemon runs without its socket: it starts, ends, or the runtime directory was removed.
    #[error("acpd runs{}, and its socket `{}` is not there", .pid.map(|pid| format!(" (process {pid})")).unwrap_or_default(), .socket.display())]
    NoSocket { socket: PathBuf, pid: Option<u32> },
    #[error(transparent)]
    Dir(#[from] DirError),
    #[error("cannot connect to `{}`", .socket.display())]
    Socket { socket: PathBuf, source: io::Error },
    /// A process listens there, but accepts no connections or sends nothing.
    #[error(transparent)]
    NotAnswering(#[from] NotAnswering),
    #[error("`{}` is served by user {uid}, not by you", .socket.display())]
    ForeignServer { socket: PathBuf, uid: UserId },
    /// Another client starts the daemon and does not finish.
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error("acpd has not ended in {seconds} s{}", .pid.map(|pid| format!(" (process {pid})")).unwrap_or_default())]
    StillRunning { seconds: u64, pid: Option<u32>, log: PathBuf },
    /// The system refused a thread or random bits.
    #[error("cannot prepare the connection")]
    System(#[source] io::Error),
    /// The daemon answers, but does not resume the connection.
    #[error("it does not accept the returning connection{}", .reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default())]
    NotTakenBack { reason: Option<String> },
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    #[error("acpd cannot start: {reason}")]
    StartFailed { reason: String, hint: Option<String> },
    #[error("acpd ended while it started")]
    StartDied { log: PathBuf },
    #[error("acpd has not started in {seconds} s")]
    StartTimedOut { seconds: u64, log: PathBuf },
    /// `reason` is escaped, because it comes from another machine; so is `version`.
    #[error("cannot reach acpd on `{host}`: {reason}")]
    Unreachable { host: String, reason: String, hint: String },
    #[error("acpd is not running on `{host}`")]
    NotRunningOn { host: String },
    #[error("acpd on `{host}` is {version}, too different from this version")]
    OtherApi { host: String, version: String },
}

impl ConnectError {
    /// The way out, as a sentence without its period.
    pub fn hint(&self) -> Option<String> {
        match self {
            ConnectError::NotRunning => {
                Some("start it with `acpctl daemon start`, or leave out `--no-spawn`".to_owned())
            }
            ConnectError::NoSocket { .. } => Some(
                "acpd makes the socket again as soon as its directory can be made; try again in a moment".to_owned(),
            ),
            ConnectError::Dir(error) => error.hint(),
            ConnectError::NotAnswering(silent) => Some(silent.hint()),
            ConnectError::StartFailed { hint, .. } => hint.clone(),
            ConnectError::Unreachable { hint, .. } => Some(hint.clone()),
            ConnectError::NotRunningOn { host } => Some(format!(
                "start it there with `acpctl daemon start`, or set `start = true` in `[hosts.{host}]`"
            )),
            ConnectError::OtherApi { .. } => {
                Some("install the same version of acpd on both machines".to_owned())
            }
            ConnectError::Socket { .. } | ConnectError::System(_) => None,
            ConnectError::ForeignServer { .. } => Some(
                "choose a directory of your own with ACPD_RUNTIME_DIR, and tell whoever runs this machine"
                    .to_owned(),
            ),
            ConnectError::Lock(LockError::Held { .. }) => {
                Some("another acpctl is starting the daemon; try again in a moment".to_owned())
            }
            ConnectError::Lock(LockError::Io { .. }) => None,
            ConnectError::Spawn(error) => error.hint(),
            ConnectError::NotTakenBack { .. } => {
                Some("look into its log with `acpctl daemon logs`".to_owned())
            }
            ConnectError::StartDied { log, .. }
            | ConnectError::StartTimedOut { log, .. }
            | ConnectError::StillRunning { log, .. } => {
                Some(format!("look into its log `{}`", log.display()))
            }
        }
    }
}

/// A daemon that does not answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NotAnswering {
    /// A daemon that runs; or none, and a service manager that listens for it cannot start one.
    #[error(
        "acpd does not answer{}{}",
        .process.map(|(pid, condition)| format!(" (pid {pid}, {condition})")).unwrap_or_default(),
        .obstacle.as_ref().map(|why| format!(": it cannot start: {why}")).unwrap_or_default()
    )]
    Here {
        /// The daemon's pid and state, if the lock file has them.
        process: Option<(u32, Condition)>,
        /// Why no daemon can start, if none runs.
        obstacle: Option<String>,
        log: PathBuf,
    },
    #[error("acpd on `{host}` does not answer")]
    There { host: String },
}

impl NotAnswering {
    /// Checks the daemon. That may take some seconds if none runs.
    pub(crate) fn now(paths: &Paths) -> NotAnswering {
        let is_there = lock::is_held(&paths.lock()).unwrap_or(true);
        let obstacle = if is_there { None } else { obstacle(paths) };
        NotAnswering::Here { process: process_of(paths), obstacle, log: paths.daemon_log() }
    }

    /// Reads the daemon's pid from the lock file, and its state from the system.
    pub(crate) fn seen(paths: &Paths) -> NotAnswering {
        let log = paths.daemon_log();
        NotAnswering::Here { process: process_of(paths), obstacle: None, log }
    }

    /// Returns whether a signal or a debugger has stopped the daemon.
    pub(crate) fn is_stopped(&self) -> bool {
        matches!(self, NotAnswering::Here { process: Some((_, Condition::Stopped)), .. })
    }

    pub fn hint(&self) -> String {
        let NotAnswering::Here { process, obstacle, log } = self else {
            return "look there: `acpctl doctor`".to_owned();
        };
        let log = log.display();
        match process {
            Some((pid, Condition::Stopped)) => process::resume_hint(*pid),
            Some((pid, _)) => format!(
                "look into its log `{log}`; `{}` ends it, and the next command starts a new daemon",
                process::kill_command(*pid)
            ),
            None if obstacle.is_some() => {
                "mend that: `acpctl doctor` says more; if it is a service that has given up meanwhile, \
                 `acpctl service install` has it start again"
                    .to_owned()
            }
            None => format!(
                "look into its log `{log}`, or into `acpctl service logs` if it is a service; \
                 `acpctl doctor` looks for what is wrong"
            ),
        }
    }
}

fn process_of(paths: &Paths) -> Option<(u32, Condition)> {
    // Without the lock, the pid may belong to any process by now.
    let is_held = lock::is_held(&paths.lock()).unwrap_or(false);
    let pid = is_held.then(|| lock::signature(&paths.lock())).flatten()?.pid;
    Some((pid, condition(pid)?))
}

/// Reasons for the end of a connection. All are final.
#[derive(Debug, Error)]
pub enum LinkError {
    #[error("acpd closed the connection")]
    Closed,
    #[error("{}", .0.message)]
    Dismissed(ErrorObject),
    #[error("acpd was stopped")]
    Stopped,
    #[error(transparent)]
    NotAnswering(#[from] NotAnswering),
    /// The daemon closed the connection before its first answer, and another try failed.
    #[error(transparent)]
    NotStarted(ConnectError),
    #[error("acpd has not come back in {seconds} s")]
    GaveUp { seconds: u64, source: ConnectError },
    /// The daemon came back, but no longer has the state of the connection.
    #[error(transparent)]
    Unresumable(#[from] Unresumable),
    #[error("the connection to acpd broke")]
    Io(#[from] io::Error),
}

impl LinkError {
    pub fn hint(&self) -> Option<String> {
        match self {
            // The user may start a daemon even if the options forbid it here.
            LinkError::GaveUp { source: ConnectError::NotRunning, .. } | LinkError::Stopped => {
                Some("start it with `acpctl daemon start`".to_owned())
            }
            LinkError::GaveUp { source, .. } | LinkError::NotStarted(source) => source.hint(),
            LinkError::Unresumable(_) => {
                Some("start again; `acpctl ps` shows what is there".to_owned())
            }
            LinkError::NotAnswering(silent) => Some(silent.hint()),
            LinkError::Dismissed(error) => error_data(error)?.hint.map(Untrusted::into_raw),
            LinkError::Closed | LinkError::Io(_) => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Unresumable {
    #[error(
        "acpd came back with another journal: somebody restored a backup or removed the database"
    )]
    OtherJournal,
    #[error("acpd came back and no longer knows this connection")]
    Forgotten,
}

#[derive(Debug, Error)]
pub enum CallError {
    #[error("{}", .0.message)]
    Rpc(ErrorObject),
    /// The result is not what this version expects.
    #[error("acpd's answer to `{method}` cannot be read")]
    Unreadable { method: String, source: serde_json::Error },
    #[error(transparent)]
    Ended(#[from] LinkError),
}

impl CallError {
    /// acpd's own part of the error, if it has one.
    pub fn data(&self) -> Option<ErrorData> {
        match self {
            CallError::Rpc(error) | CallError::Ended(LinkError::Dismissed(error)) => {
                error_data(error)
            }
            _ => None,
        }
    }
}

/// The member `_acpd` of an error's data.
pub fn error_data(error: &ErrorObject) -> Option<ErrorData> {
    member(error.data.as_ref()?, &[NAMESPACE])
}

pub fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

#[cfg(test)]
mod tests {
    use acpd_api::Reason;

    use super::*;

    #[test]
    fn only_acpds_own_part_of_an_error_is_read() {
        let mine = r#"{"code":-32603,"message":"m","data":{"_acpd":{"reason":"needs_login","hint":"h"},"x":1}}"#;
        let data = error_data(&serde_json::from_str(mine).unwrap()).unwrap();
        assert_eq!((data.reason, data.hint), (Reason::NeedsLogin, Some("h".into())));

        for other in [r#""text""#, r#"{"details":"x"}"#, r#"{"_acpd":7}"#, "null"] {
            let error = format!(r#"{{"code":1,"message":"m","data":{other}}}"#);
            assert_eq!(error_data(&serde_json::from_str(&error).unwrap()), None, "{other}");
        }
    }
}

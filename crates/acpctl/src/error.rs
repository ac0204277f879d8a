//! Errors of verbs: message, hints and exit code.

use std::error::Error;
use std::io;
use std::path::Path;

use acp_wire::acp::Unreadable;
use acp_wire::{ErrorObject, code, plain_words};
use acpd_api::{ExitCode, NAMESPACE, Reason, Untrusted, escape};
use acpd_client::attachment::AttachmentError;
use acpd_client::worktree::Error as WorktreeError;
use acpd_client::{CallError, ConnectError, LinkError, PathError, chain, error_data};
use serde_json::Value;

use anstream::adapter::strip_str;

use crate::text::{Role, Style, Text, shell_word, text};

const STDERR_LINES: usize = 5;

pub(crate) type Result<T = (), E = CommandError> = std::result::Result<T, E>;

#[derive(Debug)]
pub(crate) struct CommandError {
    pub(crate) kind: ErrorKind,
    pub(crate) reason: Option<Reason>,
    pub(crate) message: Text,
    pub(crate) hints: Vec<Text>,
    stderr: Option<Untrusted>,
    /// The daemon has another version: it does not know the method.
    is_unknown: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    Exit(ExitCode),
    /// The daemon ended before it answered.
    Gone,
    /// No daemon runs on another machine, and none may be started there.
    NotRunningThere,
    /// The daemon could not start, and printed the reason.
    NotStarted,
    /// The reader of stdout is gone: print nothing.
    BrokenPipe,
    AlreadyPrinted,
}

impl CommandError {
    pub(crate) fn new(code: ExitCode, message: impl Into<Text>) -> CommandError {
        let message = message.into();
        let kind = ErrorKind::Exit(code);
        let (reason, hints, stderr) = (None, Vec::new(), None);
        CommandError { kind, reason, message, hints, stderr, is_unknown: false }
    }

    pub(crate) fn printed() -> CommandError {
        CommandError { kind: ErrorKind::AlreadyPrinted, ..CommandError::new(ExitCode::Error, "") }
    }

    /// Fails with an error that the user has seen already.
    pub(crate) fn printed_unless(is_ok: bool) -> Result {
        if is_ok { Ok(()) } else { Err(CommandError::printed()) }
    }

    pub(crate) fn usage(message: impl Into<Text>) -> CommandError {
        CommandError::new(ExitCode::Usage, message)
    }

    pub(crate) fn file(what: &'static str, path: &Path, error: &io::Error) -> CommandError {
        let is_missing = error.kind() == io::ErrorKind::NotFound;
        let code = if is_missing { ExitCode::NotFound } else { ExitCode::Error };
        CommandError::new(code, text!("cannot {} `{}`: {}", what, path, error))
    }

    pub(crate) fn because(code: ExitCode, error: &dyn Error) -> CommandError {
        CommandError::new(code, paragraph(&chain(error).into()))
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<Text>) -> CommandError {
        self.hints.push(hint.into());
        self
    }

    #[must_use]
    pub(crate) fn hint_if(mut self, hint: Option<impl Into<Untrusted>>) -> CommandError {
        self.hints.extend(hint.map(|hint| Text::from(hint.into())));
        self
    }

    #[must_use]
    pub(crate) fn with_code(mut self, code: ExitCode) -> CommandError {
        self.kind = ErrorKind::Exit(code);
        self
    }

    pub(crate) fn code(&self) -> ExitCode {
        match self.kind {
            ErrorKind::Exit(code) => code,
            ErrorKind::Gone | ErrorKind::NotStarted | ErrorKind::AlreadyPrinted => ExitCode::Error,
            ErrorKind::NotRunningThere => ExitCode::NotFound,
            ErrorKind::BrokenPipe => ExitCode::Ok,
        }
    }

    pub(crate) fn is_unknown_method(&self) -> bool {
        self.is_unknown && self.message.as_str().contains("no method")
    }

    /// Returns the text for stderr; empty if the error is already printed.
    pub(crate) fn render(&self) -> Text {
        if matches!(self.kind, ErrorKind::BrokenPipe | ErrorKind::AlreadyPrinted) {
            return Text::new();
        }
        let mut text =
            text!("{} {}\n", Text::styled(Style::of(Role::Bad).strong(), "error:"), self.message);
        if let Some(stderr) = &self.stderr {
            let lines: Vec<&str> = stderr.raw().lines().collect();
            for line in &lines[lines.len().saturating_sub(STDERR_LINES)..] {
                let line = text!("  | {}", escape::one_line(&strip_str(line).to_string()));
                text += text!("{}\n", Text::styled(Role::Dim, line));
            }
        }
        for hint in &self.hints {
            text += text!("\n{} {}\n", Text::styled(Style::of(Role::Name).strong(), "hint:"), hint);
        }
        text
    }

    /// Converts an error of a turn. An agent's own error names the agent.
    pub(crate) fn of_agent(agent: &str, error: &ErrorObject) -> CommandError {
        let mut failed = CommandError::rpc(error);
        if error_data(error).is_none() {
            failed.message = text!("agent `{}`: {}", escape::one_line(agent), failed.message);
        }
        failed
    }

    pub(crate) fn rpc(error: &ErrorObject) -> CommandError {
        let Some(data) = error_data(error) else {
            return agent_error(error);
        };
        let message = Untrusted::from(&error.message);
        let mut failed = CommandError::new(data.reason.into(), paragraph(&message));
        failed.reason = Some(data.reason);
        // Agents answer unknown methods without `data` of acpd.
        failed.is_unknown = error.code == code::METHOD_NOT_FOUND;
        failed.stderr = data.stderr.filter(|stderr| !stderr.raw().trim().is_empty());
        let hint = data.hint.or_else(|| way_out(data.reason).map(Untrusted::from));
        failed.hint_if(hint)
    }
}

/// Indents all lines except the first, so that none can pass for a line of acpctl.
pub(crate) fn paragraph(text: &Untrusted) -> Text {
    let lines = text.raw().trim_end().lines().map(|line| escape::verbatim(line).into());
    Text::join(lines, "\n  ")
}

fn agent_error(error: &ErrorObject) -> CommandError {
    let code = match error.code {
        code::AUTH_REQUIRED => ExitCode::NeedsLogin,
        code::NOT_FOUND => ExitCode::NotFound,
        code::CANCELLED => ExitCode::Cancelled,
        _ => ExitCode::Error,
    };
    let mut message = Text::from(escape::one_line(&plain_words(&error.message)));
    if message.is_empty() {
        message = text!("the agent failed with code {}", error.code);
    }
    // The actual reason is often in the data.
    if let Some(detail) = detail(error) {
        let detail = Text::from(detail);
        if !detail.is_empty() && !message.as_str().contains(detail.as_str()) {
            message += text!(": {}", detail);
        }
    }
    let mut failed = CommandError::new(code, message);
    if code == ExitCode::NeedsLogin {
        failed.reason = Some(Reason::NeedsLogin);
        failed = failed.hint(NEEDS_LOGIN);
    }
    failed
}

fn detail(error: &ErrorObject) -> Option<Untrusted> {
    Some(match serde_json::from_str(error.data.as_ref()?.get()).ok()? {
        Value::Null => return None,
        Value::Object(map) if map.is_empty() || map.contains_key(NAMESPACE) => return None,
        other => error.detail().unwrap_or_else(|| other.to_string()).into(),
    })
}

const NEEDS_LOGIN: &str = "log in with `acpctl auth login`, then try again";

fn way_out(reason: Reason) -> Option<&'static str> {
    Some(match reason {
        Reason::AgentUnknown => "list the agents with `acpctl agent ls`",
        Reason::SessionNotFound | Reason::SessionRemoved => {
            "list the sessions with `acpctl session ls`"
        }
        Reason::SessionAmbiguous => "choose with `-a AGENT`, or give the id, or more of the name",
        Reason::NeedsLogin => NEEDS_LOGIN,
        Reason::AgentExited | Reason::Interrupted => {
            "Send another prompt to continue. The interrupted turn is not repeated."
        }
        Reason::AgentStopped => "start it with `acpctl agent start`",
        Reason::AgentCrashLoop => "see `acpctl agent logs`, then `acpctl agent start`",
        Reason::SessionLost => "its history can still be read: `acpctl session log`",
        Reason::OutcomeUnknown => "see `acpctl session log` before you send it again",
        _ => return None,
    })
}

impl From<CallError> for CommandError {
    fn from(error: CallError) -> CommandError {
        match error {
            CallError::Rpc(error) => CommandError::rpc(&error),
            CallError::Ended(end) => end.into(),
            CallError::Unreadable { .. } => CommandError::because(ExitCode::Error, &error)
                .hint("acpctl and acpd may differ in version; run `acpctl daemon restart`"),
        }
    }
}

impl From<Unreadable> for CommandError {
    fn from(error: Unreadable) -> CommandError {
        CommandError::because(ExitCode::Error, &error)
    }
}

impl From<ConnectError> for CommandError {
    fn from(error: ConnectError) -> CommandError {
        let kind = match error {
            ConnectError::NotRunning => ErrorKind::Exit(ExitCode::NotFound),
            ConnectError::NotRunningOn { .. } => ErrorKind::NotRunningThere,
            ConnectError::StartFailed { .. } => ErrorKind::NotStarted,
            _ => ErrorKind::Exit(ExitCode::Error),
        };
        let failed = CommandError::because(ExitCode::Error, &error).hint_if(error.hint());
        CommandError { kind, ..failed }
    }
}

impl From<LinkError> for CommandError {
    fn from(error: LinkError) -> CommandError {
        match error {
            LinkError::Dismissed(why) => CommandError::rpc(&why),
            LinkError::NotStarted(error) => error.into(),
            LinkError::Closed | LinkError::Io(_) => {
                let failed = CommandError::new(ExitCode::Error, "acpd closed the connection");
                let failed = failed.hint("see `acpctl daemon logs`");
                CommandError { kind: ErrorKind::Gone, ..failed }
            }
            error => {
                let failed = CommandError::because(ExitCode::Error, &error).hint_if(error.hint());
                let is_gone = matches!(error, LinkError::Stopped);
                CommandError { kind: if is_gone { ErrorKind::Gone } else { failed.kind }, ..failed }
            }
        }
    }
}

impl From<PathError> for CommandError {
    fn from(error: PathError) -> CommandError {
        CommandError::because(ExitCode::Error, &error).hint_if(error.hint())
    }
}

impl From<AttachmentError> for CommandError {
    fn from(error: AttachmentError) -> CommandError {
        let failed = CommandError::new(error.code, Untrusted::of(&error));
        error.hints.iter().fold(failed, |failed, hint| failed.hint(*hint))
    }
}

impl From<WorktreeError> for CommandError {
    fn from(error: WorktreeError) -> CommandError {
        let message = Text::from(Untrusted::from(error.to_string()));
        let hint: Text = match error {
            WorktreeError::Exists(_) => {
                "continue its session with `acpctl run --resume SESSION …`, or choose another name: \
                 `--worktree=NAME`"
                    .into()
            }
            WorktreeError::BranchExists(branch) => text!(
                "choose another name: `--worktree=NAME`; or delete it: git branch -d {}",
                shell_word(&branch.into())
            ),
            WorktreeError::BadName(_) => {
                "choose a name of letters, digits and dashes: `--worktree=NAME`".into()
            }
            WorktreeError::NoRepository(_) => {
                "create one with `git init`, or leave out `--worktree`".into()
            }
            WorktreeError::NoCommit(_) => "commit something first".into(),
            WorktreeError::FromNone(branch) => {
                text!("merge it yourself: git merge {}", shell_word(&branch.into()))
            }
            WorktreeError::NotCheckedOut(_) => "check it out (git switch), then try again".into(),
            WorktreeError::Changes(_) => "commit or stash them, then try again".into(),
            WorktreeError::Path(_) | WorktreeError::NotUtf8 => {
                "agents need paths that JSON can hold; rename it".into()
            }
            WorktreeError::NotMerged { place, branch, why } => {
                return CommandError::from(*why).hint(text!(
                    "nothing was merged; merge it yourself in `{}`: git merge {}",
                    place,
                    Untrusted::from(branch)
                ));
            }
            WorktreeError::CannotRun(error) if error.kind() == io::ErrorKind::NotFound => {
                let failed = CommandError::new(ExitCode::Error, message);
                return failed.hint("install git, or leave out `--worktree`");
            }
            WorktreeError::Failed { .. }
            | WorktreeError::CannotMake { .. }
            | WorktreeError::CannotRun(_) => return CommandError::new(ExitCode::Error, message),
        };
        CommandError::usage(message).hint(hint)
    }
}

/// Errors of stdout. Other I/O errors describe what failed.
impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> CommandError {
        let mut failed = CommandError::new(ExitCode::Error, text!("cannot write: {}", error));
        if error.kind() == io::ErrorKind::BrokenPipe {
            failed.kind = ErrorKind::BrokenPipe;
        }
        failed
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rpc(code: i64, message: &str, data: &Value) -> CommandError {
        let error = json!({"code": code, "message": message, "data": data});
        CommandError::rpc(&serde_json::from_value(error).unwrap())
    }

    #[test]
    fn the_daemons_reason_decides_the_code_and_its_hint_is_shown() {
        let failed = rpc(
            -32603,
            "agent `demo` exited with code 3",
            &json!({"_acpd": {
            "reason": "agent_exited", "hint": "try `acpctl agent logs demo`",
            "stderr": "one\n\u{1b}[31mtwo\n"}}),
        );
        assert_eq!(failed.code(), ExitCode::Interrupted);
        insta::assert_snapshot!(failed.render(), @"
        error: agent `demo` exited with code 3
          | one
          | two

        hint: try `acpctl agent logs demo`
        ");
    }

    #[test]
    fn an_agents_own_error_keeps_its_code_and_its_data() {
        let shown = |failed: CommandError| (failed.code().code(), failed.message.to_string());
        assert_eq!(shown(rpc(-32000, "Authentication required", &Value::Null)).0, 4);
        assert_eq!(shown(rpc(-32002, "gone", &json!({}))), (3, "gone".to_owned()));
        let nested = rpc(-32603, "Internal error", &json!({"details": "no\ncredit"}));
        assert_eq!(shown(nested), (1, "Internal error: no credit".to_owned()));
        let provider = r#"429 {"error":{"type":"rate_limit_error","message":"slow down"}}"#;
        let nested = rpc(-32603, "Internal error", &json!({ "details": provider }));
        assert_eq!(shown(nested), (1, "Internal error: 429 slow down".to_owned()));
        let twice = rpc(-32603, "slow down", &json!({"error": {"message": "slow down"}}));
        assert_eq!(shown(twice), (1, "slow down".to_owned()));
        let odd = rpc(400, "", &json!({"status": 400}));
        let text = r#"the agent failed with code 400: {"status":400}"#;
        assert_eq!(shown(odd), (1, text.to_owned()));
    }

    #[test]
    fn a_reader_that_left_is_no_error() {
        let failed = CommandError::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!((failed.render().as_str(), failed.code()), ("", ExitCode::Ok));
    }
}

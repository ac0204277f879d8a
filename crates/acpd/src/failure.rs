//! Errors for people: what failed, and what to do about it.

use std::fmt;

use acpd_api::ExitCode;
use acpd_core::SpawnError;

/// A failure of a command of `acpd`. Displays its hint, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub message: String,
    pub hint: Option<String>,
    pub code: ExitCode,
}

impl Failure {
    pub(crate) fn new(message: impl fmt::Display, hint: Option<impl fmt::Display>) -> Failure {
        let hint = hint.map(|hint| hint.to_string());
        Failure { message: message.to_string(), hint, code: ExitCode::Error }
    }

    /// Returns why an agent is not started. If that is `permanent`, another attempt cannot help.
    pub(crate) fn of_start(self, permanent: bool) -> SpawnError {
        SpawnError { message: self.message, hint: self.hint, permanent }
    }

    pub fn system(what: &str, error: impl fmt::Display) -> Failure {
        Failure::new(format!("{what}: {error}"), None::<String>)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

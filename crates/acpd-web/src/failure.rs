use std::{fmt, io};

use acpd_client::{ConnectError, PathError, chain};
use acpd_sys::files::DirError;
use acpd_sys::lock::LockError;
use serde::Serialize;

/// An error of this server, with the way out. The words may quote files and the system: escape them
/// for a terminal.
#[derive(Debug, Clone, Serialize)]
pub struct Failure {
    error: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Failure {
    pub(crate) fn new(error: impl fmt::Display) -> Failure {
        Failure { error: error.to_string(), hint: None }
    }

    /// Adds the way out, a sentence without its period.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }

    /// Makes an error that begins with its subject.
    pub(crate) fn about(what: impl fmt::Display, error: &dyn std::error::Error) -> Failure {
        Failure::new(format!("{what}: {error}"))
    }

    pub fn way_out(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.error)
    }
}

impl std::error::Error for Failure {}

impl From<DirError> for Failure {
    fn from(error: DirError) -> Failure {
        Failure { error: chain(&error), hint: error.hint() }
    }
}

impl From<LockError> for Failure {
    fn from(error: LockError) -> Failure {
        Failure::new(chain(&error))
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Failure {
        Failure { error: chain(&error), hint: error.hint() }
    }
}

impl From<PathError> for Failure {
    fn from(error: PathError) -> Failure {
        Failure { error: chain(&error), hint: error.hint() }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::new(error)
    }
}

impl From<getrandom::Error> for Failure {
    fn from(error: getrandom::Error) -> Failure {
        Failure::about("the system gives no random bits", &error)
    }
}

use std::error::Error;
use std::fmt;

use acpd_client::{ConnectError, PathError, chain};
use acpd_sys::files::DirError;
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
    pub(crate) fn about(what: impl fmt::Display, error: &dyn Error) -> Failure {
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

/// Takes the hint that an error has. For this a failure is no such error itself.
impl<E: Error + 'static> From<E> for Failure {
    fn from(error: E) -> Failure {
        let any: &(dyn Error + 'static) = &error;
        if any.is::<getrandom::Error>() {
            return Failure::about("the system gives no random bits", any);
        }
        let hint = any.downcast_ref().and_then(DirError::hint);
        let hint = hint.or_else(|| any.downcast_ref().and_then(ConnectError::hint));
        let hint = hint.or_else(|| any.downcast_ref().and_then(PathError::hint));
        Failure { error: chain(any), hint }
    }
}

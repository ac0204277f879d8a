use std::fmt;

use serde::{Deserialize, Serialize};

use crate::escape::{self, Escaped};

/// Text that an agent, a client, a file or the system may have chosen.
///
/// Such text may contain anything: escape sequences, invisible characters, lines that imitate acpd.
/// So it has no `Display` and does not dereference to `str`. The forms of [`escape`](mod@crate::escape)
/// show it; [`Untrusted::raw`] is for everything else.
///
/// All strings of answers and notices have this type, also acpd's own sentences, because these
/// quote agents. In JSON it is a string.
///
/// ```compile_fail
/// println!("{}", acpd_api::Untrusted::from("\u{1b}[2J"));
/// ```
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Untrusted(String);

impl Untrusted {
    /// Creates untrusted text from a displayed value.
    pub fn of(shown: impl fmt::Display) -> Untrusted {
        Untrusted(shown.to_string())
    }

    /// Displays the text on one line: [`escape::one_line`].
    pub fn one_line(&self) -> Escaped<'_> {
        escape::one_line(&self.0)
    }

    /// Displays a line with its white space: [`escape::verbatim`].
    pub fn verbatim(&self) -> Escaped<'_> {
        escape::verbatim(&self.0)
    }

    /// Displays text of several lines: [`escape::prose`].
    pub fn prose(&self) -> Escaped<'_> {
        escape::prose(&self.0)
    }

    /// The unchanged text, to compare, to search, and to send. Not to print.
    pub fn raw(&self) -> &str {
        &self.0
    }

    /// Returns [`Untrusted::raw`] as an owned string.
    pub fn into_raw(self) -> String {
        self.0
    }

    /// Appends text.
    pub fn push(&mut self, more: &str) {
        self.0.push_str(more);
    }

    /// Returns whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Untrusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.verbatim())
    }
}

impl<T: Into<String>> From<T> for Untrusted {
    fn from(text: T) -> Untrusted {
        Untrusted(text.into())
    }
}

impl PartialEq<str> for Untrusted {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for Untrusted {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl PartialEq<String> for Untrusted {
    fn eq(&self, other: &String) -> bool {
        self.0 == *other
    }
}

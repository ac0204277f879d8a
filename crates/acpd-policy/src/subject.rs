use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::config::Kind;
use crate::one_line::one_line;

/// Subject of a remembered decision, in one agent and workspace. It has no patterns: a decision
/// about more needs a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Subject {
    /// This command line, in this folder if the call names one.
    Command {
        /// As the agent wrote it. A list of arguments is quoted for a shell.
        line: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        folder: Option<String>,
    },
    /// Reading, changing or deleting exactly these paths, with any change.
    Paths {
        /// `read`, `edit` or `delete`.
        kind: Kind,
        /// As the agent wrote them.
        paths: BTreeSet<String>,
    },
    /// Fetching exactly these addresses, with any question about their content.
    Urls {
        /// As the agent wrote them.
        urls: BTreeSet<String>,
    },
    /// A call with exactly this kind, title and input.
    Call {
        kind: Kind,
        title: String,
        /// JSON text with sorted members; without an input, the call's content.
        input: String,
    },
}

impl Subject {
    /// Describes the request on one line for people. [`Display`](fmt::Display) describes a
    /// remembered decision, without the input that people saw when they decided.
    pub fn asked(&self) -> String {
        match self {
            Self::Call { kind, title, input } => {
                format!("{kind}: {} {}", one_line(title), one_line(input))
            }
            _ => self.to_string(),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |items: &BTreeSet<String>| {
            let items: Vec<String> = items.iter().map(|item| one_line(item)).collect();
            items.join(", ")
        };
        match self {
            Self::Command { line, folder: None } => write!(f, "run `{}`", one_line(line)),
            Self::Command { line, folder: Some(folder) } => {
                write!(f, "run `{}` in {}", one_line(line), one_line(folder))
            }
            Self::Paths { kind, paths } => write!(f, "{kind} {}", list(paths)),
            Self::Urls { urls } => write!(f, "fetch {}", list(urls)),
            Self::Call { kind, title, .. } => {
                write!(f, "{kind}: {} (with the same input)", one_line(title))
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remembered {
    pub id: i64,
    pub agent: String,
    pub workspace: String,
    pub subject: Subject,
    pub verdict: Verdict,
    /// Milliseconds since 1970.
    pub at: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Situation<'a> {
    pub agent: &'a str,
    pub cwd: &'a str,
    /// `--yes` or `--deny` of this run.
    pub once: Option<Verdict>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Verdict {
    Allow,
    Reject,
}

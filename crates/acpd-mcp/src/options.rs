//! How the server is started.

use std::collections::BTreeSet;
use std::path::PathBuf;

/// What the server is to do.
#[derive(Debug, Clone)]
pub struct Options {
    /// The tools that it has.
    pub tools: BTreeSet<Tools>,
    /// The session that it is lent to, by the number that acpd gave it.
    pub session: Option<u64>,
    /// The agent of that session may answer what is asked in the turns that it has begun.
    pub answer: bool,
    /// Start the daemon if none runs.
    pub spawn: bool,
    /// The folders of the tools for files, the working directory first; none for the one of this process.
    pub folders: Vec<PathBuf>,
    /// The commands that find mistakes: command lines, or [`DETECT`].
    pub diagnostics: Vec<String>,
}

/// A set of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tools {
    /// Work with other agents.
    Delegate,
    /// Search and read conversations.
    History,
    /// Search and read files, and find mistakes in them.
    Workspace,
}

/// Stands for the commands that the files of the working directory call for.
pub const DETECT: &str = "detect";

impl Tools {
    /// All sets with their words.
    pub const ALL: [(&'static str, Tools); 3] = [
        ("delegate", Tools::Delegate),
        ("history", Tools::History),
        ("workspace", Tools::Workspace),
    ];
}

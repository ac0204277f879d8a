//! How the server is started.

use std::collections::BTreeSet;

/// What the server is to do.
#[derive(Debug, Clone)]
pub struct Options {
    /// The tools that it has.
    pub tools: BTreeSet<Tools>,
    /// The session that it is lent to, by the number that acpd gave it.
    pub session: Option<u64>,
    /// Start the daemon if none runs.
    pub spawn: bool,
}

/// A set of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tools {
    /// Work with other agents.
    Delegate,
    /// Search and read conversations.
    History,
}

impl Tools {
    /// All sets with their words.
    pub const ALL: [(&'static str, Tools); 2] =
        [("delegate", Tools::Delegate), ("history", Tools::History)];
}

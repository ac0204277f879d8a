//! The sets of tools that acpd lends to agents, as an MCP server.

use serde::Deserialize;

/// A set of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tools {
    /// Work with other agents.
    Delegate,
    /// Search and read conversations.
    History,
    /// Search and read files, and find mistakes in them.
    Workspace,
}

impl Tools {
    /// All sets with their words.
    pub const ALL: [(&'static str, Tools); 3] = [
        ("delegate", Tools::Delegate),
        ("history", Tools::History),
        ("workspace", Tools::Workspace),
    ];
}

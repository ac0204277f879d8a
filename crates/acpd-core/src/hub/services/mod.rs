//! Services of acpd for agents: client methods, terminals, and calls of MCP servers.

pub(crate) mod client_mcp;
pub(crate) mod client_methods;
mod mcp;
pub(crate) mod terminal;
pub(crate) mod terminal_mirror;

pub(crate) mod client_mcp;
pub(crate) mod client_methods;
pub(crate) mod terminal;
pub(crate) mod terminal_mirror;

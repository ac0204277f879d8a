//! Services for agents: requests that programs carry out, and calls of MCP servers.

mod agent_services;
mod mcp;

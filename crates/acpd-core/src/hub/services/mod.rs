mod agent_services;
mod mcp;

//! acpd's tools for agents: an MCP server on standard input and output, and a client of the daemon
//! like any other.
//!
//! ```text
//!  agent (host) ──stdio, MCP──▶ Server ──▶ delegate, history, files: one file for each set of tools
//!                                 │
//!                                 ├─▶ workspace: searches and checks for `files`; no daemon needed
//!                                 ├─▶ lent: mistakes that editors know, for `diagnostics`
//!                                 ├─▶ daemon: short requests, a connection each, and the wait for a turn of others
//!                                 └─▶ turns: a prompt, its connection and its thread, until its turn is over
//!                                        └─▶ report: the part of the turn that the model gets, and its progress
//! ```
//!
//! The daemon treats the server as a tool of an agent, wherever it runs: it gets no questions, ends
//! no turn but its own, and answers another agent only if the user and the daemon allow that.
//!
//! Architecture invariant: a prompt is sent once. A repeated request returns how the turn ended,
//! and a turn that ran when a process died is reported as interrupted or unknown.

mod daemon;
mod delegate;
mod failure;
mod files;
mod history;
mod lent;
mod options;
mod paths;
mod report;
mod server;
mod teller;
mod ticket;
mod turns;
mod workspace;

pub use options::{DETECT, EDITOR, Options};
pub use server::serve;

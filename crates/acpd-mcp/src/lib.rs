//! acpd's tools for agents: an MCP server on standard input and output, and a client of the daemon like any other.
//!
//! ```text
//!  agent (host) ──stdio, MCP──▶ Server ──▶ delegate, history, files: one file for each set of tools
//!                                 │
//!                                 ├─▶ workspace: what `files` looks into; no daemon needed
//!                                 ├─▶ lent: what editors know of mistakes, for `diagnostics`
//!                                 ├─▶ daemon: short questions, a connection each
//!                                 ├─▶ followed: a session in which others work, until a turn in it is over
//!                                 └─▶ running: a prompt, its connection and its thread, until its turn is over
//!                                        └─▶ report: what of the turn the model gets, and what is told meanwhile
//! ```
//!
//! The daemon treats it as a tool of an agent, wherever it runs: it is asked nothing, ends no turn but its own, and
//! answers questions of another agent only where the user has said so, and the daemon lets it.
//!
//! Architecture invariant: a prompt is sent once. A repeated request returns how the turn ended, and a turn
//! that ran when a process died is reported as interrupted or unknown.

mod daemon;
mod delegate;
mod failure;
mod files;
mod followed;
mod history;
mod lent;
mod line;
mod options;
mod paths;
mod report;
mod running;
mod server;
mod teller;
mod ticket;
mod workspace;

pub use options::{DETECT, EDITOR, Options};
pub use server::serve;

//! The brain of acpd: state machines without I/O and without a clock.
//!
//! [`Hub::handle`] takes one [`Input`] and adds [`record::Record`]s and [`Effect`]s to a [`Batch`].
//! The daemon commits the records in one transaction and only then performs the effects; it never
//! decides anything itself. The same hub runs in the simulator, where agents crash, clients stall,
//! the store loses its uncommitted tail and the daemon dies between any two effects.
//!
//! ```text
//!   inputs ──▶ Hub::handle ──▶ Batch { records, effects }
//!                 ▲                │ commit            │ after the commit
//!                 │                ▼                   ▼
//!             deadlines         the store     clients, processes, journal reads
//! ```
//!
//! A reader finds the room for a change by its noun: [`agent`](crate) processes in `agent.rs`,
//! their end in `stop.rs`, conversations in `session.rs`, prompts in `turn.rs`, questions to people
//! in `interaction.rs`, what they are about in `frozen.rs` and `call.rs`, lines to agents in `outbox.rs`, open requests in `requests.rs`, sessions that come back in `restore.rs` and
//! `replay.rs` and those that begin anew in `reseed.rs`, their directories in `directory.rs`,
//! which connections may stay in `admission.rs`, clients that come back in `resumable.rs`, what hooks are told in `hook.rs`, the next daemon in
//! `recover.rs`, what a client sees in `fanout.rs` and `view.rs`, what clients ask in `client.rs`,
//! `open.rs`, `archive.rs`, `title.rs` and `admin.rs`, what they add to a running turn in `steer.rs`, what
//! agents hear of them in `client_meta.rs`, what agents say in `from_agents.rs`, which MCP servers they get in `mcp.rs` and
//! `client_mcp.rs`, sessions that only they know in `adopt.rs`, those made of others in `fork.rs` and
//! those that nobody used in `unused.rs`, what people can do about what is stuck in `way_out.rs` and
//! `leftovers.rs`, what acpd does for agents in `client_methods.rs` and `terminal.rs`, and what of that is shown
//! in `terminal_mirror.rs`, logins in `auth.rs` and `login.rs`, sessions of subagents in `child.rs`, what acpd alone
//! may say in `own.rs`, what runs under an agent may not do in `under_agent.rs`, and what waits for a
//! journal that cannot be written in `unwritten.rs`.
//!
//! Architecture invariant: this crate knows no process, socket, file or clock. Time comes in with
//! each input, so a run is a function of its inputs.

mod abandoned;
mod admin;
mod admission;
mod adopt;
mod agent;
mod archive;
mod auth;
mod call;
mod child;
mod client;
mod client_mcp;
mod client_meta;
mod client_methods;
mod decide;
mod directory;
mod fanout;
mod fault;
mod fork;
mod forked;
mod from_agents;
mod frozen;
mod hook;
mod hub;
pub mod ids;
mod input;
mod interaction;
mod leftovers;
mod login;
pub mod mcp;
mod naming;
mod open;
mod outbox;
mod own;
mod params;
mod pending;
pub mod profile;
mod question;
pub mod record;
mod recover;
mod replay;
mod reply;
mod requests;
mod reseed;
mod restore;
mod resumable;
mod session;
mod start_queue;
mod steer;
mod stop;
mod summary;
mod terminal;
mod terminal_mirror;
mod timers;
mod title;
mod turn;
mod unanswered;
mod under_agent;
mod unused;
mod unwritten;
pub mod view;
mod way_out;

pub use fault::Fault;
pub use frozen::Frozen;
pub use hub::Hub;
pub use input::{
    Adopt, Batch, Effect, FileService, Input, LeftOut, LeftProcess, NewTerminal, Read, ReadStyle,
    Search, ServeError, SpawnError, StatusPart, StopStep, TerminalEnd, TerminalTail, View,
};
pub use reseed::GO_ON;
pub use unwritten::Accepted;

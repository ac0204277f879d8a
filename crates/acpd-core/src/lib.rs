//! The state machines of acpd, without I/O and without a clock.
//!
//! [`Hub::handle`] takes one [`Input`] and adds [`record::Record`]s and [`Effect`]s to a [`Batch`].
//! The daemon commits the records in one transaction, then performs the effects, and decides
//! nothing itself. The simulator runs the same hub: agents crash, clients stall, the store loses
//! uncommitted data, and the daemon dies between any two effects.
//!
//! ```text
//!   inputs ──▶ Hub::handle ──▶ Batch { records, effects }
//!                 ▲                │ commit            │ after the commit
//!                 │                ▼                   ▼
//!             deadlines         the store     clients, processes, journal reads
//! ```
//!
//! A machine has the state and the behaviour of one topic: processes and logins (`process`),
//! connections (`clients`), questions to people (`questions`), agents' requests that programs serve
//! (`services`), MCP servers (`mcp`). A machine gets facts as arguments and reports events
//! (`event`). Sessions (`session`) are not a machine yet. `requests` has the open requests to
//! agents, `tool_calls` the calls that questions are about, `views` a client's view of a line,
//! `watch` the watchers of all rows.
//!
//! `hub` passes each input to a machine and has the reactions to events (`hub/route.rs`). Below the
//! machines are ids, inputs and effects, records, timers, the configuration.
//! `crates/xtask/tests/arrows.rs` has the allowed imports.
//!
//! Architecture invariant: this crate knows no process, socket, file or clock. Each input has its
//! time, so a run is a function of its inputs.

mod budget;
mod clients;
mod cx;
mod event;
mod fault;
mod gist;
mod hash;
mod hub;
pub mod ids;
mod input;
pub mod mcp;
mod offer;
mod own;
mod params;
mod process;
pub mod profile;
mod prompt;
mod questions;
mod read_line;
pub mod record;
mod requests;
mod retention;
mod services;
mod session;
mod tally;
mod timers;
mod tool_calls;
pub mod views;
mod watch;

/// Steps of a restore, for tests.
#[doc(hidden)]
pub mod restore {
    pub use crate::session::restore::{Event, Facts, Next, Progress, Step};
}

pub use fault::Fault;
pub use hub::Hub;
pub use input::{
    Accepted, Batch, ClientEvent, ClientOrigin, Effect, FileService, HostEvent, Input, LeftOut,
    LeftProcess, LogPage, Look, NewTerminal, Numbers, Read, ReadStyle, Search, SessionValues,
    SpawnError, StatusPart, StopStep, TerminalEnd, TerminalTail, ToClient, ToHost, Trace, TraceOf,
    ValuesForm, View,
};
pub use session::reseed::GO_ON;
pub use tally::Timing;
pub use tool_calls::frozen::Frozen;

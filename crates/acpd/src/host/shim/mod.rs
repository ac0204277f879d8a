//! The shim of an agent, which keeps the agent and its output while no daemon runs.
//!
//! The handle only passes on orders. A task per process ([`supervisor`]) starts or finds the shim,
//! stays connected, and sends again after each loss of the connection what the shim may have
//! missed.
//!
//! ```text
//!  start ─▶ connect ◀──── lost ────┐
//!  adopt ─▶    │ ▲                 │
//!              │ └ wait ◀ no answer│
//!              ├─────▶ talk ───────┴──▶ forgotten
//!              └ dead ▶ bury ─────────▶ forgotten
//! ```
//!
//! Architecture invariant: a process is signalled past its shim only when the shim is shown to be
//! the recorded one, or to be dead.

mod connection;
mod handle;
mod link;
mod output;
mod place;
mod stdin;
mod supervisor;

pub use handle::Shim;
pub(super) use place::{Leases, Place, Start};
pub(super) use supervisor::{end_now, with_sources};

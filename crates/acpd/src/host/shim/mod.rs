//! The shim of an agent, which keeps the agent and its output while the daemon is away.
//!
//! The handle only passes on what is wanted; a task per process ([`supervisor`]) starts or finds the
//! shim, stays connected to it, and tells it again after every loss of the connection what it may
//! have missed.
//!
//! ```text
//!  start ─▶ connect ◀──── lost ────┐
//!  adopt ─▶    │ ▲                 │
//!              │ └ wait ◀ no answer│
//!              ├─────▶ talk ───────┴──▶ forgotten
//!              └ dead ▶ bury ─────────▶ forgotten
//! ```
//!
//! Architecture invariant: a process is signalled past its shim only when that shim is shown to be
//! the recorded one, or to be dead.

mod connection;
mod handle;
mod link;
mod orphan_shims;
mod output;
mod place;
mod stdin;
mod supervisor;

pub use handle::Shim;
pub(super) use orphan_shims::{end_orphan_shims, end_others, remove_lost_sockets};
pub(super) use place::{Leases, Place, Start};
